/* Elementwise arithmetic, one element at a time.
 *
 * In: the registers of the operands (one layout).  Out: the registers of the result.
 * The one idea: an operation is a function of one element; the loop over registers is written once, and registers that
 * hold the same operands (splats, broadcasts) are computed once.
 *
 * Accuracy: f32 div, sqrt, rsqrt, exp2 and log2 are the device's fast forms (2 ulp for div; denormals are kept: no .ftz
 * form but of exp2 where flush_exp2.c says so), f64 is correctly rounded; 16-bit floats add, multiply and fuse natively
 * (one rounding) and do the rest in f32 with one rounding at the end. */
#include "lower.h"

#include <assert.h>

static LLVMValueRef unary_intrinsic(lower *l, const char *name, LLVMValueRef a)
{
	return lower_intrinsic(l, name, LLVMTypeOf(a), 1, &a);
}

static LLVMValueRef binary_intrinsic(lower *l, const char *name, LLVMValueRef a, LLVMValueRef b)
{
	return lower_intrinsic(l, name, LLVMTypeOf(a), 2, (LLVMValueRef[]){a, b});
}

/* "llvm.floor" and f32 make "llvm.floor.f32". */
static const char *mangled(lower *l, const char *name, scalar s)
{
	const char *suffix = s == SCALAR_F16 ? "f16" : s == SCALAR_BF16 ? "bf16" : s == SCALAR_F32 ? "f32" : "f64";
	return scalar_is_float(s) ? arena_printf(l->arena, "%s.%s", name, suffix)
				  : arena_printf(l->arena, "%s.i%u", name, scalar_bits(s));
}

/* ---- integers ---- */

/* C's / and %, with min / -1 wrapping and nothing undefined: LLVM may not see a divisor of 0 or -1. */
static LLVMValueRef guarded_divide(lower *l, bool remainder, scalar s, LLVMValueRef a, LLVMValueRef b)
{
	assert(scalar_is_integer(s));
	LLVMBuilderRef m = l->builder;
	LLVMTypeRef type = LLVMTypeOf(a);
	LLVMValueRef zero = LLVMConstNull(type), one = lower_const(l, type, 1);
	if (!scalar_is_signed(s)) {
		LLVMValueRef none = LLVMBuildICmp(m, LLVMIntEQ, b, zero, "");
		LLVMValueRef by = LLVMBuildSelect(m, none, one, b, "");
		return remainder ? LLVMBuildURem(m, a, by, "") : LLVMBuildUDiv(m, a, by, "");
	}
	/* b + 1 is 0 or 1 exactly for the two bad divisors. */
	LLVMValueRef above = LLVMBuildAdd(m, b, one, "");
	LLVMValueRef bad = LLVMBuildICmp(m, LLVMIntULE, above, one, "");
	LLVMValueRef by = LLVMBuildSelect(m, bad, one, b, "");
	if (remainder) return LLVMBuildSRem(m, a, by, ""); /* a % -1 is 0, as a % 1 */
	LLVMValueRef q = LLVMBuildSDiv(m, a, by, "");
	return LLVMBuildSelect(m, bad, LLVMBuildNeg(m, a, ""), q, "");
}

static LLVMValueRef integer_divide(lower *l, bool remainder, scalar s, LLVMValueRef a, LLVMValueRef b)
{
	return lower_checked(l, "divisor", guarded_divide(l, remainder, s, a, b), b, scalar_is_signed(s), 0);
}

static LLVMValueRef shift(lower *l, ir_kind kind, scalar s, LLVMValueRef a, LLVMValueRef count)
{
	assert((kind == IR_SHL || kind == IR_SHR) && scalar_is_integer(s));
	LLVMBuilderRef m = l->builder;
	LLVMTypeRef type = LLVMTypeOf(a);
	unsigned width = scalar_bits(s);
	if (kind == IR_SHR && scalar_is_signed(s)) { /* too far: as far as it goes gives the sign */
		LLVMValueRef most = lower_const(l, type, width - 1);
		LLVMValueRef within = LLVMBuildICmp(m, LLVMIntULT, count, most, "");
		return LLVMBuildAShr(m, a, LLVMBuildSelect(m, within, count, most, ""), "");
	}
	LLVMValueRef within = LLVMBuildICmp(m, LLVMIntULT, count, lower_const(l, type, width), "");
	/* LLVM 22 takes the comparison away because PTX shifts clamp, but it hands them the low half of a 64-bit count
	 * only: masking the count keeps both. */
	if (width == 64) count = LLVMBuildAnd(m, count, lower_const(l, type, width - 1), "");
	LLVMValueRef v = kind == IR_SHL ? LLVMBuildShl(m, a, count, "") : LLVMBuildLShr(m, a, count, "");
	return LLVMBuildSelect(m, within, v, LLVMConstNull(type), "");
}

