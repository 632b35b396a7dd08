/* sort and topk: lines along an axis in order.
 *
 * In: a sort operation and the plan.  Out: its buffer filled.
 * The one idea: elements become signed integers, the keys, that order as the result shall: smallest first, -0 before
 * +0, every nan the greatest, and upside down for a descending order (but for nan, which stays last).  Equal keys are
 * equal bits, so what happens to them does not show.  The keys are sorted in place by Batcher's bitonic network,
 * n log^2 n steps in five nested loops whatever n is; the innermost two run over neighbours in memory, so that LLVM can
 * make vectors of them.  topk sorts all and keeps the first k. */
#include "lower.h"

#include <assert.h>

typedef struct order {
	cpu_emitter *e;
	ir_op *op;
	scalar elem, key; /* key: the signed integer of the element's width; bool as i8 */
	bool descending;
	uint32_t buffer;          /* of the keys, in the operand's shape */
	uint32_t outer, n, inner; /* extents before, along and behind the axis */
} order;

static LLVMValueRef key_const(const order *s, uint64_t v)
{
	return cpu_int(s->e, s->key, (int64_t)v);
}

/* Of the nan that a sorted nan becomes. */
static uint64_t nan_bits(scalar t)
{
	return scalar_infinity(t) | UINT64_C(1) << (scalar_table[t].mantissa - 1);
}

/* Negative numbers run the other way: flips all but the sign.  Its own inverse. */
static LLVMValueRef flip_negative(const order *s, LLVMValueRef v)
{
	LLVMBuilderRef b = s->e->builder;
	unsigned width = scalar_bits(s->key);
	LLVMValueRef sign = LLVMBuildAShr(b, v, key_const(s, width - 1), "");
	return LLVMBuildXor(b, v, LLVMBuildAnd(b, sign, key_const(s, (UINT64_C(1) << (width - 1)) - 1), ""), "");
}

static LLVMValueRef to_key(const order *s, LLVMValueRef v)
{
	cpu_emitter *e = s->e;
	LLVMBuilderRef b = e->builder;
	uint64_t top = UINT64_C(1) << (scalar_bits(s->key) - 1);
	LLVMTypeRef type = cpu_type(e, ir_scalar_type(s->key));
	v = cpu_bits(e, type, v);
	LLVMValueRef key = v;
	if (scalar_is_float(s->elem))
		key = flip_negative(s, v);
	else if (s->elem != SCALAR_BOOL && !scalar_is_signed(s->elem))
		key = LLVMBuildXor(b, v, key_const(s, top), "");
	if (s->descending) key = LLVMBuildNot(b, key, "");
	if (!scalar_is_float(s->elem)) return key;
	LLVMValueRef magnitude = LLVMBuildAnd(b, v, key_const(s, top - 1), "");
	LLVMValueRef is_nan = LLVMBuildICmp(b, LLVMIntSGT, magnitude, key_const(s, scalar_infinity(s->elem)), "");
	return cpu_select(e, is_nan, key_const(s, top - 1), key);
}

static LLVMValueRef from_key(const order *s, LLVMValueRef key)
{
	cpu_emitter *e = s->e;
	LLVMBuilderRef b = e->builder;
	uint64_t top = UINT64_C(1) << (scalar_bits(s->key) - 1);
	LLVMValueRef v = s->descending ? LLVMBuildNot(b, key, "") : key;
	if (scalar_is_float(s->elem)) {
		LLVMValueRef is_nan = LLVMBuildICmp(b, LLVMIntEQ, key, key_const(s, top - 1), "");
		v = cpu_select(e, is_nan, key_const(s, nan_bits(s->elem)), flip_negative(s, v));
	} else if (s->elem != SCALAR_BOOL && !scalar_is_signed(s->elem))
		v = LLVMBuildXor(b, v, key_const(s, top), "");
	return cpu_bits(e, cpu_type(e, ir_scalar_type(s->elem)), v);
}

/* ---- loops with bounds known at run time ---- */

typedef struct loop {
	LLVMBasicBlockRef head;
	LLVMValueRef i;
} loop;

/* do { .. } from `start` on. */
static loop open_loop(cpu_emitter *e, LLVMValueRef start)
{
	LLVMBasicBlockRef from = LLVMGetInsertBlock(e->builder);
	loop p = {.head = cpu_block(e, "loop")};
	LLVMBuildBr(e->builder, p.head);
	LLVMPositionBuilderAtEnd(e->builder, p.head);
	p.i = LLVMBuildPhi(e->builder, e->i64, "i");
	LLVMAddIncoming(p.i, &start, &from, 1);
	return p;
}

/* while (next != end) */
static void close_loop(cpu_emitter *e, const loop *p, LLVMValueRef next, LLVMValueRef end)
{
	LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->builder), done = cpu_block(e, "done");
	LLVMAddIncoming(p->i, &next, &latch, 1);
	LLVMBuildCondBr(e->builder, LLVMBuildICmp(e->builder, LLVMIntEQ, next, end, ""), done, p->head);
	LLVMPositionBuilderAtEnd(e->builder, done);
}

static LLVMValueRef plus(cpu_emitter *e, LLVMValueRef a, LLVMValueRef b)
{
	LLVMValueRef v = LLVMBuildNUWAdd(e->builder, a, b, "");
	if (LLVMIsAInstruction(v)) LLVMSetNSW(v, true);
	return v;
}

static LLVMValueRef times(cpu_emitter *e, LLVMValueRef a, LLVMValueRef b)
{
	LLVMValueRef v = LLVMBuildNUWMul(e->builder, a, b, "");
	if (LLVMIsAInstruction(v)) LLVMSetNSW(v, true);
	return v;
}

