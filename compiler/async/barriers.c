/* Mapped -> scheduled: CTA barriers, only where accesses of different threads may meet.
 *
 * In: a mapped function after allocate_shared.  Out: the same with cta_barrier operations, level scheduled.  The one
 * idea: forward over the program goes the set of accesses made since the last barrier; an operation whose own accesses
 * may meet one of them on bytes that another thread touched, one of the two writing, gets a barrier in front of it,
 * which empties the set.  Where control flow meets the set is the union; at a loop's start it includes what its end
 * leaves, so a read of scratch at the end of an iteration meets the write at the start of the next.
 *
 * Shared memory: an operation with scratch writes it, has a barrier of its own inside, and reads it (scratch.h).  So
 * before it: a conflict check for the write; after it: nothing is pending but that read.  Conversions inside warps
 * have only a warp's barrier inside: everything earlier stays pending, and so does their write.
 *
 * Barriers that copies complete are given up by thread 0, behind a barrier of all threads that have waited and read.
 * That write of their bytes needs no other one in front of what thread 0 does there itself: it sets up new ones, or
 * begins copies behind its fence.
 *
 * A loop that fills its own slots has a barrier in front of the copies of each iteration (pipeline.c).  It goes where
 * all threads meet behind their reads of the slots anyway, and no other barrier would stand in its place.
 *
 * A bulk store writes its scratch, has a barrier inside, and then one thread, or one of each warp, begins to copy to
 * global memory.  The copy goes on until a bulk_wait of those threads: in front of what writes those bytes of scratch,
 * of what may meet the copy in global memory, and of the end, where the scratch has to have been read.
 *
 * One by_rows (bulk_parts.c) is lanes' own stores: an exchange inside warps, then accesses as any others.
 *
 * Global memory: the language says that a program's accesses happen in program order as by one thread, but different
 * threads make them.  Reads through *const meet no write.  Any two accesses through *T may meet, but those that alias.c
 * proves not to, and two atomics of one commutative kind whose old values nobody reads.
 * An atomic that releases comes after all accesses of the program so far, one that acquires before all that follow: a
 * barrier on that side, wherever different threads make them.
 * Branches and loops are uniform (their conditions are scalars, equal in all threads), so barriers may stand in them.
 * With one warp the same barriers are needed between lanes; the lowering emits bar.warp.sync for them. */
#include "analysis/alias.h"
#include "bulk.h"
#include "scratch.h"

#include <assert.h>
#include <string.h>

enum { MAX_PENDING = 64, MAX_ITERATIONS = 8 };

/* One access that no barrier has ordered yet. */
typedef struct access {
	ir_op *op;
	bool is_shared, writes;
	bool copying;        /* by a bulk store that was begun: a barrier alone does not order it */
	bool given_up;       /* thread 0's write of the barriers that its copies completed */
	const ir_op *around; /* the outermost loop whose back edge lies behind it */
} access;

typedef struct pending {
	access at[MAX_PENDING];
	unsigned n;
	bool overflow; /* something was forgotten: everything conflicts */
	bool lost;     /* a copy too */
} pending;

enum {
	MEETS = 1,
	MEETS_READ = 2,
	MEETS_COPY = 4
}; /* what it takes: a barrier; and that copies have read, have happened */

typedef struct placer {
	pass_context *context;
	ir_func *func;
	VEC(pending *) loops; /* what the end of each loop leaves, loops numbered in program order */
	uint32_t next_loop;
	bool changed;         /* the end of a loop left something new */
	bool inserted;        /* a barrier was placed in this iteration */
	bool grow;            /* late iterations: only unite, to be sure to end */
	VEC(ir_op *) filling; /* barriers in front of copies into slots that all threads have read (pipeline.c) */
	const ir_op *without; /* one of them, which is tried to be left out; null: none */
	bool refused;         /* it is needed, or another one would be in its place */
} placer;

