/* A kernel's configurations compiled, by all cores at once, and kept as long as the kernel.
 *
 * In: which configurations are wanted.  Out: their variants, or a verdict where one cannot be had.  Code that was made
 * before, for a launch or another tuning, is not made again. */
#include "tune.h"

#include <stdlib.h>

static tune_code *find_code(const tuner *t, uint64_t promises, uint32_t configuration)
{
	tune_code *c = t->code;
	while (c && (c->promises != promises || c->configuration != configuration)) c = c->next;
	return c;
}

static blk_status build(blk_kernel *k, uint64_t promises, uint32_t configuration, variant **out)
{
	variant *v = calloc(1, sizeof *v);
	if (!v) return error_memory();
	v->key = promises;
	blk_status status = specialise_build(k, promises, k->sig->configurations[configuration], v);
	if (status)
		variant_free(k->head.device, v);
	else
		*out = v;
	return status;
}

static blk_status keep(tuner *t, uint64_t promises, uint32_t configuration, variant *v)
{
	tune_code *c = calloc(1, sizeof *c);
	if (!c) return error_memory();
	*c = (tune_code){t->code, promises, configuration, v};
	t->code = c;
	return BLK_OK;
}

/* Under the tuner's lock. */
blk_status tune_compiled(blk_kernel *k, uint64_t promises, uint32_t configuration, variant **out)
{
	const tune_code *c = find_code(k->tuner, promises, configuration);
	if (c) {
		*out = c->v;
		return BLK_OK;
	}
	blk_status status = build(k, promises, configuration, out);
	if (!status && (status = keep(k->tuner, promises, configuration, *out))) variant_free(k->head.device, *out);
	return status;
}

typedef struct compiling {
	tune_job *job;
	const bool *wanted;
	pthread_mutex_t lock;
	uint32_t next;
} compiling;

bool tune_lasting(blk_status status)
{
	return status == BLK_ERROR_COMPILE || status == BLK_ERROR_RESOURCES || status == BLK_ERROR_UNSUPPORTED;
}

static void failed_build(tune_result *r, blk_status status)
{
	free(r->reason);
	r->reason = error_take();
	if (tune_lasting(status)) r->verdict = status == BLK_ERROR_RESOURCES ? BLK_TUNE_RESOURCES : BLK_TUNE_COMPILE;
}

static void *compile_some(void *argument)
{
	compiling *c = argument;
	tune_job *j = c->job;
	pthread_mutex_lock(&c->lock);
	while (c->next < j->kernel->sig->nconfigurations) {
		uint32_t i = c->next++;
		if (!c->wanted[i] || j->variants[i]) continue;
		pthread_mutex_unlock(&c->lock);
		variant *v = NULL;
		blk_status status = build(j->kernel, j->promises, i, &v);
		pthread_mutex_lock(&c->lock);
		if (status) failed_build(&j->results[i], status);
		j->variants[i] = v;
		tune_step(j);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

blk_status tune_compile_all(tune_job *j, const bool *wanted)
{
	uint32_t n = j->kernel->sig->nconfigurations, missing = 0;
	tuner *t = j->kernel->tuner;
	for (uint32_t i = 0; i < n; i++) {
		const tune_code *c = find_code(t, j->promises, i);
		j->variants[i] = c ? c->v : NULL;
		missing += wanted[i] && !c;
	}
	compiling c = {.job = j, .wanted = wanted};
	pthread_mutex_init(&c.lock, NULL);
	tune_on_cores(missing, compile_some, &c);
	pthread_mutex_destroy(&c.lock);
	blk_status status = BLK_OK;
	for (uint32_t i = 0; i < n; i++) {
		if (!j->variants[i] || find_code(t, j->promises, i)) continue;
		if (keep(t, j->promises, i, j->variants[i])) {
			variant_free(j->kernel->head.device, j->variants[i]);
			j->variants[i] = NULL;
			status = BLK_ERROR_MEMORY;
		}
	}
	return status;
}
