/* The operators on run-time values: promotion, broadcasting, pointer arithmetic, and the errors of each.
 *
 * The tile IR has no implicit anything: what the language does by itself (a literal that adapts, a scalar beside a
 * tile, an axis of extent 1 that stretches) is written out here as CONST, CONVERT, SPLAT, EXPAND_DIMS, BROADCAST. */
#include "internal.h"

#include <string.h>

/* ---- promotion ---- */

static bool is_integer_value(sval v)
{
	ir_type t = {0};
	sval_type_of(v, &t);
	return !t.pointer && scalar_is_integer((scalar)t.elem);
}

static bool is_pointer_value(sval v)
{
	return v.kind == SVAL_VALUE && v.value->type.pointer;
}

/* The operator between two operands, when the source shows one there. */
static span between(span a, span b)
{
	if (!a.file || a.file != b.file || b.begin < a.end) return (span){0};
	span m = {a.file, a.end, b.begin};
	while (m.begin < m.end && strchr(") \t\n\r", a.file->text[m.begin])) m.begin++;
	while (m.begin < m.end && strchr("( \t\n\r", a.file->text[m.end - 1])) m.end--;
	if (m.begin == m.end || m.end - m.begin > 3) return (span){0};
	for (uint32_t i = m.begin; i < m.end; i++)
		if (!strchr("+-*/%<>=!&|^", a.file->text[i])) return (span){0};
	return m;
}

static void label_operands(sema *s, diag *d, sval a, sval b)
{
	span m = between(a.at, b.at);
	if (m.file && m.file == d->at.file) diag_set_mark(s->diags, d, m);
	diag_add_label(s->diags, d, a.at, "%s", sema_origin_text(s, a));
	diag_add_label(s->diags, d, b.at, "%s", sema_origin_text(s, b));
}

static bool report_mix(sema *s, sval a, scalar ta, sval b, scalar tb, span at)
{
	if (ta == SCALAR_BOOL || tb == SCALAR_BOOL) {
		sval v = ta == SCALAR_BOOL ? a : b;
		scalar other = ta == SCALAR_BOOL ? tb : ta;
		diag *d = sema_diag(s, 206, at, "bool and %s do not mix", scalar_name(other));
		label_operands(s, d, a, b);
		span m = a.at.begin < b.at.begin ? between(a.at, b.at) : between(b.at, a.at);
		if (m.file && m.end - m.begin == 1 && strchr("&|^", m.file->text[m.begin]))
			diag_set_hint(s->diags, d, "'%c' binds tighter than a comparison: (i < n) %c valid",
				m.file->text[m.begin], m.file->text[m.begin]);
		else
			diag_set_hint(s->diags, d, "convert the bool: %s.to(%s)", sema_postfix_text(s, v.at),
				scalar_name(other));
		return false;
	}
	diag *d = sema_diag(s, 205, at, "signed %s and unsigned %s do not mix",
		scalar_name(scalar_is_signed(ta) ? ta : tb), scalar_name(scalar_is_signed(ta) ? tb : ta));
	label_operands(s, d, a, b);
	sema_hint_mix(s, d, a, ta, b, tb);
	return false;
}

/* The type that a number takes beside values of type `t`; false after an error.  A literal adapts; a type that was
 * given promotes as a run-time value's does, and gives way only where the two would not mix and no value changes by
 * that. */
static bool number_beside(sema *s, sval v, scalar t, scalar *out)
{
	sema_number n = v.number;
	scalar common;
	if (scalar_is_float(n.type) && !scalar_is_float(t) && t != SCALAR_BOOL) {
		*out = n.untyped ? SCALAR_F32 : n.type;
		return true;
	}
	if (!sema_literal_fits(s, v, t)) return false;
	bool adapts = n.untyped || (!promote(t, n.type, &common) && number_fits(n, t));
	return *out = adapts && t != SCALAR_BOOL ? t : n.type, true;
}

/* Typed numbers meet in pairs, literals adapt to them as to run-time values; where all are literals, every one must
 * have room in the result. */
