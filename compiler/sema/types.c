/* An sval read as something definite: a type, a shape, an axis, a constant, a run-time value. */
#include "internal.h"

#include <string.h>

const stype *sema_as_stype(sema *s, sval v, const char *what)
{
	if (sval_is_poison(v)) return NULL;
	if (v.kind == SVAL_TYPE) return v.type;
	if (v.kind == SVAL_TUPLE) {
		const stype **items = ARENA_ARRAY(s->arena, const stype *, v.tuple.n + 1);
		for (uint32_t i = 0; i < v.tuple.n; i++)
			if (!(items[i] = sema_as_stype(s, v.tuple.items[i], what))) return NULL;
		return stype_tuple(s, items, v.tuple.n);
	}
	diag *d = sema_diag(s, 208, v.at, "%s must be a type, found %s", what, sema_type_text(s, v));
	diag_set_hint(s->diags, d, "types are f32, *f16, f32[64, 64], (i32, f32) ...");
	return NULL;
}

const stype *sema_stype_of(sema *s, sval v)
{
	ir_type t;
	if (sval_type_of(v, &t)) return stype_value(s, t);
	if (v.kind == SVAL_TENSOR) return stype_named(s->arena, "tensor");
	if (v.kind != SVAL_TUPLE) return NULL;
	const stype **items = ARENA_ARRAY(s->arena, const stype *, v.tuple.n + 1);
	for (uint32_t i = 0; i < v.tuple.n; i++)
		if (!(items[i] = sema_stype_of(s, v.tuple.items[i]))) return NULL;
	return stype_tuple(s, items, v.tuple.n);
}

/* ---- a value of a declared type ---- */

static sval mismatch(sema *s, sval v, const stype *t, const char *what)
{
	diag *d = sema_diag(s, 204, v.at, "%s must be %s, found %s", what, sema_stype_text(s, t), sema_type_text(s, v));
	ir_type from;
	if (t->kind != STYPE_VALUE || !sval_type_of(v, &from)) return sval_poison(v.at);
	if (v.kind == SVAL_VALUE) diag_add_label(s->diags, d, v.at, "%s", sema_origin_text(s, v));
	const char *source = sema_postfix_text(s, v.at), *shape = sema_shape_text(s, t->value);
	if (ir_same_shape(from, t->value) && from.pointer == t->value.pointer && !from.pointer)
		diag_set_hint(s->diags, d, "write the cast: %s.to(%s)", source, scalar_name(t->value.elem));
	else if (ir_same_shape(from, t->value) && from.pointer && t->value.pointer)
		diag_set_hint(
			s->diags, d, "write the cast: %s.to(%s)", source, ir_type_name(s->arena, ir_element(t->value)));
	else if (t->value.rank && sema_stretches(from, t->value))
		diag_set_hint(s->diags, d, "stretch it: broadcast_to(%s, %s)", source, shape);
	return sval_poison(v.at);
}

static sval coerce_shape(sema *s, sval v, const stype *t, const char *what)
{
	sval *items;
	if (v.kind == SVAL_NUMBER && sval_is_int(v)) v = sval_tuple(s, &v, 1, v.at);
	if (v.kind != SVAL_TUPLE) return mismatch(s, v, t, what);
	items = ARENA_ARRAY(s->arena, sval, v.tuple.n + 1);
	for (uint32_t i = 0; i < v.tuple.n; i++) {
		if (!sval_is_int(v.tuple.items[i])) return mismatch(s, v, t, what);
		items[i] = v.tuple.items[i];
	}
	return sval_tuple(s, items, v.tuple.n, v.at);
}

static sval coerce_number(sema *s, sval v, const stype *t, const char *what)
{
	scalar to = (scalar)t->value.elem;
	if (t->value.pointer || t->value.rank) return mismatch(s, v, t, what);
	bool adapts = v.number.untyped || (scalar_is_integer(v.number.type) && number_fits(v.number, to)) ||
		      v.number.type == to;
	if (!adapts || v.number.type == SCALAR_BOOL ? v.number.type != to : to == SCALAR_BOOL)
		return mismatch(s, v, t, what);
	if (!number_fits(v.number, to)) {
		bool other = scalar_is_float(v.number.type) && !scalar_is_float(to);
		diag *d = sema_diag(s, other ? 204 : 218, v.at,
			other ? "%s must be %s, found %s" : "%s must be %s, in which %s does not fit", what,
			scalar_name(to), sema_type_text(s, v));
		if (other)
			diag_set_hint(
				s->diags, d, "write the cast: %s.to(%s)", sema_postfix_text(s, v.at), scalar_name(to));
		return sval_poison(v.at);
	}
	return sval_number_bits(to, sema_number_bits(v.number, to), v.at);
}

