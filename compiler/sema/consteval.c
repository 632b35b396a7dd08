/* Operators on compile-time numbers.
 *
 * Integers are computed in 128 bits.  Untyped results must fit i64 or u64; typed ones wrap as they do at run time.
 * Floats are computed in double and rounded once to their type, which for + - * / and f32 or narrower gives the same
 * bits as computing in the type. */
#include "internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static sval number(sema_number n, span at)
{
	return (sval){.kind = SVAL_NUMBER, .at = at, .number = n};
}

static sval int_result(sema *s, scalar type, bool untyped, sema_int i, bool overflow, span at)
{
	assert(scalar_is_integer(type));
	if (!untyped) return number(number_from_bits(type, scalar_truncate(type, (uint64_t)i)), at);
	bool fits;
	sema_number n = number_make_int(i, &fits);
	if (!fits || overflow) return sema_error(s, 303, at, "the constant does not fit in 64 bits");
	return number(n, at);
}

static sval fold_shift(sema *s, ast_op op, sema_number a, sema_number b, span at)
{
	assert(op == AST_OP_SHL || op == AST_OP_SHR);
	unsigned width = a.untyped ? 128 : scalar_bits(a.type);
	bool huge = b.i < 0 || b.i >= (sema_int)width;
	if (a.untyped && b.i < 0) return sema_error(s, 303, at, "a constant is shifted by a negative count");
	if (op == AST_OP_SHR) {
		sema_int v = huge ? (a.i < 0 ? -1 : 0) : a.i >> (unsigned)b.i;
		return int_result(s, a.type, a.untyped, v, false, at);
	}
	if (a.untyped && a.i != 0 && b.i >= 64) return int_result(s, a.type, true, 0, true, at);
	sema_int v = huge ? 0 : (sema_int)((unsigned __int128)a.i << (unsigned)b.i);
	return int_result(s, a.type, a.untyped, v, false, at);
}

static sval fold_division(sema *s, ast_op op, scalar type, bool untyped, sema_int x, sema_int y, span at, span mark)
{
	assert(op == AST_OP_DIV || op == AST_OP_REM);
	if (y == 0) return sema_operator_diag(s, 302, at, mark, "a constant is divided by zero"), sval_poison(at);
	sema_int q = x / y;
	if (op == AST_OP_REM) return int_result(s, type, untyped, x % y, false, at);
	if (q == 0 && x != 0) {
		diag *d = diag_warning(
			s->diags, 302, at, "the integer division %lld / %lld is 0", (long long)x, (long long)y);
		diag_set_hint(s->diags, d, "write a float, 1.0 / n, for a fraction");
	}
	return int_result(s, type, untyped, q, false, at);
}

static sval fold_ints(sema *s, ast_op op, scalar type, bool untyped, sema_int x, sema_int y, span at, span mark)
{
	assert(op != AST_OP_SHL && op != AST_OP_SHR);
	sema_int r = 0;
	bool overflow = false;
	switch (op) {
	case AST_OP_ADD: overflow = __builtin_add_overflow(x, y, &r); break;
	case AST_OP_SUB: overflow = __builtin_sub_overflow(x, y, &r); break;
	case AST_OP_MUL:
		overflow = __builtin_mul_overflow(x, y, &r);
		if (!untyped) r = (sema_int)((uint64_t)x * (uint64_t)y);
		break;
	case AST_OP_DIV:
	case AST_OP_REM: return fold_division(s, op, type, untyped, x, y, at, mark);
	case AST_OP_AND: r = x & y; break;
	case AST_OP_OR: r = x | y; break;
	case AST_OP_XOR: r = x ^ y; break;
	case AST_OP_LT: return sval_bool(x < y, at);
	case AST_OP_LE: return sval_bool(x <= y, at);
	case AST_OP_GT: return sval_bool(x > y, at);
	case AST_OP_GE: return sval_bool(x >= y, at);
	case AST_OP_EQ: return sval_bool(x == y, at);
	default: return sval_bool(x != y, at); /* NE; shifts do not come here */
	}
	return int_result(s, type, untyped, r, overflow, at);
}

static sval fold_floats(sema *s, ast_op op, scalar type, bool untyped, double x, double y, span at, span mark)
{
	assert(scalar_is_float(type));
	double r = 0;
	switch (op) {
	case AST_OP_ADD: r = x + y; break;
	case AST_OP_SUB: r = x - y; break;
	case AST_OP_MUL: r = x * y; break;
	case AST_OP_DIV: r = x / y; break;
	case AST_OP_LT: return sval_bool(x < y, at);
	case AST_OP_LE: return sval_bool(x <= y, at);
	case AST_OP_GT: return sval_bool(x > y, at);
	case AST_OP_GE: return sval_bool(x >= y, at);
	case AST_OP_EQ: return sval_bool(x == y, at);
	case AST_OP_NE: return sval_bool(x != y, at);
	default:
		return sema_operator_diag(s, 206, at, mark, "'%s' is for integers, not for floats", ast_op_text[op]),
		       sval_poison(at);
	}
	if (untyped) return sval_float(r, at);
	return number(number_from_bits(type, scalar_from_double(type, r)), at);
}

