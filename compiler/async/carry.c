/* A variable through all loops and ifs around an operation.
 *
 * In: an operation; what the variable is in front of everything (`start`), in front of the operation (`hole`, a
 * placeholder) and behind it (`behind`).  Out: the ifs and loops around it carry the variable, here a slot:
 *
 *     %start = const 0                          %start = const 0
 *     for i {                                   %r = for i, %start (%s) {
 *       if c {                                    %t = if c {
 *         o %hole                   ->              o %s
 *         %behind = %hole + 1                       %behind = %s + 1
 *                                                   yield %behind
 *       }                                         } else { yield %s }
 *     }                                           yield %t
 *                                               }
 * The one idea: from the inside outwards, each is given one value more, as phis are placed.  An if's other side yields
 * what the variable was in front of the if; a loop begins with what the next loop around it carries. */
#include "channel.h"

/* Operands that wait for the value as it is outside. */
typedef struct waiting {
	ir_op *op;
	unsigned arg;
} waiting;

typedef struct thread {
	arena *arena;
	ir_func *func;
	VEC(waiting) waiting;
	ir_value *hole; /* stands for the value in the innermost block, till a loop has it; null behind that */
	ir_value *out;  /* behind the operation that has been done last */
} thread;

static void supply(thread *t, ir_value *v)
{
	if (t->hole) ir_replace(t->hole, v);
	t->hole = NULL;
	for (uint32_t i = 0; i < t->waiting.n; i++) ir_set_arg(t->waiting.at[i].op, t->waiting.at[i].arg, v);
	t->waiting.n = 0;
}

static void await(thread *t, ir_op *o)
{
	vec_push(t->arena, &t->waiting, ((waiting){o, o->nargs - 1u}));
}

/* One more value that the operation carries, or that comes out of it: `t->out` in block `from` of it. */
static void thread_through(thread *t, ir_op *o, ir_block *from, ir_value *start)
{
	ir_func *f = t->func;
	assert(from->parent == o);
	ir_type type = start->type;
	if (o->kind == IR_IF) { /* the other side: as it is */
		ir_op *other = o->regions[o->regions[0] == from]->last;
		ir_add_arg(f, from->last, t->out);
		ir_add_arg(f, other, start);
		await(t, other);
		t->out = ir_add_result(f, o, type);
		return;
	}
	ir_add_arg(f, o, start);
	ir_value *arg = ir_block_arg(o->regions[0], type, NULL);
	if (o->kind == IR_FOR) {
		supply(t, arg);
		ir_add_arg(f, from->last, t->out);
	} else {
		ir_value *after = ir_block_arg(o->regions[1], type, NULL);
		bool second = from == o->regions[1];
		supply(t, second ? after : arg);
		ir_add_arg(f, o->regions[0]->last, second ? arg : t->out);
		ir_add_arg(f, o->regions[1]->last, second ? t->out : after);
	}
	await(t, o);
	t->out = ir_add_result(f, o, type);
}

ir_value *carry_round_loops(arena *a, ir_func *f, ir_op *o, ir_value *start, ir_value *hole, ir_value *behind)
{
	thread t = {.arena = a, .func = f, .hole = hole, .out = behind};
	for (; o->block->parent; o = o->block->parent) thread_through(&t, o->block->parent, o->block, start);
	if (t.hole) ir_replace(t.hole, start);
	return t.out;
}
