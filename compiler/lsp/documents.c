/* Open documents: their texts, and the places in them.
 *
 * In: the client's texts and edits, positions as (line, UTF-16 unit).  Out: bytes, byte offsets, and back.
 * The one idea: a text is kept as UTF-8 in one block, as the compiler reads it; positions are counted when they are
 * needed.  Lines end where the protocol says, at \n, \r\n and \r. */
#include "lsp.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

document *document_find(server *s, const char *uri)
{
	for (document *d = s->documents; d; d = d->next)
		if (strcmp(d->uri, uri) == 0) return d;
	return NULL;
}

document *document_of_path(server *s, const char *path)
{
	char real[PATH_MAX];
	for (document *d = s->documents; d; d = d->next)
		if (strcmp(d->path, path) == 0 || (realpath(d->path, real) && strcmp(real, path) == 0)) return d;
	return NULL;
}

void document_forget(document *d)
{
	if (d->program) program_free(d->program);
	d->program = NULL;
	d->published = false;
}

/* Programs that hold the document's text hold an old one. */
static void changed(server *s, document *d)
{
	document_forget(d);
	for (document *o = s->documents; o; o = o->next)
		if (o->program && program_uses(o->program, d->path)) document_forget(o);
}

static void set_text(document *d, const char *bytes, size_t size)
{
	char *copy = must(malloc(size + 1));
	memcpy(copy, bytes, size);
	copy[size] = 0;
	free(d->text);
	d->text = copy;
	d->size = size;
}

void document_open(server *s, const char *uri, const char *bytes, size_t size, json_int_t version)
{
	document *d = document_find(s, uri);
	if (!d) {
		d = must(calloc(1, sizeof *d));
		d->uri = must(strdup(uri));
		d->path = path_of_uri(uri);
		document **end = &s->documents;
		while (*end) end = &(*end)->next;
		*end = d;
	}
	set_text(d, bytes, size);
	d->version = version;
	changed(s, d);
}

bool document_change(server *s, document *d, const json_t *change)
{
	const json_t *bytes = json_object_get(change, "text"), *range = json_object_get(change, "range");
	if (!json_is_string(bytes)) return false;
	const char *put = json_string_value(bytes);
	size_t nput = json_string_length(bytes);
	uint32_t begin = 0, end = (uint32_t)d->size;
	if (range && !json_is_null(range)) {
		if (!position_offset(d->text, d->size, json_object_get(range, "start"), &begin) ||
			!position_offset(d->text, d->size, json_object_get(range, "end"), &end) || begin > end)
			return false;
	}
	if (d->size - (end - begin) + nput > (size_t)2 * SOURCE_LIMIT) return false;
	size_t size = d->size - (end - begin) + nput;
	char *made = must(malloc(size + 1));
	memcpy(made, d->text, begin);
	memcpy(made + begin, put, nput);
	memcpy(made + begin + nput, d->text + end, d->size - end);
	made[size] = 0;
	free(d->text);
	d->text = made;
	d->size = size;
	changed(s, d);
	return true;
}

void document_close(server *s, document *d)
{
	document **from = &s->documents;
	while (*from != d) from = &(*from)->next;
	*from = d->next;
	changed(s, d);
	free(d->uri);
	free(d->path);
	free(d->text);
	free(d);
}

/* ---- positions ---- */

/* The length of a line's end at bytes[i]; 0: none stands there. */
static unsigned line_end(const char *bytes, size_t size, size_t i)
{
	if (bytes[i] == '\n') return 1;
	if (bytes[i] != '\r') return 0;
	return i + 1 < size && bytes[i + 1] == '\n' ? 2 : 1;
}

static unsigned character(const char *bytes, size_t size, size_t i, unsigned *units)
{
	int length, c = source_utf8(bytes + i, size - i, &length);
	*units = c > 0xffff ? 2 : 1;
	return (unsigned)length;
}

