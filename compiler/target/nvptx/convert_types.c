/* Casts between scalar types, exactly as scalar.c computes them on the host.
 *
 * In: registers of one type.  Out: registers of another.
 * The one idea: every narrowing rounds once.  Where the hardware has no direct form, the value first goes to f32
 * rounded *to odd* (truncated, last bit set if anything was lost): a second rounding to at most 22 bits then gives
 * what a single one would have. */
#include "lower.h"

#include <assert.h>

static LLVMValueRef to_bits(lower *l, LLVMValueRef v, LLVMTypeRef bits)
{
	return LLVMBuildBitCast(l->builder, v, bits, "");
}

/* ---- fp8 ---- */

/* e5m2 is the upper byte of an f16.  e4m3's bits moved under f16's exponent read 2^8 too small, denormals included. */
static LLVMValueRef fp8_to_f16(lower *l, scalar from, LLVMValueRef v)
{
	assert(scalar_is_fp8(from));
	LLVMBuilderRef m = l->builder;
	if (from == SCALAR_F8E4M3 && target_can(l->pass->target, TARGET_CONVERTS_FP8)) {
		LLVMTypeRef pair = LLVMVectorType(l->f16, 2);
		LLVMValueRef wide = LLVMBuildZExt(m, v, l->i16, "");
		LLVMValueRef both = lower_intrinsic(l, "llvm.nvvm.e4m3x2.to.f16x2.rn", pair, 1, &wide);
		return LLVMBuildExtractElement(m, both, lower_i32(l, 0), "");
	}
	LLVMValueRef wide = LLVMBuildZExt(m, v, l->i16, "");
	if (from == SCALAR_F8E5M2) return to_bits(l, LLVMBuildShl(m, wide, lower_const(l, l->i16, 8), ""), l->f16);
	LLVMValueRef magnitude = LLVMBuildAnd(m, wide, lower_const(l, l->i16, 0x7f), "");
	LLVMValueRef sign = LLVMBuildAnd(m, wide, lower_const(l, l->i16, 0x80), "");
	LLVMValueRef bits = LLVMBuildOr(m, LLVMBuildShl(m, magnitude, lower_const(l, l->i16, 7), ""),
		LLVMBuildShl(m, sign, lower_const(l, l->i16, 8), ""), "");
	LLVMValueRef scaled = LLVMBuildFMul(m, to_bits(l, bits, l->f16), LLVMConstReal(l->f16, 256), "");
	LLVMValueRef is_nan = LLVMBuildICmp(m, LLVMIntEQ, magnitude, lower_const(l, l->i16, 0x7f), "");
	LLVMValueRef nan = LLVMConstBitCast(lower_const(l, l->i16, 0x7fff), l->f16);
	return LLVMBuildSelect(m, is_nan, nan, scaled, "");
}

typedef struct fp8_shape {
	unsigned mantissa, bias, largest; /* bits, exponent bias, container of the largest finite value */
	float largest_value, magic;       /* magic: its last place is the type's smallest denormal */
} fp8_shape;

static const fp8_shape e4m3 = {3, 7, 0x7e, 448.0f, 16384.0f}, e5m2 = {2, 15, 0x7b, 57344.0f, 128.0f};

/* Before sm_89: round the f32's bits to the mantissa; denormals by adding the magic number, whose last place they
 * share. */
