/* Integer arithmetic.  All of it wraps, so it is done in unsigned types; what is undefined in C and defined in PTX
 * (shifts by the width, the smallest integer over -1) or unspecified there (a divisor of 0: all ones, as on hardware)
 * is spelled out. */
#include "lanes.h"

#define HIGH_U64(x, y) ((u64)((unsigned __int128)(x) * (y) >> 64))
#define HIGH_S64(x, y) ((u64)((__int128)(s64)(x) * (s64)(y) >> 64))

static inline u64 divide(bool is_signed, unsigned width, u64 x, u64 y, bool remainder)
{
	if (y == 0) return remainder ? x : UINT64_MAX;
	if (!is_signed) return remainder ? x % y : x / y;
	s64 smallest = (s64)(UINT64_C(1) << (width - 1) | (width < 64 ? UINT64_MAX << width : 0));
	if ((s64)y == -1) return remainder ? 0 : (s64)x == smallest ? x : 0 - x;
	return (u64)(remainder ? (s64)x % (s64)y : (s64)x / (s64)y);
}

/* One signedness and width; U: an unsigned type that C does not widen to int. */
#define SIGNED_AND_NOT(X, T, U, is_signed)                                                                             \
	X("add." #T, add_##T, CARRY, T, T, T, none, (U)A + (U)B)                                                       \
	X("sub." #T, sub_##T, CARRY, T, T, T, none, (U)A - (U)B)                                                       \
	X("mul.lo." #T, mul_lo_##T, CARRY, T, T, T, none, (U)A *(U)B)                                                  \
	X("mad.lo." #T, mad_lo_##T, CARRY, T, T, T, T, (U)A *(U)B + (U)C)                                              \
	X("div." #T, div_##T, ANY, T, T, T, none, divide(is_signed, 8 * sizeof(T), (u64)A, (u64)B, false))             \
	X("rem." #T, rem_##T, ANY, T, T, T, none, divide(is_signed, 8 * sizeof(T), (u64)A, (u64)B, true))              \
	X("min." #T, min_##T, ANY, T, T, T, none, A < B ? A : B)                                                       \
	X("max." #T, max_##T, ANY, T, T, T, none, A > B ? A : B)
#define ONLY_SIGNED(X, T, U)                                                                                           \
	X("neg." #T, neg_##T, CARRY, T, T, none, none, 0 - (U)A)                                                       \
	X("abs." #T, abs_##T, ANY, T, T, none, none, A < 0 ? 0 - (U)A : (U)A)
#define WIDER(X, T, W, UW)                                                                                             \
	X("mul.wide." #T, mul_wide_##T, CARRY, W, T, T, none, (UW)(W)A *(UW)(W)B)                                      \
	X("mad.wide." #T, mad_wide_##T, CARRY, W, T, T, W, (UW)(W)A *(UW)(W)B + (UW)C)
#define HIGH(X, T, high)                                                                                               \
	X("mul.hi." #T, mul_hi_##T, ANY, T, T, T, none, high)                                                          \
	X("mad.hi." #T, mad_hi_##T, ANY, T, T, T, T, (u64)(high) + (u64)C)

/* From sm_90 on: no less than 0; and two numbers of 16 bits side by side. */
#define LESS(x, y) ((x) < (y) ? (x) : (y))
#define MORE(x, y) ((x) > (y) ? (x) : (y))
#define BOTH(T, op) ((u32)(u16)(op((T)A, (T)B)) | (u32)(u16)(op((T)(A >> 16), (T)(B >> 16))) << 16)
#define PLUS(x, y) ((u32)(x) + (u32)(y))
#define LESS_RELU(x, y) MORE(LESS(x, y), 0)
#define MORE_RELU(x, y) MORE(MORE(x, y), 0)
#define SINCE_SM90(X)                                                                                                  \
	X("min.relu.s32", min_relu_s32, ANY, s32, s32, s32, none, LESS_RELU(A, B))                                     \
	X("max.relu.s32", max_relu_s32, ANY, s32, s32, s32, none, MORE_RELU(A, B))                                     \
	X("add.u16x2", add_u16x2, PAIR, u32, u32, u32, none, BOTH(u16, PLUS))                                          \
	X("add.s16x2", add_s16x2, PAIR, u32, u32, u32, none, BOTH(u16, PLUS))                                          \
	X("min.u16x2", min_u16x2, PAIR, u32, u32, u32, none, BOTH(u16, LESS))                                          \
	X("max.u16x2", max_u16x2, PAIR, u32, u32, u32, none, BOTH(u16, MORE))                                          \
	X("min.s16x2", min_s16x2, PAIR, u32, u32, u32, none, BOTH(s16, LESS))                                          \
	X("max.s16x2", max_s16x2, PAIR, u32, u32, u32, none, BOTH(s16, MORE))                                          \
	X("min.relu.s16x2", min_relu_s16x2, PAIR, u32, u32, u32, none, BOTH(s16, LESS_RELU))                           \
	X("max.relu.s16x2", max_relu_s16x2, PAIR, u32, u32, u32, none, BOTH(s16, MORE_RELU))

/* The lower 24 bits of two numbers; the product has 48. */
#define LOW24(T, x) ((T)((u32)(x) << 8) >> 8)
#define PRODUCT24(T, W) ((u64)((W)LOW24(T, A) * (W)LOW24(T, B)))
#define NARROW_PRODUCT(X, T, W)                                                                                        \
	X("mul24.lo." #T, mul24_lo_##T, ANY, T, T, T, none, (u32)PRODUCT24(T, W))                                      \
	X("mul24.hi." #T, mul24_hi_##T, ANY, T, T, T, none, (u32)(PRODUCT24(T, W) >> 16))                              \
	X("mad24.lo." #T, mad24_lo_##T, ANY, T, T, T, T, (u32)PRODUCT24(T, W) + (u32)C)                                \
	X("mad24.hi." #T, mad24_hi_##T, ANY, T, T, T, T, (u32)(PRODUCT24(T, W) >> 16) + (u32)C)
#define DISTANCE(X, T, U) X("sad." #T, sad_##T, ANY, T, T, T, T, (U)C + (A < B ? (U)B - (U)A : (U)A - (U)B))
#define CLAMP32(v) ((v) < INT32_MIN ? INT32_MIN : (v) > INT32_MAX ? INT32_MAX : (v))
#define SATURATING(X)                                                                                                  \
	X("add.sat.s32", add_sat_s32, ANY, s32, s32, s32, none, CLAMP32((s64)A + B))                                   \
	X("sub.sat.s32", sub_sat_s32, ANY, s32, s32, s32, none, CLAMP32((s64)A - B))

#define INTEGER_OPS(X)                                                                                                 \
	SIGNED_AND_NOT(X, u16, u32, false)                                                                             \
	SIGNED_AND_NOT(X, s16, u32, true)                                                                              \
	SIGNED_AND_NOT(X, u32, u32, false)                                                                             \
	SIGNED_AND_NOT(X, s32, u32, true)                                                                              \
	SIGNED_AND_NOT(X, u64, u64, false)                                                                             \
	SIGNED_AND_NOT(X, s64, u64, true)                                                                              \
	ONLY_SIGNED(X, s16, u32)                                                                                       \
	ONLY_SIGNED(X, s32, u32)                                                                                       \
	ONLY_SIGNED(X, s64, u64)                                                                                       \
	WIDER(X, u16, u32, u32)                                                                                        \
	WIDER(X, s16, s32, u32)                                                                                        \
	WIDER(X, u32, u64, u64)                                                                                        \
	WIDER(X, s32, s64, u64)                                                                                        \
	HIGH(X, u16, (u32)A *(u32)B >> 16)                                                                             \
	HIGH(X, s16, (s32)A *(s32)B >> 16)                                                                             \
	HIGH(X, u32, (u64)A *(u64)B >> 32)                                                                             \
	HIGH(X, s32, (s64)A *(s64)B >> 32)                                                                             \
	HIGH(X, u64, HIGH_U64(A, B))                                                                                   \
	HIGH(X, s64, HIGH_S64(A, B))                                                                                   \
	NARROW_PRODUCT(X, u32, u64)                                                                                    \
	NARROW_PRODUCT(X, s32, s64)                                                                                    \
	DISTANCE(X, u16, u32)                                                                                          \
	DISTANCE(X, s16, u32)                                                                                          \
	DISTANCE(X, u32, u32)                                                                                          \
	DISTANCE(X, s32, u32)                                                                                          \
	DISTANCE(X, u64, u64)                                                                                          \
	DISTANCE(X, s64, u64)                                                                                          \
	SATURATING(X)                                                                                                  \
	SINCE_SM90(X)

INTEGER_OPS(LANES_FUNCTION)
const sim_op sim_integer_ops[] = {INTEGER_OPS(LANES_ROW)};
const size_t sim_ninteger_ops = sizeof sim_integer_ops / sizeof sim_integer_ops[0];

/* ---- Comparisons ---- */

#define COMPARE(text, name, T, expression)                                                                             \
	static uint32_t name(const void *a_, const void *b_)                                                           \
	{                                                                                                              \
		const T *a = a_, *b = b_;                                                                              \
		uint32_t mask = 0;                                                                                     \
		(void)b;                                                                                               \
		for (int i = 0; i < SIM_LANES; i++) mask |= (uint32_t)((expression) != 0) << i;                        \
		return mask;                                                                                           \
	}
#define COMPARE_ROW(text, name, T, expression) {text, name, WIDTH_##T},

#define EQUALITY(X, type, T)                                                                                           \
	X("setp.eq." #type, eq_##type, T, A == B)                                                                      \
	X("setp.ne." #type, ne_##type, T, A != B)
#define ORDER(X, type)                                                                                                 \
	EQUALITY(X, type, type)                                                                                        \
	X("setp.lt." #type, lt_##type, type, A < B)                                                                    \
	X("setp.le." #type, le_##type, type, A <= B)                                                                   \
	X("setp.gt." #type, gt_##type, type, A > B)                                                                    \
	X("setp.ge." #type, ge_##type, type, A >= B)
#define UNSIGNED_ORDER(X, type)                                                                                        \
	X("setp.lo." #type, lo_##type, type, A < B)                                                                    \
	X("setp.ls." #type, ls_##type, type, A <= B)                                                                   \
	X("setp.hi." #type, hi_##type, type, A > B)                                                                    \
	X("setp.hs." #type, hs_##type, type, A >= B)
/* `u` in a name: true when either is nan. */
#define FLOAT_ORDER(X, text, type, T, V)                                                                               \
	X("setp.eq." text, eq_##type, T, V(A) == V(B))                                                                 \
	X("setp.ne." text, ne_##type, T, V(A) < V(B) || V(A) > V(B))                                                   \
	X("setp.lt." text, lt_##type, T, V(A) < V(B))                                                                  \
	X("setp.le." text, le_##type, T, V(A) <= V(B))                                                                 \
	X("setp.gt." text, gt_##type, T, V(A) > V(B))                                                                  \
	X("setp.ge." text, ge_##type, T, V(A) >= V(B))                                                                 \
	X("setp.equ." text, equ_##type, T, !(V(A) < V(B) || V(A) > V(B)))                                              \
	X("setp.neu." text, neu_##type, T, !(V(A) == V(B)))                                                            \
	X("setp.ltu." text, ltu_##type, T, !(V(A) >= V(B)))                                                            \
	X("setp.leu." text, leu_##type, T, !(V(A) > V(B)))                                                             \
	X("setp.gtu." text, gtu_##type, T, !(V(A) <= V(B)))                                                            \
	X("setp.geu." text, geu_##type, T, !(V(A) < V(B)))                                                             \
	X("setp.num." text, num_##type, T, V(A) == V(A) && V(B) == V(B))                                               \
	X("setp.nan." text, nan_##type, T, V(A) != V(A) || V(B) != V(B))
#define AS_IT_IS(x) (x)
#define FROM_F16(x) scalar_to_double(SCALAR_F16, x)
#define FROM_BF16(x) scalar_to_double(SCALAR_BF16, x)

/* What kind of number A is. */
#define KINDS(X, T, least)                                                                                             \
	X("setp.finite." #T, finite_##T, T, isfinite(A))                                                               \
	X("setp.infinite." #T, infinite_##T, T, isinf(A))                                                              \
	X("setp.number." #T, number_##T, T, A == A)                                                                    \
	X("setp.notanumber." #T, notanumber_##T, T, A != A)                                                            \
	X("setp.normal." #T, normal_##T, T, isfinite(A) && (A == 0 || A >= least || A <= -least))                      \
	X("setp.subnormal." #T, subnormal_##T, T, A != 0 && A < least && A > -least)

#define COMPARE_OPS(X)                                                                                                 \
	EQUALITY(X, b16, u16)                                                                                          \
	EQUALITY(X, b32, u32)                                                                                          \
	EQUALITY(X, b64, u64)                                                                                          \
	ORDER(X, u16)                                                                                                  \
	ORDER(X, s16)                                                                                                  \
	ORDER(X, u32)                                                                                                  \
	ORDER(X, s32)                                                                                                  \
	ORDER(X, u64)                                                                                                  \
	ORDER(X, s64)                                                                                                  \
	UNSIGNED_ORDER(X, u16)                                                                                         \
	UNSIGNED_ORDER(X, u32)                                                                                         \
	UNSIGNED_ORDER(X, u64)                                                                                         \
	FLOAT_ORDER(X, "f32", f32, f32, AS_IT_IS)                                                                      \
	FLOAT_ORDER(X, "ftz.f32", ftz_f32, f32, sim_flush)                                                             \
	FLOAT_ORDER(X, "f64", f64, f64, AS_IT_IS)                                                                      \
	FLOAT_ORDER(X, "f16", f16, u16, FROM_F16)                                                                      \
	FLOAT_ORDER(X, "bf16", bf16, u16, FROM_BF16)                                                                   \
	KINDS(X, f32, 0x1p-126f)                                                                                       \
	KINDS(X, f64, 0x1p-1022)

COMPARE_OPS(COMPARE)
const sim_compare_op sim_compare_ops[] = {COMPARE_OPS(COMPARE_ROW)};
const size_t sim_ncompare_ops = sizeof sim_compare_ops / sizeof sim_compare_ops[0];
