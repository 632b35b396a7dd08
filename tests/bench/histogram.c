/* Histograms of i32 in 256 bins: one read. The kernel adds to the counts that it finds, so the poison, -1 in every bin,
 * is part of what it must give. */
#include "bench.h"

enum { BINS = 256 };

typedef struct job {
	bench_launch launch;
	bench_array x, counts;
	double want[BINS];
} job;

static void want_counts(const void *context, size_t first, size_t count, double *want)
{
	memcpy(want, ((const job *)context)->want + first, count * sizeof *want);
}

/* Values below `range`: few of them collide, or all of them do. */
static void run(bench *b, size_t n, const char *size, int range)
{
	job j = {.x = bench_input(b, SCALAR_I32, n, range, 0), .counts = bench_output(b, SCALAR_I32, BINS)};
	char work[64];
	for (int i = 0; i < BINS; i++) j.want[i] = -1;
	for (size_t i = 0; i < n; i++) {
		int32_t v = ((const int32_t *)j.x.host)[i];
		if (v < BINS) j.want[v]++;
	}
	bench_arguments(&j.launch, BLK_ARGS(blk_buf(j.counts.buffer), blk_buf(j.x.buffer), blk_i64((int64_t)n)));
	bench_check check = {&j.counts, BINS, want_counts, 0};
	snprintf(work, sizeof work, "histogram i32, values below %d", range);
	bench_begin(b, work, (double)n, 4.0 * (double)n, "%s", size);
	for (int block = 4096; block <= 16384; block *= 2)
		for (int warps = 4; warps <= 16; warps *= 2) {
			char define[64];
			snprintf(define, sizeof define, "BLOCK=%d,num_warps=%d", block, warps);
			blk_module *m = bench_module(b, "histogram", define);
			j.launch.kernel = bench_kernel(m, "histogram_add");
			bench_try(b, define, &j, &check, 1);
			blk_module_close(m);
		}
	bench_end(b);
	bench_free(&j.x);
	bench_free(&j.counts);
}

int main(int argc, char **argv)
{
	bench b = bench_open(argc, argv, "histogram");
	if (b.quick) {
		run(&b, 1, "1", 300);
		run(&b, 98432, "98432", 300);
		return bench_close(&b);
	}
	static const int ranges[] = {300, 4};
	for (int r = 0; r < 2; r++)
		for (int p = 22; p <= 27; p++) {
			char size[16];
			snprintf(size, sizeof size, "2^%d", p);
			run(&b, (size_t)1 << p, size, ranges[r]);
		}
	return bench_close(&b);
}
