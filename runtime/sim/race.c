/* Races: two threads touch the same bytes, one of them writes, and nothing puts one before the other.
 *
 * Every 4 bytes of shared memory and of buffers that a kernel may write have a cell: who wrote last, who read last.
 * What orders two accesses is known by clocks.  A warp's clock advances when its lanes synchronise and when it leaves a
 * barrier, and it knows of every other warp the clock up to which it has been told (by barriers); so an access is
 * before this one if its warp's clock then is less than what this warp knows of it.  Programs are ordered by atomics
 * and fences: a release of one after its access, an acquire of the other after that.  Readers are summed up in one mark
 * with flags. Where the summary cannot tell, nothing is said: a report is never wrong about programs that synchronise
 * by barriers and by acquire and release.
 *
 * What goes on beside the threads has clocks of its own: a warpgroup's matrix engine, and each mbarrier, whose phases
 * are what the copies that it counts are ordered by.  Threads and these engines see shared memory through different
 * proxies; what a thread wrote an engine reads only behind a fence, by the writer, or by the reader once it knows of
 * the write.
 *
 * The stores of one statement of a program may hit one address twice: the language leaves the order open. */
#include "sim.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARK_ATOMIC = 1, MARK_LANES = 2, MARK_WARPS = 4, MARK_PROGRAMS = 8 }; /* how, and several of what */
enum { PAGE_BYTES = 4096, PAGE_CELLS = PAGE_BYTES / 4, MAX_PROGRAMS = (1 << 24) - 1, MAX_PC = (1 << 20) - 1 };

struct sim_page {
	atomic_flag busy;
	sim_mark *parts; /* as sim_program's */
	sim_cell cells[PAGE_CELLS];
};

/* ---- The life of a launch's cells ---- */

bool sim_races_begin(sim_launch *l)
{
	uint64_t programs = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
	atomic_init(&l->time, 1);
	if (programs > MAX_PROGRAMS) return true; /* too many to tell apart: only shared memory is watched */
	l->released = calloc(programs, sizeof *l->released);
	l->acquired = calloc(programs, sizeof *l->acquired);
	if (!l->released || !l->acquired) return false;
	for (size_t i = 0; i < l->nranges; i++) {
		sim_range *r = &l->ranges[i];
		if (r->parameter < 0 || r->read_only) continue;
		r->pages = calloc((r->bytes + PAGE_BYTES - 1) / PAGE_BYTES + 1, sizeof *r->pages);
		if (!r->pages) return false;
	}
	return true;
}

void sim_races_end(sim_launch *l)
{
	for (size_t i = 0; i < l->nranges; i++) {
		sim_range *r = &l->ranges[i];
		for (uint64_t k = 0; r->pages && k * PAGE_BYTES < r->bytes + PAGE_BYTES; k++) {
			sim_page *page = atomic_load(&r->pages[k]);
			if (page) free(page->parts);
			free(page);
		}
		free(r->pages);
	}
	free((void *)l->released);
	free((void *)l->acquired);
}

/* Made when it is first needed; null: no memory for it, so it is not watched. */
static sim_page *page_of(const sim_range *r, uint64_t offset)
{
	_Atomic(sim_page *) *at = &r->pages[offset / PAGE_BYTES];
	sim_page *p = atomic_load_explicit(at, memory_order_acquire), *none = NULL;
	if (p) return p;
	p = calloc(1, sizeof *p);
	if (!p) return NULL;
	atomic_flag_clear(&p->busy);
	if (atomic_compare_exchange_strong(at, &none, p)) return p;
	free(p);
	return none;
}

/* ---- Order ---- */

/* Lanes of a warp have met. */
void sim_order_warp(sim_warp *w)
{
	w->clock++;
}

