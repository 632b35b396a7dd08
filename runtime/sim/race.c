/* Races: two threads touch the same bytes, one of them writes, and nothing puts one before the other.
 *
 * Every 4 bytes of shared memory and of buffers that a kernel may write have a cell: who wrote last, who read last.
 * What orders two accesses is known by clocks.  A warp's clock advances when its lanes synchronise, when it leaves a
 * barrier, and when some of its lanes tell others what they did; it knows of every other warp the clock up to which all
 * its lanes have been told (by barriers), and beside that what single lanes have done and been told since; so an access
 * is before this one if its warp's clock then is less than what this lane knows of it.  Programs are ordered by atomics
 * and fences: a release of one that knows of the access, an acquire of the other after that.  Where the bytes of a word
 * have different writers or readers, each byte has marks of its own, which lie apart.  Several readers of one byte are
 * summed up in one mark with flags. Where the summary cannot tell, nothing is said: a report is never wrong about
 * programs that synchronise by barriers and by acquire and release.
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

enum { MARK_ATOMIC = 1, MARK_LANES = 2, MARK_WARPS = 4, MARK_PROGRAMS = 8 }; /* how, and several of what have read */
enum {
	MARK_BYTES = MARK_LANES,
	MARK_HALVES = MARK_WARPS
}; /* of a write: by neighbouring lanes, each one or two bytes */
enum { PAGE_BYTES = 4096, PAGE_CELLS = PAGE_BYTES / 4, MAX_PROGRAMS = (1 << 24) - 1 };

struct sim_page {
	atomic_flag busy;
	sim_mark *parts[2]; /* as sim_program's */
	sim_cell cells[PAGE_CELLS];
};

/* ---- The life of a launch's cells ---- */

bool sim_races_begin(sim_launch *l)
{
	uint64_t programs = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
	atomic_init(&l->time, 1);
	if (programs > MAX_PROGRAMS) return true; /* too many to tell apart: only shared memory is watched */
	l->released = calloc(programs, sizeof *l->released);
	l->fenced = calloc(programs, sizeof *l->fenced);
	if (!l->released || !l->fenced) return false;
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
			if (page) free(page->parts[0]), free(page->parts[1]);
			free(page);
		}
		free(r->pages);
	}
	uint64_t programs = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
	for (uint64_t i = 0; l->released && i < programs; i++) free(atomic_load(&l->released[i]));
	free((void *)l->released);
	free((void *)l->fenced);
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

/* What some lanes of a warp did is added to what others of it did in the same while: of both together up to the later
 * clock, which may be more than is known. */
static void join_lanes(const sim_program *p, sim_knowledge *to, const sim_knowledge *from)
{
	for (uint32_t k = 0; k < p->nwarps; k++) {
		if (from->until[k] <= to->clock[k]) continue;
		if (to->until[k] <= to->clock[k]) to->lanes[k] = 0;
		to->lanes[k] |= from->lanes[k];
		if (from->until[k] > to->until[k]) to->until[k] = from->until[k];
		to->some = true;
	}
}

static void join(const sim_program *p, sim_knowledge *to, const sim_knowledge *from)
{
	assert(p->nclocks <= SIM_CLOCKS);
	for (uint32_t k = 0; k < p->nclocks; k++)
		if (from->clock[k] > to->clock[k]) to->clock[k] = from->clock[k];
	if (from->cluster > to->cluster) to->cluster = from->cluster;
	if (from->launch > to->launch) to->launch = from->launch;
	if (__builtin_expect(from->some, 0)) join_lanes(p, to, from);
}

/* Where what these lanes are told is kept. */
static sim_knowledge *pupil(sim_warp *w, uint32_t lanes)
{
	if (!(w->alive & ~lanes)) return &w->known;
	if (!w->learners) memset(&w->learned, 0, sizeof w->learned);
	w->learners |= lanes;
	return &w->learned;
}

static void share_learned(sim_warp *w)
{
	if (__builtin_expect(w->learners != 0, 0)) join(w->program, &w->known, &w->learned);
	w->learners = 0;
}

/* The lanes of a warp have met. */
void sim_order_warp(sim_warp *w)
{
	share_learned(w);
	w->known.clock[w->index] = ++w->clock;
}

/* The warps of a mask have met at a barrier. */
void sim_order_barrier(sim_program *p, uint32_t warps, const sim_knowledge *told)
{
	assert((uint64_t)warps >> p->nwarps == 0);
	uint32_t clock = 0;
	bool all = (uint32_t)__builtin_popcount(warps) == p->nwarps;
	sim_knowledge known = {0};
	for (uint32_t m = warps; m; m &= m - 1) {
		sim_warp *w = &p->warps[__builtin_ctz(m)];
		share_learned(w);
		if (w->clock > clock) clock = w->clock;
		join(p, &known, &w->known);
	}
	if (told) join(p, &known, told);
	clock++;
	for (uint32_t m = warps; m; m &= m - 1) known.clock[__builtin_ctz(m)] = clock;
	if (all) known.some = false;
	for (uint32_t m = warps; m; m &= m - 1) {
		sim_warp *w = &p->warps[__builtin_ctz(m)];
		w->clock = clock;
		memcpy(w->known.clock, known.clock, p->nclocks * sizeof known.clock[0]);
		w->known.cluster = known.cluster;
		w->known.launch = known.launch;
		if (known.some) w->known = known;
	}
	if (all)
		p->all_met = clock;
	else
		p->some_met = true;
}

