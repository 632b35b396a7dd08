/* Top-level constants: evaluated when they are first named, once a specialisation, in a frame of their own.  One that
 * reads an option is evaluated wherever it is named. */
#include "internal.h"

#include <assert.h>

static sval evaluate(sema *s, const declaration *d)
{
	assert(d->kind == DECLARES_CONST);
	struct sema_private *p = s->private;
	const ast *n = d->node;
	frame f = {.up = p->frame, .id = ++p->next_frame, .library = d->library};
	scope_mark m = scope_open(s);
	f.returned = slot_new(s, sval_bool(false, d->at));
	f.result = slot_new(s, (sval){.kind = SVAL_UNDEFINED, .at = d->at});
	p->frame = &f;
	ir_builder saved = scratch_open(s, d->at);
	sval v = sema_constant_expression(s, n->kids[2], "the value of a 'const'");
	if (n->kids[1]) {
		const stype *t = sema_as_stype(s, sema_expression(s, n->kids[1]), "the type of a 'const'");
		v = t ? sema_coerce(s, v, t, "the value") : sval_poison(d->at);
	}
	scope_close(s, m);
	p->frame = f.up;
	scratch_close(s, saved);
	return v;
}

sval scope_constant(sema *s, declaration *d, span at)
{
	assert(d->kind == DECLARES_CONST);
	struct sema_private *p = s->private;
	name_table *table = d->library ? &p->library_constants : &p->constants;
	constant_state *c = name_table_find(table, d->name);
	if (c && c->progress == CONSTANT_IN_PROGRESS) {
		diag *e = sema_diag(s, 311, at, "the constant '%s' depends on itself", d->name);
		diag_add_label(s->diags, e, d->at, "declared here");
		c->value = sval_poison(at);
		return c->value;
	}
	if (!c || c->progress == CONSTANT_READS_OPTION) {
		uint32_t reads = p->option_reads;
		if (!sema_enter(s, at)) return sval_poison(at);
		if (!c) {
			c = ARENA_NEW(s->arena, constant_state);
			name_table_set(s->arena, table, d->name, c);
		}
		c->progress = CONSTANT_IN_PROGRESS;
		c->value = evaluate(s, d);
		bool again = p->option_reads != reads && !sval_is_poison(c->value);
		c->progress = again ? CONSTANT_READS_OPTION : CONSTANT_DONE;
		sema_leave(s);
	}
	sval v = c->value;
	v.at = at;
	return v;
}
