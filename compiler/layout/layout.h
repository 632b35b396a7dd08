/* Linear layouts over GF(2): which hardware place holds which element of a tile.
 *
 * A layout is a linear map from the bits of (register, lane, warp, cta) to the bits of a tile's coordinates, stored as
 * its images of the powers of two: col[in][i] is what bit i of input `in` adds (XOR) to the flattened element index.
 * Flattened: the fastest dimension (the last) occupies the low bits, so a flattened index of a distributed layout IS
 * the row-major element number.  All algebra is on uint32_t columns.  A zero column is duplication: two places hold one
 * element. Shared-memory layouts use the same struct with one input, LAYOUT_REG standing for the byte-free "offset" in
 * elements.
 *
 * Layouts of values are plain: every column is zero or a unit vector that no other column has, and no register column
 * is zero (a thread keeps an element once; lanes and warps may repeat it).  All families but the swizzled shared one
 * and all shape operations keep that.  A rank 0 layout (slice of a rank 1) exists in the algebra only; scalars carry no
 * layout.
 *
 * linear.c: the algebra.  families.c: blocked, slice and the other named layouts.  convert.c: conversion plans and
 * swizzles. */
#ifndef BLK_LAYOUT_H
#define BLK_LAYOUT_H

#include "../support/arena.h"
#include "../ir/ir.h"

typedef enum layout_in { LAYOUT_REG, LAYOUT_LANE, LAYOUT_WARP, LAYOUT_CTA, LAYOUT_INPUTS } layout_in;
enum { LAYOUT_OFFSET = LAYOUT_REG, LAYOUT_MAX_BITS = 21 };

typedef struct layout {
	uint8_t nin[LAYOUT_INPUTS]; /* number of bits of each input; lane always 5 for distributed layouts */
	uint32_t col[LAYOUT_INPUTS][LAYOUT_MAX_BITS];
	uint8_t rank, lg[IR_MAX_RANK]; /* log2 of the extents; lg[0] is dimension 0, the slowest */
} layout;

/* ---- linear.c: algebra ---- */
layout layout_of_shape(ir_type); /* rank and extents set, no inputs yet */
bool layout_equal(const layout *, const layout *);
unsigned layout_bits(const layout *);                /* total bits of the tile = sum of lg */
unsigned layout_shift(const layout *, unsigned dim); /* lowest flattened bit of a dimension */
uint32_t layout_apply(const layout *, uint32_t reg, uint32_t lane, uint32_t warp); /* flattened element index */
unsigned layout_coordinate(const layout *, uint32_t flat, unsigned dim);
bool layout_surjective(const layout *);
/* The columns of the bits of `index` that are set, added. */
static inline uint32_t layout_combine(const uint32_t *col, uint32_t index)
{
	uint32_t v = 0;
	for (; index; index &= index - 1) v ^= col[__builtin_ctz(index)];
	return v;
}
/* Of the highest bit; 0 of 0. */
static inline unsigned lg2(uint64_t n)
{
	return n ? 63u - (unsigned)__builtin_clzll(n) : 0;
}
bool layout_injective(const layout *);
/* Bits of an input whose column is zero or depends on earlier columns (order reg, lane, warp, cta): places with one of
 * these bits set hold duplicates; stores and atomics are done only where (index & mask) == 0. */
uint32_t layout_free_mask(const layout *, layout_in);
unsigned layout_registers(const layout *); /* 1 << nin[LAYOUT_REG] */
/* The same with register duplicates (zero or dependent register columns) removed. */
layout layout_strip_registers(const layout *);
/* For every element of `dst`'s places the `src` place that holds it: columns of src^-1 o dst, as bits of (reg, lane,
 * warp) packed with reg low: place = reg | lane << src.nin[REG] | warp << (src.nin[REG] + 5).  Registers preferred over
 * lanes over warps. */
typedef struct layout_map {
	uint8_t nin[LAYOUT_INPUTS], nout[LAYOUT_INPUTS];
	uint32_t col[LAYOUT_INPUTS][LAYOUT_MAX_BITS];
} layout_map;
bool layout_invert_and_compose(
	const layout *src, const layout *dst, layout_map *out); /* false if src is not surjective */
