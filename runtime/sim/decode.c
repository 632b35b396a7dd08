/* From a statement to an instruction: arithmetic by its row in the table, predicates, selections and branches here;
 * memory, conversions and what warps do together in decode_access.c and decode_warp.c.
 *
 * Every operand becomes the unit of a register.  A constant gets a unit of its own, filled once for all lanes, so that
 * the loops over lanes know registers only. */
#include "parse.h"
#include "lanes.h"

#include <stdlib.h>
#include <string.h>

/* ---- The table ---- */

static uint32_t hash(const char *s)
{
	uint32_t h = 2166136261u;
	for (; *s; s++) h = (h ^ (uint8_t)*s) * 16777619u;
	return h ^ h >> 15;
}

enum { ROWS = 2048 }; /* slots; more than twice the rows there are */

static const sim_op *row_at(uint32_t i)
{
	const sim_op *const lists[] = {sim_integer_ops, sim_bits_ops, sim_float_ops, sim_half_ops, sim_directed_ops};
	const size_t counts[] = {sim_ninteger_ops, sim_nbits_ops, sim_nfloat_ops, sim_nhalf_ops, sim_ndirected_ops};
	for (int k = 0; k < 5; k++) {
		if (i < counts[k]) return &lists[k][i];
		i -= (uint32_t)counts[k];
	}
	return NULL;
}

static bool make_rows(parser *p)
{
	const sim_op *op;
	if (p->rows) return true;
	p->rows = calloc(ROWS, sizeof *p->rows);
	if (!p->rows) return parse_fail(p, "out of memory");
	for (uint32_t i = 0; (op = row_at(i)); i++) {
		uint32_t at = hash(op->name) % ROWS;
		assert(2 * i < ROWS);
		while (p->rows[at]) at = (at + 1) % ROWS;
		p->rows[at] = (uint16_t)(i + 1);
	}
	return true;
}

static const sim_op *find_row(const parser *p, const char *name)
{
	for (uint32_t at = hash(name) % ROWS; p->rows[at]; at = (at + 1) % ROWS) {
		const sim_op *op = row_at(p->rows[at] - 1u);
		if (strcmp(op->name, name) == 0) return op;
	}
	return NULL;
}

/* ---- What the decoders share ---- */

bool decode_has(const parser *p, const char *part)
{
	for (size_t i = 1; i < p->nparts; i++)
		if (strcmp(p->parts[i], part) == 0) return true;
	return false;
}

bool decode_wrong(parser *p, const char *what)
{
	return parse_fail(p, "%s: %s", p->opcode, what);
}

bool decode_unknown(parser *p)
{
	return parse_fail(p, "the instruction %s is not simulated", p->opcode);
}

bool decode_type(const char *s, scalar *out)
{
	static const struct {
		const char *name;
		scalar type;
	} names[] = {{"u8", SCALAR_U8}, {"s8", SCALAR_I8}, {"b8", SCALAR_U8}, {"u16", SCALAR_U16}, {"s16", SCALAR_I16},
		{"b16", SCALAR_U16}, {"u32", SCALAR_U32}, {"s32", SCALAR_I32}, {"b32", SCALAR_U32}, {"u64", SCALAR_U64},
		{"s64", SCALAR_I64}, {"b64", SCALAR_U64}, {"f16", SCALAR_F16}, {"bf16", SCALAR_BF16},
		{"f32", SCALAR_F32}, {"f64", SCALAR_F64}, {"e4m3", SCALAR_F8E4M3}, {"e5m2", SCALAR_F8E5M2}};
	size_t n = 0;
	while ((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= '0' && s[n] <= '9')) n++;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strlen(names[i].name) == n && memcmp(names[i].name, s, n) == 0) return *out = names[i].type, true;
	return false;
}

sim_instr *decode_add(parser *p, sim_kind kind, const sim_instr *proto)
{
	sim_code *c = p->code;
	if (c->n == SIM_MAX_CODE) return parse_fail(p, "more instructions than can be simulated"), NULL;
	assert(p->guard < c->predicates);
	sim_instr *all = parse_grow(p, c->code, c->n, &c->room, sizeof *all);
	if (!all) return NULL;
	c->code = all;
	sim_instr *in = &all[c->n++];
	*in = *proto;
	in->kind = (uint8_t)kind;
	in->guard = p->guard;
	in->guard_negated = p->guard_negated;
	in->target = in->join = SIM_NO_PC;
	in->line = p->statement_line;
	in->file = p->file;
	in->source_line = p->source_line;
	return in;
}

