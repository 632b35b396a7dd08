/* Tuning records and marks as they should not be: lines of another form under a right checksum, records of other keys,
 * devices and versions, files that end early or go on, marks of the dead, the living and nobody; and records that go
 * out into a file and come back.  What is wrong is never believed, told where it is a loss, and written anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_device.h"
#include "runtime/tune/tune.h"
#include "wrapped.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- The system ---- */

static const char *failing; /* the call that fails now; null: none */
static int failure;

#define WRAP(type, failed, name, parameters, arguments)                                                                \
	type __real_##name parameters;                                                                                 \
	type __wrap_##name parameters;                                                                                 \
	type __wrap_##name parameters                                                                                  \
	{                                                                                                              \
		if (!failing || strcmp(failing, #name) != 0) return __real_##name arguments;                           \
		errno = failure;                                                                                       \
		return failed;                                                                                         \
	}
WRAP(int, -1, flock, (int a, int b), (a, b))
WRAP(ssize_t, -1, pwrite, (int a, const void *b, size_t c, off_t d), (a, b, c, d))
WRAP(int, -1, ftruncate, (int a, off_t b), (a, b))
WRAP(int, -1, unlink, (const char *a), (a))

/* ---- The job ---- */

#define SOURCE                                                                                                         \
	"kernel add\nsymbol add\nparam z *f32\nparam x *const f32\nparam y *const f32\nparam n i32\nconst T i32 128\n" \
	"written 0\ngrid 0 p3 64 cdiv\nthreads $T\nshared 0\nsource 0123456789abcdef0123456789abcdef\n"                \
	"autotune key n\nconfiguration T=32\nconfiguration T=40\n"
enum { N = 100, MOST = 8192 };

static char folder[64], tune_folder[80];
static blk_device *device;
static blk_kernel *kernel;
static blk_buffer *buffer;
static cache_files quick;
static unsigned timings[64]; /* by threads */

static int no_fsync(int fd)
{
	(void)fd;
	return 0;
}
static void (*watcher)(const char *configuration); /* while it is tried; null: nobody */
static double tell_time(const char *configuration)
{
	if (watcher) watcher(configuration);
	int t = atoi(configuration + 2);
	timings[t]++;
	return t == 40 ? 1 : 2;
}

static const char *job_source = SOURCE;
static void open_job_with(const char *source, const blk_define *defines, size_t n)
{
	const device_seams seams = {.cuda = &fake_api, .compiler = &fake_compiler, .files = &quick};
	blk_module *m;
	assert_int_equal(device_open_with("cuda", &seams, &device), BLK_OK);
	device->tune_clock = tell_time;
	assert_int_equal(blk_module_source(device, "add.blk", source, defines, n, &m), BLK_OK);
	assert_int_equal(blk_kernel_find(m, "add", &kernel), BLK_OK);
	assert_int_equal(blk_buffer_create(device, 4 * N, &buffer), BLK_OK);
	assert_int_equal(blk_buffer_fill(buffer, 0, 0, 4 * N), BLK_OK);
	memset(timings, 0, sizeof timings);
}
static void open_job(void)
{
	open_job_with(job_source, NULL, 0);
}
static void close_job(void)
{
	blk_device_close(device);
	device = NULL;
}

#define JOB_ARGS BLK_ARGS(blk_buf(buffer), blk_buf(buffer), blk_buf(buffer), blk_i32(N))

static blk_tune_verdict verdicts[2];
static char reasons[2][600];
static int note_trial(void *context, const blk_tune_trial *t)
{
	int i = strcmp(t->configuration, "T=40") == 0;
	(void)context;
	verdicts[i] = t->verdict;
	snprintf(reasons[i], sizeof reasons[i], "%s", t->reason);
	return 0;
}
static uint32_t tune(void)
{
	uint32_t timed = 0;
	blk_tune_options o = {.visit = note_trial};
	blk_status s = blk_kernel_tune(kernel, NULL, JOB_ARGS, &o, &timed);
	if (s) fail_msg("%s", blk_error());
	return timed;
}

static void remove_all(const char *path)
{
	char inner[600];
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
		snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
		if (__real_unlink(inner) != 0) remove_all(inner);
	}
	if (d) closedir(d);
	rmdir(path);
}

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/blk_records_XXXXXX");
	if (!mkdtemp(folder)) return -1;
	snprintf(tune_folder, sizeof tune_folder, "%s/tune", folder);
	setenv("BLK_CACHE_DIR", folder, 1);
	unsetenv("BLK_CACHE");
	unsetenv("BLK_TUNE");
	fake_reset();
	failing = NULL;
	watcher = NULL;
	job_source = SOURCE;
	quick = cache_system_files;
	quick.fsync = no_fsync;
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	failing = NULL;
	blk_device_close(device);
	device = NULL;
	remove_all(folder);
	if (fake_leak()) fail_msg("left behind: %s", fake_leak());
	return 0;
}

