/* Code that stands alone is for one value of what a launch computes: which, and how to have another.
 *
 * In: a compile's signatures.  Out: a note for each such constant, on standard error. */
#include "tool.h"

#include "package/defines.h"
#include "package/signature.h"

#include <stdio.h>
#include <string.h>

static void note(const signature *s, const signature_computed *c)
{
	const signature_constant *now = kernel_constant(s, c->name);
	if (!now) return;
	fprintf(stderr,
		"blkc: note: kernel %s: %s = %s is computed at each launch; this code is for launches with %s = %s; "
		"-D %s=VALUE binds it for all\n",
		s->kernel, c->name, c->value.source, c->name, now->value, c->name);
}

void tool_note_values(const blkc_result *r)
{
	for (size_t i = 0; !r->status && i < r->nkernels; i++) {
		signature *s;
		const char *text = r->kernels[i].signature;
		if (!strstr(text, "\ncomputed ") || signature_parse(text, strlen(text), &s)) continue;
		for (uint32_t k = 0; k < s->ncomputed; k++) note(s, &s->computed[k]);
		signature_free(s);
	}
}
