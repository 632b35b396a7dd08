/* Extents that are no powers of two: their pieces, and what a reshape does to them.  See extents.h. */
#include "extents.h"

uint64_t ir_next_extent(uint64_t n)
{
	uint64_t unit = 1;
	assert(n && n <= UINT64_MAX / 2);
	while ((n + unit - 1) / unit > IR_MOST_ODD) unit *= 2;
	n = (n + unit - 1) / unit * unit;
	while (__builtin_popcountll(n) > IR_FEW_PIECES) n += n & (0 - n);
	return n;
}

bool ir_is_cut(ir_type t)
{
	for (unsigned d = 0; d < t.rank; d++)
		if (!ir_is_power(t.dim[d])) return true;
	return false;
}

unsigned ir_parts(ir_type t)
{
	unsigned n = 1;
	for (unsigned d = 0; d < t.rank; d++) n *= ir_pieces(t.dim[d]);
	return n;
}

void ir_part_place(ir_type t, unsigned i, unsigned place[IR_MAX_RANK])
{
	assert(i < ir_parts(t));
	for (unsigned d = t.rank; d-- > 0;) {
		place[d] = i % ir_pieces(t.dim[d]);
		i /= ir_pieces(t.dim[d]);
	}
}

unsigned ir_part_number(ir_type t, const unsigned *place)
{
	unsigned n = 0;
	for (unsigned d = 0; d < t.rank; d++) n = n * ir_pieces(t.dim[d]) + place[d];
	return n;
}

ir_type ir_part_type(ir_type t, unsigned i)
{
	unsigned place[IR_MAX_RANK];
	ir_part_place(t, i, place);
	for (unsigned d = 0; d < t.rank; d++) t.dim[d] = ir_piece(t.dim[d], place[d]);
	return t;
}

/* Of these dimensions only the first one that is not 1 wide may be no power of two: then pieces of it are runs. */
static bool leads(const uint32_t *dim, unsigned n)
{
	unsigned i = 0;
	while (i < n && dim[i] == 1) i++;
	for (i++; i < n; i++)
		if (!ir_is_power(dim[i])) return false;
	return true;
}

/* Pieces of the last dimension that is cut, in each of the rows in front of it. */
static uint32_t runs(const uint32_t *dim, unsigned n)
{
	uint32_t rows = 1;
	while (n && ir_is_power(dim[n - 1])) n--;
	if (n == 0) return 1;
	for (unsigned i = 0; i + 1 < n; i++) rows *= dim[i];
	return rows * ir_pieces(dim[n - 1]);
}

unsigned ir_reshape_groups(ir_type from, ir_type to, ir_group out[IR_MAX_RANK])
{
	unsigned n = 0, i = 0, j = 0;
	assert(ir_elements(from) == ir_elements(to));
	while (i < from.rank && j < to.rank) {
		ir_group g = {.from = i, .to = j};
		uint64_t a = from.dim[i++], b = to.dim[j++];
		while (a != b)
			if (a < b)
				a *= from.dim[i++];
			else
				b *= to.dim[j++];
		g.nfrom = i - g.from;
		g.nto = j - g.to;
		out[n++] = g;
	}
	if (n) { /* what is left has extents of 1 */
		out[n - 1].nfrom = from.rank - out[n - 1].from;
		out[n - 1].nto = to.rank - out[n - 1].to;
	}
	for (unsigned k = 0; k < n; k++) {
		const uint32_t *a = from.dim + out[k].from, *b = to.dim + out[k].to;
		out[k].moves = !leads(a, out[k].nfrom) || !leads(b, out[k].nto);
		uint32_t most = runs(a, out[k].nfrom), other = runs(b, out[k].nto);
		out[k].runs = out[k].moves ? (other > most ? other : most) : 0;
	}
	return n;
}

uint32_t ir_reshape_runs(ir_type from, ir_type to)
{
	ir_group group[IR_MAX_RANK];
	uint32_t most = 0;
	unsigned n = ir_reshape_groups(from, to, group);
	for (unsigned i = 0; i < n; i++)
		if (group[i].runs > most) most = group[i].runs;
	return most;
}