/* Lanes arrive at an mbarrier, or their like: what they know, and that they have done all so far. */
void sim_order_release(sim_warp *w, uint32_t lanes, sim_knowledge *told)
{
	const sim_program *p = w->program;
	uint32_t k = w->index;
	join(p, told, &w->known);
	if (w->learners & lanes) join(p, told, &w->learned);
	w->clock++;
	assert(lanes && told->until[k] < w->clock);
	if (told->until[k] <= told->clock[k]) told->lanes[k] = 0;
	told->lanes[k] |= lanes;
	told->until[k] = w->clock;
	if (told->lanes[k] == SIM_ALL)
		told->clock[k] = w->clock;
	else
		told->some = true;
}

/* Lanes have seen a phase of it end. */
void sim_order_acquire(sim_warp *w, uint32_t lanes, const sim_knowledge *told)
{
	join(w->program, pupil(w, lanes), told);
	w->program->some_met = true;
}

void sim_order_engine(sim_warp *w, uint32_t lanes, uint32_t engine, uint32_t clock)
{
	assert(engine < SIM_CLOCKS);
	sim_knowledge *k = pupil(w, lanes);
	if (clock > k->clock[engine]) k->clock[engine] = clock;
}

void sim_order_phase(const sim_program *p, sim_knowledge *told, const sim_knowledge *arriving)
{
	join(p, told, arriving);
}

/* In another program these are read meanwhile. */
static void publish(_Atomic uint32_t *at, uint32_t v)
{
	atomic_store_explicit(at, v, memory_order_relaxed);
}