static LLVMValueRef f32_to_fp8_by_hand(lower *l, const fp8_shape *f, LLVMValueRef v)
{
	assert(f->mantissa < 23);
	LLVMBuilderRef m = l->builder;
	unsigned drop = 23 - f->mantissa;
	LLVMValueRef bits = to_bits(l, v, l->i32);
	LLVMValueRef magnitude = LLVMBuildAnd(m, bits, lower_i32(l, 0x7fffffff), "");
	LLVMValueRef sign = LLVMBuildAnd(m, LLVMBuildLShr(m, bits, lower_i32(l, 24), ""), lower_i32(l, 0x80), "");
	LLVMValueRef is_nan = LLVMBuildICmp(m, LLVMIntUGT, magnitude, lower_i32(l, 0x7f800000), "");
	LLVMValueRef most = LLVMConstBitCast(LLVMConstReal(l->f32, f->largest_value), l->i32);
	LLVMValueRef clamped = lower_intrinsic(l, "llvm.umin.i32", l->i32, 2, (LLVMValueRef[]){magnitude, most});
	/* normal numbers: add half a place, less one when the kept last bit is even */
	LLVMValueRef odd = LLVMBuildAnd(m, LLVMBuildLShr(m, clamped, lower_i32(l, drop), ""), lower_i32(l, 1), "");
	LLVMValueRef up = LLVMBuildAdd(m, clamped, lower_i32(l, (1 << (drop - 1)) - 1), "");
	up = LLVMBuildLShr(m, LLVMBuildAdd(m, up, odd, ""), lower_i32(l, drop), "");
	LLVMValueRef normal = LLVMBuildSub(m, up, lower_i32(l, (127 - f->bias) << f->mantissa), "");
	LLVMValueRef magic = LLVMConstReal(l->f32, f->magic);
	LLVMValueRef sum = LLVMBuildFAdd(m, to_bits(l, clamped, l->f32), magic, "");
	LLVMValueRef denormal = LLVMBuildSub(m, to_bits(l, sum, l->i32), LLVMConstBitCast(magic, l->i32), "");
	LLVMValueRef small =
		LLVMBuildICmp(m, LLVMIntULT, clamped, lower_i32(l, (int64_t)(127 - f->bias + 1) << 23), "");
	LLVMValueRef out = LLVMBuildSelect(m, small, denormal, normal, "");
	out = LLVMBuildSelect(m, is_nan, lower_i32(l, 0x7f), out, "");
	return LLVMBuildTrunc(m, LLVMBuildOr(m, out, sign, ""), l->i8, "");
}

/* Two at a time where the hardware converts two at a time; b may be null. */
static void f32_to_fp8(lower *l, scalar to, LLVMValueRef a, LLVMValueRef b, LLVMValueRef *low, LLVMValueRef *high)
{
	assert(scalar_is_fp8(to));
	LLVMBuilderRef m = l->builder;
	const fp8_shape *f = to == SCALAR_F8E4M3 ? &e4m3 : &e5m2;
	if (!target_can(l->pass->target, TARGET_CONVERTS_FP8)) {
		*low = f32_to_fp8_by_hand(l, f, a);
		if (b) *high = f32_to_fp8_by_hand(l, f, b);
		return;
	}
	const char *name = to == SCALAR_F8E4M3 ? "llvm.nvvm.ff.to.e4m3x2.rn" : "llvm.nvvm.ff.to.e5m2x2.rn";
	LLVMValueRef args[2] = {b ? b : LLVMConstNull(l->f32), a};
	LLVMValueRef both = lower_intrinsic(l, name, l->i16, 2, args);
	*low = LLVMBuildTrunc(m, both, l->i8, "");
	if (b) *high = LLVMBuildTrunc(m, LLVMBuildLShr(m, both, lower_const(l, l->i16, 8), ""), l->i8, "");
}

/* ---- to and from f32 ---- */

LLVMValueRef lower_to_f32(lower *l, scalar from, LLVMValueRef v)
{
	assert(scalar_is_float(from) && from != SCALAR_F64);
	LLVMBuilderRef m = l->builder;
	if (from == SCALAR_F32) return v;
	if (from == SCALAR_F64) return LLVMBuildFPTrunc(m, v, l->f32, "");
	if (scalar_is_fp8(from)) v = fp8_to_f16(l, from, v);
	if (from == SCALAR_BF16) { /* the upper half of an f32 */
		LLVMValueRef bits = LLVMBuildZExt(m, to_bits(l, v, l->i16), l->i32, "");
		return to_bits(l, LLVMBuildShl(m, bits, lower_i32(l, 16), ""), l->f32);
	}
	return LLVMBuildFPExt(m, v, l->f32, "");
}

