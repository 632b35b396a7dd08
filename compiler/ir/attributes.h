/* What printer, reader and verifier know of attributes: the rows of attributes.def and the ranges of their types. */
#ifndef BLK_IR_ATTRIBUTES_H
#define BLK_IR_ATTRIBUTES_H

#include "ir.h"

typedef enum attribute_type {
	ATTRIBUTE_bits,     /* a number in the container of the result's element type */
	ATTRIBUTE_axis,     /* 0 .. 3 */
	ATTRIBUTE_flag,     /* 0, 1 */
	ATTRIBUTE_natural,  /* 0, 1, .. */
	ATTRIBUTE_positive, /* 1, 2, .. */
	ATTRIBUTE_integer,  /* any */
	ATTRIBUTE_list,     /* [1,0]: up to 4 numbers of 16 bits, see ir_pack() */
	ATTRIBUTE_text,     /* ir_op.text, quoted */
	ATTRIBUTE_map,      /* ir_op.map, quoted */
	ATTRIBUTE_combine,  /* from here on the names of an enum */
	ATTRIBUTE_cache,
	ATTRIBUTE_evict,
	ATTRIBUTE_hint,
	ATTRIBUTE_rmw,
	ATTRIBUTE_sem,
	ATTRIBUTE_scope,
	ATTRIBUTE_precision,
	ATTRIBUTE_partition,
	ATTRIBUTE_proxy,
} attribute_type;

typedef struct attribute_info {
	const char *name;
	uint8_t place;
	bool always; /* printed also where it is 0 */
	attribute_type type;
} attribute_info;
extern const attribute_info ir_attributes[IR_ATTRIBUTE_COUNT];

typedef struct attribute_range {
	int64_t least, most;
	const char *const *names; /* of least .. most, or null */
} attribute_range;
attribute_range ir_attribute_range(attribute_type);

#endif
