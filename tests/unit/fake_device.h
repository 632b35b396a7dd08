/* A CUDA driver and a compiler that exist only in memory, for tests of the runtime.
 *
 * The driver keeps count of every object and of the context stack of the thread, so that a test can ask for zero leaks
 * and balanced pushes; its `fail_at`-th call returns `fail_with`.  The "machine" runs one kernel: z[i] = x[i] + y[i].
 * The compiler reads sources that are signatures already, kernels parted by lines "kernel NAME", and "import PATH"
 * lines; a line "error TEXT" is a diagnosed error.  "$NAME" in a signature is that constant's value, the define LOCAL
 * is what the code spills.  The machine adds one for programs of `wrong_threads`, and is lost to those of
 * `fault_threads`. */
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#include "runtime/device/cuda_api.h"
#include "runtime/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fake_driver {
	int calls, fail_at, fail_with; /* fail_at 0: never */
	const char *failed_call;
	int pushed, primary, buffers, streams, events, links, modules, libraries, pinned;
	int launches, syncs, links_made, libraries_made;
	char *library_log; /* where the last one says what was wrong; null: nothing was */
	int capability, devices, shared_limit;
	unsigned grid[3], threads, shared, cluster; /* cluster: of the last launch, 0: without the attribute */
	bool no_clusters;                           /* the driver refuses them */
	bool early;         /* the last launch may begin before the kernel before it has ended */
	int driver_version; /* 0: 13.0 */
	CUstream stream;
	uint64_t values[8];
	CUcontext current; /* what the program around us has made current */
	char linked[64];   /* the beginning of the last PTX */
	int registers, local;
	bool loads_ptx; /* the loader compiles what is no cubin */
	unsigned wrong_threads, fault_threads;
	int refuse_launch, refuse_with; /* the how manieth, and how; 0: none */
	bool lost;
	struct {
		CUdeviceptr base;
		size_t bytes;
	} known[64]; /* allocations, as far as there is room */
	struct {
		CUdeviceptr base;
		size_t bytes;
	} reserved;               /* addresses in which several of them are mapped */
	int encodes, refuse_maps; /* tensor maps made; refuse_maps: the driver takes no request */
	unsigned takes_maps;      /* behind the four arguments */
	CUtensorMap maps[4];      /* of the last launch */
	struct {
		int type, interleave, swizzle, promotion, fill;
		unsigned rank, box[5], steps[5];
		uint64_t address, extents[5], strides[4];
	} map; /* the last request */
} fake_driver;

static fake_driver fake;
static CUcontext const fake_primary = (CUcontext)0x1000, fake_foreign = (CUcontext)0x2000;

static int fake_step(const char *name)
{
	fake.calls++;
	if (fake.calls != fake.fail_at) return 0;
	fake.failed_call = name;
	return fake.fail_with;
}
/* A call that needs our context to be current. */
static int fake_inside(const char *name)
{
	if (fake.current != fake_primary && fake.current != fake_foreign) return 201;
	if (fake.lost) return 700;
	return fake_step(name);
}
#define STEP()                                                                                                         \
	do {                                                                                                           \
		int code = fake_step(__func__);                                                                        \
		if (code) return code;                                                                                 \
	} while (0)
#define INSIDE_STEP()                                                                                                  \
	do {                                                                                                           \
		int code = fake_inside(__func__);                                                                      \
		if (code) return code;                                                                                 \
	} while (0)

