/* Where a kernel's registers go: an estimate, by source line, from layouts and lifetimes.  See pressure.c. */
#ifndef BLK_PRESSURE_H
#define BLK_PRESSURE_H

#include "passes/passes.h"

enum { PRESSURE_VALUES = 3 };

/* Registers of a thread that passes leave beside the tiles that they count (sums, operands, what a loop carries): for
 * addresses, cursors of multibuffers, rows' statistics, what a mask compares.  They have a loop before them.
 * select_mma looks at a product alone, without statistics and masks, and leaves fewer (wgmma_select.c). */
enum { PRESSURE_OTHERS = 26 };

typedef struct pressure_value {
	const ir_value *value;
	uint32_t registers;
} pressure_value;

/* One source line, at the operation where it keeps most. */
typedef struct pressure_line {
	const source_file *file;
	uint32_t line;
	span at;
	uint32_t position;                    /* of that operation in the function, outer before inner */
	uint32_t registers;                   /* 32-bit ones of a thread that hold values across the operation */
	pressure_value most[PRESSURE_VALUES]; /* the largest of them, largest first; value null: no more */
} pressure_line;

typedef struct pressure {
	VEC(pressure_line) lines; /* most registers first, then in order of the text */
} pressure;

/* Registers that a thread may have: those of an SM are for all. */
uint32_t pressure_most(const ir_func *);
/* Those of a consumer's thread, to which setmaxnreg hands over what a producer's warpgroup does not need. */
uint32_t pressure_most_beside_producer(const ir_func *);
/* Those that hold a value of a mapped function: a tile by its layout, else one. */
uint32_t pressure_registers(const ir_value *);
/* Of a mapped or scheduled function. */
pressure pressure_estimate(arena *, const ir_func *);
/* Labels on a diagnostic about registers: the lines that keep most, each with its largest values. */
void pressure_label(diags *, diag *, arena *, const ir_func *);

#endif
