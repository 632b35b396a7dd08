/* Bulk copies of blocks through tensor maps: the agreement of the pass that makes them (tensor_maps.c), of scratch.c
 * and of the lowering.
 *
 * In: the type of a block.  Out: how it lies in shared memory and in which pieces it travels.  The one idea: a block is
 * cut into panels along its last dimension, as wide as the swizzled span (128 bytes, or the whole row where that is
 * less); a panel's rows lie one after the other, panels one after the other (layout_swizzled_shared); a copy moves a
 * panel, or where that has more than 256 rows a piece of it.  Fewer than 8 long rows lie one after the other, whole; so
 * does what is one row. */
#ifndef BLK_BULK_H
#define BLK_BULK_H

#include "layout/layout.h"
#include "passes/passes.h"

enum { BULK_BOX = 256, BULK_COPIES = 16, BULK_BYTES = 96 * 1024, BULK_ALIGN = 1024, BULK_BARRIER_BYTES = 16 };

typedef struct bulk_shape {
	unsigned swizzle;          /* bytes of the swizzled span; 0: rows lie plainly */
	unsigned panels, pieces;   /* copies: panels * pieces */
	unsigned split;            /* the dimension that pieces step */
	uint32_t box[IR_MAX_RANK]; /* of a copy, in the block's order of dimensions */
	uint32_t bytes, copy_bytes;
} bulk_shape;

/* False: no map fits: rank 0, rows that are no multiple of 16 bytes, too many copies. */
bool bulk_shape_of(ir_type block, bulk_shape *);
/* What a slot of a multibuffer has for the block: the next one begins aligned. */
uint32_t bulk_slot_bytes(const bulk_shape *);
/* So that the block is `shares` parts of as many copies each, one behind the other in shared memory, in which a swizzle
 * begins anew; false: it cannot be, and stays. */
bool bulk_shape_divide(ir_type block, unsigned shares, bulk_shape *);
/* Offset in shared memory -> element. */
layout bulk_layout(ir_type block);

/* bulk_parts.c: a block that leaves by parts, each warp's copied by itself in pieces of one box.  Piece number n, below
 * `copies`, is of the registers whose bits `outside` spell n; the one number k of them has k in the bits `inside`.  It
 * lies swizzled in buffer n % buffers of the warp, whose buffers are neighbours.  By rows it lies there plainly, rows
 * `pitch` bytes apart. */
typedef struct bulk_parts {
	uint32_t box[IR_MAX_RANK]; /* of a piece */
	unsigned swizzle, copies, buffers, pitch;
	uint32_t copy_bytes; /* of a piece's buffer */
	layout piece;        /* registers (those inside, counted anew) and lanes -> the box */
	unsigned ninside, noutside;
	uint8_t inside[LAYOUT_MAX_BITS], outside[LAYOUT_MAX_BITS];
} bulk_parts;

/* Of a store of a value with a layout; false: no warp holds boxes whole. */
bool bulk_parts_of(const ir_op *store, bulk_parts *);
/* Whether it only begins accesses of global memory, which go on by themselves: all that copy, but a store by_rows. */
bool bulk_begins_copies(const ir_op *);

/* An access of a block of an array; the array's dimensions in front of the block's are those in which it has extent 1.
 */
typedef struct bulk_access {
	ir_value *base;
	unsigned rank;                                                           /* of the array */
	ir_value *index[IR_MAP_RANK], *shape[IR_MAP_RANK], *stride[IR_MAP_RANK]; /* the last dimension has stride 1 */
	ir_type block;
	unsigned order[IR_MAX_RANK]; /* the block's dimension i is the access's order[i] */
} bulk_access;

/* tensor_maps.c: of a tensor's access, its dimension of stride 1 (the rank: it has none); those in which its block is 1
 * wide and that are the array's alone, as bits: so a matrix of a batch is one like any other, and what makes it [M, N]
 * again does nothing. */
unsigned tensor_stride_one(const ir_op *, ir_type block);
uint32_t tensor_thin(const ir_op *, ir_type block);
ir_value *tensor_reshape(ir_builder *, ir_value *, ir_type shape); /* to a shape with other dimensions of extent 1 */

/* tensor_maps.c: an access of a tensor becomes one by a map, where the target can and the host can make the map. False:
 * it is still there; half a sentence says why if it is for its base. */
bool bulk_access_make(pass_context *, ir_func *, ir_op *, const char **why);
/* The same of any load or store whose block is known to be that one; pass_axis() has seen its values. */
bool bulk_make(pass_context *, ir_func *, ir_op *, bulk_access *);
bool bulk_possible(const pass_context *);
bool bulk_runs_ahead(const ir_func *, const ir_op *);       /* in a loop: its copies would */
bool bulk_serves_loop(const pass_context *, const ir_op *); /* and a producer may make them anywhere (channels.c) */
enum { BULK_SHARES = 8 };                                   /* most programs of a cluster that bring a block together */

/* Products take the block of a bulk_load, and threads compute with it besides. */
bool bulk_feeds_products_and_threads(const ir_op *load);

/* A bulk_load whose map makes tf32 of f32. */
bool bulk_rounds(const ir_op *load);

#endif