/* The warps of a mask have met at a barrier. */
void sim_order_barrier(sim_program *p, uint32_t warps)
{
	uint32_t clock = 0, known[SIM_CLOCKS] = {0};
	for (uint32_t m = warps; m; m &= m - 1) {
		const sim_warp *w = &p->warps[__builtin_ctz(m)];
		if (w->clock > clock) clock = w->clock;
		for (uint32_t k = 0; k < p->nclocks; k++)
			if (w->known[k] > known[k]) known[k] = w->known[k];
	}
	clock++;
	for (uint32_t m = warps; m; m &= m - 1) known[__builtin_ctz(m)] = clock;
	for (uint32_t m = warps; m; m &= m - 1) {
		sim_warp *w = &p->warps[__builtin_ctz(m)];
		w->clock = clock;
		memcpy(w->known, known, p->nclocks * sizeof known[0]);
	}
	if ((uint32_t)__builtin_popcount(warps) == p->nwarps)
		p->all_met = clock;
	else
		p->some_met = true;
}

/* Arrives at an mbarrier: what it knows, and that it has done all so far. */
void sim_order_release(sim_warp *w, uint32_t *told)
{
	for (uint32_t k = 0; k < w->program->nclocks; k++)
		if (w->known[k] > told[k]) told[k] = w->known[k];
	told[w->index] = ++w->clock;
}

/* Has seen a phase of it end. */
void sim_order_acquire(sim_warp *w, const uint32_t *told)
{
	for (uint32_t k = 0; k < w->program->nclocks; k++)
		if (told[k] > w->known[k]) w->known[k] = told[k];
	w->program->some_met = true;
}

void sim_order_cluster(sim_warp *w, bool acquires, bool releases)
{
	const sim_program *p = w->program;
	sim_cluster *c = p->cluster;
	if (c->n == 1 || (!acquires && !releases)) return;
	c->time++;
	if (releases) c->released[p->rank] = c->time;
	if (acquires) c->acquired[p->rank] = c->time;
}

void sim_order_programs(sim_warp *w, sim_scope scope, bool acquires, bool releases)
{
	sim_launch *l = w->program->launch;
	if ((!acquires && !releases) || scope == SCOPE_CTA) return;
	sim_order_cluster(w, acquires, releases);
	if (!l->released || (scope == SCOPE_CLUSTER && w->program->cluster->n == 1)) return;
	uint32_t now = atomic_fetch_add(&l->time, 1) + 1;
	if (releases) atomic_store(&l->released[w->program->number], now);
	if (acquires) atomic_store(&l->acquired[w->program->number], now);
}

/* Which program of the cluster a mark is of. */
static uint32_t rank_of(const sim_cluster *c, const sim_mark *m)
{
	uint32_t rank = 0;
	while (rank + 1 < c->n && c->programs[rank]->number + 1 != m->program) rank++;
	return rank;
}

static bool is_before(const sim_warp *w, const sim_mark *m, uint32_t thread, bool shared)
{
	const sim_program *p = w->program;
	const sim_launch *l = p->launch;
	const sim_cluster *c = p->cluster;
	if (shared && (m->program != p->number + 1 || m->flags & MARK_PROGRAMS)) {
		if (c->acquired[p->rank] <= m->time) return false;
		return m->flags & MARK_PROGRAMS || c->released[rank_of(c, m)] > m->time;
	}
	if (m->program != p->number + 1 || m->flags & MARK_PROGRAMS) {
		if (!l->released || atomic_load(&l->acquired[p->number]) <= m->time) return false;
		return m->flags & MARK_PROGRAMS || atomic_load(&l->released[m->program - 1]) > m->time;
	}
	if (m->clock < p->all_met && m->thread < SIM_LANES * SIM_MAX_WARPS) return true;
	/* Of several warpgroups' engines only the last one's clock is known here. */
	if (m->flags & MARK_WARPS) return p->some_met || m->thread >= SIM_LANES * SIM_MAX_WARPS;
	uint32_t warp = m->thread / SIM_LANES;
	if (m->thread == thread && warp < SIM_CLOCK_GROUP && !(m->flags & MARK_LANES)) return true;
	return warp == w->index ? m->clock < w->clock : m->clock < w->known[warp];
}