/* The same thing with less movement where several places hold the element: a lane or warp bit stays what it is if only
 * registers (then lanes) need to change. */
bool layout_nearest_source(const layout *src, const layout *dst, layout_map *out);
uint32_t layout_map_apply(const layout_map *, uint32_t reg, uint32_t lane, uint32_t warp); /* packed place */
bool layout_plain(const layout *); /* every column is zero or a unit vector of its own, no register column is zero */
/* "reg (0,1)(0,2) lane (1,0)... warp ()": dimensions in order, as ir_print shows it; an input without bits prints as
 * "()", and "cta" only where it has bits.  Rank 1 to 4. */
void layout_print(text *, const layout *);
bool layout_parse(const char **s, ir_type shape, layout *out); /* the inverse; advances *s past the last tuple */

/* ---- families.c ---- */
/* Blocked: for reg, lane, warp in turn and for each dimension in `order` (fastest first) append unit vectors; lane and
 * warp bits beyond the shape become zero columns, register bits beyond it are left out; coordinates left over become
 * further register columns (in `order` too). per_thread, threads
 * (product 32) and warps (product num_warps) are powers of two per dimension. */
layout layout_blocked(ir_type shape, const uint32_t *per_thread, const uint32_t *threads, const uint32_t *warps,
	const uint8_t *order);
/* A good default for memory access: 2^lg_vector elements a thread along order[0], lanes then warps along the order. */
layout layout_coalesced(ir_type shape, unsigned lg_vector, const uint8_t *order, unsigned num_warps);
/* The same with another order of the dimensions for the warps. */
layout layout_coalesced_warps(
	ir_type shape, unsigned lg_vector, const uint8_t *order, const uint8_t *warp_order, unsigned num_warps);
/* For work along the lines of an axis: a line's lowest bits lie in registers, the next in lanes, the rest in warps, the
 * other dimensions fill what is left; a line that is only just too long for a warp's lanes stays in one warp, and the
 * others repeat it.  Register bit i, and after the registers lane bits 0.., warp bits 0.., step the axis in order. */
layout layout_lines(ir_type shape, unsigned axis, unsigned num_warps);
/* Of mma.sync, on two dimensions or three with a batch in front.  The sum of m16n8 and m8n8; operands in which a
 * register holds that many neighbours along k.  Each of the three counts of warps, powers of two, splits one dimension
 * of the sum.
 */
typedef struct mma_warps {
	uint32_t batch, m, n;
} mma_warps;
layout layout_mma_accumulator(ir_type shape, mma_warps);
layout layout_mma_operand(ir_type shape, bool is_b, unsigned elements_per_register, mma_warps);
layout layout_wgmma_accumulator(ir_type shape, unsigned num_warps);
layout layout_swizzled_shared(
	ir_type shape, unsigned element_bytes, unsigned swizzle_bytes); /* 128, 64, 32: offset -> element */

/* ---- shape operations (linear.c): how a layout travels through an operation (none of them moves data) ---- */
layout layout_slice(const layout *, unsigned axis); /* after a reduction: drop the axis, then zero register columns */
/* The first 1 << lg elements along the axis, repeated where the others were; registers that held others are gone. */
layout layout_truncate(const layout *, unsigned axis, unsigned lg);
layout layout_expand(const layout *, unsigned axis);              /* the layout of expand_dims' result */
bool layout_unexpand(const layout *, unsigned axis, layout *out); /* inverse: axis has extent 1 */
layout layout_permute(const layout *, const uint8_t *order);      /* result dimension i = argument dimension order[i] */
layout layout_unpermute(const layout *, const uint8_t *order);    /* inverse */
layout layout_reshape(const layout *, ir_type to);                /* row-major regrouping: columns stay, lg changes */
/* A new last dimension of 2, whose bit is register bit 0: the layout of join's result. */
layout layout_join(const layout *);
bool layout_unjoin(const layout *, layout *out); /* inverse; false unless a register bit holds that dimension's bit */
/* The layout nearest to this one that layout_unjoin() takes: the last dimension's bit trades places with a register
 * bit; where a thread has one register only, it gets a second one and the other half of the threads repeats. */
