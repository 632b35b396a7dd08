/* What blkc makes out of whole compiles beside the compiler's own artifacts: packages, C headers and
 * functions for TVM's FFI.
 *
 * In: a checked source.  Out: bytes for one file, malloc'ed.  Messages go to standard error, as all of blkc's do. */
#ifndef BLK_TOOL_H
#define BLK_TOOL_H

#include "../blkc.h"

#include <stdbool.h>

enum { TOOL_MAX_VARIANTS = 20000, TOOL_MAX_TARGETS = 32 };

typedef struct tool_package_request {
	const blkc_request *base;   /* name, defines, promises (one more specialisation), flags; its emit is not used */
	const blkc_result *checked; /* of the same source and defines: the kernels that are wanted */
	const char *const *targets;
	size_t ntargets;
	const blkc_define *values; /* of what launches compute, a name as often as it has values; else the usual ones */
	size_t nvalues;
	unsigned threads; /* 0: one for each processor */
} tool_package_request;

/* The targets of a package; `list` as --target gave it, null for the usual ones.  False after a message. */
bool tool_targets(const char *list, const char **targets, size_t *count);

/* Null after a message; *status is then 1 or 2, as of an exit. */
void *tool_package(const tool_package_request *, size_t *bytes, int *status);

/* Says on standard error for which values of what launches compute this code is. */
void tool_note_values(const blkc_result *);

/* `input` is the source's path, for the guard's name and the opening comment.  Null: out of memory. */
char *tool_header(const char *input, const blkc_result *checked, size_t *bytes);

/* A C file that exports the kernels for TVM's FFI; `text` is the source, which becomes a string in it.  Null: out of
 * memory. */
char *tool_tvm_ffi(
	const char *input, const blkc_request *, const blkc_result *checked, const char *text, size_t n, size_t *bytes);

#endif
