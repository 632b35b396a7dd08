/* blkrun's lists of sizes: what each point's command line is, and that none is made where memory ends. */
#include "captured.h"

#include "runtime/run/run.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

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
	char which[48];
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
		snprintf(which, sizeof which, "%zu of %zu", i + 1, s.n);
		assert_string_equal(p.options.which, which);
		sweep_point_free(&p);
	}
}

/* What one value of a command line stands for. */
static void test_lists(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t n;
		const char *items[4]; /* the first ones, and the last of them the last one */
	} rows[] = {{"7", 1, {"7"}}, {"1,2,3", 3, {"1", "2", "3"}}, {"5,", 2, {"5", ""}}, {"", 1, {""}},
		{"2..2", 1, {"2"}}, {"3..12", 3, {"3", "6", "12"}}, {"3..11", 2, {"3", "6"}},
		{"0x10..0x20", 2, {"16", "32"}},
		{"3..18446744073709551615", 63, {"3", "6", "12", "13835058055282163712"}}, /* 3 * 2^62 */
		{"9223372036854775808..18446744073709551615", 1, {"9223372036854775808"}},
		{"1..9223372036854775808", 64, {"1", "2", "4", "9223372036854775808"}},
		/* no ranges: what they are given to complains */
		{"2..", 1, {"2.."}}, {"2..x", 1, {"2..x"}}, {"2..4x", 1, {"2..4x"}}, {"0..4", 1, {"0..4"}},
		{"2.4", 1, {"2.4"}}, {"2..99999999999999999999", 1, {"2..99999999999999999999"}},
		{"99999999999999999999..2", 1, {"99999999999999999999..2"}}, {"x..4", 1, {"x..4"}},
		/* commas inside brackets */
		{"f32[2,3]:ones,f32[4,5]", 2, {"f32[2,3]:ones", "f32[4,5]"}}, {"f(1,2),g", 2, {"f(1,2)", "g"}},
		{"@a,b.npy", 1, {"@a,b.npy"}}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const options o = {.values = {{"n", rows[i].text}}, .nvalues = 1};
		sweep s;
		sweep_point p;
		assert_int_equal(sweep_open(&o, &s), 0);
		if (s.n != rows[i].n) fail_msg("%s has %zu items", rows[i].text, s.n);
		assert_int_equal(s.name != NULL, s.n > 1);
		for (size_t k = 0; k < 4 && rows[i].items[k]; k++) {
			bool last = k == 3 || !rows[i].items[k + 1];
			assert_int_equal(sweep_at(&s, last ? s.n - 1 : k, &p), 0);
			assert_string_equal(p.options.values[0].text, rows[i].items[k]);
			assert_string_equal(p.label, s.n > 1 ? rows[i].items[k] : "");
			sweep_point_free(&p);
		}
	}
}

static void refused(const char *text, const char *says)
{
	const options o = {.values = {{"n", text}}, .nvalues = 1};
	sweep s;
	int status;
	CAPTURED(status = sweep_open(&o, &s));
	assert_int_equal(status, 2);
	assert_string_equal(captured.err, says);
}

static void test_refused(void **state)
{
	(void)state;
	char many[2 * 4097 + 1] = "1";
	sweep s;
	for (size_t i = 1; i < 4096; i++) strcpy(many + 2 * i - 1, ",1");
	const options most = {.values = {{"n", many}}, .nvalues = 1};
	assert_int_equal(sweep_open(&most, &s), 0);
	assert_int_equal(s.n, 4096);
	strcat(many, ",1");
	refused(many, "blkrun: n: a list has more than 4096 items\n");
	refused("8..2", "blkrun: n: a range goes up, as 1024..65536\n");
}

/* Names in extents: whole words, of values before defines, of several defines the last; what stands outside of brackets
 * or names nothing is left. */
static void test_extents(void **state)
{
	(void)state;
	static const struct {
		const char *text, *becomes;
	} rows[] = {{"f32[n]", "f32[3]"}, {"f32[nn,n]", "f32[44,3]"}, {"f32[a_1]", "f32[5]"}, {"f32[N]", "f32[8]"},
		{"f32[m]", "f32[m]"}, {"f32[2n]", "f32[2n]"}, {"f32[n]:n", "f32[3]:n"}, {"n[n", "n[3"},
		{"f32[BL]", "f32[BL]"}, {"f32[both]", "f32[1]"}, {"to:f32[n]+f32[nn]", "to:f32[3]+f32[44]"},
		{"@[n]", "@[n]"}, {"n", "n"}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const options o = {
			.values = {{"x", rows[i].text}, {"nn", "44"}, {"n", "3"}, {"a_1", "5"}, {"both", "1"}},
			.nvalues = 5,
			.defines = {{"BLOCK", "64"}, {"N", "7"}, {"NN", "9"}, {"N", "8"}, {"both", "2"}},
			.ndefines = 5};
		sweep s;
		sweep_point p;
		assert_int_equal(sweep_open(&o, &s), 0);
		assert_int_equal(sweep_at(&s, 0, &p), 0);
		assert_string_equal(p.options.values[0].text, rows[i].becomes);
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
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_points), cmocka_unit_test(test_lists),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_extents), cmocka_unit_test(test_no_memory)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
