/* The simulator as a device: what of a buffer is defined after writes, fills and copies, what a launch takes from a
 * kernel's signature, what a kernel prints, and what it answers to what it does not have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include "sim_fixture.h"

#include <cmocka.h>

typedef struct setup {
	blk_device *device;
	blk_module *module;
	blk_kernel *kernel;
} setup;

static blk_status open_kernel(setup *s, const char *text)
{
	*s = (setup){NULL, NULL, NULL};
	setenv("BLK_CACHE", "off", 1);
	blk_status status = blk_device_open("sim", &s->device);
	if (!status) status = blk_module_source(s->device, "made.ptx", text, NULL, 0, &s->module);
	if (!status) status = blk_kernel_find(s->module, "k", &s->kernel);
	return status;
}

/* k(out: *u32, in: *const u32, n: i32) that stores the n words of `in`, by one thread each of 32. */
static char *copy_kernel(void)
{
	const sim_case c = {
		.body = "setp.ge.s32 %p1, %tid, %n;\n@%p1 ret;\nmad.wide.u32 %rd0, %tid, 4, %out;\nmad.wide.u32 %rd1, "
			"%tid, 4, %in;\nld.global.b32 %r1, [%rd1];\nst.global.b32 [%rd0], %r1;\n"};
	return sim_text(&c);
}

static blk_status copy(const setup *s, blk_buffer *out, blk_buffer *in, int n)
{
	const blk_grid one = {1, 1, 1};
	return blk_launch(s->kernel, NULL, &one, BLK_ARGS(blk_buf(out), blk_buf(in), blk_i32(n)));
}
#define IS_DEFINED(in, n) assert_int_equal(copy(&s, out, in, n), BLK_OK)
#define IS_UNDEFINED(in, n, thread)                                                                                    \
	do {                                                                                                           \
		assert_int_equal(copy(&s, out, in, n), BLK_ERROR_KERNEL);                                              \
		assert_non_null(strstr(blk_error(), "an undefined value is stored"));                                  \
		if (!strstr(blk_error(), "thread " thread ",")) fail_msg("%s", blk_error());                           \
	} while (0)

/* Which words of a buffer are defined: what was written, filled or copied there last. */
static void test_defined_words(void **state)
{
	(void)state;
	char *text = copy_kernel();
	setup s;
	blk_buffer *out, *a, *b, *c;
	uint32_t words[32];
	assert_int_equal(open_kernel(&s, text), BLK_OK);
	assert_int_equal(blk_buffer_create(s.device, 128, &out), BLK_OK);
	assert_int_equal(blk_buffer_create(s.device, 128, &a), BLK_OK);
	assert_int_equal(blk_buffer_create(s.device, 128, &b), BLK_OK);
	assert_int_equal(blk_buffer_create(s.device, 128, &c), BLK_OK);
	for (uint32_t i = 0; i < 32; i++) words[i] = 100 + i;
	IS_UNDEFINED(a, 32, "0");
	assert_int_equal(blk_buffer_write(a, 0, words, 64), BLK_OK);
	IS_DEFINED(a, 16);
	IS_UNDEFINED(a, 32, "16");
	assert_int_equal(blk_buffer_fill(a, 96, 0, 32), BLK_OK); /* a gap is left */
	IS_UNDEFINED(a, 32, "16");
	assert_int_equal(blk_buffer_fill(a, 64, 7, 32), BLK_OK);
	IS_DEFINED(a, 32);
	assert_int_equal(blk_buffer_read(out, 0, words, 128), BLK_OK);
	for (uint32_t i = 0; i < 32; i++) assert_int_equal(words[i], i < 16 ? 100 + i : i < 24 ? 0x07070707 : 0);
	/* of a buffer that is defined in part: the same part of the other */
	assert_int_equal(blk_buffer_write(b, 0, words, 64), BLK_OK);
	assert_int_equal(blk_buffer_copy(c, 32, b, 32, 64), BLK_OK); /* words 8 .. 15 are, 16 .. 23 are not */
	assert_int_equal(blk_buffer_write(c, 0, words, 32), BLK_OK);
	IS_DEFINED(c, 16);
	IS_UNDEFINED(c, 17, "16");
	/* what was all defined is so no more */
	assert_int_equal(blk_buffer_copy(a, 120, b, 120, 8), BLK_OK);
	IS_DEFINED(a, 30);
	IS_UNDEFINED(a, 31, "30");
	assert_int_equal(blk_buffer_write(a, 0, words, 128), BLK_OK);
	IS_DEFINED(a, 32);
	/* what nothing has written takes the place of what was written, and the rest is written behind it */
	blk_buffer_free(c);
	assert_int_equal(blk_buffer_create(s.device, 128, &c), BLK_OK);
	assert_int_equal(blk_buffer_write(c, 0, words, 64), BLK_OK);
	assert_int_equal(blk_buffer_copy(c, 16, b, 64, 16), BLK_OK);
	assert_int_equal(blk_buffer_write(c, 64, words, 64), BLK_OK);
	IS_DEFINED(c, 4);
	IS_UNDEFINED(c, 32, "4");
	/* from one that is all defined, into one that is not */
	assert_int_equal(blk_buffer_copy(c, 16, a, 16, 16), BLK_OK);
	IS_DEFINED(c, 32);
	blk_device_close(s.device);
	free(text);
}

