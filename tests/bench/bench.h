/* What the benchmark programs share: fresh random inputs, poisoned outputs, the comparison of every element with double
 * precision, and the rows: printed as a table, written as CSV and drawn.
 *
 *   usage: PROGRAM [--device=auto|cpu|cuda:N] [--quick] [--out=FOLDER] [--seed=N]
 * --quick: small sizes, for a test.  --out: FOLDER/PROGRAM.csv and .svg.  Exit status 1 where a result was wrong.
 *
 * A case: bench_begin, for each configuration bench_try, bench_end.  bench_try launches on poisoned outputs, checks
 * them, and only then times; the fastest right configuration is the row. */
#ifndef BLK_BENCH_H
#define BLK_BENCH_H

#include "examples/example.h"
#include "runtime/run/plot.h"
#include "support/scalar.h"

#include <pthread.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

enum { BENCH_ROWS = 256, BENCH_CHECKS = 4, BENCH_THREADS = 64 };

/* A buffer and what the host knows of it: an input's values, or an output as read back. */
typedef struct bench_array {
	scalar type;
	size_t n;
	void *host;
	blk_buffer *buffer;
} bench_array;

/* Elements first .. first + count of what an output must hold; `chunk` is a check's unit, a row mostly. */
typedef void bench_want(const void *context, size_t first, size_t count, double *want);
typedef struct bench_check {
	bench_array *output;
	size_t chunk;
	bench_want *want;
	double tolerance; /* relative to the largest magnitude */
} bench_check;

typedef struct bench_row {
	char work[64], size[48], configuration[96];
	double elements, bytes, error;
	double flops; /* of a run; 0: bytes are what counts */
	blk_timing time;
} bench_row;

typedef struct bench {
	blk_device *device;
	const char *program, *name, *out;
	bool quick;
	uint64_t seed;
	double ceiling; /* bytes a second of a copy */
	bench_row rows[BENCH_ROWS], now;
	size_t n;
	int passed, failed;
} bench;

static inline void *bench_alloc(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);
	if (p) return p;
	fprintf(stderr, "out of memory\n");
	exit(1);
}

/* ---- Threads of the host ---- */

typedef struct bench_part {
	void (*work)(void *context, size_t from, size_t to);
	void *context;
	size_t from, to;
} bench_part;

static inline void *bench_run_part(void *p)
{
	bench_part *part = p;
	part->work(part->context, part->from, part->to);
	return NULL;
}

/* work(context, from, to) over 0 .. n, in parts on all processors. */
static inline void bench_parallel(size_t n, void (*work)(void *, size_t, size_t), void *context)
{
	pthread_t threads[BENCH_THREADS];
	bench_part parts[BENCH_THREADS];
	bool started[BENCH_THREADS];
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t k = processors < 1 ? 1 : processors > BENCH_THREADS ? BENCH_THREADS : (size_t)processors;
	for (size_t i = 0; i < k; i++) {
		parts[i] = (bench_part){work, context, n / k * i + (n % k) * i / k, 0};
		parts[i].to = n / k * (i + 1) + (n % k) * (i + 1) / k;
		started[i] = i + 1 < k && pthread_create(&threads[i], NULL, bench_run_part, &parts[i]) == 0;
		if (!started[i]) bench_run_part(&parts[i]);
	}
	for (size_t i = 0; i < k; i++)
		if (started[i]) pthread_join(threads[i], NULL);
}

/* ---- Arrays ---- */

static inline double bench_at(const bench_array *a, size_t i)
{
	switch (scalar_bits(a->type)) {
	case 16: return scalar_to_double(a->type, ((const uint16_t *)a->host)[i]);
	case 32:
		if (a->type == SCALAR_F32) return ((const float *)a->host)[i];
		return a->type == SCALAR_U32 ? (double)((const uint32_t *)a->host)[i]
					     : (double)((const int32_t *)a->host)[i];
	default: return scalar_to_double(a->type, ((const uint64_t *)a->host)[i]);
	}
}

static inline size_t bench_bytes(const bench_array *a, size_t n)
{
	return n * scalar_bits(a->type) / 8;
}

typedef struct bench_fill_job {
	bench_array *array;
	double scale, shift;
	uint64_t seed;
} bench_fill_job;

static inline void bench_fill_part(void *context, size_t from, size_t to)
{
	bench_fill_job *j = context;
	for (size_t i = from; i < to; i++) {
		/* The sum of four 16-bit numbers: near enough to normal, one step of the generator an element. */
		uint64_t state = j->seed + i * 0x9e3779b97f4a7c15u, r = example_random(&state);
		double s = (double)((r & 0xffff) + (r >> 16 & 0xffff) + (r >> 32 & 0xffff) + (r >> 48));
		double v = (s / 65535 - 2) * 1.7320508 * j->scale + j->shift;
		if (j->array->type == SCALAR_F32)
			((float *)j->array->host)[i] = (float)v;
		else if (scalar_bits(j->array->type) == 16)
			((uint16_t *)j->array->host)[i] = (uint16_t)scalar_from_double(j->array->type, v);
		else
			((uint32_t *)j->array->host)[i] = (uint32_t)(r % (uint64_t)j->scale);
	}
}

