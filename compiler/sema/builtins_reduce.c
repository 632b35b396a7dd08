/* Reductions, scans, and what orders or looks up elements along an axis.
 *
 * Without an axis a reduction first lays its tile out in one dimension; where extents are no powers of two, which do
 * not lie in one another's lines, it reduces the last dimension as often as there are dimensions.  bool and narrow
 * integers sum in 32 bits; f16 and bf16 sum in f32 and come back.  argmax and argmin become a reduction of (key, index)
 * pairs: the key is an integer that orders as the language orders the value, nan below everything (above, for argmin,
 * and the other way round where it propagates), so that the combining function is two integer comparisons.  A user's
 * function is inlined into the region of the operation. */
#include "builtins_util.h"

enum { MAX_REDUCED = 16 }; /* tiles that one reduce or scan takes */

/* No axis is given, and dimension after dimension goes. */
static bool by_dimensions(sval axis, ir_type t)
{
	return sval_is_none(axis) && t.rank > 1 && ir_is_cut(t);
}

/* The axis and the tile on which to reduce: all elements in one row when no axis is given. */
static bool along(sema *s, const builtin_call *c, unsigned axis_arg, ir_value **x, unsigned *axis)
{
	*axis = 0;
	if (!sval_is_none(c->args[axis_arg])) return sema_as_axis(s, c->args[axis_arg], (*x)->type.rank, axis, "axis");
	if (by_dimensions(c->args[axis_arg], (*x)->type)) {
		*axis = (*x)->type.rank - 1u;
		return true;
	}
	uint32_t n = (uint32_t)ir_elements((*x)->type);
	*x = builtin_reshape(s, *x, ir_tile_type(SCALAR_BOOL, 1, &n));
	return true;
}

/* Puts extents of 1 back: at the axis, or everywhere when all elements were reduced. */
static ir_value *keep(sema *s, ir_value *v, unsigned rank, unsigned axis, bool all)
{
	if (!all) return builtin_expand(s, v, axis);
	ir_type t = ir_element(v->type);
	for (unsigned i = 0; i < rank; i++) t = builtin_with_axis(t, 0, 1);
	return ir_splat(&s->b, v, t);
}

static ir_op *reduce_op(sema *s, unsigned n, ir_value *const *x, unsigned axis, ir_combine combine)
{
	ir_type results[MAX_REDUCED];
	for (unsigned i = 0; i < n; i++) results[i] = builtin_without_axis(x[i]->type, axis);
	ir_op *o = ir_build(&s->b, IR_REDUCE, n, x, n, results, combine == IR_CUSTOM);
	ir_set_axis(o, axis);
	ir_set_combine(o, combine);
	return o;
}

/* What sums and products of the type are computed in; false for bool sums' own type being narrower. */
static scalar accumulator(scalar t)
{
	switch (t) {
	case SCALAR_BOOL:
	case SCALAR_I8:
	case SCALAR_I16: return SCALAR_I32;
	case SCALAR_U8:
	case SCALAR_U16: return SCALAR_U32;
	case SCALAR_F16:
	case SCALAR_BF16: return SCALAR_F32;
	default: return t;
	}
}

/* Whether the combining function exists for the elements; reports. */
static bool combines(sema *s, const builtin_call *c, ir_combine combine, scalar t)
{
	const char *what = NULL, *hint = NULL;
	ir_combinable types = ir_combinable_types(combine);
	if (types == IR_COMBINABLE_bits && scalar_is_float(t))
		what = "a tile of integers or bool", hint = "x.to(u32, bitcast = true) has the bits";
	else if (types == IR_COMBINABLE_truth && t != SCALAR_BOOL)
		what = "a tile of bool", hint = "compare first: x != 0";
	else if (scalar_is_fp8(t))
		what = "another type than fp8, which has no arithmetic", hint = "cast first: x.to(f16)";
	if (!what) return true;
	diag *d = builtin_needs(s, c, 0, what);
	diag_set_hint(s->diags, d, "%s", hint);
	return false;
}

