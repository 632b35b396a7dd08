/* What a mask says of indices.  See mask.h. */
#include "mask.h"

#include <string.h>

typedef struct reading {
	affine_context *context;
	mask_reader *read;
	void *argument;
} reading;

static ir_value *without_copies(ir_value *v)
{
	while (v->def && (v->def->kind == IR_SPLAT || v->def->kind == IR_CONVERT_LAYOUT)) v = ir_arg(v->def, 0);
	return v;
}

/* A signed number that is compared as an unsigned one. */
static ir_value *as_signed(ir_value *v)
{
	v = without_copies(v);
	const ir_op *o = v->def;
	if (!o || (o->kind != IR_BITCAST && o->kind != IR_CONVERT)) return v;
	scalar from = (scalar)ir_arg(o, 0)->type.elem;
	bool same_bits = scalar_is_integer(from) && scalar_bytes(from) == scalar_bytes((scalar)v->type.elem);
	return same_bits ? without_copies(ir_arg(o, 0)) : v;
}

/* As a signed sum: one that is not below 0; or where what is compared is below max(sum, 0), a sum that may be; or any,
 * which is a bound only where it is not. */
static bool unsigned_end(affine_context *c, ir_value *v, bool strict, mask_bound *b)
{
	assert(!scalar_is_signed((scalar)v->type.elem));
	int64_t n, least, most = scalar_bytes((scalar)v->type.elem) > 4 ? INT64_MAX : INT32_MAX;
	v = as_signed(v);
	if (ir_is_const_int(v, &n)) {
		affine_add_number(&b->high, n);
		return n >= 0 && n <= most;
	}
	const ir_op *o = v->def;
	if (strict && o && o->kind == IR_MAX && ir_is_const_int(ir_arg(o, 1), &least) && least == 0)
		return affine_of(c, ir_arg(o, 0), &b->high); /* where it is below 0, nothing is let through */
	b->if_not_negative = true;
	return affine_of(c, v, &b->high);
}

static bool compare(affine_context *c, const ir_op *o, mask_bound *b)
{
	bool less = o->kind == IR_LT || o->kind == IR_LE, strict = o->kind == IR_LT || o->kind == IR_GT;
	ir_value *large = ir_arg(o, less ? 1 : 0), *small = ir_arg(o, less ? 0 : 1);
	*b = (mask_bound){.from_zero = !scalar_is_signed((scalar)small->type.elem),
		.wide = scalar_bytes((scalar)small->type.elem) > 4};
	if (small->type.pointer || scalar_is_float((scalar)small->type.elem)) return false;
	bool good = b->from_zero ? unsigned_end(c, large, strict, b) && affine_of(c, as_signed(small), &b->low)
				 : affine_of(c, large, &b->high) && affine_of(c, small, &b->low);
	return good && affine_add_number(&b->high, strict ? -1 : 0);
}

static void place(affine *s, const int8_t *dim)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->term[i].place >= 0) s->term[i].place = dim[s->term[i].place];
}

/* dim: of the mask, for each dimension of v. */
static const char *conjunction(const reading *r, ir_value *v, const int8_t *dim)
{
	int8_t inner[IR_MAX_RANK] = {0};
	uint64_t known;
	mask_bound bound;
	const ir_op *o = v->def;
	assert(v->type.elem == SCALAR_BOOL && !v->type.pointer);
	if (!o) return r->read(r->argument, NULL);
	if (ir_is_const(v, &known)) return known ? NULL : r->read(r->argument, NULL);
	memcpy(inner, dim, sizeof inner);
	switch (o->kind) {
	case IR_AND: {
		const char *answer = conjunction(r, ir_arg(o, 0), dim);
		return answer ? answer : conjunction(r, ir_arg(o, 1), dim);
	}
	case IR_SPLAT:
	case IR_BROADCAST:
	case IR_CONVERT_LAYOUT: return conjunction(r, ir_arg(o, 0), dim);
	case IR_EXPAND_DIMS:
		for (unsigned i = 0; i + 1 < v->type.rank; i++) inner[i] = dim[i + (i >= ir_get_axis(o))];
		return conjunction(r, ir_arg(o, 0), inner);
	case IR_PERMUTE:
		for (unsigned i = 0; i < v->type.rank; i++) inner[ir_unpack(ir_get_order(o), i)] = dim[i];
		return conjunction(r, ir_arg(o, 0), inner);
	case IR_LT:
	case IR_LE:
	case IR_GT:
	case IR_GE:
		if (!compare(r->context, o, &bound)) return r->read(r->argument, NULL);
		place(&bound.low, dim);
		place(&bound.high, dim);
		return r->read(r->argument, &bound);
	default: return r->read(r->argument, NULL);
	}
}

const char *mask_bounds(affine_context *c, ir_value *mask, mask_reader *read, void *argument)
{
	static const int8_t same[IR_MAX_RANK] = {0, 1, 2, 3};
	return conjunction(&(reading){c, read, argument}, mask, same);
}