bool sema_numbers_type(sema *s, const sval *v, unsigned n, span at, scalar *out)
{
	const sval *first = NULL;
	sema_number t = {0};
	for (unsigned k = 0; k < 2 * n; k++) { /* those with a type, then literals */
		const sval *w = &v[k % n];
		sema_number x = w->number;
		if (x.untyped != (k >= n)) continue;
		if (!first) {
			first = w;
			t = x;
			continue;
		}
		bool t_bool = t.type == SCALAR_BOOL, x_bool = x.type == SCALAR_BOOL;
		if (t_bool && x_bool) continue;
		if (!t.untyped && !t_bool && !sema_literal_fits(s, *w, t.type)) return false;
		if (t_bool || x_bool) return report_mix(s, *first, first->number.type, *w, x.type, at);
		t.i = 0; /* only its type counts: as a 0, which fits all of them */
		number_common_type(t, x, &t.type, &t.untyped);
		if (t.untyped && !scalar_is_float(t.type)) t.type = SCALAR_I32;
	}
	if (scalar_is_float(t.type)) return *out = t.type, true;
	for (unsigned i = 0; i < n; i++)
		if (!number_fits(v[i].number, t.type) && !promote(t.type, v[i].number.type, &t.type))
			t.type = v[i].number.type;
	for (unsigned i = 0; i < n; i++) {
		if (number_fits(v[i].number, t.type)) continue;
		sema_error(s, 218, v[i].at, "%s does not fit in %s", number_text(s, v[i].number), scalar_name(t.type));
		return false;
	}
	return *out = t.type, true;
}

/* The common element type of n scalars, tiles and numbers; false after an error. */
static bool common_element(sema *s, const sval *v, unsigned n, span at, scalar *out)
{
	int first = -1;
	scalar t = SCALAR_I32;
	for (unsigned i = 0; i < n; i++) {
		if (v[i].kind != SVAL_VALUE) continue;
		scalar e = (scalar)v[i].value->type.elem;
		if (first < 0) {
			first = (int)i;
			t = e;
		} else if (!promote(t, e, &t)) {
			return report_mix(s, v[first], (scalar)v[first].value->type.elem, v[i], e, at);
		}
	}
	if (first < 0) {
		bool good = sema_numbers_type(s, v, n, at, out);
		for (unsigned i = 0; good && i < n; i++) good = sema_alone_fits(s, v[i], *out);
		return good;
	}
	for (int literals = 0; literals < 2; literals++) /* what has a type decides it, literals adapt to that */
		for (unsigned i = 0; i < n; i++) {
			scalar e;
			if (v[i].kind != SVAL_NUMBER || v[i].number.untyped != (literals == 1)) continue;
			if (!number_beside(s, v[i], t, &e)) return false;
			if (!promote(t, e, &t)) return report_mix(s, v[first], t, v[i], e, at);
		}
	return *out = t, true;
}

/* ---- broadcasting ---- */

/* Looks for an arange of n elements among what a value was computed from. */
static bool made_from_arange(const ir_value *v, uint32_t n, unsigned depth)
{
	const ir_op *o = v->def;
	if (!o || depth > 12) return false;
	if (o->kind == IR_ARANGE) return v->type.dim[0] == n;
	unsigned args = o->kind == IR_LOAD ? 1 : o->nargs; /* the shape of a load is its pointer's */
	for (unsigned i = 0; i < args; i++)
		if (made_from_arange(ir_arg(o, i), n, depth + 1)) return true;
	return false;
}

static diag *report_shapes(sema *s, sval a, ir_type x, sval b, ir_type y, span at)
{
	diag *d = sema_diag(
		s, 203, at, "shapes %s and %s do not broadcast", sema_shape_text(s, x), sema_shape_text(s, y));
	label_operands(s, d, a, b);
	if (x.rank != 1 || y.rank != 1) {
		diag_set_hint(
			s->diags, d, "shapes align at the right; an extent of 1 stretches, and [:, None] adds one");
		return d;
	}
	bool both = made_from_arange(a.value, x.dim[0], 0) && made_from_arange(b.value, y.dim[0], 0);
	span m = between(a.at, b.at);
	const char *op = m.file ? sema_source_text(s, m) : "and";
	const char *ta = sema_postfix_text(s, a.at), *tb = sema_postfix_text(s, b.at);
	diag_set_hint(s->diags, d, "%s, or insert an axis: %s[:, None] %s %s[None, :]",
		both ? "both come from 'arange'; give them one length" : "give them one length", ta, op, tb);
	return d;
}

