/* See names.h. */
#include "names.h"

#include <assert.h>
#include <string.h>

static struct ir_name *find(struct ir_name *slots, uint32_t room, const char *name, size_t n)
{
	assert(room && !(room & (room - 1)));
	uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a: names are short */
	for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)name[i]) * UINT64_C(1099511628211);
	uint32_t at = (uint32_t)(h ^ h >> 32) & (room - 1);
	while (slots[at].name && (slots[at].n != n || memcmp(slots[at].name, name, n) != 0)) at = (at + 1) & (room - 1);
	return &slots[at];
}

uint64_t *ir_names_slot(ir_names *names, const char *name, size_t n)
{
	if (2 * (names->used + 1) > names->room) {
		uint32_t room = names->room ? 2 * names->room : 64;
		struct ir_name *slots = ARENA_ARRAY(names->arena, struct ir_name, room);
		for (uint32_t i = 0; i < names->room; i++)
			if (names->slots[i].name)
				*find(slots, room, names->slots[i].name, names->slots[i].n) = names->slots[i];
		names->slots = slots;
		names->room = room;
	}
	struct ir_name *slot = find(names->slots, names->room, name, n);
	if (!slot->name) {
		*slot = (struct ir_name){.name = name, .n = n};
		names->used++;
		assert(2 * names->used <= names->room);
	}
	return &slot->value;
}
