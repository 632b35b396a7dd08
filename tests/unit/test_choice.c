/* What an autotune clause and the environment say, what is tried of it, and what a launch then uses, on the driver and
 * the compiler of memory: clauses that end early, configurations that do not fit, kinds of elements, trials that the
 * driver ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_device.h"
#include "runtime/tune/tune.h"
#include "wrapped.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* `z` is of any type; the machine writes floats.  B of 0 divides by it. */
#define KERNEL(z)                                                                                                      \
	"kernel add\nsymbol add\nparam z *" z "\nparam x *const f32\nparam y *const f32\nparam n i32\n"                \
	"const T i32 128\nconst B i32 64\nconst LOCAL i32 0\nwritten 0\nthreads $T\nshared 0\n"                        \
	"source 0123456789abcdef0123456789abcdef\n"
#define GRID "grid 0 p3 $B cdiv\n"
enum { N = 100 };

static char folder[64];
static blk_device *device;
static blk_kernel *kernel;
static blk_buffer *z, *x, *y;
static double times[4096];
static unsigned timings[4096];

static double tell_time(const char *configuration)
{
	const char *t = strstr(configuration, "T=");
	int n = t ? atoi(t + 2) : 0;
	timings[n]++;
	return times[n] > 0 ? times[n] : 1;
}

static int no_fsync(int fd)
{
	(void)fd;
	return 0;
}

static blk_status open_job(const char *source)
{
	static cache_files quick;
	quick = cache_system_files;
	quick.fsync = no_fsync;
	const device_seams seams = {.cuda = &fake_api, .compiler = &fake_compiler, .files = &quick};
	blk_module *m;
	float values[N];
	blk_buffer **const buffers[] = {&z, &x, &y};
	for (int i = 0; i < N; i++) values[i] = (float)i;
	blk_status s = device_open_with("cuda", &seams, &device);
	if (s) return s;
	device->tune_clock = tell_time;
	device->info.total_memory = 1 << 16; /* what empties the cache is a part of it */
	s = blk_module_source(device, "add.blk", source, NULL, 0, &m);
	if (!s) s = blk_kernel_find(m, "add", &kernel);
	for (int i = 0; !s && i < 3; i++) {
		s = blk_buffer_create(device, sizeof values, buffers[i]);
		if (!s) s = blk_buffer_write(*buffers[i], 0, values, sizeof values);
	}
	memset(timings, 0, sizeof timings);
	return s;
}
static void open_good(const char *source)
{
	if (open_job(source)) fail_msg("%s", blk_error());
}
static void close_job(void)
{
	blk_device_close(device);
	device = NULL;
	if (fake_leak()) fail_msg("left behind: %s", fake_leak());
}

#define JOB_ARGS BLK_ARGS(blk_buf(z), blk_buf(x), blk_buf(y), blk_i32(N))

static struct {
	blk_tune_verdict verdicts[4096];
	char reasons[4096][200];
	unsigned best;
	int shown, most;
} seen;
static int note_trial(void *context, const blk_tune_trial *t)
{
	const char *at = strstr(t->configuration, "T=");
	unsigned n = at ? (unsigned)atoi(at + 2) : 0;
	(void)context;
	seen.verdicts[n] = t->verdict;
	snprintf(seen.reasons[n], sizeof seen.reasons[n], "%s", t->reason);
	if (t->chosen) seen.best = n;
	return ++seen.shown == seen.most;
}
static blk_status tune(int most)
{
	blk_tune_options o = {.visit = note_trial, .again = 1};
	memset(&seen, 0, sizeof seen);
	seen.most = most;
	return blk_kernel_tune(kernel, NULL, JOB_ARGS, &o, NULL);
}

static void remove_all(const char *path)
{
	char inner[600];
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
		snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
		if (unlink(inner) != 0) remove_all(inner);
	}
	if (d) closedir(d);
	rmdir(path);
}

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/blk_choice_XXXXXX");
	if (!mkdtemp(folder)) return -1;
	setenv("BLK_CACHE_DIR", folder, 1);
	setenv("BLK_CACHE", "off", 1);
	unsetenv("BLK_TUNE");
	memset(times, 0, sizeof times);
	fake_reset();
	fake_status = 0;
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	blk_device_close(device);
	device = NULL;
	remove_all(folder);
	return 0;
}

/* ---- Clauses ---- */

