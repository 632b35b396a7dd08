/* The tuner against a device and a clock that exist only in memory: which configurations are timed, how often, which
 * one wins; what is ruled out before; and records that survive whatever happens to their files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_device.h"
#include "runtime/tune/tune.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* Configurations differ in the threads of a program, by which the machine knows them. */
#define HEAD                                                                                                           \
	"kernel add\nsymbol add\nparam z *f32\nparam x *const f32\nparam y *const f32\nparam n i32\nconst T i32 128\n" \
	"const B i32 64\nconst LOCAL i32 0\nwritten 0\ngrid 0 p3 $B cdiv\nthreads $T\nshared 0\n"                      \
	"source 0123456789abcdef0123456789abcdef\nautotune key n\n"
enum { N = 1000, MOST = 64 };

typedef struct place {
	blk_device *device;
	blk_kernel *kernel;
	blk_buffer *z, *x, *y;
	int32_t n;
} place;

static char folder[64];

/* ---- The clock ---- */

static double times[4096]; /* by threads */
static unsigned timings[4096];
static double noise;
static uint64_t seed;

static double uniform(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(seed >> 11) / 9007199254740992.0;
}

static unsigned threads_of(const char *configuration)
{
	const char *at = strstr(configuration, "T=");
	return at ? (unsigned)atoi(at + 2) : 0;
}

/* Other work on the machine adds time: a little to every run, much to one in ten. */
static double tell_time(const char *configuration)
{
	unsigned t = threads_of(configuration);
	timings[t]++;
	double spike = uniform() < 0.1 ? 1 + 2 * uniform() : 1;
	return times[t] * (1 + noise * uniform()) * (noise > 0 ? spike : 1);
}

/* ---- The device ---- */

static int no_fsync(int fd)
{
	(void)fd;
	return 0;
}
static ssize_t small_write(int fd, const void *from, size_t n)
{
	return write(fd, from, n < 16 ? n : 16);
}
static cache_files quick;
static const device_seams seams = {.cuda = &fake_api, .compiler = &fake_compiler, .files = &quick};

static blk_status open_place(place *p, const char *configurations)
{
	static char source[65536];
	blk_module *m;
	float values[N];
	snprintf(source, sizeof source, HEAD "%s", configurations);
	*p = (place){.n = N};
	assert_int_equal(device_open_with("cuda", &seams, &p->device), BLK_OK);
	p->device->tune_clock = tell_time;
	blk_status s = blk_module_source(p->device, "add.blk", source, NULL, 0, &m);
	if (!s) s = blk_kernel_find(m, "add", &p->kernel);
	blk_buffer **buffers[] = {&p->z, &p->x, &p->y};
	for (int i = 0; i < N; i++) values[i] = (float)i;
	for (int i = 0; !s && i < 3; i++) {
		s = blk_buffer_create(p->device, sizeof values, buffers[i]);
		if (!s) s = blk_buffer_write(*buffers[i], 0, values, sizeof values);
	}
	return s;
}

static blk_status launch(place *p)
{
	return blk_launch(p->kernel, NULL, NULL, BLK_ARGS(blk_buf(p->z), blk_buf(p->x), blk_buf(p->y), blk_i32(p->n)));
}

static void check_result(place *p)
{
	float z[N];
	assert_int_equal(blk_buffer_read(p->z, 0, z, sizeof z), BLK_OK);
	for (int i = 0; i < p->n; i++)
		if (z[i] != 2 * (float)i) fail_msg("z[%d] is %g", i, (double)z[i]);
}

typedef struct table {
	blk_tune_verdict verdicts[4096];
	char reasons[4096][160];
	unsigned best;
} table;
static table seen;

static int note_trial(void *context, const blk_tune_trial *t)
{
	(void)context;
	unsigned n = threads_of(t->configuration);
	seen.verdicts[n] = t->verdict;
	snprintf(seen.reasons[n], sizeof seen.reasons[n], "%s", t->reason);
	if (t->chosen) seen.best = n;
	return 0;
}

static double last_best; /* as progress told it */
static void note_progress(void *context, uint32_t done, uint32_t total, double best_ms)
{
	(void)context, (void)done, (void)total;
	last_best = best_ms;
}

static uint32_t tune(place *p, int again)
{
	uint32_t timed = 0;
	memset(&seen, 0, sizeof seen);
	memset(timings, 0, sizeof timings);
	blk_tune_options o = {.visit = note_trial, .progress = note_progress, .again = again};
	assert_int_equal(blk_kernel_tune(p->kernel, NULL,
				 BLK_ARGS(blk_buf(p->z), blk_buf(p->x), blk_buf(p->y), blk_i32(p->n)), &o, &timed),
		BLK_OK);
	return timed;
}

static int remove_all(const char *path)
{
	char inner[600];
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
		snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
		if (unlink(inner) != 0) remove_all(inner);
	}
	if (d) closedir(d);
	return rmdir(path);
}

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/blk_tune_XXXXXX");
	if (!mkdtemp(folder)) return -1;
	setenv("BLK_CACHE_DIR", folder, 1);
	unsetenv("BLK_CACHE");
	unsetenv("BLK_TUNE");
	fake_reset();
	note_clear();
	noise = 0;
	seed = 1;
	quick = cache_system_files;
	quick.fsync = no_fsync;
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	return remove_all(folder);
}

/* ---- Rounds ---- */

