/* Reductions: k tiles of one shape lose an axis.
 *
 * In: a reduce operation and the plan.  Out: its scalars, or its buffers filled.
 * Two ways, chosen by the extents behind the axis (cpu_reduce_by_rows).  Short or none: for each result element, a loop
 * along the axis with the accumulator in a register; built-in float sums may be reassociated there, which lets LLVM use
 * vectors, and long ones are summed in blocks so that the error stays small.  Long: the result's buffer is the
 * accumulator and whole rows are combined into it, in index order.
 * A custom combination takes the first element as it is: what it computes from the unset accumulator is discarded. */
#include "lower.h"

#include <assert.h>

enum { SUM_BLOCK = 1024 };

typedef struct reduction {
	cpu_emitter *e;
	ir_op *op;
	unsigned k, axis;
	ir_combine combine;
	bool reassociate;
	ir_type *accumulator; /* element types */
} reduction;

static LLVMValueRef identity(const cpu_emitter *e, ir_combine c, scalar s)
{
	return cpu_constant(e, ir_scalar_type(s), ir_identity(c, s));
}

LLVMValueRef cpu_combine(cpu_emitter *e, ir_combine combine, scalar s, bool reassociate, LLVMValueRef a, LLVMValueRef x)
{
	assert(combine != IR_CUSTOM);
	LLVMBuilderRef b = e->builder;
	if (!scalar_is_float(s) || (combine != IR_SUM && combine != IR_PROD))
		return cpu_apply_alike(e, ir_combines_by(combine), s, (LLVMValueRef[]){a, x});
	LLVMValueRef v = combine == IR_SUM ? LLVMBuildFAdd(b, a, x, "") : LLVMBuildFMul(b, a, x, "");
	if (LLVMIsAInstruction(v))
		LLVMSetFastMathFlags(v, LLVMFastMathAllowContract | (reassociate ? LLVMFastMathAllowReassoc : 0));
	return v;
}

void cpu_combine_custom(cpu_emitter *e, const ir_op *o, const LLVMValueRef *a, const LLVMValueRef *x, LLVMValueRef *out)
{
	assert(o->nregions == 1 && o->regions[0]->nargs == 2u * o->nargs);
	ir_block *region = o->regions[0];
	for (unsigned i = 0; i < o->nargs; i++) {
		e->scalar[region->args[i]->id] = a[i];
		e->scalar[region->args[o->nargs + i]->id] = x[i];
	}
	cpu_lower_block(e, region);
	for (unsigned i = 0; i < o->nargs; i++) out[i] = e->scalar[ir_arg(region->last, i)->id];
}

/* a[] = combine(a[], x[]); `first` (i1) is true where a[] holds nothing yet. */
static void combine(reduction *r, LLVMValueRef first, LLVMValueRef *a, LLVMValueRef *x)
{
	cpu_emitter *e = r->e;
	if (r->combine != IR_CUSTOM) {
		for (unsigned i = 0; i < r->k; i++)
			a[i] = cpu_combine(e, r->combine, r->accumulator[i].elem, r->reassociate, a[i], x[i]);
		return;
	}
	cpu_combine_custom(e, r->op, a, x, a);
	for (unsigned i = 0; i < r->k; i++) a[i] = cpu_select(e, first, x[i], a[i]);
}

/* The operands' elements at an index, in the accumulators' types. */
static void operands(reduction *r, const LLVMValueRef *index, LLVMValueRef *x)
{
	for (unsigned i = 0; i < r->k; i++) {
		ir_value *v = ir_arg(r->op, i);
		x[i] = cpu_convert(r->e, r->accumulator[i].elem, v->type.elem, cpu_element(r->e, v, index));
	}
}

static LLVMValueRef result_of(reduction *r, unsigned i, LLVMValueRef a)
{
	return cpu_convert(r->e, r->op->results[i]->type.elem, r->accumulator[i].elem, a);
}

