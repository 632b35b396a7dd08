/* Moves, bit-wise logic, shifts and bit tricks.  Those that only move bits about say so (SHADOW_MOVE), so that an
 * undefined bit can be followed to where it ends up. */
#include "lanes.h"

static inline u64 shift_left(unsigned width, u64 v, u32 n)
{
	return n >= width ? 0 : v << n;
}
static inline u64 shift_right(unsigned width, u64 v, u32 n)
{
	return n >= width ? 0 : v >> n;
}
static inline s64 shift_signed(unsigned width, s64 v, u32 n)
{
	return v >> (n >= width ? width - 1 : n);
}

static inline u32 funnel_left(u32 low, u32 high, u32 n)
{
	return n == 0 ? high : n >= 32 ? low : high << n | low >> (32 - n);
}
static inline u32 funnel_right(u32 low, u32 high, u32 n)
{
	return n == 0 ? low : n >= 32 ? high : low >> n | high << (32 - n);
}

static inline u32 permute_bytes(u32 low, u32 high, u32 selector)
{
	u64 all = (u64)high << 32 | low;
	u32 r = 0;
	for (int i = 0; i < 4; i++) {
		u32 pick = selector >> 4 * i & 15, byte = (u32)(all >> 8 * (pick & 7)) & 0xff;
		r |= (pick & 8 ? (byte & 0x80 ? 0xffu : 0) : byte) << 8 * i;
	}
	return r;
}

/* The selection modes of prmt: byte k of the result, from the two lowest bits of the selector. */
typedef enum selection { FORWARD, BACKWARD, REPLICATE, CLAMP_LEFT, CLAMP_RIGHT, REPLICATE_PAIR } selection;
static inline u32 select_bytes(selection how, u32 low, u32 high, u32 selector)
{
	u64 all = (u64)high << 32 | low;
	u32 r = 0, at = selector & 3;
	for (u32 k = 0; k < 4; k++) {
		u32 pick = how == FORWARD       ? at + k
			   : how == BACKWARD    ? at - k
			   : how == REPLICATE   ? at
			   : how == CLAMP_LEFT  ? (k > at ? k : at)
			   : how == CLAMP_RIGHT ? (k < at ? k : at)
						: (at & 1) * 2 + (k & 1);
		r |= ((u32)(all >> 8 * (pick & 7)) & 0xff) << 8 * k;
	}
	return r;
}

/* Bits from position b on, c of them; the signed form repeats the field's last bit, or the number's. */
static inline u64 extract(bool is_signed, unsigned width, u64 v, u32 position, u32 length)
{
	position &= 0xff;
	length &= 0xff;
	unsigned last = position + length > width ? width - 1 : position + length - 1;
	bool fill = is_signed && length && v >> last & 1;
	u64 field = position >= width ? 0 : v >> position;
	unsigned have = position >= width ? 0 : width - position;
	if (have > length) have = length;
	u64 mask = have >= 64 ? UINT64_MAX : (UINT64_C(1) << have) - 1;
	return (field & mask) | (fill ? ~mask : 0);
}
static inline u64 insert(unsigned width, u64 field, u64 into, u32 position, u32 length)
{
	position &= 0xff;
	length &= 0xff;
	if (position >= width || length == 0) return into;
	u64 mask = (length >= 64 ? UINT64_MAX : (UINT64_C(1) << length) - 1) << position;
	return (into & ~mask) | (field << position & mask);
}

static inline u64 reverse(unsigned width, u64 v)
{
	u64 r = 0;
	for (unsigned i = 0; i < width; i++) r |= (v >> i & 1) << (width - 1 - i);
	return r;
}
static inline u32 leading_zeros(unsigned width, u64 v)
{
	return v ? (u32)__builtin_clzll(v) - (64 - width) : width;
}
/* The highest bit that says something: of a negative number the highest 0. */
static inline u32 find_highest(bool is_signed, unsigned width, u64 v)
{
	u64 mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
	if (is_signed && v >> (width - 1) & 1) v = ~v;
	v &= mask;
	return v ? 63 - (u32)__builtin_clzll(v) : UINT32_MAX;
}
static inline u32 shift_to_top(bool is_signed, unsigned width, u64 v)
{
	u32 at = find_highest(is_signed, width, v);
	return at == UINT32_MAX ? at : width - 1 - at;
}
static inline u32 lookup3(u32 x, u32 y, u32 z, u32 table)
{
	u32 r = 0;
	for (unsigned i = 0; i < 8; i++)
		if (table >> i & 1) r |= (i & 4 ? x : ~x) & (i & 2 ? y : ~y) & (i & 1 ? z : ~z);
	return r;
}
static inline u32 dot4(u32 x, u32 y, u32 sum, bool x_signed, bool y_signed)
{
	for (int i = 0; i < 4; i++) {
		s32 p = x_signed ? (int8_t)(x >> 8 * i) : (s32)(x >> 8 * i & 0xff);
		s32 q = y_signed ? (int8_t)(y >> 8 * i) : (s32)(y >> 8 * i & 0xff);
		sum += (u32)(p * q);
	}
	return sum;
}

