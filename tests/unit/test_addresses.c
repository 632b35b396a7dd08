/* Tuning of kernels that come by addresses: a trial writes only where the caller said that it may, and a launch has
 * added 1 where it should, once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/blk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 100 };

/* Adds 1 to all that `out` leads to, and leaves 1 in what `work` is or leads to. */
#define ADD_ONE                                                                                                        \
	"  let i = program_id(0) * B + arange(0, B);\n"                                                                \
	"  store(out + i, load(out + i, mask = i < n, other = 0.0) + 1.0, mask = i < n);\n}\n"
#define TUNED "autotune add key(n) { B: [32, 64, 128]; "

static blk_device *device;
static blk_buffer *data, *work, *data_at, *work_at;

static int setup(void **state)
{
	(void)state;
	float zeros[N] = {0};
	setenv("BLK_CACHE", "off", 1);
	setenv("BLK_TUNE", "auto", 1);
	assert_int_equal(blk_device_open("cpu", &device), BLK_OK);
	blk_buffer **buffers[] = {&data, &work, &data_at, &work_at};
	for (int i = 0; i < 4; i++) {
		assert_int_equal(blk_buffer_create(device, 8 * N, buffers[i]), BLK_OK);
		assert_int_equal(blk_buffer_fill(*buffers[i], 0, 0, 8 * N), BLK_OK);
	}
	void *d = blk_buffer_pointer(data), *w = blk_buffer_pointer(work);
	assert_int_equal(blk_buffer_write(data_at, 0, &d, sizeof d), BLK_OK);
	assert_int_equal(blk_buffer_write(work_at, 0, &w, sizeof w), BLK_OK);
	return blk_buffer_write(data, 0, zeros, sizeof zeros);
}

static int teardown(void **state)
{
	(void)state;
	blk_device_close(device);
	unsetenv("BLK_TUNE");
	return 0;
}

static blk_arg u64_of(blk_buffer *b)
{
	return blk_u64((uint64_t)(uintptr_t)blk_buffer_pointer(b));
}

/* Launches once; what it says of tuning must be in the note, "": it is tuned. */
static void check(const char *what, const char *text, blk_arg to, blk_arg other, const char *says)
{
	blk_module *m;
	blk_kernel *k;
	float got[N];
	if (blk_module_source(device, "add.blk", text, NULL, 0, &m)) fail_msg("%s: %s", what, blk_error());
	assert_int_equal(blk_kernel_find(m, "add", &k), BLK_OK);
	assert_int_equal(blk_launch(k, NULL, NULL, BLK_ARGS(to, other, blk_i32(N))), BLK_OK);
	if (*says ? !strstr(blk_note(), says) : *blk_note()) fail_msg("%s: note \"%s\"", what, blk_note());
	assert_int_equal(blk_buffer_read(data, 0, got, sizeof got), BLK_OK);
	for (int i = 0; *says && i < N; i++)
		if (got[i] != 1) fail_msg("%s: [%d] is %g", what, i, (double)got[i]);
	assert_int_equal(blk_buffer_fill(data, 0, 0, sizeof got), BLK_OK);
	blk_module_close(m);
}

/* Two tables: that one may be written says nothing of the other. */
static void test_tables(void **state)
{
	(void)state;
#define KERNEL                                                                                                         \
	"kernel add(out_at: *const u64, w_at: *const u64, n: i32, const B: i32 = 32) grid(cdiv(n, B)) {\n"             \
	"  let out = load(out_at).to(*f32);\n  store(load(w_at).to(*f32) + program_id(0), 1.0);\n" ADD_ONE TUNED
	check("no clause", KERNEL "}\n", blk_buf(data_at), blk_buf(work_at), "addresses that out_at holds");
	check("the other", KERNEL "scratch w_at; }\n", blk_buf(data_at), blk_buf(work_at),
		"it writes at addresses that out_at holds, and what lies there is not known; where a launch writes all "
		"of it anew, say so in the autotune block: scratch out_at; it runs with its defaults");
	check("only this one", KERNEL "scratch out_at; }\n", blk_buf(data_at), blk_buf(work_at), "that w_at holds");
	check("both", KERNEL "scratch out_at, w_at; }\n", blk_buf(data_at), blk_buf(work_at), "");
#undef KERNEL
}

/* A workspace of integers is no table of addresses, but may look like one. */
static void test_workspaces(void **state)
{
	(void)state;
#define KERNEL(type)                                                                                                   \
	"kernel add(out_at: " type ", w: *i64, n: i32, const B: i32 = 32) grid(cdiv(n, B)) {\n"                        \
	"  store(w + program_id(0), 1);\n"
	check("a table", KERNEL("*const u64") "let out = load(out_at).to(*f32);\n" ADD_ONE TUNED "scratch w; }\n",
		blk_buf(data_at), blk_buf(work), "addresses that out_at holds");
	check("a number", KERNEL("u64") "let out = out_at.to(*f32);\n" ADD_ONE TUNED "scratch w; }\n", u64_of(data),
		blk_buf(work), "it writes where out_at says, which is an address");
	/* what it leads to is what the kernel stored there: another's addresses */
	check("filled by itself",
		KERNEL("u64") "store(w, out_at.to(i64));\n let out = load(w).to(*f32);\n" ADD_ONE TUNED
			      "scratch w; }\n",
		u64_of(data), blk_buf(work), "come of no parameter, or of memory that it writes itself");
#undef KERNEL
}

/* A configuration may come by addresses where the defaults do not. */
static void test_of_one_configuration(void **state)
{
	(void)state;
	check("one of three",
		"kernel add(out: *f32, w_at: u64, n: i32, const B: i32 = 32) grid(cdiv(n, B)) {\n"
		"  if B == 64 { store(w_at.to(*f32), 1.0); }\n" ADD_ONE TUNED "}\n",
		blk_buf(data), u64_of(work), "it writes where w_at says, which is an address");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_tables, setup, teardown),
		cmocka_unit_test_setup_teardown(test_workspaces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_of_one_configuration, setup, teardown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
