/* Reading sources (compiler/syntax/load.c) when the system refuses, or when a file is another one by the time that it
 * is read: each ends in one diagnostic that says why, and in no descriptor. */
#include "memory.h"

#include "../../compiler/lib/lib.h"
#include "../../compiler/syntax/ast.h"
#include "wrapped.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct {
	const char *name;
	int at, calls, error; /* the at-th call of this name fails */
	off_t less;           /* bytes that stat() does not see */
} fault;

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
WRAP(int, -1, open, (const char *a, int b, mode_t c), (a, b, c))
WRAP(int, -1, fstat, (int a, struct stat *b), (a, b))
WRAP(ssize_t, -1, read, (int a, void *b, size_t c), (a, b, c))
WRAP(char *, NULL, realpath, (const char *a, char *b), (a, b))
int __real_stat(const char *, struct stat *);
int __wrap_stat(const char *, struct stat *);
int __wrap_stat(const char *path, struct stat *st)
{
	if (fails("stat")) return -1;
	int r = __real_stat(path, st);
	if (r == 0) st->st_size -= fault.less;
	return r;
}

static char folder[64], file[96];

static int begin(void **state)
{
	strcpy(folder, "/tmp/blk_load_XXXXXX");
	if (set_up(state) || !mkdtemp(folder)) return -1;
	memset(&fault, 0, sizeof fault);
	snprintf(file, sizeof file, "%s/a.blk", folder);
	FILE *f = fopen(file, "w");
	return !f || fputs("some text of a file", f) < 0 || fclose(f);
}
static int end(void **state)
{
	unlink(file);
	assert_int_equal(rmdir(folder), 0);
	return tear_down(state);
}

static int descriptors(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (d && readdir(d)) n++;
	if (d) closedir(d);
	return n;
}

/* Loads `path` alone; the only message, or "" where it was read. */
static const char *load(const char *path)
{
	source_set set = {.arena = &memory};
	diags_init(&messages, &memory);
	source_file *f = source_add(&set, &messages, (span){0}, path, NULL, 0);
	assert_int_equal(f != NULL, messages.errors == 0);
	if (f) assert_string_equal(f->text, "some text of a file");
	return f ? "" : messages.first->message;
}

static void test_refusals(void **state)
{
	(void)state;
	if (!wraps((void *)source_add)) return;
	static const struct {
		const char *call;
		int at, error;
		off_t less;
		const char *says;
	} rows[] = {{"open", 1, EMFILE, 0, "Too many open files"}, {"fstat", 1, EIO, 0, "Invalid argument"},
		{"read", 1, EINTR, 0, NULL}, {"read", 1, EIO, 0, "Input/output error"},
		{"read", 2, EIO, 0, "Input/output error"}, {"realpath", 1, EACCES, 0, "Permission denied"},
		{"stat", 1, EACCES, 0, "Permission denied"}, {"stat", 1, 9999, 0, "unknown error"},
		{"none", 0, 0, 5, "it grew while it was read"}, {"none", 0, 0, -5, NULL},
		{"none", 0, 0, 19, NULL}}; /* shorter than it was; of no size, as in /proc */
	int before = descriptors();
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char wanted[256] = "";
		fault.name = rows[i].call;
		fault.at = rows[i].at;
		fault.error = rows[i].error;
		fault.less = rows[i].less;
		fault.calls = 0;
		const char *said = load(file);
		fault.name = NULL;
		if (fault.calls < fault.at) fail_msg("%s was not called", rows[i].call);
		if (rows[i].says) snprintf(wanted, sizeof wanted, "cannot read '%s': %s", file, rows[i].says);
		if (strcmp(said, wanted) != 0) fail_msg("%s: %s", rows[i].call, said);
		assert_int_equal(descriptors(), before);
	}
}

/* What is no file, and says nothing by itself, is told by what it is. */
static void test_irregular(void **state)
{
	(void)state;
	char path[108], wanted[256];
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	snprintf(path, sizeof path, "%s/x", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(wanted, sizeof wanted, "cannot read '%s': it is a pipe and no regular file", path);
	assert_string_equal(load(path), wanted);
	unlink(path);
	strcpy(at.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	snprintf(wanted, sizeof wanted, "cannot read '%s': it is a socket and no regular file", path);
	assert_string_equal(load(path), wanted);
	close(fd);
	unlink(path);
	assert_string_equal(load("/dev/null"), "cannot read '/dev/null': it is a device and no regular file");
	assert_non_null(messages.first->hint);
}

/* A library's imports are the library's, and files only then; a path from the root is looked for nowhere else. */
static void test_imports(void **state)
{
	(void)state;
	const char *include[] = {folder};
	source_set set = {.arena = &memory, .include_paths = include, .ninclude_paths = 1};
	const span at = {0};
	diags_init(&messages, &memory);
	source_file *m = source_add(&set, &messages, at, "main.blk", "x", 1);
	source_file *math = source_import(&set, &messages, m, "math.blk", at);
	assert_non_null(math);
	assert_ptr_equal(source_import(&set, &messages, m, "math.blk", at), math);
	source_file *other = source_import(&set, &messages, math, "math64.blk", at);
	assert_non_null(other);
	assert_int_equal(strncmp(other->name, "<lib>/", 6), 0);
	source_file *a = source_import(&set, &messages, math, "a.blk", at); /* no library's: by the include path */
	assert_non_null(a);
	assert_string_equal(a->text, "some text of a file");
	assert_int_equal(messages.errors, 0);
	assert_null(source_import(&set, &messages, m, "/nowhere/a.blk", at));
	assert_int_equal(messages.first->code, 802);
	diags_init(&messages, &memory);
	if (!wraps((void *)source_add)) return;
	fault.name = "stat"; /* what is there, but cannot be looked at, is no missing file */
	fault.at = 1;
	fault.error = EACCES;
	assert_null(source_import(&set, &messages, m, "b.blk", at));
	assert_int_equal(messages.first->code, 801);
	assert_string_equal(messages.first->message, "cannot read 'b.blk': Permission denied");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {T(test_refusals), T(test_irregular), T(test_imports)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
