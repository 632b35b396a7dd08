/* The configurations of an autotune block, one signature line each: the axes' product and the explicit ones, as far as
 * the `where` clauses let them pass.
 *
 *   configuration BM=64,num_warps=4
 *   fits p2 64 % 0 ==          (for each requires clause of the kernel; requires.c; then for each condition over
 *   time p2 64 cdiv            arguments; then what the block's order says of it)
 *
 * What the request defines is bound for all of them: such a name is left out, and a configuration of which nothing is
 * left is none.  Of explicit ones, which belong together as they are, only those count that say the same as the request
 * themselves, if there are any; one that the request gives whole stands beside what others add to it, as the first of
 * its own names.  A condition sees the const parameters and options as a compile of that configuration would: defaults
 * that depend on what is tuned are computed again.
 *
 * A product has more members than anybody wants to look at.  A clause that refuses one refuses all that agree with it
 * in the axes up to the last one that the clause depends on, and these are counted, but not looked at.  A clause that
 * holds is evaluated again only when one of these axes changes:
 *   BM: [64, 128]; BN: [64, 128]; num_stages: [3, 4, 5]; where BM == BN; 8 of 12 are looked at, in 4 evaluations */
#include "internal.h"

#include <assert.h>
#include <string.h>

/* The value in the type of what it is for. */
sval autotune_value(sema *s, const ast *kernel, const char *name, const ast *value)
{
	const ast *parameter = find_parameter(kernel, name);
	sval v = sema_constant_expression(s, value, "a tuned value");
	if (sval_is_poison(v)) return v;
	if (parameter) return sema_const_argument(s, parameter, v);
	const kernel_option *o = kernel_option_find(name);
	uint32_t number;
	return o && kernel_option_check(s, o, v, &number, v.at) ? v : sval_poison(v.at);
}

typedef struct choice {
	const char *name;
	sval value;
} choice;
typedef VEC(choice) choices;

typedef struct axis {
	const char *name;
	sval *values;
	uint32_t n;
} axis;

typedef struct expansion {
	sema *s;
	const ast *block, *kernel;
	text *out;
	text fits; /* of what was looked at last: what it requires of the arguments, and its predicted time */
	choices chosen;
	name_table seen; /* texts of explicit configurations */
	uint32_t tried, kept;
	uint32_t *refused;   /* by the block's where clauses, numbered as its kids: each one's own */
	uint32_t refuses;    /* the clause that has refused what was looked at last; 0: none has */
	bool *holds;         /* by the block's kids: clauses known to hold for what is chosen; null: none are */
	const char *example; /* the first that was refused */
	bool bound;          /* the request defines some of what is tuned */
} expansion;

static bool is_defined(const sema *s, const char *name)
{
	const sema_request *r = s->private->request;
	for (size_t i = 0; i < r->ndefines; i++)
		if (r->defines[i].name && strcmp(r->defines[i].name, name) == 0) return true;
	return false;
}

/* The same of a name that the block tunes. */
static bool defined(expansion *e, const char *name)
{
	bool given = is_defined(e->s, name);
	e->bound = e->bound || given;
	return given;
}

static const choice *chosen(const expansion *e, const char *name)
{
	for (uint32_t i = 0; i < e->chosen.n; i++)
		if (strcmp(e->chosen.at[i].name, name) == 0) return &e->chosen.at[i];
	return NULL;
}

static void bind_parameters(expansion *e)
{
	sema *s = e->s;
	const ast *list = e->kernel->kids[0];
	for (uint32_t i = 0; list && i < list->nkids; i++) {
		const ast *k = list->kids[i];
		if (!k || !k->text || !k->flag) continue;
		const choice *c = chosen(e, k->text);
		const ast *otherwise = k->nkids > 1 ? k->kids[1] : NULL;
		if (c)
			scope_bind(s, k->text, k->at, BINDING_PARAMETER, c->value);
		else if (otherwise && !is_defined(s, k->text) && !computed_find(s, k->text))
			scope_bind(s, k->text, k->at, BINDING_PARAMETER,
				sema_const_argument(s, k, sema_constant_expression(s, otherwise, "a default")));
	}
}

