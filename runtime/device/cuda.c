/* The cuda backend: libcuda.so.1, opened when a CUDA device is.
 *
 * Every call into the driver happens with the device's context current and leaves the thread's context as it was, so a
 * program may use CUDA in its own ways beside us.  Where our context is already the current one, that costs one query.
 */
#include "internal.h"
#include "cuda_api.h"
#include "support/scalar.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The driver ---- */

static blk_status load_driver(const cuda_api **out)
{
	cuda_api *api = calloc(1, sizeof *api);
	if (!api) return error_memory();
	const char *missing = NULL;
	/* NODELETE: the driver keeps threads that must not lose their code. */
	api->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!api->library) {
		free(api);
		return error_set(BLK_ERROR_NOT_FOUND, "there is no CUDA driver here (%s)", dlerror());
	}
#define X(name, parameters)                                                                                            \
	*(void **)&api->name = dlsym(api->library, #name);                                                             \
	if (!api->name) missing = #name;
	CUDA_CALLS(X)
#undef X
#define X(name, parameters) *(void **)&api->name = dlsym(api->library, #name);
	CUDA_LATER_CALLS(X)
#undef X
	if (missing) {
		dlclose(api->library);
		free(api);
		return error_set(BLK_ERROR_DRIVER, "the CUDA driver is too old: it has no %s", missing);
	}
	*out = api;
	return BLK_OK;
}

static void unload_driver(const cuda_api *api)
{
	if (!api->library) return; /* a test's */
	dlclose(api->library);
	free((void *)api);
}

/* BLK_OK, or what the driver's refusal of `call` means. */
static blk_status answer(const cuda_api *api, CUresult r, const char *call)
{
	const char *name = NULL, *text = NULL;
	if (__builtin_expect(r == CUDA_OK, 1)) return BLK_OK;
	if (api->cuGetErrorName(r, &name) != CUDA_OK || !name) name = "an unknown error";
	if (api->cuGetErrorString(r, &text) != CUDA_OK || !text) text = name;
	switch ((int)r) {
	case CUDA_OUT_OF_MEMORY: return error_set(BLK_ERROR_MEMORY, "out of device memory (%s: %s)", call, name);
	case CUDA_NO_DEVICE:
	case CUDA_INVALID_DEVICE: return error_set(BLK_ERROR_NOT_FOUND, "no such CUDA device (%s: %s)", call, name);
	case CUDA_OUT_OF_RESOURCES:
		return error_set(BLK_ERROR_RESOURCES,
			"the kernel needs more registers or shared memory than the device has (%s: %s)", call, name);
	case CUDA_ASSERTED:
		return error_set(
			BLK_ERROR_ASSERT, "a device_assert failed; the device's context is lost (%s: %s)", call, name);
	case CUDA_ILLEGAL_ADDRESS:
	case CUDA_TIMEOUT:
	case CUDA_HARDWARE_STACK:
	case CUDA_LAUNCH_FAILED:
		return error_set(BLK_ERROR_KERNEL, "a kernel failed: %s; the device's context is lost (%s: %s)", text,
			call, name);
	default: return error_set(BLK_ERROR_DRIVER, "%s: %s (%s)", call, text, name);
	}
}

/* Calls `name` of the device's driver; the status. */
#define CALL(d, name, ...) answer((d)->cuda, (d)->cuda->name(__VA_ARGS__), #name)

/* ---- The context ---- */

/* 1: pushed, so it must be popped; 0: it was current; -1: the driver refused and blk_error() is set. */
static inline int enter(const blk_device *d)
{
	CUcontext now = NULL;
	CUresult r = d->cuda->cuCtxGetCurrent(&now);
	if (r == CUDA_OK && now == d->context) return 0;
	r = d->cuda->cuCtxPushCurrent_v2(d->context);
	if (r == CUDA_OK) return 1;
	answer(d->cuda, r, "cuCtxPushCurrent_v2");
	return -1;
}

