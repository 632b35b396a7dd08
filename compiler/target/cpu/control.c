/* if, for and while: regions become basic blocks, carried scalars phis, carried tiles buffers that stay in place. */
#include "lower.h"

#include <assert.h>

static uint32_t buffer_of(const cpu_emitter *e, const ir_value *v)
{
	return e->plan->value[v->id].buffer;
}

/* buffer = from, element for element, in one loop. */
void cpu_fill(cpu_emitter *e, uint32_t buffer, ir_value *from)
{
	const cpu_value_plan *plan = &e->plan->value[from->id];
	if (plan->place == CPU_BUFFER && plan->buffer == buffer) return;
	cpu_nest n;
	cpu_nest_open(e, &n, from->type.rank, from->type.dim);
	LLVMValueRef element = cpu_element(e, from, n.index);
	cpu_buffer_store(e, buffer, from->type, cpu_linear(e, from->type, n.index), element);
	cpu_nest_close(e, &n);
}

static void copy_buffer(cpu_emitter *e, uint32_t to, uint32_t from, ir_type t)
{
	uint32_t extent = (uint32_t)ir_elements(t);
	cpu_nest n;
	cpu_nest_open(e, &n, 1, &extent);
	cpu_buffer_store(e, to, t, n.index[0], cpu_buffer_load(e, from, t, n.index[0]));
	cpu_nest_close(e, &n);
}

void cpu_lower_if(cpu_emitter *e, ir_op *o)
{
	assert(o->kind == IR_IF && o->nregions == 2);
	LLVMBasicBlockRef arm[2], from[2], join;
	LLVMValueRef *values = ARENA_ARRAY(e->arena, LLVMValueRef, 2 * o->nresults);
	arm[0] = cpu_block(e, "then");
	arm[1] = cpu_block(e, "else");
	LLVMBuildCondBr(e->builder, e->scalar[ir_arg(o, 0)->id], arm[0], arm[1]);
	for (unsigned r = 0; r < 2; r++) {
		LLVMPositionBuilderAtEnd(e->builder, arm[r]);
		cpu_forget(e);
		cpu_lower_block(e, o->regions[r]);
		for (unsigned i = 0; i < o->nresults; i++) {
			ir_value *v = ir_arg(o->regions[r]->last, i);
			if (ir_is_scalar(v))
				values[2 * i + r] = e->scalar[v->id];
			else
				cpu_fill(e, buffer_of(e, o->results[i]), v);
		}
		from[r] = LLVMGetInsertBlock(e->builder);
	}
	join = cpu_block(e, "endif");
	for (unsigned r = 0; r < 2; r++) {
		LLVMPositionBuilderAtEnd(e->builder, from[r]);
		LLVMBuildBr(e->builder, join);
	}
	LLVMPositionBuilderAtEnd(e->builder, join);
	cpu_forget(e);
	for (unsigned i = 0; i < o->nresults; i++) {
		if (!ir_is_scalar(o->results[i])) continue;
		LLVMValueRef phi = LLVMBuildPhi(e->builder, cpu_type(e, o->results[i]->type), "");
		LLVMAddIncoming(phi, values + 2 * i, from, 2);
		e->scalar[o->results[i]->id] = phi;
	}
}

static bool is_sliding(const cpu_emitter *e, const ir_value *v)
{
	return e->plan->value[v->id].base != NULL;
}

/* How far a sliding value goes in this trip: the number that its yield adds to each element. */
static LLVMValueRef slide(cpu_emitter *e, ir_value *arg, const ir_op *next)
{
	LLVMValueRef zero[IR_MAX_RANK], far = e->scalar[arg->id];
	ir_value *by = ir_arg(next, ir_arg(next, 0) == arg ? 1 : 0);
	for (unsigned d = 0; d < IR_MAX_RANK; d++) zero[d] = cpu_index(e, 0);
	cpu_forget(e);
	LLVMValueRef step = cpu_element(e, by, zero);
	if (next->kind == IR_PTR_ADD) step = cpu_extend(e, by->type.elem, step);
	return next->kind == IR_SUB ? LLVMBuildSub(e->builder, far, step, "") : LLVMBuildAdd(e->builder, far, step, "");
}

