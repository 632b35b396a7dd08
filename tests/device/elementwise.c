/* Every elementwise operation on every type it takes, and every cast, on special and random values: exact where the
 * language says exact, within the documented bound in ulp elsewhere. */
#include "device_test.h"

enum {
	INTS = 1,
	FLOATS = 2,
	HALVES = 4,
	BOOLS = 8,
	SIGNED = 16,
	F32_64 = 64,
	WIDE_INTS = 128,
	NUMBERS = INTS | FLOATS | HALVES,
};

static bool in_class(scalar t, unsigned classes)
{
	if (t == SCALAR_BOOL) return classes & BOOLS;
	if (scalar_is_fp8(t)) return false;
	if (t == SCALAR_F16 || t == SCALAR_BF16) return classes & HALVES;
	if (scalar_is_float(t)) return classes & (FLOATS | F32_64);
	bool wide = scalar_bytes(t) >= 4;
	return classes & INTS || (classes & SIGNED && scalar_is_signed(t)) || (classes & WIDE_INTS && wide);
}

/* The exact result: for floats in double (rounded by the caller), for integers in `bits`. */
typedef struct exact {
	double f;
	uint64_t bits;
	bool skip; /* the language leaves it open */
} exact;
typedef exact reference(scalar t, const uint64_t *v, const double *f);

#define R static exact
#define ARGS scalar t, const uint64_t *v, const double *f
#define UNUSED (void)t, (void)v, (void)f
static exact number(double f)
{
	return (exact){.f = f};
}
static exact integer(uint64_t bits)
{
	return (exact){.bits = bits};
}
static int64_t s(scalar t, uint64_t v)
{
	return scalar_sign_extend(t, v);
}
static bool is_signed(scalar t)
{
	return scalar_is_signed(t);
}
static bool is_float(scalar t)
{
	return scalar_is_float(t);
}

