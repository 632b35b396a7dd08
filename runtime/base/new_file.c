/* See new_file.h.
 *
 * The one idea: the bytes go to a name with 64 random bits in the same folder, made only where nothing has that name,
 * so no link is followed, whoever put it there; then fsync, then rename over whatever `path` is, a link too. mkstemp(3)
 * would do the same, but gives mode 0600, and what the umask leaves of another mode can only be asked for by changing
 * it, for all threads of the process. */
#include "new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static int system_open(const char *path, int flags, unsigned mode)
{
	return open(path, flags, (mode_t)mode);
}
static int system_mkdir(const char *path, unsigned mode)
{
	return mkdir(path, (mode_t)mode);
}
const cache_files cache_system_files = {system_open, read, write, fsync, close, fstat, rename, unlink, system_mkdir};

static uint64_t random_bits(void)
{
	uint64_t bits;
	struct timespec now;
	if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) == sizeof bits) return bits;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_nsec * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)getpid() << 32 ^ (uintptr_t)&now;
}

/* A name that is nearly as long as a folder allows is cut, so that the temporary one fits too. */
static bool name_temporary(new_file *f)
{
	enum { KEPT = 128 };
	const char *slash = strrchr(f->path, '/'), *base = slash ? slash + 1 : f->path;
	int n = snprintf(f->temporary, sizeof f->temporary, "%.*s%.*s.tmp-%016llx", (int)(base - f->path), f->path,
		KEPT, base, (unsigned long long)random_bits());
	return n > 0 && (size_t)n < sizeof f->temporary;
}

bool new_file_open(new_file *f, const cache_files *files, const char *path, unsigned mode)
{
	enum { TRIES = 16 };
	struct stat st;
	f->files = files ? files : &cache_system_files;
	f->path = path;
	f->fd = -1;
	f->exists = false;
	/* said before anything is written, as the rename would say it */
	if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) return errno = EISDIR, false;
	for (int i = 0; i < TRIES; i++) {
		if (!name_temporary(f)) return errno = ENAMETOOLONG, false;
		f->exists = true;
		f->fd = f->files->open(f->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (f->fd >= 0) return true;
		f->exists = false;
		if (errno != EEXIST) break;
	}
	return false;
}

void new_file_abandon(new_file *f)
{
	int why = errno;
	if (f->fd >= 0) f->files->close(f->fd);
	if (f->exists) f->files->unlink(f->temporary);
	f->fd = -1;
	f->exists = false;
	errno = why;
}

static bool abandoned(new_file *f)
{
	new_file_abandon(f);
	return false;
}

bool write_whole(const cache_files *f, int fd, const void *from, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t put = f->write(fd, (const char *)from + done, n - done);
		if (put < 0 && errno == EINTR) continue;
		if (put == 0) errno = EIO;
		if (put <= 0) return false;
		done += (size_t)put;
	}
	return true;
}

bool new_file_write(new_file *f, const void *bytes, size_t n)
{
	if (write_whole(f->files, f->fd, bytes, n)) return true;
	return abandoned(f);
}

bool new_file_commit(new_file *f)
{
	if (f->files->fsync(f->fd) != 0) return abandoned(f);
	int closed = f->files->close(f->fd);
	f->fd = -1;
	if (closed != 0 || f->files->rename(f->temporary, f->path) != 0) return abandoned(f);
	f->exists = false;
	return true;
}