/* More buffers than there is room for at first, freed in another order than they were made. */
static void test_many_buffers(void **state)
{
	(void)state;
	enum { MANY = 150 };
	char *text = copy_kernel();
	setup s;
	blk_buffer *all[MANY], *out;
	uint32_t words[8];
	assert_int_equal(open_kernel(&s, text), BLK_OK);
	assert_int_equal(blk_buffer_create(s.device, 128, &out), BLK_OK);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(blk_buffer_create(s.device, 32, &all[i]), BLK_OK);
		for (uint32_t k = 0; k < 8; k++) words[k] = 10 * i + k;
		assert_int_equal(blk_buffer_write(all[i], 0, words, 32), BLK_OK);
	}
	for (uint32_t i = 0; i < MANY; i += 3) blk_buffer_free(all[i]);
	for (uint32_t i = 0; i < MANY; i++) {
		if (i % 3 == 0) continue;
		IS_DEFINED(all[i], 8);
		assert_int_equal(blk_buffer_read(out, 0, words, 32), BLK_OK);
		for (uint32_t k = 0; k < 8; k++) assert_int_equal(words[k], 10 * i + k);
		assert_int_equal(copy(&s, out, all[i], 9), BLK_ERROR_KERNEL);
		assert_non_null(strstr(blk_error(), "4 bytes are read outside in, which has 32 bytes: at offset 32"));
	}
	blk_device_close(s.device); /* with most of them */
	free(text);
}

/* One line of the signature is another one, or is not there. */
static char *changed(const char *text, const char *line, const char *by)
{
	const char *at = strstr(text, line), *end = at ? strchr(at, '\n') + 1 : NULL;
	char *out = malloc(strlen(text) + strlen(by) + 1);
	if (!at || !out) abort();
	memcpy(out, text, (size_t)(at - text));
	strcpy(out + (at - text), by);
	strcat(out, end);
	return out;
}

