/* Source files of one compile: reading, and finding what an import names.
 *
 * In: paths.  Out: source files, each file once however it is spelled.
 * The one idea: a file is told apart by its real path (links resolved), but is always printed as the user typed it.
 * Arena memory is taken only while no descriptor is open, since running out of it jumps away. */
#include "ast.h"

#include "../lib/lib.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "<lib>/"

static source_file *known(const source_set *set, const char *identity)
{
	for (uint32_t i = 0; i < set->files.n; i++)
		if (set->files.at[i]->identity && strcmp(set->files.at[i]->identity, identity) == 0)
			return set->files.at[i];
	return NULL;
}

static source_file *add(source_set *set, const char *name, const char *identity, const char *contents, size_t bytes)
{
	assert(name && (contents || !bytes));
	source_file *f = ARENA_NEW(set->arena, source_file);
	*f = (source_file){.name = arena_strndup(set->arena, name, strlen(name)),
		.identity = arena_strndup(set->arena, identity, strlen(identity)),
		.text = contents,
		.size = bytes,
		.index = set->files.n};
	vec_push(set->arena, &set->files, f);
	set->bytes += bytes;
	return f;
}

static void too_large(diags *ds, span at, const char *name)
{
	diag_error(ds, 702, at, "'%s' is larger than %d MiB", name, SOURCE_LIMIT >> 20);
}

static void unreadable(diags *ds, span at, const char *name, int error)
{
	const char *why = strerrordesc_np(error);
	diag_error(ds, 801, at, "cannot read '%s': %s", name, why ? why : "unknown error");
}

static void irregular(diags *ds, span at, const char *name, mode_t mode)
{
	const char *is = S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
	diag *d = diag_error(ds, 801, at, "cannot read '%s': it is %s and no regular file", name, is);
	diag_set_hint(ds, d, "blkc reads a pipe as its standard input: blkc - <PIPE; imports are files");
}

/* Reads at most `room` bytes; returns how many, or -1 with errno set.  Nothing here waits: neither for a pipe's other
 * end, nor for a device that took the file's place since it was looked at. */
static ssize_t read_all(const char *name, char *to, size_t room)
{
	struct stat st;
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), error = 0;
	if (fd < 0) return -1;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) error = EINVAL;
	size_t n = 0;
	while (!error && n < room) {
		ssize_t got = read(fd, to + n, room - n);
		if (got == 0) break;
		if (got > 0) n += (size_t)got;
		if (got < 0 && errno != EINTR) error = errno;
	}
	close(fd);
	errno = error;
	return error ? -1 : (ssize_t)n;
}

/* Reads `name`, or finds it among the files that are loaded.  `missing` null: a file that does not exist is an error;
 * else it is set then, and nothing is said. */
static source_file *load(source_set *set, diags *ds, span at, const char *name, bool *missing)
{
	struct stat st;
	if (stat(name, &st) != 0) {
		if (missing && (errno == ENOENT || errno == ENOTDIR))
			*missing = true;
		else
			unreadable(ds, at, name, errno);
		return NULL;
	}
	if (S_ISDIR(st.st_mode)) return unreadable(ds, at, name, EISDIR), NULL;
	if (!S_ISREG(st.st_mode)) return irregular(ds, at, name, st.st_mode), NULL;
	char identity[PATH_MAX];
	if (!realpath(name, identity)) return unreadable(ds, at, name, errno), NULL;
	source_file *f = known(set, identity);
	if (f) return f;
	if (st.st_size > SOURCE_LIMIT) return too_large(ds, at, name), NULL;
	/* one byte more than is expected, to see that it is not there; what has no size (/proc) may be as large as
	 * allowed */
	size_t room = (st.st_size ? (size_t)st.st_size : (size_t)SOURCE_LIMIT) + 1;
	char *content = arena_alloc(set->arena, room + 1);
	ssize_t n = read_all(name, content, room);
	if (n < 0) return unreadable(ds, at, name, errno), NULL;
	if ((size_t)n == room && room > SOURCE_LIMIT) return too_large(ds, at, name), NULL;
	if ((size_t)n == room) {
		diag_error(ds, 801, at, "cannot read '%s': it grew while it was read", name);
		return NULL;
	}
	content[n] = 0;
	return add(set, name, identity, content, (size_t)n);
}

source_file *source_add(source_set *set, diags *ds, span at, const char *name, const char *contents, size_t bytes)
{
	if (!contents) return load(set, ds, at, name, NULL);
	if (bytes > SOURCE_LIMIT) return too_large(ds, at, name), NULL;
	char identity[PATH_MAX];
	const char *path = realpath(name, identity); /* text may stand for a file that is on disk too */
	return add(set, name, path ? path : name, arena_strndup(set->arena, contents, bytes), bytes);
}

static const char *beside(source_set *set, const char *folder, size_t n, const char *path)
{
	if (path[0] == '/' || n == 0) return path;
	return arena_printf(set->arena, "%.*s%s%s", (int)n, folder, folder[n - 1] == '/' ? "" : "/", path);
}

static source_file *from_library(source_set *set, const char *path)
{
	const lib_source *s = lib_find(path);
	if (!s) return NULL;
	const char *name = arena_printf(set->arena, LIBRARY "%s", s->name);
	source_file *f = known(set, name);
	return f ? f : add(set, name, name, s->text, s->bytes);
}

source_file *source_import(source_set *set, diags *ds, source_file *from, const char *path, span at)
{
	source_file *f;
	bool missing = false, library = from->identity && strncmp(from->identity, LIBRARY, strlen(LIBRARY)) == 0;
	if (library && (f = from_library(set, path))) return f;
	const char *slash = strrchr(from->name, '/');
	size_t folder = slash && !library ? (size_t)(slash - from->name) + 1 : 0;
	f = load(set, ds, at, beside(set, from->name, folder, path), &missing);
	for (size_t i = 0; missing && path[0] != '/' && i < set->ninclude_paths; i++) {
		const char *include = set->include_paths[i];
		missing = false;
		f = load(set, ds, at, beside(set, include, strlen(include), path), &missing);
	}
	if (!missing) return f;
	if ((f = from_library(set, path))) return f;
	diag *d = diag_error(ds, 802, at, "cannot find '%s'", path);
	diag_set_hint(ds, d, "looked beside '%s', in the -I folders and in the built-in library", from->name);
	return NULL;
}
