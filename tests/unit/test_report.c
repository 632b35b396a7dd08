/* What the report says of an access, for whole kernels: why it is not wider, how values are handed on, and where the
 * threads meet.  The numbers follow from the language and from docs/explain.md. */
#include "compiled.h"

#include <stdbool.h>

#define HEAD                                                                                                           \
	"kernel k(c: *f32, a: *const f32, d: *f64, q: *i32, n: i32, m: i32, b: bool) grid(1) options(num_warps = 4) "  \
	"{\n"

static const struct {
	const char *body, *says, *not ; /* the report has the one and not the other */
} row[] = {
	/* one element: by one thread, or by all that want it */
	{"store(c, 1.0);", "4 bytes, by one thread", "by every thread"},
	{"store(c, load(a + n));", "4 bytes, by every thread", NULL},
	{"store(c, load(a + n, cache = \"cg\"));", "read-only, cache cg", NULL},
	{"store(c, load(c + n, volatile = true) + 1.0);", "volatile", "read-only"},
	{"store(c + arange(0, 1024), load(a + arange(0, 1024)));", "read-only", "not wider"},
	/* offsets that spoil the alignment, by what they are made of */
	{"store(c + arange(0, 1024) + 3, full([1024], 1.0));", "not wider", NULL},
	{"store(c + n + arange(0, 1024), full([1024], 1.0));", "nothing is promised of 'n'\n", "'m'"},
	{"store(c + n + m + arange(0, 1024), full([1024], 1.0));",
		"nothing is promised of 'n' and 'm'\n            would help: --specialize=n%16,m%16", NULL},
	{"store(c + where(b, n, m) + arange(0, 1024), full([1024], 1.0));", "nothing is promised of 'n' and 'm'", NULL},
	{"store(c + load(q) + arange(0, 1024), full([1024], 1.0));", "offsets come from memory", NULL},
	{"store(c + maximum(n, 4) + arange(0, 1024), full([1024], 1.0));", "nothing is promised of 'n'\n", "'m'"},
	{"var o = 0; while o < n { store(c + o + arange(0, 1024), full([1024], 1.0)); o += 7; }", "not wider", NULL},
	{"for o in range(0, n, 3) { store(c + o + arange(0, 1024), full([1024], 1.0)); }", "not wider", NULL},
	{"var o = n; for i in range(m) { store(c + o + arange(0, 1024), full([1024], 1.0)); o += 4; }",
		"nothing is promised of 'n'", "'m'"},
	/* strides that leave no run */
	{"store(c + arange(0, 1024) * n, full([1024], 1.0));", "not wider", NULL},
	{"store(c + arange(0, 1024) * 3, full([1024], 1.0));", "3", NULL},
	{"store(c + arange(0, 1024) / 3, full([1024], 1.0));", "not wider", NULL},
	{"store(c + load(q + arange(0, 1024)), full([1024], 1.0));", "offsets come from memory", NULL},
	/* masks that end in the middle of an access */
	{"let i = arange(0, 1024); store(c + i, full([1024], 1.0), mask = i < n);", "masked", NULL},
	{"let i = arange(0, 1024); store(c + i, full([1024], 1.0), mask = (i < n) & (i >= m));", "masked", NULL},
	{"let i = arange(0, 1024); store(c + i, full([1024], 1.0), mask = load(q + i) > 0);", "masked", NULL},
	/* threads that hold copies, and values that they hand on */
	{"store(c + arange(0, 32), full([32], 1.0));", "by the threads that own an element", NULL},
	{"store(c, sum(load(a + arange(0, 1024)), axis = 0));",
		"8:1 inside threads, then 32:1 between lanes (5 shuffles a thread), then 4:1 between warps", NULL},
	{"store(q, sum(load(q + arange(0, 128)), axis = 0));", "32:1 between lanes", "inside threads"},
	{"let i = arange(0, 64); let v = sum(load(a + i[:, None] + arange(0, 1)[None, :]), axis = 1); store(c + i, v);",
		"store c f32[64]", "reduction"},
	{"let i = arange(0, 64); let t = load(a + i[:, None] * 64 + i[None, :]); store(c + i[None, :] * 64 + i[:, "
	 "None], t);",
		"conversion", "bank conflicts"},
	{"let s = sort(load(a + arange(0, 1024)), axis = 0); store(c + arange(0, 1024), s);", "between threads", NULL},
	{"let s = cumsum(load(a + arange(0, 1024)), axis = 0); store(c + arange(0, 1024), s);", "between", NULL},
	{"let i = arange(0, 1024); store(c + i, full([1024], 1.0), mask = (i < n) & b);",
		"'n' is not known to be divisible by 4", NULL},
	{"let i = arange(0, 1024); store(c + i + 2, full([1024], 1.0), mask = i < 1001);",
		"its bound 1001 is not divisible by 4", NULL},
	{"let i = arange(0, 64); store(c + i[None, :] * 64 + i[:, None], load(a + i[:, None] * 64 + i[None, :]));",
		"a warp stores in 1 wavefront, loads in 1 wavefront", NULL},
	{"let i = arange(0, 1024); store(q + i, atomic_add(q + i * 5, 1));",
		"atomics of this kind act on no more at once", NULL},
	{"let i = arange(0, 1024); store(c + i * (n + 1) * 2, full([1024], 1.0));",
		"offsets are multiplied or divided by 2", NULL},
	{"let i = arange(3, 1027); store(c + i, full([1024], 1.0));", "the offset 3\n", NULL},
	/* a promise that would not help alone, or that nobody can make */
	{"store(c + n * 4 + 1 + arange(0, 1024), full([1024], 1.0));", "not wider", "would help"},
	{"store(c + (n ^ m) + arange(0, 1024), full([1024], 1.0));", "not wider", "would help"},
	{"store(c + n * m + arange(0, 1024), full([1024], 1.0));", "nothing is promised of 'n' and 'm'", NULL},
	{"store(c + n * 4 + arange(0, 1024), full([1024], 1.0));", "2 accesses of 16 bytes a thread", "not wider"},
	{"var o = n; if b { o = m; } store(c + o + arange(0, 1024), full([1024], 1.0));", "not wider", NULL},
	{"let i = arange(0, 1024); store(c + i, full([1024], 1.0), mask = i * n < m);", "masked", NULL},
	{"let i = arange(0, 1024); store(c + i / n, full([1024], 1.0));", "not wider", NULL},
	{"let i = arange(0, 1024); store(c + i * 3, full([1024], 1.0));", "not wider", "would help"},
	{"let i = arange(0, 32); store(c + i[:, None] * n + i[None, :], full([32, 32], 1.0));",
		"nothing is promised of 'n'", "'m'"},
};

static void reports(void **state)
{
	(void)state;
	unsigned wrong = 0;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		static char source[4096];
		static const blkc_promise aligned[] = {{"c", 16, 0}, {"a", 16, 0}, {"d", 16, 0}, {"q", 16, 0}};
		snprintf(source, sizeof source, HEAD "%s\n}\n", row[i].body);
		compile_text(source, "sm_80", aligned, 4, BLKC_EMIT_EXPLAIN);
		bool good = strstr(report, row[i].says) && !(row[i].not &&strstr(report, row[i].not ));
		if (!good)
			wrong++, print_error("%s\nwants `%s` without `%s`:\n%s\n", row[i].body, row[i].says,
					 row[i].not ? row[i].not : "", report);
	}
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reports)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
