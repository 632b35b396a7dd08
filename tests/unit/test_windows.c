/* Windows of arrays: which loads by pointers are proved to be one, what map the host is asked for, and what is said of
 * the others.  What they compute: tests/device/windows.c. */
#include "compiled.h"

#define PARAMETERS "c: *f32, a: *const f16, b: *const f16, M: i32, N: i32, K: i32"

/* A product of 64 x 32 and 32 x 64 blocks; `loads` defines x, and perhaps y. */
static void compile(const char *target, const char *parameters, const char *setup, const char *range, const char *loads)
{
	static char source[8192];
	static const blkc_promise promised[] = {
		{"c", 16, 0}, {"a", 16, 0}, {"b", 16, 0}, {"M", 16, 0}, {"N", 16, 0}, {"K", 16, 0}};
	snprintf(source, sizeof source,
		"kernel k(%s) grid(1) options(num_warps = 4, num_stages = 3) {\n"
		"let i = program_id(0) * 64 + arange(0, 64); let j = program_id(1) * 64 + arange(0, 64);\n"
		"let l = arange(0, 32); var s = zeros([64, 64], f32);\n%s\n"
		"for k in range(%s) {\n%s\n%s s = dot(x, y, s); }\n"
		"store(c + i[:, None] * 64 + j[None, :], s);\n}\n",
		parameters, setup, range, loads,
		strstr(loads, "let y") ? "" : "let y = (l[:, None] + j[None, :]).to(f16);");
	compile_text(
		source, target, promised, sizeof promised / sizeof promised[0], BLKC_EMIT_LAYOUT | BLKC_EMIT_EXPLAIN);
}

static const char *said(void)
{
	const char *why = strstr(report, "no tensor copy");
	return why ? why : "(nothing)";
}

/* The line of the map, from the address on. */
static void is_window(const char *setup, const char *range, const char *loads, const char *map)
{
	compile("sm_90a", PARAMETERS, setup, range, loads);
	if (!strstr(sig, map) || strstr(report, "no tensor copy"))
		fail_msg("%s\n%s\nis no window '%s':\n%s\n%.100s", setup, loads, map, sig, said());
	assert_true(count(ir, "bulk_copy") > 0);
}

static void is_none(const char *parameters, const char *setup, const char *range, const char *loads, const char *why)
{
	compile("sm_90a", parameters, setup, range, loads);
	if (strstr(sig, "\nmap ") || !strstr(report, "no tensor copy") || !strstr(report, why))
		fail_msg("%s\n%s\nis a window, or not because '%s':\n%s\n%.100s", setup, loads, why, sig, said());
}

#define ROUND "0, K, 32"
#define LOAD(address, mask) "let x = load(" address ", mask = " mask ");"
#define ANEW "a + i[:, None].to(i64) * K + (k + l)[None, :]"
#define BOUNDS "(i < M)[:, None] & (k + l < K)[None, :]"

/* 32 rounds for each 32 columns: 1 where they count to less than 2^30, else 0. */
#define ROUNDS "1073741824 p5 31 + 32 << 32 >> 32 / 32 << 32 >> -32 * + 1 min 0 max *"

