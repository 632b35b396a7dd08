/* Scalar conversions: every narrow float against its definition, rounding against a search for the nearest, and casts
 * against values worked out by hand from the language's rules. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "../../compiler/support/scalar.h"

static const scalar narrow[] = {SCALAR_F8E4M3, SCALAR_F8E5M2, SCALAR_F16, SCALAR_BF16};

static double power(int e)
{
	double v = 1;
	for (; e > 0; e--) v *= 2;
	for (; e < 0; e++) v /= 2;
	return v;
}

/* The value by the definition of the format: sign, exponent with its bias, fraction. */
static double defined(scalar s, uint64_t bits)
{
	int m = s == SCALAR_F8E4M3 ? 3 : s == SCALAR_F8E5M2 ? 2 : s == SCALAR_F16 ? 10 : 7;
	int width = s == SCALAR_F16 || s == SCALAR_BF16 ? 16 : 8, e = width - 1 - m;
	int bias = (1 << (e - 1)) - 1, exponent = (int)(bits >> m) & ((1 << e) - 1);
	double fraction = (double)(bits & ((1u << m) - 1)) / power(m), sign = bits >> (width - 1) & 1 ? -1 : 1;
	if (s == SCALAR_F8E4M3 && (bits & 0x7f) == 0x7f) return NAN;
	if (s != SCALAR_F8E4M3 && exponent == (1 << e) - 1) return fraction ? NAN : sign * INFINITY;
	return sign * (exponent ? (1 + fraction) * power(exponent - bias) : fraction * power(1 - bias));
}

static void narrow_floats_mean_what_they_say(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 4; k++)
		for (uint64_t bits = 0; bits < UINT64_C(1) << scalar_bits(narrow[k]); bits++) {
			double expected = defined(narrow[k], bits), got = scalar_to_double(narrow[k], bits);
			if (isnan(expected))
				assert_true(isnan(got));
			else {
				assert_true(got == expected && signbit(got) == signbit(expected));
				/* exact values come back, but fp8 has no infinity on the way in */
				if (!(isinf(expected) && scalar_is_fp8(narrow[k])))
					assert_int_equal(scalar_from_double(narrow[k], expected), bits);
			}
		}
}

/* Whole runs are read as single elements are, at any alignment. */
static void runs_are_elements(void **state)
{
	static const scalar types[] = {
		SCALAR_F16, SCALAR_BF16, SCALAR_F8E4M3, SCALAR_F8E5M2, SCALAR_F32, SCALAR_F64, SCALAR_I32, SCALAR_U8};
	enum { COUNT = 1 << 16 };
	(void)state;
	uint8_t *bytes = test_malloc(8 * COUNT + 1);
	double *got = test_malloc(COUNT * sizeof *got);
	for (unsigned k = 0; k < sizeof types / sizeof types[0]; k++) {
		unsigned width = scalar_bytes(types[k]);
		for (uint64_t i = 0; i < COUNT; i++) { /* every element of two bytes; of wider ones all exponents */
			uint64_t bits = width <= 2 ? i : (i << (8 * width - 16)) | i * 0x9e3779b1 % 0x7fff;
			memcpy(bytes + 1 + i * width, &bits, width);
		}
		scalar_read(types[k], bytes + 1, COUNT, got);
		for (uint64_t i = 0; i < COUNT; i++) {
			uint64_t bits = 0;
			memcpy(&bits, bytes + 1 + i * width, width);
			double want = scalar_to_double(types[k], bits);
			assert_true(isnan(want) ? isnan(got[i]) : got[i] == want && signbit(got[i]) == signbit(want));
		}
	}
	test_free(got);
	test_free(bytes);
}

