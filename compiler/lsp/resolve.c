/* Names to declarations.
 *
 * In: the trees of a program.  Out: a list of all places where a name stands, each with what it names; definition,
 * references, rename and hover are questions to that list.
 * The one idea: one walk with the language's own order of look-up: the scopes of the function, the program's
 * declarations, types, built-ins, the library.  A kernel is no value and hides nothing.  Nothing is computed: where the
 * meaning of a name depends on a type (a tensor's methods), the list says the function of that name. */
#include "lsp.h"

#include <string.h>

#include "../lib/lib.h"
#include "../sema/internal.h"

typedef struct scope {
	struct scope *up;
	const symbol *symbol;
} scope;

typedef struct walk {
	program *p;
	arena *arena;
	const ast *owner;
	bool options; /* names of options are values here */
} walk;

/* ---- symbols ---- */

static symbol *symbol_new(walk *w, symbol_kind kind, const char *name, span at, const ast *node)
{
	symbol *s = ARENA_NEW(w->arena, symbol);
	*s = (symbol){.kind = kind, .name = name, .at = at, .node = node, .owner = w->owner};
	return s;
}

static void occur(walk *w, span at, const symbol *s, bool declares)
{
	if (s && at.file)
		vec_push(w->arena, &w->p->occurrences, ((occurrence){.at = at, .symbol = s, .declares = declares}));
}

static const symbol *built_in(walk *w, symbol_kind kind, const char *name)
{
	program *p = w->p;
	for (uint32_t i = 0; i < p->built_in.n; i++)
		if (p->built_in.at[i]->kind == kind && strcmp(p->built_in.at[i]->name, name) == 0)
			return p->built_in.at[i];
	symbol *s = ARENA_NEW(w->arena, symbol);
	*s = (symbol){.kind = kind, .name = arena_strndup(w->arena, name, strlen(name))}; /* which may be a message's */
	vec_push(w->arena, &p->built_in, s);
	return s;
}

/* Declared at the top of a file of the program, or of the library. */
static const symbol *global(const program *p, const char *name, bool library, bool kernel)
{
	for (uint32_t i = 0; i < p->globals.n; i++) {
		const symbol *s = p->globals.at[i];
		if (s->library == library && (s->kind == SYMBOL_KERNEL) == kernel && strcmp(s->name, name) == 0)
			return s;
	}
	return NULL;
}

static const symbol *outside(walk *w, const char *name)
{
	const symbol *s = global(w->p, name, false, false);
	if (s) return s;
	if (stype_named(w->arena, name)) return built_in(w, SYMBOL_TYPE, name);
	bool ranges = strcmp(name, "range") == 0 || strcmp(name, "static_range") == 0;
	if (ranges || sema_builtin_find(name)) return built_in(w, SYMBOL_BUILTIN, name);
	s = global(w->p, name, true, false);
	return s ? s : global(w->p, name, false, true);
}

static const symbol *look_up(walk *w, const scope *in, const char *name)
{
	for (; in; in = in->up)
		if (strcmp(in->symbol->name, name) == 0) return in->symbol;
	const symbol *s = outside(w, name);
	if (!s && w->options && kernel_option_find(name)) s = built_in(w, SYMBOL_OPTION, name);
	return s;
}

static scope *bind(walk *w, scope *in, const symbol *s)
{
	scope *made = ARENA_NEW(w->arena, scope);
	*made = (scope){in, s};
	occur(w, s->at, s, true);
	return made;
}

/* A parameter of what is called or tuned, by its name. */
static const symbol *parameter_of(const symbol *f, const char *name)
{
	for (uint32_t i = 0; f && i < f->nparameters; i++)
		if (strcmp(f->parameters[i]->name, name) == 0) return f->parameters[i];
	return NULL;
}

/* ---- expressions ---- */

static void expression(walk *, const ast *, scope *);

static void all(walk *w, const ast *n, uint32_t from, scope *in)
{
	for (uint32_t i = from; n && i < n->nkids; i++) expression(w, n->kids[i], in);
}

static void call(walk *w, const ast *n, scope *in)
{
	const ast *callee = n->kids[0];
	const symbol *f = NULL;
	if (callee->kind == AST_MEMBER) {
		all(w, callee, 0, in);
		f = look_up(w, in, callee->text);
		occur(w, callee->mark, f, false);
		if (f) w->p->occurrences.at[w->p->occurrences.n - 1].method = true;
	} else {
		if (callee->kind == AST_NAME) f = look_up(w, in, callee->text);
		expression(w, callee, in);
	}
	for (uint32_t i = 1; i < n->nkids; i++) {
		const ast *a = n->kids[i];
		if (a->kind == AST_ARGUMENT && a->text) occur(w, a->mark, parameter_of(f, a->text), false);
		expression(w, a, in);
	}
}

