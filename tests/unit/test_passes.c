/* The passes of the tile level: text before, text after.  Expected values are worked out by hand from language.md. */
#include "ir_random.h"

#include <fenv.h>
#include <math.h>

#include "ir/fold.h"
#include "../../compiler/passes/passes.h"

typedef bool pass(pass_context *, ir_func *);

static ir_func *run(pass *p, ir_func *f)
{
	pass_context context = {.arena = &memory, .diags = &messages};
	assert_true(p(&context, f));
	check_verifies(f);
	return f;
}

#define HEAD                                                                                                           \
	"func @f(%i: i32, %j: i32, %u: u32, %l: i64, %x: f32, %d: f64, %b: bool, %p: *f32, %q: *const f32) "           \
	"num_warps=4 num_stages=3 num_ctas=1 {\n"

static const char *in_function(const char *body)
{
	return arena_printf(&memory, "%s%s  return\n}\n", HEAD, body);
}

/* `before` becomes `after`, in a function with one parameter of each common type. */
static void check_pass(pass *p, const char *before, const char *after)
{
	assert_string_equal(print(run(p, read_text(in_function(before)))), in_function(after));
}

/* canonicalise, then dead code: what is left of an expression whose value `%r` is kept by a print. */
static void check_simple(const char *before, const char *after)
{
	ir_func *f = read_text(in_function(arena_printf(&memory, "%s  print %%r {text=\"\"}\n", before)));
	run(pass_dce, run(pass_canonicalise, f));
	/* names are not the point: both sides are printed without them */
	ir_func *g = read_text(in_function(arena_printf(&memory, "%s  print %%r {text=\"\"}\n", after)));
	for (int side = 0; side < 2; side++)
		for (ir_op *o = (side ? g : f)->body->first; o; o = o->next)
			for (unsigned i = 0; i < o->nresults; i++) o->results[i]->name = NULL;
	assert_string_equal(print(f), print(g));
}

/* An operation on constants of one type gives this constant. */
static void check_fold(
	const char *op, const char *type, const char *a, const char *b, const char *result_type, const char *expected)
{
	text t = {.arena = &memory};
	text_printf(&t, "%%a = const {value=%s} : %s\n", a, type);
	if (b) text_printf(&t, "%%c = const {value=%s} : %s\n", b, type);
	text_printf(&t, "%%r = %s %%a%s : %s\n", op, b ? ", %c" : "", result_type);
	if (expected)
		check_simple(t.at, arena_printf(&memory, "%%r = const {value=%s} : %s\n", expected, result_type));
	else
		check_simple(t.at, t.at); /* stays */
}

static void integers_fold(void **state)
{
	(void)state;
	check_fold("add", "i32", "2147483647", "1", "i32", "-2147483648");
	check_fold("add", "u8", "250", "10", "u8", "4");
	check_fold("sub", "u16", "1", "2", "u16", "65535");
	check_fold("mul", "i32", "65536", "65536", "i32", "0");
	check_fold("mul", "i64", "-3", "7", "i64", "-21");
	check_fold("div", "i32", "-7", "2", "i32", "-3");
	check_fold("rem", "i32", "-7", "2", "i32", "-1");
	check_fold("div", "i32", "-2147483648", "-1", "i32", "-2147483648");
	check_fold("rem", "i32", "-2147483648", "-1", "i32", "0");
	check_fold("div", "i64", "-9223372036854775808", "-1", "i64", "-9223372036854775808");
	check_fold("div", "i8", "-128", "-1", "i8", "-128");
	check_fold("div", "u32", "4294967295", "2", "u32", "2147483647");
	check_fold("rem", "u64", "18446744073709551615", "10", "u64", "5");
	check_fold("div", "i32", "7", "0", "i32", NULL);
	check_fold("rem", "u32", "7", "0", "u32", NULL);
	check_fold("neg", "i32", "-2147483648", NULL, "i32", "-2147483648");
	check_fold("neg", "u8", "1", NULL, "u8", "255");
	check_fold("abs", "i8", "-128", NULL, "i8", "-128");
	check_fold("abs", "i8", "-5", NULL, "i8", "5");
	check_fold("abs", "u8", "200", NULL, "u8", "200");
	check_fold("max", "i8", "-1", "1", "i8", "1");
	check_fold("max", "u8", "255", "1", "u8", "255");
	check_fold("min", "i8", "-1", "1", "i8", "-1");
	check_fold("max", "bool", "false", "true", "bool", "true");
	check_fold("shl", "i32", "1", "31", "i32", "-2147483648");
	check_fold("shl", "i32", "1", "32", "i32", "0");
	check_fold("shl", "i32", "3", "64", "i32", "0");
	check_fold("shl", "i64", "1", "64", "i64", "0");
	check_fold("shl", "i32", "1", "-1", "i32", "0"); /* the count is taken unsigned */
	check_fold("shl", "u8", "1", "8", "u8", "0");
	check_fold("shr", "i32", "-8", "1", "i32", "-4");
	check_fold("shr", "i32", "-8", "40", "i32", "-1");
	check_fold("shr", "i32", "8", "40", "i32", "0");
	check_fold("shr", "i64", "-8", "64", "i64", "-1");
	check_fold("shr", "u64", "18446744073709551615", "63", "u64", "1");
	check_fold("shr", "u32", "4294967295", "32", "u32", "0");
	check_fold("and", "u8", "12", "10", "u8", "8");
	check_fold("or", "u8", "12", "10", "u8", "14");
	check_fold("xor", "u8", "12", "10", "u8", "6");
	check_fold("not", "i32", "0", NULL, "i32", "-1");
	check_fold("not", "bool", "true", NULL, "bool", "false");
	check_fold("popcount", "i8", "-1", NULL, "i8", "8");
	check_fold("popcount", "u64", "18446744073709551615", NULL, "u64", "64");
	check_fold("clz", "i8", "1", NULL, "i8", "7");
	check_fold("clz", "u16", "0", NULL, "u16", "16");
	check_fold("clz", "i64", "-1", NULL, "i64", "0");
	check_fold("brev", "i16", "1", NULL, "i16", "-32768");
	check_fold("brev", "u64", "2", NULL, "u64", "4611686018427387904");
	check_fold("umulhi", "u32", "4294967295", "4294967295", "u32", "4294967294");
	check_fold("umulhi", "i32", "-1", "1", "i32", "-1");
	check_fold("umulhi", "i32", "-2147483648", "-2147483648", "i32", "1073741824");
	check_fold("umulhi", "u64", "18446744073709551615", "18446744073709551615", "u64", "18446744073709551614");
	check_fold("umulhi", "i64", "-1", "1", "i64", "-1");
	check_fold("umulhi", "i64", "-9223372036854775808", "-9223372036854775808", "i64", "4611686018427387904");
	check_fold("umulhi", "i64", "9223372036854775807", "-9223372036854775808", "i64", "-4611686018427387904");
}

