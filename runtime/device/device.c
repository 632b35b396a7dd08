/* Devices: from a name to a backend, and the whole life of what is made on one. */
#include "internal.h"
#include "device/nvtx.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

blk_status device_check(const blk_device *d)
{
	if (!d) return error_set(BLK_ERROR_ARGUMENT, "the device is null");
	if (d->magic != HANDLE_DEVICE_MAGIC)
		return error_set(BLK_ERROR_HANDLE, "this is no device, or it has been closed");
	return BLK_OK;
}

/* ---- Names ---- */

/* "cuda:12" to 12; -1: no such name. */
static int cuda_ordinal(const char *name)
{
	if (strcmp(name, "cuda") == 0) return 0;
	if (strncmp(name, "cuda:", 5) != 0) return -1;
	int n = 0;
	const char *p = name + 5;
	if (!*p) return -1;
	for (; *p; p++) {
		if (*p < '0' || *p > '9' || n > 100000) return -1;
		n = 10 * n + (*p - '0');
	}
	return n;
}

/* Whatever the reason that there is no GPU to use, the answer is the CPU; but one that is there and refuses is told. */
static blk_status open_auto(blk_device *d, const struct cuda_api *cuda)
{
	char *before = error_take();
	blk_status status = cuda_open(d, 0, NULL, cuda);
	note_clear();
	if (status && status != BLK_ERROR_NOT_FOUND) note_add("no GPU is used: %s", blk_error());
	error_give(before);
	if (!status) return BLK_OK;
	memset(&d->info, 0, sizeof d->info);
	d->cuda = NULL;
	d->context = NULL;
	return host_open(d, NULL);
}

static blk_status open_backend(blk_device *d, const char *name, void *context, const struct cuda_api *cuda)
{
	if (context) return cuda_open(d, 0, context, cuda);
	if (!name || strcmp(name, "auto") == 0) {
		return open_auto(d, cuda);
	}
	if (strcmp(name, "cpu") == 0) return host_open(d, NULL);
	if (strncmp(name, "cpu:", 4) == 0) return host_open(d, name + 4);
	if (strcmp(name, "sim") == 0) return sim_open(d, "sm_80");
	if (strncmp(name, "sim:", 4) == 0) return sim_open(d, name + 4);
	int ordinal = cuda_ordinal(name);
	if (ordinal < 0)
		return error_set(BLK_ERROR_ARGUMENT,
			"no device is called \"%s\"; there are auto, cuda, cuda:N, cpu, cpu:MODE, sim and sim:TARGET",
			name);
	return cuda_open(d, ordinal, NULL, cuda);
}

static blk_status make(const char *name, void *context, const device_seams *seams, blk_device **out)
{
	blk_device *d = calloc(1, sizeof *d);
	if (!d) return error_memory();
	blk_status status = open_backend(d, name, context, seams ? seams->cuda : NULL);
	if (status) {
		free(d);
		return status;
	}
	pthread_mutex_init(&d->handles.lock, NULL);
	pthread_mutex_init(&d->lock, NULL);
	compiler_locate(&d->compiler, seams ? seams->compiler : NULL);
	cache_open(&d->cache, seams ? seams->files : NULL);
	d->profiler = nvtx_open();
	d->magic = HANDLE_DEVICE_MAGIC;
	*out = d;
	return BLK_OK;
}

blk_status device_open_with(const char *name, const device_seams *seams, blk_device **out)
{
	if (!out) return error_set(BLK_ERROR_ARGUMENT, "blk_device_open: no place for the result");
	*out = NULL;
	return make(name, NULL, seams, out);
}

blk_status blk_device_open(const char *name, blk_device **out)
{
	return device_open_with(name, NULL, out);
}

blk_status device_wrap_with(void *cu_context, const device_seams *seams, blk_device **out)
{
	if (!out) return error_set(BLK_ERROR_ARGUMENT, "blk_device_wrap: no place for the result");
	*out = NULL;
	if (!cu_context) return error_set(BLK_ERROR_ARGUMENT, "blk_device_wrap: the context is null");
	return make(NULL, cu_context, seams, out);
}