static uint32_t seen(_Atomic uint32_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

/* Told to the programs of the launch. */
static void release_to_launch(sim_warp *w, uint32_t lanes)
{
	const sim_program *p = w->program;
	sim_launch *l = p->launch;
	sim_released *r = atomic_load(&l->released[p->number]);
	sim_knowledge mine = {0};
	if (!r && !(r = calloc(1, sizeof *r))) {
		sim_out_of_memory(l);
		return;
	}
	for (uint32_t k = 0; k < p->nwarps; k++) {
		mine.lanes[k] = seen(&r->lanes[k]);
		mine.until[k] = seen(&r->until[k]);
	}
	for (uint32_t k = 0; k < SIM_CLOCK_MBARRIER; k++) mine.clock[k] = seen(&r->clock[k]);
	sim_order_release(w, lanes, &mine);
	for (uint32_t k = 0; k < SIM_CLOCK_MBARRIER; k++) publish(&r->clock[k], mine.clock[k]);
	for (uint32_t k = 0; k < p->nwarps; k++) {
		publish(&r->lanes[k], mine.lanes[k]);
		publish(&r->until[k], mine.until[k]);
	}
	atomic_store(&l->released[p->number], r);
}

static void release_to_cluster(sim_warp *w, uint32_t lanes)
{
	const sim_cluster *c = w->program->cluster;
	sim_releases *r = &w->program->cluster->released[w->program->rank];
	sim_knowledge *k = &r->at[r->n % SIM_RELEASES];
	if (r->n)
		*k = r->at[(r->n - 1) % SIM_RELEASES];
	else
		memset(k, 0, sizeof *k);
	sim_order_release(w, lanes, k);
	r->time[r->n++ % SIM_RELEASES] = c->time;
}

void sim_order_programs(sim_warp *w, uint32_t lanes, sim_scope scope, bool acquires, bool releases)
{
	sim_program *p = w->program;
	sim_cluster *c = p->cluster;
	sim_launch *l = p->launch;
	if ((!acquires && !releases) || scope == SCOPE_CTA || (scope == SCOPE_CLUSTER && c->n == 1)) return;
	if (c->n > 1) {
		c->time++;
		if (releases) release_to_cluster(w, lanes);
		if (acquires) pupil(w, lanes)->cluster = c->time;
	}
	if (!l->released) return;
	if (releases) release_to_launch(w, lanes);
	uint32_t now = atomic_fetch_add(&l->time, 1) + 1;
	if (acquires) pupil(w, lanes)->launch = now;
}

/* What these lanes did and know of is fenced between the proxies. */
void sim_order_proxies(sim_warp *w, uint32_t lanes, sim_proxy which)
{
	const sim_program *p = w->program;
	sim_knowledge *k = &w->proxied[which];
	w->clock++;
	for (uint32_t m = lanes; m; m &= m - 1) w->fenced[which][__builtin_ctz(m)] = w->clock;
	join(p, k, &w->known);
	if (w->learners & lanes) join(p, k, &w->learned);
	if (which == PROXY_GLOBAL && p->launch->fenced)
		atomic_store(&p->launch->fenced[p->number], atomic_fetch_add(&p->launch->time, 1) + 1);
}

static bool holds(const sim_knowledge *k, uint32_t thread, uint32_t clock)
{
	uint32_t from = thread / SIM_LANES;
	assert(from < SIM_CLOCKS);
	return clock < k->clock[from] ||
	       (k->some && from < SIM_MAX_WARPS && k->lanes[from] >> thread % SIM_LANES & 1 && clock < k->until[from]);
}

bool sim_knows(const sim_warp *w, uint32_t lanes, uint32_t thread, uint32_t clock)
{
	if (holds(&w->known, thread, clock) || (w->learners & lanes && holds(&w->learned, thread, clock))) return true;
	return thread / SIM_LANES == w->index && lanes == UINT32_C(1) << thread % SIM_LANES;
}

/* Which program of the cluster a mark is of. */
static uint32_t rank_of(const sim_cluster *c, const sim_mark *m)
{
	uint32_t rank = 0;
	while (rank + 1 < c->n && c->programs[rank]->number + 1 != m->program) rank++;
	return rank;
}

/* When these lanes have listened to other programs last. */
static uint32_t listened(const sim_warp *w, uint32_t lanes, bool shared)
{
	uint32_t known = shared ? w->known.cluster : w->known.launch;
	uint32_t learned = !(w->learners & lanes) ? 0 : shared ? w->learned.cluster : w->learned.launch;
	return learned > known ? learned : known;
}

/* Its program had told the cluster of it at a time; of older releases than are kept the last is taken. */
static bool was_told(const sim_releases *r, const sim_mark *m, uint32_t time)
{
	uint32_t kept = r->n < SIM_RELEASES ? r->n : SIM_RELEASES;
	for (uint32_t i = 0; i < kept; i++) {
		uint32_t at = (r->n - 1 - i) % SIM_RELEASES;
		if (r->time[at] <= time || (i == SIM_RELEASES - 1 && r->n > SIM_RELEASES))
			return holds(&r->at[at], m->thread, m->clock);
	}
	return false;
}

/* Its program has told others of it; of the launch's releases only the last is known. */
static bool is_told(const sim_warp *w, const sim_mark *m, bool shared, uint32_t time)
{
	const sim_cluster *c = w->program->cluster;
	if (shared) return was_told(&c->released[rank_of(c, m)], m, time);
	assert(m->program && w->program->launch->released);
	sim_released *r = atomic_load(&w->program->launch->released[m->program - 1]);
	uint32_t from = m->thread / SIM_LANES;
	if (!r) return false;
	return m->clock < seen(&r->clock[from]) ||
	       (from < SIM_MAX_WARPS && seen(&r->lanes[from]) >> m->thread % SIM_LANES & 1 &&
		       m->clock < seen(&r->until[from]));
}

/* Single lanes of its own warp have told these lanes something since that access. */
static bool knows_own_lanes(const sim_warp *w, const sim_mark *m, uint32_t lanes)
{
	return m->clock < w->known.until[w->index] || (w->learners & lanes && m->clock < w->learned.until[w->index]);
}

/* Lanes of a warp, one of them `thread` (or an engine that they tell what to do), come behind it. */
static bool is_before(const sim_warp *w, const sim_mark *m, uint32_t lanes, uint32_t thread, bool shared)
{
	const sim_program *p = w->program;
	if (m->program != p->number + 1 || m->flags & MARK_PROGRAMS) {
		uint32_t time = listened(w, lanes, shared);
		if (time <= m->time) return false;
		return m->flags & MARK_PROGRAMS || is_told(w, m, shared, time);
	}
	uint32_t warp = m->thread / SIM_LANES;
	if (m->clock < p->all_met && warp < SIM_MAX_WARPS) return true;
	/* Of several readers only the last one is known, and where some warps meet without the others the earlier ones
	 * may be done or not. */
	if (m->flags & MARK_WARPS && !p->some_met && warp < SIM_MAX_WARPS) return false;
	if (m->thread == thread && warp < SIM_CLOCK_GROUP)
		return !(m->flags & MARK_LANES) || m->flags & MARK_WARPS || m->clock < w->known.clock[warp] ||
		       knows_own_lanes(w, m, lanes);
	return sim_knows(w, lanes, m->thread, m->clock);
}

/* ---- Accesses ---- */

/* A word, or bytes of one. */
typedef struct place {
	sim_cell *cell;
	const sim_range *range; /* null: shared memory */
	sim_program *owner;     /* of that */
	uint64_t offset;        /* of the first byte */
} place;

/* Who touches it, and how. */
typedef struct touching {
	sim_warp *warp;
	const sim_instr *in;
	unsigned lane;
	bool writes, atomic;
	uint32_t thread, clock; /* an engine's, where one acts for the lane */
} touching;

static bool same_statement(const sim_warp *w, const sim_instr *in, const sim_mark *m)
{
	const sim_instr *other = &w->program->code->code[m->pc];
	return m->program == w->program->number + 1 && other->source_line == in->source_line && other->file == in->file;
}

/* Which engine's mark of a copy has the program right is known only where no other program copies. */
static sim_other other_of(const sim_program *p, const sim_mark *m, bool wrote)
{
	assert(m->program && m->pc < p->code->n);
	const uint32_t *grid = p->launch->grid;
	uint32_t n = m->program - 1, engine = m->thread / SIM_LANES;
	return (sim_other){.in = &p->code->code[m->pc],
		.has_program = engine < SIM_CLOCK_MBARRIER || p->cluster->n == 1,
		.program = {n % grid[0], n / grid[0] % grid[1], n / grid[0] / grid[1]},
		.thread = m->thread,
		.engine = engine < SIM_CLOCK_GROUP    ? NULL
			  : engine < SIM_CLOCK_COPIES ? "wgmma"
						      : "bulk copy",
		.kind = sim_kind_name(wrote)};
}

static sim_spot spot_of(const place *at, uint64_t bytes, bool writes, const sim_other *other)
{
	const char *kind = sim_kind_name(writes);
	const sim_range *r = at->range;
	sim_spot spot = r ? sim_spot_in(r, SPACE_GLOBAL, r->base + at->offset, bytes, kind)
			  : sim_spot_shared(at->owner, at->offset, bytes, kind);
	spot.other = other;
	return spot;
}

/* In words: its own program knows a thread by its number. */
static void name_other(const sim_program *p, const sim_other *o, char *out, size_t room)
{
	if (o->engine)
		snprintf(out, room, "a %s", o->engine);
	else if (memcmp(o->program, p->id, sizeof p->id) == 0)
		snprintf(out, room, "thread %u", o->thread);
	else
		snprintf(out, room, "program (%u, %u, %u)", o->program[0], o->program[1], o->program[2]);
}

/* `bytes`: which of the four are touched here. */
static bool report(const touching *t, const sim_mark *m, bool wrote, const place *at, uint32_t bytes)
{
	const sim_program *p = t->warp->program;
	const sim_range *r = at->range;
	char what[SIM_NAME] = "shared memory";
	const sim_other other = other_of(p, m, wrote);
	const sim_spot spot = spot_of(at, (uint64_t)__builtin_popcount(bytes), t->writes, &other);
	char who[160], where[320];
	name_other(p, &other, who, sizeof who);
	sim_place(p->code, other.in, where, sizeof where);
	if (!r && at->owner != p)
		snprintf(what, sizeof what, "shared memory of program %u of the cluster", at->owner->rank);
	return sim_report_at(t->warp, t->in, t->lane, &spot,
		!r && m->program != p->number + 1
			? "a barrier of the cluster between the two is missing, or an mbarrier that one "
			  "arrives at and the other waits for"
		: other.engine ? "wait for it, and let those who need to know see that: an mbarrier, or a barrier"
		: m->program == p->number + 1 ? "a barrier between the two is missing"
					      : "give every program its own elements, or let them use atomics; a lock "
						"needs acquire and release",
		"a race on %s at offset %" PRIu64 ": it is %s here and was %s by %s at %s, in no order",
		r ? sim_range_name(p->launch, r, what) : what, at->offset, t->writes ? "written" : "read",
		wrote ? "written" : "read", who, where);
}

/* ---- Marks of single bytes ---- */

/* The four marks of a cell whose bytes were written, or read, by different threads, which one mark cannot tell apart:
 * the cell's own mark then has no bytes.  Null: no memory, so those accesses are not watched. */
static sim_mark *parts_of(const place *at, bool writes)
{
	const sim_range *r = at->range;
	sim_program *p = at->owner;
	uint64_t offset = at->offset;
	sim_page *page = r ? page_of(r, offset) : NULL;
	assert(r ? page != NULL : offset < p->shared_bytes); /* its cell is there */
	sim_mark **all = page ? &page->parts[writes] : &p->parts[writes];
	size_t cells = page ? PAGE_CELLS : p->shared_bytes / 4 + 1;
	if (!*all) *all = calloc(cells, 4 * sizeof **all);
	return *all ? *all + 4 * (page ? offset % PAGE_BYTES / 4 : offset / 4) : NULL;
}

static bool is_split(const sim_mark *m)
{
	return m->program && !m->bytes;
}

/* A write's mark that is not one thread's. */
static bool is_shared_out(const sim_mark *m)
{
	return m->flags & (MARK_BYTES | MARK_HALVES) || is_split(m);
}

/* What a write's mark, which is not split, says of one byte. */
static sim_mark of_byte(const sim_mark *m, unsigned byte)
{
	assert(m->bytes >> byte & 1);
	sim_mark one = *m;
	unsigned before = byte - (unsigned)__builtin_ctz(m->bytes);
	one.thread = m->thread + (m->flags & MARK_BYTES ? before : m->flags & MARK_HALVES ? before / 2 : 0);
	one.bytes = 1u << byte;
	one.flags = m->flags & MARK_ATOMIC;
	return one;
}

/* Who wrote these bytes last, each thread once: as many marks as are returned. */
static unsigned writers_of(const place *at, uint32_t bytes, sim_mark out[4])
{
	const sim_mark *m = &at->cell->write, *part = is_split(m) ? parts_of(at, true) : NULL;
	unsigned n = 0;
	if (!m->program) return 0;
	for (unsigned i = 0; i < 4; i++) {
		if (!(bytes >> i & 1) || !(part ? part[i].program : m->bytes >> i & 1)) continue;
		const sim_mark one = part ? part[i] : of_byte(m, i);
		bool same = n && out[n - 1].program == one.program && out[n - 1].thread == one.thread &&
			    out[n - 1].clock == one.clock && out[n - 1].pc == one.pc;
		if (!same) out[n++] = one;
	}
	return n;
}

/* Of neighbours in memory: the next lane did the same to as many bytes. */
static bool is_next(const sim_mark *m, const sim_mark *next)
{
	assert(m->bytes && next->bytes);
	unsigned end = 32 - (unsigned)__builtin_clz(m->bytes);
	return (unsigned)__builtin_ctz(next->bytes) == end && m->program == next->program && m->clock == next->clock &&
	       m->pc == next->pc && of_byte(m, end - 1).thread + 1 == next->thread;
}

static void extend(sim_mark *m, const sim_mark *next)
{
	m->flags |= __builtin_popcount(next->bytes) == 1 ? MARK_BYTES : MARK_HALVES;
	m->bytes |= next->bytes;
	m->time = next->time;
}

static bool same_access(const sim_mark *a, const sim_mark *b)
{
	return a->program == b->program && a->thread == b->thread && a->clock == b->clock && a->pc == b->pc;
}

/* A cell whose four bytes are one mark's again. */
static void rejoin(sim_mark *m, const sim_mark *part)
{
	sim_mark all = part[0];
	unsigned size = same_access(&part[0], &part[1]) ? 2 : 1;
	if (!all.program) return;
	all.bytes = size == 2 ? 3 : 1;
	for (unsigned i = size; i < 4; i += size) {
		sim_mark next = part[i];
		if (!next.program || (size == 2 && !same_access(&next, &part[i + 1]))) return;
		next.bytes = (size == 2 ? 3u : 1u) << i;
		if (!is_next(&all, &next)) return;
		extend(&all, &next);
	}
	*m = all;
}

static void mark_write(const place *at, const sim_mark *mine)
{
	sim_mark *m = &at->cell->write, *part;
	assert(mine->bytes != 0);
	if (!m->program || mine->bytes == 15 || (m->bytes && !(m->bytes & ~mine->bytes))) {
		*m = *mine;
		return;
	}
	if (m->bytes && !(m->bytes & mine->bytes) && is_next(m, mine)) {
		extend(m, mine);
		return;
	}
	part = parts_of(at, true);
	if (!part) {
		*m = *mine;
		return;
	}
	if (m->bytes) {
		for (unsigned i = 0; i < 4; i++) part[i] = m->bytes >> i & 1 ? of_byte(m, i) : (sim_mark){0};
		m->bytes = 0;
		m->flags = 0;
	}
	for (unsigned i = 0; i < 4; i++)
		if (mine->bytes >> i & 1) part[i] = of_byte(mine, i);
	if (mine->bytes & 8) rejoin(m, part);
}

/* The mark of several readers since the last write, `mine` the latest of them. */
static sim_mark merged(const sim_warp *w, const sim_mark *m, sim_mark mine, uint32_t lanes, bool shared)
{
	if (!m->program || is_before(w, m, lanes, mine.thread, shared)) return mine;
	mine.bytes |= m->bytes;
	mine.flags = (mine.flags & m->flags & MARK_ATOMIC) | (m->flags & ~MARK_ATOMIC);
	if (m->program != mine.program)
		mine.flags |= MARK_PROGRAMS;
	else
		mine.flags |= m->thread / SIM_LANES == w->index ? MARK_LANES : MARK_WARPS;
	return mine;
}

/* All who could clash with it have met since. */
static bool is_over(const sim_warp *w, const sim_mark *m, bool shared)
{
	return shared && w->program->cluster->n == 1 && m->thread / SIM_LANES < SIM_MAX_WARPS &&
	       m->clock < w->program->all_met;
}

static void mark_read(const touching *t, const place *at, const sim_mark *mine)
{
	const sim_warp *w = t->warp;
	uint32_t lanes = UINT32_C(1) << t->lane;
	bool shared = !at->range;
	sim_mark *m = &at->cell->read, *part;
	if (!is_split(m)) {
		if (!m->program || m->bytes == mine->bytes || is_over(w, m, shared)) {
			*m = merged(w, m, *mine, lanes, shared);
			return;
		}
		part = parts_of(at, false);
		for (unsigned i = 0; part && i < 4; i++) part[i] = m->bytes >> i & 1 ? *m : (sim_mark){0};
		m->bytes = 0;
	}
	part = parts_of(at, false);
	for (unsigned i = 0; part && i < 4; i++)
		if (mine->bytes >> i & 1) part[i] = merged(w, &part[i], *mine, lanes, shared);
}

/* Readers of bytes that are written now have had their turn. */
static void forget_reads(const place *at, uint32_t bytes)
{
	sim_mark *m = &at->cell->read, *part = is_split(m) && bytes != 15 ? parts_of(at, false) : NULL;
	for (unsigned i = 0; part && i < 4; i++)
		if (bytes >> i & 1) part[i].program = 0;
	if (part) return;
	m->bytes &= ~bytes;
	if (!m->bytes) m->program = 0;
}

/* Atomics, each in the other's scope; `mine` is one of this cluster. */
static bool both_atomic(const sim_cluster *c, const sim_mark *m, const sim_mark *mine)
{
	if (!(m->flags & mine->flags & MARK_ATOMIC)) return false;
	if (m->program == mine->program || (m->scope == SCOPE_GPU && mine->scope == SCOPE_GPU)) return true;
	if (m->scope == SCOPE_CTA || mine->scope == SCOPE_CTA) return false;
	for (uint32_t rank = 0; rank < c->n; rank++)
		if (c->programs[rank]->number + 1 == m->program) return true;
	return false;
}

static sim_mark mark_of(const touching *t, uint32_t bytes, bool shared)
{
	const sim_program *p = t->warp->program;
	assert(bytes && bytes <= 15 && t->in >= p->code->code && (size_t)(t->in - p->code->code) < p->code->n);
	return (sim_mark){.program = p->number + 1,
		.bytes = bytes,
		.flags = t->atomic ? MARK_ATOMIC : 0,
		.thread = t->thread,
		.pc = (uint32_t)(t->in - p->code->code),
		.scope = t->atomic ? t->in->scope : 0,
		.clock = t->clock,
		.time = shared ? p->cluster->time : atomic_load_explicit(&p->launch->time, memory_order_relaxed)};
}

/* Neither is atomic to the other, nor behind it. */
static bool clash(const touching *t, const sim_mark *m, const sim_mark *mine, bool shared)
{
	return !both_atomic(t->warp->program->cluster, m, mine) &&
	       !is_before(t->warp, m, UINT32_C(1) << t->lane, mine->thread, shared);
}

/* True: no race. */
static bool in_order(const touching *t, const place *at, const sim_mark *mine)
{
	const sim_mark *m = &at->cell->write;
	uint32_t bytes = mine->bytes;
	bool shared = !at->range;
	sim_mark several[4];
	unsigned n = m->program && m->bytes & bytes;
	if (__builtin_expect(is_shared_out(m), 0)) n = writers_of(at, bytes, several), m = several;
	for (; n; n--, m++)
		if (clash(t, m, mine, shared) && !(t->writes && !shared && same_statement(t->warp, t->in, m)))
			return report(t, m, true, at, bytes);
	m = &at->cell->read;
	if (!t->writes || !m->program) return true;
	if (m->bytes & bytes && clash(t, m, mine, shared)) return report(t, m, false, at, bytes);
	if (is_split(m) && (m = parts_of(at, false)))
		for (unsigned i = 0; i < 4; i++, m++)
			if (bytes >> i & 1 && m->program && clash(t, m, mine, shared))
				return report(t, m, false, at, bytes);
	return true;
}

/* `bytes`: which of the word's.  True: no race. */
static bool touch(const touching *t, const place *at, uint32_t bytes)
{
	const sim_mark mine = mark_of(t, bytes, !at->range);
	if (!in_order(t, at, &mine)) return false;
	if (t->writes) {
		mark_write(at, &mine);
		forget_reads(at, bytes);
	} else
		mark_read(t, at, &mine);
	return true;
}

/* All of a word is written by neighbouring lanes, `size` bytes each.  True: no race. */
static bool touch_together(touching t, place at, unsigned size)
{
	assert(size == 1 || size == 2);
	sim_mark mine = mark_of(&t, (1u << size) - 1, !at.range), all = mine;
	for (; mine.bytes; mine.bytes <<= size, mine.thread++, t.lane++, at.offset += size)
		if (!in_order(&t, &at, &mine)) return false;
	all.bytes = 15;
	all.flags = size == 1 ? MARK_BYTES : MARK_HALVES;
	at.cell->write = all;
	at.cell->read.program = 0;
	return true;
}

/* What is under way there lets it be written. */
static bool is_free(sim_warp *w, const sim_instr *in, unsigned lane, sim_program *p, uint64_t offset, unsigned bytes)
{
	assert(offset + bytes <= p->shared_bytes);
	bool read = p->nreading && p->reading[offset / 16];
	if (!read && (!p->npending || !p->pending[offset / 4])) return true;
	const sim_spot spot = sim_spot_shared(p, offset, bytes, sim_kind_name(true));
	if (read)
		return sim_report_at(w, in, lane, &spot,
			"wait until it has been read (wgmma.wait_group, cp.async.bulk.wait_group.read)",
			"shared memory at offset %" PRIu64 " is written while a wgmma or a bulk copy reads it", offset);
	if (sim_mbarrier_find(p, offset & ~UINT64_C(7)))
		return sim_report_at(w, in, lane, &spot,
			"mbarrier.inval comes before its memory is used for something else",
			"shared memory at offset %" PRIu64 " is written, where an mbarrier is", offset);
	return sim_report_at(w, in, lane, &spot, "a wait for the copy, and a barrier, must stand in front",
		"shared memory at offset %" PRIu64 " is written while a copy into it is under way", offset);
}

bool sim_races_async(sim_warp *w, const sim_instr *in, unsigned lane, sim_program *p, uint64_t offset, uint64_t bytes,
	uint32_t engine, uint32_t clock)
{
	assert(offset % 4 == 0 && bytes % 4 == 0 && offset + bytes <= p->shared_bytes);
	const touching t = {w, in, lane, .writes = true, .thread = SIM_LANES * engine, .clock = clock};
	for (uint64_t end = offset + bytes; offset < end; offset += 4) {
		sim_cell *c = &p->cells[offset / 4];
		if ((p->npending | p->nreading) && !is_free(w, in, lane, p, offset, 4)) return false;
		if (p != w->program || engine >= SIM_CLOCKS) { /* whose clocks this warp does not know */
			c->write = c->read = (sim_mark){0};
			if (engine < SIM_CLOCKS)
				c->write = (sim_mark){.program = p->number + 1,
					.bytes = 15,
					.thread = SIM_LANES * engine,
					.pc = (uint32_t)(in - p->code->code),
					.clock = clock};
		} else if (!touch(&t, &(place){c, NULL, p, offset}, 15))
			return false;
	}
	return true;
}

/* What a thread of the program wrote at a mark is fenced: by the thread, or by this warp when it knew of the write. */
static bool is_fenced(const sim_warp *w, const sim_mark *m, sim_proxy which)
{
	const sim_program *p = w->program;
	uint32_t from = m->thread / SIM_LANES;
	return from >= p->nwarps || p->warps[from].fenced[which][m->thread % SIM_LANES] > m->clock ||
	       holds(&w->proxied[which], m->thread, m->clock);
}

static bool report_proxies(const touching *t, const sim_mark *m, const place *at)
{
	const sim_program *p = t->warp->program;
	const sim_range *r = at->range;
	const sim_other other = other_of(p, m, true);
	const sim_spot spot = spot_of(at, 4 - (at->offset & 3), t->writes, &other);
	char where[320], who[160], name[SIM_NAME];
	sim_place(p->code, other.in, where, sizeof where);
	name_other(p, &other, who, sizeof who);
	return sim_report_at(t->warp, t->in, t->lane, &spot,
		"fence.proxy.async stands behind the store (of every thread that stores) and in front of the "
		"barrier",
		"%s at offset %" PRIu64
		" is %s by an asynchronous engine; %s wrote it at %s, and no fence.proxy.async is "
		"between",
		r ? sim_range_name(p->launch, r, name) : "shared memory", at->offset, t->writes ? "written" : "read",
		who, where);
}

/* What the engine reads was written before, and is seen by it, for all four warps. */
static bool is_readable(sim_warp *leader, const sim_instr *in, const place *at, const sim_mark *m)
{
	sim_program *p = leader->program;
	bool proxied = m->program != p->number + 1;
	for (uint32_t k = 0; k < 4; k++) {
		sim_warp *w = leader + k;
		if (!is_before(w, m, SIM_ALL, SIM_LANES * w->index, true))
			return report(&(touching){w, in, 0}, m, true, at, 15);
		proxied = proxied || is_fenced(w, m, PROXY_SHARED);
	}
	return proxied || report_proxies(&(touching){leader, in, 0}, m, at);
}

bool sim_races_product(sim_warp *leader, const sim_instr *in, const uint32_t *offsets, uint32_t n, uint32_t clock)
{
	sim_program *p = leader->program;
	uint32_t engine = SIM_CLOCK_GROUP + leader->index / 4, program = 0, thread = 0, when = 0;
	const sim_mark mine = {.program = p->number + 1,
		.bytes = 15,
		.thread = SIM_LANES * engine,
		.pc = (uint32_t)(in - p->code->code),
		.clock = clock};
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < 4; k++) {
			const place at = {&p->cells[offsets[i] / 4 + k], NULL, p, offsets[i] + 4 * k};
			const sim_mark *m = &at.cell->write;
			sim_mark several[4];
			unsigned writers = m->program != 0;
			if (is_shared_out(m)) writers = writers_of(&at, 15, several), m = several;
			for (; writers; writers--, m++) {
				if (m->program == program && m->thread == thread && m->clock == when) continue;
				if (!is_readable(leader, in, &at, m)) return false;
				program = m->program;
				thread = m->thread;
				when = m->clock;
			}
			at.cell->read = mine;
		}
	return true;
}