bool sema_broadcast_pair(sema *s, sval a, sval b, span at, ir_value **x, ir_value **y)
{
	*x = sema_value(s, a, "the left operand");
	*y = sema_value(s, b, "the right operand");
	ir_type shape;
	if (!sema_common_shape((*x)->type, (*y)->type, &shape)) {
		report_shapes(s, a, (*x)->type, b, (*y)->type, at);
		return false;
	}
	if (!sema_check_tile(s, shape, at)) return false;
	*x = sema_stretch(s, *x, shape);
	*y = sema_stretch(s, *y, shape);
	return true;
}

/* Makes n operands, already of a common element type `elem`, into values of one shape. */
static bool unify_shapes(sema *s, const sval *v, unsigned n, scalar elem, span at, ir_builder *where, ir_value **out)
{
	ir_builder saved = s->b;
	ir_type shape = {0};
	for (unsigned i = 0; i < n; i++) {
		ir_type next = {0}, joined;
		if (v[i].kind == SVAL_VALUE) next = v[i].value->type;
		if (!sema_common_shape(shape, next, &joined)) {
			unsigned other = 0; /* the one that the extent in question is of */
			while (v[other].kind != SVAL_VALUE || sema_common_shape(v[other].value->type, next, &joined))
				other++;
			report_shapes(s, v[other], shape, v[i], next, at);
			return false;
		}
		shape = joined;
	}
	if (!sema_check_tile(s, shape, at)) return false;
	for (unsigned i = 0; i < n; i++) {
		if (where) s->b = where[i];
		if (v[i].kind == SVAL_NUMBER)
			out[i] = ir_constant(&s->b, ir_with_elem(shape, elem), sema_number_bits(v[i].number, elem));
		else
			out[i] = sema_stretch(s, sema_convert(s, v[i].value, elem), shape);
	}
	s->b = saved;
	return true;
}

static bool unify_pointers(sema *s, const sval *v, unsigned n, span at, ir_builder *where, ir_value **out)
{
	ir_builder saved = s->b;
	ir_type shape = {0}, first = {0};
	for (unsigned i = 0; i < n; i++) {
		if (v[i].kind != SVAL_VALUE || !v[i].value->type.pointer ||
			(i && v[i].value->type.elem != first.elem)) {
			diag *d = sema_diag(s, 204, at, "pointers meet only pointers to the same type");
			for (unsigned k = 0; k < n; k++)
				diag_add_label(s->diags, d, v[k].at, "%s", sema_origin_text(s, v[k]));
			return false;
		}
		ir_type t = v[i].value->type, joined;
		if (i == 0) first = t;
		if (t.pointer == IR_POINTER) first.pointer = IR_POINTER;
		if (!sema_common_shape(shape, t, &joined)) {
			report_shapes(s, v[0], shape, v[i], t, at);
			return false;
		}
		shape = joined;
	}
	if (!sema_check_tile(s, shape, at)) return false;
	for (unsigned i = 0; i < n; i++) {
		if (where) s->b = where[i];
		out[i] = v[i].value;
		if (out[i]->type.pointer != first.pointer) {
			ir_type t = out[i]->type;
			t.pointer = first.pointer;
			out[i] = ir_build1(&s->b, IR_BITCAST, t, 1, &out[i]);
		}
		out[i] = sema_stretch(s, out[i], shape);
	}
	s->b = saved;
	return true;
}

bool sema_unify_at(sema *s, const sval *v, unsigned n, span at, ir_builder *where, ir_value **out)
{
	bool pointers = false;
	for (unsigned i = 0; i < n; i++) pointers = pointers || is_pointer_value(v[i]);
	if (pointers) return unify_pointers(s, v, n, at, where, out);
	scalar elem;
	return common_element(s, v, n, at, &elem) && unify_shapes(s, v, n, elem, at, where, out);
}

bool sema_unify(sema *s, const sval *v, unsigned n, span at, ir_value **out)
{
	return sema_unify_at(s, v, n, at, NULL, out);
}

