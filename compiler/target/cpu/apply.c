/* One elementwise operation on element values: what ops.def says of it, as LLVM instructions.
 *
 * In: an operation and its operands in register form.  Out: the result in register form.
 * f16 and bf16 arithmetic is done in f32 and rounded once, which is the correctly rounded result for one operation;
 * a fused multiply-add, where it is not, goes through f64 rounded to odd.  Nothing traps. */
#include "lower.h"

#include <assert.h>
#include <string.h>

static LLVMValueRef flag(cpu_emitter *e, bool v)
{
	return LLVMConstInt(e->i1, v, false);
}

/* ---- integers ---- */

static LLVMValueRef divide(cpu_emitter *e, bool remainder, scalar s, LLVMValueRef x, LLVMValueRef y)
{
	assert(scalar_is_integer(s));
	LLVMBuilderRef b = e->builder;
	LLVMValueRef zero = cpu_int(e, s, 0), one = cpu_int(e, s, 1);
	LLVMValueRef bad = LLVMBuildICmp(b, LLVMIntEQ, y, zero, "");
	if (scalar_is_signed(s)) {
		LLVMValueRef least = cpu_int(e, s, INT64_MIN >> (64 - scalar_bits(s)));
		LLVMValueRef wraps = LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntEQ, x, least, ""),
			LLVMBuildICmp(b, LLVMIntEQ, y, cpu_int(e, s, -1), ""), "");
		LLVMValueRef safe = cpu_select(e, LLVMBuildOr(b, bad, wraps, ""), one, y);
		if (remainder) return LLVMBuildSRem(b, x, safe, "");
		return cpu_select(e, bad, zero, LLVMBuildSDiv(b, x, safe, ""));
	}
	LLVMValueRef safe = cpu_select(e, bad, one, y);
	if (remainder) return LLVMBuildURem(b, x, safe, "");
	return cpu_select(e, bad, zero, LLVMBuildUDiv(b, x, safe, ""));
}

static LLVMValueRef shift(cpu_emitter *e, ir_kind kind, scalar s, LLVMValueRef x, LLVMValueRef n)
{
	assert((kind == IR_SHL || kind == IR_SHR) && scalar_is_integer(s));
	LLVMBuilderRef b = e->builder;
	LLVMValueRef fits = LLVMBuildICmp(b, LLVMIntULT, n, cpu_int(e, s, scalar_bits(s)), "");
	if (kind == IR_SHL) return cpu_select(e, fits, LLVMBuildShl(b, x, n, ""), cpu_int(e, s, 0));
	if (!scalar_is_signed(s)) return cpu_select(e, fits, LLVMBuildLShr(b, x, n, ""), cpu_int(e, s, 0));
	return LLVMBuildAShr(b, x, cpu_select(e, fits, n, cpu_int(e, s, scalar_bits(s) - 1)), "");
}

static LLVMValueRef high_product(cpu_emitter *e, scalar s, LLVMValueRef x, LLVMValueRef y)
{
	assert(scalar_bits(s) >= 32 && scalar_is_integer(s));
	LLVMBuilderRef b = e->builder;
	LLVMTypeRef narrow = cpu_type(e, ir_scalar_type(s)),
		    wide = LLVMIntTypeInContext(e->context, 2 * scalar_bits(s));
	LLVMValueRef p = scalar_is_signed(s)
				 ? LLVMBuildMul(b, LLVMBuildSExt(b, x, wide, ""), LLVMBuildSExt(b, y, wide, ""), "")
				 : LLVMBuildMul(b, LLVMBuildZExt(b, x, wide, ""), LLVMBuildZExt(b, y, wide, ""), "");
	return LLVMBuildTrunc(b, LLVMBuildLShr(b, p, LLVMConstInt(wide, scalar_bits(s), false), ""), narrow, "");
}

