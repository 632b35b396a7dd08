/* Dropout from a seed: one Philox an element (rand: integer arithmetic is the limit), and one for four (rand4x: a
 * copy). */
#include "bench.h"

enum { SEED = 123 };

typedef struct job {
	bench_launch launch;
	bench_array x, y;
	bool four;
} job;

static const float probability = 0.25f;

/* Philox 4x32-10 with counter (offset, 0, 0, 0) and key (seed, 0): Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011. */
static float uniform(uint32_t seed, uint32_t offset, int which)
{
	uint32_t c[4] = {offset, 0, 0, 0}, k[2] = {seed, 0};
	for (int round = 0; round < 10; round++) {
		uint64_t a = (uint64_t)0xd2511f53 * c[0], b = (uint64_t)0xcd9e8d57 * c[2];
		uint32_t next[4] = {
			(uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k[1], (uint32_t)a};
		memcpy(c, next, sizeof c);
		k[0] += 0x9e3779b9;
		k[1] += 0xbb67ae85;
	}
	int32_t v = (int32_t)c[which];
	return (float)(v < 0 ? -v - 1 : v) * 4.6566127342e-10f;
}

static void want_kept(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	for (size_t k = 0; k < count; k++) {
		size_t i = first + k;
		float u = j->four ? uniform(SEED, (uint32_t)(i / 4), (int)(i % 4)) : uniform(SEED, (uint32_t)i, 0);
		want[k] = u > probability ? bench_at(&j->x, i) / (1.0 - probability) : 0;
	}
}

static void run(bench *b, bool four, size_t n, const char *size)
{
	static const int blocks[] = {512, 1024, 2048};
	job j = {.x = bench_input(b, SCALAR_F32, n, 1, 0), .y = bench_output(b, SCALAR_F32, n), .four = four};
	bench_arguments(&j.launch, BLK_ARGS(blk_buf(j.y.buffer), blk_buf(j.x.buffer), blk_f32(probability),
					   blk_i32(SEED), blk_i32((int32_t)n)));
	bench_check check = {&j.y, 1 << 16, want_kept, 1e-6};
	bench_begin(b, four ? "dropout rand4x f32" : "dropout rand f32", (double)n, 8.0 * (double)n, "%s", size);
	for (size_t i = 0; i < 3; i++) {
		char define[64];
		snprintf(define, sizeof define, "BLOCK=%d,num_warps=%d", blocks[i], blocks[i] / (four ? 256 : 128));
		blk_module *m = bench_module(b, "dropout", define);
		j.launch.kernel = bench_kernel(m, four ? "dropout_seeded4x" : "dropout_seeded");
		bench_try(b, define, &j, &check, 1);
		blk_module_close(m);
	}
	bench_end(b);
	bench_free(&j.x);
	bench_free(&j.y);
}

int main(int argc, char **argv)
{
	bench b = bench_open(argc, argv, "dropout");
	for (int four = 0; four < 2; four++) {
		if (b.quick) {
			run(&b, four, 1, "1");
			run(&b, four, 98432, "98432");
		} else {
			run(&b, four, 1 << 24, "2^24");
			run(&b, four, 1 << 27, "2^27");
		}
	}
	return bench_close(&b);
}