static void expression(walk *w, const ast *n, scope *in)
{
	if (!n) return;
	if (n->kind == AST_NAME)
		occur(w, n->at, look_up(w, in, n->text), false);
	else if (n->kind == AST_CALL)
		call(w, n, in);
	else
		all(w, n, 0, in);
}

/* ---- statements ---- */

static scope *statement(walk *, const ast *, scope *);

static void block(walk *w, const ast *n, scope *in)
{
	for (uint32_t i = 0; n && i < n->nkids; i++)
		if (n->kids[i]) in = statement(w, n->kids[i], in);
}

static scope *bind_pattern(walk *w, const ast *pattern, const ast *n, scope *in)
{
	symbol_kind kind = n->op == AST_OP_BIND_CONST ? SYMBOL_CONST
			   : n->op == AST_OP_BIND_LET ? SYMBOL_LET
						      : SYMBOL_VAR;
	if (pattern->kind == AST_NAME) return bind(w, in, symbol_new(w, kind, pattern->text, pattern->at, n));
	for (uint32_t i = 0; i < pattern->nkids; i++) in = bind_pattern(w, pattern->kids[i], n, in);
	return in;
}

static scope *statement(walk *w, const ast *n, scope *in)
{
	switch (n->kind) {
	case AST_BIND:
		expression(w, n->kids[2], in);
		expression(w, n->kids[1], in);
		return bind_pattern(w, n->kids[0], n, in);
	case AST_BLOCK: block(w, n, in); break;
	case AST_IF:
		expression(w, n->kids[0], in);
		block(w, n->kids[1], in);
		if (n->kids[2]) statement(w, n->kids[2], in);
		break;
	case AST_WHILE:
		expression(w, n->kids[0], in);
		block(w, n->kids[1], in);
		break;
	case AST_FOR:
		expression(w, n->kids[0], in);
		block(w, n->kids[1], bind(w, in, symbol_new(w, SYMBOL_LOOP, n->text, n->mark, n)));
		break;
	default: all(w, n, 0, in);
	}
	return in;
}

/* ---- declarations ---- */

static void declare(walk *w, const ast *n, bool library)
{
	symbol *s;
	if (n->kind == AST_BIND)
		s = symbol_new(w, SYMBOL_CONST, n->kids[0]->text, n->kids[0]->at, n);
	else if (n->kind == AST_FN || n->kind == AST_KERNEL)
		s = symbol_new(w, n->kind == AST_FN ? SYMBOL_FN : SYMBOL_KERNEL, n->text, n->mark, n);
	else
		return;
	s->library = library;
	vec_push(w->arena, &w->p->globals, s);
	if (s->kind == SYMBOL_CONST) return;
	const ast *list = n->kids[0];
	s->parameters = ARENA_ARRAY(w->arena, symbol *, list->nkids + 1);
	w->owner = n;
	for (uint32_t i = 0; i < list->nkids; i++) {
		const ast *k = list->kids[i];
		symbol *made = symbol_new(w, SYMBOL_PARAMETER, k->text, k->mark, k);
		made->library = library;
		s->parameters[s->nparameters++] = made;
	}
	w->owner = NULL;
}

/* A named list: options, costs, configurations. */
static void named(walk *w, const ast *list, const symbol *kernel, scope *in)
{
	for (uint32_t i = 0; list && i < list->nkids; i++) {
		const ast *a = list->kids[i];
		const symbol *s = a->text ? parameter_of(kernel, a->text) : NULL;
		if (!s && a->text && kernel_option_find(a->text)) s = built_in(w, SYMBOL_OPTION, a->text);
		if (a->text) occur(w, a->mark, s, false);
		expression(w, a, in);
	}
}

static const symbol *symbol_of(const program *p, const ast *node)
{
	for (uint32_t i = 0; i < p->globals.n; i++)
		if (p->globals.at[i]->node == node) return p->globals.at[i];
	return NULL; /* not reached: every declaration of a tree was entered */
}

static scope *parameters(walk *w, const symbol *s, bool declares)
{
	scope *in = NULL;
	for (uint32_t i = 0; i < s->nparameters; i++) {
		scope *made = ARENA_NEW(w->arena, scope);
		*made = (scope){in, s->parameters[i]};
		if (declares) occur(w, s->parameters[i]->at, s->parameters[i], true);
		in = made;
	}
	return in;
}