/* Along an axis by a built-in combination. */
static sval reduction(sema *s, const builtin_call *c, ir_combine combine)
{
	ir_value *x = builtin_tile(s, c, 0);
	bool keep_dims = false;
	unsigned axis;
	if (!x || !combines(s, c, combine, (scalar)x->type.elem)) return sval_poison(c->at);
	scalar own = (scalar)x->type.elem;
	unsigned rank = x->type.rank;
	if (combine == IR_SUM) x = sema_convert(s, x, accumulator(own));
	if (!along(s, c, 1, &x, &axis) || !builtin_flag(s, c, 2, "keep_dims", &keep_dims)) return sval_poison(c->at);
	ir_value *v = ir_result(reduce_op(s, 1, &x, axis, combine));
	while (sval_is_none(c->args[1]) && v->type.rank) v = ir_result(reduce_op(s, 1, &v, v->type.rank - 1u, combine));
	if (combine == IR_SUM && scalar_is_float(own)) v = sema_convert(s, v, own);
	return sval_value(keep_dims ? keep(s, v, rank, axis, sval_is_none(c->args[1])) : v, c->at);
}

static sval builtin_reduction(sema *s, const builtin_call *c)
{
	return reduction(s, c, (ir_combine)c->builtin->which);
}

static bool is_axis(sval v, unsigned rank)
{
	return sval_is_int(v) && v.number.i >= -(sema_int)rank && v.number.i < (sema_int)rank;
}

/* max(v, 1.0), max(1.0, v), max(v, 5): what is meant is elementwise. */
static void report_axis(sema *s, const builtin_call *c, bool max, ir_type a, ir_type b)
{
	const char *x = sema_source_text(s, c->arg_at[0]), *y = sema_source_text(s, c->arg_at[1]), *axes = "";
	diag *d;
	if (!a.rank)
		d = sema_diag(s, 509, c->at, "'%s' of %s and %s", c->builtin->name, sema_type_text(s, c->args[0]),
			ir_type_name(s->arena, b));
	else if (sval_is_int(c->args[1]))
		d = sema_diag(s, 210, c->arg_at[1], "axis %lld is out of range for %u dimension%s",
			(long long)c->args[1].number.i, a.rank, a.rank == 1 ? "" : "s");
	else
		d = sema_diag(s, 509, c->arg_at[1], "the second argument of '%s' of a tile is an axis, not %s",
			c->builtin->name, sema_type_text(s, c->args[1]));
	if (a.rank == 1) axes = "the one axis is 0; ";
	if (a.rank > 1) axes = arena_printf(s->arena, "the axes are 0 to %u; ", a.rank - 1u);
	diag_set_hint(s->diags, d, "%s%s(%s, %s) compares element by element", axes, max ? "maximum" : "minimum", x, y);
}

/* max(x, axis), and max(a, b) of two scalars. */
static sval builtin_max(sema *s, const builtin_call *c)
{
	ir_type a, b;
	bool first = sval_type_of(c->args[0], &a), second = sval_type_of(c->args[1], &b);
	bool max = c->builtin->which == IR_MAXIMUM, nan_wins = false;
	if (!builtin_flag(s, c, 3, "propagate_nan", &nan_wins)) return sval_poison(c->at);
	if (first && second && a.rank == 0 && b.rank == 0 && !a.pointer && !b.pointer && sval_is_none(c->args[2]))
		return builtin_extremum(s, c, builtin_extremum_kind(max, nan_wins), c->args[0], c->args[1]);
	if (first && second && !a.pointer && (a.rank || b.rank) && !is_axis(c->args[1], a.rank)) {
		report_axis(s, c, max, a, b);
		return sval_poison(c->at);
	}
	if (!nan_wins || !first || !scalar_is_float((scalar)a.elem)) return builtin_reduction(s, c);
	return reduction(s, c, max ? IR_MAXIMUM_NAN : IR_MINIMUM_NAN);
}

/* ---- argmax, argmin ---- */

