/* The two halves of a tile of rank 1, a row, of a mapped function.  See row_halves.c. */
#ifndef BLK_ROW_HALVES_H
#define BLK_ROW_HALVES_H

#include "ir/ir.h"

/* Each thread holds as much of one half as of the other. */
bool row_has_halves(const ir_value *row);
/* Of a row that has halves the first one, which 0, or the second one, 1. */
ir_value *row_half(arena *, ir_builder *, ir_value *row, unsigned which);
/* The row whose halves these are, in `like`'s type and layout. */
ir_value *row_join(arena *, ir_builder *, ir_value *const *halves, const ir_value *like);

#endif
