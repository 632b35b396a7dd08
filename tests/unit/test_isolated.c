/* Tuning in another process, where that process is this program again: it dies, hangs, refuses, or leaves nonsense, as
 * FAKE_TRIAL says; the system refuses the calls around it; memory runs out.  A launch then has its verdicts, a
 * sentence, or its defaults and a note, and leaves neither descriptors nor processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_device.h"
#include "faulty_malloc.h"
#include "runtime/tune/share.h"
#include "wrapped.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- The other process ---- */

static tune_share *share;

static tune_slot *slot_of(uint32_t i)
{
	return (tune_slot *)((char *)share + share->slots) + i;
}
static const char *text_at(uint64_t offset)
{
	return (const char *)share + offset;
}
static _Noreturn void end(tune_state state)
{
	atomic_store(&share->state, state);
	_exit(0);
}
static _Noreturn void refuse(uint32_t status, const char *error)
{
	share->status = status;
	snprintf(share->error, sizeof share->error, "%s", error);
	end(TUNE_REFUSED);
}
/* All that are left are good, the later the better. */
static _Noreturn void be_good(void)
{
	for (uint32_t i = 0; i < share->nslots; i++)
		if (slot_of(i)->verdict == BLK_TUNE_UNKNOWN)
			*slot_of(i) = (tune_slot){.verdict = BLK_TUNE_GOOD, .checked = 1, .ms = 2.0 - i};
	end(TUNE_DONE);
}
static void work_on(uint32_t i)
{
	if (slot_of(0)->verdict != BLK_TUNE_UNKNOWN) be_good(); /* it was blamed: this is the second process */
	atomic_store(&share->state, TUNE_WORKING);
	atomic_store(&share->running, i);
}

/* What stands in the block is the job that test_block() made. */
static _Noreturn void check_block(void)
{
	const tune_shared_arg *args = (const void *)text_at(share->args);
	const tune_shared_buffer *buffers = (const void *)text_at(share->buffers);
	const tune_shared_define *defines = (const void *)text_at(share->defines);
	const float *x = args[1].buffer < share->nbuffers ? (const void *)text_at(buffers[args[1].buffer].at) : NULL;
	const char *wrong = strcmp(share->magic, TUNE_SHARE_MAGIC) != 0               ? "magic"
			    : share->parent != getppid()                              ? "parent"
			    : strcmp(text_at(share->device), "cuda:0") != 0           ? "device"
			    : strcmp(text_at(share->module), "add.blk") != 0          ? "module"
			    : strcmp(text_at(share->kernel), "add") != 0              ? "kernel"
			    : strncmp(text_at(share->text), "kernel add\n", 11) != 0  ? "text"
			    : share->ndefines != 1                                    ? "defines"
			    : strcmp(text_at(defines[0].name), "LOCAL") != 0          ? "a define's name"
			    : strcmp(text_at(defines[0].value), "0") != 0             ? "a define's value"
			    : share->grid.x != 3 || share->grid.y != 1                ? "grid"
			    : share->nargs != 4 || share->nslots != 2                 ? "counts"
			    : share->nbuffers != 2                                    ? "buffers"
			    : args[0].buffer != args[1].buffer || args[0].offset != 4 ? "z"
			    : args[1].offset != 0 || !x || x[10] != 10                ? "x"
			    : args[2].buffer == args[0].buffer || args[2].buffer > 1  ? "y"
			    : buffers[args[2].buffer].bytes != 0                      ? "y's bytes"
			    : args[3].buffer != TUNE_NONE || args[3].bits != 50       ? "n"
										      : NULL;
	if (wrong) refuse(BLK_ERROR_INTERNAL, wrong);
	be_good();
}

