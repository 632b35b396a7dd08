/* Built-in functions from source text to numbers: sema, the library, expand_math and the cpu device together.
 * Expected values come from the C library in a wider type, from Triton (random numbers), or from hand calculation. */
#include "cpu_fixture.h"

#include "compiler/passes/passes.h"
#include "compiler/sema/sema.h"
#include "compiler/syntax/ast.h"

#include <float.h>

/* ---- compiling a kernel from its text ---- */

static void messages(fixture *t)
{
	text out = {.arena = &t->arena};
	diag_render_text(&t->diags, &out);
	fail_msg("%s", out.at ? out.at : "no function and no message");
}

static sema_program *parse(fixture *t, const char *name, const char *source)
{
	memset(t, 0, sizeof *t);
	t->arena.recover = &t->out_of_memory;
	diags_init(&t->diags, &t->arena);
	names *n = names_new(&t->arena);
	source_set *set = ARENA_NEW(&t->arena, source_set);
	set->arena = &t->arena;
	source_file *file = source_add(set, &t->diags, (span){0}, name, source, source ? strlen(source) : 0);
	if (!file) messages(t);
	return sema_load(&t->arena, &t->diags, n, set, file);
}

/* Compiles kernel `k`; with `expanded` through the pass that GPU targets use. */
static void from_source(fixture *t, const char *source, bool expanded)
{
	text signature = {0}, why = {0};
	sema_program *p = parse(t, "test.blk", source);
	signature.arena = why.arena = &t->arena;
	t->f = sema_specialise(p, &(sema_request){.kernel = "k"}, &signature);
	if (!t->f) messages(t);
	pass_context c = {.arena = &t->arena, .diags = &t->diags, .target = target_find("sm_80")};
	if (!ir_verify(t->f, &why)) fail_msg("%s", why.at);
	if (!pass_expand_tensors(&c, t->f) || (expanded && !pass_expand_math(&c, t->f))) messages(t);
	if (!pass_cse(&c, t->f) || !pass_dce(&c, t->f) || !pass_legalise(&c, t->f) || !emit(t)) messages(t);
}

static void run_source(const char *source, const uint64_t *args, uint32_t grid)
{
	fixture t;
	if (setjmp(t.out_of_memory)) fail_msg("out of memory");
	from_source(&t, source, false);
	assert_int_equal(run(&t, args, grid, 1, 1), CPU_OK);
	end(&t);
}

/* ---- the library's elementary functions against the C library ---- */

typedef struct function {
	const char *name;
	long double (*exact)(long double);
	double f32_ulp, f64_ulp; /* bounds that docs/language.md states for the arithmetic itself */
} function;

static const function functions[] = {
	{"exp", expl, 1.5, 1.1}, /* the cpu device's exp2 is within 1 ulp, not correctly rounded */
	{"exp2", exp2l, 0, 1.1},
	{"expm1", expm1l, 1.6, 2.0},
	{"log", logl, 1.1, 1.0},
	{"log2", log2l, 1.8, 1.0},
	{"log1p", log1pl, 1.7, 1.5},
	{"sin", sinl, 2.5, 1.0},
	{"cos", cosl, 2.5, 1.0},
	{"tanh", tanhl, 1.8, 3.0},
	{"erf", erfl, 1.5, 4.0},
};

/* Distance in units of the last place of a float with `digits` bits and that least exponent. */
static double ulps(double got, long double exact, int digits, int least)
{
	double rounded = digits == 24 ? (double)(float)exact : (double)exact;
	if (isnan(got) || isnan(rounded)) return isnan(got) && isnan(rounded) ? 0 : HUGE_VAL;
	if (got == rounded) return signbit(got) == signbit(rounded) ? 0 : HUGE_VAL;
	int e;
	frexpl(exact, &e);
	if (isinf(got) || isinf(rounded)) /* one step beyond the largest number is no disaster */
		return digits == 24 ? (fabsl(exact) > FLT_MAX * 0.9999999L && got * exact > 0 ? 1 : HUGE_VAL)
				    : (fabsl(exact) > DBL_MAX * 0.99999999999L && got * exact > 0 ? 1 : HUGE_VAL);
	int place = e - digits < least ? least : e - digits;
	return (double)(fabsl((long double)got - exact) / ldexpl(1, place));
}

enum { SAMPLES = 65536 };

static const double special_f32[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 1.4e-45, -1.4e-45, FLT_MAX, -FLT_MAX,
	FLT_MIN, 88.72283172607422, 88.72283935546875, -103.97, -104.1, 0.7, 0.93, 0.7853981, 0.7853982, 3.14159274,
	16777216, 1e-9, -0.99999994};
static const double special_f64[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 5e-324, -5e-324, DBL_MAX, -DBL_MAX,
	DBL_MIN, 709.782712893384, 709.7827128933841, -745.13, -745.2, 6, 0.7853981633974483, 1e22, 1024, -1074,
	-1075.5, 1e-17, -0.9999999999999999};

