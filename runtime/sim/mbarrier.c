/* mbarriers: objects in shared memory that count arrivals and bytes, phase by phase.
 *
 * Their state lies beside the memory, which is undefined and may not be written while they live.  An arrival hands over
 * what its thread (its lane, not its warp) did and knew; who sees the phase end has it.  A state is the phase's number
 * and what was pending. */
#include "access.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = (1 << 20) - 1 }; /* arrivals, bytes */

sim_mbarrier *sim_mbarrier_find(sim_program *p, uint64_t offset)
{
	for (uint32_t i = 0; i < p->nmbarriers; i++)
		if (p->mbarriers[i].alive && p->mbarriers[i].offset == offset) return &p->mbarriers[i];
	return NULL;
}

/* Where it is or is to be; UINT64_MAX: reported. */
static uint64_t place(sim_warp *w, const sim_instr *in, unsigned lane, uint64_t address, sim_program **owner)
{
	if (in->space == SPACE_GENERIC) {
		if (!(address & SIM_SHARED_WINDOW)) {
			sim_report(w, in, lane, NULL, "an mbarrier at 0x%" PRIx64 ", which is not in shared memory",
				address);
			return UINT64_MAX;
		}
		address &= ~SIM_SHARED_WINDOW;
	}
	if (!(*owner = sim_shared_owner(w, in, lane, &address))) return UINT64_MAX;
	uint64_t offset = address - SIM_SHARED_BASE;
	const sim_spot spot = sim_spot_shared(*owner, offset, 8, NULL);
	if (address < SIM_SHARED_BASE || offset + 8 > (*owner)->shared_bytes) {
		sim_report_at(w, in, lane, &spot, NULL,
			"an mbarrier outside shared memory, of which the program has %" PRIu64
			" bytes: at offset %" PRId64,
			(*owner)->shared_bytes, spot.offset);
		return UINT64_MAX;
	}
	if (offset % 8) {
		sim_report_at(
			w, in, lane, &spot, NULL, "an mbarrier at offset %" PRIu64 ", which 8 does not divide", offset);
		return UINT64_MAX;
	}
	return offset;
}

bool sim_mbarrier_is_shared(sim_warp *w, const sim_instr *in, unsigned lane, const sim_mbarrier *b)
{
	if (b->shared) return true;
	const sim_spot spot = sim_spot_shared(NULL, b->offset, 8, NULL);
	return sim_report_at(w, in, lane, &spot,
		"a barrier of the cluster stands behind the init; one of relaxed arrivals behind its "
		"fence.mbarrier_init",
		"the mbarrier at offset %u of another program's shared memory is used, which that may not have made "
		"yet",
		b->offset);
}

/* How many times the cluster's barrier has been passed, as far as the lane has waited there. */
static uint64_t waited(const sim_warp *w, unsigned lane)
{
	return w->cluster_lanes >> lane & 1 ? w->cluster_passed[lane] : w->program->cluster->passed;
}

/* The passing of that barrier which tells others what the lane has done: the next one that it arrives for. */
static uint64_t known_behind(const sim_warp *w, unsigned lane)
{
	uint64_t passed = w->program->cluster->passed;
	return passed + (w->cluster_lanes >> lane & 1 && w->cluster_passed[lane] == passed ? 2 : 1);
}

/* It was made before, in an order. */
static bool has_seen(const sim_warp *w, unsigned lane, const sim_mbarrier *b)
{
	return sim_knows(w, UINT32_C(1) << lane, b->maker, b->made);
}

/* Or its fence was, and this lane and the maker's have met at the cluster's barrier. */
static bool knows_of(const sim_warp *w, unsigned lane, const sim_mbarrier *b)
{
	return waited(w, lane) >= b->fenced || has_seen(w, lane, b);
}

/* Where arrivals were relaxed, the fence alone tells others. */
void sim_mbarriers_shared(sim_program *p, bool relaxed)
{
	uint64_t passed = p->cluster->passed;
	for (uint32_t i = 0; i < p->nmbarriers; i++) {
		sim_mbarrier *b = &p->mbarriers[i];
		b->shared = b->shared || (passed >= b->passed && (!relaxed || passed >= b->fenced));
	}
}