#define MOVES(X, type, T) X("mov." #type, mov_##type, MOVE, T, T, none, none, A)
#define LOGIC(X, type, T)                                                                                              \
	X("and." #type, and_##type, AND, T, T, T, none, A &B)                                                          \
	X("or." #type, or_##type, OR, T, T, T, none, A | B)                                                            \
	X("xor." #type, xor_##type, BITS, T, T, T, none, A ^ B)                                                        \
	X("not." #type, not_##type, BITS, T, T, none, none, ~A)                                                        \
	X("cnot." #type, cnot_##type, ANY, T, T, none, none, A == 0)                                                   \
	X("shl." #type, shl_##type, MOVE, T, T, u32, none, shift_left(8 * sizeof(T), A, B))                            \
	X("shr." #type, shr_##type, MOVE, T, T, u32, none, shift_right(8 * sizeof(T), A, B))
#define FIELDS(X, bits)                                                                                                \
	X("bfe.u" #bits, bfe_u##bits, MOVE, u##bits, u##bits, u32, u32, extract(false, bits, A, B, C))                 \
	X("bfe.s" #bits, bfe_s##bits, MOVE, u##bits, u##bits, u32, u32, extract(true, bits, A, B, C))                  \
	X("brev.b" #bits, brev_b##bits, MOVE, u##bits, u##bits, none, none, reverse(bits, A))                          \
	X("clz.b" #bits, clz_b##bits, ANY, u32, u##bits, none, none, leading_zeros(bits, A))                           \
	X("popc.b" #bits, popc_b##bits, ANY, u32, u##bits, none, none, __builtin_popcountll(A))                        \
	X("bfind.u" #bits, bfind_u##bits, ANY, u32, u##bits, none, none, find_highest(false, bits, A))                 \
	X("bfind.shiftamt.u" #bits, shiftamt_u##bits, ANY, u32, u##bits, none, none, shift_to_top(false, bits, A))     \
	X("bfind.shiftamt.s" #bits, shiftamt_s##bits, ANY, u32, u##bits, none, none, shift_to_top(true, bits, A))      \
	X("bfind.s" #bits, bfind_s##bits, ANY, u32, u##bits, none, none, find_highest(true, bits, A))                  \
	X("shr.u" #bits, shr_u##bits, MOVE, u##bits, u##bits, u32, none, shift_right(bits, A, B))                      \
	X("shr.s" #bits, shr_s##bits, MOVE, s##bits, s##bits, u32, none, shift_signed(bits, A, B))

#define BITS_OPS(X)                                                                                                    \
	MOVES(X, b16, u16)                                                                                             \
	MOVES(X, u16, u16)                                                                                             \
	MOVES(X, s16, u16)                                                                                             \
	MOVES(X, b32, u32)                                                                                             \
	MOVES(X, u32, u32)                                                                                             \
	MOVES(X, s32, u32)                                                                                             \
	MOVES(X, f32, u32)                                                                                             \
	MOVES(X, b64, u64)                                                                                             \
	MOVES(X, u64, u64)                                                                                             \
	MOVES(X, s64, u64)                                                                                             \
	MOVES(X, f64, u64)                                                                                             \
	LOGIC(X, b16, u16)                                                                                             \
	LOGIC(X, b32, u32)                                                                                             \
	LOGIC(X, b64, u64)                                                                                             \
	FIELDS(X, 32)                                                                                                  \
	FIELDS(X, 64)                                                                                                  \
	X("shr.u16", shr_u16, MOVE, u16, u16, u32, none, shift_right(16, A, B))                                        \
	X("shr.s16", shr_s16, MOVE, s16, s16, u32, none, shift_signed(16, A, B))                                       \
	X("prmt.b32", prmt_b32, MOVE2, u32, u32, u32, u32, permute_bytes(A, B, C))                                     \
	X("shf.l.wrap.b32", shf_l_wrap, MOVE2, u32, u32, u32, u32, funnel_left(A, B, C & 31))                          \
	X("shf.r.wrap.b32", shf_r_wrap, MOVE2, u32, u32, u32, u32, funnel_right(A, B, C & 31))                         \
	X("shf.l.clamp.b32", shf_l_clamp, MOVE2, u32, u32, u32, u32, funnel_left(A, B, C))                             \
	X("shf.r.clamp.b32", shf_r_clamp, MOVE2, u32, u32, u32, u32, funnel_right(A, B, C))                            \
	X("bfi.b32", bfi_b32, MOVE2, u32, u32, u32, u32, insert(32, A, B, C & 0xff, C >> 8))                           \
	X("bfi.b64", bfi_b64, MOVE2, u64, u64, u64, u32, insert(64, A, B, C & 0xff, C >> 8))                           \
	/* a position and a length in one operand, of bfi alone */                                                     \
	X("field", field, ANY, u32, u32, u32, none, (A & 0xff) | (B & 0xff) << 8)                                      \
	X("prmt.b32.f4e", prmt_f4e, MOVE2, u32, u32, u32, u32, select_bytes(FORWARD, A, B, C))                         \
	X("prmt.b32.b4e", prmt_b4e, MOVE2, u32, u32, u32, u32, select_bytes(BACKWARD, A, B, C))                        \
	X("prmt.b32.rc8", prmt_rc8, MOVE2, u32, u32, u32, u32, select_bytes(REPLICATE, A, B, C))                       \
	X("prmt.b32.ecl", prmt_ecl, MOVE2, u32, u32, u32, u32, select_bytes(CLAMP_LEFT, A, B, C))                      \
	X("prmt.b32.ecr", prmt_ecr, MOVE2, u32, u32, u32, u32, select_bytes(CLAMP_RIGHT, A, B, C))                     \
	X("prmt.b32.rc16", prmt_rc16, MOVE2, u32, u32, u32, u32, select_bytes(REPLICATE_PAIR, A, B, C))                \
	X("lop3.b32", lop3_b32, ANY, u32, u32, u32, u32, lookup3(A, B, C, (u32)in->offset))                            \
	X("dp4a.s32.s32", dp4a_ss, ANY, u32, u32, u32, u32, dot4(A, B, C, true, true))                                 \
	X("dp4a.u32.u32", dp4a_uu, ANY, u32, u32, u32, u32, dot4(A, B, C, false, false))                               \
	X("dp4a.s32.u32", dp4a_su, ANY, u32, u32, u32, u32, dot4(A, B, C, true, false))                                \
	X("dp4a.u32.s32", dp4a_us, ANY, u32, u32, u32, u32, dot4(A, B, C, false, true))                                \
	/* between spaces: the windows are one bit each */                                                             \
	X("cvta.param.u64", cvta_param, MOVE, u64, u64, none, none, A)                                                 \
	X("cvta.global.u64", cvta_global, MOVE, u64, u64, none, none, A)                                               \
	X("cvta.to.global.u64", cvta_to_global, MOVE, u64, u64, none, none, A)                                         \
	X("cvta.shared.u64", cvta_shared, MOVE, u64, u64, none, none, A | SIM_SHARED_WINDOW)                           \
	X("cvta.to.shared.u64", cvta_to_shared, MOVE, u64, u64, none, none, A & ~SIM_SHARED_WINDOW)                    \
	X("cvta.local.u64", cvta_local, MOVE, u64, u64, none, none, A | SIM_LOCAL_WINDOW)                              \
	X("cvta.to.local.u64", cvta_to_local, MOVE, u64, u64, none, none, A & ~SIM_LOCAL_WINDOW)                       \
	/* conversions of integers that occur everywhere; the others are in lanes_convert.c */                         \
	X("cvt.u64.u32", cvt_u64_u32, MOVE, u64, u32, none, none, A)                                                   \
	X("cvt.s64.s32", cvt_s64_s32, MOVE, s64, s32, none, none, A)

BITS_OPS(LANES_FUNCTION)
const sim_op sim_bits_ops[] = {BITS_OPS(LANES_ROW)};
const size_t sim_nbits_ops = sizeof sim_bits_ops / sizeof sim_bits_ops[0];
