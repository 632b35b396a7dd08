/* Whether an integer can be below 0, with what the host has to look at.  See int_range.h. */
#include "int_range.h"

enum { MOST_DEPTH = 24 };

bool int_range_guard(int_range *s, const affine *sum)
{
	assert(!sum->root);
	for (unsigned i = 0; i < s->nguards; i++) {
		affine d = s->guard[i];
		if (affine_add(&d, sum, -1) && !d.n) return true;
	}
	if (s->nguards == MOST_GUARDS) return false;
	s->guard[s->nguards++] = *sum;
	return true;
}

static bool never_negative(void *context, ir_value *v, unsigned depth);

/* `assume(v >= n)`, n not negative, which stands where the load is seen from.  Of a value that a loop carries on from
 * another iteration, only where that iteration came by as well: beside the value itself. */
static bool is_assumed(const int_range *s, const ir_value *v)
{
	const ir_block *home = v->def ? v->def->block : v->block;
	for (const ir_use *u = v->uses; u; u = u->next) {
		const ir_op *o = u->user;
		int64_t n;
		bool least = (o->kind == IR_GE || o->kind == IR_GT) && ir_arg(o, 0) == v &&
			     ir_is_const_int(ir_arg(o, 1), &n) && n >= (o->kind == IR_GE ? 0 : -1);
		for (const ir_use *a = least ? o->results[0]->uses : NULL; a; a = a->next) {
			if (a->user->kind != IR_ASSUME || (s->carried.n && a->user->block != home)) continue;
			for (const ir_op *at = s->at; at; at = at->block->parent)
				for (const ir_op *before = at; before; before = before->prev)
					if (before == a->user) return true;
		}
	}
	return false;
}

static bool guarded(int_range *s, ir_value *v)
{
	affine sum = affine_value(v);
	return int_range_guard(s, &sum);
}

static bool both(int_range *s, const ir_op *o, unsigned depth)
{
	return never_negative(s, ir_arg(o, 0), depth) && never_negative(s, ir_arg(o, 1), depth);
}

static bool never_negative(void *context, ir_value *v, unsigned depth)
{
	assert(ir_is_scalar(v));
	int_range *s = context;
	int64_t n;
	if (depth == 0 || s->visits++ >= MOST_SIGNS || v->type.pointer || !scalar_is_integer((scalar)v->type.elem))
		return false;
	if (int_range_of(v).low >= 0) return true;
	if (ir_is_const_int(v, &n)) return false;
	const ir_op *loop = v->def ? NULL : v->block->parent;
	if (!v->def && !loop) return is_assumed(s, v) || guarded(s, v);
	unsigned nguards = s->nguards;
	ir_value *source[IR_SOURCES];
	unsigned nsources = ir_sources(v, source);
	if (loop && loop->kind == IR_FOR && v->index == 0) { /* counts up */
		source[nsources++] = ir_arg(loop, 0);
		source[nsources++] = ir_arg(loop, 2);
	}
	if (nsources && ir_holds_for_all(&s->carried, v, source, nsources, never_negative, s, depth - 1)) return true;
	const ir_op *o = v->def;
	switch (o ? o->kind : IR_KIND_COUNT) {
	case IR_ADD:
	case IR_MUL:
	case IR_DIV:
	case IR_MIN:
		if (both(s, o, depth - 1)) return true;
		break;
	case IR_MAX:
		if (never_negative(s, ir_arg(o, 1), depth - 1)) return true;
		s->nguards = nguards;
		if (never_negative(s, ir_arg(o, 0), depth - 1)) return true;
		break;
	case IR_SELECT:
		if (never_negative(s, ir_arg(o, 1), depth - 1) && never_negative(s, ir_arg(o, 2), depth - 1))
			return true;
		break;
	case IR_REM:
	case IR_SHR:
		if (never_negative(s, ir_arg(o, 0), depth - 1)) return true;
		break;
	case IR_HINT:
		if (never_negative(s, ir_arg(o, 0), depth - 1)) return true;
		break;
	case IR_CONVERT:
		if (scalar_bytes((scalar)v->type.elem) > scalar_bytes((scalar)ir_arg(o, 0)->type.elem) &&
			never_negative(s, ir_arg(o, 0), depth - 1))
			return true;
		break;
	default: break;
	}
	s->nguards = nguards;
	if (is_assumed(s, v)) return true;
	return affine_of_host(&s->context, v) && guarded(s, v);
}

bool int_range_never_negative(int_range *s, ir_value *v)
{
	return never_negative(s, v, MOST_DEPTH);
}

bool int_range_sum_never_negative(int_range *s, const affine *sum)
{
	assert(!sum->root);
	for (unsigned i = 0; i < sum->n; i++) {
		const affine_term *t = &sum->term[i];
		if (t->factor < 0) return false;
		for (unsigned k = 0; k < t->natoms; k++)
			if (!int_range_never_negative(s, t->atom[k])) return false;
	}
	return true;
}

ir_value *int_range_extent(ir_builder *b, const int_range *s, ir_value *extent)
{
	affine whole = affine_value(extent);
	if (s->nguards) extent = affine_build(b, &whole, SCALAR_I64);
	for (unsigned i = 0; i < s->nguards; i++) { /* 1 where the sum is not below 0, else 0 */
		affine sum = s->guard[i];
		affine_add_number(&sum, 1);
		ir_value *v = affine_build(b, &sum, SCALAR_I64);
		v = ir_binary(b, IR_MIN, v, ir_constant_int(b, SCALAR_I64, 1));
		v = ir_binary(b, IR_MAX, v, ir_constant_int(b, SCALAR_I64, 0));
		extent = ir_binary(b, IR_MUL, extent, v);
	}
	return extent;
}
