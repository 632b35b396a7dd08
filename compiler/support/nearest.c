/* What a mistyped name could have meant.
 *
 * In: a name and candidates, or an option and the help text that lists all of them.  Out: the nearest one.
 * The one idea: edit distance with transpositions; the shorter a name, the fewer edits count as near. */
#include "nearest.h"

#include <string.h>

enum { LONGEST = NEAREST_OPTION };

/* At `limit` and beyond it is `limit`. */
static unsigned distance(const char *a, const char *b, unsigned limit)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned row[3][LONGEST] = {{0}};
	if (n >= LONGEST || m >= LONGEST || n > m + limit || m > n + limit) return limit;
	for (size_t j = 0; j <= m; j++) row[1][j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		row[2][0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned best = row[1][j - 1] + (a[i - 1] != b[j - 1]);
			if (row[1][j] + 1 < best) best = row[1][j] + 1;
			if (row[2][j - 1] + 1 < best) best = row[2][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && row[0][j - 2] + 1 < best)
				best = row[0][j - 2] + 1;
			row[2][j] = best;
		}
		memcpy(row[0], row[1], sizeof row[0]);
		memcpy(row[1], row[2], sizeof row[1]);
	}
	return row[1][m] < limit ? row[1][m] : limit;
}

/* As many edits make a name of this length another one. */
static unsigned too_far(size_t length)
{
	return length <= 2 ? 1 : length <= 4 ? 2 : length <= 7 ? 3 : 4;
}

const char *nearest_name(const char *name, const char *const *candidates, size_t n)
{
	unsigned best = too_far(strlen(name));
	const char *found = NULL;
	for (size_t i = 0; i < n; i++) {
		unsigned d = distance(name, candidates[i], best);
		if (d < best) {
			best = d;
			found = candidates[i];
		}
	}
	return found;
}

static size_t option_length(const char *s)
{
	return strcspn(s, " \n=,|)");
}

int nearest_option(const char *help, const char *argument, char found[NEAREST_OPTION])
{
	char wanted[NEAREST_OPTION], candidate[NEAREST_OPTION];
	size_t n = option_length(argument);
	if (n < 3 || n >= sizeof wanted) return 0; /* of one letter each is near to each */
	memcpy(wanted, argument, n);
	wanted[n] = 0;
	unsigned best = too_far(n - strspn(wanted, "-"));
	found[0] = 0;
	for (const char *s = help; *s; s++) {
		if (*s != '-' || s == help || !strchr(" \n", s[-1])) continue;
		size_t m = option_length(s);
		if (m < 3 || m >= sizeof candidate) continue;
		memcpy(candidate, s, m);
		candidate[m] = 0;
		unsigned d = distance(wanted, candidate, best);
		if (d < best) {
			best = d;
			memcpy(found, candidate, m + 1);
		}
	}
	return found[0] != 0;
}
