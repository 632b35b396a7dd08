/* What became of a kernel: the record behind --emit=explain, --emit=json, --emit=html and --explain.
 *
 * In: a scheduled kernel and the code made of it.  Out: one row for each operation that touches memory or moves data
 * between threads, by source line, and the kernel's sums.
 * The one idea: a record first, text later: the emitters print the same facts, and each fact is asked from whoever
 * decided it (access_plan, layout_plan, reduce_plan, the assembler), never worked out a second time.
 *
 * record.c: the facts.  blame.c: why an access is not wider, in the program's own names.  text.c, json.c, html.c:
 * emitters; page.html, page.css and page.js are the page around the facts. */
#ifndef BLK_EXPLAIN_H
#define BLK_EXPLAIN_H

#include "target/nvptx/nvptx.h"
#include "analysis/pressure.h"
#include "layout/layout.h"

typedef enum explain_kind {
	EXPLAIN_LOAD,
	EXPLAIN_STORE,
	EXPLAIN_ATOMIC,
	EXPLAIN_CONVERSION,
	EXPLAIN_REDUCTION,
	EXPLAIN_BARRIER,
	EXPLAIN_COPY,     /* a loop's load that runs ahead, through a multibuffer */
	EXPLAIN_BULK,     /* a block by a tensor map */
	EXPLAIN_PRODUCT,  /* a dot */
	EXPLAIN_EXCHANGE, /* any other operation that needs shared memory */
	EXPLAIN_LIBERTY,  /* with floats; how: which */
	EXPLAIN_MASK,     /* under a branch; how: which */
	EXPLAIN_MAXIMUM,  /* exchanged between lanes under a branch; how: which */
	EXPLAIN_ORDER,    /* begun, or read, elsewhere in the loop than it is written; how: where */
	EXPLAIN_KINDS
} explain_kind;
extern const char *const explain_kind_names[]; /* ORDER explain_kind */

/* Shared-memory cycles of one access of a warp, and how few they could be. */
typedef struct explain_bank {
	unsigned wavefronts, least;
} explain_bank;

typedef struct explain_row {
	explain_kind kind;
	span at;
	uint32_t line, column;
	uint32_t loops;        /* that stand around it */
	const char *name;      /* the pointer parameter, the value, or the operation; may be null */
	const char *type;      /* "f32[1024]": what is moved */
	uint32_t shared_bytes; /* scratch */
	uint32_t barriers;     /* of the CTA, inside the operation; for EXPLAIN_BARRIER 1 */
	uint32_t shuffles;     /* a thread executes */

	/* loads, stores, atomics */
	uint32_t access_bytes, accesses; /* of one instruction; instructions of a thread */
	uint32_t warp_bytes;             /* contiguous bytes that one instruction of a warp covers; 0: a scalar */
	bool masked;                     /* under the program's mask */
	bool once;                       /* by one thread, for all */
	bool sent;                       /* the producer's, which sends what it returns */
	bool owners;                     /* only threads that own their elements: others hold copies */
	const char *why;                 /* not wider; null where it is 16 bytes */
	const char *promise;             /* what --specialize could say about it: "x%16,n%16"; or null */
	const char *caching;             /* "cg, evict first", "read-only"; null: nothing special */

	/* conversions: "registers", "shuffles", "shared memory of warps", "shared memory"; reductions: "sum", "custom"
	 */
	const char *how;
	uint32_t moved_bytes; /* through shared memory, each way */
	uint32_t passes;      /* halves of the tile, one after another, where its scratch would be too large */
	explain_bank store, load;

	uint32_t swizzle; /* of a block: bytes; its copies are the accesses above; how: "load", "load ahead", "store" */
	uint32_t blocks;  /* of a stage: one for each group of rows, or one */
	uint32_t lowered; /* of a multibuffer: stages that were asked for and that shared memory does not hold, or 0 */
	bool kept;        /* of a multibuffer: filled once, for a loop that has no registers for what it reads there */
	uint32_t stages;  /* of a multibuffer; its accesses are above; how: "matrix loads", "wgmma" or null */

	/* products: how is the instruction's name and shape */
	uint32_t instructions; /* that a warp, or a warpgroup, executes */
	const char *first,
		*second; /* where the operands come from: "registers", "shared memory", "multibuffer"; null: mma.sync */
	bool alternates; /* its scratch is two buffers, which iterations take in turns */
	bool joined;     /* the instructions of the product in front make it too */
	bool swapped;    /* the transposed product, a and b in the other order, */
	const char *not_swapped; /* or why it is not where it might be; or null */
	bool flies;              /* nobody waits for it in its block, */
	bool round;              /* a loop's body: it runs on while the next iteration begins */
	bool apart;              /* vector work stands in front of the wait for it, */
	uint32_t begun, pending; /* and so many products begun since, of which so many may run on behind the wait */
	bool producer;           /* of a multibuffer: a warp of its own fills it, */
	uint32_t loop_line;      /* in the loop that stands there; 0: none */
	bool by_warps;           /* of a tensor copy: each warp makes those of its part */
	bool by_rows;            /* of a store: lanes make it, row by row; `accesses` rows a warp, of `access_bytes` */
	bool shared; /* of a multibuffer: a cluster's programs fill it together where their blocks are the same; */
	const char *unshared; /* or why not; or null */
	const char
		*why_not; /* wgmma; or, of a load in a loop: copied ahead; of a multibuffer: by a producer; or null */
	const char *no_tensor_copy; /* of a load: no tensor copy; or null */

	/* reductions: bits of the axis combined inside threads, between lanes and between warps */
	uint32_t in_registers, between_lanes, between_warps;
	const char *instruction; /* that combines all lanes at once, or null */

	/* Who holds what: of the addresses, of what is reduced, multiplied, converted; null: nobody, or a scalar. */
	ir_type tile;
	const layout *layout, *from; /* from: before a conversion */
	uint32_t along, contiguous;  /* of an access: the dimension in which it is wide; neighbours there in memory */
} explain_row;

