/* Programs: a document and what it imports, parsed and checked.
 *
 * In: a path and a text.  Out: trees, diagnostics, and what names were bound to.
 * The one idea: a program owns an arena, which is dropped whole, so that no change of a text leaves anything behind.
 * Texts of open documents are entered first: an import finds them under their real path, before the disk. */
#include "lsp.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/lib.h"

enum { MEMORY = 1 << 30 }; /* of one program */

bool program_uses(const program *p, const char *path)
{
	for (uint32_t i = 0; i < p->trees.n; i++) {
		const source_file *f = p->trees.at[i].file;
		if (strcmp(f->name, path) == 0 || strcmp(f->identity, path) == 0) return true;
	}
	return false;
}

void program_free(program *p)
{
	arena_free(&p->arena);
	free(p);
}

static bool is_library(const source_file *f, const char *path)
{
	const lib_source *lib = lib_find(path);
	return lib && lib->bytes == f->size && memcmp(lib->text, f->text, f->size) == 0;
}

/* The trees of a file and its imports, for the features; what is wrong with them was reported when they were
 * checked. */
static void add_trees(program *p, diags *unheard, source_file *file, span via, unsigned depth)
{
	for (uint32_t i = 0; i < p->trees.n; i++)
		if (p->trees.at[i].file == file) return;
	uint32_t place = p->trees.n;
	vec_push(&p->arena, &p->trees, ((tree){.file = file, .via = via}));
	ast *root = parse_file(&p->arena, unheard, p->names, file);
	p->trees.at[place].root = root;
	for (uint32_t i = 0; i < root->nkids && depth < 256; i++) {
		const ast *n = root->kids[i];
		if (!n || n->kind != AST_IMPORT || !n->text) continue;
		source_file *f = source_import(&p->sources, unheard, file, n->text, n->mark);
		if (f && !is_library(f, n->text)) add_trees(p, unheard, f, via.file ? via : n->at, depth + 1);
	}
}

static void check_all(server *s, program *p)
{
	text signature = {.arena = &p->arena};
	p->notes = sema_notes_new(&p->arena);
	sema_program *checked = sema_load(&p->arena, &p->diags, p->names, &p->sources, p->main);
	for (size_t i = 0; i < sema_kernel_count(checked); i++) {
		sema_request r = {.kernel = sema_kernel_name(checked, i),
			.defines = s->defines,
			.ndefines = s->ndefines,
			.shared_defines = true,
			.notes = p->notes};
		sema_specialise(checked, &r, &signature);
	}
}

program *program_open(server *s, const char *path, const char *bytes, size_t size, bool check)
{
	program *p = must(calloc(1, sizeof *p));
	jmp_buf failed;
	p->arena.limit = MEMORY;
	p->arena.recover = &failed;
	if (setjmp(failed)) {
		program_free(p);
		longjmp(s->out_of_memory, 1);
	}
	diags unheard;
	diags_init(&p->diags, &p->arena);
	diags_init(&unheard, &p->arena);
	p->sources = (source_set){
		.arena = &p->arena, .include_paths = s->include_paths, .ninclude_paths = s->ninclude_paths};
	p->names = names_new(&p->arena);
	for (const document *d = s->documents; d; d = d->next)
		if (d->path[0] == '/' && strcmp(d->path, path) != 0)
			source_add(&p->sources, &unheard, (span){0}, d->path, d->text, d->size);
	p->main = source_add(&p->sources, &p->diags, (span){0}, path, bytes, size);
	if (!p->main && !bytes) {
		program_free(p);
		return NULL;
	}
	if (!p->main) p->main = source_add(&p->sources, &unheard, (span){0}, path, "", 0); /* too large: reported */
	if (check) check_all(s, p);
	add_trees(p, &unheard, p->main, (span){0}, 0);
	p->arena.recover = &s->out_of_memory;
	return p;
}

program *program_of(server *s, document *d)
{
	if (!d->program) d->program = program_open(s, d->path, d->text, d->size, true);
	return d->program;
}
