/* libblk from device to launch on a driver and a compiler of memory (fake_device.h): what is checked, what reaches the
 * driver, what happens when any of its calls fails, and that nothing leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_device.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>
#include <cmocka.h>

#define OK(call) check_ok((call), #call, __LINE__)
static void check_ok(blk_status s, const char *what, int line)
{
	if (s != BLK_OK) fail_msg("line %d: %s: %s (%s)", line, what, blk_error(), blk_status_text(s));
}
#define FAILS(status, says, call) check_fails((call), (status), (says), #call, __LINE__)
static void check_fails(blk_status got, blk_status wanted, const char *says, const char *what, int line)
{
	if (got != wanted || !strstr(blk_error(), says))
		fail_msg("line %d: %s: status %d, not %d; says: %s", line, what, got, wanted, blk_error());
}

static int setup(void **state)
{
	(void)state;
	setenv("BLK_CACHE", "off", 1);
	fake_reset();
	fake_compiles = fake_checks = fake_status = 0;
	return 0;
}

static blk_device *open_fake(void)
{
	blk_device *d = NULL;
	OK(device_open_with("cuda", &fake_seams, &d));
	return d;
}

static void close_fake(blk_device *d)
{
	blk_device_close(d);
	if (fake_leak()) fail_msg("left behind: %s", fake_leak());
}

/* ---- Devices ---- */

static void test_device_names(void **state)
{
	(void)state;
	blk_device *d = (blk_device *)1;
	FAILS(BLK_ERROR_ARGUMENT, "no device is called", device_open_with("gpu", &fake_seams, &d));
	assert_null(d);
	FAILS(BLK_ERROR_ARGUMENT, "no device is called", device_open_with("cuda:", &fake_seams, &d));
	FAILS(BLK_ERROR_ARGUMENT, "no device is called", device_open_with("metal0", &fake_seams, &d));
	FAILS(BLK_ERROR_ARGUMENT, "no device is called", device_open_with("cuda:x", &fake_seams, &d));
	FAILS(BLK_ERROR_ARGUMENT, "no device is called", device_open_with("cuda:99999999999", &fake_seams, &d));
	FAILS(BLK_ERROR_NOT_FOUND, "no cuda:1; the driver sees 1 device", device_open_with("cuda:1", &fake_seams, &d));
	FAILS(BLK_ERROR_ARGUMENT, "runs no target \"sm_1\"", device_open_with("sim:sm_1", &fake_seams, &d));
	FAILS(BLK_ERROR_ARGUMENT, "runs no target \"cpu\"", device_open_with("sim:cpu", &fake_seams, &d));
	OK(device_open_with("sim", &fake_seams, &d));
	assert_string_equal(blk_device_name(d), "simulator of sm_80");
	blk_device_close(d);
	FAILS(BLK_ERROR_ARGUMENT, "no place", blk_device_open("cpu", NULL));
	FAILS(BLK_ERROR_ARGUMENT, "null", blk_device_wrap(NULL, &d));
	OK(device_open_with("cuda:0", &fake_seams, &d));
	blk_device_info info;
	OK(blk_device_query(d, &info));
	assert_int_equal(info.kind, BLK_DEVICE_CUDA);
	assert_string_equal(info.name, "Fake GPU");
	assert_string_equal(info.target, "sm_90a");
	assert_int_equal(info.num_sms, 132);
	assert_true(info.theoretical_bytes_per_s == 2.5e8); /* 1000 kHz, 1000 bits, two transfers a clock */
	assert_int_equal(blk_device_num_sms(d), 132);
	assert_string_equal(blk_device_name(d), "Fake GPU");
	assert_ptr_equal(blk_device_context(d), fake_primary);
	close_fake(d);
	FAILS(BLK_ERROR_ARGUMENT, "device is null", blk_device_sync(NULL));
	blk_device_close(NULL);
}

static void test_auto_falls_back(void **state)
{
	(void)state;
	blk_device *d;
	fake.devices = 0;
	blk_device_sync(NULL);
	OK(device_open_with("auto", &fake_seams, &d));
	assert_string_equal(blk_error(), "the device is null"); /* no call has failed since */
	assert_string_equal(blk_note(), "");
	blk_device_info info;
	OK(blk_device_query(d, &info));
	assert_int_equal(info.kind, BLK_DEVICE_CPU);
	assert_string_equal(info.target, "cpu");
	assert_true(info.num_sms >= 1 && info.total_memory > 0 && info.name[0]);
	assert_null(blk_device_context(d));
	blk_device_close(d);
	fake.devices = 1;
	fake.capability = 75; /* a GPU that cannot be used is told */
	OK(device_open_with("auto", &fake_seams, &d));
	assert_non_null(strstr(blk_note(), "no GPU is used: Fake GPU has compute capability 7.5"));
	blk_device_close(d);
	fake.capability = 90;
	OK(device_open_with(NULL, &fake_seams, &d));
	assert_string_equal(blk_device_name(d), "Fake GPU");
	close_fake(d);
}

static void test_targets(void **state)
{
	(void)state;
	static const struct {
		int capability;
		const char *target;
	} rows[] = {{80, "sm_80"}, {86, "sm_86"}, {87, "sm_86"}, {89, "sm_89"}, {90, "sm_90a"}, {100, "sm_100a"},
		{103, "sm_90"}, {110, "sm_90"}, {120, "sm_120a"}, {121, "sm_90"}, {75, NULL}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		blk_device *d;
		blk_device_info info;
		fake.capability = rows[i].capability;
		if (!rows[i].target) {
			FAILS(BLK_ERROR_UNSUPPORTED, "compute capability 7.5",
				device_open_with("cuda", &fake_seams, &d));
			continue;
		}
		OK(device_open_with("cuda", &fake_seams, &d));
		OK(blk_device_query(d, &info));
		assert_string_equal(info.target, rows[i].target);
		close_fake(d);
	}
}

