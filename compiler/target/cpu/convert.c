/* Casts between scalar types, bit for bit as scalar.c does them on the host.
 *
 * In: an element in register form (f16 and bf16 as i16, fp8 as i8) and two types.  Out: the element in the other.
 * The one idea: f32 is the exchange.  Every 16-bit and 8-bit float is exact in f32; going back rounds once, because
 * anything wider than f32 first becomes an f32 rounded to odd, which keeps what the second rounding must know.
 * The code is integer arithmetic of ours, since the host's library may lack the helpers that LLVM would call; only
 * f16 uses the host's own instruction where there is one. */
#include "lower.h"

#include <assert.h>
#include <math.h>

LLVMValueRef cpu_bits(cpu_emitter *e, LLVMTypeRef to, LLVMValueRef v)
{
	LLVMTypeRef from = LLVMTypeOf(v);
	if (from == to) return v;
	if (to == e->pointer) return LLVMBuildIntToPtr(e->builder, v, to, "");
	if (from == e->pointer) return LLVMBuildPtrToInt(e->builder, v, to, "");
	if (to == e->i1) return LLVMBuildICmp(e->builder, LLVMIntNE, v, LLVMConstNull(from), "");
	if (from == e->i1) return LLVMBuildZExt(e->builder, v, to, "");
	return LLVMBuildBitCast(e->builder, v, to, "");
}

static LLVMValueRef word(cpu_emitter *e, uint32_t v)
{
	return LLVMConstInt(e->i32, v, false);
}

static LLVMValueRef power_of_two(cpu_emitter *e, int exponent)
{
	return LLVMConstBitCast(word(e, (uint32_t)(exponent + 127) << 23), e->f32);
}

/* Moves sign and magnitude to f32's places and corrects the exponent's bias by a multiplication, which is exact and
 * takes denormals along. */
LLVMValueRef cpu_widen(cpu_emitter *e, scalar s, LLVMValueRef v)
{
	assert(scalar_is_float(s));
	LLVMBuilderRef b = e->builder;
	unsigned m = scalar_table[s].mantissa, ex = scalar_table[s].exponent, width = scalar_bits(s);
	if (s == SCALAR_F32 || s == SCALAR_F64) return v;
	if (s == SCALAR_F16 && e->f16c) return LLVMBuildFPExt(b, LLVMBuildBitCast(b, v, e->f16, ""), e->f32, "");
	LLVMValueRef x = LLVMBuildZExt(b, v, e->i32, "");
	if (s == SCALAR_BF16) return LLVMBuildBitCast(b, LLVMBuildShl(b, x, word(e, 16), ""), e->f32, "");
	uint32_t sign_bit = 1u << (width - 1);
	LLVMValueRef sign = LLVMBuildShl(b, LLVMBuildAnd(b, x, word(e, sign_bit), ""), word(e, 32 - width), "");
	LLVMValueRef magnitude = LLVMBuildAnd(b, x, word(e, sign_bit - 1), "");
	LLVMValueRef f = LLVMBuildBitCast(b, LLVMBuildShl(b, magnitude, word(e, 23 - m), ""), e->f32, "");
	f = LLVMBuildFMul(b, f, power_of_two(e, 127 - ((1 << (ex - 1)) - 1)), "");
	LLVMValueRef bits = LLVMBuildBitCast(b, f, e->i32, "");
	/* e4m3's only special value is the nan 0x7f; the others have infinities and nans under the top exponent */
	uint32_t special = s == SCALAR_F8E4M3 ? 0x7f : ((1u << ex) - 1) << m;
	LLVMValueRef is_special = LLVMBuildICmp(b, LLVMIntUGE, magnitude, word(e, special), "");
	uint32_t top = s == SCALAR_F8E4M3 ? 0x7fc00000 : 0x7f800000;
	LLVMValueRef fixed = LLVMBuildOr(b, bits, word(e, top), "");
	bits = LLVMBuildOr(b, cpu_select(e, is_special, fixed, bits), sign, "");
	return LLVMBuildBitCast(b, bits, e->f32, "");
}

