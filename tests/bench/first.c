/* From the start of a process to its first result: opens the device, compiles add (or takes it from the cache),
 * launches it and reads one element back.
 *
 * usage: first [--device=NAME] [path of vector_add.blk]
 * Run it twice, BLK_CACHE_DIR empty and then filled, for the cold and the warm figure; it uses no benchmark harness, as
 * every call would count. */
#include <blk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

int main(int argc, char **argv)
{
	enum { N = 1 << 20 };
	const char *device = "auto", *path = "examples/vector_add/vector_add.blk";
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "--device=", 9) == 0)
			device = argv[i] + 9;
		else
			path = argv[i];
	blk_device *d;
	blk_module *m;
	blk_kernel *add;
	blk_buffer *x, *y, *z;
	blk_info info;
	float ones[2] = {1, 2}, got[2] = {0, 0};
	double t0 = now();
	must(blk_device_open(device, &d));
	double t1 = now();
	must(blk_module_open(d, path, NULL, 0, &m));
	must(blk_kernel_find(m, "add", &add));
	must(blk_buffer_create(d, N * 4, &x));
	must(blk_buffer_create(d, N * 4, &y));
	must(blk_buffer_create(d, N * 4, &z));
	must(blk_buffer_fill(x, 0, 0, N * 4));
	must(blk_buffer_fill(y, 0, 0, N * 4));
	must(blk_buffer_write(x, 0, ones, sizeof ones));
	must(blk_buffer_write(y, 0, ones, sizeof ones));
	must(blk_launch(add, NULL, NULL, BLK_ARGS(blk_buf(z), blk_buf(x), blk_buf(y), blk_i32(N))));
	must(blk_buffer_read(z, 0, got, sizeof got));
	double t2 = now();
	if (got[0] != 2 || got[1] != 4) return fprintf(stderr, "wrong result\n"), 1;
	must(blk_kernel_info(add, BLK_ARGS(blk_buf(z), blk_buf(x), blk_buf(y), blk_i32(N)), &info));
	printf("first: device %.1f ms, then the first result %.1f ms (code from %s)\n", t1 - t0, t2 - t1,
		info.from_cache ? "the cache" : "source");
	blk_device_close(d);
	return 0;
}
