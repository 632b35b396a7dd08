/* The run-time values inside an sval.
 *
 * Regions of the IR carry plain values, while a variable or a result may be a tuple, a tensor or a block pointer.  So
 * what crosses a region is taken apart into its leaves on one side and put together again on the other; what is not a
 * leaf (the shape of a block, a type) has to be the same on all ways. */
#include "internal.h"

#include <assert.h>

void leaves_collect(sema *s, sval v, value_list *out)
{
	switch (v.kind) {
	case SVAL_VALUE: vec_push(s->arena, out, v.value); break;
	case SVAL_TUPLE:
		for (uint32_t i = 0; i < v.tuple.n; i++) leaves_collect(s, v.tuple.items[i], out);
		break;
	case SVAL_TENSOR:
		vec_push(s->arena, out, v.tensor->base);
		for (uint32_t i = 0; i < v.tensor->rank; i++) leaves_collect(s, v.tensor->shape[i], out);
		for (uint32_t i = 0; i < v.tensor->rank; i++) leaves_collect(s, v.tensor->strides[i], out);
		break;
	case SVAL_BLOCK_PTR:
		leaves_collect(s, (sval){.kind = SVAL_TENSOR, .tensor = v.block_ptr->tensor}, out);
		for (uint32_t i = 0; i < v.block_ptr->tensor->rank; i++) leaves_collect(s, v.block_ptr->index[i], out);
		break;
	default: break;
	}
}

/* Applies `each` to every part of a compound; the walk that rebuild and run_time share. */
typedef struct visit {
	sval (*each)(sema *, sval, struct visit *);
	ir_value *const *values;
	uint32_t *next;
	const char *what;
	bool failed;
} visit;

static sval map(sema *s, sval v, visit *m);

static sval *map_items(sema *s, const sval *items, uint32_t n, visit *m)
{
	sval *out = ARENA_ARRAY(s->arena, sval, n + 1);
	for (uint32_t i = 0; i < n; i++) out[i] = map(s, items[i], m);
	return out;
}

static const sema_tensor *map_tensor(sema *s, const sema_tensor *t, visit *m)
{
	assert(t->rank && t->rank <= IR_MAX_RANK);
	sema_tensor *n = ARENA_NEW(s->arena, sema_tensor);
	*n = *t;
	n->base = m->each(s, sval_value(t->base, (span){0}), m).value;
	n->shape = map_items(s, t->shape, t->rank, m);
	n->strides = map_items(s, t->strides, t->rank, m);
	return n;
}

static sval map(sema *s, sval v, visit *m)
{
	switch (v.kind) {
	case SVAL_TUPLE: v.tuple.items = map_items(s, v.tuple.items, v.tuple.n, m); return v;
	case SVAL_TENSOR: v.tensor = map_tensor(s, v.tensor, m); return v;
	case SVAL_BLOCK_PTR: {
		sema_block_ptr *p = ARENA_NEW(s->arena, sema_block_ptr);
		*p = *v.block_ptr;
		p->tensor = map_tensor(s, p->tensor, m);
		p->index = map_items(s, v.block_ptr->index, p->tensor->rank, m);
		v.block_ptr = p;
		return v;
	}
	default: return m->each(s, v, m);
	}
}

static sval replace_leaf(sema *s, sval v, visit *m)
{
	(void)s;
	if (v.kind == SVAL_VALUE) v.value = m->values[(*m->next)++];
	return v;
}

sval leaves_rebuild(sema *s, sval shape, ir_value *const *values, uint32_t *next)
{
	visit m = {.each = replace_leaf, .values = values, .next = next};
	return map(s, shape, &m);
}

static sval make_run_time(sema *s, sval v, visit *m)
{
	if (v.kind == SVAL_VALUE) return v;
	if (v.kind == SVAL_NUMBER) return sval_value(sema_value(s, v, m->what), v.at);
	if (v.kind != SVAL_POISON)
		sema_error(s, 216, v.at, "%s must have run-time values, found %s", m->what, sema_type_text(s, v));
	m->failed = true;
	return sval_poison(v.at);
}

sval sema_run_time(sema *s, sval v, const char *what)
{
	visit m = {.each = make_run_time, .what = what};
	sval r = map(s, v, &m);
	return m.failed ? sval_poison(v.at) : r;
}

static sval make_zero(sema *s, sval v, visit *m)
{
	(void)m;
	if (v.kind == SVAL_VALUE) return sval_value(sema_zero(s, v.value->type), v.at);
	return v;
}

ir_value *sema_zero(sema *s, ir_type t)
{
	if (!t.pointer) return ir_constant(&s->b, t, 0);
	ir_value *zero = ir_constant(&s->b, ir_with_elem(t, SCALAR_I64), 0);
	return ir_build1(&s->b, IR_BITCAST, t, 1, &zero);
}

