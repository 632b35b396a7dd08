/* A channel: a multibuffer for each of the loads that are brought together, their full and empty barriers, and a
 * cursor.
 *
 * channel.c  makes one, and what a fill of it is in code: copies, waits, reads, releases
 * cursor.c   the cursor of each, slot and parity, through all control flow
 *
 * Who uses them: channels.c for loads anywhere in programs that compute beside their products, pipeline_channel.c for
 * loops of products alone.  Both decide which loads share a channel, how many slots it has, and when a slot is
 * released. */
#ifndef BLK_CHANNEL_H
#define BLK_CHANNEL_H

#include "passes/passes.h"

enum { MOST_PRODUCTS = 8 };

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
	ir_op *first_read;      /* of a channel: the first that takes the tile from registers; null: products only */
	bool bulk;              /* by a tensor map */
	unsigned width;         /* elements an access */
	unsigned swizzle, fast; /* of the multibuffer, see ops.def */
	uint32_t bytes;         /* of one stage, with */
	unsigned parts;         /* so many blocks: row_groups.c */
	ir_value *multibuffer;
	const char *unshared; /* half a sentence: why each program of a cluster brings it for itself; null: where */
	ir_value *multicast;  /* who brings it together, see bulk_copy in ops.def */
} staged;

typedef struct channel {
	staged *loads; /* of its first fill: later ones have as many of the same kinds */
	unsigned nloads;
	unsigned stages;
	uint32_t expected;      /* bytes that a fill brings */
	bool loops;             /* slots are filled again */
	ir_value *full, *empty; /* empty null: each slot is filled once */
	/* Programs of a cluster whose fills go together where `in_step` holds; 0: each by itself.  Where they do, slots
	 * are released to all of them. */
	uint32_t cluster;
	ir_value *in_step;
	/* cursor.c */
	const struct channel *steps; /* whose cursor it has: the first channel's that is filled in step with it */
	unsigned filled;             /* fills since the cursor came into the block, or out of a region */
} channel;

typedef struct cursor {
	ir_value *slot, *parity;
} cursor;

/* A place where a slot is filled, and read:
 *     fill        wait until the slot is free; what comes is expected; copies             {producer}
 *     first_use   wait until it has come
 *     last_use    behind it nobody reads the slot any more: it is released
 * Or what is done behind last_use is the fill of the iteration before: `in_flight` products still run. */
typedef struct site {
	channel *of;
	staged *loads;
	span at;
	ir_op *fill, *first_use, *last_use;
	bool read_is_last; /* the slot is released right behind threads' read of it */
	ir_op *loop;       /* in whose iterations the fill stands, where in_flight or a cluster needs that */
	unsigned in_flight;
	bool released; /* behind the loop the last slot is released, too */
	/* While the cursor is not known: placeholders, and where they stand. */
	cursor here;
	ir_value *behind; /* of the slot behind the loop; null: not needed */
	ir_op *marker;    /* the fill */
	ir_op *advance;   /* in front of it the cursor goes on */
} site;

/* Those of a function. */
typedef struct channels {
	pass_context *context;
	ir_func *func;
	VEC(channel *) at;
	VEC(site *) sites;
} channels;

/* ---- channel.c ---- */
/* A slot for each of the loads in all stages; then, behind those of all channels, the barriers. */
void channel_make_multibuffers(const channels *, channel *, ir_builder *);
void channel_make_barriers(const channels *, channel *, ir_builder *);
/* The site, one of c->sites by now, becomes operations.  Its loads are left without uses. */
void channel_open(channels *, site *);
void channel_erase_loads(const site *);
/* The product again, with the multibuffer and its slot in place of the tile; the old one is gone. */
ir_op *channel_read_slot(ir_func *, const consumer *, ir_value *multibuffer, ir_value *slot);
/* A multibuffer for a load, whoever fills it. */
void staged_make_multibuffer(pass_context *, staged *, unsigned stages, ir_builder *);

/* ---- cursor.c ---- */
/* When all sites are open: their placeholders become what the cursors are there. */
void cursor_thread(channels *);
ir_value *cursor_next_slot(ir_builder *, ir_value *slot, unsigned stages); /* slot + 1, and 0 after the last */
/* A slot's barrier ends phases 0, 1, 0, ..: once a turn round the multibuffer. */
ir_value *cursor_next_parity(ir_builder *, ir_value *slot, ir_value *parity, unsigned stages);

/* ---- carry.c ---- */
/* The variable is `start` in front of everything, `hole` in front of `o` in its block, and `behind` behind `o`.
 * Returns what it is behind all loops.  `hole` is a placeholder: its uses get what the innermost loop carries. */
ir_value *carry_round_loops(arena *, ir_func *, ir_op *o, ir_value *start, ir_value *hole, ir_value *behind);

/* ---- row_groups.c ---- */
/* Blocks that the load is: one for each group of rows, or one for all. */
unsigned row_group_parts(const ir_func *, const ir_op *load);
/* The producer's copies of them: multibuffer, slot, barriers, and the load's operands. */
void row_group_copies(ir_builder *, const ir_op *load, unsigned parts, unsigned nargs, ir_value *const *args);
/* The multibuffer's slot that this group's block lies in; `slot`: that of the barriers. */
ir_value *row_group_slot(ir_builder *, ir_value *slot, unsigned parts);

/* ---- multicast.c ---- */
/* Whether the programs of a cluster bring blocks of the site's to each other. */
void multicast_find(const channels *, site *);
/* in_step, before `head`'s place; then what each load's `multicast` is, before the site's loop. */
void multicast_build(const channels *, site *, ir_builder *head);

/* ---- partition_refusal.c ---- */
/* Why the function has no producer that fills channels, in half a sentence; null: it has, if it copies anything. */
const char *channels_refusal(const pass_context *, const ir_func *);
/* Why a producer cannot make a load's copies, wherever it stands, in half a sentence; null: it can.  `sent` begins with
 * the atomics of other loads that become copies. */
const char *partition_refusal(const pass_context *, const ir_func *, const ir_op *load, atomics *sent);
/* The atomics on which the producer's copies depend. */
void partition_find_sent(const pass_context *, const ir_func *, atomics *sent);

#endif
