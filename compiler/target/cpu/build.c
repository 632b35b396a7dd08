/* What all files of the CPU's lowering write LLVM with: types, numbers, blocks, places, calls of intrinsics.
 *
 * In: an emitter.  Out: values at the builder's place.  The one idea: nothing here knows an operation of the tile
 * IR. */
#include "lower.h"

#include <assert.h>
#include <string.h>

LLVMBasicBlockRef cpu_block(cpu_emitter *e, const char *name)
{
	return LLVMAppendBasicBlockInContext(e->context, e->program, name);
}

/* What fails ends its program: its code goes behind all else, also so that a debugger, which takes a line's first place
 * for the line, stops where the line is run. */
void cpu_fail_unless(cpu_emitter *e, LLVMValueRef holds, LLVMBasicBlockRef fine, LLVMBasicBlockRef failed)
{
	const char *weights = "branch_weights";
	LLVMMetadataRef part[3] = {LLVMMDStringInContext2(e->context, weights, strlen(weights)),
		LLVMValueAsMetadata(cpu_int(e, SCALAR_U32, 1 << 20)), LLVMValueAsMetadata(cpu_int(e, SCALAR_U32, 1))};
	LLVMValueRef branch = LLVMBuildCondBr(e->builder, holds, fine, failed);
	LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(e->context, "prof", 4),
		LLVMMetadataAsValue(e->context, LLVMMDNodeInContext2(e->context, part, 3)));
	LLVMPositionBuilderAtEnd(e->builder, failed);
}

LLVMValueRef cpu_local(cpu_emitter *e, LLVMTypeRef type, const char *name, unsigned number)
{
	for (uint32_t i = 0; i < e->locals.n; i++) {
		const cpu_local_value *v = &e->locals.at[i];
		if (v->type == type && v->number == number && !strcmp(v->name, name)) return v->at;
	}
	cpu_local_value made = {type, name, number, LLVMBuildAlloca(e->entry, type, name)};
	vec_push(e->arena, &e->locals, made);
	return made.at;
}

LLVMTypeRef cpu_type(const cpu_emitter *e, ir_type t)
{
	if (t.pointer) return e->pointer;
	switch ((scalar)t.elem) {
	case SCALAR_BOOL: return e->i1;
	case SCALAR_I8:
	case SCALAR_U8:
	case SCALAR_F8E4M3:
	case SCALAR_F8E5M2: return e->i8;
	case SCALAR_I16:
	case SCALAR_U16:
	case SCALAR_F16:
	case SCALAR_BF16: return e->i16;
	case SCALAR_I32:
	case SCALAR_U32: return e->i32;
	case SCALAR_F32: return e->f32;
	case SCALAR_F64: return e->f64;
	default: return e->i64;
	}
}

LLVMValueRef cpu_int(const cpu_emitter *e, scalar s, int64_t v)
{
	return LLVMConstInt(cpu_type(e, ir_scalar_type(s)), scalar_truncate(s, (uint64_t)v), false);
}

LLVMValueRef cpu_index(const cpu_emitter *e, uint64_t v)
{
	return LLVMConstInt(e->i64, v, false);
}

LLVMValueRef cpu_constant(const cpu_emitter *e, ir_type t, uint64_t bits)
{
	if (t.pointer) return LLVMConstIntToPtr(LLVMConstInt(e->i64, bits, false), e->pointer);
	if (t.elem == SCALAR_F64) return LLVMConstBitCast(LLVMConstInt(e->i64, bits, false), e->f64);
	if (t.elem == SCALAR_F32) return LLVMConstBitCast(LLVMConstInt(e->i32, bits & UINT32_MAX, false), e->f32);
	return LLVMConstInt(cpu_type(e, t), scalar_truncate(t.elem, bits), false);
}

LLVMValueRef cpu_linear(cpu_emitter *e, ir_type t, const LLVMValueRef *index)
{
	assert(t.rank <= IR_MAX_RANK);
	LLVMValueRef linear = NULL;
	for (unsigned d = 0; d < t.rank; d++) {
		if (t.dim[d] == 1) continue;
		if (linear) linear = LLVMBuildNUWMul(e->builder, linear, cpu_index(e, t.dim[d]), "");
		linear = linear ? LLVMBuildNUWAdd(e->builder, linear, index[d], "") : index[d];
	}
	return linear ? linear : cpu_index(e, 0);
}

void cpu_forget(cpu_emitter *e)
{
	e->memo_epoch++;
}

LLVMValueRef cpu_select(cpu_emitter *e, LLVMValueRef c, LLVMValueRef a, LLVMValueRef b)
{
	return LLVMBuildSelect(e->builder, c, a, b, "");
}

LLVMValueRef cpu_contract(LLVMValueRef v)
{
	if (LLVMIsAInstruction(v) && LLVMCanValueUseFastMathFlags(v))
		LLVMSetFastMathFlags(v, LLVMFastMathAllowContract);
	return v;
}

LLVMValueRef cpu_intrinsic(cpu_emitter *e, const char *name, LLVMTypeRef type, unsigned n, LLVMValueRef *args)
{
	unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
	LLVMValueRef f = LLVMGetIntrinsicDeclaration(e->module, id, &type, 1);
	return LLVMBuildCall2(e->builder, LLVMIntrinsicGetType(e->context, id, &type, 1), f, args, n, "");
}