sim_mbarrier *sim_mbarrier_at(sim_warp *w, const sim_instr *in, unsigned lane, uint64_t address, sim_program **owner)
{
	uint64_t offset = place(w, in, lane, address, owner);
	if (offset == UINT64_MAX) return NULL;
	sim_mbarrier *b = sim_mbarrier_find(*owner, offset);
	if (!b) {
		const sim_spot spot = sim_spot_shared(*owner, offset, 8, NULL);
		sim_report_at(w, in, lane, &spot, "mbarrier.init comes first, then a barrier",
			"no mbarrier is at offset %" PRIu64 " of shared memory", offset);
		return NULL;
	}
	if (*owner == w->program && !knows_of(w, lane, b)) {
		char where[320];
		const sim_other other = {.in = b->made_at,
			.has_program = true,
			.program = {w->program->id[0], w->program->id[1], w->program->id[2]},
			.thread = b->maker,
			.kind = sim_kind_name(true)};
		sim_spot spot = sim_spot_shared(*owner, offset, 8, NULL);
		spot.other = &other;
		sim_place(w->program->code, other.in, where, sizeof where);
		sim_report_at(w, in, lane, &spot,
			"a barrier stands between an mbarrier's init and its use by other warps",
			"the mbarrier at offset %" PRIu64 " is used, which thread %u may not have made yet, at %s",
			offset, other.thread, where);
		return NULL;
	}
	return *owner == w->program || sim_mbarrier_is_shared(w, in, lane, b) ? b : NULL;
}

/* ---- Its life ---- */

static bool make(sim_warp *w, const sim_instr *in, unsigned lane, uint64_t offset, sim_program *p, uint32_t count)
{
	uint8_t *at[SIM_LANES];
	at[lane] = p->shared + offset;
	if (count == 0 || count > MOST) return sim_report(w, in, lane, NULL, "an mbarrier of %u arrivals", count);
	if (!sim_races(w, in, UINT32_C(1) << lane, at, 8, true, false)) return false;
	sim_mbarrier *b = NULL;
	for (uint32_t i = 0; i < p->nmbarriers && !b; i++)
		if (p->mbarriers[i].offset == offset) b = &p->mbarriers[i];
	assert(!b || !b->alive); /* nobody may write where one lives */
	if (!b && p->nmbarriers == p->mbarriers_room) {
		uint32_t room = p->mbarriers_room ? 2 * p->mbarriers_room : 16;
		sim_mbarrier *more = realloc(p->mbarriers, room * sizeof *more);
		if (!more) return sim_out_of_memory(p->launch);
		p->mbarriers = more;
		p->mbarriers_room = room;
	}
	uint32_t clock = b ? b->clock : 0;
	if (!b) b = &p->mbarriers[p->nmbarriers++];
	*b = (sim_mbarrier){.alive = true,
		.offset = (uint32_t)offset,
		.expected = count,
		.pending = count,
		.clock = clock,
		.maker = SIM_LANES * w->index + lane,
		.made = w->clock,
		.passed = known_behind(w, lane),
		.fenced = UINT64_MAX,
		.made_at = in};
	uint32_t clocks = SIM_CLOCK_MBARRIER + p->nmbarriers;
	if (clocks > SIM_CLOCKS) clocks = SIM_CLOCKS;
	if (clocks > p->nclocks) p->nclocks = clocks;
	memset(p->shared_shadow + offset, 0xff, 8);
	p->pending[offset / 4]++;
	p->pending[offset / 4 + 1]++;
	p->npending++;
	return true;
}

static bool end(sim_program *p, sim_mbarrier *b)
{
	assert(b->alive && p->npending && p->pending[b->offset / 4] && p->pending[b->offset / 4 + 1]);
	b->alive = false;
	p->pending[b->offset / 4]--;
	p->pending[b->offset / 4 + 1]--;
	p->npending--;
	return true;
}

static void advance(sim_program *p, sim_mbarrier *b)
{
	assert(b->alive);
	if (b->pending || b->bytes) return;
	uint32_t engine = SIM_CLOCK_MBARRIER + (uint32_t)(b - p->mbarriers);
	b->phase++;
	b->clock++;
	b->pending = b->expected;
	sim_order_phase(p, &b->told, &b->arriving);
	if (engine < SIM_CLOCKS) b->told.clock[engine] = b->clock;
	p->cluster->events++;
}

