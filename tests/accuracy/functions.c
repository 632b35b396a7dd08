/* How far elementary functions are from the truth, which MPFR computes: the table of docs/language.md, measured.
 *
 *     functions [--device=cpu|sim|cuda:N] [--all] [name...]
 *
 * In: words of names as of the device suites; --all for 10^7 arguments in f32 and all of the 16-bit types, else a draw
 * of them.  Out: a line for each function and type with its largest error, and whether it is within what is stated. */
#include <mpfr.h>

#include "tests/device/device_test.h"

typedef int one(mpfr_t, const mpfr_t, mpfr_rnd_t);
typedef int two(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);

static int log_gamma(mpfr_t r, const mpfr_t x, mpfr_rnd_t round)
{
	int sign;
	return mpfr_lgamma(r, &sign, x, round);
}
static int truncated(mpfr_t r, const mpfr_t x, mpfr_rnd_t round)
{
	(void)round;
	return mpfr_trunc(r, x);
}

/* What is stated, in units in the last place, for f32 and f64; exact functions 0.5. */
static const struct {
	const char *name;
	one *f;
	two *g;
	double f32, f64;
} functions[] = {
	{"tan", mpfr_tan, NULL, 1.2, 1.2},
	{"asin", mpfr_asin, NULL, 1.3, 1.3},
	{"acos", mpfr_acos, NULL, 1.3, 1.3},
	{"atan", mpfr_atan, NULL, 1.4, 1.6},
	{"atan2", NULL, mpfr_atan2, 1.7, 1.7},
	{"sinh", mpfr_sinh, NULL, 2, 2},
	{"cosh", mpfr_cosh, NULL, 2, 2},
	{"asinh", mpfr_asinh, NULL, 2.2, 2.2},
	{"acosh", mpfr_acosh, NULL, 2.2, 2.2},
	{"atanh", mpfr_atanh, NULL, 2.4, 2.4},
	{"cbrt", mpfr_cbrt, NULL, 0.6, 0.6},
	{"hypot", NULL, mpfr_hypot, 1.1, 1.1},
	{"exp10", mpfr_exp10, NULL, 1.2, 1.2},
	{"log10", mpfr_log10, NULL, 1, 1},
	{"erfc", mpfr_erfc, NULL, 3.2, 3.5},
	{"lgamma", log_gamma, NULL, 3.6, 4},
	{"trunc", truncated, NULL, 0.5, 0.5},
	{"fmod", NULL, mpfr_fmod, 0.5, 0.5},
	{"remainder", NULL, mpfr_remainder, 0.5, 0.5},
};

enum { FEW = 5000, MANY = 10000000, F64 = 1000000 };

/* The logarithm of the gamma function has zeros, and below 0 it is a difference: the exponent of the larger of 1 and,
 * for a negative x, lgamma(-x). */
static long least_of_log_gamma(double x)
{
	double y = x < 0 && isfinite(x) ? lgamma(-x) : 1;
	return y > 1 && isfinite(y) ? ilogb(y) : 0;
}

/* Crossed with each other first: what Annex F of C has a word on, the ends of ranges, and ties. */
static double special(scalar t, unsigned i)
{
	static const double values[] = {
		0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 0.5, -0.5, 2, -2, 3, -2.5, 1e3, -1e3, 27, 128};
	unsigned n = sizeof values / sizeof *values;
	if (i < n) return values[i];
	uint64_t largest = scalar_from_double(t, INFINITY) - 1, least = 1,
		 normal = UINT64_C(1) << scalar_table[t].mantissa;
	double v = scalar_to_double(t, i % 3 == 0 ? largest : i % 3 == 1 ? least : normal);
	return i & 1 ? -v : v;
}
enum { SPECIAL = 17 + 6 };

/* Bits of any number; numbers of moderate size, to be small, near 1, and beyond every range of a function. */
static uint64_t draw(scalar t, uint64_t *state, unsigned i)
{
	uint64_t r = suite_random(state);
	if (i % 4 == 0) return scalar_truncate(t, r);
	double x = (double)(int64_t)r * 0x1p-63;
	double size = i % 4 == 1 ? 1.0 : i % 4 == 2 ? 12.0 : t == SCALAR_F64 ? 800.0 : 120.0;
	return scalar_from_double(t, x * size);
}

typedef struct measured {
	double worst, at[2];
	size_t wrong;
} measured;

