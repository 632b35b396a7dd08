/* Outputs are whole or not there: whatever call fails, whatever stands at the path or beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/output.h"
#include "base/overwrite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "runtime/run/whole.h"

static char folder[64], path[128], victim[128];

/* ---- What the system refuses, by the linker's --wrap (Makefile: OUTPUT_CALLS) ---- */

static struct {
	const char *name;        /* of the call that fails */
	int error, times;        /* so often */
	void (*meanwhile)(void); /* between a look at a path and what follows it; null: nothing */
} seam;

static bool refused(const char *name)
{
	if (!seam.name || seam.times == 0 || strcmp(seam.name, name) != 0) return false;
	seam.times--;
	errno = seam.error;
	return true;
}
static void refuse(const char *name, int error, int times)
{
	seam.name = name;
	seam.error = error;
	seam.times = times;
}
#define WRAP(type, name, parameters, arguments)                                                                        \
	type __real_##name parameters;                                                                                 \
	type __wrap_##name parameters;                                                                                 \
	type __wrap_##name parameters                                                                                  \
	{                                                                                                              \
		return refused(#name) ? -1 : __real_##name arguments;                                                  \
	}
WRAP(int, open, (const char *a, int b, mode_t c), (a, b, c))
WRAP(ssize_t, write, (int a, const void *b, size_t c), (a, b, c))
WRAP(ssize_t, pread, (int a, void *b, size_t c, off_t d), (a, b, c, d))
WRAP(int, fcntl, (int a, int b, long c), (a, b, c))
WRAP(int, fstat, (int a, struct stat *b), (a, b))
WRAP(int, ftruncate, (int a, off_t b), (a, b))
int __real_lstat(const char *, struct stat *);
int __wrap_lstat(const char *, struct stat *);
int __wrap_lstat(const char *p, struct stat *st)
{
	int result = __real_lstat(p, st);
	void (*meanwhile)(void) = seam.meanwhile;
	seam.meanwhile = NULL;
	if (meanwhile) meanwhile();
	return result;
}

static void put(const char *at, const char *text)
{
	int fd = open(at, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}
static const char *get(const char *at)
{
	static char text[256];
	int fd = open(at, O_RDONLY);
	assert_true(fd >= 0);
	ssize_t n = read(fd, text, sizeof text - 1);
	assert_true(n >= 0);
	text[n] = 0;
	close(fd);
	return text;
}
static int files(void)
{
	int n = -2; /* . and .. */
	DIR *d = opendir(folder);
	assert_non_null(d);
	while (readdir(d)) n++;
	closedir(d);
	return n;
}
static mode_t type(const char *at)
{
	struct stat st;
	assert_int_equal(lstat(at, &st), 0);
	return st.st_mode & S_IFMT;
}

static int setup(void **state)
{
	(void)state;
	memset(&seam, 0, sizeof seam);
	strcpy(folder, "/tmp/blk_new_file_XXXXXX");
	if (!mkdtemp(folder)) return -1;
	snprintf(path, sizeof path, "%s/x.npy", folder);
	snprintf(victim, sizeof victim, "%s/victim", folder);
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	char inner[512];
	DIR *d = opendir(folder);
	for (struct dirent *e; d && (e = readdir(d));) {
		snprintf(inner, sizeof inner, "%s/%s", folder, e->d_name);
		if (e->d_name[0] != '.' && unlink(inner) != 0) rmdir(inner);
	}
	closedir(d);
	return rmdir(folder);
}

/* ---- Each call failing in turn ---- */

static struct {
	int calls, fail_at, error; /* error 0: a short count */
	char order[64];
} fault;

static bool faulted(char letter)
{
	if (fault.calls < (int)sizeof fault.order - 1) fault.order[fault.calls] = letter;
	errno = fault.error;
	return ++fault.calls == fault.fail_at;
}
static int f_open(const char *p, int flags, unsigned mode)
{
	return faulted('o') ? -1 : cache_system_files.open(p, flags, mode);
}
static ssize_t f_write(int fd, const void *from, size_t n)
{
	if (faulted('w')) return fault.error ? -1 : write(fd, from, n / 2);
	return write(fd, from, n);
}
static int f_fsync(int fd)
{
	return faulted('s') ? -1 : fsync(fd);
}
static int f_close(int fd)
{
	bool bad = faulted('c');
	int r = close(fd);
	errno = fault.error;
	return bad ? -1 : r;
}
static int f_rename(const char *a, const char *b)
{
	return faulted('r') ? -1 : rename(a, b);
}
static int f_unlink(const char *p)
{
	return unlink(p);
}

static bool write_two(const cache_files *f)
{
	new_file new;
	return new_file_open(&new, f, path, 0666) && new_file_write(&new, "new ", 4) &&
	       new_file_write(&new, "bytes", 5) && new_file_commit(&new);
}

static void test_each_call_fails(void **state)
{
	(void)state;
	static const int errors[] = {EIO, ENOSPC, EACCES, EMFILE, 0};
	cache_files f = cache_system_files;
	f.open = f_open, f.write = f_write, f.fsync = f_fsync;
	f.close = f_close, f.rename = f_rename, f.unlink = f_unlink;
	for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++)
		for (int at = 1;; at++) {
			put(path, "old");
			memset(&fault, 0, sizeof fault);
			fault.fail_at = at;
			fault.error = errors[e];
			bool good = write_two(&f), hit = fault.calls >= at;
			int why = errno;
			if (!good && fault.error) assert_int_equal(why, fault.error);
			if (!good && !hit) fail_msg("it failed, and no call did");
			if (good && hit && fault.error) fail_msg("call %d failed unseen", at);
			assert_string_equal(get(path), good ? "new bytes" : "old");
			assert_int_equal(files(), 1);
			if (!hit) break;
		}
	assert_string_equal(fault.order, "owwscr"); /* what is renamed is on the disk */
}

/* A signal between two parts of a write is no end of it, and a name that is taken is not. */
static int interrupted, taken;
static ssize_t eintr(int fd, const void *from, size_t n)
{
	if (interrupted++ % 2 == 0) return errno = EINTR, -1;
	return write(fd, from, n < 2 ? n : 2);
}
static int exists(const char *p, int flags, unsigned mode)
{
	static char first[4096];
	if (taken++ == 0) return snprintf(first, sizeof first, "%s", p), errno = EEXIST, -1;
	assert_string_not_equal(p, first);
	assert_true(flags & O_EXCL && flags & O_NOFOLLOW && flags & O_CLOEXEC);
	return cache_system_files.open(p, flags, mode);
}
static void test_goes_on(void **state)
{
	(void)state;
	cache_files f = cache_system_files;
	f.write = eintr;
	f.open = exists;
	interrupted = taken = 0;
	assert_true(write_two(&f));
	assert_string_equal(get(path), "new bytes");
	assert_int_equal(taken, 2);
}

/* A write of interrupted_nothing is the device's fault, whatever went wrong before it. */
static int empty_writes;
static ssize_t interrupted_nothing(int fd, const void *from, size_t n)
{
	(void)fd, (void)from, (void)n;
	if (++empty_writes > 3) return errno = EBADF, -1; /* it goes on and on */
	return errno = EINTR, 0;
}
static void test_empty_write(void **state)
{
	(void)state;
	cache_files f = cache_system_files;
	f.write = interrupted_nothing;
	empty_writes = 0;
	assert_false(write_two(&f));
	assert_int_equal(errno, EIO);
	assert_int_equal(empty_writes, 1);
	assert_int_equal(files(), 0);
}

/* ---- What stands at the path ---- */

static bool output_text(const char *at, const char *text)
{
	output o;
	return output_open(&o, at) && output_write(&o, text, strlen(text)) && output_commit(&o);
}

static void test_modes(void **state)
{
	(void)state;
	struct stat st;
	mode_t was = umask(027);
	assert_true(output_text(path, "x"));
	umask(was);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static struct stat status_of(const char *at)
{
	struct stat st;
	assert_int_equal(lstat(at, &st), 0);
	return st;
}

/* A file is as private as the one that it replaces, whatever the umask. */
static void test_kept_modes(void **state)
{
	(void)state;
	static const mode_t modes[] = {0600, 0640, 0400, 0755, 0666};
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		put(path, "old");
		assert_int_equal(chmod(path, modes[i]), 0);
		ino_t was = status_of(path).st_ino;
		assert_true(output_text(path, "new"));
		assert_string_equal(get(path), "new");
		assert_int_equal(status_of(path).st_mode & 07777, modes[i]);
		assert_int_not_equal(status_of(path).st_ino, was);
		unlink(path);
	}
	put(victim, "precious");
	assert_int_equal(symlink(victim, path), 0);
	mode_t was = umask(022);
	assert_true(output_text(path, "new")); /* a link has no mode of its own */
	umask(was);
	assert_int_equal(status_of(path).st_mode & 07777, 0644);
}

/* In a child: what `act` says as another user.  As itself again at the end, so that what it reached is counted. */
static void end_as_another(int (*act)(void))
{
	bool root = geteuid() == 0;
	if (root && (setgroups(0, NULL) || setegid(12345) || seteuid(12345))) _exit(9);
	int said = act();
	if (root && (seteuid(0) || setegid(0))) _exit(10);
	_exit(said);
}

static int output_new(void)
{
	return output_text(path, "new") ? 0 : 1;
}

/* Only root may give files away; everybody else's group loses what it had not. */
static void test_kept_owners(void **state)
{
	(void)state;
	if (geteuid() != 0) skip();
	put(path, "old");
	assert_int_equal(chmod(path, 0660), 0);
	assert_int_equal(lchown(path, 12345, 12346), 0);
	assert_true(output_text(path, "new"));
	struct stat st = status_of(path);
	assert_true(st.st_uid == 12345 && st.st_gid == 12346 && (st.st_mode & 07777) == 0660);
	assert_int_equal(chmod(folder, 0777), 0);
	static const mode_t modes[][2] = {{0660, 0600}, {0664, 0644}, {0646, 0646}, {0677, 0677}};
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		int status;
		unlink(path);
		put(path, "old");
		assert_int_equal(chmod(path, modes[i][0]), 0);
		pid_t child = fork();
		if (child == 0) end_as_another(output_new);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		st = status_of(path);
		assert_true(st.st_uid == 12345 && st.st_gid == 12345);
		assert_int_equal(st.st_mode & 07777, modes[i][1]);
	}
}

