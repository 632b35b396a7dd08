/* blkrun's lists of sizes: what each point's command line is, and that none is made where memory ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/run/run.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static int full; /* 1: no stream; 2: a stream of which the first write fails and nothing after it; 3: its end fails */

/* In the place of libc's. */
FILE *open_memstream(char **text, size_t *n)
{
	typedef FILE *opens(char **, size_t *);
	opens *real = (opens *)dlsym(RTLD_NEXT, "open_memstream");
	if (!full) return real(text, n);
	FILE *f = full == 1 ? NULL : fopen("/dev/full", "w");
	if (f) *text = strdup("f32[1]:randn"); /* what came before the failure */
	if (f && full == 2) setvbuf(f, NULL, _IONBF, 0);
	return f;
}

static options add = {.values = {{"n", "3..12"}, {"x", "f32[n,M]:randn"}, {"y", "@[n].npy"}},
	.nvalues = 3,
	.defines = {{"M", "7,8,9"}},
	.ndefines = 1};

static void test_points(void **state)
{
	(void)state;
	sweep s;
	sweep_point p;
	static const char *const n[] = {"3", "6", "12"}, *const x[] = {
								 "f32[3,7]:randn", "f32[6,8]:randn", "f32[12,9]:randn"};
	assert_int_equal(sweep_open(&add, &s), 0);
	assert_int_equal(s.n, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(sweep_at(&s, i, &p), 0);
		assert_string_equal(p.options.values[0].text, n[i]);
		assert_string_equal(p.options.values[1].text, x[i]);
		assert_string_equal(p.options.values[2].text, "@[n].npy");
		assert_string_equal(p.label, n[i]);
		sweep_point_free(&p);
	}
}

/* A buffer of another size than was asked for would be a wrong answer. */
static void test_no_memory(void **state)
{
	(void)state;
	sweep s;
	sweep_point p;
	assert_int_equal(sweep_open(&add, &s), 0);
	for (full = 1; full <= 3; full++) assert_int_equal(sweep_at(&s, 0, &p), 1);
	full = 0;
	assert_int_equal(sweep_at(&s, 0, &p), 0);
	sweep_point_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_points), cmocka_unit_test(test_no_memory)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
