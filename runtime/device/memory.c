/* Buffers: checked ranges in front of the backend's memory calls; and which memory lies behind an address. */
#include "internal.h"

#include <stdlib.h>

blk_status blk_buffer_create(blk_device *d, size_t bytes, blk_buffer **out)
{
	blk_status status = device_check(d);
	if (status) return status;
	if (!out) return error_set(BLK_ERROR_ARGUMENT, "blk_buffer_create: no place for the result");
	*out = NULL;
	if (bytes > PTRDIFF_MAX)
		return error_set(BLK_ERROR_MEMORY, "a buffer of %zu bytes is more than memory can hold", bytes);
	blk_buffer *b = handle_new(d, HANDLE_BUFFER, sizeof *b);
	if (!b) return BLK_ERROR_MEMORY;
	uint64_t address;
	status = d->backend->allocate(d, bytes, &address);
	if (status) {
		blk_buffer_free(b);
		return status;
	}
	pthread_mutex_lock(&d->handles.lock); /* memory_behind() may be looking */
	b->bytes = bytes;
	b->address = address;
	pthread_mutex_unlock(&d->handles.lock);
	*out = b;
	return BLK_OK;
}

void blk_buffer_free(blk_buffer *b)
{
	if (!b || !handle_retire(&b->head)) return;
	if (b->address) b->head.device->backend->release(b->head.device, b->address);
	b->address = 0;
	handle_bury(&b->head, HANDLE_BUFFER);
}

static blk_status check(const blk_buffer *b, const char *call, size_t offset, size_t bytes)
{
	if (!handle_is(b, HANDLE_BUFFER)) return handle_error(b, "buffer");
	if (offset > b->bytes || bytes > b->bytes - offset)
		return error_set(BLK_ERROR_RANGE, "%s: %zu bytes at offset %zu of a buffer of %zu bytes", call, bytes,
			offset, b->bytes);
	return BLK_OK;
}

blk_status blk_buffer_write(blk_buffer *b, size_t offset, const void *from, size_t bytes)
{
	blk_status status = check(b, "blk_buffer_write", offset, bytes);
	if (status || bytes == 0) return status;
	if (!from) return error_set(BLK_ERROR_ARGUMENT, "blk_buffer_write: the source is null");
	return b->head.device->backend->write(b->head.device, b->address + offset, from, bytes);
}

blk_status blk_buffer_read(blk_buffer *b, size_t offset, void *to, size_t bytes)
{
	blk_status status = check(b, "blk_buffer_read", offset, bytes);
	if (status || bytes == 0) return status;
	if (!to) return error_set(BLK_ERROR_ARGUMENT, "blk_buffer_read: the destination is null");
	return b->head.device->backend->read(b->head.device, to, b->address + offset, bytes);
}

blk_status blk_buffer_fill(blk_buffer *b, size_t offset, uint8_t value, size_t bytes)
{
	blk_status status = check(b, "blk_buffer_fill", offset, bytes);
	if (status || bytes == 0) return status;
	return b->head.device->backend->fill(b->head.device, b->address + offset, value, bytes, NULL);
}

blk_status blk_buffer_copy(blk_buffer *to, size_t to_offset, blk_buffer *from, size_t from_offset, size_t bytes)
{
	blk_status status = check(to, "blk_buffer_copy", to_offset, bytes);
	if (!status) status = check(from, "blk_buffer_copy", from_offset, bytes);
	if (status || bytes == 0) return status;
	if (to->head.device != from->head.device)
		return error_set(BLK_ERROR_HANDLE, "blk_buffer_copy: the buffers are on different devices");
	uint64_t a = to->address + to_offset, b = from->address + from_offset;
	if (a < b + bytes && b < a + bytes) return error_set(BLK_ERROR_RANGE, "blk_buffer_copy: the ranges overlap");
	return to->head.device->backend->copy(to->head.device, a, b, bytes, NULL);
}

void *blk_buffer_pointer(blk_buffer *b)
{
	if (handle_is(b, HANDLE_BUFFER)) return (void *)(uintptr_t)b->address;
	handle_error(b, "buffer");
	return NULL;
}

size_t blk_buffer_size(blk_buffer *b)
{
	if (handle_is(b, HANDLE_BUFFER)) return b->bytes;
	handle_error(b, "buffer");
	return 0;
}

/* ---- What lies behind an argument ---- */

static bool holds(const blk_buffer *b, uint64_t address)
{
	return b->address && address - b->address < (b->bytes ? b->bytes : 1);
}

static bool buffer_behind(blk_device *d, uint64_t address, memory_span *out)
{
	pthread_mutex_lock(&d->handles.lock);
	const handle *h = d->handles.live[HANDLE_BUFFER];
	while (h && !holds((const blk_buffer *)h, address)) h = h->next;
	if (h) *out = (memory_span){((const blk_buffer *)h)->address, ((const blk_buffer *)h)->bytes};
	pthread_mutex_unlock(&d->handles.lock);
	return h != NULL;
}

bool memory_behind(blk_device *d, const blk_arg *a, memory_span *out)
{
	*out = (memory_span){0};
	if (!a->bits) return true;
	if (a->type != BLK_TYPE_BUFFER)
		return buffer_behind(d, a->bits, out) || (d->backend->range && d->backend->range(d, a->bits, out));
	const blk_buffer *b = (const blk_buffer *)(uintptr_t)a->bits;
	*out = (memory_span){b->address, b->bytes};
	return true;
}