static CUresult fake_cuInit(unsigned flags)
{
	(void)flags;
	STEP();
	return 0;
}
static CUresult fake_cuDriverGetVersion(int *v)
{
	STEP();
	*v = fake.driver_version ? fake.driver_version : 13000;
	return 0;
}
static CUresult fake_cuGetErrorName(CUresult r, const char **s)
{
	*s = r == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
	return 0;
}
static CUresult fake_cuGetErrorString(CUresult r, const char **s)
{
	(void)r;
	*s = "a made-up failure";
	return 0;
}
static CUresult fake_cuDeviceGetCount(int *n)
{
	STEP();
	*n = fake.devices;
	return 0;
}
static CUresult fake_cuDeviceGet(CUdevice *d, int ordinal)
{
	STEP();
	*d = ordinal;
	return 0;
}
static CUresult fake_cuDeviceGetName(char *name, int room, CUdevice d)
{
	(void)d;
	STEP();
	snprintf(name, (size_t)room, "Fake GPU");
	return 0;
}
static CUresult fake_cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d)
{
	(void)d;
	STEP();
	*v = a == CUDA_ATTRIBUTE_MAJOR     ? fake.capability / 10
	     : a == CUDA_ATTRIBUTE_MINOR   ? fake.capability % 10
	     : a == CUDA_ATTRIBUTE_SMS     ? 132
	     : a == CUDA_ATTRIBUTE_WARP    ? 32
	     : a == CUDA_ATTRIBUTE_THREADS ? 2048
	     : a == CUDA_ATTRIBUTE_SHARED  ? fake.shared_limit
					   : 1000;
	return 0;
}
static CUresult fake_cuDeviceTotalMem_v2(size_t *n, CUdevice d)
{
	(void)d;
	STEP();
	*n = (size_t)1 << 30;
	return 0;
}
static CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d)
{
	(void)d;
	STEP();
	fake.primary++;
	*c = fake_primary;
	return 0;
}
static CUresult fake_cuDevicePrimaryCtxRelease_v2(CUdevice d)
{
	(void)d;
	fake.primary--;
	return 0;
}
static CUcontext fake_saved[16];
static CUresult fake_cuCtxGetCurrent(CUcontext *c)
{
	*c = fake.current;
	return 0;
}
static CUresult fake_cuCtxPushCurrent_v2(CUcontext c)
{
	STEP();
	fake_saved[fake.pushed++] = fake.current;
	fake.current = c;
	return 0;
}
static CUresult fake_cuCtxPopCurrent_v2(CUcontext *c)
{
	*c = fake.current;
	fake.current = fake_saved[--fake.pushed];
	return 0;
}
static CUresult fake_cuCtxGetDevice(CUdevice *d)
{
	INSIDE_STEP();
	*d = 0;
	return 0;
}
static CUresult fake_cuCtxSynchronize(void)
{
	INSIDE_STEP();
	fake.syncs++;
	return 0;
}
/* In place of the allocation `old`, or 0: of none. */
static void fake_know(CUdeviceptr old, CUdeviceptr base, size_t n)
{
	for (size_t i = 0; i < sizeof fake.known / sizeof fake.known[0]; i++)
		if (fake.known[i].base == old) {
			fake.known[i].base = base;
			fake.known[i].bytes = n;
			return;
		}
}
static CUresult fake_cuMemAlloc_v2(CUdeviceptr *p, size_t n)
{
	void *memory = NULL;
	INSIDE_STEP();
	if (n > ((size_t)1 << 30) || posix_memalign(&memory, 256, n) != 0) return CUDA_OUT_OF_MEMORY;
	memset(memory, 0xcd, n);
	fake.buffers++;
	*p = (CUdeviceptr)(uintptr_t)memory;
	fake_know(0, *p, n);
	return 0;
}
static CUresult fake_cuMemAllocHost_v2(void **memory, size_t bytes)
{
	INSIDE_STEP();
	*memory = malloc(bytes);
	if (!*memory) return 2;
	fake.pinned++;
	return 0;
}
static CUresult fake_cuMemFreeHost(void *memory)
{
	free(memory);
	fake.pinned--;
	return 0;
}
static CUresult fake_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *n, CUdeviceptr address)
{
	INSIDE_STEP();
	for (size_t i = 0; i < sizeof fake.known / sizeof fake.known[0]; i++)
		if (address - fake.known[i].base < fake.known[i].bytes) {
			*base = fake.known[i].base;
			*n = fake.known[i].bytes;
			return 0;
		}
	return CUDA_INVALID_DEVICE;
}
static CUresult fake_cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
	CUdeviceptr base;
	size_t n;
	CUresult r = fake_cuMemGetAddressRange_v2(&base, &n, address);
	if (r) return r;
	if (address - fake.reserved.base < fake.reserved.bytes) {
		base = fake.reserved.base;
		n = fake.reserved.bytes;
	}
	memcpy(value, attribute == CUDA_POINTER_RANGE_START ? (void *)&base : (void *)&n, 8);
	return 0;
}
static CUresult fake_cuMemFree_v2(CUdeviceptr p)
{
	fake_know(p, 0, 0);
	free((void *)(uintptr_t)p);
	fake.buffers--;
	return 0;
}
static CUresult fake_cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n)
{
	INSIDE_STEP();
	memcpy((void *)(uintptr_t)to, from, n);
	return 0;
}
static CUresult fake_cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n)
{
	INSIDE_STEP();
	memcpy(to, (void *)(uintptr_t)from, n);
	return 0;
}
static CUresult fake_cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
	(void)s;
	INSIDE_STEP();
	memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, n);
	return 0;
}
static CUresult fake_cuMemsetD8Async(CUdeviceptr to, unsigned char v, size_t n, CUstream s)
{
	(void)s;
	INSIDE_STEP();
	memset((void *)(uintptr_t)to, v, n);
	return 0;
}
static CUresult fake_cuStreamCreate(CUstream *s, unsigned flags)
{
	(void)flags;
	INSIDE_STEP();
	*s = (CUstream)(uintptr_t)(0x100 + fake.streams++);
	return 0;
}
static CUresult fake_cuStreamSynchronize(CUstream s)
{
	(void)s;
	INSIDE_STEP();
	return 0;
}
static CUresult fake_cuStreamDestroy_v2(CUstream s)
{
	(void)s;
	fake.streams--;
	return 0;
}
static CUresult fake_cuEventCreate(CUevent *e, unsigned flags)
{
	(void)flags;
	INSIDE_STEP();
	*e = (CUevent)(uintptr_t)(0x200 + fake.events++);
	return 0;
}
static CUresult fake_cuEventRecord(CUevent e, CUstream s)
{
	(void)e;
	(void)s;
	INSIDE_STEP();
	return 0;
}
static CUresult fake_cuEventSynchronize(CUevent e)
{
	(void)e;
	INSIDE_STEP();
	return 0;
}
static CUresult fake_cuEventElapsedTime(float *ms, CUevent a, CUevent b)
{
	(void)a;
	(void)b;
	INSIDE_STEP();
	*ms = 0.5f;
	return 0;
}
static CUresult fake_cuEventDestroy_v2(CUevent e)
{
	(void)e;
	fake.events--;
	return 0;
}
static char *fake_log;
static CUresult fake_cuLinkCreate_v2(unsigned n, CUjit_option *options, void **values, CUlinkState *s)
{
	INSIDE_STEP();
	for (unsigned i = 0; i < n; i++)
		if (options[i] == CUDA_JIT_ERROR_LOG) fake_log = values[i];
	fake.links++;
	*s = (CUlinkState)(uintptr_t)0x300;
	return 0;
}
static CUresult fake_cuLinkAddData_v2(CUlinkState s, CUjitInputType t, void *data, size_t n, const char *name,
	unsigned no, CUjit_option *options, void **values)
{
	(void)s, (void)name, (void)no, (void)options, (void)values;
	INSIDE_STEP();
	if (t != CUDA_INPUT_PTX || ((char *)data)[n - 1] != 0) return 1;
	if (strstr(data, "bad ptx")) {
		strcpy(fake_log, "ptxas fatal: line 1");
		return CUDA_INVALID_PTX;
	}
	snprintf(fake.linked, sizeof fake.linked, "%s", (char *)data);
	fake.links_made++;
	return 0;
}
static CUresult fake_cuLinkComplete(CUlinkState s, void **cubin, size_t *n)
{
	static char image[128];
	(void)s;
	INSIDE_STEP();
	snprintf(image, sizeof image, "CUBIN of the fake linker: %s", fake.linked);
	*cubin = image;
	*n = sizeof image;
	return 0;
}
static CUresult fake_cuLinkDestroy(CUlinkState s)
{
	(void)s;
	fake.links--;
	return 0;
}
static CUresult fake_cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned n, CUjit_option *o, void **v)
{
	INSIDE_STEP();
	for (unsigned i = 0; i < n; i++)
		if (o[i] == CUDA_JIT_ERROR_LOG && strstr(image, "bad ptx")) {
			strcpy(v[i], "ptxas fatal: line 2");
			return CUDA_INVALID_PTX;
		}
	if (strncmp(image, "CUBIN", 5) != 0 && !fake.loads_ptx) return 200;
	const char *local = strstr(image, "// LOCAL ");
	*m = (CUmodule)(uintptr_t)((local ? atoi(local + 9) << 16 : 0) + 0x400 + fake.modules++);
	return 0;
}
static CUresult fake_cuModuleUnload(CUmodule m)
{
	(void)m;
	fake.modules--;
	return 0;
}
/* As the driver does, it says what was wrong when the module is asked for. */
static CUresult fake_cuLibraryLoadData(CUlibrary *l, const void *image, CUjit_option *o, void **v, unsigned n,
	CUlibraryOption *lo, void **lv, unsigned nl)
{
	INSIDE_STEP();
	if (lo || lv || nl) return 1;
	fake.library_log = NULL;
	for (unsigned i = 0; i < n; i++)
		if (o[i] == CUDA_JIT_ERROR_LOG && strstr(image, "bad ptx")) fake.library_log = v[i];
	fake.libraries_made++;
	*l = (CUlibrary)(uintptr_t)(0x600 + fake.libraries++);
	return 0;
}
static CUresult fake_cuLibraryGetModule(CUmodule *m, CUlibrary l)
{
	(void)l;
	INSIDE_STEP();
	if (fake.library_log) {
		strcpy(fake.library_log, "ptxas fatal: line 3");
		return CUDA_INVALID_PTX;
	}
	*m = (CUmodule)(uintptr_t)0x400;
	return 0;
}
static CUresult fake_cuLibraryUnload(CUlibrary l)
{
	(void)l;
	fake.libraries--;
	return 0;
}
static CUresult fake_cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name)
{
	INSIDE_STEP();
	if (strcmp(name, "missing") == 0) return 500;
	*f = (CUfunction)(uintptr_t)(((uintptr_t)m & ~(uintptr_t)0xffff) + 0x500);
	return 0;
}
static CUresult fake_cuFuncGetAttribute(int *v, CUfunction_attribute a, CUfunction f)
{
	INSIDE_STEP();
	*v = a == CUDA_FUNCTION_REGISTERS ? fake.registers
	     : a == CUDA_FUNCTION_LOCAL   ? fake.local + (int)((uintptr_t)f >> 16)
					  : 16;
	return 0;
}
static CUresult fake_cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v)
{
	(void)f;
	INSIDE_STEP();
	return a == CUDA_FUNCTION_DYNAMIC && v > 48 * 1024 ? 0 : 1;
}
static CUresult fake_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int threads, size_t shared)
{
	(void)f, (void)shared;
	INSIDE_STEP();
	*n = 2048 / threads / 2;
	return 0;
}
static CUresult fake_cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, unsigned rank, void *address,
	const uint64_t *extents, const uint64_t *strides, const unsigned *box, const unsigned *steps,
	CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
	CUtensorMapFloatOOBfill fill)
{
	INSIDE_STEP();
	if (fake.refuse_maps) return 1;
	fake.encodes++;
	memset(&fake.map, 0, sizeof fake.map);
	fake.map.type = type, fake.map.interleave = interleave, fake.map.swizzle = swizzle;
	fake.map.promotion = promotion, fake.map.fill = fill;
	fake.map.rank = rank;
	fake.map.address = (uint64_t)(uintptr_t)address;
	for (unsigned i = 0; i < rank; i++) {
		fake.map.extents[i] = extents[i];
		fake.map.box[i] = box[i];
		fake.map.steps[i] = steps[i];
		if (i + 1 < rank) fake.map.strides[i] = strides[i];
	}
	memset(map, fake.encodes, sizeof *map);
	map->opaque[0] = fake.map.address;
	map->opaque[1] = extents[0];
	return 0;
}
static CUresult fake_cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra)
{
	(void)f, (void)by, (void)bz, (void)extra;
	INSIDE_STEP();
	if (++fake.launches == fake.refuse_launch) return fake.refuse_with;
	fake.cluster = 0;
	fake.early = false;
	fake.grid[0] = gx, fake.grid[1] = gy, fake.grid[2] = gz;
	fake.threads = bx;
	fake.shared = shared;
	fake.stream = stream;
	/* a launch whose map could not be made is one of the code without maps */
	bool maps = fake.encodes >= (int)fake.takes_maps &&
		    (!fake.failed_call || !strstr(fake.failed_call, "cuTensorMapEncodeTiled"));
	for (unsigned i = 0; maps && i < fake.takes_maps; i++)
		memcpy(&fake.maps[i], parameters[4 + i], sizeof fake.maps[i]);
	for (int i = 0; i < 4; i++) memcpy(&fake.values[i], parameters[i], 8);
	float *z = (float *)(uintptr_t)fake.values[0], *x = (float *)(uintptr_t)fake.values[1],
	      *y = (float *)(uintptr_t)fake.values[2];
	for (int32_t i = 0; i < (int32_t)fake.values[3]; i++) z[i] = x[i] + y[i] + (float)(bx == fake.wrong_threads);
	fake.lost = fake.lost || bx == fake.fault_threads;
	return 0;
}

