/* Where an integer lies: the one analysis of ranges.
 *
 * int_range.c         what holds in every launch: int_range_of(v), an interval that each element of v is in.
 *                         arange(0, 64) + program_id(1) * 64   ->   0 .. 63 + 65534 * 64
 * int_range_guards.c  what holds if the host finds it: whether a scalar can be below 0.  What that comes down to on the
 *                     host's side is left as guards; no tensor map is made where a guard is negative.
 *                         program_id(0) * n   ->   never below 0, with the guard n
 *
 * The one idea: signed arithmetic of 32 and 64 bits is taken not to wrap around, as in axis.c and affine.h; so a sum of
 * products of what is never negative is never negative. */
#ifndef BLK_INT_RANGE_H
#define BLK_INT_RANGE_H

#include "affine.h"

typedef struct int_bounds {
	int64_t low, high; /* inclusive; of u64, INT64_MAX stands for all that is larger as well */
} int_bounds;

enum { INT_RANGE_PROGRAMS = 65535 /* of a grid's second and third axis */ };

int_bounds int_range_of(const ir_value *); /* of a tile: of all elements; of a float or a pointer: all of i64 */
int_bounds int_range_of_type(scalar);

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
