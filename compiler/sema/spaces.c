/* Spaces of configurations that an autotune block imports by name:
 *
 *   autotune gemm_space(M, N, K, T = f16) { BM: [64, 128]; where BM < 2 * M; .. }
 *   autotune linear key(M, N, K) { import gemm_space(M, N, K); BM: [128]; }
 *
 * In: a kernel's block.  Out: the same block with the space's items in place of each import.  The one idea: a space's
 * parameter is a name for what is written at the import, so its items are copied with one for the other, and nothing
 * behind this file knows of spaces.  What the block says itself counts: its own axis, order and try stand in place of
 * the space's. */
#include "internal.h"

#include <assert.h>
#include <string.h>

/* What each parameter stands for, in their order. */
typedef struct substitution {
	sema_program *program;
	const ast *use, *space;
	const ast **values;
} substitution;

static uint32_t parameter_of(const ast *space, const char *name)
{
	const ast *list = space->kids[0];
	uint32_t i = 0;
	while (i < list->nkids && !(list->kids[i] && list->kids[i]->text == name)) i++;
	return i;
}

static const ast *copy(const substitution *u, const ast *n)
{
	if (!n) return NULL;
	uint32_t k = n->kind == AST_NAME ? parameter_of(u->space, n->text) : u->space->kids[0]->nkids;
	if (k < u->space->kids[0]->nkids) return u->values[k];
	ast *c = ARENA_NEW(u->program->arena, ast);
	*c = *n;
	c->kids = ARENA_ARRAY(u->program->arena, ast *, n->nkids + 1);
	for (uint32_t i = 0; i < n->nkids; i++) c->kids[i] = (ast *)copy(u, n->kids[i]);
	/* a name that the kernel must have: what is said of it is said of the import */
	if (n->kind == AST_AXIS || n->kind == AST_ARGUMENT) c->mark = u->use->mark;
	return c;
}

/* Binds the arguments in order, then the named ones. */
static bool bind_values(substitution *u)
{
	diags *ds = u->program->diags;
	const ast *list = u->space->kids[0], *use = u->use;
	u->values = ARENA_ARRAY(u->program->arena, const ast *, list->nkids + 1);
	for (uint32_t i = 0; i <= list->nkids; i++) u->values[i] = NULL;
	for (uint32_t i = 0; i < use->nkids; i++) {
		const ast *a = use->kids[i];
		if (!a || !a->nkids || !a->kids[0]) return false;
		uint32_t k = a->text ? parameter_of(u->space, a->text) : i;
		if (k >= list->nkids || u->values[k]) {
			const char *why = k < list->nkids ? "is given twice" : "is no parameter";
			diag *d = a->text ? diag_error(ds, 620, mark_of(a), "'%s' of '%s' %s", a->text, use->text, why)
					  : diag_error(ds, 620, a->at, "too many arguments for '%s'", use->text);
			diag_add_label(ds, d, mark_of(u->space), "declared here");
			return false;
		}
		u->values[k] = a->kids[0];
	}
	for (uint32_t i = 0; i < list->nkids; i++) {
		const ast *k = list->kids[i];
		if (!k) return false;
		if (!u->values[i]) u->values[i] = k->kids[1];
		if (u->values[i]) continue;
		diag *d = diag_error(ds, 620, use->at, "'%s' needs '%s'", use->text, k->text);
		diag_add_label(ds, d, k->at, "declared here");
		return false;
	}
	return true;
}

/* Whether the kernel has what the space tunes. */
static bool check_tuned(const substitution *u, const ast *kernel, const char *name, const ast *value, span at)
{
	const ast *k = name ? find_parameter(kernel, name) : NULL;
	if (!name || (k && k->flag) || (!k && kernel_option_find(name))) return true;
	diags *ds = u->program->diags;
	diag *d = diag_error(ds, 620, mark_of(u->use), "'%s' tunes '%s', which is no const parameter of '%s'",
		u->use->text, name, kernel->text);
	diag_add_label(ds, d, at, "tuned here");
	diag_add_label(ds, d, mark_of(kernel), "declared here");
	if (!k && value)
		diag_set_hint(ds, d, "give it one: const %s: %s = %.*s", name, value->kind == AST_BOOL ? "bool" : "i32",
			(int)(value->at.end - value->at.begin), value->at.file->text + value->at.begin);
	return false;
}

/* Whether the block says itself what this item of a space would. */
static bool is_replaced(const ast *block, const ast *item)
{
	for (uint32_t i = 1; i < block->nkids; i++) {
		const ast *k = block->kids[i];
		if (k && k->kind == item->kind && k->text == item->text &&
			(k->kind == AST_AXIS || k->kind == AST_ORDER || k->kind == AST_TRY || k->kind == AST_TOLERANCE))
			return true;
	}
	return false;
}

typedef VEC(ast *) items;

static void use_space(sema_program *p, const ast *kernel, const ast *block, const ast *use, items *out)
{
	substitution u = {.program = p, .use = use};
	declaration *d = use->text ? name_table_find(&p->user, use->text) : NULL;
	if (!d && use->text) d = name_table_find(&p->library, use->text);
	if (!use->text || (!d && p->incomplete)) return;
	if (!d || d->kind != DECLARES_SPACE) {
		const char *file = sema_library_file_of(p, use->text);
		diag *e = diag_error(p->diags, 620, mark_of(use), "there is no space '%s'", use->text);
		if (d) diag_add_label(p->diags, e, d->at, "this is none");
		if (file)
			diag_set_hint(p->diags, e, "it is in the library: import \"%s\"; at the top of the file", file);
		else
			diag_set_hint(p->diags, e,
				"a space is an autotune block with parameters: autotune %s(M, N) { .. }", use->text);
		return;
	}
	u.space = d->node;
	if (!bind_values(&u)) return;
	bool ok = true;
	for (uint32_t i = 1; i < u.space->nkids; i++) {
		const ast *k = u.space->kids[i];
		if (!k || k->kind == AST_USE || is_replaced(block, k)) continue;
		if (k->kind == AST_AXIS)
			ok = check_tuned(&u, kernel, k->text, k->nkids ? k->kids[0] : NULL, mark_of(k)) && ok;
		for (uint32_t j = 0; k->kind == AST_CONFIG && j < k->nkids && ok; j++) {
			const ast *v = k->kids[j];
			ok = !v || !v->nkids || check_tuned(&u, kernel, v->text, v->kids[0], mark_of(v));
		}
		vec_push(p->arena, out, (ast *)copy(&u, k));
	}
	if (!ok) out->n = 0;
}

const ast *space_expand(sema_program *p, const ast *kernel, const ast *block)
{
	assert(block->kind == AST_AUTOTUNE);
	items all = {0};
	bool uses = false;
	vec_push(p->arena, &all, block->kids[0]);
	for (uint32_t i = 1; i < block->nkids; i++) {
		ast *k = block->kids[i];
		items more = {0};
		if (!k || k->kind != AST_USE) {
			vec_push(p->arena, &all, k);
			continue;
		}
		uses = true;
		use_space(p, kernel, block, k, &more);
		for (uint32_t j = 0; j < more.n; j++) vec_push(p->arena, &all, more.at[j]);
	}
	if (!uses) return block;
	ast *n = ARENA_NEW(p->arena, ast);
	*n = *block;
	n->kids = all.at;
	n->nkids = all.n;
	return n;
}
