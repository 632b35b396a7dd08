/* Canonical form: what is known at compile time is computed, identities vanish, control flow that is decided is taken.
 *
 * In: the tile level.  Out: the same meaning, bit for bit where the language fixes bits: no float is reassociated,
 * x + 0.0 stays (x may be -0).  Constants stand at the right of commutative operations and comparisons; operations on
 * splats are operations on scalars, splat afterwards.
 *     %1 = splat %n : i32[64]                    %1 = add %n, %n : i32
 *     %2 = add %1, %1 : i32[64]          ->      %2 = splat %1 : i32[64]
 *     if true { A } else { B }           ->      A
 * The one idea: a rule looks at one operation and gives the value that replaces its result (or null).  One walk in
 * program order sees operands that are already simple; the walk is repeated, a few times at most, while loop-carried
 * values turn out to be constant.  Integer division by powers of two stays: axis analysis reads it, LLVM shifts it. */
#include "passes/passes.h"

#include <string.h>

#include "ir/fold.h"

enum { MOST_ITERATIONS = 4, MOST_DEPTH = 8 };

typedef struct canon {
	ir_func *func;
	bool changed;
	ir_builder build; /* in front of the operation at hand */
} canon;

/* ---- looking at values ---- */

static bool is_splat_of(const ir_value *v, ir_value **scalar_value)
{
	if (!v->def || v->def->kind != IR_SPLAT) return false;
	*scalar_value = ir_arg(v->def, 0);
	return true;
}

static bool is_kind(const ir_value *v, ir_kind kind)
{
	return v->def && v->def->kind == kind;
}

static bool is_bits(const ir_value *v, uint64_t wanted)
{
	uint64_t bits;
	return ir_is_const(v, &bits) && bits == wanted;
}

static bool is_integer_like(ir_type t) /* bool too */
{
	return !t.pointer && !scalar_is_float(t.elem);
}

static bool is_float(ir_type t)
{
	return !t.pointer && scalar_is_float(t.elem);
}

static uint64_t ones(ir_type t)
{
	return scalar_truncate(t.elem, UINT64_MAX);
}

static uint64_t float_bits(ir_type t, double v)
{
	return scalar_from_double(t.elem, v);
}

static ir_value *constant(canon *c, ir_type t, uint64_t bits)
{
	return ir_constant(&c->build, t, bits);
}

/* ---- elementwise ---- */

static ir_value *fold(canon *c, const ir_op *o)
{
	uint64_t args[3], bits;
	if (!ir_has(o, IR_ELEMENTWISE) || o->nargs == 0 || o->nargs > 3 || o->results[0]->type.pointer) return NULL;
	for (unsigned i = 0; i < o->nargs; i++)
		if (!ir_is_const(ir_arg(o, i), &args[i])) return NULL;
	scalar from = (scalar)ir_arg(o, o->nargs - 1u)->type.elem;
	if (!fold_scalar(o->kind, (scalar)o->results[0]->type.elem, from, args, &bits)) return NULL;
	return constant(c, o->results[0]->type, bits);
}

static ir_kind mirrored(ir_kind k)
{
	switch (k) {
	case IR_LT: return IR_GT;
	case IR_LE: return IR_GE;
	case IR_GT: return IR_LT;
	case IR_GE: return IR_LE;
	default: return k;
	}
}

static ir_kind inverted(ir_kind k)
{
	assert(ir_is_comparison(k));
	switch (k) {
	case IR_LT: return IR_GE;
	case IR_LE: return IR_GT;
	case IR_GT: return IR_LE;
	case IR_GE: return IR_LT;
	case IR_EQ: return IR_NE;
	default: return IR_EQ;
	}
}

/* Constants to the right.  Changes the operation in place. */
static void order_operands(canon *c, ir_op *o)
{
	uint64_t bits;
	if (o->nargs != 2 || !(ir_has(o, IR_COMMUTES) || ir_is_comparison(o->kind))) return;
	ir_value *a = ir_arg(o, 0), *b = ir_arg(o, 1);
	if (!ir_is_const(a, &bits) || ir_is_const(b, &bits)) return;
	ir_set_arg(o, 0, b);
	ir_set_arg(o, 1, a);
	o->kind = mirrored(o->kind);
	c->changed = true;
}