static void test_clauses(void **state)
{
	(void)state;
	static const struct {
		const char *clause;
		uint32_t keys;
		bool reset, restore, scratch; /* of z */
		double tolerance;
	} rows[] = {{"", 0, false, false, false, -1}, {"key n", 1, false, false, false, -1},
		{"key n reset z restore z scratch z tolerance 0.25", 1, true, true, true, 0.25},
		{"key", 0, false, false, false, -1}, {"key n reset", 1, false, false, false, -1},
		{"key n restore", 1, false, false, false, -1}, {"key n scratch", 1, false, false, false, -1},
		{"key n tolerance", 1, false, false, false, -1},
		{"key n,nothing,x reset nobody,z", 2, true, false, false, -1},
		{"key  n   reset  z", 1, true, false, false, -1}, {"key n where reset z", 1, false, false, false, -1},
		{"axis reset z key n", 1, false, false, false, -1},
		{"key n axis T 1 2 config reset scratch z", 1, false, false, true, -1}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char source[1024];
		snprintf(source, sizeof source, KERNEL("f32") GRID "autotune %s\nconfiguration T=32\n", rows[i].clause);
		open_good(source);
		const tuner *t = kernel->tuner;
		if (t->nkeys != rows[i].keys || t->reset[0] != rows[i].reset || t->restore[0] != rows[i].restore ||
			t->scratch[0] != rows[i].scratch || t->tolerance != rows[i].tolerance)
			fail_msg("%s: %u keys, %d %d %d, %g", rows[i].clause, t->nkeys, t->reset[0], t->restore[0],
				t->scratch[0], t->tolerance);
		close_job();
	}
}

/* More keys than the table holds: what differs in the others alone shares a choice. */
static void test_many_keys(void **state)
{
	(void)state;
	enum { KEYS = 40 };
	char source[4096] = "kernel add\n", list[512] = "autotune key ";
	blk_arg args[KEYS];
	for (int i = 0; i < KEYS; i++) {
		sprintf(source + strlen(source), "param k%d i32\n", i);
		sprintf(list + strlen(list), "%sk%d", i ? "," : "", i);
		args[i] = blk_i32(3);
	}
	sprintf(source + strlen(source), "grid 0 1\n%s\nconfiguration T=32\n", list);
	setenv("BLK_TUNE", "first", 1);
	open_good(source);
	assert_int_equal(kernel->tuner->nkeys, TUNE_KEYS);
	blk_info info;
	assert_int_equal(blk_kernel_info(kernel, args, KEYS, &info), BLK_OK);
	args[KEYS - 1] = blk_i32(5);
	int compiles = fake_compiles;
	assert_int_equal(blk_kernel_info(kernel, args, KEYS, &info), BLK_OK);
	assert_int_equal(fake_compiles, compiles);
	assert_string_equal(info.configuration, "T=32");
	close_job();
}

/* Keys share places in the table, as 100 of them among 256 do, and each has its own choice all the same. */
static void test_each_key(void **state)
{
	(void)state;
	char source[1024];
	snprintf(source, sizeof source,
		KERNEL("f32") "grid 0 1\nautotune key n\nconfiguration T=32\nconfiguration T=40\n");
	open_good(source);
	free(error_take());
	for (int n = 1; n <= N; n++) {
		times[32] = n % 3 ? 1 : 2, times[40] = n % 3 ? 2 : 1;
		blk_status s = blk_launch(kernel, NULL, NULL, BLK_ARGS(blk_buf(z), blk_buf(x), blk_buf(y), blk_i32(n)));
		if (s) fail_msg("%d: %s", n, blk_error());
		assert_int_equal(fake.threads, n % 3 ? 32 : 40);
	}
	assert_string_equal(blk_error(), ""); /* nothing went wrong, and nothing says so */
	close_job();
}

/* What a launch gives itself is looked at, whatever is known of its key. */
static void test_given_grids(void **state)
{
	(void)state;
	open_good(KERNEL("f32") GRID "autotune key n\nconfiguration T=32\n");
	assert_int_equal(blk_launch(kernel, NULL, NULL, JOB_ARGS), BLK_OK);
	int launches = fake.launches;
	assert_int_equal(blk_launch(kernel, NULL, &(blk_grid){0, 1, 1}, JOB_ARGS), BLK_ERROR_GRID);
	assert_int_equal(blk_launch(kernel, NULL, &(blk_grid){1, 1, 65536}, JOB_ARGS), BLK_ERROR_GRID);
	assert_int_equal(fake.launches, launches);
	assert_int_equal(blk_launch(kernel, NULL, &(blk_grid){2, 1, 1}, JOB_ARGS), BLK_OK);
	assert_int_equal(fake.launches, launches + 1);
	close_job();
}

/* ---- Threads that compile ---- */

static int cores, threads_started = -1; /* cores -1: the system does not say; no threads_started: the real calls */
int __real_sched_getaffinity(pid_t, size_t, cpu_set_t *);
int __wrap_sched_getaffinity(pid_t pid, size_t n, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t n, cpu_set_t *set)
{
	if (threads_started < 0) return __real_sched_getaffinity(pid, n, set);
	memset(set, 0, n);
	for (int i = 0; i < (cores < 0 ? 8 : cores); i++) CPU_SET(i, set);
	return cores < 0 ? -1 : 0;
}
int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*start)(void *), void *argument)
{
	if (threads_started < 0) return __real_pthread_create(t, a, start, argument);
	threads_started++;
	return 0; /* it has nothing left to do */
}
int __real_pthread_join(pthread_t, void **);
int __wrap_pthread_join(pthread_t t, void **result);
int __wrap_pthread_join(pthread_t t, void **result)
{
	return threads_started < 0 ? __real_pthread_join(t, result) : 0;
}

