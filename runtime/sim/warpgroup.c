/* wgmma: four warps hand a product to their matrix engine and go on; what they handed over is not theirs until they
 * have waited.
 *
 * The product is computed when the last of the four has come to it.  Until a warp's wait covers it, a touch of its
 * sums, or a write to its factors in registers, is reported; so is, until all four have waited, a write to the shared
 * memory that it reads.  In front of it stands wgmma.fence, behind the last touch of its registers.  Fences, commits
 * and waits are each warp's, but all four come to the same ones: none may stand under one warp's condition. */
#include "warpgroup.h"

#include <stdlib.h>
#include <string.h>

static bool whole_warp(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	if (mask == SIM_ALL) return true;
	return sim_report(w, in, (unsigned)__builtin_ctz(mask),
		"the instruction stands where only some lanes of the warp come",
		"a wgmma instruction is reached by some lanes of a warp only: 0x%08x", mask);
}

/* ---- Registers ---- */

typedef struct touches { /* of the instruction that is looked at */
	sim_warp *w;
	const sim_instr *in;
	unsigned lane;
} touches;

static bool touch(const touches *t, uint32_t unit, bool writes)
{
	sim_warp *w = t->w;
	if (unit == UINT32_MAX) return true;
	assert(unit < w->program->code->units);
	uint8_t is = w->program->code->matrix_units[unit];
	if (!is || (!(is & SIM_IS_SUM) && !writes)) return true;
	bool sum = w->flying[0][unit] != 0;
	if (sum || (writes && w->flying[1][unit]))
		return sim_report(w, t->in, t->lane, "wgmma.wait_group comes first",
			"a register is %s that %s of a wgmma that has not been waited for", writes ? "written" : "read",
			sum ? "holds the sum" : "holds a factor");
	w->touched[unit] = w->fences;
	return true;
}

static bool all(const touches *t, uint32_t from, uint32_t to, bool writes)
{
	for (uint32_t i = from; i < to; i++)
		if (!touch(t, t->in->regs[i], writes)) return false;
	return true;
}

bool sim_registers_free(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	const touches t = {w, in, (unsigned)__builtin_ctz(mask)};
	switch ((sim_kind)in->kind) {
	case SIM_ALU:
		return touch(&t, in->a, false) && touch(&t, in->b, false) && touch(&t, in->c, false) &&
		       touch(&t, in->d, true);
	case SIM_COMPARE: return touch(&t, in->a, false) && touch(&t, in->b, false);
	case SIM_SELECT: return touch(&t, in->a, false) && touch(&t, in->b, false) && touch(&t, in->d, true);
	case SIM_SWITCH: return touch(&t, in->a, false);
	case SIM_BRANCH: return true;
	case SIM_STEP: break;
	}
	if (in->step == sim_step_load || in->step == sim_step_load_matrix) return all(&t, 0, in->nregs, true);
	if (in->step == sim_step_store || in->step == sim_step_store_matrix) return all(&t, 0, in->nregs, false);
	if (in->step == sim_step_unpack) return touch(&t, in->a, false) && all(&t, 0, in->nregs, true);
	if (in->step == sim_step_pack) return all(&t, 0, in->nregs, false) && touch(&t, in->d, true);
	if (in->step == sim_step_atomic) return all(&t, 0, in->nregs, false) && touch(&t, in->d, true);
	if (in->step == sim_step_shuffle || in->step == sim_step_redux)
		return touch(&t, in->a, false) && touch(&t, in->d, true);
	if (in->step == sim_step_multiply)
		return all(&t, 4, 4u + in->mode, false) && all(&t, 8, 8u + in->bytes, false) &&
		       all(&t, 12, 12u + in->nregs, false) && all(&t, 0, in->nregs, true);
	return true;
}

/* A product's own registers: fenced, and not in another's hands. */
static bool registers_ready(sim_warp *w, const sim_instr *in, const sim_product *m)
{
	static const char *const hint =
		"wgmma.fence stands behind whatever touches its registers, in front of the first wgmma";
	if (!w->fences) return sim_report(w, in, 0, hint, "a wgmma comes before any wgmma.fence");
	for (uint32_t i = 0; i < m->nunits + 4u * m->a_in_registers; i++) {
		bool factor = i >= m->nunits;
		uint32_t unit = factor ? in->regs[i - m->nunits] : m->units[i];
		if (w->flying[!factor][unit])
			return sim_report(w, in, 0, "wgmma.wait_group comes first",
				"a register is a factor of one wgmma and the sum of another, and none has been waited "
				"for");
		if (!w->flying[factor][unit] && w->touched[unit] == w->fences)
			return sim_report(w, in, 0, hint,
				"a register of a wgmma was touched since the last wgmma.fence: %s %u",
				factor ? "factor" : "sum", factor ? i - m->nunits : i);
	}
	return true;
}

