/* Undefined bits.  Every bit of a register or of memory is defined or not; what an instruction makes of undefined ones
 * is its row's rule.  A defined result is never called undefined by a rule that moves bits or combines them one by one;
 * arithmetic spreads an undefined bit to where a carry could take it, anything else to the whole result.
 *
 * A register's lanes with undefined bits are one word (`bad`).  The bits themselves lie in a second register file, but
 * not for lanes that were never written since the program began (`blank`): all of theirs are undefined. */
#include "sim.h"

#include <string.h>

static uint64_t ones(uint8_t bytes)
{
	assert(bytes != 0);
	return bytes >= 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1;
}

uint64_t sim_shadow_read(const sim_warp *w, uint32_t unit, uint8_t bytes, unsigned lane)
{
	if (!(w->bad[unit] >> lane & 1)) return 0;
	if (w->blank[unit] >> lane & 1) {
		sim_cause_none(w);
		return ones(bytes);
	}
	sim_cause_take(w, unit, lane);
	return sim_register_read(w->shadow + (size_t)unit * SIM_UNIT, bytes, lane);
}

void sim_shadow_write(sim_warp *w, uint32_t unit, uint8_t bytes, unsigned lane, uint64_t undefined)
{
	assert(unit != 0 && unit < w->program->code->units);
	uint32_t bit = UINT32_C(1) << lane;
	undefined &= ones(bytes);
	if (!undefined) {
		w->bad[unit] &= ~bit;
		return;
	}
	w->bad[unit] |= bit;
	w->blank[unit] &= ~bit;
	sim_cause_give(w, unit, lane);
	sim_register_write(w->shadow + (size_t)unit * SIM_UNIT, bytes, lane, undefined);
}

/* From the lowest undefined bit on. */
static uint64_t carried(uint64_t undefined)
{
	return undefined ? ~((undefined & (0 - undefined)) - 1) : 0;
}

/* The bits of operands that the operation moves, moved by the operation itself. */
static void move(sim_warp *w, const sim_instr *in, const uint8_t *const operands[3], uint64_t undefined[SIM_LANES])
{
	uint8_t moved[2][8 * SIM_LANES], out[8 * SIM_LANES];
	const uint32_t units[2] = {in->a, in->b};
	unsigned n = in->shadow == SHADOW_MOVE2 ? 2 : 1;
	for (unsigned k = 0; k < n; k++)
		for (unsigned i = 0; i < SIM_LANES; i++)
			sim_register_write(
				moved[k], in->wide[k + 1], i, sim_shadow_read(w, units[k], in->wide[k + 1], i));
	in->lanes(in, out, moved[0], n == 2 ? moved[1] : operands[1], operands[2]);
	for (unsigned i = 0; i < SIM_LANES; i++) {
		bool how = (n == 1 && w->bad[in->b] >> i & 1) || w->bad[in->c] >> i & 1; /* where to is undefined */
		undefined[i] = how ? UINT64_MAX : sim_register_read(out, in->wide[0], i);
	}
}

static uint64_t half_of(uint64_t undefined, unsigned bits, unsigned k)
{
	return undefined >> bits * k & ((UINT64_C(1) << bits) - 1);
}

/* Each half of a result of two numbers: from the same half of the operands or, of a conversion of two f32, from one. */
static uint64_t pair(const sim_instr *in, uint64_t a, uint64_t b, uint64_t c)
{
	unsigned bits = 4u * in->wide[0], from = in->op ? bits : scalar_bits((scalar)in->from);
	bool two = !in->op && in->from == SCALAR_F32;
	uint64_t r = 0;
	for (unsigned k = 0; k < 2; k++) {
		bool bad =
			two ? (k ? a : b) != 0 : (half_of(a, from, k) | half_of(b, from, k) | half_of(c, from, k)) != 0;
		if (bad) r |= ((UINT64_C(1) << bits) - 1) << bits * k;
	}
	return r;
}

/* That of the first operand which is undefined. */
static void first_cause(const sim_warp *w, const sim_instr *in, unsigned lane)
{
	if (!sim_cause_of(w, in->a, lane) && !sim_cause_of(w, in->b, lane)) sim_cause_of(w, in->c, lane);
}

void sim_shadow_result(sim_warp *w, const sim_instr *in, uint32_t mask, const uint8_t *const operands[3])
{
	uint64_t undefined[SIM_LANES];
	uint32_t bad = w->bad[in->a] | w->bad[in->b] | w->bad[in->c];
	if (in->shadow == SHADOW_MOVE || in->shadow == SHADOW_MOVE2) {
		move(w, in, operands, undefined);
	} else {
		for (unsigned i = 0; i < SIM_LANES; i++) {
			if (!(bad >> i & 1)) {
				undefined[i] = 0;
				continue;
			}
			uint64_t a = in->wide[1] ? sim_shadow_read(w, in->a, in->wide[1], i) : 0;
			uint64_t b = in->wide[2] ? sim_shadow_read(w, in->b, in->wide[2], i) : 0;
			uint64_t c = in->wide[3] ? sim_shadow_read(w, in->c, in->wide[3], i) : 0;
			uint64_t x = in->wide[1] ? sim_register_read(operands[0], in->wide[1], i) : 0;
			uint64_t y = in->wide[2] ? sim_register_read(operands[1], in->wide[2], i) : 0;
			switch ((sim_shadow)in->shadow) {
			case SHADOW_PAIR: undefined[i] = pair(in, a, b, c); break;
			case SHADOW_BITS: undefined[i] = a | b | c; break;
			case SHADOW_CARRY: undefined[i] = carried(a | b | c); break;
			case SHADOW_AND: undefined[i] = (a & b) | (a & y) | (b & x); break;
			case SHADOW_OR: undefined[i] = (a & b) | (a & ~y) | (b & ~x); break;
			default: undefined[i] = UINT64_MAX; break;
			}
		}
	}
	for (; mask; mask &= mask - 1) {
		unsigned i = (unsigned)__builtin_ctz(mask);
		if (w->causes && undefined[i]) first_cause(w, in, i);
		sim_shadow_write(w, in->d, in->wide[0], i, undefined[i]);
	}
}
