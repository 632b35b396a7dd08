/* A kernel may begin while the one before it in the stream ends.
 *
 * In: a scheduled function.  Out: one `gdc_wait` in its body, behind the set-up of barriers, or else at the beginning;
 * nothing where the target lacks it or launch_pdl is false.  The runtime sees the wait and launches the kernel as a
 * dependent one (cuda.c).
 * The one idea: its programs start when those of the kernel before have ended, and set up their barriers while that
 * kernel's last stores become visible.  Else the machine is empty meanwhile, and while the next launch is read, a
 * microsecond or more.  Arithmetic would not stay in front: ptxas moves the wait up, and values that live across the
 * branch behind it (tma.c) cost registers.
 *
 * Every kernel waits, also one that touches no memory: who waits for it waits for all before it.  Dependents are not
 * let go earlier (griddepcontrol.launch_dependents): that gained nothing for small kernels, and cost half a percent
 * where a program fills its SM (docs/lab/2026-11-30-dependent-launch.md). */
#include "passes/passes.h"

/* In the program's own shared memory. */
static bool sets_up(const ir_op *o)
{
	switch (o->kind) {
	case IR_MULTIBUFFER:
	case IR_MBARRIERS:
	case IR_SCALARS:
	case IR_CTA_BARRIER:
	case IR_CLUSTER_ARRIVE: return true;
	default: return false;
	}
}

/* Behind the last of those, with nothing but arithmetic among them. */
static ir_op *place_of(const ir_func *f)
{
	ir_op *place = f->body->first;
	for (ir_op *o = place; sets_up(o) || ir_has(o, IR_PURE); o = o->next)
		if (sets_up(o)) place = o->next;
	return place;
}

bool pass_dependent_launch(pass_context *c, ir_func *f)
{
	if (!f->launch_pdl || !target_can(c->target, TARGET_GDC)) return true;
	ir_builder b = {.func = f, .block = f->body, .before = place_of(f), .at = f->at};
	ir_build(&b, IR_GDC_WAIT, 0, NULL, 0, NULL, 0);
	return true;
}