/* A program with its own context keeps it current, whatever we do. */
static void test_foreign_context(void **state)
{
	(void)state;
	blk_device *d;
	blk_buffer *b;
	OK(device_wrap_with(fake_foreign, &fake_seams, &d));
	assert_int_equal(fake.primary, 0);
	assert_ptr_equal(blk_device_context(d), fake_foreign);
	fake.current = (CUcontext)0x7777;
	OK(blk_buffer_create(d, 64, &b));
	assert_ptr_equal(fake.current, (CUcontext)0x7777);
	OK(blk_device_sync(d));
	assert_ptr_equal(fake.current, (CUcontext)0x7777);
	fake.current = fake_foreign; /* ours already: nothing is pushed */
	int calls = fake.calls;
	OK(blk_device_sync(d));
	assert_int_equal(fake.calls, calls + 1);
	close_fake(d);
	assert_ptr_equal(fake.current, fake_foreign);
}

/* ---- Memory ---- */

static void test_buffers(void **state)
{
	(void)state;
	blk_device *d = open_fake(), *cpu;
	blk_buffer *a, *b, *empty, *other;
	unsigned char bytes[16], back[16];
	for (int i = 0; i < 16; i++) bytes[i] = (unsigned char)(i * 7);
	OK(device_open_with("cpu", &fake_seams, &cpu));
	OK(blk_buffer_create(d, 16, &a));
	OK(blk_buffer_create(d, 16, &b));
	OK(blk_buffer_create(d, 0, &empty));
	OK(blk_buffer_create(cpu, 16, &other));
	assert_int_equal(blk_buffer_size(a), 16);
	assert_int_equal(blk_buffer_size(empty), 0);
	assert_non_null(blk_buffer_pointer(empty));
	assert_int_equal((uintptr_t)blk_buffer_pointer(other) % 256, 0);
	OK(blk_buffer_write(a, 0, bytes, 16));
	OK(blk_buffer_copy(b, 8, a, 0, 8));
	OK(blk_buffer_fill(b, 0, 0x5a, 8));
	OK(blk_buffer_read(b, 4, back, 8));
	for (int i = 0; i < 4; i++) assert_int_equal(back[i], 0x5a);
	for (int i = 0; i < 4; i++) assert_int_equal(back[4 + i], bytes[i]);
	OK(blk_buffer_read(empty, 0, NULL, 0));
	FAILS(BLK_ERROR_RANGE, "17 bytes at offset 0", blk_buffer_read(a, 0, back, 17));
	FAILS(BLK_ERROR_RANGE, "offset 17", blk_buffer_write(a, 17, bytes, 0));
	FAILS(BLK_ERROR_RANGE, "offset", blk_buffer_write(a, SIZE_MAX, bytes, 2));
	FAILS(BLK_ERROR_RANGE, "buffer of 16", blk_buffer_fill(a, 8, 0, 9));
	FAILS(BLK_ERROR_RANGE, "overlap", blk_buffer_copy(a, 0, a, 4, 8));
	OK(blk_buffer_copy(a, 0, a, 8, 8));
	OK(blk_buffer_copy(a, 8, a, 0, 8));
	FAILS(BLK_ERROR_HANDLE, "different devices", blk_buffer_copy(a, 0, other, 0, 8));
	FAILS(BLK_ERROR_ARGUMENT, "null", blk_buffer_write(a, 0, NULL, 4));
	FAILS(BLK_ERROR_ARGUMENT, "null", blk_buffer_read(a, 0, NULL, 4));
	FAILS(BLK_ERROR_ARGUMENT, "buffer is null", blk_buffer_read(NULL, 0, back, 4));
	FAILS(BLK_ERROR_MEMORY, "more than memory", blk_buffer_create(d, SIZE_MAX, &empty));
	FAILS(BLK_ERROR_MEMORY, "out of device memory", blk_buffer_create(d, (size_t)1 << 40, &empty));
	assert_null(empty);
	blk_buffer_free(b);
	FAILS(BLK_ERROR_HANDLE, "freed", blk_buffer_read(b, 0, back, 4));
	assert_null(blk_buffer_pointer(b));
	assert_int_equal(blk_buffer_size(b), 0);
	blk_buffer_free(b); /* a second time: nothing */
	blk_buffer_free(NULL);
	blk_device_close(cpu);
	close_fake(d);
}

/* An address is of the buffer that it lies in; of one without bytes, of its first. */
static void test_behind(void **state)
{
	(void)state;
	blk_device *d;
	blk_buffer *b[2];
	memory_span span;
	OK(device_open_with("cpu", &fake_seams, &d));
	for (size_t i = 0; i < 2; i++) {
		OK(blk_buffer_create(d, i ? 0 : 16, &b[i]));
		char *p = blk_buffer_pointer(b[i]);
		const size_t rows[][2] = {{0, 1}, {15, i == 0}, {16, 0}, {1, i == 0}, {(size_t)-1, 0}};
		for (int k = 0; k < 5; k++) {
			blk_arg a = blk_ptr((void *)((uintptr_t)p + rows[k][0]));
			assert_int_equal(memory_behind(d, &a, &span), rows[k][1]);
			assert_int_equal(span.base, rows[k][1] ? (uintptr_t)p : 0);
			assert_int_equal(span.bytes, rows[k][1] && !i ? 16 : 0);
		}
	}
	blk_device_close(d);
}

/* What has no kind's number is no handle. */
static void test_no_handle(void **state)
{
	(void)state;
	blk_device *d = open_fake();
	handle *h = handle_new(d, HANDLE_STREAM, sizeof(blk_stream));
	assert_non_null(h);
	const uint32_t magic = h->magic, others[] = {HANDLE_MAGIC - 1, HANDLE_MAGIC + HANDLE_KINDS, HANDLE_FREED, 0};
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		h->magic = others[i];
		assert_false(handle_retire(h));
	}
	h->magic = magic;
	assert_true(handle_retire(h));
	handle_bury(h, HANDLE_STREAM);
	close_fake(d);
}

static void test_many_handles(void **state)
{
	(void)state;
	blk_device *d = open_fake();
	blk_buffer *kept[8], *b;
	for (int i = 0; i < 8; i++) OK(blk_buffer_create(d, 8, &kept[i]));
	for (int i = 0; i < 1000; i++) {
		OK(blk_buffer_create(d, 8, &b));
		blk_buffer_free(b);
		assert_int_equal(blk_buffer_size(b), 0);
	}
	for (int i = 0; i < 8; i += 2) blk_buffer_free(kept[i]);
	for (int i = 1; i < 8; i += 2) assert_int_equal(blk_buffer_size(kept[i]), 8);
	assert_int_equal(fake.buffers, 4);
	close_fake(d);
}

