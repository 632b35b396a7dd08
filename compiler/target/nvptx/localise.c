/* Local copies of values that are used everywhere, for functions of many thousand instructions.
 *
 * In: a function after LLVM's passes, in short blocks (support/blocks.c).  Out: the same function in which an operand
 * of inline asm is defined near it.  The one idea: code generation copies every operand of inline asm, and each pass
 * that merges one of these copies walks all uses of its source; with one predicate, constant or base address for ten
 * thousand accesses that is quadratic.  A *region* is a block with what it dominates, up to a number of instructions on
 * the way; at its head an opaque move makes the region's own copy.  ptxas sees through the move.
 *
 * The same for a value that is added to each register of a long tile: code generation compares each such addition with
 * all others that have an operand in common with it.  A copy serves a few of them.
 *
 * Dominators: Cooper, Harvey and Kennedy's iteration over reverse postorder. */
#include "lower.h"

#include <assert.h>
#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

enum {
	HUGE_FUNCTION = 6000, /* instructions; below, nothing is changed */
	REGION = 1000,        /* instructions on the way from a region's head to its last block */
	MANY_USES = 16,
	MANY_SUMS = 256, /* additions of one value in a function; below, nothing is changed */
	SUMS = 64,       /* of one copy of it */
};

typedef struct block_info {
	LLVMBasicBlockRef block;
	uint32_t size, rank;   /* instructions; place in reverse postorder, from 1, 0: not reached */
	uint32_t dominator;    /* immediate; like every link here an index into blocks */
	uint32_t head, way;    /* of its region; instructions from there to this block's end */
	uint32_t first, count; /* predecessors, in edges */
} block_info;

typedef struct local_copy {
	LLVMValueRef value, copy;
	uint32_t head;
	struct local_copy *next;
} local_copy;

typedef struct localiser {
	lower *l;
	LLVMTargetDataRef data;
	block_info *blocks; /* sorted by address, for look-up */
	uint32_t nblocks, nedges, size;
	uint32_t *edges, *order; /* blocks: predecessors of each; in reverse postorder */
	local_copy **buckets;
	uint32_t mask;
} localiser;

/* ---- the flow graph ---- */

static int by_address(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const block_info *)a)->block, y = (uintptr_t)((const block_info *)b)->block;
	return x < y ? -1 : x > y;
}

static uint32_t find(const localiser *z, LLVMBasicBlockRef b)
{
	block_info key = {.block = b};
	block_info *at = bsearch(&key, z->blocks, z->nblocks, sizeof key, by_address);
	return (uint32_t)(at - z->blocks);
}

static void collect_blocks(localiser *z)
{
	uint32_t n = 0;
	z->nblocks = LLVMCountBasicBlocks(z->l->function);
	z->blocks = ARENA_ARRAY(z->l->arena, block_info, z->nblocks);
	for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(z->l->function); b; b = LLVMGetNextBasicBlock(b), n++) {
		z->blocks[n].block = b;
		for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) z->blocks[n].size++;
		z->size += z->blocks[n].size;
		z->nedges += LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(b));
	}
	qsort(z->blocks, z->nblocks, sizeof *z->blocks, by_address);
}

static void collect_predecessors(localiser *z)
{
	z->edges = ARENA_ARRAY(z->l->arena, uint32_t, z->nedges);
	for (unsigned fill = 0; fill < 2; fill++) {
		for (uint32_t b = 0; b < z->nblocks; b++) {
			LLVMValueRef t = LLVMGetBasicBlockTerminator(z->blocks[b].block);
			for (unsigned i = 0; i < LLVMGetNumSuccessors(t); i++) {
				block_info *to = &z->blocks[find(z, LLVMGetSuccessor(t, i))];
				if (fill) z->edges[to->first + to->count] = b;
				to->count++;
			}
		}
		for (uint32_t b = 0, first = 0; !fill && b < z->nblocks; b++) {
			z->blocks[b].first = first;
			first += z->blocks[b].count;
			z->blocks[b].count = 0;
		}
	}
}

/* Depth first from the entry, without recursion: `way` holds the next successor meanwhile, `order` fills from its end.
 */