static void list_configurations(char *out, size_t room, int n)
{
	for (int i = 0, at = 0; i < n; i++) at += snprintf(out + at, room - (size_t)at, "configuration T=%d\n", 32 + i);
}

static void test_rounds(void **state)
{
	(void)state;
	char list[2048];
	place p;
	unsigned all = 0, by_rank[16];
	list_configurations(list, sizeof list, 16);
	for (int i = 0; i < 16; i++) times[32 + i] = 1 + 0.1 * ((i * 7 + 3) % 16); /* ranks in no order */
	assert_int_equal(open_place(&p, list), BLK_OK);
	assert_int_equal(tune(&p, 0), 16);
	for (int i = 0; i < 16; i++) {
		by_rank[(i * 7 + 3) % 16] = timings[32 + i];
		all += timings[32 + i];
	}
	/* 3 runs for all, 6 for the faster half, 12 for a quarter, 24 for the last two. */
	static const unsigned expected[16] = {45, 45, 21, 21, 9, 9, 9, 9, 3, 3, 3, 3, 3, 3, 3, 3};
	for (int i = 0; i < 16; i++)
		if (by_rank[i] != expected[i]) fail_msg("rank %d: %u timings, not %u", i, by_rank[i], expected[i]);
	assert_true(all < 16 * 45 / 3);
	assert_true(times[seen.best] == 1);
	assert_int_equal(launch(&p), BLK_OK);
	assert_int_equal(fake.threads, seen.best);
	check_result(&p);
	blk_device_close(p.device);
	/* The next start times nothing, and a configuration more times only itself. */
	assert_int_equal(open_place(&p, list), BLK_OK);
	assert_int_equal(tune(&p, 0), 0);
	assert_true(times[seen.best] == 1);
	blk_device_close(p.device);
	strcat(list, "configuration T=999\n");
	times[999] = 0.5;
	assert_int_equal(open_place(&p, list), BLK_OK);
	assert_int_equal(tune(&p, 0), 1);
	for (int i = 0; i < 16; i++) assert_int_equal(timings[32 + i], 0);
	assert_int_equal(seen.best, 999);
	blk_device_close(p.device);
	assert_null(fake_leak());
}

static void test_ties_stay(void **state)
{
	(void)state;
	char list[2048];
	place p;
	list_configurations(list, sizeof list, 8);
	for (int i = 0; i < 8; i++) times[32 + i] = 1 + 0.001 * i;
	assert_int_equal(open_place(&p, list), BLK_OK);
	tune(&p, 0);
	for (int i = 0; i < 8; i++) assert_int_equal(timings[32 + i], 45); /* none is worth dropping */
	assert_int_equal(seen.best, 32);
	blk_device_close(p.device);
}

static void test_noise(void **state)
{
	(void)state;
	enum { SEEDS = 1000, COUNT = 24 };
	char list[2048];
	place p;
	int wrong = 0;
	setenv("BLK_CACHE", "off", 1);
	list_configurations(list, sizeof list, COUNT);
	assert_int_equal(open_place(&p, list), BLK_OK);
	noise = 0.02;
	for (int s = 1; s <= SEEDS; s++) {
		double best = 1e9;
		seed = (uint64_t)s * 977;
		for (int i = 0; i < COUNT; i++) {
			times[32 + i] = 1 + uniform();
			if (times[32 + i] < best) best = times[32 + i];
		}
		tune(&p, 1);
		if (times[seen.best] > 1.02 * best) wrong++;
	}
	blk_device_close(p.device);
	if (wrong > SEEDS / 1000) fail_msg("in %d of %d runs something else than the best won", wrong, (int)SEEDS);
}

/* ---- What is ruled out ---- */

static void test_pruned(void **state)
{
	(void)state;
	place p;
	for (int i = 0; i < 4096; i++) times[i] = 0.1;
	times[40] = 0.05;
	/* In order: the first one, the best, one that spills, one too large to be resident. */
	assert_int_equal(open_place(&p, "configuration T=32\nconfiguration T=40\nconfiguration T=48,LOCAL=2000\n"
					"configuration T=2000\n"),
		BLK_OK);
	assert_int_equal(tune(&p, 0), 4);
	assert_int_equal(seen.verdicts[48], BLK_TUNE_PRUNED);
	assert_non_null(strstr(seen.reasons[48], "spills 2000 bytes"));
	assert_int_equal(seen.verdicts[2000], BLK_TUNE_RESOURCES);
	assert_non_null(strstr(seen.reasons[2000], "does not fit"));
	assert_true(timings[48] == 0 && timings[2000] == 0 && timings[32] > 0);
	assert_int_equal(seen.best, 40);
	assert_true(last_best == 0.05);     /* what has no time is not better */
	assert_int_equal(fake.launches, 3); /* one check each, and none of what cannot run */
	blk_device_close(p.device);
}

