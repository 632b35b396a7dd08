/* What blkrun prints: numbers, arrays, rates, tables over sizes, counters, the cache, trials.  What libblk would
 * measure is played here, so that each line follows from known numbers; the lines were worked out by hand. */
#include "captured.h"
#include "wrapped.h"

#include "runtime/internal.h"
#include "runtime/run/run.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

static blk_device *const no_device; /* of a libblk that is played */

/* ---- libblk, played ---- */

static struct {
	blk_status fails; /* what each call gives */
	bool terminal, no_calendar, no_query;
	blk_device_kind kind;
	blk_timing timing;
	double bandwidth, bytes, flops, seconds; /* of a clock that goes on by so much at each look */
	int bandwidths;                          /* how often it was measured */
	blk_sim_counters counters;
	const blk_cache_entry *entries;
	const blk_tune_trial *trials;
	size_t nentries, ntrials;
	uint32_t timed, steps;
	double best_ms;
	bool tuned, isolated;
	const char *folder;
} play;

#define PLAYED(name, parameters, does)                                                                                 \
	blk_status __wrap_##name parameters;                                                                           \
	blk_status __wrap_##name parameters                                                                            \
	{                                                                                                              \
		if (play.fails) return error_set(play.fails, "%s is refused", #name);                                  \
		does;                                                                                                  \
		return BLK_OK;                                                                                         \
	}
PLAYED(blk_device_bandwidth, (blk_device * d, double *rate), (void)d; play.bandwidths++; *rate = play.bandwidth)
PLAYED(blk_kernel_cost, (blk_kernel * k, const blk_arg *a, size_t n, double *bytes, double *flops), (void)k; (void)a;
	(void)n; *bytes = play.bytes; *flops = play.flops)
PLAYED(blk_bench,
	(blk_kernel * k, const blk_grid *g, const blk_arg *a, size_t n, const blk_bench_options *o, blk_timing *t),
	(void)k;
	(void)g; (void)a; (void)n; (void)o; *t = play.timing)
PLAYED(blk_sim_count, (blk_device * d, blk_sim_counters *c), (void)d; *c = play.counters)
PLAYED(blk_cache_list, (int (*visit)(void *, const blk_cache_entry *), void *context),
	for (size_t i = 0; i < play.nentries && !visit(context, &play.entries[i]);) i++)
PLAYED(blk_tune_export, (const char *path, uint32_t *n), (void)path; *n = 3)
PLAYED(blk_tune_import, (const char *path, uint32_t *n), (void)path; *n = 7)

blk_status __wrap_blk_device_query(blk_device *d, blk_device_info *info);
blk_status __wrap_blk_device_query(blk_device *d, blk_device_info *info)
{
	(void)d;
	if (play.no_query) return error_set(BLK_ERROR_HANDLE, "no device");
	*info = (blk_device_info){.kind = play.kind};
	return BLK_OK;
}

blk_status __wrap_blk_cache_clear(uint64_t *removed);
blk_status __wrap_blk_cache_clear(uint64_t *removed)
{
	*removed = 4; /* as far as it came */
	return play.fails ? error_set(play.fails, "blk_cache_clear is refused") : BLK_OK;
}

const char *__wrap_blk_cache_folder(void);
const char *__wrap_blk_cache_folder(void)
{
	return play.folder;
}

/* Two steps of progress at least, then each row. */
blk_status __wrap_blk_kernel_tune(
	blk_kernel *k, const blk_grid *grid, const blk_arg *args, size_t n, const blk_tune_options *o, uint32_t *timed);
blk_status __wrap_blk_kernel_tune(
	blk_kernel *k, const blk_grid *grid, const blk_arg *args, size_t n, const blk_tune_options *o, uint32_t *timed)
{
	(void)k, (void)grid, (void)args, (void)n;
	play.tuned = true;
	play.isolated = o->isolated;
	for (uint32_t i = 0; i < play.steps; i++) o->progress(o->context, i, play.steps, i ? play.best_ms : 0);
	if (play.fails) return error_set(play.fails, "blk_kernel_tune is refused");
	for (size_t i = 0; o->visit && i < play.ntrials; i++)
		assert_int_equal(o->visit(o->context, &play.trials[i]), 0);
	if (timed) *timed = play.timed;
	return BLK_OK;
}

int __wrap_isatty(int fd);
int __wrap_isatty(int fd)
{
	return fd == STDERR_FILENO && play.terminal;
}

struct tm *__real_localtime_r(const time_t *, struct tm *);
struct tm *__wrap_localtime_r(const time_t *, struct tm *);
struct tm *__wrap_localtime_r(const time_t *t, struct tm *to)
{
	return play.no_calendar ? NULL : __real_localtime_r(t, to);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	static double now = 100;
	(void)clock;
	now += play.seconds;
	*t = (struct timespec){.tv_sec = (time_t)now, .tv_nsec = (long)((now - floor(now)) * 1e9)};
	return 0;
}

static int setup(void **state)
{
	(void)state;
	memset(&play, 0, sizeof play);
	play.kind = BLK_DEVICE_CPU;
	play.bytes = play.flops = NAN;
	unsetenv("BLK_TUNE");
	return setenv("TZ", "UTC", 1);
}

static void said(const char *text, const char *wanted)
{
	if (strcmp(text, wanted) != 0) fail_msg("it says:\n%s\nand not:\n%s", text, wanted);
}

/* ---- Numbers and arrays ---- */

static void test_quantities(void **state)
{
	(void)state;
	static const struct {
		double v;
		const char *text;
	} rows[] = {{1.2345e12, "1.23 Ts"}, {3e15, "3000 Ts"}, {1e9, "1.00 Gs"}, {9.99e8, "999 Ms"}, {123456, "123 ks"},
		{99.94, "99.9 s"}, {9.994, "9.99 s"}, {1, "1.00 s"}, {0.5, "500 ms"}, {1.5e-6, "1.50 us"},
		{2e-9, "2.00 ns"}, {2e-12, "0.00 ns"}, {0, "0.00 ns"}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		CAPTURED(print_quantity(rows[i].v, "s"));
		said(captured.out, rows[i].text);
	}
}

static array filled(scalar t, const char *kind, unsigned rank, uint64_t a, uint64_t b)
{
	array x = {.type = t, .rank = rank, .extent = {a, b}};
	assert_true(array_allocate(&x));
	fill_array(&x, kind, 1);
	return x;
}

static void shows(scalar t, const char *kind, unsigned rank, uint64_t a, uint64_t b, const char *wanted)
{
	array x = filled(t, kind, rank, a, b);
	CAPTURED(print_array("x", &x));
	said(captured.out, wanted);
	array_free(&x);
}

static void test_arrays(void **state)
{
	(void)state;
	shows(SCALAR_F32, "arange", 1, 3, 0, "x: f32[3]\n  0  1  2\n");
	shows(SCALAR_F32, "ones", 0, 0, 0, "x: f32[]\n  1\n");
	shows(SCALAR_I8, "poison", 1, 2, 0, "x: i8[2]\n  -91  -91\n");
	shows(SCALAR_U8, "poison", 1, 2, 0, "x: u8[2]\n  165  165\n");
	shows(SCALAR_BOOL, "arange", 1, 2, 0, "x: bool[2]\n  false  true\n");
	shows(SCALAR_F16, "poison", 1, 1, 0, "x: f16[1]\n  nan\n");
	shows(SCALAR_I32, "arange", 1, 9, 0, "x: i32[9]\n  0  1  2  3  4  5  6  7  ...\n");
	shows(SCALAR_I32, "arange", 2, 5, 2,
		"x: i32[5, 2]\n  [0, 0] 0  1\n  [1, 0] 2  3\n  [2, 0] 4  5\n  [3, 0] 6  7\n  ...\n");
	shows(SCALAR_F64, "zeros", 2, 4, 0, "x: f64[4, 0]\n");
	array third = filled(SCALAR_F64, "zeros", 1, 1, 0);
	static const struct {
		scalar type;
		const char *digits;
	} rows[] = {{SCALAR_F64, "0.3333333333"}, {SCALAR_F32, "0.3333333"}, {SCALAR_F16, "0.3333"}};
	for (size_t i = 0; i < 3; i++) {
		third.type = rows[i].type;
		array_set(&third, 0, scalar_from_double(rows[i].type, 1.0 / 3));
		CAPTURED(print_element(&third, 0));
		said(captured.out, rows[i].digits);
	}
	array_free(&third);
	array empty = {
		.type = SCALAR_F32, .rank = 2, .extent = {3, 0}}; /* no element has an index, but 0 is asked for */
	CAPTURED(print_index(&empty, 0));
	said(captured.out, "[0, 0]");
}

/* ---- Rates ---- */

static void rates(double ms, double bytes, bool clause, double flops, double peak, const char *wanted)
{
	measured m = {.ms = ms, .bytes = bytes, .flops = flops, .clause = clause};
	CAPTURED(print_rates(&m, peak));
	said(captured.out, wanted);
}

static void test_rates(void **state)
{
	(void)state;
	rates(2, 4e6, true, NAN, 0, "2.00 GB/s\n"); /* 4 MB in 2 ms */
	rates(2, 4e6, false, NAN, 0, "2.00 GB/s (each buffer counted once)\n");
	rates(2, 4e6, true, NAN, 8e9, "2.00 GB/s, 25.0% of 8.00 GB/s, the device's copy rate measured now\n");
	rates(2, 4e6, true, 6e9, 0, "2.00 GB/s\n3.00 TFLOP/s\n");
	rates(2, 0, true, 6e9, 8e9, "3.00 TFLOP/s\n");
	rates(0, 4e6, true, 6e9, 8e9, "");
	rates(2, NAN, true, NAN, 8e9, "");
}

static void test_cost(void **state)
{
	(void)state;
	job *j = calloc(1, sizeof *j);
	place *p = calloc(1, sizeof *p);
	measured m;
	j->nbuffers = 3;
	j->arrays[0].bytes = 100, j->arrays[2].bytes = 28;
	launch_cost(p, j, &m); /* no clause */
	assert_true(m.bytes == 128 && !m.clause && isnan(m.flops));
	play.bytes = 77, play.flops = 5;
	launch_cost(p, j, &m);
	assert_true(m.bytes == 77 && m.clause && m.flops == 5);
	play.fails = BLK_ERROR_ARGUMENT;
	launch_cost(p, j, &m);
	assert_true(m.bytes == 128 && !m.clause && isnan(m.flops));
	free(j);
	free(p);
}

static void test_bench(void **state)
{
	(void)state;
	options o = {0};
	job *j = calloc(1, sizeof *j);
	place *p = calloc(1, sizeof *p);
	measured m = {0};
	double peak = 0;
	int status;
	j->options = &o;
	CAPTURED(status = measure_job(p, j, &peak, &m)); /* nothing was launched */
	assert_int_equal(status, 0);
	said(captured.out, "");
	assert_true(m.ms == 0 && peak == 0);
	p->launched = true;
	play.timing = (blk_timing){.runs = 12, .median_ms = 0.5, .p20_ms = 0.25, .p80_ms = 1};
	play.bytes = 1e6, play.bandwidth = 4e9;
	o.has_grid = true;
	for (int i = 0; i < 2; i++) {
		CAPTURED(status = measure_job(p, j, &peak, &m));
		assert_int_equal(status, 0);
		said(captured.out, "time 500 us (median of 12 runs; middle three fifths 250 us to 1.00 ms)\n"
				   "2.00 GB/s, 50.0% of 4.00 GB/s, the device's copy rate measured now\n");
		assert_true(m.ms == 0.5 && m.p20_ms == 0.25 && m.p80_ms == 1);
	}
	assert_int_equal(play.bandwidths, 1); /* measured once */
	play.fails = BLK_ERROR_KERNEL;
	peak = 0;
	CAPTURED(status = measure_job(p, j, &peak, &m));
	assert_int_equal(status, 1);
	said(captured.err, "blkrun: blk_bench is refused\n");
	assert_true(peak == 0);
	free(j);
	free(p);
}

/* ---- Parameters ---- */

static blk_parameter parameters[2];

blk_status __wrap_blk_kernel_parameters(blk_kernel *k, const blk_parameter **p, size_t *n);
blk_status __wrap_blk_kernel_parameters(blk_kernel *k, const blk_parameter **p, size_t *n)
{
	(void)k;
	*p = parameters;
	*n = 2;
	return BLK_OK;
}

/* Of a libblk that is newer than this blkrun. */
static void test_types(void **state)
{
	(void)state;
	static const struct {
		const char *type;
		int pointer, status;
		const char *says;
	} rows[] = {{"*f32", 1, 0, ""}, {"*const f32", 1, 0, ""},
		{"*f31", 1, 2, "blkrun: x: is of a type that blkrun does not know\n"},
		{"**f32", 1, 2, "blkrun: x: is of a type that blkrun does not know\n"},
		{"f128", 0, 2, "blkrun: x: is of a type that blkrun does not know\n"},
		{"i32", 0, 2, "blkrun: x: it is no integer\n"},
		{"*f16", 1, 2, "blkrun: x: parameter is *f16, but the buffer holds f32\n"},
		{"*u64", 1, 2,
			"blkrun: x: parameter is *u64, but the buffer holds f32 (to: in front makes it a buffer of its "
			"address)\n"}};
	options o = {.values = {{"n", "3"}, {"x", "f32[4]"}}, .nvalues = 2};
	job *j = calloc(1, sizeof *j);
	parameters[1] = (blk_parameter){"n", "i32", 0, 0};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int status;
		parameters[0] = (blk_parameter){"x", rows[i].type, rows[i].pointer, 1};
		memset(j, 0, sizeof *j);
		CAPTURED(status = job_make(j, &o, NULL));
		assert_int_equal(status, rows[i].status);
		said(captured.err, rows[i].says);
		if (!status) assert_true(j->arrays[0].count == 4 && j->bits[1] == 3);
		job_free(j);
	}
	free(j);
}

