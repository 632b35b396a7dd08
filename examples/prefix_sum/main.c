/* Prefix sum of a long array: exact for i32, whose sums wrap, and against double precision for f32. */
#include "../example.h"

static void run(example *e, blk_type type, int n, int block, bool timed)
{
	size_t all = (size_t)n;
	double *want = example_doubles(e, all);
	int32_t *integers = example_alloc(e, all * sizeof *integers);
	float *floats = example_alloc(e, all * sizeof *floats);
	uint64_t state = 61;
	uint32_t wrapped = 0;
	double sum = 0;
	for (int i = 0; i < n; i++) {
		integers[i] = (int32_t)example_random(&state);
		floats[i] = (float)((double)(example_random(&state) >> 40) * 0x1p-24);
		wrapped += (uint32_t)integers[i];
		sum += floats[i];
		want[i] = type == BLK_TYPE_I32 ? (int32_t)wrapped : sum;
	}
	blk_buffer *x = example_buffer_of(e, type, type == BLK_TYPE_I32 ? (const void *)integers : floats, all);
	blk_buffer *y = example_output_of(e, type, all);
	/* A 64-bit word for each block and two more: zeros, and zeros again after the launch. */
	blk_buffer *words = example_zeros(e, 2 * (2 + (all + (size_t)block - 1) / (size_t)block));
	const char *name = type == BLK_TYPE_I32 ? "i32" : "f32";
	blk_kernel *kernel = example_kernel(e, "prefix_sum", "T=%s BLOCK=%d", name, block);
	blk_arg args[] = {blk_buf(y), blk_buf(x), blk_buf(words), blk_i32(n)};
	for (int i = 0; i < 3; i++) TRY(blk_launch(kernel, NULL, NULL, args, 4));
	example_check(e, y, want, all, type == BLK_TYPE_I32 ? 0 : 1e-5, "prefix sum %s, n = %d, blocks of %d", name, n,
		block);
	if (timed) example_time(e, kernel, NULL, args, 4, 8.0 * n, "prefix sum");
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "prefix_sum");
	static const blk_type types[] = {BLK_TYPE_I32, BLK_TYPE_F32};
	static const int sizes[] = {0, 1, 31, 4097, 98432, 1000007};
	for (int t = 0; t < 2; t++) {
		for (int i = 0; i < 6; i++) run(&e, types[t], sizes[i], 4096, false);
		run(&e, types[t], 98432, 256, false); /* hundreds of tiles, which look back far */
		if (!e.quick) run(&e, types[t], (1 << 24) + 3, 4096, true);
		if (!e.quick) run(&e, types[t], 1 << 26, 4096, true);
	}
	return example_close(&e);
}
