/* Which fences, commits and waits go with products and with stores of blocks: each is said on its operation.
 *
 * In: a scheduled function; its barriers stand.  Out: the same, with the attributes that the lowering emits by:
 *
 *     wgmma            fence    wgmma.fence in front: registers of the sum or of an operand were written since the last
 *     wgmma_wait       done     an earlier wait was for as much: it only hands over the sum
 *     bulk_store       reuses   a copy that an earlier iteration began may still read the scratch: wait for it first
 *                      commit   the copies that the thread has begun become a group
 *                      proxy    what TMA has to see: what threads wrote to shared memory, or to all memory
 *                      syncwarp bar.warp.sync in front, of a store by warps: lane 0 has just waited, for all its lanes
 *     mbarriers        cluster  copies of other programs of the cluster see that they are set up
 *                      proxy    copies see it, and what threads kept in the multibuffers before
 *     mbarrier_arrive  syncwarp bar.warp.sync in front: some lanes may have read a slot by themselves that it releases
 *
 * The one idea: each is needed unless what stands in front of the operation, in program order, makes it needless.  The
 * questions go backwards from the operation, past nothing but arithmetic.  Waits for copies count groups and take no
 * tokens: docs/ir.md says why. */
#include "analysis/alias.h"
#include "passes/passes.h"
#include "bulk.h"
#include "scratch.h"
#include "target/nvptx/mma/wgmma.h"

#include <assert.h>

/* The operation of this kind that `o` follows with nothing but arithmetic between; null: there is none. */
static const ir_op *follows(const ir_op *o, ir_kind kind)
{
	for (o = o->prev; o && o->kind != kind; o = o->prev)
		if (!ir_has(o, IR_PURE) && o->kind != IR_SCHED_BARRIER) return NULL;
	return o;
}

/* ---- products ---- */

/* A sum that stays in flight round a loop: the lowering keeps it in registers that only products write. */
static bool is_in_flight(const ir_value *v)
{
	wgmma_plan plan;
	while (v && v->def && v->def->kind == IR_WGMMA) v = wgmma_parts(v->def, &plan) ? plan.sum : NULL;
	if (!v) return false;
	const ir_op *loop = v->def ? v->def : v->block->parent;
	unsigned k = v->def ? v->index : v->index - 1u;
	if (!loop || loop->kind != IR_FOR || (!v->def && !v->index)) return false;
	const ir_op *last = ir_arg(loop->regions[0]->last, k)->def;
	return last && last->kind == IR_WGMMA;
}

/* Of the registers that the product takes nobody has written one since the last fence, in front of the product before:
 * those of a sum in flight only products write, and this is the iteration's first of this sum. */
static bool is_fenced(const ir_op *o, const wgmma_plan *plan)
{
	return follows(o, IR_WGMMA) && plan->sum && !plan->sum->def && is_in_flight(plan->sum) &&
	       plan->operand[0].place != WGMMA_REGISTERS && plan->operand[1].place != WGMMA_REGISTERS;
}

/* A wait for as much has just been: in front, or at the end of every iteration of the loop whose sum this is. */
static bool is_waited_for(const ir_op *o)
{
	assert(o->kind == IR_WGMMA_WAIT);
	const ir_op *before = follows(o, IR_WGMMA_WAIT), *loop = before ? NULL : follows(o, IR_FOR);
	if (loop && loop == ir_arg(o, 0)->def) before = follows(loop->regions[0]->last, IR_WGMMA_WAIT);
	return before && ir_get_pending(before) <= ir_get_pending(o);
}

/* ---- stores of blocks ---- */

/* A wait right in front is the thread's that has begun the copies: of a store by warps, each warp's lane 0. */
static bool follows_bulk_wait(const ir_op *o)
{
	assert(o->kind == IR_BULK_STORE);
	return o->prev && o->prev->kind == IR_BULK_WAIT;
}

/* In an iteration before this one its copies have begun, and nothing in this iteration waits for them all
 * (barriers.c). */
static bool reuses_scratch(const ir_op *o)
{
	assert(o->kind == IR_BULK_STORE);
	if (!ir_loop_around(o) || follows_bulk_wait(o)) return false;
	for (const ir_op *barrier = o->prev; barrier; barrier = barrier->prev)
		if (barrier->kind == IR_CTA_BARRIER && barrier->prev && barrier->prev->kind == IR_BULK_WAIT)
			return false;
	return true;
}

