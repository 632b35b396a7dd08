/* A cluster of programs, mostly of one: the warps of all take turns until they have ended.
 *
 * A warp runs until it waits or its turn is over, so that one that spins lets the others go on.  One that asks an
 * mbarrier in vain gives its turn back; when all who are not held elsewhere have done so several times and nothing has
 * happened meanwhile, an asynchronous copy that is still under way lands now, at the latest moment there is.  When
 * there is none, or the programs have used up their steps, that is the report.  Who finds the same
 * in global memory again and again may wait for another cluster: it gives its turn back too (launch.c). */
#include "sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	TURN = 20000,   /* instructions */
	PATIENCE = 6,   /* questions in vain */
	LOOKS = 64,     /* in vain at what other programs may write, before these have a turn */
	BRIEFLY = 2,    /* the same, where the last turn was in vain */
	GENEROUS = 8,   /* one in so many of what is news lets others go first */
	MANY = 1024,    /* the same, where programs are to run far apart */
	LONG = 1 << 20, /* instructions, some of them such looks */
	SLOWLY = 16     /* one turn in so many */
};

/* splitmix64 */
uint64_t sim_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint32_t sim_cluster_extent(const sim_launch *l, int dimension)
{
	uint32_t own = l->code->cluster[dimension];
	return own ? own : dimension == 0 && l->cluster ? l->cluster : 1;
}

sim_cluster *sim_cluster_new(sim_launch *l, uint32_t threads)
{
	sim_cluster *c = calloc(1, sizeof *c);
	if (!c) return NULL;
	c->launch = l;
	c->n = 1;
	for (int i = 0; i < 3; i++) c->n *= sim_cluster_extent(l, i);
	assert(c->n <= SIM_CLUSTER);
	for (uint32_t i = 0; i < c->n; i++)
		if (!(c->programs[i] = sim_program_new(c, i, threads))) {
			sim_cluster_free(c);
			return NULL;
		}
	return c;
}

void sim_cluster_free(sim_cluster *c)
{
	if (!c) return;
	for (uint32_t i = 0; i < c->n; i++) sim_program_free(c->programs[i]);
	free(c->copies);
	free(c);
}

/* ---- When nobody can go on ---- */

static const sim_instr *last_of(const sim_warp *w)
{
	const sim_code *c = w->program->code;
	assert(c->n != 0); /* it has run */
	size_t at = (size_t)w->pc < c->n ? (size_t)w->pc : c->n - 1;
	return &c->code[at];
}

static bool out_of_steps(sim_warp *w)
{
	const sim_cluster *c = w->program->cluster;
	unsigned lane = (unsigned)__builtin_ctz(w->active | 1u << 31);
	static const char *const hint = "a loop that does not end, or a lock that nobody gives back";
	if (c->limit < c->launch->step_limit)
		return sim_report(w, last_of(w), lane, hint,
			"programs wait for one another: none has ended in %" PRIu64 " instructions",
			2 * c->launch->step_limit);
	return sim_report(w, last_of(w), lane, hint, "the program has not ended after %" PRIu64 " instructions",
		c->launch->step_limit);
}

/* What a warp asks in vain; null: something else. */
static const sim_mbarrier *asked(const sim_warp *w)
{
	const sim_instr *in = w->waits;
	if (w->state != WARP_READY || !in || in->step != sim_step_mbarrier_wait) return NULL;
	unsigned lane = (unsigned)__builtin_ctz(w->active | 1u << 31);
	uint64_t base = in->wide[1] ? sim_register_read(sim_at(w, in->a), in->wide[1], lane) : 0;
	return sim_mbarrier_find(w->program, ((base + (uint64_t)in->offset) & SHARED_OFFSETS) - SIM_SHARED_BASE);
}

static bool report_mbarrier(sim_warp *w, uint32_t waiting, uint32_t warps)
{
	sim_program *p = w->program;
	const sim_instr *in = w->waits;
	unsigned lane = (unsigned)__builtin_ctz(w->active | 1u << 31);
	const sim_mbarrier *b = asked(w);
	char where[320] = "nobody";
	if (b->last) sim_place(p->code, b->last, where, sizeof where);
	const sim_spot spot = sim_spot_shared(p, b->offset, 8, NULL);
	return sim_report_at(w, in, lane, &spot,
		b->pending ? "every phase needs the arrivals that its init counts; is an arrive missing, is "
			     "the parity the wrong one, or does a copy name another mbarrier?"
			   : "the bytes that expect_tx announces must be those that the copies bring",
		"%u of %u warps wait for ever; this one for the mbarrier at offset %u of shared memory, whose phase %u "
		"needs "
		"%u more of %u arrivals and %" PRId64 " bytes (last arrival: %s)",
		waiting, warps, b->offset, b->phase, b->pending, b->expected, b->bytes, where);
}

