/* Packages: what was written comes back; damaged and hostile files are refused; a launch gets the code that its device,
 * the defines and its arguments mean; blkc's writer gives the same bytes for any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_device.h"
#include "runtime/package/package.h"
#include "tool/tool.h"

#include <cmocka.h>
#include <unistd.h>

#define OK(call)                                                                                                       \
	do {                                                                                                           \
		if ((call) != BLK_OK) fail_msg("%s: %s", #call, blk_error());                                          \
	} while (0)
#define FAILS(status, words, call)                                                                                     \
	do {                                                                                                           \
		assert_int_equal(call, status);                                                                        \
		if (!strstr(blk_error(), words)) fail_msg("\"%s\" is not in: %s", words, blk_error());                 \
	} while (0)

#define ADD(block, warps, more)                                                                                        \
	"kernel add\nsymbol add\nparam z *f32\nparam x *const f32\nparam y *const f32\nparam n i32\n"                  \
	"const BLOCK i32 " block "\nwritten 0\ngrid 0 p3 " block " cdiv\nnum_warps " warps                             \
	"\nthreads 128\nshared 0\n" more

enum { Z = 1, X = 2, Y = 4, N_16 = 8 | 32, N_ONE = 16, N_4 = 32 }; /* bits of add's promises */

static char path[64];