/* ---- Files ---- */

/* The only file of the folder whose name begins so (of records: null); false: there is none. */
static bool only_file(const char *prefix, char *path, size_t room)
{
	bool found = false;
	DIR *d = opendir(tune_folder);
	for (struct dirent *e; d && (e = readdir(d));) {
		if (prefix ? strncmp(e->d_name, prefix, strlen(prefix)) != 0 : e->d_name[0] == '.') continue;
		assert_false(found);
		found = true;
		snprintf(path, room, "%s/%.80s", tune_folder, e->d_name);
	}
	if (d) closedir(d);
	return found;
}
static size_t slurp(const char *path, char *to)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	size_t n = fread(to, 1, MOST - 1, f);
	fclose(f);
	to[n] = 0;
	return n;
}
static void spill(const char *path, const char *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}
static void add_sum(char *text)
{
	cache_key sum = cache_digest(text, strlen(text));
	strcat(text, "checksum ");
	for (int i = 0; i < 16; i++) sprintf(text + strlen(text), "%02x", sum.bytes[i]);
	strcat(text, "\n");
}
/* Stores head and lines under the name that the head gives them, with a right checksum. */
static void put_record(const char *head, const char *lines)
{
	char text[MOST], path[200];
	cache_key key = cache_digest(head, strlen(head));
	snprintf(text, sizeof text - 100, "%s%s", head, lines);
	add_sum(text);
	int n = snprintf(path, sizeof path, "%s/", tune_folder);
	for (int i = 0; i < 16; i++) n += snprintf(path + n, sizeof path - (size_t)n, "%02x", key.bytes[i]);
	spill(path, text, strlen(text));
}
/* The head of this job's record; one is written for it. */
static void make_head(char *head)
{
	char path[200];
	open_job();
	assert_int_equal(tune(), 2);
	close_job();
	assert_true(only_file(NULL, path, sizeof path));
	slurp(path, head);
	*strstr(head, "good ") = 0;
	assert_int_equal(strncmp(head, "blk tuning 1\nkernel add\ndevice Fake GPU\ntarget sm_90a\ncompiler ", 63), 0);
}

/* ---- Lines ---- */

static void test_lines(void **state)
{
	(void)state;
	static const struct {
		const char *line; /* of T=32; T=40 has a good one */
		blk_tune_verdict verdict;
		const char *reason;
	} rows[] = {{"good 0.5 T=32", BLK_TUNE_GOOD, ""}, {"good 5e-1 T=32 # quick", BLK_TUNE_GOOD, "quick"},
		{"wrong 0 T=32 # y differs", BLK_TUNE_WRONG, "y differs"}, {"failed 0 T=32 #", BLK_TUNE_FAILED, ""},
		{"failed 0 T=32 # ", BLK_TUNE_FAILED, ""}, {"failed 0 T=32 why", BLK_TUNE_FAILED, ""},
		{"compile 0 T=32\nresources 0 T=32", BLK_TUNE_COMPILE, ""}, /* the first counts */
		{"pruned 0 T=32 # a # b", BLK_TUNE_PRUNED, "a # b"},
		/* none of these is one */
		{"good 0 T=32", 0, ""}, {"good -1 T=32", 0, ""}, {"good x T=32", 0, ""}, {"good inf T=32", 0, ""},
		{"good nan T=32", 0, ""}, {"good 1e999 T=32", 0, ""}, {"good 1x T=32", 0, ""}, {"good 1 ", 0, ""},
		{"good 1", 0, ""}, {"good", 0, ""}, {"good ", 0, ""}, {"good 1  T=32", 0, ""},
		{"unknown 1 T=32", 0, ""}, {"best 1 T=32", 0, ""}, {"averylongwordthatisnoverdict 1 T=32", 0, ""},
		{"", 0, ""}, {" ", 0, ""}, {"good \n1 T=32", 0, ""}, {"good 1 T=3", 0, ""}, {"good 1 T=321", 0, ""},
		{"misfit 0 T=32", 0, ""}};
	char head[MOST], lines[256], path[200], now[MOST];
	make_head(head);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		snprintf(lines, sizeof lines, "%s\ngood 0.25 T=40\n", rows[i].line);
		put_record(head, lines);
		open_job();
		uint32_t timed = tune();
		bool known = rows[i].verdict != BLK_TUNE_UNKNOWN;
		if (timed != !known || verdicts[0] != (known ? rows[i].verdict : BLK_TUNE_GOOD) ||
			strcmp(reasons[0], rows[i].reason) != 0 || verdicts[1] != BLK_TUNE_GOOD)
			fail_msg("\"%s\": %u timed, verdict %d: %s", rows[i].line, timed, (int)verdicts[0], reasons[0]);
		if (blk_note()[0]) fail_msg("\"%s\": %s", rows[i].line, blk_note());
		assert_int_equal(timings[40], 0);
		close_job();
		if (known) continue;
		assert_true(only_file(NULL, path, sizeof path)); /* what was learnt is there, what was no line is not */
		slurp(path, now);
		assert_non_null(strstr(now, "\ngood 2 T=32\n"));
		if (rows[i].line[0] > ' ' && strlen(rows[i].line) > 8 && strstr(rows[i].line, "T=32") &&
			strlen(strstr(rows[i].line, "T=32")) == 4)
			assert_null(strstr(now, rows[i].line));
	}
}