/* Between two neighbours: below the middle down, above it up, on it to the even one. */
static void rounding_is_to_nearest_even(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		scalar s = narrow[k];
		uint64_t largest = s == SCALAR_F8E4M3   ? 0x7e
				   : s == SCALAR_F8E5M2 ? 0x7b
				   : s == SCALAR_F16    ? 0x7bff
							: 0x7f7f;
		for (uint64_t bits = 0; bits < largest; bits++) {
			double low = defined(s, bits), high = defined(s, bits + 1), middle = low + (high - low) / 2;
			assert_int_equal(scalar_from_double(s, middle), bits & 1 ? bits + 1 : bits);
			assert_int_equal(scalar_from_double(s, nextafter(middle, low)), bits);
			assert_int_equal(scalar_from_double(s, nextafter(middle, high)), bits + 1);
			assert_int_equal(scalar_from_double(s, -middle),
				(bits & 1 ? bits + 1 : bits) | UINT64_C(1) << (scalar_bits(s) - 1));
		}
	}
}

static void overflow_and_nan(void **state)
{
	(void)state;
	assert_int_equal(scalar_from_double(SCALAR_F16, 65519.99), 0x7bff);
	assert_int_equal(scalar_from_double(SCALAR_F16, 65520), 0x7c00);
	assert_int_equal(scalar_from_double(SCALAR_F16, -1e300), 0xfc00);
	assert_int_equal(scalar_from_double(SCALAR_BF16, 3.4e38), 0x7f80);
	assert_int_equal(scalar_from_double(SCALAR_F32, 1e39), 0x7f800000);
	/* fp8 saturates to the largest finite number */
	assert_int_equal(scalar_from_double(SCALAR_F8E4M3, 1e9), 0x7e);
	assert_int_equal(scalar_from_double(SCALAR_F8E4M3, -INFINITY), 0xfe);
	assert_int_equal(scalar_from_double(SCALAR_F8E4M3, 460), 0x7e);
	assert_int_equal(scalar_from_double(SCALAR_F8E5M2, 1e9), 0x7b);
	assert_int_equal(scalar_from_double(SCALAR_F8E5M2, INFINITY), 0x7b);
	assert_int_equal(scalar_to_double(SCALAR_F8E4M3, 0x7e), 448);
	assert_int_equal(scalar_to_double(SCALAR_F8E5M2, 0x7b), 57344);
	for (int s = SCALAR_F8E4M3; s <= SCALAR_F64; s++)
		assert_true(isnan(scalar_to_double((scalar)s, scalar_from_double((scalar)s, NAN))));
	assert_int_equal(scalar_from_double(SCALAR_F16, -0.0), 0x8000);
	assert_int_equal(scalar_from_double(SCALAR_F16, 1e-30), 0);
}

static uint64_t i(scalar s, int64_t v)
{
	return scalar_truncate(s, (uint64_t)v);
}

