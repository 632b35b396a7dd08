/* What the unit tests of the IR and its passes share: text in, function out; an arena a test. */
#ifndef TESTS_UNIT_IR_TEXT_H
#define TESTS_UNIT_IR_TEXT_H

#include "memory.h"
#include "../../compiler/ir/ir.h"

static inline ir_func *read_bytes(const char *s, size_t n)
{
	source_file *file = ARENA_NEW(&memory, source_file);
	*file = (source_file){.name = "test.ir", .text = arena_strndup(&memory, s, n), .size = n};
	return ir_read(&memory, &messages, file);
}

static inline const char *print(const ir_func *f)
{
	text out = {.arena = &memory};
	ir_print(&out, f);
	return out.at;
}

/* The function that the text stands for; the test fails with the message when there is none, or it does not verify. */
static inline ir_func *read_text(const char *s)
{
	ir_func *f = read_bytes(s, strlen(s));
	text why = {.arena = &memory};
	if (!f) {
		diag_render_text(&messages, &why);
		fail_msg("%s", why.at);
	}
	if (!ir_verify(f, &why)) fail_msg("%s\n%s", why.at, print(f));
	return f;
}

static inline void check_verifies(const ir_func *f)
{
	text why = {.arena = &memory};
	if (!ir_verify(f, &why)) fail_msg("%s\n%s", why.at, print(f));
}

#endif
