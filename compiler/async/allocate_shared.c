/* Where in shared memory the scratch of each operation lies.
 *
 * In: a mapped function.  Out: op.shared_offset and shared_bytes of the operations that need scratch (scratch.h), and
 * func.shared_bytes.  The one idea: scratch lives only while its operation runs, so two operations never need theirs at
 * the same time and could all start at 0; but bytes that are read by one operation and written by the next need a
 * barrier in between.  So an operation's scratch counts as live until the next one with scratch has run, whose inner
 * barrier then separates it from those after it: a softmax's two reductions get bytes of their own and no further
 * barrier, in a loop too, and three conversions in a row share two places.
 *
 * Live at the same time here means: one may run directly after the other, with no operation with scratch in between,
 * along some path through branches and loops.  Large scratch (above SEPARATE_LIMIT) is reused at once: a barrier costs
 * less than the occupancy; but that of two bulk stores, which go on reading it, only where no other place is free.
 * Placement: by falling size, first fit at the lowest aligned offset.
 *
 * A multibuffer lives from its operation to the end in the same block, or in a block that ends the program
 * (ir_is_tail); one that stays, to the end of its block.
 * Multibuffers have the lowest bytes, one after the other; those of a loop behind another one's lie where its did.
 * What runs while some live stands behind those, everything else may lie where they do: to the barrier pass a
 * multibuffer is a write, and what was read of it is pending when it ends.  The barriers of bulk copies are given up at
 * their end only where other operations take their bytes. */
#include "passes/passes.h"
#include "scratch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SEPARATE_LIMIT = 4096, MAX_PATHS = 16 };

typedef struct scratch {
	ir_op *op;
	uint32_t index; /* program order */
	VEC(uint32_t) neighbours;
	bool placed, beside_multibuffer;
	uint32_t from; /* where the multibuffers end that live around it */
} scratch;

/* Operations whose scratch may have been used last when control is here; more than fit are forgotten, which costs a
 * barrier at most. */
typedef struct recent {
	uint32_t at[MAX_PATHS];
	unsigned n;
} recent;

typedef struct allocator {
	arena *arena;
	VEC(scratch *) all;
	uint32_t next;         /* while walking again: number of the next operation with scratch */
	uint32_t multibuffers; /* bytes */
} allocator;

static void remember(recent *r, uint32_t index)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->at[i] == index) return;
	if (r->n < MAX_PATHS) r->at[r->n++] = index;
}

static void merge(recent *r, const recent *other)
{
	for (unsigned i = 0; i < other->n; i++) remember(r, other->at[i]);
}

static uint32_t round_up(uint32_t n, uint32_t unit)
{
	assert(unit && !(unit & (unit - 1)));
	return (n + unit - 1) & ~(unit - 1);
}

/* around: a multibuffer of a block around it lives; all that live there end at `from`. */
static void find(const ir_func *f, allocator *a, ir_block *b, bool around, uint32_t from)
{
	bool own = false; /* a multibuffer of this block lives */
	uint32_t end = from;
	for (ir_op *o = b->first; o; o = o->next) {
		uint32_t bytes = scratch_bytes(f, o);
		o->shared_bytes = round_up(bytes, SCRATCH_ALIGN);
		if (scratch_lasts(o)) {
			own = true;
			if (o->shared_offset + o->shared_bytes > end) end = o->shared_offset + o->shared_bytes;
			if (o->kind == IR_MULTIBUFFER &&
				ir_get_stays(o)) { /* for this block as if it stood around it */
				around = true;
				from = end;
			}
		} else if (o->kind == IR_MULTIBUFFER_END) {
			if (!own && ir_is_tail(f, b)) around = false; /* those in front of the partitions */
			own = false;
			end = from;
		} else if (bytes) {
			scratch *s = ARENA_NEW(a->arena, scratch);
			s->op = o;
			s->index = a->all.n;
			s->beside_multibuffer = own || around;
			s->from = end;
			vec_push(a->arena, &a->all, s);
		}
		for (unsigned r = 0; r < o->nregions; r++) find(f, a, o->regions[r], own || around, end);
	}
}

