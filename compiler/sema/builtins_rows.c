/* Built-in functions that are rows of ops.def: an elementwise operation with the flag BUILTIN is a function of its
 * name.
 *
 * In: a call, its arguments numbers or tiles.  Out: one operation on values of one type and shape, as the arithmetic
 * operators bring them to, or the number that it gives for numbers; what the row's rule of types refuses is an error
 * with that rule's words. */
#include "builtins_util.h"

#include "../ir/fold.h"

#include <string.h>

#include "../ir/verify.h"

enum { MOST_ARGUMENTS = 3 };

static sval folded_number(const builtin_call *c, ir_kind kind, const ir_value *like)
{
	unsigned n = ir_ops[kind].args;
	scalar t = (scalar)like->type.elem;
	uint64_t bits[MOST_ARGUMENTS], out;
	bool untyped = true;
	for (unsigned i = 0; i < n; i++) {
		if (c->args[i].kind != SVAL_NUMBER) return sval_none(c->at);
		bits[i] = sema_number_bits(c->args[i].number, t);
		untyped = untyped && c->args[i].number.untyped;
	}
	if (!fold_scalar(kind, t, t, bits, &out)) return sval_none(c->at); /* not reached: of integers all folds */
	sval v = sval_number_bits(t, out, c->at);
	return untyped ? sval_int(v.number.i, c->at) : v;
}

static sval builtin_elementwise(sema *s, const builtin_call *c)
{
	ir_kind kind = (ir_kind)c->builtin->which;
	unsigned n = ir_ops[kind].args;
	ir_value *v[MOST_ARGUMENTS];
	if (!sema_unify(s, c->args, n, c->at, v)) return sval_poison(c->at);
	ir_value *made = ir_build1(&s->b, kind, v[0]->type, n, v);
	text why = {.arena = s->arena};
	bool good = ir_verify_op(made->def, &why);
	sval folded = good ? folded_number(c, kind, made) : sval_none(c->at);
	if (good && sval_is_none(folded)) return sval_value(made, c->at);
	ir_erase(made->def);
	if (good) return folded;
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
