/* print and assert: the kernel gathers the facts, the host's functions (cpu_abi.h) make text of them. */
#include "lower.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

_Static_assert(offsetof(blk_cpu_line, values) == 8 && offsetof(blk_cpu_line, kinds) == 16 &&
		       offsetof(blk_cpu_line, program) == 24 && offsetof(blk_cpu_line, rank) == 36 &&
		       offsetof(blk_cpu_line, index) == 40 && offsetof(blk_cpu_line, count) == 56,
	"report.c writes these offsets on any host");

static LLVMValueRef at(cpu_emitter *e, LLVMValueRef base, uint64_t offset)
{
	LLVMValueRef o = cpu_index(e, offset);
	return LLVMBuildInBoundsGEP2(e->builder, e->i8, base, &o, 1, "");
}

static LLVMValueRef bytes(cpu_emitter *e, const char *s, size_t n)
{
	LLVMValueRef v = LLVMConstStringInContext2(e->context, s, n, false);
	LLVMValueRef g = LLVMAddGlobal(e->module, LLVMTypeOf(v), "text");
	LLVMSetInitializer(g, v);
	LLVMSetGlobalConstant(g, true);
	LLVMSetLinkage(g, LLVMPrivateLinkage);
	LLVMSetUnnamedAddress(g, LLVMGlobalUnnamedAddr);
	return g;
}

static LLVMValueRef string(cpu_emitter *e, const char *s)
{
	return bytes(e, s ? s : "", s ? strlen(s) : 0);
}

static LLVMValueRef host_field(cpu_emitter *e, uint64_t offset)
{
	return LLVMBuildLoad2(e->builder, e->pointer, at(e, e->host, offset), "");
}

static void store_program(cpu_emitter *e, LLVMValueRef to)
{
	for (unsigned d = 0; d < 3; d++) LLVMBuildStore(e->builder, e->pid[d], at(e, to, 4 * d));
}

/* The element as its container. */
static LLVMValueRef container(cpu_emitter *e, ir_type t, LLVMValueRef v)
{
	if (!t.pointer && t.elem == SCALAR_F32) v = LLVMBuildBitCast(e->builder, v, e->i32, "");
	v = cpu_bits(e, t.pointer || t.elem == SCALAR_F64 ? e->i64 : LLVMTypeOf(v), v);
	return LLVMTypeOf(v) == e->i64 ? v : LLVMBuildZExt(e->builder, v, e->i64, "");
}

/* One line with all scalars or, where there are tiles (of one shape), a line an element with the scalars again. */
void cpu_lower_print(cpu_emitter *e, ir_op *o)
{
	assert(o->kind == IR_PRINT);
	LLVMBuilderRef b = e->builder;
	ir_type shape = {0};
	for (unsigned i = 0; i < o->nargs; i++)
		if (!ir_is_scalar(ir_arg(o, i))) shape = ir_arg(o, i)->type;
	LLVMValueRef line = cpu_local(e, LLVMArrayType2(e->i64, sizeof(blk_cpu_line) / 8), "line", 0);
	LLVMValueRef values = cpu_local(e, LLVMArrayType2(e->i64, o->nargs ? o->nargs : 1), "values", 0);
	char *kinds = arena_alloc(e->arena, o->nargs + 1u);
	cpu_nest nest;
	cpu_nest_open(e, &nest, shape.rank, shape.dim);
	for (unsigned i = 0; i < o->nargs; i++) {
		ir_value *v = ir_arg(o, i);
		LLVMValueRef x = container(e, ir_element(v->type), cpu_element(e, v, nest.index));
		LLVMBuildStore(b, x, at(e, values, 8 * i));
		kinds[i] = (char)(v->type.pointer ? BLK_CPU_POINTER : v->type.elem);
	}
	LLVMBuildStore(b, string(e, o->text), line);
	LLVMBuildStore(b, values, at(e, line, 8));
	LLVMBuildStore(b, bytes(e, kinds, o->nargs), at(e, line, 16));
	store_program(e, at(e, line, 24));
	LLVMBuildStore(b, cpu_int(e, SCALAR_U32, shape.rank), at(e, line, 36));
	for (unsigned d = 0; d < shape.rank; d++)
		LLVMBuildStore(b, LLVMBuildTrunc(b, nest.index[d], e->i32, ""), at(e, line, 40 + 4 * d));
	LLVMBuildStore(b, cpu_int(e, SCALAR_U32, o->nargs), at(e, line, 56));
	LLVMTypeRef params[] = {e->pointer, e->pointer};
	LLVMValueRef args[] = {host_field(e, 0), line};
	LLVMBuildCall2(b, LLVMFunctionType(e->none, params, 2, false), host_field(e, 8), args, 2, "");
	cpu_nest_close(e, &nest);
}

