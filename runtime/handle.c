/* The pool that handles live in.
 *
 * A freed handle's memory is not given back but waits in a queue of at least QUEUE others before it becomes a new
 * handle: so a call that is given a freed handle reads a mark and can say so, instead of reading someone else's memory.
 * All of it goes with the device. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { QUEUE = 64 };

void *handle_new(blk_device *d, handle_kind kind, size_t size)
{
	handle_pool *p = &d->handles;
	pthread_mutex_lock(&p->lock);
	handle *h = NULL;
	if (p->nfreed[kind] >= QUEUE) {
		h = p->freed_first[kind];
		p->freed_first[kind] = h->next;
		p->nfreed[kind]--;
		memset(h, 0, size);
	} else
		h = calloc(1, size);
	if (h) {
		h->device = d;
		h->next = p->live[kind];
		if (h->next) h->next->previous = h;
		p->live[kind] = h;
		atomic_store_explicit(&h->magic, HANDLE_MAGIC + (uint32_t)kind, memory_order_release);
	}
	pthread_mutex_unlock(&p->lock);
	if (!h) error_memory();
	return h;
}

bool handle_retire(handle *h)
{
	handle_pool *p = &h->device->handles;
	pthread_mutex_lock(&p->lock);
	uint32_t magic = atomic_load_explicit(&h->magic, memory_order_relaxed);
	bool live = magic >= HANDLE_MAGIC && magic < HANDLE_MAGIC + HANDLE_KINDS;
	if (live) {
		handle_kind kind = (handle_kind)(magic - HANDLE_MAGIC);
		atomic_store_explicit(&h->magic, HANDLE_FREED, memory_order_release);
		if (h->previous)
			h->previous->next = h->next;
		else
			p->live[kind] = h->next;
		if (h->next) h->next->previous = h->previous;
	}
	pthread_mutex_unlock(&p->lock);
	return live;
}

void handle_bury(handle *h, handle_kind kind)
{
	handle_pool *p = &h->device->handles;
	pthread_mutex_lock(&p->lock);
	h->next = h->previous = NULL;
	if (p->nfreed[kind]++)
		p->freed_last[kind]->next = h;
	else
		p->freed_first[kind] = h;
	p->freed_last[kind] = h;
	pthread_mutex_unlock(&p->lock);
}

void handle_pool_free(handle_pool *p)
{
	for (int kind = 0; kind < HANDLE_KINDS; kind++)
		for (unsigned n = p->nfreed[kind]; n; n--) {
			handle *h = p->freed_first[kind];
			p->freed_first[kind] = h->next;
			free(h);
		}
	pthread_mutex_destroy(&p->lock);
}

blk_status handle_error(const void *h, const char *what)
{
	if (!h) return error_set(BLK_ERROR_ARGUMENT, "the %s is null", what);
	uint32_t magic = atomic_load_explicit(&((handle *)h)->magic, memory_order_relaxed);
	return error_set(BLK_ERROR_HANDLE, magic == HANDLE_FREED ? "the %s has been freed" : "this is no %s", what);
}