/* The device moves 250 MB/s with 132 multiprocessors: what one of them alone has to do is known before it is timed. */
static void test_cost(void **state)
{
	(void)state;
	place p;
	times[32] = 0.05;
	times[40] = times[48] = 0.01;
	const char *source = "cost bytes p3 12 *\nconfiguration T=32,B=8\nconfiguration T=40,B=1024\n"
			     "configuration T=48,B=16\n";
	assert_int_equal(open_place(&p, source), BLK_OK);
	tune(&p, 0);
	assert_int_equal(seen.verdicts[40], BLK_TUNE_PRUNED); /* 12 kB by one: at least 1.6 ms */
	assert_non_null(strstr(seen.reasons[40], "cost clause"));
	assert_int_equal(timings[40], 0);
	assert_int_equal(seen.best, 48);
	blk_device_close(p.device);
	/* Without the clause nothing is known. */
	assert_int_equal(open_place(&p, strchr(source, '\n') + 1), BLK_OK);
	p.n = N - 1;
	tune(&p, 0);
	assert_int_equal(seen.verdicts[40], BLK_TUNE_GOOD);
	assert_true(timings[40] > 0);
	blk_device_close(p.device);
}

/* A configuration that these arguments do not fit is neither compiled nor recorded; the key is one for all n here. */
static void test_misfit(void **state)
{
	(void)state;
	place p;
	times[32] = 1;
	times[40] = 2;
	const char *source =
		"autotune axis T 32\nrequires p3 $B 16 * <= ; n=p3 B=$B ; n <= B * 16 ; a row fits\n"
		"configuration T=32,B=16\nfits p3 16 16 * <=\nconfiguration T=40,B=64\nfits p3 64 16 * <=\n";
	assert_int_equal(open_place(&p, source), BLK_OK);
	assert_int_equal(tune(&p, 0), 1);
	assert_int_equal(seen.verdicts[32], BLK_TUNE_MISFIT);
	assert_string_equal(seen.reasons[32], "the kernel requires n <= B * 16 (a row fits)");
	assert_int_equal(seen.best, 40);
	p.n = 200; /* what was chosen fits too */
	assert_int_equal(launch(&p), BLK_OK);
	assert_int_equal(fake.threads, 40);
	assert_int_equal(tune(&p, 0), 1);
	assert_int_equal(seen.best, 32);
	assert_int_equal(launch(&p), BLK_OK);
	assert_int_equal(fake.threads, 32);
	p.n = N; /* the newer choice does not fit, the older one does */
	assert_int_equal(launch(&p), BLK_OK);
	assert_int_equal(fake.threads, 40);
	assert_int_equal(tune(&p, 0), 0);
	assert_int_equal(seen.verdicts[32], BLK_TUNE_MISFIT);
	p.n = 1100;
	int before = fake.launches;
	assert_int_equal(launch(&p), BLK_ERROR_ARGUMENT);
	assert_string_equal(blk_error(),
		"kernel add requires n <= B * 16 (a row fits), which does not hold: n = 1100, B = 64; "
		"none of its 2 configurations fits either");
	assert_int_equal(fake.launches, before);
	blk_device_close(p.device);
	assert_int_equal(open_place(&p, source), BLK_OK); /* another start: both are known */
	p.n = 200;
	assert_int_equal(tune(&p, 0), 0);
	assert_int_equal(seen.best, 32);
	blk_device_close(p.device);
}

static void test_wrong(void **state)
{
	(void)state;
	place p;
	fake.wrong_threads = 40;
	times[32] = 2;
	times[40] = 0.1;
	times[48] = 1;
	assert_int_equal(open_place(&p, "configuration T=32\nconfiguration T=40\nconfiguration T=48\n"), BLK_OK);
	assert_int_equal(tune(&p, 0), 3);
	assert_int_equal(seen.verdicts[40], BLK_TUNE_WRONG);
	assert_int_equal(timings[40], 0);
	assert_int_equal(seen.best, 48);
	assert_int_equal(launch(&p), BLK_OK);
	check_result(&p);
	blk_device_close(p.device);
}

/* A fault takes the context; the error names the configuration, and the next start goes around it. */
static void test_fault(void **state)
{
	(void)state;
	place p;
	const char *list = "configuration T=32\nconfiguration T=40\nconfiguration T=48\n";
	times[32] = times[40] = times[48] = 1;
	fake.fault_threads = 40;
	assert_int_equal(open_place(&p, list), BLK_OK);
	assert_int_not_equal(launch(&p), BLK_OK);
	assert_non_null(strstr(blk_error(), "configuration T=40 failed"));
	blk_device_close(p.device);
	fake.lost = false; /* another process, another context */
	assert_int_equal(open_place(&p, list), BLK_OK);
	assert_int_equal(launch(&p), BLK_OK);
	check_result(&p);
	assert_false(fake.lost);
	assert_int_equal(tune(&p, 0), 0);
	assert_int_equal(seen.verdicts[40], BLK_TUNE_FAILED);
	blk_device_close(p.device);
}

/* What fails as memory is short has no verdict: it is tried again when the kernel is tuned next. */
static void test_short_memory(void **state)
{
	(void)state;
	place p;
	const char *list = "configuration T=32\nconfiguration T=40\nconfiguration T=48\n";
	times[32] = times[40] = times[48] = 1;
	fake.refuse_launch = 2;
	fake.refuse_with = CUDA_OUT_OF_MEMORY;
	assert_int_equal(open_place(&p, list), BLK_OK);
	assert_int_equal(launch(&p), BLK_OK);
	check_result(&p);
	assert_non_null(strstr(blk_note(), "kernel add: configuration T=40 was not tried to the end: out of device "));
	assert_int_equal(timings[32] > 0 && timings[40] == 0 && timings[48] > 0, 1);
	blk_device_close(p.device);
	/* then it is; the one that it would be compared with stays as good as it was */
	assert_int_equal(open_place(&p, list), BLK_OK);
	fake.refuse_launch = fake.launches + 1;
	assert_int_equal(tune(&p, 0), 1);
	assert_string_equal(blk_note(), "");
	for (int t = 32; t <= 48; t += 8) assert_int_equal(seen.verdicts[t], BLK_TUNE_GOOD);
	assert_int_equal(timings[32] == 0 && timings[40] > 0 && timings[48] == 0, 1);
	/* while it is timed: the fourth launch is the first that is */
	p.device->tune_clock = NULL;
	fake.refuse_launch = fake.launches + 4;
	tune(&p, 1);
	assert_int_equal(seen.verdicts[32], BLK_TUNE_UNKNOWN);
	assert_non_null(strstr(seen.reasons[32], "out of device memory"));
	assert_int_equal(seen.verdicts[40], BLK_TUNE_GOOD);
	blk_device_close(p.device);
	assert_null(fake_leak());
}

