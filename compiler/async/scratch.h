/* What operations keep in shared memory while they run: the agreement of allocate_shared, barriers and the lowering.
 *
 * In: an operation of a mapped function.  Out: how many bytes of scratch it needs, and what lies where in them.  The
 * one idea: one function per kind of scratch, called by everybody, so that sizes and addresses cannot disagree.
 *
 * An operation with scratch is, to its neighbours: writes of it; barriers of its own; reads of it.  The lowering emits
 * those inner barriers (bar.warp.sync where the plan says so or the program has one warp); the barrier pass puts a
 * cta_barrier in front of the operation where earlier accesses of those bytes are not ordered yet.
 *
 *   convert_layout   layout_plan_conversion() says all of it.  Exchanges inside warps (LAYOUT_WARP_SHARED) begin with
 *                    a bar.warp.sync too: in a loop they stand without a cta_barrier between two iterations
 *   reduce, scan     reduce_plan, below
 *   sort, flip       exchange_plan, below
 *   gather           the tile that is picked from, row-major; barrier; each thread reads what its index says
 *   histogram        the bins, i32: zeroed by the owners of the result's elements; barrier; shared atomics;
 *                    barrier; read
 *   scalar load      through *T (memory that may change): thread 0 loads, everybody gets its value, so that a race
 *                    with another program cannot make threads disagree.  One warp: a shuffle from lane 0, no scratch.
 *                    More: thread 0 writes the value at offset 0; barrier; all read it
 *   volatile load    of a tile of which several warps hold copies: as an atomic of such a tile
 *   atomic           where the old value is used.  A scalar: as a scalar load.  A tile whose elements several warps
 *                    hold: the owner of element e (lower_owner) writes it at e * element bytes; barrier; all read
 *   wgmma            operands that neither a multibuffer nor registers hold: wgmma.h; barrier; the instruction
 *                    reads them until the wait behind it
 *   bulk_load        the block as the copy lays it (bulk.h), then the barrier that the copy completes, set up and given
 *                    up each time; thread 0 starts the copy, everybody waits and reads
 *   bulk_store       the block: everybody writes; barrier; thread 0 starts the copy.  By warps: each warp's buffers
 *                    (bulk_parts), inside warps.  Either is read until a bulk_wait
 *   multibuffer      its slots (multibuffer_plan); it keeps its bytes until multibuffer_end
 *   mbarriers        8 bytes each; they keep them until mbarriers_end */
#ifndef BLK_SCRATCH_H
#define BLK_SCRATCH_H

#include "ir/ir.h"
#include "layout/layout.h"

/* What several operations' scratch may take beside the largest one, as lifetimes leave gaps. */
enum { SCRATCH_SLACK = 8 * 1024 };
enum { SCRATCH_ALIGN = 16, REDUCE_MAX_OPERANDS = 16, EXCHANGE_MOST = LAYOUT_SCRATCH_MOST };

/* One step of a reduction combines what differs in one bit of the axis, or in a run of bits that warps hold:
 *   LAYOUT_REG    registers x and x | 1 << bit[0] become register x (the one without the bit)
 *   LAYOUT_LANE   shfl.bfly 1 << bit[0]; both lanes get the result, the lane whose bit is 0 holding the left operand
 *   LAYOUT_WARP   through scratch, 2^nbits warps at once, left to right by the number that bit[0 ..] spell (bit[0]
 *                 low).  Threads with (lane & skip_lane) == 0 and (warp & skip_warp) == 0 write their live registers;
 *                 barrier; every thread reads the 2^nbits values of each and combines them.
 *                 Operand k of the value whose element (flattened in the operand's layout: layout_apply(reg, lane,
 *                 warp)) is e lies, in bytes, at
 *                     operand_offset[k] + ((reduce_slot(step, e) << nbits) + number) * element bytes
 *                 so that one value's partials are adjacent.  A second such step is preceded by a barrier.
 * A built-in combination commutes, so registers go first, then lanes, then all warp bits in one step.  A custom one is
 * only associative: the axis bits are taken from the lowest to the highest, wherever they live; then every partial
 * value covers an unbroken range of indices, and left operands stand before right ones. */