bool sim_mbarrier_arrive(sim_warp *w, const sim_instr *in, unsigned lane, sim_program *p, sim_mbarrier *b,
	uint32_t count, bool completes)
{
	if (count == 0 || count > b->pending) {
		const sim_spot spot = sim_spot_shared(p, b->offset, 8, NULL);
		return sim_report_at(w, in, lane, &spot, "the count of its init is for all arrivals of a phase",
			"%u arrivals at the mbarrier at offset %u of shared memory, whose phase %u waits for %u of %u",
			count, b->offset, b->phase, b->pending, b->expected);
	}
	if (!completes && count == b->pending)
		return sim_report(w, in, lane, NULL, "an arrival that is not to complete a phase (.noComplete) does");
	if (in->releases && p == w->program)
		sim_order_release(w, UINT32_C(1) << lane, &b->arriving);
	else if (in->releases)
		sim_order_programs(w, UINT32_C(1) << lane, (sim_scope)in->scope, false, true);
	if (p != w->program) {
		b->heard[w->program->rank] = ++p->cluster->time;
		b->came[w->program->rank] = b->phase + 1;
	}
	b->last = in;
	b->pending -= count;
	p->cluster->events++;
	advance(p, b);
	return true;
}

void sim_mbarrier_bytes(sim_program *p, sim_mbarrier *b, int64_t more)
{
	b->bytes += more;
	p->cluster->events++;
	advance(p, b);
}

/* ---- Steps ---- */

static bool arrive(sim_warp *w, const sim_instr *in, unsigned i, sim_program *p, sim_mbarrier *b, uint32_t value)
{
	uint32_t count = in->saturates || !in->nregs ? 1 : value;
	uint64_t state = (uint64_t)b->phase << 32 | b->pending;
	if (in->saturates) b->bytes += value;
	if (in->mode == SIM_MBARRIER_DROP) {
		if (count > b->expected) return sim_report(w, in, i, NULL, "more arrivals are dropped than there are");
		b->expected -= count;
	}
	if (!sim_mbarrier_arrive(w, in, i, p, b, count, !in->constant)) return false;
	if (in->d == UINT32_MAX) return true;
	sim_register_write(sim_at(w, in->d), 8, i, state);
	sim_shadow_write(w, in->d, 8, i, 0);
	return true;
}

static bool change(sim_warp *w, const sim_instr *in, unsigned i, uint64_t address)
{
	uint32_t value = in->nregs ? ((const uint32_t *)sim_at(w, in->b))[i] : 1;
	sim_program *p;
	if (in->mode == SIM_MBARRIER_INIT) {
		uint64_t offset = place(w, in, i, address, &p);
		return offset != UINT64_MAX && make(w, in, i, offset, p, value);
	}
	sim_mbarrier *b = sim_mbarrier_at(w, in, i, address, &p);
	if (!b) return false;
	if ((in->saturates || in->mode == SIM_MBARRIER_EXPECT || in->mode == SIM_MBARRIER_COMPLETE) && value > MOST)
		return sim_report(w, in, i, "a phase counts at most 1048575 bytes",
			"%u bytes are announced to an mbarrier", value);
	switch ((sim_mbarrier_verb)in->mode) {
	case SIM_MBARRIER_INVAL: return end(p, b);
	case SIM_MBARRIER_EXPECT:
		b->last = in;
		b->bytes += value;
		return true;
	case SIM_MBARRIER_COMPLETE: sim_mbarrier_bytes(p, b, -(int64_t)value); return true;
	default: return arrive(w, in, i, p, b, value);
	}
}

bool sim_step_mbarrier(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	uint64_t address[SIM_LANES];
	if (!sim_addresses(w, in, in->a, in->wide[1], in->offset, mask, address)) return false;
	if (in->nregs && (w->bad[in->b] & mask))
		return sim_report(w, in, (unsigned)__builtin_ctz(w->bad[in->b] & mask), NULL, "a count is undefined");
	for (; mask; mask &= mask - 1) {
		unsigned i = (unsigned)__builtin_ctz(mask);
		if (!change(w, in, i, address[i])) return false;
	}
	return true;
}

/* Lanes have seen its phase end. */
static void listen(sim_warp *w, const sim_instr *in, uint32_t lanes, sim_mbarrier *b)
{
	assert(lanes && b->seen <= b->phase);
	b->seen = b->phase;
	sim_cluster_hears(w->program, b->heard);
	if (!in->acquires) return;
	sim_order_acquire(w, lanes, &b->told);
	sim_order_programs(w, lanes, (sim_scope)in->scope, true, false);
}

