/* See scalar.h.  Every narrowing goes through one routine that rounds a double once; f32 and f64 use the host's own. */
#include "scalar.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const scalar_info scalar_table[SCALAR_COUNT] = {
#define X(e, name, bytes, is_signed, is_float, mantissa, exponent)                                                     \
	{name, bytes, is_signed, is_float, mantissa, exponent},
	SCALARS(X)
#undef X
};

bool scalar_parse(const char *name, scalar *out)
{
	for (int i = 0; i < SCALAR_COUNT; i++)
		if (strcmp(name, scalar_table[i].name) == 0) return *out = (scalar)i, true;
	return false;
}

uint64_t scalar_truncate(scalar s, uint64_t bits)
{
	assert(s < SCALAR_COUNT);
	unsigned width = scalar_bits(s);
	return width == 64 ? bits : bits & ((UINT64_C(1) << width) - 1);
}

int64_t scalar_sign_extend(scalar s, uint64_t bits)
{
	bits = scalar_truncate(s, bits);
	unsigned width = scalar_bits(s);
	if (width < 64 && scalar_table[s].is_signed && bits >> (width - 1) & 1) bits |= ~UINT64_C(0) << width;
	return (int64_t)bits;
}

static double widen(scalar s, uint64_t bits)
{
	assert(scalar_is_float(s) && s != SCALAR_F32 && s != SCALAR_F64);
	unsigned m = scalar_table[s].mantissa, e = scalar_table[s].exponent;
	int bias = (1 << (e - 1)) - 1;
	uint64_t fraction = bits & ((UINT64_C(1) << m) - 1);
	int exponent = (int)(bits >> m & ((1u << e) - 1));
	bool negative = bits >> (m + e) & 1;
	double v;
	if (s == SCALAR_F8E4M3 && exponent == 15 && fraction == 7)
		v = NAN; /* e4m3 has no infinities: one nan a sign */
	else if (s != SCALAR_F8E4M3 && exponent == (1 << e) - 1)
		v = fraction ? NAN : INFINITY;
	else if (exponent == 0)
		v = ldexp((double)fraction, 1 - bias - (int)m);
	else
		v = ldexp((double)(fraction | UINT64_C(1) << m), exponent - bias - (int)m);
	return negative ? -v : v;
}

double scalar_to_double(scalar s, uint64_t bits)
{
	if (s == SCALAR_F64) {
		double d;
		memcpy(&d, &bits, sizeof d);
		return d;
	}
	if (s == SCALAR_F32) {
		uint32_t low = (uint32_t)bits;
		float f;
		memcpy(&f, &low, sizeof f);
		return f;
	}
	if (scalar_table[s].is_float) return widen(s, bits);
	return scalar_table[s].is_signed ? (double)scalar_sign_extend(s, bits) : (double)scalar_truncate(s, bits);
}

/* An f16 is a float whose exponent is 112 too small; the product repairs that, denormals too. */
static double widen_f16(uint16_t x)
{
	uint32_t bits = (uint32_t)(x & 0x7fff) << 13;
	if ((x & 0x7c00) == 0x7c00) bits |= 0x7f800000; /* inf, NaN: the product leaves them */
	float f;
	memcpy(&f, &bits, sizeof f);
	f *= 0x1p112f;
	return x & 0x8000 ? -f : f;
}

