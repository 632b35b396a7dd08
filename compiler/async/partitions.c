/* A loop whose copies another warp shall make.
 *
 * In: a loop whose loads are all bulk copies, mostly with a loop around it.  Out: the loop with copies, waits and
 * arrivals in an order in which one thread could do all of them.  What is the producer's has its partition from here
 * on; specialise_warps.c gives each half to its warps.
 * The one idea: a slot has two barriers, `full` and `empty`, and slot and parity run on from one run of the loop to its
 * next one, as if all runs were one.  So the copies of the next run may begin while what follows this run is done.
 *
 *     for t {                                   multibuffers, full, empty
 *       for k, s {                              for t, slot, parity {
 *         %x = bulk_load ..        ->             for k, s, slot, parity {
 *         %u = wgmma_wait (wgmma ..)                mbarrier_wait empty[slot], the other parity     {producer}
 *         yield %u                                  mbarrier_expect full[slot]; bulk_copy ..        {producer}
 *       }                                           mbarrier_wait full[slot], parity
 *     }                                             %t = wgmma r[slot], .., %s
 *                                                   wgmma_wait {pending=1}
 *                                                   mbarrier_arrive empty[slot before], not in the first iteration
 *                                                   yield %t, next slot, next parity }
 *                                                 %u = wgmma_wait %t
 *                                                 mbarrier_arrive empty[last slot], if there was an iteration
 *                                                 yield next slot, next parity }
 *
 * Without products in flight an iteration releases its own slot, at its end.  Then there need not be a loop around; in
 * a cluster neither, and behind all loops the producer waits until each slot has come back.  The last slot is released
 * where somebody takes it: a loop around, or those waits.
 *
 * Where the program runs the loop once, and what it stores in the end would take a slot's room, that lies where the
 * slots were (`ends`): they have been filled and read for the last time.
 *
 * A loop that stands behind such a one and loads the same goes on with its multibuffers: as if both were one.  But for
 * one whose last slot nobody releases, as no loop is around it (groups of rows). */
#include "pipeline.h"

#include <string.h>

static ir_value *previous_slot(pipeline *p, ir_builder *b, ir_value *slot)
{
	ir_value *zero = ir_constant_int(b, SCALAR_I32, 0), *one = ir_constant_int(b, SCALAR_I32, 1);
	ir_value *args[] = {ir_binary(b, IR_EQ, slot, zero), ir_constant_int(b, SCALAR_I32, p->stages - 1),
		ir_binary(b, IR_SUB, slot, one)};
	return ir_build1(b, IR_SELECT, slot->type, 3, args);
}

/* Behind the loop that the multibuffers come from; what the loops around carry is what it is behind this one. */
static ir_value *carry_from(pipeline *p, ir_value *left)
{
	ir_value *inside = pipeline_carry(p, left, NULL), *behind = p->loop->results[p->loop->nresults - 1];
	ir_op *end = p->loop->block->last;
	for (unsigned i = 0; i < end->nargs; i++)
		if (ir_arg(end, i) == left) ir_set_arg(end, i, behind);
	return inside;
}

/* A value that the loop carries goes on through the loops around it; `start` stands in front of all of them, *behind
 * is what comes out of them. */
static ir_value *carry_on(pipeline *p, ir_value *start, ir_value **behind)
{
	ir_builder before = {.func = p->func, .block = p->loop->block, .before = p->loop, .at = p->loop->at};
	ir_value *hole = ir_constant(&before, start->type, 0), *inside = pipeline_carry(p, hole, NULL);
	*behind = carry_round_loops(
		p->context->arena, p->func, p->loop, start, hole, p->loop->results[p->loop->nresults - 1]);
	ir_erase(hole->def);
	return inside;
}

static ir_op *outermost(const pipeline *p)
{
	ir_op *o = p->loop;
	while (o->block->parent) o = o->block->parent;
	return o;
}

/* In a cluster a program ends when its neighbours have released all slots: nobody speaks to it any more, and what it
 * brought them has been read.  As if it filled each slot once more. */
static void wait_for_neighbours(pipeline *p, ir_value *slot, ir_value *parity)
{
	ir_builder b = {.func = p->func, .block = p->func->body, .before = outermost(p)->next, .at = p->loop->at};
	p->parity = parity;
	for (unsigned i = 0; i < p->stages; i++) {
		ir_value *other = ir_binary(&b, IR_XOR, p->parity, ir_constant_int(&b, SCALAR_I32, 1));
		ir_value *free[] = {p->empty, slot, other};
		ir_set_partition(ir_build(&b, IR_MBARRIER_WAIT, 3, free, 0, NULL, 0), IR_PARTITION_PRODUCER);
		ir_value *next = pipeline_next_slot(&b, slot, p->stages);
		p->parity = pipeline_next_parity(&b, slot, p->parity, p->stages);
		slot = next;
	}
}

