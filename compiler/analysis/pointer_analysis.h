/* Pointer analysis, and what is made of it: loads whose pointers are a window of an array, and arrays that begin where
 * the program says.
 *
 * async/raise_to_tma.c  which loads are looked at, what the pointers say, and the load by a map
 * pointer_terms.c       along which dimension a term counts
 * pointer_bounds.c      what the mask says: where the array ends
 * pointer_range.c       that no coordinate is below 0, where the mask does not say it
 * pointer_base.c        the same of a tensor's base, which has no mask */
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
	window_side side[IR_MAP_RANK];
} window;

/* An extent that no index reaches (runtime/device/tensor_map.c). */
#define WINDOW_NO_END (INT64_C(1) << 31)

/* Functions that give text: half a sentence that says why it is no window; null: it is one. */
extern const char WINDOW_TOO_MANY[];

const char *window_no_sum(const ir_value *pointer); /* why affine_of() can say nothing of it */
void window_split(const window *, const affine_term *, affine_term *host, affine_term *device);
window_side *window_new_side(window *, const affine_term *stride, int place); /* null: there are too many */
const char *window_terms(window *, const affine *pointer);                    /* those without a place */
bool window_guard_size(window *);
bool window_of_host(const window *, const affine *);
uint64_t window_divisor(const pass_context *, const affine_term *); /* a power of two that the term is a multiple of */
const char *window_bounds(window *);
const char *window_range(window *);

/* Of a scalar pointer: the root, and a side for each part of its offset that only the device knows.  The strides are
 * multiples of 16 bytes. */
const char *window_of_base(window *, ir_value *base);

/* Before `b`, in i32, i64 and i64. */
void window_build_side(ir_builder *b, const window_side *, ir_value **index, ir_value **extent, ir_value **stride);
ir_value *window_build_base(ir_builder *b, const window *);

#endif