static double sample(bool wide, uint64_t *state, int i)
{
	enum { SPECIAL = sizeof special_f32 / sizeof *special_f32 };
	_Static_assert(sizeof special_f32 == sizeof special_f64, "as many of each");
	if (i < SPECIAL) return wide ? special_f64[i] : (double)(float)special_f32[i];
	uint64_t bits = random_bits(state);
	double unit = (double)(random_bits(state) >> 11) * 0x1p-52 - 1;
	switch (i % 5) {
	case 0: return scalar_to_double(wide ? SCALAR_F64 : SCALAR_F32, wide ? bits : bits & 0xffffffff);
	case 1: return unit;
	case 2: return unit * 4;
	case 3: return unit * (wide ? 720 : 90);
	default: return 1 + unit * 0.25;
	}
}

static void store_sample(bool wide, void *x, int i, double v)
{
	if (wide)
		((double *)x)[i] = v;
	else
		((float *)x)[i] = (float)v;
}

static double sample_at(bool wide, const void *x, int i)
{
	return wide ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static void check_function(const function *f, bool wide)
{
	double bound = wide ? f->f64_ulp : f->f32_ulp, worst = 0, worst_at = 0;
	if (bound == 0) return;
	char source[512];
	const char *type = wide ? "f64" : "f32";
	snprintf(source, sizeof source,
		"kernel k(y: *%s, x: *const %s, n: i32) {\n"
		"	let i = program_id(0) * 1024 + arange(0, 1024);\n"
		"	store(y + i, %s_%s(load(x + i, mask = i < n)), mask = i < n);\n}\n",
		type, type, f->name, type);
	void *x = calloc(SAMPLES, 8), *y = calloc(SAMPLES, 8);
	uint64_t state = 7;
	for (int i = 0; i < SAMPLES; i++) store_sample(wide, x, i, sample(wide, &state, i));
	run_source(source, (uint64_t[]){address(y), address(x), SAMPLES}, SAMPLES / 1024);
	for (int i = 0; i < SAMPLES; i++) {
		double at = sample_at(wide, x, i);
		double u = ulps(sample_at(wide, y, i), f->exact(at), wide ? 53 : 24, wide ? -1074 : -149);
		if (u > worst) worst = u, worst_at = at;
	}
	if (worst > bound) fail_msg("%s_%s: %g ulp at %.17g, allowed %g", f->name, type, worst, worst_at, bound);
	free(x), free(y);
}

static void elementary_f32(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) check_function(&functions[i], false);
}

static void elementary_f64(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) check_function(&functions[i], true);
}

static void power(void **state)
{
	(void)state;
	static const double grid[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 1e-40, -1e-40, 1e38, -1e38, 2, -2, 3,
		-3, 0.5, -0.5, 16777216, 16777215, -16777215, 2.5, -2.5, 0.99999994, 1e-300};
	enum { SIDE = sizeof grid / sizeof *grid, N = 16384 };
	for (int wide = 0; wide < 2; wide++) {
		char source[512];
		const char *type = wide ? "f64" : "f32";
		snprintf(source, sizeof source,
			"kernel k(r: *%s, x: *const %s, y: *const %s) {\n"
			"	let i = program_id(0) * 1024 + arange(0, 1024);\n"
			"	store(r + i, pow_%s(load(x + i), load(y + i)));\n}\n",
			type, type, type, type);
		void *x = calloc(N, 8), *y = calloc(N, 8), *r = calloc(N, 8);
		uint64_t seed = 11;
		for (int i = 0; i < N; i++) {
			double u = (double)(random_bits(&seed) >> 11) * 0x1p-52 - 1;
			double v = (double)(random_bits(&seed) >> 11) * 0x1p-52 - 1;
			store_sample(wide, x, i, i < SIDE * SIDE ? grid[i % SIDE] : i % 2 ? 1 + 0.5 * u : exp(u * 80));
			store_sample(wide, y, i, i < SIDE * SIDE ? grid[i / SIDE] : i % 3 ? v * 150 : rint(v * 20));
		}
		run_source(source, (uint64_t[]){address(r), address(x), address(y)}, N / 1024);
		for (int i = 0; i < N; i++) {
			double a = sample_at(wide, x, i), b = sample_at(wide, y, i);
			double u = ulps(sample_at(wide, r, i), powl(a, b), wide ? 53 : 24, wide ? -1074 : -149);
			if (u > 3) fail_msg("pow_%s(%.17g, %.17g): %g ulp", type, a, b, u);
		}
		free(x), free(y), free(r);
	}
}

/* The pass leaves only operations with an instruction, and what it makes means the same. */
static void no_more_math(ir_op *o, void *context)
{
	const bool *wide = context;
	bool kept = o->kind == IR_SQRT || o->kind == IR_RSQRT || (o->kind == IR_EXP2 && !*wide);
	if (ir_has(o, IR_MATH) && !kept) fail_msg("%s is left", ir_ops[o->kind].name);
}

