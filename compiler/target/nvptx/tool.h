/* NVIDIA's programs (ptxas, nvdisasm, cuobjdump), which are run when they are there.
 *
 * A tool reads one temporary file and writes another; what it says comes through a pipe.  All of it hangs on one struct
 * that tool_close() cleans up on every way out; the child gets nothing from us but file names and limits.
 *
 * Limits: so much time by the clock, then it is killed; the same of a processor's time and so much memory by the
 * system's own limits, which hold for what it starts, too, and when we are gone.  It stays in our process group: ^C and
 * ^Z reach it as they reach us. */
#ifndef BLK_NVPTX_TOOL_H
#define BLK_NVPTX_TOOL_H

#include "support/arena.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tool_limits {
	uint32_t seconds, megabytes; /* 0: none */
} tool_limits;

typedef enum tool_end {
	TOOL_EXITED,      /* code: its status */
	TOOL_KILLED,      /* code: the signal; not by us */
	TOOL_OUT_OF_TIME, /* killed by us, or by the limit of processor time */
	TOOL_UNKNOWN,     /* nobody could say: SIGCHLD is ignored in this process, and there is no output */
} tool_end;

typedef struct tool {
	char program[PATH_MAX], input[PATH_MAX], output[PATH_MAX];
	bool have_input, have_output;
	int pipe[2], file; /* -1: closed */
	char log[16384];   /* NUL-terminated; what does not fit is dropped */
	size_t log_bytes;
	tool_limits limits; /* set them before tool_run() */
	tool_end end;       /* of the last run, with its code */
	int code;
} tool;

tool *tool_open(arena *);
void tool_close(tool *);
/* Looks in the folder of the program `beside` (may be null), on PATH, then in /usr/local/cuda/bin.  Fills program. */
bool tool_find(tool *, const char *name, const char *beside);
bool tool_is(tool *, const char *path); /* that program and no other */
/* Writes the input file and makes an empty output file.  False: errno says why. */
bool tool_prepare(tool *, const void *bytes, size_t n);
/* Runs the program to its end, or to that of its time: exit status, or -1, of which `end` and `code` tell.  `capture`:
 * its standard output goes to the output file, not to the log.  -2: it cannot be started, errno says why. */
int tool_run(tool *, char *const *arguments, bool capture);
/* How a run that failed ended: "was killed by signal 11 (SIGSEGV)", "ran out of memory: ..".  Of an exit status of its
 * own null: then the log says why. */
const char *tool_ending(const tool *, arena *);
/* The output file; null if it is missing or empty.  NUL-terminated beyond *n. */
char *tool_output(tool *, arena *, size_t *n);

#endif
