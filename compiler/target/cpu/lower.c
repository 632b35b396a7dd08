/* The statements of a program: walks the operations in order and writes each one's LLVM.
 *
 * In: a block and the plan.  Out: instructions at the builder's place.  A tile operation that has a buffer, or an
 * effect, becomes one nest of loops over the tile; inside, element.c makes the element. */
#include "lower.h"

/* Evaluates a value, whatever its place, into its own buffer. */
static void materialise(cpu_emitter *e, ir_value *v)
{
	cpu_nest n;
	cpu_nest_open(e, &n, v->type.rank, v->type.dim);
	LLVMValueRef element = cpu_compute(e, v, n.index);
	uint32_t buffer = e->plan->value[v->id].buffer;
	cpu_buffer_store(e, buffer, v->type, cpu_linear(e, v->type, n.index), element);
	cpu_nest_close(e, &n);
}

static void lower_store(cpu_emitter *e, ir_op *o)
{
	ir_type t = ir_arg(o, 0)->type;
	LLVMValueRef args[3];
	cpu_nest n;
	cpu_nest_open(e, &n, t.rank, t.dim);
	for (unsigned i = 0; i < o->nargs; i++) args[i] = cpu_element(e, ir_arg(o, i), n.index);
	cpu_store_element(e, o, args);
	cpu_nest_close(e, &n);
}

/* Scalars: program numbers, loads, arithmetic, and the element of a one-element tile. */
static LLVMValueRef scalar_result(cpu_emitter *e, ir_op *o)
{
	LLVMValueRef args[3] = {NULL}, zero[IR_MAX_RANK];
	for (unsigned d = 0; d < IR_MAX_RANK; d++) zero[d] = cpu_index(e, 0);
	cpu_forget(e);
	switch (o->kind) {
	case IR_CONST: return cpu_constant(e, o->results[0]->type, ir_get_value(o));
	case IR_PROGRAM_ID: return e->pid[ir_get_axis(o)];
	case IR_NUM_PROGRAMS: return e->grid[ir_get_axis(o)];
	case IR_HINT:
	case IR_SPLAT:
	case IR_EXPAND_DIMS:
	case IR_BROADCAST:
	case IR_PERMUTE:
	case IR_RESHAPE: return cpu_element(e, ir_arg(o, 0), zero);
	default: break;
	}
	for (unsigned i = 0; i < o->nargs && i < 3; i++) args[i] = cpu_element(e, ir_arg(o, i), zero);
	return o->kind == IR_LOAD ? cpu_load_element(e, o, args) : cpu_apply(e, o, args);
}

static void lower_value(cpu_emitter *e, ir_op *o)
{
	ir_value *v = ir_result(o);
	switch (e->plan->value[v->id].place) {
	case CPU_SCALAR: e->scalar[v->id] = scalar_result(e, o); break;
	case CPU_BUFFER: materialise(e, v); break;
	default: break;
	}
}

void cpu_lower_block(cpu_emitter *e, ir_block *b)
{
	for (ir_op *o = b->first; o; o = o->next) {
		cpu_debug_line(e, o->at);
		switch (o->kind) {
		case IR_STORE: lower_store(e, o); break;
		case IR_REDUCE: cpu_lower_reduce(e, o); break;
		case IR_ATOMIC_RMW:
		case IR_ATOMIC_CAS: cpu_lower_atomic(e, o); break;
		case IR_JOIN: cpu_lower_join(e, o); break;
		case IR_SPLIT: cpu_lower_split(e, o); break;
		case IR_GATHER: cpu_lower_gather(e, o); break;
		case IR_HISTOGRAM: cpu_lower_histogram(e, o); break;
		case IR_SCAN: cpu_lower_scan(e, o); break;
		case IR_DOT: cpu_lower_dot(e, o); break;
		case IR_SORT: cpu_lower_sort(e, o); break;
		case IR_ASSERT: cpu_lower_assert(e, o); break;
		case IR_PRINT: cpu_lower_print(e, o); break;
		case IR_IF: cpu_lower_if(e, o); break;
		case IR_FOR: cpu_lower_for(e, o); break;
		case IR_WHILE: cpu_lower_while(e, o); break;
		case IR_ASSUME:
		case IR_DEBUG_BARRIER:
		case IR_YIELD:     /* the region's owner reads the operands */
		case IR_CONDITION: /* likewise */
		case IR_RETURN: break;
		default: lower_value(e, o); break;
		}
	}
}
