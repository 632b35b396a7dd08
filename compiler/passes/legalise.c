/* Refuses what the target cannot do.
 *
 * In: tile IR.  Out: the same; false and one diagnostic for each operation that has no lowering there.
 * The one idea: the front end knows the whole language; this is the one place that knows how far the back ends are. */
#include "passes.h"

enum { MOST_SUMS = 128, REGISTERS = 255, MOST_WARPS = 16 };

/* All of a product's sum is in registers at once: with as many as a thread has, each would go to memory and back each
 * time. */
static void check_sum(pass_context *p, const ir_op *dot)
{
	const ir_func *f = dot->block->func;
	ir_type t = dot->results[0]->type;
	uint64_t words = ir_elements(t) * (t.elem == SCALAR_F64 ? 2 : 1) / 32;
	uint32_t warps = f->num_warps;
	if (words / f->num_warps <= REGISTERS) return;
	while (warps < MOST_WARPS && words / warps > MOST_SUMS) warps *= 2;
	diag *d = diag_error(p->diags, 723, dot->at,
		"the sum of this product takes %llu registers of each thread, which has %u",
		(unsigned long long)(words / f->num_warps), REGISTERS);
	if (words / warps <= MOST_SUMS)
		diag_set_hint(p->diags, d, "num_warps = %u, or a smaller tile", warps);
	else
		diag_set_hint(p->diags, d, "a smaller tile");
}

static void refuse(ir_op *o, void *context)
{
	pass_context *p = context;
	if (o->kind == IR_DOT && p->target->kind == TARGET_NVPTX) check_sum(p, o);
	if (o->kind == IR_INLINE_ASM && p->target->kind != TARGET_NVPTX) {
		diag *d = diag_error(
			p->diags, 902, o->at, "'inline_asm' is PTX, which target '%s' does not run", p->target->name);
		diag_set_hint(p->diags, d, "a kernel for every device says it with the language's own functions");
	}
}

bool pass_legalise(pass_context *p, ir_func *f)
{
	uint32_t before = p->diags->errors;
	ir_walk(f->body, refuse, p);
	return p->diags->errors == before;
}