/* ---- Files that keep their place ---- */

static int busy(const char *from, const char *to)
{
	(void)from;
	(void)to;
	return errno = EBUSY, -1;
}
static int gone(const char *from, const char *to)
{
	(void)from;
	unlink(to);
	return errno = EBUSY, -1;
}

/* Ends as a file that is mounted by itself does. */
static bool output_mounted(int (*rename)(const char *, const char *), const char *text)
{
	output o;
	cache_files f = cache_system_files;
	f.rename = rename;
	if (!output_open(&o, path)) return false;
	o.file.files = &f;
	return output_write(&o, text, strlen(text)) && output_commit(&o);
}

static void test_mounted(void **state)
{
	(void)state;
	put(path, "older and longer");
	struct stat was = status_of(path);
	assert_true(output_mounted(busy, "new"));
	assert_string_equal(get(path), "new");
	assert_true(status_of(path).st_ino == was.st_ino && status_of(path).st_mode == was.st_mode);
	char *much = malloc(100001), *back = malloc(100001);
	for (int i = 0; i < 100000; i++) much[i] = (char)('a' + i % 23);
	much[100000] = 0;
	assert_true(output_mounted(busy, much));
	FILE *f = fopen(path, "re");
	assert_int_equal(fread(back, 1, 100001, f), 100000);
	fclose(f);
	assert_memory_equal(back, much, 100000);
	free(much);
	free(back);
	assert_false(output_mounted(gone, "new"));
	assert_int_equal(errno, ENOENT);
	assert_int_equal(files(), 0);
	put(victim, "precious");
	assert_int_equal(symlink(victim, path), 0);
	assert_false(output_mounted(busy, "new")); /* no link is followed */
	assert_int_equal(errno, ELOOP);
	assert_string_equal(get(victim), "precious");
}

