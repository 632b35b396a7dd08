/* What a user names as the place of an output: a file, a device, a pipe, "/dev/stdout".
 *
 * A file appears whole or not at all (new_file.h).  A link in its place is replaced and not followed, as by gcc's -o,
 * so that in a folder that others may write nobody's link chooses which file is written.  A file that replaces one has
 * its mode, and its owner and group where the system lets it, else fewer rights.  What cannot be replaced is written as
 * it is: a device, a pipe, and a link to one that this user or root made; a file that is mounted by itself, and one in
 * a folder where this user can make none, when all bytes are there (overwrite.h).  "/dev/stdout", "/dev/stderr" and
 * "/dev/fd/N" are this process's descriptors, as bash has it. */
#ifndef BLK_OUTPUT_H
#define BLK_OUTPUT_H

#include "new_file.h"

int descriptor_named(const char *path); /* which of this process's a path names ("/dev/stdin": 0); -1: none */

typedef struct output {
	new_file file; /* file.fd takes the bytes, whatever it is */
	bool in_place;
	int over; /* the file that gets the bytes in the end, while file.fd is memory; -1: none */
} output;

/* All false ones: errno says why, nothing of a new file is left behind, and the output is closed. */
bool output_open(output *, const char *path);
bool output_write(output *, const void *, size_t n);
bool output_commit(output *);
void output_abandon(output *); /* keeps errno */

#endif
