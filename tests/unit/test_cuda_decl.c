/* Our declarations of the CUDA driver API against NVIDIA's header, at compile time, where one is installed. */
#if __has_include("/usr/local/cuda/include/cuda.h")
#include "/usr/local/cuda/include/cuda.h"
#define HAVE_CUDA_H 1
#endif
#include "runtime/device/cuda_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#ifdef HAVE_CUDA_H
/* With cuda.h first, cuda_api.h uses its types, so that a difference in any parameter is a difference in type. */
#define X(name, parameters)                                                                                            \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&name), __typeof__(((cuda_api *)0)->name)), #name);
CUDA_CALLS(X)
CUDA_LATER_CALLS(X)
#undef X
#define X(ours, value, theirs) _Static_assert((int)ours == (int)theirs, #ours);
CUDA_NUMBERS(X)
#undef X
_Static_assert(sizeof(CUdevice) == sizeof(int) && sizeof(CUdeviceptr) == sizeof(unsigned long long), "handles");
_Static_assert(sizeof(CUresult) == sizeof(int) && sizeof(CUjit_option) == sizeof(int), "enumerations are ints");
#endif

static void test_declarations(void **state)
{
	(void)state;
#ifdef HAVE_CUDA_H
	assert_true(CUDA_VERSION >= 12000); /* the comparison itself happened when this file was compiled */
#else
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_declarations)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
