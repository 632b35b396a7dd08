/* How far results lie apart: sums over two arrays of elements, by all cores. */
#ifndef BLK_RUNTIME_DISTANCE_H
#define BLK_RUNTIME_DISTANCE_H

#include "support/scalar.h"

#include <stddef.h>
#include <stdint.h>

/* Of the squares of a - b.  Two NaNs are equal, and so are two infinities; integers are subtracted exactly. */
double sum_of_differences(scalar, const void *a, const void *b, size_t bytes);
/* Of a's squares; what is not finite counts as 0. */
double sum_of_squares(scalar, const void *a, size_t bytes);
/* The same over those that one of a and b has in other bits than `before`. */
double sum_of_changed_squares(scalar, const void *before, const void *a, const void *b, size_t bytes);

#endif
