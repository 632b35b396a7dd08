/* The contract between code generated for the cpu device and whoever runs it (libblk).
 *
 * A kernel is one function in a relocatable ELF object (x86-64 SysV), named by the signature's `symbol` line:
 *     void kernel(blk_cpu_call *call, uint64_t first, uint64_t last, void *scratch);
 * It runs programs first..last-1 of the linearised grid (x fastest), each to its end, one after another.  `scratch` is
 * `scratch N` bytes (signature line), 64-byte aligned, private to the calling thread, its contents arbitrary; so is
 * `call`.  The object's only undefined symbols are libm and mem* functions from the loader's fixed list
 * (runtime/device/cpu_load.c), perhaps with "blk." before their names; all else goes through `host`. */
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

/* The bytes that a pointer parameter may reach, and an access of code that was compiled to check each. */
typedef struct blk_cpu_range {
	uint64_t begin, bytes;
} blk_cpu_range;
typedef struct blk_cpu_access {
	const char *file; /* "" where the line is unknown */
	uint32_t line, bytes;
	uint32_t kind;     /* blk_cpu_access_kind, with BLK_CPU_TILE */
	int32_t parameter; /* whose range it left; -1: an address that came of no parameter */
} blk_cpu_access;
typedef enum blk_cpu_access_kind { BLK_CPU_READS, BLK_CPU_WRITES, BLK_CPU_UPDATES } blk_cpu_access_kind;
enum { BLK_CPU_TILE = 4 }; /* of a tile's elements: it could have had a mask */

typedef struct blk_cpu_host {
	void *context;
	/* Both are called by many threads at once.  A failed device_assert: the host records the first; the kernel
	 * then returns at once from this program. `file` is "" where the line is unknown. */
	void (*print)(void *context, const blk_cpu_line *line);
	void (*assert_failed)(
		void *context, const char *message, const char *file, uint32_t line, const uint32_t program[3]);
	/* The same of a tile, with the index of the first element that fails. */
	void (*element_failed)(void *context, const char *message, const char *file, uint32_t line,
		const uint32_t program[3], uint32_t rank, const uint32_t *index);
	/* Of checked code.  `outside`: as a failed assert.  `find`: the buffer that an address from elsewhere is in, or
	 * near; no bytes where there is none. */
	void (*outside)(void *context, const blk_cpu_access *, uint64_t address, const uint32_t program[3]);
	void (*find)(void *context, uint64_t address, blk_cpu_range *);
} blk_cpu_host;

typedef struct blk_cpu_call {
	const uint64_t *args; /* one 8-byte slot a run-time parameter: pointers, or the value's container (scalar.h) */
	uint32_t grid[3];
	const blk_cpu_host *host;
	const blk_cpu_range *ranges; /* one a run-time parameter, for checked code; of what is no pointer: anything */
	uint64_t program;            /* written by the kernel: the one that runs, for whoever asks after a fault */
} blk_cpu_call;

typedef void blk_cpu_kernel(blk_cpu_call *, uint64_t first, uint64_t last, void *scratch);

#endif
