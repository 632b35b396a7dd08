/* Tensor accesses become pointer arithmetic, a bounds mask, and a load, a store or an atomic.
 *
 * In: tile IR from sema, where a block of a tensor is one operation with base, indices, shape and strides.  Out: the
 * same without tensor operations; what lies outside of the array, negative indices included, reads as 0 and is not
 * written.
 *     tensor_load %a, %i, %j, %m, %n, %s, 1 : f16[64,32]
 *     ->
 *     row = a + (i * s + j)                      one scalar pointer, in i64: products of an array do not overflow
 *     p   = (row + arange[:, None] * s) + arange[None, :]
 *     m   = (u32)(i + arange) < (u32)m [:, None] & the same of j, n
 *     load p, m
 * The one idea: everything that is the same for all elements is scalar, and a dimension of stride 1 is added last, as a
 * plain arange, so that the axis analysis sees runs as long as the block and alignment from the scalar part.  Of three
 * dimensions or more those in which the block is 1 wide are part of that corner, and the tile is without them.
 *
 * A coordinate is compared once, as an unsigned number: a negative one is then larger than any extent.  The sum of an
 * i32 index and an arange may wrap, but only to a negative number, which is outside as the true one is.  What cannot
 * leave the array is not compared: extents, and indices that are constants.
 *
 * Where the target copies blocks by tensor maps (tensor_maps.c), accesses that fit take that road instead. */
#include "async/bulk.h"

typedef struct block {
	ir_builder build;
	ir_value *base;
	ir_value *const *index, *const *shape, *const *stride;
	ir_type shape_type; /* only its dims matter */
	uint32_t thin;      /* dimensions that the tile does not have (bulk.h) */
	ir_type tile;
	ir_value *operands[3 * IR_MAX_RANK];
} block;

static ir_value *range(block *b, unsigned d)
{
	return ir_build1(&b->build, IR_ARANGE, ir_tile_type(SCALAR_I32, 1, &b->shape_type.dim[d]), 0, NULL);
}

static bool is_thin(const block *b, unsigned d)
{
	return b->thin >> d & 1;
}

/* Of a tile along dimension d: extents of 1 in all others. */
static ir_value *stand_along(block *b, ir_value *v, unsigned d)
{
	assert(v->type.rank == 1);
	for (unsigned axis = 0, at = 0; axis < b->shape_type.rank; axis++) {
		if (is_thin(b, axis) || axis == d) {
			at += axis == d;
			continue;
		}
		ir_type t = v->type;
		for (unsigned i = t.rank++; i > at; i--) t.dim[i] = t.dim[i - 1];
		t.dim[at] = 1;
		v = ir_build1(&b->build, IR_EXPAND_DIMS, t, 1, &v);
		ir_set_axis(v->def, at++);
	}
	assert(v->type.rank == b->tile.rank);
	return v;
}

static ir_value *stretch(block *b, ir_value *v)
{
	assert(v->type.rank == b->tile.rank);
	ir_type t = ir_with_shape(v->type, b->tile);
	return ir_type_equal(t, v->type) ? v : ir_build1(&b->build, IR_BROADCAST, t, 1, &v);
}

/* Both to the extents that the two have between them. */
static void meet(block *b, ir_value **x, ir_value **y)
{
	assert((*x)->type.rank == (*y)->type.rank);
	ir_type t = (*x)->type;
	for (unsigned d = 0; d < t.rank; d++)
		if ((*y)->type.dim[d] > t.dim[d]) t.dim[d] = (*y)->type.dim[d];
	ir_value **both[] = {x, y};
	for (unsigned i = 0; i < 2; i++) {
		ir_type to = ir_with_shape((*both[i])->type, t);
		if (!ir_same_shape((*both[i])->type, to)) *both[i] = ir_build1(&b->build, IR_BROADCAST, to, 1, both[i]);
	}
}

/* base + sum of index * stride. */
static ir_value *corner(block *b)
{
	assert(b->shape_type.rank && b->base->type.pointer && ir_is_scalar(b->base));
	ir_value *sum = NULL;
	for (unsigned d = 0; d < b->shape_type.rank; d++) {
		ir_value *i = ir_convert(&b->build, b->index[d], SCALAR_I64);
		if (!ir_is_one(b->stride[d]))
			i = ir_binary(&b->build, IR_MUL, i, ir_convert(&b->build, b->stride[d], SCALAR_I64));
		sum = sum ? ir_binary(&b->build, IR_ADD, sum, i) : i;
	}
	ir_value *args[] = {b->base, sum};
	return ir_build1(&b->build, IR_PTR_ADD, b->base->type, 2, args);
}

static void advance(block *b, ir_value **pointer, unsigned d)
{
	ir_value *offset = range(b, d);
	if (!ir_is_one(b->stride[d])) {
		offset = ir_convert(&b->build, offset, SCALAR_I64);
		ir_value *stride = ir_convert(&b->build, b->stride[d], SCALAR_I64);
		offset = ir_binary(&b->build, IR_MUL, offset, ir_splat(&b->build, stride, offset->type));
	}
	offset = stand_along(b, offset, d);
	if (!*pointer) *pointer = ir_splat(&b->build, corner(b), offset->type);
	meet(b, pointer, &offset);
	ir_value *args[] = {*pointer, offset};
	*pointer = ir_build1(&b->build, IR_PTR_ADD, (*pointer)->type, 2, args);
}

/* Dimensions of stride 1 last. */
static ir_value *pointers(block *b)
{
	ir_value *pointer = NULL;
	for (unsigned last = 0; last < 2; last++)
		for (unsigned d = 0; d < b->shape_type.rank; d++)
			if (b->shape_type.dim[d] > 1 && ir_is_one(b->stride[d]) == (last == 1)) advance(b, &pointer, d);
	return pointer ? pointer : ir_splat(&b->build, corner(b), b->tile);
	assert(!pointer || pointer->type.rank == b->tile.rank);
}