R add(ARGS)
{
	UNUSED;
	return is_float(t) ? number(f[0] + f[1]) : integer(v[0] + v[1]);
}
R sub(ARGS)
{
	UNUSED;
	return is_float(t) ? number(f[0] - f[1]) : integer(v[0] - v[1]);
}
R mul(ARGS)
{
	UNUSED;
	return is_float(t) ? number(f[0] * f[1]) : integer(v[0] * v[1]);
}
R divide(ARGS)
{
	UNUSED;
	if (is_float(t)) return number(f[0] / f[1]);
	if (scalar_truncate(t, v[1]) == 0) return (exact){.skip = true};
	if (!is_signed(t)) return integer(v[0] / v[1]);
	return integer(s(t, v[1]) == -1 ? 0 - v[0] : (uint64_t)(s(t, v[0]) / s(t, v[1])));
}
R rest(ARGS)
{
	UNUSED;
	if (scalar_truncate(t, v[1]) == 0) return (exact){.skip = true};
	if (!is_signed(t)) return integer(v[0] % v[1]);
	return integer(s(t, v[1]) == -1 ? 0 : (uint64_t)(s(t, v[0]) % s(t, v[1])));
}
R negate(ARGS)
{
	UNUSED;
	return is_float(t) ? number(-f[0]) : integer(0 - v[0]);
}
R absolute(ARGS)
{
	UNUSED;
	return is_float(t) ? number(fabs(f[0])) : integer(is_signed(t) && s(t, v[0]) < 0 ? 0 - v[0] : v[0]);
}
static bool below(scalar t, const uint64_t *v, const double *f, int a, int b) /* -0 below +0 */
{
	if (is_float(t)) return f[a] < f[b] || (f[a] == f[b] && signbit(f[a]) && !signbit(f[b]));
	return is_signed(t) ? s(t, v[a]) < s(t, v[b]) : v[a] < v[b];
}
R largest(ARGS)
{
	int i = is_float(t) && isnan(f[0]) ? 1 : is_float(t) && isnan(f[1]) ? 0 : below(t, v, f, 0, 1);
	return (exact){.f = f[i], .bits = v[i]};
}
R smallest(ARGS)
{
	int i = is_float(t) && isnan(f[0]) ? 1 : is_float(t) && isnan(f[1]) ? 0 : below(t, v, f, 1, 0);
	return (exact){.f = f[i], .bits = v[i]};
}
R largest_or_nan(ARGS)
{
	if (isnan(f[0]) || isnan(f[1])) return number(NAN);
	return largest(t, v, f);
}
R smallest_or_nan(ARGS)
{
	if (isnan(f[0]) || isnan(f[1])) return number(NAN);
	return smallest(t, v, f);
}
R both(ARGS)
{
	UNUSED;
	return integer(v[0] & v[1]);
}
R either(ARGS)
{
	UNUSED;
	return integer(v[0] | v[1]);
}
static uint64_t count_ones(scalar t, uint64_t x)
{
	uint64_t n = 0;
	for (unsigned i = 0; i < scalar_bits(t); i++) n += x >> i & 1;
	return n;
}
R ones(ARGS)
{
	(void)f;
	return integer(count_ones(t, v[0]));
}
R ones_of_difference(ARGS)
{
	(void)f;
	return integer(count_ones(t, count_ones(t, v[0]) - v[1]));
}
R zeros_above(ARGS)
{
	(void)f;
	uint64_t n = 0;
	for (unsigned i = scalar_bits(t); i-- && !(v[0] >> i & 1);) n++;
	return integer(n);
}
R zeros_below(ARGS)
{
	(void)f;
	uint64_t n = 0;
	for (unsigned i = 0; i < scalar_bits(t) && !(v[0] >> i & 1); i++) n++;
	return integer(n);
}
R backwards(ARGS)
{
	(void)f;
	uint64_t y = 0;
	for (unsigned i = 0; i < scalar_bits(t); i++)
		if (v[0] >> i & 1) y |= UINT64_C(1) << (scalar_bits(t) - 1 - i);
	return integer(y);
}
R differ(ARGS)
{
	UNUSED;
	return integer(v[0] ^ v[1]);
}
R invert(ARGS)
{
	UNUSED;
	return integer(t == SCALAR_BOOL ? !v[0] : ~v[0]);
}
R left(ARGS)
{
	UNUSED;
	uint64_t n = scalar_truncate(t, v[1]);
	return integer(n >= scalar_bits(t) ? 0 : v[0] << n);
}
R right(ARGS)
{
	UNUSED;
	uint64_t n = scalar_truncate(t, v[1]);
	if (n >= scalar_bits(t)) return integer(is_signed(t) && s(t, v[0]) < 0 ? ~UINT64_C(0) : 0);
	return integer(is_signed(t) ? (uint64_t)(s(t, v[0]) >> n) : v[0] >> n);
}
R absolute_right(ARGS) /* what abs leaves above the type's bits must not come down */
{
	uint64_t shifted[] = {absolute(t, v, f).bits, v[1]};
	return right(t, shifted, f);
}
R high(ARGS)
{
	UNUSED;
	unsigned w = scalar_bits(t);
	if (is_signed(t)) return integer((uint64_t)(((__int128)s(t, v[0]) * s(t, v[1])) >> w));
	return integer((uint64_t)(((unsigned __int128)v[0] * v[1]) >> w));
}
R both_halves(ARGS)
{
	return integer(high(t, v, f).bits ^ (v[0] * v[1]));
}
static int order(scalar t, const uint64_t *v, const double *f) /* 2: unordered */
{
	if (is_float(t)) return isnan(f[0]) || isnan(f[1]) ? 2 : f[0] < f[1] ? -1 : f[0] > f[1];
	if (is_signed(t)) return s(t, v[0]) < s(t, v[1]) ? -1 : s(t, v[0]) > s(t, v[1]);
	return v[0] < v[1] ? -1 : v[0] > v[1];
}
R equal(ARGS)
{
	return integer(order(t, v, f) == 0);
}
R unequal(ARGS)
{
	return integer(order(t, v, f) != 0);
}
R less(ARGS)
{
	return integer(order(t, v, f) == -1);
}
R at_most(ARGS)
{
	return integer(order(t, v, f) == -1 || order(t, v, f) == 0);
}
R greater(ARGS)
{
	return integer(order(t, v, f) == 1);
}
R at_least(ARGS)
{
	return integer(order(t, v, f) == 1 || order(t, v, f) == 0);
}
R choose(ARGS)
{
	bool c = order(t, v, f) == -1;
	return (exact){.f = f[c ? 1 : 2], .bits = v[c ? 1 : 2]};
}
R fused(ARGS)
{
	UNUSED;
	return number(t == SCALAR_F64   ? fma(f[0], f[1], f[2])
		      : t == SCALAR_F32 ? (double)fmaf((float)f[0], (float)f[1], (float)f[2])
					: f[0] * f[1] + f[2]);
}
R clamped(ARGS)
{
	UNUSED;
	if (isnan(f[0]) || isnan(f[1]) || isnan(f[2]) || f[1] > f[2] || f[0] == 0 || f[1] == 0 || f[2] == 0)
		return (exact){.skip = true};
	return number(fmin(fmax(f[0], f[1]), f[2]));
}
R nan_test(ARGS)
{
	UNUSED;
	return integer(isnan(f[0]) != 0);
}
R inf_test(ARGS)
{
	UNUSED;
	return integer(isinf(f[0]) != 0);
}
R finite_test(ARGS)
{
	UNUSED;
	return integer(isfinite(f[0]) != 0);
}
#define MATH(name, expression)                                                                                         \
	R name(ARGS)                                                                                                   \
	{                                                                                                              \
		UNUSED;                                                                                                \
		double x = f[0];                                                                                       \
		return number(expression);                                                                             \
	}