static void write_bytes(const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	(void)state;
	setenv("BLK_CACHE", "off", 1);
	setenv("BLK_TUNE", "off", 1);
	snprintf(path, sizeof path, "/tmp/blk_package_%ld.blkpkg", (long)getpid());
	fake_reset();
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static package_entry ptx(
	const char *configuration, const char *target, uint64_t promises, const char *facts, const char *text)
{
	return (package_entry){"add", configuration, target, facts, promises, PACKAGE_PTX, text, strlen(text) + 1, 0};
}

static void *encode(package_entry *entries, size_t n, size_t *bytes)
{
	package p = {.producer = "blkc of a test", .entries = entries, .nentries = n};
	const char *why;
	package_hash("source", 6, p.source_hash);
	void *out = package_encode(&p, bytes, &why);
	assert_non_null(out);
	assert_null(why);
	return out;
}

/* ---- The form ---- */

static void test_round_trip(void **state)
{
	(void)state;
	package_entry in[] = {ptx("", "sm_80", 0, "kernel add\n", "first"),
		ptx("", "sm_80", 7, "kernel add\n", "second"),
		ptx("BLOCK=2", "sm_90a", UINT64_C(0x8000000000000001), "kernel add\nx\n", "first"),
		{"mul", "", "cpu", "kernel mul\n", 3, PACKAGE_OBJECT, "\x7f\0E", 3, 0}};
	size_t n, again;
	uint8_t *bytes = encode(in, 4, &n), *twice = encode(in, 4, &again);
	assert_int_equal(n, again);
	assert_memory_equal(bytes, twice, n);
	package p;
	assert_null(package_decode(bytes, n, &p));
	assert_string_equal(p.producer, "blkc of a test");
	uint8_t hash[16];
	package_hash("source", 6, hash);
	assert_memory_equal(p.source_hash, hash, 16);
	assert_int_equal(p.nentries, 4);
	for (int i = 0; i < 4; i++) {
		package_entry *e = &p.entries[i];
		assert_string_equal(e->kernel, in[i].kernel);
		assert_string_equal(e->configuration, in[i].configuration);
		assert_string_equal(e->target, in[i].target);
		assert_string_equal(e->signature, in[i].signature);
		assert_true(e->promises == in[i].promises);
		assert_int_equal(e->kind, in[i].kind);
		assert_int_equal(e->payload_bytes, in[i].payload_bytes);
		assert_memory_equal(e->payload, in[i].payload, in[i].payload_bytes);
		assert_int_equal((uintptr_t)e->payload % 16, (uintptr_t)bytes % 16);
		assert_true(package_payload_holds(e));
	}
	assert_ptr_equal(p.entries[0].payload, p.entries[2].payload); /* stored once */
	assert_ptr_equal(p.entries[0].kernel, p.entries[1].kernel);
	/* The documented places, by hand: entries behind the head of 96 bytes, 56 bytes each. */
	assert_memory_equal(bytes, "blkpkg\r\n\2\0\0\0\4\0\0\0", 16);
	assert_int_equal(bytes[96 + 56 + 16], 7);
	assert_int_equal(bytes[96 + 24], PACKAGE_PTX);
	assert_int_equal(bytes[96 + 3 * 56 + 40], 3);
	package_free(&p);
	free(bytes);
	free(twice);
}

static const char *reason(const void *bytes, size_t n)
{
	package p;
	void *copy = malloc(n ? n : 1); /* so that a checker sees a read beyond the end */
	assert_non_null(copy);
	if (n) memcpy(copy, bytes, n);
	const char *why = package_decode(copy, n, &p);
	if (!why) package_free(&p);
	free(copy);
	return why;
}

static void test_every_truncation_and_flip(void **state)
{
	(void)state;
	package_entry in[] = {ptx("", "sm_80", 0, "kernel add\n", "a"), ptx("B=1", "sm_80", 7, "kernel add\n", "bc")};
	size_t n;
	uint8_t *bytes = encode(in, 2, &n);
	assert_null(reason(bytes, n));
	for (size_t i = 0; i < n; i++) assert_non_null(reason(bytes, i));
	for (size_t i = 0; i < 8 * n; i++) {
		bytes[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_non_null(reason(bytes, n));
		bytes[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	uint8_t *longer = calloc(1, n + 1);
	assert_non_null(longer);
	memcpy(longer, bytes, n);
	assert_non_null(strstr(reason(longer, n + 1), "longer"));
	assert_string_equal(reason("#!/bin/sh\n", 10), "not a blk package");
	assert_string_equal(reason("", 0), "not a blk package");
	free(longer);
	free(bytes);
}

static void sign(uint8_t *bytes, size_t n)
{
	memset(bytes + 24, 0, 16);
	uint8_t sum[16];
	package_hash(bytes, n, sum);
	memcpy(bytes + 24, sum, 16);
}

/* Every byte of the head, the entries and the strings replaced, under a checksum that holds: what the reader then makes
 * of it may be refused or loaded, but stays inside the file.  The payload is no code that could run. */
static void test_hostile(void **state)
{
	(void)state;
	static const uint8_t values[] = {0, 1, 2, 0x7f, 0x80, 0xff, '\n', ' '};
	package_entry in[] = {{"add", "", "cpu", ADD("1024", "4", ""), 0, PACKAGE_OBJECT, "no object", 9, 0},
		{"add", "", "cpu", ADD("1024", "4", ""), 7, PACKAGE_OBJECT, "none either", 11, 0}};
	blk_device *d;
	OK(blk_device_open("cpu", &d));
	size_t n, refused = 0, opened = 0;
	uint8_t *bytes = encode(in, 2, &n);
	for (size_t i = 0; i < n; i++) {
		uint8_t old = bytes[i];
		for (size_t k = 0; k < sizeof values; k++) {
			bytes[i] = values[k];
			sign(bytes, n);
			write_bytes(bytes, n);
			blk_module *m;
			if (blk_module_open(d, path, NULL, 0, &m)) {
				refused++;
				continue;
			}
			opened++;
			blk_kernel *kernel;
			blk_info info;
			if (!blk_kernel_find(m, NULL, &kernel) &&
				!blk_kernel_info(kernel,
					(blk_arg[]){blk_ptr(NULL), blk_ptr(NULL), blk_ptr(NULL), blk_i32(3)}, 4, &info))
				fail_msg("no object was loaded as one");
			blk_module_close(m);
		}
		bytes[i] = old;
	}
	assert_true(refused > 100 && opened > 100);
	free(bytes);
	blk_device_close(d);
}

static void put64(uint8_t *to, uint64_t v)
{
	for (int i = 0; i < 8; i++) to[i] = (uint8_t)(v >> 8 * i);
}

/* Where a payload says that it lies, under a right checksum: inside to the last byte, or nowhere. */
static void test_payload_bounds(void **state)
{
	(void)state;
	package_entry in[] = {{"add", "", "cpu", "kernel add\n", 0, PACKAGE_OBJECT, "0123456789abcdef", 16, 0}};
	size_t n;
	uint8_t *bytes = encode(in, 1, &n), *offset = bytes + 96 + 32, *size = bytes + 96 + 40;
	const struct {
		uint64_t offset, size;
		bool inside;
	} places[] = {{n - 16, 16, true}, {n - 16, 17, false}, {n - 1, 1, true}, {n - 1, 2, false}, {n, 1, false},
		{n + 1, 1, false}, {0, n, true}, {0, n + 1, false}, {n - 16, 0, false},
		/* sums that wrap to a place inside */
		{n - 16, UINT64_MAX - (n - 16) + 1, false}, {n - 16, UINT64_MAX - (n - 16) + 2, false},
		{UINT64_MAX, 2, false}, {UINT64_MAX - 15, 16, false}, {16, UINT64_MAX - 15, false}};
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		put64(offset, places[i].offset);
		put64(size, places[i].size);
		sign(bytes, n);
		const char *why = reason(bytes, n);
		if (places[i].inside != !why) fail_msg("place %zu: %s", i, why ? why : "accepted");
		if (why) assert_string_equal(why, "damaged: a payload lies outside");
	}
	free(bytes);
}

static void test_limits(void **state)
{
	(void)state;
	package p = {.producer = "", .nentries = PACKAGE_MAX_ENTRIES + 1};
	size_t n;
	const char *why;
	assert_null(package_encode(&p, &n, &why));
	assert_non_null(strstr(why, "entries"));
	package_entry huge = ptx("", "sm_80", 0, "", "x");
	huge.payload_bytes = 0;
	size_t bytes;
	uint8_t *file = encode(&huge, 1, &bytes);
	assert_string_equal(reason(file, bytes), "damaged: a payload lies outside"); /* nothing to run */
	free(file);
	unsigned next = 0;
	for (unsigned i = 0; i < 20; i++) assert_int_equal(package_promise_bit(false, true, &next), 3 * i);
	for (unsigned i = 60; i < 63; i++) assert_int_equal(package_promise_bit(true, false, &next), i);
	assert_int_equal(package_promise_bit(false, true, &next), 255); /* one bit is left */
	assert_int_equal(package_promise_bit(false, false, &next), 255);
	assert_int_equal(package_promise_bit(true, false, &next), 63);
	assert_int_equal(package_promise_bit(true, false, &next), 255);
}

/* What no file may hold is not written, and a file of nothing is not read. */
static void test_sizes(void **state)
{
	(void)state;
	enum { LARGE = 128 << 20, PARTS = 9 };
	package_entry parts[PARTS], *none = calloc(1, sizeof *none);
	char *zeros = calloc(1, LARGE);
	const char *why;
	size_t n;
	for (int i = 0; i < PARTS; i++) {
		parts[i] = ptx("", "sm_80", (uint64_t)i, "kernel add\n", "x");
		parts[i].payload = zeros;
		parts[i].payload_bytes = (size_t)LARGE - (size_t)i; /* no two are one */
	}
	package p = {.producer = "a test", .entries = parts, .nentries = PARTS};
	assert_null(package_encode(&p, &n, &why));
	assert_string_equal(why, "it would be larger than 1 GiB");
	free(zeros);
	p = (package){.producer = "a test", .entries = none};
	void *bytes = package_encode(&p, &n, &why);
	assert_non_null(bytes);
	assert_string_equal(package_decode(bytes, n, &p), "damaged: its number of entries");
	free(bytes);
	free(none);
}

/* ---- Choosing ---- */

typedef struct adder {
	blk_device *device;
	blk_module *module;
	blk_kernel *kernel;
	blk_buffer *buffer[3];
} adder;

static blk_status open_adder(adder *a, package_entry *entries, size_t nentries, const blk_define *defines, size_t n)
{
	size_t bytes;
	memset(a, 0, sizeof *a);
	void *file = encode(entries, nentries, &bytes);
	write_bytes(file, bytes);
	free(file);
	OK(device_open_with("cuda", &fake_seams, &a->device));
	blk_status status = blk_module_open(a->device, path, defines, n, &a->module);
	if (status) return status;
	OK(blk_kernel_find(a->module, NULL, &a->kernel));
	for (int i = 0; i < 3; i++) {
		OK(blk_buffer_create(a->device, 4096, &a->buffer[i]));
		OK(blk_buffer_fill(a->buffer[i], 0, 0, 4096));
	}
	return BLK_OK;
}

static void close_adder(adder *a)
{
	blk_device_close(a->device);
	if (fake_leak()) fail_msg("left behind: %s", fake_leak());
}

static void launch(adder *a, int misalign, int32_t n)
{
	const char *x = blk_buffer_pointer(a->buffer[1]);
	OK(blk_launch(a->kernel, NULL, NULL,
		BLK_ARGS(blk_buf(a->buffer[0]), blk_ptr(x + misalign), blk_buf(a->buffer[2]), blk_i32(n))));
}

static void test_best_promises(void **state)
{
	(void)state;
	package_entry in[] = {ptx("", "sm_80", 0, ADD("1024", "4", ""), "plain"),
		ptx("", "sm_80", Z | X | Y, ADD("1024", "4", ""), "aligned"),
		ptx("", "sm_80", Z | X | Y | N_16, ADD("1024", "4", ""), "aligned, divisible"),
		ptx("", "sm_80", Z | X | Y | N_4, ADD("1024", "4", ""), "aligned, by 4"),
		ptx("", "sm_80", Z | X | Y | N_ONE, ADD("1024", "4", ""), "aligned, one")};
	adder a;
	OK(open_adder(&a, in, 5, NULL, 0));
	launch(&a, 0, 100); /* f32: four make 16 bytes */
	assert_string_equal(fake.linked, "aligned, by 4");
	launch(&a, 0, 102);
	assert_string_equal(fake.linked, "aligned");
	launch(&a, 0, 64);
	assert_string_equal(fake.linked, "aligned, divisible");
	launch(&a, 0, 1);
	assert_string_equal(fake.linked, "aligned, one");
	launch(&a, 4, 64);
	assert_string_equal(fake.linked, "plain");
	assert_int_equal(fake.links_made, 5);
	launch(&a, 8, 101); /* other promises of the arguments, the same code */
	launch(&a, 0, 96);
	launch(&a, 0, 103);
	assert_int_equal(fake.links_made, 5);
	assert_int_equal(fake.launches, 8);
	close_adder(&a);
}

static void test_best_target(void **state)
{
	(void)state;
	package_entry in[] = {ptx("", "sm_80", 0, ADD("1024", "4", ""), "for 80"),
		ptx("", "sm_90a", 0, ADD("1024", "4", ""), "for 90a"),
		ptx("", "sm_90", 0, ADD("1024", "4", ""), "for 90"),
		ptx("", "sm_86", 0, ADD("1024", "4", ""), "for 86"),
		{"add", "", "cpu", ADD("1024", "4", ""), 0, PACKAGE_OBJECT, "object", 6, 0}};
	static const struct {
		int capability;
		const char *wanted;
	} cases[] = {{80, "for 80"}, {86, "for 86"}, {89, "for 86"}, {90, "for 90a"}, {100, "for 90"}, {120, "for 90"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		adder a;
		fake_reset();
		fake.capability = cases[i].capability;
		OK(open_adder(&a, in, 5, NULL, 0));
		launch(&a, 0, 64);
		assert_string_equal(fake.linked, cases[i].wanted);
		close_adder(&a);
	}
	adder a;
	fake_reset();
	fake.capability = 80;
	FAILS(BLK_ERROR_UNSUPPORTED, "kernel add has no code that Fake GPU (sm_80) runs; it has sm_90a; cpu",
		open_adder(&a, (package_entry[]){in[1], in[4]}, 2, NULL, 0));
	close_adder(&a);
}

static void test_configurations(void **state)
{
	(void)state;
	package_entry in[] = {ptx("", "sm_80", 0, ADD("1024", "4", ""), "defaults"),
		ptx("BLOCK=512,num_warps=4", "sm_80", 0, ADD("512", "4", ""), "512, 4"),
		ptx("BLOCK=512,num_warps=8", "sm_80", 0, ADD("512", "8", ""), "512, 8"),
		ptx("BLOCK=64", "cpu", 0, ADD("64", "4", ""), "not for a GPU")};
	static const struct {
		blk_define defines[2];
		size_t n;
		const char *wanted;
		unsigned grid;
	} cases[] = {{{{0}}, 0, "defaults", 1}, {{{"BLOCK", "512"}}, 1, "512, 4", 2},
		{{{"BLOCK", "0x200"}}, 1, "512, 4", 2}, {{{"num_warps", "8"}}, 1, "512, 8", 2},
		{{{"num_warps", "8"}, {"BLOCK", "512"}}, 2, "512, 8", 2}, {{{"BLOCK", "1024"}}, 1, "defaults", 1}};
	adder a;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		OK(open_adder(&a, in, 4, cases[i].defines, cases[i].n));
		launch(&a, 0, 1000);
		assert_string_equal(fake.linked, cases[i].wanted);
		assert_int_equal(fake.grid[0], cases[i].grid); /* 1000 over the configuration's block, rounded up */
		close_adder(&a);
	}
	FAILS(BLK_ERROR_ARGUMENT,
		"kernel add has no configuration with BLOCK=64; it has the defaults; BLOCK=512,num_warps=4",
		open_adder(&a, in, 4, (blk_define[]){{"BLOCK", "64"}}, 1));
	close_adder(&a);
	FAILS(BLK_ERROR_ARGUMENT, "no kernel has code with num_stages=7",
		open_adder(&a, in, 4, (blk_define[]){{"num_stages", "7"}}, 1));
	close_adder(&a);
	FAILS(BLK_ERROR_ARGUMENT, "no kernel has a const parameter or option 'BLOK'",
		open_adder(&a, in, 4, (blk_define[]){{"BLOK", "64"}}, 1));
	close_adder(&a);
}

/* What a tuner sees and asks for: the configurations of this device that agree with the defines, each built by name. */
static void test_tuning_choices(void **state)
{
	(void)state;
	package_entry in[] = {ptx("", "sm_80", 0, ADD("1024", "4", "autotune key n\n"), "defaults"),
		ptx("BLOCK=512,num_warps=4", "sm_80", 0, ADD("512", "4", ""), "512, 4"),
		ptx("BLOCK=512,num_warps=4", "sm_80", Z | X, ADD("512", "4", ""), "512, 4, aligned"),
		ptx("BLOCK=512,num_warps=8", "sm_80", 0, ADD("512", "8", ""), "512, 8"),
		ptx("BLOCK=64", "sm_89", 0, ADD("64", "4", ""), "not for this GPU")};
	adder a;
	fake.capability = 80;
	OK(open_adder(&a, in, 5, NULL, 0));
	assert_int_equal(a.kernel->sig->nconfigurations, 2);
	assert_string_equal(a.kernel->sig->configurations[1], "BLOCK=512,num_warps=8");
	assert_string_equal(a.kernel->sig->autotune, "key n");
	variant *v = calloc(1, sizeof *v);
	assert_non_null(v);
	OK(specialise_build(a.kernel, Z | X | N_16, "BLOCK=512,num_warps=4", v));
	assert_string_equal(fake.linked, "512, 4, aligned");
	assert_string_equal(v->sig->constants[0].value, "512"); /* its own grid clause too */
	variant_free(a.device, v);
	v = calloc(1, sizeof *v);
	assert_non_null(v);
	FAILS(BLK_ERROR_ARGUMENT, "no configuration BLOCK=64 for this device",
		specialise_build(a.kernel, Z | X | N_16, "BLOCK=64", v));
	free(v);
	close_adder(&a);
	OK(open_adder(&a, in, 5, (blk_define[]){{"BLOCK", "512"}}, 1));
	assert_int_equal(a.kernel->sig->nconfigurations, 2);
	close_adder(&a);
	OK(open_adder(&a, in, 5, (blk_define[]){{"num_warps", "8"}}, 1));
	assert_int_equal(a.kernel->sig->nconfigurations, 0); /* one alone is no choice */
	close_adder(&a);
}

/* Signatures that do not belong together, and code whose own checksum is wrong. */
static void test_disagreement(void **state)
{
	(void)state;
	adder a;
	package_entry other = ptx("", "sm_80", 0, "kernel mul\nparam n i32\n", "x");
	FAILS(BLK_ERROR_FORMAT, "another one's", open_adder(&a, &other, 1, NULL, 0));
	close_adder(&a);
	package_entry in[] = {ptx("", "sm_80", 0, ADD("1024", "4", ""), "plain"),
		ptx("", "sm_80", Z, "kernel add\nparam n i32\nthreads 32\n", "of another shape")};
	OK(open_adder(&a, in, 2, NULL, 0));
	FAILS(BLK_ERROR_FORMAT, "different parameters",
		blk_launch(a.kernel, NULL, NULL,
			BLK_ARGS(blk_buf(a.buffer[0]), blk_buf(a.buffer[1]), blk_buf(a.buffer[2]), blk_i32(3))));
	close_adder(&a);
	size_t n;
	uint8_t *bytes = encode(in, 1, &n);
	bytes[96 + 48] ^= 1;
	sign(bytes, n);
	write_bytes(bytes, n);
	free(bytes);
	OK(device_open_with("cuda", &fake_seams, &a.device));
	OK(blk_module_open(a.device, path, NULL, 0, &a.module));
	OK(blk_kernel_find(a.module, "add", &a.kernel));
	FAILS(BLK_ERROR_FORMAT, "the code of kernel add is damaged",
		blk_launch(a.kernel, NULL, NULL, BLK_ARGS(blk_ptr(NULL), blk_ptr(NULL), blk_ptr(NULL), blk_i32(3))));
	close_adder(&a);
}

/* Constants and options that defines are compared with: as numbers where both are, else as words without their spaces;
 * an option counts for those kernels that come with several values of it. */
static void test_defines_of_packages(void **state)
{
	(void)state;
#define MORE "const R f32 0.5\nconst S shape [2, 3]\nconst T type f16\nconst E type  \n"
	package_entry in[] = {ptx("", "sm_80", 0, ADD("1024", "4", MORE), "defaults"),
		ptx("xnum_warps=8,num_warpsy=1", "sm_80", 0, ADD("1024", "8", MORE), "not of num_warps")};
	static const struct {
		blk_define define;
		const char *refused; /* null: it is not */
	} rows[] = {{{"R", "5e-1"}, NULL}, {{"R", "0.25"}, "no configuration with R=0.25"},
		{{"R", "1/2"}, "with R=1/2"}, {{"R", ""}, "with R="}, {{"S", "[2,3]"}, NULL},
		{{"S", " [ 2 , 3 ] "}, NULL}, {{"S", "[2,3"}, "with S=[2,3"}, {{"S", "[2,3]]"}, "with S=[2,3]]"},
		{{"T", "f16"}, NULL}, {{"T", "f32"}, "with T=f32"}, {{"E", ""}, NULL}, {{"E", "0"}, "with E=0"},
		{{"BLOCK", "0x400"}, NULL}, {{"BLOCK", "1024.0"}, NULL}, {{"num_warps", "4"}, NULL},
		{{"num_warps", "8"}, "no kernel has code with num_warps=8"}};
	adder a;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		blk_status s = open_adder(&a, in, 2, &rows[i].define, 1);
		if (s != (rows[i].refused ? BLK_ERROR_ARGUMENT : BLK_OK) ||
			(s && !strstr(blk_error(), rows[i].refused)))
			fail_msg("%s=%s: %s", rows[i].define.name, rows[i].define.value, blk_error());
		close_adder(&a);
	}
}

/* Targets that no device has, and lists of what there is that are longer than a sentence. */
static void test_nothing_for_this_device(void **state)
{
	(void)state;
	enum { MANY = 60 };
	static const char *const targets[] = {"sm_90b", "sm_x", "sm_90ab", "sm_8", "gpu", "sm_"};
	adder a;
	fake.capability = 80;
	for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
		package_entry one = ptx("", targets[i], 0, ADD("1024", "4", ""), "x");
		bool old = strcmp(targets[i], "sm_8") == 0; /* older than the device: that runs */
		blk_status s = open_adder(&a, &one, 1, NULL, 0);
		if (s != (old ? BLK_OK : BLK_ERROR_UNSUPPORTED)) fail_msg("%s: %s", targets[i], blk_status_text(s));
		if (s) assert_non_null(strstr(blk_error(), targets[i]));
		close_adder(&a);
	}
	package_entry in[MANY];
	static char names[MANY][32];
	blk_define defines[40];
	for (int i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof names[i], "BLOCK=512,num_warps=%d", 10 + i);
		in[i] = ptx(names[i], "sm_80", 0, ADD("512", "4", ""), "x");
	}
	for (int i = 0; i < 40; i++) defines[i] = (blk_define){"BLOCK", "77"};
	assert_int_equal(open_adder(&a, in, MANY, defines, 40), BLK_ERROR_ARGUMENT);
	assert_non_null(strstr(blk_error(), "with BLOCK=77; BLOCK=77; "));
	const char *between = strstr(blk_error(), "; ...; it has BLOCK=512,num_warps=10; ");
	assert_non_null(between);
	assert_string_equal(blk_error() + strlen(blk_error()) - 5, "; ...");
	close_adder(&a);
}

