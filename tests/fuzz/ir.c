/* libFuzzer's entry for the reader of tile IR: any bytes are a diagnostic or a function; one that the verifier accepts
 * prints as text that reads as the same text again. */
#include "ir/ir.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ir_func *read_text(arena *a, diags *ds, const char *s, size_t n)
{
	source_file *file = ARENA_NEW(a, source_file);
	*file = (source_file){.name = "t.ir", .text = arena_strndup(a, s, n), .size = (uint32_t)n};
	return ir_read(a, ds, file);
}

static void check(arena *a, const uint8_t *bytes, size_t n)
{
	diags ds;
	text once = {.arena = a}, again = {.arena = a}, why = {.arena = a};
	diags_init(&ds, a);
	ir_func *f = read_text(a, &ds, (const char *)bytes, n);
	if (!f || !ir_verify(f, &why)) return;
	ir_print(&once, f);
	ir_func *g = read_text(a, &ds, once.at, once.n);
	if (!g || !ir_verify(g, &why)) {
		fprintf(stderr, "what is printed is not read: %s\n%s\n", why.at ? why.at : "", once.at);
		abort();
	}
	ir_print(&again, g);
	if (once.n != again.n || memcmp(once.at, again.at, once.n) != 0) {
		fprintf(stderr, "printed twice, not the same:\n%s\n%s\n", once.at, again.at);
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	jmp_buf out_of_memory;
	arena a = {.limit = (size_t)512 << 20};
	a.recover = &out_of_memory;
	if (memchr(bytes, 0, n)) return 0; /* a text has none */
	if (!setjmp(out_of_memory)) check(&a, bytes, n);
	arena_free(&a);
	return 0;
}