MATH(m_exp, exp(x))
MATH(m_exp2, exp2(x))
MATH(m_expm1, expm1(x))
MATH(m_log, log(x))
MATH(m_log2, log2(x))
MATH(m_log1p, log1p(x))
MATH(m_sqrt, sqrt(x))
MATH(m_rsqrt, 1 / sqrt(x))
MATH(m_sin, sin(x))
MATH(m_cos, cos(x))
MATH(m_tanh, tanh(x))
MATH(m_erf, erf(x))
MATH(m_sigmoid, 1 / (1 + exp(-x)))
MATH(m_floor, floor(x))
MATH(m_ceil, ceil(x))
MATH(m_round, nearbyint(x))
MATH(m_tan, (double)tanl(x))
MATH(m_asin, (double)asinl(x))
MATH(m_acos, (double)acosl(x))
MATH(m_atan, (double)atanl(x))
MATH(m_sinh, (double)sinhl(x))
MATH(m_cosh, (double)coshl(x))
MATH(m_asinh, (double)asinhl(x))
MATH(m_acosh, (double)acoshl(x))
MATH(m_atanh, (double)atanhl(x))
MATH(m_cbrt, (double)cbrtl(x))
MATH(m_exp10, (double)exp10l(x))
MATH(m_log10, (double)log10l(x))
MATH(m_erfc, (double)erfcl(x))
MATH(m_lgamma, (double)lgammal(x))
MATH(m_trunc, trunc(x))
R m_atan2(ARGS)
{
	UNUSED;
	return number((double)atan2l(f[0], f[1]));
}
R m_hypot(ARGS)
{
	UNUSED;
	return number((double)hypotl(f[0], f[1]));
}
R m_fmod(ARGS)
{
	UNUSED;
	return number(fmod(f[0], f[1]));
}
R m_remainder(ARGS)
{
	UNUSED;
	return number(remainder(f[0], f[1]));
}
R m_copysign(ARGS)
{
	UNUSED;
	return number(copysign(f[0], f[1]));
}
/* The neighbour among all numbers of the type in their order. */
R m_nextafter(ARGS)
{
	if (isnan(f[0]) || isnan(f[1])) return number(NAN);
	if (f[0] == f[1]) return number(f[1]);
	uint64_t sign = UINT64_C(1) << (scalar_bits(t) - 1);
	int64_t place = v[0] & sign ? -(int64_t)(v[0] - sign) : (int64_t)v[0];
	place += f[1] > f[0] ? 1 : -1;
	double y = scalar_to_double(t, (uint64_t)(place < 0 ? -place : place));
	return number(place < 0 || (place == 0 && f[0] < 0) ? -y : y);
}
R m_pow(ARGS)
{
	UNUSED;
	return number(pow(f[0], f[1]));
}

typedef struct row {
	const char *name, *expression;
	int arity;
	unsigned classes;
	reference *want;
	bool boolean;        /* the result's type */
	double ulp32, ulp64; /* allowed beyond correct rounding for f32 (16-bit types: rounded once after it) and f64;
				0: exact */
} row;

