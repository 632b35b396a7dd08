/* What blkc makes out of whole compiles beside the compiler's own artifacts: packages and C headers.
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
	unsigned threads; /* 0: one for each processor */
} tool_package_request;

/* The targets of a package; `list` as --target gave it, null for the usual ones.  False after a message. */
bool tool_targets(const char *list, const char **targets, size_t *count);

/* Null after a message; *status is then 1 or 2, as of an exit. */
void *tool_package(const tool_package_request *, size_t *bytes, int *status);

/* `input` is the source's path, for the guard's name and the opening comment.  Null: out of memory. */
char *tool_header(const char *input, const blkc_result *checked, size_t *bytes);

#endif
