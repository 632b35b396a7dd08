/* A factor of known sign leaves a maximum.
 *
 * In: the tile level.  Out: the same values; no maximum or minimum along an axis of products with one positive or
 * negative factor, which multiplies the result instead:
 *     %y = mul %x, splat %c                         %r = reduce %x {max}
 *     %m = reduce %y {max}              ->          %m = mul %r, splat %c            (c < 0: {min})
 * The one idea: rounding is monotonic, so the product of the largest is the largest of the products, bit for bit, as
 * long as the factor is neither 0 nor infinite.  Then nobody needs all products in front of the maximum, and where they
 * are only subtracted from, each is part of a fused multiply-add.  A nan that propagates is nan on either side.  So a
 * factor leaves a selection too whose other arm is infinite: where(c, x * f, -inf) is where(c, x, -inf) * f for a
 * positive f.
 *
 * The sign comes of constants, of arithmetic that keeps it, and of assume(c > 0.0). */
#include "passes/passes.h"

enum { MOST_DEPTH = 8 };
#define LEAVES "a factor of known sign multiplies the result, not each element"

static int of_number(const ir_value *v, uint64_t bits)
{
	double d = scalar_to_double(v->type.elem, bits);
	return d > 0 && d < 1e300 * 1e300 ? 1 : d < 0 && d > -1e300 * 1e300 ? -1 : 0;
}

/* The sign that a condition says of v when it is true. */
static int says(const ir_op *o, const ir_value *v)
{
	uint64_t bits;
	if (!o) return 0;
	if (o->kind == IR_AND) {
		int s = says(ir_arg(o, 0)->def, v);
		return s ? s : says(ir_arg(o, 1)->def, v);
	}
	if (!ir_is_comparison(o->kind)) return 0;
	bool first = ir_arg(o, 0) == v;
	if (!first && ir_arg(o, 1) != v) return 0;
	const ir_value *other = ir_arg(o, first);
	if (!ir_is_const(other, &bits)) return 0;
	double bound = scalar_to_double(other->type.elem, bits);
	bool greater = o->kind == (first ? IR_GT : IR_LT), at_least = o->kind == (first ? IR_GE : IR_LE);
	bool less = o->kind == (first ? IR_LT : IR_GT), at_most = o->kind == (first ? IR_LE : IR_GE);
	if ((greater && bound >= 0) || (at_least && bound > 0)) return 1;
	return (less && bound <= 0) || (at_most && bound < 0) ? -1 : 0;
}

/* By the assumptions that stand where `at` does, or around it. */
static int assumed(const ir_op *at, const ir_value *v, const ir_value *condition, unsigned depth)
{
	for (const ir_use *u = condition->uses; u; u = u->next) {
		const ir_op *o = u->user;
		int s = 0;
		if (o->kind == IR_ASSUME &&
			(o->block == at->block || !o->block->parent || ir_encloses(o->block->parent, at)))
			s = says(ir_arg(o, 0)->def, v);
		else if (o->kind == IR_AND && depth)
			s = assumed(at, v, o->results[0], depth - 1);
		if (s) return s;
	}
	return 0;
}

static int promised(const ir_op *at, const ir_value *v)
{
	for (const ir_use *u = v->uses; u; u = u->next) {
		int s = ir_is_comparison(u->user->kind) ? assumed(at, v, u->user->results[0], MOST_DEPTH) : 0;
		if (s) return s;
	}
	return 0;
}

/* 1: positive, -1: negative, 0: not known, or not the same in all elements. */
static int sign(const ir_op *at, const ir_value *v, unsigned depth)
{
	uint64_t bits;
	if (!scalar_is_float(v->type.elem) || v->type.pointer) return 0;
	if (ir_is_const(v, &bits)) return of_number(v, bits);
	const ir_op *o = v->def;
	int s = ir_is_scalar(v) ? promised(at, v) : 0;
	if (s || !o || !depth) return s;
	switch (o->kind) {
	case IR_MUL:
	case IR_DIV:
	case IR_DIV_RN: return sign(at, ir_arg(o, 0), depth - 1) * sign(at, ir_arg(o, 1), depth - 1);
	case IR_NEG: return -sign(at, ir_arg(o, 0), depth - 1);
	case IR_SPLAT:
	case IR_CONVERT:
	case IR_SQRT:
	case IR_SQRT_RN:
	case IR_RSQRT: return sign(at, ir_arg(o, 0), depth - 1);
	default: return 0;
	}
}

