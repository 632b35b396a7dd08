/* What went wrong, in words or as JSON, from one record: where in the source, in which program and thread, at which
 * memory, and what may be the reason.  Only the first problem of a launch is kept; every other program stops at its
 * next pause. */
#include "base/growing.h"
#include "sim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool stop(sim_launch *l, sim_problem problem, const char *text)
{
	pthread_mutex_lock(&l->lock);
	if (l->problem == PROBLEM_NONE) {
		l->problem = problem;
		l->text = text ? strdup(text) : NULL;
		if (!l->text) l->problem = PROBLEM_MEMORY;
	}
	pthread_mutex_unlock(&l->lock);
	atomic_store_explicit(&l->stopped, true, memory_order_relaxed);
	return false;
}

bool sim_out_of_memory(sim_launch *l)
{
	return stop(l, PROBLEM_MEMORY, NULL);
}

bool sim_out_of_budget(sim_launch *l)
{
	return stop(l, PROBLEM_BUDGET, "");
}

bool sim_assert_failed(sim_launch *l, const char *text)
{
	return stop(l, PROBLEM_ASSERT, text);
}

/* A place in the source, or in the PTX where the source's lines are not known. */
void sim_place(const sim_code *c, const sim_instr *in, char *out, size_t room)
{
	const char *file = in->file < c->nfiles ? c->files[in->file] : NULL;
	if (file && in->source_line)
		snprintf(out, room, "%s:%u", file, in->source_line);
	else
		snprintf(out, room, "line %u of the PTX", in->line);
}

/* ---- JSON ---- */

/* A string; null: null. */
static void put_string(growing *out, const char *s)
{
	if (!s) {
		grow_text(out, "null");
		return;
	}
	grow_text(out, "\"");
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\' || c < 0x20)
			grow_format(out, "\\u%04x", c);
		else
			grow_bytes(out, s, 1);
	}
	grow_text(out, "\"");
}

static void put_code(growing *out, const sim_code *c, const sim_instr *in)
{
	const char *file = in->file < c->nfiles ? c->files[in->file] : NULL;
	grow_text(out, "\"file\": ");
	put_string(out, file ? file : "");
	grow_format(out, ", \"line\": %u, \"ptx_line\": %u", in->source_line, in->line);
}

static void put_number(growing *out, const char *name, bool known, int64_t n)
{
	if (known)
		grow_format(out, ", \"%s\": %" PRId64, name, n);
	else
		grow_format(out, ", \"%s\": null", name);
}

static void put_program(growing *out, const char *name, const uint32_t *id)
{
	if (id)
		grow_format(out, ", \"%s\": [%u, %u, %u]", name, id[0], id[1], id[2]);
	else
		grow_format(out, ", \"%s\": null", name);
}

static void put_other(growing *out, const sim_code *c, const sim_other *o)
{
	grow_text(out, ", \"other\": ");
	if (!o) {
		grow_text(out, "null");
		return;
	}
	grow_text(out, "{");
	put_code(out, c, o->in);
	put_program(out, "program", o->has_program ? o->program : NULL);
	put_number(out, "thread", !o->engine, o->thread);
	grow_text(out, ", \"engine\": ");
	put_string(out, o->engine);
	grow_text(out, ", \"kind\": ");
	put_string(out, o->kind);
	grow_text(out, "}");
}

static void put_cause(growing *out, const sim_code *c, const sim_cause *cause)
{
	grow_text(out, ", \"cause\": ");
	if (!cause) {
		grow_text(out, "null");
		return;
	}
	bool gathers = cause->in->mode == SIM_CHECK_GATHER;
	grow_text(out, "{");
	put_code(out, c, cause->in);
	grow_text(out, ", \"operation\": ");
	put_string(out, gathers ? "gather" : "division");
	if (scalar_is_signed((scalar)cause->in->to))
		put_number(out, "value", true, cause->value);
	else
		grow_format(out, ", \"value\": %" PRIu64, (uint64_t)cause->value);
	put_number(out, "extent", gathers, cause->in->offset);
	grow_text(out, "}");
}

static const char *argument(const sim_launch *l, const sim_range *r, const char *before_word, char out[SIM_NAME])
{
	if (!r || r->parameter < 0) return NULL;
	if (r->word)
		snprintf(out, SIM_NAME, "%s%s[%" PRIu64 "]", before_word, l->names[r->parameter], r->word - 1);
	else
		snprintf(out, SIM_NAME, "%s", l->names[r->parameter]);
	return out;
}

