/* Grid, cost and requires clauses: expressions that the host computes before a launch.
 *
 * In: a syntax tree over the kernel's parameters.  Out: postfix text (blkc.h gives its words), in which const
 * parameters are numbers already and run-time parameters are p0, p1 ...  Whatever has no run-time part is folded here
 * with the same arithmetic the host uses: f64 for a cost, i64 for the others. */
#include "internal.h"

#include <math.h>
#include <string.h>

enum { HOST_STACK = 256 }; /* values that the host's evaluator holds at once */

typedef struct host {
	bool ok, known, is_bool;
	uint32_t depth; /* beyond 1: values that the host keeps at once */
	int64_t i;
	double f;
	const char *text;
} host;

typedef struct context {
	sema *s;
	bool is_float;
	const char *what;      /* "grid", "cost", "requires clause" */
	const char *otherwise; /* than by a parameter, what the host does not know can be said; may be empty */
	uint16_t code;
} context;

static host emit(context *c, const ast *n);

static host failed(void)
{
	return (host){0};
}

static host known_int(context *c, int64_t i)
{
	host h = {.ok = true, .known = true, .i = i, .f = (double)i};
	h.text = arena_printf(c->s->arena, "%lld", (long long)i);
	return h;
}

static host known_float(context *c, const ast *n, double f)
{
	if (!isfinite(f)) {
		sema_error(c->s, c->code, n->at, "a %s must be finite, found %s", c->what,
			number_text(c->s, (sema_number){.type = SCALAR_F64, .f = f}));
		return failed();
	}
	host h = {.ok = true, .known = true, .f = f};
	h.text = number_text(c->s, (sema_number){.type = SCALAR_F64, .f = f});
	if (f >= -9.2e18 && f <= 9.2e18) h.i = (int64_t)f;
	return h;
}

static host from_sval(context *c, const ast *n, sval v)
{
	if (sval_is_poison(v)) return failed();
	if (v.kind == SVAL_NUMBER && scalar_is_float(v.number.type)) {
		if (c->is_float) return known_float(c, n, v.number.f);
		sema_error(c->s, c->code, n->at, "a %s is computed in whole numbers, found %s", c->what,
			sema_type_text(c->s, v));
		return failed();
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
		return failed();
	}
	diag *d = sema_diag(c->s, c->code, n->at, "a %s cannot use %s", c->what, sema_type_text(c->s, v));
	diag_set_hint(c->s->diags, d,
		"the host knows operators, '?:', cdiv, min, max, next_pow2, num_sms and the parameters");
	return failed();
}

/* What is no operator of the host has to be known now: T.bytes, x.elem.bytes, a function of const parameters. */
static host constant(context *c, const ast *n)
{
	sema *s = c->s;
	ir_builder saved = scratch_open(s, n->at);
	sval v = sema_expression(s, n);
	host h = from_sval(c, n, v);
	scratch_close(s, saved);
	return h;
}

