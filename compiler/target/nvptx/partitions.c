/* Warps that compute, and one thread of others that copies.
 *
 * In: `partitions`, the last operation.  Out: a branch by the warp's number, which lane 0 is asked for, so that the
 * assembler sees that a warp goes one way; then each region's code.
 * The one idea: threads are numbered as if there were only those that compute; the others come behind them.  Barriers
 * of the computing ones are named and counted (lower_barrier), so nobody waits for those who copy but at mbarriers.
 *
 * Where there is a warpgroup of others, it hands registers over.  All of the SM's are the CTA's, in equal parts: of 384
 * threads each begins with 168.  The producer keeps 24 of them, so that those who compute have 240.  One that brings
 * parts of blocks to all programs of a cluster has more addresses, as has one that reads where a block is, and one
 * whose loops carry many cursors and bounds more scalars: they keep 40, and the others have 232.  Beside 16 warps they
 * keep 32: with 40 it would be 64, and each of the others, which have 112, would have 8 less. */
#include "lower.h"

#include <assert.h>

enum { KEPT_OF_MANY = 40, FEW_SCALARS = 35, UNIT = TARGET_REGISTER_UNIT, MOST = TARGET_CONSUMER_REGISTERS };

typedef struct split {
	unsigned kept, taken;
} split;

typedef struct scalars {
	const ir_op *loop; /* the outermost one */
	bool *seen;
	unsigned words;
} scalars;

static void count_scalar(scalars *s, const ir_value *v)
{
	bool parameter = !v->def && !v->block->parent; /* it can be read again */
	if (s->seen[v->id] || !ir_is_scalar(v) || parameter) return;
	if (v->def && (v->def->kind == IR_CONST || !ir_defined_outside(v, s->loop))) return;
	s->seen[v->id] = true;
	s->words += v->type.pointer || scalar_bits(v->type.elem) > 32 ? 2 : 1;
}

static void count_scalars(ir_op *o, void *context)
{
	scalars *s = context;
	for (unsigned i = 0; i < o->nargs; i++) count_scalar(s, ir_arg(o, i));
	for (unsigned r = 0; r < o->nregions && ir_is_loop(o); r++)
		for (unsigned i = 0; i < o->regions[r]->nargs; i++) count_scalar(s, o->regions[r]->args[i]);
}

/* Words that a loop of the block takes from outside, and that it and those in it carry. */
static unsigned most_scalars(lower *l, const ir_block *b)
{
	unsigned most = 0;
	for (ir_op *o = b->first; o; o = o->next) {
		scalars s = {.loop = o, .seen = ARENA_ARRAY(l->arena, bool, l->func->nvalues)};
		if (!ir_is_loop(o)) continue;
		count_scalars(o, &s);
		for (unsigned r = 0; r < o->nregions; r++) ir_walk(o->regions[r], count_scalars, &s);
		if (s.words > most) most = s.words;
	}
	return most;
}

static void find_load(ir_op *o, void *context)
{
	bool *found = context;
	*found |= o->kind == IR_LOAD && ir_loop_around(o);
}

/* A loop reads where a block is, from a table of pages say. */
static bool reads_places(ir_block *producer)
{
	bool found = false;
	ir_walk(producer, find_load, &found);
	return found;
}

static split split_registers(lower *l, ir_block *producer)
{
	const ir_func *f = l->func;
	bool many = f->cluster || reads_places(producer) || most_scalars(l, producer) > FEW_SCALARS;
	unsigned groups = ir_warps(f) / 4, least = many ? KEPT_OF_MANY : TARGET_PRODUCER_REGISTERS;
	unsigned begin = TARGET_SM_REGISTERS / (128 * (groups + 1)) / UNIT * UNIT; /* a thread, of all warpgroups */
	if (begin > MOST) begin = MOST;
	unsigned all = begin * (groups + 1), taken = (all - least + UNIT) / groups / UNIT * UNIT;
	if (taken > MOST) taken = MOST;
	return (split){all - groups * taken < begin ? all - groups * taken : begin, taken};
}

/* There is a warpgroup of others. */
static bool hands_over(const lower *l)
{
	return l->func->producer_warps >= 4;
}

static void set_registers(lower *l, const char *how, unsigned n)
{
	if (!hands_over(l)) return;
	assert(n >= 24 && n <= 256 && n % 8 == 0);
	lower_asm(l, arena_printf(l->arena, "setmaxnreg.%s.sync.aligned.u32 %u;", how, n), "", l->none, 0, NULL,
		LOWER_ASM_EFFECT | LOWER_ASM_WARP);
}

/* ---- turns ---- */

enum { TURNS = 2, WARPGROUP = 128 }; /* the first warpgroup's barrier; 0 and 1 are everybody's and the consumers' */

/* Of the warpgroup that waits, and of the one that arrives. */
static void turn(lower *l, const char *how, LLVMValueRef group)
{
	LLVMValueRef id = LLVMBuildAdd(l->builder, group, lower_i32(l, TURNS), "");
	lower_asm(l, arena_printf(l->arena, "bar.%s $0, %u;", how, 2 * WARPGROUP), "r", l->none, 1, &id,
		LOWER_ASM_EFFECT | LOWER_ASM_WARP);
}