static uint32_t order_blocks(localiser *z, uint32_t entry)
{
	assert(entry < z->nblocks);
	uint32_t *stack = ARENA_ARRAY(z->l->arena, uint32_t, z->nblocks), depth = 0, left = z->nblocks;
	z->order = ARENA_ARRAY(z->l->arena, uint32_t, z->nblocks);
	stack[depth++] = entry;
	z->blocks[entry].rank = 1;
	while (depth) {
		block_info *b = &z->blocks[stack[depth - 1]];
		LLVMValueRef t = LLVMGetBasicBlockTerminator(b->block);
		if (b->way == LLVMGetNumSuccessors(t)) {
			z->order[--left] = stack[--depth];
			continue;
		}
		uint32_t to = find(z, LLVMGetSuccessor(t, b->way++));
		if (z->blocks[to].rank) continue;
		z->blocks[to].rank = 1;
		stack[depth++] = to;
	}
	for (uint32_t i = left; i < z->nblocks; i++) z->blocks[z->order[i]].rank = i + 1;
	return left;
}

static uint32_t common_dominator(const localiser *z, uint32_t a, uint32_t b)
{
	assert(a < z->nblocks && b < z->nblocks);
	while (a != b) {
		while (z->blocks[a].rank > z->blocks[b].rank) a = z->blocks[a].dominator;
		while (z->blocks[b].rank > z->blocks[a].rank) b = z->blocks[b].dominator;
	}
	return a;
}

static void find_dominators(localiser *z, uint32_t entry, uint32_t start)
{
	assert(entry < z->nblocks && start <= z->nblocks);
	for (uint32_t b = 0; b < z->nblocks; b++) z->blocks[b].dominator = UINT32_MAX;
	z->blocks[entry].dominator = entry;
	for (bool changed = true; changed;) {
		changed = false;
		for (uint32_t i = start + 1; i < z->nblocks; i++) {
			block_info *b = &z->blocks[z->order[i]];
			uint32_t best = UINT32_MAX;
			for (uint32_t k = 0; k < b->count; k++) {
				uint32_t from = z->edges[b->first + k];
				if (z->blocks[from].dominator == UINT32_MAX) continue;
				best = best == UINT32_MAX ? from : common_dominator(z, best, from);
			}
			changed |= b->dominator != best;
			b->dominator = best;
		}
	}
}

static void form_regions(localiser *z, uint32_t start)
{
	for (uint32_t i = start; i < z->nblocks; i++) {
		block_info *b = &z->blocks[z->order[i]], *over = &z->blocks[b->dominator];
		bool joins = b != over && over->way + b->size <= REGION;
		b->head = joins ? over->head : z->order[i];
		b->way = b->size + (joins ? over->way : 0);
	}
}

/* ---- the copies ---- */

/* Instructions and arguments that many use, and constants: the same one in two places is one register. */
static bool is_hot(LLVMValueRef v)
{
	if (LLVMIsConstant(v)) return true;
	unsigned n = 0;
	for (LLVMUseRef u = LLVMGetFirstUse(v); u && n < MANY_USES; u = LLVMGetNextUse(u)) n++;
	return n == MANY_USES;
}

static uint32_t home(const localiser *z, LLVMValueRef v, uint32_t entry)
{
	if (LLVMIsConstant(v)) return UINT32_MAX;
	return z->blocks[LLVMIsAInstruction(v) ? find(z, LLVMGetInstructionParent(v)) : entry].head;
}

/* The move and its constraints for a register of the value's type; null: the value stays as it is. */
static const char *move_of(const localiser *z, LLVMValueRef v, const char **constraints)
{
	LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(v));
	if (kind != LLVMIntegerTypeKind && kind != LLVMPointerTypeKind) return NULL;
	switch (LLVMSizeOfTypeInBits(z->data, LLVMTypeOf(v))) {
	case 1: return *constraints = "=b,b", LLVMIsConstant(v) ? NULL : "mov.pred $0, $1;";
	case 16: return *constraints = "=h,h", "mov.b16 $0, $1;";
	case 32: return *constraints = "=r,r", "mov.b32 $0, $1;";
	case 64: return *constraints = "=l,l", "mov.b64 $0, $1;";
	default: return NULL;
	}
}