static _Noreturn void be_a_trial(const char *how)
{
	static const struct rlimit no_core = {0, 0};
	struct stat st;
	if (fstat(TUNE_SHARE_FD, &st) != 0) _exit(9);
	share = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, TUNE_SHARE_FD, 0);
	if (share == MAP_FAILED) _exit(9);
	setrlimit(RLIMIT_CORE, &no_core);
	uint32_t a = 0;
	if (strcmp(how, "good") == 0) be_good();
	if (strcmp(how, "block") == 0) check_block();
	if (strcmp(how, "fault") == 0) {
		work_on(0);
		raise(SIGSEGV);
	}
	if (strcmp(how, "exit") == 0) {
		work_on(0);
		_exit(3);
	}
	if (strcmp(how, "hang") == 0) {
		work_on(0);
		atomic_store(&share->until_ns, tune_now_ns() + 10000000);
		pause();
	}
	if (strcmp(how, "slow") == 0) { /* and says how far it is */
		struct timespec wait = {0, 60000000};
		atomic_store(&share->best_ns, 1500000);
		atomic_store(&share->done, 1);
		atomic_store(&share->total, 2);
		nanosleep(&wait, NULL);
		be_good();
	}
	if (strcmp(how, "steps") == 0) { /* of one, of the other, of both */
		static const uint32_t told[][2] = {{1, 4}, {2, 4}, {2, 5}, {3, 6}};
		struct timespec wait = {0, 90000000};
		for (int i = 0; i < 4; i++) {
			atomic_store(&share->total, told[i][1]);
			atomic_store(&share->done, told[i][0]);
			nanosleep(&wait, NULL);
		}
		be_good();
	}
	if (strcmp(how, "late nonsense") == 0) {
		atomic_store(&share->until_ns, 1);
		atomic_store(&share->running, 1000000);
		pause();
	}
	if (strcmp(how, "working on nothing") == 0) {
		atomic_store(&share->running, 1000000);
		end(TUNE_WORKING);
	}
	if (strcmp(how, "moved slots") == 0) {
		uint64_t slots = share->slots;
		for (int i = 0; i < 2; i++) *slot_of((uint32_t)i) = (tune_slot){.verdict = BLK_TUNE_GOOD, .ms = 1 + i};
		share->slots = slots << 40;
		share->nslots = 1u << 30;
		end(TUNE_DONE);
	}
	if (strcmp(how, "nonsense in slots") == 0) {
		memset(slot_of(0), 0x7f, sizeof(tune_slot));
		*slot_of(1) = (tune_slot){.verdict = BLK_TUNE_GOOD, .ms = 1};
		end(TUNE_DONE);
	}
	if (strcmp(how, "killed early") == 0) raise(SIGTERM);
	if (strcmp(how, "ended early") == 0) _exit(0);
	if (strcmp(how, "strange state") == 0) end((tune_state)77);
	if (strcmp(how, "again for ever") == 0) end(TUNE_AGAIN);
	if (strcmp(how, "again once") == 0) {
		if (slot_of(0)->verdict != BLK_TUNE_UNKNOWN) be_good();
		*slot_of(0) = (tune_slot){.verdict = BLK_TUNE_WRONG, .reason = "z differs"};
		end(TUNE_AGAIN);
	}
	if (strcmp(how, "limit") == 0) {
		char text[32];
		snprintf(text, sizeof text, "%g s", share->limit_s);
		refuse(BLK_ERROR_UNSUPPORTED, text);
	}
	if (strcmp(how, "long refusal") == 0) {
		memset(share->error, 'x', sizeof share->error);
		share->status = BLK_ERROR_COMPILE;
		end(TUNE_REFUSED);
	}
	if (sscanf(how, "refuse %u", &a) == 1) refuse(a, "because");
	_exit(8);
}

/* ---- The system around it ---- */

static struct {
	const char *name; /* of the call that fails; null: none */
	int at, calls;    /* 0: each time */
	int error;
} system_fault;

