/* A batch of matrices transposed, exactly, on sizes that no tile divides. */
#include "../example.h"

static void run(example *e, int batch, int rows, int columns, bool timed)
{
	size_t n = (size_t)batch * (size_t)rows * (size_t)columns;
	float *x = example_normal(e, n, 21);
	double *want = example_doubles(e, n);
	for (int b = 0; b < batch; b++)
		for (int i = 0; i < rows; i++)
			for (int j = 0; j < columns; j++) {
				size_t start = (size_t)b * (size_t)rows * (size_t)columns;
				want[start + (size_t)j * (size_t)rows + (size_t)i] =
					x[start + (size_t)i * (size_t)columns + (size_t)j];
			}
	blk_kernel *kernel = example_kernel(e, "transpose_batched", "");
	blk_buffer *bx = example_buffer(e, x, n), *by = example_output(e, n);
	blk_arg args[] = {blk_buf(by), blk_buf(bx), blk_i32(batch), blk_i32(rows), blk_i32(columns)};
	TRY(blk_launch(kernel, NULL, NULL, args, 5));
	example_check(e, by, want, n, 0, "transpose, %d x %d x %d", batch, rows, columns);
	if (timed) example_time(e, kernel, NULL, args, 5, 8.0 * (double)n, "transpose");
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "transpose");
	run(&e, 1, 1, 1, false);
	run(&e, 2, 64, 64, false);
	run(&e, 3, 31, 65, false);
	run(&e, 2, 781, 1823, false);
	if (!e.quick) run(&e, 4, 2048, 2048, true);
	return example_close(&e);
}