/* One for each core that this process may use, or each configuration, the caller's included; 64 beside it at most. */
static void test_threads(void **state)
{
	(void)state;
	static const struct {
		int cores, configurations, threads;
	} rows[] = {{4, 6, 3}, {4, 3, 2}, {4, 1, 0}, {1, 6, 0}, {2, 6, 1}, {0, 6, 0}, {-1, 6, 0}, {64, 80, 63},
		{65, 80, 64}, {100, 80, 64}, {100, 60, 59}};
	if (!wraps((void *)tune_compile_all)) skip();
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char source[4096] = KERNEL("f32") GRID "autotune key n\n";
		for (int k = 0; k < rows[i].configurations; k++)
			sprintf(source + strlen(source), "configuration T=%d\n", 32 + k);
		open_good(source);
		cores = rows[i].cores;
		threads_started = 0;
		blk_status s = tune(0);
		int got = threads_started;
		threads_started = -1;
		assert_int_equal(s, BLK_OK);
		if (got != rows[i].threads) fail_msg("row %zu: %d threads", i, got);
		assert_int_equal(seen.verdicts[32 + rows[i].configurations - 1], BLK_TUNE_GOOD);
		close_job();
	}
}

/* ---- The first that fits ---- */

static void test_first_that_fits(void **state)
{
	(void)state;
	static const struct {
		const char *facts, *configurations;
		unsigned threads;
	} rows[] = {{GRID, "configuration T=32\nconfiguration T=40\n", 32},
		{GRID, "configuration T=2000\nconfiguration T=40\n",
			40}, /* none of its programs fits a multiprocessor */
		{GRID, "configuration T=32,B=0\nconfiguration T=40\n", 40}, /* its grid divides by zero */
		{"grid 0 $B 63 -\n", "configuration T=32,B=62\nconfiguration T=40,B=65\n", 40}, /* -1 programs */
		{"grid 0 $B 63 -\n", "configuration T=32,B=63\nconfiguration T=40,B=65\n", 40}, /* none */
		{GRID "requires p3 $B <= ; n=p3 B=$B ; n <= B ; \n",
			"configuration T=32,B=99\nconfiguration T=40,B=101\n", 40},
		{GRID "max_spills $B\n", "configuration T=32,B=4,LOCAL=8\nconfiguration T=40\n",
			40},                                                                    /* does not load */
		{"grid 0 $B 63 -\n", "configuration T=32,B=0\nconfiguration T=40,B=1\n", 128}}; /* none: the defaults */
	setenv("BLK_TUNE", "first", 1);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char source[2048];
		snprintf(source, sizeof source, KERNEL("f32") "%sautotune key n\n%s", rows[i].facts,
			rows[i].configurations);
		open_good(source);
		blk_status s = blk_launch(kernel, NULL, NULL, JOB_ARGS);
		if (s) fail_msg("%zu: %s", i, blk_error());
		if (fake.threads != rows[i].threads) fail_msg("%zu: %u threads", i, fake.threads);
		close_job();
	}
	/* without a grid clause the first is said, but no launch is made of it */
	blk_info info;
	open_good(KERNEL("f32") "autotune key n\nconfiguration T=32\n");
	assert_int_equal(blk_kernel_info(kernel, JOB_ARGS, &info), BLK_OK);
	assert_string_equal(info.configuration, "T=32");
	close_job();
	setenv("BLK_TUNE", "auto", 1);
	open_good(KERNEL("f32") "autotune key n\nconfiguration T=32\n");
	assert_int_equal(blk_kernel_info(kernel, JOB_ARGS, &info), BLK_OK);
	assert_string_equal(info.configuration, "");
	const blk_grid two = {2, 1, 1};
	assert_int_equal(blk_launch(kernel, NULL, &two, JOB_ARGS), BLK_OK);
	assert_int_equal(fake.threads, 32);
	close_job();
	setenv("BLK_TUNE", "first", 1); /* a grid that is given is one that fits */
	open_good(KERNEL("f32") "autotune key n\nconfiguration T=2000\nconfiguration T=40\n");
	assert_int_equal(blk_kernel_info(kernel, JOB_ARGS, &info), BLK_OK);
	assert_string_equal(info.configuration, "T=40");
	close_job();
	open_good(KERNEL("f32") GRID "autotune key n\nconfiguration T=2000\nconfiguration T=40\n");
	assert_int_equal(blk_launch(kernel, NULL, &two, JOB_ARGS), BLK_OK);
	assert_int_equal(fake.threads, 40);
	assert_int_equal(fake.grid[0], 2);
	close_job();
	setenv("BLK_TUNE", "auto", 1);
	open_good(KERNEL("f32") "grid 0 p3 neg\nautotune key n\nconfiguration T=32\n");
	assert_int_equal(
		blk_kernel_info(kernel, JOB_ARGS, &info), BLK_OK); /* nothing can be tried, and nothing fails */
	assert_string_equal(info.configuration, "");
	close_job();
}