/* What cannot be copied cannot be tuned in another process, and a helper that is none is told from a trial. */
static void test_isolated_errors(void **state)
{
	(void)state;
	place p;
	setenv("BLK_TUNE", "isolated", 1);
	setenv("BLK_TRIAL", "/nowhere/blk-trial", 1);
	assert_int_equal(open_place(&p, "configuration T=32\nconfiguration T=40\n"), BLK_OK);
	assert_int_equal(launch(&p), BLK_ERROR_NOT_FOUND);
	assert_non_null(strstr(blk_error(), "BLK_TRIAL=/nowhere/blk-trial: No such file"));
	setenv("BLK_TRIAL", "/bin/true", 1);
	assert_int_equal(launch(&p), BLK_ERROR_INTERNAL);
	assert_non_null(strstr(blk_error(), "blk-trial ended"));
	static float nobodys[N];
	blk_arg bare = blk_ptr(nobodys);
	assert_int_equal(
		blk_kernel_tune(p.kernel, NULL, BLK_ARGS(blk_buf(p.z), bare, blk_buf(p.y), blk_i32(p.n)), NULL, NULL),
		BLK_ERROR_ARGUMENT);
	assert_non_null(strstr(blk_error(), "x is a bare pointer"));
	unsetenv("BLK_TRIAL");
	setenv("BLK_TUNE", "cached", 1); /* none of this has been recorded */
	assert_int_equal(launch(&p), BLK_OK);
	assert_int_equal(fake.threads, 128);
	blk_device_close(p.device);
	unsetenv("BLK_TUNE");
	assert_null(fake_leak());
}

/* ---- Bare pointers ---- */

/* One allocation of the driver's for all, as a framework makes it: a float before z, which is x, and y behind. */
enum { ONE = 4 * (2 * N + 2) };

static CUdeviceptr allocate_one(place *p)
{
	CUdeviceptr one = 0;
	fake.current = fake_primary;
	assert_int_equal(fake_api.cuMemAlloc_v2(&one, ONE), 0);
	fake.current = NULL;
	float *f = (float *)(uintptr_t)one;
	for (int i = 0; i < 2 * N + 2; i++) f[i] = (float)i;
	(void)p;
	return one;
}

static blk_status launch_one(place *p, CUdeviceptr one)
{
	const char *at = (const char *)(uintptr_t)one;
	return blk_launch(p->kernel, NULL, NULL,
		BLK_ARGS(blk_ptr(at + 4), blk_ptr(at + 4), blk_ptr(at + 4 + 4 * N), blk_i32(p->n)));
}

/* Each of the n numbers from the second on is added to `often` times, and nothing else is. */
static bool added(const place *p, CUdeviceptr one, int often)
{
	const float *f = (const float *)(uintptr_t)one;
	bool good = true;
	for (int i = 0; i < 2 * N + 2; i++)
		good = good && f[i] == (float)i + (float)(i >= 1 && i <= p->n ? often * (i + N) : 0);
	return good;
}

/* In place, by pointers into an allocation that only the driver knows. */
static void test_bare_pointers(void **state)
{
	(void)state;
	place p;
	times[32] = 2, times[40] = 0.1, times[48] = 1;
	fake.wrong_threads = 40;
	assert_int_equal(open_place(&p, "configuration T=32\nconfiguration T=40\nconfiguration T=48\n"), BLK_OK);
	CUdeviceptr one = allocate_one(&p);
	assert_int_equal(launch_one(&p, one), BLK_OK);
	assert_true(added(&p, one, 1));
	assert_string_equal(blk_note(), "");
	assert_int_equal(fake.threads, 48); /* 40 is faster, and wrong by one in numbers of thousands */
	assert_int_equal(fake.launches, 4);
	assert_int_equal(launch_one(&p, one), BLK_OK);
	assert_true(added(&p, one, 2));
	assert_int_equal(fake.launches, 5);
	fake_api.cuMemFree_v2(one);
	blk_device_close(p.device);
	assert_null(fake_leak());
}

/* Others write to the allocation that the arguments lie in, where the kernel does not, from one trial to the next: it
 * makes no configuration wrong. */
typedef struct beside {
	CUdeviceptr at;
	float value;
} beside;
/* Memory that the program has mapped in pieces: all that touch are one range, and a kernel that goes over several adds
 * once. */
