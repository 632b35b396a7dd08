/* Tensors and block pointers: global arrays that know their shape.
 *
 * Neither exists in the tile IR.  A tensor is a compile-time record of run-time values (base, shape, strides), a block
 * pointer adds where a block starts; an access spells all of them out as operands of one operation, which may become
 * a bulk copy or a masked access later.  A function may take a tensor as a parameter because calls are inlined. */
#include "builtins_util.h"

/* An integer scalar; i32 and i64 stay as they are, others become i64. */
static bool integer(sema *s, sval v, const char *what, sval *out)
{
	ir_type t;
	if (!sval_type_of(v, &t) || t.pointer || t.rank || !scalar_is_integer((scalar)t.elem)) {
		sema_error(s, 501, v.at, "%s is an integer, not %s", what, sema_type_text(s, v));
		return false;
	}
	*out = v;
	if (v.kind == SVAL_VALUE && t.elem != SCALAR_I32 && t.elem != SCALAR_I64)
		*out = sval_value(sema_convert(s, v.value, SCALAR_I64), v.at);
	return true;
}

/* `n` integers of a list, or as many as it has (at most 4) when *n is 0. */
static bool integers(sema *s, sval list, uint32_t *n, const char *what, sval *out)
{
	const sval *items;
	uint32_t count;
	sema_items(&list, &items, &count);
	if (*n ? count != *n : count == 0 || count > IR_MAX_RANK) {
		diag *d = sema_diag(s, 511, list.at, "%u number%s given as the %s", count, count == 1 ? "" : "s", what);
		if (*n)
			diag_set_hint(s->diags, d, "the tensor has %u dimension%s", *n, *n == 1 ? "" : "s");
		else
			diag_set_hint(s->diags, d, "a tensor has 1 to %d dimensions", IR_MAX_RANK);
		return false;
	}
	*n = count;
	for (uint32_t i = 0; i < count; i++)
		if (!integer(s, items[i], what, &out[i])) return false;
	return true;
}

static sval builtin_tensor(sema *s, const builtin_call *c)
{
	ir_type t;
	if (!sval_type_of(c->args[0], &t) || !t.pointer || t.rank) {
		builtin_needs(s, c, 0, "a scalar pointer");
		return sval_poison(c->at);
	}
	sema_tensor a = {
		.shape = ARENA_ARRAY(s->arena, sval, IR_MAX_RANK), .strides = ARENA_ARRAY(s->arena, sval, IR_MAX_RANK)};
	a.base = c->args[0].value;
	if (!integers(s, c->args[1], &a.rank, "shape of a tensor", a.shape)) return sval_poison(c->at);
	if (!sval_is_none(c->args[2])) {
		if (!integers(s, c->args[2], &a.rank, "strides of a tensor", a.strides)) return sval_poison(c->at);
		return sval_tensor(s, &a, c->at);
	}
	/* Row-major; products in i64, since an array may be larger than its extents suggest. */
	sval wide = sval_type(s, ir_scalar_type(SCALAR_I64), c->at);
	a.strides[a.rank - 1] = sval_int(1, c->at);
	for (uint32_t i = a.rank - 1; i-- > 0;) {
		sval extent = sema_cast(s, a.shape[i + 1], wide, false, c->at);
		a.strides[i] = sema_emit_binary(s, AST_OP_MUL, a.strides[i + 1], extent, c->at, c->name);
	}
	return sval_tensor(s, &a, c->at);
}

/* A method's row is taken when the first argument in the text is a tensor; by name that may be another parameter. */
static const sema_tensor *tensor_argument(sema *s, const builtin_call *c)
{
	if (c->args[0].kind == SVAL_TENSOR) return c->args[0].tensor;
	builtin_needs(s, c, 0, "a tensor");
	return NULL;
}

static bool writable(sema *s, const builtin_call *c, const sema_tensor *a)
{
	if (a->base->type.pointer != IR_CONST_POINTER) return true;
	diag *d = sema_diag(s, 505, c->arg_at[0], "this tensor's memory is read-only: its base is *const %s",
		scalar_name((scalar)a->base->type.elem));
	diag_set_hint(
		s->diags, d, "declare the parameter as *%s, without const", scalar_name((scalar)a->base->type.elem));
	return false;
}

