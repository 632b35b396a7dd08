/* One kernel for one set of bindings: const parameters, options, promises, the body, the signature. */
#include "internal.h"

#include <string.h>

/* ---- defines ---- */

/* The text is parsed as the value of a constant in a file of its own, named after the option. */
static sval parse_define(sema *s, const char *name, const char *value, span at)
{
	sema_program *p = s->private->program;
	source_file *f = ARENA_NEW(s->arena, source_file);
	text t = {.arena = s->arena};
	text_printf(&t, "const %s = %s;\n", name, value);
	f->name = arena_printf(s->arena, "-D %s", name);
	f->text = t.at;
	f->size = t.n;
	diags private;
	diags_init(&private, s->arena);
	ast *tree = parse_file(s->arena, &private, p->names, f);
	const ast *bind = !private.errors && tree && tree->nkids == 1 ? tree->kids[0] : NULL;
	if (!bind || bind->kind != AST_BIND || bind->nkids < 3 || bind->kids[1])
		return sema_error(s, 604, at, "-D %s: '%.60s' is not an expression", name, value);
	return sema_constant_expression(s, bind->kids[2], arena_printf(s->arena, "the value of -D %s", name));
}

static const blkc_define *find_in(const blkc_define *all, size_t n, const char *name)
{
	const blkc_define *found = NULL; /* the last one wins, as on any command line */
	for (size_t i = 0; i < n; i++)
		if (all[i].name && strcmp(all[i].name, name) == 0) found = &all[i];
	return found;
}

static const blkc_define *find_define(const sema_request *r, const char *name)
{
	return find_in(r->defines, r->ndefines, name);
}

static bool known_elsewhere(sema *s, const char *name, bool constant)
{
	sema_program *p = s->private->program;
	if (!s->private->request->shared_defines) return false;
	for (uint32_t i = 0; i < p->kernels.n; i++) {
		const ast *k = p->kernels.at[i]->node->nkids ? find_parameter(p->kernels.at[i]->node, name) : NULL;
		if (k && k->flag == constant) return true;
	}
	return false;
}

/* What no kernel of a shared request knows is one mistake: it is reported with the first kernel. */
static bool reports_unknown(sema *s, const declaration *d)
{
	return !s->private->request->shared_defines || s->private->program->kernels.at[0] == d;
}

typedef VEC(const char *) name_list;

static void add_consts(sema *s, const declaration *d, name_list *out)
{
	const ast *ps = d->node->nkids ? d->node->kids[0] : NULL;
	for (uint32_t p = 0; ps && p < ps->nkids; p++)
		if (ps->kids[p] && ps->kids[p]->flag && ps->kids[p]->text) vec_push(s->arena, out, ps->kids[p]->text);
}

static void unknown_define(sema *s, const declaration *d, const char *name)
{
	sema_program *p = s->private->program;
	const ast *k = find_parameter(d->node, name);
	bool shared = s->private->request->shared_defines && p->kernels.n > 1;
	diag *e = shared ? sema_diag(s, 603, d->at, "-D %s: no kernel has such a const parameter or option", name)
			 : sema_diag(s, 603, d->at, "-D %s: kernel '%s' has no such const parameter or option", name,
				   d->name);
	name_list all = {0};
	if (!shared) add_consts(s, d, &all);
	for (uint32_t i = 0; shared && i < p->kernels.n; i++) add_consts(s, p->kernels.at[i], &all);
	for (const kernel_option *o = kernel_options; o->name; o++) vec_push(s->arena, &all, o->name);
	const char *near = nearest_name(name, all.at, all.n);
	text known = {.arena = s->arena};
	for (uint32_t i = 0; i < all.n; i++) text_printf(&known, "%s%s", i ? ", " : "", all.at[i]);
	if (k)
		diag_set_hint(s->diags, e, "'%s' is a run-time parameter: it is passed at launch", name);
	else if (near)
		diag_set_hint(s->diags, e, "did you mean '%s'?", near);
	else
		diag_set_hint(s->diags, e, "there are %s", known.at);
}

static void check_defines(sema *s, const declaration *d)
{
	const sema_request *r = s->private->request;
	for (size_t i = 0; i < r->ndefines && reports_unknown(s, d); i++) {
		const char *name = r->defines[i].name ? r->defines[i].name : "";
		const ast *k = find_parameter(d->node, name);
		if ((k && k->flag) || kernel_option_find(name) || known_elsewhere(s, name, true)) continue;
		unknown_define(s, d, name);
	}
}

