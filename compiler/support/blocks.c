/* Long basic blocks cut into short ones.
 *
 * In: a function after LLVM's optimisation passes (they would join the pieces again).  Out: the same function in which
 * no block is longer than told. The one idea: instruction selection and some machine passes work on one block at a
 * time, in time that grows with the square of its length and worse; code unrolled into one block of a hundred thousand
 * instructions would take minutes.  Pieces of a fixed length make it linear.
 *
 * The C API has no split: the front is moved instruction by instruction into new blocks before the old one, which keeps
 * its end.  So whoever names the block as where a value comes from (phis of its successors, itself among them when it
 * loops) still names the right one; only who jumps to it must jump to the first piece.
 *
 * Code generation has IR passes of its own that join a block to its only predecessor, unless somebody took the block's
 * address.  We take it and use it nowhere: machine passes look at uses only, and join the pieces when nothing slow is
 * left to run, so that the cut leaves no label in the output.
 */
#include "blocks.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

static bool is_phi(LLVMValueRef i)
{
	return LLVMGetInstructionOpcode(i) == LLVMPHI;
}

static void turn_jumps(LLVMValueRef function, LLVMBasicBlockRef from, LLVMBasicBlockRef to)
{
	for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b)) {
		LLVMValueRef t = LLVMGetBasicBlockTerminator(b);
		for (unsigned i = 0; t && i < LLVMGetNumSuccessors(t); i++)
			if (LLVMGetSuccessor(t, i) == from) LLVMSetSuccessor(t, i, to);
	}
}

static void jump(LLVMBuilderRef m, LLVMValueRef function, LLVMBasicBlockRef from, LLVMBasicBlockRef to)
{
	LLVMPositionBuilderAtEnd(m, from);
	LLVMBuildBr(m, to);
	LLVMBlockAddress(function, to);
}

/* Moves the phis of `b` and `piece` instructions for every piece but the last into new blocks before it. */
static void cut(
	LLVMContextRef c, LLVMBuilderRef m, LLVMValueRef function, LLVMBasicBlockRef b, unsigned count, unsigned piece)
{
	LLVMBasicBlockRef from = NULL;
	for (; count >= piece + piece / 2; count -= piece) {
		LLVMBasicBlockRef to = LLVMInsertBasicBlockInContext(c, b, "");
		if (from)
			jump(m, function, from, to);
		else
			turn_jumps(function, b, to);
		LLVMPositionBuilderAtEnd(m, to);
		for (unsigned k = 0; k < piece;) {
			LLVMValueRef i = LLVMGetFirstInstruction(b);
			assert(i && i != LLVMGetLastInstruction(b));
			k += !is_phi(i);
			LLVMInstructionRemoveFromParent(i);
			LLVMInsertIntoBuilder(m, i);
		}
		from = to;
	}
	assert(from);
	jump(m, function, from, b);
}

void blocks_split(LLVMContextRef c, LLVMValueRef function, unsigned longest, unsigned piece)
{
	assert(piece && longest >= piece + piece / 2);
	LLVMBuilderRef m = LLVMCreateBuilderInContext(c);
	for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b)) {
		unsigned n = 0;
		for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) n += !is_phi(i);
		if (n >= longest) cut(c, m, function, b, n, piece);
	}
	LLVMDisposeBuilder(m);
}