sim_instr *decode_new(parser *p, sim_kind kind)
{
	static const sim_instr nothing;
	return decode_add(p, kind, &nothing);
}

bool decode_simple(parser *p, sim_step *step)
{
	return decode_add(p, SIM_STEP, &(const sim_instr){.step = step}) != NULL;
}

static uint32_t *constant_slot(const parser *p, const sim_constant *k)
{
	assert(p->code->nconstants < p->nconstant_slots && !(p->nconstant_slots & (p->nconstant_slots - 1)));
	uint64_t h = (k->bits ^ k->bytes ^ (uint64_t)k->is_shared << 4) * UINT64_C(0x9e3779b97f4a7c15);
	for (size_t at = h >> 32;; at++) {
		uint32_t *slot = &p->constant_slots[at & (p->nconstant_slots - 1)];
		const sim_constant *have = *slot ? &p->code->constants[*slot - 1] : NULL;
		if (!have || (have->bytes == k->bytes && have->bits == k->bits && have->is_shared == k->is_shared))
			return slot;
	}
}

/* Slots for one more constant, twice as many as there are at least. */
static bool constant_slots(parser *p)
{
	const sim_code *c = p->code;
	if (2 * (c->nconstants + 1) <= p->nconstant_slots) return true;
	size_t n = p->nconstant_slots ? 2 * p->nconstant_slots : 256;
	free(p->constant_slots);
	p->constant_slots = calloc(n, sizeof *p->constant_slots);
	p->nconstant_slots = p->constant_slots ? n : 0;
	if (!p->constant_slots) return parse_fail(p, "out of memory");
	for (size_t i = 0; i < c->nconstants; i++) *constant_slot(p, &c->constants[i]) = (uint32_t)i + 1;
	return true;
}

static bool constant(parser *p, uint8_t bytes, uint64_t bits, bool is_shared, uint32_t *unit)
{
	sim_code *c = p->code;
	if (bytes < 8) bits &= (UINT64_C(1) << 8 * bytes) - 1;
	if (!constant_slots(p)) return false;
	uint32_t *slot = constant_slot(p, &(sim_constant){is_shared, 0, bytes, bits});
	if (*slot) return *unit = c->constants[*slot - 1].unit, true;
	sim_constant *all = parse_grow(p, c->constants, c->nconstants, &c->constants_room, sizeof *all);
	if (!all) return false;
	c->constants = all;
	*unit = parse_new_unit(p, bytes);
	all[c->nconstants++] = (sim_constant){is_shared, *unit, bytes, bits};
	*slot = (uint32_t)c->nconstants;
	return true;
}

static const char *const special_names[SPECIAL_COUNT] = {"%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z",
	"%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid", "%warpid", "%lanemask_eq",
	"%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge", "%clusterid.x", "%clusterid.y", "%clusterid.z",
	"%nclusterid.x", "%nclusterid.y", "%nclusterid.z", "%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z",
	"%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_nctaid.z", "%cluster_ctarank",
	"%cluster_nctarank"}; /* ORDER sim_special */

static bool named_value(parser *p, const operand *o, uint8_t bytes, uint32_t *unit)
{
	for (int i = 0; i < SPECIAL_COUNT; i++)
		if (strlen(special_names[i]) == o->length && memcmp(special_names[i], o->name, o->length) == 0) {
			if (bytes != 4) return decode_wrong(p, "a special register has 32 bits");
			if (!p->code->special[i]) p->code->special[i] = parse_new_unit(p, 4);
			return *unit = p->code->special[i], true;
		}
	for (size_t i = 0; i < p->code->nparameters && bytes == 8 && !o->bits; i++) {
		sim_parameter *q = &p->code->parameters[i];
		if (strlen(q->name) != o->length || memcmp(q->name, o->name, o->length) != 0) continue;
		if (!q->is_array && !q->address_unit) q->address_unit = parse_new_unit(p, 8);
		return *unit = q->is_array ? q->unit : q->address_unit, true;
	}
	const sim_variable *v = parse_variable(p, o->name, o->length);
	if (v) return constant(p, bytes, v->address + o->bits, v->space == SPACE_SHARED, unit);
	return parse_fail(p, "%.*s is not declared, or not simulated", (int)(o->length < 60 ? o->length : 60), o->name);
}

