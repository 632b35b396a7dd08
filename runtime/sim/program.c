/* One program: its registers and memory, and how it begins; barriers and ends.  cluster.c gives its warps their turns.
 *
 * The memory of a program is kept for the next one on the same thread of the host; constants in the register files are
 * filled in once. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

/* ---- Memory ---- */

static void fill_unit(const sim_program *p, uint32_t unit, uint8_t bytes, uint64_t bits)
{
	if (!unit) return;
	for (uint32_t k = 0; k < p->nwarps; k++)
		for (unsigned i = 0; i < SIM_LANES; i++) sim_register_write(sim_at(&p->warps[k], unit), bytes, i, bits);
	p->fresh[unit] = 0;
}

/* What stays the same from program to program. */
static void fill_fixed(sim_program *p)
{
	const sim_code *c = p->code;
	const sim_launch *l = p->launch;
	memset(p->fresh, 0xff, c->units * sizeof *p->fresh);
	fill_unit(p, 0, 8, 0);
	p->fresh[0] = 0;
	for (size_t i = 0; i < c->nconstants; i++)
		fill_unit(p, c->constants[i].unit, c->constants[i].bytes,
			c->constants[i].bits + (c->constants[i].is_shared ? (uint64_t)p->rank << SIM_RANK_SHIFT : 0));
	for (size_t i = 0, map = 0; i < c->nparameters; i++) {
		const sim_parameter *q = &c->parameters[i];
		if (q->is_array && map < l->nmaps)
			fill_unit(p, q->unit, 8, (uint64_t)(uintptr_t)&l->maps[map++]);
		else if (!q->is_array && i < l->nparameters)
			fill_unit(p, q->unit, 8, l->arguments[i]);
		if (q->address_unit && i < l->nparameters)
			fill_unit(p, q->address_unit, 8, (uint64_t)(uintptr_t)&l->arguments[i]);
	}
	const struct {
		sim_special special;
		uint32_t value;
	} same[] = {{SPECIAL_TID_Y, 0}, {SPECIAL_TID_Z, 0}, {SPECIAL_NTID_X, p->threads}, {SPECIAL_NTID_Y, 1},
		{SPECIAL_NTID_Z, 1}, {SPECIAL_NCTAID_X, l->grid[0]}, {SPECIAL_NCTAID_Y, l->grid[1]},
		{SPECIAL_NCTAID_Z, l->grid[2]}, {SPECIAL_TID_X, 0}, {SPECIAL_LANEID, 0}, {SPECIAL_WARPID, 0},
		{SPECIAL_LANEMASK_EQ, 0}, {SPECIAL_LANEMASK_LT, 0}, {SPECIAL_LANEMASK_LE, 0}, {SPECIAL_LANEMASK_GT, 0},
		{SPECIAL_LANEMASK_GE, 0}, {SPECIAL_CLUSTER_CTARANK, p->rank},
		{SPECIAL_CLUSTER_NCTARANK, p->cluster->n}};
	for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
		fill_unit(p, c->special[same[i].special], 4, same[i].value);
	uint32_t rank = p->rank;
	for (int i = 0; i < 3; i++) {
		uint32_t extent = sim_cluster_extent(l, i);
		fill_unit(p, c->special[SPECIAL_CLUSTER_NCTAID_X + i], 4, extent);
		fill_unit(p, c->special[SPECIAL_CLUSTER_CTAID_X + i], 4, rank % extent);
		fill_unit(p, c->special[SPECIAL_NCLUSTERID_X + i], 4, l->grid[i] / extent);
		rank /= extent;
	}
	assert(rank == 0); /* it was below the product of the extents */
	for (uint32_t k = 0; k < p->nwarps; k++)
		for (uint32_t i = 0; i < SIM_LANES; i++) {
			const uint32_t own = UINT32_C(1) << i;
			const struct {
				sim_special special;
				uint32_t value;
			} differ[] = {{SPECIAL_TID_X, SIM_LANES * k + i}, {SPECIAL_LANEID, i}, {SPECIAL_WARPID, k},
				{SPECIAL_LANEMASK_EQ, own}, {SPECIAL_LANEMASK_LT, own - 1},
				{SPECIAL_LANEMASK_LE, own | (own - 1)}, {SPECIAL_LANEMASK_GT, ~(own | (own - 1))},
				{SPECIAL_LANEMASK_GE, ~(own - 1)}};
			for (size_t j = 0; j < sizeof differ / sizeof differ[0]; j++) {
				uint32_t unit = c->special[differ[j].special];
				if (unit) sim_register_write(sim_at(&p->warps[k], unit), 4, i, differ[j].value);
			}
		}
}

