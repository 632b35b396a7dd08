/* Cross-entropy of rows of a vocabulary: one read of the logits, nothing written but a number a row. */
#include "bench.h"

typedef struct job {
	bench_launch launch;
	bench_array x, target, loss;
	int rows, n;
} job;

static void want_loss(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	for (size_t r = 0; r < count; r++) {
		size_t start = (first + r) * (size_t)j->n;
		double largest = -INFINITY, total = 0;
		for (int i = 0; i < j->n; i++) largest = fmax(largest, bench_at(&j->x, start + (size_t)i));
		for (int i = 0; i < j->n; i++) total += exp(bench_at(&j->x, start + (size_t)i) - largest);
		want[r] = log(total) + largest - bench_at(&j->x, start + (size_t)bench_at(&j->target, first + r));
	}
}

static void run(bench *b, int rows, int n)
{
	size_t all = (size_t)rows * (size_t)n;
	job j = {.x = bench_input(b, SCALAR_F32, all, 5, 0),
		.target = bench_input(b, SCALAR_I32, (size_t)rows, n, 0),
		.loss = bench_output(b, SCALAR_F32, (size_t)rows),
		.rows = rows,
		.n = n};
	bench_arguments(&j.launch, BLK_ARGS(blk_buf(j.loss.buffer), blk_buf(j.x.buffer), blk_buf(j.target.buffer),
					   blk_i32(rows), blk_i32(n)));
	bench_check check = {&j.loss, 8, want_loss, 2e-6};
	bench_begin(b, "cross-entropy f32", (double)all, 4 * (double)all, "%d x %d", rows, n);
	for (int lanes = 256; lanes <= 512; lanes *= 2)
		for (int repeat = 2; repeat <= 8; repeat *= 2) {
			char define[64];
			snprintf(define, sizeof define, "REPEAT=%d,LANES=%d", repeat, lanes);
			blk_module *m = bench_module(b, "cross_entropy", define);
			j.launch.kernel = bench_kernel(m, "cross_entropy");
			bench_try(b, define, &j, &check, 1);
			blk_module_close(m);
		}
	bench_end(b);
	bench_free(&j.x);
	bench_free(&j.target);
	bench_free(&j.loss);
}

int main(int argc, char **argv)
{
	static const int quick[][2] = {{3, 31}, {13, 5025}, {0}};
	static const int sizes[][2] = {{8192, 8192}, {4096, 32000}, {4096, 50257}, {2048, 131072}, {0}};
	return bench_main(argc, argv, "cross_entropy", run, quick, sizes);
}