/* x / y * y + x % y is x; for y = 0 it is unspecified. */
static ir_value *put_together(ir_value *product, ir_value *rest)
{
	if (!is_kind(product, IR_MUL) || !is_kind(rest, IR_REM)) return NULL;
	ir_value *x = ir_arg(rest->def, 0), *y = ir_arg(rest->def, 1);
	for (unsigned i = 0; i < 2; i++) {
		ir_value *quotient = ir_arg(product->def, i);
		if (ir_arg(product->def, 1 - i) == y && is_kind(quotient, IR_DIV) && ir_arg(quotient->def, 0) == x &&
			ir_arg(quotient->def, 1) == y)
			return x;
	}
	return NULL;
}

static ir_value *simplify_integer(canon *c, const ir_op *o, ir_value *a, ir_value *b)
{
	ir_type t = a->type;
	assert(is_integer_like(t) && o->nargs == 2 && ir_type_equal(t, b->type));
	bool zero = is_bits(b, 0), one = is_bits(b, 1), full = is_bits(b, ones(t));
	ir_value *r;
	uint64_t count;
	switch (o->kind) {
	case IR_ADD:
		if (zero) return a;
		r = put_together(a, b);
		return r ? r : put_together(b, a);
	case IR_SUB: return a == b ? constant(c, t, 0) : zero ? a : NULL;
	case IR_MUL: return zero ? b : one ? a : NULL;
	case IR_DIV: return one ? a : NULL;
	case IR_REM: return one ? constant(c, t, 0) : NULL;
	case IR_MAX:
	case IR_MIN:
	case IR_MAX_NAN:
	case IR_MIN_NAN: return a == b ? a : NULL;
	case IR_AND: return a == b || full ? a : zero ? b : NULL;
	case IR_OR: return a == b || zero ? a : full ? b : NULL;
	case IR_XOR: return a == b ? constant(c, t, 0) : zero ? a : NULL;
	case IR_SHL:
	case IR_SHR:
		if (zero) return a;
		if (!ir_is_const(b, &count) || count < scalar_bits(t.elem)) return NULL;
		return o->kind == IR_SHL || !scalar_is_signed(t.elem) ? constant(c, t, 0) : NULL;
	default: return NULL;
	}
}

/* The reciprocal of a power of two, where both are normal numbers of the type: then x / v and x * (1 / v) are equal. */
static bool exact_reciprocal(ir_type t, uint64_t bits, uint64_t *out)
{
	assert(is_float(t));
	unsigned mantissa = scalar_table[t.elem].mantissa, exponent = scalar_table[t.elem].exponent;
	uint64_t e = bits >> mantissa & ((UINT64_C(1) << exponent) - 1);
	uint64_t bias = (UINT64_C(1) << (exponent - 1)) - 1;
	if ((bits & ((UINT64_C(1) << mantissa) - 1)) || e == 0 || e >= 2 * bias) return false;
	*out = (bits & UINT64_C(1) << (mantissa + exponent)) | (2 * bias - e) << mantissa;
	return true;
}

static ir_value *simplify_float(canon *c, const ir_op *o, ir_value *a, ir_value *b)
{
	ir_type t = a->type;
	assert(is_float(t) && o->nargs == 2 && ir_type_equal(t, b->type));
	uint64_t bits, reciprocal;
	if (!ir_is_const(b, &bits)) return NULL;
	bool one = bits == float_bits(t, 1.0);
	switch (o->kind) {
	case IR_ADD: return bits == float_bits(t, -0.0) ? a : NULL; /* x + 0.0 is +0 for -0 */
	case IR_SUB: return bits == float_bits(t, 0.0) ? a : NULL;
	case IR_MUL:
	case IR_DIV_RN: return one ? a : NULL;
	case IR_DIV:
		if (one) return a;
		if (!exact_reciprocal(t, bits, &reciprocal)) return NULL;
		return ir_binary(&c->build, IR_MUL, a, constant(c, t, reciprocal));
	case IR_POW:
		if (one) return a;
		return bits == float_bits(t, 2.0) ? ir_binary(&c->build, IR_MUL, a, a) : NULL;
	default: return NULL;
	}
}

/* Whether the value is a sum that goes on: a product, what a loop carries, or that element by element. */
static bool goes_on(const ir_value *v, unsigned depth)
{
	if (!v->def) return true;
	if (v->def->kind == IR_DOT) return true;
	if (!ir_has(v->def, IR_ELEMENTWISE) || depth == 0) return false;
	for (unsigned i = 0; i < v->def->nargs; i++) {
		const ir_value *x = ir_arg(v->def, i);
		if (ir_type_equal(x->type, v->type) && goes_on(x, depth - 1)) return true;
	}
	return false;
}

