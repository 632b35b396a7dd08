/* Whether a producer warp can make a loop's copies, or a load's.
 *
 * In: a loop whose loads are known, or a load.  Out: null, or half a sentence that says why not.  The one idea: a producer is one
 * thread without tiles, so what it copies, and how often, must come of scalars and arithmetic alone. */
#include "pipeline.h"

typedef struct needs {
	bool *seen; /* by value id */
	const char *why;
} needs;

static void need(needs *n, const ir_value *v);

/* That the operation runs, and how often. */
static void need_control(needs *n, const ir_op *o)
{
	ir_value *conditions[IR_SOURCES];
	unsigned k = ir_conditions(o, conditions);
	for (unsigned i = 0; i < k; i++) need(n, conditions[i]);
}

static void need_parents(needs *n, const ir_op *o)
{
	for (const ir_op *a = o->block->parent; a; a = a->block->parent) need_control(n, a);
}

static void need_operands(needs *n, const ir_op *o)
{
	if (!ir_is_repeatable(o)) n->why = "what it copies depends on more than arithmetic";
	for (unsigned k = 0; k < o->nargs; k++) need(n, ir_arg(o, k));
}

static void need(needs *n, const ir_value *v)
{
	if (n->why || n->seen[v->id]) return;
	n->seen[v->id] = true;
	if (!ir_is_scalar(v)) {
		n->why = "what it copies depends on a tile";
		return;
	}
	const ir_op *o = v->def ? v->def : v->block->parent;
	ir_value *from[IR_SOURCES];
	unsigned k = ir_sources(v, from);
	if (!o) return;
	need_control(n, o);
	if (v->def) need_parents(n, o);
	for (unsigned i = 0; i < k; i++) need(n, from[i]);
	if (v->def && k == 0) need_operands(n, o);
}

static bool multiplies(const pipeline *p)
{
	for (const ir_op *o = p->body->first; o; o = o->next)
		if (o->kind == IR_WGMMA) return true;
	return false;
}

/* Products that are waited for where they stand.  Without a barrier in each iteration warpgroups fall out of step, and
 * one multiplies while another one computes. */
static bool falls_out_of_step(const pipeline *p)
{
	return !p->nwaits && p->func->num_warps > 4;
}

const char *pipeline_refuses_partitions(pipeline *p)
{
	const ir_func *f = p->func;
	if (!target_can(p->context->target, TARGET_SETMAXNREG)) return "only sm_90a hands registers over";
	if (f->num_warps != 4 && f->num_warps != 8) return "it goes with 4 or 8 warps";
	if (f->maxnreg) return "maxnreg is given";
	if (p->nbulk < p->nloads) return "not all loads of the loop are by tensor maps";
	if (!multiplies(p)) return "no wgmma is in the loop";
	if (!ir_loop_around(p->loop) && !falls_out_of_step(p) && f->num_ctas == 1)
		return "no loop is around this one, and nothing to compute between products";
	needs n = {.seen = ARENA_ARRAY(p->context->arena, bool, f->nvalues)};
	need_control(&n, p->loop);
	need_parents(&n, p->loop);
	for (unsigned i = 0; i < p->nloads; i++)
		for (unsigned k = 1; k < p->loads[i].load->nargs; k++) need(&n, ir_arg(p->loads[i].load, k));
	return n.why;
}

const char *partition_refusal(const pass_context *c, const ir_func *f, const ir_op *load)
{
	needs n = {.seen = ARENA_ARRAY(c->arena, bool, f->nvalues)};
	need_parents(&n, load);
	for (unsigned k = 1; k < load->nargs; k++) need(&n, ir_arg(load, k));
	return n.why;
}
