/* The machine code as text, beside the source.
 *
 * In: a cubin.  Out: what nvdisasm prints of it, with a line of ours where the source line changes:
 *     // softmax.blk:6  let v = load(x + row * stride + columns, mask = mask, other = -inf);
 *         UIMAD UR7, UR7, UR6, URZ ;
 * The one idea: nvdisasm knows the lines (//## File "softmax.blk", line 6); we put the text in.  Where only cuobjdump
 * is found, which does not print lines, there are none, and the head says so. */
#include "lower.h"

#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct named_file {
	const char *name;
	size_t n;
	const source_file *file; /* null: none of ours */
} named_file;

typedef struct marker {
	const ir_func *func;
	text *out;
	const char *name; /* of the last mark */
	size_t name_bytes;
	unsigned long line;
	VEC(named_file) files; /* looked for already */
	line_marks *marks;
} marker;

static const source_file *file_of(marker *m, const char *name, size_t n)
{
	for (uint32_t i = 0; i < m->files.n; i++)
		if (m->files.at[i].n == n && memcmp(m->files.at[i].name, name, n) == 0) return m->files.at[i].file;
	const source_file *f = lower_find_source(m->func, name, n);
	vec_push(m->out->arena, &m->files, ((named_file){name, n, f}));
	return f;
}

/* //## File "softmax.blk", line 6 [inlined at ..] */
static bool mark(marker *m, const char *s, const char *end)
{
	static const char begin[] = "//## File \"", middle[] = "\", line ";
	while (s < end && (*s == ' ' || *s == '\t')) s++;
	if ((size_t)(end - s) < sizeof begin || memcmp(s, begin, sizeof begin - 1) != 0) return false;
	const char *name = s + sizeof begin - 1;
	const char *stop = memmem(name, (size_t)(end - name), middle, sizeof middle - 1);
	if (!stop) return false;
	size_t n = (size_t)(stop - name);
	unsigned long line = strtoul(stop + sizeof middle - 1, NULL, 10);
	if (m->name && line == m->line && n == m->name_bytes && memcmp(name, m->name, n) == 0) return true;
	m->name = name;
	m->name_bytes = n;
	m->line = line;
	const source_file *f = file_of(m, name, n);
	line_mark here = {.at = m->out->n, .file = f, .line = (uint32_t)line};
	vec_push(m->out->arena, m->marks, here);
	if (f) lower_put_source(m->out, f, line);
	return true;
}

static void put_marked(const ir_func *f, const char *s, size_t n, text *out, line_marks *marks)
{
	marker m = {.func = f, .out = out, .marks = marks};
	const char *end = s + n;
	while (s < end) {
		const char *stop = memchr(s, '\n', (size_t)(end - s));
		if (!stop) stop = end;
		if (!mark(&m, s, stop)) {
			text_add(out, s, (size_t)(stop - s));
			text_puts(out, "\n");
		}
		s = stop + 1;
	}
}

typedef struct disassembly {
	tool *tool, *second; /* a tool runs once */
	pass_context *pass;
	const ir_func *func;
	const nvptx_options *options;
	nvptx_output *out;
} disassembly;

/* A page goes out without SASS and says why. */
static bool failed(const disassembly *d, const char *what, const char *why, int n)
{
	if (!d->options->want_sass) {
		d->out->no_sass = arena_printf(d->pass->arena, "%s%s%.*s", what, n ? ": " : "", n, why);
		return true;
	}
	diag_error(d->pass->diags, 816, d->func->at, "no disassembly of '%s': %s%s%.*s", d->func->name, what,
		n ? ": " : "", n, why);
	return false;
}

/* The number behind "// |" of each instruction, which begins with its address: "/ *0140* /  ..  // |  12  |". */
static void read_live(const disassembly *d, const char *s, size_t n)
{
	for (const char *end = s + n; s < end;) {
		const char *stop = memchr(s, '\n', (size_t)(end - s));
		if (!stop) stop = end;
		while (s < stop && *s == ' ') s++;
		const char *column = *s == '/' && s[1] == '*' ? memmem(s, (size_t)(stop - s), "// |", 4) : NULL;
		if (column) vec_push(d->pass->arena, &d->out->live, (uint32_t)strtoul(column + 4, NULL, 10));
		s = stop + 1;
	}
}

/* Where nvdisasm does not say it, a page does without. */
static void find_live(const disassembly *d)
{
	tool *t = d->second;
	char *arguments[] = {d->tool->program, "-c", "-plr", "-lrm", "count", t->input, NULL};
	size_t n;
	snprintf(t->program, sizeof t->program, "%s", d->tool->program);
	if (!tool_prepare(t, d->out->cubin, d->out->cubin_bytes) || tool_run(t, arguments, true)) return;
	const char *printed = tool_output(t, d->pass->arena, &n);
	if (printed) read_live(d, printed, n);
}

static bool run(const disassembly *d, const char *assembler)
{
	tool *t = d->tool;
	nvptx_output *out = d->out;
	arena *a = d->pass->arena;
	text made = {.arena = a};
	size_t n;
	bool lines = tool_find(t, "nvdisasm", assembler);
	if (!lines && !tool_find(t, "cuobjdump", assembler))
		return failed(
			d, "neither nvdisasm nor cuobjdump is beside ptxas, on PATH or in /usr/local/cuda/bin", "", 0);
	char *with_lines[] = {t->program, "-c", "-g", t->input, NULL};
	char *without[] = {t->program, "-sass", t->input, NULL};
	if (!tool_prepare(t, out->cubin, out->cubin_bytes)) return failed(d, strerror(errno), "", 0);
	int status = tool_run(t, lines ? with_lines : without, true);
	if (status == -2) return failed(d, strerror(errno), "", 0);
	const char *how = status ? tool_ending(t, a) : NULL;
	if (how) return failed(d, t->program, how, (int)strlen(how));
	if (status) return failed(d, t->program, t->log, (int)strcspn(t->log, "\n"));
	const char *printed = tool_output(t, a, &n);
	if (!printed) return failed(d, t->program, "it prints nothing", 17);
	text_printf(&made, "// %s, %s%s\n", d->func->name, d->pass->target->name,
		lines ? "" : "; source lines are known to nvdisasm only, which was not found");
	put_marked(d->func, printed, n, &made, &out->sass_marks);
	out->sass = made.at;
	out->sass_bytes = made.n;
	if (lines && d->options->want_page) find_live(d);
	return true;
}

bool sass_run(pass_context *p, const ir_func *f, const nvptx_options *options, nvptx_output *out)
{
	jmp_buf here, *outer = p->arena->recover;
	tool *assembler = tool_open(p->arena), *t = tool_open(p->arena), *second = tool_open(p->arena);
	disassembly d = {.tool = t, .second = second, .pass = p, .func = f, .options = options, .out = out};
	t->limits = second->limits = options->limits;
	p->arena->recover = &here;
	if (setjmp(here)) {
		tool_close(t);
		tool_close(second);
		p->arena->recover = outer;
		arena_out_of_memory(p->arena);
	}
	bool good = out->cubin ? run(&d, ptxas_find(assembler, options) ? assembler->program : NULL)
			       : failed(&d, out->not_assembled ? out->not_assembled : "no ptxas", "", 0);
	p->arena->recover = outer;
	tool_close(t);
	tool_close(second);
	return good;
}