/* Signatures that each are one, but do not go together. */
static void test_signatures_that_differ(void **state)
{
	(void)state;
	static const char other_type
		[] = "kernel add\nparam z *f32\nparam x *const f64\nparam y *const f32\nparam n i32\n",
      other_code[] = "kernel add\nparam z *f32\nparam x *const f32\nparam y *const f32\nparam n i64\n",
      too_wide[] = "kernel add\nparam z *f32 align 32\nparam x *const f32\nparam y *const f32\nparam n i32\n",
      in_step[] = "kernel add\nparam z *f32 align 16\nparam x *const f32\nparam y *const f32\nparam n i32 div 4\n",
      no_kernel[] = "param z *f32\n";
	static const struct {
		const char *facts, *says;
	} rows[] = {{other_type, "the variants of kernel add take different parameters"},
		{other_code, "the variants of kernel add take different parameters"},
		{too_wide, "the variants of kernel add take different parameters"}, {no_kernel, "names no kernel"},
		{in_step, NULL}};
	adder a;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		package_entry in[] = {ptx("", "sm_80", 0, ADD("1024", "4", ""), "plain"),
			ptx("", "sm_80", Z, rows[i].facts, "aligned")};
		OK(open_adder(&a, in, 2, NULL, 0));
		blk_info info;
		blk_status s = blk_kernel_info(a.kernel,
			BLK_ARGS(blk_buf(a.buffer[0]), blk_buf(a.buffer[1]), blk_buf(a.buffer[2]), blk_i32(4)), &info);
		if (s != (rows[i].says ? BLK_ERROR_FORMAT : BLK_OK) || (s && !strstr(blk_error(), rows[i].says)))
			fail_msg("%zu: %s: %s", i, blk_status_text(s), blk_error());
		if (!s) assert_string_equal(info.promises, "z%16,n%4");
		close_adder(&a);
	}
	/* One that promises without saying so; a configuration whose requirement has no parts is built in vain. */
	package_entry promising = ptx("", "sm_80", 0, "kernel add\nparam n i32 div 16\n", "x");
	FAILS(BLK_ERROR_FORMAT, "another one's", open_adder(&a, &promising, 1, NULL, 0));
	close_adder(&a);
	package_entry in[] = {ptx("", "sm_80", 0, ADD("1024", "4", "autotune key n\n"), "plain"),
		ptx("BLOCK=64", "sm_80", 0, ADD("64", "4", "requires p3\n"), "x"),
		ptx("BLOCK=65\nkernel evil", "sm_80", 0, ADD("64", "4", ""), "x")};
	OK(open_adder(&a, in, 3, NULL, 0));
	assert_int_equal(a.kernel->sig->nconfigurations, 1); /* a name of two lines is none */
	variant *v = calloc(1, sizeof *v);
	FAILS(BLK_ERROR_FORMAT, "a requirement lacks a part", specialise_build(a.kernel, 0, "BLOCK=64", v));
	FAILS(BLK_ERROR_ARGUMENT, "has no configuration BLOCK=99 for this device",
		specialise_build(a.kernel, 0, "BLOCK=99", v));
	free(v);
	close_adder(&a);
	FAILS(BLK_ERROR_FORMAT, "a requirement lacks a part",
		open_adder(&a, in, 2, (blk_define[]){{"BLOCK", "1024"}}, 1));
	close_adder(&a);
}