/* ---- parameters ---- */

static const stype *parameter_type(sema *s, const ast *k)
{
	if (k->nkids == 0 || !k->kids[0]) return NULL; /* reported when the file was loaded */
	return sema_as_stype(s, sema_expression(s, k->kids[0]), "the type of a parameter");
}

static void bind_const(sema *s, const declaration *d, const ast *k, text *lines)
{
	const blkc_define *define = find_define(s->private->request, k->text);
	const ast *otherwise = k->nkids > 1 ? k->kids[1] : NULL;
	sval v = sval_poison(k->at);
	const stype *t = parameter_type(s, k);
	bool sensible = t && (t->kind == STYPE_TYPE || t->kind == STYPE_SHAPE ||
				     (t->kind == STYPE_VALUE && !t->value.pointer && !t->value.rank));
	if (t && !sensible)
		sema_error(s, 606, k->kids[0]->at, "a const parameter is a scalar, a type or a shape, not %s",
			sema_stype_text(s, t));
	const_bounds bounds = computed_bounds(s, k, t);
	if (define) {
		v = parse_define(s, k->text, define->value ? define->value : "", mark_of(k));
	} else if (computed_is(s, d->node, k)) {
		const sema_request *r = s->private->request;
		const blkc_define *given = find_in(r->values, r->nvalues, k->text);
		sensible = computed_add(s, k, t, bounds);
		if (given && sensible)
			v = parse_define(s, k->text, given->value ? given->value : "", mark_of(k));
		else if (sensible)
			v = computed_typical(s, k, t, bounds);
	} else if (otherwise) {
		v = sema_constant_expression(s, otherwise, "a default");
	} else {
		diag *e = sema_diag(
			s, 602, mark_of(k), "const parameter '%s' of kernel '%s' has no value", k->text, d->name);
		diag_set_hint(s->diags, e, "give it with -D %s=VALUE, or a default in the source", k->text);
	}
	v = sensible ? sema_coerce(s, v, t, arena_printf(s->arena, "const parameter '%s'", k->text))
		     : sval_poison(k->at);
	if (!define) computed_check_bounds(s, k, bounds, v);
	scope_bind(s, k->text, mark_of(k), BINDING_PARAMETER, v);
	if (sval_is_poison(v)) return;
	text_printf(lines, "const %s %s ", k->text, sema_stype_text(s, t));
	text_puts(lines, sema_constant_text(s, v));
	text_puts(lines, "\n");
}

static uint32_t power_of_two_in(uint32_t n)
{
	return n ? n & (0u - n) : 1;
}

static void apply_promises(sema *s, const declaration *d, ir_param *p)
{
	const sema_request *r = s->private->request;
	bool integer = !p->type.pointer && scalar_is_integer((scalar)p->type.elem);
	for (size_t i = 0; i < r->npromises; i++) {
		const blkc_promise *q = &r->promises[i];
		if (!q->name || strcmp(q->name, p->name) != 0) continue;
		if ((!integer && q->is_one) || (!integer && !p->type.pointer)) {
			sema_error(s, 605, d->at,
				"a promise about '%s', which is %s: integers are divisible or 1, pointers aligned",
				p->name, ir_type_name(s->arena, p->type));
			continue;
		}
		if (q->is_one) p->is_one = true;
		uint32_t by = power_of_two_in(q->divisible);
		if (by > p->divisible) p->divisible = by;
	}
}

static void check_promises(sema *s, const declaration *d)
{
	const sema_request *r = s->private->request;
	for (size_t i = 0; i < r->npromises && reports_unknown(s, d); i++) {
		const char *name = r->promises[i].name ? r->promises[i].name : "";
		const ast *k = find_parameter(d->node, name);
		if ((k && !k->flag) || known_elsewhere(s, name, false)) continue;
		diag *e = sema_diag(s, 605, d->at,
			"a promise about '%s', which is no run-time parameter of kernel '%s'", name, d->name);
		if (k) diag_set_hint(s->diags, e, "'%s' is a const parameter: bind it with -D", name);
	}
}