static void test_mapped_in_pieces(void **state)
{
	(void)state;
	place p;
	enum { A = 2048, B = 512, HOLE = 256 };
	assert_int_equal(open_place(&p, "configuration T=32\nconfiguration T=40\n"), BLK_OK);
	CUdeviceptr one = allocate_one(&p), last = one + A + B + HOLE;
	fake_know(one, 0, 0);
	fake_know(0, one, A);
	fake_know(0, one + A, B);
	fake_know(0, last, ONE - (A + B + HOLE));
	fake.reserved.base = one - 4096;
	fake.reserved.bytes = 1 << 20;
	const struct {
		CUdeviceptr at, base;
		size_t bytes;
	} rows[] = {{one, one, A + B}, {one + A - 1, one, A + B}, {one + A, one, A + B}, {one + A + B - 1, one, A + B},
		{last, last, ONE - (A + B + HOLE)}, {one + A + B, 0, 0}, {last - 1, 0, 0}, {one - 1, 0, 0}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		memory_span s = {0};
		bool found = p.device->backend->range(p.device, rows[i].at, &s);
		if (found != (rows[i].bytes > 0) || (found && (s.base != rows[i].base || s.bytes != rows[i].bytes)))
			fail_msg("row %zu: %d, %llu bytes", i, found, (unsigned long long)s.bytes);
	}
	fake_know(0, one + A + B, HOLE);
	assert_int_equal(launch_one(&p, one), BLK_OK);
	assert_string_equal(blk_note(), "");
	assert_true(added(&p, one, 1));
	/* where the driver refuses one of its calls, the range is not known */
	for (int at = 1; at <= 3; at++) {
		memory_span s = {0};
		fake.current = fake_primary;
		fake.fail_at = fake.calls + at;
		fake.fail_with = 1;
		assert_false(p.device->backend->range(p.device, one, &s));
	}
	fake.fail_at = 0;
	fake.current = NULL;
	fake_know(one + A, 0, 0);
	fake_know(one + A + B, 0, 0);
	fake_know(last, 0, 0);
	fake_api.cuMemFree_v2(one);
	blk_device_close(p.device);
	assert_null(fake_leak());
}

static void write_beside(void *context, uint32_t done, uint32_t total, double best_ms)
{
	beside *b = context;
	(void)done;
	(void)total;
	(void)best_ms;
	b->value += 1;
	memcpy((void *)(uintptr_t)b->at, &b->value, sizeof b->value);
}
static void test_written_beside(void **state)
{
	(void)state;
	place p;
	times[32] = 2, times[40] = 0.1, times[48] = 1;
	fake.wrong_threads = 40;
	assert_int_equal(open_place(&p, "configuration T=32\nconfiguration T=40\nconfiguration T=48\n"), BLK_OK);
	CUdeviceptr one = allocate_one(&p);
	beside b = {.value = 1e6F};
	const char *at = (const char *)(uintptr_t)one;
	p.n = N / 2;
	b.at = one + 4 * (CUdeviceptr)(p.n + 10); /* behind what is written, before what is only read */
	memset(&seen, 0, sizeof seen);
	blk_tune_options o = {.visit = note_trial, .progress = write_beside, .context = &b};
	assert_int_equal(
		blk_kernel_tune(p.kernel, NULL,
			BLK_ARGS(blk_ptr(at + 4), blk_ptr(at + 4), blk_ptr(at + 4 + 4 * N), blk_i32(p.n)), &o, NULL),
		BLK_OK);
	assert_true(b.value > 1e6F + 3);
	assert_int_equal(seen.verdicts[32], BLK_TUNE_GOOD);
	assert_int_equal(seen.verdicts[40], BLK_TUNE_WRONG); /* by one in numbers of thousands */
	assert_int_equal(seen.verdicts[48], BLK_TUNE_GOOD);
	assert_true(memcmp((const void *)(uintptr_t)b.at, &b.value, sizeof b.value) == 0); /* nothing was put back */
	fake_api.cuMemFree_v2(one);
	blk_device_close(p.device);
	assert_null(fake_leak());
}

/* Whatever the driver refuses, and whenever: a launch that succeeds has added once, one that fails not at all. */
static void test_bare_faults(void **state)
{
	(void)state;
	static const int codes[] = {CUDA_OUT_OF_MEMORY, 1, CUDA_ILLEGAL_ADDRESS, CUDA_ASSERTED};
	int untried = 0, failed = 0;
	setenv("BLK_CACHE", "off", 1);
	times[32] = 2, times[40] = 1;
	for (size_t c = 0; c < sizeof codes / sizeof codes[0]; c++)
		for (int at = 1;; at++) {
			place p;
			fake_reset();
			assert_int_equal(open_place(&p, "configuration T=32\nconfiguration T=40\n"), BLK_OK);
			CUdeviceptr one = allocate_one(&p);
			note_clear();
			fake.calls = 0;
			fake.fail_at = at;
			fake.fail_with = codes[c];
			blk_status status = launch_one(&p, one);
			bool hit = fake.failed_call != NULL;
			if (!added(&p, one, status == BLK_OK)) fail_msg("%s: %s", fake.failed_call, blk_error());
			bool told = strstr(blk_note(), "it runs with its defaults") != NULL;
			if (status == BLK_OK && hit && fake.threads == 128 && !told)
				fail_msg("%s: untuned in silence", fake.failed_call);
			/* What takes the context is no reason to go on without, where its calls say so. */
			if (told && codes[c] >= CUDA_ILLEGAL_ADDRESS && !strstr(fake.failed_call, "Push") &&
				!strstr(fake.failed_call, "AddressRange"))
				fail_msg("%s: it went on after %d", fake.failed_call, codes[c]);
			untried += told;
			failed += status != BLK_OK;
			fake.fail_at = 0;
			fake_api.cuMemFree_v2(one);
			blk_device_close(p.device);
			assert_null(fake_leak());
			if (!hit) break;
		}
	assert_in_range(untried, 3, 100);
	assert_in_range(failed, 5, 300);
}

