/* A sum that each iteration scales, mostly by 1, and that conditional_rescale.c has left.
 *
 * In: a product, in a loop, of a tile of many registers and one factor a row, which is exp2(x - max(x, y)) or the like:
 * 1 in every row whose maximum y has not raised, or not by as much as a select asks for.  Out: the same bits; a warp in
 * which all factors are 1 goes past the multiplications.
 * The one idea: the rows of a warp are few, so all lanes are asked once (vote) whether anything is to be done, and go
 * one way together.  Times 1 is what it was, so nothing is rounded otherwise.  Multiplications that run beside
 * exponentials cost nothing, and are not asked for (mma_overlap.h).
 *
 *     %one = fcmp oeq %a0, 1.0; and ..              one compare a row that the thread has
 *     br (vote.all %one), %join, %scale
 *   scale: %y0 = fmul %x0, %a0 ..
 *   join:  phi .. */
#include "mma_overlap.h"
#include "lower.h"

enum { MOST_STEPS = 8 };

/* max(x, y), or what is x where some condition holds. */
static bool is_mostly(const ir_op *o, const ir_value *x)
{
	return o && ((o->kind == IR_MAX && (ir_arg(o, 0) == x || ir_arg(o, 1) == x)) ||
			    (o->kind == IR_SELECT && (ir_arg(o, 1) == x || ir_arg(o, 2) == x)));
}

/* x less such a value, or the other way round, times whatever. */
static bool is_zero_mostly(const ir_value *v, unsigned steps)
{
	const ir_op *o = v->def;
	if (!o || !steps) return false;
	if (o->kind == IR_MUL)
		return is_zero_mostly(ir_arg(o, 0), steps - 1) || is_zero_mostly(ir_arg(o, 1), steps - 1);
	if (o->kind != IR_SUB) return false;
	return is_mostly(ir_arg(o, 0)->def, ir_arg(o, 1)) || is_mostly(ir_arg(o, 1)->def, ir_arg(o, 0));
}

/* One factor a row, or a column. */
static bool is_one_mostly(const ir_value *v)
{
	const ir_op *o = v->def;
	if (!o || o->kind != IR_BROADCAST) return false;
	for (unsigned steps = MOST_STEPS; steps-- && o && (ir_has(o, IR_SHAPE) || o->kind == IR_CONVERT_LAYOUT);)
		o = ir_arg(o, 0)->def;
	return o && o->kind == IR_EXP2 && is_zero_mostly(ir_arg(o, 0), MOST_STEPS);
}

static bool among(const LLVMValueRef *list, uint32_t n, LLVMValueRef v)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i] == v) return true;
	return false;
}

/* The sum has been waited for before the exponentials that stood beside its product are done: multiplications are
 * interleaved with them, and a branch would be in between. */
static bool is_interleaved(const ir_func *f, const ir_value *sum)
{
	return sum->def && sum->def->kind == IR_WGMMA_WAIT && mma_overlap_outlasts(f, sum->def);
}

/* conditional_rescale.c has asked already. */
static bool is_voted(const ir_op *o)
{
	const ir_op *branch = o->block->parent;
	return branch->kind == IR_IF && ir_arg(branch, 0)->def && ir_arg(branch, 0)->def->kind == IR_WARP_ANY;
}

/* Which operand is the factor; 2: this is no such product. */
static unsigned find_factor(const ir_func *f, const ir_op *o)
{
	if (o->kind != IR_MUL || o->results[0]->type.elem != SCALAR_F32 || !ir_loop_around(o) || is_voted(o)) return 2;
	unsigned at = is_one_mostly(ir_arg(o, 0)) ? 0 : is_one_mostly(ir_arg(o, 1)) ? 1 : 2;
	return at < 2 && is_interleaved(f, ir_arg(o, 1 - at)) ? 2 : at;
}

bool lower_rescale(lower *l, const ir_op *o, const tile *args, tile out)
{
	unsigned f = find_factor(l->func, o);
	if (f == 2 || out.n < RESCALE_LEAST_REGISTERS) return false;
	const tile factor = args[f], x = args[1 - f];
	LLVMValueRef *distinct = ARENA_ARRAY(l->arena, LLVMValueRef, out.n);
	uint32_t n = 0;
	for (uint32_t r = 0; r < out.n; r++)
		if (!among(distinct, n, factor.at[r])) distinct[n++] = factor.at[r];
	if (n * RESCALE_LEAST_SHARE > out.n) return false;

	LLVMBuilderRef b = l->builder;
	LLVMValueRef one = LLVMConstReal(l->f32, 1), all = NULL;
	for (uint32_t i = 0; i < n; i++) {
		LLVMValueRef is = LLVMBuildFCmp(b, LLVMRealOEQ, distinct[i], one, "");
		all = all ? LLVMBuildAnd(b, all, is, "") : is;
	}
	LLVMValueRef voted = lower_intrinsic(
		l, "llvm.nvvm.vote.all.sync", l->i1, 2, (LLVMValueRef[]){lower_i32(l, UINT32_MAX), all});
	LLVMBasicBlockRef from = LLVMGetInsertBlock(b);
	LLVMBasicBlockRef scale = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	LLVMBasicBlockRef join = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	LLVMBuildCondBr(b, voted, join, scale);
	LLVMPositionBuilderAtEnd(b, scale);
	for (uint32_t r = 0; r < out.n; r++) out.at[r] = lower_binary(l, IR_MUL, SCALAR_F32, x.at[r], factor.at[r]);
	LLVMBuildBr(b, join);
	LLVMPositionBuilderAtEnd(b, join);
	for (uint32_t r = 0; r < out.n; r++) {
		LLVMValueRef phi = LLVMBuildPhi(b, l->f32, "");
		LLVMAddIncoming(phi, (LLVMValueRef[]){x.at[r], out.at[r]}, (LLVMBasicBlockRef[]){from, scale}, 2);
		out.at[r] = phi;
	}
	return true;
}
