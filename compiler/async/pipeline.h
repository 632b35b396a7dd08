/* What the files of the pipeline pass share: the state of one loop.
 *
 * latencies.c         which loads can run ahead, in how many stages, and which products stay in flight
 * slice.c             what an iteration's copies are computed from, cloned for another iteration
 * pipeline_loop.c     what the loop is rewritten with
 * pipeline.c          what stands before, in and behind the loop afterwards
 * pipeline_channel.c  the same where another warp shall make the copies (specialise_warps.c): they go by a channel
 * accumulator_init.c  whether its sums begin with products instead of zeros
 * partition_refusal.c whether another warp can make its copies
 * whole_panels.c      which blocks are brought with more columns than are asked for */
#ifndef BLK_PIPELINE_H
#define BLK_PIPELINE_H

#include "channel.h"
#include "passes/passes.h"

enum { MOST_LOADS = 16 };

typedef struct pipeline {
	pass_context *context;
	ir_func *func;
	ir_op *loop;
	ir_block *body;
	uint32_t nvalues; /* before the loop is rewritten */
	staged loads[MOST_LOADS];
	unsigned nloads, stages;
	unsigned nbulk;              /* how many of the loads are by tensor maps, */
	uint32_t expected;           /* the bytes that these bring in an iteration, */
	ir_value *barriers, *parity; /* the `full` barriers, one a slot, and the parity of an iteration's phase */
	unsigned distance;           /* iterations that copies run ahead */
	int64_t step;                /* of the loop's counter */
	bool *sliced;                /* by value id: results of operations, and carried values, that the copies need */
	ir_value *hi;                /* the loop's end, in i64: counter + distance * step does not wrap around there */
	/* Bytes of shared memory.  A loop's slots are what others leave of the program's: of 227 KiB, with 32 KiB
	 * `lasting`, 16 KiB `nested` and 3 KiB of reserve, 176 KiB are for this loop: 5 slots of 32 KiB. */
	uint32_t lasting;         /* multibuffers that live as long as the program: a producer's, of the loops so far */
	uint32_t lasting_reserve; /* the largest reserve of the loops that these belong to */
	uint32_t nested;          /* other multibuffers: the most that live at a time in loops inside this one, */
	uint32_t peak;            /* and anywhere in the program, so far: beside this loop's if they last */
	uint32_t scratch;         /* the most that one other operation needs while the multibuffers live, */
	uint32_t nscratch;        /* how many operations need some, */
	uint64_t all_scratch;     /* and what they need if none shares bytes with another */
	uint32_t reserve;         /* for that scratch, for barriers and for numbers that are sent */
	uint32_t multibuffers;    /* this loop's */
	/* Waits for products whose sums only go on to further products: they leave the loop.  And whether an
	 * iteration's products may still run, and read the multibuffer, when the next iteration begins. */
	ir_op *waits[MOST_PRODUCTS];
	unsigned nwaits;
	bool overlaps;
	const char *alone; /* why no producer makes the copies, half a sentence; null: one may, or does */
	atomics sent;      /* those that the producer executes for its copies */
	channels channels; /* by which producers' loops go */
	site *site;        /* of this loop; null: all threads make its copies */
	site *before;      /* the last loop's; null: there was none */
	atomics sent_before;
	uint32_t wanted_before; /* its atomics, and the stages that the user wants there */
	bool goes_on;           /* this loop goes by the channel of `before`, too */
	bool ends;              /* what follows the loop has its scratch where the slots were */
} pipeline;

/* ---- latencies.c ---- */
/* False: the loop stays as it is.  Fills everything but multibuffers and hi. */
bool pipeline_fits(pipeline *);
uint32_t pipeline_wanted_stages(const pipeline *); /* the user's number */
/* A load that conversions alone take can be a copy into a slot that is their scratch.  Fills in how. */
bool pipeline_copies_operand(const pass_context *, staged *);

/* ---- whole_panels.c ---- */
/* Slots of blocks that whole panels would make part of an instruction get room for these.  False: there are none. */
bool pipeline_widen(pipeline *);
void pipeline_narrow(pipeline *);             /* takes that back */
void pipeline_bring_whole_panels(pipeline *); /* the copies fill what the slots have room for */

/* ---- slice.c ---- */
/* Adds what a value is made of to the slice; false where something else than the loop's own business is needed. */
bool pipeline_slice(pipeline *, const ir_value *);
/* What is in the slice stands in front of `before`. */
void pipeline_hoist(pipeline *, ir_op *before);
/* The slice for one iteration; map holds the counter and the carried values of that iteration, and everything else
 * after. */
void pipeline_clone(pipeline *, ir_builder *, ir_value **map);

/* ---- pipeline_loop.c ---- */
/* One more carried value of the loop, from `start` on: what it is in the body. */
ir_value *pipeline_carry(pipeline *, ir_value *start, const layout *);
void pipeline_make_multibuffers(pipeline *, ir_builder *); /* their barriers too */
/* One thread's: what an iteration brings by tensor maps, and the copies into its slot; `map` holds what their operands
 * are. */
void pipeline_copy_blocks(pipeline *, ir_builder *, ir_value *slot, ir_value **map);
/* Products whose sums only other products see: their waits go behind the loop. */
void pipeline_leave_in_flight(pipeline *, ir_builder *after);
/* Behind the last product that reads a multibuffer; null: there is none. */
ir_op *pipeline_behind_products(const pipeline *);
void pipeline_read_multibuffers(pipeline *, ir_value *slot);
/* What a slot holds, as the load's conversion by[i] has it; without conversions, as the load does. */
ir_value *staged_read(arena *, const staged *, unsigned i, ir_builder *, ir_value *slot);
/* From the conversion or wgmma back to the load, as far as nobody uses them any more. */
void pipeline_erase_chain(ir_op *last, const ir_op *load);
/* The layout in which a load's tile must be read for the result of its conversion by[i] to be what it is. */
layout pipeline_read_layout(const staged *, unsigned i);
bool pipeline_takes(const staged *, const ir_op *); /* the operation is one of its consumers */
/* Operands that the operation takes from multibuffers. */
unsigned pipeline_multibuffers_of(const pipeline *, const ir_op *);

/* ---- accumulator_init.c ---- */
/* A loop whose sums may begin with its first products has one iteration at least. */
void pipeline_init_accumulators(pipeline *);

/* ---- partition_refusal.c ---- */
/* Why a producer cannot make the loop's copies, in half a sentence; null: it can. */
const char *pipeline_refuses_partitions(pipeline *);

/* ---- pipeline_channel.c ---- */
void pipeline_find_site(pipeline *); /* the channel by which the loop's loads go */
void pipeline_open_site(pipeline *); /* the loop is rewritten */

#endif