/* ---- Accesses ---- */

static bool same_statement(const sim_warp *w, const sim_instr *in, const sim_mark *m)
{
	const sim_instr *other = &w->program->code->code[m->pc];
	return m->program == w->program->number + 1 && other->source_line == in->source_line && other->file == in->file;
}

static bool report(sim_warp *w, const sim_instr *in, unsigned lane, const sim_mark *m, bool writes, bool wrote,
	const sim_range *r, const sim_program *owner, uint64_t offset)
{
	const sim_program *p = w->program;
	char shared[80] = "shared memory";
	const sim_launch *l = p->launch;
	const sim_instr *other = &p->code->code[m->pc];
	char who[160], where[320];
	uint64_t n = m->program - 1;
	uint32_t engine = m->thread / SIM_LANES;
	if (engine >= SIM_CLOCK_GROUP)
		snprintf(who, sizeof who, engine < SIM_CLOCK_COPIES ? "a wgmma" : "a bulk copy");
	else if (m->program == p->number + 1)
		snprintf(who, sizeof who, "thread %u", m->thread);
	else
		snprintf(who, sizeof who, "program (%" PRIu64 ", %" PRIu64 ", %" PRIu64 ")", n % l->grid[0],
			n / l->grid[0] % l->grid[1], n / l->grid[0] / l->grid[1]);
	sim_place(p->code, other, where, sizeof where);
	if (!r && owner != p)
		snprintf(shared, sizeof shared, "shared memory of program %u of the cluster", owner->rank);
	return sim_report(w, in, lane,
		!r && m->program != p->number + 1
			? "a barrier of the cluster between the two is missing, or an mbarrier that one "
			  "arrives at and the other waits for"
		: engine >= SIM_CLOCK_GROUP
			? "wait for it, and let those who need to know see that: an mbarrier, or a barrier"
		: m->program == p->number + 1 ? "a barrier between the two is missing"
					      : "give every program its own elements, or let them use atomics; a lock "
						"needs acquire and release",
		"a race on %s at offset %" PRIu64 ": it is %s here and was %s by %s at %s, in no order",
		r ? l->names[r->parameter] : shared, offset, writes ? "written" : "read", wrote ? "written" : "read",
		who, where);
}

/* The four marks of a cell whose bytes are read by different threads, which one summary would mix up: the cell's own
 * mark then has no bytes.  Null: no memory, so what is read there is not watched. */
static sim_mark *parts_of(sim_program *p, const sim_range *r, uint64_t offset)
{
	sim_page *page = r ? page_of(r, offset) : NULL;
	sim_mark **all = page ? &page->parts : &p->parts;
	size_t cells = page ? PAGE_CELLS : p->shared_bytes / 4 + 1;
	if (!*all) *all = calloc(cells, 4 * sizeof **all);
	return *all ? *all + 4 * (page ? offset % PAGE_BYTES / 4 : offset / 4) : NULL;
}

static bool is_split(const sim_mark *m)
{
	return m->program && !m->bytes;
}

/* The mark of several readers since the last write, `mine` the latest of them. */
static sim_mark merged(const sim_warp *w, const sim_mark *m, sim_mark mine, bool shared)
{
	if (!m->program || is_before(w, m, mine.thread, shared)) return mine;
	mine.bytes |= m->bytes;
	mine.flags = (mine.flags & m->flags & MARK_ATOMIC) | (m->flags & ~MARK_ATOMIC);
	if (m->program != mine.program)
		mine.flags |= MARK_PROGRAMS;
	else if (m->thread != mine.thread || mine.thread < SIM_LANES * SIM_MAX_WARPS)
		mine.flags |= m->thread / SIM_LANES == w->index ? MARK_LANES : MARK_WARPS;
	return mine;
}