static void floats_fold(void **state)
{
	(void)state;
	check_fold("max_nan", "f32", "0x7fc00000", "1.0", "f32", "0x7fc00000");
	check_fold("min_nan", "f64", "1.0", "0x7ff8000000000000", "f64", "0x7ff8000000000000");
	check_fold("max_nan", "f16", "-0.0", "0.0", "f16", "0.0");
	check_fold("min_nan", "f32", "2.0", "1.0", "f32", "1.0");
	check_fold("add", "f32", "16777216.0", "1.0", "f32", "16777216.0"); /* ties to even */
	check_fold("add", "f32", "16777216.0", "3.0", "f32", "16777220.0");
	check_fold("add", "f16", "2048.0", "1.0", "f16", "2048.0");
	check_fold("add", "bf16", "256.0", "1.0", "bf16", "256.0");
	check_fold("sub", "f32", "inf", "inf", "f32", "0x7fc00000");
	check_fold("mul", "f16", "300.0", "300.0", "f16", "inf");
	check_fold("mul", "f32", "1e-30", "1e-30", "f32", "0.0");
	check_fold("div", "f32", "1.0", "3.0", "f32", "0x3eaaaaab");
	check_fold("div", "f32", "1.0", "-0.0", "f32", "-inf");
	check_fold("div", "f32", "0.0", "0.0", "f32", "0x7fc00000");
	check_fold("div_rn", "f64", "1.0", "3.0", "f64", "0x3fd5555555555555");
	check_fold("neg", "f32", "0.0", NULL, "f32", "-0.0");
	check_fold("neg", "f32", "0x7fc00001", NULL, "f32", "0xffc00001");
	check_fold("abs", "f16", "-inf", NULL, "f16", "inf");
	check_fold("max", "f32", "-0.0", "0.0", "f32", "0.0");
	check_fold("max", "f32", "0.0", "-0.0", "f32", "0.0");
	check_fold("min", "f32", "-0.0", "0.0", "f32", "-0.0");
	check_fold("min", "f32", "0.0", "-0.0", "f32", "-0.0");
	check_fold("max", "f32", "0x7fc00000", "1.0", "f32", "1.0");
	check_fold("min", "f32", "1.0", "0x7fc00000", "f32", "1.0");
	check_fold("max", "f32", "0xffc00001", "0x7fc00001", "f32", "0x7fc00000");
	check_fold("sqrt", "f32", "2.0", NULL, "f32", "0x3fb504f3");
	check_fold("sqrt", "f64", "4.0", NULL, "f64", "2.0");
	check_fold("sqrt", "f32", "-1.0", NULL, "f32", "0x7fc00000");
	check_fold("exp", "f32", "1.0", NULL, "f32", "0x402df854"); /* 2.71828182.. */
	check_fold("exp2", "f16", "-3.0", NULL, "f16", "0.125");
	check_fold("log2", "bf16", "8.0", NULL, "bf16", "3.0");
	check_fold("rsqrt", "f32", "4.0", NULL, "f32", "0.5");
	check_fold("exp", "f64", "1.0", NULL, "f64", NULL);
	check_fold("rsqrt", "f64", "4.0", NULL, "f64", NULL);
	check_fold("floor", "f32", "-0.5", NULL, "f32", "-1.0");
	check_fold("ceil", "f32", "-0.5", NULL, "f32", "-0.0");
	check_fold("round", "f32", "2.5", NULL, "f32", "2.0");
	check_fold("round", "f64", "3.5", NULL, "f64", "4.0");
	check_fold("pow", "f32", "2.0", "10.0", "f32", "1024.0");
	/* at 1: e - 1, ln 2 twice, and what tables of sin, cos, tanh and erf say */
	check_fold("expm1", "f32", "1.0", NULL, "f32", "0x3fdbf0a9");
	check_fold("log", "f32", "2.0", NULL, "f32", "0x3f317218");
	check_fold("log1p", "f32", "1.0", NULL, "f32", "0x3f317218");
	check_fold("sin", "f32", "1.0", NULL, "f32", "0x3f576aa4");
	check_fold("cos", "f32", "1.0", NULL, "f32", "0x3f0a5140");
	check_fold("tanh", "f32", "1.0", NULL, "f32", "0x3f42f7d6");
	check_fold("erf", "f32", "1.0", NULL, "f32", "0x3f57bb3d");
	static const char *const not_of_f64[] = {"expm1", "log", "log1p", "log2", "sin", "cos", "tanh", "erf"};
	for (unsigned i = 0; i < sizeof not_of_f64 / sizeof *not_of_f64; i++)
		check_fold(not_of_f64[i], "f64", "1.0", NULL, "f64", NULL);
	/* one nan a type */
	check_fold("sub", "f64", "inf", "inf", "f64", "0x7ff8000000000000");
	check_fold("sub", "f16", "inf", "inf", "f16", "0x7e00");
	check_fold("sub", "bf16", "inf", "inf", "bf16", "0x7fc0");
	check_fold("sqrt_rn", "f32", "4.0", NULL, "f32", "2.0");
}

static void check_fma(const char *type, const char *a, const char *b, const char *c, const char *expected)
{
	const char *s = arena_printf(&memory,
		"%%a = const {value=%s} : %s\n%%b.1 = const {value=%s} : %s\n%%c = const {value=%s} : %s\n"
		"%%r = fma %%a, %%b.1, %%c : %s\n",
		a, type, b, type, c, type, type);
	check_simple(s, expected ? arena_printf(&memory, "%%r = const {value=%s} : %s\n", expected, type) : s);
}

