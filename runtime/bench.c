/* blk_bench: the time of one launch on the device, as a set of runs and its quantiles.
 *
 * Each run is bracketed by two events and preceded by a write of a large buffer, so that the kernel finds none of its
 * data in the L2 cache: what a kernel meets in a program whose working set is larger.  The writes lie outside the
 * events.  Where a device can drop single lines from its cache (a processor can), the kernel's buffers are, if that is
 * less work. */
#include "internal.h"

#include <stdlib.h>
#include <time.h>

typedef struct bench {
	blk_device *device;
	blk_status (*call)(void *context); /* one run */
	void *context;
	const memory_span *touched; /* all that the run reads and writes; null: not known */
	size_t ntouched;
	blk_stream *stream;
	void *on; /* the backend's */
	blk_buffer *flush;
	bool evicts; /* what is touched, in place of `flush` */
} bench;

/* What is run: a launch as users make it, or one variant, whatever the launch would choose. */
typedef struct kernel_run {
	blk_kernel *kernel;
	blk_stream *stream;
	const blk_grid *grid;
	const blk_arg *args;
	size_t n;
} kernel_run;

typedef struct variant_run {
	blk_device *device;
	const variant *variant;
	void *on;
	const uint32_t *grid;
	uint64_t *bits;
} variant_run;

static blk_status run_kernel(void *context)
{
	const kernel_run *r = context;
	return blk_launch(r->kernel, r->stream, r->grid, r->args, r->n);
}

static blk_status run_variant(void *context)
{
	const variant_run *r = context;
	return launch_variant(r->device, r->variant, r->on, r->grid, r->bits);
}

static size_t flush_bytes(const blk_device *d)
{
	size_t bytes = 2 * (size_t)d->info.l2_bytes, least = (size_t)256 << 20;
	if (d->info.kind == BLK_DEVICE_CUDA && bytes < least) bytes = least;
	if (bytes == 0) bytes = (size_t)32 << 20;
	while (bytes > d->info.total_memory / 16) bytes /= 2;
	return bytes;
}

/* The device's own buffer for this, twice the L2 and at least 256 MiB on a GPU; made once. */
static blk_status flush_buffer(blk_device *d, blk_buffer **out)
{
	blk_status status = BLK_OK;
	pthread_mutex_lock(&d->lock);
	if (!handle_is(d->flush, HANDLE_BUFFER)) status = blk_buffer_create(d, flush_bytes(d), &d->flush);
	*out = d->flush;
	pthread_mutex_unlock(&d->lock);
	return status;
}

/* Decides how the cache is emptied before each run. */
static blk_status prepare_flush(bench *b)
{
	uint64_t known = 0;
	for (size_t i = 0; b->touched && i < b->ntouched; i++) known += b->touched[i].bytes;
	b->evicts = b->device->backend->evict && b->touched && known <= flush_bytes(b->device);
	return b->evicts ? BLK_OK : flush_buffer(b->device, &b->flush);
}

static void evict(const bench *b)
{
	for (size_t i = 0; i < b->ntouched; i++) b->device->backend->evict(b->touched[i].base, b->touched[i].bytes);
}