/* ---- Modules and launches ---- */

typedef struct adder {
	blk_device *d;
	blk_module *m;
	blk_kernel *k;
	blk_buffer *z, *x, *y;
} adder;

static adder make_adder(const char *source)
{
	adder a = {.d = open_fake()};
	OK(blk_module_source(a.d, "add.blk", source, NULL, 0, &a.m));
	OK(blk_kernel_find(a.m, "add", &a.k));
	float x[100], y[100];
	for (int i = 0; i < 100; i++) x[i] = (float)i, y[i] = 2;
	OK(blk_buffer_create(a.d, 400, &a.z));
	OK(blk_buffer_create(a.d, 400, &a.x));
	OK(blk_buffer_create(a.d, 400, &a.y));
	OK(blk_buffer_write(a.x, 0, x, 400));
	OK(blk_buffer_write(a.y, 0, y, 400));
	return a;
}

static void test_launch(void **state)
{
	(void)state;
	adder a = make_adder(FAKE_ADD);
	float z[100];
	OK(blk_launch(a.k, NULL, NULL, BLK_ARGS(blk_buf(a.z), blk_buf(a.x), blk_buf(a.y), blk_i32(100))));
	OK(blk_buffer_read(a.z, 0, z, 400));
	for (int i = 0; i < 100; i++) assert_true(z[i] == (float)i + 2);
	assert_int_equal(fake.grid[0], 1);
	assert_int_equal(fake.grid[1], 1);
	assert_int_equal(fake.threads, 128);
	assert_string_equal(fake_request, "z%16 x%16 y%16 n%4 "); /* f32: four make 16 bytes */
	assert_string_equal(fake.linked, "// PTX of add for sm_90a\n");
	assert_int_equal(fake_compiles, 1);
	/* the same combination again: no compile; others: one each */
	OK(blk_launch(a.k, NULL, NULL, BLK_ARGS(blk_buf(a.z), blk_buf(a.x), blk_buf(a.y), blk_i32(52))));
	assert_int_equal(fake_compiles, 1);
	OK(blk_launch(a.k, NULL, NULL, BLK_ARGS(blk_buf(a.z), blk_buf(a.x), blk_buf(a.y), blk_i32(50))));
	assert_string_equal(fake_request, "z%16 x%16 y%16 ");
	OK(blk_launch(a.k, NULL, NULL, BLK_ARGS(blk_buf(a.z), blk_buf(a.x), blk_buf(a.y), blk_i32(32))));
	assert_string_equal(fake_request, "z%16 x%16 y%16 n%16 ");
	OK(blk_launch(a.k, NULL, NULL, BLK_ARGS(blk_buf(a.z), blk_buf(a.x), blk_buf(a.y), blk_i32(1))));
	assert_string_equal(fake_request, "z%16 x%16 y%16 n=1 ");
	const float *inside = blk_buffer_pointer(a.x);
	OK(blk_launch(a.k, NULL, NULL, BLK_ARGS(blk_buf(a.z), blk_ptr(inside + 1), blk_ptr(inside), blk_i32(7))));
	assert_string_equal(fake_request, "z%16 y%16 ");
	assert_int_equal(fake_compiles, 5);
	assert_int_equal(fake.launches, 6);
	/* a grid of the host's, a stream */
	blk_stream *s;
	OK(blk_stream_create(a.d, &s));
	blk_grid grid = {3, 2, 1};
	OK(blk_launch(a.k, s, &grid, BLK_ARGS(blk_buf(a.z), blk_buf(a.x), blk_buf(a.y), blk_i32(100))));
	assert_int_equal(fake.grid[0], 3);
	assert_int_equal(fake.grid[1], 2);
	assert_ptr_equal(fake.stream, blk_stream_handle(s));
	assert_int_equal(fake_checks, 1);
	close_fake(a.d);
}

static void test_clusters(void **state)
{
	(void)state;
	adder a = make_adder(FAKE_ADD "cluster 2\n");
	const blk_arg args[] = {blk_buf(a.z), blk_buf(a.x), blk_buf(a.y), blk_i32(100)};
	blk_info info;
	OK(blk_kernel_info(a.k, args, 4, &info));
	assert_int_equal(info.cluster, 2);
	const struct {
		blk_grid grid;
		bool refused;
		unsigned cluster;
	} rows[] = {{{4, 3, 1}, false, 2}, {{3, 2, 1}, false, 0}, {{4, 3, 1}, true, 0}};
	for (unsigned i = 0; i < 3; i++) {
		fake.no_clusters = rows[i].refused;
		OK(blk_launch(a.k, NULL, &rows[i].grid, args, 4));
		assert_int_equal(fake.grid[0], rows[i].grid.x);
		assert_int_equal(fake.grid[1], rows[i].grid.y);
		assert_int_equal(fake.threads, 128);
		assert_int_equal(fake.cluster, rows[i].cluster);
	}
	assert_int_equal(fake.launches, 3);
	close_fake(a.d);
	a = make_adder(FAKE_ADD);
	OK(blk_launch(a.k, NULL, &rows[0].grid, BLK_ARGS(blk_buf(a.z), blk_buf(a.x), blk_buf(a.y), blk_i32(100))));
	assert_int_equal(fake.cluster, 0);
	close_fake(a.d);
}

static void test_empty_work(void **state)
{
	(void)state;
	adder a = make_adder(FAKE_ADD);
	OK(blk_launch(a.k, NULL, NULL, BLK_ARGS(blk_buf(a.z), blk_buf(a.x), blk_buf(a.y), blk_i32(0))));
	assert_int_equal(fake.launches, 0);
	assert_int_equal(fake_compiles, 0);
	close_fake(a.d);
}

