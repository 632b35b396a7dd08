/* The PTX text that goes out: LLVM's, with a head of ours and the source beside it.
 *
 * In: what the backend printed.  Out: the same instructions; where a statement starts, its source line as a comment:
 *     .loc 1 12 10                        // what ptxas and profilers read
 *     // softmax.blk:12  let e = exp(v - max(v, axis = 0));
 * The one idea: lines are kept or dropped whole, and nothing is parsed but `.loc`, `.file` and the section directives.
 * The debug sections that the backend adds to line tables, with the `debug` of .target and the labels that only they
 * use, are dropped: with them ptxas would allocate registers differently. */
#include "lower.h"

#include <stdlib.h>
#include <string.h>

typedef struct ptx_writer {
	lower *l;
	text *out;
	VEC(const source_file *) files; /* by the number in .file directives */
	unsigned long file, line;       /* of the last comment */
	const char *loc;                /* the last .loc line that went out */
	size_t loc_bytes;
	bool dropping; /* inside a debug section */
	line_marks *marks;
} ptx_writer;

static bool starts(const char *s, size_t n, const char *with)
{
	size_t m = strlen(with);
	return n >= m && memcmp(s, with, m) == 0;
}

static const source_file *find_in_block(const ir_block *b, const char *name, size_t n)
{
	for (const ir_op *o = b->first; o; o = o->next) {
		const source_file *f = o->at.file;
		if (f && strlen(f->name) == n && memcmp(f->name, name, n) == 0) return f;
		for (unsigned i = 0; i < o->nregions; i++) {
			f = find_in_block(o->regions[i], name, n);
			if (f) return f;
		}
	}
	return NULL;
}

const source_file *lower_find_source(const ir_func *f, const char *name, size_t n)
{
	const source_file *file = f->at.file;
	if (file && strlen(file->name) == n && memcmp(file->name, name, n) == 0) return file;
	return find_in_block(f->body, name, n);
}

/* A byte of a quoted name, which the backend writes as three octal digits where it does not print. */
static char name_byte(const char **s)
{
	const char *at = *s;
	if (at[0] != '\\') return *s += 1, at[0];
	if (at[1] < '0' || at[1] > '7') return *s += 2, at[1];
	*s += 4;
	return (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
}

/* .file N "name" */
static void note_file(ptx_writer *w, const char *s, size_t n)
{
	char *end;
	unsigned long number = strtoul(s + 5, &end, 10);
	const char *open = memchr(s, '"', n), *close = memrchr(s, '"', n);
	if (!open || close == open || number > 4096) return;
	text name = {.arena = w->l->arena};
	for (const char *at = open + 1; at < close;) {
		char c = name_byte(&at);
		text_add(&name, &c, 1);
	}
	while (w->files.n <= number) vec_push(w->l->arena, &w->files, NULL);
	w->files.at[number] = lower_find_source(w->l->func, name.at, name.n);
}

/* ptxas refuses every byte beyond ASCII, in comments too: '?' stands for each of those characters. */
static void put_ascii(text *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c < 0x80)
			text_add(out, c < ' ' ? " " : s + i, 1);
		else if (c >= 0xc0) /* not the rest of a character */
			text_puts(out, "?");
	}
}

void lower_put_source(text *out, const source_file *f, unsigned long line)
{
	if (!f->line_start || line == 0 || line > f->nlines) return;
	const char *s = f->text + f->line_start[line - 1], *end = f->text + f->size;
	while (s < end && (*s == ' ' || *s == '\t')) s++;
	size_t n = 0;
	while (s + n < end && s[n] != '\n' && s[n] != '\r') n++;
	if (n > 160) n = 160;
	if (!n) return;
	text_puts(out, "\t// ");
	put_ascii(out, f->name, strlen(f->name));
	text_printf(out, ":%lu  ", line);
	put_ascii(out, s, n);
	text_puts(out, "\n");
}

/* .loc FILE LINE COLUMN, which begins at `start` */
static void note_line(ptx_writer *w, const char *s, size_t start)
{
	char *end;
	unsigned long file = strtoul(s + 4, &end, 10), line = strtoul(end, NULL, 10);
	if (file == w->file && line == w->line) return;
	w->file = file;
	w->line = line;
	const source_file *f = file < w->files.n ? w->files.at[file] : NULL;
	line_mark m = {.at = start, .file = line ? f : NULL, .line = (uint32_t)line};
	vec_push(w->l->arena, w->marks, m);
	if (f) lower_put_source(w->out, f, line);
}

static bool is_noise(const char *t, size_t m)
{
	return starts(t, m, "$L__tmp") || starts(t, m, "$L__func_") || starts(t, m, "// begin inline asm") ||
	       starts(t, m, "// end inline asm");
}

static void one_line(ptx_writer *w, const char *s, size_t n)
{
	size_t indent = 0;
	while (indent < n && (s[indent] == ' ' || s[indent] == '\t')) indent++;
	const char *t = s + indent;
	size_t m = n - indent;
	if (starts(t, m, ".section") && memmem(t, m, ".debug_", 7)) {
		w->dropping = !memchr(t, '}', m);
		return;
	}
	if (w->dropping) {
		if (*t == '}') w->dropping = false; /* of an empty line, *t is its end */
		return;
	}
	if (is_noise(t, m)) return;
	bool loc = starts(t, m, ".loc\t") || starts(t, m, ".loc "); /* not .local */
	if (loc && w->loc && w->loc_bytes == m && memcmp(w->loc, t, m) == 0) return;
	if (loc) w->loc = t, w->loc_bytes = m;
	if (starts(t, m, ".target")) {
		const char *debug = memmem(s, n, ", debug", 7);
		if (debug) n = (size_t)(debug - s);
	}
	size_t start = w->out->n;
	text_add(w->out, s, n);
	text_puts(w->out, "\n");
	if (loc) note_line(w, t, start);
}

/* The .file directives stand at the end. */
static void find_files(ptx_writer *w, const char *in, const char *end)
{
	for (const char *s = in; (s = memmem(s, (size_t)(end - s), "\t.file\t", 7)); s++) {
		const char *stop = memchr(s, '\n', (size_t)(end - s));
		note_file(w, s + 1, (size_t)((stop ? stop : end) - s - 1));
	}
}

static void add_head(lower *l, text *out)
{
	text_printf(out, "// %s, by blk %s\n", l->func->name, BLK_VERSION);
	const char *s = l->options->signature;
	while (s && *s) {
		const char *end = strchr(s, '\n');
		size_t n = end ? (size_t)(end - s) : strlen(s);
		/* Of the source; this code has made its choice. */
		static const char *const facts[] = {
			"configuration ", "fits ", "time ", "source ", "key ", "try ", "where ", "order "};
		bool tuning = false;
		for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
			tuning = tuning || strncmp(s, facts[i], strlen(facts[i])) == 0;
		if (!tuning) {
			text_puts(out, "// blk: "); /* by which libblk knows a kernel's signature (runtime/module.c) */
			text_add(out, s, n);
			text_puts(out, "\n");
		}
		s += n + (end != NULL);
	}
}

void ptx_finish(lower *l, const char *in, size_t n, text *out, line_marks *marks)
{
	ptx_writer w = {.l = l, .out = out, .marks = marks};
	const char *end = in + n;
	add_head(l, out);
	find_files(&w, in, end);
	while (in < end) {
		const char *stop = memchr(in, '\n', (size_t)(end - in));
		if (!stop) stop = end;
		one_line(&w, in, (size_t)(stop - in));
		in = stop + 1;
	}
}