static bool take_registers(sim_warp *w, const sim_instr *in, const sim_product *m, uint32_t ticket)
{
	if (w->nflights == w->flights_room) {
		uint32_t room = w->flights_room ? 2 * w->flights_room : 16;
		sim_flight *more = realloc(w->flights, room * sizeof *more);
		if (!more) return sim_out_of_memory(w->program->launch);
		w->flights = more;
		w->flights_room = room;
	}
	if (w->nflights >= UINT16_MAX - 4u)
		return sim_report(
			w, in, 0, "wgmma.commit_group and wgmma.wait_group end them", "65531 wgmmas are under way");
	w->flights[w->nflights++] = (sim_flight){in, w->product_group, ticket};
	for (uint32_t i = 0; i < m->nunits; i++) w->flying[0][m->units[i]]++;
	for (uint32_t i = 0; m->a_in_registers && i < 4; i++) w->flying[1][in->regs[i]]++;
	return true;
}

/* ---- Shared memory ---- */

/* Calls for the pieces of an operand: their offsets in shared memory. False: outside, which has been reported. */
static bool find_pieces(sim_warp *w, const sim_instr *in, const sim_tile *t, const char *which, uint32_t *offsets)
{
	sim_program *p = w->program;
	for (uint32_t i = 0; i < 2 * t->rows; i++) {
		uint64_t a = sim_tile_piece(t, i);
		const sim_spot spot = sim_spot_shared(p, a - SIM_SHARED_BASE, 16, sim_kind_name(false));
		if (a < SIM_SHARED_BASE || a + 16 > SIM_SHARED_BASE + p->shared_bytes)
			return sim_report_at(w, in, 0, &spot,
				"the descriptor's start, its two distances and its swizzle must be those of the tile; "
				"in a "
				"cluster the address has the program's rank above bit 23",
				"%s of a wgmma reads 16 bytes outside shared memory, of which the program has %llu "
				"bytes: at "
				"offset %lld (start %llu, leading %u, stride %u, swizzle %u)",
				which, (unsigned long long)p->shared_bytes, (long long)spot.offset,
				(unsigned long long)t->start, t->leading, t->stride, t->swizzle);
		offsets[i] = (uint32_t)(a - SIM_SHARED_BASE);
		for (uint32_t k = 0; p->npending && k < 4; k++)
			if (p->pending[offsets[i] / 4 + k])
				return sim_report_at(w, in, 0, &spot,
					"the copy must be waited for first: its mbarrier's phase, or its group",
					"%s of a wgmma is read from shared memory at offset %u while a copy into it is "
					"under way, "
					"or an mbarrier is there",
					which, offsets[i]);
	}
	return true;
}

static bool read_operand(sim_warp *leader, const sim_instr *in, const sim_product *m, sim_operands *o,
	uint64_t descriptor, bool of_a, uint32_t ticket)
{
	sim_program *p = leader->program;
	uint32_t offsets[PRODUCT_PIECES];
	const sim_tile t =
		sim_tile_of(descriptor, of_a ? PRODUCT_M : m->n, m->k, of_a ? m->transposes_a : m->transposes_b);
	if (!find_pieces(leader, in, &t, of_a ? "a" : "b", offsets) ||
		!sim_races_product(leader, in, offsets, 2 * t.rows, ticket))
		return false;
	for (uint32_t i = 0; i < 2 * t.rows; i++) {
		sim_product_piece(m, o, &t, of_a, i, p->shared + offsets[i], p->shared_shadow + offsets[i]);
		p->reading[offsets[i] / 16]++;
	}
	p->nreading += 2 * t.rows;
	return true;
}

static void let_go(sim_program *p, const sim_product *m, uint64_t descriptor, bool of_a)
{
	const sim_tile t =
		sim_tile_of(descriptor, of_a ? PRODUCT_M : m->n, m->k, of_a ? m->transposes_a : m->transposes_b);
	assert(p->nreading >= 2 * t.rows);
	for (uint32_t i = 0; i < 2 * t.rows; i++) p->reading[(sim_tile_piece(&t, i) - SIM_SHARED_BASE) / 16]--;
	p->nreading -= 2 * t.rows;
}

