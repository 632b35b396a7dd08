/* Loops, branches and arrays of a thread that no operation of the IR asks for.
 *
 * In: the builder's place.  Out: a loop around what is built between opening and closing it, or an array in the entry
 * block.  The one idea: straight code for more values than a thread has registers is spilled anyway, and takes the
 * assembler minutes; so such values lie in an array, which loops go over. */
#include "lower.h"

#include <assert.h>
#include <string.h>

/* llvm.loop metadata: !0 = distinct !{!0, !{"llvm.loop.unroll.count", i32 n}}; 1 forbids unrolling. */
void lower_set_unroll(lower *l, LLVMValueRef branch, int64_t n)
{
	if (n <= 0) return;
	const char *name = n == 1 ? "llvm.loop.unroll.disable" : "llvm.loop.unroll.count";
	LLVMMetadataRef part[2] = {LLVMMDStringInContext2(l->context, name, strlen(name))};
	if (n > 1) part[1] = LLVMValueAsMetadata(lower_i32(l, n));
	/* A loop's identity is a node that points at itself: make it around a placeholder, then close the circle. */
	LLVMMetadataRef temporary = LLVMTemporaryMDNode(l->context, NULL, 0);
	LLVMMetadataRef loop[2] = {temporary, LLVMMDNodeInContext2(l->context, part, n > 1 ? 2 : 1)};
	LLVMMetadataRef self = LLVMMDNodeInContext2(l->context, loop, 2);
	LLVMMetadataReplaceAllUsesWith(temporary, self);
	LLVMSetMetadata(branch, l->loop_kind, LLVMMetadataAsValue(l->context, self));
}

lower_loop lower_open_loop(lower *l, LLVMValueRef start, LLVMIntPredicate predicate, LLVMValueRef limit)
{
	assert(LLVMTypeOf(start) == l->i32 && LLVMTypeOf(limit) == l->i32);
	LLVMBuilderRef b = l->builder;
	LLVMBasicBlockRef from = LLVMGetInsertBlock(b), body;
	lower_loop p = {.head = LLVMAppendBasicBlockInContext(l->context, l->function, "")};
	body = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	p.after = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	LLVMBuildBr(b, p.head);
	LLVMPositionBuilderAtEnd(b, p.head);
	p.i = LLVMBuildPhi(b, l->i32, "");
	LLVMAddIncoming(p.i, &start, &from, 1);
	LLVMBuildCondBr(b, LLVMBuildICmp(b, predicate, p.i, limit, ""), body, p.after);
	LLVMPositionBuilderAtEnd(b, body);
	return p;
}

void lower_close_loop(lower *l, const lower_loop *p, int step)
{
	assert(step);
	LLVMValueRef next = LLVMBuildAdd(l->builder, p->i, lower_i32(l, step), "");
	LLVMBasicBlockRef latch = LLVMGetInsertBlock(l->builder);
	LLVMAddIncoming(p->i, &next, &latch, 1);
	lower_set_unroll(l, LLVMBuildBr(l->builder, p->head), 1);
	LLVMPositionBuilderAtEnd(l->builder, p->after);
}

LLVMValueRef lower_local(lower *l, LLVMTypeRef type)
{
	LLVMBasicBlockRef here = LLVMGetInsertBlock(l->builder);
	LLVMPositionBuilderBefore(l->builder, LLVMGetBasicBlockTerminator(l->entry));
	LLVMValueRef p = LLVMBuildAlloca(l->builder, type, "");
	LLVMSetAlignment(p, 16);
	LLVMPositionBuilderAtEnd(l->builder, here);
	return p;
}

LLVMBasicBlockRef lower_begin_if(lower *l, LLVMValueRef condition)
{
	assert(LLVMTypeOf(condition) == l->i1);
	LLVMBasicBlockRef then = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	LLVMBuildCondBr(l->builder, condition, then, after);
	LLVMPositionBuilderAtEnd(l->builder, then);
	return after;
}

void lower_end_if(lower *l, LLVMBasicBlockRef after)
{
	LLVMBuildBr(l->builder, after);
	LLVMPositionBuilderAtEnd(l->builder, after);
}
