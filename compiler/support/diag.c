/* See diag.h: recording, and the two renderings of what was recorded.
 *
 * In: records with spans.  Out: text for people, JSON for tools.
 * The one idea of the text form: the shown part of a source line becomes an array of cells (one a character, with its
 * display width), a row of marks is painted over the cells, and every row is printed with the same walk; so carets stay
 * under their characters whatever tabs, wide or broken characters stand before them. */
#include "diag.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const diag_code diag_codes[] = {
#define CODE(number, title) {number, title},
#include "codes.def"
#undef CODE
	{0, NULL},
};

const char *diag_code_title(uint16_t number)
{
	for (const diag_code *c = diag_codes; c->number; c++)
		if (c->number == number) return c->title;
	return NULL;
}

void diags_init(diags *ds, arena *a)
{
	*ds = (diags){.arena = a};
	ds->last = &ds->first;
}

static uint32_t record_limit(const diags *ds)
{
	return ds->limit ? ds->limit : 100;
}

bool diags_full(const diags *ds)
{
	return ds->errors >= record_limit(ds);
}

static bool same_span(span a, span b)
{
	return a.file == b.file && a.begin == b.begin && a.end == b.end;
}

static bool recorded(const diags *ds, uint16_t code, span at, const char *message)
{
	for (const diag *d = ds->first; d; d = d->next)
		if (d->code == code && same_span(d->at, at) && strcmp(d->message, message) == 0) return true;
	return false;
}

static diag *surplus(diags *ds)
{
	if (!ds->surplus) ds->surplus = ARENA_NEW(ds->arena, diag);
	return ds->surplus;
}

diag *diag_add(diags *ds, diag_severity severity, uint16_t code, span at, const char *fmt, ...)
{
	assert(!code || diag_code_title(code));
	assert(!at.file || (at.begin <= at.end && at.end <= at.file->size));
	if (severity == DIAG_WARNING && ds->warnings_are_errors) severity = DIAG_ERROR;
	uint32_t *count = severity == DIAG_ERROR ? &ds->errors : severity == DIAG_WARNING ? &ds->warnings : NULL;
	if (count && *count >= record_limit(ds)) {
		++*count;
		return surplus(ds);
	}
	va_list list;
	va_start(list, fmt);
	const char *message = arena_vprintf(ds->arena, fmt, list);
	va_end(list);
	if (recorded(ds, code, at, message)) return surplus(ds);
	if (count) ++*count;
	diag *d = ARENA_NEW(ds->arena, diag);
	*d = (diag){.severity = severity, .code = code, .at = at, .message = message};
	assert(!*ds->last);
	*ds->last = d;
	ds->last = &d->next;
	return d;
}

void diag_add_label(diags *ds, diag *d, span at, const char *fmt, ...)
{
	if (d == ds->surplus) return;
	diag_label *l = ARENA_NEW(ds->arena, diag_label), **end = &d->labels;
	va_list list;
	va_start(list, fmt);
	l->at = at;
	l->text = arena_vprintf(ds->arena, fmt, list);
	va_end(list);
	while (*end) end = &(*end)->next;
	*end = l;
}

void diag_set_hint(diags *ds, diag *d, const char *fmt, ...)
{
	if (d == ds->surplus) return;
	va_list list;
	va_start(list, fmt);
	d->hint = arena_vprintf(ds->arena, fmt, list);
	va_end(list);
}

void diag_set_mark(diags *ds, diag *d, span mark)
{
	if (d != ds->surplus) d->mark = mark;
}

/* ---- text ---- */

enum { WINDOW = 120, MAX_LABELS = 16 }; /* columns of a source line that are shown; labels painted on one line */

typedef struct cell {
	uint32_t at;    /* byte offset in the file */
	uint8_t length; /* bytes; 0 for the place behind the line's end */
	uint8_t width;  /* columns */
	bool tab;
	bool clean; /* printed as it is; else a replacement character stands for it */
	char mark;  /* what the row being painted has here; 0: nothing */
} cell;

typedef struct excerpt {
	cell cells[WINDOW + 1]; /* the last one is the place behind the line's end */
	uint32_t n;
	uint32_t line, next; /* number of the line; offset of the line after it */
	bool cut_left, cut_right;
} excerpt;