static void mark_read(
	sim_warp *w, sim_cell *c, const sim_mark *mine, const sim_range *r, sim_program *owner, uint64_t offset)
{
	sim_mark *m = &c->read, *part;
	if (!is_split(m)) {
		if (!m->program || m->bytes == mine->bytes || is_before(w, m, mine->thread, !r)) {
			*m = merged(w, m, *mine, !r);
			return;
		}
		part = parts_of(owner, r, offset);
		for (unsigned i = 0; part && i < 4; i++) part[i] = m->bytes >> i & 1 ? *m : (sim_mark){0};
		m->bytes = 0;
	}
	part = parts_of(owner, r, offset);
	for (unsigned i = 0; part && i < 4; i++)
		if (mine->bytes >> i & 1) part[i] = merged(w, &part[i], *mine, !r);
}

/* Readers of bytes that are written now have had their turn. */
static void forget_reads(sim_cell *c, uint32_t bytes, const sim_range *r, sim_program *owner, uint64_t offset)
{
	sim_mark *m = &c->read, *part = is_split(m) && bytes != 15 ? parts_of(owner, r, offset) : NULL;
	for (unsigned i = 0; part && i < 4; i++)
		if (bytes >> i & 1) part[i].program = 0;
	if (part) return;
	m->bytes &= ~bytes;
	if (!m->bytes) m->program = 0;
}

/* An atomic that is none for other programs: its scope is the program, or a cluster of one. */
static bool is_narrow(const sim_warp *w, const sim_instr *in)
{
	return in->scope == SCOPE_CTA || (in->scope == SCOPE_CLUSTER && w->program->cluster->n == 1);
}

static bool both_atomic(const sim_mark *a, const sim_mark *b)
{
	return a->flags & b->flags & MARK_ATOMIC && (a->program == b->program || !(a->narrow | b->narrow));
}

/* True: no race. */
static bool touch(sim_warp *w, const sim_instr *in, unsigned lane, sim_cell *c, uint32_t bytes, bool reads, bool writes,
	bool atomic, const sim_range *r, sim_program *owner, uint64_t offset, uint32_t thread, uint32_t clock)
{
	const sim_program *p = w->program;
	uint32_t time = r ? atomic_load_explicit(&p->launch->time, memory_order_relaxed) : p->cluster->time;
	size_t pc = (size_t)(in - p->code->code);
	sim_mark mine = {.program = p->number + 1,
		.bytes = bytes,
		.flags = atomic ? MARK_ATOMIC : 0,
		.thread = thread,
		.pc = pc > MAX_PC ? MAX_PC : (uint32_t)pc,
		.narrow = atomic && is_narrow(w, in),
		.clock = clock,
		.time = time};
	const sim_mark *m = &c->write;
	if (m->program && m->bytes & bytes && !both_atomic(m, &mine) && !is_before(w, m, thread, !r) &&
		!(writes && r && same_statement(w, in, m)))
		return report(w, in, lane, m, writes, true, r, owner, offset);
	m = &c->read;
	if (writes && m->program && m->bytes & bytes && !both_atomic(m, &mine) && !is_before(w, m, thread, !r))
		return report(w, in, lane, m, true, false, r, owner, offset);
	if (writes && is_split(m) && (m = parts_of(owner, r, offset)))
		for (unsigned i = 0; i < 4; i++, m++)
			if (bytes >> i & 1 && m->program && !both_atomic(m, &mine) && !is_before(w, m, thread, !r))
				return report(w, in, lane, m, true, false, r, owner, offset);
	if (writes) {
		c->write = mine;
		forget_reads(c, bytes, r, owner, offset);
	}
	if (reads && !writes) mark_read(w, c, &mine, r, owner, offset); /* an atomic's mark is there already */
	return true;
}

static void lock(sim_page *page)
{
	while (atomic_flag_test_and_set_explicit(&page->busy, memory_order_acquire)) sched_yield();
}