bool position_offset(const char *bytes, size_t size, const json_t *position, uint32_t *offset)
{
	const json_t *l = json_object_get(position, "line"), *c = json_object_get(position, "character");
	if (!json_is_integer(l) || !json_is_integer(c) || json_integer_value(l) < 0 || json_integer_value(c) < 0)
		return false;
	json_int_t lines = json_integer_value(l), left = json_integer_value(c);
	size_t i = 0;
	while (lines && i < size) {
		unsigned n = line_end(bytes, size, i);
		lines -= n != 0;
		i += n ? n : 1;
	}
	for (unsigned units; !lines && left > 0 && i < size && !line_end(bytes, size, i); left -= units) {
		unsigned n = character(bytes, size, i, &units);
		if (units > left) break;
		i += n;
	}
	*offset = (uint32_t)i;
	return true;
}

json_t *json_position(const char *bytes, size_t size, uint32_t offset)
{
	size_t i = 0, start = 0;
	json_int_t line = 0, column = 0;
	if (offset > size) offset = (uint32_t)size;
	while (i < offset) {
		unsigned n = line_end(bytes, size, i);
		i += n ? n : 1;
		if (n && i <= offset) line++, start = i;
	}
	for (i = start; i < offset && !line_end(bytes, size, i);) {
		unsigned units;
		i += character(bytes, size, i, &units);
		column += units;
	}
	return json_pack("{s:I,s:I}", "line", line, "character", column);
}

json_t *json_range(span at)
{
	const char *bytes = at.file ? at.file->text : "";
	size_t size = at.file ? at.file->size : 0;
	return json_pack(
		"{s:o,s:o}", "start", json_position(bytes, size, at.begin), "end", json_position(bytes, size, at.end));
}

json_t *json_location(server *s, span at)
{
	if (!at.file || !at.file->identity || at.file->name[0] == '<') return NULL;
	const document *d = document_of_path(s, at.file->identity);
	const char *uri = d ? d->uri : uri_of_path(&s->scratch, at.file->identity);
	return json_pack("{s:o,s:o}", "uri", json_text(uri, strlen(uri)), "range", json_range(at));
}

document *feature_place(server *s, const json_t *params, uint32_t *offset)
{
	const json_t *uri = json_object_get(json_object_get(params, "textDocument"), "uri");
	document *d = json_is_string(uri) ? document_find(s, json_string_value(uri)) : NULL;
	if (d && offset && !position_offset(d->text, d->size, json_object_get(params, "position"), offset)) return NULL;
	return d;
}

/* ---- names of files ---- */

const char *uri_of_path(arena *a, const char *path)
{
	text out = {.arena = a};
	text_puts(&out, "file://");
	for (const char *c = path; *c; c++) {
		bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
			     strchr("/-._~", *c);
		if (plain)
			text_add(&out, c, 1);
		else
			text_printf(&out, "%%%02X", (unsigned)(unsigned char)*c);
	}
	return out.at;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9') return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *path_of_uri(const char *uri)
{
	char *out = must(strdup(uri)), *to = out;
	if (strncmp(uri, "file://", 7) != 0) return out;
	const char *c = strchr(uri + 7, '/'); /* behind a host's name, which is this one's */
	for (c = c ? c : uri + strlen(uri); *c; c++) {
		int high = *c == '%' ? hex(c[1]) : -1, low = high >= 0 ? hex(c[2]) : -1;
		bool escaped = low >= 0 && high * 16 + low != 0;
		*to++ = escaped ? (char)(high * 16 + low) : *c;
		if (escaped) c += 2;
	}
	*to = 0;
	return out;
}

json_t *json_text(const char *s, size_t n)
{
	json_t *plain = json_stringn(s, n);
	if (plain) return plain;
	char *clean = must(malloc(3 * n + 1));
	size_t used = 0;
	for (size_t i = 0; i < n;) {
		int length, c = source_utf8(s + i, n - i, &length);
		memcpy(clean + used, c < 0 ? "\xef\xbf\xbd" : s + i, c < 0 ? 3 : (size_t)length);
		used += c < 0 ? 3 : (size_t)length;
		i += (size_t)length;
	}
	json_t *made = json_stringn(clean, used);
	free(clean);
	return made;
}
