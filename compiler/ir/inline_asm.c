/* The registers of inline assembly.  See inline_asm.h. */
#include "inline_asm.h"

#include <string.h>

unsigned ir_asm_bits(ir_type t)
{
	return 8 * ir_element_bytes(t);
}

static ir_asm_fault fault(text *why, ir_asm_fault where, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static ir_asm_fault fault(text *why, ir_asm_fault where, const char *fmt, ...)
{
	va_list list;
	va_start(list, fmt);
	text_puts(why, arena_vprintf(why->arena, fmt, list));
	va_end(list);
	return where;
}

/* Registers that one value takes, in order; 0 when there are too many. */
static unsigned share_out(ir_asm_register *at, unsigned room, unsigned value, ir_type t, unsigned pack)
{
	unsigned bits = ir_asm_bits(t), each = pack > 1 && bits < 32 ? 32 / bits : 1, n = 0;
	assert(pack && !(pack & (pack - 1)));
	if (each > pack) each = pack;
	for (unsigned first = 0; first < pack; first += each, n++) {
		if (n == room) return 0;
		at[n] = (ir_asm_register){.value = (uint8_t)value, .first = (uint8_t)first, .n = (uint8_t)each};
	}
	return n;
}

/* The letters that a register with this content may have. */
static const char *letters(const ir_asm_register *r, ir_type t, unsigned pack)
{
	assert(r->n);
	unsigned bits = r->n * ir_asm_bits(t);
	if (t.elem == SCALAR_BOOL && pack == 1) return "brh";
	if (bits <= 16) return "hr";
	if (bits == 32) return t.elem == SCALAR_F32 ? "fr" : "r";
	return t.elem == SCALAR_F64 ? "dl" : "l";
}

typedef struct counts {
	unsigned outputs, inputs;
} counts;

/* "=r,=&f,r": calls for each; false when malformed. */
static bool read_constraints(const char *s, size_t n, ir_asm *out, counts *have)
{
	*have = (counts){0};
	for (size_t i = 0; i < n;) {
		size_t end = i;
		while (end < n && s[end] != ',') end++;
		bool output = i < end && s[i] == '=', early = output && i + 1 < end && s[i + 1] == '&';
		size_t letter = i + output + early;
		if (letter + 1 != end || !strchr("hrlfdb", s[letter]) || (output && have->inputs)) return false;
		unsigned number = output ? have->outputs++ : have->inputs++;
		if (number < (output ? out->noutputs : out->ninputs)) {
			ir_asm_register *r = &out->at[output ? number : out->noutputs + number];
			assert(number < IR_ASM_MAX_REGISTERS);
			r->letter = s[letter];
			r->early = early;
		}
		i = end + 1;
		if (end < n && i == n) return false; /* a comma at the end */
	}
	return true;
}

/* Every $ names an operand, or is a pair that stands for one. */
static ir_asm_fault check_code(const ir_asm *a, text *why)
{
	unsigned n = a->noutputs + a->ninputs;
	for (const char *s = a->code; (s = strchr(s, '$')); s++) {
		if (*++s == '$') continue;
		unsigned number = 0, digits = 0;
		for (; s[digits] >= '0' && s[digits] <= '9' && digits < 4; digits++)
			number = 10 * number + (unsigned)(s[digits] - '0');
		if (digits == 0)
			return fault(why, IR_ASM_CODE,
				"a '$' is followed by the number of a register; a dollar sign is written '$$'");
		if (number >= n)
			return fault(why, IR_ASM_CODE, "there is no '$%u': the constraints list %u register%s", number,
				n, n == 1 ? "" : "s");
		s += digits - 1;
	}
	return IR_ASM_GOOD;
}

static ir_asm_fault check_letters(
	const ir_asm *a, unsigned pack, const ir_type *results, const ir_type *args, text *why)
{
	for (unsigned i = 0; i < a->noutputs + a->ninputs; i++) {
		const ir_asm_register *r = &a->at[i];
		ir_type t = i < a->noutputs ? results[r->value] : args[r->value];
		assert(r->letter);
		const char *good = letters(r, t, pack);
		if (strchr(good, r->letter)) continue;
		const char *name = ir_type_name(why->arena, ir_element(t));
		if (r->n > 1)
			return fault(why, IR_ASM_CONSTRAINTS, "'%c' does not hold %u of %s: '%c' does", r->letter, r->n,
				name, good[0]);
		return fault(why, IR_ASM_CONSTRAINTS, "'%c' does not hold %s: '%c' does", r->letter, name, good[0]);
	}
	return IR_ASM_GOOD;
}

ir_asm_fault ir_asm_parse(const char *source, unsigned pack, unsigned nresults, const ir_type *results, unsigned nargs,
	const ir_type *args, ir_asm *out, text *why)
{
	const char *line = strchr(source, '\n');
	counts have;
	*out = (ir_asm){.code = line ? line + 1 : ""};
	if (!line) return fault(why, IR_ASM_CODE, "no line of constraints");
	for (unsigned i = 0; i < nresults + nargs; i++) {
		bool output = i < nresults;
		unsigned *n = output ? &out->noutputs : &out->ninputs;
		unsigned value = output ? i : i - nresults;
		unsigned made = share_out(out->at + out->noutputs + out->ninputs, IR_ASM_MAX_REGISTERS - *n, value,
			output ? results[i] : args[value], pack);
		if (!made)
			return fault(why, IR_ASM_CONSTRAINTS, "more than %d registers for %s", IR_ASM_MAX_REGISTERS,
				output ? "results" : "arguments");
		*n += made;
	}
	if (!read_constraints(source, (size_t)(line - source), out, &have))
		return fault(why, IR_ASM_CONSTRAINTS,
			"constraints are letters after PTX's registers, outputs first: \"=r,r\" or \"=f,f,f\"");
	if (have.outputs != out->noutputs || have.inputs != out->ninputs)
		return fault(why, IR_ASM_CONSTRAINTS,
			"the constraints have %u output%s and %u input%s, the call has %u and %u", have.outputs,
			have.outputs == 1 ? "" : "s", have.inputs, have.inputs == 1 ? "" : "s", out->noutputs,
			out->ninputs);
	ir_asm_fault found = check_letters(out, pack, results, args, why);
	return found ? found : check_code(out, why);
}
