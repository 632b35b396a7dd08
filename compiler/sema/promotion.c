/* What type two scalar types meet in, whether a number fits the type that it takes there, and what to write instead. */
#include "internal.h"

#include <assert.h>

bool promote(scalar a, scalar b, scalar *out)
{
	if (a == b) return *out = a, true;
	if (a == SCALAR_BOOL || b == SCALAR_BOOL) return false;
	bool fa = scalar_is_float(a), fb = scalar_is_float(b);
	if (fa != fb) return *out = fa ? a : b, true;
	if (fa) {
		if (scalar_bytes(a) == scalar_bytes(b)) /* f16 with bf16, and the two fp8 types */
			*out = scalar_is_fp8(a) ? SCALAR_F16 : SCALAR_F32;
		else
			*out = scalar_bytes(a) > scalar_bytes(b) ? a : b;
		return true;
	}
	bool sa = scalar_is_signed(a), sb = scalar_is_signed(b);
	if (sa != sb) {
		scalar with_sign = sa ? a : b, without = sa ? b : a;
		if (scalar_bytes(with_sign) <= scalar_bytes(without)) return false;
		return *out = with_sign, true;
	}
	return *out = scalar_bytes(a) > scalar_bytes(b) ? a : b, true;
}

/* The casts that say what is meant where a signed and an unsigned integer meet: the one that keeps every value, where
 * some type holds both. */
void sema_hint_mix(sema *s, diag *d, sval a, scalar ta, sval b, scalar tb)
{
	assert(scalar_is_signed(ta) != scalar_is_signed(tb));
	bool first = scalar_is_signed(ta);
	sval with_sign = first ? a : b, without = first ? b : a;
	scalar u_type = first ? tb : ta; /* the other one is not wider, else they would mix */
	static const scalar wider[] = {SCALAR_I16, SCALAR_I32, SCALAR_I64};
	const char *u_text = sema_postfix_text(s, without.at);
	for (unsigned i = 0; i < sizeof wider / sizeof *wider; i++)
		if (scalar_bytes(wider[i]) > scalar_bytes(u_type)) {
			diag_set_hint(s->diags, d, "%s holds the values of both: %s.to(%s)", scalar_name(wider[i]),
				u_text, scalar_name(wider[i]));
			return;
		}
	diag_set_hint(s->diags, d,
		"no integer type holds both: %s.to(u64) where that is never negative, %s.to(i64) where that is below "
		"2^63",
		sema_postfix_text(s, with_sign.at), u_text);
}

static bool number_is_negative(sema_number n)
{
	return scalar_is_float(n.type) ? n.f < 0 : n.i < 0;
}

bool sema_alone_fits(sema *s, sval v, scalar t)
{
	assert(v.kind == SVAL_NUMBER);
	if (!v.number.untyped || !scalar_is_float(t) || number_fits(v.number, t)) return true;
	diag *d = sema_diag(s, 218, v.at, "%s does not fit in %s", number_text(s, v.number), scalar_name(t));
	diag_set_hint(s->diags, d, "say the type: %s.to(f64)", sema_postfix_text(s, v.at));
	return false;
}

bool sema_literal_fits(sema *s, sval v, scalar t)
{
	assert(v.kind == SVAL_NUMBER);
	sema_number n = v.number;
	bool integer = scalar_is_integer(n.type) && scalar_is_integer(t);
	if (!n.untyped || (!integer && !scalar_is_float(t)) || number_fits(n, t)) return true;
	diag *d = sema_diag(s, 218, v.at, "%s does not fit in %s", number_text(s, n), scalar_name(t));
	scalar wide = integer ? n.type : number_fits(n, SCALAR_F32) ? SCALAR_F32 : SCALAR_F64;
	diag_set_hint(s->diags, d, "widen the other operand with .to(%s)%s", scalar_name(wide),
		integer                 ? ""
		: number_is_negative(n) ? ", or write -inf"
					: ", or write inf");
	return false;
}
