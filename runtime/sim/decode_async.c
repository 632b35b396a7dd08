/* cp.async and what waits for it. */
#include "parse.h"

#include <string.h>

static bool simple(parser *p, sim_step *step, uint8_t mode, uint64_t count)
{
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = step;
	in->mode = mode;
	in->offset = (int64_t)count;
	return true;
}

/* cp.async.cg.shared.global [to], [from], 16 {, bytes that are read}; */
static bool copies(parser *p)
{
	const operand *o = p->operands;
	bool all = strcmp(p->parts[2], "ca") == 0;
	if (p->nparts < 5 || (!all && strcmp(p->parts[2], "cg") != 0) || strncmp(p->parts[3], "shared", 6) != 0 ||
		strcmp(p->parts[4], "global") != 0)
		return decode_unknown(p);
	for (size_t i = 5; i < p->nparts; i++)
		if (strncmp(p->parts[i], "L2::", 4) != 0 || strcmp(p->parts[i], "L2::cache_hint") == 0)
			return decode_unknown(p);
	if (p->noperands < 3 || p->noperands > 4 || o[2].kind != OPERAND_NUMBER)
		return decode_wrong(p, "wrong operands");
	uint64_t bytes = o[2].bits;
	if (bytes != 16 && (!all || (bytes != 4 && bytes != 8))) return decode_wrong(p, "a wrong size");
	sim_instr to = {0}, from = {0};
	uint32_t read = 0;
	if (!decode_address(p, &o[0], &to) || !decode_address(p, &o[1], &from)) return false;
	if (p->noperands == 4 && !decode_unit(p, &o[3], 4, &read)) return false;
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = sim_step_copy;
	in->space = SPACE_SHARED;
	in->bytes = (uint8_t)bytes;
	in->nregs = 1;
	in->a = to.a;
	in->offset = to.offset;
	in->wide[1] = to.wide[1];
	in->b = from.a;
	in->source_offset = from.offset;
	in->wide[2] = from.wide[1];
	in->c = read;
	in->wide[3] = p->noperands == 4 ? 4 : 0;
	return true;
}

bool decode_async(parser *p)
{
	if (p->nparts < 3 || strcmp(p->parts[0], "cp") != 0 || strcmp(p->parts[1], "async") != 0) return false;
	if (strcmp(p->parts[2], "commit_group") == 0) return simple(p, sim_step_copy_commit, 0, 0);
	if (strcmp(p->parts[2], "wait_all") == 0) return simple(p, sim_step_copy_wait, 1, 0);
	if (strcmp(p->parts[2], "wait_group") == 0) return simple(p, sim_step_copy_wait, 0, p->operands[0].bits);
	return copies(p);
}
