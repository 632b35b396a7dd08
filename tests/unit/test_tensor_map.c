/* Tensor maps from a signature's lines to the driver: what is asked of it, how often, and what happens when no map can
 * be made.  Driver and compiler are fake_device.h's, whose code takes maps where something is promised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_device.h"

#include <pthread.h>
#include <cmocka.h>

#define OK(call) check((call), BLK_OK, "", #call, __LINE__)
#define FAILS(status, says, call) check((call), (status), (says), #call, __LINE__)
static void check(blk_status got, blk_status wanted, const char *says, const char *what, int line)
{
	if (got != wanted || (wanted && !strstr(blk_error(), says)))
		fail_msg("line %d: %s: status %d, not %d; says: %s", line, what, got, wanted, blk_error());
}

static int setup(void **state)
{
	(void)state;
	setenv("BLK_CACHE", "off", 1);
	fake_reset();
	fake.takes_maps = 2;
	return 0;
}

/* x as an array of n / 64 rows of n columns from its second row on, z as a row of 64: the first has a stride that only
 * some n give 16 bytes. */
#define MAPS FAKE_ADD "map f32 128 32 64 ; p1 p3 4 * + ; p3 ; p3 64 / ; p3 4 *\nmap i16 64 32 1 ; p0 ; 64 ; 1 ; 128\n"

typedef struct place {
	blk_device *d;
	blk_module *m;
	blk_kernel *k;
	blk_buffer *z, *x, *y;
} place;

static place open_place(const cuda_api *api, const char *source)
{
	place p = {0};
	device_seams seams = {.cuda = api, .compiler = &fake_compiler};
	OK(device_open_with("cuda", &seams, &p.d));
	OK(blk_module_source(p.d, "maps.blk", source, NULL, 0, &p.m));
	OK(blk_kernel_find(p.m, NULL, &p.k));
	OK(blk_buffer_create(p.d, 65536, &p.z));
	OK(blk_buffer_create(p.d, 65536, &p.x));
	OK(blk_buffer_create(p.d, 65536, &p.y));
	return p;
}

static void close_place(place *p)
{
	blk_device_close(p->d);
	if (fake_leak()) fail_msg("left behind: %s", fake_leak());
}

static blk_status launch_with(place *p, const blk_buffer *x, int32_t n)
{
	const blk_arg args[] = {blk_buf(p->z), blk_buf((blk_buffer *)x), blk_buf(p->y), blk_i32(n)};
	return blk_launch(p->k, NULL, NULL, args, 4);
}

static void test_request(void **state)
{
	(void)state;
	place p = open_place(&fake_api, MAPS);
	OK(launch_with(&p, p.x, 1024));
	assert_int_equal(fake.encodes, 2);
	assert_int_equal(fake.map.type, CUDA_MAP_U16); /* there is no i16 */
	assert_int_equal(fake.map.swizzle, CUDA_MAP_SWIZZLE_64);
	assert_int_equal(fake.map.rank, 2);
	assert_true(fake.map.address == p.z->address);
	assert_true(fake.map.extents[0] == 64 && fake.map.extents[1] == 1 && fake.map.strides[0] == 128);
	assert_true(fake.maps[1].opaque[0] == p.z->address && fake.maps[1].opaque[1] == 64);
	assert_true(fake.maps[0].opaque[0] == p.x->address + 4096 && fake.maps[0].opaque[1] == 1024);
	OK(launch_with(&p, p.x, 2048));
	assert_int_equal(fake.encodes, 3); /* only the first has changed */
	assert_int_equal(fake.map.type, CUDA_MAP_F32);
	assert_int_equal(fake.map.interleave, CUDA_MAP_PLAIN);
	assert_int_equal(fake.map.swizzle, CUDA_MAP_SWIZZLE_128);
	assert_int_equal(fake.map.promotion, CUDA_MAP_L2_128);
	assert_int_equal(fake.map.fill, CUDA_MAP_ZEROS);
	assert_true(fake.map.address == p.x->address + 8192);
	assert_true(fake.map.extents[0] == 2048 && fake.map.extents[1] == 32 && fake.map.strides[0] == 8192);
	assert_true(fake.map.box[0] == 32 && fake.map.box[1] == 64);
	assert_true(fake.map.steps[0] == 1 && fake.map.steps[1] == 1);
	assert_true(fake.maps[0].opaque[0] == p.x->address + 8192);
	close_place(&p);
	fake.takes_maps = 1;
	p = open_place(&fake_api, FAKE_ADD "map tf32 128 32 64 ; p1 p3 4 * + ; p3 ; p3 64 / ; p3 4 *\n");
	OK(launch_with(&p, p.x, 1024));
	assert_int_equal(fake.map.type, CUDA_MAP_TF32);
	close_place(&p);
}