static void fma_folds_when_exact(void **state)
{
	(void)state;
	/* (1 + 2^-23)^2 = 1 + 2^-22 + 2^-46; minus 1 + 2^-22: only the fused form keeps 2^-46 */
	check_fma("f32", "0x3f800001", "0x3f800001", "0xbf800002", "0x28800000");
	check_fma("f64", "3.0", "0x3fb999999999999a", "-0.0", "0x3fd3333333333334"); /* 3 * 0.1 */
	check_fma("f16", "3.0", "4.0", "0.5", "12.5");
	check_fma("bf16", "1.0", "256.0", "1.0", "256.0");
	check_fma("f16", "inf", "2.0", "1.0", "inf");
	check_fma("f16", "inf", "0.0", "1.0", "0x7e00");
	check_fma("f16", "60000.0", "60000.0", "0x0001", NULL); /* 2^31 and 2^-24 do not fit one double */
	check_fma("bf16", "0x7e81", "1.0", "0x0001", NULL);
}

/* In another mode of rounding the host would not compute what the device does; integers have none. */
static void nothing_folds_in_another_rounding(void **state)
{
	(void)state;
	static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
	uint64_t out, ones[2] = {1, 2}, halves[2] = {0x3f800000, 0x3f800000};
	for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
		fesetround(modes[i]);
		bool floats = fold_scalar(IR_ADD, SCALAR_F32, SCALAR_F32, halves, &out);
		bool from = fold_scalar(IR_CONVERT, SCALAR_I32, SCALAR_F32, halves, &out);
		bool to = fold_scalar(IR_CONVERT, SCALAR_F32, SCALAR_I32, ones, &out);
		bool integers = fold_scalar(IR_ADD, SCALAR_I32, SCALAR_I32, ones, &out);
		fesetround(FE_TONEAREST);
		assert_false(floats || from || to);
		assert_true(integers);
		assert_int_equal(out, 3);
	}
	assert_true(fold_scalar(IR_ADD, SCALAR_F32, SCALAR_F32, halves, &out));
	assert_int_equal(out, 0x40000000);
	/* nothing is computed on what is for storage, or by what is no arithmetic */
	assert_false(fold_scalar(IR_ADD, SCALAR_F8E4M3, SCALAR_F8E4M3, ones, &out));
	assert_false(fold_scalar(IR_SPLAT, SCALAR_I32, SCALAR_I32, ones, &out));
}

static void comparisons_and_casts_fold(void **state)
{
	(void)state;
	check_fold("lt", "i32", "-1", "1", "bool", "true");
	check_fold("lt", "u32", "4294967295", "1", "bool", "false");
	check_fold("ge", "i64", "5", "5", "bool", "true");
	check_fold("lt", "f32", "0x7fc00000", "1.0", "bool", "false");
	check_fold("ge", "f32", "0x7fc00000", "1.0", "bool", "false");
	check_fold("gt", "f32", "1.0", "0x7fc00000", "bool", "false");
	check_fold("eq", "f32", "0x7fc00000", "0x7fc00000", "bool", "false");
	check_fold("ne", "f32", "0x7fc00000", "0x7fc00000", "bool", "true");
	check_fold("eq", "f32", "0.0", "-0.0", "bool", "true");
	check_fold("eq", "bool", "true", "false", "bool", "false");
	check_fold("convert", "f32", "-1.75", NULL, "i32", "-1");
	check_fold("convert", "f32", "3e9", NULL, "i32", "2147483647");
	check_fold("convert", "f32", "-5.0", NULL, "u8", "0");
	check_fold("convert", "f32", "0x7fc00000", NULL, "i32", "0");
	check_fold("convert", "f32", "1000.0", NULL, "f8e4m3", "448.0");
	check_fold("convert", "i32", "300", NULL, "u8", "44");
	check_fold("convert", "i8", "-1", NULL, "u32", "4294967295");
	check_fold("convert", "i32", "16777217", NULL, "f32", "16777216.0");
	check_fold("convert", "i64", "2", NULL, "bool", "true");
	check_fold("bitcast", "f32", "1.0", NULL, "u32", "1065353216");
}

