/* Elementwise built-ins: elementary functions, extrema, selection, and integer helpers.
 *
 * A call whose arguments are all known at compile time gives a compile-time number, computed in double precision and
 * rounded once to the type; anything else becomes one operation (a few for sigmoid, clamp, cdiv).  Elementary functions
 * take floats; an integer is refused with the cast to write, because the precision wanted is not ours to guess. */
#include <math.h>

#include "builtins_util.h"

#include "../ir/fold.h"

/* ---- compile-time numbers ---- */

static double as_double(sema_number n)
{
	return scalar_is_float(n.type) ? n.f : (double)n.i;
}

static bool is_bool(sval v)
{
	ir_type t;
	return sval_type_of(v, &t) && !t.pointer && t.elem == SCALAR_BOOL;
}

static double evaluate(int which, double x)
{
	switch (which) {
	case IR_EXP: return exp(x);
	case IR_EXP2: return exp2(x);
	case IR_EXPM1: return expm1(x);
	case IR_LOG: return log(x);
	case IR_LOG2: return log2(x);
	case IR_LOG1P: return log1p(x);
	case IR_SQRT: return sqrt(x);
	case IR_SQRT_RN: return sqrt(x);
	case IR_RSQRT: return 1 / sqrt(x);
	case IR_SIN: return sin(x);
	case IR_COS: return cos(x);
	case IR_TANH: return tanh(x);
	case IR_ERF: return erf(x);
	case IR_FLOOR: return floor(x);
	case IR_CEIL: return ceil(x);
	default: return rint(x);
	}
}

/* ---- one float argument ---- */

static sval builtin_elementary(sema *s, const builtin_call *c)
{
	if (!builtin_takes_float(s, c, 0)) return sval_poison(c->at);
	if (c->args[0].kind == SVAL_NUMBER) {
		sema_number n = c->args[0].number;
		return builtin_folded_float(n, evaluate(c->builtin->which, n.f), c->at);
	}
	ir_value *x = c->args[0].value;
	/* sqrt_rn in f32 rounds correctly after a second rounding to 16 bits too: 24 >= 2 * 11 + 2 bits. */
	scalar own = (scalar)x->type.elem;
	if (c->builtin->which == IR_SQRT_RN) x = builtin_widen(s, x);
	return sval_value(sema_convert(s, ir_unary(&s->b, (ir_kind)c->builtin->which, x), own), c->at);
}

/* 1 / (1 + exp(-x)), as exp(x) / (1 + exp(x)) for negative x, so that nothing overflows and small results are kept. */
static sval builtin_sigmoid(sema *s, const builtin_call *c)
{
	if (!builtin_takes_float(s, c, 0)) return sval_poison(c->at);
	if (c->args[0].kind == SVAL_NUMBER) {
		sema_number n = c->args[0].number;
		return builtin_folded_float(n, 1 / (1 + exp(-n.f)), c->at);
	}
	ir_value *x = c->args[0].value;
	scalar own = (scalar)x->type.elem;
	x = builtin_widen(s, x);
	ir_value *one = builtin_float_constant(s, x->type, 1);
	ir_value *zero = builtin_float_constant(s, x->type, 0);
	ir_value *e = ir_unary(&s->b, IR_EXP, ir_unary(&s->b, IR_NEG, ir_unary(&s->b, IR_ABS, x)));
	ir_value *choice[] = {ir_binary(&s->b, IR_LT, x, zero), e, one};
	ir_value *upper = ir_build1(&s->b, IR_SELECT, x->type, 3, choice);
	ir_value *y = ir_binary(&s->b, IR_DIV, upper, ir_binary(&s->b, IR_ADD, one, e));
	return sval_value(sema_convert(s, y, own), c->at);
}