/* dot(a, b) + c: the products are added to c, where the dot would start from 0.  In a loop a c that each iteration
 * computes, as scores have that depend on the distance, is added behind the product: it is computed beside it then. */
static ir_value *accumulate(canon *c, const ir_op *o)
{
	assert(o->kind == IR_ADD);
	for (unsigned i = 0; i < 2; i++) {
		const ir_value *product = ir_arg(o, i);
		const ir_op *dot = product->def;
		const ir_op *loop = ir_loop_around(o);
		if (!is_kind(product, IR_DOT) || dot->nargs > 2 || dot->block != o->block || product->uses->next)
			continue;
		const ir_value *start = ir_arg(o, 1 - i);
		if (loop && !ir_defined_outside(start, loop) && !goes_on(start, MOST_DEPTH)) continue;
		ir_value *args[] = {ir_arg(dot, 0), ir_arg(dot, 1), ir_arg(o, 1 - i)};
		ir_value *sum = ir_build1(&c->build, IR_DOT, product->type, 3, args);
		memcpy(sum->def->attr, dot->attr, sizeof dot->attr);
		return sum;
	}
	return NULL;
}

/* From 0 is how a dot starts anyway. */
static void simplify_dot(canon *c, ir_op *o)
{
	uint64_t bits;
	if (o->nargs < 3 || !ir_is_const(ir_arg(o, 2), &bits) || bits) return;
	ir_remove_arg(o, 2);
	c->changed = true;
}

/* A comparison of an arange with a constant that lies on one side of all of it. */
static ir_value *compare_range(canon *c, const ir_op *o, const ir_value *range, int64_t n)
{
	while (is_kind(range, IR_EXPAND_DIMS) || is_kind(range, IR_BROADCAST) || is_kind(range, IR_RESHAPE) ||
		is_kind(range, IR_PERMUTE))
		range = ir_arg(range->def, 0);
	if (!is_kind(range, IR_ARANGE)) return NULL;
	int64_t lo = ir_get_lo(range->def), hi = lo + (int64_t)range->type.dim[0] - 1;
	assert(lo <= hi);
	bool always, never;
	switch (o->kind) {
	case IR_LT: always = hi < n, never = lo >= n; break;
	case IR_LE: always = hi <= n, never = lo > n; break;
	case IR_GT: always = lo > n, never = hi <= n; break;
	case IR_GE: always = lo >= n, never = hi < n; break;
	default: return NULL;
	}
	return always || never ? constant(c, o->results[0]->type, always) : NULL;
}

static ir_value *simplify_comparison(canon *c, const ir_op *o)
{
	assert(ir_is_comparison(o->kind));
	const ir_value *a = ir_arg(o, 0), *b = ir_arg(o, 1);
	int64_t n;
	if (a == b && !is_float(a->type))
		return constant(c, o->results[0]->type, o->kind == IR_EQ || o->kind == IR_LE || o->kind == IR_GE);
	return ir_is_const_int(b, &n) ? compare_range(c, o, a, n) : NULL;
}

static ir_value *simplify_not(canon *c, const ir_op *o)
{
	const ir_value *a = ir_arg(o, 0);
	if (is_kind(a, IR_NOT)) return ir_arg(a->def, 0);
	if (!a->def || !ir_is_comparison(a->def->kind)) return NULL;
	ir_kind k = a->def->kind;
	ir_value *x = ir_arg(a->def, 0), *y = ir_arg(a->def, 1);
	if (is_float(x->type) && k != IR_EQ && k != IR_NE) return NULL; /* nan: not less is not greater or equal */
	return ir_binary(&c->build, inverted(k), x, y);
}

static ir_value *simplify_select(canon *c, ir_op *o)
{
	ir_value *condition = ir_arg(o, 0), *a = ir_arg(o, 1), *b = ir_arg(o, 2);
	uint64_t bits;
	if (a == b) return a;
	if (ir_is_const(condition, &bits)) return bits ? a : b;
	if (a->type.elem == SCALAR_BOOL && !a->type.pointer && is_bits(a, 1) && is_bits(b, 0)) return condition;
	if (!is_kind(condition, IR_NOT)) return NULL;
	ir_set_arg(o, 0, ir_arg(condition->def, 0));
	ir_set_arg(o, 1, b);
	ir_set_arg(o, 2, a);
	c->changed = true;
	return NULL;
}

