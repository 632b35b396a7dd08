/* Fresh arrays.  Element i of a random one depends on the seed and i alone, so any two machines and devices get the
 * same numbers, and a larger array begins as a smaller one does. */
#include "runtime/run/run.h"

#include <math.h>
#include <string.h>

bool fill_known(const char *kind)
{
	static const char *const kinds[] = {"zeros", "ones", "randn", "rand", "arange", "poison"};
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (strcmp(kind, kinds[i]) == 0) return true;
	return false;
}

/* splitmix64 at a place of its sequence. */
static uint64_t random_bits(uint64_t seed, uint64_t i)
{
	uint64_t z = (seed * UINT64_C(0xd1342543de82ef95)) + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static double uniform(uint64_t seed, uint64_t i)
{
	return (double)(random_bits(seed, i) >> 11) * 0x1p-53; /* [0, 1) */
}

/* Box and Muller's: two uniform numbers to one normal one. */
static double normal(uint64_t seed, uint64_t i)
{
	double u = 1 - uniform(seed, 2 * i), v = uniform(seed, 2 * i + 1);
	return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

/* Integers: rand is 0 to 127 (bool: 0 or 1), randn a normal number times 16, rounded; unsigned ones its magnitude. */
static uint64_t element(scalar t, const char *kind, uint64_t seed, uint64_t i)
{
	bool whole = !scalar_is_float(t);
	double v = 0;
	if (strcmp(kind, "ones") == 0)
		v = 1;
	else if (strcmp(kind, "arange") == 0)
		return whole ? scalar_truncate(t, t == SCALAR_BOOL ? i & 1 : i) : scalar_from_double(t, (double)i);
	else if (strcmp(kind, "rand") == 0) {
		v = uniform(seed, i);
		if (whole) v = floor(v * (t == SCALAR_BOOL ? 2 : 128));
	} else { /* randn */
		v = normal(seed, i);
		if (whole) v = nearbyint(16 * v);
		if (t == SCALAR_BOOL)
			v = v > 0;
		else if (whole && !scalar_is_signed(t))
			v = fabs(v);
	}
	return scalar_from_double(t, v);
}

/* nan in every float format; a loud pattern in integers. */
uint64_t fill_poison(scalar t, bool other)
{
	uint64_t bits = scalar_truncate(t, scalar_is_float(t) ? UINT64_MAX : UINT64_C(0xa5a5a5a5a5a5a5a5));
	if (t == SCALAR_BOOL) return !other;
	if (!other) return bits;
	if (t == SCALAR_F8E4M3) return 0x7f; /* its only other nan */
	return scalar_is_float(t) ? bits ^ 1 : scalar_truncate(t, ~bits);
}

void fill_array(array *a, const char *kind, uint64_t seed)
{
	a->poisoned = strcmp(kind, "poison") == 0;
	if (strcmp(kind, "zeros") == 0)
		memset(a->data, 0, a->bytes);
	else if (a->poisoned)
		memset(a->data, (int)(fill_poison(a->type, false) & 0xff), a->bytes);
	else
		for (size_t i = 0; i < a->count; i++) array_set(a, i, element(a->type, kind, seed, i));
}
