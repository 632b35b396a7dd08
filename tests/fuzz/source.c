/* libFuzzer's entry for the front end: any bytes are diagnostics, or tile IR that the verifier accepts. */
#include "sema/sema.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static void check(arena *a, const uint8_t *bytes, size_t n)
{
	diags ds;
	text signature = {.arena = a}, out = {.arena = a}, why = {.arena = a};
	source_set set = {.arena = a};
	diags_init(&ds, a);
	source_file *f = source_add(&set, &ds, (span){0}, "t.blk", (const char *)bytes, n);
	if (!f) return;
	sema_program *p = sema_load(a, &ds, names_new(a), &set, f);
	for (size_t i = 0; i < sema_kernel_count(p); i++) {
		uint32_t errors = ds.errors;
		ir_func *k = sema_specialise(p, &(sema_request){.kernel = sema_kernel_name(p, i)}, &signature);
		if (k && ds.errors == errors && !ir_verify(k, &why)) {
			fprintf(stderr, "the verifier refuses what was checked: %s\n", why.at);
			abort();
		}
	}
	diag_render_text(&ds, &out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	jmp_buf out_of_memory;
	arena a = {.limit = (size_t)512 << 20};
	a.recover = &out_of_memory;
	if (!setjmp(out_of_memory)) check(&a, bytes, n);
	arena_free(&a);
	return 0;
}
