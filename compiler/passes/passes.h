/* The passes, one file each, in the order in which driver.c runs them.
 * A pass is `bool pass(pass_context *, ir_func *)`: false after it has added a diagnostic.  The driver verifies after
 * each pass in debug builds (--verify-each), prints for --print-after, and times for --time-passes. */
#ifndef BLK_PASSES_H
#define BLK_PASSES_H

#include "../ir/ir.h"
#include "../layout/layout.h"
#include "../target.h"

/* Why something stayed as it was, for reports. */
typedef struct pass_note {
	const ir_op *op;
	const char *why;
} pass_note;

typedef struct pass_context {
	arena *arena;
	diags *diags;
	const blk_target *target;
	struct axis_info *axis; /* by value id; pass_axis() fills it */
	uint32_t naxis;
	const ir_func *axis_of;
	VEC(pass_note) notes;   /* loads of a product that pipeline did not let run ahead */
	VEC(pass_note) windows; /* loads of a product, or their rings, that are no windows of an array */
	VEC(pass_note) alone;   /* rings that each program of a cluster fills for itself */
	VEC(pass_note) whole;   /* takers of long tiles that did not become loops over parts */
} pass_context;

/* tile level, every target */
bool pass_expand_tensors(pass_context *, ir_func *); /* accesses of tensors become pointers, masks, loads and stores */
bool pass_canonicalise(pass_context *,
	ir_func *); /* constant folding, algebraic identities, dead regions (if const), trip counts of 0 */
bool pass_cse(pass_context *, ir_func *);  /* equal pure operations become one; scoped by region */
bool pass_licm(pass_context *, ir_func *); /* pure operations leave loops */
bool pass_dce(pass_context *, ir_func *); /* unused pure operations and loads, unused loop-carried values and results */
bool pass_start_dots(pass_context *, ir_func *); /* no dot adds to -0 where the target would begin with it */
bool pass_legalise(pass_context *, ir_func *);   /* refuses what has no lowering for the target */
bool pass_expand_math(
	pass_context *, ir_func *); /* nvptx: elementary functions without an instruction become arithmetic */
bool pass_prepare_dots(pass_context *, ir_func *); /* nvptx: dots become such as the target has instructions for */

bool pass_windows(pass_context *, ir_func *); /* nvptx: loads by pointers that are windows of an array become blocks by
						 tensor maps */

bool pass_parts(pass_context *, ir_func *); /* nvptx: who takes a long tile becomes a loop over parts of it */

/* nvptx: dots that the warpgroup's instruction makes. */
bool pass_select_wgmma(pass_context *, ir_func *);
/* Why it does not make this dot, in half a sentence; null: it does. */
const char *wgmma_refusal(const pass_context *, const ir_op *dot);
/* Whether the first operand of this wgmma shall come from registers: it is computed, or stays the same round a loop. */
bool wgmma_wants_registers(const pass_context *, const ir_op *wgmma);
/* Operand i lies across k, which the instruction cannot read: it comes in *l, for its way to shared memory. */
bool wgmma_turns(const pass_context *, const ir_op *wgmma, unsigned i, layout *l);

/* tile -> mapped, GPU targets */
/* axis.c: fills context.axis.  Facts about a value outlive rewriting, so the work is done again only when there are
 * values that it has not seen: whoever asks for facts calls it first. */
bool pass_axis(pass_context *, ir_func *);
bool pass_assign_layouts(pass_context *,
	ir_func *); /* every tile value gets a layout; convert_layout where two meet; level becomes MAPPED */

bool pass_bulk_layouts(pass_context *, ir_func *); /* blocks are read from shared memory in the layout that is wanted */
bool pass_bulk_parts(pass_context *, ir_func *);   /* blocks are stored by each warp for itself, where it can */
/* For reports: the stages that were asked for, where a ring has fewer; else 0. */
unsigned pipeline_lowered(const ir_func *, const ir_op *ring);
bool pass_pipeline(pass_context *, ir_func *); /* loads of loops become copies that run ahead into shared memory */

/* Copies of loops in loops go to warps of their own, which run ahead into the outer loop's next round. */
bool pass_specialise_warps(pass_context *, ir_func *);

/* Scalars that only what follows a loop needs are computed, and slices that its sums meet are loaded, while the loop's
 * last products run. */
bool pass_sink(pass_context *, ir_func *);

/* Divisions among those stay where they are. */
bool pass_hold(pass_context *, ir_func *);

/* mapped -> scheduled */
bool pass_allocate_shared(pass_context *,
	ir_func *); /* scratch of reductions, conversions, scalar broadcasts: offsets by liveness; func.shared_bytes */
bool pass_barriers(pass_context *, ir_func *); /* cta_barrier only where shared or global accesses of different threads
						  may meet; level becomes SCHEDULED */

/* apart.c: may two accesses of global memory, one of which may write, touch common bytes from different threads?
 * `around`: the outermost loop whose back edge lies between them, or null. */
bool accesses_meet(pass_context *, ir_func *, const ir_op *earlier, const ir_op *now, const ir_op *around);
/* apart_matrix.c: the same of two accesses, as far as rows and columns of one matrix tell, and of two bulk stores. */
bool patches_meet(pass_context *, ir_func *, const ir_op *earlier, const ir_op *now, const ir_op *around);
bool copies_meet(const ir_op *earlier, const ir_op *now, const ir_op *around);

/* axis.c: contiguity, divisibility, constancy per dimension (playbook: Triton's AxisInfo); all powers of two */
typedef struct axis_info {
	bool known;                       /* false: nothing computed (floats); read as all ones */
	uint32_t contiguity[IR_MAX_RANK]; /* aligned groups of this many neighbours along the dimension are x, x+1, ...
					   */
	uint64_t divisibility[IR_MAX_RANK]; /* first element of each such group is a multiple (bytes for pointers) */
	uint32_t constancy[IR_MAX_RANK];    /* aligned groups of this many neighbours are equal */
} axis_info;                                /* scalars use index 0: contiguity 1, constancy 1 */
const axis_info *axis_get(const pass_context *, const ir_value *); /* never null */
/* What keeps an access from being wider. */
typedef enum axis_limit { AXIS_WIDEST, AXIS_ATOMIC, AXIS_SCALAR, AXIS_SPREAD, AXIS_UNALIGNED, AXIS_MASK } axis_limit;
extern const char *const axis_limit_text[]; /* ORDER axis_limit */
/* Elements (a power of two, at most 16 bytes' worth) that one access of this load or store may cover along dimension
 * `dim`, from the pointer's contiguity and alignment and the mask's constancy; *why may be null. */
unsigned axis_access_width(const pass_context *, const ir_op *access, unsigned dim, axis_limit *why);

#endif