static bool call_fails(const char *name)
{
	if (!system_fault.name || strcmp(system_fault.name, name) != 0) return false;
	system_fault.calls++;
	errno = system_fault.error;
	return !system_fault.at || system_fault.calls == system_fault.at;
}
#define WRAP(type, failure, name, parameters, arguments)                                                               \
	type __real_##name parameters;                                                                                 \
	type __wrap_##name parameters;                                                                                 \
	type __wrap_##name parameters                                                                                  \
	{                                                                                                              \
		return call_fails(#name) ? failure : __real_##name arguments;                                          \
	}
WRAP(int, -1, fcntl, (int a, int b, long c), (a, b, c))
WRAP(void *, MAP_FAILED, mmap, (void *a, size_t b, int c, int d, int e, off_t f), (a, b, c, d, e, f))
WRAP(int, -1, poll, (struct pollfd * a, nfds_t b, int c), (a, b, c))
WRAP(pid_t, -1, waitpid, (pid_t a, int *b, int c), (a, b, c))
WRAP(int, system_fault.error, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t * a, int b, int c),
	(a, b, c))
WRAP(int, system_fault.error, posix_spawn_file_actions_addopen,
	(posix_spawn_file_actions_t * a, int b, const char *c, int d, mode_t e), (a, b, c, d, e))
/* "nanosleep": the clock runs away, and what was killed does not end. */
int __real_nanosleep(const struct timespec *, struct timespec *);
int __wrap_nanosleep(const struct timespec *, struct timespec *);
int __wrap_nanosleep(const struct timespec *t, struct timespec *rest)
{
	return system_fault.name && !system_fault.at ? 0 : __real_nanosleep(t, rest);
}

/* ---- The job ---- */

#define SOURCE                                                                                                         \
	"kernel add\nsymbol add\nparam z *f32\nparam x *const f32\nparam y *const f32\nparam n i32\nconst T i32 128\n" \
	"const LOCAL i32 0\nwritten 0\ngrid 0 p3 64 cdiv\nthreads $T\nshared 0\n"                                      \
	"source 0123456789abcdef0123456789abcdef\n"
#define TUNED "autotune key n\nconfiguration T=32\nconfiguration T=40\n"

static char folder[64], myself[4096];
static blk_device *device;
static blk_kernel *kernel;
static blk_buffer *z, *x, *y;

static blk_status open_job(const char *source, const blk_define *defines, size_t n)
{
	blk_module *m;
	float values[100];
	for (int i = 0; i < 100; i++) values[i] = (float)i;
	blk_buffer **const buffers[] = {&z, &x, &y};
	blk_status s = device_open_with("cuda", &fake_seams, &device);
	if (!s) s = blk_module_source(device, "add.blk", source, defines, n, &m);
	if (!s) s = blk_kernel_find(m, "add", &kernel);
	for (int i = 0; !s && i < 3; i++) {
		s = blk_buffer_create(device, sizeof values, buffers[i]);
		if (!s) s = blk_buffer_write(*buffers[i], 0, values, sizeof values);
	}
	return s;
}

static int count_files(const char *path)
{
	int n = 0;
	DIR *d = opendir(path);
	while (d && readdir(d)) n++;
	if (d) closedir(d);
	return n;
}

static int setup(void **state)
{
	(void)state;
	setenv("BLK_CACHE", "off", 1);
	setenv("BLK_TRIAL", myself, 1);
	setenv("FAKE_TRIAL", "good", 1);
	unsetenv("BLK_TUNE");
	unsetenv("BLK_TUNE_LIMIT");
	memset(&system_fault, 0, sizeof system_fault);
	fake_reset();
	alarm(60);
	return open_job(SOURCE TUNED, NULL, 0) ? -1 : 0;
}
/* No process of ours is left. */
static int teardown(void **state)
{
	(void)state;
	blk_device_close(device);
	if (fake_leak()) fail_msg("left behind: %s", fake_leak());
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	return 0;
}

typedef struct seen {
	blk_tune_verdict verdict[2];
	char reason[2][600];
	double ms[2];
	int chosen, shown;
	uint32_t steps, last, of;
	double best_ms;
	int told[8][8]; /* how often so many of so many */
} seen;

