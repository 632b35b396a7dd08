/* Accesses outside of buffers on the cpu device: what each mode finds and says, that the process and its own signal
 * handlers live on, and the parts below: regions of memory, traps, line tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/device/cpu.h"
#include "runtime/internal.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static const compiler_api linked = {blkc_compile, blkc_result_free, blkc_version};
static const device_seams seams = {.compiler = &linked};

#define OK(call) check_ok((call), #call, __LINE__)
static void check_ok(blk_status s, const char *what, int line)
{
	if (s != BLK_OK) fail_msg("line %d: %s: %s (%s)", line, what, blk_error(), blk_status_text(s));
}

/* The launch failed for what the kernel did, and says each of the texts. */
#define FAULTS(call, ...) check_fault((call), __LINE__, (const char *const[]){__VA_ARGS__, NULL})
static void check_fault(blk_status s, int line, const char *const *texts)
{
	if (s != BLK_ERROR_KERNEL) fail_msg("line %d: status %d: %s", line, s, s ? blk_error() : "");
	for (; *texts; texts++)
		if (!strstr(blk_error(), *texts)) fail_msg("line %d: no '%s' in: %s", line, *texts, blk_error());
}

static int setup(void **state)
{
	(void)state;
	unsetenv("BLK_CPU");
	unsetenv("BLK_CPU_THREADS");
	setenv("BLK_CACHE", "off", 1);
	return 0;
}

static blk_device *open_device(const char *name)
{
	blk_device *d = NULL;
	OK(device_open_with(name, &seams, &d));
	return d;
}

static blk_kernel *make(blk_device *d, const char *source)
{
	blk_module *m;
	blk_kernel *k;
	OK(blk_module_source(d, "k.blk", source, NULL, 0, &m));
	OK(blk_kernel_find(m, NULL, &k));
	return k;
}

static blk_buffer *zeros(blk_device *d, size_t bytes)
{
	blk_buffer *b;
	OK(blk_buffer_create(d, bytes, &b));
	OK(blk_buffer_fill(b, 0, 0, bytes));
	return b;
}

static const char *const modes[] = {"cpu:guarded", "cpu:checked"};

/* Without its masks; line 5 reads, line 6 writes. */
static const char twice[] = "kernel twice(y: *f32, x: *const f32, n: i32, const BLOCK: i32 = 1024)\n"
			    "    grid(cdiv(n, BLOCK))\n"
			    "{\n"
			    "    let i = program_id(0) * BLOCK + arange(0, BLOCK);\n"
			    "    let v = load(x + i);\n"
			    "    store(y + i, 2.0 * v);\n"
			    "}\n";
static const char poke[] = "kernel poke(y: *f32, x: *const f32, k: i64) grid(1)\n"
			   "{\n"
			   "    store(y + k, load(x));\n"
			   "}\n";

/* ---- what is found, and what is said of it ---- */

static void missing_mask(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 4; threads += 3) {
		setenv("BLK_CPU_THREADS", threads == 1 ? "1" : "4", 1);
		blk_device *d = open_device("cpu:checked");
		blk_kernel *k = make(d, twice);
		blk_buffer *x = zeros(d, 100000 * 4), *y = zeros(d, 100352 * 4), *z = zeros(d, 100000 * 4);
		FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i32(100000))),
			"k.blk:5: 4 bytes are read outside x, which has 400000 bytes: at offset 400000\n",
			"in kernel twice, program (97, 0, 0)\n", "hint: compare the mask with the number of elements");
		FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(z), blk_buf(y), blk_i32(100000))),
			"k.blk:6: 4 bytes are written outside y, which has 400000 bytes: at offset 400000\n",
			"program (97, 0, 0)");
		OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(y), blk_i32(100352))));
		blk_device_close(d);
		d = open_device("cpu:guarded");
		k = make(d, twice);
		x = zeros(d, 100000 * 4), y = zeros(d, 100352 * 4), z = zeros(d, 100000 * 4);
		/* 400128 is the page's end where pages are of 4096 bytes: 400000 rounded up to 256 */
		FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i32(100000))),
			"k.blk:5: memory is read outside x, which has 400000 bytes: at offset 400128\n",
			"in kernel twice, program (97, 0, 0)\n", "BLK_CPU=checked finds the first element");
		FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(z), blk_buf(y), blk_i32(100000))),
			"k.blk:6: memory is written outside y, which has 400000 bytes: at offset 400128\n");
		OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(y), blk_i32(100352))));
		OK(blk_device_sync(d));
		blk_device_close(d);
	}
}

static void everywhere_around(void **state)
{
	(void)state;
	blk_device *d = open_device("cpu:checked");
	blk_kernel *k = make(d, poke);
	blk_buffer *x = zeros(d, 4), *y = zeros(d, 400);
	static const long far[] = {-1, 100, 101, -100, 1000, -1000000, 1000000, 100000000, 1000000000000000000};
	for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
		char text[100];
		snprintf(text, sizeof text,
			"k.blk:3: 4 bytes are written outside y, which has 400 bytes: at offset %ld\n", 4 * far[i]);
		FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i64(far[i]))), text);
	}
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i64(0))));
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i64(99))));
	blk_device_close(d);
	d = open_device("cpu:guarded");
	k = make(d, poke);
	x = zeros(d, 4), y = zeros(d, 400);
	/* In the rest of the pages: seen afterwards, by the pattern there. */
	static const long near[] = {-1, 100, 127, -800};
	for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
		char text[100];
		snprintf(text, sizeof text, "memory was written outside y, which has 400 bytes: at offset %ld\n",
			4 * near[i]);
		FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i64(near[i]))), text,
			"by kernel poke, or by the host before it", "BLK_CPU=checked names the program and the line");
		OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i64(0)))); /* said once */
	}
	/* In the guards. */
	static const long faults[] = {128, 4096, -1000, -1000000, 1000000};
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
		char text[100];
		snprintf(text, sizeof text,
			"k.blk:3: memory is written outside y, which has 400 bytes: at offset %ld\n", 4 * faults[i]);
		FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i64(faults[i]))), text);
	}
	/* Where nothing of anybody's is: below all mappings, and no address at all. */
	int64_t low = (int64_t)(4096 - (uintptr_t)blk_buffer_pointer(y)) / 4;
	FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i64(low))),
		"k.blk:3: memory is written outside all buffers: at offset -", " of ", "and is the nearest");
	FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i64(INT64_C(1) << 60))),
		"k.blk:3: memory is touched at an address that none can have", "in kernel poke, program (0, 0, 0)");
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i64(99))));
	blk_device_close(d);
}

/* A copy of what lies around one buffer is seen around another. */
static void copied_pattern(void **state)
{
	(void)state;
	blk_device *d = open_device("cpu:guarded");
	blk_kernel *k = make(d, "kernel copy(y: *u8, x: *const u8) grid(1)\n"
				"{ let i = arange(0, 256); store(y + i, load(x + i)); }\n");
	blk_buffer *x = zeros(d, 100), *y = zeros(d, 100), *z = zeros(d, 256);
	FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x))), "memory was written outside y");
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(z), blk_buf(z))));
	blk_device_close(d);
}

