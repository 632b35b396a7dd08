/* Masked vectors of which no element is wanted stay away from memory.
 *
 * In: a module after the vectoriser.  Out: the same, in which such a vector's address is that of a place on the stack.
 * The one idea: a processor does suppress the fault of a masked element on a page that it may not touch, but in a
 * microsecond, a thousand times what the access costs; and a tile that is wider than its array reaches behind it in
 * every program, where the guard page is (runtime/device/cpu_memory.c).  Selecting the address needs no branch. */
#include "lower.h"

#include <string.h>

enum { ROOM = 64 }; /* of the widest vector */

/* Whether a call's function is this intrinsic, of any type. */
static bool is_named(LLVMValueRef f, const char *name)
{
	size_t n;
	const char *s = LLVMGetValueName2(f, &n);
	return strncmp(s, name, strlen(name)) == 0;
}

/* In the first block of the access's function, once. */
static LLVMValueRef nowhere(cpu_emitter *e, LLVMValueRef access, LLVMValueRef *of, LLVMValueRef *made)
{
	LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(access));
	if (*of == function) return *made;
	LLVMValueRef first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function));
	LLVMPositionBuilderBefore(e->builder, first);
	*of = function;
	return *made = LLVMBuildAlloca(e->builder, LLVMArrayType2(e->i8, ROOM), "nowhere");
}

static void turn(cpu_emitter *e, LLVMValueRef access, unsigned pointer, LLVMValueRef elsewhere)
{
	LLVMBuilderRef b = e->builder;
	LLVMValueRef mask = LLVMGetOperand(access, pointer + 1);
	if (LLVMIsConstant(mask)) return;
	LLVMPositionBuilderBefore(b, access);
	LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(access));
	LLVMTypeRef bits = LLVMIntTypeInContext(e->context, LLVMGetVectorSize(LLVMTypeOf(mask)));
	LLVMValueRef set = LLVMBuildBitCast(b, mask, bits, "");
	LLVMValueRef any = LLVMBuildICmp(b, LLVMIntNE, set, LLVMConstNull(bits), "");
	LLVMSetOperand(access, pointer, LLVMBuildSelect(b, any, LLVMGetOperand(access, pointer), elsewhere, ""));
}

void cpu_spare_masked(cpu_emitter *e)
{
	LLVMValueRef function = NULL, elsewhere = NULL;
	LLVMSetCurrentDebugLocation2(e->builder, NULL);
	for (LLVMValueRef f = LLVMGetFirstFunction(e->module); f; f = LLVMGetNextFunction(f)) {
		bool load = is_named(f, "llvm.masked.load."), store = is_named(f, "llvm.masked.store.");
		for (LLVMUseRef u = load || store ? LLVMGetFirstUse(f) : NULL; u; u = LLVMGetNextUse(u)) {
			LLVMValueRef access = LLVMGetUser(u);
			turn(e, access, store, nowhere(e, access, &function, &elsewhere));
		}
	}
}