static int note_trial(void *context, const blk_tune_trial *t)
{
	seen *s = context;
	int i = strcmp(t->configuration, "T=40") == 0;
	s->verdict[i] = t->verdict;
	s->ms[i] = t->ms;
	snprintf(s->reason[i], sizeof s->reason[i], "%s", t->reason);
	if (t->chosen) s->chosen = i;
	s->shown++;
	return 0;
}
static void note_step(void *context, uint32_t done, uint32_t total, double best_ms)
{
	seen *s = context;
	if (done < 8 && total < 8) s->told[done][total]++;
	if (s->steps++ == 0) s->last = done, s->of = total, s->best_ms = best_ms;
}

static blk_status tune(seen *s)
{
	blk_tune_options o = {.visit = note_trial, .progress = note_step, .context = s, .again = 1, .isolated = 1};
	uint32_t timed;
	*s = (seen){.chosen = -1};
	return blk_kernel_tune(kernel, NULL, BLK_ARGS(blk_buf(z), blk_buf(x), blk_buf(y), blk_i32(100)), &o, &timed);
}

/* ---- What the process does ---- */

static void test_ends(void **state)
{
	(void)state;
	enum { GOOD = BLK_TUNE_GOOD, WRONG = BLK_TUNE_WRONG, FAILED = BLK_TUNE_FAILED, UNKNOWN = BLK_TUNE_UNKNOWN };
	static const struct {
		const char *how;
		blk_status status;
		const char *says; /* the error, or where there is none the first configuration's reason */
		int first, second;
	} rows[] = {{"good", BLK_OK, "", GOOD, GOOD},
		{"fault", BLK_OK,
			FAULTY_MALLOC ? "it ended the process that tried it: Segmentation fault"
				      : "it ended the process that tried it: exit status 1", /* a sanitizer's */
			FAILED, GOOD},
		{"exit", BLK_OK, "it ended the process that tried it: exit status 3", FAILED, GOOD},
		{"hang", BLK_OK, "it did not end in time (BLK_TUNE_LIMIT, 10 s)", FAILED, GOOD},
		{"again once", BLK_OK, "z differs", WRONG, GOOD}, {"slow", BLK_OK, "", GOOD, GOOD},
		{"moved slots", BLK_OK, "", GOOD, GOOD}, {"nonsense in slots", BLK_OK, "\x7f\x7f\x7f", UNKNOWN, GOOD},
		{"late nonsense", BLK_ERROR_INTERNAL, "blk-trial ended (Killed) before it tried anything", 0, 0},
		{"working on nothing", BLK_ERROR_INTERNAL, "blk-trial ended (by itself) before it tried", 0, 0},
		{"killed early", BLK_ERROR_INTERNAL, "blk-trial ended (Terminated) before it tried anything", 0, 0},
		{"ended early", BLK_ERROR_INTERNAL, "blk-trial ended (by itself) before it tried anything", 0, 0},
		{"strange state", BLK_ERROR_INTERNAL, "blk-trial ended (by itself) before it tried anything", 0, 0},
		{"again for ever", BLK_ERROR_INTERNAL, "no trial comes to an end", 0, 0},
		{"refuse 0", BLK_ERROR_INTERNAL, "tuning in isolation: because", 0, 0},
		{"refuse 99", BLK_ERROR_INTERNAL, "tuning in isolation: because", 0, 0},
		{"long refusal", BLK_ERROR_COMPILE, "tuning in isolation: xxxx", 0, 0}};
	int descriptors = count_files("/proc/self/fd");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		seen s;
		setenv("FAKE_TRIAL", rows[i].how, 1);
		blk_status status = tune(&s);
		const char *said = status ? blk_error() : s.reason[0];
		if (status != rows[i].status || !strstr(said, rows[i].says) || (!rows[i].says[0] && said[0]))
			fail_msg("%s: %s: %s", rows[i].how, blk_status_text(status), said);
		if (!status && ((int)s.verdict[0] != rows[i].first || (int)s.verdict[1] != rows[i].second))
			fail_msg("%s: verdicts %d and %d", rows[i].how, (int)s.verdict[0], (int)s.verdict[1]);
		if (count_files("/proc/self/fd") != descriptors) fail_msg("%s leaves a descriptor", rows[i].how);
		if (strcmp(rows[i].how, "slow") == 0)
			assert_true(s.steps >= 2 && s.last == 1 && s.of == 2 && s.best_ms == 1.5);
		if (strcmp(rows[i].how, "good") == 0) assert_int_equal(s.chosen, 1); /* 1 ms, not 2 */
	}
	assert_int_equal(fake.launches, 0); /* nothing runs here */
}

