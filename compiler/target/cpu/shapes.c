/* join, split, gather, histogram: the operations whose elements come from, or go to, several places.
 *
 * In: an operation and the plan.  Out: its buffers filled, or its scalars.  Each is one loop over a tile, in which the
 * operands' elements are evaluated once; gather alone asks for elements of its first operand at computed places, so
 * that one is a buffer, or cheap (plan.c). */
#include "lower.h"

#include <assert.h>

static const cpu_value_plan *planned(const cpu_emitter *e, const ir_value *v)
{
	return &e->plan->value[v->id];
}

void cpu_lower_join(cpu_emitter *e, ir_op *o)
{
	assert(o->kind == IR_JOIN);
	ir_value *result = o->results[0];
	if (planned(e, result)->place != CPU_BUFFER) return;
	ir_type t = ir_arg(o, 0)->type;
	cpu_nest n;
	cpu_nest_open(e, &n, t.rank, t.dim);
	LLVMValueRef at = LLVMBuildNUWMul(e->builder, cpu_linear(e, t, n.index), cpu_index(e, 2), "");
	for (unsigned k = 0; k < 2; k++)
		cpu_buffer_store(e, planned(e, result)->buffer, result->type,
			LLVMBuildNUWAdd(e->builder, at, cpu_index(e, k), ""), cpu_element(e, ir_arg(o, k), n.index));
	cpu_nest_close(e, &n);
}

void cpu_lower_split(cpu_emitter *e, ir_op *o)
{
	assert(o->kind == IR_SPLIT && o->nresults == 2);
	ir_type t = o->results[0]->type;
	cpu_nest n;
	cpu_nest_open(e, &n, t.rank, t.dim);
	for (unsigned k = 0; k < 2; k++) {
		const cpu_value_plan *plan = planned(e, o->results[k]);
		LLVMValueRef index[IR_MAX_RANK] = {n.index[0], n.index[1], n.index[2], n.index[3]};
		index[t.rank] = cpu_index(e, k);
		LLVMValueRef v = cpu_element(e, ir_arg(o, 0), index);
		if (t.rank == 0)
			e->scalar[o->results[k]->id] = v;
		else if (plan->place == CPU_BUFFER)
			cpu_buffer_store(e, plan->buffer, t, cpu_linear(e, t, n.index), v);
	}
	cpu_nest_close(e, &n);
}

/* An integer as an i64, by its sign. */
static LLVMValueRef as_index(cpu_emitter *e, scalar s, LLVMValueRef v)
{
	if (scalar_bits(s) == 64) return v;
	return scalar_is_signed(s) ? LLVMBuildSExt(e->builder, v, e->i64, "")
				   : LLVMBuildZExt(e->builder, v, e->i64, "");
}

void cpu_lower_gather(cpu_emitter *e, ir_op *o)
{
	assert(o->kind == IR_GATHER);
	ir_value *result = o->results[0], *x = ir_arg(o, 0), *by = ir_arg(o, 1);
	ir_type t = result->type;
	unsigned axis = ir_get_axis(o);
	if (planned(e, result)->place != CPU_BUFFER) return;
	cpu_nest n;
	cpu_nest_open(e, &n, t.rank, t.dim);
	LLVMValueRef index[IR_MAX_RANK] = {n.index[0], n.index[1], n.index[2], n.index[3]};
	LLVMValueRef at = as_index(e, by->type.elem, cpu_element(e, by, n.index));
	LLVMValueRef last = cpu_index(e, x->type.dim[axis] - 1);
	index[axis] = cpu_select(e, LLVMBuildICmp(e->builder, LLVMIntULT, at, last, ""), at, last);
	LLVMValueRef v = cpu_element(e, x, index);
	cpu_buffer_store(e, planned(e, result)->buffer, t, cpu_linear(e, t, n.index), v);
	cpu_nest_close(e, &n);
}

void cpu_lower_histogram(cpu_emitter *e, ir_op *o)
{
	assert(o->kind == IR_HISTOGRAM);
	ir_value *result = o->results[0], *x = ir_arg(o, 0);
	ir_type bins = result->type;
	const cpu_value_plan *plan = planned(e, result);
	if (plan->place != CPU_BUFFER) return;
	cpu_nest n;
	cpu_nest_open(e, &n, 1, bins.dim);
	cpu_buffer_store(e, plan->buffer, bins, n.index[0], cpu_int(e, SCALAR_I32, 0));
	cpu_nest_close(e, &n);
	cpu_nest_open(e, &n, x->type.rank, x->type.dim);
	LLVMValueRef at = as_index(e, x->type.elem, cpu_element(e, x, n.index));
	LLVMValueRef counts = LLVMBuildICmp(e->builder, LLVMIntULT, at, cpu_index(e, bins.dim[0]), "");
	if (o->nargs > 1) {
		LLVMValueRef mask = cpu_element(e, ir_arg(o, 1), n.index);
		counts = LLVMBuildAnd(e->builder, counts, mask, "");
	}
	at = cpu_select(e, counts, at, cpu_index(e, 0));
	LLVMValueRef sum = cpu_buffer_load(e, plan->buffer, bins, at);
	sum = LLVMBuildAdd(e->builder, sum, LLVMBuildZExt(e->builder, counts, e->i32, ""), "");
	cpu_buffer_store(e, plan->buffer, bins, at, sum);
	cpu_nest_close(e, &n);
}
