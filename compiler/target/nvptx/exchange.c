/* Threads that trade registers with a partner, and flip, which is one such trade.
 *
 * In: registers, and a number; the partner of a thread is the one whose index differs by XOR of that number.
 * Out: the partner's registers.  The one idea: no layout is needed, a thread stores its registers where its own index
 * says and loads where its partner's says; neighbours in the warp are neighbours in shared memory, in accesses of up to
 * 16 bytes, so no two meet in a bank.
 *
 * Reversing an axis flips all bits of that coordinate, and an element's place is linear in them: so the partner's place
 * is this place XOR the bits that step the axis. */
#include "lower.h"

#include "async/scratch.h"

#include <assert.h>

bool lower_exchange_begin(lower *l, const ir_op *o, exchange *x)
{
	assert(o->kind == IR_SORT || o->kind == IR_FLIP);
	exchange_plan plan;
	exchange_plan_make(l->func, o, &plan);
	*x = (exchange){lower_scratch(l, o), plan.registers, plan.bytes, plan.buffers, lower_i32(l, 0)};
	if (plan.bytes * plan.buffers <= o->shared_bytes) return true;
	lower_fail(l, o, "no shared memory was set aside for '%s'", ir_info(o)->name);
	return false;
}

static LLVMValueRef plus(lower *l, LLVMValueRef a, LLVMValueRef b)
{
	return LLVMBuildAdd(l->builder, a, b, "");
}

/* One pass: n registers, as many as a buffer has room for at most. */
static void pass(lower *l, const exchange *x, ir_type t, uint32_t n, const LLVMValueRef *in, LLVMValueRef other,
	LLVMValueRef *out)
{
	assert(n && !(n & (n - 1)));
	unsigned bytes = ir_element_bytes(t), most = 16 / bytes, each = n < most ? n : most, size = each * bytes;
	LLVMValueRef base = plus(l, x->buffer, x->offset);
	LLVMValueRef from = plus(l, base, LLVMBuildMul(l->builder, other, lower_i32(l, size), ""));
	LLVMValueRef to = plus(l, base, LLVMBuildMul(l->builder, l->tid, lower_i32(l, size), ""));
	uint32_t row = 32 * l->func->num_warps * size;
	for (uint32_t r = 0; r < n; r += each) {
		words w = lower_pack(l, t, each, in + r);
		lower_shared_store(l, plus(l, to, lower_i32(l, r / each * row)), &w, NULL);
	}
	lower_barrier(l);
	for (uint32_t r = 0; r < n; r += each) {
		words w = lower_word_shape(t, each);
		lower_shared_load(l, plus(l, from, lower_i32(l, r / each * row)), size, &w);
		lower_unpack(l, t, each, out + r, &w);
	}
}

void lower_exchange(lower *l, exchange *x, ir_type t, uint32_t n, const LLVMValueRef *in, LLVMValueRef thread_xor,
	LLVMValueRef *out)
{
	uint32_t most = x->registers < n ? x->registers : n;
	LLVMValueRef other = LLVMBuildXor(l->builder, l->tid, thread_xor, "");
	for (uint32_t r = 0; r < n; r += most) {
		pass(l, x, t, most, in + r, other, out + r);
		if (x->buffers > 1) x->buffer = LLVMBuildXor(l->builder, x->buffer, lower_i32(l, x->bytes), "");
	}
}

void lower_flip(lower *l, ir_op *o)
{
	assert(o->kind == IR_FLIP);
	const layout *y = ir_result(o)->layout;
	ir_type t = ir_element(ir_result(o)->type);
	unsigned axis = ir_get_axis(o);
	tile in = lower_arg(l, o, 0), out = lower_new_tile(l, ir_result(o));
	exchange x;
	if (l->failed || !lower_exchange_begin(l, o, &x)) return;
	uint32_t reg = exchange_bits(y, axis, LAYOUT_REG), lane = exchange_bits(y, axis, LAYOUT_LANE),
		 warp = exchange_bits(y, axis, LAYOUT_WARP);
	tile moved = {ARENA_ARRAY(l->arena, LLVMValueRef, in.n), in.n};
	if (warp) lower_exchange(l, &x, t, in.n, in.at, lower_i32(l, lane | warp << 5), moved.at);
	for (uint32_t r = 0; r < in.n && !warp; r++)
		moved.at[r] = lane ? lower_shuffle(l, "bfly", t, in.at[r], lower_i32(l, lane)) : in.at[r];
	for (uint32_t r = 0; r < out.n; r++) out.at[r] = moved.at[r ^ reg];
	lower_set(l, ir_result(o), out);
}
