/* The body of an entry: labels, directives, and the operands of each statement; decode.c makes the instructions. */
#include "parse.h"

#include <string.h>

/* ---- Operands ---- */

static bool operands(parser *p, const char *end, uint32_t *first, uint32_t *count);

static bool named(parser *p, operand *o)
{
	uint32_t index;
	const declaration *d = parse_find(p, p->now.text, p->now.n, &index);
	if (d) {
		o->kind = d->bytes ? OPERAND_REGISTER : OPERAND_PREDICATE;
		o->unit = d->unit + index * d->stride;
		o->bytes = d->bytes;
		o->percent = p->now.text[0] == '%';
	} else if (parse_is(p, "_")) {
		o->kind = OPERAND_SINK;
	} else {
		o->kind = OPERAND_NAME;
		o->name = p->now.text;
		o->length = p->now.n;
	}
	return parse_next(p);
}

static bool offset(parser *p, operand *o)
{
	while (parse_is(p, "+") || parse_is(p, "-")) {
		bool negative = parse_is(p, "-");
		if (!parse_next(p)) return false;
		if (parse_accept(p, "-")) negative = !negative;
		if (p->now.kind != WORD_NUMBER) return parse_fail(p, "a number was expected");
		o->bits += negative ? 0 - p->now.bits : p->now.bits;
		if (!parse_next(p)) return false;
	}
	return true;
}

static bool address(parser *p, operand *o)
{
	operand base = {0};
	if (p->now.kind == WORD_NUMBER) {
		base = (operand){.kind = OPERAND_NUMBER, .bits = p->now.bits};
		if (!parse_next(p)) return false;
	} else if (p->now.kind != WORD_NAME || !named(p, &base))
		return parse_fail(p, "an address was expected");
	if (base.kind == OPERAND_PREDICATE || base.kind == OPERAND_SINK)
		return parse_fail(p, "an address was expected");
	*o = base;
	o->kind = OPERAND_ADDRESS;
	if (!offset(p, o)) return false;
	if (parse_accept(p, ",") && (!parse_expect(p, "{") || !operands(p, "}", &o->first, &o->count))) return false;
	return parse_expect(p, "]");
}

static bool one_operand(parser *p, operand *o)
{
	*o = (operand){0};
	if (parse_accept(p, "!")) o->negated = true;
	if (parse_accept(p, "{")) {
		o->kind = OPERAND_LIST;
		return operands(p, "}", &o->first, &o->count);
	}
	if (parse_accept(p, "(")) {
		o->kind = OPERAND_LIST;
		return operands(p, ")", &o->first, &o->count);
	}
	if (parse_accept(p, "[")) return address(p, o);
	if (p->now.kind == WORD_NAME) return named(p, o) && (o->kind != OPERAND_NAME || offset(p, o));
	bool negative = parse_accept(p, "-");
	if (p->now.kind != WORD_NUMBER) return parse_fail(p, "an operand was expected");
	o->kind = OPERAND_NUMBER;
	o->float_bytes = p->now.float_bytes;
	o->bits = p->now.bits;
	if (negative && o->float_bytes)
		o->bits ^= UINT64_C(1) << (8 * o->float_bytes - 1);
	else if (negative)
		o->bits = 0 - o->bits;
	return parse_next(p);
}

/* A list in braces; its operands lie together, behind what is in use. */
static bool operands(parser *p, const char *end, uint32_t *first, uint32_t *count)
{
	operand list[PARSE_OPERANDS];
	uint32_t n = 0;
	if (++p->depth > 8) return parse_fail(p, "braces that are nested too deep");
	while (!parse_accept(p, end)) {
		if (p->failed || n == PARSE_OPERANDS) return parse_fail(p, "too many operands");
		if (!one_operand(p, &list[n++])) return false;
		if (!parse_is(p, end) && !parse_expect(p, ",")) return false;
	}
	p->depth--;
	if (p->used + n > PARSE_OPERANDS) return parse_fail(p, "too many operands");
	*first = p->used;
	*count = n;
	memcpy(p->operands + p->used, list, n * sizeof list[0]);
	p->used += n;
	return !p->failed;
}

/* ---- Statements ---- */

static bool cut_opcode(parser *p)
{
	if (p->now.kind != WORD_NAME || p->now.n >= PARSE_OPCODE) return parse_fail(p, "an instruction was expected");
	memcpy(p->opcode, p->now.text, p->now.n);
	p->opcode[p->now.n] = 0;
	memcpy(p->parts_text, p->opcode, p->now.n + 1);
	p->nparts = 0;
	for (char *s = p->parts_text; s; p->nparts++) {
		if (p->nparts == PARSE_PARTS) return parse_fail(p, "unknown instruction %s", p->opcode);
		p->parts[p->nparts] = s;
		if ((s = strchr(s, '.'))) *s++ = 0;
	}
	for (size_t i = p->nparts; i < PARSE_PARTS; i++) p->parts[i] = ""; /* so that each may be compared */
	return parse_next(p);
}

static bool guard(parser *p)
{
	operand o;
	p->guard = 0;
	p->guard_negated = false;
	if (!parse_accept(p, "@")) return !p->failed;
	if (!one_operand(p, &o)) return false;
	if (o.kind != OPERAND_PREDICATE) return parse_fail(p, "a predicate was expected behind '@'");
	p->guard = (uint16_t)o.unit;
	p->guard_negated = o.negated;
	return true;
}