sval sema_zero_like(sema *s, sval v)
{
	visit m = {.each = make_zero};
	return map(s, v, &m);
}

static bool same_items(const sval *a, const sval *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!sema_same_value(a[i], b[i])) return false;
	return true;
}

static bool same_tensor(const sema_tensor *a, const sema_tensor *b)
{
	return a == b || (a->base == b->base && a->rank == b->rank && same_items(a->shape, b->shape, a->rank) &&
				 same_items(a->strides, b->strides, a->rank));
}

static bool same_number(sema_number a, sema_number b)
{
	return a.type == b.type && a.untyped == b.untyped && a.i == b.i && (a.f == b.f || (a.f != a.f && b.f != b.f)) &&
	       __builtin_signbit(a.f) == __builtin_signbit(b.f);
}

bool sema_same_value(sval a, sval b)
{
	if (a.kind != b.kind) return false;
	switch (a.kind) {
	case SVAL_NUMBER: return same_number(a.number, b.number);
	case SVAL_TUPLE: return a.tuple.n == b.tuple.n && same_items(a.tuple.items, b.tuple.items, a.tuple.n);
	case SVAL_TENSOR: return same_tensor(a.tensor, b.tensor);
	case SVAL_BLOCK_PTR:
		return a.block_ptr == b.block_ptr ||
		       (ir_type_equal(a.block_ptr->block, b.block_ptr->block) &&
			       same_tensor(a.block_ptr->tensor, b.block_ptr->tensor) &&
			       same_items(a.block_ptr->index, b.block_ptr->index, a.block_ptr->tensor->rank));
	default: return sval_equal(a, b);
	}
}

/* ---- two ways meet ---- */

typedef struct meeting {
	ir_builder *x, *y;
	span at;
	const char *what;
} meeting;

static bool merge(sema *s, sval *a, sval *b, const meeting *m);

static sval emit_number(sema *s, ir_builder *b, sval v, scalar t)
{
	if (!sema_alone_fits(s, v, t)) return sval_poison(v.at);
	return sval_value(ir_constant(b, ir_scalar_type(t), sema_number_bits(v.number, t)), v.at);
}

static bool disagree(sema *s, sval a, sval b, const meeting *m)
{
	if (a.kind == SVAL_POISON || b.kind == SVAL_POISON) return false;
	diag *d = sema_diag(s, 406, m->at, "%s is %s on one way and %s on the other", m->what, sema_type_text(s, a),
		sema_type_text(s, b));
	if (a.at.file) diag_add_label(s->diags, d, a.at, "%s", sema_type_text(s, a));
	if (b.at.file) diag_add_label(s->diags, d, b.at, "%s", sema_type_text(s, b));
	return false;
}

static bool merge_items(sema *s, const sval **a, const sval **b, uint32_t n, const meeting *m)
{
	sval *x = ARENA_ARRAY(s->arena, sval, n + 1), *y = ARENA_ARRAY(s->arena, sval, n + 1);
	for (uint32_t i = 0; i < n; i++) {
		x[i] = (*a)[i];
		y[i] = (*b)[i];
		if (!merge(s, &x[i], &y[i], m)) return false;
	}
	*a = x;
	*b = y;
	return true;
}

static bool merge_tensor(sema *s, const sema_tensor **a, const sema_tensor **b, const meeting *m)
{
	assert((*a)->rank <= IR_MAX_RANK && (*b)->rank <= IR_MAX_RANK);
	sema_tensor *x = ARENA_NEW(s->arena, sema_tensor), *y = ARENA_NEW(s->arena, sema_tensor);
	*x = **a;
	*y = **b;
	const sval *xs = x->shape, *ys = y->shape, *xt = x->strides, *yt = y->strides;
	if (!merge_items(s, &xs, &ys, x->rank, m) || !merge_items(s, &xt, &yt, x->rank, m)) return false;
	x->shape = (sval *)xs;
	y->shape = (sval *)ys;
	x->strides = (sval *)xt;
	y->strides = (sval *)yt;
	*a = x;
	*b = y;
	return true;
}

static bool merge_block_ptr(sema *s, sval *a, sval *b, const meeting *m)
{
	assert(a->kind == SVAL_BLOCK_PTR && b->kind == SVAL_BLOCK_PTR);
	sema_block_ptr *x = ARENA_NEW(s->arena, sema_block_ptr), *y = ARENA_NEW(s->arena, sema_block_ptr);
	*x = *a->block_ptr;
	*y = *b->block_ptr;
	if (!ir_type_equal(x->block, y->block)) return disagree(s, *a, *b, m); /* which compares the ranks too */
	const sval *xi = x->index, *yi = y->index;
	if (!merge_items(s, &xi, &yi, x->tensor->rank, m) || !merge_tensor(s, &x->tensor, &y->tensor, m)) return false;
	x->index = (sval *)xi;
	y->index = (sval *)yi;
	a->block_ptr = x;
	b->block_ptr = y;
	return true;
}