static void windows(void **state)
{
	(void)state;
	is_window("", ROUND, LOAD(ANEW, BOUNDS), "; p1 ; p5 ; p3 ; p5 2 *\n");
	/* moved on round by round, by a known step or by rows; counted in rounds */
	is_window("var p = a + i[:, None].to(i64) * K + l[None, :];", ROUND,
		LOAD("p", "(i < M)[:, None] & (l < K - k)[None, :]") " p += 32;", "; p1 ; p5 ; p3 ; p5 2 *\n");
	is_window("var p = a + i[:, None].to(i64) * K + l[None, :];", "cdiv(K, 32)",
		LOAD("p", "(i < M)[:, None] & (l < K - k * 32)[None, :]") " p += 32;",
		"; p1 ; p5 ; p3 " ROUNDS " ; p5 2 *\n");
	/* by a program's rounds: the product is the coordinate, whatever it comes to */
	is_window("let o = program_id(2) * 4; let last = min(o + 4, cdiv(K, 32));", "o, last",
		LOAD("a + i[:, None].to(i64) * K + (k * 32 + l)[None, :]",
			"(i < M)[:, None] & (k * 32 + l < K)[None, :]"),
		"; p1 ; p5 ; p3 ; p5 2 *\n");
	/* by pointers of 64 bits: the grid's third axis has 65,535 programs, 4 iterations each, so k * 32 is small */
	is_window("let o = program_id(2) * 4; let last = min(o + 4, cdiv(K, 32));", "o, last",
		LOAD("a + i[:, None].to(i64) * K + (k.to(i64) * 32 + l)[None, :]",
			"(i < M)[:, None] & (l < K - k * 32)[None, :]"),
		"; p1 ; p5 ; p3 ; p5 2 *\n");
	is_window("var p = b + l[:, None].to(i64) * N + j[None, :];", ROUND,
		"let x = (i[:, None] + l[None, :]).to(f16); let y = load(p, mask = (l < K - k)[:, None] & (j < "
		"N)[None, :]); p += 32 * "
		"N.to(i64);",
		"; p2 ; p4 ; p5 ; p4 2 *\n");
	/* comparisons of any form; a lower bound */
	is_window("", ROUND, LOAD(ANEW, "(M > i)[:, None] & (k + l <= K - 1)[None, :]"), "; p1 ; p5 ; p3 ; p5 2 *\n");
	is_window("", ROUND,
		LOAD("a + (i - 3)[:, None].to(i64) * K + (k + l)[None, :]",
			"(i - 3 >= 0)[:, None] & (i - 3 < M)[:, None] & (k + l < K)[None, :]"),
		"; p1 ; p5 ; p3 ; p5 2 *\n");
	/* bounds that are one off, at either end of the stride */
	is_window(
		"", ROUND, LOAD(ANEW, "(i < M)[:, None] & (k + l < K - 1)[None, :]"), "; p1 ; -1 p5 + ; p3 ; p5 2 *\n");
	is_window("", ROUND, LOAD(ANEW, "(i <= M)[:, None] & (k + l <= K)[None, :]"),
		"; p1 ; p5 1 + ; p3 1 + ; p5 2 *\n");
	/* one bound in two forms */
	is_window("", ROUND, LOAD(ANEW, "(i < M)[:, None] & (i <= M - 1)[:, None] & (k + l < K)[None, :]"),
		"; p1 ; p5 ; p3 ; p5 2 *\n");
	/* an offset goes to the coordinate, or to the array's address */
	is_window("", ROUND, LOAD("a + 8 + i[:, None].to(i64) * K + (k + l)[None, :]", BOUNDS),
		"; p1 ; 8 p5 + ; p3 ; p5 2 *\n");
	is_window("", ROUND, LOAD("a + M + i[:, None].to(i64) * K + (k + l)[None, :]", BOUNDS),
		"; p1 p3 2 * + ; p5 ; p3 ; p5 2 *\n");
	/* a batch is a dimension; no bound, no end; rows that overlap; every other row */
	is_window("let t = program_id(2).to(i64);", ROUND,
		LOAD("a + t * M * K + i[:, None].to(i64) * K + (k + l)[None, :]", BOUNDS),
		"; p1 ; p5 ; p3 ; 2147483648");
	is_window("", "0, 128, 32", "let x = load(" ANEW ");", "; p1 ; 2147483648 ; 2147483648 ; p5 2 *\n");
	is_window("", ROUND, LOAD("a + i[:, None].to(i64) * 8 + (k + l)[None, :]", BOUNDS), "; p1 ; p5 ; p3 ; 8 2 *\n");
	is_window("", ROUND, LOAD("a + (2 * i)[:, None].to(i64) * K + (k + l)[None, :]", BOUNDS), "; p5 2 * 2 *\n");
	/* across: the map has the dimension of stride 1 last */
	is_window(
		"", ROUND, LOAD("a + i[:, None] + (k + l)[None, :].to(i64) * M", BOUNDS), "; p1 ; p3 ; p5 ; p3 2 *\n");
	/* what the product takes may be computed from it */
	is_window("", ROUND, "let x = load(" ANEW ", mask = " BOUNDS ") * 2.0;", "; p1 ; p5 ; p3 ; p5 2 *\n");
	/* whole parts of a long sum */
	is_window("let part = cdiv(K, 256) * 32; let o = min(program_id(2) * part, K); let last = min(o + part, K);",
		"o, last, 32", LOAD(ANEW, "(i < M)[:, None] & (l < last - k)[None, :]"), "; p1 ; p5 ");
	/* promised, or seen to */
	is_window("let r = program_id(0) - program_id(1); assume(r >= 0);", ROUND,
		LOAD("a + (r + i)[:, None].to(i64) * K + (k + l)[None, :]",
			"(r + i < M)[:, None] & (k + l < K)[None, :]"),
		"; p1 ; p5 ; p3 ; p5 2 *\n");
	is_window("let r = maximum(program_id(0) - program_id(1), 0);", ROUND,
		LOAD("a + (r + i)[:, None].to(i64) * K + (k + l)[None, :]",
			"(r + i < M)[:, None] & (k + l < K)[None, :]"),
		"; p1 ; p5 ; p3 ; p5 2 *\n");
}