static void test_wrong_launches(void **state)
{
	(void)state;
	adder a = make_adder(FAKE_ADD);
	blk_device *cpu;
	blk_buffer *there;
	OK(device_open_with("cpu", &fake_seams, &cpu));
	OK(blk_buffer_create(cpu, 400, &there));
	blk_arg z = blk_buf(a.z), x = blk_buf(a.x), y = blk_buf(a.y), n = blk_i32(100);
	FAILS(BLK_ERROR_TYPE, "takes 4 arguments, not 3", blk_launch(a.k, NULL, NULL, BLK_ARGS(z, x, y)));
	FAILS(BLK_ERROR_TYPE, "not 5", blk_launch(a.k, NULL, NULL, BLK_ARGS(z, x, y, n, n)));
	FAILS(BLK_ERROR_TYPE, "takes 4 arguments, not 0", blk_launch(a.k, NULL, NULL, NULL, 0));
	FAILS(BLK_ERROR_ARGUMENT, "arguments are null", blk_launch(a.k, NULL, NULL, NULL, 4));
	FAILS(BLK_ERROR_TYPE, "parameter n of kernel add is i32, but argument 3 is i64",
		blk_launch(a.k, NULL, NULL, BLK_ARGS(z, x, y, blk_i64(100))));
	FAILS(BLK_ERROR_TYPE, "but argument 3 is u32", blk_launch(a.k, NULL, NULL, BLK_ARGS(z, x, y, blk_u32(100))));
	FAILS(BLK_ERROR_TYPE, "but argument 3 is f32", blk_launch(a.k, NULL, NULL, BLK_ARGS(z, x, y, blk_f32(100))));
	FAILS(BLK_ERROR_TYPE, "argument 3 is a buffer", blk_launch(a.k, NULL, NULL, BLK_ARGS(z, x, y, y)));
	FAILS(BLK_ERROR_TYPE, "argument 3 is a pointer", blk_launch(a.k, NULL, NULL, BLK_ARGS(z, x, y, blk_ptr(NULL))));
	FAILS(BLK_ERROR_TYPE, "parameter x of kernel add is *const f32, but argument 1 is i32",
		blk_launch(a.k, NULL, NULL, BLK_ARGS(z, n, y, n)));
	FAILS(BLK_ERROR_TYPE, "none that blk_buf",
		blk_launch(a.k, NULL, NULL, BLK_ARGS(z, x, y, ((blk_arg){.type = 77}))));
	FAILS(BLK_ERROR_ARGUMENT, "buffer for parameter z of kernel add is null",
		blk_launch(a.k, NULL, NULL, BLK_ARGS(blk_buf(NULL), x, y, n)));
	FAILS(BLK_ERROR_HANDLE, "parameter z of kernel add is on another device",
		blk_launch(a.k, NULL, NULL, BLK_ARGS(blk_buf(there), x, y, n)));
	FAILS(BLK_ERROR_ALIGNMENT, "parameter x of kernel add is not aligned to its elements, *const f32",
		blk_launch(a.k, NULL, NULL, BLK_ARGS(z, blk_ptr((char *)blk_buffer_pointer(a.x) + 2), y, n)));
	blk_buffer_free(a.y);
	FAILS(BLK_ERROR_HANDLE, "parameter y of kernel add has been freed",
		blk_launch(a.k, NULL, NULL, BLK_ARGS(z, x, y, n)));
	FAILS(BLK_ERROR_ARGUMENT, "kernel is null", blk_launch(NULL, NULL, NULL, BLK_ARGS(z, x, y, n)));
	y = x;
	static const struct {
		blk_grid grid;
		const char *says;
	} grids[] = {{{0, 1, 1}, "0 programs along x"}, {{1, 0, 1}, "0 programs along y"}, {{1, 1, 0}, "along z"},
		{{0x80000000u, 1, 1}, "limit of 2147483647"}, {{1, 65536, 1}, "along y is over the limit of 65535"},
		{{1, 1, 65536}, "along z is over"}};
	for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++)
		FAILS(BLK_ERROR_GRID, grids[i].says, blk_launch(a.k, NULL, &grids[i].grid, BLK_ARGS(z, x, y, n)));
	FAILS(BLK_ERROR_GRID, "gives -97 programs along x",
		blk_launch(a.k, NULL, NULL, BLK_ARGS(z, x, y, blk_i32(-100000))));
	blk_stream *s;
	OK(blk_stream_create(a.d, &s));
	blk_stream_free(s);
	FAILS(BLK_ERROR_HANDLE, "stream has been freed", blk_launch(a.k, s, NULL, BLK_ARGS(z, x, y, n)));
	FAILS(BLK_ERROR_HANDLE, "freed", blk_stream_sync(s));
	OK(blk_stream_create(cpu, &s));
	FAILS(BLK_ERROR_HANDLE, "another device", blk_launch(a.k, s, NULL, BLK_ARGS(z, x, y, n)));
	assert_int_equal(fake.launches, 0);
	blk_module_close(a.m);
	FAILS(BLK_ERROR_HANDLE, "kernel has been freed", blk_launch(a.k, NULL, NULL, BLK_ARGS(z, x, y, n)));
	FAILS(BLK_ERROR_HANDLE, "module has been freed", blk_kernel_find(a.m, "add", &a.k));
	blk_device_close(cpu);
	close_fake(a.d);
}

static void test_grid_clauses(void **state)
{
	(void)state;
	adder a = make_adder("kernel add\nparam z *f32\nparam x *f32\nparam y *f32\nparam n i32\n");
	blk_arg args[] = {blk_buf(a.z), blk_buf(a.x), blk_buf(a.y), blk_i32(3)};
	FAILS(BLK_ERROR_GRID, "has no grid clause", blk_launch(a.k, NULL, NULL, args, 4));
	blk_module *m;
	blk_kernel *k;
	OK(blk_module_source(a.d, "b.blk",
		"kernel add\nparam z *f32\nparam x *f32\nparam y *f32\nparam n i32\n"
		"grid 0 1000 p3 /\ngrid 1 p3 num_sms *\ncost bytes p3 4 *\n",
		NULL, 0, &m));
	OK(blk_kernel_find(m, NULL, &k));
	blk_grid g;
	OK(blk_kernel_grid(k, args, 4, &g));
	assert_int_equal(g.x, 333);
	assert_int_equal(g.y, 396);
	assert_int_equal(g.z, 1);
	double bytes, flops;
	OK(blk_kernel_cost(k, args, 4, &bytes, &flops));
	assert_true(bytes == 12 && isnan(flops));
	args[3] = blk_i32(0);
	FAILS(BLK_ERROR_GRID, "divides by zero", blk_launch(k, NULL, NULL, args, 4));
	args[3] = blk_i32(1000);
	FAILS(BLK_ERROR_GRID, "132000 programs along y is over the limit", blk_launch(k, NULL, NULL, args, 4));
	assert_int_equal(fake.launches, 0);
	close_fake(a.d);
}