static inline void leave(const blk_device *d, int entered)
{
	CUcontext ours;
	if (entered > 0) d->cuda->cuCtxPopCurrent_v2(&ours);
}

/* The body of a backend function: `expression` with the context current. */
#define INSIDE(d, expression)                                                                                          \
	int entered = enter(d);                                                                                        \
	if (entered < 0) return BLK_ERROR_DRIVER;                                                                      \
	blk_status status = (expression);                                                                              \
	leave(d, entered);                                                                                             \
	return status

static blk_status cuda_sync(blk_device *d)
{
	INSIDE(d, CALL(d, cuCtxSynchronize, ));
}

static void cuda_close(blk_device *d)
{
	if (d->primary) d->cuda->cuDevicePrimaryCtxRelease_v2(d->info.ordinal);
	unload_driver(d->cuda);
}

/* ---- Memory ---- */

static blk_status cuda_allocate(blk_device *d, size_t bytes, uint64_t *address)
{
	CUdeviceptr p = 0;
	int entered = enter(d);
	if (entered < 0) return BLK_ERROR_DRIVER;
	blk_status status = CALL(d, cuMemAlloc_v2, &p, bytes ? bytes : 1);
	leave(d, entered);
	*address = p;
	return status;
}

static void cuda_release(blk_device *d, uint64_t address)
{
	int entered = enter(d); /* without its context the driver may still know what to free */
	d->cuda->cuMemFree_v2(address);
	leave(d, entered);
}

static blk_status cuda_allocate_pinned(blk_device *d, size_t bytes, void **memory)
{
	INSIDE(d, CALL(d, cuMemAllocHost_v2, memory, bytes ? bytes : 1));
}

static void cuda_release_pinned(blk_device *d, void *memory)
{
	int entered = enter(d);
	d->cuda->cuMemFreeHost(memory);
	leave(d, entered);
}

/* An allocation of the driver's, or one that the program has mapped itself (cuMemMap). */
static bool mapping_at(const blk_device *d, CUdeviceptr address, memory_span *out)
{
	CUdeviceptr base = 0;
	size_t bytes = 0;
	bool known = d->cuda->cuMemGetAddressRange_v2(&base, &bytes, address) == CUDA_OK;
	*out = (memory_span){base, bytes};
	return known && address - base < bytes;
}

/* Mappings lie side by side in addresses that a program has reserved, and a tensor may lie over several (PyTorch's
 * expandable segments): the range is all of them that touch.  `reserved` is the reservation, or the allocation. */
static void add_neighbours(const blk_device *d, memory_span reserved, memory_span *out)
{
	memory_span next;
	uint64_t end = out->base + out->bytes;
	while (end - reserved.base < reserved.bytes && mapping_at(d, end, &next)) end = next.base + next.bytes;
	while (out->base > reserved.base && mapping_at(d, out->base - 1, &next)) out->base = next.base;
	out->bytes = end - out->base;
}

static bool range_inside(const blk_device *d, CUdeviceptr address, memory_span *out)
{
	CUdeviceptr base = 0;
	size_t bytes = 0;
	if (!mapping_at(d, address, out)) return false;
	if (d->cuda->cuPointerGetAttribute(&base, CUDA_POINTER_RANGE_START, address) != CUDA_OK ||
		d->cuda->cuPointerGetAttribute(&bytes, CUDA_POINTER_RANGE_SIZE, address) != CUDA_OK)
		return false;
	add_neighbours(d, (memory_span){base, bytes}, out);
	return true;
}

/* What the driver does not know is no failure. */
static bool cuda_range(blk_device *d, uint64_t address, memory_span *out)
{
	int entered = enter(d);
	if (entered < 0) return false;
	bool known = range_inside(d, address, out);
	leave(d, entered);
	return known;
}

/* The driver's copies wait for the default stream and what orders itself after it; a stream of the caller's need not.
 */
