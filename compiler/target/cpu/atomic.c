/* Atomics on the host: one element after the other, each a locked instruction or a compare-and-swap loop.
 *
 * In: an atomic operation.  Out: a nest of loops over the pointers; the old values in the result's buffer if anybody
 * reads them.
 * The one idea: a program is one thread here, so the instruction's own order is all that acquire and release need, and
 * an element is its own owner.  LLVM has the instruction for integers; floats go through the bits, so that sums and
 * maxima are those of apply.c.  Programs run to their end one after the other on each thread of the pool: whoever
 * holds a lock is running, and a spin lock makes progress however many programs there are. */
#include "lower.h"

#include <assert.h>

static LLVMAtomicOrdering ordering(int64_t sem)
{
	static const LLVMAtomicOrdering orders[] = {/* ORDER IR_RELAXED */
		LLVMAtomicOrderingMonotonic, LLVMAtomicOrderingAcquire, LLVMAtomicOrderingRelease,
		LLVMAtomicOrderingAcquireRelease};
	return orders[sem];
}

/* A failed exchange writes nothing, so there is nothing that it could release. */
static LLVMAtomicOrdering failure_ordering(int64_t sem)
{
	return sem == IR_ACQUIRE || sem == IR_ACQ_REL ? LLVMAtomicOrderingAcquire : LLVMAtomicOrderingMonotonic;
}

static LLVMTypeRef bits_type(cpu_emitter *e, scalar s)
{
	return LLVMIntTypeInContext(e->context, scalar_bits(s));
}

static LLVMValueRef exchange_if(cpu_emitter *e, LLVMValueRef at, LLVMValueRef compare, LLVMValueRef v, int64_t sem)
{
	return LLVMBuildAtomicCmpXchg(e->builder, at, compare, v, ordering(sem), failure_ordering(sem), false);
}

static LLVMValueRef compare_and_swap(cpu_emitter *e, const ir_op *o, scalar s, LLVMValueRef *args)
{
	assert(o->kind == IR_ATOMIC_CAS);
	LLVMTypeRef bits = bits_type(e, s);
	LLVMValueRef compare = cpu_bits(e, bits, args[1]), v = cpu_bits(e, bits, args[2]);
	LLVMValueRef pair = exchange_if(e, args[0], compare, v, ir_get_sem(o));
	return cpu_bits(e, cpu_type(e, ir_scalar_type(s)), LLVMBuildExtractValue(e->builder, pair, 0, ""));
}

static LLVMValueRef combine_floats(cpu_emitter *e, const ir_op *o, scalar s, LLVMValueRef old, LLVMValueRef v)
{
	assert(scalar_is_float(s));
	if (ir_get_rmw(o) != IR_ATOMIC_ADD) return cpu_max_min(e, s, ir_get_rmw(o) == IR_ATOMIC_MAX, old, v);
	LLVMValueRef sum = LLVMBuildFAdd(e->builder, cpu_widen(e, s, old), cpu_widen(e, s, v), "");
	return cpu_narrow(e, s, sum);
}

/* Until nobody came between the look and the exchange. */
static LLVMValueRef swap_loop(cpu_emitter *e, const ir_op *o, scalar s, LLVMValueRef *args)
{
	assert(o->kind == IR_ATOMIC_RMW);
	LLVMBuilderRef b = e->builder;
	LLVMTypeRef bits = bits_type(e, s), type = cpu_type(e, ir_scalar_type(s));
	LLVMValueRef first = LLVMBuildLoad2(b, bits, args[0], "");
	LLVMSetOrdering(first, LLVMAtomicOrderingMonotonic);
	LLVMSetAlignment(first, scalar_bytes(s));
	LLVMBasicBlockRef from = LLVMGetInsertBlock(b), loop = cpu_block(e, "swap"), done = cpu_block(e, "swapped");
	LLVMBuildBr(b, loop);
	LLVMPositionBuilderAtEnd(b, loop);
	LLVMValueRef old = LLVMBuildPhi(b, bits, "");
	LLVMValueRef new = combine_floats(e, o, s, cpu_bits(e, type, old), args[1]);
	LLVMValueRef pair = exchange_if(e, args[0], old, cpu_bits(e, bits, new), ir_get_sem(o));
	LLVMValueRef seen = LLVMBuildExtractValue(b, pair, 0, "");
	LLVMBuildCondBr(b, LLVMBuildExtractValue(b, pair, 1, ""), done, loop);
	LLVMAddIncoming(old, &first, &from, 1);
	LLVMAddIncoming(old, &seen, &loop, 1);
	LLVMPositionBuilderAtEnd(b, done);
	return cpu_bits(e, type, old);
}

