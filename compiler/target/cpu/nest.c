/* Nests of loops over a tile's elements.
 *
 * In: extents.  Out: an open nest whose indices are LLVM values; what is written until it is closed is its body.  The
 * one idea: what was computed for an element is forgotten where the loop begins and ends, and accesses that were
 * checked inside the outermost nest are reported behind it. */
#include "lower.h"

#include <assert.h>

/* Loops run at least once, so each is: header, body, latch at the bottom.  Every extent is a constant. */
void cpu_nest_open(cpu_emitter *e, cpu_nest *n, unsigned rank, const uint32_t *extent)
{
	assert(rank <= IR_MAX_RANK);
	*n = (cpu_nest){.rank = rank};
	e->nests++;
	cpu_forget(e);
	for (unsigned d = 0; d < rank; d++) {
		n->extent[d] = extent[d];
		n->index[d] = cpu_index(e, 0);
		if (extent[d] == 1) continue;
		LLVMBasicBlockRef from = LLVMGetInsertBlock(e->builder);
		n->header[d] = cpu_block(e, "loop");
		LLVMBuildBr(e->builder, n->header[d]);
		LLVMPositionBuilderAtEnd(e->builder, n->header[d]);
		LLVMValueRef zero = n->index[d];
		n->index[d] = LLVMBuildPhi(e->builder, e->i64, "i");
		LLVMAddIncoming(n->index[d], &zero, &from, 1);
	}
}

void cpu_nest_close(cpu_emitter *e, cpu_nest *n)
{
	assert(n->rank <= IR_MAX_RANK);
	for (unsigned d = n->rank; d-- > 0;) {
		if (!n->header[d]) continue;
		LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->builder), done = cpu_block(e, "done");
		LLVMValueRef next = LLVMBuildNUWAdd(e->builder, n->index[d], cpu_index(e, 1), "");
		LLVMSetNSW(next, true);
		LLVMAddIncoming(n->index[d], &next, &latch, 1);
		LLVMValueRef end = LLVMBuildICmp(e->builder, LLVMIntEQ, next, cpu_index(e, n->extent[d]), "");
		LLVMBuildCondBr(e->builder, end, done, n->header[d]);
		LLVMPositionBuilderAtEnd(e->builder, done);
	}
	if (--e->nests == 0) cpu_bounds_end(e);
	cpu_forget(e);
}