static CUresult fake_cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **parameters, void **extra)
{
	unsigned cluster = 0;
	bool early = false;
	for (unsigned i = 0; i < c->numAttrs; i++) {
		const CUlaunchAttribute *a = &c->attrs[i];
		early |= a->id == CUDA_LAUNCH_PDL && a->value.programmaticStreamSerializationAllowed == 1;
		if (a->id != CUDA_LAUNCH_CLUSTER) continue;
		cluster = a->value.clusterDim.x;
		if (a->value.clusterDim.y != 1 || a->value.clusterDim.z != 1 || c->gridDimX % cluster) return 1;
	}
	if (c->numAttrs != (cluster ? 1u : 0u) + (early ? 1u : 0u)) return 1;
	if (cluster && fake.no_clusters) return CUDA_NO_CLUSTER;
	CUresult r = fake_cuLaunchKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
		c->blockDimZ, c->sharedMemBytes, c->hStream, parameters, extra);
	fake.cluster = cluster;
	fake.early = early;
	return r;
}

static const cuda_api fake_api = {.library = NULL,
#define X(name, parameters) .name = fake_##name,
	CUDA_CALLS(X) CUDA_LATER_CALLS(X)
#undef X
};

static void fake_reset(void)
{
	memset(&fake, 0, sizeof fake);
	fake.capability = 90;
	fake.devices = 1;
	fake.shared_limit = 227 * 1024;
	fake.registers = 32;
}