/* A configuration that takes the context leaves what it was given as it was. */
static void test_bare_fault_in_trial(void **state)
{
	(void)state;
	place p;
	times[32] = times[40] = 1;
	fake.fault_threads = 40;
	assert_int_equal(open_place(&p, "configuration T=32\nconfiguration T=40\n"), BLK_OK);
	CUdeviceptr one = allocate_one(&p);
	assert_int_not_equal(launch_one(&p, one), BLK_OK);
	assert_non_null(strstr(blk_error(), "configuration T=40 failed"));
	assert_true(added(&p, one, 0));
	fake_api.cuMemFree_v2(one);
	blk_device_close(p.device);
}

static float nobodys[2][N]; /* the fake machine reaches it, its driver knows nothing of it */

static blk_status launch_nobodys(place *p, int n)
{
	for (int i = 0; i < N; i++) nobodys[0][i] = (float)i;
	blk_status status = blk_launch(
		p->kernel, NULL, NULL, BLK_ARGS(blk_ptr(nobodys[1]), blk_ptr(nobodys[0]), blk_buf(p->y), blk_i32(n)));
	for (int i = 0; i < n; i++)
		if (!status && nobodys[1][i] != 2 * (float)i) fail_msg("z[%d] is %g", i, (double)nobodys[1][i]);
	return status;
}

/* Memory of unknown size: nothing is tried; the nearest key's configuration is used, and one is told. */
static void test_nearest(void **state)
{
	(void)state;
	static const struct {
		int n;
		unsigned best;
	} known[] = {{10, 32}, {100, 40}, {900, 48}};
	static const struct {
		int n;
		unsigned threads;
		const char *note;
	} asked[] = {{1, 32, "what is best for n=10: T=32"}, {31, 32, "what is best for n=10: T=32"},
		{32, 40, "what is best for n=100: T=40"}, {299, 40, "what is best for n=100: T=40"},
		{301, 48, "what is best for n=900: T=48"}, {900, 48, "what is best for n=900: T=48"},
		{1000, 48, "what is best for n=900: T=48"}};
	const char *list = "configuration T=32\nconfiguration T=40\nconfiguration T=48\n";
	place p;
	assert_int_equal(open_place(&p, list), BLK_OK);
	int before = fake.launches;
	assert_int_equal(launch_nobodys(&p, 500), BLK_OK); /* nothing is known at all */
	assert_int_equal(fake.launches, before + 1);
	assert_int_equal(fake.threads, 128);
	assert_non_null(strstr(blk_note(), "kernel add cannot be tuned: z is a bare pointer"));
	assert_non_null(strstr(blk_note(), "it runs with its defaults"));
	for (int i = 0; i < 3; i++) {
		for (int t = 32; t <= 48; t += 8) times[t] = 2;
		times[known[i].best] = 1;
		p.n = known[i].n;
		tune(&p, 0);
		assert_int_equal(seen.best, known[i].best);
	}
	for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
		/* 31 lies nearer to 10 than to 100: sqrt(10 * 100) is 31.6; sqrt(100 * 900) is 300 */
		before = fake.launches;
		setenv("BLK_TUNE", asked[i].n == 900 ? "always" : "auto", 1); /* always: as if it were not known */
		assert_int_equal(launch_nobodys(&p, asked[i].n), BLK_OK);
		if (asked[i].n == 900) continue; /* settled by tune() above */
		assert_int_equal(fake.launches, before + 1);
		if (fake.threads != asked[i].threads || !strstr(blk_note(), asked[i].note))
			fail_msg("n=%d: threads %u, note %s", asked[i].n, fake.threads, blk_note());
		assert_int_equal(launch_nobodys(&p, asked[i].n), BLK_OK); /* and is remembered */
		assert_int_equal(fake.threads, asked[i].threads);
	}
	/* Asked for, it is an error; with a buffer it is tuned after all. */
	blk_arg z = blk_ptr(nobodys[1]);
	assert_int_equal(
		blk_kernel_tune(p.kernel, NULL, BLK_ARGS(z, blk_buf(p.x), blk_buf(p.y), blk_i32(1000)), NULL, NULL),
		BLK_ERROR_ARGUMENT);
	before = fake.launches;
	p.n = 1000;
	times[40] = 0.5;
	unsetenv("BLK_TUNE");
	assert_int_equal(launch(&p), BLK_OK);
	assert_int_equal(fake.threads, 40);
	assert_int_equal(fake.launches, before + 4);
	check_result(&p);
	blk_device_close(p.device);
	assert_null(fake_leak());
}

