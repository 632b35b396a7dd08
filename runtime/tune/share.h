/* What libblk and blk-trial say to each other: one block of shared memory.
 *
 * libblk writes the job: source, defines, kernel, arguments, buffers, and what is known of each configuration.
 * blk-trial writes what it learns, and says which configuration runs and until when it may; so whoever is left knows
 * what ended the other.  Both are of one version, or blk-trial refuses; offsets are in bytes from the block's start. */
#ifndef BLK_TUNE_SHARE_H
#define BLK_TUNE_SHARE_H

#include "tune.h"

#define TUNE_SHARE_MAGIC "blk trial " BLK_VERSION
enum { TUNE_SHARE_FD = 3, TUNE_LIFE_FD = 4 }; /* the block; a pipe that closes when blk-trial ends */

typedef enum tune_state {
	TUNE_STARTING,
	TUNE_WORKING,
	TUNE_DONE,
	TUNE_AGAIN,  /* the rest wants a fresh process */
	TUNE_REFUSED /* status and error say why */
} tune_state;

typedef struct tune_slot { /* a configuration */
	uint32_t verdict, checked;
	double ms, so_far; /* so_far: of what is not timed to the end yet */
	char reason[488];
} tune_slot;

typedef struct tune_shared_buffer { /* all that lies behind an argument; of others too, perhaps */
	uint64_t at, bytes;
} tune_shared_buffer;

typedef struct tune_shared_arg {
	uint32_t type;         /* blk_type */
	uint32_t buffer;       /* a pointer's number among the buffers; TUNE_NONE: null */
	uint64_t bits, offset; /* a number's; a pointer's place in that buffer */
} tune_shared_arg;

typedef struct tune_shared_define {
	uint64_t name, value;
} tune_shared_define;

typedef struct tune_share {
	char magic[32];
	uint64_t bytes;
	int64_t parent; /* its process */
	double limit_s;
	uint64_t device, module, kernel; /* NUL-terminated strings */
	uint64_t text, text_bytes, slots, buffers, defines;
	uint64_t args;
	uint32_t nslots, nargs, nbuffers, ndefines;
	uint64_t promises;
	blk_grid grid; /* all zero: the kernel's clause */
	/* What blk-trial says. */
	_Atomic uint32_t state;               /* tune_state */
	_Atomic uint32_t running;             /* a configuration, or TUNE_NONE */
	_Atomic uint64_t until_ns;            /* of CLOCK_MONOTONIC, for what is running */
	_Atomic uint32_t done, total, learnt; /* learnt: how often there was something */
	_Atomic uint64_t best_ns;
	uint32_t status;
	char error[2000];
} tune_share;

#endif