/* One access of each kind and width, an element behind the end and one that reaches over it. */
static void kinds_of_access(void **state)
{
	(void)state;
	static const struct {
		const char *source, *says;
	} cases[] = {
		{"kernel k(x: *i8, p: *i64) grid(1) {\n store(x + arange(0, 128), 1); }", "k.blk:2: 1 byte is written"},
		{"kernel k(x: *u8, p: *i64) grid(1) {\n store(x, load(x + 100)); }", "k.blk:2: 1 byte is read"},
		{"kernel k(x: *i32, p: *i64) grid(1) {\n atomic_add(x + arange(0, 32), 1); }",
			"k.blk:2: 4 bytes are updated"},
		{"kernel k(x: *i32, p: *i64) grid(1) {\n let o = atomic_cas(x + 25, 0, 1); store(p, o.to(i64)); }",
			"k.blk:2: 4 bytes are updated"},
		{"kernel k(x: *f32, p: *i64) grid(1) {\n atomic_max(x + 25, 1.0); }", "k.blk:2: 4 bytes are updated"},
		{"kernel k(x: *i32, p: *i64) grid(1) {\n let a = x.to(i64) + 100; store(a.to(*i32), 7); }",
			"k.blk:2: 4 bytes are written"},
		{"kernel k(x: *i32, p: *i64) grid(1) {\n var q = x;\n for i in range(0, 5) { store(q, i); q += 10; } }",
			"k.blk:3: 4 bytes are written outside x, which has 100 bytes: at offset 120"},
		{"kernel k(x: *i32, p: *i64) grid(1) {\n var q = x + arange(0, 8);\n for i in range(0, 5) { store(q, "
		 "i); q += 8; } }",
			"k.blk:3: 4 bytes are written outside x, which has 100 bytes: at offset 100"},
		{"kernel k(x: *i32, p: *i64) grid(1) {\n var go = true;\n while go { go = load(x + 25) == 0; store(p, "
		 "1); } }",
			"k.blk:3: 4 bytes are read outside x, which has 100 bytes: at offset 100"},
		{"kernel k(x: *i32, p: *i64) grid(1) {\n let v = load(x + arange(0, 32));\n store(p, sum(v, axis = "
		 "0).to(i64)); }",
			"k.blk:2: 4 bytes are read outside x, which has 100 bytes: at offset 100"},
		{"kernel k(x: *i32, p: *i64) grid(1) {\n let v = load(x + arange(0, 32) - 8);\n store(p, max(v, axis = "
		 "0).to(i64)); }",
			"k.blk:2: 4 bytes are read outside x, which has 100 bytes: at offset -32"},
		{"kernel k(x: *i32, p: *i64) grid(1) {\n if load(p) == 0 {\n  store(x + 25, 1);\n } }",
			"k.blk:3: 4 bytes are written outside x"},
	};
	blk_device *d = open_device("cpu:checked");
	blk_buffer *x = zeros(d, 100), *p = zeros(d, 8);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		blk_kernel *k = make(d, cases[i].source);
		FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(x), blk_buf(p))), cases[i].says,
			" outside x, which has 100 bytes: at offset ");
		OK(blk_buffer_fill(x, 0, 0, 100));
		OK(blk_buffer_fill(p, 0, 0, 8));
	}
	blk_device_close(d);
}

/* One of two ways, often: the parameter is still known, and soon. */
static void chosen_pointers(void **state)
{
	(void)state;
	blk_device *d = open_device("cpu:checked");
	blk_kernel *k = make(d, "kernel k(o: *i32, a: *const i32) grid(1) {\n"
				"    let i = arange(0, 64);\n    var q = a + i;\n"
				"    for r in static_range(0, 60) { q = where(load(q) < r, q + 1, q); }\n"
				"    store(o + i, load(q));\n}");
	blk_buffer *o = zeros(d, 256), *a = zeros(d, 492), *b = zeros(d, 488);
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(o), blk_buf(a)))); /* 59 rounds move on: to a[122] */
	FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(o), blk_buf(b))), "k.blk:5: 4 bytes are read outside a",
		"at offset 488");
	blk_device_close(d);
	d = open_device("cpu:checked");
	k = make(d, "kernel k(o: *i32, a: *const i32, n: i32) grid(1) {\n    var q = a;\n"
		    "    for r in range(0, n) { if r % 2 == 0 { q = q + 1; } else { q = where(r > 9, q, q + 2); } }\n"
		    "    store(o, load(q));\n}");
	o = zeros(d, 4), a = zeros(d, 8);
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(o), blk_buf(a), blk_i32(1))));
	FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(o), blk_buf(a), blk_i32(4))),
		"k.blk:4: 4 bytes are read outside a, which has 8 bytes: at offset 24");
	blk_device_close(d);
}

/* Beyond all guards an address is told by the buffer that is nearest, on either side, and no index is called
 * negative. */
static void far_from_all(void **state)
{
	(void)state;
	enum { MIB = 1 << 20, SIZE = 64 * MIB };
	blk_device *d = open_device("cpu:guarded");
	blk_kernel *k = make(d, poke);
	blk_buffer *buffers[3], *low, *high;
	for (int i = 0; i < 3; i++) OK(blk_buffer_create(d, SIZE, &buffers[i]));
	char *hole = blk_buffer_pointer(buffers[1]);
	low = blk_buffer_pointer(buffers[0]) < blk_buffer_pointer(buffers[2]) ? buffers[0] : buffers[2];
	high = low == buffers[0] ? buffers[2] : buffers[0];
	char *below = blk_buffer_pointer(low), *above = blk_buffer_pointer(high);
	bool between = below < hole && hole < above; /* else the system chose other places */
	blk_buffer_free(buffers[1]);
	for (int i = 0; between && i < 4; i++) {
		blk_buffer *y = i % 2 ? high : low, *x = i % 2 ? low : high, *nearest = i < 2 ? high : low;
		char *address = i < 2 ? above - 8 * MIB : below + SIZE + 8 * MIB, text[200];
		snprintf(text, sizeof text,
			"k.blk:3: memory is written outside all buffers: at offset %ld of %s, which has %d bytes and "
			"is the nearest\n",
			(long)(address - (char *)blk_buffer_pointer(nearest)), nearest == y ? "y" : "x", SIZE);
		FAULTS(blk_launch(k, NULL, NULL,
			       BLK_ARGS(
				       blk_buf(y), blk_buf(x), blk_i64((address - (char *)blk_buffer_pointer(y)) / 4))),
			text, "hint: compare the mask with the number of elements");
	}
	blk_device_close(d);
	if (!between) skip();
}

/* Two parameters with one buffer: what was written is told by the one that is written, what was read by the first. */
static void shared_buffer(void **state)
{
	(void)state;
	static const char peek[] = "kernel peek(x: *const f32, y: *f32, i: i64, k: i64) grid(1)\n"
				   "{\n"
				   "    store(y + k, load(x + i));\n"
				   "}\n";
	blk_device *d = open_device("cpu:guarded");
	blk_kernel *k = make(d, peek);
	blk_buffer *b = zeros(d, 400);
	FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_buf(b), blk_i64(100000), blk_i64(0))),
		"k.blk:3: memory is read outside x, which has 400 bytes: at offset 400000\n");
	FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_buf(b), blk_i64(0), blk_i64(100000))),
		"k.blk:3: memory is written outside y, which has 400 bytes: at offset 400000\n");
	blk_device_close(d);
}