static blk_status wait_foreign(blk_device *d)
{
	if (!atomic_load_explicit(&d->foreign_streams, memory_order_relaxed)) return BLK_OK;
	return CALL(d, cuCtxSynchronize, );
}

static blk_status write_inside(blk_device *d, uint64_t to, const void *from, size_t bytes)
{
	blk_status status = wait_foreign(d);
	return status ? status : CALL(d, cuMemcpyHtoD_v2, to, from, bytes);
}
static blk_status cuda_write(blk_device *d, uint64_t to, const void *from, size_t bytes)
{
	int entered = enter(d);
	if (entered < 0) return BLK_ERROR_DRIVER;
	blk_status status = write_inside(d, to, from, bytes);
	leave(d, entered);
	return status;
}

static blk_status read_inside(blk_device *d, void *to, uint64_t from, size_t bytes)
{
	blk_status status = wait_foreign(d);
	return status ? status : CALL(d, cuMemcpyDtoH_v2, to, from, bytes);
}
static blk_status cuda_read(blk_device *d, void *to, uint64_t from, size_t bytes)
{
	int entered = enter(d);
	if (entered < 0) return BLK_ERROR_DRIVER;
	blk_status status = read_inside(d, to, from, bytes);
	leave(d, entered);
	return status;
}

static blk_status cuda_fill(blk_device *d, uint64_t to, uint8_t value, size_t bytes, void *stream)
{
	INSIDE(d, CALL(d, cuMemsetD8Async, to, value, bytes, stream));
}

static blk_status cuda_copy(blk_device *d, uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	INSIDE(d, CALL(d, cuMemcpyDtoDAsync_v2, to, from, bytes, stream));
}

/* ---- Streams and events ---- */

static blk_status cuda_stream_create(blk_device *d, void **out)
{
	CUstream s = NULL;
	int entered = enter(d);
	if (entered < 0) return BLK_ERROR_DRIVER;
	blk_status status = CALL(d, cuStreamCreate, &s, 0);
	leave(d, entered);
	*out = s;
	return status;
}

static blk_status cuda_stream_sync(blk_device *d, void *stream)
{
	INSIDE(d, CALL(d, cuStreamSynchronize, stream));
}

static void cuda_stream_free(blk_device *d, void *stream)
{
	int entered = enter(d);
	d->cuda->cuStreamDestroy_v2(stream);
	leave(d, entered);
}

static blk_status cuda_event_create(blk_device *d, blk_event *e)
{
	CUevent event = NULL;
	int entered = enter(d);
	if (entered < 0) return BLK_ERROR_DRIVER;
	blk_status status = CALL(d, cuEventCreate, &event, 0);
	leave(d, entered);
	e->event = event;
	return status;
}

static blk_status cuda_event_record(blk_device *d, blk_event *e, void *stream)
{
	INSIDE(d, CALL(d, cuEventRecord, e->event, stream));
}

static blk_status elapsed_inside(blk_device *d, blk_event *start, blk_event *end, float *ms)
{
	blk_status status = CALL(d, cuEventSynchronize, start->event);
	if (!status) status = CALL(d, cuEventSynchronize, end->event);
	if (!status) status = CALL(d, cuEventElapsedTime, ms, start->event, end->event);
	return status;
}
static blk_status cuda_event_elapsed(blk_device *d, blk_event *start, blk_event *end, double *ms)
{
	float v = 0;
	int entered = enter(d);
	if (entered < 0) return BLK_ERROR_DRIVER;
	blk_status status = elapsed_inside(d, start, end, &v);
	leave(d, entered);
	*ms = v;
	return status;
}

static void cuda_event_free(blk_device *d, blk_event *e)
{
	int entered = enter(d);
	d->cuda->cuEventDestroy_v2(e->event);
	leave(d, entered);
}

/* ---- Code ---- */