/* Integers that order as the values do, nan last in the direction that is looked for, or first. */
static ir_value *order_keys(sema *s, ir_value *x, bool max, bool nan_wins)
{
	scalar t = (scalar)x->type.elem;
	if (!scalar_is_float(t)) return sema_convert(s, x, accumulator(t));
	x = builtin_widen(s, x);
	scalar bits_type = x->type.elem == SCALAR_F64 ? SCALAR_I64 : SCALAR_I32;
	ir_type keys = ir_with_elem(x->type, bits_type);
	uint64_t lowest = (uint64_t)1 << (scalar_bits(bits_type) - 1), highest = lowest - 1;
	/* A negative float's bits count downwards: turn all but the sign over. */
	ir_value *bits = ir_build1(&s->b, IR_BITCAST, keys, 1, &x);
	ir_value *sign = ir_binary(&s->b, IR_SHR, bits, ir_constant(&s->b, keys, scalar_bits(bits_type) - 1));
	ir_value *turn = ir_binary(&s->b, IR_AND, sign, ir_constant(&s->b, keys, highest));
	ir_value *select[] = {ir_binary(&s->b, IR_NE, x, x),
		ir_constant(&s->b, keys, max != nan_wins ? lowest : highest), ir_binary(&s->b, IR_XOR, bits, turn)};
	return ir_build1(&s->b, IR_SELECT, keys, 3, select);
}

/* Index along the axis, of the tile's shape. */
static ir_value *index_tile(sema *s, ir_type shape, unsigned axis)
{
	ir_type t = ir_tile_type(SCALAR_I32, 1, &shape.dim[axis]);
	ir_value *v = ir_result(ir_build(&s->b, IR_ARANGE, 0, NULL, 1, &t, 0));
	for (unsigned i = 0; i < shape.rank; i++)
		if (i != axis) v = builtin_expand(s, v, i);
	t = ir_with_elem(shape, SCALAR_I32);
	return ir_same_shape(v->type, t) ? v : ir_build1(&s->b, IR_BROADCAST, t, 1, &v);
}

/* Index among all elements, row-major. */
static ir_value *number_tile(sema *s, ir_type shape)
{
	ir_value *all = NULL;
	uint32_t stride = 1;
	for (unsigned d = shape.rank; d-- > 0;) {
		ir_value *i = index_tile(s, shape, d);
		if (stride > 1) i = ir_binary(&s->b, IR_MUL, i, ir_constant(&s->b, i->type, stride));
		all = all ? ir_binary(&s->b, IR_ADD, all, i) : i;
		stride *= shape.dim[d];
	}
	return all;
}

/* The better key with its index; of equal ones the lower index. */
static ir_op *pick(sema *s, ir_value *const *args, unsigned axis, bool max)
{
	ir_op *o = reduce_op(s, 2, args, axis, IR_CUSTOM);
	ir_builder outer = s->b;
	s->b = (ir_builder){.func = s->func, .block = o->regions[0], .at = outer.at};
	ir_type key = ir_element(args[0]->type), number = ir_scalar_type(SCALAR_I32);
	ir_value *ak = ir_block_arg(o->regions[0], key, "a"), *ai = ir_block_arg(o->regions[0], number, "i");
	ir_value *bk = ir_block_arg(o->regions[0], key, "b"), *bi = ir_block_arg(o->regions[0], number, "j");
	ir_value *better = ir_binary(&s->b, max ? IR_GT : IR_LT, bk, ak);
	ir_value *tie = ir_binary(&s->b, IR_AND, ir_binary(&s->b, IR_EQ, bk, ak), ir_binary(&s->b, IR_LT, bi, ai));
	ir_value *take = ir_binary(&s->b, IR_OR, better, tie);
	ir_value *keys[] = {take, bk, ak}, *indices[] = {take, bi, ai};
	ir_value *picked[] = {
		ir_build1(&s->b, IR_SELECT, key, 3, keys), ir_build1(&s->b, IR_SELECT, number, 3, indices)};
	ir_yield(&s->b, 2, picked);
	s->b = outer;
	return o;
}

static sval builtin_arg(sema *s, const builtin_call *c)
{
	bool max = c->builtin->which == IR_MAXIMUM, keep_dims = false, nan_wins = false;
	ir_value *x = builtin_tile(s, c, 0);
	unsigned axis;
	if (!x || !combines(s, c, IR_MAXIMUM, (scalar)x->type.elem)) return sval_poison(c->at);
	unsigned rank = x->type.rank;
	if (!along(s, c, 1, &x, &axis) || !builtin_flag(s, c, 2, "keep_dims", &keep_dims) ||
		!builtin_flag(s, c, 3, "propagate_nan", &nan_wins))
		return sval_poison(c->at);
	bool by = by_dimensions(c->args[1], x->type);
	ir_value *args[] = {
		order_keys(s, x, max, nan_wins), by ? number_tile(s, x->type) : index_tile(s, x->type, axis)};
	ir_op *o = pick(s, args, axis, max);
	while (by && o->results[0]->type.rank) o = pick(s, o->results, o->results[0]->type.rank - 1u, max);
	ir_value *v = o->results[1];
	return sval_value(keep_dims ? keep(s, v, rank, axis, sval_is_none(c->args[1])) : v, c->at);
}

