/* See growing.h: room doubles, so that adding takes time in proportion to what is added. */
#include "growing.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for n more bytes and the NUL. */
static bool make_room(growing *g, size_t n)
{
	if (g->failed) return false;
	size_t need = g->n + n + 1;
	if (need <= g->room) return true;
	char *more = realloc(g->at, 2 * need);
	if (!more) return g->failed = true, false;
	g->at = more;
	g->room = 2 * need;
	return true;
}

void grow_bytes(growing *g, const void *bytes, size_t n)
{
	if (!make_room(g, n)) return;
	if (n) memcpy(g->at + g->n, bytes, n);
	g->n += n;
	g->at[g->n] = 0;
}

void grow_text(growing *g, const char *s)
{
	grow_bytes(g, s, strlen(s));
}

void grow_format(growing *g, const char *fmt, ...)
{
	va_list list, again;
	va_start(list, fmt);
	va_copy(again, list);
	int n = vsnprintf(NULL, 0, fmt, list);
	va_end(list);
	if (n < 0) g->failed = true;
	if (n >= 0 && make_room(g, (size_t)n)) g->n += (size_t)vsnprintf(g->at + g->n, (size_t)n + 1, fmt, again);
	va_end(again);
}
