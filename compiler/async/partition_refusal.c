/* Whether a producer warp can make a loop's copies, or a load's.
 *
 * In: a loop whose loads are known, or a load.  Out: null, or half a sentence that says why not; and the atomics that
 * it would execute for all (send_scalars.c).  The one idea: a producer is one thread without tiles, so what it copies,
 * and how often, must come of scalars alone: of arithmetic, and of atomics.
 *
 * A producer runs ahead, so an atomic comes in front of accesses that precede it in the program.  Relaxed it orders
 * none, and what it changes has to be accessed by such atomics alone until all loops around it have ended. */
#include "pipeline.h"

typedef struct needs {
	const ir_func *func;
	arena *arena;
	bool *seen, *same; /* by value id: looked at; and as what has to be the same in all groups of rows */
	bool in_step;      /* that is what is looked at now */
	const char *why;
	atomics *sent;
} needs;

static needs needs_of(const pass_context *c, const ir_func *f, atomics *sent)
{
	return (needs){.func = f,
		.arena = c->arena,
		.seen = ARENA_ARRAY(c->arena, bool, f->nvalues),
		.same = ARENA_ARRAY(c->arena, bool, f->nvalues),
		.sent = sent};
}

/* ---- atomics ---- */

static bool is_sent(const atomics *sent, const ir_op *o)
{
	for (uint32_t i = 0; i < sent->n; i++)
		if (sent->at[i] == o) return true;
	return false;
}

/* The parameter that the pointer was made of; null: it was not made of one alone. */
static const ir_value *parameter_of(const ir_value *p)
{
	while (p->def && p->def->nargs &&
		(ir_has(p->def, IR_SHAPE) || p->def->kind == IR_PTR_ADD || p->def->kind == IR_HINT ||
			p->def->kind == IR_CONVERT_LAYOUT || p->def->kind == IR_TENSOR_MAP))
		p = ir_arg(p->def, 0);
	return p->def || p->block->parent ? NULL : p;
}

typedef struct order {
	const atomics *sent;
	const ir_op *atomic;
	const char *why;
} order;

static void find_access(ir_op *o, void *context)
{
	order *a = context;
	if (is_sent(a->sent, o)) return;
	if ((ir_is_atomic(o) && ir_get_sem(o) != IR_RELAXED) || o->kind == IR_INLINE_ASM || o->kind == IR_DEBUG_BARRIER)
		a->why = "what it copies depends on an atomic, in front of which something orders memory";
	if (!ir_touches(o, IR_GLOBAL) || ir_arg(o, ir_pointer_at(o))->type.pointer != IR_POINTER) return;
	const ir_value *p = parameter_of(ir_arg(o, ir_pointer_at(o)));
	if (!p || p == parameter_of(ir_arg(a->atomic, 0)))
		a->why = "what it copies depends on an atomic whose memory may be accessed in another way too";
}

/* What stands behind all loops around an atomic is done by warps that have its result. */
static const char *refuses_atomics(const ir_func *f, const atomics *sent)
{
	for (uint32_t i = 0; i < sent->n; i++) {
		order a = {.sent = sent, .atomic = sent->at[i]};
		if (ir_get_sem(a.atomic) != IR_RELAXED)
			return "what it copies depends on an atomic that orders memory, sem = \"relaxed\" does not";
		if (f->num_ctas > 1)
			return "what it copies depends on an atomic, and programs of a cluster are in step";
		if (!parameter_of(ir_arg(a.atomic, 0)))
			return "what it copies depends on an atomic whose address is made of no parameter";
		for (ir_op *o = f->body->first; o; o = o->next) {
			find_access(o, &a);
			for (unsigned r = 0; r < o->nregions; r++) ir_walk(o->regions[r], find_access, &a);
			if (a.why) return a.why;
			if (ir_encloses(o, a.atomic)) break;
		}
	}
	return NULL;
}

/* ---- what copies need ---- */

static void need(needs *n, const ir_value *v);

/* That the operation runs, and how often. */
static void need_control(needs *n, const ir_op *o)
{
	ir_value *conditions[IR_SOURCES];
	unsigned k = ir_conditions(o, conditions);
	bool in_step = n->in_step;
	n->in_step = true;
	for (unsigned i = 0; i < k; i++) need(n, conditions[i]);
	n->in_step = in_step;
}