/* ---- The writer ---- */

static const char source[] =
	"kernel scale(z: *f32, x: *const f32, a: f32, n: i32, rows: i32, const BLOCK: i32 = 256, const T: type = f32)\n"
	"	grid(cdiv(n, BLOCK))\n{\n	let i = program_id(0) * BLOCK + arange(0, BLOCK);\n"
	"	store(z + i, (load(x + i, mask = i < n) * a).to(T).to(f32) + (BLOCK + rows).to(f32), mask = i < "
	"n);\n}\n"
	"kernel plain(z: *f64) grid(1) { store(z, 2.5); }\n"
	"autotune scale key(n) { BLOCK: [128, 512], num_warps: [2, 4]; where BLOCK >= num_warps * 64; config(T = f16); "
	"}\n";

static void *write_package(const char *text, const char *targets, unsigned threads, const blkc_define *defines,
	size_t ndefines, size_t *bytes, int *status)
{
	const char *names[TOOL_MAX_TARGETS];
	blkc_request base = {.size = sizeof base,
		.name = "t.blk",
		.text = text,
		.text_bytes = strlen(text),
		.defines = defines,
		.ndefines = ndefines};
	blkc_result *r = blkc_compile(&base);
	assert_non_null(r);
	if (r->status) fail_msg("%s", r->diagnostics);
	tool_package_request q = {.base = &base, .checked = r, .targets = names, .threads = threads};
	assert_true(tool_targets(targets, names, &q.ntargets));
	void *out = tool_package(&q, bytes, status);
	blkc_result_free(r);
	return out;
}

