/* Calls: binding of arguments, built-ins by their table, user functions by inlining.
 *
 * A function is checked anew for every call, with what is known about the arguments of that call; that is what makes
 * untyped parameters generic and const parameters free.  Parameters are bound in two rounds: const ones first, because
 * the types of the others may name them, wherever they stand in the list. */
#include "internal.h"

#include <assert.h>
#include <string.h>

typedef struct argument {
	const char *name; /* null: positional */
	span name_at;
	sval value;
} argument;

typedef struct arguments {
	argument *at;
	uint32_t n;
	bool poison;
} arguments;

static arguments evaluate(sema *s, const ast *call, const sval *object)
{
	assert(call->kind == AST_CALL);
	arguments a = {.at = ARENA_ARRAY(s->arena, argument, call->nkids + 1)};
	if (object) {
		a.at[a.n++] = (argument){.value = *object};
		a.poison = sval_is_poison(*object);
	}
	for (uint32_t i = 1; i < call->nkids; i++) {
		const ast *k = call->kids[i];
		if (!k || (k->kind == AST_ARGUMENT && (k->nkids == 0 || !k->kids[0]))) {
			a.poison = true;
			continue;
		}
		bool wrapped = k->kind == AST_ARGUMENT;
		sval v = sema_expression(s, wrapped ? k->kids[0] : k);
		if (v.kind == SVAL_VOID) {
			sema_error(s, 407, v.at, "this call returns no value");
			v = sval_poison(v.at);
		}
		if (sval_is_poison(v)) a.poison = true;
		a.at[a.n++] = (argument){.name = wrapped ? k->text : NULL, .name_at = mark_of(k), .value = v};
	}
	return a;
}

/* ---- binding ---- */

typedef struct parameters {
	const char *const *names;
	uint32_t n;
	bool variadic;
	const char *function;
} parameters;

typedef struct binding_result {
	sval *args;
	span *at;
	bool *given;
	sval *rest;
	uint32_t nrest;
	bool ok;
} binding_result;

static const char *signature_text(sema *s, const parameters *p)
{
	text out = {.arena = s->arena};
	text_printf(&out, "%s(", p->function);
	for (uint32_t i = 0; i < p->n; i++) text_printf(&out, "%s%s", i ? ", " : "", p->names[i]);
	if (p->variadic) text_puts(&out, p->n ? ", ..." : "...");
	text_puts(&out, ")");
	return out.at;
}

static void bind_named(sema *s, const parameters *p, const argument *a, binding_result *r)
{
	uint32_t k = 0;
	while (k < p->n && strcmp(p->names[k], a->name) != 0) k++;
	if (k == p->n) {
		diag *d = sema_diag(s, 306, a->name_at, "'%s' has no parameter '%s'", p->function, a->name);
		const char *near = nearest_name(a->name, p->names, p->n);
		if (near)
			diag_set_hint(s->diags, d, "did you mean '%s'?", near);
		else
			diag_set_hint(s->diags, d, "its parameters: %s", signature_text(s, p));
		r->ok = false;
	} else if (r->given[k]) {
		diag *d = sema_diag(s, 307, a->name_at, "'%s' is given twice", a->name);
		diag_add_label(s->diags, d, r->at[k], "given here");
		r->ok = false;
	} else {
		r->args[k] = a->value;
		r->at[k] = a->value.at;
		r->given[k] = true;
	}
}

static binding_result bind(sema *s, const parameters *p, const arguments *a, span call)
{
	binding_result r = {.ok = true};
	r.args = ARENA_ARRAY(s->arena, sval, p->n + 1);
	r.at = ARENA_ARRAY(s->arena, span, p->n + 1);
	r.given = ARENA_ARRAY(s->arena, bool, p->n + 1);
	r.rest = ARENA_ARRAY(s->arena, sval, a->n + 1);
	for (uint32_t i = 0; i < p->n; i++) {
		r.args[i] = sval_none(call);
		r.at[i] = call;
	}
	for (uint32_t i = 0, position = 0; i < a->n; i++) {
		if (a->at[i].name) {
			bind_named(s, p, &a->at[i], &r);
		} else if (position < p->n) {
			r.args[position] = a->at[i].value;
			r.at[position] = a->at[i].value.at;
			r.given[position++] = true;
		} else if (p->variadic) {
			r.rest[r.nrest++] = a->at[i].value;
		} else {
			r.ok = false;
			if (a->poison) break; /* one may be what an unknown name stands in front of: tl.math.exp(x) */
			diag *d = sema_diag(s, 304, a->at[i].value.at, "too many arguments for '%s'", p->function);
			diag_set_hint(s->diags, d, "its parameters: %s", signature_text(s, p));
			break;
		}
	}
	return r;
}

