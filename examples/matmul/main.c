/* Matrix products on sizes that no tile divides: one program a tile, persistent, batched, split along K, with leaky
 * ReLU, with bias and GELU, in f16, f32, fp8, and i8 with scales. */
#include "../example.h"

typedef struct form {
	const char *name, *kernel, *defines;
	blk_type in, out;
	double tolerance; /* of the largest magnitude of the result */
	int batch;
} form;

static const form forms[] = {
	{"f16", "matmul", "", BLK_TYPE_F16, BLK_TYPE_F16, 1e-3, 1},
	{"f16, leaky ReLU", "matmul", "LEAKY=true", BLK_TYPE_F16, BLK_TYPE_F16, 1e-3, 1},
	{"f16, tiles 64 x 32 x 64", "matmul", "BM=64 BN=32 BK=64 num_warps=4", BLK_TYPE_F16, BLK_TYPE_F16, 1e-3, 1},
	{"f32, leaky ReLU", "matmul", "T=f32 LEAKY=true BM=64 BN=64", BLK_TYPE_F32, BLK_TYPE_F32, 2e-3, 1},
	{"e4m3", "matmul", "T=f8e4m3 OUT=f32 BK=64", BLK_TYPE_F8E4M3, BLK_TYPE_F32, 1e-3, 1},
	{"f16, persistent", "matmul_persistent", "", BLK_TYPE_F16, BLK_TYPE_F16, 1e-3, 1},
	{"f16, batched", "matmul_batched", "", BLK_TYPE_F16, BLK_TYPE_F16, 1e-3, 3},
	{"f16, split along K", "matmul_split_k", "", BLK_TYPE_F16, BLK_TYPE_F32, 1e-3, 1},
	{"f16, bias and GELU", "matmul_bias_gelu", "", BLK_TYPE_F16, BLK_TYPE_F16, 1e-3, 1},
	{"i8 with scales", "matmul_scaled", "", BLK_TYPE_I8, BLK_TYPE_F32, 1e-5, 1},
};

static bool is(const form *f, const char *kernel)
{
	return strcmp(f->kernel, kernel) == 0;
}

/* The value of an e4m3 code without a sign; 127 is nan. */
static double from_e4m3(int code)
{
	return code < 8 ? ldexp(code, -9) : ldexp(8 + (code & 7), (code >> 3) - 10);
}

/* Random elements of the form's type; `values` are what they stand for. */
static blk_buffer *input(example *e, blk_type type, float *values, size_t n)
{
	if (type != BLK_TYPE_I8 && type != BLK_TYPE_F8E4M3) return example_input(e, type, values, n);
	int8_t *bytes = example_alloc(e, n);
	for (size_t i = 0; i < n; i++) {
		int code = 0;
		if (type == BLK_TYPE_I8) {
			values[i] = (float)fmax(-127, fmin(127, nearbyint(32 * values[i])));
			bytes[i] = (int8_t)values[i];
			continue;
		}
		while (code < 126 && from_e4m3(code + 1) <= fabs(values[i])) code++;
		bytes[i] = (int8_t)(values[i] < 0 ? code - 128 : code);
		values[i] = (float)(values[i] < 0 ? -from_e4m3(code) : from_e4m3(code));
	}
	return example_buffer_of(e, type, bytes, n);
}

/* want = a b, in double precision, row by row. */
static void multiply(double *want, const float *a, const float *b, int m, int n, int k)
{
	for (int i = 0; i < m; i++)
		for (int l = 0; l < k; l++) {
			double x = a[(size_t)i * (size_t)k + (size_t)l];
			for (int j = 0; j < n; j++)
				want[(size_t)i * (size_t)n + (size_t)j] += x * b[(size_t)l * (size_t)n + (size_t)j];
		}
}