static void test_writer(void **state)
{
	(void)state;
	size_t n, again;
	int status;
	uint8_t *one = write_package(source, NULL, 1, NULL, 0, &n, &status);
	uint8_t *many = write_package(source, NULL, 5, NULL, 0, &again, &status);
	assert_non_null(one);
	assert_int_equal(n, again);
	assert_memory_equal(one, many, n);
	package p;
	assert_null(package_decode(one, n, &p));
	/* Promises on a GPU: none, pointers, all by 16, all by 4, all but n by 4, all but rows; on cpu none and all by
	 * 16.  Configurations: the defaults, 128 with 2 warps, 512 with 2 and 4, T = f16. */
	assert_int_equal(p.nentries, 5 * (6 + 6 + 2) + (2 + 2 + 2));
	assert_string_equal(p.entries[0].target, "sm_80");
	assert_string_equal(p.entries[6].target, "sm_90a");
	assert_string_equal(p.entries[12].target, "cpu");
	enum { POINTERS = 1 | 2, NS_16 = 4 | 16, NS_4 = 16, ROWS_16 = 32 | 128, ROWS_4 = 128 };
	assert_true(p.entries[2].promises == (POINTERS | NS_16 | ROWS_16));
	assert_true(p.entries[3].promises == (POINTERS | NS_4 | ROWS_4));
	assert_true(p.entries[4].promises == (POINTERS | ROWS_4) && p.entries[5].promises == (POINTERS | NS_4));
	assert_true(p.entries[13].promises == (POINTERS | NS_16 | ROWS_16));
	assert_non_null(strstr(p.entries[2].signature, "param n i32 div 16\n"));
	assert_non_null(strstr(p.entries[3].signature, "param n i32 div 4\nparam rows i32 div 4\n"));
	assert_non_null(strstr(p.entries[4].signature, "param n i32\nparam rows i32 div 4\n"));
	assert_string_equal(p.entries[14].configuration, "BLOCK=128,num_warps=2");
	assert_string_equal(p.entries[70].kernel, "plain");
	for (size_t i = 0; i < p.nentries; i++) {
		const package_entry *e = &p.entries[i];
		char want[64];
		snprintf(want, sizeof want, "target %s\n", e->target);
		assert_non_null(strstr(e->signature, want));
		assert_null(strstr(e->signature, "\nconfiguration "));
		if (e->kind == PACKAGE_PTX) assert_null(strstr(e->payload, "// blk:"));
		if (strcmp(e->configuration, "BLOCK=512,num_warps=4") == 0)
			assert_non_null(strstr(e->signature, "const BLOCK i32 512\n"));
		if (e->promises == (1 | 2)) assert_non_null(strstr(e->signature, "param z *f32 align 16\n"));
	}
	package_free(&p);
	free(one);
	free(many);
}

