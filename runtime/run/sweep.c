/* In: a command line whose values may be lists.  Out: one command line for each size.
 *
 * The one idea: a point of a sweep is text.  Lists are cut and names in a buffer's extents replaced before anything is
 * parsed, so that the rest of blkrun knows single runs only. */
#include "runtime/run/run.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SWEEP_MOST = 4096 };

static int usage(const char *name, const char *what)
{
	fprintf(stderr, "blkrun: %s: %s\n", name, what);
	return 2;
}

/* "2..64": from the first number to the last, doubling. */
static bool parse_range(const char *text, unsigned long long *low, unsigned long long *high)
{
	char *end;
	errno = 0;
	if (!isdigit((unsigned char)*text)) return false;
	*low = strtoull(text, &end, 0);
	if (strncmp(end, "..", 2) != 0 || !isdigit((unsigned char)end[2])) return false;
	*high = strtoull(end + 2, &end, 0);
	return !*end && !errno && *low;
}

/* The length of the first item of a list; commas inside brackets part nothing. */
static size_t item_length(const char *text)
{
	size_t n = 0;
	for (int depth = 0; text[n] && (depth || text[n] != ','); n++)
		depth += (text[n] == '[' || text[n] == '(') - (text[n] == ']' || text[n] == ')');
	return n;
}

static size_t count_items(const char *text)
{
	unsigned long long low, high;
	size_t n = 1;
	if (*text == '@') return 1;
	if (parse_range(text, &low, &high)) {
		if (low > high) return 0;
		for (; low <= high / 2; n++) low *= 2;
		return n;
	}
	for (size_t k; (k = item_length(text), text[k]); text += k + 1) n++;
	return n;
}

/* The i-th item of a list, or the text that is none.  Null: out of memory. */
static char *item_at(const char *text, size_t i)
{
	unsigned long long low, high;
	char number[32];
	if (*text == '@') return strdup(text);
	if (count_items(text) == 1) i = 0;
	if (parse_range(text, &low, &high)) {
		snprintf(number, sizeof number, "%llu", low << i);
		return strdup(number);
	}
	while (i--) text += item_length(text) + 1;
	return strndup(text, item_length(text));
}

static int add_list(sweep *s, const char *name, const char *text)
{
	char what[256];
	size_t n = count_items(text);
	if (n == 0) return usage(name, "a range goes up, as 1024..65536");
	if (n == 1) return 0;
	if (n > SWEEP_MOST) return usage(name, "a list has more than 4096 items");
	if (s->name && n != s->n) {
		snprintf(what, sizeof what, "lists advance in step, but this one has %zu items and that of %s %zu", n,
			s->name, s->n);
		return usage(name, what);
	}
	if (!s->name) s->name = name, s->n = n;
	return 0;
}

int sweep_open(const options *o, sweep *s)
{
	int status = 0;
	*s = (sweep){.options = o, .n = 1};
	for (size_t i = 0; !status && i < o->nvalues; i++) status = add_list(s, o->values[i].name, o->values[i].text);
	for (size_t i = 0; !status && i < o->ndefines; i++)
		status = add_list(s, o->defines[i].name, o->defines[i].value);
	if (!status && s->name && o->nouts) return usage("--out", "a list of sizes writes no files");
	return status;
}

/* ---- Names in extents ---- */

static const char *value_named(const options *o, const char *name, size_t n)
{
	for (size_t i = 0; i < o->nvalues; i++)
		if (strncmp(o->values[i].name, name, n) == 0 && !o->values[i].name[n]) return o->values[i].text;
	for (size_t i = o->ndefines; i-- > 0;) /* of several with one name, the last counts */
		if (strncmp(o->defines[i].name, name, n) == 0 && !o->defines[i].name[n]) return o->defines[i].value;
	return NULL;
}

/* "f32[rows,n]:randn" with the values put in; what names nothing stays, for the parser to complain about. */
static char *fill_extents(const options *o, const char *text)
{
	char *out = NULL;
	size_t size;
	FILE *f = open_memstream(&out, &size);
	if (!f) return NULL;
	bool inside = false;
	while (*text) {
		size_t n = 0;
		while (isalnum((unsigned char)text[n]) || text[n] == '_') n++;
		bool is_name = inside && n && !isdigit((unsigned char)*text);
		const char *value = is_name ? value_named(o, text, n) : NULL;
		if (*text == '[' || *text == ']') inside = *text == '[';
		if (!n) n = 1;
		if (value)
			fputs(value, f);
		else
			fwrite(text, 1, n, f);
		text += n;
	}
	bool written = !ferror(f);
	if (fclose(f) == 0 && written) return out;
	free(out);
	return NULL;
}

/* ---- Points ---- */

static bool own(sweep_point *p, char *text, const char **to)
{
	if (!text) return false;
	*to = p->owned[p->nowned++] = text;
	return true;
}

int sweep_at(const sweep *s, size_t i, sweep_point *p)
{
	options *o = &p->options;
	const char *first = "";
	char *end;
	*p = (sweep_point){.options = *s->options};
	bool good = true;
	if (s->name) snprintf(o->which, sizeof o->which, "%zu of %zu", i + 1, s->n);
	for (size_t k = 0; good && k < o->nvalues; k++)
		good = own(p, item_at(o->values[k].text, i), &o->values[k].text);
	for (size_t k = 0; good && k < o->ndefines; k++)
		good = own(p, item_at(o->defines[k].value, i), &o->defines[k].value);
	if (good && s->name) first = value_named(o, s->name, strlen(s->name));
	snprintf(p->label, sizeof p->label, "%s", first);
	p->x = strtod(first, &end);
	if (*end || !(p->x > 0) || isinf(p->x)) p->x = (double)i + 1;
	for (size_t k = 0; good && k < o->nvalues; k++)
		if (o->values[k].text[0] != '@' && strchr(o->values[k].text, '['))
			good = own(p, fill_extents(o, o->values[k].text), &o->values[k].text);
	if (good) return 0;
	sweep_point_free(p);
	fprintf(stderr, "blkrun: out of memory\n");
	return 1;
}

void sweep_point_free(sweep_point *p)
{
	for (size_t i = 0; i < p->nowned; i++) free(p->owned[i]);
	p->nowned = 0;
}