/* Builds base [value] indices shape strides. */
static ir_op *access(
	sema *s, ir_kind kind, const sema_tensor *a, const sval *index, ir_value *value, const ir_type *result)
{
	ir_value *args[2 + 3 * IR_MAX_RANK];
	unsigned n = 0;
	args[n++] = a->base;
	if (value) args[n++] = value;
	const sval *const lists[] = {index, a->shape, a->strides};
	for (unsigned l = 0; l < 3; l++)
		for (uint32_t i = 0; i < a->rank; i++) args[n++] = sema_value(s, lists[l][i], "a number of the tensor");
	return ir_build(&s->b, kind, n, args, result ? 1 : 0, result, 0);
}

/* The type of a block of the tensor. */
static bool block_type(sema *s, const sema_tensor *a, sval shape, ir_type *out)
{
	*out = ir_scalar_type((scalar)a->base->type.elem);
	if (!sema_as_shape(s, shape, out, "the block's shape")) return false;
	if (out->rank == a->rank) return true;
	sema_error(s, 511, shape.at, "a block of %d dimensions in a tensor of %u", out->rank, a->rank);
	return false;
}

static bool is_one(sval v)
{
	return v.kind == SVAL_NUMBER && !scalar_is_float(v.number.type) && v.number.i == 1;
}

/* Whether the elements of a column lie side by side, as `strides = [1, K]` says of a matrix. */
static bool by_columns(const sema_tensor *a)
{
	return a->rank >= 2 && is_one(a->strides[a->rank - 2]) && !is_one(a->strides[a->rank - 1]);
}

static void swap_last(sval *v, uint32_t rank)
{
	sval last = v[rank - 1];
	v[rank - 1] = v[rank - 2];
	v[rank - 2] = last;
}

/* The transposed block of the transposed matrix, which is the same and what passes know by one form. */
static ir_value *load_by_columns(sema *s, const sema_tensor *a, sval *index, ir_type t)
{
	uint16_t order[IR_MAX_RANK] = {0, 1, 2, 3};
	uint32_t last = a->rank - 1;
	sema_tensor b = *a;
	b.shape = ARENA_ARRAY(s->arena, sval, IR_MAX_RANK);
	b.strides = ARENA_ARRAY(s->arena, sval, IR_MAX_RANK);
	for (uint32_t i = 0; i < a->rank; i++) b.shape[i] = a->shape[i], b.strides[i] = a->strides[i];
	swap_last(b.shape, a->rank);
	swap_last(b.strides, a->rank);
	swap_last(index, a->rank);
	order[last] = (uint16_t)(last - 1);
	order[last - 1] = (uint16_t)last;
	ir_type swapped = t;
	swapped.dim[last] = t.dim[last - 1];
	swapped.dim[last - 1] = t.dim[last];
	return builtin_permute(s, ir_result(access(s, IR_TENSOR_LOAD, &b, index, NULL, &swapped)), order);
}

static sval builtin_tensor_load(sema *s, const builtin_call *c)
{
	const sema_tensor *a = tensor_argument(s, c);
	sval index[IR_MAX_RANK];
	uint32_t rank = a ? a->rank : 0;
	ir_type t;
	if (!a || !integers(s, c->args[1], &rank, "index of a block", index) || !block_type(s, a, c->args[2], &t))
		return sval_poison(c->at);
	if (by_columns(a)) return sval_value(load_by_columns(s, a, index, t), c->at);
	return sval_value(ir_result(access(s, IR_TENSOR_LOAD, a, index, NULL, &t)), c->at);
}

/* A tile of the tensor's rank, converted to its element type. */
static ir_value *block_value(sema *s, sval v, const sema_tensor *a)
{
	ir_type t;
	if (!sval_type_of(v, &t) || t.pointer || t.rank != a->rank) {
		sema_error(s, 511, v.at, "a block of this tensor is a tile of %u dimension%s, not %s", a->rank,
			a->rank == 1 ? "" : "s", sema_type_text(s, v));
		return NULL;
	}
	return sema_store_value(s, v, (scalar)a->base->type.elem, t, "the stored value");
}