/* A mask is spoken of where one would have helped. */
static void hints(void **state)
{
	(void)state;
	static const struct {
		const char *access;
		bool compare, negative;
	} cases[] = {
		{"store(x + arange(0, 32), 1)", true, false},
		{"store(x - arange(0, 32), 1)", false, true},
		{"store(x + 25, 1)", false, false},
		{"store(x - 1, 1)", false, false},
		{"atomic_add(x + 25, 1)", false, false},
	};
	blk_device *d = open_device("cpu:checked");
	blk_buffer *x = zeros(d, 100);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[200];
		snprintf(text, sizeof text, "kernel k(x: *i32) grid(1) {\n %s;\n}", cases[i].access);
		FAULTS(blk_launch(make(d, text), NULL, NULL, BLK_ARGS(blk_buf(x))), "k.blk:2: 4 bytes are ");
		assert_int_equal(strstr(blk_error(), "compare the mask") != NULL, cases[i].compare);
		assert_int_equal(strstr(blk_error(), "the index is negative") != NULL, cases[i].negative);
		assert_int_equal(strstr(blk_error(), "hint:") != NULL, cases[i].compare || cases[i].negative);
	}
	blk_device_close(d);
}

/* Sixteen bytes from the end there is no room for an element of 8 at 12. */
static void over_the_end(void **state)
{
	(void)state;
	blk_device *d = open_device("cpu:checked");
	blk_kernel *k = make(d, "kernel k(x: *u8) grid(1) {\n let a = x.to(i64) + 12; store(a.to(*i64), 7); }");
	blk_buffer *x = zeros(d, 16), *y = zeros(d, 20), *none;
	FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(x))),
		"k.blk:2: 8 bytes are written outside x, which has 16 bytes: at offset 12");
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y))));
	OK(blk_buffer_create(d, 0, &none));
	assert_string_equal(blk_note(), ""); /* it has its guards */
	blk_kernel *one = make(d, "kernel k(x: *u8) grid(1) {\n store(x, 1); }");
	FAULTS(blk_launch(one, NULL, NULL, BLK_ARGS(blk_buf(none))),
		"k.blk:2: 1 byte is written outside x, which has 0 bytes: at offset 0");
	blk_device_close(d);
}

/* What a false mask covers is no access; a vector of it alone does not go near a guard either. */
static void masked(void **state)
{
	(void)state;
	for (size_t m = 0; m < 2; m++) {
		blk_device *d = open_device(modes[m]);
		blk_kernel *k = make(d, "kernel k(y: *f32, x: *const f32, n: i32) grid(1) {\n"
					" let i = arange(0, 4096);\n"
					" store(y + i, load(x + i, mask = i < n, other = 1.0) + 1.0, mask = i < n); }");
		blk_buffer *x = zeros(d, 781 * 4), *y = zeros(d, 781 * 4);
		OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i32(781))));
		float back[781];
		OK(blk_buffer_read(y, 0, back, sizeof back));
		for (int i = 0; i < 781; i++) assert_true(back[i] == 1);
		OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i32(0))));
		OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i32(-1))));
		FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i32(4096))), "outside x");
		blk_device_close(d);
	}
}

/* Pointers that are no buffer's beginning, memory of the caller's, null. */
static void pointers(void **state)
{
	(void)state;
	float own[8] = {0};
	for (size_t m = 0; m < 2; m++) {
		blk_device *d = open_device(modes[m]);
		blk_kernel *k = make(d, poke);
		blk_buffer *x = zeros(d, 4), *y = zeros(d, 400);
		char *p = blk_buffer_pointer(y);
		OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_ptr(p + 396), blk_buf(x), blk_i64(-99))));
		FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_ptr(p + 396), blk_buf(x), blk_i64(1))), "outside y",
			"400");
		own[5] = 1;
		OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_ptr(own), blk_buf(x), blk_i64(5))));
		assert_true(own[5] == 0);
		FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_ptr(NULL), blk_buf(x), blk_i64(3))),
			"k.blk:3: ", "written", "through y, which is null");
		FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_ptr(NULL), blk_i64(3))), "k.blk:3: ", "read",
			"through x, which is null");
		blk_device_close(d);
	}
	/* An address out of a table: of a buffer, of none, and of none where the caller's memory takes part. */
	blk_device *d = open_device("cpu:checked");
	blk_kernel *k = make(d, "kernel k(t: *const i64, y: *f32, v: f32) grid(1) {\n"
				" let p = load(t).to(*f32);\n store(p + arange(0, 16), v);\n store(y, 0.0); }");
	blk_buffer *t = zeros(d, 8), *a = zeros(d, 64), *b = zeros(d, 60), *y = zeros(d, 4);
	float room[16];
	int64_t address = (int64_t)(uintptr_t)blk_buffer_pointer(a);
	OK(blk_buffer_write(t, 0, &address, 8));
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(t), blk_buf(y), blk_f32(1))));
	address = (int64_t)(uintptr_t)blk_buffer_pointer(b);
	OK(blk_buffer_write(t, 0, &address, 8));
	FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(t), blk_buf(y), blk_f32(1))),
		"k.blk:3: 4 bytes are written outside a buffer that is no argument, which has 60 bytes: at offset 60");
	address = (int64_t)(uintptr_t)room;
	OK(blk_buffer_write(t, 0, &address, 8));
	FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(t), blk_buf(y), blk_f32(1))),
		"k.blk:3: 4 bytes are written outside all buffers");
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(t), blk_ptr(own), blk_f32(1))));
	assert_true(room[15] == 1);
	blk_device_close(d);
}

static void asserts_and_prints(void **state)
{
	(void)state;
	static const char *const all[] = {"cpu:fast", "cpu:guarded", "cpu:checked"};
	for (size_t m = 0; m < 3; m++) {
		blk_device *d = open_device(all[m]);
		blk_kernel *k = make(d, "kernel k(n: i32) grid(8) {\n device_assert(n < 3, \"small\"); }");
		OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_i32(2))));
		OK(blk_device_sync(d));
		OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_i32(3))));
		assert_int_equal(blk_device_sync(d), BLK_ERROR_ASSERT);
		assert_non_null(strstr(blk_error(), "k.blk:2: assertion failed in program"));
		blk_device_close(d);
	}
}

/* ---- the modes ---- */

static void names_of_modes(void **state)
{
	(void)state;
	blk_device *d = NULL;
	static const char *const wrong[] = {"cpu:", "cpu:none", "cpu:fast ", "cpu:FAST"};
	for (size_t i = 1; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_int_equal(device_open_with(wrong[i], &seams, &d), BLK_ERROR_ARGUMENT);
		assert_non_null(strstr(blk_error(), "the cpu device is fast, guarded or checked"));
	}
	setenv("BLK_CPU", "careful", 1);
	assert_int_equal(device_open_with("cpu", &seams, &d), BLK_ERROR_ARGUMENT);
	assert_string_equal(blk_error(), "BLK_CPU=careful: the cpu device is fast, guarded or checked");
	d = open_device("cpu:fast"); /* which says it itself */
	assert_string_equal(host_mode(d), "fast");
	blk_device_close(d);
	static const char *const modes3[] = {"fast", "guarded", "checked", ""};
	for (size_t i = 0; i < 4; i++) {
		setenv("BLK_CPU", modes3[i], 1);
		d = open_device("cpu");
		assert_string_equal(host_mode(d), *modes3[i] ? modes3[i] : "guarded");
		blk_device_close(d);
	}
	unsetenv("BLK_CPU");
	d = open_device("cpu");
	assert_string_equal(host_mode(d), "guarded");
	blk_device_close(d);
}