/* What the host looks at: the sizes of i32 products, and arguments that must not be negative. */
static void guards(void **state)
{
	(void)state;
	is_window("", ROUND, LOAD("a + i[:, None] * K + (k + l)[None, :]", BOUNDS),
		"; p1 ; p5 ; p3 p3 p5 * -1 * p5 -1 * + 2147483648 + 1 min 0 max * ; p5 2 *\n");
	is_window("let r = program_id(1) / N * 64;", ROUND,
		LOAD("a + (r + i)[:, None].to(i64) * K + (k + l)[None, :]",
			"(r + i < M)[:, None] & (k + l < K)[None, :]"),
		"; p1 ; p5 ; p3 p4 1 + 1 min 0 max * ; p5 2 *\n");
}

static void others(void **state)
{
	(void)state;
	static const char *const mutable = "c: *f32, a: *f16, b: *const f16, M: i32, N: i32, K: i32";
	is_none(mutable, "", ROUND, LOAD(ANEW, BOUNDS), "it is not through *const");
	is_none(PARAMETERS, "", ROUND, "let x = load(" ANEW ", mask = " BOUNDS ", other = 1.0);", "it has an other");
	is_none(PARAMETERS, "", ROUND, "let x = load(" ANEW ", mask = " BOUNDS ", evict = \"last\");", "it has hints");
	/* pointers go on where the mask's product wraps around, and nobody knows how many rounds there are */
	is_none(PARAMETERS, "let o = program_id(0) * 4; let last = min(o + 4, cdiv(K, 32));", "o, last",
		LOAD("a + i[:, None].to(i64) * K + (k.to(i64) * 32 + l)[None, :]",
			"(i < M)[:, None] & (l < K - k * 32)[None, :]"),
		"an index may not fit 32 bits");
	/* indices below 0 */
	is_none(PARAMETERS, "", ROUND,
		LOAD("a + (i - 3)[:, None].to(i64) * K + (k + l)[None, :]",
			"(i - 3 < M)[:, None] & (k + l < K)[None, :]"),
		"an index may be below 0");
	is_none(PARAMETERS, "let r = program_id(0) - program_id(1);", ROUND,
		LOAD("a + (r + i)[:, None].to(i64) * K + (k + l)[None, :]",
			"(r + i < M)[:, None] & (k + l < K)[None, :]"),
		"an index may be below 0");
	is_none(PARAMETERS, "", "-32, K, 32", LOAD(ANEW, BOUNDS), "an index may be below 0");
	/* an assumption that does not hold where the load stands */
	is_none(PARAMETERS, "let r = program_id(0) - program_id(1); if M > 5 { assume(r >= 0); }", ROUND,
		LOAD("a + (r + i)[:, None].to(i64) * K + (k + l)[None, :]",
			"(r + i < M)[:, None] & (k + l < K)[None, :]"),
		"an index may be below 0");
	/* masks that say something else: a condition, a difference, a bound that the device makes, another index */
	is_none(PARAMETERS, "let on = M > 5;", ROUND, LOAD(ANEW, BOUNDS " & on"), "its mask says more");
	is_none(PARAMETERS, "", ROUND, LOAD(ANEW, "(i != M)[:, None] & (k + l < K)[None, :]"), "its mask says more");
	is_none(PARAMETERS, "", ROUND, LOAD(ANEW, "(i[:, None] + l[None, :] < M) & (k + l < K)[None, :]"),
		"its mask says more");
	is_none(PARAMETERS, "let n = load(c).to(i32);", ROUND, LOAD(ANEW, "(i < n)[:, None] & (k + l < K)[None, :]"),
		"its mask's bound is not the host's to know");
	is_none(PARAMETERS, "", ROUND, LOAD(ANEW, "(i < M)[:, None] & (l < K)[None, :]"),
		"its mask's bound is not the host's to know");
	is_none(PARAMETERS, "", ROUND, LOAD(ANEW, "(i >= 1)[:, None] & (i < M)[:, None] & (k + l < K)[None, :]"),
		"its mask says more");
	is_none(PARAMETERS, "", ROUND, LOAD(ANEW, "(i < M)[:, None] & (i < N)[:, None] & (k + l < K)[None, :]"),
		"its mask's bound");
	/* parts that are no whole rounds */
	is_none(PARAMETERS,
		"let part = cdiv(K, 256) * 16; let o = min(program_id(2) * part, K); let last = min(o + part, K);",
		"o, last, 32", LOAD(ANEW, "(i < M)[:, None] & (l < last - k)[None, :]"),
		"its mask's bound is not the host's to know");
	/* nor where rounds are of 48 or of 16 columns of the 32, begin elsewhere, or end where only the device knows */
#define PART "let part = cdiv(K, 256) * 32; let o = min(program_id(2) * part, K); let last = "
	is_none(PARAMETERS, PART "min(o + part, K);", "o, last, 48",
		LOAD(ANEW, "(i < M)[:, None] & (l < last - k)[None, :]"), "its mask's bound is not the host's to know");
	is_none(PARAMETERS, PART "min(o + part, K);", "o, last, 16",
		LOAD(ANEW, "(i < M)[:, None] & (l < last - k)[None, :]"), "its mask's bound is not the host's to know");
	is_none(PARAMETERS, PART "min(o + part, K);", "o, last, 32",
		LOAD("a + i[:, None].to(i64) * K + (k + 32 + l)[None, :]",
			"(i < M)[:, None] & (l < last - k - 32)[None, :]"),
		"its mask's bound is not the host's to know");
	is_none(PARAMETERS, PART "maximum(o + part, K);", "o, last, 32",
		LOAD(ANEW, "(i < M)[:, None] & (l < last - k)[None, :]"), "its mask's bound is not the host's to know");
	is_none(PARAMETERS, PART "min(o + part, load(c).to(i32));", "o, last, 32",
		LOAD(ANEW, "(i < M)[:, None] & (l < last - k)[None, :]"), "its mask's bound is not the host's to know");
#undef PART
	/* multiples of an index */
	is_none(PARAMETERS, "", ROUND, LOAD(ANEW, "(i < M)[:, None] & (l * 2 < K - k)[None, :]"), "its mask says more");
	is_none(PARAMETERS, "", ROUND, LOAD(ANEW, "(i < M)[:, None] & (l * N < K - k)[None, :]"), "its mask says more");
	/* addresses: around the rows, by a table, a diagonal, backwards, a step of the device, a pointer from memory */
	is_none(PARAMETERS, "", ROUND,
		LOAD("a + (i % M)[:, None].to(i64) * K + (k + l)[None, :]", "(k + l < K)[None, :]"),
		"its addresses are no sum");
	is_none(PARAMETERS, "", ROUND, LOAD("a + load(b + i).to(i32)[:, None].to(i64) * K + (k + l)[None, :]", BOUNDS),
		"its addresses are no sum");
	is_none(PARAMETERS, "", ROUND, LOAD("a + 3 + i[:, None].to(i64) * K + (k + l)[None, :]", BOUNDS),
		"multiples of 16 bytes");
	is_none(PARAMETERS, "", ROUND, LOAD("a + i[:, None] + (k + l)[None, :]", BOUNDS), "");
	is_none(PARAMETERS, "", ROUND, LOAD("a + (M - i)[:, None].to(i64) * K + (k + l)[None, :]", BOUNDS),
		"it runs backwards");
	is_none(PARAMETERS, "let n = load(c).to(i64) * 16;", ROUND,
		LOAD("a + i[:, None].to(i64) * n + (k + l)[None, :]", BOUNDS), "a stride is not the host's to know");
	/* of tensors: what is wrong with a base */
	is_none(PARAMETERS, "let x0 = tensor(a + (program_id(0) - 1) * K, [M, K]);", ROUND,
		"let x = x0.load([0, k], [64, 32]);", "its base may move backwards");
	is_none(PARAMETERS, "let x0 = tensor(a + program_id(0) * (K / 16), [M, K]);", ROUND,
		"let x = x0.load([0, k], [64, 32]);", "its base is not known to move by multiples of 16 bytes");
	is_none(PARAMETERS, "let x0 = tensor(load(c).to(i64).to(*const f16), [M, K]);", ROUND,
		"let x = x0.load([0, k], [64, 32]);", "it begins at an address that is a number");
	is_none(PARAMETERS, "let p = load(c).to(i64).to(*const f16);", ROUND,
		LOAD("p + i[:, None].to(i64) * K + (k + l)[None, :]", BOUNDS),
		"it begins at an address that is a number");
	is_none(PARAMETERS, "var p = a + i[:, None].to(i64) * K + l[None, :];", "0, K, 3",
		LOAD("p", "(i < M)[:, None] & (l < K - k)[None, :]") " p += 32;", "its addresses are no sum");
	/* 8 bytes off, and rows of 8 bytes */
	is_none(PARAMETERS, "", ROUND, LOAD("a + i[:, None].to(i64) * 4 + (k + l)[None, :]", BOUNDS),
		"multiples of 16 bytes");
	/* products in 64 bits that no i32 holds for all that is known */
	is_none(PARAMETERS, "let t = program_id(0).to(i64) * 64;", "0, 128, 32",
		"let x = load(a + (t + arange(0, 64))[:, None] * K + (k + l)[None, :]);", "");
}