/* Another store follows before anybody waits: its first commit is for both. */
static bool is_committed_later(const ir_op *o)
{
	assert(o->kind == IR_BULK_STORE);
	const ir_op *next = o->next;
	bulk_parts p;
	while (next && next->kind != IR_BULK_WAIT && next->kind != IR_BULK_STORE && !next->nregions) next = next->next;
	if (!next || next->kind != IR_BULK_STORE || reuses_scratch(next)) return false;
	if (!bulk_begins_copies(next)) return false;
	return ir_get_by_warps(next) ? bulk_parts_of(next, &p) : !ir_get_by_warps(o);
}

static void find_accesses(ir_op *o, void *context)
{
	bool *found = context;
	bool others = ir_has_attribute(o, IR_ATTR_partition) && ir_get_partition(o) == IR_PARTITION_PRODUCER;
	*found |= !alias_is_checked(o) && !others && ir_accesses(o) && ir_arg(o, 0)->type.pointer == IR_POINTER;
}

/* Where threads that compute access memory that changes, a copy is fenced from that too, which takes the time of a
 * fence of the whole GPU: the first one behind an access. */
static ir_proxy proxy_of_store(ir_func *f, const ir_op *o)
{
	bool found = false;
	ir_walk(f->body, find_accesses, &found);
	if (!found) return IR_PROXY_SHARED;
	for (ir_op *p = o->prev; p; p = p->prev) {
		if (p->kind == IR_BULK_STORE && ir_get_proxy(p) == IR_PROXY_ALL) return IR_PROXY_SHARED;
		found = false;
		find_accesses(p, &found);
		for (unsigned r = 0; r < p->nregions; r++) ir_walk(p->regions[r], find_accesses, &found);
		if (found) break;
	}
	return IR_PROXY_ALL;
}

/* ---- barriers in memory ---- */

static bool copies_arrive(const ir_value *barriers)
{
	for (const ir_use *u = barriers->uses; u; u = u->next)
		if (u->user->kind == IR_BULK_COPY) return true;
	return false;
}

typedef struct use_before {
	const ir_op *end;
	bool ended, used;
} use_before;

static void find_use(ir_op *o, void *context)
{
	use_before *b = context;
	b->ended |= o == b->end;
	/* an end: of multibuffers whose bytes these may have */
	bool uses =
		o->kind == IR_MULTIBUFFER_END || o->kind == IR_MBARRIERS_END || (o->shared_bytes && !scratch_lasts(o));
	b->used |= !b->ended && uses;
}

/* Threads may have kept something of their own in the bytes of the multibuffers that copies fill from here on. */
static bool shared_was_used(const ir_func *f, const ir_op *o)
{
	assert(o->block);
	use_before b = {.end = o};
	ir_walk(f->body, find_use, &b);
	return b.used || o->block != f->body;
}

/* More barriers of copies follow, with nothing between that runs: thread 0's fence behind those is for these too. */
static bool are_fenced_later(const ir_op *o)
{
	while ((o = o->next) && (ir_has(o, IR_PURE) || o->kind == IR_MULTIBUFFER || o->kind == IR_MBARRIERS))
		if (o->kind == IR_MBARRIERS && copies_arrive(o->results[0])) return true;
	return false;
}

/* Copies, those of other programs too, arrive from the other side; threads meet before they do. */
static void see_barriers(const ir_func *f, ir_op *o)
{
	assert(o->kind == IR_MBARRIERS);
	bool copies = copies_arrive(o->results[0]), cluster = copies && f->num_ctas > 1;
	bool fence = copies && (!cluster || shared_was_used(f, o)) && (cluster || !are_fenced_later(o));
	ir_set_cluster(o, cluster && !f->cluster); /* else cluster_arrive has one fence for all */
	ir_set_proxy(o, fence ? IR_PROXY_SHARED : IR_PROXY_NONE);
}

/* The barriers that a producer waits for in front of the copy; null: it fills what nobody has read. */
static const ir_value *barriers_in_front(const ir_op *copy)
{
	for (const ir_op *o = copy; o; o = o->prev ? o->prev : o->block->parent)
		if (o->kind == IR_MBARRIER_WAIT && ir_get_partition(o) == IR_PARTITION_PRODUCER) return ir_arg(o, 0);
	return NULL;
}

