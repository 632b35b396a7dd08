/* Where a name is declared and used; new names for it; what a file declares.
 *
 * In: a place.  Out: places, edits, an outline.
 * The one idea: a declaration that other files can see is looked for in every program that may use it: those of open
 * documents and of the workspace's files.  A program is parsed for that, not checked. */
#include "lsp.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES = 2000, DEPTH = 8 }; /* of the workspace that are looked at */

const char *const reserved_words[] = {"import", "const", "fn", "kernel", "autotune", "let", "var", "if", "else", "for",
	"while", "break", "continue", "return", "true", "false", "None", "inf", "nan", NULL};

json_t *lsp_definition(server *s, const json_t *params, const char **why)
{
	uint32_t offset;
	document *d = feature_place(s, params, &offset);
	(void)why;
	const occurrence *o = d ? resolve_at(program_of(s, d), offset) : NULL;
	return o ? json_location(s, o->symbol->at) : NULL;
}

/* ---- places ---- */

typedef struct search {
	server *s;
	const symbol *symbol; /* of the program that was asked */
	const char *taken;    /* a name: is it used where the symbol is? */
	bool collides, declarations;
	json_t *places, *seen; /* {uri, range}; by file and byte */
	unsigned files;
} search;

/* Two programs may hold one file. */
static void add_place(search *q, span at)
{
	const char *key = arena_printf(&q->s->scratch, "%u %s", at.begin, at.file->identity);
	if (json_object_get(q->seen, key)) return;
	json_object_set_new(q->seen, key, json_true());
	json_array_append_new(q->places, json_location(q->s, at));
}

static void search_program(search *q, program *p)
{
	bool uses = false;
	resolve(p);
	for (uint32_t i = 0; i < p->occurrences.n; i++) {
		const occurrence *o = &p->occurrences.at[i];
		if (!symbol_same(o->symbol, q->symbol)) continue;
		uses = true;
		if (o->declares && !q->declarations) continue;
		add_place(q, o->at);
	}
	for (uint32_t i = 0; uses && q->taken && i < p->occurrences.n; i++) {
		const occurrence *o = &p->occurrences.at[i];
		const ast *in = q->symbol->owner;
		bool inside =
			!in || (o->at.file == in->at.file && o->at.begin >= in->at.begin && o->at.end <= in->at.end);
		if (inside && strcmp(o->symbol->name, q->taken) == 0) q->collides = true;
	}
}

static void search_folder(search *q, const char *folder, unsigned depth)
{
	DIR *open = opendir(folder);
	for (struct dirent *e; open && (e = readdir(open)) && q->files < FILES;) {
		size_t n = strlen(e->d_name);
		struct stat st;
		if (e->d_name[0] == '.') continue;
		char *path = must(malloc(strlen(folder) + n + 2));
		strcat(strcat(strcpy(path, folder), "/"), e->d_name);
		bool there = lstat(path, &st) == 0;
		if (there && S_ISDIR(st.st_mode) && depth < DEPTH) search_folder(q, path, depth + 1);
		if (there && S_ISREG(st.st_mode) && n > 4 && strcmp(e->d_name + n - 4, ".blk") == 0 &&
			!document_of_path(q->s, path)) {
			program *p = program_open(q->s, path, NULL, 0, false);
			q->files++;
			if (p) search_program(q, p);
			if (p) program_free(p);
		}
		free(path);
	}
	if (open) closedir(open);
}

/* What one function alone can see is searched for there; a parameter's name stands in calls too. */
static void search_all(search *q, program *p)
{
	bool everywhere = !q->symbol->owner || q->symbol->kind == SYMBOL_PARAMETER;
	q->places = json_array();
	q->seen = json_object();
	search_program(q, p);
	for (document *d = q->s->documents; everywhere && d; d = d->next) search_program(q, program_of(q->s, d));
	if (everywhere && q->s->folder) search_folder(q, q->s->folder, 0);
	json_decref(q->seen);
}

json_t *lsp_references(server *s, const json_t *params, const char **why)
{
	uint32_t offset;
	document *d = feature_place(s, params, &offset);
	(void)why;
	program *p = d ? program_of(s, d) : NULL;
	const occurrence *o = p ? resolve_at(p, offset) : NULL;
	if (!o) return NULL;
	const json_t *declarations = json_object_get(json_object_get(params, "context"), "includeDeclaration");
	search q = {.s = s, .symbol = o->symbol, .declarations = !json_is_false(declarations)};
	search_all(&q, p);
	return q.places;
}

