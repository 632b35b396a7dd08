/* What an elementwise operation gives for numbers known at compile time.
 *
 * In: an operation's kind and the containers of its operands.  Out: the container of the result, by the rules of
 * language.md: integers wrap, a shift by the width or more gives 0 or the sign, max and min ignore nan.
 * The one idea: f16, bf16 and f32 are computed in double and rounded once.  That is exact for + - * / and sqrt, because
 * 53 bits are more than twice 24 plus two, and for the elementary functions far inside what the language allows.  f64
 * has no wider type to hide in: its elementary functions are left to the device.  A nan result is always the same nan.
 */
#include "fold.h"

#include <fenv.h>
#include <math.h>

static uint64_t sign_bit(scalar s)
{
	return UINT64_C(1) << (scalar_bits(s) - 1);
}

static bool finish(scalar s, double v, uint64_t *out)
{
	assert(scalar_is_float(s) && !scalar_is_fp8(s));
	if (isnan(v)) /* hosts differ in the sign of the nan that they make */
		*out = scalar_from_double(s, 0.0) | (s == SCALAR_F64           ? UINT64_C(0x7ff8000000000000)
							    : s == SCALAR_F32  ? 0x7fc00000
							    : s == SCALAR_BF16 ? 0x7fc0
									       : 0x7e00);
	else
		*out = scalar_from_double(s, v);
	return true;
}

/* a * b + c rounded once; not folded where the host has no type for that. */
static bool fold_fma(scalar s, double a, double b, double c, uint64_t *out)
{
	if (s == SCALAR_F64) return finish(s, fma(a, b, c), out);
	if (s == SCALAR_F32) return finish(s, (double)fmaf((float)a, (float)b, (float)c), out);
	assert(s == SCALAR_F16 || s == SCALAR_BF16);
	double product = a * b, sum = product + c; /* the product of two 11-bit numbers is exact */
	if (!isfinite(sum)) return finish(s, sum, out);
	double head = sum - product, rest = (product - (sum - head)) + (c - head);
	return rest == 0 && finish(s, sum, out);
}

static bool fold_math(ir_kind kind, scalar s, const double *v, uint64_t *out)
{
	switch (kind) { /* rounded correctly, or exact, in every type */
	case IR_SQRT:
	case IR_SQRT_RN: return finish(s, sqrt(v[0]), out);
	case IR_FLOOR: return finish(s, floor(v[0]), out);
	case IR_CEIL: return finish(s, ceil(v[0]), out);
	case IR_ROUND: return finish(s, nearbyint(v[0]), out);
	default: break;
	}
	if (s == SCALAR_F64) return false;
	switch (kind) {
	case IR_EXP: return finish(s, exp(v[0]), out);
	case IR_EXP2: return finish(s, exp2(v[0]), out);
	case IR_EXPM1: return finish(s, expm1(v[0]), out);
	case IR_LOG: return finish(s, log(v[0]), out);
	case IR_LOG2: return finish(s, log2(v[0]), out);
	case IR_LOG1P: return finish(s, log1p(v[0]), out);
	case IR_RSQRT: return finish(s, 1 / sqrt(v[0]), out);
	case IR_SIN: return finish(s, sin(v[0]), out);
	case IR_COS: return finish(s, cos(v[0]), out);
	case IR_TANH: return finish(s, tanh(v[0]), out);
	case IR_ERF: return finish(s, erf(v[0]), out);
	case IR_POW: return finish(s, pow(v[0], v[1]), out);
	default: return false;
	}
}

/* nan loses against a number, or wins; -0 is below +0. */
static bool first_wins(bool max, bool nan_wins, scalar s, const uint64_t *args)
{
	assert(scalar_is_float(s));
	double a = scalar_to_double(s, args[0]), b = scalar_to_double(s, args[1]);
	if (isnan(a) || isnan(b)) return nan_wins ? isnan(a) : isnan(b);
	if (a == b) return max == !(args[0] & sign_bit(s));
	return max == (a > b);
}

