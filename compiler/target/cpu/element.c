/* The element generator: one element of a tile, at an index, as LLVM instructions at the builder's place.
 *
 * In: a value and one i64 for each dimension.  Out: the element in its register form.
 * The one idea: lazy values recurse into their operands with the index remapped, stored ones are read from their
 * buffer, and what was computed once in a loop's body is remembered until the loop ends.  Nothing generated here
 * leaves the straight line (a masked load branches and rejoins), so a remembered element dominates what follows. */
#include "lower.h"

#include <string.h>

/* ---- memory ---- */

LLVMValueRef cpu_memory_load(cpu_emitter *e, ir_type t, LLVMValueRef address)
{
	bool is_bool = !t.pointer && t.elem == SCALAR_BOOL;
	LLVMValueRef v = LLVMBuildLoad2(e->builder, is_bool ? e->i8 : cpu_type(e, t), address, "");
	LLVMSetAlignment(v, ir_element_bytes(t));
	return v;
}

LLVMValueRef cpu_memory_store(cpu_emitter *e, ir_type t, LLVMValueRef address, LLVMValueRef v)
{
	if (!t.pointer && t.elem == SCALAR_BOOL) v = LLVMBuildZExt(e->builder, v, e->i8, "");
	LLVMValueRef store = LLVMBuildStore(e->builder, v, address);
	LLVMSetAlignment(store, ir_element_bytes(t));
	return store;
}

static LLVMValueRef as_bool(cpu_emitter *e, ir_type t, LLVMValueRef v)
{
	if (t.pointer || t.elem != SCALAR_BOOL) return v;
	return LLVMBuildICmp(e->builder, LLVMIntNE, v, LLVMConstInt(e->i8, 0, false), "");
}

static void mark_alias(cpu_emitter *e, uint32_t buffer, LLVMValueRef access)
{
	if (!e->scope) return;
	LLVMSetMetadata(access, LLVMGetMDKindIDInContext(e->context, "alias.scope", 11), e->scope[buffer]);
	if (e->noalias[buffer])
		LLVMSetMetadata(access, LLVMGetMDKindIDInContext(e->context, "noalias", 7), e->noalias[buffer]);
}

static LLVMValueRef buffer_address(cpu_emitter *e, uint32_t buffer, ir_type t, LLVMValueRef linear)
{
	LLVMValueRef offset = cpu_index(e, e->plan->buffers.at[buffer].offset);
	LLVMValueRef base = LLVMBuildInBoundsGEP2(e->builder, e->i8, e->scratch, &offset, 1, "");
	LLVMTypeRef type = !t.pointer && t.elem == SCALAR_BOOL ? e->i8 : cpu_type(e, t);
	return LLVMBuildInBoundsGEP2(e->builder, type, base, &linear, 1, "");
}

LLVMValueRef cpu_buffer_load(cpu_emitter *e, uint32_t buffer, ir_type t, LLVMValueRef linear)
{
	LLVMValueRef v = cpu_memory_load(e, t, buffer_address(e, buffer, t, linear));
	mark_alias(e, buffer, v);
	return as_bool(e, t, v);
}

void cpu_buffer_store(cpu_emitter *e, uint32_t buffer, ir_type t, LLVMValueRef linear, LLVMValueRef v)
{
	mark_alias(e, buffer, cpu_memory_store(e, t, buffer_address(e, buffer, t, linear), v));
}

LLVMValueRef cpu_buffer_load_vector(cpu_emitter *e, uint32_t buffer, ir_type t, unsigned lanes, LLVMValueRef linear)
{
	LLVMTypeRef type = LLVMVectorType(cpu_type(e, ir_element(t)), lanes);
	LLVMValueRef v = LLVMBuildLoad2(e->builder, type, buffer_address(e, buffer, t, linear), "");
	LLVMSetAlignment(v, ir_element_bytes(t));
	mark_alias(e, buffer, v);
	return v;
}

void cpu_buffer_store_vector(cpu_emitter *e, uint32_t buffer, ir_type t, LLVMValueRef linear, LLVMValueRef v)
{
	LLVMValueRef store = LLVMBuildStore(e->builder, v, buffer_address(e, buffer, t, linear));
	LLVMSetAlignment(store, ir_element_bytes(t));
	mark_alias(e, buffer, store);
}

