/* The list of groups of built-in functions, and the search in it.  See builtins.h. */
#include "builtins.h"

#include <string.h>

static const builtin *const groups[] = {
	sema_core_builtins,
	sema_create_builtins,
	sema_memory_builtins,
	sema_tensor_builtins,
	sema_reduce_builtins,
	sema_math_builtins,
	sema_special_builtins,
	sema_misc_builtins,
};

const builtin *sema_builtin_find(const char *name)
{
	for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
		for (const builtin *b = groups[g]; b->name; b++)
			if (strcmp(b->name, name) == 0) return b;
	return sema_row_builtin(name);
}

const char *const *sema_builtin_names(arena *a, size_t *n)
{
	VEC(const char *) v = {0};
	for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
		for (const builtin *b = groups[g]; b->name; b++)
			if (!strchr(b->name, '.')) vec_push(a, &v, b->name);
	for (unsigned k = 0; k < IR_KIND_COUNT; k++)
		if (ir_ops[k].flags & IR_BUILTIN) vec_push(a, &v, ir_ops[k].name);
	*n = v.n;
	vec_push(a, &v, NULL);
	return v.at;
}
