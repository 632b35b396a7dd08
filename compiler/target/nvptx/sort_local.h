/* A sort whose keys do not fit in a thread's registers: see sort_local.c. */
#ifndef BLK_NVPTX_SORT_LOCAL_H
#define BLK_NVPTX_SORT_LOCAL_H

#include "lower.h"

enum { SORT_CHUNK_BITS = 5 };

typedef struct local_sort {
	ir_type key; /* i32 or i64 */
	/* of the index along the axis: bits in all; the lowest, SORT_CHUNK_BITS at least, in registers, then in lanes
	 */
	unsigned bits, registers, lanes;
	LLVMValueRef index; /* its part that the thread's number says, i32 */
	LLVMValueRef *v;    /* keys, in and out */
	uint32_t n;
	exchange *x;
} local_sort;

void lower_sort_local(lower *, const local_sort *);

#endif