static void expanded(void **state)
{
	(void)state;
	static const char *const types[] = {"f32", "f64", "f16", "bf16"};
	static const scalar scalars[] = {SCALAR_F32, SCALAR_F64, SCALAR_F16, SCALAR_BF16};
	static const double tolerance[] = {4e-7, 2e-15, 1.5e-3, 1.2e-2};
	enum { N = 256 };
	for (int k = 0; k < 4; k++) {
		char source[1024];
		snprintf(source, sizeof source,
			"kernel k(y: *%s, x: *const %s) {\n"
			"	let i = arange(0, 256);\n"
			"	let v = load(x + i);\n"
			"	let a = exp(v) + exp2(v) + log(v) + log2(v) + log1p(v) + expm1(v);\n"
			"	store(y + i, a + sin(v) + cos(v) + tanh(v) + erf(v) + pow(v, v) + sqrt(v) + "
			"rsqrt(v));\n}\n",
			types[k], types[k]);
		scalar s = scalars[k];
		bool wide = s == SCALAR_F64;
		uint64_t x[N], y[N], z[N], args[] = {address(y), address(x)};
		for (int i = 0; i < N; i++) put(s, x, (size_t)i, scalar_from_double(s, 0.01 + i * 0.0078125));
		fixture t;
		if (setjmp(t.out_of_memory)) fail_msg("out of memory");
		from_source(&t, source, false);
		assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
		memcpy(z, y, sizeof y);
		end(&t);
		from_source(&t, source, true);
		ir_walk(t.f->body, no_more_math, &wide);
		assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
		end(&t);
		for (int i = 0; i < N; i++) {
			double a = scalar_to_double(s, get(s, y, (size_t)i)),
			       b = scalar_to_double(s, get(s, z, (size_t)i));
			double near = scalar_to_double(s, get(s, x, (size_t)i));
			/* logarithms near their poles cancel the other terms: relative to the greatest term */
			if (fabs(a - b) > tolerance[k] * (fabs(b) + 20))
				fail_msg("%s at %g: %g, not %g", types[k], near, a, b);
		}
	}
}

/* ---- random numbers against Triton's ---- */

static char *read_text(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f) fail_msg("cannot open %s (tests run in the project's folder)", path);
	char *s = calloc(1, 1 << 20);
	size_t n = fread(s, 1, (1 << 20) - 1, f);
	fclose(f);
	assert_true(n > 0);
	return s;
}

/* The 16 numbers after "name": [ behind `from`. */
static void read_numbers(const char *from, const char *name, double *out)
{
	const char *p = strstr(from, name);
	assert_non_null(p);
	p = strchr(p, '[');
	for (int i = 0; i < 16; i++) {
		char *next;
		out[i] = strtod(p + 1, &next);
		p = next + strcspn(next, ",]");
	}
}

static void random_numbers(void **state)
{
	(void)state;
	static const char source[] =
		"kernel k(bits: *u32, normal: *f32, ints: *u32, second: *u32, xored: *u32, wide: *u32, seed: i64) {\n"
		"	let i = arange(0, 16);\n"
		"	store(bits + i, rand(seed, i).to(u32, bitcast = true));\n"
		"	store(normal + i, randn(seed, i));\n"
		"	store(ints + i, randint(seed, i));\n"
		"	let (a, b, c, d) = randint4x(seed, i);\n"
		"	store(second + i, b);\n"
		"	store(xored + i, a ^ b ^ c ^ d);\n"
		"	store(wide + i, randint(seed, i.to(i64)));\n"
		"	static_assert(rand(seed, 3).shape == [], \"a scalar offset gives a scalar\");\n}\n";
	char *data = read_text("tests/data/philox.json");
	int seeds = 0;
	for (const char *p = data; (p = strstr(p, "\"seed\":")); p++, seeds++) {
		int64_t seed = strtoll(p + 7, NULL, 10);
		uint32_t bits[16], ints[16], second[16], xored[16], wide[16];
		float normal[16];
		double want[16];
		run_source(source,
			(uint64_t[]){address(bits), address(normal), address(ints), address(second), address(xored),
				address(wide), (uint64_t)seed},
			1);
		read_numbers(p, "\"rand_bits\"", want);
		for (int i = 0; i < 16; i++) assert_int_equal(bits[i], (uint32_t)want[i]);
		read_numbers(p, "\"randint\"", want);
		for (int i = 0; i < 16; i++) assert_int_equal(ints[i], (uint32_t)want[i]);
		for (int i = 0; i < 16; i++) assert_int_equal(wide[i], (uint32_t)want[i]);
		read_numbers(p, "\"randint4x_1\"", want);
		for (int i = 0; i < 16; i++) assert_int_equal(second[i], (uint32_t)want[i]);
		read_numbers(p, "\"randint4x_xor\"", want);
		for (int i = 0; i < 16; i++) assert_int_equal(xored[i], (uint32_t)want[i]);
		read_numbers(p, "\"randn\"", want);
		for (int i = 0; i < 16; i++) assert_true(fabs((double)normal[i] - want[i]) < 1e-5);
	}
	assert_int_equal(seeds, 6);
	free(data);
}