/* Columns that a terminal gives a character: the wide blocks of East Asian scripts and emoji, combining marks. */
static int display_width(int c)
{
	static const struct {
		int first, last, width;
	} blocks[] = {{0x300, 0x36f, 0}, {0x1100, 0x115f, 2}, {0x200b, 0x200f, 0}, {0x2e80, 0xa4cf, 2},
		{0xac00, 0xd7a3, 2}, {0xf900, 0xfaff, 2}, {0xfe00, 0xfe0f, 0}, {0xfe30, 0xfe6f, 2}, {0xff00, 0xff60, 2},
		{0xffe0, 0xffe6, 2}, {0x1f300, 0x1faff, 2}, {0x20000, 0x3fffd, 2}};
	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
		if (c >= blocks[i].first && c <= blocks[i].last) return blocks[i].width;
	return 1;
}

/* Characters that would change the shape of the output or the terminal's state. */
static bool is_control(int c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

/* Messages may quote what a user wrote: line breaks and control characters are shown escaped. */
static void put_clean(text *out, const char *s)
{
	for (size_t n = strlen(s), i = 0; i < n;) {
		int length, c = source_utf8(s + i, n - i, &length);
		if (c < 0)
			text_puts(out, "\xef\xbf\xbd");
		else if (c == '\n')
			text_puts(out, "\\n");
		else if (c == '\t')
			text_puts(out, "\\t");
		else if (is_control(c))
			text_printf(out, c < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)c);
		else
			text_add(out, s + i, (size_t)length);
		i += (size_t)length;
	}
}

static uint32_t step_back(const source_file *f, uint32_t at, uint32_t stop)
{
	assert(at > stop);
	int length;
	for (uint32_t k = 2; k <= 4 && at >= stop + k; k++)
		if (source_utf8(f->text + at - k, k, &length) > 0 && length == (int)k) return at - k;
	return at - 1;
}

/* Lays out the line that holds byte `at`, around `at` where the line is long. */
static void excerpt_make(arena *a, excerpt *x, source_file *f, uint32_t at)
{
	source_lines(a, f);
	x->line = source_locate(a, (span){f, at, at}).line;
	uint32_t begin = f->line_start[x->line - 1];
	uint32_t end = x->line < f->nlines ? f->line_start[x->line] - 1 : (uint32_t)f->size;
	x->next = end + 1;
	if (end > begin && f->text[end - 1] == '\r') end--;
	if (at > end) at = end;
	assert(begin <= end && at >= begin);
	uint32_t first = begin;
	if (end - begin > WINDOW) {
		first = at;
		for (int i = 0; i < WINDOW / 2 && first > begin; i++) first = step_back(f, first, begin);
	}
	x->n = 0;
	uint32_t i = first;
	while (i < end && x->n < WINDOW) {
		int length, c = source_utf8(f->text + i, end - i, &length);
		bool clean = c >= 0 && (c == '\t' || !is_control(c));
		uint8_t width = (uint8_t)(clean ? display_width(c) : 1);
		x->cells[x->n++] = (cell){i, (uint8_t)length, width, c == '\t', clean, 0};
		i += (uint32_t)length;
	}
	x->cut_left = first > begin;
	x->cut_right = i < end;
	assert(x->n <= WINDOW);
	x->cells[x->n++] = (cell){.at = i, .width = 1};
}

static void put_gutter(text *out, int width, uint32_t line)
{
	if (line)
		text_printf(out, "%*u | ", width, line);
	else
		text_printf(out, "%*s | ", width, "");
}

static void put_source(text *out, const source_file *f, const excerpt *x, int width)
{
	put_gutter(out, width, x->line);
	if (x->cut_left) text_puts(out, "...");
	for (uint32_t i = 0; i + 1 < x->n; i++) {
		const cell *c = &x->cells[i];
		if (c->clean)
			text_add(out, f->text + c->at, c->length);
		else
			text_puts(out, "\xef\xbf\xbd");
	}
	text_puts(out, x->cut_right ? "...\n" : "\n");
}