/* Of two starts with one cache the second finds each mode's own code. */
static void from_the_cache(void **state)
{
	(void)state;
	char folder[] = "/tmp/blk-test-XXXXXX", command[64];
	assert_non_null(mkdtemp(folder));
	unsetenv("BLK_CACHE");
	char *before = getenv("BLK_CACHE_DIR") ? strdup(getenv("BLK_CACHE_DIR")) : NULL;
	setenv("BLK_CACHE_DIR", folder, 1);
	for (int start = 0; start < 2; start++)
		for (size_t m = 0; m < 2; m++) {
			blk_device *d;
			blk_info info;
			d = open_device(modes[m]);
			d->compiler.identity = 1; /* as that of a library's file */
			blk_kernel *k = make(d, twice);
			blk_buffer *x = zeros(d, 4), *y = zeros(d, 4096);
			blk_arg args[] = {blk_buf(y), blk_buf(x), blk_i32(1024)};
			OK(blk_kernel_info(k, args, 3, &info));
			assert_int_equal(info.from_cache, start);
			FAULTS(blk_launch(k, NULL, NULL, args, 3),
				m ? "k.blk:5: 4 bytes are read outside x, which has 4 bytes: at offset 4\n"
				  : "k.blk:5: memory is read outside x, which has 4 bytes: at offset 256\n");
			blk_device_close(d);
		}
	snprintf(command, sizeof command, "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	if (before)
		setenv("BLK_CACHE_DIR", before, 1);
	else
		unsetenv("BLK_CACHE_DIR");
	free(before);
}

/* ---- the process ---- */

static void handler_of_host(int number, siginfo_t *info, void *context);
static bool is_hosts(void)
{
	struct sigaction now;
	assert_int_equal(sigaction(SIGSEGV, NULL, &now), 0);
	return now.sa_sigaction == handler_of_host;
}

static _Thread_local sigjmp_buf out_of_it;
static _Thread_local volatile void *touched;
static _Thread_local volatile bool blocked;
static void handler_of_host(int number, siginfo_t *info, void *context)
{
	(void)context;
	sigset_t now;
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	blocked = sigismember(&now, number) && sigismember(&now, SIGUSR1);
	touched = info->si_addr;
	siglongjmp(out_of_it, 1);
}

static void install_hosts(struct sigaction *before)
{
	struct sigaction a = {.sa_flags = SA_SIGINFO};
	a.sa_sigaction = handler_of_host;
	sigemptyset(&a.sa_mask);
	sigaddset(&a.sa_mask, SIGUSR1);
	assert_int_equal(sigaction(SIGSEGV, &a, before), 0);
}

/* Touches what is not there; the host's handler sees it. */
static bool host_faults(void)
{
	char *p = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	touched = NULL;
	if (!sigsetjmp(out_of_it, 1)) *(volatile char *)(p + 8) = 1;
	bool seen = touched == p + 8 && blocked;
	munmap(p, 4096);
	return seen;
}

typedef struct other {
	blk_device *device;
	int32_t *flag;
	bool running, seen;
	blk_status status;
} other;

/* While a kernel waits for the flag. */
static void *fault_elsewhere(void *argument)
{
	other *o = argument;
	while (!__atomic_load_n(&o->flag[1], __ATOMIC_ACQUIRE)) usleep(1000);
	o->running = !is_hosts();
	o->seen = host_faults();
	__atomic_store_n(&o->flag[0], 1, __ATOMIC_RELEASE);
	return NULL;
}

static const char waiting[] = "kernel k(flag: *i32, y: *f32, k: i64) grid(1) {\n"
			      " store(flag + 1, 1);\n"
			      " var go = true;\n"
			      " while go { go = load(flag, volatile = true) == 0; }\n"
			      " store(y + k, 0.0); }";

static void faults_of_the_host(void **state)
{
	(void)state;
	struct sigaction before;
	install_hosts(&before);
	for (size_t m = 0; m < 2; m++) {
		blk_device *d = open_device(modes[m]);
		blk_kernel *k = make(d, waiting);
		blk_buffer *flag = zeros(d, 8), *y = zeros(d, 4);
		other o = {.flag = blk_buffer_pointer(flag)};
		pthread_t thread;
		assert_true(host_faults() && is_hosts());
		assert_int_equal(pthread_create(&thread, NULL, fault_elsewhere, &o), 0);
		FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(flag), blk_buf(y), blk_i64(4096))), "k.blk:5: ");
		pthread_join(thread, NULL);
		assert_true(o.running); /* ours was armed */
		assert_true(o.seen);    /* and passed the fault on */
		assert_true(host_faults() && is_hosts());
		blk_device_close(d);
	}
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

/* The exit status of what a child does, as waitpid() gives it. */
static int in_child(void (*what)(void))
{
	int status;
	fflush(NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGSEGV, SIG_DFL); /* not the test library's, nor a sanitizer's */
		signal(SIGBUS, SIG_DFL);
		what();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void *die_elsewhere(void *argument)
{
	int32_t *flag = argument;
	while (!__atomic_load_n(&flag[1], __ATOMIC_ACQUIRE)) usleep(1000);
	volatile uintptr_t nowhere = 8;
	*(volatile char *)nowhere = 1;
	return NULL;
}

static void foreign_death(void)
{
	blk_device *d = open_device("cpu:guarded");
	blk_kernel *k = make(d, waiting);
	blk_buffer *flag = zeros(d, 8), *y = zeros(d, 4);
	pthread_t thread;
	pthread_create(&thread, NULL, die_elsewhere, blk_buffer_pointer(flag));
	blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(flag), blk_buf(y), blk_i64(0)));
}

static void *kill_elsewhere(void *argument)
{
	int32_t *flag = argument;
	while (!__atomic_load_n(&flag[1], __ATOMIC_ACQUIRE)) usleep(1000);
	kill(getpid(), SIGSEGV);
	sleep(10);
	return NULL;
}

static void killed(void)
{
	blk_device *d = open_device("cpu:guarded");
	blk_kernel *k = make(d, waiting);
	blk_buffer *flag = zeros(d, 8), *y = zeros(d, 4);
	pthread_t thread;
	pthread_create(&thread, NULL, kill_elsewhere, blk_buffer_pointer(flag));
	blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(flag), blk_buf(y), blk_i64(0)));
}

static void fast_fault(void)
{
	blk_device *d = open_device("cpu:fast");
	blk_kernel *k = make(d, poke);
	blk_buffer *x = zeros(d, 4), *y = zeros(d, 4);
	blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i64(INT64_C(1) << 60)));
}

/* A fault that the host ignores is no signal that somebody sent: the system ends the process. */
static void ignored_fault(void)
{
	volatile char *page = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	signal(SIGSEGV, SIG_IGN);
	alarm(20);
	if (page == MAP_FAILED || !cpu_traps_arm()) _exit(1);
	kill(getpid(), SIGSEGV);
	*page = 1;
	_exit(2);
}