/* Normal numbers times scale plus shift; 32-bit integers below scale. */
static inline bench_array bench_input(bench *b, scalar type, size_t n, double scale, double shift)
{
	bench_array a = {.type = type, .n = n};
	a.host = bench_alloc(bench_bytes(&a, n));
	bench_fill_job j = {&a, scale, shift, example_random(&b->seed)};
	bench_parallel(n, bench_fill_part, &j);
	TRY(blk_buffer_create(b->device, bench_bytes(&a, n), &a.buffer));
	TRY(blk_buffer_write(a.buffer, 0, a.host, bench_bytes(&a, n)));
	return a;
}

/* Room for n elements and a guard; bench_try poisons it. */
static inline bench_array bench_output(bench *b, scalar type, size_t n)
{
	bench_array a = {.type = type, .n = n};
	a.host = bench_alloc(bench_bytes(&a, n + EXAMPLE_GUARD));
	TRY(blk_buffer_create(b->device, bench_bytes(&a, n + EXAMPLE_GUARD), &a.buffer));
	TRY(blk_buffer_fill(a.buffer, 0, 0xff, bench_bytes(&a, n + EXAMPLE_GUARD)));
	return a;
}

static inline void bench_free(bench_array *a)
{
	blk_buffer_free(a->buffer);
	free(a->host);
	*a = (bench_array){0};
}

/* ---- Checks ---- */

typedef struct bench_check_job {
	const bench_check *check;
	const void *context;
	pthread_mutex_t lock;
	double worst, largest;
	bool nan;
} bench_check_job;

static inline void bench_check_part(void *context, size_t from, size_t to)
{
	bench_check_job *j = context;
	const bench_array *a = j->check->output;
	double worst = 0, largest = 0, *want = bench_alloc(j->check->chunk * sizeof *want);
	bool nan = false;
	for (size_t c = from; c < to; c++) {
		size_t first = c * j->check->chunk, count = a->n - first;
		if (count > j->check->chunk) count = j->check->chunk;
		j->check->want(j->context, first, count, want);
		for (size_t i = 0; i < count; i++) {
			double error = fabs(bench_at(a, first + i) - want[i]);
			if (isnan(error)) nan = true;
			if (error > worst) worst = error;
			if (fabs(want[i]) > largest) largest = fabs(want[i]);
		}
	}
	free(want);
	pthread_mutex_lock(&j->lock);
	if (worst > j->worst) j->worst = worst;
	if (largest > j->largest) j->largest = largest;
	j->nan |= nan;
	pthread_mutex_unlock(&j->lock);
}

/* Every element and the guard. */
static inline bool bench_right(bench *b, const bench_check *c, const void *context)
{
	bench_array *a = c->output;
	bench_check_job j = {.check = c, .context = context};
	size_t bytes = bench_bytes(a, a->n), guard = bench_bytes(a, EXAMPLE_GUARD);
	TRY(blk_buffer_read(a->buffer, 0, a->host, bytes + guard));
	pthread_mutex_init(&j.lock, NULL);
	bench_parallel((a->n + c->chunk - 1) / c->chunk, bench_check_part, &j);
	pthread_mutex_destroy(&j.lock);
	double error = j.largest > 0 ? j.worst / j.largest : j.worst;
	bool good = !j.nan && error <= c->tolerance;
	for (size_t i = bytes; i < bytes + guard; i++) good = good && ((unsigned char *)a->host)[i] == 0xff;
	if (error > b->now.error) b->now.error = error;
	if (!good)
		printf("%s, %s: WRONG, largest error %.3g%s\n", b->now.work, b->now.size, error,
			j.nan ? ", unwritten elements" : "");
	return good;
}

/* ---- Rows ---- */

/* `bytes`: what the work must move: each input read once, each output written once. */
static inline void bench_begin(bench *b, const char *work, double elements, double bytes, const char *size, ...)
{
	va_list v;
	b->now = (bench_row){.elements = elements, .bytes = bytes};
	snprintf(b->now.work, sizeof b->now.work, "%s", work);
	va_start(v, size);
	vsnprintf(b->now.size, sizeof b->now.size, size, v);
	va_end(v);
}