/* What is known to meet a, meets b: the same access, round no more loops. */
static bool covers(const access *a, const access *b)
{
	return a->op == b->op && a->is_shared == b->is_shared && a->writes == b->writes && a->copying == b->copying &&
	       a->given_up == b->given_up &&
	       (a->around == b->around || !b->around || (a->around && ir_encloses(a->around, b->around)));
}

static void add(pending *p, access a)
{
	for (unsigned i = 0; i < p->n; i++) {
		if (covers(&p->at[i], &a)) return;
		if (covers(&a, &p->at[i])) {
			p->at[i] = a;
			return;
		}
	}
	if (p->n < MAX_PENDING)
		p->at[p->n++] = a;
	else {
		p->overflow = true;
		p->lost |= a.copying;
	}
}

static void unite(pending *p, const pending *other)
{
	for (unsigned i = 0; i < other->n; i++) add(p, other->at[i]);
	p->overflow |= other->overflow;
	p->lost |= other->lost;
}

static bool includes(const pending *p, const pending *other)
{
	for (unsigned i = 0; i < other->n; i++) {
		unsigned k = 0;
		while (k < p->n && !covers(&p->at[k], &other->at[i])) k++;
		if (k == p->n) return false;
	}
	return (p->overflow || !other->overflow) && (p->lost || !other->lost);
}

/* By a barrier. */
static void clear(pending *p)
{
	unsigned n = 0;
	for (unsigned i = 0; i < p->n; i++)
		if (p->at[i].copying) p->at[n++] = p->at[i];
	p->n = n;
	p->overflow = p->lost;
}

/* By a wait, of the threads that began the copies; a barrier is for the others. */
static void copied(pending *p, bool read)
{
	for (unsigned i = 0; i < p->n; i++)
		if (p->at[i].is_shared || !read) p->at[i].copying = false;
	if (!read) p->lost = false;
}

/* ---- what an operation touches ---- */

static bool touches_changing_memory(const ir_op *o)
{
	/* Copies read what does not change. */
	return (ir_accesses(o) || ir_touches(o, IR_WRITES_GLOBAL)) && ir_arg(o, 0)->type.pointer == IR_POINTER;
}

static int64_t order_of(const ir_op *o)
{
	return ir_is_atomic(o) ? ir_get_sem(o) : IR_RELAXED;
}

static bool acquires(const ir_op *o)
{
	return order_of(o) == IR_ACQUIRE || order_of(o) == IR_ACQ_REL;
}

static bool releases(const ir_op *o)
{
	return order_of(o) == IR_RELEASE || order_of(o) == IR_ACQ_REL;
}

static bool writes(const ir_op *o)
{
	return ir_touches(o, IR_WRITES_GLOBAL);
}

/* Two atomics that nobody can tell the order of. */
static bool commute(const ir_op *a, const ir_op *b)
{
	if (a->kind != IR_ATOMIC_RMW || b->kind != IR_ATOMIC_RMW || ir_get_rmw(a) != ir_get_rmw(b)) return false;
	return ir_get_rmw(a) != IR_ATOMIC_XCHG && !a->results[0]->uses && !b->results[0]->uses;
}

/* An operation whose exchange stays inside warps, in a program of several. */
static bool exchanges_in_warps(const placer *p, const ir_op *o)
{
	assert(o->shared_bytes);
	if (o->kind == IR_BULK_STORE) return ir_get_by_warps(o);
	if (o->kind != IR_CONVERT_LAYOUT || p->func->num_warps == 1) return false;
	layout_plan plan;
	const ir_value *from = ir_arg(o, 0);
	layout_plan_conversion(from->layout, o->results[0]->layout, ir_element_bytes(from->type), &plan);
	return plan.kind == LAYOUT_WARP_SHARED;
}

static bool is_by_thread_0(const ir_op *o)
{
	return o->kind != IR_BULK_STORE && ir_is_scalar(ir_arg(o, 0));
}

