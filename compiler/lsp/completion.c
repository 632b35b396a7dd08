/* What may stand at a place, and the parameters of the call around it.
 *
 * In: a place.  Out: names with what they are; signatures.
 * The one idea: text that is being typed rarely parses, so the tokens in front of the place are what is looked at:
 * which brackets are open, and which names have been declared in blocks that are. */
#include "lsp.h"

#include <string.h>

#include "../lib/lib.h"
#include "../sema/internal.h"
#include "../syntax/syntax.h"
#include "grammar.h"

typedef struct bracket {
	int kind;           /* its token */
	const char *callee; /* the name in front of it, or null */
	bool method;        /* x.callee( */
	bool declares;      /* it holds the parameters of a declaration */
	uint32_t commas;
	const char *named; /* the argument that the place stands in, where it has a name */
	VEC(const char *) given;
} bracket;

typedef struct name_seen {
	const char *name;
	unsigned depth; /* braces around it; 1: a parameter */
} name_seen;

typedef struct context {
	arena *arena;
	program *p;
	const char *source;
	VEC(token) tokens; /* that end in front of the place, but for the word it stands in */
	VEC(bracket) open;
	VEC(name_seen) names;
	unsigned depth, pending; /* braces; names of the statement that has not ended */
	const char *tuned;       /* the kernel of the autotune block around the place */
	bool nothing;            /* in a comment or a string */
} context;

static bool is_word(int kind)
{
	return kind == TOKEN_NAME || (kind >= TOKEN_IN && kind <= TOKEN_TRY);
}

static const char *word(const context *c, uint32_t i)
{
	token t = c->tokens.at[i];
	return arena_strndup(c->arena, c->source + t.begin, t.end - t.begin);
}

static int kind_at(const context *c, int64_t i)
{
	return i >= 0 && i < c->tokens.n ? c->tokens.at[i].kind : TOKEN_END;
}

/* Is the place, behind the last token, in a comment? */
static bool in_comment(const char *s, const char *end)
{
	while (s < end) {
		if (end - s < 2 || *s != '/' || (s[1] != '/' && s[1] != '*')) {
			s++;
			continue;
		}
		const char *stop = s[1] == '/' ? memchr(s, '\n', (size_t)(end - s))
					       : memmem(s + 2, (size_t)(end - s) - 2, "*/", 2);
		if (!stop) return true;
		s = stop + 1;
	}
	return false;
}

static void read_tokens(context *c, uint32_t offset)
{
	diags unheard;
	lexer l;
	uint32_t last = 0;
	diags_init(&unheard, c->arena);
	lexer_init(&l, c->arena, &unheard, c->p->main);
	for (token t; (t = lexer_next(&l)).kind != TOKEN_END && t.begin < offset;) {
		bool wordy = is_word(t.kind) || (t.kind >= TOKEN_IMPORT && t.kind <= TOKEN_NAN);
		bool ended = t.end - t.begin > 1 && c->source[t.end - 1] == '"';
		c->nothing = t.kind == TOKEN_STRING && (t.end > offset || !ended);
		last = t.end;
		if (t.end < offset || !wordy) vec_push(c->arena, &c->tokens, t);
	}
	if (last < offset) c->nothing = in_comment(c->source + last, c->source + offset);
}

static void close_brace(context *c)
{
	if (c->depth) c->depth--;
	while (c->names.n && c->names.at[c->names.n - 1].depth > c->depth) c->names.n--;
	if (!c->depth) c->tuned = NULL;
}

static void see(context *c, const char *name, unsigned depth)
{
	name_seen n = {name, depth};
	vec_push(c->arena, &c->names, n);
}

static void open_bracket_at(context *c, uint32_t i)
{
	bracket b = {.kind = c->tokens.at[i].kind};
	if (b.kind == TOKEN_LPAREN && i && is_word(kind_at(c, i - 1))) {
		int before = kind_at(c, (int64_t)i - 2);
		b.callee = word(c, i - 1);
		b.method = before == TOKEN_DOT;
		b.declares = before == TOKEN_FN || before == TOKEN_KERNEL;
	}
	vec_push(c->arena, &c->open, b);
	c->depth += b.kind == TOKEN_LBRACE;
}

/* A declaration begins: nothing of what stands in front of it is open. */
static void begin_declaration(context *c, uint32_t i)
{
	c->open.n = c->names.n = c->depth = c->pending = 0;
	c->tuned = kind_at(c, i) == TOKEN_AUTOTUNE && is_word(kind_at(c, i + 1)) ? word(c, i + 1) : NULL;
}