static bool merge_numbers(sema *s, sval *a, sval *b, const meeting *m)
{
	assert((a->kind == SVAL_VALUE || a->kind == SVAL_NUMBER) && (b->kind == SVAL_VALUE || b->kind == SVAL_NUMBER));
	scalar ta = a->kind == SVAL_VALUE ? (scalar)a->value->type.elem : a->number.type;
	scalar tb = b->kind == SVAL_VALUE ? (scalar)b->value->type.elem : b->number.type, t;
	if (a->kind == SVAL_VALUE && b->kind == SVAL_VALUE) {
		if (ir_type_equal(a->value->type, b->value->type)) return true;
		return disagree(s, *a, *b, m);
	}
	if (a->kind == SVAL_VALUE) {
		bool adapts = b->number.untyped || scalar_is_integer(tb);
		if (a->value->type.rank || a->value->type.pointer || !(tb == ta || adapts) ||
			!number_fits(b->number, ta))
			return disagree(s, *a, *b, m);
		t = ta;
	} else if (b->kind == SVAL_VALUE) {
		bool adapts = a->number.untyped || scalar_is_integer(ta);
		if (b->value->type.rank || b->value->type.pointer || !(tb == ta || adapts) ||
			!number_fits(a->number, tb))
			return disagree(s, *a, *b, m);
		t = tb;
	} else if (a->number.untyped && !b->number.untyped && number_fits(a->number, tb)) {
		t = tb;
	} else if (b->number.untyped && !a->number.untyped && number_fits(b->number, ta)) {
		t = ta;
	} else if (ta == tb) {
		t = ta;
	} else if (!a->number.untyped || !b->number.untyped || !promote(ta, tb, &t)) {
		return disagree(s, *a, *b, m);
	}
	if (a->kind == SVAL_NUMBER) *a = emit_number(s, m->x, *a, t);
	if (b->kind == SVAL_NUMBER) *b = emit_number(s, m->y, *b, t);
	return true;
}

static sval run_time_at(sema *s, sval v, ir_builder *b, const char *what)
{
	ir_builder saved = s->b;
	s->b = *b;
	v = sema_run_time(s, v, what);
	s->b = saved;
	return v;
}

static sval zero_at(sema *s, sval v, ir_builder *b)
{
	ir_builder saved = s->b;
	s->b = *b;
	v = sema_zero_like(s, v);
	s->b = saved;
	return v;
}

static bool merge(sema *s, sval *a, sval *b, const meeting *m)
{
	bool na = a->kind == SVAL_NUMBER || a->kind == SVAL_VALUE, nb = b->kind == SVAL_NUMBER || b->kind == SVAL_VALUE;
	if (a->kind == SVAL_UNDEFINED && sval_is_compile_time(*b)) return *a = *b, b->kind != SVAL_POISON;
	if (b->kind == SVAL_UNDEFINED && sval_is_compile_time(*a)) return *b = *a, a->kind != SVAL_POISON;
	if (a->kind == SVAL_UNDEFINED) {
		*b = run_time_at(s, *b, m->y, m->what);
		*a = zero_at(s, *b, m->x);
		return b->kind != SVAL_POISON;
	}
	if (b->kind == SVAL_UNDEFINED) {
		*a = run_time_at(s, *a, m->x, m->what);
		*b = zero_at(s, *a, m->y);
		return a->kind != SVAL_POISON;
	}
	if (na && nb) return merge_numbers(s, a, b, m);
	if (a->kind != b->kind) return disagree(s, *a, *b, m);
	switch (a->kind) {
	case SVAL_TUPLE:
		if (a->tuple.n != b->tuple.n) return disagree(s, *a, *b, m);
		return merge_items(s, &a->tuple.items, &b->tuple.items, a->tuple.n, m);
	case SVAL_TENSOR:
		if (a->tensor->rank != b->tensor->rank || !ir_type_equal(a->tensor->base->type, b->tensor->base->type))
			return disagree(s, *a, *b, m);
		return merge_tensor(s, &a->tensor, &b->tensor, m);
	case SVAL_BLOCK_PTR: return merge_block_ptr(s, a, b, m);
	default:
		if (sval_equal(*a, *b)) return true;
		return disagree(s, *a, *b, m);
	}
}

bool sema_merge(sema *s, sval *a, ir_builder *x, sval *b, ir_builder *y, span at, const char *what)
{
	const meeting m = {x, y, at, what};
	return merge(s, a, b, &m);
}