static bool by_thread_0(const ir_op *a, const ir_op *b)
{
	return is_by_thread_0(a) && is_by_thread_0(b);
}

/* Two accesses of global memory, the second being `now`. */
static bool meet(const placer *p, const access *earlier, const ir_op *now)
{
	assert(!earlier->is_shared);
	/* Copies go on by themselves, whoever began them. */
	if (bulk_begins_copies(earlier->op) || bulk_begins_copies(now))
		return may_alias(p->context, p->func, earlier->op, now, earlier->around);
	if (acquires(earlier->op) || releases(now)) return !by_thread_0(earlier->op, now);
	if (!earlier->writes && !writes(now)) return false;
	return !commute(earlier->op, now) && may_alias(p->context, p->func, earlier->op, now, earlier->around);
}

/* A histogram ends with each thread reading its own bins, and begins with each thread setting them to 0. */
static bool keeps_bins(const ir_op *o)
{
	return o->kind == IR_HISTOGRAM && layout_injective(o->results[0]->layout);
}

/* The iteration before, of the same run of its loop, has read the other buffer. */
static bool alternates(const ir_op *o)
{
	return o->kind == IR_WGMMA && ir_get_alternates(o);
}

/* What thread 0 does in these bytes before anybody else does. */
static bool begins_by_thread_0(const ir_func *f, const ir_op *o)
{
	if (f->row_groups > 1) return false; /* each has such a thread */
	if (o->kind == IR_MULTIBUFFER) return !f->producer_warps && multibuffer_is_bulk(o);
	return o->kind == IR_MBARRIERS || o->kind == IR_BULK_LOAD;
}

/* Bytes of `e` that may still be read, or written, and what `b` may write.  Of the two buffers that a sort's steps take
 * in turn the last one is read behind the last barrier inside; said of sorts whose steps take one each.  Of a block
 * that was loaded only the barrier behind it is left. */
static bool overlap(const ir_func *f, const access *e, const ir_op *b)
{
	const ir_op *a = e->op;
	uint32_t first = a->shared_offset, bytes = a->shared_bytes;
	exchange_plan plan = {0};
	bulk_shape shape;
	assert(a->shared_bytes && b->shared_bytes);
	if (a->kind == IR_SORT) exchange_plan_make(f, a, &plan);
	if (plan.buffers == 2 && layout_registers(ir_arg(a, 0)->layout) <= plan.registers) {
		bytes = plan.bytes;
		if (exchange_barriers(f, a) % 2 == 0) first += plan.bytes;
	}
	if (e->given_up && a->kind == IR_BULK_LOAD && bulk_shape_of(a->results[0]->type, &shape)) {
		first += shape.bytes;
		bytes -= shape.bytes;
	}
	if (e->given_up && begins_by_thread_0(f, b)) return false;
	return first < b->shared_offset + b->shared_bytes && b->shared_offset < first + bytes;
}

/* Its copies begin behind a barrier of its own: what comes before it comes before that, if those who began earlier
 * copies have waited. */
static bool has_barrier(const ir_op *o, bool in_warps)
{
	return o->kind == IR_BULK_STORE && !in_warps;
}

/* The same store's copies of an iteration before: the block is another one, or each warp has copied the same part. */
static bool by_same_warps(const placer *p, const ir_op *copy, const ir_op *now, bool in_warps)
{
	return copy == now && copy->kind == IR_BULK_STORE && in_warps && !may_alias_partly(p->context, now);
}

/* A copy that thread 0 began, and an access that it makes itself. */
static bool both_by_thread_0(const ir_op *copy, const ir_op *now)
{
	return copy->kind == IR_BULK_STORE && !ir_get_by_warps(copy) && (now->kind == IR_STORE || ir_is_atomic(now)) &&
	       ir_is_scalar(ir_arg(now, 0));
}

