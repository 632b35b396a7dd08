/* A kernel may begin while the one before it in the stream ends.
 *
 * In: a scheduled function.  Out: one `gdc_wait` in its body, in front of the first operation that touches memory which
 * other kernels touch, and `gdc_launch_dependents` behind it; nothing where the target lacks them or launch_pdl is
 * false.  The runtime sees the wait and launches the kernel as a dependent one (cuda.c).
 * The one idea: the programs of the next kernel take the place of those that have ended, set up their barriers and
 * compute their addresses, and begin at once when the last program has ended.  Between two launches the machine is
 * empty for some microseconds else.
 *
 * Dependents may begin when all programs of this kernel have come past its own wait: what ran before it has ended then,
 * so that waiting for one kernel is waiting for all before it. */
#include "passes/passes.h"

/* Nobody else's memory: arithmetic, and what is in the program's own shared memory. */
static bool sets_up(const ir_op *o)
{
	switch (o->kind) {
	case IR_MULTIBUFFER:
	case IR_MBARRIERS:
	case IR_SCALARS:
	case IR_CTA_BARRIER:
	case IR_CLUSTER_ARRIVE: return true;
	default: return ir_has(o, IR_PURE);
	}
}

bool pass_dependent_launch(pass_context *c, ir_func *f)
{
	if (!f->launch_pdl || !target_can(c->target, TARGET_GDC)) return true;
	ir_op *first = f->body->first;
	while (first && sets_up(first)) first = first->next;
	ir_builder b = {.func = f, .block = f->body, .before = first, .at = f->at};
	ir_build(&b, IR_GDC_WAIT, 0, NULL, 0, NULL, 0);
	ir_build(&b, IR_GDC_LAUNCH_DEPENDENTS, 0, NULL, 0, NULL, 0);
	return true;
}