static void test_kept_by_value(void **state)
{
	(void)state;
	place p = open_place(&fake_api, MAPS);
	const int32_t rows[] = {1024, 2048, 3072, 4096, 5120};
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 4; i++) OK(launch_with(&p, p.x, rows[i]));
	assert_int_equal(fake.encodes, 5);
	OK(launch_with(&p, p.x, rows[4])); /* takes the oldest place */
	assert_int_equal(fake.encodes, 6);
	OK(launch_with(&p, p.x, rows[3]));
	assert_int_equal(fake.encodes, 6);
	OK(launch_with(&p, p.x, rows[0]));
	assert_int_equal(fake.encodes, 7);
	assert_true(fake.maps[0].opaque[0] == p.x->address + 4096);
	OK(launch_with(&p, p.y, rows[0]));
	assert_int_equal(fake.encodes, 8); /* another buffer */
	assert_true(fake.maps[0].opaque[0] == p.y->address + 4096);
	close_place(&p);
}

/* n = 16 leaves no row; n = 1 is no multiple of 16: neither can have a map, both are right without one. */
static void test_way_out(void **state)
{
	(void)state;
	place p = open_place(&fake_api, MAPS);
	OK(launch_with(&p, p.x, 1024));
	fake.takes_maps = 0; /* the next code has none */
	OK(launch_with(&p, p.x, 16));
	assert_int_equal(fake_request[0], 0); /* compiled without a promise */
	assert_int_equal(fake.encodes, 2);
	assert_int_equal(fake.launches, 2);
	int compiles = fake_compiles;
	OK(launch_with(&p, p.x, 16));
	assert_int_equal(fake_compiles, compiles);
	OK(launch_with(&p, p.x, 1000)); /* 1000 * 4 bytes are a stride, but nothing promised says so here */
	assert_int_equal(fake.launches, 4);
	fake.refuse_maps = 1;
	OK(launch_with(&p, p.x, 2048));
	assert_int_equal(fake.launches, 5);
	assert_string_equal(blk_error(), "");
	close_place(&p);
}

static blk_status info_with(place *p, const blk_buffer *x, int32_t n, blk_info *info)
{
	const blk_arg args[] = {blk_buf(p->z), blk_buf((blk_buffer *)x), blk_buf(p->y), blk_i32(n)};
	return blk_kernel_info(p->k, args, 4, info);
}

/* What a launch would use, and why it is not the best. */
static void test_told(void **state)
{
	(void)state;
	blk_info info;
	place p = open_place(&fake_api, MAPS);
	OK(info_with(&p, p.x, 1024, &info));
	assert_int_equal(info.tensor_maps, 2);
	assert_string_equal(info.fallback, "");
	fake.takes_maps = 0;
	OK(info_with(&p, p.x, 16, &info));
	assert_int_equal(info.tensor_maps, 0);
	assert_string_equal(info.fallback,
		"kernel add: no tensor map 0 can be made of these arguments: an extent is below 1 or too large");
	int compiles = fake_compiles;
	OK(launch_with(&p, p.x, 16)); /* its code is there */
	assert_int_equal(fake_compiles, compiles);
	OK(info_with(&p, p.x, 1000, &info)); /* chosen by its promises, nothing better was at hand */
	assert_string_equal(info.fallback, "");
	fake.refuse_maps = 1;
	OK(info_with(&p, p.x, 2048, &info));
	assert_non_null(strstr(info.fallback, "cuTensorMapEncodeTiled"));
	close_place(&p);
}