/* Seeds of all four integer types, and a 64-bit offset, whose upper half is the counter's second word. */
static void random_keys(void **state)
{
	(void)state;
	static const char source[] = "kernel k(r: *u32, a: i32, b: u32, c: u64, big: i64) {\n"
				     "	let i = arange(0, 1);\n"
				     "	store(r, randint(a, 5));\n"
				     "	store(r + 1, randint(a.to(i64), 5));\n"
				     "	store(r + 2, randint(b, 5));\n"
				     "	store(r + 3, randint(c, 5));\n"
				     "	store(r + 4, randint(1, big));\n"
				     "	let (x, y, z, w) = philox(1, 7, 1, 0, 0);\n"
				     "	store(r + 5, x);\n"
				     "	let (p, q, s, t) = philox(0, 0, 0, 0, 0);\n"
				     "	store(r + 6, p); store(r + 7, q); store(r + 8, s); store(r + 9, t);\n}\n";
	uint32_t r[10];
	run_source(source,
		(uint64_t[]){address(r), 0xffffffff, 0xffffffff, UINT64_C(0xffffffff), (UINT64_C(1) << 32) + 7}, 1);
	assert_int_equal(r[0], r[1]); /* -1 is extended by its sign */
	assert_int_equal(r[2], r[3]);
	assert_int_not_equal(r[0], r[2]);
	assert_int_equal(r[4], r[5]);
	/* the known answer of Philox 4x32-10 for key 0 and counter 0, from the paper's test vectors */
	assert_int_equal(r[6], 0x6627e8d5);
	assert_int_equal(r[7], 0xe169c58d);
	assert_int_equal(r[8], 0xbc57ac4c);
	assert_int_equal(r[9], 0x9b00dbd8);
}

/* ---- reductions ---- */

static void arg_reductions(void **state)
{
	(void)state;
	static const char source[] = "kernel k(r: *i32, x: *const f32) {\n"
				     "	let i = arange(0, 8)[:, None] * 4 + arange(0, 4)[None, :];\n"
				     "	let v = load(x + i);\n"
				     "	let j = arange(0, 8);\n"
				     "	store(r + j, argmax(v, axis = 1));\n"
				     "	store(r + 8 + j, argmin(v, axis = -1));\n"
				     "	store(r + 16, argmax(v));\n"
				     "	store(r + 17, argmin(v.to(f64)));\n"
				     "	store(r + 18, argmax(load(x + j).to(f16)));\n"
				     "	store(r + 19, argmin(j.to(u8) ^ 3));\n"
				     "	store(r + 20, argmax(j == 6));\n"
				     "	store(r + 21, argmin(2 - j));\n"
				     "	store(r + 24 + j[:, None], argmax(v, axis = 1, keep_dims = true));\n}\n";
	static const float x[32] = {1, 2, 3, 2,       /* plain */
		5, 5, 4, 4,                           /* ties */
		NAN, -1, NAN, -2,                     /* nan is ignored */
		NAN, NAN, NAN, NAN,                   /* unless there is nothing else */
		-0.0f, 0.0f, -0.0f, 0.0f,             /* -0 is below +0 */
		0.0f, -0.0f, 0.0f, -0.0f,             /* */
		-INFINITY, -INFINITY, NAN, -INFINITY, /* infinities count */
		INFINITY, 1e-45f, -1e-45f, NAN};
	static const int most[8] = {2, 0, 1, 0, 1, 0, 0, 0}, least[8] = {0, 2, 3, 0, 0, 1, 0, 2};
	int32_t r[32];
	memset(r, 0x55, sizeof r);
	run_source(source, (uint64_t[]){address(r), address(x)}, 1);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(r[i], most[i]);
		assert_int_equal(r[8 + i], least[i]);
		assert_int_equal(r[24 + i], most[i]);
	}
	assert_int_equal(r[16], 28); /* inf */
	assert_int_equal(r[17], 24); /* the first -inf */
	assert_int_equal(r[18], 4);  /* 5 */
	assert_int_equal(r[19], 3);
	assert_int_equal(r[20], 6);
	assert_int_equal(r[21], 7);
	assert_int_equal(r[22], 0x55555555);
}

