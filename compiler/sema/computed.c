/* Const parameters that the host computes at each launch, and bounds of const parameters.
 *
 * In: a default over the launch's arguments, `const BLOCK: i32 = next_pow2(n) in 16..65536`.  Out: a signature line
 * from which the host computes the value; this compile is for one value, the request's, or a typical one where nobody
 * gives any.  The one idea: to the rest of sema such a parameter is a constant like any other:
 *
 *   computed BLOCK i32 16 65536 p4 next_pow2 ; n=p4 ; next_pow2(n)
 *   requires p4 next_pow2 1024 == ; n=p4 BLOCK=1024 ; BLOCK == next_pow2(n) ; BLOCK is computed at ..
 *
 * The second line is what keeps code for one value from a launch that computes another. */
#include "internal.h"

#include <string.h>

/* ---- which ---- */

static bool mentions_sms(const sema *s, const ast *n)
{
	if (!n || name_table_find(&s->private->program->user, "num_sms")) return false;
	if (n->kind == AST_NAME && strcmp(n->text, "num_sms") == 0) return true;
	for (uint32_t i = 0; i < n->nkids; i++)
		if (mentions_sms(s, n->kids[i])) return true;
	return false;
}

static const ast *default_of(const ast *parameter)
{
	return parameter->nkids > 1 ? parameter->kids[1] : NULL;
}

const computed_const *computed_find(const sema *s, const char *name)
{
	for (uint32_t i = 0; i < s->private->computed.n; i++)
		if (strcmp(s->private->computed.at[i].parameter->text, name) == 0) return &s->private->computed.at[i];
	return NULL;
}

bool computed_is(const sema *s, const ast *kernel, const ast *parameter)
{
	const ast *list = kernel->kids[0], *value = default_of(parameter);
	for (uint32_t i = 0; value && i < list->nkids; i++) {
		const ast *k = list->kids[i];
		if (k && k->text && (!k->flag || computed_find(s, k->text)) && ast_mentions(value, k->text))
			return true;
	}
	return mentions_sms(s, value);
}

/* ---- bounds ---- */

static bool bound(sema *s, const ast *n, int64_t *out)
{
	sval v = sema_constant_expression(s, n, "a bound");
	return !sval_is_poison(v) && sema_as_const_int(s, v, out, "a bound");
}

static bool is_integer(const stype *t)
{
	return t && t->kind == STYPE_VALUE && !t->value.pointer && !t->value.rank &&
	       scalar_is_integer((scalar)t->value.elem);
}

const_bounds computed_bounds(sema *s, const ast *parameter, const stype *t)
{
	const ast *list = parameter->nkids > 2 ? parameter->kids[2] : NULL;
	const_bounds b = {.given = false};
	if (!list || !list->kids[0] || !list->kids[1]) return b;
	if (t && !is_integer(t)) {
		sema_error(s, 621, list->at, "only integers have bounds, and '%s' is %s", parameter->text,
			sema_stype_text(s, t));
		return b;
	}
	if (!bound(s, list->kids[0], &b.low) || !bound(s, list->kids[1], &b.high)) return b;
	if (b.low > b.high) {
		diag *d = sema_diag(s, 621, list->at, "no value is in %lld..%lld", (long long)b.low, (long long)b.high);
		diag_set_hint(s->diags, d, "the lowest value comes first, and both ends are in it: %lld..%lld",
			(long long)b.high, (long long)b.low);
		return b;
	}
	b.given = true;
	return b;
}

void computed_check_bounds(sema *s, const ast *parameter, const_bounds b, sval v)
{
	if (!b.given || v.kind != SVAL_NUMBER || (v.number.i >= b.low && v.number.i <= b.high)) return;
	diag *d = sema_diag(s, 622, v.at.file ? v.at : mark_of(parameter), "%s = %s is not in its bounds, %lld..%lld",
		parameter->text, number_text(s, v.number), (long long)b.low, (long long)b.high);
	diag_add_label(s->diags, d, parameter->kids[2]->at, "both ends are in it");
}

/* ---- the value of this compile ---- */

static bool check_type(sema *s, const ast *parameter, const stype *t)
{
	if (!t) return false;
	if (is_integer(t) ||
		(t->kind == STYPE_VALUE && !t->value.pointer && !t->value.rank && t->value.elem == SCALAR_BOOL))
		return true;
	diag *d = sema_diag(s, 621, default_of(parameter)->at,
		"'%s' is computed at each launch, so it is an integer or a bool, not %s", parameter->text,
		sema_stype_text(s, t));
	diag_set_hint(s->diags, d, "give it a constant here, and compute in the kernel what depends on arguments");
	return false;
}

bool computed_add(sema *s, const ast *parameter, const stype *t, const_bounds b)
{
	bool good = check_type(s, parameter, t);
	computed_const c = {.parameter = parameter, .type = good ? t : NULL, .bounds = b};
	if (s->private->computed.n == SEMA_MAX_COMPUTED)
		sema_error(
			s, 621, mark_of(parameter), "a launch computes at most %d const parameters", SEMA_MAX_COMPUTED);
	vec_push(s->arena, &s->private->computed, c);
	return good;
}