/* Nothing is left of what was made. */
static inline const char *fake_leak(void)
{
	return fake.pushed      ? "a context is still pushed"
	       : fake.primary   ? "the primary context is still retained"
	       : fake.buffers   ? "memory"
	       : fake.streams   ? "a stream"
	       : fake.events    ? "an event"
	       : fake.links     ? "a link state"
	       : fake.modules   ? "a module"
	       : fake.pinned    ? "pinned memory"
	       : fake.libraries ? "a library"
				: NULL;
}

/* ---- The compiler ---- */

static int fake_compiles, fake_checks, fake_status;
static char fake_request[512]; /* the promises and defines of the last compile */

typedef struct fake_result {
	blkc_result r;
	blkc_kernel kernels[8];
	blkc_artifact artifact;
	const char *dependencies[4];
	char *texts[16];
	int ntexts;
} fake_result;

static char *fake_keep(fake_result *f, char *s)
{
	return f->texts[f->ntexts++] = s;
}

/* "$NAME" to the define's value, or to the default in the line "const NAME TYPE VALUE"; there is room for it. */
static void fake_substitute(const blkc_request *q, char *text)
{
	for (char *p; (p = strchr(text, '$'));) {
		char name[32] = "", line[64], value[32] = "0";
		sscanf(p + 1, "%31[A-Z_]", name);
		snprintf(line, sizeof line, "\nconst %s ", name);
		const char *at = strstr(text, line);
		if (at) sscanf(at + strlen(line), "%*s %31s", value);
		for (size_t i = 0; i < q->ndefines; i++)
			if (strcmp(q->defines[i].name, name) == 0)
				snprintf(value, sizeof value, "%s", q->defines[i].value);
		size_t n = strlen(name) + 1, m = strlen(value);
		memmove(p + m, p + n, strlen(p + n) + 1);
		memcpy(p, value, m);
	}
}

