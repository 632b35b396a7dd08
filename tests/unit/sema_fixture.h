/* Compiles a text to tile IR in a fresh arena; shared by the tests of sema. */
#ifndef SEMA_FIXTURE_H
#define SEMA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sema/sema.h"

typedef struct compiled {
	arena memory;
	diags ds;
	ir_func *func;
	text signature, rendered, ir;
} compiled;

static inline void compile_request(compiled *c, const char *source, const blkc_define *defines, size_t ndefines,
	const blkc_promise *promises, size_t npromises)
{
	jmp_buf recover;
	*c = (compiled){{0}};
	c->memory.recover = &recover;
	if (setjmp(recover)) fail_msg("out of memory");
	arena *a = &c->memory;
	diags_init(&c->ds, a);
	c->signature.arena = c->rendered.arena = c->ir.arena = a;
	source_set set = {.arena = a};
	source_file *f = source_add(&set, &c->ds, (span){0}, "t.blk", source, strlen(source));
	sema_program *p = sema_load(a, &c->ds, names_new(a), &set, f);
	for (size_t i = 0; i < sema_kernel_count(p); i++) {
		sema_request r = {.kernel = sema_kernel_name(p, i),
			.defines = defines,
			.ndefines = ndefines,
			.promises = promises,
			.npromises = npromises};
		c->func = sema_specialise(p, &r, &c->signature);
	}
	if (c->ds.errors) c->func = NULL;
	diag_render_text(&c->ds, &c->rendered);
	if (!c->rendered.at) text_puts(&c->rendered, "");
	if (c->func) {
		text why = {.arena = a};
		if (!ir_verify(c->func, &why)) fail_msg("verifier: %s", why.at);
		ir_print(&c->ir, c->func);
	}
	c->memory.recover = NULL;
}

static inline void compile_text(compiled *c, const char *source)
{
	compile_request(c, source, NULL, 0, NULL, 0);
}

static inline void compiled_free(compiled *c)
{
	arena_free(&c->memory);
}

#endif