static bool always_inside(const block *b, unsigned d)
{
	int64_t i, n;
	return ir_is_const_int(b->index[d], &i) && ir_is_const_int(b->shape[d], &n) && i >= 0 &&
	       n >= b->shape_type.dim[d] && i <= n - b->shape_type.dim[d];
}

static ir_value *inside(block *b, unsigned d)
{
	ir_value *i = b->index[d], *n = b->shape[d], *v = range(b, d);
	bool narrow = i->type.elem == SCALAR_I32 && n->type.elem == SCALAR_I32;
	scalar s = narrow ? SCALAR_I32 : SCALAR_I64, u = narrow ? SCALAR_U32 : SCALAR_U64;
	n = ir_convert(&b->build, n, s);
	n = ir_binary(&b->build, IR_MAX, n, ir_constant_int(&b->build, s, 0));
	if (is_thin(b, d)) {
		ir_type ones = b->tile;
		for (unsigned k = 0; k < ones.rank; k++) ones.dim[k] = 1;
		i = ir_build1(&b->build, IR_BITCAST, ir_scalar_type(u), 1, (ir_value *[]){ir_convert(&b->build, i, s)});
		n = ir_build1(&b->build, IR_BITCAST, ir_scalar_type(u), 1, &n);
		return ir_splat(&b->build, ir_binary(&b->build, IR_LT, i, n), ones);
	}
	v = ir_convert(&b->build, v, s);
	v = ir_binary(&b->build, IR_ADD, ir_splat(&b->build, ir_convert(&b->build, i, s), v->type), v);
	v = ir_build1(&b->build, IR_BITCAST, ir_with_elem(v->type, u), 1, &v);
	n = ir_build1(&b->build, IR_BITCAST, ir_with_elem(n->type, u), 1, &n);
	return stand_along(b, ir_binary(&b->build, IR_LT, v, ir_splat(&b->build, n, v->type)), d);
}

/* Null: the whole block is inside. */
static ir_value *bounds(block *b)
{
	ir_value *all = NULL;
	for (unsigned d = 0; d < b->shape_type.rank; d++) {
		if (always_inside(b, d)) continue;
		ir_value *one = inside(b, d);
		if (all) {
			meet(b, &all, &one);
			all = ir_binary(&b->build, IR_AND, all, one);
		} else
			all = one;
	}
	return all ? stretch(b, all) : NULL;
}

/* The load, store or atomic that it has become. */
static ir_op *replace(ir_func *f, ir_op *o)
{
	bool loads = o->kind == IR_TENSOR_LOAD;
	ir_value *value = loads ? NULL : ir_arg(o, 1);
	block b = {.build = {.func = f, .block = o->block, .before = o, .at = o->at}, .base = ir_arg(o, 0)};
	b.shape_type = loads ? o->results[0]->type : value->type;
	unsigned rank = b.shape_type.rank, first = loads ? 1 : 2;
	assert(o->nargs == first + 3 * rank);
	b.thin = tensor_thin(o, b.shape_type);
	b.tile = b.shape_type;
	b.tile.rank = 0;
	for (unsigned d = 0; d < rank; d++)
		if (!is_thin(&b, d)) b.tile.dim[b.tile.rank++] = b.shape_type.dim[d];
	for (unsigned i = 0; i < 3 * rank; i++) b.operands[i] = ir_arg(o, first + i);
	b.index = b.operands;
	b.shape = b.operands + rank;
	b.stride = b.operands + 2 * rank;
	ir_value *args[3];
	ir_op *access;
	unsigned n = 0;
	args[n++] = pointers(&b);
	if (value) args[n++] = value = tensor_reshape(&b.build, value, b.tile);
	if ((args[n] = bounds(&b))) n++;
	if (loads) {
		ir_type whole = o->results[0]->type;
		ir_value *v = ir_build1(&b.build, IR_LOAD, ir_with_shape(whole, b.tile), n, args);
		v->name = o->results[0]->name;
		access = v->def;
		ir_replace(o->results[0], tensor_reshape(&b.build, v, whole));
	} else if (o->kind == IR_TENSOR_STORE) {
		access = ir_build(&b.build, IR_STORE, n, args, 0, NULL, 0);
	} else { /* returns nothing, so its order is nobody's business */
		access = ir_build(&b.build, IR_ATOMIC_RMW, n, args, 1, &value->type, 0);
		ir_set_rmw(access, IR_ATOMIC_ADD);
		ir_set_sem(access, IR_RELAXED);
		ir_set_scope(access, IR_SCOPE_GPU);
	}
	ir_erase(o);
	return access;
}

typedef struct expansion {
	pass_context *pass;
	ir_func *func;
} expansion;

static void visit(ir_op *o, void *context)
{
	expansion *e = context;
	if (o->kind != IR_TENSOR_LOAD && o->kind != IR_TENSOR_STORE && o->kind != IR_TENSOR_ATOMIC_ADD) return;
	const char *why;
	if (bulk_access_make(e->pass, e->func, o, &why)) return;
	ir_op *access = replace(e->func, o);
	if (why) vec_push(e->pass->arena, &e->pass->not_raised, ((pass_note){.op = access, .why = why}));
}

bool pass_expand_tensors(pass_context *p, ir_func *f)
{
	if (!pass_axis(p, f)) return false; /* about strides and bases, for tensor maps */
	ir_walk(f->body, visit, &(expansion){p, f});
	return true;
}
