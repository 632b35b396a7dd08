/* How a row of the arithmetic table is written: X(text, name, shadow, D, A, B, C, expression), with A, B and C in the
 * expression being the operands of one lane.  A file lists its rows once and makes functions and table from the list.
 */
#ifndef BLK_SIM_LANES_H
#define BLK_SIM_LANES_H

#include "sim.h"

#include <math.h>
#include <string.h>

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;
typedef uint8_t none;
enum {
	WIDTH_none = 0,
	WIDTH_u16 = 2,
	WIDTH_s16 = 2,
	WIDTH_u32 = 4,
	WIDTH_s32 = 4,
	WIDTH_f32 = 4,
	WIDTH_u64 = 8,
	WIDTH_s64 = 8,
	WIDTH_f64 = 8
};

/* A register is the operand of one instruction only as a whole, so lanes never get in each other's way. */
#if defined(__GNUC__) && !defined(__clang__)
#define LANES_ARE_APART _Pragma("GCC ivdep")
#else
#define LANES_ARE_APART
#endif

#define LANES_FUNCTION(text, name, rule, TD, TA, TB, TC, expression)                                                   \
	static void name(const sim_instr *in, void *d_, const void *a_, const void *b_, const void *c_)                \
	{                                                                                                              \
		TD *d = d_;                                                                                            \
		const TA *a = a_;                                                                                      \
		const TB *b = b_;                                                                                      \
		const TC *c = c_;                                                                                      \
		(void)in, (void)a, (void)b, (void)c;                                                                   \
		LANES_ARE_APART                                                                                        \
		for (int i = 0; i < SIM_LANES; i++) d[i] = (TD)(expression);                                           \
	}
#define LANES_ROW(text, name, rule, TD, TA, TB, TC, expression)                                                        \
	{text, name, WIDTH_##TD, WIDTH_##TA, WIDTH_##TB, WIDTH_##TC, SHADOW_##rule},
#define A a[i]
#define B b[i]
#define C c[i]

/* What the hardware leaves of any f32 nan. */
static inline f32 sim_canonical(f32 v)
{
	const u32 bits = 0x7fffffff;
	if (v != v) memcpy(&v, &bits, sizeof v);
	return v;
}
/* .ftz: denormals become zeros of their sign. */
static inline f32 sim_flush(f32 v)
{
	return fabsf(v) < 0x1p-126f ? copysignf(0, v) : v;
}

extern const sim_op sim_integer_ops[], sim_bits_ops[], sim_float_ops[], sim_half_ops[], sim_directed_ops[];
extern const size_t sim_ninteger_ops, sim_nbits_ops, sim_nfloat_ops, sim_nhalf_ops, sim_ndirected_ops;

#endif
