/* Which instruction multiplies, and how it wants its tiles spread.
 *
 * In: a dot at the tile or mapped level.  Out: a row of the table of mma.sync forms, and the layouts of the operands
 * and of the sum.  assign_layouts and the lowering ask here, so that they cannot disagree. */
#ifndef BLK_MMA_H
#define BLK_MMA_H

#include "ir/ir.h"
#include "layout/layout.h"
#include "target/target.h"

/* One step: a tile [m, k] times [k, 8].  A register holds `elements` neighbours along k; lane bits 0 and 1 go on along
 * k, lane bits 2 to 4 along the other dimension of the operand. */
typedef struct mma_form {
	scalar type;       /* of the operands; f8e4m3 stands for both kinds */
	const char *name;  /* behind "mma.sync.aligned."; null: shuffles and fused multiply-adds */
	uint8_t precision; /* of f32 */
	uint8_t m, k, elements;
	uint8_t sm, ptx; /* the least that has it */
} mma_form;

/* Null: the target multiplies no tiles of this type; pass_prepare_dots has made another type of it. */
const mma_form *mma_form_of(const blk_target *, const ir_op *dot);

typedef struct mma_layouts {
	layout a, b, sum;
} mma_layouts;
void mma_layouts_of(const ir_op *dot, const mma_form *, unsigned num_warps, mma_layouts *);

#endif
