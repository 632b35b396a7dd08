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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_printed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
