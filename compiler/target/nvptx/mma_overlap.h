/* Vector work of a loop's body that overlaps a running product.
 *
 * In: a wait for a product in a loop's body, behind the wait for another one.  Out: the sum along rows and the
 * exponentials that stand between the two, and which takes longer, they or the product.
 * The one idea: exponentials have a unit of their own, as products have, and each takes a known time.  Where a product
 * takes as long as they do, they belong beside it.  Where it is done before they are, what follows the wait
 * (conversions, scaled sums) is better interleaved with them. */
#ifndef BLK_MMA_OVERLAP_H
#define BLK_MMA_OVERLAP_H

#include "ir/ir.h"

enum { MMA_OVERLAP_MOST = 8 };
/* What is worth a vote on whether it is scaled: so many registers of a thread, and so many for each factor. */
enum { RESCALE_LEAST_REGISTERS = 32, RESCALE_LEAST_SHARE = 8 };

typedef struct mma_overlap {
	ir_value *summary; /* the last that is made of a reduction, of which a thread holds a few registers; or null */
	ir_value *exponentials[MMA_OVERLAP_MOST]; /* tiles */
	unsigned n;
	uint32_t cycles;  /* of them all */
	uint32_t product; /* cycles; 0: it is not known, or another product still runs behind the wait */
	bool outlasts;    /* it is known, and they take longer */
} mma_overlap;

/* False: the wait is no such one. */
bool mma_overlap_find(const ir_func *, const ir_op *wait, mma_overlap *);
/* A softmax, or the like, that goes on when the product is done. */
bool mma_overlap_outlasts(const ir_func *, const ir_op *wait);

#endif
