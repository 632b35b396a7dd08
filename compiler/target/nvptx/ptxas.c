/* Runs NVIDIA's assembler, when there is one, and reads what it reports.
 *
 * In: PTX text.  Out: cubin bytes, registers, spilled bytes, static shared memory, the log; budgets that the kernel
 * states are checked against them.  The one idea: all that is asked is read from what `-v` prints. */
#include "lower.h"

#include "analysis/pressure.h"
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t number_before(const char *log, const char *unit)
{
	const char *at = strstr(log, unit);
	if (!at) return 0;
	while (at > log && at[-1] >= '0' && at[-1] <= '9') at--;
	return (uint32_t)strtoul(at, NULL, 10);
}

static void read_report(const tool *a, nvptx_output *out)
{
	out->registers = number_before(a->log, " registers");
	out->spill_bytes = number_before(a->log, " bytes spill stores");
	out->static_shared = number_before(a->log, " bytes smem");
	out->assembled = true;
}

/* What is not a report: warnings, mostly. */
static const char *remarks(const tool *a, arena *memory)
{
	text out = {.arena = memory};
	for (const char *s = a->log; *s;) {
		size_t n = strcspn(s, "\n");
		bool report = strncmp(s, "ptxas info", 10) == 0 || *s == ' ' || n == 0;
		if (!report) {
			text_add(&out, s, n);
			text_puts(&out, "\n");
		}
		s += n + (s[n] == '\n');
	}
	return out.at;
}

static bool budget(pass_context *p, const ir_func *f, const char *what, uint32_t is, uint32_t may)
{
	if (is <= may) return true;
	diag *d = diag_error(p->diags, 815, f->at, "'%s' uses %u %s on %s, its budget is %u", f->name, is, what,
		p->target->name, may);
	pressure_label(p->diags, d, p->arena, f);
	diag_set_hint(p->diags, d, "smaller tiles or more warps leave fewer elements to a thread");
	return false;
}

static bool check_budgets(pass_context *p, const ir_func *f, const nvptx_output *out)
{
	bool good = budget(p, f, "registers a thread", out->registers, f->max_registers);
	return budget(p, f, "bytes of spilled registers", out->spill_bytes, f->max_spills) && good;
}

static bool failed(pass_context *p, span place, const tool *a, const char *what)
{
	int first_line = (int)strcspn(a->log, "\n");
	diag_error(p->diags, 812, place, "ptxas: %s%s%.*s", what, first_line ? ": " : "", first_line, a->log);
	return false;
}

/* It did not refuse the code; it came to nothing.  A report goes on without it. */
static bool broke_off(pass_context *p, const ir_func *f, const tool *a, const nvptx_options *options, nvptx_output *out,
	const char *how)
{
	bool needed = options->want_cubin || options->want_sass || options->check_budgets;
	diag *d = diag_add(p->diags, needed ? DIAG_ERROR : DIAG_WARNING, 812, f->at,
		"ptxas %s; '%s' has %zu bytes of PTX", how, f->name, out->ptx_bytes);
	if (a->end == TOOL_OUT_OF_TIME)
		diag_set_hint(
			p->diags, d, "smaller tiles or more warps make less code; --ptxas-seconds= gives it more time");
	else if (a->limits.megabytes)
		diag_set_hint(p->diags, d,
			"smaller tiles or more warps make less code; --ptxas-memory= gives it more memory");
	out->not_assembled = arena_printf(p->arena, "ptxas %s", how);
	return !needed;
}

typedef struct suspect {
	unsigned long line; /* of the source */
	const ir_op *found;
	arena *arena;
} suspect;

static void suspect_op(ir_op *o, void *context)
{
	suspect *s = context;
	if (o->kind == IR_INLINE_ASM && !s->found && o->at.file && source_locate(s->arena, o->at).line == s->line)
		s->found = o;
}

/* The inline assembly in the source line of which the assembler complains, by the last .loc above the line of PTX that
 * it names; the kernel when that is nobody's text but ours. */
static span refused_place(pass_context *p, const ir_func *f, const tool *a, const nvptx_output *out)
{
	const char *named = strstr(a->log, ", line ");
	suspect s = {.arena = p->arena};
	if (!named) return f->at;
	const char *at = out->ptx, *end = at + out->ptx_bytes;
	for (unsigned long left = strtoul(named + 7, NULL, 10); left && at < end; left--) {
		char *next;
		if (strncmp(at, "\t.loc\t", 6) == 0 && strtoul(at + 6, &next, 10)) s.line = strtoul(next, NULL, 10);
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		at = stop ? stop + 1 : end;
	}
	ir_walk(f->body, suspect_op, &s);
	return s.found ? s.found->at : f->at;
}

static bool refused(pass_context *p, const ir_func *f, const tool *a, const nvptx_output *out)
{
	if (a->log[0]) return failed(p, refused_place(p, f, a, out), a, "it refuses the code");
	return failed(p, f->at, a, arena_printf(p->arena, "it refuses the code: exit status %d and no word", a->code));
}

static int assemble(tool *a, const char *architecture)
{
	char option[64];
	snprintf(option, sizeof option, "-arch=%s", architecture);
	char *arguments[] = {a->program, "-v", option, "-o", a->output, a->input, NULL};
	return tool_run(a, arguments, false);
}

static bool run(tool *a, pass_context *p, const ir_func *f, const nvptx_options *options, nvptx_output *out)
{
	if (!ptxas_find(a, options)) {
		if (!options->want_cubin && !options->ptxas) {
			if (!options->check_budgets) return true;
			diag_add(p->diags, DIAG_NOTE, 814, f->at,
				"no ptxas was found: the register budgets of '%s' are checked when it is loaded",
				f->name);
			return true;
		}
		diag_error(p->diags, 813, f->at, "no assembler at '%s'; give one with --ptxas=", a->program);
		return false;
	}
	int status = tool_prepare(a, out->ptx, out->ptx_bytes) ? assemble(a, p->target->llvm_cpu) : -2;
	if (status == -2) return failed(p, f->at, a, strerror(errno));
	const char *how = status ? tool_ending(a, p->arena) : NULL;
	if (how) return broke_off(p, f, a, options, out, how);
	out->ptxas_log = remarks(a, p->arena);
	if (status != 0) return refused(p, f, a, out);
	out->cubin = tool_output(a, p->arena, &out->cubin_bytes);
	if (!out->cubin) return failed(p, f->at, a, "it left no output");
	read_report(a, out);
	return !options->check_budgets || check_budgets(p, f, out);
}

bool ptxas_find(tool *a, const nvptx_options *options)
{
	return options->ptxas ? tool_is(a, options->ptxas) : tool_find(a, "ptxas", NULL);
}

bool ptxas_run(pass_context *p, const ir_func *f, const nvptx_options *options, nvptx_output *out)
{
	jmp_buf here, *outer = p->arena->recover;
	tool *a = tool_open(p->arena);
	a->limits = options->limits;
	p->arena->recover = &here;
	if (setjmp(here)) {
		tool_close(a);
		p->arena->recover = outer;
		arena_out_of_memory(p->arena);
	}
	bool good = run(a, p, f, options, out);
	p->arena->recover = outer;
	tool_close(a);
	return good;
}

bool nvptx_assemble(
	pass_context *p, const ir_func *f, const char *ptx, size_t n, const nvptx_options *options, nvptx_output *out)
{
	const nvptx_options wanted = {.want_cubin = true, .ptxas = options->ptxas, .limits = options->limits};
	*out = (nvptx_output){.ptx = ptx, .ptx_bytes = n};
	return ptxas_run(p, f, &wanted, out);
}