layout layout_split_source(const layout *);
/* The rank 0 layout of a program: every thread has the one element. */
layout layout_everywhere(unsigned num_warps);
/* The layout that the argument of a broadcast must have so that result = copies of registers: dimensions that stretch
 * are dropped to extent 1; register columns that become zero are stripped.  And how result register r maps to the
 * argument's register. */
layout layout_unbroadcast(const layout *result, ir_type argument);
/* For narrow = layout_slice / layout_unbroadcast / layout_strip_registers of wide: the register of `narrow` that holds,
 * in the same lane and warp, the element which register `reg` of `wide` holds once the dropped coordinates are ignored.
 * `dropped` are the flattened bits of `wide` that narrow lacks: layout_dim_bits(wide, axis) for a slice,
 * layout_stretched_bits(wide, argument) for an unbroadcast, 0 for a strip. */
uint32_t layout_narrow_register(const layout *wide, uint32_t dropped, uint32_t reg);
uint32_t layout_dim_bits(const layout *, unsigned dim);
/* How many low register bits, log2, hold neighbours in row-major order: 1, 2, 4.. elements on. */
unsigned layout_lg_neighbours(const layout *);
uint32_t layout_stretched_bits(const layout *result, ir_type argument);

/* ---- convert.c: conversion plans (both layouts plain) ---- */
typedef enum layout_conversion {
	LAYOUT_SAME,        /* the same registers */
	LAYOUT_REGISTERS,   /* renaming: result register r is register layout_plan_register(r) of the argument */
	LAYOUT_SHUFFLES,    /* selects and shuffles inside warps, no scratch, no barrier */
	LAYOUT_WARP_SHARED, /* through shared memory, every warp its own part: bar.warp.sync is enough */
	LAYOUT_CTA_SHARED   /* through shared memory with a CTA barrier */
} layout_conversion;

enum {
	LAYOUT_MAX_STAGES = 10,
	LAYOUT_SCRATCH_LIMIT = 32 * 1024, /* bytes of one pass, where passes that all threads take part in suffice */
	LAYOUT_SCRATCH_MOST = 96 * 1024,  /* of one pass of any kind: what every target has, and a little left over */
};

typedef struct layout_place { /* one bit of an input */
	uint8_t in, bit;      /* layout_in */
} layout_place;

/* A stage renames registers differently in different threads: with p = parity(lane & lane_mask) ^ parity(warp &
 * warp_mask), new[x] = p ? old[x ^ reg_xor] : old[x], for every register x. */
typedef struct layout_stage {
	uint32_t lane_mask, warp_mask, reg_xor;
} layout_stage;

typedef enum layout_matrices {
	LAYOUT_NO_MATRICES,
	LAYOUT_MATRICES,           /* a thread's word is of the row lane / 4 */
	LAYOUT_MATRICES_TRANSPOSED /* its two elements are of the column lane / 4; 16-bit elements only */
} layout_matrices;