/* The list of promises is whole, or says that it is not. */
static void test_promises_told(void **state)
{
	(void)state;
	char source[4096] = "// blk: kernel add\n// blk: target sm_90a\n// blk: param z *f32 align 16\n"
			    "// blk: param n i32 div 8\n// blk: param one i32 one\n// blk: param free i32\n";
	blk_info info;
	place p;
	device_seams seams = {.cuda = &fake_api, .compiler = &fake_compiler};
	blk_arg args[40] = {blk_ptr(NULL), blk_i32(8), blk_i32(1), blk_i32(3)};
	OK(device_open_with("cuda", &seams, &p.d));
	for (int more = 0; more < 2; more++) {
		char text[8192];
		snprintf(text, sizeof text, "%s.version 8.0\n", source);
		OK(blk_module_source(p.d, "promises.ptx", text, NULL, 0, &p.m));
		OK(blk_kernel_find(p.m, NULL, &p.k));
		OK(blk_kernel_info(p.k, args, more ? 40 : 4, &info));
		if (!more) assert_string_equal(info.promises, "z%16,n%8,one=1");
		for (int i = 4; !more && i < 40; i++) {
			size_t n = strlen(source);
			snprintf(source + n, sizeof source - n, "// blk: param parameter_%d i32 div 16\n", i);
			args[i] = blk_i32(16);
		}
	}
	assert_int_equal(strncmp(info.promises, "z%16,n%8,one=1,parameter_4%16,", 30), 0);
	size_t n = strlen(info.promises);
	assert_in_range(n, 230, sizeof info.promises - 1);
	assert_string_equal(info.promises + n - 7, "%16,...");
	close_place(&p);
}

/* A tuner cannot try what has no maps for these arguments; the launch is none the worse for it. */
static void test_tuned(void **state)
{
	(void)state;
	setenv("BLK_TUNE", "always", 1);
	fake.takes_maps = 0; /* what is launched in the end */
	place p = open_place(&fake_api, MAPS "autotune key n\nconfiguration T=64\nconfiguration T=128\n");
	blk_status status = launch_with(&p, p.x, 16);
	unsetenv("BLK_TUNE");
	OK(status);
	close_place(&p);
}

/* The bounds of what a map can say, each from its last good value to its first bad one.  n is the parameter that a form
 * of the signature makes an address, an extent or a stride of. */
