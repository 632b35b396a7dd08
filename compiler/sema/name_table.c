/* Tables from interned names to anything. */
#include "internal.h"

#include <assert.h>

static uint32_t slot_of(const name_table *t, const char *name)
{
	assert(t->room && !(t->room & (t->room - 1)) && t->n < t->room);
	uint64_t h = (uint64_t)(uintptr_t)name >> 3;
	h *= UINT64_C(0x9e3779b97f4a7c15);
	uint32_t i = (uint32_t)(h >> 32) & (t->room - 1);
	while (t->at[i].name && t->at[i].name != name) i = (i + 1) & (t->room - 1);
	return i;
}

void *name_table_find(const name_table *t, const char *name)
{
	return t->room ? t->at[slot_of(t, name)].value : NULL;
}

void name_table_set(arena *a, name_table *t, const char *name, void *value)
{
	assert(name);
	if (2 * (t->n + 1) > t->room) {
		name_table bigger = {.room = t->room ? 2 * t->room : 32, .n = t->n};
		bigger.at = arena_alloc(a, bigger.room * sizeof *bigger.at);
		for (uint32_t i = 0; i < t->room; i++)
			if (t->at[i].name) {
				uint32_t j = slot_of(&bigger, t->at[i].name);
				bigger.at[j].name = t->at[i].name;
				bigger.at[j].value = t->at[i].value;
			}
		*t = bigger;
	}
	uint32_t i = slot_of(t, name);
	if (!t->at[i].name) t->n++;
	t->at[i].name = name;
	t->at[i].value = value;
}
