/* The autotune block: names and values checked against the kernel, then one canonical line for the signature.
 *
 *   autotune key M,N axis BM 64 128 axis num_warps 4 8 config BM=128,num_warps=8 where {BM * 2 <= 256} reset c
 *       restore x scratch y tolerance 0.01                                                       (all on one line)
 *   key p4 next_pow2 ; next_pow2(M)       (a line for each, where some key is more than a name)
 *   try 24
 *   where p5 64 >= / order p4 p5 *        (what the block says of this kernel as it is compiled; for packages)
 *
 * The configurations that this makes follow, a line each (configurations.c).
 * The line is for tuners; a compile with the bindings at hand uses them and nothing of this block.  A const name among
 * the keys is what a define gives, or the default: libblk looks for it among the arguments, finds none, and tells
 * records apart by their defines.  A key that is an expression stands in the line by the arguments that it names: so a
 * libblk that does not know such keys tells more apart than it must, never less. */
#include "internal.h"

#include <assert.h>
#include <string.h>

static const ast *find_key(const ast *block, const char *name)
{
	const ast *key = block->nkids ? block->kids[0] : NULL;
	for (uint32_t i = 0; key && i < key->nkids; i++)
		if (ast_mentions(key->kids[i], name)) return key->kids[i];
	return NULL;
}

const ast *autotune_find(const ast *block, ast_kind kind)
{
	for (uint32_t i = 1; i < block->nkids; i++)
		if (block->kids[i] && block->kids[i]->kind == kind && block->kids[i]->nkids) return block->kids[i];
	return NULL;
}

/* Names that an axis or a configuration may bind: const parameters and options. */
static bool check_tunable(sema_program *p, const ast *kernel, const ast *block, const char *name, span at)
{
	if (!name) return false;
	const ast *k = find_parameter(kernel, name), *key = find_key(block, name);
	if (key && k && k->flag) {
		diag *e = diag_error(p->diags, 612, at, "'%s' is a key and cannot be tuned", name);
		diag_add_label(p->diags, e, key->at, "whoever launches says what it is");
		return false;
	}
	if ((k && k->flag) || (!k && kernel_option_find(name))) return true;
	diag *d = diag_error(p->diags, 612, at,
		k ? "'%s' is a run-time parameter and cannot be tuned"
		  : "'%s' is neither a const parameter of the kernel nor an option",
		name);
	VEC(const char *) candidates = {0};
	const ast *list = kernel->kids[0];
	for (uint32_t i = 0; list && i < list->nkids; i++)
		if (list->kids[i] && list->kids[i]->flag && list->kids[i]->text)
			vec_push(p->arena, &candidates, list->kids[i]->text);
	for (const kernel_option *o = kernel_options; o->name; o++) vec_push(p->arena, &candidates, o->name);
	const char *near = nearest_name(name, candidates.at, candidates.n);
	if (near) diag_set_hint(p->diags, d, "did you mean '%s'?", near);
	return false;
}

static void check_key(sema_program *p, const ast *kernel, const ast *n)
{
	if (n && n->kind == AST_NAME && !find_parameter(kernel, n->text))
		diag_error(p->diags, 613, n->at, "'%s' is not a parameter of the kernel", n->text);
}

static void check_pointer(sema_program *p, const ast *kernel, const ast *n)
{
	if (!n || !n->text) return;
	const ast *k = find_parameter(kernel, n->text);
	bool is_pointer = k && k->nkids && k->kids[0] && k->kids[0]->kind == AST_POINTER;
	if (is_pointer && !k->flag) return;
	diag_error(p->diags, 613, n->at, "'%s' is not a pointer parameter of the kernel", n->text);
}

static void check_twice(sema_program *p, name_table *seen, const ast *n)
{
	const ast *old = n->text ? name_table_find(seen, n->text) : NULL;
	if (old) {
		diag *d = diag_error(p->diags, 612, mark_of(n), "'%s' is given twice", n->text);
		diag_add_label(p->diags, d, mark_of(old), "first given here");
	}
	if (n->text) name_table_set(p->arena, seen, n->text, (void *)n);
}

