/* A tensor map: how a bulk tensor copy sees a window of global memory.  The host makes it before a launch, 128 bytes.
 *
 * In: a request.  Out, on a GPU: what the driver encodes of it (cuTensorMapEncodeTiled, no interleave, zero fill); on
 * the simulator: the request itself, whose size is therefore the map's. Dimension 0 is the innermost. */
#ifndef BLK_RUNTIME_TENSOR_MAP_H
#define BLK_RUNTIME_TENSOR_MAP_H

#include <assert.h>
#include <stdint.h>

enum { TENSOR_MAP_BYTES = 128, TENSOR_MAP_RANK = 5 };

#define TENSOR_MAP_MAGIC UINT64_C(0x70616d2e6b6c6201) /* "\1blk.map": a simulated map that was really made */

typedef struct tensor_map_request {
	uint64_t magic;
	uint64_t address;                 /* a multiple of 16 */
	uint8_t type;                     /* enum scalar: what fills and what a reduction adds */
	uint8_t element_bytes;            /* 1, 2, 4 or 8 */
	uint8_t rank;                     /* 1 to 5 */
	uint8_t swizzle;                  /* bytes of the swizzled span: 0, 32, 64 or 128 */
	uint32_t box[TENSOR_MAP_RANK];    /* elements that a copy moves, each at most 256; box[0] * element_bytes is a
					     multiple of 16 and at most the swizzled span */
	uint64_t extent[TENSOR_MAP_RANK]; /* elements; what lies outside reads as 0 and is not written */
	uint64_t stride[TENSOR_MAP_RANK]; /* bytes, multiples of 16; [0] is element_bytes */
	uint64_t rounds;                  /* 1: a load makes tf32 of f32, the nearest one */
} tensor_map_request;

static_assert(sizeof(tensor_map_request) == TENSOR_MAP_BYTES, "a simulated map is its request");

/* What is passed to a kernel. */
typedef struct tensor_map {
	_Alignas(64) uint8_t bytes[TENSOR_MAP_BYTES];
} tensor_map;

typedef struct tensor_map_cache tensor_map_cache; /* tensor_map.c */

#endif
