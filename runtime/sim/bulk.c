/* Bulk copies: one thread asks for many bytes to be moved, by an engine of its own.
 *
 * Into shared memory: the destination is undefined until the copy lands, which tells an mbarrier; that happens at once
 * or, with an odd seed, when nobody can go on without it.  Who reads it must have seen the mbarrier's phase end
 * (race.c). Out of shared memory: the source may not be written until the thread has waited; the bytes move at once or,
 * with an odd seed, then. */
#include "bulk.h"
#include "access.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool lands_late(const sim_cluster *c)
{
	return c->launch->seed & 1;
}

static bool keep(sim_cluster *c, const sim_bulk *b)
{
	if (c->ncopies == c->copies_room) {
		uint32_t room = c->copies_room ? 2 * c->copies_room : 16;
		sim_bulk *more = realloc(c->copies, room * sizeof *more);
		if (!more) return sim_out_of_memory(c->launch);
		c->copies = more;
		c->copies_room = room;
	}
	c->copies[c->ncopies++] = *b;
	return true;
}

static void forget(sim_cluster *c, uint32_t i)
{
	assert(i < c->ncopies);
	memmove(&c->copies[i], &c->copies[i + 1], (--c->ncopies - i) * sizeof c->copies[0]);
}

/* ---- Pieces of shared memory ---- */

static uint32_t pieces(const sim_bulk *b)
{
	return b->bytes / 16;
}

/* Nobody may read them before the copy lands, or write them. */
static void claim(sim_program *p, const sim_bulk *b, int by)
{
	for (uint32_t i = 0; i < pieces(b); i++) {
		uint32_t at = sim_bulk_piece(b, b->to, i).shared;
		assert(at + 16 <= p->shared_bytes && (by > 0 || p->pending[at / 4]));
		for (uint32_t k = 0; k < 4; k++) p->pending[at / 4 + k] = (uint16_t)(p->pending[at / 4 + k] + by);
		if (by > 0) memset(p->shared_shadow + at, 0xff, 16);
	}
	p->npending += (uint64_t)((int64_t)by * pieces(b));
}

/* Nobody may write them while the copy reads. */
static void hold(sim_program *p, const sim_bulk *b, int by)
{
	for (uint32_t i = 0; i < pieces(b); i++) {
		uint32_t at = sim_bulk_piece(b, b->from, i).shared / 16;
		assert(16 * at + 16 <= p->shared_bytes && (by > 0 || p->reading[at]));
		p->reading[at] = (uint16_t)(p->reading[at] + by);
	}
	p->nreading += (uint64_t)((int64_t)by * pieces(b));
}

/* What it reads was written before, and is seen through the engine's proxy. */
static bool is_readable(const sim_bulk *b)
{
	sim_program *p = b->w->program;
	uint8_t *at[SIM_LANES];
	for (uint32_t i = 0; i < pieces(b); i++) {
		uint32_t offset = sim_bulk_piece(b, b->from, i).shared;
		at[b->lane] = p->shared + offset;
		if (!sim_races(b->w, b->in, UINT32_C(1) << b->lane, at, 16, false, false) ||
			!sim_proxied(b->w, b->in, b->lane, offset, 16, false))
			return false;
	}
	return true;
}

/* ---- Bytes that move ---- */

/* A piece's bytes in global memory race with nobody.  What it writes is written by the time that a wait for more than
 * its reads is over. */
static bool touch_global(const sim_bulk *b, const sim_piece *q)
{
	uint8_t *at[SIM_LANES];
	uint32_t lane = UINT32_C(1) << b->lane, n = q->high - q->low;
	bool reduces = b->in->saturates;
	at[b->lane] = (uint8_t *)(uintptr_t)(q->global + q->low);
	if (b->kind != BULK_STORE) return sim_races(b->w, b->in, lane, at, n, false, false);
	return sim_races_of(b->w, b->in, lane, at, n, true, reduces, SIM_CLOCK_COPIES + b->w->index, b->clock);
}