/* Each step is told, whichever number it changes, and once. */
static void test_steps(void **state)
{
	(void)state;
	seen s;
	setenv("FAKE_TRIAL", "steps", 1);
	assert_int_equal(tune(&s), BLK_OK);
	assert_true(s.told[1][4] == 1 && s.told[2][4] == 1 && s.told[2][5] == 1 && s.told[3][6] == 1);
}

/* What a process of this one's kind did not survive is tried where it can do no harm. */
static void test_suspects(void **state)
{
	(void)state;
	char cache_folder[] = "/tmp/blk_isolated_XXXXXX", path[200], command[300];
	uint64_t bits[SIGNATURE_PARAMETERS], promises;
	cache_key key;
	seen s;
	assert_non_null(mkdtemp(cache_folder));
	setenv("BLK_CACHE", "on", 1);
	setenv("BLK_CACHE_DIR", cache_folder, 1);
	blk_device_close(device);
	assert_int_equal(open_job(SOURCE TUNED, NULL, 0), BLK_OK);
	assert_int_equal(
		launch_arguments(kernel, BLK_ARGS(blk_buf(z), blk_buf(x), blk_buf(y), blk_i32(100)), bits, &promises),
		BLK_OK);
	assert_true(tune_record_key(kernel, bits, promises, &key));
	int n = snprintf(path, sizeof path, "%s/tune", cache_folder);
	assert_int_equal(mkdir(path, 0700), 0);
	n += snprintf(path + n, sizeof path - (size_t)n, "/.trying-");
	for (int i = 0; i < 16; i++) n += snprintf(path + n, sizeof path - (size_t)n, "%02x", key.bytes[i]);
	snprintf(path + n, sizeof path - (size_t)n, "-1-1");
	FILE *mark = fopen(path, "w");
	assert_true(mark && fputs("T=32\n", mark) >= 0 && fclose(mark) == 0);
	assert_int_equal(tune(&s), BLK_OK);
	assert_int_equal(s.verdict[0], BLK_TUNE_GOOD);
	assert_string_equal(s.reason[0], "");
	assert_int_not_equal(access(path, F_OK), 0);
	snprintf(command, sizeof command, "rm -r %s", cache_folder);
	assert_int_equal(system(command), 0);
	unsetenv("BLK_CACHE_DIR");
}

/* A refusal that a launch can live with is told in a note; any other ends it. */
static void test_launches(void **state)
{
	(void)state;
	static const struct {
		blk_status refuses, status;
	} rows[] = {{BLK_ERROR_MEMORY, BLK_OK}, {BLK_ERROR_ARGUMENT, BLK_OK}, {BLK_ERROR_DRIVER, BLK_ERROR_DRIVER},
		{BLK_ERROR_COMPILE, BLK_ERROR_COMPILE}};
	setenv("BLK_TUNE", "isolated", 1);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char how[32];
		int before = fake.launches;
		snprintf(how, sizeof how, "refuse %d", (int)rows[i].refuses);
		setenv("FAKE_TRIAL", how, 1);
		blk_arg n = blk_i32((int)i + 1); /* another key each */
		blk_status status = blk_launch(kernel, NULL, NULL, BLK_ARGS(blk_buf(z), blk_buf(x), blk_buf(y), n));
		assert_int_equal(status, rows[i].status);
		const char *said = status ? blk_error() : blk_note();
		assert_non_null(strstr(said, "tuning in isolation: because"));
		if (!status) assert_non_null(strstr(said, "; it runs with its defaults"));
		assert_int_equal(fake.launches, before + !status);
		if (!status) assert_int_equal(fake.threads, 128);
	}
	setenv("FAKE_TRIAL", "good", 1);
	assert_int_equal(
		blk_launch(kernel, NULL, NULL, BLK_ARGS(blk_buf(z), blk_buf(x), blk_buf(y), blk_i32(77))), BLK_OK);
	assert_int_equal(fake.threads, 40);
}