bool sim_step_mbarrier_wait(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	uint64_t address[SIM_LANES];
	uint32_t over = 0;
	if (!sim_addresses(w, in, in->a, in->wide[1], in->offset, mask, address)) return false;
	if (w->bad[in->b] & mask)
		return sim_report(w, in, (unsigned)__builtin_ctz(w->bad[in->b] & mask), NULL,
			"the phase that is waited for is undefined");
	sim_mbarrier *b = NULL;
	sim_program *p = NULL;
	uint64_t last = 0;
	uint32_t told = 0;
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		if (!b || address[i] != last) {
			if (told) listen(w, in, told, b);
			if (!(b = sim_mbarrier_at(w, in, i, address[i], &p))) return false;
			last = address[i];
			told = 0;
		}
		if (p != w->program)
			return sim_report(
				w, in, i, NULL, "a wait for an mbarrier of another program, which only that can do");
		uint64_t which = sim_register_read(sim_at(w, in->b), in->exchanges ? 4 : 8, i);
		bool ended = in->exchanges ? (b->phase & 1) != which : b->phase != which >> 32;
		if (in->exchanges && which > 1)
			return sim_report(w, in, i, NULL, "a wait for the parity %" PRIu64, which);
		if (!ended) continue;
		over |= UINT32_C(1) << i;
		told |= UINT32_C(1) << i;
	}
	if (told) listen(w, in, told, b);
	sim_write_predicate(w, in->e, mask, over, 0);
	if (over == mask) return true;
	w->waits = in;
	sim_warp_yield(w);
	return false;
}

bool sim_step_mbarrier_count(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	for (; mask; mask &= mask - 1) {
		unsigned i = (unsigned)__builtin_ctz(mask);
		sim_register_write(sim_at(w, in->d), 4, i, (uint32_t)sim_register_read(sim_at(w, in->a), 8, i));
		sim_shadow_write(w, in->d, 4, i, sim_shadow_read(w, in->a, 8, i) ? UINT64_MAX : 0);
	}
	return true;
}

/* cp.async.mbarrier.arrive: the threads' copies land, and then they have arrived; without .noinc the phase waits for
 * one more of each, so that nothing changes but the order. */
bool sim_step_copies_arrive(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	uint64_t address[SIM_LANES];
	sim_program *p;
	if (!sim_addresses(w, in, in->a, in->wide[1], in->offset, mask, address) || !sim_copies_land(w, mask))
		return false;
	for (; mask; mask &= mask - 1) {
		unsigned i = (unsigned)__builtin_ctz(mask);
		sim_mbarrier *b = sim_mbarrier_at(w, in, i, address[i], &p);
		if (!b) return false;
		if (!in->mode) b->pending++;
		if (!sim_mbarrier_arrive(w, in, i, p, b, 1, true)) return false;
	}
	return true;
}

/* ---- Fences ---- */

static void make_known(sim_warp *w, uint32_t lanes)
{
	sim_program *p = w->program;
	for (uint32_t i = 0; i < p->nmbarriers; i++)
		for (uint32_t m = lanes; m && !p->mbarriers[i].published; m &= m - 1)
			p->mbarriers[i].published = has_seen(w, (unsigned)__builtin_ctz(m), &p->mbarriers[i]);
}

bool sim_step_mbarrier_fence(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	(void)in;
	sim_program *p = w->program;
	make_known(w, mask);
	for (uint32_t i = 0; i < p->nmbarriers; i++)
		for (uint32_t m = mask; m; m &= m - 1) {
			sim_mbarrier *b = &p->mbarriers[i];
			unsigned lane = (unsigned)__builtin_ctz(m);
			uint64_t known = known_behind(w, lane);
			if (known < b->fenced && has_seen(w, lane, b)) b->fenced = known;
		}
	return true;
}

bool sim_step_proxy_fence(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	for (int which = 0; which < PROXY_COUNT; which++)
		if (in->mode >> which & 1) sim_order_proxies(w, mask, (sim_proxy)which);
	if (in->mode >> PROXY_SHARED & 1) make_known(w, mask);
	return true;
}