static void identities(void **state)
{
	(void)state;
#define I(v) "%c = const {value=" v "} : i32\n"
#define F(v) "%c = const {value=" v "} : f32\n"
#define KEEP(s) check_simple(s, s)
	static const struct {
		const char *before, *result;
	} cases[] = {
		{I("0") "%r = add %i, %c : i32\n", "i"},
		{I("0") "%r = add %c, %i : i32\n", "i"},
		{I("0") "%r = sub %i, %c : i32\n", "i"},
		{I("1") "%r = mul %c, %i : i32\n", "i"},
		{I("1") "%r = div %i, %c : i32\n", "i"},
		{"%v = div %i, %j : i32\n%w = mul %v, %j : i32\n%z = rem %i, %j : i32\n%r = add %w, %z : i32\n", "i"},
		{"%v = div %i, %j : i32\n%w = mul %j, %v : i32\n%z = rem %i, %j : i32\n%r = add %z, %w : i32\n", "i"},
		{I("0") "%r = or %c, %i : i32\n", "i"},
		{I("0") "%r = xor %i, %c : i32\n", "i"},
		{I("-1") "%r = and %i, %c : i32\n", "i"},
		{I("0") "%r = shl %i, %c : i32\n", "i"},
		{I("0") "%r = shr %i, %c : i32\n", "i"},
		{"%r = and %i, %i : i32\n", "i"},
		{"%r = or %i, %i : i32\n", "i"},
		{"%r = max %i, %i : i32\n", "i"},
		{"%r = min %i, %i : i32\n", "i"},
		{"%n = neg %i : i32\n%r = neg %n : i32\n", "i"},
		{"%n = neg %x : f32\n%r = neg %n : f32\n", "x"},
		{"%n = not %i : i32\n%r = not %n : i32\n", "i"},
		{"%n = not %b : bool\n%r = not %n : bool\n", "b"},
		{"%c = const {value=true} : bool\n%r = and %c, %b : bool\n", "b"},
		{"%r = select %b, %x, %x : f32\n", "x"},
		{"%t = const {value=true} : bool\n%e = const {value=false} : bool\n%r = select %b, %t, %e : bool\n",
			"b"},
		{F("1.0") "%r = mul %x, %c : f32\n", "x"},
		{F("1.0") "%r = div %x, %c : f32\n", "x"},
		{F("-0.0") "%r = add %x, %c : f32\n", "x"},
		{F("0.0") "%r = sub %x, %c : f32\n", "x"},
		{F("1.0") "%r = pow %x, %c : f32\n", "x"},
		{"%r = convert %i : i32\n", "i"},
		{"%w = convert %i : i64\n%r = convert %w : i32\n", "i"},
		{"%w = convert %x : f64\n%r = convert %w : f32\n", "x"},
		{"%w = convert %i : f64\n%r = convert %w : i32\n", "i"},
		{"%w = bitcast %x : u32\n%r = bitcast %w : f32\n", "x"},
		{I("0") "%r = ptr_add %p, %c : *f32\n", "p"},
		{"%s = splat %x : f32[4]\n%r = reduce %s {axis=0 combine=max} : f32\n", "x"},
	};
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		ir_func *f =
			read_text(in_function(arena_printf(&memory, "%s  print %%r {text=\"\"}\n", cases[i].before)));
		run(pass_dce, run(pass_canonicalise, f));
		assert_string_equal(
			print(f), in_function(arena_printf(&memory, "  print %%%s {text=\"\"}\n", cases[i].result)));
	}
	check_simple("%r = sub %i, %i : i32\n", "%r = const {value=0} : i32\n");
	check_simple("%r = xor %i, %i : i32\n", "%r = const {value=0} : i32\n");
	check_simple(I("0") "%r = mul %i, %c : i32\n", "%r = const {value=0} : i32\n");
	check_simple(I("0") "%r = and %i, %c : i32\n", "%r = const {value=0} : i32\n");
	check_simple(I("-1") "%r = or %i, %c : i32\n", "%r = const {value=-1} : i32\n");
	check_simple(I("1") "%r = rem %i, %c : i32\n", "%r = const {value=0} : i32\n");
	check_simple(I("32") "%r = shl %i, %c : i32\n", "%r = const {value=0} : i32\n");
	check_simple("%r = eq %i, %i : bool\n", "%r = const {value=true} : bool\n");
	check_simple("%r = lt %p, %p : bool\n", "%r = const {value=false} : bool\n");
	check_simple("%n = lt %i, %j : bool\n%r = not %n : bool\n", "%r = ge %i, %j : bool\n");
	check_simple("%n = not %b : bool\n%r = select %n, %i, %j : i32\n", "%r = select %b, %j, %i : i32\n");
	check_simple(I("5") "%r = lt %c, %i : bool\n", I("5") "%r = gt %i, %c : bool\n");
	check_simple(F("8.0") "%r = div %x, %c : f32\n", "%c = const {value=0.125} : f32\n%r = mul %x, %c : f32\n");
	check_simple(F("2.0") "%r = pow %x, %c : f32\n", "%r = mul %x, %x : f32\n");
	/* every f8e4m3 is an f16: 3 bits of fraction and 4 of exponent, against 10 and 5 */
	check_simple("%w = convert %x : f8e4m3\n%v = convert %w : f16\n%r = convert %v : f32\n",
		"%w = convert %x : f8e4m3\n%r = convert %w : f32\n");
	check_simple("%w = convert %i : i64\n%v = convert %w : f32\n%r = convert %v : f64\n",
		"%v = convert %i : f32\n%r = convert %v : f64\n");
	/* what must stay */
	KEEP(F("0.0") "%r = add %x, %c : f32\n");  /* -0 + 0 is +0 */
	KEEP(F("-0.0") "%r = sub %x, %c : f32\n"); /* -0 - -0 is +0 */
	KEEP(F("0.0") "%r = mul %x, %c : f32\n");  /* nan, signs */
	KEEP("%r = sub %x, %x : f32\n");
	KEEP("%r = eq %x, %x : bool\n");
	KEEP("%n = lt %x, %x : bool\n%r = not %n : bool\n");
	KEEP(F("3.0") "%r = div %x, %c : f32\n");
	KEEP(F("0x7f000000") "%r = div %x, %c : f32\n");        /* 2^127: its reciprocal is a denormal */
	KEEP("%w = convert %i : f32\n%r = convert %w : i32\n"); /* 24 bits do not hold an i32 */
	KEEP("%w = convert %i : u32\n%r = convert %w : i64\n"); /* sign lost in between */
	KEEP("%w = convert %i : u64\n%r = convert %w : f32\n");
	KEEP("%w = convert %x : i32\n%r = convert %w : f32\n");
	KEEP("%w = convert %i : f64\n%r = convert %w : i16\n"); /* a float saturates, an integer wraps */
	KEEP("%w = convert %i : f64\n%r = convert %w : u32\n");
	KEEP("%w = convert %i : i8\n%r = convert %w : bool\n"); /* 256 */
	KEEP("%w = convert %i : bool\n%r = convert %w : i32\n");
	KEEP("%w = convert %x : bool\n%r = convert %w : f32\n");
	KEEP("%w = convert %i : f16\n%r = convert %w : i8\n");
	KEEP(I("32") "%r = shr %i, %c : i32\n"); /* the sign */
	KEEP("%r = div %i, %i : i32\n");         /* 0 / 0 */
	KEEP("%v = div %i, %j : i32\n%w = mul %v, %i : i32\n%z = rem %i, %j : i32\n%r = add %w, %z : i32\n");
	KEEP("%v = div %j, %i : i32\n%w = mul %v, %i : i32\n%z = rem %j, %j : i32\n%r = add %w, %z : i32\n");
#undef I
#undef F
#undef KEEP
}

