/* Many threads on one device, and each with one of its own: launches, compiles, tuning, buffers, errors and the cache
 * at once.  The numbers are checked here; what ThreadSanitizer adds (make test-threads) is that no access races. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "blk.h"

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { THREADS = 6, ROUNDS = 5, MOST = 700 };

static char folder[64];

static const char source[] =
	"kernel scale(y: *f32, x: *const f32, n: i32, s: f32, const B: i32 = 64) grid(cdiv(n, B)) {\n"
	"  let i = program_id(0) * B + arange(0, B);\n"
	"  store(y + i, s * load(x + i, mask = i < n), mask = i < n);\n"
	"}\n"
	"kernel count(c: *i32) grid(32) { atomic_add(c, 1); }\n";
static const char tuned[] = "kernel fill(y: *f32, n: i32, const B: i32 = 64) grid(cdiv(n, B)) {\n"
			    "  let i = program_id(0) * B + arange(0, B); store(y + i, 3.0, mask = i < n);\n"
			    "}\n"
			    "autotune fill key(n) { B: [64, 128]; }\n";

typedef struct task {
	blk_device *device; /* null: one of its own */
	const char *name;
	blk_module *module;
	blk_kernel *scale, *count, *fill;
	blk_buffer *counter; /* shared */
	int number;
	const char *wrong; /* what went wrong; threads do not assert */
} task;

#define CHECK(condition)                                                                                               \
	do                                                                                                             \
		if (!(condition)) return t->wrong = #condition, false;                                                 \
	while (0)

/* n of many kinds, so that threads ask for the same variants and for different ones. */
static bool scale_once(task *t, int round)
{
	static const int sizes[] = {1, 16, 33, 512, 700, 64};
	int n = sizes[(t->number + round) % 6];
	float in[MOST], out[MOST + 1], s = (float)(t->number + 2);
	blk_buffer *x, *y;
	for (int i = 0; i < n; i++) in[i] = (float)(i + round);
	for (int i = 0; i <= MOST; i++) out[i] = -7;
	CHECK(!blk_buffer_create(t->device, sizeof in, &x) && !blk_buffer_create(t->device, sizeof out, &y));
	CHECK(!blk_buffer_write(x, 0, in, (size_t)n * 4) && !blk_buffer_write(y, 0, out, sizeof out));
	CHECK(!blk_launch(t->scale, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i32(n), blk_f32(s))));
	CHECK(!blk_buffer_read(y, 0, out, sizeof out));
	for (int i = 0; i < n; i++) CHECK(out[i] == s * in[i]);
	CHECK(out[n] == -7);
	CHECK(!blk_launch(t->fill, NULL, NULL, BLK_ARGS(blk_buf(y), blk_i32(n))));
	CHECK(!blk_buffer_read(y, 0, out, sizeof out));
	CHECK(out[0] == 3 && out[n - 1] == 3 && out[n] == -7);
	blk_buffer_free(x);
	blk_buffer_free(y);
	return true;
}

/* A thread's sentence is its own. */
static bool fail_once(task *t)
{
	char name[32];
	blk_kernel *k;
	snprintf(name, sizeof name, "nothing%d", t->number);
	CHECK(blk_kernel_find(t->module, name, &k) == BLK_ERROR_NOT_FOUND);
	CHECK(strstr(blk_error(), name));
	return true;
}

static bool open_kernels(task *t)
{
	blk_module *m;
	CHECK(!blk_module_source(t->device, "scale.blk", source, NULL, 0, &t->module));
	CHECK(!blk_kernel_find(t->module, "scale", &t->scale) && !blk_kernel_find(t->module, "count", &t->count));
	CHECK(!blk_module_source(t->device, "fill.blk", tuned, NULL, 0, &m) && !blk_kernel_find(m, "fill", &t->fill));
	return true;
}

static bool work(task *t)
{
	bool own = !t->device;
	if (own) {
		CHECK(!blk_device_open(t->name, &t->device));
		CHECK(open_kernels(t));
	}
	for (int round = 0; round < ROUNDS; round++) {
		if (!scale_once(t, round) || !fail_once(t)) return false;
		if (t->counter) CHECK(!blk_launch(t->count, NULL, NULL, BLK_ARGS(blk_buf(t->counter))));
	}
	if (own) blk_device_close(t->device);
	return true;
}
static void *run(void *context)
{
	task *t = context;
	if (!work(t)) fprintf(stderr, "thread %d: %s: %s\n", t->number, t->wrong, blk_error());
	return NULL;
}