bool decode_unit(parser *p, const operand *o, uint8_t bytes, uint32_t *unit)
{
	switch (o->kind) {
	case OPERAND_REGISTER:
		if (o->bytes != bytes) return decode_wrong(p, "a register of another size was expected");
		*unit = o->unit;
		return true;
	case OPERAND_NUMBER: {
		uint64_t bits = o->bits;
		double wide;
		float narrow;
		if (o->float_bytes == 8 && bytes == 4) { /* 1.5 in f32 arithmetic */
			memcpy(&wide, &bits, sizeof wide);
			narrow = (float)wide;
			bits = 0;
			memcpy(&bits, &narrow, sizeof narrow);
		}
		return constant(p, bytes, bits, false, unit);
	}
	case OPERAND_NAME: return named_value(p, o, bytes, unit);
	default: return decode_wrong(p, "a register or a number was expected");
	}
}

/* ---- Arithmetic ---- */

/* True where the row fits the operands' sizes; a conversion may have wider registers. */
static bool fits(const parser *p, const sim_op *op)
{
	return p->operands[0].bytes == op->d &&
	       (p->operands[1].kind != OPERAND_REGISTER || p->operands[1].bytes == op->a);
}

/* bfi's position, in `unit`, and length become one operand. */
static bool field_of(parser *p, const operand *length, uint32_t *unit)
{
	const sim_op *op = find_row(p, "field");
	uint32_t b, d = parse_new_unit(p, 4);
	assert(op);
	if (!decode_unit(p, length, 4, &b)) return false;
	sim_instr *in = decode_new(p, SIM_ALU);
	if (!in) return false;
	in->op = op;
	in->lanes = op->lanes;
	in->shadow = op->shadow;
	in->d = d;
	in->a = *unit;
	in->b = b;
	memcpy(in->wide, (const uint8_t[]){4, 4, 4, 0}, sizeof in->wide);
	*unit = d;
	return true;
}

static bool arithmetic(parser *p, const sim_op *op)
{
	uint32_t sources = 1u + (op->b != 0) + (op->c != 0);
	bool immediate = p->noperands == sources + 2; /* bfi's length, lop3's table */
	if (p->noperands != sources + 1 && !immediate) return decode_wrong(p, "a wrong number of operands");
	const operand *o = p->operands;
	bool field = immediate && op->c == 4 && strncmp(op->name, "bfi.", 4) == 0;
	if (immediate && !field && o[sources + 1].kind != OPERAND_NUMBER) return decode_unknown(p);
	if (o[0].kind == OPERAND_SINK) return true;
	if (o[0].kind != OPERAND_REGISTER || o[0].bytes != op->d) return decode_wrong(p, "a wrong destination");
	uint32_t units[3] = {0};
	const uint8_t bytes[3] = {op->a, op->b, op->c};
	for (uint32_t i = 0; i < sources; i++)
		if (!decode_unit(p, &o[i + 1], bytes[i], &units[i])) return false;
	if (field && !field_of(p, &o[sources + 1], &units[2])) return false;
	sim_instr *in = decode_new(p, SIM_ALU);
	if (!in) return false;
	in->op = op;
	in->lanes = op->lanes;
	in->shadow = op->shadow;
	in->d = o[0].unit;
	in->a = units[0];
	in->b = units[1];
	in->c = units[2];
	memcpy(in->wide, (const uint8_t[]){op->d, op->a, op->b, op->c}, sizeof in->wide);
	if (immediate && !field) in->offset = (int64_t)o[sources + 1].bits;
	return true;
}

/* mov.b64 {a, b}, c and c, {a, b}. */
static bool moves_parts(parser *p)
{
	const operand *d = &p->operands[0], *a = &p->operands[1];
	bool packs = a->kind == OPERAND_LIST;
	const operand *list = packs ? a : d, *whole = packs ? d : a;
	scalar type;
	if (!decode_type(p->parts[1], &type) || p->nparts != 2 || list->count < 2 || list->count > 4)
		return decode_unknown(p);
	uint8_t bytes = (uint8_t)scalar_bytes(type), part = (uint8_t)(bytes / list->count);
	uint32_t unit, regs[4] = {0};
	if (part < 2 || part * list->count != bytes || (packs && whole->kind != OPERAND_REGISTER) ||
		whole->kind == OPERAND_LIST)
		return decode_unknown(p);
	if (!decode_unit(p, whole, bytes, &unit)) return false;
	for (uint32_t i = 0; i < list->count; i++) {
		const operand *o = &p->operands[list->first + i];
		regs[i] = UINT32_MAX;
		if (o->kind == OPERAND_SINK && !packs) continue;
		if (!packs && o->kind != OPERAND_REGISTER) return decode_wrong(p, "registers were expected");
		if (!decode_unit(p, o, part, &regs[i])) return false;
	}
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = packs ? sim_step_pack : sim_step_unpack;
	in->nregs = (uint8_t)list->count;
	in->bytes = part;
	in->wide[0] = bytes;
	if (packs)
		in->d = unit;
	else
		in->a = unit;
	memcpy(in->regs, regs, sizeof regs);
	return true;
}

