/* The warpgroup's instruction of sm_90a: which products it makes, and how it wants their tiles.
 *
 * In: a dot, or a wgmma operation.  Out: a row of the table of forms, which part of the sum each warpgroup makes, and
 * for an operand in shared memory where its elements lie and what its descriptors say.
 * The one idea: an operand in shared memory is what a tensor copy would write there: panels of up to 128 bytes along
 * the dimension whose elements are neighbours, a row after the other, the 16-byte chunks of a row swizzled by its
 * address.  Both directions of k are such tiles; only the descriptor's strides differ.
 *
 *   K-major: the panel runs along k, rows along m or n      MN-major: the panel runs along m or n, rows along k
 *     f16 A [128, 64], 128 bytes a row                        f16 B [64, 256], four panels of 64 columns
 *     row  0  | k 0 .. 63 |  -- 8 rows: stride 1024           k 0 | n 0 .. 63 |  panel 1: n 64 .. 127, 8192 bytes on
 *     row  1  | k 0 .. 63 |     next k16: 32 bytes on         k 1 | n 0 .. 63 |  8 k: stride 1024
 *     ...                                                     ...                next k16: 2048 bytes on */
#ifndef BLK_WGMMA_H
#define BLK_WGMMA_H

#include "ir/ir.h"
#include "layout/layout.h"
#include "target/target.h"

typedef struct wgmma_form {
	scalar type;       /* of the operands; f8e4m3 stands for both kinds, f32 for tf32 */
	const char *types; /* in the instruction's name: sum, a, b */
	uint8_t k;         /* of one instruction */
	bool turns;        /* operands may be MN-major */
	bool scales;       /* takes the immediate signs of a and b */
} wgmma_form;

/* Of the operand's type; null: none. */
const wgmma_form *wgmma_form_of(scalar);

/* Which part of a sum [m, n], or [batch, m, n], a warpgroup makes: 64 rows in each of `rows` places, `n` columns in
 * each of `columns`. */
typedef struct wgmma_shape {
	uint32_t n;                      /* of one instruction */
	uint32_t batches, rows, columns; /* instructions of a warpgroup, for one step of k */
	uint32_t width;                  /* columns of a warpgroup: n * columns */
} wgmma_shape;

/* The most columns of an instruction. */
uint32_t wgmma_widest(const ir_func *);
/* Whether an instruction takes so many columns, a power of two or not. */
bool wgmma_takes_columns(const ir_func *, const wgmma_form *, uint32_t columns);
/* Warpgroups take whole products of a batch, then rows, then columns.  False: the sum does not fall into parts of 64
 * rows and at least 8 columns, one for each four warps. */
bool wgmma_shape_of(ir_type sum, unsigned num_warps, uint32_t widest, wgmma_shape *);

/* An operand's tile in shared memory. */
typedef struct wgmma_tile {
	ir_type type;    /* rank 2, or 3: a batch, whose tiles go on along the dimension that is not fast */
	uint8_t fast;    /* the dimension whose elements are neighbours, 0 or 1: of the last two */
	uint8_t k;       /* the dimension of k, as fast */
	uint8_t swizzle; /* 128, 64 or 32: bytes of a panel's row */
	uint32_t panel;  /* bytes of a panel */
	uint32_t bytes;  /* of the tile, a multiple of WGMMA_ALIGN */
} wgmma_tile;

enum { WGMMA_ALIGN = 1024 }; /* a tile's first byte: where the pattern of 128 bytes repeats */

/* `run`: elements that one instruction takes along the other dimension.  False where a row would have less than 32
 * bytes, or k less than an instruction takes. */
bool wgmma_tile_make(ir_type, unsigned fast, unsigned k, uint32_t run, wgmma_tile *);
/* Of a tile of which the swizzle is known. */
wgmma_tile wgmma_tile_known(ir_type, unsigned fast, unsigned k, unsigned swizzle);
layout wgmma_tile_layout(const wgmma_tile *); /* offset in elements -> element */
/* Byte, before swizzling, of an element whose place in the batch, along k and along the other dimension is given. */
uint32_t wgmma_tile_offset(const wgmma_tile *, uint32_t batch, uint32_t other, uint32_t k);
/* Of a permutation: it swaps the last two dimensions, and leaves a batch in front. */
bool wgmma_swaps(const ir_op *permute);
/* All of a descriptor but the address, which is added to it: (address & 0x3ffff) >> 4. */
uint64_t wgmma_descriptor(const wgmma_tile *);

/* The first operand where it comes from registers. */
layout wgmma_register_layout(ir_type a, unsigned num_warps);
/* An operand that lies across k in memory but is read along k: 16 bytes of k and 4 across in each thread, so that it is
 * read in words from where it was loaded to and written in 16 bytes.  `spread`: that many lanes, as far as k reaches,
 * stand side by side along k. */
layout wgmma_turning_layout(ir_type, unsigned k, unsigned spread, unsigned num_warps);

/* ---- of a wgmma operation: a tile, or a multibuffer and a slot, for a and for b, then perhaps the sum so far ---- */

typedef enum wgmma_place { WGMMA_REGISTERS, WGMMA_SCRATCH, WGMMA_MULTIBUFFER } wgmma_place;

typedef struct wgmma_operand {
	wgmma_place place;     /* at the tile level: WGMMA_SCRATCH for a tile */
	const ir_value *value; /* tile or multibuffer */
	const ir_value *slot;  /* of a multibuffer */
	wgmma_tile tile;       /* not of registers */
	uint32_t scratch;      /* where its tile begins in the operation's own scratch */
	unsigned arg;          /* its number among the operation's operands */
} wgmma_operand;

typedef struct wgmma_plan {
	const wgmma_form *form;
	wgmma_shape shape;
	wgmma_operand operand[2];
	const ir_value *sum; /* null: starts from nothing */
	uint32_t k;          /* extent */
	uint32_t scratch_bytes;
} wgmma_plan;

/* Where the parts stand among the operands, without a look at layouts.  False: they are not as they should be. */
bool wgmma_parts(const ir_op *, wgmma_plan *);
/* Of a mapped operation; false where a tile does not fit the instruction. */
bool wgmma_plan_make(const ir_op *, unsigned num_warps, wgmma_plan *);

/* Cycles that the tensor cores take for a warpgroup's part, if nobody else has them. */
uint32_t wgmma_cycles(const wgmma_plan *);

/* It begins a product, or waits for one. */
static inline bool wgmma_is_product(const ir_op *o)
{
	return o->kind == IR_WGMMA || o->kind == IR_WGMMA_WAIT;
}

/* The product that the wait is for, or the loop that leaves it running, if that is in the wait's block; else null. */
const ir_op *wgmma_waited_for(const ir_op *wait);
/* Somebody else than a product, or the next iteration, takes the sum that the wait gives. */
bool wgmma_others_see(const ir_op *wait);

/* Bits of the attribute `transposed`: the tile in the multibuffer is [k, m], is [n, k]. */
enum { WGMMA_TRANSPOSED_A = 1, WGMMA_TRANSPOSED_B = 2 };

#endif