/* Carried values at a loop's header: phis for scalars, filled buffers for tiles.  The block that enters. */
static LLVMBasicBlockRef enter(
	cpu_emitter *e, ir_op *o, unsigned first_init, ir_value **args, unsigned n, LLVMBasicBlockRef header)
{
	for (unsigned i = 0; i < n; i++)
		if (!ir_is_scalar(args[i]) && !is_sliding(e, args[i]))
			cpu_fill(e, buffer_of(e, args[i]), ir_arg(o, first_init + i));
	LLVMBasicBlockRef from = LLVMGetInsertBlock(e->builder);
	LLVMBuildBr(e->builder, header);
	LLVMPositionBuilderAtEnd(e->builder, header);
	for (unsigned i = 0; i < n; i++) {
		if (!ir_is_scalar(args[i]) && !is_sliding(e, args[i])) continue;
		LLVMTypeRef type =
			args[i]->type.pointer && is_sliding(e, args[i]) ? e->i64 : cpu_type(e, args[i]->type);
		LLVMValueRef phi = LLVMBuildPhi(e->builder, type, "");
		LLVMValueRef start =
			is_sliding(e, args[i]) ? LLVMConstNull(type) : e->scalar[ir_arg(o, first_init + i)->id];
		LLVMAddIncoming(phi, &start, &from, 1);
		e->scalar[args[i]->id] = phi;
	}
	cpu_forget(e);
	return from;
}

/* The yield at the end of a loop's body, see stage_yield in plan.c. Adds the phis' second values. */
static void yield(cpu_emitter *e, ir_op *y, ir_value **args)
{
	assert(y->next == NULL);
	const uint32_t *staged = cpu_plan_op(e->plan, y)->extra;
	for (unsigned k = 0; k < y->nargs; k++)
		if (staged[k] != CPU_NO_BUFFER) cpu_fill(e, staged[k], ir_arg(y, k));
	for (unsigned k = 0; k < y->nargs; k++)
		if (!ir_is_scalar(args[k]) && !is_sliding(e, args[k]) && staged[k] == CPU_NO_BUFFER)
			cpu_fill(e, buffer_of(e, args[k]), ir_arg(y, k));
	for (unsigned k = 0; k < y->nargs; k++)
		if (staged[k] != CPU_NO_BUFFER) copy_buffer(e, buffer_of(e, args[k]), staged[k], args[k]->type);
	LLVMBasicBlockRef from = LLVMGetInsertBlock(e->builder);
	for (unsigned k = 0; k < y->nargs; k++) {
		if (!ir_is_scalar(args[k]) && !is_sliding(e, args[k])) continue;
		LLVMValueRef next =
			is_sliding(e, args[k]) ? slide(e, args[k], ir_arg(y, k)->def) : e->scalar[ir_arg(y, k)->id];
		LLVMAddIncoming(e->scalar[args[k]->id], &next, &from, 1);
	}
}

/* Python's range, in the unsigned numbers of the same width, where nothing overflows. */
static LLVMValueRef trip_count(cpu_emitter *e, scalar s, LLVMValueRef lo, LLVMValueRef hi, LLVMValueRef step)
{
	assert(scalar_is_integer(s));
	LLVMBuilderRef b = e->builder;
	LLVMValueRef zero = cpu_int(e, s, 0), one = cpu_int(e, s, 1);
	LLVMValueRef up = LLVMBuildICmp(b, scalar_is_signed(s) ? LLVMIntSGT : LLVMIntUGT, step, zero, "");
	LLVMIntPredicate less = scalar_is_signed(s) ? LLVMIntSLT : LLVMIntULT;
	LLVMValueRef forward = LLVMBuildAnd(b, up, LLVMBuildICmp(b, less, lo, hi, ""), "");
	LLVMValueRef down =
		scalar_is_signed(s) ? LLVMBuildICmp(b, LLVMIntSLT, step, zero, "") : LLVMConstInt(e->i1, 0, false);
	LLVMValueRef backward = LLVMBuildAnd(b, down, LLVMBuildICmp(b, less, hi, lo, ""), "");
	LLVMValueRef distance = cpu_select(e, up, LLVMBuildSub(b, hi, lo, ""), LLVMBuildSub(b, lo, hi, ""));
	LLVMValueRef size = cpu_select(e, up, step, LLVMBuildNeg(b, step, ""));
	LLVMValueRef runs = LLVMBuildOr(b, forward, backward, "");
	size = cpu_select(e, runs, size, one);
	LLVMValueRef n = LLVMBuildUDiv(b, LLVMBuildSub(b, distance, one, ""), size, "");
	return cpu_select(e, runs, LLVMBuildAdd(b, n, one, ""), zero);
}

