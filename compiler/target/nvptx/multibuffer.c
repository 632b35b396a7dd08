/* Multibuffers of tiles in shared memory: copies that run ahead, waits, and reads.
 *
 * In: what async/pipeline.c made.  Out: cp.async, its groups, and the loading half of a layout conversion.
 * The one idea: a multibuffer's slot is the scratch of a conversion from the layout of the copying threads to that of
 * the reading ones (multibuffer_plan), so addresses and swizzle are the conversion's own.  Where several read it in
 * layouts of their own, it is one of theirs, and the others load what lies so (multibuffer_read_plan). */
#include "lower.h"

#include "async/scratch.h"

#include <assert.h>

/* The first byte of a slot. */
static LLVMValueRef slot_offset(lower *l, const ir_op *o)
{
	const ir_op *multibuffer = ir_arg(o, 0)->def;
	assert(multibuffer && multibuffer->kind == IR_MULTIBUFFER);
	LLVMValueRef far =
		LLVMBuildMul(l->builder, lower_arg(l, o, 1).at[0], lower_i32(l, multibuffer_pitch(multibuffer)), "");
	return LLVMBuildAdd(l->builder, far, lower_i32(l, multibuffer->shared_offset), "");
}

/* cp.async.cg.shared.global [dst], [src], 16, n: n bytes from memory, zeros for the rest. */
static void copy(lower *l, unsigned bytes, LLVMValueRef to, LLVMValueRef from, LLVMValueRef mask, LLVMValueRef owner)
{
	assert(bytes == 4 || bytes == 8 || bytes == 16);
	text code = {.arena = l->arena};
	LLVMValueRef args[4] = {LLVMBuildPtrToInt(l->builder, to, l->i32, ""), from};
	unsigned n = 2;
	const char *constraints = "r,l";
	if (mask) {
		args[n++] = LLVMBuildSelect(l->builder, mask, lower_i32(l, bytes), lower_i32(l, 0), "");
		constraints = "r,l,r";
	}
	if (owner) {
		text_printf(&code, "@$%u ", n);
		args[n++] = owner;
		constraints = mask ? "r,l,r,b" : "r,l,b";
	}
	text_printf(&code, "cp.async.%s.shared.global [$0], [$1], %u%s;", bytes == 16 ? "cg" : "ca", bytes,
		mask ? ", $2" : "");
	lower_asm(l, code.at, constraints, l->none, n, args, LOWER_ASM_EFFECT);
}

void lower_async_copy(lower *l, ir_op *o)
{
	assert(o->kind == IR_ASYNC_COPY);
	const ir_op *multibuffer = ir_arg(o, 0)->def;
	const layout *y = multibuffer->results[0]->layout;
	tile pointer = lower_arg(l, o, 2), mask = {0};
	if (o->nargs > 3) mask = lower_arg(l, o, 3);
	layout_plan *plan = ARENA_NEW(l->arena, layout_plan);
	if (!multibuffer_plan(multibuffer, plan) ||
		multibuffer->shared_bytes < plan->bytes * ir_get_stages(multibuffer)) {
		lower_fail(l, o, "no shared memory was set aside for a multibuffer");
		return;
	}
	unsigned element = ir_element_bytes(multibuffer->results[0]->type), width = ir_get_width(o);
	LLVMValueRef base = slot_offset(l, o), owner = lower_owner(l, y);
	for (uint32_t r = 0; r < pointer.n; r += width) {
		LLVMValueRef to = lower_shared_address(l, lower_plan_offset(l, &plan->store, base, element, r));
		copy(l, width * element, to, pointer.at[r], mask.at ? mask.at[r] : NULL, owner);
	}
}

void lower_async_commit(lower *l, ir_op *o)
{
	(void)o;
	lower_asm(l, "cp.async.commit_group;", "", l->none, 0, NULL, LOWER_ASM_EFFECT);
}

void lower_async_wait(lower *l, ir_op *o)
{
	lower_asm(l, arena_printf(l->arena, "cp.async.wait_group %u;", ir_get_pending(o)), "", l->none, 0, NULL,
		LOWER_ASM_EFFECT);
}

late_tile lower_late(const lower *l, const ir_value *v)
{
	return l->late[v->id];
}

/* A dot of the same iteration reads its fragments itself, those of a step of k while it multiplies the step before: no
 * copy goes into this slot before the next iteration's barrier. */
static bool only_for_dot(ir_op *o)
{
	const ir_use *u = ir_result(o)->uses;
	if (!u || u->next || u->user->block != o->block) return false;
	if (u->user->kind == IR_PERMUTE) return only_for_dot(u->user);
	return u->user->kind == IR_DOT && (u->user->args[0] == u || u->user->args[1] == u);
}

void lower_permute(lower *l, ir_op *o)
{
	assert(o->kind == IR_PERMUTE);
	late_tile late = lower_late(l, ir_arg(o, 0));
	if (late.plan)
		l->late[ir_result(o)->id] = late; /* the registers stay what they are */
	else
		lower_shape_op(l, o);
}

/* The same number, which LLVM does not add to a thread's own part of an address.  So the assembler has it in a uniform
 * register, and an address needs none of its own for each slot: such a one would wait, at the beginning of an
 * iteration, for the atomics of the last one, whose registers it gets. */
static LLVMValueRef opaque(lower *l, LLVMValueRef base)
{
	return lower_asm(l, "mov.b32 $0, $1;", "=r,r", l->i32, 1, &base, 0);
}

void lower_multibuffer_read(lower *l, ir_op *o)
{
	assert(o->kind == IR_MULTIBUFFER_READ);
	layout_plan *plan = ARENA_NEW(l->arena, layout_plan);
	if (!multibuffer_read_plan(o, plan)) {
		lower_fail(l, o, "a multibuffer that nobody reads");
		return;
	}
	LLVMValueRef base = slot_offset(l, o);
	if (only_for_dot(o)) {
		l->late[ir_result(o)->id] = (late_tile){plan, base};
		return;
	}
	if (l->func->producer_warps) base = opaque(l, base);
	tile out = lower_new_tile(l, ir_result(o));
	lower_plan_load(l, plan, base, ir_element(ir_result(o)->type), out);
	lower_set(l, ir_result(o), out);
}
