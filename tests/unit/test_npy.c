/* blkrun's parts that need no device: .npy files, values from text, fills and comparisons. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/run/run.h"
#include "wrapped.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct {
	int interrupted, calls, n;
	size_t most;
} reading;

ssize_t __real_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n)
{
	int call = reading.n++;
	if (reading.interrupted && call % reading.interrupted == 0) return errno = EINTR, -1;
	if (reading.calls && call >= reading.calls) return 0;
	return __real_read(fd, to, reading.most && reading.most < n ? reading.most : n);
}

static char folder[64];
static char path[128];

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/blk_npy_XXXXXX");
	if (!mkdtemp(folder)) return -1;
	snprintf(path, sizeof path, "%s/a.npy", folder);
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static void put(const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

/* numpy.array([[1, 2, 3], [4, 5, -6]], dtype='<f4') laid out by hand from NumPy's description of the format. */
static size_t known(unsigned char *to)
{
	static const float values[6] = {1, 2, 3, 4, 5, -6};
	const char *dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
	memcpy(to, "\x93NUMPY\x01\x00\x76\x00", 10);
	memset(to + 10, ' ', 118);
	memcpy(to + 10, dictionary, strlen(dictionary));
	to[127] = '\n';
	memcpy(to + 128, values, sizeof values);
	return 128 + sizeof values;
}

static void test_reads_numpys_file(void **state)
{
	(void)state;
	unsigned char bytes[256];
	char why[256];
	array a;
	put(bytes, known(bytes));
	assert_true(npy_read(path, SCALAR_F32, &a, why, sizeof why));
	assert_int_equal(a.type, SCALAR_F32);
	assert_int_equal(a.rank, 2);
	assert_int_equal(a.extent[0], 2);
	assert_int_equal(a.extent[1], 3);
	assert_int_equal(a.count, 6);
	assert_true(array_value(&a, 5) == -6);
	/* and writes the same bytes */
	unlink(path);
	assert_true(npy_write(path, &a, why, sizeof why));
	unsigned char back[256];
	FILE *f = fopen(path, "rb");
	size_t n = fread(back, 1, sizeof back, f);
	fclose(f);
	assert_int_equal(n, 152);
	assert_memory_equal(back, bytes, 152);
	array_free(&a);
}

static void test_all_types_and_ranks(void **state)
{
	(void)state;
	char why[256];
	for (int t = 0; t < SCALAR_COUNT; t++)
		for (unsigned rank = 0; rank <= 4; rank++) {
			array a = {.type = (scalar)t, .rank = rank, .extent = {3, 2, 1, 5}}, b;
			assert_true(array_allocate(&a));
			fill_array(&a, "randn", 9);
			assert_true(npy_write(path, &a, why, sizeof why));
			assert_true(npy_read(path, (scalar)t, &b, why, sizeof why));
			assert_int_equal(b.type, t);
			assert_int_equal(b.rank, rank);
			for (unsigned d = 0; d < rank; d++) assert_int_equal(b.extent[d], a.extent[d]);
			assert_int_equal(b.bytes, a.bytes);
			assert_memory_equal(a.data, b.data, a.bytes);
			array_free(&a);
			array_free(&b);
		}
}

static bool parse(const char *dictionary, scalar wanted, array *a, bool *swapped, char *why)
{
	unsigned char bytes[512] = "\x93NUMPY\x01\x00";
	size_t data, n = strlen(dictionary);
	bytes[8] = (unsigned char)n;
	memcpy(bytes + 10, dictionary, n);
	return npy_parse(bytes, 10 + n, wanted, a, &data, swapped, why, 256);
}

