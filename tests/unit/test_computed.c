/* Const parameters that launches compute: values, bounds, how often code is made, tuning, threads, and memory that runs
 * out; on the cpu device and the simulator, with results from plain C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "faulty_malloc.h"

#include "runtime/internal.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- the compiler, which counts ---- */

static atomic_uint checks, codes;

static blkc_result *counted(const blkc_request *r)
{
	atomic_fetch_add(r->emit == BLKC_EMIT_CHECK ? &checks : &codes, 1);
	return blkc_compile(r);
}

static const compiler_api linked = {counted, blkc_result_free, blkc_version};
static const device_seams seams = {.compiler = &linked};

#define OK(call) check_ok((call), #call, __LINE__)
static void check_ok(blk_status s, const char *what, int line)
{
	if (s != BLK_OK) fail_msg("line %d: %s: %s (%s)", line, what, blk_error(), blk_status_text(s));
}

#define FAILS(status, text, call) check_fails(status, text, (call), __LINE__)
static void check_fails(blk_status wanted, const char *text, blk_status s, int line)
{
	if (s != wanted) fail_msg("line %d: status %d: %s", line, s, s ? blk_error() : "");
	if (!strstr(blk_error(), text)) fail_msg("line %d: no '%s' in: %s", line, text, blk_error());
}

static int setup(void **state)
{
	(void)state;
	unsetenv("BLK_CPU");
	unsetenv("BLK_TUNE");
	setenv("BLK_CACHE", "off", 1);
	return 0;
}

static blk_device *open_device(const char *name)
{
	blk_device *d = NULL;
	OK(device_open_with(name, &seams, &d));
	checks = codes = 0;
	return d;
}

static blk_kernel *make(blk_device *d, const char *source, const blk_define *defines, size_t n)
{
	blk_module *m;
	blk_kernel *k;
	OK(blk_module_source(d, "k.blk", source, defines, n, &m));
	OK(blk_kernel_find(m, NULL, &k));
	return k;
}

static const char *const devices[] = {"cpu", "cpu:checked", "sim:sm_80", "sim:sm_90a"};
enum { DEVICES = sizeof devices / sizeof *devices };

/* Row r of y is that of x, reversed, times BLOCK, and a mark of what the launch computed. */
static const char rows[] =
	"fn block_for(n) { let p = next_pow2(n); return max(16, p); }\n"
	"kernel rows(y: *i32, x: *const i32, m: i32, n: i32, const BLOCK: i32 = block_for(n) in 16..256,\n"
	"    const HALF: i64 = BLOCK / 2, const EVEN: bool = n % BLOCK == 0, const SMS: u32 = num_sms)\n"
	"    grid(BLOCK > 64 ? m : cdiv(m, 2))\n"
	"    options(num_warps = BLOCK >= 128 ? 2 : 1)\n"
	"{\n"
	"    for i in static_range(BLOCK > 64 ? 1 : 2) {\n"
	"        let row = BLOCK > 64 ? program_id(0) : program_id(0) * 2 + i;\n"
	"        if row < m {\n"
	"            let j = arange(0, BLOCK);\n"
	"            let inside = j < n;\n"
	"            store(y + row * n + (n - 1 - j), load(x + row * n + j, mask = inside) * BLOCK + (EVEN ? 1 : 0), "
	"mask = inside);\n"
	"        }\n"
	"    }\n"
	"    if program_id(0) == 0 { store(y + m * n, HALF.to(i32)); store(y + m * n + 1, SMS.to(i32)); }\n"
	"}\n";

static int block_of(int n)
{
	int p = 1;
	while (p < n) p *= 2;
	return p < 16 ? 16 : p;
}

