/* f32 and f64.  The host rounds as the GPU does; what differs is said here: an f32 nan is always 0x7fffffff, min and
 * max prefer a number to a nan and order -0 below +0, and the approximate functions are computed in double precision
 * and rounded once, which is inside every bound of the PTX ISA. */
#include "lanes.h"

#include <math.h>
#include <string.h>

static inline f32 n(f32 v)
{
	return sim_canonical(v);
}
static inline f32 z(f32 v)
{
	return sim_flush(v);
}
/* .sat: 0 for a nan too. */
static inline f32 sat(f32 v)
{
	return v > 0 ? (v < 1 ? v : 1) : 0;
}
static inline f32 min32(f32 x, f32 y)
{
	if (x != x) return n(y);
	if (y != y) return x;
	return x < y || (x == y && signbit(x)) ? x : y;
}
static inline f32 max32(f32 x, f32 y)
{
	if (x != x) return n(y);
	if (y != y) return x;
	return x > y || (x == y && !signbit(x)) ? x : y;
}
static inline f64 min64(f64 x, f64 y)
{
	if (x != x) return y;
	if (y != y) return x;
	return x < y || (x == y && signbit(x)) ? x : y;
}
static inline f64 max64(f64 x, f64 y)
{
	if (x != x) return y;
	if (y != y) return x;
	return x > y || (x == y && !signbit(x)) ? x : y;
}
static inline f32 either_nan(f32 x, f32 y, f32 r)
{
	return x != x || y != y ? n(NAN) : r;
}
/* The hardware's neg and abs of a nan: the canonical one in f32, in f64 the nan itself, made quiet. */
static inline f64 sign64(f64 v, bool negative)
{
	u64 bits;
	if (v == v) return copysign(v, negative ? -1 : 1);
	memcpy(&bits, &v, sizeof bits);
	bits |= UINT64_C(1) << 51;
	memcpy(&v, &bits, sizeof v);
	return v;
}

