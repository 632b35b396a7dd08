/* Every call of blk.h given what it must not be given: no place for the result, handles that are null, none, freed or
 * of another device, arguments that do not fit.  Each is refused with a sentence, and the results keep a harmless
 * value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "blkc.h"
#include "fake_device.h"
#include "runtime/base/output.h"

#include <errno.h>
#include <math.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

static blk_device *gpu, *cpu;
static blk_module *module;
static blk_kernel *kernel;
static blk_buffer *buffer, *elsewhere;
static union {
	uint64_t words[512];
	char bytes[4096];
} nothing; /* in place of a handle */

static int setup(void **state)
{
	(void)state;
	setenv("BLK_CACHE", "off", 1);
	fake_reset();
	fake_status = 0;
	OK(device_open_with("cuda", &fake_seams, &gpu));
	OK(device_open_with("cpu", &fake_seams, &cpu));
	OK(blk_module_source(gpu, "add.blk", FAKE_ADD, NULL, 0, &module));
	OK(blk_kernel_find(module, "add", &kernel));
	OK(blk_buffer_create(gpu, 400, &buffer));
	OK(blk_buffer_create(cpu, 400, &elsewhere));
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	blk_device_close(cpu);
	blk_device_close(gpu);
	if (fake_leak()) fail_msg("left behind: %s", fake_leak());
	return 0;
}

#define ADD_ARGS BLK_ARGS(blk_buf(buffer), blk_buf(buffer), blk_buf(buffer), blk_i32(100))

static void test_no_device(void **state)
{
	(void)state;
	blk_device *const bad[] = {NULL, (blk_device *)&nothing};
	static const struct {
		blk_status status;
		const char *says;
	} rows[] = {{BLK_ERROR_ARGUMENT, "the device is null"},
		{BLK_ERROR_HANDLE, "this is no device, or it has been closed"}};
	for (int i = 0; i < 2; i++) {
		const blk_status s = rows[i].status;
		const char *says = rows[i].says;
		blk_device *d = bad[i];
		blk_device_info info;
		blk_buffer *b;
		blk_stream *st;
		blk_event *e;
		blk_module *m;
		blk_timing t;
		double rate;
		FAILS(s, says, blk_device_sync(d));
		FAILS(s, says, blk_device_query(d, &info));
		FAILS(s, says, blk_device_bandwidth(d, &rate));
		FAILS(s, says, blk_buffer_create(d, 8, &b));
		FAILS(s, says, blk_stream_create(d, &st));
		FAILS(s, says, blk_stream_wrap(d, (void *)0x99, &st));
		FAILS(s, says, blk_event_create(d, &e));
		FAILS(s, says, blk_module_source(d, "x.blk", FAKE_ADD, NULL, 0, &m));
		FAILS(s, says, blk_module_open(d, "/nowhere", NULL, 0, &m));
		FAILS(s, says, blk_bench_call(d, NULL, NULL, NULL, &t));
		assert_string_equal(blk_device_name(d), "");
		assert_int_equal(blk_device_num_sms(d), 0);
		assert_null(blk_device_context(d));
		blk_device_close(d); /* nothing */
	}
}

