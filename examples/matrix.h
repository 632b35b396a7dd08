/* What the matrix examples share: products in double precision, and how far a kernel may be from them.
 *
 * A sum of K products, rounded with unit u at each step in any order, misses the exact one by (K + 8) u sum(|a b|) at
 * most (docs/language.md has u for each type); what is done with the sum may enlarge that, and rounding the result adds
 * its own. */
#ifndef BLK_EXAMPLE_MATRIX_H
#define BLK_EXAMPLE_MATRIX_H

#include "example.h"

/* want = a b and bound = (K + 8) u |a| |b|: [m, k] times [k, n], row-major. */
static inline void matrix_multiply(
	double *want, double *bound, const float *a, const float *b, int m, int n, int k, double u)
{
	for (int i = 0; i < m; i++) {
		double *sums = want + (size_t)i * (size_t)n, *sizes = bound + (size_t)i * (size_t)n;
		for (int l = 0; l < k; l++) {
			double x = a[(size_t)i * (size_t)k + (size_t)l];
			for (int j = 0; j < n; j++) {
				double p = x * b[(size_t)l * (size_t)n + (size_t)j];
				sums[j] += p;
				sizes[j] += fabs(p);
			}
		}
		for (int j = 0; j < n; j++) sizes[j] *= (k + 8) * u;
	}
}

/* Adds to the bounds what rounding the results to the output's type costs. */
static inline void matrix_add_rounding(double *bound, const double *want, size_t n, blk_type out)
{
	for (size_t i = 0; i < n; i++)
		bound[i] += out == BLK_TYPE_F16 ? fabs(want[i]) * 0x1p-11 + 0x1p-25 : fabs(want[i]) * 0x1p-24;
}

/* Times a launch and prints what it computes a second. */
static inline void matrix_time(blk_kernel *kernel, const blk_arg *args, size_t nargs, double flops, const char *what)
{
	blk_timing t;
	TRY(blk_bench(kernel, NULL, args, nargs, NULL, &t));
	printf("  %-44s %.3f ms, %.2f TFLOP/s\n", what, t.median_ms, flops / t.median_ms * 1e-9);
}

/* Timing: sizes that a machine of this kind gets through in seconds. */
static inline int matrix_largest(const example *e)
{
	const char *name = blk_device_name(e->device);
	if (strstr(name, "simulator")) return 256;
	return strncmp(name, "cuda", 4) == 0 || strstr(name, "NVIDIA") ? 8192 : 1024;
}

#endif
