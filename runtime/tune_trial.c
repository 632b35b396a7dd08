/* Trying configurations: compiled by all cores, run once each and their results compared, then timed (tune_time.c).
 *
 * The buffers that a kernel may write are saved in device memory first, put back before every trial and at the end, so
 * that each trial sees what the launch will see and tuning leaves no trace.  What a reset clause names is zeroed for
 * trials instead; what a scratch clause names is left alone, as what a launch leaves there means nothing. */
#include "support/scalar.h"
#include "tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Buffers ---- */

static blk_status save(trial *t)
{
	const blk_kernel *k = t->job->kernel;
	blk_device *d = t->device;
	size_t most = 0;
	blk_status status = BLK_OK;
	for (uint32_t i = 0; !status && i < k->nparameters; i++) {
		bool named = k->tuner->reset[i] || k->tuner->restore[i];
		if ((!k->sig->parameters[i].written || k->tuner->scratch[i]) && !named) continue;
		if (t->job->args[i].type != BLK_TYPE_BUFFER) {
			if (named)
				return error_set(BLK_ERROR_ARGUMENT,
					"kernel %s cannot be tuned: %s is reset or restored around trials, and a bare "
					"pointer has no known size",
					k->sig->kernel, k->sig->parameters[i].name);
			continue;
		}
		const blk_buffer *b = (const blk_buffer *)(uintptr_t)t->job->args[i].bits;
		trial_buffer *s = &t->buffers[i];
		if (!b->bytes) continue;
		if ((status = d->backend->allocate(d, b->bytes, &s->copy))) break;
		s->buffer = b;
		s->reset = k->tuner->reset[i];
		status = d->backend->copy(d, s->copy, b->address, b->bytes, NULL);
		if (!status && !(s->reference = malloc(b->bytes))) status = error_memory();
		if (b->bytes > most) most = b->bytes;
	}
	if (!status && !(t->got = malloc(most + 1))) status = error_memory();
	return status;
}

/* Two parameters may be one buffer: all is put back before anything is zeroed. */
blk_status trial_put_back(const trial *t, bool for_trial)
{
	blk_device *d = t->device;
	blk_status status = BLK_OK;
	for (uint32_t i = 0; !status && i < t->job->kernel->nparameters; i++) {
		const trial_buffer *s = &t->buffers[i];
		if (s->buffer) status = d->backend->copy(d, s->buffer->address, s->copy, s->buffer->bytes, NULL);
	}
	for (uint32_t i = 0; !status && for_trial && i < t->job->kernel->nparameters; i++) {
		const trial_buffer *s = &t->buffers[i];
		if (s->buffer && s->reset) status = d->backend->fill(d, s->buffer->address, 0, s->buffer->bytes, NULL);
	}
	return status;
}

static void forget(trial *t)
{
	for (uint32_t i = 0; i < t->job->kernel->nparameters; i++) {
		if (t->buffers[i].copy) t->device->backend->release(t->device, t->buffers[i].copy);
		free(t->buffers[i].reference);
	}
	free(t->buffers);
	free(t->got);
}

/* ---- Results ---- */

static double allowed(const tuner *t, scalar s)
{
	if (t->tolerance >= 0) return t->tolerance;
	if (!scalar_is_float(s)) return 0;
	return scalar_bytes(s) == 1 ? 0.1 : scalar_bytes(s) == 2 ? 1e-2 : s == SCALAR_F32 ? 1e-4 : 1e-10;
}

static double element(scalar s, const uint8_t *at, uint64_t *bits)
{
	*bits = 0;
	memcpy(bits, at, scalar_bytes(s));
	return scalar_to_double(s, *bits);
}

static double square_sum(scalar s, const uint8_t *a, size_t bytes)
{
	double sum = 0;
	uint64_t bits;
	for (size_t i = 0; i + scalar_bytes(s) <= bytes; i += scalar_bytes(s)) {
		double u = element(s, a + i, &bits);
		if (isfinite(u)) sum += u * u;
	}
	return sum;
}

/* The same of the differences; elements of equal bits, NaN or not, are equal, and most stretches are. */
static double square_distance(scalar s, const uint8_t *a, const uint8_t *b, size_t bytes)
{
	enum { STRETCH = 64 };
	unsigned width = scalar_bytes(s);
	double sum = 0;
	for (size_t from = 0; from < bytes; from += STRETCH) {
		size_t to = bytes - from < STRETCH ? bytes : from + STRETCH;
		if (memcmp(a + from, b + from, to - from) == 0) continue;
		for (size_t i = from; i + width <= to; i += width) {
			uint64_t x, y;
			double u = element(s, a + i, &x), v = element(s, b + i, &y);
			if (x != y && !(isnan(u) && isnan(v))) sum += (u - v) * (u - v);
		}
	}
	return sum;
}

/* Relative Frobenius distance of what is in t->got from the first configuration's results. */
static double distance(const trial *t, trial_buffer *b, scalar s)
{
	double difference = square_distance(s, b->reference, t->got, b->buffer->bytes);
	if (difference == 0) return 0;
	if (b->square_sum == 0) b->square_sum = square_sum(s, b->reference, b->buffer->bytes);
	return b->square_sum > 0 ? sqrt(difference / b->square_sum) : (double)INFINITY;
}

static char *sentence(const char *format, const char *name, double a, double b)
{
	char text[256];
	snprintf(text, sizeof text, format, name, a, b);
	return strdup(text);
}

