/* z = x + y on sizes that no block divides. */
#include "../example.h"

static void run(example *e, blk_kernel *add, int n, bool timed)
{
	float *x = example_normal(e, (size_t)n, 1), *y = example_normal(e, (size_t)n, 2);
	double *want = example_doubles(e, (size_t)n);
	for (int i = 0; i < n; i++) want[i] = (double)x[i] + y[i];
	blk_buffer *bx = example_buffer(e, x, (size_t)n), *by = example_buffer(e, y, (size_t)n);
	blk_buffer *bz = example_output(e, (size_t)n);
	blk_arg args[] = {blk_buf(bz), blk_buf(bx), blk_buf(by), blk_i32(n)};
	TRY(blk_launch(add, NULL, NULL, args, 4));
	example_check(e, bz, want, (size_t)n, 1e-7, "add, n = %d", n);
	if (timed) example_time(e, add, NULL, args, 4, 12.0 * n, "add");
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "vector_add");
	/* A module is a .blk file; a kernel is found in it by name. */
	blk_module *module;
	blk_kernel *add;
	TRY(blk_module_open(e.device, e.source, NULL, 0, &module));
	TRY(blk_kernel_find(module, "add", &add));
	static const int sizes[] = {0, 1, 31, 1023, 1024, 1025, 98432, 1823 * 781};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) run(&e, add, sizes[i], false);
	if (!e.quick) run(&e, add, 1 << 24, true);
	blk_module_close(module);
	return example_close(&e);
}
