/* The compiler's messages, each told once (runtime/base/said.h). */
#include "runtime/base/said.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

static void tell(void *context, const char *message)
{
	grow_format(context, "<%s>", message);
}

static void says(growing *said, const char *text, const char *want)
{
	growing told = {0};
	said_tell(said, text, tell, &told);
	assert_string_equal(told.at ? told.at : "", want);
	free(told.at);
}

#define WARNING                                                                                                        \
	"a.blk:3:5: warning[W0302]: the integer division 1 / 2 is 0\n   3 |     1 / 2\n     |     ^^^^^\n"             \
	"note: a.blk:1:1: declared here\n   1 | fn f()\n     | ^^\nhint: write a float\n"
#define PRINT(n) "a.blk:12345:2: note: block " #n "\n12345 | static_print\n      | ^^^\n"
static const char warning[] = WARNING, block[] = PRINT(4);

static void each_once(void **state)
{
	(void)state;
	growing said = {0};
	says(&said, WARNING PRINT(4),
		"<a.blk:3:5: warning[W0302]: the integer division 1 / 2 is 0\n   3 |     1 / 2\n     |     ^^^^^\n"
		"note: a.blk:1:1: declared here\n   1 | fn f()\n     | ^^\nhint: write a float>"
		"<a.blk:12345:2: note: block 4\n12345 | static_print\n      | ^^^>");
	says(&said, warning, "");
	says(&said, block, "");
	says(&said, PRINT(4) WARNING, "");
	says(&said, PRINT(4) PRINT(8) WARNING PRINT(8),
		"<a.blk:12345:2: note: block 8\n12345 | static_print\n      | ^^^>");
	says(&said, "", "");
	says(&said, NULL, "");
	free(said.at);
}

/* A message that is the end, the beginning or a part of another is one of its own; what is no diagnostics is told too.
 */
static void parts(void **state)
{
	(void)state;
	growing said = {0};
	says(&said, "the cached code of kernel add is not used: damaged\n",
		"<the cached code of kernel add is not used: damaged>");
	says(&said, "the cached code of kernel add is not used", "<the cached code of kernel add is not used>");
	says(&said, "kernel add is not used: damaged", "<kernel add is not used: damaged>");
	says(&said, "kernel add is not used: damaged\n", "");
	says(&said, "a.blk:1:1: note: x\n   1 | y\n", "<a.blk:1:1: note: x\n   1 | y>");
	says(&said, "a.blk:1:1: note: x\n", "<a.blk:1:1: note: x>");
	/* a bar without a number, and a number without a bar, quote nothing */
	says(&said, "before\n|x\n12 apples\n12\n7 | y\n", "<before><|x><12 apples\n12\n7 | y>");
	free(said.at);
}

/* A line that quotes the source has its number, and a bar or nothing more; one that is set in belongs to the one
 * above. */
static void lines_of_a_message(void **state)
{
	(void)state;
	growing said = {0};
	says(&said, "a\n   12 |\n   \n   c\n12 apples\n7\nd\n   ",
		"<a\n   12 |\n   \n   c>"
		"<12 apples\n7>"
		"<d\n   >");
	says(&said, "\n", ""); /* nothing is told of nothing */
	free(said.at);
}

/* Without memory to remember, a message is told again. */
static void without_memory(void **state)
{
	(void)state;
	growing said = {.failed = true};
	says(&said, block, "<a.blk:12345:2: note: block 4\n12345 | static_print\n      | ^^^>");
	says(&said, block, "<a.blk:12345:2: note: block 4\n12345 | static_print\n      | ^^^>");
	free(said.at);
}

/* What cannot be said in this locale fails, and with it all that follows. */
static void no_text(void **state)
{
	(void)state;
	growing t = {0};
	grow_format(&t, "%d", 5);
	grow_format(&t, "%lc", (wint_t)0x4e00);
	assert_true(t.failed);
	grow_format(&t, "%d", 6);
	assert_string_equal(t.at, "5");
	free(t.at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_once), cmocka_unit_test(parts),
		cmocka_unit_test(without_memory), cmocka_unit_test(lines_of_a_message), cmocka_unit_test(no_text)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
