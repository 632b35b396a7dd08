/* Built-ins that make values from nowhere, and those that only rearrange elements.
 *
 * Both are shape arithmetic: the numbers are checked here, at compile time, and the operation that is emitted has
 * nothing left to decide.  `cat` joins equal extents only, and an `arange` of a length that no tile has is refused with
 * the length and the mask to use instead. */
#include "builtins_util.h"

/* ---- values from nowhere ---- */

static sval builtin_program(sema *s, const builtin_call *c)
{
	int64_t axis = 0;
	if (!sval_is_none(c->args[0]) && !sema_as_const_int(s, c->args[0], &axis, "axis")) return sval_poison(c->at);
	if (axis < 0 || axis > 2) {
		diag *d = sema_diag(s, 502, c->arg_at[0], "a grid has no axis %lld", (long long)axis);
		diag_set_hint(s->diags, d, "the axes of a grid are 0, 1 and 2");
		return sval_poison(c->at);
	}
	ir_type t = ir_scalar_type(SCALAR_I32);
	ir_op *o = ir_build(&s->b, (ir_kind)c->builtin->which, 0, NULL, 1, &t, 0);
	ir_set_axis(o, axis);
	return sval_value(ir_result(o), c->at);
}

static sval builtin_arange(sema *s, const builtin_call *c)
{
	int64_t lo, hi;
	if (!sema_as_const_int(s, c->args[0], &lo, "the first number of 'arange'") ||
		!sema_as_const_int(s, c->args[1], &hi, "the end of 'arange'"))
		return sval_poison(c->at);
	if (lo < INT32_MIN || lo > INT32_MAX || hi < INT32_MIN || hi > (int64_t)INT32_MAX + 1)
		return sema_error(s, 503, span_join(c->arg_at[0], c->arg_at[1]), "'arange' makes numbers of i32");
	if (hi <= lo)
		return sema_error(s, 503, span_join(c->arg_at[0], c->arg_at[1]),
			"'arange' from %lld to %lld holds no number", (long long)lo, (long long)hi);
	uint64_t n = (uint64_t)(hi - lo);
	if (n <= UINT32_MAX && !ir_extent_fits((uint32_t)n)) {
		diag *d = sema_diag(s, 503, span_join(c->arg_at[0], c->arg_at[1]),
			"'arange' of %llu numbers: the length of a tile is an odd number up to %d times a power of two",
			(unsigned long long)n, IR_MOST_ODD);
		diag_set_hint(s->diags, d, "use arange(%lld, %lld) and mask what is beyond: i < %lld", (long long)lo,
			(long long)(lo + (int64_t)ir_next_extent(n)), (long long)hi);
		return sval_poison(c->at);
	}
	if (n > UINT32_MAX) /* all numbers of i32: no extent holds that, and sema_check_tile() sees extents only */
		return sema_error(s, 704, span_join(c->arg_at[0], c->arg_at[1]),
			"a tile of shape [%llu] has more than 1,048,576 elements", (unsigned long long)n);
	uint32_t extent = (uint32_t)n;
	ir_type t = ir_tile_type(SCALAR_I32, 1, &extent);
	if (!sema_check_tile(s, t, span_join(c->arg_at[0], c->arg_at[1]))) return sval_poison(c->at);
	ir_op *o = ir_build(&s->b, IR_ARANGE, 0, NULL, 1, &t, 0);
	ir_set_lo(o, lo);
	return sval_value(ir_result(o), c->at);
}

static sval builtin_zeros(sema *s, const builtin_call *c)
{
	ir_type shape = {0};
	scalar elem;
	if (!sema_as_shape(s, c->args[0], &shape, "the shape") ||
		!sema_as_scalar_type(s, c->args[1], &elem, "the element type"))
		return sval_poison(c->at);
	return sval_value(ir_constant(&s->b, ir_with_elem(shape, elem), 0), c->at);
}

/* A value for every element: of the type that was asked for, else of its own. */
static sval fill(sema *s, const builtin_call *c, sval v, ir_type shape, const scalar *elem)
{
	ir_type t;
	if (!sval_type_of(v, &t) || t.pointer) {
		sema_error(s, 501, v.at, "'%s' fills a tile with a number, not %s", c->builtin->name,
			sema_type_text(s, v));
		return sval_poison(c->at);
	}
	if (!elem && v.kind == SVAL_NUMBER && !sema_alone_fits(s, v, (scalar)t.elem)) return sval_poison(c->at);
	return sval_value(sema_store_value(s, v, elem ? *elem : (scalar)t.elem, shape, "the value"), c->at);
}