/* The step is that of the code's own elements, which a configuration may name. */
static void test_step(void **state)
{
	(void)state;
	static const char text[] = "kernel k(z: *T, n: i32, const T: type = f32) grid(1) { store(z + n, 1.0.to(T)); }\n"
				   "autotune k key(n) { config(T = f16); config(T = i8); config(T = f64); }\n";
	static const char *const steps[] = {"i32 div 4\n", "i32 div 8\n", "i32 div 16\n", "i32 div 2\n"};
	size_t n;
	int status;
	void *bytes = write_package(text, "sm_80", 1, NULL, 0, &n, &status);
	assert_non_null(bytes);
	package p;
	assert_null(package_decode(bytes, n, &p));
	assert_int_equal(p.nentries, 4 * 4); /* none, z, both by 16, both by the step; all but n is z */
	for (size_t i = 0; i < 4; i++) assert_non_null(strstr(p.entries[4 * i + 3].signature, steps[i]));
	package_free(&p);
	free(bytes);
}

/* The packed code computes what the source says, with the configuration that was asked for. */
static void run_scale(blk_device *d, const blk_define *defines, size_t ndefines, float bias)
{
	enum { N = 1000 };
	static float x[N], z[N];
	blk_module *m;
	blk_kernel *k;
	blk_info info;
	OK(blk_module_open(d, path, defines, ndefines, &m));
	OK(blk_kernel_find(m, "scale", &k));
	for (int offset = 0; offset < 2; offset++) { /* aligned or not */
		for (int i = 0; i < N; i++) x[i] = (float)i, z[i] = -1;
		const blk_arg args[] = {
			blk_ptr(z + offset), blk_ptr(x + offset), blk_f32(0.5f), blk_i32(N - 8 - offset), blk_i32(3)};
		OK(blk_launch(k, NULL, NULL, args, 5));
		OK(blk_kernel_info(k, args, 5, &info));
		assert_string_equal(info.target, "cpu");
		for (int i = 0; i < N; i++) {
			float want = i >= offset && i < N - 8 ? 0.5f * (float)i + bias + 3 : -1;
			if (z[i] != want) fail_msg("z[%d] is %g, not %g", i, (double)z[i], (double)want);
		}
	}
	blk_module_close(m);
}