static void neighbours(allocator *a, uint32_t before, uint32_t after)
{
	scratch *x = a->all.at[before], *y = a->all.at[after];
	assert(x->index == before && y->index == after);
	bool large = x->op->shared_bytes > SEPARATE_LIMIT || y->op->shared_bytes > SEPARATE_LIMIT;
	if (before == after || (large && (x->op->kind != IR_BULK_STORE || y->op->kind != IR_BULK_STORE))) return;
	for (uint32_t i = 0; i < x->neighbours.n; i++)
		if (x->neighbours.at[i] == after) return;
	vec_push(a->arena, &x->neighbours, after);
	vec_push(a->arena, &y->neighbours, before);
}

/* Walks a block with the operations that ran last before it; leaves those that ran last in it.  Round a loop only the
 * loop's first operation in program order counts as next: forgetting one costs no more than a barrier. */
static void walk(allocator *a, const ir_block *b, recent *last)
{
	for (const ir_op *o = b->first; o; o = o->next) {
		if (o->shared_bytes && !scratch_lasts(o)) {
			uint32_t self = a->next++;
			assert(a->all.at[self]->op == o); /* as find() numbered them */
			for (unsigned i = 0; i < last->n; i++) neighbours(a, last->at[i], self);
			*last = (recent){.at = {self}, .n = 1};
		}
		if (!ir_has(o, IR_CONTROL)) continue;
		recent before = *last;
		uint32_t start = a->next;
		if (o->kind == IR_IF) {
			walk(a, o->regions[0], last);
			walk(a, o->regions[1], &before);
		} else {
			for (unsigned r = 0; r < o->nregions; r++) walk(a, o->regions[r], last);
			for (unsigned i = 0; i < last->n; i++)
				if (last->at[i] >= start) neighbours(a, last->at[i], start);
		}
		merge(last, &before);
	}
}

static int by_size(const void *x, const void *y)
{
	const scratch *a = *(scratch *const *)x, *b = *(scratch *const *)y;
	if (a->op->shared_bytes != b->op->shared_bytes) return a->op->shared_bytes < b->op->shared_bytes ? 1 : -1;
	return a->index < b->index ? -1 : 1;
}

static int by_offset(const void *x, const void *y)
{
	const ir_op *a = *(ir_op *const *)x, *b = *(ir_op *const *)y;
	return (a->shared_offset > b->shared_offset) - (a->shared_offset < b->shared_offset);
}

/* How many programs a processor holds, as far as shared memory goes: it has `SYSTEM` bytes more, and takes as many for
 * each.
 */
static uint32_t resident(uint32_t most, uint32_t bytes)
{
	enum { SYSTEM = 1024 };
	return (most + SYSTEM) / (bytes + SYSTEM);
}

/* What begins inside warps, without a barrier, would need one behind the multibuffers' last readers: beside them where
 * that costs nothing. */
static bool better_beside(const pass_context *c, const ir_func *f, const allocator *a, const ir_op *o)
{
	assert(scratch_align(o) && o->shared_bytes);
	uint32_t most = c->target->shared_bytes, end = round_up(a->multibuffers, scratch_align(o)) + o->shared_bytes;
	uint32_t without = a->multibuffers > o->shared_bytes ? a->multibuffers : o->shared_bytes;
	if (o->kind != IR_BULK_STORE || !ir_get_by_warps(o) || end > most || end > f->max_shared) return false;
	return resident(most, end) == resident(most, without);
}

/* The lowest offset from `offset` on at which it meets none of its neighbours that have a place already; without
 * `large`, none of its small ones. */
static uint32_t free_place(const allocator *a, const scratch *s, uint32_t offset, bool large)
{
	assert(s->op->shared_bytes && !(scratch_align(s->op) & (scratch_align(s->op) - 1)));
	ir_op **taken = ARENA_ARRAY(a->arena, ir_op *, s->neighbours.n + 1u);
	uint32_t n = 0, align = scratch_align(s->op);
	for (uint32_t i = 0; i < s->neighbours.n; i++) {
		scratch *other = a->all.at[s->neighbours.at[i]];
		bool small = other->op->shared_bytes <= SEPARATE_LIMIT && s->op->shared_bytes <= SEPARATE_LIMIT;
		if (other->placed && (large || small)) taken[n++] = other->op;
	}
	qsort(taken, n, sizeof taken[0], by_offset);
	for (uint32_t i = 0; i < n; i++) {
		if (taken[i]->shared_offset >= offset + s->op->shared_bytes) break;
		uint32_t end = taken[i]->shared_offset + taken[i]->shared_bytes;
		if (end > offset) offset = round_up(end, align);
	}
	assert(offset % align == 0);
	return offset;
}

