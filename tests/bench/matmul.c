/* Matrix products of f16: one program a tile with tensors and with pointers, split along K, stream-K.
 *
 * Sizes whose product in double precision takes the host seconds at most; peers_matrix.py has the larger ones. */
#include "bench.h"

typedef struct job {
	bench_launch launch;
	bench_array a, b, c, parts, arrived;
	size_t m, n, k;
	float *rows, *columns; /* a and b as floats, b transposed */
	double *want;
} job;

static void multiply(void *context, size_t from, size_t to)
{
	job *j = context;
	for (size_t i = from; i < to; i++)
		for (size_t l = 0; l < j->n; l++) {
			const float *x = j->rows + i * j->k, *y = j->columns + l * j->k;
			double sum = 0;
			for (size_t k = 0; k < j->k; k++) sum += (double)x[k] * y[k];
			j->want[i * j->n + l] = sum;
		}
}

static void want_row(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	memcpy(want, j->want + first, count * sizeof *want);
}

static void prepare(job *j)
{
	j->rows = bench_alloc(j->m * j->k * sizeof(float));
	j->columns = bench_alloc(j->n * j->k * sizeof(float));
	j->want = bench_alloc(j->m * j->n * sizeof(double));
	for (size_t i = 0; i < j->m * j->k; i++) j->rows[i] = (float)bench_at(&j->a, i);
	for (size_t i = 0; i < j->n * j->k; i++) j->columns[i % j->n * j->k + i / j->n] = (float)bench_at(&j->b, i);
	bench_parallel(j->m, multiply, j);
}

/* Programs that share tiles have a workspace behind the matrices. */
static void arguments(job *j, bool shares)
{
	size_t n = 0;
	const bench_array *arrays[] = {&j->c, &j->a, &j->b, &j->parts, &j->arrived};
	for (size_t i = 0; i < (shares ? 5u : 3u); i++) j->launch.args[n++] = blk_buf(arrays[i]->buffer);
	j->launch.args[n++] = blk_i32((int)j->m);
	j->launch.args[n++] = blk_i32((int)j->n);
	j->launch.args[n++] = blk_i32((int)j->k);
	j->launch.nargs = n;
}

static void run(bench *b, int m, int n, int k)
{
	static const struct {
		const char *kernel, *configuration;
		bool shares;
		int rows; /* of M that it is for, at least */
	} forms[] = {{"matmul_tuned", "BM=128,BN=256,BK=64,num_warps=8,num_stages=4", false, 128},
		{"matmul_tuned", "BM=192,BN=128,BK=64,GROUP=4,num_warps=8,num_stages=5", false, 192},
		{"matmul_tuned", "BM=128,BN=128,BK=64,num_warps=4,num_stages=6", false, 128},
		{"matmul_tuned", "BM=64,BN=128,BK=64,num_warps=4,num_stages=8", false, 1},
		{"matmul_tuned", "BM=64,BN=64,BK=128,num_warps=4,num_stages=6", false, 1},
		{"matmul_tuned", "BM=64,BN=32,BK=128,num_warps=4,num_stages=8", false, 1},
		{"matmul", "BM=128,BN=128,BK=64,num_warps=8,num_stages=4", false, 128},
		{"matmul_split_k", "BM=64,BN=64,BK=64,SPLIT=4,num_warps=4,num_stages=4", true, 1},
		{"matmul_stream_k", "BM=64,BN=128,BK=64,num_warps=4,num_stages=4", true, 1}};
	job j = {.m = (size_t)m, .n = (size_t)n, .k = (size_t)k};
	size_t blocks = 4 * ((j.m + 63) / 64) * ((j.n + 63) / 64), shares = 4 * (size_t)blk_device_num_sms(b->device);
	j.a = bench_input(b, SCALAR_F16, j.m * j.k, 1, 0);
	j.b = bench_input(b, SCALAR_F16, j.k * j.n, 1, 0);
	j.c = bench_output(b, SCALAR_F16, j.m * j.n);
	j.parts = bench_output(b, SCALAR_F32, 64 * 64 * (blocks > shares ? blocks : shares)); /* of both forms */
	j.arrived = bench_output(b, SCALAR_I32, blocks);
	TRY(blk_buffer_fill(j.arrived.buffer, 0, 0, bench_bytes(&j.arrived, blocks)));
	prepare(&j);
	bench_check check = {&j.c, j.n, want_row, 1e-3};
	bench_begin(b, "matmul f16", (double)m * n, 2.0 * ((double)m * k + (double)k * n + (double)m * n),
		"%d x %d x %d", m, n, k);
	b->now.flops = 2.0 * m * n * k;
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		if (m < forms[i].rows && !b->quick) continue;
		char label[96];
		snprintf(label, sizeof label, "%s %s", forms[i].kernel, forms[i].configuration);
		blk_module *module = bench_module(b, "matmul", forms[i].configuration);
		j.launch.kernel = bench_kernel(module, forms[i].kernel);
		arguments(&j, forms[i].shares);
		bench_try(b, label, &j, &check, 1);
		blk_module_close(module);
	}
	bench_end(b);
	bench_array *arrays[] = {&j.a, &j.b, &j.c, &j.parts, &j.arrived};
	for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) bench_free(arrays[i]);
	free(j.rows);
	free(j.columns);
	free(j.want);
}

int main(int argc, char **argv)
{
	bench b = bench_open(argc, argv, "matmul");
	static const int quick[][3] = {{31, 65, 97}, {203, 178, 160}},
			 sizes[][3] = {{512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}, {16, 4096, 4096},
				 {64, 4096, 4096}, {128, 8192, 8192}, {1000, 1032, 1056}};
	size_t n = b.quick ? sizeof quick / sizeof quick[0] : sizeof sizes / sizeof sizes[0];
	for (size_t i = 0; i < n; i++) {
		const int *s = b.quick ? quick[i] : sizes[i];
		run(&b, s[0], s[1], s[2]);
	}
	return bench_close(&b);
}
