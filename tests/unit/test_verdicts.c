/* What trials on the cpu device make of configurations whose results differ, by the type of the results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/blk.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static blk_device *device;

static int setup(void **state)
{
	(void)state;
	setenv("BLK_CACHE", "off", 1);
	return blk_device_open("cpu", &device);
}

static int teardown(void **state)
{
	(void)state;
	blk_device_close(device);
	return 0;
}

typedef struct answer {
	blk_tune_verdict verdict; /* of the second configuration */
	char reason[256];
} answer;

static int note(void *context, const blk_tune_trial *t)
{
	answer *a = context;
	if (strcmp(t->configuration, "B=64") != 0) return 0;
	a->verdict = t->verdict;
	snprintf(a->reason, sizeof a->reason, "%s", t->reason);
	return 0;
}

/* Each configuration stores `value`, in which B is 32 or 64, to 64 elements of `type`. */
static answer try(const char *type, const char *value, const char *clause)
{
	char text[1024];
	answer a = {.verdict = BLK_TUNE_UNKNOWN};
	blk_tune_options o = {.visit = note, .context = &a};
	blk_module *m;
	blk_kernel *k;
	blk_buffer *y;
	snprintf(text, sizeof text,
		"kernel fill(y: *%s, n: i32, const B: i32 = 32) grid(cdiv(n, B)) {\n"
		"  let i = program_id(0) * B + arange(0, B);\n  store(y + i, full([B], %s, %s), mask = i < n);\n}\n"
		"autotune fill key(n) { B: [32, 64]; %s }\n",
		type, value, type, clause);
	if (blk_module_source(device, "fill.blk", text, NULL, 0, &m)) fail_msg("%s: %s", text, blk_error());
	assert_int_equal(blk_kernel_find(m, "fill", &k), BLK_OK);
	assert_int_equal(blk_buffer_create(device, 64 * 8, &y), BLK_OK);
	assert_int_equal(blk_buffer_fill(y, 0, 0, 64 * 8), BLK_OK);
	assert_int_equal(blk_kernel_tune(k, NULL, BLK_ARGS(blk_buf(y), blk_i32(64)), &o, NULL), BLK_OK);
	blk_buffer_free(y);
	blk_module_close(m);
	return a;
}

static void test_types(void **state)
{
	(void)state;
	static const struct {
		const char *type, *value, *clause;
		blk_tune_verdict verdict;
	} rows[] = {
		{"i64", "(1.to(i64) << 60) + 7", "", BLK_TUNE_GOOD},
		{"i64", "(1.to(i64) << 60) + B", "", BLK_TUNE_WRONG}, /* doubles there lie 256 apart */
		{"i64", "(B - 48).to(i64) << 58", "", BLK_TUNE_WRONG},
		{"i64", "-(1.to(i64) << 62) - B", "", BLK_TUNE_WRONG},
		{"u64", "(1.to(u64) << 63) + B", "", BLK_TUNE_WRONG},
		{"i64", "(1.to(i64) << 60) + B", "tolerance 1e-9;", BLK_TUNE_GOOD},
		{"i64", "(1.to(i64) << 60) + B", "tolerance 0;", BLK_TUNE_WRONG},
		{"i32", "2147483000 + B", "", BLK_TUNE_WRONG},
		{"i8", "(B - 34).to(i8)", "tolerance 15.9;", BLK_TUNE_WRONG}, /* -2 and 30: 16 times as far as large */
		{"i8", "(B - 34).to(i8)", "tolerance 16.1;", BLK_TUNE_GOOD},
		{"bool", "B == 32", "", BLK_TUNE_WRONG},
		{"f64", "4503599627370496.0 + B.to(f64)", "", BLK_TUNE_GOOD},
		{"f64", "1.0 / (B - B).to(f64) - 1.0 / (B - B).to(f64)", "", BLK_TUNE_GOOD},
		{"f32", "1.0 / (B - 32).to(f32)", "", BLK_TUNE_WRONG},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		answer a = try(rows[i].type, rows[i].value, rows[i].clause);
		if (a.verdict != rows[i].verdict)
			fail_msg("%s %s %s: verdict %d %s", rows[i].type, rows[i].value, rows[i].clause, (int)a.verdict,
				a.reason);
	}
}

