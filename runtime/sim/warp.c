/* The loop that runs a warp.
 *
 * The lanes that run together are a level: a mask, a place in the code, and the place where they meet the levels below
 * it on the warp's stack.  A branch whose lanes disagree leaves behind a level for where the paths meet and one for the
 * other path; a level that reaches its meeting place, or loses its last lane, makes way for the one below.
 *
 * Registers that are not all defined are rare, so the fast road only looks whether a register's word of such lanes is
 * 0; shadow.c does the rest. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

/* ---- Levels ---- */

static void next_level(sim_warp *w)
{
	while (w->depth) {
		const sim_level *l = &w->stack[--w->depth];
		if (!(l->mask & w->alive)) continue;
		w->active = l->mask & w->alive;
		w->pc = l->pc;
		w->join = l->join;
		return;
	}
	w->active = 0;
	w->state = WARP_ENDED;
}

static bool push(sim_warp *w, uint32_t mask, int32_t pc, int32_t join)
{
	assert(mask && !(mask & ~w->active) && pc >= 0);
	if (w->depth == w->room) {
		uint32_t room = w->room ? 2 * w->room : 16;
		sim_level *more = realloc(w->stack, room * sizeof *more);
		if (!more) return sim_out_of_memory(w->program->launch);
		w->stack = more;
		w->room = room;
	}
	w->stack[w->depth++] = (sim_level){mask, pc, join};
	return true;
}

void sim_warp_exit(sim_warp *w, uint32_t lanes)
{
	assert(lanes && !(lanes & ~w->active));
	w->alive &= ~lanes;
	w->active &= ~lanes;
	if (!w->active) next_level(w);
}

void sim_warp_yield(sim_warp *w)
{
	if (!w->depth) return;
	sim_level *l = &w->stack[w->depth - 1];
	if (l->join != w->join || l->pc == l->join || !(l->mask & w->alive)) return;
	assert(!(l->mask & w->active)); /* the other path of a branch */
	const sim_level mine = {w->active, w->pc, w->join};
	w->active = l->mask & w->alive;
	w->pc = l->pc;
	*l = mine;
}

static void branch(sim_warp *w, const sim_instr *in, uint32_t taken)
{
	assert(taken && !(taken & ~w->active) && in->target >= 0 && (size_t)in->target <= w->program->code->n);
	uint32_t other = w->active & ~taken;
	int32_t next = w->pc + 1;
	if (!other) {
		w->pc = in->target;
		return;
	}
	if (in->join != SIM_NO_PC && in->join != w->join && !push(w, w->active, in->join, w->join)) return;
	if (next != in->join && !push(w, other, next, in->join)) return;
	w->active = taken;
	w->pc = in->target;
	w->join = in->join;
}

/* Every place the lanes go to becomes a level; those whose guard is false go on behind it. */
static bool spread(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	const int32_t *to = w->program->code->targets + in->target;
	const uint8_t *index = sim_at(w, in->a);
	uint32_t left = mask, first = 0;
	int32_t next = w->pc + 1, at = next;
	assert((size_t)in->target + in->ntargets <= w->program->code->ntargets);
	if (w->bad[in->a] & mask) {
		unsigned i = (unsigned)__builtin_ctz(w->bad[in->a] & mask);
		sim_cause_of(w, in->a, i);
		return sim_report_undefined(w, in, i, NULL,
			"the index depends on memory or a register that nothing has written",
			"a branch is decided by an undefined value");
	}
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		uint64_t v = sim_register_read(index, 4, i);
		if (v >= in->ntargets)
			return sim_report(w, in, i, NULL, "a branch by index %llu into a list of %u targets",
				(unsigned long long)v, in->ntargets);
	}
	while (left) {
		uint32_t same = 0;
		int32_t target = to[sim_register_read(index, 4, (unsigned)__builtin_ctz(left))];
		for (uint32_t m = left; m; m &= m - 1) {
			unsigned i = (unsigned)__builtin_ctz(m);
			if (to[sim_register_read(index, 4, i)] == target) same |= UINT32_C(1) << i;
		}
		left &= ~same;
		if (!first) { /* these go first; what waits for them lies below the others */
			first = same;
			at = target;
			uint32_t other = w->active & ~mask;
			if (first == w->active) break;
			if (in->join != SIM_NO_PC && in->join != w->join && !push(w, w->active, in->join, w->join))
				return false;
			if (other && next != in->join && !push(w, other, next, in->join)) return false;
		} else if (target != in->join && !push(w, same, target, in->join))
			return false;
	}
	if (first != w->active) w->join = in->join;
	w->active = first;
	w->pc = at;
	return true;
}

/* ---- Lanes that take part ---- */

void sim_write_lanes(uint8_t *to, const uint8_t *from, uint8_t bytes, uint32_t mask)
{
	for (; mask; mask &= mask - 1) {
		unsigned i = (unsigned)__builtin_ctz(mask);
		sim_register_write(to, bytes, i, sim_register_read(from, bytes, i));
	}
}

