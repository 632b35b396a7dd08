/* What sema computes at compile time, and the tile IR that less usual programs become. */
#include "sema_fixture.h"

/* ---- true at compile time ---- */

static const char *const facts[] = {
	/* integers: untyped ones are exact, typed ones wrap */
	"-9223372036854775807 - 1 == -9223372036854775808",
	"9223372036854775807 + 1 == 9223372036854775808",
	"(255).to(u8) + (1).to(u8) == 0",
	"(-128).to(i8) - (1).to(i8) == 127",
	"(65535).to(u32) * (65537).to(u32) == 4294967295",
	"(-7) / 2 == -3",
	"(-7) % 2 == -1",
	"6 & 3 == 2",
	"(6 & 3) == 2",
	"(6 | 3) == 7",
	"(6 ^ 3) == 5",
	"~5 == -6",
	"(~(5).to(u8)) == 250",
	"3 < 4",
	"4 <= 4",
	"!(5 <= 4)",
	"5 > 4",
	"4 >= 4",
	"!(3 >= 4)",
	"3 != 4",
	/* shifts: by the width and more gives 0, or the sign */
	"1 << 63 == 9223372036854775808",
	"0 << 64 == 0",
	"0 << 200 == 0",
	"-5 >> 200 == -1",
	"5 >> 200 == 0",
	"-5 >> 1 == -3",
	"(1).to(i32) << 32 == 0",
	"(1).to(i32) << -1 == 0",
	"(1).to(i32) << 31 == -2147483648",
	"(-5).to(i32) >> 40 == -1",
	"(5).to(i32) >> 40 == 0",
	"(200).to(u8) >> 3 == 25",
	"(-1).to(i32) >> -1 == -1",
	/* numbers with a type meet: the one that fits the other's type takes it, else the wider wins */
	"((5).to(i32) + (5).to(u32)).dtype == u32",
	"((-5).to(i32) < (5).to(u32))",
	"((4294967295).to(u32) - (1).to(i32)) == 4294967294",
	"((1).to(i8) + (1).to(i64)).dtype == i64",
	"((1).to(u8) + (1).to(i16)).dtype == i16",
	"(1 + (1).to(u64)).dtype == u64",
	"((1).to(f16) + (1).to(bf16)).dtype == f32",
	"((1).to(f16) + (1).to(f64)).dtype == f64",
	"((1).to(i32) + (1).to(f16)).dtype == f16",
	"(1).dtype == i32",
	"(2147483648).dtype == i64",
	"(9223372036854775808).dtype == u64",
	"(1.0).dtype == f32",
	/* floats */
	"1.5 + 2.0 == 3.5",
	"1 + 2.5 == 3.5",
	"1.5 - 2 == -0.5",
	"1.5 * 2.0 == 3.0",
	"3.0 / 2.0 == 1.5",
	"1.0 <= 1.0",
	"!(1.5 <= 1.0)",
	"1.0 >= 1.0",
	"!(1.0 >= 1.5)",
	"1.0 < 1.5",
	"1.5 > 1.0",
	"1.0 != 1.5",
	"nan != nan",
	"!(nan == nan)",
	"!(nan <= nan)",
	"1.0 / 0.0 == inf",
	"-(1.5) == 0.0 - 1.5",
	"(0.1).to(f32) != (0.1).to(f64)",
	"(2049).to(f16) == 2048",
	"(1).to(f16) / (3).to(f16) == (0.333251953125).to(f16)",
	/* bools */
	"true | false",
	"!(false | false)",
	"!(true & false)",
	"true & true",
	"true ^ false",
	"!(true ^ true)",
	"true == true",
	"true != false",
	"~false",
	"!~true",
	"true || 1 / 0 == 0",
	"!(false && 1 / 0 == 0)",
	/* elementary functions, by digits from a table */
	"exp(0.0) == 1.0",
	"abs(exp(1.0) - 2.718281828459045) < 1e-14",
	"exp2(3.0) == 8.0",
	"abs(exp2(0.5) - 1.4142135623730951) < 1e-14",
	"expm1(0.0) == 0.0",
	"abs(expm1(1.0) - 1.718281828459045) < 1e-14",
	"log(1.0) == 0.0",
	"abs(log(10.0) - 2.302585092994046) < 1e-14",
	"log2(8.0) == 3.0",
	"log1p(0.0) == 0.0",
	"abs(log1p(1.0) - 0.6931471805599453) < 1e-14",
	"sqrt(2.25) == 1.5",
	"sqrt_rn(9.0) == 3.0",
	"rsqrt(4.0) == 0.5",
	"abs(sin(1.0) - 0.8414709848078965) < 1e-14",
	"abs(cos(1.0) - 0.5403023058681398) < 1e-14",
	"abs(tanh(1.0) - 0.7615941559557649) < 1e-14",
	"abs(erf(1.0) - 0.8427007929497149) < 1e-14",
	"floor(-1.5) == -2.0",
	"ceil(-1.5) == -1.0",
	"round(2.5) == 2.0",
	"round(-3.5) == -4.0",
	"sigmoid(0.0) == 0.5",
	"abs(-2.5) == 2.5",
	"abs((-2.5).to(f16)).dtype == f16",
	"abs(-3) == 3",
	"abs((-128).to(i8)) == -128",
	"isnan(nan)",
	"!isnan(inf)",
	"isinf(-inf)",
	"!isinf(1.0)",
	"exp((0).to(f16)).dtype == f16",
	/* extrema: nan is ignored, -0 is below +0 */
	"maximum(1.0, nan) == 1.0",
	"maximum(nan, 1.0) == 1.0",
	"isnan(minimum(nan, nan))",
	"1.0 / maximum(-0.0, 0.0) > 0.0",
	"1.0 / maximum(0.0, -0.0) > 0.0",
	"1.0 / minimum(-0.0, 0.0) < 0.0",
	"1.0 / minimum(0.0, -0.0) < 0.0",
	"maximum(3, 5) == 5",
	"minimum(3, 5) == 3",
	"maximum(3, 2.5) == 3.0",
	"maximum(true, false)",
	"!minimum(true, false)",
	"clamp(7, 0, 5) == 5",
	"clamp(-7, 0, 5) == 0",
	"clamp(3, 0, 5) == 3",
	"minimum(BYTE, 255) == 200",
	"maximum(-1.0, -2.0) == -1.0",
	/* the rest */
	"fma(2.0, 3.0, 4.0) == 10.0",
	"fma(2, 3.0, 4) == 10.0",
	"div_rn(1.0, 4.0) == 0.25",
	"pow(2.0, 10.0) == 1024.0",
	"pow(2, 0.5) == pow(2.0, 0.5)",
	"pow(nan, 0.0) == 1.0",
	"where(true, 1, 2) == 1",
	"where(false, 1, 2) == 2",
	"where(true, true, false)",
	"!where(false, true, false)",
	"where(true, 1, 2.5).dtype == f32",
	"where(true, BYTE, 1).dtype == u8",
	"cdiv(7, 2) == 4",
	"cdiv(8, 2) == 4",
	"cdiv(-7, 2) == -3",
	"umulhi((4294967295).to(u32), (4294967295).to(u32)) == 4294967294",
	"umulhi((-1).to(i32), (1).to(i32)) == -1",
	"umulhi((18446744073709551615).to(u64), (18446744073709551615).to(u64)) == 18446744073709551614",
	"umulhi(-2147483648, 4) == -2",
	"umulhi((-9223372036854775808).to(i64), (4).to(i64)) == -2",
	"next_pow2(1) == 1",
	"next_pow2(5) == 8",
	"next_pow2(4611686018427387904) == 4611686018427387904",
	"next_extent(0) == 16 && next_extent(16) == 16 && next_extent(17) == 32",
	"next_extent(128) == 128 && next_extent(129) == 160 && next_extent(781) == 896",
	"next_extent(1000) == 1024 && next_extent(2560) == 2560 && next_extent(5000) == 5120",
	"next_extent(7168) == 7168 && next_extent(12672) == 14336 && next_extent(16385) == 20480",
	"zeros_like(7) == 0",
	"zeros_like((7).to(u8)).dtype == u8",
	"multiple_of(6, 2) == 6",
	/* casts: to integers towards 0, saturating, nan gives 0; bits */
	"(2.9).to(i32) == 2",
	"(-2.9).to(i32) == -2",
	"(1e10).to(i32) == 2147483647",
	"(-1.0).to(u8) == 0",
	"nan.to(i32) == 0",
	"(300).to(u8) == 44",
	"(1e30).to(f8e4m3).to(f32) == 448.0",
	"0x3c00.to(f16, bitcast = true) == 1.0",
	"(-1).to(u8, bitcast = true) == 255",
	"(255).to(i8, bitcast = true) == -1",
	"(1.0).to(u32, bitcast = true) == 0x3f800000",
	"(-1).to(f64, bitcast = true) != 0",
	"(5).to(bool)",
	"!(0).to(bool)",
	"(3000000000).to(i32, bitcast = true) == -1294967296",
	/* types, strings, tuples */
	"f32 == f32",
	"f32 != f16",
	"f32 != tensor",
	"tensor == tensor",
	"type != shape",
	"*f32 == *f32",
	"*f32 != *const f32",
	"f32[8] == f32[8]",
	"f32[8] != f32[4]",
	"\"a\" == \"a\"",
	"\"a\" != \"b\"",
	"\"a\" != \"ab\"",
	"\"\" == \"\"",
	"(1, 2) == (1, 2)",
	"(1, 2) != (1, 3)",
	"(1, 2) != (1, 2, 3)",
	"(1, 2) == (1.0, 2)",
	"(1.5, 2) != (1, 2)",
	"(1.5,) == (1.5,)",
	"(f32, 1) == (f32, 1)",
	"(f32, 1) != (1, f32)",
	"(\"a\", None) == (\"a\", None)",
	"(exp, id) == (exp, id)",
	"(exp, id) != (log, id)",
	"(exp, id) != (exp, add)",
	"((1, 2), 3) == ((1, 2), 3)",
	"() == ()",
	"is_type((i32, f32), (i32, f32))",
	"!is_type((i32, f32), (i32, f16))",
	"!is_type((i32, f32), (i32,))",
	"!is_type((i32, f32), i32)",
	"!is_type((i32, (f32, i8)), (i32, (f32, u8)))",
	"is_shape(4, (4,))",
	"is_shape((4, 2 * 4), (4, 8))",
	"is_shape((), ())",
	"(1, 2, 3)[-1] == 3",
	"(1, 2, 3)[0] == 1",
	"i.shape == (64,)",
	"i.shape[0] == 64",
	"n.shape == ()",
	"i.dtype == i32",
	"x.dtype == *f32",
	"(x + i).dtype == *f32",
	"x.elem == f32",
	"(x + i).elem == f32",
	"f32.bytes == 4",
	"(*f32).bytes == 8",
	"f32[8, 4].bytes == 128",
	"f32[8, 4].shape == (8, 4)",
	"f32[8].dtype == f32",
	"(*f16).elem == f16",
	"A.shape[0] == 64",
	"A.strides[1] == 1",
	"A.dtype == f32",
	"A.elem == f32",
	"A.base.dtype == *f32",
	"true ? true : 1 / 0 == 0",
	"(n > 0).dtype == bool",
	"[1, 2] == (1, 2)",
	/* results of operators on run-time values */
	"(n + l).dtype == i64",
	"(b + z).dtype == i16",
	"(n + h).dtype == f16",
	"(h + bf).dtype == f32",
	"(h + f).dtype == f32",
	"(n + 1.5).dtype == f32",
	"(b + 1).dtype == u8",
	"(b + (1).to(i32)).dtype == i32",
	"(u + (7).to(i32)).dtype == u32",
	"(1 << u).dtype == u32",
	"(b << l).dtype == u8",
	"(t ? n : l).dtype == i64",
	"where(t, q, e).dtype == f16",
	"where(t, x, c).dtype == *f32",
	"where(t, c, c).dtype == *const f32",
};