static void test_signatures(void **state)
{
	(void)state;
	const sim_case c = {.threads = 64,
		.body = "mov.u32 %r1, %ntid.x;\nmad.wide.u32 %rd0, %tid, 4, %out;\nst.global.b32 [%rd0], "
			"%r1;\n"};
	char *text = sim_text(&c);
	static const struct {
		const char *line, *by, *says; /* null: it runs */
		uint32_t threads;
	} cases[] = {
		{"// blk: threads", "// blk: threads 64\n", NULL, 64},
		{"// blk: threads", "", NULL, 64}, /* of its warps */
		{"// blk: num_warps", "// blk: num_warps 1\n", NULL, 64},
		{"// blk: threads", "// blk: threads 2048\n", "kernel k has 2048 threads; a program has 1024", 0},
		{"// blk: shared", "// blk: shared 1000000\n",
			"kernel k needs 1000000 bytes of shared memory; simulator of sm_80 has", 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char *other = changed(text, cases[i].line, cases[i].by);
		setup s;
		blk_buffer *out;
		uint32_t words[64];
		const blk_grid one = {1, 1, 1};
		blk_status status = open_kernel(&s, other);
		if (!status) status = blk_buffer_create(s.device, 256, &out);
		if (!status)
			status = blk_launch(s.kernel, NULL, &one, BLK_ARGS(blk_buf(out), blk_buf(out), blk_i32(0)));
		if (cases[i].says && (!status || !strstr(blk_error(), cases[i].says)))
			fail_msg("case %zu: %s, not %s", i, status ? blk_error() : "it runs", cases[i].says);
		if (!cases[i].says) {
			if (status) fail_msg("case %zu: %s", i, blk_error());
			assert_int_equal(blk_buffer_read(out, 0, words, 256), BLK_OK);
			for (int k = 0; k < 64; k++) assert_int_equal(words[k], cases[i].threads);
		}
		blk_device_close(s.device);
		free(other);
	}
	free(text);
}

static void test_options(void **state)
{
	(void)state;
	blk_device *sim = NULL, *cpu = NULL;
	blk_sim_counters counters;
	assert_int_equal(blk_device_open("sim", &sim), BLK_OK);
	assert_int_equal(blk_sim_configure(sim, NULL), BLK_OK);
	assert_int_equal(blk_sim_count(sim, NULL), BLK_ERROR_ARGUMENT);
	assert_string_equal(blk_error(), "blk_sim_count: no place for the result");
	assert_int_equal(blk_sim_count(sim, &counters), BLK_OK);
	assert_int_equal(counters.programs, 0);
	assert_int_equal(blk_device_open("cpu", &cpu), BLK_OK);
	assert_int_equal(blk_sim_configure(cpu, NULL), BLK_ERROR_UNSUPPORTED);
	assert_string_equal(blk_error(), "only the device \"sim\" has options and counters");
	assert_int_equal(blk_sim_count(cpu, &counters), BLK_ERROR_UNSUPPORTED);
	const blk_sim_line *lines;
	size_t n = 1;
	assert_int_equal(blk_sim_lines(cpu, &lines, &n), BLK_ERROR_UNSUPPORTED);
	assert_int_equal(blk_sim_lines(sim, NULL, &n), BLK_ERROR_ARGUMENT);
	assert_int_equal(blk_sim_lines(sim, &lines, NULL), BLK_ERROR_ARGUMENT);
	assert_string_equal(blk_error(), "blk_sim_lines: no place for the result");
	assert_int_equal(blk_sim_lines(sim, &lines, &n), BLK_OK);
	assert_int_equal(n, 0);
	blk_device_close(cpu);
	blk_device_close(sim);
}

/* One warp copies 20 words: every line ran once, those behind the return with 20 lanes. */
static void test_lines(void **state)
{
	(void)state;
	char *text = copy_kernel(), *page;
	setup s;
	blk_buffer *out, *in;
	size_t bytes, n = 0;
	const blk_sim_line *lines, *load = NULL, *store = NULL;
	const blk_sim_options options = {.counters = 1, .schedules = 2};
	const blk_grid one = {1, 1, 1}, three = {3, 1, 1};
	uint32_t last = 0;
	assert_int_equal(open_kernel(&s, text), BLK_OK);
	assert_int_equal(blk_buffer_create(s.device, 128, &out), BLK_OK);
	assert_int_equal(blk_buffer_create(s.device, 128, &in), BLK_OK);
	assert_int_equal(blk_buffer_fill(in, 0, 0, 128), BLK_OK);
	assert_int_equal(blk_sim_page(s.kernel, &page, &bytes), BLK_ERROR_ARGUMENT);
	assert_string_equal(blk_error(), "kernel k is not the one whose launch was counted last");
	assert_int_equal(blk_sim_configure(s.device, &options), BLK_OK);
	/* three programs race: of a launch that fails nothing is kept */
	assert_int_equal(
		blk_launch(s.kernel, NULL, &three, BLK_ARGS(blk_buf(out), blk_buf(in), blk_i32(20))), BLK_ERROR_KERNEL);
	assert_int_equal(blk_launch(s.kernel, NULL, &one, BLK_ARGS(blk_buf(out), blk_buf(in), blk_i32(20))), BLK_OK);
	assert_int_equal(blk_sim_lines(s.device, &lines, &n), BLK_OK);
	assert_true(n > 5);
	for (size_t i = 0; i < n; i++) {
		assert_true(lines[i].ptx_line > last);
		last = lines[i].ptx_line;
		assert_int_equal(lines[i].instructions, 1);
		assert_null(lines[i].file);
		if (lines[i].requests && !load)
			load = &lines[i];
		else if (lines[i].requests)
			store = &lines[i];
	}
	assert_true(load && store);
	assert_int_equal(load->lanes, 20);
	assert_int_equal(load->sectors, 3);
	assert_int_equal(store->bytes, 80);
	assert_int_equal(store->requests, 1);
	assert_int_equal(store->shared_requests, 0);
	assert_int_equal(blk_sim_page(s.kernel, NULL, &bytes), BLK_ERROR_ARGUMENT);
	assert_int_equal(blk_sim_page(s.kernel, &page, &bytes), BLK_ERROR_UNSUPPORTED);
	assert_string_equal(blk_error(), "a page of kernel k needs its source, not compiled code");
	blk_device_close(s.device);
	free(text);
}

/* Options of one launch do not stay for the next. */
static void test_default_options(void **state)
{
	(void)state;
	char *text = copy_kernel();
	setup s;
	blk_buffer *out;
	const blk_sim_options json = {.json = 1};
	assert_int_equal(open_kernel(&s, text), BLK_OK);
	assert_int_equal(blk_buffer_create(s.device, 128, &out), BLK_OK);
	assert_int_equal(blk_sim_configure(s.device, &json), BLK_OK);
	assert_int_equal(copy(&s, out, out, 1), BLK_ERROR_KERNEL);
	assert_int_equal(blk_error()[0], '{');
	assert_int_equal(blk_sim_configure(s.device, NULL), BLK_OK);
	assert_int_equal(copy(&s, out, out, 1), BLK_ERROR_KERNEL);
	assert_memory_equal(blk_error(), "line ", 5);
	blk_device_close(s.device);
	free(text);
}

/* ---- What a kernel says ---- */

#define PRINTER ".extern .func (.param .b32 r) vprintf\n(\n.param .b64 a,\n.param .b64 b\n)\n;\n"
#define PRINT(format, arguments)                                                                                       \
	"{\n.param .b64 p0;\n.param .b64 p1;\n.param .b32 q;\nst.param.b64 [p0], " format                              \
	";\nst.param.b64 [p1], " arguments ";\ncall.uni (q), vprintf, (p0, p1);\nld.param.b32 %r8, [q];\n}\n"
#define ADDRESSES                                                                                                      \
	".local .align 8 .b8 depot[16];\nsetp.ne.u32 %p1, %tid, 0;\n@%p1 bra END;\nmov.b64 %rd1, "                     \
	"text;\ncvta.global.u64 %rd1, "                                                                                \
	"%rd1;\nmov.b64 %rd2, depot;\ncvta.local.u64 %rd2, %rd2;\n"
/* "%d\n" */
#define TEXT PRINTER ".global .align 1 .b8 text[4] = {37, 100, 10, 0};\n"

static void test_prints(void **state)
{
	(void)state;
	static const struct {
		const char *declarations, *body, *says;
	} cases[] = {
		{TEXT, ADDRESSES PRINT("%rd1", "%rd2") "END:\n", "an undefined value is printed"},
		{TEXT, ADDRESSES "st.local.b16 [depot], 7;\n" PRINT("%rd1", "%rd2") "END:\n",
			"an undefined value is printed"},
		{TEXT, ADDRESSES PRINT("%rd20", "%rd2") "END:\n", "an undefined address is printed from"},
		{TEXT, ADDRESSES PRINT("%rd1", "%rd20") "END:\n", "an undefined address is printed from"},
		{TEXT, ADDRESSES "add.s64 %rd2, %rd2, 16;\n" PRINT("%rd1", "%rd2") "END:\n",
			"4 bytes are read outside local memory, of which the program has 16 bytes: at offset 16"},
		{TEXT, ADDRESSES "add.s64 %rd1, %rd1, 4;\n" PRINT("%rd1", "%rd2") "END:\n", "1 bytes are read"},
		/* no zero at the end */
		{PRINTER ".global .align 1 .b8 text[2] = {65, 65};\n", ADDRESSES PRINT("%rd1", "%rd2") "END:\n",
			"1 bytes are read"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		sim_case c = {.declarations = cases[i].declarations, .body = cases[i].body};
		blk_status status = sim_try(&c);
		if (status != BLK_ERROR_KERNEL || !strstr(blk_error(), cases[i].says))
			fail_msg("case %zu: %s, not %s", i, status ? blk_error() : "it runs", cases[i].says);
	}
}

/* ---- Clusters and grids ---- */

/* A word of a table of addresses that nothing has written is none; what is behind one that was is the kernel's. */
static void test_tables(void **state)
{
	(void)state;
	static const char body[] = "ld.global.b64 %rd1, [%out];\nst.global.b32 [%rd1+4], 9;\n";
	const sim_case c = {.body = body};
	char *plain = sim_text(&c), *text = changed(plain, "// blk: param out", "// blk: param out *u64\n");
	setup s;
	blk_buffer *table, *target, *in;
	assert_int_equal(open_kernel(&s, text), BLK_OK);
	assert_int_equal(blk_buffer_create(s.device, 64, &table), BLK_OK);
	assert_int_equal(blk_buffer_create(s.device, 64, &target), BLK_OK);
	assert_int_equal(blk_buffer_create(s.device, 64, &in), BLK_OK);
	uint64_t address = (uint64_t)(uintptr_t)blk_buffer_pointer(target);
	const blk_grid one = {1, 1, 1}, two = {2, 1, 1};
	uint32_t words[2];
	assert_int_equal(blk_buffer_write(table, 0, &address, 8), BLK_OK); /* the rest is undefined */
	assert_int_equal(blk_launch(s.kernel, NULL, &one, BLK_ARGS(blk_buf(table), blk_buf(in), blk_i32(0))), BLK_OK);
	assert_int_equal(blk_buffer_read(target, 0, words, 8), BLK_OK);
	assert_int_equal(words[1], 9);
	/* it is watched: two programs write it */
	assert_int_equal(
		blk_launch(s.kernel, NULL, &two, BLK_ARGS(blk_buf(table), blk_buf(in), blk_i32(0))), BLK_ERROR_KERNEL);
	assert_non_null(strstr(blk_error(), "a race on the buffer at out[0] at offset 4"));
	blk_device_close(s.device);
	free(text);
	free(plain);
}

/* A kernel whose text ends without a return ends there, too. */
static void test_no_return(void **state)
{
	(void)state;
	const sim_case c = {.body = "setp.lt.u32 %p1, %tid, 4;\n@%p1 ret;\nmad.wide.u32 %rd0, %tid, 4, "
				    "%out;\nst.global.b32 [%rd0], "
				    "%tid;\n"};
	char *with = sim_text(&c), *text = changed(with, "ret;\n}", "");
	setup s;
	blk_buffer *out;
	uint32_t words[32];
	const blk_grid one = {1, 1, 1};
	assert_int_equal(open_kernel(&s, text), BLK_OK);
	assert_int_equal(blk_buffer_create(s.device, 128, &out), BLK_OK);
	assert_int_equal(blk_buffer_fill(out, 0, 0xff, 128), BLK_OK);
	assert_int_equal(blk_launch(s.kernel, NULL, &one, BLK_ARGS(blk_buf(out), blk_buf(out), blk_i32(0))), BLK_OK);
	assert_int_equal(blk_buffer_read(out, 0, words, 128), BLK_OK);
	for (uint32_t i = 0; i < 32; i++) assert_int_equal(words[i], i < 4 ? UINT32_MAX : i);
	blk_device_close(s.device);
	free(text);
	free(with);
}

static void test_limits(void **state)
{
	(void)state;
	sim_case forever = {.options = {.steps = 1000}, .body = "FOREVER:\nadd.s32 %r1, %tid, 1;\nbra.uni FOREVER;\n"};
	assert_int_equal(sim_try(&forever), BLK_ERROR_KERNEL);
	assert_non_null(strstr(blk_error(), "the program has not ended after 1000 instructions"));
	sim_case given_up = {
		.options = {.budget = 1000}, .body = "FOREVER:\nadd.s32 %r1, %tid, 1;\nbra.uni FOREVER;\n"};
	assert_int_equal(sim_try(&given_up), BLK_ERROR_RESOURCES);
	assert_non_null(strstr(blk_error(), "kernel k has not ended after 1000 instructions of all its programs"));
	sim_case ends = {.options = {.budget = 1000}, .body = "add.s32 %r1, %tid, 1;\n"};
	assert_int_equal(sim_try(&ends), BLK_OK);
}

/* ---- Asserts ---- */

/* A string as a variable of the module. */
static size_t put_string(char *out, size_t room, const char *name, const char *s)
{
	size_t n = (size_t)snprintf(out, room, ".global .align 1 .b8 %s[%zu] = {", name, strlen(s) + 1);
	for (;; s++) {
		n += (size_t)snprintf(out + n, room - n, "%u%s", (unsigned char)*s, *s ? ", " : "};\n");
		if (!*s) return n;
	}
}

/* The lowest of the indices that its lanes have printed is the assert's. */
static void test_asserts(void **state)
{
	(void)state;
	static const struct {
		const char *format, *file, *says;
	} cases[] = {
		{"pid (0, 0, 0) idx (%d, %d) assertion failed: less\n", "made.blk",
			"made.blk:17: assertion failed in program (0, 0, 0), element (2, 29): less"},
		{"pid (0, 0, 0) idx (7, %d) assertion failed: less\n", "made.blk",
			"made.blk:17: assertion failed in program (0, 0, 0), element (7, 2): less"},
		{"pid (0, 0, 0) idx (%d) assertion failed: less\n", "",
			"?:17: assertion failed in program (0, 0, 0), element (2): less"},
		{"pid (0, 0, 0) idx (9, 9, 9, 9, %d) assertion failed: less\n", "made.blk",
			"made.blk:17: assertion failed in program (0, 0, 0), element (9, 9, 9, 9): less"},
		{"idx (%d) of another line\n", "made.blk", "made.blk:17: assertion failed in program (0, 0, 0): less"},
		{"pid (0, 0, 0) idx (%d) of another line\n", "made.blk",
			"made.blk:17: assertion failed in program (0, 0, 0): less"},
		{"pid (0, 0, 0) idx () assertion failed: less\n", "made.blk",
			"made.blk:17: assertion failed in program (0, 0, 0): less"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char declarations[4096] = PRINTER ".extern .func __assertfail\n(\n.param .b64 a,\n.param .b64 "
						  "b,\n.param .b32 c,\n.param .b64 d,\n.param .b64 e\n)\n;\n";
		size_t n = strlen(declarations);
		n += put_string(declarations + n, sizeof declarations - n, "text", cases[i].format);
		n += put_string(declarations + n, sizeof declarations - n, "file", cases[i].file);
		put_string(declarations + n, sizeof declarations - n, "what", "less");
		/* lanes 28 to 31 fail: (3 - lane % 2, lane) */
		sim_case c = {.declarations = declarations,
			.body = ".local .align 8 .b8 depot[16];\nsetp.lt.u32 %p1, %tid, 28;\n@%p1 bra END;\nmov.b64 "
				"%rd1, "
				"text;\ncvta.global.u64 %rd1, %rd1;\nmov.b64 %rd2, depot;\ncvta.local.u64 %rd2, "
				"%rd2;\nmov.b64 %rd3, "
				"what;\ncvta.global.u64 %rd3, %rd3;\nmov.b64 %rd4, file;\ncvta.global.u64 %rd4, "
				"%rd4;\nmov.b64 %rd5, 1;\n"
				"and.b32 %r1, %tid, 1;\nsub.s32 %r1, 3, %r1;\nst.local.v2.b32 [depot], {%r1, "
				"%tid};\n" PRINT(
					"%rd1", "%rd2") "mov.b32 %r2, 17;\n{\n.param .b64 q0;\n.param .b64 q1;\n.param "
							".b32 q2;\n"
							".param .b64 q3;\n.param .b64 q4;\nst.param.b64 [q0], "
							"%rd3;\nst.param.b64 "
							"[q1], %rd4;\nst.param.b32 [q2], %r2;\nst.param.b64 [q3], "
							"%rd4;\nst.param.b64 [q4], %rd5;\ncall.uni __assertfail, (q0, "
							"q1, q2, q3, "
							"q4);\n}\ntrap;\nEND:\n"};
		fflush(stdout);
		blk_status status = sim_try(&c);
		if (status == BLK_OK || !strstr(blk_error(), cases[i].says))
			fail_msg("case %zu: %s, not %s", i, status ? blk_error() : "it runs", cases[i].says);
	}
}

/* Several orders of one launch begin with the same memory: what the kernel may write, and nothing else, is put back. */
static void test_schedules(void **state)
{
	(void)state;
	const sim_case c = {.body = "setp.ne.u32 %p1, %tid, 0;\n@%p1 ret;\nld.global.b32 %r1, "
				    "[%in];\nred.global.add.u32 [%out], %r1;\n"};
	char *text = sim_text(&c);
	setup s;
	blk_buffer *beside, *out, *in;
	uint32_t words[8] = {5, 6, 7, 8};
	const blk_grid three = {3, 1, 1};
	const blk_sim_options options = {.schedules = 4};
	assert_int_equal(open_kernel(&s, text), BLK_OK);
	assert_int_equal(blk_sim_configure(s.device, &options), BLK_OK);
	assert_int_equal(blk_buffer_create(s.device, 32, &beside), BLK_OK);
	assert_int_equal(blk_buffer_create(s.device, 32, &out), BLK_OK);
	assert_int_equal(blk_buffer_create(s.device, 32, &in), BLK_OK);
	assert_int_equal(blk_buffer_write(out, 0, words, 16), BLK_OK); /* in part */
	assert_int_equal(blk_buffer_write(in, 0, words, 32), BLK_OK);
	assert_int_equal(blk_launch(s.kernel, NULL, &three, BLK_ARGS(blk_buf(out), blk_buf(in), blk_i32(0))), BLK_OK);
	assert_int_equal(blk_buffer_read(out, 0, words, 16), BLK_OK);
	assert_int_equal(words[0], 5 + 3 * 5);
	assert_int_equal(words[1], 6);
	blk_device_close(s.device);
	free(text);
}

static void test_whole_clusters(void **state)
{
	(void)state;
	const sim_case c = {
		.body = "mov.u32 %r1, %cluster_nctarank;\nsetp.eq.u32 %p1, %tid, 0;\nmad.wide.u32 %rd0, %cta, 4, "
			"%out;\n@%p1 st.global.b32 [%rd0], %r1;\n"};
	char *plain = sim_text(&c),
	     *text = changed(plain, ".reqntid", ".reqntid 32, 1, 1\n.reqnctapercluster 2, 1, 1\n{\n");
	/* the brace stood in the line behind */
	char *twice = strstr(text, "{\n{\n");
	if (twice) memmove(twice, twice + 2, strlen(twice + 2) + 1);
	setup s;
	blk_buffer *out;
	uint32_t words[4];
	const blk_grid three = {3, 1, 1}, four = {4, 1, 1};
	assert_int_equal(open_kernel(&s, text), BLK_OK);
	assert_int_equal(blk_buffer_create(s.device, 16, &out), BLK_OK);
	assert_int_equal(blk_launch(s.kernel, NULL, &three, BLK_ARGS(blk_buf(out), blk_buf(out), blk_i32(0))),
		BLK_ERROR_ARGUMENT);
	assert_string_equal(blk_error(), "kernel k: a grid of 3 programs is not whole clusters of 2");
	assert_int_equal(blk_launch(s.kernel, NULL, &four, BLK_ARGS(blk_buf(out), blk_buf(out), blk_i32(0))), BLK_OK);
	assert_int_equal(blk_buffer_read(out, 0, words, 16), BLK_OK);
	for (int i = 0; i < 4; i++) assert_int_equal(words[i], 2);
	blk_device_close(s.device);
	free(text);
	free(plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defined_words),
		cmocka_unit_test(test_many_buffers),
		cmocka_unit_test(test_signatures),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_default_options),
		cmocka_unit_test(test_prints),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_no_return),
		cmocka_unit_test(test_asserts),
		cmocka_unit_test(test_schedules),
		cmocka_unit_test(test_whole_clusters),
		cmocka_unit_test(test_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