/* Every value of `from` is a value of `to`. */
static bool holds_all(scalar to, scalar from)
{
	const scalar_info *t = &scalar_table[to], *f = &scalar_table[from];
	if (from == to || from == SCALAR_BOOL) return true;
	if (to == SCALAR_BOOL || (f->is_float && !t->is_float)) return false;
	if (f->is_float) return t->mantissa >= f->mantissa && t->exponent >= f->exponent && !scalar_is_fp8(to);
	if (t->is_float) return scalar_bits(from) <= t->mantissa + 1u && to != SCALAR_F16 && !scalar_is_fp8(to);
	if (f->is_signed && !t->is_signed) return false;
	return t->bytes > f->bytes || (t->bytes == f->bytes && t->is_signed == f->is_signed);
}

/* Does the way through `middle` end in a value that the direct way does not give?  A float becomes the nearest integer
 * that there is, where an integer wraps; an infinity becomes the largest f8e5m2, whose own infinity stays. */
static bool saturates(scalar first, scalar middle, scalar last)
{
	if (!scalar_is_float(middle)) return false;
	return (scalar_is_integer(first) && scalar_is_integer(last) && !holds_all(last, first)) ||
	       (first == SCALAR_F8E5M2 && last == SCALAR_F8E5M2);
}

static ir_value *simplify_convert(canon *c, const ir_op *o)
{
	ir_value *a = ir_arg(o, 0);
	ir_type t = o->results[0]->type;
	if (ir_type_equal(a->type, t)) return a;
	if (!is_kind(a, IR_CONVERT)) return NULL;
	ir_value *x = ir_arg(a->def, 0);
	scalar first = (scalar)x->type.elem, middle = (scalar)a->type.elem, last = (scalar)t.elem;
	bool truncates = scalar_is_integer(first) && scalar_is_integer(middle) && scalar_is_integer(last) &&
			 scalar_bits(last) <= scalar_bits(middle);
	if (!holds_all(middle, first) && !truncates) return NULL;
	if (saturates(first, middle, last)) return NULL;
	return ir_type_equal(x->type, t) ? x : ir_build1(&c->build, IR_CONVERT, t, 1, &x);
}

static ir_value *simplify_bitcast(canon *c, const ir_op *o)
{
	ir_value *a = ir_arg(o, 0);
	ir_type t = o->results[0]->type;
	if (ir_type_equal(a->type, t)) return a;
	if (!is_kind(a, IR_BITCAST)) return NULL;
	ir_value *x = ir_arg(a->def, 0);
	return ir_type_equal(x->type, t) ? x : ir_build1(&c->build, IR_BITCAST, t, 1, &x);
}

/* An elementwise operation whose operands are splats (or constants, one at least a splat) is done once. */
static ir_value *through_splats(canon *c, const ir_op *o)
{
	ir_type t = o->results[0]->type;
	assert(ir_has(o, IR_ELEMENTWISE) && o->nresults == 1);
	ir_value *args[3];
	bool any = false;
	uint64_t bits;
	if (o->nargs > 3) return NULL;
	for (unsigned i = 0; i < o->nargs; i++) {
		args[i] = NULL;
		if (is_splat_of(ir_arg(o, i), &args[i]))
			any = true;
		else if (!ir_is_const(ir_arg(o, i), &bits))
			return NULL;
	}
	if (!any) return NULL;
	for (unsigned i = 0; i < o->nargs; i++)
		if (!args[i] && ir_is_const(ir_arg(o, i), &bits))
			args[i] = constant(c, ir_element(ir_arg(o, i)->type), bits);
	ir_op *once = ir_build(&c->build, o->kind, o->nargs, args, 1, (ir_type[]){ir_element(t)}, 0);
	memcpy(once->attr, o->attr, sizeof once->attr);
	return ir_splat(&c->build, once->results[0], t);
}

