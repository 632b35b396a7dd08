/* Layer norm of f16 rows: forward, and backward without locks (the rows' kernel and the sum of its parts). */
#include "bench.h"

typedef struct job {
	bench_launch launch, weights;
	int rows, n;
	bench_array x, w, b, y, mean, rstd; /* forward */
	bench_array dy, dx, dw, db, part_w, part_b, exact_mean, exact_rstd;
	double *want_dw, *want_db;
} job;

static const double epsilon = 1e-5;

static void moments(const job *j, size_t first, double *mean, double *rstd)
{
	double s = 0, q = 0;
	for (int i = 0; i < j->n; i++) s += bench_at(&j->x, first + (size_t)i);
	*mean = s / j->n;
	for (int i = 0; i < j->n; i++) {
		double d = bench_at(&j->x, first + (size_t)i) - *mean;
		q += d * d;
	}
	*rstd = 1 / sqrt(q / j->n + epsilon);
}

static void want_y(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	double mean, rstd;
	moments(j, first, &mean, &rstd);
	for (size_t i = 0; i < count; i++)
		want[i] = (bench_at(&j->x, first + i) - mean) * rstd * bench_at(&j->w, i) + bench_at(&j->b, i);
}

static void want_mean(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	double rstd;
	for (size_t i = 0; i < count; i++) moments(j, (first + i) * (size_t)j->n, &want[i], &rstd);
}

static void want_rstd(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	double mean;
	for (size_t i = 0; i < count; i++) moments(j, (first + i) * (size_t)j->n, &mean, &want[i]);
}

static void want_dx(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	double c1 = 0, c2 = 0, mean = bench_at(&j->exact_mean, first / (size_t)j->n),
	       rstd = bench_at(&j->exact_rstd, first / (size_t)j->n);
	for (size_t i = 0; i < count; i++) {
		double g = bench_at(&j->w, i) * bench_at(&j->dy, first + i);
		c1 += g / j->n;
		c2 += g * (bench_at(&j->x, first + i) - mean) * rstd / j->n;
	}
	for (size_t i = 0; i < count; i++)
		want[i] = rstd * (bench_at(&j->w, i) * bench_at(&j->dy, first + i) - c1 -
					 (bench_at(&j->x, first + i) - mean) * rstd * c2);
}

static void want_dw(const void *context, size_t first, size_t count, double *want)
{
	memcpy(want, ((const job *)context)->want_dw + first, count * sizeof *want);
}

static void want_db(const void *context, size_t first, size_t count, double *want)
{
	memcpy(want, ((const job *)context)->want_db + first, count * sizeof *want);
}

/* Columns from .. to of dw and db, row by row. */
static void sum_columns(void *context, size_t from, size_t to)
{
	job *j = context;
	memset(j->want_dw + from, 0, (to - from) * sizeof(double));
	memset(j->want_db + from, 0, (to - from) * sizeof(double));
	for (size_t r = 0; r < (size_t)j->rows; r++) {
		double mean = bench_at(&j->exact_mean, r), rstd = bench_at(&j->exact_rstd, r);
		for (size_t c = from; c < to; c++) {
			double g = bench_at(&j->dy, r * (size_t)j->n + c);
			j->want_dw[c] += g * (bench_at(&j->x, r * (size_t)j->n + c) - mean) * rstd;
			j->want_db[c] += g;
		}
	}
}

static void exact_rows(void *context, size_t from, size_t to)
{
	job *j = context;
	for (size_t r = from; r < to; r++) {
		double mean, rstd;
		moments(j, r * (size_t)j->n, &mean, &rstd);
		((float *)j->exact_mean.host)[r] = (float)mean;
		((float *)j->exact_rstd.host)[r] = (float)rstd;
	}
}

static void try_forward(bench *b, job *j, const bench_check *checks, const char *kernel, const char *format, ...)
{
	char define[64];
	va_list v;
	va_start(v, format);
	vsnprintf(define, sizeof define, format, v);
	va_end(v);
	blk_module *m = bench_module(b, "layer_norm", define);
	j->launch.kernel = bench_kernel(m, kernel);
	bench_try(b, define + strlen("T=f16,"), j, checks, 3);
	blk_module_close(m);
}

static void forward(bench *b, job *j)
{
	size_t rows = (size_t)j->rows, n = (size_t)j->n;
	bench_arguments(&j->launch, BLK_ARGS(blk_buf(j->y.buffer), blk_buf(j->x.buffer), blk_buf(j->w.buffer),
					    blk_buf(j->b.buffer), blk_buf(j->mean.buffer), blk_buf(j->rstd.buffer),
					    blk_i32(j->n), blk_i32(j->rows), blk_i32(j->n), blk_f32((float)epsilon)));
	bench_check checks[] = {
		{&j->y, n, want_y, 1e-3}, {&j->mean, 64, want_mean, 1e-5}, {&j->rstd, 64, want_rstd, 1e-5}};
	bench_begin(
		b, "layer norm forward f16", (double)(rows * n), 4.0 * (double)(rows * n), "%d x %d", j->rows, j->n);
	for (int block = 0; (block = bench_block_after(j->n, block));)
		for (int warps = 1; warps <= 16; warps *= 2) {
			if (block / (32 * warps) > 64 || (block < 128 * warps && warps > 1)) continue;
			try_forward(b, j, checks, "layer_norm_forward", "T=f16,BLOCK=%d,num_warps=%d", block, warps);
		}
	for (int block = bench_block(j->n), tile = 4; tile <= 8 && block <= 2048; tile *= 2)
		for (int warps = tile / 2; warps <= tile; warps *= 2)
			try_forward(b, j, checks, "layer_norm_forward_tiles", "T=f16,BLOCK=%d,ROWS=%d,num_warps=%d",
				block, tile, warps);
	bench_end(b);
}