/* Round to nearest even at bit 23 - m, twice: for normal results by an integer addition, for denormal ones by adding a
 * float whose unit in the last place is the denormals' unit; then the right one is chosen, saturated and signed. */
static LLVMValueRef narrow_magnitude(cpu_emitter *e, scalar s, LLVMValueRef a)
{
	assert(scalar_is_float(s) && scalar_bits(s) < 32);
	LLVMBuilderRef b = e->builder;
	unsigned m = scalar_table[s].mantissa, ex = scalar_table[s].exponent, drop = 23 - m;
	int bias = (1 << (ex - 1)) - 1;
	LLVMValueRef odd = LLVMBuildAnd(b, LLVMBuildLShr(b, a, word(e, drop), ""), word(e, 1), "");
	uint32_t shift = (uint32_t)(127 - bias) << 23, half = (1u << (drop - 1)) - 1;
	LLVMValueRef normal = LLVMBuildAdd(b, LLVMBuildAdd(b, a, word(e, half - shift), ""), odd, "");
	normal = LLVMBuildLShr(b, normal, word(e, drop), "");
	LLVMValueRef magic = power_of_two(e, 23 + 1 - bias - (int)m);
	LLVMValueRef sum = LLVMBuildFAdd(b, LLVMBuildBitCast(b, a, e->f32, ""), magic, "");
	LLVMValueRef denormal =
		LLVMBuildSub(b, LLVMBuildBitCast(b, sum, e->i32, ""), LLVMBuildBitCast(b, magic, e->i32, ""), "");
	LLVMValueRef small = LLVMBuildICmp(b, LLVMIntULT, a, word(e, shift + (1u << 23)), "");
	LLVMValueRef r = cpu_select(e, small, denormal, normal);
	uint32_t infinity = ((1u << ex) - 1) << m;
	uint32_t largest = s == SCALAR_F8E4M3 ? 0x7e : s == SCALAR_F8E5M2 ? infinity - 1 : infinity;
	return cpu_select(e, LLVMBuildICmp(b, LLVMIntUGT, r, word(e, largest), ""), word(e, largest), r);
}

LLVMValueRef cpu_narrow(cpu_emitter *e, scalar s, LLVMValueRef v)
{
	assert(scalar_is_float(s));
	LLVMBuilderRef b = e->builder;
	if (s == SCALAR_F32 || s == SCALAR_F64) return v;
	if (s == SCALAR_F16 && e->f16c) return LLVMBuildBitCast(b, LLVMBuildFPTrunc(b, v, e->f16, ""), e->i16, "");
	LLVMValueRef x = LLVMBuildBitCast(b, v, e->i32, "");
	LLVMValueRef a = LLVMBuildAnd(b, x, word(e, 0x7fffffff), ""), r;
	uint32_t nan;
	if (s == SCALAR_BF16) {
		LLVMValueRef odd = LLVMBuildAnd(b, LLVMBuildLShr(b, a, word(e, 16), ""), word(e, 1), "");
		r = LLVMBuildAdd(b, LLVMBuildAdd(b, a, word(e, 0x7fff), ""), odd, "");
		r = LLVMBuildLShr(b, r, word(e, 16), "");
		nan = 0x7fc0;
	} else {
		r = narrow_magnitude(e, s, a);
		nan = s == SCALAR_F16 ? 0x7e00 : 0x7f;
	}
	r = cpu_select(e, LLVMBuildICmp(b, LLVMIntUGT, a, word(e, 0x7f800000), ""), word(e, nan), r);
	unsigned width = scalar_bits(s);
	LLVMValueRef sign = LLVMBuildLShr(b, x, word(e, 32 - width), "");
	r = LLVMBuildOr(b, r, LLVMBuildAnd(b, sign, word(e, 1u << (width - 1)), ""), "");
	return LLVMBuildTrunc(b, r, cpu_type(e, ir_scalar_type(s)), "");
}