/* ---- bare pointers ---- */

/* Into one buffer, y to the beginning and z 64 elements behind it; both were 1 - 5e-5. */
static answer try_both(const char *stores)
{
	char text[1024];
	answer a = {.verdict = BLK_TUNE_UNKNOWN};
	blk_tune_options o = {.visit = note, .context = &a};
	blk_module *m;
	blk_kernel *k;
	blk_buffer *both;
	float before[128];
	for (int i = 0; i < 128; i++) before[i] = 1 - 5e-5F;
	snprintf(text, sizeof text,
		"kernel two(y: *f32, z: *f32, n: i32, const B: i32 = 32) grid(cdiv(n, B)) {\n"
		"  let i = program_id(0) * B + arange(0, B);\n%s}\nautotune two key(n) { B: [32, 64]; }\n",
		stores);
	if (blk_module_source(device, "two.blk", text, NULL, 0, &m)) fail_msg("%s: %s", text, blk_error());
	assert_int_equal(blk_kernel_find(m, "two", &k), BLK_OK);
	assert_int_equal(blk_buffer_create(device, sizeof before, &both), BLK_OK);
	assert_int_equal(blk_buffer_write(both, 0, before, sizeof before), BLK_OK);
	char *at = blk_buffer_pointer(both);
	assert_int_equal(
		blk_kernel_tune(k, NULL, BLK_ARGS(blk_ptr(at), blk_ptr(at + 256), blk_i32(64)), &o, NULL), BLK_OK);
	blk_buffer_free(both);
	blk_module_close(m);
	return a;
}

/* The norm is over what one of both runs has changed, of that parameter's part alone. */
static void test_parts(void **state)
{
	(void)state;
	static const struct {
		const char *stores;
		blk_tune_verdict verdict;
		const char *says;
	} rows[] = {
		/* z is 2 and 3; what y holds, a million, is not z's */
		{"  store(y + i, full([B], 1e6, f32), mask = i < n);\n  store(z + i, full([B], (B / 32 + 1).to(f32), "
		 "f32), mask = "
		 "i < n);\n",
			BLK_TUNE_WRONG, "z differs"},
		{"  store(y + i, full([B], (B / 32 + 1).to(f32), f32), mask = i < n);\n  store(z + i, full([B], 1e6, "
		 "f32), mask = "
		 "i < n);\n",
			BLK_TUNE_WRONG, "y differs"},
		/* 63 of 64 elements differ by 5e-5, of a norm of 8: 5e-5 in all, where 1e-4 are allowed */
		{"  store(y + i, full([B], 1.0, f32), mask = i < n - (B - 32) / 32 * 63);\n", BLK_TUNE_GOOD, ""},
		{"  store(y + i, full([B], 1.0, f32), mask = i < 1 + (B - 32) / 32 * 63);\n", BLK_TUNE_GOOD, ""},
		{"  store(y + i, full([B], 1.0002, f32), mask = i < n - (B - 32) / 32 * 63);\n", BLK_TUNE_WRONG,
			"y differs"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		answer a = try_both(rows[i].stores);
		if (a.verdict != rows[i].verdict || !strstr(a.reason, rows[i].says))
			fail_msg("row %zu: verdict %d %s", i, (int)a.verdict, a.reason);
	}
}

/* ---- asserts of others ---- */

/* Launches, from another thread, a kernel whose assert fails: while trials are made, each time that one gets on. */
static blk_kernel *bad;
static int launched;
static void *launch_bad(void *unused)
{
	(void)unused;
	return blk_launch(bad, NULL, NULL, BLK_ARGS(blk_i32(1))) ? &launched : NULL;
}
static void fail_beside(void *context, uint32_t done, uint32_t total, double best_ms)
{
	(void)context, (void)done, (void)total, (void)best_ms;
	pthread_t other;
	void *failed;
	launched++;
	assert_int_equal(pthread_create(&other, NULL, launch_bad, NULL), 0);
	assert_int_equal(pthread_join(other, &failed), 0);
	assert_null(failed); /* told to who waits for it */
}

/* Tunes on that device, with statements in which `old` says how many programs ran before this one. */
static void tune_beside(const char *name, const char *asserts, blk_tune_progress progress, answer *a)
{
	char text[1024];
	blk_tune_options o = {.visit = note, .progress = progress, .context = a};
	blk_module *m;
	blk_kernel *k;
	blk_buffer *y, *x;
	assert_int_equal(blk_device_open(name, &device), BLK_OK);
	snprintf(text, sizeof text,
		"kernel bad(n: i32) grid(1) { device_assert(n == 0, \"of another thread\"); }\n"
		"kernel fill(y: *i32, x: *i32, n: i32, const B: i32 = 32) grid(cdiv(n, B)) {\n"
		"  let i = program_id(0) * B + arange(0, B);\n  let old = atomic_add(x, 1);\n%s"
		"  store(y + i, full([B], 7, i32), mask = i < n);\n}\n"
		"autotune fill key(n) { B: [32, 64]; scratch x; }\n",
		asserts);
	if (blk_module_source(device, "fill.blk", text, NULL, 0, &m)) fail_msg("%s: %s", text, blk_error());
	assert_int_equal(blk_kernel_find(m, "fill", &k), BLK_OK);
	assert_int_equal(blk_kernel_find(m, "bad", &bad), BLK_OK);
	assert_int_equal(blk_buffer_create(device, 64 * 4, &y), BLK_OK);
	assert_int_equal(blk_buffer_create(device, 4, &x), BLK_OK);
	assert_int_equal(blk_buffer_fill(x, 0, 0, 4), BLK_OK);
	launched = 0;
	if (blk_kernel_tune(k, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i32(64)), &o, NULL))
		fail_msg("%s", blk_error());
	assert_int_equal(launched > 2, progress != NULL);
}

