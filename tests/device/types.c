/* What a value's type does to it: constants whose type is given beside run-time values of every other type, bool made
 * of and from everything, and where two types meet in where and join.
 *
 * The rules are written down here again, from docs/language.md: what two types promote to, and that a constant which
 * fits takes the other's type where they would not mix. */
#include "device_test.h"

enum { N = 333 }; /* no block divides it */

static const scalar integers[] = {
	SCALAR_I8, SCALAR_U8, SCALAR_I16, SCALAR_U16, SCALAR_I32, SCALAR_U32, SCALAR_I64, SCALAR_U64};
enum { INTEGERS = sizeof integers / sizeof integers[0] };

/* ---- constants with a type ---- */

/* The type of a sum of a run-time `run` and a constant of type `given` that both can hold. */
static scalar sum_type(scalar run, scalar given)
{
	unsigned r = scalar_bits(run), g = scalar_bits(given);
	bool rs = scalar_is_signed(run), gs = scalar_is_signed(given);
	if (rs == gs) return r > g ? run : given;
	if (rs) return r > g ? run : run; /* wider, or they do not mix and the constant fits */
	return g > r ? given : run;
}

/* Each given type takes part as a cast, a let, a const and a const parameter: planes of i64 behind one another. */
static void constants(suite *s, scalar run)
{
	enum { FORMS = 4, PLANES = FORMS * INTEGERS };
	char name[64], *text = suite_alloc(16384);
	snprintf(name, sizeof name, "constant.%s", scalar_name(run));
	if (!suite_wants(s, name)) {
		free(text);
		return;
	}
	size_t n = 0, room = 16384;
	for (int g = 0; g < INTEGERS; g++)
		n += (size_t)snprintf(text + n, room - n, "const C%d: %s = 101;\n", g, scalar_name(integers[g]));
	n += (size_t)snprintf(text + n, room - n, "kernel k(z: *i64, x: *const %s, n: i32", scalar_name(run));
	for (int g = 0; g < INTEGERS; g++)
		n += (size_t)snprintf(text + n, room - n, ", const P%d: %s = 101", g, scalar_name(integers[g]));
	n += (size_t)snprintf(text + n, room - n,
		") grid(cdiv(n, 128)) {\nlet o = program_id(0) * 128 + arange(0, 128);\n"
		"let v = load(x + o, mask = o < n);\n");
	for (int g = 0; g < INTEGERS; g++) {
		const char *t = scalar_name(integers[g]);
		n += (size_t)snprintf(text + n, room - n,
			"let l%d: %s = 101;\n"
			"store(z + %d * n + o, v + (101).to(%s), mask = o < n);\n"
			"store(z + %d * n + o, l%d + v, mask = o < n);\n"
			"store(z + %d * n + o, v + C%d, mask = o < n);\n"
			"store(z + %d * n + o, P%d + v, mask = o < n);\n",
			g, t, FORMS * g, t, FORMS * g + 1, g, FORMS * g + 2, g, FORMS * g + 3, g);
	}
	snprintf(text + n, room - n, "}\n");
	unsigned char *in = suite_alloc(N * 8);
	int64_t *got = suite_alloc(PLANES * N * sizeof *got);
	uint64_t state = 5;
	for (int i = 0; i < N; i++) {
		uint64_t r = suite_random(&state), top = UINT64_C(1) << (scalar_bits(run) - 1);
		container_put(run, in, (size_t)i, i % 5 == 0 ? top - 1 - r % 3 : i % 5 == 1 ? 0 - r % 200 : r);
	}
	const void *inputs[] = {in};
	size_t bytes = N * scalar_bytes(run);
	bool good = suite_run(s, name, text, NULL, 0, SCALAR_I64, got, PLANES * N, inputs, &bytes, 1, N);
	int wrong = 0;
	for (int p = 0; good && p < PLANES; p++)
		for (int i = 0; i < N; i++) {
			scalar t = sum_type(run, integers[p / FORMS]);
			uint64_t v = container_at(run, in, (size_t)i);
			__int128 x = scalar_is_signed(run) ? (__int128)scalar_sign_extend(run, v) : (__int128)v;
			uint64_t sum = scalar_truncate(t, (uint64_t)(x + 101));
			int64_t want = scalar_is_signed(t) ? scalar_sign_extend(t, sum) : (int64_t)sum;
			if (got[p * N + i] != want && wrong++ < 4)
				printf("%s: 101 as %s, form %d: element %d is %lld, expected %lld\n", name,
					scalar_name(integers[p / FORMS]), p % FORMS, i, (long long)got[p * N + i],
					(long long)want);
		}
	suite_verdict(s, good, wrong, name);
	free(in);
	free(got);
	free(text);
}