static LLVMValueRef make_copy(const localiser *z, LLVMValueRef v, LLVMValueRef at)
{
	lower *l = z->l;
	const char *constraints, *form = move_of(z, v, &constraints);
	if (!form) return v;
	LLVMPositionBuilderBefore(l->builder, at);
	LLVMSetCurrentDebugLocation2(l->builder, NULL);
	LLVMTypeRef type = LLVMTypeOf(v), function = LLVMFunctionType(type, &type, 1, false);
	LLVMValueRef code = LLVMGetInlineAsm(function, form, strlen(form), constraints, strlen(constraints), true,
		false, LLVMInlineAsmDialectATT, false);
	return LLVMBuildCall2(l->builder, function, code, &v, 1, "");
}

static LLVMValueRef local(localiser *z, LLVMValueRef v, uint32_t head)
{
	uintptr_t hash = ((uintptr_t)v >> 4) * 31 + head;
	local_copy **bucket = &z->buckets[hash & z->mask];
	for (local_copy *c = *bucket; c; c = c->next)
		if (c->value == v && c->head == head) return c->copy;
	LLVMValueRef at = LLVMGetFirstInstruction(z->blocks[head].block);
	while (LLVMIsAPHINode(at)) at = LLVMGetNextInstruction(at);
	local_copy *c = ARENA_NEW(z->l->arena, local_copy);
	*c = (local_copy){.value = v, .copy = make_copy(z, v, at), .head = head, .next = *bucket};
	*bucket = c;
	return c->copy;
}

static void localise_block(localiser *z, const block_info *b, uint32_t entry)
{
	for (LLVMValueRef i = LLVMGetFirstInstruction(b->block); i; i = LLVMGetNextInstruction(i)) {
		if (!LLVMIsACallInst(i) || !LLVMIsAInlineAsm(LLVMGetCalledValue(i))) continue;
		for (unsigned k = 0; k < LLVMGetNumArgOperands(i); k++) {
			LLVMValueRef v = LLVMGetOperand(i, k);
			if (home(z, v, entry) == b->head || !is_hot(v)) continue;
			LLVMSetOperand(i, k, local(z, v, b->head));
		}
	}
}

/* ---- sums ---- */

static bool is_sum(LLVMValueRef i)
{
	return LLVMIsABinaryOperator(i) && LLVMGetInstructionOpcode(i) == LLVMAdd;
}

static bool is_added_often(LLVMValueRef v)
{
	unsigned n = 0;
	if (LLVMIsConstant(v)) return false;
	for (LLVMUseRef u = LLVMGetFirstUse(v); u && n < MANY_SUMS; u = LLVMGetNextUse(u)) n += is_sum(LLVMGetUser(u));
	return n == MANY_SUMS;
}

static void localise_sums(const localiser *z, LLVMBasicBlockRef b)
{
	LLVMValueRef value = NULL, copy = NULL;
	unsigned served = 0;
	for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
		for (unsigned k = 0; k < 2 && is_sum(i); k++) {
			LLVMValueRef v = LLVMGetOperand(i, k);
			if (v != value && !is_added_often(v)) continue;
			if (v != value || served == SUMS) copy = make_copy(z, v, i), served = 0;
			value = v;
			served++;
			LLVMSetOperand(i, k, copy);
			break;
		}
}

void lower_localise(lower *l, LLVMTargetDataRef data)
{
	localiser z = {.l = l, .data = data};
	collect_blocks(&z);
	for (uint32_t i = 0; z.size >= MANY_SUMS && i < z.nblocks; i++) localise_sums(&z, z.blocks[i].block);
	if (z.size < HUGE_FUNCTION) return;
	uint32_t entry = find(&z, LLVMGetEntryBasicBlock(l->function));
	collect_predecessors(&z);
	uint32_t start = order_blocks(&z, entry);
	find_dominators(&z, entry, start);
	form_regions(&z, start);
	uint32_t nbuckets = 1024;
	while (nbuckets < z.size / 8) nbuckets *= 2;
	z.mask = nbuckets - 1;
	z.buckets = ARENA_ARRAY(l->arena, local_copy *, nbuckets);
	for (uint32_t i = start; i < z.nblocks; i++) localise_block(&z, &z.blocks[z.order[i]], entry);
}