/* The bytes wait: what is not committed has changed nothing. */
static int in_closed_folder(void)
{
	output o;
	char other[160];
	snprintf(other, sizeof other, "%s/other", folder);
	struct stat was = status_of(path);
	if (!output_open(&o, path) || !output_write(&o, "half", 4)) return 2;
	output_abandon(&o);
	if (strcmp(get(path), "old and longer") != 0) return 3;
	if (!output_text(path, "new") || strcmp(get(path), "new") != 0) return 4;
	if (status_of(path).st_ino != was.st_ino || status_of(path).st_mode != was.st_mode) return 5;
	if (output_text(victim, "new") || errno != EACCES) return 6; /* it has a second name */
	if (output_text(other, "new") || errno != EACCES) return 7;
	if (output_text(folder, "new") || errno != EISDIR) return 8;
	return 0;
}

static void test_closed_folder(void **state)
{
	(void)state;
	char second[160];
	int status;
	snprintf(second, sizeof second, "%s/second", folder);
	put(path, "old and longer");
	put(victim, "precious");
	assert_int_equal(link(victim, second), 0);
	assert_int_equal(chmod(path, 0666) | chmod(victim, 0666) | chmod(folder, 0555), 0);
	pid_t child = fork();
	if (child == 0) end_as_another(in_closed_folder);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_string_equal(get(victim), "precious");
}

