/* Operations that put elements elsewhere: join and split, gather, histogram.
 *
 * In: tiles in the layouts that assign_layouts gave them.  Out: the registers of the results.
 * The one idea: join and split only name registers, because their one new coordinate bit is a register bit; gather and
 * histogram do not know where an element goes before they run, so they go through shared memory, where every place is
 * as near as any other. */
#include "lower.h"

#include "async/scratch.h"

#include <assert.h>
#include <string.h>

/* ---- join, split ---- */

static bool shifted(const layout *half, const layout *whole, layout_in in)
{
	for (unsigned i = 0; i < whole->nin[in]; i++)
		if (whole->col[in][i] != (half ? half->col[in][i] << 1 : 0)) return false;
	return true;
}

/* For each register of the half (of result number 0), the register of the whole; *other has the second one's bit. */
static bool match(lower *l, const ir_op *o, const layout *whole, const layout *half, register_map *m, uint32_t *other)
{
	uint32_t wanted[LAYOUT_MAX_BITS];
	unsigned n = half ? half->nin[LAYOUT_REG] : 0;
	for (unsigned i = 0; i < n; i++) wanted[i] = half->col[LAYOUT_REG][i] << 1;
	wanted[n] = 1;
	if (!lower_register_map(whole, n + 1, wanted, m) || !shifted(half, whole, LAYOUT_LANE) ||
		!shifted(half, whole, LAYOUT_WARP)) {
		lower_fail(l, o, "'%s' would move data between threads", ir_info(o)->name);
		return false;
	}
	*other = m->col[n];
	return true;
}

void lower_join(lower *l, ir_op *o)
{
	assert(o->kind == IR_JOIN);
	tile a = lower_arg(l, o, 0), b = lower_arg(l, o, 1), out = lower_new_tile(l, ir_result(o));
	register_map m;
	uint32_t other;
	if (!match(l, o, ir_result(o)->layout, ir_arg(o, 0)->layout, &m, &other)) return;
	for (uint32_t r = 0; r < a.n; r++) {
		out.at[lower_map_register(&m, r)] = a.at[r];
		out.at[lower_map_register(&m, r) ^ other] = b.at[r];
	}
	lower_set(l, ir_result(o), out);
}

void lower_split(lower *l, ir_op *o)
{
	assert(o->kind == IR_SPLIT);
	tile whole = lower_arg(l, o, 0);
	register_map m;
	uint32_t other;
	if (!match(l, o, ir_arg(o, 0)->layout, o->results[0]->layout, &m, &other)) return;
	for (unsigned k = 0; k < 2; k++) {
		tile out = lower_new_tile(l, o->results[k]);
		for (uint32_t r = 0; r < out.n; r++) out.at[r] = whole.at[lower_map_register(&m, r) ^ (k ? other : 0)];
		lower_set(l, o->results[k], out);
	}
}

/* ---- what both of the others need ---- */

static bool has_scratch(lower *l, const ir_op *o)
{
	if (o->shared_bytes >= scratch_bytes(l->func, o)) return true;
	lower_fail(l, o, "no shared memory was set aside for '%s'", ir_info(o)->name);
	return false;
}

/* The byte at which the element of a register lies when a tile is stored row-major in the scratch. */
static LLVMValueRef row_major(lower *l, const ir_op *o, const layout *y, unsigned bytes, uint32_t r)
{
	tid_map m = lower_tid_columns(y);
	for (unsigned i = 0; i < LOWER_TID_BITS; i++) m.col[i] *= bytes;
	LLVMValueRef v = lower_combine(l, lower_tid_map(l, &m), lower_map_bits(&m), layout_apply(y, r, 0, 0) * bytes);
	return LLVMBuildAdd(l->builder, v, lower_scratch(l, o), "");
}

/* Registers that one access of row-major memory may cover. */
static unsigned access_width(const layout *y, unsigned bytes)
{
	unsigned width = 1u << layout_lg_neighbours(y);
	return width * bytes > 16 ? 16 / bytes : width;
}

/* Every element once, by its owners. */
static void store_row_major(lower *l, const ir_op *o, const layout *y, ir_type t, const LLVMValueRef *v)
{
	unsigned bytes = ir_element_bytes(t), width = access_width(y, bytes);
	LLVMValueRef owner = lower_owner(l, y);
	for (uint32_t r = 0; r < layout_registers(y); r += width) {
		words w = lower_pack(l, t, width, v + r);
		lower_shared_store(l, row_major(l, o, y, bytes, r), &w, owner);
	}
}

/* An integer as 32 bits, or 64 when it has them. */
static LLVMValueRef widened(lower *l, scalar s, LLVMValueRef v)
{
	if (scalar_bits(s) >= 32) return v;
	return scalar_is_signed(s) ? LLVMBuildSExt(l->builder, v, l->i32, "")
				   : LLVMBuildZExt(l->builder, v, l->i32, "");
}

/* ---- gather ---- */

/* The index, of 32 or 64 bits, as an i32 from 0 to extent - 1, whatever it was. */
static LLVMValueRef clamped(lower *l, LLVMValueRef v, uint32_t extent)
{
	assert(extent);
	LLVMTypeRef type = LLVMTypeOf(v);
	LLVMValueRef args[2] = {v, lower_const(l, type, extent - 1)};
	v = lower_intrinsic(l, type == l->i64 ? "llvm.umin.i64" : "llvm.umin.i32", type, 2, args);
	return type == l->i64 ? LLVMBuildTrunc(l->builder, v, l->i32, "") : v;
}