static sval builtin_abs(sema *s, const builtin_call *c)
{
	ir_type t = {0};
	if (!sval_type_of(c->args[0], &t) || t.pointer || t.elem == SCALAR_BOOL || scalar_is_fp8((scalar)t.elem)) {
		diag *d = builtin_needs(s, c, 0, "integers or floats");
		if (!t.pointer && scalar_is_fp8((scalar)t.elem)) diag_set_hint(s->diags, d, "cast first: x.to(f16)");
		return sval_poison(c->at);
	}
	if (c->args[0].kind == SVAL_NUMBER) {
		sema_number n = c->args[0].number;
		if (scalar_is_float(n.type)) return builtin_folded_float(n, fabs(n.f), c->at);
		sema_int i = n.i < 0 ? -n.i : n.i;
		return n.untyped ? sval_int(i, c->at)
				 : sval_number_bits(n.type, scalar_truncate(n.type, (uint64_t)i), c->at);
	}
	ir_value *x = c->args[0].value;
	if (!scalar_is_float((scalar)t.elem) && !scalar_is_signed((scalar)t.elem)) return sval_value(x, c->at);
	return sval_value(ir_unary(&s->b, IR_ABS, x), c->at);
}

static sval builtin_classify(sema *s, const builtin_call *c)
{
	ir_kind test = (ir_kind)c->builtin->which;
	if (!builtin_takes_float(s, c, 0)) return sval_poison(c->at);
	if (c->args[0].kind == SVAL_NUMBER) {
		double x = c->args[0].number.f;
		return sval_bool(test == IR_NE ? isnan(x) : test == IR_EQ ? isinf(x) : isfinite(x), c->at);
	}
	ir_value *x = c->args[0].value;
	if (test == IR_NE) return sval_value(ir_binary(&s->b, IR_NE, x, x), c->at);
	ir_value *infinity = builtin_float_constant(s, x->type, INFINITY);
	return sval_value(ir_binary(&s->b, test, ir_unary(&s->b, IR_ABS, x), infinity), c->at);
}

/* ---- two and three arguments ---- */

/* All arguments are scalars or tiles of numbers, none of fp8. */
static bool numeric(sema *s, const builtin_call *c, unsigned n, bool with_bool)
{
	for (unsigned i = 0; i < n; i++) {
		ir_type t;
		bool value = sval_type_of(c->args[i], &t) && !t.pointer;
		if (value && (with_bool || t.elem != SCALAR_BOOL) && !scalar_is_fp8((scalar)t.elem)) continue;
		diag *d = builtin_needs(s, c, i, "numbers");
		if (value && scalar_is_fp8((scalar)t.elem))
			diag_set_hint(s->diags, d, "fp8 has no arithmetic; cast first: x.to(f16)");
		if (value && t.elem == SCALAR_BOOL) diag_set_hint(s->diags, d, "cast first: x.to(i32)");
		return false;
	}
	return true;
}

static double extremum(bool max, bool nan_wins, double a, double b)
{
	if (isnan(a)) return nan_wins ? a : b;
	if (isnan(b)) return nan_wins ? b : a;
	if (a == b) return max == !!signbit(a) ? b : a; /* equal zeros: -0 is the lower one */
	return (a > b) == max ? a : b;
}

ir_kind builtin_extremum_kind(bool max, bool nan_wins)
{
	if (nan_wins) return max ? IR_MAX_NAN : IR_MIN_NAN;
	return max ? IR_MAX : IR_MIN;
}

sval builtin_extremum(sema *s, const builtin_call *c, ir_kind kind, sval a, sval b)
{
	sval v[] = {a, b};
	bool nan_wins = kind == IR_MAX_NAN || kind == IR_MIN_NAN;
	bool max = kind == IR_MAX || kind == IR_MAX_NAN;
	if (builtin_all_numbers(v, 2)) {
		if (!builtin_common_numbers(s, c, v, 2)) return sval_poison(c->at);
		if (scalar_is_float(v[0].number.type))
			return builtin_folded_float(
				v[0].number, extremum(max, nan_wins, v[0].number.f, v[1].number.f), c->at);
		sval pick = (v[0].number.i > v[1].number.i) == max ? v[0] : v[1];
		pick.at = c->at;
		return pick;
	}
	ir_value *x[2];
	if (!sema_unify(s, v, 2, c->at, x)) return sval_poison(c->at);
	if (!scalar_is_float((scalar)x[0]->type.elem)) kind = max ? IR_MAX : IR_MIN; /* there is no nan */
	return sval_value(ir_binary(&s->b, kind, x[0], x[1]), c->at);
}

