/* RMS norm of f16 rows: forward, and backward with the sum of its parts. */
#include "bench.h"

typedef struct job {
	bench_launch launch, weights;
	int rows, n;
	bench_array x, w, y, rstd, dy, dx, dw, partial, exact_rstd;
	double *want_dw;
} job;

static const double epsilon = 1e-5;

static double exact(const job *j, size_t row)
{
	double q = 0;
	for (size_t i = 0; i < (size_t)j->n; i++) {
		double v = bench_at(&j->x, row * (size_t)j->n + i);
		q += v * v;
	}
	return 1 / sqrt(q / j->n + epsilon);
}

static void want_y(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	double r = exact(j, first / (size_t)j->n);
	for (size_t i = 0; i < count; i++) want[i] = bench_at(&j->x, first + i) * r * bench_at(&j->w, i);
}

static void want_rstd(const void *context, size_t first, size_t count, double *want)
{
	for (size_t i = 0; i < count; i++) want[i] = exact(context, first + i);
}

static void want_dx(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	double c = 0, r = bench_at(&j->exact_rstd, first / (size_t)j->n);
	for (size_t i = 0; i < count; i++)
		c += bench_at(&j->w, i) * bench_at(&j->dy, first + i) * bench_at(&j->x, first + i) * r / j->n;
	for (size_t i = 0; i < count; i++)
		want[i] = r * (bench_at(&j->w, i) * bench_at(&j->dy, first + i) - bench_at(&j->x, first + i) * r * c);
}

static void want_dw(const void *context, size_t first, size_t count, double *want)
{
	memcpy(want, ((const job *)context)->want_dw + first, count * sizeof *want);
}

static void exact_rows(void *context, size_t from, size_t to)
{
	job *j = context;
	for (size_t r = from; r < to; r++) ((float *)j->exact_rstd.host)[r] = (float)exact(j, r);
}

static void sum_columns(void *context, size_t from, size_t to)
{
	job *j = context;
	memset(j->want_dw + from, 0, (to - from) * sizeof(double));
	for (size_t r = 0; r < (size_t)j->rows; r++)
		for (size_t c = from; c < to; c++)
			j->want_dw[c] += bench_at(&j->dy, r * (size_t)j->n + c) *
					 bench_at(&j->x, r * (size_t)j->n + c) * bench_at(&j->exact_rstd, r);
}

static void forward(bench *b, job *j)
{
	size_t rows = (size_t)j->rows, n = (size_t)j->n;
	bench_arguments(
		&j->launch, BLK_ARGS(blk_buf(j->y.buffer), blk_buf(j->x.buffer), blk_buf(j->w.buffer),
				    blk_buf(j->rstd.buffer), blk_i32(j->rows), blk_i32(j->n), blk_f32((float)epsilon)));
	bench_check checks[] = {{&j->y, n, want_y, 1e-3}, {&j->rstd, 64, want_rstd, 1e-5}};
	bench_begin(b, "rms norm forward f16", (double)(rows * n), 4.0 * (double)(rows * n), "%d x %d", j->rows, j->n);
	for (int block = 0; (block = bench_block_after(j->n, block));)
		for (int warps = 1; warps <= 16; warps *= 2) {
			if (block / (32 * warps) > 64 || (block < 128 * warps && warps > 1)) continue;
			char define[64];
			snprintf(define, sizeof define, "T=f16,BLOCK=%d,num_warps=%d", block, warps);
			blk_module *m = bench_module(b, "rms_norm", define);
			j->launch.kernel = bench_kernel(m, "rms_norm_forward");
			bench_try(b, define + strlen("T=f16,"), j, checks, 2);
			blk_module_close(m);
		}
	bench_end(b);
}

