/* libblkc: the compiler as a library.  Source text in memory -> artifacts in memory.
 *
 * Thread-safe: no global state; each call has its own arena and LLVM context.  Never prints, exits or aborts.
 * Ownership: everything in a blkc_result lives until blkc_result_free(). */
#ifndef BLKC_H
#define BLKC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef BLKC_API
#define BLKC_API __attribute__((visibility("default")))
#endif

typedef struct blkc_define {
	const char *name, *value;
} blkc_define; /* const parameters and options: {"BLOCK", "2048"}, {"num_warps", "8"} */

/* What the host promises of a run-time parameter: {"x", 16, 0}: divisible by (pointers: aligned to) 16; {"stride", 0,
 * 1}: equal to 1. */
typedef struct blkc_promise {
	const char *name;
	uint32_t divisible;
	int is_one;
} blkc_promise;

typedef enum blkc_emit {     /* bits of blkc_request.emit */
	BLKC_EMIT_CHECK = 0, /* diagnostics and signatures only */
	BLKC_EMIT_TOKENS = 1 << 0,
	BLKC_EMIT_AST = 1 << 1,
	BLKC_EMIT_TILE = 1 << 2,   /* tile IR after the target-independent passes */
	BLKC_EMIT_LAYOUT = 1 << 3, /* mapped and scheduled IR */
	BLKC_EMIT_LLVM = 1 << 4,   /* LLVM IR as given to the backend, after its passes */
	BLKC_EMIT_PTX = 1 << 5,
	BLKC_EMIT_CUBIN = 1 << 6,
	BLKC_EMIT_OBJECT = 1 << 7,  /* target cpu: relocatable ELF object for blk's own loader */
	BLKC_EMIT_ASM = 1 << 8,     /* target cpu: assembly text */
	BLKC_EMIT_EXPLAIN = 1 << 9, /* what became of each line, as text */
	BLKC_EMIT_JSON = 1 << 10,   /* the same record, one JSON object */
	BLKC_EMIT_SASS = 1 << 11,   /* the cubin disassembled: needs ptxas and nvdisasm or cuobjdump */
} blkc_emit;

typedef struct blkc_request {
	size_t size;      /* sizeof(blkc_request): lets the struct grow */
	const char *name; /* printed in messages; imports are relative to its folder */
	const char *text;
	size_t text_bytes;  /* the source; text NULL: read the file `name` */
	const char *target; /* "sm_80", "cpu"; NULL: sm_80 */
	const char *kernel; /* NULL: all */
	const blkc_define *defines;
	size_t ndefines;
	const blkc_promise *promises;
	size_t npromises;
	const char *const *include_paths;
	size_t ninclude_paths;
	unsigned emit;           /* blkc_emit bits */
	const char *print_after; /* pass name, "all" or NULL; the text goes to blkc_result.log */
	int time_passes, verify_each, no_line_info, warnings_are_errors, diagnostics_json;
	const char *ptxas;   /* path; NULL: found on PATH when cubin or budgets need it */
	size_t memory_limit; /* bytes of arena; 0: none */
	const char *cpu;     /* target cpu: a processor in LLVM's words, "x86-64"; NULL: this machine's */
	/* Limits; 0: as usual, BLKC_NO_LIMIT: none.  Of ptxas: seconds (120) by the clock, MiB (4096) of memory.  Of
	 * the code of a kernel for GPUs: instructions of a thread (500,000), as estimated before it is made; a
	 * warning (W0723) from a fifth of it on. */
	uint32_t ptxas_seconds, ptxas_megabytes, max_code;
	int check_bounds;   /* target cpu: code that checks that each access lies in its buffer */
	int checks;         /* PTX with lines for the simulator about divisors of 0 and gathers; docs/sim.md */
	const char *passes; /* names with commas between them: the text is tile IR, these run on it, and what they leave
			       is the artifact of kind tile; NULL: the text is a program.  docs/ir.md */
} blkc_request;

#define BLKC_NO_LIMIT UINT32_MAX