static ir_value *simplify_elementwise(canon *c, ir_op *o)
{
	ir_value *r = fold(c, o);
	if (r) return r;
	order_operands(c, o);
	if (o->kind == IR_ADD && (r = accumulate(c, o))) return r;
	ir_value *a = ir_arg(o, 0), *b = o->nargs > 1 ? ir_arg(o, 1) : NULL;
	if (o->kind == IR_SELECT)
		r = simplify_select(c, o);
	else if (ir_is_comparison(o->kind))
		r = simplify_comparison(c, o);
	else if (o->kind == IR_NOT)
		r = simplify_not(c, o);
	else if (o->kind == IR_NEG && is_kind(a, IR_NEG))
		r = ir_arg(a->def, 0);
	else if (o->kind == IR_CONVERT)
		r = simplify_convert(c, o);
	else if (o->kind == IR_BITCAST)
		r = simplify_bitcast(c, o);
	else if (o->kind == IR_PTR_ADD)
		r = is_bits(b, 0) ? a : NULL;
	else if (o->nargs == 2)
		r = is_float(a->type)          ? simplify_float(c, o, a, b)
		    : is_integer_like(a->type) ? simplify_integer(c, o, a, b)
					       : NULL;
	return r ? r : through_splats(c, o);
}

/* ---- shapes ---- */

static ir_value *simplify_permute(canon *c, const ir_op *o)
{
	ir_value *a = ir_arg(o, 0);
	unsigned rank = o->results[0]->type.rank;
	bool identity = true;
	for (unsigned i = 0; i < rank; i++) identity &= ir_unpack(ir_get_order(o), i) == i;
	if (identity) return a;
	if (!is_kind(a, IR_PERMUTE)) return NULL;
	assert(a->type.rank == rank);
	uint16_t order[IR_MAX_RANK] = {0};
	for (unsigned i = 0; i < rank; i++)
		order[i] = (uint16_t)ir_unpack(ir_get_order(a->def), ir_unpack(ir_get_order(o), i));
	ir_value *x = ir_arg(a->def, 0), *r = ir_build1(&c->build, IR_PERMUTE, o->results[0]->type, 1, &x);
	ir_set_order(r->def, ir_pack(rank, order));
	return r;
}

static ir_value *simplify_shape(canon *c, const ir_op *o)
{
	ir_value *a = ir_arg(o, 0), *x;
	ir_type t = o->results[0]->type;
	uint64_t bits;
	if (o->nargs != 1 || o->nresults != 1) return NULL;
	if (ir_is_const(a, &bits)) return constant(c, t, bits);
	if (o->kind == IR_SPLAT) return NULL;
	if (is_splat_of(a, &x)) return ir_splat(&c->build, x, t);
	if (o->kind == IR_PERMUTE) return simplify_permute(c, o);
	if (ir_type_equal(a->type, t)) return a;
	if ((o->kind == IR_BROADCAST || o->kind == IR_RESHAPE) && is_kind(a, o->kind)) {
		x = ir_arg(a->def, 0);
		return ir_type_equal(x->type, t) ? x : ir_build1(&c->build, o->kind, t, 1, &x);
	}
	return NULL;
}

/* Both halves of one tile, put together again. */
static ir_value *simplify_join(const ir_op *o)
{
	const ir_value *a = ir_arg(o, 0), *b = ir_arg(o, 1);
	bool whole = is_kind(a, IR_SPLIT) && a->def == b->def && a->index == 0 && b->index == 1;
	return whole ? ir_arg(a->def, 0) : NULL;
}

static bool simplify_split(canon *c, ir_op *o)
{
	const ir_value *a = ir_arg(o, 0);
	uint64_t bits;
	ir_value *half[2];
	if (is_kind(a, IR_JOIN))
		half[0] = ir_arg(a->def, 0), half[1] = ir_arg(a->def, 1);
	else if (ir_is_const(a, &bits))
		half[0] = half[1] = constant(c, o->results[0]->type, bits);
	else
		return false;
	for (unsigned i = 0; i < 2; i++) ir_replace(o->results[i], half[i]);
	c->changed = true;
	ir_erase(o);
	return true;
}

/* From an extent of 1 every index takes the same element; all elements may be equal anyway. */
static ir_value *simplify_gather(canon *c, const ir_op *o)
{
	ir_value *a = ir_arg(o, 0), *x;
	ir_type t = o->results[0]->type;
	uint64_t bits;
	assert(ir_get_axis(o) < a->type.rank);
	if (ir_is_const(a, &bits)) return constant(c, t, bits);
	if (is_splat_of(a, &x)) return ir_splat(&c->build, x, t);
	if (a->type.dim[ir_get_axis(o)] != 1) return NULL;
	return ir_same_shape(a->type, t) ? a : ir_build1(&c->build, IR_BROADCAST, t, 1, &a);
}

