/* From files to declarations: parses the main file and its imports, and enters what they declare.
 *
 * All user files share one namespace: an import makes the other file's names visible everywhere, a second import of the
 * same file does nothing, a cycle is an error.  The built-in library is a namespace of its own, behind the built-in
 * functions, so that a user may reuse its names without changing what it does.  Its files in folders, blk/gemm.blk, are
 * seen by who imports them, the others by every program. */
#include "internal.h"

#include "../lib/lib.h"

#include <string.h>

typedef struct import {
	struct import *up;
	source_file *file;
	span at;
} import;

typedef struct loader {
	sema_program *program;
	VEC(source_file *) done;
	bool library, imported;
} loader;

static void declare(loader *l, declaration_kind kind, const ast *node, const char *name, span at)
{
	sema_program *p = l->program;
	name_table *table = l->library ? &p->library : &p->user;
	if (!name) return;
	declaration *old = name_table_find(table, name);
	if (old) {
		diag *d = diag_error(p->diags, 202, at, "'%s' is declared twice", name);
		diag_add_label(p->diags, d, old->at, "first declared here");
		return;
	}
	declaration *d = ARENA_NEW(p->arena, declaration);
	*d = (declaration){.kind = kind, .name = name, .node = node, .at = at, .library = l->library};
	if (kind == DECLARES_FN) {
		d->fn = ARENA_NEW(p->arena, sema_fn);
		*d->fn = (sema_fn){.name = name, .node = node, .library = l->library, .imported = l->imported};
	}
	name_table_set(p->arena, table, name, d);
	if (l->library) {
		vec_push(p->arena, &p->library_declarations, d);
		return;
	}
	vec_push(p->arena, &p->declarations, d);
	if (kind == DECLARES_KERNEL) vec_push(p->arena, &p->kernels, d);
}

/* Two parameters of one name, and a kernel's or fn's clauses that need no bindings. */
static void check_parameters(sema_program *p, const ast *n)
{
	const ast *list = n->nkids ? n->kids[0] : NULL;
	name_table seen = {0};
	if (n->kind == AST_KERNEL && list && list->nkids > 256)
		diag_error(p->diags, 606, mark_of(n), "a kernel of more than 256 parameters");
	for (uint32_t i = 0; list && i < list->nkids; i++) {
		const ast *k = list->kids[i];
		if (!k || !k->text) continue;
		const ast *old = name_table_find(&seen, k->text);
		if (old) {
			diag *d = diag_error(p->diags, 202, mark_of(k), "'%s' is declared twice", k->text);
			diag_add_label(p->diags, d, mark_of(old), "first declared here");
		}
		name_table_set(p->arena, &seen, k->text, (void *)k);
		if (n->kind == AST_KERNEL && (k->nkids == 0 || !k->kids[0])) {
			diag *d = diag_error(p->diags, 606, mark_of(k), "kernel parameter '%s' has no type", k->text);
			diag_set_hint(p->diags, d, "kernel parameters are typed: %s: i32", k->text);
		}
		if (n->kind != AST_KERNEL && k->nkids > 2) {
			diag *d =
				diag_error(p->diags, 621, k->kids[2]->at, "bounds are for a kernel's const parameters");
			diag_set_hint(p->diags, d, "static_assert says it inside of a function");
		}
		if (n->kind == AST_KERNEL && !k->flag && k->nkids > 1 && k->kids[1]) {
			diag *d = diag_error(p->diags, 606, k->kids[1]->at,
				"a run-time parameter of a kernel has no default: the host passes it");
			diag_set_hint(p->diags, d, "only const parameters have defaults");
		}
	}
}

/* A space's parameters stand for what is written where it is imported. */
static void check_space(sema_program *p, const ast *n)
{
	const ast *list = n->kids[0];
	check_parameters(p, n);
	for (uint32_t i = 0; i < list->nkids; i++) {
		const ast *k = list->kids[i];
		if (!k || (!k->flag && !k->kids[0])) continue;
		diag *d = diag_error(p->diags, 620, k->at, "a parameter of a space has no type and no 'const'");
		diag_set_hint(p->diags, d, "it stands for what is written where the space is imported: %s",
			k->text ? k->text : "N");
	}
	for (uint32_t i = 1; i < n->nkids; i++)
		if (n->kids[i] && n->kids[i]->kind == AST_USE)
			diag_error(p->diags, 620, n->kids[i]->at,
				"a space imports no other: a kernel's block may import several");
}

static void load_file(loader *l, source_file *file, import *up);

/* The library's file that this is, if it is one. */
static const lib_source *library_file(const source_file *f, const char *path)
{
	const lib_source *lib = lib_find(path);
	return lib && lib->bytes == f->size && memcmp(lib->text, f->text, f->size) == 0 ? lib : NULL;
}

static bool is_imported(const lib_source *lib)
{
	return strchr(lib->name, '/') != NULL;
}

