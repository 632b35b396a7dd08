/* Comparing an output with a reference.
 *
 * The allowance is absolute: atol + rtol times the reference's largest finite magnitude, so that elements near zero of
 * a sum of large terms are not held to a precision that nothing promised.  nan equals nan and nothing else; infinities
 * must be equal; integers are compared bit by bit. */
#include "runtime/run/run.h"

#include <math.h>

double check_default_rtol(scalar t)
{
	switch (t) {
	case SCALAR_F64: return 1e-12;
	case SCALAR_F32: return 1e-5;
	case SCALAR_F16: return 2e-3;
	case SCALAR_BF16: return 1.6e-2;
	case SCALAR_F8E4M3: return 0.125;
	case SCALAR_F8E5M2: return 0.25;
	default: return 0;
	}
}

static double difference(double a, double b)
{
	if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? 0 : INFINITY;
	if (isinf(a) || isinf(b)) return a == b ? 0 : INFINITY;
	return fabs(a - b);
}

/* Integers of 64 bits differ where their doubles may not. */
static double integer_difference(const array *got, const array *want, size_t i)
{
	if (array_bits(got, i) == array_bits(want, i)) return 0;
	double d = fabs(array_value(got, i) - array_value(want, i));
	return d > 1 ? d : 1;
}

check_result check_arrays(const array *got, const array *want, double rtol, double atol)
{
	check_result r = {0};
	bool whole = !scalar_is_float(want->type);
	if (rtol < 0) rtol = atol >= 0 ? 0 : check_default_rtol(want->type);
	if (atol < 0) atol = 0;
	for (size_t i = 0; i < want->count; i++) {
		double v = fabs(array_value(want, i));
		if (isfinite(v) && v > r.largest) r.largest = v;
	}
	r.tolerance = atol + rtol * r.largest;
	for (size_t i = 0; i < want->count; i++) {
		double d = whole ? integer_difference(got, want, i)
				 : difference(array_value(got, i), array_value(want, i));
		if (d > r.tolerance) r.wrong++;
		if (d > r.worst) r.worst = d, r.at = i;
	}
	r.good = r.wrong == 0;
	return r;
}
