/* Transposes of batches of matrices, f32 and f16. */
#include "bench.h"

typedef struct job {
	bench_launch launch;
	bench_array x, y;
	size_t rows, columns; /* of x's matrices */
} job;

/* One row of one matrix of y: a column of x. */
static void want_row(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	size_t matrix = first / (j->rows * j->columns), column = first / j->rows % j->columns;
	for (size_t i = 0; i < count; i++) want[i] = bench_at(&j->x, (matrix * j->rows + i) * j->columns + column);
}

static void run(bench *b, scalar type, int batch, int rows, int columns)
{
	static const char *const tiles[] = {"BM=32,BN=32,num_warps=4", "BM=64,BN=64,num_warps=4",
		"BM=64,BN=64,num_warps=8", "BM=64,BN=128,num_warps=8", "BM=128,BN=64,num_warps=8"};
	size_t all = (size_t)batch * (size_t)rows * (size_t)columns;
	job j = {.x = bench_input(b, type, all, 1, 0),
		.y = bench_output(b, type, all),
		.rows = (size_t)rows,
		.columns = (size_t)columns};
	bench_arguments(&j.launch,
		BLK_ARGS(blk_buf(j.y.buffer), blk_buf(j.x.buffer), blk_i32(batch), blk_i32(rows), blk_i32(columns)));
	bench_check check = {&j.y, j.rows, want_row, 0};
	bench_begin(b, type == SCALAR_F32 ? "transpose f32" : "transpose f16", (double)all,
		2.0 * (double)bench_bytes(&j.x, all), "%d x %d x %d", batch, rows, columns);
	for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
		char define[64];
		snprintf(define, sizeof define, "T=%s,%s", type == SCALAR_F32 ? "f32" : "f16", tiles[i]);
		blk_module *m = bench_module(b, "transpose", define);
		j.launch.kernel = bench_kernel(m, "transpose_batched");
		bench_try(b, tiles[i], &j, &check, 1);
		blk_module_close(m);
	}
	bench_end(b);
	bench_free(&j.x);
	bench_free(&j.y);
}

int main(int argc, char **argv)
{
	bench b = bench_open(argc, argv, "transpose");
	static const scalar types[] = {SCALAR_F32, SCALAR_F16};
	for (size_t t = 0; t < 2; t++) {
		if (b.quick) {
			run(&b, types[t], 3, 31, 65);
			run(&b, types[t], 1, 203, 178);
			continue;
		}
		run(&b, types[t], 16, 1024, 1024);
		run(&b, types[t], 4, 4096, 4096);
		run(&b, types[t], 1, 16384, 16384);
	}
	return bench_close(&b);
}