typedef struct reduce_step {
	uint8_t in; /* layout_in */
	uint8_t nbits, bit[5];
	uint32_t live; /* LAYOUT_WARP: flattened bits of the operand that still tell values apart */
	uint32_t skip_lane, skip_warp;
	uint32_t operand_offset[REDUCE_MAX_OPERANDS];
	uint32_t bytes;
	/* LAYOUT_WARP: where that were more than EXCHANGE_MOST bytes, in passes: pass number n is of the live registers
	 * whose bits pass[0 ..] spell n; a barrier between two */
	uint8_t npasses, pass[LAYOUT_MAX_BITS]; /* bits */
} reduce_step;

typedef struct reduce_plan {
	uint32_t nsteps;
	reduce_step step[LAYOUT_MAX_BITS];
	uint32_t bytes;     /* the largest step's */
	uint32_t registers; /* mask of register bits on the axis; the results live in registers without them */
} reduce_plan;

/* Of a mapped reduce or scan (operands have layouts, all the same).  A scan's order is that of a custom combination. */
void reduce_plan_make(const ir_op *reduce, reduce_plan *);
uint32_t reduce_slot(const reduce_step *, uint32_t element);
/* Whether that pass of the step is of register r. */
bool reduce_in_pass(const reduce_step *, uint32_t pass, uint32_t r);
/* Whether a scan that would exchange more than a little (LAYOUT_SCRATCH_LIMIT) moves less between threads where its
 * axis lies in lines (layout_lines) than where it lies so, though its tiles have to come there and go back. */
bool scan_wants_lines(const ir_op *, const layout *, unsigned num_warps);

/* Every thread reads the registers of one other thread, of another warp (target/nvptx/exchange.c).  In passes of
 * `registers`: each thread stores that many of its own, barrier, each loads its partner's.  With two buffers, used in
 * turn, the barrier of the next pass also ends the one before, so one barrier a pass is enough. */
typedef struct exchange_plan {
	uint32_t registers, buffers;
	uint32_t bytes; /* of one buffer, a power of two; 0: nothing goes through shared memory */
} exchange_plan;

/* Of a mapped sort or flip. */
void exchange_plan_make(const ir_func *, const ir_op *, exchange_plan *);
/* CTA barriers inside a mapped scan, sort, flip, gather or histogram that has scratch. */
uint32_t exchange_barriers(const ir_func *, const ir_op *);
/* Register, lane or warp bits that step the axis. */
uint32_t exchange_bits(const layout *, unsigned axis, layout_in);

bool scalar_load_needs_broadcast(const ir_op *);
/* A volatile load of a tile of which several threads hold copies: other programs may write while it runs, so each
 * element is read by one thread, and all copies are of that one value. */
bool tile_load_needs_sharing(const ir_op *);

/* The conversion that a multibuffer's slots are the scratch of: from the copying threads to those that read.  False:
 * nobody reads.  Of a multibuffer for wgmma only the storing half. */
bool multibuffer_plan(const ir_op *multibuffer, layout_plan *);
/* Of a read: those of what copies by a map have brought may have layouts of their own. */
bool multibuffer_read_plan(const ir_op *read, layout_plan *);
/* Bytes from a slot to the next one: of its tile, and of those that lie in the same slots (join_mma.c). */
uint32_t multibuffer_pitch(const ir_op *multibuffer);
/* The one whose tile lies behind this one's in each slot; null: none does. */
const ir_op *multibuffer_next_in_slot(const ir_op *multibuffer);
bool multibuffer_is_bulk(
	const ir_op *multibuffer); /* filled by bulk copies: its slots are blocks as these lay them (bulk.h) */
/* The multibuffer_read that a dot makes itself of an operand, where it stands; null: it takes registers, or is no
 * dot. */
const ir_op *multibuffer_read_by_dot(const ir_op *, unsigned operand);

/* What the column scratch of ops.def says of any operation.  Bytes: 0 for most. */
uint32_t scratch_bytes(const ir_func *, const ir_op *);
/* Whether all threads meet at one of the block's own operations: a barrier, or an exchange through scratch. */
bool scratch_meets(const ir_func *, const ir_block *);
/* What their offset is a multiple of. */
uint32_t scratch_align(const ir_op *);
/* Its bytes are its own until the end of what they are for. */
bool scratch_lasts(const ir_op *);
/* Gives such bytes their places, in the order of the program from 0 on; behind a multibuffer_end is room again for what
 * its block needs next.  Where all of them end. */
uint32_t scratch_place_lasting(ir_func *);
/* "this sort": what needs them, in a message; of an operation that may. */
const char *scratch_purpose(const ir_op *);

#endif