static void test_find(void **state)
{
	(void)state;
	blk_device *d = open_fake();
	blk_module *m;
	blk_kernel *k = (blk_kernel *)1;
	OK(blk_module_source(d, "two.blk", "kernel one\nparam n i32\nkernel two\n", NULL, 0, &m));
	FAILS(BLK_ERROR_NOT_FOUND, "no kernel \"three\"; it has: one, two", blk_kernel_find(m, "three", &k));
	assert_null(k);
	FAILS(BLK_ERROR_NOT_FOUND, "several kernels, name one: one, two", blk_kernel_find(m, NULL, &k));
	OK(blk_kernel_find(m, "two", &k));
	assert_string_equal(blk_kernel_name(k), "two");
	assert_non_null(strstr(blk_kernel_signature(k), "kernel two\n"));
	assert_string_equal(blk_module_kernel(m, 0), "one");
	assert_null(blk_module_kernel(m, 2));
	OK(blk_kernel_find(m, "one", &k));
	const blk_parameter *p;
	size_t n;
	OK(blk_kernel_parameters(k, &p, &n));
	assert_int_equal(n, 1);
	assert_string_equal(p[0].name, "n");
	assert_string_equal(p[0].type, "i32");
	close_fake(d);
}

static void test_compile_errors(void **state)
{
	(void)state;
	blk_device *d = open_fake();
	blk_module *m = (blk_module *)1;
	FAILS(BLK_ERROR_COMPILE, "error E0203: no", blk_module_source(d, "x.blk", "error E0203: no\n", NULL, 0, &m));
	assert_null(m);
	static const struct {
		int status;
		blk_status gives;
	} rows[] = {{2, BLK_ERROR_ARGUMENT}, {3, BLK_ERROR_MEMORY}, {4, BLK_ERROR_COMPILER}};
	for (int i = 0; i < 3; i++) {
		fake_status = rows[i].status;
		FAILS(rows[i].gives, "compiler", blk_module_source(d, "x.blk", FAKE_ADD, NULL, 0, &m));
	}
	fake_status = 0;
	OK(blk_module_source(d, "x.blk", "warning\n" FAKE_ADD, NULL, 0, &m));
	assert_string_equal(blk_note(), "a warning\n");
	blk_kernel *k;
	blk_info info;
	OK(blk_kernel_find(m, "add", &k)); /* its code is another compile, which says the same again */
	OK(blk_kernel_info(k, BLK_ARGS(blk_ptr(0), blk_ptr(0), blk_ptr(0), blk_i32(7)), &info));
	assert_string_equal(blk_note(), "");
	OK(blk_module_source(d, "x.blk", FAKE_ADD, NULL, 0, &m));
	assert_string_equal(blk_note(), "");
	FAILS(BLK_ERROR_NOT_FOUND, "/nowhere/x.blk: No such file", blk_module_open(d, "/nowhere/x.blk", NULL, 0, &m));
	FAILS(BLK_ERROR_IO, "Is a directory", blk_module_open(d, "/tmp", NULL, 0, &m));
	FAILS(BLK_ERROR_NOT_FOUND, "x.blkpkg", blk_module_open(d, "x.blkpkg", NULL, 0, &m));
	FAILS(BLK_ERROR_ARGUMENT, "path is null", blk_module_open(d, NULL, NULL, 0, &m));
	FAILS(BLK_ERROR_ARGUMENT, "text is null", blk_module_source(d, "x", NULL, NULL, 0, &m));
	blk_define no_value = {"BLOCK", NULL};
	FAILS(BLK_ERROR_ARGUMENT, "define 0 has no value", blk_module_source(d, "x", FAKE_ADD, &no_value, 1, &m));
	close_fake(d);
}

/* Defines of another kernel of the file are kept from this one; options go to all. */
static void test_defines(void **state)
{
	(void)state;
	blk_device *d = open_fake();
	blk_module *m;
	blk_kernel *k;
	blk_buffer *b;
	blk_define defines[] = {{"BLOCK", "2048"}, {"OTHER", "1"}, {"num_warps", "8"}};
	OK(blk_module_source(d, "x.blk", FAKE_ADD "kernel other\nconst OTHER i32 1\n", defines, 3, &m));
	assert_string_equal(fake_request, "-DBLOCK=2048 -DOTHER=1 -Dnum_warps=8 ");
	OK(blk_kernel_find(m, "add", &k));
	OK(blk_buffer_create(d, 64, &b));
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_buf(b), blk_buf(b), blk_i32(3))));
	assert_string_equal(fake_request, "z%16 x%16 y%16 -DBLOCK=2048 -Dnum_warps=8 ");
	close_fake(d);
}

static const char *const ptx =
	"// blk: kernel add\n// blk: symbol add\n// blk: target sm_80\n// blk: param z *f32 align 16\n"
	"// blk: param x *const f32\n// blk: param y *const f32\n// blk: param n i32 div 16\n"
	"// blk: written 0\n// blk: grid 0 p3 1024 cdiv\n// blk: threads 128\n// blk: shared 0\n"
	"// blk: kernel second\n// blk: param a i32 one\n// blk: grid 0 1\n.version 8.0\n";

