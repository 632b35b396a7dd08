/* Divisions beside the last products of a loop stay there.
 *
 * In: a mapped function after overlap_epilogue.  Out: in front of the wait for the products that a loop leaves running,
 * `sched_barrier` of what was computed there with a division and is used behind it.
 * The one idea: an assembler may put a wait in front of arithmetic that does not depend on it, and ptxas does; then a
 * store waits for divisions that could have run beside the products.  It moves none over an instruction with an effect,
 * so there is one that depends on their results: a pause, under a condition that never holds.  A load is such an
 * instruction by itself. */
#include "passes/passes.h"

enum { MOST_HELD = 8 };

/* What stands between the loop and the wait. */
static bool between(const ir_op *loop, const ir_op *wait, const ir_op *o)
{
	for (const ir_op *i = loop->next; i != wait; i = i->next)
		if (i == o) return true;
	return false;
}

static bool is_used_behind(const ir_op *loop, const ir_op *wait, const ir_value *v)
{
	for (const ir_use *u = v->uses; u; u = u->next)
		if (!between(loop, wait, u->user)) return true;
	return false;
}

static void place_barrier(ir_func *f, ir_op *loop, ir_op *wait)
{
	ir_value *held[MOST_HELD];
	unsigned n = 0;
	bool divides = false;
	for (ir_op *o = loop->next; o != wait; o = o->next) {
		divides |= o->kind == IR_DIV || o->kind == IR_REM;
		for (unsigned i = 0; divides && i < o->nresults && n < MOST_HELD; i++) {
			ir_value *v = o->results[i];
			bool index = ir_is_scalar(v) && v->type.elem == SCALAR_I32 && o->kind != IR_CONST;
			if (index && is_used_behind(loop, wait, v)) held[n++] = v;
		}
	}
	ir_builder b = {.func = f, .block = wait->block, .before = wait, .at = wait->at};
	if (n) ir_build(&b, IR_SCHED_BARRIER, n, held, 0, NULL, 0);
}

/* The loop whose products the operation waits for, if nothing but arithmetic stands between. */
static ir_op *loop_of(const ir_op *wait)
{
	ir_op *loop = wait->kind == IR_WGMMA_WAIT && wait->nargs ? ir_arg(wait, 0)->def : NULL;
	if (!loop || loop->kind != IR_FOR || loop->block != wait->block) return NULL;
	for (const ir_op *o = wait->prev; o != loop; o = o->prev)
		if (!ir_has(o, IR_PURE)) return NULL;
	return loop;
}

static void visit(ir_op *o, void *context)
{
	ir_op *loop = loop_of(o);
	if (loop) place_barrier(context, loop, o);
}

bool pass_sched_barrier(pass_context *c, ir_func *f)
{
	(void)c;
	ir_walk(f->body, visit, f);
	return true;
}
