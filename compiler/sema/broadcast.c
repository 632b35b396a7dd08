/* What the language does by itself, written out in the IR: an element type that changes, a shape that stretches. */
#include "internal.h"

#include <assert.h>
#include <string.h>

ir_value *sema_convert(sema *s, ir_value *v, scalar to)
{
	assert(!v->type.pointer);
	uint64_t bits;
	if (v->type.elem == to) return v;
	ir_type t = ir_with_elem(v->type, to);
	if (ir_is_const(v, &bits)) return ir_constant(&s->b, t, scalar_convert(to, (scalar)v->type.elem, bits));
	return ir_build1(&s->b, IR_CONVERT, t, 1, &v);
}

/* The shape that both stretch to. */
bool sema_common_shape(ir_type a, ir_type b, ir_type *out)
{
	assert(a.rank <= IR_MAX_RANK && b.rank <= IR_MAX_RANK);
	ir_type r = a;
	r.rank = a.rank > b.rank ? a.rank : b.rank;
	for (unsigned i = 0; i < r.rank; i++) { /* from the right */
		uint32_t x = i < a.rank ? a.dim[a.rank - 1 - i] : 1, y = i < b.rank ? b.dim[b.rank - 1 - i] : 1;
		if (x != y && x != 1 && y != 1) return false;
		r.dim[r.rank - 1 - i] = x == 1 ? y : x;
	}
	*out = r;
	return true;
}

bool sema_stretches(ir_type from, ir_type to)
{
	ir_type common;
	return sema_common_shape(from, to, &common) && ir_same_shape(common, to);
}

ir_value *sema_stretch(sema *s, ir_value *v, ir_type shape)
{
	assert(sema_stretches(v->type, shape));
	if (ir_same_shape(v->type, shape)) return v;
	uint64_t bits;
	if (ir_is_const(v, &bits)) return ir_constant(&s->b, ir_with_shape(v->type, shape), bits);
	if (v->type.rank == 0) return ir_splat(&s->b, v, shape);
	while (v->type.rank < shape.rank) {
		ir_type t = v->type;
		memmove(t.dim + 1, t.dim, t.rank * sizeof *t.dim);
		t.dim[0] = 1;
		t.rank++;
		v = ir_build1(&s->b, IR_EXPAND_DIMS, t, 1, &v);
	}
	if (ir_same_shape(v->type, shape)) return v;
	return ir_build1(&s->b, IR_BROADCAST, ir_with_shape(v->type, shape), 1, &v);
}

ir_value *sema_broadcast_to(sema *s, ir_value *v, ir_type shape, span at)
{
	if (!sema_stretches(v->type, shape)) {
		diag *d = sema_diag(s, 203, at, "shape %s does not broadcast to %s", sema_shape_text(s, v->type),
			sema_shape_text(s, shape));
		diag_add_label(s->diags, d, at, "%s", sema_origin_text(s, sval_value(v, at)));
		if (shape.rank == 0)
			diag_set_hint(s->diags, d, "a scalar pointer is one place: p + offsets makes a tile of them");
		else
			diag_set_hint(s->diags, d,
				"shapes align at the right; an extent of 1 stretches, and [:, None] adds one");
		return NULL;
	}
	return sema_stretch(s, v, shape);
}
