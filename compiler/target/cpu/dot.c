/* Products of matrices: dot.
 *
 * In: a dot and the plan.  Out: its buffer filled.
 * Operands are written once, widened to the type that sums are made in, row-major; the accumulator goes where the sum
 * will be, and mostly lies there already (grown_in_place in plan.c).  The one idea: a block of the sum, `rows` by
 * `vectors` vectors, stays in registers while k runs; every step loads a few vectors of b and adds each, times one
 * element of a, to a row.  Every precision of f32 computes alike here: in f32. */
#include "lower.h"

typedef struct product {
	cpu_emitter *e;
	scalar s;
	ir_type a, b, sum; /* with that element type */
	uint32_t a_buffer, b_buffer, sum_buffer;
	unsigned lanes, rows, vectors;
} product;

/* The greatest power of two that divides an extent, and is no more than the limit, another one. */
static uint32_t at_most(uint32_t extent, uint32_t limit)
{
	uint32_t n = extent & (0 - extent);
	return n < limit ? n : limit;
}

/* The buffer that holds an operand in the type of the sum. */
static uint32_t operand(product *p, ir_value *v, ir_type wide, uint32_t buffer)
{
	cpu_emitter *e = p->e;
	const cpu_value_plan *plan = &e->plan->value[v->id];
	if (plan->place == CPU_BUFFER && v->type.elem == wide.elem) return plan->buffer;
	cpu_nest n;
	cpu_nest_open(e, &n, v->type.rank, v->type.dim);
	LLVMValueRef element = cpu_convert(e, p->s, v->type.elem, cpu_element(e, v, n.index));
	cpu_buffer_store(e, buffer, wide, cpu_linear(e, wide, n.index), element);
	cpu_nest_close(e, &n);
	return buffer;
}

/* The sum's buffer before the first product. */
static void start(product *p, ir_value *acc)
{
	cpu_emitter *e = p->e;
	cpu_nest n;
	if (acc) {
		const cpu_value_plan *plan = &e->plan->value[acc->id];
		if (plan->place == CPU_BUFFER && plan->buffer == p->sum_buffer) return;
	}
	cpu_nest_open(e, &n, p->sum.rank, p->sum.dim);
	LLVMValueRef element = LLVMConstNull(cpu_type(e, ir_element(p->sum)));
	if (acc) element = cpu_convert(e, p->s, acc->type.elem, cpu_element(e, acc, n.index));
	cpu_buffer_store(e, p->sum_buffer, p->sum, cpu_linear(e, p->sum, n.index), element);
	cpu_nest_close(e, &n);
}

static LLVMValueRef everywhere(cpu_emitter *e, LLVMValueRef v, unsigned lanes)
{
	LLVMTypeRef i32 = e->i32, vector = LLVMVectorType(LLVMTypeOf(v), lanes);
	LLVMValueRef one = LLVMBuildInsertElement(e->builder, LLVMGetPoison(vector), v, LLVMConstNull(i32), "");
	return LLVMBuildShuffleVector(
		e->builder, one, LLVMGetPoison(vector), LLVMConstNull(LLVMVectorType(i32, lanes)), "");
}

static LLVMValueRef multiply_add(product *p, LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum)
{
	LLVMBuilderRef build = p->e->builder;
	if (!scalar_is_float(p->s)) return LLVMBuildAdd(build, sum, LLVMBuildMul(build, a, b, ""), "");
	return cpu_contract(LLVMBuildFAdd(build, sum, cpu_contract(LLVMBuildFMul(build, a, b, "")), ""));
}

/* Place (batch, row + r, column + c) of a tile of that type; `batch` is null in two dimensions. */
static LLVMValueRef place(
	product *p, ir_type t, LLVMValueRef batch, LLVMValueRef row, uint32_t r, LLVMValueRef column, uint32_t c)
{
	LLVMBuilderRef build = p->e->builder;
	LLVMValueRef index[3], *at = index;
	if (t.rank == 3) *at++ = batch;
	*at++ = LLVMBuildNUWAdd(build, row, cpu_index(p->e, r), "");
	*at = LLVMBuildNUWAdd(build, column, cpu_index(p->e, c), "");
	return cpu_linear(p->e, t, index);
}

