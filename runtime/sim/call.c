/* What a kernel asks of its host: lines to print and asserts that failed. */
#include "sim.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct line {
	char text[4096];
	size_t n;
} line;

static void add(line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(line *l, const char *fmt, ...)
{
	va_list list;
	va_start(list, fmt);
	int n = vsnprintf(l->text + l->n, sizeof l->text - l->n, fmt, list);
	va_end(list);
	if (n > 0) l->n += (size_t)n;
	if (l->n >= sizeof l->text) l->n = sizeof l->text - 1;
}

/* A text in device memory, byte by byte up to its end. */
static bool read_text(sim_warp *w, const sim_instr *in, unsigned lane, uint64_t at, char *out, size_t room)
{
	for (size_t i = 0; i < room; i++) {
		uint8_t *shadow, *byte = sim_memory(w, in, lane, SPACE_GENERIC, at + i, 1, false, &shadow);
		if (!byte) return false;
		out[i] = (char)*byte;
		if (!*byte) return true;
	}
	out[room - 1] = 0;
	return true;
}

/* The next argument of vprintf, each at a multiple of its size. */
static bool argument(sim_warp *w, const sim_instr *in, unsigned lane, uint64_t *at, unsigned bytes, uint64_t *out)
{
	assert(bytes == 4 || bytes == 8);
	uint8_t *shadow;
	*at = (*at + bytes - 1) & ~(uint64_t)(bytes - 1);
	uint8_t *p = sim_memory(w, in, lane, SPACE_GENERIC, *at, bytes, false, &shadow);
	if (!p) return false;
	for (unsigned i = 0; i < bytes; i++)
		if (shadow[i]) return sim_report(w, in, lane, NULL, "an undefined value is printed");
	*out = 0;
	memcpy(out, p, bytes);
	*at += bytes;
	return true;
}

static bool conversion(sim_warp *w, const sim_instr *in, unsigned lane, const char **format, uint64_t *at, line *l)
{
	const char *f = *format + 1;
	unsigned bytes = 4;
	uint64_t v;
	char kind;
	while (*f == 'l') bytes = 8, f++;
	kind = *f;
	if (kind == '%') {
		add(l, "%%");
		*format = f + 1;
		return true;
	}
	if (!kind || !strchr("diuxpgfec", kind)) {
		add(l, "%%");
		*format += 1;
		return true;
	}
	if (strchr("pgfe", kind)) bytes = 8;
	if (!argument(w, in, lane, at, bytes, &v)) return false;
	double d;
	memcpy(&d, &v, sizeof d);
	if (kind == 'd' || kind == 'i')
		add(l, "%" PRId64, bytes == 4 ? (int64_t)(int32_t)v : (int64_t)v);
	else if (kind == 'u')
		add(l, "%" PRIu64, v);
	else if (kind == 'c')
		add(l, "%c", (int)v);
	else if (kind == 'x' || kind == 'p')
		add(l, kind == 'p' ? "0x%" PRIx64 : "%" PRIx64, v);
	else if (isnan(d))
		add(l, "nan");
	else
		add(l, kind == 'f' ? "%f" : kind == 'e' ? "%e" : "%g", d);
	*format = f + 1;
	return true;
}

/* "pid (0, 0, 0) idx (3, 4) assertion failed: ..": the line in front of a failed assert of a tile
 * (target/nvptx/debug.c).  The lowest index of the lanes is kept for the assert's own report. */
static void keep_failed_index(sim_warp *w, const char *text)
{
	uint32_t index[4] = {0};
	unsigned rank = 0;
	const char *p = strstr(text, " idx (");
	if (!p || !strstr(p, ") assertion failed: ")) return;
	for (p += 6; rank < 4 && *p >= '0' && *p <= '9'; p += strspn(p, ", ")) {
		char *end;
		index[rank++] = (uint32_t)strtoul(p, &end, 10);
		p = end;
	}
	for (unsigned d = 0; w->failed_rank && d < rank; d++) {
		if (index[d] > w->failed[d]) return;
		if (index[d] < w->failed[d]) break;
	}
	memcpy(w->failed, index, sizeof index);
	w->failed_rank = (uint8_t)rank;
}

bool sim_step_print(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	char format[2048];
	uint32_t bad = (w->bad[in->regs[0]] | w->bad[in->regs[1]]) & mask;
	if (bad) return sim_report(w, in, (unsigned)__builtin_ctz(bad), NULL, "an undefined address is printed from");
	w->failed_rank = 0;
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		uint64_t at = sim_register_read(sim_at(w, in->regs[1]), 8, i);
		line l = {.n = 0};
		if (!read_text(w, in, i, sim_register_read(sim_at(w, in->regs[0]), 8, i), format, sizeof format))
			return false;
		for (const char *f = format; *f;) {
			if (*f == '%') {
				if (!conversion(w, in, i, &f, &at, &l)) return false;
			} else
				add(&l, "%c", *f++);
		}
		l.text[l.n] = 0;
		keep_failed_index(w, l.text);
		fwrite(l.text, 1, l.n, stdout); /* one call: stdio's lock keeps the line whole */
	}
	if (in->d != UINT32_MAX) {
		memset(w->scratch, 0, 4 * SIM_LANES);
		sim_write_lanes(sim_at(w, in->d), w->scratch, 4, mask);
		sim_set_defined(w, in->d, mask);
	}
	return true;
}

/* (message, file, line, function, bytes of a character) */
bool sim_step_assert(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	char message[1024], file[512], text[2048], index[64] = "";
	size_t n = 0;
	unsigned i = (unsigned)__builtin_ctz(mask);
	const uint32_t *id = w->program->id;
	assert(w->failed_rank <= 4);
	if (!read_text(w, in, i, sim_register_read(sim_at(w, in->regs[0]), 8, i), message, sizeof message) ||
		!read_text(w, in, i, sim_register_read(sim_at(w, in->regs[1]), 8, i), file, sizeof file))
		return false;
	for (unsigned d = 0; d < w->failed_rank; d++)
		n += (size_t)snprintf(index + n, sizeof index - n, "%s%u", d ? ", " : ", element (", w->failed[d]);
	snprintf(text, sizeof text, "%s:%u: assertion failed in program (%u, %u, %u)%s%s: %s", *file ? file : "?",
		(unsigned)sim_register_read(sim_at(w, in->regs[2]), 4, i), id[0], id[1], id[2], index, n ? ")" : "",
		message);
	return sim_assert_failed(w->program->launch, text);
}
