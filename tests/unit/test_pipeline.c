/* pipeline: which loads become copies that run ahead, and what stands where afterwards. */
#include "compiled.h"

static const blkc_promise promises[] = {{"a", 16, 0}, {"b", 16, 0}, {"c", 16, 0}, {"n", 16, 0}};

/* The scheduled IR of kernel k; the pass's words only occur there. */
static const char *scheduled(const char *source, const char *target)
{
	compile_text(source, target, promises, 4, BLKC_EMIT_LAYOUT | BLKC_EMIT_PTX);
	return ir;
}

/* A product of [32, n] and [n, 32], from a row that may be below 0, so that no tensor copies are made: `head` and the
 * operands' loads are given, `range` too. */
static const char *product(
	const char *options, const char *a, const char *load_a, const char *load_b, const char *range)
{
	static char text[4096];
	snprintf(text, sizeof text,
		"kernel k(c: *f32, a: %s, b: *const f16, n: i32) grid(1) options(num_warps = 4%s) {\n"
		"let i = (program_id(0) - program_id(1)) * 32 + arange(0, 32);\n"
		"var s = zeros([32, 32], f32); var p = b + i[:, None] * 64 + i[None, :];\n"
		"for k in range(%s) { let l = k + i;\nlet x = %s; let y = %s; s += dot(x, y); p += 32 * 64; }\n"
		"store(c + i[:, None] * 32 + i[None, :], s);\n}\n",
		a, options, range, load_a, load_b);
	return text;
}

#define PA "a + i[:, None] * n + l[None, :]"
#define LOAD_A "load(" PA ")"
#define LOAD_B "load(p, mask = (l < n)[:, None])"

static void loads_become_copies(void **state)
{
	(void)state;
	const char *s = scheduled(product("", "*const f16", LOAD_A, LOAD_B, "0, n, 32"), "sm_80");
	assert_int_equal(count(s, "multibuffer {stages=3}"), 2);
	assert_int_equal(count(s, "async_copy"), 6); /* two iterations in front, one inside */
	assert_int_equal(count(s, "async_commit"), 3);
	assert_int_equal(count(s, "async_wait {pending=1}"), 1);
	assert_int_equal(count(s, "async_wait"), 1); /* the last iteration's is for all that there is */
	assert_int_equal(count(s, "multibuffer_end"), 1);
	assert_int_equal(count(s, "multibuffer_read"), 2);
	assert_int_equal(count(s, " = load "), 0);
	assert_int_equal(count(s, "cta_barrier"), 1); /* behind the wait */
	/* the pointer that the load used is gone: what is carried runs ahead */
	const char *loop = strstr(s, " = for ");
	assert_non_null(loop);
	assert_int_equal(count(loop, "ptr_add"), 4);
	s = scheduled(product(", num_stages = 5", "*const f16", LOAD_A, LOAD_B, "0, n, 32"), "sm_90a");
	assert_int_equal(count(s, "multibuffer {stages=5}"), 2);
	assert_int_equal(count(s, "async_wait {pending=3}"), 1);
	s = scheduled(product(", num_stages = 5", "*const f16", LOAD_A, LOAD_B, "0, n, 32, num_stages = 2"), "sm_80");
	assert_int_equal(count(s, "multibuffer {stages=2}"), 2);
	assert_int_equal(count(s, "async_wait {pending=0}"), 1);
	/* a transposed operand is read across; other = 0.0 is what a copy leaves anyway */
	s = scheduled(
		product("", "*const f16", "trans(load(a + i[:, None] * 64 + k * 64 + i[None, :]))", LOAD_B, "0, n, 32"),
		"sm_80");
	assert_int_equal(count(s, "multibuffer_read"), 2);
	s = scheduled(
		product("", "*const f16", "load(" PA ", mask = (l < n)[None, :], other = 0.0)", LOAD_B, "0, n, 32"),
		"sm_80");
	assert_int_equal(count(s, "multibuffer_read"), 2);
}

/* What a dot's operand is computed from: read as the load lay, computed, converted as before. */
static void computed_operands(void **state)
{
	(void)state;
	static const char *const forms[][2] = {{"*const f16", "load(" PA ") * 2.0"},
		{"*const i8", "load(" PA ", mask = (l < n)[None, :]).to(f16)"},
		{"*const f32", "trans(load(a + (k + i)[:, None] * 64 + i[None, :])).to(f16)"}};
	for (unsigned i = 0; i < 3; i++) {
		const char *s = scheduled(product("", forms[i][0], forms[i][1], LOAD_B, "0, n, 32"), "sm_80");
		assert_int_equal(count(s, "multibuffer_read"), 2);
		assert_int_equal(count(s, " = load "), 0);
		assert_int_equal(count(strstr(s, "multibuffer_read"), "convert_layout"), 1);
	}
	/* a loop without a product loads when it needs the values */
	const char *s = scheduled("kernel k(c: *f32, a: *const f32, b: *const f16, n: i32) grid(1) {\n"
				  "var s = zeros([512], f32); let i = arange(0, 512);\n"
				  "for k in range(0, n, 512) { s += load(a + k + i) * 2.0; }\nstore(c + i, s);\n}\n",
		"sm_80");
	assert_int_equal(count(s, "multibuffer"), 0);
}