/* ---- bool ---- */

typedef struct truth { /* an element's inputs: x as a number, its truth, and two bools */
	double x;
	int64_t i; /* of an integer */
	bool holds, c, d;
} truth;
typedef double bool_reference(const truth *);
#define B(name, expression)                                                                                            \
	static double name(const truth *t)                                                                             \
	{                                                                                                              \
		(void)t;                                                                                               \
		return expression;                                                                                     \
	}
B(is_c, t->c)
B(not_c, !t->c)
B(and_cd, t->c && t->d)
B(or_cd, t->c || t->d)
B(less_cd, !t->c && t->d)
B(implies_cd, !t->c || t->d)
B(is_d, t->d)
B(yes, 1)
B(no, 0)
B(holds, t->holds)
B(fails, !t->holds)
B(two_or_three, t->holds ? 2 : 3)
B(narrow, (t->i & 0xff) != 0)

static const struct {
	const char *expression;
	bool_reference *want;
	bool integers; /* for integer x only */
} bools[] = {
	{"where(c, true, false)", is_c},
	{"where(c, false, true)", not_c},
	{"where(~c, true, false)", not_c},
	{"where(~c, false, true)", is_c},
	{"where(c, d, false)", and_cd},
	{"where(c, true, d)", or_cd},
	{"where(c, false, d)", less_cd},
	{"where(c, d, true)", implies_cd},
	{"where(c, true, true)", yes},
	{"where(c, false, false)", no},
	{"where(c, d, d)", is_d},
	{"where(true, d, c)", is_d},
	{"where(false, c, d)", is_d},
	{"where(c, c, d)", or_cd},
	{"where(c, d, c)", and_cd},
	{"where(c, 1, 0) == 1", is_c},
	{"where(where(c, true, false), d, false)", and_cd},
	{"x.to(bool)", holds},
	{"~x.to(bool)", fails},
	{"where(x.to(bool), true, false)", holds},
	{"where(x.to(bool), false, true)", fails},
	{"where(x.to(bool), 2, 3)", two_or_three},
	{"x.to(bool).to(i32)", holds},
	{"x.to(bool).to(f32)", holds},
	{"x.to(bool).to(f16).to(bool)", holds},
	{"x.to(bool).to(x.dtype).to(i32)", holds},
	{"x.to(bool).to(i64).to(bool).to(u8)", holds},
	{"c.to(i8).to(bool)", is_c},
	{"c.to(f32).to(i32)", is_c},
	{"c.to(bool)", is_c},
	{"x.to(bool).to(i32) == 1", holds}, /* which the float that is stored would hide */
	{"c.to(u8) * 255 == 255", is_c},
	{"c.to(i64) + 1 == 2", is_c},
	{"x.to(i8).to(bool)", narrow, true},
	{"x.to(u8).to(bool).to(i32)", narrow, true},
	{"(o * 0 + 256).to(bool)", yes}, /* known to the passes, not to the checker */
	{"(o * 0 + 256).to(i8).to(bool)", no},
	{"((o * 0).to(f32) + 0.5).to(bool)", yes},
	{"where((o * 0 + 256).to(bool), c, d)", is_c},
	{"c & true", is_c},
	{"c & false", no},
	{"c | true", yes},
	{"c ^ true", not_c},
	{"c == true", is_c},
	{"c != true", not_c},
	{"c == false", not_c},
};
enum { BOOLS = sizeof bools / sizeof bools[0] };

static uint64_t bool_input(scalar t, int i, uint64_t *state)
{
	static const double floats[] = {0, -0.0, 1, -1, 0.5, 2, 256, -256, 0x1p-9, 0x1p-16, 0x1p-24, 0x1p-149,
		0x1p-1074, INFINITY, -INFINITY, NAN, 448, 65504, 0x1p32};
	enum { SPECIAL = sizeof floats / sizeof floats[0] };
	static const uint64_t numbers[] = {0, 1, 2, 0x80, 0xff, 0x100, 0x8000, 0xffff, 0x10000, 0x80000000, 0xffffffff,
		0x100000000, 0x8000000000000000, 0xffffffffffffffff, 0x101, 0xff00, 0xffffff00, 3, 255};
	if (i % 3)
		return scalar_is_float(t) ? scalar_from_double(t, floats[i % SPECIAL])
					  : scalar_truncate(t, numbers[i % SPECIAL]);
	return scalar_truncate(t, i % 2 ? 0 : suite_random(state));
}

