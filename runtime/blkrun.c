/* blkrun's entry; the program is runtime/run/program.c, which tests run in a process of theirs. */
#include "runtime/run/run.h"

int main(int argc, char **argv)
{
	return blkrun(argc, argv);
}
