/* The contract between code generated for the cpu device and whoever runs it (libblk).
 *
 * A kernel is one function in a relocatable ELF object (x86-64 SysV), named by the signature's `symbol` line:
 *     void kernel(const blk_cpu_call *call, uint64_t first, uint64_t last, void *scratch);
 * It runs programs first..last-1 of the linearised grid (x fastest), each to its end, one after another.  `scratch` is
 * `scratch N` bytes (signature line), 64-byte aligned, private to the calling thread, its contents arbitrary.  The
 * object's only undefined symbols are libm and mem* functions from the loader's fixed list (runtime/cpu_load.c),
 * perhaps with "blk." before their names; all else goes through `host`. */
#ifndef BLK_CPU_ABI_H
#define BLK_CPU_ABI_H

#include <stdint.h>

/* One line of a device_print: what is to be shown; the host makes the text, so that kernels stay small. */
typedef struct blk_cpu_line {
	const char *text;       /* the user's, NUL-terminated */
	const uint64_t *values; /* `count` containers (scalar.h), or addresses */
	const uint8_t *kinds;   /* each one's scalar, BLK_CPU_POINTER for an address */
	uint32_t program[3];
	uint32_t rank; /* 0: a line of scalars; else the element's index follows */
	uint32_t index[4];
	uint32_t count;
} blk_cpu_line;

enum { BLK_CPU_POINTER = 255 };

typedef struct blk_cpu_host {
	void *context;
	/* Both are called by many threads at once.  A failed device_assert: the host records the first; the kernel
	 * then returns at once from this program. `file` is "" where the line is unknown. */
	void (*print)(void *context, const blk_cpu_line *line);
	void (*assert_failed)(
		void *context, const char *message, const char *file, uint32_t line, const uint32_t program[3]);
} blk_cpu_host;

typedef struct blk_cpu_call {
	const uint64_t *args; /* one 8-byte slot a run-time parameter: pointers, or the value's container (scalar.h) */
	uint32_t grid[3];
	const blk_cpu_host *host;
} blk_cpu_call;

typedef void blk_cpu_kernel(const blk_cpu_call *, uint64_t first, uint64_t last, void *scratch);

#endif