static LLVMValueRef umulhi(lower *l, scalar s, LLVMValueRef a, LLVMValueRef b)
{
	switch (s) {
	case SCALAR_I32: return binary_intrinsic(l, "llvm.nvvm.mulhi.i", a, b);
	case SCALAR_U32: return binary_intrinsic(l, "llvm.nvvm.mulhi.ui", a, b);
	case SCALAR_I64: return binary_intrinsic(l, "llvm.nvvm.mulhi.ll", a, b);
	case SCALAR_U64: return binary_intrinsic(l, "llvm.nvvm.mulhi.ull", a, b);
	default: return NULL;
	}
}

static LLVMValueRef integer_binary(lower *l, ir_kind kind, scalar s, LLVMValueRef a, LLVMValueRef b)
{
	assert(scalar_is_integer(s));
	LLVMBuilderRef m = l->builder;
	bool is_signed = scalar_is_signed(s);
	switch (kind) {
	case IR_ADD: return LLVMBuildAdd(m, a, b, "");
	case IR_SUB: return LLVMBuildSub(m, a, b, "");
	case IR_MUL: return LLVMBuildMul(m, a, b, "");
	case IR_DIV: return integer_divide(l, false, s, a, b);
	case IR_REM: return integer_divide(l, true, s, a, b);
	case IR_MAX: return binary_intrinsic(l, mangled(l, is_signed ? "llvm.smax" : "llvm.umax", s), a, b);
	case IR_MIN: return binary_intrinsic(l, mangled(l, is_signed ? "llvm.smin" : "llvm.umin", s), a, b);
	case IR_UMULHI: return umulhi(l, s, a, b);
	case IR_AND: return LLVMBuildAnd(m, a, b, "");
	case IR_OR: return LLVMBuildOr(m, a, b, "");
	case IR_XOR: return LLVMBuildXor(m, a, b, "");
	case IR_SHL:
	case IR_SHR: return shift(l, kind, s, a, b);
	default: return NULL;
	}
}

static LLVMValueRef bool_binary(lower *l, ir_kind kind, LLVMValueRef a, LLVMValueRef b)
{
	switch (kind) {
	case IR_MAX:
	case IR_OR: return LLVMBuildOr(l->builder, a, b, "");
	case IR_MIN:
	case IR_MUL:
	case IR_AND: return LLVMBuildAnd(l->builder, a, b, "");
	case IR_XOR: return LLVMBuildXor(l->builder, a, b, "");
	default: return NULL;
	}
}

/* ---- floats ---- */

static LLVMValueRef f32_divide(lower *l, LLVMValueRef a, LLVMValueRef b)
{
	return binary_intrinsic(l, "llvm.nvvm.div.full", a, b);
}

static LLVMValueRef float_binary(lower *l, ir_kind kind, scalar s, LLVMValueRef a, LLVMValueRef b)
{
	assert(scalar_is_float(s) && !scalar_is_fp8(s));
	LLVMBuilderRef m = l->builder;
	bool half = s == SCALAR_F16 || s == SCALAR_BF16;
	switch (kind) {
	case IR_ADD: return lower_contract(l, LLVMBuildFAdd(m, a, b, ""));
	case IR_SUB: return lower_contract(l, LLVMBuildFSub(m, a, b, ""));
	case IR_MUL: return lower_contract(l, LLVMBuildFMul(m, a, b, ""));
	case IR_MAX: return binary_intrinsic(l, mangled(l, "llvm.maximumnum", s), a, b);
	case IR_MIN: return binary_intrinsic(l, mangled(l, "llvm.minimumnum", s), a, b);
	case IR_MAX_NAN: return binary_intrinsic(l, mangled(l, "llvm.maximum", s), a, b);
	case IR_MIN_NAN: return binary_intrinsic(l, mangled(l, "llvm.minimum", s), a, b);
	case IR_DIV:
		if (half) return lower_from_f32(l, s, f32_divide(l, lower_to_f32(l, s, a), lower_to_f32(l, s, b)));
		if (s == SCALAR_F32) return f32_divide(l, a, b);
		return LLVMBuildFDiv(m, a, b, "");
	case IR_DIV_RN:
		if (half) /* 24 >= 2 * 11 + 2 bits: rounding a correctly rounded f32 quotient again is exact */
			return lower_from_f32(l, s, LLVMBuildFDiv(m, lower_to_f32(l, s, a), lower_to_f32(l, s, b), ""));
		return LLVMBuildFDiv(m, a, b, "");
	default: return NULL;
	}
}

