/* The passes, one file each (analysis/, transform/, async/, target/nvptx/), and what they share.
 * The driver verifies after each with --verify-each and in `make mean`, prints for --print-after, times for
 * --time-passes. */
#ifndef BLK_PASSES_H
#define BLK_PASSES_H

#include "../ir/ir.h"
#include "../layout/layout.h"
#include "target/target.h"

/* Why something stayed as it was, for reports. */
typedef struct pass_note {
	const ir_op *op;
	const char *why;
} pass_note;

/* What was done, for reports. */
typedef struct pass_remark {
	span at;
	const char *what;
} pass_remark;

typedef struct pass_context {
	arena *arena;
	diags *diags;
	const blk_target *target;
	struct axis_info *axis; /* by value id; pass_axis() fills it */
	uint32_t naxis;
	const ir_func *axis_of;
	VEC(pass_note) notes;       /* loads of a product that pipeline did not let run ahead */
	VEC(pass_note) not_raised;  /* loads of a product, or their multibuffers, that no tensor map can copy */
	VEC(pass_note) alone;       /* multibuffers that each program of a cluster fills for itself */
	VEC(pass_note) not_swapped; /* dots of few rows that are not made transposed */
	VEC(pass_note) whole;       /* consumers of long tiles that did not become loops over parts */
	VEC(pass_remark) liberties; /* with floats, which they cannot be told from, but for the bounds of language.md */
	VEC(pass_remark) masks;     /* that are looked at under a branch */
	VEC(pass_remark) maxima;    /* that are exchanged between lanes under one */
	VEC(pass_remark) order;     /* of a loop's products that begin later than they may, and reads of rows ahead */
	const char *rows_together; /* why 12 warps are not three groups of rows; null: they are, or are not asked for */
	ir_func *whole_rows;       /* the program for 8 warps, should no producer be found for three groups */
} pass_context;

/* What each does and where it stands: pipelines.def. */
#define PASS(pipeline, name, ...) bool pass_##name(pass_context *, ir_func *);
#include "pipelines.def"
#undef PASS

/* Whether the first operand of this wgmma shall come from registers: it is computed, or stays the same round a loop. */
bool wgmma_wants_registers(const pass_context *, const ir_op *wgmma);
/* Operand i lies across k, which the instruction cannot read: it comes in *l, for its way to shared memory. */
bool wgmma_transposes(const pass_context *, const ir_op *wgmma, unsigned i, layout *l);

/* axis.c: fills context.axis.  Facts about a value outlive rewriting, so the work is done again only when there are
 * values that it has not seen: whoever asks for facts calls it first. */
bool pass_axis(pass_context *, ir_func *);
/* For reports: the stages that were asked for, where a multibuffer has fewer; else 0. */
unsigned pipeline_lowered(const ir_func *, const ir_op *multibuffer);
/* Slots of a multibuffer that a stage has: one for each group of rows that has a block of its own, or one. */
unsigned row_group_blocks(const ir_func *, const ir_op *multibuffer);

/* axis.c: contiguity, divisibility, constancy per dimension (playbook: Triton's AxisInfo); all powers of two, of
 * aligned groups of neighbours along the dimension */
typedef struct axis_info {
	bool known;                         /* false: nothing computed (floats); read as all ones */
	uint32_t contiguity[IR_MAX_RANK];   /* groups of this many are x, x+1, .. */
	uint64_t divisibility[IR_MAX_RANK]; /* first element of each such group is a multiple (bytes for pointers) */
	uint32_t constancy[IR_MAX_RANK];    /* groups of this many are equal */
} axis_info;                                /* scalars use index 0: contiguity 1, constancy 1 */
const axis_info *axis_get(const pass_context *, const ir_value *); /* never null */
/* A power of two of which all elements are multiples; of pointers, bytes. */
uint64_t axis_divisor(const pass_context *, const ir_value *);
/* What keeps an access from being wider. */
typedef enum axis_limit { AXIS_WIDEST, AXIS_ATOMIC, AXIS_SCALAR, AXIS_SPREAD, AXIS_UNALIGNED, AXIS_MASK } axis_limit;
extern const char *const axis_limit_text[]; /* ORDER axis_limit */
/* Elements (a power of two, at most 16 bytes' worth) that one access of this load or store may cover along dimension
 * `dim`, from the pointer's contiguity and alignment and the mask's constancy; *why may be null. */
unsigned axis_access_width(const pass_context *, const ir_op *access, unsigned dim, axis_limit *why);

#endif
