/* libblk when memory runs out: each allocation of a whole life fails, once and from then on, with the cache and
 * without. The answer is a status or (where only the cache is concerned) success, and nothing leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_device.h"
#include "faulty_malloc.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

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
	bool was = faulty.armed;
	faulty.armed = false;
	blkc_result *r = fake_compile(q);
	faulty.armed = was;
	return r;
}
static CUresult patient_alloc(CUdeviceptr *p, size_t n)
{
	bool was = faulty.armed;
	faulty.armed = false;
	CUresult r = fake_cuMemAlloc_v2(p, n);
	faulty.armed = was;
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

/* PTX, code that takes tensor maps, and code that may not take them. */
static blk_status life_of_maps(const char *device)
{
	static const char ptx[] = "// blk: kernel one\n// blk: param n i32\n// blk: grid 0 1\n// blk: kernel two\n";
	static const compiler_api patient = {patient_compile, fake_result_free, fake_version};
	const device_seams seams = {.cuda = &fake_api, .compiler = &patient};
	blk_device *d = NULL;
	blk_module *m = NULL;
	blk_kernel *k = NULL;
	blk_info info;
	blk_status st = device_open_with(device, &seams, &d);
	if (!st) st = blk_module_source(d, "one.ptx", ptx, NULL, 0, &m);
	if (!st) st = blk_kernel_find(m, "one", &k);
	if (!st) st = blk_kernel_info(k, BLK_ARGS(blk_i32(1)), &info);
	if (!st)
		st = blk_module_source(d, "maps.blk",
			"kernel maps\nparam x *f32\nparam n i32\ngrid 0 p1\nmap f32 0 8 8 ; p0 ; 100 ; p1 ; 512\n",
			NULL, 0, &m);
	if (!st) st = blk_kernel_find(m, "maps", &k);
	if (!st) st = blk_kernel_info(k, BLK_ARGS(blk_ptr((void *)4096), blk_i32(16)), &info);
	if (!st && info.tensor_maps != 1) st = error_set(BLK_ERROR_INTERNAL, "the code has no map");
	fake.refuse_maps = 1;
	if (!st) st = blk_kernel_info(k, BLK_ARGS(blk_ptr((void *)8192), blk_i32(16)), &info);
	if (!st &&
		!strstr(info.fallback, info.fallback[0] == 'n' ? "no tensor map could be made" : "cuTensorMapEncode"))
		st = error_set(BLK_ERROR_INTERNAL, "%s", info.fallback);
	/* where there is no memory for other code, the map's failure is what one is told */
	if (st == BLK_ERROR_DRIVER && strstr(blk_error(), "cuTensorMapEncode"))
		st = error_set(BLK_ERROR_MEMORY, "no memory");
	blk_device_close(d);
	return st;
}

static int count_entry(void *context, const blk_cache_entry *e)
{
	*(int *)context += e->valid != 0;
	return 0;
}

/* The records of life(): listed, out into a file, and in again. */
static blk_status life_of_records(const char *unused)
{
	char path[128];
	uint32_t n;
	int entries = 0;
	(void)unused;
	snprintf(path, sizeof path, "%s/records", folder);
	blk_status st = blk_cache_list(count_entry, &entries);
	if (!st) st = blk_tune_export(path, &n);
	if (!st) st = blk_tune_import(path, &n);
	const char *at = blk_cache_folder();
	if (!st && at && strcmp(at, folder) != 0) st = error_set(BLK_ERROR_INTERNAL, "the folder is %s", at);
	unlink(path);
	return st;
}