/* Its lanes wait at the cluster's barrier, all of them or some. */
static bool is_at_cluster(const sim_warp *w)
{
	return w->state == WARP_AT_CLUSTER ||
	       (w->state == WARP_READY && w->waits && w->waits->step == sim_step_cluster_wait);
}

/* How much a warp's waiting says about why nobody goes on. */
static uint32_t telling(const sim_warp *w)
{
	static const uint32_t rank[] = {
		[WARP_READY] = 4, [WARP_AT_BARRIER] = 3, [WARP_AT_GROUP] = 2, [WARP_AT_CLUSTER] = 1, [WARP_ENDED] = 0};
	const sim_mbarrier *b = asked(w);
	return b && b->bytes ? 5 : rank[is_at_cluster(w) ? WARP_AT_CLUSTER : w->state];
}

/* Those that wait name what for, those that ended are why. */
static void report_deadlock(sim_cluster *c)
{
	uint32_t waiting = 0, ended = 0, warps = 0;
	sim_warp *worst = &c->programs[0]->warps[0];
	uint32_t best = 0;
	for (uint32_t i = 0; i < c->n; i++)
		for (uint32_t k = 0; k < c->programs[i]->nwarps; k++) {
			sim_warp *w = &c->programs[i]->warps[k];
			warps++;
			if (w->state == WARP_ENDED)
				ended++;
			else
				waiting++;
			if (telling(w) > best) best = telling(w), worst = w;
		}
	assert(best != 0); /* not all have ended */
	sim_program *p = worst->program;
	unsigned lane = (unsigned)__builtin_ctz(worst->active | 1u << 31);
	const sim_instr *in = is_at_cluster(worst) ? worst->waits : &p->code->code[worst->pc - 1];
	if (asked(worst))
		report_mbarrier(worst, waiting, warps);
	else if (worst->state == WARP_AT_GROUP)
		sim_report(worst, in, lane, "a wgmma is for all four warps of a warpgroup",
			"%u of %u warps wait for ever; this one for the other warps of its warpgroup", waiting, warps);
	else if (is_at_cluster(worst))
		sim_report(worst, in, lane, "every thread of every program of the cluster must come to its barrier",
			"%u of %u warps wait for ever at the cluster's barrier, and %u have ended", waiting, warps,
			ended);
	else if (worst->state == WARP_READY) /* on its way, where its address is another one for now */
		sim_report(worst, worst->waits, lane, NULL, "%u of %u warps wait for ever", waiting, warps);
	else
		sim_report(worst, in, lane,
			"every warp of the program must come to a barrier, the same number of times",
			"%u of %u warps wait at barrier %u for ever: %u have arrived, it waits for %u, and %u have "
			"ended",
			waiting, warps, worst->barrier, p->barriers[worst->barrier].arrived,
			p->barriers[worst->barrier].expected, ended);
}

/* ---- The cluster's barrier ---- */

/* Warps that have ended have arrived for good. */
static void pass(sim_cluster *c)
{
	bool some = false;
	for (uint32_t i = 0; i < c->n; i++) some = some || c->arrived[i];
	if (!some) return;
	for (uint32_t i = 0; i < c->n; i++)
		for (uint32_t k = 0; k < c->programs[i]->nwarps; k++)
			if (!(c->arrived[i] >> k & 1) && c->programs[i]->warps[k].state != WARP_ENDED) return;
	memset(c->arrived, 0, sizeof c->arrived);
	memcpy(c->meets, c->said, sizeof c->meets);
	memcpy(c->met_relaxed, c->relaxed, sizeof c->relaxed);
	memset(c->relaxed, 0, sizeof c->relaxed);
	c->passed++;
	c->events++;
	for (uint32_t i = 0; i < c->n; i++) {
		sim_program *p = c->programs[i];
		sim_order_phase(p, &c->told[i], &c->arriving[i]);
		sim_mbarriers_shared(p, c->met_relaxed[i]);
		for (uint32_t k = 0; k < p->nwarps; k++)
			if (p->warps[k].state == WARP_AT_CLUSTER) p->warps[k].state = WARP_READY;
	}
}

