/* Launching.  One pass over the arguments checks them, unpacks them into 8-byte containers and builds the key of the
 * specialisation; the key finds the code in a table that is read without a lock; the backend starts it.  What was
 * launched before allocates nothing on this road. */
#include "internal.h"

#include "device/nvtx.h"

#include <stdlib.h>

static blk_status wrong_count(const blk_kernel *k, size_t n)
{
	return error_set(BLK_ERROR_TYPE, "kernel %s takes %u argument%s, not %zu", k->sig->kernel, k->nparameters,
		k->nparameters == 1 ? "" : "s", n);
}

static blk_status wrong_type(const blk_kernel *k, uint32_t i, const blk_arg *a)
{
	const signature_parameter *p = &k->sig->parameters[i];
	return error_set(BLK_ERROR_TYPE, "parameter %s of kernel %s is %s, but argument %u is %s%s", p->name,
		k->sig->kernel, p->type, i,
		a->type > BLK_TYPE_BUFFER ? "none that blk_buf, blk_i32 and their like make: " : "",
		a->type == BLK_TYPE_BUFFER    ? "a buffer"
		: a->type == BLK_TYPE_POINTER ? "a pointer"
		: a->type > BLK_TYPE_BUFFER   ? "uninitialised?"
					      : blk_type_name(a->type));
}

static blk_status bad_buffer(const blk_kernel *k, uint32_t i, const blk_buffer *b)
{
	const char *name = k->sig->parameters[i].name, *kernel = k->sig->kernel;
	if (!b) return error_set(BLK_ERROR_ARGUMENT, "the buffer for parameter %s of kernel %s is null", name, kernel);
	if (!handle_is(b, HANDLE_BUFFER))
		return error_set(BLK_ERROR_HANDLE,
			"the buffer for parameter %s of kernel %s has been freed, or is none", name, kernel);
	return error_set(
		BLK_ERROR_HANDLE, "the buffer for parameter %s of kernel %s is on another device", name, kernel);
}

/* For code that was compiled with promises: all of them must hold. */
static blk_status check_promises(const blk_kernel *k, const uint64_t *bits)
{
	for (uint32_t i = 0; i < k->nparameters; i++) {
		const signature_parameter *p = &k->sig->parameters[i];
		if (p->is_one && bits[i] != 1)
			return error_set(
				BLK_ERROR_ALIGNMENT, "kernel %s was compiled for %s = 1", k->sig->kernel, p->name);
		if (p->divisible && bits[i] % p->divisible != 0)
			return error_set(BLK_ERROR_ALIGNMENT, "kernel %s was compiled for %s %s %u", k->sig->kernel,
				p->name, p->code == BLK_TYPE_POINTER ? "aligned to" : "divisible by", p->divisible);
	}
	return BLK_OK;
}

static blk_status misaligned(const blk_kernel *k, uint32_t i)
{
	const signature_parameter *p = &k->sig->parameters[i];
	return error_set(BLK_ERROR_ALIGNMENT,
		"the pointer for parameter %s of kernel %s is not aligned to its elements, %s", p->name, k->sig->kernel,
		p->type);
}

blk_status launch_arguments(const blk_kernel *k, const blk_arg *args, size_t n, uint64_t *bits, uint64_t *key)
{
	if (n != k->nparameters) return wrong_count(k, n);
	if (n && !args) return error_set(BLK_ERROR_ARGUMENT, "the arguments are null");
	uint64_t promises = 0;
	for (uint32_t i = 0; i < n; i++) {
		const launch_parameter *p = &k->launch[i];
		uint64_t v = args[i].bits;
		if (p->code == BLK_TYPE_POINTER) {
			if (args[i].type == BLK_TYPE_BUFFER) {
				const blk_buffer *b = (const blk_buffer *)(uintptr_t)v;
				if (!handle_is(b, HANDLE_BUFFER) || b->head.device != k->head.device)
					return bad_buffer(k, i, b);
				v = b->address;
			} else if (args[i].type != BLK_TYPE_POINTER)
				return wrong_type(k, i, &args[i]);
			if (v & p->misaligned) return misaligned(k, i);
			if (p->bit != 255) promises |= (uint64_t)((v & 15) == 0) << p->bit;
		} else {
			if (args[i].type != p->code) return wrong_type(k, i, &args[i]);
			if (p->bit != 255) {
				uint64_t holds = (v & p->below_step) == 0 ? PROMISE_STEP : 0;
				if ((v & 15) == 0) holds = PROMISE_16;
				if (v == 1) holds = PROMISE_ONE;
				promises |= holds << p->bit;
			}
		}
		bits[i] = v;
	}
	*key = promises;
	return k->promised ? check_promises(k, bits) : BLK_OK;
}

