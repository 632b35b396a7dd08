/* Failures of blkrun: a line on standard error, and the exit status. */
#include "runtime/run/run.h"

#include <stdio.h>

int run_failed(void)
{
	const char *text = blk_error();
	fprintf(stderr, "%s%s\n", text[0] == '{' ? "" : "blkrun: ", text); /* JSON stands alone */
	return 1;
}

int run_wrong(const char *name, const char *what)
{
	fprintf(stderr, "blkrun: %s: %s\n", name, what);
	return 2;
}

int run_no_memory(const char *name)
{
	fprintf(stderr, "blkrun: %s: out of memory\n", name);
	return 1;
}
