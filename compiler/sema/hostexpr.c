/* Grid, cost and requires clauses, and a tuner's keys, conditions and predictions: expressions that the host computes
 * before a launch.
 *
 * In: a syntax tree over the kernel's parameters.  Out: postfix text (blkc.h gives its words), in which const
 * parameters are numbers already and run-time parameters are p0, p1 ...  Whatever has no run-time part is folded here
 * with the same arithmetic the host uses: f64 for a cost and a predicted time, i64 for the others. */
#include "hostexpr.h"

#include <math.h>
#include <string.h>

host host_failed(void)
{
	return (host){0};
}

static host known_int(host_context *c, int64_t i)
{
	host h = {.ok = true, .known = true, .i = i, .f = (double)i};
	h.text = arena_printf(c->s->arena, "%lld", (long long)i);
	return h;
}

static host known_float(host_context *c, const ast *n, double f)
{
	if (!isfinite(f) && c->is_order) /* for the tuner to put last */
		return (host){.ok = true, .depth = 1, .text = isnan(f) ? "0 0 /" : f > 0 ? "1 0 /" : "-1 0 /"};
	if (!isfinite(f)) {
		sema_error(c->s, c->code, n->at, "a %s must be finite, found %s", c->what,
			number_text(c->s, (sema_number){.type = SCALAR_F64, .f = f}));
		return host_failed();
	}
	host h = {.ok = true, .known = true, .f = f};
	h.text = number_text(c->s, (sema_number){.type = SCALAR_F64, .f = f});
	if (f >= -9.2e18 && f <= 9.2e18) h.i = (int64_t)f;
	return h;
}

host host_from_sval(host_context *c, const ast *n, sval v)
{
	if (sval_is_poison(v)) return host_failed();
	if (v.kind == SVAL_NUMBER && scalar_is_float(v.number.type)) {
		if (c->is_float) return known_float(c, n, v.number.f);
		sema_error(c->s, c->code, n->at, "a %s is computed in whole numbers, found %s", c->what,
			sema_type_text(c->s, v));
		return host_failed();
	}
	if (v.kind == SVAL_NUMBER && v.number.i <= INT64_MAX) {
		host h = c->is_float ? known_float(c, n, (double)v.number.i) : known_int(c, (int64_t)v.number.i);
		h.is_bool = v.number.type == SCALAR_BOOL;
		return h;
	}
	if (v.kind == SVAL_VALUE && n->kind == AST_CALL) {
		const char *source = sema_source_text(c->s, n->at);
		diag *d = sema_diag(c->s, c->code, n->at,
			"a %s is computed by the host before the launch, and %s is known in the kernel only", c->what,
			strcmp(source, "...") == 0 ? "this call's result" : arena_printf(c->s->arena, "'%s'", source));
		diag_set_hint(c->s->diags, d, "pass the number as a parameter, n: i32%s", c->otherwise);
		return host_failed();
	}
	diag *d = sema_diag(c->s, c->code, n->at, "a %s cannot use %s", c->what, sema_type_text(c->s, v));
	diag_set_hint(c->s->diags, d,
		"the host knows operators, '?:', cdiv, min, max, next_pow2, num_sms and the parameters");
	return host_failed();
}

/* What is no operator of the host has to be known now: T.bytes, x.elem.bytes, a function of const parameters. */
static host constant(host_context *c, const ast *n)
{
	sema *s = c->s;
	ir_builder saved = scratch_open(s, n->at);
	sval v = sema_expression(s, n);
	host h = host_from_sval(c, n, v);
	scratch_close(s, saved);
	return h;
}

const ir_param *host_run_time_parameter(const host_context *c, const char *name, uint32_t *number)
{
	const ir_func *f = c->s->func;
	for (uint32_t i = 0; i < f->nparams && !c->inside; i++)
		if (f->params[i].name == name) return *number = i, &f->params[i];
	return NULL;
}

bool host_is_typical(const host_context *c, const char *name)
{
	const ast *own = c->typical && !c->inside ? find_parameter(c->typical, name) : NULL;
	return own && !own->flag;
}

const known_name *host_known_name(const host_context *c, const char *name)
{
	const binding *b = c->known_names.n ? scope_find(c->s, name) : NULL;
	for (uint32_t i = c->known_names.n; b && i-- > 0;)
		if (c->known_names.at[i].binding == b) return &c->known_names.at[i];
	return NULL;
}

