/* A launch on the simulator: what the kernel may touch, its programs over the host's cores, and what came of it.
 *
 * A seed gives an order of programs and of warps; several schedules are several runs of one launch with neighbouring
 * seeds, before each of which memory is put back as it was. */
#include "device.h"
#include "device/cpu.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define STEP_LIMIT (UINT64_C(1) << 30)

static int by_address(const void *a, const void *b)
{
	uint64_t x = ((const sim_range *)a)->base, y = ((const sim_range *)b)->base;
	return x < y ? -1 : x > y;
}

/* Which arguments point into a range, and whether all of them promise not to write. */
static void find_arguments(sim_range *r, const signature *s, const uint64_t *bits)
{
	bool writable = false;
	r->parameter = -1;
	for (uint32_t i = 0; i < s->nparameters; i++) {
		if (s->parameters[i].code != BLK_TYPE_POINTER || bits[i] - r->base > r->bytes) continue;
		if (r->parameter < 0) r->parameter = (int32_t)i;
		writable = writable || !s->parameters[i].is_const;
	}
	r->read_only = r->parameter >= 0 && !writable;
}

/* What nobody has written is no address. */
static bool is_defined(const sim_range *r, uint64_t offset)
{
	uint64_t undefined = 0;
	if (!r->defined && r->shadow) memcpy(&undefined, r->shadow + offset, sizeof undefined);
	return !undefined;
}

/* Memory that arguments point to may hold addresses, as 64-bit integers: what they point into is the kernel's, too.
 * What is written there is not known, so all of it may be. */
static void find_addresses(sim_range *ranges, size_t n, const signature *s, const uint64_t *bits)
{
	for (uint32_t i = 0; i < s->nparameters; i++) {
		const signature_parameter *p = &s->parameters[i];
		bool holds = p->element == BLK_TYPE_I64 || p->element == BLK_TYPE_U64;
		const sim_range *table = NULL;
		if (p->code == BLK_TYPE_POINTER && holds && bits[i] % 8 == 0) table = sim_range_in(ranges, n, bits[i]);
		uint64_t words = table ? (table->base + table->bytes - bits[i]) / 8 : 0;
		for (uint64_t k = 0; k < words; k++) {
			if (!is_defined(table, bits[i] - table->base + 8 * k)) continue;
			uint64_t address = ((const uint64_t *)(uintptr_t)bits[i])[k];
			sim_range *r = (sim_range *)sim_range_in(ranges, n, address);
			if (r && r->parameter < 0 && r->shadow) r->parameter = (int32_t)i, r->word = k + 1;
		}
	}
}

/* What a kernel may touch: all buffers as they are now, and its module's variables. */
static sim_range *ranges_of(sim_device *s, const sim_code *c, const signature *sig, const uint64_t *bits, size_t *n)
{
	pthread_mutex_lock(&s->lock);
	sim_range *out = calloc(s->n + c->nvariables + 1, sizeof *out);
	*n = 0;
	for (size_t i = 0; out && i < s->n; i++) {
		out[*n] = s->buffers[i]->range;
		find_arguments(&out[(*n)++], sig, bits);
	}
	pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; out && i < c->nvariables; i++) {
		const sim_variable *v = &c->variables[i];
		if (v->space != SPACE_GLOBAL && v->space != SPACE_CONST) continue;
		out[(*n)++] = (sim_range){.base = v->address, .bytes = v->bytes, .defined = true, .parameter = -1};
	}
	if (out) qsort(out, *n, sizeof *out, by_address);
	if (out) find_addresses(out, *n, sig, bits);
	return out;
}

/* The i-th of n clusters in a seed's order: a step through the grid that meets each once. */
static uint64_t in_order(const sim_launch *l, uint64_t n, uint64_t i)
{
	assert(i < n);
	uint64_t step = l->seed % n | 1;
	if (!l->seed || n > UINT32_MAX) return i;
	for (uint64_t a = n, b = step;;) { /* until it has no divisor in common with n */
		while (b) {
			uint64_t rest = a % b;
			a = b;
			b = rest;
		}
		if (a == 1) break;
		step += 2;
		a = n;
		b = step;
	}
	return (i * (step % n) % n + l->seed / n % n) % n;
}

/* ---- A thread's clusters ----
 *
 * A cluster runs until it has ended or seems to wait for another one.  Then the next one of the launch is started
 * beside it, and all that have been started take turns: programs may wait for one another in any order. */

enum { MOST = 512 }; /* that a thread has under way */

typedef struct residents {
	sim_cluster *at[MOST]; /* `running` ones first, then ended ones to be used again */
	uint32_t running, made;
	uint64_t idle; /* steps since one was started or has ended */
} residents;

