/* The cpu backend: buffers are host memory, streams are program order, a launch runs the whole grid over the machine's
 * cores and returns when it has ended.
 *
 * A failed device_assert cannot be reported by the launch, as on a GPU it is not: it is kept and returned by the next
 * call that waits (sync, read, write). */
#include "internal.h"
#include "cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

void host_close(blk_device *d)
{
	cpu_pool_destroy(d->pool);
	cpu_memory_destroy(d->memory);
	free(atomic_exchange(&d->failure, NULL));
}

blk_status host_asserted(failed_assert *from)
{
	char *failure = atomic_exchange(from, NULL);
	if (!failure) return BLK_OK;
	blk_status status = error_set(BLK_ERROR_ASSERT, "%s", failure);
	free(failure);
	return status;
}

void host_assert_failed(failed_assert *to, char *text)
{
	char *none = NULL;
	if (!atomic_compare_exchange_strong(to, &none, text)) free(text);
}

blk_status host_sync(blk_device *d)
{
	return host_asserted(&d->failure);
}

/* ---- Memory ---- */

static blk_status host_allocate(blk_device *d, size_t bytes, uint64_t *address)
{
	char warning[512];
	if (!cpu_memory_allocate(d->memory, bytes, address))
		return error_set(BLK_ERROR_MEMORY, "out of memory for a buffer of %zu bytes", bytes);
	if (cpu_memory_warning(d->memory, warning, sizeof warning)) note_add("%s", warning);
	return BLK_OK;
}

static void host_release(blk_device *d, uint64_t address)
{
	cpu_memory_release(d->memory, address);
}

static blk_status host_write(blk_device *d, uint64_t to, const void *from, size_t bytes)
{
	memmove((void *)(uintptr_t)to, from, bytes);
	return host_sync(d);
}

static blk_status host_read(blk_device *d, void *to, uint64_t from, size_t bytes)
{
	memmove(to, (const void *)(uintptr_t)from, bytes);
	return host_sync(d);
}

static blk_status host_fill(blk_device *d, uint64_t to, uint8_t value, size_t bytes, void *stream)
{
	(void)d;
	(void)stream;
	memset((void *)(uintptr_t)to, value, bytes);
	return BLK_OK;
}

static blk_status host_copy(blk_device *d, uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	(void)d;
	(void)stream;
	memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
	return BLK_OK;
}

#ifdef __x86_64__
static void host_evict(uint64_t address, size_t bytes)
{
	enum { LINE = 64 };
	const char *p = (const char *)(uintptr_t)address;
	for (size_t i = 0; i < bytes; i += LINE) __builtin_ia32_clflush(p + i);
	__builtin_ia32_mfence();
}
#else
#define host_evict NULL
#endif

/* ---- Streams and events ---- */

blk_status host_stream_create(blk_device *d, void **out)
{
	(void)d;
	*out = NULL;
	return BLK_OK;
}
blk_status host_stream_sync(blk_device *d, void *stream)
{
	(void)stream;
	return host_sync(d);
}
void host_stream_free(blk_device *d, void *stream)
{
	(void)d;
	(void)stream;
}

blk_status host_event_create(blk_device *d, blk_event *e)
{
	(void)d;
	e->time_ms = 0;
	return BLK_OK;
}
blk_status host_event_record(blk_device *d, blk_event *e, void *stream)
{
	struct timespec t;
	(void)d;
	(void)stream;
	clock_gettime(CLOCK_MONOTONIC, &t);
	e->time_ms = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
	return BLK_OK;
}
blk_status host_event_elapsed(blk_device *d, blk_event *start, blk_event *end, double *ms)
{
	(void)d;
	*ms = end->time_ms - start->time_ms;
	return BLK_OK;
}
void host_event_free(blk_device *d, blk_event *e)
{
	(void)d;
	(void)e;
}

/* ---- Code ---- */

