/* Built-ins that belong to the language itself rather than to a library: casts, asserts, prints. */
#include "internal.h"

#include <string.h>

static sval builtin_to(sema *s, const builtin_call *c)
{
	bool bitcast = false;
	if (!sval_is_none(c->args[2]) && !sema_as_const_bool(s, c->args[2], &bitcast, "bitcast"))
		return sval_poison(c->at);
	return sema_cast(s, c->args[0], c->args[1], bitcast, c->at);
}

/* A message without quotes; NULs and what follows them are not shown. */
static const char *message(sema *s, sval v)
{
	const char *t = "";
	uint32_t n;
	if (!sval_is_none(v)) sema_as_string(s, v, &t, &n, "the message");
	return t;
}

/* An assert of the built-in library speaks of the arguments of the call that the program made: "'rand' needs ..", and
 * behind a newline the hint. */
static bool refused_by_library(sema *s, const char *why)
{
	const char *end = strchrnul(why, '\n');
	diag *d = sema_library_diag(s, 501, "%.*s", (int)(end - why), why);
	if (d && *end) diag_set_hint(s->diags, d, "%s", end + 1);
	return d != NULL;
}

static sval static_assert_(sema *s, const builtin_call *c)
{
	bool holds;
	ir_type t = {0};
	sval_type_of(c->args[0], &t);
	if (c->args[0].kind == SVAL_VALUE && !t.pointer && t.elem == SCALAR_BOOL) {
		diag *d = sema_diag(s, 301, c->arg_at[0],
			"the condition of static_assert must be known at compile time, found a run-time %s",
			sema_type_text(s, c->args[0]));
		const char *what = sema_source_text(s, c->arg_at[0]);
		diag_set_hint(s->diags, d, "device_assert(%s) checks it where the kernel runs%s", what,
			t.rank ? ""
			       : arena_printf(s->arena, ", a clause 'requires %s' of the kernel at its launch", what));
		return sval_poison(c->at);
	}
	if (!sema_as_const_bool(s, c->args[0], &holds, "the condition of static_assert")) return sval_poison(c->at);
	const char *m = message(s, c->args[1]);
	if (!holds && refused_by_library(s, m)) return sval_poison(c->at);
	if (!holds) return sema_error(s, 312, c->at, "static_assert failed%s%s", *m ? ": " : "", m);
	return sval_void(c->at);
}

static sval device_assert(sema *s, const builtin_call *c)
{
	ir_value *v = sema_value(s, c->args[0], "the condition of device_assert");
	if (!v) return sval_poison(c->at);
	if (v->type.pointer || v->type.elem != SCALAR_BOOL) {
		diag *d = sema_diag(s, 211, c->arg_at[0], "the condition of device_assert must be a bool, found %s",
			sema_type_text(s, c->args[0]));
		diag_set_hint(s->diags, d, "compare: %s != 0", sema_source_text(s, c->arg_at[0]));
		return sval_poison(c->at);
	}
	ir_op *op = ir_build(&s->b, IR_ASSERT, 1, &v, 0, NULL, 0);
	op->text = message(s, c->args[1]);
	return sval_void(c->at);
}

static const char *shown(sema *s, sval v)
{
	switch (v.kind) {
	case SVAL_STRING: return v.string.text;
	case SVAL_NUMBER: return number_text(s, v.number);
	case SVAL_TYPE: return sema_stype_text(s, v.type);
	case SVAL_TUPLE: {
		text out = {.arena = s->arena};
		text_puts(&out, "(");
		for (uint32_t i = 0; i < v.tuple.n; i++)
			text_printf(&out, "%s%s", i ? ", " : "", shown(s, v.tuple.items[i]));
		text_puts(&out, v.tuple.n == 1 ? ",)" : ")");
		return out.at;
	}
	default: return sema_type_text(s, v);
	}
}

static sval static_print(sema *s, const builtin_call *c)
{
	text out = {.arena = s->arena};
	for (uint32_t i = 0; i < c->nrest; i++) text_printf(&out, "%s%s", i ? " " : "", shown(s, c->rest[i]));
	diag_add(s->diags, DIAG_NOTE, 0, c->at, "%s", out.at ? out.at : "");
	return sval_void(c->at);
}

/* One line an element: all tiles stretch to one shape; scalars stay what they are. */
static bool one_shape(sema *s, const builtin_call *c, ir_value **v, uint32_t n)
{
	uint32_t first = 0;
	while (first < n && !v[first]->type.rank) first++;
	for (uint32_t i = first + 1; i < n; i++)
		if (v[i]->type.rank && !sema_broadcast_pair(s, sval_value(v[first], c->rest[first].at),
					       sval_value(v[i], c->rest[i].at), c->rest[i].at, &v[first], &v[i]))
			return false;
	for (uint32_t i = first + 1; i < n; i++)
		if (v[i]->type.rank) v[i] = sema_broadcast_to(s, v[i], v[first]->type, c->rest[i].at);
	return true;
}

static sval device_print(sema *s, const builtin_call *c)
{
	const char *t;
	uint32_t n;
	VEC(ir_value *) values = {0};
	if (!sema_as_string(s, c->args[0], &t, &n, "the first argument of device_print")) return sval_poison(c->at);
	if (c->nrest > 16) return sema_error(s, 304, c->rest[16].at, "device_print takes at most 16 values");
	for (uint32_t i = 0; i < c->nrest; i++) {
		ir_value *v = sema_value(s, c->rest[i], "a printed value");
		if (!v) return sval_poison(c->at);
		vec_push(s->arena, &values, v);
	}
	if (!one_shape(s, c, values.at, values.n)) return sval_poison(c->at);
	ir_op *op = ir_build(&s->b, IR_PRINT, values.n, values.at, 0, NULL, 0);
	op->text = t;
	return sval_void(c->at);
}

const builtin sema_core_builtins[] = {
	{"to", "x T bitcast?", 0, builtin_to, 0},
	{"static_assert", "condition message?", 0, static_assert_, 0},
	{"static_print", "values...", 0, static_print, 0},
	{"device_assert", "condition message?", 0, device_assert, 0},
	{"device_print", "text values...", 0, device_print, 0},
	{0},
};
