/* Loads and stores: each lane's address, where that is, and its registers. */
#include "access.h"

#include <string.h>

bool sim_addresses(sim_warp *w, const sim_instr *in, uint32_t unit, uint8_t wide, int64_t offset, uint32_t mask,
	uint64_t out[SIM_LANES])
{
	assert(wide == 0 || wide == 4 || wide == 8);
	const uint8_t *base = sim_at(w, unit);
	if (wide && (w->bad[unit] & mask)) {
		unsigned i = (unsigned)__builtin_ctz(w->bad[unit] & mask);
		sim_cause_of(w, unit, i);
		return sim_report_undefined(w, in, i, NULL,
			"the index comes from memory or a register that nothing has written",
			"an address is undefined");
	}
	for (int i = 0; i < SIM_LANES; i++)
		out[i] = wide == 8   ? ((const uint64_t *)base)[i] + (uint64_t)offset
			 : wide == 4 ? (uint32_t)(((const uint32_t *)base)[i] + (uint32_t)offset)
				     : (uint64_t)offset;
	return true;
}

static inline uint64_t read_bytes(const uint8_t *at, unsigned bytes)
{
	assert(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
	uint64_t v = 0;
	switch (bytes) {
	case 1: return *at;
	case 2: memcpy(&v, at, 2); return v;
	case 4: memcpy(&v, at, 4); return v;
	default: memcpy(&v, at, 8); return v;
	}
}
static inline void write_bytes(uint8_t *at, unsigned bytes, uint64_t v)
{
	assert(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
	switch (bytes) {
	case 1: *at = (uint8_t)v; break;
	case 2: memcpy(at, &v, 2); break;
	case 4: memcpy(at, &v, 4); break;
	default: memcpy(at, &v, 8); break;
	}
}

/* The memory of every lane that takes part, all checked before anything is read or written. */
static bool places(sim_warp *w, const sim_instr *in, uint32_t mask, bool writes, uint8_t *at[SIM_LANES],
	uint8_t *shadow[SIM_LANES], uint64_t address[SIM_LANES])
{
	assert(in->nregs && in->nregs <= SIM_VECTOR);
	unsigned bytes = (unsigned)in->bytes * in->nregs;
	if (!sim_addresses(w, in, in->a, in->wide[1], in->offset, mask, address)) return false;
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		at[i] = sim_memory(w, in, i, (sim_space)in->space, address[i], bytes, writes, &shadow[i]);
		if (!at[i]) return false;
	}
	sim_order_programs(w, mask, (sim_scope)in->scope, false, in->releases);
	if (w->program->launch->counts) sim_count_access(w, in, mask, address, writes);
	if (!sim_races(w, in, mask, at, bytes, writes, in->is_volatile)) return false;
	sim_order_programs(w, mask, (sim_scope)in->scope, in->acquires, false);
	return true;
}

bool sim_step_load(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	uint8_t *at[SIM_LANES], *shadow[SIM_LANES];
	uint64_t address[SIM_LANES];
	if (!places(w, in, mask, false, at, shadow, address)) return false;
	bool extend = !scalar_is_float((scalar)in->to) && scalar_is_signed((scalar)in->to) && in->wide[0] > in->bytes;
	for (unsigned k = 0; k < in->nregs; k++) {
		uint32_t unit = in->regs[k];
		if (unit == UINT32_MAX) continue;
		uint8_t *to = sim_at(w, unit);
		unsigned offset = k * in->bytes;
		sim_set_defined(w, unit, mask);
		for (uint32_t m = mask; m; m &= m - 1) {
			unsigned i = (unsigned)__builtin_ctz(m);
			uint64_t v = read_bytes(at[i] + offset, in->bytes),
				 undefined = read_bytes(shadow[i] + offset, in->bytes);
			if (extend) v = (uint64_t)scalar_sign_extend((scalar)in->to, v);
			sim_register_write(to, in->wide[0], i, v);
			if (__builtin_expect(undefined != 0, 0)) {
				sim_cause_load(w, shadow[i] + offset, in->bytes);
				sim_shadow_write(w, unit, in->wide[0], i,
					extend ? (uint64_t)scalar_sign_extend((scalar)in->to, undefined) : undefined);
			}
		}
	}
	if (!in->is_volatile || in->regs[0] == UINT32_MAX) return true;
	unsigned first = (unsigned)__builtin_ctz(mask);
	return sim_looks_around(w, in, address[first], sim_register_read(sim_at(w, in->regs[0]), in->wide[0], first));
}

/* A parameter whose address was moved about, or parts of one: LLVM loads one of two by a select of where they are, and
 * of a u64 what is wanted as halves. */
bool sim_step_load_parameter(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	const sim_launch *l = w->program->launch;
	uint64_t address[SIM_LANES], first = (uint64_t)(uintptr_t)l->arguments;
	bool extend = !scalar_is_float((scalar)in->to) && scalar_is_signed((scalar)in->to) && in->wide[0] > in->bytes;
	if (!sim_addresses(w, in, in->a, in->wide[1], in->offset, mask, address)) return false;
	for (unsigned k = 0; k < in->nregs; k++)
		if (in->regs[k] != UINT32_MAX) sim_set_defined(w, in->regs[k], mask);
	for (; mask; mask &= mask - 1) {
		unsigned i = (unsigned)__builtin_ctz(mask);
		uint64_t at = address[i] - first;
		if (at >= 8 * (uint64_t)l->nparameters || at % 8 + (uint64_t)in->bytes * in->nregs > 8)
			return sim_report(w, in, i, NULL, "a parameter is loaded from where none is");
		for (unsigned k = 0; k < in->nregs; k++) {
			if (in->regs[k] == UINT32_MAX) continue;
			uint64_t v = read_bytes((const uint8_t *)l->arguments + at + k * in->bytes, in->bytes);
			if (extend) v = (uint64_t)scalar_sign_extend((scalar)in->to, v);
			sim_register_write(sim_at(w, in->regs[k]), in->wide[0], i, v);
		}
	}
	return true;
}

bool sim_step_store(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	uint8_t *at[SIM_LANES], *shadow[SIM_LANES];
	uint64_t address[SIM_LANES];
	if (!places(w, in, mask, true, at, shadow, address)) return false;
	for (unsigned k = 0; k < in->nregs; k++) {
		uint32_t unit = in->regs[k];
		const uint8_t *from = sim_at(w, unit);
		unsigned offset = k * in->bytes;
		uint64_t some = in->bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * in->bytes) - 1;
		uint32_t bad = w->bad[unit];
		for (uint32_t m = mask; m; m &= m - 1) {
			unsigned i = (unsigned)__builtin_ctz(m);
			uint64_t undefined = bad >> i & 1 ? sim_shadow_read(w, unit, in->wide[0], i) & some : 0;
			if (undefined && sim_is_global(in, address[i])) {
				const sim_spot spot = sim_spot_at(w, in, (sim_space)in->space, address[i] + offset,
					in->bytes, sim_kind_name(true));
				return sim_report_undefined(w, in, i, &spot,
					"a register or an element that nothing has written, or a buffer that the host "
					"has not filled",
					"an undefined value is stored");
			}
			write_bytes(at[i] + offset, in->bytes, sim_register_read(from, in->wide[0], i));
			if (__builtin_expect(undefined != 0, 0)) sim_cause_store(w, shadow[i] + offset, in->bytes);
			if (undefined || read_bytes(shadow[i] + offset, in->bytes))
				write_bytes(shadow[i] + offset, in->bytes, undefined);
		}
	}
	return true;
}
