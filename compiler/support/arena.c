/* See arena.h.  Blocks double up to 1 MiB, so the number of calls to malloc is logarithmic and then linear. */
#include "arena.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
	arena_block *older;
	size_t used, size; /* of the bytes behind this header */
};

enum { ALIGN = 16, FIRST = 16 << 10, LARGEST = 1 << 20 };
#define HEADER ((sizeof(arena_block) + ALIGN - 1) / ALIGN * ALIGN)

_Noreturn void arena_out_of_memory(arena *a)
{
	assert(a->recover);
	longjmp(*a->recover, 1);
}

void *arena_alloc(arena *a, size_t bytes)
{
	if (bytes > SIZE_MAX / 2) arena_out_of_memory(a);
	size_t need = (bytes + ALIGN - 1) / ALIGN * ALIGN;
	if (need == 0) need = ALIGN;
	if (a->limit && need > a->limit - (a->used < a->limit ? a->used : a->limit)) arena_out_of_memory(a);
	arena_block *b = a->head;
	assert(!b || b->used <= b->size);
	if (!b || b->size - b->used < need) {
		size_t size = b ? 2 * b->size : FIRST;
		if (size > LARGEST) size = LARGEST;
		if (size < need) size = need;
		b = malloc(HEADER + size);
		if (!b) arena_out_of_memory(a);
		*b = (arena_block){.older = a->head, .used = 0, .size = size};
		a->head = b;
	}
	void *p = (char *)b + HEADER + b->used;
	b->used += need;
	a->used += need;
	return memset(p, 0, need);
}

void *arena_grow(arena *a, void *old, size_t old_bytes, size_t new_bytes)
{
	assert(old_bytes <= new_bytes);
	void *p = arena_alloc(a, new_bytes);
	if (old_bytes) memcpy(p, old, old_bytes);
#ifdef BLK_MEAN
	if (old_bytes) memset(old, 0xa5, old_bytes);
#endif
	return p;
}

void *arena_grow_array(arena *a, void *old, uint32_t *room, size_t element)
{
	assert(element);
	uint32_t more = *room ? 2 * *room : 8;
	if (more < *room) arena_out_of_memory(a);
	void *p = arena_grow(a, old, element * *room, element * more);
	*room = more;
	return p;
}

char *arena_strndup(arena *a, const char *s, size_t n)
{
	char *p = arena_alloc(a, n + 1);
	if (n) memcpy(p, s, n);
	return p;
}

char *arena_vprintf(arena *a, const char *fmt, va_list list)
{
	va_list again;
	va_copy(again, list);
	int n = vsnprintf(NULL, 0, fmt, list);
	if (n < 0) {
		va_end(again);
		arena_out_of_memory(a);
	}
	char *p = arena_alloc(a, (size_t)n + 1);
	vsnprintf(p, (size_t)n + 1, fmt, again);
	va_end(again);
	return p;
}

char *arena_printf(arena *a, const char *fmt, ...)
{
	va_list list;
	va_start(list, fmt);
	char *p = arena_vprintf(a, fmt, list);
	va_end(list);
	return p;
}

void arena_free(arena *a)
{
	while (a->head) {
		arena_block *b = a->head;
		a->head = b->older;
		free(b);
	}
	a->used = 0;
}

void text_add(text *t, const char *s, size_t n)
{
	assert(t->arena && (t->n < t->room || !t->at));
	if (t->room - t->n < n + 1) {
		size_t room = 2 * t->room + n + 64;
		t->at = arena_grow(t->arena, t->at, t->n, room);
		t->room = room;
	}
	if (n) memcpy(t->at + t->n, s, n);
	t->n += n;
	t->at[t->n] = 0;
}

void text_puts(text *t, const char *s)
{
	text_add(t, s, strlen(s));
}

void text_printf(text *t, const char *fmt, ...)
{
	va_list list;
	va_start(list, fmt);
	char *s = arena_vprintf(t->arena, fmt, list);
	va_end(list);
	text_puts(t, s);
}