static void test_overwrite(void **state)
{
	(void)state;
	put(path, "old");
	int to = overwrite_open(path), from = open(folder, O_RDONLY), read_only = open(path, O_RDONLY);
	assert_true(to >= 0 && from >= 0 && read_only >= 0);
	assert_false(overwrite(to, from));
	assert_int_equal(errno, EISDIR);
	assert_false(overwrite(read_only, to));
	close(to);
	close(from);
	close(read_only);
	assert_int_equal(overwrite_open("/dev/null"), -1);
	assert_int_equal(errno, EEXIST);
}

/* Nothing is written where the file that is there cannot be looked at, or cut; what is read or written in part
 * fails. */
static void test_overwrite_refused(void **state)
{
	(void)state;
	static const struct {
		const char *call;
		int error, times;
		bool good;
		const char *left;
	} rows[] = {{"ftruncate", EPERM, 1, false, "old"}, {"pread", EIO, 1, false, ""},
		{"pread", EINTR, 2, true, "new"}, {"write", ENOSPC, 1, false, ""}, {"write", EINTR, 2, true, "new"}};
	put(victim, "new");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		put(path, "old");
		int to = overwrite_open(path), from = open(victim, O_RDONLY);
		assert_true(to >= 0 && from >= 0);
		refuse(rows[i].call, rows[i].error, rows[i].times);
		bool good = overwrite(to, from);
		int why = errno, left = seam.times;
		seam.name = NULL;
		assert_int_equal(good, rows[i].good);
		assert_int_equal(left, 0);
		if (!good) assert_int_equal(why, rows[i].error);
		assert_string_equal(get(path), rows[i].left);
		close(to);
		close(from);
	}
	int to = overwrite_open(path);
	assert_true(overwrite_only_name(to));
	refuse("fstat", EIO, 1);
	assert_false(overwrite_only_name(to));
	refuse("fstat", EIO, 1);
	assert_int_equal(overwrite_open(path), -1);
	seam.name = NULL;
	close(to);
}

/* A folder where nothing can be made, by each of the reasons that say so, and by one that does not. */
static void test_folder_refused(void **state)
{
	(void)state;
	static const struct {
		int error;
		bool good;
	} rows[] = {{EACCES, true}, {EPERM, true}, {EROFS, true}, {ENOSPC, false}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		put(path, "old");
		ino_t was = status_of(path).st_ino;
		refuse("open", rows[i].error, 1);
		bool good = output_text(path, "new");
		int why = errno;
		seam.name = NULL;
		assert_int_equal(good, rows[i].good);
		if (!good) assert_int_equal(why, rows[i].error);
		assert_string_equal(get(path), good ? "new" : "old");
		assert_int_equal(status_of(path).st_ino, was);
		assert_int_equal(files(), 1);
	}
}