bool ast_mentions(const ast *n, const char *name)
{
	if (!n) return false;
	if (n->kind == AST_NAME && n->text && strcmp(n->text, name) == 0) return true;
	bool calls = n->kind == AST_CALL && n->nkids && n->kids[0] && n->kids[0]->kind == AST_NAME;
	for (uint32_t i = calls; i < n->nkids; i++)
		if (ast_mentions(n->kids[i], name)) return true;
	return false;
}

static host num_sms(host_context *c)
{
	return c->typical ? known_int(c, HOST_TYPICAL_SMS) : (host){.ok = true, .text = "num_sms"};
}

static host name(host_context *c, const ast *n)
{
	sema *s = c->s;
	uint32_t i = 0;
	const known_name *k = host_known_name(c, n->text);
	if (k) return k->value;
	if (host_is_typical(c, n->text)) return known_int(c, HOST_TYPICAL_ARGUMENT);
	const ir_param *p = host_run_time_parameter(c, n->text, &i);
	if (p) {
		if (c->key && !ast_mentions(c->key, n->text)) {
			diag *d =
				sema_diag(s, c->code, n->at, "a %s cannot use '%s', which is no key", c->what, n->text);
			if (c->key->at.file)
				diag_add_label(s->diags, d, c->key->at, "an argument that is named here can be");
			else
				diag_set_hint(s->diags, d, "name it in front of the block: key(%s)", n->text);
			return host_failed();
		}
		bool number = !p->type.pointer && p->type.rank == 0 &&
			      (c->is_float || !scalar_is_float((scalar)p->type.elem));
		if (number)
			return (host){.ok = true,
				.is_bool = p->type.elem == SCALAR_BOOL,
				.text = arena_printf(s->arena, "p%u", i)};
		diag *d = sema_diag(s, c->code, n->at, "a %s cannot use the %s '%s'", c->what,
			ir_type_name(s->arena, p->type), p->name);
		diag_set_hint(s->diags, d, "scalar integers%s only", c->is_float ? " and floats" : "");
		return host_failed();
	}
	if (strcmp(n->text, "num_sms") == 0 && !scope_find(s, n->text)) return num_sms(c);
	return constant(c, n);
}

static int64_t next_power(int64_t n)
{
	uint64_t p = 1;
	while (n > 0 && p < (uint64_t)n && p < UINT64_C(1) << 62) p *= 2;
	return (int64_t)p;
}

static bool fold_int(const char *op, int64_t a, int64_t b, int64_t *out)
{
	uint64_t x = (uint64_t)a, y = (uint64_t)b;
	bool divides = strcmp(op, "/") == 0 || strcmp(op, "%") == 0 || strcmp(op, "cdiv") == 0;
	if (divides && (b == 0 || (a == INT64_MIN && b == -1))) return false;
	if (strcmp(op, "+") == 0) return *out = (int64_t)(x + y), true;
	if (strcmp(op, "-") == 0) return *out = (int64_t)(x - y), true;
	if (strcmp(op, "*") == 0) return *out = (int64_t)(x * y), true;
	if (strcmp(op, "/") == 0) return *out = a / b, true;
	if (strcmp(op, "%") == 0) return *out = a % b, true;
	if (strcmp(op, "cdiv") == 0) return *out = a / b + (a % b != 0 && (a < 0) == (b < 0)), true;
	if (strcmp(op, "min") == 0) return *out = a < b ? a : b, true;
	if (strcmp(op, "max") == 0) return *out = a > b ? a : b, true;
	if (strcmp(op, "<<") == 0) return *out = y < 64 ? (int64_t)(x << y) : 0, true;
	if (strcmp(op, ">>") == 0) return *out = y < 64 ? a >> y : a < 0 ? -1 : 0, true;
	if (strcmp(op, "&") == 0) return *out = a & b, true;
	if (strcmp(op, "|") == 0) return *out = a | b, true;
	if (strcmp(op, "^") == 0) return *out = a ^ b, true;
	if (strcmp(op, "<") == 0) return *out = a < b, true;
	if (strcmp(op, "<=") == 0) return *out = a <= b, true;
	if (strcmp(op, ">") == 0) return *out = a > b, true;
	if (strcmp(op, ">=") == 0) return *out = a >= b, true;
	if (strcmp(op, "==") == 0) return *out = a == b, true;
	if (strcmp(op, "!=") == 0) return *out = a != b, true;
	if (strcmp(op, "&&") == 0) return *out = a && b, true;
	if (strcmp(op, "||") == 0) return *out = a || b, true;
	return false;
}

