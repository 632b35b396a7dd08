/* The record as a page to look at.  See explain.h.
 *
 * In: the kernels' records with their code in four forms, and the lines that each piece of it is of.  Out: one HTML
 * file that asks for no other.
 * The one idea: what is text is written here, and can be read without a script: every source line has an anchor
 * (f0-14), every line of code links to its source line, every fact is the text report's.  page.js draws the pictures,
 * from the JSON report.  All that comes from outside goes through put_escaped() or put_json(), so it is never
 * markup. */
#include "explain.h"

#include "lib/lib.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct page_file {
	const source_file *file;
	bool whole;
	uint8_t *used; /* by line, from 1: it became code */
} page_file;

typedef struct page {
	text *out;
	arena *arena;
	const source_file *main;
	const explain_kernel *const *kernels;
	uint32_t nkernels;
	VEC(page_file) files; /* the main one first, then in the order in which they were read */
} page;

static const struct {
	const char *id, *title;
} forms[EXPLAIN_FORMS] = {
	{"tile", "Tile IR"}, {"scheduled", "Scheduled IR"}, {"ptx", "PTX"}, {"sass", "SASS"}}; /* ORDER explain_form */

/* ---- escaping ---- */

/* Text between tags, or inside of quotes. */
static void put_escaped(text *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		int length, c = source_utf8(s + i, n - i, &length);
		if (c == '<')
			text_puts(out, "&lt;");
		else if (c == '>')
			text_puts(out, "&gt;");
		else if (c == '&')
			text_puts(out, "&amp;");
		else if (c == '"')
			text_puts(out, "&quot;");
		else if (c == '\'')
			text_puts(out, "&#39;");
		else if (c < ' ' && c != '\t')
			text_puts(out, "\xef\xbf\xbd");
		else
			text_add(out, s + i, (size_t)length);
		i += (size_t)length;
	}
}

static void put_string(text *out, const char *s)
{
	put_escaped(out, s, strlen(s));
}

/* JSON inside of a script element: no "</script" or "<!--" stands in it. */
static void put_json(text *out, const text *json)
{
	for (size_t i = 0; i < json->n; i++)
		if (json->at[i] == '<')
			text_puts(out, "\\u003c");
		else
			text_add(out, json->at + i, 1);
}

/* ---- the files ---- */

static page_file *file_of(page *p, const source_file *f)
{
	for (uint32_t i = 0; i < p->files.n; i++)
		if (p->files.at[i].file == f) return &p->files.at[i];
	return NULL;
}

static void use_line(page *p, const source_file *f, uint32_t line)
{
	if (!f || !line) return;
	page_file *known = file_of(p, f);
	if (!known) {
		source_lines(p->arena, (source_file *)f);
		page_file new = {
			.file = f, .whole = f == p->main, .used = ARENA_ARRAY(p->arena, uint8_t, f->nlines + 2)};
		vec_push(p->arena, &p->files, new);
		known = &p->files.at[p->files.n - 1];
	}
	if (line <= f->nlines) known->used[line] = 1;
}

static int by_index(const void *a, const void *b)
{
	const source_file *x = ((const page_file *)a)->file, *y = ((const page_file *)b)->file;
	return x->index < y->index ? -1 : x->index > y->index;
}

static void find_files(page *p)
{
	use_line(p, p->main, 1);
	for (uint32_t k = 0; k < p->nkernels; k++) {
		const explain_kernel *kernel = p->kernels[k];
		use_line(p, kernel->at.file, kernel->line);
		for (uint32_t i = 0; i < kernel->rows.n; i++)
			use_line(p, kernel->rows.at[i].at.file, kernel->rows.at[i].line);
		for (int form = 0; form < EXPLAIN_FORMS; form++) {
			const line_marks *marks = &kernel->code[form].marks;
			for (uint32_t i = 0; i < marks->n; i++) use_line(p, marks->at[i].file, marks->at[i].line);
		}
		for (uint32_t i = 0; i < kernel->pressure.lines.n; i++)
			use_line(p, kernel->pressure.lines.at[i].file, kernel->pressure.lines.at[i].line);
	}
	qsort(p->files.at, p->files.n, sizeof p->files.at[0], by_index);
}

