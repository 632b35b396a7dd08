/* atom and red: lane after lane, each one atomic among the host's threads as well. */
#include "access.h"

#include <math.h>
#include <string.h>

typedef enum sim_atomic {
	ATOMIC_ADD,
	ATOMIC_MIN,
	ATOMIC_MAX,
	ATOMIC_AND,
	ATOMIC_OR,
	ATOMIC_XOR,
	ATOMIC_EXCHANGE,
	ATOMIC_CAS,
	ATOMIC_INC,
	ATOMIC_DEC
} sim_atomic; /* ORDER decode_access.c */

static double flushed(double v)
{
	return fabs(v) < 0x1p-126 ? copysign(0, v) : v;
}

/* In global memory an f32 sum flushes denormals and an f64 sum leaves a nan as it is, as the hardware's do. */
static uint64_t float_sum(scalar t, uint64_t a, uint64_t b, bool global)
{
	double x = scalar_to_double(t, a), y = scalar_to_double(t, b), sum;
	bool flush = global && t == SCALAR_F32;
	if (global && t == SCALAR_F64 && (x != x || y != y)) return x != x ? a : b;
	if (flush) x = flushed(x), y = flushed(y);
	sum = t == SCALAR_F32 ? (double)((float)x + (float)y) : x + y;
	if (flush) sum = flushed(sum);
	if (sum != sum && t != SCALAR_F64) return scalar_truncate(t, UINT64_MAX) >> 1;
	return scalar_from_double(t, sum);
}

static uint64_t combine(const sim_instr *in, uint64_t old, uint64_t v, uint64_t other)
{
	scalar t = (scalar)in->to;
	int64_t a = scalar_sign_extend(t, old), b = scalar_sign_extend(t, v);
	bool less = scalar_is_signed(t) ? a < b : (uint64_t)a < (uint64_t)b;
	assert(in->mode <= ATOMIC_DEC);
	switch ((sim_atomic)in->mode) {
	case ATOMIC_ADD: return old + v;
	case ATOMIC_MIN: return less ? old : v;
	case ATOMIC_MAX: return less ? v : old;
	case ATOMIC_AND: return old & v;
	case ATOMIC_OR: return old | v;
	case ATOMIC_XOR: return old ^ v;
	case ATOMIC_EXCHANGE: return v;
	case ATOMIC_CAS: return old == v ? other : old;
	case ATOMIC_INC: return old >= v ? 0 : old + 1;
	default: return old == 0 || old > v ? v : old - 1; /* ATOMIC_DEC */
	}
}

/* Of two numbers the smaller or larger one; a nan gives way to a number. */
static uint64_t float_extreme(scalar t, uint64_t a, uint64_t b, bool least)
{
	double x = scalar_to_double(t, a), y = scalar_to_double(t, b);
	if (x != x) return y != y ? scalar_truncate(t, UINT64_MAX) >> 1 : b;
	if (y != y) return a;
	if (x == y) return (signbit(x) != 0) == least ? a : b;
	return (x < y) == least ? a : b;
}

static uint64_t next_value(const sim_instr *in, uint64_t old, uint64_t v, uint64_t other, bool flush)
{
	scalar t = (scalar)in->to;
	unsigned bits = scalar_bits(t);
	bool adds = in->mode == ATOMIC_ADD, least = in->mode == ATOMIC_MIN;
	if (!scalar_is_float(t) || !(adds || least || in->mode == ATOMIC_MAX)) return combine(in, old, v, other);
	assert(8u * in->bytes % bits == 0);
	uint64_t r = 0;
	for (unsigned at = 0; at < 8u * in->bytes; at += bits) { /* one number, or a pair */
		uint64_t a = scalar_truncate(t, old >> at), b = scalar_truncate(t, v >> at);
		r |= (adds ? float_sum(t, a, b, flush) : float_extreme(t, a, b, least)) << at;
	}
	return r;
}

#define SWAP_LOOP(T)                                                                                                   \
	{                                                                                                              \
		T *p = (T *)(void *)at, old = __atomic_load_n(p, __ATOMIC_SEQ_CST), next;                              \
		do next = (T)next_value(in, old, v, other, flush);                                                     \
		while (!__atomic_compare_exchange_n(p, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));        \
		return old;                                                                                            \
	}

uint64_t sim_atomic_swap(const sim_instr *in, unsigned bytes, uint8_t *at, uint64_t v, uint64_t other, bool flush)
{
	assert((uintptr_t)at % bytes == 0);
	switch (bytes) {
	case 1: SWAP_LOOP(uint8_t)
	case 2: SWAP_LOOP(uint16_t)
	case 4: SWAP_LOOP(uint32_t)
	default: SWAP_LOOP(uint64_t)
	}
}

/* Where a lane's instruction acts: `bytes` of them, which in its registers lie from bit `shift` on. */
typedef struct place {
	uint64_t address;
	unsigned bytes, shift;
} place;