static sval builtin_full(sema *s, const builtin_call *c)
{
	ir_type shape = {0};
	scalar elem;
	if (!sema_as_shape(s, c->args[0], &shape, "the shape")) return sval_poison(c->at);
	if (sval_is_none(c->args[2])) return fill(s, c, c->args[1], shape, NULL);
	if (!sema_as_scalar_type(s, c->args[2], &elem, "the element type")) return sval_poison(c->at);
	return fill(s, c, c->args[1], shape, &elem);
}

static sval builtin_like(sema *s, const builtin_call *c)
{
	ir_type t;
	if (!sval_type_of(c->args[0], &t) || t.pointer) {
		builtin_needs(s, c, 0, "a scalar or a tile of numbers");
		return sval_poison(c->at);
	}
	bool zeros = c->builtin->which == 0;
	if (zeros && c->args[0].kind == SVAL_NUMBER) return sval_number_bits((scalar)t.elem, 0, c->at);
	if (zeros) return sval_value(ir_constant(&s->b, t, 0), c->at);
	scalar elem = (scalar)t.elem;
	return fill(s, c, c->args[1], t, &elem);
}

/* ---- other shapes of the same elements ---- */

/* A scalar or tile of numbers or pointers, and whether the result has room for one more dimension. */
static ir_value *shaped(sema *s, const builtin_call *c, unsigned arg, unsigned more)
{
	ir_type t;
	if (!sval_type_of(c->args[arg], &t)) {
		builtin_needs(s, c, arg, "a scalar or a tile");
		return NULL;
	}
	if (t.rank + more > IR_MAX_RANK) {
		sema_error(s, 504, c->at, "a tile has at most %d dimensions: %s has %d already", IR_MAX_RANK,
			sema_type_text(s, c->args[arg]), t.rank);
		return NULL;
	}
	return sema_value(s, c->args[arg], "the argument");
}

/* The same, of rank 1 or more. */
static ir_value *tile_or_pointers(sema *s, const builtin_call *c, unsigned arg)
{
	ir_type t;
	if (!sval_type_of(c->args[arg], &t) || t.rank == 0) {
		builtin_needs(s, c, arg, "a tile");
		return NULL;
	}
	return sema_value(s, c->args[arg], "the tile");
}

static sval builtin_expand_dims(sema *s, const builtin_call *c)
{
	ir_value *x = shaped(s, c, 0, 1);
	unsigned axis;
	if (!x || !sema_as_axis(s, c->args[1], x->type.rank + 1u, &axis, "axis")) return sval_poison(c->at);
	return sval_value(builtin_expand(s, x, axis), c->at);
}

static sval builtin_broadcast_to(sema *s, const builtin_call *c)
{
	ir_value *x = shaped(s, c, 0, 0);
	ir_type shape = {0};
	if (!x || !sema_as_shape(s, c->args[1], &shape, "the shape")) return sval_poison(c->at);
	return sval_value(sema_broadcast_to(s, x, shape, c->at), c->at);
}

static sval builtin_reshape_to(sema *s, const builtin_call *c)
{
	ir_value *x = shaped(s, c, 0, 0);
	ir_type shape = {0};
	if (!x || !sema_as_shape(s, c->args[1], &shape, "the shape")) return sval_poison(c->at);
	if (ir_elements(x->type) != ir_elements(shape)) {
		diag *d = sema_diag(s, 504, c->arg_at[1], "%s has %llu elements, %s has %llu",
			sema_type_text(s, c->args[0]), (unsigned long long)ir_elements(x->type),
			sema_shape_text(s, shape), (unsigned long long)ir_elements(shape));
		diag_add_label(s->diags, d, c->arg_at[0], "%s", sema_type_text(s, c->args[0]));
		diag_set_hint(s->diags, d, "'reshape' keeps all elements; 'broadcast_to' repeats them");
		return sval_poison(c->at);
	}
	if (!sema_check_reshape(s, x->type, shape, c->arg_at[1])) return sval_poison(c->at);
	return sval_value(builtin_reshape(s, x, shape), c->at);
}

static sval builtin_ravel(sema *s, const builtin_call *c)
{
	ir_value *x = shaped(s, c, 0, 0);
	if (!x) return sval_poison(c->at);
	uint32_t n = (uint32_t)ir_elements(x->type);
	ir_type t = ir_tile_type(SCALAR_BOOL, 1, &n);
	if (!sema_check_tile(s, t, c->at) || !sema_check_reshape(s, x->type, t, c->at)) return sval_poison(c->at);
	return sval_value(builtin_reshape(s, x, t), c->at);
}

static sval builtin_trans(sema *s, const builtin_call *c)
{
	static const uint16_t swapped[] = {1, 0};
	ir_value *x = tile_or_pointers(s, c, 0);
	if (!x) return sval_poison(c->at);
	if (x->type.rank != 2) {
		diag *d = builtin_needs(s, c, 0, "a tile of two dimensions");
		diag_set_hint(s->diags, d, "'permute' orders any number of dimensions: permute(x, [0, 2, 1])");
		return sval_poison(c->at);
	}
	return sval_value(builtin_permute(s, x, swapped), c->at);
}