/* `a` stays a load: b alone is copied ahead. */
static void check_stays(const char *a, const char *load_a)
{
	const char *s = scheduled(product("", a, load_a, LOAD_B, "0, n, 32"), "sm_80");
	assert_int_equal(count(s, "multibuffer_read"), 1);
	assert_int_equal(count(s, " = load ") > 0, 1);
}

static void loads_that_stay(void **state)
{
	(void)state;
	check_stays("*f16", LOAD_A);                                /* may change */
	check_stays("*const f16", "load(" PA ", cache = \"cg\")");  /* wants its own way */
	check_stays("*const f16", "load(" PA ", volatile = true)"); /* likewise */
	check_stays("*const f16", "load(" PA ", mask = (l < n)[None, :], other = 1.0)");
	check_stays("*const f16", "load(a + k + i).to(f32)[:, None].to(f16) + (l * 0)[None, :].to(f16)"); /* 2 bytes */
	check_stays("*const f16", "load(a + i[:, None] * 33 + l[None, :])"); /* no 4 bytes aligned */
	check_stays("*const f16", "load(a + i[:, None] * n + l[None, :] + load(c).to(i32) * 32)"); /* from memory */
}

static void loops_that_stay(void **state)
{
	(void)state;
	static const char *const ranges[] = {
		"0, n, 32, num_stages = 1", "n, 0, -32", "n.to(i64)", "0, n, load(c).to(i32)"};
	for (unsigned i = 0; i < 4; i++) {
		const char *s =
			scheduled(product("", "*const f16", "load(a + i[:, None] * n + i[None, :] + k.to(i32) * 32)",
					  "load(p)", ranges[i]),
				"sm_80");
		assert_int_equal(count(s, "multibuffer"), 0);
		assert_int_equal(count(s, "async"), 0);
	}
}

/* 3 stages of 2 * 64 KiB do not fit; 1 is no multibuffer. */
static void stages_that_fit(void **state)
{
	(void)state;
	char text[2048];
	for (int pass = 0; pass < 3; pass++) {
		static const char *const targets[] = {"sm_90a", "sm_80", "sm_86"};
		static const int stages[] = {3, 2, 0};
		snprintf(text, sizeof text,
			"kernel k(c: *f32, a: *const f16, b: *const f16, n: i32) grid(1) options(num_warps = 8) {\n"
			"let i = arange(0, 128); let j = arange(0, 128); let l = arange(0, 128); var s = zeros([128, "
			"128], f32);\n"
			"for k in range(0, n, 128) {\nlet x = load(a + i[:, None] * n + k + l[None, :]);\n"
			"let y = load(b + (k + l)[:, None] * 128 + j[None, :]); s += dot(x, y); }\n"
			"store(c + i[:, None] * 128 + j[None, :], s);\n}\n");
		const char *s = scheduled(text, targets[pass]);
		char word[32];
		snprintf(word, sizeof word, "multibuffer {stages=%d", stages[pass]);
		assert_int_equal(count(s, "multibuffer {"), stages[pass] ? 2 : 0);
		if (stages[pass]) assert_int_equal(count(s, word), 2);
	}
}

/* What runs behind the loop may lie where the multibuffers do, behind a barrier; so is what fills them again. */
static void shared_memory(void **state)
{
	(void)state;
	char text[2048];
	for (int again = 0; again < 2; again++) {
		snprintf(text, sizeof text,
			"kernel k(c: *f32, a: *const f16, b: *const f16, n: i32) grid(1) options(num_warps = 4) {\n"
			"let i = arange(0, 64);\nfor t in range(0, %d) { var s = zeros([64, 64], f32);\n"
			"for k in range(0, n, 64) { let l = k + i; let x = load(a + (t * 64 + i)[:, None] * n + "
			"l[None, :]);\n"
			"s += dot(x, load(b + l[:, None] * 64 + i[None, :])); }\n"
			"store(c + t * 64 + i, max(s, axis = 0)); }\n}\n",
			again ? 4 : 1);
		const char *s = scheduled(text, "sm_80");
		assert_non_null(strstr(s, "shared(0, 24576)"));
		assert_non_null(strstr(s, "shared(24576, 24576)"));
		const char *reduce = strstr(s, "reduce");
		assert_non_null(reduce);
		assert_non_null(strstr(reduce, "shared(0, "));
		assert_int_equal(count(s, "cta_barrier"), 2 + again); /* one of them behind the wait */
		if (again) assert_true(strstr(s, "cta_barrier") < strstr(s, "multibuffer {"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(loads_become_copies), cmocka_unit_test(computed_operands),
		cmocka_unit_test(loads_that_stay), cmocka_unit_test(loops_that_stay), cmocka_unit_test(stages_that_fit),
		cmocka_unit_test(shared_memory)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