static const row rows[] = {
	{"add", "a + b", 2, NUMBERS, add, 0, 0, 0},
	{"sub", "a - b", 2, NUMBERS, sub, 0, 0, 0},
	{"mul", "a * b", 2, NUMBERS, mul, 0, 0, 0},
	{"div", "a / b", 2, NUMBERS, divide, 0, 2, 0},
	{"div_rn", "div_rn(a, b)", 2, F32_64, divide, 0, 0, 0},
	{"rem", "a % b", 2, INTS, rest, 0, 0, 0},
	{"neg", "-a", 1, NUMBERS, negate, 0, 0, 0},
	{"abs", "abs(a)", 1, NUMBERS, absolute, 0, 0, 0},
	{"maximum", "maximum(a, b)", 2, NUMBERS, largest, 0, 0, 0},
	{"minimum", "minimum(a, b)", 2, NUMBERS, smallest, 0, 0, 0},
	{"maximum_nan", "maximum(a, b, propagate_nan = true)", 2, NUMBERS, largest_or_nan, 0, 0, 0},
	{"minimum_nan", "minimum(a, b, propagate_nan = true)", 2, NUMBERS, smallest_or_nan, 0, 0, 0},
	{"and", "a & b", 2, INTS | BOOLS, both, 0, 0, 0},
	{"or", "a | b", 2, INTS | BOOLS, either, 0, 0, 0},
	{"xor", "a ^ b", 2, INTS | BOOLS, differ, 0, 0, 0},
	{"not", "~a", 1, INTS | BOOLS, invert, 0, 0, 0},
	{"shl", "a << b", 2, INTS, left, 0, 0, 0},
	{"shr", "a >> b", 2, INTS, right, 0, 0, 0},
	{"popcount", "popcount(a)", 1, INTS, ones, 0, 0, 0},
	{"popcount_two", "popcount(popcount(a) - b)", 2, INTS, ones_of_difference, 0, 0, 0},
	{"clz", "clz(a).to(a.dtype)", 1, INTS, zeros_above, 0, 0, 0},
	{"ctz", "ctz(a).to(a.dtype)", 1, INTS, zeros_below, 0, 0, 0},
	{"brev", "brev(a)", 1, INTS, backwards, 0, 0, 0},
	{"abs_shr", "abs(a) >> b", 2, INTS, absolute_right, 0, 0, 0},
	{"umulhi", "umulhi(a, b)", 2, WIDE_INTS, high, 0, 0, 0},
	{"umulhi_and_mul", "umulhi(a, b) ^ (a * b)", 2, WIDE_INTS, both_halves, 0, 0, 0},
	{"eq", "a == b", 2, NUMBERS, equal, 1, 0, 0},
	{"ne", "a != b", 2, NUMBERS, unequal, 1, 0, 0},
	{"lt", "a < b", 2, NUMBERS, less, 1, 0, 0},
	{"le", "a <= b", 2, NUMBERS, at_most, 1, 0, 0},
	{"gt", "a > b", 2, NUMBERS, greater, 1, 0, 0},
	{"ge", "a >= b", 2, NUMBERS, at_least, 1, 0, 0},
	{"where", "where(a < b, b, c)", 3, NUMBERS, choose, 0, 0, 0},
	{"fma", "fma(a, b, c)", 3, FLOATS, fused, 0, 0, 0},
	{"clamp", "clamp(a, b, c)", 3, FLOATS | HALVES, clamped, 0, 0, 0},
	{"isnan", "isnan(a)", 1, FLOATS | HALVES, nan_test, 1, 0, 0},
	{"isinf", "isinf(a)", 1, FLOATS | HALVES, inf_test, 1, 0, 0},
	{"isfinite", "isfinite(a)", 1, FLOATS | HALVES, finite_test, 1, 0, 0},
	{"exp", "exp(a)", 1, FLOATS | HALVES, m_exp, 0, 3, 3},
	{"exp2", "exp2(a)", 1, FLOATS | HALVES, m_exp2, 0, 3, 3},
	{"expm1", "expm1(a)", 1, FLOATS | HALVES, m_expm1, 0, 4, 4},
	{"log", "log(a)", 1, FLOATS | HALVES, m_log, 0, 4, 3},
	{"log2", "log2(a)", 1, FLOATS | HALVES, m_log2, 0, 4, 3},
	{"log1p", "log1p(a)", 1, FLOATS | HALVES, m_log1p, 0, 4, 4},
	{"sqrt", "sqrt(a)", 1, FLOATS | HALVES, m_sqrt, 0, 2, 0},
	{"sqrt_rn", "sqrt_rn(a)", 1, F32_64, m_sqrt, 0, 0, 0},
	{"rsqrt", "rsqrt(a)", 1, FLOATS | HALVES, m_rsqrt, 0, 2, 2},
	{"sin", "sin(a)", 1, FLOATS | HALVES, m_sin, 0, 4, 4},
	{"cos", "cos(a)", 1, FLOATS | HALVES, m_cos, 0, 4, 4},
	{"tanh", "tanh(a)", 1, FLOATS | HALVES, m_tanh, 0, 4, 4},
	{"erf", "erf(a)", 1, FLOATS | HALVES, m_erf, 0, 4, 4},
	{"sigmoid", "sigmoid(a)", 1, FLOATS | HALVES, m_sigmoid, 0, 4, 4},
	{"pow", "pow(a, b)", 2, FLOATS | HALVES, m_pow, 0, 16, 16},
	{"tan", "tan(a)", 1, FLOATS | HALVES, m_tan, 0, 1, 1},
	{"asin", "asin(a)", 1, FLOATS | HALVES, m_asin, 0, 1.5, 1.5},
	{"acos", "acos(a)", 1, FLOATS | HALVES, m_acos, 0, 1.5, 1.5},
	{"atan", "atan(a)", 1, FLOATS | HALVES, m_atan, 0, 1.5, 1.5},
	{"sinh", "sinh(a)", 1, FLOATS | HALVES, m_sinh, 0, 1.5, 1.5},
	{"cosh", "cosh(a)", 1, FLOATS | HALVES, m_cosh, 0, 1.5, 1.5},
	{"asinh", "asinh(a)", 1, FLOATS | HALVES, m_asinh, 0, 3, 3},
	{"acosh", "acosh(a)", 1, FLOATS | HALVES, m_acosh, 0, 3, 3},
	{"atanh", "atanh(a)", 1, FLOATS | HALVES, m_atanh, 0, 3, 3},
	{"cbrt", "cbrt(a)", 1, FLOATS | HALVES, m_cbrt, 0, 0.5, 1},
	{"exp10", "exp10(a)", 1, FLOATS | HALVES, m_exp10, 0, 1, 2},
	{"log10", "log10(a)", 1, FLOATS | HALVES, m_log10, 0, 2, 2},
	{"erfc", "erfc(a)", 1, FLOATS | HALVES, m_erfc, 0, 3, 5},
	{"lgamma", "lgamma(a)", 1, FLOATS | HALVES, m_lgamma, 0, 3, 4},
	{"trunc", "trunc(a)", 1, FLOATS | HALVES, m_trunc, 0, 0, 0},
	{"atan2", "atan2(a, b)", 2, FLOATS | HALVES, m_atan2, 0, 2, 2},
	{"hypot", "hypot(a, b)", 2, FLOATS | HALVES, m_hypot, 0, 1, 1},
	{"fmod", "fmod(a, b)", 2, FLOATS | HALVES, m_fmod, 0, 0, 0},
	{"remainder", "remainder(a, b)", 2, FLOATS | HALVES, m_remainder, 0, 0, 0},
	{"copysign", "copysign(a, b)", 2, FLOATS | HALVES, m_copysign, 0, 0, 0},
	{"nextafter", "nextafter(a, b)", 2, FLOATS | HALVES, m_nextafter, 0, 0, 0},
	{"floor", "floor(a)", 1, FLOATS | HALVES, m_floor, 0, 0, 0},
	{"ceil", "ceil(a)", 1, FLOATS | HALVES, m_ceil, 0, 0, 0},
	{"round", "round(a)", 1, FLOATS | HALVES, m_round, 0, 0, 0},
};

