/* How much code a kernel becomes for a GPU: an estimate, and the limit that it is held against.  See code_size.c. */
#ifndef BLK_CODE_SIZE_H
#define BLK_CODE_SIZE_H

#include "passes/passes.h"

enum { CODE_SIZE_WORST = 3 };

typedef struct code_size_part {
	const ir_op *op; /* null: no more */
	uint64_t instructions;
} code_size_part;

typedef struct code_size {
	uint64_t all;                          /* LLVM instructions of a thread, before LLVM's passes */
	code_size_part worst[CODE_SIZE_WORST]; /* largest first */
} code_size;

/* Of a scheduled function; takes time in proportion to its operations, however long their tiles are. */
code_size code_size_estimate(const pass_context *, const ir_func *);
/* False after error E0723, where it is more than `most` (0: no limit); warning W0723 from a fifth of that on. */
bool code_size_check(pass_context *, const ir_func *, const code_size *, uint64_t most);

#endif
