/* Many matrix products of different sizes in one launch: by tables of addresses, and by tables of places in one buffer.
 */
#include "../matrix.h"

enum { MOST_GROUPS = 8 };

typedef struct problem {
	int m, n, k;
} problem;

/* Empty ones are products too; the largest has several tiles. */
static const problem odd[] = {{1, 1, 1}, {70, 33, 129}, {0, 5, 7}, {3, 130, 40}, {5, 7, 0}, {129, 65, 67}};
static const problem even[] = {{70, 32, 128}, {16, 144, 48}, {130, 64, 80}};

/* The places of a group's matrices in a row of all groups'. */
static size_t place(size_t *at, size_t n)
{
	size_t here = *at;
	*at += (n + 15) / 16 * 16; /* so that a matrix begins at a multiple of 16 bytes */
	return here;
}

static void run(
	example *e, const problem *p, int groups, bool addresses, const char *define, bool timed, const char *what)
{
	int64_t a_at[MOST_GROUPS], b_at[MOST_GROUPS], c_at[MOST_GROUPS];
	int32_t sizes[3 * MOST_GROUPS];
	size_t na = 0, nb = 0, nc = 0;
	for (int g = 0; g < groups; g++) {
		a_at[g] = (int64_t)place(&na, (size_t)p[g].m * (size_t)p[g].k);
		b_at[g] = (int64_t)place(&nb, (size_t)p[g].k * (size_t)p[g].n);
		c_at[g] = (int64_t)place(&nc, (size_t)p[g].m * (size_t)p[g].n);
		memcpy(&sizes[3 * g], &p[g], sizeof p[g]);
	}
	float *a = example_normal(e, na, 51), *b = example_normal(e, nb, 52);
	double *want = example_doubles(e, nc), *bound = example_doubles(e, nc), total = 0;
	blk_buffer *in_a = example_input(e, BLK_TYPE_F16, a, na), *in_b = example_input(e, BLK_TYPE_F16, b, nb);
	uint16_t *zeros = example_alloc(e, (nc + EXAMPLE_GUARD) * 2); /* what lies between the products stays 0 */
	memset(zeros + nc, 0xff, (size_t)EXAMPLE_GUARD * 2);
	blk_buffer *c = example_output_of(e, BLK_TYPE_F16, nc);
	for (int g = 0; g < groups; g++) {
		if (!timed)
			matrix_multiply(want + c_at[g], bound + c_at[g], a + a_at[g], b + b_at[g], p[g].m, p[g].n,
				p[g].k, 0x1p-24);
		memset(zeros + c_at[g], 0xff, (size_t)p[g].m * (size_t)p[g].n * 2);
		total += 2.0 * p[g].m * p[g].n * p[g].k;
	}
	TRY(blk_buffer_write(c, 0, zeros, (nc + EXAMPLE_GUARD) * 2));
	matrix_add_rounding(bound, want, nc, BLK_TYPE_F16);
	for (int g = 0; g < groups && addresses; g++) {
		a_at[g] = (int64_t)(intptr_t)blk_buffer_pointer(in_a) + 2 * a_at[g];
		b_at[g] = (int64_t)(intptr_t)blk_buffer_pointer(in_b) + 2 * b_at[g];
		c_at[g] = (int64_t)(intptr_t)blk_buffer_pointer(c) + 2 * c_at[g];
	}
	size_t n = (size_t)groups;
	blk_buffer *tables[] = {example_buffer_of(e, BLK_TYPE_I64, c_at, n),
		example_buffer_of(e, BLK_TYPE_I64, a_at, n), example_buffer_of(e, BLK_TYPE_I64, b_at, n),
		example_buffer_of(e, BLK_TYPE_I32, sizes, 3 * n)};
	blk_arg args[8];
	size_t nargs = 0;
	if (!addresses) args[nargs++] = blk_buf(c), args[nargs++] = blk_buf(in_a), args[nargs++] = blk_buf(in_b);
	for (int i = 0; i < 4; i++) args[nargs++] = blk_buf(tables[i]);
	args[nargs++] = blk_i32(groups);
	const char *name = addresses ? "matmul_grouped" : "matmul_grouped_offsets";
	if (!timed) {
		blk_kernel *kernel = example_kernel(e, name, "BM=64 BN=64 BK=32 num_warps=4 num_stages=3%s", define);
		TRY(blk_launch(kernel, NULL, NULL, args, nargs));
		example_compare(e, c, want, bound, nc, 0, what);
	} else {
		matrix_time(example_kernel(e, name, "%s", define), args, nargs, total, what);
	}
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "matmul_grouped");
	run(&e, odd, 6, true, "", false, "by addresses");
	run(&e, even, 3, true, " ALIGN=true", false, "by addresses, aligned");
	run(&e, odd, 6, false, "", false, "by places in one buffer");
	run(&e, even, 3, false, "", false, "by places in one buffer, even sizes");
	if (!e.quick) {
		problem large[MOST_GROUPS];
		for (int g = 0; g < MOST_GROUPS; g++) large[g] = (problem){matrix_largest(&e) / (1 << g % 4), 512, 512};
		run(&e, large, MOST_GROUPS, true, "ALIGN=true", true, "8 products, by addresses");
		run(&e, large, MOST_GROUPS, false, "", true, "8 products, by places in one buffer");
	}
	return example_close(&e);
}
