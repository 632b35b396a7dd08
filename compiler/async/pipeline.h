/* What the files of the pipeline pass share: the state of one loop.
 *
 * latencies.c    which loads can run ahead, in how many stages, and which products stay in flight
 * slice.c  what a round's copies are computed from, cloned for another round
 * pipeline.c        what stands before, in and behind the loop afterwards
 * accumulator_init.c   whether its sums begin with products instead of zeros
 * partitions.c  the same where another warp shall make the copies (specialise_warps.c)
 * multicast.c  whether neighbouring programs bring blocks to each other */
#ifndef BLK_PIPELINE_H
#define BLK_PIPELINE_H

#include "passes/passes.h"

enum { MOST_LOADS = 16, MOST_PRODUCTS = 8 };

/* What takes a load's tile, through permutations. */
typedef struct taker {
	ir_op *op;
	const ir_value *tile; /* as it is taken */
	unsigned arg;         /* which operand of a wgmma */
	bool turned;          /* an odd number of permutations between them */
} taker;

/* A load that becomes copies into a ring. */
typedef struct staged {
	ir_op *load;
	taker by[MOST_PRODUCTS]; /* a conversion, or products; */
	unsigned nby;            /* none: anything, as it lies */
	bool bulk;               /* by a tensor map */
	unsigned width;          /* elements an access */
	unsigned swizzle, fast;  /* of the ring, see ops.def */
	uint32_t bytes;          /* of one stage */
	ir_value *ring;
	const char *unshared; /* half a sentence: why each program of a cluster brings it for itself; null: where */
	ir_value *together;   /* this holds, all bring it together */
} staged;

typedef struct pipeline {
	pass_context *context;
	ir_func *func;
	ir_op *loop;
	ir_block *body;
	uint32_t nvalues; /* before the loop is rewritten */
	staged loads[MOST_LOADS];
	unsigned nloads, stages;
	unsigned nbulk;              /* loads by tensor maps, */
	uint32_t expected;           /* their bytes of a round, */
	ir_value *barriers, *parity; /* and what they arrive at */
	unsigned distance;           /* rounds that copies run ahead */
	int64_t step;
	bool *sliced;     /* by value id: results of operations, and carried values, that the copies need */
	ir_value *hi;     /* i64 */
	uint32_t used;    /* bytes of the rings of other loops, and what has to stand beside them */
	uint32_t scratch; /* the most that another operation needs while the rings live, of */
	uint32_t several; /* so many, */
	uint32_t beside;  /* and all that stands beside the rings then */
	uint32_t rings;
	/* Waits for products whose sums only go on to further products: they leave the loop.  And whether a round's
	 * products may still run, and read the ring, when the next round begins. */
	ir_op *waits[MOST_PRODUCTS];
	unsigned nwaits;
	bool overlaps;
	bool roles;        /* the copies are for a producer, see specialise_warps.c; */
	const char *alone; /* or, half a sentence, why not */
	/* Programs of a cluster whose rounds go together where `in_step` holds; 0: each by itself.  Where they do,
	 * slots are given back to all of them. */
	uint32_t cluster;
	ir_value *in_step, *empty; /* empty: what slots are given back by */
} pipeline;

/* ---- latencies.c ---- */
/* False: the loop stays as it is.  Fills everything but rings and hi. */
bool pipeline_fits(pipeline *);
/* The layout in which a load's tile must be read for its conversion's result to be what it is. */
layout pipeline_read_layout(const staged *);
/* Operands that the operation takes from rings. */
unsigned pipeline_rings_of(const pipeline *, const ir_op *);

/* ---- slice.c ---- */
/* Adds what a value is made of to the slice; false where something else than the loop's own business is needed. */
bool pipeline_slice(pipeline *, const ir_value *);
/* The slice for one round; map holds the counter and the carried values of that round, and everything else after. */
void pipeline_clone(pipeline *, ir_builder *, ir_value **map);

/* ---- pipeline.c ---- */
/* Each warp gives a slot back, where `only_if` holds (null: always). */
void pipeline_give_back(pipeline *, ir_builder *, ir_value *slot, ir_value *only_if);
/* One more carried value of the loop, from `start` on: what it is in the body. */
ir_value *pipeline_carry(pipeline *, ir_value *start, const layout *);
void pipeline_make_rings(pipeline *, ir_builder *); /* their barriers too */
/* What a round's slot waits for, and the copies into it; `map` holds what the copies' operands are. */
void pipeline_copy_blocks(pipeline *, ir_builder *, ir_value *slot, ir_value **map);
ir_value *pipeline_next_slot(pipeline *, ir_builder *, ir_value *slot);
ir_value *pipeline_next_parity(pipeline *, ir_builder *, ir_value *slot); /* of p->parity */
/* Products whose sums only other products see: their waits go behind the loop. */
void pipeline_leave_in_flight(pipeline *, ir_builder *after);
/* Behind the last product that reads a ring; null: there is none. */
ir_op *pipeline_behind_products(const pipeline *);
void pipeline_read_rings(pipeline *, ir_value *slot);

/* ---- accumulator_init.c ---- */
/* A loop whose sums may begin with its first products has one round at least. */
void pipeline_run_once(pipeline *);

/* ---- multicast.c ---- */
void pipeline_find_cluster(pipeline *);
/* in_step, before the builder's place; then what each load's `together` is, before the loop. */
void pipeline_build_in_step(pipeline *, ir_builder *);
void pipeline_build_together(pipeline *, ir_builder *);

/* ---- partitions.c ---- */
/* Why a producer cannot make the loop's copies, in half a sentence; null: it can. */
const char *pipeline_refuses_roles(pipeline *);
void pipeline_rewrite_for_roles(pipeline *);

#endif
