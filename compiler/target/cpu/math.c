/* Elementary functions of f32 as straight-line arithmetic, so that loops over tiles keep to vector registers.
 *
 * In: an f32.  Out: the function, within 2 units in the last place, denormal results and special values included (the
 * tests hold it against libm).  What is not here (sin, cos, pow, and everything of f64) is a call of libm.
 * Polynomials and constants are those of Cephes (S. Moshier), but erf's, which are N. Juffa's.  `a * b + c` is fused
 * where the processor can, and correct where it cannot: constants that need it are split to leave products exact. */
#include "lower.h"

#include <assert.h>

static LLVMValueRef real(cpu_emitter *e, double v)
{
	return LLVMConstReal(e->f32, v);
}

static LLVMValueRef word(cpu_emitter *e, uint32_t v)
{
	return LLVMConstInt(e->i32, v, false);
}

static LLVMValueRef muladd(cpu_emitter *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
	return cpu_intrinsic(e, "llvm.fmuladd", e->f32, 3, (LLVMValueRef[]){a, b, c});
}

static LLVMValueRef mul(cpu_emitter *e, LLVMValueRef a, LLVMValueRef b)
{
	return LLVMBuildFMul(e->builder, a, b, "");
}

/* Horner, highest power first. */
static LLVMValueRef polynomial(cpu_emitter *e, LLVMValueRef x, unsigned n, const double *c)
{
	LLVMValueRef r = real(e, c[0]);
	for (unsigned i = 1; i < n; i++) r = muladd(e, r, x, real(e, c[i]));
	return r;
}
#define POLYNOMIAL(e, x, c) polynomial(e, x, sizeof(c) / sizeof(c)[0], c)

static LLVMValueRef absolute(cpu_emitter *e, LLVMValueRef x)
{
	return cpu_intrinsic(e, "llvm.fabs", e->f32, 1, &x);
}

static LLVMValueRef less(cpu_emitter *e, LLVMValueRef a, LLVMValueRef b)
{
	return LLVMBuildFCmp(e->builder, LLVMRealOLT, a, b, "");
}

/* Into [lo, hi]; nan stays. */
static LLVMValueRef clamp(cpu_emitter *e, LLVMValueRef x, double lo, double hi)
{
	x = cpu_select(e, less(e, x, real(e, lo)), real(e, lo), x);
	return cpu_select(e, less(e, real(e, hi), x), real(e, hi), x);
}

/* Adding it leaves a small number rounded to an integer in the low bits. */
static const uint32_t magic_bits = 0x4b400000; /* 1.5 * 2^23 */

static LLVMValueRef magic(cpu_emitter *e)
{
	return real(e, 0x1.8p23);
}

/* v * 2^n for n from -252 to 254, in two steps, so that only the last one may round; n as `magic` + n. Whatever n is
 * for a nan, v is one then. */
static LLVMValueRef scale(cpu_emitter *e, LLVMValueRef v, LLVMValueRef shifted)
{
	LLVMBuilderRef b = e->builder;
	LLVMValueRef n = LLVMBuildSub(b, LLVMBuildBitCast(b, shifted, e->i32, ""), word(e, magic_bits), "");
	LLVMValueRef half = LLVMBuildAShr(b, n, word(e, 1), ""), part[] = {half, LLVMBuildSub(b, n, half, "")};
	for (unsigned k = 0; k < 2; k++) {
		LLVMValueRef bits = LLVMBuildShl(b, LLVMBuildAdd(b, part[k], word(e, 127), ""), word(e, 23), "");
		v = mul(e, v, LLVMBuildBitCast(b, bits, e->f32, ""));
	}
	return v;
}