/* A reduction over one element, or one of equal elements where that changes nothing. */
static ir_value *simplify_reduce(canon *c, const ir_op *o)
{
	if (o->nargs != 1) return NULL;
	ir_value *a = ir_arg(o, 0), *x = a;
	ir_type t = o->results[0]->type;
	uint64_t bits;
	assert(ir_get_axis(o) < a->type.rank);
	if (a->type.dim[ir_get_axis(o)] == 1) return ir_build1(&c->build, IR_RESHAPE, t, 1, &x);
	if (!ir_repeats(ir_get_combine(o))) return NULL;
	if (ir_is_const(a, &bits)) return constant(c, t, bits);
	return is_splat_of(a, &x) ? ir_splat(&c->build, x, t) : NULL;
}

/* ---- memory and what has an effect: changed in place, or erased (true) ---- */

/* Masks that are true vanish, with `other`. */
static bool simplify_store(canon *c, ir_op *o)
{
	uint64_t bits;
	if (o->nargs < 3 || !ir_is_const(ir_arg(o, 2), &bits)) return false;
	c->changed = true;
	if (bits) {
		ir_remove_arg(o, 2);
		return false;
	}
	ir_erase(o);
	return true;
}

static ir_value *simplify_load(canon *c, ir_op *o)
{
	uint64_t bits;
	assert(o->nargs <= 3);
	if (o->nargs < 2 || !ir_is_const(ir_arg(o, 1), &bits)) return NULL;
	if (bits) {
		while (o->nargs > 1) ir_remove_arg(o, o->nargs - 1u);
		c->changed = true;
		return NULL;
	}
	return o->nargs == 3 ? ir_arg(o, 2) : constant(c, o->results[0]->type, 0);
}

static bool simplify_check(canon *c, ir_op *o)
{
	if (!is_bits(ir_arg(o, 0), 1)) return false;
	c->changed = true;
	ir_erase(o);
	return true;
}

/* ---- control flow; true: the operation is gone ---- */

/* The operations of a region, its terminator apart, move in front of `o`. */
static void inline_region(ir_op *o, ir_block *region)
{
	assert(region->parent == o && region->last && ir_has(region->last, IR_TERMINATOR));
	for (ir_op *p = region->first, *next; p != region->last; p = next) {
		next = p->next;
		ir_move_before(p, o->block, o);
	}
}

static bool finish_inline(canon *c, ir_op *o)
{
	c->changed = true;
	ir_erase(o);
	return true;
}

static bool simplify_if(canon *c, ir_op *o)
{
	uint64_t bits;
	if (ir_is_const(ir_arg(o, 0), &bits)) {
		ir_block *taken = o->regions[bits ? 0 : 1];
		inline_region(o, taken);
		for (unsigned i = 0; i < o->nresults; i++) ir_replace(o->results[i], ir_arg(taken->last, i));
		return finish_inline(c, o);
	}
	for (unsigned i = 0; i < o->nresults; i++) {
		assert(o->regions[0]->last->nargs == o->nresults && o->regions[1]->last->nargs == o->nresults);
		ir_value *a = ir_arg(o->regions[0]->last, i);
		if (!o->results[i]->uses || a != ir_arg(o->regions[1]->last, i)) continue;
		ir_replace(o->results[i], a); /* both arms yield it: it comes from outside */
		c->changed = true;
	}
	return false;
}

/* 0, 1, or 2 for "more, or not known". */
static unsigned trip_count(const ir_op *o)
{
	int64_t lo, hi, step;
	bool known = ir_is_const_int(ir_arg(o, 2), &step);
	if ((known && step == 0) || ir_arg(o, 0) == ir_arg(o, 1)) return 0;
	if (!known || !ir_is_const_int(ir_arg(o, 0), &lo) || !ir_is_const_int(ir_arg(o, 1), &hi)) return 2;
	assert(step != 0);
	bool is_signed = scalar_is_signed((scalar)ir_arg(o, 0)->type.elem);
	bool up = !is_signed || step > 0;
	bool runs = is_signed ? (up ? lo < hi : lo > hi) : (uint64_t)lo < (uint64_t)hi;
	if (!runs) return 0;
	uint64_t distance = up ? (uint64_t)hi - (uint64_t)lo : (uint64_t)lo - (uint64_t)hi;
	return distance <= (up ? (uint64_t)step : 0 - (uint64_t)step) ? 1 : 2;
}