static sval builtin_extremum_of_two(sema *s, const builtin_call *c)
{
	bool nan_wins = false, max = c->builtin->which == IR_MAX;
	if (!numeric(s, c, 2, true) || !builtin_flag(s, c, 2, "propagate_nan", &nan_wins)) return sval_poison(c->at);
	return builtin_extremum(s, c, builtin_extremum_kind(max, nan_wins), c->args[0], c->args[1]);
}

static sval builtin_clamp(sema *s, const builtin_call *c)
{
	if (!numeric(s, c, 3, false)) return sval_poison(c->at);
	sval low = builtin_extremum(s, c, IR_MAX, c->args[0], c->args[1]);
	return sval_is_poison(low) ? low : builtin_extremum(s, c, IR_MIN, low, c->args[2]);
}

static sval builtin_fma(sema *s, const builtin_call *c)
{
	if (!builtin_takes_floats(s, c, 3)) return sval_poison(c->at);
	sval v[] = {c->args[0], c->args[1], c->args[2]};
	if (builtin_all_numbers(v, 3)) {
		if (!builtin_common_numbers(s, c, v, 3)) return sval_poison(c->at);
		return builtin_folded_float(v[0].number, fma(v[0].number.f, v[1].number.f, v[2].number.f), c->at);
	}
	ir_value *x[3];
	if (!sema_unify(s, v, 3, c->at, x)) return sval_poison(c->at);
	return sval_value(ir_build1(&s->b, IR_FMA, x[0]->type, 3, x), c->at);
}

static sval builtin_div_rn(sema *s, const builtin_call *c)
{
	if (!builtin_takes_floats(s, c, 2)) return sval_poison(c->at);
	sval v[] = {c->args[0], c->args[1]};
	if (builtin_all_numbers(v, 2)) {
		if (!builtin_common_numbers(s, c, v, 2)) return sval_poison(c->at);
		return builtin_folded_float(v[0].number, v[0].number.f / v[1].number.f, c->at);
	}
	ir_value *x[2];
	if (!sema_unify(s, v, 2, c->at, x)) return sval_poison(c->at);
	scalar own = (scalar)x[0]->type.elem; /* 16 bits: as for sqrt_rn, f32 in between is harmless */
	ir_value *y = ir_binary(&s->b, IR_DIV_RN, builtin_widen(s, x[0]), builtin_widen(s, x[1]));
	return sval_value(sema_convert(s, y, own), c->at);
}

static sval builtin_pow(sema *s, const builtin_call *c)
{
	if (!builtin_takes_floats(s, c, 2)) return sval_poison(c->at);
	sval v[] = {c->args[0], c->args[1]};
	if (builtin_all_numbers(v, 2)) {
		if (!builtin_common_numbers(s, c, v, 2)) return sval_poison(c->at);
		return builtin_folded_float(v[0].number, pow(v[0].number.f, v[1].number.f), c->at);
	}
	ir_value *x[2];
	bool square = v[1].kind == SVAL_NUMBER && as_double(v[1].number) == 2;
	if (!sema_unify(s, v, 2, c->at, x)) return sval_poison(c->at);
	if (square) return sval_value(ir_binary(&s->b, IR_MUL, x[0], x[0]), c->at);
	return sval_value(ir_binary(&s->b, IR_POW, x[0], x[1]), c->at);
}