static bool allocate_warp(const sim_program *p, sim_warp *w)
{
	const sim_code *c = p->code;
	size_t file = (size_t)c->units * SIM_UNIT + 4 * SIM_UNIT, local = SIM_LANES * (size_t)c->local_bytes;
	w->file = aligned_alloc(SIM_UNIT, file);
	w->shadow = aligned_alloc(SIM_UNIT, file);
	w->bad = malloc(c->units * sizeof *w->bad);
	w->blank = malloc(c->units * sizeof *w->blank);
	w->predicate = calloc(c->predicates, sizeof *w->predicate);
	w->predicate_bad = calloc(c->predicates, sizeof *w->predicate_bad);
	w->local = malloc(local ? local : 1);
	w->local_shadow = malloc(local ? local : 1);
	if (!w->file || !w->shadow || !w->bad || !w->blank || !w->predicate || !w->predicate_bad || !w->local ||
		!w->local_shadow)
		return false;
	memset(w->file, 0, file);
	for (int i = 0; i < 2 && c->nproducts; i++)
		if (!(w->flying[i] = calloc(c->units, sizeof *w->flying[i]))) return false;
	return !c->nproducts || (w->touched = calloc(c->units, sizeof *w->touched));
}

sim_program *sim_program_new(sim_cluster *cluster, uint32_t rank, uint32_t threads)
{
	sim_program *p = calloc(1, sizeof *p);
	sim_launch *l = cluster->launch;
	if (!p) return NULL;
	assert(rank < cluster->n);
	p->launch = l;
	p->cluster = cluster;
	p->rank = rank;
	p->code = l->code;
	p->threads = threads;
	p->nwarps = (threads + SIM_LANES - 1) / SIM_LANES;
	assert(p->nwarps && p->nwarps <= SIM_MAX_WARPS);
	p->shared_bytes = l->shared_bytes;
	p->warps = calloc(p->nwarps, sizeof *p->warps);
	p->fresh = malloc(p->code->units * sizeof *p->fresh);
	p->shared = calloc(1, p->shared_bytes + 1);
	p->shared_shadow = malloc(p->shared_bytes + 1);
	p->cells = malloc((p->shared_bytes / 4 + 1) * sizeof *p->cells);
	p->pending = malloc((p->shared_bytes / 4 + 1) * sizeof *p->pending);
	p->reading = malloc((p->shared_bytes / 16 + 1) * sizeof *p->reading);
	if (l->counts) p->hits = calloc(p->code->n + 1, sizeof *p->hits);
	bool good = (p->hits || !l->counts) && p->warps && p->fresh && p->shared && p->shared_shadow && p->cells &&
		    p->pending && p->reading;
	for (uint32_t k = 0; good && k < p->nwarps; k++) {
		p->warps[k].program = p;
		p->warps[k].index = k;
		good = allocate_warp(p, &p->warps[k]);
	}
	if (good) {
		fill_fixed(p);
		return p;
	}
	sim_program_free(p);
	return NULL;
}

void sim_program_free(sim_program *p)
{
	if (!p) return;
	for (uint32_t k = 0; p->warps && k < p->nwarps; k++) {
		sim_warp *w = &p->warps[k];
		free(w->file);
		free(w->shadow);
		free(w->bad);
		free(w->blank);
		free(w->predicate);
		free(w->predicate_bad);
		free(w->causes);
		free(w->local);
		free(w->local_shadow);
		free(w->stack);
		free(w->copies);
		free(w->flights);
		free(w->touched);
		free(w->flying[0]);
		free(w->flying[1]);
	}
	for (int i = 0; i < SIM_MAX_WARPS / 4; i++) free(p->groups[i].readers);
	free(p->mbarriers);
	free(p->reading);
	free(p->warps);
	free(p->fresh);
	free(p->shared);
	free(p->shared_shadow);
	free(p->cells);
	free(p->parts[0]);
	free(p->parts[1]);
	free(p->shared_causes);
	free(p->pending);
	free(p->hits);
	free(p);
}

/* ---- A program's life ---- */