static void test_no_place(void **state)
{
	(void)state;
	const blk_status s = BLK_ERROR_ARGUMENT;
	const blk_parameter *p;
	size_t n;
	blk_event *e;
	FAILS(s, "no place", blk_device_open("cpu", NULL));
	FAILS(s, "no place", blk_device_wrap(fake_foreign, NULL));
	FAILS(s, "no place", blk_device_query(gpu, NULL));
	FAILS(s, "no place", blk_device_bandwidth(gpu, NULL));
	FAILS(s, "no place", blk_buffer_create(gpu, 8, NULL));
	FAILS(s, "no place for the stream", blk_stream_create(gpu, NULL));
	FAILS(s, "no place for the stream", blk_stream_wrap(gpu, (void *)0x99, NULL));
	FAILS(s, "no place for the event", blk_event_create(gpu, NULL));
	FAILS(s, "no place for the module", blk_module_source(gpu, "x.blk", FAKE_ADD, NULL, 0, NULL));
	FAILS(s, "no place", blk_kernel_find(module, "add", NULL));
	FAILS(s, "no place", blk_kernel_parameters(kernel, NULL, &n));
	FAILS(s, "no place", blk_kernel_parameters(kernel, &p, NULL));
	FAILS(s, "no place", blk_kernel_grid(kernel, ADD_ARGS, NULL));
	FAILS(s, "no place", blk_kernel_info(kernel, ADD_ARGS, NULL));
	FAILS(s, "no place", blk_bench(kernel, NULL, ADD_ARGS, NULL, NULL));
	FAILS(s, "no call", blk_bench_call(gpu, NULL, NULL, NULL, &(blk_timing){0}));
	FAILS(s, "no function to call", blk_cache_list(NULL, NULL));
	OK(blk_event_create(gpu, &e));
	OK(blk_event_record(e, NULL));
	FAILS(s, "no place", blk_event_elapsed(e, e, NULL));
	OK(blk_kernel_cost(kernel, ADD_ARGS, NULL, NULL)); /* either may be left out */
	double bytes, flops;
	OK(blk_kernel_cost(kernel, ADD_ARGS, NULL, &flops));
	assert_true(isnan(flops));
	OK(blk_kernel_cost(kernel, ADD_ARGS, &bytes, NULL));
	assert_true(bytes == 1200);
}

/* What is null, what is something else, and what has been freed. */
static void test_bad_handles(void **state)
{
	(void)state;
	blk_buffer *b;
	blk_stream *st;
	blk_event *e, *recorded;
	blk_module *m;
	blk_kernel *k;
	blk_grid g;
	blk_info info;
	double ms;
	OK(blk_buffer_create(gpu, 8, &b));
	OK(blk_stream_create(gpu, &st));
	OK(blk_event_create(gpu, &e));
	OK(blk_event_create(gpu, &recorded));
	OK(blk_event_record(recorded, NULL));
	OK(blk_module_source(gpu, "b.blk", FAKE_ADD, NULL, 0, &m));
	OK(blk_kernel_find(m, "add", &k));
	blk_buffer_free(b);
	blk_stream_free(st);
	blk_event_free(e);
	blk_module_close(m);
	const struct {
		const char *says;
		blk_status status;
		blk_buffer *b;
		blk_stream *st;
		blk_event *e;
		blk_module *m;
		blk_kernel *k;
	} rows[] = {{" is null", BLK_ERROR_ARGUMENT, NULL, NULL, NULL, NULL, NULL},
		{"this is no ", BLK_ERROR_HANDLE, (void *)&nothing, (void *)&nothing, (void *)&nothing,
			(void *)&nothing, (void *)&nothing},
		{" has been freed", BLK_ERROR_HANDLE, b, st, e, m, k}};
	for (int i = 0; i < 3; i++) {
		const blk_status s = rows[i].status;
		const char *says = rows[i].says;
		FAILS(s, says, blk_buffer_fill(rows[i].b, 0, 0, 8));
		FAILS(s, says, blk_buffer_copy(rows[i].b, 0, buffer, 0, 8));
		FAILS(s, says, blk_buffer_copy(buffer, 0, rows[i].b, 0, 8));
		FAILS(s, says, blk_stream_sync(rows[i].st));
		FAILS(s, says, blk_event_record(rows[i].e, NULL));
		FAILS(s, says, blk_event_elapsed(rows[i].e, recorded, &ms));
		FAILS(s, says, blk_event_elapsed(recorded, rows[i].e, &ms));
		FAILS(s, says, blk_kernel_find(rows[i].m, NULL, &k));
		FAILS(s, says, blk_launch(rows[i].k, NULL, NULL, ADD_ARGS));
		FAILS(s, says, blk_launch_on(rows[i].k, NULL, NULL, ADD_ARGS));
		FAILS(s, says, blk_kernel_grid(rows[i].k, ADD_ARGS, &g));
		FAILS(s, says, blk_kernel_cost(rows[i].k, ADD_ARGS, &ms, &ms));
		FAILS(s, says, blk_kernel_info(rows[i].k, ADD_ARGS, &info));
		FAILS(s, says, blk_kernel_parameters(rows[i].k, &(const blk_parameter *){NULL}, &(size_t){0}));
		FAILS(s, says, blk_kernel_tune(rows[i].k, NULL, ADD_ARGS, NULL, NULL));
		FAILS(s, says, blk_bench(rows[i].k, NULL, ADD_ARGS, NULL, &(blk_timing){0}));
		assert_null(blk_buffer_pointer(rows[i].b));
		assert_int_equal(blk_buffer_size(rows[i].b), 0);
		assert_null(blk_stream_handle(rows[i].st));
		assert_null(blk_module_kernel(rows[i].m, 0));
		assert_string_equal(blk_kernel_name(rows[i].k), "");
		assert_string_equal(blk_kernel_signature(rows[i].k), "");
		if (i == 1) continue; /* what is no handle cannot be freed */
		blk_buffer_free(rows[i].b);
		blk_stream_free(rows[i].st);
		blk_event_free(rows[i].e);
		blk_module_close(rows[i].m);
	}
}

