/* Dots as the target's instructions know them.
 *
 * In: the tile level.  Out: the same meaning; no dot has a form that mma/sync.h lacks for the target, and sums are of
 * the type that they are made in.
 *     %c = dot %a, %b, %acc : f16[64,64]           %w = convert %acc : f32[64,64]
 *                                          ->      %s = dot %a, %b, %w : f32[64,64]
 *                                                  %c = convert %s : f16[64,64]
 * fp8 becomes f16, which holds every value of both kinds, where no instruction multiplies it. */
#include "passes/passes.h"
#include "target/nvptx/mma/sync.h"

static ir_value *converted(ir_builder *b, ir_value *v, scalar s)
{
	return v->type.elem == s ? v : ir_build1(b, IR_CONVERT, ir_with_elem(v->type, s), 1, &v);
}

static void prepare(ir_op *o, void *context)
{
	pass_context *p = context;
	if (o->kind != IR_DOT) return;
	ir_builder b = {.func = o->block->func, .block = o->block, .before = o, .at = o->at};
	assert(o->nargs >= 2 && o->nresults == 1);
	if (scalar_is_fp8(ir_arg(o, 0)->type.elem) && !mma_form_of(p->target, o))
		for (unsigned i = 0; i < 2; i++) ir_set_arg(o, i, converted(&b, ir_arg(o, i), SCALAR_F16));
	ir_value *result = o->results[0];
	if (result->type.elem != SCALAR_F16) return;
	ir_value *args[3] = {ir_arg(o, 0), ir_arg(o, 1), o->nargs > 2 ? converted(&b, ir_arg(o, 2), SCALAR_F32) : NULL};
	ir_value *sum = ir_build1(&b, IR_DOT, ir_with_elem(result->type, SCALAR_F32), o->nargs, args);
	ir_set_precision(sum->def, ir_get_precision(o));
	ir_replace(result, converted(&b, sum, SCALAR_F16));
	ir_erase(o);
}

bool pass_prepare_dots(pass_context *p, ir_func *f)
{
	ir_walk(f->body, prepare, p);
	return true;
}
