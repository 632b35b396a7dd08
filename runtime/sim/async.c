/* cp.async: copies from global to shared memory that nobody has until their thread has waited for them.
 *
 * A copy is kept until it is waited for.  From its start to then the destination is undefined, so that whoever reads it
 * early has nothing; the bytes themselves land at the earliest moment or, with an odd seed, at the latest one, and a
 * program that is right cannot tell. */
#include "access.h"

#include <stdlib.h>
#include <string.h>

struct sim_pending {
	const sim_instr *in;
	uint32_t lanes, group[SIM_LANES];
	uint8_t *to[SIM_LANES], *to_shadow[SIM_LANES], *from[SIM_LANES], *from_shadow[SIM_LANES];
	uint8_t read[SIM_LANES]; /* bytes that are read; the rest of the destination becomes 0 */
};

static sim_pending *new_copy(sim_warp *w)
{
	if (w->ncopies == w->copies_room) {
		uint32_t room = w->copies_room ? 2 * w->copies_room : 32;
		sim_pending *more = realloc(w->copies, room * sizeof *more);
		if (!more) return sim_out_of_memory(w->program->launch), NULL;
		w->copies = more;
		w->copies_room = room;
	}
	sim_pending *c = &w->copies[w->ncopies];
	memset(c, 0, sizeof *c);
	return c;
}

static bool lands_late(const sim_warp *w)
{
	return w->program->launch->seed & 1;
}

static void move_bytes(const sim_pending *c, unsigned lane)
{
	memset(c->to[lane], 0, c->in->bytes);
	if (c->read[lane]) memcpy(c->to[lane], c->from[lane], c->read[lane]);
}

/* Until it lands nobody else may write there: the copy would win or lose by chance. */
static void count_pending(sim_program *p, const sim_pending *c, unsigned lane, int by)
{
	size_t word = (size_t)(c->to[lane] - p->shared) / 4;
	assert(by > 0 || (p->pending[word] && p->npending));
	assert(word * 4 + c->in->bytes <= p->shared_bytes && (c->to[lane] - p->shared) % 4 == 0);
	for (size_t k = 0; k < c->in->bytes / 4u; k++) p->pending[word + k] = (uint16_t)(p->pending[word + k] + by);
	p->npending += (uint64_t)by;
}

/* Where the lanes' copies come from: `read` bytes of it. */
static bool sources(sim_warp *w, const sim_instr *in, uint32_t mask, sim_pending *c)
{
	uint64_t address[SIM_LANES];
	if (in->wide[3] && (w->bad[in->c] & mask))
		return sim_report(
			w, in, (unsigned)__builtin_ctz(w->bad[in->c] & mask), NULL, "the size of a copy is undefined");
	if (!sim_addresses(w, in, in->b, in->wide[2], in->source_offset, mask, address)) return false;
	uint32_t reads = 0;
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		uint32_t n = in->wide[3] ? ((const uint32_t *)sim_at(w, in->c))[i] : in->bytes;
		if (n > in->bytes) return sim_report(w, in, i, NULL, "a copy of %u bytes reads %u", in->bytes, n);
		c->read[i] = (uint8_t)n;
		if (!n) continue; /* the address is not looked at */
		if (address[i] & (in->bytes - 1u)) {
			const sim_spot spot = sim_spot_at(w, in, SPACE_GLOBAL, address[i], n, sim_kind_name(false));
			return sim_report_at(w, in, i, &spot, NULL,
				"a copy of %u bytes from an address which that does not divide", in->bytes);
		}
		unsigned first = n & (n - 1) ? 1 : n; /* an odd number of bytes is looked at from both ends */
		uint8_t *last;
		c->from[i] = sim_memory(w, in, i, SPACE_GLOBAL, address[i], first, false, &c->from_shadow[i]);
		if (!c->from[i]) return false;
		if (first != n && !sim_memory(w, in, i, SPACE_GLOBAL, address[i] + n - 1, 1, false, &last))
			return false;
		reads |= UINT32_C(1) << i;
	}
	if (w->program->launch->counts && reads) sim_count_global(w, in, reads, address, in->bytes, false);
	return !reads || sim_races(w, in, reads, c->from, in->bytes, false, false);
}

bool sim_step_copy(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	uint64_t address[SIM_LANES];
	sim_pending *c = new_copy(w);
	if (!c || !sources(w, in, mask, c)) return false;
	if (!sim_addresses(w, in, in->a, in->wide[1], in->offset, mask, address)) return false;
	c->in = in;
	c->lanes = mask;
	memcpy(c->group, w->groups, sizeof c->group);
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		c->to[i] = sim_memory(w, in, i, SPACE_SHARED, address[i], in->bytes, true, &c->to_shadow[i]);
		if (!c->to[i]) return false;
	}
	if (w->program->launch->counts) sim_count_shared(w, in, mask, address, in->bytes);
	if (!sim_races(w, in, mask, c->to, in->bytes, true, false)) return false;
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		memset(c->to_shadow[i], 0xff, in->bytes);
		count_pending(w->program, c, i, 1);
		if (!lands_late(w)) move_bytes(c, i);
	}
	w->ncopies++;
	return true;
}

/* The threads have waited: now the copy is theirs, and a barrier makes it everybody's. */
static bool land(sim_warp *w, const sim_pending *c, uint32_t lanes)
{
	assert(lanes && !(lanes & ~c->lanes));
	for (uint32_t m = lanes; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		if (lands_late(w)) move_bytes(c, i);
		count_pending(w->program, c, i, -1);
		memset(c->to_shadow[i], 0, c->in->bytes);
		if (c->read[i]) memcpy(c->to_shadow[i], c->from_shadow[i], c->read[i]);
	}
	return sim_races(w, c->in, lanes, c->to, c->in->bytes, true, false);
}

bool sim_copies_land(sim_warp *w, uint32_t lanes)
{
	uint32_t kept = 0;
	for (uint32_t k = 0; k < w->ncopies; k++) {
		sim_pending *c = &w->copies[k];
		if ((c->lanes & lanes) && !land(w, c, c->lanes & lanes)) return false;
		c->lanes &= ~lanes;
		if (c->lanes) w->copies[kept++] = *c;
	}
	w->ncopies = kept;
	return true;
}

bool sim_step_copy_commit(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	(void)in;
	for (; mask; mask &= mask - 1) w->groups[__builtin_ctz(mask)]++;
	return true;
}

/* Of these lanes, those whose copy is in none of their last groups, the open one among them. */
static uint32_t done(const sim_warp *w, const sim_pending *c, uint32_t lanes, uint64_t last)
{
	uint32_t over = 0;
	for (uint32_t m = lanes; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		assert(c->group[i] <= w->groups[i]);
		if (w->groups[i] - c->group[i] > last) over |= UINT32_C(1) << i;
	}
	return over;
}

/* Of these lanes all groups but the last `offset`; mode 1: everything, committed or not. */
bool sim_step_copy_wait(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	uint32_t kept = 0;
	for (uint32_t k = 0; k < w->ncopies; k++) {
		sim_pending *c = &w->copies[k];
		uint32_t now = in->mode ? c->lanes & mask : done(w, c, c->lanes & mask, (uint64_t)in->offset);
		if (now && !land(w, c, now)) return false;
		c->lanes &= ~now;
		if (c->lanes) w->copies[kept++] = *c;
	}
	w->ncopies = kept;
	return true;
}