/* On tiles, and on scalars, which other code computes: one program an element then. */
static void truths(suite *s, scalar t, bool scalars)
{
	char name[64], *text = suite_alloc(16384);
	snprintf(name, sizeof name, "bool.%s%s", scalar_name(t), scalars ? ".scalar" : "");
	if (!suite_wants(s, name)) {
		free(text);
		return;
	}
	size_t at = 0, room = 16384;
	const char *mask = scalars ? "" : ", mask = o < n";
	at += (size_t)snprintf(text, room,
		"kernel k(z: *f32, xs: *const %s, cs: *const bool, ds: *const bool, n: i32) grid(%s) {\n"
		"let o = program_id(0)%s;\n"
		"let x = load(xs + o%s);\nlet c = load(cs + o%s);\nlet d = load(ds + o%s);\n",
		scalar_name(t), scalars ? "n" : "cdiv(n, 128)", scalars ? "" : " * 128 + arange(0, 128)", mask, mask,
		mask);
	for (int b = 0; b < BOOLS; b++)
		if (!bools[b].integers || scalar_is_integer(t))
			at += (size_t)snprintf(text + at, room - at, "store(z + %d * n + o, (%s).to(f32)%s);\n", b,
				bools[b].expression, mask);
	snprintf(text + at, room - at, "}\n");
	unsigned char *x = suite_alloc(N * 8), *c = suite_alloc(N), *d = suite_alloc(N);
	float *got = suite_alloc(BOOLS * N * sizeof *got);
	uint64_t state = 77;
	for (int i = 0; i < N; i++) {
		container_put(t, x, (size_t)i, bool_input(t, i, &state));
		c[i] = suite_random(&state) & 1;
		d[i] = suite_random(&state) & 1;
	}
	const void *inputs[] = {x, c, d};
	const size_t bytes[] = {N * scalar_bytes(t), N, N};
	bool good = suite_run(s, name, text, NULL, 0, SCALAR_F32, got, BOOLS * N, inputs, bytes, 3, N);
	int wrong = 0;
	for (int b = 0; good && b < BOOLS; b++) {
		if (bools[b].integers && !scalar_is_integer(t)) continue;
		for (int i = 0; i < N; i++) {
			uint64_t v = container_at(t, x, (size_t)i);
			truth in = {.x = scalar_to_double(t, v), .i = (int64_t)v, .c = c[i], .d = d[i]};
			in.holds = scalar_is_float(t) ? !(in.x == 0) : v != 0;
			if ((double)got[b * N + i] != bools[b].want(&in) && wrong++ < 6)
				printf("%s: %s: x %#llx, c %d, d %d gives %g, expected %g\n", name, bools[b].expression,
					(unsigned long long)v, in.c, in.d, (double)got[b * N + i], bools[b].want(&in));
		}
	}
	suite_verdict(s, good, wrong, name);
	free(x);
	free(c);
	free(d);
	free(got);
	free(text);
}

/* The same of constants, which the compiler computes; 1.0 for each that is right. */
static void known_truths(suite *s)
{
	static const char text[] =
		"kernel k(z: *f32, n: i32) grid(1) {\n"
		"let t = full([4], true); let f = full([4], false); let w = full([4], 256, i32);\n"
		"let h = full([4], 0.5, f32); let m = full([4], -0.0, f32);\n"
		"store(z + arange(0, 4), where(where(t, true, false), 1.0, 0.0));\n"
		"store(z + 4 + arange(0, 4), where(where(f, true, false), 0.0, 1.0));\n"
		"store(z + 8 + arange(0, 4), where(where(t, false, true), 0.0, 1.0));\n"
		"store(z + 12 + arange(0, 4), where(w.to(bool), 1.0, 0.0));\n"
		"store(z + 16 + arange(0, 4), where(w.to(i8).to(bool), 0.0, 1.0));\n"
		"store(z + 20 + arange(0, 4), where(h.to(bool), 1.0, 0.0));\n"
		"store(z + 24 + arange(0, 4), where(m.to(bool), 0.0, 1.0));\n"
		"store(z + 28 + arange(0, 4), h.to(bool).to(f32));\n"
		"store(z + 32 + arange(0, 4), w.to(bool).to(f32));\n"
		"store(z + 36 + arange(0, 4), (256).to(bool) && (0.5).to(bool) && !(0).to(bool) && !(-0.0).to(bool) "
		"&&\n"
		"    nan.to(bool) && where(true, true, false) && !where(false, true, false) ? 1.0 : 0.0);\n"
		"}\n";
	enum { COUNT = 40 };
	float got[COUNT];
	if (!suite_wants(s, "bool.known")) return;
	bool good = suite_run(s, "bool.known", text, NULL, 0, SCALAR_F32, got, COUNT, NULL, NULL, 0, 1);
	int wrong = 0;
	for (int i = 0; good && i < COUNT; i++)
		if (!(got[i] == 1) && wrong++ < 6)
			printf("bool.known: element %d is %g, expected 1\n", i, (double)got[i]);
	suite_verdict(s, good, wrong, text);
}