static bool whole_warp(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	if (mask == w->alive) return true;
	return sim_report(w, in, (unsigned)__builtin_ctz(mask),
		"a barrier must not stand where only some threads of a warp come",
		"the cluster's barrier is reached by some threads of a warp only: lanes 0x%08x of 0x%08x", mask,
		w->alive);
}

/* All of a warp's lanes that live have arrived since the barrier was passed last. */
static bool all_arrived(const sim_warp *w)
{
	if (w->alive & ~w->cluster_lanes) return false;
	for (uint32_t m = w->alive; m; m &= m - 1)
		if (w->cluster_passed[__builtin_ctz(m)] != w->program->cluster->passed) return false;
	return w->alive != 0;
}

static void arrive(sim_warp *w)
{
	sim_program *p = w->program;
	if (!all_arrived(w)) return;
	p->cluster->arrived[p->rank] |= UINT32_C(1) << w->index;
	p->cluster->events++;
	pass(p->cluster);
}

/* Lanes have ended: it may be them that the warp still needed. */
void sim_cluster_leaves(sim_warp *w)
{
	if (w->cluster_lanes) arrive(w);
}

/* Lanes may come one after another where the text does not say .aligned. */
bool sim_step_cluster_arrive(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	sim_program *p = w->program;
	if (in->exchanges && !whole_warp(w, in, mask)) return false;
	if (w->cluster_lanes & mask)
		return sim_report(w, in, (unsigned)__builtin_ctz(w->cluster_lanes & mask), NULL,
			"a thread arrives twice at the cluster's barrier and has not waited there");
	w->cluster_lanes |= mask;
	if (in->releases) {
		sim_order_release(w, mask, &p->cluster->arriving[p->rank]);
		sim_order_programs(w, mask, SCOPE_CLUSTER, false, true);
	}
	p->cluster->said[p->rank] = ++p->cluster->time;
	p->cluster->relaxed[p->rank] |= !in->releases;
	for (uint32_t m = mask; m; m &= m - 1) w->cluster_passed[__builtin_ctz(m)] = p->cluster->passed;
	arrive(w);
	return true;
}

/* What programs had done when they came to the cluster's barrier has come, if they said so there by a release. */
static void arrivals_have_come(sim_program *p)
{
	const sim_cluster *c = p->cluster;
	for (uint32_t i = 0; i < p->nmbarriers; i++)
		for (uint32_t rank = 0; rank < c->n; rank++)
			if (!c->met_relaxed[rank] && p->mbarriers[i].heard[rank] <= c->meets[rank])
				p->mbarriers[i].came[rank] = 0;
}

bool sim_step_cluster_wait(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	sim_cluster *c = w->program->cluster;
	if (in->exchanges && !whole_warp(w, in, mask)) return false;
	if (mask & ~w->cluster_lanes)
		return sim_report(w, in, (unsigned)__builtin_ctz(mask & ~w->cluster_lanes),
			"barrier.cluster.arrive comes first",
			"a thread waits at the cluster's barrier and has not arrived there");
	bool passed = true;
	for (uint32_t m = mask; m; m &= m - 1) passed = passed && c->passed > w->cluster_passed[__builtin_ctz(m)];
	if (passed) {
		w->cluster_lanes &= ~mask;
		sim_order_acquire(w, mask, &c->told[w->program->rank]);
		sim_order_programs(w, mask, SCOPE_CLUSTER, true, false);
		sim_cluster_hears(w->program, c->meets);
		arrivals_have_come(w->program);
		return true;
	}
	w->pc--; /* asks again */
	if (mask == w->alive)
		w->state = WARP_AT_CLUSTER;
	else
		sim_warp_yield(w);
	w->waits = in;
	return false;
}

/* ---- Blocks for another program ---- */

void sim_cluster_brings(sim_warp *w, const sim_instr *in, uint32_t rank)
{
	assert(rank < w->program->cluster->n && rank != w->program->rank);
	sim_cluster *c = w->program->cluster;
	c->brought[w->program->rank][rank] = ++c->time;
	c->bringer[w->program->rank] = in;
}

void sim_cluster_hears(sim_program *p, const uint32_t *said)
{
	uint32_t *heard = p->cluster->heard[p->rank];
	for (uint32_t rank = 0; rank < p->cluster->n; rank++)
		if (said[rank] > heard[rank]) heard[rank] = said[rank];
}

