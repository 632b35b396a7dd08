/* A block's rows as long stores: bulk_store by_rows (async/bulk_parts.c).
 *
 * In: a block of two dimensions whose warps hold whole rows, and the map of the array that it goes to.  Out: each warp
 * writes some of its rows to shared memory, `pitch` bytes apart, and stores them row by row, 16 bytes a lane, as far as
 * they lie in the array.  The one idea: what the copy engine takes from a map, the address, the extents and the
 * strides, are sums and products of parameters (analysis/host_value.h), which lanes compute as well. */
#include "analysis/host_value.h"
#include "async/bulk.h"
#include "ir/tensor_map.h"
#include "lower.h"

#include <assert.h>

enum { ACCESS = 16 }; /* bytes of a lane's */

typedef struct rows {
	lower *l;
	const ir_op *o;
	const ir_tensor_map *map;
	bulk_parts p;
	unsigned rank, front, bytes;     /* of an element */
	LLVMValueRef index[IR_MAP_RANK]; /* of the warp's part, i64, slowest first */
	LLVMValueRef lane, buffer;
	LLVMValueRef at; /* in the buffer, what the lane's first register has, bytes */
} rows;

static LLVMValueRef number(const rows *r, uint64_t n)
{
	return lower_const(r->l, r->l->i64, (int64_t)n);
}

/* A parameter as the host counts with it: i64. */
static LLVMValueRef parameter(const rows *r, uint32_t i)
{
	assert(i < r->l->func->nparams);
	LLVMValueRef v = LLVMGetParam(r->l->function, i);
	ir_type t = r->l->func->params[i].type;
	if (t.pointer) return LLVMBuildPtrToInt(r->l->builder, v, r->l->i64, "");
	return LLVMBuildIntCast2(r->l->builder, v, r->l->i64, scalar_is_signed((scalar)t.elem), "");
}

static LLVMValueRef chosen(LLVMBuilderRef b, LLVMIntPredicate first, LLVMValueRef x, LLVMValueRef y)
{
	return LLVMBuildSelect(b, LLVMBuildICmp(b, first, x, y, ""), x, y, "");
}

/* What host_value_divisor() has read. */
static LLVMValueRef value_of(const rows *r, const char *expression)
{
	LLVMBuilderRef b = r->l->builder;
	LLVMValueRef stack[HOST_MOST_TEXT];
	unsigned n = 0;
	host_token t;
	while (host_value_next(&expression, &t)) {
		assert(n < HOST_MOST_TEXT && (t.kind == 'p' || t.kind == 'n' || n > 1));
		if (t.kind == 'p')
			stack[n++] = parameter(r, t.param);
		else if (t.kind == 'n')
			stack[n++] = number(r, t.number);
		else {
			LLVMValueRef y = stack[--n], *x = &stack[n - 1];
			*x = t.kind == '*'   ? LLVMBuildMul(b, *x, y, "")
			     : t.kind == '+' ? LLVMBuildAdd(b, *x, y, "")
					     : chosen(b, t.kind == '<' ? LLVMIntSLT : LLVMIntSGT, *x, y);
		}
	}
	assert(n == 1);
	return stack[0];
}

/* Bytes from one index of an array's dimension to the next one. */
static LLVMValueRef pitch_of(const rows *r, unsigned dim)
{
	assert(dim + 1 < r->rank);
	LLVMValueRef elements = value_of(r, r->map->stride[r->rank - 2 - dim]);
	return LLVMBuildMul(r->l->builder, elements, number(r, r->bytes), "");
}

/* Bytes from the buffer's begin to the element of these coordinates. */
static uint32_t offset_of(const rows *r, uint32_t element)
{
	return layout_coordinate(&r->p.piece, element, 0) * r->p.pitch +
	       layout_coordinate(&r->p.piece, element, 1) * r->bytes;
}