typedef struct blkc_artifact {
	const char *kernel; /* name; "" for what is one for the whole file: tokens, ast, joined ptx, explain, json */
	unsigned kind;      /* one blkc_emit bit */
	const void *bytes;
	size_t nbytes; /* text is NUL-terminated beyond nbytes */
} blkc_artifact;

typedef struct blkc_kernel {
	const char *name;
	/* clang-format off */
	/* The launch signature as text, one fact a line; also stored beside compiled code, and all that libblk needs:
	 *   kernel NAME
	 *   symbol NAME                          (entry in the PTX or object)
	 *   target sm_90a
	 *   param NAME TYPE [align N|div N|one]  (run-time, in order; TYPE "*f32" "*const f16" "i32" ..)
	 *   const NAME TYPE VALUE                (bound const parameters)
	 *   map ELEMENT SWIZZLE BOX.. ; ADDRESS ; EXTENT.. ; STRIDE..
	 *                                        (a tensor map, passed as 128 bytes behind the parameters, a line each;
	 *                                        ELEMENT is a type, or tf32 for f32 rounded on the way; POSTFIX
	 *                                        expressions, of pointers too in ADDRESS; docs/nvptx.md)
	 *   written I                            (index of a run-time parameter whose buffer the kernel may write)
	 *   writes_addresses                     (it may write through addresses that it loads, or gets as integers)
	 *   grid I POSTFIX                       (I = 0..2; absent: the host must pass a grid)
	 *   cost bytes|flops POSTFIX
	 *   requires POSTFIX ; NAME=VALUE.. ; SOURCE ; TEXT   (what must not be 0 at a launch, a line each; docs/api.md)
	 *   num_warps N / num_stages N / num_ctas N / threads N / shared N / maxnreg N
	 *   cluster N                            (programs along x that are to be one, where the grid divides; absent: none)
	 *   max_registers N / max_spills N / max_shared N
	 *   autotune ...                         (kept verbatim for tools; one line)
	 *   source HEX                           (with an autotune clause: what its results depend on of the source and
	 *                                        its imports; not repeated in a PTX file's head)
	 *   configuration NAME=VALUE,NAME=VALUE  (one that the autotune clause allows, in its order; a line each; not
	 *                                        repeated in a PTX file's head)
	 *   fits POSTFIX                         (of the configuration above, one for each requires; not repeated either)
	 * POSTFIX: space-separated: integers or floats, pI (run-time parameter I as i64, or f64 in cost), and the operators
	 *   + - * / % neg << >> & | ^ ~ < <= > >= == != && || ! ?: cdiv min max next_pow2 num_sms
	 * (i64, f64 for cost; C's / and %). */
	/* clang-format on */
	const char *signature;
} blkc_kernel;

typedef struct blkc_result {
	int status; /* 0 success, 1 diagnosed errors, 2 wrong request (unknown target, kernel..), 3 out of memory, 4
		       internal */
	const char *diagnostics; /* text or JSON; "" when there are none */
	unsigned errors, warnings;
	const char *log; /* --print-after, --time-passes, ptxas notes */
	blkc_kernel *kernels;
	size_t nkernels;
	blkc_artifact *artifacts;
	size_t nartifacts;
	/* Paths, as opened, of the files that imports read; the built-in library's are not among them.  Cached results
	 * hold as long as these files' bytes do. */
	const char *const *dependencies;
	size_t ndependencies;
	void *internal;
} blkc_result;

/* Never returns NULL unless not even the result could be allocated. */
BLKC_API blkc_result *blkc_compile(const blkc_request *);
BLKC_API void blkc_result_free(blkc_result *);
BLKC_API const char *blkc_version(void);                             /* "blk 0.1.0, LLVM 22.1.8": part of cache keys */
BLKC_API const char *blkc_pass_name(size_t i, const char **meaning); /* in order, NULL past the end */
BLKC_API const char *blkc_target_name(size_t i, const char **note);  /* NULL past the end */

#ifdef __cplusplus
}
#endif
#endif