LLVMValueRef lower_from_f32(lower *l, scalar to, LLVMValueRef v)
{
	assert(scalar_is_float(to));
	LLVMValueRef low, high;
	switch (to) {
	case SCALAR_F32: return v;
	case SCALAR_F64: return LLVMBuildFPExt(l->builder, v, l->f64, "");
	case SCALAR_F16: return LLVMBuildFPTrunc(l->builder, v, l->f16, "");
	case SCALAR_BF16: return LLVMBuildFPTrunc(l->builder, v, l->bf16, "");
	default: f32_to_fp8(l, to, v, NULL, &low, &high); return low;
	}
}

static LLVMValueRef set_odd(lower *l, LLVMValueRef truncated, LLVMValueRef inexact)
{
	LLVMValueRef bit = LLVMBuildZExt(l->builder, inexact, l->i32, "");
	LLVMValueRef bits = LLVMBuildOr(l->builder, to_bits(l, truncated, l->i32), bit, "");
	return to_bits(l, bits, l->f32);
}

static LLVMValueRef f64_to_odd_f32(lower *l, LLVMValueRef v)
{
	LLVMValueRef truncated = lower_intrinsic(l, "llvm.nvvm.d2f.rz", l->f32, 1, &v);
	LLVMValueRef back = LLVMBuildFPExt(l->builder, truncated, l->f64, "");
	return set_odd(l, truncated, LLVMBuildFCmp(l->builder, LLVMRealONE, back, v, "")); /* ordered: nan stays */
}

static LLVMValueRef integer_to_odd_f32(lower *l, scalar from, LLVMValueRef v)
{
	assert(scalar_is_integer(from));
	bool is_signed = scalar_is_signed(from), wide = scalar_bits(from) == 64;
	LLVMTypeRef type = LLVMTypeOf(v);
	const char *name = wide        ? is_signed ? "llvm.nvvm.ll2f.rz" : "llvm.nvvm.ull2f.rz"
			   : is_signed ? "llvm.nvvm.i2f.rz"
				       : "llvm.nvvm.ui2f.rz";
	LLVMValueRef truncated = lower_intrinsic(l, name, l->f32, 1, &v);
	LLVMValueRef back = is_signed ? LLVMBuildFPToSI(l->builder, truncated, type, "")
				      : LLVMBuildFPToUI(l->builder, truncated, type, "");
	return set_odd(l, truncated, LLVMBuildICmp(l->builder, LLVMIntNE, back, v, ""));
}

/* ---- the pairs ---- */

static LLVMValueRef integer_to_float(lower *l, scalar from, scalar to, LLVMValueRef v)
{
	assert(scalar_is_float(to));
	bool is_signed = scalar_is_signed(from), narrow = scalar_bits(from) <= 16;
	bool direct = to == SCALAR_F16 || to == SCALAR_F32 || to == SCALAR_F64;
	if (!direct && !narrow) return lower_from_f32(l, to, integer_to_odd_f32(l, from, v));
	LLVMTypeRef type = direct ? lower_type(l, ir_scalar_type(to)) : l->f32; /* 16 bits are exact in f32 */
	LLVMValueRef f =
		is_signed ? LLVMBuildSIToFP(l->builder, v, type, "") : LLVMBuildUIToFP(l->builder, v, type, "");
	return direct ? f : lower_from_f32(l, to, f);
}