static void test_other_devices(void **state)
{
	(void)state;
	blk_event *here, *there, *fresh;
	blk_stream *st;
	double ms;
	OK(blk_event_create(gpu, &here));
	OK(blk_event_create(gpu, &fresh));
	OK(blk_event_create(cpu, &there));
	OK(blk_event_record(here, NULL));
	OK(blk_event_record(there, NULL));
	FAILS(BLK_ERROR_HANDLE, "the events are on different devices", blk_event_elapsed(here, there, &ms));
	FAILS(BLK_ERROR_ARGUMENT, "never recorded", blk_event_elapsed(here, fresh, &ms));
	FAILS(BLK_ERROR_HANDLE, "different devices", blk_buffer_copy(elsewhere, 0, buffer, 0, 8));
	OK(blk_buffer_copy(elsewhere, 0, buffer, 0, 0));
	OK(blk_stream_create(cpu, &st));
	FAILS(BLK_ERROR_HANDLE, "the stream is of another device", blk_event_record(here, st));
	FAILS(BLK_ERROR_UNSUPPORTED, "blk_stream_wrap: only a CUDA device", blk_stream_wrap(cpu, (void *)0x99, &st));
	blk_module *m;
	blk_kernel *k;
	OK(blk_module_source(cpu, "add.blk", FAKE_ADD, NULL, 0, &m));
	OK(blk_kernel_find(m, "add", &k));
	FAILS(BLK_ERROR_UNSUPPORTED, "blk_launch_on: only a CUDA device",
		blk_launch_on(k, (void *)0x99, NULL,
			BLK_ARGS(blk_buf(elsewhere), blk_buf(elsewhere), blk_buf(elsewhere), blk_i32(4))));
	OK(blk_launch_on(
		k, NULL, NULL, BLK_ARGS(blk_buf(elsewhere), blk_buf(elsewhere), blk_buf(elsewhere), blk_i32(0))));
	OK(blk_launch_on(kernel, (void *)0x9999, NULL, ADD_ARGS));
	assert_ptr_equal(fake.stream, (void *)0x9999);
	int syncs = fake.syncs;
	char bytes[8];
	OK(blk_buffer_read(buffer, 0, bytes, 8)); /* waits for all streams from then on */
	assert_int_equal(fake.syncs, syncs + 1);
}

