/* add and gelu over 1 to 268 million elements: what a copy could do, nearly nothing to compute. */
#include "bench.h"

typedef struct job {
	bench_launch launch;
	bench_array x, y, z;
} job;

static void want_sum(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	for (size_t i = 0; i < count; i++) want[i] = bench_at(&j->x, first + i) + bench_at(&j->y, first + i);
}

static void want_gelu(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	for (size_t i = 0; i < count; i++) {
		double v = bench_at(&j->x, first + i);
		want[i] = 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
	}
}

static void run(bench *b, bool add, size_t n, const char *size)
{
	static const char *const configurations[] = {"BLOCK=1024,num_warps=4", "BLOCK=2048,num_warps=8"};
	job j = {.x = bench_input(b, SCALAR_F32, n, 1, 0), .z = bench_output(b, SCALAR_F32, n)};
	if (add) j.y = bench_input(b, SCALAR_F32, n, 1, 0);
	blk_arg *a = j.launch.args;
	*a++ = blk_buf(j.z.buffer);
	*a++ = blk_buf(j.x.buffer);
	if (add) *a++ = blk_buf(j.y.buffer);
	*a++ = blk_i32((int32_t)n);
	j.launch.nargs = (size_t)(a - j.launch.args);
	bench_check check = {&j.z, 1 << 16, add ? want_sum : want_gelu, 1e-6};
	bench_begin(b, add ? "add f32" : "gelu f32", (double)n, (add ? 12.0 : 8.0) * (double)n, "%s", size);
	for (size_t i = 0; i < 2; i++) {
		blk_module *m = bench_module(b, add ? "vector_add" : "gelu", configurations[i]);
		j.launch.kernel = bench_kernel(m, add ? "add" : "gelu_forward");
		bench_try(b, configurations[i], &j, &check, 1);
		blk_module_close(m);
	}
	bench_end(b);
	bench_free(&j.x);
	bench_free(&j.z);
	if (add) bench_free(&j.y);
}

int main(int argc, char **argv)
{
	bench b = bench_open(argc, argv, "elementwise");
	for (int add = 1; add >= 0; add--) {
		if (b.quick) {
			run(&b, add, 1, "1");
			run(&b, add, 98432, "98432");
			continue;
		}
		for (int p = 20; p <= (add ? 27 : 28); p++) {
			char size[16];
			snprintf(size, sizeof size, "2^%d", p);
			run(&b, add, (size_t)1 << p, size);
		}
	}
	return bench_close(&b);
}