/* ---- pointers ---- */

static sval pointer_add(sema *s, sval p, sval offset, bool negative, span at)
{
	ir_value *x = p.value, *y;
	if (offset.kind == SVAL_NUMBER) {
		sema_int i = negative ? -offset.number.i : offset.number.i;
		bool narrow = i >= INT32_MIN && i <= INT32_MAX;
		y = ir_constant_int(&s->b, narrow ? SCALAR_I32 : SCALAR_I64, (int64_t)i);
	} else {
		y = offset.value;
		if (negative) y = ir_unary(&s->b, IR_NEG, sema_convert(s, y, SCALAR_I64));
	}
	sval right = sval_value(y, offset.at), left = p;
	if (!sema_broadcast_pair(s, left, right, at, &x, &y)) return sval_poison(at);
	ir_value *args[] = {x, y};
	return sval_value(ir_build1(&s->b, IR_PTR_ADD, x->type, 2, args), at);
}

static sval pointer_binary(sema *s, ast_op op, sval a, sval b, span at, span mark)
{
	bool pa = is_pointer_value(a), pb = is_pointer_value(b);
	if (pa && pb && op >= AST_OP_LT && op <= AST_OP_NE) {
		ir_value *v[2];
		const sval both[] = {a, b};
		static const ir_kind kinds[] = {IR_LT, IR_LE, IR_GT, IR_GE, IR_EQ, IR_NE}; /* ORDER AST_OP */
		if (!unify_pointers(s, both, 2, at, NULL, v)) return sval_poison(at);
		return sval_value(ir_binary(&s->b, kinds[op - AST_OP_LT], v[0], v[1]), at);
	}
	if (op == AST_OP_ADD && pa && is_integer_value(b)) return pointer_add(s, a, b, false, at);
	if (op == AST_OP_ADD && pb && is_integer_value(a)) return pointer_add(s, b, a, false, at);
	if (op == AST_OP_SUB && pa && is_integer_value(b)) return pointer_add(s, a, b, true, at);
	diag *d = sema_operator_diag(
		s, 206, at, mark, "'%s' of %s and %s", ast_op_text[op], sema_type_text(s, a), sema_type_text(s, b));
	label_operands(s, d, a, b);
	if (op == AST_OP_SUB && pa && pb)
		diag_set_hint(s->diags, d, "pointers do not subtract; as numbers they do: %s.to(i64) - %s.to(i64)",
			sema_postfix_text(s, a.at), sema_postfix_text(s, b.at));
	else if (op >= AST_OP_LT && op <= AST_OP_NE)
		diag_set_hint(s->diags, d, "pointers compare with pointers; as a number: %s.to(u64)",
			sema_postfix_text(s, pa ? a.at : b.at));
	else
		diag_set_hint(s->diags, d, "a pointer takes an integer offset, in elements: p + i");
	return sval_poison(at);
}

/* ---- arithmetic, comparisons, bits ---- */

static ir_kind kind_of(ast_op op)
{
	switch (op) {
	case AST_OP_ADD: return IR_ADD;
	case AST_OP_SUB: return IR_SUB;
	case AST_OP_MUL: return IR_MUL;
	case AST_OP_DIV: return IR_DIV;
	case AST_OP_REM: return IR_REM;
	case AST_OP_SHL: return IR_SHL;
	case AST_OP_SHR: return IR_SHR;
	case AST_OP_AND: return IR_AND;
	case AST_OP_OR: return IR_OR;
	case AST_OP_XOR: return IR_XOR;
	case AST_OP_LT: return IR_LT;
	case AST_OP_LE: return IR_LE;
	case AST_OP_GT: return IR_GT;
	case AST_OP_GE: return IR_GE;
	case AST_OP_EQ: return IR_EQ;
	default: return IR_NE;
	}
}