static void test_ptx(void **state)
{
	(void)state;
	blk_device *d = open_fake(), *cpu;
	blk_module *m;
	blk_kernel *k;
	blk_buffer *b;
	OK(blk_module_source(d, "add.ptx", ptx, NULL, 0, &m));
	assert_int_equal(fake_checks, 0);
	assert_string_equal(blk_module_kernel(m, 1), "second");
	OK(blk_kernel_find(m, "add", &k));
	OK(blk_buffer_create(d, 256, &b));
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_buf(b), blk_buf(b), blk_i32(32))));
	const char *p = blk_buffer_pointer(b);
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_ptr(p + 4), blk_buf(b), blk_i32(16))));
	assert_int_equal(fake.links_made, 1);
	assert_int_equal(fake_compiles, 0);
	FAILS(BLK_ERROR_ALIGNMENT, "compiled for n divisible by 16",
		blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_buf(b), blk_buf(b), blk_i32(30))));
	FAILS(BLK_ERROR_ALIGNMENT, "compiled for z aligned to 16",
		blk_launch(k, NULL, NULL, BLK_ARGS(blk_ptr(p + 4), blk_buf(b), blk_buf(b), blk_i32(16))));
	OK(blk_kernel_find(m, "second", &k));
	FAILS(BLK_ERROR_ALIGNMENT, "compiled for a = 1", blk_launch(k, NULL, NULL, BLK_ARGS(blk_i32(2))));
	blk_define define = {"BLOCK", "1"};
	FAILS(BLK_ERROR_ARGUMENT, "takes no defines", blk_module_source(d, "add.ptx", ptx, &define, 1, &m));
	FAILS(BLK_ERROR_FORMAT, "has no kernel signature",
		blk_module_source(d, "add.ptx", ".version 8.0\n", NULL, 0, &m));
	FAILS(BLK_ERROR_FORMAT, "line 2",
		blk_module_source(d, "add.ptx", "// blk: kernel a\n// blk: param x\n", NULL, 0, &m));
	OK(device_open_with("cpu", &fake_seams, &cpu));
	FAILS(BLK_ERROR_UNSUPPORTED, "only a CUDA device", blk_module_source(cpu, "add.ptx", ptx, NULL, 0, &m));
	blk_device_close(cpu);
	close_fake(d);
}

static void test_bad_code(void **state)
{
	(void)state;
	blk_device *d = open_fake();
	blk_module *m;
	blk_kernel *k;
	static const struct {
		const char *source, *says;
		blk_status status;
	} rows[] = {
		{"kernel k\nspoiled\ngrid 0 1\n", "ptxas fatal: line 1", BLK_ERROR_DRIVER},
		{"kernel k\nsymbol missing\ngrid 0 1\n", "cuModuleGetFunction", BLK_ERROR_DRIVER},
		{"kernel k\nshared 300000\ngrid 0 1\n", "needs 300000 bytes of shared memory", BLK_ERROR_RESOURCES},
		{"kernel k\nmax_registers 31\ngrid 0 1\n", "max_registers = 31: the driver's compiler gives 32",
			BLK_ERROR_RESOURCES},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		OK(blk_module_source(d, "x.blk", rows[i].source, NULL, 0, &m));
		OK(blk_kernel_find(m, "k", &k));
		FAILS(rows[i].status, rows[i].says, blk_launch(k, NULL, NULL, NULL, 0));
		assert_int_equal(fake.modules, 0);
	}
	fake.local = 8;
	OK(blk_module_source(d, "x.blk", "kernel k\nmax_spills 0\ngrid 0 1\n", NULL, 0, &m));
	OK(blk_kernel_find(m, "k", &k));
	FAILS(BLK_ERROR_RESOURCES, "max_spills = 0", blk_launch(k, NULL, NULL, NULL, 0));
	close_fake(d);
}

static void test_info_and_bench(void **state)
{
	(void)state;
	adder a = make_adder(FAKE_ADD);
	blk_arg args[] = {blk_buf(a.z), blk_buf(a.x), blk_buf(a.y), blk_i32(100)};
	blk_info info;
	OK(blk_kernel_info(a.k, args, 4, &info));
	assert_int_equal(info.registers, 32);
	assert_int_equal(info.threads, 128);
	assert_int_equal(info.num_warps, 4);
	assert_int_equal(info.shared_bytes, 16);
	assert_int_equal(info.programs_per_sm, 8);
	assert_int_equal(info.num_sms, 132);
	assert_true(info.occupancy == 0.5f);
	assert_string_equal(info.ptx, "// PTX of add for sm_90a\n");
	assert_string_equal(info.target, "sm_90a");
	assert_false(info.from_cache);
	blk_timing t;
	int before = fake.launches;
	blk_bench_options o = {.warmup_ms = 1, .measure_ms = 10, .keep_cache = 1};
	OK(blk_bench(a.k, NULL, args, 4, &o, &t));
	assert_int_equal(t.runs, 20);
	assert_true(t.median_ms == 0.5 && t.mean_ms == 0.5 && t.min_ms == 0.5 && t.p80_ms == 0.5);
	assert_int_equal(fake.launches - before, 1 + 1 + 3 + 2 + 20);
	o = (blk_bench_options){.min_runs = 2, .max_runs = 2};
	OK(blk_bench(a.k, NULL, args, 4, &o, &t)); /* with the cache flushed */
	assert_int_equal(t.runs, 2);
	o = (blk_bench_options){
		.min_runs = 1000000, .max_runs = 1000000, .warmup_ms = 1, .measure_ms = 1, .keep_cache = 1};
	OK(blk_bench(a.k, NULL, args, 4, &o, &t));
	assert_int_equal(t.runs, 100000); /* at most, whatever is asked for */
	assert_true(t.median_ms == 0.5);
	assert_int_equal(fake.events, 0);
	double rate;
	OK(blk_device_bandwidth(a.d, &rate));
	assert_true(rate == 2.0 * (1 << 27) / 0.5e-3); /* an eighth of the fake's memory */
	close_fake(a.d);
}

static void test_streams_and_events(void **state)
{
	(void)state;
	blk_device *d = open_fake();
	blk_stream *s, *w;
	blk_event *a, *b;
	blk_buffer *m;
	double ms;
	char bytes[4] = "abc";
	OK(blk_stream_create(d, &s));
	OK(blk_stream_sync(s));
	OK(blk_event_create(d, &a));
	OK(blk_event_create(d, &b));
	OK(blk_buffer_create(d, 4, &m));
	FAILS(BLK_ERROR_ARGUMENT, "never recorded", blk_event_elapsed(a, b, &ms));
	OK(blk_event_record(a, s));
	OK(blk_event_record(b, NULL));
	OK(blk_event_elapsed(a, b, &ms));
	assert_true(ms == 0.5);
	int syncs = fake.syncs;
	OK(blk_buffer_write(m, 0, bytes, 4));
	assert_int_equal(fake.syncs, syncs);
	OK(blk_stream_wrap(
		d, (void *)0x9999, &w)); /* may not wait for the default stream: copies wait for everything */
	assert_ptr_equal(blk_stream_handle(w), (void *)0x9999);
	OK(blk_buffer_write(m, 0, bytes, 4));
	OK(blk_buffer_read(m, 0, bytes, 4));
	assert_int_equal(fake.syncs, syncs + 2);
	blk_stream_free(w);
	assert_int_equal(fake.streams, 1); /* the caller's stream is the caller's */
	blk_event_free(a);
	FAILS(BLK_ERROR_HANDLE, "freed", blk_event_record(a, NULL));
	close_fake(d);
}

