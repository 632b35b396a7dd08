/* Cross-entropy of rows with up to 131072 entries against double precision. */
#include "../example.h"

static void run(example *e, int rows, int n, bool timed)
{
	size_t all = (size_t)rows * (size_t)n;
	float *x = example_normal(e, all, 41);
	int32_t *target = example_alloc(e, (size_t)rows * sizeof *target);
	double *want = example_doubles(e, (size_t)rows);
	uint64_t state = 5;
	for (int r = 0; r < rows; r++) {
		float *v = x + (size_t)r * (size_t)n;
		for (int i = 0; i < n; i++) v[i] *= 8;
		target[r] = (int32_t)(example_random(&state) % (uint64_t)n);
		double largest = -INFINITY, sum = 0;
		for (int i = 0; i < n; i++) largest = fmax(largest, v[i]);
		for (int i = 0; i < n; i++) sum += exp(v[i] - largest);
		want[r] = log(sum) + largest - v[target[r]];
	}
	blk_kernel *kernel = example_kernel(e, "cross_entropy", "");
	blk_buffer *bx = example_buffer(e, x, all), *bl = example_output(e, (size_t)rows);
	blk_buffer *bt = example_buffer_of(e, BLK_TYPE_I32, target, (size_t)rows);
	blk_arg args[] = {blk_buf(bl), blk_buf(bx), blk_buf(bt), blk_i32(rows), blk_i32(n)};
	TRY(blk_launch(kernel, NULL, NULL, args, 5));
	example_check(e, bl, want, (size_t)rows, 2e-6, "cross-entropy, %d x %d", rows, n);
	if (timed) example_time(e, kernel, NULL, args, 5, 4.0 * (double)all, "cross-entropy");
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "cross_entropy");
	run(&e, 1, 1, false);
	run(&e, 7, 31, false);
	run(&e, 13, 50257, false);
	if (!e.quick) run(&e, 512, 131072, true);
	return example_close(&e);
}