static void check_rows(blk_device *d, blk_kernel *k, int m, int n, int block)
{
	size_t all = (size_t)m * (size_t)n;
	int32_t *x = malloc((all + 3) * 4), *y = malloc((all + 3) * 4);
	blk_buffer *bx, *by;
	blk_device_info info;
	assert_true(x && y);
	for (size_t i = 0; i < all + 3; i++) x[i] = (int32_t)(i * 7 % 1009), y[i] = -5;
	OK(blk_device_query(d, &info));
	OK(blk_buffer_create(d, all * 4, &bx));
	OK(blk_buffer_create(d, (all + 3) * 4, &by));
	OK(blk_buffer_write(bx, 0, x, all * 4));
	OK(blk_buffer_write(by, 0, y, (all + 3) * 4));
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(by), blk_buf(bx), blk_i32(m), blk_i32(n))));
	OK(blk_buffer_read(by, 0, y, (all + 3) * 4));
	for (int r = 0; r < m; r++)
		for (int j = 0; j < n; j++)
			assert_int_equal(y[r * n + n - 1 - j], x[r * n + j] * block + (n % block == 0));
	assert_int_equal(y[all], block / 2);
	assert_int_equal(y[all + 1], info.num_sms);
	assert_int_equal(y[all + 2], -5);
	blk_buffer_free(bx);
	blk_buffer_free(by);
	free(x);
	free(y);
}

static void values(void **state)
{
	(void)state;
	static const int sizes[] = {16, 1, 17, 33, 64, 65, 255, 256, 3};
	for (int i = 0; i < DEVICES; i++) {
		blk_device *d = open_device(devices[i]);
		blk_kernel *k = make(d, rows, NULL, 0);
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
			check_rows(d, k, 5, sizes[s], block_of(sizes[s]));
		blk_device_close(d);
	}
}

/* Values are compiled once each: again only for other promises. */
static void compiled_once(void **state)
{
	(void)state;
	blk_device *d = open_device("cpu");
	blk_kernel *k = make(d, rows, NULL, 0);
	assert_int_equal(checks, 1);
	assert_int_equal(codes, 0);
	for (int i = 0; i < 3; i++)
		for (int n = 33; n < 64; n += 2) check_rows(d, k, 3, n, 64);
	assert_int_equal(checks, 2);
	assert_int_equal(codes, 1);
	check_rows(d, k, 3, 129, 256);
	check_rows(d, k, 3, 131, 256);
	check_rows(d, k, 3, 35, 64);
	assert_int_equal(checks, 3);
	assert_int_equal(codes, 2);
	blk_device_close(d);
}

/* ---- what a launch refuses ---- */

static const char quotient[] = "kernel quotient(y: *i64, a: i32, b: i32, u: u64, const Q: i32 = a / b, const U: u8 = "
			       "a, const I: i32 = u * 2) grid(1)\n"
			       "    { store(y, Q.to(i64) + U.to(i64) + I.to(i64)); }\n";