static bool note_reader(sim_program *p, sim_group *g, const sim_instr *in, uint64_t a, uint64_t b)
{
	if (g->nreaders == g->readers_room) {
		uint32_t room = g->readers_room ? 2 * g->readers_room : 16;
		sim_reader *more = realloc(g->readers, room * sizeof *more);
		if (!more) return sim_out_of_memory(p->launch);
		g->readers = more;
		g->readers_room = room;
	}
	g->readers[g->nreaders++] = (sim_reader){in, a, b, g->ticket, 0};
	return true;
}

/* ---- The product ---- */

/* A value that all 128 threads must have alike. */
static bool same_for_all(sim_warp *leader, const sim_instr *in, uint32_t unit, const char *what, uint64_t *value)
{
	*value = ((const uint64_t *)sim_at(leader, unit))[0];
	for (uint32_t k = 0; k < 4; k++)
		for (uint32_t i = 0; i < SIM_LANES; i++) {
			if (leader[k].bad[unit] >> i & 1)
				return sim_report(
					leader + k, in, i, NULL, "the descriptor of %s of a wgmma is undefined", what);
			if (((const uint64_t *)sim_at(leader + k, unit))[i] != *value)
				return sim_report(leader + k, in, i,
					"it is one for the warpgroup: make it of uniform values",
					"the descriptor of %s of a wgmma is 0x%llx here and 0x%llx in the group's "
					"first thread",
					what, (unsigned long long)((const uint64_t *)sim_at(leader + k, unit))[i],
					(unsigned long long)*value);
		}
	return true;
}

static bool adds(sim_warp *leader, const sim_instr *in, const sim_product *m, bool *out)
{
	for (uint32_t k = 0; k < 4; k++) {
		uint32_t v = leader[k].predicate[in->c] ^ (in->exchanges ? SIM_ALL : 0);
		if (leader[k].predicate_bad[in->c])
			return sim_report(leader + k, in, 0, NULL, "whether a wgmma adds to its sums is undefined");
		if (k == 0) *out = v & 1;
		if (v != (*out ? SIM_ALL : 0))
			return sim_report(
				leader + k, in, 0, NULL, "whether a wgmma adds to its sums differs among its threads");
	}
	if (m->overwrites) *out = false;
	return true;
}

static bool multiply(sim_warp *leader, const sim_instr *in)
{
	assert(leader->index % 4 == 0 && in->extra < leader->program->code->nproducts);
	sim_program *p = leader->program;
	const sim_product *m = &p->code->products[in->extra];
	sim_group *g = &p->groups[leader->index / 4];
	sim_operands o;
	uint64_t a = 0, b;
	bool sums = true;
	if (!adds(leader, in, m, &sums) || !same_for_all(leader, in, in->b, "b", &b)) return false;
	if (!m->a_in_registers && !same_for_all(leader, in, in->a, "a", &a)) return false;
	for (uint32_t k = 0; k < 4; k++)
		if (!registers_ready(leader + k, in, m)) return false;
	memset(o.bad_a, 0, sizeof o.bad_a);
	memset(o.bad_b, 0, sizeof o.bad_b);
	o.any_bad = false;
	if (m->a_in_registers)
		sim_product_registers(m, &o, in, leader);
	else if (!read_operand(leader, in, m, &o, a, true, g->ticket))
		return false;
	if (!read_operand(leader, in, m, &o, b, false, g->ticket) || !note_reader(p, g, in, a, b)) return false;
	for (uint32_t k = 0; k < 4; k++)
		if (!take_registers(leader + k, in, m, g->ticket)) return false;
	sim_product_compute(m, &o, leader, sums);
	sim_product_store(m, &o, leader, sums);
	g->ticket++;
	return true;
}

static const char *const ALIKE = "all four warps of a warpgroup run the same wgmma.fence, commit_group and wait_group: "
				 "their conditions must be the warpgroup's";

/* The next of its warp's fences, commits and waits is the same as the other warps'. */
static bool same_step(sim_warp *w, const sim_instr *in)
{
	sim_group *g = &w->program->groups[w->index / 4];
	uint32_t i = g->taken[w->index % 4]++;
	if (i >= SIM_GROUP_STEPS) return true;
	if (i == g->nsteps) g->steps[g->nsteps++] = in;
	if (g->steps[i] == in) return true;
	char where[320];
	sim_place(w->program->code, g->steps[i], where, sizeof where);
	return sim_report(w, in, 0, ALIKE,
		"a warp of a warpgroup comes to this wgmma instruction where another came to the one at %s", where);
}