/* One step along the axis with the accumulators in `local`. */
static void step(reduction *r, const cpu_nest *outer, LLVMValueRef at, LLVMValueRef *local)
{
	cpu_emitter *e = r->e;
	LLVMValueRef index[IR_MAX_RANK];
	LLVMValueRef *a = ARENA_ARRAY(e->arena, LLVMValueRef, r->k), *x = ARENA_ARRAY(e->arena, LLVMValueRef, r->k);
	for (unsigned d = 0; d <= outer->rank; d++) index[d] = d == r->axis ? at : outer->index[d - (d > r->axis)];
	operands(r, index, x);
	for (unsigned i = 0; i < r->k; i++)
		a[i] = LLVMBuildLoad2(e->builder, cpu_type(e, r->accumulator[i]), local[i], "");
	combine(r, LLVMBuildICmp(e->builder, LLVMIntEQ, at, cpu_index(e, 0), ""), a, x);
	for (unsigned i = 0; i < r->k; i++) LLVMBuildStore(e->builder, a[i], local[i]);
}

/* total = total + the sum of a block, block after block. */
static void sum_in_blocks(reduction *r, const cpu_nest *outer, uint32_t extent, LLVMValueRef total)
{
	assert(extent);
	cpu_emitter *e = r->e;
	cpu_nest blocks, inside;
	uint32_t nblocks = extent / SUM_BLOCK, block = SUM_BLOCK;
	scalar s = r->accumulator[0].elem;
	LLVMTypeRef type = cpu_type(e, r->accumulator[0]);
	LLVMValueRef part = cpu_local(e, type, "part", 0);
	cpu_nest_open(e, &blocks, 1, &nblocks);
	LLVMBuildStore(e->builder, identity(e, r->combine, s), part);
	cpu_nest_open(e, &inside, 1, &block);
	LLVMValueRef base = LLVMBuildNUWMul(e->builder, blocks.index[0], cpu_index(e, SUM_BLOCK), "");
	step(r, outer, LLVMBuildNUWAdd(e->builder, base, inside.index[0], ""), &part);
	cpu_nest_close(e, &inside);
	LLVMValueRef sum = LLVMBuildLoad2(e->builder, type, total, "");
	sum = LLVMBuildFAdd(e->builder, sum, LLVMBuildLoad2(e->builder, type, part, ""), "");
	LLVMBuildStore(e->builder, sum, total);
	cpu_nest_close(e, &blocks);
}

static void by_elements(reduction *r)
{
	assert(r->axis < ir_arg(r->op, 0)->type.rank);
	cpu_emitter *e = r->e;
	ir_type result = r->op->results[0]->type;
	uint32_t extent = ir_arg(r->op, 0)->type.dim[r->axis];
	LLVMValueRef *local = ARENA_ARRAY(e->arena, LLVMValueRef, r->k);
	cpu_nest outer, inner;
	for (unsigned i = 0; i < r->k; i++) local[i] = cpu_local(e, cpu_type(e, r->accumulator[i]), "acc", i);
	cpu_nest_open(e, &outer, result.rank, result.dim);
	for (unsigned i = 0; i < r->k; i++) {
		LLVMValueRef start = r->combine == IR_CUSTOM ? LLVMConstNull(cpu_type(e, r->accumulator[i]))
							     : identity(e, r->combine, r->accumulator[i].elem);
		LLVMBuildStore(e->builder, start, local[i]);
	}
	bool float_sum = r->combine == IR_SUM && scalar_is_float(r->accumulator[0].elem);
	if (float_sum && r->k == 1 && extent > SUM_BLOCK && extent % SUM_BLOCK == 0) {
		sum_in_blocks(r, &outer, extent, local[0]);
	} else {
		cpu_nest_open(e, &inner, 1, &extent);
		step(r, &outer, inner.index[0], local);
		cpu_nest_close(e, &inner);
	}
	LLVMValueRef linear = cpu_linear(e, result, outer.index);
	for (unsigned i = 0; i < r->k; i++) {
		ir_value *v = r->op->results[i];
		LLVMValueRef a = LLVMBuildLoad2(e->builder, cpu_type(e, r->accumulator[i]), local[i], "");
		if (ir_is_scalar(v))
			e->scalar[v->id] = result_of(r, i, a);
		else if (e->plan->value[v->id].place == CPU_BUFFER)
			cpu_buffer_store(e, e->plan->value[v->id].buffer, v->type, linear, result_of(r, i, a));
	}
	cpu_nest_close(e, &outer);
}