enum { N = 7777 }; /* no block divides it */

/* Special values crossed with each other first, then random bits, random numbers of moderate size, and small integers.
 */
static uint64_t input(scalar t, int which, int i, uint64_t *state)
{
	static const double special[] = {0, -0.0, 1, -1, 0.5, 2, 3, -2.5, 1e-3, 1e3, 7, 127, 128, -128, 255, 32767,
		65504, 65520, 2147483647.0, 4294967296.0, 1e30, -1e30, 1e-40, 6e-8, 1e-310, 88.7, -104.0, 709.7};
	enum { SPECIAL = sizeof special / sizeof special[0] + 4 };
	uint64_t r = suite_random(state);
	int k = which == 0 ? i % SPECIAL : which == 1 ? i / SPECIAL % SPECIAL : (i * 7 + 3) % SPECIAL;
	if (t == SCALAR_BOOL) return r & 1;
	if (i < SPECIAL * SPECIAL) {
		int extra = k - (SPECIAL - 4);
		if (scalar_is_float(t))
			return extra < 0 ? scalar_from_double(t, special[k])
					 : scalar_from_double(t, extra == 0   ? NAN
								 : extra == 1 ? INFINITY
								 : extra == 2 ? -INFINITY
									      : 0x1p-149);
		if (extra >= 0)
			return scalar_truncate(t, extra == 0   ? UINT64_MAX
						  : extra == 1 ? UINT64_C(1) << (scalar_bits(t) - 1)
						  : extra == 2 ? (UINT64_C(1) << (scalar_bits(t) - 1)) - 1
							       : scalar_bits(t));
		return scalar_from_double(t, special[k]);
	}
	if (i & 1 && scalar_is_float(t))
		return scalar_from_double(t, ((double)(r >> 11) * 0x1p-53 - 0.5) * (i & 2 ? 8 : 200));
	if (i & 1) return scalar_truncate(t, r % 67);
	return scalar_truncate(t, r);
}