/* ---- Over sizes ---- */

static const options three = {.values = {{"n", "8,16,32"}}, .nvalues = 1};

static void table(const measured *m, double peak, const char *wanted)
{
	sweep s;
	int status;
	assert_int_equal(sweep_open(&three, &s), 0);
	CAPTURED(status = print_measured(&s, m, peak));
	assert_int_equal(status, 0);
	said(captured.out, wanted);
}

/* 10, 20 and 40 us; the second has a spread of half of it. */
#define TIMES(bytes_, flops_, clause_)                                                                                 \
	((measured[]){                                                                                                 \
		{.ms = 0.01, .p20_ms = 0.01, .p80_ms = 0.01, .bytes = bytes_, .flops = flops_, .clause = clause_},     \
		{.ms = 0.02, .p20_ms = 0.015, .p80_ms = 0.025, .bytes = bytes_, .flops = flops_, .clause = clause_},   \
		{.ms = 0.04, .p20_ms = 0.04, .p80_ms = 0.04, .bytes = bytes_, .flops = flops_, .clause = clause_}})

static void test_tables(void **state)
{
	(void)state;
	/* a million bytes: 100, 50 and 25 GB/s */
	table(TIMES(1e6, NAN, true), 0,
		"n                        us   spread       GB/s\n"
		"8                     10.00     0.0%     100.00\n"
		"16                    20.00    50.0%      50.00\n"
		"32                    40.00     0.0%      25.00\n");
	table(TIMES(1e6, NAN, false), 200e9,
		"n                        us   spread       GB/s  of copy\n"
		"8                     10.00     0.0%     100.00    50.0%\n"
		"16                    20.00    50.0%      50.00    25.0%\n"
		"32                    40.00     0.0%      25.00    12.5%\n");
	/* arithmetic that a byte meets more than 30 times, or whose bytes nobody stated */
	static const char in_flops[] = "n                        us   spread    TFLOP/s\n"
				       "8                     10.00     0.0%       4.00\n"
				       "16                    20.00    50.0%       2.00\n"
				       "32                    40.00     0.0%       1.00\n";
	table(TIMES(1e6, 4e7, true), 200e9, in_flops);
	table(TIMES(1e7, 4e7, false), 200e9, in_flops);
	table(TIMES(0, NAN, true), 200e9,
		"n                        us   spread\n"
		"8                     10.00     0.0%\n"
		"16                    20.00    50.0%\n"
		"32                    40.00     0.0%\n");
	/* sizes for which nothing was launched, one of them, and all */
	measured some[3] = {
		{.ms = 0}, {.ms = 0.02, .p20_ms = 0.02, .p80_ms = 0.02, .bytes = 1e6, .flops = NAN}, {.ms = 0}};
	table(some, 0,
		"n                        us   spread       GB/s\n"
		"8               \n"
		"16                    20.00     0.0%      50.00\n"
		"32              \n");
	some[1].ms = 0;
	table(some, 0,
		"n                        us   spread\n"
		"8               \n"
		"16              \n"
		"32              \n");
}