static void bind_runtime(sema *s, const declaration *d, const ast *k, text *lines)
{
	const stype *t = parameter_type(s, k);
	span at = mark_of(k);
	if (t && (t->kind != STYPE_VALUE || t->value.rank)) {
		diag *e = sema_diag(s, 606, k->kids[0]->at, "a kernel parameter is a scalar or a pointer, not %s",
			sema_stype_text(s, t));
		if (t->kind == STYPE_TYPE || t->kind == STYPE_SHAPE)
			diag_set_hint(s->diags, e, "write 'const %s: %s'", k->text, sema_stype_text(s, t));
		else
			diag_set_hint(s->diags, e, "pass a pointer, and load the tile");
		t = NULL;
	}
	if (!t) {
		scope_bind(s, k->text, at, BINDING_PARAMETER, sval_poison(at));
		return;
	}
	ir_value *v = ir_add_param(s->func, k->text, t->value, at);
	ir_param *p = &s->func->params[s->func->nparams - 1];
	apply_promises(s, d, p);
	if (p->is_one) v = ir_constant_int(&s->b, (scalar)t->value.elem, 1);
	scope_bind(s, k->text, at, BINDING_PARAMETER, sval_value(v, at));
	text_printf(lines, "param %s %s", k->text, ir_type_name(s->arena, t->value));
	if (p->is_one)
		text_puts(lines, " one");
	else if (p->divisible > 1)
		text_printf(lines, " %s %u", t->value.pointer ? "align" : "div", p->divisible);
	text_puts(lines, "\n");
}

/* ---- clauses ---- */

static void take_option(sema *s, const kernel_option *o, sval v)
{
	uint32_t *field = kernel_option_field(s->func, o);
	if (kernel_option_check(s, o, v, field, v.at)) s->func->stages_given |= field == &s->func->num_stages;
}

/* What is given for the option from outside: then the kernel's own value is not looked at. */
static const blkc_define *given_option(sema *s, const declaration *d, const kernel_option *o)
{
	return find_parameter(d->node, o->name) ? NULL : find_define(s->private->request, o->name);
}

static void read_options(sema *s, const declaration *d)
{
	const ast *list = d->node->nkids > 2 ? d->node->kids[2] : NULL;
	bool seen[KERNEL_OPTIONS] = {0};
	for (uint32_t i = 0; list && i < list->nkids; i++) {
		const ast *a = list->kids[i];
		if (!a || !a->text || a->nkids == 0) continue;
		const kernel_option *o = kernel_option_find(a->text);
		if (!o) {
			diag *e = sema_diag(s, 607, mark_of(a), "there is no option '%s'", a->text);
			diag_set_hint(s->diags, e,
				"options: num_warps, num_stages, num_ctas, maxnreg, max_registers, max_spills, "
				"max_shared, strict, launch_pdl");
			continue;
		}
		if (seen[o - kernel_options]) sema_error(s, 607, mark_of(a), "option '%s' is given twice", a->text);
		seen[o - kernel_options] = true;
		sval v = sema_constant_expression(s, a->kids[0], arena_printf(s->arena, "option '%s'", a->text));
		if (!sval_is_poison(v) && !given_option(s, d, o)) take_option(s, o, v);
	}
	for (const kernel_option *o = kernel_options; o->name; o++) {
		const blkc_define *define = given_option(s, d, o);
		if (!define) continue;
		sval v = parse_define(s, o->name, define->value ? define->value : "", d->at);
		if (!sval_is_poison(v)) take_option(s, o, v);
	}
}

static void read_grid(sema *s, const declaration *d, text *out, int64_t extents[3])
{
	const ast *list = d->node->nkids > 1 ? d->node->kids[1] : NULL;
	if (!list) return;
	if (list->nkids < 1 || list->nkids > 3)
		sema_error(s, 609, list->at, "a grid has one to three extents, found %u", list->nkids);
	for (uint32_t i = 0; i < list->nkids && i < 3; i++) {
		text postfix = {.arena = s->arena};
		const ast *n = list->kids[i];
		if (n && n->kind == AST_ARGUMENT) n = n->nkids ? n->kids[0] : NULL;
		host_facts facts = {0};
		if (host_expression(s, n, HOST_GRID, &postfix, &facts)) text_printf(out, "grid %u %s\n", i, postfix.at);
		extents[i] = facts.value;
	}
}

