/* See whole.h.  The state is the program's and global, as a signal handler has no other way to know it. */
#include "runtime/run/whole.h"

#include "base/output.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static output current;

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDS = sizeof ends / sizeof ends[0] };
static struct sigaction before[ENDS];

static void ended(int signal_number)
{
	if (current.file.exists) unlink(current.file.temporary);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

/* What the parent had ignored (nohup, a script's background job) stays ignored. */
static void begin(void)
{
	const struct sigaction action = {.sa_handler = ended};
	for (unsigned i = 0; i < ENDS; i++) {
		sigaction(ends[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN) sigaction(ends[i], &action, NULL);
	}
}

static void end(void)
{
	for (unsigned i = 0; i < ENDS; i++) sigaction(ends[i], &before[i], NULL);
}

static bool ending(bool good)
{
	int why = errno;
	end();
	errno = why;
	return good;
}

bool whole_open(const char *path)
{
	begin();
	return output_open(&current, path) ? true : ending(false);
}

bool whole_possible(const char *path)
{
	struct stat s;
	bool special =
		strncmp(path, "/dev/", 5) == 0 || (stat(path, &s) == 0 && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode));
	if (special) return access(path, W_OK) == 0;
	if (!whole_open(path)) return false;
	whole_abandon();
	return true;
}

int whole_descriptor(void)
{
	return current.file.fd;
}

bool whole_write(const void *bytes, size_t n)
{
	return output_write(&current, bytes, n) ? true : ending(false);
}

bool whole_commit(void)
{
	return ending(output_commit(&current));
}

void whole_abandon(void)
{
	output_abandon(&current);
	ending(false);
}