/* Prints the painted row up to its last mark, or up to cell `stop` and then `tail`; and wipes it. */
static void put_row(text *out, excerpt *x, int width, uint32_t stop, const char *tail)
{
	assert(stop <= x->n);
	uint32_t last = stop;
	for (uint32_t i = 0; !tail && i < x->n; i++)
		if (x->cells[i].mark) last = i + 1;
	put_gutter(out, width, 0);
	if (x->cut_left) text_puts(out, "   ");
	for (uint32_t i = 0; i < last; i++) {
		const cell *c = &x->cells[i];
		char mark[2] = {c->mark ? c->mark : ' ', c->mark == '~' || c->mark == '^' ? c->mark : ' '};
		if (c->tab)
			text_puts(out, "\t");
		else
			text_add(out, mark, c->width);
	}
	if (tail) put_clean(out, tail);
	text_puts(out, "\n");
	for (uint32_t i = 0; i < x->n; i++) x->cells[i].mark = 0;
}

/* The cell of byte `at`, or n where it is not shown. */
static uint32_t cell_of(const excerpt *x, uint32_t at)
{
	assert(x->n > 0);
	if (at < x->cells[0].at) return x->n;
	for (uint32_t i = 0; i + 1 < x->n; i++)
		if (at < x->cells[i].at + x->cells[i].length) return i;
	return at < x->next && !x->cut_right ? x->n - 1 : x->n;
}

static void paint(excerpt *x, span s, char mark)
{
	uint32_t first = cell_of(x, s.begin);
	for (uint32_t i = first; i < x->n && (i == first || x->cells[i].at < s.end); i++)
		if (i == first || x->cells[i].length) x->cells[i].mark = mark;
}

typedef struct placed {
	uint32_t cell;
	const char *text;
} placed;

/* The labels that have text and lie in the excerpt, from right to left; equal places in order of addition. */
static uint32_t place_labels(const excerpt *x, const diag *d, placed *out)
{
	uint32_t n = 0;
	for (const diag_label *l = d->labels; l; l = l->next) {
		if (!l->primary_line || !l->text[0]) continue;
		placed p = {cell_of(x, l->at.begin), l->text};
		assert(n < MAX_LABELS);
		uint32_t i = n++;
		for (; i && out[i - 1].cell < p.cell; i--) out[i] = out[i - 1];
		out[i] = p;
	}
	return n;
}

/* The labels' texts below the line, each at its column, bars running down to those still to come. */
static void put_label_rows(text *out, excerpt *x, const diag *d, int width)
{
	placed labels[MAX_LABELS];
	uint32_t n = place_labels(x, d, labels);
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = i + 1; k < n; k++) x->cells[labels[k].cell].mark = '|';
		put_row(out, x, width, labels[i].cell, labels[i].text);
	}
}

static void put_position(text *out, arena *a, span s)
{
	assert(s.file);
	source_position p = source_locate(a, s);
	put_clean(out, s.file->name);
	text_printf(out, ":%u:%u: ", p.line, p.column);
}

static int gutter_width(arena *a, span s)
{
	int digits = 1;
	for (uint32_t n = source_locate(a, s).line; n >= 10; n /= 10) digits++;
	return digits < 4 ? 4 : digits;
}

static void put_note(text *out, arena *a, const diag_label *l)
{
	if (!l->at.file) {
		text_puts(out, "note: ");
		put_clean(out, l->text);
		text_puts(out, "\n");
		return;
	}
	excerpt x;
	excerpt_make(a, &x, l->at.file, l->at.begin);
	int width = gutter_width(a, l->at);
	text_puts(out, "note: ");
	put_position(out, a, l->at);
	put_clean(out, l->text[0] ? l->text : "here");
	text_puts(out, "\n");
	put_source(out, l->at.file, &x, width);
	paint(&x, l->at, '^');
	put_row(out, &x, width, 0, NULL);
}

/* Decides which labels are drawn under the diagnostic's own line. */
static void sort_labels(const excerpt *x, const diag *d)
{
	uint32_t drawn = 0;
	for (diag_label *l = d->labels; l; l = l->next) {
		l->primary_line = x && l->at.file == d->at.file && cell_of(x, l->at.begin) < x->n && drawn < MAX_LABELS;
		drawn += l->primary_line;
	}
}

