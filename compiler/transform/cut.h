/* Inside cut_extents: what its files share.  A tile whose extents are no powers of two has parts (ir/extents.h), which
 * are values of their own; its users become users of the parts. */
#ifndef BLK_CUT_H
#define BLK_CUT_H

#include "ir/extents.h"
#include "passes/passes.h"

typedef struct cut {
	pass_context *pass;
	ir_func *func;
	ir_builder build;
	ir_value ***parts; /* by value id, row-major; null: the value is not cut */
	uint32_t known;    /* ids below this have a place there */
	VEC(ir_op *) dead; /* in program order: operations that their parts have replaced */
	VEC(ir_op *) kept; /* whose operands, results or block arguments grew parts: loops, branches, ends of regions */
	ir_value **map;    /* by the ids of regions that are copied, for ir_clone */
	bool failed;       /* after a diagnostic */
} cut;

/* Part i of a value; of one that is not cut the whole. */
ir_value *cut_part(const cut *, const ir_value *, unsigned i);
/* That is what part i of a value is; of one that is not cut, the value. */
void cut_give(cut *, ir_value *of, unsigned i, ir_value *part);
/* The operation again, with these operands and results, and its regions. */
ir_op *cut_again(cut *, const ir_op *, unsigned nargs, ir_value *const *args, const ir_type *results);
void cut_regions(cut *, const ir_op *from, ir_op *to);

/* cut_reshape.c: tiles as three dimensions, of which the middle one is taken apart and put together. */
ir_value *cut_shaped(cut *, ir_value *, ir_type shape);
void cut_reshape(cut *, ir_op *);
void cut_flip(cut *, ir_op *);

/* cut_combine.c: what combines elements or looks for them. */
void cut_reduce(cut *, ir_op *);
void cut_scan(cut *, ir_op *);
void cut_dot(cut *, ir_op *);
void cut_gather(cut *, ir_op *);
void cut_histogram(cut *, ir_op *);

#endif
