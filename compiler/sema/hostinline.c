/* Functions that a tuner's clauses call with what is known at a launch only.
 *
 * In: a call of a `fn` of names, choices by what is known, and a result.  Out: the host's words for that result.  What
 * the function names by `let`, and each argument that is more than a word, is computed once and kept in a numbered
 * place, "EXPRESSION =3 .. @3".  Such a name is bound in the function's scope as any other, to a number that stands for
 * it; `known_names` leads from there to the words. */
#include "hostexpr.h"

#include <math.h>
#include <string.h>

bool host_is_run_time(const host_context *c, const ast *n)
{
	uint32_t number;
	if (!n) return false;
	if (n->kind == AST_NAME)
		return host_known_name(c, n->text) || host_is_typical(c, n->text) ||
		       host_run_time_parameter(c, n->text, &number) ||
		       (strcmp(n->text, "num_sms") == 0 && !scope_find(c->s, n->text));
	if (n->kind == AST_CALL && n->nkids && n->kids[0] && n->kids[0]->kind == AST_NAME &&
		!sema_builtin_find(n->kids[0]->text))
		return true;
	for (uint32_t i = 0; i < n->nkids; i++)
		if (host_is_run_time(c, n->kids[i])) return true;
	return false;
}

const sema_fn *host_function(const host_context *c, const char *callee)
{
	struct sema_private *p = c->s->private;
	const binding *b = scope_find(c->s, callee);
	if (b) return b->kind != BINDING_VAR && b->value.kind == SVAL_FN ? b->value.fn : NULL;
	declaration *d = p->frame && p->frame->library ? NULL : name_table_find(&p->program->user, callee);
	if (d) return d->kind == DECLARES_FN ? d->fn : NULL;
	if (sema_builtin_find(callee)) return NULL;
	d = sema_library_find(p->program, callee, "std.blk");
	return d && d->kind == DECLARES_FN ? d->fn : NULL;
}

/* Names, choices by what is known, a result. */
bool host_can_inline(const ast *n)
{
	if (!n) return false;
	if (n->kind == AST_BIND) return n->op != AST_OP_BIND_VAR && n->nkids > 2 && n->kids[0]->kind == AST_NAME;
	if (n->kind == AST_RETURN || n->kind == AST_EXPRESSION) return n->nkids && n->kids[0];
	if (n->kind == AST_IF)
		return n->nkids > 1 && n->kids[0] && host_can_inline(n->kids[1]) &&
		       (n->nkids < 3 || !n->kids[2] || host_can_inline(n->kids[2]));
	for (uint32_t i = 0; n->kind == AST_BLOCK && i < n->nkids; i++)
		if (!host_can_inline(n->kids[i])) return false;
	return n->kind == AST_BLOCK;
}

typedef struct operand { /* a number that the host computes, or what is known at compile time */
	bool is_host;
	host number;
	sval value;
} operand;

/* Numbers are computed as the clause computes them, so that it makes no difference which part is known. */
static operand evaluate(host_context *c, const ast *n)
{
	bool computed = n->kind == AST_BINARY || n->kind == AST_UNARY || n->kind == AST_TERNARY || n->kind == AST_CALL;
	if (computed || host_is_run_time(c, n)) return (operand){.is_host = true, .number = host_emit(c, n)};
	ir_builder saved = scratch_open(c->s, n->at);
	sval v = sema_expression(c->s, n);
	scratch_close(c->s, saved);
	if (sval_is_compile_time(v) || sval_is_poison(v)) return (operand){.value = v};
	return (operand){.is_host = true, .number = host_from_sval(c, n, v)};
}

static bool is_good(const operand *o)
{
	return o->is_host ? o->number.ok : !sval_is_poison(o->value);
}

static sval as_sval(const operand *o, span at)
{
	if (!o->is_host) return o->value;
	if (o->number.is_bool) return sval_bool(o->number.f != 0 || o->number.i != 0, at);
	double f = o->number.f;
	return floor(f) == f && fabs(f) < 9e15 ? sval_int((sema_int)f, at) : sval_float(f, at);
}

