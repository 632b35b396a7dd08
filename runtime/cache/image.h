/* The files that this process's code comes from: where they are, and which build they are. */
#ifndef BLK_IMAGE_H
#define BLK_IMAGE_H

#include "cache.h"

/* The absolute path of the file that holds the code at `address`, whatever the process's folder is now or was when it
 * was loaded.  False: there is none to be known. */
bool image_path(const void *address, char *path, size_t room);
/* `name` in the folder of libblk's own file: "../lib/x"; false as above, or it is too long. */
bool image_beside(const char *name, char *path, size_t room);

/* Which build a library's file is: the linker's build id, else a digest of all its bytes.  A copy or a new date changes
 * nothing, another build does.  False: no such file, or not to be read. */
bool image_identity(const char *path, cache_key *);

/* A folder of the dynamic linker's search that is taken from where the process stands ("." or "lib"), malloc'ed; null:
 * all are absolute. */
char *image_relative_search(void);

#endif