/* A share of the programs that run at once: fewer leave fewer parts to sum. */
static void try_backward(bench *b, job *j, int block, int warps, uint32_t share, blk_module *columns)
{
	char define[64], configuration[64];
	size_t n = (size_t)j->n;
	bench_check checks[] = {{&j->dx, n, want_dx, 1e-3}, {&j->dw, n, want_dw, 1e-4}};
	snprintf(define, sizeof define, "T=f16,BLOCK=%d,num_warps=%d", block, warps);
	blk_module *m = bench_module(b, "rms_norm", define);
	j->launch.kernel = bench_kernel(m, "rms_norm_backward");
	j->weights.kernel = bench_kernel(columns, "rms_norm_weights");
	bench_arguments(&j->launch,
		BLK_ARGS(blk_buf(j->dx.buffer), blk_buf(j->partial.buffer), blk_buf(j->dy.buffer), blk_buf(j->x.buffer),
			blk_buf(j->w.buffer), blk_buf(j->exact_rstd.buffer), blk_i32(j->rows), blk_i32(j->n)));
	blk_info info;
	TRY(blk_kernel_info(j->launch.kernel, j->launch.args, j->launch.nargs, &info));
	uint32_t programs = info.programs_per_sm * info.num_sms / share, most = (uint32_t)(j->partial.n / n);
	j->launch.grid = (blk_grid){programs < 1 ? 1 : programs < most ? programs : most, 1, 1};
	bench_arguments(&j->weights, BLK_ARGS(blk_buf(j->dw.buffer), blk_buf(j->partial.buffer),
					     blk_i32((int32_t)j->launch.grid.x), blk_i32(j->n)));
	j->launch.next = &j->weights;
	snprintf(configuration, sizeof configuration, "BLOCK=%d, %d warps, %u programs", block, warps,
		(unsigned)j->launch.grid.x);
	bench_try(b, configuration, j, checks, 2);
	blk_module_close(m);
}

static void backward(bench *b, job *j)
{
	size_t rows = (size_t)j->rows, n = (size_t)j->n, most = rows < 2112 ? rows : 2112;
	j->dy = bench_input(b, SCALAR_F16, rows * n, 0.1, 0);
	j->dx = bench_output(b, SCALAR_F16, rows * n);
	j->dw = bench_output(b, SCALAR_F32, n);
	j->partial = bench_output(b, SCALAR_F32, most * n);
	j->exact_rstd = bench_input(b, SCALAR_F32, rows, 1, 0);
	j->want_dw = bench_alloc(n * sizeof(double));
	bench_parallel(rows, exact_rows, j);
	TRY(blk_buffer_write(j->exact_rstd.buffer, 0, j->exact_rstd.host, rows * 4));
	bench_parallel(n, sum_columns, j);
	bench_begin(b, "rms norm backward f16", (double)(rows * n), 6.0 * (double)(rows * n), "%d x %d", j->rows, j->n);
	blk_module *columns = bench_module(b, "rms_norm", "");
	for (int block = 0; (block = bench_block_after(j->n, block));)
		for (int warps = 1; warps <= 16; warps *= 2) {
			if (block / (32 * warps) > 32 || (block < 128 * warps && warps > 1)) continue;
			for (uint32_t share = 1; share <= 2; share++) try_backward(b, j, block, warps, share, columns);
		}
	blk_module_close(columns);
	bench_end(b);
	bench_array *arrays[] = {&j->dy, &j->dx, &j->dw, &j->partial, &j->exact_rstd};
	for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) bench_free(arrays[i]);
	free(j->want_dw);
}

static void run(bench *b, int rows, int n)
{
	size_t all = (size_t)rows * (size_t)n;
	job j = {.rows = rows, .n = n};
	j.x = bench_input(b, SCALAR_F16, all, 1, 0);
	j.w = bench_input(b, SCALAR_F16, (size_t)n, 1, 0);
	j.y = bench_output(b, SCALAR_F16, all);
	j.rstd = bench_output(b, SCALAR_F32, (size_t)rows);
	forward(b, &j);
	backward(b, &j);
	bench_array *arrays[] = {&j.x, &j.w, &j.y, &j.rstd};
	for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) bench_free(arrays[i]);
}

int main(int argc, char **argv)
{
	static const int quick[][2] = {{3, 31}, {67, 781}, {0}};
	static const int sizes[][2] = {{4096, 1024}, {4096, 2048}, {4096, 4096}, {4096, 8192}, {4096, 16384}, {0}};
	return bench_main(argc, argv, "rms_norm", run, quick, sizes);
}
