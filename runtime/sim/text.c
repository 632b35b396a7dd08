/* PTX text cut into words: names with their dots (add.s32, %tid.x), numbers, marks.  Comments and blank space go,
 * but for comments that begin with "//@ ": the rest of their line is for the simulator (decode_check.c). */
#include "parse.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool parse_fail(parser *p, const char *fmt, ...)
{
	if (p->failed) return false;
	va_list list;
	char text[512];
	va_start(list, fmt);
	vsnprintf(text, sizeof text, fmt, list);
	va_end(list);
	uint32_t line = p->statement_line ? p->statement_line : p->now.line;
	if (p->room) snprintf(p->error, p->room, "line %u of the PTX: %s", line, text);
	p->failed = true;
	return false;
}

void *parse_grow(parser *p, void *array, size_t n, size_t *room, size_t size)
{
	if (n < *room) return array;
	size_t more = *room ? 2 * *room : 32;
	void *bigger = realloc(array, more * size);
	if (!bigger) {
		parse_fail(p, "out of memory");
		return NULL;
	}
	*room = more;
	return bigger;
}

static void skip_blank(parser *p)
{
	for (;;) {
		char c = *p->at;
		if (c == '\n')
			p->line++, p->at++;
		else if (c == ' ' || c == '\t' || c == '\r')
			p->at++;
		else if (c == '/' && strncmp(p->at, "//@ ", 4) == 0) /* an instruction of the simulator's alone */
			p->at += 4;
		else if (c == '/' && p->at[1] == '/')
			while (*p->at && *p->at != '\n') p->at++;
		else if (c == '/' && p->at[1] == '*') {
			for (p->at += 2; *p->at && !(p->at[0] == '*' && p->at[1] == '/'); p->at++)
				p->line += *p->at == '\n';
			if (*p->at) p->at += 2;
		} else
			return;
	}
}

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

static bool number(parser *p)
{
	word *w = &p->now;
	const char *s = p->at;
	char *end;
	w->kind = WORD_NUMBER;
	w->text = s;
	if (s[0] == '0' && strchr("fFdD", s[1]) && s[1]) {
		w->float_bytes = tolower((unsigned char)s[1]) == 'f' ? 4 : 8;
		w->bits = strtoull(s + 2, &end, 16);
		if (end != s + 2 + 2 * w->float_bytes) return parse_fail(p, "a malformed number");
	} else {
		bool binary = s[0] == '0' && (s[1] == 'b' || s[1] == 'B');
		w->bits = binary ? strtoull(s + 2, &end, 2) : strtoull(s, &end, 0);
		if (*end == '.' && isdigit((unsigned char)end[1])) {
			double v = strtod(s, &end);
			memcpy(&w->bits, &v, sizeof v);
			w->float_bytes = 8;
		} else if (*end == 'U' || *end == 'u')
			end++;
	}
	w->n = (size_t)(end - s);
	p->at = end;
	return true;
}

bool parse_next(parser *p)
{
	skip_blank(p);
	word *w = &p->now;
	*w = (word){.line = p->line, .text = p->at};
	char c = *p->at;
	if (!c) return true;
	if (isdigit((unsigned char)c)) return number(p);
	if (in_name(c)) {
		w->kind = WORD_NAME;
		while (in_name(*p->at) || (p->at[0] == ':' && p->at[1] == ':')) p->at += *p->at == ':' ? 2 : 1;
		w->n = (size_t)(p->at - w->text);
		return true;
	}
	if (c == '"') {
		w->kind = WORD_STRING;
		w->text = ++p->at;
		while (*p->at && *p->at != '"' && *p->at != '\n') p->at++;
		w->n = (size_t)(p->at - w->text);
		if (*p->at != '"') return parse_fail(p, "a string without an end");
		p->at++;
		return true;
	}
	w->kind = WORD_MARK;
	w->n = 1;
	p->at++;
	return true;
}

bool parse_is(const parser *p, const char *s)
{
	return (p->now.kind == WORD_NAME || p->now.kind == WORD_MARK) && strlen(s) == p->now.n &&
	       memcmp(p->now.text, s, p->now.n) == 0;
}

bool parse_accept(parser *p, const char *s)
{
	return parse_is(p, s) && parse_next(p);
}

bool parse_expect(parser *p, const char *s)
{
	if (parse_accept(p, s)) return true;
	return parse_fail(p, "'%s' was expected, not '%.*s'", s, (int)(p->now.n < 40 ? p->now.n : 40), p->now.text);
}
