/* Loops and arrays of a thread that no operation of the IR asks for.
 *
 * In: the builder's place.  Out: a loop around what is built between opening and closing it, or an array in the entry
 * block.  The one idea: straight code for more values than a thread has registers is spilled anyway, and takes the
 * assembler minutes; so such values lie in an array, which loops go over. */
#include "lower.h"

lower_loop lower_open_loop(lower *l, LLVMValueRef start, LLVMIntPredicate predicate, LLVMValueRef limit)
{
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