static sval builtin_tensor_store(sema *s, const builtin_call *c)
{
	const sema_tensor *a = tensor_argument(s, c);
	sval index[IR_MAX_RANK];
	uint32_t rank = a ? a->rank : 0;
	if (!a || !writable(s, c, a) || !integers(s, c->args[1], &rank, "index of a block", index))
		return sval_poison(c->at);
	scalar elem = (scalar)a->base->type.elem;
	const unsigned adds = 1u << SCALAR_I32 | 1u << SCALAR_I64 | 1u << SCALAR_U32 | 1u << SCALAR_U64 |
			      1u << SCALAR_F16 | 1u << SCALAR_BF16 | 1u << SCALAR_F32 | 1u << SCALAR_F64;
	if (c->builtin->which == IR_TENSOR_ATOMIC_ADD && !(adds & 1u << elem)) {
		diag *d = sema_diag(s, 507, c->arg_at[0], "'atomic_add' does not exist for %s", scalar_name(elem));
		diag_set_hint(s->diags, d, "it works on i32 i64 u32 u64 f16 bf16 f32 f64");
		return sval_poison(c->at);
	}
	ir_value *v = block_value(s, c->args[2], a);
	if (!v) return sval_poison(c->at);
	access(s, (ir_kind)c->builtin->which, a, index, v, NULL);
	return sval_void(c->at);
}

/* ---- block pointers ---- */

static sval builtin_block_ptr(sema *s, const builtin_call *c)
{
	const sema_tensor *a = tensor_argument(s, c);
	uint32_t rank = a ? a->rank : 0;
	sema_block_ptr p = {.tensor = a, .index = ARENA_ARRAY(s->arena, sval, IR_MAX_RANK)};
	if (!a || !integers(s, c->args[1], &rank, "index of a block", p.index) ||
		!block_type(s, a, c->args[2], &p.block))
		return sval_poison(c->at);
	return sval_block_ptr(s, &p, c->at);
}

static sval builtin_advance(sema *s, const builtin_call *c)
{
	if (c->args[0].kind != SVAL_BLOCK_PTR) {
		builtin_needs(s, c, 0, "a block pointer");
		return sval_poison(c->at);
	}
	sema_block_ptr p = *c->args[0].block_ptr;
	sval step[IR_MAX_RANK], *index = ARENA_ARRAY(s->arena, sval, IR_MAX_RANK);
	uint32_t rank = p.tensor->rank;
	if (!integers(s, c->args[1], &rank, "step of a block pointer", step)) return sval_poison(c->at);
	for (uint32_t i = 0; i < rank; i++) {
		index[i] = sema_emit_binary(s, AST_OP_ADD, p.index[i], step[i], c->at, c->name);
		if (sval_is_poison(index[i])) return sval_poison(c->at);
	}
	p.index = index;
	return sval_block_ptr(s, &p, c->at);
}

/* A block pointer's access takes no mask and no options: bounds are its own matter. */
static bool plain(sema *s, const builtin_call *c, unsigned from, unsigned n)
{
	for (unsigned i = from; i < n; i++)
		if (!sval_is_none(c->args[i])) {
			diag *d = sema_diag(s, 511, c->arg_at[i], "'%s' of a block pointer takes no further argument",
				c->builtin->name);
			diag_set_hint(s->diags, d, "what lies outside of the tensor reads as 0 and is not written");
			return false;
		}
	return true;
}

sval builtin_load_block(sema *s, const builtin_call *c)
{
	const sema_block_ptr *p = c->args[0].block_ptr;
	if (!plain(s, c, 1, 6)) return sval_poison(c->at);
	return sval_value(ir_result(access(s, IR_TENSOR_LOAD, p->tensor, p->index, NULL, &p->block)), c->at);
}

sval builtin_store_block(sema *s, const builtin_call *c)
{
	const sema_block_ptr *p = c->args[0].block_ptr;
	if (!plain(s, c, 2, 5) || !writable(s, c, p->tensor)) return sval_poison(c->at);
	ir_value *v = sema_store_value(s, c->args[1], (scalar)p->block.elem, p->block, "the stored value");
	if (!v) return sval_poison(c->at);
	access(s, IR_TENSOR_STORE, p->tensor, p->index, v, NULL);
	return sval_void(c->at);
}

const builtin sema_tensor_builtins[] = {
	{"tensor", "base shape strides?", 0, builtin_tensor, 0},
	{"tensor.load", "A index shape", 0, builtin_tensor_load, 0},
	{"tensor.store", "A index v", 0, builtin_tensor_store, IR_TENSOR_STORE},
	{"tensor.atomic_add", "A index v", 0, builtin_tensor_store, IR_TENSOR_ATOMIC_ADD},
	{"block_ptr", "A index shape", 0, builtin_block_ptr, 0},
	{"advance", "bp steps", 0, builtin_advance, 0},
	{0},
};