/* What one run launches.  It stands first in a case's job: the job's address is its own, and the checks get it too. */
typedef struct bench_launch {
	blk_kernel *kernel;
	blk_grid grid; /* x 0: the kernel's clause */
	size_t nargs;
	blk_arg args[16];
	struct bench_launch *next; /* launched after it, or null */
} bench_launch;

static inline void bench_arguments(bench_launch *l, const blk_arg *args, size_t n)
{
	l->nargs = n;
	memcpy(l->args, args, n * sizeof *args);
}

static inline blk_status bench_run(void *context)
{
	blk_status status = BLK_OK;
	for (const bench_launch *l = context; l && !status; l = l->next)
		status = blk_launch(l->kernel, NULL, l->grid.x ? &l->grid : NULL, l->args, l->nargs);
	return status;
}

/* The launch of `context`, a job, checked and timed. */
static inline void bench_try(bench *b, const char *configuration, void *context, const bench_check *checks, size_t n)
{
	blk_timing t;
	blk_bench_options usual = {.warmup_ms = 10, .measure_ms = 50};
	blk_bench_options quick = {.warmup_ms = 1, .measure_ms = 2, .min_runs = 3, .max_runs = 20, .keep_cache = 1};
	bool good = true;
	for (size_t i = 0; i < n; i++) {
		const bench_array *a = checks[i].output;
		TRY(blk_buffer_fill(a->buffer, 0, 0xff, bench_bytes(a, a->n + EXAMPLE_GUARD)));
	}
	if (bench_run(context)) {
		printf("%s, %s, %s: %s\n", b->now.work, b->now.size, configuration, blk_error());
		good = false;
	}
	for (size_t i = 0; good && i < n; i++) good = bench_right(b, &checks[i], context);
	if (good && blk_bench_call(b->device, bench_run, context, b->quick ? &quick : &usual, &t)) {
		printf("%s, %s, %s: %s\n", b->now.work, b->now.size, configuration, blk_error());
		good = false;
	}
	b->passed += good;
	b->failed += !good;
	if (!good || (b->now.time.runs && b->now.time.median_ms <= t.median_ms)) return;
	b->now.time = t;
	snprintf(b->now.configuration, sizeof b->now.configuration, "%s", configuration);
}

static inline double bench_rate(const bench_row *r, double ms)
{
	return ms > 0 ? r->bytes / ms * 1e-6 : 0;
}

/* The best of what was tried becomes a row. */
static inline void bench_end(bench *b)
{
	const bench_row *r = &b->now;
	if (!r->time.runs || b->n == BENCH_ROWS) return;
	if (b->n == 0)
		printf("%-28s %-18s %-24s %10s %8s %7s %7s %9s\n", "work", "size", "configuration", "us", "GB/s",
			"of copy", "spread", "error");
	printf("%-28s %-18s %-24s %10.2f %8.1f %6.1f%% %6.1f%% %9.1e", r->work, r->size, r->configuration,
		r->time.median_ms * 1e3, bench_rate(r, r->time.median_ms),
		100 * bench_rate(r, r->time.median_ms) * 1e9 / b->ceiling,
		100 * (r->time.p80_ms - r->time.p20_ms) / r->time.median_ms, r->error);
	if (r->flops > 0) printf(" %8.1f TFLOP/s", r->flops / r->time.median_ms * 1e-9);
	printf("\n");
	fflush(stdout);
	b->rows[b->n++] = *r;
}

/* ---- The program ---- */

static inline bench bench_open(int argc, char **argv, const char *name)
{
	const char *device = "auto";
	bench b = {.program = argv[0], .name = name};
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	b.seed = (uint64_t)t.tv_sec * 1000000007u + (uint64_t)t.tv_nsec;
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--device=", 9) == 0)
			device = argv[i] + 9;
		else if (strncmp(argv[i], "--out=", 6) == 0)
			b.out = argv[i] + 6;
		else if (strncmp(argv[i], "--seed=", 7) == 0)
			b.seed = strtoull(argv[i] + 7, NULL, 0);
		else if (strcmp(argv[i], "--quick") == 0)
			b.quick = true;
		else {
			fprintf(stderr, "usage: %s [--device=auto|cpu|cuda:N] [--quick] [--out=FOLDER] [--seed=N]\n",
				argv[0]);
			exit(2);
		}
	}
	TRY(blk_device_open(device, &b.device));
	TRY(blk_device_bandwidth(b.device, &b.ceiling));
	printf("%s on %s, a copy moves %.0f GB/s, seed %llu\n", name, blk_device_name(b.device), b.ceiling * 1e-9,
		(unsigned long long)b.seed);
	return b;
}

