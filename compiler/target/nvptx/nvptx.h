/* Code for NVIDIA GPUs: scheduled tile IR in, LLVM IR, PTX text and cubin out.
 *
 * The one idea: a tile is spread over the threads of one CTA by its layout, so the code of *one* thread is the tile's
 * registers as so many LLVM values; LLVM does the scalar work, PTX is its output, ptxas (when wanted) assembles it.
 * Thread-safe: an LLVM context a call. */
#ifndef BLK_NVPTX_H
#define BLK_NVPTX_H

#include "passes/passes.h"
#include "tool.h"

typedef struct nvptx_options {
	bool line_info;     /* .loc lines and source lines as comments */
	bool checks;        /* lines for the simulator: which quotients and gathered elements are undefined */
	bool check_budgets; /* max_registers, max_spills: needs ptxas; a note where there is none */
	bool want_report;   /* sizes, registers and spills, where there is a ptxas */
	bool want_llvm, want_ptx, want_cubin;
	bool want_sass;        /* the cubin disassembled; needs want_cubin */
	bool want_page;        /* the same where it can be, and how many registers are live at each instruction */
	const char *ptxas;     /* path; null: looked for on PATH, then in /usr/local/cuda/bin */
	tool_limits limits;    /* of ptxas and of disassemblers */
	const char *signature; /* null, or the launch signature: printed into the PTX as comments */
} nvptx_options;

typedef struct nvptx_output { /* everything lives in the pass context's arena; texts are NUL-terminated beyond _bytes */
	uint64_t instructions; /* of LLVM's, as lowered */
	const char *llvm, *ptx;
	size_t llvm_bytes, ptx_bytes;
	const void *cubin;
	size_t cubin_bytes;
	line_marks ptx_marks;
	const char *sass;
	size_t sass_bytes;
	line_marks sass_marks;
	const char *no_sass; /* of a page without: why */
	VEC(uint32_t) live;  /* registers at each instruction of the SASS, in its order; none: unknown */
	bool assembled;      /* ptxas ran: the next three are known */
	const char *
		not_assembled; /* else, where a report alone wanted it and it did not end well: "ptxas was killed .." */
	uint32_t registers, spill_bytes, static_shared;
	uint32_t consumer_registers, producer_registers; /* of a thread, behind setmaxnreg; 0: there is none */
	const char *ptxas_log;                           /* its warnings; or null */
} nvptx_output;

/* `f` must be at IR_LEVEL_SCHEDULED.  False after a diagnostic (8xx). */
bool nvptx_emit(pass_context *, ir_func *, const nvptx_options *, nvptx_output *);

/* One cubin of PTX that holds several kernels, `f` among them.  False after a diagnostic at `f`. */
bool nvptx_assemble(pass_context *, const ir_func *f, const char *ptx, size_t n, const nvptx_options *, nvptx_output *);

/* LLVM's name of the instruction that combines one operand of a reduction over all lanes at once, "llvm.nvvm.redux..":
 * 32-bit integers and bool; or null. */
const char *nvptx_warp_reduction(const ir_op *reduce);

#endif