/* The index of the first element that fails: the tile is gone through again, since no fast loop keeps count. */
static LLVMValueRef first_failure(cpu_emitter *e, ir_value *v)
{
	LLVMBuilderRef b = e->builder;
	unsigned rank = v->type.rank;
	LLVMValueRef index = cpu_local(e, LLVMArrayType2(e->i32, IR_MAX_RANK), "index", 0);
	LLVMValueRef found = cpu_local(e, e->i1, "found", 0);
	LLVMBuildStore(b, LLVMConstInt(e->i1, 0, false), found);
	for (unsigned d = 0; d < rank; d++) LLVMBuildStore(b, cpu_int(e, SCALAR_U32, 0), at(e, index, 4 * d));
	cpu_nest n;
	cpu_nest_open(e, &n, rank, v->type.dim);
	LLVMValueRef fails = LLVMBuildNot(b, cpu_element(e, v, n.index), "");
	LLVMValueRef before = LLVMBuildLoad2(b, e->i1, found, "");
	LLVMValueRef first = LLVMBuildAnd(b, fails, LLVMBuildNot(b, before, ""), "");
	LLVMBuildStore(b, LLVMBuildOr(b, before, fails, ""), found);
	for (unsigned d = 0; d < rank; d++) {
		LLVMValueRef old = LLVMBuildLoad2(b, e->i32, at(e, index, 4 * d), "");
		LLVMValueRef here = LLVMBuildTrunc(b, n.index[d], e->i32, "");
		LLVMBuildStore(b, LLVMBuildSelect(b, first, here, old, ""), at(e, index, 4 * d));
	}
	cpu_nest_close(e, &n);
	return index;
}

/* All elements are tested before the one branch, so that the loop is free of exits and can use vectors. */
void cpu_lower_assert(cpu_emitter *e, ir_op *o)
{
	assert(o->kind == IR_ASSERT);
	LLVMBuilderRef b = e->builder;
	ir_value *v = ir_arg(o, 0);
	LLVMValueRef holds = cpu_local(e, e->i1, "holds", 0);
	LLVMBuildStore(b, LLVMConstInt(e->i1, 1, false), holds);
	cpu_nest n;
	cpu_nest_open(e, &n, v->type.rank, v->type.dim);
	LLVMValueRef element = cpu_element(e, v, n.index), before = LLVMBuildLoad2(b, e->i1, holds, "");
	LLVMBuildStore(b, LLVMBuildAnd(b, before, element, ""), holds);
	cpu_nest_close(e, &n);
	LLVMBasicBlockRef failed = cpu_block(e, "failed"), fine = cpu_block(e, "fine");
	cpu_fail_unless(e, LLVMBuildLoad2(b, e->i1, holds, ""), fine, failed);
	LLVMValueRef program = cpu_local(e, LLVMArrayType2(e->i32, 3), "program", 0);
	store_program(e, program);
	uint32_t line = o->at.file ? source_locate(e->arena, o->at).line : 0;
	unsigned rank = v->type.rank;
	LLVMTypeRef params[] = {e->pointer, e->pointer, e->pointer, e->i32, e->pointer, e->i32, e->pointer};
	LLVMValueRef args[] = {host_field(e, 0), string(e, o->text), string(e, o->at.file ? o->at.file->name : NULL),
		cpu_int(e, SCALAR_U32, line), program, cpu_int(e, SCALAR_U32, rank),
		rank ? first_failure(e, v) : LLVMConstNull(e->pointer)};
	LLVMValueRef call =
		host_field(e, rank ? offsetof(blk_cpu_host, element_failed) : offsetof(blk_cpu_host, assert_failed));
	LLVMBuildCall2(b, LLVMFunctionType(e->none, params, rank ? 7 : 5, false), call, args, rank ? 7 : 5, "");
	LLVMBuildRetVoid(b);
	LLVMPositionBuilderAtEnd(b, fine);
}
