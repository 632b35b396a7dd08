/* The table interface of the built-in functions.
 *
 * A built-in is one row: its name, its parameters, a function.  Arguments are bound before the function runs:
 * positional ones in order, then named ones; what was not given is SVAL_NONE (as is an explicit None).  Too many, too
 * few, unknown and repeated arguments have been reported by then, and no argument is poison: a call with a poisoned
 * argument is poison without asking the row, unless the row has BUILTIN_TAKES_POISON.
 *
 *     {"expand_dims", "x axis", 0, builtin_expand_dims, 0},
 *     {"load", "p mask? other? cache? evict? volatile?", 0, builtin_load, 0},
 *     {"exp", "x", 0, builtin_math, IR_EXP},
 *     {"device_print", "text values...", 0, builtin_print, 0},
 *
 * Parameters: names separated by one space; `?` marks an optional one, `...` (last only) takes all further positional
 * arguments, which are in rest[].
 *
 * A method call x.f(a) is f(x, a).  When the first argument is a tensor, the row "tensor.f" is taken before "f":
 * A.load([i, j], [BM, BK]) goes to {"tensor.load", "A index shape", ...}. */
#ifndef BLK_SEMA_BUILTINS_H
#define BLK_SEMA_BUILTINS_H

#include "values.h"

typedef struct builtin_call {
	const builtin *builtin;
	span at;            /* the whole call; also s->b.at */
	span name;          /* the callee's name */
	const sval *args;   /* one for each parameter of the row (without the `...` one) */
	const span *arg_at; /* where each was written; the call's span when it was not given */
	const sval *rest;   /* what `...` took */
	uint32_t nrest;
} builtin_call;

typedef sval (*builtin_function)(sema *, const builtin_call *);

enum { /* builtin.flags */
	BUILTIN_TAKES_POISON = 1,
};

struct builtin {
	const char *name;
	const char *parameters;
	unsigned flags;
	builtin_function function;
	int which; /* for rows that share a function: an ir_kind, an ir_combine... */
};

/* Each group ends with a row whose name is null.  builtins.c holds the list of groups: a new group is one line
 * there. */
extern const builtin sema_core_builtins[]; /* core.c: to, asserts, prints */
extern const builtin sema_create_builtins[];
extern const builtin sema_memory_builtins[];
extern const builtin sema_tensor_builtins[];
extern const builtin sema_reduce_builtins[];
extern const builtin sema_math_builtins[];
extern const builtin sema_special_builtins[];
extern const builtin sema_misc_builtins[];
/* The function of an operation with the flag IR_BUILTIN, or null: builtins_rows.c. */
const builtin *sema_row_builtin(const char *name);

const builtin *sema_builtin_find(const char *name);
/* All names, for "did you mean"; ends with null. */
const char *const *sema_builtin_names(arena *, size_t *n);

#endif