/* z is a part of x, y is empty, a define and a grid: all of it is there on the other side. */
static void test_block(void **state)
{
	(void)state;
	static const blk_define define = {"LOCAL", "0"};
	const blk_grid grid = {3, 1, 1};
	blk_buffer *empty;
	blk_device_close(device);
	assert_int_equal(open_job(SOURCE TUNED, &define, 1), BLK_OK);
	assert_int_equal(blk_buffer_create(device, 0, &empty), BLK_OK);
	const blk_arg part = blk_ptr((char *)blk_buffer_pointer(x) + 4);
	setenv("FAKE_TRIAL", "block", 1);
	blk_tune_options o = {.isolated = 1, .again = 1};
	blk_status s =
		blk_kernel_tune(kernel, &grid, BLK_ARGS(part, blk_buf(x), blk_buf(empty), blk_i32(50)), &o, NULL);
	if (s) fail_msg("%s", blk_error());
	/* null is no memory */
	setenv("FAKE_TRIAL", "good", 1);
	s = blk_kernel_tune(kernel, &grid, BLK_ARGS(part, blk_ptr(NULL), blk_buf(empty), blk_i32(50)), &o, NULL);
	if (s) fail_msg("%s", blk_error());
}

static void test_limits(void **state)
{
	(void)state;
	static const char *const rows[][2] = {{NULL, "10 s"}, {"", "10 s"}, {"abc", "10 s"}, {"1x", "10 s"},
		{"0", "10 s"}, {"-1", "10 s"}, {"2e6", "10 s"}, {"nan", "10 s"}, {"0.5", "0.5 s"},
		{"999999", "999999 s"}};
	setenv("FAKE_TRIAL", "limit", 1);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char says[64];
		seen s;
		if (rows[i][0]) setenv("BLK_TUNE_LIMIT", rows[i][0], 1);
		assert_int_equal(tune(&s), BLK_ERROR_UNSUPPORTED);
		snprintf(says, sizeof says, "tuning in isolation: %s", rows[i][1]);
		assert_string_equal(blk_error(), says);
	}
}

static void test_helpers(void **state)
{
	(void)state;
	static char far[5000];
	char text[128];
	seen s;
	memset(far, 'a', sizeof far - 1);
	far[0] = '/';
	snprintf(text, sizeof text, "%s/text", folder);
	int fd = open(text, O_WRONLY | O_CREAT, 0700);
	assert_true(fd >= 0 && write(fd, "no program\n", 11) == 11 && close(fd) == 0);
	const struct {
		const char *path;
		blk_status status;
		const char *says;
	} rows[] = {{"/nowhere/blk-trial", BLK_ERROR_NOT_FOUND, "BLK_TRIAL=/nowhere/blk-trial: No such file"},
		{"/dev/null", BLK_ERROR_NOT_FOUND, "BLK_TRIAL=/dev/null: Permission denied"},
		{far, BLK_ERROR_NOT_FOUND, ": File name too long"},
		{text, BLK_ERROR_IO, "/text cannot be started: Exec format error"}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		setenv("BLK_TRIAL", rows[i].path, 1);
		errno = 0;
		blk_status status = tune(&s);
		if (status != rows[i].status || !strstr(blk_error(), rows[i].says))
			fail_msg("%.40s: %s: %.200s", rows[i].path, blk_status_text(status), blk_error());
	}
	unlink(text);
}