/* What is under way there lets it be written. */
static bool is_free(sim_warp *w, const sim_instr *in, unsigned lane, sim_program *p, uint64_t offset)
{
	if (p->nreading && p->reading[offset / 16])
		return sim_report(w, in, lane,
			"wait until it has been read (wgmma.wait_group, cp.async.bulk.wait_group.read)",
			"shared memory at offset %" PRIu64 " is written while a wgmma or a bulk copy reads it", offset);
	if (!p->npending || !p->pending[offset / 4]) return true;
	if (sim_mbarrier_find(p, offset & ~UINT64_C(7)))
		return sim_report(w, in, lane, "mbarrier.inval comes before its memory is used for something else",
			"shared memory at offset %" PRIu64 " is written, where an mbarrier is", offset);
	return sim_report(w, in, lane, "a wait for the copy, and a barrier, must stand in front",
		"shared memory at offset %" PRIu64 " is written while a copy into it is under way", offset);
}

bool sim_races_async(sim_warp *w, const sim_instr *in, unsigned lane, sim_program *p, uint64_t offset, uint64_t bytes,
	bool writes, uint32_t engine, uint32_t clock)
{
	for (uint64_t end = offset + bytes; offset < end; offset += 4) {
		sim_cell *c = &p->cells[offset / 4];
		if (writes && (p->npending | p->nreading) && !is_free(w, in, lane, p, offset)) return false;
		if (p != w->program || engine >= SIM_CLOCKS) { /* whose clocks this warp does not know */
			c->write = c->read = (sim_mark){0};
			if (engine < SIM_CLOCKS)
				c->write = (sim_mark){.program = p->number + 1,
					.bytes = 15,
					.thread = SIM_LANES * engine,
					.pc = (uint32_t)(in - p->code->code),
					.clock = clock};
		} else if (!touch(w, in, lane, c, 15, !writes, writes, false, NULL, p, offset, SIM_LANES * engine,
				   clock))
			return false;
	}
	return true;
}

/* What the engine reads was written before, and is seen by it, for all four warps. */
static bool is_readable(sim_warp *leader, const sim_instr *in, uint32_t offset, const sim_mark *m)
{
	sim_program *p = leader->program;
	uint32_t from = m->thread / SIM_LANES;
	bool proxied = from >= SIM_CLOCK_GROUP || m->program != p->number + 1 ||
		       p->warps[from].fenced[m->thread % SIM_LANES] > m->clock;
	for (uint32_t k = 0; k < 4; k++) {
		sim_warp *w = leader + k;
		if (!is_before(w, m, SIM_LANES * w->index, true))
			return report(w, in, 0, m, false, true, NULL, p, offset);
		proxied = proxied || m->clock < w->proxied[from];
	}
	return proxied || sim_proxied(leader, in, 0, offset, 4);
}

bool sim_races_product(sim_warp *leader, const sim_instr *in, const uint32_t *offsets, uint32_t n, uint32_t clock)
{
	sim_program *p = leader->program;
	uint32_t engine = SIM_CLOCK_GROUP + leader->index / 4, thread = 0, when = 0;
	size_t pc = (size_t)(in - p->code->code);
	sim_mark mine = {.program = p->number + 1,
		.bytes = 15,
		.thread = SIM_LANES * engine,
		.pc = pc > MAX_PC ? MAX_PC : (uint32_t)pc,
		.clock = clock};
	bool any = false;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < 4; k++) {
			sim_cell *c = &p->cells[offsets[i] / 4 + k];
			const sim_mark *m = &c->write;
			bool same = any && m->thread == thread && m->clock == when;
			if (m->program && !same) {
				if (!is_readable(leader, in, offsets[i] + 4 * k, m)) return false;
				thread = m->thread;
				when = m->clock;
				any = true;
			}
			m = &c->read;
			mine.flags = 0;
			if (m->program && m->thread != mine.thread && !is_before(leader, m, mine.thread, true))
				mine.flags = MARK_WARPS;
			c->read = mine;
		}
	return true;
}

