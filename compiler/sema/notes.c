/* What names were bound to, for tools that show it.
 *
 * In: each binding, as the walk makes it.  Out: by the place of the name, its types.
 * The one idea: a name in an inlined fn or an unrolled loop is bound many times; a few of the types are kept, each
 * once, and what repeats the last one costs a comparison. */
#include "internal.h"

#include <string.h>

enum { MOST = 4 }; /* types of one name */

typedef struct slot {
	span at; /* file null: free */
	sema_note *first;
	ir_type last;
	bool tile; /* `last` is one */
	uint32_t n;
} slot;

struct sema_notes {
	arena *arena;
	slot *slots; /* open addressing, at most half full */
	uint32_t n, room;
};

sema_notes *sema_notes_new(arena *a)
{
	sema_notes *t = ARENA_NEW(a, sema_notes);
	*t = (sema_notes){.arena = a, .room = 64, .slots = ARENA_ARRAY(a, slot, 64)};
	return t;
}

static slot *slot_of(slot *slots, uint32_t room, span at)
{
	uint32_t i = (at.begin * 2654435761u ^ at.file->index) & (room - 1);
	while (slots[i].at.file && (slots[i].at.file != at.file || slots[i].at.begin != at.begin))
		i = (i + 1) & (room - 1);
	return &slots[i];
}

const sema_note *sema_notes_find(const sema_notes *t, span at)
{
	return slot_of(t->slots, t->room, at)->first;
}

static slot *slot_for(sema_notes *t, span at)
{
	slot *s = slot_of(t->slots, t->room, at);
	if (s->at.file) return s;
	if (2 * ++t->n > t->room) {
		slot *bigger = ARENA_ARRAY(t->arena, slot, 2 * (size_t)t->room);
		for (uint32_t i = 0; i < t->room; i++)
			if (t->slots[i].at.file) *slot_of(bigger, 2 * t->room, t->slots[i].at) = t->slots[i];
		t->slots = bigger;
		t->room *= 2;
		s = slot_of(t->slots, t->room, at);
	}
	s->at = at;
	return s;
}

/* The type, and the value where it is known; null: nothing to say. */
static const char *describe(sema *s, sval v, const char **value)
{
	switch (v.kind) {
	case SVAL_NUMBER: *value = sema_constant_text(s, v); return scalar_name(v.number.type);
	case SVAL_TYPE: *value = sema_stype_text(s, v.type); return "type";
	case SVAL_VALUE:
	case SVAL_TUPLE:
	case SVAL_TENSOR:
	case SVAL_BLOCK_PTR: return sema_type_text(s, v);
	default: return NULL;
	}
}

void sema_note_binding(sema *s, span at, sval v)
{
	const sema_request *r = s->private->request;
	if (!r || !r->notes || !at.file) return;
	slot *found = slot_for(r->notes, at);
	bool tile = v.kind == SVAL_VALUE;
	if (found->n == MOST || (tile && found->tile && ir_type_equal(found->last, v.value->type))) return;
	const char *value = NULL, *type = describe(s, v, &value);
	if (!type) return;
	found->tile = tile;
	if (tile) found->last = v.value->type;
	sema_note **end = &found->first;
	for (; *end; end = &(*end)->next) {
		const char *known = (*end)->value;
		if (strcmp((*end)->type, type) == 0 && (known == value || (known && value && !strcmp(known, value))))
			return;
	}
	*end = ARENA_NEW(r->notes->arena, sema_note);
	**end = (sema_note){.type = type, .value = value};
	found->n++;
}
