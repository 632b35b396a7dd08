/* Rotary embedding of [tokens, heads, 128]. */
#include "bench.h"

enum { HALF = 64 };

typedef struct job {
	bench_launch launch;
	bench_array x, y, cosines, sines;
	size_t heads;
} job;

/* One head of one token. */
static void want_head(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	size_t token = first / (2 * HALF) / j->heads;
	for (size_t i = 0; i < count / 2; i++) {
		double c = bench_at(&j->cosines, token * HALF + i), s = bench_at(&j->sines, token * HALF + i);
		double u = bench_at(&j->x, first + i), v = bench_at(&j->x, first + HALF + i);
		want[i] = u * c - v * s;
		want[HALF + i] = v * c + u * s;
	}
}

/* The angles' tables. */
static void turn(bench_array *to, double (*f)(double))
{
	for (size_t i = 0; i < to->n; i++)
		((float *)to->host)[i] = (float)f((double)(i / HALF) * pow(10000, -(double)(i % HALF) / HALF));
	TRY(blk_buffer_write(to->buffer, 0, to->host, bench_bytes(to, to->n)));
}

static void run(bench *b, int tokens, int heads)
{
	size_t all = (size_t)tokens * (size_t)heads * 2 * HALF, angles = (size_t)tokens * HALF;
	job j = {.x = bench_input(b, SCALAR_F32, all, 1, 0),
		.y = bench_output(b, SCALAR_F32, all),
		.cosines = bench_input(b, SCALAR_F32, angles, 1, 0),
		.sines = bench_input(b, SCALAR_F32, angles, 1, 0),
		.heads = (size_t)heads};
	turn(&j.cosines, cos);
	turn(&j.sines, sin);
	bench_arguments(&j.launch, BLK_ARGS(blk_buf(j.y.buffer), blk_buf(j.x.buffer), blk_buf(j.cosines.buffer),
					   blk_buf(j.sines.buffer), blk_i32(tokens), blk_i32(heads)));
	bench_check check = {&j.y, 2 * HALF, want_head, 1e-6};
	bench_begin(b, "rotary f32", (double)all, 8.0 * (double)(all + angles), "%d x %d x 128", tokens, heads);
	for (int group = 8; group <= 32; group *= 2)
		for (int warps = 4; warps <= 8; warps *= 2) {
			char define[64];
			snprintf(define, sizeof define, "HEADS=%d,num_warps=%d", group, warps);
			blk_module *m = bench_module(b, "rotary", define);
			j.launch.kernel = bench_kernel(m, "rotary");
			bench_try(b, define, &j, &check, 1);
			blk_module_close(m);
		}
	bench_end(b);
	bench_array *arrays[] = {&j.x, &j.y, &j.cosines, &j.sines};
	for (size_t i = 0; i < 4; i++) bench_free(arrays[i]);
}

int main(int argc, char **argv)
{
	static const int quick[][2] = {{1, 1}, {31, 13}, {0}};
	static const int sizes[][2] = {{4096, 32}, {16384, 32}, {0}};
	return bench_main(argc, argv, "rotary", run, quick, sizes);
}