static void test_wrong_arguments(void **state)
{
	(void)state;
	blk_module *m;
	blk_grid g;
	blk_info info;
	double bytes, flops;
	const blk_define unnamed = {NULL, "1"};
	const blk_arg few[] = {blk_buf(buffer)};
	FAILS(BLK_ERROR_TYPE, "takes 4 arguments, not 1", blk_kernel_grid(kernel, few, 1, &g));
	FAILS(BLK_ERROR_TYPE, "takes 4 arguments, not 1", blk_kernel_cost(kernel, few, 1, &bytes, &flops));
	FAILS(BLK_ERROR_TYPE, "takes 4 arguments, not 1", blk_kernel_info(kernel, few, 1, &info));
	FAILS(BLK_ERROR_TYPE, "takes 4 arguments, not 1", blk_bench(kernel, NULL, few, 1, NULL, &(blk_timing){0}));
	FAILS(BLK_ERROR_TYPE, "takes 4 arguments, not 1", blk_kernel_tune(kernel, NULL, few, 1, NULL, NULL));
	FAILS(BLK_ERROR_ARGUMENT, "define 0 has no name", blk_module_source(gpu, "x", FAKE_ADD, &unnamed, 1, &m));
	FAILS(BLK_ERROR_ARGUMENT, "the defines are null", blk_module_source(gpu, "x", FAKE_ADD, NULL, 1, &m));
	assert_null(m);
	OK(blk_module_source(gpu, NULL, FAKE_ADD, NULL, 0, &m)); /* the name is only for messages */
	FAILS(BLK_ERROR_NOT_FOUND, "source.blk has no kernel \"x\"; it has: add", blk_kernel_find(m, "x", &kernel));
	OK(blk_module_source(gpu, "empty.blk", "nothing\n", NULL, 0, &m));
	FAILS(BLK_ERROR_NOT_FOUND, "empty.blk has no kernels", blk_kernel_find(m, NULL, &kernel));
	assert_null(kernel);
	assert_string_equal(blk_type_name(BLK_TYPE_BUFFER), "buffer");
	assert_string_equal(blk_type_name(BLK_TYPE_POINTER), "pointer");
	assert_string_equal(blk_type_name(BLK_TYPE_BF16), "bf16");
}

/* More parameters than the key has bits: what lies beyond is never promised, which is right for any arguments. */
static void test_many_parameters(void **state)
{
	(void)state;
	enum { MANY = 80 };
	char source[MANY * 32] = "kernel many\n";
	blk_arg args[MANY];
	blk_module *m;
	blk_kernel *k;
	blk_info info;
	for (int i = 0; i < MANY; i++) {
		sprintf(source + strlen(source), "param p%02d *f32\n", i);
		args[i] = blk_ptr((void *)4096);
	}
	strcat(source, "grid 0 1\n");
	OK(blk_module_source(gpu, "many.blk", source, NULL, 0, &m));
	OK(blk_kernel_find(m, NULL, &k));
	OK(blk_kernel_info(k, args, MANY, &info));
	int promised = 0;
	for (const char *p = fake_request; (p = strstr(p, "%16")); p++) promised++;
	assert_in_range(promised, 16, 64);
	assert_non_null(strstr(fake_request, "p00%16"));
	assert_null(strstr(fake_request, "p79"));
}

/* A clause that cannot be computed holds for no arguments. */
static void test_requires(void **state)
{
	(void)state;
	static const struct {
		const char *clause, *says;
	} rows[] = {{"requires 1 p0 / ; n=p0 ; 1 / n ; \n", "kernel k requires 1 / n, which divides by zero: n = 0"},
		{"requires p0 ;  ; n != 0 ; it is needed\n",
			"kernel k requires n != 0 (it is needed), which does not hold"}};
	for (size_t i = 0; i < 2; i++) {
		char source[256];
		blk_module *m;
		blk_kernel *k;
		snprintf(source, sizeof source, "kernel k\nparam n i32\n%sgrid 0 1\n", rows[i].clause);
		OK(blk_module_source(gpu, "k.blk", source, NULL, 0, &m));
		OK(blk_kernel_find(m, NULL, &k));
		assert_int_equal(blk_launch(k, NULL, NULL, BLK_ARGS(blk_i32(0))), BLK_ERROR_ARGUMENT);
		assert_string_equal(blk_error(), rows[i].says);
	}
	/* a processor has no limit of 65535 along y and z, but one of 2^31 along x */
	const blk_grid tall = {1, 70000, 70000}, wide = {UINT32_MAX, 1, 1};
	blk_module *m;
	blk_kernel *k;
	OK(blk_module_source(cpu, "k.blk", "kernel k\n", NULL, 0, &m));
	OK(blk_kernel_find(m, NULL, &k));
	assert_int_not_equal(blk_launch(k, NULL, &tall, NULL, 0), BLK_ERROR_GRID); /* the fake's code runs nowhere */
	FAILS(BLK_ERROR_GRID, "programs along x is over the limit", blk_launch(k, NULL, &wide, NULL, 0));
	OK(blk_module_source(gpu, "c.blk", "// nothing but this", NULL, 0, &m)); /* no line behind it, and no PTX */
	OK(blk_module_source(gpu, "c.blk", "x", NULL, 0, &m));
	assert_null(blk_module_kernel(m, 0));
}

