/* Timing: which of the configurations that compute the right thing is the fastest.
 *
 * Before timing, what the estimates rule out goes: a configuration that spills much where another does not, and, where
 * the cost clause tells what a launch must move and compute, one whose grid leaves so much of the device idle that even
 * at the rates of the memory and the matrix units it could not reach the best time measured so far.
 *
 * Then rounds: every configuration left is timed with twice the runs of the round before, and the slower half goes, but
 * none that is within 2% of the last one to stay.  A time is the 0.2 quantile of its best round: it can only fall, so
 * none that was dropped can win, and other work on the machine, which only adds time, weighs little. */
#include "tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Estimates ---- */

/* Of one multiprocessor, generously, as a bound must be: four times its share of the memory's rate, and what no chip's
 * matrix units exceed. */
#define SHARES 4.0
#define FLOPS_PER_SM 64e12

/* The least milliseconds that a launch can take: the busiest multiprocessor runs a whole number of programs, each of
 * which moves and computes its part.  0: nothing is known. */
static double least_ms(const tune_job *j, uint32_t i)
{
	const blk_device_info *d = &j->kernel->head.device->info;
	const signature *s = j->variants[i]->sig;
	uint32_t grid[3];
	if (!d->num_sms || trial_grid(j, i, grid)) return 0;
	double programs = (double)grid[0] * grid[1] * grid[2], sms = d->num_sms;
	double each = (double)((uint64_t)((programs + sms - 1) / sms)) / programs; /* of all work, on the busiest one */
	double seconds = 0;
	if (s->cost_bytes.ntokens && d->theoretical_bytes_per_s > 0) {
		double bytes = signature_number(s, &s->cost_bytes, j->bits, d->num_sms) * each;
		seconds = bytes / (SHARES * d->theoretical_bytes_per_s / sms);
	}
	if (s->cost_flops.ntokens && d->kind == BLK_DEVICE_CUDA) {
		double flops = signature_number(s, &s->cost_flops, j->bits, d->num_sms) * each / FLOPS_PER_SM;
		if (flops > seconds) seconds = flops;
	}
	return seconds > 0 ? seconds * 1e3 : 0;
}

static void verdict(tune_job *j, uint32_t i, blk_tune_verdict v, const char *reason)
{
	tune_result *r = &j->results[i];
	r->verdict = v;
	r->ms = 0;
	free(r->reason);
	r->reason = strdup(reason);
	tune_learnt(j, i);
}

typedef struct candidate {
	uint32_t configuration, place; /* in the ranking; 0: there is none */
	double least_ms;
	uint32_t spills;
} candidate;

static int by_estimate(const void *a, const void *b)
{
	const candidate *x = a, *y = b;
	if (x->place != y->place) return x->place < y->place ? -1 : 1;
	if (x->least_ms != y->least_ms) return x->least_ms < y->least_ms ? -1 : 1;
	return x->configuration < y->configuration ? -1 : x->configuration > y->configuration;
}

static uint32_t place_of(const tune_job *j, uint32_t configuration)
{
	uint32_t i = 0;
	while (j->ranking && j->ranking[i] != configuration) i++;
	return i;
}

/* Too many registers: local memory is as slow as global. */
static uint32_t drop_spilling(tune_job *j, candidate *list, uint32_t n)
{
	enum { MUCH = 256 };
	uint32_t least = UINT32_MAX, stay = 0;
	for (uint32_t i = 0; i < n; i++)
		if (list[i].spills < least) least = list[i].spills;
	for (uint32_t i = 0; i < n; i++) {
		char text[160];
		if (list[i].spills < MUCH || list[i].spills < 4 * (uint64_t)least + MUCH) {
			list[stay++] = list[i];
			continue;
		}
		snprintf(text, sizeof text, "it spills %u bytes a thread, another configuration %u", list[i].spills,
			least);
		verdict(j, list[i].configuration, BLK_TUNE_PRUNED, text);
	}
	return stay;
}

/* ---- Rounds ---- */

enum { ROUNDS = 4, FIRST = 3, MOST_RUNS = FIRST << (ROUNDS - 1), LONG_MS = 20 };

static void told_time(const blk_device *d, const char *configuration, uint32_t runs, blk_timing *out)
{
	double ms[MOST_RUNS];
	for (uint32_t i = 0; i < runs; i++) ms[i] = d->tune_clock(configuration);
	bench_summarise(ms, runs, out);
}

