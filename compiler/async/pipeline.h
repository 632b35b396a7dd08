/* What the files of the pipeline pass share: the state of one loop.
 *
 * latencies.c         which loads can run ahead, in how many stages, and which products stay in flight
 * slice.c             what an iteration's copies are computed from, cloned for another iteration
 * pipeline_loop.c     what the loop is rewritten with
 * pipeline.c          what stands before, in and behind the loop afterwards
 * accumulator_init.c  whether its sums begin with products instead of zeros
 * partition_refusal.c whether another warp can make its copies
 * partitions.c        the same where another warp shall make the copies (specialise_warps.c)
 * carry.c             a variable through all loops and ifs around an operation
 * whole_panels.c      which blocks are brought with more columns than are asked for
 * multicast.c         whether neighbouring programs bring blocks to each other */
#ifndef BLK_PIPELINE_H
#define BLK_PIPELINE_H

#include "passes/passes.h"

enum { MOST_LOADS = 16, MOST_PRODUCTS = 8 };

/* What takes a load's tile, through permutations. */
typedef struct consumer {
	ir_op *op;
	const ir_value *tile; /* as it is taken */
	unsigned arg;         /* which operand of a wgmma */
	bool transposed;      /* an odd number of permutations between them */
} consumer;

/* Atomics that the producer executes, and whose results it sends. */
typedef VEC(ir_op *) atomics;
enum { SENT_BYTES = 1024 }; /* of shared memory for each, at most, with what that shifts */

/* A load that becomes copies into a multibuffer. */
typedef struct staged {
	ir_op *load;
	ir_type block;              /* what a slot holds: the load's tile, or with more columns (whole_panels.c) */
	consumer by[MOST_PRODUCTS]; /* a conversion, or products; */
	unsigned nby;               /* none: anything, as it lies */
	bool bulk;                  /* by a tensor map */
	unsigned width;             /* elements an access */
	unsigned swizzle, fast;     /* of the multibuffer, see ops.def */
	uint32_t bytes;             /* of one stage, with */
	unsigned parts;             /* so many blocks: row_groups.c */
	ir_value *multibuffer;
	const char *unshared; /* half a sentence: why each program of a cluster brings it for itself; null: where */
	ir_value *multicast;  /* who brings it together, see bulk_copy in ops.def */
} staged;

/* What a loop with a producer leaves to the next one of its block: multibuffers, barriers, and where their cursor
 * stands behind it. */
typedef struct pipeline_set {
	const ir_op *loop;
	unsigned nloads, stages, wanted;
	staged loads[MOST_LOADS];
	atomics sent;
	bool released; /* behind the loop, the last slot too */
	ir_value *full, *empty, *slot, *parity;
} pipeline_set;

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
	bool partitions;      /* the copies are a producer's, see specialise_warps.c */
	bool ends;            /* then: what follows the loop has its scratch where the slots were */
	bool reuses;          /* then: the multibuffers, barriers and cursor are those of `before` */
	pipeline_set *before; /* what the last loop with a producer has left; null: there was none */
	const char *alone;    /* why no producer makes the copies, half a sentence; null: one may */
	atomics sent;         /* those that the producer executes for its copies */
	/* Programs of a cluster whose iterations go together where `in_step` holds; 0: each by itself.  Where they do,
	 * slots are released to all of them. */
	uint32_t cluster;
	ir_value *in_step, *empty; /* empty: what slots are released by */
} pipeline;

/* ---- latencies.c ---- */
/* False: the loop stays as it is.  Fills everything but multibuffers and hi. */
bool pipeline_fits(pipeline *);
uint32_t pipeline_wanted_stages(const pipeline *); /* the user's number */

/* ---- whole_panels.c ---- */
/* Slots of blocks that whole panels would make part of an instruction get room for these.  False: there are none. */
bool pipeline_widen(pipeline *);
void pipeline_narrow(pipeline *);             /* takes that back */
void pipeline_bring_whole_panels(pipeline *); /* the copies fill what the slots have room for */

