/* f32 and f64 rounded towards zero, down or up: the host's own arithmetic in another of its rounding modes. */
#include "lanes.h"

#include <fenv.h>
#include <math.h>

typedef enum arithmetic { ADD, SUB, MUL, DIV, FMA, SQRT } arithmetic;

static int host_mode(sim_rounding r)
{
	return r == ROUND_ZERO ? FE_TOWARDZERO : r == ROUND_DOWN ? FE_DOWNWARD : FE_UPWARD;
}

/* The operands are read, and the result is kept, between the changes of mode: volatile says so to the C compiler. */
#define DIRECTED(T, sqrt_of, fma_of)                                                                                   \
	static T directed_##T(arithmetic what, sim_rounding mode, T x, T y, T z)                                       \
	{                                                                                                              \
		volatile T a = x, b = y, c = z, r;                                                                     \
		int before = fegetround();                                                                             \
		fesetround(host_mode(mode));                                                                           \
		switch (what) {                                                                                        \
		case ADD: r = a + b; break;                                                                            \
		case SUB: r = a - b; break;                                                                            \
		case MUL: r = a * b; break;                                                                            \
		case DIV: r = a / b; break;                                                                            \
		case SQRT: r = sqrt_of(a); break;                                                                      \
		default: r = fma_of(a, b, c); break;                                                                   \
		}                                                                                                      \
		fesetround(before);                                                                                    \
		return r;                                                                                              \
	}
DIRECTED(f32, sqrtf, fmaf)
DIRECTED(f64, sqrt, fma)

#define ONE_MODE(X, how, mode)                                                                                         \
	X("add." #how ".f32", add_##how##_f32, ANY, f32, f32, f32, none,                                               \
		sim_canonical(directed_f32(ADD, mode, A, B, 0)))                                                       \
	X("sub." #how ".f32", sub_##how##_f32, ANY, f32, f32, f32, none,                                               \
		sim_canonical(directed_f32(SUB, mode, A, B, 0)))                                                       \
	X("mul." #how ".f32", mul_##how##_f32, ANY, f32, f32, f32, none,                                               \
		sim_canonical(directed_f32(MUL, mode, A, B, 0)))                                                       \
	X("div." #how ".f32", div_##how##_f32, ANY, f32, f32, f32, none,                                               \
		sim_canonical(directed_f32(DIV, mode, A, B, 0)))                                                       \
	X("fma." #how ".f32", fma_##how##_f32, ANY, f32, f32, f32, f32,                                                \
		sim_canonical(directed_f32(FMA, mode, A, B, C)))                                                       \
	X("rcp." #how ".f32", rcp_##how##_f32, ANY, f32, f32, none, none,                                              \
		sim_canonical(directed_f32(DIV, mode, 1, A, 0)))                                                       \
	X("sqrt." #how ".f32", sqrt_##how##_f32, ANY, f32, f32, none, none,                                            \
		sim_canonical(directed_f32(SQRT, mode, A, 0, 0)))                                                      \
	X("add." #how ".f64", add_##how##_f64, ANY, f64, f64, f64, none, directed_f64(ADD, mode, A, B, 0))             \
	X("sub." #how ".f64", sub_##how##_f64, ANY, f64, f64, f64, none, directed_f64(SUB, mode, A, B, 0))             \
	X("mul." #how ".f64", mul_##how##_f64, ANY, f64, f64, f64, none, directed_f64(MUL, mode, A, B, 0))             \
	X("div." #how ".f64", div_##how##_f64, ANY, f64, f64, f64, none, directed_f64(DIV, mode, A, B, 0))             \
	X("fma." #how ".f64", fma_##how##_f64, ANY, f64, f64, f64, f64, directed_f64(FMA, mode, A, B, C))              \
	X("rcp." #how ".f64", rcp_##how##_f64, ANY, f64, f64, none, none, directed_f64(DIV, mode, 1, A, 0))            \
	X("sqrt." #how ".f64", sqrt_##how##_f64, ANY, f64, f64, none, none, directed_f64(SQRT, mode, A, 0, 0))         \
	X("add." #how ".ftz.f32", add_##how##_ftz_f32, ANY, f32, f32, f32, none,                                       \
		sim_flush(sim_canonical(directed_f32(ADD, mode, sim_flush(A), sim_flush(B), 0))))                      \
	X("mul." #how ".ftz.f32", mul_##how##_ftz_f32, ANY, f32, f32, f32, none,                                       \
		sim_flush(sim_canonical(directed_f32(MUL, mode, sim_flush(A), sim_flush(B), 0))))

#define DIRECTED_OPS(X)                                                                                                \
	ONE_MODE(X, rz, ROUND_ZERO)                                                                                    \
	ONE_MODE(X, rm, ROUND_DOWN)                                                                                    \
	ONE_MODE(X, rp, ROUND_UP)

DIRECTED_OPS(LANES_FUNCTION)
const sim_op sim_directed_ops[] = {DIRECTED_OPS(LANES_ROW)};
const size_t sim_ndirected_ops = sizeof sim_directed_ops / sizeof sim_directed_ops[0];
