/* The simulator as a device of libblk: buffers with their undefined bits, PTX that is decoded when it is loaded, and
 * launches that share the programs out over the host's cores.
 *
 * A launch is synchronous, as on cpu, and a problem that the simulator finds is what the launch returns.  A failed
 * device_assert is kept for the next call that waits, as on every device. */
#include "device.h"
#include "device/cpu.h"
#include "target/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GAP = 65536, ALIGN = 4096 }; /* bytes on both sides of a buffer that belong to nobody; its alignment */

/* ---- Buffers ---- */

static size_t position(const sim_device *s, uint64_t address)
{
	size_t low = 0, high = s->n;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (s->buffers[middle]->range.base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static sim_buffer *find(const sim_device *s, uint64_t address)
{
	size_t at = position(s, address);
	return at && address - s->buffers[at - 1]->range.base < s->buffers[at - 1]->range.bytes ? s->buffers[at - 1]
												: NULL;
}

static bool enter(sim_device *s, sim_buffer *b)
{
	if (s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 64;
		sim_buffer **more = realloc(s->buffers, room * sizeof(sim_buffer *));
		if (!more) return false;
		s->buffers = more;
		s->room = room;
	}
	size_t at = position(s, b->range.base);
	memmove(&s->buffers[at + 1], &s->buffers[at], (s->n++ - at) * sizeof(sim_buffer *));
	s->buffers[at] = b;
	return true;
}

static blk_status sim_allocate(blk_device *d, size_t bytes, uint64_t *address)
{
	sim_buffer *b = calloc(1, sizeof *b);
	void *memory = NULL;
	if (bytes == 0) bytes = 1;
	uint8_t *shadow = malloc(bytes);
	bool good = b && shadow && bytes < SIZE_MAX - 2 * GAP && posix_memalign(&memory, ALIGN, bytes + 2 * GAP) == 0;
	if (good) {
		memset(shadow, 0xff, bytes);
		b->range = (sim_range){.base = (uint64_t)(uintptr_t)memory + GAP, .bytes = bytes, .shadow = shadow};
		b->memory = memory;
		pthread_mutex_lock(&d->sim->lock);
		good = enter(d->sim, b);
		pthread_mutex_unlock(&d->sim->lock);
	}
	if (!good) {
		free(b);
		free(shadow);
		free(memory);
		return error_set(BLK_ERROR_MEMORY, "out of memory for a buffer of %zu bytes", bytes);
	}
	*address = b->range.base;
	return BLK_OK;
}

static void free_buffer(sim_buffer *b)
{
	free(b->range.shadow);
	free(b->memory);
	free(b);
}

static void sim_release(blk_device *d, uint64_t address)
{
	sim_device *s = d->sim;
	pthread_mutex_lock(&s->lock);
	size_t at = position(s, address); /* one that was handed out: it is the last up to there */
	free_buffer(s->buffers[at - 1]);
	memmove(&s->buffers[at - 1], &s->buffers[at], (s->n-- - at) * sizeof(sim_buffer *));
	pthread_mutex_unlock(&s->lock);
}

/* The host has made these bytes defined. */
static void define(blk_device *d, uint64_t to, size_t bytes)
{
	pthread_mutex_lock(&d->sim->lock);
	sim_buffer *b = find(d->sim, to);
	if (b && !b->range.defined) {
		uint64_t offset = to - b->range.base;
		memset(b->range.shadow + offset, 0, bytes);
		if (offset <= b->written && offset + bytes > b->written) b->written = offset + bytes;
		b->range.defined = b->written == b->range.bytes;
	}
	pthread_mutex_unlock(&d->sim->lock);
}

static blk_status sim_write(blk_device *d, uint64_t to, const void *from, size_t bytes)
{
	memmove((void *)(uintptr_t)to, from, bytes);
	define(d, to, bytes);
	return host_sync(d);
}

static blk_status sim_read(blk_device *d, void *to, uint64_t from, size_t bytes)
{
	memmove(to, (const void *)(uintptr_t)from, bytes);
	return host_sync(d);
}

static blk_status sim_fill(blk_device *d, uint64_t to, uint8_t value, size_t bytes, void *stream)
{
	(void)stream;
	memset((void *)(uintptr_t)to, value, bytes);
	define(d, to, bytes);
	return BLK_OK;
}

static blk_status sim_copy(blk_device *d, uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	(void)stream;
	memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
	pthread_mutex_lock(&d->sim->lock);
	sim_buffer *a = find(d->sim, to), *b = find(d->sim, from);
	bool partly = a && b && !a->range.defined && !b->range.defined;
	if (partly) {
		uint64_t offset = to - a->range.base;
		memcpy(a->range.shadow + offset, b->range.shadow + (from - b->range.base), bytes);
		if (offset < a->written) a->written = offset; /* behind it some may be undefined again */
	}
	bool spreads = a && b && a->range.defined && !b->range.defined;
	if (spreads) { /* from now on it has to be looked at */
		a->range.defined = false;
		a->written = 0;
		memset(a->range.shadow, 0, a->range.bytes);
		memcpy(a->range.shadow + (to - a->range.base), b->range.shadow + (from - b->range.base), bytes);
	}
	pthread_mutex_unlock(&d->sim->lock);
	if (!partly && !spreads) define(d, to, bytes);
	return BLK_OK;
}

/* ---- Code ---- */

static blk_status sim_load(
	blk_device *d, variant *v, unsigned kind, const void *code, size_t bytes, void **linked, size_t *nlinked)
{
	char text[640] = "";
	sim_code *c;
	(void)bytes, (void)linked, (void)nlinked;
	const signature *s = v->sig;
	if (kind != BLKC_EMIT_PTX) return error_set(BLK_ERROR_UNSUPPORTED, "the simulator runs PTX");
	if (!sim_code_parse(code, s->symbol, &c, text, sizeof text))
		return text[0] ? error_set(BLK_ERROR_UNSUPPORTED, "kernel %s: %s", s->kernel, text) : error_memory();
	v->threads = s->threads ? s->threads : 32 * (s->num_warps ? s->num_warps : 4);
	v->shared = s->shared;
	v->module = c;
	c->waits_for_grid |= s->gdc_wait != 0; /* it is launched as such code */
	if (c->shared_bytes + s->shared > d->info.max_shared_per_block)
		return error_set(BLK_ERROR_RESOURCES, "kernel %s needs %u bytes of shared memory; %s has %u", s->kernel,
			v->shared, d->info.name, d->info.max_shared_per_block);
	if (v->threads > 1024)
		return error_set(
			BLK_ERROR_RESOURCES, "kernel %s has %u threads; a program has 1024", s->kernel, v->threads);
	return BLK_OK;
}

static void sim_unload(blk_device *d, variant *v)
{
	(void)d;
	sim_code_free(v->module);
	v->module = NULL;
}

static blk_status sim_describe(blk_device *d, const variant *v, blk_info *info)
{
	const sim_code *c = v->module;
	info->shared_bytes = (uint32_t)c->shared_bytes + v->shared;
	info->programs_per_sm = 1;
	info->occupancy = d->info.max_threads_per_sm ? (float)v->threads / (float)d->info.max_threads_per_sm : 0;
	return BLK_OK;
}

/* ---- Options ---- */

blk_status sim_check(const blk_device *d)
{
	blk_status status = device_check(d);
	if (!status && d->info.kind != BLK_DEVICE_SIM)
		status = error_set(BLK_ERROR_UNSUPPORTED, "only the device \"sim\" has options and counters");
	return status;
}

blk_status blk_sim_configure(blk_device *d, const blk_sim_options *options)
{
	blk_status status = sim_check(d);
	if (status) return status;
	pthread_mutex_lock(&d->sim->lock);
	d->sim->options = options ? *options : (blk_sim_options){0};
	pthread_mutex_unlock(&d->sim->lock);
	return BLK_OK;
}

blk_status blk_sim_count(blk_device *d, blk_sim_counters *out)
{
	blk_status status = sim_check(d);
	if (status) return status;
	if (!out) return error_set(BLK_ERROR_ARGUMENT, "blk_sim_count: no place for the result");
	pthread_mutex_lock(&d->sim->lock);
	*out = d->sim->counters;
	pthread_mutex_unlock(&d->sim->lock);
	return BLK_OK;
}

/* ---- Opening ---- */

static void sim_close(blk_device *d)
{
	sim_device *s = d->sim;
	for (size_t i = 0; i < s->n; i++) free_buffer(s->buffers[i]);
	free(s->buffers);
	sim_lines_drop(s);
	pthread_mutex_destroy(&s->lock);
	free(s);
	host_close(d);
}

static blk_status sim_encode(blk_device *d, const tensor_map_request *request, tensor_map *out)
{
	(void)d;
	memcpy(out, request, sizeof *out);
	return BLK_OK;
}

static const backend sim_backend = {sim_close, host_sync, sim_allocate, sim_release, sim_write, sim_read, sim_fill,
	sim_copy, sim_load, sim_unload, sim_launch_kernel, sim_describe, host_stream_create, host_stream_sync,
	host_stream_free, host_event_create, host_event_record, host_event_elapsed, host_event_free, sim_encode, NULL,
	NULL, NULL, NULL};

blk_status sim_open(blk_device *d, const char *target)
{
	const blk_target *t = target_find(target);
	blk_device_info *info = &d->info;
	const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	if (!t || t->kind != TARGET_NVPTX)
		return error_set(BLK_ERROR_ARGUMENT,
			"the simulator runs no target \"%s\"; blkc --list-targets names those there are", target);
	d->sim = calloc(1, sizeof *d->sim);
	if (!d->sim || pthread_mutex_init(&d->sim->lock, NULL) != 0 || cpu_pool_create(&d->pool) != CPU_OK) {
		free(d->sim);
		return error_memory();
	}
	info->kind = BLK_DEVICE_SIM;
	snprintf(info->name, sizeof info->name, "simulator of %s", t->name);
	snprintf(info->target, sizeof info->target, "%s", t->name);
	cache_key digest = cache_digest("sim", 3); /* its code is no driver's */
	memcpy(&d->identity, digest.bytes, sizeof d->identity);
	info->compute_capability = t->sm;
	info->num_sms = cpu_pool_threads(d->pool);
	info->warp_size = SIM_LANES;
	info->max_threads_per_sm = 32 * t->sm_warps;
	info->max_shared_per_block = t->shared_bytes;
	info->total_memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
	d->backend = &sim_backend;
	return BLK_OK;
}