static void check_item(sema_program *p, const ast *kernel, const ast *block, const ast *n, name_table *axes,
	uint64_t *product, uint64_t *configs)
{
	name_table seen = {0};
	switch (n->kind) {
	case AST_AXIS:
		check_tunable(p, kernel, block, n->text, mark_of(n));
		check_twice(p, axes, n);
		*product = (*product ? *product : 1) * (n->nkids ? n->nkids : 1);
		if (*product > SEMA_MAX_CROSSED) *product = SEMA_MAX_CROSSED + 1;
		break;
	case AST_CONFIG:
		++*configs;
		for (uint32_t i = 0; i < n->nkids; i++) {
			if (!n->kids[i]) continue;
			if (!n->kids[i]->text)
				diag_error(p->diags, 612, n->kids[i]->at, "a configuration names its values: BM = 128");
			else if (check_tunable(p, kernel, block, n->kids[i]->text, mark_of(n->kids[i])))
				check_twice(p, &seen, n->kids[i]);
		}
		break;
	case AST_RESET:
	case AST_RESTORE:
	case AST_SCRATCH:
		for (uint32_t i = 0; i < n->nkids; i++) check_pointer(p, kernel, n->kids[i]);
		break;
	case AST_ORDER:
	case AST_TRY:
		if (autotune_find(block, n->kind) != n && n->nkids) {
			diag *d = diag_error(
				p->diags, 619, n->mark, "'%s' is given twice", n->kind == AST_ORDER ? "order" : "try");
			diag_add_label(p->diags, d, autotune_find(block, n->kind)->mark, "first given here");
		}
		break;
	default: break;
	}
}

void autotune_check(sema_program *p, const ast *n)
{
	assert(n->kind == AST_AUTOTUNE);
	declaration *kernel = n->text ? name_table_find(&p->user, n->text) : NULL;
	if (!kernel || kernel->kind != DECLARES_KERNEL) {
		diag *d = diag_error(p->diags, 611, mark_of(n), "there is no kernel '%s'", n->text ? n->text : "?");
		VEC(const char *) candidates = {0};
		for (uint32_t i = 0; i < p->kernels.n; i++) vec_push(p->arena, &candidates, p->kernels.at[i]->name);
		const char *near = n->text ? nearest_name(n->text, candidates.at, candidates.n) : NULL;
		if (near) diag_set_hint(p->diags, d, "did you mean '%s'?", near);
		return;
	}
	if (kernel->autotune) {
		diag *d = diag_error(p->diags, 611, mark_of(n), "'%s' has an autotune block already", n->text);
		diag_add_label(p->diags, d, mark_of(kernel->autotune), "first given here");
		return;
	}
	n = space_expand(p, kernel->node, n);
	kernel->autotune = n;
	if (kernel->node->nkids == 0) return;
	const ast *key = n->nkids ? n->kids[0] : NULL;
	for (uint32_t i = 0; key && i < key->nkids; i++) check_key(p, kernel->node, key->kids[i]);
	uint64_t product = 0, configs = 0;
	name_table axes = {0};
	for (uint32_t i = 1; i < n->nkids; i++)
		if (n->kids[i]) check_item(p, kernel->node, n, n->kids[i], &axes, &product, &configs);
	if (product + configs > SEMA_MAX_CROSSED)
		diag_error(p->diags, 709, mark_of(n), "more than 1,000,000 configurations before 'where' clauses");
}

/* ---- the line ---- */

static void add_source(sema *s, text *out, span at)
{
	(void)s;
	bool space = false;
	for (uint32_t i = at.begin; at.file && i < at.end && i < at.file->size; i++) {
		char c = at.file->text[i];
		bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
		if (!blank) {
			if (space) text_puts(out, " ");
			text_add(out, &c, 1);
		}
		space = blank;
	}
}

static bool add_axis(sema *s, const ast *kernel, const ast *n, text *out)
{
	assert(n->kind == AST_AXIS);
	const ast *parameter = find_parameter(kernel, n->text);
	binding *old = scope_find(s, n->text);
	bool first = !old || old->scope != s->private->scope;
	if (parameter && !parameter->flag) return false; /* reported when the file was loaded */
	if (parameter) computed_check_tuned(s, n->text, n->mark);
	text_printf(out, " axis %s", n->text);
	for (uint32_t i = 0; i < n->nkids; i++) {
		sval v = autotune_value(s, kernel, n->text, n->kids[i]);
		if (sval_is_poison(v)) return false;
		text_printf(out, " %s", sema_constant_text(s, v));
		if (i == 0 && first) scope_bind(s, n->text, n->mark, BINDING_PARAMETER, v);
	}
	return true;
}

