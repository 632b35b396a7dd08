/* The LLVM module: the kernel of cpu_abi.h, which loops over programs, and the function of one program.
 *
 *   void NAME(call, first, last, scratch)      reads the arguments once, then for each program
 *   static void NAME.program(x, y, z, gx, gy, gz, host, scratch, ranges, params...)
 *
 * The program is a function of its own so that facts about pointers can be stated as attributes: scratch and *const
 * buffers overlap nothing that is written through others. */
#include "lower.h"

#include <llvm-c/Analysis.h>
#include <stddef.h>
#include <string.h>

_Static_assert(offsetof(blk_cpu_call, grid) == 8 && offsetof(blk_cpu_call, host) == 24 &&
		       offsetof(blk_cpu_call, ranges) == 32 && offsetof(blk_cpu_call, program) == 40,
	"module.c uses these offsets on any host");

enum { MAX_SCOPES = 64, FIXED_PARAMS = 9 };

static void attribute(cpu_emitter *e, LLVMValueRef f, unsigned index, const char *name)
{
	unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
	LLVMAddAttributeAtIndex(f, index, LLVMCreateEnumAttribute(e->context, kind, 0));
}

static void make_types(cpu_emitter *e)
{
	LLVMContextRef c = e->context;
#define TYPE(field, make) e->field = make(c);
#include "support/llvm_types.def"
#undef TYPE
	e->pointer = LLVMPointerTypeInContext(c, 0);
}

static bool share_memory(const cpu_buffer *a, const cpu_buffer *b)
{
	return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* Tells LLVM that buffers at different offsets do not overlap. */
static void make_scopes(cpu_emitter *e)
{
	uint32_t n = e->plan->buffers.n;
	if (n < 2 || n > MAX_SCOPES) return;
	LLVMContextRef c = e->context;
	LLVMMetadataRef name = LLVMMDStringInContext2(c, "scratch", 7);
	LLVMMetadataRef domain = LLVMMDNodeInContext2(c, &name, 1), list[MAX_SCOPES], scope[MAX_SCOPES];
	e->scope = ARENA_ARRAY(e->arena, LLVMValueRef, n);
	e->noalias = ARENA_ARRAY(e->arena, LLVMValueRef, n);
	for (uint32_t i = 0; i < n; i++) {
		const char *s = arena_printf(e->arena, "buffer %u", i);
		LLVMMetadataRef pair[] = {LLVMMDStringInContext2(c, s, strlen(s)), domain};
		scope[i] = LLVMMDNodeInContext2(c, pair, 2);
		e->scope[i] = LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, &scope[i], 1));
	}
	for (uint32_t i = 0; i < n; i++) {
		unsigned others = 0;
		for (uint32_t j = 0; j < n; j++)
			if (j != i && !share_memory(&e->plan->buffers.at[i], &e->plan->buffers.at[j]))
				list[others++] = scope[j];
		if (others) e->noalias[i] = LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, list, others));
	}
}

static void declare_program(cpu_emitter *e)
{
	ir_func *f = e->func;
	LLVMTypeRef *params = ARENA_ARRAY(e->arena, LLVMTypeRef, FIXED_PARAMS + f->nparams);
	for (unsigned i = 0; i < 6; i++) params[i] = e->i32;
	params[6] = params[7] = params[8] = e->pointer;
	for (uint32_t i = 0; i < f->nparams; i++) params[FIXED_PARAMS + i] = cpu_type(e, f->params[i].type);
	LLVMTypeRef type = LLVMFunctionType(e->none, params, FIXED_PARAMS + f->nparams, false);
	e->program = LLVMAddFunction(e->module, arena_printf(e->arena, "%s.program", f->name), type);
	LLVMSetLinkage(e->program, LLVMInternalLinkage);
	attribute(e, e->program, LLVMAttributeFunctionIndex, "nounwind");
	attribute(e, e->program, 8, "noalias");
	for (uint32_t i = 0; i < f->nparams; i++)
		if (f->params[i].type.pointer == IR_CONST_POINTER)
			attribute(e, e->program, FIXED_PARAMS + i + 1, "noalias");
	for (unsigned i = 0; i < 3; i++) {
		e->pid[i] = LLVMGetParam(e->program, i);
		e->grid[i] = LLVMGetParam(e->program, 3 + i);
	}
	e->host = LLVMGetParam(e->program, 6);
	e->scratch = LLVMGetParam(e->program, 7);
	e->ranges = LLVMGetParam(e->program, 8);
	for (uint32_t i = 0; i < f->nparams; i++) {
		ir_value *v = f->body->args[i];
		e->scalar[v->id] = LLVMGetParam(e->program, FIXED_PARAMS + i);
		if (v->name) LLVMSetValueName2(e->scalar[v->id], v->name, strlen(v->name));
	}
}

static void define_program(cpu_emitter *e)
{
	LLVMBasicBlockRef entry = cpu_block(e, "entry"), body = cpu_block(e, "start");
	LLVMPositionBuilderAtEnd(e->entry, entry);
	LLVMPositionBuilderAtEnd(e->builder, body);
	cpu_debug_function(e, e->program);
	cpu_lower_block(e, e->func->body);
	LLVMBuildRetVoid(e->builder);
	LLVMBuildBr(e->entry, body);
}