static LLVMValueRef f32_math(lower *l, const ir_op *o, LLVMValueRef a)
{
	LLVMTypeRef f32 = l->f32;
	switch (o->kind) {
	case IR_EXP2:
		return unary_intrinsic(
			l, ir_get_flush(o) ? "llvm.nvvm.ex2.approx.ftz.f32" : "llvm.nvvm.ex2.approx.f32", a);
	case IR_LOG2: return unary_intrinsic(l, "llvm.nvvm.lg2.approx.f", a);
	case IR_SQRT: return unary_intrinsic(l, "llvm.nvvm.sqrt.approx.f", a);
	case IR_SQRT_RN: return unary_intrinsic(l, "llvm.sqrt.f32", a);
	case IR_RSQRT: return unary_intrinsic(l, "llvm.nvvm.rsqrt.approx.f", a);
	case IR_EXP: /* arrives only when nobody has expanded it; good to 2 ulp + |x| * 2^-24 relative */
		a = LLVMBuildFMul(l->builder, a, LLVMConstReal(f32, 1.4426950408889634), "");
		return unary_intrinsic(l, "llvm.nvvm.ex2.approx.f32", a);
	case IR_LOG:
		a = unary_intrinsic(l, "llvm.nvvm.lg2.approx.f", a);
		return LLVMBuildFMul(l->builder, a, LLVMConstReal(f32, 0.6931471805599453), "");
	default: return NULL;
	}
}

static LLVMValueRef f64_math(lower *l, ir_kind kind, LLVMValueRef a)
{
	switch (kind) {
	case IR_SQRT:
	case IR_SQRT_RN: return unary_intrinsic(l, "llvm.sqrt.f64", a);
	case IR_RSQRT:
		return LLVMBuildFDiv(l->builder, LLVMConstReal(l->f64, 1), unary_intrinsic(l, "llvm.sqrt.f64", a), "");
	default: return NULL;
	}
}

static LLVMValueRef rounding(lower *l, ir_kind kind, scalar s, LLVMValueRef a)
{
	assert((kind == IR_FLOOR || kind == IR_CEIL || kind == IR_ROUND) && scalar_is_float(s));
	const char *name = kind == IR_FLOOR ? "llvm.floor" : kind == IR_CEIL ? "llvm.ceil" : "llvm.roundeven";
	if (s == SCALAR_BF16) /* exact in f32: whole numbers of a bf16 are bf16 again */
		return lower_from_f32(l, s, unary_intrinsic(l, mangled(l, name, SCALAR_F32), lower_to_f32(l, s, a)));
	return unary_intrinsic(l, mangled(l, name, s), a);
}

static LLVMValueRef float_unary(lower *l, const ir_op *o, scalar s, LLVMValueRef a)
{
	assert(scalar_is_float(s));
	ir_kind kind = o->kind;
	switch (kind) {
	case IR_NEG: return LLVMBuildFNeg(l->builder, a, "");
	case IR_ABS: return unary_intrinsic(l, mangled(l, "llvm.fabs", s), a);
	case IR_FLOOR:
	case IR_CEIL:
	case IR_ROUND: return rounding(l, kind, s, a);
	default: break;
	}
	if (s == SCALAR_F64) return f64_math(l, kind, a);
	if (s == SCALAR_F32) return f32_math(l, o, a);
	LLVMValueRef v = f32_math(l, o, lower_to_f32(l, s, a));
	return v ? lower_from_f32(l, s, v) : NULL;
}

/* By way of 32 bits, out of LLVM's sight: of -32768 `abs.s16` makes 32768 in a wider register, and ptxas 13 shifts that
 * right as it is. */
static LLVMValueRef abs_i16(lower *l, LLVMValueRef a)
{
	return lower_asm(l, "{ .reg .s32 t; cvt.s32.s16 t, $1; abs.s32 t, t; cvt.u16.u32 $0, t; }", "=h,h", l->i16, 1,
		&a, LOWER_ASM_PURE);
}