static blk_status cpu_error(int status, const char *text)
{
	static const blk_status statuses[] = {BLK_OK, BLK_ERROR_MEMORY, BLK_ERROR_FORMAT, BLK_ERROR_UNSUPPORTED,
		BLK_ERROR_FORMAT, BLK_ERROR_ASSERT, BLK_ERROR_DRIVER, BLK_ERROR_KERNEL}; /* ORDER cpu_status */
	if (status == CPU_NO_MEMORY) return error_memory();
	return error_set(statuses[status], "%s", text);
}

static blk_status host_load(
	blk_device *d, variant *v, unsigned kind, const void *code, size_t bytes, void **linked, size_t *nlinked)
{
	char text[256] = "";
	cpu_object *object = NULL;
	(void)d;
	(void)linked;
	(void)nlinked;
	(void)kind; /* an object: neither PTX nor a package's PTX comes this far */
	int status = cpu_object_load(code, bytes, v->sig->symbol, &object, text, sizeof text);
	if (status) return cpu_error(status, text);
	v->threads = 1;
	v->module = object;
	return BLK_OK;
}

static void host_unload(blk_device *d, variant *v)
{
	(void)d;
	cpu_object_free(v->module);
	v->module = NULL;
}

/* A failed device_assert is kept for the next call that waits; the first one counts. */
static blk_status keep_failure(failed_assert *to, const char *text)
{
	char *copy = strdup(text);
	if (!copy) return error_memory();
	host_assert_failed(to, copy);
	return BLK_OK;
}

/* What each parameter may reach: its buffer; nothing where it is null; anything where it is memory of the caller's,
 * whose size nobody knows. */
typedef struct reach {
	cpu_memory *memory;
	blk_cpu_range ranges[SIGNATURE_PARAMETERS];
	bool foreign; /* some of it is the caller's, so that an address from elsewhere may be */
	const signature *sig;
	const uint64_t *bits;
	bool spoilt; /* what lies around a buffer was written: first that of this parameter, there */
	uint32_t parameter;
	uint64_t where;
} reach;

static const blk_cpu_range anything = {0, UINT64_MAX};

static void find_buffer(void *context, uint64_t address, blk_cpu_range *out)
{
	const reach *r = context;
	if (!cpu_memory_find(r->memory, address, out)) *out = r->foreign ? anything : (blk_cpu_range){0};
}

static void find_ranges(reach *r, const signature *s, const uint64_t *bits)
{
	for (uint32_t i = 0; i < s->nparameters; i++) {
		r->ranges[i] = (blk_cpu_range){0};
		if (s->parameters[i].code != BLK_TYPE_POINTER || bits[i] == 0) continue;
		if (cpu_memory_find(r->memory, bits[i], &r->ranges[i])) continue;
		r->ranges[i] = anything;
		r->foreign = true;
	}
}

/* A store that missed the pages behind a buffer shows in the bytes up to them.  All of it is put right, also behind a
 * launch that has failed: what it wrote there is not the next one's. */
static void look_around(void *context)
{
	reach *r = context;
	uint64_t where;
	for (uint32_t i = 0; i < r->sig->nparameters; i++) {
		if (!r->sig->parameters[i].written || cpu_memory_intact(r->memory, r->bits[i], &where)) continue;
		if (r->spoilt) continue;
		r->spoilt = true;
		r->parameter = i;
		r->where = where;
	}
}

static blk_status host_launch(
	blk_device *d, const variant *v, void *stream, const uint32_t grid[3], uint64_t *bits, const tensor_map *maps)
{
	(void)maps;
	char text[1024] = "";
	const signature *s = v->sig;
	cpu_mode mode = cpu_memory_mode(d->memory);
	reach r;
	r.memory = d->memory;
	r.foreign = r.spoilt = false;
	r.sig = s;
	r.bits = bits;
	cpu_watch watch = {
		.object = v->module, .ranges = r.ranges, .find = find_buffer, .end = look_around, .context = &r};
	if (mode == CPU_CHECKED) find_ranges(&r, s, bits);
	int status = cpu_pool_run(d->pool, cpu_object_kernel(v->module), s->scratch, bits, grid,
		mode == CPU_FAST ? NULL : &watch, text, sizeof text);
	if (status == CPU_ASSERT_FAILED) return keep_failure(stream ? stream : &d->failure, text);
	if (status == CPU_FAULT) return cpu_report_fault(d, v, bits, &watch.fault);
	if (status) return cpu_error(status, text);
	return r.spoilt ? cpu_report_canary(d, v, bits, r.parameter, r.where) : BLK_OK;
}