/* The bits of the lane's number choose rows and columns, each its own: what they add, adds up. */
static LLVMValueRef lane_offset(const rows *r)
{
	LLVMBuilderRef b = r->l->builder;
	LLVMValueRef sum = r->buffer;
	for (unsigned i = 0; i < r->p.piece.nin[LAYOUT_LANE]; i++) {
		LLVMValueRef bit =
			LLVMBuildAnd(b, LLVMBuildLShr(b, r->lane, lower_i32(r->l, i), ""), lower_i32(r->l, 1), "");
		bit = LLVMBuildMul(b, bit, lower_i32(r->l, offset_of(r, r->p.piece.col[LAYOUT_LANE][i])), "");
		sum = LLVMBuildAdd(b, sum, bit, "");
	}
	return sum;
}

/* Registers that hold neighbours in a row are one access, of 16 bytes at most. */
static unsigned lg_vector(const rows *r)
{
	unsigned lg = 0;
	while (lg < r->p.ninside && r->bytes << lg < ACCESS && r->p.piece.col[LAYOUT_REG][lg] == UINT32_C(1) << lg)
		lg++;
	for (unsigned i = 0; i < r->p.piece.nin[LAYOUT_LANE]; i++) /* and the lanes' columns are on as many */
		while (lg && layout_coordinate(&r->p.piece, r->p.piece.col[LAYOUT_LANE][i], 1) & ((1u << lg) - 1)) lg--;
	return lg;
}

static void put_piece(const rows *r, const tile *all, uint32_t outside)
{
	lower *l = r->l;
	unsigned bytes = r->bytes, lg = lg_vector(r);
	for (uint32_t k = 0; k < 1u << r->p.ninside; k += 1u << lg) {
		uint32_t at = layout_apply(&r->p.piece, k, 0, 0);
		LLVMTypeRef type = LLVMTypeOf(all->at[outside | layout_spread(r->p.inside, r->p.ninside, k)]);
		LLVMValueRef v = LLVMGetUndef(LLVMVectorType(type, 1u << lg));
		for (uint32_t i = 0; i < 1u << lg; i++)
			v = LLVMBuildInsertElement(l->builder, v,
				all->at[outside | layout_spread(r->p.inside, r->p.ninside, k | i)], lower_i32(l, i),
				"");
		LLVMValueRef to = LLVMBuildAdd(l->builder, r->at, lower_i32(l, offset_of(r, at)), "");
		LLVMSetAlignment(LLVMBuildStore(l->builder, v, lower_shared_address(l, to)), bytes << lg);
	}
}

