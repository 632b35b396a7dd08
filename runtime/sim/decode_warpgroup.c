/* wgmma: a product of matrices by a warpgroup, and what orders it. */
#include "parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which types go together: those of one row. */
static bool fits(scalar d, scalar a, scalar b, bool tf32)
{
	bool whole = a == SCALAR_I8 || a == SCALAR_U8, eight = scalar_is_fp8(a);
	if (d == SCALAR_I32) return whole && (b == SCALAR_I8 || b == SCALAR_U8);
	if (eight) return scalar_is_fp8(b) && (d == SCALAR_F32 || d == SCALAR_F16);
	if (a != b) return false;
	if (a == SCALAR_F16) return d == SCALAR_F32 || d == SCALAR_F16;
	return d == SCALAR_F32 && (a == SCALAR_BF16 || (a == SCALAR_F32 && tf32));
}

/* "m64n256k16" and the types behind it. */
static bool shape(parser *p, sim_product *m)
{
	unsigned rows, n, k, used = 0;
	scalar d, a, b;
	bool tf32, also, none;
	m->saturates = decode_part_is(p, 5, "satfinite");
	size_t at = m->saturates ? 6 : 5;
	if (p->nparts != at + 3 || !decode_part_is(p, 2, "sync") || !decode_part_is(p, 3, "aligned") ||
		sscanf(p->parts[4], "m%2un%3uk%2u%n", &rows, &n, &k, (int *)&used) != 3 || p->parts[4][used])
		return decode_unknown(p);
	if (!decode_matrix_type(p->parts[at], &d, &none) || !decode_matrix_type(p->parts[at + 1], &a, &tf32) ||
		!decode_matrix_type(p->parts[at + 2], &b, &also) || none || tf32 != also || !fits(d, a, b, tf32))
		return decode_unknown(p);
	bool whole = d == SCALAR_I32;
	if (rows != 64 || n < 8 || n > 256 || n % 8 || (whole && n > 32 && n % 16) || k != 32 / scalar_bytes(a) ||
		(m->saturates && !whole))
		return decode_unknown(p);
	m->d = (uint8_t)d;
	m->a = (uint8_t)a;
	m->b = (uint8_t)b;
	m->tf32 = tf32;
	m->n = (uint16_t)n;
	m->k = (uint16_t)k;
	m->nunits = (uint16_t)(d == SCALAR_F16 ? n / 4 : n / 2);
	return true;
}

static bool sums(parser *p, sim_product *m)
{
	const operand *o = &p->operands[0];
	if (o->kind != OPERAND_LIST || o->count != m->nunits) return decode_wrong(p, "a wrong number of registers");
	for (uint32_t i = 0; i < m->nunits; i++) {
		const operand *r = &p->operands[o->first + i];
		if (r->kind != OPERAND_REGISTER || r->bytes != 4)
			return decode_wrong(p, "32-bit registers were expected");
		m->units[i] = r->unit;
	}
	return true;
}

static bool flag(parser *p, uint32_t i, bool *out)
{
	const operand *o = &p->operands[i];
	if (i >= p->noperands || o->kind != OPERAND_NUMBER || o->bits > 1)
		return decode_wrong(p, "0 or 1 was expected");
	*out = o->bits == 1;
	return true;
}

static bool sign(parser *p, uint32_t i, bool *negative)
{
	const operand *o = &p->operands[i];
	if (i >= p->noperands || o->kind != OPERAND_NUMBER || (o->bits != 1 && o->bits != UINT64_MAX))
		return decode_wrong(p, "1 or -1 was expected");
	*negative = o->bits != 1;
	return true;
}