/* What takes long needs few runs, as noise is short: a round of one configuration takes LONG_MS at most, or one run. */
static blk_status time_one(trial *t, uint32_t i, uint32_t runs)
{
	tune_job *j = t->job;
	while (runs > 1 && j->results[i].whole_ms * runs > LONG_MS) runs /= 2;
	blk_timing timing = {0};
	uint32_t grid[3];
	double *ms = &j->results[i].ms;
	blk_status status = trial_grid(j, i, grid);
	if (!status) status = trial_refresh(t);
	if (status) return status;
	tune_running(j, i, j->results[i].whole_ms * runs);
	if (t->device->tune_clock)
		told_time(t->device, j->kernel->sig->configurations[i], runs, &timing);
	else
		status = bench_variant(t->device, j->variants[i], trial_stream(t), grid, t->bits,
			t->all_known ? t->touched : NULL, t->ntouched, runs, &j->results[i].whole_ms, &timing);
	tune_running(j, TUNE_NONE, 0);
	if (!status) status = host_asserted(&t->failure);
	if (status) return trial_failed(t, i, status);
	if (*ms <= 0 || timing.p20_ms < *ms) *ms = timing.p20_ms;
	tune_learnt(j, i);
	tune_step(j);
	return BLK_OK;
}

/* The first round, the most promising first.  Returns how many of `list` were timed; they stand first in `left`. */
static blk_status first_round(trial *t, const candidate *list, uint32_t n, uint32_t *left, uint32_t *timed)
{
	tune_job *j = t->job;
	blk_status status = BLK_OK;
	*timed = 0;
	for (uint32_t i = 0; !status && i < n; i++) {
		uint32_t at = list[i].configuration;
		double best = tune_best_ms(j);
		if (best > 0 && list[i].least_ms > best) {
			char text[160];
			snprintf(text, sizeof text,
				"by the cost clause its grid takes at least %.3g ms, the best configuration takes %.3g",
				list[i].least_ms, best);
			verdict(j, at, BLK_TUNE_PRUNED, text);
			continue;
		}
		status = time_one(t, at, FIRST);
		if (j->results[at].verdict == BLK_TUNE_GOOD) left[(*timed)++] = at;
	}
	return status;
}

static void sort_by_time(const tune_job *j, uint32_t *left, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t at = i; at && j->results[left[at]].ms < j->results[left[at - 1]].ms; at--) {
			uint32_t other = left[at - 1];
			left[at - 1] = left[at];
			left[at] = other;
		}
}

static uint32_t faster_half(const tune_job *j, uint32_t *left, uint32_t n)
{
	sort_by_time(j, left, n);
	uint32_t stay = (n + 1) / 2;
	while (stay < n && j->results[left[stay]].ms <= 1.02 * j->results[left[stay - 1]].ms) stay++;
	return stay;
}

static blk_status rounds(trial *t, candidate *list, uint32_t n, uint32_t *left)
{
	tune_job *j = t->job;
	uint32_t count;
	blk_status status = first_round(t, list, n, left, &count);
	for (uint32_t round = 1; !status && round < ROUNDS && count > 1; round++) {
		uint32_t stay = 0;
		count = faster_half(j, left, count);
		for (uint32_t i = 0; !status && i < count; i++) {
			status = time_one(t, left[i], FIRST << round);
			if (j->results[left[i]].verdict == BLK_TUNE_GOOD) left[stay++] = left[i];
		}
		if (!status) count = stay;
	}
	return status;
}

blk_status tune_time(trial *t, uint32_t *left, uint32_t n)
{
	tune_job *j = t->job;
	candidate *list = calloc(n ? n : 1, sizeof *list);
	if (!list) return error_memory();
	blk_status status = BLK_OK;
	for (uint32_t i = 0; !status && i < n; i++) {
		blk_info info = {0};
		status = t->device->backend->describe(t->device, j->variants[left[i]], &info);
		list[i] = (candidate){left[i], place_of(j, left[i]), least_ms(j, left[i]), info.spill_bytes};
	}
	qsort(list, n, sizeof *list, by_estimate);
	if (!status) status = rounds(t, list, drop_spilling(j, list, n), left);
	free(list);
	return status;
}