/* ---- casts of casts ---- */

static bool is_nan(scalar t, uint64_t v)
{
	return scalar_is_float(t) && isnan(scalar_to_double(t, v));
}

/* x.to(M).to(L) rounds, saturates or wraps twice, whatever the compiler makes of the pair: planes of containers. */
static void chains(suite *s, scalar from)
{
	enum { TYPES = SCALAR_COUNT, PLANES = TYPES * TYPES, ROOM = 65536 };
	char name[64], *text = suite_alloc(ROOM);
	snprintf(name, sizeof name, "chain.%s", scalar_name(from));
	if (!suite_wants(s, name)) {
		free(text);
		return;
	}
	size_t at = (size_t)snprintf(text, ROOM,
		"kernel k(z: *u64, xs: *const %s, n: i32) grid(cdiv(n, 128)) {\n"
		"let o = program_id(0) * 128 + arange(0, 128);\nlet x = load(xs + o, mask = o < n);\n",
		scalar_name(from));
	for (int p = 0; p < PLANES; p++) {
		scalar m = (scalar)(p / TYPES), l = (scalar)(p % TYPES);
		static const char *const bits[] = {"", "u8", "u16", "", "u32", "", "", "", "u64"};
		at += (size_t)snprintf(text + at, ROOM - at, "store(z + %d * n + o, x.to(%s).to(%s)", p, scalar_name(m),
			scalar_name(l));
		if (l != SCALAR_BOOL)
			at += (size_t)snprintf(text + at, ROOM - at, ".to(%s, bitcast = true)", bits[scalar_bytes(l)]);
		at += (size_t)snprintf(text + at, ROOM - at, ", mask = o < n);\n");
	}
	snprintf(text + at, ROOM - at, "}\n");
	unsigned char *in = suite_alloc(N * 8);
	uint64_t *got = suite_alloc(PLANES * N * sizeof *got), state = 41;
	for (int i = 0; i < N; i++) {
		uint64_t v = bool_input(from, i, &state);
		if (scalar_is_float(from) && i % 3 == 1)
			v = scalar_from_double(from, ldexp((double)(suite_random(&state) >> 11) * 0x1p-53 - 0.5,
							     (int)(suite_random(&state) % 40)));
		container_put(from, in, (size_t)i, from == SCALAR_BOOL ? v & 1 : v);
	}
	const void *inputs[] = {in};
	size_t bytes = N * scalar_bytes(from);
	bool good = suite_run(s, name, text, NULL, 0, SCALAR_U64, got, PLANES * N, inputs, &bytes, 1, N);
	int wrong = 0;
	for (int p = 0; good && p < PLANES; p++)
		for (int i = 0; i < N; i++) {
			scalar m = (scalar)(p / TYPES), l = (scalar)(p % TYPES);
			uint64_t v = container_at(from, in, (size_t)i), have = got[p * N + i];
			uint64_t want = scalar_convert(l, m, scalar_convert(m, from, v));
			if (have != want && !(is_nan(l, have) && is_nan(l, want)) && wrong++ < 6)
				printf("%s: to %s, to %s: %#llx gives %#llx, expected %#llx\n", name, scalar_name(m),
					scalar_name(l), (unsigned long long)v, (unsigned long long)have,
					(unsigned long long)want);
		}
	suite_verdict(s, good, wrong, name);
	free(in);
	free(got);
	free(text);
}

/* ---- two types that meet ---- */

