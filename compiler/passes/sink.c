/* Scalar arithmetic that nobody needs before a loop's products are done goes behind the loop.
 *
 * In: a mapped function after specialise_warps.  Out: where a loop leaves products running, pure scalar operations in
 * front of it that only what follows it takes stand between the loop and the wait for those products.
 * The one idea: the last round's products run for longer than the divisions that say where their tile lies, so what
 * only the store needs is free there; in front of the loop, where the program before left it, it keeps the tensor cores
 * waiting.  From the loop upwards: what moves is needed by nobody in between. */
#include "passes.h"

typedef struct needed {
	bool *by_id;
} needed;

static void need_operands(ir_op *o, void *context)
{
	needed *n = context;
	for (unsigned i = 0; i < o->nargs; i++) n->by_id[ir_arg(o, i)->id] = true;
}

static void need(needed *n, ir_op *o)
{
	need_operands(o, n);
	for (unsigned r = 0; r < o->nregions; r++) ir_walk(o->regions[r], need_operands, n);
}

static bool movable(const needed *n, const ir_op *o)
{
	if (!ir_has(o, IR_PURE) || o->nregions || o->kind == IR_CONST || !o->nresults) return false;
	for (unsigned i = 0; i < o->nresults; i++)
		if (!ir_is_scalar(o->results[i]) || n->by_id[o->results[i]->id]) return false;
	return true;
}

/* The wait behind a loop for sums that the loop leaves in flight. */
static ir_op *wait_behind(const ir_op *loop)
{
	ir_op *o = loop->next;
	return o && o->kind == IR_WGMMA_WAIT && o->nargs && ir_arg(o, 0)->def == loop ? o : NULL;
}

static void sink(pass_context *c, ir_func *f, ir_block *b)
{
	for (ir_op *loop = b->first; loop; loop = loop->next) {
		for (unsigned r = 0; r < loop->nregions; r++) sink(c, f, loop->regions[r]);
		ir_op *to = loop->kind == IR_FOR ? wait_behind(loop) : NULL;
		if (!to) continue;
		needed n = {ARENA_ARRAY(c->arena, bool, f->nvalues)};
		need(&n, loop);
		for (ir_op *o = loop->prev, *prev; o; o = prev) {
			prev = o->prev;
			if (movable(&n, o)) {
				ir_move_before(o, b, to);
				to = o;
			} else
				need(&n, o);
		}
	}
}

bool pass_sink(pass_context *c, ir_func *f)
{
	sink(c, f, f->body);
	return true;
}
