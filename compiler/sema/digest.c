/* What a kernel's tuning results depend on, as one number: the text of the main file and of all that it imports,
 * without the autotune blocks, and of this kernel's block the clauses that say how results are compared.
 *
 * So a configuration that is added to a block leaves what is known of the others valid, and a change in an imported
 * file does not.  Of the built-in library those files count that the program imports; the rest goes with the compiler's
 * version. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "internal.h"

#include <string.h>

/* The file's bytes from *from up to the next autotune block, or to the end; *from moves behind that block. */
static uint32_t stretch(const sema_program *p, const source_file *f, uint32_t *from)
{
	const ast *next = NULL;
	for (uint32_t i = 0; i < p->autotunes.n; i++) {
		const ast *n = p->autotunes.at[i];
		if (n->at.file == f && n->at.begin >= *from && (!next || n->at.begin < next->at.begin)) next = n;
	}
	uint32_t end = next ? next->at.begin : (uint32_t)f->size;
	*from = next ? next->at.end : (uint32_t)f->size;
	return end;
}

void autotune_digest(const sema_program *p, const ast *block, char out[33])
{
	XXH3_state_t state;
	XXH128_canonical_t c;
	XXH3_128bits_reset(&state);
	for (uint32_t i = 0; i < p->sources->files.n; i++) {
		const source_file *f = p->sources->files.at[i];
		if (strncmp(f->name, "<lib>/", 6) == 0 && !strchr(f->name + 6, '/')) continue;
		for (uint32_t at = 0, begin = 0; at < f->size; begin = at) {
			uint32_t end = stretch(p, f, &at);
			XXH3_128bits_update(&state, f->text + begin, end - begin);
		}
		XXH3_128bits_update(&state, "", 1);
	}
	for (uint32_t i = 1; i < block->nkids; i++) {
		const ast *k = block->kids[i];
		if (!k || (k->kind != AST_RESET && k->kind != AST_RESTORE && k->kind != AST_SCRATCH &&
				  k->kind != AST_TOLERANCE))
			continue;
		XXH3_128bits_update(&state, k->at.file->text + k->at.begin, k->at.end - k->at.begin);
	}
	XXH128_canonicalFromHash(&c, XXH3_128bits_digest(&state));
	for (int i = 0; i < 16; i++) {
		static const char hex[] = "0123456789abcdef";
		out[2 * i] = hex[c.digest[i] >> 4];
		out[2 * i + 1] = hex[c.digest[i] & 15];
	}
	out[32] = 0;
}
