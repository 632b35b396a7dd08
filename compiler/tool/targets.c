/* --target= for a package: "sm_89,cpu" replaces the usual targets, "+sm_100a" adds to them. */
#include "tool.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *known(const char *name, size_t n)
{
	const char *t;
	for (size_t i = 0; (t = blkc_target_name(i, NULL)) != NULL; i++)
		if (strlen(t) == n && strncmp(t, name, n) == 0) return t;
	return NULL;
}

static bool add(const char *name, size_t n, const char **targets, size_t *count)
{
	const char *t = known(name, n);
	if (!t || *count == TOOL_MAX_TARGETS) {
		fprintf(stderr, "blkc: unknown target '%.*s'; see --list-targets\n", (int)n, name);
		return false;
	}
	for (size_t i = 0; i < *count; i++)
		if (targets[i] == t) return true;
	targets[(*count)++] = t;
	return true;
}

bool tool_targets(const char *list, const char **targets, size_t *count)
{
	static const char *const usual[] = {"sm_80", "sm_90a", "cpu"};
	*count = 0;
	for (size_t i = 0; i < 3 && (!list || list[0] == '+'); i++) add(usual[i], strlen(usual[i]), targets, count);
	for (const char *at = list; at && *at;) {
		if (*at == '+') at++;
		size_t n = strcspn(at, ",");
		if (!add(at, n, targets, count)) return false;
		at += n + (at[n] == ',');
	}
	return *count > 0;
}