static void shapes(void **state)
{
	(void)state;
	check_simple("%c = const {value=2} : i32\n%s = splat %c : i32[4]\n%e = expand_dims %s {axis=1} : i32[4,1]\n"
		     "%v = broadcast %e : i32[4,8]\n%w = reshape %v : i32[32]\n%r = add %w, %w : i32[32]\n",
		"%r = const {value=4} : i32[32]\n");
	check_simple("%s = splat %x : f32[4]\n%e = expand_dims %s {axis=0} : f32[1,4]\n%v = broadcast %e : f32[8,4]\n"
		     "%w = permute %v {order=[1,0]} : f32[4,8]\n%r = reshape %w : f32[32]\n",
		"%r = splat %x : f32[32]\n");
#define A "%a = arange {lo=0} : i32[8]\n"
	check_simple(A "%v = reshape %a : i32[2,4]\n%w = reshape %v : i32[4,2]\n%r = reshape %w : i32[8]\n",
		"%r = arange {lo=0} : i32[8]\n");
	check_simple(A "%v = reshape %a : i32[2,4,1]\n%w = permute %v {order=[1,2,0]} : i32[4,1,2]\n"
		       "%r = permute %w {order=[1,2,0]} : i32[1,2,4]\n",
		A "%v = reshape %a : i32[2,4,1]\n%r = permute %v {order=[2,0,1]} : i32[1,2,4]\n");
	check_simple(A "%v = reshape %a : i32[2,4,1]\n%w = permute %v {order=[1,2,0]} : i32[4,1,2]\n"
		       "%r = permute %w {order=[1,0,2]} : i32[1,4,2]\n",
		A "%v = reshape %a : i32[2,4,1]\n%r = permute %v {order=[2,1,0]} : i32[1,4,2]\n");
	check_simple(A "%v = reshape %a : i32[2,4]\n%w = permute %v {order=[1,0]} : i32[4,2]\n"
		       "%r = permute %w {order=[1,0]} : i32[2,4]\n",
		A "%r = reshape %a : i32[2,4]\n");
	check_simple(A
		"%e = expand_dims %a {axis=0} : i32[1,8]\n%v = broadcast %e : i32[1,8]\n%r = broadcast %v : i32[4,8]\n",
		A "%e = expand_dims %a {axis=0} : i32[1,8]\n%r = broadcast %e : i32[4,8]\n");
	check_simple(A "%e = expand_dims %a {axis=1} : i32[8,1]\n%r = reduce %e {axis=1 combine=sum} : i32[8]\n",
		A "%e = expand_dims %a {axis=1} : i32[8,1]\n%r = reshape %e : i32[8]\n");
	/* operations on splats are done once */
	check_simple("%s = splat %x : f32[8]\n%c = const {value=3.0} : f32[8]\n%r = mul %c, %s : f32[8]\n",
		"%c = const {value=3.0} : f32\n%m = mul %x, %c : f32\n%r = splat %m : f32[8]\n");
	check_simple("%s = splat %p : (*f32)[8]\n%n = splat %i : i32[8]\n%r = ptr_add %s, %n : (*f32)[8]\n",
		"%m = ptr_add %p, %i : *f32\n%r = splat %m : (*f32)[8]\n");
	/* a range on one side of a constant */
	check_simple(
		A "%c = const {value=8} : i32[8]\n%r = lt %a, %c : bool[8]\n", "%r = const {value=true} : bool[8]\n");
	check_simple(A "%e = expand_dims %a {axis=0} : i32[1,8]\n%c = const {value=8} : i32[1,8]\n%r = ge %e, %c : "
		       "bool[1,8]\n",
		"%r = const {value=false} : bool[1,8]\n");
	check_simple(
		A "%c = const {value=7} : i32[8]\n%r = le %a, %c : bool[8]\n", "%r = const {value=true} : bool[8]\n");
	check_simple(A "%c = const {value=7} : i32[8]\n%r = lt %a, %c : bool[8]\n",
		A "%c = const {value=7} : i32[8]\n%r = lt %a, %c : bool[8]\n");
	check_simple(
		A "%c = const {value=-1} : i32[8]\n%r = gt %a, %c : bool[8]\n", "%r = const {value=true} : bool[8]\n");
	check_simple(A "%c = const {value=0} : i32[8]\n%r = gt %a, %c : bool[8]\n",
		A "%c = const {value=0} : i32[8]\n%r = gt %a, %c : bool[8]\n");
	/* two halves and their whole; one element for every index */
	check_simple(A "%v = reshape %a : i32[4,2]\n%first, %second = split %v : i32[4], i32[4]\n%r = join %first, "
		       "%second : i32[4,2]\n",
		A "%r = reshape %a : i32[4,2]\n");
	check_simple(A "%v = reshape %a : i32[4,2]\n%first, %second = split %v : i32[4], i32[4]\n%r = join %second, "
		       "%first : i32[4,2]\n",
		A "%v = reshape %a : i32[4,2]\n%first, %second = split %v : i32[4], i32[4]\n%r = join %second, %first "
		  ": i32[4,2]\n");
	check_simple(A
		"%n = neg %a : i32[8]\n%v = join %a, %n : i32[8,2]\n%first, %second = split %v : i32[8], i32[8]\n"
		"%r = sub %second, %first : i32[8]\n",
		A "%n = neg %a : i32[8]\n%r = sub %n, %a : i32[8]\n");
	check_simple("%v = const {value=2} : i32[8,2]\n%first, %second = split %v : i32[8], i32[8]\n%r = add %second, "
		     "%first : i32[8]\n",
		"%r = const {value=4} : i32[8]\n");
	check_simple(A "%s = splat %x : f32[4]\n%r = gather %s, %a {axis=0} : f32[8]\n", "%r = splat %x : f32[8]\n");
	check_simple(A "%e = reshape %a : i32[1,8]\n%at = const {value=0} : i32[4,8]\n"
		       "%r = gather %e, %at {axis=0} : i32[4,8]\n",
		A "%e = reshape %a : i32[1,8]\n%r = broadcast %e : i32[4,8]\n");
	check_simple(A "%e = reshape %a : i32[8,1]\n%at = splat %i : i32[8,1]\n"
		       "%r = gather %e, %at {axis=0} : i32[8,1]\n",
		A "%e = reshape %a : i32[8,1]\n%at = splat %i : i32[8,1]\n%r = gather %e, %at {axis=0} : i32[8,1]\n");
#undef A
}

static void masks_that_are_known(void **state)
{
	(void)state;
	check_simple("%t = const {value=true} : bool\n%r = load %p, %t, %x : f32\n", "%r = load %p : f32\n");
	ir_func *f = read_text(in_function("%t = const {value=false} : bool\n%r = load %p, %t, %x : f32\n"
					   "%s = load %p, %t : f32\n"
					   "%z = add %r, %s : f32\nstore %p, %z, %b\nstore %p, %x, %t\n"));
	run(pass_dce, run(pass_canonicalise, f));
	assert_string_equal(print(f), in_function("  %s = const {value=0.0} : f32\n  %z = add %x, %s : f32\n"
						  "  store %p, %z, %b\n"));
	check_pass(pass_canonicalise, "  %t = const {value=true} : bool\n  store %p, %x, %t\n",
		"  %t = const {value=true} : bool\n  store %p, %x\n");
	check_pass(pass_canonicalise,
		"  %t = const {value=true} : bool\n  assume %t\n  assert %t {text=\"\"}\n  assert %b {text=\"\"}\n",
		"  %t = const {value=true} : bool\n  assert %b {text=\"\"}\n");
}