/* Where there is no order at all that is a race, which is reported elsewhere. */
bool sim_proxied(sim_warp *w, const sim_instr *in, unsigned lane, uint64_t offset, uint64_t bytes, bool writes)
{
	sim_program *p = w->program;
	assert(offset % 4 == 0 && offset + bytes <= p->shared_bytes);
	for (uint64_t end = offset + bytes; offset < end; offset += 4) {
		const place at = {&p->cells[offset / 4], NULL, p, offset};
		const sim_mark *m = &at.cell->write;
		sim_mark several[4];
		unsigned n = m->program != 0;
		if (is_shared_out(m)) n = writers_of(&at, 15, several), m = several;
		for (; n; n--, m++)
			if (m->program == p->number + 1 && !is_fenced(w, m, PROXY_SHARED) &&
				is_before(w, m, UINT32_C(1) << lane, SIM_LANES * w->index + lane, true))
				return report_proxies(&(touching){w, in, lane, writes}, m, &at);
	}
	return true;
}

/* What another program wrote is fenced by this one when it had listened to others since, or by that one. */
static bool is_fenced_in_launch(const sim_warp *w, const sim_mark *m)
{
	const sim_launch *l = w->program->launch;
	if (m->program == w->program->number + 1) return is_fenced(w, m, PROXY_GLOBAL);
	return m->thread / SIM_LANES >= SIM_MAX_WARPS || w->proxied[PROXY_GLOBAL].launch > m->time ||
	       seen(&l->fenced[m->program - 1]) > m->time;
}

