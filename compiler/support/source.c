/* Positions in source text: byte offsets everywhere, lines and columns only when somebody asks.
 *
 * In: a file and a span of its bytes.  Out: line and column, both from 1.
 * The one idea: the line table is built on first use (a compile without diagnostics and line info never pays), and a
 * column counts code points, an invalid byte being one.  Lines may be megabytes long: for text that is not ASCII the
 * number of code points is noted every STEP bytes, so that a position costs no walk from the start of its line. */
#include "diag.h"

#include <assert.h>
#include <string.h>

int source_utf8(const char *s, size_t n, int *length)
{
	assert(n > 0);
	const unsigned char *u = (const unsigned char *)s;
	*length = 1;
	if (u[0] < 0x80) return u[0];
	int more = u[0] >= 0xf0 ? 3 : u[0] >= 0xe0 ? 2 : 1;
	if (u[0] < 0xc2 || u[0] > 0xf4 || n < (size_t)more + 1) return -1;
	int c = u[0] & (0x3f >> more);
	for (int i = 1; i <= more; i++) {
		if ((u[i] & 0xc0) != 0x80) return -1;
		c = c << 6 | (u[i] & 0x3f);
	}
	/* overlong forms, surrogates, beyond the last plane */
	if ((more == 2 && c < 0x800) || (more == 3 && c < 0x10000) || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		return -1;
	*length = more + 1;
	return c;
}

enum { STEP = 1024 };
typedef struct source_step {
	uint32_t at, characters; /* the first code point that starts at STEP * i or later; how many start before it */
} source_step;

static void make_steps(arena *a, source_file *f)
{
	size_t i = 0;
	while (i < f->size && (unsigned char)f->text[i] < 0x80) i++;
	if (i == f->size) return;
	f->steps = ARENA_ARRAY(a, source_step, f->size / STEP + 1);
	uint32_t at = 0, characters = 0;
	for (size_t k = 0; k <= f->size / STEP; k++) {
		for (; at < k * STEP && at < f->size; characters++) {
			int length;
			source_utf8(f->text + at, f->size - at, &length);
			at += (uint32_t)length;
		}
		f->steps[k] = (source_step){at, characters};
	}
}

/* Code points that start before byte `at`. */
static uint32_t characters_before(const source_file *f, uint32_t at)
{
	assert(at <= f->size);
	if (!f->steps) return at;
	source_step s = f->steps[at / STEP];
	if (s.at > at) s = f->steps[at / STEP - 1]; /* step 0 is at 0 */
	for (; s.at < at; s.characters++) {
		int length;
		source_utf8(f->text + s.at, f->size - s.at, &length);
		s.at += (uint32_t)length;
	}
	return s.characters;
}

void source_lines(arena *a, source_file *f)
{
	if (f->line_start) return;
	size_t n = 1;
	for (const char *p = f->text; (p = memchr(p, '\n', f->size - (size_t)(p - f->text))); p++) n++;
	uint32_t *start = ARENA_ARRAY(a, uint32_t, n);
	uint32_t i = 1;
	for (const char *p = f->text; (p = memchr(p, '\n', f->size - (size_t)(p - f->text))); p++)
		start[i++] = (uint32_t)(p - f->text) + 1;
	f->nlines = (uint32_t)n;
	assert(i == n);
	make_steps(a, f);
	f->line_start = start;
}

source_position source_locate(arena *a, span s)
{
	if (!s.file) return (source_position){0, 0};
	source_file *f = s.file;
	source_lines(a, f);
	uint32_t at = s.begin < f->size ? s.begin : (uint32_t)f->size;
	uint32_t low = 0, high = f->nlines; /* line_start[low] <= at < line_start[high] */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (f->line_start[middle] <= at)
			low = middle;
		else
			high = middle;
	}
	assert(f->line_start[low] <= at);
	uint32_t column = characters_before(f, at) - characters_before(f, f->line_start[low]) + 1;
	return (source_position){low + 1, column};
}

span span_join(span a, span b)
{
	assert(a.begin <= a.end && b.begin <= b.end);
	if (!a.file) return b;
	if (a.file != b.file) return a;
	if (b.begin < a.begin) a.begin = b.begin;
	if (b.end > a.end) a.end = b.end;
	return a;
}