enum { LOG = 8192, LOG_OPTIONS = 3 };
static const CUjit_option log_options[] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_BYTES, CUDA_JIT_LINE_INFO};

/* What the driver's compiler is asked, with its log in values[0], which says what was wrong with the PTX; null: there
 * is no memory. */
static char *open_log(void *values[LOG_OPTIONS])
{
	values[0] = calloc(1, LOG);
	values[1] = (void *)(uintptr_t)(LOG - 1);
	values[2] = (void *)(uintptr_t)1;
	return values[0];
}

static blk_status refused(const blk_device *d, CUresult r, const char *call, const char *name, const char *log)
{
	if (r != CUDA_OK && log[0])
		return error_set(BLK_ERROR_DRIVER, "the driver refuses the PTX of %s: %s", name, log);
	return answer(d->cuda, r, call);
}

/* PTX to a cubin, which can be kept. */
static blk_status link_ptx(blk_device *d, const char *name, const void *ptx, size_t bytes, void **cubin, size_t *n)
{
	void *values[LOG_OPTIONS];
	char *log = open_log(values);
	if (!log) return error_memory();
	CUlinkState state = NULL;
	void *image = NULL;
	const char *call = "cuLinkCreate_v2";
	CUresult r = d->cuda->cuLinkCreate_v2(LOG_OPTIONS, (CUjit_option *)log_options, values, &state);
	bool created = r == CUDA_OK;
	if (r == CUDA_OK) {
		call = "cuLinkAddData_v2";
		r = d->cuda->cuLinkAddData_v2(state, CUDA_INPUT_PTX, (void *)ptx, bytes, name, 0, NULL, NULL);
	}
	if (r == CUDA_OK) {
		call = "cuLinkComplete";
		r = d->cuda->cuLinkComplete(state, &image, n);
	}
	blk_status status = refused(d, r, call, name, log);
	if (!status) {
		*cubin = malloc(*n ? *n : 1);
		if (*cubin)
			memcpy(*cubin, image, *n);
		else
			status = error_memory();
	}
	if (created) d->cuda->cuLinkDestroy(state);
	free(log);
	return status;
}

/* The linker's compiler makes code that others may be linked to, for which it ignores setmaxnreg (C7504): a kernel that
 * hands registers over spills then, and its products wait for each other.  The loader's own compiler sees the whole.
 * It gives no cubin to keep; the driver has a cache of its own for that. */
static bool hands_registers_over(const void *ptx, size_t bytes)
{
	static const char word[] = "setmaxnreg";
	return memmem(ptx, bytes, word, sizeof word - 1) != NULL;
}

/* A library's module: libraries are compiled by as many threads as ask for one, modules one after the other (16 kernels
 * by 16 threads: 0.2 and 1.8 s).  What was wrong with the PTX is said when the module is asked for. */
static CUresult load_library(
	const blk_device *d, const void *ptx, void **values, variant *v, CUmodule *module, const char **call)
{
	CUlibrary library = NULL;
	*call = "cuLibraryLoadData";
	CUresult r = d->cuda->cuLibraryLoadData(
		&library, ptx, (CUjit_option *)log_options, values, LOG_OPTIONS, NULL, NULL, 0);
	if (r != CUDA_OK) return r;
	*call = "cuLibraryGetModule";
	r = d->cuda->cuLibraryGetModule(module, library);
	if (r == CUDA_OK)
		v->library = library;
	else
		d->cuda->cuLibraryUnload(library);
	return r;
}

static bool has_libraries(const blk_device *d)
{
	return d->cuda->cuLibraryLoadData && d->cuda->cuLibraryGetModule && d->cuda->cuLibraryUnload;
}

static blk_status load_ptx(blk_device *d, const void *ptx, variant *v, CUmodule *module)
{
	void *values[LOG_OPTIONS];
	char *log = open_log(values);
	if (!log) return error_memory();
	const char *call = "cuModuleLoadDataEx";
	CUresult r = has_libraries(d) ? load_library(d, ptx, values, v, module, &call)
				      : d->cuda->cuModuleLoadDataEx(
						module, ptx, LOG_OPTIONS, (CUjit_option *)log_options, values);
	blk_status status = refused(d, r, call, v->sig->kernel, log);
	free(log);
	return status;
}