/* where(c, a, b): a and b take one type, then all three one shape. */
static sval builtin_where(sema *s, const builtin_call *c)
{
	ir_type t;
	if (!is_bool(c->args[0])) {
		diag *d = builtin_needs(s, c, 0, "a bool condition");
		if (sval_type_of(c->args[0], &t) && !t.pointer) diag_set_hint(s->diags, d, "compare first: x != 0");
		return sval_poison(c->at);
	}
	for (unsigned i = 1; i < 3; i++)
		if (!sval_type_of(c->args[i], &t)) {
			builtin_needs(s, c, i, "values to choose from");
			return sval_poison(c->at);
		}
	sval v[] = {c->args[1], c->args[2]};
	if (builtin_all_numbers(c->args, 3)) {
		if (!builtin_common_numbers(s, c, v, 2)) return sval_poison(c->at);
		sval pick = v[c->args[0].number.i ? 0 : 1];
		pick.at = c->at;
		return pick;
	}
	ir_value *x[3];
	if (!sema_unify(s, v, 2, c->at, &x[1])) return sval_poison(c->at);
	sval first = sval_value(x[1], c->args[1].at);
	if (!sema_broadcast_pair(s, c->args[0], first, c->at, &x[0], &x[1])) return sval_poison(c->at);
	x[2] = sema_broadcast_to(s, x[2], x[1]->type, c->at);
	return sval_value(ir_build1(&s->b, IR_SELECT, x[1]->type, 3, x), c->at);
}

/* ---- integers ---- */

static bool integers(sema *s, const builtin_call *c, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		ir_type t;
		if (sval_type_of(c->args[i], &t) && !t.pointer && scalar_is_integer((scalar)t.elem)) continue;
		builtin_needs(s, c, i, "integers");
		return false;
	}
	return true;
}

static sval builtin_cdiv(sema *s, const builtin_call *c)
{
	if (!integers(s, c, 2)) return sval_poison(c->at);
	sval a = c->args[0], b = c->args[1];
	sval up = sema_emit_binary(s, AST_OP_SUB, b, sval_int(1, c->at), c->at, c->name);
	sval sum = sema_emit_binary(s, AST_OP_ADD, a, up, c->at, c->name);
	return sema_emit_binary(s, AST_OP_DIV, sum, b, c->at, c->name);
}

static sval builtin_umulhi(sema *s, const builtin_call *c)
{
	if (!integers(s, c, 2)) return sval_poison(c->at);
	sval v[] = {c->args[0], c->args[1]};
	bool folds = builtin_all_numbers(v, 2);
	if (folds && !builtin_common_numbers(s, c, v, 2)) return sval_poison(c->at);
	ir_value *x[2] = {0};
	if (!folds && !sema_unify(s, v, 2, c->at, x)) return sval_poison(c->at);
	scalar t = folds ? v[0].number.type : (scalar)x[0]->type.elem;
	if (scalar_bytes(t) < 4) {
		diag *d = sema_diag(s, 501, c->at, "'umulhi' works on 32 and 64 bits, not on %s", scalar_name(t));
		diag_set_hint(
			s->diags, d, "the full product of narrow integers fits i32 or u32: a.to(u32) * b.to(u32)");
		return sval_poison(c->at);
	}
	if (!folds) return sval_value(ir_binary(&s->b, IR_UMULHI, x[0], x[1]), c->at);
	bool is_signed = scalar_is_signed(t);
	unsigned bits = scalar_bits(t);
	uint64_t high =
		is_signed ? (uint64_t)((v[0].number.i * v[1].number.i) >> bits)
			  : (uint64_t)(((unsigned __int128)v[0].number.i * (unsigned __int128)v[1].number.i) >> bits);
	return sval_number_bits(t, scalar_truncate(t, high), c->at);
}

