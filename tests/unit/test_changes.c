/* A launch that writes a little of a large allocation: its trials read that little of it, whatever lies around, and
 * find what is wrong there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "tune/tune.h"

#include <stdio.h>
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
	"  config(FROM = -700000); config(FROM = 3000000); CLAUSE }\n";

static backend watched;
static const backend *real;
static uint64_t bytes_read;
static enum refusal { NOTHING, ROOM, CODE, LAUNCH, REFUSALS } refuses; /* to libblk's own kernel */

static blk_status read(blk_device *d, void *to, uint64_t from, size_t bytes)
{
	bytes_read += bytes;
	return real->read(d, to, from, bytes);
}

static blk_status allocate(blk_device *d, size_t bytes, uint64_t *address)
{
	if (refuses == ROOM && bytes == (ALL + TRIAL_CHUNK - 1) / TRIAL_CHUNK) return error_memory();
	return real->allocate(d, bytes, address);
}

static bool is_own(const variant *v)
{
	return strcmp(v->sig->kernel, "blk_changes") == 0;
}

static blk_status load(
	blk_device *d, variant *v, unsigned kind, const void *code, size_t bytes, void **linked, size_t *nlinked)
{
	if (refuses == CODE && is_own(v)) return error_set(BLK_ERROR_RESOURCES, "refused");
	return real->load(d, v, kind, code, bytes, linked, nlinked);
}

static blk_status launch(
	blk_device *d, const variant *v, void *on, const uint32_t grid[3], uint64_t *bits, const tensor_map *maps)
{
	if (refuses == LAUNCH && is_own(v)) return error_set(BLK_ERROR_RESOURCES, "refused");
	return real->launch(d, v, on, grid, bits, maps);
}

static blk_device *open_watched(void)
{
	blk_device *d;
	setenv("BLK_CACHE", "off", 1);
	assert_int_equal(blk_device_open("cpu", &d), BLK_OK);
	real = d->backend;
	watched = *real;
	watched.read = read;
	watched.allocate = allocate;
	watched.load = load;
	watched.launch = launch;
	d->backend = &watched;
	return d;
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
static uint64_t tune(blk_device *d, char *y, const char *clause)
{
	char source[sizeof text + 16], *end = stpcpy(source, text) - strlen("CLAUSE }\n");
	seen found = {0};
	blk_tune_options o = {.visit = note, .context = &found};
	blk_module *m;
	blk_kernel *k;
	bytes_read = 0;
	sprintf(end, "%s }\n", clause);
	if (blk_module_source(d, "fill.blk", source, NULL, 0, &m)) fail_msg("%s", blk_error());
	assert_int_equal(blk_kernel_find(m, "fill", &k), BLK_OK);
	if (blk_kernel_tune(k, NULL, BLK_ARGS(blk_ptr(y + AT), blk_i32(WRITTEN / 4)), &o, NULL))
		fail_msg("%s", blk_error());
	assert_int_equal(found.good, 3);
	assert_int_equal(found.wrong, 3);
	blk_module_close(m);
	return bytes_read;
}

static blk_buffer *buffer(blk_device *d)
{
	blk_buffer *y;
	assert_int_equal(blk_buffer_create(d, ALL, &y), BLK_OK);
	assert_int_equal(blk_buffer_fill(y, 0, 0x3f, ALL), BLK_OK);
	return y;
}

static char *memory(blk_device *d)
{
	return blk_buffer_pointer(buffer(d));
}

static void test_little(void **state)
{
	(void)state;
	blk_device *d = open_watched();
	char *y = memory(d), *before = malloc(ALL);
	assert_non_null(before);
	memcpy(before, y, ALL);
	/* Six trials; three of them read it once more for the norm, and all of it is read once as it was; up to three
	 * chunks lie around each. */
	assert_in_range(tune(d, y, ""), 6 * WRITTEN, 20 * (WRITTEN + 3 * 65536));
	assert_memory_equal(before, y, ALL);
	free(before);
	blk_device_close(d);
}

/* What would look cannot be had: all is read, and the verdicts are the same. */
static void test_all(void **state)
{
	(void)state;
	for (refuses = ROOM; refuses < REFUSALS; refuses++) {
		blk_device *d = open_watched();
		assert_in_range(tune(d, memory(d), ""), 6 * (uint64_t)(ALL - AT), 20 * (uint64_t)ALL);
		blk_device_close(d);
	}
	refuses = NOTHING;
}

/* What the tuning has said before libblk's own kernel was built stays said. */
static void test_notes(void **state)
{
	(void)state;
	blk_device *d = open_watched();
	tune(d, memory(d), "reset y;");
	assert_non_null(strstr(blk_note(), "trials find y as it is"));
	blk_device_close(d);
}

/* A buffer, and a pointer into it: the norm of the buffer is of all of it, with what nobody has changed. */
static void test_whole(void **state)
{
	(void)state;
	static const char both[] =
		"kernel both(y: *f32, z: *f32, n: i32, const OFF: f32 = 0.0) grid(1) { store(y, 1.0 + OFF); store(z, "
		"2.0); }\n"
		"autotune both key(n) { config(OFF = 0.0); config(OFF = 0.1); config(OFF = 0.5); }\n";
	blk_device *d = open_watched();
	blk_buffer *y = buffer(d);
	seen found = {0};
	blk_tune_options o = {.visit = note, .context = &found};
	blk_module *m;
	blk_kernel *k;
	assert_int_equal(blk_module_source(d, "both.blk", both, NULL, 0, &m), BLK_OK);
	assert_int_equal(blk_kernel_find(m, "both", &k), BLK_OK);
	blk_arg args[] = {blk_buf(y), blk_ptr((char *)blk_buffer_pointer(y) + AT), blk_i32(1)};
	assert_int_equal(blk_kernel_tune(k, NULL, args, 3, &o, NULL), BLK_OK);
	assert_int_equal(found.good, 2); /* 0.1 of a norm of 1575, 0.75 in each of AT / 4 elements, is below 1e-4 */
	assert_int_equal(found.wrong, 1);
	blk_device_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_little), cmocka_unit_test(test_all),
		cmocka_unit_test(test_notes), cmocka_unit_test(test_whole)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
