/* libblk when memory runs out: each allocation of a whole life fails, once and from then on, with the cache and
 * without. The answer is a status or (where only the cache is concerned) success, and nothing leaks.
 *
 * The allocator is this program's own malloc in front of libc's, which sanitizers do not allow: there the test skips.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_device.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <unistd.h>
#include <cmocka.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

static struct {
	bool armed, forever;
	long calls, fail_at, live;
} memory;

#ifndef SANITIZED
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static bool refused(void)
{
	if (!memory.armed) return false;
	memory.calls++;
	if (memory.fail_at && (memory.calls == memory.fail_at || (memory.forever && memory.calls > memory.fail_at))) {
		errno = ENOMEM;
		return true;
	}
	return false;
}
static void *counted(void *p)
{
	if (p) memory.live++;
	return p;
}
void *malloc(size_t n)
{
	return refused() ? NULL : counted(__libc_malloc(n));
}
void *calloc(size_t a, size_t b)
{
	return refused() ? NULL : counted(__libc_calloc(a, b));
}
void *realloc(void *p, size_t n)
{
	if (refused()) return NULL;
	void *q = __libc_realloc(p, n);
	if (!p) counted(q);
	return q;
}
int posix_memalign(void **out, size_t alignment, size_t n)
{
	if (refused()) return ENOMEM;
	*out = counted(__libc_memalign(alignment, n));
	return *out ? 0 : ENOMEM;
}
void free(void *p)
{
	if (p) memory.live--;
	__libc_free(p);
}
#endif

static char folder[64], packed[128]; /* a package there */

static void empty_cache(void)
{
	static const char *const inner[] = {"code", "tune"};
	for (int i = 0; i < 2; i++) {
		char path[512];
		snprintf(path, sizeof path, "%s/%s", folder, inner[i]);
		DIR *d = opendir(path);
		if (!d) continue;
		for (struct dirent *e; (e = readdir(d));) {
			snprintf(path, sizeof path, "%s/%s/%s", folder, inner[i], e->d_name);
			unlink(path);
		}
		closedir(d);
	}
}

/* The fake compiler and driver take their memory without faults: this test is about libblk. */
static blkc_result *patient_compile(const blkc_request *q)
{
	bool was = memory.armed;
	memory.armed = false;
	blkc_result *r = fake_compile(q);
	memory.armed = was;
	return r;
}
static CUresult patient_alloc(CUdeviceptr *p, size_t n)
{
	bool was = memory.armed;
	memory.armed = false;
	CUresult r = fake_cuMemAlloc_v2(p, n);
	memory.armed = was;
	return r;
}

static int no_fsync(int fd)
{
	(void)fd;
	return 0;
}

static void write_package(void)
{
	package_entry e[] = {{"add", "", "sm_80", FAKE_ADD, 0, PACKAGE_PTX, "plain", 6, 0},
		{"add", "", "sm_80", FAKE_ADD, 7, PACKAGE_PTX, "wide", 5, 0},
		{"add", "BLOCK=64", "sm_80", FAKE_ADD, 0, PACKAGE_PTX, "small", 6, 0},
		{"two", "", "sm_80", "kernel two\n", 0, PACKAGE_PTX, "two", 4, 0}};
	const package p = {.producer = "a test", .entries = e, .nentries = 4};
	const char *why;
	size_t n;
	void *bytes = package_encode(&p, &n, &why);
	snprintf(packed, sizeof packed, "%s/add.blkpkg", folder);
	FILE *f = bytes ? fopen(packed, "wb") : NULL;
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	free(bytes);
}

static blk_status open_package(blk_device *d, blk_buffer *b)
{
	static const blk_define define = {"BLOCK", "1024"};
	blk_device_info info;
	blk_module *m;
	blk_kernel *k;
	blk_status st = blk_device_query(d, &info);
	if (st || info.kind != BLK_DEVICE_CUDA) return st;
	st = blk_module_open(d, packed, &define, 1, &m);
	if (!st) st = blk_kernel_find(m, "add", &k);
	if (!st) st = blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_buf(b), blk_buf(b), blk_i32(3)));
	if (!st) st = blk_launch_on(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_buf(b), blk_ptr(NULL), blk_i32(0)));
	return st;
}

static double tell_time(const char *configuration)
{
	return configuration[2] == '6' ? 1 : 2;
}

/* The last configuration is the best; where memory lacks for it, another one runs. */
static blk_status tune(blk_device *d, blk_buffer *b)
{
	blk_device_info info;
	blk_module *m;
	blk_kernel *k;
	uint32_t timed;
	blk_tune_options again = {.again = 1};
	blk_status st = blk_device_query(d, &info);
	if (st || info.kind != BLK_DEVICE_CUDA) return st;
	d->tune_clock = tell_time;
	st = blk_module_source(d, "tuned.blk",
		FAKE_ADD "const T i32 128\nautotune key n\nconfiguration T=128\nconfiguration T=64\n", NULL, 0, &m);
	if (!st) st = blk_kernel_find(m, "add", &k);
	if (!st) st = blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_buf(b), blk_buf(b), blk_i32(3)));
	if (!st)
		st = blk_kernel_tune(k, NULL, BLK_ARGS(blk_buf(b), blk_buf(b), blk_buf(b), blk_i32(3)), &again, &timed);
	return st;
}