/* What is not a kernel's fault ends the process as it did. */
static void deaths(void **state)
{
	(void)state;
	int status = in_child(foreign_death);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	status = in_child(killed);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	status = in_child(fast_fault);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	status = in_child(ignored_fault);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* Launches of several devices run at once: the last one that ends takes the handler away. */
static void nested_launches(void **state)
{
	(void)state;
	struct sigaction before, now;
	sigaction(SIGSEGV, NULL, &before);
	static const bool armed[] = {true, true, false};
	for (int i = 0; i < 3; i++) {
		if (i == 0) assert_true(cpu_traps_arm() && cpu_traps_arm());
		if (i) cpu_traps_disarm();
		sigaction(SIGSEGV, NULL, &now);
		assert_int_equal(now.sa_sigaction != before.sa_sigaction, armed[i]);
	}
	cpu_traps_disarm(); /* one too many: nothing is there */
	sigaction(SIGSEGV, NULL, &now);
	assert_ptr_equal(now.sa_sigaction, before.sa_sigaction);
}

/* ---- handlers that follow ours ---- */

static char *guarded_page;
static struct sigaction predecessor;
static _Atomic int first_calls, second_calls;

/* As a collector's write barrier: the page may be written from then on. */
static void first_handler(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info, (void)context;
	first_calls++;
	mprotect(guarded_page, 4096, PROT_READ | PROT_WRITE);
}

/* Of a library that is loaded later: not its fault, so its predecessor's. */
static void second_handler(int number, siginfo_t *info, void *context)
{
	second_calls++;
	predecessor.sa_sigaction(number, info, context);
}

static void *install_second(void *argument)
{
	int32_t *flag = argument;
	while (!__atomic_load_n(&flag[1], __ATOMIC_ACQUIRE)) usleep(1000);
	struct sigaction a = {.sa_flags = SA_SIGINFO};
	a.sa_sigaction = second_handler;
	sigaction(SIGSEGV, &a, &predecessor); /* ours */
	__atomic_store_n(&flag[0], 1, __ATOMIC_RELEASE);
	return NULL;
}

static bool page_faults(void)
{
	int first = first_calls, second = second_calls;
	mprotect(guarded_page, 4096, PROT_READ);
	*(volatile char *)guarded_page = 1;
	return first_calls == first + 1 && second_calls == second + 1;
}

static void *fault_in_page(void *argument)
{
	int32_t *flag = argument;
	while (!__atomic_load_n(&flag[1], __ATOMIC_ACQUIRE)) usleep(1000);
	bool good = page_faults();
	__atomic_store_n(&flag[0], 1, __ATOMIC_RELEASE);
	return good ? argument : NULL;
}

static void launch_beside(blk_device *d, blk_kernel *k, void *(*what)(void *), bool *good)
{
	blk_buffer *flag = zeros(d, 8), *y = zeros(d, 4);
	pthread_t thread;
	void *result;
	pthread_create(&thread, NULL, what, blk_buffer_pointer(flag));
	bool fine = blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(flag), blk_buf(y), blk_i64(0))) == BLK_OK;
	pthread_join(thread, &result);
	*good = fine && result;
}

/* Exits with 0 when each handler is called once a fault, with launches and without. */
static void chained(void)
{
	struct sigaction a = {.sa_flags = SA_SIGINFO};
	bool good;
	alarm(60);
	a.sa_sigaction = first_handler;
	sigaction(SIGSEGV, &a, NULL);
	guarded_page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	blk_device *d = open_device("cpu:guarded");
	blk_kernel *k = make(d, waiting);
	launch_beside(d, k, install_second, &good);
	if (!page_faults()) _exit(1);
	launch_beside(d, k, fault_in_page, &good);
	if (!good) _exit(2);
	launch_beside(d, k, fault_in_page, &good);
	if (!good) _exit(3);
	if (!page_faults()) _exit(4);
}

/* A newer handler of the host's that takes all faults, and leaves by a jump. */
static void jumping_handler(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	second_calls++;
	siglongjmp(out_of_it, 1);
}

static void *install_jumping(void *argument)
{
	int32_t *flag = argument;
	while (!__atomic_load_n(&flag[1], __ATOMIC_ACQUIRE)) usleep(1000);
	struct sigaction a = {.sa_flags = SA_SIGINFO};
	a.sa_sigaction = jumping_handler;
	sigaction(SIGSEGV, &a, NULL);
	__atomic_store_n(&flag[0], 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *jump_often(void *argument)
{
	int32_t *flag = argument;
	while (!__atomic_load_n(&flag[1], __ATOMIC_ACQUIRE)) usleep(1000);
	int first = first_calls, second = second_calls;
	mprotect(guarded_page, 4096, PROT_READ);
	for (volatile int i = 0; i < 3; i++)
		if (!sigsetjmp(out_of_it, 1)) *(volatile char *)guarded_page = 1;
	__atomic_store_n(&flag[0], 1, __ATOMIC_RELEASE);
	return first_calls == first && second_calls == second + 3 ? argument : NULL;
}

static void jumped_out_of(void)
{
	struct sigaction a = {.sa_flags = SA_SIGINFO};
	bool good;
	alarm(60);
	a.sa_sigaction = first_handler;
	sigaction(SIGSEGV, &a, NULL);
	guarded_page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	blk_device *d = open_device("cpu:guarded");
	blk_kernel *k = make(d, waiting);
	launch_beside(d, k, install_jumping, &good);
	launch_beside(d, k, jump_often, &good);
	if (!good) _exit(1);
}

static _Atomic int calls_once;
static void handler_once(int number)
{
	(void)number;
	if (++calls_once > 1) _exit(1);
}

static void reset_by_itself(void)
{
	struct sigaction a = {.sa_flags = SA_RESETHAND};
	alarm(60);
	a.sa_handler = handler_once;
	sigaction(SIGSEGV, &a, NULL);
	foreign_death();
}

static void other_handlers(void **state)
{
	(void)state;
	assert_int_equal(in_child(jumped_out_of), 0);
	assert_int_equal(in_child(chained), 0);
	int status = in_child(reset_by_itself);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void blocked_signals(void **state)
{
	(void)state;
	sigset_t all, was, now;
	sigfillset(&all);
	for (size_t m = 0; m < 2; m++) {
		blk_device *d = open_device(modes[m]);
		blk_kernel *k = make(d, poke);
		blk_buffer *x = zeros(d, 4), *y = zeros(d, 4);
		pthread_sigmask(SIG_SETMASK, &all, &was);
		blk_status status = blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i64(1 << 20)));
		pthread_sigmask(SIG_SETMASK, &was, &now);
		assert_int_equal(status, BLK_ERROR_KERNEL);
		assert_true(sigismember(&now, SIGSEGV)); /* as it was */
		blk_device_close(d);
	}
}

/* What a launch wrote around its buffer before its fault is not laid at the next one's door. */
static void launch_after_a_fault(void **state)
{
	(void)state;
	blk_device *d = open_device("cpu:guarded");
	blk_kernel *k = make(d, "kernel k(y: *f32, n: i32) grid(1) { let i = arange(0, 1048576);\n"
				"store(y + i, 1.0 + i.to(f32), mask = i < n); }");
	blk_buffer *y = zeros(d, 400);
	assert_int_equal(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_i32(1048576))), BLK_ERROR_KERNEL);
	for (int i = 0; i < 2; i++)
		if (blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_i32(100)))) fail_msg("%s", blk_error());
	blk_device_close(d);
}

