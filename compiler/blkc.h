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
	BLKC_EMIT_OBJECT = 1 << 7,     /* target cpu: relocatable ELF object for blk's own loader */
	BLKC_EMIT_ASM = 1 << 8,        /* target cpu: assembly text */
	BLKC_EMIT_EXPLAIN = 1 << 9,    /* what became of each line, as text */
	BLKC_EMIT_JSON = 1 << 10,      /* the same record, one JSON object */
	BLKC_EMIT_SASS = 1 << 11,      /* the cubin disassembled: needs ptxas and nvdisasm or cuobjdump */
	BLKC_EMIT_FORMATTED = 1 << 12, /* the source in one style, stands alone; nothing where it does not parse */
	BLKC_EMIT_HTML = 1 << 13,      /* the record as a page, with the code beside the source */
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
	/* Of const parameters that the signature calls computed: what their expressions are for the arguments of a
	 * launch.  A define comes before it.  Without one, what they are for 1024 in every argument and 128 SMs. */
	const blkc_define *values;
	size_t nvalues;
} blkc_request;

#define BLKC_NO_LIMIT UINT32_MAX

typedef struct blkc_artifact {
	const char
		*kernel; /* name; "" for what is one for the whole file: tokens, ast, joined ptx, explain, json, html */
	unsigned kind;   /* one blkc_emit bit */
	const void *bytes;
	size_t nbytes; /* text is NUL-terminated beyond nbytes */
} blkc_artifact;

typedef struct blkc_kernel {
	const char *name;
	/* The launch signature as text, one fact a line; also stored beside compiled code, and all that libblk needs.
	 * Lines that a reader does not know are skipped.
	 *
	 *   kernel NAME                          begins one kernel's facts
	 *   symbol NAME                          its entry in the PTX or object; absent: the kernel's name
	 *   target NAME                          "sm_90a", "cpu"
	 *   param NAME TYPE [align N|div N|one]  a run-time parameter, in order; TYPE is "*f32", "*const f16", "i32"
	 *                                        ..; behind it what was promised of it
	 *   const NAME TYPE VALUE                a bound const parameter
	 *   computed NAME TYPE LOW HIGH POSTFIX ; NAMES ; SOURCE
	 *                                        a const parameter whose value the host computes at each launch, which
	 *                                        code for that value is then made for; LOW and HIGH, inclusive: its
	 *                                        bounds, or - and -; NAMES and SOURCE as of requires.  Code for one
	 *                                        value has a requires line as well, which holds where it is the
	 *                                        launch's: so a reader who does not know of this line launches it for
	 *                                        no other
	 *   written I                            the kernel may write the buffer of run-time parameter I
	 *   writes_addresses I                   it may write through addresses that run-time parameter I is, or that
	 *                                        it loads by it
	 *   writes_addresses                     .. through others
	 *   uses_addresses                       it may read or write through addresses that it loads, or gets as
	 *                                        integers
	 *   grid I POSTFIX                       I = 0..2; absent: the host must pass a grid
	 *   cost bytes POSTFIX                   what a launch moves
	 *   cost flops POSTFIX                   what a launch computes
	 *   requires POSTFIX ; NAMES ; SOURCE ; TEXT
	 *                                        one for each clause: POSTFIX must not be 0 at a launch; NAMES says
	 *                                        what it names, "n=p0 BLOCK=1024"; SOURCE is the clause as written;
	 *                                        TEXT may be empty.  In the last two ; \ and what is no printable ASCII
	 *                                        are \xNN
	 *   num_warps N                          options of the kernel
	 *   num_stages N
	 *   num_ctas N
	 *   maxnreg N                            absent: none was given
	 *   max_registers N                      budgets; absent: none
	 *   max_spills N
	 *   max_shared N
	 *   strict 1                             no liberties with floats; absent: the language's
	 *   launch_pdl 0                         it must not start while the kernel before it ends; absent: it may
	 *   gdc_wait 1                           it waits for the kernel before it, and may be launched as a dependent;
	 *                                        absent: only behind the end of that kernel
	 *   threads N                            of a program; GPUs only
	 *   shared N                             bytes of dynamic shared memory of a program; GPUs only
	 *   scratch N                            bytes of scratch memory of a thread; cpu only
	 *   cluster N                            programs along x that are to be one, where N divides the grid; absent:
	 *                                        none
	 *   map ELEMENT SWIZZLE BOX .. ; ADDRESS ; EXTENT ; .. ; STRIDE ; ..
	 *                                        a tensor map, passed as 128 bytes behind the parameters.  ELEMENT is a
	 *                                        type, or tf32 for f32 rounded on the way; SWIZZLE 0, 32, 64 or 128; a
	 *                                        BOX and an EXTENT for each dimension, from the last one on; a STRIDE
	 *                                        in bytes for each from the last but one on.  ADDRESS, EXTENT and
	 *                                        STRIDE are POSTFIX.  docs/products.md
	 *   autotune ...                         the clause in words, kept for tools (sema/autotune.c)
	 *   key POSTFIX ; SOURCE                 a part of its key, for each where some are more than names
	 *   try N                                how many of its configurations are tried
	 *   where POSTFIX                        what it asks of the arguments, for the constants at hand
	 *   order POSTFIX                        the predicted time for them
	 *   source HEX                           with an autotune clause: a digest of what its results depend on of the
	 *                                        source and its imports
	 *   configuration NAME=VALUE,NAME=VALUE  one that the autotune clause allows, in its order
	 *   fits POSTFIX                         of the configuration above, one for each requires clause, then one for
	 *                                        each where
	 *   time POSTFIX                         its predicted time
	 *
	 * key, try, where, order, source, configuration, fits and time are not repeated in the head of a PTX file.
	 *
	 *   POSTFIX  := WORD { WORD }            computed in i64, in f64 for cost, order and time; / and % are C's
	 *   WORD     := integer | float | "true" | "false"
	 *             | "p"I                     run-time parameter I, a number; in ADDRESS a pointer too
	 *             | "num_sms"                of the device
	 *             | "="N                     takes one value and keeps it under the number N < 128
	 *             | "@"N                     is that value
	 *             | "neg" | "~" | "!" | "next_pow2"                               takes one value
	 *             | "+" | "-" | "*" | "/" | "%" | "<<" | ">>" | "&" | "|" | "^"   take two
	 *             | "<" | "<=" | ">" | ">=" | "==" | "!=" | "&&" | "||"           take two
	 *             | "cdiv" | "min" | "max"                                        take two
	 *             | "?:"                                                          takes condition, then, else */
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
