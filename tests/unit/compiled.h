/* What unit tests share that compile text: the artifacts of its only kernel, and how often something stands in one. */
#ifndef BLK_UNIT_COMPILED_H
#define BLK_UNIT_COMPILED_H

#include "compiler/blkc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Of the last text that was compiled; "" where it was not asked for. */
static char ir[1 << 18], ptx[1 << 20], report[1 << 16], sig[1 << 14];

static inline void compile_text(
	const char *source, const char *target, const blkc_promise *promises, size_t n, unsigned emit)
{
	static const struct {
		unsigned kind;
		char *text;
		size_t room;
	} kinds[] = {{BLKC_EMIT_LAYOUT, ir, sizeof ir}, {BLKC_EMIT_PTX, ptx, sizeof ptx},
		{BLKC_EMIT_EXPLAIN, report, sizeof report}};
	blkc_request request = {.size = sizeof request,
		.name = "test.blk",
		.text = source,
		.text_bytes = strlen(source),
		.target = target,
		.promises = promises,
		.npromises = n,
		.emit = emit,
		.no_line_info = 1,
		.verify_each = 1};
	blkc_result *r = blkc_compile(&request);
	assert_non_null(r);
	if (r->status) fail_msg("%s\n%s", source, r->diagnostics);
	ir[0] = ptx[0] = report[0] = 0;
	for (size_t i = 0; i < r->nartifacts; i++)
		for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
			if (r->artifacts[i].kind == kinds[k].kind)
				snprintf(kinds[k].text, kinds[k].room, "%s", (const char *)r->artifacts[i].bytes);
	snprintf(sig, sizeof sig, "%s", r->kernels[0].signature);
	blkc_result_free(r);
}

static inline int count(const char *in, const char *word)
{
	int n = 0;
	for (const char *at = in; (at = strstr(at, word)); at += strlen(word)) n++;
	return n;
}

#endif
