/* Which instruction makes each dot.  See family.h.
 *
 * As a pass: in, the tile level, after prepare_dots.  Out: dots of families that begin products and wait for them have
 * become that; those of mma.sync stay dots. */
#include "family.h"

#include <assert.h>

static const mma_family families[] = {
	{"wgmma", TARGET_WGMMA, wgmma_refusal, wgmma_select},
	{"mma.sync", 0, NULL, NULL},
};

const mma_family *mma_family_of(const pass_context *p, const ir_op *dot)
{
	assert(dot->kind == IR_DOT);
	const mma_family *f = families;
	while (f->refusal && (!target_can(p->target, f->needs) || f->refusal(p, dot))) f++;
	return f;
}

const char *mma_why_not_faster(const pass_context *p, const ir_op *dot)
{
	assert(dot->kind == IR_DOT);
	const mma_family *f = families;
	while (f->needs && !target_can(p->target, f->needs)) f++;
	return f->refusal ? f->refusal(p, dot) : NULL;
}

static void select(ir_op *o, void *context)
{
	const pass_context *p = context;
	const mma_family *f = o->kind == IR_DOT ? mma_family_of(p, o) : NULL;
	if (f && f->select) f->select(p, o);
}

/* Whether a dot may become something else. */
static bool selects(const blk_target *t)
{
	const mma_family *f = families;
	while (f->needs && !target_can(t, f->needs)) f++;
	return f->select != NULL;
}

bool pass_select_mma(pass_context *p, ir_func *f)
{
	if (!selects(p->target)) return true;
	if (!pass_axis(p, f)) return false;
	ir_walk(f->body, select, p);
	return true;
}