/* Of a kernel with several keys the sum counts; records of other kernels, and damaged ones, do not. */
static void test_nearest_of_several(void **state)
{
	(void)state;
	char *where;
	place p;
	assert_int_equal(open_place(&p, "autotune key n,z\nconfiguration T=32\nconfiguration T=40\n"), BLK_OK);
	uint64_t bits[SIGNATURE_PARAMETERS] = {0}, promises = 7;
	tune_result none[2] = {{0}}, first[2] = {{BLK_TUNE_GOOD, 1, NULL, false}, {BLK_TUNE_GOOD, 2, NULL, false}},
		    second[2] = {{BLK_TUNE_GOOD, 2, NULL, false}, {BLK_TUNE_GOOD, 1, NULL, false}},
		    bad[2] = {{0}, {BLK_TUNE_WRONG, 0, NULL, false}};
	bits[3] = 64, bits[0] = 256; /* n is 64; z, a pointer, no number of anything */
	tune_record_write(p.kernel, bits, promises, first);
	bits[3] = 1024;
	tune_record_write(p.kernel, bits, promises, second);
	bits[3] = 250;
	assert_int_equal(tune_record_nearest(p.kernel, bits, promises, none, &where), 0);
	assert_string_equal(where, "n=64,z=256");
	free(where);
	bits[3] = 300;
	assert_int_equal(tune_record_nearest(p.kernel, bits, promises, none, &where), 1);
	free(where);
	assert_int_equal(tune_record_nearest(p.kernel, bits, promises, bad, &where), 0); /* the second best there */
	assert_string_equal(where, "n=1024,z=256");
	free(where);
	bits[3] = 1000, bits[0] = 512; /* 64 for another pointer: both are as far in that, so n decides */
	assert_int_equal(tune_record_nearest(p.kernel, bits, promises, none, &where), 1);
	free(where);
	bits[3] = 64, bits[0] = 512;
	tune_record_write(p.kernel, bits, promises, second);
	bits[3] = 1024, bits[0] = 512; /* 4 doublings of n are nearer than another z */
	assert_int_equal(tune_record_nearest(p.kernel, bits, promises, none, &where), 1);
	assert_string_equal(where, "n=64,z=512");
	free(where);
	bits[3] = (uint32_t)-5, bits[0] = 256; /* a negative number counts as 1: 64 is nearer */
	assert_int_equal(tune_record_nearest(p.kernel, bits, promises, none, &where), 0);
	free(where);
	bits[3] = 64;
	tune_record_write(p.kernel, bits, promises + 1, second); /* as near, but with other promises */
	assert_int_equal(tune_record_nearest(p.kernel, bits, promises + 1, none, &where), 1);
	free(where);
	assert_int_equal(tune_record_nearest(p.kernel, bits, promises, none, &where), 0);
	free(where);
	blk_device_close(p.device);
	assert_int_equal(open_place(&p, "autotune key n,z\nconfiguration T=99\nconfiguration T=98\n"), BLK_OK);
	assert_int_equal(tune_record_nearest(p.kernel, bits, promises, none, &where), TUNE_NONE); /* others' names */
	assert_null(where);
	blk_device_close(p.device);
}

/* ---- Records ---- */

static char *record_path(char *path, size_t room)
{
	snprintf(path, room, "%s/tune", folder);
	DIR *d = opendir(path);
	char name[300] = "";
	int n = 0;
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.') snprintf(name, sizeof name, "%s", e->d_name), n++;
	closedir(d);
	assert_int_equal(n, 1);
	snprintf(path, room, "%s/tune/%s", folder, name);
	return path;
}

static size_t slurp(const char *path, char *to, size_t room)
{
	int fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	ssize_t n = read(fd, to, room);
	close(fd);
	assert_true(n >= 0);
	return (size_t)n;
}

static void spill(const char *path, const char *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
}

/* A start with a damaged record computes the right thing with the right configuration, and makes the record whole. */
static void check_healed(const char *path, const char *good, size_t n, const char *what, size_t at)
{
	static char now[8192];
	place p;
	assert_int_equal(open_place(&p, "configuration T=32\nconfiguration T=40\n"), BLK_OK);
	if (launch(&p) || fake.threads != 40) fail_msg("%s %zu: threads %u: %s", what, at, fake.threads, blk_error());
	check_result(&p);
	if (!strstr(blk_note(), "damaged")) fail_msg("%s %zu: the record was believed", what, at);
	blk_device_close(p.device);
	if (slurp(path, now, sizeof now) != n || memcmp(now, good, n) != 0) fail_msg("%s %zu: not healed", what, at);
}

static void test_damaged_records(void **state)
{
	(void)state;
	char path[700], good[4096], bad[4096];
	place p;
	times[32] = 2;
	times[40] = 1;
	assert_int_equal(open_place(&p, "configuration T=32\nconfiguration T=40\n"), BLK_OK);
	assert_int_equal(launch(&p), BLK_OK);
	blk_device_close(p.device);
	record_path(path, sizeof path);
	size_t n = slurp(path, good, sizeof good);
	assert_in_range(n, 100, 2000);
	for (size_t cut = 0; cut < n; cut++) {
		spill(path, good, cut);
		check_healed(path, good, n, "cut to", cut);
	}
	for (size_t bit = 0; bit < 8 * n; bit++) {
		memcpy(bad, good, n);
		bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
		spill(path, bad, n);
		check_healed(path, good, n, "bit", bit);
	}
}

/* ---- Kills ---- */

#ifdef __SANITIZE_ADDRESS__
enum { KILLS = 200 }; /* a fork copies the sanitizer's shadow too */
#else
enum { KILLS = 1000 };
#endif
enum { KEYS = 4, ENTRY = 2000 };

