/* Sema as a library: what tile IR a kernel becomes, signatures, bindings, promises, messages to the letter, limits. */
#include "sema_fixture.h"

#include "support/scalar.h"

static void contains(const char *in, const char *what)
{
	if (!strstr(in, what)) fail_msg("'%s' is not in:\n%s", what, in);
}

static void lacks(const char *in, const char *what)
{
	if (strstr(in, what)) fail_msg("'%s' is in:\n%s", what, in);
}

static const char vector_add[] =
	"kernel add(z: *f32, x: *const f32, y: *const f32, n: i32, const BLOCK: i32 = 1024)\n"
	"\tgrid(cdiv(n, BLOCK)) cost(bytes = 3 * n * z.elem.bytes) options(num_warps = BLOCK / 256)\n"
	"{\n"
	"\tlet i = program_id(0) * BLOCK + arange(0, BLOCK);\n"
	"\tlet m = i < n;\n"
	"\tstore(z + i, load(x + i, mask = m) + load(y + i, m), mask = m);\n"
	"}\n";

static void vector_add_becomes_tiles(void **state)
{
	(void)state;
	compiled c;
	compile_text(&c, vector_add);
	assert_non_null(c.func);
	assert_string_equal(c.ir.at,
		"func @add(%z: *f32, %x: *const f32, %y: *const f32, %n: i32) num_warps=4 num_stages=3 num_ctas=1 {\n"
		"  %0 = program_id {axis=0} : i32\n"
		"  %1 = const {value=1024} : i32\n"
		"  %2 = mul %0, %1 : i32\n"
		"  %3 = arange {lo=0} : i32[1024]\n"
		"  %4 = splat %2 : i32[1024]\n"
		"  %i = add %4, %3 : i32[1024]\n"
		"  %5 = splat %n : i32[1024]\n"
		"  %m = lt %i, %5 : bool[1024]\n"
		"  %6 = splat %z : (*f32)[1024]\n"
		"  %7 = ptr_add %6, %i : (*f32)[1024]\n"
		"  %8 = splat %x : (*const f32)[1024]\n"
		"  %9 = ptr_add %8, %i : (*const f32)[1024]\n"
		"  %10 = load %9, %m : f32[1024]\n"
		"  %11 = splat %y : (*const f32)[1024]\n"
		"  %12 = ptr_add %11, %i : (*const f32)[1024]\n"
		"  %13 = load %12, %m : f32[1024]\n"
		"  %14 = add %10, %13 : f32[1024]\n"
		"  store %7, %14, %m\n"
		"  return\n"
		"}\n");
	assert_string_equal(c.signature.at,
		"kernel add\nsymbol add\nparam z *f32\nparam x *const f32\nparam y *const f32\n"
		"param n i32\nconst BLOCK i32 1024\ngrid 0 p3 1024 cdiv\n"
		"cost bytes 3.0 p3 * 4.0 *\nnum_warps 4\nnum_stages 3\nnum_ctas 1\n");
	compiled_free(&c);
}

static void bindings_and_promises(void **state)
{
	(void)state;
	compiled c;
	const blkc_define defines[] = {{"BLOCK", "256"}, {"num_warps", "8"}, {"BLOCK", "2 * 256"}, {"num_stages", "2"}};
	const blkc_promise promises[] = {{"x", 16, 0}, {"n", 48, 0}, {"y", 32, 0}, {"y", 8, 0}};
	compile_request(&c, vector_add, defines, 4, promises, 4);
	assert_non_null(c.func);
	contains(c.signature.at,
		"param z *f32\nparam x *const f32 align 16\nparam y *const f32 align 32\nparam n i32 div 16\n");
	contains(c.signature.at, "const BLOCK i32 512\n");
	contains(c.signature.at, "num_warps 8\nnum_stages 2\n");
	contains(c.ir.at, "i32[512]");
	assert_int_equal(c.func->num_warps, 8);
	assert_int_equal(c.func->params[1].divisible, 16);
	assert_int_equal(c.func->params[3].divisible, 16);
	compiled_free(&c);

	/* a parameter that is 1 stays one; the body uses the constant, which is still a run-time value to the checker
	 */
	const blkc_promise one[] = {{"s", 0, 1}};
	compile_request(
		&c, "kernel k(y: *i32, s: i64, n: i32) grid(s * n) { store(y + n * s, s + 1); }", NULL, 0, one, 1);
	assert_non_null(c.func);
	contains(c.signature.at, "param s i64 one\n");
	contains(c.signature.at, "grid 0 p1 p2 *\n");
	assert_true(c.func->params[1].is_one);
	assert_null(c.func->body->args[1]->uses);
	contains(c.ir.at, "const {value=1} : i64");
	compiled_free(&c);

	/* every kind of const parameter, as text and as a value */
	const blkc_define kinds[] = {
		{"T", "*f16"}, {"S", "[4, 2 * 4]"}, {"F", "1e-3"}, {"B", "false"}, {"U", "255"}, {"I", "-inf"}};
	compile_request(&c,
		"kernel k(x: *f32, const T: type, const S: shape, const F: f32, const B: bool = true, const U: u8 = 1, "
		"const I: f64 = 0,\n"
		"  const D: i32 = S[1] * 2) { static_assert(T.elem == f16 && S == (4, 8) && !B && U == 255 && D == 16 "
		"&& I < 0); }",
		kinds, 6, NULL, 0);
	assert_non_null(c.func);
	contains(c.signature.at, "const T type *f16\nconst S shape [4,8]\nconst F f32 ");
	contains(c.signature.at, "const B bool false\nconst U u8 255\nconst I f64 -inf\nconst D i32 16\n");
	compiled_free(&c);
}

