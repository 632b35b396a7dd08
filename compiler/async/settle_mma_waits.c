/* A product whose operands lie in scratch is waited for before anybody else gets scratch.
 *
 * In: a mapped function whose waits stand late (sink_mma_waits).  Out: the same; a wait stands in front of the first
 * operation with scratch, or with such inside, that follows its product, if the product has scratch itself.
 *
 *     %p = wgmma %a, %b      (%b by scratch)    %p = wgmma %a, %b
 *     %y = mul %x, %x                           %y = mul %x, %x
 *     %z = convert_layout %y (by scratch)  ->   %s = wgmma_wait %p {pending=0}
 *     %s = wgmma_wait %p                        %z = convert_layout %y
 *
 * The one idea: scratch belongs to an operation while it runs (scratch.h), a product's until its wait.  What stands
 * between the two may be given the same bytes, as `convert_layout` above.  Operands in multibuffers have bytes and
 * releases of their own, and products of them stay in flight. */
#include "passes/passes.h"
#include "scratch.h"

typedef struct question {
	const ir_func *func;
	bool found;
} question;

static void look(ir_op *o, void *context)
{
	question *q = context;
	q->found |= scratch_bytes(q->func, o) != 0;
}

static bool needs_scratch(const ir_func *f, ir_op *o)
{
	question q = {.func = f};
	look(o, &q);
	for (unsigned r = 0; r < o->nregions; r++) ir_walk(o->regions[r], look, &q);
	return q.found;
}

static void settle(const ir_func *f, ir_op *wgmma)
{
	ir_op *wait = ir_only_user(wgmma->results[0]), *o = wgmma->next;
	unsigned begun = 0;
	if (!wait || wait->kind != IR_WGMMA_WAIT || wait->nargs != 1 || wait->block != wgmma->block) return;
	while (o != wait && !needs_scratch(f, o)) begun += o->kind == IR_WGMMA, o = o->next;
	if (o == wait) return;
	ir_move_before(wait, wait->block, o);
	ir_set_pending(wait, begun);
}

static void visit(ir_op *o, void *context)
{
	const ir_func *f = context;
	if (o->kind == IR_WGMMA && scratch_bytes(f, o)) settle(f, o);
}

bool pass_settle_mma_waits(pass_context *c, ir_func *f)
{
	(void)c;
	ir_walk(f->body, visit, f);
	return true;
}