static void leave_set(pipeline *p, ir_value *slot, ir_value *parity)
{
	pipeline_set *s = ARENA_NEW(p->context->arena, pipeline_set);
	*s = (pipeline_set){.loop = p->loop,
		.nloads = p->nloads,
		.stages = p->stages,
		.wanted = pipeline_wanted_stages(p),
		.sent = p->sent,
		.released = !p->nwaits || ir_loop_around(p->loop),
		.full = p->barriers,
		.empty = p->empty,
		.slot = slot,
		.parity = parity};
	memcpy(s->loads, p->loads, sizeof s->loads);
	p->before = s;
}

void pipeline_partition(pipeline *p)
{
	assert(p->partitions && p->nbulk == p->nloads && p->stages >= 2);
	ir_op *end = p->body->last, *first = outermost(p);
	span at = p->loop->at;
	ir_value **map = ARENA_ARRAY(p->context->arena, ir_value *, p->nvalues); /* this iteration's own values */
	ir_builder head = {.func = p->func, .block = p->func->body, .before = first, .at = at};
	pipeline_make_multibuffers(p, &head);
	ir_value *full = p->barriers, *empty = p->empty;
	if (p->cluster) {
		ir_builder before = {.func = p->func, .block = p->loop->block, .before = p->loop, .at = at};
		pipeline_build_in_step(p, &head);
		pipeline_build_multicast(p, &before);
	}
	ir_value *zero = ir_constant_int(&head, SCALAR_I32, 0);

	ir_builder top = {.func = p->func, .block = p->body, .before = p->body->first, .at = at};
	ir_builder bottom = {.func = p->func, .block = p->body, .before = end, .at = at};
	ir_builder after = {.func = p->func, .block = p->loop->block, .before = p->loop->next, .at = at};
	pipeline_leave_in_flight(p, &after);
	ir_op *products = pipeline_behind_products(p);
	ir_builder behind = {.func = p->func, .block = p->body, .before = products, .at = at};
	ir_value *slot_behind, *parity_behind;
	ir_value *slot = p->reuses ? carry_from(p, p->before->slot) : carry_on(p, zero, &slot_behind);
	ir_value *last = p->loop->results[p->loop->nresults - 1];
	p->parity = p->reuses ? carry_from(p, p->before->parity) : carry_on(p, zero, &parity_behind);
	ir_value *parity_last = p->loop->results[p->loop->nresults - 1];

	ir_value *other = ir_binary(&top, IR_XOR, p->parity, ir_constant_int(&top, SCALAR_I32, 1));
	ir_value *free[] = {empty, slot, other}, *come[] = {full, slot, p->parity};
	ir_set_partition(ir_build(&top, IR_MBARRIER_WAIT, 3, free, 0, NULL, 0), IR_PARTITION_PRODUCER);
	pipeline_clone(p, &top, map);
	pipeline_copy_blocks(p, &top, slot, map);
	top.at = at;
	ir_build(&top, IR_MBARRIER_WAIT, 3, come, 0, NULL, 0);

	if (p->nwaits) {
		ir_set_pending(ir_build(&behind, IR_WGMMA_WAIT, 0, NULL, 0, NULL, 0), p->nwaits);
		ir_value *later = ir_binary(&behind, IR_NE, p->body->args[0], ir_arg(p->loop, 0));
		pipeline_release(p, &behind, previous_slot(p, &behind, slot), later);
		if (ir_loop_around(p->loop) || p->cluster) { /* else nobody takes it any more, or waits for it */
			bool once = ir_get_accumulator_init(p->loop);
			ir_value *any = once ? NULL : ir_binary(&after, IR_LT, ir_arg(p->loop, 0), ir_arg(p->loop, 1));
			pipeline_release(p, &after, previous_slot(p, &after, last), any);
		}
	} else
		pipeline_release(p, &bottom, slot, NULL);
	ir_add_arg(p->func, end, pipeline_next_slot(&bottom, slot, p->stages));
	ir_add_arg(p->func, end, pipeline_next_parity(&bottom, slot, p->parity, p->stages));
	assert(end->nargs == p->loop->nresults);
	leave_set(p, last, parity_last);
	pipeline_read_multibuffers(p, slot);
	if (p->cluster) wait_for_neighbours(p, slot_behind, parity_behind);
	if (p->ends) { /* `empty` goes on: neighbours release slots there, and the producer waits for them */
		ir_build(&after, IR_MBARRIERS_END, 1, &full, 0, NULL, 0);
		ir_build(&after, IR_MULTIBUFFER_END, 0, NULL, 0, NULL, 0);
	}
}