static void lock(sim_page *page)
{
	while (atomic_flag_test_and_set_explicit(&page->busy, memory_order_acquire)) sched_yield();
}

bool sim_proxied_global(sim_warp *w, const sim_instr *in, unsigned lane, uint64_t address, uint64_t bytes, bool writes)
{
	const sim_range *r = sim_range_find(w->program->launch, address);
	assert(r && address - r->base + bytes <= r->bytes);
	if (!r->pages) return true;
	uint64_t offset = address - r->base;
	for (uint64_t end = offset + bytes; offset < end; offset += 4 - (offset & 3)) {
		sim_page *page = page_of(r, offset);
		if (!page) continue;
		lock(page);
		sim_mark writers[4];
		const place at = {&page->cells[offset % PAGE_BYTES / 4], r, w->program, offset};
		unsigned n = writers_of(&at, 15, writers);
		atomic_flag_clear_explicit(&page->busy, memory_order_release);
		for (unsigned i = 0; i < n; i++)
			if (!is_fenced_in_launch(w, &writers[i]) &&
				is_before(w, &writers[i], UINT32_C(1) << lane, SIM_LANES * w->index + lane, false))
				return report_proxies(&(touching){w, in, lane, writes}, &writers[i], &at);
	}
	return true;
}

bool sim_races(sim_warp *w, const sim_instr *in, uint32_t mask, uint8_t *const at[SIM_LANES], unsigned bytes,
	bool writes, bool atomic)
{
	return sim_races_of(w, in, mask, at, bytes, writes, atomic, w->index, w->clock);
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

/* How many lanes from i on fill an aligned word with their neighbouring bytes; 1: they do not. */
static unsigned together(uint32_t mask, uint8_t *const at[SIM_LANES], unsigned i, unsigned bytes, uint64_t offset)
{
	assert(bytes == 1 || bytes == 2);
	unsigned n = 4 / bytes;
	uint32_t all = ((1u << n) - 1) << i;
	if (offset & 3 || i + n > SIM_LANES || (mask & all) != all) return 1;
	for (unsigned k = 1; k < n; k++)
		if (at[i + k] != at[i] + (size_t)k * bytes) return 1;
	return n;
}

bool sim_races_of(sim_warp *w, const sim_instr *in, uint32_t mask, uint8_t *const at[SIM_LANES], unsigned bytes,
	bool writes, bool atomic, uint32_t engine, uint32_t clock)
{
	sim_program *p = w->program;
	sim_page *page = NULL;
	bool threads = engine < SIM_MAX_WARPS, good = true, few = writes && !atomic && bytes < 4 && threads;
	touching t = {w, in, .writes = writes, .atomic = atomic, .clock = clock};
	for (uint32_t m = mask; m && good; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		uint64_t offset = (uint64_t)(at[i] - p->shared);
		t.lane = i;
		t.thread = SIM_LANES * engine + (threads ? i : 0);
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
		assert(offset + bytes <= (r ? r->bytes : owner->shared_bytes));
		for (unsigned done = 0; done < bytes && good;) {
			unsigned n = 4 - (offset & 3) < bytes - done ? (unsigned)(4 - (offset & 3)) : bytes - done;
			uint32_t some = ((1u << n) - 1) << (offset & 3);
			sim_cell *c = r ? NULL : &owner->cells[offset / 4];
			if (!r && writes && (owner->npending | owner->nreading) &&
				!(good = is_free(w, in, i, owner, offset, n)))
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
			unsigned others = few && c ? together(m, at, i, bytes, offset) - 1 : 0;
			const place word = {c, r, owner, offset};
			if (others)
				good = touch_together(t, word, bytes);
			else if (c)
				good = touch(&t, &word, some);
			for (; others; others--) m &= m - 1;
			done += n;
			offset += n;
		}
	}
	if (page) atomic_flag_clear_explicit(&page->busy, memory_order_release);
	return good;
}