/* Starts the launch's next cluster, if there is one and room for it.  False: nothing can ever run. */
static bool admit(sim_launch *l, residents *r, uint32_t threads)
{
	uint64_t size[3], all = 1;
	for (int k = 0; k < 3; k++) all *= size[k] = l->grid[k] / sim_cluster_extent(l, k);
	if (r->running == MOST || atomic_load(&l->next) >= all) return true;
	assert(r->running <= r->made && r->made <= MOST);
	if (r->made == r->running) {
		sim_cluster *c = sim_cluster_new(l, threads);
		if (!c) return r->running > 0;
		r->at[r->made++] = c;
	}
	uint64_t i = atomic_fetch_add(&l->next, 1);
	if (i >= all) return true;
	uint64_t n = in_order(l, all, i);
	const uint32_t id[3] = {
		(uint32_t)(n % size[0]), (uint32_t)(n / size[0] % size[1]), (uint32_t)(n / size[0] / size[1])};
	sim_cluster_start(r->at[r->running++], id);
	r->idle = 0;
	return true;
}

/* The steps at which the next one's programs have hung: their own, or those of all while none ends. */
static uint64_t limit_of(const sim_launch *l, const residents *r, const sim_cluster *c)
{
	uint64_t together = 2 * l->step_limit > r->idle ? 2 * l->step_limit - r->idle : 0;
	uint64_t limit = c->steps / c->n + together;
	return limit < l->step_limit ? limit : l->step_limit;
}

/* A turn of each.  False: the launch stops. */
static bool take_turns(sim_launch *l, residents *r)
{
	bool some_ended = false;
	for (uint32_t i = 0; i < r->running;) {
		sim_cluster *c = r->at[i];
		uint64_t before = c->steps;
		sim_outcome o = sim_cluster_run(c, limit_of(l, r, c));
		r->idle += (c->steps - before) / c->n;
		if (o == SIM_STOPPED) return false;
		if (o == SIM_WAITS) {
			i++;
			continue;
		}
		c->programs[0]->counters.programs += c->n;
		memmove(&r->at[i], &r->at[i + 1], (--r->running - i) * sizeof r->at[0]); /* the order stays */
		r->at[r->running] = c;
		r->idle = 0;
		some_ended = true;
	}
	if (!some_ended) sched_yield(); /* they may wait for those of another thread */
	return true;
}

/* What the pool's threads call: each takes clusters as long as the launch has some, whichever they are. */
static void run_clusters(blk_cpu_call *call, uint64_t first, uint64_t last, void *scratch)
{
	sim_launch *l = (sim_launch *)(uintptr_t)call->args[0];
	residents r = {.running = 0};
	(void)first, (void)last, (void)scratch;
	while (!atomic_load(&l->stopped)) {
		if (!admit(l, &r, (uint32_t)call->args[1])) {
			sim_out_of_memory(l);
			break;
		}
		if (!r.running || !take_turns(l, &r)) break;
	}
	for (uint32_t i = 0; i < r.made; i++) {
		if (l->counts) {
			pthread_mutex_lock(&l->lock);
			for (uint32_t k = 0; k < r.at[i]->n; k++) {
				sim_count_add(&l->counters, &r.at[i]->programs[k]->counters);
				sim_hits_add(l->hits, r.at[i]->programs[k]->hits, l->code->n);
			}
			pthread_mutex_unlock(&l->lock);
		}
		sim_cluster_free(r.at[i]);
	}
}

/* The launch's first problem as the launch's status; a failed assert is kept for the next call that waits. */
static blk_status outcome(failed_assert *failure, sim_launch *l)
{
	char *text = l->text;
	blk_status status = BLK_OK;
	if (l->problem == PROBLEM_MEMORY) status = error_memory();
	if (l->problem == PROBLEM_BUDGET)
		status = error_set(BLK_ERROR_RESOURCES,
			"kernel %s has not ended after %" PRIu64
			" instructions of all its programs: the simulation is given up",
			l->kernel, l->budget);
	if (l->problem == PROBLEM_REPORT) status = error_set(BLK_ERROR_KERNEL, "%s", text);
	if (l->problem == PROBLEM_ASSERT)
		host_assert_failed(failure, text);
	else
		free(text);
	return status;
}