static blk_status life(const char *device)
{
	static cuda_api api;
	static const compiler_api patient = {patient_compile, fake_result_free, fake_version};
	api = fake_api;
	api.cuMemAlloc_v2 = patient_alloc;
	cache_files files = cache_system_files;
	files.fsync = no_fsync;
	const device_seams seams = {.cuda = &api, .compiler = &patient, .files = &files};
	blk_define define = {"BLOCK", "64"};
	blk_device *d = NULL;
	blk_module *m = NULL;
	blk_kernel *k = NULL;
	blk_buffer *b = NULL;
	blk_stream *s = NULL;
	blk_info info;
	blk_timing t;
	blk_bench_options o = {.min_runs = 2, .max_runs = 2, .keep_cache = 1};
	blk_status st = device_open_with(device, &seams, &d);
	if (!st) st = blk_buffer_create(d, 64, &b);
	if (!st) st = blk_stream_create(d, &s);
	if (!st) st = blk_module_source(d, "add.blk", "warning\n" FAKE_ADD "kernel two\ngrid 0 1\n", &define, 1, &m);
	if (!st) st = blk_kernel_find(m, "add", &k);
	if (!st && strcmp(device, "cuda") == 0) {
		blk_arg args[] = {blk_buf(b), blk_buf(b), blk_buf(b), blk_i32(3)};
		for (int i = 0; !st && i < 12; i++) { /* so many variants that their table grows */
			static const int n[] = {3, 16, 1};
			args[3] = blk_i32(n[i % 3]);
			if (i >= 3) args[i / 4] = blk_ptr((char *)blk_buffer_pointer(b) + 4);
			st = blk_launch(k, s, NULL, args, 4);
		}
		if (!st) st = blk_kernel_info(k, args, 4, &info);
		if (!st) st = blk_bench(k, NULL, args, 4, &o, &t);
	}
	if (!st) st = open_package(d, b);
	if (!st) st = tune(d, b);
	blk_device_close(d);
	return st;
}

static void faults(const char *device, bool forever, bool warm)
{
	for (long at = 1;; at++) {
		fake_reset();
		if (!warm) empty_cache();
		memory.calls = 0;
		memory.fail_at = at;
		memory.forever = forever;
		blk_error(); /* the thread's own text is made before counting */
		error_set(BLK_ERROR_ARGUMENT, "%300s", "room for what comes");
		note_clear();
		note_add("%300s", "room for what comes");
		note_clear();
		long live = memory.live;
		memory.armed = true;
		blk_status st = life(device);
		memory.armed = false;
		bool hit = memory.calls >= at;
		if (memory.live > live)
			fail_msg("%s: allocation %ld failing leaks %ld", device, at, memory.live - live);
		if (fake_leak()) fail_msg("%s: allocation %ld failing leaves %s", device, at, fake_leak());
		if (st != BLK_OK && st != BLK_ERROR_MEMORY)
			fail_msg("%s: allocation %ld failing gives %s: %s", device, at, blk_status_text(st),
				blk_error());
		if (st != BLK_OK && !strstr(blk_error(), "memory"))
			fail_msg("%s: allocation %ld failing says: %s", device, at, blk_error());
		if (!hit) {
			assert_int_equal(st, BLK_OK);
			assert_true(at > 10);
			break;
		}
	}
}

static void test_every_allocation(void **state)
{
	(void)state;
#ifdef SANITIZED
	skip();
#endif
	static const char *const devices[] = {"cuda", "cpu"};
	for (int d = 0; d < 2; d++)
		for (int forever = 0; forever < 2; forever++) {
			setenv("BLK_CACHE", "off", 1);
			faults(devices[d], forever, false);
			unsetenv("BLK_CACHE");
			faults(devices[d], forever, false);
			assert_int_equal(life(devices[d]), BLK_OK); /* whatever was left in the cache */
			faults(devices[d], forever, true);
		}
}

int main(void)
{
	/* Configurations are compiled by one thread: what is counted here, and the fake driver, know of one. */
	cpu_set_t allowed, one;
	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
		for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
			if (CPU_ISSET(i, &allowed)) CPU_SET(i, &one);
	sched_setaffinity(0, sizeof one, &one);
	strcpy(folder, "/tmp/blk_memory_XXXXXX");
	if (!mkdtemp(folder)) return 1;
	setenv("BLK_CACHE_DIR", folder, 1);
	write_package();
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
	int status = cmocka_run_group_tests(tests, NULL, NULL);
	char path[128];
	empty_cache();
	snprintf(path, sizeof path, "%s/code", folder);
	rmdir(path);
	snprintf(path, sizeof path, "%s/tune", folder);
	rmdir(path);
	unlink(packed);
	rmdir(folder);
	return status;
}
