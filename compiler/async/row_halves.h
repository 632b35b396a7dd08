/* The two halves of a row of numbers of a mapped function.  See row_halves.c. */
#ifndef BLK_ROW_HALVES_H
#define BLK_ROW_HALVES_H

#include "ir/ir.h"

/* Of a row, a tile of rank 1, each thread has as much of one half as of the other. */
bool row_has_halves(const ir_value *row);
/* Its first half, which 0, or its second one, 1. */
ir_value *row_half(arena *, ir_builder *, ir_value *row, unsigned which);
/* The row whose halves these are, in `like`'s type and layout. */
ir_value *row_join(arena *, ir_builder *, ir_value *const *halves, const ir_value *like);

#endif