static void plots(const options *sizes, const measured *m, double peak, const char *wanted)
{
	char path[] = "/tmp/test_run_reports.XXXXXX.csv", text[4096];
	sweep s;
	int status, fd = mkstemps(path, 4);
	assert_true(fd >= 0);
	close(fd);
	options o = *sizes;
	o.plot = path;
	assert_int_equal(sweep_open(&o, &s), 0);
	CAPTURED(status = plot_measured(&s, m, "k", "a device", peak));
	FILE *f = fopen(path, "r");
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	unlink(path);
	said(captured.err, "");
	assert_int_equal(status, 0);
	said(text, wanted);
}

#define HEAD "series,label,x,y,low,high,ceiling\n"

static void test_plots(void **state)
{
	(void)state;
	/* a rate falls as the time grows: its low end is that of the slow runs */
	plots(&three, TIMES(1e6, NAN, true), 200e9,
		HEAD
		"\"k\",\"8\",8,100,100,100,200\n\"k\",\"16\",16,50,40,66.6667,200\n\"k\",\"32\",32,25,25,25,200\n");
	plots(&three, TIMES(1e6, 4e7, true), 200e9,
		HEAD "\"k\",\"8\",8,4,4,4,0\n\"k\",\"16\",16,2,1.6,2.66667,0\n\"k\",\"32\",32,1,1,1,0\n");
	plots(&three, TIMES(0, NAN, true), 0,
		HEAD "\"k\",\"8\",8,10,10,10,0\n\"k\",\"16\",16,20,15,25,0\n\"k\",\"32\",32,40,40,40,0\n");
	measured some[3] = {
		{.ms = 0}, {.ms = 0.02, .p20_ms = 0.02, .p80_ms = 0.02, .bytes = 1e6, .flops = NAN}, {.ms = 0}};
	plots(&three, some, 0, HEAD "\"k\",\"16\",16,50,50,50,0\n");
	/* one size, and items that are no numbers: their places */
	static const options one = {.values = {{"n", "8"}}, .nvalues = 1};
	plots(&one, TIMES(1e6, NAN, true), 0, HEAD "\"k\",\"\",1,100,100,100,0\n");
	static const options types = {.defines = {{"T", "f32,inf,7"}}, .ndefines = 1};
	plots(&types, TIMES(1e6, NAN, true), 0,
		HEAD "\"k\",\"f32\",1,100,100,100,0\n\"k\",\"inf\",2,50,40,66.6667,0\n\"k\",\"7\",7,25,25,25,0\n");
	static const options quotes = {.defines = {{"T", "a\"b,c,\"\""}}, .ndefines = 1};
	plots(&quotes, TIMES(1e6, NAN, true), 0,
		HEAD
		"\"k\",\"a\"\"b\",1,100,100,100,0\n\"k\",\"c\",2,50,40,66.6667,0\n\"k\",\"\"\"\"\"\",3,25,25,25,0\n");
}