typedef struct inlined { /* what comes before the function's result */
	text before;
	uint32_t depth;
} inlined;

/* Binds a name of the function; what the host computes by several words is kept. */
static bool bind_operand(host_context *c, inlined *f, const char *name, span at, operand o)
{
	sema *s = c->s;
	if (!is_good(&o) || !name) return false;
	if (!o.is_host || o.number.known) {
		scope_bind(s, name, at, BINDING_LET, as_sval(&o, at));
		return true;
	}
	if (strchr(o.number.text, ' ')) {
		if (c->places == HOST_PLACES) {
			sema_error(s, c->code, at, "a %s keeps more than %d values", c->what, HOST_PLACES);
			return false;
		}
		text_printf(&f->before, "%s =%u ", o.number.text, c->places);
		if (o.number.depth > f->depth) f->depth = o.number.depth;
		o.number.text = arena_printf(s->arena, "@%u", c->places++);
		o.number.depth = 0;
	}
	sval stands_for = c->is_float ? sval_number_bits(SCALAR_F64, 0, at) : sval_typed_int(SCALAR_I64, 0, at);
	const binding *b = scope_bind(s, name, at, BINDING_LET, sval_value(sema_value(s, stands_for, "a name"), at));
	vec_push(s->arena, &c->known_names, ((known_name){b, o.number}));
	return true;
}

static host inline_statements(host_context *c, inlined *f, const ast *block, bool *returned);

static host inline_statement(host_context *c, inlined *f, const ast *n, bool *returned)
{
	host bad = host_failed(), nothing = {.ok = true};
	switch (n->kind) {
	case AST_BIND: {
		const ast *name = n->kids[0];
		return bind_operand(c, f, name->text, name->at, evaluate(c, n->kids[2])) ? nothing : bad;
	}
	case AST_RETURN: {
		operand o = evaluate(c, n->kids[0]);
		*returned = true;
		return o.is_host ? o.number : host_from_sval(c, n->kids[0], o.value);
	}
	case AST_IF: {
		host k = host_emit(c, n->kids[0]);
		if (!k.ok) return bad;
		if (!k.known) {
			diag *d = sema_diag(c->s, c->code, n->kids[0]->at,
				"a %s follows an 'if' only where its condition is known", c->what);
			diag_set_hint(c->s->diags, d, "write a ? b : c");
			return bad;
		}
		bool holds = c->is_float ? k.f != 0 : k.i != 0;
		const ast *arm = holds ? n->kids[1] : n->nkids > 2 ? n->kids[2] : NULL;
		return !arm                  ? nothing
		       : arm->kind == AST_IF ? inline_statement(c, f, arm, returned)
					     : inline_statements(c, f, arm, returned);
	}
	case AST_BLOCK: return inline_statements(c, f, n, returned);
	default: { /* static_assert and its like */
		if (host_is_run_time(c, n)) return nothing;
		ir_builder saved = scratch_open(c->s, n->at);
		uint32_t errors = c->s->diags->errors;
		sema_expression(c->s, n->kids[0]);
		scratch_close(c->s, saved);
		return c->s->diags->errors == errors ? nothing : bad;
	}
	}
}

static host inline_statements(host_context *c, inlined *f, const ast *block, bool *returned)
{
	host h = {.ok = true};
	scope_mark m = scope_open(c->s);
	for (uint32_t i = 0; i < block->nkids && h.ok && !*returned; i++)
		h = inline_statement(c, f, block->kids[i], returned);
	scope_close(c->s, m);
	return h;
}

