/* Reductions along one axis.
 *
 * In: k tiles of one layout.  Out: k tiles (or scalars) in the slice layout, the same bits in every thread that holds a
 * copy.  The one idea: the plan (async/scratch.h) lists the bits of the axis in the order in which they are to be
 * combined, each as a step inside a thread, between lanes, or between warps; here each step becomes code.
 *
 * Built-in combinations commute, so both lanes of a shuffle compute the same bits whichever operand stands left; a
 * custom one gets its operands in index order, chosen by the lane's own bit. */
#include "lower.h"

#include "async/scratch.h"

#include <assert.h>
#include <string.h>

typedef struct reduction {
	ir_op *op;
	const layout *layout; /* of the operands */
	unsigned k;
	tile acc[REDUCE_MAX_OPERANDS];
	uint32_t done; /* register bits combined so far: registers without them are live */
} reduction;

static scalar operand_scalar(const reduction *c, unsigned i)
{
	return ir_arg(c->op, i)->type.elem;
}

static void combine_custom(lower *l, ir_op *o, LLVMValueRef *a, LLVMValueRef *b, LLVMValueRef *out)
{
	assert(o->nregions == 1 && o->regions[0]->nargs == 2u * o->nargs);
	ir_block *f = o->regions[0];
	unsigned k = o->nargs;
	for (unsigned i = 0; i < 2 * k; i++) {
		tile t = lower_new_tile(l, f->args[i]);
		t.at[0] = i < k ? a[i] : b[i - k];
		lower_set(l, f->args[i], t);
	}
	lower_block(l, f);
	for (unsigned i = 0; i < k; i++) out[i] = lower_arg(l, f->last, i).at[0];
}

void lower_combine_elements(lower *l, ir_op *o, LLVMValueRef *a, LLVMValueRef *b, LLVMValueRef *out)
{
	assert(o->kind == IR_REDUCE || o->kind == IR_SCAN);
	ir_combine how = ir_get_combine(o);
	if (how == IR_CUSTOM) {
		combine_custom(l, o, a, b, out);
		return;
	}
	for (unsigned i = 0; i < o->nargs; i++) {
		scalar s = (scalar)ir_arg(o, i)->type.elem;
		out[i] = lower_binary(l, ir_combines_by(how), s, a[i], b[i]);
		if (out[i]) continue;
		lower_fail(l, o, "a '%s' %s of %s has no lowering", ir_combine_names[how], ir_info(o)->name,
			scalar_name(s));
		out[i] = a[i];
	}
}

static void get(const reduction *c, uint32_t r, LLVMValueRef *v)
{
	for (unsigned i = 0; i < c->k; i++) v[i] = c->acc[i].at[r];
}

static void put(reduction *c, uint32_t r, LLVMValueRef *v)
{
	for (unsigned i = 0; i < c->k; i++) c->acc[i].at[r] = v[i];
}

static void register_step(lower *l, reduction *c, unsigned bit)
{
	assert(!(c->done >> bit & 1));
	uint32_t mask = UINT32_C(1) << bit;
	c->done |= mask;
	for (uint32_t r = 0; r < layout_registers(c->layout); r++) {
		if (r & c->done) continue;
		LLVMValueRef a[REDUCE_MAX_OPERANDS], b[REDUCE_MAX_OPERANDS];
		get(c, r, a);
		get(c, r | mask, b);
		lower_combine_elements(l, c->op, a, b, a);
		put(c, r, a);
	}
}

static void lane_step(lower *l, reduction *c, unsigned bit)
{
	assert(bit < 5);
	bool ordered = ir_get_combine(c->op) == IR_CUSTOM;
	LLVMValueRef is_left = NULL;
	if (ordered) {
		LLVMValueRef own = LLVMBuildAnd(l->builder, l->tid, lower_i32(l, INT64_C(1) << bit), "");
		is_left = LLVMBuildICmp(l->builder, LLVMIntEQ, own, lower_i32(l, 0), "");
	}
	for (uint32_t r = 0; r < layout_registers(c->layout); r++) {
		if (r & c->done) continue;
		LLVMValueRef a[REDUCE_MAX_OPERANDS], b[REDUCE_MAX_OPERANDS];
		get(c, r, a);
		for (unsigned i = 0; i < c->k; i++) {
			ir_type t = ir_scalar_type(operand_scalar(c, i));
			b[i] = lower_shuffle(l, "bfly", t, a[i], lower_i32(l, INT64_C(1) << bit));
			if (!ordered) continue;
			LLVMValueRef left = LLVMBuildSelect(l->builder, is_left, a[i], b[i], "");
			b[i] = LLVMBuildSelect(l->builder, is_left, b[i], a[i], "");
			a[i] = left;
		}
		lower_combine_elements(l, c->op, a, b, a);
		put(c, r, a);
	}
}

