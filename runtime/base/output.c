/* See output.h. */
#include "output.h"

#include "overwrite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int descriptor_named(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
	if (strcmp(path, "/dev/stdin") == 0) return STDIN_FILENO;
	if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
		const char *number = path + strlen(folders[i]);
		if (strncmp(path, folders[i], strlen(folders[i])) != 0 || !*number) continue;
		if (strspn(number, "0123456789") == strlen(number) && strlen(number) < 9) return atoi(number);
	}
	return -1;
}

static bool written_in_place(const char *path)
{
	struct stat st;
	if (lstat(path, &st) != 0) return false;
	bool trusted = st.st_uid == geteuid() || st.st_uid == 0;
	if (S_ISLNK(st.st_mode) && (!trusted || stat(path, &st) != 0)) return false;
	return !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

/* Between the look and the opening the path may have become a file: it is not cut, and refused. */
static int open_in_place(const char *path)
{
	struct stat st;
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return fd;
	close(fd);
	return errno = EEXIST, -1;
}

/* ---- Files ---- */

/* Bits that a file's group had, less those that everybody had not: for a group that is another one now. */
static mode_t without_group(mode_t mode)
{
	return mode & (0707 | (mode & 07) << 3);
}

/* The fresh file, still its maker's alone, gets what the one had that it will replace.  What the system refuses leaves
 * it narrower. */
static void keep_access(int fd, const struct stat *old)
{
	struct stat now;
	mode_t mode = old->st_mode & 0777;
	if (fstat(fd, &now) != 0) return;
	if (now.st_gid != old->st_gid && fchown(fd, (uid_t)-1, old->st_gid) != 0) mode = without_group(mode);
	bool kept = fchmod(fd, mode) == 0 && (now.st_uid == old->st_uid || fchown(fd, old->st_uid, (gid_t)-1) == 0);
	(void)kept; /* this user's, then */
}

static bool open_beside(output *o, const char *path)
{
	struct stat old;
	bool there = lstat(path, &old) == 0;
	if (!there && errno != ENOENT) return false; /* how private it was is not known */
	bool replaces = there && S_ISREG(old.st_mode);
	if (!new_file_open(&o->file, NULL, path, replaces ? 0600 : 0666)) return false;
	if (replaces) keep_access(o->file.fd, &old);
	return true;
}

static void close_kept(int fd)
{
	int why = errno;
	if (fd >= 0) close(fd);
	errno = why;
}

static void leave(output *o)
{
	close_kept(o->over);
	o->over = -1;
}

/* In a folder where nothing can be made: the bytes wait in memory, and the file is as it was until all are there. */
static bool open_over(output *o, const char *path)
{
	int why = errno;
	if (why != EACCES && why != EPERM && why != EROFS) return false;
	o->over = overwrite_open(path);
	if (o->over >= 0 && overwrite_only_name(o->over)) o->file.fd = memfd_create("output", MFD_CLOEXEC);
	if (o->file.fd < 0) leave(o);
	errno = why;
	return o->file.fd >= 0;
}

bool output_open(output *o, const char *path)
{
	int descriptor = descriptor_named(path);
	o->over = -1;
	o->file.fd = -1;
	o->file.exists = false;
	o->in_place = descriptor >= 0 || written_in_place(path);
	if (!o->in_place) return open_beside(o, path) || open_over(o, path);
	o->file.files = &cache_system_files;
	o->file.fd = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 3) : open_in_place(path);
	return o->file.fd >= 0;
}

bool output_write(output *o, const void *bytes, size_t n)
{
	if (new_file_write(&o->file, bytes, n)) return true;
	leave(o);
	return false;
}

static bool commit_over(output *o)
{
	bool good = overwrite(o->over, o->file.fd);
	output_abandon(o);
	return good;
}

/* A file that is mounted by itself, as containers do it, cannot be replaced. */
static bool commit_beside(output *o)
{
	int bytes = fcntl(o->file.fd, F_DUPFD_CLOEXEC, 3);
	bool good = new_file_commit(&o->file);
	if (!good && errno == EBUSY && bytes >= 0) {
		o->over = overwrite_open(o->file.path);
		good = o->over >= 0 && overwrite(o->over, bytes);
		leave(o);
	}
	close_kept(bytes);
	return good;
}

bool output_commit(output *o)
{
	if (o->over >= 0) return commit_over(o);
	if (!o->in_place) return commit_beside(o);
	int closed = close(o->file.fd);
	o->file.fd = -1;
	return closed == 0;
}

void output_abandon(output *o)
{
	new_file_abandon(&o->file);
	leave(o);
}