/* The distance in units in the last place, or of 2^least where that is larger; ANY_SIZE for none. */
enum { ANY_SIZE = -10000 };
static double distance(scalar t, uint64_t bits, const mpfr_t exact, long least)
{
	double got = scalar_to_double(t, bits);
	double rounded = scalar_to_double(t, scalar_from_double(t, mpfr_get_d(exact, MPFR_RNDN)));
	if (mpfr_nan_p(exact) || isnan(got)) return mpfr_nan_p(exact) && isnan(got) ? 0 : INFINITY;
	if (isinf(got) || isinf(rounded)) return got == rounded ? 0 : INFINITY;
	if (mpfr_zero_p(exact))
		return got == 0 && (least > ANY_SIZE || !signbit(got) == !mpfr_signbit(exact)) ? 0 : INFINITY;
	long e = (long)mpfr_get_exp(exact) - 1;
	long lowest = t == SCALAR_F64 ? -1022 : 2 - (1l << (scalar_table[t].exponent - 1));
	if (e < lowest) e = lowest;
	if (e < least) e = least;
	mpfr_t off;
	mpfr_init2(off, 64);
	mpfr_sub_d(off, exact, got, MPFR_RNDN);
	mpfr_mul_2si(off, off, (long)scalar_table[t].mantissa - e, MPFR_RNDN);
	double d = fabs(mpfr_get_d(off, MPFR_RNDN));
	mpfr_clear(off);
	return d;
}

static void measure(suite *s, size_t which, scalar t)
{
	char name[64], text[512];
	snprintf(name, sizeof name, "%s.%s", functions[which].name, scalar_name(t));
	if (!suite_wants(s, name)) return;
	bool pair = functions[which].g, differs = strcmp(functions[which].name, "lgamma") == 0,
	     half = scalar_bytes(t) == 2;
	size_t n = !s->all ? FEW : half && !pair ? 65536 : half ? 10 * 65536 : t == SCALAR_F64 ? F64 : MANY;
	unsigned bytes = scalar_bytes(t);
	void *in[2] = {suite_alloc(n * bytes), suite_alloc(n * bytes)}, *out = suite_alloc(n * bytes);
	size_t sizes[2] = {n * bytes, n * bytes};
	uint64_t state = 5;
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < 2; k++) {
			bool all = half && !pair && s->all;
			bool crossed = !all && i < SPECIAL * SPECIAL;
			uint64_t bits = all ? i : draw(t, &state, k ? i / 4 : i);
			if (crossed) bits = scalar_from_double(t, special(t, k ? i / SPECIAL : i % SPECIAL));
			container_put(t, in[k], i, bits);
		}
	snprintf(text, sizeof text,
		"kernel k(z: *%s, x: *const %s, y: *const %s, n: i32) grid(cdiv(n, 1024)) {\n"
		"let o = program_id(0) * 1024 + arange(0, 1024);\nlet a = load(x + o, mask = o < n);\n"
		"let b = load(y + o, mask = o < n);\nstore(z + o, %s(a%s), mask = o < n);\n}\n",
		scalar_name(t), scalar_name(t), scalar_name(t), functions[which].name, pair ? ", b" : "");
	bool good = suite_run(s, name, text, NULL, 0, t, out, n, (const void *const *)in, sizes, 2, (int)n);
	measured m = {0};
	mpfr_t x, y, r;
	mpfr_inits2(53, x, y, (mpfr_ptr)NULL);
	mpfr_init2(r, t == SCALAR_F64 ? 120 : 70);
	for (size_t i = 0; good && i < n; i++) {
		double a = scalar_to_double(t, container_at(t, in[0], i)),
		       b = scalar_to_double(t, container_at(t, in[1], i));
		mpfr_set_d(x, a, MPFR_RNDN);
		mpfr_set_d(y, b, MPFR_RNDN);
		pair ? functions[which].g(r, x, y, MPFR_RNDN) : functions[which].f(r, x, MPFR_RNDN);
		double d = distance(t, container_at(t, out, i), r, differs ? least_of_log_gamma(a) : ANY_SIZE);
		if (isinf(d) && m.wrong++ < 3)
			printf("%s(%.17g, %.17g) is %.17g, not %.17g\n", name, a, b,
				scalar_to_double(t, container_at(t, out, i)), mpfr_get_d(r, MPFR_RNDN));
		if (!isinf(d) && d > m.worst) m = (measured){d, {a, b}, m.wrong};
	}
	mpfr_clears(x, y, r, (mpfr_ptr)NULL);
	double stated = t == SCALAR_F64 ? functions[which].f64 : t == SCALAR_F32 ? functions[which].f32 : 0.51;
	printf("%-16s largest error %.3f of %.2f ulp, at %.9g", name, m.worst, stated, m.at[0]);
	if (pair) printf(", %.9g", m.at[1]);
	printf(", of %zu\n", n);
	fflush(stdout);
	suite_verdict(s, good, (int)m.wrong + (m.worst > stated), name);
	for (int k = 0; k < 2; k++) free(in[k]);
	free(out);
}

int main(int argc, char **argv)
{
	static const scalar types[] = {SCALAR_F16, SCALAR_BF16, SCALAR_F32, SCALAR_F64};
	suite s;
	suite_open(&s, argc, argv);
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		for (int t = 0; t < 4; t++) measure(&s, i, types[t]);
	return suite_close(&s);
}
