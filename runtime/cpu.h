/* The cpu device's machinery inside libblk: an object loader and a pool of threads that runs a grid.
 *
 * Both return a cpu_status and put a sentence into a caller's buffer; neither prints (but device_print's lines, which
 * go to stdout) nor keeps global state. */
#ifndef BLK_RUNTIME_CPU_H
#define BLK_RUNTIME_CPU_H

#include "../compiler/cpu/cpu_abi.h"

#include <stddef.h>

typedef enum cpu_status {
	CPU_OK,
	CPU_NO_MEMORY,
	CPU_BAD_OBJECT,    /* the bytes are not an object that the compiler makes */
	CPU_UNSUPPORTED,   /* an object for another machine, or of a form that is not handled */
	CPU_NO_SYMBOL,     /* the kernel is not in the object, or the object needs a function that nobody has */
	CPU_ASSERT_FAILED, /* a device_assert; the text says which */
	CPU_SYSTEM,        /* threads or memory protection were refused */
} cpu_status;

/* cpu_load.c: a relocatable ELF object becomes code that can be called.  Any bytes may be given.  `error` may be NULL
 * when room is 0. */
typedef struct cpu_object cpu_object;
int cpu_object_load(const void *bytes, size_t n, const char *symbol, cpu_object **out, char *error, size_t room);
blk_cpu_kernel *cpu_object_kernel(const cpu_object *);
void cpu_object_free(cpu_object *); /* NULL is fine; no launch of it may be running */

/* cpu_run.c: threads and their scratch memory, one pool a device.  Threads start with the first launch that can use
 * them: one for each processor that this process may run on, or $BLK_CPU_THREADS. */
typedef struct cpu_pool cpu_pool;
int cpu_pool_create(cpu_pool **out);
void cpu_pool_destroy(cpu_pool *);           /* joins the threads; NULL is fine */
unsigned cpu_pool_threads(const cpu_pool *); /* that a large launch uses, the caller's included */
/* Runs every program of the grid and returns when all have ended; launches of several threads wait for one another.
 * CPU_ASSERT_FAILED: programs not yet started were skipped, `error` has "file:line: message ...". Extents must not be
 * zero. */
int cpu_pool_run(cpu_pool *, blk_cpu_kernel *, uint64_t scratch_bytes, const uint64_t *args, const uint32_t grid[3],
	char *error, size_t room);
/* One word for this processor and its instruction sets, from the processor itself, for cache keys. */
void cpu_identity(char *buffer, size_t room);

#endif
