/* What the files about wgmma share: an operand in shared memory, cut into the 16-byte pieces that its layout is made
 * of. */
#ifndef BLK_SIM_WARPGROUP_H
#define BLK_SIM_WARPGROUP_H

#include "sim.h"

enum { PRODUCT_M = 64, PRODUCT_N = 256, PRODUCT_K = 32, PRODUCT_PIECES = 2 * PRODUCT_N };

/* Of 32 bytes of k: a row is two pieces or, where it is transposed, a piece is eight rows at one k. */
typedef struct sim_tile {
	uint64_t start;
	uint32_t leading, stride; /* bytes: LBO, SBO */
	uint32_t swizzle, base;   /* bytes of the pattern's span: 0, 32, 64, 128; where it begins */
	bool transposed;
	uint32_t rows, k;
} sim_tile;

static inline sim_tile sim_tile_of(uint64_t descriptor, uint32_t rows, uint32_t k, bool transposed)
{
	static const uint8_t spans[] = {0, 128, 64, 32};
	return (sim_tile){.start = (descriptor & 0x3fff) << 4,
		.leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
		.stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4,
		.swizzle = spans[descriptor >> 62],
		.base = descriptor >> 49 & 7,
		.transposed = transposed,
		.rows = rows,
		.k = k};
}

/* The shared address of piece i of 2 rows. */
static inline uint64_t sim_tile_piece(const sim_tile *t, uint32_t i)
{
	assert(i < 2 * t->rows);
	uint32_t row = i / 2, half = i % 2, k = i % t->k, eight = i / t->k, span = t->swizzle;
	uint64_t a = t->start;
	if (!t->transposed)
		a += row / 8 * t->stride + (span ? row % 8 * span + half * 16 : row % 8 * 16 + half * t->leading);
	else if (span)
		a += eight * 16 % span + eight * 16 / span * t->leading + k % 8 * span + k / 8 * t->stride;
	else
		a += eight * t->stride + k % 8 * 16 + k / 8 * t->leading;
	if (span) a ^= (((a >> 7) - t->base) & (span / 16 - 1)) << 4;
	return a;
}

/* product.c: what a warpgroup's instruction computes. */
typedef struct sim_operands {
	union {
		float f[PRODUCT_M][PRODUCT_K];
		int32_t i[PRODUCT_M][PRODUCT_K];
	} a;
	union {
		float f[PRODUCT_K][PRODUCT_N];
		int32_t i[PRODUCT_K][PRODUCT_N];
	} b;
	union {
		float f[PRODUCT_M][PRODUCT_N];
		int32_t i[PRODUCT_M][PRODUCT_N];
	} d;
	bool bad_a[PRODUCT_M], bad_b[PRODUCT_N]; /* rows with undefined elements */
	bool any_bad;
} sim_operands;

/* The elements of one piece: 16 bytes and their undefined bits. */
void sim_product_piece(const sim_product *, sim_operands *, const sim_tile *, bool of_a, uint32_t i,
	const uint8_t *bytes, const uint8_t *undefined);
void sim_product_registers(const sim_product *, sim_operands *, const sim_instr *, const sim_warp *leader); /* a */
void sim_product_compute(const sim_product *, sim_operands *, const sim_warp *leader, bool adds);
void sim_product_store(const sim_product *, const sim_operands *, sim_warp *leader, bool adds);

#endif
