/* Helpers of the built-in functions: see builtins_util.h. */
#include "builtins_util.h"

diag *builtin_needs(sema *s, const builtin_call *c, unsigned arg, const char *what)
{
	return sema_diag(s, 501, c->arg_at[arg], "'%s' needs %s, not %s", c->builtin->name, what,
		sema_type_text(s, c->args[arg]));
}

ir_value *builtin_tile(sema *s, const builtin_call *c, unsigned arg)
{
	ir_type t;
	if (!sval_type_of(c->args[arg], &t) || t.rank == 0 || t.pointer) {
		builtin_needs(s, c, arg, "a tile of numbers");
		return NULL;
	}
	return sema_value(s, c->args[arg], "the tile");
}

bool builtin_flag(sema *s, const builtin_call *c, unsigned arg, const char *what, bool *flag)
{
	return sval_is_none(c->args[arg]) || sema_as_const_bool(s, c->args[arg], flag, what);
}

bool builtin_choice(sema *s, const builtin_call *c, unsigned arg, const char *const *choices, unsigned n,
	const char *what, unsigned *which)
{
	return sval_is_none(c->args[arg]) || sema_as_choice(s, c->args[arg], choices, n, which, what);
}

uint64_t builtin_next_pow2(uint64_t n)
{
	uint64_t p = 1;
	while (p < n && p < (uint64_t)1 << 63) p <<= 1;
	return p;
}

ir_value *builtin_reshape(sema *s, ir_value *v, ir_type shape)
{
	if (ir_same_shape(v->type, shape)) return v;
	return ir_build1(&s->b, IR_RESHAPE, ir_with_shape(v->type, shape), 1, &v);
}

ir_value *builtin_permute(sema *s, ir_value *v, const uint16_t *order)
{
	ir_type t = v->type;
	for (unsigned i = 0; i < t.rank; i++) t.dim[i] = v->type.dim[order[i]];
	ir_op *o = ir_build(&s->b, IR_PERMUTE, 1, &v, 1, &t, 0);
	ir_set_order(o, ir_pack(t.rank, order));
	return ir_result(o);
}

ir_value *builtin_expand(sema *s, ir_value *v, unsigned axis)
{
	ir_type t = builtin_with_axis(v->type, axis, 1);
	if (v->type.rank == 0) return ir_splat(&s->b, v, t);
	ir_op *o = ir_build(&s->b, IR_EXPAND_DIMS, 1, &v, 1, &t, 0);
	ir_set_axis(o, axis);
	return ir_result(o);
}

ir_type builtin_without_axis(ir_type t, unsigned axis)
{
	for (unsigned i = axis; i + 1 < t.rank; i++) t.dim[i] = t.dim[i + 1];
	t.dim[--t.rank] = 0;
	return t;
}

ir_type builtin_with_axis(ir_type t, unsigned axis, uint32_t extent)
{
	for (unsigned i = t.rank++; i > axis; i--) t.dim[i] = t.dim[i - 1];
	t.dim[axis] = extent;
	return t;
}

ir_value *builtin_float_constant(sema *s, ir_type t, double x)
{
	return ir_constant(&s->b, t, scalar_from_double((scalar)t.elem, x));
}

ir_value *builtin_widen(sema *s, ir_value *v)
{
	bool narrow = v->type.elem == SCALAR_F16 || v->type.elem == SCALAR_BF16;
	return narrow ? sema_convert(s, v, SCALAR_F32) : v;
}

/* ---- floats and numbers ---- */

bool builtin_all_numbers(const sval *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (v[i].kind != SVAL_NUMBER) return false;
	return true;
}

bool builtin_common_numbers(sema *s, const builtin_call *c, sval *v, unsigned n)
{
	scalar type;
	bool untyped = true;
	if (!sema_numbers_type(s, v, n, c->at, &type)) return false;
	for (unsigned i = 0; i < n; i++) untyped = untyped && v[i].number.untyped;
	for (unsigned i = 0; i < n; i++) {
		if (!untyped)
			v[i] = sval_number_bits(type, sema_number_bits(v[i].number, type), v[i].at);
		else if (scalar_is_float(type))
			v[i] = sval_float(
				scalar_is_float(v[i].number.type) ? v[i].number.f : (double)v[i].number.i, v[i].at);
	}
	return true;
}

sval builtin_folded_float(sema_number like, double x, span at)
{
	return like.untyped ? sval_float(x, at) : sval_number_bits(like.type, scalar_from_double(like.type, x), at);
}

bool builtin_takes_float(sema *s, const builtin_call *c, unsigned arg)
{
	ir_type t;
	sval x = c->args[arg];
	if (!sval_type_of(x, &t)) {
		sema_value(s, x, arena_printf(s->arena, "'%s'", c->builtin->name));
		return false;
	}
	if (!t.pointer && scalar_is_float((scalar)t.elem) && !scalar_is_fp8((scalar)t.elem)) return true;
	diag *d = sema_diag(s, 206, x.at, "'%s' needs floats, found %s", c->builtin->name, sema_type_text(s, x));
	if (!t.pointer) diag_set_hint(s->diags, d, "convert first: %s.to(f32)", sema_postfix_text(s, x.at));
	return false;
}

bool builtin_takes_floats(sema *s, const builtin_call *c, unsigned n)
{
	unsigned nfloats = 0;
	for (unsigned i = 0; i < n; i++) {
		ir_type t;
		if (!sval_type_of(c->args[i], &t)) return builtin_takes_float(s, c, i);
		bool is_float = !t.pointer && scalar_is_float((scalar)t.elem);
		if (is_float) nfloats++;
		if ((is_float || !sval_is_int(c->args[i])) && !builtin_takes_float(s, c, i)) return false;
	}
	if (nfloats) return true;
	return builtin_takes_float(s, c, 0); /* which it does not */
}