static void floats_become_integers(void **state)
{
	(void)state;
	static const struct {
		double v;
		int64_t as_i8, as_i32, as_i64;
		uint64_t as_u8, as_u32, as_u64;
	} cases[] = {
		{1.99, 1, 1, 1, 1, 1, 1},
		{-1.99, -1, -1, -1, 0, 0, 0},
		{-0.5, 0, 0, 0, 0, 0, 0},
		{127.9, 127, 127, 127, 127, 127, 127},
		{128, 127, 128, 128, 128, 128, 128},
		{-128.9, -128, -128, -128, 0, 0, 0},
		{-129, -128, -129, -129, 0, 0, 0},
		{255.5, 127, 255, 255, 255, 255, 255},
		{256, 127, 256, 256, 255, 256, 256},
		{2147483648.0, 127, INT32_MAX, 2147483648, 255, 2147483648u, 2147483648},
		{-2147483649.0, -128, INT32_MIN, -2147483649, 0, 0, 0},
		{4294967296.0, 127, INT32_MAX, 4294967296, 255, UINT32_MAX, 4294967296},
		{9223372036854775808.0, 127, INT32_MAX, INT64_MAX, 255, UINT32_MAX, UINT64_C(1) << 63},
		{1e30, 127, INT32_MAX, INT64_MAX, 255, UINT32_MAX, UINT64_MAX},
		{-1e30, -128, INT32_MIN, INT64_MIN, 0, 0, 0},
		{INFINITY, 127, INT32_MAX, INT64_MAX, 255, UINT32_MAX, UINT64_MAX},
		{-INFINITY, -128, INT32_MIN, INT64_MIN, 0, 0, 0},
		{NAN, 0, 0, 0, 0, 0, 0},
	};
	for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++) {
		uint64_t d = scalar_from_double(SCALAR_F64, cases[k].v);
		assert_int_equal(scalar_convert(SCALAR_I8, SCALAR_F64, d), i(SCALAR_I8, cases[k].as_i8));
		assert_int_equal(scalar_convert(SCALAR_I32, SCALAR_F64, d), i(SCALAR_I32, cases[k].as_i32));
		assert_true(scalar_convert(SCALAR_I64, SCALAR_F64, d) == (uint64_t)cases[k].as_i64);
		assert_int_equal(scalar_convert(SCALAR_U8, SCALAR_F64, d), cases[k].as_u8);
		assert_int_equal(scalar_convert(SCALAR_U32, SCALAR_F64, d), cases[k].as_u32);
		assert_true(scalar_convert(SCALAR_U64, SCALAR_F64, d) == cases[k].as_u64);
		assert_int_equal(scalar_convert(SCALAR_BOOL, SCALAR_F64, d), cases[k].v != 0);
	}
}

static void integers_become_floats(void **state)
{
	(void)state;
	/* 2^24 + 1 lies between two f32; 2^60 + 2^36 + 1 would round twice through f64 */
	assert_int_equal(scalar_convert(SCALAR_F32, SCALAR_I32, 16777217), 0x4b800000);
	assert_int_equal(scalar_convert(SCALAR_F32, SCALAR_I32, 16777219), 0x4b800002);
	assert_int_equal(
		scalar_convert(SCALAR_F32, SCALAR_I64, (UINT64_C(1) << 60) + (UINT64_C(1) << 36) + 1), 0x5d800001);
	assert_int_equal(scalar_convert(SCALAR_F32, SCALAR_I64, (UINT64_C(1) << 60) + (UINT64_C(1) << 36)), 0x5d800000);
	assert_int_equal(scalar_convert(SCALAR_F32, SCALAR_U64, UINT64_MAX), 0x5f800000);
	assert_int_equal(scalar_convert(SCALAR_F32, SCALAR_I64, UINT64_MAX), 0xbf800000);
	assert_int_equal(scalar_convert(SCALAR_F32, SCALAR_I64, UINT64_C(1) << 63), 0xdf000000);
	assert_true(scalar_convert(SCALAR_F64, SCALAR_U64, UINT64_MAX) == UINT64_C(0x43f0000000000000));
	assert_int_equal(scalar_convert(SCALAR_F16, SCALAR_I32, 65519), 0x7bff);
	assert_int_equal(scalar_convert(SCALAR_F16, SCALAR_I32, 65520), 0x7c00);
	assert_int_equal(scalar_convert(SCALAR_F16, SCALAR_I32, i(SCALAR_I32, -2049)), 0xe800);
	assert_int_equal(scalar_convert(SCALAR_BF16, SCALAR_I32, 257), 0x4380);
	assert_int_equal(scalar_convert(SCALAR_F8E4M3, SCALAR_I32, 1000), 0x7e);
	assert_int_equal(scalar_convert(SCALAR_F32, SCALAR_BOOL, 1), 0x3f800000);
	assert_int_equal(scalar_convert(SCALAR_F32, SCALAR_U8, 255), 0x437f0000);
	assert_int_equal(scalar_convert(SCALAR_F32, SCALAR_I8, 255), 0xbf800000);
}