/* What is mounted by itself is written only where the bytes can be kept, and cut. */
static void test_mounted_refused(void **state)
{
	(void)state;
	static const struct {
		const char *call;
		int error, why;
	} rows[] = {{"fcntl", EMFILE, EBUSY}, {"ftruncate", EPERM, EPERM}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		put(path, "old");
		refuse(rows[i].call, rows[i].error, 1);
		assert_false(output_mounted(busy, "new"));
		assert_int_equal(errno, rows[i].why);
		assert_int_equal(seam.times, 0);
		seam.name = NULL;
		assert_string_equal(get(path), "old");
		assert_int_equal(files(), 1);
	}
}

static void becomes_a_file(void)
{
	unlink(path);
	put(path, "precious");
}
static void goes(void)
{
	unlink(path);
}
/* A pipe that is something else by the time that it is opened. */
static void test_changed_in_between(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	seam.meanwhile = becomes_a_file;
	assert_false(output_text(path, "x"));
	assert_int_equal(errno, EEXIST);
	assert_string_equal(get(path), "precious");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	seam.meanwhile = goes;
	assert_false(output_text(path, "x"));
	assert_int_equal(errno, ENOENT);
	assert_int_equal(files(), 0);
	refuse("fstat", EIO, 1); /* what cannot be looked at was no file a moment ago */
	assert_true(output_text("/dev/null", "x"));
	assert_int_equal(seam.times, 0);
}

static int tried;
static int always_there(const char *p, int flags, unsigned mode)
{
	(void)p, (void)flags, (void)mode;
	tried++;
	return errno = EEXIST, -1;
}
static ssize_t nothing(int fd, const void *from, size_t n)
{
	(void)fd, (void)from, (void)n;
	return 0;
}
/* No end of tries, no room for a name, and a disk that takes nothing and says nothing. */
static void test_no_name(void **state)
{
	(void)state;
	new_file f;
	cache_files files_of = cache_system_files;
	files_of.open = always_there;
	tried = 0;
	assert_false(new_file_open(&f, &files_of, path, 0666));
	assert_int_equal(errno, EEXIST);
	assert_true(tried > 1 && tried < 1000);
	char *far = malloc(8192);
	memset(far, '/', 8191);
	far[8190] = 'x';
	far[8191] = 0;
	tried = 0;
	assert_false(new_file_open(&f, &files_of, far, 0666));
	assert_int_equal(errno, ENAMETOOLONG);
	assert_int_equal(tried, 0);
	free(far);
	files_of = cache_system_files;
	files_of.write = nothing;
	assert_false(write_two(&files_of));
	assert_int_equal(errno, EIO);
	assert_int_equal(files(), 0);
}

static void test_links(void **state)
{
	(void)state;
	put(victim, "precious");
	assert_int_equal(symlink(victim, path), 0);
	assert_true(output_text(path, "new"));
	assert_int_equal(type(path), S_IFREG);
	assert_string_equal(get(path), "new");
	assert_string_equal(get(victim), "precious");
	unlink(path);
	assert_int_equal(symlink("/nowhere/at/all", path), 0);
	assert_true(output_text(path, "new"));
	assert_int_equal(type(path), S_IFREG);
	unlink(path);
	assert_int_equal(link(victim, path), 0); /* another name of the same file */
	assert_true(output_text(path, "new"));
	assert_string_equal(get(victim), "precious");
}