/* ---- Predicates ---- */

enum { LOGIC_NONE, LOGIC_AND, LOGIC_OR, LOGIC_XOR, LOGIC_NOT, LOGIC_MOVE };

static uint8_t logic_of(const char *s)
{
	static const char *const names[] = {"", "and", "or", "xor", "not", "mov"};
	for (uint8_t i = 1; i < 6; i++)
		if (strcmp(s, names[i]) == 0) return i;
	return LOGIC_NONE;
}

static const sim_compare_op *find_compare(const char *order, const char *type)
{
	char name[2 * PARSE_OPCODE];
	strcpy(name, "setp.");
	strcat(strcat(strcat(name, order), "."), type);
	for (size_t i = 0; i < sim_ncompare_ops; i++)
		if (strcmp(sim_compare_ops[i].name, name) == 0) return &sim_compare_ops[i];
	return NULL;
}

static sim_instr *compare(parser *p, const sim_compare_op *op, const operand *sources)
{
	uint32_t a, b;
	if (!decode_unit(p, &sources[0], op->bytes, &a) || !decode_unit(p, &sources[1], op->bytes, &b)) return NULL;
	sim_instr *in = decode_new(p, SIM_COMPARE);
	if (!in) return NULL;
	in->compare = op->compare;
	in->wide[1] = in->wide[2] = op->bytes;
	in->a = a;
	in->b = b;
	return in;
}

/* setp.gt.f16x2 p|q, a, b: of the lower halves, and of the upper ones. */
static bool compares_halves(parser *p, const sim_compare_op *op)
{
	const operand *o = p->operands;
	uint32_t whole, half[2][2];
	if (!op || p->nparts != 3 || p->noperands != 4) return decode_unknown(p);
	for (uint32_t i = 0; i < 2; i++) {
		if (o[i].kind != OPERAND_PREDICATE) return decode_wrong(p, "a predicate was expected");
		for (uint32_t k = 0; k < 2; k++) half[i][k] = parse_new_unit(p, 2);
		sim_instr *in = decode_unit(p, &o[2 + i], 4, &whole) ? decode_new(p, SIM_STEP) : NULL;
		if (!in) return false;
		in->step = sim_step_unpack;
		in->nregs = in->bytes = 2;
		in->wide[0] = 4;
		in->a = whole;
		memcpy(in->regs, half[i], sizeof half[i]);
	}
	for (uint32_t k = 0; k < 2; k++) {
		sim_instr *in = decode_new(p, SIM_COMPARE);
		if (!in) return false;
		in->compare = op->compare;
		in->wide[1] = in->wide[2] = 2;
		in->a = half[0][k];
		in->b = half[1][k];
		in->d = o[k].unit;
	}
	return true;
}

/* setp.lt.and.f32 p|q, a, b, !c */
static bool compares(parser *p)
{
	if (p->nparts < 3) return decode_unknown(p);
	const char *last = p->parts[p->nparts - 1];
	if (strcmp(last, "f16x2") == 0) return compares_halves(p, find_compare(p->parts[1], "f16"));
	if (strcmp(last, "bf16x2") == 0) return compares_halves(p, find_compare(p->parts[1], "bf16"));
	bool flushes = strcmp(p->parts[p->nparts - 2], "ftz") == 0;
	size_t named = flushes ? p->nparts - 1 : p->nparts;
	uint8_t logic = named > 3 ? logic_of(p->parts[2]) : LOGIC_NONE;
	const sim_compare_op *op = find_compare(p->parts[1], flushes ? "ftz.f32" : last);
	if (!op || named != (logic ? 4u : 3u) || logic > LOGIC_XOR) return decode_unknown(p);
	const operand *o = p->operands;
	uint32_t destinations = p->noperands - 2u - (logic != 0);
	if (p->noperands < 3 || destinations < 1 || destinations > 2)
		return decode_wrong(p, "a wrong number of operands");
	for (uint32_t i = 0; i < destinations; i++)
		if (o[i].kind != OPERAND_PREDICATE && o[i].kind != OPERAND_SINK)
			return decode_wrong(p, "a predicate was expected");
	sim_instr *in = compare(p, op, &o[destinations]);
	if (!in) return false;
	in->d = o[0].unit; /* of a sink: 0 */
	in->e = destinations == 2 ? o[1].unit : 0;
	in->mode = logic;
	if (logic) {
		const operand *with = &o[destinations + 2];
		if (with->kind != OPERAND_PREDICATE) return decode_wrong(p, "a predicate was expected");
		in->c = with->unit;
		in->exchanges = with->negated;
	}
	return true;
}

