/* Why a value is undefined, where that is known: a division by 0, or a gather whose index lies outside.
 *
 * In: the instructions that the compiler writes for the simulator alone (decode_check.c), which look at an operand and
 * make a result undefined.  Out: that result's cause, which goes where its undefined bits go (shadow.c) until something
 * depends on them and the report names it.
 *
 * Nothing is kept until the first such instruction finds something. */
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for the causes of a warp's registers and predicates; false: no memory, reported. */
static bool make_room(sim_warp *w)
{
	const sim_code *c = w->program->code;
	if (!w->causes) w->causes = calloc(((size_t)c->units + c->predicates) * SIM_LANES, sizeof *w->causes);
	return w->causes || sim_out_of_memory(w->program->launch);
}

/* Where the operand is 0, or not below the extent, the result is undefined. */
bool sim_step_check(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	for (; mask; mask &= mask - 1) {
		unsigned i = (unsigned)__builtin_ctz(mask);
		uint64_t v = sim_register_read(sim_at(w, in->a), in->wide[1], i);
		bool good = in->mode == SIM_CHECK_GATHER ? v < (uint64_t)in->offset : v != 0;
		if (good || w->bad[in->a] >> i & 1) continue;
		if (!make_room(w)) return false;
		w->causes[0] = (sim_cause){in, scalar_sign_extend((scalar)in->to, v)};
		sim_shadow_write(w, in->d, in->wide[0], i, UINT64_MAX);
	}
	return true;
}

/* Of the first of these lanes' predicates that is undefined. */
void sim_cause_of_predicate(const sim_warp *w, uint32_t p, uint32_t lanes)
{
	lanes &= w->predicate_bad[p];
	if (w->causes && lanes) sim_cause_take(w, w->program->code->units + p, (unsigned)__builtin_ctz(lanes));
}

void sim_cause_to_predicate(const sim_warp *w, uint32_t p, unsigned lane)
{
	if (p) sim_cause_give(w, w->program->code->units + p, lane);
}

/* ---- Through shared memory ---- */

static sim_cause *shared_causes(const sim_warp *w, const uint8_t *shadow, unsigned bytes)
{
	const sim_program *p = w->program;
	size_t offset = (size_t)((uintptr_t)shadow - (uintptr_t)p->shared_shadow);
	bool inside = offset < p->shared_bytes && p->shared_bytes - offset >= bytes;
	return p->shared_causes && inside ? p->shared_causes + offset : NULL;
}

void sim_cause_store(sim_warp *w, const uint8_t *shadow, unsigned bytes)
{
	sim_program *p = w->program;
	if (!w->causes) return;
	if (w->causes[0].in && !p->shared_causes) p->shared_causes = calloc(p->shared_bytes, sizeof *p->shared_causes);
	sim_cause *to = shared_causes(w, shadow, bytes);
	for (unsigned k = 0; to && k < bytes; k++) to[k] = w->causes[0];
}

void sim_cause_load(sim_warp *w, const uint8_t *shadow, unsigned bytes)
{
	const sim_cause *from = shared_causes(w, shadow, bytes);
	if (from && !make_room(w)) return;
	if (!w->causes) return;
	w->causes[0] = (sim_cause){0};
	for (unsigned k = 0; from && k < bytes; k++)
		if (shadow[k]) w->causes[0] = from[k];
}

/* ---- The report ---- */

bool sim_report_undefined(
	sim_warp *w, const sim_instr *in, unsigned lane, const sim_spot *spot, const char *hint, const char *what)
{
	const sim_cause none = {0}, *cause = w->causes ? &w->causes[0] : &none;
	char index[32];
	const sim_spot nowhere = {0};
	sim_spot full = spot ? *spot : nowhere;
	char where[320];
	if (!cause->in)
		return spot ? sim_report_at(w, in, lane, spot, hint, "%s", what)
			    : sim_report(w, in, lane, hint, "%s", what);
	full.cause = cause;
	sim_place(w->program->code, cause->in, where, sizeof where);
	if (cause->in->mode == SIM_CHECK_DIVISOR)
		return sim_report_at(w, in, lane, &full,
			"where the divisor may be 0, choose another result: where(d != 0, a / d, 0)",
			"%s: it comes from a division by 0 at %s", what, where);
	if (scalar_is_signed((scalar)cause->in->to))
		snprintf(index, sizeof index, "%" PRId64, cause->value);
	else
		snprintf(index, sizeof index, "%" PRIu64, (uint64_t)cause->value);
	return sim_report_at(w, in, lane, &full,
		"keep the index below the extent, or choose another result where it is not: where(i < n, gather(x, i), "
		"0)",
		"%s: it comes from a gather at %s, whose index %s is outside of the %" PRId64 " elements", what, where,
		index, cause->in->offset);
}