/* A failure that may pass is no reason to take the next one: the defaults run, and nothing is remembered. */
static void test_passing_failure(void **state)
{
	(void)state;
	setenv("BLK_TUNE", "first", 1);
	int defaults = 0, first = 0;
	for (int at = 1;; at++) {
		fake_reset();
		open_good(KERNEL("f32") GRID "autotune key n\nconfiguration T=32\nconfiguration T=40\n");
		fake.calls = 0;
		fake.fail_at = at;
		fake.fail_with = CUDA_OUT_OF_MEMORY;
		blk_status s = blk_launch(kernel, NULL, NULL, JOB_ARGS);
		bool hit = fake.failed_call != NULL;
		if (!s) defaults += fake.threads == 128, first += fake.threads == 32;
		/* but where it is only not known what the first one takes */
		if (!s && fake.threads == 40 && !strstr(fake.failed_call, "cuFuncGetAttribute") &&
			!strstr(fake.failed_call, "cuOccupancy") && !strstr(fake.failed_call, "cuCtxPush"))
			fail_msg("%s: the second", fake.failed_call);
		close_job();
		if (!hit) break;
	}
	assert_true(defaults >= 2 && first >= 1);
}

/* ---- What is known already ---- */

static void test_best_known(void **state)
{
	(void)state;
	static float nobodys[N]; /* memory that the driver does not know */
	setenv("BLK_CACHE", "on", 1);
	times[32] = 2;
	const char *source = KERNEL("f32") GRID "autotune key n\nconfiguration T=32\n";
	open_good(source);
	assert_int_equal(tune(0), BLK_OK);
	close_job();
	open_good(KERNEL("f32") GRID "autotune key n\nconfiguration T=32\nconfiguration T=40\n");
	assert_int_equal(
		blk_launch(kernel, NULL, NULL, BLK_ARGS(blk_ptr(nobodys), blk_buf(x), blk_buf(y), blk_i32(N))), BLK_OK);
	assert_non_null(strstr(blk_note(), "z is a bare pointer"));
	assert_non_null(strstr(blk_note(), "; it runs with the best that is known: T=32"));
	assert_int_equal(fake.threads, 32);
	/* only read, its size does not matter */
	times[40] = 1;
	assert_int_equal(
		blk_launch(kernel, NULL, NULL, BLK_ARGS(blk_buf(z), blk_ptr(nobodys), blk_buf(y), blk_i32(N - 4))),
		BLK_OK);
	assert_string_equal(blk_note(), "");
	assert_int_equal(fake.threads, 40);
	close_job();
	/* of a bad one nothing is expected, though it is the first */
	remove_all(folder);
	assert_int_equal(mkdir(folder, 0700), 0);
	fake.wrong_threads = 40;
	open_good(KERNEL("f32") GRID "autotune key n\nconfiguration T=48\nconfiguration T=40\n");
	assert_int_equal(tune(0), BLK_OK);
	assert_int_equal(seen.verdicts[40], BLK_TUNE_WRONG);
	close_job();
	setenv("BLK_TUNE", "first", 1);
	open_good(KERNEL("f32") GRID "autotune key n\nconfiguration T=40\nconfiguration T=56\n");
	assert_int_equal(blk_launch(kernel, NULL, NULL, JOB_ARGS), BLK_OK);
	assert_int_equal(fake.threads, 56);
	close_job();
}

/* What could not be tuned for the want of a size is, once each pointer has one; null has. */
static void test_sizes_come_later(void **state)
{
	(void)state;
	static float nobodys[N];
	times[40] = 0.5;
	open_good(KERNEL("f32") "param w *f32\n" GRID "autotune key n\nconfiguration T=32\nconfiguration T=40\n");
	const blk_arg n = blk_i32(N), none = blk_ptr(NULL);
	const struct {
		blk_arg z, w;
		unsigned threads;
	} rows[] = {{blk_ptr(nobodys), none, 128}, {blk_buf(z), blk_ptr(nobodys), 128}, {blk_buf(z), none, 40},
		{blk_ptr(nobodys), none, 40}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const blk_arg args[] = {rows[i].z, blk_buf(x), blk_buf(y), n, rows[i].w};
		assert_int_equal(blk_launch(kernel, NULL, NULL, args, 5), BLK_OK);
		if (fake.threads != rows[i].threads) fail_msg("%zu: %u threads: %s", i, fake.threads, blk_note());
	}
	close_job();
}