/* What another process cannot be given. */
static void test_addresses(void **state)
{
	(void)state;
	seen s;
	static const char *const facts[] = {SOURCE "uses_addresses\n" TUNED, SOURCE "writes_addresses 3\n" TUNED,
		SOURCE "writes_addresses\n" TUNED};
	for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
		blk_device_close(device);
		assert_int_equal(open_job(facts[i], NULL, 0), BLK_OK);
		assert_int_equal(tune(&s), BLK_ERROR_ARGUMENT);
		assert_non_null(strstr(blk_error(), "kernel add cannot be tuned in isolation: it reads or writes at"));
	}
	setenv("BLK_TUNE", "isolated", 1);
	assert_int_equal(
		blk_launch(kernel, NULL, NULL, BLK_ARGS(blk_buf(z), blk_buf(x), blk_buf(y), blk_i32(4))), BLK_OK);
	assert_non_null(strstr(blk_note(), "cannot be tuned in isolation"));
}

/* What is known of a configuration before goes there and comes back; a helper that is not named is looked for. */
static void test_known_before(void **state)
{
	(void)state;
	seen s;
	blk_device_close(device);
	assert_int_equal(
		open_job(SOURCE "requires p3 $T <= ; n=p3 ; n <= T ; it fits\nautotune key n\nconfiguration T=32\n"
				"fits p3 32 <=\nconfiguration T=128\nfits p3 128 <=\n",
			NULL, 0),
		BLK_OK);
	assert_int_equal(tune(&s), BLK_OK);
	assert_int_equal(s.verdict[0], BLK_TUNE_GOOD); /* the last that was shown: T=128 */
	assert_int_equal(s.shown, 2);
	assert_string_equal(s.reason[0], "");
	setenv("BLK_TRIAL", "", 1);
	assert_int_not_equal(tune(&s), BLK_OK); /* no other program has this compiler and this device */
}

/* ---- What the system refuses ---- */

static void test_system(void **state)
{
	(void)state;
	if (!wraps((void *)tune_isolated)) return;
	static const struct {
		const char *name, *how;
		int at, error;
		blk_status status;
		const char *says;
	} rows[] = {{"fcntl", "good", 1, EMFILE, BLK_ERROR_IO, "no shared memory for trials: Too many open files"},
		{"fcntl", "good", 2, EMFILE, BLK_ERROR_IO, "cannot be started: Too many open files"},
		{"mmap", "good", 1, ENOMEM, BLK_ERROR_MEMORY, "no room for copies of the arguments: Cannot allocate"},
		{"posix_spawn_file_actions_addopen", "good", 2, ENOMEM, BLK_ERROR_IO,
			"cannot be started: Cannot allocate"},
		{"posix_spawn_file_actions_adddup2", "good", 1, EBADF, BLK_ERROR_IO, "cannot be started: Bad file"},
		{"posix_spawn_file_actions_adddup2", "good", 2, EBADF, BLK_ERROR_IO, "cannot be started: Bad file"},
		{"poll", "good", 1, EINTR, BLK_OK, ""},
		{"poll", "slow", 1, ENOMEM, BLK_ERROR_IO, "blk-trial cannot be watched: Cannot allocate"},
		{"waitpid", "good", 1, EINTR, BLK_OK, ""}};
	int descriptors = count_files("/proc/self/fd");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		seen s;
		setenv("FAKE_TRIAL", rows[i].how, 1);
		system_fault.name = rows[i].name;
		system_fault.calls = 0;
		system_fault.at = rows[i].at;
		system_fault.error = rows[i].error;
		blk_status status = tune(&s);
		system_fault.name = NULL;
		if (system_fault.calls < rows[i].at) fail_msg("%s was not called", rows[i].name);
		if (status != rows[i].status || (status && !strstr(blk_error(), rows[i].says)))
			fail_msg("%s: %s: %s", rows[i].name, blk_status_text(status), blk_error());
		if (!status) assert_int_equal(s.verdict[1], BLK_TUNE_GOOD);
		if (count_files("/proc/self/fd") != descriptors) fail_msg("%s leaves a descriptor", rows[i].name);
	}
}