/* A column of the result's layout as the byte of x that it would move, but for the axis. */
static uint32_t without_axis(const layout *from, const layout *to, unsigned axis, unsigned bytes, uint32_t column)
{
	assert(axis < from->rank);
	uint32_t element = 0;
	for (unsigned d = 0; d < to->rank; d++)
		if (d != axis) element |= layout_coordinate(to, column, d) << layout_shift(from, d);
	return element * bytes;
}

static void read_gathered(lower *l, const ir_op *o, tile index, tile out)
{
	assert(o->kind == IR_GATHER);
	const ir_value *x = ir_arg(o, 0), *result = o->results[0];
	const layout *from = x->layout, *to = result->layout;
	unsigned axis = ir_get_axis(o), bytes = ir_element_bytes(x->type);
	unsigned shift = layout_shift(from, axis) + (unsigned)__builtin_ctz(bytes);
	ir_type t = ir_element(x->type);
	scalar s = ir_arg(o, 1)->type.elem;
	tid_map m = lower_tid_columns(to);
	for (unsigned i = 0; i < LOWER_TID_BITS; i++) m.col[i] = without_axis(from, to, axis, bytes, m.col[i]);
	for (uint32_t r = 0; r < out.n; r++) {
		LLVMValueRef given = widened(l, s, index.at[r]), at = clamped(l, given, x->type.dim[axis]);
		at = LLVMBuildShl(l->builder, at, lower_i32(l, shift), "");
		LLVMValueRef rest = lower_combine(l, lower_tid_map(l, &m), lower_map_bits(&m),
			without_axis(from, to, axis, bytes, layout_apply(to, r, 0, 0)));
		at = LLVMBuildAdd(l->builder, LLVMBuildOr(l->builder, at, rest, ""), lower_scratch(l, o), "");
		words w = lower_word_shape(t, 1);
		lower_shared_load(l, at, bytes, &w);
		w.at[0] = lower_checked(l, "gather", w.at[0], given, scalar_is_signed(s), x->type.dim[axis]);
		lower_unpack(l, t, 1, &out.at[r], &w);
	}
}

void lower_gather(lower *l, ir_op *o)
{
	assert(o->kind == IR_GATHER);
	const ir_value *x = ir_arg(o, 0);
	if (!has_scratch(l, o)) return;
	store_row_major(l, o, x->layout, ir_element(x->type), lower_arg(l, o, 0).at);
	lower_barrier(l);
	tile out = lower_new_tile(l, ir_result(o));
	read_gathered(l, o, lower_arg(l, o, 1), out);
	lower_set(l, ir_result(o), out);
}

/* ---- histogram ---- */

/* Adds 1 to the bin in the threads where the predicate holds. */
static void count(lower *l, const ir_op *o, LLVMValueRef bin, LLVMValueRef predicate)
{
	LLVMValueRef offset = LLVMBuildShl(l->builder, bin, lower_i32(l, 2), "");
	offset = LLVMBuildAdd(l->builder, offset, lower_scratch(l, o), "");
	LLVMValueRef args[2] = {LLVMBuildPtrToInt(l->builder, lower_shared_address(l, offset), l->i32, ""), predicate};
	lower_asm(l, "@$1 red.shared.add.u32 [$0], 1;", "r,b", l->none, 2, args, LOWER_ASM_EFFECT);
}

static void count_all(lower *l, const ir_op *o)
{
	assert(o->kind == IR_HISTOGRAM);
	const ir_value *x = ir_arg(o, 0);
	scalar s = x->type.elem;
	tile v = lower_arg(l, o, 0), mask = {0};
	if (o->nargs > 1) mask = lower_arg(l, o, 1);
	LLVMValueRef owner = lower_owner(l, x->layout);
	for (uint32_t r = 0; r < v.n; r++) {
		LLVMValueRef bin = widened(l, s, v.at[r]);
		LLVMTypeRef type = LLVMTypeOf(bin);
		LLVMValueRef inside = LLVMBuildICmp(
			l->builder, LLVMIntULT, bin, lower_const(l, type, o->results[0]->type.dim[0]), "");
		if (type == l->i64) bin = LLVMBuildTrunc(l->builder, bin, l->i32, "");
		count(l, o, bin, lower_and(l, inside, lower_and(l, owner, mask.at ? mask.at[r] : NULL)));
	}
}

void lower_histogram(lower *l, ir_op *o)
{
	assert(o->kind == IR_HISTOGRAM);
	const ir_value *result = ir_result(o);
	const layout *y = result->layout;
	ir_type t = ir_element(result->type);
	tile out = lower_new_tile(l, result);
	unsigned width = access_width(y, 4);
	if (!has_scratch(l, o)) return;
	for (uint32_t r = 0; r < out.n; r++) out.at[r] = lower_i32(l, 0);
	store_row_major(l, o, y, t, out.at);
	lower_barrier(l);
	count_all(l, o);
	lower_barrier(l);
	for (uint32_t r = 0; r < out.n; r += width) {
		words w = lower_word_shape(t, width);
		lower_shared_load(l, row_major(l, o, y, 4, r), 4 * width, &w);
		lower_unpack(l, t, width, &out.at[r], &w);
	}
	lower_set(l, result, out);
}