/* Every program once, in one order. */
static blk_status run_once(blk_device *d, const variant *v, failed_assert *failure, sim_launch *l)
{
	const uint64_t args[2] = {(uint64_t)(uintptr_t)l, v->threads};
	char text[256] = "";
	if (pthread_mutex_init(&l->lock, NULL) != 0) return error_memory();
	blk_status status = sim_races_begin(l) ? BLK_OK : error_memory();
	uint32_t clusters[3];
	for (int i = 0; i < 3; i++) {
		uint32_t extent = sim_cluster_extent(l, i);
		clusters[i] = l->grid[i] / extent;
		if (l->grid[i] % extent && !status)
			status = error_set(BLK_ERROR_ARGUMENT,
				"kernel %s: a grid of %u programs is not whole clusters of %u", l->kernel, l->grid[i],
				extent);
	}
	if (!status) {
		int failed = cpu_pool_run(d->pool, run_clusters, 0, args, clusters, NULL, text, sizeof text);
		if (failed == CPU_NO_MEMORY)
			status = error_memory();
		else
			status = failed ? error_set(BLK_ERROR_UNSUPPORTED, "%s", text) : outcome(failure, l);
	}
	sim_races_end(l);
	pthread_mutex_destroy(&l->lock);
	return status;
}

/* ---- Several orders ---- */

/* What the kernel may write, as it was: bytes, then undefined bits, one range behind the other. */
static uint8_t *save(const sim_launch *l)
{
	size_t bytes = 1;
	for (size_t i = 0; i < l->nranges; i++)
		if (l->ranges[i].parameter >= 0 && !l->ranges[i].read_only) bytes += 2 * l->ranges[i].bytes;
	uint8_t *saved = malloc(bytes), *at = saved;
	for (size_t i = 0; saved && i < l->nranges; i++) {
		const sim_range *r = &l->ranges[i];
		if (r->parameter < 0 || r->read_only) continue;
		assert(r->shadow);
		memcpy(at, (const void *)(uintptr_t)r->base, r->bytes);
		memcpy(at + r->bytes, r->shadow, r->bytes);
		at += 2 * r->bytes;
	}
	return saved;
}

static void put_back(const sim_launch *l, const uint8_t *saved)
{
	for (size_t i = 0; i < l->nranges; i++) {
		const sim_range *r = &l->ranges[i];
		if (r->parameter < 0 || r->read_only) continue;
		memcpy((void *)(uintptr_t)r->base, saved, r->bytes);
		memcpy(r->shadow, saved + r->bytes, r->bytes);
		saved += 2 * r->bytes;
	}
}

/* As the driver is asked for (cuda.c), where the code does not say it itself. */
static uint32_t cluster_of(const sim_code *c, const signature *s, const uint32_t grid[3])
{
	uint32_t n = signature_cluster(s);
	bool said = c->cluster[0] || c->cluster[1] || c->cluster[2];
	return said || n > SIM_CLUSTER || grid[0] % n ? 1 : n;
}

blk_status sim_launch_kernel(
	blk_device *d, const variant *v, void *stream, const uint32_t grid[3], uint64_t *bits, const tensor_map *maps)
{
	const signature *s = v->sig;
	const char *names[SIGNATURE_PARAMETERS];
	for (uint32_t i = 0; i < s->nparameters; i++) names[i] = s->parameters[i].name;
	pthread_mutex_lock(&d->sim->lock);
	const blk_sim_options options = d->sim->options;
	pthread_mutex_unlock(&d->sim->lock);
	const sim_launch first = {.code = v->module,
		.kernel = s->kernel,
		.names = names,
		.arguments = bits,
		.nparameters = s->nparameters,
		.maps = maps,
		.nmaps = s->nmaps,
		.grid = {grid[0], grid[1], grid[2]},
		.cluster = cluster_of(v->module, s, grid),
		.shared_bytes = ((const sim_code *)v->module)->shared_bytes + v->shared,
		.step_limit = options.steps ? options.steps : STEP_LIMIT,
		.budget = options.budget,
		.counts = options.counters != 0,
		.json = options.json != 0};
	sim_launch l = first;
	sim_range *ranges = ranges_of(d->sim, l.code, s, bits, &l.nranges);
	uint32_t times = options.schedules ? options.schedules : 1;
	l.ranges = ranges;
	uint8_t *saved = ranges && times > 1 ? save(&l) : NULL;
	sim_hits *hits = l.counts ? malloc((l.code->n + 1) * sizeof *hits) : NULL;
	blk_status status = ranges && (times == 1 || saved) && (hits || !l.counts) ? BLK_OK : error_memory();
	for (uint32_t i = 0; !status && i < times; i++) {
		size_t n = l.nranges;
		if (i) put_back(&l, saved);
		l = first;
		l.ranges = ranges;
		l.nranges = n;
		l.seed = options.seed + i;
		l.hits = hits;
		if (hits) memset(hits, 0, l.code->n * sizeof *hits);
		status = run_once(d, v, stream ? stream : &d->failure, &l);
	}
	if (!status && l.counts) {
		l.counters.shared_bytes = l.shared_bytes;
		status = sim_lines_keep(d->sim, &l, v);
	}
	free(hits);
	free(saved);
	free(ranges);
	return status;
}