/* The scalar that all elements are; null: it is a constant, or none. */
static ir_value *scalar_of(const ir_value *v)
{
	return v->def && v->def->kind == IR_SPLAT ? ir_arg(v->def, 0) : NULL;
}

/* Of a product by one number: which operand the number is; 2: it is none. */
static unsigned find_factor(const ir_op *at, const ir_value *v, int *s)
{
	uint64_t bits;
	if (!v->def || v->def->kind != IR_MUL || !scalar_is_float(v->type.elem)) return 2;
	for (unsigned i = 0; i < 2; i++) {
		const ir_value *c = ir_arg(v->def, i);
		if ((scalar_of(c) || ir_is_const(c, &bits)) && (*s = sign(at, c, MOST_DEPTH))) return i;
	}
	return 2;
}

/* The factor in another shape. */
static ir_value *factor_like(ir_builder *b, const ir_value *factor, ir_type shape)
{
	uint64_t bits;
	ir_type t = ir_with_elem(shape, factor->type.elem);
	if (ir_is_const(factor, &bits)) return ir_constant(b, t, bits);
	return ir_splat(b, scalar_of(factor), t);
}

/* What an extremum is of elements in reverse order; custom: it is none. */
static ir_combine reversed(ir_combine how)
{
	switch (how) {
	case IR_MAXIMUM: return IR_MINIMUM;
	case IR_MINIMUM: return IR_MAXIMUM;
	case IR_MAXIMUM_NAN: return IR_MINIMUM_NAN;
	case IR_MINIMUM_NAN: return IR_MAXIMUM_NAN;
	default: return IR_CUSTOM;
	}
}

static void visit_reduce(pass_context *p, ir_op *o)
{
	int s;
	ir_combine how = ir_get_combine(o);
	if (o->nargs != 1 || reversed(how) == IR_CUSTOM) return;
	ir_value *v = ir_arg(o, 0);
	unsigned i = find_factor(o, v, &s);
	if (i == 2) return;
	ir_builder b = {.func = o->block->func, .block = o->block, .before = o, .at = o->at};
	ir_value *args[] = {ir_arg(v->def, 1 - i)};
	ir_op *r = ir_build(&b, IR_REDUCE, 1, args, 1, &o->results[0]->type, 0);
	ir_set_axis(r, ir_get_axis(o));
	ir_set_combine(r, s < 0 ? reversed(how) : how);
	ir_value *factor = factor_like(&b, ir_arg(v->def, i), o->results[0]->type);
	vec_push(p->arena, &p->liberties, ((pass_remark){o->at, LEAVES}));
	ir_replace(o->results[0], ir_binary(&b, IR_MUL, r->results[0], factor));
	ir_erase(o);
}

static void visit_select(ir_op *o)
{
	uint64_t bits;
	int s = 0;
	for (unsigned arm = 1; arm < 3; arm++) {
		const ir_value *v = ir_arg(o, arm), *other = ir_arg(o, 3 - arm);
		unsigned i = find_factor(o, v, &s);
		if (i == 2 || s < 0 || !ir_is_const(other, &bits)) continue;
		double d = scalar_to_double(other->type.elem, bits);
		if (d - d == 0 || d != d) continue; /* neither inf nor -inf */
		ir_builder b = {.func = o->block->func, .block = o->block, .before = o, .at = o->at};
		ir_value *args[3] = {ir_arg(o, 0), ir_arg(o, 1), ir_arg(o, 2)};
		args[arm] = ir_arg(v->def, 1 - i);
		ir_value *chosen = ir_build1(&b, IR_SELECT, o->results[0]->type, 3, args);
		ir_replace(o->results[0], ir_binary(&b, IR_MUL, chosen, ir_arg(v->def, i)));
		ir_erase(o);
		return;
	}
}

static void visit(ir_op *o, void *context)
{
	if (o->kind == IR_REDUCE)
		visit_reduce(context, o);
	else if (o->kind == IR_SELECT)
		visit_select(o);
}

bool pass_max_of_products(pass_context *p, ir_func *f)
{
	if (!f->strict) ir_walk(f->body, visit, p);
	return true;
}