/* As many programs as run at once, or half of them: fewer parts to sum. */
static void try_backward(bench *b, job *j, int block, int warps, int share, blk_module *columns)
{
	char define[64], configuration[64];
	size_t n = (size_t)j->n;
	bench_check checks[] = {{&j->dx, n, want_dx, 1e-3}, {&j->dw, n, want_dw, 1e-3}, {&j->db, n, want_db, 1e-3}};
	snprintf(define, sizeof define, "T=f16,BLOCK=%d,num_warps=%d", block, warps);
	blk_module *m = bench_module(b, "layer_norm", define);
	j->launch.kernel = bench_kernel(m, "layer_norm_backward");
	j->weights.kernel = bench_kernel(columns, "layer_norm_weights");
	bench_arguments(&j->launch,
		BLK_ARGS(blk_buf(j->dx.buffer), blk_buf(j->part_w.buffer), blk_buf(j->part_b.buffer),
			blk_buf(j->dy.buffer), blk_buf(j->x.buffer), blk_buf(j->w.buffer),
			blk_buf(j->exact_mean.buffer), blk_buf(j->exact_rstd.buffer), blk_i32(j->rows), blk_i32(j->n)));
	blk_info info;
	TRY(blk_kernel_info(j->launch.kernel, j->launch.args, j->launch.nargs, &info));
	uint32_t programs = info.programs_per_sm * info.num_sms / (uint32_t)share;
	size_t most = j->part_w.n / n;
	if (programs > most) programs = (uint32_t)most;
	j->launch.grid = (blk_grid){programs ? programs : 1, 1, 1};
	bench_arguments(
		&j->weights, BLK_ARGS(blk_buf(j->dw.buffer), blk_buf(j->db.buffer), blk_buf(j->part_w.buffer),
				     blk_buf(j->part_b.buffer), blk_i32((int32_t)j->launch.grid.x), blk_i32(j->n)));
	j->launch.next = &j->weights;
	snprintf(configuration, sizeof configuration, "BLOCK=%d, %d warps, %u programs", block, warps,
		(unsigned)j->launch.grid.x);
	bench_try(b, configuration, j, checks, 3);
	blk_module_close(m);
}

static void backward(bench *b, job *j)
{
	size_t rows = (size_t)j->rows, n = (size_t)j->n, most = rows < 2112 ? rows : 2112;
	j->dy = bench_input(b, SCALAR_F16, rows * n, 0.1, 0);
	j->dx = bench_output(b, SCALAR_F16, rows * n);
	j->dw = bench_output(b, SCALAR_F16, n);
	j->db = bench_output(b, SCALAR_F16, n);
	j->part_w = bench_output(b, SCALAR_F32, most * n);
	j->part_b = bench_output(b, SCALAR_F32, most * n);
	j->exact_mean = bench_input(b, SCALAR_F32, rows, 1, 0);
	j->exact_rstd = bench_input(b, SCALAR_F32, rows, 1, 0);
	j->want_dw = bench_alloc(n * sizeof(double));
	j->want_db = bench_alloc(n * sizeof(double));
	bench_parallel(rows, exact_rows, j);
	TRY(blk_buffer_write(j->exact_mean.buffer, 0, j->exact_mean.host, rows * 4));
	TRY(blk_buffer_write(j->exact_rstd.buffer, 0, j->exact_rstd.host, rows * 4));
	bench_parallel(n, sum_columns, j);
	bench_begin(
		b, "layer norm backward f16", (double)(rows * n), 6.0 * (double)(rows * n), "%d x %d", j->rows, j->n);
	blk_module *columns = bench_module(b, "layer_norm", "T=f16");
	for (int block = 0; (block = bench_block_after(j->n, block));)
		for (int warps = 1; warps <= 16; warps *= 2) {
			if (block / (32 * warps) > 64 || (block < 32 * warps * 4 && warps > 1)) continue;
			try_backward(b, j, block, warps, 1, columns);
			try_backward(b, j, block, warps, 2, columns);
		}
	blk_module_close(columns);
	bench_end(b);
	bench_array *arrays[] = {
		&j->dy, &j->dx, &j->dw, &j->db, &j->part_w, &j->part_b, &j->exact_mean, &j->exact_rstd};
	for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) bench_free(arrays[i]);
	free(j->want_dw);
	free(j->want_db);
}

static void run(bench *b, int rows, int n)
{
	size_t all = (size_t)rows * (size_t)n;
	job j = {.rows = rows, .n = n};
	j.x = bench_input(b, SCALAR_F16, all, 1, 2);
	j.w = bench_input(b, SCALAR_F16, (size_t)n, 1, 0);
	j.b = bench_input(b, SCALAR_F16, (size_t)n, 1, 0);
	j.y = bench_output(b, SCALAR_F16, all);
	j.mean = bench_output(b, SCALAR_F32, (size_t)rows);
	j.rstd = bench_output(b, SCALAR_F32, (size_t)rows);
	forward(b, &j);
	backward(b, &j);
	bench_array *arrays[] = {&j.x, &j.w, &j.b, &j.y, &j.mean, &j.rstd};
	for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) bench_free(arrays[i]);
}

int main(int argc, char **argv)
{
	static const int quick[][2] = {{3, 31}, {67, 781}, {0}};
	static const int sizes[][2] = {{4096, 1024}, {4096, 2048}, {4096, 4096}, {4096, 8192}, {4096, 16384}, {0}};
	return bench_main(argc, argv, "layer_norm", run, quick, sizes);
}
