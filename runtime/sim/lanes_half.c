/* f16 and bf16, alone and in pairs.  A sum, a product or a fused one of two such numbers is computed in double
 * precision and rounded once: sums and products fit or round innocently, the fused form is first rounded to odd. */
#include "lanes.h"

#include <math.h>
#include <string.h>

static inline f64 wide(scalar t, u16 v)
{
	return scalar_to_double(t, v);
}
static inline u16 narrow(scalar t, f64 v)
{
	return v == v ? (u16)scalar_from_double(t, v) : 0x7fff;
}

/* a + b, the last bit 1 where it is not exact, so that one more rounding is the only one. */
static inline f64 sum_to_odd(f64 a, f64 b)
{
	f64 sum = a + b, back = sum - a, rest = (a - (sum - back)) + (b - back);
	if (rest == 0 || !isfinite(sum)) return sum;
	u64 bits;
	memcpy(&bits, &sum, sizeof bits);
	if (!(bits & 1)) bits += (rest > 0) == (sum > 0) ? 1 : UINT64_MAX;
	memcpy(&sum, &bits, sizeof bits);
	return sum;
}

typedef enum half_op { HALF_ADD, HALF_SUB, HALF_MUL, HALF_FMA, HALF_MIN, HALF_MAX, HALF_MIN_NAN, HALF_MAX_NAN } half_op;

static inline u16 compute(scalar t, half_op op, u16 x, u16 y, u16 w)
{
	f64 a = wide(t, x), b = wide(t, y);
	bool is_min = op == HALF_MIN || op == HALF_MIN_NAN;
	switch (op) {
	case HALF_ADD: return narrow(t, a + b);
	case HALF_SUB: return narrow(t, a - b);
	case HALF_MUL: return narrow(t, a * b);
	case HALF_FMA: return narrow(t, sum_to_odd(a * b, wide(t, w)));
	case HALF_MIN_NAN:
	case HALF_MAX_NAN:
		if (a != a || b != b) return 0x7fff;
		break;
	default: break;
	}
	if (a != a) return b != b ? 0x7fff : y;
	if (b != b) return x;
	if (a == b) return (u16)(is_min == (bool)(x >> 15) ? x : y);
	return (a < b) == is_min ? x : y;
}
static inline u32 compute2(scalar t, half_op op, u32 x, u32 y, u32 w)
{
	u32 low = compute(t, op, (u16)x, (u16)y, (u16)w);
	return low | (u32)compute(t, op, (u16)(x >> 16), (u16)(y >> 16), (u16)(w >> 16)) << 16;
}
static inline u16 elementary(scalar t, u16 x, f64 (*f)(f64))
{
	return narrow(t, f(wide(t, x)));
}
static inline u32 elementary2(scalar t, u32 x, f64 (*f)(f64))
{
	return elementary(t, (u16)x, f) | (u32)elementary(t, (u16)(x >> 16), f) << 16;
}

#define TWO(X, text, type, T, S, name, op, c)                                                                          \
	X(text "." #type, name##_##type, ANY, T, T, T, none, c(SCALAR_##S, op, A, B, 0))                               \
	X(text "." #type "x2", name##_##type##x2, PAIR, u32, u32, u32, none, c##2(SCALAR_##S, op, A, B, 0))
#define HALF(X, type, S)                                                                                               \
	TWO(X, "add", type, u16, S, add, HALF_ADD, compute)                                                            \
	TWO(X, "add.rn", type, u16, S, add_rn, HALF_ADD, compute)                                                      \
	TWO(X, "sub", type, u16, S, sub, HALF_SUB, compute)                                                            \
	TWO(X, "sub.rn", type, u16, S, sub_rn, HALF_SUB, compute)                                                      \
	TWO(X, "mul", type, u16, S, mul, HALF_MUL, compute)                                                            \
	TWO(X, "mul.rn", type, u16, S, mul_rn, HALF_MUL, compute)                                                      \
	TWO(X, "min", type, u16, S, min, HALF_MIN, compute)                                                            \
	TWO(X, "max", type, u16, S, max, HALF_MAX, compute)                                                            \
	TWO(X, "min.NaN", type, u16, S, min_nan, HALF_MIN_NAN, compute)                                                \
	TWO(X, "max.NaN", type, u16, S, max_nan, HALF_MAX_NAN, compute)                                                \
	X("fma.rn." #type, fma_##type, ANY, u16, u16, u16, u16, compute(SCALAR_##S, HALF_FMA, A, B, C))                \
	X("fma.rn." #type "x2", fma_##type##x2, PAIR, u32, u32, u32, u32, compute2(SCALAR_##S, HALF_FMA, A, B, C))     \
	X("neg." #type, neg_##type, BITS, u16, u16, none, none, A ^ 0x8000)                                            \
	X("neg." #type "x2", neg_##type##x2, BITS, u32, u32, none, none, A ^ 0x80008000u)                              \
	X("abs." #type, abs_##type, BITS, u16, u16, none, none, A & 0x7fff)                                            \
	X("abs." #type "x2", abs_##type##x2, BITS, u32, u32, none, none, A & 0x7fff7fffu)                              \
	X("tanh.approx." #type, tanh_##type, ANY, u16, u16, none, none, elementary(SCALAR_##S, A, tanh))               \
	X("tanh.approx." #type "x2", tanh_##type##x2, PAIR, u32, u32, none, none, elementary2(SCALAR_##S, A, tanh))

#define HALF_OPS(X)                                                                                                    \
	HALF(X, f16, F16)                                                                                              \
	HALF(X, bf16, BF16)                                                                                            \
	X("ex2.approx.f16", ex2_f16, ANY, u16, u16, none, none, elementary(SCALAR_F16, A, exp2))                       \
	X("ex2.approx.f16x2", ex2_f16x2, PAIR, u32, u32, none, none, elementary2(SCALAR_F16, A, exp2))                 \
	X("ex2.approx.ftz.bf16", ex2_bf16, ANY, u16, u16, none, none, elementary(SCALAR_BF16, A, exp2))                \
	X("ex2.approx.ftz.bf16x2", ex2_bf16x2, PAIR, u32, u32, none, none, elementary2(SCALAR_BF16, A, exp2))

HALF_OPS(LANES_FUNCTION)
const sim_op sim_half_ops[] = {HALF_OPS(LANES_ROW)};
const size_t sim_nhalf_ops = sizeof sim_half_ops / sizeof sim_half_ops[0];