/* ---- a user's combining function ---- */

/* The tiles of the first argument: one, or a tuple of several with one shape. */
static bool tiles(sema *s, const builtin_call *c, ir_value **x, unsigned *n)
{
	sval list = c->args[0];
	const sval *items;
	uint32_t count;
	sema_items(&list, &items, &count);
	if (count == 0 || count > MAX_REDUCED) {
		sema_error(
			s, 509, c->arg_at[0], "'%s' takes 1 to %d tiles, not %u", c->builtin->name, MAX_REDUCED, count);
		return false;
	}
	for (uint32_t i = 0; i < count; i++) {
		ir_type t;
		if (!sval_type_of(items[i], &t) || t.rank == 0 || t.pointer) {
			sema_error(s, 501, items[i].at, "'%s' needs a tile of numbers, not %s", c->builtin->name,
				sema_type_text(s, items[i]));
			return false;
		}
		x[i] = items[i].value;
		if (i && !ir_same_shape(x[i]->type, x[0]->type)) {
			sema_error(s, 509, items[i].at,
				"the tiles of one '%s' have one shape: this one is %s, the first is %s",
				c->builtin->name, sema_type_text(s, items[i]), sema_type_text(s, items[0]));
			return false;
		}
	}
	*n = count;
	return true;
}

typedef struct region_check {
	const char *problem;
} region_check;

static void check_region_op(ir_op *o, void *context)
{
	region_check *r = context;
	if (o->kind == IR_ASSUME) { /* a promise may be forgotten; an effect may not stand there */
		ir_erase(o);
		return;
	}
	if (ir_touches(o, IR_READS | IR_EFFECTS)) r->problem = "accesses memory or has another effect";
	for (unsigned i = 0; i < o->nresults; i++)
		if (o->results[i]->type.rank) r->problem = "makes tiles of its own";
}

static const char *const letters[] = {"a", "b"};

/* "f(a, b)", "f(a1, a2, b1, b2)": how f is called with `n` tiles. */
static const char *call_text(sema *s, const char *name, unsigned n)
{
	text out = {.arena = s->arena};
	text_printf(&out, "%s(", name);
	for (unsigned i = 0; i < 2 * n; i++) {
		if (n > 3 && i == n) text_puts(&out, ", ..");
		if (n > 3 && (i % n) > 1) continue;
		text_printf(&out, n > 1 ? "%s%s%u" : "%s%s", i ? ", " : "", letters[i / n], i % n + 1);
	}
	text_puts(&out, n > 3 ? ", ..)" : ")");
	return out.at;
}

/* Can f be called with two values of each of the n tiles? */
static bool takes(sema *s, const builtin_call *c, sval f, unsigned n)
{
	sema_arity a = sema_arity_of(s, f);
	if (2 * n >= a.least && 2 * n <= a.most) return true;
	unsigned count = 2 * n < a.least ? a.least : a.most;
	diag *d = sema_diag(s, 509, f.at, "'%s' takes %u argument%s; '%s' of %u tile%s calls it with %u", a.name, count,
		count == 1 ? "" : "s", c->builtin->name, n, n == 1 ? "" : "s", 2 * n);
	if (a.at.file) diag_add_label(s->diags, d, a.at, "declared here");
	diag_set_hint(s->diags, d, "it is called as %s, a before b, and returns %u value%s", call_text(s, a.name, n), n,
		n == 1 ? "" : "s");
	return false;
}

/* What f returns is what it is called with the next time. */
static bool combines_in_its_type(sema *s, const builtin_call *c, sval f, sval result, ir_type t)
{
	ir_type got;
	if (!sval_type_of(result, &got) || got.pointer || got.rank || result.kind == SVAL_NUMBER) return true;
	if (got.elem == t.elem) return true;
	diag *d = sema_diag(s, 509, f.at, "the function of this '%s' combines %s into %s", c->builtin->name,
		scalar_name((scalar)t.elem), scalar_name((scalar)got.elem));
	if (got.elem == SCALAR_BOOL)
		diag_set_hint(s->diags, d,
			"it returns a value of the elements' type, where(a < b, a, b) say; any(c) and all(c) combine "
			"comparisons");
	else
		diag_set_hint(s->diags, d,
			"it returns a value of the elements' type: cast the tile, .to(%s), or its result",
			scalar_name((scalar)got.elem));
	return false;
}