/* ---- renaming ---- */

static const occurrence *renamed(server *s, const json_t *params, program **p, const char **why)
{
	uint32_t offset;
	document *d = feature_place(s, params, &offset);
	*p = d ? program_of(s, d) : NULL;
	const occurrence *o = *p ? resolve_at(*p, offset) : NULL;
	if (!o || o->symbol->kind == SYMBOL_FILE)
		*why = "no name stands here";
	else if (!o->symbol->at.file || o->symbol->library)
		*why = arena_printf(&s->scratch, "'%s' is built in", o->symbol->name);
	return *why ? NULL : o;
}

json_t *lsp_prepare_rename(server *s, const json_t *params, const char **why)
{
	program *p;
	const occurrence *o = renamed(s, params, &p, why);
	return o ? json_pack("{s:o,s:s}", "range", json_range(o->at), "placeholder", o->symbol->name) : NULL;
}

static bool is_name(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
	for (const char *const *w = reserved_words; *w; w++)
		if (strcmp(*w, s) == 0) return false;
	return n && !s[n] && !(*s >= '0' && *s <= '9');
}

json_t *lsp_rename(server *s, const json_t *params, const char **why)
{
	program *p;
	const occurrence *o = renamed(s, params, &p, why);
	const char *name = json_string_value(json_object_get(params, "newName"));
	if (!o) return NULL;
	if (!name || !is_name(name)) return *why = "this is no name, or a reserved word", NULL;
	search q = {.s = s, .symbol = o->symbol, .taken = name, .declarations = true};
	search_all(&q, p);
	if (q.collides && strcmp(name, o->symbol->name) != 0) {
		json_decref(q.places);
		*why = arena_printf(&s->scratch, "'%s' is in use where '%s' is", name, o->symbol->name);
		return NULL;
	}
	json_t *changes = json_object(), *place;
	size_t i;
	json_array_foreach (q.places, i, place) {
		const char *uri = json_string_value(json_object_get(place, "uri"));
		if (!json_object_get(changes, uri)) json_object_set_new(changes, uri, json_array());
		json_array_append_new(json_object_get(changes, uri),
			json_pack("{s:O,s:s}", "range", json_object_get(place, "range"), "newText", name));
	}
	json_decref(q.places);
	return json_pack("{s:o}", "changes", changes);
}

/* ---- outline ---- */

static json_t *outline(const char *name, const char *detail, int kind, span all, span at)
{
	return json_pack("{s:o,s:o,s:i,s:o,s:o}", "name", json_text(name, strlen(name)), "detail",
		json_text(detail, strlen(detail)), "kind", kind, "range", json_range(all), "selectionRange",
		json_range(at));
}

json_t *lsp_symbols(server *s, const json_t *params, const char **why)
{
	enum { CLASS = 5, FUNCTION = 12, VARIABLE = 13, CONSTANT = 14 }; /* the protocol's kinds of symbols */
	document *d = feature_place(s, params, NULL);
	(void)why;
	if (!d) return NULL;
	program *p = program_of(s, d);
	json_t *list = json_array();
	resolve(p);
	for (uint32_t i = 0; i < p->globals.n; i++) {
		const symbol *g = p->globals.at[i];
		if (g->at.file != p->main) continue;
		json_t *made = outline(g->name, symbol_label(&s->scratch, g),
			g->kind == SYMBOL_CONST ? CONSTANT : FUNCTION, g->node->at, g->at);
		json_t *kids = json_array();
		for (uint32_t k = 0; k < g->nparameters; k++) {
			const symbol *q = g->parameters[k];
			json_array_append_new(kids, outline(q->name, symbol_label(&s->scratch, q),
							    q->node->flag ? CONSTANT : VARIABLE, q->node->at, q->at));
		}
		json_object_set_new(made, "children", kids);
		json_array_append_new(list, made);
	}
	for (uint32_t t = 0; t < p->trees.n; t++)
		for (uint32_t i = 0; p->trees.at[t].file == p->main && i < p->trees.at[t].root->nkids; i++) {
			const ast *n = p->trees.at[t].root->kids[i];
			if (n && n->kind == AST_AUTOTUNE)
				json_array_append_new(list, outline(arena_printf(&s->scratch, "autotune %s", n->text),
								    "", CLASS, n->at, n->mark));
		}
	return list;
}
