/* Running a tool.  See tool.h. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void close_if_open(int *fd)
{
	if (*fd >= 0) close(*fd);
	*fd = -1;
}

tool *tool_open(arena *a)
{
	tool *t = ARENA_NEW(a, tool);
	t->pipe[0] = t->pipe[1] = t->file = -1;
	return t;
}

void tool_close(tool *t)
{
	close_if_open(&t->pipe[0]);
	close_if_open(&t->pipe[1]);
	close_if_open(&t->file);
	if (t->have_input) unlink(t->input);
	if (t->have_output) unlink(t->output);
	t->have_input = t->have_output = false;
}

/* ---- finding it ---- */

static bool runnable(const char *path)
{
	struct stat s;
	return stat(path, &s) == 0 && S_ISREG(s.st_mode) && access(path, X_OK) == 0;
}

bool tool_is(tool *t, const char *path)
{
	snprintf(t->program, sizeof t->program, "%s", path);
	return runnable(path);
}

static bool in_folder(tool *t, const char *folder, size_t n, const char *name)
{
	int length = snprintf(t->program, sizeof t->program, "%.*s/%s", (int)n, folder, name);
	return length > 0 && (size_t)length < sizeof t->program && runnable(t->program);
}

bool tool_find(tool *t, const char *name, const char *beside)
{
	static const char usual[] = "/usr/local/cuda/bin";
	const char *slash = beside ? strrchr(beside, '/') : NULL;
	if (slash && in_folder(t, beside, (size_t)(slash - beside), name)) return true;
	for (const char *p = getenv("PATH"); p && *p;) {
		size_t n = strcspn(p, ":");
		if (n && n < PATH_MAX && in_folder(t, p, n, name)) return true;
		p += n + (p[n] == ':');
	}
	return in_folder(t, usual, sizeof usual - 1, name);
}

/* ---- running it ---- */

static bool temporary(char *path, size_t room, int *fd)
{
	const char *folder = getenv("TMPDIR");
	int n = snprintf(path, room, "%s/blk-XXXXXX", folder && *folder ? folder : "/tmp");
	if (n < 0 || (size_t)n >= room) return errno = ENAMETOOLONG, false;
	*fd = mkostemp(path, O_CLOEXEC);
	return *fd >= 0;
}

static bool write_all(int fd, const char *s, size_t n)
{
	while (n) {
		ssize_t done = write(fd, s, n);
		if (done < 0 && errno == EINTR) continue;
		if (done <= 0) return false;
		s += done;
		n -= (size_t)done;
	}
	return true;
}

bool tool_prepare(tool *t, const void *bytes, size_t n)
{
	if (!temporary(t->input, sizeof t->input, &t->file)) return false;
	t->have_input = true;
	if (!write_all(t->file, bytes, n)) return false;
	close_if_open(&t->file);
	if (!temporary(t->output, sizeof t->output, &t->file)) return false;
	t->have_output = true;
	close_if_open(&t->file);
	return pipe2(t->pipe, O_CLOEXEC) == 0;
}

/* In a process that ignores SIGCHLD, as a parent may have asked for before exec, nobody learns how a child ended: tools
 * leave no output when they fail. */
static bool has_output(const tool *t)
{
	struct stat s;
	return stat(t->output, &s) == 0 && s.st_size > 0;
}

/* Temporary names are different each time, and what the compiler says must not be. */
static void hide_name(tool *t, const char *path, const char *instead)
{
	size_t n = strlen(path), short_n = strlen(instead);
	for (char *at = t->log; n > short_n && (at = strstr(at, path)) != NULL; at += short_n) {
		memcpy(at, instead, short_n);
		memmove(at + short_n, at + n, strlen(at + n) + 1);
	}
	t->log_bytes = strlen(t->log);
}

static uint64_t milliseconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* What has been said so far, as much of it as fits; waits `patience` ms for more.  False: that was all. */
static bool listen(tool *t, int patience)
{
	char rest[4096];
	struct pollfd said = {.fd = t->pipe[0], .events = POLLIN};
	int ready = poll(&said, 1, patience);
	if (ready <= 0) return ready == 0 || errno == EINTR;
	size_t room = sizeof t->log - 1 - t->log_bytes;
	ssize_t n = read(t->pipe[0], room ? t->log + t->log_bytes : rest, room ? room : sizeof rest);
	if (n < 0) return errno == EINTR;
	if (room) t->log_bytes += (size_t)n;
	return n > 0;
}

/* 1: it has ended, *status says how; 0: it runs; -1: nobody knows any more. */
static int has_ended(pid_t child, int *status)
{
	pid_t got;
	do got = waitpid(child, status, WNOHANG);
	while (got < 0 && errno == EINTR);
	return got == child ? 1 : got == 0 ? 0 : -1;
}

static void set_end(tool *t, int known, int status)
{
	t->end = TOOL_UNKNOWN;
	if (known > 0 && WIFEXITED(status)) t->end = TOOL_EXITED, t->code = WEXITSTATUS(status);
	if (known > 0 && WIFSIGNALED(status)) t->end = TOOL_KILLED, t->code = WTERMSIG(status);
	if (t->end == TOOL_KILLED && t->code == SIGXCPU && t->limits.seconds) t->end = TOOL_OUT_OF_TIME;
	if (known < 0 && has_output(t)) t->end = TOOL_EXITED, t->code = 0;
}

