/* Layer norm forward and backward against double precision, in f32 and f16; the backward pass under spin locks with
 * three numbers of groups, and without locks; and the locks launched again and again with more programs than run at
 * once. */
#include "../example.h"

static const double eps = 1e-5;

/* How far a result may be off: rounding of the computation in f32, and of the result in its own type. */
static double tolerance(blk_type type, double f32)
{
	return type == BLK_TYPE_F16 ? 1e-3 : f32;
}

static void forward(example *e, const char *form, blk_type type, int rows, int n, bool timed)
{
	size_t all = (size_t)rows * (size_t)n;
	float *x = example_normal(e, all, 13), *w = example_normal(e, (size_t)n, 14),
	      *b = example_normal(e, (size_t)n, 15);
	for (size_t i = 0; i < all; i++) x[i] = 100 + x[i]; /* a mean far from 0 shows cancellation */
	blk_buffer *bx = example_input(e, type, x, all), *by = example_output_of(e, type, all);
	blk_buffer *bw = example_input(e, type, w, (size_t)n), *bb = example_input(e, type, b, (size_t)n);
	blk_buffer *bm = example_output(e, (size_t)rows), *br = example_output(e, (size_t)rows);
	double *y = example_doubles(e, all), *mean = example_doubles(e, (size_t)rows);
	double *rstd = example_doubles(e, (size_t)rows);
	for (int r = 0; r < rows; r++) {
		const float *v = x + (size_t)r * (size_t)n;
		double s = 0, q = 0;
		for (int i = 0; i < n; i++) s += v[i];
		mean[r] = s / n;
		for (int i = 0; i < n; i++) q += (v[i] - mean[r]) * (v[i] - mean[r]);
		rstd[r] = 1 / sqrt(q / n + eps);
		for (int i = 0; i < n; i++)
			y[(size_t)r * (size_t)n + (size_t)i] = (v[i] - mean[r]) * rstd[r] * w[i] + b[i];
	}
	const char *name = type == BLK_TYPE_F16 ? "f16" : "f32";
	/* Where a time is wanted the number of warps is tuned, of a kernel that has a clause for it. */
	blk_kernel *kernel = example_kernel(e, form, timed ? "T=%s" : "T=%s num_warps=8", name);
	blk_arg args[] = {blk_buf(by), blk_buf(bx), blk_buf(bw), blk_buf(bb), blk_buf(bm), blk_buf(br), blk_i32(n),
		blk_i32(rows), blk_i32(n), blk_f32((float)eps)};
	TRY(blk_launch(kernel, NULL, NULL, args, 10));
	example_check(e, by, y, all, tolerance(type, 2e-5), "%s %s, %d x %d", form, name, rows, n);
	example_check(e, bm, mean, (size_t)rows, 1e-6, "mean, %d x %d", rows, n);
	example_check(e, br, rstd, (size_t)rows, 2e-5, "1 / deviation, %d x %d", rows, n);
	if (timed) {
		double bytes = 2.0 * (double)example_size(type) * (double)all;
		example_time(e, kernel, NULL, args, 10, bytes, form);
	}
	example_end_case(e);
}

typedef struct backward {
	blk_type type;
	int rows, n;
	blk_buffer *dx, *dw, *db, *part_w, *part_b, *dy, *x, *w, *mean, *rstd;
	double *want_dx, *want_dw, *want_db;
} backward;

static void backward_reference(backward *b, const float *x, const float *w, const float *dy, float *mean, float *rstd)
{
	int n = b->n;
	for (int r = 0; r < b->rows; r++) {
		size_t at = (size_t)r * (size_t)n;
		double m = 0, q = 0, c1 = 0, c2 = 0;
		for (int j = 0; j < n; j++) m += x[at + (size_t)j] / (double)n;
		for (int j = 0; j < n; j++) q += (x[at + (size_t)j] - m) * (x[at + (size_t)j] - m) / n;
		mean[r] = (float)m;
		rstd[r] = (float)(1 / sqrt(q + eps));
		for (int j = 0; j < n; j++) {
			double g = (double)w[j] * dy[at + (size_t)j];
			double xhat = ((double)x[at + (size_t)j] - mean[r]) * rstd[r];
			c1 += g / n;
			c2 += g * xhat / n;
		}
		for (int j = 0; j < n; j++) {
			double g = (double)w[j] * dy[at + (size_t)j];
			double xhat = ((double)x[at + (size_t)j] - mean[r]) * rstd[r];
			b->want_dx[at + (size_t)j] = rstd[r] * (g - c1 - xhat * c2);
			b->want_dw[j] += dy[at + (size_t)j] * xhat;
			b->want_db[j] += dy[at + (size_t)j];
		}
	}
}