static ir_type accumulator_tile(reduction *r, unsigned i)
{
	return ir_with_elem(r->op->results[i]->type, r->accumulator[i].elem);
}

static void start_rows(reduction *r, const uint32_t *buffer)
{
	ir_type result = r->op->results[0]->type;
	cpu_nest n;
	cpu_nest_open(r->e, &n, result.rank, result.dim);
	LLVMValueRef linear = cpu_linear(r->e, result, n.index);
	for (unsigned i = 0; i < r->k; i++)
		cpu_buffer_store(r->e, buffer[i], accumulator_tile(r, i), linear,
			identity(r->e, r->combine, r->accumulator[i].elem));
	cpu_nest_close(r->e, &n);
}

static void finish_rows(reduction *r, const uint32_t *buffer)
{
	for (unsigned i = 0; i < r->k; i++) {
		ir_value *v = r->op->results[i];
		uint32_t to = r->e->plan->value[v->id].buffer;
		if (to == buffer[i]) continue;
		cpu_nest n;
		cpu_nest_open(r->e, &n, v->type.rank, v->type.dim);
		LLVMValueRef linear = cpu_linear(r->e, v->type, n.index);
		LLVMValueRef a = cpu_buffer_load(r->e, buffer[i], accumulator_tile(r, i), linear);
		cpu_buffer_store(r->e, to, v->type, linear, result_of(r, i, a));
		cpu_nest_close(r->e, &n);
	}
}

static void by_rows(reduction *r, const uint32_t *buffer)
{
	assert(r->axis < ir_arg(r->op, 0)->type.rank);
	cpu_emitter *e = r->e;
	ir_type t = ir_arg(r->op, 0)->type;
	LLVMValueRef index[IR_MAX_RANK];
	LLVMValueRef *a = ARENA_ARRAY(e->arena, LLVMValueRef, r->k), *x = ARENA_ARRAY(e->arena, LLVMValueRef, r->k);
	cpu_nest n;
	if (r->combine != IR_CUSTOM) start_rows(r, buffer);
	cpu_nest_open(e, &n, t.rank, t.dim);
	for (unsigned d = 0; d + 1 < t.rank; d++) index[d] = n.index[d + (d >= r->axis)];
	LLVMValueRef linear = cpu_linear(e, r->op->results[0]->type, index);
	operands(r, n.index, x);
	for (unsigned i = 0; i < r->k; i++) a[i] = cpu_buffer_load(e, buffer[i], accumulator_tile(r, i), linear);
	combine(r, LLVMBuildICmp(e->builder, LLVMIntEQ, n.index[r->axis], cpu_index(e, 0), ""), a, x);
	for (unsigned i = 0; i < r->k; i++) cpu_buffer_store(e, buffer[i], accumulator_tile(r, i), linear, a[i]);
	cpu_nest_close(e, &n);
	finish_rows(r, buffer);
}

void cpu_lower_reduce(cpu_emitter *e, ir_op *o)
{
	assert(o->kind == IR_REDUCE && o->nresults == o->nargs);
	reduction r = {.e = e, .op = o, .k = o->nresults, .axis = ir_get_axis(o)};
	if (o->nresults == 1 && e->plan->value[o->results[0]->id].place == CPU_UNUSED) return;
	r.combine = ir_get_combine(o);
	r.accumulator = ARENA_ARRAY(e->arena, ir_type, r.k);
	for (unsigned i = 0; i < r.k; i++) {
		r.accumulator[i] = ir_element(o->results[i]->type);
		r.accumulator[i].elem = (uint8_t)cpu_accumulator(o, i);
	}
	r.reassociate = !cpu_reduce_by_rows(o);
	if (cpu_reduce_by_rows(o))
		by_rows(&r, cpu_plan_op(e->plan, o)->extra);
	else
		by_elements(&r);
}
