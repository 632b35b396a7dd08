/* A sum of rows that a loop carries stays in the parts that threads have.
 *
 * In: the tile level, of a GPU.  Out: a loop that adds the rows of a product up, element by element from its result,
 * carries PARTS sums of each row; they are added behind the loop:
 *     %l = for .., %l0 : f32[M] (%c) {              %q = for .., [%l0, 0, 0, 0] : f32[M,4] (%c) {
 *       %p = .. of a dot : f32[M,N]                   %p = .. of a dot : f32[M,N]
 *       %s = reduce %p {axis=1 sum}                   %t = reshape %p : f32[M,N/8,4,2]
 *       %m = mul %c, %a                   ->          %u = reduce %t {axis=3 sum}
 *       %n = add %m, %s                               %s = reduce %u {axis=1 sum} : f32[M,4]
 *       yield %n }                                    %m = mul %c, %a[:, None]
 *                                                     %n = add %m, %s
 *                                                     yield %n }
 *                                                   %l = reduce %q {axis=1 sum}
 * A loop that goes on with such a sum takes over its parts.
 * The one idea: whatever multiplies the whole row multiplies its parts, so lanes need to meet once, not in each
 * iteration.  The parts are those of an instruction's result, of mma.sync as of wgmma: lane l of four neighbours has
 * columns 8 i + 2 l and 8 i + 2 l + 1 of a row, so what an iteration adds is in the thread's own registers.  The order
 * of a sum's additions is free (language.md); that the factor is applied to parts is what `strict` refuses. */
#include "passes/passes.h"

#define APART "each row's sum stays in parts, which are added behind the loop"
enum { PARTS = 4, PAIR = 2, MOST_STEPS = 64 };

/* Made from a product of this block, element by element. */
static bool is_of_dot(const ir_block *b, const ir_value *v, unsigned *steps)
{
	const ir_op *o = v->def;
	if (!o || o->block != b || !*steps) return false;
	--*steps;
	if (o->kind == IR_DOT) return true;
	if (!ir_has(o, IR_ELEMENTWISE)) return false;
	for (unsigned i = 0; i < o->nargs; i++)
		if (is_of_dot(b, ir_arg(o, i), steps)) return true;
	return false;
}

static bool is_row_sum(const ir_block *b, const ir_value *v)
{
	const ir_op *o = v->def;
	unsigned steps = MOST_STEPS;
	if (!o || o->kind != IR_REDUCE || o->block != b || o->nargs != 1 || ir_get_combine(o) != IR_SUM) return false;
	ir_type t = ir_arg(o, 0)->type;
	return t.rank == 2 && ir_get_axis(o) == 1 && t.elem == SCALAR_F32 && t.dim[1] % (PAIR * PARTS) == 0 &&
	       is_of_dot(b, ir_arg(o, 0), &steps);
}

static ir_value *sum_along(ir_builder *b, ir_value *v, unsigned axis)
{
	ir_type t = v->type;
	for (unsigned d = axis; d + 1 < t.rank; d++) t.dim[d] = t.dim[d + 1];
	t.dim[--t.rank] = 0;
	ir_op *o = ir_build(b, IR_REDUCE, 1, &v, 1, &t, 0);
	ir_set_axis(o, axis);
	ir_set_combine(o, IR_SUM);
	return o->results[0];
}

static ir_type parts_of(ir_type rows)
{
	return ir_tile_type(rows.elem, 2, (uint32_t[]){rows.dim[0], PARTS});
}

static ir_value *stretched(ir_builder *b, ir_value *v, unsigned axis, ir_type to)
{
	ir_type t = to;
	t.elem = v->type.elem;
	ir_type thin = t;
	thin.dim[axis] = 1;
	ir_value *one = ir_build1(b, IR_EXPAND_DIMS, thin, 1, &v);
	ir_set_axis(one->def, axis);
	return ir_build1(b, IR_BROADCAST, t, 1, &one);
}

/* The sum of such parts: what another loop has left. */
static bool is_sum_of_parts(const ir_value *v, ir_type parts)
{
	const ir_op *o = v->def;
	return o && o->kind == IR_REDUCE && o->nargs == 1 && ir_get_combine(o) == IR_SUM && ir_get_axis(o) == 1 &&
	       ir_type_equal(ir_arg(o, 0)->type, parts);
}