static void decided_control_flow(void **state)
{
	(void)state;
	check_simple("%t = const {value=true} : bool\n%r = if %t : f32 {\n  %y = add %x, %x : f32\n  yield %y\n} else "
		     "{\n  yield %x\n}\n",
		"%r = add %x, %x : f32\n");
	check_simple("%t = const {value=false} : bool\n%r = if %t : i32 {\n  store %p, %x\n  yield %i\n} else {\n"
		     "  %u.1 = if %t : i32 { yield %i } else { %z = add %j, %j : i32 yield %z }\n  yield %u.1\n}\n",
		"%r = add %j, %j : i32\n");
#define BOUNDS(lo, hi, step)                                                                                           \
	"%lo = const {value=" lo "} : i32\n%hi = const {value=" hi "} : i32\n%st = const {value=" step "} : i32\n"
#define BODY                                                                                                           \
	"%r = for %lo, %hi, %st, %j : i32 (%k: i32, %a: i32) {\n  %y = add %a, %k : i32\n"                             \
	"  %z = mul %y, %i : i32\n  yield %z\n}\n"
	static const char none[] = "  print %j {text=\"\"}\n";
	static const char *const zero[] = {BOUNDS("5", "5", "1"), BOUNDS("6", "5", "1"), BOUNDS("5", "6", "-1"),
		BOUNDS("5", "7", "0"), BOUNDS("2147483647", "-2147483648", "1")};
	for (unsigned i = 0; i < 5; i++) {
		ir_func *f =
			read_text(in_function(arena_printf(&memory, "%s%sprint %%r {text=\"\"}\n", zero[i], BODY)));
		assert_string_equal(print(run(pass_dce, run(pass_canonicalise, f))), in_function(none));
	}
	check_simple("%k = for %i, %i, %j, %j : i32 (%a: i32, %c: i32) {\n  yield %a\n}\n%r = add %k, %k : i32\n",
		"%r = add %j, %j : i32\n");
	static const char *const once[] = {BOUNDS("5", "6", "1"), BOUNDS("5", "9", "4"), BOUNDS("5", "4", "-1"),
		BOUNDS("5", "-2147483643", "-2147483648"), BOUNDS("5", "2147483647", "2147483647")};
	for (unsigned i = 0; i < 5; i++)
		check_simple(arena_printf(&memory, "%s%s", once[i], BODY),
			"%k = const {value=5} : i32\n%y = add %j, %k : i32\n%r = mul %y, %i : i32\n");
	static const char *const more[] = {
		BOUNDS("5", "7", "1"), BOUNDS("-2147483648", "2147483647", "2147483647"), BOUNDS("5", "3", "-1")};
	for (unsigned i = 0; i < 3; i++) {
		const char *s = arena_printf(&memory, "%s%s", more[i], BODY);
		check_simple(s, s);
	}
	/* a carried value that never changes is no carried value */
	check_simple("%r, %s = for %i, %j, %i, %x, %x : f32, f32 (%k: i32, %a: f32, %c: f32) {\n"
		     "  %y = add %a, %c : f32\n  yield %y, %c\n}\n",
		"%r = for %i, %j, %i, %x : f32 (%k: i32, %a: f32) {\n  %y = add %a, %x : f32\n  yield %y\n}\n");
	check_simple("%f = const {value=false} : bool\n%r = while %x : f32 (%a: f32) {\n  %y = add %a, %a : f32\n"
		     "  condition %f, %y\n} do (%z: f32) {\n  yield %z\n}\n",
		"%r = add %x, %x : f32\n");
#undef BODY
#undef BOUNDS
}

static void equal_operations_become_one(void **state)
{
	(void)state;
	check_pass(pass_cse,
		"  %a = add %i, %j : i32\n  %c = add %j, %i : i32\n  %d.1 = sub %i, %j : i32\n  %e = sub %j, %i : i32\n"
		"  %k = const {value=1} : i32\n  %m = const {value=1} : u32\n  %n = const {value=1} : i32\n"
		"  print %a, %c, %d.1, %e, %k, %m, %n {text=\"\"}\n",
		"  %a = add %i, %j : i32\n  %d.1 = sub %i, %j : i32\n  %e = sub %j, %i : i32\n"
		"  %k = const {value=1} : i32\n  %m = const {value=1} : u32\n"
		"  print %a, %a, %d.1, %e, %k, %m, %k {text=\"\"}\n");
	/* loads: only of memory that nothing writes, and not volatile ones */
	check_pass(pass_cse,
		"  %a = load %q : f32\n  store %p, %a\n  %c = load %q : f32\n"
		"  %e = load %p : f32\n  %g = load %p : f32\n"
		"  %h = load %q {volatile=1} : f32\n  %k = load %q {volatile=1} : f32\n"
		"  print %a, %c, %e, %g, %h, %k {text=\"\"}\n",
		"  %a = load %q : f32\n  store %p, %a\n"
		"  %e = load %p : f32\n  %g = load %p : f32\n"
		"  %h = load %q {volatile=1} : f32\n  %k = load %q {volatile=1} : f32\n"
		"  print %a, %a, %e, %g, %h, %k {text=\"\"}\n");
	/* a value of one arm is not seen in the other, or afterwards */
	check_pass(pass_cse,
		"  if %b {\n    %a = add %i, %j : i32\n    print %a {text=\"\"}\n    yield\n  } else {\n"
		"    %c = add %i, %j : i32\n    print %c {text=\"\"}\n    yield\n  }\n"
		"  %e = add %i, %j : i32\n  if %b {\n    %g = add %i, %j : i32\n    print %g, %e {text=\"\"}\n    "
		"yield\n"
		"  } else {\n    yield\n  }\n",
		"  if %b {\n    %a = add %i, %j : i32\n    print %a {text=\"\"}\n    yield\n  } else {\n"
		"    %c = add %i, %j : i32\n    print %c {text=\"\"}\n    yield\n  }\n"
		"  %e = add %i, %j : i32\n  if %b {\n    print %e, %e {text=\"\"}\n    yield\n"
		"  } else {\n    yield\n  }\n");
}