/* Of two failed asserts before the next call that waits the first one is told, once. */
static void test_two_asserts(void **state)
{
	(void)state;
	static const compiler_api real = {blkc_compile, blkc_result_free, blkc_version};
	const device_seams seams = {.compiler = &real};
	blk_device *d;
	blk_module *m;
	blk_kernel *k;
	OK(device_open_with("cpu", &seams, &d));
	OK(blk_module_source(d, "a.blk",
		"kernel k(n: i32) grid(1) { device_assert(n > 5, \"more than five\"); device_assert(n > 3, \"more than "
		"three\"); }",
		NULL, 0, &m));
	OK(blk_kernel_find(m, NULL, &k));
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_i32(5))));
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_i32(3))));
	FAILS(BLK_ERROR_ASSERT, "more than five", blk_device_sync(d));
	OK(blk_device_sync(d));
	blk_device_close(d);
}

/* Names of what a file's name may stand for. */
static void test_descriptors(void **state)
{
	(void)state;
	static const struct {
		const char *path;
		int descriptor;
	} rows[] = {{"/dev/stdin", 0}, {"/dev/stdout", 1}, {"/dev/stderr", 2}, {"/dev/fd/7", 7},
		{"/proc/self/fd/12", 12}, {"/dev/fd/", -1}, {"/dev/fd/x", -1}, {"/dev/fd/1x", -1},
		{"/dev/fd/123456789", -1}, {"/dev/fd", -1}, {"/dev/null", -1}, {"/dev/stdin2", -1}, {"", -1}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (descriptor_named(rows[i].path) != rows[i].descriptor) fail_msg("%s", rows[i].path);
	/* a socket cannot be opened; a link of a stranger's is not followed, but replaced */
	char folder[] = "/tmp/blk_misuse_XXXXXX", link[64];
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	output o;
	assert_non_null(mkdtemp(folder));
	snprintf(at.sun_path, sizeof at.sun_path, "%s/socket", folder);
	snprintf(link, sizeof link, "%s/link", folder);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	assert_false(output_open(&o, at.sun_path));
	assert_int_equal(errno, ENXIO);
	close(fd);
	unlink(at.sun_path);
	assert_int_equal(symlink("/dev/full", link), 0);
	assert_true(output_open(&o, link));
	assert_true(o.in_place);
	assert_false(output_write(&o, "x", 1) && output_commit(&o));
	assert_int_equal(lchown(link, geteuid() == 0 ? 4321 : geteuid(), (gid_t)-1), 0);
	if (geteuid() == 0) {
		struct stat st;
		assert_true(output_open(&o, link));
		assert_false(o.in_place);
		assert_true(output_write(&o, "x", 1) && output_commit(&o));
		assert_true(lstat(link, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 1);
	}
	unlink(link);
	assert_int_equal(rmdir(folder), 0);
}

/* The list of what there is ends in dots where it is long. */
static void test_many_kernels(void **state)
{
	(void)state;
	enum { KERNELS = 40 };
	char source[KERNELS * 64] = "", wanted[32];
	blk_module *m;
	blk_kernel *k;
	strcpy(source, "// comment\n");
	for (int i = 0; i < KERNELS; i++)
		sprintf(source + strlen(source), "// blk: kernel a_kernel_of_a_long_name_%02d\n", i);
	OK(blk_module_source(gpu, "many.ptx", source, NULL, 0, &m));
	FAILS(BLK_ERROR_NOT_FOUND, "many.ptx has no kernel \"b\"; it has: a_kernel_of_a_long_name_00, ",
		blk_kernel_find(m, "b", &k));
	const char *error = blk_error();
	assert_string_equal(error + strlen(error) - 3, "...");
	assert_in_range(strlen(error), 1000, 1100);
	snprintf(wanted, sizeof wanted, "a_kernel_of_a_long_name_%02d", KERNELS - 1);
	OK(blk_kernel_find(m, wanted, &k));
	assert_string_equal(blk_kernel_name(k), wanted);
}

/* Marks as they stand in a file: of other systems' line ends, before any kernel, at the end of the file. */
static void test_marks_in_ptx(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int kernels; /* 0: refused */
		const char *first;
	} rows[] = {{"// blk: kernel one\r\n// blk: param n i32\r\n// blk: grid 0 1\r\n.version 8.0\r\n", 1, "one"},
		{"// blk: written 0\n// blk: kernel one\n// blk: grid 0 1\n", 1, "one"},
		{"// blk: \n// blk: kernel one", 1, "one"},
		{"// a comment\n// blk: kernel one\n// blk: kernel two", 2, "one"},
		{"// a comment\n.version 8.0\n// blk: kernel late\n", 0, NULL}, {"// blk: symbol x\n", 0, NULL}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		blk_module *m;
		/* a name tells as well as the text does */
		const char *name = rows[i].kernels ? "one" : "late.ptx";
		blk_status s = blk_module_source(gpu, name, rows[i].text, NULL, 0, &m);
		if (i == 4) { /* marks count wherever they stand, once it is PTX */
			assert_int_equal(s, BLK_OK);
			assert_string_equal(blk_module_kernel(m, 0), "late");
			continue;
		}
		if (!rows[i].kernels) {
			assert_int_equal(s, BLK_ERROR_FORMAT);
			assert_non_null(strstr(blk_error(), "late.ptx has no kernel signature"));
			continue;
		}
		OK(s);
		assert_string_equal(blk_module_kernel(m, 0), rows[i].first);
		assert_null(blk_module_kernel(m, (size_t)rows[i].kernels));
		assert_non_null(blk_module_kernel(m, (size_t)rows[i].kernels - 1));
	}
	blk_module *m;
	FAILS(BLK_ERROR_FORMAT, "x.blkpkg", blk_module_source(gpu, "x.blkpkg", "text", NULL, 0, &m));
	FAILS(BLK_ERROR_FORMAT, "x.blk", blk_module_source(gpu, "x.blk", PACKAGE_MAGIC " and no more", NULL, 0, &m));
	FAILS(BLK_ERROR_FORMAT, "x.blk", blk_module_source(gpu, "x.blk", PACKAGE_MAGIC, NULL, 0, &m));
}

/* A device whose clock stands still has no bandwidth; what was measured once is kept. */
static CUresult no_time(float *ms, CUevent a, CUevent b)
{
	(void)a, (void)b;
	*ms = 0;
	return 0;
}
/* The first two copies, which here end too soon, are not counted. */
static int copies;
static CUresult uneven(float *ms, CUevent a, CUevent b)
{
	(void)a, (void)b;
	*ms = ++copies <= 2 ? 0.125f : copies == 7 ? 0.25f : 0.5f;
	return 0;
}
static void test_bandwidth(void **state)
{
	(void)state;
	cuda_api api = fake_api;
	blk_device *d;
	double rate = -1;
	OK(blk_device_bandwidth(gpu, &rate));
	assert_true(rate == 2.0 * (1 << 27) / 0.5e-3);
	int calls = fake.calls;
	rate = -1;
	OK(blk_device_bandwidth(gpu, &rate));
	assert_true(rate == 2.0 * (1 << 27) / 0.5e-3);
	assert_int_equal(fake.calls, calls);
	api.cuEventElapsedTime = no_time;
	const device_seams still = {.cuda = &api, .compiler = &fake_compiler};
	OK(device_open_with("cuda", &still, &d));
	d->info.total_memory = 1 << 16;
	OK(blk_device_bandwidth(d, &rate));
	assert_true(rate == 0);
	blk_device_close(d);
	api.cuEventElapsedTime = uneven;
	OK(device_open_with("cuda", &still, &d));
	copies = 0;
	OK(blk_device_bandwidth(d, &rate));
	assert_true(rate == 2.0 * (1 << 27) / 0.25e-3);
	assert_int_equal(copies, 12);
	blk_device_close(d);
}

static blk_status succeed(void *context)
{
	++*(int *)context;
	return BLK_OK;
}
static blk_status fail_third(void *context)
{
	return ++*(int *)context == 3 ? error_set(BLK_ERROR_KERNEL, "the third run") : BLK_OK;
}

/* A call that takes no time runs as often as it may; one that fails ends the bench, wherever it does. */
static void test_bench_calls(void **state)
{
	(void)state;
	cuda_api api = fake_api;
	blk_device *d;
	blk_stream *st;
	blk_timing t;
	int n = 0;
	const blk_bench_options o = {.max_runs = 7, .keep_cache = 1},
				both = {.min_runs = 9, .max_runs = 3, .keep_cache = 1},
				many = {.min_runs = 1,
					.max_runs = 200000,
					.keep_cache = 1,
					.warmup_ms = 1e-3,
					.measure_ms = 1e-3};
	OK(blk_stream_create(cpu, &st));
	const blk_bench_options other = {.stream = st};
	api.cuEventElapsedTime = no_time;
	const device_seams still = {.cuda = &api, .compiler = &fake_compiler};
	OK(device_open_with("cuda", &still, &d));
	OK(blk_bench_call(d, succeed, &n, &o, &t));
	assert_int_equal(t.runs, 7);
	assert_true(t.median_ms == 0);
	assert_int_equal(
		n, 1 + 1 + 3 + 7 + 7); /* the first, the flush's, three to guess by, the warm-up, the measurement */
	OK(blk_bench_call(gpu, succeed, &n, &both, &t)); /* 0.5 ms each: 200 runs are wanted */
	assert_int_equal(t.runs, 3);
	OK(blk_bench_call(gpu, succeed, &n, &many, &t));
	assert_int_equal(t.runs, 1);
	static float nobodys[100]; /* memory of a size that nobody knows */
	blk_arg bare = blk_ptr(nobodys);
	OK(blk_bench(kernel, NULL, BLK_ARGS(blk_buf(buffer), bare, bare, blk_i32(100)), &both, &t));
	assert_int_equal(t.runs, 3);
	n = 0;
	FAILS(BLK_ERROR_KERNEL, "the third run", blk_bench_call(d, fail_third, &n, &o, &t));
	assert_int_equal(n, 3);
	FAILS(BLK_ERROR_HANDLE, "another device", blk_bench_call(d, succeed, &n, &other, &t));
	assert_int_equal(n, 3);
	blk_device_close(d);
}

static void test_files_of_records(void **state)
{
	(void)state;
	uint32_t n = 7;
	FAILS(BLK_ERROR_ARGUMENT, "blk_tune_export: the path is null", blk_tune_export(NULL, &n));
	assert_int_equal(n, 0);
	FAILS(BLK_ERROR_ARGUMENT, "blk_tune_import: the path is null", blk_tune_import(NULL, NULL));
	FAILS(BLK_ERROR_NOT_FOUND, "there is no cache: BLK_CACHE turns it off", blk_tune_export("/nowhere/x", NULL));
	n = 7;
	FAILS(BLK_ERROR_NOT_FOUND, "there is no cache: BLK_CACHE turns it off", blk_tune_import("/nowhere/x", &n));
	assert_int_equal(n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(test_no_device),
		T(test_no_place),
		T(test_bad_handles),
		T(test_other_devices),
		T(test_wrong_arguments),
		T(test_many_parameters),
		T(test_requires),
		T(test_two_asserts),
		T(test_descriptors),
		T(test_many_kernels),
		T(test_marks_in_ptx),
		T(test_bandwidth),
		T(test_bench_calls),
		T(test_files_of_records),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
