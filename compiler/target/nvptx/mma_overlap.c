#include "mma_overlap.h"
#include "mma/wgmma.h"

#include <string.h>

enum { FEW_REGISTERS = 4, STEPS = 4 };

static bool waits_in_body(const ir_op *o)
{
	return wgmma_waited_for(o) && o->block->parent && o->block->parent->kind == IR_FOR;
}

/* A few registers of f32 that a thread has computed of many. */
static bool is_summary(const ir_op *o)
{
	const ir_value *v = o->nresults ? o->results[0] : NULL;
	return v && v->layout && ir_has(o, IR_PURE) && !ir_has(o, IR_FREE | IR_SHAPE) && v->type.elem == SCALAR_F32 &&
	       !v->type.pointer && layout_registers(v->layout) <= FEW_REGISTERS;
}

/* Operations of the block that the value is made of, down to a reduction. */
static bool is_made_of_reduction(const ir_value *v, const ir_op *from, unsigned steps)
{
	if (!v->def || v->def->block != from->block || !steps) return false;
	for (const ir_op *o = from; o != v->def; o = o->next)
		if (o == NULL) return false;
	if (v->def->kind == IR_REDUCE) return true;
	for (unsigned i = 0; i < v->def->nargs; i++)
		if (is_made_of_reduction(ir_arg(v->def, i), from, steps - 1)) return true;
	return false;
}

/* A loop leaves its products running; those are not known here. */
static uint32_t product_cycles(const ir_func *f, const ir_op *wait)
{
	wgmma_plan plan;
	const ir_op *product = wgmma_waited_for(wait);
	if (product->kind != IR_WGMMA || ir_get_pending(wait)) return 0;
	return wgmma_plan_make(product, f->num_warps, &plan) ? wgmma_cycles(&plan) : 0;
}

bool mma_overlap_find(const ir_func *f, const ir_op *wait, mma_overlap *b)
{
	memset(b, 0, sizeof *b);
	if (!waits_in_body(wait)) return false;
	const ir_op *first = wait->prev;
	while (first && first->kind != IR_WGMMA_WAIT) first = first->prev;
	if (!first || !waits_in_body(first)) return false;
	b->product = product_cycles(f, wait);
	for (const ir_op *o = first->next; o != wait; o = o->next) {
		if (is_summary(o) && is_made_of_reduction(o->results[0], first, STEPS)) b->summary = o->results[0];
		uint32_t registers =
			o->kind == IR_EXP2 && o->results[0]->layout ? layout_registers(o->results[0]->layout) : 0;
		if (registers <= FEW_REGISTERS) continue; /* a factor a row is not what takes long */
		b->cycles += TARGET_EXP2_CYCLES * registers;
		if (b->n < MMA_OVERLAP_MOST) b->exponentials[b->n++] = o->results[0];
	}
	b->outlasts = b->product && b->cycles > b->product;
	return true;
}

bool mma_overlap_outlasts(const ir_func *f, const ir_op *wait)
{
	mma_overlap b;
	return mma_overlap_find(f, wait, &b) && b.summary && b.outlasts;
}