static LLVMValueRef integer_op(cpu_emitter *e, ir_kind kind, scalar s, LLVMValueRef *a)
{
	assert(!scalar_is_float(s));
	LLVMBuilderRef b = e->builder;
	switch (kind) {
	case IR_ADD: return LLVMBuildAdd(b, a[0], a[1], "");
	case IR_SUB: return LLVMBuildSub(b, a[0], a[1], "");
	case IR_MUL: return LLVMBuildMul(b, a[0], a[1], "");
	case IR_DIV:
	case IR_REM: return divide(e, kind == IR_REM, s, a[0], a[1]);
	case IR_NEG: return LLVMBuildNeg(b, a[0], "");
	case IR_UMULHI: return high_product(e, s, a[0], a[1]);
	case IR_POPCOUNT: return cpu_intrinsic(e, "llvm.ctpop", LLVMTypeOf(a[0]), 1, a);
	case IR_BREV: return cpu_intrinsic(e, "llvm.bitreverse", LLVMTypeOf(a[0]), 1, a);
	case IR_CLZ: return cpu_intrinsic(e, "llvm.ctlz", LLVMTypeOf(a[0]), 2, (LLVMValueRef[]){a[0], flag(e, false)});
	case IR_SHL:
	case IR_SHR: return shift(e, kind, s, a[0], a[1]);
	case IR_ABS:
		if (!scalar_is_signed(s)) return a[0];
		return cpu_intrinsic(e, "llvm.abs", LLVMTypeOf(a[0]), 2, (LLVMValueRef[]){a[0], flag(e, false)});
	default: return NULL; /* not reached: verify_types.c has refused it */
	}
}

/* ---- floats ---- */

/* The larger or the smaller of two numbers, a nan losing against any number.  Not llvm.maximumnum: where AVX-512 DQ is
 * at hand LLVM 22 lowers its scalar form, one operand known to be a number, so that the other's nan wins. */
static LLVMValueRef number_max_min(cpu_emitter *e, bool max, LLVMValueRef x, LLVMValueRef y)
{
	LLVMValueRef args[] = {x, y};
	LLVMValueRef best = cpu_intrinsic(e, max ? "llvm.maximum" : "llvm.minimum", LLVMTypeOf(x), 2, args);
	LLVMValueRef y_is_nan = LLVMBuildFCmp(e->builder, LLVMRealUNO, y, y, "");
	LLVMValueRef x_is_nan = LLVMBuildFCmp(e->builder, LLVMRealUNO, x, x, "");
	return LLVMBuildSelect(e->builder, x_is_nan, y, LLVMBuildSelect(e->builder, y_is_nan, x, best, ""), "");
}

LLVMValueRef cpu_max_min(cpu_emitter *e, scalar s, bool max, LLVMValueRef x, LLVMValueRef y)
{
	if (s == SCALAR_BOOL) return max ? LLVMBuildOr(e->builder, x, y, "") : LLVMBuildAnd(e->builder, x, y, "");
	if (scalar_is_float(s)) return cpu_narrow(e, s, number_max_min(e, max, cpu_widen(e, s, x), cpu_widen(e, s, y)));
	LLVMValueRef args[] = {x, y};
	const char *name = scalar_is_signed(s) ? (max ? "llvm.smax" : "llvm.smin") : (max ? "llvm.umax" : "llvm.umin");
	return cpu_intrinsic(e, name, LLVMTypeOf(x), 2, args);
}

/* In line where math.c has it, else a call of libm. */
static LLVMValueRef elementary(cpu_emitter *e, ir_kind kind, LLVMValueRef *args)
{
	assert(ir_ops[kind].args == 1 || ir_ops[kind].args == 2);
	const char *name = ir_ops[kind].name;
	unsigned n = ir_ops[kind].args;
	LLVMValueRef done = LLVMTypeOf(args[0]) == e->f32 ? cpu_math(e, kind, args[0]) : NULL;
	if (done) return done;
	LLVMTypeRef type = LLVMTypeOf(args[0]), params[] = {type, type};
	LLVMTypeRef signature = LLVMFunctionType(type, params, n, false);
	/* the prefix, which no kernel's name can have, is dropped by the loader */
	const char *full = arena_printf(e->arena, "blk.%s%s", name, type == e->f64 ? "" : "f");
	LLVMValueRef f = LLVMGetNamedFunction(e->module, full);
	if (!f) {
		static const char *const facts[] = {"nounwind", "willreturn", "memory"};
		f = LLVMAddFunction(e->module, full, signature);
		for (unsigned i = 0; i < 3; i++) {
			unsigned fact = LLVMGetEnumAttributeKindForName(facts[i], strlen(facts[i]));
			LLVMAddAttributeAtIndex(
				f, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(e->context, fact, 0));
		}
	}
	return LLVMBuildCall2(e->builder, signature, f, args, n, "");
}