/* Inputs, reference and outputs with room for `parts` rows of sums. */
static backward backward_case(example *e, blk_type type, int rows, int n, int parts)
{
	size_t all = (size_t)rows * (size_t)n, sums = (size_t)parts * (size_t)n;
	backward b = {.type = type, .rows = rows, .n = n};
	float *x = example_normal(e, all, 16), *w = example_normal(e, (size_t)n, 17), *dy = example_normal(e, all, 18);
	float *mean = example_alloc(e, (size_t)rows * sizeof *mean),
	      *rstd = example_alloc(e, (size_t)rows * sizeof *rstd);
	b.x = example_input(e, type, x, all);
	b.w = example_input(e, type, w, (size_t)n);
	b.dy = example_input(e, type, dy, all);
	b.want_dx = example_doubles(e, all);
	b.want_dw = example_doubles(e, (size_t)n);
	b.want_db = example_doubles(e, (size_t)n);
	backward_reference(&b, x, w, dy, mean, rstd);
	b.mean = example_buffer(e, mean, (size_t)rows);
	b.rstd = example_buffer(e, rstd, (size_t)rows);
	b.dx = example_output_of(e, type, all);
	b.dw = example_output_of(e, type, (size_t)n);
	b.db = example_output_of(e, type, (size_t)n);
	b.part_w = example_output(e, sums);
	b.part_b = example_output(e, sums);
	return b;
}

static blk_kernel *backward_kernel(example *e, const backward *b, const char *name)
{
	return example_kernel(e, name, "T=%s", b->type == BLK_TYPE_F16 ? "f16" : "f32");
}

/* Sums `parts` rows of sums to dw and db. */
static void backward_weights(example *e, const backward *b, int parts)
{
	blk_kernel *kernel = example_kernel(e, "layer_norm_weights", "T=%s", b->type == BLK_TYPE_F16 ? "f16" : "f32");
	TRY(blk_launch(kernel, NULL, NULL,
		BLK_ARGS(blk_buf(b->dw), blk_buf(b->db), blk_buf(b->part_w), blk_buf(b->part_b), blk_i32(parts),
			blk_i32(b->n))));
}

static void backward_check(example *e, const backward *b, const char *name)
{
	size_t all = (size_t)b->rows * (size_t)b->n;
	example_check(e, b->dx, b->want_dx, all, tolerance(b->type, 3e-6), "dx, %s, %d x %d", name, b->rows, b->n);
	example_check(
		e, b->dw, b->want_dw, (size_t)b->n, tolerance(b->type, 2e-5), "dw, %s, %d x %d", name, b->rows, b->n);
	example_check(
		e, b->db, b->want_db, (size_t)b->n, tolerance(b->type, 2e-5), "db, %s, %d x %d", name, b->rows, b->n);
}

static void locked(example *e, blk_type type, int rows, int n, int groups)
{
	backward b = backward_case(e, type, rows, n, groups);
	blk_buffer *lock = example_zeros(e, (size_t)groups), *count = example_zeros(e, (size_t)groups);
	TRY(blk_launch(backward_kernel(e, &b, "layer_norm_backward_locked"), NULL, NULL,
		BLK_ARGS(blk_buf(b.dx), blk_buf(b.part_w), blk_buf(b.part_b), blk_buf(lock), blk_buf(count),
			blk_buf(b.dy), blk_buf(b.x), blk_buf(b.w), blk_buf(b.mean), blk_buf(b.rstd), blk_i32(b.rows),
			blk_i32(b.n), blk_i32(groups))));
	backward_weights(e, &b, groups < rows ? groups : rows);
	char name[32];
	snprintf(name, sizeof name, "%d locks", groups);
	backward_check(e, &b, name);
	example_end_case(e);
}

static void free_of_locks(example *e, blk_type type, int rows, int n, bool timed)
{
	enum { PARTS = 264 };
	backward b = backward_case(e, type, rows, n, PARTS);
	blk_kernel *kernel = backward_kernel(e, &b, "layer_norm_backward");
	blk_grid grid = {(uint32_t)(rows < PARTS ? rows : PARTS), 1, 1};
	blk_arg args[] = {blk_buf(b.dx), blk_buf(b.part_w), blk_buf(b.part_b), blk_buf(b.dy), blk_buf(b.x),
		blk_buf(b.w), blk_buf(b.mean), blk_buf(b.rstd), blk_i32(b.rows), blk_i32(b.n)};
	TRY(blk_launch(kernel, NULL, &grid, args, 10));
	backward_weights(e, &b, (int)grid.x);
	backward_check(e, &b, type == BLK_TYPE_F16 ? "f16, no locks" : "no locks");
	if (timed) {
		double bytes = 3.0 * (double)example_size(type) * rows * n;
		example_time(e, kernel, &grid, args, 10, bytes, "layer norm backward, no locks");
	}
	example_end_case(e);
}