/* Which of MEETS.. in scratch.  `again`: what is pending of the operation itself is of its last time round its loop. */
static unsigned scratch_conflicts(const placer *p, const pending *set, const ir_op *o, bool again, bool in_warps)
{
	unsigned found = 0;
	/* the same exchange inside warps again: each warp meets its own bytes */
	bool apart = in_warps || keeps_bins(o) || (again && alternates(o));
	for (unsigned i = 0; i < set->n; i++) {
		const access *e = &set->at[i];
		if (e->is_shared && overlap(p->func, e, o) && !(e->op == o && apart))
			found |= e->copying ? MEETS | MEETS_READ : MEETS;
	}
	return found;
}

/* Which of MEETS.. */
static unsigned conflicts(const placer *p, const pending *set, const ir_op *o, bool in_warps)
{
	bool global = touches_changing_memory(o), shared = o->shared_bytes != 0;
	if (!global && !shared) return 0;
	unsigned found = set->overflow ? MEETS : 0;
	if (set->lost) found |= MEETS_COPY;
	if (shared) found |= scratch_conflicts(p, set, o, true, in_warps);
	for (unsigned i = 0; global && i < set->n; i++) {
		const access *e = &set->at[i];
		if (e->is_shared || !meet(p, e, o)) continue;
		bool ordered =
			has_barrier(o, in_warps) || both_by_thread_0(e->op, o) || by_same_warps(p, e->op, o, in_warps);
		found |= (e->copying ? MEETS_COPY : 0u) | (ordered ? 0u : MEETS);
	}
	return found;
}

/* A wait for copies and a barrier, where they take one; what stands there from an iteration before serves. */
static void separate(placer *p, pending *set, ir_op *o, unsigned found)
{
	assert(!ir_has(o, IR_PURE) || o->shared_bytes);
	assert(found != 0);
	p->refused = true;
	if (p->without) return;
	ir_builder b = {.func = p->func, .block = o->block, .before = o, .at = o->at};
	if (o->prev && o->prev->kind == IR_CTA_BARRIER)
		b.before = o->prev;
	else if (found & MEETS)
		b.before = ir_build(&b, IR_CTA_BARRIER, 0, NULL, 0, NULL, 0);
	if (found & (MEETS_READ | MEETS_COPY)) {
		bool read = !(found & MEETS_COPY);
		if (b.before->prev && b.before->prev->kind == IR_BULK_WAIT)
			ir_set_read(b.before->prev, ir_get_read(b.before->prev) && read);
		else
			ir_set_read(ir_build(&b, IR_BULK_WAIT, 0, NULL, 0, NULL, 0), read);
		copied(set, read);
	}
	p->inserted = true;
	if (found & MEETS) clear(set);
}

/* A read of a multibuffer's slot; a dot makes those of its operands itself. */
static void add_multibuffer_reads(pending *set, const ir_op *o)
{
	if (o->kind == IR_MULTIBUFFER_READ) add(set, (access){.op = ir_arg(o, 0)->def, .is_shared = true});
	for (unsigned i = 0; i < 2; i++) {
		const ir_op *read = multibuffer_read_by_dot(o, i);
		if (read) add_multibuffer_reads(set, read);
	}
}

/* Products read slots of it, until their wait; other reads are operations of their own. */
static bool is_read_by_products(const ir_value *multibuffer)
{
	for (const ir_use *u = multibuffer->uses; u; u = u->next)
		if (u->user->kind != IR_BULK_COPY && u->user->kind != IR_MULTIBUFFER_READ) return true;
	return false;
}

/* All threads meet in an iteration behind the operation, in each of them. */
static bool meet_behind(const placer *p, ir_op *o)
{
	while ((o = o->next)) {
		bool scratch = o->shared_bytes && !scratch_lasts(o);
		if (o->kind == IR_CTA_BARRIER || (scratch && !exchanges_in_warps(p, o))) return true;
	}
	return false;
}

/* In a loop, behind the wait for the blocks of an iteration. */
static void find_filling(ir_op *o, void *context)
{
	placer *p = context;
	if (o->kind == IR_CTA_BARRIER && o->prev && o->prev->kind == IR_MBARRIER_WAIT && ir_loop_around(o))
		vec_push(p->context->arena, &p->filling, o);
}