/* Another thread forks while a kernel runs: the child has its handler back, and kernels of its own. */
static void *fork_elsewhere(void *argument)
{
	other *o = argument;
	while (!__atomic_load_n(&o->flag[1], __ATOMIC_ACQUIRE)) usleep(1000);
	pid_t pid = fork();
	if (pid == 0) {
		bool good = is_hosts() && host_faults();
		blk_device *d = NULL;
		good = good && device_open_with("cpu:guarded", &seams, &d) == BLK_OK;
		blk_module *m;
		blk_kernel *k;
		blk_buffer *x, *y;
		good = good && blk_module_source(d, "k.blk", poke, NULL, 0, &m) == BLK_OK &&
		       blk_kernel_find(m, NULL, &k) == BLK_OK && blk_buffer_create(d, 4, &x) == BLK_OK &&
		       blk_buffer_create(d, 4, &y) == BLK_OK;
		good = good &&
		       blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i64(4096))) == BLK_ERROR_KERNEL;
		_exit(good && is_hosts() ? 0 : 1);
	}
	int status = 1;
	o->seen = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
	__atomic_store_n(&o->flag[0], 1, __ATOMIC_RELEASE);
	return NULL;
}

static void forks(void **state)
{
	(void)state;
	struct sigaction before;
	install_hosts(&before);
	blk_device *d = open_device("cpu:guarded");
	blk_kernel *k = make(d, waiting);
	blk_buffer *flag = zeros(d, 8), *y = zeros(d, 4);
	other o = {.flag = blk_buffer_pointer(flag)};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, fork_elsewhere, &o), 0);
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(flag), blk_buf(y), blk_i64(0))));
	pthread_join(thread, NULL);
	assert_true(o.seen);
	assert_true(is_hosts());
	blk_device_close(d);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

/* Children of a process whose other thread looks at what lies around a buffer nearly all the time. */
static _Atomic bool enough;
static void *look_around(void *argument)
{
	blk_device *d = argument;
	uint64_t at, where;
	bool good = cpu_memory_allocate(d->memory, 1, &at);
	while (good && !enough) good = cpu_memory_intact(d->memory, at, &where);
	if (good) cpu_memory_release(d->memory, at);
	return good ? d : NULL;
}
static void forks_beside_buffers(void **state)
{
	(void)state;
	enum { FORKS = 300 };
	blk_device *mine = open_device("cpu:guarded"), *theirs = open_device("cpu:guarded");
	pthread_t thread;
	enough = false;
	assert_int_equal(pthread_create(&thread, NULL, look_around, theirs), 0);
	for (int i = 0; i < FORKS; i++) {
		int status = 1;
		pid_t pid = fork();
		if (pid == 0) {
			uint64_t at;
			alarm(5);
			_exit(!cpu_memory_allocate(theirs->memory, 64, &at) ||
				!cpu_memory_allocate(mine->memory, 64, &at));
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	enough = true;
	void *good = NULL;
	pthread_join(thread, &good);
	assert_non_null(good);
	blk_device_close(mine);
	blk_device_close(theirs);
}

/* Two devices at once, good launches beside bad ones. */
typedef struct user {
	const char *device;
	bool bad;
	int wrong;
} user;

static void *launch_often(void *argument)
{
	user *u = argument;
	blk_device *d = open_device(u->device);
	blk_kernel *k = make(d, twice);
	blk_buffer *x = zeros(d, 8192 * 4), *y = zeros(d, 8192 * 4);
	for (int i = 0; i < 50; i++) {
		bool bad = u->bad && i % 2;
		int32_t n = bad ? 100000 : 8192;
		blk_status s = blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i32(n)));
		u->wrong += s != (bad ? BLK_ERROR_KERNEL : BLK_OK);
	}
	blk_device_close(d);
	return NULL;
}

static void several_devices(void **state)
{
	(void)state;
	setenv("BLK_CPU_THREADS", "3", 1);
	user users[] = {
		{"cpu:guarded", true, 0}, {"cpu:guarded", false, 0}, {"cpu:checked", true, 0}, {"cpu:fast", false, 0}};
	pthread_t threads[4];
	for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, launch_often, &users[i]), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(users[i].wrong, 0);
	}
	struct sigaction now;
	assert_int_equal(sigaction(SIGSEGV, NULL, &now), 0);
	assert_false(now.sa_flags & SA_NODEFER && now.sa_flags & SA_ONSTACK && now.sa_flags & SA_SIGINFO);
}

/* ---- memory ---- */

static void many_buffers(void **state)
{
	(void)state;
	enum { MANY = 3000 };
	static blk_buffer *b[MANY];
	blk_device *d = open_device("cpu:guarded");
	for (size_t i = 0; i < MANY; i++) {
		OK(blk_buffer_create(d, i * 7, &b[i]));
		assert_true((uintptr_t)blk_buffer_pointer(b[i]) % 256 == 0);
		OK(blk_buffer_fill(b[i], 0, (uint8_t)i, i * 7));
	}
	for (size_t i = 0; i < MANY; i += 3) blk_buffer_free(b[i]);
	for (size_t i = 1; i < MANY; i += 3) {
		const unsigned char *p = blk_buffer_pointer(b[i]);
		assert_true(p[0] == (uint8_t)i && p[i * 7 - 1] == (uint8_t)i);
	}
	blk_device_close(d);
}

/* The numbers of fresh memory stand out: nan, and -1. */
static void fresh_memory(void **state)
{
	(void)state;
	for (size_t m = 0; m < 2; m++) {
		blk_device *d = open_device(modes[m]);
		size_t bytes = m ? 1000000 : 60000;
		blk_buffer *b;
		OK(blk_buffer_create(d, bytes, &b));
		const unsigned char *p = blk_buffer_pointer(b);
		for (size_t i = 0; i < bytes; i++) assert_int_equal(p[i], 0xff);
		blk_device_close(d);
	}
}

/* ---- how many buffers have guards ---- */

static size_t guards_by(const char *text)
{
	char path[] = "/tmp/blk_limit_XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	size_t n = cpu_memory_guards(path);
	unlink(path);
	return n;
}

/* Where pages cannot be had the buffer cannot, and nothing is touched. */
static void without_pages(void)
{
	struct rlimit limit = {1 << 28, 1 << 28};
	cpu_memory *m;
	uint64_t at;
	if (setrlimit(RLIMIT_DATA, &limit) || cpu_memory_create(CPU_GUARDED, 3, &m)) _exit(1);
	_exit(cpu_memory_allocate(m, 1 << 30, &at) ? 2 : 0);
}