/* The start is the first part; zeros need no choice, and parts go on as they are. */
static ir_value *start_of(ir_builder *b, ir_value *v, ir_type t)
{
	uint64_t bits;
	if (ir_is_const(v, &bits) && bits == 0) return ir_constant(b, t, 0);
	if (is_sum_of_parts(v, t)) return ir_arg(v->def, 0);
	ir_value *number = ir_build1(b, IR_ARANGE, ir_tile_type(SCALAR_I32, 1, (uint32_t[]){PARTS}), 0, NULL);
	ir_value *first = ir_binary(b, IR_EQ, number, ir_constant(b, number->type, 0));
	ir_value *args[] = {stretched(b, first, 0, t), stretched(b, v, 1, t), ir_constant(b, t, 0)};
	return ir_build1(b, IR_SELECT, t, 3, args);
}

/* In front of a factor: the carried value has no other user than this operation, nor that than the next one. */
static bool is_chain(const ir_op *loop, const ir_value *carried, const ir_op *add, ir_op **mul)
{
	ir_op *user = ir_only_user(carried);
	*mul = user && user != add && user->kind == IR_MUL ? user : NULL;
	if (*mul && (ir_only_user((*mul)->results[0]) != add || (*mul)->block != loop->regions[0])) return false;
	return user == add || *mul;
}

static void split_sum(pass_context *c, ir_op *loop, unsigned k)
{
	ir_block *body = loop->regions[0];
	ir_value *carried = body->args[1 + k], *next = ir_arg(body->last, k), *rows = NULL;
	ir_op *add = next->def, *mul;
	if (carried->type.rank != 1 || carried->type.elem != SCALAR_F32 || carried->type.pointer) return;
	if (!add || add->kind != IR_ADD || add->block != body || ir_only_user(next) != body->last) return;
	if (!is_chain(loop, carried, add, &mul)) return;
	for (unsigned i = 0; i < 2 && !rows; i++) {
		ir_value *other = ir_arg(add, 1 - i);
		if (other == (mul ? mul->results[0] : carried) && is_row_sum(body, ir_arg(add, i)) &&
			ir_only_user(ir_arg(add, i)) == add)
			rows = ir_arg(add, i);
	}
	if (!rows) return;

	vec_push(c->arena, &c->liberties, ((pass_remark){rows->def->at, APART}));
	ir_type t = parts_of(carried->type);
	ir_builder front = {.func = body->func, .block = loop->block, .before = loop, .at = rows->def->at};
	ir_builder inside = {.func = body->func, .block = body, .before = add, .at = rows->def->at};
	ir_builder behind = {.func = body->func, .block = loop->block, .before = loop->next, .at = rows->def->at};
	ir_value *p = ir_arg(rows->def, 0), *sum = loop->results[k];
	ir_type apart = ir_tile_type(
		p->type.elem, 4, (uint32_t[]){p->type.dim[0], p->type.dim[1] / (PAIR * PARTS), PARTS, PAIR});
	ir_value *parts = sum_along(&inside, sum_along(&inside, ir_build1(&inside, IR_RESHAPE, apart, 1, &p), 3), 1);
	ir_value *old = carried;
	if (mul) {
		ir_value *factor = ir_arg(mul, ir_arg(mul, 0) == carried);
		inside.at = mul->at;
		old = ir_build1(&inside, IR_MUL, t, 2, (ir_value *[]){carried, stretched(&inside, factor, 1, t)});
	}
	inside.at = add->at;
	ir_set_arg(body->last, k, ir_build1(&inside, IR_ADD, t, 2, (ir_value *[]){old, parts}));
	ir_op *reduced = rows->def;
	ir_erase(add);
	if (mul) ir_erase(mul);
	ir_erase(reduced);
	ir_set_arg(loop, 3 + k, start_of(&front, ir_arg(loop, 3 + k), t));
	ir_type whole_type = sum->type;
	carried->type = sum->type = t;
	ir_value *whole = sum_along(&behind, sum, 1);
	ir_op *takes = whole->def;
	sum->type = whole_type; /* as those know it who get the whole one instead */
	ir_replace(sum, whole);
	sum->type = t;
	ir_set_arg(takes, 0, sum);
}

static void visit(ir_op *o, void *context)
{
	if (o->kind != IR_FOR) return;
	for (unsigned k = 0; k < o->nresults; k++) split_sum(context, o, k);
}

bool pass_partial_sums(pass_context *p, ir_func *f)
{
	if (!f->strict) ir_walk(f->body, visit, p);
	return true;
}