static LLVMValueRef clamp(lower *l, scalar to, LLVMValueRef v)
{
	assert(scalar_is_integer(to));
	unsigned width = scalar_bits(to);
	bool is_signed = scalar_is_signed(to);
	int64_t low = is_signed ? -(INT64_C(1) << (width - 1)) : 0;
	int64_t high = is_signed ? (INT64_C(1) << (width - 1)) - 1 : (INT64_C(1) << width) - 1;
	v = lower_intrinsic(l, "llvm.smax.i32", l->i32, 2, (LLVMValueRef[]){v, lower_i32(l, low)});
	v = lower_intrinsic(l, "llvm.smin.i32", l->i32, 2, (LLVMValueRef[]){v, lower_i32(l, high)});
	return LLVMBuildTrunc(l->builder, v, lower_type(l, ir_scalar_type(to)), "");
}

/* Truncates, saturates, nan gives 0.  PTX's cvt.rzi saturates; its nan is 0 only for f32 to 32 bits. */
static LLVMValueRef float_to_integer(lower *l, scalar from, scalar to, LLVMValueRef v)
{
	assert(scalar_is_float(from) && scalar_is_integer(to));
	static const char *const names[2][4] = {
		{"llvm.nvvm.f2i.rz", "llvm.nvvm.f2ui.rz", "llvm.nvvm.f2ll.rz", "llvm.nvvm.f2ull.rz"},
		{"llvm.nvvm.d2i.rz", "llvm.nvvm.d2ui.rz", "llvm.nvvm.d2ll.rz", "llvm.nvvm.d2ull.rz"},
	};
	bool from_double = from == SCALAR_F64, wide = scalar_bits(to) == 64, narrow = scalar_bits(to) < 32;
	if (!from_double) v = lower_to_f32(l, from, v);
	const char *name = names[from_double][2 * wide + (!narrow && !scalar_is_signed(to))];
	LLVMTypeRef type = wide ? l->i64 : l->i32;
	LLVMValueRef i = lower_intrinsic(l, name, type, 1, &v);
	if (from_double || wide) {
		LLVMValueRef is_nan = LLVMBuildFCmp(l->builder, LLVMRealUNO, v, v, "");
		i = LLVMBuildSelect(l->builder, is_nan, LLVMConstNull(type), i, "");
	}
	return narrow ? clamp(l, to, i) : i;
}

static LLVMValueRef to_bool(lower *l, scalar from, LLVMValueRef v)
{
	if (scalar_is_fp8(from))
		v = LLVMBuildAnd(l->builder, v, lower_const(l, l->i8, 0x7f), ""); /* without the sign */
	LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(v));
	if (scalar_is_float(from) && !scalar_is_fp8(from)) return LLVMBuildFCmp(l->builder, LLVMRealUNE, v, zero, "");
	return LLVMBuildICmp(l->builder, LLVMIntNE, v, zero, "");
}

static LLVMValueRef float_to_float(lower *l, scalar from, scalar to, LLVMValueRef v)
{
	assert(scalar_is_float(from) && scalar_is_float(to));
	if (from == SCALAR_F64) {
		if (to == SCALAR_F32) return LLVMBuildFPTrunc(l->builder, v, l->f32, "");
		return lower_from_f32(l, to, f64_to_odd_f32(l, v));
	}
	if (scalar_is_fp8(from) && to == SCALAR_F16) return fp8_to_f16(l, from, v);
	return lower_from_f32(l, to, lower_to_f32(l, from, v));
}

static LLVMValueRef convert(lower *l, scalar from, scalar to, LLVMValueRef v)
{
	LLVMTypeRef type = lower_type(l, ir_scalar_type(to));
	if (from == to) return v;
	if (to == SCALAR_BOOL) return to_bool(l, from, v);
	if (from == SCALAR_BOOL) {
		if (!scalar_is_float(to)) return LLVMBuildZExt(l->builder, v, type, "");
		LLVMValueRef one = lower_constant(l, ir_scalar_type(to), scalar_from_double(to, 1));
		return LLVMBuildSelect(l->builder, v, one, LLVMConstNull(type), "");
	}
	if (scalar_is_float(from) && scalar_is_float(to)) return float_to_float(l, from, to, v);
	if (scalar_is_float(from)) return float_to_integer(l, from, to, v);
	if (scalar_is_float(to)) return integer_to_float(l, from, to, v);
	if (scalar_bits(to) <= scalar_bits(from)) return LLVMBuildTrunc(l->builder, v, type, "");
	return scalar_is_signed(from) ? LLVMBuildSExt(l->builder, v, type, "") : LLVMBuildZExt(l->builder, v, type, "");
}