/* Of something else, or with something behind it: it is told, not used, and written anew. */
static void test_other_records(void **state)
{
	(void)state;
	char head[MOST], path[200], good[MOST], bad[MOST];
	make_head(head);
	assert_true(only_file(NULL, path, sizeof path));
	size_t n = slurp(path, good);
	static const struct {
		const char *what, *from, *to; /* replaced in the record, then summed again; null: as below */
	} rows[] = {{"another kernel", "kernel add\n", "kernel bad\n"},
		{"another device", "device Fake GPU\n", "device Real GPU\n"},
		{"another compiler", "compiler ", "compiler 9"},
		{"another version", "blk tuning 1\n", "blk tuning 2\n"}, {"another key", "key n 100\n", "key n 101\n"},
		{"a shorter head", "key n 100\n", ""}, {"text behind it", NULL, "x"},
		{"a second record", NULL, "blk tuning 1\n"}, {"a NUL", NULL, ""},
		{"no checksum", "\nchecksum ", "\nchequesum "}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		size_t length = n;
		strcpy(bad, good);
		char *at = rows[i].from ? strstr(bad, rows[i].from) : bad + n;
		assert_non_null(at);
		if (rows[i].from) {
			bool sum = !strstr(rows[i].from, "checksum");
			char rest[MOST];
			if (sum) *strstr(bad, "checksum ") = 0;
			strcpy(rest, at + strlen(rows[i].from));
			sprintf(at, "%s%s", rows[i].to, rest);
			if (sum) add_sum(bad);
			length = strlen(bad);
		} else {
			strcpy(at, rows[i].to);
			length += rows[i].to[0] ? strlen(rows[i].to) : 1;
		}
		spill(path, bad, length);
		open_job();
		uint32_t timed = tune();
		if (timed != 2 || !strstr(blk_note(), "is not used: damaged"))
			fail_msg("%s: %u timed: %s", rows[i].what, timed, blk_note());
		close_job();
		if (slurp(path, bad) != n || memcmp(bad, good, n) != 0) fail_msg("%s: not healed", rows[i].what);
	}
}

/* Shorter than the head that it should have; and values that would end a line, which stand there without that. */
static void test_short_and_long_heads(void **state)
{
	(void)state;
	char head[MOST], path[200], text[MOST];
	make_head(head);
	assert_true(only_file(NULL, path, sizeof path));
	strcpy(text, "blk tuning 1\n");
	add_sum(text);
	spill(path, text, strlen(text));
	open_job();
	assert_int_equal(tune(), 2);
	assert_non_null(strstr(blk_note(), "is not used: damaged"));
	close_job();
	remove_all(tune_folder);
	const device_seams seams = {.cuda = &fake_api, .compiler = &fake_compiler, .files = &quick};
	const blk_define odd = {"ODD", "1\n2\tgood 1 T=40"};
	blk_module *m;
	assert_int_equal(device_open_with("cuda", &seams, &device), BLK_OK);
	device->tune_clock = tell_time;
	assert_int_equal(blk_module_source(device, "add.blk", SOURCE, &odd, 1, &m), BLK_OK);
	assert_int_equal(blk_kernel_find(m, "add", &kernel), BLK_OK);
	assert_int_equal(blk_buffer_create(device, 4 * N, &buffer), BLK_OK);
	assert_int_equal(blk_buffer_fill(buffer, 0, 0, 4 * N), BLK_OK);
	assert_int_equal(tune(), 2);
	assert_true(only_file(NULL, path, sizeof path));
	slurp(path, text);
	assert_non_null(strstr(text, "\ndefine ODD 1 2 good 1 T=40\npromises "));
	close_job();
}

