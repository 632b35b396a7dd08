/* Whether an integer can be below 0.
 *
 * In: a scalar, and the operation that it is for.  Out: true where it never is; what that comes down to on the host's
 * side is left as guards.  The one idea: a sum of products of what is never negative is never negative, and arguments
 * the host looks at: no tensor map is made where a guard is negative. */
#ifndef BLK_INT_RANGE_H
#define BLK_INT_RANGE_H

#include "affine.h"

enum { MOST_GUARDS = 12, MOST_SIGNS = 4096 };

typedef struct int_range {
	affine_context context;
	const ir_op *at; /* assumptions in front of it hold */
	affine guard[MOST_GUARDS];
	unsigned nguards;
	ir_induction carried;
	unsigned visits;
} int_range;

bool int_range_never_negative(int_range *, ir_value *);
bool int_range_sum_never_negative(int_range *, const affine *); /* no term of it is */
bool int_range_guard(int_range *, const affine *); /* the host has to see that it is not below 0; false: too many */
/* Before `b`: an extent, or 0 where a guard is below 0. */
ir_value *int_range_extent(ir_builder *b, const int_range *, ir_value *extent);

#endif