/* ---- The simulator's counters ---- */

static void test_counters(void **state)
{
	(void)state;
	blk_status status;
	play.counters = (blk_sim_counters){.programs = 3,
		.lanes = 640,
		.load_requests = 4,
		.load_sectors = 10,
		.load_bytes = 240,
		.atomic_lanes = 5,
		.shared_requests = 6,
		.shared_conflicts = 7,
		.barriers = 8,
		.shared_bytes = 9000};
	play.counters.instructions[BLK_SIM_FLOAT] = 11;
	play.counters.instructions[BLK_SIM_MATRIX] = 12345678901;
	CAPTURED(status = simulator_print(no_device));
	assert_int_equal(status, BLK_OK);
	said(captured.out, "counters\n" /* 10 sectors for 4 requests; 240 of 320 bytes */
			   "  programs                            3\n"
			   "  float                              11\n"
			   "  tensor core               12345678901\n"
			   "  lanes that took part              640\n"
			   "  global loads                        4   2.50 sectors a request, 75% of their bytes used\n"
			   "  global stores                       0\n"
			   "  atomics of lanes                    5\n"
			   "  shared accesses                     6\n"
			   "  bank conflicts                      7\n"
			   "  barriers passed                     8\n"
			   "  shared bytes                     9000\n");
	play.fails = BLK_ERROR_UNSUPPORTED;
	CAPTURED(status = simulator_print(no_device));
	assert_int_equal(status, BLK_ERROR_UNSUPPORTED);
	said(captured.out, "");
	const options o = {0};
	assert_int_equal(simulator_configure(no_device, &o), BLK_OK); /* a cpu device */
	play.no_query = true;
	assert_int_equal(simulator_configure(no_device, &o), BLK_ERROR_HANDLE);
}

