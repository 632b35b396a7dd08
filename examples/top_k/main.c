/* The k largest of every row with their columns, exactly, on rows with equal numbers, both zeros and nan. */
#include "../example.h"

enum { MOST = 64 };

/* Whether column a stands before column b: greater, or equal and further left; nan last, and -0 behind 0. */
static bool stands_before(const float *row, int a, int b)
{
	float x = row[a], y = row[b];
	if (isnan(x) || isnan(y)) return isnan(x) == isnan(y) ? a < b : isnan(y);
	if (x != y) return x > y;
	if (signbit(x) != signbit(y)) return signbit(y);
	return a < b;
}

/* The first k columns in that order, by insertion. */
static void reference(const float *row, int n, int k, double *values, double *columns)
{
	int best[MOST + 1], count = 0;
	for (int j = 0; j < n; j++) {
		int at = count;
		for (; at > 0 && stands_before(row, j, best[at - 1]); at--) best[at] = best[at - 1];
		if (at < k) best[at] = j;
		if (count < k) count++;
	}
	for (int j = 0; j < k; j++) values[j] = row[best[j]], columns[j] = best[j];
}

static void run(example *e, int rows, int n, int k, bool timed)
{
	size_t all = (size_t)rows * (size_t)n, kept = (size_t)rows * (size_t)k;
	float *x = example_normal(e, all, 81);
	double *values = example_doubles(e, kept), *columns = example_doubles(e, kept);
	for (size_t i = 0; i < all; i++) {
		if (i % 7 == 0) x[i] = roundf(x[i] * 4) / 4;
		if (i % 41 == 0 && n > 2 * k) x[i] = NAN;
	}
	for (int r = 0; r < rows; r++) {
		size_t first = (size_t)r * (size_t)k;
		reference(x + (size_t)r * (size_t)n, n, k, values + first, columns + first);
	}
	blk_buffer *bx = example_buffer(e, x, all), *bv = example_output(e, kept);
	blk_buffer *bc = example_output_of(e, BLK_TYPE_I32, kept);
	blk_kernel *kernel = example_kernel(e, "top_k", "");
	blk_arg args[] = {blk_buf(bv), blk_buf(bc), blk_buf(bx), blk_i32(rows), blk_i32(n), blk_i32(k)};
	TRY(blk_launch(kernel, NULL, NULL, args, 6));
	example_check(e, bv, values, kept, 0, "top %d, %d x %d, values", k, rows, n);
	example_check(e, bc, columns, kept, 0, "top %d, %d x %d, columns", k, rows, n);
	if (timed) example_time(e, kernel, NULL, args, 6, 4.0 * (double)all, "top k");
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "top_k");
	run(&e, 1, 1, 1, false);
	run(&e, 3, 31, 5, false);
	run(&e, 5, 64, 64, false);
	run(&e, 37, 781, 1, false);
	run(&e, 37, 781, 8, false);
	run(&e, 13, 32000, 50, false);
	run(&e, 13, 32000, 64, false);
	if (!e.quick) run(&e, 4096, 32000, 64, true);
	return example_close(&e);
}