static blk_status unmet(const blk_kernel *k, const signature *s, const uint64_t *bits, const signature_requirement *q)
{
	char clause[512], values[512];
	uint32_t sms = k->head.device->info.num_sms;
	int64_t v;
	bool known = signature_integer(s, &q->condition, bits, sms, &v);
	signature_requirement_text(q, clause, sizeof clause);
	signature_requirement_values(s, q, bits, sms, values, sizeof values);
	return error_set(BLK_ERROR_ARGUMENT, "kernel %s requires %s, which %s%s%s", s->kernel, clause,
		known ? "does not hold" : signature_trouble_text((signature_trouble)v), values[0] ? ": " : "", values);
}

blk_status launch_requires(const blk_kernel *k, const signature *s, const uint64_t *bits)
{
	if (__builtin_expect(!s->nrequirements, 1)) return BLK_OK;
	const signature_requirement *q = signature_unmet(s, bits, k->head.device->info.num_sms);
	return __builtin_expect(!q, 1) ? BLK_OK : unmet(k, s, bits, q);
}

static const char axes[3] = {'x', 'y', 'z'};

static blk_status check_limits(const blk_kernel *k, const uint32_t grid[3])
{
	static const uint32_t limits[3] = {INT32_MAX, 65535, 65535};
	for (int i = 0; i < 3; i++)
		if (grid[i] > limits[i] && (i == 0 || k->head.device->info.kind != BLK_DEVICE_CPU))
			return error_set(BLK_ERROR_GRID,
				"kernel %s: a grid of %u programs along %c is over the limit of %u", k->sig->kernel,
				grid[i], axes[i], limits[i]);
	return BLK_OK;
}

static blk_status clause(const blk_kernel *k, const signature *s, const uint64_t *bits, uint32_t grid[3], bool *empty)
{
	if (!s->ngrid)
		return error_set(
			BLK_ERROR_GRID, "kernel %s has no grid clause, so a launch must pass a grid", s->kernel);
	for (uint32_t i = 0; i < s->ngrid; i++) {
		int64_t v;
		if (!signature_integer(s, &s->grid[i], bits, k->head.device->info.num_sms, &v))
			return error_set(BLK_ERROR_GRID, "the grid clause of kernel %s %s for these arguments",
				s->kernel, signature_trouble_text((signature_trouble)v));
		if (v < 0 || v > INT32_MAX)
			return error_set(BLK_ERROR_GRID,
				"the grid clause of kernel %s gives %lld programs along %c for these arguments",
				s->kernel, (long long)v, axes[i]);
		grid[i] = (uint32_t)v;
		if (v == 0) *empty = true;
	}
	return BLK_OK;
}

blk_status launch_grid(const blk_kernel *k, const signature *sig, const uint64_t *bits, const blk_grid *given,
	uint32_t grid[3], bool *empty)
{
	grid[0] = grid[1] = grid[2] = 1;
	*empty = false;
	if (!given) {
		blk_status status = clause(k, sig, bits, grid, empty);
		return status || *empty ? status : check_limits(k, grid);
	}
	grid[0] = given->x;
	grid[1] = given->y;
	grid[2] = given->z;
	for (int i = 0; i < 3; i++)
		if (grid[i] == 0)
			return error_set(BLK_ERROR_GRID,
				"kernel %s: a grid of 0 programs along %c; all three must be at least 1",
				k->sig->kernel, axes[i]);
	return check_limits(k, grid);
}