static const char *const devices[] = {"cpu", "sim"};

/* They are told to the next call that waits, and blamed on no configuration. */
static void test_asserts_of_others(void **state)
{
	(void)state;
	setenv("BLK_CACHE", "off", 1);
	for (int i = 0; i < 2; i++) {
		answer a = {.verdict = BLK_TUNE_UNKNOWN};
		tune_beside(devices[i], "", fail_beside, &a);
		if (a.verdict != BLK_TUNE_GOOD) fail_msg("%s: verdict %d %s", devices[i], (int)a.verdict, a.reason);
		assert_int_equal(blk_device_sync(device), BLK_ERROR_ASSERT);
		assert_non_null(strstr(blk_error(), "of another thread"));
		assert_int_equal(blk_device_sync(device), BLK_OK);
		blk_device_close(device);
	}
}

/* Its own are: of the run that is looked at, and of those that are timed; and they are told to nobody else. */
static void test_own_asserts(void **state)
{
	(void)state;
	setenv("BLK_CACHE", "off", 1);
	static const char *const rows[] = {
		"  device_assert(B == 32, \"its own\");\n", "  device_assert(B == 32 || old < 5, \"its own\");\n"};
	for (int i = 0; i < 4; i++) {
		answer a = {.verdict = BLK_TUNE_UNKNOWN};
		tune_beside(devices[i / 2], rows[i % 2], NULL, &a);
		if (a.verdict != BLK_TUNE_FAILED) fail_msg("%s %d: verdict %d", devices[i / 2], i % 2, (int)a.verdict);
		assert_non_null(strstr(a.reason, "its own"));
		assert_int_equal(blk_device_sync(device), BLK_OK);
		blk_device_close(device);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_types, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parts, setup, teardown), cmocka_unit_test(test_asserts_of_others),
		cmocka_unit_test(test_own_asserts)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
