/* Extents of tiles: an odd number of at most 127 times a power of two.
 *
 * Layouts know powers of two only.  So a tile of other extents is, on a GPU, several tiles: an extent is a sum of
 * powers of two, its pieces, from the greatest to the smallest, and a tile's parts are all combinations of its
 * extents' pieces.
 *     f32[192, 80]     192 = 128 + 64, 80 = 64 + 16: parts [128, 64] [128, 16] [64, 64] [64, 16]
 * The one idea: what the pieces are depends on the extent alone, so tiles that meet are cut alike. */
#ifndef BLK_IR_EXTENTS_H
#define BLK_IR_EXTENTS_H

#include "ir.h"

enum { IR_MOST_ODD = 127, IR_MOST_RUNS = 256, IR_FEW_PIECES = 3 };

static inline bool ir_is_power(uint32_t n)
{
	return n && !(n & (n - 1));
}
static inline bool ir_extent_fits(uint32_t n)
{
	return n && n / (n & (0 - n)) <= IR_MOST_ODD;
}
/* An extent that is at least n, which is not 0, and has few pieces: for messages. */
uint64_t ir_next_extent(uint64_t n);

static inline unsigned ir_pieces(uint32_t extent)
{
	return (unsigned)__builtin_popcount(extent);
}
static inline uint32_t ir_piece_offset(uint32_t extent, unsigned i)
{
	uint32_t at = 0;
	for (; i; i--) at |= UINT32_C(1) << (31 - __builtin_clz(extent & ~at));
	return at;
}
static inline uint32_t ir_piece(uint32_t extent, unsigned i)
{
	assert(i < ir_pieces(extent));
	return UINT32_C(1) << (31 - __builtin_clz(extent & ~ir_piece_offset(extent, i)));
}
/* An extent that is no power of two. */
bool ir_is_cut(ir_type);
unsigned ir_parts(ir_type);
/* Part i, row-major: its pieces' numbers, and its type. */
void ir_part_place(ir_type, unsigned i, unsigned place[IR_MAX_RANK]);
unsigned ir_part_number(ir_type, const unsigned *place);
ir_type ir_part_type(ir_type, unsigned i);

/* A reshape falls into groups: the fewest neighbouring dimensions of either side that hold as many elements. */
typedef struct ir_group {
	unsigned from, nfrom, to, nto; /* dimensions */
	bool moves;                    /* parts of one side are not parts of the other */
	uint32_t runs;                 /* where it moves: pieces of rows of the side that has more of them */
} ir_group;
unsigned ir_reshape_groups(ir_type from, ir_type to, ir_group out[IR_MAX_RANK]);
/* The most runs of a group: IR_MOST_RUNS is what the language takes. */
uint32_t ir_reshape_runs(ir_type from, ir_type to);

#endif