static bool fold_float(ir_kind kind, scalar s, const uint64_t *args, unsigned n, uint64_t *out)
{
	assert(n && n <= 3);
	double v[3] = {0};
	for (unsigned i = 0; i < n; i++) v[i] = scalar_to_double(s, args[i]);
	switch (kind) {
	case IR_ADD: return finish(s, v[0] + v[1], out);
	case IR_SUB: return finish(s, v[0] - v[1], out);
	case IR_MUL: return finish(s, v[0] * v[1], out);
	case IR_DIV:
	case IR_DIV_RN: return finish(s, v[0] / v[1], out);
	case IR_FMA: return fold_fma(s, v[0], v[1], v[2], out);
	case IR_NEG: *out = args[0] ^ sign_bit(s); return true;
	case IR_ABS: *out = args[0] & ~sign_bit(s); return true;
	case IR_MAX:
	case IR_MIN:
	case IR_MAX_NAN:
	case IR_MIN_NAN:
		*out = args[!first_wins(
			kind == IR_MAX || kind == IR_MAX_NAN, kind == IR_MAX_NAN || kind == IR_MIN_NAN, s, args)];
		return isnan(scalar_to_double(s, *out)) ? finish(s, NAN, out) : true;
	default: return fold_math(kind, s, v, out);
	}
}

/* The upper half of a product of two 64-bit numbers, by halves. */
static uint64_t multiply_high(uint64_t a, uint64_t b)
{
	uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
	uint64_t low = al * bl, m1 = ah * bl, m2 = al * bh;
	uint64_t carry = ((low >> 32) + (uint32_t)m1 + (uint32_t)m2) >> 32;
	return ah * bh + (m1 >> 32) + (m2 >> 32) + carry;
}

static uint64_t fold_umulhi(scalar s, int64_t a, int64_t b)
{
	assert(scalar_bits(s) >= 32);
	if (scalar_bits(s) == 32)
		return (uint64_t)(scalar_is_signed(s) ? a * b >> 32 : (int64_t)((uint64_t)a * (uint64_t)b >> 32));
	uint64_t high = multiply_high((uint64_t)a, (uint64_t)b);
	if (scalar_is_signed(s)) high -= (a < 0 ? (uint64_t)b : 0) + (b < 0 ? (uint64_t)a : 0);
	return high;
}

static bool fold_division(ir_kind kind, scalar s, int64_t a, int64_t b, uint64_t *out)
{
	assert(kind == IR_DIV || kind == IR_REM);
	if (b == 0) return false; /* unspecified, and the simulator reports it */
	uint64_t x = (uint64_t)a, y = (uint64_t)b;
	if (!scalar_is_signed(s))
		*out = kind == IR_DIV ? x / y : x % y;
	else if (b == -1) /* the smallest integer wraps */
		*out = kind == IR_DIV ? 0 - x : 0;
	else
		*out = (uint64_t)(kind == IR_DIV ? a / b : a % b);
	return true;
}

static uint64_t fold_shift(ir_kind kind, scalar s, int64_t a, uint64_t count)
{
	assert(kind == IR_SHL || kind == IR_SHR);
	bool beyond = count >= scalar_bits(s);
	if (kind == IR_SHL) return beyond ? 0 : (uint64_t)a << count;
	if (scalar_is_signed(s)) return (uint64_t)(a >> (beyond ? 63 : count));
	return beyond ? 0 : (uint64_t)a >> count;
}

static uint64_t fold_leading_zeros(scalar s, uint64_t x)
{
	unsigned width = scalar_bits(s), n = 0;
	while (n < width && !(x >> (width - 1 - n) & 1)) n++;
	return n;
}

static uint64_t fold_reversed(scalar s, uint64_t x)
{
	uint64_t y = 0;
	for (unsigned i = 0; i < scalar_bits(s); i++) y = y << 1 | (x >> i & 1);
	return y;
}