/* ---- slice.c ---- */
/* Adds what a value is made of to the slice; false where something else than the loop's own business is needed. */
bool pipeline_slice(pipeline *, const ir_value *);
/* The slice for one iteration; map holds the counter and the carried values of that iteration, and everything else
 * after. */
void pipeline_clone(pipeline *, ir_builder *, ir_value **map);

/* ---- pipeline_loop.c ---- */
/* Each warp releases a slot, where `only_if` holds (null: always). */
void pipeline_release(pipeline *, ir_builder *, ir_value *slot, ir_value *only_if);
/* One more carried value of the loop, from `start` on: what it is in the body. */
ir_value *pipeline_carry(pipeline *, ir_value *start, const layout *);
void pipeline_make_multibuffers(pipeline *, ir_builder *); /* their barriers too */
/* What an iteration's slot waits for, and the copies into it; `map` holds what the copies' operands are. */
void pipeline_copy_blocks(pipeline *, ir_builder *, ir_value *slot, ir_value **map);
ir_value *pipeline_next_slot(ir_builder *, ir_value *slot, unsigned stages);
ir_value *pipeline_next_parity(ir_builder *, ir_value *slot, ir_value *parity, unsigned stages);
/* The product again, with the multibuffer and its slot in place of the tile; the old one is gone. */
ir_op *pipeline_read_slot(ir_func *, const consumer *, ir_value *multibuffer, ir_value *slot);
/* For reports: what was said of a load is said of its multibuffer. */
void pipeline_hand_on_note(pass_context *, const ir_op *load, const ir_op *multibuffer);
/* Products whose sums only other products see: their waits go behind the loop. */
void pipeline_leave_in_flight(pipeline *, ir_builder *after);
/* Behind the last product that reads a multibuffer; null: there is none. */
ir_op *pipeline_behind_products(const pipeline *);
void pipeline_read_multibuffers(pipeline *, ir_value *slot);
/* The layout in which a load's tile must be read for its conversion's result to be what it is. */
layout pipeline_read_layout(const staged *);
bool pipeline_takes(const staged *, const ir_op *); /* the operation is one of its consumers */
/* Operands that the operation takes from multibuffers. */
unsigned pipeline_multibuffers_of(const pipeline *, const ir_op *);

/* ---- row_groups.c ---- */
/* Blocks that the load is: one for each group of rows, or one for all. */
unsigned row_group_parts(const ir_func *, const ir_op *load);
/* The producer's copies of them: multibuffer, slot, barriers, and the load's operands. */
void row_group_copies(ir_builder *, const ir_op *load, unsigned parts, unsigned nargs, ir_value *const *args);
/* The multibuffer's slot that this group's block lies in; `slot`: that of the barriers. */
ir_value *row_group_slot(ir_builder *, ir_value *slot, unsigned parts);

/* ---- accumulator_init.c ---- */
/* A loop whose sums may begin with its first products has one iteration at least. */
void pipeline_init_accumulators(pipeline *);

/* ---- multicast.c ---- */
void pipeline_find_cluster(pipeline *);
/* in_step, before the builder's place; then what each load's `multicast` is, before the loop. */
void pipeline_build_in_step(pipeline *, ir_builder *);
void pipeline_build_multicast(pipeline *, ir_builder *);

/* ---- partition_refusal.c ---- */
/* Why a producer cannot make the loop's copies, in half a sentence; null: it can. */
const char *pipeline_refuses_partitions(pipeline *);
/* The same of one load, wherever it stands; `sent` begins with the atomics of other loads that become copies. */
const char *partition_refusal(const pass_context *, const ir_func *, const ir_op *load, atomics *sent);
/* The atomics on which the producer's copies depend. */
void partition_find_sent(const pass_context *, const ir_func *, atomics *sent);

/* ---- carry.c ---- */
/* The variable is `start` in front of everything, `hole` in front of `o` in its block, and `behind` behind `o`.
 * Returns what it is behind all loops.  `hole` is a placeholder: its uses get what the innermost loop carries. */
ir_value *carry_round_loops(arena *, ir_func *, ir_op *o, ir_value *start, ir_value *hole, ir_value *behind);

/* ---- partitions.c ---- */
void pipeline_partition(pipeline *);

#endif
