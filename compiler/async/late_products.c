/* What exponentials give is multiplied behind the wait for the product that runs beside them, if they outlast that.
 *
 * In: a mapped function; waits for products stand late, and products as early as operands allow.  Out: in loops in
 * whose iterations all threads meet, a product of exponentials that was begun in front of a wait stands in front of the
 * next product behind it, and the conversion of its factor beside that of the other one's:
 *
 *     s = wgmma_wait s {pending=1}                s = wgmma_wait s {pending=1}
 *     p = exp2 s                                  p = exp2 s
 *     dv = wgmma (convert p), g, dv               dp = wgmma_wait dp {pending=0}
 *     dp = wgmma_wait dp {pending=1}       ->     ds = p * dp
 *     ds = p * dp                                 dv = wgmma (convert p), g, dv
 *     dq = wgmma (convert ds), k                  dq = wgmma (convert ds), k
 *
 * The one idea: a product in front of the wait makes threads compute all its exponentials first.  Where they take
 * longer than the product beside them, nothing multiplies in the meantime, and the arithmetic behind the wait (ds),
 * which could be interleaved with them, comes on top.  The product itself gains little by being early if its warpgroup
 * meets the others before the next one anyway; where it does not, the others multiply meanwhile, and all stays
 * (target/nvptx/mma_overlap.h tells what takes longer).
 */
#include "passes/passes.h"
#include "scratch.h"
#include "target/nvptx/mma/wgmma.h"
#include "target/nvptx/mma_overlap.h"

#define LATE "begun behind the wait for the product beside its exponentials, which take longer"

static bool outlast(const ir_func *f, const ir_op *wait)
{
	wgmma_plan plan;
	mma_overlap work;
	const ir_op *product = wgmma_waited_for(wait);
	if (!product || product->kind != IR_WGMMA || !wgmma_plan_make(product, f->num_warps, &plan)) return false;
	return mma_overlap_find(f, wait, &work) && work.cycles > wgmma_cycles(&plan);
}

static ir_op *product_in_front(const ir_op *wait)
{
	ir_op *o = wait->prev;
	while (o && o->kind != IR_WGMMA && o->kind != IR_WGMMA_WAIT) o = o->prev;
	return o && o->kind == IR_WGMMA ? o : NULL;
}

static ir_op *product_behind(const ir_op *wait)
{
	ir_op *o = wait->next;
	while (o && o->kind != IR_WGMMA && o->kind != IR_WGMMA_WAIT) o = o->next;
	return o && o->kind == IR_WGMMA ? o : NULL;
}

/* The conversion that made the product's first factor in the block, under any shape; or null. */
static ir_op *conversion(const ir_op *product)
{
	ir_op *o = ir_arg(product, 0)->def;
	while (o && o->kind == IR_PERMUTE) o = ir_arg(o, 0)->def;
	return o && o->kind == IR_CONVERT && o->block == product->block ? o : NULL;
}

/* Nobody but products, and the loop that carries it, sees the sum. */
static bool is_sum_of_products(const ir_op *wait)
{
	for (const ir_use *u = wait->results[0]->uses; u; u = u->next)
		if (u->user->kind != IR_WGMMA && u->user != wait->block->last) return false;
	return true;
}

static void try_wait(pass_context *c, ir_func *f, ir_op *wait)
{
	ir_op *early = product_in_front(wait), *next = product_behind(wait);
	if (!early || !next || !wait->nresults || !outlast(f, wait)) return;
	ir_op *factor = conversion(early), *other = conversion(next), *own = ir_only_user(early->results[0]);
	if (!factor || !other || !ir_only_user(factor->results[0]) || !ir_precedes(wait, other)) return;
	if (!own || own->kind != IR_WGMMA_WAIT || own->block != wait->block || !ir_precedes(next, own)) return;
	if (!is_sum_of_products(own)) return;
	ir_move_before(factor, wait->block, other);
	ir_move_before(early, wait->block, next);
	ir_set_pending(wait, ir_get_pending(wait) - 1u);
	vec_push(c->arena, &c->order, ((pass_remark){early->at, LATE}));
}

static void find_loops(pass_context *c, ir_func *f, ir_block *b)
{
	for (ir_op *o = b->first; o; o = o->next)
		for (unsigned r = 0; r < o->nregions; r++) find_loops(c, f, o->regions[r]);
	if (!b->parent || b->parent->kind != IR_FOR || !scratch_meets(f, b)) return;
	for (ir_op *o = b->first, *next; o; o = next) {
		next = o->next;
		if (o->kind == IR_WGMMA_WAIT && o->nargs == 1 && ir_get_pending(o)) try_wait(c, f, o);
	}
}

bool pass_late_products(pass_context *c, ir_func *f)
{
	find_loops(c, f, f->body);
	return true;
}