/* Inlines f(a1..an, b1..bn) into the operation's region. */
static bool combine_region(sema *s, const builtin_call *c, sval f, ir_op *o)
{
	unsigned n = o->nargs;
	if (f.kind != SVAL_FN && f.kind != SVAL_BUILTIN) {
		sema_error(s, 509, f.at, "'%s' combines with a function, not with %s", c->builtin->name,
			sema_type_text(s, f));
		return false;
	}
	if (!takes(s, c, f, n)) return false;
	ir_builder outer = s->b;
	ir_block *block = o->regions[0];
	sval args[2 * MAX_REDUCED];
	ir_value *results[MAX_REDUCED];
	for (unsigned i = 0; i < 2 * n; i++)
		args[i] = sval_value(ir_block_arg(block, ir_element(ir_arg(o, i % n)->type), i < n ? "a" : "b"), c->at);
	s->b = (ir_builder){.func = s->func, .block = block, .at = outer.at};
	sval got = sema_call_fn(s, f, args, 2 * n, c->at);
	const sval *items;
	uint32_t count;
	bool ok = !sval_is_poison(got);
	if (ok) {
		sema_items(&got, &items, &count);
		if (got.kind == SVAL_VOID || count != n) {
			sema_error(s, 509, f.at, "the function of this '%s' returns %u value%s, not %s",
				c->builtin->name, n, n == 1 ? "" : "s",
				got.kind == SVAL_VOID ? "none" : sema_type_text(s, got));
			ok = false;
		}
	}
	for (unsigned i = 0; ok && i < n; i++) {
		ok = combines_in_its_type(s, c, f, items[i], args[i].value->type);
		results[i] = ok ? sema_as_value(s, items[i], args[i].value->type, "a result of the function") : NULL;
		ok = results[i] != NULL;
	}
	if (ok) ir_yield(&s->b, n, results);
	s->b = outer;
	region_check check = {0};
	if (ok) ir_walk(block, check_region_op, &check);
	if (check.problem)
		sema_error(s, 509, f.at, "the function of '%s' %s; it may only compute on scalars", c->builtin->name,
			check.problem);
	return ok && !check.problem;
}

static sval results_of(sema *s, const builtin_call *c, ir_op *o)
{
	sval items[MAX_REDUCED];
	for (unsigned i = 0; i < o->nresults; i++) items[i] = sval_value(o->results[i], c->at);
	return c->args[0].kind == SVAL_TUPLE ? sval_tuple(s, items, o->nresults, c->at) : items[0];
}

static sval builtin_reduce(sema *s, const builtin_call *c)
{
	enum { TILES, AXIS, FUNCTION, KEEP };
	ir_value *x[MAX_REDUCED];
	unsigned n, axis = 0;
	bool keep_dims = false;
	if (!tiles(s, c, x, &n) || !builtin_flag(s, c, KEEP, "keep_dims", &keep_dims)) return sval_poison(c->at);
	unsigned rank = x[0]->type.rank;
	for (unsigned i = 0; i < n; i++)
		if (!along(s, c, AXIS, &x[i], &axis)) return sval_poison(c->at);
	ir_op *o = reduce_op(s, n, x, axis, IR_CUSTOM);
	if (!combine_region(s, c, c->args[FUNCTION], o)) return sval_poison(c->at);
	while (sval_is_none(c->args[AXIS]) && o->results[0]->type.rank) {
		o = reduce_op(s, n, o->results, o->results[0]->type.rank - 1u, IR_CUSTOM);
		if (!combine_region(s, c, c->args[FUNCTION], o)) return sval_poison(c->at);
	}
	if (!keep_dims) return results_of(s, c, o);
	sval items[MAX_REDUCED];
	for (unsigned i = 0; i < n; i++)
		items[i] = sval_value(keep(s, o->results[i], rank, axis, sval_is_none(c->args[AXIS])), c->at);
	return c->args[TILES].kind == SVAL_TUPLE ? sval_tuple(s, items, n, c->at) : items[0];
}