static blk_status host_describe(blk_device *d, const variant *v, blk_info *info)
{
	(void)d;
	(void)v;
	info->num_warps = info->threads = info->programs_per_sm = 1;
	info->occupancy = 1;
	return BLK_OK;
}

/* ---- Opening ---- */

static void read_name(blk_device_info *info)
{
	static const char *const names[] = {"model name", "Processor", "Hardware"};
	char line[1024];
	struct utsname u;
	FILE *f = fopen("/proc/cpuinfo", "re");
	while (f && !info->name[0] && fgets(line, sizeof line, f)) {
		char *value = strchr(line, ':');
		if (!value) continue;
		value += 1 + (value[1] == ' ');
		value[strcspn(value, "\n")] = 0;
		for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
			if (strncmp(line, names[i], strlen(names[i])) == 0)
				snprintf(info->name, sizeof info->name, "%s", value);
	}
	if (f) fclose(f);
	if (!info->name[0]) snprintf(info->name, sizeof info->name, "%s", uname(&u) == 0 ? u.machine : "cpu");
}

static uint64_t cache_size(void)
{
#if defined _SC_LEVEL3_CACHE_SIZE && defined _SC_LEVEL2_CACHE_SIZE
	long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
	return l3 > 0 ? (uint64_t)l3 : l2 > 0 ? (uint64_t)l2 : 0;
#else
	return 0;
#endif
}

static const backend host_backend = {host_close, host_sync, host_allocate, host_release, host_write, host_read,
	host_fill, host_copy, host_load, host_unload, host_launch, host_describe, host_stream_create, host_stream_sync,
	host_stream_free, host_event_create, host_event_record, host_event_elapsed, host_event_free, NULL, host_evict,
	NULL, NULL, NULL};

static const char *const modes[] = {"fast", "guarded", "checked"}; /* ORDER cpu_mode */

const char *host_mode(const blk_device *d)
{
	return d->memory ? modes[cpu_memory_mode(d->memory)] : "";
}

static blk_status find_mode(const char *name, cpu_mode *mode)
{
	const char *from = name ? "" : "BLK_CPU=";
	if (!name) name = getenv("BLK_CPU");
	*mode = CPU_GUARDED;
	if (!name || !*name) return BLK_OK;
	for (unsigned i = 0; i < sizeof modes / sizeof modes[0]; i++)
		if (strcmp(name, modes[i]) == 0) return *mode = (cpu_mode)i, BLK_OK;
	return error_set(BLK_ERROR_ARGUMENT, "%s%s: the cpu device is fast, guarded or checked", from, name);
}

blk_status host_open(blk_device *d, const char *name)
{
	blk_device_info *info = &d->info;
	const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	info->kind = BLK_DEVICE_CPU;
	char identity[1024] = "";
	cpu_mode mode;
	blk_status wrong = find_mode(name, &mode);
	if (wrong) return wrong;
	int status = cpu_pool_create(&d->pool);
	size_t guards = mode == CPU_FAST ? 0 : cpu_memory_guards("/proc/sys/vm/max_map_count");
	if (!status && (status = cpu_memory_create(mode, guards, &d->memory))) cpu_pool_destroy(d->pool);
	if (status) return cpu_error(status, "the cpu device's threads cannot be had");
	d->checked = mode == CPU_CHECKED;
	read_name(info);
	cpu_identity(identity, sizeof identity);
	cache_key digest = cache_digest(identity, strlen(identity));
	memcpy(&d->identity, digest.bytes, sizeof d->identity);
	snprintf(info->target, sizeof info->target, "cpu");
	info->num_sms = cpu_pool_threads(d->pool);
	info->warp_size = 1;
	info->total_memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
	info->l2_bytes = cache_size();
	d->backend = &host_backend;
	return BLK_OK;
}
