/* See output.h. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
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

bool output_open(output *o, const char *path)
{
	int descriptor = descriptor_named(path);
	o->in_place = descriptor >= 0 || written_in_place(path);
	if (!o->in_place) return new_file_open(&o->file, NULL, path, 0666);
	o->file.files = &cache_system_files;
	o->file.exists = false;
	o->file.fd = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 3) : open_in_place(path);
	return o->file.fd >= 0;
}

bool output_write(output *o, const void *bytes, size_t n)
{
	return new_file_write(&o->file, bytes, n);
}

bool output_commit(output *o)
{
	if (!o->in_place) return new_file_commit(&o->file);
	int closed = close(o->file.fd);
	o->file.fd = -1;
	return closed == 0;
}

void output_abandon(output *o)
{
	new_file_abandon(&o->file);
}