static bool fold_float(const char *op, double a, double b, double *out)
{
	if (strcmp(op, "+") == 0) return *out = a + b, true;
	if (strcmp(op, "-") == 0) return *out = a - b, true;
	if (strcmp(op, "*") == 0) return *out = a * b, true;
	if (strcmp(op, "/") == 0) return *out = a / b, b != 0;
	if (strcmp(op, "cdiv") == 0) return *out = ceil(a / b), b != 0;
	if (strcmp(op, "min") == 0) return *out = a < b ? a : b, true;
	if (strcmp(op, "max") == 0) return *out = a > b ? a : b, true;
	if (strcmp(op, "%") == 0) return *out = fmod(a, b), b != 0;
	if (strcmp(op, "<") == 0) return *out = a < b, true;
	if (strcmp(op, "<=") == 0) return *out = a <= b, true;
	if (strcmp(op, ">") == 0) return *out = a > b, true;
	if (strcmp(op, ">=") == 0) return *out = a >= b, true;
	if (strcmp(op, "==") == 0) return *out = a == b, true;
	if (strcmp(op, "!=") == 0) return *out = a != b, true;
	if (strcmp(op, "&&") == 0) return *out = a != 0 && b != 0, true;
	if (strcmp(op, "||") == 0) return *out = a != 0 || b != 0, true;
	return false;
}

static bool is_one_of(const char *op, const char *const *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(op, all[i]) == 0) return true;
	return false;
}

static bool gives_bool(const char *op, const host *a, const host *b)
{
	static const char *const always[] = {"<", "<=", ">", ">=", "==", "!=", "&&", "||"};
	static const char *const of_bools[] = {"&", "|", "^", "min", "max"};
	return is_one_of(op, always, sizeof always / sizeof *always) ||
	       (a->is_bool && b->is_bool && is_one_of(op, of_bools, sizeof of_bools / sizeof *of_bools));
}

/* Its left side decides && and ||: what stands behind is not computed, so it cannot fail. */
static bool decides(host_context *c, const ast *n, const host *left, host *out)
{
	if (!left->ok || !left->known || (n->op != AST_OP_LAND && n->op != AST_OP_LOR)) return false;
	bool holds = c->is_float ? left->f != 0 : left->i != 0;
	if (holds != (n->op == AST_OP_LOR)) return false;
	*out = c->is_float ? known_float(c, n, holds) : known_int(c, holds);
	return out->is_bool = true;
}

static host combine(host_context *c, const ast *n, const char *op, host a, host b)
{
	if (!a.ok || !b.ok) return host_failed();
	bool bits = strcmp(op, "<<") == 0 || strcmp(op, ">>") == 0 || strcmp(op, "&") == 0 || strcmp(op, "|") == 0 ||
		    strcmp(op, "^") == 0;
	if (bits && c->is_float) {
		sema_error(c->s, c->code, n->at, "'%s' is for integers, and a %s is computed in f64", op, c->what);
		return host_failed();
	}
	bool divides = strcmp(op, "/") == 0 || strcmp(op, "%") == 0 || strcmp(op, "cdiv") == 0;
	if (divides && b.known && (c->is_float ? b.f == 0 : b.i == 0) && !c->is_order) {
		sema_error(c->s, 302, n->at, "division by a constant zero");
		return host_failed();
	}
	int64_t i;
	double f;
	if (a.known && b.known && !c->is_float && fold_int(op, a.i, b.i, &i)) {
		host h = known_int(c, i);
		h.is_bool = gives_bool(op, &a, &b);
		return h;
	}
	if (a.known && b.known && c->is_float && fold_float(op, a.f, b.f, &f)) {
		host h = known_float(c, n, f);
		h.is_bool = gives_bool(op, &a, &b);
		return h;
	}
	uint32_t depth = a.depth > b.depth + 1 ? a.depth : b.depth + 1;
	return (host){.ok = true,
		.is_bool = gives_bool(op, &a, &b),
		.depth = depth,
		.text = arena_printf(c->s->arena, "%s %s %s", a.text, b.text, op)};
}

