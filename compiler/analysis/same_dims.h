/* Which dimensions of tiles count the same thing.
 *
 * In: a function of the tile level.  Out: a class for each dimension of each tile; two are of one class where an
 * operation takes element i along the one with element i along the other:
 *     %s = dot %q, %k : f32[192, 192]    rows of %q and %s are one class, columns of %k and %s another
 *     %e = exp %s                        each dimension of %e has the class of %s's
 * The one idea: extents say nothing (192 rows and 192 columns), operations do; classes are joined as they are read. */
#ifndef BLK_SAME_DIMS_H
#define BLK_SAME_DIMS_H

#include "ir/ir.h"

typedef struct same_dims {
	uint32_t *parent; /* of dimension d of the value numbered v: [v * IR_MAX_RANK + d] */
	uint32_t known;   /* values that were there */
} same_dims;

same_dims same_dims_find(arena *, const ir_func *);
/* The class's number.  Of values that were there when classes were found. */
uint32_t same_dims_class(const same_dims *, const ir_value *, unsigned dim);

#endif