/* testp.finite.f32 p, a */
static bool tests(parser *p)
{
	const operand *o = p->operands;
	const sim_compare_op *op = p->nparts == 3 ? find_compare(p->parts[1], p->parts[2]) : NULL;
	if (!op) return decode_unknown(p);
	if (p->noperands != 2 || o[0].kind != OPERAND_PREDICATE) return decode_wrong(p, "wrong operands");
	sim_instr *in = compare(p, op, (const operand[]){o[1], o[1]});
	if (in) in->d = o[0].unit;
	return in != NULL;
}

static bool choose(parser *p, uint8_t bytes, const operand *o, uint32_t holds)
{
	uint32_t a, b;
	if (o[0].kind != OPERAND_REGISTER || o[0].bytes != bytes) return decode_wrong(p, "wrong operands");
	if (!decode_unit(p, &o[1], bytes, &a) || !decode_unit(p, &o[2], bytes, &b)) return false;
	sim_instr *in = decode_new(p, SIM_SELECT);
	if (!in) return false;
	in->d = o[0].unit;
	in->a = o[3].negated ? b : a;
	in->b = o[3].negated ? a : b;
	in->c = holds;
	in->wide[0] = in->wide[1] = in->wide[2] = bytes;
	return true;
}

/* slct.b32.s32 d, a, b, c: a where c is no less than 0. */
static bool selects_by_sign(parser *p)
{
	scalar type;
	const operand zero = {.kind = OPERAND_NUMBER}, *o = p->operands;
	const sim_compare_op *op = p->nparts == 3 ? find_compare("ge", p->parts[2]) : NULL;
	uint32_t holds = p->code->predicates++;
	if (!op || !decode_type(p->parts[1], &type) || p->noperands != 4) return decode_unknown(p);
	sim_instr *in = compare(p, op, (const operand[]){o[3], zero});
	if (!in) return false;
	in->d = holds;
	return choose(p, (uint8_t)scalar_bytes(type), o, holds);
}

/* set.gt.u32.s32 d, a, b: all ones or 1.0 where it holds; a comparison and a choice. */
static bool sets(parser *p)
{
	const operand *o = p->operands;
	bool number = p->nparts == 4 && strcmp(p->parts[2], "f32") == 0;
	const sim_compare_op *op = p->nparts == 4 ? find_compare(p->parts[1], p->parts[3]) : NULL;
	if (!op || (!number && strcmp(p->parts[2], "u32") != 0 && strcmp(p->parts[2], "s32") != 0))
		return decode_unknown(p);
	if (p->noperands != 3 || o[0].kind != OPERAND_REGISTER || o[0].bytes != 4)
		return decode_wrong(p, "wrong operands");
	uint32_t yes, no, holds = p->code->predicates++;
	if (!constant(p, 4, number ? 0x3f800000 : UINT32_MAX, false, &yes) || !constant(p, 4, 0, false, &no))
		return false;
	sim_instr *in = compare(p, op, &o[1]);
	if (!in) return false;
	in->d = holds;
	in = decode_new(p, SIM_SELECT);
	if (!in) return false;
	in->d = o[0].unit;
	in->a = yes;
	in->b = no;
	in->c = holds;
	in->wide[0] = in->wide[1] = in->wide[2] = 4;
	return true;
}

static bool selects(parser *p)
{
	scalar type;
	const operand *o = p->operands;
	if (p->nparts != 2 || !decode_type(p->parts[1], &type)) return decode_unknown(p);
	if (p->noperands != 4 || o[3].kind != OPERAND_PREDICATE) return decode_wrong(p, "wrong operands");
	return choose(p, (uint8_t)scalar_bytes(type), o, o[3].unit);
}