static host unary(host_context *c, const ast *n)
{
	host a = host_emit(c, n->kids[0]);
	if (!a.ok) return a;
	bool negates = n->op == AST_OP_LNOT || (n->op == AST_OP_TILDE && a.is_bool && !c->is_float);
	if (n->op == AST_OP_NEG && a.known)
		return c->is_float ? known_float(c, n, -a.f) : known_int(c, (int64_t)(0 - (uint64_t)a.i));
	if (n->op == AST_OP_TILDE && c->is_float) {
		sema_error(c->s, c->code, n->at, "'~' is for integers, and a %s is computed in f64", c->what);
		return host_failed();
	}
	if (n->op == AST_OP_TILDE && a.known && !negates) return known_int(c, ~a.i);
	host h = {.ok = true, .depth = a.depth};
	const char *op = negates ? "!" : n->op == AST_OP_NEG ? "neg" : "~";
	if (negates && a.known)
		h = known_int(c, c->is_float ? a.f == 0 : !a.i);
	else
		h.text = arena_printf(c->s->arena, "%s %s", a.text, op);
	h.is_bool = negates;
	return h;
}

static host ternary(host_context *c, const ast *n)
{
	host k = host_emit(c, n->kids[0]);
	if (!k.ok) return k;
	if (k.known) return host_emit(c, n->kids[(c->is_float ? k.f != 0 : k.i != 0) ? 1 : 2]);
	host a = host_emit(c, n->kids[1]), b = host_emit(c, n->kids[2]);
	if (!a.ok || !b.ok) return host_failed();
	uint32_t depth = a.depth + 1 > b.depth + 2 ? a.depth + 1 : b.depth + 2;
	if (k.depth > depth) depth = k.depth;
	return (host){.ok = true,
		.is_bool = a.is_bool && b.is_bool,
		.depth = depth,
		.text = arena_printf(c->s->arena, "%s %s %s ?:", k.text, a.text, b.text)};
}

static host call(host_context *c, const ast *n)
{
	static const struct {
		const char *name;
		uint32_t args;
	} functions[] = {{"cdiv", 2}, {"min", 2}, {"max", 2}, {"next_pow2", 1}, {"num_sms", 0}};
	sema *s = c->s;
	const char *callee = n->kids[0]->kind == AST_NAME ? n->kids[0]->text : "";
	bool method = n->kids[0]->kind == AST_MEMBER;
	const sema_fn *fn = c->inlines && *callee ? host_function(c, callee) : NULL;
	if (fn && fn->node->nkids > 2 && host_can_inline(fn->node->kids[2])) return host_inline_call(c, fn, n);
	if (method || scope_find(s, callee) || name_table_find(&s->private->program->user, callee))
		return constant(c, n);
	for (unsigned k = 0; k < sizeof functions / sizeof *functions; k++) {
		if (strcmp(functions[k].name, callee) != 0) continue;
		uint32_t given = n->nkids - 1;
		if (given != functions[k].args) {
			sema_error(s, given > functions[k].args ? 304 : 305, n->at,
				"'%s' takes %u argument%s here, found %u", callee, functions[k].args,
				functions[k].args == 1 ? "" : "s", given);
			return host_failed();
		}
		if (given == 0) return num_sms(c);
		host a[2];
		for (uint32_t i = 0; i < given; i++) {
			const ast *arg = n->kids[1 + i];
			if (arg->kind == AST_ARGUMENT && arg->text) {
				sema_error(s, 306, arg->at, "'%s' takes no named arguments here", callee);
				return host_failed();
			}
			a[i] = host_emit(c, arg->kind == AST_ARGUMENT ? arg->kids[0] : arg);
		}
		if (given == 2) return combine(c, n, callee, a[0], a[1]);
		if (!a[0].ok) return host_failed();
		if (a[0].known && !c->is_float) return known_int(c, next_power(a[0].i));
		return (host){
			.ok = true, .depth = a[0].depth, .text = arena_printf(s->arena, "%s next_pow2", a[0].text)};
	}
	return constant(c, n);
}