/* Compares with the reference, or becomes it. */
static blk_status judge(trial *t, tune_result *r)
{
	const blk_kernel *k = t->job->kernel;
	for (uint32_t i = 0; i < k->nparameters; i++) {
		trial_buffer *s = &t->buffers[i];
		const signature_parameter *p = &k->sig->parameters[i];
		if (!s->buffer || !p->written) continue;
		void *to = t->has_reference ? t->got : s->reference;
		blk_status status = t->device->backend->read(t->device, to, s->buffer->address, s->buffer->bytes);
		if (status) return status;
		if (!t->has_reference) continue;
		double limit = allowed(k->tuner, (scalar)p->element), far = distance(t, s, (scalar)p->element);
		if (!(far <= limit)) {
			r->verdict = BLK_TUNE_WRONG;
			free(r->reason);
			r->reason = sentence("%s differs from the first configuration's by %.3g (allowed %.3g)",
				p->name, far, limit);
			return BLK_OK;
		}
	}
	t->has_reference = true;
	r->verdict = BLK_TUNE_GOOD;
	return BLK_OK;
}

blk_status trial_grid(const tune_job *j, uint32_t i, uint32_t grid[3])
{
	bool empty;
	blk_status status = launch_grid(j->kernel, j->variants[i]->sig, j->bits, j->given, grid, &empty);
	if (!status && empty)
		status = error_set(BLK_ERROR_GRID, "its grid is empty where the first configuration's is not");
	return status;
}

/* What fails on a CUDA device takes the context with it. */
blk_status trial_failed(trial *t, uint32_t i, blk_status why)
{
	tune_job *j = t->job;
	tune_result *r = &j->results[i];
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

/* Whether the device can hold a program of it at all. */
static blk_status can_reside(trial *t, uint32_t i)
{
	const variant *v = t->job->variants[i];
	blk_info info = {0};
	blk_status status = t->device->backend->describe(t->device, v, &info);
	if (!status && info.programs_per_sm == 0)
		status = error_set(BLK_ERROR_RESOURCES,
			"a program of %u threads with %u registers each and %u bytes of shared memory does not fit "
			"the device",
			v->threads, info.registers, info.shared_bytes);
	return status;
}

static blk_status run_once(trial *t, uint32_t i)
{
	tune_job *j = t->job;
	uint32_t grid[3];
	tensor_map maps[SIGNATURE_MAPS];
	blk_status status = trial_grid(j, i, grid);
	if (status) return error_status(BLK_ERROR_RESOURCES);
	if ((status = can_reside(t, i))) return status;
	if (j->variants[i]->maps && tensor_maps_get(t->device, j->variants[i], j->bits, maps))
		return error_status(BLK_ERROR_RESOURCES);
	tune_running(j, i, tune_best_ms(j));
	uint64_t start = tune_now_ns();
	status = launch_variant(t->device, j->variants[i], NULL, grid, j->bits);
	if (!status) status = t->device->backend->sync(t->device);
	j->results[i].whole_ms = (double)(tune_now_ns() - start) * 1e-6;
	tune_running(j, TUNE_NONE, 0);
	return status;
}

/* One run, looked at.  An error: the device can do no more. */
static blk_status check_one(trial *t, uint32_t i)
{
	tune_result *r = &t->job->results[i], mine = {0};
	blk_status status = trial_put_back(t, true);
	if (status) return status;
	if ((status = run_once(t, i))) return trial_failed(t, i, status);
	bool known = r->verdict == BLK_TUNE_GOOD; /* by the record; run again to compare with */
	status = judge(t, known ? &mine : r);
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
	blk_status status = left ? save(t) : error_memory();
	if (!status) status = check_all(t, wanted, left, &fresh);
	if (!status) status = tune_time(t, left, fresh);
	char *text = status ? error_take() : NULL;
	blk_status after = trial_put_back(t, false);
	if (status && !text) /* there was no memory to say it with */
		error_set(status, "%s", blk_status_text(status));
	else if (status)
		error_give(text);
	else if (!after)
		after = t->device->backend->sync(t->device);
	/* A good one without a time was not compared to the end. */
	for (uint32_t i = 0; i < n; i++)
		if (j->results[i].verdict == BLK_TUNE_GOOD && j->results[i].ms <= 0)
			j->results[i].verdict = BLK_TUNE_UNKNOWN;
	free(left);
	return status ? status : after;
}

blk_status tune_trials(tune_job *j)
{
	blk_device *d = j->kernel->head.device;
	uint32_t n = j->kernel->sig->nconfigurations, first = n;
	bool *wanted = calloc(n, sizeof *wanted);
	trial t = {.job = j, .device = d, .buffers = calloc(j->kernel->nparameters + 1, sizeof *t.buffers)};
	blk_status status = wanted && t.buffers ? d->backend->sync(d) : error_memory();
	for (uint32_t i = 0; !status && i < n; i++) {
		bool unknown = j->results[i].verdict == BLK_TUNE_UNKNOWN;
		if (first == n && (unknown || j->results[i].verdict == BLK_TUNE_GOOD)) first = i;
		wanted[i] = unknown || i == first;
		j->timed += unknown;
		j->total += unknown ? 4 : 0; /* compiled, checked, timed twice: a guess, as losers drop out */
	}
	if (!status) status = tune_compile_all(j, wanted);
	if (!status) status = try_all(&t, wanted);
	if (j->progress) j->progress(j->context, j->total, j->total, tune_best_ms(j));
	if (t.buffers) forget(&t);
	free(wanted);
	return status;
}
