/* Casts: x.to(T) and x.to(T, bitcast = true) on numbers, tiles and pointers. */
#include "internal.h"

static bool is_address(scalar t)
{
	return t == SCALAR_I64 || t == SCALAR_U64;
}

static sval refuse(sema *s, sval x, ir_type to, span at, const char *hint)
{
	diag *d = sema_diag(
		s, 217, at, "%s cannot be cast to %s", sema_type_text(s, x), ir_type_name(s->arena, ir_element(to)));
	diag_set_hint(s->diags, d, "%s", hint);
	return sval_poison(at);
}

static sval cast_pointer(sema *s, sval x, ir_type to, span at)
{
	ir_value *v = x.value;
	ir_type t = ir_with_shape(to, v->type);
	if (ir_type_equal(t, v->type)) return sval_value(v, at);
	if (v->type.pointer && !to.pointer && !is_address((scalar)to.elem))
		return refuse(s, x, to, at,
			arena_printf(s->arena, "load(%s).to(%s) converts what stands there; the address is %s.to(u64)",
				sema_source_text(s, x.at), scalar_name((scalar)to.elem), sema_postfix_text(s, x.at)));
	if (!v->type.pointer && !is_address((scalar)v->type.elem))
		return refuse(s, x, to, at, "an address is an i64 or u64: cast to u64 first");
	return sval_value(ir_build1(&s->b, IR_BITCAST, t, 1, &v), at);
}

/* A literal is an integer of the wanted width if it fits one. */
static void literal_of_width(sema_number literal, scalar to, ir_type *from)
{
	static const scalar integers[] = {
		SCALAR_U8, SCALAR_I8, SCALAR_U16, SCALAR_I16, SCALAR_U32, SCALAR_I32, SCALAR_U64, SCALAR_I64};
	for (unsigned i = 0; i < sizeof integers / sizeof integers[0]; i++)
		if (scalar_bits(integers[i]) == scalar_bits(to) && number_fits(literal, integers[i])) {
			*from = ir_scalar_type(integers[i]);
			return;
		}
}

static sval cast_bits(sema *s, sval x, ir_type from, scalar to, span at)
{
	if (x.kind == SVAL_NUMBER && x.number.untyped && scalar_is_integer(x.number.type))
		literal_of_width(x.number, to, &from);
	scalar e = (scalar)from.elem;
	if (scalar_bits(e) != scalar_bits(to)) {
		diag *d = sema_diag(s, 217, at, "a bitcast keeps the size: %s has %u bits, %s has %u", scalar_name(e),
			scalar_bits(e), scalar_name(to), scalar_bits(to));
		diag_set_hint(s->diags, d, "convert to an integer of the right width first");
		return sval_poison(at);
	}
	if (x.kind == SVAL_NUMBER) return sval_number_bits(to, sema_number_bits(x.number, e), at);
	if (e == to) return sval_value(x.value, at);
	return sval_value(ir_build1(&s->b, IR_BITCAST, ir_with_elem(from, to), 1, &x.value), at);
}

sval sema_cast(sema *s, sval x, sval type, bool bitcast, span at)
{
	ir_type to, from;
	if (!sema_as_type(s, type, &to, "the type of a cast")) return sval_poison(at);
	if (!sval_type_of(x, &from)) {
		sema_value(s, x, "the operand of a cast");
		return sval_poison(at);
	}
	if (to.rank) {
		diag *d = sema_diag(s, 217, type.at,
			"a cast keeps the shape: its type is a scalar or pointer type, found %s",
			ir_type_name(s->arena, to));
		diag_set_hint(s->diags, d, "write .to(%s)", ir_type_name(s->arena, ir_element(to)));
		return sval_poison(at);
	}
	if (to.pointer || from.pointer) {
		if (to.pointer && x.kind == SVAL_NUMBER) {
			if (!scalar_is_integer(from.elem)) return refuse(s, x, to, at, "an address is an i64 or u64");
			x = sval_value(
				ir_constant(&s->b, ir_scalar_type(SCALAR_U64), sema_number_bits(x.number, SCALAR_U64)),
				x.at);
		}
		return cast_pointer(s, x, to, at);
	}
	if (bitcast) return cast_bits(s, x, from, (scalar)to.elem, at);
	if (x.kind == SVAL_NUMBER)
		return sval_number_bits((scalar)to.elem, sema_number_bits(x.number, (scalar)to.elem), at);
	return sval_value(sema_convert(s, x.value, (scalar)to.elem), at);
}
