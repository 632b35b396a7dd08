/* What code is generated for: one row of target/target.c's table, named as in `--target=`. */
#ifndef BLK_TARGET_H
#define BLK_TARGET_H

#include <stdbool.h>

typedef enum target_kind { TARGET_CPU, TARGET_NVPTX } target_kind;
typedef struct blk_target {
	const char *name; /* "sm_90a", "cpu" */
	target_kind kind;
	unsigned sm; /* 80, 86, 89, 90, 100, 120; 0 for cpu */
	const char *llvm_cpu,
		*llvm_features; /* for LLVMCreateTargetMachine: "sm_90a", "+ptx80" (the lowest that the target has) */
	unsigned shared_bytes;  /* most that one CTA may have, dynamic: 99, 163 or 227 KiB */
	const char *note;       /* for --list-targets */
	/* of one SM; it has 65536 registers */
	unsigned sm_warps, sm_ctas, sm_shared; /* shared: bytes; every CTA takes 1024 more than it asks for */
	bool wgmma;                            /* has the warpgroup's matrix instruction */
} blk_target;

const blk_target *target_find(const char *name); /* null: unknown */
const blk_target *target_at(unsigned i);         /* null past the end */

/* How many CTAs one SM runs at once, and what does not let it run more: "registers", "shared memory", "warps" or
 * "CTAs" (null when the kernel does not run at all: 0). */
typedef struct target_occupancy {
	unsigned ctas, warps;
	const char *limit;
} target_occupancy;
target_occupancy target_fill_sm(const blk_target *, unsigned num_warps, unsigned registers, unsigned shared_bytes);

#endif