static void refusals(void **state)
{
	(void)state;
	for (int i = 0; i < DEVICES; i++) {
		blk_device *d = open_device(devices[i]);
		blk_kernel *k = make(d, rows, NULL, 0), *q = make(d, quotient, NULL, 0);
		blk_buffer *b;
		blk_grid g;
		double bytes;
		int64_t v, got = 0;
		blk_info info;
		OK(blk_buffer_create(d, 4096, &b));
		const char *above = "kernel rows: BLOCK = block_for(n) is 512, which is not in 16..256: n = 257";
#define ROWS_ARGS(n) BLK_ARGS(blk_buf(b), blk_buf(b), blk_i32(1), blk_i32(n))
		FAILS(BLK_ERROR_ARGUMENT, above, blk_launch(k, NULL, NULL, ROWS_ARGS(257)));
		FAILS(BLK_ERROR_ARGUMENT, above, blk_kernel_grid(k, ROWS_ARGS(257), &g));
		FAILS(BLK_ERROR_ARGUMENT, above, blk_kernel_cost(k, ROWS_ARGS(257), &bytes, NULL));
		FAILS(BLK_ERROR_ARGUMENT, above, blk_kernel_info(k, ROWS_ARGS(257), &info));
		FAILS(BLK_ERROR_ARGUMENT, above, blk_kernel_tune(k, NULL, ROWS_ARGS(257), NULL, NULL));
		FAILS(BLK_ERROR_ARGUMENT, above, blk_kernel_constant(k, "BLOCK", ROWS_ARGS(257), &v));
		FAILS(BLK_ERROR_ARGUMENT, above, blk_kernel_constant(k, "HALF", ROWS_ARGS(257), &v));
		FAILS(BLK_ERROR_NOT_FOUND, "no const parameter 'NOPE'",
			blk_kernel_constant(k, "NOPE", ROWS_ARGS(7), &v));
		FAILS(BLK_ERROR_ARGUMENT, "no name", blk_kernel_constant(k, NULL, ROWS_ARGS(7), &v));
		FAILS(BLK_ERROR_ARGUMENT, "no place", blk_kernel_constant(k, "BLOCK", ROWS_ARGS(7), NULL));
		FAILS(BLK_ERROR_TYPE, "takes 4 arguments", blk_kernel_constant(k, "BLOCK", NULL, 0, &v));
#define Q_ARGS(a, c, u) BLK_ARGS(blk_buf(b), blk_i32(a), blk_i32(c), blk_u64(u))
		FAILS(BLK_ERROR_ARGUMENT, "kernel quotient: Q = a / b divides by zero: a = 1, b = 0",
			blk_launch(q, NULL, NULL, Q_ARGS(1, 0, 1)));
		FAILS(BLK_ERROR_ARGUMENT, "U = a is 256, which is no u8: a = 256",
			blk_launch(q, NULL, NULL, Q_ARGS(256, 1, 1)));
		FAILS(BLK_ERROR_ARGUMENT, "U = a is -1, which is no u8: a = -1",
			blk_launch(q, NULL, NULL, Q_ARGS(-1, 1, 1)));
		FAILS(BLK_ERROR_ARGUMENT, "I = u * 2 is 2147483648, which is no i32: u = 1073741824",
			blk_launch(q, NULL, NULL, Q_ARGS(1, 1, 1u << 30)));
		FAILS(BLK_ERROR_ARGUMENT, "I = u * 2 has an argument that i64 cannot hold",
			blk_launch(q, NULL, NULL, Q_ARGS(1, 1, UINT64_MAX)));
		assert_int_equal(codes, 0);
		OK(blk_launch(q, NULL, NULL, Q_ARGS(255, 2, (1u << 30) - 1)));
		OK(blk_buffer_read(b, 0, &got, 8));
		assert_int_equal(got, INT64_C(127) + 255 + INT32_MAX - 1);
		blk_device_close(d);
	}
}

/* What is given is not computed, and holds for every launch; what is computed from it is a constant then. */
static void given(void **state)
{
	(void)state;
	static const blk_define block[] = {{"BLOCK", "128"}}, outside[] = {{"BLOCK", "512"}};
	blk_device *d = open_device("cpu");
	blk_kernel *k = make(d, rows, block, 1);
	int64_t v;
	for (int n = 1; n <= 128; n += 21) check_rows(d, k, 3, n, 128);
	OK(blk_kernel_constant(k, "HALF", BLK_ARGS(blk_ptr(NULL), blk_ptr(NULL), blk_i32(1), blk_i32(5)), &v));
	assert_int_equal(v, 64);
	OK(blk_kernel_constant(k, "BLOCK", BLK_ARGS(blk_ptr(NULL), blk_ptr(NULL), blk_i32(1), blk_i32(5)), &v));
	assert_int_equal(v, 128);
	OK(blk_kernel_constant(k, "EVEN", BLK_ARGS(blk_ptr(NULL), blk_ptr(NULL), blk_i32(1), blk_i32(256)), &v));
	assert_int_equal(v, 1);
	k = make(d, rows, outside, 1); /* the bounds are the default's */
	for (int n = 1; n <= 512; n += 73) check_rows(d, k, 3, n, 512);
	blk_device_close(d);
}

static void types(void **state)
{
	(void)state;
	static const char wrong[] =
		"kernel wrong(x: *(B > 4 ? f32 : f16), n: i32, const B: i32 = n) grid(1) { store(x, 1.0); }\n";
	static const char typed[] =
		"kernel typed(const T: type = f32, x: *T, n: i32, const B: i32 = n, const F: f32 = 1.5) grid(1) "
		"{ store(x, F * B); }\n";
	blk_device *d = open_device("cpu");
	blk_kernel *k = make(d, wrong, NULL, 0), *t = make(d, typed, NULL, 0);
	blk_buffer *b;
	int64_t v;
	float got;
	OK(blk_buffer_create(d, 64, &b));
	FAILS(BLK_ERROR_FORMAT, "the parameters of kernel wrong depend on values",
		blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_i32(2))));
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_i32(5))));
	FAILS(BLK_ERROR_NOT_FOUND, "no integer or bool",
		blk_kernel_constant(t, "T", BLK_ARGS(blk_buf(b), blk_i32(5)), &v));
	FAILS(BLK_ERROR_NOT_FOUND, "no integer or bool",
		blk_kernel_constant(t, "F", BLK_ARGS(blk_buf(b), blk_i32(5)), &v));
	for (int n = -3; n < 4; n++) { /* an identity is one compile a value */
		OK(blk_launch(t, NULL, NULL, BLK_ARGS(blk_buf(b), blk_i32(n))));
		OK(blk_buffer_read(b, 0, &got, 4));
		assert_true(got == 1.5f * (float)n);
	}
	blk_device_close(d);
}

