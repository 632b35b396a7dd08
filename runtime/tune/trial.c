/* Trying configurations: compiled by all cores, run once each and their results compared (tune/results.c), then timed
 * (tune/time.c).  All of it happens on copies of what a trial may write (tune/memory.c), so tuning leaves no trace. */
#include "tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

blk_status trial_grid(const tune_job *j, uint32_t i, uint32_t grid[3])
{
	bool empty;
	blk_status status = launch_grid(j->kernel, j->variants[i]->sig, j->bits, j->given, grid, &empty);
	if (!status && empty)
		status = error_set(BLK_ERROR_GRID, "its grid is empty where the first configuration's is not");
	return status;
}

/* Memory, or what else the system has none of, may be there another time.  What a CUDA driver calls an error may be the
 * code's fault. */
static bool may_pass(const trial *t, blk_status why)
{
	return why == BLK_ERROR_MEMORY || (why == BLK_ERROR_DRIVER && t->device->info.kind != BLK_DEVICE_CUDA);
}

/* No verdict, unless there was one with a time. */
static void put_off(tune_result *r)
{
	char *why = error_take();
	if (r->ms > 0) {
		free(why);
		return;
	}
	free(r->reason);
	r->reason = why;
	r->verdict = BLK_TUNE_UNKNOWN;
}

/* What fails on a CUDA device takes the context with it. */
blk_status trial_failed(trial *t, uint32_t i, blk_status why)
{
	tune_job *j = t->job;
	tune_result *r = &j->results[i];
	if (may_pass(t, why)) {
		put_off(r);
		return BLK_OK;
	}
	free(r->reason);
	r->verdict = why == BLK_ERROR_RESOURCES ? BLK_TUNE_RESOURCES : BLK_TUNE_FAILED;
	r->ms = 0;
	r->reason = error_take();
	tune_learnt(j, i);
	if (why == BLK_ERROR_RESOURCES || t->device->info.kind != BLK_DEVICE_CUDA) return BLK_OK;
	j->poisoned = true;
	return error_set(why, "while kernel %s was tuned, configuration %s failed: %s", j->kernel->sig->kernel,
		j->kernel->sig->configurations[i], r->reason ? r->reason : "");
}

blk_status trial_can_reside(blk_device *d, const variant *v)
{
	blk_info info = {0};
	blk_status status = d->backend->describe(d, v, &info);
	if (!status && info.programs_per_sm == 0)
		status = error_set(BLK_ERROR_RESOURCES,
			"a program of %u threads with %u registers each and %u bytes of shared memory does not fit "
			"the device",
			v->threads, info.registers, info.shared_bytes);
	return status;
}

void *trial_stream(trial *t)
{
	return t->device->info.kind == BLK_DEVICE_CUDA ? NULL : (void *)&t->failure;
}

blk_status trial_wait(trial *t)
{
	if (t->device->info.kind == BLK_DEVICE_CUDA) return t->device->backend->sync(t->device);
	return host_asserted(&t->failure);
}

blk_status trial_read(const trial *t, void *to, uint64_t from, size_t bytes)
{
	blk_status status = t->device->backend->read(t->device, to, from, bytes);
	if (status != BLK_ERROR_ASSERT || t->device->info.kind == BLK_DEVICE_CUDA) return status;
	char *text = error_take(); /* the bytes are there */
	if (!text) return error_memory();
	host_assert_failed(&t->device->failure, text);
	return BLK_OK;
}

static blk_status run_once(trial *t, uint32_t i)
{
	tune_job *j = t->job;
	uint32_t grid[3];
	tensor_map maps[SIGNATURE_MAPS];
	blk_status status = trial_grid(j, i, grid);
	if (status) return error_status(BLK_ERROR_RESOURCES);
	if ((status = trial_can_reside(t->device, j->variants[i]))) return status;
	if (j->variants[i]->maps && tensor_maps_get(t->device, j->variants[i], t->bits, maps))
		return error_status(BLK_ERROR_RESOURCES);
	tune_running(j, i, tune_best_ms(j));
	uint64_t start = tune_now_ns();
	status = launch_variant(t->device, j->variants[i], trial_stream(t), grid, t->bits);
	if (!status) status = trial_wait(t);
	j->results[i].whole_ms = (double)(tune_now_ns() - start) * 1e-6;
	tune_running(j, TUNE_NONE, 0);
	return status;
}

/* One run, looked at.  An error: the device can do no more. */
static blk_status check_one(trial *t, uint32_t i)
{
	tune_result *r = &t->job->results[i], mine = {0};
	blk_status status = trial_refresh(t);
	if (status) return status;
	if ((status = run_once(t, i))) return trial_failed(t, i, status);
	bool known = r->verdict == BLK_TUNE_GOOD; /* by the record; run again to compare with */
	changes_find(t);
	status = trial_judge(t, known ? &mine : r);
	free(mine.reason);
	r->checked = r->verdict == BLK_TUNE_GOOD;
	if (!status && !known) tune_learnt(t->job, i);
	return status;
}

/* ---- All of them ---- */

