/* What the lanes of a warp tell each other: shuffles, votes, sums.  All lanes that an instruction names must be there:
 * code that is reached by some of them only is reported, not waited for. */
#include "sim.h"

static bool members(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	unsigned first = (unsigned)__builtin_ctz(mask);
	const uint32_t *all = (const uint32_t *)sim_at(w, in->regs[0]), named = all[first];
	static const char *const hint = "the instruction stands where only some lanes of the warp come";
	if (w->bad[in->regs[0]] & mask)
		return sim_report(w, in, (unsigned)__builtin_ctz(w->bad[in->regs[0]] & mask), NULL,
			"the mask of an exchange is undefined");
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		if (all[i] != named)
			return sim_report(w, in, i, "lanes that exchange something name the same ones",
				"an exchange has the mask 0x%08x here and 0x%08x in lane %u", all[i], named, first);
	}
	if (mask & ~named)
		return sim_report(w, in, (unsigned)__builtin_ctz(mask & ~named), hint,
			"a lane takes part in an exchange whose mask 0x%08x does not name it", named);
	uint32_t absent = named & ~mask;
	if (absent)
		return sim_report(w, in, first, hint, "an exchange names lane %d, which %s", __builtin_ctz(absent),
			absent & ~w->alive & -absent ? "has ended" : "is elsewhere");
	return true;
}

/* The only one of these that orders what lanes do in memory. */
bool sim_step_warp_sync(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	if (!members(w, in, mask)) return false;
	sim_order_warp(w);
	return true;
}

enum { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR, SHUFFLE_INDEX }; /* ORDER decode_warp.c */

bool sim_step_shuffle(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	const uint32_t *a = (const uint32_t *)sim_at(w, in->a), *b = (const uint32_t *)sim_at(w, in->b),
		       *c = (const uint32_t *)sim_at(w, in->c);
	uint32_t out[SIM_LANES], undefined[SIM_LANES], inside = 0;
	sim_cause causes[SIM_LANES];
	if (!members(w, in, mask)) return false;
	assert(in->mode <= SHUFFLE_INDEX);
	uint32_t how = (w->bad[in->b] | w->bad[in->c]) & mask;
	if (how) return sim_report(w, in, (unsigned)__builtin_ctz(how), NULL, "a shuffle reads from an undefined lane");
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		uint32_t segment = c[i] >> 8 & 31, clamp = c[i] & 31;
		uint32_t least = i & segment, most = least | (clamp & ~segment), from;
		bool valid;
		switch (in->mode) {
		case SHUFFLE_UP:
			from = i - (b[i] & 31);
			valid = (int32_t)from >= (int32_t)most;
			break;
		case SHUFFLE_DOWN:
			from = i + (b[i] & 31);
			valid = from <= most;
			break;
		case SHUFFLE_XOR:
			from = i ^ (b[i] & 31);
			valid = from <= most;
			break;
		default:
			from = least | (b[i] & 31 & ~segment);
			valid = from <= most;
			break;
		}
		if (!valid) from = i;
		inside |= (uint32_t)valid << i;
		out[i] = a[from & 31];
		sim_cause_none(w);
		undefined[i] = mask >> (from & 31) & 1 ? (uint32_t)sim_shadow_read(w, in->a, 4, from & 31) : UINT32_MAX;
		if (w->causes) causes[i] = w->causes[0];
	}
	if (in->e) sim_write_predicate(w, in->e, mask, inside, 0);
	if (in->d == UINT32_MAX) return true;
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		((uint32_t *)sim_at(w, in->d))[i] = out[i];
		if (w->causes) w->causes[0] = causes[i];
		sim_shadow_write(w, in->d, 4, i, undefined[i]);
	}
	return true;
}

enum { VOTE_ALL, VOTE_ANY, VOTE_SAME, VOTE_BALLOT }; /* ORDER decode_warp.c */

