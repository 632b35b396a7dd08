/* A host that writes 1,5 for one and a half: what the compiler makes, what a signature means, and what a kernel prints
 * on cpu must not depend on it.  The locale is made for the test; where that is not possible the test is skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../compiler/blkc.h"
#include "../../runtime/blk.h"
#include "package/signature.h"

#include <locale.h>
#include <unistd.h>

static char folder[] = "/tmp/blk-locale-XXXXXX";

static int make_locale(void **state)
{
	char command[128];
	(void)state;
	if (!mkdtemp(folder)) return 0;
	snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
	if (system(command) == 0) setenv("LOCPATH", folder, 1);
	return 0;
}

static int remove_locale(void **state)
{
	char command[64];
	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command) != 0;
}

/* False, and the test is skipped, where there is no such locale. */
static void with_commas(void)
{
	char shown[16];
	if (!setlocale(LC_ALL, "de_DE.UTF-8")) skip();
	snprintf(shown, sizeof shown, "%.1f", 1.5);
	assert_string_equal(shown, "1,5");
}

static const char source[] = "kernel a(y: *f32, n: i32, const SCALE: f32 = 0.125)\n"
			     "    grid(cdiv(n, 128)) cost(bytes = n * 4.5, flops = n * 0.5)\n"
			     "{\n    let i = program_id(0) * 128 + arange(0, 128);\n    store(y + i, exp(load(y + i) * "
			     "SCALE + 1.5e-3));\n}\n"
			     "kernel b(y: *f32) grid(1) { store(y, 2.5); }\n"
			     "kernel wrong(y: *f32) grid(1) { static_assert(1.5 > 2.25, \"no\"); store(y, 1.5); }\n";

static blkc_result *compile(const char *kernel, const char *target, unsigned emit)
{
	blkc_request r = {.size = sizeof r,
		.name = "source.blk",
		.text = source,
		.text_bytes = strlen(source),
		.kernel = kernel,
		.target = target,
		.emit = emit};
	blkc_result *result = blkc_compile(&r);
	assert_non_null(result);
	return result;
}

static void check_same(const blkc_result *x, const blkc_result *y)
{
	assert_int_equal(x->status, y->status);
	assert_string_equal(x->diagnostics, y->diagnostics);
	assert_int_equal(x->nkernels, y->nkernels);
	for (size_t i = 0; i < x->nkernels; i++) assert_string_equal(x->kernels[i].signature, y->kernels[i].signature);
	assert_int_equal(x->nartifacts, y->nartifacts);
	for (size_t i = 0; i < x->nartifacts; i++) {
		assert_int_equal(x->artifacts[i].nbytes, y->artifacts[i].nbytes);
		assert_memory_equal(x->artifacts[i].bytes, y->artifacts[i].bytes, x->artifacts[i].nbytes);
	}
}

/* Twice, in the two locales: the same bytes; and the host's locale is as it was. */
static void check_compiles_alike(const char *kernel, const char *target, unsigned emit)
{
	setlocale(LC_ALL, "C");
	blkc_result *plain = compile(kernel, target, emit);
	with_commas();
	blkc_result *result = compile(kernel, target, emit);
	assert_string_equal(setlocale(LC_NUMERIC, NULL), "de_DE.UTF-8");
	assert_string_equal(localeconv()->decimal_point, ",");
	check_same(plain, result);
	blkc_result_free(plain);
	blkc_result_free(result);
}

static void compiler(void **state)
{
	(void)state;
	with_commas();
	enum { GPU = BLKC_EMIT_AST | BLKC_EMIT_TILE | BLKC_EMIT_LAYOUT | BLKC_EMIT_LLVM | BLKC_EMIT_PTX };
	check_compiles_alike("a", "sm_90a", GPU | BLKC_EMIT_JSON | BLKC_EMIT_EXPLAIN);
	check_compiles_alike("b", "sm_80", GPU);
	check_compiles_alike("a", "cpu", BLKC_EMIT_TILE | BLKC_EMIT_LLVM | BLKC_EMIT_OBJECT);
	check_compiles_alike("wrong", "sm_80", BLKC_EMIT_PTX);
}

/* Several kernels in one text: the head is written anew. */
static void joined_ptx(void **state)
{
	(void)state;
	static const char two[] =
		"kernel a(y: *f32) grid(1) { store(y, 1.5); }\nkernel b(y: *f32) grid(1) { store(y, 2.5); }\n";
	with_commas();
	blkc_request r = {
		.size = sizeof r, .name = "two.blk", .text = two, .text_bytes = strlen(two), .emit = BLKC_EMIT_PTX};
	blkc_result *result = blkc_compile(&r);
	assert_int_equal(result->status, 0);
	assert_int_equal(result->nartifacts, 1);
	assert_non_null(strstr(result->artifacts[0].bytes, "\n.version 7.0\n"));
	blkc_result_free(result);
}

static void signatures(void **state)
{
	(void)state;
	static const char text[] = "kernel k\nparam n i32\ncost bytes p0 4.5 *\n";
	const uint64_t bits[] = {10};
	signature *s;
	with_commas();
	assert_int_equal(signature_parse(text, strlen(text), &s), BLK_OK);
	assert_true(signature_number(s, &s->cost_bytes, bits, 1) == 45);
	signature_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compiler), cmocka_unit_test(joined_ptx), cmocka_unit_test(signatures)};
	return cmocka_run_group_tests(tests, make_locale, remove_locale);
}
