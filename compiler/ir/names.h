/* A map from strings to 64-bit numbers in an arena: what the printer and the reader of the text form name values with.
 *
 * In: names that need not end in NUL.  Out: a slot per name, zero when it is new.
 * The one idea: open addressing, never more than half full, no removal. */
#ifndef BLK_IR_NAMES_H
#define BLK_IR_NAMES_H

#include "../support/arena.h"

typedef struct ir_names {
	arena *arena;
	struct ir_name {
		const char *name; /* null: empty */
		size_t n;
		uint64_t value;
	} * slots;
	uint32_t used, room; /* room: a power of two, or 0 */
} ir_names;

/* The number that belongs to the name, added as 0 when new.  Valid until the next call.  The bytes are not copied. */
uint64_t *ir_names_slot(ir_names *, const char *name, size_t n);

#endif