static void faults(blk_status (*live_once)(const char *), const char *device, bool forever, bool warm)
{
	for (long at = 1;; at++) {
		fake_reset();
		if (!warm) empty_cache();
		faulty.calls = 0;
		faulty.fail_at = at;
		faulty.forever = forever;
		blk_error(); /* the thread's own text is made before counting */
		error_set(BLK_ERROR_ARGUMENT, "%300s", "room for what comes");
		note_clear();
		note_add("%300s", "room for what comes");
		note_clear();
		blk_cache_folder(); /* the thread keeps it */
		long live = faulty.live;
		faulty.armed = true;
		blk_status st = live_once(device);
		faulty.armed = false;
		bool hit = faulty.calls >= at;
		if (faulty.live > live)
			fail_msg("%s: allocation %ld failing %s leaks %ld", device, at,
				forever ? "and all after it" : "alone", faulty.live - live);
		if (fake_leak()) fail_msg("%s: allocation %ld failing leaves %s", device, at, fake_leak());
		if (st != BLK_OK && st != BLK_ERROR_MEMORY && st != BLK_ERROR_IO)
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
	if (!FAULTY_MALLOC) skip();
	static const char *const devices[] = {"cuda", "cpu"};
	for (int d = 0; d < 2; d++)
		for (int forever = 0; forever < 2; forever++) {
			setenv("BLK_CACHE", "off", 1);
			faults(life, devices[d], forever, false);
			unsetenv("BLK_CACHE");
			faults(life, devices[d], forever, false);
			assert_int_equal(life(devices[d]), BLK_OK); /* whatever was left in the cache */
			faults(life, devices[d], forever, true);
		}
}

static void test_maps(void **state)
{
	(void)state;
	if (!FAULTY_MALLOC) skip();
	setenv("BLK_CACHE", "off", 1);
	for (int forever = 0; forever < 2; forever++) faults(life_of_maps, "cuda", forever, false);
	unsetenv("BLK_CACHE");
}

static void test_records(void **state)
{
	(void)state;
	if (!FAULTY_MALLOC) skip();
	empty_cache();
	fake_reset();
	assert_int_equal(life("cuda"), BLK_OK);
	for (int forever = 0; forever < 2; forever++) faults(life_of_records, "cuda", forever, true);
	int entries = 0;
	uint64_t removed;
	assert_int_equal(blk_cache_list(count_entry, &entries), BLK_OK);
	assert_true(entries > 5); /* none was taken for damaged, and lost */
	assert_int_equal(blk_cache_clear(&removed), BLK_OK);
	assert_int_equal(removed, entries);
}

/* Messages in a process that has used up what threads can keep: the error is there, a note is lost, no call fails.
 * `keys`: so many are left out; the memory of the first after them fails. */
static int without_keys(int keys)
{
	pthread_key_t key;
	for (int i = 0; i < keys && pthread_key_create(&key, NULL) == 0; i++) {}
	faulty.calls = 0;
	faulty.fail_at = keys < 100 ? 2 : 0; /* the second is the thread's own table of keys */
	faulty.forever = false;
	faulty.armed = true;
	blk_status s = blk_device_sync(NULL);
	faulty.armed = false;
	if (s != BLK_ERROR_ARGUMENT || strcmp(blk_error(), "the device is null") != 0) return 1;
	if (keys < 100) return 0;
	note_add("a note");
	note_clear();
	if (blk_note()[0]) return 2;
	if (error_take()) return 3;
	error_give(strdup("another"));
	if (blk_cache_folder()) return 4;
	error_set(BLK_ERROR_INTERNAL, "%300s", "a long sentence");
	return strlen(blk_error()) > 200 && strlen(blk_error()) < 300 ? 0 : 5; /* its beginning */
}
static void test_no_keys(void **state)
{
	(void)state;
	if (!FAULTY_MALLOC) skip();
	static const int keys[] = {40, 100000};
	for (int i = 0; i < 2; i++) {
		int status;
		fflush(NULL);
		pid_t pid = fork();
		if (pid == 0) _exit(without_keys(keys[i]));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

/* A package is written whole or not at all. */
static void test_packing(void **state)
{
	(void)state;
	if (!FAULTY_MALLOC) skip();
	package_entry e[] = {{"add", "", "sm_80", FAKE_ADD, 0, PACKAGE_PTX, "plain", 6, 0}};
	const package p = {.producer = "a test", .entries = e, .nentries = 1};
	void *bytes = NULL;
	faulty.forever = false;
	for (faulty.fail_at = 1; !bytes; faulty.fail_at++) {
		const char *why = "nothing";
		size_t n = 0;
		long live = faulty.live;
		faulty.calls = 0;
		faulty.armed = true;
		bytes = package_encode(&p, &n, &why);
		faulty.armed = false;
		assert_null(why); /* it is not the package's fault */
		assert_int_equal(faulty.live - live, bytes != NULL);
		assert_int_equal(n != 0, bytes != NULL);
	}
	assert_int_equal(faulty.fail_at, 6); /* four, and then the fifth was none */
	free(bytes);
}

/* A thread whose first message finds no memory: it is there all the same. */
static void *first_error(void *said)
{
	faulty.calls = 0;
	faulty.armed = true;
	blk_device_sync(NULL);
	note_add("a note");
	faulty.armed = false;
	snprintf(said, 64, "%s", blk_error());
	error_give(error_take());
	note_clear();
	if (!blk_note()[0]) return NULL;
	return said;
}
static void test_first_messages(void **state)
{
	(void)state;
	if (!FAULTY_MALLOC) skip();
	for (int forever = 0; forever < 2; forever++)
		for (long at = 1; at <= 4; at++) {
			pthread_t t;
			char said[64];
			void *left;
			faulty.fail_at = at;
			faulty.forever = forever;
			long live = faulty.live;
			assert_int_equal(pthread_create(&t, NULL, first_error, said), 0);
			assert_int_equal(pthread_join(t, &left), 0);
			assert_string_equal(said, "the device is null");
			assert_null(left);
			assert_true(faulty.live <= live + 1); /* the thread's own stack may be kept */
		}
	faulty.fail_at = 0;
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
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_keys), /* first: nothing was said yet */
		cmocka_unit_test(test_every_allocation), cmocka_unit_test(test_maps), cmocka_unit_test(test_records),
		cmocka_unit_test(test_packing), cmocka_unit_test(test_first_messages)};
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