/* "f0-14"; false where the line is on no file of the page. */
static bool put_place(page *p, text *out, const source_file *f, uint32_t line)
{
	const page_file *known = f && line ? file_of(p, f) : NULL;
	if (!known || line > f->nlines) return false;
	text_printf(out, "f%u-%u", (unsigned)(known - p->files.at), line);
	return true;
}

/* ---- source ---- */

static size_t line_bytes(const source_file *f, uint32_t line)
{
	const char *s = f->text + f->line_start[line - 1], *end = f->text + f->size;
	size_t n = 0;
	while (s + n < end && s[n] != '\n' && s[n] != '\r') n++;
	return n;
}

static void put_source_line(page *p, const page_file *f, uint32_t line)
{
	unsigned file = (unsigned)(f - p->files.at);
	text_printf(p->out, "<p id=\"f%u-%u\" data-l=\"f%u-%u\"><a href=\"#f%u-%u\">%u</a><code>", file, line, file,
		line, file, line, line);
	put_escaped(p->out, f->file->text + f->file->line_start[line - 1], line_bytes(f->file, line));
	text_puts(p->out, "</code></p>\n");
}

/* A few lines around those that became code. */
static bool is_shown(const page_file *f, uint32_t line)
{
	enum { AROUND = 2 };
	uint32_t first = line > AROUND ? line - AROUND : 1, last = line + AROUND;
	for (uint32_t i = first; i <= last && i <= f->file->nlines; i++)
		if (f->used[i]) return true;
	return f->whole;
}

static void put_source(page *p)
{
	for (uint32_t i = 0; i < p->files.n; i++) {
		const page_file *f = &p->files.at[i];
		text_puts(p->out, "<h4>");
		put_string(p->out, f->file->name);
		text_puts(p->out, "</h4>\n");
		uint32_t last = 0;
		for (uint32_t line = 1; line <= f->file->nlines; line++) {
			if (!is_shown(f, line)) continue;
			if (line > last + 1) text_puts(p->out, "<p class=\"gap\"><code>\xe2\x8b\xae</code></p>\n");
			put_source_line(p, f, line);
			last = line;
		}
	}
}

/* ---- code ---- */

/* Comments and directives of lines, which are there for other tools. */
static bool is_quiet(const char *s, size_t n)
{
	while (n && (*s == ' ' || *s == '\t')) s++, n--;
	return (n >= 2 && s[0] == '/' && s[1] == '/') || (n >= 4 && memcmp(s, ".loc", 4) == 0 && s[4] != 'a');
}

/* An instruction of SASS begins with its address. */
static bool is_instruction(const char *s, size_t n)
{
	while (n && *s == ' ') s++, n--;
	return n >= 2 && s[0] == '/' && s[1] == '*';
}

/* Disassemblers write wide columns: of neighbouring blanks two stay, of those at the start none. */
static void put_narrow(text *out, const char *s, size_t n)
{
	size_t blanks = 2;
	for (size_t i = 0, first = 0; i <= n; i++) {
		bool blank = i < n && (s[i] == ' ' || s[i] == '\t');
		blanks = blank ? blanks + 1 : 0;
		if (i < n && blanks <= 2) continue;
		put_escaped(out, s + first, i - first);
		first = i + 1;
	}
}

static void put_code_line(page *p, uint32_t k, explain_form form, uint32_t number, const line_mark *m,
	const uint32_t *live, const char *s, size_t n)
{
	text place = {.arena = p->arena};
	bool placed = m && put_place(p, &place, m->file, m->line);
	text_printf(p->out, "<p id=\"k%u-%s-%u\"", k, forms[form].id, number);
	if (is_quiet(s, n)) text_puts(p->out, " class=\"quiet\"");
	if (placed) text_printf(p->out, " data-l=\"%s\"", place.at);
	if (live) text_printf(p->out, " data-live=\"%u\"", *live);
	text_printf(p->out, "><a href=\"#");
	if (placed)
		text_puts(p->out, place.at);
	else
		text_printf(p->out, "k%u-%s-%u", k, forms[form].id, number);
	text_printf(p->out, "\">%u</a><code>", number);
	if (form == EXPLAIN_SASS)
		put_narrow(p->out, s, n);
	else
		put_escaped(p->out, s, n);
	text_puts(p->out, "</code></p>\n");
}

