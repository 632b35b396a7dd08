/* Elementary functions that are written in the language: tan and its like.
 *
 * In: a call.  Out: for numbers known at compile time a number, as the C library computes it in double precision,
 * rounded once; else what the library function gives that the call is inlined as.
 * The one idea: a row names a library function.  NAME_float takes f32 and f64, so 16-bit floats are computed in f32 and
 * rounded once; NAME_bits, of functions that look at bits, takes every type as it is. */
#include <math.h>
#include <string.h>

#include "builtins_util.h"

#include "../support/scalar.h"

/* NAME(ENUM, "name", "parameters", "file of the library", what follows the name there, in C) */
#define SPECIAL_FUNCTIONS(NAME)                                                                                        \
	NAME(TAN, "tan", "x", "special.blk", "float", one = tan)                                                       \
	NAME(ASIN, "asin", "x", "special.blk", "float", one = asin)                                                    \
	NAME(ACOS, "acos", "x", "special.blk", "float", one = acos)                                                    \
	NAME(ATAN, "atan", "x", "special.blk", "float", one = atan)                                                    \
	NAME(ATAN2, "atan2", "y x", "special.blk", "float", two = atan2)                                               \
	NAME(SINH, "sinh", "x", "special.blk", "float", one = sinh)                                                    \
	NAME(COSH, "cosh", "x", "special.blk", "float", one = cosh)                                                    \
	NAME(ASINH, "asinh", "x", "special.blk", "float", one = asinh)                                                 \
	NAME(ACOSH, "acosh", "x", "special.blk", "float", one = acosh)                                                 \
	NAME(ATANH, "atanh", "x", "special.blk", "float", one = atanh)                                                 \
	NAME(CBRT, "cbrt", "x", "special.blk", "float", one = cbrt)                                                    \
	NAME(HYPOT, "hypot", "x y", "special.blk", "float", two = hypot)                                               \
	NAME(EXP10, "exp10", "x", "special.blk", "float", one = power_of_ten)                                          \
	NAME(LOG10, "log10", "x", "special.blk", "float", one = log10)                                                 \
	NAME(ERFC, "erfc", "x", "gamma.blk", "float", one = erfc)                                                      \
	NAME(LGAMMA, "lgamma", "x", "gamma.blk", "float", one = log_gamma)                                             \
	NAME(TRUNC, "trunc", "x", "exact.blk", "float", one = trunc)                                                   \
	NAME(FMOD, "fmod", "x y", "exact.blk", "float", two = fmod)                                                    \
	NAME(REMAINDER, "remainder", "x y", "exact.blk", "float", two = remainder)                                     \
	NAME(COPYSIGN, "copysign", "x y", "exact.blk", "bits", two = copysign)                                         \
	NAME(NEXTAFTER, "nextafter", "x y", "exact.blk", "bits", in_type = next_after)

typedef struct special {
	const char *file, *function;
	double (*one)(double);
	double (*two)(double, double);
	double (*in_type)(scalar, double, double);
} special;

static double power_of_ten(double x)
{
	return pow(10, x);
}

/* lgamma itself leaves a sign where every thread sees it. */
static double log_gamma(double x)
{
	int sign;
	return lgamma_r(x, &sign);
}

static double next_after(scalar t, double x, double y)
{
	if (isnan(x) || isnan(y)) return NAN;
	if (x == y) return y;
	if (x == 0) return copysign(scalar_to_double(t, 1), y);
	bool away = x < 0 ? y < x : y > x;
	return scalar_to_double(t, scalar_from_double(t, x) + (away ? 1 : UINT64_MAX));
}

enum {
#define NAME(e, ...) SPECIAL_##e,
	SPECIAL_FUNCTIONS(NAME)
#undef NAME
};

static const special specials[] = {
#define NAME(e, name, parameters, file, suffix, in_c) {file, name "_" suffix, .in_c},
	SPECIAL_FUNCTIONS(NAME)
#undef NAME
};

static sval folded(const special *f, const sval *v, span at)
{
	sema_number x = v[0].number;
	double r = f->one ? f->one(x.f) : f->two ? f->two(x.f, v[1].number.f) : f->in_type(x.type, x.f, v[1].number.f);
	return builtin_folded_float(x, r, at);
}

static sval builtin_special(sema *s, const builtin_call *c)
{
	const special *f = &specials[c->builtin->which];
	unsigned n = f->one ? 1 : 2;
	if (!(n == 1 ? builtin_takes_float(s, c, 0) : builtin_takes_floats(s, c, 2))) return sval_poison(c->at);
	sval v[2] = {c->args[0], n == 2 ? c->args[1] : c->args[0]};
	if (builtin_all_numbers(v, n))
		return builtin_common_numbers(s, c, v, n) ? folded(f, v, c->at) : sval_poison(c->at);
	ir_value *x[2];
	if (!sema_unify(s, v, n, c->at, x)) return sval_poison(c->at);
	scalar own = (scalar)x[0]->type.elem;
	bool on_bits = strcmp(f->function + strlen(c->builtin->name), "_bits") == 0;
	for (unsigned i = 0; i < n; i++) v[i] = sval_value(on_bits ? x[i] : builtin_widen(s, x[i]), c->at);
	sval y = sema_call_library(s, f->file, f->function, v, n, c->at);
	return y.kind == SVAL_VALUE ? sval_value(sema_convert(s, y.value, own), c->at) : y;
}

const builtin sema_special_builtins[] = {
#define NAME(e, name, parameters, ...) {name, parameters, 0, builtin_special, SPECIAL_##e},
	SPECIAL_FUNCTIONS(NAME)
#undef NAME
		{0},
};
