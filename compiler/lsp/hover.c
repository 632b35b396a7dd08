/* What is said of a name: its declaration, types, comment; of a built-in, the line of the reference.
 *
 * In: a place.  Out: Markdown.
 * The one idea: a declaration's text is cut out of the source as it was written; what the check found out is added. */
#include "lsp.h"

#include <string.h>

#include "../sema/internal.h"

enum { LINES = 12 }; /* of a declaration that are shown */

const char *language_text(arena *a, const char *name)
{
	text out = {.arena = a};
	for (const language_entry *e = language_entries; e->name; e++)
		if (strcmp(e->name, name) == 0) text_printf(&out, "%s%s", out.n ? "\n\n" : "", e->text);
	return out.at;
}

const char *builtin_label(arena *a, const char *name)
{
	const builtin *b = sema_builtin_find(name);
	if (!b) return arena_printf(a, "%s(lo?, hi, step?)", name); /* range, static_range */
	text out = {.arena = a};
	bool method = strncmp(name, "tensor.", 7) == 0;
	const char *parameters = b->parameters;
	if (method) { /* its first parameter is the tensor */
		text_printf(&out, "%.*s.%s(", (int)strcspn(parameters, " "), parameters, name + 7);
		parameters += strcspn(parameters, " ");
		parameters += *parameters == ' ';
	} else {
		text_printf(&out, "%s(", name);
	}
	for (const char *p = parameters; *p; p++) text_puts(&out, *p == ' ' ? ", " : (char[]){*p, 0});
	text_puts(&out, ")");
	return out.at;
}

/* From the word to the body, or to the end; of a long one the first lines. */
static const char *declaration_text(arena *a, const ast *n)
{
	const ast *body = n->kind == AST_FN       ? n->kids[2]
			  : n->kind == AST_KERNEL ? n->kids[5]
			  : n->kind == AST_FOR    ? n->kids[1]
						  : NULL;
	const char *s = n->at.file->text + n->at.begin;
	size_t size = (body ? body->at.begin : n->at.end) - n->at.begin, end = 0;
	while (size && strchr(" \t\r\n", s[size - 1])) size--;
	for (int lines = 0; end < size; end++)
		if (s[end] == '\n' && ++lines == LINES) break;
	return arena_printf(a, "%.*s%s", (int)end, s, end < size ? "\n.." : "");
}

const char *symbol_label(arena *a, const symbol *s)
{
	if (s->kind == SYMBOL_BUILTIN) return builtin_label(a, s->name);
	if (!s->node || s->kind == SYMBOL_FILE) return s->name;
	if (s->kind != SYMBOL_FN && s->kind != SYMBOL_KERNEL) return declaration_text(a, s->node);
	text out = {.arena = a}; /* in one line, without clauses */
	const ast *list = s->node->kids[0], *result = s->kind == SYMBOL_FN ? s->node->kids[1] : NULL;
	text_printf(&out, "%s %s(", s->kind == SYMBOL_FN ? "fn" : "kernel", s->name);
	for (uint32_t i = 0; i < list->nkids; i++)
		text_printf(&out, "%s%s", i ? ", " : "", declaration_text(a, list->kids[i]));
	text_puts(&out, ")");
	if (result) text_printf(&out, " -> %s", declaration_text(a, result));
	return out.at;
}

/* The lines of // in front of byte `at`, or a comment between the marks that ends there. */
const char *symbol_comment(arena *a, const symbol *s)
{
	if (!s->node || (s->kind > SYMBOL_CONST && s->kind != SYMBOL_LET && s->kind != SYMBOL_VAR)) return NULL;
	const source_file *f = s->at.file;
	const char *t = f->text;
	text out = {.arena = a};
	size_t line = s->node->at.begin, top;
	while (line && t[line - 1] != '\n') line--;
	top = line;
	for (size_t p = top; p;) { /* the line above */
		size_t start = p - 1;
		while (start && t[start - 1] != '\n') start--;
		size_t word = start + strspn(t + start, " \t");
		if (t[word] != '/' || t[word + 1] != '/') break;
		top = p = start;
	}
	if (top == line) {
		size_t end = line;
		while (end && strchr(" \t\r\n", t[end - 1])) end--;
		if (end < 4 || t[end - 1] != '/' || t[end - 2] != '*') return NULL;
		for (top = end - 3; top && !(t[top] == '/' && t[top + 1] == '*');) top--;
		text_printf(&out, "%.*s", (int)(end - top - 4), t + top + 2);
		return out.at;
	}
	while (top < line) {
		const char *c = t + top + strspn(t + top, " \t") + 2;
		size_t n = strcspn(c, "\n");
		c += *c == ' ' && n;
		text_printf(&out, "%.*s\n", (int)strcspn(c, "\r\n"), c);
		top = (size_t)(strchr(c, '\n') - t) + 1;
	}
	return out.at;
}

/* "let v: f32[1024]"; of a fn's name that has several: each in a line. */
static void put_types(text *out, const program *p, const symbol *s)
{
	static const char *const words[] = {[SYMBOL_CONST] = "const ",
		[SYMBOL_LET] = "let ",
		[SYMBOL_VAR] = "var ",
		[SYMBOL_LOOP] = "for ",
		[SYMBOL_PARAMETER] = ""};
	const sema_note *n = s->kind >= SYMBOL_CONST && s->kind <= SYMBOL_PARAMETER && !s->library
				     ? sema_notes_find(p->notes, s->at)
				     : NULL;
	for (; n; n = n->next) {
		text_printf(out, "%s%s: %s", words[s->kind], s->name, n->type);
		if (n->value) text_printf(out, " = %s", n->value);
		text_puts(out, "\n");
	}
}

static void put_symbol(text *out, arena *a, const program *p, const symbol *s)
{
	const char *comment = symbol_comment(a, s), *said = NULL;
	text code = {.arena = a};
	put_types(&code, p, s);
	if (s->node && s->kind != SYMBOL_FILE)
		text_printf(&code, "%s\n", declaration_text(a, s->node));
	else
		text_printf(&code, "%s\n", symbol_label(a, s));
	text_printf(out, "```blk\n%s```\n", code.at);
	if (s->kind == SYMBOL_TYPE) said = "a type";
	if (s->kind == SYMBOL_BUILTIN || s->kind == SYMBOL_OPTION || s->library) said = language_text(a, s->name);
	if (said) text_printf(out, "%s\n", said);
	if (comment) text_printf(out, "\n%s", comment);
}

json_t *lsp_hover(server *s, const json_t *params, const char **why)
{
	uint32_t offset;
	document *d = feature_place(s, params, &offset);
	(void)why;
	if (!d) return NULL;
	program *p = program_of(s, d);
	const occurrence *o = resolve_at(p, offset);
	if (!o) return NULL;
	text out = {.arena = &s->scratch};
	const char *method = o->method ? arena_printf(&s->scratch, "tensor.%s", o->symbol->name) : NULL;
	if (method && o->symbol->kind == SYMBOL_BUILTIN && sema_builtin_find(method)) {
		symbol t = {.kind = SYMBOL_BUILTIN, .name = method};
		put_symbol(&out, &s->scratch, p, &t);
		text_puts(&out, "\n---\n");
	}
	put_symbol(&out, &s->scratch, p, o->symbol);
	return json_pack("{s:{s:s,s:o},s:o}", "contents", "kind", "markdown", "value", json_text(out.at, out.n),
		"range", json_range(o->at));
}
