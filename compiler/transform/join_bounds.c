/* Two bounds of one number are compared with once.
 *
 * In: the tile level.  Out: of a select's condition, a conjunction of comparisons, those with the same number become
 * one, where the nearer bound takes fewer elements than the comparison:
 *     %a = lt %keys, splat %n                       %s = min %rows, (largest - 1)
 *     %b = le %keys, %rows                          %t = min (splat %n), (add %s, 1)
 *     %m = and %a, %b                   ->          %m = lt %keys, %t
 * The one idea: of columns that are compared with each row's bound, the bound is one number a row, so the minimum costs
 * next to nothing beside the comparison.  x < n and x <= r is x < min(n, r + 1); where r is the largest number of its
 * type, r + 1 is none, but then x < n says all that is left, as no number is above the largest.
 *
 * LLVM makes one select of each comparison, so this saves a comparison and a select an element.  A mask of a load or a
 * store is a predicate, in which a second comparison costs less than what the minimum hides: where the first bound lies
 * is what vectors and the order of accesses depend on (axis.c, alias_matrix.c). */
#include "analysis/int_range.h"
#include "passes/passes.h"

enum { MOST_LEAVES = 8 };

/* number < bound, or <=, or above. */
typedef struct bound {
	ir_value *number, *limit; /* as far as they differ from element to element */
	bool below, equal;
} bound;

/* Without what only spreads it over a shape. */
static ir_value *narrow(ir_value *v)
{
	while (v->def && (v->def->kind == IR_BROADCAST || v->def->kind == IR_SPLAT)) v = ir_arg(v->def, 0);
	return v;
}

/* Both ways to read the comparison; false: it is none of integers. */
static bool read_bound(const ir_value *v, bound both[2])
{
	const ir_op *o = v->def;
	if (!o || !(o->kind == IR_LT || o->kind == IR_LE || o->kind == IR_GT || o->kind == IR_GE)) return false;
	ir_value *x = narrow(ir_arg(o, 0)), *y = narrow(ir_arg(o, 1));
	if (x->type.pointer || !scalar_is_integer(x->type.elem)) return false;
	bool below = o->kind == IR_LT || o->kind == IR_LE, equal = o->kind == IR_LE || o->kind == IR_GE;
	both[0] = (bound){x, y, below, equal};
	both[1] = (bound){y, x, !below, equal};
	return true;
}

/* The shape in which both vary; false: that is all of `whole`, or they are of another rank. */
static bool joint_shape(const ir_value *x, const ir_value *y, ir_type whole, ir_type *shape)
{
	const ir_value *v[] = {x, y};
	*shape = ir_with_elem(whole, x->type.elem);
	for (unsigned d = 0; d < whole.rank; d++) shape->dim[d] = 1;
	for (unsigned i = 0; i < 2; i++) {
		if (ir_is_scalar(v[i])) continue;
		if (v[i]->type.rank != whole.rank) return false;
		for (unsigned d = 0; d < whole.rank; d++)
			if (v[i]->type.dim[d] > 1) shape->dim[d] = v[i]->type.dim[d];
	}
	return ir_elements(*shape) < ir_elements(whole);
}

static ir_value *spread(ir_builder *b, ir_value *v, ir_type shape)
{
	shape = ir_with_elem(shape, v->type.elem);
	if (ir_is_scalar(v)) return ir_splat(b, v, shape);
	return ir_type_equal(v->type, shape) ? v : ir_build1(b, IR_BROADCAST, shape, 1, &v);
}

/* The limit of the same comparison without `equal`, next to one that has none. */
static ir_value *exclusive(ir_builder *b, const bound *x)
{
	if (!x->equal) return x->limit;
	scalar e = x->limit->type.elem;
	int_bounds all = int_range_of_type(e);
	ir_type t = x->limit->type;
	ir_value *last = ir_splat(b, ir_constant_int(b, e, x->below ? all.high - 1 : all.low + 1), t);
	ir_value *nearest = ir_binary(b, x->below ? IR_MIN : IR_MAX, x->limit, last);
	return ir_binary(b, x->below ? IR_ADD : IR_SUB, nearest, ir_splat(b, ir_constant_int(b, e, 1), t));
}

static ir_value *join(ir_builder *b, bound x, bound y, ir_type whole)
{
	ir_type shape;
	if (x.number != y.number || x.below != y.below || ir_is_scalar(x.number)) return NULL;
	if (x.limit->type.elem == SCALAR_U64 || !joint_shape(x.limit, y.limit, whole, &shape)) return NULL;
	bool equal = x.equal && y.equal;
	ir_value *limit = spread(b, equal ? x.limit : exclusive(b, &x), shape);
	ir_value *other = spread(b, equal ? y.limit : exclusive(b, &y), shape);
	limit = ir_binary(b, x.below ? IR_MIN : IR_MAX, limit, other);
	ir_kind kind = x.below ? equal ? IR_LE : IR_LT : equal ? IR_GE : IR_GT;
	return ir_binary(b, kind, spread(b, x.number, whole), spread(b, limit, whole));
}

static ir_value *join_leaves(ir_builder *b, const ir_value *x, const ir_value *y, ir_type whole)
{
	bound of_x[2], of_y[2];
	if (!read_bound(x, of_x) || !read_bound(y, of_y)) return NULL;
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < 2; k++) {
			ir_value *joined = join(b, of_x[i], of_y[k], whole);
			if (joined) return joined;
		}
	return NULL;
}

typedef struct conjunction {
	ir_value *leaf[MOST_LEAVES];
	unsigned n;
} conjunction;

static bool find_leaves(conjunction *c, ir_value *v)
{
	v = narrow(v);
	if (v->def && v->def->kind == IR_AND)
		return find_leaves(c, ir_arg(v->def, 0)) && find_leaves(c, ir_arg(v->def, 1));
	if (c->n == MOST_LEAVES) return false;
	c->leaf[c->n++] = v;
	return true;
}

/* It decides what selects choose, and nothing else. */
static bool only_selects(const ir_value *v)
{
	for (const ir_use *u = v->uses; u; u = u->next)
		if (u->user->kind != IR_SELECT || u != u->user->args[0]) return false;
	return v->uses != NULL;
}

static void visit(ir_op *o, void *context)
{
	(void)context;
	conjunction c = {0};
	if (o->kind != IR_AND || ir_is_scalar(o->results[0]) || !only_selects(o->results[0])) return;
	if (!find_leaves(&c, o->results[0])) return;
	ir_type whole = o->results[0]->type;
	ir_builder b = {.func = o->block->func, .block = o->block, .before = o, .at = o->at};
	bool any = false;
	for (unsigned i = 0; i < c.n; i++)
		for (unsigned k = i + 1; k < c.n; k++) {
			ir_value *joined = c.leaf[i] && c.leaf[k] ? join_leaves(&b, c.leaf[i], c.leaf[k], whole) : NULL;
			if (!joined) continue;
			c.leaf[i] = joined;
			c.leaf[k] = NULL;
			any = true;
		}
	if (!any) return;
	ir_value *all = NULL;
	for (unsigned i = 0; i < c.n; i++) {
		if (!c.leaf[i]) continue;
		ir_value *leaf = spread(&b, c.leaf[i], whole);
		all = all ? ir_binary(&b, IR_AND, all, leaf) : leaf;
	}
	ir_replace(o->results[0], all);
}

bool pass_join_bounds(pass_context *p, ir_func *f)
{
	(void)p;
	ir_walk(f->body, visit, NULL);
	return true;
}