/* An arrival from another program takes its time, and a later one, elsewhere, may overtake it. */
static bool arrivals_are_known(sim_warp *w)
{
	const sim_program *p = w->program;
	for (uint32_t i = 0; i < p->nmbarriers; i++) {
		const sim_mbarrier *b = &p->mbarriers[i];
		for (uint32_t rank = 0; rank < p->cluster->n; rank++)
			if (b->alive && b->came[rank] > b->seen) {
				const sim_spot spot = sim_spot_shared(p, b->offset, 8, NULL);
				return sim_report_at(w, b->last, 0, &spot,
					"a wait for that phase, or a barrier of the cluster with arrivals that are "
					"releases",
					"the program has ended and cannot know whether the arrival of program %u of "
					"the "
					"cluster at its mbarrier at offset %u has come",
					rank, b->offset);
			}
	}
	return true;
}

/* Until the others have said something after they were brought a block, it may be on its way; then nobody may end: not
 * the one that it is for, which bulk.c sees, nor the one whose copy it is. */
static bool may_end(sim_warp *w)
{
	const sim_program *p = w->program;
	sim_cluster *c = p->cluster;
	if (c->n == 1) return true;
	for (uint32_t k = 0; k < p->nwarps; k++)
		if (p->warps[k].state != WARP_ENDED) return true;
	for (uint32_t rank = 0; rank < c->n; rank++)
		if (c->brought[p->rank][rank] > c->heard[p->rank][rank])
			return sim_report(w, c->bringer[p->rank], 0,
				"a barrier of the cluster at the end, or an mbarrier at which the other arrives when "
				"it has read it",
				"the program has ended and cannot know whether what it copies to program %u of the "
				"cluster "
				"has come",
				rank);
	return arrivals_are_known(w);
}

/* The same place in the shared memory of another program. */
bool sim_step_map_rank(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	uint32_t bad = (w->bad[in->a] | w->bad[in->b]) & mask;
	if (bad) return sim_report(w, in, (unsigned)__builtin_ctz(bad), NULL, "an address or a rank is undefined");
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		uint64_t a = sim_register_read(sim_at(w, in->a), in->wide[0], i);
		uint64_t rank = ((const uint32_t *)sim_at(w, in->b))[i] & 0xff; /* whose program there may be none */
		uint64_t window = a & SIM_SHARED_WINDOW;
		sim_register_write(
			sim_at(w, in->d), in->wide[0], i, window | (a & SHARED_OFFSETS) | rank << SIM_RANK_SHIFT);
	}
	sim_set_defined(w, in->d, mask);
	return true;
}

/* ---- Turns ---- */

/* Of the launch's budget; false: there is none left. */
static bool spend(sim_launch *l, uint64_t steps)
{
	if (!l->budget) return true;
	uint64_t before = atomic_fetch_add_explicit(&l->spent, steps, memory_order_relaxed);
	return before + steps <= l->budget || sim_out_of_budget(l);
}

static bool take_turn(sim_cluster *c, sim_warp *w, uint64_t *random)
{
	uint64_t before = w->steps, budget = *random ? 1 + sim_random(random) % 64 : TURN;
	const sim_instr *earlier = w->waits;
	w->waits = NULL;
	sim_warp_run(w, budget);
	c->steps += w->steps - before;
	if (atomic_load_explicit(&c->launch->stopped, memory_order_relaxed)) return false;
	if (!spend(c->launch, w->steps - before)) return false;
	if (c->steps > c->limit * c->n) return out_of_steps(w);
	/* a short turn may not come as far as to ask again */
	bool asks = w->waits != NULL, goes_on = !asks && (w->state != WARP_READY || w->steps - w->asked >= TURN);
	if (goes_on || w->seen != c->events) w->idle = 0;
	w->seen = c->events;
	if (w->state == WARP_ENDED) {
		if (!may_end(w)) return false;
		pass(c);
	}
	if (asks) {
		w->idle++;
		w->asked = w->steps;
	} else if (!goes_on)
		w->waits = earlier;
	return true;
}

/* A turn of every warp that can take one.  False: the launch stops. */
static bool run_program(sim_cluster *c, sim_program *p)
{
	assert(p->nwarps != 0);
	uint32_t first = p->random ? (uint32_t)(sim_random(&p->random) % p->nwarps) : 0;
	for (uint32_t k = 0; k < p->nwarps; k++) {
		sim_warp *w = &p->warps[(first + k) % p->nwarps];
		if (w->state == WARP_READY && !take_turn(c, w, &p->random)) return false;
	}
	return true;
}