/* ---- The cache ---- */

static void test_cache(void **state)
{
	(void)state;
	static const blk_cache_entry entries[] = {{"0123456789abcdef", "add", "sm_90a", 4808, 0, 1, 0},
		{"fedcba9876543210", "", "cpu", 400, 86399, 1, 0}, {"00000000000000000", "add", "cpu", 92, 1, 0, 0},
		{"11111111111111111", "add", "sm_80", 700, 951782400, 1, 1}};
	int status;
	play.entries = entries;
	play.nentries = 4;
	CAPTURED(status = manage_cache("list"));
	assert_int_equal(status, 0);
	said(captured.out, "there is no cache: BLK_CACHE or BLK_CACHE_SIZE turns it off, or neither BLK_CACHE_DIR nor "
			   "HOME names a folder\n");
	play.folder = "/some/folder";
	CAPTURED(status = manage_cache("list"));
	assert_int_equal(status, 0);
	said(captured.out, "/some/folder\n"
			   "0123456789ab  1970-01-01 00:00:00      4808  sm_90a   add\n"
			   "fedcba987654  1970-01-01 23:59:59       400  cpu      (check of a source)\n"
			   "000000000000  1970-01-01 00:00:01        92  cpu      (damaged)\n"
			   "111111111111  2000-02-29 00:00:00       700  sm_80    add (tuning record)\n"
			   "4 entries, 6000 bytes\n");
	play.no_calendar = true; /* a file's time may be any number */
	play.nentries = 1;
	CAPTURED(status = manage_cache("list"));
	said(captured.out,
		"/some/folder\n0123456789ab                           4808  sm_90a   add\n1 entries, 4808 bytes\n");
	CAPTURED(status = manage_cache("clear"));
	assert_int_equal(status, 0);
	said(captured.out, "/some/folder\n4 entries removed\n");
	play.fails = BLK_ERROR_IO;
	CAPTURED(status = manage_cache("clear"));
	assert_int_equal(status, 1);
	said(captured.err, "blkrun: blk_cache_clear is refused\n");
	CAPTURED(status = manage_cache("list"));
	assert_int_equal(status, 1);
	said(captured.err, "blkrun: blk_cache_list is refused\n");
}

