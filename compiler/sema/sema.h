/* From the syntax tree to tile IR: declarations, then one kernel for one set of const bindings and promises.
 *
 * In: the main file (imports are followed).  Out: sema_load() gives the program's declarations; sema_specialise() gives
 * the tile IR of one kernel and the text of its launch signature (blkc.h says its lines).
 * The one idea: checking, compile-time evaluation, inlining and emission are one walk.  Checking an expression yields
 * an `sval` (values.h); what is only known at run time in it is an ir_value made on the way.  No generic function,
 * const parameter or import is left in what comes out.
 *
 * Every function is safe on any tree, also on what is left of a file with syntax errors. */
#ifndef BLK_SEMA_H
#define BLK_SEMA_H

#include "../blkc.h"
#include "../ir/ir.h"
#include "../syntax/ast.h"

typedef struct sema_program sema_program;

/* Parses the main file and what it imports, collects declarations and checks what needs no bindings.  Errors go to the
 * diags; a program always comes back. */
sema_program *sema_load(arena *, diags *, names *, source_set *, source_file *main_file);

/* Kernels of the main file and its imports, in the order of their declaration. */
size_t sema_kernel_count(const sema_program *);
const char *sema_kernel_name(const sema_program *, size_t i);

/* What a name of a kernel or of a fn that it calls was bound to.  A fn's names have a note for each of their types. */
typedef struct sema_note {
	const char *type;  /* "f32[1024]", "(i32, f32[64])", "i32" */
	const char *value; /* "128" where it is known at compile time; else null */
	struct sema_note *next;
} sema_note;
typedef struct sema_notes sema_notes;
sema_notes *sema_notes_new(arena *);
const sema_note *sema_notes_find(const sema_notes *, span name); /* null: nothing is known */

typedef struct sema_request {
	const char *kernel;
	const blkc_define *defines; /* const parameters and options; each must name one */
	size_t ndefines;
	const blkc_define *values; /* of const parameters that are computed at a launch, which no define gives */
	size_t nvalues;
	const blkc_promise *promises; /* about run-time parameters */
	size_t npromises;
	/* With several kernels in one request, a define or promise that this kernel lacks may belong to another one:
	 * then it is no error when any kernel of the program knows the name. */
	bool shared_defines;
	/* With several kernels, a requires clause that the defines break is checked at the kernel's launch: they may be
	 * meant for another one. */
	bool requires_later;
	sema_notes *notes; /* null, or where bindings are noted */
} sema_request;

/* Null after diagnostics.  Fills the function's options and parameters (promises are in ir_param; a parameter that is
 * promised to be 1 stays a parameter while the body uses the constant).  `signature` receives the lines kernel, symbol,
 * param, const, grid, cost, the options and autotune; the driver adds target, threads, shared and written. */
ir_func *sema_specialise(sema_program *, const sema_request *, text *signature);

#endif