static double widen_bf16(uint16_t x)
{
	uint32_t bits = (uint32_t)x << 16;
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

void scalar_read(scalar s, const uint8_t *at, size_t n, double *out)
{
	unsigned width = scalar_bytes(s);
	for (size_t i = 0; s == SCALAR_F32 && i < n; i++) {
		float f;
		memcpy(&f, at + 4 * i, sizeof f);
		out[i] = f;
	}
	for (size_t i = 0; (s == SCALAR_F16 || s == SCALAR_BF16) && i < n; i++) {
		uint16_t x;
		memcpy(&x, at + 2 * i, sizeof x);
		out[i] = s == SCALAR_F16 ? widen_f16(x) : widen_bf16(x);
	}
	if (s == SCALAR_F32 || s == SCALAR_F16 || s == SCALAR_BF16) return;
	for (size_t i = 0; i < n; i++) {
		uint64_t bits = 0;
		memcpy(&bits, at + width * i, width);
		out[i] = scalar_to_double(s, bits);
	}
}

/* Rounds |v| to an integer multiple of the type's unit in the last place; exact because the quotient has few bits. */
static uint64_t narrow(scalar s, double v)
{
	assert(scalar_is_float(s) && s != SCALAR_F32 && s != SCALAR_F64);
	unsigned m = scalar_table[s].mantissa, e = scalar_table[s].exponent;
	int bias = (1 << (e - 1)) - 1, top = (1 << e) - 1;
	uint64_t sign = (uint64_t)(signbit(v) != 0) << (m + e), infinity = (uint64_t)top << m;
	uint64_t nan = s == SCALAR_F8E4M3 ? 0x7f : s == SCALAR_F8E5M2 ? 0x7f : infinity | UINT64_C(1) << (m - 1);
	uint64_t largest = s == SCALAR_F8E4M3 ? 0x7e : infinity - 1; /* magnitude */
	if (isnan(v)) return sign | nan;
	double a = fabs(v);
	if (isinf(a)) return sign | (scalar_is_fp8(s) ? largest : infinity);
	if (a == 0) return sign;
	int exponent;
	frexp(a, &exponent); /* a = f * 2^exponent, 0.5 <= f < 1 */
	exponent--;
	if (exponent < 1 - bias) exponent = 1 - bias; /* denormals share the smallest exponent */
	double units = nearbyint(ldexp(a, (int)m - exponent));
	assert(units >= 0 && units <= ldexp(1, (int)m + 1));
	/* units <= 2^(m+1); adding works because a carry out of the fraction is the next exponent */
	uint64_t magnitude = ((uint64_t)(exponent + bias - 1) << m) + (uint64_t)units;
	if (magnitude > largest) magnitude = scalar_is_fp8(s) ? largest : infinity;
	return sign | magnitude;
}

static uint64_t saturate(scalar s, double v)
{
	assert(!scalar_is_float(s));
	unsigned width = scalar_bits(s);
	if (s == SCALAR_BOOL) return v != 0;
	if (isnan(v)) return 0;
	v = trunc(v);
	if (scalar_table[s].is_signed) {
		double limit = ldexp(1, (int)width - 1);
		if (v >= limit) return (UINT64_C(1) << (width - 1)) - 1;
		if (v < -limit) return UINT64_C(1) << (width - 1);
		return scalar_truncate(s, (uint64_t)(int64_t)v);
	}
	if (v <= 0) return 0;
	if (v >= ldexp(1, (int)width)) return scalar_truncate(s, UINT64_MAX);
	return (uint64_t)v;
}

uint64_t scalar_from_double(scalar s, double v)
{
	uint64_t bits = 0;
	if (s == SCALAR_F64) {
		memcpy(&bits, &v, sizeof v);
		return bits;
	}
	if (s == SCALAR_F32) {
		float f = (float)v;
		uint32_t low;
		memcpy(&low, &f, sizeof f);
		return low;
	}
	return scalar_table[s].is_float ? narrow(s, v) : saturate(s, v);
}

void scalar_decimal(scalar s, double v, char out[SCALAR_DECIMAL])
{
	assert(isfinite(v));
	uint64_t bits = scalar_from_double(s, v);
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(out, SCALAR_DECIMAL, "%.*g", digits, v);
		if (scalar_from_double(s, strtod(out, NULL)) == bits) break;
	}
	assert(scalar_from_double(s, strtod(out, NULL)) == bits);
}

/* A 64-bit integer to a narrow float must round once: f32 by the host's own conversion; the others hold at most
 * 65504 (f16) or round from a double that a 64-bit integer reaches through round-to-odd. */
static uint64_t integer_to_float(scalar to, scalar from, uint64_t bits)
{
	assert(!scalar_is_float(from) && scalar_is_float(to));
	bool negative = scalar_table[from].is_signed && scalar_sign_extend(from, bits) < 0;
	uint64_t magnitude = negative ? 0 - (uint64_t)scalar_sign_extend(from, bits) : scalar_truncate(from, bits);
	if (to == SCALAR_F64) {
		double v = (double)magnitude;
		return scalar_from_double(to, negative ? -v : v);
	}
	unsigned drop = 0;
	while (magnitude >> drop >> 53) drop++;
	uint64_t sticky = magnitude & ((UINT64_C(1) << drop) - 1);
	double v = ldexp((double)(magnitude >> drop | (sticky != 0)), (int)drop); /* round to odd: no double rounding */
	return scalar_from_double(to, negative ? -v : v);
}

uint64_t scalar_convert(scalar to, scalar from, uint64_t bits)
{
	assert(to < SCALAR_COUNT && from < SCALAR_COUNT);
	if (to == from) return scalar_truncate(to, bits);
	if (scalar_table[from].is_float) return scalar_from_double(to, scalar_to_double(from, bits));
	if (scalar_table[to].is_float) return integer_to_float(to, from, bits);
	if (to == SCALAR_BOOL) return scalar_truncate(from, bits) != 0;
	return scalar_truncate(to, (uint64_t)scalar_sign_extend(from, bits));
}
