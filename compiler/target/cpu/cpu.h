/* The cpu device's code generator: tile IR -> LLVM IR -> a relocatable object for cpu_abi.h. */
#ifndef BLK_CPU_H
#define BLK_CPU_H

#include "ir/ir.h"

typedef struct cpu_options {
	bool want_llvm, want_asm, want_object, want_part;
	bool check_bounds;          /* each access lies in its buffer, or the launch fails */
	bool line_info;             /* which line each instruction came of, for reports and debuggers */
	const char *cpu, *features; /* null: this host's; else LLVM's names, "x86-64" and "" for the oldest */
} cpu_options;

typedef struct cpu_output {
	const char *llvm, *assembly; /* NUL-terminated, or null */
	size_t llvm_bytes, assembly_bytes;
	const void *object;
	size_t object_bytes;
	const void *part; /* LLVM's bitcode, for cpu_join() */
	size_t part_bytes;
	bool quick;             /* too long for the optimising code generator */
	uint64_t scratch_bytes; /* a thread; multiple of 64 */
} cpu_output;

/* Everything in *out lives in the arena.  False after a diagnostic. The function must be at the tile level, verified
 * and legalised. */
bool cpu_emit(arena *, diags *, ir_func *, const cpu_options *, cpu_output *out);
/* The kernels of a file as one: its text, assembly or object has them all.  Two at least, all made with one set of
 * options; false after a diagnostic at `last`, the last of them. */
bool cpu_join(arena *, diags *, ir_func *last, const cpu_options *, const cpu_output *parts, size_t n, cpu_output *out);
/* The host's processor and features as one word of text: whoever stores objects keys them by it. */
const char *cpu_host_name(arena *);

#endif