static void entry_text(char *text, int key, unsigned round)
{
	memset(text, 'a' + (int)(round % 26), ENTRY);
	snprintf(text, ENTRY, "entry %d of round %u", key, round);
	text[ENTRY - 1] = 0;
}

static cache_key key_number(int i)
{
	return cache_digest(&i, sizeof i);
}

/* Entries and records over and over, each round with other contents, until the end. */
static void write_for_ever(place *p, uint64_t *bits, uint64_t promises)
{
	static char text[ENTRY];
	for (unsigned round = 1;; round++)
		for (int k = 0; k < KEYS; k++) {
			cache_key key = key_number(k);
			entry_text(text, k, round);
			cache_section part = {CACHE_SIGNATURE, text, ENTRY - 1};
			cache_put(&p->device->cache, &key, &part, 1);
			tune_result results[2] = {
				{BLK_TUNE_GOOD, 1 + round, NULL, false}, {BLK_TUNE_GOOD, 1, NULL, false}};
			bits[3] = (uint64_t)k;
			tune_record_write(p->kernel, bits, promises, results);
		}
}

static void check_all_there(place *p, uint64_t *bits, uint64_t promises, int kill_number)
{
	static char text[ENTRY];
	note_clear();
	for (int k = 0; k < KEYS; k++) {
		cache_key key = key_number(k);
		cache_entry e;
		unsigned round = 0;
		int which = -1;
		if (!cache_get(&p->device->cache, &key, &e))
			fail_msg("kill %d: entry %d is lost: %s", kill_number, k, blk_note());
		const char *s = cache_find(&e, CACHE_SIGNATURE)->bytes;
		assert_int_equal(sscanf(s, "entry %d of round %u", &which, &round), 2);
		entry_text(text, which, round);
		if (which != k || memcmp(text, s, ENTRY) != 0)
			fail_msg("kill %d: entry %d holds something else", kill_number, k);
		cache_entry_free(&e);
		tune_result results[2] = {{0}};
		bits[3] = (uint64_t)k;
		tune_record_read(p->kernel, bits, promises, results);
		if (results[0].verdict != BLK_TUNE_GOOD || results[1].verdict != BLK_TUNE_GOOD || results[1].ms != 1)
			fail_msg("kill %d: record %d is lost", kill_number, k);
	}
	assert_string_equal(blk_note(), "");
}

static int count_leftovers(const char *inner)
{
	char path[128];
	int n = 0;
	snprintf(path, sizeof path, "%s/%s", folder, inner);
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) n += strstr(e->d_name, ".tmp-") != NULL;
	if (d) closedir(d);
	return n;
}

static int count_all_leftovers(void)
{
	return count_leftovers("code") + count_leftovers("tune");
}

/* Or more, until enough have hit a store: on a busy machine the process is often killed before it has stored
 * anything. */
static void test_thousand_kills(void **state)
{
	(void)state;
	place p;
	uint64_t bits[SIGNATURE_PARAMETERS] = {0}, promises = 0;
	quick.write = small_write; /* so that a store takes long enough to be hit */
	assert_int_equal(open_place(&p, "configuration T=32\nconfiguration T=40\n"), BLK_OK);
	for (int i = 0; i < KILLS || (i < 20 * KILLS && count_all_leftovers() <= KILLS / 50); i++) {
		int ready[2];
		char c;
		assert_int_equal(pipe(ready), 0);
		fflush(NULL);
		pid_t child = fork();
		if (child == 0) {
			if (i == 0) { /* the first one writes each once and ends by itself */
				static char text[ENTRY];
				for (int k = 0; k < KEYS; k++) {
					cache_key key = key_number(k);
					tune_result results[2] = {
						{BLK_TUNE_GOOD, 1, NULL, false}, {BLK_TUNE_GOOD, 1, NULL, false}};
					entry_text(text, k, 0);
					cache_section part = {CACHE_SIGNATURE, text, ENTRY - 1};
					cache_put(&p.device->cache, &key, &part, 1);
					bits[3] = (uint64_t)k;
					tune_record_write(p.kernel, bits, promises, results);
				}
				_exit(0);
			}
			if (write(ready[1], "", 1) != 1) _exit(1);
			write_for_ever(&p, bits, promises);
		}
		close(ready[1]);
		if (i) {
			assert_int_equal(read(ready[0], &c, 1), 1);
			struct timespec wait = {0, (long)(uniform() * 2e6)}; /* up to 2 ms, some ten stores */
			nanosleep(&wait, NULL);
			kill(child, SIGKILL);
		}
		close(ready[0]);
		assert_int_equal(waitpid(child, NULL, 0), child);
		check_all_there(&p, bits, promises, i);
	}
	print_message("%d and %d stores were hit\n", count_leftovers("code"), count_leftovers("tune"));
	assert_true(count_all_leftovers() > KILLS / 50);
	blk_device_close(p.device);
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
		T(test_rounds),
		T(test_ties_stay),
		T(test_noise),
		T(test_pruned),
		T(test_cost),
		T(test_misfit),
		T(test_wrong),
		T(test_fault),
		T(test_short_memory),
		T(test_isolated_errors),
		T(test_bare_pointers),
		T(test_mapped_in_pieces),
		T(test_written_beside),
		T(test_bare_faults),
		T(test_bare_fault_in_trial),
		T(test_nearest),
		T(test_nearest_of_several),
		T(test_damaged_records),
		T(test_thousand_kills),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