typedef struct layout_plan {
	layout_conversion kind;
	layout_map from; /* dst place -> src place, the nearest one */

	/* LAYOUT_REGISTERS and LAYOUT_SHUFFLES, all columns (index = bit of the input):
	 *   v[]  = argument registers after the `before` stages
	 *   t[r] = v[register(r)] of lane L(lane, warp) ^ lane_xor(r)          for each result register r
	 *   result[] = t[] after the `after` stages
	 * lanes_stay: L is the own lane, so t[r] needs no shuffle where lane_xor(r) == 0 and a shfl.bfly else;
	 * otherwise L is the XOR of lane_from_lane and lane_from_warp over the set bits: one shfl.idx a register. */
	uint8_t nbefore, nafter;
	layout_stage before[LAYOUT_MAX_STAGES], after[LAYOUT_MAX_STAGES];
	uint32_t register_from[LAYOUT_MAX_BITS], lane_xor_from[LAYOUT_MAX_BITS];
	uint32_t lane_from_lane[LAYOUT_MAX_BITS], lane_from_warp[LAYOUT_MAX_BITS];
	bool lanes_stay;

	/* Shared kinds.  For each pass p: every thread whose (lane & store_free_lane) and (warp & store_free_warp) are
	 * 0 stores its registers of pass p; barrier (of the warp or the CTA); every thread loads its result registers
	 * of pass p; where another pass follows, the barrier again.
	 * Offsets count elements from the op's scratch: layout_map_apply(&store, reg, lane, warp), same for load.
	 * A pass is the part of the tile where some coordinate bits have certain values; pass_store[k] (pass_load[k] on
	 * the loading side) is what steps the k-th of them.  A register or a thread takes part in pass p if those of
	 * its bits that stand there spell p: layout_pass_bits(). One access moves the 2^lg_vector registers that differ
	 * in the bits store_bit[0 ..] (load_bit); bit k of the number inside the access is register bit store_bit[k];
	 * the address is that of the register where they are 0.
	 */
	layout shared; /* offset -> flattened element (the bits of passes missing), swizzled free of bank conflicts */
	layout_map store, load;
	uint32_t store_free_lane, store_free_warp;
	uint8_t lg_vector_store, lg_vector_load;
	uint8_t store_bit[4], load_bit[4];
	/* Matrices: the loads are ldmatrix.  A warp's access brings 2^lg_matrices matrices of 8 rows of 16 bytes;
	 * `load` then gives the row that a lane names, row (lane & 7) of matrix lane >> 3, and one access of a thread
	 * is a word a matrix: the lowest bits of the number inside the access count elements of a word, those above
	 * matrices. */
	uint8_t matrices, lg_matrices; /* layout_matrices */
	uint8_t lg_passes;
	layout_place pass_store[LAYOUT_MAX_BITS], pass_load[LAYOUT_MAX_BITS];
	uint32_t bytes; /* scratch */
} layout_plan;
/* element_bytes 1, 2, 4, 8 (bool counts as 1). */
void layout_plan_conversion(const layout *src, const layout *dst, unsigned element_bytes, layout_plan *);
/* The same by shared memory whatever the layouts, equal ones included: for tiles that arrive there by themselves. */
void layout_plan_exchange(const layout *src, const layout *dst, unsigned element_bytes, layout_plan *);
/* The storing half of a plan, for a given layout of shared memory. */
void layout_plan_store(const layout *src, const layout *shared, unsigned element_bytes, layout_plan *);
/* The loading half, for a tile that others laid out by `shared` (offset -> element). */
void layout_plan_load(const layout *shared, const layout *l, unsigned element_bytes, layout_plan *);
/* Columns applied to a result register: which v[] it comes from, and what its source lane is XORed with. */
uint32_t layout_plan_register(const layout_plan *, uint32_t result_register);
uint32_t layout_plan_lane_xor(const layout_plan *, uint32_t result_register);
/* The bits of input `in` that pass `pass` asks for; all that it looks at for pass ~0. */
uint32_t layout_pass_bits(const layout_place *, unsigned lg_passes, layout_in, uint32_t pass);
/* Spreads the low bits of `number` to the register bits listed in `bit`: registers of an access. */
uint32_t layout_spread(const uint8_t *bit, unsigned nbits, uint32_t number);
/* Wavefronts (shared-memory cycles) that one warp access costs under the 32-bank model; for tests and reports. */
unsigned layout_wavefronts(const uint32_t *byte_address, unsigned lanes, unsigned bytes_per_lane);
/* Elements (log2) that consecutive registers of `l` hold contiguously along the flattened fastest order of memory when
 * dimension `dim` is contiguous: the low register bits must be 1, 2, 4.. steps of dim and aligned. */
unsigned layout_lg_contiguous(const layout *, unsigned dim);

#endif
