/* Running a program (compiler/target/nvptx/tool.h) that is a script: how it is found, what it leaves, how it may end,
 * and what the system may refuse on the way.  No descriptor, temporary file or process is left. */
#include "memory.h"

#include "target/nvptx/tool.h"
#include "wrapped.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The system ---- */

static struct {
	const char *name;
	int at, calls, error;
} fault; /* the at-th call of this name fails */

static bool fails(const char *name)
{
	if (!fault.name || strcmp(fault.name, name) != 0 || ++fault.calls != fault.at) return false;
	errno = fault.error;
	return true;
}
#define WRAP(type, failure, name, parameters, arguments)                                                               \
	type __real_##name parameters;                                                                                 \
	type __wrap_##name parameters;                                                                                 \
	type __wrap_##name parameters                                                                                  \
	{                                                                                                              \
		return fails(#name) ? failure : __real_##name arguments;                                               \
	}
WRAP(ssize_t, -1, read, (int a, void *b, size_t c), (a, b, c))
WRAP(ssize_t, -1, write, (int a, const void *b, size_t c), (a, b, c))
WRAP(int, -1, poll, (struct pollfd * a, nfds_t b, int c), (a, b, c))
WRAP(pid_t, -1, waitpid, (pid_t a, int *b, int c), (a, b, c))
WRAP(int, -1, pipe2, (int a[2], int b), (a, b))
WRAP(int, -1, mkostemp, (char *a, int b), (a, b))
WRAP(int, fault.error, posix_spawn_file_actions_init, (posix_spawn_file_actions_t * a), (a))
WRAP(int, fault.error, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t * a, int b, int c), (a, b, c))

/* ---- The program ---- */

static char folder[64], program[96], scratch[96];

static void write_program(const char *path, const char *words, unsigned mode)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(words, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}
/* $1 is the input, $2 the output. */
static void script(const char *body)
{
	char words[1024];
	snprintf(words, sizeof words, "#!/bin/sh\n%s\n", body);
	write_program(program, words, 0700);
}

static int count(const char *path)
{
	int n = 0;
	DIR *d = opendir(path);
	while (d && readdir(d)) n++;
	if (d) closedir(d);
	return n;
}

static int begin(void **state)
{
	strcpy(folder, "/tmp/blk_tool_XXXXXX");
	if (set_up(state) || !mkdtemp(folder)) return -1;
	snprintf(program, sizeof program, "%s/program", folder);
	snprintf(scratch, sizeof scratch, "%s/scratch", folder);
	memset(&fault, 0, sizeof fault);
	return mkdir(scratch, 0700) || setenv("TMPDIR", scratch, 1);
}
static int end(void **state)
{
	signal(SIGCHLD, SIG_DFL);
	unsetenv("TMPDIR");
	assert_int_equal(count(scratch), 2);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	unlink(program);
	rmdir(scratch);
	assert_int_equal(rmdir(folder), 0);
	return tear_down(state);
}

/* Runs the script; what tool_run() says.  `t` is closed by the caller. */
static int run(tool *t, bool capture)
{
	assert_true(tool_is(t, program));
	assert_true(tool_prepare(t, "some text", 9));
	char *arguments[] = {t->program, t->input, t->output, NULL};
	return tool_run(t, arguments, capture);
}

/* ---- Ends ---- */