/* The names of a let, var or const, which are there once its statement has ended. */
static void see_pattern(context *c, uint32_t i)
{
	bool tuple = kind_at(c, i + 1) == TOKEN_LPAREN || kind_at(c, i + 1) == TOKEN_LBRACKET;
	c->pending = 0;
	for (i += 1 + tuple; is_word(kind_at(c, i)); i += 2) {
		see(c, word(c, i), c->depth);
		c->pending++;
		if (!tuple || kind_at(c, i + 1) != TOKEN_COMMA) break;
	}
}

static void walk_token(context *c, uint32_t i)
{
	int kind = kind_at(c, i), before = kind_at(c, (int64_t)i - 1);
	bracket *in = c->open.n ? &c->open.at[c->open.n - 1] : NULL;
	switch (kind) {
	case TOKEN_LPAREN:
	case TOKEN_LBRACKET:
	case TOKEN_LBRACE: open_bracket_at(c, i); break;
	case TOKEN_RBRACE:
		while (c->open.n && c->open.at[c->open.n - 1].kind != TOKEN_LBRACE) c->open.n--;
		close_brace(c);
		if (c->open.n) c->open.n--;
		break;
	case TOKEN_RPAREN:
	case TOKEN_RBRACKET:
		if (in && in->kind != TOKEN_LBRACE) c->open.n--;
		break;
	case TOKEN_COMMA:
		if (in) in->commas++, in->named = NULL;
		break;
	case TOKEN_SEMI:
		while (c->open.n && c->open.at[c->open.n - 1].kind != TOKEN_LBRACE) c->open.n--;
		c->pending = 0;
		break;
	case TOKEN_FN:
	case TOKEN_KERNEL:
	case TOKEN_AUTOTUNE: begin_declaration(c, i); break;
	case TOKEN_CONST:
		if (in && in->kind != TOKEN_LBRACE) break;
		/* fall through */
	case TOKEN_LET:
	case TOKEN_VAR:
		if (c->depth) see_pattern(c, i);
		break;
	case TOKEN_ASSIGN:
		if (in && in->kind == TOKEN_LPAREN && is_word(before)) {
			in->named = word(c, i - 1);
			vec_push(c->arena, &in->given, in->named);
		}
		break;
	default: break;
	}
	if (!is_word(kind)) return;
	bool first = before == TOKEN_LPAREN || before == TOKEN_COMMA || before == TOKEN_CONST;
	if (in && in->declares && first) see(c, word(c, i), 1);
	if (before == TOKEN_FOR) see(c, word(c, i), c->depth + 1);
}

static context context_of(server *s, program *p, uint32_t offset)
{
	context c = {.arena = &s->scratch, .p = p, .source = p->main->text};
	resolve(p);
	read_tokens(&c, offset);
	for (uint32_t i = 0; i < c.tokens.n; i++) walk_token(&c, i);
	c.names.n -= c.pending; /* what is being declared */
	return c;
}

/* ---- parameters of what is called ---- */

typedef struct callee {
	const char *label, *said;
	VEC(const char *) parameters; /* as they stand in the label */
} callee;

/* Cuts the parameters out of a label: at the commas between its parentheses. */
static void cut(arena *a, callee *f)
{
	const char *s = strchr(f->label, '(');
	int depth = 0;
	if (!s) return;
	for (const char *from = ++s; *s; s++) {
		if (strchr("([", *s)) depth++;
		bool last = *s == ')' && !depth;
		if (!last && strchr(")]", *s)) depth--;
		if (!last && (*s != ',' || depth)) continue;
		while (*from == ' ') from++;
		if (s > from) vec_push(a, &f->parameters, arena_strndup(a, from, (size_t)(s - from)));
		from = s + 1;
		if (last) break;
	}
}

