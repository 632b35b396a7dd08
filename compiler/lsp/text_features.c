/* The document as a whole: its text in the one style, and the types beside its names.
 *
 * In: a document.  Out: one edit; hints.
 * The one idea: both show what the compiler knows anyway: blkc --format's text, and what the check bound. */
#include "lsp.h"

#include <string.h>

json_t *lsp_format(server *s, const json_t *params, const char **why)
{
	document *d = feature_place(s, params, NULL);
	if (!d) return NULL;
	program *p = program_of(s, d);
	diags ds;
	text out = {.arena = &s->scratch};
	diags_init(&ds, &s->scratch);
	source_file *f = p->main;
	parse_file(&s->scratch, &ds, names_new(&s->scratch), f);
	if (ds.errors) return *why = "a file with syntax errors is left as it is", NULL;
	format_source(&s->scratch, &ds, f, &out);
	if (out.n == d->size && memcmp(out.at ? out.at : "", d->text, d->size) == 0) return json_array();
	span all = {f, 0, (uint32_t)f->size};
	return json_pack("[{s:o,s:o}]", "range", json_range(all), "newText", json_text(out.at ? out.at : "", out.n));
}

/* A let or var of the lines asked for, without a type, whose value is of one type at run time. */
static bool wants_hint(const program *p, const occurrence *o, uint32_t begin, uint32_t end)
{
	const symbol *y = o->symbol;
	if (!o->declares || o->at.file != p->main || o->at.begin < begin || o->at.begin > end) return false;
	if ((y->kind != SYMBOL_LET && y->kind != SYMBOL_VAR) || y->node->kids[1]) return false;
	const sema_note *n = sema_notes_find(p->notes, o->at);
	return n && !n->next && !n->value;
}

json_t *lsp_hints(server *s, const json_t *params, const char **why)
{
	enum { TYPE = 1 };
	const json_t *range = json_object_get(params, "range");
	uint32_t begin = 0, end = UINT32_MAX;
	document *d = feature_place(s, params, NULL);
	(void)why;
	if (!d) return NULL;
	position_offset(d->text, d->size, json_object_get(range, "start"), &begin);
	position_offset(d->text, d->size, json_object_get(range, "end"), &end);
	program *p = program_of(s, d);
	json_t *list = json_array();
	resolve(p);
	for (uint32_t i = 0; i < p->occurrences.n; i++) {
		const occurrence *o = &p->occurrences.at[i];
		if (!wants_hint(p, o, begin, end)) continue;
		const char *label = arena_printf(&s->scratch, ": %s", sema_notes_find(p->notes, o->at)->type);
		json_array_append_new(
			list, json_pack("{s:o,s:s,s:i}", "position", json_position(d->text, d->size, o->at.end),
				      "label", label, "kind", TYPE));
	}
	return list;
}
