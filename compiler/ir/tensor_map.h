/* A tensor descriptor, CUDA's CUtensorMap, as the compiler knows it: what the operation tensor_map has, and a line
 * `map` of a kernel's signature (blkc.h) that the host makes one of.
 *
 *     f16 128 64 32 ; p1 ; p4 ; p3 ; p4 2 *
 *     of f16, swizzled in 128 bytes, boxes of 64 columns and 32 rows; of the address p1, p4 columns and p3 rows, which
 *     are p4 elements of 2 bytes apart
 *
 * Dimensions stand with the fastest first, as CUDA has them. */
#ifndef BLK_TENSOR_MAP_H
#define BLK_TENSOR_MAP_H

#include "ir.h"

typedef struct ir_tensor_map {
	scalar elem;
	bool rounds; /* f32 becomes tf32 as it is copied */
	unsigned swizzle, rank;
	uint32_t box[IR_MAP_RANK];
	/* Host expressions in postfix, as in blkc.h: bytes; elements; elements, of all dimensions but the fastest. */
	const char *address, *extent[IR_MAP_RANK], *stride[IR_MAP_RANK - 1];
} ir_tensor_map;

void ir_tensor_map_print(text *, const ir_tensor_map *);
/* False: the text is none. */
bool ir_tensor_map_read(arena *, const char *, ir_tensor_map *);
bool ir_tensor_map_equal(const ir_tensor_map *, const ir_tensor_map *);
/* The same elements in the same order, whatever boxes they are copied in. */
bool ir_tensor_map_same_array(const ir_tensor_map *, const ir_tensor_map *);
/* Each element has coordinates of its own: rows lie one behind the other, and so do matrices. */
bool ir_tensor_map_is_dense(const ir_tensor_map *);

#endif