static void import_library_file(sema_program *p, source_file *f, const lib_source *lib)
{
	uint32_t bit = 1u << (lib - lib_sources);
	if (!is_imported(lib) || (p->library_loaded & bit)) return; /* the others are visible without an import */
	p->library_loaded |= bit;
	loader l = {.program = p, .library = true, .imported = true};
	load_file(&l, f, NULL);
}

static void follow(loader *l, source_file *from, const ast *n, import *up)
{
	sema_program *p = l->program;
	unsigned depth = 0;
	if (!n->text) return;
	for (import *i = up; i; i = i->up) depth++;
	if (depth >= SEMA_MAX_IMPORTS) {
		diag_error(p->diags, 708, n->at, "imports nest deeper than %d", SEMA_MAX_IMPORTS);
		return;
	}
	source_file *f = source_import(p->sources, p->diags, from, n->text, mark_of(n));
	const lib_source *lib = f ? library_file(f, n->text) : NULL;
	if (!f) p->incomplete = true;
	if (lib) import_library_file(p, f, lib);
	if (!f || lib) return;
	for (import *i = up; i; i = i->up)
		if (i->file == f) {
			diag *d = diag_error(p->diags, 310, n->at, "'%s' imports itself", f->name);
			for (import *k = up; k && k != i; k = k->up)
				diag_add_label(p->diags, d, k->at, "imported here");
			return;
		}
import next = {up, f, n->at };
	load_file(l, f, &next);
}

static void enter(loader *l, const ast *n)
{
	sema_program *p = l->program;
	switch (n->kind) {
	case AST_BIND:
		if (n->nkids > 2 && n->kids[0]) declare(l, DECLARES_CONST, n, n->kids[0]->text, mark_of(n->kids[0]));
		break;
	case AST_FN:
		declare(l, DECLARES_FN, n, n->text, mark_of(n));
		check_parameters(p, n);
		break;
	case AST_KERNEL:
		declare(l, DECLARES_KERNEL, n, n->text, mark_of(n));
		check_parameters(p, n);
		break;
	case AST_AUTOTUNE:
		if (!l->library) vec_push(p->arena, &p->autotunes, n);
		break;
	case AST_SPACE:
		declare(l, DECLARES_SPACE, n, n->text, mark_of(n));
		check_space(p, n);
		vec_push(p->arena, &p->autotunes, n);
		break;
	default: break;
	}
}

static void load_file(loader *l, source_file *file, import *up)
{
	sema_program *p = l->program;
	for (uint32_t i = 0; i < l->done.n; i++)
		if (l->done.at[i] == file) return;
	vec_push(p->arena, &l->done, file);
	uint32_t errors = p->diags->errors;
	ast *tree = parse_file(p->arena, p->diags, p->names, file);
	if (p->diags->errors != errors) p->broken = true;
	if (!tree) return;
	for (uint32_t i = 0; i < tree->nkids; i++)
		if (tree->kids[i] && tree->kids[i]->kind == AST_IMPORT) follow(l, file, tree->kids[i], up);
	for (uint32_t i = 0; i < tree->nkids; i++)
		if (tree->kids[i]) enter(l, tree->kids[i]);
}

/* Parses file `index` of the library, unless that was done. */
static void load_library_file(sema_program *p, uint32_t index)
{
	if (is_imported(&lib_sources[index]) || (p->library_loaded >> index & 1)) return;
	p->library_loaded |= 1u << index;
	const lib_source *lib = &lib_sources[index];
	loader l = {.program = p, .library = true};
	const char *name = arena_printf(p->arena, "<lib>/%s", lib->name);
	source_file *f = source_add(p->sources, p->diags, (span){0}, name, lib->text, lib->bytes);
	if (f) load_file(&l, f, NULL);
}

declaration *sema_library_find(sema_program *p, const char *name, const char *likely)
{
	declaration *d = name_table_find(&p->library, name);
	const lib_source *first = lib_find(likely);
	if (!d && first) {
		load_library_file(p, (uint32_t)(first - lib_sources));
		d = name_table_find(&p->library, name);
	}
	for (uint32_t i = 0; !d && lib_sources[i].name; i++) {
		load_library_file(p, i);
		d = name_table_find(&p->library, name);
	}
	return d;
}

/* By its text, as the file is not parsed. */
const char *sema_library_file_of(const sema_program *p, const char *name)
{
	for (uint32_t i = 0; lib_sources[i].name; i++) {
		const lib_source *lib = &lib_sources[i];
		if (!is_imported(lib) || (p->library_loaded >> i & 1)) continue;
		static const char *const words[] = {"fn", "autotune"};
		for (int k = 0; k < 2; k++)
			if (strstr(lib->text, arena_printf(p->arena, "\n%s %s(", words[k], name))) return lib->name;
	}
	return NULL;
}

void sema_load_files(sema_program *p, source_file *main_file)
{
	loader l = {.program = p};
import top = {.file = main_file };
	load_file(&l, main_file, &top);
}