static const char fact_head[] =
	"const BYTE: u8 = 200;  fn id(x) { return x; }  fn add(a, b) { return a + b; }\n"
	"fn is_type(const a: type, const b: type) { return a == b; }  fn is_shape(const a: shape, const b: shape) { "
	"return a == b; }\n"
	"kernel k(x: *f32, c: *const f32, n: i32, l: i64, z: i16, b: u8, u: u32, h: f16, bf: bf16, f: f32, t: bool,\n"
	"\tq: f8e4m3, e: f8e5m2) { let i = arange(0, 64); let A = tensor(x, [64, n]);\n";

static void test_facts(void **state)
{
	(void)state;
	unsigned failed = 0;
	for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
		char source[1024];
		compiled c;
		snprintf(source, sizeof source, "%sstatic_assert(%s); }", fact_head, facts[i]);
		compile_text(&c, source);
		if (c.ds.errors) {
			print_error("%s\n%s", facts[i], c.rendered.at);
			failed++;
		}
		compiled_free(&c);
	}
	assert_int_equal(failed, 0);
}

/* ---- what static_print says ---- */

static void test_printed(void **state)
{
	(void)state;
	static const struct {
		const char *values, *text;
	} rows[] = {
		{"", ""},
		{"\"a\", 1, 2.5, true", "a 1 2.5 true"},
		{"f32, *const f16, f32[8, 4]", "f32 *const f16 f32[8,4]"},
		{"(1, 2), (1,), (), (f32, (\"s\", 3))", "(1, 2) (1,) () (f32, (s, 3))"},
		{"1e300, 3.0, nan, -inf, inf", "1e+300 3.0 nan -inf inf"},
		{"18446744073709551615, -9223372036854775808", "18446744073709551615 -9223372036854775808"},
		{"n, None, exp", "i32 None the built-in function 'exp'"},
		{"false, (i32, shape, type, tensor)", "false (i32, shape, type, tensor)"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char source[512];
		compiled c;
		snprintf(source, sizeof source, "kernel k(n: i32) { static_print(%s); }", rows[i].values);
		compile_text(&c, source);
		assert_non_null(c.ds.first);
		assert_int_equal(c.ds.first->severity, DIAG_NOTE);
		assert_string_equal(c.ds.first->message, rows[i].text);
		assert_null(c.ds.first->next);
		compiled_free(&c);
	}
}

/* ---- tile IR ---- */

/* A statement, and lines that its IR has, separated by a newline; behind a '!' what it has not. */
static void test_becomes(void **state)
{
	(void)state;
	static const struct {
		const char *statement, *lines;
	} rows[] = {
		/* pointers */
		{"store(2 + x, 1.0);", "const {value=2} : i32\nptr_add %x"},
		{"store(x - n, 1.0);", "convert %n : i64\n = neg %"},
		{"store(x + 5000000000, 1.0);", "const {value=5000000000} : i64"},
		{"store(x - 3, 1.0);", "const {value=-3} : i32"},
		{"store(p, (x == c).to(i32));", "bitcast %c : *f32\neq %x"},
		{"store(p, (c + n < x).to(i32));", "lt %\n : *f32\n!(*"},
		{"store(where(t, x, c).to(*f32), 1.0);", "select %t, %x, %\nbitcast %c : *f32\n!(*"},
		{"store(where(t, x, x.to(*f32)), 1.0);", "select %t, %x, %x : *f32"},
		{"store((1024).to(*f32), 1.0);", "const {value=1024} : u64\nbitcast %3 : *f32"},
		{"store((l + 8).to(*f32), 1.0);", " : *f32\nbitcast"},
		{"store(p, n.to(i32, bitcast = true));", "store %p, %n"},
		{"store(p, u.to(i32, bitcast = true));", "bitcast %u : i32"},
		{"store(p, x.to(u64));", "bitcast %x : u64"},
		{"store(reshape(x + i, [8, 8]), 1.0);", "reshape %\n(*f32)[8,8]"},
		/* shifts: a count of a wider type keeps its upper bits */
		{"store(p, b.to(u8) << l);", "bitcast %l : u64\nmin %\nconst {value=8} : u64\n : u8"},
		{"store(p, n << 40);", "const {value=32} : i32\nshl %n"},
		{"store(p, n << -1);", "const {value=32} : i32"},
		{"store(p, 1 << u);", "const {value=1} : u32\nshl %3, %u : u32"},
		{"store(p, (1).to(u8) << n);", "const {value=1} : u8\n : u32\nmin %"},
		{"store(p, n >> b);", "convert %b : i32\nshr %n"},
		/* operators */
		{"store(p, ~n);", "not %n : i32"},
		{"store(p, (~t).to(i32));", "not %t : bool"},
		{"store(x, -f);", "neg %f : f32"},
		{"store(p, umulhi(u, 7));", "umulhi %u"},
		{"store(x, pow(f, 2));", "mul %f, %f : f32\n!pow"},
		{"store(x, pow(f, 2.5));", "pow %f"},
		{"store(x, div_rn(h, 3.0));", "convert %h : f32\ndiv_rn %\n : f16"},
		{"store(p, abs(u));", "!abs"},
		{"store(p, abs(n));", "abs %n : i32"},
		{"store(x, rsqrt(f));", "rsqrt %f"},
		{"store(p, isinf(f).to(i32));", "abs %f\neq %"},
		{"store(p, max(n, 3));", "max %n"},
		{"store(p, min(n, u8_(b)));", "min %n"},
		/* && and || : without an effect on the right both sides are computed */
		{"store(p, (t && n > 3).to(i32));", "and %t, %\n!if"},
		{"store(p, (t || n > 3).to(i32));", "or %t, %\n!if"},
		{"store(p, (t && true).to(i32));", "convert %t : i32\n! and %"},
		{"store(p, (t || false).to(i32));", "convert %t : i32\n! or %"},
		{"store(p, (t && false).to(i32));", "and %t"},
		{"store(p, (t && load(p) > 3).to(i32));", "if %t : bool\n! and %"},
		{"store(p, (t || load(p) > 3).to(i32));", "if %t : bool\n! or %"},
		{"store(p, (true && t).to(i32));", "convert %t : i32\n! and %"},
		/* ?: */
		{"store(p, t ? n : 3);", "select %t, %n\n!if"},
		{"store(p, t ? load(p) : 3);", "if %t : i32\n!select"},
		{"let s = t ? (n, 1) : (1, n); store(p, s[0] + s[1]);", "if %t : i32, i32"},
		{"let s = t ? (f, 1) : (1, 1); store(x, s[0]);", "const {value=1.0} : f32"},
		{"let s = t ? (1, 1) : (f, 1); store(x, s[0]);", "const {value=1.0} : f32"},
		{"let s = t ? (l, 1) : ((1).to(i32), 1); store(p, s[0]);", "const {value=1} : i64"},
		{"let s = t ? (1, n) : ((2).to(u8), n); store(p, s[0]);", "const {value=1} : u8\nconst {value=2} : u8"},
		{"let s = t ? ((2).to(u8), n) : (1, n); store(p, s[0]);", "const {value=1} : u8\nconst {value=2} : u8"},
		{"let s = t ? (1, n) : (2.5, n); store(x, s[0]);", "const {value=1.0} : f32\nconst {value=2.5} : f32"},
		{"let s = t ? (1.5, n) : (2, n); store(x, s[0]);", "const {value=1.5} : f32\nconst {value=2.0} : f32"},
		{"let s = t ? (5, n) : (5000000000, n); store(p, s[0]);", "const {value=5} : i64"},
		{"let T = t ? f32 : f32; store(x, n.to(T));", "convert %n : f32"},
		{"let F = t ? (\"relaxed\", n) : (\"relaxed\", 1); atomic_add(p, F[1], sem = F[0]);",
			"if %t : i32\natomic_rmw"},
		{"let S = t ? A : tensor(x, [n, 64]); store(p, S.shape[0]);", "if %t : *f32, i32, i32, i64, i32"},
		{"let b2 = t ? bp : advance(bp, [n, 8]); store(b2, 1.0);", "if %t : *f32, "},
		/* the same on both ways is no result of the `if` */
		{"store(p, either(t, 1, 1));", "const {value=1} : i32\n!if %t :"},
		{"store(x, either(t, 1.5, 1.5));", "const {value=1.5} : f32\n!if %t :"},
		{"store(x, either(t, nan, nan));", "const {value=0x7fc00000} : f32\n!if %t :"},
		{"store(x, either(t, 0.0, -0.0));", "if %t : f32\nconst {value=-0.0} : f32"},
		{"store(x, either(t, 1.5, nan));", "if %t : f32"},
		{"store(x, either(t, nan, 1.5));", "if %t : f32"},
		{"store(p, either(t, 1, 2));", "if %t : i32"},
		{"store(p, either(t, 1, (1).to(i32)));", "if %t : i32"},
		{"store(p, either(t, (1, n), (1, n))[1]);", "!if %t :"},
		{"store(p, either(t, (1, n), (2, n))[1]);", "if %t : i32, i32"},
		{"store(p, either(t, A, A).shape[1]);", "!if %t :"},
		{"store(p, either(t, tensor(x, [n, 4]), tensor(x, [n, 4])).shape[0]);", "!if %t :"},
		{"store(p, either(t, tensor(x, [n, 4]), tensor(x, [n, 8])).shape[0]);",
			"if %t : *f32, i32, i32, i64, i32"},
		{"store(p, either(t, tensor(x, [n, 4], [n, 1]), tensor(x, [n, 4], [4, 1])).shape[0]);",
			"if %t : *f32, i32, i32, i32, i32"},
		{"store(p, either(t, tensor(x, [n]), tensor(y, [n])).shape[0]);", "if %t : *f32, i32, i32"},
		{"store(either(t, bp, bp), 1.0);", "!if %t :"},
		{"store(either(t, block_ptr(A, [0, n], [8, 8]), block_ptr(A, [0, n], [8, 8])), 1.0);", "!if %t :"},
		{"store(either(t, block_ptr(A, [0, n], [8, 8]), block_ptr(A, [0, 8], [8, 8])), 1.0);",
			"if %t : *f32, i32"},
		{"store(either(t, block_ptr(A, [0, 0], [8, 8]), block_ptr(tensor(y, [64, n]), [0, 0], [8, 8])), 1.0);",
			"if %t : *f32, i32"},
		/* on a way that does not return yet, the result is a zero of its type */
		{"store(inner(t, n, x, y), 1.0);", "const {value=0} : i64\n : *f32"},
		{"store(x, inner(t, n, f, 1.5));", "const {value=0.0} : f32"},
		{"let s = inner(t, n, (n, A), (1, A)); store(p, s[0] + s[1].shape[1]);", "const {value=0} : i64"},
		{"var s = (n, bp); s = (1, advance(bp, [8, 8])); store(s[1], 1.0);",
			"const {value=8} : i32\ntensor_store"},
		{"store(inner(t, n, bp, advance(bp, [8, n])), 1.0);",
			"if %t : *f32, i32, i32, i64, i32, i32, i32, bool"},
		/* calls */
		{"device_print(\"v\", n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, l);",
			"print %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %l"},
		{"device_print(\"v\", n, i, arange(0, 4)[:, None]);", "print %n, %\nbroadcast %\n : i32[4,64]"},
		{"store(p, reduce(i, 0, assumes));", " = reduce\n = add %a, %b\n!assume"},
		{"let (r, s) = inline_asm(\"x\", \"=r,=r,r,r\", [n, i], (i32, i32)); store(p + i, r);",
			"inline_asm %\nsplat %n"},
		/* tensors */
		{"tensor(x, [u]).store([0], i);", "convert %u : i64\ntensor_store %x"},
		{"tensor(x, [64]).store([b], i);", "convert %b : i64"},
		{"tensor(x, [64]).store([l], i);", "tensor_store %x, %\n%l\n!convert %l"},
		{"tensor(p, [64]).atomic_add([n], i);", "tensor_atomic_add %p"},
	};
	unsigned failed = 0;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char source[1024], line[128];
		compiled c;
		snprintf(source, sizeof source,
			"fn assumes(a, b) { assume(a > 0); return a + b; }\n"
			"fn either(t, a, b) { if t { return a; } else { return b; } }  fn u8_(x) { return x.to(u8); }\n"
			"fn inner(t, n, a, b) { if t { if n > 3 { return a; } } return b; }\n"
			"kernel k(x: *f32, y: *f32, c: *const f32, p: *i32, n: i32, l: i64, b: u8, u: u32, h: f16, f: "
			"f32, t: bool) {\n"
			"let i = arange(0, 64); let A = tensor(x, [64, n]); let bp = block_ptr(A, [0, 0], [8, 8]); %s "
			"}",
			rows[i].statement);
		compile_text(&c, source);
		for (const char *l = rows[i].lines; *l; l += strcspn(l, "\n"), l += *l == '\n') {
			bool absent = *l == '!';
			snprintf(line, sizeof line, "%.*s", (int)strcspn(l + absent, "\n"), l + absent);
			if (c.func && !strstr(c.ir.at, line) == absent) continue;
			print_error("%s\n  %s: %s\n%s%s", rows[i].statement, absent ? "has" : "lacks", line,
				c.rendered.at, c.func ? c.ir.at : "");
			failed++;
		}
		compiled_free(&c);
	}
	assert_int_equal(failed, 0);
}