static blk_status one_run(const bench *b, blk_event *start, blk_event *end)
{
	blk_device *d = b->device;
	blk_status status = BLK_OK;
	if (b->evicts) evict(b);
	if (b->flush) status = d->backend->fill(d, b->flush->address, 0, b->flush->bytes, b->on);
	if (!status) status = blk_event_record(start, b->stream);
	if (!status) status = b->call(b->context);
	if (!status) status = blk_event_record(end, b->stream);
	return status;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double quantile(const double *sorted, uint32_t n, double q)
{
	double at = q * (n - 1);
	uint32_t low = (uint32_t)at, high = low + 1 < n ? low + 1 : low;
	return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

void bench_summarise(double *ms, uint32_t n, blk_timing *out)
{
	double sum = 0;
	qsort(ms, n, sizeof *ms, ascending);
	for (uint32_t i = 0; i < n; i++) sum += ms[i];
	*out = (blk_timing){.runs = n,
		.median_ms = quantile(ms, n, 0.5),
		.mean_ms = sum / n,
		.min_ms = ms[0],
		.max_ms = ms[n - 1],
		.p20_ms = quantile(ms, n, 0.2),
		.p80_ms = quantile(ms, n, 0.8)};
}

static void free_events(blk_event **events, uint32_t n)
{
	for (uint32_t i = 0; events && i < n; i++) blk_event_free(events[i]);
	free(events);
}

/* Queues `n` runs, then waits for them all: the host is never in the way of a run. */
static blk_status timed_runs(const bench *b, uint32_t n, blk_timing *out)
{
	blk_event **events = calloc(2 * (size_t)n, sizeof *events);
	double *ms = calloc(n, sizeof *ms);
	blk_status status = events && ms ? BLK_OK : error_memory();
	for (uint32_t i = 0; !status && i < 2 * n; i++) status = blk_event_create(b->device, &events[i]);
	for (uint32_t i = 0; !status && i < n; i++) status = one_run(b, events[2 * i], events[2 * i + 1]);
	for (uint32_t i = 0; !status && i < n; i++)
		status = blk_event_elapsed(events[2 * i], events[2 * i + 1], &ms[i]);
	if (!status) bench_summarise(ms, n, out);
	free_events(events, 2 * n);
	free(ms);
	return status;
}

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* How many runs fill `wanted` milliseconds of kernel time, and at most twenty times that of everybody's: where the
 * flush is much slower than the kernel (a host with a large cache), it must not decide how long a user waits. */
static uint32_t runs_for(double wanted, double one, double whole, uint32_t least, uint32_t most)
{
	double n = one > 0 ? wanted / one : most;
	if (whole > 0 && n > 20 * wanted / whole) n = 20 * wanted / whole;
	return n < least ? least : n > most ? most : (uint32_t)n;
}

/* The parts of `b` that say what is run are set. */
static blk_status run_bench(bench *b, const blk_bench_options *given, blk_timing *out)
{
	blk_bench_options o = given ? *given : (blk_bench_options){0};
	blk_device *d = b->device;
	if (!out) return error_set(BLK_ERROR_ARGUMENT, "blk_bench: no place for the result");
	if (o.warmup_ms <= 0) o.warmup_ms = 25;
	if (o.measure_ms <= 0) o.measure_ms = 100;
	if (!o.min_runs) o.min_runs = 5;
	if (!o.max_runs) o.max_runs = 1000;
	if (o.max_runs > 100000) o.max_runs = 100000;
	if (o.min_runs > o.max_runs) o.min_runs = o.max_runs;
	b->stream = o.stream;
	blk_status status = stream_resolve(d, o.stream, &b->on);
	/* The first launch compiles and checks everything. */
	if (!status) status = b->call(b->context);
	if (!status) status = d->backend->stream_sync(d, b->on);
	if (!status && !o.keep_cache) status = prepare_flush(b);
	blk_timing t = {0};
	if (!status) status = timed_runs(b, 1, &t); /* touches the flush buffer for the first time */
	double whole = now_ms();
	if (!status) status = timed_runs(b, 3, &t);
	whole = (now_ms() - whole) / 3;
	if (!status) status = timed_runs(b, runs_for(o.warmup_ms, t.median_ms, whole, 1, o.max_runs), &t);
	if (!status) status = timed_runs(b, runs_for(o.measure_ms, t.median_ms, whole, o.min_runs, o.max_runs), &t);
	if (!status) *out = t;
	return status;
}

blk_status blk_bench_call(blk_device *d, blk_status (*call)(void *context), void *context,
	const blk_bench_options *given, blk_timing *out)
{
	bench b = {.device = d, .call = call, .context = context};
	blk_status status = device_check(d);
	if (!status && !call) status = error_set(BLK_ERROR_ARGUMENT, "blk_bench_call: no call");
	return status ? status : run_bench(&b, given, out);
}

/* False: there is memory of unknown size. */
static bool find_touched(blk_kernel *k, const blk_arg *args, memory_span *out, size_t *n)
{
	*n = 0;
	for (uint32_t i = 0; i < k->nparameters; i++)
		if (k->parameters[i].is_pointer && !memory_behind(k->head.device, &args[i], &out[(*n)++])) return false;
	return true;
}

blk_status blk_bench(blk_kernel *k, const blk_grid *grid, const blk_arg *args, size_t n, const blk_bench_options *given,
	blk_timing *out)
{
	kernel_run r = {k, given ? given->stream : NULL, grid, args, n};
	uint64_t bits[SIGNATURE_PARAMETERS], key;
	memory_span touched[SIGNATURE_PARAMETERS];
	blk_status status = kernel_check(k);
	if (!status) status = launch_arguments(k, args, n, bits, &key);
	if (status) return status;
	bench b = {.device = k->head.device, .call = run_kernel, .context = &r};
	if (find_touched(k, args, touched, &b.ntouched)) b.touched = touched;
	return run_bench(&b, given, out);
}

blk_status bench_variant(blk_device *d, const variant *v, void *on, const uint32_t grid[3], uint64_t *bits,
	const memory_span *touched, uint32_t ntouched, uint32_t n, double *whole_ms, blk_timing *out)
{
	variant_run r = {d, v, on, grid, bits};
	bench b = {.device = d, .call = run_variant, .context = &r, .touched = touched, .ntouched = ntouched};
	blk_status status = prepare_flush(&b);
	double start = now_ms();
	if (!status) status = timed_runs(&b, n, out);
	*whole_ms = (now_ms() - start) / n;
	return status;
}
