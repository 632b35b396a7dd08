/* Marks: what each process is trying at the moment, in the folder of tuning records, for whoever comes after it.
 *
 *	.trying-KEY-PID-RANDOM      the configuration and a newline; nothing between two trials
 *
 * A mark belongs to a living process as long as its lock is held, and the system lets go of that however the process
 * ends.  So a mark that can be locked tells which configuration ended one: it is not tried again here.  Where locks do
 * not work (some network file systems), a mark counts when it is an hour old.  What cannot be written is left out: then
 * a fault is met again by the next start, no more. */
#include "tune.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define PREFIX ".trying-"
enum { NAME = 64, MOST = 4096 };

/* ".trying-KEY-", and the folder; false: there is no cache. */
static bool place(const tune_job *j, cache *c, char prefix[NAME])
{
	cache_key key;
	if (!cache_beside(&j->kernel->head.device->cache, "tune", c)) return false;
	if (!tune_record_key(j->kernel, j->bits, j->promises, &key)) {
		cache_close(c);
		return false;
	}
	int n = snprintf(prefix, NAME, PREFIX);
	for (int i = 0; i < 16; i++) n += snprintf(prefix + n, NAME - (size_t)n, "%02x", key.bytes[i]);
	snprintf(prefix + n, NAME - (size_t)n, "-");
	return true;
}

/* ---- This process's ---- */

void tune_mark_open(const tune_job *j, tune_mark *m)
{
	char prefix[NAME];
	cache c;
	*m = (tune_mark){.fd = -1};
	if (!place(j, &c, prefix)) return;
	size_t room = strlen(c.folder) + NAME + 64;
	m->path = malloc(room);
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (m->path && cache_make_folder(&c)) {
		snprintf(m->path, room, "%s/%s%ld-%lx%lx", c.folder, prefix, (long)getpid(), (long)now.tv_sec,
			now.tv_nsec);
		m->fd = open(m->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	flock(m->fd, LOCK_EX | LOCK_NB); /* of none: nothing */
	cache_close(&c);
}

void tune_mark_set(tune_mark *m, const char *configuration)
{
	char line[MOST];
	if (m->fd < 0) return;
	int n = configuration ? snprintf(line, sizeof line, "%s\n", configuration) : 0;
	if (ftruncate(m->fd, 0) != 0 || n <= 0 || (size_t)n >= sizeof line) return;
	if (pwrite(m->fd, line, (size_t)n, 0) != n && ftruncate(m->fd, 0) != 0) return; /* half a name is no name */
}

void tune_mark_close(tune_mark *m)
{
	if (m->fd >= 0) {
		unlink(m->path);
		close(m->fd);
	}
	free(m->path);
	*m = (tune_mark){.fd = -1};
}

/* ---- Those of others ---- */

static bool abandoned(int fd)
{
	struct stat st;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
	return errno != EWOULDBLOCK && fstat(fd, &st) == 0 && time(NULL) - st.st_mtime > 3600;
}

static bool suspect(const tune_job *j, const char *configuration)
{
	for (uint32_t i = 0; i < j->kernel->sig->nconfigurations; i++) {
		tune_result *r = &j->results[i];
		if (r->verdict != BLK_TUNE_UNKNOWN || strcmp(j->kernel->sig->configurations[i], configuration) != 0)
			continue;
		r->verdict = BLK_TUNE_SUSPECT;
		r->reason = strdup("a process ended while it tried this; tuning in isolation tries it again");
		note_add("kernel %s: configuration %s is skipped: a process ended while it tried it",
			j->kernel->sig->kernel, configuration);
		return true;
	}
	return false;
}

/* The mark is read, then removed: what it says goes into the record. */
static bool take(const tune_job *j, int folder, const char *name)
{
	char line[MOST + 1];
	int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	bool found = false;
	if (fd < 0) return false;
	if (abandoned(fd)) {
		ssize_t n = pread(fd, line, MOST, 0);
		if (n > 1 && line[n - 1] == '\n') {
			line[n - 1] = 0;
			found = suspect(j, line);
		}
		unlinkat(folder, name, 0);
	}
	close(fd);
	return found;
}

bool tune_marks_read(const tune_job *j)
{
	char prefix[NAME];
	cache c;
	bool found = false;
	if (!place(j, &c, prefix)) return false;
	DIR *d = opendir(c.folder);
	for (struct dirent *e; d && (e = readdir(d));)
		if (strncmp(e->d_name, prefix, strlen(prefix)) == 0) found = take(j, dirfd(d), e->d_name) || found;
	if (d) closedir(d);
	cache_close(&c);
	return found;
}

void tune_marks_clear(const cache *c)
{
	DIR *d = opendir(c->folder);
	for (struct dirent *e; d && (e = readdir(d));) {
		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) != 0) continue;
		int fd = openat(dirfd(d), e->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0 && abandoned(fd)) unlinkat(dirfd(d), e->d_name, 0);
		if (fd >= 0) close(fd);
	}
	if (d) closedir(d);
}
