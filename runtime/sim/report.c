/* What went wrong, in words: where in the source, in which program and thread, and what may be the reason.  Only the
 * first problem of a launch is kept; every other program stops at its next pause. */
#include "sim.h"

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

/* A JSON string's inside. */
static void escape(const char *s, char *out, size_t room)
{
	size_t n = 0;
	for (; *s && n + 8 < room; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\' || c < 0x20)
			n += (size_t)snprintf(out + n, room - n, "\\u%04x", c);
		else
			out[n++] = *s;
	}
	out[n] = 0;
}

static void write_json(const sim_warp *w, const sim_instr *in, unsigned lane, const char *what, const char *hint,
	char *out, size_t room)
{
	const sim_program *p = w->program;
	const sim_code *c = p->code;
	char message[1024], file[512], advice[512];
	escape(what, message, sizeof message);
	escape(in->file < c->nfiles && c->files[in->file] ? c->files[in->file] : "", file, sizeof file);
	escape(hint ? hint : "", advice, sizeof advice);
	snprintf(out, room,
		"{\"problem\": \"%s\", \"file\": \"%s\", \"line\": %u, \"ptx_line\": %u, \"kernel\": \"%s\", "
		"\"program\": [%u, %u, %u], \"thread\": %u, \"hint\": \"%s\"}",
		message, file, in->source_line, in->line, p->launch->kernel, p->id[0], p->id[1], p->id[2],
		SIM_LANES * w->index + lane, advice);
}

bool sim_report(sim_warp *w, const sim_instr *in, unsigned lane, const char *hint, const char *fmt, ...)
{
	const sim_program *p = w->program;
	char what[768], where[512], text[3072];
	va_list list;
	va_start(list, fmt);
	vsnprintf(what, sizeof what, fmt, list);
	va_end(list);
	sim_place(p->code, in, where, sizeof where);
	if (p->launch->json)
		write_json(w, in, lane, what, hint, text, sizeof text);
	else
		snprintf(text, sizeof text,
			"%s: %s\n  in kernel %s, program (%u, %u, %u), thread %u, line %u of its PTX%s%s", where, what,
			p->launch->kernel, p->id[0], p->id[1], p->id[2], SIM_LANES * w->index + lane, in->line,
			hint ? "\n  hint: " : "", hint ? hint : "");
	return stop(p->launch, PROBLEM_REPORT, text);
}
