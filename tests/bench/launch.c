/* What one launch of a seen kernel costs the host, beside cuLaunchKernel on the same function, stream and arguments.
 *
 * usage: launch [path of vector_add.blk]       needs a GPU
 * Rounds alternate between the two and the median round counts; the queue is drained between rounds, outside the clock.
 */
#include <blk.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LAUNCHES = 500, ROUNDS = 41 };

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void must(blk_status s)
{
	if (s == BLK_OK) return;
	fprintf(stderr, "%s\n", blk_error());
	exit(1);
}

typedef int launch_kernel(
	void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

int main(int argc, char **argv)
{
	blk_device *device;
	blk_module *module;
	blk_kernel *add;
	blk_buffer *x, *y, *z;
	blk_stream *stream;
	enum { N = 1 << 12 };
	must(blk_device_open("cuda:0", &device));
	must(blk_module_open(device, argc > 1 ? argv[1] : "examples/vector_add/vector_add.blk", NULL, 0, &module));
	must(blk_kernel_find(module, "add", &add));
	must(blk_buffer_create(device, N * 4, &x));
	must(blk_buffer_create(device, N * 4, &y));
	must(blk_buffer_create(device, N * 4, &z));
	must(blk_stream_create(device, &stream));
	blk_arg args[] = {blk_buf(z), blk_buf(x), blk_buf(y), blk_i32(N)};
	must(blk_launch(add, stream, NULL, args, 4));
	must(blk_stream_sync(stream));
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	launch_kernel *raw = driver ? (launch_kernel *)dlsym(driver, "cuLaunchKernel") : NULL;
	int (*load)(void **, const void *) =
		driver ? (int (*)(void **, const void *))dlsym(driver, "cuModuleLoadData") : NULL;
	int (*find)(void **, void *, const char *) =
		driver ? (int (*)(void **, void *, const char *))dlsym(driver, "cuModuleGetFunction") : NULL;
	int (*enter)(void *) = driver ? (int (*)(void *))dlsym(driver, "cuCtxSetCurrent") : NULL;
	blk_info info;
	void *code, *function;
	must(blk_kernel_info(add, args, 4, &info));
	if (!raw || !load || !find || !enter || enter(blk_device_context(device)) || load(&code, info.ptx) ||
		find(&function, code, "add"))
		return fprintf(stderr, "the driver refuses the PTX\n"), 1;
	void *px = blk_buffer_pointer(x), *py = blk_buffer_pointer(y), *pz = blk_buffer_pointer(z);
	int n = N;
	void *raw_args[] = {&pz, &px, &py, &n};
	double ours[ROUNDS], theirs[ROUNDS];
	for (int r = 0; r < ROUNDS; r++) {
		double t = now();
		for (int i = 0; i < LAUNCHES; i++) must(blk_launch(add, stream, NULL, args, 4));
		ours[r] = (now() - t) / LAUNCHES;
		must(blk_stream_sync(stream));
		t = now();
		for (int i = 0; i < LAUNCHES; i++)
			if (raw(function, N / 1024, 1, 1, 128, 1, 1, 0, blk_stream_handle(stream), raw_args, NULL))
				return 1;
		theirs[r] = (now() - t) / LAUNCHES;
		must(blk_stream_sync(stream));
	}
	qsort(ours, ROUNDS, sizeof ours[0], compare);
	qsort(theirs, ROUNDS, sizeof theirs[0], compare);
	printf("launch: blk_launch %.3f us, cuLaunchKernel %.3f us, ratio %.3f (median of %d rounds of %d)\n",
		ours[ROUNDS / 2], theirs[ROUNDS / 2], ours[ROUNDS / 2] / theirs[ROUNDS / 2], ROUNDS, LAUNCHES);
	blk_stream_free(stream);
	blk_buffer_free(x);
	blk_buffer_free(y);
	blk_buffer_free(z);
	blk_module_close(module);
	blk_device_close(device);
	return 0;
}
