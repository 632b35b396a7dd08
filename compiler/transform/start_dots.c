/* A dot's sum starts from +0, whatever it is added to.
 *
 * In: the tile level.  Out: the same; what a dot adds to is never -0 where the target would begin with it:
 *     %s = dot %a, %b, %acc            ->      %z = add %acc, 0.0
 *                                              %s = dot %a, %b, %z
 * acc + dot(a, b), which the dot stands for, is +0 where all of it is zero: dot(a, b) is.  A chain of fused
 * multiply-adds that starts from an acc of -0 is -0 if all products are: on cpu, and on a GPU in f64 and "ieee".  Other
 * forms of mma.sync and wgmma add the products up by themselves.  The one idea: mostly the sum is carried by a loop and
 * begins with zeros, so that nothing is added. */
#include "passes/passes.h"

enum { MOST_DEPTH = 16 };

/* No element is -0, but for one that a tiny product was rounded to. */
static bool none(void *induction, ir_value *v, unsigned depth)
{
	ir_value *source[IR_SOURCES];
	assert(scalar_is_float(v->type.elem));
	const ir_op *o = v->def;
	uint64_t bits, minus = UINT64_C(1) << (8 * scalar_bytes(v->type.elem) - 1);
	if (ir_is_const(v, &bits)) return bits != minus;
	if (depth == 0) return false;
	unsigned n = ir_sources(v, source);
	if (n) return ir_holds_for_all(induction, v, source, n, none, induction, depth - 1);
	if (!o) return false;
	switch (o->kind) {
	case IR_DOT: return true;
	case IR_ADD: return none(induction, ir_arg(o, 0), depth - 1) || none(induction, ir_arg(o, 1), depth - 1);
	case IR_SUB: return none(induction, ir_arg(o, 0), depth - 1);
	case IR_SPLAT: return none(induction, ir_arg(o, 0), depth - 1);
	case IR_CONVERT: return !scalar_is_float(ir_arg(o, 0)->type.elem) || none(induction, ir_arg(o, 0), depth - 1);
	default: return false;
	}
}

static bool begins_with_it(const blk_target *t, const ir_op *dot)
{
	scalar s = ir_arg(dot, 0)->type.elem;
	if (!scalar_is_float(s)) return false;
	return t->kind != TARGET_NVPTX || s == SCALAR_F64 || (s == SCALAR_F32 && ir_get_precision(dot) == IR_IEEE);
}

static void start(ir_op *o, void *context)
{
	pass_context *p = context;
	ir_induction zeros = {0};
	if (o->kind != IR_DOT || o->nargs < 3 || !begins_with_it(p->target, o)) return;
	ir_value *acc = ir_arg(o, 2);
	assert(ir_type_equal(acc->type, o->results[0]->type));
	if (none(&zeros, acc, MOST_DEPTH)) return;
	ir_builder b = {.func = o->block->func, .block = o->block, .before = o, .at = o->at};
	ir_set_arg(o, 2, ir_binary(&b, IR_ADD, acc, ir_constant(&b, acc->type, 0)));
}

bool pass_start_dots(pass_context *p, ir_func *f)
{
	ir_walk(f->body, start, p);
	return true;
}
