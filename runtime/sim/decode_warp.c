/* What the lanes of a warp, or the warps of a program, do together; calls and the ways to end. */
#include "parse.h"

#include <string.h>

/* The lanes that are named: a number or a register. */
static bool members(parser *p, const operand *o, uint32_t *unit)
{
	return decode_unit(p, o, 4, unit);
}

/* shfl.sync.bfly.b32 d|p, a, b, c, members */
static bool shuffles(parser *p)
{
	static const char *const modes[] = {"up", "down", "bfly", "idx"}; /* ORDER sim_step_shuffle */
	const operand *o = p->operands;
	uint8_t mode = 0;
	while (mode < 4 && !decode_part_is(p, 2, modes[mode])) mode++;
	if (!decode_part_is(p, 1, "sync") || mode == 4 || !decode_part_is(p, 3, "b32") || p->nparts != 4)
		return decode_unknown(p);
	bool tells = p->noperands == 6;
	if ((p->noperands != 5 && !tells) || (o[0].kind != OPERAND_REGISTER && o[0].kind != OPERAND_SINK) ||
		(o[0].kind == OPERAND_REGISTER && o[0].bytes != 4) ||
		(tells && o[1].kind != OPERAND_PREDICATE && o[1].kind != OPERAND_SINK))
		return decode_wrong(p, "wrong operands");
	const operand *s = &o[tells ? 2 : 1];
	uint32_t a, b, c, m;
	if (!decode_unit(p, &s[0], 4, &a) || !decode_unit(p, &s[1], 4, &b) || !decode_unit(p, &s[2], 4, &c) ||
		!members(p, &s[3], &m))
		return false;
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = sim_step_shuffle;
	in->mode = mode;
	in->d = o[0].kind == OPERAND_REGISTER ? o[0].unit : UINT32_MAX;
	in->e = tells && o[1].kind == OPERAND_PREDICATE ? o[1].unit : 0;
	in->a = a;
	in->b = b;
	in->c = c;
	in->regs[0] = m;
	return true;
}

/* vote.sync.any.pred p, a, members; vote.sync.ballot.b32 d, a, members */
static bool votes(parser *p)
{
	static const char *const modes[] = {"all", "any", "uni", "ballot"}; /* ORDER sim_step_vote */
	const operand *o = p->operands;
	uint8_t mode = 0;
	while (!decode_part_is(p, 2, modes[mode])) mode++; /* decode_forms.c knows these alone */
	bool ballot = mode == 3;
	if (p->noperands != 3 || o[1].kind != OPERAND_PREDICATE ||
		o[0].kind != (ballot ? OPERAND_REGISTER : OPERAND_PREDICATE) || (ballot && o[0].bytes != 4))
		return decode_wrong(p, "wrong operands");
	uint32_t m;
	if (!members(p, &o[2], &m)) return false;
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = sim_step_vote;
	in->mode = mode;
	in->d = o[0].unit;
	in->a = o[1].unit;
	in->exchanges = o[1].negated;
	in->regs[0] = m;
	return true;
}

/* redux.sync.add.s32 d, a, members */
static bool reduces(parser *p)
{
	static const char *const modes[] = {"add", "min", "max", "and", "or", "xor"}; /* ORDER sim_step_redux */
	const operand *o = p->operands;
	scalar type;
	uint8_t mode = 0;
	while (mode < 6 && !decode_part_is(p, 2, modes[mode])) mode++;
	if (!decode_part_is(p, 1, "sync") || mode == 6 || p->nparts != 4 || !decode_type(p->parts[3], &type) ||
		scalar_bytes(type) != 4 || scalar_is_float(type))
		return decode_unknown(p);
	if (p->noperands != 3 || o[0].kind != OPERAND_REGISTER || o[0].bytes != 4)
		return decode_wrong(p, "wrong operands");
	uint32_t a, m;
	if (!decode_unit(p, &o[1], 4, &a) || !members(p, &o[2], &m)) return false;
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = sim_step_redux;
	in->mode = mode;
	in->to = (uint8_t)type;
	in->d = o[0].unit;
	in->a = a;
	in->regs[0] = m;
	return true;
}

/* bar.sync a {, b}; barrier.cta.sync.aligned a; bar.warp.sync members */
static bool barriers(parser *p)
{
	const operand *o = p->operands;
	if (decode_part_is(p, 1, "warp")) {
		uint32_t m;
		if (p->noperands != 1) return decode_wrong(p, "wrong operands");
		if (!members(p, &o[0], &m)) return false;
		sim_instr *in = decode_new(p, SIM_STEP);
		if (!in) return false;
		in->step = sim_step_warp_sync;
		in->regs[0] = m;
		return true;
	}
	if (decode_part_is(p, 1, "cluster")) return decode_cluster(p);
	bool arrives = decode_has(p, "arrive");
	for (size_t i = 1; i < p->nparts; i++)
		if (!decode_part_is(p, i, "cta") && !decode_part_is(p, i, "sync") && !decode_part_is(p, i, "arrive") &&
			!decode_part_is(p, i, "aligned"))
			return decode_unknown(p);
	uint32_t id, count = 0;
	if (p->noperands < 1 || p->noperands > 2 || (arrives && p->noperands != 2))
		return decode_wrong(p, "wrong operands");
	if (!decode_unit(p, &o[0], 4, &id) || (p->noperands == 2 && !decode_unit(p, &o[1], 4, &count))) return false;
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = sim_step_barrier;
	in->a = id;
	in->b = count;
	in->nregs = (uint8_t)p->noperands;
	in->exchanges = arrives;
	return true;
}