/* ---- the code that stands alone ---- */

static void alone(void **state)
{
	(void)state;
	blkc_request r = {
		.size = sizeof r, .name = "k.blk", .text = rows, .text_bytes = strlen(rows), .emit = BLKC_EMIT_PTX};
	blkc_result *made = blkc_compile(&r);
	blk_device *d = open_device("sim:sm_80");
	blk_module *m;
	blk_kernel *k;
	assert_non_null(made);
	assert_int_equal(made->status, 0);
	assert_non_null(strstr(made->artifacts[0].bytes, "// blk: computed BLOCK i32 16 256 "));
	OK(blk_module_source(d, "k.ptx", made->artifacts[0].bytes, NULL, 0, &m));
	OK(blk_kernel_find(m, NULL, &k));
	blk_buffer *b;
	OK(blk_buffer_create(d, 4096, &b));
	FAILS(BLK_ERROR_ARGUMENT,
		"requires BLOCK == block_for(n) (it is computed at each launch, and this code is for one value), "
		"which does not hold: n = 100, BLOCK = 256",
		blk_launch(k, NULL, NULL, ROWS_ARGS(100)));
	FAILS(BLK_ERROR_ARGUMENT, "requires SMS == num_sms", blk_launch(k, NULL, NULL, ROWS_ARGS(256)));
	blkc_result_free(made);
	blk_device_close(d);
}

/* ---- tuning ---- */

static const char tuned[] =
	"kernel tuned(y: *i32, n: i32, const BLOCK: i32 = next_pow2(n) in 16..128, const SCALE: i32 = 3) grid(cdiv(n, "
	"BLOCK))\n"
	"{ let i = program_id(0) * BLOCK + arange(0, BLOCK); store(y + i, i * SCALE + (BLOCK * 0), mask = i < n); }\n"
	"autotune tuned key(n) { config(num_warps = 2); config(num_warps = 4); config(BLOCK = 32, num_warps = 1); }\n";

static int see(void *context, const blk_tune_trial *t)
{
	char *all = context;
	size_t used = strlen(all);
	snprintf(all + used, 1000 - used, "%s:%d;", t->configuration, t->verdict);
	return 0;
}

/* A configuration's own value counts; the others take the launch's. */
static void tuning(void **state)
{
	(void)state;
	static const char *const modes[] = {"off", "first", "always"};
	for (int i = 0; i < 3; i++) {
		setenv("BLK_TUNE", modes[i], 1);
		blk_device *d = open_device("cpu");
		blk_kernel *k = make(d, tuned, NULL, 0);
		blk_buffer *b;
		int32_t got[128];
		OK(blk_buffer_create(d, 128 * 4, &b));
		for (int n = 9; n <= 128; n += 17) {
			memset(got, 0xff, sizeof got);
			OK(blk_buffer_write(b, 0, got, sizeof got));
			OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_i32(n))));
			OK(blk_buffer_read(b, 0, got, sizeof got));
			for (int j = 0; j < 128; j++) assert_int_equal(got[j], j < n ? 3 * j : -1);
		}
		char seen[1000] = "";
		blk_tune_options o = {.visit = see, .context = seen};
		OK(blk_kernel_tune(k, NULL, BLK_ARGS(blk_buf(b), blk_i32(100)), &o, NULL));
		assert_string_equal(seen, "num_warps=2:1;num_warps=4:1;BLOCK=32,num_warps=1:1;");
		FAILS(BLK_ERROR_ARGUMENT, "is 256, which is not in 16..128",
			blk_kernel_tune(k, NULL, BLK_ARGS(blk_buf(b), blk_i32(129)), &o, NULL));
		blk_device_close(d);
	}
	unsetenv("BLK_TUNE");
}