static sval missing(sema *s, const parameters *p, uint32_t i, span call)
{
	assert(i < p->n);
	diag *d = sema_diag(s, 305, call, "'%s' needs '%s'", p->function, p->names[i]);
	diag_set_hint(s->diags, d, "its parameters: %s", signature_text(s, p));
	return sval_poison(call);
}

/* ---- built-ins ---- */

static parameters builtin_parameters(sema *s, const builtin *b, bool **optional)
{
	parameters p = {.function = b->name};
	const char *dot = strchr(b->name, '.');
	if (dot) p.function = dot + 1;
	VEC(const char *) found = {0};
	size_t length = strlen(b->parameters);
	*optional = ARENA_ARRAY(s->arena, bool, length + 1);
	for (const char *t = b->parameters; *t;) {
		size_t n = strcspn(t, " ");
		if (n > 3 && memcmp(t + n - 3, "...", 3) == 0) {
			p.variadic = true;
		} else {
			bool opt = n && t[n - 1] == '?';
			(*optional)[found.n] = opt;
			vec_push(s->arena, &found, arena_strndup(s->arena, t, opt ? n - 1 : n));
		}
		t += n;
		while (*t == ' ') t++;
	}
	p.names = found.at;
	p.n = found.n;
	return p;
}

static sval call_builtin(sema *s, const builtin *b, const arguments *a, span at, span name)
{
	if (a->n && a->at[0].value.kind == SVAL_TENSOR) {
		const builtin *t = sema_builtin_find(arena_printf(s->arena, "tensor.%s", b->name));
		if (t) b = t;
	}
	bool *optional;
	parameters p = builtin_parameters(s, b, &optional);
	binding_result r = bind(s, &p, a, at);
	if (!r.ok) return sval_poison(at);
	if (a->poison && !(b->flags & BUILTIN_TAKES_POISON)) return sval_poison(at);
	for (uint32_t i = 0; i < p.n; i++)
		if (!r.given[i] && !optional[i]) return missing(s, &p, i, at);
	span saved = s->b.at;
	s->b.at = at;
	builtin_call call = {b, at, name, r.args, r.at, r.rest, r.nrest};
	sval v = b->function(s, &call);
	v.at = at;
	s->b.at = saved;
	return v;
}

/* ---- inlining ---- */

static bool check_recursion(sema *s, const sema_fn *fn, span at)
{
	assert(fn->node);
	struct sema_private *p = s->private;
	for (const frame *f = p->frame; f; f = f->up) {
		if (f->fn != fn) continue;
		VEC(const char *) cycle = {0};
		for (const frame *g = p->frame; g != f; g = g->up) vec_push(s->arena, &cycle, g->fn ? g->fn->name : "");
		text out = {.arena = s->arena};
		text_puts(&out, fn->name);
		for (uint32_t i = cycle.n; i-- > 0;) text_printf(&out, " -> %s", cycle.at[i]);
		text_printf(&out, " -> %s", fn->name);
		diag *d = sema_diag(s, 308, at, "'%s' calls itself: %s", fn->name, out.at);
		diag_set_hint(s->diags, d, "functions are inlined; write a loop");
		return false;
	}
	if (p->inlined >= SEMA_MAX_INLINE) {
		sema_error(s, 707, at, "calls nest deeper than %d", SEMA_MAX_INLINE);
		return false;
	}
	return true;
}

static const char *kid_text(const ast *n, const char *none)
{
	return n && n->text ? n->text : none;
}

sval sema_const_argument(sema *s, const ast *parameter, sval v)
{
	const char *what = arena_printf(s->arena, "const parameter '%s'", kid_text(parameter, "?"));
	if (sval_is_poison(v)) return v;
	if (!sval_is_compile_time(v)) {
		diag *d = sema_diag(s, 301, v.at, "%s must be known at compile time, found a run-time %s", what,
			sema_type_text(s, v));
		if (parameter->at.file) diag_add_label(s->diags, d, parameter->at, "declared here");
		return sval_poison(v.at);
	}
	const ast *type = parameter->nkids ? parameter->kids[0] : NULL;
	if (!type) return v;
	const stype *t = sema_as_stype(s, sema_expression(s, type), "the type of a parameter");
	return t ? sema_coerce(s, v, t, what) : sval_poison(v.at);
}