static void sums_and_extrema(void **state)
{
	(void)state;
	static const char source[] =
		"fn pair(ma, na, mb, nb) { let n = na + nb; return (ma + (mb - ma) * (nb / n), n); }\n"
		"fn last(a, b) { return b; }\n"
		"kernel k(r: *f64, x: *const f32, n: i32) {\n"
		"	let i = arange(0, 64);\n"
		"	let m = i < n;\n"
		"	let v = load(x + i, mask = m);\n"
		"	store(r, sum(v.to(f64)));\n"
		"	store(r + 1, sum((i - 40).to(i8)));\n"
		"	store(r + 2, sum((i + 200).to(u8)));\n"
		"	store(r + 3, sum(m));\n"
		"	store(r + 4, sum(full([64], 100.0, f16)));\n"
		"	store(r + 5, sum(full([64], 1.0, bf16) + where(i == 0, 255.0, 0.0).to(bf16)));\n"
		"	store(r + 6, max(v)); store(r + 7, min(v));\n"
		"	store(r + 8, max(where(m, v, nan))); store(r + 9, max(full([4], nan, f32)));\n"
		"	store(r + 10, 1.0 / max(where(i == 5, 0.0, -0.0)));\n"
		"	store(r + 11, xor_sum(i * 77)); store(r + 12, any(i == 63)); store(r + 13, all(i != 63));\n"
		"	let (mean, count) = reduce((v.to(f64), m.to(f64) * 0.0 + 1.0), None, pair);\n"
		"	store(r + 14, mean); store(r + 15, count);\n"
		"	store(r + 16, reduce(i, 0, last));\n"
		"	store(r + 17, sum(i.to(u64) << 50) >> 50); store(r + 18, max((i - 60).to(i8)));\n"
		"	store(r + 19, sum(sum(reshape(i, [2, 4, 8]), axis = 1, keep_dims = true)));\n}\n";
	float x[64];
	double r[20], total = 0;
	for (int i = 0; i < 64; i++) x[i] = (float)(i * 37 % 19) - 8.5f;
	for (int i = 0; i < 50; i++) total += x[i];
	run_source(source, (uint64_t[]){address(r), address(x), 50}, 1);
	int bytes = 0, xored = 0;
	for (int i = 0; i < 64; i++) bytes += (i + 200) & 0xff, xored ^= i * 77;
	const double want[20] = {total, 64 * 63 / 2 - 64 * 40, bytes, 50, 6400, 320, 9.5, -8.5, 9.5, NAN, INFINITY,
		xored, 1, 0, total / 64, 64, 63, 2016, 3, 2016};
	for (int i = 0; i < 20; i++)
		if (!(fabs(r[i] - want[i]) < 1e-12 * 64 || r[i] == want[i] || (isnan(r[i]) && isnan(want[i]))))
			fail_msg("number %d is %.17g, not %.17g", i, r[i], want[i]);
}

/* ---- elementwise, shapes, library ---- */

static void elementwise(void **state)
{
	(void)state;
	static const char source[] =
		"kernel k(r: *f32, h: *f16, j: *i64, x: *const f32, u: *const u64, n: i32) {\n"
		"	let i = arange(0, 8);\n"
		"	let v = load(x + i);\n"
		"	store(r + i, maximum(v, 0)); store(r + 8 + i, minimum(v, nan));\n"
		"	store(r + 16 + i, clamp(v, -1, 2)); store(r + 24 + i, round(v)); store(r + 32 + i, floor(v));\n"
		"	store(r + 40 + i, ceil(v)); store(r + 48 + i, abs(v)); store(r + 56 + i, fma(v, v, -1));\n"
		"	store(r + 64 + i, where(isnan(v), 1.0, where(isinf(v), 2.0, 3.0)));\n"
		"	store(r + 72 + i, div_rn(v, 3)); store(r + 80 + i, sqrt_rn(v)); store(r + 88 + i, pow(v, 2));\n"
		"	store(r + 96 + i, where(i < n, 1, 2.5)); store(r + 104 + i, sigmoid(v)); store(r + 112 + i, "
		"sigmoid(v * 40 - 5));\n"
		"	store(h + i, div_rn(v.to(f16), 3)); store(h + 8 + i, sqrt_rn(v.to(f16)));\n"
		"	let w = load(u + i);\n"
		"	store(j + i, umulhi(w, w).to(i64, bitcast = true));\n"
		"	store(j + 8 + i, umulhi(w.to(i64, bitcast = true), w.to(i64, bitcast = true)));\n"
		"	store(j + 16 + i, umulhi(w.to(u32), w.to(u32))); store(j + 24 + i, cdiv(i + n, 3));\n"
		"	store(j + 32 + i, abs(i - n)); store(j + 40 + i, umulhi(w.to(i32), w.to(i32)));\n"
		"	store(j + 48 + i, maximum(w.to(i8), -5)); store(j + 56, max(n, 3) * 100 + min(n, 3));\n}\n";
	static const float x[8] = {-0.0f, 2.5f, -2.375f, NAN, INFINITY, -INFINITY, 3.0000002f, 0.49999997f};
	static const uint64_t u[8] = {0, 1, UINT64_MAX, UINT64_C(1) << 63, UINT64_C(0xd2511f53cd9e8d57), 0xffffffff,
		UINT64_C(0x80000000), 12345};
	float r[120];
	uint16_t h[16];
	int64_t j[64];
	run_source(source, (uint64_t[]){address(r), address(h), address(j), address(x), address(u), 5}, 1);
	for (int i = 0; i < 8; i++) {
		float v = x[i];
		const float want[15] = {isnan(v) ? 0 : fmaxf(v, 0) + 0.0f, v, isnan(v) ? -1 : fminf(fmaxf(v, -1), 2),
			rintf(v), floorf(v), ceilf(v), fabsf(v), fmaf(v, v, -1),
			isnan(v)   ? 1
			: isinf(v) ? 2
				   : 3,
			v / 3, sqrtf(v), v * v, i < 5 ? 1 : 2.5f, (float)(1 / (1 + exp(-(double)v))),
			(float)(1 / (1 + exp(-(double)(v * 40 - 5))))};
		for (int k = 0; k < 15; k++) {
			float got = r[8 * k + i];
			bool close = k >= 13 && fabsf(got - want[k]) <= 2e-7f * want[k] + 1.5e-45f;
			if (!close && !(got == want[k] || (isnan(got) && isnan(want[k]))))
				fail_msg("row %d of %g: %g", k, v, got);
		}
		/* a quotient and a root in double, rounded once */
		double narrow = scalar_to_double(SCALAR_F16, scalar_from_double(SCALAR_F16, v));
		assert_true(same(SCALAR_F16, h[i], scalar_from_double(SCALAR_F16, narrow / 3)));
		assert_true(same(SCALAR_F16, h[8 + i], scalar_from_double(SCALAR_F16, sqrt(narrow))));
		uint64_t w = u[i];
		assert_true((uint64_t)j[i] == (uint64_t)((unsigned __int128)w * w >> 64));
		assert_true(j[8 + i] == (int64_t)((__int128)(int64_t)w * (int64_t)w >> 64));
		assert_true(j[16 + i] == (int64_t)((uint64_t)(uint32_t)w * (uint32_t)w >> 32));
		assert_true(j[24 + i] == (i + 5 + 2) / 3);
		assert_true(j[32 + i] == (i < 5 ? 5 - i : i - 5));
		assert_true(j[40 + i] == (int64_t)(int32_t)w * (int32_t)w >> 32);
		assert_true(j[48 + i] == ((int8_t)w < -5 ? -5 : (int8_t)w));
	}
	assert_false(signbit(r[0])); /* maximum(-0, 0) */
	assert_int_equal(j[56], 503);
}

