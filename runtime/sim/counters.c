/* What a launch did, in numbers that do not depend on the host: instructions by class, sectors of global memory, bank
 * conflicts of shared memory.  Each thread of the host counts for itself; a launch's are the sum. */
#include "sim.h"

#include <string.h>

/* ---- Classes ---- */

static bool is_float(const char *name)
{
	for (const char *s = strchr(name, '.'); s; s = strchr(s + 1, '.'))
		if (s[1] == 'f' && s[2] >= '0' && s[2] <= '9') return true;
	return strstr(name, "bf16") != NULL;
}

static blk_sim_class class_of(const sim_instr *in)
{
	if (in->kind == SIM_COMPARE || in->kind == SIM_SELECT) return BLK_SIM_PREDICATE;
	if (in->kind == SIM_BRANCH) return BLK_SIM_BRANCH;
	if (in->kind == SIM_ALU) {
		if (!in->op || strncmp(in->op->name, "cvt", 3) == 0) return BLK_SIM_MOVE;
		if (strncmp(in->op->name, "mov.", 4) == 0) return BLK_SIM_MOVE;
		return is_float(in->op->name) ? BLK_SIM_FLOAT : BLK_SIM_INTEGER;
	}
	if (in->step == sim_step_load || in->step == sim_step_store) return BLK_SIM_MEMORY;
	if (in->step == sim_step_atomic) return BLK_SIM_ATOMIC;
	if (in->step == sim_step_shuffle || in->step == sim_step_vote || in->step == sim_step_redux ||
		in->step == sim_step_warp_sync)
		return BLK_SIM_EXCHANGE;
	if (in->step == sim_step_multiply || in->step == sim_step_product) return BLK_SIM_MATRIX;
	if (in->step == sim_step_load_matrix || in->step == sim_step_store_matrix) return BLK_SIM_MEMORY;
	if (in->step == sim_step_copy || in->step == sim_step_bulk) return BLK_SIM_MEMORY;
	if (in->step == sim_step_barrier || in->step == sim_step_mbarrier || in->step == sim_step_mbarrier_wait ||
		in->step == sim_step_cluster_arrive || in->step == sim_step_cluster_wait)
		return BLK_SIM_BARRIER;
	if (in->step == sim_step_logic) return BLK_SIM_PREDICATE;
	if (in->step == sim_step_pack || in->step == sim_step_unpack) return BLK_SIM_MOVE;
	return BLK_SIM_BRANCH;
}

void sim_code_classify(sim_code *c)
{
	for (size_t i = 0; i < c->n; i++) c->code[i].class = (uint8_t)class_of(&c->code[i]);
}

/* ---- Memory ---- */

/* Distinct values among a few; neighbours are mostly equal. */
static unsigned distinct(const uint64_t *v, unsigned n)
{
	unsigned found = 0;
	for (unsigned i = 0; i < n; i++) {
		bool seen = false;
		for (unsigned k = i; k-- > 0 && !seen;) seen = v[k] == v[i];
		found += !seen;
	}
	return found;
}

/* A request is served in parts of 128 bytes' worth of lanes; a part takes as many turns as the busiest of the 32 banks
 * has different words. */
static unsigned conflicts(const uint64_t *address, unsigned n, unsigned bytes)
{
	unsigned lanes = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8, extra = 0;
	for (unsigned first = 0; first < n; first += lanes) {
		uint64_t bank[32][32];
		unsigned used[32] = {0}, most = 1;
		for (unsigned i = first; i < n && i < first + lanes; i++)
			for (unsigned b = 0; b == 0 || b < bytes; b += 4) {
				uint64_t word = (address[i] + b) / 4;
				unsigned at = (unsigned)(word % 32), k = 0;
				while (k < used[at] && bank[at][k] != word) k++;
				if (k == used[at] && k < 32) bank[at][used[at]++] = word;
				if (used[at] > most) most = used[at];
			}
		extra += most - 1;
	}
	return extra;
}

void sim_count_shared(sim_warp *w, uint32_t lanes, const uint64_t address[SIM_LANES], unsigned bytes)
{
	blk_sim_counters *c = &w->program->counters;
	uint64_t list[SIM_LANES];
	unsigned n = 0;
	for (; lanes; lanes &= lanes - 1) list[n++] = address[__builtin_ctz(lanes)];
	c->shared_requests++;
	c->shared_conflicts += conflicts(list, n, bytes);
}

void sim_count_global(sim_warp *w, uint32_t lanes, const uint64_t address[SIM_LANES], unsigned bytes, bool writes)
{
	blk_sim_counters *c = &w->program->counters;
	uint64_t sector[SIM_LANES];
	unsigned n = 0;
	for (; lanes; lanes &= lanes - 1) sector[n++] = address[__builtin_ctz(lanes)] / 32;
	unsigned sectors = distinct(sector, n);
	if (writes) {
		c->store_requests++;
		c->store_sectors += sectors;
		c->store_bytes += (uint64_t)n * bytes;
	} else {
		c->load_requests++;
		c->load_sectors += sectors;
		c->load_bytes += (uint64_t)n * bytes;
	}
}

void sim_count_access(sim_warp *w, const sim_instr *in, uint32_t mask, const uint64_t address[SIM_LANES], bool writes)
{
	unsigned bytes = (unsigned)in->bytes * in->nregs;
	uint64_t first = address[__builtin_ctz(mask)];
	if (sim_is_global(in, first))
		sim_count_global(w, mask, address, bytes, writes);
	else if (in->space == SPACE_SHARED || (in->space == SPACE_GENERIC && first & SIM_SHARED_WINDOW))
		sim_count_shared(w, mask, address, bytes);
}

void sim_count_add(blk_sim_counters *to, const blk_sim_counters *c)
{
	const uint64_t *from = (const uint64_t *)c;
	for (size_t i = 0; i < sizeof *c / sizeof *from; i++) ((uint64_t *)to)[i] += from[i];
}