static void test_bounds(void **state)
{
	(void)state;
	static const struct {
		const char *map; /* of a .ptx file, whose code takes maps whatever is promised */
		int32_t n;
		const char *refused;
	} rows[] = {
		{"p1 p3 + ; 64 ; 64 ; 256", 16, NULL},
		{"p1 p3 + ; 64 ; 64 ; 256", 8, "its address is null or no multiple of 16"},
		{"p1 p3 + ; 64 ; 64 ; 256", 17, "its address is null or no multiple of 16"},
		{"p3 ; 64 ; 64 ; 256", 0, "its address is null or no multiple of 16"},
		{"p1 p3 / ; 64 ; 64 ; 256", 0, "its address cannot be computed"},
		{"p1 ; p3 ; 64 ; 256", 1, NULL},
		{"p1 ; p3 ; 64 ; 256", 0, "an extent is below 1 or too large"},
		{"p1 ; p3 ; 64 ; 256", -1, "an extent is below 1 or too large"},
		{"p1 ; p3 ; 64 ; 256", 2147418111, NULL},
		{"p1 ; p3 ; 64 ; 256", 2147418112, "an extent is below 1 or too large"},
		{"p1 ; 64 ; p3 2 * ; 256", 1073741824, NULL}, /* 2^31: without an end */
		{"p1 ; 64 ; p3 2 * 1 + ; 256", 1073741824, "an extent is below 1 or too large"},
		{"p1 ; 64 ; 64 p3 / ; 256", 0, "an extent is below 1 or too large"},
		{"p1 ; 64 ; 64 ; p3", 16, NULL},
		{"p1 ; 64 ; 64 ; p3", 8, "a stride is below 1, too large, or no multiple of 16 bytes"},
		{"p1 ; 64 ; 64 ; p3", 24, "a stride is below 1, too large, or no multiple of 16 bytes"},
		{"p1 ; 64 ; 64 ; p3", 31, "a stride is below 1, too large, or no multiple of 16 bytes"},
		{"p1 ; 64 ; 64 ; p3", 32, NULL},
		{"p1 ; 64 ; 64 ; p3", 48, NULL},
		{"p1 ; 64 ; 64 ; p3", 0, "a stride is below 1, too large, or no multiple of 16 bytes"},
		{"p1 ; 64 ; 64 ; p3", -16, "a stride is below 1, too large, or no multiple of 16 bytes"},
		{"p1 ; 64 ; 64 ; 256 p3 /", 0, "a stride is below 1, too large, or no multiple of 16 bytes"},
		{"p1 ; 64 ; 64 ; p3 1024 *", 1073741823, NULL}, /* 1024 under 2^40 */
		{"p1 ; 64 ; 64 ; p3 1024 *", 1073741824, "a stride is below 1, too large, or no multiple of 16 bytes"},
	};
	place p = {0};
	device_seams seams = {.cuda = &fake_api, .compiler = &fake_compiler};
	OK(device_open_with("cuda", &seams, &p.d));
	OK(blk_buffer_create(p.d, 65536, &p.z));
	OK(blk_buffer_create(p.d, 65536, &p.x));
	OK(blk_buffer_create(p.d, 65536, &p.y));
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char ptx[512];
		snprintf(ptx, sizeof ptx,
			"// blk: kernel add\n// blk: symbol add\n// blk: target sm_90a\n// blk: param z *f32\n"
			"// blk: param x *const f32\n// blk: param y *const f32\n// blk: param n i32\n"
			"// blk: grid 0 1\n// blk: map f32 128 32 64 ; %s\n.version 8.0\n",
			rows[i].map);
		OK(blk_module_source(p.d, "maps.ptx", ptx, NULL, 0, &p.m));
		OK(blk_kernel_find(p.m, NULL, &p.k));
		int encodes = fake.encodes;
		variant *v;
		OK(variant_get(p.k, 0, &v));
		tensor_map maps[SIGNATURE_MAPS];
		const uint64_t bits[] = {p.z->address, p.x->address, p.y->address, (uint64_t)(int64_t)rows[i].n};
		blk_status status = tensor_maps_get(p.d, v, bits, maps);
		if (rows[i].refused && (status != BLK_ERROR_ARGUMENT || !strstr(blk_error(), rows[i].refused)))
			fail_msg("%s, n = %d: status %d: %s", rows[i].map, rows[i].n, status, blk_error());
		if (!rows[i].refused && status) fail_msg("%s, n = %d: %s", rows[i].map, rows[i].n, blk_error());
		assert_int_equal(fake.encodes, encodes + !rows[i].refused);
	}
	close_place(&p);
}