/* Rows that are computed in 64 bits, and that no mask bounds: whether the copy's 32 bits hold them for all that the
 * grid and the loops can come to. */
static void reaches(void **state)
{
	(void)state;
#define ROWS "let x = load(a + (t + arange(0, 64))[:, None] * K + (k + l)[None, :]);"
#define OPEN "; p1 ; 2147483648 ; 2147483648 ; p5 2 *\n"
	/* 65,535 programs along the third axis: times 64 they stay below half of 2^30, times 2^15 they do not */
	is_window("", "0, 128, 32", "let t = (program_id(2).to(i64) + k.to(i64)) * 64;" ROWS, OPEN);
	is_none(PARAMETERS, "", "0, 128, 32", "let t = (program_id(2).to(i64) + k.to(i64)) * 32768;" ROWS,
		"an index may not fit 32 bits");
	is_none(PARAMETERS, "", "0, 128, 32", "let t = (program_id(0).to(i64) + k.to(i64)) * 64;" ROWS,
		"an index may not fit 32 bits");
	is_none(PARAMETERS, "let t = program_id(0).to(i64) * 64;", "0, 128, 32", ROWS, "an index may not fit 32 bits");
	is_window("let t = program_id(2).to(i64) * 64;", "0, 128, 32", ROWS, OPEN); /* of 65535 programs at most */
	/* a loop's counter, below 128, and below what the host sees to */
	is_window("", "0, 128, 32", "let t = k.to(i64) * 64;" ROWS, OPEN);
	is_none(PARAMETERS, "", "0, 128, 32", "let t = k.to(i64) * 16777216;" ROWS, "an index may not fit 32 bits");
	is_none(PARAMETERS, "let n = load(c).to(i32);", "0, n, 32", "let t = k.to(i64) * 64;" ROWS,
		"an index may not fit 32 bits");
	/* products of the device, numbers below 0, beyond all bounds, of 64 bits, and of nobody knows what */
	is_none(PARAMETERS, "let t = program_id(1).to(i64) * program_id(2).to(i64);", "0, 128, 32", ROWS,
		"an index may not fit 32 bits");
	is_none(PARAMETERS, "", "0, 128, 32", "let t = 1000 - k.to(i64) * 2;" ROWS, "an index may not fit 32 bits");
	is_none(PARAMETERS, "", "0, 128, 32", "let t = k.to(i64) * 4294967296;" ROWS, "an index may not fit 32 bits");
	is_none(PARAMETERS, "let t = load(c).to(i64);", "0, 128, 32", ROWS, "an index may not fit 32 bits");
	is_none(PARAMETERS, "let n = load(c).to(i32); let t = n.to(i64) * 2;", "0, 128, 32", ROWS,
		"an index may not fit 32 bits");
#undef ROWS
#undef OPEN
}

/* Elsewhere pointers stay what they are: other targets, other loops, loads that no product takes. */
static void elsewhere(void **state)
{
	(void)state;
	compile("sm_80", PARAMETERS, "", ROUND, LOAD(ANEW, BOUNDS));
	assert_null(strstr(sig, "\nmap "));
	assert_null(strstr(report, "no tensor copy"));
	compile("sm_90a", PARAMETERS, "", "0, K, 32, num_stages = 1", LOAD(ANEW, BOUNDS));
	assert_null(strstr(sig, "\nmap "));
	compile("sm_90a", PARAMETERS, "var t = zeros([64, 32], f16);", ROUND,
		LOAD(ANEW, BOUNDS) " t += x; let z = zeros([64, 32], f16);");
	assert_non_null(strstr(sig, "\nmap "));
	compile("sm_90a", PARAMETERS, "var t = zeros([64, 32], f16);", ROUND,
		"let z = load(" ANEW ", mask = " BOUNDS "); t += z; let x = (i[:, None] + l[None, :]).to(f16);");
	assert_null(strstr(sig, "\nmap "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(windows), cmocka_unit_test(guards),
		cmocka_unit_test(others), cmocka_unit_test(reaches), cmocka_unit_test(elsewhere)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
