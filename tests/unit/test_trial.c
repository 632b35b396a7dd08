/* blk-trial, given what libblk never gives it: no block, one of another version, jobs that it cannot do.  It says why
 * in the block where there is one, and touches nothing where there is none.
 *
 * It runs as libblk runs it: the block is descriptor 3, descriptor 4 a pipe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/tune/share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char trial_path[4096];

/* ---- The block ---- */

enum { ROOM = 1 << 16 };

typedef struct job {
	int fd;
	tune_share *share;
	uint64_t used;
	tune_slot *slots;
	tune_shared_buffer *buffers;
	tune_shared_arg *args;
} job;

static void *room_for(job *j, size_t n, uint64_t *offset)
{
	*offset = (j->used + 63) & ~UINT64_C(63);
	j->used = *offset + n;
	assert_true(j->used <= ROOM);
	return (char *)j->share + *offset;
}
static void put_text(job *j, const char *s, uint64_t *offset)
{
	strcpy(room_for(j, strlen(s) + 1, offset), s);
}

static const char source[] = "kernel scale(y: *f32, x: *const f32, n: i32, const B: i32 = 64) grid(cdiv(n, B)) {\n"
			     "  let i = program_id(0) * B + arange(0, B);\n"
			     "  store(y + i, 2.0 * load(x + i, mask = i < n), mask = i < n);\n"
			     "}\n"
			     "kernel plain(n: i32) grid(1) { }\n"
			     "autotune scale key(n) { B: [64, 128]; }\n";

/* A job that can be done: x of 4 floats, y in a buffer of its own. */
static job make_job(void)
{
	job j = {.fd = memfd_create("test", MFD_CLOEXEC), .used = sizeof(tune_share)};
	assert_true(j.fd >= 0 && ftruncate(j.fd, ROOM) == 0);
	j.share = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, j.fd, 0);
	assert_true(j.share != MAP_FAILED);
	tune_share *s = j.share;
	strcpy(s->magic, TUNE_SHARE_MAGIC);
	s->bytes = ROOM;
	s->parent = getpid();
	s->limit_s = 10;
	s->running = TUNE_NONE;
	s->nslots = 2;
	j.slots = room_for(&j, 2 * sizeof *j.slots, &s->slots);
	put_text(&j, "cpu:fast", &s->device);
	put_text(&j, "scale.blk", &s->module);
	put_text(&j, "scale", &s->kernel);
	put_text(&j, source, &s->text);
	s->text_bytes = strlen(source);
	s->nbuffers = 2;
	s->nargs = 3;
	j.buffers = room_for(&j, 2 * sizeof *j.buffers, &s->buffers);
	j.args = room_for(&j, 3 * sizeof *j.args, &s->args);
	for (int i = 0; i < 2; i++) {
		float *values = room_for(&j, 16, &j.buffers[i].at);
		for (int k = 0; k < 4; k++) values[k] = (float)k;
		j.buffers[i].bytes = 16;
		j.args[i] = (tune_shared_arg){.type = BLK_TYPE_BUFFER, .buffer = (uint32_t)i};
	}
	j.args[2] = (tune_shared_arg){.type = BLK_TYPE_I32, .buffer = TUNE_NONE, .bits = 3};
	s->promises = 3; /* y%16 and x%16; n has none */
	return j;
}
static void end_job(job *j)
{
	munmap(j->share, ROOM);
	close(j->fd);
}