/* f64 -> f32 rounded to odd: the nearest f32, and if that was inexact and even, its odd neighbour on the other side. */
static LLVMValueRef to_odd(cpu_emitter *e, LLVMValueRef d)
{
	LLVMBuilderRef b = e->builder;
	LLVMValueRef f = LLVMBuildFPTrunc(b, d, e->f32, ""), back = LLVMBuildFPExt(b, f, e->f64, "");
	LLVMValueRef bits = LLVMBuildBitCast(b, f, e->i32, "");
	LLVMValueRef size = cpu_intrinsic(e, "llvm.fabs", e->f64, 1, &d);
	LLVMValueRef back_size = cpu_intrinsic(e, "llvm.fabs", e->f64, 1, &back);
	LLVMValueRef inexact = LLVMBuildFCmp(b, LLVMRealONE, size, back_size, "");
	LLVMValueRef even = LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildAnd(b, bits, word(e, 1), ""), word(e, 0), "");
	LLVMValueRef away = LLVMBuildFCmp(b, LLVMRealOGT, back_size, size, "");
	LLVMValueRef step = cpu_select(e, away, word(e, UINT32_MAX), word(e, 1));
	LLVMValueRef fix = LLVMBuildAnd(b, inexact, even, "");
	bits = LLVMBuildAdd(b, bits, cpu_select(e, fix, step, word(e, 0)), "");
	return LLVMBuildBitCast(b, bits, e->f32, "");
}

LLVMValueRef cpu_narrow_f64(cpu_emitter *e, scalar s, LLVMValueRef v)
{
	return cpu_narrow(e, s, to_odd(e, v));
}

/* 64-bit integers that f64 cannot hold lose 11 bits, the last that stays being odd if any was set. */
static LLVMValueRef wide_integer_to_f64_odd(cpu_emitter *e, bool is_signed, LLVMValueRef v)
{
	LLVMBuilderRef b = e->builder;
	LLVMValueRef eleven = cpu_index(e, 11), limit = cpu_index(e, UINT64_C(1) << 53);
	LLVMValueRef top = is_signed ? LLVMBuildAShr(b, v, eleven, "") : LLVMBuildLShr(b, v, eleven, "");
	LLVMValueRef low = LLVMBuildAnd(b, v, cpu_index(e, 0x7ff), "");
	LLVMValueRef sticky = LLVMBuildICmp(b, LLVMIntNE, low, cpu_index(e, 0), "");
	top = LLVMBuildOr(b, top, LLVMBuildZExt(b, sticky, e->i64, ""), "");
	LLVMValueRef small = is_signed ? LLVMBuildICmp(b, LLVMIntULT, LLVMBuildAdd(b, v, limit, ""),
						 cpu_index(e, UINT64_C(1) << 54), "")
				       : LLVMBuildICmp(b, LLVMIntULT, v, limit, "");
	LLVMValueRef pick = cpu_select(e, small, v, top);
	LLVMValueRef f = is_signed ? LLVMBuildSIToFP(b, pick, e->f64, "") : LLVMBuildUIToFP(b, pick, e->f64, "");
	LLVMValueRef scale = cpu_select(e, small, LLVMConstReal(e->f64, 1), LLVMConstReal(e->f64, 2048));
	return LLVMBuildFMul(b, f, scale, "");
}

static LLVMValueRef integer_to_float(cpu_emitter *e, scalar to, scalar from, LLVMValueRef v)
{
	LLVMBuilderRef b = e->builder;
	bool is_signed = scalar_is_signed(from);
	unsigned bytes = scalar_bytes(from);
	if (to != SCALAR_F32 && to != SCALAR_F64 && bytes == 8)
		return cpu_narrow_f64(e, to, wide_integer_to_f64_odd(e, is_signed, v));
	bool through_f64 = to == SCALAR_F64 || (to != SCALAR_F32 && bytes == 4);
	LLVMTypeRef type = through_f64 ? e->f64 : e->f32;
	v = is_signed ? LLVMBuildSIToFP(b, v, type, "") : LLVMBuildUIToFP(b, v, type, "");
	if (to == SCALAR_F32 || to == SCALAR_F64) return v;
	return through_f64 ? cpu_narrow_f64(e, to, v) : cpu_narrow(e, to, v);
}

