/* mbarrier: its making, arrivals, announced bytes and waits. */
#include "parse.h"

#include <string.h>

/* The parts behind the verb: a space, an order, a scope, b64; and those of the verb's own that are asked for. */
static bool modifiers(parser *p, size_t from, sim_instr *in)
{
	in->space = SPACE_GENERIC;
	in->scope = SCOPE_CTA;
	in->acquires = in->releases = true;
	for (size_t i = from; i < p->nparts; i++) {
		const char *s = p->parts[i];
		if (decode_space(s, in) || decode_part_is(p, i, "b64") || decode_part_is(p, i, "cta") ||
			decode_part_is(p, i, "acquire") || decode_part_is(p, i, "release"))
			continue;
		if (decode_part_is(p, i, "relaxed"))
			in->acquires = in->releases = false;
		else if (decode_part_is(p, i, "cluster"))
			in->scope = SCOPE_CLUSTER;
		else if (decode_part_is(p, i, "parity"))
			in->exchanges = true;
		else if (decode_part_is(p, i, "noComplete"))
			in->constant = true;
		else if (decode_part_is(p, i, "expect_tx"))
			in->saturates = true;
		else
			return decode_unknown(p);
	}
	return in->space == SPACE_GENERIC || in->space == SPACE_SHARED || decode_unknown(p);
}

static bool emit(parser *p, sim_instr *proto, sim_step *step)
{
	proto->step = step;
	return decode_add(p, SIM_STEP, proto) != NULL;
}

/* mbarrier.arrive.expect_tx.shared.b64 state, [a], bytes; mbarrier.expect_tx [a], bytes; mbarrier.init [a], count */
static bool changes(parser *p, uint8_t mode, bool tells)
{
	const operand *o = p->operands;
	uint32_t at = tells ? 1 : 0;
	sim_instr in = {.mode = mode, .d = UINT32_MAX};
	if (!modifiers(p, 2, &in)) return false;
	bool needs = mode == SIM_MBARRIER_INIT || mode == SIM_MBARRIER_EXPECT || mode == SIM_MBARRIER_COMPLETE ||
		     in.saturates || in.constant;
	if (p->noperands < at + 1 + needs || p->noperands > at + 2u - (mode == SIM_MBARRIER_INVAL))
		return decode_wrong(p, "a wrong number of operands");
	if (tells && o[0].kind != OPERAND_SINK && (o[0].kind != OPERAND_REGISTER || o[0].bytes != 8))
		return decode_wrong(p, "a 64-bit register was expected");
	if (tells && o[0].kind == OPERAND_REGISTER) in.d = o[0].unit;
	if (!decode_address(p, &o[at], &in)) return false;
	if (p->noperands == at + 2 && !decode_unit(p, &o[at + 1], 4, &in.b)) return false;
	in.nregs = p->noperands == at + 2;
	return emit(p, &in, sim_step_mbarrier);
}

/* mbarrier.try_wait.parity.shared.b64 p, [a], parity {, time} */
static bool waits(parser *p)
{
	const operand *o = p->operands;
	sim_instr in = {0};
	if (!modifiers(p, 2, &in)) return false;
	if (p->noperands < 3 || p->noperands > 4 || o[0].kind != OPERAND_PREDICATE)
		return decode_wrong(p, "wrong operands");
	in.e = o[0].unit;
	if (!decode_address(p, &o[1], &in) || !decode_unit(p, &o[2], in.exchanges ? 4 : 8, &in.b)) return false;
	if (p->noperands == 4 && !decode_unit(p, &o[3], 4, &in.c))
		return false; /* the time: it is not waited for less */
	return emit(p, &in, sim_step_mbarrier_wait);
}

/* mbarrier.pending_count.b64 d, state */
static bool counts(parser *p)
{
	const operand *o = p->operands;
	sim_instr in = {0};
	if (p->noperands != 2 || o[0].kind != OPERAND_REGISTER || o[0].bytes != 4)
		return decode_wrong(p, "wrong operands");
	in.d = o[0].unit;
	return decode_unit(p, &o[1], 8, &in.a) && emit(p, &in, sim_step_mbarrier_count);
}

bool decode_mbarrier(parser *p)
{
	static const char *const verbs[] = {
		"init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx"}; /* ORDER sim_mbarrier_verb */
	if (decode_part_is(p, 0, "cp") && decode_part_is(p, 1, "async") && decode_part_is(p, 2, "mbarrier") &&
		decode_part_is(p, 3, "arrive")) {
		sim_instr in = {.mode = decode_part_is(p, 4, "noinc")};
		if (!modifiers(p, 4 + in.mode, &in)) return false;
		if (p->noperands != 1) return decode_wrong(p, "wrong operands");
		return decode_address(p, &p->operands[0], &in) && emit(p, &in, sim_step_copies_arrive);
	}
	if (!decode_part_is(p, 0, "mbarrier")) return false;
	if (decode_part_is(p, 1, "test_wait") || decode_part_is(p, 1, "try_wait")) return waits(p);
	if (decode_part_is(p, 1, "pending_count")) return counts(p);
	for (uint8_t i = 0; i < 6; i++)
		if (decode_part_is(p, 1, verbs[i]))
			return changes(p, i, i == SIM_MBARRIER_ARRIVE || i == SIM_MBARRIER_DROP);
	return decode_unknown(p);
}
