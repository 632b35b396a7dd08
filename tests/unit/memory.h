/* An arena and its diagnostics for each test: TEST(f) is a row of cmocka's table that sets them up and frees them. */
#ifndef TESTS_UNIT_MEMORY_H
#define TESTS_UNIT_MEMORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../compiler/support/diag.h"

static arena memory;
static diags messages;

static inline int set_up(void **state)
{
	static jmp_buf out;
	(void)state;
	memory = (arena){.recover = &out};
	if (setjmp(out)) return 1;
	diags_init(&messages, &memory);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	arena_free(&memory);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