/* Truncates and saturates; nan gives 0.  LLVM has an intrinsic for it, which it takes apart into scalars on x86. */
static LLVMValueRef float_to_integer(cpu_emitter *e, scalar to, scalar from, LLVMValueRef v)
{
	assert(scalar_is_float(from));
	LLVMBuilderRef b = e->builder;
	v = cpu_widen(e, from, v);
	LLVMTypeRef wide = LLVMTypeOf(v), type = cpu_type(e, ir_scalar_type(to));
	if (to == SCALAR_BOOL) return LLVMBuildFCmp(b, LLVMRealUNE, v, LLVMConstNull(wide), "");
	bool is_signed = scalar_is_signed(to);
	unsigned width = scalar_bits(to);
	double least = is_signed ? -ldexp(1, (int)width - 1) : 0, limit = ldexp(1, (int)width - is_signed);
	LLVMValueRef low = LLVMBuildFCmp(b, LLVMRealOLT, v, LLVMConstReal(wide, least), "");
	LLVMValueRef high = LLVMBuildFCmp(b, LLVMRealOGE, v, LLVMConstReal(wide, limit), "");
	LLVMValueRef fits = LLVMBuildAnd(b, LLVMBuildFCmp(b, LLVMRealOGE, v, LLVMConstReal(wide, least), ""),
		LLVMBuildFCmp(b, LLVMRealOLT, v, LLVMConstReal(wide, limit), ""), "");
	LLVMTypeRef through = width < 32 ? e->i32 : type;
	v = cpu_select(e, fits, v, LLVMConstNull(wide));
	LLVMValueRef i =
		is_signed || width < 32 ? LLVMBuildFPToSI(b, v, through, "") : LLVMBuildFPToUI(b, v, through, "");
	if (through != type) i = LLVMBuildTrunc(b, i, type, "");
	int64_t bottom = is_signed ? INT64_MIN >> (64 - width) : 0;
	i = cpu_select(e, low, cpu_int(e, to, bottom), i);
	return cpu_select(e, high, cpu_int(e, to, is_signed ? ~bottom : -1), i);
}

static LLVMValueRef float_to_float(cpu_emitter *e, scalar to, scalar from, LLVMValueRef v)
{
	assert(scalar_is_float(to) && scalar_is_float(from));
	LLVMBuilderRef b = e->builder;
	if (from == SCALAR_F64) return to == SCALAR_F32 ? LLVMBuildFPTrunc(b, v, e->f32, "") : cpu_narrow_f64(e, to, v);
	v = cpu_widen(e, from, v);
	return to == SCALAR_F64 ? LLVMBuildFPExt(b, v, e->f64, "") : cpu_narrow(e, to, v);
}

LLVMValueRef cpu_convert(cpu_emitter *e, scalar to, scalar from, LLVMValueRef v)
{
	LLVMBuilderRef b = e->builder;
	if (to == from) return v;
	if (scalar_is_float(from))
		return scalar_is_float(to) ? float_to_float(e, to, from, v) : float_to_integer(e, to, from, v);
	if (scalar_is_float(to)) return integer_to_float(e, to, from, v);
	LLVMTypeRef type = cpu_type(e, ir_scalar_type(to));
	if (to == SCALAR_BOOL) return LLVMBuildICmp(b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
	unsigned have = scalar_bits(from), want = scalar_bits(to);
	if (have == want) return v;
	if (have > want) return LLVMBuildTrunc(b, v, type, "");
	return scalar_is_signed(from) ? LLVMBuildSExt(b, v, type, "") : LLVMBuildZExt(b, v, type, "");
}
