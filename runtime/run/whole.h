/* A program's output, whole or not at all even where a signal ends the program: runtime/base/output.h, with the
 * handlers that remove what is half written.  One at a time. */
#ifndef BLK_RUN_WHOLE_H
#define BLK_RUN_WHOLE_H

#include <stdbool.h>
#include <stddef.h>

/* All false ones: errno says why, and nothing is left behind. */
bool whole_open(const char *path);
/* Whether that could succeed, before there is anything to write: a file is begun and taken back. */
bool whole_possible(const char *path);
int whole_descriptor(void); /* for another program that writes into it */
bool whole_write(const void *, size_t n);
bool whole_commit(void);
void whole_abandon(void); /* keeps errno */

#endif
