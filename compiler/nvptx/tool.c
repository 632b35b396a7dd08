/* Running a tool.  See tool.h. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* All that the child says, as much of it as fits; then its exit status, or -1. */
static int listen_and_wait(tool *t, pid_t child)
{
	char rest[4096];
	int status;
	close_if_open(&t->pipe[1]);
	for (;;) {
		size_t room = sizeof t->log - 1 - t->log_bytes;
		ssize_t n = read(t->pipe[0], room ? t->log + t->log_bytes : rest, room ? room : sizeof rest);
		if (n < 0 && errno == EINTR) continue;
		if (n <= 0) break;
		if (room) t->log_bytes += (size_t)n;
	}
	t->log[t->log_bytes] = 0;
	hide_name(t, t->input, "input");
	hide_name(t, t->output, "output");
	while (waitpid(child, &status, 0) < 0) {
		if (errno == ECHILD) return has_output(t) ? 0 : -1;
		if (errno != EINTR) return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int tool_run(tool *t, char *const *arguments, bool capture)
{
	posix_spawn_file_actions_t actions;
	pid_t child;
	int error = posix_spawn_file_actions_init(&actions);
	if (error) return errno = error, -2;
	if (capture)
		error = posix_spawn_file_actions_addopen(&actions, 1, t->output, O_WRONLY | O_TRUNC, 0600);
	else
		error = posix_spawn_file_actions_adddup2(&actions, t->pipe[1], 1);
	if (!error) error = posix_spawn_file_actions_adddup2(&actions, t->pipe[1], 2);
	if (!error) error = posix_spawn(&child, t->program, &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error) return errno = error, -2;
	return listen_and_wait(t, child);
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