static int64_t limited(int64_t v, const stype *t, const_bounds b)
{
	unsigned bits = scalar_bits((scalar)t->value.elem);
	bool is_signed = scalar_is_signed((scalar)t->value.elem);
	int64_t most = bits < 64 || is_signed ? (int64_t)(UINT64_MAX >> (65 - bits - !is_signed)) : INT64_MAX;
	int64_t low = b.given ? b.low : is_signed ? -most - 1 : 0, high = b.given ? b.high : most;
	return v < low ? low : v > high ? high : v;
}

/* What it is for typical arguments, so that what it is computed from and what is computed from it go together.  What
 * is wrong with the expression is reported when it is read for the host. */
sval computed_typical(sema *s, const ast *parameter, const stype *t, const_bounds b)
{
	const ast *value = default_of(parameter);
	diags private, *saved = s->diags;
	diags_init(&private, s->arena);
	text postfix = {.arena = s->arena};
	host_facts facts = {0};
	s->diags = &private;
	bool known = host_expression(s, value, HOST_TYPICAL, &postfix, &facts) && facts.known;
	s->diags = saved;
	if (t->value.elem == SCALAR_BOOL) return sval_bool(known && facts.value, value->at);
	return sval_int(limited(known ? facts.value : 1, t, b), value->at);
}

/* ---- the lines ---- */

/* What is declared behind a parameter has no value yet where it is computed. */
static bool check_order(sema *s, const ast *kernel, const ast *parameter)
{
	const ast *list = kernel->kids[0], *value = default_of(parameter);
	bool behind = false;
	for (uint32_t i = 0; i < list->nkids; i++) {
		const ast *k = list->kids[i];
		behind |= k == parameter;
		if (!behind || !k || !k->text || !k->flag || !ast_mentions(value, k->text)) continue;
		diag *d = k == parameter ? sema_diag(s, 621, value->at, "'%s' is computed from itself", k->text)
					 : sema_diag(s, 621, value->at,
						   "'%s' is computed from '%s', which is declared behind it",
						   parameter->text, k->text);
		if (k != parameter) diag_add_label(s->diags, d, mark_of(k), "declared here");
		return false;
	}
	return true;
}

static bool check_kind(sema *s, const computed_const *c, const host_facts *facts)
{
	bool is_bool = c->type->value.elem == SCALAR_BOOL;
	const ast *value = default_of(c->parameter);
	if (is_bool == facts->is_bool) return true;
	diag *d = sema_diag(s, 621, value->at,
		is_bool ? "'%s' is a bool, and this is a number" : "'%s' is %s, and this is a condition",
		c->parameter->text, sema_stype_text(s, c->type));
	diag_set_hint(s->diags, d, is_bool ? "compare it: %s != 0" : "choose between numbers: %s ? 1 : 0",
		sema_source_text(s, value->at));
	return false;
}

static void add_line(sema *s, const ast *kernel, computed_const *c, text *out)
{
	const ast *value = default_of(c->parameter);
	text postfix = {.arena = s->arena}, words = {.arena = s->arena};
	host_facts facts;
	if (!c->type || !check_order(s, kernel, c->parameter)) return;
	if (!host_expression(s, value, HOST_COMPUTED, &postfix, &facts) || !check_kind(s, c, &facts)) return;
	c->postfix = postfix.at;
	c->is_bool = facts.is_bool;
	c->depth = facts.depth;
	requires_names(s, value, true, &words);
	text_printf(out, "computed %s %s ", c->parameter->text, sema_stype_text(s, c->type));
	if (c->bounds.given)
		text_printf(out, "%lld %lld ", (long long)c->bounds.low, (long long)c->bounds.high);
	else
		text_puts(out, "- - ");
	text_printf(out, "%s ; %s ; ", c->postfix, words.n ? words.at : "");
	requires_source(s, value, out);
	text_puts(out, "\n");
}

void computed_signature(sema *s, const ast *kernel, text *out)
{
	for (uint32_t i = 0; i < s->private->computed.n; i++) add_line(s, kernel, &s->private->computed.at[i], out);
}

void computed_requires(sema *s, text *out)
{
	for (uint32_t i = 0; i < s->private->computed.n; i++) {
		const computed_const *c = &s->private->computed.at[i];
		const char *name = c->parameter->text;
		const ast *value = default_of(c->parameter);
		text words = {.arena = s->arena};
		if (!c->postfix) continue;
		sval v = scope_lookup(s, name, value->at);
		if (v.kind != SVAL_NUMBER) continue;
		requires_names(s, value, false, &words);
		text_printf(out, "requires %s %lld == ; %s%s%s=%s ; %s == ", c->postfix, (long long)v.number.i,
			words.n ? words.at : "", words.n ? " " : "", name, sema_constant_text(s, v), name);
		requires_source(s, value, out);
		text_puts(out, " ; it is computed at each launch, and this code is for one value\n");
	}
}

void computed_check_tuned(sema *s, const char *name, span at)
{
	for (uint32_t i = 0; i < s->private->computed.n; i++) {
		const ast *k = s->private->computed.at[i].parameter;
		if (strcmp(k->text, name) == 0 || !ast_mentions(default_of(k), name)) continue;
		diag *d = sema_diag(
			s, 621, at, "'%s' is tuned, and '%s' is computed from it at each launch", name, k->text);
		diag_add_label(s->diags, d, mark_of(k), "a launch computes it before it knows the configuration");
		diag_set_hint(s->diags, d, "tune '%s' too, or compute it in the kernel", k->text);
		return;
	}
}
