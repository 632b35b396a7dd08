/* Numbers that the producer alone can come by go to the warps that compute.
 *
 * In: a mapped function with copies of a producer.  Out: scalar atomics on whose results they depend, a persistent
 * loop's next tile, are the producer's, and what they return goes through shared memory:
 *
 *                                               %t = atomic_rmw ..                                {producer}
 *                                               mbarrier_wait empty[slot], the other parity       {producer}
 *     %t = atomic_rmw ..              ->        scalar_send numbers[slot], %t                     {producer}
 *     .. %t                                     mbarrier_expect full[slot]                        {producer}
 *                                               mbarrier_wait full[slot], parity
 *                                               %u = scalar_receive numbers[slot]
 *                                               mbarrier_arrive empty[slot]
 *                                               .. %u
 *
 * The one idea: an atomic happens once, so it has one partition, and its result is a channel's load of one number.  The
 * producer has it when its copies have begun: those that depend on it run while the others still compute.
 *
 * Arrivals release and waits acquire, so a number is read behind its store, and a slot written behind its reads. */
#include "channel.h"

enum { SLOTS = 2 };

/* A variable from iteration to iteration, and what stands for it until loops carry it. */
typedef struct variable {
	ir_value *hole, *next;
} variable;

static ir_value *build_barriers(ir_builder *b, unsigned slots, unsigned arrivals)
{
	ir_value *v = ir_build1(b, IR_MBARRIERS, ir_scalar_type(SCALAR_I32), 0, NULL);
	ir_set_count(v->def, slots);
	ir_set_arrivals(v->def, arrivals);
	return v;
}

static ir_op *producers(ir_op *o)
{
	ir_set_partition(o, IR_PARTITION_PRODUCER);
	return o;
}

static void carry(pass_context *c, ir_func *f, ir_op *o, ir_value *start, const variable *v)
{
	carry_round_loops(c->arena, f, o, start, v->hole, v->next);
	ir_erase(v->hole->def);
}

static void send(pass_context *c, ir_func *f, ir_op *o)
{
	bool again = ir_loop_around(o) != NULL; /* else its slot is filled once */
	unsigned slots = again ? SLOTS : 1;
	ir_op *first = o;
	while (first->block->parent) first = first->block->parent;
	ir_builder head = {.func = f, .block = f->body, .before = first, .at = o->at};
	ir_builder b = {.func = f, .block = o->block, .before = o->next, .at = o->at};
	ir_value *numbers = ir_build1(&head, IR_SCALARS, ir_scalar_type(SCALAR_I32), 0, NULL);
	ir_set_count(numbers->def, slots);
	ir_value *full = build_barriers(&head, slots, 1),
		 *empty = again ? build_barriers(&head, slots, ir_warps(f)) : NULL;
	ir_value *zero = ir_constant_int(&head, SCALAR_I32, 0);
	variable slot = {.hole = ir_constant_int(&b, SCALAR_I32, 0)},
		 parity = {.hole = ir_constant_int(&b, SCALAR_I32, 0)};

	ir_value *free[] = {empty, slot.hole, NULL}, *sent[] = {numbers, slot.hole, zero},
		 *come[] = {full, slot.hole, parity.hole};
	if (again) {
		free[2] = ir_binary(&b, IR_XOR, parity.hole, ir_constant_int(&b, SCALAR_I32, 1));
		producers(ir_build(&b, IR_MBARRIER_WAIT, 3, free, 0, NULL, 0));
	}
	ir_op *to = producers(ir_build(&b, IR_SCALAR_SEND, 3, sent, 0, NULL, 0));
	producers(ir_build(&b, IR_MBARRIER_EXPECT, 2, come, 0, NULL, 0));
	ir_build(&b, IR_MBARRIER_WAIT, 3, come, 0, NULL, 0);
	ir_value *received = ir_build1(&b, IR_SCALAR_RECEIVE, o->results[0]->type, 2, sent);
	ir_replace(producers(o)->results[0], received);
	ir_set_arg(to, 2, o->results[0]);
	if (again) ir_build(&b, IR_MBARRIER_ARRIVE, 2, free, 0, NULL, 0);
	slot.next = again ? cursor_next_slot(&b, slot.hole, slots) : zero;
	parity.next = again ? cursor_next_parity(&b, slot.hole, parity.hole, slots) : zero;
	carry(c, f, o, zero, &slot);
	carry(c, f, o, zero, &parity);
}

bool pass_send_scalars(pass_context *c, ir_func *f)
{
	atomics sent = {0};
	partition_find_sent(c, f, &sent);
	for (uint32_t i = 0; i < sent.n; i++) send(c, f, sent.at[i]);
	return true;
}
