/* Warpgroups take turns at beginning products, so that one multiplies while another one computes.
 *
 * In: a scheduled function whose consumers are two or more warpgroups, with its waits and fences.  Out: in loops that
 * compute beside their products, `turn_wait` in front of an iteration's first product and `turn_pass` behind the last
 * one that is begun before its first wait; all that follows, up to the next iteration's products, is done outside the
 * turn.
 * The one idea: a token goes round the warpgroups (ping-pong).  Each has a named barrier, on which it waits and to
 * which the one before it arrives; the last warpgroup arrives once for the first one, at the beginning
 * (lower_partitions).  All have the same control flow, so the token is never asked for more often by one than by
 * another.
 *
 * None where all consumers meet in the iteration anyway: that keeps them in step. */
#include "passes/passes.h"
#include "scratch.h"
#include "target/nvptx/mma/wgmma.h"
#include "target/nvptx/mma_overlap.h"

#define NONE "warpgroups do not take turns at beginning it: "
#define MEET NONE "all threads meet in the iteration"
#define ACTS NONE "a branch of the iteration acts"
#define NO_WORK NONE "no exponentials are held beside a product, and no three products are begun in front of all waits"
#define FEW NONE "there is no second product in front of the first wait"
#define NO_PRODUCER NONE "no producer warp copies for them"

/* Somebody else than products takes a sum. */
static bool computes(const ir_block *b)
{
	for (const ir_op *o = b->first; o; o = o->next)
		if (o->kind == IR_WGMMA_WAIT && wgmma_waited_for(o) && wgmma_others_see(o)) return true;
	return false;
}

/* A body in two stages (pipeline_mma.c) begins all its products in front of its vector work; from three on, two
 * warpgroups that begin theirs together would wait for twice as many.  Where nothing but products sees sums, there is
 * no vector work to alternate with. */
static bool begins_all_at_once(const ir_block *b)
{
	enum { MANY = 3 };
	unsigned begun = 0;
	bool waited = false;
	for (const ir_op *o = b->first; o; o = o->next) {
		if (o->kind == IR_WGMMA && waited) return false;
		begun += o->kind == IR_WGMMA && !ir_get_joined(o);
		waited |= o->kind == IR_WGMMA_WAIT;
	}
	return begun >= MANY && computes(b);
}

static bool computes_beside_products(const ir_func *f, const ir_block *b)
{
	for (const ir_op *o = b->first; o; o = o->next)
		if (o->kind == IR_SCHED_BARRIER || mma_overlap_outlasts(f, o)) return true;
	return false;
}

/* A branch may only compute, as the mask of a whole block does: nobody may wait in it for other warpgroups.  Outside of
 * the turn, which ends in front of the first wait for a product, it may wait for blocks and read them
 * (early_waits.c). */
static bool acts_in_regions(const ir_func *f, const ir_block *b)
{
	bool outside = false;
	for (const ir_op *o = b->first; o; o = o->next) {
		outside |= o->kind == IR_WGMMA_WAIT;
		for (unsigned r = 0; r < o->nregions; r++)
			for (const ir_op *i = o->regions[r]->first; i; i = i->next) {
				bool block = i->kind == IR_MBARRIER_WAIT || i->kind == IR_MULTIBUFFER_READ;
				if (i->nregions || scratch_bytes(f, i)) return true;
				if (!(outside && block) && !ir_has(i, IR_PURE | IR_TERMINATOR)) return true;
			}
	}
	return false;
}

/* False: there is one product in front of the first wait. */
static bool take_turns(ir_func *f, ir_block *b, ir_op *first)
{
	ir_op *last = NULL;
	for (ir_op *o = first; o && o->kind != IR_WGMMA_WAIT; o = o->next)
		if (o->kind == IR_WGMMA) last = o;
	if (!last || last == first) return false;
	ir_builder in = {.func = f, .block = b, .before = first, .at = first->at};
	ir_builder out = {.func = f, .block = b, .before = last->next, .at = last->at};
	ir_build(&in, IR_TURN_WAIT, 0, NULL, 0, NULL, 0);
	ir_build(&out, IR_TURN_PASS, 0, NULL, 0, NULL, 0);
	f->takes_turns = true;
	return true;
}

typedef struct turns {
	pass_context *pass;
	ir_func *func;
} turns;

static const char *refusal(const ir_func *f, const ir_block *b)
{
	if (!f->producer_warps) return NO_PRODUCER;
	if (scratch_meets(f, b)) return MEET;
	if (!computes_beside_products(f, b) && !begins_all_at_once(b)) return NO_WORK;
	return acts_in_regions(f, b) ? ACTS : NULL;
}

static void visit(ir_op *o, void *context)
{
	turns *t = context;
	if (o->kind != IR_FOR) return;
	ir_block *b = o->regions[0];
	ir_op *first = b->first;
	while (first && first->kind != IR_WGMMA) first = first->next;
	if (!first) return;
	const char *why = refusal(t->func, b);
	if (!why && !take_turns(t->func, b, first)) why = FEW;
	if (why && computes(b)) vec_push(t->pass->arena, &t->pass->order, ((pass_remark){first->at, why}));
}

bool pass_turns(pass_context *c, ir_func *f)
{
	enum { WARPGROUP = 4 };
	turns t = {.pass = c, .func = f};
	if (ir_warps(f) >= 2 * WARPGROUP) ir_walk(f->body, visit, &t);
	return true;
}