static LLVMValueRef field(cpu_emitter *e, LLVMTypeRef type, LLVMValueRef base, uint64_t offset)
{
	LLVMValueRef o = cpu_index(e, offset);
	return LLVMBuildLoad2(e->builder, type, LLVMBuildInBoundsGEP2(e->builder, e->i8, base, &o, 1, ""), "");
}

static LLVMValueRef argument(cpu_emitter *e, LLVMValueRef slots, uint32_t i)
{
	ir_type t = e->func->params[i].type;
	if (t.pointer) return field(e, e->pointer, slots, 8 * (uint64_t)i);
	LLVMValueRef v = field(e, e->i64, slots, 8 * (uint64_t)i);
	if (t.elem == SCALAR_F32)
		return LLVMBuildBitCast(e->builder, LLVMBuildTrunc(e->builder, v, e->i32, ""), e->f32, "");
	if (t.elem == SCALAR_F64) return LLVMBuildBitCast(e->builder, v, e->f64, "");
	LLVMTypeRef type = cpu_type(e, t);
	return type == e->i64 ? v : LLVMBuildTrunc(e->builder, v, type, "");
}

/* For whoever asks after a fault; volatile, as nothing else reads it. */
static void note_program(cpu_emitter *e, LLVMValueRef call, LLVMValueRef at)
{
	LLVMValueRef offset = cpu_index(e, offsetof(blk_cpu_call, program));
	LLVMValueRef to = LLVMBuildInBoundsGEP2(e->builder, e->i8, call, &offset, 1, "");
	LLVMSetVolatile(LLVMBuildStore(e->builder, at, to), true);
}

static void call_program(cpu_emitter *e, LLVMValueRef at, LLVMValueRef *args)
{
	LLVMBuilderRef b = e->builder;
	LLVMValueRef gx = LLVMBuildZExt(b, args[3], e->i64, ""), gy = LLVMBuildZExt(b, args[4], e->i64, "");
	LLVMValueRef rest = LLVMBuildUDiv(b, at, gx, "");
	args[0] = LLVMBuildTrunc(b, LLVMBuildURem(b, at, gx, ""), e->i32, "");
	args[1] = LLVMBuildTrunc(b, LLVMBuildURem(b, rest, gy, ""), e->i32, "");
	args[2] = LLVMBuildTrunc(b, LLVMBuildUDiv(b, rest, gy, ""), e->i32, "");
	LLVMBuildCall2(b, LLVMGlobalGetValueType(e->program), e->program, args, FIXED_PARAMS + e->func->nparams, "");
}

static void define_kernel(cpu_emitter *e)
{
	LLVMBuilderRef b = e->builder;
	LLVMTypeRef params[] = {e->pointer, e->i64, e->i64, e->pointer};
	LLVMValueRef kernel = LLVMAddFunction(e->module, e->func->name, LLVMFunctionType(e->none, params, 4, false));
	LLVMValueRef call = LLVMGetParam(kernel, 0), first = LLVMGetParam(kernel, 1), last = LLVMGetParam(kernel, 2);
	attribute(e, kernel, LLVMAttributeFunctionIndex, "nounwind");
	LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(e->context, kernel, "entry");
	LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(e->context, kernel, "programs");
	LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(e->context, kernel, "program");
	LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(e->context, kernel, "done");
	LLVMValueRef *args = ARENA_ARRAY(e->arena, LLVMValueRef, FIXED_PARAMS + e->func->nparams);
	LLVMPositionBuilderAtEnd(b, entry);
	cpu_debug_function(e, kernel);
	LLVMValueRef slots = field(e, e->pointer, call, 0);
	for (unsigned i = 0; i < 3; i++) args[3 + i] = field(e, e->i32, call, 8 + 4 * i);
	args[6] = field(e, e->pointer, call, 24);
	args[7] = LLVMGetParam(kernel, 3);
	args[8] = field(e, e->pointer, call, offsetof(blk_cpu_call, ranges));
	for (uint32_t i = 0; i < e->func->nparams; i++) args[FIXED_PARAMS + i] = argument(e, slots, i);
	LLVMBuildBr(b, loop);
	LLVMPositionBuilderAtEnd(b, loop);
	LLVMValueRef at = LLVMBuildPhi(b, e->i64, "at");
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, at, last, ""), body, done);
	LLVMPositionBuilderAtEnd(b, body);
	note_program(e, call, at);
	call_program(e, at, args);
	LLVMValueRef incoming[] = {first, LLVMBuildNUWAdd(b, at, cpu_index(e, 1), "")};
	LLVMBasicBlockRef from[] = {entry, body};
	LLVMAddIncoming(at, incoming, from, 2);
	LLVMBuildBr(b, loop);
	LLVMPositionBuilderAtEnd(b, done);
	LLVMBuildRetVoid(b);
}

bool cpu_lower(cpu_emitter *e)
{
	make_types(e);
	cpu_debug_begin(e);
	make_scopes(e);
	e->scalar = ARENA_ARRAY(e->arena, LLVMValueRef, e->func->nvalues);
	e->memo = ARENA_ARRAY(e->arena, cpu_memo *, e->func->nvalues);
	e->searched = ARENA_ARRAY(e->arena, uint32_t, e->func->nvalues);
	e->memo_epoch = 1;
	e->range = ARENA_ARRAY(e->arena, LLVMValueRef, 2 * e->func->nparams);
	declare_program(e);
	define_program(e);
	define_kernel(e);
	cpu_debug_end(e);
	return LLVMVerifyModule(e->module, LLVMReturnStatusAction, &e->message) == 0;
}