/* Two e4m3 of one word become two f16 by one instruction. */
static void e4m3_pair_to_f16(lower *l, const LLVMValueRef *in, LLVMValueRef *out)
{
	LLVMBuilderRef m = l->builder;
	LLVMValueRef both = LLVMGetPoison(LLVMVectorType(l->i8, 2));
	for (unsigned i = 0; i < 2; i++) both = LLVMBuildInsertElement(m, both, in[i], lower_i32(l, i), "");
	both = to_bits(l, both, l->i16);
	both = lower_intrinsic(l, "llvm.nvvm.e4m3x2.to.f16x2.rn", LLVMVectorType(l->f16, 2), 1, &both);
	for (unsigned i = 0; i < 2; i++) out[i] = LLVMBuildExtractElement(m, both, lower_i32(l, i), "");
}

static void f32_pair_to_half(lower *l, scalar to, const LLVMValueRef *in, LLVMValueRef *out)
{
	LLVMBuilderRef m = l->builder;
	LLVMValueRef both = LLVMGetPoison(LLVMVectorType(l->f32, 2));
	for (unsigned i = 0; i < 2; i++) both = LLVMBuildInsertElement(m, both, in[i], lower_i32(l, i), "");
	both = LLVMBuildFPTrunc(m, both, LLVMVectorType(to == SCALAR_F16 ? l->f16 : l->bf16, 2), "");
	for (unsigned i = 0; i < 2; i++) out[i] = LLVMBuildExtractElement(m, both, lower_i32(l, i), "");
}

/* Two bytes in the lower half of a word, as numbers from 0 to 255: 128 is added to signed ones. */
static LLVMValueRef bytes_from_zero(lower *l, scalar from, const LLVMValueRef *in)
{
	LLVMBuilderRef m = l->builder;
	LLVMValueRef both = LLVMGetPoison(LLVMVectorType(l->i8, 2));
	for (unsigned i = 0; i < 2; i++) both = LLVMBuildInsertElement(m, both, in[i], lower_i32(l, i), "");
	LLVMValueRef word = LLVMBuildZExt(m, to_bits(l, both, l->i16), l->i32, "");
	return scalar_is_signed(from) ? LLVMBuildXor(m, word, lower_i32(l, 0x8080), "") : word;
}

/* A byte is put into the low mantissa bits of 1024 in f16, whose ulp is 1; 1024 subtracted again gives the byte,
 * exactly.  For bf16, which has no room for a byte, that is 2^23 in f32.  These are fewer instructions than conversions
 * of integers. */
static void byte_pair_to_half(lower *l, scalar from, scalar to, const LLVMValueRef *in, LLVMValueRef *out)
{
	assert(scalar_bits(from) == 8 && (to == SCALAR_F16 || to == SCALAR_BF16));
	LLVMBuilderRef m = l->builder;
	LLVMValueRef bytes = bytes_from_zero(l, from, in), wide[2];
	double zero = scalar_is_signed(from) ? 128 : 0;
	if (to == SCALAR_F16) {
		LLVMValueRef args[] = {bytes, lower_i32(l, 0x6400), lower_i32(l, 0x5150)};
		LLVMValueRef both = lower_intrinsic(l, "llvm.nvvm.prmt", l->i32, 3, args);
		LLVMValueRef base = LLVMConstReal(l->f16, 1024 + zero), bases[] = {base, base};
		both = to_bits(l, both, LLVMVectorType(l->f16, 2));
		both = LLVMBuildFSub(m, both, LLVMConstVector(bases, 2), "");
		for (unsigned i = 0; i < 2; i++) out[i] = LLVMBuildExtractElement(m, both, lower_i32(l, i), "");
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		LLVMValueRef args[] = {bytes, lower_i32(l, 0x4b000000), lower_i32(l, 0x7440 + i)};
		LLVMValueRef number = to_bits(l, lower_intrinsic(l, "llvm.nvvm.prmt", l->i32, 3, args), l->f32);
		wide[i] = LLVMBuildFSub(m, number, LLVMConstReal(l->f32, 8388608 + zero), "");
	}
	f32_pair_to_half(l, to, wide, out);
}

