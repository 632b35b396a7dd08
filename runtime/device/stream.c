/* Streams and events. */
#include "internal.h"

blk_status stream_resolve(const blk_device *d, const blk_stream *s, void **out)
{
	*out = NULL;
	if (!s) return BLK_OK;
	if (!handle_is(s, HANDLE_STREAM)) return handle_error(s, "stream");
	if (s->head.device != d) return error_set(BLK_ERROR_HANDLE, "the stream is of another device");
	*out = s->stream;
	return BLK_OK;
}

static blk_status make(blk_device *d, blk_stream **out, blk_stream **made)
{
	blk_status status = device_check(d);
	if (status) return status;
	if (!out) return error_set(BLK_ERROR_ARGUMENT, "no place for the stream");
	*out = NULL;
	*made = handle_new(d, HANDLE_STREAM, sizeof **made);
	return *made ? BLK_OK : BLK_ERROR_MEMORY;
}

blk_status blk_stream_create(blk_device *d, blk_stream **out)
{
	blk_stream *s = NULL;
	blk_status status = make(d, out, &s);
	if (status) return status;
	status = d->backend->stream_create(d, &s->stream);
	if (status) {
		s->wrapped = true; /* nothing to destroy */
		blk_stream_free(s);
		return status;
	}
	*out = s;
	return BLK_OK;
}

blk_status blk_stream_wrap(blk_device *d, void *cu_stream, blk_stream **out)
{
	blk_status status = device_check(d);
	if (!status && d->info.kind != BLK_DEVICE_CUDA)
		status = error_set(
			BLK_ERROR_UNSUPPORTED, "blk_stream_wrap: only a CUDA device has streams of another library");
	blk_stream *s = NULL;
	if (!status) status = make(d, out, &s);
	if (status) return status;
	s->stream = cu_stream;
	s->wrapped = true;
	atomic_store(&d->foreign_streams, true);
	*out = s;
	return BLK_OK;
}

blk_status blk_stream_sync(blk_stream *s)
{
	if (!handle_is(s, HANDLE_STREAM)) return handle_error(s, "stream");
	return s->head.device->backend->stream_sync(s->head.device, s->stream);
}

void blk_stream_free(blk_stream *s)
{
	if (!s || !handle_retire(&s->head)) return;
	if (!s->wrapped) s->head.device->backend->stream_free(s->head.device, s->stream);
	handle_bury(&s->head, HANDLE_STREAM);
}

void *blk_stream_handle(blk_stream *s)
{
	if (handle_is(s, HANDLE_STREAM)) return s->stream;
	handle_error(s, "stream");
	return NULL;
}

blk_status blk_event_create(blk_device *d, blk_event **out)
{
	blk_status status = device_check(d);
	if (status) return status;
	if (!out) return error_set(BLK_ERROR_ARGUMENT, "no place for the event");
	*out = NULL;
	blk_event *e = handle_new(d, HANDLE_EVENT, sizeof *e);
	if (!e) return BLK_ERROR_MEMORY;
	status = d->backend->event_create(d, e);
	if (status) {
		handle_retire(&e->head);
		handle_bury(&e->head, HANDLE_EVENT);
		return status;
	}
	*out = e;
	return BLK_OK;
}

blk_status blk_event_record(blk_event *e, blk_stream *s)
{
	void *stream;
	if (!handle_is(e, HANDLE_EVENT)) return handle_error(e, "event");
	blk_status status = stream_resolve(e->head.device, s, &stream);
	if (!status) status = e->head.device->backend->event_record(e->head.device, e, stream);
	if (!status) e->recorded = true;
	return status;
}

blk_status blk_event_elapsed(blk_event *start, blk_event *end, double *milliseconds)
{
	if (!handle_is(start, HANDLE_EVENT)) return handle_error(start, "event");
	if (!handle_is(end, HANDLE_EVENT)) return handle_error(end, "event");
	if (!milliseconds) return error_set(BLK_ERROR_ARGUMENT, "blk_event_elapsed: no place for the result");
	if (start->head.device != end->head.device)
		return error_set(BLK_ERROR_HANDLE, "blk_event_elapsed: the events are on different devices");
	if (!start->recorded || !end->recorded)
		return error_set(BLK_ERROR_ARGUMENT, "blk_event_elapsed: an event that was never recorded");
	return start->head.device->backend->event_elapsed(start->head.device, start, end, milliseconds);
}

void blk_event_free(blk_event *e)
{
	if (!e || !handle_retire(&e->head)) return;
	e->head.device->backend->event_free(e->head.device, e);
	handle_bury(&e->head, HANDLE_EVENT);
}