void sim_program_start(sim_program *p, const uint32_t id[3])
{
	const sim_code *c = p->code;
	memcpy(p->id, id, sizeof p->id);
	assert(id[0] < p->launch->grid[0] && id[1] < p->launch->grid[1] && id[2] < p->launch->grid[2]);
	p->number = id[0] + (uint64_t)p->launch->grid[0] * (id[1] + (uint64_t)p->launch->grid[1] * id[2]);
	p->random = p->launch->seed ? p->launch->seed ^ (p->number + 1) * UINT64_C(0x9e3779b97f4a7c15) : 0;
	p->all_met = 0;
	p->some_met = false;
	memset(p->shared_shadow, 0xff, p->shared_bytes);
	memset(p->cells, 0, (p->shared_bytes / 4 + 1) * sizeof *p->cells);
	memset(p->pending, 0, (p->shared_bytes / 4 + 1) * sizeof *p->pending);
	free(p->shared_causes);
	p->shared_causes = NULL;
	p->npending = 0;
	p->nreading = 0;
	memset(p->reading, 0, (p->shared_bytes / 16 + 1) * sizeof *p->reading);
	p->nmbarriers = 0;
	p->nclocks = c->nproducts ? SIM_CLOCK_MBARRIER : p->nwarps;
	memset(p->barriers, 0, sizeof p->barriers);
	sim_products_end(p);
	for (int i = 0; i < 3; i++) {
		fill_unit(p, c->special[SPECIAL_CTAID_X + i], 4, id[i]);
		fill_unit(p, c->special[SPECIAL_CLUSTERID_X + i], 4, id[i] / sim_cluster_extent(p->launch, i));
	}
	for (uint32_t k = 0; k < p->nwarps; k++) {
		sim_warp *w = &p->warps[k];
		uint32_t rest = p->threads - SIM_LANES * k;
		w->pc = 0;
		w->join = SIM_NO_PC;
		w->depth = 0;
		w->steps = 0;
		w->clock = 0;
		w->ncopies = 0;
		memset(w->groups, 0, sizeof w->groups);
		memset(&w->known, 0, sizeof w->known);
		w->learners = 0;
		memset(w->fenced, 0, sizeof w->fenced);
		memset(w->proxied, 0, sizeof w->proxied);
		w->seen = w->idle = 0;
		w->asked = 0;
		memset(w->bulk_groups, 0, sizeof w->bulk_groups);
		w->bulk_clock = w->bulk_lanes = 0;
		w->waits = NULL;
		memset(w->looked, 0, sizeof w->looked);
		w->cluster_lanes = 0;
		w->state = WARP_READY;
		w->near = NULL;
		w->active = w->alive = rest >= SIM_LANES ? SIM_ALL : (UINT32_C(1) << rest) - 1;
		w->early = c->waits_for_grid ? w->alive : 0;
		memcpy(w->bad, p->fresh, c->units * sizeof *w->bad);
		memcpy(w->blank, p->fresh, c->units * sizeof *w->blank);
		memset(w->predicate_bad, 0xff, c->predicates * sizeof *w->predicate_bad);
		free(w->causes);
		w->causes = NULL;
		w->predicate[0] = SIM_ALL;
		w->predicate_bad[0] = 0;
		if (c->local_bytes) memset(w->local_shadow, 0xff, SIM_LANES * (size_t)c->local_bytes);
	}
}

/* ---- Steps that concern the program ---- */

static void release(sim_program *p, uint32_t id)
{
	sim_barrier *b = &p->barriers[id];
	assert(b->arrived == b->expected);
	sim_order_barrier(p, b->warps, b->tells ? &p->told[id] : NULL);
	*b = (sim_barrier){0};
	p->counters.barriers++;
	p->cluster->events++;
	for (uint32_t k = 0; k < p->nwarps; k++)
		if (p->warps[k].state == WARP_AT_BARRIER && p->warps[k].barrier == id) p->warps[k].state = WARP_READY;
}

bool sim_step_barrier(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	sim_program *p = w->program;
	unsigned first = (unsigned)__builtin_ctz(mask);
	uint32_t id = ((const uint32_t *)sim_at(w, in->a))[first];
	uint32_t threads = in->nregs == 2 ? ((const uint32_t *)sim_at(w, in->b))[first] : SIM_LANES * p->nwarps;
	if ((w->bad[in->a] | w->bad[in->b]) & mask)
		return sim_report(w, in, first, NULL, "a barrier's number is undefined");
	if (mask != w->alive)
		return sim_report(w, in, first, "a barrier must not stand where only some threads of a warp come",
			"a barrier is reached by some threads of a warp only: lanes 0x%08x of 0x%08x", mask, w->alive);
	if (id >= SIM_BARRIERS || threads == 0 || threads % SIM_LANES || threads > SIM_LANES * p->nwarps)
		return sim_report(
			w, in, first, NULL, "barrier %u of %u threads, in a program of %u", id, threads, p->threads);
	sim_barrier *b = &p->barriers[id];
	if (b->arrived && b->expected != threads / SIM_LANES)
		return sim_report(w, in, first, NULL, "barrier %u is for %u threads here and for %u elsewhere", id,
			threads, SIM_LANES * b->expected);
	b->expected = threads / SIM_LANES;
	assert(b->arrived < b->expected && !(b->warps >> w->index & 1));
	if (in->exchanges) { /* bar.arrive */
		if (!b->tells) memset(&p->told[id], 0, sizeof p->told[id]);
		b->tells = true;
		sim_order_release(w, mask, &p->told[id]);
	} else
		b->warps |= UINT32_C(1) << w->index;
	if (++b->arrived == b->expected) {
		release(p, id);
		return true;
	}
	if (in->exchanges) return true;
	w->state = WARP_AT_BARRIER;
	w->barrier = (uint8_t)id;
	return false;
}

bool sim_step_exit(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	(void)in;
	sim_warp_exit(w, mask);
	sim_cluster_leaves(w);
	return true;
}

/* Kernels run one after the other here: that nobody touches memory in front of the wait is all there is to see
 * (memory.c). */
bool sim_step_grid_wait(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	(void)in;
	w->early &= ~mask;
	return true;
}

bool sim_step_trap(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	return sim_report(w, in, (unsigned)__builtin_ctz(mask), NULL, "the kernel stops itself: trap");
}