/* What it reads or writes in global memory the engine sees as threads of this launch have left it. */
static bool is_seen(const sim_bulk *b)
{
	for (uint32_t i = 0; i < pieces(b); i++) {
		const sim_piece q = sim_bulk_piece(b, 0, i);
		if (q.high > q.low && !sim_proxied_global(b->w, b->in, b->lane, q.global + q.low, q.high - q.low,
					      b->kind == BULK_STORE))
			return false;
	}
	return true;
}

static const sim_range *range_of(const sim_bulk *b)
{
	return sim_range_find(b->w->program->launch, b->has_map ? b->map.address : b->global);
}

/* To the nearest tf32, ties away from 0; what is no number stays none. */
static void round_words(uint8_t *at, uint32_t n)
{
	for (uint32_t i = 0; i + 4 <= n; i += 4) {
		uint32_t v;
		memcpy(&v, at + i, 4);
		if ((v & 0x7f800000) != 0x7f800000) v += 0x1000;
		v &= ~0x1fffu;
		memcpy(at + i, &v, 4);
	}
}

static bool load(const sim_bulk *b, sim_program *p)
{
	const sim_range *r = range_of(b);
	for (uint32_t i = 0; i < pieces(b); i++) {
		const sim_piece q = sim_bulk_piece(b, b->to, i);
		uint32_t n = q.high - q.low;
		memset(p->shared + q.shared, 0, 16);
		memset(p->shared_shadow + q.shared, 0, 16);
		if (!n) continue;
		assert(q.global + q.low >= r->base && q.global + q.high - r->base <= r->bytes);
		if (!touch_global(b, &q)) return false;
		memcpy(p->shared + q.shared + q.low, (const void *)(uintptr_t)(q.global + q.low), n);
		if (b->has_map && b->map.rounds) round_words(p->shared + q.shared + q.low, n);
		if (!r->defined)
			memcpy(p->shared_shadow + q.shared + q.low, r->shadow + (q.global + q.low - r->base), n);
	}
	return true;
}

/* An element after another, atomic each. */
static void reduce(const sim_bulk *b, uint8_t *to, const uint8_t *from, uint32_t n)
{
	scalar t = (scalar)(b->has_map ? b->map.type : b->in->to);
	const sim_instr how = {.to = (uint8_t)t, .mode = b->in->rounding, .bytes = (uint8_t)scalar_bytes(t)};
	assert(n % how.bytes == 0);
	for (uint32_t k = 0; k < n; k += how.bytes) {
		uint64_t v = 0;
		memcpy(&v, from + k, how.bytes);
		sim_atomic_swap(&how, how.bytes, to + k, v, 0, false);
	}
}

static bool store(const sim_bulk *b)
{
	static const uint8_t none[16];
	const sim_program *p = b->w->program;
	const sim_range *r = range_of(b);
	for (uint32_t i = 0; i < pieces(b); i++) {
		const sim_piece q = sim_bulk_piece(b, b->from, i);
		uint32_t n = q.high - q.low, at = q.shared + q.low;
		uint8_t *to = (uint8_t *)(uintptr_t)(q.global + q.low);
		if (!n) continue;
		assert(q.global + q.low >= r->base && q.global + q.high - r->base <= r->bytes);
		uint8_t *shadow = r->defined ? NULL : r->shadow + (q.global + q.low - r->base);
		if (memcmp(p->shared_shadow + at, none, n) != 0) {
			const sim_spot spot = sim_spot_shared(p, at, n, sim_kind_name(false));
			return sim_report_at(b->w, b->in, b->lane, &spot,
				"shared memory that nothing has written, or that a copy has not reached yet",
				"an undefined value is stored by a bulk copy: from offset %u of shared memory", at);
		}
		if (!touch_global(b, &q)) return false;
		if (b->in->saturates && shadow && memcmp(shadow, none, n) != 0) {
			const sim_spot spot =
				sim_spot_at(b->w, b->in, SPACE_GLOBAL, q.global + q.low, n, sim_kind_name(false));
			return sim_report_at(b->w, b->in, b->lane, &spot, "fill the buffer, or store to it first",
				"a reduction works on memory that nothing has written");
		}
		if (b->in->saturates)
			reduce(b, to, p->shared + at, n);
		else
			memcpy(to, p->shared + at, n);
		if (shadow) memset(shadow, 0, n);
	}
	return true;
}

