/* What the compiler says to the simulator alone, in lines that are comments for everybody else:
 *
 *	//@ check.part.b8 %rd1;                     the next atomic is of the element at %rd1, not the word around it
 *	//@ check.divisor.b32.b32 %r1, %r2;         %r1 is undefined where the divisor %r2 is 0
 *	//@ check.gather.b16.s32 %rs1, %r2, 64;     %rs1 is undefined where the index %r2 is not below 64
 */
#include "parse.h"

#include <string.h>

static bool is_part(parser *p)
{
	const operand *o = p->operands;
	scalar type;
	if (p->nparts != 3 || !decode_type(p->parts[2], &type) || scalar_bytes(type) > 2) return decode_unknown(p);
	if (p->noperands != 1 || o[0].kind != OPERAND_REGISTER || o[0].bytes != 8)
		return decode_wrong(p, "an address was expected");
	p->part = (uint8_t)scalar_bytes(type);
	p->part_unit = o[0].unit;
	return true;
}

static bool is_undefined(parser *p, bool gathers)
{
	const operand *o = p->operands;
	scalar result, type;
	sim_instr in = {.step = sim_step_check, .mode = gathers ? SIM_CHECK_GATHER : SIM_CHECK_DIVISOR};
	if (p->nparts != 4 || !decode_type(p->parts[2], &result) || !decode_type(p->parts[3], &type))
		return decode_unknown(p);
	if (scalar_bytes(result) < 2 || scalar_bytes(type) < 2) return decode_unknown(p);
	if (p->noperands != 2u + gathers || o[0].kind != OPERAND_REGISTER || o[0].bytes != scalar_bytes(result) ||
		(gathers && o[2].kind != OPERAND_NUMBER))
		return decode_wrong(p, "wrong operands");
	in.d = o[0].unit;
	in.to = (uint8_t)type;
	in.wide[0] = (uint8_t)scalar_bytes(result);
	in.wide[1] = (uint8_t)scalar_bytes(type);
	in.offset = gathers ? (int64_t)o[2].bits : 0;
	return decode_unit(p, &o[1], in.wide[1], &in.a) && decode_add(p, SIM_STEP, &in);
}

bool decode_check(parser *p)
{
	if (strcmp(p->parts[0], "check") != 0) return false;
	if (strcmp(p->parts[1], "part") == 0) return is_part(p);
	if (strcmp(p->parts[1], "divisor") == 0) return is_undefined(p, false);
	if (strcmp(p->parts[1], "gather") == 0) return is_undefined(p, true);
	return false;
}
