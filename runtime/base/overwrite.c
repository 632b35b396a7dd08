/* See overwrite.h. */
#include "overwrite.h"

#include "new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int overwrite_open(const char *path)
{
	struct stat st;
	int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))) return fd;
	close(fd);
	return errno = EEXIST, -1;
}

bool overwrite_only_name(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_nlink == 1;
}

bool overwrite(int to, int from)
{
	char bytes[1 << 14];
	off_t at = 0;
	if (ftruncate(to, 0) != 0) return false;
	for (;;) {
		ssize_t n = pread(from, bytes, sizeof bytes, at);
		if (n < 0 && errno == EINTR) continue;
		if (n < 0 || !write_whole(&cache_system_files, to, bytes, (size_t)n)) return false;
		if (n == 0) return fsync(to) == 0;
		at += n;
	}
}