/* Where the linker refuses PTX, the loader is asked. */
static void test_loader_after_linker(void **state)
{
	(void)state;
	int links = 0;
	for (int k = 1;; k++) {
		fake_reset();
		fake.loads_ptx = true;
		adder a = make_adder(FAKE_ADD);
		fake.fail_at = fake.calls + k;
		fake.fail_with = CUDA_INVALID_PTX;
		blk_status st =
			blk_launch(a.k, NULL, NULL, BLK_ARGS(blk_buf(a.z), blk_buf(a.x), blk_buf(a.y), blk_i32(100)));
		const char *failed = fake.failed_call ? fake.failed_call : "";
		bool linking = strncmp(failed, "fake_cuLink", 11) == 0;
		links += linking;
		assert_int_equal(st, linking || !failed[0] ? BLK_OK : BLK_ERROR_DRIVER);
		close_fake(a.d);
		if (!failed[0]) break;
	}
	assert_int_equal(links, 3);
}

/* The linker's compiler ignores setmaxnreg: such PTX is the loader's, as a library where the driver has them, and its
 * log is told. */
static blk_status launch_handing_over(const device_seams *seams, const char *code)
{
	static const char head[] =
		"// blk: kernel k\n// blk: symbol k\n// blk: target sm_90a\n"
		"// blk: param a i32\n// blk: param b i32\n// blk: param c i32\n// blk: param d i32\n"
		"// blk: grid 0 1\n// blk: threads 384\n// blk: shared 0\n.version 8.0\n";
	blk_device *d = NULL;
	blk_module *m;
	blk_kernel *k;
	char text[512];
	snprintf(text, sizeof text, "%s%s", head, code);
	blk_status st = device_open_with("cuda", seams, &d);
	if (!st) st = blk_module_source(d, "k.ptx", text, NULL, 0, &m);
	if (!st) st = blk_kernel_find(m, "k", &k);
	if (!st) st = blk_launch(k, NULL, NULL, BLK_ARGS(blk_i32(1), blk_i32(2), blk_i32(3), blk_i32(0)));
	char *why = st ? error_take() : NULL;
	blk_device_close(d);
	if (why) error_give(why);
	if (fake_leak()) fail_msg("left behind: %s", fake_leak());
	return st;
}

#define HANDS_OVER "setmaxnreg.inc.sync.aligned.u32 240;\n"

static void test_registers_handed_over(void **state)
{
	(void)state;
	static const struct {
		const char *code;
		int lacks; /* which of a library's calls the driver has not; 0: it has all */
		int links, libraries;
		const char *fails;
	} row[] = {{"ret;\n", 0, 1, 0, NULL}, {HANDS_OVER, 0, 0, 1, NULL}, {HANDS_OVER, 1, 0, 0, NULL},
		{HANDS_OVER, 2, 0, 0, NULL}, {HANDS_OVER, 3, 0, 0, NULL},
		{HANDS_OVER "// bad ptx\n", 0, 0, 1, "ptxas fatal: line 3"},
		{HANDS_OVER "// bad ptx\n", 1, 0, 0, "ptxas fatal: line 2"}};
	for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
		cuda_api api = fake_api;
		if (row[i].lacks == 1) api.cuLibraryLoadData = NULL;
		if (row[i].lacks == 2) api.cuLibraryGetModule = NULL;
		if (row[i].lacks == 3) api.cuLibraryUnload = NULL;
		const device_seams seams = {.cuda = &api, .compiler = &fake_compiler};
		fake_reset();
		fake.loads_ptx = true;
		if (row[i].fails)
			FAILS(BLK_ERROR_DRIVER, row[i].fails, launch_handing_over(&seams, row[i].code));
		else
			OK(launch_handing_over(&seams, row[i].code));
		assert_int_equal(fake.links_made, row[i].links);
		assert_int_equal(fake.libraries_made, row[i].libraries);
	}
}

/* Each call of a library's fails once: named, and nothing is left of it. */
static void test_libraries_that_fail(void **state)
{
	(void)state;
	int named = 0;
	for (int at = 1;; at++) {
		fake_reset();
		fake.fail_at = at;
		fake.fail_with = 1;
		blk_status st = launch_handing_over(&fake_seams, HANDS_OVER);
		if (!fake.failed_call) {
			OK(st);
			break;
		}
		const char *call = fake.failed_call + strlen("fake_");
		if (strncmp(call, "cuLibrary", 9) != 0) continue;
		assert_int_equal(st, BLK_ERROR_DRIVER);
		assert_non_null(strstr(blk_error(), call));
		named++;
	}
	assert_int_equal(named, 2);
}

/* Every driver call fails once, with each kind of error: a status, a sentence, no leak, and the device goes on. */
static blk_status whole_life(void)
{
	blk_device *d = NULL;
	blk_module *m = NULL;
	blk_kernel *k = NULL;
	blk_buffer *b = NULL;
	blk_stream *s = NULL;
	blk_event *e = NULL, *f = NULL;
	blk_info info;
	double ms;
	char bytes[64] = {0};
	blk_status st = device_open_with("cuda", &fake_seams, &d);
	if (!st) st = blk_module_source(d, "add.blk", FAKE_ADD, NULL, 0, &m);
	if (!st) st = blk_kernel_find(m, "add", &k);
	if (!st) st = blk_buffer_create(d, 64, &b);
	if (!st) st = blk_buffer_write(b, 0, bytes, 64);
	if (!st) st = blk_stream_create(d, &s);
	if (!st) st = blk_event_create(d, &e);
	if (!st) st = blk_event_create(d, &f);
	if (!st) st = blk_event_record(e, s);
	if (!st) st = blk_launch(k, s, NULL, BLK_ARGS(blk_buf(b), blk_buf(b), blk_buf(b), blk_i32(3)));
	if (!st) st = blk_event_record(f, s);
	if (!st) st = blk_event_elapsed(e, f, &ms);
	if (!st) st = blk_stream_sync(s);
	if (!st) st = blk_kernel_info(k, BLK_ARGS(blk_buf(b), blk_buf(b), blk_buf(b), blk_i32(3)), &info);
	if (!st) st = blk_buffer_fill(b, 0, 1, 64);
	if (!st) st = blk_buffer_copy(b, 0, b, 32, 32);
	if (!st) st = blk_buffer_read(b, 0, bytes, 64);
	if (!st) st = blk_device_sync(d);
	blk_device_close(d);
	return st;
}