/* "opcode a, b|c, [d];": the operands of the statement stand first, in order. */
static bool statement(parser *p)
{
	p->used = p->noperands = 0;
	p->statement_line = p->now.line;
	operand list[PARSE_FIRST];
	uint32_t n = 0;
	if (!guard(p) || !cut_opcode(p)) return false;
	p->used = PARSE_FIRST; /* lists lie behind */
	while (!parse_is(p, ";")) {
		if (n == PARSE_FIRST) return parse_fail(p, "too many operands");
		if (!one_operand(p, &list[n++])) return false;
		if (!parse_is(p, ";") && !parse_accept(p, "|") && !parse_expect(p, ",")) return false;
	}
	memcpy(p->operands, list, n * sizeof list[0]);
	p->noperands = n;
	bool good = decode_statement(p);
	p->statement_line = 0;
	return good && parse_next(p);
}

static bool add_label(parser *p, const char *name, size_t length)
{
	label *all = parse_grow(p, p->labels, p->nlabels, &p->labels_room, sizeof *all);
	if (!all) return false;
	p->labels = all;
	all[p->nlabels++] = (label){.name = name, .length = length, .pc = (int32_t)p->code->n};
	return true;
}

bool parse_use(parser *p, const char *name, size_t length, int32_t pc, bool listed)
{
	label *all = parse_grow(p, p->uses, p->nuses, &p->uses_room, sizeof *all);
	if (!all) return false;
	p->uses = all;
	uint32_t line = p->statement_line ? p->statement_line : p->now.line;
	all[p->nuses++] = (label){name, length, pc, line, listed};
	return true;
}

/* "name: .branchtargets A, B;" */
static bool branch_targets(parser *p, const char *name, size_t length)
{
	sim_code *c = p->code;
	target_list *all = parse_grow(p, p->lists, p->nlists, &p->lists_room, sizeof *all);
	if (!all) return false;
	p->lists = all;
	target_list *list = &all[p->nlists++];
	*list = (target_list){name, length, (int32_t)c->ntargets, 0};
	do {
		if (p->now.kind != WORD_NAME) return parse_fail(p, "a label was expected");
		int32_t *targets = parse_grow(p, c->targets, c->ntargets, &c->targets_room, sizeof *targets);
		if (!targets) return false;
		c->targets = targets;
		targets[c->ntargets] = SIM_NO_PC;
		if (!parse_use(p, p->now.text, p->now.n, (int32_t)c->ntargets++, true) || !parse_next(p)) return false;
		list->n++;
	} while (parse_accept(p, ","));
	return parse_expect(p, ";");
}

bool parse_skip(parser *p)
{
	while (!parse_is(p, ";") && p->now.kind != WORD_END)
		if (!parse_next(p)) return false;
	return parse_next(p);
}

/* ".loc 1 16 23": line 0 says nothing new. */
static bool location(parser *p)
{
	uint32_t n[3];
	for (int i = 0; i < 3; i++) {
		if (p->now.kind != WORD_NUMBER) return parse_fail(p, "a malformed .loc");
		n[i] = (uint32_t)p->now.bits;
		if (!parse_next(p)) return false;
	}
	if (n[1]) p->file = n[0], p->source_line = n[1];
	while (parse_accept(p, ",")) /* function_name and inlined_at */
		while (p->now.kind == WORD_NUMBER || parse_is(p, "function_name") || parse_is(p, "inlined_at") ||
			parse_is(p, "+") || (p->now.kind == WORD_NAME && p->now.text[0] == '$'))
			if (!parse_next(p)) return false;
	return !p->failed;
}

/* ".param .b64 param0;" of a call is a register. */
static bool call_parameter(parser *p)
{
	scalar type;
	while (parse_accept(p, ".align"))
		if (!parse_next(p)) return false;
	if (p->now.kind != WORD_NAME || !decode_type(p->now.text + 1, &type) || !parse_next(p))
		return parse_fail(p, "a parameter's type was expected");
	const char *name = p->now.text;
	size_t length = p->now.n;
	uint8_t bytes = (uint8_t)scalar_bytes(type);
	return parse_next(p) && parse_declare(p, name, length, 0, bytes < 4 ? 4 : bytes) && parse_expect(p, ";");
}

bool parse_body(parser *p)
{
	uint32_t outer = p->depth = 0;
	while (!p->failed) {
		if (parse_accept(p, "{")) {
			outer = ++p->depth;
		} else if (parse_accept(p, "}")) {
			if (outer == 0) return !p->failed;
			while (p->ndeclarations && p->declarations[p->ndeclarations - 1].depth == outer)
				p->ndeclarations--;
			p->depth = --outer;
		} else if (parse_accept(p, ".reg")) {
			parse_registers(p);
		} else if (parse_accept(p, ".loc")) {
			location(p);
		} else if (parse_accept(p, ".param")) {
			call_parameter(p);
		} else if (parse_accept(p, ".local")) {
			parse_variables(p, SPACE_LOCAL, false);
		} else if (parse_accept(p, ".shared")) {
			parse_variables(p, SPACE_SHARED, false);
		} else if (parse_accept(p, ".pragma")) {
			parse_skip(p);
		} else if (p->now.kind == WORD_END) {
			parse_fail(p, "the text ends inside a kernel");
		} else {
			const char *name = p->now.text, *after = p->at;
			if (p->now.kind == WORD_NAME && *after == ':') {
				size_t length = p->now.n;
				parse_next(p);
				parse_expect(p, ":");
				if (parse_accept(p, ".branchtargets"))
					branch_targets(p, name, length);
				else
					add_label(p, name, length);
			} else
				statement(p);
		}
	}
	return false;
}