/* where and join of both kinds of fp8: f16, which holds the values of both. */
static void fp8(suite *s)
{
	static const char text[] =
		"kernel k(z: *f16, a: *const f8e4m3, b: *const f8e5m2, n: i32) grid(1) {\n"
		"let o = arange(0, 256); let x = load(a + o); let y = load(b + o);\n"
		"let w = where(o % 3 == 0, x, y);\nstatic_assert(w.dtype == f16);\nstore(z + o, w);\n"
		"let j = join(x, y);\nstatic_assert(j.dtype == f16);\n"
		"store(z + 256 + o[:, None] * 2 + arange(0, 2)[None, :], j);\n"
		"store(z + 768 + o, n > 0 ? x : y);\n}\n";
	enum { ALL = 256, COUNT = 4 * ALL };
	uint8_t bytes[ALL];
	uint16_t got[COUNT];
	if (!suite_wants(s, "meet.fp8")) return;
	for (int i = 0; i < ALL; i++) bytes[i] = (uint8_t)i;
	const void *inputs[] = {bytes, bytes};
	const size_t sizes[] = {ALL, ALL};
	bool good = suite_run(s, "meet.fp8", text, NULL, 0, SCALAR_F16, got, COUNT, inputs, sizes, 2, 1);
	int wrong = 0;
	for (int i = 0; good && i < COUNT; i++) {
		int byte = i < ALL ? i : i < 3 * ALL ? (i - ALL) / 2 : i - 3 * ALL;
		bool first = i < ALL ? i % 3 == 0 : i < 3 * ALL ? i % 2 == 0 : true;
		double want = scalar_to_double(first ? SCALAR_F8E4M3 : SCALAR_F8E5M2, (uint64_t)byte),
		       have = scalar_to_double(SCALAR_F16, got[i]);
		bool same = isnan(want) ? isnan(have) : have == want && signbit(have) == signbit(want);
		if (!same && wrong++ < 6) printf("meet.fp8: element %d is %g, expected %g\n", i, have, want);
	}
	suite_verdict(s, good, wrong, text);
}

/* join, interleave and cat of i32 with f32: f32. */
static void joined(suite *s)
{
	static const char text[] = "kernel k(z: *f32, a: *const i32, b: *const f32, n: i32) grid(1) {\n"
				   "let o = arange(0, 64); let x = load(a + o); let y = load(b + o);\n"
				   "let j = join(x, y);\nstatic_assert(j.dtype == f32);\n"
				   "store(z + o[:, None] * 2 + arange(0, 2)[None, :], j);\n"
				   "store(z + 128 + arange(0, 128), interleave(y, x));\n"
				   "store(z + 256 + arange(0, 128), cat(x, y));\n}\n";
	enum { COUNT = 384 };
	int32_t a[64];
	float b[64], got[COUNT];
	uint64_t state = 3;
	if (!suite_wants(s, "meet.join")) return;
	for (int i = 0; i < 64; i++) {
		a[i] = i % 2 ? (int32_t)suite_random(&state) : i - 32; /* those beyond 2^24 are rounded */
		b[i] = (float)i / 8 - 3;
	}
	const void *inputs[] = {a, b};
	const size_t sizes[] = {sizeof a, sizeof b};
	bool good = suite_run(s, "meet.join", text, NULL, 0, SCALAR_F32, got, COUNT, inputs, sizes, 2, 1);
	int wrong = 0;
	for (int i = 0; good && i < COUNT; i++) {
		int part = i / 128, k = i % 128, e = part == 2 ? k % 64 : k / 2;
		bool integer = part == 0 ? k % 2 == 0 : part == 1 ? k % 2 == 1 : k < 64;
		float want = integer ? (float)a[e] : b[e];
		if (got[i] != want && wrong++ < 6)
			printf("meet.join: element %d is %g, expected %g\n", i, (double)got[i], (double)want);
	}
	suite_verdict(s, good, wrong, text);
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	for (int i = 0; i < INTEGERS; i++) constants(&s, integers[i]);
	for (int t = 0; t < SCALAR_COUNT; t++) {
		truths(&s, (scalar)t, false);
		truths(&s, (scalar)t, true);
	}
	static const scalar sources[] = {SCALAR_BOOL, SCALAR_U8, SCALAR_I32, SCALAR_F8E5M2, SCALAR_F16, SCALAR_F32};
	for (int t = 0; s.all && t < SCALAR_COUNT; t++) chains(&s, (scalar)t);
	for (size_t i = 0; !s.all && i < sizeof sources / sizeof *sources; i++) chains(&s, sources[i]);
	known_truths(&s);
	fp8(&s);
	joined(&s);
	return suite_close(&s);
}
