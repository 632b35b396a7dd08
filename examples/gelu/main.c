/* gelu in its tanh form against the same formula in double precision. */
#include "../example.h"

static void run(example *e, int n, bool timed)
{
	float *x = example_normal(e, (size_t)n, 3);
	double *want = example_doubles(e, (size_t)n);
	if (n > 4)
		x[0] = 30, x[1] = -30, x[2] = 0,
		x[3] = 1e-30f; /* where exp overflows, underflows, and nothing happens */
	for (int i = 0; i < n; i++) {
		double v = x[i];
		want[i] = 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
	}
	blk_kernel *gelu = example_kernel(e, "gelu_forward", "");
	blk_buffer *bx = example_buffer(e, x, (size_t)n), *by = example_output(e, (size_t)n);
	blk_arg args[] = {blk_buf(by), blk_buf(bx), blk_i32(n)};
	TRY(blk_launch(gelu, NULL, NULL, args, 3));
	example_check(e, by, want, (size_t)n, 1e-6, "gelu, n = %d", n);
	if (timed) example_time(e, gelu, NULL, args, 3, 8.0 * n, "gelu");
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "gelu");
	static const int sizes[] = {0, 1, 31, 1025, 98432, 1823 * 781};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) run(&e, sizes[i], false);
	if (!e.quick) run(&e, 1 << 24, true);
	return example_close(&e);
}
