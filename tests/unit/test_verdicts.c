/* What trials on the cpu device make of configurations whose results differ, by the type of the results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/blk.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_types, setup, teardown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