/* Its exit status; `fd` below 0: no descriptor 3. */
static int run_trial(int fd)
{
	int status, life[2];
	assert_int_equal(pipe(life), 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		int high = fd >= 0 ? fcntl(fd, F_DUPFD, 20) : -1, end = fcntl(life[1], F_DUPFD, 20),
		    null = open("/dev/null", O_RDWR);
		alarm(60);
		dup2(null, 2);
		for (int i = 3; i < 20; i++) close(i);
		if (high >= 0) dup2(high, TUNE_SHARE_FD);
		dup2(end, TUNE_LIFE_FD);
		execl(trial_path, trial_path, (char *)NULL);
		_exit(99);
	}
	close(life[0]);
	close(life[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int setup(void **state)
{
	(void)state;
	setenv("BLK_CACHE", "off", 1);
	setenv("BLK_CPU_THREADS", "1", 1);
	if (access(trial_path, X_OK) != 0) print_message("%s is not built\n", trial_path);
	return access(trial_path, X_OK);
}

/* ---- Without a job ---- */

static void test_no_job(void **state)
{
	(void)state;
	char path[] = "/tmp/blk_trial_XXXXXX";
	assert_int_equal(run_trial(-1), 2);
	int fd = mkstemp(path);
	unlink(path);
	assert_int_equal(run_trial(fd), 2); /* empty */
	assert_int_equal(ftruncate(fd, sizeof(tune_share) - 1), 0);
	assert_int_equal(run_trial(fd), 2);
	assert_int_equal(ftruncate(fd, ROOM), 0); /* large enough, but zeroes */
	assert_int_equal(run_trial(fd), 2);
	close(fd);
	fd = open("/dev/zero", O_RDWR);
	assert_int_equal(run_trial(fd), 2);
	close(fd);
	job unwritable = make_job(); /* a block that cannot be mapped as it must be */
	char name[64];
	snprintf(name, sizeof name, "/proc/self/fd/%d", unwritable.fd);
	fd = open(name, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(run_trial(fd), 2);
	assert_int_equal(unwritable.share->state, TUNE_STARTING);
	close(fd);
	end_job(&unwritable);
	static const struct {
		const char *magic;
		uint64_t bytes;
		int parent, exits;
	} rows[] = {{"blk something", ROOM, 0, 2}, {TUNE_SHARE_MAGIC, ROOM - 1, 0, 2}, {TUNE_SHARE_MAGIC, 0, 0, 2},
		{TUNE_SHARE_MAGIC, ROOM, 1, 1}}; /* whoever started it has gone */
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		job j = make_job();
		strcpy(j.share->magic, rows[i].magic);
		j.share->bytes = rows[i].bytes;
		j.share->parent += rows[i].parent;
		assert_int_equal(run_trial(j.fd), rows[i].exits);
		assert_int_equal(j.share->state, TUNE_STARTING);
		assert_string_equal(j.share->error, "");
		end_job(&j);
	}
}

/* ---- Jobs ---- */

static void do_nothing(job *j)
{
	(void)j;
}
static void other_version(job *j)
{
	strcpy(j->share->magic, "blk trial 0.0.0");
}
static void other_device(job *j)
{
	put_text(j, "moon", &j->share->device);
}
static void bad_source(job *j)
{
	put_text(j, "kernel scale(", &j->share->text);
	j->share->text_bytes = 13;
}
static void other_kernel(job *j)
{
	put_text(j, "shrink", &j->share->kernel);
}
static void untuned_kernel(job *j)
{
	put_text(j, "plain", &j->share->kernel);
	j->share->nargs = 1;
	j->args[0] = j->args[2];
}
static void more_slots(job *j)
{
	j->share->nslots = 1;
}
static void fewer_arguments(job *j)
{
	j->share->nargs = 2;
}
static void too_large(job *j)
{
	j->buffers[0].bytes = UINT64_MAX;
}
static void too_long(job *j)
{
	j->share->text_bytes = UINT64_MAX - 16;
}
static void other_promises(job *j)
{
	j->share->promises = 1;
}
static void null_argument(job *j)
{
	j->args[2].type = 77;
}
/* only the second configuration takes x for a table of addresses */
static void addresses(job *j)
{
	put_text(j,
		"kernel scale(y: *f32, x: *const u64, n: i32, const B: i32 = 64) grid(1) {\n"
		"  if B == 64 { store(y, 2.0); } else { store(y, load(load(x).to(*const f32))); }\n"
		"}\n"
		"autotune scale key(n) { B: [64, 128]; }\n",
		&j->share->text);
	j->share->text_bytes = strlen((const char *)j->share + j->share->text);
}
static void bad_define(job *j)
{
	tune_shared_define *d = room_for(j, sizeof *d, &j->share->defines);
	put_text(j, "NOTHING", &d->name);
	put_text(j, "1", &d->value);
	j->share->ndefines = 1;
}
/* a pointer in place of a buffer, a grid in place of the clause */
static void pointer_and_grid(job *j)
{
	j->args[1] = (tune_shared_arg){.type = BLK_TYPE_POINTER, .buffer = 1, .offset = 0};
	j->share->grid = (blk_grid){1, 1, 1};
}
static void known_wrong(job *j)
{
	j->slots[0].verdict = BLK_TUNE_WRONG;
	strcpy(j->slots[0].reason, "as before");
}

static void test_jobs(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		void (*change)(job *);
		blk_status status; /* BLK_OK: it is done */
		const char *says;
	} rows[] = {{"a good one", do_nothing, BLK_OK, ""}, {"a pointer", pointer_and_grid, BLK_OK, ""},
		{"known wrong", known_wrong, BLK_OK, "as before"},
		{"another version", other_version, BLK_ERROR_UNSUPPORTED, "but libblk is another"},
		{"another device", other_device, BLK_ERROR_ARGUMENT, "no device is called \"moon\""},
		{"bad source", bad_source, BLK_ERROR_COMPILE, "scale.blk:1:"},
		{"another kernel", other_kernel, BLK_ERROR_NOT_FOUND, "no kernel \"shrink\""},
		{"an untuned kernel", untuned_kernel, BLK_ERROR_INTERNAL, "sees other configurations of kernel plain"},
		{"other configurations", more_slots, BLK_ERROR_INTERNAL, "sees other configurations of kernel scale"},
		{"arguments", fewer_arguments, BLK_ERROR_TYPE, "takes 3 arguments, not 2"},
		{"a type", null_argument, BLK_ERROR_TYPE, "none that blk_buf"},
		{"addresses", addresses, BLK_ERROR_ARGUMENT, "scale cannot be tuned in isolation"},
		{"a buffer", too_large, BLK_ERROR_MEMORY, "more than memory can hold"},
		{"a text", too_long, BLK_ERROR_MEMORY, "out of memory"},
		{"promises", other_promises, BLK_ERROR_INTERNAL, "copies of the arguments keep other promises"},
		{"a define", bad_define, BLK_ERROR_COMPILE, "NOTHING"}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		job j = make_job();
		rows[i].change(&j);
		assert_int_equal(run_trial(j.fd), 0);
		bool done = rows[i].status == BLK_OK;
		if ((tune_state)j.share->state != (done ? TUNE_DONE : TUNE_REFUSED) ||
			(!done && ((blk_status)j.share->status != rows[i].status ||
					  !strstr(j.share->error, rows[i].says))))
			fail_msg("%s: state %u, status %u: %s", rows[i].what, j.share->state, j.share->status,
				j.share->error);
		if (done) {
			bool wrong = rows[i].says[0];
			assert_int_equal(j.slots[0].verdict, wrong ? BLK_TUNE_WRONG : BLK_TUNE_GOOD);
			assert_int_equal(j.slots[1].verdict, BLK_TUNE_GOOD);
			assert_true(j.slots[1].ms > 0);
			assert_string_equal(j.slots[0].reason, rows[i].says);
			assert_true(j.share->total > 0 && j.share->done == j.share->total);
		}
		end_job(&j);
	}
}

int main(void)
{
	ssize_t n = readlink("/proc/self/exe", trial_path, sizeof trial_path - 32);
	if (n <= 0) return 1;
	trial_path[n] = 0;
	strcpy(strrchr(trial_path, '/'), "/../lib/blk-trial");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_no_job, setup), cmocka_unit_test_setup(test_jobs, setup)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