static LLVMValueRef integer_unary(lower *l, ir_kind kind, scalar s, LLVMValueRef a)
{
	assert(!scalar_is_float(s));
	switch (kind) {
	case IR_NOT: return LLVMBuildNot(l->builder, a, "");
	case IR_NEG: return LLVMBuildNeg(l->builder, a, "");
	case IR_POPCOUNT: return unary_intrinsic(l, mangled(l, "llvm.ctpop", s), a);
	case IR_BREV: return unary_intrinsic(l, mangled(l, "llvm.bitreverse", s), a);
	case IR_CLZ:
		return lower_intrinsic(
			l, mangled(l, "llvm.ctlz", s), LLVMTypeOf(a), 2, (LLVMValueRef[]){a, lower_const(l, l->i1, 0)});
	case IR_ABS:
		if (!scalar_is_signed(s)) return a;
		if (s == SCALAR_I16) return abs_i16(l, a);
		return lower_intrinsic(
			l, mangled(l, "llvm.abs", s), LLVMTypeOf(a), 2, (LLVMValueRef[]){a, lower_const(l, l->i1, 0)});
	default: return NULL;
	}
}

static LLVMValueRef fused(lower *l, scalar s, LLVMValueRef *v)
{
	return lower_intrinsic(l, mangled(l, "llvm.fma", s), LLVMTypeOf(v[0]), 3, v);
}

/* ---- comparisons ---- */

static LLVMValueRef compare(lower *l, ir_kind kind, ir_type t, LLVMValueRef a, LLVMValueRef b)
{
	assert(kind >= IR_EQ && kind <= IR_GE);
	static const LLVMRealPredicate of_floats[] = {
		LLVMRealOEQ, LLVMRealUNE, LLVMRealOLT, LLVMRealOLE, LLVMRealOGT, LLVMRealOGE};
	static const LLVMIntPredicate of_signed[] = {
		LLVMIntEQ, LLVMIntNE, LLVMIntSLT, LLVMIntSLE, LLVMIntSGT, LLVMIntSGE};
	static const LLVMIntPredicate of_unsigned[] = {
		LLVMIntEQ, LLVMIntNE, LLVMIntULT, LLVMIntULE, LLVMIntUGT, LLVMIntUGE};
	unsigned which = (unsigned)(kind - IR_EQ); /* ORDER OP */
	if (t.pointer) return LLVMBuildICmp(l->builder, of_unsigned[which], a, b, "");
	if (scalar_is_fp8(t.elem)) a = lower_to_f32(l, t.elem, a), b = lower_to_f32(l, t.elem, b);
	if (scalar_is_float(t.elem)) return LLVMBuildFCmp(l->builder, of_floats[which], a, b, "");
	bool is_signed = scalar_is_signed(t.elem);
	return LLVMBuildICmp(l->builder, is_signed ? of_signed[which] : of_unsigned[which], a, b, "");
}

static LLVMValueRef pointer_add(lower *l, ir_type pointer, ir_type offset, LLVMValueRef p, LLVMValueRef by)
{
	assert(pointer.pointer && scalar_is_integer(offset.elem));
	if (scalar_bits(offset.elem) < 64)
		by = scalar_is_signed(offset.elem) ? LLVMBuildSExt(l->builder, by, l->i64, "")
						   : LLVMBuildZExt(l->builder, by, l->i64, "");
	LLVMTypeRef element = LLVMIntTypeInContext(l->context, 8 * scalar_bytes(pointer.elem));
	return LLVMBuildGEP2(l->builder, element, p, &by, 1, "");
}

/* ---- both halves of a product ---- */

/* The mul beside a umulhi of the same 32-bit operands, or the reverse: one wide multiplication gives both. */
static ir_op *other_half(const ir_op *o)
{
	assert(o->kind == IR_MUL || o->kind == IR_UMULHI);
	ir_type t = ir_arg(o, 0)->type;
	ir_kind wanted = o->kind == IR_MUL ? IR_UMULHI : IR_MUL;
	const ir_op *parent = o->block->parent;
	bool reduces =
		parent && (parent->kind == IR_REDUCE || parent->kind == IR_SCAN); /* lowered once a combination */
	if (t.pointer || (t.elem != SCALAR_U32 && t.elem != SCALAR_I32) || reduces) return NULL;
	for (ir_use *u = ir_arg(o, 0)->uses; u; u = u->next) {
		ir_op *p = u->user;
		if (p->kind != wanted || p->block != o->block) continue;
		const ir_value *a = ir_arg(p, 0), *b = ir_arg(p, 1);
		if ((a == ir_arg(o, 0) && b == ir_arg(o, 1)) || (a == ir_arg(o, 1) && b == ir_arg(o, 0))) return p;
	}
	return NULL;
}

/* In asm, because LLVM would narrow or widen the multiplication, and ptxas fuses two halves only where they are
 * neighbours. */
