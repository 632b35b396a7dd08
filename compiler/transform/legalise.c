/* Refuses what the target cannot do.
 *
 * In: tile IR.  Out: the same; false and one diagnostic for each operation that has no lowering there.
 * The one idea: the front end knows the whole language; this is the one place that knows how far the back ends are. */
#include "passes/passes.h"

static void refuse(ir_op *o, void *context)
{
	pass_context *p = context;
	if (o->kind == IR_INLINE_ASM && p->target->kind != TARGET_NVPTX) {
		diag *d = diag_error(
			p->diags, 902, o->at, "'inline_asm' is PTX, which target '%s' does not run", p->target->name);
		diag_set_hint(p->diags, d, "a kernel for every device says it with the language's own functions");
	}
}

bool pass_legalise(pass_context *p, ir_func *f)
{
	assert(p->target && p->diags);
	uint32_t before = p->diags->errors;
	ir_walk(f->body, refuse, p);
	return p->diags->errors == before;
}