bool sim_proxied(sim_warp *w, const sim_instr *in, unsigned lane, uint64_t offset, uint64_t bytes)
{
	sim_program *p = w->program;
	for (uint64_t end = offset + bytes; offset < end; offset += 4) {
		const sim_mark *m = &p->cells[offset / 4].write;
		uint32_t from = m->thread / SIM_LANES;
		if (m->program != p->number + 1 || from >= p->nwarps) continue;
		if (p->warps[from].fenced[m->thread % SIM_LANES] > m->clock || m->clock < w->proxied[from]) continue;
		char where[320];
		sim_place(p->code, &p->code->code[m->pc], where, sizeof where);
		return sim_report(w, in, lane,
			"fence.proxy.async stands behind the store (of every thread that stores) and in front of the "
			"barrier",
			"shared memory at offset %" PRIu64 " is read by an asynchronous engine; thread %u wrote it at "
			"%s, and no fence.proxy.async is between",
			offset, m->thread, where);
	}
	return true;
}

bool sim_races(sim_warp *w, const sim_instr *in, uint32_t mask, uint8_t *const at[SIM_LANES], unsigned bytes,
	bool reads, bool writes, bool atomic)
{
	return sim_races_of(w, in, mask, at, bytes, reads, writes, atomic, w->index, w->clock);
}

/* The program of the cluster whose shared memory holds a byte; `p`: nobody's. */
static sim_program *owner_of(sim_program *p, const uint8_t *at)
{
	const sim_cluster *c = p->cluster;
	for (uint32_t i = 0; i < c->n; i++)
		if ((uintptr_t)at - (uintptr_t)c->programs[i]->shared < c->programs[i]->shared_bytes)
			return c->programs[i];
	return p;
}

bool sim_races_of(sim_warp *w, const sim_instr *in, uint32_t mask, uint8_t *const at[SIM_LANES], unsigned bytes,
	bool reads, bool writes, bool atomic, uint32_t engine, uint32_t clock)
{
	sim_program *p = w->program;
	sim_page *page = NULL;
	bool good = true;
	for (uint32_t m = mask; m && good; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		uint64_t offset = (uint64_t)(at[i] - p->shared);
		const sim_range *r = NULL;
		sim_program *owner = p;
		if (offset >= p->shared_bytes && p->cluster->n > 1) {
			owner = owner_of(p, at[i]);
			offset = (uint64_t)(at[i] - owner->shared);
		}
		if (offset >= owner->shared_bytes) {
			uint64_t address = (uint64_t)(uintptr_t)at[i];
			r = w->near;
			if (!r || address - r->base >= r->bytes) r = sim_range_find(p->launch, address);
			if (!r || !r->pages) continue; /* local, constant, or not to be written */
			offset = address - r->base;
		}
		for (unsigned done = 0; done < bytes && good;) {
			unsigned n = 4 - (offset & 3) < bytes - done ? (unsigned)(4 - (offset & 3)) : bytes - done;
			uint32_t some = ((1u << n) - 1) << (offset & 3);
			sim_cell *c = r ? NULL : &owner->cells[offset / 4];
			if (!r && writes && (owner->npending | owner->nreading) &&
				!(good = is_free(w, in, i, owner, offset)))
				break;
			if (r) {
				sim_page *next = page_of(r, offset);
				if (next != page) {
					if (page) atomic_flag_clear_explicit(&page->busy, memory_order_release);
					page = next;
					if (page) lock(page);
				}
				if (page) c = &page->cells[offset % PAGE_BYTES / 4];
			}
			if (c)
				good = touch(w, in, i, c, some, reads, writes, atomic, r, owner, offset,
					SIM_LANES * engine + (engine < SIM_MAX_WARPS ? i : 0), clock);
			done += n;
			offset += n;
		}
	}
	if (page) atomic_flag_clear_explicit(&page->busy, memory_order_release);
	return good;
}
