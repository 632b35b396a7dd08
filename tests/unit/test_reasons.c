/* Why the copies of a product's operands go as they go: the reasons in the report, for kernels that give one each. */
#include "compiled.h"

#include <stdbool.h>

static const blkc_promise promised[] = {{"c", 16, 0}, {"a", 16, 0}, {"b", 16, 0}, {"n", 16, 0}, {"k", 16, 0}};

typedef struct row {
	const char *target, *options;
	bool around; /* a loop over tiles */
	const char *before, *body;
	int times; /* that this stands in the report */
	const char *reason;
} row;

#define LOOP "for t in range(0, k, 64) { s = dot(A.load([g, t], [128, 64]), B.load([t, g], [64, 128]), s); }"
#define LARGE(stages)                                                                                                  \
	"var w = zeros([128, 256], f32);\nfor t in range(0, k, 128" stages                                             \
	") { w = dot(A.load([g, t], [128, 128]), B.load([t, g], [128, 256]), w); }\nC.store([g, g], w.to(f16));"

static const row rows[] = {
	/* a producer warp: where registers are handed over, and for what it pays */
	{"sm_90a", "num_warps = 8", true, "", LOOP, 2, "by one thread of a producer warp"},
	{"sm_90", "num_warps = 8", true, "", LOOP, 2, "not by a producer warp: only sm_90a hands registers over"},
	{"sm_90a", "num_warps = 16", true, "", LOOP, 2, "not by a producer warp: it goes with 4 or 8 warps"},
	{"sm_90a", "num_warps = 8, maxnreg = 128", true, "", LOOP, 2, "not by a producer warp: maxnreg is given"},
	{"sm_90a", "num_warps = 8", false, "", LOOP, 2,
		"not by a producer warp: no loop is around this one, and nothing to compute between products"},
	{"sm_90a", "num_warps = 4", false, "", LOOP, 2,
		"not by a producer warp: no loop is around this one, and nothing to compute between products"},
	/* stages: of 96 KiB an SM holds two, for a producer or not; two that are wanted are two */
	{"sm_90a", "num_warps = 8", true, "", LARGE(""), 2, "not 3 stages: shared memory does not hold them"},
	{"sm_90a", "num_warps = 8, maxnreg = 255", true, "", LARGE(""), 2,
		"not 3 stages: shared memory does not hold them"},
	{"sm_90a", "num_warps = 8", true, "", LARGE(", num_stages = 2"), 0, "shared memory does not hold them"},
	{"sm_90a", "num_warps = 8, maxnreg = 255", true, "", LARGE(", num_stages = 2"), 0,
		"shared memory does not hold them"},
	{"sm_90a", "num_warps = 8", true, "", LOOP, 0, "shared memory does not hold them"},
	{"sm_90a", "num_warps = 8, maxnreg = 128", true, "", LOOP, 0, "shared memory does not hold them"},
	/* instructions: who multiplies, and what of the sum a thread has */
	{"sm_90a", "num_warps = 4, maxnreg = 64", false, "", LOOP, 1,
		"not wgmma: a thread's part of the sum leaves too few of its registers"},
	{"sm_90a", "num_warps = 2", false, "", LOOP, 1, "not wgmma: wgmma takes four warps together"},
	/* clusters: what products read, and what threads do */
	{"sm_90a", "num_warps = 8, num_ctas = 2", true, "", LOOP, 2,
		"by programs of a cluster of 2 together, where they load the same block"},
	{"sm_90a", "num_warps = 8, num_ctas = 2", true, "var e = zeros([128, 64], f32);",
		"for t in range(0, k, 64) { s = dot(A.load([g, t], [128, 64]), B.load([t, g], [64, 128]), s);\n"
		"e = e + A.load([g + 128, t], [128, 64]).to(f32); }\nC.store([g, g + 128], e.to(f16));",
		1, "not by a cluster together: threads read it from shared memory themselves"},
};

static void reasons(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const row *r = &rows[i];
		char source[4096];
		snprintf(source, sizeof source,
			"kernel k(c: *f16, a: *const f16, b: *const f16, m: i32, n: i32, k: i32) "
			"grid(1) "
			"options(%s) {\nlet A = tensor(a, [m, k]); let B = tensor(b, [k, n]); let C = tensor(c, [m, "
			"n]);\n"
			"%s {\n%s\nvar s = zeros([128, 128], f32);\n%s\nC.store([g, g], s.to(f16));\n}\n}\n",
			r->options, r->around ? "for g in range(0, m, 128)" : "let g = program_id(0) * 128; if true",
			r->before, r->body);
		compile_text(source, r->target, promised, sizeof promised / sizeof promised[0], BLKC_EMIT_EXPLAIN);
		if (count(report, r->reason) != r->times)
			fail_msg("'%s' is not there %d times, but %d:\n%s\n%s", r->reason, r->times,
				count(report, r->reason), source, report);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reasons)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
