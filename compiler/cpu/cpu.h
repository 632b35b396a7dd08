/* The cpu device's code generator: tile IR -> LLVM IR -> a relocatable object for cpu_abi.h. */
#ifndef BLK_CPU_H
#define BLK_CPU_H

#include "../ir/ir.h"

typedef struct cpu_options {
	bool want_llvm, want_asm, want_object;
	const char *cpu, *features; /* null: this host's; else LLVM's names, "x86-64" and "" for the oldest */
} cpu_options;

typedef struct cpu_output {
	const char *llvm, *assembly; /* NUL-terminated, or null */
	size_t llvm_bytes, assembly_bytes;
	const void *object;
	size_t object_bytes;
	uint64_t scratch_bytes; /* a thread; multiple of 64 */
} cpu_output;

/* Everything in *out lives in the arena.  False after a diagnostic. The function must be at the tile level, verified
 * and legalised. */
bool cpu_emit(arena *, diags *, ir_func *, const cpu_options *, cpu_output *out);
/* The host's processor and features as one word of text: whoever stores objects keys them by it. */
const char *cpu_host_name(arena *);

#endif
