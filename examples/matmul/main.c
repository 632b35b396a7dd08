/* Matrix products on sizes that no tile divides: one program a tile, with pointers and with tensors, persistent,
 * batched, split along K, stream-K, whole waves and parts, with leaky ReLU, with bias and GELU. */
#include "../matrix.h"

/* Small tiles, for small matrices; without them a kernel is tuned. */
#define TILE " BM=64 BN=64 BK=32 num_warps=4 num_stages=3"

typedef struct form {
	const char *name, *kernel, *types, *tile;
	blk_type in, out;
	double u; /* of the sums, as docs/language.md has it */
	int batch;
} form;

static const form forms[] = {
	{"f16", "matmul", "", " BM=128 BN=128 BK=32 num_warps=8 num_stages=3", BLK_TYPE_F16, BLK_TYPE_F16, 0x1p-24, 1},
	{"f16, tiles 64 x 32 x 64", "matmul", "", " BM=64 BN=32 BK=64 num_warps=2 num_stages=5", BLK_TYPE_F16,
		BLK_TYPE_F16, 0x1p-24, 1},
	{"f16, leaky ReLU", "matmul", "LEAKY=true", TILE, BLK_TYPE_F16, BLK_TYPE_F16, 0x1p-24, 1},
	{"f32, leaky ReLU", "matmul", "T=f32 LEAKY=true", TILE, BLK_TYPE_F32, BLK_TYPE_F32, 0x1p-11, 1},
	{"f16, pointers, 192 rows", "matmul_tuned_pointers", "", " BM=192 BN=64 BK=32 num_warps=4 num_stages=3",
		BLK_TYPE_F16, BLK_TYPE_F16, 0x1p-24, 1},
	{"f16 to f32, pointers, persistent", "matmul_tuned_pointers", "OUT=f32",
		" BM=64 BN=32 BK=32 PERSISTENT=true num_warps=4 num_stages=3", BLK_TYPE_F16, BLK_TYPE_F32, 0x1p-24, 1},
	{"f16, pointers, persistent, 80 rows", "matmul_tuned_pointers", "",
		" BM=80 BN=64 BK=64 PERSISTENT=true num_warps=4 num_stages=3", BLK_TYPE_F16, BLK_TYPE_F16, 0x1p-24, 1},
	{"f16, tensors", "matmul_tensor", "", " BM=128 BN=64 BK=32 num_warps=4 num_stages=3", BLK_TYPE_F16,
		BLK_TYPE_F16, 0x1p-24, 1},
	{"f16, persistent", "matmul_persistent", "", TILE, BLK_TYPE_F16, BLK_TYPE_F16, 0x1p-24, 1},
	{"f16, 192 rows", "matmul_tuned", "", " BM=192 BN=64 BK=32 num_warps=4 num_stages=3", BLK_TYPE_F16,
		BLK_TYPE_F16, 0x1p-24, 1},
	{"f16, persistent, 192 rows of three groups", "matmul_tuned", "",
		" BM=192 BN=64 BK=32 PERSISTENT=true num_warps=12 num_stages=4", BLK_TYPE_F16, BLK_TYPE_F16, 0x1p-24,
		1},
	{"f16, 80 columns", "matmul_tuned", "", " BM=64 BN=80 BK=64 num_warps=4 num_stages=4", BLK_TYPE_F16,
		BLK_TYPE_F16, 0x1p-24, 1},
	{"f16 to f32, persistent, 96 columns", "matmul_tuned", "OUT=f32",
		" BM=64 BN=96 BK=32 PERSISTENT=true num_warps=4 num_stages=3", BLK_TYPE_F16, BLK_TYPE_F32, 0x1p-24, 1},
	{"f16, batched", "matmul_batched", "", TILE, BLK_TYPE_F16, BLK_TYPE_F16, 0x1p-24, 3},
	{"f16, batched, persistent", "matmul_batched_persistent", "", TILE, BLK_TYPE_F16, BLK_TYPE_F16, 0x1p-24, 3},
	{"f16, split along K", "matmul_split_k", "", " BM=16 BN=64 BK=64 SPLIT=4 num_warps=4 num_stages=3",
		BLK_TYPE_F16, BLK_TYPE_F16, 0x1p-24, 1},
	{"f16 to f32, split along K", "matmul_split_k", "OUT=f32",
		" BM=64 BN=64 BK=32 SPLIT=3 num_warps=4 num_stages=3", BLK_TYPE_F16, BLK_TYPE_F32, 0x1p-24, 1},
	{"f16, large tiles split along K", "matmul_split_k", "",
		" BM=128 BN=128 BK=32 SPLIT=3 num_warps=8 num_stages=3", BLK_TYPE_F16, BLK_TYPE_F16, 0x1p-24, 1},
	{"f16, stream-K", "matmul_stream_k", "", " BM=64 BN=64 BK=32 num_warps=4 num_stages=3", BLK_TYPE_F16,
		BLK_TYPE_F16, 0x1p-24, 1},
	{"f16, whole waves and parts", "matmul_waves", "", " BM=64 BN=128 BK=32 PART=32 num_warps=4 num_stages=3",
		BLK_TYPE_F16, BLK_TYPE_F16, 0x1p-24, 1},
	{"f16, bias and GELU", "matmul_bias_gelu", "", TILE, BLK_TYPE_F16, BLK_TYPE_F16, 0x1p-24, 1},
};