const char *nvptx_warp_reduction(const ir_op *o)
{
	scalar s = ir_arg(o, 0)->type.elem;
	bool is_signed = scalar_is_signed(s), word = s == SCALAR_I32 || s == SCALAR_U32, truth = s == SCALAR_BOOL;
	if (o->nargs > 1) return NULL;
	switch (ir_get_combine(o)) {
	case IR_SUM: return word ? "llvm.nvvm.redux.sync.add" : NULL;
	case IR_MAXIMUM:
		if (word) return is_signed ? "llvm.nvvm.redux.sync.max" : "llvm.nvvm.redux.sync.umax";
		return truth ? "llvm.nvvm.vote.any.sync" : NULL;
	case IR_MINIMUM:
		if (word) return is_signed ? "llvm.nvvm.redux.sync.min" : "llvm.nvvm.redux.sync.umin";
		return truth ? "llvm.nvvm.vote.all.sync" : NULL;
	case IR_XOR_SUM: return word ? "llvm.nvvm.redux.sync.xor" : NULL;
	case IR_ALL: return truth ? "llvm.nvvm.vote.all.sync" : word ? "llvm.nvvm.redux.sync.and" : NULL;
	case IR_SOME: return truth ? "llvm.nvvm.vote.any.sync" : word ? "llvm.nvvm.redux.sync.or" : NULL;
	default: return NULL;
	}
}

/* True if the five steps from number s on are the five lane bits and one instruction does them all. */
static bool takes_whole_warp(const reduction *c, const reduce_plan *p, uint32_t s)
{
	assert(s < p->nsteps);
	if (s + 5 > p->nsteps || !nvptx_warp_reduction(c->op)) return false;
	for (unsigned i = 0; i < 5; i++)
		if (p->step[s + i].in != LAYOUT_LANE) return false;
	return true;
}

static void whole_warp(lower *l, reduction *c)
{
	const char *form = nvptx_warp_reduction(c->op);
	bool truth = operand_scalar(c, 0) == SCALAR_BOOL;
	for (uint32_t r = 0; r < layout_registers(c->layout); r++) {
		if (r & c->done) continue;
		LLVMValueRef v = c->acc[0].at[r], all = lower_i32(l, -1);
		LLVMValueRef args[2] = {truth ? all : v, truth ? v : all};
		c->acc[0].at[r] = lower_intrinsic(l, form, truth ? l->i1 : l->i32, 2, args);
	}
}

/* ---- between warps ---- */

/* Byte offset, inside operand i's part, of a register's value; with the number of the writing warp if `writing`. */
static LLVMValueRef slot_offset(lower *l, const ir_op *o, const reduce_step *s, unsigned i, uint32_t r, bool writing)
{
	assert(i < o->nargs);
	const layout *y = ir_arg(o, 0)->layout;
	unsigned bytes = ir_element_bytes(ir_arg(o, i)->type), warps = 1u << s->nbits;
	tid_map m = lower_tid_columns(y);
	for (unsigned b = 0; b < LOWER_TID_BITS; b++) m.col[b] = reduce_slot(s, m.col[b]) * warps * bytes;
	for (unsigned b = 0; writing && b < s->nbits; b++) m.col[5 + s->bit[b]] |= (bytes << b);
	uint32_t constant = reduce_slot(s, layout_apply(y, r, 0, 0)) * warps * bytes;
	LLVMValueRef v = lower_combine(l, lower_tid_map(l, &m), lower_map_bits(&m), constant);
	v = LLVMBuildAdd(l->builder, v, lower_i32(l, s->operand_offset[i]), "");
	return LLVMBuildAdd(l->builder, v, lower_scratch(l, o), "");
}

static LLVMValueRef writers(lower *l, const reduce_step *s)
{
	uint32_t skip = (s->skip_lane | s->skip_warp << 5) & ((UINT32_C(1) << l->tid_bits) - 1);
	if (!skip) return NULL;
	LLVMValueRef bits = LLVMBuildAnd(l->builder, l->tid, lower_i32(l, skip), "");
	return LLVMBuildICmp(l->builder, LLVMIntEQ, bits, lower_i32(l, 0), "");
}

void lower_write_partial(lower *l, ir_op *o, const reduce_step *s, unsigned i, uint32_t r, LLVMValueRef v)
{
	words w = lower_pack(l, ir_element(ir_arg(o, i)->type), 1, &v);
	lower_shared_store(l, slot_offset(l, o, s, i, r, true), &w, writers(l, s));
}

/* In as wide loads as there are. */
void lower_read_partials(lower *l, ir_op *o, const reduce_step *s, unsigned i, uint32_t r, LLVMValueRef *v)
{
	assert(i < o->nargs && s->nbits <= 5);
	ir_type t = ir_element(ir_arg(o, i)->type);
	unsigned bytes = ir_element_bytes(t), n = 1u << s->nbits, each = 16 / bytes < n ? 16 / bytes : n;
	LLVMValueRef base = slot_offset(l, o, s, i, r, false);
	for (unsigned at = 0; at < n; at += each) {
		words w = lower_word_shape(t, each);
		LLVMValueRef offset = LLVMBuildAdd(l->builder, base, lower_i32(l, at * bytes), "");
		lower_shared_load(l, offset, each * bytes, &w);
		lower_unpack(l, t, each, v + at, &w);
	}
}

