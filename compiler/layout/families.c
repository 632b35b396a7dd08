/* The named families of layouts, as explicit columns.
 *
 * In: a shape and a few powers of two.  Out: a layout.  The one idea: a family is an order in which the unit vectors of
 * the tile are dealt out to register, lane and warp bits; a bit that asks for a coordinate beyond the tile gets a zero
 * column (the tile repeats over it), and coordinates that nobody asked for become further register bits, so that every
 * family covers every shape. */
#include "layout.h"

#include <string.h>

enum { LG_SHORT = 3 }; /* registers (log2) that a line may take to stay in one warp */

/* Appends one input bit that steps dimension `dim` by 2^bit. */
static void deal(layout *l, layout_in in, unsigned dim, unsigned bit)
{
	bool inside = dim < l->rank && dim < IR_MAX_RANK && bit < l->lg[dim];
	if (in == LAYOUT_REG && !inside) return;
	assert(in < LAYOUT_INPUTS && l->nin[in] < LAYOUT_MAX_BITS);
	l->col[in][l->nin[in]++] = inside ? UINT32_C(1) << (layout_shift(l, dim) + bit) : 0;
}

/* Register bits for every coordinate bit that no column covers yet, dimensions in `order`. */
static void deal_rest(layout *l, const uint8_t *order)
{
	uint32_t covered = 0;
	for (unsigned in = 0; in < LAYOUT_INPUTS; in++)
		for (unsigned i = 0; i < l->nin[in]; i++) covered |= l->col[in][i];
	for (unsigned k = 0; k < l->rank; k++)
		for (unsigned bit = 0; bit < l->lg[order[k]]; bit++)
			if (!(covered >> (layout_shift(l, order[k]) + bit) & 1)) deal(l, LAYOUT_REG, order[k], bit);
	assert(layout_plain(l) && layout_surjective(l));
}

layout layout_blocked(
	ir_type shape, const uint32_t *per_thread, const uint32_t *threads, const uint32_t *warps, const uint8_t *order)
{
	layout l = layout_of_shape(shape);
	const uint32_t *counts[] = {per_thread, threads, warps};
	unsigned next[IR_MAX_RANK] = {0};
	for (unsigned in = LAYOUT_REG; in <= LAYOUT_WARP; in++)
		for (unsigned k = 0; k < l.rank; k++)
			for (unsigned d = order[k], i = 0; i < lg2(counts[in][d]); i++)
				deal(&l, (layout_in)in, d, next[d]++);
	deal_rest(&l, order);
	return l;
}

/* Deals `count` bits of one input, each the lowest that nobody has yet, dimensions in `order`; zero columns after. */
static void deal_along(layout *l, layout_in in, unsigned count, const uint8_t *order, unsigned next[IR_MAX_RANK])
{
	for (unsigned k = 0; count; count--) {
		while (k < l->rank && next[order[k]] >= l->lg[order[k]]) k++;
		if (k < l->rank)
			deal(l, in, order[k], next[order[k]]++);
		else
			deal(l, in, IR_MAX_RANK, 0);
	}
}

layout layout_coalesced_warps(
	ir_type shape, unsigned lg_vector, const uint8_t *order, const uint8_t *warp_order, unsigned num_warps)
{
	layout l = layout_of_shape(shape);
	unsigned next[IR_MAX_RANK] = {0};
	if (l.rank) deal_along(&l, LAYOUT_REG, lg_vector < l.lg[order[0]] ? lg_vector : l.lg[order[0]], order, next);
	deal_along(&l, LAYOUT_LANE, 5, order, next);
	deal_along(&l, LAYOUT_WARP, lg2(num_warps), warp_order, next);
	deal_rest(&l, order);
	return l;
}

layout layout_coalesced(ir_type shape, unsigned lg_vector, const uint8_t *order, unsigned num_warps)
{
	return layout_coalesced_warps(shape, lg_vector, order, order, num_warps);
}

layout layout_lines(ir_type shape, unsigned axis, unsigned num_warps)
{
	layout l = layout_of_shape(shape);
	assert(axis < l.rank);
	unsigned all = layout_bits(&l), warps = lg2(num_warps), length = l.lg[axis];
	unsigned room = all > 5 + warps ? all - 5 - warps : 0; /* register bits of a thread */
	unsigned held = length < room ? length : room, lanes = length - held < 5 ? length - held : 5;
	unsigned far = length - held - lanes; /* bits of the axis that warps step */
	if (far && held + far <= LG_SHORT) held += far, far = 0;
	uint8_t dim = (uint8_t)(l.rank - 1), bit = 0; /* next coordinate of the other dimensions */
	for (unsigned i = 0; i < held; i++) deal(&l, LAYOUT_REG, axis, i);
	for (unsigned i = 0; i < 5 + warps; i++) {
		layout_in in = i < 5 ? LAYOUT_LANE : LAYOUT_WARP;
		unsigned number = i < 5 ? i : i - 5, own = i < 5 ? lanes : far;
		if (number < own) {
			deal(&l, in, axis, held + (i < 5 ? number : lanes + number));
			continue;
		}
		while (dim < l.rank && (dim == axis || bit == l.lg[dim])) dim--, bit = 0;
		if (dim < l.rank)
			deal(&l, in, dim, bit++);
		else
			deal(&l, in, IR_MAX_RANK, 0);
	}
	uint8_t order[IR_MAX_RANK];
	for (unsigned d = 0; d < l.rank; d++) order[d] = (uint8_t)(l.rank - 1 - d);
	deal_rest(&l, order);
	return l;
}