static bool is(const form *f, const char *kernel)
{
	return strcmp(f->kernel, kernel) == 0;
}

/* Whether programs share tiles by way of a workspace. */
static bool shares(const form *f)
{
	return is(f, "matmul_split_k") || is(f, "matmul_stream_k") || is(f, "matmul_waves");
}

/* Elements of a workspace for every configuration: at most 8 parts of tiles up to 128 x 256, or two blocks a program.
 */
static size_t parts_for(const example *e, const form *f, int m, int n)
{
	size_t rows = ((size_t)m + 127) / 128 * 128, columns = ((size_t)n + 255) / 256 * 256;
	return is(f, "matmul_split_k") ? 8 * rows * columns : 2 * (size_t)blk_device_num_sms(e->device) * 128 * 256;
}

/* What the form does with an element of the product, and with how far that may be off. */
static void finish(const form *f, double *v, double *bound, double bias)
{
	if (strstr(f->types, "LEAKY") && *v < 0) *v *= 0.01;
	if (!is(f, "matmul_bias_gelu")) return;
	double x = *v + bias;
	*v = 0.5 * x * (1 + tanh(0.79788456080286541 * (x + 0.044715 * x * x * x)));
	*bound =
		1.13 * (*bound + fabs(x) * 0x1p-24) + fabs(x) * 0x1p-20; /* the steepest slope; tanh and its argument */
}

static void run(example *e, const form *f, int m, int n, int k, bool timed)
{
	size_t cell = (size_t)m * (size_t)n, nc = (size_t)f->batch * cell;
	size_t na = (size_t)f->batch * (size_t)m * (size_t)k, nb = (size_t)f->batch * (size_t)k * (size_t)n;
	float *a = example_normal(e, na, 31), *b = example_normal(e, nb, 32), *bias = example_normal(e, (size_t)n, 34);
	blk_buffer *c = example_output_of(e, f->out, nc);
	blk_arg args[9] = {
		blk_buf(c), blk_buf(example_input(e, f->in, a, na)), blk_buf(example_input(e, f->in, b, nb))};
	size_t nargs = 3;
	char what[128];
	if (is(f, "matmul_bias_gelu")) args[nargs++] = blk_buf(example_input(e, f->in, bias, (size_t)n));
	if (strstr(f->kernel, "batched")) args[nargs++] = blk_i32(f->batch);
	if (shares(f)) {
		size_t tiles = ((size_t)m + 15) / 16 * (((size_t)n + 63) / 64);
		args[nargs++] = blk_buf(example_output_of(e, BLK_TYPE_F32, parts_for(e, f, m, n)));
		args[nargs++] = blk_buf(example_zeros(e, tiles));
	}
	args[nargs++] = blk_i32(m);
	args[nargs++] = blk_i32(n);
	args[nargs++] = blk_i32(k);
	snprintf(what, sizeof what, "%d x %d x %d, %s", m, n, k, f->name);
	if (timed) {
		matrix_time(
			example_kernel(e, f->kernel, "%s", f->types), args, nargs, 2.0 * f->batch * m * n * k, what);
	} else {
		double *want = example_doubles(e, nc), *bound = example_doubles(e, nc);
		for (int t = 0; t < f->batch; t++)
			matrix_multiply(want + (size_t)t * cell, bound + (size_t)t * cell,
				a + (size_t)t * (size_t)m * (size_t)k, b + (size_t)t * (size_t)k * (size_t)n, m, n, k,
				f->u);
		for (size_t i = 0; i < nc; i++) finish(f, &want[i], &bound[i], bias[i % (size_t)n]);
		matrix_add_rounding(bound, want, nc, f->out);
		blk_kernel *kernel = example_kernel(e, f->kernel, "%s%s", f->types, f->tile);
		for (int launch = 0; launch <= shares(f); launch++) { /* again: the counters are back at 0 */
			TRY(blk_buffer_fill(c, 0, 0xff, nc * example_size(f->out)));
			TRY(blk_launch(kernel, NULL, NULL, args, nargs));
		}
		example_compare(e, c, want, bound, nc, 0, what);
	}
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "matmul");
	size_t nforms = sizeof forms / sizeof forms[0];
	for (size_t f = 0; f < nforms; f++) {
		run(&e, &forms[f], 1, 1, 1, false);
		run(&e, &forms[f], 157, 101, 199, false);
		run(&e, &forms[f], 200, 24, 272, false); /* K divisible by 16: wide accesses, masked at the end */
	}
	run(&e, &forms[0], 128, 128, 128, false);
	if (!e.quick) {
		int largest = matrix_largest(&e), each = largest < 1024 ? largest : 1024;
		for (int n = 256; n <= largest; n *= 2) run(&e, &forms[0], n, n, n, true);
		for (size_t f = 1; f < nforms; f++) run(&e, &forms[f], each, each, each, true);
	}
	return example_close(&e);
}
