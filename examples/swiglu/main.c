/* silu(x w1) (x w3) in double precision, on sizes that no tile divides; weights as [N, K] and as [K, N]. */
#include "../matrix.h"

typedef struct form {
	const char *name, *define;
	blk_type type;
	bool transposed, timed; /* with the tuner's choice, once a type */
} form;

static const form forms[] = {
	{"f16", "BM=64 BN=64 BK=64 num_warps=4 num_stages=3", BLK_TYPE_F16, true, true},
	{"f16, [K, N]", "TRANSPOSED=false BM=64 BN=32 BK=32 num_warps=4 num_stages=3", BLK_TYPE_F16, false, false},
	{"bf16, persistent", "T=bf16 PERSISTENT=true BM=128 BN=64 BK=64 num_warps=8 num_stages=3", BLK_TYPE_BF16, true,
		true},
	{"f16, clusters of two", "BM=64 BN=96 BK=64 num_warps=4 num_stages=4 num_ctas=2", BLK_TYPE_F16, true, false},
};

/* What rounding the result costs. */
static double half_unit(blk_type t)
{
	return t == BLK_TYPE_F16 ? 0x1p-11 : 0x1p-8;
}

static void run(example *e, const form *f, int m, int n, int k, bool timed)
{
	size_t cell = (size_t)m * (size_t)n, nx = (size_t)m * (size_t)k, nw = (size_t)n * (size_t)k;
	float *x = example_normal(e, nx, 41), *stored[] = {example_normal(e, nw, 42), example_normal(e, nw, 43)};
	blk_buffer *y = example_output_of(e, f->type, cell);
	blk_arg args[] = {blk_buf(y), blk_buf(example_input(e, f->type, x, nx)),
		blk_buf(example_input(e, f->type, stored[0], nw)), blk_buf(example_input(e, f->type, stored[1], nw)),
		blk_i32(m), blk_i32(n), blk_i32(k)};
	char what[128];
	snprintf(what, sizeof what, "%d x %d x %d, %s", m, n, k, f->name);
	if (timed) {
		matrix_time(example_kernel(e, "swiglu", "T=%s", f->type == BLK_TYPE_F16 ? "f16" : "bf16"), args, 7,
			4.0 * m * n * k, what);
	} else {
		double *v[2], *bound[2];
		for (int t = 0; t < 2; t++) {
			float *w = f->transposed ? example_normal(e, nw, 1) : stored[t]; /* [K, N] */
			for (int i = 0; f->transposed && i < n; i++)
				for (int l = 0; l < k; l++)
					w[(size_t)l * (size_t)n + (size_t)i] =
						stored[t][(size_t)i * (size_t)k + (size_t)l];
			v[t] = example_doubles(e, cell), bound[t] = example_doubles(e, cell);
			matrix_multiply(v[t], bound[t], x, w, m, n, k, 0x1p-24);
		}
		for (size_t i = 0; i < cell; i++) {
			double a = v[0][i], b = v[1][i], s = a / (1 + exp(-a));
			double off = 1.1 * bound[0][i] + fabs(s) * 0x1p-20; /* silu's steepest slope; its arithmetic */
			bound[0][i] = off * (fabs(b) + bound[1][i]) + fabs(s) * bound[1][i];
			v[0][i] = s * b;
			bound[0][i] += fabs(v[0][i]) * half_unit(f->type) + 0x1p-25;
		}
		TRY(blk_launch(example_kernel(e, "swiglu", "%s", f->define), NULL, NULL, args, 7));
		example_compare(e, y, v[0], bound[0], cell, 0, what);
	}
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "swiglu");
	for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
		run(&e, &forms[f], 1, 1, 1, false);
		run(&e, &forms[f], 157, 101, 99, false);
		run(&e, &forms[f], 136, 72, 208, false); /* divisible by 8: copies of blocks, cut at the end */
	}
	if (!e.quick) {
		int largest = matrix_largest(&e), each = largest < 4096 ? largest : 4096;
		for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
			if (forms[f].timed) run(&e, &forms[f], each, each, each, true);
	}
	return example_close(&e);
}