static void invariants_leave_loops(void **state)
{
	(void)state;
	check_pass(pass_licm,
		"  for %i, %j, %i (%k: i32) {\n"
		"    for %i, %j, %i (%m: i32) {\n"
		"      %a = add %i, %j : i32\n      %c = add %a, %k : i32\n      %e = add %c, %m : i32\n"
		"      %v = load %q : f32\n"
		"      print %e, %v {text=\"\"}\n      yield\n    }\n"
		"    if %b {\n      %g = add %i, %i : i32\n      print %g {text=\"\"}\n      yield\n    } else {\n     "
		" yield\n    }\n"
		"    yield\n  }\n",
		"  %a = add %i, %j : i32\n"
		"  for %i, %j, %i (%k: i32) {\n"
		"    %c = add %a, %k : i32\n"
		"    for %i, %j, %i (%m: i32) {\n"
		"      %e = add %c, %m : i32\n"
		"      %v = load %q : f32\n"
		"      print %e, %v {text=\"\"}\n      yield\n    }\n"
		"    if %b {\n      %g = add %i, %i : i32\n      print %g {text=\"\"}\n      yield\n    } else {\n     "
		" yield\n    }\n"
		"    yield\n  }\n");
	check_pass(pass_licm,
		"  while %i (%k: i32) {\n    %a = neg %j : i32\n    %c = lt %a, %k : bool\n    condition %c\n  } do {\n"
		"    %e = neg %x : f32\n    print %e {text=\"\"}\n    yield %i\n  }\n",
		"  %a = neg %j : i32\n  %e = neg %x : f32\n  while %i (%k: i32) {\n    %c = lt %a, %k : bool\n    "
		"condition %c\n"
		"  } do {\n    print %e {text=\"\"}\n    yield %i\n  }\n");
}

static void dead_code_goes(void **state)
{
	(void)state;
	check_pass(pass_dce,
		"  %a = add %i, %j : i32\n  %c = neg %a : i32\n  %v = load %p : f32\n"
		"  %w = load %p {volatile=1} : f32\n"
		"  if %b {\n    %e = neg %i : i32\n    yield\n  } else {\n    yield\n  }\n",
		"  %w = load %p {volatile=1} : f32\n");
	/* results of an if, one at a time */
	check_pass(pass_dce,
		"  %r, %s, %t = if %b : i32, i32, f32 {\n    %a = neg %i : i32\n    yield %a, %j, %x\n  } else {\n"
		"    yield %i, %j, %x\n  }\n  print %s {text=\"\"}\n",
		"  %s = if %b : i32 {\n    yield %j\n  } else {\n    yield %j\n  }\n  print %s {text=\"\"}\n");
	/* carried values that only keep each other alive */
	check_pass(pass_dce,
		"  %r, %s, %t = for %i, %j, %i, %i, %j, %x : i32, i32, f32 (%k: i32, %a: i32, %c: i32, %e: f32) {\n"
		"    %g = add %c, %k : i32\n    %h = add %a, %k : i32\n    %m = add %e, %e : f32\n    yield %g, %h, "
		"%m\n  }\n"
		"  print %t {text=\"\"}\n",
		"  %t = for %i, %j, %i, %x : f32 (%k: i32, %e: f32) {\n    %m = add %e, %e : f32\n    yield %m\n  }\n"
		"  print %t {text=\"\"}\n");
	/* a carried value that steers a store stays, its result goes with no harm */
	check_pass(pass_dce,
		"  %r = for %i, %j, %i, %p : *f32 (%k: i32, %a: *f32) {\n    store %a, %x\n"
		"    %c = ptr_add %a, %i : *f32\n    yield %c\n  }\n",
		"  %r = for %i, %j, %i, %p : *f32 (%k: i32, %a: *f32) {\n    store %a, %x\n"
		"    %c = ptr_add %a, %i : *f32\n    yield %c\n  }\n");
	check_pass(pass_dce,
		"  %r, %s = while %i, %x : i32, f32 (%a: i32, %c: f32) {\n    %t = lt %a, %j : bool\n    condition %t, "
		"%a, %c\n"
		"  } do (%e: i32, %g: f32) {\n    %h = add %e, %j : i32\n    %m = neg %g : f32\n    yield %h, %m\n  }\n"
		"  print %r {text=\"\"}\n",
		"  %r = while %i : i32 (%a: i32) {\n    %t = lt %a, %j : bool\n    condition %t, %a\n"
		"  } do (%e: i32) {\n    %h = add %e, %j : i32\n    yield %h\n  }\n"
		"  print %r {text=\"\"}\n");
	/* two results of one reduction: one keeps both */
	check_pass(pass_dce,
		"  %t = splat %x : f32[4]\n  %r, %s = reduce %t, %t {axis=0 combine=custom} : f32, f32 "
		"(%a: f32, %c: f32, %e: f32, %g: f32) {\n    %h = add %a, %e : f32\n    yield %h, %g\n  }\n  print %s "
		"{text=\"\"}\n",
		"  %t = splat %x : f32[4]\n  %r, %s = reduce %t, %t {axis=0 combine=custom} : f32, f32 "
		"(%a: f32, %c: f32, %e: f32, %g: f32) {\n    %h = add %a, %e : f32\n    yield %h, %g\n  }\n  print %s "
		"{text=\"\"}\n");
}

static void what_the_target_cannot_do_is_refused(void **state)
{
	(void)state;
	ir_func *f = read_text(in_function("%a = inline_asm %x {pack=1 text=\"=f,f\\nneg.f32 $0, $1;\"} : f32\n"));
	pass_context context = {.arena = &memory, .diags = &messages, .target = target_find("cpu")};
	assert_false(pass_legalise(&context, f));
	assert_int_equal(messages.errors, 1);
	assert_int_equal(messages.first->code, 902);
	messages.errors = 0;
	context.target = target_find("sm_80");
	assert_true(pass_legalise(&context, f));
	context.target = target_find("cpu");
	assert_true(pass_legalise(&context, read_text(in_function("%a = neg %x : f32\n"))));
}

static void sums_of_products(void **state)
{
	(void)state;
#define AB                                                                                                             \
	"%aa = arange {lo=0} : i32[16]\n%ar = reshape %aa : i32[4,4]\n%tt = convert %ar : f32[4,4]\n%uu = exp %tt : "  \
	"f32[4,4]\n"
	check_simple(AB "%pp = dot %tt, %uu {precision=tf32x3} : f32[4,4]\n%r = add %uu, %pp : f32[4,4]\n",
		AB "%r = dot %tt, %uu, %uu {precision=tf32x3} : f32[4,4]\n");
	check_simple(AB "%zz = const {value=0.0} : f32[4,4]\n%r = dot %tt, %uu, %zz : f32[4,4]\n",
		AB "%r = dot %tt, %uu : f32[4,4]\n");
	/* somebody else reads the product; the product is of another time */
#define TWICE AB "%pp = dot %tt, %uu : f32[4,4]\nprint %pp {text=\"\"}\n%r = add %uu, %pp : f32[4,4]\n"
	check_simple(TWICE, TWICE);
#define OUTSIDE                                                                                                        \
	AB "%pp = dot %tt, %uu : f32[4,4]\n%r = if %b : f32[4,4] {\n%ss = add %uu, %pp : "                             \
	   "f32[4,4]\nyield "                                                                                          \
	   "%ss\n} else {\nyield %uu\n}\n"
	check_simple(OUTSIDE, OUTSIDE);
#undef AB
#undef TWICE
#undef OUTSIDE
}