void lower_turn_wait(lower *l, ir_op *o)
{
	(void)o;
	turn(l, "sync", lower_warpgroup(l));
}

void lower_turn_pass(lower *l, ir_op *o)
{
	(void)o;
	LLVMValueRef next = LLVMBuildAdd(l->builder, lower_warpgroup(l), lower_i32(l, 1), "");
	LLVMValueRef last = LLVMBuildICmp(l->builder, LLVMIntEQ, next, lower_i32(l, ir_warps(l->func) / 4), "");
	turn(l, "arrive", LLVMBuildSelect(l->builder, last, lower_i32(l, 0), next, ""));
}

/* The last warpgroup's part of the first one's first turn. */
static void begin_turns(lower *l)
{
	LLVMValueRef last = lower_i32(l, ir_warps(l->func) / 4 - 1);
	LLVMBasicBlockRef arrives = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	LLVMBuildCondBr(l->builder, LLVMBuildICmp(l->builder, LLVMIntEQ, lower_warpgroup(l), last, ""), arrives, after);
	LLVMPositionBuilderAtEnd(l->builder, arrives);
	turn(l, "arrive", lower_i32(l, 0));
	LLVMBuildBr(l->builder, after);
	LLVMPositionBuilderAtEnd(l->builder, after);
}

typedef struct numbers {
	lower *l;
	const ir_block *outside;
	bool *seen; /* by value id */
} numbers;

static void compute_here(lower *l, LLVMValueRef v)
{
	if (LLVMTypeOf(v) != l->i32 || LLVMIsConstant(v)) return;
	lower_asm(l, "", "r", l->none, 1, &v, LOWER_ASM_EFFECT);
}

/* What the operation takes of the numbers in front of the partitions is computed here, and not where it is taken. */
static void compute_operands(ir_op *o, void *context)
{
	numbers *n = context;
	for (unsigned i = 0; i < o->nargs; i++) {
		const ir_value *v = ir_arg(o, i);
		if (!v->def || v->def->block != n->outside || n->seen[v->id]) continue;
		n->seen[v->id] = true;
		bool set = o->kind == IR_BULK_COPY && ir_get_shares(o) > 1 && i == o->nargs - 1u;
		if (set)
			compute_here(n->l, n->l->partners[v->id] = lower_partners(n->l, o));
		else if (ir_is_scalar(v) && !v->type.pointer)
			compute_here(n->l, n->l->values[v->id].at[0]);
	}
}

/* Which programs share the producer's copies takes long to compute: that is done while the others arrive. */
static void wait_for_cluster(lower *l, const ir_op *partitions, unsigned region)
{
	assert(partitions->kind == IR_PARTITIONS && region < partitions->nregions);
	if (!l->func->cluster) return;
	numbers n = {l, partitions->block, ARENA_ARRAY(l->arena, bool, l->func->nvalues)};
	if (region) ir_walk(partitions->regions[region], compute_operands, &n);
	lower_intrinsic(l, "llvm.nvvm.barrier.cluster.wait.aligned", l->none, 0, NULL);
}

void lower_partitions(lower *l, ir_op *o)
{
	assert(o->kind == IR_PARTITIONS && o->nregions == 2);
	enum { COMPUTE, OTHERS, COPY, AFTER, BLOCKS };
	LLVMBasicBlockRef block[BLOCKS];
	for (unsigned i = 0; i < BLOCKS; i++) block[i] = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	if (!l->func->cluster) lower_barrier(l); /* the mbarriers are there, for all threads */
	LLVMValueRef computes =
		LLVMBuildICmp(l->builder, LLVMIntULT, lower_warp(l), lower_i32(l, ir_warps(l->func)), "");
	LLVMBuildCondBr(l->builder, computes, block[COMPUTE], block[OTHERS]);

	split registers = split_registers(l, o->regions[1]);
	if (hands_over(l)) {
		l->consumer_registers = registers.taken;
		l->producer_registers = registers.kept;
	}
	LLVMPositionBuilderAtEnd(l->builder, block[COMPUTE]);
	wait_for_cluster(l, o, 0);
	set_registers(l, "inc", registers.taken);
	l->partition = CONSUMERS;
	LLVMValueRef all = l->tid;
	lower_begin_groups(l);
	if (l->func->takes_turns) begin_turns(l);
	lower_block(l, o->regions[0]);
	LLVMBuildBr(l->builder, block[AFTER]);
	l->tid = all;

	LLVMPositionBuilderAtEnd(l->builder, block[OTHERS]);
	wait_for_cluster(l, o, 1);
	set_registers(l, "dec", registers.kept);
	LLVMValueRef one = LLVMBuildICmp(l->builder, LLVMIntEQ, l->tid, lower_i32(l, 32 * ir_warps(l->func)), "");
	LLVMBuildCondBr(l->builder, one, block[COPY], block[AFTER]);

	LLVMPositionBuilderAtEnd(l->builder, block[COPY]);
	l->partition = PRODUCER;
	lower_block(l, o->regions[1]);
	LLVMBuildBr(l->builder, block[AFTER]);
	l->partition = EVERYBODY;
	LLVMPositionBuilderAtEnd(l->builder, block[AFTER]);
}