/* call.uni (retval0), vprintf, (param0, param1); */
static bool calls(parser *p)
{
	const operand *o = p->operands, *f = NULL, *list = NULL;
	const operand *result = NULL;
	for (uint32_t i = 0; i < p->noperands; i++) {
		if (o[i].kind == OPERAND_NAME)
			f = &o[i];
		else if (o[i].kind != OPERAND_LIST)
			return decode_wrong(p, "wrong operands");
		else if (!f)
			result = &o[i];
		else
			list = &o[i];
	}
	if (!f) return decode_unknown(p);
	bool prints = f->length == 7 && memcmp(f->name, "vprintf", 7) == 0;
	bool asserts = f->length == 12 && memcmp(f->name, "__assertfail", 12) == 0;
	if (!prints && !asserts)
		return parse_fail(
			p, "calls of %.*s are not simulated", (int)(f->length < 60 ? f->length : 60), f->name);
	uint32_t n = prints ? 2 : 5;
	if (!list || list->count != n) return decode_wrong(p, "a wrong number of arguments");
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = prints ? sim_step_print : sim_step_assert;
	in->nregs = (uint8_t)n;
	for (uint32_t i = 0; i < n; i++) {
		const operand *a = &p->operands[list->first + i];
		if (a->kind != OPERAND_REGISTER || a->bytes != (asserts && i == 2 ? 4 : 8))
			return decode_wrong(p, "wrong arguments");
		in->regs[i] = a->unit;
	}
	in->d = result && result->count == 1 ? p->operands[result->first].unit : UINT32_MAX;
	return true;
}

/* elect.sync d|p, members: one of them, the lowest. */
static bool elects(parser *p)
{
	const operand *o = p->operands;
	uint32_t m;
	if (!decode_part_is(p, 1, "sync") || p->nparts != 2) return decode_unknown(p);
	if (p->noperands != 3 || o[1].kind != OPERAND_PREDICATE ||
		(o[0].kind != OPERAND_SINK && (o[0].kind != OPERAND_REGISTER || o[0].bytes != 4)))
		return decode_wrong(p, "wrong operands");
	if (!members(p, &o[2], &m)) return false;
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = sim_step_elect;
	in->d = o[0].kind == OPERAND_REGISTER ? o[0].unit : UINT32_MAX;
	in->e = o[1].unit;
	in->regs[0] = m;
	return true;
}

/* match.any.sync.b32 d, a, members; match.all.sync.b64 d|p, a, members */
static bool matches(parser *p)
{
	const operand *o = p->operands;
	bool all = decode_part_is(p, 1, "all"), tells = p->noperands == 4;
	uint32_t a, m;
	uint8_t bytes = decode_part_is(p, 3, "b64") ? 8 : 4;
	if ((!all && !decode_part_is(p, 1, "any")) || !decode_part_is(p, 2, "sync") ||
		(bytes == 4 && !decode_part_is(p, 3, "b32")) || p->nparts != 4)
		return decode_unknown(p);
	if ((p->noperands != 3 && !(all && tells)) ||
		(o[0].kind != OPERAND_SINK && (o[0].kind != OPERAND_REGISTER || o[0].bytes != 4)) ||
		(tells && o[1].kind != OPERAND_PREDICATE && o[1].kind != OPERAND_SINK))
		return decode_wrong(p, "wrong operands");
	if (!decode_unit(p, &o[tells ? 2 : 1], bytes, &a) || !members(p, &o[tells ? 3 : 2], &m)) return false;
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = sim_step_match;
	in->mode = all;
	in->bytes = bytes;
	in->d = o[0].kind == OPERAND_REGISTER ? o[0].unit : UINT32_MAX;
	in->e = tells && o[1].kind == OPERAND_PREDICATE ? o[1].unit : 0;
	in->a = a;
	in->regs[0] = m;
	return true;
}

static bool tells_active(parser *p)
{
	const operand *o = p->operands;
	if (p->noperands != 1 || o[0].kind != OPERAND_REGISTER || o[0].bytes != 4)
		return decode_wrong(p, "wrong operands");
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = sim_step_active;
	in->d = o[0].unit;
	return true;
}

/* griddepcontrol.wait or .launch_dependents */
static bool grid_dependencies(parser *p)
{
	if (!decode_part_is(p, 1, "wait")) return true; /* launches run one after the other here */
	p->code->waits_for_grid = true;
	return decode_simple(p, sim_step_grid_wait);
}

bool decode_warp(parser *p)
{
	if (decode_part_is(p, 0, "match")) return matches(p);
	if (decode_part_is(p, 0, "activemask")) return tells_active(p);
	if (decode_part_is(p, 0, "shfl")) return shuffles(p);
	if (decode_part_is(p, 0, "vote")) return votes(p);
	if (decode_part_is(p, 0, "redux")) return reduces(p);
	if (decode_part_is(p, 0, "bar") || decode_part_is(p, 0, "barrier")) return barriers(p);
	if (decode_part_is(p, 0, "elect")) return elects(p);
	if (decode_part_is(p, 0, "call")) return calls(p);
	if (decode_part_is(p, 0, "ret") || decode_part_is(p, 0, "exit")) return decode_simple(p, sim_step_exit);
	if (decode_part_is(p, 0, "trap")) return decode_simple(p, sim_step_trap);
	if (decode_part_is(p, 0, "griddepcontrol")) return grid_dependencies(p);
	return decode_part_is(p, 0, "nanosleep") || decode_part_is(p, 0, "setmaxnreg");
}