/* All threads have met since they read the slot that is filled behind the barrier. */
static bool is_needless(const placer *p, const pending *set, ir_op *barrier)
{
	if (set->overflow || !meet_behind(p, barrier)) return false;
	for (const ir_use *u = ir_arg(barrier->prev, 0)->uses; u; u = u->next) {
		if (u->user->kind != IR_BULK_COPY) continue;
		const ir_value *multibuffer = ir_arg(u->user, 0);
		if (is_read_by_products(multibuffer)) return false;
		for (unsigned i = 0; i < set->n; i++)
			if (set->at[i].op == multibuffer->def) return false;
	}
	return true;
}

static void transfer(placer *p, pending *set, ir_op *o)
{
	if (o->kind == IR_CTA_BARRIER || o->kind == IR_DEBUG_BARRIER) {
		if (o == p->without)
			p->refused |= !is_needless(p, set, o);
		else
			clear(set);
		return;
	}
	if (o->kind == IR_BULK_WAIT) {
		copied(set, ir_get_read(o));
		return;
	}
	if (o->kind == IR_MBARRIERS_END && ir_get_stays(o)) { /* products have read the multibuffers */
		for (const ir_use *u = ir_arg(o, 0)->uses; u; u = u->next)
			if (u->user->kind == IR_BULK_COPY && is_read_by_products(ir_arg(u->user, 0)))
				add(set, (access){.op = ir_arg(u->user, 0)->def, .is_shared = true});
		return;
	}
	if (o->kind == IR_MBARRIERS_END) { /* its barrier, then thread 0 ends what lies there */
		clear(set);
		add(set, (access){.op = ir_arg(o, 0)->def, .is_shared = true, .writes = true, .given_up = true});
		return;
	}
	bool in_warps = o->shared_bytes && exchanges_in_warps(p, o);
	unsigned found = conflicts(p, set, o, in_warps);
	if (found) separate(p, set, o, found);
	if (o->kind == IR_MBARRIERS) return;   /* a barrier stands before the first wait */
	if (o->kind == IR_SCALARS) return;     /* and before the first number is sent */
	if (o->kind == IR_MULTIBUFFER) return; /* its copies are ordered by the waits; who reads is not, when it ends */
	add_multibuffer_reads(set, o);
	if (o->shared_bytes && !in_warps) clear(set); /* by the barrier inside; what came before it, came before that */
	bool given_up = o->kind == IR_BULK_LOAD && p->func->row_groups <= 1; /* behind a barrier behind the reads */
	if (o->shared_bytes) add(set, (access){.op = o, .is_shared = true, .writes = given_up, .given_up = given_up});
	if (o->shared_bytes && in_warps) add(set, (access){.op = o, .is_shared = true, .writes = true});
	if (o->kind == IR_BULK_STORE && bulk_begins_copies(o)) { /* they start behind the barrier inside */
		add(set, (access){.op = o, .is_shared = true, .copying = true});
		add(set, (access){.op = o, .writes = true, .copying = true});
	} else if (touches_changing_memory(o) && (!o->shared_bytes || o->kind == IR_BULK_STORE))
		add(set, (access){.op = o, .writes = writes(o)});
}

/* ---- control flow ---- */

static void flow(placer *p, ir_block *b, pending *set);

static void go_round(pending *set, const ir_op *loop)
{
	assert(loop->nregions);
	for (unsigned i = 0; i < set->n; i++) {
		access *e = &set->at[i];
		if (!e->is_shared && !(e->around && ir_encloses(e->around, loop))) e->around = loop;
	}
}

/* What its first iteration meets of what comes before, of the loop's last run too, is ordered in front of the loop: no
 * iteration needs a barrier then. */