static sval option_value(expansion *e, const kernel_option *o)
{
	sema *s = e->s;
	const choice *c = chosen(e, o->name);
	if (c) return c->value;
	const ast *list = e->kernel->nkids > 2 ? e->kernel->kids[2] : NULL;
	for (uint32_t i = 0; list && i < list->nkids && !is_defined(s, o->name); i++) {
		const ast *a = list->kids[i];
		if (a && a->text && a->nkids && strcmp(a->text, o->name) == 0)
			return sema_constant_expression(s, a->kids[0], arena_printf(s->arena, "option '%s'", o->name));
	}
	return kernel_option_constant(s, o, e->block->at);
}

/* Clauses see it as a name of this scope.  Functions that they call do not see this scope: they read the kernel's own
 * field (kernel_option_constant_name), which is set meanwhile. */
static void bind_option(expansion *e, const kernel_option *o)
{
	sema *s = e->s;
	int64_t n;
	sval v = option_value(e, o);
	scope_bind(s, names_intern(s->private->program->names, o->name, strlen(o->name)), e->block->at,
		BINDING_PARAMETER, v);
	if (kernel_option_constant_name(o->name) && !sval_is_poison(v) && sema_as_const_int(s, v, &n, "an option"))
		*kernel_option_field(s->func, o) = (uint32_t)n;
}

static bool add_conditions(expansion *e)
{
	sema *s = e->s;
	for (uint32_t i = 1; i < e->block->nkids; i++) {
		const ast *k = e->block->kids[i];
		text postfix = {.arena = s->arena};
		if (!k || k->kind != AST_WHERE || !k->nkids || !autotune_over_arguments(s, k->kids[0])) continue;
		if (!autotune_condition(s, e->block, k->kids[0], &postfix)) return false;
		text_printf(&e->fits, "fits %s\n", postfix.at);
	}
	return true;
}

static bool add_time(expansion *e)
{
	text postfix = {.arena = e->s->arena};
	if (!autotune_order(e->s, e->block, &postfix)) return false;
	text_printf(&e->fits, "time %s\n", postfix.at);
	return true;
}

/* Whether all conditions hold for what is chosen; *ok turns false after an error. */
static bool admitted(expansion *e, bool *ok)
{
	sema *s = e->s;
	bool holds = true;
	uint32_t asked[KERNEL_OPTIONS];
	scope_mark m = scope_open(s);
	e->refuses = 0;
	bind_parameters(e);
	for (uint32_t i = 0; i < KERNEL_OPTIONS; i++) asked[i] = *kernel_option_field(s->func, &kernel_options[i]);
	for (const kernel_option *o = kernel_options; o->name; o++)
		if (!find_parameter(e->kernel, o->name)) bind_option(e, o);
	for (uint32_t i = 1; i < e->block->nkids && holds; i++) {
		const ast *k = e->block->kids[i];
		if (!k || k->kind != AST_WHERE || !k->nkids || (e->holds && e->holds[i])) continue;
		if (autotune_over_arguments(s, k->kids[0])) continue;
		sval v = sema_constant_expression(s, k->kids[0], "a 'where' clause");
		if (sval_is_poison(v) || !sema_as_const_bool(s, v, &holds, "a 'where' clause")) *ok = holds = false;
		if (e->holds) e->holds[i] = holds;
		e->refused[i] += !holds;
		if (!holds) e->refuses = i;
	}
	e->fits = (text){.arena = s->arena};
	if (holds && *ok)
		*ok = requires_of_configuration(s, e->kernel, &e->fits) && add_conditions(e) &&
		      (!autotune_find(e->block, AST_ORDER) || add_time(e));
	for (uint32_t i = 0; i < KERNEL_OPTIONS; i++) *kernel_option_field(s->func, &kernel_options[i]) = asked[i];
	scope_close(s, m);
	return holds;
}