/* The parameter that an argument is for; UINT32_MAX after an error. */
static uint32_t place_of(host_context *c, const sema_fn *fn, const ast *argument, uint32_t position, const bool *given)
{
	const ast *list = fn->node->kids[0];
	uint32_t n = list ? list->nkids : 0, at = position;
	const char *label = argument->kind == AST_ARGUMENT ? argument->text : NULL;
	if (label)
		for (at = 0; at < n && (!list->kids[at]->text || strcmp(list->kids[at]->text, label) != 0);) at++;
	if (at < n && !given[at]) return at;
	if (at < n)
		sema_error(c->s, 307, argument->at, "'%s' of '%s' is given twice", list->kids[at]->text, fn->name);
	else if (label)
		sema_error(c->s, 306, argument->at, "'%s' has no parameter '%s'", fn->name, label);
	else
		sema_error(c->s, 304, argument->at, "'%s' takes %u argument%s", fn->name, n, n == 1 ? "" : "s");
	return UINT32_MAX;
}

/* Binds the parameters, in the function's frame. */
static bool bind_all(host_context *c, inlined *f, const sema_fn *fn, operand *args, const bool *given, span at)
{
	const ast *list = fn->node->kids[0];
	for (uint32_t i = 0; list && i < list->nkids; i++) {
		const ast *k = list->kids[i], *otherwise = k->nkids > 1 ? k->kids[1] : NULL;
		if (!given[i] && !otherwise) {
			sema_error(c->s, 305, at, "'%s' needs '%s'", fn->name, k->text ? k->text : "?");
			return false;
		}
		if (!given[i]) args[i] = evaluate(c, otherwise);
		if (k->flag && is_good(&args[i])) {
			if (args[i].is_host && !args[i].number.known) {
				sema_error(c->s, 301, at, "const parameter '%s' of '%s' must be known at compile time",
					k->text ? k->text : "?", fn->name);
				return false;
			}
			args[i] = (operand){.value = sema_const_argument(c->s, k, as_sval(&args[i], at))};
		}
		if (!bind_operand(c, f, k->text, k->at, args[i])) return false;
	}
	return true;
}

host host_inline_call(host_context *c, const sema_fn *fn, const ast *call)
{
	struct sema_private *p = c->s->private;
	const ast *list = fn->node->kids[0];
	uint32_t n = list ? list->nkids : 0, known = c->known_names.n;
	operand *args = ARENA_ARRAY(c->s->arena, operand, n + 1);
	bool *given = ARENA_ARRAY(c->s->arena, bool, n + 1);
	memset(given, 0, (n + 1) * sizeof *given);
	for (const frame *up = p->frame; up; up = up->up)
		if (up->fn == fn) {
			sema_error(c->s, 308, call->at, "'%s' calls itself", fn->name);
			return host_failed();
		}
	inlined f = {.before = {.arena = c->s->arena}};
	for (uint32_t i = 1; i < call->nkids; i++) {
		const ast *k = call->kids[i];
		uint32_t at = place_of(c, fn, k, i - 1, given);
		const ast *value = k->kind == AST_ARGUMENT ? k->nkids ? k->kids[0] : NULL : k;
		if (at == UINT32_MAX || !value) return host_failed();
		args[at] = evaluate(c, value);
		given[at] = true;
		if (!is_good(&args[at])) return host_failed();
	}
	frame own = {.up = p->frame, .fn = fn, .call = call->at, .id = ++p->next_frame, .library = fn->library};
	ir_builder saved = scratch_open(c->s, call->at);
	scope_mark m = scope_open(c->s);
	bool returned = false;
	host h = host_failed();
	p->frame = &own;
	c->inside++;
	if (bind_all(c, &f, fn, args, given, call->at)) h = inline_statements(c, &f, fn->node->kids[2], &returned);
	if (h.ok && !returned) {
		sema_error(c->s, 405, mark_of(fn->node), "'%s' does not return a value on every path", fn->name);
		h = host_failed();
	}
	c->inside--;
	c->known_names.n = known;
	scope_close(c->s, m);
	p->frame = own.up;
	scratch_close(c->s, saved);
	if (!h.ok || h.known || !f.before.n) return h;
	if (f.depth > h.depth) h.depth = f.depth;
	h.text = arena_printf(c->s->arena, "%s%s", f.before.at, h.text);
	return h;
}