/* An arrival at these barriers may be what lets a producer fill slots of the multibuffer again. */
static bool releases(const ir_value *barriers, const ir_value *multibuffer)
{
	bool copied = false;
	for (const ir_use *u = multibuffer->uses; u; u = u->next) {
		if (u->user->kind != IR_BULK_COPY) continue;
		if (barriers_in_front(u->user) == barriers) return true;
		copied = true;
	}
	return !copied;
}

typedef struct reads {
	const ir_value *barriers; /* what is read is released at them; null: anything */
	bool found;
} reads;

static void find_reads(ir_op *o, void *context)
{
	reads *r = context;
	const ir_op *read[] = {o->kind == IR_MULTIBUFFER_READ ? o : NULL, multibuffer_read_by_dot(o, 0),
		multibuffer_read_by_dot(o, 1)};
	for (unsigned i = 0; i < 3; i++)
		if (read[i]) r->found |= !r->barriers || releases(r->barriers, ir_arg(read[i], 0));
}

static bool has_reads(const ir_func *f)
{
	reads r = {0};
	ir_walk(f->body, find_reads, &r);
	return r.found;
}

/* The operation reads what is released at the barriers, or one in its regions does. */
static bool may_read(ir_op *o, const ir_value *barriers)
{
	reads r = {.barriers = barriers};
	find_reads(o, &r);
	for (unsigned i = 0; i < o->nregions; i++) ir_walk(o->regions[i], find_reads, &r);
	return r.found;
}

/* Lanes may have read what is released at the barriers in front of `o` and behind where all threads met last, or in it.
 * `o` null: in front of the block; `round`: its start has been seen already. */
static bool reads_since(ir_op *o, const ir_block *b, const ir_value *barriers, const ir_op *round)
{
	for (;; o = o->prev) {
		while (!o) {
			ir_op *around = b->parent;
			if (!around || around == round) return false;
			if (around->kind == IR_WHILE) return true;
			if (around->kind == IR_FOR && reads_since(b->last, b, barriers, around)) return true;
			o = around->prev;
			b = around->block;
		}
		if (may_read(o, barriers)) return true;
		if (o->kind == IR_CTA_BARRIER || (o->kind == IR_WGMMA && o->shared_bytes)) return false;
	}
}

/* Every lane reads a number that was sent. */
static bool follows_receive(const ir_op *o)
{
	return o->prev && o->prev->kind == IR_SCALAR_RECEIVE;
}

typedef struct synchroniser {
	ir_func *func;
	bool reads; /* some thread reads a multibuffer by itself */
} synchroniser;

static void synchronise(ir_op *o, void *context)
{
	const synchroniser *s = context;
	const ir_func *f = s->func;
	wgmma_plan plan;
	switch (o->kind) {
	case IR_WGMMA:
		ir_set_fence(
			o, !ir_get_joined(o) && (!wgmma_plan_make(o, f->num_warps, &plan) || !is_fenced(o, &plan)));
		break;
	case IR_WGMMA_WAIT: ir_set_done(o, o->nargs && is_in_flight(ir_arg(o, 0)) && is_waited_for(o)); break;
	case IR_BULK_STORE:
		ir_set_reuses(o, reuses_scratch(o));
		ir_set_commit(o, bulk_begins_copies(o) && !is_committed_later(o));
		ir_set_syncwarp(o, ir_get_by_warps(o) && follows_bulk_wait(o));
		ir_set_proxy(o, bulk_begins_copies(o) ? proxy_of_store(s->func, o) : IR_PROXY_NONE);
		break;
	case IR_MBARRIERS: see_barriers(f, o); break;
	case IR_MBARRIER_ARRIVE:
		ir_set_syncwarp(
			o, follows_receive(o) || (s->reads && reads_since(o->prev, o->block, ir_arg(o, 0), NULL)));
		break;
	default: break;
	}
}

bool pass_synchronise(pass_context *c, ir_func *f)
{
	(void)c;
	synchroniser s = {.func = f, .reads = has_reads(f)};
	ir_walk(f->body, synchronise, &s);
	return true;
}
