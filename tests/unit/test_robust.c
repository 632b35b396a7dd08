/* The compiler as a library on hostile input: every prefix of every example, every golden, random edits, and memory
 * that runs out at any point.  Nothing may crash, hang or report success with errors; run it under sanitizers. */
#include "blkc.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int compile(const char *name, const char *text, size_t n, unsigned emit, const char *target, size_t memory_limit)
{
	blkc_request request = {.size = sizeof request,
		.name = name,
		.text = text,
		.text_bytes = n,
		.emit = emit,
		.target = target,
		.memory_limit = memory_limit,
		.verify_each = 1};
	blkc_result *r = blkc_compile(&request);
	assert_non_null(r);
	int status = r->status;
	if (status == 0) assert_int_equal(r->errors, 0);
	if (status == 1) assert_true(r->errors > 0 && r->diagnostics[0]);
	assert_int_not_equal(status, 4);
	assert_null(strstr(r->diagnostics, "internal"));
	blkc_result_free(r);
	return status;
}

static char *read_file(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	*n = (size_t)ftell(f);
	rewind(f);
	char *text = malloc(*n + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, *n, f), *n);
	text[*n] = 0;
	fclose(f);
	return text;
}

static const char *const examples[] = {"vector_add", "gelu", "softmax", "dropout", "layer_norm"};
enum { EXAMPLES = sizeof examples / sizeof examples[0] };

static void each_prefix(void **state)
{
	(void)state;
	for (int e = 0; e < EXAMPLES; e++) {
		char path[256];
		snprintf(path, sizeof path, "examples/%s/%s.blk", examples[e], examples[e]);
		size_t n;
		char *text = read_file(path, &n);
		for (size_t i = 0; i < n; i++) compile("prefix.blk", text, i, BLKC_EMIT_TILE, "sm_80", 0);
		assert_int_equal(compile(path, text, n, BLKC_EMIT_TILE, "sm_80", 0), 0);
		free(text);
	}
}

/* Bytes replaced, deleted and doubled by a fixed generator. */
static void random_edits(void **state)
{
	(void)state;
	uint64_t seed = 1;
	for (int e = 0; e < EXAMPLES; e++) {
		char path[256];
		snprintf(path, sizeof path, "examples/%s/%s.blk", examples[e], examples[e]);
		size_t n;
		char *text = read_file(path, &n);
		char *edited = malloc(2 * n + 64);
		assert_non_null(edited);
		for (int round = 0; round < 400; round++) {
			size_t m = n;
			memcpy(edited, text, n);
			for (int k = 0; k < 1 + round % 4; k++) {
				seed = seed * 6364136223846793005u + 1442695040888963407u;
				size_t at = (size_t)(seed >> 33) % (m ? m : 1);
				int what = (int)(seed >> 20 & 3);
				if (what == 0)
					edited[at] = (char)(seed >> 24);
				else if (what == 1 && m > 1)
					memmove(edited + at, edited + at + 1, --m - at);
				else if (what == 2)
					edited[at] = "(){}[];,.*&|=<>+-0a\"/"[(seed >> 28) % 21];
				else if (m < 2 * n)
					memmove(edited + at + 1, edited + at, m++ - at);
			}
			compile("edited.blk", edited, m, BLKC_EMIT_TILE, "sm_80", 0);
		}
		free(edited);
		free(text);
	}
}

static void each_golden(void **state)
{
	(void)state;
	static const char *const folders[] = {"tests/golden/bad", "tests/golden/good"};
	int files = 0;
	for (int d = 0; d < 2; d++) {
		DIR *dir = opendir(folders[d]);
		if (!dir) continue;
		for (struct dirent *entry; (entry = readdir(dir));) {
			size_t length = strlen(entry->d_name), n;
			if (length < 4 || strcmp(entry->d_name + length - 4, ".blk") != 0) continue;
			char path[512];
			snprintf(path, sizeof path, "%s/%s", folders[d], entry->d_name);
			char *text = read_file(path, &n);
			int status = compile(path, text, n, BLKC_EMIT_TILE, "sm_80", 0);
			(void)status;
			for (size_t i = 1; i < 16; i++) compile(path, text, n * i / 16, BLKC_EMIT_TILE, "sm_80", 0);
			files++;
			free(text);
		}
		closedir(dir);
	}
	assert_true(files > 0);
}

static void sweep_memory(const char *target, unsigned emit, size_t step)
{
	size_t n;
	char *text = read_file("examples/rms_norm/rms_norm.blk", &n);
	int status = 3;
	size_t limit = 1, tries = 0;
	for (; status == 3 && tries < 20000; limit += step, tries++)
		status = compile("rms_norm.blk", text, n, emit, target, limit);
	assert_int_equal(status, 0);
	assert_true(tries > 5);
	free(text);
}