static void test_old_driver(void **state)
{
	(void)state;
	cuda_api old = fake_api;
	old.cuTensorMapEncodeTiled = NULL;
	fake.takes_maps = 0;
	place p = open_place(&old, MAPS);
	OK(launch_with(&p, p.x, 1024));
	assert_int_equal(fake.launches, 1);
	close_place(&p);
	/* code that takes maps whatever is promised, as a .ptx file's */
	fake_reset();
	const char ptx[] = "// blk: kernel add\n// blk: symbol add\n// blk: target sm_90a\n// blk: param z *f32\n"
			   "// blk: param x *const f32\n// blk: param y *const f32\n// blk: param n i32\n"
			   "// blk: grid 0 1\n// blk: map f32 128 32 64 ; p1 ; p3 ; p3 64 / ; p3 4 *\n.version 8.0\n";
	device_seams seams = {.cuda = &old, .compiler = &fake_compiler};
	OK(device_open_with("cuda", &seams, &p.d));
	OK(blk_module_source(p.d, "maps.ptx", ptx, NULL, 0, &p.m));
	OK(blk_kernel_find(p.m, NULL, &p.k));
	OK(blk_buffer_create(p.d, 65536, &p.z));
	OK(blk_buffer_create(p.d, 65536, &p.x));
	OK(blk_buffer_create(p.d, 65536, &p.y));
	FAILS(BLK_ERROR_DRIVER, "it has no cuTensorMapEncodeTiled", launch_with(&p, p.x, 1024));
	FAILS(BLK_ERROR_ARGUMENT, "kernel add: no tensor map 0 can be made of these arguments: an extent is below 1",
		launch_with(&p, p.x, 60));
	FAILS(BLK_ERROR_ARGUMENT, "a stride is below 1, too large, or no multiple of 16", launch_with(&p, p.x, 1023));
	assert_int_equal(fake.launches, 0);
	close_place(&p);
}

static void test_failures_leave_nothing(void **state)
{
	(void)state;
	for (int at = 1; at < 200; at++) {
		setup(NULL);
		place p = open_place(&fake_api, MAPS);
		fake.fail_at = fake.calls + at;
		fake.fail_with = CUDA_OUT_OF_MEMORY;
		blk_status status = launch_with(&p, p.x, 1024);
		bool reached = fake.failed_call != NULL;
		if (status) assert_non_null(strstr(blk_error(), "CUDA_ERROR_OUT_OF_MEMORY"));
		fake.fail_at = 0;
		OK(launch_with(&p, p.x, 1024));
		close_place(&p);
		if (!reached) return;
	}
	fail_msg("a launch of 200 calls");
}

typedef struct worker {
	place *p;
	int32_t n;
	int failures;
} worker;

/* Straight at the cache: the fake driver is not made for threads, but encodes nothing for requests that are known. */
static void *work(void *context)
{
	worker *w = context;
	for (int i = 0; i < 2000; i++) {
		tensor_map maps[SIGNATURE_MAPS];
		variant *v;
		uint64_t address;
		const uint64_t bits[] = {w->p->z->address, w->p->x->address, w->p->y->address, (uint64_t)w->n};
		bool good = variant_get(w->p->k, 7 | PROMISE_16 << 3, &v) == BLK_OK &&
			    tensor_maps_get(w->p->d, v, bits, maps) == BLK_OK;
		memcpy(&address, maps[0].bytes, sizeof address);
		w->failures += !good || address != w->p->x->address + 4 * (uint64_t)w->n;
	}
	return NULL;
}

static void test_threads(void **state)
{
	(void)state;
	place p = open_place(&fake_api, MAPS);
	worker w[4];
	pthread_t t[4];
	for (int i = 0; i < 4; i++) {
		w[i] = (worker){&p, 1024 * (i + 1), 0};
		OK(launch_with(&p, p.x, w[i].n));
	}
	for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&t[i], NULL, work, &w[i]), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(w[i].failures, 0);
	}
	assert_int_equal(fake.encodes, 5);
	close_place(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_request, setup),
		cmocka_unit_test_setup(test_kept_by_value, setup), cmocka_unit_test_setup(test_way_out, setup),
		cmocka_unit_test_setup(test_told, setup), cmocka_unit_test_setup(test_promises_told, setup),
		cmocka_unit_test_setup(test_tuned, setup), cmocka_unit_test_setup(test_bounds, setup),
		cmocka_unit_test_setup(test_old_driver, setup),
		cmocka_unit_test_setup(test_failures_leave_nothing, setup),
		cmocka_unit_test_setup(test_threads, setup)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