/* Binds one parameter; `v` is what was given, or none. */
static bool bind_parameter(sema *s, const sema_fn *fn, const ast *p, sval v, bool given, span call)
{
	const ast *type = p->nkids ? p->kids[0] : NULL, *otherwise = p->nkids > 1 ? p->kids[1] : NULL;
	span at = mark_of(p);
	if (!given && !otherwise) {
		diag *d = sema_diag(s, 305, call, "'%s' needs '%s'", fn->name, kid_text(p, "?"));
		diag_add_label(s->diags, d, p->at, "declared here");
		scope_bind(s, p->text, at, BINDING_PARAMETER, sval_poison(at));
		return false;
	}
	if (!given) v = sema_expression(s, otherwise);
	if (fn->library && !fn->imported && !p->flag && v.kind != SVAL_NUMBER && v.kind != SVAL_VALUE &&
		!sval_is_poison(v)) {
		sema_library_diag(s, 501, "needs a number or a tile as '%s', found %s", p->text, sema_type_text(s, v));
		v = sval_poison(v.at);
	}
	if (p->flag) {
		v = sema_const_argument(s, p, v);
	} else if (type) {
		const stype *t = sema_as_stype(s, sema_expression(s, type), "the type of a parameter");
		v = t ? sema_coerce(s, v, t, arena_printf(s->arena, "parameter '%s' of '%s'", p->text, fn->name))
		      : sval_poison(v.at);
	}
	if (v.kind == SVAL_VALUE && !v.value->name && v.value->def) v.value->name = p->text;
	scope_bind(s, p->text, at, BINDING_PARAMETER, v);
	return !sval_is_poison(v);
}

static sval finish_inline(sema *s, frame *f, flow way, uint32_t errors, span at)
{
	assert(s->private->frame == f);
	const sema_fn *fn = f->fn;
	const ast *decl = fn->node;
	sval v = slot_get(s, f->result);
	if (sval_is_poison(v) || (fn->library && s->diags->errors != errors)) return sval_poison(at);
	bool returns_value = f->type || (v.kind != SVAL_VOID && v.kind != SVAL_UNDEFINED);
	if (!returns_value) return s->diags->errors != errors ? sval_poison(at) : sval_void(at);
	if (way != FLOW_LEFT) {
		if (s->diags->errors != errors) return sval_poison(at);
		diag *d = sema_diag(s, 405, mark_of(decl), "'%s' does not return a value on every path", fn->name);
		diag_set_hint(s->diags, d, "end it with a return");
		return sval_poison(at);
	}
	v.at = at;
	return v;
}

sval sema_inline(sema *s, const sema_fn *fn, const sval *args, const bool *given, uint32_t n, span at)
{
	assert(fn->node->kind == AST_FN);
	struct sema_private *p = s->private;
	const ast *decl = fn->node;
	if (decl->nkids < 3 || !decl->kids[2] || !check_recursion(s, fn, at) || !sema_enter(s, at))
		return sval_poison(at);
	const ast *list = decl->kids[0];
	frame f = {.up = p->frame, .fn = fn, .call = at, .id = ++p->next_frame, .library = fn->library};
	ir_builder saved = s->b;
	scope_mark m = scope_open(s);
	uint32_t errors = s->diags->errors;
	f.returned = slot_new(s, sval_bool(false, at));
	f.result = slot_new(s, (sval){.kind = SVAL_UNDEFINED, .at = at});
	p->frame = &f;
	p->inlined++;
	bool ok = true;
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; list && i < list->nkids; i++) {
			const ast *k = list->kids[i];
			if (!k || k->flag != (round == 0)) continue;
			ok = bind_parameter(s, fn, k, i < n ? args[i] : sval_none(at), i < n && given[i], at) && ok;
		}
	if (ok && decl->kids[1]) {
		f.type = sema_as_stype(s, sema_expression(s, decl->kids[1]), "the type of a result");
		ok = f.type != NULL;
	}
	sval v = sval_poison(at);
	if (ok) {
		flow way = sema_block(s, decl->kids[2]);
		v = finish_inline(s, &f, way, errors, at);
	}
	scope_close(s, m);
	p->frame = f.up;
	p->inlined--;
	s->b.at = saved.at;
	sema_leave(s);
	return v;
}

/* A program's function that the library calls with other arguments than it takes. */
static sval miscalled(sema *s, const sema_fn *fn, uint32_t given, uint32_t n, span at)
{
	diag *d = sema_library_diag(s, 304, "calls '%s' with %u values, and it takes %u", fn->name, given, n);
	diag_add_label(s->diags, d, mark_of(fn->node), "declared here");
	diag_set_hint(s->diags, d, "it is called as %s", sema_source_text(s, at));
	return sval_poison(at);
}