/* A module of examples/NAME/NAME.blk; `configuration` is "BLOCK=1024,num_warps=4". */
static inline blk_module *bench_module(bench *b, const char *name, const char *configuration)
{
	char text[256];
	blk_define defines[16];
	size_t n = 0;
	blk_module *m;
	snprintf(text, sizeof text, "%s", configuration);
	for (char *rest, *p = strtok_r(text, ",", &rest); p && n < 16; p = strtok_r(NULL, ",", &rest)) {
		char *equals = strchr(p, '=');
		if (!equals) break;
		*equals = 0;
		defines[n++] = (blk_define){p, equals + 1};
	}
	TRY(blk_module_open(b->device, example_source(b->program, name), defines, n, &m));
	return m;
}

static inline blk_kernel *bench_kernel(blk_module *m, const char *name)
{
	blk_kernel *k;
	TRY(blk_kernel_find(m, name, &k));
	return k;
}

static inline int bench_block(int n)
{
	int block = 1;
	while (block < n) block *= 2;
	return block;
}

/* The blocks to try for a row: the least that is a sum of three powers of two, in sixteenths of the power of two that
 * holds it, then that; 0 is in front of the first and behind the last. */
static inline int bench_block_after(int n, int block)
{
	int power = bench_block(n), least = power;
	for (int part = 14; part >= 9 && power >= 1024; part--)
		if (power / 16 * part >= n && __builtin_popcount((unsigned)part) <= 3) least = power / 16 * part;
	return block == 0 ? least : block < power ? power : 0;
}

static inline void bench_write_csv(const bench *b, FILE *f)
{
	fprintf(f, "work,size,configuration,elements,us,GBs,share,spread,error,TFLOPs\n");
	for (size_t i = 0; i < b->n; i++) {
		const bench_row *r = &b->rows[i];
		double rate = bench_rate(r, r->time.median_ms);
		fprintf(f, "\"%s\",\"%s\",\"%s\",%.0f,%.3f,%.1f,%.4f,%.4f,%.2e,%.2f\n", r->work, r->size,
			r->configuration, r->elements, r->time.median_ms * 1e3, rate, rate * 1e9 / b->ceiling,
			(r->time.p80_ms - r->time.p20_ms) / r->time.median_ms, r->error,
			r->flops / r->time.median_ms * 1e-9);
	}
}

/* One line a work, over its elements. */
static inline bool bench_draw(const bench *b, const char *path, char *why, size_t room)
{
	plot_point points[BENCH_ROWS];
	plot_series series[BENCH_ROWS];
	size_t n = 0, k = 0;
	for (size_t i = 0; i < b->n; i++) {
		bool first = true;
		for (size_t j = 0; j < i; j++) first = first && strcmp(b->rows[j].work, b->rows[i].work) != 0;
		if (!first) continue;
		series[n] = (plot_series){b->rows[i].work, points + k, 0};
		for (size_t j = i; j < b->n; j++) {
			const bench_row *r = &b->rows[j];
			if (strcmp(r->work, b->rows[i].work) != 0) continue;
			points[k++] = (plot_point){r->elements, bench_rate(r, r->time.median_ms),
				bench_rate(r, r->time.p80_ms), bench_rate(r, r->time.p20_ms), r->size};
			series[n].n++;
		}
		n++;
	}
	char title[256];
	snprintf(title, sizeof title, "%s on %s", b->name, blk_device_name(b->device));
	plot p = {title, "size", "GB/s", b->ceiling * 1e-9, "device copy", series, n};
	return plot_write(path, &p, why, room);
}

static inline int bench_close(bench *b)
{
	char path[4096], why[512];
	if (b->out) {
		snprintf(path, sizeof path, "%s/%s.csv", b->out, b->name);
		FILE *f = fopen(path, "w");
		if (f) bench_write_csv(b, f);
		if (!f || fclose(f) != 0) fprintf(stderr, "%s cannot be written\n", path), b->failed++;
		snprintf(path, sizeof path, "%s/%s.svg", b->out, b->name);
		if (b->n && !plot_possible(path, why, sizeof why))
			printf("no plot: %s\n", why);
		else if (b->n && !bench_draw(b, path, why, sizeof why))
			fprintf(stderr, "%s\n", why), b->failed++;
	}
	blk_device_close(b->device);
	printf("%d passed, %d failed\n", b->passed, b->failed);
	return b->failed != 0;
}

/* The main() of programs whose cases are rows times columns.  Both lists end in a row of zeros. */
typedef void bench_case(bench *, int rows, int columns);
static inline int bench_main(
	int argc, char **argv, const char *name, bench_case *run, const int (*quick)[2], const int (*sizes)[2])
{
	bench b = bench_open(argc, argv, name);
	for (const int(*s)[2] = b.quick ? quick : sizes; (*s)[0]; s++) run(&b, (*s)[0], (*s)[1]);
	return bench_close(&b);
}

#endif