static void put_code(page *p, uint32_t k, explain_form form)
{
	const explain_kernel *kernel = p->kernels[k];
	const explain_code *c = &kernel->code[form];
	const line_mark *m = NULL;
	uint32_t number = 0, next = 0, instructions = 0;
	for (size_t at = 0; at < c->n;) {
		const char *s = c->text + at, *stop = memchr(s, '\n', c->n - at);
		size_t n = stop ? (size_t)(stop - s) : c->n - at;
		while (next < c->marks.n && c->marks.at[next].at <= at) m = &c->marks.at[next++];
		const uint32_t *live = NULL;
		if (form == EXPLAIN_SASS && instructions < kernel->nlive && is_instruction(s, n))
			live = &kernel->live[instructions++];
		put_code_line(p, k, form, ++number, m, live, s, n);
		at += n + 1;
	}
}

static void put_pane(page *p, uint32_t k, explain_form form)
{
	const explain_kernel *kernel = p->kernels[k];
	text_printf(p->out,
		"<section class=\"pane\" data-k=\"%u\" data-form=\"%s\" id=\"k%u-%s\"><h3>%s</h3>\n<div "
		"class=\"scroll\" "
		"tabindex=\"0\" role=\"region\" aria-label=\"%s of ",
		k, forms[form].id, k, forms[form].id, forms[form].title, forms[form].title);
	put_string(p->out, kernel->name);
	text_puts(p->out, "\">\n");
	if (kernel->code[form].text)
		put_code(p, k, form);
	else {
		text_puts(p->out, "<p class=\"none\">none: ");
		put_string(p->out, kernel->no_sass ? kernel->no_sass : "it was not made");
		text_puts(p->out, "</p>\n");
	}
	text_puts(p->out, "</div></section>\n");
}

static void put_panes(page *p)
{
	for (uint32_t k = 0; k < p->nkernels; k++)
		for (int form = 0; form < EXPLAIN_FORMS; form++) put_pane(p, k, (explain_form)form);
}

/* ---- facts ---- */

static void put_fact(page *p, const char *name, const char *format, uint32_t a, uint32_t b)
{
	text_printf(p->out, "<div><dt>%s</dt><dd>", name);
	text_printf(p->out, format, a, b);
	text_puts(p->out, "</dd></div>\n");
}

static void put_unknown(page *p, const explain_kernel *k)
{
	text_puts(p->out, "<div><dt>registers</dt><dd>unknown: ");
	put_string(p->out, k->not_assembled ? k->not_assembled : "no ptxas");
	text_printf(p->out, "; tiles need about %u</dd></div>\n", k->live_registers);
}

static void put_head(page *p, uint32_t i)
{
	const explain_kernel *k = p->kernels[i];
	text_printf(p->out, "<section class=\"kernel\" data-k=\"%u\" id=\"k%u\">\n<h2><code>", i, i);
	put_string(p->out, k->name);
	text_puts(p->out, "</code> <small>for ");
	put_string(p->out, k->target->name);
	text_puts(p->out, "</small></h2>\n<dl class=\"facts\">\n");
	put_fact(p, "warps", k->producer_warps ? "%u + %u of a producer" : "%u", k->num_warps, k->producer_warps);
	if (k->assembled) {
		put_fact(p, "registers", "%u <small>of %u</small>", k->registers, TARGET_THREAD_REGISTERS);
		if (k->consumer_registers)
			put_fact(p, "handed over", "%u <small>a consumer's,</small> %u <small>the producer's</small>",
				k->consumer_registers, k->producer_registers);
		put_fact(p, "spills", "%u <small>bytes</small>", k->spill_bytes, 0);
	} else
		put_unknown(p, k);
	put_fact(p, "shared memory", "%u <small>bytes</small>", k->shared_bytes, 0);
	put_fact(p, "barriers", "%u", k->barriers, 0);
	if (k->assembled)
		put_fact(p, "occupancy", "%u <small>of %u warps</small>", k->occupancy.warps, k->target->sm_warps);
	put_fact(p, "PTX", "%u <small>bytes</small>", (uint32_t)k->ptx_bytes, 0);
	text_puts(p->out, "</dl>\n</section>\n");
}