static bool add_config(sema *s, const ast *kernel, const ast *n, text *out)
{
	assert(n->kind == AST_CONFIG);
	text_puts(out, " config ");
	for (uint32_t i = 0; i < n->nkids; i++) {
		const ast *a = n->kids[i];
		sval v = a->nkids ? autotune_value(s, kernel, a->text, a->kids[0]) : sval_poison(a->at);
		if (find_parameter(kernel, a->text)) computed_check_tuned(s, a->text, mark_of(a));
		if (sval_is_poison(v)) return false;
		text_printf(out, "%s%s=%s", i ? "," : "", a->text, sema_constant_text(s, v));
	}
	return true;
}

/* Whether a condition is over arguments; the others are settled here. */
bool autotune_over_arguments(const sema *s, const ast *condition)
{
	for (uint32_t i = 0; i < s->func->nparams; i++)
		if (ast_mentions(condition, s->func->params[i].name)) return true;
	return false;
}

static bool add_where(sema *s, const ast *n, const ast *block, text *out)
{
	assert(n->kind == AST_WHERE);
	bool b;
	if (autotune_over_arguments(s, n->kids[0])) {
		text postfix = {.arena = s->arena};
		if (!autotune_condition(s, block, n->kids[0], &postfix)) return false;
	} else if (!sema_as_const_bool(
			   s, sema_constant_expression(s, n->kids[0], "a 'where' clause"), &b, "a 'where' clause"))
		return false;
	text_puts(out, " where {");
	add_source(s, out, n->kids[0]->at);
	text_puts(out, "}");
	return true;
}

static bool add_item(sema *s, const ast *kernel, const ast *n, text *out)
{
	switch (n->kind) {
	case AST_AXIS: return add_axis(s, kernel, n, out);
	case AST_CONFIG: return add_config(s, kernel, n, out);
	case AST_RESET:
	case AST_RESTORE:
	case AST_SCRATCH:
		text_puts(out, n->kind == AST_RESET ? " reset " : n->kind == AST_RESTORE ? " restore " : " scratch ");
		for (uint32_t i = 0; i < n->nkids; i++) text_printf(out, "%s%s", i ? "," : "", n->kids[i]->text);
		return true;
	case AST_TOLERANCE: {
		sval v = sema_constant_expression(s, n->nkids ? n->kids[0] : NULL, "a tolerance");
		if (sval_is_poison(v)) return false;
		if (v.kind == SVAL_NUMBER && (scalar_is_float(v.number.type) ? v.number.f >= 0 : v.number.i >= 0) &&
			v.number.type != SCALAR_BOOL) {
			text_printf(out, " tolerance %s", number_text(s, v.number));
			return true;
		}
		sema_error(s, 614, v.at, "a tolerance is a number of 0 or more, found %s", sema_type_text(s, v));
		return false;
	}
	default: return true;
	}
}

/* ---- what a search goes by ---- */

static const ast no_key = {.kind = AST_LIST};

static const ast *key_of(const ast *block)
{
	return block->kids[0] ? block->kids[0] : &no_key;
}

bool autotune_condition(sema *s, const ast *block, const ast *n, text *out)
{
	host_facts facts;
	if (!host_expression_of_keys(s, n, HOST_WHERE, key_of(block), out, &facts)) return false;
	if (facts.is_bool) return true;
	sema_error(s, 619, n->at, "a where clause is a condition, found a number");
	return false;
}

bool autotune_order(sema *s, const ast *block, text *out)
{
	const ast *order = autotune_find(block, AST_ORDER);
	uint32_t work = s->private->work; /* the limit is for what is compiled; this is once for each configuration */
	bool ok = host_expression_of_keys(s, order->kids[0], HOST_ORDER, key_of(block), out, NULL);
	s->private->work = work;
	return ok;
}

/* The arguments that the keys name, once each, as far as `n` names some that are not in `out` yet. */
static void add_key_names(sema *s, const ast *kernel, const ast *n, name_table *seen, text *out)
{
	if (!n) return;
	if (n->kind == AST_NAME && find_parameter(kernel, n->text) && !name_table_find(seen, n->text)) {
		text_printf(out, "%s%s", out->n ? "," : "", n->text);
		name_table_set(s->arena, seen, n->text, (void *)n);
	}
	for (uint32_t i = n->kind == AST_CALL && n->nkids && n->kids[0] && n->kids[0]->kind == AST_NAME; i < n->nkids;
		i++)
		add_key_names(s, kernel, n->kids[i], seen, out);
}