static void test_devices(void **state)
{
	(void)state;
	assert_true(output_text("/dev/null", "x"));
	assert_int_equal(type("/dev/null"), S_IFCHR);
	assert_false(output_text("/dev/full", "x"));
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(symlink("/dev/full", path), 0); /* our own link: followed */
	assert_false(output_text(path, "x"));
	assert_int_equal(type(path), S_IFLNK);
	if (geteuid() == 0) {
		assert_int_equal(lchown(path, 12345, 12345), 0); /* another's: replaced */
		assert_true(output_text(path, "x"));
		assert_int_equal(type(path), S_IFREG);
	}
	assert_false(output_text(folder, "x"));
	assert_int_equal(errno, EISDIR);
	assert_false(output_text("/nowhere/x", "x"));
	assert_int_equal(errno, ENOENT);
}

static void test_pipe(void **state)
{
	(void)state;
	char text[8] = "";
	assert_int_equal(mkfifo(path, 0600), 0);
	int reader = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(reader >= 0);
	assert_true(output_text(path, "abc"));
	assert_int_equal(read(reader, text, sizeof text), 3);
	assert_string_equal(text, "abc");
	assert_int_equal(type(path), S_IFIFO);
	close(reader);
}

/* "/dev/fd/N" goes on where the descriptor stands and cuts nothing: what `{ a; blkc -o /dev/stdout; } >>f` needs. */
static void test_descriptors(void **state)
{
	(void)state;
	char name[64];
	put(victim, "first ");
	int fd = open(victim, O_WRONLY | O_APPEND);
	static const char *const forms[] = {"/dev/fd/%d", "/proc/self/fd/%d"};
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof name, forms[i], fd);
		assert_true(output_text(name, "more "));
	}
	assert_int_equal(fcntl(fd, F_GETFD) >= 0, 1); /* still open */
	close(fd);
	assert_string_equal(get(victim), "first more more ");
	assert_false(output_text("/dev/fd/999999", "x"));
	assert_int_equal(errno, EBADF);
	assert_int_equal(type("/dev/stdout"), S_IFLNK);
}

/* Also the first of them, whose name is not its own. */
static void test_descriptor_zero(void **state)
{
	(void)state;
	static const char *const paths[] = {"/dev/fd/0", "/dev/stdin"};
	put(victim, "first ");
	int saved = dup(0), fd = open(victim, O_WRONLY | O_APPEND);
	assert_int_equal(dup2(fd, 0), 0);
	close(fd);
	for (int i = 0; i < 2; i++) assert_true(output_text(paths[i], "more "));
	if (saved >= 0)
		dup2(saved, 0), close(saved);
	else
		close(0);
	assert_string_equal(get(victim), "first more more ");
}

static void test_long_names(void **state)
{
	(void)state;
	char name[512];
	int n = snprintf(name, sizeof name, "%s/", folder);
	memset(name + n, 'x', 255);
	name[n + 255] = 0;
	assert_true(output_text(name, "x"));
	assert_string_equal(get(name), "x");
	name[n + 255] = 'x', name[n + 256] = 0;
	assert_false(output_text(name, "x"));
	assert_int_equal(errno, ENAMETOOLONG);
	char *far = malloc(8192);
	memset(far, '/', 8191);
	far[8191] = 0;
	assert_false(output_text(far, "x"));
	free(far);
	assert_int_equal(files(), 1);
}

/* ---- A signal in the middle ---- */

static void test_signals(void **state)
{
	(void)state;
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
	for (int i = 0; i < 3; i++) {
		int status;
		put(path, "old");
		pid_t child = fork();
		if (child == 0) {
			signal(ends[i], SIG_DFL); /* nohup ignores SIGHUP */
			if (!whole_open(path) || !whole_write("half", 4)) _exit(3);
			raise(ends[i]);
			_exit(4);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == ends[i]);
		assert_string_equal(get(path), "old");
		assert_int_equal(files(), 1);
	}
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {T(test_each_call_fails), T(test_goes_on), T(test_empty_write), T(test_modes),
		T(test_kept_modes), T(test_kept_owners), T(test_mounted), T(test_closed_folder), T(test_overwrite),
		T(test_links), T(test_devices), T(test_pipe), T(test_descriptors), T(test_descriptor_zero),
		T(test_long_names), T(test_signals), T(test_overwrite_refused), T(test_folder_refused),
		T(test_mounted_refused), T(test_changed_in_between), T(test_no_name)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
