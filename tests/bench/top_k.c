/* The k largest of every row with their columns: one read where the first blocks hold most of them. */
#include "bench.h"

typedef struct job {
	bench_launch launch;
	bench_array x, values, columns;
	size_t n, k;
} job;

typedef struct pair {
	double value;
	size_t column;
} pair;

static int descending(const void *a, const void *b)
{
	const pair *p = a, *q = b;
	return p->value != q->value ? (p->value < q->value) - (p->value > q->value)
				    : (p->column > q->column) - (p->column < q->column);
}

/* One row, sorted; of equal ones the lower column first. */
static pair *sorted(const job *j, size_t row)
{
	pair *p = bench_alloc(j->n * sizeof *p);
	for (size_t i = 0; i < j->n; i++) p[i] = (pair){bench_at(&j->x, row * j->n + i), i};
	qsort(p, j->n, sizeof *p, descending);
	return p;
}

static void want_values(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	pair *p = sorted(j, first / j->k);
	for (size_t i = 0; i < count; i++) want[i] = p[i].value;
	free(p);
}

static void want_columns(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	pair *p = sorted(j, first / j->k);
	for (size_t i = 0; i < count; i++) want[i] = (double)p[i].column;
	free(p);
}

static void run(bench *b, int rows, int n, int k)
{
	size_t all = (size_t)rows * (size_t)n, kept = (size_t)rows * (size_t)k;
	job j = {.x = bench_input(b, SCALAR_F32, all, 1, 0),
		.values = bench_output(b, SCALAR_F32, kept),
		.columns = bench_output(b, SCALAR_I32, kept),
		.n = (size_t)n,
		.k = (size_t)k};
	bench_arguments(&j.launch, BLK_ARGS(blk_buf(j.values.buffer), blk_buf(j.columns.buffer), blk_buf(j.x.buffer),
					   blk_i32(rows), blk_i32(n), blk_i32(k)));
	bench_check checks[] = {{&j.values, j.k, want_values, 0}, {&j.columns, j.k, want_columns, 0}};
	char work[64];
	snprintf(work, sizeof work, "top %d f32", k);
	bench_begin(b, work, (double)all, 4.0 * (double)all + 8.0 * (double)kept, "%d x %d", rows, n);
	for (int block = 512; block <= 2048; block *= 2)
		for (int warps = 2; warps <= 8; warps *= 2) {
			char define[64];
			if (block < bench_block(k)) continue;
			snprintf(define, sizeof define, "K=%d,BLOCK=%d,num_warps=%d", bench_block(k), block, warps);
			blk_module *m = bench_module(b, "top_k", define);
			j.launch.kernel = bench_kernel(m, "top_k");
			bench_try(b, define, &j, checks, 2);
			blk_module_close(m);
		}
	bench_end(b);
	bench_free(&j.x);
	bench_free(&j.values);
	bench_free(&j.columns);
}

int main(int argc, char **argv)
{
	bench b = bench_open(argc, argv, "top_k");
	if (b.quick) {
		run(&b, 3, 31, 5);
		run(&b, 17, 3001, 8);
		return bench_close(&b);
	}
	run(&b, 4096, 4096, 8);
	run(&b, 4096, 32000, 8);
	run(&b, 4096, 32000, 64);
	run(&b, 1024, 131072, 64);
	return bench_close(&b);
}