/* Large buffers are as the system gives them, zero, but under checks; small ones are not. */
static void large_memory(void **state)
{
	(void)state;
	static const struct {
		cpu_mode mode;
		size_t bytes;
		unsigned char fresh;
	} rows[] = {{CPU_GUARDED, 64 << 10, 0xff}, {CPU_GUARDED, (64 << 10) + 1, 0}, {CPU_GUARDED, 1 << 20, 0},
		{CPU_CHECKED, 64 << 10, 0xff}, {CPU_CHECKED, (64 << 10) + 1, 0xff}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cpu_memory *m;
		uint64_t at;
		assert_int_equal(cpu_memory_create(rows[i].mode, 3, &m), CPU_OK);
		assert_true(cpu_memory_allocate(m, rows[i].bytes, &at));
		for (size_t k = 0; k < rows[i].bytes; k++)
			assert_int_equal(((const unsigned char *)(uintptr_t)at)[k], rows[i].fresh);
		cpu_memory_release(m, at);
		cpu_memory_destroy(m);
	}
#ifndef __SANITIZE_ADDRESS__
	int status = in_child(without_pages);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
#else
	(void)without_pages;
#endif
}

static void how_many_guards(void **state)
{
	(void)state;
	struct rlimit before, now;
	assert_int_equal(guards_by("262144\n"), 65536);
	assert_int_equal(guards_by("8"), 2);
	assert_int_equal(guards_by(""), 16382);
	assert_int_equal(guards_by("none\n"), 16382);
	assert_int_equal(cpu_memory_guards("/"), 16382); /* which can be opened, and not read */
	assert_int_equal(cpu_memory_guards("/nowhere/at/all"), 16382);
	getrlimit(RLIMIT_AS, &before);
	now = before;
	now.rlim_cur = (rlim_t)1 << 47; /* a quarter of it, in pieces of 8 MiB */
	if (setrlimit(RLIMIT_AS, &now)) return;
	assert_int_equal(guards_by("1000000000"), 1 << 22);
	assert_int_equal(guards_by("8"), 2);
	setrlimit(RLIMIT_AS, &before);
}

static bool has_guards(cpu_memory *m, uint64_t address)
{
	blk_cpu_range r;
	return cpu_memory_find(m, address - 1, &r) && r.begin == address;
}

/* The number is the process's: what one device's buffers leave is another's, and what is freed is free again. */
static void guards_are_shared(void **state)
{
	(void)state;
	cpu_memory *m[2];
	uint64_t at[5];
	char text[512] = "";
	for (int i = 0; i < 2; i++) assert_int_equal(cpu_memory_create(CPU_GUARDED, 3, &m[i]), CPU_OK);
	for (int i = 0; i < 4; i++) assert_true(cpu_memory_allocate(m[i % 2], 100, &at[i]));
	for (int i = 0; i < 4; i++) assert_int_equal(has_guards(m[i % 2], at[i]), i < 3);
	assert_false(cpu_memory_warning(m[0], text, sizeof text));
	assert_true(cpu_memory_warning(m[1], text, sizeof text));
	assert_non_null(strstr(text, "3 buffers have some"));
	assert_non_null(strstr(text, "vm.max_map_count"));
	assert_non_null(strstr(text, "or use the device cpu:checked"));
	assert_false(cpu_memory_warning(m[1], text, sizeof text));
	cpu_memory_release(m[0], at[0]);
	assert_true(cpu_memory_allocate(m[1], 100, &at[0]) && has_guards(m[1], at[0]));
	assert_true(cpu_memory_allocate(m[0], 100, &at[4]) && !has_guards(m[0], at[4]));
	assert_true(cpu_memory_warning(m[0], text, sizeof text));
	cpu_memory_release(m[0], at[4]);
	cpu_memory_release(m[0], at[2]);
	const int second[] = {0, 1, 3};
	for (int i = 0; i < 3; i++) cpu_memory_release(m[1], at[second[i]]);
	for (int i = 0; i < 2; i++) cpu_memory_destroy(m[i]);
}

/* The advice is the mode's: checked code finds what no guard does, and fast devices have none. */
static void advice(void **state)
{
	(void)state;
	cpu_memory *m;
	uint64_t at;
	char text[512] = "";
	assert_int_equal(cpu_memory_create(CPU_CHECKED, 0, &m), CPU_OK);
	assert_true(cpu_memory_allocate(m, 100, &at));
	assert_true(cpu_memory_warning(m, text, sizeof text));
	assert_non_null(strstr(text, "are found by checked code alone"));
	assert_null(strstr(text, "cpu:checked"));
	cpu_memory_release(m, at);
	cpu_memory_destroy(m);
	assert_int_equal(cpu_memory_create(CPU_FAST, 0, &m), CPU_OK);
	assert_true(cpu_memory_allocate(m, 100, &at));
	assert_false(cpu_memory_warning(m, text, sizeof text));
	cpu_memory_release(m, at);
	cpu_memory_destroy(m);
}

static size_t count_mappings(void)
{
	size_t n = 0;
	FILE *f = fopen("/proc/self/maps", "re");
	assert_non_null(f);
	for (int c; (c = fgetc(f)) != EOF;) n += c == '\n';
	fclose(f);
	return n;
}

/* More buffers than there are mappings for: code is mapped all the same, and the note comes once. */
static void mappings_are_left(void **state)
{
	(void)state;
	const char *limit = "/proc/sys/vm/max_map_count";
	size_t guards = cpu_memory_guards(limit), before = count_mappings();
	if (guards > 40000) skip(); /* where the limit is high it takes long */
	blk_device *d = open_device("cpu:guarded");
	blk_buffer *b;
	make(d, poke); /* whose note is empty */
	for (size_t i = 0; i < guards; i++) OK(blk_buffer_create(d, 4, &b));
	assert_string_equal(blk_note(), "");
	OK(blk_buffer_create(d, 400, &b));
	assert_non_null(strstr(blk_note(), "a buffer lies without guard pages: "));
	char *said = strdup(blk_note());
	for (size_t i = 0; i < 2 * guards; i++) OK(blk_buffer_create(d, 4, &b));
	assert_string_equal(blk_note(), said);
	free(said);
	assert_true(count_mappings() - before <= 3 * guards + 1000);
	blk_kernel *k = make(d, poke);
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(zeros(d, 400)), blk_buf(zeros(d, 4)), blk_i64(99))));
	blk_device_close(d);
}

/* No address space for guards: plain memory, which works. */
static void without_room(void)
{
	blk_device *d = open_device("cpu:guarded");
	blk_kernel *k = make(d, poke);
	struct rlimit now;
	blk_buffer *x = zeros(d, 4), *y, *rest[64];
	getrlimit(RLIMIT_AS, &now);
	/* The code is made while there is room. */
	if (blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(zeros(d, 400)), blk_buf(x), blk_i64(99)))) _exit(8);
	for (size_t i = 0; i < 64; i++) blk_buffer_create(d, 16, &rest[i]);
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	if (!f || fscanf(f, "%ld", &pages) != 1) _exit(2);
	fclose(f);
	now.rlim_cur = (rlim_t)pages * 4096 + (4 << 20);
	if (setrlimit(RLIMIT_AS, &now)) _exit(3);
	if (blk_buffer_create(d, 400, &y)) _exit(4);
	if (!strstr(blk_note(), "the system refuses the mapping")) _exit(9);
	if (blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i64(99)))) _exit(5);
	float v = 1;
	if (blk_buffer_read(y, 396, &v, 4) || v != 0) _exit(6);
	if (blk_buffer_create(d, (size_t)1 << 30, &y) != BLK_ERROR_MEMORY) _exit(7);
	blk_device_close(d);
}