static void wide_product(
	lower *l, bool is_signed, LLVMValueRef a, LLVMValueRef b, LLVMValueRef *low, LLVMValueRef *high)
{
	assert(LLVMTypeOf(a) == l->i32 && LLVMTypeOf(b) == l->i32);
	LLVMTypeRef halves[2] = {l->i32, l->i32};
	LLVMTypeRef pair = LLVMStructTypeInContext(l->context, halves, 2, false);
	const char *form = is_signed ? "{ .reg .b64 t; mul.wide.s32 t, $2, $3; mov.b64 {$0, $1}, t; }"
				     : "{ .reg .b64 t; mul.wide.u32 t, $2, $3; mov.b64 {$0, $1}, t; }";
	LLVMValueRef both = lower_asm(l, form, "=r,=r,r,r", pair, 2, (LLVMValueRef[]){a, b}, LOWER_ASM_PURE);
	*low = LLVMBuildExtractValue(l->builder, both, 0, "");
	*high = LLVMBuildExtractValue(l->builder, both, 1, "");
}

static void both_halves(lower *l, ir_op *o, ir_op *partner)
{
	assert(partner != o && partner->nargs == 2);
	tile low = lower_new_tile(l, ir_result(o)), high = lower_new_tile(l, ir_result(o));
	tile a = lower_arg(l, o, 0), b = lower_arg(l, o, 1);
	bool is_signed = scalar_is_signed(ir_arg(o, 0)->type.elem);
	for (uint32_t r = 0; r < low.n; r++) {
		if (r && a.at[r] == a.at[r - 1] && b.at[r] == b.at[r - 1])
			low.at[r] = low.at[r - 1], high.at[r] = high.at[r - 1];
		else
			wide_product(l, is_signed, a.at[r], b.at[r], &low.at[r], &high.at[r]);
	}
	lower_set(l, ir_result(o), o->kind == IR_MUL ? low : high);
	lower_set(l, ir_result(partner), o->kind == IR_MUL ? high : low);
}

/* ---- one element, all registers ---- */

LLVMValueRef lower_binary(lower *l, ir_kind kind, scalar s, LLVMValueRef a, LLVMValueRef b)
{
	if (s == SCALAR_BOOL) return bool_binary(l, kind, a, b);
	return scalar_is_float(s) ? float_binary(l, kind, s, a, b) : integer_binary(l, kind, s, a, b);
}

static LLVMValueRef one_element(lower *l, const ir_op *o, LLVMValueRef *v)
{
	ir_type t = ir_arg(o, 0)->type;
	scalar s = t.elem;
	switch (o->kind) {
	case IR_EQ:
	case IR_NE:
	case IR_LT:
	case IR_LE:
	case IR_GT:
	case IR_GE: return compare(l, o->kind, t, v[0], v[1]);
	case IR_SELECT: return LLVMBuildSelect(l->builder, v[0], v[1], v[2], "");
	case IR_PTR_ADD: return pointer_add(l, t, ir_arg(o, 1)->type, v[0], v[1]);
	case IR_FMA: return fused(l, s, v);
	default: break;
	}
	if (t.pointer || scalar_is_fp8(s)) return NULL;
	if (o->nargs == 2) return lower_binary(l, o->kind, s, v[0], v[1]);
	return scalar_is_float(s) ? float_unary(l, o, s, v[0]) : integer_unary(l, o->kind, s, v[0]);
}

void lower_elementwise(lower *l, ir_op *o)
{
	assert(ir_has(o, IR_ELEMENTWISE) && o->nargs <= 3);
	tile out = lower_new_tile(l, ir_result(o)), args[3]; /* none takes more */
	if (o->kind == IR_MUL || o->kind == IR_UMULHI) {
		ir_op *partner = other_half(o);
		if (partner && l->values[ir_result(o)->id].at) return; /* came with its other half */
		if (partner) {
			both_halves(l, o, partner);
			return;
		}
	}
	for (unsigned i = 0; i < o->nargs; i++) {
		args[i] = lower_arg(l, o, i);
		if (args[i].n != out.n) {
			lower_fail(l, o, "the operands of '%s' have different layouts", ir_info(o)->name);
			return;
		}
	}
	if (lower_rescale(l, o, args, out)) {
		lower_set(l, ir_result(o), out);
		return;
	}
	for (uint32_t r = 0; r < out.n; r++) {
		LLVMValueRef v[3];
		bool same = r > 0;
		for (unsigned i = 0; i < o->nargs; i++) {
			v[i] = args[i].at[r];
			same = same && v[i] == args[i].at[r - 1];
		}
		out.at[r] = same ? out.at[r - 1] : one_element(l, o, v);
		if (!out.at[r]) {
			lower_fail(l, o, "'%s' of %s has no lowering", ir_info(o)->name,
				ir_type_name(l->arena, ir_arg(o, 0)->type));
			return;
		}
	}
	lower_set(l, ir_result(o), out);
}