static void fake_kernel(fake_result *f, const blkc_request *q, const char *line)
{
	const char *end = strstr(line, "\nkernel ");
	size_t n = end ? (size_t)(end - line) + 1 : strlen(line);
	char name[64] = "", *text = calloc(1, n + 4096);
	sscanf(line, "kernel %63s", name);
	if (q->kernel && strcmp(q->kernel, name) != 0) {
		free(text);
		return;
	}
	memcpy(text, line, n);
	fake_substitute(q, text);
	for (char *map; (!q->emit || !q->npromises) && (map = strstr(text, "\nmap "));)
		memmove(map, strchr(map + 1, '\n'), strlen(strchr(map + 1, '\n')) + 1);
	blkc_kernel *k = &f->kernels[f->r.nkernels++];
	k->signature = fake_keep(f, text);
	k->name = fake_keep(f, strdup(name));
	if (!q->emit) return;
	char *code = calloc(1, n + 256);
	snprintf(code, n + 256, "// PTX of %s for %s\n", name, q->target);
	if (strstr(text, "spoiled")) strcat(code, "bad ptx");
	for (size_t i = 0; i < q->ndefines; i++)
		if (strcmp(q->defines[i].name, "LOCAL") == 0)
			snprintf(code + strlen(code), 64, "// LOCAL %s\n", q->defines[i].value);
	f->artifact = (blkc_artifact){name[0] ? k->name : "", q->emit, fake_keep(f, code), strlen(code)};
	f->r.artifacts = &f->artifact;
	f->r.nartifacts = 1;
}