/* A const parameter among the keys: each value that a define gives it has a record of its own. */
static void test_const_keys(void **state)
{
	(void)state;
	static const blk_define of[] = {{"H", "64"}, {"H", "128"}, {"H", "64"}};
	static const uint32_t timed[] = {2, 2, 0};
	remove_all(tune_folder);
	for (int i = 0; i < 3; i++) {
		open_job_with(
			"kernel add\nsymbol add\nparam z *f32\nparam x *const f32\nparam y *const f32\nparam n i32\n"
			"const H i32 64\nconst T i32 128\nwritten 0\ngrid 0 p3 64 cdiv\nthreads $T\nshared 0\n"
			"source 0123456789abcdef0123456789abcdef\nautotune key n,H\nconfiguration T=32\n"
			"configuration T=40\n",
			&of[i], 1);
		assert_int_equal(kernel->tuner->nkeys, 1);
		assert_int_equal(tune(), timed[i]);
		close_job();
	}
}

/* ---- The nearest ---- */

static void test_nearest(void **state)
{
	(void)state;
	char head[MOST], start[MOST], other[MOST];
	make_head(head);
	strcpy(start, head);
	*strstr(start, "promises ") = 0;
	uint64_t bits[SIGNATURE_PARAMETERS] = {0};
	static const struct {
		const char *facts, *lines;
		uint32_t found;
		const char *where;
	} rows[] = {{"promises 0\nkey n 64\n", "good 2 T=32\ngood 1 T=40\n", 1, "n=64"},
		{"promises 0\nkey n 64\n", "wrong 0 T=40\ngood 3 T=32\ngood 3 T=40\nwhat\n", 0, "n=64"},
		{"promises 0\nkey n 64\n", "good 3 T=99\n", TUNE_NONE, NULL},
		{"promises 0\nkey n 64\n", "", TUNE_NONE, NULL},
		{"promises 0\nkey m 64\n", "good 1 T=40\n", TUNE_NONE, NULL}, {"promises 0\n", "", TUNE_NONE, NULL},
		{"", "good 1 T=40\n", TUNE_NONE, NULL}, {"", "", TUNE_NONE, NULL},
		{"key n 64\npromises 0\n", "good 1 T=40\n", TUNE_NONE, NULL}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const tune_result none[2] = {{0}};
		char *where;
		remove_all(tune_folder);
		assert_int_equal(mkdir(tune_folder, 0700), 0);
		snprintf(other, sizeof other, "%s%s", start, rows[i].facts);
		put_record(other, rows[i].lines);
		open_job();
		bits[3] = 64;
		uint32_t found = tune_record_nearest(kernel, bits, 0, none, &where);
		if (found != TUNE_NONE) { /* what others may write is not read */
			char path[200];
			assert_true(only_file(NULL, path, sizeof path));
			assert_int_equal(chmod(path, 0666), 0);
			char *other_place;
			assert_int_equal(tune_record_nearest(kernel, bits, 0, none, &other_place), TUNE_NONE);
			assert_null(other_place);
		}
		if (found != rows[i].found ||
			(where ? !rows[i].where || strcmp(where, rows[i].where) != 0 : rows[i].where != NULL))
			fail_msg("%zu: %u, %s", i, found, where ? where : "-");
		free(where);
		close_job();
	}
	/* As near and of as many promises: the one whose file's name is less, in whatever order they are met. */
	remove_all(tune_folder);
	assert_int_equal(mkdir(tune_folder, 0700), 0);
	const char *least = NULL;
	char heads[2][MOST + 64];
	cache_key smallest = {{0}};
	static const char *const keys[] = {"32", "128"};
	for (int i = 0; i < 2; i++) { /* both one doubling from 64 */
		snprintf(heads[i], sizeof heads[i], "%spromises 0\nkey n %s\n", start, keys[i]);
		put_record(heads[i], i ? "good 1 T=40\n" : "good 1 T=32\n");
		cache_key k = cache_digest(heads[i], strlen(heads[i]));
		if (!least || memcmp(&k, &smallest, sizeof k) < 0) least = keys[i], smallest = k;
	}
	for (int order = 0; order < 2; order++) {
		const tune_result none[2] = {{0}};
		char *where, wanted[16];
		open_job();
		put_record(heads[order], order ? "good 1 T=40\n" : "good 1 T=32\n"); /* used last, listed last */
		tune_record_nearest(kernel, bits, 0, none, &where);
		snprintf(wanted, sizeof wanted, "n=%s", least);
		assert_string_equal(where, wanted);
		free(where);
		close_job();
	}
}