/* Those that compute what the first one does, unknown ones only: `left` gets their numbers. */
static blk_status check_all(trial *t, const bool *wanted, uint32_t *left, uint32_t *fresh)
{
	tune_job *j = t->job;
	blk_status status = BLK_OK;
	for (uint32_t i = 0; !status && i < j->kernel->sig->nconfigurations; i++) {
		tune_result *r = &j->results[i];
		bool known = r->verdict == BLK_TUNE_GOOD;
		if (!wanted[i] || !j->variants[i] || (known && t->has_reference)) continue;
		if (r->checked && t->has_reference)
			r->verdict = BLK_TUNE_GOOD;
		else
			status = check_one(t, i);
		if (!known && r->verdict == BLK_TUNE_GOOD) left[(*fresh)++] = i;
		tune_step(j);
	}
	return status;
}

static blk_status try_all(trial *t, const bool *wanted)
{
	tune_job *j = t->job;
	uint32_t n = j->kernel->sig->nconfigurations, fresh = 0;
	uint32_t *left = calloc(n, sizeof *left);
	blk_status status = left ? check_all(t, wanted, left, &fresh) : error_memory();
	if (!status) status = tune_time(t, left, fresh);
	/* A good one without a time was not compared to the end. */
	for (uint32_t i = 0; i < n; i++)
		if (j->results[i].verdict == BLK_TUNE_GOOD && j->results[i].ms <= 0)
			j->results[i].verdict = BLK_TUNE_UNKNOWN;
	free(left);
	return status;
}

/* What its code says of a configuration before it is launched, where others stand in line for its place: it does not
 * fit, or needs more registers than there are while another of them does not. */
static blk_status judge_code(trial *t, const bool *compiled)
{
	tune_job *j = t->job;
	uint32_t n = j->kernel->sig->nconfigurations, least = UINT32_MAX;
	blk_status status = BLK_OK;
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; j->ranking && !status && i < n; i++) {
			blk_info info = {0};
			tune_result *r = &j->results[i];
			char text[160] = "";
			if (!compiled[i] || !j->variants[i] || r->verdict != BLK_TUNE_UNKNOWN) continue;
			status = t->device->backend->describe(t->device, j->variants[i], &info);
			if (!round && info.programs_per_sm && info.spill_bytes < least) least = info.spill_bytes;
			if (!round || status) continue;
			if (info.programs_per_sm == 0)
				snprintf(text, sizeof text, "a program of it does not fit the device");
			else if (info.spill_bytes && !least)
				snprintf(text, sizeof text, "it spills %u bytes a thread", info.spill_bytes);
			if (!text[0]) continue;
			free(r->reason);
			r->reason = strdup(text);
			r->verdict = BLK_TUNE_RESOURCES;
			tune_learnt(j, i);
		}
	return status;
}

/* Compiles the field, which grows as some of it turns out to be of no use. */
static blk_status compile_field(trial *t, bool *field, bool *compiled)
{
	tune_job *j = t->job;
	uint32_t n = j->kernel->sig->nconfigurations, more = 1;
	blk_status status = BLK_OK;
	bool *wanted = calloc(n, sizeof *wanted);
	if (!wanted) return error_memory();
	while (more && !status) {
		more = 0;
		search_field(j, field);
		for (uint32_t i = 0; i < n; i++) {
			wanted[i] = field[i] && !compiled[i] && j->results[i].verdict == BLK_TUNE_UNKNOWN;
			compiled[i] = compiled[i] || wanted[i];
			more += wanted[i];
		}
		j->timed += more;
		j->total += 4 * more; /* compiled, checked, timed twice: a guess, as losers drop out */
		if (more) status = tune_compile_all(j, wanted);
		if (more && !status) status = judge_code(t, compiled);
	}
	free(wanted);
	return status;
}

/* Unknown ones, and one that is known to be good to compare them with. */
static blk_status choose_wanted(tune_job *j, const bool *compiled, bool *wanted)
{
	uint32_t n = j->kernel->sig->nconfigurations, first = n;
	for (uint32_t i = 0; i < n; i++) {
		wanted[i] = compiled[i] && j->results[i].verdict == BLK_TUNE_UNKNOWN;
		if (first == n && (wanted[i] || j->results[i].verdict == BLK_TUNE_GOOD)) first = i;
	}
	if (first == n || wanted[first]) return BLK_OK;
	wanted[first] = true;
	return tune_compile_all(j, wanted);
}

/* Copies are made when it is known what each of them writes. */
static blk_status try_field(trial *t, bool *field, bool *compiled)
{
	blk_status status = trial_memory_known(t);
	if (!status) status = compile_field(t, field, compiled);
	if (!status) status = choose_wanted(t->job, compiled, field);
	if (!status) status = trial_memory_make(t);
	return status ? status : try_all(t, field);
}

blk_status tune_trials(tune_job *j)
{
	trial t = {.job = j, .device = j->kernel->head.device};
	uint32_t n = j->kernel->sig->nconfigurations;
	bool *field = calloc(n, sizeof *field), *compiled = calloc(n, sizeof *compiled);
	blk_status status = field && compiled ? t.device->backend->sync(t.device) : error_memory();
	if (!status) status = try_field(&t, field, compiled);
	free(field);
	free(compiled);
	if (j->untried) j->timed = 0;
	if (j->progress) j->progress(j->context, j->total, j->total, tune_best_ms(j));
	char *why = status ? error_take() : NULL;
	trial_memory_free(&t); /* of a lost context, which may fail */
	if (status && !why) return error_set(status, "%s", blk_status_text(status));
	if (status) error_give(why);
	return status;
}