static blkc_result *fake_compile(const blkc_request *q)
{
	fake_result *f = calloc(1, sizeof *f);
	f->r.log = "";
	f->r.kernels = f->kernels;
	f->r.diagnostics = strstr(q->text, "error ")    ? strstr(q->text, "error ")
			   : strstr(q->text, "warning") ? "a warning\n"
							: "";
	f->r.status = strstr(q->text, "error ") ? 1 : fake_status;
	f->r.dependencies = f->dependencies;
	if (q->emit)
		fake_compiles++;
	else
		fake_checks++;
	int n = 0;
	fake_request[0] = 0;
	for (size_t i = 0; i < q->npromises; i++)
		n += snprintf(fake_request + n, sizeof fake_request - (size_t)n, "%s%s%u ", q->promises[i].name,
			q->promises[i].is_one ? "=" : "%", q->promises[i].is_one ? 1 : q->promises[i].divisible);
	for (size_t i = 0; i < q->ndefines; i++)
		n += snprintf(fake_request + n, sizeof fake_request - (size_t)n, "-D%s=%s ", q->defines[i].name,
			q->defines[i].value);
	for (const char *p = q->text; !f->r.status && p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
		char path[256];
		if (strncmp(p, "kernel ", 7) == 0) fake_kernel(f, q, p);
		if (sscanf(p, "import %255s", path) == 1)
			f->dependencies[f->r.ndependencies++] = fake_keep(f, strdup(path));
	}
	return &f->r;
}

static void fake_result_free(blkc_result *r)
{
	fake_result *f = (fake_result *)r;
	for (int i = 0; i < f->ntexts; i++) free(f->texts[i]);
	free(f);
}

static const char *fake_version(void)
{
	return "blk fake";
}

static const compiler_api fake_compiler = {fake_compile, fake_result_free, fake_version};
static const device_seams fake_seams = {.cuda = &fake_api, .compiler = &fake_compiler};

#define FAKE_ADD                                                                                                       \
	"kernel add\nsymbol add\nparam z *f32\nparam x *const f32\nparam y *const f32\nparam n i32\nconst BLOCK i32 "  \
	"1024\n"                                                                                                       \
	"written 0\ngrid 0 p3 1024 cdiv\ncost bytes p3 12 *\nnum_warps 4\nthreads 128\nshared 0\n"

#endif
