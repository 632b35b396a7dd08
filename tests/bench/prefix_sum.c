/* Prefix sum of a long array of i32 by decoupled look-back: one read, one write. */
#include "bench.h"

enum { CHUNK = 1 << 14 };

typedef struct job {
	bench_launch launch;
	bench_array x, y;
	uint32_t *before; /* the sum of all elements before each chunk */
} job;

static void want_sums(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	uint32_t sum = j->before[first / CHUNK];
	for (size_t i = 0; i < count; i++) {
		sum += ((const uint32_t *)j->x.host)[first + i];
		want[i] = (int32_t)sum;
	}
}

static void run(bench *b, size_t n, const char *size)
{
	job j = {.x = bench_input(b, SCALAR_I32, n, 1000, 0), .y = bench_output(b, SCALAR_I32, n)};
	uint32_t sum = 0;
	j.before = bench_alloc((n / CHUNK + 1) * sizeof *j.before);
	for (size_t i = 0; i < n; i++) {
		if (i % CHUNK == 0) j.before[i / CHUNK] = sum;
		sum += ((const uint32_t *)j.x.host)[i];
	}
	bench_check check = {&j.y, CHUNK, want_sums, 0};
	bench_begin(b, "prefix sum i32", (double)n, 8.0 * (double)n, "%s", size);
	for (int block = 2048; block <= 8192; block *= 2)
		for (int warps = 4; warps <= 16; warps *= 2) {
			blk_buffer *words; /* zeros, and left as zeros */
			size_t bytes = (2 + (n + (size_t)block - 1) / (size_t)block) * 8;
			char define[64];
			TRY(blk_buffer_create(b->device, bytes, &words));
			TRY(blk_buffer_fill(words, 0, 0, bytes));
			bench_arguments(&j.launch, BLK_ARGS(blk_buf(j.y.buffer), blk_buf(j.x.buffer), blk_buf(words),
							   blk_i32((int32_t)n)));
			snprintf(define, sizeof define, "BLOCK=%d,num_warps=%d", block, warps);
			blk_module *m = bench_module(b, "prefix_sum", define);
			j.launch.kernel = bench_kernel(m, "prefix_sum");
			bench_try(b, define, &j, &check, 1);
			blk_module_close(m);
			blk_buffer_free(words);
		}
	bench_end(b);
	bench_free(&j.x);
	bench_free(&j.y);
	free(j.before);
}

int main(int argc, char **argv)
{
	bench b = bench_open(argc, argv, "prefix_sum");
	if (b.quick) {
		run(&b, 1, "1");
		run(&b, 98432, "98432");
		return bench_close(&b);
	}
	for (int p = 20; p <= 27; p++) {
		char size[16];
		snprintf(size, sizeof size, "2^%d", p);
		run(&b, (size_t)1 << p, size);
	}
	return bench_close(&b);
}