static void memory_runs_out(void **state)
{
	(void)state;
	sweep_memory("sm_80", BLKC_EMIT_TILE, 997);
	sweep_memory("sm_90a", BLKC_EMIT_PTX, 8 * 997);
	sweep_memory("cpu", BLKC_EMIT_OBJECT, 8 * 997);
	sweep_memory("sm_80", BLKC_EMIT_HTML, 300 * 997);
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A kernel of n statements; ten times the statements may take at most about ten times as long. */
static double statements(size_t n)
{
	size_t room = 64 * n + 512, at = 0;
	char *text = malloc(room);
	assert_non_null(text);
	at += (size_t)snprintf(text + at, room - at, "kernel k(x: *f32, n: i32) grid(n) {\nvar a = load(x);\n");
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, room - at, "a = a * %zu.5 + load(x + %zu);\n", i % 7, i);
	at += (size_t)snprintf(text + at, room - at, "store(x, a);\n}\n");
	double start = seconds();
	assert_int_equal(compile("long.blk", text, at, BLKC_EMIT_TILE, "sm_80", 0), 0);
	free(text);
	return seconds() - start;
}

static void time_is_linear(void **state)
{
	(void)state;
	statements(100);
	double one = statements(2000), ten = statements(20000);
	assert_true(ten < 40 * one + 0.05);
}

/* The same for whole compiles: `shape` is a kernel around its one number: how often a statement is unrolled, or an
 * extent. */
static double unrolled(const char *shape, const char *target, unsigned emit, unsigned times)
{
	char text[512];
	size_t n = (size_t)snprintf(text, sizeof text, shape, times);
	assert_true(n < sizeof text);
	double start = seconds();
	assert_int_equal(compile("unrolled.blk", text, n, emit, target, 0), 0);
	return seconds() - start;
}

/* Four times the statements may take nine times as long; a quadratic pass would take sixteen.  Processor time of this
 * process, and of three tries one must do, so that a busy machine does not matter. */
static void unrolled_is_linear(const char *shape, const char *target, unsigned emit, unsigned times)
{
	double one = 0, four = 0;
	for (int i = 0; i < 3; i++) {
		one = unrolled(shape, target, emit, times);
		four = unrolled(shape, target, emit, 4 * times);
		if (four < 9 * one + 0.1) return;
	}
	fail_msg("%s: %.2f s, then %.2f s for\n%s", target, one, four, shape);
}

static void code_takes_linear_time(void **state)
{
	(void)state;
	static const struct {
		unsigned times;
		const char *shape;
	} list[] = {
		{1500, "kernel k(x: *f32, n: i32) grid(n) { var a = load(x);\n"
		       "for i in static_range(0, %u) { a = a * 1.5 + load(x + i); } store(x, a); }"},
		{1500, "kernel k(x: *f32, n: i32) grid(n) { var a = load(x); for j in range(n) {\n"
		       "for i in static_range(0, %u) { a = a * 1.5 + load(x + i); } } store(x, a); }"},
		{1500, "kernel k(x: *f32, n: i32) grid(n) { var a = load(x); for i in static_range(0, %u) {\n"
		       "if n > i { a = a * 1.5 + load(x + i); } else { a = a - 1.0; } } store(x, a); }"},
		{1500, "kernel k(x: *f32, n: i32) grid(n) { let o = arange(0, 128); var a = load(x + o);\n"
		       "for i in static_range(0, %u) { a = a + sum(a); } store(x + o, a); }"},
		{2048, "kernel k(x: *f32) grid(1) options(num_warps = 1) {\n"
		       "let p = x + arange(0, %u); store(p, sort(load(p))); }"},
	};
	for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
		unrolled_is_linear(list[i].shape, "sm_90a", BLKC_EMIT_PTX, list[i].times);
		unrolled_is_linear(list[i].shape, "cpu", BLKC_EMIT_OBJECT, list[i].times);
	}
}

static void odd_bytes(void **state)
{
	(void)state;
	char all[256];
	for (int i = 0; i < 256; i++) all[i] = (char)i;
	compile("all.blk", all, sizeof all, BLKC_EMIT_TILE, "sm_80", 0);
	assert_int_equal(compile("empty.blk", "", 0, BLKC_EMIT_TILE, "sm_80", 0), 0);
	static const char *const repeated[] = {"(", "[", "{", "-", "!", "*", "((", "a(", "if x {", "kernel k() {", "1+",
		"a.b", "x?", "/*", "\"", "fn f() { return f(", "for i in range(3) {"};
	for (size_t r = 0; r < sizeof repeated / sizeof repeated[0]; r++) {
		size_t n = strlen(repeated[r]), times = 100000;
		char *text = malloc(n * times + 32);
		assert_non_null(text);
		memcpy(text, "kernel k() { let a = ", 21);
		for (size_t i = 0; i < times; i++) memcpy(text + 21 + i * n, repeated[r], n);
		assert_int_equal(compile("repeated.blk", text, 21 + n * times, BLKC_EMIT_TILE, "sm_80", 0), 1);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_prefix),
		cmocka_unit_test(each_golden),
		cmocka_unit_test(random_edits),
		cmocka_unit_test(odd_bytes),
		cmocka_unit_test(memory_runs_out),
		cmocka_unit_test(time_is_linear),
		cmocka_unit_test(code_takes_linear_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