blk_status blk_device_wrap(void *cu_context, blk_device **out)
{
	return device_wrap_with(cu_context, NULL, out);
}

/* ---- The end ---- */

void blk_device_close(blk_device *d)
{
	if (!d || d->magic != HANDLE_DEVICE_MAGIC) return;
	d->backend->sync(d); /* a failure changes nothing: all is freed either way */
	handle **live = d->handles.live;
	while (live[HANDLE_MODULE]) blk_module_close((blk_module *)live[HANDLE_MODULE]);
	while (live[HANDLE_EVENT]) blk_event_free((blk_event *)live[HANDLE_EVENT]);
	while (live[HANDLE_STREAM]) blk_stream_free((blk_stream *)live[HANDLE_STREAM]);
	while (live[HANDLE_BUFFER]) blk_buffer_free((blk_buffer *)live[HANDLE_BUFFER]);
	d->magic = HANDLE_FREED;
	d->backend->close(d);
	compiler_unload(&d->compiler);
	cache_close(&d->cache);
	handle_pool_free(&d->handles);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* ---- Facts ---- */

blk_status blk_device_sync(blk_device *d)
{
	blk_status status = device_check(d);
	return status ? status : d->backend->sync(d);
}

blk_status blk_device_query(blk_device *d, blk_device_info *out)
{
	blk_status status = device_check(d);
	if (status) return status;
	if (!out) return error_set(BLK_ERROR_ARGUMENT, "blk_device_query: no place for the result");
	*out = d->info;
	return BLK_OK;
}

const char *blk_device_name(blk_device *d)
{
	return device_check(d) ? "" : d->info.name;
}

uint32_t blk_device_num_sms(blk_device *d)
{
	return device_check(d) ? 0 : d->info.num_sms;
}

void *blk_device_context(blk_device *d)
{
	return device_check(d) ? NULL : d->context;
}

/* ---- Bandwidth ---- */

/* The best of ten copies of `bytes`, in bytes a second; far larger than any cache, so that memory is measured. */
static blk_status measure_copy(blk_device *d, blk_buffer *to, blk_buffer *from, size_t bytes, double *rate)
{
	blk_event *start = NULL, *end = NULL;
	double best = INFINITY;
	blk_status status = blk_buffer_fill(from, 0, 1, bytes);
	if (!status) status = blk_event_create(d, &start);
	if (!status) status = blk_event_create(d, &end);
	for (int i = 0; !status && i < 12; i++) {
		double ms = 0;
		status = blk_event_record(start, NULL);
		if (!status) status = blk_buffer_copy(to, 0, from, 0, bytes);
		if (!status) status = blk_event_record(end, NULL);
		if (!status) status = blk_event_elapsed(start, end, &ms);
		if (!status && i >= 2 && ms > 0 && ms < best) best = ms;
	}
	blk_event_free(start);
	blk_event_free(end);
	if (!status && !isinf(best)) *rate = 2.0 * (double)bytes / (best * 1e-3);
	return status;
}

blk_status blk_device_bandwidth(blk_device *d, double *bytes_per_s)
{
	blk_status status = device_check(d);
	if (status) return status;
	if (!bytes_per_s) return error_set(BLK_ERROR_ARGUMENT, "blk_device_bandwidth: no place for the result");
	*bytes_per_s = 0;
	pthread_mutex_lock(&d->lock);
	double known = d->bandwidth;
	pthread_mutex_unlock(&d->lock);
	if (known == 0) {
		blk_buffer *to = NULL, *from = NULL;
		size_t bytes = (size_t)1 << (d->info.kind == BLK_DEVICE_CUDA ? 29 : 28);
		while (bytes > d->info.total_memory / 8) bytes /= 2;
		status = blk_buffer_create(d, bytes, &to);
		if (!status) status = blk_buffer_create(d, bytes, &from);
		if (!status) status = measure_copy(d, to, from, bytes, &known);
		blk_buffer_free(to);
		blk_buffer_free(from);
		if (status) return status;
		pthread_mutex_lock(&d->lock);
		d->bandwidth = known;
		pthread_mutex_unlock(&d->lock);
	}
	*bytes_per_s = known;
	return BLK_OK;
}