static void test_visit_stops(void **state)
{
	(void)state;
	open_good(KERNEL("f32") GRID "autotune key n\nconfiguration T=32\nconfiguration T=40\nconfiguration T=48\n");
	for (int most = 1; most <= 3; most++) {
		assert_int_equal(tune(most), BLK_OK);
		assert_int_equal(seen.shown, most);
	}
	close_job();
	/* a kernel without a clause has nothing to show */
	open_good(KERNEL("f32") GRID);
	assert_int_equal(tune(0), BLK_OK);
	assert_int_equal(seen.shown, 0);
	close_job();
}

/* ---- Estimates ---- */

static void test_estimates(void **state)
{
	(void)state;
	times[32] = times[48] = 0.05;
	/* 1e12 operations by one program: 16 ms at 64e12 a second and multiprocessor; by 100 programs a hundredth. */
	open_good(KERNEL("f32") GRID
		"cost flops p3 1e10 *\nautotune key n\nconfiguration T=32,B=1\nconfiguration T=40,B=1024\n"
		"configuration T=48,B=1\n");
	times[32] = times[48] = 0.2;
	assert_int_equal(tune(0), BLK_OK);
	assert_int_equal(seen.verdicts[40], BLK_TUNE_PRUNED);
	assert_non_null(strstr(seen.reasons[40], "by the cost clause its grid takes at least 15.6 ms"));
	assert_int_equal(timings[40], 0);
	assert_int_equal(seen.verdicts[48], BLK_TUNE_GOOD);
	close_job();
	/* Of what the memory and the units need the longer counts. */
	open_good(KERNEL("f32") GRID "cost bytes p3 12 *\ncost flops p3\nautotune key n\nconfiguration "
				     "T=32,B=1\nconfiguration T=40,B=1024\n");
	assert_int_equal(tune(0), BLK_OK);
	assert_int_equal(seen.verdicts[40], BLK_TUNE_GOOD); /* 1.2 kB */
	close_job();
	/* Spilling is much beyond four times the least and 256 bytes. */
	open_good(KERNEL("f32") GRID "autotune key n\nconfiguration T=32,LOCAL=100\nconfiguration T=40,LOCAL=655\n"
				     "configuration T=48,LOCAL=656\n");
	assert_int_equal(tune(0), BLK_OK);
	assert_int_equal(seen.verdicts[40], BLK_TUNE_GOOD);
	assert_int_equal(seen.verdicts[48], BLK_TUNE_PRUNED);
	assert_non_null(strstr(seen.reasons[48], "it spills 656 bytes a thread, another configuration 100"));
	close_job();
	open_good(KERNEL("f32") GRID "autotune key n\nconfiguration T=32\nconfiguration T=40,LOCAL=255\n"
				     "configuration T=48,LOCAL=256\n");
	assert_int_equal(tune(0), BLK_OK);
	assert_int_equal(seen.verdicts[40], BLK_TUNE_GOOD);
	assert_int_equal(seen.verdicts[48], BLK_TUNE_PRUNED);
	close_job();
}

/* ---- A search ---- */

/* What an order puts first is tried; what cannot be used lets the next one in, and costs no time. */
static void test_search(void **state)
{
	(void)state;
	memset(times, 0, sizeof times);
	open_good(KERNEL("f32") GRID "autotune key n\ntry 2\nconfiguration T=32\ntime p3 =0 @0 @0 +\n"
				     "configuration T=40\ntime 0 0 /\nconfiguration T=48\ntime p3\n"
				     "configuration T=56\ntime -1\nconfiguration T=64\ntime 3 p3 *\n");
	assert_int_equal(tune(0), BLK_OK);
	assert_int_equal(seen.verdicts[48], BLK_TUNE_GOOD);
	assert_int_equal(seen.verdicts[32], BLK_TUNE_GOOD);
	for (unsigned t = 40; t <= 64; t += t == 40 ? 16 : 8) {
		assert_int_equal(seen.verdicts[t], BLK_TUNE_UNKNOWN);
		assert_int_equal(timings[t], 0);
	}
	close_job();
	/* Spilling and what is too large for the device: T=32 and T=2000 are out, and two come after them. */
	open_good(KERNEL("f32") GRID "autotune key n\ntry 2\nconfiguration T=32,LOCAL=8\ntime 1\n"
				     "configuration T=2000\ntime 2\nconfiguration T=48\ntime 3\n"
				     "configuration T=56\ntime 4\nconfiguration T=64\ntime 5\n");
	assert_int_equal(tune(0), BLK_OK);
	assert_int_equal(seen.verdicts[32], BLK_TUNE_RESOURCES);
	assert_non_null(strstr(seen.reasons[32], "it spills 8 bytes a thread"));
	assert_int_equal(seen.verdicts[2000], BLK_TUNE_RESOURCES);
	assert_int_equal(timings[32] + timings[2000], 0);
	assert_int_equal(seen.verdicts[48], BLK_TUNE_GOOD);
	assert_int_equal(seen.verdicts[56], BLK_TUNE_GOOD);
	assert_int_equal(seen.verdicts[64], BLK_TUNE_UNKNOWN);
	close_job();
	/* Where all spill, they are what there is. */
	open_good(KERNEL("f32") GRID "autotune key n\ntry 2\nconfiguration T=32,LOCAL=8\ntime 1\n"
				     "configuration T=40,LOCAL=8\ntime 2\n");
	assert_int_equal(tune(0), BLK_OK);
	assert_int_equal(seen.verdicts[32], BLK_TUNE_GOOD);
	assert_int_equal(seen.verdicts[40], BLK_TUNE_GOOD);
	close_job();
	/* It stops at as many again; but where nothing can be used it goes on until something can. */
	open_good(KERNEL("f32") GRID
		"autotune key n\ntry 1\nconfiguration T=2000\ntime 1\nconfiguration T=2032\ntime 2\n"
		"configuration T=2064\ntime 3\nconfiguration T=40\ntime 4\nconfiguration T=48\ntime 5\n");
	assert_int_equal(tune(0), BLK_OK);
	assert_int_equal(seen.verdicts[40], BLK_TUNE_GOOD);
	assert_int_equal(seen.best, 40);
	assert_int_equal(seen.verdicts[48], BLK_TUNE_UNKNOWN);
	close_job();
	/* Without an order those that are tried are spread. */
	open_good(
		KERNEL("f32") GRID "autotune key n\ntry 2\nconfiguration T=32\nconfiguration T=40\nconfiguration T=48\n"
				   "configuration T=56\n");
	assert_int_equal(tune(0), BLK_OK);
	assert_int_equal(seen.verdicts[32], BLK_TUNE_GOOD);
	assert_int_equal(seen.verdicts[40], BLK_TUNE_UNKNOWN);
	assert_int_equal(seen.verdicts[48], BLK_TUNE_GOOD);
	assert_int_equal(seen.verdicts[56], BLK_TUNE_UNKNOWN);
	close_job();
}

