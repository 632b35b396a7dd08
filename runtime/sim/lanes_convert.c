/* cvt: between any two types, with a rounding mode, saturated where asked for.
 *
 * A float's value is exact in a double, and a narrow float is found by rounding that to nearest and then, for the other
 * modes, stepping to the neighbour on the right side.  64-bit integers become floats without passing through a double.
 */
#include "lanes.h"

#include <math.h>

static u64 mask_of(scalar t)
{
	return scalar_truncate(t, UINT64_MAX);
}

/* The float of type t next to `bits`, towards plus infinity or away from it. */
static u64 neighbour(scalar t, u64 bits, bool up)
{
	u64 sign = UINT64_C(1) << (scalar_bits(t) - 1);
	if (!(bits & ~sign)) return up ? 1 : sign | 1;
	return up == !(bits & sign) ? bits + 1 : bits - 1;
}

static u64 round_float(scalar t, f64 v, sim_rounding mode)
{
	if (v != v) return t == SCALAR_F64 ? scalar_from_double(t, v) : mask_of(t) >> 1; /* all ones but the sign */
	u64 bits = scalar_from_double(t, v);
	f64 r = scalar_to_double(t, bits);
	if (mode == ROUND_NEAREST || r == v) return bits;
	bool toward_up = mode == ROUND_UP || (mode == ROUND_ZERO && v < 0);
	if (toward_up ? r < v : r > v) bits = neighbour(t, bits, toward_up);
	return bits;
}

/* tf32 is an f32 whose last 13 bits are 0. */
static u64 round_tf32(f32 v, sim_rounding mode)
{
	u64 bits = scalar_from_double(SCALAR_F32, v);
	if (v != v) return 0x7fffe000;
	if (isinf(v)) return bits;
	u64 half = 0x1000, rest = bits & 0x1fff;
	if (mode != ROUND_ZERO && (rest > half || (rest == half && (mode == ROUND_AWAY || bits >> 13 & 1))))
		bits += half * 2;
	return bits & ~UINT64_C(0x1fff);
}

static f64 round_integral(f64 v, sim_rounding mode)
{
	switch (mode) {
	case ROUND_ZERO: return trunc(v);
	case ROUND_DOWN: return floor(v);
	case ROUND_UP: return ceil(v);
	default: return nearbyint(v);
	}
}

static u64 float_to_integer(scalar to, scalar from, f64 v, sim_rounding mode)
{
	bool large = scalar_bits(to) == 64 || from == SCALAR_F64;
	if (v != v) return large ? UINT64_C(1) << (scalar_bits(to) - 1) : 0;
	return scalar_from_double(to, round_integral(v, mode));
}

static u64 integer_to_float(scalar to, scalar from, u64 bits, sim_rounding mode)
{
	if (mode == ROUND_NEAREST) return scalar_convert(to, from, bits);
	s64 v = scalar_sign_extend(from, bits);
	bool is_signed = scalar_is_signed(from);
	u64 r = scalar_convert(to, from, bits);
	f64 got = scalar_to_double(to, r);
	/* Which side of the exact value the rounded one lies on, in arithmetic that holds both. */
	__int128 exact = is_signed ? (__int128)v : (__int128)scalar_truncate(from, bits), rounded = (__int128)got;
	if (rounded == exact) return r;
	bool up = mode == ROUND_UP || (mode == ROUND_ZERO && exact < 0);
	if (up ? rounded < exact : rounded > exact) r = neighbour(to, r, up);
	return r;
}

static u64 clamp_integer(scalar to, scalar from, u64 bits)
{
	s64 v = scalar_sign_extend(from, bits);
	u64 top = scalar_is_signed(to) ? mask_of(to) >> 1 : mask_of(to);
	if (!scalar_is_signed(from)) return (u64)v > top ? top : (u64)v;
	if (!scalar_is_signed(to)) return v < 0 ? 0 : (u64)v > top ? top : (u64)v;
	s64 low = -(s64)top - 1;
	return scalar_truncate(to, (u64)(v < low ? low : v > (s64)top ? (s64)top : v));
}

static u64 saturate_unit(scalar t, u64 bits)
{
	f64 v = scalar_to_double(t, bits);
	return scalar_from_double(t, v > 0 ? (v < 1 ? v : 1) : 0);
}

static bool is_nan(scalar t, u64 bits)
{
	f64 v = scalar_to_double(t, bits);
	return v != v;
}

