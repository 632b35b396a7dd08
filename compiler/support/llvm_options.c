/* LLVM's options of the whole process, set once, the same for every target, so that code does not depend on which
 * target was used first.
 *
 *   -nvptx-short-ptr              32-bit shared addresses: without it every one is 64-bit arithmetic
 *   -enable-poison-reuse-guard=0  straight-line strength reduction may build a value on any other.  It otherwise asks
 *                                 for each pair whether the other could be poison where the value is not, which took
 *                                 a third to a half of a compile, and where it could not tell it built the value
 *                                 anew.  The answer is known: no value here is ever poison.  The lowering sets the
 *                                 flags that make it so (nuw, nsw, disjoint, inbounds) only on bits of the thread's
 *                                 number and on places within an array, arithmetic of the language wraps, and LLVM
 *                                 adds only flags that it has proven. */
#include "llvm_options.h"

#include <llvm-c/Support.h>
#include <pthread.h>

static void parse(void)
{
	static const char *const options[] = {"blk", "-nvptx-short-ptr", "-enable-poison-reuse-guard=0"};
	LLVMParseCommandLineOptions(sizeof options / sizeof options[0], options, "");
}

void llvm_options_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, parse);
}