static bool fold_integer(ir_kind kind, scalar s, const uint64_t *args, unsigned n, uint64_t *out)
{
	int64_t a = scalar_sign_extend(s, args[0]), b = n > 1 ? scalar_sign_extend(s, args[1]) : 0;
	uint64_t x = (uint64_t)a, y = (uint64_t)b;
	bool less = scalar_is_signed(s) ? a < b : x < y;
	switch (kind) {
	case IR_ADD: *out = x + y; break;
	case IR_SUB: *out = x - y; break;
	case IR_MUL: *out = x * y; break;
	case IR_DIV:
	case IR_REM:
		if (!fold_division(kind, s, a, b, out)) return false;
		break;
	case IR_NEG: *out = 0 - x; break;
	case IR_ABS: *out = scalar_is_signed(s) && a < 0 ? 0 - x : x; break;
	case IR_MAX: *out = less ? y : x; break;
	case IR_MIN: *out = less ? x : y; break;
	case IR_UMULHI: *out = fold_umulhi(s, a, b); break;
	case IR_AND: *out = x & y; break;
	case IR_OR: *out = x | y; break;
	case IR_XOR: *out = x ^ y; break;
	case IR_NOT: *out = ~x; break;
	case IR_POPCOUNT: *out = (uint64_t)__builtin_popcountll(scalar_truncate(s, x)); break;
	case IR_CLZ: *out = fold_leading_zeros(s, x); break;
	case IR_BREV: *out = fold_reversed(s, x); break;
	case IR_SHL:
	case IR_SHR: *out = fold_shift(kind, s, a, scalar_truncate(s, args[1])); break;
	default: return false;
	}
	*out = scalar_truncate(s, *out);
	return true;
}

static bool fold_comparison(ir_kind kind, scalar s, const uint64_t *args, uint64_t *out)
{
	bool less, equal, ordered = true;
	if (scalar_is_float(s)) {
		double a = scalar_to_double(s, args[0]), b = scalar_to_double(s, args[1]);
		less = a < b, equal = a == b, ordered = !isnan(a) && !isnan(b);
	} else {
		int64_t a = scalar_sign_extend(s, args[0]), b = scalar_sign_extend(s, args[1]);
		less = scalar_is_signed(s) ? a < b : (uint64_t)a < (uint64_t)b;
		equal = a == b;
	}
	switch (kind) {
	case IR_EQ: *out = equal; return true;
	case IR_NE: *out = !equal; return true;
	case IR_LT: *out = less; return true;
	case IR_LE: *out = less || equal; return true;
	case IR_GT: *out = ordered && !less && !equal; return true;
	case IR_GE: *out = ordered && !less; return true;
	default: return false;
	}
}

bool fold_scalar(ir_kind kind, scalar to, scalar from, const uint64_t *args, uint64_t *out)
{
	unsigned n = ir_ops[kind].args;
	assert(kind < IR_KIND_COUNT && to < SCALAR_COUNT && from < SCALAR_COUNT);
	if (fegetround() != FE_TONEAREST && (scalar_is_float(to) || scalar_is_float(from))) return false;
	switch (kind) {
	case IR_EQ:
	case IR_NE:
	case IR_LT:
	case IR_LE:
	case IR_GT:
	case IR_GE: return fold_comparison(kind, from, args, out);
	case IR_SELECT: *out = args[args[0] ? 1 : 2]; return true;
	case IR_CONVERT: *out = scalar_convert(to, from, args[0]); return true;
	case IR_BITCAST: *out = args[0]; return true;
	default: break;
	}
	if (!(ir_ops[kind].flags & IR_ELEMENTWISE) || scalar_is_fp8(to)) return false;
	return scalar_is_float(to) ? fold_float(kind, to, args, n, out) : fold_integer(kind, to, args, n, out);
}
