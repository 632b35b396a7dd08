/* Built-in functions that are rows of ops.def: an elementwise operation with the flag BUILTIN is a function of its
 * name.
 *
 * In: a call, its arguments numbers or tiles.  Out: one operation on values of one type and shape, as the arithmetic
 * operators bring them to; what the row's rule of types refuses is an error with that rule's words. */
#include "builtins_util.h"

#include <string.h>

#include "../ir/verify.h"

enum { MOST_ARGUMENTS = 3 };

static sval builtin_elementwise(sema *s, const builtin_call *c)
{
	ir_kind kind = (ir_kind)c->builtin->which;
	unsigned n = ir_ops[kind].args;
	ir_value *v[MOST_ARGUMENTS];
	if (!sema_unify(s, c->args, n, c->at, v)) return sval_poison(c->at);
	ir_value *made = ir_build1(&s->b, kind, v[0]->type, n, v);
	text why = {.arena = s->arena};
	if (ir_verify_op(made->def, &why)) return sval_value(made, c->at);
	ir_erase(made->def);
	return sema_error(s, 501, c->at, "'%s' refuses this: %s", c->builtin->name, why.at);
}

/* A row for each operation; those without the flag are never found. */
#define PARAMETERS(n) ((n) == 1 ? "a" : (n) == 2 ? "a b" : "a b c")
static const builtin rows[IR_KIND_COUNT] = {
#define OP(e, name, args, ...) {name, PARAMETERS(args), 0, builtin_elementwise, IR_##e},
#define ANY IR_ANY
#include "../ir/ops.def"
#undef ANY
#undef OP
};

const builtin *sema_row_builtin(const char *name)
{
	for (unsigned k = 0; k < IR_KIND_COUNT; k++)
		if ((ir_ops[k].flags & IR_BUILTIN) && strcmp(rows[k].name, name) == 0) return &rows[k];
	return NULL;
}