static void put_snippet(text *out, arena *a, const diag *d)
{
	excerpt x;
	excerpt_make(a, &x, d->at.file, d->at.begin);
	sort_labels(&x, d);
	int width = gutter_width(a, d->at);
	put_source(out, d->at.file, &x, width);
	for (const diag_label *l = d->labels; l; l = l->next)
		if (l->primary_line) paint(&x, l->at, '~');
	bool marked = d->mark.file == d->at.file && cell_of(&x, d->mark.begin) < x.n;
	paint(&x, marked ? d->mark : d->at, '^');
	put_row(out, &x, width, 0, NULL);
	put_label_rows(out, &x, d, width);
}

static const char *const severity_text[] = {"error", "warning", "note"}; /* ORDER diag_severity */
static const char severity_letter[] = {'E', 'W', 'N'};

static void render_one(text *out, arena *a, const diag *d)
{
	if (d->at.file) put_position(out, a, d->at);
	text_puts(out, severity_text[d->severity]);
	if (d->code) text_printf(out, "[%c%04u]", severity_letter[d->severity], d->code);
	text_puts(out, ": ");
	put_clean(out, d->message);
	text_puts(out, "\n");
	if (d->at.file)
		put_snippet(out, a, d);
	else
		sort_labels(NULL, d);
	for (const diag_label *l = d->labels; l; l = l->next)
		if (!l->primary_line) put_note(out, a, l);
	if (d->hint) {
		text_puts(out, "hint: ");
		put_clean(out, d->hint);
		text_puts(out, "\n");
	}
}

static void put_surplus(text *out, uint32_t count, uint32_t limit, const char *what)
{
	if (count > limit)
		text_printf(out, "note: %u more %s%s not shown\n", count - limit, what,
			count - limit == 1 ? " is" : "s are");
}

void diag_render_text(diags *ds, text *out)
{
	uint32_t limit = record_limit(ds);
	for (const diag *d = ds->first; d; d = d->next) render_one(out, ds->arena, d);
	put_surplus(out, ds->errors, limit, "error");
	put_surplus(out, ds->warnings, limit, "warning");
}

/* ---- JSON ---- */

void diag_json_string(text *out, const char *s)
{
	if (!s) {
		text_puts(out, "null");
		return;
	}
	text_puts(out, "\"");
	for (size_t n = strlen(s), i = 0; i < n;) {
		int length, c = source_utf8(s + i, n - i, &length);
		if (c == '"' || c == '\\')
			text_printf(out, "\\%c", c);
		else if (c < 0)
			text_puts(out, "\\ufffd");
		else if (is_control(c))
			text_printf(out, "\\u%04x", (unsigned)c);
		else
			text_add(out, s + i, (size_t)length);
		i += (size_t)length;
	}
	text_puts(out, "\"");
}

static void put_json_span(text *out, arena *a, span s)
{
	source_position begin = source_locate(a, s), end = source_locate(a, (span){s.file, s.end, s.end});
	text_puts(out, "\"file\":");
	diag_json_string(out, s.file ? s.file->name : NULL);
	text_printf(out, ",\"line\":%u,\"column\":%u,\"end_line\":%u,\"end_column\":%u", begin.line, begin.column,
		end.line, end.column);
}

void diag_render_json(diags *ds, text *out)
{
	text_puts(out, "[");
	for (const diag *d = ds->first; d; d = d->next) {
		text_printf(out, "%s\n{\"severity\":\"%s\",", d == ds->first ? "" : ",", severity_text[d->severity]);
		if (d->code)
			text_printf(out, "\"code\":\"%c%04u\",", severity_letter[d->severity], d->code);
		else
			text_puts(out, "\"code\":null,");
		put_json_span(out, ds->arena, d->at);
		text_puts(out, ",\"message\":");
		diag_json_string(out, d->message);
		text_puts(out, ",\"labels\":[");
		for (const diag_label *l = d->labels; l; l = l->next) {
			text_puts(out, l == d->labels ? "{" : ",{");
			put_json_span(out, ds->arena, l->at);
			text_puts(out, ",\"text\":");
			diag_json_string(out, l->text);
			text_puts(out, "}");
		}
		text_puts(out, "],\"hint\":");
		diag_json_string(out, d->hint);
		text_puts(out, "}");
	}
	text_puts(out, "\n]\n");
}
