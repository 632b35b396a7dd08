/* Rotary embedding against double precision. */
#include "../example.h"

enum { HALF = 64 };

static void run(example *e, int tokens, int heads, bool timed)
{
	size_t all = (size_t)tokens * (size_t)heads * 2 * HALF, angles = (size_t)tokens * HALF;
	float *x = example_normal(e, all, 51);
	float *c = example_alloc(e, angles * sizeof *c), *s = example_alloc(e, angles * sizeof *s);
	double *want = example_doubles(e, all);
	for (int t = 0; t < tokens; t++)
		for (int j = 0; j < HALF; j++) {
			double angle = t * pow(10000, -(double)j / HALF);
			c[t * HALF + j] = (float)cos(angle);
			s[t * HALF + j] = (float)sin(angle);
		}
	for (size_t i = 0; i < (size_t)tokens * (size_t)heads; i++)
		for (int j = 0; j < HALF; j++) {
			size_t t = i / (size_t)heads, at = i * 2 * HALF + (size_t)j;
			double cj = c[t * HALF + (size_t)j], sj = s[t * HALF + (size_t)j];
			want[at] = x[at] * cj - x[at + HALF] * sj;
			want[at + HALF] = x[at + HALF] * cj + x[at] * sj;
		}
	blk_kernel *kernel = example_kernel(e, "rotary", "");
	blk_buffer *bx = example_buffer(e, x, all), *by = example_output(e, all);
	blk_buffer *bc = example_buffer(e, c, angles), *bs = example_buffer(e, s, angles);
	blk_arg args[] = {blk_buf(by), blk_buf(bx), blk_buf(bc), blk_buf(bs), blk_i32(tokens), blk_i32(heads)};
	TRY(blk_launch(kernel, NULL, NULL, args, 6));
	example_check(e, by, want, all, 1e-6, "rotary, %d tokens, %d heads", tokens, heads);
	if (timed) example_time(e, kernel, NULL, args, 6, 8.0 * (double)all, "rotary");
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "rotary");
	run(&e, 1, 1, false);
	run(&e, 17, 3, false);
	run(&e, 31, 13, false);
	if (!e.quick) run(&e, 4096, 32, true);
	return example_close(&e);
}
