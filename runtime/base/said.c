/* In: diagnostics as the compiler prints them, of the check of a source and then of each compile of a kernel of it.
 * Out: their messages, those that were told before left out.
 * The one idea: a message begins in a line that neither quotes the source ("  12 | ", "     | ") nor belongs to the
 * message above ("note: PLACE", "hint: "), so whole messages can be compared as text. */
#include "said.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool begins_message(const char *line)
{
	const char *p = line + strspn(line, " 0123456789");
	bool quotes = p != line && (*p == '|' || *p == 0 || *p == '\n');
	return !quotes && *line != ' ' && strncmp(line, "hint: ", 6) != 0 && strncmp(line, "note: ", 6) != 0;
}

static const char *next_message(const char *p)
{
	do {
		p = strchr(p, '\n');
		if (!p) return NULL;
		p++;
	} while (*p && !begins_message(p));
	return p;
}

/* Messages stand in `said` between bytes that no message holds. */
static bool is_new(growing *said, const char *message)
{
	growing bounded = {0};
	grow_format(&bounded, "\001%s\001", message);
	bool found = !bounded.failed && said->at && strstr(said->at, bounded.at);
	if (!found && !bounded.failed) grow_text(said, bounded.at);
	free(bounded.at);
	return !found;
}

void said_tell(growing *said, const char *text, void (*tell)(void *context, const char *message), void *context)
{
	for (const char *end; text && *text; text = end) {
		end = next_message(text);
		size_t n = end ? (size_t)(end - text) : strlen(text);
		while (n && text[n - 1] == '\n') n--;
		char *message = strndup(text, n);
		if (!message) { /* twice is better than not at all */
			tell(context, text);
			return;
		}
		if (is_new(said, message)) tell(context, message);
		free(message);
	}
}
