/* Warps of two kinds: consumers compute, a producer copies ahead of them.
 *
 * In: a mapped function, in whose loops copies, waits and arrivals stand in an order in which one thread could do all
 * of them; those that were made for the producer have its partition (channel.c).  Out, where there are any:
 * `partitions`.  Its first region is the program without the producer's operations, its second one the loops with
 * nothing but those and what they are computed from.
 * The one idea: take the program twice and leave out of each copy what is the other's; what feeds nothing any more is
 * dead, and dce sees to it.  So the loops are any loops, and control flow, index arithmetic and loads of sizes need no
 * list.
 *
 *     multibuffers, full, empty                        multibuffers, full, empty, in front of all else
 *     for t {                                   partitions {
 *       for k {                                   for t { for k { wait full; wgmma ..; arrive empty }; store .. }
 *         wait empty; copy; wait full;    ->      yield
 *         wgmma ..; arrive empty                } do {
 *       }                                         for t { for k { wait empty; copy } }
 *       store ..                                  yield
 *     }                                         }
 *
 * A scalar that both need stands in front of them, computed once while the barriers are made.  But there it is live
 * through all of the first region and costs its threads a register; where they are short of registers, each region
 * computes its own.
 *
 * What the producer does is of one thread, so one warp more is enough.  Where the others need more registers than nine
 * warps can have, three come along that do nothing: registers are handed over by groups of four warps. */
#include "passes/passes.h"
#include "analysis/pressure.h"

#include <assert.h>

/* A thread of nine warps has 168 at most, as one of twelve: a quarter of the processor holds three warps.  The
 * estimate is of values alone. */
enum { FEW_WARPS = 4, FEW_REGISTERS = 128 };

typedef struct splitter {
	pass_context *context;
	ir_func *func;
	bool *stays; /* by value id: defined in front of the partitions */
	bool apart;  /* no scalar is live across both regions: each computes its own */
} splitter;

static bool is_producers(const ir_op *o)
{
	return ir_has_attribute(o, IR_ATTR_partition) && ir_get_partition(o) == IR_PARTITION_PRODUCER;
}

/* Multibuffers, barriers and room for numbers that the producer takes: they stand in front of the partitions. */
static bool is_shared(const ir_op *o)
{
	assert(o->block);
	if (o->kind != IR_MBARRIERS && o->kind != IR_MULTIBUFFER && o->kind != IR_SCALARS) return false;
	for (const ir_use *u = o->results[0]->uses; u; u = u->next)
		if (is_producers(u->user)) return true;
	return false;
}

static bool computed_by_all(const splitter *s, const ir_op *o)
{
	if (o->kind == IR_TENSOR_MAP) return true; /* a parameter, of which there are few */
	if (s->apart || !ir_is_repeatable(o)) return false;
	for (unsigned i = 0; i < o->nresults; i++)
		if (!ir_is_scalar(o->results[i])) return false;
	for (unsigned i = 0; i < o->nargs; i++)
		if (!s->stays[ir_arg(o, i)->id]) return false;
	return true;
}

/* Moves everything else into the first region. */
static void fill_first(splitter *s, ir_op *partitions)
{
	assert(partitions->kind == IR_PARTITIONS && partitions->nregions == 2);
	ir_block *body = s->func->body;
	for (uint32_t i = 0; i < body->nargs; i++) s->stays[body->args[i]->id] = true;
	for (ir_op *o = body->first, *next; o != partitions; o = next) {
		next = o->next;
		if (is_shared(o) || computed_by_all(s, o))
			for (unsigned i = 0; i < o->nresults; i++) s->stays[o->results[i]->id] = true;
		else
			ir_move_before(o, partitions->regions[0], NULL);
	}
}

/* Of what stays, barriers alone touch shared memory.  They come first, so that a program computes its numbers while
 * the other programs of the cluster make theirs. */
