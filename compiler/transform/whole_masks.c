/* Masks that hold for a whole tile are not looked at.
 *
 * In: the tile level.  Out: in a loop with products, selects whose mask says of rows and columns what may be so for all
 * of the tile, under a branch that all threads take alike; what only they need of the mask stands in it:
 *     %m = ge rows, columns                          %w = j + 127 <= i
 *     %x = select %m, %s, %c                  ->     %x = if %w { yield %s } else { %m = ..  %y = select ..  yield %y }
 * The one idea: a mask is a conjunction of low <= high (analysis/mask.h), sums in which a tile's places count; so it
 * holds for all of the tile if it does at the corner where low - high is largest, which is one sum of scalars.
 *
 * A program that has a loop without the mask, and another one for what is left, has seen to it itself: loops that hand
 * values to each other stay as they are.  Small tiles too, whose masks cost less than a branch. */
#include "analysis/mask.h"

enum { LEAST = 16 /* elements of a thread */ };

typedef struct whole {
	pass_context *pass;
	ir_func *func;
	ir_op *select, *masked; /* what the branch gives: the select, or the sum that it is added to */
	ir_value *kept;         /* where the mask holds */
	ir_builder at;          /* in front of `masked` */
	ir_value *all;          /* bool: what has been read of the mask holds for all of the tile; null: nothing has */
	bool varies;            /* and it is not the same in each element */
} whole;

#define EACH "looked at for each element: "
#define IN_GROUPS EACH "groups of rows have one control flow"
#define CHAINED EACH "loops that hand values to each other stay as they are"
#define SMALL EACH "a thread has few elements, for which a branch costs more"
#define CONSTANT EACH "where it holds stands a constant, which would be copied"
#define NO_SUMS EACH "it is not made of comparisons of signed sums"
#define NO_SCALARS EACH "whether it holds for the whole tile is no sum of scalars"

/* ---- which selects ---- */

static bool is_chained(const ir_op *loop)
{
	for (unsigned i = 3; i < loop->nargs; i++) {
		const ir_op *made = ir_arg(loop, i)->def;
		if (made && made->kind == IR_FOR) return true;
	}
	for (unsigned i = 0; i < loop->nresults; i++)
		for (const ir_use *u = loop->results[i]->uses; u; u = u->next)
			if (u->user->kind == IR_FOR) return true;
	return false;
}

static bool multiplies(const ir_block *b)
{
	for (const ir_op *o = b->first; o; o = o->next)
		if (o->kind == IR_DOT) return true;
	return false;
}

static bool is_large(const ir_op *masked)
{
	const ir_func *f = masked->block->func;
	return ir_elements(masked->results[0]->type) >= LEAST * 32 * ir_warps(f);
}

/* ---- the corner ---- */

/* The sum's largest value in the tile, of scalars alone; false: a place counts times what is no number. */
static bool take_corner(const whole *w, const affine *s, affine *corner)
{
	ir_type t = w->select->results[0]->type;
	*corner = (affine){0};
	for (unsigned i = 0; i < s->n; i++) {
		const affine_term *x = &s->term[i];
		int64_t last = x->place >= 0 && x->factor > 0 ? (int64_t)t.dim[x->place] - 1 : 0;
		if (x->place >= 0 && x->natoms) return false;
		if (!(x->place >= 0 ? affine_add_number(corner, x->factor * last) : affine_add_term(corner, x, 1)))
			return false;
	}
	return true;
}

static bool has_places(const affine *s)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->term[i].place >= 0) return true;
	return false;
}

static const char *read_bound(void *context, const mask_bound *b)
{
	whole *w = context;
	affine difference, corner;
	if (!b || b->from_zero || b->low.root || b->high.root || b->low.narrow || b->high.narrow) return NO_SUMS;
	difference = b->low;
	if (!affine_add(&difference, &b->high, -1) || !take_corner(w, &difference, &corner)) return NO_SCALARS;
	w->varies |= has_places(&difference);
	ir_value *largest = affine_build(&w->at, &corner, SCALAR_I64);
	ir_value *zero = ir_constant_int(&w->at, SCALAR_I64, 0);
	ir_value *good = ir_binary(&w->at, IR_LE, largest, zero);
	w->all = w->all ? ir_binary(&w->at, IR_AND, w->all, good) : good;
	return NULL;
}

/* ---- the branch ---- */

#define BRANCH "looked at only where it does not hold for the whole tile"
#define NO_ZERO "where a mask holds for a whole tile, no zeros are added: -0 stays -0"

/* x + select(m, 0, c) is x where m holds, but for the sign of a zero; the select may be spread over the tile. */
static ir_op *find_sum(const ir_op *select, ir_value **x)
{
	uint64_t bits;
	const ir_value *v = select->results[0];
	ir_op *sum = ir_only_user(v);
	if (!ir_is_const(ir_arg(select, 1), &bits) || bits != 0) return NULL;
	for (; sum && sum->kind == IR_BROADCAST; sum = ir_only_user(v)) v = sum->results[0];
	if (!sum || sum->kind != IR_ADD || sum->block != select->block) return NULL;
	*x = ir_arg(sum, ir_arg(sum, 0) == v);
	return sum;
}