/* The passes change no element of what a random program prints. */
static void meaning_is_kept(void **state)
{
	(void)state;
	static pass *const passes[] = {pass_canonicalise, pass_cse, pass_licm, pass_dce};
	for (unsigned seed = 0; seed < 5000; seed++) {
		random_function r = random_program(1000000 + seed);
		const uint64_t *expected[RANDOM_VALUES];
		for (unsigned i = 0; i < r.n; i++) expected[i] = elements(&r.machine, r.pool[i]);
		ir_builder b = {.func = r.func, .block = r.func->body};
		ir_op *keep[RANDOM_VALUES];
		for (unsigned i = 0; i < r.n; i++) {
			keep[i] = ir_build(&b, IR_PRINT, 1, &r.pool[i], 0, NULL, 0);
			keep[i]->text = "";
		}
		finish_function(r.func);
		const char *before = print(r.func);
		for (unsigned k = 0; k < 4; k++) run(passes[k], r.func);
		assert_true(r.func->nvalues < RANDOM_ROOM);
		evaluate(&r.machine, r.func->body->first);
		for (unsigned i = 0; i < r.n; i++)
			if (memcmp(elements(&r.machine, ir_arg(keep[i], 0)), expected[i],
				    ir_elements(ir_arg(keep[i], 0)->type) * sizeof(uint64_t)) != 0)
				fail_msg("printed value %u changed\n%s\n%s", i, before, print(r.func));
		arena_free(&memory);
		diags_init(&messages, &memory);
	}
}

/* Time grows with the program, not with its square: a chain and a tower of loops. */
static void long_programs_are_quick(void **state)
{
	(void)state;
	ir_func *f = ir_func_new(&memory, "long");
	ir_value *x = ir_add_param(f, "x", ir_scalar_type(SCALAR_I32), (span){0}), *y = x;
	ir_builder b = {.func = f, .block = f->body};
	for (unsigned i = 0; i < 200000; i++) {
		ir_value *c = ir_constant_int(&b, SCALAR_I32, i % 7);
		y = ir_binary(&b, i % 3 ? IR_ADD : IR_XOR, i % 11 ? y : x, c);
	}
	ir_build(&b, IR_PRINT, 1, &y, 0, NULL, 0)->text = "";
	ir_build(&b, IR_RETURN, 0, NULL, 0, NULL, 0);
	run(pass_dce, run(pass_licm, run(pass_cse, run(pass_canonicalise, f))));
	unsigned n = 0;
	for (const ir_op *o = f->body->first; o; o = o->next) n++;
	assert_in_range(n, 3, 60); /* the chain begins again at x every 11 operations; the constants are few */
}

/* 1024 elements a thread: 32 parts of 32. The sum begins with -0, which changes nothing. */
static void long_tiles_become_loops(void **state)
{
	(void)state;
	check_pass(pass_parts,
		"  %0 = splat %q : (*const f32)[131072]\n"
		"  %1 = arange {lo=0} : i32[131072]\n"
		"  %2 = ptr_add %0, %1 : (*const f32)[131072]\n"
		"  %3 = load %2 : f32[131072]\n"
		"  %4 = reduce %3 {axis=0 combine=sum} : f32\n"
		"  store %p, %4\n",
		"  %0 = const {value=-0.0} : f32\n"
		"  %1 = const {value=0} : i32\n"
		"  %2 = const {value=32} : i32\n"
		"  %3 = const {value=1} : i32\n"
		"  %4 = for %1, %2, %3, %0 {num_stages=1 unroll=1 accumulator_init=1} : f32 (%part: i32, %5: f32) {\n"
		"    %6 = splat %q : (*const f32)[4096]\n"
		"    %7 = arange {lo=0} : i32[4096]\n"
		"    %8 = const {value=4096} : i32\n"
		"    %9 = mul %part, %8 : i32\n"
		"    %10 = splat %9 : i32[4096]\n"
		"    %11 = add %7, %10 : i32[4096]\n"
		"    %12 = ptr_add %6, %11 : (*const f32)[4096]\n"
		"    %13 = load %12 : f32[4096]\n"
		"    %14 = reduce %13 {axis=0 combine=sum} : f32\n"
		"    %15 = add %5, %14 : f32\n"
		"    yield %15\n"
		"  }\n"
		"  store %p, %4\n");
}

/* 512 elements a thread are not long; a volatile load happens once; what is written in between is not loaded later. */
static void others_stay(void **state)
{
	(void)state;
	static const struct {
		const char *root, *type, *elements, *once, *between;
	} cases[] = {
		{"%q", "*const f32", "65536", "", ""},
		{"%q", "*const f32", "131072", " {volatile=1}", ""},
		{"%p", "*f32", "131072", "", "  store %p, %x\n"},
		{"%p", "*f32", "131072", "", "  debug_barrier\n"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *n = cases[i].elements, *t = cases[i].type;
		const char *all = arena_printf(&memory,
			"  %%0 = splat %s : (%s)[%s]\n  %%1 = arange {lo=0} : i32[%s]\n"
			"  %%2 = ptr_add %%0, %%1 : (%s)[%s]\n"
			"  %%3 = load %%2%s : f32[%s]\n%s"
			"  %%4 = reduce %%3 {axis=0 combine=sum} : f32\n"
			"  store %%p, %%4\n",
			cases[i].root, t, n, n, t, n, cases[i].once, n, cases[i].between);
		ir_func *f = run(pass_dce, run(pass_parts, read_text(in_function(all))));
		assert_string_equal(print(f), in_function(all));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(integers_fold),
		TEST(floats_fold),
		TEST(fma_folds_when_exact),
		TEST(nothing_folds_in_another_rounding),
		TEST(comparisons_and_casts_fold),
		TEST(identities),
		TEST(shapes),
		TEST(masks_that_are_known),
		TEST(decided_control_flow),
		TEST(long_tiles_become_loops),
		TEST(others_stay),
		TEST(equal_operations_become_one),
		TEST(invariants_leave_loops),
		TEST(dead_code_goes),
		TEST(what_the_target_cannot_do_is_refused),
		TEST(sums_of_products),
		TEST(meaning_is_kept),
		TEST(long_programs_are_quick),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