static void element_failed(const char *name, scalar t, int i, const uint64_t *v, const double *f, int arity,
	uint64_t got, double gf, uint64_t want, double wf)
{
	printf("%s %s: element %d:", name, scalar_name(t), i);
	for (int k = 0; k < arity; k++) printf(" %#llx (%.9g)", (unsigned long long)v[k], f[k]);
	printf(" gives %#llx (%.17g), expected %#llx (%.17g)\n", (unsigned long long)got, gf, (unsigned long long)want,
		wf);
}

/* What a divisor of 0 gives is stored by no one where that is reported: on the simulator. */
static const char *stored_where(suite *s, const row *r, scalar t)
{
	blk_device_info info;
	bool divides = r->want == divide || r->want == rest;
	bool reported = blk_device_query(s->device, &info) == BLK_OK && info.kind == BLK_DEVICE_SIM;
	return divides && reported && !scalar_is_float(t) ? "m & (b != 0)" : "m";
}

static void run_row(suite *s, const row *r, scalar t)
{
	char name[64], text[1024];
	snprintf(name, sizeof name, "%s.%s", r->name, scalar_name(t));
	if (!suite_wants(s, name)) return;
	scalar result = r->boolean ? SCALAR_BOOL : t;
	snprintf(text, sizeof text,
		"kernel k(z: *%s, x0: *const %s, x1: *const %s, x2: *const %s, n: i32, const BLOCK: i32 = 512) "
		"grid(cdiv(n, BLOCK)) {\n"
		"let o = program_id(0) * BLOCK + arange(0, BLOCK);\nlet m = o < n;\nlet a = load(x0 + o, mask = m);\n"
		"let b = load(x1 + o, mask = m);\nlet c = load(x2 + o, mask = m);\nstore(z + o, %s, mask = %s);\n}\n",
		scalar_name(result), scalar_name(t), scalar_name(t), scalar_name(t), r->expression,
		stored_where(s, r, t));
	unsigned bytes = scalar_bytes(t);
	void *in[3], *out = suite_alloc(N * 8);
	size_t in_bytes[3];
	uint64_t state = 17;
	for (int k = 0; k < 3; k++) {
		in[k] = suite_alloc((size_t)N * bytes);
		in_bytes[k] = (size_t)N * bytes;
		for (int i = 0; i < N; i++) container_put(t, in[k], (size_t)i, input(t, k, i, &state));
	}
	bool good = suite_run(s, name, text, NULL, 0, result, out, N, (const void *const *)in, in_bytes, 3, N);
	int wrong = 0;
	double worst = 0;
	for (int i = 0; good && i < N; i++) {
		uint64_t v[3], got = container_at(result, out, (size_t)i), want;
		double f[3];
		for (int k = 0; k < 3; k++) {
			v[k] = container_at(t, in[k], (size_t)i);
			f[k] = scalar_to_double(t, v[k]);
			if (scalar_is_signed(t) && !scalar_is_float(t)) v[k] = (uint64_t)scalar_sign_extend(t, v[k]);
		}
		exact e = r->want(t, v, f);
		if (e.skip) continue;
		bool right;
		double error = 0;
		if (r->boolean || !scalar_is_float(t)) {
			want = scalar_truncate(result, e.bits);
			right = got == want;
		} else {
			double allowed = t == SCALAR_F64   ? r->ulp64
					 : t == SCALAR_F32 ? r->ulp32
					 : r->ulp32 > 0    ? 0.02
							   : 0;
			want = scalar_from_double(t, e.f);
			error = r->want == m_lgamma && fabs(e.f) < 1
					? fabs(scalar_to_double(t, got) - e.f) * ldexp(1, scalar_table[t].mantissa)
					: ulps(t, got, e.f);
			right = got == want || (isnan(e.f) && isnan(scalar_to_double(t, got))) ||
				(allowed > 0 && error <= 0.5 + allowed);
			if (error > worst && !isinf(error)) worst = error;
		}
		if (!right && wrong++ < 4)
			element_failed(name, t, i, v, f, r->arity, got, scalar_to_double(result, got), want,
				r->boolean ? (double)want : e.f);
	}
	if (good && !wrong && r->ulp32 > 0 && scalar_is_float(t)) printf("%-16s largest error %.3f ulp\n", name, worst);
	suite_verdict(s, good, wrong, name);
	for (int k = 0; k < 3; k++) free(in[k]);
	free(out);
}

