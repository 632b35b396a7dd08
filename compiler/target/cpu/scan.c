/* Scans: every element becomes the combination of all up to itself along an axis.
 *
 * In: a scan operation and the plan.  Out: its buffers filled.
 * The one idea: the operands are copied into the results' buffers, then one nest of loops over the tile combines each
 * element with the finished one before it, in place and strictly in index order.  Row-major order visits the
 * predecessor first, whichever axis it is; a reverse scan counts the axis down. */
#include "lower.h"

#include <assert.h>

typedef struct scan {
	cpu_emitter *e;
	ir_op *op;
	unsigned k, axis;
} scan;

static uint32_t buffer_of(const scan *s, unsigned i)
{
	return s->e->plan->value[s->op->results[i]->id].buffer;
}

static void copy_operands(scan *s)
{
	assert(s->k == s->op->nargs);
	cpu_emitter *e = s->e;
	ir_type t = ir_arg(s->op, 0)->type;
	cpu_nest n;
	cpu_nest_open(e, &n, t.rank, t.dim);
	LLVMValueRef linear = cpu_linear(e, t, n.index);
	for (unsigned i = 0; i < s->k; i++)
		cpu_buffer_store(
			e, buffer_of(s, i), s->op->results[i]->type, linear, cpu_element(e, ir_arg(s->op, i), n.index));
	cpu_nest_close(e, &n);
}

/* 16-bit floats are combined in f32 and rounded at each step. */
static LLVMValueRef combine_builtin(scan *s, LLVMValueRef a, LLVMValueRef x)
{
	assert(ir_get_combine(s->op) != IR_CUSTOM);
	scalar t = (scalar)s->op->results[0]->type.elem;
	ir_combine combine = ir_get_combine(s->op);
	if (!scalar_is_float(t) || scalar_bytes(t) >= 4) return cpu_combine(s->e, combine, t, false, a, x);
	a = cpu_combine(s->e, combine, SCALAR_F32, false, cpu_widen(s->e, t, a), cpu_widen(s->e, t, x));
	return cpu_narrow(s->e, t, a);
}

static void combine_neighbours(scan *s)
{
	cpu_emitter *e = s->e;
	ir_type t = ir_arg(s->op, 0)->type, steps = t;
	bool reverse = ir_get_reverse(s->op);
	uint32_t last = t.dim[s->axis] - 1;
	LLVMValueRef before[IR_MAX_RANK], at[IR_MAX_RANK];
	LLVMValueRef *a = ARENA_ARRAY(e->arena, LLVMValueRef, s->k), *x = ARENA_ARRAY(e->arena, LLVMValueRef, s->k);
	cpu_nest n;
	steps.dim[s->axis] = last;
	cpu_nest_open(e, &n, t.rank, steps.dim);
	for (unsigned d = 0; d < t.rank; d++) {
		before[d] = at[d] = n.index[d];
		if (d != s->axis) continue;
		if (reverse) before[d] = LLVMBuildNUWSub(e->builder, cpu_index(e, last), n.index[d], "");
		at[d] = reverse ? LLVMBuildNUWSub(e->builder, before[d], cpu_index(e, 1), "")
				: LLVMBuildNUWAdd(e->builder, n.index[d], cpu_index(e, 1), "");
	}
	LLVMValueRef from = cpu_linear(e, t, before), to = cpu_linear(e, t, at);
	for (unsigned i = 0; i < s->k; i++) {
		a[i] = cpu_buffer_load(e, buffer_of(s, i), s->op->results[i]->type, from);
		x[i] = cpu_buffer_load(e, buffer_of(s, i), s->op->results[i]->type, to);
	}
	if (ir_get_combine(s->op) == IR_CUSTOM)
		cpu_combine_custom(e, s->op, a, x, a);
	else
		a[0] = combine_builtin(s, a[0], x[0]);
	for (unsigned i = 0; i < s->k; i++) cpu_buffer_store(e, buffer_of(s, i), s->op->results[i]->type, to, a[i]);
	cpu_nest_close(e, &n);
}

void cpu_lower_scan(cpu_emitter *e, ir_op *o)
{
	assert(o->kind == IR_SCAN && o->nresults == o->nargs);
	scan s = {.e = e, .op = o, .k = o->nresults, .axis = ir_get_axis(o)};
	if (o->nresults == 1 && e->plan->value[o->results[0]->id].place == CPU_UNUSED) return;
	copy_operands(&s);
	if (ir_arg(o, 0)->type.dim[s.axis] > 1) combine_neighbours(&s);
}
