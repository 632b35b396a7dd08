/* Diagnostics of a document, as the client shows them.
 *
 * In: the records of a check.  Out: one publishDiagnostics notification.
 * The one idea: a record about another file stands at the import that leads there, with its place as related
 * information.  What is wrong with a compile and not with the source (a const parameter that only a host binds) is
 * information, not an error. */
#include "lsp.h"

#include <string.h>

enum { ERROR = 1, WARNING, INFORMATION };               /* the protocol's severities */
enum { CODE_UNBOUND = 602, CODE_UNKNOWN_DEFINE = 603 }; /* of codes.def */

static json_t *related(server *s, const diag *d, bool elsewhere)
{
	json_t *list = json_array();
	json_t *place = elsewhere ? json_location(s, d->at) : NULL;
	if (place) json_array_append_new(list, json_pack("{s:o,s:s}", "location", place, "message", "here"));
	for (const diag_label *l = d->labels; l; l = l->next) {
		json_t *at = json_location(s, l->at);
		const char *said = l->text[0] ? l->text : "here";
		if (at)
			json_array_append_new(
				list, json_pack("{s:o,s:o}", "location", at, "message", json_text(said, strlen(said))));
	}
	return list;
}

static const char *message(server *s, const diag *d, bool elsewhere)
{
	text out = {.arena = &s->scratch};
	source_position at = source_locate(&s->scratch, d->at);
	if (elsewhere) text_printf(&out, "%s:%u:%u: ", d->at.file->name, at.line, at.column);
	text_puts(&out, d->message);
	for (const diag_label *l = d->labels; l; l = l->next)
		if (!l->at.file) text_printf(&out, "\nnote: %s", l->text);
	if (d->hint) text_printf(&out, "\nhint: %s", d->hint);
	return out.at;
}

static span import_of(const program *p, const source_file *f)
{
	for (uint32_t i = 0; i < p->trees.n; i++)
		if (p->trees.at[i].file == f && p->trees.at[i].via.file) return p->trees.at[i].via;
	return (span){p->main, 0, 0};
}

static json_t *one(server *s, const program *p, const diag *d)
{
	bool elsewhere = d->at.file && d->at.file != p->main;
	span at = d->at.file == p->main ? d->at : import_of(p, d->at.file);
	int severity = d->severity == DIAG_ERROR ? ERROR : d->severity == DIAG_WARNING ? WARNING : INFORMATION;
	if (d->code == CODE_UNBOUND) severity = INFORMATION;
	const char *said = message(s, d, elsewhere);
	json_t *made = json_pack("{s:o,s:i,s:s,s:o,s:o}", "range", json_range(at), "severity", severity, "source",
		"blk", "message", json_text(said, strlen(said)), "relatedInformation", related(s, d, elsewhere));
	char code[8];
	snprintf(code, sizeof code, "%c%04u", d->severity == DIAG_WARNING ? 'W' : 'E', d->code);
	if (d->code) json_object_set_new(made, "code", json_string(code));
	return made;
}

void publish_diagnostics(server *s, document *d)
{
	program *p = program_of(s, d);
	json_t *list = json_array();
	for (const diag *e = p->diags.first; e; e = e->next)
		if (e->code != CODE_UNKNOWN_DEFINE) json_array_append_new(list, one(s, p, e));
	d->published = true;
	send_message(s, json_pack("{s:s,s:s,s:{s:o,s:I,s:o}}", "jsonrpc", "2.0", "method",
				"textDocument/publishDiagnostics", "params", "uri", json_text(d->uri, strlen(d->uri)),
				"version", d->version, "diagnostics", list));
}