static sval builtin_permute_dims(sema *s, const builtin_call *c)
{
	ir_value *x = tile_or_pointers(s, c, 0);
	if (!x) return sval_poison(c->at);
	sval list = c->args[1];
	const sval *items;
	uint32_t n;
	sema_items(&list, &items, &n);
	if (n != x->type.rank)
		return sema_error(s, 504, c->arg_at[1], "the order lists %u dimensions, %s has %d", n,
			sema_type_text(s, c->args[0]), x->type.rank);
	uint16_t order[IR_MAX_RANK];
	unsigned seen = 0;
	for (uint32_t i = 0; i < n; i++) {
		unsigned axis;
		if (!sema_as_axis(s, items[i], n, &axis, "a dimension of the order")) return sval_poison(c->at);
		if (seen & 1u << axis)
			return sema_error(s, 504, items[i].at, "the order lists dimension %u twice", axis);
		seen |= 1u << axis;
		order[i] = (uint16_t)axis;
	}
	return sval_value(builtin_permute(s, x, order), c->at);
}

static sval builtin_squeeze(sema *s, const builtin_call *c)
{
	ir_value *x = tile_or_pointers(s, c, 0);
	if (!x) return sval_poison(c->at);
	ir_type t = x->type;
	if (sval_is_none(c->args[1])) {
		for (unsigned i = t.rank; i-- > 0;)
			if (t.dim[i] == 1) t = builtin_without_axis(t, i);
		return sval_value(builtin_reshape(s, x, t), c->at);
	}
	unsigned axis;
	if (!sema_as_axis(s, c->args[1], t.rank, &axis, "axis")) return sval_poison(c->at);
	if (t.dim[axis] != 1)
		return sema_error(s, 504, c->arg_at[1], "axis %u of %s has extent %u; only an extent of 1 can go", axis,
			sema_type_text(s, c->args[0]), t.dim[axis]);
	return sval_value(builtin_reshape(s, x, builtin_without_axis(t, axis)), c->at);
}

/* Two values of one type, shape and all. */
static bool pair(sema *s, const builtin_call *c, ir_value **v)
{
	ir_type t;
	for (unsigned i = 0; i < 2; i++)
		if (!sval_type_of(c->args[i], &t) || t.pointer) {
			builtin_needs(s, c, i, "a scalar or a tile of numbers");
			return false;
		}
	return sema_unify(s, c->args, 2, c->at, v);
}

static ir_value *join(sema *s, const builtin_call *c, ir_value **v)
{
	ir_type t = builtin_with_axis(v[0]->type, v[0]->type.rank, 2);
	return sema_check_tile(s, t, c->at) ? ir_build1(&s->b, IR_JOIN, t, 2, v) : NULL;
}

static sval builtin_join(sema *s, const builtin_call *c)
{
	ir_value *v[2];
	if (!pair(s, c, v)) return sval_poison(c->at);
	if (v[0]->type.rank == IR_MAX_RANK)
		return sema_error(s, 504, c->at, "a tile has at most %d dimensions: 'join' adds one", IR_MAX_RANK);
	return sval_value(join(s, c, v), c->at);
}

/* Both tiles with the dimensions in front of `axis` in one, and those from it on in another; returns which one the axis
 * is in.  Extents that are no powers of two stay where they are: merging would move their elements. */
static bool flatten(sema *s, const builtin_call *c, ir_value **v, unsigned *axis)
{
	uint32_t extent[2] = {1, 1};
	ir_type t = v[0]->type;
	if (ir_is_cut(t)) {
		if (t.rank < IR_MAX_RANK) return true;
		diag *d = sema_diag(s, 207, c->at, "'%s' of four dimensions takes powers of two, found %s",
			c->builtin->name, sema_shape_text(s, t));
		diag_set_hint(s->diags, d, "three dimensions take others, too");
		return false;
	}
	for (unsigned i = 0; i < t.rank; i++) extent[i >= *axis] *= t.dim[i];
	*axis = 1;
	for (unsigned i = 0; i < 2; i++) v[i] = builtin_reshape(s, v[i], ir_tile_type(SCALAR_BOOL, 2, extent));
	return true;
}

/* a0, b0, a1, b1, ... along the last dimension: joined, and the new dimension merged with it. */
static sval builtin_interleave(sema *s, const builtin_call *c)
{
	ir_value *v[2];
	if (!pair(s, c, v)) return sval_poison(c->at);
	ir_type t = v[0]->type;
	if (t.rank == 0) return sval_value(join(s, c, v), c->at);
	t.dim[t.rank - 1] *= 2;
	if (!sema_check_tile(s, t, c->at)) return sval_poison(c->at);
	unsigned last = t.rank - 1u;
	if (!flatten(s, c, v, &last)) return sval_poison(c->at);
	return sval_value(builtin_reshape(s, join(s, c, v), t), c->at);
}