/* What blkc could not check without an assembler. */
static blk_status check_budgets(const signature *s, int registers, int local, uint32_t shared)
{
	const struct {
		const char *what;
		uint32_t limit, have;
	} budgets[] = {{"max_registers", s->max_registers, (uint32_t)registers},
		{"max_spills", s->max_spills, (uint32_t)local}, {"max_shared", s->max_shared, shared}};
	for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++)
		if (budgets[i].have > budgets[i].limit)
			return error_set(BLK_ERROR_RESOURCES,
				"kernel %s does not meet %s = %u: the driver's compiler gives %u", s->kernel,
				budgets[i].what, budgets[i].limit, budgets[i].have);
	return BLK_OK;
}

static blk_status prepare(blk_device *d, variant *v)
{
	const signature *s = v->sig;
	CUfunction f = NULL;
	int registers = 0, local = 0;
	v->threads = s->threads ? s->threads : 32 * (s->num_warps ? s->num_warps : 4);
	v->shared = s->shared;
	if (v->shared > d->info.max_shared_per_block)
		return error_set(BLK_ERROR_RESOURCES, "kernel %s needs %u bytes of shared memory; %s has %u", s->kernel,
			v->shared, d->info.name, d->info.max_shared_per_block);
	blk_status status = CALL(d, cuModuleGetFunction, &f, v->module, s->symbol);
	v->function = f;
	if (!status && v->shared > 48 * 1024)
		status = CALL(d, cuFuncSetAttribute, f, CUDA_FUNCTION_DYNAMIC, (int)v->shared);
	if (!status) status = CALL(d, cuFuncGetAttribute, &registers, CUDA_FUNCTION_REGISTERS, f);
	if (!status) status = CALL(d, cuFuncGetAttribute, &local, CUDA_FUNCTION_LOCAL, f);
	return status ? status : check_budgets(s, registers, local, v->shared);
}

static void unload_inside(blk_device *d, variant *v)
{
	if (v->library)
		d->cuda->cuLibraryUnload(v->library);
	else
		d->cuda->cuModuleUnload(v->module);
	v->library = v->module = NULL;
}

static blk_status load_inside(
	blk_device *d, variant *v, unsigned kind, const void *code, size_t bytes, void **linked, size_t *nlinked)
{
	CUmodule module = NULL;
	blk_status status = BLK_OK;
	if (kind == BLKC_EMIT_PTX && hands_registers_over(code, bytes)) {
		status = load_ptx(d, code, v, &module);
	} else if (kind == BLKC_EMIT_PTX) {
		status = link_ptx(d, v->sig->kernel, code, bytes, linked, nlinked);
		/* The loader's own compiler may take what the linker refuses; then there is no cubin to keep. */
		if (status == BLK_ERROR_DRIVER && d->cuda->cuModuleLoadDataEx(&module, code, 0, NULL, NULL) == CUDA_OK)
			status = BLK_OK;
		code = *linked;
	}
	if (!status && !module) status = CALL(d, cuModuleLoadDataEx, &module, code, 0, NULL, NULL);
	if (status) return status;
	v->module = module;
	status = prepare(d, v);
	if (status) unload_inside(d, v);
	return status;
}

static blk_status cuda_load(
	blk_device *d, variant *v, unsigned kind, const void *code, size_t bytes, void **linked, size_t *nlinked)
{
	int entered = enter(d);
	if (entered < 0) return BLK_ERROR_DRIVER;
	blk_status status = load_inside(d, v, kind, code, bytes, linked, nlinked);
	leave(d, entered);
	return status;
}

