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
 * Where the threads of a program meet in every iteration there is none: they would all wait for the slowest.
 *
 * Exponentials without sums depend on nothing that is in few registers: all stay in front.  That pays where they
 * take no longer than the product that they stand beside, and another warpgroup is there to multiply meanwhile: else
 * they are better mixed with what follows. */
#include "passes/passes.h"
#include "async/scratch.h"
#include "mma/wgmma.h"

#include <assert.h>

enum { MOST_HELD = 8, FEW_REGISTERS = 4 };

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

static bool waits_in_body(const ir_op *o)
{
	return wgmma_waited_for(o) && o->block->parent && o->block->parent->kind == IR_FOR;
}

/* A few registers of f32 that a thread has computed of many. */
static bool is_summary(const ir_op *o)
{
	const ir_value *v = o->nresults ? o->results[0] : NULL;
	return v && v->layout && ir_has(o, IR_PURE) && !ir_has(o, IR_FREE | IR_SHAPE) && v->type.elem == SCALAR_F32 &&
	       !v->type.pointer && layout_registers(v->layout) <= FEW_REGISTERS;
}

/* Operations of the block that the value is made of, down to a reduction. */
static bool is_made_of_reduction(const ir_value *v, const ir_op *from, unsigned steps)
{
	if (!v->def || v->def->block != from->block || !steps) return false;
	for (const ir_op *o = from; o != v->def; o = o->next)
		if (o == NULL) return false;
	if (v->def->kind == IR_REDUCE) return true;
	for (unsigned i = 0; i < v->def->nargs; i++)
		if (is_made_of_reduction(ir_arg(v->def, i), from, steps - 1)) return true;
	return false;
}

/* Exponentials between the waits, if they take no longer than the product waited for, the last that runs.  Returns how
 * many tiles of them there are. */
static unsigned find_exponentials(const ir_func *f, const ir_op *first, const ir_op *wait, ir_value **held)
{
	enum { SEVERAL = 8 }; /* warps */
	wgmma_plan plan;
	unsigned n = 0;
	uint32_t cycles = 0;
	const ir_op *product = wgmma_waited_for(wait);
	if (product->kind != IR_WGMMA) return 0; /* a loop, which leaves its products running */
	if (ir_get_pending(wait) || ir_warps(f) < SEVERAL) return 0;
	if (!wgmma_plan_make(product, f->num_warps, &plan)) return 0;
	for (const ir_op *o = first->next; o != wait; o = o->next) {
		if (o->kind != IR_EXP2 || !o->results[0]->layout) continue;
		cycles += TARGET_EXP2_CYCLES * layout_registers(o->results[0]->layout);
		if (n < MOST_HELD) held[n++] = o->results[0];
	}
	return cycles <= wgmma_cycles(&plan) ? n : 0;
}

static void hold_in_body(ir_func *f, ir_op *wait)
{
	enum { STEPS = 4 };
	ir_value *held[MOST_HELD];
	unsigned n = 0;
	const ir_op *first = wait->prev;
	while (first && first->kind != IR_WGMMA_WAIT) first = first->prev;
	if (!first || !waits_in_body(first) || scratch_meets(f, wait->block)) return;
	for (const ir_op *o = first->next; o != wait; o = o->next)
		if (is_summary(o) && is_made_of_reduction(o->results[0], first, STEPS)) {
			held[0] = o->results[0];
			n = 1;
		}
	if (!n) n = find_exponentials(f, first, wait, held);
	ir_builder b = {.func = f, .block = wait->block, .before = wait, .at = wait->at};
	if (n) ir_build(&b, IR_SCHED_BARRIER, n, held, 0, NULL, 0);
}

static void visit(ir_op *o, void *context)
{
	ir_op *loop = loop_of(o);
	if (loop) place_barrier(context, loop, o);
	if (waits_in_body(o)) hold_in_body(context, o);
}

bool pass_sched_barrier(pass_context *c, ir_func *f)
{
	(void)c;
	ir_walk(f->body, visit, f);
	return true;
}