static bool add_line(expansion *e, bool once)
{
	text line = {.arena = e->s->arena};
	bool ok = true;
	if (!e->chosen.n) return true;
	bool passes = admitted(e, &ok);
	e->tried++;
	e->kept += passes;
	if (e->kept > SEMA_MAX_CONFIGS) {
		sema_error(e->s, 709, mark_of(e->block), "more than 100,000 configurations");
		return false;
	}
	if (!ok || (!passes && e->example)) return ok;
	for (uint32_t i = 0; i < e->chosen.n; i++)
		text_printf(&line, "%s%s=%s", i ? "," : "", e->chosen.at[i].name,
			sema_constant_text(e->s, e->chosen.at[i].value));
	if (!passes) return e->example = line.at, true;
	if (once) {
		const char *name = names_intern(e->s->private->program->names, line.at, line.n);
		if (name_table_find(&e->seen, name)) return true;
		name_table_set(e->s->arena, &e->seen, name, (void *)name);
	}
	text_printf(e->out, "configuration %s\n%s", line.at, e->fits.n ? e->fits.at : "");
	return true;
}

/* By how many axes, from the first on, each parameter of the kernel is decided: through its default, if it has one. */
typedef struct decisions {
	const axis *axes;
	uint32_t naxes;
	uint32_t *parameter;
} decisions;

/* The same of an expression over axes and over the kernel's first `parameters`. */
static uint32_t decided_by(const expansion *e, const decisions *d, const ast *expression, uint32_t parameters)
{
	uint32_t most = d->naxes;
	while (most && !ast_mentions(expression, d->axes[most - 1].name)) most--;
	const ast *list = e->kernel->kids[0];
	for (uint32_t i = 0; list && i < parameters && i < list->nkids; i++) {
		const ast *k = list->kids[i];
		if (!k || !k->text || !k->flag || !ast_mentions(expression, k->text)) continue;
		if (d->parameter[i] > most) most = d->parameter[i];
	}
	return most;
}

static void decide_parameters(const expansion *e, decisions *d)
{
	const ast *list = e->kernel->kids[0];
	uint32_t all = list ? list->nkids : 0;
	d->parameter = ARENA_ARRAY(e->s->arena, uint32_t, all + 1);
	for (uint32_t i = 0; i < all; i++) {
		const ast *k = list->kids[i];
		if (!k || !k->text || !k->flag) continue;
		if (computed_find(e->s, k->text))
			d->parameter[i] = d->naxes;
		else if (k->nkids > 1 && k->kids[1])
			d->parameter[i] = decided_by(e, d, k->kids[1], i);
	}
}

/* Whether an expression names an option, itself or in the functions and constants that it names, as far as that goes.
 * Functions of the library see other names than those of the program, so what either declares by a name counts. */
static bool reads_option(const expansion *e, const ast *expression, const char *option)
{
	const sema_program *p = e->s->private->program;
	name_table seen = {0};
	VEC(const ast *) left = {0};
	vec_push(e->s->arena, &left, expression);
	while (left.n) {
		const ast *n = left.at[--left.n];
		if (!n) continue;
		if ((n->kind == AST_NAME || n->kind == AST_MEMBER) && n->text) {
			if (strcmp(n->text, option) == 0) return true;
			const declaration *found[] = {
				name_table_find(&p->user, n->text), name_table_find(&p->library, n->text)};
			bool is_new = !name_table_find(&seen, n->text);
			for (int i = 0; i < 2 && is_new; i++)
				if (found[i]) vec_push(e->s->arena, &left, found[i]->node);
			if (is_new) name_table_set(e->s->arena, &seen, n->text, (void *)n);
		}
		for (uint32_t i = 0; i < n->nkids; i++) vec_push(e->s->arena, &left, n->kids[i]);
	}
	return false;
}

