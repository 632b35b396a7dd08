/* Softmax of rows that are no power of two and not contiguous, in the form that suits the length, and in every form on
 * lengths that suit another. */
#include "../example.h"

/* tiles: several short rows a program; rows, persistent: one at a time; split: several programs a row; online: a row of
 * any length, read twice. */
typedef enum form { TILES, ROWS, PERSISTENT, SPLIT, ONLINE, SUITABLE } form;
static const char *const kernels[] = {
	"softmax_tiles", "softmax_rows", "softmax_persistent", "softmax_split", "softmax_online"};

static form suitable(int n)
{
	return n <= 1024 ? TILES : n <= 16384 ? ROWS : n <= 32 * 16384 ? SPLIT : ONLINE;
}

static double *reference(example *e, const float *x, int rows, int n, int stride)
{
	double *want = example_doubles(e, (size_t)rows * (size_t)stride);
	for (int r = 0; r < rows; r++) {
		const float *v = x + (size_t)r * (size_t)stride;
		double largest = -INFINITY, total = 0;
		for (int i = 0; i < n; i++) largest = fmax(largest, v[i]);
		for (int i = 0; i < n; i++) total += exp(v[i] - largest);
		for (int i = 0; i < n; i++) want[(size_t)r * (size_t)stride + (size_t)i] = exp(v[i] - largest) / total;
	}
	return want;
}

/* Columns between n and the stride must keep what was there: they are compared as well.  `block`: 0 for what the launch
 * computes, or the default. */
static void run(example *e, form f, int rows, int n, int stride, int block, bool timed)
{
	size_t all = (size_t)rows * (size_t)stride;
	float *x = example_normal(e, all, 5), *before = example_alloc(e, all * sizeof *before);
	double *want = reference(e, x, rows, n, stride);
	for (size_t i = 0; i < all; i++) before[i] = -7;
	for (int r = 0; r < rows; r++)
		for (int i = n; i < stride; i++) want[(size_t)r * (size_t)stride + (size_t)i] = -7;
	blk_buffer *bx = example_buffer(e, x, all), *by = example_output(e, all);
	if (stride > n) TRY(blk_buffer_write(by, 0, before, all * 4));
	if (f == SUITABLE) f = suitable(n);
	blk_arg args[6] = {blk_buf(by), blk_buf(bx)};
	size_t nargs = f == SPLIT ? 3 : 2;
	blk_kernel *kernel =
		block ? example_kernel(e, kernels[f], "BLOCK=%d", block) : example_kernel(e, kernels[f], "");
	args[nargs++] = blk_i32(stride);
	args[nargs++] = blk_i32(rows);
	args[nargs++] = blk_i32(n);
	if (f == SPLIT) { /* the words in which a row's programs meet: zeros, and zeros again afterwards */
		int64_t parts;
		args[2] = blk_ptr(NULL);
		TRY(blk_kernel_constant(kernel, "PARTS", args, nargs, &parts));
		args[2] = blk_buf(example_zeros(e, 2 * (size_t)rows * (size_t)(parts + 2)));
	}
	blk_grid grid = {1, 1, 1};
	if (f == PERSISTENT) { /* as many programs as the device runs at once */
		blk_info info;
		TRY(blk_kernel_info(kernel, args, nargs, &info));
		long programs = (long)info.programs_per_sm * blk_device_num_sms(e->device);
		grid.x = (uint32_t)(programs < rows ? programs : rows);
	}
	for (int i = 0; i < 2; i++) TRY(blk_launch(kernel, NULL, f == PERSISTENT ? &grid : NULL, args, nargs));
	example_check(e, by, want, all, 1e-6, "%s, %d x %d, stride %d", kernels[f], rows, n, stride);
	if (timed) example_time(e, kernel, f == PERSISTENT ? &grid : NULL, args, nargs, 8.0 * rows * n, kernels[f]);
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "softmax");
	for (form f = TILES; f <= SUITABLE; f++) {
		run(&e, f, 1, 1, 1, 0, false);
		run(&e, f, 3, 31, 40, 0, false);
		run(&e, f, 67, 1000, 1024, 0, false);
	}
	for (form f = ROWS; f <= PERSISTENT; f++) {
		run(&e, f, 1823, 781, 781, 0, false);
		run(&e, f, 5, 12672, 12672, 0, false);
	}
	run(&e, TILES, 1823, 781, 781, 0, false);
	run(&e, SPLIT, 1823, 781, 781, 256, false);
	run(&e, SPLIT, 7, 70001, 70016, 0, false);
	run(&e, ONLINE, 7, 70001, 70016, 0, false);
	if (!e.quick) {
		static const int columns[] = {256, 1024, 4096, 16384, 65536, 262144};
		for (int i = 0; i < 6; i++)
			run(&e, SUITABLE, (1 << 26) / columns[i] < 4096 ? (1 << 26) / columns[i] : 4096, columns[i],
				columns[i], 0, true);
		run(&e, PERSISTENT, 4096, 4096, 4096, 0, true);
		run(&e, ONLINE, 1024, 65536, 65536, 0, true);
	}
	return example_close(&e);
}
