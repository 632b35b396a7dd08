/* A file that keeps its place: one that is mounted by itself, or lies in a folder where nothing can be made.
 *
 * In: a path, and a descriptor of all the bytes.  Out: the file cut and written, as cp does; its owner and mode
 * stay. */
#ifndef BLK_OVERWRITE_H
#define BLK_OVERWRITE_H

#include <stdbool.h>

/* A descriptor to write a file that is there, as yet uncut; no link is followed.  -1: errno says why. */
int overwrite_open(const char *path);
/* Whether it has no other name: what another's folder holds may be a second name of a file elsewhere. */
bool overwrite_only_name(int fd);
bool overwrite(int to, int from); /* with all that `from` holds; false: errno says why, and the file may be cut */

#endif