static void test_ends(void **state)
{
	(void)state;
	static const struct {
		const char *script;
		tool_limits limits;
		int returns;
		tool_end how;
		int code;
		const char *ending, *log; /* null: none; a part of it */
	} rows[] = {{"exit 0", {0, 0}, 0, TOOL_EXITED, 0, NULL, ""},
		{"echo no >&2; exit 7", {0, 0}, 7, TOOL_EXITED, 7, NULL, "no\n"},
		{"kill -SEGV $$", {0, 0}, -1, TOOL_KILLED, SIGSEGV, "was killed by signal 11 (SIGSEGV)", ""},
		{"kill -SEGV $$", {0, 900}, -1, TOOL_KILLED, SIGSEGV,
			"was killed by signal 11 (SIGSEGV); its memory limit is 900 MiB", ""},
		{"kill -ABRT $$", {0, 900}, -1, TOOL_KILLED, SIGABRT, "(SIGABRT); its memory limit is 900 MiB", ""},
		{"kill -BUS $$", {0, 900}, -1, TOOL_KILLED, SIGBUS, "(SIGBUS); its memory limit is 900 MiB", ""},
		{"kill -TERM $$", {0, 900}, -1, TOOL_KILLED, SIGTERM, "was killed by signal 15 (SIGTERM)", ""},
		{"kill -KILL $$", {0, 0}, -1, TOOL_KILLED, SIGKILL,
			"(SIGKILL), not by us: the system does that where memory runs out", ""},
		{"kill -USR1 $$", {0, 0}, -1, TOOL_KILLED, SIGUSR1, "(a signal)", ""},
		{"kill -XCPU $$", {0, 0}, -1, TOOL_KILLED, SIGXCPU, "(SIGXCPU)", ""},
		{"kill -XCPU $$", {3, 0}, -1, TOOL_OUT_OF_TIME, SIGXCPU, "was stopped after 3 s, the time limit", ""},
		{"exec sleep 20", {1, 0}, -1, TOOL_OUT_OF_TIME, SIGKILL, "was stopped after 1 s, the time limit", ""},
		{"echo 'Memory allocation failure'; exit 1", {0, 0}, 1, TOOL_EXITED, 1, "ran out of memory", "Memory"},
		{"echo 'is out of memory'; exit 1", {0, 0}, 1, TOOL_EXITED, 1, "ran out of memory", "out of"},
		{"echo 'Out of memory'; exit 1", {0, 900}, 1, TOOL_EXITED, 1, "ran out of memory: its limit is 900 MiB",
			"Out"},
		{"echo 'Cannot allocate memory'; exit 1", {0, 0}, 1, TOOL_EXITED, 1, "ran out of memory", "Cannot"},
		{"echo 'std::bad_alloc'; kill -ABRT $$", {0, 0}, -1, TOOL_KILLED, SIGABRT, "ran out of memory",
			"bad_alloc"},
		{"echo \"$1 and $2 and $1\"", {0, 0}, 0, TOOL_EXITED, 0, NULL, "input and output and input\n"},
		{"exec >&- 2>&-; sleep 0.2; exit 4", {0, 0}, 4, TOOL_EXITED, 4, NULL,
			""},                                                  /* closes the pipe, goes on */
		{"(sleep 1) & exit 5", {0, 0}, 5, TOOL_EXITED, 5, NULL, ""}}; /* what holds it is not waited for */
	int descriptors = count("/proc/self/fd");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		tool *t = tool_open(&memory);
		script(rows[i].script);
		t->limits = rows[i].limits;
		int returns = run(t, false);
		const char *ending = tool_ending(t, &memory);
		if (returns != rows[i].returns || t->end != rows[i].how ||
			(t->end != TOOL_OUT_OF_TIME && t->code != rows[i].code))
			fail_msg("%s: %d, %d, %d", rows[i].script, returns, (int)t->end, t->code);
		if (ending ? !rows[i].ending || !strstr(ending, rows[i].ending) : rows[i].ending != NULL)
			fail_msg("%s: %s", rows[i].script, ending ? ending : "no ending");
		if (rows[i].log[0] ? !strstr(t->log, rows[i].log) : t->log[0])
			fail_msg("%s: %s", rows[i].script, t->log);
		if (t->end == TOOL_KILLED && !rows[i].limits.megabytes) assert_null(strstr(ending, "MiB"));
		tool_close(t);
		if (count("/proc/self/fd") != descriptors || count(scratch) != 2)
			fail_msg("%s: left behind", rows[i].script);
	}
}

/* What is said beyond the log's room is dropped, and does not stop the program. */
static void test_long_log(void **state)
{
	(void)state;
	tool *t = tool_open(&memory);
	script("i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789; i=$((i + 1)); done; exit "
	       "3");
	assert_int_equal(run(t, false), 3);
	assert_int_equal(strlen(t->log), sizeof t->log - 1);
	assert_int_equal(t->log_bytes, sizeof t->log - 1);
	tool_close(t);
}

