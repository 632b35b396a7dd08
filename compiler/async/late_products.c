/* What exponentials give is multiplied behind the wait for the product that runs beside them, if they outlast that.
 *
 * In: a mapped function; waits for products stand late, and products as early as operands allow.  Out: in loops, a
 * product of exponentials that was begun in front of a wait stands in front of the next product behind it, if all
 * threads meet for that one, and the conversion of its factor beside that of the other one's:
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
 * meets the others before the next one anyway, as its factor (ds) goes to all by shared memory; where it does not, the
 * others multiply meanwhile, and all stays (target/nvptx/mma_overlap.h tells what takes longer). */
#include "passes/passes.h"
#include "scratch.h"
#include "target/nvptx/mma/wgmma.h"
#include "target/nvptx/mma_overlap.h"

#define LATE "begun behind the wait for the product beside its exponentials, which take longer"
enum { TWO_WARPGROUPS = 8 /* warps */, MOST_STEPS = 4 };

/* The value is made of one of the exponentials, by not many operations of their block. */
static bool is_made_of(const mma_overlap *work, const ir_value *v, unsigned steps)
{
	for (unsigned i = 0; i < work->n; i++)
		if (v == work->exponentials[i]) return true;
	const ir_op *o = v->def;
	if (!steps || !o || o->block != work->exponentials[0]->def->block || !ir_has(o, IR_PURE)) return false;
	for (unsigned i = 0; i < o->nargs; i++)
		if (is_made_of(work, ir_arg(o, i), steps - 1)) return true;
	return false;
}

/* What is converted is made of exponentials that take longer than the product waited for. */
static bool outlasts(const ir_func *f, const ir_op *wait, const ir_op *factor)
{
	wgmma_plan plan;
	mma_overlap work;
	const ir_op *product = wgmma_waited_for(wait);
	if (!product || product->kind != IR_WGMMA || !wgmma_plan_make(product, f->num_warps, &plan)) return false;
	return mma_overlap_find(f, wait, &work) && work.n && work.cycles > wgmma_cycles(&plan) &&
	       is_made_of(&work, ir_arg(factor, 0), MOST_STEPS);
}

static ir_op *product_in_front(const ir_op *wait)
{
	ir_op *o = wait->prev;
	while (o && !wgmma_is_product(o)) o = o->prev;
	return o && o->kind == IR_WGMMA ? o : NULL;
}

static ir_op *product_behind(const ir_op *wait)
{
	ir_op *o = wait->next;
	while (o && !wgmma_is_product(o)) o = o->next;
	return o && o->kind == IR_WGMMA ? o : NULL;
}

static const ir_value *unpermuted(const ir_value *v)
{
	while (v->def && v->def->kind == IR_PERMUTE) v = ir_arg(v->def, 0);
	return v;
}

/* The conversion of the block that made it, or null. */
static ir_op *conversion(const ir_value *v, const ir_block *b)
{
	return v->def && v->def->kind == IR_CONVERT && v->def->block == b ? v->def : NULL;
}

static bool lives_behind(const ir_value *v, const ir_op *wait)
{
	for (const ir_use *u = v->uses; u; u = u->next) {
		const ir_op *o = ir_in_block(wait->block, u->user);
		if (o && ir_precedes(wait, o)) return true;
	}
	return false;
}

static void try_wait(pass_context *c, ir_func *f, ir_op *wait)
{
	ir_op *early = product_in_front(wait), *next = product_behind(wait);
	if (!early || !next || !scratch_bytes(f, next) || scratch_bytes(f, early)) return;
	ir_op *factor = conversion(ir_arg(early, 0), wait->block), *own = ir_only_user(early->results[0]);
	ir_op *other = conversion(unpermuted(ir_arg(next, 0)), wait->block);
	if (!factor || !other || !ir_only_user(factor->results[0]) || !ir_precedes(wait, other)) return;
	if (!lives_behind(ir_arg(factor, 0), wait) || !outlasts(f, wait, factor)) return;
	if (!own || own->kind != IR_WGMMA_WAIT || own->block != wait->block || !ir_precedes(next, own)) return;
	if (wgmma_others_see(own)) return;
	ir_move_before(factor, wait->block, other);
	ir_move_before(early, wait->block, next);
	ir_set_pending(wait, ir_get_pending(wait) - 1u);
	vec_push(c->arena, &c->order, ((pass_remark){early->at, LATE}));
}

static void find_waits(pass_context *c, ir_func *f, ir_block *b)
{
	for (ir_op *o = b->first; o; o = o->next)
		for (unsigned r = 0; r < o->nregions; r++) find_waits(c, f, o->regions[r]);
	for (ir_op *o = b->first, *next; o; o = next) {
		next = o->next;
		if (o->kind == IR_WGMMA_WAIT && o->nargs == 1 && ir_get_pending(o)) try_wait(c, f, o);
	}
}

bool pass_late_products(pass_context *c, ir_func *f)
{
	if (f->num_warps >= TWO_WARPGROUPS) find_waits(c, f, f->body);
	return true;
}
