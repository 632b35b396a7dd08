/* What code is generated for: one row of target.c's table, named as in `--target=`, with what its instructions can
 * do. */
#ifndef BLK_TARGET_H
#define BLK_TARGET_H

#include <stdbool.h>

typedef enum target_kind { TARGET_CPU, TARGET_NVPTX } target_kind;

/* What not every GPU has; a pass asks for what it makes, not for the target's number. */
typedef enum target_capability {
	TARGET_CONVERTS_FP8 = 1 << 0,   /* cvt between fp8 and f16 or f32 */
	TARGET_ATOMIC_BF16 = 1 << 1,    /* atom and red on one bf16 */
	TARGET_ATOMIC_VECTORS = 1 << 2, /* red of 16 bytes of floats */
	TARGET_TMA = 1 << 3,            /* bulk copies by tensor maps, mbarriers that count their bytes */
	TARGET_MULTICAST = 1 << 4,      /* .. to all programs of a cluster, at full speed */
	TARGET_WGMMA = 1 << 5,          /* the warpgroup's matrix instruction */
	TARGET_SETMAXNREG = 1 << 6,     /* warps hand registers over */
	TARGET_GDC = 1 << 7,            /* griddepcontrol: a kernel begins while the one before it ends */
} target_capability;

enum {
	TARGET_SM_REGISTERS = 64 * 1024, /* of 32 bits, for all threads of an SM */
	TARGET_THREAD_REGISTERS = 255,   /* most of one thread */
	TARGET_PRODUCER_REGISTERS = 24,  /* that setmaxnreg leaves a thread, at least; */
	TARGET_CONSUMER_REGISTERS = 240, /* gives one, at most; */
	TARGET_REGISTER_UNIT = 8,        /* and multiples of which it takes */
	TARGET_EXP2_CYCLES = 8           /* of a scheduler, for one of each of a warp's threads */
};

typedef struct blk_target {
	const char *name; /* "sm_90a", "cpu" */
	target_kind kind;
	unsigned sm; /* 80, 86, 89, 90, 100, 120; 0 for cpu */
	const char *llvm_cpu,
		*llvm_features; /* for LLVMCreateTargetMachine: "sm_90a", "+ptx80" (the lowest that the target has) */
	unsigned shared_bytes;  /* most that one CTA may have, dynamic: 99, 163 or 227 KiB */
	const char *note;       /* for --list-targets */
	/* of one SM */
	unsigned sm_warps, sm_ctas, sm_shared; /* shared: bytes; every CTA takes 1024 more than it asks for */
	unsigned can;                          /* target_capability */
} blk_target;

/* False too where there is no target: what is made then runs on every GPU. */
static inline bool target_can(const blk_target *t, target_capability what)
{
	return t && (t->can & what) == what;
}

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
