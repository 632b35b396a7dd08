/* blkrun --tune and the shipping of tuning records: a table of configurations, a line of progress for who looks on. */
#include "runtime/run/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct table {
	struct timespec start;
	bool terminal, drawn;
	uint32_t rows, misfits, left_out;
	const char *which;
} table;

static void progress(void *context, uint32_t done, uint32_t total, double best_ms)
{
	table *t = context;
	struct timespec now;
	if (!t->terminal) return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	double spent = (double)(now.tv_sec - t->start.tv_sec) + (double)(now.tv_nsec - t->start.tv_nsec) * 1e-9;
	fprintf(stderr, "\rtuning %s%s%" PRIu32 "/%" PRIu32, t->which, t->which[0] ? ": " : "", done, total);
	if (best_ms > 0) fprintf(stderr, ", best %.4g ms", best_ms);
	if (done) fprintf(stderr, ", about %.1f s left", spent / done * (total - done));
	fprintf(stderr, "\033[K");
	t->drawn = true;
}

static int row(void *context, const blk_tune_trial *t)
{
	static const char *const verdicts[] = {"not tried", "good", "does not compile", "needs too much",
		"wrong result", "failed", "not timed", "skipped", "does not fit"};
	table *b = context;
	if (b->drawn) fprintf(stderr, "\r\033[K");
	b->drawn = false;
	b->rows++;
	bool is_left_out = t->verdict == BLK_TUNE_UNKNOWN && !t->reason[0]; /* others are more promising */
	b->left_out += is_left_out;
	if (is_left_out) return 0;
	b->misfits += t->verdict == BLK_TUNE_MISFIT;
	printf("%c %-40s ", t->chosen ? '*' : ' ', t->configuration);
	if (t->verdict == BLK_TUNE_GOOD)
		print_quantity(t->ms * 1e-3, "s");
	else
		printf("%s", verdicts[t->verdict]);
	if (t->reason[0]) printf(": %.*s", (int)strcspn(t->reason, "\n"), t->reason);
	printf("\n");
	return 0;
}

static void print_tried(uint32_t tried, uint32_t known, uint32_t left_out)
{
	printf("%" PRIu32 " configuration%s tried", tried, tried == 1 ? "" : "s");
	if (tried == 0 && known)
		printf(", all %" PRIu32 " known", known);
	else if (known)
		printf(", the other%s known", known == 1 ? "" : "s");
	if (left_out) printf(", %" PRIu32 " left out", left_out);
	printf("\n");
}

blk_status tune_kernel(blk_kernel *k, const blk_grid *grid, const blk_arg *args, size_t n, const char *which)
{
	uint32_t timed;
	table t = {.terminal = isatty(STDERR_FILENO), .which = which};
	clock_gettime(CLOCK_MONOTONIC, &t.start);
	blk_tune_options o = {.progress = progress, .visit = row, .context = &t, .isolated = 1};
	blk_status status = blk_kernel_tune(k, grid, args, n, &o, &timed);
	if (t.drawn) fprintf(stderr, "\r\033[K");
	if (!status && t.rows)
		print_tried(timed,
			t.rows - t.misfits - t.left_out > timed ? t.rows - t.misfits - t.left_out - timed : 0,
			t.left_out);
	else if (!status)
		printf("nothing to tune: the kernel has no autotune block, or -D binds all that it tunes\n");
	return status;
}

/* As libblk decides it: a launch on a GPU tunes unless told otherwise, elsewhere it does when told to. */
static bool launch_tunes(blk_device *d)
{
	static const char *const quiet[] = {"off", "cached", "first", "nearest"};
	const char *mode = getenv("BLK_TUNE");
	blk_device_info info;
	if (!mode || !*mode) return blk_device_query(d, &info) == BLK_OK && info.kind == BLK_DEVICE_CUDA;
	for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++)
		if (strcmp(mode, quiet[i]) == 0) return false;
	return true;
}

blk_status tune_shown(blk_device *d, blk_kernel *k, const blk_grid *grid, const blk_arg *args, size_t n)
{
	table t = {.terminal = isatty(STDERR_FILENO), .which = ""};
	if (!t.terminal || !launch_tunes(d)) return BLK_OK;
	clock_gettime(CLOCK_MONOTONIC, &t.start);
	blk_tune_options o = {.progress = progress, .context = &t};
	blk_status status = blk_kernel_tune(k, grid, args, n, &o, NULL);
	if (t.drawn) fprintf(stderr, "\r\033[K");
	return status == BLK_ERROR_MEMORY ? BLK_OK : status; /* the launch goes on without, and says so */
}

int ship_records(const char *what, const char *path)
{
	uint32_t n;
	bool out = strcmp(what, "export") == 0;
	if (out ? blk_tune_export(path, &n) : blk_tune_import(path, &n)) {
		fprintf(stderr, "blkrun: %s\n", blk_error());
		return 1;
	}
	printf("%" PRIu32 " tuning records %s %s\n", n, out ? "written to" : "read from", path);
	return 0;
}