static void put_heads(page *p)
{
	for (uint32_t k = 0; k < p->nkernels; k++) put_head(p, k);
}

/* One row as --explain prints it: what it is, what became of it, reasons on lines of their own. */
static void put_row(page *p, uint32_t k, uint32_t i)
{
	const explain_kernel *kernel = p->kernels[k];
	text said = {.arena = p->arena};
	explain_text_row(&said, p->arena, kernel, &kernel->rows.at[i]);
	const char *s = said.at + strspn(said.at, " "), *end = s + strcspn(s, "\n");
	const char *colon = memmem(s, (size_t)(end - s), ": ", 2);
	text_printf(p->out, "<article class=\"fact\" id=\"k%u-r%u\" data-row=\"%u\" data-kind=\"%s\">\n<h5>", k, i, i,
		explain_kind_names[kernel->rows.at[i].kind]);
	put_escaped(p->out, s, (size_t)((colon ? colon : end) - s));
	text_puts(p->out, "</h5>\n");
	if (colon) {
		text_puts(p->out, "<p>");
		put_escaped(p->out, colon + 2, (size_t)(end - colon - 2));
		text_puts(p->out, "</p>\n");
	}
	for (s = end; *s && (s += strspn(s, "\n "), *s); s += strcspn(s, "\n")) {
		text_puts(p->out, "<p class=\"why\">");
		put_escaped(p->out, s, strcspn(s, "\n"));
		text_puts(p->out, "</p>\n");
	}
	text_puts(p->out, "</article>\n");
}

static void put_line_head(page *p, uint32_t k, const explain_row *row)
{
	text place = {.arena = p->arena};
	const source_file *f = row->at.file;
	if (!put_place(p, &place, f, row->line)) {
		text_puts(p->out, "<section class=\"at\"><h4>made by the compiler</h4>\n");
		return;
	}
	const char *s = f->text + f->line_start[row->line - 1];
	size_t n = line_bytes(f, row->line), indent = 0;
	while (indent < n && (s[indent] == ' ' || s[indent] == '\t')) indent++;
	text_printf(p->out, "<section class=\"at\" data-l=\"%s\"><h4><a href=\"#%s\">", place.at, place.at);
	if (f != p->kernels[k]->at.file) {
		const char *slash = strrchr(f->name, '/');
		put_string(p->out, slash ? slash + 1 : f->name);
		text_puts(p->out, ":");
	}
	text_printf(p->out, "%u</a> <code>", row->line);
	put_escaped(p->out, s + indent, n - indent);
	text_puts(p->out, "</code></h4>\n");
}

static void put_report(page *p, uint32_t k)
{
	const explain_kernel *kernel = p->kernels[k];
	text_printf(p->out,
		"<section class=\"report\" data-k=\"%u\" id=\"k%u-report\">\n<h3>What became of each line</h3>\n", k,
		k);
	text_puts(p->out, "<div class=\"lines\">\n");
	for (uint32_t i = 0; i < kernel->rows.n; i++) {
		const explain_row *row = &kernel->rows.at[i];
		if (i == 0 || row->at.file != row[-1].at.file || row->line != row[-1].line) {
			if (i) text_puts(p->out, "</section>\n");
			put_line_head(p, k, row);
		}
		put_row(p, k, i);
	}
	if (kernel->rows.n) text_puts(p->out, "</section>\n");
	text_puts(p->out, "</div>\n</section>\n");
}

static void put_reports(page *p)
{
	for (uint32_t k = 0; k < p->nkernels; k++) put_report(p, k);
}