static void no_guards(void **state)
{
	(void)state;
#ifndef __SANITIZE_ADDRESS__
	int status = in_child(without_room);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
#else
	(void)without_room;
	skip();
#endif
}

/* Where all that a kernel touches is known, its lines are dropped from the caches and nothing is made for a flush. */
static void flushes(void **state)
{
	(void)state;
	blk_device *d = open_device("cpu:guarded");
	blk_kernel *k = make(d, poke);
	blk_buffer *x = zeros(d, 4), *y = zeros(d, 400);
	float own[4] = {0};
	blk_timing t;
	const blk_bench_options o = {.warmup_ms = 0.01, .measure_ms = 0.01, .min_runs = 1, .max_runs = 2};
	OK(blk_bench(k, NULL, BLK_ARGS(blk_buf(y), blk_buf(x), blk_i64(3)), &o, &t));
	assert_null(d->flush);
	OK(blk_bench(k, NULL, BLK_ARGS(blk_ptr(own), blk_buf(x), blk_i64(3)), &o, &t));
	assert_non_null(d->flush);
	blk_device_close(d);
}

/* ---- lines ---- */

static unsigned char *object_of(const char *source, size_t *n)
{
	blkc_request request = {.size = sizeof request,
		.name = "folder/k.blk",
		.text = source,
		.text_bytes = strlen(source),
		.target = "cpu",
		.emit = BLKC_EMIT_OBJECT};
	blkc_result *r = blkc_compile(&request);
	assert_non_null(r);
	assert_int_equal(r->status, 0);
	*n = r->artifacts[0].nbytes;
	unsigned char *copy = malloc(*n); /* exact, so that the sanitizers see a read beyond the end */
	memcpy(copy, r->artifacts[0].bytes, *n);
	blkc_result_free(r);
	return copy;
}

/* Every instruction is of a line of the kernel, and the lines that touch memory have some; so with several kernels in
 * one object. */
static void lines(void **state)
{
	(void)state;
	char both[2 * sizeof twice];
	snprintf(both, sizeof both, "%skernel other(y: *i32) grid(1) {\n store(y, 3);\n}\n", twice);
	size_t n;
	unsigned char *bytes = object_of(both, &n);
	static const char *const kernels[] = {"twice", "other"};
	static const uint32_t wanted[][2] = {{5, 6}, {9, 9}}, first[] = {1, 8};
	for (int k = 0; k < 2; k++) {
		cpu_object *o;
		char error[100];
		if (cpu_object_load(bytes, n, kernels[k], &o, error, sizeof error)) fail_msg("%s", error);
		uint64_t begin = (uint64_t)(uintptr_t)cpu_object_kernel(o), code, size;
		cpu_line line;
		bool seen[12] = {false};
		cpu_object_code(o, &code, &size);
		assert_true(begin - code < size);
		assert_true(cpu_object_line(o, begin, &line) && line.number == first[k]);
		assert_string_equal(line.folder, "folder");
		assert_string_equal(line.file, "k.blk");
		for (uint64_t pc = begin; cpu_object_line(o, pc, &line) && pc < begin + 4096; pc++) {
			assert_true(line.number < 12);
			seen[line.number] = true;
		}
		assert_true(seen[wanted[k][0]] && seen[wanted[k][1]]);
		assert_false(cpu_object_line(o, code - 1, &line));
		assert_false(cpu_object_line(o, code + size, &line));
		cpu_object_free(o);
	}
	free(bytes);
}

static bool lies_in(const char *s, const unsigned char *bytes, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;
	return p >= bytes && p < bytes + n && memchr(p, 0, (size_t)(bytes + n - p)) != NULL;
}

/* Cut anywhere and with bytes changed: any answer will do, inside of the bytes. */
static void lines_of_anything(void **state)
{
	(void)state;
	size_t n;
	unsigned char *bytes = object_of(twice, &n);
	cpu_line line;
	uint64_t seed = 5;
	for (size_t k = 0; k < n; k++) {
		unsigned char *part = malloc(k ? k : 1);
		memcpy(part, bytes, k);
		cpu_line_find(part, k, 70, &line);
		free(part);
	}
	for (size_t k = 0; k < 8 * n; k++) {
		unsigned char old = bytes[k / 8];
		bytes[k / 8] ^= (unsigned char)(1 << k % 8);
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		if (cpu_line_find(bytes, n, seed >> 56, &line)) {
			assert_true(lies_in(line.file, bytes, n) && (!*line.folder || lies_in(line.folder, bytes, n)));
		}
		bytes[k / 8] = old;
	}
	free(bytes);
}

/* Tiles in scratch memory, carried round a loop, reduced: what is right stays right under checks. */
static void scratch(void **state)
{
	(void)state;
	blk_device *d = open_device("cpu:checked");
	blk_kernel *k = make(d,
		"kernel k(y: *i32, x: *const i32, n: i32) grid(1) {\n"
		" var s = zeros([64], i32);\n"
		" var p = x + arange(0, 64);\n"
		" for i in range(0, n, 64) { s += load(p, mask = i + arange(0, 64) < n, other = 0); p += 64; }\n"
		" store(y + arange(0, 64), sort(s)); store(y + 64, sum(s, axis = 0)); }");
	enum { N = 1000 };
	int32_t x[N], y[65], want[64] = {0}, sum = 0;
	for (int i = 0; i < N; i++) x[i] = i * 37 % 101, want[i % 64] += x[i], sum += x[i];
	blk_buffer *bx = zeros(d, sizeof x), *by = zeros(d, sizeof y);
	OK(blk_buffer_write(bx, 0, x, sizeof x));
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(by), blk_buf(bx), blk_i32(N))));
	OK(blk_buffer_read(by, 0, y, sizeof y));
	assert_int_equal(y[64], sum);
	for (int i = 0; i < 64; i++) { /* sorted, and of each number as many */
		int a = 0, b = 0;
		for (int j = 0; j < 64; j++) a += y[j] == y[i], b += want[j] == y[i];
		assert_int_equal(a, b);
		assert_true(i == 0 || y[i - 1] <= y[i]);
	}
	FAULTS(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(by), blk_buf(bx), blk_i32(N + 1))),
		"k.blk:4: 4 bytes are read outside x, which has 4000 bytes: at offset 4000");
	blk_device_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, setup)
		T(missing_mask), T(everywhere_around), T(copied_pattern), T(kinds_of_access), T(over_the_end),
		T(chosen_pointers), T(far_from_all), T(shared_buffer), T(hints), T(masked), T(pointers),
		T(asserts_and_prints), T(names_of_modes), T(from_the_cache), T(faults_of_the_host), T(deaths),
		T(nested_launches), T(other_handlers), T(blocked_signals), T(launch_after_a_fault), T(forks),
		T(forks_beside_buffers), T(several_devices), T(many_buffers), T(how_many_guards), T(guards_are_shared),
		T(advice), T(mappings_are_left), T(fresh_memory), T(large_memory), T(no_guards), T(flushes), T(lines),
		T(lines_of_anything), T(scratch)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