/* One block of the sum, with k from end to end. */
static void block(product *p, LLVMValueRef batch, LLVMValueRef row, LLVMValueRef column)
{
	cpu_emitter *e = p->e;
	LLVMBuilderRef build = e->builder;
	unsigned n = p->rows * p->vectors;
	uint32_t extent = p->a.dim[p->a.rank - 1];
	LLVMValueRef *sum = ARENA_ARRAY(e->arena, LLVMValueRef, n), *next = ARENA_ARRAY(e->arena, LLVMValueRef, n);
	LLVMValueRef *where = ARENA_ARRAY(e->arena, LLVMValueRef, n), zero = cpu_index(e, 0);
	for (unsigned i = 0; i < n; i++) {
		where[i] = place(p, p->sum, batch, row, i / p->vectors, column, i % p->vectors * p->lanes);
		sum[i] = cpu_buffer_load_vector(e, p->sum_buffer, p->sum, p->lanes, where[i]);
	}
	LLVMBasicBlockRef from = LLVMGetInsertBlock(build), loop = cpu_block(e, "dot"), done = cpu_block(e, "sum");
	LLVMBuildBr(build, loop);
	LLVMPositionBuilderAtEnd(build, loop);
	LLVMValueRef k = LLVMBuildPhi(build, e->i64, "k");
	LLVMAddIncoming(k, &zero, &from, 1);
	for (unsigned i = 0; i < n; i++) {
		LLVMValueRef phi = LLVMBuildPhi(build, LLVMTypeOf(sum[i]), "");
		LLVMAddIncoming(phi, &sum[i], &from, 1);
		sum[i] = phi;
	}
	for (unsigned c = 0; c < p->vectors; c++) {
		LLVMValueRef b = cpu_buffer_load_vector(
			e, p->b_buffer, p->b, p->lanes, place(p, p->b, batch, k, 0, column, c * p->lanes));
		for (unsigned r = 0; r < p->rows; r++) {
			LLVMValueRef a = cpu_buffer_load(e, p->a_buffer, p->a, place(p, p->a, batch, row, r, k, 0));
			next[r * p->vectors + c] =
				multiply_add(p, everywhere(e, a, p->lanes), b, sum[r * p->vectors + c]);
		}
	}
	LLVMValueRef step = LLVMBuildNUWAdd(build, k, cpu_index(e, 1), "");
	LLVMAddIncoming(k, &step, &loop, 1);
	for (unsigned i = 0; i < n; i++) LLVMAddIncoming(sum[i], &next[i], &loop, 1);
	LLVMBuildCondBr(build, LLVMBuildICmp(build, LLVMIntEQ, step, cpu_index(e, extent), ""), done, loop);
	LLVMPositionBuilderAtEnd(build, done);
	for (unsigned i = 0; i < n; i++) cpu_buffer_store_vector(e, p->sum_buffer, p->sum, where[i], next[i]);
}

static void blocks(product *p)
{
	cpu_emitter *e = p->e;
	unsigned r = p->sum.rank;
	uint32_t m = p->sum.dim[r - 2], n = p->sum.dim[r - 1];
	p->lanes = at_most(n, e->vector_bytes / scalar_bytes(p->s));
	p->vectors = at_most(n / p->lanes, 2);
	p->rows = at_most(m, e->vector_registers / 4);
	uint32_t extent[] = {r == 3 ? p->sum.dim[0] : 1, m / p->rows, n / (p->lanes * p->vectors)};
	cpu_nest nest;
	cpu_nest_open(e, &nest, 3, extent);
	LLVMValueRef row = LLVMBuildNUWMul(e->builder, nest.index[1], cpu_index(e, p->rows), "");
	LLVMValueRef column = LLVMBuildNUWMul(e->builder, nest.index[2], cpu_index(e, p->lanes * p->vectors), "");
	block(p, nest.index[0], row, column);
	cpu_nest_close(e, &nest);
}

/* Rounds the sums to a narrower result. */
static void finish(product *p, const ir_value *result)
{
	cpu_emitter *e = p->e;
	uint32_t to = e->plan->value[result->id].buffer;
	cpu_nest n;
	if (to == p->sum_buffer) return;
	cpu_nest_open(e, &n, result->type.rank, result->type.dim);
	LLVMValueRef linear = cpu_linear(e, result->type, n.index);
	LLVMValueRef v = cpu_buffer_load(e, p->sum_buffer, p->sum, linear);
	cpu_buffer_store(e, to, result->type, linear, cpu_convert(e, result->type.elem, p->s, v));
	cpu_nest_close(e, &n);
}

void cpu_lower_dot(cpu_emitter *e, ir_op *o)
{
	ir_value *a = ir_arg(o, 0), *b = ir_arg(o, 1), *result = o->results[0];
	if (e->plan->value[result->id].place == CPU_UNUSED) return;
	const uint32_t *buffer = cpu_plan_op(e->plan, o)->extra;
	product p = {.e = e, .s = cpu_dot_type(o), .sum_buffer = buffer[2]};
	p.a = ir_with_elem(a->type, p.s);
	p.b = ir_with_elem(b->type, p.s);
	p.sum = ir_with_elem(result->type, p.s);
	p.a_buffer = operand(&p, a, p.a, buffer[0]);
	p.b_buffer = operand(&p, b, p.b, buffer[1]);
	start(&p, o->nargs > 2 ? ir_arg(o, 2) : NULL);
	blocks(&p);
	finish(&p, result);
}