/* Doublings are counted of unsigned keys too, as far as they go; of what is no integer nothing is near. */
static void test_nearest_of_types(void **state)
{
	(void)state;
	static const struct {
		const char *type, *keys[2];
		uint64_t at;
		uint32_t found; /* of the first T=32 is known, of the second T=40 */
	} rows[] = {{"i32", {"1", "1048576"}, 524288, 1}, {"i32", {"1", "1048576"}, 2, 0},
		{"u64", {"1", "18446744073709551615"}, UINT64_C(1) << 63, 1},
		{"u64", {"1", "18446744073709551615"}, 2, 0}, {"u8", {"1", "255"}, 128, 1}, {"u8", {"1", "255"}, 2, 0}};
	char head[MOST], start[MOST], other[MOST + 64], source[1024];
	make_head(head);
	strcpy(start, head);
	*strstr(start, "promises ") = 0;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const tune_result none[2] = {{0}};
		uint64_t bits[SIGNATURE_PARAMETERS] = {0};
		char *where;
		remove_all(tune_folder);
		assert_int_equal(mkdir(tune_folder, 0700), 0);
		for (int k = 0; k < 2; k++) {
			snprintf(other, sizeof other, "%spromises 0\nkey n %s\n", start, rows[i].keys[k]);
			put_record(other, k ? "good 1 T=40\n" : "good 1 T=32\n");
		}
		const char *n = strstr(SOURCE, "param n i32");
		snprintf(source, sizeof source, "%.*sparam n %s%s", (int)(n - SOURCE), SOURCE, rows[i].type, n + 11);
		job_source = source;
		open_job();
		bits[3] = rows[i].at;
		uint32_t found = tune_record_nearest(kernel, bits, 0, none, &where);
		if (found != rows[i].found) fail_msg("%zu: %u, %s", i, found, where ? where : "-");
		free(where);
		close_job();
		job_source = SOURCE;
	}
}

/* ---- Marks ---- */

#define MARK ".trying-"

/* The name of a mark of this job by process 1, and its file. */
static void mark_path(char *path, size_t room)
{
	uint64_t bits[SIGNATURE_PARAMETERS], promises;
	cache_key key;
	open_job();
	assert_int_equal(launch_arguments(kernel, JOB_ARGS, bits, &promises), BLK_OK);
	assert_true(tune_record_key(kernel, bits, promises, &key));
	close_job();
	mkdir(tune_folder, 0700);
	int n = snprintf(path, room, "%s/" MARK, tune_folder);
	for (int i = 0; i < 16; i++) n += snprintf(path + n, room - (size_t)n, "%02x", key.bytes[i]);
	snprintf(path + n, room - (size_t)n, "-1-1");
}

static void make_older(const char *path, time_t by)
{
	const struct timespec then[2] = {{time(NULL) - by, 0}, {time(NULL) - by, 0}};
	assert_int_equal(utimensat(AT_FDCWD, path, then, 0), 0);
}

static void test_marks(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t n;
		blk_tune_verdict verdict; /* of T=32 */
		int flock_fails;          /* errno */
		time_t age;
		bool stays;
	} rows[] = {{"T=32\n", 5, BLK_TUNE_SUSPECT, 0, 0, false}, {"T=40\n", 5, BLK_TUNE_GOOD, 0, 0, false},
		{"T=32", 4, BLK_TUNE_GOOD, 0, 0, false}, /* half a name is no name */
		{"", 0, BLK_TUNE_GOOD, 0, 0, false}, {"\n", 1, BLK_TUNE_GOOD, 0, 0, false},
		{"T=99\n", 5, BLK_TUNE_GOOD, 0, 0, false},
		{"T=32\n", 5, BLK_TUNE_GOOD, EWOULDBLOCK, 7200, true}, /* somebody's who lives */
		{"T=32\n", 5, BLK_TUNE_GOOD, ENOLCK, 60, true},        /* no locks here: it may be */
		{"T=32\n", 5, BLK_TUNE_SUSPECT, ENOLCK, 7200, false}};
	char path[200];
	bool all = wraps((void *)tune_marks_read);
	mark_path(path, sizeof path);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (rows[i].flock_fails && !all) continue;
		remove_all(tune_folder);
		assert_int_equal(mkdir(tune_folder, 0700), 0);
		spill(path, rows[i].text, rows[i].n);
		if (rows[i].age) make_older(path, rows[i].age);
		failing = rows[i].flock_fails ? "flock" : NULL;
		failure = rows[i].flock_fails;
		open_job();
		tune();
		failing = NULL;
		if (verdicts[0] != rows[i].verdict) fail_msg("%zu: verdict %d", i, (int)verdicts[0]);
		if (rows[i].verdict == BLK_TUNE_SUSPECT)
			assert_non_null(strstr(blk_note(), "configuration T=32 is skipped: a process ended"));
		if ((access(path, F_OK) == 0) != rows[i].stays) fail_msg("%zu: the mark", i);
		close_job();
	}
}

