/* NVIDIA's programs (ptxas, nvdisasm, cuobjdump), which are run when they are there.
 *
 * A tool reads one temporary file and writes another; what it says comes through a pipe.  All of it hangs on one struct
 * that tool_close() cleans up on every way out; the child gets nothing from us but file names. */
#ifndef BLK_NVPTX_TOOL_H
#define BLK_NVPTX_TOOL_H

#include "../support/arena.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct tool {
	char program[PATH_MAX], input[PATH_MAX], output[PATH_MAX];
	bool have_input, have_output;
	int pipe[2], file; /* -1: closed */
	char log[16384];   /* NUL-terminated; what does not fit is dropped */
	size_t log_bytes;
} tool;

tool *tool_open(arena *);
void tool_close(tool *);
/* Looks in the folder of the program `beside` (may be null), on PATH, then in /usr/local/cuda/bin.  Fills program. */
bool tool_find(tool *, const char *name, const char *beside);
bool tool_is(tool *, const char *path); /* that program and no other */
/* Writes the input file and makes an empty output file.  False: errno says why. */
bool tool_prepare(tool *, const void *bytes, size_t n);
/* Runs the program to its end: exit status, or -1.  `capture`: its standard output goes to the output file, not to the
 * log.  -2: it cannot be started, errno says why. */
int tool_run(tool *, char *const *arguments, bool capture);
/* The output file; null if it is missing or empty.  NUL-terminated beyond *n. */
char *tool_output(tool *, arena *, size_t *n);

#endif