/* a * b is exact in f64 for 16-bit floats; the sum's error, by Knuth's two-sum, tells how to round it to odd. */
static LLVMValueRef narrow_fma(cpu_emitter *e, scalar s, LLVMValueRef *a)
{
	assert(scalar_bits(s) < 32);
	LLVMBuilderRef b = e->builder;
	LLVMValueRef w[3];
	for (unsigned i = 0; i < 3; i++) w[i] = LLVMBuildFPExt(b, a[i], e->f64, "");
	LLVMValueRef p = LLVMBuildFMul(b, w[0], w[1], ""), sum = LLVMBuildFAdd(b, p, w[2], "");
	LLVMValueRef bb = LLVMBuildFSub(b, sum, p, ""), back = LLVMBuildFSub(b, sum, bb, "");
	LLVMValueRef error = LLVMBuildFAdd(b, LLVMBuildFSub(b, p, back, ""), LLVMBuildFSub(b, w[2], bb, ""), "");
	LLVMValueRef zero = LLVMConstNull(e->f64), bits = LLVMBuildBitCast(b, sum, e->i64, "");
	LLVMValueRef even =
		LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildAnd(b, bits, cpu_index(e, 1), ""), cpu_index(e, 0), "");
	LLVMValueRef fix = LLVMBuildAnd(b, even, LLVMBuildFCmp(b, LLVMRealONE, error, zero, ""), "");
	LLVMValueRef outward = LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildFCmp(b, LLVMRealOGT, error, zero, ""),
		LLVMBuildFCmp(b, LLVMRealOGT, sum, zero, ""), "");
	LLVMValueRef step = cpu_select(e, outward, cpu_index(e, 1), cpu_index(e, UINT64_MAX));
	bits = LLVMBuildAdd(b, bits, cpu_select(e, fix, step, cpu_index(e, 0)), "");
	return cpu_narrow_f64(e, s, LLVMBuildBitCast(b, bits, e->f64, ""));
}

static LLVMValueRef reciprocal(cpu_emitter *e, LLVMValueRef v)
{
	return LLVMBuildFDiv(e->builder, LLVMConstReal(LLVMTypeOf(v), 1), v, "");
}

/* On f32 or f64 operands. */
static LLVMValueRef wide_float_op(cpu_emitter *e, ir_kind kind, LLVMValueRef *a)
{
	LLVMBuilderRef b = e->builder;
	LLVMTypeRef t = LLVMTypeOf(a[0]);
	switch (kind) {
	case IR_ADD: return cpu_contract(LLVMBuildFAdd(b, a[0], a[1], ""));
	case IR_SUB: return cpu_contract(LLVMBuildFSub(b, a[0], a[1], ""));
	case IR_MUL: return cpu_contract(LLVMBuildFMul(b, a[0], a[1], ""));
	case IR_DIV:
	case IR_DIV_RN: return LLVMBuildFDiv(b, a[0], a[1], "");
	case IR_FMA: return cpu_intrinsic(e, "llvm.fma", t, 3, a);
	case IR_MAX_NAN: return cpu_intrinsic(e, "llvm.maximum", t, 2, a);
	case IR_MIN_NAN: return cpu_intrinsic(e, "llvm.minimum", t, 2, a);
	case IR_SQRT:
	case IR_SQRT_RN: return cpu_intrinsic(e, "llvm.sqrt", t, 1, a);
	case IR_RSQRT: return reciprocal(e, cpu_intrinsic(e, "llvm.sqrt", t, 1, a));
	case IR_FLOOR: return cpu_intrinsic(e, "llvm.floor", t, 1, a);
	case IR_CEIL: return cpu_intrinsic(e, "llvm.ceil", t, 1, a);
	case IR_ROUND: return cpu_intrinsic(e, "llvm.roundeven", t, 1, a);
	default: return elementary(e, kind, a);
	}
}

static LLVMValueRef float_op(cpu_emitter *e, ir_kind kind, scalar s, LLVMValueRef *a)
{
	assert(scalar_is_float(s));
	LLVMBuilderRef b = e->builder;
	if (s == SCALAR_F32 || s == SCALAR_F64) {
		if (kind == IR_NEG) return LLVMBuildFNeg(b, a[0], "");
		if (kind == IR_ABS) return cpu_intrinsic(e, "llvm.fabs", LLVMTypeOf(a[0]), 1, a);
		return wide_float_op(e, kind, a);
	}
	LLVMValueRef sign = cpu_int(e, s, INT64_C(1) << (scalar_bits(s) - 1));
	if (kind == IR_NEG) return LLVMBuildXor(b, a[0], sign, "");
	if (kind == IR_ABS) return LLVMBuildAnd(b, a[0], LLVMConstNot(sign), "");
	LLVMValueRef w[3] = {NULL};
	for (unsigned i = 0; i < 3 && a[i]; i++) w[i] = cpu_widen(e, s, a[i]);
	if (kind == IR_FMA) return narrow_fma(e, s, w);
	return cpu_narrow(e, s, wide_float_op(e, kind, w));
}