/* Every value of the 8- and 16-bit types, and N special and random ones of the others. */
static void run_cast(suite *s, scalar from, scalar to)
{
	char name[64], text[512];
	snprintf(name, sizeof name, "cast.%s.%s", scalar_name(from), scalar_name(to));
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(z: *%s, x: *const %s, n: i32, const BLOCK: i32 = 1024) grid(cdiv(n, BLOCK)) {\n"
		"let o = program_id(0) * BLOCK + arange(0, BLOCK);\nstore(z + o, load(x + o, mask = o < n).to(%s), "
		"mask = o < n);\n}\n",
		scalar_name(to), scalar_name(from), scalar_name(to));
	int n = from == SCALAR_BOOL ? 2 : scalar_bytes(from) == 1 ? 256 : scalar_bytes(from) == 2 ? 65536 : 3 * N;
	void *in = suite_alloc((size_t)n * 8), *out = suite_alloc((size_t)n * 8);
	size_t in_bytes = (size_t)n * scalar_bytes(from);
	uint64_t state = 23;
	for (int i = 0; i < n; i++)
		container_put(from, in, (size_t)i,
			scalar_bytes(from) <= 2 ? (uint64_t)i
			: i < N                 ? input(from, 0, i, &state)
			: i < 2 * N             ? suite_random(&state)
			: scalar_is_float(from)
				? scalar_from_double(from, ldexp((double)(suite_random(&state) >> 11) * 0x1p-53 - 0.5,
								   (int)(suite_random(&state) % 80) - 12))
				: suite_random(&state) >> (suite_random(&state) % 64));
	const void *inputs[] = {in};
	bool good = suite_run(s, name, text, NULL, 0, to, out, (size_t)n, inputs, &in_bytes, 1, n);
	int wrong = 0;
	for (int i = 0; good && i < n; i++) {
		uint64_t v = container_at(from, in, (size_t)i), got = container_at(to, out, (size_t)i),
			 want = scalar_convert(to, from, v);
		double f = scalar_to_double(from, v);
		bool both_nan =
			scalar_is_float(to) && isnan(scalar_to_double(to, got)) && isnan(scalar_to_double(to, want));
		if (got != want && !both_nan && wrong++ < 4)
			element_failed(name, from, i, &v, &f, 1, got, scalar_to_double(to, got), want,
				scalar_to_double(to, want));
	}
	suite_verdict(s, good, wrong, name);
	free(in);
	free(out);
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
		for (int t = 0; t < SCALAR_COUNT; t++)
			if (in_class((scalar)t, rows[r].classes)) run_row(&s, &rows[r], (scalar)t);
	for (int from = 0; from < SCALAR_COUNT; from++)
		for (int to = 0; to < SCALAR_COUNT; to++)
			if (from != to) run_cast(&s, (scalar)from, (scalar)to);
	return suite_close(&s);
}