/* Types and other things that are no numbers may be compared, where both are known. */
static bool compares_names(const host_context *c, const ast *n)
{
	if (!c->inlines || n->kind != AST_BINARY || (n->op != AST_OP_EQ && n->op != AST_OP_NE)) return false;
	for (uint32_t i = 0; i < n->nkids; i++)
		if (n->kids[i]->kind == AST_BINARY || n->kids[i]->kind == AST_UNARY || host_is_run_time(c, n->kids[i]))
			return false;
	return true;
}

static host chain(host_context *c, const ast *n)
{
	uint32_t length = 0;
	const ast *leaf = n;
	for (; leaf->kind == AST_BINARY && leaf->nkids == 2 && leaf->kids[0] && leaf->kids[1] &&
		!compares_names(c, leaf);
		leaf = leaf->kids[0])
		length++;
	const ast **spine = ARENA_ARRAY(c->s->arena, const ast *, length + 1);
	uint32_t i = length;
	for (const ast *p = n; i > 0; p = p->kids[0]) spine[--i] = p;
	host h = leaf == n ? host_failed() : host_emit(c, leaf);
	for (i = 0; i < length; i++)
		if (!decides(c, spine[i], &h, &h))
			h = combine(c, spine[i], ast_op_text[spine[i]->op], h, host_emit(c, spine[i]->kids[1]));
	return h;
}

host host_emit(host_context *c, const ast *n)
{
	if (!n || !sema_enter(c->s, n->at)) return host_failed();
	host h = host_failed();
	bool whole = true;
	for (uint32_t i = 0; i < n->nkids; i++) whole = whole && n->kids[i];
	if (whole) {
		switch (n->kind) {
		case AST_NAME: h = name(c, n); break;
		case AST_UNARY: h = unary(c, n); break;
		case AST_BINARY: h = compares_names(c, n) ? constant(c, n) : chain(c, n); break;
		case AST_TERNARY: h = ternary(c, n); break;
		case AST_CALL: h = call(c, n); break;
		default: h = constant(c, n); break;
		}
	}
	sema_leave(c->s);
	return h;
}

/* A computed const parameter in the expression of a later one is what computes it, not its value of this compile. */
static void know_computed(host_context *c)
{
	sema *s = c->s;
	for (uint32_t i = 0; i < s->private->computed.n; i++) {
		const computed_const *k = &s->private->computed.at[i];
		const binding *b = k->postfix ? scope_find(s, k->parameter->text) : NULL;
		host h = {.ok = true, .is_bool = k->is_bool, .depth = k->depth, .text = k->postfix};
		if (b) vec_push(s->arena, &c->known_names, ((known_name){b, h}));
	}
}

bool host_expression(sema *s, const ast *n, host_clause clause, text *out, host_facts *facts)
{
	return host_expression_of_keys(s, n, clause, NULL, out, facts);
}

bool host_expression_of_keys(sema *s, const ast *n, host_clause clause, const ast *key, text *out, host_facts *facts)
{
	static const struct {
		const char *what, *otherwise;
		uint16_t code;
	} clauses[] = {{"grid",
			       ", or launch as many programs as there can be and let those return that have nothing to "
			       "do",
			       609},
		{"cost", "", 610}, {"requires clause", ", or look at it in the kernel: device_assert", 617},
		{"key", "", 619}, {"where clause", "", 619}, {"predicted time", "", 619},
		{"value of a launch", "", 621}, {"value of a launch", "", 621}}; /* ORDER host_clause */
	host_context c = {.s = s,
		.is_float = clause == HOST_COST || clause == HOST_ORDER,
		.what = clauses[clause].what,
		.otherwise = clauses[clause].otherwise,
		.code = clauses[clause].code,
		.inlines = clause >= HOST_KEY || clause == HOST_GRID,
		.is_order = clause == HOST_ORDER,
		.typical = clause == HOST_TYPICAL ? s->private->kernel : NULL,
		.key = key};
	if (clause == HOST_COMPUTED) know_computed(&c);
	host h = host_emit(&c, n);
	if (h.ok && h.depth >= HOST_STACK) {
		sema_error(s, c.code, n->at, "a %s of more than %d values at once", c.what, HOST_STACK);
		return false;
	}
	if (h.ok) text_puts(out, h.text);
	if (facts) *facts = (host_facts){h.ok && h.known, h.ok && h.is_bool, h.ok && h.known ? h.i : 0, h.depth};
	return h.ok;
}