/* d, a, b, scale-d {, imm-scale-a, imm-scale-b {{, imm-trans-a}, imm-trans-b}} */
static bool rest(parser *p, sim_product *m, sim_instr *in)
{
	const operand *o = p->operands;
	if (p->noperands < 4) return decode_wrong(p, "a wrong number of operands");
	m->a_in_registers = o[1].kind == OPERAND_LIST;
	if (m->a_in_registers) {
		if (o[1].count != 4) return decode_wrong(p, "four registers of a were expected");
		for (uint32_t i = 0; i < 4; i++) {
			const operand *r = &p->operands[o[1].first + i];
			if (r->kind != OPERAND_REGISTER || r->bytes != 4)
				return decode_wrong(p, "32-bit registers were expected");
			in->regs[i] = r->unit;
		}
	} else if (!decode_unit(p, &o[1], 8, &in->a))
		return false;
	if (!decode_unit(p, &o[2], 8, &in->b)) return false;
	if (o[3].kind == OPERAND_PREDICATE) {
		in->c = o[3].unit;
		in->exchanges = o[3].negated;
	} else if (o[3].kind == OPERAND_NUMBER)
		m->overwrites = o[3].bits == 0;
	else
		return decode_wrong(p, "a predicate was expected");
	uint32_t next = 4;
	if (m->d != SCALAR_I32 && (!sign(p, next++, &m->negates_a) || !sign(p, next++, &m->negates_b))) return false;
	if (scalar_bytes((scalar)m->a) == 2) {
		if (!m->a_in_registers && !flag(p, next++, &m->transposes_a)) return false;
		if (!flag(p, next++, &m->transposes_b)) return false;
	}
	return p->noperands == next || decode_wrong(p, "a wrong number of operands");
}

static bool multiplies(parser *p)
{
	sim_code *c = p->code;
	sim_product *all = parse_grow(p, c->products, c->nproducts, &c->products_room, sizeof *all);
	if (!all) return false;
	c->products = all;
	sim_product *m = &all[c->nproducts];
	*m = (sim_product){0};
	if (!shape(p, m)) return false;
	m->units = calloc(m->nunits, sizeof *m->units);
	if (!m->units) return parse_fail(p, "out of memory");
	c->nproducts++;
	sim_instr proto = {0};
	if (p->noperands == 0 || !sums(p, m) || !rest(p, m, &proto))
		return p->failed ? false : decode_wrong(p, "wrong operands");
	proto.step = sim_step_product;
	proto.extra = (uint32_t)c->nproducts - 1;
	return decode_add(p, SIM_STEP, &proto) != NULL;
}

bool decode_warpgroup(parser *p)
{
	if (!decode_part_is(p, 0, "wgmma")) return false;
	if (decode_part_is(p, 1, "mma_async")) return multiplies(p);
	if (p->nparts != 4 || !decode_part_is(p, 2, "sync") || !decode_part_is(p, 3, "aligned"))
		return decode_unknown(p);
	if (decode_part_is(p, 1, "fence")) return decode_simple(p, sim_step_product_fence);
	if (decode_part_is(p, 1, "commit_group")) return decode_simple(p, sim_step_product_commit);
	if (!decode_part_is(p, 1, "wait_group")) return decode_unknown(p);
	if (p->noperands != 1 || p->operands[0].kind != OPERAND_NUMBER) return decode_wrong(p, "a number was expected");
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = sim_step_product_wait;
	in->offset = (int64_t)p->operands[0].bits;
	return true;
}

/* Which units are a product's. */
bool sim_code_products(sim_code *c)
{
	if (!c->nproducts) return true;
	c->matrix_units = calloc(c->units, 1);
	if (!c->matrix_units) return false;
	for (size_t i = 0; i < c->n; i++) {
		const sim_instr *in = &c->code[i];
		if (in->kind != SIM_STEP || in->step != sim_step_product) continue;
		const sim_product *m = &c->products[in->extra];
		for (uint32_t k = 0; k < m->nunits; k++) c->matrix_units[m->units[k]] |= SIM_IS_SUM;
		for (uint32_t k = 0; m->a_in_registers && k < 4; k++) c->matrix_units[in->regs[k]] |= SIM_IS_FACTOR;
	}
	return true;
}