static void read_cost(sema *s, const declaration *d, text *out)
{
	const ast *list = d->node->nkids > 3 ? d->node->kids[3] : NULL;
	unsigned seen = 0;
	for (uint32_t i = 0; list && i < list->nkids; i++) {
		const ast *a = list->kids[i];
		if (!a || !a->text || a->nkids == 0) continue;
		unsigned which = strcmp(a->text, "bytes") == 0 ? 1 : strcmp(a->text, "flops") == 0 ? 2 : 0;
		if (!which || (seen & which)) {
			sema_error(s, 610, mark_of(a),
				which ? "cost '%s' is given twice"
				      : "there is no cost '%s': a cost has bytes and flops",
				a->text);
			continue;
		}
		seen |= which;
		text postfix = {.arena = s->arena};
		if (host_expression(s, a->kids[0], HOST_COST, &postfix, NULL))
			text_printf(out, "cost %s %s\n", a->text, postfix.at);
	}
}

static void write_options(const ir_func *f, text *out)
{
	text_printf(out, "num_warps %u\nnum_stages %u\nnum_ctas %u\n", f->num_warps, f->num_stages, f->num_ctas);
	if (f->maxnreg) text_printf(out, "maxnreg %u\n", f->maxnreg);
	if (f->max_registers != UINT32_MAX) text_printf(out, "max_registers %u\n", f->max_registers);
	if (f->max_spills != UINT32_MAX) text_printf(out, "max_spills %u\n", f->max_spills);
	if (f->max_shared != UINT32_MAX) text_printf(out, "max_shared %u\n", f->max_shared);
	if (f->strict) text_puts(out, "strict 1\n");
	if (!f->launch_pdl) text_puts(out, "launch_pdl 0\n");
}

/* ---- the whole ---- */

static declaration *find_kernel(sema_program *p, const sema_request *r)
{
	VEC(const char *) candidates = {0};
	for (uint32_t i = 0; i < p->kernels.n; i++) {
		if (r->kernel && strcmp(p->kernels.at[i]->name, r->kernel) == 0) return p->kernels.at[i];
		vec_push(p->arena, &candidates, p->kernels.at[i]->name);
	}
	diag *d = diag_error(p->diags, 0, (span){0}, "there is no kernel '%s'", r->kernel ? r->kernel : "");
	const char *near = r->kernel ? nearest_name(r->kernel, candidates.at, candidates.n) : NULL;
	if (near) diag_set_hint(p->diags, d, "did you mean '%s'?", near);
	return NULL;
}

static void bind_parameters(sema *s, const declaration *d, text *params, text *consts)
{
	const ast *list = d->node->kids[0];
	for (int round = 0; round < 2; round++) /* the types of run-time ones may name const ones */
		for (uint32_t i = 0; list && i < list->nkids; i++) {
			const ast *k = list->kids[i];
			if (!k || !k->text || k->flag != (round == 0)) continue;
			if (round == 0)
				bind_const(s, d, k, consts);
			else
				bind_runtime(s, d, k, params);
		}
}

ir_func *sema_specialise(sema_program *p, const sema_request *r, text *signature)
{
	uint32_t errors = p->diags->errors;
	declaration *d = find_kernel(p, r);
	if (!d || d->node->nkids < 6 || p->broken) return NULL;
	ir_func *func = ir_func_new(p->arena, d->name);
	func->at = d->at;
	sema state, *s = &state;
	sema_init(s, p, r, func);
	s->private->kernel = d->node;
	s->b.at = d->at;
	frame f = {.id = ++s->private->next_frame, .call = d->at};
	s->private->frame = &f;
	scope_open(s);
	f.returned = slot_new(s, sval_bool(false, d->at));
	f.result = slot_new(s, (sval){.kind = SVAL_UNDEFINED, .at = d->at});
	text params = {.arena = p->arena}, consts = {.arena = p->arena};
	check_defines(s, d);
	check_promises(s, d);
	bind_parameters(s, d, &params, &consts);
	read_options(s, d);
	s->private->options_read = true;
	text_printf(signature, "kernel %s\nsymbol %s\n%s%s", d->name, d->name, params.at ? params.at : "",
		consts.at ? consts.at : "");
	computed_signature(s, d->node, signature);
	int64_t extents[3] = {0};
	read_grid(s, d, signature, extents);
	read_cost(s, d, signature);
	requires_signature(s, d->node, signature);
	write_options(func, signature);
	if (d->autotune) {
		char digest[33];
		autotune_digest(p, d->autotune, digest);
		text_printf(signature, "source %s\n", digest);
		autotune_signature(s, d->autotune, d->node, signature);
	}
	sema_block(s, d->node->kids[5]);
	s->b.at = d->at;
	ir_build(&s->b, IR_RETURN, 0, NULL, 0, NULL, 0);
	overflow_check(s, extents);
	return p->diags->errors == errors ? func : NULL;
}