/* e^x = 2^n e^r, |r| <= ln 2 / 2 */
static LLVMValueRef exponential(cpu_emitter *e, LLVMValueRef x)
{
	static const double c[] = {
		1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1};
	x = clamp(e, x, -104, 89);
	LLVMValueRef shifted = muladd(e, x, real(e, 1.44269504088896341), magic(e));
	LLVMValueRef n = LLVMBuildFSub(e->builder, shifted, magic(e), "");
	LLVMValueRef r = muladd(e, n, real(e, -0.693359375), x);
	r = muladd(e, n, real(e, 2.12194440e-4), r);
	LLVMValueRef p = muladd(e, POLYNOMIAL(e, r, c), mul(e, r, r), r);
	return scale(e, LLVMBuildFAdd(e->builder, p, real(e, 1), ""), shifted);
}

static LLVMValueRef exponential2(cpu_emitter *e, LLVMValueRef x)
{
	static const double c[] = {1.535336188319500e-4, 1.339887440266574e-3, 9.618437357674640e-3,
		5.550332471162809e-2, 2.402264791363012e-1, 6.931472028550421e-1, 1};
	x = clamp(e, x, -151, 129);
	LLVMValueRef shifted = LLVMBuildFAdd(e->builder, x, magic(e), "");
	LLVMValueRef n = LLVMBuildFSub(e->builder, shifted, magic(e), "");
	return scale(e, POLYNOMIAL(e, LLVMBuildFSub(e->builder, x, n, ""), c), shifted);
}

/* x = 2^n (1 + r), 1 + r in [sqrt(1/2), sqrt(2)); what log and log2 share. `tail` is log(1 + r) - r. */
typedef struct logarithm {
	LLVMValueRef n, r, tail;
} logarithm;

static logarithm take_apart(cpu_emitter *e, LLVMValueRef x)
{
	static const double c[] = {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1,
		1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1};
	LLVMBuilderRef b = e->builder;
	logarithm l;
	LLVMValueRef tiny = less(e, x, real(e, 0x1p-126));
	LLVMValueRef normal = cpu_select(e, tiny, mul(e, x, real(e, 0x1p23)), x);
	LLVMValueRef bits = LLVMBuildBitCast(b, normal, e->i32, "");
	/* subtracting sqrt(1/2)'s pattern puts the exponent's border there */
	LLVMValueRef moved = LLVMBuildSub(b, bits, word(e, 0x3f3504f3), "");
	LLVMValueRef exponent = LLVMBuildAShr(b, moved, word(e, 23), "");
	LLVMValueRef m = LLVMBuildSub(b, bits, LLVMBuildShl(b, exponent, word(e, 23), ""), "");
	exponent = LLVMBuildSub(b, exponent, cpu_select(e, tiny, word(e, 23), word(e, 0)), "");
	l.n = LLVMBuildSIToFP(b, exponent, e->f32, "");
	l.r = LLVMBuildFSub(b, LLVMBuildBitCast(b, m, e->f32, ""), real(e, 1), "");
	LLVMValueRef z = mul(e, l.r, l.r);
	l.tail = mul(e, mul(e, POLYNOMIAL(e, l.r, c), z), l.r);
	l.tail = muladd(e, z, real(e, -0.5), l.tail);
	return l;
}

/* The values that taking apart does not serve: 0, negative numbers, infinity, nan. */
static LLVMValueRef log_specials(cpu_emitter *e, LLVMValueRef x, LLVMValueRef y)
{
	LLVMValueRef zero = real(e, 0), inf = cpu_constant(e, ir_scalar_type(SCALAR_F32), 0x7f800000);
	LLVMValueRef minus_inf = cpu_constant(e, ir_scalar_type(SCALAR_F32), 0xff800000);
	LLVMValueRef nan = cpu_constant(e, ir_scalar_type(SCALAR_F32), 0x7fc00000);
	y = cpu_select(e, LLVMBuildFCmp(e->builder, LLVMRealOEQ, x, inf, ""), inf, y);
	y = cpu_select(e, LLVMBuildFCmp(e->builder, LLVMRealOEQ, x, zero, ""), minus_inf, y);
	return cpu_select(e, LLVMBuildFCmp(e->builder, LLVMRealUGE, x, zero, ""),
		cpu_select(e, LLVMBuildFCmp(e->builder, LLVMRealUNO, x, x, ""), x, y), nan);
}

