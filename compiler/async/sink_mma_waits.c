/* A product is waited for where somebody needs it, and everything that does not need it runs beside it.
 *
 * In: a mapped function; behind each wgmma stands its wait.  Out: in blocks where something else than products takes a
 * sum, or a factor, the waits stand as late as they may, and say how many younger products may still run.
 * The one idea: an operation needs a wait if it takes, however indirectly, what the wait gives.  Everything else of the
 * block comes first, in its order, products too; then the wait, then what needs it.
 *
 *     s = wgmma q, k                            s = wgmma q, k
 *     s = wgmma_wait s {pending=0}              acc = wgmma p, v, acc
 *     acc = wgmma p, v, acc              ->     s = wgmma_wait s {pending=1}
 *     acc = wgmma_wait acc {pending=0}          p' = softmax(s)
 *     p' = softmax(s); p' = convert p'          acc = wgmma_wait acc {pending=0}
 *                                               p' = convert p'
 *
 * Two things need a wait beside what takes its sum.  A factor in registers (p) is read until then, so what the loop
 * carries in its place (the conversion) stands behind, and needs no registers of its own.  And operations with effects
 * keep their order among themselves, but for products and waits, which have their own: the hardware's, in which they
 * are begun.
 *
 * Blocks in which only products take sums and factors are left: pipeline.c lets those run on from iteration to
 * iteration. */
#include "bulk.h"
#include "passes/passes.h"
#include "target/nvptx/mma/wgmma.h"

typedef struct sinker {
	pass_context *context;
	ir_func *func;
	bool *needs; /* by value id: it needs the wait that is being moved */
} sinker;

/* Moved past others without anybody noticing: it computes, or reads what does not change. */
static bool is_free_to_move(const ir_op *o)
{
	return ir_has(o, IR_PURE) || o->kind == IR_BULK_LOAD || wgmma_is_product(o);
}

typedef struct question {
	const sinker *s;
	bool found;
} question;

static void look(ir_op *o, void *context)
{
	question *q = context;
	for (unsigned i = 0; i < o->nargs; i++) q->found |= q->s->needs[ir_arg(o, i)->id];
}

static bool takes_needed(const sinker *s, ir_op *o)
{
	question q = {.s = s};
	look(o, &q);
	for (unsigned r = 0; r < o->nregions; r++) ir_walk(o->regions[r], look, &q);
	return q.found;
}

static void mark(sinker *s, const ir_op *o)
{
	for (unsigned i = 0; i < o->nresults; i++) s->needs[o->results[i]->id] = true;
}

/* What the loop carries in place of the factor that the product reads from registers. */
static void mark_next_factor(sinker *s, const ir_op *wgmma)
{
	const ir_value *v = ir_arg(wgmma, 0);
	const ir_op *loop = v->def ? NULL : v->block->parent;
	if (!loop || loop->kind != IR_FOR || v->block != wgmma->block || v->index == 0 || ir_is_scalar(v)) return;
	const ir_value *next = ir_arg(v->block->last, v->index - 1u);
	if (next->def && next->def->block == wgmma->block) s->needs[next->id] = true;
}

/* The wait, and behind it what needs it, in front of the block's end. */
static void sink(sinker *s, ir_op *wait)
{
	ir_block *b = wait->block;
	const ir_op *wgmma = ir_arg(wait, 0)->def;
	bool acts = false; /* something with an effect needs the wait, and so does each that follows */
	for (uint32_t i = 0; i < s->func->nvalues; i++) s->needs[i] = false;
	mark(s, wait);
	mark_next_factor(s, wgmma);
	VEC(ir_op *) behind = {0};
	vec_push(s->context->arena, &behind, wait);
	for (ir_op *o = wait->next; o != b->last; o = o->next) {
		bool moves = is_free_to_move(o), needs = takes_needed(s, o) || (!moves && acts);
		for (unsigned i = 0; i < o->nresults; i++) needs |= s->needs[o->results[i]->id];
		if (!needs) continue;
		acts |= !moves;
		mark(s, o);
		vec_push(s->context->arena, &behind, o);
	}
	for (uint32_t i = 0; i < behind.n; i++) ir_move_before(behind.at[i], b, b->last);
}

/* Products that are begun between a product and its wait. */
static unsigned begun_since(const ir_op *wait)
{
	unsigned n = 0;
	for (const ir_op *o = ir_arg(wait, 0)->def->next; o != wait; o = o->next) n += o->kind == IR_WGMMA;
	return n;
}

static bool others_see_sums(const ir_block *b)
{
	for (const ir_op *o = b->first; o; o = o->next)
		if (wgmma_waited_for(o) && wgmma_others_see(o)) return true;
	return false;
}

static bool others_see_factors(const ir_block *b)
{
	for (const ir_op *o = b->first; o; o = o->next)
		if (o->kind == IR_BULK_LOAD && bulk_feeds_products_and_threads(o)) return true;
	return false;
}

/* A loop in between would begin products of its own. */
static bool holds_loops_of_products(const ir_block *b)
{
	for (const ir_op *o = b->first; o; o = o->next)
		for (unsigned r = 0; r < o->nregions; r++)
			for (const ir_op *i = o->regions[r]->first; i; i = i->next)
				if (wgmma_is_product(i) || i->nregions) return true;
	return false;
}

static void visit_block(sinker *s, ir_block *b)
{
	for (ir_op *o = b->first; o; o = o->next)
		for (unsigned r = 0; r < o->nregions; r++) visit_block(s, o->regions[r]);
	if ((!others_see_sums(b) && !others_see_factors(b)) || holds_loops_of_products(b)) return;
	VEC(ir_op *) waits = {0};
	for (ir_op *o = b->first; o; o = o->next) { /* in the order in which products are begun */
		ir_op *wait = o->kind == IR_WGMMA ? ir_only_user(o->results[0]) : NULL;
		if (wait && wgmma_waited_for(wait)) vec_push(s->context->arena, &waits, wait);
	}
	for (uint32_t i = 0; i < waits.n; i++) sink(s, waits.at[i]);
	for (uint32_t i = 0; i < waits.n; i++) ir_set_pending(waits.at[i], begun_since(waits.at[i]));
}

bool pass_sink_mma_waits(pass_context *c, ir_func *f)
{
	sinker s = {.context = c, .func = f, .needs = ARENA_ARRAY(c->arena, bool, f->nvalues)};
	visit_block(&s, f->body);
	return true;
}