static host name(context *c, const ast *n)
{
	sema *s = c->s;
	for (uint32_t i = 0; i < s->func->nparams; i++) {
		const ir_param *p = &s->func->params[i];
		if (p->name != n->text) continue;
		bool number = !p->type.pointer && p->type.rank == 0 &&
			      (c->is_float || !scalar_is_float((scalar)p->type.elem));
		if (number)
			return (host){.ok = true,
				.is_bool = p->type.elem == SCALAR_BOOL,
				.text = arena_printf(s->arena, "p%u", i)};
		diag *d = sema_diag(s, c->code, n->at, "a %s cannot use the %s '%s'", c->what,
			ir_type_name(s->arena, p->type), p->name);
		diag_set_hint(s->diags, d, "scalar integers%s only", c->is_float ? " and floats" : "");
		return failed();
	}
	if (strcmp(n->text, "num_sms") == 0 && !scope_find(s, n->text)) return (host){.ok = true, .text = "num_sms"};
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
static bool decides(context *c, const ast *n, const host *left, host *out)
{
	if (!left->ok || !left->known || (n->op != AST_OP_LAND && n->op != AST_OP_LOR)) return false;
	bool holds = c->is_float ? left->f != 0 : left->i != 0;
	if (holds != (n->op == AST_OP_LOR)) return false;
	*out = c->is_float ? known_float(c, n, holds) : known_int(c, holds);
	return out->is_bool = true;
}

static host combine(context *c, const ast *n, const char *op, host a, host b)
{
	if (!a.ok || !b.ok) return failed();
	bool bits = strcmp(op, "<<") == 0 || strcmp(op, ">>") == 0 || strcmp(op, "&") == 0 || strcmp(op, "|") == 0 ||
		    strcmp(op, "^") == 0;
	if (bits && c->is_float) {
		sema_error(c->s, c->code, n->at, "'%s' is for integers, and a cost is computed in f64", op);
		return failed();
	}
	bool divides = strcmp(op, "/") == 0 || strcmp(op, "%") == 0 || strcmp(op, "cdiv") == 0;
	if (divides && b.known && (c->is_float ? b.f == 0 : b.i == 0)) {
		sema_error(c->s, 302, n->at, "division by a constant zero");
		return failed();
	}
	int64_t i;
	double f;
	if (a.known && b.known && !c->is_float && fold_int(op, a.i, b.i, &i)) {
		host h = known_int(c, i);
		h.is_bool = gives_bool(op, &a, &b);
		return h;
	}
	if (a.known && b.known && c->is_float && fold_float(op, a.f, b.f, &f)) return known_float(c, n, f);
	uint32_t depth = a.depth > b.depth + 1 ? a.depth : b.depth + 1;
	return (host){.ok = true,
		.is_bool = gives_bool(op, &a, &b),
		.depth = depth,
		.text = arena_printf(c->s->arena, "%s %s %s", a.text, b.text, op)};
}

static host unary(context *c, const ast *n)
{
	host a = emit(c, n->kids[0]);
	if (!a.ok) return a;
	bool negates = n->op == AST_OP_LNOT || (n->op == AST_OP_TILDE && a.is_bool && !c->is_float);
	if (n->op == AST_OP_NEG && a.known)
		return c->is_float ? known_float(c, n, -a.f) : known_int(c, (int64_t)(0 - (uint64_t)a.i));
	if (n->op == AST_OP_TILDE && c->is_float) {
		sema_error(c->s, c->code, n->at, "'~' is for integers, and a cost is computed in f64");
		return failed();
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

static host ternary(context *c, const ast *n)
{
	host k = emit(c, n->kids[0]);
	if (!k.ok) return k;
	if (k.known) return emit(c, n->kids[(c->is_float ? k.f != 0 : k.i != 0) ? 1 : 2]);
	host a = emit(c, n->kids[1]), b = emit(c, n->kids[2]);
	if (!a.ok || !b.ok) return failed();
	uint32_t depth = a.depth + 1 > b.depth + 2 ? a.depth + 1 : b.depth + 2;
	if (k.depth > depth) depth = k.depth;
	return (host){.ok = true,
		.is_bool = a.is_bool && b.is_bool,
		.depth = depth,
		.text = arena_printf(c->s->arena, "%s %s %s ?:", k.text, a.text, b.text)};
}

static host call(context *c, const ast *n)
{
	static const struct {
		const char *name;
		uint32_t args;
	} functions[] = {{"cdiv", 2}, {"min", 2}, {"max", 2}, {"next_pow2", 1}, {"num_sms", 0}};
	sema *s = c->s;
	const char *callee = n->kids[0]->kind == AST_NAME ? n->kids[0]->text : "";
	bool method = n->kids[0]->kind == AST_MEMBER;
	if (method || scope_find(s, callee) || name_table_find(&s->private->program->user, callee))
		return constant(c, n);
	for (unsigned k = 0; k < sizeof functions / sizeof *functions; k++) {
		if (strcmp(functions[k].name, callee) != 0) continue;
		uint32_t given = n->nkids - 1;
		if (given != functions[k].args) {
			sema_error(s, given > functions[k].args ? 304 : 305, n->at,
				"'%s' takes %u argument%s here, found %u", callee, functions[k].args,
				functions[k].args == 1 ? "" : "s", given);
			return failed();
		}
		if (given == 0) return (host){.ok = true, .text = "num_sms"};
		host a[2];
		for (uint32_t i = 0; i < given; i++) {
			const ast *arg = n->kids[1 + i];
			if (arg->kind == AST_ARGUMENT && arg->text) {
				sema_error(s, 306, arg->at, "'%s' takes no named arguments here", callee);
				return failed();
			}
			a[i] = emit(c, arg->kind == AST_ARGUMENT ? arg->kids[0] : arg);
		}
		if (given == 2) return combine(c, n, callee, a[0], a[1]);
		if (!a[0].ok) return failed();
		if (a[0].known && !c->is_float) return known_int(c, next_power(a[0].i));
		return (host){
			.ok = true, .depth = a[0].depth, .text = arena_printf(s->arena, "%s next_pow2", a[0].text)};
	}
	return constant(c, n);
}

static host chain(context *c, const ast *n)
{
	uint32_t length = 0;
	const ast *leaf = n;
	for (; leaf->kind == AST_BINARY && leaf->nkids == 2 && leaf->kids[0] && leaf->kids[1]; leaf = leaf->kids[0])
		length++;
	const ast **spine = ARENA_ARRAY(c->s->arena, const ast *, length + 1);
	uint32_t i = length;
	for (const ast *p = n; i > 0; p = p->kids[0]) spine[--i] = p;
	host h = leaf == n ? failed() : emit(c, leaf);
	for (i = 0; i < length; i++)
		if (!decides(c, spine[i], &h, &h))
			h = combine(c, spine[i], ast_op_text[spine[i]->op], h, emit(c, spine[i]->kids[1]));
	return h;
}

static host emit(context *c, const ast *n)
{
	if (!n || !sema_enter(c->s, n->at)) return failed();
	host h = failed();
	bool whole = true;
	for (uint32_t i = 0; i < n->nkids; i++) whole = whole && n->kids[i];
	if (whole) {
		switch (n->kind) {
		case AST_NAME: h = name(c, n); break;
		case AST_UNARY: h = unary(c, n); break;
		case AST_BINARY: h = chain(c, n); break;
		case AST_TERNARY: h = ternary(c, n); break;
		case AST_CALL: h = call(c, n); break;
		default: h = constant(c, n); break;
		}
	}
	sema_leave(c->s);
	return h;
}

bool host_expression(sema *s, const ast *n, host_clause clause, text *out, host_facts *facts)
{
	static const struct {
		const char *what, *otherwise;
		uint16_t code;
	} clauses[] = {{"grid",
			       ", or launch as many programs as there can be and let those return that have nothing to "
			       "do",
			       609},
		{"cost", "", 610},
		{"requires clause", ", or look at it in the kernel: device_assert", 617}}; /* ORDER host_clause */
	context c = {s, clause == HOST_COST, clauses[clause].what, clauses[clause].otherwise, clauses[clause].code};
	host h = emit(&c, n);
	if (h.ok && h.depth >= HOST_STACK) {
		sema_error(s, c.code, n->at, "a %s of more than %d values at once", c.what, HOST_STACK);
		return false;
	}
	if (h.ok) text_puts(out, h.text);
	if (facts) *facts = (host_facts){h.ok && h.known, h.ok && h.is_bool, h.ok && h.known ? h.i : 0};
	return h.ok;
}