/* False: a constant where the mask holds, which would only be copied. */
static bool find_kept(whole *w, ir_op *select)
{
	uint64_t bits;
	bool is_float = scalar_is_float((scalar)select->results[0]->type.elem);
	w->select = w->masked = select;
	w->kept = ir_arg(select, 1);
	if (!ir_is_const(w->kept, &bits)) return true;
	w->masked = is_float && w->func->strict ? NULL : find_sum(select, &w->kept);
	return w->masked;
}

static bool all_users_in(const ir_value *v, const ir_block *b)
{
	for (const ir_use *u = v->uses; u; u = u->next)
		if (u->user->block != b) return false;
	return v->uses;
}

/* What only the branch needs goes into it. */
static void sink_operands(const ir_op *o)
{
	for (unsigned i = 0; i < o->nargs; i++) {
		ir_op *made = ir_arg(o, i)->def;
		if (!made || made->block == o->block || made->block != o->block->parent->block) continue;
		if (!ir_has(made, IR_PURE) || made->nresults != 1 || made->nregions || ir_is_scalar(made->results[0]))
			continue;
		if (made->kind == IR_DOT || !all_users_in(made->results[0], o->block)) continue;
		ir_move_before(made, o->block, o->block->first);
		sink_operands(made);
	}
}

static void put_branch(whole *w)
{
	ir_value *v = w->masked->results[0];
	ir_op *branch = ir_build(&w->at, IR_IF, 1, &w->all, 1, &v->type, 2);
	branch->at = w->select->at;
	ir_builder holds = {.func = w->func, .block = branch->regions[0], .at = branch->at};
	ir_builder differs = {.func = w->func, .block = branch->regions[1], .at = branch->at};
	branch->results[0]->name = v->name;
	ir_replace(v, branch->results[0]);
	ir_yield(&holds, 1, &w->kept);
	ir_yield(&differs, 1, &v);
	ir_move_before(w->masked, branch->regions[1], branch->regions[1]->first);
	sink_operands(w->masked);
	vec_push(w->pass->arena, &w->pass->masks, ((pass_remark){branch->at, BRANCH}));
	if (w->masked != w->select && scalar_is_float((scalar)v->type.elem))
		vec_push(w->pass->arena, &w->pass->liberties, ((pass_remark){branch->at, NO_ZERO}));
}

/* Null: it stands under a branch; or it says nothing of places. */
static const char *visit_select(whole *w, ir_op *o)
{
	affine_context context = {.pass = w->pass, .func = w->func};
	if (!find_kept(w, o)) return is_large(o) ? CONSTANT : SMALL;
	if (!is_large(w->masked)) return SMALL;
	w->all = NULL;
	w->varies = false;
	w->at = (ir_builder){.func = w->func, .block = o->block, .before = w->masked, .at = o->at};
	const char *why = mask_bounds(&context, ir_arg(o, 0), read_bound, w);
	if (!why && w->varies) put_branch(w);
	return why;
}

/* What explain calls a mask: of rows and columns of a tile of numbers, and of integers alone. */
static bool is_of_places(const ir_value *v, unsigned steps)
{
	const ir_op *o = v->def;
	if (!o || !steps || v->type.pointer || scalar_is_float((scalar)v->type.elem)) return false;
	if (o->kind == IR_ARANGE) return true;
	bool found = false;
	for (unsigned i = 0; ir_has(o, IR_PURE) && !o->nregions && i < o->nargs; i++)
		found |= is_of_places(ir_arg(o, i), steps - 1);
	return found;
}

static bool is_mask(const ir_op *select)
{
	enum { MOST_STEPS = 12 };
	ir_type t = select->results[0]->type;
	return t.rank > 1 && !t.pointer && scalar_is_float((scalar)t.elem) &&
	       is_of_places(ir_arg(select, 0), MOST_STEPS);
}

static void visit(ir_op *o, void *context)
{
	whole *w = context;
	VEC(ir_op *) selects = {0};
	if (o->kind != IR_FOR || !multiplies(o->regions[0])) return;
	const char *none = w->func->row_groups > 1 ? IN_GROUPS : is_chained(o) ? CHAINED : NULL;
	for (ir_op *p = o->regions[0]->first; p; p = p->next)
		if (p->kind == IR_SELECT && !ir_arg(p, 0)->type.pointer) vec_push(w->pass->arena, &selects, p);
	for (uint32_t i = 0; i < selects.n; i++) {
		bool mask = is_mask(selects.at[i]);
		const char *why = none ? none : visit_select(w, selects.at[i]);
		if (why && mask) vec_push(w->pass->arena, &w->pass->masks, ((pass_remark){selects.at[i]->at, why}));
	}
}

bool pass_whole_masks(pass_context *p, ir_func *f)
{
	whole w = {.pass = p, .func = f};
	ir_walk(f->body, visit, &w);
	return true;
}