void cpu_lower_for(cpu_emitter *e, ir_op *o)
{
	assert(o->kind == IR_FOR && o->nregions == 1);
	LLVMBuilderRef b = e->builder;
	ir_block *body = o->regions[0];
	scalar s = ir_arg(o, 0)->type.elem;
	LLVMValueRef lo = e->scalar[ir_arg(o, 0)->id], step = e->scalar[ir_arg(o, 2)->id];
	LLVMValueRef trips = trip_count(e, s, lo, e->scalar[ir_arg(o, 1)->id], step);
	LLVMBasicBlockRef header = cpu_block(e, "for"), inside = cpu_block(e, "body"), done;
	unsigned n = body->nargs - 1;
	LLVMBasicBlockRef from = enter(e, o, 3, body->args + 1, n, header);
	LLVMValueRef zero = cpu_int(e, s, 0);
	LLVMValueRef count = LLVMBuildPhi(b, cpu_type(e, ir_scalar_type(s)), "trip");
	LLVMValueRef i = LLVMBuildPhi(b, cpu_type(e, ir_scalar_type(s)), "i");
	LLVMAddIncoming(count, &zero, &from, 1);
	LLVMAddIncoming(i, &lo, &from, 1);
	e->scalar[body->args[0]->id] = i;
	LLVMValueRef more = LLVMBuildICmp(b, LLVMIntNE, count, trips, "");
	LLVMValueRef branch = LLVMBuildCondBr(b, more, inside, inside);
	LLVMPositionBuilderAtEnd(b, inside);
	cpu_lower_block(e, body);
	yield(e, body->last, body->args + 1);
	LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
	LLVMValueRef next = LLVMBuildNUWAdd(b, count, cpu_int(e, s, 1), "");
	LLVMValueRef after = LLVMBuildAdd(b, i, step, "");
	LLVMAddIncoming(count, &next, &latch, 1);
	LLVMAddIncoming(i, &after, &latch, 1);
	LLVMBuildBr(b, header);
	done = cpu_block(e, "endfor");
	LLVMSetSuccessor(branch, 1, done);
	LLVMPositionBuilderAtEnd(b, done);
	cpu_forget(e);
	for (unsigned k = 0; k < n; k++)
		e->scalar[o->results[k]->id] = e->scalar[body->args[k + 1]->id]; /* null for tiles in buffers */
}

void cpu_lower_while(cpu_emitter *e, ir_op *o)
{
	assert(o->kind == IR_WHILE && o->nregions == 2);
	ir_block *before = o->regions[0], *after = o->regions[1];
	LLVMBasicBlockRef header = cpu_block(e, "while"), inside, done;
	enter(e, o, 0, before->args, before->nargs, header);
	cpu_lower_block(e, before);
	ir_op *condition = before->last;
	for (uint32_t i = 0; i < after->nargs; i++) {
		ir_value *v = ir_arg(condition, i + 1);
		if (ir_is_scalar(v))
			e->scalar[after->args[i]->id] = e->scalar[o->results[i]->id] = e->scalar[v->id];
		else
			cpu_fill(e, buffer_of(e, after->args[i]), v);
	}
	inside = cpu_block(e, "body");
	done = cpu_block(e, "endwhile");
	LLVMBuildCondBr(e->builder, e->scalar[ir_arg(condition, 0)->id], inside, done);
	LLVMPositionBuilderAtEnd(e->builder, inside);
	cpu_forget(e);
	cpu_lower_block(e, after);
	yield(e, after->last, before->args);
	LLVMBuildBr(e->builder, header);
	LLVMPositionBuilderAtEnd(e->builder, done);
	cpu_forget(e);
}