static bool land(sim_cluster *c, const sim_bulk *b)
{
	const sim_program *from = b->w->program;
	for (uint32_t rank = 0; rank < c->n; rank++) {
		sim_program *p = c->programs[rank];
		if (!(b->targets >> rank & 1)) continue;
		claim(p, b, -1);
		if (b->kind == BULK_SHARE) {
			memcpy(p->shared + b->to, from->shared + b->from, b->bytes);
			memcpy(p->shared_shadow + b->to, from->shared_shadow + b->from, b->bytes);
		} else if (!load(b, p))
			return false;
		sim_mbarrier *bar = sim_mbarrier_find(p, b->bar);
		if (!bar) {
			const sim_spot spot = sim_spot_shared(p, b->bar, 8, NULL);
			return sim_report_at(b->w, b->in, b->lane, &spot,
				"mbarrier.inval comes when all copies have landed",
				"a copy tells the mbarrier at offset %u of shared memory, which is no more", b->bar);
		}
		sim_mbarrier_bytes(p, bar, -(int64_t)b->bytes);
	}
	if (b->kind == BULK_SHARE) hold(b->w->program, b, -1);
	c->events++;
	return true;
}

bool sim_bulk_land_one(sim_cluster *c)
{
	uint32_t loads = 0, i = 0;
	for (uint32_t k = 0; k < c->ncopies; k++) loads += c->copies[k].kind != BULK_STORE;
	if (!loads) return false;
	for (uint64_t skip = c->launch->seed / 2 % loads; c->copies[i].kind == BULK_STORE || skip--;) i++;
	assert(i < c->ncopies);
	const sim_bulk b = c->copies[i];
	forget(c, i);
	return land(c, &b);
}

void sim_bulk_end(sim_cluster *c)
{
	if (!c->ncopies) return;
	const sim_bulk *b = &c->copies[0];
	bool stores = b->kind == BULK_STORE;
	sim_report(b->w, b->in, b->lane,
		stores ? "cp.async.bulk.wait_group.read 0 comes before the end" : "its mbarrier must be waited for",
		"the program has ended while a bulk copy %s its shared memory is under way", stores ? "from" : "into");
}

/* ---- A copy begins ---- */

/* An address in shared memory, and that the copy's bytes are there from it on. */
static bool find_shared(
	const sim_bulk *b, uint64_t address, bool in_cluster, bool writes, sim_program **owner, uint32_t *offset)
{
	const char *what = writes ? "destination" : "source";
	sim_instr in = *b->in;
	uint32_t align = !b->has_map ? 16 : b->map.swizzle ? 8u * b->map.swizzle : 128;
	in.in_cluster = in_cluster;
	address &= ~SIM_SHARED_WINDOW;
	*owner = sim_shared_owner(b->w, &in, b->lane, &address);
	if (!*owner) return false;
	uint64_t at = address - SIM_SHARED_BASE, have = (*owner)->shared_bytes;
	const sim_spot spot = sim_spot_shared(*owner, at, b->bytes, sim_kind_name(writes));
	if (address < SIM_SHARED_BASE || at > have || have - at < b->bytes)
		return sim_report_at(b->w, b->in, b->lane, &spot, NULL,
			"a bulk copy's %s of %u bytes is outside shared memory, of which the program has %" PRIu64
			" bytes: at offset %" PRId64,
			what, b->bytes, have, (int64_t)at);
	if (at % align)
		return sim_report_at(b->w, b->in, b->lane, &spot,
			"128 bytes; with a swizzle its pattern: 256 for 32 bytes, 512 for 64, 1024 for 128",
			"a bulk copy's %s is at offset %" PRIu64 " of shared memory, which %u does not divide", what,
			at, align);
	*offset = (uint32_t)at;
	return true;
}