static void cuda_unload(blk_device *d, variant *v)
{
	if (!v->module) return;
	int entered = enter(d);
	unload_inside(d, v);
	leave(d, entered);
}

/* ORDER SCALARS: the driver's name for a type, or for one of as many bytes where it has none. */
static const uint8_t map_types[] = {CUDA_MAP_U8, CUDA_MAP_U8, CUDA_MAP_U16, CUDA_MAP_I32, CUDA_MAP_I64, CUDA_MAP_U8,
	CUDA_MAP_U16, CUDA_MAP_U32, CUDA_MAP_U64, CUDA_MAP_U8, CUDA_MAP_U8, CUDA_MAP_F16, CUDA_MAP_BF16, CUDA_MAP_F32,
	CUDA_MAP_F64};
_Static_assert(sizeof map_types == SCALAR_COUNT, "ORDER SCALARS");

/* Needs no context: a map is made of numbers only.  L2 promotion is 128 bytes: with 256, L2 fetches lines that other
 * copies fetch anyway (docs/products.md). */
static blk_status cuda_encode(blk_device *d, const tensor_map_request *q, tensor_map *out)
{
	static const unsigned steps[TENSOR_MAP_RANK] = {1, 1, 1, 1, 1};
	static const uint8_t swizzles[] = {CUDA_MAP_SWIZZLE_0, CUDA_MAP_SWIZZLE_32, CUDA_MAP_SWIZZLE_64, 0,
		CUDA_MAP_SWIZZLE_128}; /* by units of 32 bytes */
	CUtensorMap map;
	int entered; /* the driver wants a context for this too */
	if (!d->cuda->cuTensorMapEncodeTiled)
		return error_set(BLK_ERROR_DRIVER, "the CUDA driver is too old: it has no cuTensorMapEncodeTiled");
	if ((entered = enter(d)) < 0) return BLK_ERROR_DRIVER;
	blk_status status = CALL(d, cuTensorMapEncodeTiled, &map, q->rounds ? CUDA_MAP_TF32 : map_types[q->type],
		q->rank, (void *)(uintptr_t)q->address, q->extent, q->stride + 1, q->box, steps, CUDA_MAP_PLAIN,
		swizzles[q->swizzle / 32], CUDA_MAP_L2_128, CUDA_MAP_ZEROS);
	leave(d, entered);
	_Static_assert(sizeof map == sizeof *out, "a tensor map has 128 bytes");
	if (!status) memcpy(out, &map, sizeof *out);
	return status;
}

/* Drivers before 12.3 cannot capture such launches into graphs. */
enum { CUDA_PDL_DRIVER = 12030 };

/* As clusters, where the grid is whole ones and the driver has them; the code asks whether it runs in one.  Code that
 * waits for the kernel before it (dependent_launch.c) may begin before that one has ended. */
static blk_status launch_inside(
	blk_device *d, const variant *v, void *stream, const uint32_t grid[3], void **parameters)
{
	uint32_t n = signature_cluster(v->sig);
	CUlaunchAttribute attributes[2] = {
		{.id = CUDA_LAUNCH_PDL, .value = {.programmaticStreamSerializationAllowed = 1}},
		{.id = CUDA_LAUNCH_CLUSTER, .value = {.clusterDim = {n, 1, 1}}}};
	CUlaunchConfig launch = {grid[0], grid[1], grid[2], v->threads, 1, 1, v->shared, stream, attributes + 1, 0};
	if (v->sig->gdc_wait && d->info.driver_version >= CUDA_PDL_DRIVER) launch.attrs--, launch.numAttrs++;
	if (n > 1 && grid[0] % n == 0 && d->cuda->cuLaunchKernelEx) {
		launch.numAttrs++;
		CUresult r = d->cuda->cuLaunchKernelEx(&launch, v->function, parameters, NULL);
		if (r != CUDA_NO_CLUSTER) return answer(d->cuda, r, "cuLaunchKernelEx");
		launch.numAttrs--;
	}
	if (launch.numAttrs && d->cuda->cuLaunchKernelEx)
		return CALL(d, cuLaunchKernelEx, &launch, v->function, parameters, NULL);
	return CALL(d, cuLaunchKernel, v->function, grid[0], grid[1], grid[2], v->threads, 1, 1, v->shared, stream,
		parameters, NULL);
}