/* As decided_by, of a clause, which may name options too, as the functions may that it calls. */
static uint32_t clause_decided_by(const expansion *e, const decisions *d, const ast *clause)
{
	const ast *parameters = e->kernel->kids[0], *options = e->kernel->nkids > 2 ? e->kernel->kids[2] : NULL;
	uint32_t all = parameters ? parameters->nkids : 0, most = decided_by(e, d, clause, all);
	for (uint32_t i = 0; options && i < options->nkids; i++) {
		const ast *o = options->kids[i];
		if (!o || !o->text || !o->nkids || !reads_option(e, clause, o->text)) continue;
		uint32_t inside = decided_by(e, d, o->kids[0], all);
		if (inside > most) most = inside;
	}
	for (uint32_t i = most; i < d->naxes; i++) {
		const char *name = d->axes[i].name;
		if (kernel_option_constant_name(name) && reads_option(e, clause, name)) most = i + 1;
	}
	return most;
}

/* Members of the product behind number `at` that agree with it in the first `same` axes. */
static uint32_t behind(const axis *axes, uint32_t n, const uint32_t *at, uint32_t same)
{
	uint32_t all = 1, number = 0;
	for (uint32_t i = same; i < n; i++) {
		assert(at[i] < axes[i].n);
		all *= axes[i].n;
		number = number * axes[i].n + at[i];
	}
	return all - number - 1;
}

/* Counts through the axes' product, the last axis fastest. */
static bool cross(expansion *e, const axis *axes, uint32_t n)
{
	sema *s = e->s;
	uint32_t clauses = e->block->nkids;
	if (!n) return true;
	uint32_t *at = ARENA_ARRAY(s->arena, uint32_t, n);
	uint32_t *decided = ARENA_ARRAY(s->arena, uint32_t, clauses); /* by how many axes each clause is decided */
	decisions d = {.axes = axes, .naxes = n};
	decide_parameters(e, &d);
	for (uint32_t i = 0; i < clauses; i++) {
		const ast *k = e->block->kids[i];
		if (k && k->kind == AST_WHERE && k->nkids) decided[i] = clause_decided_by(e, &d, k->kids[0]);
	}
	e->holds = ARENA_ARRAY(s->arena, bool, clauses);
	for (;;) {
		e->chosen.n = 0;
		for (uint32_t i = 0; i < n; i++)
			vec_push(s->arena, &e->chosen, ((choice){axes[i].name, axes[i].values[at[i]]}));
		if (!add_line(e, false)) return false;
		uint32_t i = n;
		if (e->refuses) {
			i = decided[e->refuses];
			uint32_t skipped = behind(axes, n, at, i);
			e->tried += skipped;
			e->refused[e->refuses] += skipped;
			for (uint32_t j = i; j < n; j++) at[j] = 0;
		}
		while (i > 0 && ++at[i - 1] == axes[i - 1].n) at[--i] = 0;
		if (i == 0) break;
		for (uint32_t k = 0; k < clauses; k++) e->holds[k] = e->holds[k] && decided[k] < i;
	}
	e->holds = NULL;
	return true;
}

/* What an explicit configuration leaves open, and how it goes with the request. */
typedef struct explicit_one {
	choices open;
	choice first;
	bool agrees; /* what it names and the request too is the same */
} explicit_one;

/* As the request has it: const parameters are bound, options are in the function. */
static const char *given_text(expansion *e, const ast *a)
{
	sema *s = e->s;
	const kernel_option *o = find_parameter(e->kernel, a->text) ? NULL : kernel_option_find(a->text);
	sval v = o ? sval_typed_int(SCALAR_I32, kernel_option_value(s, o), a->at) : scope_lookup(s, a->text, a->at);
	return sema_constant_text(s, v);
}

