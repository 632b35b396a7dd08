/* cp.async.bulk and cp.reduce.async.bulk, with tensor maps and without, and their groups. */
#include "bulk.h"
#include "parse.h"

#include <string.h>

typedef struct form { /* what the parts of the opcode say */
	bool tensor, reduces, multicast, hint, to_global, to_shared, from_global, from_shared, typed;
	uint32_t dimensions;
} form;

static bool is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static bool operation(const char *s, sim_instr *in)
{
	static const char *const names[] = {
		"add", "min", "max", "and", "or", "xor", "", "", "inc", "dec"}; /* ORDER sim_atomic */
	for (uint8_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (is(s, names[i])) {
			in->rounding = i;
			return true;
		}
	return false;
}

/* ".shared::cluster.global": the first space is the destination's. */
static bool space(const char *s, form *f, sim_instr *in)
{
	bool global = is(s, "global"), cluster = is(s, "shared::cluster");
	if (!global && !cluster && !is(s, "shared::cta")) return false;
	if (!f->to_global && !f->to_shared) {
		f->to_global = global;
		f->to_shared = !global;
		in->in_cluster = cluster;
	} else {
		f->from_global = global;
		f->from_shared = !global;
	}
	return true;
}

static bool parts(parser *p, size_t from, form *f, sim_instr *in)
{
	for (size_t i = from; i < p->nparts; i++) {
		const char *s = p->parts[i];
		scalar type;
		if (is(s, "tensor"))
			f->tensor = true;
		else if (s[0] >= '1' && s[0] <= '5' && is(s + 1, "d"))
			f->dimensions = (uint32_t)(s[0] - '0');
		else if (is(s, "multicast::cluster"))
			f->multicast = true;
		else if (is(s, "L2::cache_hint"))
			f->hint = true;
		else if (f->reduces && operation(s, in))
			continue;
		else if (f->reduces && decode_type(s, &type)) {
			f->typed = true;
			in->to = (uint8_t)type;
		} else if (!space(s, f, in) && !is(s, "tile") && !is(s, "mbarrier::complete_tx::bytes") &&
			   !is(s, "bulk_group") && !is(s, "noftz"))
			return decode_unknown(p);
	}
	return true;
}

static bool address(parser *p, uint32_t i, uint32_t *unit, uint8_t *wide, int64_t *offset)
{
	sim_instr a = {0};
	if (i >= p->noperands) return decode_wrong(p, "a wrong number of operands");
	if (!decode_address(p, &p->operands[i], &a)) return false;
	*unit = a.a;
	*wide = a.wide[1];
	*offset = a.offset;
	return true;
}

static bool coordinates(parser *p, const operand *o, const form *f, sim_instr *in)
{
	if (o->count != f->dimensions) return decode_wrong(p, "a wrong number of coordinates");
	for (uint32_t i = 0; i < o->count; i++)
		if (!decode_unit(p, &p->operands[o->first + i], 4, &in->regs[i])) return false;
	in->nregs = (uint8_t)o->count;
	return true;
}

static bool is_known(const form *f, const sim_instr *in)
{
	bool wide = f->typed &&
		    (in->to == SCALAR_F32 || in->to == SCALAR_F64); /* these add only, f16 and bf16 know min and max */
	bool half = f->typed && (in->to == SCALAR_F16 || in->to == SCALAR_BF16);
	if (f->tensor != (f->dimensions != 0)) return false;
	if (f->reduces)
		return f->to_global && f->from_shared && f->typed != f->tensor && !(wide && in->rounding) &&
		       !(half && in->rounding > 2) && (f->tensor || scalar_bytes((scalar)in->to) > 1);
	return (f->to_global && f->from_shared) || (f->to_shared && f->from_global) ||
	       (f->to_shared && f->from_shared && !f->tensor && in->in_cluster);
}

/* [to], [from], bytes {, [mbarrier]} {, programs} {, policy}; with a tensor map its coordinates instead of bytes. */
static bool copies(parser *p, size_t from, bool reduces)
{
	form f = {.reduces = reduces};
	sim_instr in = {.step = sim_step_bulk, .space = SPACE_SHARED, .saturates = reduces};
	uint32_t at = 2;
	if (!parts(p, from, &f, &in)) return false;
	if (!is_known(&f, &in)) return decode_unknown(p);
	in.mode = f.to_global ? BULK_STORE : f.from_global ? BULK_LOAD : BULK_SHARE;
	if (!address(p, 0, &in.a, &in.wide[1], &in.offset) || !address(p, 1, &in.b, &in.wide[2], &in.source_offset))
		return false;
	if (f.tensor && !coordinates(p, &p->operands[f.to_global ? 0 : 1], &f, &in)) return false;
	if (!f.tensor && (p->noperands <= at || !decode_unit(p, &p->operands[at++], 4, &in.c)))
		return p->failed ? false : decode_wrong(p, "a wrong number of operands");
	if (in.mode != BULK_STORE && !address(p, at++, &in.extra, &in.wide[3], &in.bar_offset)) return false;
	in.constant = f.multicast;
	if (f.multicast && (p->noperands <= at || !decode_unit(p, &p->operands[at++], 2, &in.e)))
		return p->failed ? false : decode_wrong(p, "a wrong number of operands");
	if (p->noperands != at + f.hint) return decode_wrong(p, "a wrong number of operands");
	return decode_add(p, SIM_STEP, &in) != NULL;
}

static bool waits(parser *p)
{
	const sim_instr in = {
		.step = sim_step_bulk_wait, .offset = (int64_t)p->operands[0].bits, .mode = decode_has(p, "read")};
	return decode_add(p, SIM_STEP, &in) != NULL;
}

bool decode_bulk(parser *p)
{
	if (p->nparts < 4 || !is(p->parts[0], "cp")) return false;
	if (is(p->parts[1], "reduce") && is(p->parts[2], "async") && is(p->parts[3], "bulk")) return copies(p, 4, true);
	if (!is(p->parts[1], "async") || !is(p->parts[2], "bulk")) return false;
	if (is(p->parts[3], "prefetch")) return true;
	if (is(p->parts[3], "commit_group")) return decode_simple(p, sim_step_bulk_commit);
	if (is(p->parts[3], "wait_group")) return waits(p);
	return copies(p, 3, false);
}
