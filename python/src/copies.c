/* Tensors of the host as buffers of a simulator, which reads nothing else.
 *
 * Tensors that share memory share a buffer, at the same distances, so that a kernel that works in place does.  A buffer
 * begins as far behind a multiple of 16 bytes as the tensor does: the code is chosen as it would be for the tensor. */
#include "door.h"

#include <stdlib.h>

typedef struct piece {
	uintptr_t low, high;
	blk_buffer *buffer;
	bool written;
} piece;

static int by_address(const void *a, const void *b)
{
	uintptr_t x = ((const piece *)a)->low, y = ((const piece *)b)->low;
	return (x > y) - (x < y);
}

/* Joins those that overlap; how many are left. */
static size_t join(piece *p, size_t n)
{
	size_t kept = 0;
	qsort(p, n, sizeof *p, by_address);
	for (size_t i = 0; i < n; i++) {
		piece *last = kept ? &p[kept - 1] : NULL;
		if (last && p[i].low < last->high) {
			if (p[i].high > last->high) last->high = p[i].high;
			last->written |= p[i].written;
		} else
			p[kept++] = p[i];
	}
	return kept;
}

static size_t lead(const piece *p)
{
	return p->low % 16;
}

static blk_status fill(const call *c, piece *p)
{
	size_t bytes = p->high - p->low;
	blk_status status = blk_buffer_create(c->to->device->handle, lead(p) + bytes, &p->buffer);
	return status ? status : blk_buffer_write(p->buffer, lead(p), (const void *)p->low, bytes);
}

static void point(call *c, size_t argument, const tensor *t, const piece *p, size_t n)
{
	uintptr_t at = (uintptr_t)t->data, low = at + (uintptr_t)t->low;
	for (size_t i = 0; i < n; i++)
		if (low >= p[i].low && low < p[i].high)
			c->args[argument] =
				blk_ptr((char *)blk_buffer_pointer(p[i].buffer) + lead(&p[i]) + (at - p[i].low));
}

blk_status copies_make(call *c)
{
	piece *p = calloc(c->ntensors + 1, sizeof *p);
	if (!p) return BLK_ERROR_MEMORY;
	size_t n = 0, next = 0;
	for (size_t i = 0; i < c->to->nparameters; i++) {
		if (!c->to->parameters[i].is_pointer) continue;
		const tensor *t = &c->tensors[next++];
		if (t->data && t->high > t->low)
			p[n++] = (piece){(uintptr_t)t->data + (uintptr_t)t->low,
				(uintptr_t)t->data + (uintptr_t)t->high, NULL, c->to->parameters[i].written};
	}
	n = join(p, n);
	c->copies = p;
	c->ncopies = n;
	blk_status status = BLK_OK;
	for (size_t i = 0; i < n && !status; i++) status = fill(c, &p[i]);
	next = 0;
	for (size_t i = 0; i < c->to->nparameters && !status; i++)
		if (c->to->parameters[i].is_pointer) point(c, i, &c->tensors[next++], p, n);
	return status;
}

blk_status copies_take_back(call *c)
{
	blk_status status = BLK_OK;
	for (size_t i = 0; i < c->ncopies && !status; i++) {
		const piece *p = &c->copies[i];
		if (p->written) status = blk_buffer_read(p->buffer, lead(p), (void *)p->low, p->high - p->low);
	}
	return status;
}

void copies_free(call *c)
{
	for (size_t i = 0; i < c->ncopies; i++) blk_buffer_free(c->copies[i].buffer);
	free(c->copies);
	c->copies = NULL;
	c->ncopies = 0;
}