static LLVMValueRef natural_logarithm(cpu_emitter *e, LLVMValueRef x)
{
	logarithm l = take_apart(e, x);
	LLVMValueRef y = muladd(e, l.n, real(e, -2.12194440e-4), l.tail);
	y = muladd(e, l.n, real(e, 0.693359375), LLVMBuildFAdd(e->builder, l.r, y, ""));
	return log_specials(e, x, y);
}

/* log2(1 + r) = (r + tail) + (r + tail) * (log2(e) - 1), smallest terms first */
static LLVMValueRef binary_logarithm(cpu_emitter *e, LLVMValueRef x)
{
	LLVMBuilderRef b = e->builder;
	logarithm l = take_apart(e, x);
	LLVMValueRef rest = real(e, 0.44269504088896340736);
	LLVMValueRef y = muladd(e, l.r, rest, mul(e, l.tail, rest));
	y = LLVMBuildFAdd(b, LLVMBuildFAdd(b, y, l.tail, ""), l.r, "");
	return log_specials(e, x, LLVMBuildFAdd(b, y, l.n, ""));
}

static LLVMValueRef copy_sign(cpu_emitter *e, LLVMValueRef size, LLVMValueRef sign)
{
	return cpu_intrinsic(e, "llvm.copysign", e->f32, 2, (LLVMValueRef[]){size, sign});
}

static LLVMValueRef hyperbolic_tangent(cpu_emitter *e, LLVMValueRef x)
{
	static const double c[] = {
		-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1};
	LLVMBuilderRef b = e->builder;
	LLVMValueRef a = absolute(e, x), z = mul(e, x, x), one = real(e, 1);
	LLVMValueRef small = muladd(e, mul(e, POLYNOMIAL(e, z, c), z), x, x);
	LLVMValueRef power = exponential(e, LLVMBuildFAdd(b, a, a, ""));
	LLVMValueRef part = LLVMBuildFDiv(b, real(e, 2), LLVMBuildFAdd(b, power, one, ""), "");
	LLVMValueRef large = LLVMBuildFSub(b, one, part, "");
	return copy_sign(e, cpu_select(e, less(e, a, real(e, 0.625)), small, large), x); /* of -0 too */
}

static LLVMValueRef error_function(cpu_emitter *e, LLVMValueRef x)
{
	static const double near[] = {
		-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1};
	static const double far[] = {-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1,
		-6.34846687e-1, -1.28717512e-1};
	LLVMBuilderRef b = e->builder;
	LLVMValueRef a = absolute(e, x);
	LLVMValueRef small = muladd(e, POLYNOMIAL(e, mul(e, x, x), near), x, x);
	LLVMValueRef t = clamp(e, a, 0, 10); /* 1 from 4 on; the polynomial has no business further out */
	LLVMValueRef power = exponential(e, LLVMBuildFSub(b, mul(e, POLYNOMIAL(e, t, far), t), t, ""));
	LLVMValueRef large = copy_sign(e, LLVMBuildFSub(b, real(e, 1), power, ""), x);
	return cpu_select(e, less(e, a, real(e, 0.927734375)), small, large);
}

LLVMValueRef cpu_math(cpu_emitter *e, ir_kind kind, LLVMValueRef x)
{
	assert(LLVMTypeOf(x) == e->f32);
	switch (kind) {
	case IR_EXP: return exponential(e, x);
	case IR_EXP2: return exponential2(e, x);
	case IR_LOG: return natural_logarithm(e, x);
	case IR_LOG2: return binary_logarithm(e, x);
	case IR_TANH: return hyperbolic_tangent(e, x);
	case IR_ERF: return error_function(e, x);
	default: return NULL;
	}
}