/* Until the child has ended, or its time has: what it started itself may hold the pipe for longer. */
static int listen_and_wait(tool *t, pid_t child)
{
	enum { PAUSE = 20, LAST_WORDS = 50 };
	uint64_t begin = milliseconds(), most = (uint64_t)t->limits.seconds * 1000;
	int status = 0, ended = 0, pause = 0;
	bool speaks = true, late = false;
	close_if_open(&t->pipe[1]);
	while (!ended) {
		if (speaks)
			speaks = listen(t, PAUSE);
		else
			poll(NULL, 0, pause = pause < PAUSE ? pause + 1 : PAUSE);
		ended = has_ended(child, &status);
		late = !ended && most && milliseconds() - begin >= most;
		if (!late) continue;
		kill(child, SIGKILL);
		while (!(ended = has_ended(child, &status))) poll(NULL, 0, 1);
	}
	for (uint64_t last = milliseconds(); speaks && milliseconds() - last < LAST_WORDS;) speaks = listen(t, 0);
	t->log[t->log_bytes] = 0;
	hide_name(t, t->input, "input");
	hide_name(t, t->output, "output");
	set_end(t, ended, status);
	if (late) t->end = TOOL_OUT_OF_TIME;
	return t->end == TOOL_EXITED ? t->code : -1;
}

/* Threads may spend more of it than the clock. */
static uint64_t processors(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	return n > 0 ? (uint64_t)n : 1;
}

static void limit(pid_t child, int what, uint64_t n, uint64_t grace)
{
	struct rlimit have, l = {.rlim_cur = n, .rlim_max = n + grace};
	if (!n || prlimit(child, what, NULL, &have)) return;
	if (l.rlim_max > have.rlim_max) l.rlim_max = have.rlim_max;
	if (l.rlim_cur > l.rlim_max) l.rlim_cur = l.rlim_max;
	prlimit(child, what, &l, NULL);
}

int tool_run(tool *t, char *const *arguments, bool capture)
{
	posix_spawn_file_actions_t actions;
	pid_t child;
	int error = posix_spawn_file_actions_init(&actions);
	t->log_bytes = 0;
	if (error) return errno = error, -2;
	if (capture)
		error = posix_spawn_file_actions_addopen(&actions, 1, t->output, O_WRONLY | O_TRUNC, 0600);
	else
		error = posix_spawn_file_actions_adddup2(&actions, t->pipe[1], 1);
	if (!error) error = posix_spawn_file_actions_adddup2(&actions, t->pipe[1], 2);
	if (!error) error = posix_spawn(&child, t->program, &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error) return errno = error, -2;
	limit(child, RLIMIT_AS, (uint64_t)t->limits.megabytes << 20, 0);
	limit(child, RLIMIT_CPU, (uint64_t)t->limits.seconds * processors(), 1);
	return listen_and_wait(t, child);
}

/* ---- how it ended ---- */

static const char *signal_name(int number)
{
	static const struct {
		int number;
		const char *name;
	} names[] = {{SIGHUP, "SIGHUP"}, {SIGINT, "SIGINT"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"},
		{SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGKILL, "SIGKILL"}, {SIGSEGV, "SIGSEGV"},
		{SIGPIPE, "SIGPIPE"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"}};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (names[i].number == number) return names[i].name;
	return "a signal";
}

static bool says(const tool *t, const char *words)
{
	return strstr(t->log, words) != NULL;
}

static bool wants_memory(const tool *t)
{
	return says(t, "Memory allocation failure") || says(t, "out of memory") || says(t, "Out of memory") ||
	       says(t, "annot allocate memory") || says(t, "bad_alloc");
}

const char *tool_ending(const tool *t, arena *a)
{
	bool limited = t->limits.megabytes > 0;
	if (t->end == TOOL_OUT_OF_TIME)
		return arena_printf(a, "was stopped after %u s, the time limit", t->limits.seconds);
	if (t->end == TOOL_UNKNOWN)
		return "left no output, and nobody knows how it ended: this process ignores SIGCHLD";
	if (wants_memory(t))
		return limited ? arena_printf(a, "ran out of memory: its limit is %u MiB", t->limits.megabytes)
			       : "ran out of memory";
	if (t->end == TOOL_EXITED) return NULL;
	return arena_printf(a, "was killed by signal %d (%s)%s", t->code, signal_name(t->code),
		t->code == SIGKILL ? ", not by us: the system does that where memory runs out"
		: limited && (t->code == SIGSEGV || t->code == SIGABRT || t->code == SIGBUS)
			? arena_printf(a, "; its memory limit is %u MiB", t->limits.megabytes)
			: "");
}

char *tool_output(tool *t, arena *memory, size_t *n)
{
	struct stat s;
	t->file = open(t->output, O_RDONLY | O_CLOEXEC);
	if (t->file < 0 || fstat(t->file, &s) || s.st_size <= 0) return NULL;
	char *bytes = arena_alloc(memory, (size_t)s.st_size + 1);
	size_t have = 0;
	while (have < (size_t)s.st_size) {
		ssize_t done = read(t->file, bytes + have, (size_t)s.st_size - have);
		if (done < 0 && errno == EINTR) continue;
		if (done <= 0) return NULL;
		have += (size_t)done;
	}
	close_if_open(&t->file);
	*n = have;
	return bytes;
}