/* Someone else in this program asks for all children: how ours ended is not known then, what it said is. */
static void test_waited_for_elsewhere(void **state)
{
	(void)state;
	seen s;
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(tune(&s), BLK_OK);
	assert_true(s.verdict[0] == BLK_TUNE_GOOD && s.verdict[1] == BLK_TUNE_GOOD);
	signal(SIGCHLD, SIG_DFL);
}

/* Half a minute after a kill (which passes quickly here) one is told of the process that does not end. */
static void test_cannot_be_ended(void **state)
{
	(void)state;
	if (!wraps((void *)tune_isolated)) return;
	seen s;
	char number[32];
	setenv("FAKE_TRIAL", "good", 1);
	system_fault.name = "waitpid";
	system_fault.error = EINTR;
	blk_status status = tune(&s);
	system_fault.name = NULL;
	assert_int_equal(status, BLK_ERROR_DRIVER);
	assert_int_equal(system_fault.calls, 6000);
	pid_t unended = waitpid(-1, NULL, 0);
	snprintf(number, sizeof number, ": process %ld", (long)unended);
	assert_non_null(strstr(blk_error(), "a trial cannot be ended"));
	assert_non_null(strstr(blk_error(), number));
}

/* ---- Memory ---- */

/* Each allocation of a tuning fails: the verdicts are there, or the status says that memory was out. */
static void test_memory(void **state)
{
	(void)state;
	if (!FAULTY_MALLOC) skip();
	seen s;
	int good = 0, out = 0, descriptors = count_files("/proc/self/fd");
	assert_int_equal(tune(&s), BLK_OK); /* code of both is there now */
	for (long at = 1;; at++) {
		error_set(BLK_ERROR_ARGUMENT, "%300s", "room for what comes");
		faulty.calls = 0;
		faulty.fail_at = at;
		faulty.armed = true;
		blk_status status = tune(&s);
		faulty.armed = false;
		bool hit = faulty.calls >= at;
		if (status != BLK_OK && status != BLK_ERROR_MEMORY && status != BLK_ERROR_IO)
			fail_msg("allocation %ld: %s: %s", at, blk_status_text(status), blk_error());
		if (status && !strstr(blk_error(), "memory")) fail_msg("allocation %ld says: %s", at, blk_error());
		if (!status) assert_true(s.verdict[0] == BLK_TUNE_GOOD && s.verdict[1] == BLK_TUNE_GOOD);
		if (count_files("/proc/self/fd") != descriptors) fail_msg("allocation %ld leaves a descriptor", at);
		good += !status;
		out += status != BLK_OK;
		if (!hit) break;
	}
	print_message("%d without memory, %d with\n", out, good);
	assert_true(out >= 2 && good >= 1);
}

int main(void)
{
	const char *how = getenv("FAKE_TRIAL");
	if (how) be_a_trial(how);
	/* The fake driver has one current context for all threads: configurations are compiled by one. */
	cpu_set_t allowed, one;
	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
		for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
			if (CPU_ISSET(i, &allowed)) CPU_SET(i, &one);
	sched_setaffinity(0, sizeof one, &one);
	ssize_t n = readlink("/proc/self/exe", myself, sizeof myself - 1);
	if (n <= 0) return 1;
	strcpy(folder, "/tmp/blk_isolated_XXXXXX");
	if (!mkdtemp(folder)) return 1;
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(test_ends),
		T(test_steps),
		T(test_suspects),
		T(test_launches),
		T(test_block),
		T(test_limits),
		T(test_helpers),
		T(test_addresses),
		T(test_known_before),
		T(test_system),
		T(test_waited_for_elsewhere),
		T(test_cannot_be_ended),
		T(test_memory),
	};
	int status = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return status;
}
