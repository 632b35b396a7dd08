/* Several kernels' PTX modules joined into one.
 *
 * In: texts as nvptx_emit() writes them.  Out: one text with one header (the highest .version), one .file directive for
 * each source path, and the .loc directives renumbered to match.
 * The one idea: ptxas accepts repeated identical declarations (.extern) but neither a second header nor a second
 * directive for one file number, so only those lines are touched. */
#include "ptx_join.h"

#include <stdlib.h>
#include <string.h>

typedef VEC(const char *) paths;

static bool starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static const char *skip_space(const char *s)
{
	while (*s == ' ' || *s == '\t') s++;
	return s;
}

/* The number of `path` (a quoted name to the end of the line) in the joined module, from 1. */
static unsigned file_number(arena *a, paths *files, const char *path, size_t n)
{
	for (uint32_t i = 0; i < files->n; i++)
		if (strlen(files->at[i]) == n && memcmp(files->at[i], path, n) == 0) return i + 1;
	vec_push(a, files, arena_strndup(a, path, n));
	return files->n;
}

/* map[k]: the joined number of the module's file k. .file lines may stand behind their uses, hence a pass of their own.
 */
static unsigned *read_files(arena *a, paths *files, const char *ptx, unsigned *count)
{
	VEC(unsigned) map = {0};
	for (const char *line = ptx; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *s = skip_space(line);
		if (!starts(s, ".file")) continue;
		char *end;
		unsigned long k = strtoul(s + 5, &end, 10);
		const char *path = skip_space(end);
		size_t n = strcspn(path, "\n");
		if (k > 65535) continue;
		while (map.n <= k) vec_push(a, &map, 0u);
		map.at[k] = file_number(a, files, path, n);
	}
	*count = map.n;
	return map.at;
}

static double header_version(const char *ptx)
{
	const char *v = strstr(ptx, ".version");
	return v ? strtod(v + 8, NULL) : 0;
}

static const char *renumber(text *out, const char *number, const unsigned *map, unsigned count)
{
	unsigned long k = strtoul(number, NULL, 10);
	text_printf(out, "%u", k < count && map[k] ? map[k] : (unsigned)k);
	return number + strspn(number, "0123456789");
}

static void add_loc(text *out, const char *line, size_t n, const unsigned *map, unsigned count)
{
	const char *end = line + n, *s = strstr(line, ".loc") + 4;
	s = skip_space(s);
	text_add(out, line, (size_t)(s - line));
	s = renumber(out, s, map, count);
	const char *inlined = strstr(s, "inlined_at");
	if (inlined && inlined < end) {
		const char *number = skip_space(inlined + 10);
		text_add(out, s, (size_t)(number - s));
		s = renumber(out, number, map, count);
	}
	text_add(out, s, (size_t)(end - s));
}

static void add_module(text *out, const char *ptx, bool first, double version, const unsigned *map, unsigned count)
{
	for (const char *line = ptx; *line;) {
		size_t n = strcspn(line, "\n");
		bool newline = line[n] == '\n';
		const char *s = skip_space(line);
		bool header = starts(s, ".version") || starts(s, ".target") || starts(s, ".address_size");
		if (starts(s, ".version") && first)
			text_printf(out, ".version %.1f\n", version);
		else if ((header && !first) || starts(s, ".file")) {
		} else {
			if (starts(s, ".loc\t") || starts(s, ".loc ")) /* not .local */
				add_loc(out, line, n, map, count);
			else
				text_add(out, line, n);
			if (newline) text_add(out, "\n", 1);
		}
		line += n + newline;
	}
}

const char *ptx_join(arena *a, const char *const *ptx, size_t n, size_t *bytes)
{
	text out = {.arena = a};
	paths files = {0};
	double version = 0;
	for (size_t i = 0; i < n; i++)
		if (header_version(ptx[i]) > version) version = header_version(ptx[i]);
	for (size_t i = 0; i < n; i++) {
		unsigned count = 0, *map = read_files(a, &files, ptx[i], &count);
		add_module(&out, ptx[i], i == 0, version, map, count);
	}
	for (uint32_t i = 0; i < files.n; i++) text_printf(&out, "\t.file\t%u %s\n", i + 1, files.at[i]);
	*bytes = out.n;
	return out.at ? out.at : "";
}