/* Of an instruction on a word that is meant for one element in it, at `own`: that one.  All of the word where it would
 * change more than that. */
static place element(const sim_warp *w, const sim_instr *in, unsigned i, uint64_t address, uint64_t own)
{
	assert(in->bytes == 4 && (in->part == 1 || in->part == 2));
	const place all = {address, in->bytes, 0};
	uint64_t v = sim_register_read(sim_at(w, in->regs[0]), in->wide[0], i);
	if (own - address > 4u - in->part || own % in->part) return all;
	const place part = {own, in->part, 8 * (unsigned)(own - address)};
	uint64_t others = UINT32_MAX & ~(((UINT64_C(1) << 8 * in->part) - 1) << part.shift);
	bool changes = in->mode == ATOMIC_AND ? (~v & others) != 0 : (v & others) != 0;
	bool fits = in->mode == ATOMIC_AND || in->mode == ATOMIC_OR || in->mode == ATOMIC_XOR;
	return fits && !changes ? part : all;
}

/* What an element's instruction reads beside it is undefined in the result. */
static void result(sim_warp *w, const sim_instr *in, unsigned i, const place *at, uint64_t old, bool undefined)
{
	uint64_t beside = at->bytes == in->bytes ? 0 : ~(((UINT64_C(1) << 8 * at->bytes) - 1) << at->shift);
	sim_register_write(sim_at(w, in->d), in->wide[0], i, old << at->shift);
	sim_shadow_write(w, in->d, in->wide[0], i, undefined ? UINT64_MAX : beside);
}

static bool lane(sim_warp *w, const sim_instr *in, unsigned i, unsigned k, const place *where)
{
	uint8_t *shadow;
	const sim_space space = (sim_space)in->space;
	uint8_t *at = sim_memory(w, in, i, space, where->address, where->bytes, true, &shadow);
	if (!at) return false;
	bool overwrites = in->mode == ATOMIC_EXCHANGE, undefined = false;
	for (unsigned b = 0; b < where->bytes; b++) undefined = undefined || shadow[b];
	if (undefined && !overwrites) {
		const sim_spot spot = sim_spot_at(w, in, space, where->address, where->bytes, sim_kind_name(false));
		return sim_report_at(w, in, i, &spot,
			"fill the buffer, or store to it first: an atomic starts from what is there",
			"an atomic works on memory that nothing has written");
	}
	if ((w->bad[in->regs[k]] >> i & 1) || (in->mode == ATOMIC_CAS && (w->bad[in->c] >> i & 1))) {
		const sim_spot spot = sim_spot_at(w, in, space, where->address, where->bytes, sim_kind_name(true));
		if (!sim_cause_of(w, in->regs[k], i)) sim_cause_of(w, in->c, i);
		return sim_report_undefined(w, in, i, &spot, NULL, "an undefined value is the operand of an atomic");
	}
	uint8_t *places[SIM_LANES];
	places[i] = at;
	if (!sim_races(w, in, UINT32_C(1) << i, places, where->bytes, true, true)) return false;
	uint64_t v = sim_register_read(sim_at(w, in->regs[k]), in->wide[0], i) >> where->shift;
	uint64_t other = in->mode == ATOMIC_CAS ? sim_register_read(sim_at(w, in->c), in->wide[0], i) : 0;
	uint64_t old = sim_atomic_swap(in, where->bytes, at, v, other, sim_is_global(in, where->address));
	if (undefined) memset(shadow, 0, where->bytes);
	if (in->d != UINT32_MAX) result(w, in, i, where, old, undefined);
	return true;
}

bool sim_step_fence(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	sim_order_programs(w, mask, (sim_scope)in->scope, true, true);
	return true;
}

bool sim_step_atomic(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	uint64_t address[SIM_LANES], own[SIM_LANES];
	if (!sim_addresses(w, in, in->a, in->wide[1], in->offset, mask, address)) return false;
	if (in->part && !sim_addresses(w, in, in->extra, 8, 0, mask, own)) return false;
	if (w->program->launch->counts) w->program->counters.atomic_lanes += (uint64_t)__builtin_popcount(mask);
	unsigned first = (unsigned)__builtin_ctz(mask);
	const uint32_t all = mask;
	sim_order_programs(w, all, (sim_scope)in->scope, false, in->releases);
	for (; mask; mask &= mask - 1) {
		unsigned i = (unsigned)__builtin_ctz(mask);
		for (unsigned k = 0; k < in->nregs; k++) {
			place where = {address[i] + k * in->bytes, in->bytes, 0};
			if (in->part) where = element(w, in, i, address[i], own[i]);
			if (!lane(w, in, i, k, &where)) return false;
		}
	}
	sim_order_programs(w, all, (sim_scope)in->scope, in->acquires, false);
	if (in->d == UINT32_MAX) return true;
	return sim_looks_around(w, in, address[first], sim_register_read(sim_at(w, in->d), in->wide[0], first));
}
