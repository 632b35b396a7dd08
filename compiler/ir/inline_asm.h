/* Inline assembly: what the text of the operation says about registers.
 *
 * In: "CONSTRAINTS\nINSTRUCTION" (ir_op.text), the types of results and operands, and `pack`.  Out: a row for each
 * register of one instance of the instruction, results first, in the order of $0, $1, ...  The one idea: sema, the
 * verifier and the lowering read the text with one function, so that what the first accepts the last can write.
 *
 * An instance works on `pack` elements of every tile.  Types below 32 bits share 32-bit registers, the first element in
 * the lowest bits; wider ones take a register each.  With pack = 1 every element has a register of its own.
 *     h   16 bits: one element of 8 or 16 bits, or two of 8      f   one f32
 *     r   32 bits: up to 32 bits of anything                     d   one f64
 *     l   64 bits: one 64-bit element                            b   a predicate: one bool, pack = 1 */
#ifndef BLK_INLINE_ASM_H
#define BLK_INLINE_ASM_H

#include "ir.h"

enum { IR_ASM_MAX_REGISTERS = 32, IR_ASM_MAX_PACK = 16 }; /* registers: of results, and of operands */

typedef struct ir_asm_register {
	uint8_t value;    /* which result or operand */
	uint8_t first, n; /* elements of the instance that it holds */
	char letter;
	bool early; /* "=&": written before all operands are read */
} ir_asm_register;

typedef struct ir_asm {
	const char *code;
	unsigned noutputs, ninputs;
	ir_asm_register at[2 * IR_ASM_MAX_REGISTERS]; /* outputs, then inputs */
} ir_asm;

typedef enum ir_asm_fault { IR_ASM_GOOD, IR_ASM_CONSTRAINTS, IR_ASM_CODE } ir_asm_fault;

/* What is wrong, if anything, is in *why. */
ir_asm_fault ir_asm_parse(const char *source, unsigned pack, unsigned nresults, const ir_type *results, unsigned nargs,
	const ir_type *args, ir_asm *out, text *why);

/* Bits that an element takes in a register: bool counts as a byte. */
unsigned ir_asm_bits(ir_type);

#endif