static sval fold_bools(sema *s, ast_op op, bool x, bool y, span at, span mark)
{
	switch (op) {
	case AST_OP_AND: return sval_bool(x && y, at);
	case AST_OP_OR: return sval_bool(x || y, at);
	case AST_OP_XOR:
	case AST_OP_NE: return sval_bool(x != y, at);
	case AST_OP_EQ: return sval_bool(x == y, at);
	default: break;
	}
	diag *d = sema_operator_diag(s, 206, at, mark, "'%s' is not for bool", ast_op_text[op]);
	diag_set_hint(s->diags, d, "convert first: x.to(i32)");
	return sval_poison(at);
}

bool number_common_type(sema_number a, sema_number b, scalar *type, bool *untyped)
{
	*untyped = a.untyped && b.untyped;
	bool fa = scalar_is_float(a.type), fb = scalar_is_float(b.type);
	if (*untyped) return *type = fa || fb ? SCALAR_F32 : SCALAR_I64, true;
	if (a.untyped && (fb || !fa)) return *type = b.type, true;
	if (b.untyped && (fa || !fb)) return *type = a.type, true;
	if (promote(a.type, b.type, type)) return true;
	if (number_fits(a, b.type)) return *type = b.type, true;
	if (number_fits(b, a.type)) return *type = a.type, true;
	return false;
}

sval fold_binary(sema *s, ast_op op, sval a, sval b, span at, span mark)
{
	assert(a.kind == SVAL_NUMBER && b.kind == SVAL_NUMBER);
	sema_number x = a.number, y = b.number;
	bool bx = x.type == SCALAR_BOOL, by = y.type == SCALAR_BOOL;
	if (bx && by) return fold_bools(s, op, x.i != 0, y.i != 0, at, mark);
	if (bx || by) {
		diag *d = sema_diag(
			s, 206, at, "'%s' of %s and %s", ast_op_text[op], sema_type_text(s, a), sema_type_text(s, b));
		diag_set_hint(s->diags, d, "convert the bool: %s.to(i32)", sema_postfix_text(s, bx ? a.at : b.at));
		return sval_poison(at);
	}
	if ((op == AST_OP_SHL || op == AST_OP_SHR) && !scalar_is_float(x.type) && !scalar_is_float(y.type))
		return fold_shift(s, op, x, y, at);
	scalar type;
	bool untyped;
	if (x.untyped != y.untyped && !sema_literal_fits(s, x.untyped ? a : b, x.untyped ? y.type : x.type))
		return sval_poison(at);
	if (!number_common_type(x, y, &type, &untyped)) {
		diag *d = sema_operator_diag(s, 205, at, mark, "'%s' mixes signed and unsigned: %s and %s",
			ast_op_text[op], sema_type_text(s, a), sema_type_text(s, b));
		sema_hint_mix(s, d, a, x.type, b, y.type);
		return sval_poison(at);
	}
	if (scalar_is_fp8(type))
		return sema_error(s, 206, at, "there is no arithmetic on %s; convert to f32 first", scalar_name(type));
	if (scalar_is_float(type)) {
		double fx = scalar_is_float(x.type) ? x.f : (double)x.i,
		       fy = scalar_is_float(y.type) ? y.f : (double)y.i;
		if (!untyped) {
			fx = number_adapt(x, type).f;
			fy = number_adapt(y, type).f;
		}
		return fold_floats(s, op, type, untyped, fx, fy, at, mark);
	}
	if (!untyped) {
		x = number_adapt(x, type);
		y = number_adapt(y, type);
	}
	return fold_ints(s, op, type, untyped, x.i, y.i, at, mark);
}

sval fold_unary(sema *s, ast_op op, sval a, span at, span mark)
{
	assert(a.kind == SVAL_NUMBER);
	sema_number n = a.number;
	bool is_bool = n.type == SCALAR_BOOL, is_float = scalar_is_float(n.type);
	if (op == AST_OP_LNOT && is_bool) return sval_bool(!n.i, at);
	if (op == AST_OP_TILDE && is_bool) return sval_bool(!n.i, at);
	if (op == AST_OP_TILDE && !is_float) return int_result(s, n.type, n.untyped, ~n.i, false, at);
	if (op == AST_OP_NEG && is_float && !scalar_is_fp8(n.type)) {
		n.f = -n.f;
		return number(n, at);
	}
	if (op == AST_OP_NEG && !is_bool && !is_float) return int_result(s, n.type, n.untyped, -n.i, false, at);
	return sema_operator_diag(s, 206, at, mark, "'%s' is not for %s", ast_op_text[op], sema_type_text(s, a)),
	       sval_poison(at);
}