static void host_expressions(void **state)
{
	(void)state;
	static const struct {
		const char *clause, *line;
	} cases[] = {
		{"grid(a + b * 2 - 1)", "grid 0 p0 p1 2 * + 1 -\n"},
		{"grid(cdiv(a, N), max(b, 3) % 5, min(num_sms(), next_pow2(a)))",
			"grid 0 p0 16 cdiv\ngrid 1 p1 3 max 5 %\ngrid 2 num_sms p0 next_pow2 min\n"},
		{"grid(a > 3 && !(b == 2) ? a : -b)", "grid 0 p0 3 > p1 2 == ! && p0 p1 neg ?:\n"},
		{"grid(N > 8 ? a : b, (7 - 9) / 2, cdiv(N, 3) << 2 | 1)", "grid 0 p0\ngrid 1 -1\ngrid 2 25\n"},
		{"grid(1 << 33, ~N ^ a, double(N))", "grid 0 8589934592\ngrid 1 -17 p0 ^\ngrid 2 32\n"},
		{"cost(flops = 2.5 * a / N, bytes = cdiv(a, 2) * x.elem.bytes)",
			"cost flops 2.5 p0 * 16.0 /\ncost bytes p0 2.0 cdiv 2.0 *\n"},
		{"cost(flops = N * 1.5)", "cost flops 24.0\n"},
		{"requires a <= N, \"it fits\"", "requires p0 16 <= ; a=p0 N=16 ; a <= N ; it fits\n"},
		{"requires a % double(N) == 0 && /* as b is */ b >\n 0",
			"requires p0 32 % 0 == p1 0 > && ; a=p0 N=16 b=p1 ; "
			"a % double(N) == 0 && b > 0 ; \n"},
		{"requires x.elem.bytes == 2 && num_sms() + a > num_sms, \"\\n\\\\ ; \\xff\"",
			"requires 1 num_sms p0 + num_sms > && ; num_sms=num_sms a=p0 ; x.elem.bytes == 2 && num_sms() "
			"+ a "
			"> num_sms ; \\x0a\\x5c \\x3b \\xff\n"},
		{"requires a > N ? b > 1 : N < 17 requires (a == b)",
			"requires p0 16 > p1 1 > 1 ?: ; a=p0 N=16 b=p1 ; a > N ? b > 1 : N < 17 ; \n"
			"requires p0 p1 == ; a=p0 b=p1 ; a == b ; \n"},
		/* of conditions they are conditions */
		{"requires (a > 0) & (b > 0) | (a == 9) requires min(a > 1, true) ^ ~(b > 2)",
			"requires p0 0 > p1 0 > & p0 9 == | ; a=p0 b=p1 ; (a > 0) & (b > 0) | (a == 9) ; \n"
			"requires p0 1 > 1 min p1 2 > ! ^ ; a=p0 b=p1 ; min(a > 1, true) ^ ~(b > 2) ; \n"},
		/* what is known to be skipped may divide by zero */
		{"requires N == 16 || a % (N - 16) == 0 || b / 0 > a requires !(N != 16 && a % (N - 16) == 0)",
			"requires 1 ; N=16 a=p0 b=p1 ; N == 16 || a % (N - 16) == 0 || b / 0 > a ; \n"
			"requires 1 ; N=16 a=p0 ; !(N != 16 && a % (N - 16) == 0) ; \n"},
		{"grid(N > 3 && a > 0, N > 3 || 1 / 0) cost(flops = a * (N || 1 / 0 > 2))",
			"grid 0 1 p0 0 > &&\ngrid 1 1\ncost flops p0 1.0 *\n"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char source[512];
		snprintf(source, sizeof source,
			"fn double(x) { return 2 * x; } kernel k(a: i32, b: i64, x: *f16, const N: i32 = 16) %s { }",
			cases[i].clause);
		compiled c;
		compile_text(&c, source);
		if (!c.func) fail_msg("%s: %s", cases[i].clause, c.rendered.at);
		contains(c.signature.at, cases[i].line);
		compiled_free(&c);
	}
}

/* Each configuration says for which arguments it can be used, with defaults that depend on what is tuned. */
static void configurations_that_fit(void **state)
{
	(void)state;
	compiled c;
	compile_text(&c, "kernel k(x: *f32, n: i32, const B: i32 = 64, const H: i32 = B / 2) requires n <= B requires "
			 "H > 16 || n == 1 "
			 "{ }\nautotune k key(n) { B: [32, 64]; config(B = 8, H = 8); }");
	if (!c.func) fail_msg("%s", c.rendered.at);
	contains(c.signature.at, "configuration B=32\nfits p1 32 <=\nfits 0 p1 1 == ||\n"
				 "configuration B=64\nfits p1 64 <=\nfits 1\n"
				 "configuration B=8,H=8\nfits p1 8 <=\nfits 0 p1 1 == ||\n");
	compiled_free(&c);
}

static void autotune_lines(void **state)
{
	(void)state;
	compiled c;
	compile_text(&c,
		"kernel mm(c: *f32, a: *f32, M: i32, N: i32, const BM: i32 = 64, const T: type = f32, "
		"const H: i32 = 64) { }\n"
		"autotune mm key(M, H, N) { BM: [64, 128], T: [f16, f32]; num_warps: [4, 8]; config(BM = 32, "
		"num_warps = 1);\n"
		"where BM   * 2 <= 256 && num_warps\n>= 1; reset c; restore a; scratch c, a; tolerance 1e-2; }");
	assert_non_null(c.func);
	contains(c.signature.at,
		"autotune key M,H,N axis BM 64 128 axis T f16 f32 axis num_warps 4 8 config BM=32,num_warps=1"
		" reset c restore a scratch c,a tolerance 0.01 where {BM * 2 <= 256 && num_warps >= 1}\n");
	contains(c.signature.at, "const BM i32 64\n");
	contains(c.signature.at, "\nconfiguration BM=64,T=f16,num_warps=4\nconfiguration BM=64,T=f16,num_warps=8\n"
				 "configuration BM=64,T=f32,num_warps=4\n");
	contains(c.signature.at, "configuration BM=128,T=f32,num_warps=8\nconfiguration BM=32,num_warps=1\n");
	compiled_free(&c);
	compile_text(&c, "kernel k(n: i32, const B: i32 = 8) options(strict = B == 8) { }\n"
			 "autotune k { B: [4, 8], strict: [true, false]; where !strict || B == 8; }");
	assert_non_null(c.func);
	assert_int_equal(c.func->strict, 1);
	contains(c.signature.at, "\nstrict 1\n");
	contains(c.signature.at, "\nconfiguration B=4,strict=false\nconfiguration B=8,strict=true\n"
				 "configuration B=8,strict=false\n");
	assert_int_equal(c.func->launch_pdl, 1);
	assert_null(strstr(c.signature.at, "launch_pdl"));
	compiled_free(&c);
	compile_text(&c, "kernel k(n: i32, const B: bool = false) options(launch_pdl = B) { }");
	assert_non_null(c.func);
	assert_int_equal(c.func->launch_pdl, 0);
	contains(c.signature.at, "\nlaunch_pdl 0\n");
	compiled_free(&c);
}

/* What a search goes by: functions are inlined, with what is more than a word kept under a number; what is known is
 * folded as f64, so that it makes no difference which part is known. */
static void searches(void **state)
{
	(void)state;
	compiled c;
	compile_text(&c,
		"fn waves(tiles) { return cdiv(tiles, num_sms); }\n"
		"fn model(n, const B: i32, scale = 2) {\n"
		"  let tiles = cdiv(n, B);\n"
		"  if B == 64 { return waves(tiles) * scale + B / 3; }\n"
		"  return waves(tiles + 1) + tiles;\n"
		"}\n"
		"kernel k(x: *f32, n: i32, m: i32, const B: i32 = 16, const T: type = f32, const H: i32 = 3) { }\n"
		"autotune k key(next_pow2(n), m, x, H) { B: [32, 64]; T: [f32, f16]; where B <= n && T == f32 || m / 2 "
		"> "
		"1;\n"
		"where B == 64 || T == f32; order model(n, B); }");
	if (!c.func) fail_msg("%s", c.rendered.at);
	contains(c.signature.at, "autotune key n,m,x,H axis B 32 64 ");
	contains(c.signature.at,
		"\nkey p1 next_pow2 ; next_pow2(n)\nkey p2 ; m\nkey p0 ; x\ntry 24\n"
		"where 16 p1 <= 1 && p2 2 / 1 > ||\norder p1 16.0 cdiv =0 @0 1.0 + =1 @1 num_sms cdiv @0 +\n");
	contains(c.signature.at, "configuration B=32,T=f32\nfits 32 p1 <= 1 && p2 2 / 1 > ||\n"
				 "time p1 32.0 cdiv =0 @0 1.0 + =1 @1 num_sms cdiv @0 +\n"
				 "configuration B=64,T=f32\nfits 64 p1 <= 1 && p2 2 / 1 > ||\n"
				 "time p1 64.0 cdiv =0 @0 num_sms cdiv 2.0 * 21.333333333333332 +\n"
				 "configuration B=64,T=f16\nfits 64 p1 <= 0 && p2 2 / 1 > ||\n");
	compiled_free(&c);
	compile_text(&c, "kernel k(n: i32, const B: i32 = 8) { }\nautotune k key(n) { B: [4, 8]; try 2; }");
	contains(c.signature.at, "\ntry 2\nconfiguration B=4\nconfiguration B=8\n");
	compiled_free(&c);
	/* a division by zero is the tuner's to put last; gemm_cost is a function as any */
	compile_text(&c, "kernel k(n: i32, const B: i32 = 8) { }\nautotune k key(n) { B: [8, 16];\n"
			 "order 1 / (B - 8) + gemm_cost(n, n, n, bm = B, bn = 64, bk = 64); }");
	if (!c.func) fail_msg("%s", c.rendered.at);
	contains(c.signature.at, "configuration B=8\ntime 1.0 0.0 / ");
	contains(c.signature.at, "configuration B=16\ntime 0.125 ");
	compiled_free(&c);
}

/* What a clause refuses is not looked at again for other values of axes on which the clause does not depend: a product
 * of 59049 members costs nothing like the million operations that a kernel may. */
static void refused_prefixes(void **state)
{
	(void)state;
	compiled c;
	compile_text(&c,
		"kernel k(n: i32, const A: i32 = 1, const B: i32 = 1, const C: i32 = 1, const D: i32 = C * 2) { }\n"
		"autotune k key(n) { A: [1, 2]; C: [1, 2, 3]; B: [1, 2]; where D != 4; where A == 2 || C == 3; }");
	contains(c.signature.at, "configuration A=1,C=3,B=1\nconfiguration A=1,C=3,B=2\n"
				 "configuration A=2,C=1,B=1\nconfiguration A=2,C=1,B=2\n"
				 "configuration A=2,C=3,B=1\nconfiguration A=2,C=3,B=2\n");
	lacks(c.signature.at, "C=2,");
	lacks(c.signature.at, "configuration A=1,C=1");
	compiled_free(&c);
#define NINE "[1, 2, 3, 4, 5, 6, 7, 8, 9]"
	compile_text(&c,
		"kernel k(n: i32, const A: i32 = 1, const B: i32 = 1, const C: i32 = 1, const D: i32 = 1,\n"
		"  const E: i32 = 1) { }\n"
		"autotune k key(n) { A: " NINE "; B: " NINE "; C: " NINE "; D: " NINE "; E: " NINE ";\n"
		"where A * A + B * B + A * B - A - B + A * A * A + B * B * B + A * B * A * B + A + B + A == 7;\n"
		"where D == 2 && E == 9; }");
	if (!c.func) fail_msg("%s", c.rendered.at);
	contains(c.signature.at, "configuration A=1,B=1,C=1,D=2,E=9\nconfiguration A=1,B=1,C=2,D=2,E=9\n");
	compiled_free(&c);
	/* the same through functions that name no option, */
	compile_text(&c,
		"const MOST = 8;\n"
		"fn power(x, n) { return n == 1 ? x : n == 2 ? x * x : x * x * x; }\n"
		"fn powers(x) { return power(x, 1) + power(x, 2) + power(x, 3); }\n"
		"fn few(a, b) { return powers(a) + powers(b) <= MOST; }\n"
		"kernel k(n: i32, const A: i32 = 1, const B: i32 = 1, const C: i32 = 1, const D: i32 = 1) { }\n"
		"autotune k key(n) { A: " NINE "; B: " NINE "; C: " NINE "; D: " NINE "; num_stages: " NINE ";\n"
		"where few(A, B); where D == 2 && num_stages == 9; }");
	if (!c.func) fail_msg("%s", c.rendered.at);
	contains(c.signature.at,
		"configuration A=1,B=1,C=1,D=2,num_stages=9\nconfiguration A=1,B=1,C=2,D=2,num_stages=9\n");
	lacks(c.signature.at, "A=2,");
	lacks(c.signature.at, "B=2,");
	compiled_free(&c);
#undef NINE
}

static void lists(const char *source, const char *configurations_of)
{
	compiled c;
	compile_text(&c, source);
	if (!c.func) fail_msg("%s", c.rendered.at);
	assert_string_equal(strstr(c.signature.at, "\nconfiguration"), configurations_of);
	compiled_free(&c);
}

/* What a clause's functions and constants read counts: an option that is an axis behind those the clause names, or one
 * that follows from such an axis; through a second function, or one that is passed on. */
static void refused_by_options(void **state)
{
	(void)state;
	static const char *const clauses[] = {
		"inner(A)", "outer(A)", "given(A, inner)", "A != warps()", "A != W", "A != V"};
	for (size_t i = 0; i < sizeof clauses / sizeof clauses[0]; i++)
		for (int follows = 0; follows < 2; follows++) {
			char source[1024], want[256];
			const char *b = follows ? "B" : "num_warps";
			snprintf(source, sizeof source,
				"const W = num_warps;\nconst V = warps();\n"
				"fn inner(a) { return a != num_warps; }\nfn outer(a) { return inner(a); }\n"
				"fn given(a, f) { return f(a); }\nfn warps() { return num_warps; }\n"
				"kernel k(x: *f32, const A: i32 = 1, const B: i32 = 1) %s { }\n"
				"autotune k { A: [1, 2], %s: [1, 2]; where %s; }",
				follows ? "options(num_warps = B)" : "", b, clauses[i]);
			snprintf(want, sizeof want, "\nconfiguration A=1,%s=2\nconfiguration A=2,%s=1\n", b, b);
			lists(source, want);
		}
}

/* What chooses the function that is called, in the clause, a default or an option. */
static void refused_by_callees(void **state)
{
	(void)state;
#define ONE_TWO                                                                                                        \
	"fn one(a) { return a == 1; }\nfn two(a) { return a == 2; }\nfn pick(b) { return b == 1 ? one : two; }\n"
	static const char both[] = "\nconfiguration A=1,B=1\nconfiguration A=2,B=2\n";
	lists(ONE_TWO "kernel k(x: *f32, const A: i32 = 1, const B: i32 = 1) { }\n"
		      "autotune k { A: [1, 2], B: [1, 2]; where (B == 1 ? one : two)(A); }",
		both);
	lists(ONE_TWO "kernel k(x: *f32, const A: i32 = 1, const B: i32 = 1) { }\n"
		      "autotune k { A: [1, 2], B: [1, 2]; where pick(B)(A); }",
		both);
	lists(ONE_TWO
		"kernel k(x: *f32, const A: i32 = 1, const B: i32 = 1, const P: bool = (B == 1 ? one : two)(1)) { }\n"
		"autotune k { A: [1, 2], B: [1, 2]; where A == (P ? 1 : 2); }",
		both);
#undef ONE_TWO
}

/* Long chains of functions and of defaults cost neither stack nor time. */
static void refused_through_chains(void **state)
{
	(void)state;
	arena a = {0};
	text t = {.arena = &a};
	enum { FUNCTIONS = 30000, PARAMETERS = 60 };
	for (int i = 0; i < FUNCTIONS; i++) text_printf(&t, "fn q%d(a) { return a < 3 ? true : q%d(a); }\n", i, i + 1);
	text_printf(&t, "fn q%d(a) { return a < num_warps; }\nkernel k(x: *f32, const A: i32 = 1, const P0: i32 = A",
		FUNCTIONS);
	for (int i = 1; i < PARAMETERS; i++)
		text_printf(&t, ", const P%d: i32 = max(P%d, P%d)", i, i - 1, i > 1 ? i - 2 : 0);
	text_printf(&t, ") { }\nautotune k { A: [1, 2], num_warps: [1, 2]; where q0(P%d); }", PARAMETERS - 1);
	lists(t.at, "\nconfiguration A=1,num_warps=1\nconfiguration A=1,num_warps=2\nconfiguration A=2,num_warps=1\n"
		    "configuration A=2,num_warps=2\n");
	arena_free(&a);
}

/* What a condition sees: the choice, defaults and options that follow from it, what a define has bound. */
static void configurations(void **state)
{
	(void)state;
	static const char source[] =
		"kernel k(x: *f32, const A: i32 = 1, const B: i32 = A * 2) options(num_warps = A) { }\n"
		"autotune k { A: [1, 2, 4, 8], num_stages: [2, 3]; config(A = 4); config(A = 4); config(B = 6, A = "
		"2);\n"
		"where B < 9 && num_warps != 2; where num_stages + A != 4; }";
	compiled c;
	compile_text(&c, source);
	assert_non_null(c.func);
	assert_non_null(strstr(c.signature.at, "config B=6,A=2 where"));
	assert_string_equal(strstr(c.signature.at, "\nconfiguration"),
		"\nconfiguration A=1,num_stages=2\nconfiguration A=4,num_stages=2\nconfiguration A=4,num_stages=3\n"
		"configuration A=4\n");
	compiled_free(&c);
	compile_request(&c, source, (blkc_define[]){{"A", "4"}}, 1, NULL, 0);
	assert_string_equal(strstr(c.signature.at, "\nconfiguration"),
		"\nconfiguration num_stages=2\nconfiguration num_stages=3\n");
	compiled_free(&c);
}

/* Configurations that are given whole, beside what a request defines: those that say the same, and what they leave
 * open; where none does, what each leaves open. */
static void explicit_configurations(void **state)
{
	(void)state;
	static const char source[] = "kernel k(x: *f32, const A: i32 = 1, const D: i32 = 0, const P: bool = false) "
				     "options(num_warps = 2) { }\n"
				     "autotune k { config(A = 2, num_warps = 8); config(A = 2, P = true, num_warps = "
				     "8); config(A = 1, D = 3, "
				     "num_warps = 8); config(A = 4, num_warps = 4); }";
	static const struct {
		blkc_define defines[3];
		size_t n;
		const char *lines;
	} cases[] = {
		{{{"A", "2"}}, 1, "configuration num_warps=8\nconfiguration P=true,num_warps=8\n"},
		{{{"A", "1 + 1"}, {"num_warps", "8"}}, 2, "configuration A=2\nconfiguration P=true\n"},
		{{{"num_warps", "8"}}, 1, "configuration A=2\nconfiguration A=2,P=true\nconfiguration A=1,D=3\n"},
		{{{"A", "4"}, {"num_warps", "4"}}, 2, NULL},
		{{{"A", "2"}, {"num_warps", "8"}, {"P", "true"}}, 3, NULL},
		{{{"A", "8"}}, 1,
			"configuration num_warps=8\nconfiguration P=true,num_warps=8\nconfiguration "
			"D=3,num_warps=8\nconfiguration num_warps=4\n"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		compiled c;
		compile_request(&c, source, cases[i].defines, cases[i].n, NULL, 0);
		const char *at = strstr(c.signature.at, "\nconfiguration");
		if (cases[i].lines)
			assert_string_equal(at ? at + 1 : "none", cases[i].lines);
		else
			assert_null(at);
		compiled_free(&c);
	}
}

static void example_of_the_language_page(void **state)
{
	(void)state;
	compiled c;
	compile_text(&c, "kernel k(x: *const f32)\n{\n    let v = load(x + arange(0, 1024));\n    let w = load(x + "
			 "arange(0, 512));\n"
			 "    let z = v - w;\n}\n");
	assert_null(c.func);
	assert_string_equal(c.rendered.at,
		"t.blk:5:13: error[E0203]: shapes [1024] and [512] do not broadcast\n"
		"   5 |     let z = v - w;\n"
		"     |             ~ ^ ~\n"
		"     |             |   f32[512], loaded at t.blk:4:13\n"
		"     |             f32[1024], loaded at t.blk:3:13\n"
		"hint: both come from 'arange'; give them one length, or insert an axis: v[:, None] - w[None, :]\n");
	compiled_free(&c);
}

/* Messages whose second place or hint is the point. */
static void hints(void **state)
{
	(void)state;
	static const struct {
		const char *body, *message, *hint;
	} cases[] = {
		{"let a = sofmax(n);", "unknown name 'sofmax'", "did you mean 'softmax'?"},
		{"let a = laod(x);", "unknown name 'laod'", "did you mean 'load'?"},
		{"let count = 1; let a = cuont;", "unknown name 'cuont'", "did you mean 'count'?"},
		{"let a = load(x, msak = true);", "has no parameter 'msak'", "did you mean 'mask'?"},
		{"let a = n.shpe;", "no member 'shpe'", "did you mean '.shape'?"},
		{"let a: f32 = n + 1;", "the value must be f32, found i32", "write the cast: (n + 1).to(f32)"},
		{"let a: f32 = n;", "found i32", "write the cast: n.to(f32)"},
		{"let a = n + u;", "do not mix", "i64 holds the values of both: u.to(i64)"},
		{"let a = n.to(i8) + 200;", "200 does not fit in i8", "widen the other operand"},
		{"let a = arange(0, 131);", "odd number up to 127 times a power of two", "132"},
		{"let a = zeros([131], f32);", "times a power of two, found 131",
			"take 132 and mask the rest: arange(0, 132) < 131"},
		{"if n { }", "must be a bool, found i32", "compare: n != 0"},
		{"if arange(0, 4) < 2 { }", "is a tile", "where(c, a, b) selects element by element"},
		{"let a = sqrt(n);", "'sqrt' needs floats, found i32", "convert first: n.to(f32)"},
		{"n = 2;", "'n' is a parameter", "copy it: var n_ = n;"},
		{"let a = 1; a = 2;", "'a' is a 'let'", "declare it with 'var'"},
		{"let a = f32(n);", "cannot be called", "a cast is written x.to(f32)"},
		{"let a = load(x)[0];", "an index of a tile is ':' or None", "gather"},
		{"let a = *x;", "no type", "load(x) reads memory"},
		{"let a = True;", "unknown name 'True'", "it is written true"},
		{"let a = n.to(float32);", "unknown name 'float32'", "it is written f32"},
		{"let a = tl.load(x);", "unknown name 'tl'", "built-in names have no prefix"},
		{"let a = threadIdx.x;", "unknown name 'threadIdx'", "a program has no threads"},
		{"device_print(n);", "the first argument of device_print must be a string, found i32", "t.blk:1:"},
		{"assume(arange(0, 8) < n);", "'assume' needs a bool scalar, not bool[8]",
			"all(c) makes one bool of it"},
		{"let a = rand(1.5, n);", "'rand' needs an integer as its seed", "cast it: seed.to(i64)"},
		{"let a = rand(n, arange(0, 8).to(f32));", "'rand' needs an integer, or a tile of them, as its offset",
			"cast it: offset.to(i64)"},
		{"let a = softmax(load(x + arange(0, 8)), 3);", "in 'softmax': axis 3 is out of range", "std.blk"},
		{"store(x, arange(0, 8));", "[8] does not broadcast to a scalar", "p + offsets makes a tile"},
		{"store(x + arange(0, 8), zeros([4], f32));", "[4] does not broadcast to [8]", "[:, None] adds one"},
		{"let a: i32[4, 8] = arange(0, 8);", "must be i32[4,8], found i32[8]",
			"broadcast_to(arange(0, 8), [4, 8])"},
		{"let c = n > 1; let a = n == 2 & c;", "bool and i32 do not mix",
			"'&' binds tighter than a comparison"},
		{"let a = (n == 2) | n;", "bool and i32 do not mix", "'|' binds tighter than a comparison"},
		{"let a = where(n > 0, -1, 18446744073709551615);", "-1 does not fit in u64", "t.blk:1:"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char source[512];
		snprintf(source, sizeof source, "kernel k(x: *f32, n: i32, u: u32) { %s }", cases[i].body);
		compiled c;
		compile_text(&c, source);
		if (c.func) fail_msg("accepted: %s", cases[i].body);
		contains(c.rendered.at, cases[i].message);
		contains(c.rendered.at, cases[i].hint);
		assert_int_equal(c.ds.errors, 1);
		compiled_free(&c);
	}
}

/* What does not stretch is not told to. */
static void no_false_hint(void **state)
{
	(void)state;
	compiled c;
	compile_text(&c, "kernel k(x: *f32) { let a: f32[4, 8] = zeros([8, 4], f32); }");
	contains(c.rendered.at, "must be f32[4,8], found f32[8,4]");
	assert_null(strstr(c.rendered.at, "broadcast_to"));
	compiled_free(&c);
}

/* A name of two letters is not taken for another one, and nothing far is offered. */
static void nothing_near(void **state)
{
	(void)state;
	static const char *const far[] = {"tk", "foo", "bar", "qqq", "zebra"};
	for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
		char source[128];
		snprintf(source, sizeof source, "kernel k(x: *f32, n: i32) { let b = 1; let a = %s; }", far[i]);
		compiled c;
		compile_text(&c, source);
		contains(c.rendered.at, "unknown name");
		lacks(c.rendered.at, "hint");
		compiled_free(&c);
	}
}

/* One mistake, one error: what follows from it is not reported; what does not, is. */
static void poison_is_silent(void **state)
{
	(void)state;
	compiled c;
	compile_text(&c, "fn f(x) { return x + oops; }\n"
			 "kernel k(x: *f32, n: i32) { let a = f(n); let b = a + 1; var c = b; c += a; if c > 0 { "
			 "store(x, c); }\n"
			 "for i in range(c) { c = a + i; } while b { } let (d, e) = a; let t = a[:, None].shape; "
			 "store(x + a, b);\n"
			 "let g = other_oops; c = 1; static_assert(a == 2, \"m\"); device_print(\"a\", a, t); }");
	assert_null(c.func);
	contains(c.rendered.at, "unknown name 'oops'");
	contains(c.rendered.at, "in this call of 'f'");
	contains(c.rendered.at, "unknown name 'other_oops'");
	assert_int_equal(c.ds.errors, 2);
	compiled_free(&c);
}

/* User names hide built-ins and types; the library does not see the user's names. */
static void scopes(void **state)
{
	(void)state;
	compiled c;
	compile_text(&c, "fn exp(x) { return x + 1; }\nfn max(a, b) { return a; }\n"
			 "kernel k(x: *f32, sum: i32) { let f16 = 3; static_assert(exp(f16) == 4);\n"
			 "let i = arange(0, 8); let v = load(x + i); store(x + i, softmax(v, 0)); let load = sum; { "
			 "let sum = 2; let v = load; }\n"
			 "var range = 0; for j in range(3) { range += j; } static_assert(2.exp() == 3); }");
	if (!c.func) fail_msg("%s", c.rendered.at);
	contains(c.ir.at, " = exp ");
	contains(c.ir.at, "combine=max");
	compiled_free(&c);
	compile_text(&c, "kernel k(n: i32) { { let inner = 1; } let a = inner; }");
	contains(c.rendered.at, "unknown name 'inner'");
	compiled_free(&c);
	compile_text(&c, "fn f() { return hidden; } kernel k(n: i32) { let hidden = 1; let a = f(); }");
	contains(c.rendered.at, "unknown name 'hidden'");
	compiled_free(&c);
}

/* Asking for the type of an expression does not use its operands. */
static void constants_leave_no_uses(void **state)
{
	(void)state;
	compiled c;
	compile_text(&c,
		"kernel k(n: i32, x: *f32) grid((n + 1).dtype.bytes) cost(bytes = load(x).dtype.bytes) {\n"
		"const B = (n * 2 > 3 ? n : n + 1).dtype.bytes; static_assert(B == 4);\n"
		"for i in static_range((n - 1).dtype.bytes) { const C = sum(load(x + arange(0, 8)), 0).dtype; } }");
	if (!c.func) fail_msg("%s", c.rendered.at);
	contains(c.signature.at, "grid 0 4\ncost bytes 4.0\n");
	for (ir_use *u = c.func->body->args[0]->uses; u; u = u->next) assert_ptr_equal(u->user->block, c.func->body);
	assert_null(c.func->body->args[1]->uses);
	compiled_free(&c);
}

static void generic_kernels(void **state)
{
	(void)state;
	compiled c;
	static const char source[] = "kernel add(const T: type = f32, x: *T, y: *const T, s: T, const N: i32 = 8) {\n"
				     "let i = arange(0, N); store(x + i, load(y + i) * 2 + s); }";
	const blkc_define half[] = {{"T", "f16"}};
	compile_text(&c, source);
	assert_non_null(c.func);
	contains(c.ir.at, "func @add(%x: *f32, %y: *const f32, %s: f32)");
	compiled_free(&c);
	compile_request(&c, source, half, 1, NULL, 0);
	assert_non_null(c.func);
	contains(c.ir.at, "func @add(%x: *f16, %y: *const f16, %s: f16)");
	lacks(c.ir.at, "f32");
	contains(c.signature.at, "const T type f16\n");
	compiled_free(&c);
}

/* The IR has no implicit broadcast: each stretch is an operation, and constants are made in their final shape. */
static void broadcasting_is_explicit(void **state)
{
	(void)state;
	compiled c;
	compile_text(&c, "kernel k(x: *f32, n: i32) { let i = arange(0, 4)[:, None]; let j = arange(0, 8);\n"
			 "store(x + (i * 8 + j), 1, mask = i + j < n); }");
	assert_non_null(c.func);
	contains(c.ir.at, "expand_dims %0 {axis=1} : i32[4,1]");
	contains(c.ir.at, "const {value=8} : i32[4,1]");
	contains(c.ir.at, "{axis=0} : i32[1,8]");
	contains(c.ir.at, ": i32[4,8]");
	contains(c.ir.at, "const {value=1.0} : f32[4,8]");
	lacks(c.ir.at, "splat %n : bool");
	compiled_free(&c);
}

/* Where only numbers meet beside a run-time condition or in a range, each keeps its value. */
static void numbers_alone_have_room(void **state)
{
	(void)state;
	static const struct {
		const char *body, *ir;
	} cases[] = {
		{"for i in range(4294967296, 4294967299) { store(x, i); }", "const {value=4294967299} : i64"},
		{"for i in range(0, 3, 4294967296) { store(x, i); }", "const {value=4294967296} : i64"},
		{"store(x, where(n > 0, 5000000000, 1));", "const {value=5000000000} : i64"},
		{"store(x, n > 0 ? 5000000000 : 1);", "const {value=5000000000} : i64"},
		{"store(x, n > 0 ? (300).to(i32) : (3).to(u8));", "const {value=300} : i32"},
		{"store(x, n > 0 ? (-1).to(i32) : (3).to(u32));", "const {value=-1} : i32"},
		{"store(x, where(n > 0, 1, 18446744073709551615).to(f64));", "value=18446744073709551615} : u64"},
		{"store(x, where(n > 0, 1, 2.5));", "const {value=2.5} : f32"},
		{"store(x, where(n > 0, (1.5).to(f8e4m3), (2.5).to(f8e4m3)));", "const {value=2.5} : f8e4m3"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char source[512];
		snprintf(source, sizeof source, "kernel k(x: *f64, n: i32) { %s }", cases[i].body);
		compiled c;
		compile_text(&c, source);
		if (!c.func) fail_msg("%s", c.rendered.at);
		contains(c.ir.at, cases[i].ir);
		compiled_free(&c);
	}
}

/* 10,000 variables, branches and statements: linear, and the arena stays small. */
static void large_kernels_are_linear(void **state)
{
	(void)state;
	enum { N = 3000 };
	char *source = test_malloc(N * 100);
	size_t n = (size_t)sprintf(source, "kernel k(n: i32) { ");
	for (int i = 0; i < N; i++) n += (size_t)sprintf(source + n, "var a%d = n + %d; ", i, i);
	for (int i = 0; i < N; i++) n += (size_t)sprintf(source + n, "if n > %d { a%d = 3; } ", i, i);
	sprintf(source + n, "}");
	compiled c;
	compile_text(&c, source);
	assert_non_null(c.func);
	assert_true(c.memory.used < 64u << 20);
	compiled_free(&c);
	test_free(source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vector_add_becomes_tiles),
		cmocka_unit_test(bindings_and_promises),
		cmocka_unit_test(host_expressions),
		cmocka_unit_test(configurations_that_fit),
		cmocka_unit_test(autotune_lines),
		cmocka_unit_test(searches),
		cmocka_unit_test(refused_prefixes),
		cmocka_unit_test(refused_by_options),
		cmocka_unit_test(refused_by_callees),
		cmocka_unit_test(refused_through_chains),
		cmocka_unit_test(configurations),
		cmocka_unit_test(explicit_configurations),
		cmocka_unit_test(example_of_the_language_page),
		cmocka_unit_test(hints),
		cmocka_unit_test(poison_is_silent),
		cmocka_unit_test(scopes),
		cmocka_unit_test(constants_leave_no_uses),
		cmocka_unit_test(generic_kernels),
		cmocka_unit_test(broadcasting_is_explicit),
		cmocka_unit_test(numbers_alone_have_room),
		cmocka_unit_test(no_false_hint),
		cmocka_unit_test(nothing_near),
		cmocka_unit_test(large_kernels_are_linear),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