static void shapes(void **state)
{
	(void)state;
	static const char source[] =
		"kernel k(r: *i32) {\n"
		"	let v = arange(0, 64);\n"
		"	let a = reshape(v, [4, 16]);\n"
		"	let flat = arange(0, 64);\n"
		"	store(r + flat, ravel(trans(a)));\n"
		"	store(r + 64 + flat, ravel(permute(reshape(v, [2, 4, 8]), [2, 0, 1])));\n"
		"	store(r + 128 + flat, ravel(broadcast_to(arange(8, 16), [8, 8])));\n"
		"	store(r + 192 + flat, ravel(expand_dims(arange(-4, 4), 1) * 100 + arange(0, 8)[None, :]));\n"
		"	store(r + 256 + arange(0, 4), squeeze(expand_dims(arange(0, 4), 0), 0));\n"
		"	store(r + 260, full([], 9)); store(r + 261 + arange(0, 2), full_like(arange(0, 2), "
		"3.99));\n}\n";
	int32_t r[263];
	run_source(source, (uint64_t[]){address(r)}, 1);
	for (int i = 0; i < 64; i++) {
		assert_int_equal(r[i], i % 4 * 16 + i / 4);
		int c = i / 8, a = i / 4 % 2, b = i % 4; /* result [8, 2, 4] from [2, 4, 8] */
		assert_int_equal(r[64 + i], a * 32 + b * 8 + c);
		assert_int_equal(r[128 + i], 8 + i % 8);
		assert_int_equal(r[192 + i], (i / 8 - 4) * 100 + i % 8);
	}
	for (int i = 0; i < 4; i++) assert_int_equal(r[256 + i], i);
	assert_int_equal(r[260], 9);
	assert_int_equal(r[261], 3);
}

static void library_functions(void **state)
{
	(void)state;
	static const char source[] =
		"kernel k(r: *f32, s: *f16, o: *i32, x: *const f32) {\n"
		"	let i = arange(0, 16)[:, None] * 16 + arange(0, 16)[None, :];\n"
		"	let v = load(x + i);\n"
		"	store(r + i, softmax(v)); store(r + 256 + i, softmax(v, axis = 0)); store(r + 512 + i, "
		"gelu(v));\n"
		"	store(r + 768 + i, silu(v)); store(r + 1024 + i, relu(v)); store(s + i, gelu(v.to(f16)));\n"
		"	let p = arange(0, 16)[:, None] / 3; let q = arange(0, 16)[:, None] % 3;\n"
		"	let (a, b) = swizzle2d(p, q, 5, 3, 2);\n"
		"	store(o + arange(0, 16)[:, None], a * 10 + b);\n}\n";
	float x[256], r[1280];
	uint16_t s[256];
	int32_t o[16];
	for (int i = 0; i < 256; i++) x[i] = (float)(i * 97 % 251) / 20.0f - 6;
	run_source(source, (uint64_t[]){address(r), address(s), address(o), address(x)}, 1);
	for (int i = 0; i < 256; i++) {
		double v = x[i], row = 0, column = 0;
		for (int k = 0; k < 16; k++)
			row += exp((double)x[i / 16 * 16 + k] - v), column += exp((double)x[k * 16 + i % 16] - v);
		double gelu = 0.5 * v * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (v + 0.044715 * v * v * v)));
		const double want[5] = {1 / row, 1 / column, gelu, v / (1 + exp(-v)), v > 0 ? v : 0};
		for (int k = 0; k < 5; k++) {
			double got = r[256 * k + i];
			if (fabs(got - want[k]) > 2e-6 * fabs(want[k]) + 1e-12)
				fail_msg("function %d at %g: %g", k, v, got);
		}
		double narrow = scalar_to_double(SCALAR_F16, scalar_from_double(SCALAR_F16, v));
		double u =
			0.5 * narrow * (1 + tanh(0.79788456080286541 * (narrow + 0.044715 * narrow * narrow * narrow)));
		assert_true(fabs(scalar_to_double(SCALAR_F16, s[i]) - u) <= fabs(u) * 0x1p-11 + 6e-8);
	}
	/* 5 x 3 in groups of 2 rows: down each group's columns, and the last group has one row */
	static const int order[15] = {0, 10, 1, 11, 2, 12, 20, 30, 21, 31, 22, 32, 40, 41, 42};
	for (int i = 0; i < 15; i++) assert_int_equal(o[i], order[i]);
}

