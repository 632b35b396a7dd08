/* Groups of warps that have rows of their own.
 *
 * In: operations of the warps that compute, as if there were one group of num_warps warps.  Out: the same for each of
 * row_groups groups.
 * The one idea: a group computes what a program of num_warps warps would, so its threads are counted from 0 on and have
 * scratch of their own; barriers are of all groups, which have the same control flow. */
#include "lower.h"

#include <assert.h>

void lower_begin_groups(lower *l)
{
	if (l->func->row_groups == 1) return;
	l->tid = l->of_group;
	l->owners.n = l->tid_values.n = 0;
}

LLVMValueRef lower_scratch(lower *l, const ir_op *o)
{
	LLVMValueRef first = lower_i32(l, o->shared_offset);
	uint32_t each = o->shared_bytes / l->func->row_groups;
	if (l->func->row_groups == 1) return first;
	assert(l->partition == CONSUMERS && each * l->func->row_groups == o->shared_bytes);
	LLVMValueRef far = LLVMBuildMul(l->builder, lower_warpgroup(l), lower_i32(l, each), "");
	return LLVMBuildAdd(l->builder, far, first, "");
}

void lower_row_group(lower *l, ir_op *o)
{
	tile out = lower_new_tile(l, ir_result(o));
	out.at[0] = lower_warpgroup(l);
	lower_set(l, ir_result(o), out);
}