/* ---- scans ---- */

/* The axis of an operation that keeps it: may be left out for one dimension only, unless there is a default. */
static bool own_axis(sema *s, const builtin_call *c, unsigned arg, ir_type t, int otherwise, unsigned *axis)
{
	if (!sval_is_none(c->args[arg])) return sema_as_axis(s, c->args[arg], t.rank, axis, "axis");
	if (otherwise < 0 && t.rank > 1) {
		sema_error(s, 509, c->at, "'%s' of %s needs an axis", c->builtin->name, sema_type_text(s, c->args[0]));
		return false;
	}
	*axis = t.rank > 1 ? (unsigned)otherwise : 0;
	return true;
}

static ir_op *scan_op(sema *s, unsigned n, ir_value *const *x, unsigned axis, ir_combine combine, bool reverse)
{
	ir_type results[MAX_REDUCED];
	for (unsigned i = 0; i < n; i++) results[i] = x[i]->type;
	ir_op *o = ir_build(&s->b, IR_SCAN, n, x, n, results, combine == IR_CUSTOM);
	ir_set_axis(o, axis);
	ir_set_combine(o, combine);
	ir_set_reverse(o, reverse);
	return o;
}

static sval builtin_cumulative(sema *s, const builtin_call *c)
{
	ir_value *x = builtin_tile(s, c, 0);
	bool reverse = false;
	unsigned axis;
	if (!x || !combines(s, c, (ir_combine)c->builtin->which, (scalar)x->type.elem) ||
		!own_axis(s, c, 1, x->type, -1, &axis) || !builtin_flag(s, c, 2, "reverse", &reverse))
		return sval_poison(c->at);
	scalar own = (scalar)x->type.elem;
	x = sema_convert(s, x, accumulator(own));
	ir_value *v = ir_result(scan_op(s, 1, &x, axis, (ir_combine)c->builtin->which, reverse));
	return sval_value(scalar_is_float(own) ? sema_convert(s, v, own) : v, c->at);
}

static sval builtin_scan(sema *s, const builtin_call *c)
{
	enum { TILES, AXIS, FUNCTION, REVERSE };
	ir_value *x[MAX_REDUCED];
	unsigned n, axis;
	bool reverse = false;
	if (!tiles(s, c, x, &n) || !own_axis(s, c, AXIS, x[0]->type, -1, &axis) ||
		!builtin_flag(s, c, REVERSE, "reverse", &reverse))
		return sval_poison(c->at);
	ir_op *o = scan_op(s, n, x, axis, IR_CUSTOM, reverse);
	return combine_region(s, c, c->args[FUNCTION], o) ? results_of(s, c, o) : sval_poison(c->at);
}

/* ---- order and look-up ---- */

static sval builtin_sort(sema *s, const builtin_call *c)
{
	ir_value *x = builtin_tile(s, c, 0);
	bool descending = false;
	unsigned axis;
	if (!x || !combines(s, c, IR_MAXIMUM, (scalar)x->type.elem) ||
		!own_axis(s, c, 1, x->type, x->type.rank - 1, &axis) ||
		!builtin_flag(s, c, 2, "descending", &descending) ||
		!sema_check_lines(s, "sort", x->type.dim[axis], c->arg_at[0]))
		return sval_poison(c->at);
	ir_op *o = ir_build(&s->b, IR_SORT, 1, &x, 1, &x->type, 0);
	ir_set_axis(o, axis);
	ir_set_descending(o, descending);
	return sval_value(ir_result(o), c->at);
}

static sval builtin_topk(sema *s, const builtin_call *c)
{
	ir_value *x = builtin_tile(s, c, 0);
	int64_t k;
	unsigned axis;
	if (!x || !combines(s, c, IR_MAXIMUM, (scalar)x->type.elem) || !sema_as_const_int(s, c->args[1], &k, "k") ||
		!own_axis(s, c, 2, x->type, x->type.rank - 1, &axis) ||
		!sema_check_lines(s, "topk", x->type.dim[axis], c->arg_at[0]))
		return sval_poison(c->at);
	if (k < 1 || k > x->type.dim[axis] || (k & (k - 1))) {
		diag *d = sema_diag(
			s, 510, c->arg_at[1], "'topk' of %lld values among %u", (long long)k, x->type.dim[axis]);
		diag_set_hint(s->diags, d, "k is a power of two from 1 to %u", x->type.dim[axis]);
		return sval_poison(c->at);
	}
	ir_type t = x->type;
	t.dim[axis] = (uint32_t)k;
	ir_op *o = ir_build(&s->b, IR_SORT, 1, &x, 1, &t, 0);
	ir_set_axis(o, axis);
	ir_set_descending(o, true);
	ir_set_k(o, k);
	return sval_value(ir_result(o), c->at);
}

