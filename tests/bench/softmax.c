/* Softmax of rows from 256 to 16384 elements, and of rows longer than a program can hold. */
#include "bench.h"

typedef struct job {
	bench_launch launch;
	bench_array x, y;
	int rows, n;
	blk_buffer *meeting; /* where the programs of a split row meet: zeros */
} job;

static void want_row(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	double largest = -INFINITY, total = 0;
	for (size_t i = 0; i < count; i++) largest = fmax(largest, bench_at(&j->x, first + i));
	for (size_t i = 0; i < count; i++) total += want[i] = exp(bench_at(&j->x, first + i) - largest);
	for (size_t i = 0; i < count; i++) want[i] /= total;
}

/* `tile`: the const parameters that say how much of a row a program takes at once. */
static void try(bench *b, job *j, const char *kernel, int warps, const char *tile, ...)
{
	char define[64], configuration[96];
	bench_check check = {&j->y, (size_t)j->n, want_row, 2e-6};
	int n = snprintf(define, sizeof define, "num_warps=%d,", warps);
	va_list v;
	va_start(v, tile);
	vsnprintf(define + n, sizeof define - (size_t)n, tile, v);
	va_end(v);
	blk_module *m = bench_module(b, "softmax", define);
	j->launch.kernel = bench_kernel(m, kernel);
	j->launch.grid = (blk_grid){0, 1, 1};
	const blk_arg sizes[] = {blk_i32(j->n), blk_i32(j->rows), blk_i32(j->n)};
	bool split = strcmp(kernel, "softmax_split") == 0;
	j->launch.args[0] = blk_buf(j->y.buffer);
	j->launch.args[1] = blk_buf(j->x.buffer);
	j->launch.args[2] = blk_buf(j->meeting);
	memcpy(j->launch.args + 2 + split, sizes, sizeof sizes);
	j->launch.nargs = 5 + split;
	if (strcmp(kernel, "softmax_persistent") == 0) {
		blk_info info;
		TRY(blk_kernel_info(j->launch.kernel, j->launch.args, j->launch.nargs, &info));
		uint32_t most = info.programs_per_sm * info.num_sms;
		j->launch.grid.x = most < (uint32_t)j->rows ? most : (uint32_t)j->rows;
	}
	snprintf(configuration, sizeof configuration, "%s, %s", kernel + strlen("softmax_"), define);
	bench_try(b, configuration, j, &check, 1);
	blk_module_close(m);
}

static void run(bench *b, int rows, int n)
{
	size_t all = (size_t)rows * (size_t)n;
	job j = {.x = bench_input(b, SCALAR_F32, all, 3, 0),
		.y = bench_output(b, SCALAR_F32, all),
		.rows = rows,
		.n = n};
	size_t words = (size_t)rows * 34; /* PARTS is at most 32 */
	TRY(blk_buffer_create(b->device, words * 8, &j.meeting));
	TRY(blk_buffer_fill(j.meeting, 0, 0, words * 8));
	int block = bench_block(n);
	bench_begin(b, rows >= 4096 || b->quick ? "softmax f32" : "softmax f32, long rows", (double)all,
		8 * (double)all, "%d x %d", rows, n);
	if (block > 16384) {
		try(b, &j, "softmax_online", 8, "REPEAT=4,LANES=256");
		try(b, &j, "softmax_online", 16, "REPEAT=4,LANES=512");
		for (int part = 8192; part <= 16384; part *= 2)
			for (int warps = 4; warps <= 16; warps *= 2) {
				if (block / part > 32) continue;
				try(b, &j, "softmax_split", warps, "BLOCK=%d,PARTS=%d", part, block / part);
			}
	} else {
		for (int part = 0; (part = bench_block_after(n, part));)
			for (int warps = 2; warps <= 16; warps *= 2) {
				if (part / (32 * warps) > 64 || part / (32 * warps) < 1) continue;
				try(b, &j, "softmax_rows", warps, "BLOCK=%d", part);
				try(b, &j, "softmax_persistent", warps, "BLOCK=%d", part);
			}
		for (int tile = 4; tile <= 16 && block <= 1024; tile *= 2)
			try(b, &j, "softmax_tiles", 4, "BLOCK=%d,ROWS=%d", block, tile);
		if (block < 64) try(b, &j, "softmax_rows", 1, "BLOCK=%d", block);
	}
	bench_end(b);
	bench_free(&j.x);
	bench_free(&j.y);
	blk_buffer_free(j.meeting);
}

int main(int argc, char **argv)
{
	static const int quick[][2] = {{1, 1}, {67, 781}, {3, 20011}, {0}};
	static const int sizes[][2] = {{4096, 256}, {4096, 781}, {4096, 1024}, {4096, 2048}, {4096, 4096}, {4096, 8192},
		{4096, 12672}, {16384, 16384}, {1024, 65536}, {256, 262144}, {0}};
	return bench_main(argc, argv, "softmax", run, quick, sizes);
}