static void set_volatile(const ir_op *o, LLVMValueRef access)
{
	if (o->kind == IR_LOAD && ir_get_volatile(o)) LLVMSetVolatile(access, true);
}

LLVMValueRef cpu_load_element(cpu_emitter *e, const ir_op *o, LLVMValueRef *args)
{
	ir_type t = ir_element(o->results[0]->type);
	LLVMValueRef v, mask = cpu_bounds(e, o, args[0], o->nargs > 1 ? args[1] : NULL);
	if (!mask) {
		v = cpu_memory_load(e, t, args[0]);
		set_volatile(o, v);
		return as_bool(e, t, v);
	}
	LLVMBasicBlockRef inside = cpu_block(e, "load"), join = cpu_block(e, "loaded");
	LLVMBasicBlockRef from = LLVMGetInsertBlock(e->builder);
	LLVMBuildCondBr(e->builder, mask, inside, join);
	LLVMPositionBuilderAtEnd(e->builder, inside);
	v = cpu_memory_load(e, t, args[0]);
	set_volatile(o, v);
	v = as_bool(e, t, v);
	LLVMBuildBr(e->builder, join);
	LLVMPositionBuilderAtEnd(e->builder, join);
	LLVMValueRef phi = LLVMBuildPhi(e->builder, cpu_type(e, t), "");
	LLVMValueRef values[] = {o->nargs > 2 ? args[2] : LLVMConstNull(cpu_type(e, t)), v};
	LLVMBasicBlockRef blocks[] = {from, inside};
	LLVMAddIncoming(phi, values, blocks, 2);
	if (!e->nests) cpu_bounds_end(e);
	return phi;
}

void cpu_store_element(cpu_emitter *e, const ir_op *o, LLVMValueRef *args)
{
	ir_type t = ir_element(ir_arg(o, 1)->type);
	LLVMValueRef mask = cpu_bounds(e, o, args[0], o->nargs > 2 ? args[2] : NULL);
	if (!mask) {
		cpu_memory_store(e, t, args[0], args[1]);
		return;
	}
	LLVMBasicBlockRef inside = cpu_block(e, "store"), join = cpu_block(e, "stored");
	LLVMBuildCondBr(e->builder, mask, inside, join);
	LLVMPositionBuilderAtEnd(e->builder, inside);
	cpu_memory_store(e, t, args[0], args[1]);
	LLVMBuildBr(e->builder, join);
	LLVMPositionBuilderAtEnd(e->builder, join);
}

/* ---- shape operations: the index of the operand ---- */

static void delinearise(cpu_emitter *e, ir_type t, LLVMValueRef linear, LLVMValueRef *index)
{
	for (unsigned d = t.rank; d-- > 0;) {
		LLVMValueRef extent = cpu_index(e, t.dim[d]);
		index[d] = d ? LLVMBuildURem(e->builder, linear, extent, "") : linear;
		linear = LLVMBuildUDiv(e->builder, linear, extent, "");
	}
}

static LLVMValueRef reshaped(cpu_emitter *e, const ir_op *o, const LLVMValueRef *index)
{
	ir_value *a = ir_arg(o, 0);
	ir_type from = a->type, to = o->results[0]->type;
	LLVMValueRef inner[IR_MAX_RANK];
	const cpu_value_plan *plan = &e->plan->value[a->id];
	if (plan->place == CPU_BUFFER) return cpu_buffer_load(e, plan->buffer, from, cpu_linear(e, to, index));
	if (!cpu_unit_reshape(o)) {
		delinearise(e, from, cpu_linear(e, to, index), inner);
		return cpu_element(e, a, inner);
	}
	for (unsigned d = 0, j = 0; d < from.rank; d++) {
		inner[d] = cpu_index(e, 0);
		if (from.dim[d] == 1) continue;
		while (to.dim[j] == 1) j++;
		inner[d] = index[j++];
	}
	return cpu_element(e, a, inner);
}