static bool find_global(sim_bulk *b, uint64_t address)
{
	uint8_t *shadow;
	b->global = address;
	if (address % 16) {
		const sim_spot spot =
			sim_spot_at(b->w, b->in, SPACE_GLOBAL, address, b->bytes, sim_kind_name(b->kind == BULK_STORE));
		return sim_report_at(b->w, b->in, b->lane, &spot, NULL,
			"a bulk copy of global memory at 0x%" PRIx64 ", which 16 does not divide", address);
	}
	for (uint32_t i = 0; i < pieces(b); i++)
		if (!sim_memory(b->w, b->in, b->lane, SPACE_GLOBAL, address + 16 * (uint64_t)i, 16,
			    b->kind == BULK_STORE, &shadow))
			return false;
	return true;
}

static bool may_write(const sim_bulk *b, const sim_range *r)
{
	char name[SIM_NAME];
	if (b->kind != BULK_STORE || !r->read_only) return true;
	const sim_spot spot = {.space = SPACE_GLOBAL, .range = r, .kind = sim_kind_name(true)};
	return sim_report_at(b->w, b->in, b->lane, &spot,
		"what is passed as *const must not be written while the kernel runs; pass it as *T",
		"%s is written by a bulk copy, which is passed as *const",
		sim_range_name(b->w->program->launch, r, name));
}

static uint64_t address_of(const sim_bulk *b, uint32_t unit, uint8_t bytes, int64_t offset)
{
	if (!bytes) return (uint64_t)offset;
	uint64_t v = sim_register_read(sim_at(b->w, unit), bytes, b->lane) + (uint64_t)offset;
	return bytes == 4 ? (uint32_t)v : v;
}

static bool is_undefined(const sim_bulk *b)
{
	const sim_instr *in = b->in;
	const sim_warp *w = b->w;
	uint32_t bad = w->bad[in->a] | w->bad[in->b] | w->bad[in->c] | w->bad[in->extra] | w->bad[in->e];
	for (uint32_t i = 0; i < in->nregs; i++) bad |= w->bad[in->regs[i]];
	return bad >> b->lane & 1;
}

/* Where the mbarriers are: each target has one at the same place. */
static bool find_mbarriers(sim_bulk *b, const sim_program *owner)
{
	sim_warp *w = b->w;
	sim_cluster *c = w->program->cluster;
	sim_program *at;
	sim_instr in = *b->in;
	uint64_t address = address_of(b, in.extra, in.wide[3], in.bar_offset) & ~SIM_SHARED_WINDOW;
	in.space = SPACE_SHARED;
	in.in_cluster = true;
	if (!sim_mbarrier_at(w, &in, b->lane, address, &at)) return false;
	b->bar = (uint32_t)((address & SHARED_OFFSETS) - SIM_SHARED_BASE);
	b->targets = in.constant ? ((const uint16_t *)sim_at(w, in.e))[b->lane] : UINT32_C(1) << owner->rank;
	if (!in.constant && at != owner)
		return sim_report(w, b->in, b->lane, NULL,
			"a bulk copy's destination and its mbarrier are in different programs of the cluster");
	if (!b->targets || b->targets >> c->n)
		return sim_report(w, b->in, b->lane, NULL, "a bulk copy to the programs 0x%x of a cluster that has %u",
			b->targets, c->n);
	for (uint32_t rank = 0; rank < c->n; rank++) {
		if (!(b->targets >> rank & 1)) continue;
		const sim_mbarrier *bar = sim_mbarrier_find(c->programs[rank], b->bar);
		const sim_spot spot = sim_spot_shared(c->programs[rank], b->bar, 8, NULL);
		if (!bar)
			return sim_report_at(w, b->in, b->lane, &spot,
				"a copy to several programs tells the mbarrier at the same place of each",
				"no mbarrier is at offset %u of the shared memory of program %u of the cluster", b->bar,
				rank);
		if (c->programs[rank] != w->program && !sim_mbarrier_is_shared(w, b->in, b->lane, bar)) return false;
		if (!bar->published)
			return sim_report_at(w, b->in, b->lane, &spot,
				"fence.mbarrier_init stands behind mbarrier.init, then a barrier",
				"a bulk copy tells an mbarrier (at offset %u) whose init no fence has made known",
				b->bar);
	}
	return true;
}

