/* Types as values of the compiler: made, and compared. */
#include "internal.h"

#include <string.h>

static const stype scalar_types[SCALAR_COUNT] = {
#define X(e, name, bytes, is_signed, is_float, mantissa, exponent) {STYPE_VALUE, {.elem = SCALAR_##e}, NULL, 0, 1},
	SCALARS(X)
#undef X
};
static const stype type_tensor = {.kind = STYPE_TENSOR, .leaves = 1}, type_type = {.kind = STYPE_TYPE, .leaves = 1},
		   type_shape = {.kind = STYPE_SHAPE, .leaves = 1};

const stype *stype_named(arena *a, const char *name)
{
	(void)a;
	scalar t;
	if (scalar_parse(name, &t)) return &scalar_types[t];
	if (strcmp(name, "tensor") == 0) return &type_tensor;
	if (strcmp(name, "type") == 0) return &type_type;
	if (strcmp(name, "shape") == 0) return &type_shape;
	return NULL;
}

const stype *stype_value(sema *s, ir_type t)
{
	stype *n = ARENA_NEW(s->arena, stype);
	n->kind = STYPE_VALUE;
	n->value = t;
	n->leaves = 1;
	return n;
}

bool stype_equal(const stype *a, const stype *b)
{
	if (a == b) return true;
	if (a->kind != b->kind) return false;
	if (a->kind == STYPE_VALUE) return ir_type_equal(a->value, b->value);
	if (a->nitems != b->nitems) return false;
	for (uint32_t i = 0; i < a->nitems; i++)
		if (!stype_equal(a->items[i], b->items[i])) return false;
	return true;
}

const stype *stype_tuple(sema *s, const stype *const *items, uint32_t n)
{
	stype *t = ARENA_NEW(s->arena, stype);
	t->kind = STYPE_TUPLE;
	t->items = items;
	t->nitems = n;
	for (uint32_t i = 0; i < n; i++) { /* small enough: the tuple that this is the type of has been measured */
		t->leaves += items[i]->leaves;
		if (items[i]->depth > t->depth) t->depth = items[i]->depth;
	}
	t->depth++;
	return t;
}