/* Neighbouring lanes store neighbouring 16 bytes of a row: the fewest sectors are written in part. */
static void store_rows(const rows *r, uint32_t outside)
{
	lower *l = r->l;
	LLVMBuilderRef b = l->builder;
	uint32_t first = layout_apply(ir_arg(r->o, 1)->layout, outside, 0, 0);
	unsigned bytes = r->bytes, last = r->rank - 1;
	unsigned lanes = r->p.box[1] * bytes / ACCESS, together = 32 / lanes; /* rows */
	LLVMValueRef above = LLVMBuildUDiv(b, r->lane, lower_i32(l, lanes), ""), has_row = NULL;
	LLVMValueRef beside = LLVMBuildURem(b, r->lane, lower_i32(l, lanes), "");
	if (together > r->p.box[0]) { /* narrow rows: there are lanes for more of them than the buffer has */
		has_row = LLVMBuildICmp(b, LLVMIntULT, above, lower_i32(l, r->p.box[0]), "");
		above = LLVMBuildURem(b, above, lower_i32(l, r->p.box[0]), "");
	}
	LLVMValueRef column = LLVMBuildZExt(b, beside, r->l->i64, "");
	column = LLVMBuildMul(b, column, number(r, ACCESS / bytes), "");
	column = LLVMBuildAdd(b, column, r->index[last], "");
	column = LLVMBuildAdd(b, column, number(r, layout_coordinate(ir_arg(r->o, 1)->layout, first, 1)), "");
	LLVMValueRef inside = LLVMBuildICmp(b, LLVMIntULT, column, value_of(r, r->map->extent[0]), "");
	if (has_row) inside = LLVMBuildAnd(b, inside, has_row, "");
	LLVMValueRef to =
		LLVMBuildAdd(b, value_of(r, r->map->address), LLVMBuildMul(b, column, number(r, bytes), ""), "");
	for (unsigned d = 0; d < r->front; d++) {
		LLVMValueRef there =
			LLVMBuildICmp(b, LLVMIntULT, r->index[d], value_of(r, r->map->extent[last - d]), "");
		inside = LLVMBuildAnd(b, inside, there, "");
		to = LLVMBuildAdd(b, to, LLVMBuildMul(b, r->index[d], pitch_of(r, d), ""), "");
	}
	LLVMValueRef row = LLVMBuildAdd(b, r->index[last - 1], LLVMBuildZExt(b, above, r->l->i64, ""), "");
	row = LLVMBuildAdd(b, row, number(r, layout_coordinate(ir_arg(r->o, 1)->layout, first, 0)), "");
	LLVMValueRef from = LLVMBuildMul(b, above, lower_i32(l, r->p.pitch), "");
	from = LLVMBuildAdd(b, from, LLVMBuildMul(b, beside, lower_i32(l, ACCESS), ""), "");
	from = LLVMBuildAdd(b, from, r->buffer, "");
	for (uint32_t i = 0; i < r->p.box[0]; i += together) {
		LLVMValueRef at = LLVMBuildAdd(b, row, number(r, i), "");
		LLVMValueRef there = LLVMBuildICmp(b, LLVMIntULT, at, value_of(r, r->map->extent[1]), "");
		LLVMValueRef source = LLVMBuildAdd(b, from, lower_i32(l, i * r->p.pitch), "");
		LLVMValueRef v =
			LLVMBuildLoad2(b, LLVMVectorType(l->i32, ACCESS / 4), lower_shared_address(l, source), "");
		LLVMSetAlignment(v, ACCESS);
		LLVMValueRef args[2 + ACCESS / 4] = {LLVMBuildAnd(b, inside, there, ""),
			LLVMBuildAdd(b, to, LLVMBuildMul(b, at, pitch_of(r, last - 1), ""), "")};
		for (unsigned k = 0; k < ACCESS / 4; k++)
			args[2 + k] = LLVMBuildExtractElement(b, v, lower_i32(l, k), "");
		lower_asm(l, "@$0 st.global.v4.b32 [$1], {$2, $3, $4, $5};", "b,l,r,r,r,r", l->none, 2 + ACCESS / 4,
			args, LOWER_ASM_EFFECT);
	}
}

/* A warp's buffer is written when its lanes have read what was in it, and read when all have written. */
void lower_store_by_rows(lower *l, ir_op *o)
{
	assert(o->kind == IR_BULK_STORE && ir_get_by_rows(o));
	LLVMBuilderRef b = l->builder;
	rows r = {.l = l, .o = o, .map = ir_arg(o, 0)->def->map, .rank = o->nargs - 2u};
	r.bytes = ir_element_bytes(ir_arg(o, 1)->type);
	r.front = r.rank - 2;
	if (!bulk_parts_of(o, &r.p) || o->shared_bytes < l->func->num_warps * r.p.copy_bytes) {
		lower_fail(l, o, "no shared memory was set aside for a block's rows");
		return;
	}
	for (unsigned d = 0; d < r.rank; d++) {
		LLVMValueRef i = lower_arg(l, o, 2 + d).at[0];
		if (d >= r.front) i = lower_warp_index(l, ir_arg(o, 1)->layout, d - r.front, i);
		r.index[d] = LLVMBuildSExt(b, i, l->i64, "");
	}
	r.lane = LLVMBuildAnd(b, l->tid, lower_i32(l, 31), "");
	r.buffer = LLVMBuildMul(b, lower_warp(l), lower_i32(l, r.p.copy_bytes), "");
	r.buffer = LLVMBuildAdd(b, r.buffer, lower_scratch(l, o), "");
	r.at = lane_offset(&r);
	tile all = lower_arg(l, o, 1);
	for (unsigned n = 0; n < r.p.copies; n++) {
		uint32_t outside = layout_spread(r.p.outside, r.p.noutside, n);
		if (n || ir_get_reuses(o) || ir_get_syncwarp(o)) lower_warp_barrier(l);
		put_piece(&r, &all, outside);
		lower_warp_barrier(l);
		store_rows(&r, outside);
	}
}
