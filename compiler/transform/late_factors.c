/* A factor on every product of a sum is applied to the sum, behind the loop.
 *
 * In: the tile level.  Out: no loop that only adds products with one factor, which does not change in it, to what it
 * carries:
 *     %r = for .., %x0 (%x) {                       %r = for .., 0.0 (%s) {
 *       %d = dot %a, %b                               %d = dot %a, %b, %s
 *       %e = mul %d, %c                   ->          yield %d }
 *       %y = add %x, %e                             %e = mul %r, %c
 *       yield %y }                                  %y = add %x0, %e
 * The one idea: who adds c d1 + c d2 + .. may as well add d1 + d2 + .. up, which the instruction of the product does by
 * itself.  Integers lose nothing by it; floats round once for the factor instead of each iteration. */
#include "passes/passes.h"

#define LATE "the factor multiplies the sum behind the loop, not each product"

/* The other operand where one of two is v, whose only user this is; null: it is not. */
static ir_value *beside(const ir_op *o, const ir_value *v)
{
	if (ir_only_user(v) != o) return NULL;
	return ir_arg(o, 0) == v ? ir_arg(o, 1) : ir_arg(o, 0);
}

/* Of a dot times a factor from outside of the loop: the dot. */
static ir_op *find_dot(const ir_op *loop, const ir_value *product, ir_value **factor)
{
	const ir_op *o = product->def;
	if (!o || o->kind != IR_MUL || o->block != loop->regions[0]) return NULL;
	for (unsigned i = 0; i < 2; i++) {
		ir_op *dot = ir_arg(o, i)->def;
		*factor = ir_arg(o, 1 - i);
		if (dot && dot->kind == IR_DOT && dot->block == o->block && dot->nargs == 2 &&
			ir_only_user(ir_arg(o, i)) == o && ir_defined_outside(*factor, loop))
			return dot;
	}
	return NULL;
}

static void move_factor(pass_context *p, ir_op *loop, unsigned k)
{
	ir_block *body = loop->regions[0];
	ir_value *carried = body->args[1 + k], *next = ir_arg(body->last, k), *factor;
	ir_op *add = next->def;
	if (!add || add->kind != IR_ADD || add->block != body || ir_only_user(next) != body->last) return;
	ir_value *product = beside(add, carried);
	ir_op *dot = product && ir_only_user(product) == add ? find_dot(loop, product, &factor) : NULL;
	scalar s = carried->type.elem;
	bool wide = s == SCALAR_F32 || s == SCALAR_F64; /* a sum without its factor may be beyond f16 */
	if (!dot || (scalar_is_float(s) && (!wide || body->func->strict))) return;
	if (wide) vec_push(p->arena, &p->liberties, ((pass_remark){product->def->at, LATE}));
	ir_builder front = {.func = body->func, .block = loop->block, .before = loop, .at = add->at};
	ir_builder behind = {.func = body->func, .block = loop->block, .before = loop->next, .at = add->at};
	ir_value *start = ir_arg(loop, 3 + k), *sum = loop->results[k];
	ir_value *scaled = ir_binary(&behind, IR_MUL, sum, factor), *all = ir_binary(&behind, IR_ADD, start, scaled);
	ir_replace(sum, all);
	ir_set_arg(scaled->def, 0, sum);
	ir_set_arg(loop, 3 + k, ir_constant(&front, sum->type, 0));
	ir_set_arg(body->last, k, dot->results[0]);
	ir_erase(add);
	ir_erase(product->def);
	ir_add_arg(body->func, dot, carried);
}

static void visit(ir_op *o, void *context)
{
	if (o->kind != IR_FOR) return;
	for (unsigned k = 0; k < o->nresults; k++) move_factor(context, o, k);
}

bool pass_late_factors(pass_context *p, ir_func *f)
{
	ir_walk(f->body, visit, p);
	return true;
}