static void put_tabs(page *p)
{
	for (uint32_t k = 0; k < p->nkernels; k++) {
		text_printf(p->out, "<a href=\"#k%u\" data-k=\"%u\">", k, k);
		put_string(p->out, p->kernels[k]->name);
		text_puts(p->out, "</a>\n");
	}
}

/* ---- what the pictures are drawn from ---- */

/* Programs that an SM takes, over a number that is varied: [[16, 8], [24, 8], ..]. */
static void put_curve(text *out, const explain_kernel *k, bool registers, uint32_t first, uint32_t last, uint32_t step)
{
	uint32_t warps = k->num_warps + k->producer_warps;
	text_puts(out, "[");
	for (uint32_t x = first; x <= last; x += step) {
		target_occupancy o = registers ? target_fill_sm(k->target, warps, x, k->all_shared)
					       : target_fill_sm(k->target, warps, k->registers, x);
		text_printf(out, "%s[%u, %u]", x == first ? "" : ", ", x, o.ctas);
	}
	text_puts(out, "]");
}

/* The page's names for places, and occupancy as it could be. */
static void put_extra(page *p, text *out)
{
	text_puts(out, "{\"files\": [");
	for (uint32_t i = 0; i < p->files.n; i++) {
		if (i) text_puts(out, ", ");
		diag_json_string(out, p->files.at[i].file->name);
	}
	text_puts(out, "], \"kernels\": [");
	for (uint32_t i = 0; i < p->nkernels; i++) {
		const explain_kernel *k = p->kernels[i];
		text_printf(out, "%s{", i ? ", " : "");
		if (k->assembled) {
			text_puts(out, "\"by_registers\": ");
			put_curve(out, k, true, 16, 256, 8);
			text_puts(out, ", \"by_shared\": ");
			put_curve(out, k, false, 0, k->target->shared_bytes, 4096);
		}
		text_puts(out, "}");
	}
	text_puts(out, "]}");
}

static void put_report_data(page *p)
{
	text json = {.arena = p->arena};
	explain_json(&json, p->arena, p->main->name, p->kernels, p->nkernels);
	put_json(p->out, &json);
}

static void put_extra_data(page *p)
{
	text json = {.arena = p->arena};
	put_extra(p, &json);
	put_json(p->out, &json);
}

/* ---- the page ---- */

static void put_title(page *p)
{
	put_string(p->out, p->main->name);
}

static void put_version(page *p)
{
	text_puts(p->out, BLK_VERSION);
}

static void put_part(page *p, const char *name)
{
	const lib_source *part = page_find(name);
	assert(part);
	text_add(p->out, part->text, part->bytes);
}

static void put_style(page *p)
{
	put_part(p, "page.css");
}

static void put_script(page *p)
{
	put_part(p, "page.js");
}

static void put_mark(page *p, const char *name, size_t n)
{
	static const struct {
		const char *name;
		void (*put)(page *);
	} marks[] = {{"title", put_title}, {"tabs", put_tabs}, {"heads", put_heads}, {"source", put_source},
		{"panes", put_panes}, {"facts", put_reports}, {"report", put_report_data}, {"extra", put_extra_data},
		{"style", put_style}, {"script", put_script}, {"version", put_version}};
	for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
		if (strlen(marks[i].name) == n && memcmp(marks[i].name, name, n) == 0) marks[i].put(p);
}

void explain_html(text *out, arena *a, const source_file *main, const explain_kernel *const *kernels, uint32_t n)
{
	page p = {.out = out, .arena = a, .main = main, .kernels = kernels, .nkernels = n};
	const lib_source *frame = page_find("page.html");
	assert(frame);
	find_files(&p);
	/* {{name}} stands for a part; what is put in is not looked at again. */
	for (const char *s = frame->text, *end = s + frame->bytes; s < end;) {
		const char *open = strstr(s, "{{"), *close = open ? strstr(open, "}}") : NULL;
		text_add(out, s, (size_t)((close ? open : end) - s));
		if (!close) break;
		put_mark(&p, open + 2, (size_t)(close - open - 2));
		s = close + 2;
	}
}