static sval builtin_split(sema *s, const builtin_call *c)
{
	ir_value *x = builtin_tile(s, c, 0);
	if (!x) return sval_poison(c->at);
	if (x->type.dim[x->type.rank - 1] != 2) {
		diag *d = builtin_needs(s, c, 0, "a last dimension of 2");
		diag_set_hint(s->diags, d, "reshape(x, [.., 2]) first");
		return sval_poison(c->at);
	}
	ir_type half = builtin_without_axis(x->type, x->type.rank - 1u), both[] = {half, half};
	ir_op *o = ir_build(&s->b, IR_SPLIT, 1, &x, 2, both, 0);
	sval items[] = {sval_value(o->results[0], c->at), sval_value(o->results[1], c->at)};
	return sval_tuple(s, items, 2, c->at);
}

static sval builtin_cat(sema *s, const builtin_call *c)
{
	ir_type t[2];
	for (unsigned i = 0; i < 2; i++)
		if (!sval_type_of(c->args[i], &t[i]) || t[i].pointer || t[i].rank == 0) {
			builtin_needs(s, c, i, "a tile of numbers");
			return sval_poison(c->at);
		}
	if (!ir_same_shape(t[0], t[1])) {
		diag *d = sema_diag(s, 504, c->at, "'cat' puts tiles of one shape together, not %s and %s",
			sema_shape_text(s, t[0]), sema_shape_text(s, t[1]));
		diag_set_hint(s->diags, d, "what is put together has twice the extent of either");
		return sval_poison(c->at);
	}
	unsigned axis = 0;
	ir_value *v[2];
	if (!sval_is_none(c->args[2]) && !sema_as_axis(s, c->args[2], t[0].rank, &axis, "axis"))
		return sval_poison(c->at);
	if (!sema_unify(s, c->args, 2, c->at, v)) return sval_poison(c->at);
	ir_type result = v[0]->type;
	result.dim[axis] *= 2;
	if (!sema_check_tile(s, result, c->at)) return sval_poison(c->at);
	uint16_t order[IR_MAX_RANK];
	if (!flatten(s, c, v, &axis)) return sval_poison(c->at);
	unsigned rank = v[0]->type.rank; /* [outer, inner] twice -> [outer, inner, 2] -> [outer, 2, inner] */
	for (unsigned i = 0; i <= rank; i++) order[i] = (uint16_t)(i < axis ? i : i == axis ? rank : i - 1);
	ir_value *both = builtin_permute(s, join(s, c, v), order);
	if (!sema_check_reshape(s, both->type, result, c->at)) return sval_poison(c->at);
	return sval_value(builtin_reshape(s, both, result), c->at);
}

static sval builtin_flip(sema *s, const builtin_call *c)
{
	ir_value *x = builtin_tile(s, c, 0);
	if (!x) return sval_poison(c->at);
	unsigned axis = x->type.rank - 1u;
	if (!sval_is_none(c->args[1]) && !sema_as_axis(s, c->args[1], x->type.rank, &axis, "axis"))
		return sval_poison(c->at);
	ir_op *o = ir_build(&s->b, IR_FLIP, 1, &x, 1, &x->type, 0);
	ir_set_axis(o, axis);
	return sval_value(ir_result(o), c->at);
}

const builtin sema_create_builtins[] = {
	{"program_id", "axis?", 0, builtin_program, IR_PROGRAM_ID},
	{"num_programs", "axis?", 0, builtin_program, IR_NUM_PROGRAMS},
	{"arange", "lo hi", 0, builtin_arange, 0},
	{"zeros", "shape T", 0, builtin_zeros, 0},
	{"full", "shape v T?", 0, builtin_full, 0},
	{"zeros_like", "x", 0, builtin_like, 0},
	{"full_like", "x v", 0, builtin_like, 1},
	{"expand_dims", "x axis", 0, builtin_expand_dims, 0},
	{"broadcast_to", "x shape", 0, builtin_broadcast_to, 0},
	{"reshape", "x shape", 0, builtin_reshape_to, 0},
	{"ravel", "x", 0, builtin_ravel, 0},
	{"trans", "x", 0, builtin_trans, 0},
	{"permute", "x order", 0, builtin_permute_dims, 0},
	{"squeeze", "x axis?", 0, builtin_squeeze, 0},
	{"join", "a b", 0, builtin_join, 0},
	{"split", "x", 0, builtin_split, 0},
	{"interleave", "a b", 0, builtin_interleave, 0},
	{"cat", "a b axis?", 0, builtin_cat, 0},
	{"flip", "x axis?", 0, builtin_flip, 0},
	{0},
};
