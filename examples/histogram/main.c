/* Histograms of bytes and of i32 with values outside of the bins, exactly. */
#include "../example.h"

static void run(example *e, blk_type type, int n, int bins, bool timed)
{
	size_t all = (size_t)n, size = example_size(type);
	unsigned char *x = example_alloc(e, all * size);
	double *want = example_doubles(e, (size_t)bins);
	uint64_t state = 71;
	for (size_t i = 0; i < all; i++) {
		/* half of them crowd in a few values, so that neighbours collide */
		int32_t v = (int32_t)(example_random(&state) % 300) - 20;
		if (i & 1) v = (int32_t)(example_random(&state) % 5);
		if (type == BLK_TYPE_U8) v &= 255;
		if (v >= 0 && v < bins) want[v]++;
		memcpy(x + i * size, &v, size);
	}
	blk_buffer *bx = example_buffer_of(e, type, x, all), *counts = example_output_of(e, BLK_TYPE_I32, (size_t)bins);
	TRY(blk_buffer_fill(counts, 0, 0, (size_t)bins * 4));
	const char *name = type == BLK_TYPE_U8 ? "u8" : "i32";
	blk_kernel *kernel = example_kernel(e, "histogram_add", "T=%s BINS=%d", name, bins);
	blk_arg args[] = {blk_buf(counts), blk_buf(bx), blk_i64(n)};
	TRY(blk_launch(kernel, NULL, NULL, args, 3));
	example_check(e, counts, want, (size_t)bins, 0, "histogram %s, n = %d, %d bins", name, n, bins);
	if (timed) example_time(e, kernel, NULL, args, 3, (double)size * n, "histogram");
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "histogram");
	static const blk_type types[] = {BLK_TYPE_U8, BLK_TYPE_I32};
	static const int sizes[] = {0, 1, 31, 8193, 98432, 1000007};
	for (int t = 0; t < 2; t++) {
		for (int i = 0; i < 6; i++) run(&e, types[t], sizes[i], 256, false);
		run(&e, types[t], 98432, 16, false);
		if (!e.quick) run(&e, types[t], 1 << 27, 256, true);
	}
	return example_close(&e);
}
