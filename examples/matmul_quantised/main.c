/* Products of quantised matrices on sizes that no tile divides: fp8 and i8 with scales for rows and columns, fp8 with
 * scales for blocks, and i8 weights with f16 activations. */
#include "../matrix.h"

enum { BLOCK = 128 }; /* of k, and of columns, that share a scale */

#define TILE " BM=64 BN=64 BK=64 num_warps=4 num_stages=3"

typedef struct form {
	const char *name, *kernel, *types, *tile;
	blk_type a, b, out;
	double u;
} form;

static const form forms[] = {
	{"e4m3", "matmul_fp8", "", TILE, BLK_TYPE_F8E4M3, BLK_TYPE_F8E4M3, BLK_TYPE_F16, 0x1p-13},
	{"e4m3 times e5m2, to f32", "matmul_fp8", "TB=f8e5m2 OUT=f32", TILE, BLK_TYPE_F8E4M3, BLK_TYPE_F8E5M2,
		BLK_TYPE_F32, 0x1p-13},
	{"e4m3, tensors", "matmul_fp8_tensor", "", " BM=64 BN=64 BK=128 PERSISTENT=false num_warps=4 num_stages=3",
		BLK_TYPE_F8E4M3, BLK_TYPE_F8E4M3, BLK_TYPE_F16, 0x1p-13},
	{"e4m3, tensors, persistent", "matmul_fp8_tensor", "PERSISTENT=true",
		" BM=64 BN=64 BK=128 num_warps=4 num_stages=3", BLK_TYPE_F8E4M3, BLK_TYPE_F8E4M3, BLK_TYPE_F16,
		0x1p-13},
	{"i8", "matmul_i8", "", TILE, BLK_TYPE_I8, BLK_TYPE_I8, BLK_TYPE_F16, 0},
	{"i8, to f32", "matmul_i8", "OUT=f32", " BM=128 BN=64 BK=128 num_warps=8 num_stages=3", BLK_TYPE_I8,
		BLK_TYPE_I8, BLK_TYPE_F32, 0},
	{"f16 times i8 weights", "matmul_weights", "", " BM=32 BN=64 BK=64 num_warps=4 num_stages=3", BLK_TYPE_F16,
		BLK_TYPE_I8, BLK_TYPE_F16, 0x1p-24},
	{"f16 times i8 weights, large tiles", "matmul_weights", "", " BM=128 BN=128 BK=64 num_warps=8 num_stages=3",
		BLK_TYPE_F16, BLK_TYPE_I8, BLK_TYPE_F16, 0x1p-24},
};

/* The value of an fp8 code without a sign. */
static double from_fp8(blk_type type, int code)
{
	int mantissa = type == BLK_TYPE_F8E4M3 ? 3 : 2, bias = type == BLK_TYPE_F8E4M3 ? 7 : 15;
	int exponent = code >> mantissa, low = code & ((1 << mantissa) - 1);
	return exponent ? ldexp(low + (1 << mantissa), exponent - bias - mantissa) : ldexp(low, 1 - bias - mantissa);
}

/* Elements of the type; `values` become what they stand for. */
static blk_buffer *input(example *e, blk_type type, float *values, size_t n)
{
	if (type == BLK_TYPE_F16) return example_input(e, type, values, n);
	int last = type == BLK_TYPE_F8E4M3 ? 126 : 123; /* the largest number's code */
	int8_t *bytes = example_alloc(e, n);
	double table[127];
	for (int code = 0; code <= last; code++) table[code] = from_fp8(type, code);
	for (size_t i = 0; i < n; i++) {
		int code = 0;
		if (type == BLK_TYPE_I8) {
			values[i] = (float)fmax(-128, fmin(127, nearbyint(32 * values[i])));
			bytes[i] = (int8_t)values[i];
			continue;
		}
		for (int step = 64; step; step /= 2) /* the largest that is not above it */
			if (code + step <= last && table[code + step] <= fabs(values[i])) code += step;
		bytes[i] = (int8_t)(values[i] < 0 ? code - 128 : code);
		values[i] = (float)copysign(table[code], values[i]);
	}
	return example_buffer_of(e, type, bytes, n);
}

static void transpose(example *e, float *b, int n, int k)
{
	float *t = example_alloc(e, (size_t)n * (size_t)k * sizeof *t);
	for (int j = 0; j < n; j++)
		for (int l = 0; l < k; l++) t[(size_t)l * (size_t)n + (size_t)j] = b[(size_t)j * (size_t)k + (size_t)l];
	memcpy(b, t, (size_t)n * (size_t)k * sizeof *t);
}

