/* Arithmetic beside running products stays in front of the wait for them.
 *
 * In: a mapped function after overlap_epilogue.  Out: `sched_barrier` in front of two kinds of waits: of the products
 * that a loop leaves running, with what was computed there with a division and is used behind it; and of a product of a
 * loop's body, with what was computed between the wait before it and this one (a softmax beside a product, or
 * exponentials beside the last product that runs).
 * The one idea: an assembler may put a wait in front of arithmetic that does not depend on it, and ptxas does; then
 * what could have run beside the products waits for them.  It moves none over an instruction with an effect, so there
 * is one that depends on their results: a pause, under a condition that never holds.  A load is such an instruction by
 * itself.
 *
 * In a body one value is enough that much depends on: the last sum along rows, of which a thread holds a few registers.
 * Exponentials without sums depend on nothing that is in few registers: all stay in front, if another warpgroup is
 * there to multiply meanwhile.  Neither where exponentials take longer than the product that they stand beside
 * (mma_overlap.h), nor where the threads of a program meet in every iteration: they would all wait for the
 * slowest. */
#include "passes/passes.h"
#include "async/scratch.h"
#include "mma_overlap.h"

#include <assert.h>

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
	assert(loop->kind == IR_FOR && wait->kind == IR_WGMMA_WAIT && loop->block == wait->block);
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

/* ---- in a loop's body ---- */

static void hold_in_body(ir_func *f, ir_op *wait)
{
	enum { SEVERAL = 8 }; /* warps */
	mma_overlap work;
	if (!mma_overlap_find(f, wait, &work) || scratch_meets(f, wait->block)) return;
	unsigned n = work.summary ? 1 : work.product && ir_warps(f) >= SEVERAL ? work.n : 0;
	if (!n || work.outlasts) return;
	ir_builder b = {.func = f, .block = wait->block, .before = wait, .at = wait->at};
	ir_build(&b, IR_SCHED_BARRIER, n, work.summary ? &work.summary : work.exponentials, 0, NULL, 0);
}

static void visit(ir_op *o, void *context)
{
	ir_op *loop = loop_of(o);
	if (loop) place_barrier(context, loop, o);
	hold_in_body(context, o);
}

bool pass_sched_barrier(pass_context *c, ir_func *f)
{
	(void)c;
	ir_walk(f->body, visit, f);
	return true;
}