static void place(const pass_context *c, const ir_func *f, const allocator *a, scratch *s)
{
	assert(!s->placed);
	uint32_t first = 0, most = f->max_shared < c->target->shared_bytes ? f->max_shared : c->target->shared_bytes;
	if (s->beside_multibuffer)
		first = round_up(s->from, scratch_align(s->op));
	else if (better_beside(c, f, a, s->op))
		first = round_up(a->multibuffers, scratch_align(s->op));
	uint32_t lowest = free_place(a, s, first, false), apart = free_place(a, s, first, true);
	uint32_t end = lowest + s->op->shared_bytes, grown = apart + s->op->shared_bytes;
	if (end < f->shared_bytes) end = f->shared_bytes;
	if (grown < f->shared_bytes) grown = f->shared_bytes;
	bool fits = grown <= most && resident(c->target->shared_bytes, grown) == resident(c->target->shared_bytes, end);
	s->op->shared_offset = fits ? apart : lowest;
	s->placed = true;
}

/* `order`: all that has scratch, the largest first. */
static bool fits(pass_context *c, const ir_func *f, scratch *const *order, uint32_t n)
{
	enum { LABELS = 3 };
	assert(n != 0);
	const scratch *largest = order[0];
	uint32_t most = c->target->shared_bytes;
	bool budget = f->max_shared < most;
	if (budget) most = f->max_shared;
	if (f->shared_bytes <= most) return true;
	diag *d = diag_error(c->diags, budget ? 721 : 720, largest->op->at,
		"kernel '%s' needs %u bytes of shared memory, %s %u", f->name, f->shared_bytes,
		budget ? "max_shared allows" : "the target has", most);
	for (uint32_t i = 0; i < n && i < LABELS && 2 * order[i]->op->shared_bytes >= largest->op->shared_bytes; i++)
		diag_add_label(c->diags, d, order[i]->op->at, "%s needs %u bytes", scratch_purpose(order[i]->op),
			order[i]->op->shared_bytes);
	diag_set_hint(c->diags, d, "use smaller tiles, or one program for a part of the tile");
	return false;
}

/* ---- barriers for bulk copies ---- */

typedef struct after {
	const ir_op *end, *barriers;
	bool seen, taken;
} after;

static void take(ir_op *o, void *context)
{
	after *a = context;
	if (a->seen && o != a->barriers && o->shared_bytes)
		a->taken |= o->shared_offset < a->barriers->shared_offset + a->barriers->shared_bytes &&
			    a->barriers->shared_offset < o->shared_offset + o->shared_bytes;
	a->seen |= o == a->end;
}

/* They stay where nothing behind their end takes their bytes. */
static void let_stay(ir_op *o, void *context)
{
	ir_func *f = context;
	if (o->kind != IR_MBARRIERS_END || !ir_is_tail(f, o->block)) return;
	assert(o->nargs == 1);
	after a = {.end = o, .barriers = ir_arg(o, 0)->def};
	ir_walk(f->body, take, &a);
	assert(a.seen && a.barriers->kind == IR_MBARRIERS);
	ir_set_stays(o, !a.taken);
}

bool pass_allocate_shared(pass_context *c, ir_func *f)
{
	allocator a = {.arena = c->arena};
	recent nothing = {0};
	a.multibuffers = scratch_place_lasting(f);
	find(f, &a, f->body, false, 0);
	walk(&a, f->body, &nothing);
	assert(a.next == a.all.n);
	f->shared_bytes = a.multibuffers;
	scratch **order = ARENA_ARRAY(c->arena, scratch *, a.all.n + 1u);
	if (a.all.n) memcpy(order, a.all.at, a.all.n * sizeof order[0]);
	qsort(order, a.all.n, sizeof order[0], by_size);
	for (uint32_t i = 0; i < a.all.n; i++) {
		place(c, f, &a, order[i]);
		uint32_t end = order[i]->op->shared_offset + order[i]->op->shared_bytes;
		if (end > f->shared_bytes) f->shared_bytes = end;
	}
	ir_walk(f->body, let_stay, f);
	return a.all.n == 0 || fits(c, f, order, a.all.n);
}
