/* The families of matrix instructions, one row each; the first that the target has and that does not refuse makes a
 * dot.
 *
 * In: a dot at the tile level.  Out: its family.  The one idea: what passes need to know of a family stands in its row.
 *
 *     family     which dots        operands from               sum in      begun by   waited for by
 *     wgmma      wgmma_refusal()   registers (a) and shared    registers   wgmma      wgmma_wait
 *     mma.sync   all others        registers                   registers   dot        -
 *
 * A family's files are here too: NAME.c its forms and where operands and sums lie, NAME_lower.c its code. */
#ifndef BLK_MMA_FAMILY_H
#define BLK_MMA_FAMILY_H

#include "passes/passes.h"

typedef struct mma_family {
	const char *name;
	unsigned needs; /* target_capability; 0: what every target has */
	/* Why it does not make this dot, in half a sentence; null: it does.  Null instead of a function: it makes
	 * all. */
	const char *(*refusal)(const pass_context *, const ir_op *dot);
	void (*select)(const pass_context *, ir_op *dot); /* the dot becomes the family's operations; null: it stays */
} mma_family;

const mma_family *mma_family_of(const pass_context *, const ir_op *dot);
/* Why no faster family of the target makes it; null: there is none. */
const char *mma_why_not_faster(const pass_context *, const ir_op *dot);

/* ---- wgmma_select.c ---- */
const char *wgmma_refusal(const pass_context *, const ir_op *dot);
void wgmma_select(const pass_context *, ir_op *dot);
/* A dot of few rows and enough columns, whose transposed product wgmma might make. */
bool wgmma_may_swap(const pass_context *, const ir_op *dot);
/* Why it stays as it is, in half a sentence; null: it need not. */
const char *wgmma_swap_refusal(const pass_context *, const ir_op *dot);

#endif