static void test_runs_on_cpu(void **state)
{
	(void)state;
	static const compiler_api none;
	static const device_seams no_compiler = {.compiler = &none};
	size_t n;
	int status;
	void *bytes = write_package(source, "cpu", 2, NULL, 0, &n, &status);
	assert_non_null(bytes);
	write_bytes(bytes, n);
	free(bytes);
	blk_device *d;
	OK(device_open_with("cpu", &no_compiler, &d));
	run_scale(d, NULL, 0, 256);
	run_scale(d, (blk_define[]){{"BLOCK", "512"}, {"num_warps", "2"}}, 2, 512);
	run_scale(d, (blk_define[]){{"T", "f16"}}, 1, 256); /* multiples of a half up to 500 are exact in f16 */
	blk_device_close(d);
	adder a; /* no GPU code in it */
	OK(device_open_with("cuda", &fake_seams, &a.device));
	FAILS(BLK_ERROR_UNSUPPORTED, "it has cpu", blk_module_open(a.device, path, NULL, 0, &a.module));
	close_adder(&a);
}

static void test_writer_limits(void **state)
{
	(void)state;
	static const char many[] =
		"kernel k(z: *f32, const A: i32 = 1, const B: i32 = 1, const C: i32 = 1) { store(z, (A + B + "
		"C).to(f32)); }\n"
		"autotune k { A: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],\n"
		"	B: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],\n"
		"	C: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]; }\n";
	size_t n;
	int status;
	assert_null(write_package(many, NULL, 2, NULL, 0, &n, &status));
	assert_int_equal(status, 1);
	/* With two of them bound there are 20 and the defaults. */
	void *few = write_package(many, "sm_80", 2, (blkc_define[]){{"A", "3"}, {"B", "4"}}, 2, &n, &status);
	assert_non_null(few);
	package p;
	assert_null(package_decode(few, n, &p));
	assert_int_equal(p.nentries, 21 * 2);
	assert_non_null(strstr(p.entries[4].signature, "const A i32 3\nconst B i32 4\nconst C i32 2\n"));
	package_free(&p);
	free(few);
	const char *targets[TOOL_MAX_TARGETS];
	assert_true(tool_targets("+sm_89,sm_80", targets, &n));
	assert_int_equal(n, 4);
	assert_string_equal(targets[3], "sm_89");
	assert_false(tool_targets("sm_80,gpu", targets, &n));
	assert_false(tool_targets("", targets, &n));
}