static sval call_fn(sema *s, const sema_fn *fn, const arguments *a, span at)
{
	const ast *list = fn->node->nkids ? fn->node->kids[0] : NULL;
	uint32_t n = list ? list->nkids : 0;
	const char **labels = ARENA_ARRAY(s->arena, const char *, n + 1);
	for (uint32_t i = 0; i < n; i++) labels[i] = kid_text(list->kids[i], "?");
	parameters p = {.names = labels, .n = n, .function = fn->name};
	uint32_t needed = 0;
	for (uint32_t i = 0; i < n; i++) needed += list->kids[i] && !list->kids[i]->kids[1];
	const frame *caller = s->private->frame;
	if (caller && caller->library && !fn->library && (a->n > n || a->n < needed))
		return miscalled(s, fn, a->n, n, at);
	binding_result r = bind(s, &p, a, at);
	if (!r.ok || a->poison) return sval_poison(at);
	return sema_inline(s, fn, r.args, r.given, n, at);
}

/* ---- the call expression ---- */

static sval call_value(sema *s, sval f, const arguments *a, span at)
{
	if (f.kind == SVAL_FN) return call_fn(s, f.fn, a, at);
	if (f.kind == SVAL_BUILTIN) return call_builtin(s, f.builtin, a, at, f.at);
	if (f.kind == SVAL_TYPE && f.type->kind == STYPE_TENSOR) /* `tensor` is a type and its constructor */
		return call_builtin(s, sema_builtin_find("tensor"), a, at, f.at);
	if (sval_is_poison(f)) return sval_poison(at);
	diag *d = sema_diag(s, 309, f.at, "%s cannot be called", sema_type_text(s, f));
	if (f.kind == SVAL_TYPE) diag_set_hint(s->diags, d, "a cast is written x.to(%s)", sema_stype_text(s, f.type));
	return sval_poison(at);
}

sval sema_call(sema *s, const ast *n)
{
	assert(n->kind == AST_CALL && n->nkids);
	const ast *callee = n->kids[0];
	if (callee->kind != AST_MEMBER) {
		sval f = sema_expression(s, callee);
		arguments a = evaluate(s, n, NULL);
		return call_value(s, f, &a, n->at);
	}
	if (callee->nkids == 0 || !callee->kids[0]) return sval_poison(n->at);
	sval object = sema_expression(s, callee->kids[0]);
	if (object.kind == SVAL_VOID) {
		sema_error(s, 407, object.at, "this call returns no value");
		object = sval_poison(object.at);
	}
	span name = mark_of(callee);
	sval f;
	if (object.kind == SVAL_TENSOR) { /* methods that only tensors have, like A.store */
		const builtin *t = sema_builtin_find(arena_printf(s->arena, "tensor.%s", callee->text));
		if (t) {
			arguments a = evaluate(s, n, &object);
			return call_builtin(s, t, &a, n->at, name);
		}
	}
	f = scope_lookup(s, callee->text, name);
	arguments a = evaluate(s, n, &object);
	return call_value(s, f, &a, n->at);
}

sval sema_call_fn(sema *s, sval f, const sval *args, uint32_t n, span at)
{
	arguments a = {.at = ARENA_ARRAY(s->arena, argument, n + 1), .n = n};
	for (uint32_t i = 0; i < n; i++) {
		a.at[i] = (argument){.value = args[i]};
		a.poison = a.poison || sval_is_poison(args[i]);
	}
	return call_value(s, f, &a, at);
}

sema_arity sema_arity_of(sema *s, sval f)
{
	sema_arity a = {.name = "?", .most = UINT32_MAX};
	if (f.kind == SVAL_BUILTIN) {
		bool *optional;
		parameters p = builtin_parameters(s, f.builtin, &optional);
		a = (sema_arity){.name = f.builtin->name, .most = p.variadic ? UINT32_MAX : p.n};
		for (uint32_t i = 0; i < p.n; i++) a.least += !optional[i];
	} else if (f.kind == SVAL_FN) {
		const ast *list = f.fn->node->nkids ? f.fn->node->kids[0] : NULL;
		a = (sema_arity){.name = f.fn->name, .at = f.fn->node->mark, .most = list ? list->nkids : 0};
		for (uint32_t i = 0; list && i < list->nkids; i++) {
			const ast *k = list->kids[i];
			a.least += !k || k->nkids < 2 || !k->kids[1]; /* no default */
		}
	}
	return a;
}
