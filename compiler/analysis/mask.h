/* What a mask says of indices.
 *
 * In: a mask of the tile level.  Out: the comparisons that it is a conjunction of, each as two sums (affine.h):
 *     (i < M)[:, None] & (l + k < K)[None, :]   ->   i's start + place 0 <= M - 1;  k + l's start + place 1 <= K - 1
 * The one idea: comparisons in tensors' bounds are unsigned, of signed sums: (u32)i < (u32)max(n, 0) says 0 <= i < n,
 * and (u32)i < (u32)n where n is not below 0. */
#ifndef BLK_MASK_H
#define BLK_MASK_H

#include "affine.h"

/* Where the mask lets an element through, low <= high, in which places are dimensions of the mask. */
typedef struct mask_bound {
	affine low, high;
	bool from_zero;       /* and 0 <= low */
	bool wide;            /* compared in 64 bits */
	bool if_not_negative; /* only where `high` is not below 0; else it lets through whatever is not */
} mask_bound;

/* A bound of null is a part of the mask that is no such comparison.  Null: go on. */
typedef const char *mask_reader(void *, const mask_bound *);

/* The first answer of `read` that is not null, or null. */
const char *mask_bounds(affine_context *, ir_value *mask, mask_reader *read, void *);

#endif
