/* The slice of a loop's body: what the addresses and masks of its copies are computed from.
 *
 * In: values of a loop's body.  Out: marks on all that they depend on inside it, carried values included; later, clones
 * of what is marked for another iteration.  The one idea: only operations inside threads may be in it, so a clone costs
 * arithmetic and touches neither memory nor other threads. */
#include "pipeline.h"

static bool inside_threads(const ir_op *o)
{
	return o->nregions == 0 && o->nresults == 1 && o->kind != IR_CONVERT_LAYOUT &&
	       (ir_has(o, IR_FREE | IR_ELEMENTWISE | IR_SHAPE) || o->kind == IR_HINT);
}

bool pipeline_slice(pipeline *p, const ir_value *v)
{
	assert(v->id < p->nvalues);
	if (ir_defined_outside(v, p->loop) || p->sliced[v->id]) return true;
	if (!v->def) {
		if (v->block != p->body) return false;
		p->sliced[v->id] = true;
		return v->index == 0 || pipeline_slice(p, ir_arg(p->body->last, v->index - 1u));
	}
	if (v->def->block != p->body || !inside_threads(v->def)) return false;
	p->sliced[v->id] = true;
	for (unsigned i = 0; i < v->def->nargs; i++)
		if (!pipeline_slice(p, ir_arg(v->def, i))) return false;
	return true;
}

void pipeline_hoist(pipeline *p, ir_op *before)
{
	for (ir_op *o = p->body->first, *next; o; o = next) {
		next = o->next;
		if (o->nresults == 1 && o->results[0]->id < p->nvalues && p->sliced[o->results[0]->id] && o != before)
			ir_move_before(o, p->body, before);
	}
}

void pipeline_clone(pipeline *p, ir_builder *b, ir_value **map)
{
	for (const ir_op *o = p->body->first; o; o = o->next) {
		if (o->nresults != 1 || o->results[0]->id >= p->nvalues || !p->sliced[o->results[0]->id]) continue;
		b->at = o->at;
		ir_op *copy = ir_clone(b, o, map);
		copy->results[0]->layout = o->results[0]->layout;
	}
}
