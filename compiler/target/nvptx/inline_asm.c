/* The user's PTX, once for every `pack` registers of a tile.
 *
 * In: tiles of one layout and the text.  Out: tiles of that layout.  The one idea: ir_asm_parse() lists the registers
 * of one instance; here each becomes an operand of LLVM's inline asm, packed from elements before and unpacked after.
 * Which elements share an instance is nobody's business: where a thread has fewer than `pack`, it repeats them. */
#include "lower.h"

#include "ir/inline_asm.h"

#include <assert.h>

static LLVMTypeRef carrier(lower *l, char letter)
{
	switch (letter) {
	case 'b': return l->i1;
	case 'h': return l->i16;
	case 'l': return l->i64;
	case 'f': return l->f32;
	case 'd': return l->f64;
	default: return l->i32;
	}
}

static unsigned carrier_bits(char letter)
{
	return letter == 'h' ? 16 : letter == 'l' || letter == 'd' ? 64 : 32;
}

/* Bits of one element as an integer of that many bits. */
static LLVMValueRef bits_of(lower *l, ir_type t, LLVMValueRef v, unsigned bits)
{
	LLVMTypeRef own = lower_word_type(l, ir_asm_bits(t)), wide = lower_word_type(l, bits);
	if (t.elem == SCALAR_BOOL) return LLVMBuildZExt(l->builder, v, wide, "");
	if (LLVMTypeOf(v) != own) v = LLVMBuildBitCast(l->builder, v, own, "");
	if (ir_asm_bits(t) == bits) return v;
	return scalar_is_signed(t.elem) && scalar_is_integer(t.elem) ? LLVMBuildSExt(l->builder, v, wide, "")
								     : LLVMBuildZExt(l->builder, v, wide, "");
}

static LLVMValueRef from_bits(lower *l, ir_type t, LLVMValueRef v)
{
	LLVMTypeRef own = lower_word_type(l, ir_asm_bits(t)), type = lower_type(l, t);
	if (LLVMTypeOf(v) != own) v = LLVMBuildTrunc(l->builder, v, own, "");
	if (t.elem == SCALAR_BOOL) return LLVMBuildICmp(l->builder, LLVMIntNE, v, LLVMConstNull(own), "");
	return type == own ? v : LLVMBuildBitCast(l->builder, v, type, "");
}

static LLVMValueRef pack(lower *l, const ir_asm_register *r, ir_type t, tile v, uint32_t first)
{
	assert(first < v.n);
	LLVMValueRef all = NULL;
	unsigned bits = carrier_bits(r->letter), each = ir_asm_bits(t);
	if (r->letter == 'b') return v.at[first % v.n];
	for (unsigned k = 0; k < r->n; k++) {
		LLVMValueRef one = v.at[(first + r->first + k) % v.n];
		if (r->n == 1) {
			all = bits_of(l, t, one, bits);
			break;
		}
		one = LLVMBuildZExt(l->builder, bits_of(l, t, one, each), lower_word_type(l, bits), "");
		one = LLVMBuildShl(
			l->builder, one, LLVMConstInt(lower_word_type(l, bits), (uint64_t)k * each, false), "");
		all = all ? LLVMBuildOr(l->builder, all, one, "") : one;
	}
	LLVMTypeRef type = carrier(l, r->letter);
	return LLVMTypeOf(all) == type ? all : LLVMBuildBitCast(l->builder, all, type, "");
}

static void unpack(lower *l, const ir_asm_register *r, ir_type t, LLVMValueRef v, tile out, uint32_t first)
{
	assert(first < out.n);
	LLVMTypeRef word = lower_word_type(l, carrier_bits(r->letter));
	if (r->letter != 'b' && LLVMTypeOf(v) != word) v = LLVMBuildBitCast(l->builder, v, word, "");
	/* a bool that has the register for itself is true where any bit is set */
	if (t.elem == SCALAR_BOOL && r->n == 1 && r->letter != 'b')
		v = LLVMBuildZExt(
			l->builder, LLVMBuildICmp(l->builder, LLVMIntNE, v, LLVMConstNull(word), ""), word, "");
	for (unsigned k = 0; k < r->n; k++) {
		uint32_t at = first + r->first + k;
		if (at >= out.n) return;
		LLVMValueRef part = v;
		if (k) part = LLVMBuildLShr(l->builder, v, LLVMConstInt(word, (uint64_t)k * ir_asm_bits(t), false), "");
		out.at[at] = r->letter == 'b' ? v : from_bits(l, t, part);
	}
}

static const char *constraint_list(lower *l, const ir_asm *a)
{
	text out = {.arena = l->arena};
	for (unsigned i = 0; i < a->noutputs + a->ninputs; i++)
		text_printf(&out, "%s%s%s%c", i ? "," : "", i < a->noutputs ? "=" : "", a->at[i].early ? "&" : "",
			a->at[i].letter);
	return out.at;
}

static void instance(
	lower *l, const ir_op *o, const ir_asm *a, const char *constraints, const tile *in, tile *out, uint32_t first)
{
	LLVMValueRef args[IR_ASM_MAX_REGISTERS];
	LLVMTypeRef types[IR_ASM_MAX_REGISTERS];
	for (unsigned i = 0; i < a->noutputs; i++) types[i] = carrier(l, a->at[i].letter);
	for (unsigned i = 0; i < a->ninputs; i++) {
		const ir_asm_register *r = &a->at[a->noutputs + i];
		args[i] = pack(l, r, ir_element(ir_arg(o, r->value)->type), in[r->value], first);
	}
	LLVMTypeRef result =
		a->noutputs == 1 ? types[0] : LLVMStructTypeInContext(l->context, types, a->noutputs, false);
	LLVMValueRef made =
		lower_asm(l, a->code, constraints, result, a->ninputs, args, LOWER_ASM_EFFECT | LOWER_ASM_WARP);
	for (unsigned i = 0; i < a->noutputs; i++) {
		const ir_asm_register *r = &a->at[i];
		LLVMValueRef v = a->noutputs == 1 ? made : LLVMBuildExtractValue(l->builder, made, i, "");
		unpack(l, r, ir_element(o->results[r->value]->type), v, out[r->value], first);
	}
}

void lower_inline_asm(lower *l, ir_op *o)
{
	assert(o->kind == IR_INLINE_ASM);
	ir_type results[IR_ASM_MAX_REGISTERS], args[IR_ASM_MAX_REGISTERS];
	tile in[IR_ASM_MAX_REGISTERS], out[IR_ASM_MAX_REGISTERS];
	text why = {.arena = l->arena};
	ir_asm a;
	if (o->nargs > IR_ASM_MAX_REGISTERS || o->nresults > IR_ASM_MAX_REGISTERS) {
		lower_fail(l, o, "inline assembly with too many operands");
		return;
	}
	for (unsigned i = 0; i < o->nresults; i++) {
		results[i] = o->results[i]->type;
		out[i] = lower_new_tile(l, o->results[i]);
	}
	for (unsigned i = 0; i < o->nargs; i++) {
		args[i] = ir_arg(o, i)->type;
		in[i] = lower_arg(l, o, i);
	}
	if (ir_asm_parse(o->text, ir_get_pack(o), o->nresults, results, o->nargs, args, &a, &why)) {
		lower_fail(l, o, "%s", why.at);
		return;
	}
	const char *constraints = constraint_list(l, &a);
	for (uint32_t first = 0; first < out[0].n; first += ir_get_pack(o))
		instance(l, o, &a, constraints, in, out, first);
	for (unsigned i = 0; i < o->nresults; i++) lower_set(l, o->results[i], out[i]);
}
