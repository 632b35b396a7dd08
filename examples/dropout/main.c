/* Dropout with a mask from memory, and with the mask made from a seed by Philox 4x32-10 (reference below). */
#include "../example.h"

/* One number of Philox 4x32-10 as `rand(seed, offset)` uses it: counter (offset, 0, 0, 0), key (seed, 0).
 * Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
static void philox(uint32_t seed, uint32_t offset, uint32_t c[4])
{
	uint32_t k[2] = {seed, 0};
	c[0] = offset, c[1] = c[2] = c[3] = 0;
	for (int round = 0; round < 10; round++) {
		uint64_t a = (uint64_t)0xd2511f53 * c[0], b = (uint64_t)0xcd9e8d57 * c[2];
		uint32_t next[4] = {
			(uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k[1], (uint32_t)a};
		memcpy(c, next, sizeof next);
		k[0] += 0x9e3779b9;
		k[1] += 0xbb67ae85;
	}
}

static double uniform(uint32_t bits)
{
	int32_t x = (int32_t)bits;
	if (x < 0) x = -x - 1;
	return (float)x * 4.6566127342e-10f;
}

/* The forms differ in where the mask comes from. */
typedef enum form { MASK, SEEDED, SEEDED4 } form;
static const char *const kernels[] = {"dropout_mask", "dropout_seeded", "dropout_seeded4x"};

static bool kept(form f, uint32_t seed, uint32_t i, float p, uint64_t *state)
{
	uint32_t c[4];
	if (f == MASK) return (example_random(state) & 3) != 0;
	philox(seed, f == SEEDED ? i : i / 4, c);
	return uniform(c[f == SEEDED ? 0 : i % 4]) > p;
}

static void run(example *e, form f, int n, bool timed)
{
	enum { SEED = 123 };
	const float p = 0.25f;
	float *x = example_normal(e, (size_t)n, 7);
	uint8_t *keep = example_alloc(e, (size_t)n);
	double *want = example_doubles(e, (size_t)n);
	uint64_t state = 11;
	for (int i = 0; i < n; i++) {
		keep[i] = kept(f, SEED, (uint32_t)i, p, &state);
		want[i] = keep[i] ? x[i] / (1.0 - p) : 0;
	}
	blk_kernel *kernel = example_kernel(e, kernels[f], "");
	blk_buffer *bx = example_buffer(e, x, (size_t)n), *by = example_output(e, (size_t)n);
	blk_buffer *bk = example_buffer_of(e, BLK_TYPE_BOOL, keep, (size_t)n);
	blk_arg seeded[] = {blk_buf(by), blk_buf(bx), blk_f32(p), blk_i32(SEED), blk_i32(n)};
	blk_arg mask[] = {blk_buf(by), blk_buf(bx), blk_buf(bk), blk_f32(p), blk_i32(n)};
	const blk_arg *args = f == MASK ? mask : seeded;
	TRY(blk_launch(kernel, NULL, NULL, args, 5));
	example_check(e, by, want, (size_t)n, 1e-6, "%s, n = %d", kernels[f], n);
	if (timed) example_time(e, kernel, NULL, args, 5, (f == MASK ? 9.0 : 8.0) * n, kernels[f]);
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "dropout");
	static const int sizes[] = {0, 1, 31, 1025, 98432};
	for (form f = MASK; f <= SEEDED4; f++) {
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) run(&e, f, sizes[i], false);
		if (!e.quick) run(&e, f, 1 << 24, true);
	}
	return example_close(&e);
}