/* ---- threads ---- */

enum { THREADS = 8 };

typedef struct task {
	blk_kernel *kernel;
	blk_buffer *buffer;
	pthread_barrier_t *start;
	blk_status status;
} task;

static void *first_launch(void *context)
{
	task *t = context;
	pthread_barrier_wait(t->start);
	t->status = blk_launch(t->kernel, NULL, NULL, BLK_ARGS(blk_buf(t->buffer), blk_i32(77)));
	return NULL;
}

static void together(void **state)
{
	(void)state;
	static const char source[] = "kernel fill(y: *i32, n: i32, const B: i32 = next_pow2(n)) grid(1)\n"
				     "{ let i = arange(0, B); store(y + i, i + B, mask = i < n); }\n";
	blk_device *d = open_device("cpu");
	blk_kernel *k = make(d, source, NULL, 0);
	pthread_barrier_t start;
	pthread_t threads[THREADS];
	task tasks[THREADS];
	pthread_barrier_init(&start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++) {
		tasks[i] = (task){.kernel = k, .start = &start};
		OK(blk_buffer_create(d, 77 * 4, &tasks[i].buffer));
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, first_launch, &tasks[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		int32_t got[77];
		pthread_join(threads[i], NULL);
		OK(tasks[i].status);
		OK(blk_buffer_read(tasks[i].buffer, 0, got, sizeof got));
		for (int j = 0; j < 77; j++) assert_int_equal(got[j], j + 128);
	}
	assert_int_equal(checks, 2);
	assert_int_equal(codes, 1);
	pthread_barrier_destroy(&start);
	blk_device_close(d);
}

/* ---- the cache on disk ---- */

static void remove_folder(const char *folder)
{
	char command[200];
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	assert_int_equal(system(command), 0);
}

static void on_disk(void **state)
{
	(void)state;
	char folder[] = "/tmp/blk-computed-XXXXXX";
	assert_non_null(mkdtemp(folder));
	unsetenv("BLK_CACHE");
	setenv("BLK_CACHE_DIR", folder, 1);
	for (int i = 0; i < 2; i++) {
		blk_device *d = open_device("cpu");
		if (!d->compiler.identity) d->compiler.identity = 7; /* the compiler is linked in: of no file */
		blk_kernel *k = make(d, rows, NULL, 0);
		check_rows(d, k, 3, 33, 64);
		check_rows(d, k, 3, 129, 256);
		assert_int_equal(checks, i ? 0 : 3);
		assert_int_equal(codes, i ? 0 : 2);
		blk_device_close(d);
	}
	setenv("BLK_CACHE", "off", 1);
	unsetenv("BLK_CACHE_DIR");
	remove_folder(folder);
}

/* ---- memory ---- */

/* Whatever allocation fails, the launch fails or is right, and the next one is right. */
static void out_of_memory(void **state)
{
	(void)state;
	if (!FAULTY_MALLOC) return;
	static const char source[] = "kernel one(y: *i32, n: i32, const B: i32 = n) grid(1) { store(y, B); }\n";
	blk_device *d = open_device("cpu");
	blk_kernel *k = make(d, source, NULL, 0);
	blk_buffer *b;
	OK(blk_buffer_create(d, 4, &b));
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_i32(0))));
	unsigned failed = 0;
	for (int at = 1, hit = 1; hit && at < 4000; at += at < 60 ? 1 : 37) {
		int32_t got = -1;
		faulty.calls = 0;
		faulty.fail_at = at;
		faulty.armed = true;
		blk_status s = blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_i32(at)));
		faulty.armed = false;
		hit = faulty.calls >= at;
		failed += s != BLK_OK;
		if (s) OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_i32(at))));
		OK(blk_buffer_read(b, 0, &got, 4));
		assert_int_equal(got, at);
	}
	assert_true(failed > 5);
	blk_device_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(compiled_once),
		cmocka_unit_test(refusals),
		cmocka_unit_test(given),
		cmocka_unit_test(types),
		cmocka_unit_test(alone),
		cmocka_unit_test(tuning),
		cmocka_unit_test(together),
		cmocka_unit_test(on_disk),
		cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