static void test_headers(void **state)
{
	(void)state;
	array a;
	bool swapped;
	char why[256];
	assert_true(parse("{'shape': (7,), 'fortran_order': False, 'descr': '>i8'}", SCALAR_I64, &a, &swapped, why));
	assert_true(swapped && a.type == SCALAR_I64 && a.rank == 1 && a.extent[0] == 7);
	assert_true(parse("{'descr': '<V2', 'fortran_order': True, 'shape': (4,)}", SCALAR_BF16, &a, &swapped, why));
	assert_int_equal(a.type, SCALAR_BF16);
	assert_true(parse("{'descr': '<u2', 'fortran_order': False, 'shape': ()}", SCALAR_BF16, &a, &swapped, why));
	assert_true(a.type == SCALAR_BF16 && a.rank == 0);
	assert_true(
		parse("{'descr': '|V1', 'fortran_order': False, 'shape': (0, 3)}", SCALAR_F8E5M2, &a, &swapped, why));
	assert_true(parse("{'descr': '|u1', 'fortran_order': False, 'shape': (1L,)}", SCALAR_U8, &a, &swapped, why));
	assert_int_equal(a.type, SCALAR_U8);
	/* as few or as many spaces as one likes */
	assert_true(
		parse("{'descr' : '<f4','fortran_order':False,  'shape'  :  ( 2 ,3)}", SCALAR_F32, &a, &swapped, why));
	assert_true(a.type == SCALAR_F32 && a.rank == 2 && a.extent[0] == 2 && a.extent[1] == 3 && !swapped);
	/* raw bytes are of the wanted type where their size is its, and of none else */
	assert_true(parse("{'descr': '<u2', 'fortran_order': False, 'shape': ()}", SCALAR_F8E4M3, &a, &swapped, why));
	assert_int_equal(a.type, SCALAR_U16);
	assert_true(parse("{'descr': '|i1', 'fortran_order': False, 'shape': ()}", SCALAR_F8E4M3, &a, &swapped, why));
	assert_int_equal(a.type, SCALAR_I8);
	assert_true(parse("{'descr': '|u1', 'fortran_order': False, 'shape': ()}", SCALAR_BF16, &a, &swapped, why));
	assert_int_equal(a.type, SCALAR_U8);
	assert_true(parse("{'descr': '|u1', 'fortran_order': False, 'shape': ()}", SCALAR_F8E4M3, &a, &swapped, why));
	assert_int_equal(a.type, SCALAR_F8E4M3);
	static const struct {
		const char *dictionary, *says;
	} bad[] = {
		{"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "'<c8'"},
		{"{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}", "'<V2'"},
		{"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "simple descr"},
		{"{'descr': '<f4', 'shape': (1,)}", "fortran_order"},
		{"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", "ascontiguousarray"},
		{"{'descr': '<f4', 'fortran_order': False}", "shape"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "shape"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1,", "shape"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "shape"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "shape"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': 3}", "shape"},
		{"{'descr' '<f4', 'fortran_order': False, 'shape': (1,)}", "simple descr"},
		{"{'descr': '', 'fortran_order': False, 'shape': (1,)}", "type '' have"},
		{"{'descr': '<', 'fortran_order': False, 'shape': (1,)}", "type '<' have"},
		{"{'descr': '<f', 'fortran_order': False, 'shape': (1,)}", "type '<f' have"},
		{"{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", "type '<f16' have"},
		{"{'descr': '?f4', 'fortran_order': False, 'shape': (1,)}", "type '?f4' have"},
		{"{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}", "type '<f3' have"},
		{"{'descr': '<M8[us]', 'fortran_order': False, 'shape': (1,)}", "type '<M8[us]' have"},
		{"{'descr': '<averylongnameofatype', 'fortran_order': False, 'shape': (1,)}",
			"type '<averylongnameofatyp' have"},
		{"", "simple descr"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_false(parse(bad[i].dictionary, SCALAR_F32, &a, &swapped, why));
		if (!strstr(why, bad[i].says)) fail_msg("%s says: %s", bad[i].dictionary, why);
	}
}

/* The head in front of the dictionary: of versions 2 and 3 it has four bytes for the length. */
static void test_heads(void **state)
{
	(void)state;
	static const char dictionary[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}";
	enum { LONG = (1 << 20) + 1, MOST = 12 + LONG };
	unsigned char *bytes = calloc(1, MOST);
	char why[256];
	size_t data, n = strlen(dictionary);
	bool swapped;
	array a;
	assert_non_null(bytes);
	for (unsigned version = 0; version <= 4; version++) {
		size_t head = version == 1 ? 10 : 12;
		memcpy(bytes, "\x93NUMPY", 6);
		memcpy(bytes + 6, (const unsigned char[]){(unsigned char)version, 0, (unsigned char)n, 0, 0, 0}, 6);
		memcpy(bytes + head, dictionary, n);
		bool known = version >= 1 && version <= 3;
		assert_int_equal(npy_parse(bytes, head + n, SCALAR_F32, &a, &data, &swapped, why, sizeof why), known);
		if (known)
			assert_true(data == head + n && a.rank == 1 && a.extent[0] == 3);
		else if (!strstr(why, "it is of the unknown version "))
			fail_msg("%s", why);
		for (size_t short_one = 0; known && short_one < head + n; short_one++) {
			assert_false(npy_parse(bytes, short_one, SCALAR_F32, &a, &data, &swapped, why, sizeof why));
			assert_string_equal(why, short_one < 10 ? "it is no .npy file" : "it is truncated");
		}
	}
	/* a header of 1 MiB, and a longer one */
	memcpy(bytes + 6, "\x02\x00\x00\x00\x10\x00", 6);
	memcpy(bytes + 12, dictionary, n);
	assert_true(npy_parse(bytes, MOST, SCALAR_F32, &a, &data, &swapped, why, sizeof why));
	assert_int_equal(data, 12 + (1 << 20));
	bytes[8] = 1;
	assert_false(npy_parse(bytes, MOST, SCALAR_F32, &a, &data, &swapped, why, sizeof why));
	assert_string_equal(why, "its header is longer than 1 MiB");
	free(bytes);
}

/* A read that a signal ends is made again, and short ones go on; a file that ends early is no array. */
static void test_reads(void **state)
{
	(void)state;
	unsigned char bytes[256];
	char why[256];
	array a;
	put(bytes, known(bytes));
	static const struct {
		int interrupted; /* each so often, from the first on */
		size_t most;     /* bytes of a call */
		int calls;       /* after which the file has ended; 0: it does not */
	} rows[] = {{0, 1, 0}, {2, 100, 0}, {3, 7, 0}, {0, 60, 2}, {0, 100, 1}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		reading.interrupted = rows[i].interrupted;
		reading.most = rows[i].most;
		reading.calls = rows[i].calls;
		reading.n = 0;
		bool good = npy_read(path, SCALAR_F32, &a, why, sizeof why);
		memset(&reading, 0, sizeof reading);
		assert_int_equal(good, !rows[i].calls || !wraps((void *)npy_read));
		if (good)
			assert_memory_equal(a.data, bytes + 128, 24);
		else
			assert_string_equal(why, "it shrank while it was read");
		array_free(&a);
	}
}

static void test_byte_order(void **state)
{
	(void)state;
	unsigned char bytes[256] = "\x93NUMPY\x01\x00\x3e\x00{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}";
	char why[256];
	array a;
	memcpy(bytes + 10 + 62, "\x40\x49\x0f\xdb", 4);
	put(bytes, 76);
	assert_true(npy_read(path, SCALAR_F32, &a, why, sizeof why));
	assert_true(fabs(array_value(&a, 0) - 3.14159274) < 1e-7);
	array_free(&a);
}

/* Each truncation and each flipped bit: read or refused with a sentence. */
static void test_hostile_files(void **state)
{
	(void)state;
	unsigned char bytes[256], copy[256];
	char why[256];
	array a;
	size_t n = known(bytes);
	for (size_t i = 0; i < n; i++) {
		put(bytes, i);
		why[0] = 0;
		assert_false(npy_read(path, SCALAR_F32, &a, why, sizeof why));
		assert_true(why[0]);
	}
	for (size_t i = 0; i < 128 * 8; i++) {
		size_t data;
		bool swapped;
		memcpy(copy, bytes, n);
		copy[i / 8] ^= (unsigned char)(1 << i % 8);
		why[0] = 0;
		if (!npy_parse(copy, n, SCALAR_F32, &a, &data, &swapped, why, sizeof why)) assert_true(why[0]);
	}
	assert_false(npy_read("/nowhere/x.npy", SCALAR_F32, &a, why, sizeof why));
	assert_string_equal(why, "No such file or directory");
	assert_false(npy_read("/tmp", SCALAR_F32, &a, why, sizeof why));
	assert_string_equal(why, "Is a directory");
}

static void test_writes_whole_files_or_none(void **state)
{
	(void)state;
	array a = {.type = SCALAR_F32, .rank = 1, .extent = {4}};
	char why[256];
	assert_true(array_allocate(&a));
	fill_array(&a, "ones", 0);
	assert_false(npy_write("/nowhere/x.npy", &a, why, sizeof why));
	assert_string_equal(why, "No such file or directory");
	assert_false(npy_write("/dev/full", &a, why, sizeof why));
	assert_string_equal(why, "No space left on device");
	array_free(&a);
}

/* Signals that the parent had ignored, as nohup does, are ignored while a file is written and after it. */
static void test_leaves_signals_alone(void **state)
{
	(void)state;
	array a = {.type = SCALAR_F32, .rank = 1, .extent = {4}};
	char why[256];
	assert_true(array_allocate(&a));
	fill_array(&a, "ones", 0);
	signal(SIGINT, SIG_IGN);
	assert_true(npy_write(path, &a, why, sizeof why));
	assert_true(signal(SIGINT, SIG_DFL) == SIG_IGN);
	assert_true(signal(SIGTERM, SIG_DFL) == SIG_DFL);
	array_free(&a);
}

static void test_scalars(void **state)
{
	(void)state;
	uint64_t bits;
	static const struct {
		const char *text;
		scalar type;
		uint64_t bits;
	} good[] = {{"3", SCALAR_I32, 3}, {"-1", SCALAR_I8, 0xff}, {"-128", SCALAR_I8, 0x80}, {"0x10", SCALAR_I64, 16},
		{"255", SCALAR_U8, 255}, {"18446744073709551615", SCALAR_U64, UINT64_MAX}, {"true", SCALAR_BOOL, 1},
		{"0", SCALAR_BOOL, 0}, {"1.5", SCALAR_F32, 0x3fc00000}, {"1.5", SCALAR_F16, 0x3e00},
		{"65519", SCALAR_F16, 0x7bff}, {"-inf", SCALAR_F16, 0xfc00}, {"1e-400", SCALAR_F64, 0},
		{"nan", SCALAR_F32, 0x7fc00000}, {"2", SCALAR_BF16, 0x4000}, {"-0.0", SCALAR_F64, UINT64_C(1) << 63},
		{"inf", SCALAR_F32, 0x7f800000}};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		const char *wrong = parse_scalar(good[i].text, good[i].type, &bits);
		if (wrong || bits != good[i].bits)
			fail_msg("%s: %s, %llx", good[i].text, wrong ? wrong : "", (unsigned long long)bits);
	}
	static const struct {
		const char *text;
		scalar type;
	} bad[] = {{"128", SCALAR_I8}, {"-1", SCALAR_U32}, {"256", SCALAR_U8}, {"1.5", SCALAR_I32}, {"", SCALAR_I32},
		{"x", SCALAR_F32}, {"1.5x", SCALAR_F32}, {"2", SCALAR_BOOL}, {" 3", SCALAR_I32},
		{"2147483648", SCALAR_I32}, {"99999999999999999999", SCALAR_I64}, {"99999999999999999999", SCALAR_U64},
		{"1x", SCALAR_U8}};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (!parse_scalar(bad[i].text, bad[i].type, &bits)) fail_msg("%s is taken", bad[i].text);
	/* numbers that would become infinities */
	static const struct {
		const char *text;
		scalar type;
	} large[] = {{"1e999", SCALAR_F64}, {"-1e999", SCALAR_F32}, {"1e39", SCALAR_F32}, {"65520", SCALAR_F16},
		{"-1e5", SCALAR_F16}, {"3.4e38", SCALAR_BF16}};
	for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
		const char *wrong = parse_scalar(large[i].text, large[i].type, &bits);
		if (!wrong || strcmp(wrong, "it does not fit the type") != 0)
			fail_msg("%s: %s", large[i].text, wrong ? wrong : "taken");
	}
	assert_string_equal(parse_scalar(" 3", SCALAR_I32, &bits), "it begins with a space");
	assert_string_equal(parse_scalar("", SCALAR_F32, &bits), "it is empty");
}

static void test_buffer_texts(void **state)
{
	(void)state;
	array a;
	char kind[16];
	uint64_t seed;
	assert_null(parse_buffer("f32[4096,1024]:randn:7", &a, kind, &seed));
	assert_true(a.type == SCALAR_F32 && a.rank == 2 && a.extent[0] == 4096 && a.extent[1] == 1024 && seed == 7);
	assert_string_equal(kind, "randn");
	assert_null(parse_buffer("bf16[3]", &a, kind, &seed));
	assert_int_equal(seed, 7); /* as it was */
	assert_string_equal(kind, "zeros");
	assert_null(parse_buffer("i8[]:poison", &a, kind, &seed));
	assert_int_equal(a.rank, 0);
	static const char *const bad[] = {"f32", "f33[4]", "f32[4", "f32[x]", "f32[-1]", "f32[4]randn", "f32[4]:normal",
		"f32[4]:randn:", "f32[4]:randn:x", "f32[4]:randn:1x", "f32[1,1,1,1,1,1,1,1,1]", "f32[4;5]", "3",
		"f32[99999999999999999999]", "averylongtypename[3]", "f32[4]:averylongkindoffill"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (!parse_buffer(bad[i], &a, kind, &seed)) fail_msg("%s is taken", bad[i]);
	a = (array){.type = SCALAR_F64, .rank = 3, .extent = {1ull << 32, 1ull << 32, 1}};
	assert_false(array_allocate(&a));
	a = (array){.type = SCALAR_F64, .rank = 1, .extent = {1ull << 61}};
	assert_false(array_allocate(&a));
	a = (array){.type = SCALAR_F64, .rank = 1, .extent = {1ull << 60}}; /* 2^63 bytes: no overflow, and too many */
	assert_false(array_allocate(&a));
}

static void test_fills(void **state)
{
	(void)state;
	array a = {.type = SCALAR_F32, .rank = 1, .extent = {100000}},
	      b = {.type = SCALAR_F32, .rank = 1, .extent = {10}};
	assert_true(array_allocate(&a) && array_allocate(&b));
	fill_array(&a, "randn", 3);
	fill_array(&b, "randn", 3);
	assert_memory_equal(a.data, b.data, b.bytes); /* a larger array begins as a smaller one */
	double sum = 0, squares = 0;
	for (size_t i = 0; i < a.count; i++)
		sum += array_value(&a, i), squares += array_value(&a, i) * array_value(&a, i);
	assert_true(fabs(sum / 1e5) < 0.02 && fabs(squares / 1e5 - 1) < 0.02);
	fill_array(&b, "randn", 4);
	assert_true(memcmp(a.data, b.data, b.bytes) != 0);
	fill_array(&a, "rand", 3);
	sum = 0;
	for (size_t i = 0; i < a.count; i++) {
		double v = array_value(&a, i);
		assert_true(v >= 0 && v <= 1);
		sum += v;
	}
	assert_true(fabs(sum / 1e5 - 0.5) < 0.01);
	fill_array(&a, "poison", 0);
	assert_true(isnan(array_value(&a, 7)));
	fill_array(&a, "arange", 0);
	assert_true(array_value(&a, 99) == 99);
	array_free(&a);
	array_free(&b);
	for (int t = 0; t < SCALAR_COUNT; t++) {
		array c = {.type = (scalar)t, .rank = 1, .extent = {1000}};
		assert_true(array_allocate(&c));
		fill_array(&c, "poison", 0);
		if (scalar_is_float((scalar)t)) assert_true(isnan(array_value(&c, 3)));
		fill_array(&c, "rand", 1);
		for (size_t i = 0; i < c.count; i++) {
			double v = array_value(&c, i);
			assert_true(v >= 0 && v < (scalar_is_float((scalar)t) ? 1.01 : t == SCALAR_BOOL ? 2 : 128));
		}
		array_free(&c);
	}
}

static check_result check_two(scalar t, double got, double want, double rtol, double atol)
{
	array a = {.type = t, .rank = 1, .extent = {2}}, b = a;
	assert_true(array_allocate(&a) && array_allocate(&b));
	array_set(&a, 0, scalar_from_double(t, 4));
	array_set(&b, 0, scalar_from_double(t, 4));
	array_set(&a, 1, scalar_from_double(t, got));
	array_set(&b, 1, scalar_from_double(t, want));
	check_result r = check_arrays(&a, &b, rtol, atol);
	array_free(&a);
	array_free(&b);
	return r;
}

static void test_comparisons(void **state)
{
	(void)state;
	assert_true(check_two(SCALAR_F32, 1, 1, -1, -1).good);
	assert_true(check_two(SCALAR_F32, 1 + 3e-5, 1, -1, -1).good); /* 1e-5 of 4 is allowed */
	check_result r = check_two(SCALAR_F32, 1 + 5e-5, 1, -1, -1);
	assert_true(!r.good && r.at == 1 && r.wrong == 1 && r.largest == 4);
	assert_true(check_two(SCALAR_F32, 1.5, 1, -1, 0.6).good);
	assert_true(check_two(SCALAR_F32, 1.5, 1, 0.2, -1).good);
	assert_false(check_two(SCALAR_F32, 1.5, 1, 0.1, -1).good);
	assert_true(check_two(SCALAR_F32, NAN, NAN, -1, -1).good);
	assert_false(check_two(SCALAR_F32, NAN, 1, -1, -1).good);
	assert_false(check_two(SCALAR_F32, 1, NAN, -1, -1).good);
	assert_true(check_two(SCALAR_F32, INFINITY, INFINITY, -1, -1).good);
	assert_false(check_two(SCALAR_F32, INFINITY, -INFINITY, -1, -1).good);
	assert_false(check_two(SCALAR_F32, INFINITY, 1e38, -1, -1).good);
	assert_false(check_two(SCALAR_I32, 5, 6, -1, -1).good);
	assert_true(check_two(SCALAR_I32, 5, 6, -1, 1).good);
	assert_true(check_two(SCALAR_F16, 4.007, 4, -1, -1).good);
	assert_false(check_two(SCALAR_F32, 1e38, INFINITY, -1, -1).good);
	assert_false(check_two(SCALAR_F32, 1, -INFINITY, -1, -1).good);
	r = check_two(SCALAR_I32, -3, 6, -1, -1);
	assert_true(!r.good && r.worst == 9 && r.tolerance == 0);
	/* of a reference of 4, what each type allows by itself: a step below, and one beyond */
	static const struct {
		scalar type;
		double near, far;
	} steps[] = {{SCALAR_F64, 4 + 3.9e-12, 4 + 4.1e-12}, {SCALAR_F32, 4.00003, 4.00005},
		{SCALAR_F16, 4.004, 4.0119}, {SCALAR_BF16, 4.0625, 4.09375}, {SCALAR_F8E4M3, 4.5, 5},
		{SCALAR_F8E5M2, 5, 6}};
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		assert_true(check_two(steps[i].type, steps[i].near, 4, -1, -1).good);
		assert_false(check_two(steps[i].type, steps[i].far, 4, -1, -1).good);
	}
	array a = {.type = SCALAR_U64, .rank = 1, .extent = {1}}, b = a;
	assert_true(array_allocate(&a) && array_allocate(&b));
	array_set(&a, 0, UINT64_MAX);
	array_set(&b, 0, UINT64_MAX - 1); /* one double for both */
	assert_false(check_arrays(&a, &b, -1, -1).good);
	array_free(&a);
	array_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(test_reads_numpys_file),
		T(test_all_types_and_ranks),
		T(test_headers),
		T(test_heads),
		T(test_reads),
		T(test_byte_order),
		T(test_hostile_files),
		T(test_writes_whole_files_or_none),
		T(test_leaves_signals_alone),
		T(test_scalars),
		T(test_buffer_texts),
		T(test_fills),
		T(test_comparisons),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