/* While a configuration runs its mark names it; what the dead have tried is in the record by then. */
static unsigned watched;
static const char *known_before; /* what the record says; null: there is none yet */
static void look_at_mark(const char *configuration)
{
	char path[200], text[MOST], wanted[64];
	assert_true(only_file(MARK, path, sizeof path));
	slurp(path, text);
	snprintf(wanted, sizeof wanted, "%s\n", configuration);
	assert_string_equal(text, wanted);
	assert_int_equal(only_file(NULL, path, sizeof path), known_before != NULL);
	if (known_before) {
		slurp(path, text);
		assert_non_null(strstr(text, known_before));
	}
	watched++;
}
static void test_marks_in_time(void **state)
{
	(void)state;
	char path[200], other[220];
	open_job();
	watcher = look_at_mark;
	known_before = NULL;
	watched = 0;
	assert_int_equal(tune(), 2);
	assert_true(watched >= 6); /* three runs each */
	close_job();
	/* of two marks only one says something new, whichever is read first */
	mark_path(path, sizeof path);
	for (int i = 0; i < 2; i++) {
		remove_all(tune_folder);
		assert_int_equal(mkdir(tune_folder, 0700), 0);
		snprintf(other, sizeof other, "%s-2", path);
		spill(path, i ? "T=32\n" : "T=99\n", 5);
		spill(other, i ? "T=99\n" : "T=32\n", 5);
		open_job();
		known_before = "\nsuspect 0 T=32 # a process ended while it tried this";
		watched = 0;
		assert_int_equal(tune(), 1);
		assert_true(watched >= 3);
		assert_int_equal(verdicts[0], BLK_TUNE_SUSPECT);
		assert_int_equal(verdicts[1], BLK_TUNE_GOOD);
		close_job();
	}
}

/* What is no mark, what another key's is, what cannot be opened: left alone.  A verdict that is known stays. */
static void test_other_marks(void **state)
{
	(void)state;
	char path[200], link[220], other[200], lines[64];
	mark_path(path, sizeof path);
	snprintf(link, sizeof link, "%s-link", path);
	snprintf(other, sizeof other, "%s/" MARK "ffffffffffffffffffffffffffffffff-1-1", tune_folder);
	spill(other, "T=32\n", 5);
	assert_int_equal(symlink(other, link), 0);
	open_job();
	assert_int_equal(tune(), 2);
	assert_int_equal(verdicts[0], BLK_TUNE_GOOD);
	close_job();
	assert_int_equal(access(other, F_OK), 0);
	assert_int_equal(access(link, F_OK), 0);
	/* T=40 is known to be wrong, T=32 not yet: a mark of either says nothing new of T=40 */
	char record[200], head[MOST];
	assert_true(only_file(NULL, record, sizeof record));
	slurp(record, head);
	*strstr(head, "good ") = 0;
	strcpy(lines, "wrong 0 T=40 # z\n");
	put_record(head, lines);
	spill(path, "T=40\n", 5);
	open_job();
	assert_int_equal(tune(), 1);
	assert_int_equal(verdicts[1], BLK_TUNE_WRONG);
	assert_int_not_equal(access(path, F_OK), 0);
	close_job();
}

/* A mark that cannot be written is nobody's error; half of one is taken back. */
static void test_marks_unwritten(void **state)
{
	(void)state;
	static const char *const calls[] = {"ftruncate", "pwrite", "flock"};
	char path[200];
	if (!wraps((void *)tune_marks_read)) return;
	for (size_t i = 0; i < 3; i++) {
		remove_all(tune_folder);
		open_job();
		failing = calls[i];
		failure = EIO;
		assert_int_equal(tune(), 2);
		failing = NULL;
		assert_string_equal(blk_note(), "");
		close_job();
		assert_false(only_file(MARK, path, sizeof path));
		assert_true(only_file(NULL, path, sizeof path));
	}
}