static void separate_alternating(placer *p, pending *set, ir_op *loop)
{
	for (const ir_op *o = loop->regions[0]->first; o; o = o->next) {
		if (!alternates(o)) continue;
		unsigned found = scratch_conflicts(p, set, o, false, false) | (set->overflow ? MEETS : 0u);
		if (found) separate(p, set, loop, found);
	}
}

static void flow_loop(placer *p, ir_op *o, pending *set)
{
	assert(o->kind == IR_FOR || o->kind == IR_WHILE);
	separate_alternating(p, set, o);
	uint32_t number = p->next_loop++;
	assert(number <= p->loops.n);
	if (number == p->loops.n) vec_push(p->context->arena, &p->loops, ARENA_NEW(p->context->arena, pending));
	pending end = *set;
	unite(&end, p->loops.at[number]);
	flow(p, o->regions[0], &end);
	pending out = end; /* of a while: left after `before` */
	if (o->kind == IR_WHILE) flow(p, o->regions[1], &end);
	go_round(&end, o);
	pending *known = p->loops.at[number];
	if (!includes(known, &end)) p->changed = true;
	if (p->grow)
		unite(known, &end);
	else
		*known = end;
	if (o->kind == IR_FOR)
		unite(set, &out); /* it may run no iteration */
	else
		*set = out;
}

static void flow(placer *p, ir_block *b, pending *set)
{
	for (ir_op *o = b->first, *next; o; o = next) {
		next = o->next;
		if (o->kind == IR_IF) {
			pending other = *set;
			flow(p, o->regions[0], set);
			flow(p, o->regions[1], &other);
			unite(set, &other);
		} else if (o->kind == IR_PARTITIONS) {
			flow(p, o->regions[0], set); /* the other one has no access but its copies */
		} else if (ir_is_loop(o))
			flow_loop(p, o, set);
		else
			transfer(p, set, o);
	}
}

/* Shared memory is the program's while copies read it. */
static void end_copies(ir_func *f, const pending *left)
{
	bool copying = left->lost;
	for (unsigned i = 0; i < left->n; i++) copying |= left->at[i].copying && left->at[i].is_shared;
	if (!copying) return;
	const ir_op *partitions = f->body->last->prev;
	ir_block *end = partitions && partitions->kind == IR_PARTITIONS ? partitions->regions[0] : f->body;
	ir_builder b = {.func = f, .block = end, .before = end->last, .at = end->last->at};
	ir_set_read(ir_build(&b, IR_BULK_WAIT, 0, NULL, 0, NULL, 0), true);
}

/* *left: what is pending at the end.  False: one is not left out after all. */
static bool place(placer *p, pending *left)
{
	unsigned iteration = 0;
	for (uint32_t i = 0; i < p->loops.n; i++) *p->loops.at[i] = (pending){0};
	do { /* after a barrier was placed, what the loops' ends leave may be less: forget it, up to a point */
		if (p->inserted && !p->grow)
			for (uint32_t i = 0; i < p->loops.n; i++) clear(p->loops.at[i]);
		*left = (pending){0};
		p->changed = p->inserted = p->refused = false;
		p->next_loop = 0;
		p->grow = ++iteration > MAX_ITERATIONS;
		flow(p, p->func->body, left);
		assert(p->next_loop == p->loops.n);
	} while (p->changed ? !p->without || !p->refused : p->inserted);
	return !p->refused;
}

bool pass_barriers(pass_context *c, ir_func *f)
{
	if (!pass_axis(c, f)) return false;
	placer p = {.context = c, .func = f};
	pending left, now;
	if (!f->producer_warps) ir_walk(f->body, find_filling, &p);
	place(&p, &left);
	for (uint32_t i = 0; i < p.filling.n; i++) {
		p.without = p.filling.at[i];
		if (!place(&p, &now)) continue;
		ir_erase(p.filling.at[i]);
		left = now;
	}
	end_copies(f, &left);
	f->level = IR_LEVEL_SCHEDULED;
	return true;
}
