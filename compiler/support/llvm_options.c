/* LLVM's options of the whole process, set once, the same for every target, so that code does not depend on which
 * target was used first.
 *
 *   -nvptx-short-ptr    32-bit shared addresses: without it every one is 64-bit arithmetic */
#include "llvm_options.h"

#include <llvm-c/Support.h>
#include <pthread.h>

static void parse(void)
{
	static const char *const options[] = {"blk", "-nvptx-short-ptr"};
	LLVMParseCommandLineOptions(sizeof options / sizeof options[0], options, "");
}

void llvm_options_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, parse);
}