static void integers_become_integers(void **state)
{
	(void)state;
	assert_int_equal(scalar_convert(SCALAR_I32, SCALAR_I8, 0x80), 0xffffff80);
	assert_int_equal(scalar_convert(SCALAR_U32, SCALAR_I8, 0x80), 0xffffff80);
	assert_int_equal(scalar_convert(SCALAR_I32, SCALAR_U8, 0x80), 0x80);
	assert_int_equal(scalar_convert(SCALAR_U8, SCALAR_I32, 0x1ff), 0xff);
	assert_true(scalar_convert(SCALAR_I64, SCALAR_I32, 0xffffffff) == UINT64_MAX);
	assert_true(scalar_convert(SCALAR_I64, SCALAR_U32, 0xffffffff) == 0xffffffff);
	assert_int_equal(scalar_convert(SCALAR_BOOL, SCALAR_I32, 2), 1);
	assert_int_equal(scalar_convert(SCALAR_BOOL, SCALAR_I32, 0), 0);
	assert_int_equal(scalar_convert(SCALAR_I32, SCALAR_BOOL, 1), 1);
	assert_int_equal(scalar_sign_extend(SCALAR_I8, 0xff), -1);
	assert_int_equal(scalar_sign_extend(SCALAR_U8, 0xff), 255);
	assert_int_equal(scalar_truncate(SCALAR_U16, 0x12345), 0x2345);
	assert_int_equal(scalar_truncate(SCALAR_BOOL, 3), 1);
}

/* A float to a narrower one rounds once. */
static void floats_become_floats(void **state)
{
	(void)state;
	/* 1 + 2^-11 + 2^-40: through f32 it would be a tie for f16 and round down */
	uint64_t d = scalar_from_double(SCALAR_F64, 1 + power(-11) + power(-40));
	assert_int_equal(scalar_convert(SCALAR_F16, SCALAR_F64, d), 0x3c01);
	assert_int_equal(scalar_convert(SCALAR_BF16, SCALAR_F32, 0x3f808000), 0x3f80); /* a tie, to even */
	assert_int_equal(scalar_convert(SCALAR_BF16, SCALAR_F32, 0x3f818000), 0x3f82);
	assert_int_equal(scalar_convert(SCALAR_BF16, SCALAR_F32, 0x3f808001), 0x3f81);
	assert_int_equal(scalar_convert(SCALAR_F32, SCALAR_BF16, 0x3f81), 0x3f810000);
	assert_int_equal(scalar_convert(SCALAR_F16, SCALAR_F32, 0x33000000), 0); /* 2^-25: half the smallest */
	assert_int_equal(scalar_convert(SCALAR_F16, SCALAR_F32, 0x33000001), 1);
	assert_int_equal(scalar_convert(SCALAR_F8E4M3, SCALAR_F16, 0x7c00), 0x7e);
	for (uint64_t bits = 0; bits < 65536; bits++) /* f16 to f32 and back */
		if (!isnan(scalar_to_double(SCALAR_F16, bits)))
			assert_int_equal(
				scalar_convert(SCALAR_F16, SCALAR_F32, scalar_convert(SCALAR_F32, SCALAR_F16, bits)),
				bits);
}

static void names(void **state)
{
	(void)state;
	for (int s = 0; s < SCALAR_COUNT; s++) {
		scalar found;
		assert_true(scalar_parse(scalar_name((scalar)s), &found));
		assert_int_equal(found, s);
	}
	scalar found;
	assert_false(scalar_parse("f31", &found));
	assert_false(scalar_parse("", &found));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(narrow_floats_mean_what_they_say),
		cmocka_unit_test(runs_are_elements),
		cmocka_unit_test(rounding_is_to_nearest_even),
		cmocka_unit_test(overflow_and_nan),
		cmocka_unit_test(floats_become_integers),
		cmocka_unit_test(integers_become_floats),
		cmocka_unit_test(integers_become_integers),
		cmocka_unit_test(floats_become_floats),
		cmocka_unit_test(names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