static void function(walk *w, const ast *n)
{
	const symbol *s = symbol_of(w->p, n);
	occur(w, s->at, s, true);
	w->owner = n;
	scope *in = parameters(w, s, true);
	for (uint32_t i = 0; i < n->kids[0]->nkids; i++) all(w, n->kids[0]->kids[i], 0, in);
	if (n->kind == AST_FN) {
		expression(w, n->kids[1], in);
		block(w, n->kids[2], in);
	} else {
		all(w, n->kids[1], 0, in);
		named(w, n->kids[2], NULL, in);
		all(w, n->kids[3], 0, in);
		all(w, n->kids[4], 0, in);
		block(w, n->kids[5], in);
	}
	w->owner = NULL;
}

static void autotune(walk *w, const ast *n)
{
	const symbol *kernel = global(w->p, n->text, false, true);
	scope *in = kernel ? parameters(w, kernel, false) : NULL;
	occur(w, n->mark, kernel, false);
	w->options = true;
	all(w, n->kids[0], 0, in);
	for (uint32_t i = 1; i < n->nkids; i++) {
		const ast *k = n->kids[i];
		if (!k) continue;
		if (k->kind == AST_CONFIG) {
			named(w, k, kernel, in);
			continue;
		}
		if (k->kind == AST_AXIS) {
			const symbol *s = parameter_of(kernel, k->text);
			if (!s && kernel_option_find(k->text)) s = built_in(w, SYMBOL_OPTION, k->text);
			occur(w, k->mark, s, false);
		}
		all(w, k, 0, in);
	}
	w->options = false;
}

/* The file that an import names, from its beginning. */
static void import(walk *w, source_file *from, const ast *n)
{
	diags unheard;
	diags_init(&unheard, w->arena);
	source_file *f = n->text ? source_import(&w->p->sources, &unheard, from, n->text, n->mark) : NULL;
	if (f) occur(w, n->mark, symbol_new(w, SYMBOL_FILE, f->name, (span){f, 0, 0}, n), false);
}

static void load_library(walk *w)
{
	diags unheard;
	diags_init(&unheard, w->arena);
	for (const lib_source *lib = lib_sources; lib->name; lib++) {
		const char *name = arena_printf(w->arena, "<lib>/%s", lib->name);
		source_file *f = source_add(&w->p->sources, &unheard, (span){0}, name, lib->text, lib->bytes);
		const ast *root = parse_file(w->arena, &unheard, w->p->names, f);
		for (uint32_t i = 0; i < root->nkids; i++) declare(w, root->kids[i], true);
	}
}

void resolve(program *p)
{
	walk w = {.p = p, .arena = &p->arena};
	if (p->resolved) return;
	p->resolved = true;
	for (uint32_t t = 0; t < p->trees.n; t++)
		for (uint32_t i = 0; i < p->trees.at[t].root->nkids; i++)
			if (p->trees.at[t].root->kids[i]) declare(&w, p->trees.at[t].root->kids[i], false);
	load_library(&w);
	for (uint32_t t = 0; t < p->trees.n; t++)
		for (uint32_t i = 0; i < p->trees.at[t].root->nkids; i++) {
			const ast *n = p->trees.at[t].root->kids[i];
			if (!n) continue;
			if (n->kind == AST_BIND) {
				all(&w, n, 1, NULL);
				occur(&w, n->kids[0]->at, symbol_of(p, n), true);
			} else if (n->kind == AST_AUTOTUNE) {
				autotune(&w, n);
			} else if (n->kind == AST_IMPORT) {
				import(&w, p->trees.at[t].file, n);
			} else {
				function(&w, n);
			}
		}
}

/* ---- questions ---- */

const occurrence *resolve_at(program *p, uint32_t offset)
{
	const occurrence *before = NULL; /* the name that ends here */
	resolve(p);
	for (uint32_t i = 0; i < p->occurrences.n; i++) {
		const occurrence *o = &p->occurrences.at[i];
		if (o->at.file != p->main || offset < o->at.begin || offset > o->at.end) continue;
		if (offset < o->at.end) return o;
		before = o;
	}
	return before;
}

const symbol *resolve_global(program *p, const char *name)
{
	walk w = {.p = p, .arena = &p->arena};
	resolve(p);
	return outside(&w, name);
}

bool symbol_same(const symbol *a, const symbol *b)
{
	if (a == b) return true;
	return a->at.file && b->at.file && a->kind == b->kind && a->at.begin == b->at.begin &&
	       strcmp(a->at.file->identity, b->at.file->identity) == 0;
}