/* A line for each key, where some are expressions; const parameters alone are told by defines. */
static bool add_key_lines(sema *s, const ast *key, text *out)
{
	bool all_names = true;
	for (uint32_t i = 0; key && i < key->nkids; i++) all_names &= key->kids[i] && key->kids[i]->kind == AST_NAME;
	for (uint32_t i = 0; key && !all_names && i < key->nkids; i++) {
		const ast *k = key->kids[i];
		text postfix = {.arena = s->arena}, source = {.arena = s->arena};
		host_facts facts = {0};
		for (uint32_t j = 0; k->kind == AST_NAME && j < s->func->nparams; j++)
			if (s->func->params[j].name == k->text) text_printf(&postfix, "p%u", j);
		if (k->kind == AST_NAME && !postfix.n) continue;
		if (!postfix.n && !host_expression(s, k, HOST_KEY, &postfix, &facts)) return false;
		add_source(s, &source, k->at);
		if (!facts.known) text_printf(out, "key %s ; %s\n", postfix.at, source.at);
	}
	return true;
}

/* How many are tried; 0 after an error. */
static uint32_t read_try(sema *s, const ast *try)
{
	if (!try) return SEMA_TRY;
	sval v = sema_constant_expression(s, try->kids[0], "the number of a 'try'");
	bool whole = v.kind == SVAL_NUMBER && !scalar_is_float(v.number.type) && v.number.type != SCALAR_BOOL;
	if (sval_is_poison(v)) return 0;
	if (whole && v.number.i >= 1 && v.number.i <= SEMA_MAX_CONFIGS) return (uint32_t)v.number.i;
	sema_error(s, 619, v.at, "'try' takes a number from 1 to %d, found %s", SEMA_MAX_CONFIGS,
		whole ? number_text(s, v.number) : sema_type_text(s, v));
	return 0;
}

static bool add_search(sema *s, const ast *block, text *out)
{
	const ast *order = autotune_find(block, AST_ORDER), *try = autotune_find(block, AST_TRY);
	uint32_t tries = read_try(s, try);
	bool ok = tries > 0;
	if (try || order) text_printf(out, "try %u\n", tries);
	for (uint32_t i = 1; i < block->nkids; i++) {
		const ast *k = block->kids[i];
		text postfix = {.arena = s->arena};
		if (!k || k->kind != AST_WHERE || !k->nkids || !autotune_over_arguments(s, k->kids[0])) continue;
		if (autotune_condition(s, block, k->kids[0], &postfix))
			text_printf(out, "where %s\n", postfix.at);
		else
			ok = false;
	}
	text postfix = {.arena = s->arena};
	if (order && autotune_order(s, block, &postfix))
		text_printf(out, "order %s\n", postfix.at);
	else if (order)
		ok = false;
	return ok;
}

bool autotune_signature(sema *s, const ast *n, const ast *kernel, text *out)
{
	assert(n->kind == AST_AUTOTUNE && n->nkids);
	bool ok = true;
	text search = {.arena = s->arena};
	scope_mark m = scope_open(s);
	for (const kernel_option *o = kernel_options; o->name; o++) {
		const char *name = names_intern(s->private->program->names, o->name, strlen(o->name));
		scope_bind(s, name, n->at, BINDING_PARAMETER, kernel_option_constant(s, o, n->at));
	}
	const ast *key = n->kids[0];
	ok = add_key_lines(s, key, &search) && add_search(s, n, &search);
	scope_mark axes = scope_open(s);
	text_puts(out, "autotune");
	text arguments = {.arena = s->arena};
	name_table seen = {0};
	add_key_names(s, kernel, key, &seen, &arguments);
	if (arguments.n) text_printf(out, " key %s", arguments.at);
	for (int round = 0; round < 2; round++) /* the conditions see the axes, wherever those stand */
		for (uint32_t i = 1; i < n->nkids; i++) {
			const ast *k = n->kids[i];
			if (!k || (k->kind == AST_WHERE) != (round == 1)) continue;
			ok = (k->kind == AST_WHERE ? k->nkids && add_where(s, k, n, out)
						   : add_item(s, kernel, k, out)) &&
			     ok;
		}
	text_printf(out, "\n%s", search.n ? search.at : "");
	scope_close(s, axes);
	scope_close(s, m);
	return ok && autotune_configurations(s, n, kernel, out);
}