/* All four have come to a product by as many. */
static bool same_steps(sim_warp *leader, const sim_instr *in)
{
	sim_group *g = &leader->program->groups[leader->index / 4];
	for (uint32_t k = 1; k < 4; k++)
		if (g->taken[k] != g->taken[0])
			return sim_report(leader + k, in, 0, ALIKE,
				"a warp of a warpgroup comes to this wgmma behind %u fences, commits and waits since "
				"the last "
				"one, its first warp behind %u",
				g->taken[k], g->taken[0]);
	memset(g->taken, 0, sizeof g->taken);
	g->nsteps = 0;
	return true;
}

bool sim_step_product(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	sim_program *p = w->program;
	uint32_t first = w->index / 4 * 4;
	sim_group *g = &p->groups[w->index / 4];
	if (!whole_warp(w, in, mask)) return false;
	if (first + 4 > p->nwarps || p->threads % SIM_LANES)
		return sim_report(w, in, 0, "the number of threads must be a multiple of 128",
			"a wgmma by a warpgroup that is not whole: the program has %u threads", p->threads);
	if (g->arrived && g->at != in) {
		char where[320];
		sim_place(p->code, g->at, where, sizeof where);
		return sim_report(w, in, 0, "all four warps of a warpgroup run the same wgmma",
			"a warp of a warpgroup comes to this wgmma while another waits at the one at %s", where);
	}
	assert(!(g->arrived >> w->index % 4 & 1)); /* it waits, where it has */
	g->at = in;
	g->arrived |= UINT32_C(1) << w->index % 4;
	if (g->arrived != 15) {
		w->state = WARP_AT_GROUP;
		return false;
	}
	g->arrived = 0;
	p->cluster->events++;
	for (uint32_t k = 0; k < 4; k++) p->warps[first + k].state = WARP_READY;
	return same_steps(&p->warps[first], in) && multiply(&p->warps[first], in);
}

bool sim_step_product_fence(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	if (!whole_warp(w, in, mask) || !same_step(w, in)) return false;
	w->fences++;
	w->watch = w->program->code->nproducts != 0;
	return true;
}

bool sim_step_product_commit(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	if (!whole_warp(w, in, mask) || !same_step(w, in)) return false;
	w->product_group++;
	return true;
}

/* When all four have waited for a product, what it read is released: a warp's wait speaks for that warp. */
static void release(sim_program *p, sim_group *g, uint32_t ticket, uint32_t warp)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < g->nreaders; i++) {
		sim_reader r = g->readers[i];
		if (r.ticket == ticket) r.waited |= 1u << warp;
		if (r.waited != 15) {
			g->readers[kept++] = r;
			continue;
		}
		const sim_product *m = &p->code->products[r.in->extra];
		if (!m->a_in_registers) let_go(p, m, r.a, true);
		let_go(p, m, r.b, false);
	}
	g->nreaders = kept;
}

/* All groups but the last `offset`. */
bool sim_step_product_wait(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	sim_program *p = w->program;
	uint32_t done = 0, kept = 0, group = w->index / 4;
	if (!whole_warp(w, in, mask) || !same_step(w, in)) return false;
	if ((uint64_t)in->offset < w->product_group) done = w->product_group - (uint32_t)in->offset;
	for (uint32_t i = 0; i < w->nflights; i++) {
		const sim_flight f = w->flights[i];
		if (f.group >= done) {
			w->flights[kept++] = f;
			continue;
		}
		const sim_product *m = &p->code->products[f.in->extra];
		assert(w->flying[0][m->units[0]]);
		for (uint32_t k = 0; k < m->nunits; k++) w->flying[0][m->units[k]]--;
		for (uint32_t k = 0; m->a_in_registers && k < 4; k++) w->flying[1][f.in->regs[k]]--;
		release(p, &p->groups[group], f.ticket, w->index % 4);
		sim_order_engine(w, mask, SIM_CLOCK_GROUP + group, f.ticket + 1);
	}
	w->nflights = kept;
	return true;
}

/* Before a program begins. */
void sim_products_end(sim_program *p)
{
	const sim_code *c = p->code;
	if (!c->nproducts) return;
	for (uint32_t i = 0; i < SIM_MAX_WARPS / 4; i++) {
		sim_group *g = &p->groups[i];
		g->at = NULL;
		g->arrived = g->ticket = g->nreaders = g->nsteps = 0;
		memset(g->taken, 0, sizeof g->taken);
	}
	for (uint32_t k = 0; k < p->nwarps; k++) {
		sim_warp *w = &p->warps[k];
		w->watch = false;
		w->fences = w->nflights = w->product_group = 0;
		for (int i = 0; i < 2; i++) memset(w->flying[i], 0, c->units * sizeof *w->flying[i]);
		memset(w->touched, 0, c->units * sizeof *w->touched);
	}
}
