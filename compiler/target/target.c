/* The table of targets.  PTX versions are the lowest that the target's own forms need; the limits of an SM are those of
 * the CUDA programming guide, and how they are shared out is NVIDIA's occupancy calculation. */
#include "target.h"

#include <stddef.h>
#include <string.h>

enum {
	SINCE_89 = TARGET_CONVERTS_FP8,
	SINCE_90 = SINCE_89 | TARGET_ATOMIC_BF16 | TARGET_ATOMIC_VECTORS | TARGET_TMA | TARGET_GDC,
	ONLY_90A = TARGET_MULTICAST | TARGET_WGMMA | TARGET_SETMAXNREG
};

static const blk_target targets[] = {
	{"cpu", TARGET_CPU, 0, "", "", 0, "this machine's processor", 0, 0, 0, 0},
	{"sm_80", TARGET_NVPTX, 80, "sm_80", "+ptx70", 163 * 1024, "A100; runs on every later GPU (default)", 64, 32,
		164 * 1024, 0},
	{"sm_86", TARGET_NVPTX, 86, "sm_86", "+ptx71", 99 * 1024, "GeForce 30, A10, A40", 48, 16, 100 * 1024, 0},
	{"sm_89", TARGET_NVPTX, 89, "sm_89", "+ptx81", 99 * 1024, "GeForce 40, L4, L40", 48, 24, 100 * 1024, SINCE_89},
	{"sm_90", TARGET_NVPTX, 90, "sm_90", "+ptx78", 227 * 1024, "H100, H200 and later", 64, 32, 228 * 1024,
		SINCE_90},
	{"sm_90a", TARGET_NVPTX, 90, "sm_90a", "+ptx80", 227 * 1024, "H100, H200 only: wgmma, setmaxnreg", 64, 32,
		228 * 1024, SINCE_90 | ONLY_90A},
	{"sm_100a", TARGET_NVPTX, 100, "sm_100a", "+ptx86", 227 * 1024, "B200 only", 64, 32, 228 * 1024, SINCE_90},
	{"sm_120a", TARGET_NVPTX, 120, "sm_120a", "+ptx87", 99 * 1024, "GeForce 50 only", 48, 24, 100 * 1024, SINCE_90},
};

const blk_target *target_at(unsigned i)
{
	return i < sizeof targets / sizeof targets[0] ? &targets[i] : NULL;
}

const blk_target *target_find(const char *name)
{
	for (unsigned i = 0; target_at(i); i++)
		if (strcmp(targets[i].name, name) == 0) return &targets[i];
	return NULL;
}

enum {
	SM_PARTS = 4,        /* each with a quarter of the registers */
	REGISTER_UNIT = 256, /* registers are given to warps in this many */
	CTA_SHARED = 1024,   /* the system's own part of a CTA's shared memory */
	SHARED_UNIT = 128
};

static unsigned round_up(unsigned n, unsigned unit)
{
	return (n + unit - 1) / unit * unit;
}

target_occupancy target_fill_sm(const blk_target *t, unsigned num_warps, unsigned registers, unsigned shared_bytes)
{
	target_occupancy o = {.ctas = t->sm_ctas, .limit = "CTAs"};
	unsigned a_warp = round_up(32 * (registers ? registers : 1), REGISTER_UNIT);
	unsigned by_registers =
		registers > TARGET_THREAD_REGISTERS || a_warp * round_up(num_warps, SM_PARTS) > TARGET_SM_REGISTERS
			? 0
			: TARGET_SM_REGISTERS / SM_PARTS / a_warp * SM_PARTS / num_warps;
	unsigned by_shared = t->sm_shared / (round_up(shared_bytes, SHARED_UNIT) + CTA_SHARED);
	if (shared_bytes > t->shared_bytes) by_shared = 0;
	struct {
		unsigned ctas;
		const char *name;
	} limits[] = {{t->sm_warps / num_warps, "warps"}, {by_registers, "registers"}, {by_shared, "shared memory"}};
	for (unsigned i = 0; i < 3; i++)
		if (limits[i].ctas < o.ctas) o.ctas = limits[i].ctas, o.limit = limits[i].name;
	o.warps = o.ctas * num_warps;
	if (!o.ctas) o.limit = NULL;
	return o;
}