static void test_driver_faults(void **state)
{
	(void)state;
	static const struct {
		int code;
		blk_status status;
	} codes[] = {{2, BLK_ERROR_MEMORY}, {1, BLK_ERROR_DRIVER}, {100, BLK_ERROR_NOT_FOUND}, {700, BLK_ERROR_KERNEL},
		{701, BLK_ERROR_RESOURCES}, {710, BLK_ERROR_ASSERT}, {719, BLK_ERROR_KERNEL}, {999, BLK_ERROR_DRIVER}};
	OK(whole_life());
	int calls = fake.calls;
	assert_true(calls > 40);
	for (size_t c = 0; c < sizeof codes / sizeof codes[0]; c++)
		for (int at = 1; at <= calls; at++) {
			fake_reset();
			fake.fail_at = at;
			fake.fail_with = codes[c].code;
			blk_status st = whole_life();
			if (fake_leak())
				fail_msg("call %d (%s) failing with %d leaks %s", at, fake.failed_call, codes[c].code,
					fake_leak());
			/* the close's own synchronisation cannot fail anyone */
			bool in_close = st == BLK_OK && strcmp(fake.failed_call, "fake_cuCtxSynchronize") == 0;
			in_close =
				in_close || (st == BLK_OK && strcmp(fake.failed_call, "fake_cuCtxPushCurrent_v2") == 0);
			bool push = strcmp(fake.failed_call, "fake_cuCtxPushCurrent_v2") == 0;
			if (!in_close && st != codes[c].status && !(push && st == BLK_ERROR_DRIVER))
				fail_msg("call %d (%s) failing with %d gives %s", at, fake.failed_call, codes[c].code,
					blk_status_text(st));
			if (!in_close) assert_true(strlen(blk_error()) > 10);
		}
	fake_reset();
	OK(whole_life());
}

/* Eight threads launch all combinations of one kernel: each is compiled once, all results are there. */
static void *launches(void *p)
{
	adder *a = p;
	const float *x = blk_buffer_pointer(a->x);
	for (int i = 0; i < 2000; i++) {
		blk_arg n = blk_i32(i % 3 == 0 ? 1 : i % 3 == 1 ? 16 : 5);
		blk_arg from = i % 2 ? blk_buf(a->x) : blk_ptr(x + 1);
		uint64_t bits[SIGNATURE_PARAMETERS], key;
		variant *v;
		blk_arg args[] = {blk_buf(a->z), from, i % 5 ? blk_buf(a->y) : blk_ptr(x + 1), n};
		if (launch_arguments(a->k, args, 4, bits, &key) || variant_get(a->k, key, &v) || v->key != key)
			return "wrong";
	}
	return NULL;
}

static void test_threads(void **state)
{
	(void)state;
	adder a = make_adder(FAKE_ADD);
	pthread_t t[8];
	fake.current = fake_primary; /* the fake's context is one for all threads */
	for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&t[i], NULL, launches, &a), 0);
	for (int i = 0; i < 8; i++) {
		void *wrong;
		pthread_join(t[i], &wrong);
		if (wrong) fail_msg("a thread found another's code");
	}
	assert_int_equal(fake_compiles, 12);
	fake.current = NULL;
	close_fake(a.d);
}

static void *fails_elsewhere(void *p)
{
	(void)p;
	char *say = malloc(64);
	snprintf(say, 64, "[%s]", blk_error());
	blk_device_sync(NULL);
	return say;
}

static void test_errors_are_per_thread(void **state)
{
	(void)state;
	pthread_t t;
	void *said;
	blk_device *d;
	blk_device_open("nonsense", &d);
	assert_int_equal(pthread_create(&t, NULL, fails_elsewhere, NULL), 0);
	pthread_join(t, &said);
	assert_string_equal(said, "[]");
	free(said);
	assert_non_null(strstr(blk_error(), "nonsense"));
	for (int s = 0; s < BLK_STATUS_COUNT; s++) assert_true(strlen(blk_status_text((blk_status)s)) > 5);
	assert_string_equal(blk_status_text((blk_status)99), "an unknown status");
	assert_string_equal(blk_version(), BLK_VERSION);
}

static void test_arguments(void **state)
{
	(void)state;
	assert_true(blk_i8(-1).bits == 0xff && blk_i16(-2).bits == 0xfffe && blk_i32(-3).bits == 0xfffffffd);
	assert_true(blk_i64(-4).bits == UINT64_MAX - 3 && blk_u8(200).bits == 200 &&
		    blk_u64(UINT64_MAX).bits == UINT64_MAX);
	assert_true(blk_f32(1.0f).bits == 0x3f800000 && blk_f64(1.0).bits == UINT64_C(0x3ff0000000000000));
	assert_true(blk_bool(5).bits == 1 && blk_f16(0x3c00).bits == 0x3c00 && blk_bf16(0x3f80).type == BLK_TYPE_BF16);
	assert_true(blk_u16(7).type == BLK_TYPE_U16 && blk_u32(7).type == BLK_TYPE_U32);
	assert_true(blk_f8e4m3(9).type == BLK_TYPE_F8E4M3 && blk_f8e5m2(9).bits == 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, setup)
		T(test_device_names),
		T(test_auto_falls_back),
		T(test_targets),
		T(test_foreign_context),
		T(test_buffers),
		T(test_behind),
		T(test_no_handle),
		T(test_many_handles),
		T(test_launch),
		T(test_clusters),
		T(test_empty_work),
		T(test_wrong_launches),
		T(test_grid_clauses),
		T(test_find),
		T(test_compile_errors),
		T(test_defines),
		T(test_ptx),
		T(test_bad_code),
		T(test_info_and_bench),
		T(test_streams_and_events),
		T(test_loader_after_linker),
		T(test_registers_handed_over),
		T(test_libraries_that_fail),
		T(test_driver_faults),
		T(test_threads),
		T(test_errors_are_per_thread),
		T(test_arguments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
