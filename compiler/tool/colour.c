/* Colours of diagnostics on terminals.
 *
 * In: diagnostics as text.  Out: the same text, with escape sequences around what an eye looks for.
 * The one idea: a line says by its own form what it is, so what renders it needs to know nothing of colours:
 *   file:1:2: error[E0201]: text      the place and the severity
 *        | ~~^ label                  the marks
 *   hint: text  note: text            the word */
#include "colour.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESET "\033[0m"
#define BOLD "\033[1m"
#define RED "\033[1;31m"
#define YELLOW "\033[1;33m"
#define GREEN "\033[1;32m"
#define CYAN "\033[1;36m"

static int wanted(FILE *out)
{
	const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
	if (no && *no) return 0;
	return terminal && strcmp(terminal, "dumb") != 0 && isatty(fileno(out));
}

static void put(FILE *out, const char *colour, const char *s, size_t n)
{
	fprintf(out, "%s%.*s%s", colour, (int)n, s, RESET);
}

static const char *find(const char *line, size_t n, const char *what)
{
	size_t m = strlen(what);
	for (size_t i = 0; i + m <= n; i++)
		if (memcmp(line + i, what, m) == 0) return line + i;
	return NULL;
}

/* "file:1:2: error[E0201]: text"; false where the line is none. */
static int put_headline(FILE *out, const char *line, size_t n)
{
	const char *at = find(line, n, ": error["), *colour = RED;
	if (!at) {
		at = find(line, n, ": warning[");
		colour = YELLOW;
	}
	const char *end = at ? memchr(at, ']', n - (size_t)(at - line)) : NULL;
	if (!end) return 0;
	put(out, BOLD, line, (size_t)(at - line) + 2);
	put(out, colour, at + 2, (size_t)(end + 1 - at) - 2);
	put(out, BOLD, end + 1, n - (size_t)(end + 1 - line));
	return 1;
}

/* "     | ~~^ label": spaces, a bar, then marks. */
static int put_marks(FILE *out, const char *line, size_t n)
{
	size_t bar = strspn(line, " ");
	if (bar >= n || line[bar] != '|' || !find(line, n, "^")) return 0;
	fprintf(out, "%.*s", (int)bar + 1, line);
	put(out, GREEN, line + bar + 1, n - bar - 1);
	return 1;
}

static int put_word(FILE *out, const char *line, size_t n)
{
	if (n < 5 || (memcmp(line, "hint:", 5) != 0 && memcmp(line, "note:", 5) != 0)) return 0;
	put(out, CYAN, line, 5);
	fprintf(out, "%.*s", (int)n - 5, line + 5);
	return 1;
}

void colour_diagnostics(FILE *out, const char *text)
{
	if (!wanted(out)) {
		fputs(text, out);
		return;
	}
	while (*text) {
		size_t n = strcspn(text, "\n");
		if (!put_headline(out, text, n) && !put_marks(out, text, n) && !put_word(out, text, n))
			fprintf(out, "%.*s", (int)n, text);
		text += n;
		if (*text == '\n') fputc(*text++, out);
	}
}
