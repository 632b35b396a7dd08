/* A file that appears under its name whole or not at all.
 *
 * In: a path, then bytes in any number of parts.  Out: what was there before, up to new_file_commit(); all of the new
 * bytes from then on.  A process that is killed in between leaves the old file and "NAME.tmp-<16 hexadecimal digits>".
 */
#ifndef BLK_NEW_FILE_H
#define BLK_NEW_FILE_H

#include "cache/cache.h"

#include <stdatomic.h>

typedef struct new_file {
	const cache_files *files;
	const char *path; /* the caller's, up to the commit */
	int fd;
	char temporary[4096];
	atomic_bool
		exists; /* `temporary` is whole and may be a file: what a signal handler asks before it unlinks it */
} new_file;

/* `mode` is what the process's umask leaves of it.  False: errno says why, and nothing is left behind; so it is with
 * all three, and after a false one the file is closed. */
bool new_file_open(new_file *, const cache_files *, const char *path, unsigned mode);
bool new_file_write(new_file *, const void *, size_t n);
bool new_file_commit(new_file *);
void new_file_abandon(new_file *); /* keeps errno */

bool write_whole(const cache_files *, int fd, const void *, size_t n);

#endif
