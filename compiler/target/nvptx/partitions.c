/* Warps that compute, and one thread of others that copies.
 *
 * In: `partitions`, the last operation.  Out: a branch by the warp's number, which lane 0 is asked for, so that the
 * assembler sees that a warp goes one way; then each region's code.
 * The one idea: threads are numbered as if there were only those that compute; the others come behind them.  Barriers
 * of the computing ones are named and counted (lower_barrier), so nobody waits for those who copy but at mbarriers.
 *
 * Where there is a warpgroup of others, it hands registers over.  All of the SM's are the CTA's, in equal parts: of 384
 * threads each begins with 168.  The producer keeps 24 of them, so that those who compute have 240.  One that brings
 * parts of blocks to all programs of a cluster has more addresses, and keeps 40. */
#include "lower.h"

#include <assert.h>

enum { KEPT = 24, KEPT_IN_CLUSTER = 40, UNIT = 8, MOST = 240 };

typedef struct split {
	unsigned kept, taken;
} split;

static split split_registers(const ir_func *f)
{
	unsigned groups = f->num_warps / 4, least = f->cluster ? KEPT_IN_CLUSTER : KEPT;
	unsigned begin = TARGET_SM_REGISTERS / (128 * (groups + 1)) / UNIT * UNIT; /* a thread, of all warpgroups */
	if (begin > MOST) begin = MOST;
	unsigned all = begin * (groups + 1), taken = (all - least) / groups / UNIT * UNIT;
	if (taken > MOST) taken = MOST;
	return (split){all - groups * taken < begin ? all - groups * taken : begin, taken};
}

static void set_registers(lower *l, const char *how, unsigned n)
{
	if (l->func->producer_warps < 4) return;
	lower_asm(l, arena_printf(l->arena, "setmaxnreg.%s.sync.aligned.u32 %u;", how, n), "", l->none, 0, NULL,
		LOWER_ASM_EFFECT | LOWER_ASM_WARP);
}

void lower_partitions(lower *l, ir_op *o)
{
	enum { COMPUTE, OTHERS, COPY, AFTER, BLOCKS };
	LLVMBasicBlockRef block[BLOCKS];
	for (unsigned i = 0; i < BLOCKS; i++) block[i] = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	if (l->func->cluster) /* the mbarriers are there, for all threads */
		lower_meet_cluster(l);
	else
		lower_barrier(l);
	LLVMValueRef computes =
		LLVMBuildICmp(l->builder, LLVMIntULT, lower_warp(l), lower_i32(l, l->func->num_warps), "");
	LLVMBuildCondBr(l->builder, computes, block[COMPUTE], block[OTHERS]);

	split registers = split_registers(l->func);
	LLVMPositionBuilderAtEnd(l->builder, block[COMPUTE]);
	set_registers(l, "inc", registers.taken);
	l->partition = CONSUMERS;
	lower_block(l, o->regions[0]);
	LLVMBuildBr(l->builder, block[AFTER]);

	LLVMPositionBuilderAtEnd(l->builder, block[OTHERS]);
	set_registers(l, "dec", registers.kept);
	LLVMValueRef one = LLVMBuildICmp(l->builder, LLVMIntEQ, l->tid, lower_i32(l, 32 * l->func->num_warps), "");
	LLVMBuildCondBr(l->builder, one, block[COPY], block[AFTER]);

	LLVMPositionBuilderAtEnd(l->builder, block[COPY]);
	l->partition = PRODUCER;
	lower_block(l, o->regions[1]);
	LLVMBuildBr(l->builder, block[AFTER]);
	l->partition = EVERYBODY;
	LLVMPositionBuilderAtEnd(l->builder, block[AFTER]);
}