/* The limits are the system's too: less than we had stays less. */
static void test_limits(void **state)
{
	(void)state;
	struct rlimit less;
	tool *t = tool_open(&memory);
	script("ulimit -t; ulimit -v");
	t->limits = (tool_limits){100, 1000};
	assert_int_equal(run(t, false), 0);
	long seconds = 0, kilobytes = 0;
	if (sscanf(t->log, "%ld %ld", &seconds, &kilobytes) == 2) { /* set when it runs: it may be too quick */
		assert_int_equal(kilobytes, 1000 << 10);
		assert_true(seconds >= 100);
	}
	tool_close(t);
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
	return; /* which need addresses without end */
#endif
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		less = (struct rlimit){(rlim_t)8 << 30, (rlim_t)8 << 30};
		if (setrlimit(RLIMIT_AS, &less)) _exit(9);
		t = tool_open(&memory);
		script("sleep 0.1; ulimit -v");
		t->limits = (tool_limits){0, 1 << 20}; /* a TiB */
		int returns = run(t, false);
		bool kept = atol(t->log) == 8 << 20;
		tool_close(t);
		_exit(returns == 0 && kept ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- Output ---- */

static void test_outputs(void **state)
{
	(void)state;
	static const struct {
		const char *script;
		bool capture;
		const char *output; /* null: none */
	} rows[] = {{"cat \"$1\" >\"$2\"; echo more >>\"$2\"", false, "some textmore\n"}, {"exit 0", false, NULL},
		{"rm \"$2\"", false, NULL}, {"echo printed; echo aside >&2", true, "printed\n"},
		{"exit 0", true, NULL}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		tool *t = tool_open(&memory);
		size_t n = 0;
		script(rows[i].script);
		assert_int_equal(run(t, rows[i].capture), 0);
		const char *out = tool_output(t, &memory, &n);
		if (rows[i].output) {
			assert_string_equal(out, rows[i].output);
			assert_int_equal(n, strlen(rows[i].output));
		} else
			assert_null(out);
		if (rows[i].capture && rows[i].output) assert_string_equal(t->log, "aside\n");
		tool_close(t);
		tool_close(t); /* once more: nothing */
	}
}

/* A process that ignores SIGCHLD learns of no end: there is output, or nobody knows. */
static void test_ignored_children(void **state)
{
	(void)state;
	tool *t = tool_open(&memory);
	signal(SIGCHLD, SIG_IGN);
	script("echo made >\"$2\"; exit 3");
	assert_int_equal(run(t, false), 0);
	assert_int_equal(t->end, TOOL_EXITED);
	tool_close(t);
	t = tool_open(&memory);
	script("exit 3");
	assert_int_equal(run(t, false), -1);
	assert_int_equal(t->end, TOOL_UNKNOWN);
	assert_non_null(strstr(tool_ending(t, &memory), "nobody knows how it ended: this process ignores SIGCHLD"));
	tool_close(t);
	t = tool_open(&memory);
	script("rm \"$2\"");
	assert_int_equal(run(t, false), -1);
	tool_close(t);
}

/* ---- Finding ---- */

static void test_finding(void **state)
{
	(void)state;
	static char far[PATH_MAX + 100];
	static char path[3 * PATH_MAX];
	char beside[128], *before = strdup(getenv("PATH") ? getenv("PATH") : "");
	tool *t = tool_open(&memory);
	memset(far, 'a', sizeof far - 1);
	far[0] = '/';
	script("exit 0");
	assert_true(tool_is(t, program));
	assert_false(tool_is(t, folder)); /* no file */
	assert_false(tool_is(t, "/nowhere/program"));
	assert_false(tool_is(t, far));
	chmod(program, 0600);
	assert_false(tool_is(t, program));
	chmod(program, 0700);
	snprintf(beside, sizeof beside, "%s/other", folder);
	assert_true(tool_find(t, "program", beside));
	assert_string_equal(t->program, program);
	assert_false(tool_find(t, "no-such-program", beside));
	assert_false(tool_find(t, "no-such-program", "other")); /* no folder */
	assert_string_equal(t->program, "/usr/local/cuda/bin/no-such-program");
	const struct {
		const char *path;
		bool found;
	} rows[] = {{folder, true}, {":", false}, {"", false}, {NULL, false}, {"/nowhere::/tmp", false}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (rows[i].path)
			setenv("PATH", rows[i].path, 1);
		else
			unsetenv("PATH");
		assert_int_equal(tool_find(t, "program", NULL), rows[i].found);
	}
	snprintf(path, sizeof path, "%s:%.*s:%s", far, PATH_MAX - 6, far, folder); /* too long to be folders */
	setenv("PATH", path, 1);
	assert_true(tool_find(t, "program", NULL));
	setenv("PATH", before, 1);
	free(before);
	tool_close(t);
}

/* ---- What is refused ---- */

static void test_refusals(void **state)
{
	(void)state;
	if (!wraps((void *)tool_run)) return;
	static const struct {
		const char *call;
		int at, error;
		bool prepares;
		int returns; /* of the run; -2: errno says why */
	} rows[] = {{"mkostemp", 1, EMFILE, false, 0}, {"mkostemp", 2, EMFILE, false, 0},
		{"write", 1, ENOSPC, false, 0}, {"write", 1, EINTR, true, 0}, {"pipe2", 1, EMFILE, false, 0},
		{"posix_spawn_file_actions_init", 1, ENOMEM, true, -2},
		{"posix_spawn_file_actions_adddup2", 1, EBADF, true, -2},
		{"posix_spawn_file_actions_adddup2", 2, EBADF, true, -2}, {"poll", 1, EINTR, true, 0},
		{"poll", 1, ENOMEM, true, 0}, {"read", 1, EINTR, true, 0}, {"read", 1, EIO, true, 0},
		{"waitpid", 1, EINTR, true, 0}};
	int descriptors = count("/proc/self/fd");
	script("echo said; echo made >\"$2\"");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		tool *t = tool_open(&memory);
		assert_true(tool_is(t, program));
		fault.name = rows[i].call;
		fault.at = rows[i].at;
		fault.error = rows[i].error;
		fault.calls = 0;
		bool prepared = tool_prepare(t, "some text", 9);
		int why = errno, returns = 0;
		if (prepared) {
			char *arguments[] = {t->program, t->input, t->output, NULL};
			returns = tool_run(t, arguments, false);
			why = errno;
		}
		fault.name = NULL;
		if (fault.calls < fault.at) fail_msg("%s was not called", rows[i].call);
		if (prepared != rows[i].prepares || returns != rows[i].returns)
			fail_msg("%s %d: %d, %d", rows[i].call, rows[i].at, prepared, returns);
		if (!prepared || returns == -2) assert_int_equal(why, rows[i].error);
		tool_close(t);
		if (count("/proc/self/fd") != descriptors || count(scratch) != 2)
			fail_msg("%s: left behind", rows[i].call);
	}
	/* reading what it made */
	for (int error = 0; error < 2; error++) {
		size_t n;
		tool *t = tool_open(&memory);
		assert_int_equal(run(t, false), 0);
		fault.name = "read";
		fault.calls = 0;
		fault.at = 1;
		fault.error = error ? EIO : EINTR;
		const char *out = tool_output(t, &memory, &n);
		fault.name = NULL;
		if (error)
			assert_null(out);
		else
			assert_string_equal(out, "made\n");
		tool_close(t);
	}
	/* folders for temporary files that are none */
	static char far[PATH_MAX + 100];
	memset(far, 'a', sizeof far - 1);
	far[0] = '/';
	const struct {
		const char *folder;
		int error;
	} places[] = {{far, ENAMETOOLONG}, {"/nowhere", ENOENT}};
	for (size_t i = 0; i < 2; i++) {
		tool *t = tool_open(&memory);
		setenv("TMPDIR", places[i].folder, 1);
		assert_false(tool_prepare(t, "x", 1));
		assert_int_equal(errno, places[i].error);
		tool_close(t);
	}
	setenv("TMPDIR", "", 1); /* as if it were not set */
	tool *t = tool_open(&memory);
	assert_true(tool_prepare(t, "x", 1));
	assert_int_equal(strncmp(t->input, "/tmp/blk-", 9), 0);
	tool_close(t);
	setenv("TMPDIR", scratch, 1);
	/* a program that is none */
	write_program(program, "no script", 0700);
	t = tool_open(&memory);
	assert_int_equal(run(t, false), -2);
	assert_int_equal(errno, ENOEXEC);
	tool_close(t);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {T(test_ends), T(test_long_log), T(test_limits), T(test_outputs),
		T(test_ignored_children), T(test_finding), T(test_refusals)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