/* Is the operator defined on elements of type t?  The error names the cast. */
static bool check_element(sema *s, ast_op op, scalar t, span at, span mark)
{
	const char *sign = ast_op_text[op];
	bool bits = op == AST_OP_AND || op == AST_OP_OR || op == AST_OP_XOR;
	diag *d = NULL;
	if (t == SCALAR_BOOL) {
		if (bits || op == AST_OP_EQ || op == AST_OP_NE) return true;
		d = sema_operator_diag(s, 206, at, mark, "'%s' is not for bool", sign);
		diag_set_hint(s->diags, d, "convert first: x.to(i32)");
	} else if (scalar_is_fp8(t)) {
		d = sema_operator_diag(s, 206, at, mark, "there is no arithmetic on %s", scalar_name(t));
		diag_set_hint(s->diags, d, "convert first: x.to(f32)");
	} else if (scalar_is_float(t)) {
		if (!bits && op != AST_OP_REM && op != AST_OP_SHL && op != AST_OP_SHR) return true;
		d = sema_operator_diag(s, 206, at, mark, "'%s' is for integers, not for %s", sign, scalar_name(t));
		if (op == AST_OP_REM)
			diag_set_hint(
				s->diags, d, "the remainder of floats is x - floor(x / y) * y, or convert: x.to(i32)");
		else
			diag_set_hint(s->diags, d, "the bits of a float are x.to(%s, bitcast = true)",
				scalar_bytes(t) == 8   ? "u64"
				: scalar_bytes(t) == 4 ? "u32"
						       : "u16");
	} else {
		return true;
	}
	return false;
}

static ir_value *shift_count(sema *s, sval count, scalar type)
{
	unsigned width = scalar_bits(type);
	if (count.kind == SVAL_NUMBER) {
		bool huge = count.number.i < 0 || count.number.i >= (sema_int)width;
		return ir_constant_int(&s->b, type, huge ? (int64_t)width : (int64_t)count.number.i);
	}
	ir_value *c = count.value;
	scalar from = (scalar)c->type.elem;
	if (scalar_bytes(from) <= scalar_bytes(type)) return sema_convert(s, c, type);
	/* a wider count may not lose its upper bits: everything from the width up means the same */
	scalar wide = from == SCALAR_I16   ? SCALAR_U16
		      : from == SCALAR_I32 ? SCALAR_U32
		      : from == SCALAR_I64 ? SCALAR_U64
					   : from;
	if (wide != from) c = ir_build1(&s->b, IR_BITCAST, ir_with_elem(c->type, wide), 1, &c);
	c = ir_binary(&s->b, IR_MIN, c, ir_constant(&s->b, ir_with_elem(c->type, wide), width));
	return sema_convert(s, c, type);
}

static sval shift(sema *s, ast_op op, sval a, sval b, span at, span mark)
{
	ir_type ta = {0}, tb = {0};
	sval_type_of(a, &ta);
	sval_type_of(b, &tb);
	scalar type = (scalar)ta.elem;
	if (a.kind == SVAL_NUMBER && a.number.untyped && scalar_is_integer(type) &&
		scalar_is_integer((scalar)tb.elem) && !number_beside(s, a, (scalar)tb.elem, &type))
		return sval_poison(at);
	if (!check_element(s, op, type, at, mark) || !check_element(s, op, (scalar)tb.elem, at, mark))
		return sval_poison(at);
	ir_value *x = a.kind == SVAL_NUMBER ? ir_constant(&s->b, ir_scalar_type(type), sema_number_bits(a.number, type))
					    : a.value;
	ir_value *y = shift_count(s, b, type);
	sval left = sval_value(x, a.at), right = sval_value(y, b.at);
	if (!sema_broadcast_pair(s, left, right, at, &x, &y)) return sval_poison(at);
	return sval_value(ir_binary(&s->b, kind_of(op), x, y), at);
}

/* == and != of types, tuples and strings, which are all known at compile time. */
static sval compare_static(sema *s, ast_op op, sval a, sval b, span at, span mark)
{
	bool statics = a.kind == b.kind && (a.kind == SVAL_TYPE || a.kind == SVAL_STRING || a.kind == SVAL_TUPLE) &&
		       sval_is_compile_time(a) && sval_is_compile_time(b);
	if (statics && op == AST_OP_EQ) return sval_bool(sval_equal(a, b), at);
	if (statics && op == AST_OP_NE) return sval_bool(!sval_equal(a, b), at);
	if (op == AST_OP_MUL && a.kind == SVAL_TYPE) {
		diag *d = sema_operator_diag(s, 206, at, mark, "'*' of a type");
		diag_set_hint(s->diags, d, "a pointer type is written *f32, prefix");
		return sval_poison(at);
	}
	diag *d = sema_operator_diag(
		s, 206, at, mark, "'%s' of %s and %s", ast_op_text[op], sema_type_text(s, a), sema_type_text(s, b));
	if (a.kind == SVAL_BUILTIN || a.kind == SVAL_FN || b.kind == SVAL_BUILTIN || b.kind == SVAL_FN)
		diag_set_hint(s->diags, d, "a function is called with its arguments in parentheses");
	return sval_poison(at);
}

