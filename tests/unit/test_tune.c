/* The tuner against a device and a clock that exist only in memory: which configurations are timed, how often, which
 * one wins; what is ruled out before; and records that survive whatever happens to their files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_device.h"
#include "runtime/tune.h"

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

static uint32_t tune(place *p, int again)
{
	uint32_t timed = 0;
	memset(&seen, 0, sizeof seen);
	memset(timings, 0, sizeof timings);
	blk_tune_options o = {.visit = note_trial, .again = again};
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
	blk_arg bare = blk_ptr(blk_buffer_pointer(p.x));
	assert_int_equal(blk_launch(p.kernel, NULL, NULL, BLK_ARGS(blk_buf(p.z), bare, blk_buf(p.y), blk_i32(p.n))),
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
	for (struct dirent *e; d && (e = readdir(d));) n += strncmp(e->d_name, ".tmp-", 5) == 0;
	if (d) closedir(d);
	return n;
}

static void test_thousand_kills(void **state)
{
	(void)state;
	place p;
	uint64_t bits[SIGNATURE_PARAMETERS] = {0}, promises = 0;
	quick.write = small_write; /* so that a store takes long enough to be hit */
	assert_int_equal(open_place(&p, "configuration T=32\nconfiguration T=40\n"), BLK_OK);
	for (int i = 0; i < KILLS; i++) {
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
	assert_true(count_leftovers("code") + count_leftovers("tune") > KILLS / 50);
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
		T(test_wrong),
		T(test_fault),
		T(test_isolated_errors),
		T(test_damaged_records),
		T(test_thousand_kills),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
