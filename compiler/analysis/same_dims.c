/* See same_dims.h.  Extents of 1 stretch, so they join nothing; what a table of numbers or memory decides (a gather's
 * axis, a histogram, blocks of tensors) joins nothing either. */
#include "same_dims.h"

static uint32_t find(const same_dims *s, uint32_t i)
{
	while (s->parent[i] != i) i = s->parent[i] = s->parent[s->parent[i]];
	return i;
}

uint32_t same_dims_class(const same_dims *s, const ir_value *v, unsigned dim)
{
	assert(v->id < s->known && dim < v->type.rank);
	return find(s, v->id * IR_MAX_RANK + dim);
}

static void join(same_dims *s, const ir_value *a, unsigned i, const ir_value *b, unsigned j)
{
	if (a->type.dim[i] != b->type.dim[j]) return;
	s->parent[same_dims_class(s, a, i)] = same_dims_class(s, b, j);
}

/* Dimension by dimension, but for one: IR_MAX_RANK for none. */
static void join_all(same_dims *s, const ir_value *a, const ir_value *b, unsigned but)
{
	for (unsigned i = 0; i < a->type.rank && i < b->type.rank; i++)
		if (i != but) join(s, a, i, b, i);
}

/* Those with as many elements behind them. */
static void reshape(same_dims *s, const ir_value *from, const ir_value *to)
{
	uint64_t behind_from = 1;
	for (unsigned i = from->type.rank; i-- > 0; behind_from *= from->type.dim[i]) {
		uint64_t behind_to = 1;
		for (unsigned j = to->type.rank; j-- > 0; behind_to *= to->type.dim[j])
			if (behind_from == behind_to && from->type.dim[i] > 1) join(s, from, i, to, j);
	}
}

/* `a` has the dimension `axis`, `b` does not. */
static void without(same_dims *s, const ir_value *a, unsigned axis, const ir_value *b)
{
	for (unsigned i = 0; i < b->type.rank; i++) join(s, a, i + (i >= axis), b, i);
}

static void dot(same_dims *s, const ir_op *o)
{
	const ir_value *a = ir_arg(o, 0), *b = ir_arg(o, 1), *sum = o->results[0];
	unsigned row = sum->type.rank - 2, column = row + 1;
	for (unsigned i = 0; i <= row; i++) join(s, a, i, sum, i);
	for (unsigned i = 0; i < row; i++) join(s, b, i, sum, i);
	join(s, b, column, sum, column);
	join(s, a, column, b, row);
	if (o->nargs > 2) join_all(s, ir_arg(o, 2), sum, IR_MAX_RANK);
}

/* Operands and results whose dimensions stand in one order: those that only some have are behind. */
static void one_shape(same_dims *s, const ir_op *o)
{
	if (!o->nresults && !o->nargs) return;
	const ir_value *first = o->nresults ? o->results[0] : ir_arg(o, 0);
	for (unsigned i = 0; i < o->nargs; i++) join_all(s, ir_arg(o, i), first, IR_MAX_RANK);
	for (unsigned i = 1; i < o->nresults; i++) join_all(s, o->results[i], first, IR_MAX_RANK);
}

static void reduce(same_dims *s, const ir_op *o)
{
	for (unsigned i = 0; i < o->nargs; i++) join_all(s, ir_arg(o, i), ir_arg(o, 0), IR_MAX_RANK);
	for (unsigned i = 0; i < o->nresults; i++) without(s, ir_arg(o, 0), (unsigned)ir_get_axis(o), o->results[i]);
}

static void carried(same_dims *s, const ir_value *v)
{
	ir_value *from[IR_SOURCES];
	for (unsigned i = ir_sources(v, from); i-- > 0;) join_all(s, from[i], v, IR_MAX_RANK);
}

static void of_op(ir_op *o, void *context)
{
	same_dims *s = context;
	for (unsigned r = 0; r < o->nregions; r++)
		for (uint32_t i = 0; i < o->regions[r]->nargs; i++) carried(s, o->regions[r]->args[i]);
	for (unsigned i = 0; i < o->nresults; i++) carried(s, o->results[i]);
	switch (o->kind) {
	case IR_EXPAND_DIMS: without(s, o->results[0], (unsigned)ir_get_axis(o), ir_arg(o, 0)); break;
	case IR_RESHAPE: reshape(s, ir_arg(o, 0), o->results[0]); break;
	case IR_PERMUTE:
		for (unsigned i = 0; i < o->results[0]->type.rank; i++)
			join(s, ir_arg(o, 0), ir_unpack(ir_get_order(o), i), o->results[0], i);
		break;
	case IR_DOT: dot(s, o); break;
	case IR_REDUCE: reduce(s, o); break;
	case IR_GATHER:
		join_all(s, ir_arg(o, 0), o->results[0], (unsigned)ir_get_axis(o));
		join_all(s, ir_arg(o, 1), o->results[0], IR_MAX_RANK);
		break;
	case IR_BROADCAST:
	case IR_JOIN:
	case IR_SPLIT:
	case IR_HINT:
	case IR_SCAN:
	case IR_SORT:
	case IR_FLIP:
	case IR_LOAD:
	case IR_STORE:
	case IR_ATOMIC_RMW:
	case IR_ATOMIC_CAS:
	case IR_INLINE_ASM: one_shape(s, o); break;
	default:
		if (ir_has(o, IR_ELEMENTWISE)) one_shape(s, o);
		break;
	}
}

same_dims same_dims_find(arena *a, const ir_func *f)
{
	same_dims s = {.parent = ARENA_ARRAY(a, uint32_t, f->nvalues * IR_MAX_RANK), .known = f->nvalues};
	for (uint32_t i = 0; i < f->nvalues * IR_MAX_RANK; i++) s.parent[i] = i;
	ir_walk(f->body, of_op, &s);
	return s;
}