/* and.pred d, a, b; not.pred d, a; mov.pred d, a */
static bool logic(parser *p)
{
	const operand *o = p->operands;
	uint8_t what = logic_of(p->parts[0]);
	uint32_t sources = what == LOGIC_NOT || what == LOGIC_MOVE ? 1 : 2;
	if (p->nparts != 2) return decode_unknown(p);
	if (p->noperands != sources + 1 || o[0].kind != OPERAND_PREDICATE)
		return decode_wrong(p, "predicates were expected");
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = sim_step_logic;
	in->mode = what;
	in->d = o[0].unit;
	for (uint32_t i = 1; i <= sources; i++) {
		bool number = o[i].kind == OPERAND_NUMBER;
		if (!number && o[i].kind != OPERAND_PREDICATE) return decode_wrong(p, "predicates were expected");
		/* predicate 0 is true, so a constant is it or its negation */
		*(i == 1 ? &in->a : &in->b) = number ? 0 : o[i].unit;
		*(i == 1 ? &in->exchanges : &in->saturates) = number ? o[i].bits == 0 : o[i].negated;
	}
	return true;
}

/* ---- Control flow ---- */

static bool branches(parser *p)
{
	const operand *o = p->operands;
	if (p->noperands != 1 || o[0].kind != OPERAND_NAME) return decode_wrong(p, "a label was expected");
	sim_instr *in = decode_new(p, SIM_BRANCH);
	return in && parse_use(p, o[0].name, o[0].length, (int32_t)p->code->n - 1, false);
}

enum { MAX_EDGES = 10000000 }; /* of all switches: many may share one long list */

/* brx.idx index, list; */
static bool branches_by_index(parser *p)
{
	const operand *o = p->operands;
	const target_list *list = NULL;
	uint32_t index;
	if (p->nparts < 2 || strcmp(p->parts[1], "idx") != 0) return decode_unknown(p);
	if (p->noperands != 2 || o[1].kind != OPERAND_NAME) return decode_wrong(p, "an index and a list were expected");
	for (size_t i = 0; i < p->nlists; i++)
		if (p->lists[i].length == o[1].length && memcmp(p->lists[i].name, o[1].name, o[1].length) == 0)
			list = &p->lists[i];
	if (!list) return parse_fail(p, "no list of targets %.*s", (int)o[1].length, o[1].name);
	if (!decode_unit(p, &o[0], 4, &index)) return false;
	if ((p->edges += list->n) > MAX_EDGES) return decode_wrong(p, "more targets than can be simulated");
	sim_instr *in = decode_new(p, SIM_SWITCH);
	if (!in) return false;
	in->a = index;
	in->wide[1] = 4;
	in->target = list->first;
	in->ntargets = list->n;
	return true;
}

static bool decode_any(parser *p)
{
	const char *first = p->parts[0], *last = p->parts[p->nparts - 1];
	if (!make_rows(p)) return false;
	if (strcmp(first, "mov") == 0 && p->noperands == 2 &&
		(p->operands[0].kind == OPERAND_LIST || p->operands[1].kind == OPERAND_LIST))
		return moves_parts(p);
	const sim_op *op = find_row(p, p->opcode);
	if (op && (strcmp(first, "cvt") != 0 || fits(p, op))) return arithmetic(p, op);
	if (strcmp(first, "setp") == 0) return compares(p);
	if (strcmp(first, "testp") == 0) return tests(p);
	if (strcmp(first, "slct") == 0) return selects_by_sign(p);
	if (strcmp(first, "set") == 0) return sets(p);
	if (strcmp(first, "selp") == 0) return selects(p);
	if (p->nparts > 1 && strcmp(last, "pred") == 0 && logic_of(first)) return logic(p);
	if (!decode_known_form(p)) return false;
	if (strcmp(first, "bra") == 0) return branches(p);
	if (strcmp(first, "brx") == 0) return branches_by_index(p);
	if (decode_convert(p) || p->failed) return !p->failed;
	if (decode_access(p) || p->failed) return !p->failed;
	if (decode_warp(p) || p->failed) return !p->failed;
	if (decode_matrix(p) || p->failed) return !p->failed;
	if (decode_mbarrier(p) || p->failed) return !p->failed;
	if (decode_cluster(p) || p->failed) return !p->failed;
	if (decode_warpgroup(p) || p->failed) return !p->failed;
	if (decode_bulk(p) || p->failed) return !p->failed;
	if (decode_async(p) || p->failed) return !p->failed;
	if (decode_check(p) || p->failed) return !p->failed;
	return decode_unknown(p);
}

bool decode_statement(parser *p)
{
	uint8_t part = p->part;
	if (!decode_any(p)) return false;
	if (part) p->part = 0; /* it was of this statement */
	return true;
}