sval sema_coerce(sema *s, sval v, const stype *t, const char *what)
{
	if (sval_is_poison(v)) return v;
	switch (t->kind) {
	case STYPE_TYPE: {
		const stype *type = sema_as_stype(s, v, what);
		return type ? (sval){.kind = SVAL_TYPE, .at = v.at, .type = type} : sval_poison(v.at);
	}
	case STYPE_SHAPE: return coerce_shape(s, v, t, what);
	case STYPE_TENSOR: return v.kind == SVAL_TENSOR ? v : mismatch(s, v, t, what);
	case STYPE_TUPLE: {
		if (v.kind != SVAL_TUPLE || v.tuple.n != t->nitems) return mismatch(s, v, t, what);
		sval *items = ARENA_ARRAY(s->arena, sval, t->nitems + 1);
		for (uint32_t i = 0; i < t->nitems; i++) {
			items[i] = sema_coerce(s, v.tuple.items[i], t->items[i], what);
			if (sval_is_poison(items[i])) return sval_poison(v.at);
		}
		return sval_tuple(s, items, t->nitems, v.at);
	}
	case STYPE_VALUE: break;
	}
	if (v.kind == SVAL_NUMBER) return coerce_number(s, v, t, what);
	if (v.kind == SVAL_VALUE && ir_type_equal(v.value->type, t->value)) return v;
	return mismatch(s, v, t, what);
}

/* ---- run-time values ---- */

ir_value *sema_value(sema *s, sval v, const char *what)
{
	if (v.kind == SVAL_VALUE) return v.value;
	if (v.kind == SVAL_NUMBER && !sema_alone_fits(s, v, v.number.type)) return NULL;
	if (v.kind == SVAL_NUMBER)
		return ir_constant(&s->b, ir_scalar_type(v.number.type), sema_number_bits(v.number, v.number.type));
	if (v.kind != SVAL_POISON)
		sema_error(s, 216, v.at, "%s must be a number or a tile, found %s", what, sema_type_text(s, v));
	return NULL;
}

ir_value *sema_as_value(sema *s, sval v, ir_type type, const char *what)
{
	const stype t = {.kind = STYPE_VALUE, .value = type};
	v = sema_coerce(s, v, &t, what);
	return v.kind == SVAL_VALUE || v.kind == SVAL_NUMBER ? sema_value(s, v, what) : NULL;
}

ir_value *sema_store_value(sema *s, sval v, scalar elem, ir_type shape, const char *what)
{
	if (v.kind == SVAL_NUMBER)
		return ir_constant(&s->b, ir_with_elem(shape, elem), sema_number_bits(v.number, elem));
	ir_value *x = sema_value(s, v, what);
	if (!x) return NULL;
	if (x->type.pointer) {
		diag *d = sema_diag(
			s, 204, v.at, "%s must be %s, found %s", what, scalar_name(elem), sema_type_text(s, v));
		diag_set_hint(
			s->diags, d, "an address in memory is an integer: %s.to(u64)", sema_postfix_text(s, v.at));
		return NULL;
	}
	return sema_broadcast_to(s, sema_convert(s, x, elem), shape, v.at);
}

ir_value *sema_as_mask(sema *s, sval v, ir_type shape, const char *what)
{
	ir_value *x = NULL;
	if (v.kind == SVAL_NUMBER && v.number.type == SCALAR_BOOL)
		return ir_constant(&s->b, ir_with_elem(shape, SCALAR_BOOL), v.number.i != 0);
	if (!(x = sema_value(s, v, what))) return NULL;
	if (x->type.pointer || x->type.elem != SCALAR_BOOL) {
		diag *d = sema_diag(s, 204, v.at, "%s must be bool, found %s", what, sema_type_text(s, v));
		diag_set_hint(s->diags, d, "compare: %s != 0", sema_source_text(s, v.at));
		return NULL;
	}
	return sema_broadcast_to(s, x, shape, v.at);
}

/* ---- compile-time things ---- */

static bool not_constant(sema *s, sval v, const char *what, const char *kind)
{
	if (sval_is_poison(v)) return false;
	if (v.kind == SVAL_VALUE) {
		diag *d = sema_diag(s, 301, v.at, "%s must be known at compile time, found a run-time %s", what,
			sema_type_text(s, v));
		diag_set_hint(s->diags, d, "a 'const' parameter makes it known");
	} else {
		sema_diag(s, 204, v.at, "%s must be %s, found %s", what, kind, sema_type_text(s, v));
	}
	return false;
}

bool sema_as_const_int(sema *s, sval v, int64_t *out, const char *what)
{
	*out = 0;
	if (!sval_is_int(v)) return not_constant(s, v, what, "an integer");
	if (v.number.i > INT64_MAX) {
		sema_error(s, 218, v.at, "%s does not fit in i64", what);
		return false;
	}
	*out = (int64_t)v.number.i;
	return true;
}

bool sema_as_const_bool(sema *s, sval v, bool *out, const char *what)
{
	*out = false;
	if (v.kind != SVAL_NUMBER || v.number.type != SCALAR_BOOL) return not_constant(s, v, what, "true or false");
	*out = v.number.i != 0;
	return true;
}

bool sema_as_string(sema *s, sval v, const char **out, uint32_t *n, const char *what)
{
	*out = "";
	*n = 0;
	if (v.kind != SVAL_STRING) {
		if (!sval_is_poison(v))
			sema_error(s, 204, v.at, "%s must be a string, found %s", what, sema_type_text(s, v));
		return false;
	}
	*out = v.string.text;
	*n = v.string.n;
	return true;
}

