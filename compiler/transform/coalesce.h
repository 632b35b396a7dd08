/* Layouts for access to global memory: one for all loads and stores of one shape whose pointers run alike.
 *
 * In: a function at the tile level and the axis analysis.  Out: for a load or store the layout in which a warp touches
 * as few, as full memory sectors as it can; for any other value of that shape the same one, so that no conversion
 * stands between them.  See coalesce.c for the rules. */
#ifndef BLK_COALESCE_H
#define BLK_COALESCE_H

#include "passes/passes.h"

typedef struct coalesce_class {
	ir_type shape;
	uint8_t order[IR_MAX_RANK]; /* fastest dimension first */
	uint8_t lg_widest;          /* elements, log2: the widest access that one of its operations can do */
	uint8_t lg_store;           /* and the narrowest of its stores; UINT8_MAX without stores */
	uint8_t operand;            /* bytes of an element where all are loads for dots; 0 */
	uint8_t reduced;            /* mask of dimensions over which some tile of this shape is reduced */
	uint64_t bytes;             /* that all its operations move: the busiest class of a shape is its default */
	layout mapping;
} coalesce_class;

typedef struct coalesce {
	const pass_context *context;
	unsigned num_warps;
	VEC(coalesce_class *) classes;
} coalesce;

void coalesce_collect(coalesce *, const pass_context *, ir_func *);
const layout *coalesce_of_access(coalesce *, const ir_op *load_or_store);
/* For values that nothing else gives a layout: the class that their own axis information names when they are pointers,
 * else the busiest of their shape, else row-major. */
const layout *coalesce_of_value(coalesce *, const ir_value *);
/* A load of a tile much smaller than the function's largest: most likely an operand of a broadcast, whose user shall
 * choose the layout. */
bool coalesce_is_narrow(coalesce *, const ir_op *load);
/* The same beside a tile of so many elements. */
bool coalesce_is_narrow_beside(const ir_op *load, uint64_t elements);
/* True if a narrow load directly in layout `wanted` is no dearer than a coalesced one that is then converted. */
bool coalesce_direct_pays(coalesce *, const ir_op *load, const layout *wanted);
/* True if this store of a value that has the layout `natural` gets cheaper by first converting the value to the
 * coalesced layout. */
bool coalesce_convert_pays(coalesce *, const ir_op *store, const layout *natural);

#endif
