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
typedef enum half_mode { HALF_PLAIN, HALF_SAT, HALF_RELU, HALF_FTZ } half_mode;

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
/* A nan loses its sign and payload. */
static inline u16 absolute(scalar t, u16 v)
{
	u16 infinity = t == SCALAR_F16 ? 0x7c00 : 0x7f80;
	return (v & 0x7fff) > infinity ? 0x7fff : v & 0x7fff;
}
static inline u16 negated(scalar t, u16 v)
{
	u16 magnitude = absolute(t, v);
	return magnitude == 0x7fff ? magnitude : v ^ 0x8000;
}

static inline u16 flush(scalar t, u16 v)
{
	u16 magnitude = v & 0x7fff;
	return magnitude < (t == SCALAR_F16 ? 0x400 : 0x80) ? v & 0x8000 : v;
}
/* .sat: into 0 to 1, a nan to 0; .relu: no less than 0; .ftz: denormals are zeros. */
static inline u16 compute_in(scalar t, half_mode mode, half_op op, u16 x, u16 y, u16 w)
{
	if (mode == HALF_FTZ) return flush(t, compute(t, op, flush(t, x), flush(t, y), flush(t, w)));
	u16 r = compute(t, op, x, y, w);
	f64 v = wide(t, r);
	if (mode == HALF_SAT) return v > 0 ? narrow(t, v < 1 ? v : 1) : 0;
	return mode == HALF_RELU && v <= 0 ? 0 : r;
}
static inline u32 compute_in2(scalar t, half_mode mode, half_op op, u32 x, u32 y, u32 w)
{
	u32 low = compute_in(t, mode, op, (u16)x, (u16)y, (u16)w);
	return low | (u32)compute_in(t, mode, op, (u16)(x >> 16), (u16)(y >> 16), (u16)(w >> 16)) << 16;
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
	X("neg." #type, neg_##type, ANY, u16, u16, none, none, negated(SCALAR_##S, A))                                 \
	X("neg." #type "x2", neg_##type##x2, PAIR, u32, u32, none, none,                                               \
		(u32)negated(SCALAR_##S, (u16)(A >> 16)) << 16 | negated(SCALAR_##S, (u16)A))                          \
	X("abs." #type, abs_##type, ANY, u16, u16, none, none, absolute(SCALAR_##S, A))                                \
	X("abs." #type "x2", abs_##type##x2, PAIR, u32, u32, none, none,                                               \
		(u32)absolute(SCALAR_##S, (u16)(A >> 16)) << 16 | absolute(SCALAR_##S, (u16)A))                        \
	X("tanh.approx." #type, tanh_##type, ANY, u16, u16, none, none, elementary(SCALAR_##S, A, tanh))               \
	X("tanh.approx." #type "x2", tanh_##type##x2, PAIR, u32, u32, none, none, elementary2(SCALAR_##S, A, tanh))

#define FMA_IN(X, how, type, S, mode)                                                                                  \
	X("fma.rn." #how "." #type, fma_##how##_##type, ANY, u16, u16, u16, u16,                                       \
		compute_in(SCALAR_##S, mode, HALF_FMA, A, B, C))                                                       \
	X("fma.rn." #how "." #type "x2", fma_##how##_##type##x2, PAIR, u32, u32, u32, u32,                             \
		compute_in2(SCALAR_##S, mode, HALF_FMA, A, B, C))
#define TWO_IN(X, text, name, mode, op)                                                                                \
	X(text ".f16", name##_f16, ANY, u16, u16, u16, none, compute_in(SCALAR_F16, mode, op, A, B, 0))                \
	X(text ".f16x2", name##_f16x2, PAIR, u32, u32, u32, none, compute_in2(SCALAR_F16, mode, op, A, B, 0))
#define HALF_MODES(X)                                                                                                  \
	TWO_IN(X, "add.sat", add_sat, HALF_SAT, HALF_ADD)                                                              \
	TWO_IN(X, "sub.sat", sub_sat, HALF_SAT, HALF_SUB)                                                              \
	TWO_IN(X, "mul.sat", mul_sat, HALF_SAT, HALF_MUL)                                                              \
	TWO_IN(X, "add.ftz", add_ftz, HALF_FTZ, HALF_ADD)                                                              \
	TWO_IN(X, "sub.ftz", sub_ftz, HALF_FTZ, HALF_SUB)                                                              \
	TWO_IN(X, "mul.ftz", mul_ftz, HALF_FTZ, HALF_MUL)                                                              \
	FMA_IN(X, sat, f16, F16, HALF_SAT)                                                                             \
	FMA_IN(X, ftz, f16, F16, HALF_FTZ)                                                                             \
	FMA_IN(X, relu, f16, F16, HALF_RELU)                                                                           \
	FMA_IN(X, relu, bf16, BF16, HALF_RELU)

#define HALF_OPS(X)                                                                                                    \
	HALF(X, f16, F16)                                                                                              \
	HALF(X, bf16, BF16)                                                                                            \
	HALF_MODES(X)                                                                                                  \
	X("ex2.approx.f16", ex2_f16, ANY, u16, u16, none, none, elementary(SCALAR_F16, A, exp2))                       \
	X("ex2.approx.f16x2", ex2_f16x2, PAIR, u32, u32, none, none, elementary2(SCALAR_F16, A, exp2))                 \
	X("ex2.approx.ftz.bf16", ex2_bf16, ANY, u16, u16, none, none, elementary(SCALAR_BF16, A, exp2))                \
	X("ex2.approx.ftz.bf16x2", ex2_bf16x2, PAIR, u32, u32, none, none, elementary2(SCALAR_BF16, A, exp2))

HALF_OPS(LANES_FUNCTION)
const sim_op sim_half_ops[] = {HALF_OPS(LANES_ROW)};
const size_t sim_nhalf_ops = sizeof sim_half_ops / sizeof sim_half_ops[0];