/* Emptying the cache takes the marks of the dead too, and no other's. */
static void test_clear(void **state)
{
	(void)state;
	char dead[200], living[200], link[200];
	uint64_t removed;
	if (!wraps((void *)tune_marks_read)) return;
	snprintf(dead, sizeof dead, "%s/" MARK "00000000000000000000000000000000-1-1", tune_folder);
	snprintf(living, sizeof living, "%s/" MARK "00000000000000000000000000000000-2-2", tune_folder);
	snprintf(link, sizeof link, "%s/" MARK "link", tune_folder);
	open_job();
	assert_int_equal(tune(), 2);
	close_job();
	spill(dead, "T=32\n", 5);
	spill(living, "T=32\n", 5);
	assert_int_equal(symlink(dead, link), 0);
	int fd = open(living, O_RDWR);
	assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
	failing = "unlink";
	failure = EACCES;
	assert_int_equal(blk_cache_clear(&removed), BLK_ERROR_IO);
	assert_non_null(strstr(blk_error(), " cache entries in "));
	assert_non_null(strstr(blk_error(), "could not be removed: Permission denied"));
	assert_int_equal(removed, 0);
	failure = ENOENT; /* another process was quicker */
	assert_int_equal(blk_cache_clear(NULL), BLK_OK);
	failing = NULL;
	assert_int_equal(blk_cache_clear(&removed), BLK_OK);
	assert_true(removed >= 1);
	assert_int_not_equal(access(dead, F_OK), 0);
	assert_int_equal(access(living, F_OK), 0);
	close(fd);
}

/* ---- Listing ---- */

typedef struct listed {
	int n, stop_at, valid, tuning;
	char kernel[64], target[64];
} listed;
static int list_one(void *context, const blk_cache_entry *e)
{
	listed *l = context;
	l->valid += e->valid;
	if (e->tuning) {
		l->tuning++;
		snprintf(l->kernel, sizeof l->kernel, "%s", e->kernel);
		snprintf(l->target, sizeof l->target, "%s", e->target);
	}
	return ++l->n == l->stop_at;
}
static void test_list(void **state)
{
	(void)state;
	char path[200];
	listed l = {0};
	open_job();
	assert_int_equal(tune(), 2);
	close_job();
	assert_int_equal(blk_cache_list(list_one, &l), BLK_OK);
	assert_true(l.n > 2 && l.valid == l.n && l.tuning == 1);
	assert_string_equal(l.kernel, "add");
	assert_string_equal(l.target, "sm_90a");
	int all = l.n;
	for (int stop = 1; stop <= all; stop++) {
		l = (listed){.stop_at = stop};
		assert_int_equal(blk_cache_list(list_one, &l), BLK_OK);
		assert_int_equal(l.n, stop);
	}
	static const struct {
		const char *text, *kernel, *target;
		bool valid;
	} rows[] = {{"blk tuning 1\nkernel add\n", "", "", false}, {"blk tuning 1\nname x\n", "", "", true},
		{"blk tuning 1\nkernel k\ntarget t", "k", "t", false},
		{"blk tuning 1\nx\nkernel k\ntarget t\n", "k", "t", true}};
	assert_true(only_file(NULL, path, sizeof path));
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char text[MOST];
		strcpy(text, rows[i].text);
		if (rows[i].valid) add_sum(text);
		spill(path, text, strlen(text));
		l = (listed){0};
		assert_int_equal(blk_cache_list(list_one, &l), BLK_OK);
		assert_int_equal(l.valid, all - !rows[i].valid);
		assert_string_equal(l.kernel, rows[i].valid ? rows[i].kernel : "");
		assert_string_equal(l.target, rows[i].valid ? rows[i].target : "");
	}
}

/* ---- Out and in ---- */