static LLVMValueRef compare(cpu_emitter *e, ir_kind kind, ir_type t, LLVMValueRef x, LLVMValueRef y)
{
	assert(kind >= IR_EQ && kind <= IR_GE);
	static const struct {
		LLVMRealPredicate real;
		LLVMIntPredicate with_sign, without;
	} rows[] = {/* ORDER IR_EQ .. IR_GE */
		{LLVMRealOEQ, LLVMIntEQ, LLVMIntEQ}, {LLVMRealUNE, LLVMIntNE, LLVMIntNE},
		{LLVMRealOLT, LLVMIntSLT, LLVMIntULT}, {LLVMRealOLE, LLVMIntSLE, LLVMIntULE},
		{LLVMRealOGT, LLVMIntSGT, LLVMIntUGT}, {LLVMRealOGE, LLVMIntSGE, LLVMIntUGE}};
	unsigned i = (unsigned)(kind - IR_EQ);
	if (t.pointer) return LLVMBuildICmp(e->builder, rows[i].without, x, y, "");
	if (scalar_is_float(t.elem))
		return LLVMBuildFCmp(e->builder, rows[i].real, cpu_widen(e, t.elem, x), cpu_widen(e, t.elem, y), "");
	LLVMIntPredicate p = scalar_is_signed(t.elem) ? rows[i].with_sign : rows[i].without;
	return LLVMBuildICmp(e->builder, p, x, y, "");
}

LLVMValueRef cpu_extend(cpu_emitter *e, scalar s, LLVMValueRef v)
{
	assert(scalar_is_integer(s));
	if (scalar_bytes(s) == 8) return v;
	return scalar_is_signed(s) ? LLVMBuildSExt(e->builder, v, e->i64, "")
				   : LLVMBuildZExt(e->builder, v, e->i64, "");
}

LLVMValueRef cpu_offset(cpu_emitter *e, scalar pointee, LLVMValueRef pointer, LLVMValueRef offset)
{
	LLVMTypeRef element = pointee == SCALAR_BOOL ? e->i8 : cpu_type(e, ir_scalar_type(pointee));
	return LLVMBuildGEP2(e->builder, element, pointer, &offset, 1, "");
}

LLVMValueRef cpu_apply_alike(cpu_emitter *e, ir_kind kind, scalar s, LLVMValueRef *a)
{
	switch (kind) {
	case IR_AND: return LLVMBuildAnd(e->builder, a[0], a[1], "");
	case IR_OR: return LLVMBuildOr(e->builder, a[0], a[1], "");
	case IR_XOR: return LLVMBuildXor(e->builder, a[0], a[1], "");
	case IR_NOT: return LLVMBuildNot(e->builder, a[0], "");
	case IR_MAX:
	case IR_MIN: return cpu_max_min(e, s, kind == IR_MAX, a[0], a[1]);
	default: return scalar_is_float(s) ? float_op(e, kind, s, a) : integer_op(e, kind, s, a);
	}
}

LLVMValueRef cpu_apply(cpu_emitter *e, const ir_op *o, LLVMValueRef *a)
{
	assert(ir_has(o, IR_ELEMENTWISE));
	ir_type t = ir_arg(o, 0)->type;
	scalar s = t.elem;
	switch (o->kind) {
	case IR_EQ:
	case IR_NE:
	case IR_LT:
	case IR_LE:
	case IR_GT:
	case IR_GE: return compare(e, o->kind, t, a[0], a[1]);
	case IR_SELECT: return cpu_select(e, a[0], a[1], a[2]);
	case IR_CONVERT: return cpu_convert(e, o->results[0]->type.elem, s, a[0]);
	case IR_BITCAST: return cpu_bits(e, cpu_type(e, ir_element(o->results[0]->type)), a[0]);
	case IR_PTR_ADD: return cpu_offset(e, s, a[0], cpu_extend(e, ir_arg(o, 1)->type.elem, a[1]));
	default: return cpu_apply_alike(e, o->kind, s, a);
	}
}
