/* Elementwise operations: one row each.
 *
 * Integers wrap, so every operation on them is exact.  Floats follow their bounds: a sum asks its operands for half the
 * magnitude, a product for half the bits.  A product never rounds, so it is the same bits whether it fuses or not. */
#include "generate.h"

/* ---- rows that need more than letters ---- */

/* Any number, cast to the result's type and bounds. */
static bool build_cast(gen *g, node *n, int depth)
{
	tile_type from = random_type(g, n->type.shape, type_float(&n->type) ? ON_NUMBER | ON_BOOL : ON_ANY),
		  want = n->type;
	if (want.rounded && !type_float(&from)) { /* rounds once, and stays below the largest number */
		if (want.mag < 17 || from.s == SCALAR_BOOL) return false;
		if (scalar_bytes(from.s) > 2 && want.mag < 30) return false;
		if (scalar_bytes(from.s) == 8 || from.s == SCALAR_U32 || from.s == SCALAR_I32) from.s = SCALAR_U16;
		return with(n, expression(g, from, depth)) != NULL;
	}
	if (want.rounded && from.s == SCALAR_F64) { /* the narrowing rounds */
		from.mag = want.mag - 1;
		from.rounded = true;
		return from.mag >= 0 && with(n, expression(g, from, depth)) != NULL;
	}
	node *c = convert(g, expression(g, from, depth), want);
	if (!c || c->nkids != 1) return false;
	*n = *c;
	return true;
}

/* An integer's bits as they are in a float of its size. */
static bool build_bitcast(gen *g, node *n, int depth)
{
	tile_type from = n->type;
	switch (scalar_bytes(n->type.s)) {
	case 2: from = type_of(rng_percent(&g->rng, 50) ? SCALAR_F16 : SCALAR_BF16, from.shape); break;
	case 4: from = type_of(SCALAR_F32, from.shape); break;
	case 8: from = type_of(SCALAR_F64, from.shape); break;
	default: return false;
	}
	return with(n, expression(g, from, depth)) != NULL;
}

static bool build_sign_cast(gen *g, node *n, int depth) /* the same bits as the other signedness */
{
	static const scalar other[SCALAR_COUNT] = {[SCALAR_I8] = SCALAR_U8,
		[SCALAR_I16] = SCALAR_U16,
		[SCALAR_I32] = SCALAR_U32,
		[SCALAR_I64] = SCALAR_U64,
		[SCALAR_U8] = SCALAR_I8,
		[SCALAR_U16] = SCALAR_I16,
		[SCALAR_U32] = SCALAR_I32,
		[SCALAR_U64] = SCALAR_I64};
	tile_type from = type_of(other[n->type.s], n->type.shape);
	return with(n, expression(g, from, depth)) != NULL;
}

/* Whole numbers out of any float: exact again, though what went in was rounded. */
static bool build_round(gen *g, node *n, int depth)
{
	tile_type from = n->type;
	if (from.mag < 0) return false;
	if (!from.rounded && from.mag <= exact_bits(from.s) && rng_percent(&g->rng, 60)) from.rounded = true;
	if (!from.rounded && from.frac < 2) from.frac = from.mag + 2 <= exact_bits(from.s) ? 2 : from.frac;
	return with(n, expression(g, from, depth)) != NULL;
}

static bool build_quotient(gen *g, node *n, int depth)
{
	tile_type t = n->type;
	if (!t.rounded || t.mag < 0) return false;
	return with(n, expression(g, t, depth)) && with(n, expression(g, t, depth));
}

static bool build_fma(gen *g, node *n, int depth)
{
	tile_type half = n->type, rest = n->type;
	if (half.rounded || half.mag < 1) return false;
	half.mag = (half.mag - 1) / 2, half.frac /= 2, rest.mag--;
	return with(n, expression(g, half, depth)) && with(n, expression(g, half, depth)) &&
	       with(n, expression(g, rest, depth));
}

static bool build_wide(gen *g, node *n, int depth) /* umulhi: 32 and 64 bits */
{
	return scalar_bytes(n->type.s) >= 4 && build_kids(g, n, depth);
}

/* A float meets a narrower float or an integer and promotes it. */
static bool build_promoted(gen *g, node *n, int depth)
{
	tile_type wide = n->type, narrow = type_of(rng_percent(&g->rng, 50) ? SCALAR_F16 : SCALAR_BF16, n->type.shape);
	if (n->type.s != SCALAR_F32 && n->type.s != SCALAR_F64) return false;
	if (--wide.mag < 0) return false;
	narrow.mag = narrow.mag < wide.mag ? narrow.mag : wide.mag;
	narrow.frac = narrow.frac < wide.frac ? narrow.frac : wide.frac;
	return with(n, expression(g, wide, depth)) && with(n, expression(g, narrow, depth));
}