/* clz, ctz: how many zeros above or below, as an i32; the operation counts in the type that it is given. */
static sval builtin_zeros(sema *s, const builtin_call *c)
{
	if (!integers(s, c, 1)) return sval_poison(c->at);
	bool below = c->builtin->which == IR_BREV;
	if (c->args[0].kind == SVAL_NUMBER) {
		scalar t = c->args[0].number.type;
		uint64_t bits = sema_number_bits(c->args[0].number, t);
		if (below) fold_scalar(IR_BREV, t, t, &bits, &bits);
		fold_scalar(IR_CLZ, t, t, &bits, &bits);
		return c->args[0].number.untyped ? sval_int((sema_int)bits, c->at)
						 : sval_typed_int(SCALAR_I32, (sema_int)bits, c->at);
	}
	ir_value *x = c->args[0].value;
	if (below) x = ir_unary(&s->b, IR_BREV, x);
	return sval_value(sema_convert(s, ir_unary(&s->b, IR_CLZ, x), SCALAR_I32), c->at);
}

static sval builtin_next_pow2_of(sema *s, const builtin_call *c)
{
	int64_t n;
	if (!sema_as_const_int(s, c->args[0], &n, "the argument of 'next_pow2'")) return sval_poison(c->at);
	if (n < 1 || n > (int64_t)1 << 62)
		return sema_error(s, 508, c->arg_at[0], "%lld has no next power of two in i64", (long long)n);
	return sval_int((sema_int)builtin_next_pow2((uint64_t)n), c->at);
}

const builtin sema_math_builtins[] = {
	{"exp", "x", 0, builtin_elementary, IR_EXP},
	{"exp2", "x", 0, builtin_elementary, IR_EXP2},
	{"expm1", "x", 0, builtin_elementary, IR_EXPM1},
	{"log", "x", 0, builtin_elementary, IR_LOG},
	{"log2", "x", 0, builtin_elementary, IR_LOG2},
	{"log1p", "x", 0, builtin_elementary, IR_LOG1P},
	{"sqrt", "x", 0, builtin_elementary, IR_SQRT},
	{"sqrt_rn", "x", 0, builtin_elementary, IR_SQRT_RN},
	{"rsqrt", "x", 0, builtin_elementary, IR_RSQRT},
	{"sin", "x", 0, builtin_elementary, IR_SIN},
	{"cos", "x", 0, builtin_elementary, IR_COS},
	{"tanh", "x", 0, builtin_elementary, IR_TANH},
	{"erf", "x", 0, builtin_elementary, IR_ERF},
	{"floor", "x", 0, builtin_elementary, IR_FLOOR},
	{"ceil", "x", 0, builtin_elementary, IR_CEIL},
	{"round", "x", 0, builtin_elementary, IR_ROUND},
	{"sigmoid", "x", 0, builtin_sigmoid, 0},
	{"abs", "x", 0, builtin_abs, IR_ABS},
	{"isnan", "x", 0, builtin_classify, IR_NE},
	{"isinf", "x", 0, builtin_classify, IR_EQ},
	{"isfinite", "x", 0, builtin_classify, IR_LT},
	{"maximum", "a b propagate_nan?", 0, builtin_extremum_of_two, IR_MAX},
	{"minimum", "a b propagate_nan?", 0, builtin_extremum_of_two, IR_MIN},
	{"clamp", "x lo hi", 0, builtin_clamp, 0},
	{"fma", "a b c", 0, builtin_fma, IR_FMA},
	{"div_rn", "a b", 0, builtin_div_rn, IR_DIV_RN},
	{"pow", "x y", 0, builtin_pow, IR_POW},
	{"where", "c a b", 0, builtin_where, IR_SELECT},
	{"cdiv", "a b", 0, builtin_cdiv, 0},
	{"umulhi", "a b", 0, builtin_umulhi, IR_UMULHI},
	{"clz", "x", 0, builtin_zeros, IR_CLZ},
	{"ctz", "x", 0, builtin_zeros, IR_BREV},
	{"next_pow2", "n", 0, builtin_next_pow2_of, 0},
	{0},
};