/* The kernel in one of its forms, beside the source. */
typedef enum explain_form { EXPLAIN_TILE, EXPLAIN_SCHEDULED, EXPLAIN_PTX, EXPLAIN_SASS, EXPLAIN_FORMS } explain_form;
typedef struct explain_code {
	const char *text;
	size_t n;
	line_marks marks;
} explain_code;

typedef struct explain_kernel {
	const char *name;
	span at;
	uint32_t line;
	const blk_target *target;
	uint32_t num_warps, producer_warps, row_groups, maxnreg;
	const char *rows_together;  /* see pass_context */
	uint32_t num_ctas, cluster; /* as asked for, and as the code wants it: 0: none */
	VEC(explain_row) rows;      /* in the order of the text, then of the program */
	uint32_t shared_bytes, barriers;
	uint32_t live_registers; /* the estimate's largest */
	pressure pressure;
	size_t ptx_bytes, cubin_bytes;
	const char *not_assembled; /* how ptxas ended, where not well; null: it was not there, or all is known */
	bool assembled;            /* ptxas ran: these are known */
	uint32_t registers, spill_bytes, all_shared;     /* all_shared: with what ptxas knows of */
	uint32_t consumer_registers, producer_registers; /* behind setmaxnreg; 0: there is none */
	target_occupancy occupancy;
	explain_code code[EXPLAIN_FORMS]; /* what the page shows; texts may be null */
	const char *no_sass;
	const uint32_t *live; /* registers at each instruction of the SASS */
	uint32_t nlive;
} explain_kernel;

/* `f` is scheduled and `code` what nvptx_emit() made of it. */
explain_kernel *explain_make(pass_context *, ir_func *, const nvptx_output *code);

/* blame.c: says why this access is as narrow as it is; and what promise of the host would make it wider, or null. */
const char *explain_blame(const pass_context *, const ir_func *, const ir_op *, const char **promise);
/* The parameter from which a pointer is made, or null. */
const char *explain_base(const ir_func *, const ir_value *pointer);

void explain_text(text *out, arena *, const explain_kernel *);
void explain_text_row(text *out, arena *, const explain_kernel *, const explain_row *);
void explain_json(text *out, arena *, const char *file, const explain_kernel *const *, uint32_t n);
/* `main`: the file that was compiled; it is shown whole, of others the lines that became code. */
void explain_html(text *out, arena *, const source_file *main, const explain_kernel *const *, uint32_t n);

#endif
