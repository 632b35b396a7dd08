/* What the host can compute before a launch: the sums of parameters and constants that tensor maps, guards and bounds
 * are made of.
 *
 * In: a scalar or a pointer of a function.  Out: its postfix text as a signature has it (blkc.h), operators behind
 * their operands; or that it depends on what only the device knows (a program's number, a loop's counter, memory).
 *     (n + 15) / 16 * 2   ->   p3 15 + 16 / 2 *
 * The one idea: the host counts in i64, so what a narrower type would have wrapped is wrapped in the text. */
#ifndef BLK_HOST_VALUE_H
#define BLK_HOST_VALUE_H

#include "ir/ir.h"

enum { HOST_MOST_TEXT = 400 };

typedef struct host_values {
	arena *arena; /* of the texts */
	const ir_func *func;
} host_values;

bool host_value_known(const host_values *, const ir_value *);
const char *host_value_text(const host_values *, const ir_value *); /* of an integer; null: the host cannot */
/* The pointer parameter that the address begins with; null: it does not, or the host cannot compute the address. */
ir_value *host_value_address(const host_values *, ir_value *pointer, const char **expression);

/* A text read again, one token after the other, for who computes it on the device: parameters, numbers, and four of the
 * operators.  False: at the end, or where it has another one. */
typedef struct host_token {
	char kind;      /* 'p' parameter, 'n' number, '+', '*', '<' min, '>' max */
	uint32_t param; /* < the function's nparams */
	uint64_t number;
} host_token;
bool host_value_next(const char **expression, host_token *);
/* The largest power of two that is known to divide it; 0: the text has other tokens. */
uint64_t host_value_divisor(const ir_func *, const char *expression);

#endif