static void test_shipping(void **state)
{
	(void)state;
	int status;
	CAPTURED(status = ship_records("export", "a"));
	assert_int_equal(status, 0);
	said(captured.out, "3 tuning records written to a\n");
	CAPTURED(status = ship_records("import", "b"));
	assert_int_equal(status, 0);
	said(captured.out, "7 tuning records read from b\n");
	play.fails = BLK_ERROR_IO;
	CAPTURED(status = ship_records("export", "a"));
	assert_int_equal(status, 1);
	said(captured.err, "blkrun: blk_tune_export is refused\n");
	CAPTURED(status = ship_records("import", "a"));
	assert_int_equal(status, 1);
	said(captured.err, "blkrun: blk_tune_import is refused\n");
	said(captured.out, "");
}

/* ---- Trials ---- */

static const blk_tune_trial trials[] = {{"B=8", BLK_TUNE_GOOD, 1.5, "", 1}, {"B=16", BLK_TUNE_GOOD, 20, "", 0},
	{"B=24", BLK_TUNE_COMPILE, 0, "no tile of 24\nsecond line", 0}, {"B=32", BLK_TUNE_RESOURCES, 0, "", 0},
	{"B=40", BLK_TUNE_WRONG, 0, "y differs", 0}, {"B=48", BLK_TUNE_FAILED, 0, "", 0},
	{"B=56", BLK_TUNE_PRUNED, 0, "", 0}, {"B=64", BLK_TUNE_SUSPECT, 0, "", 0}, {"B=72", BLK_TUNE_UNKNOWN, 0, "", 0},
	{"B=80", BLK_TUNE_MISFIT, 0, "n <= B", 0}};

