/* Dead code: what nobody uses and what has no effect goes.
 *
 * In: any level.  Out: no unused pure operation or load, no carried value that only feeds itself, no unused result of
 * an if, no empty if. The one idea: mark from the effects backwards (an operation is live when it has an effect or a
 * live user), then sweep. Marking walks a work list, so carried values that keep only each other alive are found dead.
 */
#include "passes/passes.h"

typedef struct dce {
	arena *arena;
	bool *live; /* by value id */
	VEC(ir_value *) work;
} dce;

static void mark(dce *d, ir_value *v)
{
	if (d->live[v->id]) return;
	d->live[v->id] = true;
	vec_push(d->arena, &d->work, v);
}

static bool has_effect(const ir_op *o)
{
	return ir_touches(o, IR_EFFECTS) || ir_is_volatile(o);
}

/* True where the operation itself must stay: an effect in it or in its regions. A while may loop for ever: it stays if
 * anything in it does, or if its results are used; an endless loop without effects may be removed. */
static bool keeps(const ir_op *o)
{
	if (has_effect(o)) return true;
	for (unsigned r = 0; r < o->nregions; r++)
		for (const ir_op *p = o->regions[r]->first; p; p = p->next)
			if (keeps(p)) return true;
	return false;
}

/* Operands that matter whatever happens to the results. */
static void mark_needed(dce *d, const ir_op *o)
{
	ir_value *conditions[IR_SOURCES];
	unsigned n = ir_conditions(o, conditions);
	for (unsigned i = 0; i < n; i++) mark(d, conditions[i]);
	for (unsigned i = 0; n == 0 && i < o->nargs; i++) mark(d, ir_arg(o, i));
}

static void mark_parents(dce *d, const ir_op *o)
{
	for (const ir_op *p = o->block->parent; p; p = p->block->parent) mark_needed(d, p);
}

static void mark_effects(dce *d, const ir_block *b)
{
	for (const ir_op *o = b->first; o; o = o->next) {
		if (has_effect(o)) {
			mark_needed(d, o);
			mark_parents(d, o);
		}
		for (unsigned r = 0; r < o->nregions; r++) mark_effects(d, o->regions[r]);
	}
}

/* What a live value is made of, and what makes its operation run. */
static void mark_origin(dce *d, const ir_value *v)
{
	assert(d->live[v->id]);
	const ir_op *o = v->def ? v->def : v->block->parent;
	ir_value *from[IR_SOURCES];
	unsigned n = ir_sources(v, from);
	if (!o) return;
	mark_needed(d, o);
	mark_parents(d, o);
	for (unsigned i = 0; i < n; i++) mark(d, from[i]);
	for (unsigned r = 0; v->def && n == 0 && r < o->nregions; r++) { /* the body of a reduction */
		const ir_op *last = o->regions[r]->last;
		for (unsigned k = 0; k < last->nargs; k++) mark(d, ir_arg(last, k));
	}
}

static void sweep_block(dce *d, ir_block *b);

static bool any_live(const dce *d, const ir_op *o)
{
	for (unsigned i = 0; i < o->nresults; i++)
		if (d->live[o->results[i]->id]) return true;
	return false;
}

/* Removes carried values and results that are dead; the terminators' operands go with them. */
static void sweep_control(dce *d, ir_op *o)
{
	if (o->kind == IR_IF)
		for (unsigned i = o->nresults; i-- > 0;) {
			if (d->live[o->results[i]->id]) continue;
			for (unsigned r = 0; r < 2; r++) ir_remove_arg(o->regions[r]->last, i);
			ir_remove_result(o, i);
		}
	if (o->kind == IR_FOR)
		for (unsigned i = o->nresults; i-- > 0;) {
			if (d->live[o->results[i]->id] || d->live[o->regions[0]->args[i + 1]->id]) continue;
			ir_remove_arg(o->regions[0]->last, i);
			ir_remove_arg(o, i + 3);
			ir_remove_result(o, i);
		}
	if (o->kind == IR_WHILE) {
		ir_block *before = o->regions[0], *after = o->regions[1];
		for (unsigned i = o->nresults; i-- > 0;) {
			if (d->live[o->results[i]->id] || d->live[after->args[i]->id]) continue;
			ir_remove_arg(before->last, i + 1);
			ir_remove_result(o, i);
		}
		for (unsigned i = before->nargs; i-- > 0;) {
			if (d->live[before->args[i]->id]) continue;
			ir_remove_arg(after->last, i);
			ir_remove_arg(o, i);
		}
	}
}

/* Arguments of regions whose uses the sweep has just removed. */
static void drop_arguments(dce *d, ir_op *o)
{
	if (o->kind == IR_FOR)
		for (unsigned i = o->regions[0]->nargs; i-- > 1;)
			if (o->nresults < o->regions[0]->nargs - 1 && !d->live[o->regions[0]->args[i]->id] &&
				!o->regions[0]->args[i]->uses)
				ir_block_remove_arg(o->regions[0], i);
	assert(o->kind != IR_FOR || o->regions[0]->nargs == o->nresults + 1u);
	if (o->kind == IR_WHILE)
		for (unsigned r = 0; r < 2; r++) {
			unsigned wanted = r ? o->nresults : o->nargs;
			for (unsigned i = o->regions[r]->nargs; i-- > 0;)
				if (o->regions[r]->nargs > wanted && !d->live[o->regions[r]->args[i]->id])
					ir_block_remove_arg(o->regions[r], i);
			assert(o->regions[r]->nargs == wanted);
		}
}

static void sweep_block(dce *d, ir_block *b)
{
	for (ir_op *o = b->last, *previous; o; o = previous) { /* backwards: users before what they use */
		previous = o->prev;
		if (ir_has(o, IR_TERMINATOR)) continue;
		if (!any_live(d, o) && !keeps(o)) {
			ir_erase(o);
			continue;
		}
		if (!ir_has(o, IR_CONTROL)) continue;
		sweep_control(d, o);
		for (unsigned r = o->nregions; r-- > 0;) sweep_block(d, o->regions[r]);
		drop_arguments(d, o);
	}
}

bool pass_dce(pass_context *p, ir_func *f)
{
	dce d = {.arena = p->arena, .live = ARENA_ARRAY(p->arena, bool, f->nvalues)};
	mark_effects(&d, f->body);
	while (d.work.n) mark_origin(&d, d.work.at[--d.work.n]);
	sweep_block(&d, f->body);
	return true;
}
