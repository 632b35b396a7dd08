/* A launch that writes a little of a large allocation: its trials read that little of it, whatever lies around, and
 * find what is wrong there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ALL = (40 << 20) + 40, WRITTEN = 300 << 10, AT = (17 << 20) + 36 }; /* bytes */

static const char text[] =
	"kernel fill(y: *f32, n: i32, const B: i32 = 64, const FROM: i32 = 0, const OFF: f32 = 0.0) grid(cdiv(n, B)) "
	"{\n"
	"  let i = program_id(0) * B + arange(0, B);\n"
	"  store(y + FROM + i, i.to(f32) + OFF, mask = i < n);\n"
	"}\n"
	"autotune fill key(n) { config(B = 64); config(B = 128); config(B = 256, OFF = 100.0); config(B = 256);\n"
	"  config(FROM = -700000); config(FROM = 3000000); }\n";

static backend counting;
static blk_status (*read_all)(blk_device *, void *, uint64_t, size_t);
static uint64_t bytes_read;

static blk_status count(blk_device *d, void *to, uint64_t from, size_t bytes)
{
	bytes_read += bytes;
	return read_all(d, to, from, bytes);
}

typedef struct seen {
	unsigned good, wrong;
} seen;

static int note(void *context, const blk_tune_trial *t)
{
	seen *s = context;
	s->good += t->verdict == BLK_TUNE_GOOD;
	s->wrong += t->verdict == BLK_TUNE_WRONG;
	return 0;
}

/* Bytes that the trials read. */
static uint64_t tune(blk_device *d, char *y)
{
	seen found = {0};
	blk_tune_options o = {.visit = note, .context = &found};
	blk_module *m;
	blk_kernel *k;
	bytes_read = 0;
	if (blk_module_source(d, "fill.blk", text, NULL, 0, &m)) fail_msg("%s", blk_error());
	assert_int_equal(blk_kernel_find(m, "fill", &k), BLK_OK);
	if (blk_kernel_tune(k, NULL, BLK_ARGS(blk_ptr(y + AT), blk_i32(WRITTEN / 4)), &o, NULL))
		fail_msg("%s", blk_error());
	assert_int_equal(found.good, 3);
	assert_int_equal(found.wrong, 3);
	blk_module_close(m);
	return bytes_read;
}

static void test_changes(void **state)
{
	(void)state;
	blk_device *d;
	blk_buffer *y;
	setenv("BLK_CACHE", "off", 1);
	assert_int_equal(blk_device_open("cpu", &d), BLK_OK);
	counting = *d->backend;
	read_all = counting.read;
	counting.read = count;
	d->backend = &counting;
	assert_int_equal(blk_buffer_create(d, ALL, &y), BLK_OK);
	assert_int_equal(blk_buffer_fill(y, 0, 0x3f, ALL), BLK_OK);
	char *host = blk_buffer_pointer(y), *before = malloc(ALL);
	assert_non_null(before);
	memcpy(before, host, ALL);
	/* Six trials; three of them read it once more for the norm, and all of it is read once as it was; up to three
	 * chunks lie around each. */
	assert_in_range(tune(d, host), 6 * WRITTEN, 20 * (WRITTEN + 3 * 65536));
	assert_memory_equal(before, host, ALL);
	free(before);
	blk_device_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_changes)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