/* Warps take whole batches, then steps of `first` and up along two dimensions; a dimension that is not this tile's
 * (IR_MAX_RANK) is repeated. */
static void deal_warps(layout *l, mma_warps w, unsigned m, unsigned n)
{
	for (unsigned i = 0; i < lg2(w.batch); i++) deal(l, LAYOUT_WARP, l->rank == 3 ? 0 : IR_MAX_RANK, i);
	for (unsigned i = 0; i < lg2(w.m); i++) deal(l, LAYOUT_WARP, m, 4 + i);
	for (unsigned i = 0; i < lg2(w.n); i++) deal(l, LAYOUT_WARP, n, 3 + i);
}

layout layout_mma_accumulator(ir_type shape, mma_warps w)
{
	layout l = layout_of_shape(shape);
	assert(l.rank == 2 || l.rank == 3);
	unsigned row = l.rank - 2u, column = l.rank - 1u;
	deal(&l, LAYOUT_REG, column, 0);
	deal(&l, LAYOUT_REG, row, 3);
	for (unsigned i = 0; i < 2; i++) deal(&l, LAYOUT_LANE, column, 1 + i);
	for (unsigned i = 0; i < 3; i++) deal(&l, LAYOUT_LANE, row, i);
	deal_warps(&l, w, row, column);
	deal_rest(&l, (uint8_t[]){(uint8_t)column, (uint8_t)row, 0});
	return l;
}

layout layout_mma_operand(ir_type shape, bool is_b, unsigned elements_per_register, mma_warps w)
{
	layout l = layout_of_shape(shape);
	assert(l.rank == 2 || l.rank == 3);
	unsigned row = l.rank - 2u, column = l.rank - 1u;
	unsigned k = is_b ? row : column, other = is_b ? column : row, lgw = lg2(elements_per_register);
	for (unsigned i = 0; i < lgw; i++) deal(&l, LAYOUT_REG, k, i);
	if (!is_b) deal(&l, LAYOUT_REG, other, 3);
	deal(&l, LAYOUT_REG, k, lgw + 2);
	for (unsigned i = 0; i < 2; i++) deal(&l, LAYOUT_LANE, k, lgw + i);
	for (unsigned i = 0; i < 3; i++) deal(&l, LAYOUT_LANE, other, i);
	deal_warps(&l, w, is_b ? IR_MAX_RANK : other, is_b ? other : IR_MAX_RANK);
	/* b has columns before more of k: its four matrices, too, are then [16, 16], for elements of 16 bits, and one
	 * step's. */
	deal_rest(&l, (uint8_t[]){(uint8_t)column, (uint8_t)row, 0});
	return l;
}

layout layout_wgmma_accumulator(ir_type shape, unsigned num_warps)
{
	layout l = layout_of_shape(shape);
	assert(l.rank == 2 || l.rank == 3);
	unsigned m = l.rank - 2u, n = l.rank - 1u, batch = 0, row = 4, column = l.lg[n];
	deal(&l, LAYOUT_REG, n, 0);
	deal(&l, LAYOUT_REG, m, 3);
	for (unsigned i = 0; i < 2; i++) deal(&l, LAYOUT_LANE, n, 1 + i);
	for (unsigned i = 0; i < 3; i++) deal(&l, LAYOUT_LANE, m, i);
	/* Four warps make a warpgroup of 64 rows; further warpgroups take more of a batch, then more rows, then halves
	 * of the columns. */
	for (unsigned i = 0; i < lg2(num_warps); i++) {
		if (i >= 2 && m && batch < l.lg[0])
			deal(&l, LAYOUT_WARP, 0, batch++);
		else if (i < 2 || row < l.lg[m])
			deal(&l, LAYOUT_WARP, m, row++);
		else if (column > 3)
			deal(&l, LAYOUT_WARP, n, --column);
		else
			deal(&l, LAYOUT_WARP, IR_MAX_RANK, 0);
	}
	deal_rest(&l, (uint8_t[]){(uint8_t)n, (uint8_t)m, 0});
	return l;
}

layout layout_swizzled_shared(ir_type shape, unsigned element_bytes, unsigned swizzle_bytes)
{
	layout l = layout_of_shape(shape);
	assert(l.rank > 0);
	unsigned lg_element = lg2(element_bytes), columns = l.lg[l.rank - 1];
	unsigned rows = layout_bits(&l) - columns, panel = columns;
	unsigned xor_bits = swizzle_bytes >= 32 ? lg2(swizzle_bytes) - 4 : 0; /* 128: 3, 64: 2, 32: 1 */
	while (xor_bits && columns + lg_element < xor_bits + 4) xor_bits--;   /* the row is shorter than the pattern */
	if (xor_bits) panel = xor_bits + 4 - lg_element;
	uint32_t *col = l.col[LAYOUT_OFFSET];
	unsigned n = 0;
	for (unsigned i = 0; i < panel; i++) col[n++] = UINT32_C(1) << i;
	for (unsigned i = 0; i < rows; i++) {
		/* Byte bit b >= 7 of a shared address flips bit b - 3: the 16-byte chunk of the row. */
		unsigned b = panel + i + lg_element;
		col[n] = UINT32_C(1) << (columns + i);
		if (xor_bits && b >= 7 && b - 7 < xor_bits) col[n] |= UINT32_C(1) << (b - 3 - lg_element);
		n++;
	}
	for (unsigned i = panel; i < columns; i++) col[n++] = UINT32_C(1) << i;
	assert(n == layout_bits(&l));
	l.nin[LAYOUT_OFFSET] = (uint8_t)n;
	assert(layout_surjective(&l));
	return l;
}