/* What the form does with an element of the product. */
static double finish(const form *f, double v, const float *rows, const float *columns, int i, int j)
{
	if (strstr(f->defines, "LEAKY")) return v < 0 ? 0.01 * v : v;
	if (is(f, "matmul_scaled")) return v * rows[i] * columns[j];
	if (!is(f, "matmul_bias_gelu")) return v;
	v += columns[j];
	return 0.5 * v * (1 + tanh(0.79788456080286541 * (v + 0.044715 * v * v * v)));
}

static void run(example *e, const form *f, int m, int n, int k, bool timed)
{
	size_t na = (size_t)f->batch * (size_t)m * (size_t)k, nb = (size_t)f->batch * (size_t)k * (size_t)n;
	size_t nc = (size_t)f->batch * (size_t)m * (size_t)n;
	float *a = example_normal(e, na, 31), *b = example_normal(e, nb, 32);
	float *rows = example_normal(e, (size_t)m, 33), *columns = example_normal(e, (size_t)n, 34);
	blk_buffer *c = example_output_of(e, f->out, nc);
	blk_arg args[8] = {blk_buf(c), blk_buf(input(e, f->in, a, na)), blk_buf(input(e, f->in, b, nb))};
	size_t nargs = 3;
	if (is(f, "matmul_scaled")) args[nargs++] = blk_buf(example_buffer(e, rows, (size_t)m));
	if (is(f, "matmul_scaled")) args[nargs++] = blk_buf(example_buffer(e, columns, (size_t)n));
	if (is(f, "matmul_bias_gelu")) args[nargs++] = blk_buf(input(e, f->in, columns, (size_t)n));
	if (is(f, "matmul_batched")) args[nargs++] = blk_i32(f->batch);
	args[nargs++] = blk_i32(m);
	args[nargs++] = blk_i32(n);
	args[nargs++] = blk_i32(k);
	if (is(f, "matmul_split_k")) TRY(blk_buffer_write(c, 0, example_alloc(e, nc * 4), nc * 4));
	blk_kernel *kernel = example_kernel(e, f->kernel, "%s", f->defines);
	if (timed) {
		blk_timing t;
		TRY(blk_bench(kernel, NULL, args, nargs, NULL, &t));
		printf("  %d x %d x %d, %-28s %.3f ms, %.2f TFLOP/s\n", m, n, k, f->name, t.median_ms,
			2e-9 * f->batch * m * n * k / t.median_ms);
	} else {
		double *want = example_doubles(e, nc);
		for (int t = 0; t < f->batch; t++) {
			size_t cell = (size_t)m * (size_t)n;
			multiply(want + (size_t)t * cell, a + (size_t)t * (size_t)m * (size_t)k,
				b + (size_t)t * (size_t)k * (size_t)n, m, n, k);
		}
		for (size_t i = 0; i < nc; i++)
			want[i] = finish(f, want[i], rows, columns, (int)(i / (size_t)n) % m, (int)(i % (size_t)n));
		TRY(blk_launch(kernel, NULL, NULL, args, nargs));
		example_check(e, c, want, nc, f->tolerance, "%d x %d x %d, %s", m, n, k, f->name);
	}
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "matmul");
	size_t nforms = sizeof forms / sizeof forms[0];
	for (size_t f = 0; f < nforms; f++) {
		run(&e, &forms[f], 1, 1, 1, false);
		run(&e, &forms[f], 128, 128, 128, false);
		run(&e, &forms[f], 157, 101, 199, false);
		run(&e, &forms[f], 200, 24, 272, false); /* K divisible by 16: wide accesses, masked at the end */
	}
	if (!e.quick) {
		bool cpu = strncmp(blk_device_name(e.device), "cuda", 4) != 0 &&
			   strstr(blk_device_name(e.device), "NVIDIA") == NULL;
		for (int n = 512; n <= (cpu ? 1024 : 8192); n *= 2) run(&e, &forms[0], n, n, n, true);
		for (size_t f = 1; f < nforms; f++) run(&e, &forms[f], 1024, 1024, 1024, true);
	}
	return example_close(&e);
}