/* Arguments of one key share a choice, unless a condition of the block refuses it for one of them. */
static void test_coarse_keys(void **state)
{
	(void)state;
	const blk_arg all[] = {blk_buf(NULL), blk_buf(NULL), blk_buf(NULL), blk_i32(0)};
	memset(times, 0, sizeof times);
	setenv("BLK_TUNE", "auto", 1);
	times[40] = 0.1;
	open_good(KERNEL("f32") GRID "autotune key n\nkey p3 next_pow2 ; next_pow2(n)\nconfiguration T=32\nfits 1\n"
				     "configuration T=40\nfits p3 70 >=\n");
	static const struct {
		int n;
		unsigned threads, timed; /* timed: whether something was */
	} rows[] = {{100, 40, 1}, {84, 40, 0}, {92, 40, 0}, {68, 32, 1}, {100, 40, 0}, {68, 32, 0}, {60, 32, 1}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		blk_arg args[4];
		memcpy(args, all, sizeof args);
		args[0] = blk_buf(z), args[1] = blk_buf(x), args[2] = blk_buf(y), args[3] = blk_i32(rows[i].n);
		memset(timings, 0, sizeof timings);
		assert_int_equal(blk_launch(kernel, NULL, NULL, args, 4), BLK_OK);
		if (fake.threads != rows[i].threads || (timings[32] + timings[40] > 0) != rows[i].timed)
			fail_msg("%zu: %u threads, %u timings", i, fake.threads, timings[32] + timings[40]);
	}
	close_job();
	unsetenv("BLK_TUNE");
}

/* A device that says nothing of itself has no estimates. */
static void test_no_estimates(void **state)
{
	(void)state;
	open_good(KERNEL("f32") GRID
		"cost bytes p3 1e12 *\ncost flops p3 1e12 *\nautotune key n\nconfiguration T=32,B=1\n"
		"configuration T=40,B=1024\n");
	device->info.num_sms = 0;
	assert_int_equal(tune(0), BLK_OK);
	assert_int_equal(seen.verdicts[40], BLK_TUNE_GOOD);
	close_job();
	open_good(KERNEL("f32") GRID
		"cost bytes p3 1e12 *\nautotune key n\nconfiguration T=32,B=1\nconfiguration T=40,B=1024\n");
	device->info.theoretical_bytes_per_s = 0;
	assert_int_equal(tune(0), BLK_OK);
	assert_int_equal(seen.verdicts[40], BLK_TUNE_GOOD);
	close_job();
}

/* ---- Results ---- */