/* Far more programs than a device runs at once, contending for few locks, launch after launch: every launch must end,
 * leave its locks open, and give the same sums but for their order. */
static void locks_hold(example *e, int groups)
{
	enum { ROWS = 5003, N = 129 };
	blk_device_info info;
	TRY(blk_device_query(e->device, &info));
	int launches = info.kind == BLK_DEVICE_CUDA ? 1000 : 5;
	backward b = backward_case(e, BLK_TYPE_F32, ROWS, N, groups);
	blk_buffer *lock = example_zeros(e, (size_t)groups), *count = example_zeros(e, (size_t)groups);
	blk_kernel *kernel = backward_kernel(e, &b, "layer_norm_backward_locked");
	float *sums = example_alloc(e, (size_t)groups * N * sizeof *sums);
	int32_t *locks = example_alloc(e, (size_t)groups * sizeof *locks);
	double worst = 0, largest = 0;
	bool open = true;
	for (int j = 0; j < N; j++) largest = fmax(largest, fabs(b.want_dw[j]));
	for (int i = 0; i < launches; i++) {
		TRY(blk_buffer_fill(count, 0, 0, (size_t)groups * 4));
		TRY(blk_launch(kernel, NULL, NULL,
			BLK_ARGS(blk_buf(b.dx), blk_buf(b.part_w), blk_buf(b.part_b), blk_buf(lock), blk_buf(count),
				blk_buf(b.dy), blk_buf(b.x), blk_buf(b.w), blk_buf(b.mean), blk_buf(b.rstd),
				blk_i32(b.rows), blk_i32(b.n), blk_i32(groups))));
		TRY(blk_buffer_read(b.part_w, 0, sums, (size_t)groups * N * sizeof *sums));
		TRY(blk_buffer_read(lock, 0, locks, (size_t)groups * sizeof *locks));
		for (int g = 0; g < groups; g++) open = open && locks[g] == 0;
		for (int j = 0; j < N; j++) {
			double sum = 0;
			for (int g = 0; g < groups; g++) sum += (double)sums[g * N + j];
			double error = fabs(sum - b.want_dw[j]) / largest;
			if (!(error <= worst)) worst = error;
		}
	}
	bool good = open && worst <= 2e-5;
	printf("  %d launches of %d programs, %d locks %*s largest error %.2e%s\n", launches, ROWS, groups,
		groups < 10 ? 6 : 4, "", worst, good ? "" : "  WRONG");
	e->passed += good;
	e->failed += !good;
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "layer_norm");
	static const blk_type types[] = {BLK_TYPE_F32, BLK_TYPE_F16};
	static const struct {
		const char *name;
		int longest, timed; /* columns */
	} forms[] = {
		{"layer_norm_forward", 12672, 4096}, {"layer_norm_forward_tiles", 2000, 1024}, /* short rows */
	};
	static const int groups[] = {1, 64, 256}, contended[] = {8, 64, 256};
	for (int t = 0; t < 2; t++) {
		for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
			forward(&e, forms[f].name, types[t], 1, 1, false);
			forward(&e, forms[f].name, types[t], 3, 31, false);
			forward(&e, forms[f].name, types[t], 1823, 781, false);
			forward(&e, forms[f].name, types[t], 7, forms[f].longest, false);
			if (!e.quick) forward(&e, forms[f].name, types[t], 4096, forms[f].timed, true);
		}
		free_of_locks(&e, types[t], 3, 31, false);
		free_of_locks(&e, types[t], 1823, 781, false);
		free_of_locks(&e, types[t], 5, 9001, false); /* rows that are read again */
		if (!e.quick) free_of_locks(&e, types[t], 4096, 4096, true);
	}
	for (int i = 0; i < 3; i++) {
		locked(&e, BLK_TYPE_F32, 3, 31, groups[i]);
		locked(&e, BLK_TYPE_F32, 1823, 781, groups[i]);
		locks_hold(&e, contended[i]);
	}
	return example_close(&e);
}