static const char *parameter_name(arena *a, const char *parameter)
{
	if (strncmp(parameter, "const ", 6) == 0) parameter += 6;
	return arena_strndup(
		a, parameter, strspn(parameter, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"));
}

static bool callee_of(const context *c, const char *name, bool tensor, callee *f)
{
	const symbol *s = tensor ? NULL : resolve_global(c->p, name);
	*f = (callee){0};
	if (tensor) {
		name = arena_printf(c->arena, "tensor.%s", name);
		if (!sema_builtin_find(name)) return false;
		f->label = builtin_label(c->arena, name);
		f->said = language_text(c->arena, name);
	} else {
		if (!s || (s->kind != SYMBOL_FN && s->kind != SYMBOL_BUILTIN && strcmp(name, "tensor") != 0))
			return false;
		f->label = s->kind == SYMBOL_TYPE ? builtin_label(c->arena, name) : symbol_label(c->arena, s);
		if (s->kind != SYMBOL_FN || s->library) f->said = language_text(c->arena, name);
		if (!f->said) f->said = symbol_comment(c->arena, s);
	}
	cut(c->arena, f);
	return true;
}

/* The innermost call around the place. */
static const bracket *call_around(const context *c)
{
	for (uint32_t i = c->open.n; i-- > 0;) {
		const bracket *b = &c->open.at[i];
		if (b->kind == TOKEN_LBRACE || b->declares) return NULL;
		if (b->callee) return b;
	}
	return NULL;
}

static json_t *markdown(const char *said)
{
	return json_pack("{s:s,s:o}", "kind", "markdown", "value", json_text(said, strlen(said)));
}

static void add_signature(const context *c, json_t *list, const bracket *b, bool tensor)
{
	callee f;
	if (!callee_of(c, b->callee, tensor, &f)) return;
	json_int_t active = b->commas + (b->method && !tensor);
	json_t *parameters = json_array();
	for (uint32_t i = 0; i < f.parameters.n; i++) {
		if (b->named && strcmp(parameter_name(c->arena, f.parameters.at[i]), b->named) == 0) active = i;
		json_array_append_new(parameters,
			json_pack("{s:o}", "label", json_text(f.parameters.at[i], strlen(f.parameters.at[i]))));
	}
	if (f.parameters.n && active >= f.parameters.n && strstr(f.parameters.at[f.parameters.n - 1], "..."))
		active = f.parameters.n - 1;
	json_t *made = json_pack("{s:o,s:o,s:I}", "label", json_text(f.label, strlen(f.label)), "parameters",
		parameters, "activeParameter", active);
	if (f.said) json_object_set_new(made, "documentation", markdown(f.said));
	json_array_append_new(list, made);
}

json_t *lsp_signature(server *s, const json_t *params, const char **why)
{
	uint32_t offset;
	document *d = feature_place(s, params, &offset);
	(void)why;
	if (!d) return NULL;
	context c = context_of(s, program_of(s, d), offset);
	const bracket *b = c.nothing ? NULL : call_around(&c);
	if (!b) return NULL;
	json_t *list = json_array();
	if (b->method) add_signature(&c, list, b, true);
	add_signature(&c, list, b, false);
	if (!json_array_size(list)) {
		json_decref(list);
		return NULL;
	}
	json_t *active = json_incref(json_object_get(json_array_get(list, 0), "activeParameter"));
	return json_pack("{s:o,s:i,s:o}", "signatures", list, "activeSignature", 0, "activeParameter", active);
}

/* ---- completion ---- */

enum {
	METHOD = 2,
	FUNCTION,
	VARIABLE = 6,
	PROPERTY = 10,
	KEYWORD = 14,
	CONSTANT = 21,
	TYPE_PARAMETER = 25
}; /* the protocol's kinds */

/* `rank`: the first letter of what items are sorted by. */
static void add(
	json_t *list, char rank, int kind, const char *label, const char *detail, const char *said, const char *insert)
{
	char first[2] = {rank, 0};
	json_t *sort = json_sprintf("%s%s", first, label);
	json_t *made = json_pack("{s:s,s:i,s:o}", "label", label, "kind", kind, "sortText", sort);
	if (detail) json_object_set_new(made, "detail", json_text(detail, strlen(detail)));
	if (said) json_object_set_new(made, "documentation", markdown(said));
	if (insert) json_object_set_new(made, "insertText", json_string(insert));
	json_array_append_new(list, made);
}

static void add_options(const context *c, json_t *list, const char *after)
{
	for (const kernel_option *o = kernel_options; o->name; o++)
		add(list, '0', PROPERTY, o->name, o->allowed, language_text(c->arena, o->name),
			arena_printf(c->arena, "%s%s", o->name, after));
}

static void add_arguments(const context *c, json_t *list, const bracket *b)
{
	for (int tensor = b->method; tensor >= 0; tensor--) {
		callee f;
		if (!callee_of(c, b->callee, tensor, &f)) continue;
		for (uint32_t i = b->commas + (b->method && !tensor); i < f.parameters.n; i++) {
			const char *name = parameter_name(c->arena, f.parameters.at[i]);
			bool given = !*name || strstr(f.parameters.at[i], "...");
			for (uint32_t k = 0; k < b->given.n; k++) given |= strcmp(b->given.at[k], name) == 0;
			const char *label = arena_printf(c->arena, "%s =", name);
			if (!given)
				add(list, '0', PROPERTY, label, f.parameters.at[i], NULL,
					arena_printf(c->arena, "%s = ", name));
		}
	}
}

static bool is_local(const context *c, const char *name)
{
	for (uint32_t i = 0; i < c->names.n; i++)
		if (strcmp(c->names.at[i].name, name) == 0) return true;
	return false;
}

/* What nothing hides. */
static void add_functions(const context *c, json_t *list, bool tensors)
{
	size_t n;
	const char *const *all = sema_builtin_names(c->arena, &n);
	for (size_t i = 0; i < n; i++)
		if (!resolve_global(c->p, all[i])->node && !is_local(c, all[i]) &&
			(strcmp(all[i], "to") != 0 || tensors))
			add(list, '2', FUNCTION, all[i], builtin_label(c->arena, all[i]),
				language_text(c->arena, all[i]), NULL);
	for (uint32_t i = 0; i < c->p->globals.n; i++) {
		const symbol *g = c->p->globals.at[i];
		if (resolve_global(c->p, g->name) != g || is_local(c, g->name) || g->kind == SYMBOL_KERNEL ||
			(tensors && g->kind == SYMBOL_CONST))
			continue;
		const char *said = g->library ? language_text(c->arena, g->name) : NULL;
		if (g->library && !said) continue; /* a part of one that the reference names */
		if (!said) said = symbol_comment(c->arena, g);
		add(list, g->library ? '2' : '1', g->kind == SYMBOL_CONST ? CONSTANT : FUNCTION, g->name,
			symbol_label(c->arena, g), said, NULL);
	}
}

static void add_members(const context *c, json_t *list)
{
	static const char *const members[] = {"shape", "dtype", "elem", "bytes"};
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		add(list, '0', PROPERTY, members[i], NULL, NULL, NULL);
	add_functions(c, list, true);
}

/* Names of open blocks, the innermost of each. */
static void add_locals(const context *c, json_t *list)
{
	for (uint32_t i = c->names.n; i-- > 0;) {
		bool hidden = false;
		for (uint32_t k = i + 1; k < c->names.n; k++)
			hidden |= strcmp(c->names.at[i].name, c->names.at[k].name) == 0;
		if (!hidden) add(list, '0', VARIABLE, c->names.at[i].name, NULL, NULL, NULL);
	}
}

static void add_tuned(const context *c, json_t *list)
{
	for (uint32_t i = 0; i < c->p->globals.n; i++) {
		const symbol *k = c->p->globals.at[i];
		if (k->kind != SYMBOL_KERNEL || strcmp(k->name, c->tuned) != 0) continue;
		for (uint32_t j = 0; j < k->nparameters; j++)
			add(list, '0', VARIABLE, k->parameters[j]->name, symbol_label(c->arena, k->parameters[j]), NULL,
				NULL);
	}
	add_options(c, list, "");
}

static void add_words(const context *c, json_t *list)
{
	static const char *const types[] = {"type", "shape"}; /* tensor is a function too */
	static const char *const places[] = {"in", "grid", "options", "cost", "requires", "key", "config", "reset",
		"restore", "scratch", "tolerance", "order", "try", "range", "static_range"};
	(void)c;
	for (const char *const *w = reserved_words; *w; w++) add(list, '3', KEYWORD, *w, NULL, NULL, NULL);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		add(list, '3', KEYWORD, places[i], NULL, NULL, NULL);
	for (int i = 0; i < SCALAR_COUNT; i++) add(list, '3', TYPE_PARAMETER, scalar_name((scalar)i), NULL, NULL, NULL);
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		add(list, '3', TYPE_PARAMETER, types[i], NULL, NULL, NULL);
}

/* Where a new name is being made up. */
static bool declares_here(const context *c)
{
	int last = kind_at(c, (int64_t)c->tokens.n - 1);
	return last == TOKEN_LET || last == TOKEN_VAR || last == TOKEN_FN || last == TOKEN_KERNEL ||
	       last == TOKEN_CONST || last == TOKEN_FOR;
}

json_t *lsp_completion(server *s, const json_t *params, const char **why)
{
	uint32_t offset;
	document *d = feature_place(s, params, &offset);
	(void)why;
	if (!d) return NULL;
	context c = context_of(s, program_of(s, d), offset);
	const bracket *in = c.open.n ? &c.open.at[c.open.n - 1] : NULL;
	json_t *list = json_array();
	if (c.nothing || declares_here(&c)) return list;
	if (kind_at(&c, (int64_t)c.tokens.n - 1) == TOKEN_DOT) {
		add_members(&c, list);
		return list;
	}
	if (in && in->callee && !in->named && strcmp(in->callee, "options") == 0)
		add_options(&c, list, " = ");
	else if (in && in->callee && !in->named && !in->declares)
		add_arguments(&c, list, in);
	if (c.tuned) add_tuned(&c, list);
	add_locals(&c, list);
	add_functions(&c, list, false);
	add_words(&c, list);
	return list;
}