static sval builtin_histogram(sema *s, const builtin_call *c)
{
	ir_value *args[2] = {builtin_tile(s, c, 0)};
	ir_type shape = {0};
	if (!args[0]) return sval_poison(c->at);
	if (!scalar_is_integer((scalar)args[0]->type.elem)) {
		builtin_needs(s, c, 0, "a tile of integers");
		return sval_poison(c->at);
	}
	int64_t bins;
	if (!sema_as_const_int(s, c->args[1], &bins, "the number of bins") ||
		!sema_as_shape(s, c->args[1], &shape, "the number of bins"))
		return sval_poison(c->at);
	unsigned n = 1;
	if (!sval_is_none(c->args[2]) && !(args[n++] = sema_as_mask(s, c->args[2], args[0]->type, "the mask")))
		return sval_poison(c->at);
	return sval_value(ir_build1(&s->b, IR_HISTOGRAM, ir_with_elem(shape, SCALAR_I32), n, args), c->at);
}

static sval builtin_gather(sema *s, const builtin_call *c)
{
	ir_value *args[] = {builtin_tile(s, c, 0), builtin_tile(s, c, 1)};
	unsigned axis;
	if (!args[0] || !args[1]) return sval_poison(c->at);
	ir_type x = args[0]->type, index = args[1]->type;
	if (!scalar_is_integer((scalar)index.elem)) {
		builtin_needs(s, c, 1, "an index of integers");
		return sval_poison(c->at);
	}
	if (!own_axis(s, c, 2, x, -1, &axis)) return sval_poison(c->at);
	bool fits = x.rank == index.rank;
	for (unsigned i = 0; fits && i < x.rank; i++) fits = i == axis || x.dim[i] == index.dim[i];
	if (!fits)
		return sema_error(s, 510, c->arg_at[1],
			"the index %s does not fit %s: only the extent of axis %u may differ",
			sema_type_text(s, c->args[1]), sema_type_text(s, c->args[0]), axis);
	ir_type t = ir_with_elem(index, (scalar)x.elem);
	ir_op *o = ir_build(&s->b, IR_GATHER, 2, args, 1, &t, 0);
	ir_set_axis(o, axis);
	return sval_value(ir_result(o), c->at);
}

const builtin sema_reduce_builtins[] = {
	{"sum", "x axis? keep_dims?", 0, builtin_reduction, IR_SUM},
	{"max", "x axis? keep_dims? propagate_nan?", 0, builtin_max, IR_MAXIMUM},
	{"min", "x axis? keep_dims? propagate_nan?", 0, builtin_max, IR_MINIMUM},
	{"xor_sum", "x axis? keep_dims?", 0, builtin_reduction, IR_XOR_SUM},
	{"any", "x axis? keep_dims?", 0, builtin_reduction, IR_SOME},
	{"all", "x axis? keep_dims?", 0, builtin_reduction, IR_ALL},
	{"argmax", "x axis? keep_dims? propagate_nan?", 0, builtin_arg, IR_MAXIMUM},
	{"argmin", "x axis? keep_dims? propagate_nan?", 0, builtin_arg, IR_MINIMUM},
	{"reduce", "x axis f keep_dims?", 0, builtin_reduce, 0},
	{"cumsum", "x axis? reverse?", 0, builtin_cumulative, IR_SUM},
	{"cumprod", "x axis? reverse?", 0, builtin_cumulative, IR_PROD},
	{"associative_scan", "x axis f reverse?", 0, builtin_scan, 0},
	{"sort", "x axis? descending?", 0, builtin_sort, 0},
	{"topk", "x k axis?", 0, builtin_topk, 0},
	{"histogram", "x bins mask?", 0, builtin_histogram, 0},
	{"gather", "x index axis?", 0, builtin_gather, 0},
	{0},
};
