/* Long basic blocks cut into short ones, for LLVM's code generators; see blocks.c. */
#ifndef BLK_BLOCKS_H
#define BLK_BLOCKS_H

#include <llvm-c/Core.h>

/* Blocks of `longest` instructions or more become pieces of about `piece`, which is at most two thirds of that.
 * The context's own builder is not touched. */
void blocks_split(LLVMContextRef, LLVMValueRef function, unsigned longest, unsigned piece);

#endif