/* Neighbours first: order is kept, and the chain of dependent combinations is short. */
static void combine_partials(lower *l, reduction *c, unsigned n, LLVMValueRef (*v)[32], uint32_t r)
{
	LLVMValueRef a[REDUCE_MAX_OPERANDS], b[REDUCE_MAX_OPERANDS];
	for (unsigned step = 1; step < n; step *= 2)
		for (unsigned x = 0; x < n; x += 2 * step) {
			for (unsigned i = 0; i < c->k; i++) a[i] = v[i][x], b[i] = v[i][x + step];
			lower_combine_elements(l, c->op, a, b, a);
			for (unsigned i = 0; i < c->k; i++) v[i][x] = a[i];
		}
	for (unsigned i = 0; i < c->k; i++) a[i] = v[i][0];
	put(c, r, a);
}

static void warp_pass(lower *l, reduction *c, const reduce_step *s, uint32_t n)
{
	uint32_t nreg = layout_registers(c->layout);
	for (uint32_t r = 0; r < nreg; r++)
		for (unsigned i = 0; !(r & c->done) && reduce_in_pass(s, n, r) && i < c->k; i++)
			lower_write_partial(l, c->op, s, i, r, c->acc[i].at[r]);
	lower_barrier(l);
	for (uint32_t r = 0; r < nreg; r++) {
		if (r & c->done || !reduce_in_pass(s, n, r)) continue;
		LLVMValueRef v[REDUCE_MAX_OPERANDS][32];
		for (unsigned i = 0; i < c->k; i++) lower_read_partials(l, c->op, s, i, r, v[i]);
		combine_partials(l, c, 1u << s->nbits, v, r);
	}
}

static void warp_step(lower *l, reduction *c, const reduce_step *s)
{
	assert(s->in == LAYOUT_WARP);
	if (c->op->shared_bytes < s->bytes) {
		lower_fail(l, c->op, "no shared memory was set aside for a reduction");
		return;
	}
	for (uint32_t n = 0; n < UINT32_C(1) << s->npasses; n++) {
		if (n) lower_barrier(l);
		warp_pass(l, c, s, n);
	}
}

/* ---- the whole ---- */

static void set_results(lower *l, reduction *c)
{
	assert(c->k == c->op->nresults);
	uint32_t axis = layout_dim_bits(c->layout, ir_get_axis(c->op));
	for (unsigned i = 0; i < c->k; i++) {
		tile out = lower_new_tile(l, c->op->results[i]);
		for (uint32_t r = 0; r < layout_registers(c->layout); r++) {
			if (r & c->done) continue;
			uint32_t to = c->op->results[i]->layout ? layout_narrow_register(c->layout, axis, r) : 0;
			if (to < out.n && !out.at[to]) out.at[to] = c->acc[i].at[r];
		}
		for (uint32_t r = 0; r < out.n; r++)
			if (!out.at[r]) {
				lower_fail(l, c->op, "a reduction's result has registers that nothing fills");
				return;
			}
		lower_set(l, c->op->results[i], out);
	}
}

void lower_reduce(lower *l, ir_op *o)
{
	assert(o->kind == IR_REDUCE && o->nargs <= REDUCE_MAX_OPERANDS);
	reduction c = {.op = o, .layout = ir_arg(o, 0)->layout, .k = o->nargs};
	reduce_plan plan;
	if (o->nargs > REDUCE_MAX_OPERANDS || !c.layout) {
		lower_fail(l, o, "a reduction of more than %d tiles has no lowering", REDUCE_MAX_OPERANDS);
		return;
	}
	for (unsigned i = 0; i < c.k; i++) {
		tile in = lower_arg(l, o, i);
		c.acc[i] = (tile){ARENA_ARRAY(l->arena, LLVMValueRef, in.n), in.n};
		memcpy(c.acc[i].at, in.at, in.n * sizeof in.at[0]);
	}
	reduce_plan_make(o, &plan);
	bool exchanged = false;
	for (uint32_t s = 0; s < plan.nsteps; s++) {
		const reduce_step *step = &plan.step[s];
		if (step->in == LAYOUT_REG) register_step(l, &c, step->bit[0]);
		if (takes_whole_warp(&c, &plan, s)) {
			whole_warp(l, &c);
			s += 4;
			continue;
		}
		if (step->in == LAYOUT_LANE) lane_step(l, &c, step->bit[0]);
		if (step->in != LAYOUT_WARP) continue;
		if (exchanged) lower_barrier(l);
		warp_step(l, &c, step);
		exchanged = true;
	}
	set_results(l, &c);
}

void lower_warp_any(lower *l, ir_op *o)
{
	assert(o->kind == IR_WARP_ANY);
	tile in = lower_arg(l, o, 0), out = lower_new_tile(l, ir_result(o));
	LLVMValueRef any = in.at[0];
	for (uint32_t r = 1; r < in.n; r++) any = LLVMBuildOr(l->builder, any, in.at[r], "");
	LLVMValueRef args[2] = {lower_i32(l, -1), any};
	out.at[0] = lower_intrinsic(l, "llvm.nvvm.vote.any.sync", l->i1, 2, args);
	lower_set(l, ir_result(o), out);
}