bool sim_step_vote(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	if (!members(w, in, mask)) return false;
	assert(in->mode <= VOTE_BALLOT);
	uint32_t truth = (w->predicate[in->a] ^ (in->exchanges ? SIM_ALL : 0)) & mask;
	uint32_t bad = w->predicate_bad[in->a] & mask ? SIM_ALL : 0;
	sim_cause_of_predicate(w, in->a, mask);
	bool r = in->mode == VOTE_ALL ? truth == mask : in->mode == VOTE_ANY ? truth != 0 : truth == mask || truth == 0;
	if (in->mode != VOTE_BALLOT) {
		sim_write_predicate(w, in->d, mask, r ? SIM_ALL : 0, bad);
		for (uint32_t m = w->causes && bad ? mask : 0; m; m &= m - 1)
			sim_cause_to_predicate(w, in->d, (unsigned)__builtin_ctz(m));
		return true;
	}
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		((uint32_t *)sim_at(w, in->d))[i] = truth;
		sim_shadow_write(w, in->d, 4, i, w->predicate_bad[in->a] & mask);
	}
	return true;
}

enum { REDUX_ADD, REDUX_MIN, REDUX_MAX, REDUX_AND, REDUX_OR, REDUX_XOR }; /* ORDER decode_warp.c */

static uint32_t reduced(const sim_instr *in, uint32_t x, uint32_t y)
{
	assert(in->mode <= REDUX_XOR);
	bool less = in->to == SCALAR_I32 ? (int32_t)x < (int32_t)y : x < y;
	switch (in->mode) {
	case REDUX_ADD: return x + y;
	case REDUX_MIN: return less ? x : y;
	case REDUX_MAX: return less ? y : x;
	case REDUX_AND: return x & y;
	case REDUX_OR: return x | y;
	default: return x ^ y;
	}
}

bool sim_step_redux(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	const uint32_t *a = (const uint32_t *)sim_at(w, in->a);
	if (!members(w, in, mask)) return false;
	unsigned first = (unsigned)__builtin_ctz(mask);
	uint32_t r = a[first];
	for (uint32_t m = mask & (mask - 1); m; m &= m - 1) r = reduced(in, r, a[__builtin_ctz(m)]);
	uint64_t undefined = w->bad[in->a] & mask ? UINT64_MAX : 0;
	if (undefined) sim_cause_of(w, in->a, (unsigned)__builtin_ctz(w->bad[in->a] & mask));
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		((uint32_t *)sim_at(w, in->d))[i] = r;
		sim_shadow_write(w, in->d, 4, i, undefined);
	}
	return true;
}

/* The lowest lane of those named is elected; each learns which. */
bool sim_step_elect(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	if (!members(w, in, mask)) return false;
	uint32_t leader = (uint32_t)__builtin_ctz(mask);
	sim_write_predicate(w, in->e, mask, UINT32_C(1) << leader, 0);
	if (in->d == UINT32_MAX) return true;
	for (uint32_t m = mask; m; m &= m - 1) ((uint32_t *)sim_at(w, in->d))[__builtin_ctz(m)] = leader;
	sim_set_defined(w, in->d, mask);
	return true;
}

static uint32_t group_of(const sim_warp *w, const sim_instr *in, unsigned i, uint32_t mask)
{
	uint64_t v = sim_register_read(sim_at(w, in->a), in->bytes, i);
	uint32_t same = 0;
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned k = (unsigned)__builtin_ctz(m);
		same |= (uint32_t)(sim_register_read(sim_at(w, in->a), in->bytes, k) == v) << k;
	}
	return same;
}

/* any: the lanes that hold what this one holds; all: every lane if they agree, else none, and whether they do. */
bool sim_step_match(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	uint32_t out[SIM_LANES], agree = SIM_ALL;
	if (!members(w, in, mask)) return false;
	uint64_t undefined = w->bad[in->a] & mask ? UINT64_MAX : 0;
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		out[i] = group_of(w, in, i, mask);
		if (out[i] != mask) agree = 0;
	}
	if (in->e) sim_write_predicate(w, in->e, mask, agree, undefined ? SIM_ALL : 0);
	if (in->d == UINT32_MAX) return true;
	for (uint32_t m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		((uint32_t *)sim_at(w, in->d))[i] = in->mode ? out[i] & agree : out[i];
		sim_shadow_write(w, in->d, 4, i, undefined);
	}
	return true;
}

bool sim_step_active(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	for (uint32_t m = mask; m; m &= m - 1) ((uint32_t *)sim_at(w, in->d))[__builtin_ctz(m)] = mask;
	sim_set_defined(w, in->d, mask);
	return true;
}