/* Rows that come in blocks: the maximum creeps up and then jumps; nothing is seen, at first or at all; infinities,
 * nan. */
static void softmax_in_blocks(void **state)
{
	(void)state;
	static const char body[] =
		"kernel k(r: *f32, x: *const f32, v: *const f32, const LAZY: f32 = %d.0) {\n"
		"	let row = arange(0, 8); let at = row[:, None] * 4 + arange(0, 4)[None, :];\n"
		"	var (m, l) = online_softmax_start(8);\n"
		"	var sum_v = zeros([8], f32); var scaled = zeros([8], i32);\n"
		"	for t in range(0, 5) {\n"
		"		let (p, a, next, sum_p) = online_softmax(load(x + t * 32 + at), m, l, 0.5, LAZY = "
		"LAZY);\n"
		"		sum_v = sum_v * a + sum(p * load(v + t * 32 + at), 1);\n"
		"		scaled += (a != 1.0).to(i32);\n"
		"		m = next; l = sum_p;\n	}\n"
		"	store(r + row, sum_v / where(l == 0.0, 1.0, l)); store(r + 8 + row, m + log2(l));\n"
		"	store(r + 16 + row, scaled.to(f32));\n}\n";
	float x[160], v[160], r[24];
	for (int i = 0; i < 160; i++) {
		int t = i / 32, row = i / 4 % 8;
		v[i] = (float)(i * 53 % 101) / 16 - 3;
		x[i] = (float)(i * 97 % 251) / 20 - 6;
		if (row == 0) x[i] = (float)(i % 4) + (float)(t < 4 ? 3 * t : 40);
		if (row == 1 || (row == 4 && t < 2)) x[i] = -INFINITY;
		if (row == 2 && i == 2 * 32 + 9) x[i] = INFINITY;
		if (row == 3 && i == 3 * 32 + 13) x[i] = NAN;
		if (row == 5) x[i] = t == 2 ? -1e30f : x[i] * 40;
		if (row == 6 && i % 4 == 1) x[i] = -INFINITY;
	}
	for (int lazy = 0; lazy < 2; lazy++) {
		char source[2048];
		snprintf(source, sizeof source, body, lazy ? 8 : 0);
		run_source(source, (uint64_t[]){address(r), address(x), address(v)}, 1);
		for (int row = 0; row < 8; row++) {
			double most = -HUGE_VAL, l = 0, sum = 0;
			for (int i = 0; i < 20; i++) most = fmax(most, x[i / 4 * 32 + row * 4 + i % 4] * 0.5);
			for (int i = 0; i < 20 && most != -HUGE_VAL; i++) {
				double p = exp2(x[i / 4 * 32 + row * 4 + i % 4] * 0.5 - most);
				l += p, sum += p * v[i / 4 * 32 + row * 4 + i % 4];
			}
			double want[2] = {l == 0 ? 0 : sum / l, most + log2(l)};
			for (int k = 0; k < 2; k++) {
				double got = r[8 * k + row];
				bool same = isnan(want[k]) ? isnan(got)
					    : isinf(want[k])
						    ? got == want[k]
						    : fabs(got - want[k]) <= 4e-6 * (fabs(want[k]) + (k ? 1 : 4));
				if (!same) fail_msg("row %d, %d: %g, not %g", row, k, got, want[k]);
			}
		}
		/* the first block, and where the maximum has grown by more than 8 in all: once; else in each block */
		assert_true(r[16] == (lazy ? 2 : 5));
	}
}

/* ---- programs that must compile, and those that must not ---- */

static void good_programs(void **state)
{
	(void)state;
	static const char *const files[] = {"tests/golden/good/builtins.blk", "tests/golden/good/dot.blk"};
	for (int i = 0; i < 2; i++) {
		fixture t;
		if (setjmp(t.out_of_memory)) fail_msg("out of memory");
		sema_program *p = parse(&t, files[i], NULL);
		text signature = {.arena = &t.arena}, why = {.arena = &t.arena};
		assert_true(sema_kernel_count(p) > 0);
		for (size_t k = 0; k < sema_kernel_count(p); k++) {
			t.f = sema_specialise(p, &(sema_request){.kernel = sema_kernel_name(p, k)}, &signature);
			if (!t.f) messages(&t);
			if (!ir_verify(t.f, &why)) fail_msg("%s: %s", sema_kernel_name(p, k), why.at);
			pass_context c = {.arena = &t.arena, .diags = &t.diags, .target = target_find("sm_90a")};
			if (!pass_expand_math(&c, t.f)) messages(&t);
			if (!ir_verify(t.f, &why)) fail_msg("%s, expanded: %s", sema_kernel_name(p, k), why.at);
			assert_true(pass_legalise(&c, t.f));
		}
		end(&t);
	}
}