/* A name stands in 40 columns. */
#define ROW(mark, name, rest) mark " " name "                                    " rest "\n"

static void test_trials(void **state)
{
	(void)state;
	blk_status status;
	play.trials = trials;
	play.ntrials = 10;
	play.timed = 8;
	CAPTURED(status = tune_kernel(NULL, NULL, NULL, 0, ""));
	assert_int_equal(status, BLK_OK);
	assert_true(play.isolated);
	said(captured.err, "");
	said(captured.out, ROW("*", "B=8 ", " 1.50 ms") ROW(" ", "B=16", " 20.0 ms") ROW(
				   " ", "B=24", " does not compile: no tile of 24") ROW(" ", "B=32", " needs too much")
				   ROW(" ", "B=40", " wrong result: y differs") ROW(" ", "B=48", " failed")
					   ROW(" ", "B=56", " not timed") ROW(" ", "B=64", " skipped") ROW(" ", "B=80",
						   " does not fit: n <= B") "8 configurations tried, 1 left out\n");
	static const struct {
		size_t rows;
		uint32_t timed;
		const char *line;
	} counts[] = {{1, 1, "1 configuration tried\n"}, {2, 1, "1 configuration tried, the other known\n"},
		{3, 1, "1 configuration tried, the others known\n"}, {2, 0, "0 configurations tried, all 2 known\n"},
		{10, 0, "0 configurations tried, all 8 known, 1 left out\n"},
		{10, 7, "7 configurations tried, the other known, 1 left out\n"},
		{10, 9, "9 configurations tried, 1 left out\n"},
		{0, 0, "nothing to tune: the kernel has no autotune block, or -D binds all that it tunes\n"}};
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		play.ntrials = counts[i].rows;
		play.timed = counts[i].timed;
		CAPTURED(status = tune_kernel(NULL, NULL, NULL, 0, ""));
		const char *last = strlen(captured.out) < strlen(counts[i].line)
					   ? captured.out
					   : captured.out + strlen(captured.out) - strlen(counts[i].line);
		said(last, counts[i].line);
	}
	play.trials = trials + 9; /* one that does not fit, and no other */
	play.ntrials = 1;
	play.timed = 0;
	CAPTURED(status = tune_kernel(NULL, NULL, NULL, 0, ""));
	captured_has(captured.out, "\n0 configurations tried\n");
	play.fails = BLK_ERROR_KERNEL;
	CAPTURED(status = tune_kernel(NULL, NULL, NULL, 0, ""));
	assert_int_equal(status, BLK_ERROR_KERNEL);
	said(captured.out, "");
}

