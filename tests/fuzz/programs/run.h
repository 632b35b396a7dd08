/* Running a program on several devices and comparing what it wrote. */
#ifndef FUZZ_RUN_H
#define FUZZ_RUN_H

#include "tree.h"

#include <blk.h>

typedef enum verdict_kind { AGREE, DIFFER, NOT_COMPILED, REPORTED, CRASHED, HUNG } verdict_kind;
typedef struct verdict {
	verdict_kind kind;
	int which, num_warps; /* the device that it is about */
	bool late;            /* and the form of the program */
	char device[48];      /* "sim:sm_80, num_warps = 4, seed 3" */
	char what[3000];      /* the compiler's or the simulator's words, or the first difference */
	char key[160];        /* of `what`, without numbers: two failures with one key are taken for the same */
} verdict;
extern const char *const verdict_names[]; /* ORDER verdict_kind */

enum { DEVICE_CPU, DEVICE_SM80, DEVICE_SM90, DEVICE_CUDA, DEVICE_COUNT };
typedef struct devices {
	blk_device *at[DEVICE_COUNT]; /* null: not opened yet */
	bool no_cuda;
} devices;

/* In this process.  `like`: null, or the failure to look for: only on its device, with the program's num_warps. */
void run_program(devices *, const program *, const verdict *like, verdict *);
void devices_close(devices *);
/* Ends this process by a signal after so many seconds of its own time, or ten times as many of the clock's; 0: never.
 */
void limit_time(unsigned seconds);
bool is_time_limit(int status); /* of waitpid: that is what ended it */
/* In a process of its own, which may crash, or hang for `seconds`. */
void run_isolated(const program *, const verdict *like, unsigned seconds, verdict *);

/* The elements that a buffer starts with; malloced. */
unsigned char *buffer_data(const program *, int index, size_t *bytes);
/* PREFIX.blk, its inputs as .npy beside it, and on `out` the blkrun line that shows the failure. */
void write_case(const program *, const verdict *, const char *prefix, FILE *out);

/* reduce.c: the smallest program found that still fails the same way, in at most `seconds`. */
void reduce_program(program *, const verdict *, unsigned seconds);

#endif