/* A nan of another type.  To and from f64, and from bf16 to f32, its sign and what fits of its payload are kept, and it
 * is quiet; all others become the type's largest pattern without a sign. */
static u64 convert_nan(scalar to, scalar from, u64 bits)
{
	bool widens = from == SCALAR_BF16 && to == SCALAR_F32;
	if (to != SCALAR_F64 && from != SCALAR_F64 && !widens) return mask_of(to) >> 1;
	unsigned was = scalar_table[from].mantissa, is = scalar_table[to].mantissa;
	u64 payload = bits & ((UINT64_C(1) << was) - 1), sign = bits >> (scalar_bits(from) - 1) & 1;
	payload = is > was ? payload << (is - was) : payload >> (was - is);
	u64 exponent = ((UINT64_C(1) << (scalar_bits(to) - 1 - is)) - 1) << is;
	return sign << (scalar_bits(to) - 1) | exponent | payload | (widens ? 0 : UINT64_C(1) << (is - 1));
}

static u64 convert(const sim_instr *in, u64 bits)
{
	scalar from = (scalar)in->from, to = (scalar)in->to;
	bits = scalar_truncate(from, bits);
	if (in->releases && !(scalar_to_double(from, bits) > 0) && !is_nan(from, bits)) bits = 0; /* .relu */
	if (in->acquires && from == SCALAR_F32 && !(bits & 0x7f800000)) bits &= 0x80000000;       /* .ftz */
	if (in->mode && in->rounding == ROUND_AWAY && is_nan(from, bits)) return bits & 0xffffe000;
	if (scalar_is_float(from) && scalar_is_float(to) && !in->mode && !in->saturates &&
		(from != to || in->exchanges) && is_nan(from, bits))
		return convert_nan(to, from, bits);
	if (in->mode) return round_tf32((f32)scalar_to_double(from, bits), (sim_rounding)in->rounding);
	if (scalar_is_float(from)) {
		f64 v = scalar_to_double(from, bits);
		if (!scalar_is_float(to)) return float_to_integer(to, from, v, (sim_rounding)in->rounding);
		if (from == to) {
			bits = in->exchanges
				       ? round_float(to, round_integral(v, (sim_rounding)in->rounding), ROUND_NEAREST)
				       : bits;
		} else {
			bits = round_float(to, v, (sim_rounding)in->rounding);
		}
		return in->saturates && !scalar_is_fp8(to) ? saturate_unit(to, bits) : bits;
	}
	if (scalar_is_float(to)) return integer_to_float(to, from, bits, (sim_rounding)in->rounding);
	return in->saturates ? clamp_integer(to, from, bits) : scalar_truncate(to, (u64)scalar_sign_extend(from, bits));
}

/* A destination wider than the type holds the number, with its sign. */
void sim_lanes_convert(const sim_instr *in, void *d, const void *a, const void *b, const void *c)
{
	(void)b, (void)c;
	bool extend = !scalar_is_float((scalar)in->to) && scalar_is_signed((scalar)in->to);
	for (unsigned i = 0; i < SIM_LANES; i++) {
		u64 r = convert(in, sim_register_read(a, in->wide[1], i));
		sim_register_write(d, in->wide[0], i, extend ? (u64)scalar_sign_extend((scalar)in->to, r) : r);
	}
}

/* Two numbers in one register: from two f32 (a is the upper one), or from a pair in one register. */
void sim_lanes_convert_pair(const sim_instr *in, void *d, const void *a, const void *b, const void *c)
{
	(void)c;
	scalar from = (scalar)in->from, to = (scalar)in->to;
	unsigned narrow = scalar_bits(to), was = scalar_bits(from);
	for (unsigned i = 0; i < SIM_LANES; i++) {
		u64 high = sim_register_read(a, in->wide[1], i), low = high;
		if (from == SCALAR_F32) {
			low = sim_register_read(b, in->wide[2], i);
		} else {
			high = high >> was & mask_of(from);
			low &= mask_of(from);
		}
		u64 pair[2] = {low, high};
		for (int k = 0; k < 2; k++) {
			f64 v = scalar_to_double(from, pair[k]);
			if (in->exchanges && !(v > 0)) v = v != v ? v : 0; /* .relu */
			pair[k] = round_float(to, v, (sim_rounding)in->rounding);
			if (in->saturates && isinf(scalar_to_double(to, pair[k])))
				pair[k]--; /* .satfinite: the largest number */
		}
		sim_register_write(d, in->wide[0], i, pair[1] << narrow | pair[0]);
	}
}