static LLVMValueRef shape_element(cpu_emitter *e, const ir_op *o, const LLVMValueRef *index)
{
	ir_value *a = ir_arg(o, 0);
	LLVMValueRef inner[IR_MAX_RANK];
	switch (o->kind) {
	case IR_EXPAND_DIMS:
		for (unsigned d = 0; d < a->type.rank; d++) inner[d] = index[d + (d >= ir_get_axis(o))];
		break;
	case IR_BROADCAST:
		for (unsigned d = 0; d < a->type.rank; d++) inner[d] = a->type.dim[d] == 1 ? cpu_index(e, 0) : index[d];
		break;
	case IR_PERMUTE:
		for (unsigned d = 0; d < a->type.rank; d++) inner[ir_unpack(ir_get_order(o), d)] = index[d];
		break;
	case IR_RESHAPE: return reshaped(e, o, index);
	case IR_FLIP:
		for (unsigned d = 0; d < a->type.rank; d++)
			inner[d] = d != ir_get_axis(o) ? index[d]
						       : LLVMBuildNUWSub(e->builder, cpu_index(e, a->type.dim[d] - 1),
								 index[d], "");
		break;
	default: return cpu_element(e, a, index); /* splat, hint */
	}
	return cpu_element(e, a, inner);
}

/* ---- elements ---- */

static LLVMValueRef sliding_element(cpu_emitter *e, const ir_value *v, ir_value *base, const LLVMValueRef *index)
{
	LLVMValueRef at = cpu_element(e, base, index), far = e->scalar[v->id];
	return v->type.pointer ? cpu_offset(e, v->type.elem, at, far) : LLVMBuildAdd(e->builder, at, far, "");
}

LLVMValueRef cpu_compute(cpu_emitter *e, ir_value *v, const LLVMValueRef *index)
{
	const ir_op *o = v->def;
	ir_value *base = e->plan->value[v->id].base;
	if (base) return sliding_element(e, v, base, index);
	switch (o->kind) {
	case IR_CONST: return cpu_constant(e, ir_element(v->type), ir_get_value(o));
	case IR_ARANGE:
		return LLVMBuildAdd(e->builder, LLVMBuildTrunc(e->builder, index[0], e->i32, ""),
			cpu_int(e, SCALAR_I32, ir_get_lo(o)), "");
	case IR_SPLAT:
	case IR_EXPAND_DIMS:
	case IR_BROADCAST:
	case IR_PERMUTE:
	case IR_RESHAPE:
	case IR_FLIP:
	case IR_HINT: return shape_element(e, o, index);
	default: break;
	}
	LLVMValueRef args[3] = {NULL}, result;
	LLVMMetadataRef before = cpu_debug_line(e, o->at);
	for (unsigned i = 0; i < o->nargs && i < 3; i++) args[i] = cpu_element(e, ir_arg(o, i), index);
	result = o->kind == IR_LOAD ? cpu_load_element(e, o, args) : cpu_apply(e, o, args);
	cpu_debug_back(e, before);
	return result;
}

static cpu_memo *remembered(cpu_emitter *e, const ir_value *v, const LLVMValueRef *index)
{
	for (cpu_memo *m = e->memo[v->id]; m && m->epoch == e->memo_epoch; m = m->next)
		if (memcmp(m->index, index, v->type.rank * sizeof *index) == 0) return m;
	return NULL;
}

LLVMValueRef cpu_element(cpu_emitter *e, ir_value *v, const LLVMValueRef *index)
{
	if (ir_is_scalar(v)) return e->scalar[v->id];
	cpu_memo *m = remembered(e, v, index);
	if (m) return m->result;
	const cpu_value_plan *plan = &e->plan->value[v->id];
	LLVMValueRef result = plan->place == CPU_BUFFER
				      ? cpu_buffer_load(e, plan->buffer, v->type, cpu_linear(e, v->type, index))
				      : cpu_compute(e, v, index);
	m = ARENA_NEW(e->arena, cpu_memo);
	*m = (cpu_memo){.epoch = e->memo_epoch, .result = result, .next = e->memo[v->id]};
	memcpy(m->index, index, v->type.rank * sizeof *index);
	e->memo[v->id] = m;
	return result;
}