/* Each error of a file in its order of lines; a line that ends in `//! E0NNN text` has exactly that one. */
static void bad_program(const char *path)
{
	char *source = read_text(path);
	fixture t;
	if (setjmp(t.out_of_memory)) fail_msg("out of memory");
	sema_program *p = parse(&t, path, source);
	text signature = {.arena = &t.arena};
	assert_null(sema_specialise(p, &(sema_request){.kernel = "k"}, &signature));
	uint32_t line = 0;
	int expected = 0;
	for (char *at = source, *next; at && *at; at = next) {
		line++;
		if ((next = strchr(at, '\n'))) *next++ = 0;
		const char *want = strstr(at, "//! ");
		unsigned found = 0;
		for (diag *d = t.diags.first; d; d = d->next) {
			if (source_locate(&t.arena, d->at).line != line) continue;
			found++;
			char got[400];
			snprintf(got, sizeof got, "E%04u %s", d->code, d->message);
			if (!want || strncmp(got, want + 4, strlen(want + 4)) != 0)
				fail_msg("%s:%u: %s\nwanted %s", path, line, got, want ? want + 4 : "nothing");
		}
		if (found != (want ? 1u : 0u)) fail_msg("%s:%u: %u errors", path, line, found);
		expected += want != NULL;
	}
	assert_true(expected > 10);
	end(&t);
	free(source);
}

static void bad_programs(void **state)
{
	(void)state;
	bad_program("tests/golden/bad/builtins_create.blk");
	bad_program("tests/golden/bad/builtins_memory.blk");
	bad_program("tests/golden/bad/builtins_reduce.blk");
	bad_program("tests/golden/bad/builtins_math.blk");
	bad_program("tests/golden/bad/builtins_options.blk");
}

/* Tensors and block pointers that an `if` chooses, and a loop moves: base, shape, strides and index meet, each by
 * itself. */
static void chosen_tensors(void **state)
{
	(void)state;
	float a[64], b[30], o[32];
	for (int i = 0; i < 64; i++) a[i] = (float)(100 + i);
	for (int i = 0; i < 30; i++) b[i] = (float)(500 + i);
	for (int32_t c = -1; c < 4; c++) {
		for (int i = 0; i < 32; i++) o[i] = -7;
		run_source("kernel k(o: *f32, a: *const f32, b: *const f32, c: i32) {\n"
			   "let i = arange(0, 4);\n"
			   "var bp = block_ptr(tensor(a, [8, 8]), [0, 0], [4, 4]);\n"
			   "var t = tensor(a, [8, 8], strides = [8, 1]);\n"
			   "if c > 0 { bp = block_ptr(tensor(b, [6, 5]), [c, 2], [4, 4]);\n"
			   "t = tensor(b, [c + 1, 3], strides = [5, 1]); }\n"
			   "for r in range(0, c) { bp = advance(bp, [1, -1]); }\n"
			   "store(o + i[:, None] * 4 + i[None, :], load(bp));\n"
			   "store(o + 16 + i[:, None] * 4 + i[None, :], t.load([1, 1], [4, 4]));\n}\n",
			(uint64_t[]){address(o), address(a), address(b), (uint32_t)c}, 1);
		for (int32_t r = 0; r < 4; r++)
			for (int32_t k = 0; k < 4; k++) {
				int32_t x = 2 * c + r, y = 2 - c + k; /* the block began at c, 2 and took c steps */
				float block = c <= 0 ? a[8 * r + k] : x < 6 && y >= 0 && y < 5 ? b[5 * x + y] : 0;
				float tile = c <= 0           ? a[8 * (r + 1) + k + 1]
					     : r < c && k < 2 ? b[5 * (r + 1) + k + 1]
							      : 0;
				if (o[4 * r + k] != block || o[16 + 4 * r + k] != tile)
					fail_msg("c = %d at %d, %d: %g %g, not %g %g", c, r, k, (double)o[4 * r + k],
						(double)o[16 + 4 * r + k], (double)block, (double)tile);
			}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elementary_f32),
		cmocka_unit_test(elementary_f64),
		cmocka_unit_test(power),
		cmocka_unit_test(expanded),
		cmocka_unit_test(random_numbers),
		cmocka_unit_test(random_keys),
		cmocka_unit_test(arg_reductions),
		cmocka_unit_test(sums_and_extrema),
		cmocka_unit_test(elementwise),
		cmocka_unit_test(shapes),
		cmocka_unit_test(library_functions),
		cmocka_unit_test(softmax_in_blocks),
		cmocka_unit_test(chosen_tensors),
		cmocka_unit_test(good_programs),
		cmocka_unit_test(bad_programs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