/* What is allowed depends on the element; the machine's second configuration adds one to each float. */
static void test_tolerances(void **state)
{
	(void)state;
	static const struct {
		const char *source, *says; /* null: it passes */
	} rows[] = {{KERNEL("f32") GRID, "(allowed 0.0001)"}, {KERNEL("f64") GRID, "(allowed 1e-10)"},
		{KERNEL("f16") GRID, "(allowed 0.01)"}, {KERNEL("bf16") GRID, NULL} /* of 1 in numbers up to 198 */,
		{KERNEL("f8e4m3") GRID, "(allowed 0.1)"}, {KERNEL("i32") GRID, "(allowed 0)"},
		{KERNEL("u8") GRID, "(allowed 0)"}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (int mine = 0; mine < 2; mine++) {
			char source[1024];
			snprintf(source, sizeof source, "%sautotune key n%s\nconfiguration T=32\nconfiguration T=40\n",
				rows[i].source, mine ? " tolerance 1e30" : "");
			fake_reset();
			fake.wrong_threads = 40;
			open_good(source);
			assert_int_equal(tune(0), BLK_OK);
			blk_tune_verdict wanted = mine || !rows[i].says ? BLK_TUNE_GOOD : BLK_TUNE_WRONG;
			/* halves of floats that are no numbers are far by any measure */
			bool strange = strstr(rows[i].source, "*f8") || strstr(rows[i].source, "*f16");
			if (seen.verdicts[40] != wanted && !(mine && strange))
				fail_msg("%zu, %d: verdict %d, %s", i, mine, (int)seen.verdicts[40], seen.reasons[40]);
			if (!mine && rows[i].says && !strstr(seen.reasons[40], rows[i].says))
				fail_msg("%zu: %s", i, seen.reasons[40]);
			close_job();
		}
}

/* Elements that are infinite in both count for nothing; against results of zero any difference is infinitely far. */
static void test_odd_numbers(void **state)
{
	(void)state;
	static const struct {
		float first, rest; /* of x */
		bool bare;         /* a pointer, where the norm is over what has changed */
		const char *says;
	} rows[] = {{INFINITY, 1, false, "by 0.5 "}, {NAN, 1, false, "by 0.5 "}, {1, 1, false, "by 0.5 "},
		{0, 0, false, "by inf "}, {INFINITY, 1, true, "by 0.5 "}, {0, 0, true, "by inf "},
		{2, 2, true, "by 0.25 "}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		float values[N], sevens[N];
		fake_reset();
		fake.wrong_threads = 40;
		open_good(KERNEL("f32") GRID "autotune key n\nconfiguration T=32\nconfiguration T=40\n");
		for (int k = 0; k < N; k++) values[k] = k ? rows[i].rest : rows[i].first, sevens[k] = 7;
		assert_int_equal(blk_buffer_write(x, 0, values, sizeof values), BLK_OK);
		assert_int_equal(blk_buffer_write(y, 0, values, sizeof values), BLK_OK);
		assert_int_equal(blk_buffer_write(z, 0, sevens, sizeof sevens), BLK_OK);
		memset(&seen, 0, sizeof seen);
		blk_tune_options o = {.visit = note_trial, .again = 1};
		const blk_arg out = rows[i].bare ? blk_ptr(blk_buffer_pointer(z)) : blk_buf(z);
		/* x + x against x + x + 1: sqrt(N) / (2 |x| sqrt(N)), but for the one that is infinite */
		assert_int_equal(
			blk_kernel_tune(kernel, NULL, BLK_ARGS(out, blk_buf(x), blk_buf(y), blk_i32(N)), &o, NULL),
			BLK_OK);
		assert_int_equal(seen.verdicts[40], BLK_TUNE_WRONG);
		if (!strstr(seen.reasons[40], rows[i].says)) fail_msg("%zu: %s", i, seen.reasons[40]);
		close_job();
	}
}

/* What another process has compared with the first is only timed here. */
static void test_checked_before(void **state)
{
	(void)state;
	uint64_t bits[SIGNATURE_PARAMETERS], promises;
	open_good(KERNEL("f32") GRID "autotune key n\nconfiguration T=32\nconfiguration T=40\n");
	const blk_arg args[] = {blk_buf(z), blk_buf(x), blk_buf(y), blk_i32(N)};
	assert_int_equal(launch_arguments(kernel, args, 4, bits, &promises), BLK_OK);
	tune_job j = {.kernel = kernel, .args = args, .bits = bits, .promises = promises};
	assert_int_equal(tune_job_begin(&j), BLK_OK);
	j.results[1].checked = true;
	assert_int_equal(tune_trials(&j), BLK_OK);
	assert_int_equal(fake.launches, 1); /* the first one's */
	assert_int_equal(j.results[1].verdict, BLK_TUNE_GOOD);
	assert_true(timings[32] > 0 && timings[40] > 0);
	tune_job_end(&j);
	close_job();
}

/* A configuration whose tensor maps cannot be made has no resources to run with; a pointer that is null has nothing to
 * be reset. */
static void test_maps_and_nulls(void **state)
{
	(void)state;
	open_good(KERNEL("f32") "param w *f32\n" GRID "written 4\nmap f32 0 8 8 ; p1 ; 100 ; 1 ; 512\n"
				"autotune key n reset w\nconfiguration T=32\nconfiguration T=40\n");
	const blk_arg args[] = {blk_buf(z), blk_buf(x), blk_buf(y), blk_i32(N), blk_ptr(NULL)};
	blk_tune_options o = {.visit = note_trial, .again = 1};
	memset(&seen, 0, sizeof seen);
	assert_int_equal(blk_kernel_tune(kernel, NULL, args, 5, &o, NULL), BLK_OK);
	assert_int_equal(seen.verdicts[32], BLK_TUNE_GOOD);
	assert_true(fake.encodes > 0);
	blk_buffer *other; /* of which no map is known */
	assert_int_equal(blk_buffer_create(device, 4 * N, &other), BLK_OK);
	const blk_arg moved[] = {blk_buf(z), blk_buf(other), blk_buf(y), blk_i32(N), blk_ptr(NULL)};
	fake.refuse_maps = 1;
	memset(&seen, 0, sizeof seen);
	assert_int_equal(blk_kernel_tune(kernel, NULL, moved, 5, &o, NULL), BLK_OK);
	assert_int_equal(seen.verdicts[32], BLK_TUNE_RESOURCES);
	assert_int_equal(seen.verdicts[40], BLK_TUNE_RESOURCES);
	assert_non_null(strstr(seen.reasons[40], "cuTensorMapEncodeTiled"));
	close_job();
}

/* ---- Trials that the driver ends ---- */

/* Measured by the driver's events, each call of which fails once: the launch has happened with what the trials left, or
 * the status and the sentence are the driver's; what the trials were given is as it was. */
static void test_driver_faults(void **state)
{
	(void)state;
	static const int codes[] = {CUDA_OUT_OF_MEMORY, CUDA_OUT_OF_RESOURCES, CUDA_ILLEGAL_ADDRESS};
	int failed = 0, resources = 0, tuned = 0;
	for (size_t c = 0; c < sizeof codes / sizeof codes[0]; c++)
		for (int at = 1, step = 1;; at += step) {
			float out[N];
			fake_reset();
			open_good(KERNEL("f32") GRID
				"cost bytes p3 12 *\nautotune key n\nconfiguration T=32\nconfiguration T=40\n");
			device->tune_clock = NULL;
			fake.calls = 0;
			fake.fail_at = at;
			fake.fail_with = codes[c];
			blk_status s = tune(0);
			bool hit = fake.failed_call != NULL;
			fake.fail_at = 0;
			if (s && !blk_error()[0]) fail_msg("%s: in silence", fake.failed_call);
			/* A configuration that is not compiled is left out; later a lost context is no success, but
			 * where what was used is freed. */
			if (!s && hit && codes[c] == CUDA_ILLEGAL_ADDRESS && at > 20 &&
				strcmp(fake.failed_call, "fake_cuCtxPushCurrent_v2") != 0)
				fail_msg("%s at %d: unseen", fake.failed_call, at);
			if (s && codes[c] == CUDA_ILLEGAL_ADDRESS && s != BLK_ERROR_KERNEL && s != BLK_ERROR_DRIVER)
				fail_msg("%s: %s", fake.failed_call, blk_status_text(s));
			failed += s != BLK_OK;
			tuned += !s && seen.verdicts[32] == BLK_TUNE_GOOD && seen.verdicts[40] == BLK_TUNE_GOOD;
			resources += !s && (seen.verdicts[32] == BLK_TUNE_RESOURCES ||
						   seen.verdicts[40] == BLK_TUNE_RESOURCES);
			/* what may pass is no verdict, but one call's failure is not both's */
			if (!s) assert_true(seen.verdicts[32] || seen.verdicts[40]);
			assert_int_equal(blk_buffer_read(z, 0, out, sizeof out), BLK_OK);
			for (int k = 0; k < N; k++) assert_true(out[k] == (float)k); /* trials write to copies */
			close_job();
			if (!hit) break;
			if (at > 150) step = 7; /* the rounds are alike */
		}
	print_message("%d failed, %d without resources, %d as ever\n", failed, resources, tuned);
	assert_true(failed > 100 && resources > 20 && tuned >= 3);
}

int main(void)
{
	/* The fake driver has one current context for all threads: configurations are compiled by one. */
	cpu_set_t allowed, one;
	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
		for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
			if (CPU_ISSET(i, &allowed)) CPU_SET(i, &one);
	sched_setaffinity(0, sizeof one, &one);
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(test_clauses),
		T(test_many_keys),
		T(test_each_key),
		T(test_threads),
		T(test_given_grids),
		T(test_first_that_fits),
		T(test_passing_failure),
		T(test_best_known),
		T(test_sizes_come_later),
		T(test_visit_stops),
		T(test_estimates),
		T(test_search),
		T(test_coarse_keys),
		T(test_no_estimates),
		T(test_tolerances),
		T(test_odd_numbers),
		T(test_checked_before),
		T(test_maps_and_nulls),
		T(test_driver_faults),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