bool sema_as_choice(sema *s, sval v, const char *const *choices, unsigned n, unsigned *which, const char *what)
{
	const char *chosen;
	uint32_t length;
	if (!sema_as_string(s, v, &chosen, &length, what)) return false;
	text list = {.arena = s->arena};
	for (unsigned i = 0; i < n; i++) {
		if (strlen(choices[i]) == length && memcmp(choices[i], chosen, length) == 0) return *which = i, true;
		text_printf(&list, "%s\"%s\"", i ? ", " : "", choices[i]);
	}
	diag *d = sema_diag(s, 219, v.at, "%s cannot be \"%.40s\"", what, chosen);
	diag_set_hint(s->diags, d, "one of %s", list.at);
	return false;
}

bool sema_as_type(sema *s, sval v, ir_type *out, const char *what)
{
	const stype *t = sema_as_stype(s, v, what);
	if (!t) return false;
	if (t->kind != STYPE_VALUE) {
		sema_error(s, 208, v.at, "%s must be the type of a value, found %s", what, sema_stype_text(s, t));
		return false;
	}
	*out = t->value;
	return true;
}

bool sema_as_scalar_type(sema *s, sval v, scalar *out, const char *what)
{
	ir_type t;
	if (!sema_as_type(s, v, &t, what)) return false;
	if (t.pointer || t.rank) {
		sema_error(s, 208, v.at, "%s must be a scalar type, found %s", what, ir_type_name(s->arena, t));
		return false;
	}
	*out = (scalar)t.elem;
	return true;
}

bool sema_as_shape(sema *s, sval v, ir_type *shape, const char *what)
{
	const sval *items;
	uint32_t n;
	if (v.kind != SVAL_TUPLE && !sval_is_int(v)) return not_constant(s, v, what, "a shape like [64, 64]");
	sema_items(&v, &items, &n);
	if (n > IR_MAX_RANK) {
		sema_error(s, 207, v.at, "%s has %u dimensions; a tile has at most %d", what, n, IR_MAX_RANK);
		return false;
	}
	shape->rank = (uint8_t)n;
	memset(shape->dim, 0, sizeof shape->dim);
	for (uint32_t i = 0; i < n; i++) {
		int64_t extent;
		if (!sema_as_const_int(s, items[i], &extent, "a tile's extent")) return false;
		if (extent < 1 || extent > UINT32_MAX) {
			sema_error(s, 207, items[i].at, "a tile's extent must be a positive number, found %lld",
				(long long)extent);
			return false;
		}
		shape->dim[i] = (uint32_t)extent;
	}
	return sema_check_tile(s, *shape, v.at);
}

bool sema_as_axis(sema *s, sval v, unsigned rank, unsigned *axis, const char *what)
{
	int64_t a;
	if (!sema_as_const_int(s, v, &a, what)) return false;
	if (a < -(int64_t)rank || a >= (int64_t)rank) {
		diag *d = sema_diag(s, 210, v.at, "%s %lld is out of range for %u dimension%s", what, (long long)a,
			rank, rank == 1 ? "" : "s");
		diag_set_hint(s->diags, d, "%d to %u", -(int)rank, rank - 1);
		return false;
	}
	*axis = (unsigned)(a < 0 ? a + rank : a);
	return true;
}

bool sema_check_tile(sema *s, ir_type t, span at)
{
	uint64_t elements = 1;
	for (unsigned i = 0; i < t.rank; i++) {
		uint32_t n = t.dim[i];
		if (!ir_extent_fits(n)) {
			unsigned long long next = ir_next_extent(n);
			diag *d = sema_diag(s, 207, at,
				"a tile's extents are odd numbers up to %d times a power of two, found %u", IR_MOST_ODD,
				n);
			diag_set_hint(s->diags, d, "take %llu and mask the rest: arange(0, %llu) < %u", next, next, n);
			return false;
		}
		elements *= n;
		if (elements > 1048576) {
			sema_error(s, 704, at, "a tile of shape %s has more than 1,048,576 elements",
				sema_shape_text(s, t));
			return false;
		}
	}
	return true;
}

bool sema_check_reshape(sema *s, ir_type from, ir_type to, span at)
{
	uint32_t runs = ir_reshape_runs(from, to);
	if (runs <= IR_MOST_RUNS) return true;
	diag *d = sema_diag(s, 207, at, "%s becomes %s by moving %u runs of its elements, more than %d",
		sema_shape_text(s, from), sema_shape_text(s, to), runs, IR_MOST_RUNS);
	diag_set_hint(s->diags, d,
		"extents that are no powers of two keep their odd number in the first dimension, or "
		"have few rows in front of them");
	return false;
}

bool sema_check_lines(sema *s, const char *name, uint32_t extent, span at)
{
	if (ir_is_power(extent)) return true;
	uint64_t next = 1;
	while (next < extent) next *= 2;
	diag *d = sema_diag(s, 207, at, "'%s' takes lines of powers of two, found %u", name, extent);
	diag_set_hint(s->diags, d, "take %llu, and let what is beyond %u be elements that come last",
		(unsigned long long)next, extent);
	return false;
}