/* Starts the code; for a profiler in a range that says what it is. */
static inline blk_status start(
	blk_device *d, const variant *v, void *stream, const uint32_t grid[3], uint64_t *bits, const tensor_map *maps)
{
	if (__builtin_expect(!d->profiler, 1)) return d->backend->launch(d, v, stream, grid, bits, maps);
	nvtx_begin(d->profiler, v->sig, grid);
	blk_status status = d->backend->launch(d, v, stream, grid, bits, maps);
	nvtx_end(d->profiler);
	return status;
}

blk_status launch_variant(blk_device *d, const variant *v, void *stream, const uint32_t grid[3], uint64_t *bits)
{
	tensor_map maps[SIGNATURE_MAPS];
	blk_status status = v->maps ? tensor_maps_get(d, v, bits, maps) : BLK_OK;
	return status ? status : start(d, v, stream, grid, bits, maps);
}

blk_status launch_without_maps(blk_kernel *k, blk_status first, char *why, variant **out)
{
	blk_status status = variant_get(k, 0, out);
	if (!status && (*out)->maps) status = first;
	if (!status) return BLK_OK;
	if (!why) return error_memory(); /* there was none to keep the sentence either */
	error_give(why);
	return first;
}

static blk_status launch(blk_kernel *k, void *on, const blk_grid *given, const blk_arg *args, size_t n)
{
	uint64_t bits[SIGNATURE_PARAMETERS], key;
	uint32_t grid[3];
	bool empty;
	variant *v;
	blk_status status;
	if ((status = launch_arguments(k, args, n, bits, &key)) || (status = computed_resolve(&k, bits))) return status;
	if (__builtin_expect(k->tuner != NULL, 0)) {
		if ((status = tune_get(k, given, args, bits, key, &v))) return status;
		if ((status = launch_grid(k, v->sig, bits, given, grid, &empty)) || empty) return status;
	} else {
		if ((status = launch_requires(k, k->sig, bits))) return status;
		if ((status = launch_grid(k, k->sig, bits, given, grid, &empty)) || empty) return status;
		if ((status = variant_get(k, key, &v))) return status;
	}
	blk_device *d = k->head.device;
	if (__builtin_expect(v->maps == NULL, 1)) return start(d, v, on, grid, bits, NULL);
	tensor_map maps[SIGNATURE_MAPS];
	if (!(status = tensor_maps_get(d, v, bits, maps))) return start(d, v, on, grid, bits, maps);
	char *why = error_take();
	if ((status = launch_without_maps(k, status, why, &v))) return status;
	free(why);
	if ((status = launch_grid(k, v->sig, bits, given, grid, &empty)) || empty) return status;
	return start(d, v, on, grid, bits, NULL);
}

blk_status blk_launch(blk_kernel *k, blk_stream *stream, const blk_grid *given, const blk_arg *args, size_t n)
{
	void *on = NULL;
	blk_status status = kernel_check(k);
	if (status) return status;
	if (stream && (status = stream_resolve(k->head.device, stream, &on))) return status;
	return launch(k, on, given, args, n);
}

blk_status blk_launch_on(blk_kernel *k, void *cu_stream, const blk_grid *given, const blk_arg *args, size_t n)
{
	blk_status status = kernel_check(k);
	if (status) return status;
	blk_device *d = k->head.device;
	if (cu_stream && d->info.kind != BLK_DEVICE_CUDA)
		return error_set(
			BLK_ERROR_UNSUPPORTED, "blk_launch_on: only a CUDA device has streams of another library");
	if (cu_stream && !atomic_load_explicit(&d->foreign_streams, memory_order_relaxed))
		atomic_store(&d->foreign_streams, true);
	return launch(k, cu_stream, given, args, n);
}