static bool take_piece(const sim_bulk *b, sim_program *p, uint32_t offset, uint32_t engine, uint32_t clock)
{
	return (p != b->w->program || sim_proxied(b->w, b->in, b->lane, offset, 16, true)) &&
	       sim_races_async(b->w, b->in, b->lane, p, offset, 16, engine, clock);
}

/* The destinations may be written, and are nobody's until the copy lands. */
static bool take_places(const sim_bulk *b)
{
	sim_cluster *c = b->w->program->cluster;
	for (uint32_t rank = 0; rank < c->n; rank++) {
		sim_program *p = c->programs[rank];
		if (!(b->targets >> rank & 1)) continue;
		if (p != b->w->program) sim_cluster_brings(b->w, b->in, rank);
		const sim_mbarrier *bar = sim_mbarrier_find(p, b->bar);
		assert(bar); /* find_mbarriers() has seen it */
		uint32_t engine = SIM_CLOCK_MBARRIER + (uint32_t)(bar - p->mbarriers);
		for (uint32_t i = 0; i < pieces(b); i++)
			if (!take_piece(b, p, sim_bulk_piece(b, b->to, i).shared, engine, bar->clock)) return false;
		claim(p, b, 1);
	}
	return true;
}

static bool find_all(sim_bulk *b)
{
	const sim_instr *in = b->in;
	const sim_range *r;
	sim_program *owner;
	bool stores = b->kind == BULK_STORE;
	if (is_undefined(b))
		return sim_report(
			b->w, in, b->lane, NULL, "an address, a size or a coordinate of a bulk copy is undefined");
	uint64_t first = address_of(b, in->a, in->wide[1], in->offset),
		 second = address_of(b, in->b, in->wide[2], in->source_offset);
	if (in->nregs) {
		for (uint32_t i = 0; i < in->nregs; i++)
			b->at[i] = ((const int32_t *)sim_at(b->w, in->regs[i]))[b->lane];
		if (!sim_bulk_map(b, stores ? first : second, &r) || !may_write(b, r)) return false;
		if (!sim_may_touch(b->w, in, b->lane, r, b->map.address, b->bytes, stores)) return false;
		/* Both are illegal instructions on an H200. */
		for (uint32_t i = 0; stores && i < in->nregs; i++)
			if (b->at[i] < 0)
				return sim_report(b->w, in, b->lane,
					"a copy to memory begins inside the array or behind it, not in front of it",
					"a copy to memory by a tensor map has coordinate %d along dimension %u",
					(int)b->at[i], i);
		int64_t first_byte = b->at[0] * (int64_t)b->map.element_bytes;
		if (first_byte % 16)
			return sim_report(b->w, in, b->lane,
				"the first coordinate of a copy by a tensor map stands for a multiple of 16 bytes",
				"a copy by a tensor map begins %lld bytes behind the start of a line, no multiple of "
				"16",
				(long long)first_byte);
		if (in->saturates && (scalar_bytes((scalar)b->map.type) < 2 ||
					     (scalar_is_float((scalar)b->map.type) && in->rounding != 0)))
			return sim_report(b->w, in, b->lane, NULL, "a bulk reduction of a type that has none");
	} else {
		b->bytes = ((const uint32_t *)sim_at(b->w, in->c))[b->lane];
		if (b->bytes == 0 || b->bytes % 16)
			return sim_report(b->w, in, b->lane, NULL,
				"a bulk copy of %u bytes, which is no multiple of 16", b->bytes);
		if (b->kind != BULK_SHARE && !find_global(b, stores ? first : second)) return false;
	}
	if (b->kind != BULK_LOAD && !find_shared(b, second, false, false, &owner, &b->from)) return false;
	if (stores) return true;
	return find_shared(b, first, in->in_cluster, true, &owner, &b->to) && find_mbarriers(b, owner);
}