/* The smaller key to `low`, the greater to `high` (row-major numbers). */
static void compare_exchange(const order *s, LLVMValueRef low, LLVMValueRef high)
{
	assert(s->key == SCALAR_I8 || s->key == SCALAR_I16 || s->key == SCALAR_I32 || s->key == SCALAR_I64);
	cpu_emitter *e = s->e;
	ir_type t = ir_scalar_type(s->key);
	LLVMValueRef a = cpu_buffer_load(e, s->buffer, t, low), b = cpu_buffer_load(e, s->buffer, t, high);
	cpu_buffer_store(e, s->buffer, t, low, cpu_max_min(e, s->key, false, a, b));
	cpu_buffer_store(e, s->buffer, t, high, cpu_max_min(e, s->key, true, a, b));
}

/* In every block of 2 * half, element i of the lower half with element i of the upper one, or with its mirror image
 * there: the first step that merges two ascending halves. */
static void network_step(const order *s, LLVMValueRef half, bool mirror)
{
	cpu_emitter *e = s->e;
	LLVMValueRef zero = cpu_index(e, 0), one = cpu_index(e, 1), two = cpu_index(e, 2);
	LLVMValueRef inner = cpu_index(e, s->inner), block = times(e, half, two);
	loop outer = open_loop(e, zero);
	LLVMValueRef line = times(e, outer.i, cpu_index(e, s->n));
	loop blocks = open_loop(e, zero);
	LLVMValueRef base = plus(e, line, blocks.i);
	loop i = open_loop(e, zero), q = open_loop(e, zero);
	LLVMValueRef low = plus(e, base, i.i), high = plus(e, low, half);
	if (mirror) high = LLVMBuildSub(e->builder, LLVMBuildSub(e->builder, plus(e, base, block), one, ""), i.i, "");
	compare_exchange(s, plus(e, times(e, low, inner), q.i), plus(e, times(e, high, inner), q.i));
	close_loop(e, &q, plus(e, q.i, one), inner);
	close_loop(e, &i, plus(e, i.i, one), half);
	close_loop(e, &blocks, plus(e, blocks.i, block), cpu_index(e, s->n));
	close_loop(e, &outer, plus(e, outer.i, one), cpu_index(e, s->outer));
}

static void sort_keys(const order *s)
{
	cpu_emitter *e = s->e;
	LLVMBuilderRef b = e->builder;
	LLVMValueRef zero = cpu_index(e, 0), one = cpu_index(e, 1);
	cpu_forget(e);
	loop merge = open_loop(e, one); /* the length of the sorted runs */
	network_step(s, merge.i, true);
	LLVMBasicBlockRef inside = cpu_block(e, "halves"), next = cpu_block(e, "next");
	LLVMValueRef first = LLVMBuildLShr(b, merge.i, one, "");
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, first, zero, ""), next, inside);
	LLVMPositionBuilderAtEnd(b, inside);
	loop half = open_loop(e, first);
	network_step(s, half.i, false);
	close_loop(e, &half, LLVMBuildLShr(b, half.i, one, ""), zero);
	LLVMBuildBr(b, next);
	LLVMPositionBuilderAtEnd(b, next);
	close_loop(e, &merge, LLVMBuildShl(b, merge.i, one, ""), cpu_index(e, s->n));
	cpu_forget(e);
}

static void store_keys(const order *s)
{
	cpu_emitter *e = s->e;
	ir_value *v = ir_arg(s->op, 0);
	cpu_nest n;
	cpu_nest_open(e, &n, v->type.rank, v->type.dim);
	LLVMValueRef key = to_key(s, cpu_element(e, v, n.index));
	cpu_buffer_store(e, s->buffer, ir_scalar_type(s->key), cpu_linear(e, v->type, n.index), key);
	cpu_nest_close(e, &n);
}

static void store_results(const order *s)
{
	cpu_emitter *e = s->e;
	ir_value *v = ir_result(s->op);
	cpu_nest n;
	cpu_nest_open(e, &n, v->type.rank, v->type.dim);
	LLVMValueRef from = cpu_linear(e, ir_arg(s->op, 0)->type, n.index);
	LLVMValueRef key = cpu_buffer_load(e, s->buffer, ir_scalar_type(s->key), from);
	uint32_t to = e->plan->value[v->id].buffer;
	cpu_buffer_store(e, to, v->type, cpu_linear(e, v->type, n.index), from_key(s, key));
	cpu_nest_close(e, &n);
}

void cpu_lower_sort(cpu_emitter *e, ir_op *o)
{
	assert(o->kind == IR_SORT);
	static const scalar keys[] = {[1] = SCALAR_I8, [2] = SCALAR_I16, [4] = SCALAR_I32, [8] = SCALAR_I64};
	ir_type t = ir_arg(o, 0)->type;
	unsigned axis = ir_get_axis(o);
	if (e->plan->value[ir_result(o)->id].place == CPU_UNUSED) return;
	order s = {.e = e, .op = o, .elem = (scalar)t.elem, .descending = ir_get_descending(o), .n = t.dim[axis]};
	s.key = keys[ir_element_bytes(t)];
	s.buffer = cpu_plan_op(e->plan, o)->extra[0];
	s.outer = s.inner = 1;
	for (unsigned d = 0; d < t.rank; d++) {
		if (d < axis) s.outer *= t.dim[d];
		if (d > axis) s.inner *= t.dim[d];
	}
	store_keys(&s);
	if (s.n > 1) sort_keys(&s);
	store_results(&s);
}