static LLVMAtomicRMWBinOp instruction(int64_t kind, bool is_signed)
{
	switch (kind) {
	case IR_ATOMIC_ADD: return LLVMAtomicRMWBinOpAdd;
	case IR_ATOMIC_MAX: return is_signed ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpUMax;
	case IR_ATOMIC_MIN: return is_signed ? LLVMAtomicRMWBinOpMin : LLVMAtomicRMWBinOpUMin;
	case IR_ATOMIC_AND: return LLVMAtomicRMWBinOpAnd;
	case IR_ATOMIC_OR: return LLVMAtomicRMWBinOpOr;
	case IR_ATOMIC_XOR: return LLVMAtomicRMWBinOpXor;
	default: return LLVMAtomicRMWBinOpXchg;
	}
}

/* The old value of one element. */
static LLVMValueRef element(cpu_emitter *e, const ir_op *o, LLVMValueRef *args)
{
	assert(o->kind == IR_ATOMIC_RMW || o->kind == IR_ATOMIC_CAS);
	scalar s = ir_arg(o, 0)->type.elem;
	if (o->kind == IR_ATOMIC_CAS) return compare_and_swap(e, o, s, args);
	if (scalar_is_float(s) && ir_get_rmw(o) != IR_ATOMIC_XCHG) return swap_loop(e, o, s, args);
	LLVMValueRef v = cpu_bits(e, bits_type(e, s), args[1]);
	LLVMAtomicRMWBinOp how = instruction(ir_get_rmw(o), scalar_is_signed(s));
	v = LLVMBuildAtomicRMW(e->builder, how, args[0], v, ordering(ir_get_sem(o)), false);
	return cpu_bits(e, cpu_type(e, ir_scalar_type(s)), v);
}

static LLVMValueRef masked_element(cpu_emitter *e, const ir_op *o, LLVMValueRef *args)
{
	LLVMValueRef mask = cpu_bounds(e, o, args[0], ir_mask(o) ? args[o->nargs - 1u] : NULL);
	if (!mask) return element(e, o, args);
	LLVMBasicBlockRef from = LLVMGetInsertBlock(e->builder), inside = cpu_block(e, "atomic"), join;
	LLVMValueRef branch = LLVMBuildCondBr(e->builder, mask, inside, inside);
	LLVMPositionBuilderAtEnd(e->builder, inside);
	LLVMValueRef old = element(e, o, args), none = LLVMConstNull(LLVMTypeOf(old));
	LLVMBasicBlockRef end = LLVMGetInsertBlock(e->builder);
	join = cpu_block(e, "done");
	LLVMSetSuccessor(branch, 1, join);
	LLVMBuildBr(e->builder, join);
	LLVMPositionBuilderAtEnd(e->builder, join);
	LLVMValueRef phi = LLVMBuildPhi(e->builder, LLVMTypeOf(old), "");
	LLVMAddIncoming(phi, &none, &from, 1);
	LLVMAddIncoming(phi, &old, &end, 1);
	return phi;
}

void cpu_lower_atomic(cpu_emitter *e, ir_op *o)
{
	ir_value *result = ir_result(o);
	ir_type t = result->type;
	const cpu_value_plan *plan = &e->plan->value[result->id];
	LLVMValueRef args[4];
	cpu_nest n;
	cpu_nest_open(e, &n, t.rank, t.dim);
	for (unsigned i = 0; i < o->nargs; i++) args[i] = cpu_element(e, ir_arg(o, i), n.index);
	LLVMValueRef old = masked_element(e, o, args);
	if (plan->place == CPU_SCALAR) e->scalar[result->id] = old;
	if (plan->place == CPU_BUFFER) cpu_buffer_store(e, plan->buffer, t, cpu_linear(e, t, n.index), old);
	cpu_nest_close(e, &n);
}
