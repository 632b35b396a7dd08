/* What a launch did, in numbers that do not depend on the host: instructions by class, sectors of global memory, bank
 * conflicts of shared memory.  Each thread of the host counts for itself; a launch's are the sum. */
#include "sim.h"

#include <string.h>

/* ---- Classes ---- */

static const struct {
	sim_step *step;
	blk_sim_class class;
} step_classes[] = {
	{sim_step_load, BLK_SIM_LOAD}, {sim_step_load_matrix, BLK_SIM_LOAD}, {sim_step_store, BLK_SIM_STORE},
	{sim_step_store_matrix, BLK_SIM_STORE}, {sim_step_copy, BLK_SIM_COPY}, {sim_step_bulk, BLK_SIM_COPY},
	{sim_step_atomic, BLK_SIM_ATOMIC}, {sim_step_shuffle, BLK_SIM_EXCHANGE}, {sim_step_vote, BLK_SIM_EXCHANGE},
	{sim_step_redux, BLK_SIM_EXCHANGE}, {sim_step_warp_sync, BLK_SIM_EXCHANGE}, {sim_step_elect, BLK_SIM_EXCHANGE},
	{sim_step_match, BLK_SIM_EXCHANGE}, {sim_step_active, BLK_SIM_EXCHANGE}, {sim_step_transpose, BLK_SIM_EXCHANGE},
	{sim_step_barrier, BLK_SIM_BARRIER}, {sim_step_cluster_arrive, BLK_SIM_BARRIER},
	{sim_step_cluster_wait, BLK_SIM_BARRIER}, {sim_step_mbarrier, BLK_SIM_BARRIER},
	{sim_step_mbarrier_wait, BLK_SIM_BARRIER}, {sim_step_mbarrier_count, BLK_SIM_BARRIER},
	{sim_step_copies_arrive, BLK_SIM_BARRIER}, {sim_step_fence, BLK_SIM_FENCE},
	{sim_step_mbarrier_fence, BLK_SIM_FENCE}, {sim_step_proxy_fence, BLK_SIM_FENCE},
	{sim_step_product_fence, BLK_SIM_FENCE}, {sim_step_copy_commit, BLK_SIM_FENCE},
	{sim_step_copy_wait, BLK_SIM_FENCE}, {sim_step_bulk_commit, BLK_SIM_FENCE}, {sim_step_bulk_wait, BLK_SIM_FENCE},
	{sim_step_product_commit, BLK_SIM_FENCE}, {sim_step_product_wait, BLK_SIM_FENCE},
	{sim_step_multiply, BLK_SIM_MATRIX}, {sim_step_product, BLK_SIM_MATRIX}, {sim_step_logic, BLK_SIM_PREDICATE},
	{sim_step_pack, BLK_SIM_MOVE}, {sim_step_unpack, BLK_SIM_MOVE}, {sim_step_map_rank, BLK_SIM_MOVE},
	{sim_step_load_parameter, BLK_SIM_MOVE}, /* it is a constant to the hardware */
};

/* "add.rn.ftz.f32": by what it does, and by its last type. */
static blk_sim_class arithmetic_class(const char *name)
{
	static const char *const special[] = {"ex2", "lg2", "sin", "cos", "tanh", "rcp", "rsqrt", "sqrt", "div"};
	static const struct {
		const char *type;
		blk_sim_class class;
	} types[] = {{".f32", BLK_SIM_FLOAT}, {".f64", BLK_SIM_DOUBLE}, {".f16", BLK_SIM_HALF},
		{".f16x2", BLK_SIM_HALF}, {".bf16", BLK_SIM_HALF}, {".bf16x2", BLK_SIM_HALF}};
	const char *type = strrchr(name, '.');
	size_t length = strcspn(name, "."), t = 0, k = 0;
	if (strncmp(name, "mov", length) == 0 || strncmp(name, "cvt", 3) == 0) return BLK_SIM_MOVE;
	while (type && t < sizeof types / sizeof types[0] && strcmp(types[t].type, type) != 0) t++;
	if (!type || t == sizeof types / sizeof types[0]) return BLK_SIM_INTEGER;
	for (; k < sizeof special / sizeof special[0]; k++)
		if (strlen(special[k]) == length && strncmp(name, special[k], length) == 0) return BLK_SIM_SPECIAL;
	return types[t].class;
}

static blk_sim_class class_of(const sim_instr *in)
{
	if (in->kind == SIM_COMPARE || in->kind == SIM_SELECT) return BLK_SIM_PREDICATE;
	if (in->kind == SIM_ALU && in->op) return arithmetic_class(in->op->name);
	if (in->kind == SIM_ALU) /* cvt: integers that become wider or narrower are moved */
		return scalar_is_float((scalar)in->from) || scalar_is_float((scalar)in->to) ? BLK_SIM_CONVERT
											    : BLK_SIM_MOVE;
	for (size_t i = 0; in->kind == SIM_STEP && i < sizeof step_classes / sizeof step_classes[0]; i++)
		if (step_classes[i].step == in->step) return step_classes[i].class;
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
				if (k == used[at]) bank[at][used[at]++] = word;
				if (used[at] > most) most = used[at];
			}
		extra += most - 1;
	}
	return extra;
}

void sim_count_shared(
	sim_warp *w, const sim_instr *in, uint32_t lanes, const uint64_t address[SIM_LANES], unsigned bytes)
{
	blk_sim_counters *c = &w->program->counters;
	sim_hits *h = sim_hits_of(w->program, in);
	uint64_t list[SIM_LANES];
	unsigned n = 0;
	for (; lanes; lanes &= lanes - 1) list[n++] = address[__builtin_ctz(lanes)];
	unsigned extra = conflicts(list, n, bytes);
	c->shared_requests++;
	c->shared_conflicts += extra;
	h->shared_requests++;
	h->shared_conflicts += extra;
}

void sim_count_global(sim_warp *w, const sim_instr *in, uint32_t lanes, const uint64_t address[SIM_LANES],
	unsigned bytes, bool writes)
{
	blk_sim_counters *c = &w->program->counters;
	sim_hits *h = sim_hits_of(w->program, in);
	uint64_t sector[SIM_LANES];
	unsigned n = 0;
	for (; lanes; lanes &= lanes - 1) sector[n++] = address[__builtin_ctz(lanes)] / 32;
	unsigned sectors = distinct(sector, n);
	h->requests++;
	h->sectors += sectors;
	h->bytes += (uint64_t)n * bytes;
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
		sim_count_global(w, in, mask, address, bytes, writes);
	else if (in->space == SPACE_SHARED || (in->space == SPACE_GENERIC && first & SIM_SHARED_WINDOW))
		sim_count_shared(w, in, mask, address, bytes);
}

void sim_count_add(blk_sim_counters *to, const blk_sim_counters *c)
{
	const uint64_t *from = (const uint64_t *)c;
	for (size_t i = 0; i < sizeof *c / sizeof *from; i++) ((uint64_t *)to)[i] += from[i];
}

void sim_hits_add(sim_hits *to, const sim_hits *hits, size_t n)
{
	const uint64_t *from = (const uint64_t *)hits;
	for (size_t i = 0; i < n * sizeof *hits / sizeof *from; i++) ((uint64_t *)to)[i] += from[i];
}