#define FLOAT_OPS(X)                                                                                                   \
	X("add.f32", add_f32, ANY, f32, f32, f32, none, n(A + B))                                                      \
	X("add.rn.f32", add_rn_f32, ANY, f32, f32, f32, none, n(A + B))                                                \
	X("add.ftz.f32", add_ftz_f32, ANY, f32, f32, f32, none, z(n(z(A) + z(B))))                                     \
	X("add.rn.ftz.f32", add_rn_ftz_f32, ANY, f32, f32, f32, none, z(n(z(A) + z(B))))                               \
	X("sub.f32", sub_f32, ANY, f32, f32, f32, none, n(A - B))                                                      \
	X("sub.rn.f32", sub_rn_f32, ANY, f32, f32, f32, none, n(A - B))                                                \
	X("sub.ftz.f32", sub_ftz_f32, ANY, f32, f32, f32, none, z(n(z(A) - z(B))))                                     \
	X("sub.rn.ftz.f32", sub_rn_ftz_f32, ANY, f32, f32, f32, none, z(n(z(A) - z(B))))                               \
	X("mul.f32", mul_f32, ANY, f32, f32, f32, none, n(A *B))                                                       \
	X("mul.rn.f32", mul_rn_f32, ANY, f32, f32, f32, none, n(A *B))                                                 \
	X("mul.ftz.f32", mul_ftz_f32, ANY, f32, f32, f32, none, z(n(z(A) * z(B))))                                     \
	X("mul.rn.ftz.f32", mul_rn_ftz_f32, ANY, f32, f32, f32, none, z(n(z(A) * z(B))))                               \
	X("fma.rn.f32", fma_rn_f32, ANY, f32, f32, f32, f32, n(fmaf(A, B, C)))                                         \
	X("fma.rn.ftz.f32", fma_rn_ftz_f32, ANY, f32, f32, f32, f32, z(n(fmaf(z(A), z(B), z(C)))))                     \
	X("div.rn.f32", div_rn_f32, ANY, f32, f32, f32, none, n(A / B))                                                \
	X("div.full.f32", div_full_f32, ANY, f32, f32, f32, none, n(A / B))                                            \
	X("div.approx.f32", div_approx_f32, ANY, f32, f32, f32, none, n(A / B))                                        \
	X("rcp.rn.f32", rcp_rn_f32, ANY, f32, f32, none, none, n(1 / A))                                               \
	X("rcp.approx.f32", rcp_approx_f32, ANY, f32, f32, none, none, n(1 / A))                                       \
	X("rcp.approx.ftz.f32", rcp_approx_ftz_f32, ANY, f32, f32, none, none, z(n(1 / z(A))))                         \
	X("sqrt.rn.f32", sqrt_rn_f32, ANY, f32, f32, none, none, n(sqrtf(A)))                                          \
	X("sqrt.approx.f32", sqrt_approx_f32, ANY, f32, f32, none, none, n(sqrtf(A)))                                  \
	X("sqrt.approx.ftz.f32", sqrt_approx_ftz_f32, ANY, f32, f32, none, none, n(sqrtf(z(A))))                       \
	X("rsqrt.approx.f32", rsqrt_approx_f32, ANY, f32, f32, none, none, n((f32)(1 / sqrt((f64)A))))                 \
	X("rsqrt.approx.ftz.f32", rsqrt_approx_ftz_f32, ANY, f32, f32, none, none, n((f32)(1 / sqrt((f64)z(A)))))      \
	X("ex2.approx.f32", ex2_approx_f32, ANY, f32, f32, none, none, n((f32)exp2((f64)A)))                           \
	X("ex2.approx.ftz.f32", ex2_approx_ftz_f32, ANY, f32, f32, none, none, z(n((f32)exp2((f64)z(A)))))             \
	X("lg2.approx.f32", lg2_approx_f32, ANY, f32, f32, none, none, n((f32)log2((f64)A)))                           \
	X("lg2.approx.ftz.f32", lg2_approx_ftz_f32, ANY, f32, f32, none, none, n((f32)log2((f64)z(A))))                \
	X("sin.approx.f32", sin_approx_f32, ANY, f32, f32, none, none, n((f32)sin((f64)A)))                            \
	X("cos.approx.f32", cos_approx_f32, ANY, f32, f32, none, none, n((f32)cos((f64)A)))                            \
	X("tanh.approx.f32", tanh_approx_f32, ANY, f32, f32, none, none, n((f32)tanh((f64)A)))                         \
	X("min.f32", min_f32, ANY, f32, f32, f32, none, min32(A, B))                                                   \
	X("max.f32", max_f32, ANY, f32, f32, f32, none, max32(A, B))                                                   \
	X("min.NaN.f32", min_nan_f32, ANY, f32, f32, f32, none, either_nan(A, B, min32(A, B)))                         \
	X("max.NaN.f32", max_nan_f32, ANY, f32, f32, f32, none, either_nan(A, B, max32(A, B)))                         \
	X("neg.f32", neg_f32, ANY, f32, f32, none, none, n(-A))                                                        \
	X("abs.f32", abs_f32, ANY, f32, f32, none, none, n(fabsf(A)))                                                  \
	X("neg.ftz.f32", neg_ftz_f32, ANY, f32, f32, none, none, z(n(-A)))                                             \
	X("abs.ftz.f32", abs_ftz_f32, ANY, f32, f32, none, none, z(n(fabsf(A))))                                       \
	X("min.ftz.f32", min_ftz_f32, ANY, f32, f32, f32, none, min32(z(A), z(B)))                                     \
	X("max.ftz.f32", max_ftz_f32, ANY, f32, f32, f32, none, max32(z(A), z(B)))                                     \
	X("min.ftz.NaN.f32", min_ftz_nan_f32, ANY, f32, f32, f32, none, either_nan(A, B, min32(z(A), z(B))))           \
	X("max.ftz.NaN.f32", max_ftz_nan_f32, ANY, f32, f32, f32, none, either_nan(A, B, max32(z(A), z(B))))           \
	X("div.rn.ftz.f32", div_rn_ftz_f32, ANY, f32, f32, f32, none, z(n(z(A) / z(B))))                               \
	X("rcp.rn.ftz.f32", rcp_rn_ftz_f32, ANY, f32, f32, none, none, z(n(1 / z(A))))                                 \
	X("sqrt.rn.ftz.f32", sqrt_rn_ftz_f32, ANY, f32, f32, none, none, n(sqrtf(z(A))))                               \
	X("add.sat.f32", add_sat_f32, ANY, f32, f32, f32, none, sat(A + B))                                            \
	X("sub.sat.f32", sub_sat_f32, ANY, f32, f32, f32, none, sat(A - B))                                            \
	X("mul.sat.f32", mul_sat_f32, ANY, f32, f32, f32, none, sat(A *B))                                             \
	X("fma.rn.sat.f32", fma_rn_sat_f32, ANY, f32, f32, f32, f32, sat(fmaf(A, B, C)))                               \
	X("copysign.f32", copysign_f32, BITS, u32, u32, u32, none, (A & 0x80000000u) | (B & 0x7fffffffu))              \
	X("add.f64", add_f64, ANY, f64, f64, f64, none, A + B)                                                         \
	X("add.rn.f64", add_rn_f64, ANY, f64, f64, f64, none, A + B)                                                   \
	X("sub.f64", sub_f64, ANY, f64, f64, f64, none, A - B)                                                         \
	X("sub.rn.f64", sub_rn_f64, ANY, f64, f64, f64, none, A - B)                                                   \
	X("mul.f64", mul_f64, ANY, f64, f64, f64, none, A *B)                                                          \
	X("mul.rn.f64", mul_rn_f64, ANY, f64, f64, f64, none, A *B)                                                    \
	X("fma.rn.f64", fma_rn_f64, ANY, f64, f64, f64, f64, fma(A, B, C))                                             \
	X("div.rn.f64", div_rn_f64, ANY, f64, f64, f64, none, A / B)                                                   \
	X("rcp.rn.f64", rcp_rn_f64, ANY, f64, f64, none, none, 1 / A)                                                  \
	X("sqrt.rn.f64", sqrt_rn_f64, ANY, f64, f64, none, none, sqrt(A))                                              \
	X("min.f64", min_f64, ANY, f64, f64, f64, none, min64(A, B))                                                   \
	X("max.f64", max_f64, ANY, f64, f64, f64, none, max64(A, B))                                                   \
	X("neg.f64", neg_f64, ANY, f64, f64, none, none, sign64(A, !signbit(A)))                                       \
	X("abs.f64", abs_f64, ANY, f64, f64, none, none, sign64(A, false))                                             \
	X("copysign.f64", copysign_f64, BITS, u64, u64, u64, none, (A & UINT64_C(1) << 63) | (B & ~(UINT64_C(1) << 63)))

FLOAT_OPS(LANES_FUNCTION)
const sim_op sim_float_ops[] = {FLOAT_OPS(LANES_ROW)};
const size_t sim_nfloat_ops = sizeof sim_float_ops / sizeof sim_float_ops[0];
