/* Pointer analysis, and what raise_to_tma makes of it: a load whose pointers are a window of an array.
 *
 * raise_to_tma.c    which loads are looked at, what the pointers say, and the load by a map
 * pointer_bounds.c  what the mask says: where the array ends
 * pointer_range.c   that no coordinate is below 0, where the mask does not say it */
#ifndef BLK_POINTER_ANALYSIS_H
#define BLK_POINTER_ANALYSIS_H

#include "int_range.h"

/* A dimension of the array. */
typedef struct window_side {
	affine_term stride; /* in elements: a number and values that the host knows */
	affine at;          /* where the window begins; values of the device */
	int place;          /* the tile's dimension that lies along it; -1: the window is 1 wide there */
	bool bounded, from_zero;
	bool in_i32;   /* the mask compares it in 32 bits, and no product is in it that might wrap around */
	affine extent; /* if bounded: of values that the host knows */
} window_side;

typedef struct window {
	int_range range;
	ir_op *load, *loop;
	ir_value *root;
	bool narrow;
	affine offset; /* of the array from the root; values that the host knows */
	unsigned n;
	window_side side[IR_MAX_RANK];
} window;

bool window_of_host(const window *, const affine *);
/* Half a sentence that says why it is no window; null: it is one. */
const char *window_bounds(window *);
const char *window_range(window *);

#endif