static inline void arithmetic(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	assert(in->d != 0); /* unit 0 stays 0 */
	uint8_t *d = sim_at(w, in->d);
	const uint8_t *const operands[3] = {sim_at(w, in->a), sim_at(w, in->b), sim_at(w, in->c)};
	uint32_t bad = (w->bad[in->a] | w->bad[in->b] | w->bad[in->c]) & mask;
	if (__builtin_expect(bad != 0, 0)) {
		in->lanes(in, w->scratch, operands[0], operands[1], operands[2]);
		sim_shadow_result(w, in, mask, operands);
		sim_write_lanes(d, w->scratch, in->wide[0], mask);
	} else if (mask == SIM_ALL) {
		in->lanes(in, d, operands[0], operands[1], operands[2]);
		w->bad[in->d] = 0;
	} else {
		in->lanes(in, w->scratch, operands[0], operands[1], operands[2]);
		sim_write_lanes(d, w->scratch, in->wide[0], mask);
		w->bad[in->d] &= ~mask;
	}
}

enum { LOGIC_NONE, LOGIC_AND, LOGIC_OR, LOGIC_XOR, LOGIC_NOT, LOGIC_MOVE }; /* ORDER decode.c */

typedef struct truth {
	uint32_t value, bad;
} truth;

static truth combine(uint8_t logic, truth a, truth b)
{
	assert(logic <= LOGIC_MOVE);
	switch (logic) {
	case LOGIC_AND: return (truth){a.value & b.value, (a.bad & b.bad) | (a.bad & b.value) | (b.bad & a.value)};
	case LOGIC_OR: return (truth){a.value | b.value, (a.bad & b.bad) | (a.bad & ~b.value) | (b.bad & ~a.value)};
	case LOGIC_XOR: return (truth){a.value ^ b.value, a.bad | b.bad};
	case LOGIC_NOT: return (truth){~a.value, a.bad};
	default: return a;
	}
}

static inline truth predicate(const sim_warp *w, uint32_t p, bool negated)
{
	return (truth){w->predicate[p] ^ (negated ? SIM_ALL : 0), w->predicate_bad[p]};
}

static void compare_causes(const sim_warp *w, const sim_instr *in, uint32_t mask)
{
	for (; mask; mask &= mask - 1) {
		unsigned i = (unsigned)__builtin_ctz(mask);
		sim_cause_none(w);
		if (!sim_cause_of(w, in->a, i) && !sim_cause_of(w, in->b, i) && in->mode)
			sim_cause_of_predicate(w, in->c, UINT32_C(1) << i);
		sim_cause_to_predicate(w, in->d, i);
		sim_cause_to_predicate(w, in->e, i);
	}
}

static inline void compare(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	truth t = {in->compare(sim_at(w, in->a), sim_at(w, in->b)), w->bad[in->a] | w->bad[in->b]}, u = t;
	u.value = ~u.value;
	if (in->mode) {
		truth c = predicate(w, in->c, in->exchanges);
		t = combine(in->mode, t, c);
		u = combine(in->mode, u, c);
	}
	if (in->d) sim_write_predicate(w, in->d, mask, t.value, t.bad);
	if (in->e) sim_write_predicate(w, in->e, mask, u.value, u.bad);
	if (__builtin_expect(w->causes != NULL, 0)) compare_causes(w, in, mask & (t.bad | u.bad));
}

static void choose_shadow(sim_warp *w, const sim_instr *in, uint32_t mask, uint32_t p)
{
	uint8_t bytes = in->wide[0];
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		uint64_t undefined = sim_shadow_read(w, p >> i & 1 ? in->a : in->b, bytes, i);
		if (w->predicate_bad[in->c] >> i & 1) {
			undefined = UINT64_MAX;
			sim_cause_of_predicate(w, in->c, UINT32_C(1) << i);
		}
		sim_shadow_write(w, in->d, bytes, i, undefined);
	}
}

#define SELECT(T)                                                                                                      \
	for (unsigned i = 0; i < SIM_LANES; i++) ((T *)d)[i] = p >> i & 1 ? ((const T *)a)[i] : ((const T *)b)[i]

static inline void choose(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	assert(in->wide[0] == 2 || in->wide[0] == 4 || in->wide[0] == 8);
	uint32_t p = w->predicate[in->c];
	uint8_t *d = mask == SIM_ALL ? sim_at(w, in->d) : w->scratch;
	const uint8_t *a = sim_at(w, in->a), *b = sim_at(w, in->b);
	bool bad = ((w->bad[in->a] | w->bad[in->b] | w->predicate_bad[in->c]) & mask) != 0;
	if (__builtin_expect(bad, 0)) choose_shadow(w, in, mask, p);
	if (in->wide[0] == 4)
		SELECT(uint32_t);
	else if (in->wide[0] == 8)
		SELECT(uint64_t);
	else
		SELECT(uint16_t);
	if (mask != SIM_ALL) sim_write_lanes(sim_at(w, in->d), d, in->wide[0], mask);
	if (!bad) w->bad[in->d] &= ~mask;
}

