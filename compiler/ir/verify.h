/* The two halves of the verifier: verify.c checks the structure, verify_types.c one operation's own rule. */
#ifndef BLK_IR_VERIFY_H
#define BLK_IR_VERIFY_H

#include "ir.h"

/* Counts, types, attributes and the shape of the regions of one operation, whose structure is sound (no null
 * pointers, terminators present).  False: *why has half a sentence. */
bool ir_verify_op(const ir_op *, text *why);
bool ir_verify_type(ir_type, text *why);

bool ir_verify_fail(text *why, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* always false */

#endif