static bool read_explicit(expansion *e, const ast *n, explicit_one *one)
{
	assert(n->kind == AST_CONFIG);
	sema *s = e->s;
	*one = (explicit_one){.agrees = true};
	for (uint32_t i = 0; i < n->nkids; i++) {
		const ast *a = n->kids[i];
		if (!a || !a->text || !a->nkids) continue;
		sval v = autotune_value(s, e->kernel, a->text, a->kids[0]);
		if (sval_is_poison(v)) return false;
		choice c = {a->text, v};
		if (!one->first.name) one->first = c;
		if (defined(e, a->text))
			one->agrees &= strcmp(given_text(e, a), sema_constant_text(s, v)) == 0;
		else
			vec_push(s->arena, &one->open, c);
	}
	return true;
}

static bool all_explicit(expansion *e)
{
	sema *s = e->s;
	VEC(explicit_one) all = {0};
	bool some_agree = false, some_open = false;
	for (uint32_t i = 1; i < e->block->nkids; i++) {
		const ast *k = e->block->kids[i];
		explicit_one one;
		if (!k || k->kind != AST_CONFIG) continue;
		if (!read_explicit(e, k, &one)) return false;
		vec_push(s->arena, &all, one);
		some_agree |= one.agrees;
		some_open |= one.agrees && one.open.n;
	}
	for (uint32_t i = 0; i < all.n; i++) {
		const explicit_one *one = &all.at[i];
		if (some_agree && !one->agrees) continue;
		e->chosen = one->open;
		if (!e->chosen.n && some_open && one->first.name) vec_push(s->arena, &e->chosen, one->first);
		if (!add_line(e, true)) return false;
	}
	return true;
}

/* Conditions that refuse everything are a slip, unless it is the request that binds what is tuned. */
static bool some_are_left(expansion *e)
{
	sema *s = e->s;
	const ast *block = e->block;
	uint32_t worst = 0;
	if (!e->tried || e->kept || e->bound) return true;
	for (uint32_t i = 1; i < block->nkids; i++)
		if (!worst || e->refused[i] > e->refused[worst]) worst = i;
	diag *d = sema_diag(s, 615, block->kids[worst]->at, "the 'where' of '%s' leaves none of %u configurations",
		block->text, e->tried);
	for (uint32_t i = 1; i < block->nkids; i++)
		if (e->refused[i] && e->refused[i] < e->tried)
			diag_add_label(s->diags, d, block->kids[i]->at, "refuses %u", e->refused[i]);
	diag_set_hint(s->diags, d, "the first that is refused: %s", e->example);
	return false;
}

bool autotune_configurations(sema *s, const ast *block, const ast *kernel, text *out)
{
	expansion e = {.s = s, .block = block, .kernel = kernel, .out = out};
	e.refused = arena_alloc(s->arena, (block->nkids + 1) * sizeof *e.refused);
	memset(e.refused, 0, (block->nkids + 1) * sizeof *e.refused);
	VEC(axis) axes = {0};
	uint64_t crossed = 1;
	for (uint32_t i = 1; i < block->nkids; i++) {
		const ast *k = block->kids[i];
		if (!k || k->kind != AST_AXIS || !k->text || defined(&e, k->text)) continue;
		axis a = {.name = k->text, .n = k->nkids};
		if (!a.n) return true;
		a.values = arena_alloc(s->arena, a.n * sizeof *a.values);
		for (uint32_t j = 0; j < a.n; j++) {
			a.values[j] = autotune_value(s, kernel, k->text, k->kids[j]);
			if (sval_is_poison(a.values[j])) return false;
		}
		vec_push(s->arena, &axes, a);
		crossed *= a.n;
		if (crossed > SEMA_MAX_CROSSED) return false; /* which autotune.c has reported */
	}
	if (!cross(&e, axes.at, axes.n)) return false;
	return all_explicit(&e) && some_are_left(&e);
}