/* Neighbouring registers in pairs, where one instruction converts two. */
static bool convert_pair(lower *l, scalar from, scalar to, const LLVMValueRef *in, LLVMValueRef *out)
{
	if ((from == SCALAR_I8 || from == SCALAR_U8) && (to == SCALAR_F16 || to == SCALAR_BF16)) {
		byte_pair_to_half(l, from, to, in, out);
		return true;
	}
	if (!scalar_is_float(from) || from == SCALAR_F64 || from == to) return false;
	LLVMValueRef half[2] = {in[0], in[1]};
	if (from == SCALAR_F8E4M3 && target_can(l->pass->target, TARGET_CONVERTS_FP8) && scalar_is_float(to)) {
		e4m3_pair_to_f16(l, in, half);
		from = SCALAR_F16;
		if (!scalar_is_fp8(to)) {
			for (unsigned i = 0; i < 2; i++) out[i] = convert(l, from, to, half[i]);
			return true;
		}
	}
	if (scalar_is_fp8(to)) {
		f32_to_fp8(l, to, lower_to_f32(l, from, half[0]), lower_to_f32(l, from, half[1]), &out[0], &out[1]);
		return true;
	}
	if (from != SCALAR_F32 || (to != SCALAR_F16 && to != SCALAR_BF16)) return false;
	f32_pair_to_half(l, to, in, out);
	return true;
}

void lower_convert(lower *l, ir_op *o)
{
	assert(o->kind == IR_CONVERT);
	scalar from = ir_arg(o, 0)->type.elem, to = ir_result(o)->type.elem;
	tile in = lower_arg(l, o, 0), out = lower_new_tile(l, ir_result(o));
	for (uint32_t r = 0; r < out.n; r++) {
		if (r > 0 && in.at[r] == in.at[r - 1]) {
			out.at[r] = out.at[r - 1];
			continue;
		}
		bool pair = r % 2 == 0 && r + 1 < out.n && in.at[r] != in.at[r + 1];
		if (pair && convert_pair(l, from, to, &in.at[r], &out.at[r]))
			r++;
		else
			out.at[r] = convert(l, from, to, in.at[r]);
	}
	lower_set(l, ir_result(o), out);
}

void lower_bitcast(lower *l, ir_op *o)
{
	assert(o->kind == IR_BITCAST);
	LLVMTypeRef type = lower_type(l, ir_result(o)->type);
	bool from_pointer = ir_arg(o, 0)->type.pointer, to_pointer = ir_result(o)->type.pointer;
	tile in = lower_arg(l, o, 0), out = lower_new_tile(l, ir_result(o));
	for (uint32_t r = 0; r < out.n; r++) {
		LLVMValueRef v = in.at[r];
		if (from_pointer && !to_pointer)
			v = LLVMBuildPtrToInt(l->builder, v, type, "");
		else if (!from_pointer && to_pointer)
			v = LLVMBuildIntToPtr(l->builder, v, type, "");
		else if (LLVMTypeOf(v) != type)
			v = LLVMBuildBitCast(l->builder, v, type, "");
		out.at[r] = v;
	}
	lower_set(l, ir_result(o), out);
}