static blk_status cuda_launch(
	blk_device *d, const variant *v, void *stream, const uint32_t grid[3], uint64_t *bits, const tensor_map *maps)
{
	void *parameters[SIGNATURE_PARAMETERS + SIGNATURE_MAPS];
	for (uint32_t i = 0; i < v->sig->nparameters; i++) parameters[i] = &bits[i];
	for (uint32_t i = 0; i < v->sig->nmaps; i++) parameters[v->sig->nparameters + i] = (void *)&maps[i];
	int entered = enter(d);
	if (entered < 0) return BLK_ERROR_DRIVER;
	blk_status status = launch_inside(d, v, stream, grid, parameters);
	leave(d, entered);
	return status;
}

static blk_status describe_inside(blk_device *d, const variant *v, blk_info *info)
{
	int registers = 0, local = 0, fixed = 0, blocks = 0;
	blk_status status = CALL(d, cuFuncGetAttribute, &registers, CUDA_FUNCTION_REGISTERS, v->function);
	if (!status) status = CALL(d, cuFuncGetAttribute, &local, CUDA_FUNCTION_LOCAL, v->function);
	if (!status) status = CALL(d, cuFuncGetAttribute, &fixed, CUDA_FUNCTION_SHARED, v->function);
	if (!status)
		status = CALL(d, cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, v->function, (int)v->threads,
			v->shared);
	if (status) return status;
	info->registers = (uint32_t)registers;
	info->spill_bytes = (uint32_t)local;
	info->shared_bytes = (uint32_t)fixed + v->shared;
	info->programs_per_sm = (uint32_t)blocks;
	if (d->info.max_threads_per_sm)
		info->occupancy = (float)((double)blocks * v->threads / d->info.max_threads_per_sm);
	return BLK_OK;
}

static blk_status cuda_describe(blk_device *d, const variant *v, blk_info *info)
{
	int entered = enter(d);
	if (entered < 0) return BLK_ERROR_DRIVER;
	blk_status status = describe_inside(d, v, info);
	leave(d, entered);
	return status;
}

/* ---- Opening ---- */

/* The name to compile for: the chip's own where we know it, else the best that its hardware is promised to run. */
static const char *choose_target(uint32_t capability)
{
	static const struct {
		uint32_t capability;
		const char *name;
	} own[] = {{80, "sm_80"}, {86, "sm_86"}, {89, "sm_89"}, {90, "sm_90a"}, {100, "sm_100a"}, {120, "sm_120a"}};
	const char *best = NULL;
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
		if (own[i].capability == capability) return own[i].name;
		if (own[i].capability < 90 && own[i].capability < capability) best = own[i].name;
	}
	return capability > 90 ? "sm_90" : best;
}