static void test_import(void **state)
{
	(void)state;
	char head[MOST], one[MOST], two[MOST], text[2 * MOST], path[200], unfinished[MOST];
	make_head(head);
	strcpy(one, head);
	strcat(one, "good 0.5 T=40\n");
	add_sum(one);
	strcpy(two, head);
	strcpy(strstr(two, "key n 100\n"), "key n 7\n"); /* and no line of a configuration */
	add_sum(two);
	strcpy(unfinished, "blk tuning 1\nkernel k"); /* the head has no end */
	strcat(unfinished, "\n");
	add_sum(unfinished);
	snprintf(path, sizeof path, "%s/records", folder);
	const struct {
		const char *what, *parts[4];
		blk_status status;
		uint32_t records;
		const char *says;
	} rows[] = {{"empty", {NULL}, BLK_OK, 0, ""}, {"lines", {"\n", "\n\n"}, BLK_OK, 0, ""},
		{"one", {one}, BLK_OK, 1, ""}, {"several", {"\n", one, "\n\n", two}, BLK_OK, 2, ""},
		{"together", {one, two, "\n"}, BLK_OK, 2, ""}, {"a short head", {unfinished}, BLK_OK, 1, ""},
		{"not ours", {"hello\n"}, BLK_ERROR_FORMAT, 0, ": record 1 is damaged or of another form"},
		{"torn", {one, "\n", head}, BLK_ERROR_FORMAT, 1, ": record 2 is damaged or of another form"},
		{"between", {one, "x\n", two}, BLK_ERROR_FORMAT, 1, ": record 2 is damaged or of another form"}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		uint32_t n = 77;
		text[0] = 0;
		for (int p = 0; p < 4 && rows[i].parts[p]; p++) strcat(text, rows[i].parts[p]);
		spill(path, text, strlen(text));
		blk_status s = blk_tune_import(path, &n);
		if (s != rows[i].status || n != rows[i].records || (s && !strstr(blk_error(), rows[i].says)))
			fail_msg("%s: %s, %u records: %s", rows[i].what, blk_status_text(s), n, blk_error());
	}
	/* what is known here stays, what is new comes to it */
	char record[200];
	remove_all(tune_folder);
	assert_int_equal(mkdir(tune_folder, 0700), 0);
	put_record(head, "good 5 T=32\n");
	strcpy(one, head);
	strcat(one, "good 1 T=32\ngood 2 T=40 # so it says\n");
	add_sum(one);
	spill(path, one, strlen(one));
	assert_int_equal(blk_tune_import(path, NULL), BLK_OK);
	assert_true(only_file(NULL, record, sizeof record));
	slurp(record, text);
	strcpy(one, head);
	strcat(one, "good 5 T=32\ngood 2 T=40 # so it says\n");
	add_sum(one);
	assert_string_equal(text, one);
	spill(path, "a\0b", 3);
	assert_int_equal(blk_tune_import(path, NULL), BLK_ERROR_FORMAT);
	assert_non_null(strstr(blk_error(), "/records: no text"));
	assert_int_equal(blk_tune_import(folder, NULL), BLK_ERROR_IO);
	assert_non_null(strstr(blk_error(), "Is a directory"));
	assert_int_equal(blk_tune_import("/nowhere/records", NULL), BLK_ERROR_NOT_FOUND);
	spill(path, one, strlen(one));
	setenv("BLK_CACHE_DIR", "/dev/null/cache", 1);
	assert_int_equal(blk_tune_import(path, NULL), BLK_ERROR_IO);
	assert_non_null(strstr(blk_error(), ": record 1 cannot be stored in /dev/null/cache/tune"));
}

/* What does not verify stays at home; what cannot be written is told. */
static void test_export(void **state)
{
	(void)state;
	char head[MOST], path[200], record[200], text[MOST], again[MOST];
	uint32_t n;
	make_head(head);
	assert_true(only_file(NULL, record, sizeof record));
	size_t length = slurp(record, text);
	snprintf(path, sizeof path, "%s/records", folder);
	assert_int_equal(blk_tune_export(path, NULL), BLK_OK);
	assert_int_equal(slurp(path, again), length + 1);
	assert_memory_equal(again, text, length);
	static const struct {
		const char *what;
		size_t n;
	} rows[] = {{"cut", 20}, {"longer", 1}, {"a NUL behind", 2}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		strcpy(again, text);
		again[length] = rows[i].n == 1 ? 'x' : 0;
		spill(record, again, rows[i].n < 10 ? length + 1 : rows[i].n);
		n = 77;
		assert_int_equal(blk_tune_export(path, &n), BLK_OK);
		if (n != 0 || slurp(path, again) != 0) fail_msg("%s: %u records", rows[i].what, n);
	}
	spill(record, text, length);
	put_record("blk tuning 1\nkernel other\n", ""); /* two, so that something is left to write */
	assert_int_equal(blk_tune_export("/nowhere/records", &n), BLK_ERROR_IO);
	assert_non_null(strstr(blk_error(), "/nowhere/records: No such file"));
	assert_int_equal(blk_tune_export("/dev/full", &n), BLK_ERROR_IO);
	assert_non_null(strstr(blk_error(), "/dev/full: No space left"));
	assert_int_equal(n, 0);
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
		T(test_lines),
		T(test_other_records),
		T(test_short_and_long_heads),
		T(test_const_keys),
		T(test_nearest),
		T(test_nearest_of_types),
		T(test_marks_in_time),
		T(test_marks),
		T(test_other_marks),
		T(test_marks_unwritten),
		T(test_clear),
		T(test_list),
		T(test_import),
		T(test_export),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