/* ---- Steps on registers ---- */

bool sim_step_logic(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	truth t = combine(in->mode, predicate(w, in->a, in->exchanges), predicate(w, in->b, in->saturates));
	uint32_t both = w->predicate_bad[in->a] | w->predicate_bad[in->b];
	const uint32_t from[2] = {w->predicate_bad[in->a], both};
	for (uint32_t m = w->causes ? mask & t.bad : 0; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		sim_cause_none(w);
		sim_cause_of_predicate(w, from[0] >> i & 1 ? in->a : in->b, UINT32_C(1) << i);
		sim_cause_to_predicate(w, in->d, i);
	}
	sim_write_predicate(w, in->d, mask, t.value, t.bad);
	return true;
}

bool sim_step_pack(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	assert(in->nregs * in->bytes == in->wide[0]);
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		uint64_t v = 0, undefined = 0;
		for (unsigned k = 0; k < in->nregs; k++) {
			v |= sim_register_read(sim_at(w, in->regs[k]), in->bytes, i) << 8 * in->bytes * k;
			undefined |= sim_shadow_read(w, in->regs[k], in->bytes, i) << 8 * in->bytes * k;
		}
		sim_register_write(sim_at(w, in->d), in->wide[0], i, v);
		sim_shadow_write(w, in->d, in->wide[0], i, undefined);
	}
	return true;
}

bool sim_step_unpack(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	assert(in->nregs * in->bytes == in->wide[0]);
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		uint64_t v = sim_register_read(sim_at(w, in->a), in->wide[0], i);
		uint64_t undefined = sim_shadow_read(w, in->a, in->wide[0], i);
		for (unsigned k = 0; k < in->nregs; k++) {
			if (in->regs[k] == UINT32_MAX) continue;
			sim_register_write(sim_at(w, in->regs[k]), in->bytes, i, v >> 8 * in->bytes * k);
			sim_shadow_write(w, in->regs[k], in->bytes, i, undefined >> 8 * in->bytes * k);
		}
	}
	return true;
}

/* ---- The loop ---- */

static void undefined_guard(sim_warp *w, const sim_instr *in)
{
	unsigned lane = (unsigned)__builtin_ctz(w->predicate_bad[in->guard] & w->active);
	sim_cause_of_predicate(w, in->guard, UINT32_C(1) << lane);
	sim_report_undefined(w, in, lane, NULL,
		"the condition depends on memory or a register that nothing has written",
		in->kind == SIM_BRANCH || in->kind == SIM_SWITCH
			? "a branch is decided by an undefined value"
			: "what a thread does is decided by an undefined value");
}

static void count(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	blk_sim_counters *c = &w->program->counters;
	if (in->kind == SIM_STEP && in->step == sim_step_check) return; /* none of a GPU's */
	c->instructions[in->class]++;
	c->lanes += (uint64_t)__builtin_popcount(mask);
	sim_hits *h = sim_hits_of(w->program, in);
	h->instructions++;
	h->lanes += (uint64_t)__builtin_popcount(mask);
}

void sim_warp_run(sim_warp *w, uint64_t budget)
{
	const sim_code *c = w->program->code;
	const bool counts = w->program->launch->counts;
	uint64_t left = budget;
	for (; left && w->state == WARP_READY; left--) {
		assert(w->pc >= 0 && w->active && !(w->active & ~w->alive));
		if (__builtin_expect((size_t)w->pc >= c->n, 0)) {
			sim_warp_exit(w, w->active);
			continue;
		}
		const sim_instr *in = &c->code[w->pc];
		if (in->joins && w->pc == w->join) {
			next_level(w);
			continue;
		}
		uint32_t mask = w->active;
		sim_cause_none(w);
		if (in->guard) {
			if (w->predicate_bad[in->guard] & mask) {
				undefined_guard(w, in);
				break;
			}
			mask &= w->predicate[in->guard] ^ (in->guard_negated ? SIM_ALL : 0);
			if (!mask) {
				w->pc++;
				continue;
			}
		}
		if (__builtin_expect(counts, 0)) count(w, in, mask);
		if (__builtin_expect(w->watch, 0) && !sim_registers_free(w, in, mask)) break;
		switch ((sim_kind)in->kind) {
		case SIM_ALU: arithmetic(w, in, mask); break;
		case SIM_COMPARE: compare(w, in, mask); break;
		case SIM_SELECT: choose(w, in, mask); break;
		case SIM_BRANCH: branch(w, in, mask); continue;
		case SIM_SWITCH:
			if (!spread(w, in, mask)) {
				w->steps += budget - left + 1;
				return;
			}
			continue;
		case SIM_STEP:
			w->pc++;
			if (!in->step(w, in, mask)) {
				w->steps += budget - left + 1;
				return;
			}
			continue;
		}
		w->pc++;
	}
	w->steps += budget - left;
}