/* One program of a cluster may be slower than the others: it mostly gives its turn back. */
static bool is_late(sim_cluster *c, uint32_t rank)
{
	uint64_t *random = &c->programs[0]->random;
	return *random && rank == c->slow && sim_random(random) % SLOWLY;
}

/* Some warp may go on by itself; a barrier may have let one go since it was looked at. */
static bool has_hopes(const sim_cluster *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		for (uint32_t k = 0; k < c->programs[i]->nwarps; k++) {
			const sim_warp *w = &c->programs[i]->warps[k];
			if (w->state == WARP_READY && (w->idle < PATIENCE || w->seen != c->events)) return true;
		}
	return false;
}

static bool has_ended(const sim_cluster *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		for (uint32_t k = 0; k < c->programs[i]->nwarps; k++)
			if (c->programs[i]->warps[k].state != WARP_ENDED) return false;
	return true;
}

bool sim_looks_around(sim_warp *w, const sim_instr *in, uint64_t address, uint64_t value)
{
	assert(in >= w->program->code->code && in < w->program->code->code + w->program->code->n);
	sim_cluster *c = w->program->cluster;
	uint64_t *slot = &w->looked[(size_t)(in - w->program->code->code) % SIM_LOOKED];
	uint64_t now = (address * UINT64_C(0x9e3779b97f4a7c15) ^ value) + (uintptr_t)in;
	if (*slot == now) return ++c->looks < c->patience;
	*slot = now;
	c->news = true;
	/* others may come while this one holds what it has just been given: a lock that nobody waits for shows little
	 */
	uint64_t *random = &c->programs[0]->random;
	if (!*random || sim_random(random) % GENEROUS) return true;
	c->looks = c->patience;
	return false;
}

static bool may_wait_for_others(const sim_cluster *c)
{
	return c->looks >= c->patience || (c->looks && c->steps - c->resumed > LONG);
}

static uint32_t patience_of(sim_cluster *c)
{
	uint64_t *random = &c->programs[0]->random;
	if (!*random) return LOOKS;
	return sim_random(random) % 16 ? 1 + (uint32_t)(sim_random(random) % LOOKS) : MANY;
}

void sim_cluster_start(sim_cluster *c, const uint32_t id[3])
{
	const sim_launch *l = c->launch;
	uint32_t x = sim_cluster_extent(l, 0), y = sim_cluster_extent(l, 1), z = sim_cluster_extent(l, 2);
	assert(x * y * z == c->n);
	c->events = c->passed = c->steps = 0;
	c->time = 1;
	for (uint32_t i = 0; i < c->n; i++) {
		c->released[i].n = 0;
		c->arriving[i] = c->told[i] = (sim_knowledge){0};
	}
	memset(c->brought, 0, sizeof c->brought);
	memset(c->heard, 0, sizeof c->heard);
	memset(c->said, 0, sizeof c->said);
	memset(c->meets, 0, sizeof c->meets);
	memset(c->relaxed, 0, sizeof c->relaxed);
	memset(c->met_relaxed, 0, sizeof c->met_relaxed);
	c->asks = false;
	c->ncopies = 0;
	memset(c->arrived, 0, sizeof c->arrived);
	for (uint32_t i = 0; i < c->n; i++) {
		const uint32_t at[3] = {id[0] * x + i % x, id[1] * y + i / x % y, id[2] * z + i / x / y};
		sim_program_start(c->programs[i], at);
	}
	uint64_t *random = &c->programs[0]->random;
	c->slow = c->n > 1 && *random ? (uint32_t)(sim_random(random) % (c->n + 1)) : c->n; /* c->n: none is */
}

sim_outcome sim_cluster_run(sim_cluster *c, uint64_t limit)
{
	c->limit = limit;
	c->looks = 0;
	/* one that has seen nothing new all its turn only looks whether there is something now */
	c->patience = c->asks ? BRIEFLY : patience_of(c);
	c->news = false;
	c->resumed = c->steps;
	for (;;) {
		for (uint32_t i = 0; i < c->n; i++)
			if (!is_late(c, i) && !run_program(c, c->programs[i])) return SIM_STOPPED;
		if (has_ended(c)) break;
		if (may_wait_for_others(c)) {
			c->asks = !c->news;
			return SIM_WAITS;
		}
		if (has_hopes(c) || sim_bulk_land_one(c)) continue;
		if (!atomic_load_explicit(&c->launch->stopped, memory_order_relaxed)) report_deadlock(c);
		return SIM_STOPPED;
	}
	sim_bulk_end(c);
	return SIM_ENDED;
}