/* A configuration that does not compile for a target is left out there; defaults that do not are an error. */
static void test_left_out(void **state)
{
	(void)state;
	static const char text[] =
		"kernel k(z: *f32, const A: i32 = 1) { static_assert(A != 2, \"two\"); store(z, A.to(f32)); }\n"
		"autotune k { A: [1, 2, 3]; }\n";
	size_t n;
	int status;
	void *bytes = write_package(text, "sm_80,cpu", 1, NULL, 0, &n, &status);
	assert_non_null(bytes);
	package p;
	assert_null(package_decode(bytes, n, &p));
	assert_int_equal(p.nentries, 3 * (2 + 2)); /* the defaults, 1, 3 */
	for (size_t i = 0; i < p.nentries; i++) assert_string_not_equal(p.entries[i].configuration, "A=2");
	assert_ptr_equal(p.entries[0].payload, p.entries[4].payload); /* the defaults are A = 1 */
	package_free(&p);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_every_truncation_and_flip),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test(test_payload_bounds),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_limits),
		cmocka_unit_test_setup_teardown(test_best_promises, setup, teardown),
		cmocka_unit_test_setup_teardown(test_step, setup, teardown),
		cmocka_unit_test_setup_teardown(test_best_target, setup, teardown),
		cmocka_unit_test_setup_teardown(test_configurations, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tuning_choices, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disagreement, setup, teardown),
		cmocka_unit_test_setup_teardown(test_defines_of_packages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_for_this_device, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signatures_that_differ, setup, teardown),
		cmocka_unit_test_setup_teardown(test_writer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_runs_on_cpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_writer_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_out, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
