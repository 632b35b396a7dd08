/* Tuning 24 configurations of layer norm: from a cold cache, and again from the cache that this filled.
 *
 * usage: tune [--device=NAME] [--quick] [path of tune.blk]       BLK_CACHE_DIR must name an empty folder */
#include <blk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ARGS = 7 };

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void must(blk_status s)
{
	if (s == BLK_OK) return;
	fprintf(stderr, "%s\n", blk_error());
	exit(1);
}

static int show(void *context, const blk_tune_trial *t)
{
	if (t->chosen) snprintf(context, 128, "%s, %.2f us", t->configuration, t->ms * 1e3);
	return 0;
}

/* Opens the module and tunes; milliseconds. */
static double tune(blk_device *d, const char *path, const char *block, const blk_arg *args, uint32_t *tried, char *best)
{
	blk_module *m;
	blk_kernel *k;
	blk_define define = {"BLOCK", block};
	blk_tune_options o = {.visit = show, .context = best};
	double t = now();
	must(blk_module_open(d, path, &define, 1, &m));
	must(blk_kernel_find(m, "norm_tile", &k));
	must(blk_kernel_tune(k, NULL, args, ARGS, &o, tried));
	t = now() - t;
	blk_module_close(m);
	return t;
}

/* Random f16 numbers between 1 and 2. */
static blk_buffer *input(blk_device *d, size_t n)
{
	blk_buffer *b;
	uint16_t *h = malloc(n * 2);
	if (!h) exit(1);
	for (size_t i = 0; i < n; i++) h[i] = (uint16_t)(0x3c00 | (rand() & 0x3ff));
	must(blk_buffer_create(d, n * 2, &b));
	must(blk_buffer_write(b, 0, h, n * 2));
	free(h);
	return b;
}

int main(int argc, char **argv)
{
	const char *device = "auto", *path = "tests/bench/tune.blk";
	int rows = 4096, n = 4096;
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "--device=", 9) == 0)
			device = argv[i] + 9;
		else if (strcmp(argv[i], "--quick") == 0)
			rows = 33, n = 100;
		else
			path = argv[i];
	blk_device *d;
	uint32_t cold_tried = 0, warm_tried = 0;
	char best[128] = "", again[128] = "";
	srand((unsigned)time(NULL));
	must(blk_device_open(device, &d));
	size_t all = (size_t)rows * (size_t)n;
	blk_buffer *x = input(d, all), *y = input(d, all), *w = input(d, (size_t)n), *b = input(d, (size_t)n);
	blk_arg args[ARGS] = {
		blk_buf(y), blk_buf(x), blk_buf(w), blk_buf(b), blk_i32(rows), blk_i32(n), blk_f32(1e-5f)};
	const char *block = n == 100 ? "128" : "4096";
	double cold = tune(d, path, block, args, &cold_tried, best);
	double warm = tune(d, path, block, args, &warm_tried, again);
	printf("tune: %u configurations cold in %.1f ms, warm (%u tried) in %.2f ms, best %s\n", (unsigned)cold_tried,
		cold, (unsigned)warm_tried, warm, best);
	blk_device_close(d);
	return warm_tried != 0;
}