static void run(example *e, const form *f, int m, int n, int k, bool timed)
{
	bool weights = strcmp(f->kernel, "matmul_weights") == 0;
	bool turned = weights || strcmp(f->kernel, "matmul_fp8_tensor") == 0; /* B is [N, K] in memory */
	size_t na = (size_t)m * (size_t)k, nb = (size_t)k * (size_t)n, nc = (size_t)m * (size_t)n, nargs = 3;
	float *a = example_normal(e, na, 41), *b = example_normal(e, nb, 42);
	float *rows = example_normal(e, (size_t)m, 43), *columns = example_normal(e, (size_t)n, 44);
	for (int j = 0; j < n; j++) columns[j] *= 0x1p-6f; /* f16 holds the results */
	blk_buffer *c = example_output_of(e, f->out, nc);
	blk_arg args[8] = {blk_buf(c), blk_buf(input(e, f->a, a, na)), blk_buf(input(e, f->b, b, nb))};
	char what[128];
	if (!weights) args[nargs++] = blk_buf(example_buffer(e, rows, (size_t)m));
	args[nargs++] = blk_buf(example_buffer(e, columns, (size_t)n));
	args[nargs++] = blk_i32(m);
	args[nargs++] = blk_i32(n);
	args[nargs++] = blk_i32(k);
	snprintf(what, sizeof what, "%d x %d x %d, %s", m, n, k, f->name);
	if (timed) {
		matrix_time(example_kernel(e, f->kernel, "%s", f->types), args, nargs, 2.0 * m * n * k, what);
	} else {
		double *want = example_doubles(e, nc), *bound = example_doubles(e, nc);
		if (turned) transpose(e, b, n, k);
		matrix_multiply(want, bound, a, b, m, n, k, f->u);
		for (size_t i = 0; i < nc; i++) {
			double scale = columns[i % (size_t)n] * (weights ? 1.0 : rows[i / (size_t)n]);
			want[i] *= scale; /* the scales' product, the sum as f32, and theirs are rounded too */
			bound[i] = bound[i] * fabs(scale) + 3 * 0x1p-24 * fabs(want[i]);
		}
		matrix_add_rounding(bound, want, nc, f->out);
		TRY(blk_launch(example_kernel(e, f->kernel, "%s%s", f->types, f->tile), NULL, NULL, args, nargs));
		example_compare(e, c, want, bound, nc, 0, what);
	}
	example_end_case(e);
}

/* Adds columns first .. first + 128 of k, each row's sums scaled; b is [n, k] in memory. */
static void add_block(example *e, double *want, double *bound, const float *a, const float *b, const float *rows,
	const float *blocks, int m, int n, int k, int first)
{
	int length = k - first < BLOCK ? k - first : BLOCK, nblocks = (k + BLOCK - 1) / BLOCK;
	size_t nc = (size_t)m * (size_t)n;
	float *x = example_alloc(e, (size_t)m * (size_t)length * sizeof *x);
	float *y = example_alloc(e, (size_t)n * (size_t)length * sizeof *y);
	double *sums = example_doubles(e, nc), *sizes = example_doubles(e, nc);
	for (int l = 0; l < length; l++) {
		for (int i = 0; i < m; i++) x[i * length + l] = a[i * k + first + l];
		for (int j = 0; j < n; j++) y[l * n + j] = b[j * k + first + l];
	}
	matrix_multiply(sums, sizes, x, y, m, n, length, 0x1p-13);
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			size_t at = (size_t)i * (size_t)n + (size_t)j;
			double scale =
				(double)rows[i * nblocks + first / BLOCK] * blocks[j / BLOCK * nblocks + first / BLOCK];
			want[at] += sums[at] * scale;
			/* the scale, its product with the sum, and the sum of blocks are rounded too */
			bound[at] += (sizes[at] + (3 + nblocks) * 0x1p-24 * fabs(sums[at])) * fabs(scale);
		}
}

static void run_blocks(example *e, const char *tile, int m, int n, int k)
{
	int nblocks = (k + BLOCK - 1) / BLOCK, columns = (n + BLOCK - 1) / BLOCK;
	size_t nc = (size_t)m * (size_t)n, na = (size_t)m * (size_t)k, nb = (size_t)n * (size_t)k;
	size_t nrows = (size_t)m * (size_t)nblocks, nscales = (size_t)columns * (size_t)nblocks;
	float *a = example_normal(e, na, 51), *b = example_normal(e, nb, 52);
	float *rows = example_normal(e, nrows, 53), *blocks = example_normal(e, nscales, 54);
	double *want = example_doubles(e, nc), *bound = example_doubles(e, nc);
	blk_buffer *c = example_output_of(e, BLK_TYPE_F32, nc);
	blk_buffer *ba = input(e, BLK_TYPE_F8E4M3, a, na), *bb = input(e, BLK_TYPE_F8E4M3, b, nb);
	char what[128];
	for (int first = 0; first < k; first += BLOCK) add_block(e, want, bound, a, b, rows, blocks, m, n, k, first);
	matrix_add_rounding(bound, want, nc, BLK_TYPE_F32);
	TRY(blk_launch(example_kernel(e, "matmul_fp8_blocks", "OUT=f32%s", tile), NULL, NULL,
		BLK_ARGS(blk_buf(c), blk_buf(ba), blk_buf(bb), blk_buf(example_buffer(e, rows, nrows)),
			blk_buf(example_buffer(e, blocks, nscales)), blk_i32(m), blk_i32(n), blk_i32(k))));
	snprintf(what, sizeof what, "%d x %d x %d, e4m3 in blocks,%s", m, n, k, tile);
	example_compare(e, c, want, bound, nc, 0, what);
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "matmul_quantised");
	size_t nforms = sizeof forms / sizeof forms[0];
	for (size_t f = 0; f < nforms; f++) {
		run(&e, &forms[f], 1, 1, 1, false);
		run(&e, &forms[f], 75, 101, 199, false);
		run(&e, &forms[f], 200, 80, 272, false); /* K divisible by 16: wide accesses, masked at the end */
	}
	run_blocks(&e, " BM=64 BN=64", 1, 1, 1);
	run_blocks(&e, " BM=64 BN=64", 75, 101, 199);
	run_blocks(&e, " BM=128 BN=128 num_warps=8 num_stages=3", 200, 144, 400);
	if (!e.quick)
		for (size_t f = 0; f < nforms; f++)
			for (int n = 512; n <= matrix_largest(&e); n *= 4) run(&e, &forms[f], n, n, n, true);
	return example_close(&e);
}
