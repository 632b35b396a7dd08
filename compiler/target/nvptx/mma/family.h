/* The families of matrix instructions, one row each; the first that the target has and that does not refuse makes a
 * dot.
 *
 * In: a dot at the tile level.  Out: its family.  The one idea: the choice stands in the row, so that who asks which
 * family makes a dot, or why no faster one does, need not know them.
 *
 *     family     which dots        operands from               sum in      begun by   waited for by
 *     wgmma      wgmma_refusal()   registers (a) and shared    registers   wgmma      wgmma_wait
 *     mma.sync   all others        registers                   registers   dot        -
 *
 * A family's files are here too: NAME.c its forms and where operands and sums lie, NAME_lower.c its code.
 *
 * The row holds no more than the choice: name, capability, refusal, and what the dot becomes.  Behind select_mma a
 * family is its operations, and passes that place operands, copies and waits name these.  A third one, tcgen05, whose
 * sums lie in tensor memory, whose products one thread begins and an mbarrier ends, takes beside its row and files:
 *
 *     target/target.[ch]                      the capability
 *     ir/ops.def, attributes.def,             its operations, what holds a sum in tensor memory, their rules
 *     ir.c, verify_types.c
 *     passes/passes.h                         what passes ask of its operands: today wgmma_*()
 *     layout/families.c                       how the sum lies, when it is read into registers
 *     transform/assign_layouts.c, coalesce.c  layouts of sums and operands
 *     transform/transpose_dots.c              which dots it makes transposed: today wgmma is asked by name
 *     async/scratch.c                         bytes and alignment of its operands
 *     async/bulk.c, latencies.c, multicast.c  which loads feed its products
 *     async/pipeline.c, pipeline_loop.c,      when a slot that a product reads is free: wgmma's count, here a phase
 *     pipeline_channel.c, channel.c,
 *     channels.c, partition_refusal.c,
 *     accumulator_init.c
 *     async/pipeline_mma.c, sink_mma_waits.c, waits in loops, and what may run beside a product
 *     early_waits.c, overlap_epilogue.c,
 *     settle_mma_waits.c, double_buffer.c,
 *     turns.c
 *     async/barriers.c, synchronise.c         fences, and barriers that its waits make needless
 *     target/nvptx/lower.[ch], code_size.c,   tables of the lowering; room in tensor memory, taken and given back
 *     sched_barrier.c, mma_overlap.[ch]
 *     explain/record.c, json.c, text.c        its row in reports
 *     ../runtime/sim                          its instructions: decode_warpgroup.c, warpgroup.c and product.c are
 *                                             wgmma's */
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
/* One of any rows, beside such a one. */
bool wgmma_may_swap_beside(const pass_context *, const ir_op *dot);
/* Why it stays as it is, in half a sentence; null: it need not. */
const char *wgmma_swap_refusal(const pass_context *, const ir_op *dot);

#endif
