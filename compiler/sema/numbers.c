/* Compile-time numbers: made of integers and bits, and whether a type holds them. */
#include "internal.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

static sema_int lowest(scalar t)
{
	return scalar_is_signed(t) ? -((sema_int)1 << (scalar_bits(t) - 1)) : 0;
}

static sema_int highest(scalar t)
{
	return scalar_is_signed(t) ? ((sema_int)1 << (scalar_bits(t) - 1)) - 1 : ((sema_int)1 << scalar_bits(t)) - 1;
}

sema_number number_make_int(sema_int i, bool *fits)
{
	scalar t = i >= lowest(SCALAR_I32) && i <= highest(SCALAR_I32)   ? SCALAR_I32
		   : i >= lowest(SCALAR_I64) && i <= highest(SCALAR_I64) ? SCALAR_I64
									 : SCALAR_U64;
	*fits = t != SCALAR_U64 || (i >= 0 && i <= highest(SCALAR_U64));
	return (sema_number){.type = t, .untyped = true, .i = i};
}

sema_number number_from_bits(scalar t, uint64_t bits)
{
	assert(t < SCALAR_COUNT);
	sema_number n = {.type = t};
	if (scalar_is_float(t))
		n.f = scalar_to_double(t, bits);
	else if (scalar_is_signed(t))
		n.i = scalar_sign_extend(t, bits);
	else
		n.i = scalar_truncate(t, bits);
	return n;
}

static uint64_t f64_bits(double d)
{
	uint64_t bits;
	memcpy(&bits, &d, sizeof bits);
	return bits;
}

uint64_t sema_number_bits(sema_number n, scalar to)
{
	if (scalar_is_float(n.type)) {
		if (n.untyped) return scalar_convert(to, SCALAR_F64, f64_bits(n.f));
		return scalar_convert(to, n.type, scalar_from_double(n.type, n.f));
	}
	return scalar_convert(to, n.type, scalar_truncate(n.type, (uint64_t)n.i));
}

/* Whether a finite number stays one.  The fp8 types turn what is too large into their largest value. */
static bool float_holds(scalar t, double v)
{
	assert(scalar_is_float(t));
	double largest = scalar_to_double(t, scalar_from_double(t, DBL_MAX));
	if (!isfinite(v)) return true;
	return isfinite(largest) ? fabs(v) <= largest : isfinite(scalar_to_double(t, scalar_from_double(t, v)));
}

bool number_fits(sema_number n, scalar t)
{
	if (n.type == SCALAR_BOOL || t == SCALAR_BOOL) return n.type == t;
	if (scalar_is_float(t)) return float_holds(t, scalar_is_float(n.type) ? n.f : (double)n.i);
	if (scalar_is_float(n.type)) return false;
	return n.i >= lowest(t) && n.i <= highest(t);
}

sema_number number_adapt(sema_number n, scalar t)
{
	return number_from_bits(t, sema_number_bits(n, t));
}