static void all_at_once(const task *common)
{
	task tasks[THREADS];
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++) {
		tasks[i] = *common;
		tasks[i].number = i;
		assert_int_equal(pthread_create(&threads[i], NULL, run, &tasks[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++) assert_null(tasks[i].wrong);
}

static void on_one_device(const char *name)
{
	task t = {.name = name};
	int32_t n = 0;
	assert_int_equal(blk_device_open(name, &t.device), BLK_OK);
	assert_true(open_kernels(&t));
	assert_int_equal(blk_buffer_create(t.device, 4, &t.counter), BLK_OK);
	assert_int_equal(blk_buffer_write(t.counter, 0, &n, 4), BLK_OK);
	all_at_once(&t);
	assert_int_equal(blk_buffer_read(t.counter, 0, &n, 4), BLK_OK);
	assert_int_equal(n, 32 * THREADS * ROUNDS); /* no launch's atomic is lost in another's */
	blk_device_close(t.device);
}

static void empty(const char *path)
{
	char inner[600];
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		if (e->d_name[0] == '.') continue;
		snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
		if (unlink(inner) != 0) {
			empty(inner);
			rmdir(inner);
		}
	}
	if (d) closedir(d);
}
static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/blk_threads_XXXXXX");
	if (!mkdtemp(folder)) return -1;
	setenv("BLK_CACHE_DIR", folder, 1);
	setenv("BLK_TUNE", "auto", 1);
	setenv("BLK_CPU_THREADS", "4", 1);
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	empty(folder);
	return rmdir(folder);
}

static void test_one_cpu_device(void **state)
{
	(void)state;
	on_one_device("cpu");
	on_one_device("cpu"); /* from the cache */
}
static void test_one_simulator(void **state)
{
	(void)state;
	on_one_device("sim");
	on_one_device("sim:sm_90a");
}
static void test_devices_of_their_own(void **state)
{
	(void)state;
	all_at_once(&(task){.name = "cpu"});
	all_at_once(&(task){.name = "sim"});
}

/* ---- Whose store it was ---- */

static const char stores[] = "kernel past(y: *f32, n: i32) grid(1) {\n"
			     "  let i = arange(0, 128); store(y + i, 1.0, mask = i < n);\n"
			     "}\n"
			     "kernel inside(y: *f32, n: i32) grid(1) {\n"
			     "  let i = arange(0, 128); store(y + i, 2.0, mask = i < n);\n"
			     "}\n";

enum { STORES = 3000, LENGTH = 100 };

typedef struct storing {
	blk_kernel *kernel;
	blk_buffer *y;
	int n;
	blk_status wanted;
	int others;     /* launches that ended in another way */
	char said[256]; /* the first of these */
} storing;

static void *store_often(void *context)
{
	storing *s = context;
	for (int i = 0; i < STORES; i++) {
		blk_status status = blk_launch(s->kernel, NULL, NULL, BLK_ARGS(blk_buf(s->y), blk_i32(s->n)));
		if (status == s->wanted) continue;
		if (s->others++ == 0) snprintf(s->said, sizeof s->said, "%s", status ? blk_error() : "no error");
	}
	return NULL;
}

/* One kernel writes behind the buffer that the other one fills: its launches alone are told so, each time. */
static void test_blame(void **state)
{
	(void)state;
	blk_device *d;
	blk_module *m;
	pthread_t threads[THREADS];
	storing s[THREADS];
	blk_buffer *y;
	assert_int_equal(blk_device_open("cpu:guarded", &d), BLK_OK);
	assert_int_equal(blk_module_source(d, "stores.blk", stores, NULL, 0, &m), BLK_OK);
	assert_int_equal(blk_buffer_create(d, LENGTH * 4, &y), BLK_OK);
	for (int i = 0; i < THREADS; i++) {
		bool past = i % 2;
		s[i] = (storing){.y = y, .n = LENGTH + past, .wanted = past ? BLK_ERROR_KERNEL : BLK_OK};
		assert_int_equal(blk_kernel_find(m, past ? "past" : "inside", &s[i].kernel), BLK_OK);
	}
	for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, store_often, &s[i]), 0);
	for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++)
		if (s[i].others) fail_msg("%s: %d times %s", i % 2 ? "past" : "inside", s[i].others, s[i].said);
	blk_device_close(d);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_one_cpu_device), T(test_blame), T(test_one_simulator), T(test_devices_of_their_own)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
