/* Tests whose calls of the system fail by the linker's --wrap (Makefile) reach those of the product only where it is
 * linked into them, not where it is a library (INSIDE=library): there they leave such rows out. */
#ifndef TESTS_UNIT_WRAPPED_H
#define TESTS_UNIT_WRAPPED_H

#include <dlfcn.h>
#include <stdbool.h>

static inline bool wraps(const void *product) /* a function of it */
{
	static const char here;
	Dl_info a, b;
	return dladdr(product, &a) && dladdr(&here, &b) && a.dli_fbase == b.dli_fbase;
}

#endif