static bool begin(sim_warp *w, const sim_instr *in, unsigned lane)
{
	sim_cluster *c = w->program->cluster;
	sim_bulk b = {.w = w, .in = in, .lane = lane, .kind = in->mode, .group = w->bulk_groups[lane]};
	if (!find_all(&b) || (b.kind != BULK_SHARE && !is_seen(&b))) return false;
	assert(b.bytes && b.bytes % 16 == 0);
	if (b.kind != BULK_LOAD) {
		if (!is_readable(&b)) return false;
		hold(w->program, &b, 1);
	}
	if (b.kind == BULK_STORE) {
		if (w->program->nclocks < SIM_CLOCK_MBARRIER) w->program->nclocks = SIM_CLOCK_MBARRIER;
		b.clock = w->bulk_clock++;
		w->bulk_lanes |= UINT32_C(1) << lane;
		b.moved = !lands_late(c);
		return (!b.moved || store(&b)) && keep(c, &b);
	}
	return take_places(&b) && (lands_late(c) ? keep(c, &b) : land(c, &b));
}

bool sim_step_bulk(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	for (; mask; mask &= mask - 1)
		if (!begin(w, in, (unsigned)__builtin_ctz(mask))) return false;
	return true;
}

/* ---- Groups ---- */

bool sim_step_bulk_commit(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	(void)in;
	for (; mask; mask &= mask - 1) w->bulk_groups[__builtin_ctz(mask)]++;
	return true;
}

/* It has read until now: who has not met the thread that waits does not know that it is over.  No race can be found:
 * nobody has been let write there meanwhile. */
static void has_read(const sim_bulk *b)
{
	uint8_t *at[SIM_LANES];
	for (uint32_t i = 0; i < pieces(b); i++) {
		at[b->lane] = b->w->program->shared + sim_bulk_piece(b, b->from, i).shared;
		sim_races(b->w, b->in, UINT32_C(1) << b->lane, at, 16, false, false);
	}
}

/* All groups of each thread but the last `offset`: they have read, or have written as well.  Those who began them know,
 * others have to be told.  One thread knows of what it has waited for alone; where several have made copies, in turns,
 * those that are left are taken to be done, too. */
bool sim_step_bulk_wait(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	sim_cluster *c = w->program->cluster;
	bool written = !in->mode && w->bulk_lanes && !(w->bulk_lanes & ~mask);
	bool alone = (w->bulk_lanes & (w->bulk_lanes - 1)) == 0;
	uint32_t done = w->bulk_clock; /* those that began before */
	for (uint32_t i = 0; i < c->ncopies;) {
		const sim_bulk *b = &c->copies[i];
		bool mine = b->kind == BULK_STORE && b->w == w && mask >> b->lane & 1;
		if (!mine || w->bulk_groups[b->lane] - b->group <= (uint64_t)in->offset) {
			if (mine && alone && b->clock < done) done = b->clock;
			i++;
			continue;
		}
		if (!b->moved && !store(b)) return false;
		has_read(b);
		hold(w->program, b, -1);
		forget(c, i);
	}
	if (written) sim_order_engine(w, w->bulk_lanes, SIM_CLOCK_COPIES + w->index, done);
	return true;
}