const char *sim_range_argument(const sim_launch *l, const sim_range *r, char out[SIM_NAME])
{
	return argument(l, r, "", out);
}

const char *sim_range_name(const sim_launch *l, const sim_range *r, char out[SIM_NAME])
{
	if (!argument(l, r, "the buffer at ", out)) snprintf(out, SIM_NAME, "a buffer that is no argument");
	return out;
}

static void put_spot(growing *out, const sim_program *p, const sim_spot *s)
{
	static const char *const spaces[] = {
		[SPACE_GLOBAL] = "global", [SPACE_SHARED] = "shared", [SPACE_LOCAL] = "local", [SPACE_CONST] = "const"};
	static const sim_spot nowhere;
	char name[SIM_NAME];
	if (!s) s = &nowhere;
	uint64_t size = s->range                  ? s->range->bytes
			: s->owner                ? s->owner->shared_bytes
			: s->space == SPACE_LOCAL ? p->code->local_bytes
						  : 0;
	grow_text(out, ", \"space\": ");
	put_string(out, spaces[s->space]);
	grow_text(out, ", \"buffer\": ");
	put_string(out, sim_range_argument(p->launch, s->range, name));
	put_program(out, "owner", s->owner ? s->owner->id : NULL);
	put_number(out, "size", s->range || s->owner || s->space == SPACE_LOCAL, (int64_t)size);
	put_number(out, "offset", s->is_placed, s->offset);
	put_number(out, "bytes", s->bytes > 0, (int64_t)s->bytes);
	grow_text(out, ", \"kind\": ");
	put_string(out, s->kind);
	put_other(out, p->code, s->other);
	put_cause(out, p->code, s->cause);
}

static void write_json(const sim_warp *w, const sim_instr *in, unsigned lane, const sim_spot *spot, const char *what,
	const char *hint, growing *out)
{
	const sim_program *p = w->program;
	grow_text(out, "{\"problem\": ");
	put_string(out, what);
	grow_text(out, ", ");
	put_code(out, p->code, in);
	grow_text(out, ", \"kernel\": ");
	put_string(out, p->launch->kernel);
	put_program(out, "program", p->id);
	grow_format(out, ", \"thread\": %u, \"hint\": ", SIM_LANES * w->index + lane);
	put_string(out, hint ? hint : "");
	put_spot(out, p, spot);
	grow_text(out, "}");
}

/* ---- Text ---- */

static void write_text(
	const sim_warp *w, const sim_instr *in, unsigned lane, const char *what, const char *hint, growing *out)
{
	const sim_program *p = w->program;
	char where[512];
	sim_place(p->code, in, where, sizeof where);
	grow_format(out, "%s: %s\n  in kernel %s, program (%u, %u, %u), thread %u, line %u of its PTX%s%s", where, what,
		p->launch->kernel, p->id[0], p->id[1], p->id[2], SIM_LANES * w->index + lane, in->line,
		hint ? "\n  hint: " : "", hint ? hint : "");
}

static bool report(sim_warp *w, const sim_instr *in, unsigned lane, const sim_spot *spot, const char *hint,
	const char *fmt, va_list list) __attribute__((format(printf, 6, 0)));
static bool report(sim_warp *w, const sim_instr *in, unsigned lane, const sim_spot *spot, const char *hint,
	const char *fmt, va_list list)
{
	char what[768];
	growing text = {0};
	vsnprintf(what, sizeof what, fmt, list);
	if (w->program->launch->json)
		write_json(w, in, lane, spot, what, hint, &text);
	else
		write_text(w, in, lane, what, hint, &text);
	stop(w->program->launch, PROBLEM_REPORT, text.failed ? NULL : text.at);
	free(text.at);
	return false;
}

bool sim_report(sim_warp *w, const sim_instr *in, unsigned lane, const char *hint, const char *fmt, ...)
{
	va_list list;
	va_start(list, fmt);
	report(w, in, lane, NULL, hint, fmt, list);
	va_end(list);
	return false;
}

bool sim_report_at(
	sim_warp *w, const sim_instr *in, unsigned lane, const sim_spot *spot, const char *hint, const char *fmt, ...)
{
	va_list list;
	va_start(list, fmt);
	report(w, in, lane, spot, hint, fmt, list);
	va_end(list);
	return false;
}