static bool simplify_for(canon *c, ir_op *o)
{
	ir_block *body = o->regions[0];
	unsigned trips = trip_count(o);
	assert(body->nargs == o->nresults + 1u && o->nargs == o->nresults + 3u);
	if (trips == 0) {
		for (unsigned i = 0; i < o->nresults; i++) ir_replace(o->results[i], ir_arg(o, i + 3));
		return finish_inline(c, o);
	}
	if (trips == 1) {
		for (uint32_t i = 0; i < body->nargs; i++) ir_replace(body->args[i], ir_arg(o, i ? i + 2 : 0));
		inline_region(o, body);
		for (unsigned i = 0; i < o->nresults; i++) ir_replace(o->results[i], ir_arg(body->last, i));
		return finish_inline(c, o);
	}
	for (unsigned i = 0; i < o->nresults; i++) { /* carried, but never changed */
		ir_value *carried = body->args[i + 1], *first = ir_arg(o, i + 3), *next = ir_arg(body->last, i);
		if (next != carried && next != first) continue;
		if (!o->results[i]->uses &&
			(!carried->uses || (carried->uses == body->last->args[i] && !carried->uses->next)))
			continue;
		ir_replace(o->results[i], first);
		ir_replace(carried, first);
		c->changed = true;
	}
	return false;
}

static bool simplify_while(canon *c, ir_op *o)
{
	ir_block *before = o->regions[0];
	if (!is_bits(ir_arg(before->last, 0), 0)) return false;
	assert(before->nargs == o->nargs && before->last->nargs == o->nresults + 1u);
	for (uint32_t i = 0; i < before->nargs; i++) ir_replace(before->args[i], ir_arg(o, i));
	inline_region(o, before);
	for (unsigned i = 0; i < o->nresults; i++) ir_replace(o->results[i], ir_arg(before->last, i + 1));
	return finish_inline(c, o);
}

/* ---- the walk ---- */

/* The value that replaces the operation's only result, or null. */
static ir_value *simplify_value(canon *c, ir_op *o)
{
	uint64_t bits;
	switch (o->kind) {
	case IR_REDUCE: return simplify_reduce(c, o);
	case IR_JOIN: return simplify_join(o);
	case IR_GATHER: return simplify_gather(c, o);
	case IR_LOAD: return simplify_load(c, o);
	case IR_HINT: return ir_is_const(ir_arg(o, 0), &bits) ? ir_arg(o, 0) : NULL;
	default: break;
	}
	if (ir_has(o, IR_ELEMENTWISE)) return simplify_elementwise(c, o);
	return ir_has(o, IR_SHAPE) ? simplify_shape(c, o) : NULL;
}

/* True where the operation is gone. */
static bool simplify(canon *c, ir_op *o)
{
	c->build = (ir_builder){.func = c->func, .block = o->block, .before = o, .at = o->at};
	switch (o->kind) {
	case IR_IF: return simplify_if(c, o);
	case IR_FOR: return simplify_for(c, o);
	case IR_WHILE: return simplify_while(c, o);
	case IR_SPLIT: return simplify_split(c, o);
	case IR_STORE: return simplify_store(c, o);
	case IR_DOT: simplify_dot(c, o); return false;
	case IR_ASSERT:
	case IR_ASSUME: return simplify_check(c, o);
	default: break;
	}
	if (o->nresults != 1) return false;
	ir_value *r = simplify_value(c, o);
	if (!r) return false;
	assert(r != o->results[0]);
	ir_replace(o->results[0], r);
	c->changed = true;
	ir_erase(o);
	return true;
}

static void walk(canon *c, ir_block *b)
{
	for (ir_op *o = b->first; o;) {
		ir_op *previous = o->prev;
		assert(!previous || previous->block == b);
		if (simplify(c, o)) { /* what it left behind stands after `previous`: it may be simple in turn */
			o = previous ? previous->next : b->first;
			continue;
		}
		for (unsigned r = 0; r < o->nregions; r++) walk(c, o->regions[r]);
		o = o->next;
	}
}

bool pass_canonicalise(pass_context *p, ir_func *f)
{
	(void)p;
	if (f->level != IR_LEVEL_TILE) return true;
	canon c = {.func = f, .changed = true};
	for (unsigned iteration = 0; c.changed && iteration < MOST_ITERATIONS; iteration++) {
		c.changed = false;
		walk(&c, f->body);
	}
	return true;
}