#define INT ON_INT
#define EXACT ON_FLOAT
static const rule table[] = {
	{"+", "(%0 + %1)", 12, ON_NUMBER | BROADCAST, "--"},
	{"-", "(%0 - %1)", 9, ON_NUMBER | BROADCAST, "--"},
	{"*", "(%0 * %1)", 9, INT | EXACT | BROADCAST, "//"},
	{"a*b+c", "(%0 * %1 + %2)", 4, INT | BROADCAST, "==="},
	{"fma", "fma(%0, %1, %2)", 3, EXACT, "", build_fma},
	{"float a*b+c", "(%0 * %1 + %2)", 4, EXACT, "", build_fma},
	{"/", "(%0 / (%1 | 1))", 4, INT | BROADCAST, "=="},
	{"%", "(%0 % (%1 | 1))", 4, INT | BROADCAST, "=="},
	{"/ constant", "(%0 / (%a + 3).to(%t))", 3, INT, "="},
	{"% constant", "(%0 % (%a + 1).to(%t))", 3, INT, "="},
	{"cdiv", "cdiv(%0, (%1 | 1))", 2, INT, "=="},
	{"&", "(%0 & %1)", 4, INT | ON_BOOL | BROADCAST, "=="},
	{"|", "(%0 | %1)", 4, INT | ON_BOOL | BROADCAST, "=="},
	{"^", "(%0 ^ %1)", 4, INT | ON_BOOL | BROADCAST, "=="},
	{"~", "(~%0)", 3, INT | ON_BOOL, "="},
	{"- unary", "(-%0)", 3, ON_NUMBER, "="},
	{"<<", "(%0 << (%1 & 127))", 3, INT | BROADCAST, "=u"},
	{">>", "(%0 >> (%1 & 127))", 3, INT | BROADCAST, "=u"},
	{"<< constant", "(%0 << %a)", 3, INT, "="},
	{">> constant", "(%0 >> %a)", 3, INT, "="},
	{"literal operand", "(%0 * %a + %b)", 3, INT, "="},
	{"abs", "abs(%0)", 3, ON_NUMBER, "="},
	{"minimum", "minimum(%0, %1)", 4, ON_ANY | BROADCAST, "=="},
	{"maximum", "maximum(%0, %1)", 4, ON_ANY | BROADCAST, "=="},
	{"min", "min(%0, %1)", 3, ON_NUMBER | SCALAR, "=="},
	{"max", "max(%0, %1)", 3, ON_NUMBER | SCALAR, "=="},
	{"clamp", "clamp(%0, %1, %2)", 3, ON_NUMBER, "==="},
	{"where", "where(%0, %1, %2)", 8, ON_ANY | BROADCAST, "b=="},
	{"?:", "(%0 ? %1 : %2)", 5, ON_ANY | SCALAR, "B=="},
	{"?: constant", "(C0 > %a ? %0 : %1)", 2, ON_ANY | KERNEL, "=="},
	{"umulhi", "umulhi(%0, %1)", 3, INT, "==", build_wide},
	{"promotion", "(%0 + %1).to(%t)", 4, INT | BROADCAST, "=n"},
	{"float promotion", "(%0 + %1).to(%t)", 3, EXACT, "", build_promoted},
	{"literal float", "(%0 + 0).to(%t)", 1, EXACT, "="},
	{"cast", "%0.to(%t)", 8, ON_NUMBER, "", build_cast},
	{"cast back", "%0.to(%t)", 3, INT, "", build_sign_cast},
	{"bitcast", "%0.to(%t, bitcast = true)", 3, INT, "", build_bitcast},
	{"float to int", "%0.to(%t)", 4, INT, "f"},
	{"floor", "floor(%0)", 3, EXACT, "", build_round},
	{"ceil", "ceil(%0)", 2, EXACT, "", build_round},
	{"round", "round(%0)", 2, EXACT, "", build_round},
	{"relu", "relu(%0)", 1, EXACT, "="},
	{"div_rn", "div_rn(%0, maximum(abs(%1), 1.0))", 6, ON_ROUNDED, "", build_quotient},
	{"sqrt_rn", "sqrt_rn(abs(%0))", 4, ON_ROUNDED, "", build_round},
	{"compare <", "(%0 < %1)", 5, ON_BOOL | BROADCAST, "cC"},
	{"compare <=", "(%0 <= %1)", 4, ON_BOOL | BROADCAST, "cC"},
	{"compare >", "(%0 > %1)", 4, ON_BOOL | BROADCAST, "cC"},
	{"compare >=", "(%0 >= %1)", 4, ON_BOOL | BROADCAST, "cC"},
	{"compare ==", "(%0 == %1)", 4, ON_BOOL | BROADCAST, "cC"},
	{"compare !=", "(%0 != %1)", 4, ON_BOOL | BROADCAST, "cC"},
	{"compare literal", "(%0 > %a)", 5, ON_BOOL, "c"},
	{"bit test", "((%0 & %a) == %b)", 3, ON_BOOL, "u"},
	{"!", "(!%0)", 3, ON_BOOL | SCALAR, "="},
	{"&&", "(%0 && %1)", 4, ON_BOOL | SCALAR, "=="},
	{"||", "(%0 || %1)", 4, ON_BOOL | SCALAR, "=="},
	{"isnan", "isnan(%0)", 1, ON_BOOL, "f"},
	{"isinf", "isinf(%0)", 1, ON_BOOL, "f"},
	{"multiple_of", "multiple_of(%0 * 8, 8)", 1, INT, "="},
};
const rules elementwise_rules = RULES(table);