sval sema_emit_binary(sema *s, ast_op op, sval a, sval b, span at, span mark)
{
	if (sval_is_poison(a) || sval_is_poison(b)) return sval_poison(at);
	bool va = a.kind == SVAL_VALUE, vb = b.kind == SVAL_VALUE;
	bool na = a.kind == SVAL_NUMBER, nb = b.kind == SVAL_NUMBER;
	if (!(va || na) || !(vb || nb)) return compare_static(s, op, a, b, at, mark);
	if (na && nb) return fold_binary(s, op, a, b, at, mark);
	if (is_pointer_value(a) || is_pointer_value(b)) return pointer_binary(s, op, a, b, at, mark);
	if (op == AST_OP_SHL || op == AST_OP_SHR) return shift(s, op, a, b, at, mark);
	const sval both[] = {a, b};
	scalar elem;
	if (!common_element(s, both, 2, at, &elem)) return sval_poison(at);
	for (int i = 1; i >= 0; i--) { /* fp8 is converted by the user, not by promotion to the other's f32 */
		ir_type t = {0};
		sval_type_of(both[i], &t);
		if (scalar_is_fp8((scalar)t.elem)) elem = (scalar)t.elem;
	}
	if (!check_element(s, op, elem, at, mark)) return sval_poison(at);
	if ((op == AST_OP_DIV || op == AST_OP_REM) && nb && scalar_is_integer(elem) && b.number.i == 0)
		return sema_operator_diag(s, 302, at, mark, "division by a constant zero"), sval_poison(at);
	ir_value *v[2];
	if (!unify_shapes(s, both, 2, elem, at, NULL, v)) return sval_poison(at);
	return sval_value(ir_binary(&s->b, kind_of(op), v[0], v[1]), at);
}

sval sema_emit_unary(sema *s, ast_op op, sval a, span at, span mark)
{
	if (sval_is_poison(a)) return sval_poison(at);
	if (a.kind == SVAL_NUMBER) return fold_unary(s, op, a, at, mark);
	if (a.kind != SVAL_VALUE || a.value->type.pointer)
		return sema_operator_diag(s, 206, at, mark, "'%s' of %s", ast_op_text[op], sema_type_text(s, a)),
		       sval_poison(at);
	scalar t = (scalar)a.value->type.elem;
	bool is_bool = t == SCALAR_BOOL;
	if (op == AST_OP_LNOT) {
		if (is_bool && a.value->type.rank == 0) return sval_value(ir_unary(&s->b, IR_NOT, a.value), at);
		diag *d = sema_operator_diag(
			s, 206, at, mark, "'!' is for a scalar bool, found %s", sema_type_text(s, a));
		diag_set_hint(
			s->diags, d, is_bool ? "'~' inverts a tile" : "compare: %s == 0", sema_source_text(s, a.at));
		return sval_poison(at);
	}
	bool fine = op == AST_OP_TILDE ? !scalar_is_float(t) : !is_bool && !scalar_is_fp8(t);
	if (!fine) {
		diag *d = sema_operator_diag(
			s, 206, at, mark, "'%s' is not for %s", ast_op_text[op], sema_type_text(s, a));
		diag_set_hint(s->diags, d, "convert first: %s.to(%s)", sema_postfix_text(s, a.at),
			scalar_is_fp8(t) && op == AST_OP_NEG ? "f32" : "i32");
		return sval_poison(at);
	}
	return sval_value(ir_unary(&s->b, op == AST_OP_TILDE ? IR_NOT : IR_NEG, a.value), at);
}
