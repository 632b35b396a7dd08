/* How one load, store or atomic touches memory: what the lowering emits and what reports tell. */
#ifndef BLK_ACCESS_H
#define BLK_ACCESS_H

#include "passes/passes.h"

typedef struct access_plan {
	unsigned width;   /* elements that one access covers */
	unsigned dim;     /* the dimension along which they are neighbours; 0 for scalars */
	unsigned proven;  /* elements that it might cover if a thread held so many neighbours */
	axis_limit limit; /* what limits `proven` */
} access_plan;

/* Of a mapped operation. */
access_plan access_plan_make(const pass_context *, const ir_op *);

#endif