/* ---- offsets of i32 that overflow ---- */

/* pid is 0 .. 99,999, so that pid * 70,000 is above 2^31 at its end and pid * 20,000 is not; n is what the host gives.
 */
static void test_overflow(void **state)
{
	(void)state;
	static const struct {
		const char *body;
		unsigned warnings;
	} rows[] = {
		{"store(x + pid * 70000, 1.0);", 1},
		{"store(x + pid * 20000, 1.0);", 0},
		{"store(x + 70000 * pid, 1.0);", 1},
		{"store(x - pid * 70000, 1.0);", 1}, /* negated in 64 bits, which is too late */
		{"store(x + (0 - pid * 70000), 1.0);", 1},
		{"store(x + -(pid * 70000), 1.0);", 1},
		{"store(x + (5 + pid * 70000), 1.0);", 1},
		{"store(x + (pid * 70000).to(i64), 1.0);", 1},
		{"store(x + (pid * 70000).to(i64) * 2, 1.0);", 1},
		{"store(x + maximum(pid * 70000, 3), 1.0);", 1},
		{"store(x + (pid * 70000 << 1), 1.0);", 1},
		{"store(x + (pid << 16), 1.0);", 1},
		{"store(x + (pid << 8), 1.0);", 0},
		{"store(x + (pid << (pid - 99900)), 1.0);", 0}, /* by 99: 0 */
		{"store(x + (1 << pid) * 70000, 1.0);", 0},
		{"store(x + (pid * 70000 + arange(0, 8)), 1.0);", 1},
		{"store(x + (pid * 70000 + arange(0, 8).reshape([2, 4])), 1.0);", 1},
		{"store(x + reshape(pid * 70000 + arange(0, 8), [2, 4]), 1.0);", 1},
		{"store(x + trans((pid * 70000 + arange(0, 8)).reshape([2, 4])), 1.0);", 1},
		{"store(x + multiple_of(pid * 70000, 16), 1.0);", 1},
		/* what is cut afterwards wraps on purpose */
		{"store(x + (pid * 70000 & 1023), 1.0);", 0},
		{"store(x + pid * 70000 / 8, 1.0);", 0},
		{"store(x + pid * 70000 % 8, 1.0);", 0},
		{"store(x + minimum(pid * 70000, 3), 1.0);", 0},
		{"store(x + (pid * 70000 >> 8), 1.0);", 0},
		{"store(x + (pid.to(u32) * 70000), 1.0);", 0},
		{"store(x + (pid.to(i16) * 700), 1.0);", 0},
		{"store(x + (pid.to(i64) * 70000), 1.0);", 0},
		{"store(x + pid.to(i64) * 4611686018427387904, 1.0);", 0},
		{"store(x + (pid.to(f32) * 70000.0).to(i32), 1.0);", 0},
		/* what is known at the last place */
		{"store(x + minimum(pid, 7) * 70000, 1.0);", 0},
		{"store(x + maximum(pid, 7) * 70000, 1.0);", 1},
		{"store(x + maximum(minimum(pid, 5), 7) * 70000, 1.0);", 0},
		{"store(x + maximum(-pid, 7) * 70000, 1.0);", 0},
		{"store(x + minimum(pid, 50000) * 70000, 1.0);", 1},
		{"store(x + pid / 2 * 70000, 1.0);", 1},
		{"store(x + pid / 4 * 70000, 1.0);", 0},
		{"store(x + pid % 8 * 70000, 1.0);", 0},
		{"store(x + pid % 65536 * 70000, 1.0);", 1},
		{"store(x + (pid >> 1) * 70000, 1.0);", 1},
		{"store(x + (pid >> 8) * 70000, 1.0);", 0},
		{"store(x + (pid & 65535) * 70000, 1.0);", 1},
		{"store(x + (pid & 255) * 70000, 1.0);", 0},
		{"store(x + (99999 - pid) * 70000, 1.0);", 0},
		{"store(x + 7 / (99999 - pid) * 70000000, 1.0);", 0}, /* by zero */
		{"store(x + 7 % (99999 - pid) * 70000000, 1.0);", 0},
		{"store(x + (pid >> (99998 - pid)) * 70000, 1.0);", 0}, /* by -1 */
		{"store(x + (pid >> pid) * 70000, 1.0);", 0},
		{"store(x + num_programs(0) * 70000, 1.0);", 1},
		{"store(x + num_programs(1) * 70000, 1.0);", 0},
		{"store(x + program_id(1) * 70000 * 70000, 1.0);", 0},
		{"store(x + pid * n, 1.0);", 0},
		/* a bound that an assumption gives */
		{"assume(n >= 70000); store(x + pid * n, 1.0);", 1},
		{"assume(n > 70000); store(x + pid * n, 1.0);", 1},
		{"assume(70000 <= n); store(x + pid * n, 1.0);", 1},
		{"assume(70000 < n); store(x + pid * n, 1.0);", 1},
		{"assume(n.to(i64) >= 70000); store(x + pid * n, 1.0);", 1},
		{"assume((n >= 70000) & t); store(x + pid * n, 1.0);", 1},
		{"assume(t); store(x + pid * n, 1.0);", 0},
		{"assume(n <= 70000); store(x + pid * n, 1.0);", 0},
		{"assume(n == 70000); store(x + pid * n, 1.0);", 0},
		{"assume(n >= -5); store(x + pid * n, 1.0);", 0},
		{"assume(n >= m); store(x + pid * n, 1.0);", 0},
		{"assume(n + 1 >= 70000); store(x + pid * n, 1.0);", 0},
		{"assume(u >= 70000); store(x + pid * u.to(i32), 1.0);", 0},
		{"assume(n >= 100); assume(n >= 70000); store(x + pid * n, 1.0);", 0}, /* the first one counts */
		{"assume(n >= 21475); store(x + pid * n, 1.0);", 0},                   /* 2,147,478,525: fits */
		{"assume(n >= 21476); store(x + pid * n, 1.0);", 1},
		{"assume(n > 21475); store(x + pid * n, 1.0);", 1},
		{"assume(n > 21474); store(x + pid * n, 1.0);", 0},
		{"assume(where(t, n >= 70000, n >= 80000)); store(x + pid * n, 1.0);", 0},
		{"assume(n >= 70000); store(x + multiple_of(n, 16) * pid, 1.0);", 1},
		{"assume(n >= 70000); store(x + (pid - 99999) * n, 1.0);", 0},
		{"assume(n >= 70000); store(x + (pid - 100005) * n, 1.0);", 0},
		{"assume(n >= 70000); store(x + n * (pid - 100005), 1.0);", 0},
		{"assume(n >= 70000); store(x + n / 2 * pid, 1.0);", 0},
		{"assume(n >= 70000); store(x + (n - 1) * pid, 1.0);", 0},
		{"assume(n >= 70000); store(x + (n + arange(0, 8)) * pid, 1.0);", 1},
		/* loops with known bounds, in their last round */
		{"for i in range(0, 70000) { store(x + i * 70000, 1.0); }", 1},
		{"for i in range(0, 30000) { store(x + i * 70000, 1.0); }", 0},
		{"for i in range(0, 70000, 69999) { store(x + i * 70000, 1.0); }", 1},
		{"for i in range(0, 70000, 70000) { store(x + i * 70000, 1.0); }", 0},
		{"for i in range(70000, 70000) { store(x + i * 70000, 1.0); }", 0},
		{"for i in range(70000, 0, -1) { store(x + i * 70000, 1.0); }", 0},
		{"for i in range(0, n) { store(x + pid * 70000, 1.0); }", 0},
		{"for i in range(n, 70000) { store(x + pid * 70000, 1.0); }", 0},
		{"for i in range(0, 70000, n) { store(x + pid * 70000, 1.0); }", 0},
		{"assume(n >= 7); for i in range(0, n) { store(x + pid * 70000, 1.0); }", 0},
		{"assume(n >= 7); for i in range(n, 70000) { store(x + pid * 70000, 1.0); }", 0},
		{"assume(n >= 7); for i in range(0, 70000, n) { store(x + pid * 70000, 1.0); }", 0},
		{"var s = 0; for i in range(0, 70000) { s += i; store(x + i * 70000, s); }", 1},
		{"if t { store(x + pid * 70000, 1.0); }", 0},
	};
	unsigned failed = 0;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char source[512];
		compiled c;
		snprintf(source, sizeof source,
			"kernel k(x: *f32, n: i32, m: i32, u: u32, t: bool) grid(100000) { let pid = program_id(0); %s "
			"}",
			rows[i].body);
		compile_text(&c, source);
		const diag *d = c.ds.first;
		if (c.ds.errors || c.ds.warnings != rows[i].warnings || (d && d->code != 220)) {
			print_error("%s: %u warnings, expected %u\n%s", rows[i].body, c.ds.warnings, rows[i].warnings,
				c.rendered.at);
			failed++;
		}
		compiled_free(&c);
	}
	assert_int_equal(failed, 0);
}

/* The label under an operand that was made elsewhere says where. */
static void test_origins(void **state)
{
	(void)state;
	static const struct {
		const char *body, *label;
	} rows[] = {
		{"let s = load(p); s + u;", "i32, loaded at t.blk:1:45"},
		{"let s = sum(arange(0, 8)); s + u;", "i32, reduced at t.blk:1:45"},
		{"let s = n * 2; s + u;", "i32, made at t.blk:1:45"},
		{"n + u;", "i32 'n'"},
		{"n * 2 + u;", "i32"},
		{"(3).to(i32) + u * 0 + n;", "u32"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char source[256];
		compiled c;
		snprintf(source, sizeof source, "kernel k(p: *i32, n: i32, u: u32) { %s }", rows[i].body);
		compile_text(&c, source);
		const diag *d = c.ds.first;
		assert_int_equal(c.ds.errors, 1);
		assert_int_equal(d->code, 205);
		if (strcmp(d->labels->text, rows[i].label) != 0)
			fail_msg("%s: %s\n%s", rows[i].body, rows[i].label, c.rendered.at);
		compiled_free(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_printed),
		cmocka_unit_test(test_becomes),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_origins),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