/* On a terminal, a line that is drawn over and taken away; nothing elsewhere. */
static void test_progress(void **state)
{
	(void)state;
	blk_status status;
	play.trials = trials;
	play.ntrials = 2;
	play.timed = 2;
	play.steps = 3;
	play.best_ms = 0.25;
	play.seconds = 2; /* the first look is at the start: after 4 s one of 3, after 6 s two */
	static const char drawn[] = "\rtuning 0/3\033[K\rtuning 1/3, best 0.25 ms, about 8.0 s left\033[K"
				    "\rtuning 2/3, best 0.25 ms, about 3.0 s left\033[K\r\033[K";
	CAPTURED(status = tune_kernel(NULL, NULL, NULL, 0, ""));
	said(captured.err, "");
	play.terminal = true;
	CAPTURED(status = tune_kernel(NULL, NULL, NULL, 0, ""));
	assert_int_equal(status, BLK_OK);
	said(captured.err, drawn);
	play.ntrials = 0;
	play.best_ms = 0;
	CAPTURED(status = tune_kernel(NULL, NULL, NULL, 0, ""));
	said(captured.err, "\rtuning 0/3\033[K\rtuning 1/3, about 8.0 s left\033[K"
			   "\rtuning 2/3, about 3.0 s left\033[K\r\033[K");
	/* of a list of sizes, which one */
	CAPTURED(status = tune_kernel(NULL, NULL, NULL, 0, "2 of 3"));
	assert_int_equal(status, BLK_OK);
	assert_non_null(strstr(captured.err, "\rtuning 2 of 3: 0/3\033[K"));
	/* what a launch would do anyhow */
	static const struct {
		const char *mode; /* null: not set */
		blk_device_kind kind;
		bool no_query, tunes;
	} rows[] = {{NULL, BLK_DEVICE_CUDA, false, true}, {"", BLK_DEVICE_CUDA, false, true},
		{NULL, BLK_DEVICE_CPU, false, false}, {"", BLK_DEVICE_SIM, false, false},
		{NULL, BLK_DEVICE_CUDA, true, false}, {"auto", BLK_DEVICE_CPU, false, true},
		{"always", BLK_DEVICE_CUDA, false, true}, {"isolated", BLK_DEVICE_SIM, false, true},
		{"off", BLK_DEVICE_CUDA, false, false}, {"cached", BLK_DEVICE_CUDA, false, false},
		{"first", BLK_DEVICE_CUDA, false, false}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (rows[i].mode)
			setenv("BLK_TUNE", rows[i].mode, 1);
		else
			unsetenv("BLK_TUNE");
		play.kind = rows[i].kind;
		play.no_query = rows[i].no_query;
		play.tuned = false;
		CAPTURED(status = tune_shown(no_device, NULL, NULL, NULL, 0));
		assert_int_equal(status, BLK_OK);
		if (play.tuned != rows[i].tunes) fail_msg("row %zu: %d", i, play.tuned);
		assert_int_equal(captured.err[0] != 0, rows[i].tunes);
		said(captured.out, "");
	}
	play.terminal = false;
	play.tuned = false;
	setenv("BLK_TUNE", "auto", 1);
	assert_int_equal(tune_shown(no_device, NULL, NULL, NULL, 0), BLK_OK);
	assert_false(play.tuned); /* the launch itself does, in silence */
	play.terminal = true;
	play.steps = 0;
	play.fails = BLK_ERROR_MEMORY; /* the launch goes on without */
	CAPTURED(status = tune_shown(no_device, NULL, NULL, NULL, 0));
	assert_int_equal(status, BLK_OK);
	said(captured.err, "");
	play.fails = BLK_ERROR_KERNEL;
	assert_int_equal(tune_shown(no_device, NULL, NULL, NULL, 0), BLK_ERROR_KERNEL);
	unsetenv("BLK_TUNE");
}

int main(void)
{
	if (!wraps((void *)print_rates)) return puts("[  SKIPPED ] 13 tests") < 0;
#define T(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {T(test_quantities), T(test_arrays), T(test_rates), T(test_cost),
		T(test_bench), T(test_types), T(test_tables), T(test_plots), T(test_counters), T(test_cache),
		T(test_shipping), T(test_trials), T(test_progress)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
