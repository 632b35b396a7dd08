/* RMS norm forward and backward against double precision. */
#include "../example.h"

static void run(example *e, int rows, int n, bool timed)
{
	const double eps = 1e-5;
	enum { PROGRAMS = 200 };
	size_t all = (size_t)rows * (size_t)n;
	float *x = example_normal(e, all, 31), *w = example_normal(e, (size_t)n, 32), *dy = example_normal(e, all, 33);
	double *y = example_doubles(e, all), *dx = example_doubles(e, all);
	double *dw = example_doubles(e, (size_t)n), *rstd = example_doubles(e, (size_t)rows);
	for (int r = 0; r < rows; r++) {
		const float *v = x + (size_t)r * (size_t)n, *g = dy + (size_t)r * (size_t)n;
		double q = 0, c = 0;
		for (int j = 0; j < n; j++) q += (double)v[j] * v[j];
		rstd[r] = 1 / sqrt(q / n + eps);
		for (int j = 0; j < n; j++) c += (double)w[j] * g[j] * v[j] * rstd[r] / n;
		for (int j = 0; j < n; j++) {
			double xhat = v[j] * rstd[r];
			y[(size_t)r * (size_t)n + (size_t)j] = xhat * w[j];
			dx[(size_t)r * (size_t)n + (size_t)j] = rstd[r] * ((double)w[j] * g[j] - xhat * c);
			dw[j] += g[j] * xhat;
		}
	}
	blk_buffer *bx = example_buffer(e, x, all), *bw = example_buffer(e, w, (size_t)n);
	blk_buffer *bdy = example_buffer(e, dy, all), *by = example_output(e, all), *bdx = example_output(e, all);
	blk_buffer *bdw = example_output(e, (size_t)n), *br = example_output(e, (size_t)rows);
	blk_buffer *bp = example_output(e, (size_t)PROGRAMS * (size_t)n);
	blk_kernel *forward = example_kernel(e, "rms_norm_forward", ""),
		   *backward = example_kernel(e, "rms_norm_backward", "");
	blk_kernel *weights = example_kernel(e, "rms_norm_weights", "");
	blk_arg f[] = {
		blk_buf(by), blk_buf(bx), blk_buf(bw), blk_buf(br), blk_i32(rows), blk_i32(n), blk_f32((float)eps)};
	blk_arg b[] = {blk_buf(bdx), blk_buf(bp), blk_buf(bdy), blk_buf(bx), blk_buf(bw), blk_buf(br), blk_i32(rows),
		blk_i32(n)};
	int parts = rows < PROGRAMS ? rows : PROGRAMS;
	blk_grid grid = {(uint32_t)parts, 1, 1};
	TRY(blk_launch(forward, NULL, NULL, f, 7));
	TRY(blk_launch(backward, NULL, &grid, b, 8));
	TRY(blk_launch(weights, NULL, NULL, BLK_ARGS(blk_buf(bdw), blk_buf(bp), blk_i32(parts), blk_i32(n))));
	example_check(e, by, y, all, 2e-6, "rms norm forward, %d x %d", rows, n);
	example_check(e, bdx, dx, all, 3e-6, "rms norm dx, %d x %d", rows, n);
	example_check(e, bdw, dw, (size_t)n, 1e-5, "rms norm dw, %d x %d", rows, n);
	if (timed) {
		example_time(e, forward, NULL, f, 7, 8.0 * (double)all, "rms norm forward");
		example_time(e, backward, &grid, b, 8, 12.0 * (double)all, "rms norm backward");
	}
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "rms_norm");
	run(&e, 1, 5, false);
	run(&e, 3, 31, false);
	run(&e, 1823, 781, false);
	if (!e.quick) run(&e, 4096, 4096, true);
	return example_close(&e);
}