static void begin_with_shared(splitter *s, const ir_op *partitions)
{
	ir_op *at = s->func->body->first;
	while (at->kind == IR_TENSOR_MAP || is_shared(at)) at = at->next;
	for (ir_op *o = at, *next; o != partitions; o = next) {
		next = o->next;
		if (is_shared(o)) ir_move_before(o, at->block, at);
	}
	ir_builder b = {.func = s->func, .block = at->block, .before = at, .at = s->func->at};
	if (s->func->cluster) ir_build(&b, IR_CLUSTER_ARRIVE, 0, NULL, 0, NULL, 0);
}

static void drop_producers(ir_block *b)
{
	for (ir_op *o = b->last, *prev; o; o = prev) {
		prev = o->prev;
		for (unsigned r = 0; r < o->nregions; r++) drop_producers(o->regions[r]);
		if (is_producers(o)) ir_erase(o);
	}
}

/* The number itself, in the producer, which sends it in front. */
static ir_value *sent_to(const ir_op *receive)
{
	const ir_op *o = receive->prev;
	while (o->kind != IR_SCALAR_SEND || ir_arg(o, 0) != ir_arg(receive, 0)) o = o->prev;
	return ir_arg(o, 2);
}

/* Operations with effects that are not the producer's.  What they gave, something unused gets instead. */
static void drop_others(splitter *s, ir_block *b)
{
	for (ir_op *o = b->last, *prev; o; o = prev) {
		prev = o->prev;
		if (!ir_has(o, IR_CONTROL | IR_TERMINATOR) && ir_touches(o, IR_EFFECTS | IR_READS_SHARED) &&
			!is_producers(o)) {
			ir_builder at = {.func = s->func, .block = b, .before = o, .at = o->at};
			for (unsigned i = 0; i < o->nresults; i++) {
				bool has = o->kind == IR_SCALAR_RECEIVE;
				ir_value *v = has ? sent_to(o) : ir_constant(&at, o->results[i]->type, 0);
				if (!has) v->layout = o->results[i]->layout;
				ir_replace(o->results[i], v);
			}
			ir_erase(o);
			continue;
		}
		if (ir_has(o, IR_CONTROL))
			for (unsigned r = 0; r < o->nregions; r++) drop_others(s, o->regions[r]);
	}
}

static void find_producers(ir_op *o, void *context)
{
	bool *found = context;
	*found |= is_producers(o);
}

/* Registers of a thread that hold values, where they are most. */
static unsigned most_at_once(pass_context *c, const ir_func *f)
{
	pressure p = pressure_estimate(c->arena, f);
	return p.lines.n ? p.lines.at[0].registers : 0;
}

bool pass_specialise_warps(pass_context *c, ir_func *f)
{
	bool found = false;
	ir_walk(f->body, find_producers, &found);
	if (!found) return f->row_groups == 1; /* groups of rows are for a producer: the driver compiles again */
	splitter s = {.context = c, .func = f, .stays = ARENA_ARRAY(c->arena, bool, f->nvalues)};
	s.apart = !f->cluster && most_at_once(c, f) > pressure_most_beside_producer(f);
	ir_builder end = {.func = f, .block = f->body, .before = f->body->last, .at = f->at};
	ir_op *partitions = ir_build(&end, IR_PARTITIONS, 0, NULL, 0, NULL, 2);
	fill_first(&s, partitions);
	begin_with_shared(&s, partitions);
	ir_value **map = ARENA_ARRAY(c->arena, ir_value *, f->nvalues);
	for (unsigned r = 2; r-- > 0;) {
		ir_builder inside = {.func = f, .block = partitions->regions[r], .at = f->at};
		for (const ir_op *o = partitions->regions[0]->first; r && o; o = o->next) ir_clone(&inside, o, map);
		ir_yield(&inside, 0, NULL);
	}
	drop_producers(partitions->regions[0]);
	drop_others(&s, partitions->regions[1]);
	bool short_of = ir_warps(f) > FEW_WARPS && most_at_once(c, f) > FEW_REGISTERS;
	f->producer_warps = short_of || f->row_groups > 1 ? 4 : 1;
	return true;
}
