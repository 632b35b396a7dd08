/* mma.sync, ldmatrix, stmatrix and movmatrix. */
#include "parse.h"

#include <stdio.h>
#include <string.h>

static bool list_of(parser *p, const operand *o, uint32_t n, uint8_t bytes, bool written, uint32_t *regs)
{
	const operand *list = o->kind == OPERAND_LIST ? &p->operands[o->first] : o;
	uint32_t count = o->kind == OPERAND_LIST ? o->count : 1;
	if (count != n || n > 4) return decode_wrong(p, "a wrong number of registers");
	for (uint32_t i = 0; i < n; i++) {
		if (written && list[i].kind != OPERAND_REGISTER) return decode_wrong(p, "registers were expected");
		if (!decode_unit(p, &list[i], bytes, &regs[i])) return false;
	}
	return true;
}

bool decode_matrix_type(const char *s, scalar *type, bool *tf32)
{
	*tf32 = strcmp(s, "tf32") == 0;
	if (*tf32) *type = SCALAR_F32;
	return *tf32 || decode_type(s, type);
}

/* mma.sync.aligned.m16n8k16.row.col{.satfinite}.f32.f16.f16.f32 {d}, {a}, {b}, {c} */
static bool multiplies(parser *p)
{
	unsigned m, n, k, used = 0;
	scalar d, a, b, c;
	bool tf32, also, ignored, saturates = p->nparts == 11 && strcmp(p->parts[6], "satfinite") == 0;
	size_t at = saturates ? 7 : 6;
	if (p->nparts != at + 4 || strcmp(p->parts[1], "sync") != 0 || strcmp(p->parts[2], "aligned") != 0 ||
		sscanf(p->parts[3], "m%2un%2uk%2u%n", &m, &n, &k, (int *)&used) != 3 || p->parts[3][used] ||
		strcmp(p->parts[4], "row") != 0 || strcmp(p->parts[5], "col") != 0)
		return decode_unknown(p);
	if (!decode_matrix_type(p->parts[at], &d, &ignored) || !decode_matrix_type(p->parts[at + 1], &a, &tf32) ||
		!decode_matrix_type(p->parts[at + 2], &b, &also) || !decode_matrix_type(p->parts[at + 3], &c, &ignored))
		return decode_unknown(p);
	unsigned bytes = scalar_bytes(a), each = bytes < 4 ? 4 / bytes : 1, rows = m / 8;
	bool sums = d == c && (d == SCALAR_F32 || d == SCALAR_F64 || d == SCALAR_I32 || d == SCALAR_F16);
	bool fits = scalar_bytes(b) == bytes && (a == SCALAR_F32) == tf32 && tf32 == also &&
		    (d == SCALAR_F64) == (a == SCALAR_F64) && (d == SCALAR_I32) == (a == SCALAR_I8 || a == SCALAR_U8) &&
		    bytes != 0;
	if (n != 8 || (m != 8 && m != 16) || !sums || !fits || k % (4 * each) || k > 64 || k / (4 * each) * rows > 4 ||
		k == 0)
		return decode_unknown(p);
	unsigned nd = d == SCALAR_F16 ? rows : 2 * rows, na = rows * (k / (4 * each)), nb = k / (4 * each);
	uint8_t wide = d == SCALAR_F64 ? 8 : 4, narrow = a == SCALAR_F64 ? 8 : 4;
	uint32_t regs[16] = {0};
	const operand *o = p->operands;
	if (p->noperands != 4) return decode_wrong(p, "wrong operands");
	if (!list_of(p, &o[0], nd, wide, true, regs) || !list_of(p, &o[1], na, narrow, false, regs + 4) ||
		!list_of(p, &o[2], nb, narrow, false, regs + 8) || !list_of(p, &o[3], nd, wide, false, regs + 12))
		return false;
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = sim_step_multiply;
	in->to = (uint8_t)d;
	in->from = (uint8_t)a;
	in->space = (uint8_t)b;
	in->nregs = (uint8_t)nd;
	in->mode = (uint8_t)na;
	in->bytes = (uint8_t)nb;
	in->wide[1] = (uint8_t)rows;
	in->wide[2] = (uint8_t)k;
	in->exchanges = tf32;
	in->saturates = saturates;
	memcpy(in->regs, regs, sizeof regs);
	return true;
}

/* ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {d}, [a]; stmatrix ... [a], {d} */
static bool moves_matrices(parser *p, bool load)
{
	uint32_t n = 0, regs[4] = {0};
	bool transposed = false, shared = false, square = false, halves = false;
	for (size_t i = 1; i < p->nparts; i++) {
		const char *s = p->parts[i];
		if (strcmp(s, "sync") == 0 || strcmp(s, "aligned") == 0) continue;
		if (strcmp(s, "m8n8") == 0)
			square = true;
		else if (strcmp(s, "b16") == 0)
			halves = true;
		else if (strcmp(s, "trans") == 0)
			transposed = true;
		else if (strcmp(s, "shared") == 0 || strcmp(s, "shared::cta") == 0)
			shared = true;
		else if (s[0] == 'x' && strchr("124", s[1]) && s[1] && !s[2])
			n = (uint32_t)(s[1] - '0');
		else
			return decode_unknown(p);
	}
	if (!n || !square || !halves) return decode_unknown(p);
	sim_instr proto = {0};
	if (p->noperands != 2) return decode_wrong(p, "wrong operands");
	if (!list_of(p, &p->operands[load ? 0 : 1], n, 4, load, regs)) return false;
	if (!decode_address(p, &p->operands[load ? 1 : 0], &proto)) return false;
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = load ? sim_step_load_matrix : sim_step_store_matrix;
	in->space = shared ? SPACE_SHARED : SPACE_GENERIC;
	in->nregs = (uint8_t)n;
	in->exchanges = transposed;
	in->a = proto.a;
	in->offset = proto.offset;
	in->wide[1] = proto.wide[1];
	memcpy(in->regs, regs, sizeof regs);
	return true;
}

static bool transposes(parser *p)
{
	const operand *o = p->operands;
	uint32_t a;
	if (strcmp(p->opcode, "movmatrix.sync.aligned.m8n8.trans.b16") != 0) return decode_unknown(p);
	if (p->noperands != 2 || o[0].kind != OPERAND_REGISTER || o[0].bytes != 4 || !decode_unit(p, &o[1], 4, &a))
		return p->failed ? false : decode_wrong(p, "wrong operands");
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = sim_step_transpose;
	in->d = o[0].unit;
	in->a = a;
	return true;
}

bool decode_matrix(parser *p)
{
	if (strcmp(p->parts[0], "movmatrix") == 0) return transposes(p);
	if (strcmp(p->parts[0], "mma") == 0) return multiplies(p);
	if (strcmp(p->parts[0], "ldmatrix") == 0) return moves_matrices(p, true);
	if (strcmp(p->parts[0], "stmatrix") == 0) return moves_matrices(p, false);
	return false;
}
