/* The cpu device's machinery inside libblk: an object loader and a pool of threads that runs a grid.
 *
 * They return a cpu_status and put a sentence into a caller's buffer; none prints (but device_print's lines, which
 * go to stdout).  What belongs to the process, a signal's handler and gdb's list, is in cpu_trap.c and cpu_gdb.c. */
#ifndef BLK_RUNTIME_CPU_H
#define BLK_RUNTIME_CPU_H

#include "target/cpu/cpu_abi.h"

#include <signal.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum cpu_status {
	CPU_OK,
	CPU_NO_MEMORY,
	CPU_BAD_OBJECT,    /* the bytes are not an object that the compiler makes */
	CPU_UNSUPPORTED,   /* an object for another machine, or of a form that is not handled */
	CPU_NO_SYMBOL,     /* the kernel is not in the object, or the object needs a function that nobody has */
	CPU_ASSERT_FAILED, /* a device_assert; the text says which */
	CPU_SYSTEM,        /* threads or memory protection were refused */
	CPU_FAULT,         /* a kernel touched what is not its; the watch's fault says what */
} cpu_status;

/* cpu_load.c: a relocatable ELF object becomes code that can be called.  Any bytes may be given.  `error` may be NULL
 * when room is 0. */
typedef struct cpu_object cpu_object;
int cpu_object_load(const void *bytes, size_t n, const char *symbol, cpu_object **out, char *error, size_t room);
blk_cpu_kernel *cpu_object_kernel(const cpu_object *);
void cpu_object_code(const cpu_object *, uint64_t *begin, uint64_t *bytes); /* where instructions are */
/* The line of the source that an instruction came of; the names live as long as the object. */
typedef struct cpu_line {
	const char *folder, *file; /* folder "": the file's name is all of it */
	uint32_t number;
} cpu_line;
bool cpu_object_line(const cpu_object *, uint64_t pc, cpu_line *); /* false: unknown */
void cpu_object_free(cpu_object *);                                /* NULL is fine; no launch of it may be running */

/* cpu_gdb.c: what a debugger knows of loaded code; its list has the layout that gdb's JIT interface says. */
typedef struct cpu_symbols {
	struct cpu_symbols *next, *previous;
	const void *elf; /* an object whose sections' addresses are where they are; lives as long as the entry */
	uint64_t bytes;
} cpu_symbols;
void cpu_symbols_register(cpu_symbols *);
void cpu_symbols_unregister(cpu_symbols *);

/* cpu_line.c: the line of the source that the instruction came of.  Any bytes may be given.  False: unknown. */
bool cpu_line_find(const void *elf, size_t n, uint64_t pc, cpu_line *);

/* cpu_trap.c: a thread inside a kernel leaves it at a fault.
 *	if (sigsetjmp(t.back, 0)) ..it faulted: the rest of `t` says how..
 *	else cpu_trap_set(&t), run, cpu_trap_set(NULL) */
typedef struct cpu_trap {
	sigjmp_buf back;
	uint64_t code, code_bytes; /* the kernel's */
	uint64_t pc, address;      /* of the access; pc 0: unknown */
	bool in_page;              /* the address is known, and it was written or read */
	bool writes;
} cpu_trap;
cpu_trap *cpu_trap_set(cpu_trap *); /* this thread's way back, null: none; what it was */
/* While it counts more arms than disarms, faults are looked at.  False: the system refuses. */
bool cpu_traps_arm(void);
void cpu_traps_disarm(void);
/* In this thread, which may have the signals blocked; `was`, if not null, gets the mask for cpu_traps_block, which puts
 * it back. */
void cpu_traps_unblock(sigset_t *was);
void cpu_traps_block(const sigset_t *was);

/* How much is done about accesses outside of buffers: nothing; guards around them and a handler for faults; a check of
 * each access too. */
typedef enum cpu_mode { CPU_FAST, CPU_GUARDED, CPU_CHECKED } cpu_mode;

/* cpu_memory.c: buffers, one set a device; any thread may ask. */
typedef struct cpu_memory cpu_memory;
/* `guards`: so many buffers of the process may have guards, whoever's they are. */
int cpu_memory_create(cpu_mode, size_t guards, cpu_memory **out);
/* How many, by the file that says how many mappings a process may have ("/proc/sys/vm/max_map_count"). */
size_t cpu_memory_guards(const char *limit);
void cpu_memory_destroy(cpu_memory *); /* all of it was released; NULL is fine */
cpu_mode cpu_memory_mode(const cpu_memory *);
bool cpu_memory_allocate(cpu_memory *, uint64_t bytes, uint64_t *address); /* 0 bytes have an address too */
/* True once, when a buffer that should have guards has none: a sentence why, and the way out. */
bool cpu_memory_warning(cpu_memory *, char *text, size_t room);
void cpu_memory_release(cpu_memory *, uint64_t address);                  /* one that was handed out */
bool cpu_memory_find(cpu_memory *, uint64_t address, blk_cpu_range *out); /* the buffer between whose guards it is */
/* False: what lies around the buffer was written, at *where first.  It is put right again. */
bool cpu_memory_intact(cpu_memory *, uint64_t address, uint64_t *where);

/* cpu_run.c: threads and their scratch memory, one pool a device.  Threads start with the first launch that can use
 * them: one for each processor that this process may run on, or $BLK_CPU_THREADS. */
typedef struct cpu_pool cpu_pool;
int cpu_pool_create(cpu_pool **out);
void cpu_pool_destroy(cpu_pool *);           /* joins the threads; NULL is fine */
unsigned cpu_pool_threads(const cpu_pool *); /* that a large launch uses, the caller's included */
/* What a kernel did wrong: found by the processor, or by its own code, where `access` is not null. */
typedef struct cpu_fault {
	cpu_trap at;
	const blk_cpu_access *access; /* in the object's memory */
	uint64_t address;             /* of the access, if that is known (access, or at.in_page) */
	bool has_program;
	uint32_t program[3];
} cpu_fault;
/* What a launch is watched with. */
typedef struct cpu_watch {
	const cpu_object *object;
	const blk_cpu_range *ranges; /* as in blk_cpu_call */
	void (*find)(void *context, uint64_t address, blk_cpu_range *);
	void (*end)(void *context); /* when all programs have ended, before another launch begins */
	void *context;
	cpu_fault fault; /* of the first thread that has one */
} cpu_watch;
/* Runs every program of the grid and returns when all have ended; launches of several threads wait for one another.
 * CPU_ASSERT_FAILED: programs not yet started were skipped, `error` has "file:line: message ...".  CPU_FAULT: likewise,
 * and the watch has the fault; without a watch faults are the process's.  Extents must not be zero. */
int cpu_pool_run(cpu_pool *, blk_cpu_kernel *, uint64_t scratch_bytes, const uint64_t *args, const uint32_t grid[3],
	cpu_watch *, char *error, size_t room);
/* One word for this processor and its instruction sets, from the processor itself, for cache keys. */
void cpu_identity(char *buffer, size_t room);

#endif