static blk_status query(blk_device *d, CUdevice device)
{
	blk_device_info *info = &d->info;
	int major = 0, minor = 0, clock = 0, bus = 0, sms = 0, warp = 0, threads = 0, shared = 0, l2 = 0, version = 0;
	size_t total = 0;
	const struct {
		int attribute, *to;
	} facts[] = {{CUDA_ATTRIBUTE_MAJOR, &major}, {CUDA_ATTRIBUTE_MINOR, &minor}, {CUDA_ATTRIBUTE_CLOCK, &clock},
		{CUDA_ATTRIBUTE_BUS, &bus}, {CUDA_ATTRIBUTE_SMS, &sms}, {CUDA_ATTRIBUTE_WARP, &warp},
		{CUDA_ATTRIBUTE_THREADS, &threads}, {CUDA_ATTRIBUTE_SHARED, &shared}, {CUDA_ATTRIBUTE_L2, &l2}};
	blk_status status = CALL(d, cuDeviceGetName, info->name, sizeof info->name, device);
	if (!status) status = CALL(d, cuDeviceTotalMem_v2, &total, device);
	if (!status) status = CALL(d, cuDriverGetVersion, &version);
	for (size_t i = 0; !status && i < sizeof facts / sizeof facts[0]; i++)
		status = CALL(d, cuDeviceGetAttribute, facts[i].to, facts[i].attribute, device);
	if (status) return status;
	info->kind = BLK_DEVICE_CUDA;
	info->compute_capability = (uint32_t)(10 * major + minor);
	info->driver_version = (uint32_t)version;
	info->num_sms = (uint32_t)sms;
	info->warp_size = (uint32_t)warp;
	info->max_threads_per_sm = (uint32_t)threads;
	info->max_shared_per_block = (uint32_t)shared;
	info->total_memory = total;
	info->l2_bytes = (uint64_t)l2;
	info->theoretical_bytes_per_s = 2.0 * clock * 1e3 * bus / 8; /* kHz, bits, two transfers a clock */
	const char *target = choose_target(info->compute_capability);
	if (!target)
		return error_set(BLK_ERROR_UNSUPPORTED, "%s has compute capability %d.%d; blk needs 8.0 or later",
			info->name, major, minor);
	snprintf(info->target, sizeof info->target, "%s", target);
	const uint64_t facts_of_code[] = {info->compute_capability, info->driver_version};
	cache_key k = cache_digest(facts_of_code, sizeof facts_of_code);
	memcpy(&d->identity, k.bytes, sizeof d->identity);
	return BLK_OK;
}

static blk_status find_device(blk_device *d, int ordinal, void *context, CUdevice *device)
{
	blk_status status = CALL(d, cuInit, 0);
	if (status) return status;
	if (context) {
		d->context = context;
		int entered = enter(d);
		if (entered < 0) return BLK_ERROR_DRIVER;
		status = CALL(d, cuCtxGetDevice, device);
		leave(d, entered);
		d->info.ordinal = *device;
		return status;
	}
	int count = 0;
	status = CALL(d, cuDeviceGetCount, &count);
	if (!status && count == 0) return error_set(BLK_ERROR_NOT_FOUND, "the CUDA driver sees no device");
	if (!status && ordinal >= count)
		return error_set(BLK_ERROR_NOT_FOUND, "there is no cuda:%d; the driver sees %d device%s", ordinal,
			count, count == 1 ? "" : "s");
	if (!status) status = CALL(d, cuDeviceGet, device, ordinal);
	d->info.ordinal = ordinal;
	return status;
}

static const backend cuda_backend = {cuda_close, cuda_sync, cuda_allocate, cuda_release, cuda_write, cuda_read,
	cuda_fill, cuda_copy, cuda_load, cuda_unload, cuda_launch, cuda_describe, cuda_stream_create, cuda_stream_sync,
	cuda_stream_free, cuda_event_create, cuda_event_record, cuda_event_elapsed, cuda_event_free, cuda_encode, NULL,
	cuda_range, cuda_allocate_pinned, cuda_release_pinned};

blk_status cuda_open(blk_device *d, int ordinal, void *context, const cuda_api *given)
{
	CUdevice device = 0;
	d->cuda = given;
	blk_status status = given ? BLK_OK : load_driver(&d->cuda);
	if (status) return status;
	status = find_device(d, ordinal, context, &device);
	if (!status) status = query(d, device);
	if (!status && !context) {
		CUcontext primary = NULL;
		status = CALL(d, cuDevicePrimaryCtxRetain, &primary, device);
		d->context = primary;
		d->primary = status == BLK_OK;
	}
	if (status) unload_driver(d->cuda);
	d->backend = &cuda_backend;
	return status;
}