static void need_parents(needs *n, const ir_op *o)
{
	for (const ir_op *a = o->block->parent; a; a = a->block->parent) need_control(n, a);
}

static void need_operands(needs *n, ir_op *o)
{
	if (ir_is_atomic(o)) {
		if (!is_sent(n->sent, o)) vec_push(n->arena, n->sent, o);
	} else if (!ir_is_repeatable(o))
		n->why = "what it copies depends on more than arithmetic";
	if (o->kind == IR_ROW_GROUP && n->in_step) n->why = "groups of warps copy different blocks";
	for (unsigned k = 0; k < o->nargs; k++) need(n, ir_arg(o, k));
}

static void need(needs *n, const ir_value *v)
{
	bool *seen = n->in_step ? n->same : n->seen;
	if (n->why || seen[v->id]) return;
	seen[v->id] = true;
	if (!ir_is_scalar(v)) {
		n->why = "what it copies depends on a tile";
		return;
	}
	ir_op *o = v->def ? v->def : v->block->parent;
	ir_value *from[IR_SOURCES];
	unsigned k = ir_sources(v, from);
	if (!o) return;
	need_control(n, o);
	if (v->def) need_parents(n, o);
	bool in_step = n->in_step;
	n->in_step = in_step || k; /* what control flow hands on */
	for (unsigned i = 0; i < k; i++) need(n, from[i]);
	n->in_step = in_step;
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
	return !p->nwaits && ir_warps(p->func) > 4;
}

const char *pipeline_refuses_partitions(pipeline *p)
{
	const ir_func *f = p->func;
	p->sent.n = 0;
	if (!target_can(p->context->target, TARGET_SETMAXNREG)) return "only sm_90a hands registers over";
	if (f->num_warps != 4 && f->num_warps != 8) return "it goes with 4 or 8 warps";
	if (f->maxnreg) return "maxnreg is given";
	if (p->nbulk < p->nloads) return "not all loads of the loop are by tensor maps";
	if (!multiplies(p)) return "no wgmma is in the loop";
	if (!ir_loop_around(p->loop) && !falls_out_of_step(p) && f->num_ctas == 1 && f->row_groups == 1)
		return "no loop is around this one, and nothing to compute between products";
	needs n = needs_of(p->context, f, &p->sent);
	n.in_step = true;
	need_control(&n, p->loop);
	need_parents(&n, p->loop);
	n.in_step = false;
	for (unsigned i = 0; i < p->nloads; i++)
		for (unsigned k = 1; k < p->loads[i].load->nargs; k++) need(&n, ir_arg(p->loads[i].load, k));
	const char *why = n.why ? n.why : refuses_atomics(f, &p->sent);
	if (why) p->sent.n = 0;
	return why;
}

const char *channels_refusal(const pass_context *c, const ir_func *f)
{
	if (!target_can(c->target, TARGET_SETMAXNREG)) return "only sm_90a hands registers over";
	if (f->num_warps != 4 && f->num_warps != 8 && f->num_warps != 16) return "it goes with 4, 8 or 16 warps";
	if (f->maxnreg) return "maxnreg is given";
	if (f->num_ctas > 1) return "programs of a cluster are in step";
	return NULL;
}

const char *partition_refusal(const pass_context *c, const ir_func *f, const ir_op *load, atomics *sent)
{
	needs n = needs_of(c, f, sent);
	need_parents(&n, load);
	for (unsigned k = 1; k < load->nargs; k++) need(&n, ir_arg(load, k));
	return n.why ? n.why : refuses_atomics(f, sent);
}

/* Barriers and multibuffers, which copies take too, depend on nothing. */
static void need_copy(ir_op *o, void *context)
{
	needs *n = context;
	if (!ir_has_attribute(o, IR_ATTR_partition) || ir_get_partition(o) != IR_PARTITION_PRODUCER) return;
	need_parents(n, o);
	for (unsigned k = 0; k < o->nargs; k++) {
		const ir_op *made = ir_arg(o, k)->def;
		if (!made || (made->kind != IR_MULTIBUFFER && made->kind != IR_MBARRIERS)) need(n, ir_arg(o, k));
	}
}

void partition_find_sent(const pass_context *c, const ir_func *f, atomics *sent)
{
	needs n = needs_of(c, f, sent);
	ir_walk(f->body, need_copy, &n);
	assert(!n.why); /* those who made the copies have asked */
}
