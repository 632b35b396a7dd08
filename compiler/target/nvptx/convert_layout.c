/* Layout conversions: the plan of layout/convert.c as code.
 *
 * In: registers spread by one layout.  Out: the same tile spread by another.
 * The one idea: the plan has decided everything (renaming, selects and shuffles, or shared memory); each of its parts
 * is one loop here. */
#include "lower.h"

#include <assert.h>
#include <string.h>

/* Parity of the bits of tid in `mask`, as an i1. */
static LLVMValueRef parity(lower *l, uint32_t mask)
{
	tid_map m = {0};
	for (unsigned i = 0; i < LOWER_TID_BITS; i++) m.col[i] = mask >> i & 1;
	return LLVMBuildTrunc(l->builder, lower_tid_map(l, &m), l->i1, "");
}

static tile stage(lower *l, const layout_stage *s, tile in)
{
	tile out = {ARENA_ARRAY(l->arena, LLVMValueRef, in.n), in.n};
	LLVMValueRef p = parity(l, s->lane_mask | s->warp_mask << 5);
	for (uint32_t r = 0; r < in.n; r++)
		out.at[r] = LLVMBuildSelect(l->builder, p, in.at[r ^ s->reg_xor], in.at[r], "");
	return out;
}

static LLVMValueRef shuffled(lower *l, const layout_plan *p, ir_type t, LLVMValueRef v, uint32_t lane_xor)
{
	if (p->lanes_stay) return lane_xor ? lower_shuffle(l, "bfly", t, v, lower_i32(l, lane_xor)) : v;
	tid_map m = {0};
	for (unsigned i = 0; i < LOWER_TID_BITS; i++)
		m.col[i] = i < 5 ? p->lane_from_lane[i] : p->lane_from_warp[i - 5];
	LLVMValueRef lane = lower_combine(l, lower_tid_map(l, &m), lower_map_bits(&m), lane_xor);
	return lower_shuffle(l, "idx", t, v, lane);
}

static void by_shuffles(lower *l, const layout_plan *p, ir_type t, tile in, tile out)
{
	for (unsigned i = 0; i < p->nbefore; i++) in = stage(l, &p->before[i], in);
	for (uint32_t r = 0; r < out.n; r++)
		out.at[r] = shuffled(l, p, t, in.at[layout_plan_register(p, r)], layout_plan_lane_xor(p, r));
	tile made = out;
	for (unsigned i = 0; i < p->nafter; i++) made = stage(l, &p->after[i], made);
	if (made.at != out.at) memcpy(out.at, made.at, out.n * sizeof out.at[0]);
}

/* ---- through shared memory ---- */

typedef struct side { /* the storing or the loading half */
	const layout_map *map;
	const uint8_t *bit;
	unsigned lg_vector;
	const layout_place *pass;
	unsigned lg_passes;
	uint32_t nregisters;
	LLVMValueRef base; /* of the scratch: a byte, i32 */
} side;

LLVMValueRef lower_plan_offset(lower *l, const layout_map *map, LLVMValueRef base, unsigned bytes, uint32_t reg)
{
	tid_map m = {0};
	for (unsigned i = 0; i < map->nin[LAYOUT_LANE] && i < 5; i++) m.col[i] = map->col[LAYOUT_LANE][i] * bytes;
	for (unsigned i = 0; i < map->nin[LAYOUT_WARP] && i < LOWER_TID_BITS - 5; i++)
		m.col[5 + i] = map->col[LAYOUT_WARP][i] * bytes;
	uint32_t constant = layout_map_apply(map, reg, 0, 0) * bytes;
	LLVMValueRef v = lower_combine(l, lower_tid_map(l, &m), lower_map_bits(&m), constant);
	return LLVMBuildAdd(l->builder, v, base, "");
}

/* The next register that starts an access of this pass, from `reg` on. */
static bool starts_access(const side *s, unsigned pass, uint32_t reg)
{
	uint32_t inside = layout_spread(s->bit, s->lg_vector, (1u << s->lg_vector) - 1);
	uint32_t mask = layout_pass_bits(s->pass, s->lg_passes, LAYOUT_REG, ~0u);
	return !(reg & inside) && (reg & mask) == layout_pass_bits(s->pass, s->lg_passes, LAYOUT_REG, pass);
}

static uint32_t pass_threads(const side *s, unsigned pass)
{
	return layout_pass_bits(s->pass, s->lg_passes, LAYOUT_LANE, pass) |
	       layout_pass_bits(s->pass, s->lg_passes, LAYOUT_WARP, pass) << 5;
}

/* True in the threads of this pass whose bits in `zero` are 0; null: in all. */
static LLVMValueRef takes_part(lower *l, const side *s, unsigned pass, uint32_t zero)
{
	uint32_t mask = pass_threads(s, ~0u) | zero;
	if (!mask) return NULL;
	LLVMValueRef bits = LLVMBuildAnd(l->builder, l->tid, lower_i32(l, mask), "");
	return LLVMBuildICmp(l->builder, LLVMIntEQ, bits, lower_i32(l, pass_threads(s, pass)), "");
}

static void store_pass(lower *l, const layout_plan *p, const side *s, unsigned pass, ir_type t, tile in)
{
	assert(pass < 1u << s->lg_passes);
	LLVMValueRef owner = takes_part(l, s, pass, p->store_free_lane | p->store_free_warp << 5);
	for (uint32_t r = 0; r < s->nregisters; r++) {
		if (!starts_access(s, pass, r)) continue;
		LLVMValueRef v[16];
		unsigned n = 1u << s->lg_vector;
		for (unsigned k = 0; k < n; k++) v[k] = in.at[r | layout_spread(s->bit, s->lg_vector, k)];
		words w = lower_pack(l, t, n, v);
		lower_shared_store(l, lower_plan_offset(l, s->map, s->base, ir_element_bytes(t), r), &w, owner);
	}
}

/* Words of up to four matrices, from rows that the lanes name. */
static void load_matrices(lower *l, const layout_plan *p, LLVMValueRef offset, words *w)
{
	assert(p->lg_matrices <= 2);
	LLVMTypeRef types[] = {l->i32, l->i32, l->i32, l->i32};
	*w = (words){.n = 1u << p->lg_matrices, .bits = 32};
	LLVMTypeRef type = w->n == 1 ? l->i32 : LLVMStructTypeInContext(l->context, types, w->n, false);
	const char *name = arena_printf(l->arena, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x%u%s.b16.p3", w->n,
		p->matrices == LAYOUT_MATRICES_TRANSPOSED ? ".trans" : "");
	LLVMValueRef address = lower_shared_address(l, offset), made = lower_intrinsic(l, name, type, 1, &address);
	for (unsigned i = 0; i < w->n; i++)
		w->at[i] = w->n == 1 ? made : LLVMBuildExtractValue(l->builder, made, i, "");
}

/* The access whose first register is r. */
static void load_access(lower *l, const layout_plan *p, const side *s, ir_type t, uint32_t r, tile out)
{
	unsigned n = 1u << s->lg_vector, bytes = ir_element_bytes(t);
	LLVMValueRef v[16], offset = lower_plan_offset(l, s->map, s->base, bytes, r);
	words w = lower_word_shape(t, n);
	if (p->matrices)
		load_matrices(l, p, offset, &w);
	else
		lower_shared_load(l, offset, n * bytes, &w);
	lower_unpack(l, t, n, v, &w);
	for (unsigned k = 0; k < n; k++) out.at[r | layout_spread(s->bit, s->lg_vector, k)] = v[k];
}

static void load_all(lower *l, const layout_plan *p, const side *s, unsigned pass, ir_type t, tile out)
{
	for (uint32_t r = 0; r < s->nregisters; r++)
		if (starts_access(s, pass, r)) load_access(l, p, s, t, r, out);
}

/* The same where only some threads load: the others keep what they have. */
static void load_pass_by_some(lower *l, const layout_plan *p, const side *s, unsigned pass, ir_type t, tile out)
{
	assert(pass < 1u << s->lg_passes);
	LLVMValueRef who = takes_part(l, s, pass, 0);
	if (!who) {
		load_all(l, p, s, pass, t, out);
		return;
	}
	tile loaded = {ARENA_ARRAY(l->arena, LLVMValueRef, out.n), out.n};
	LLVMBasicBlockRef before = LLVMGetInsertBlock(l->builder);
	LLVMBasicBlockRef inside = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	LLVMBuildCondBr(l->builder, who, inside, after);
	LLVMPositionBuilderAtEnd(l->builder, inside);
	load_all(l, p, s, pass, t, loaded);
	LLVMBuildBr(l->builder, after);
	LLVMPositionBuilderAtEnd(l->builder, after);
	for (uint32_t r = 0; r < out.n; r++) {
		if (!loaded.at[r]) continue;
		LLVMTypeRef type = LLVMTypeOf(loaded.at[r]);
		LLVMValueRef from[] = {loaded.at[r], out.at[r] ? out.at[r] : LLVMGetPoison(type)};
		LLVMBasicBlockRef blocks[] = {inside, before};
		out.at[r] = LLVMBuildPhi(l->builder, type, "");
		LLVMAddIncoming(out.at[r], from, blocks, 2);
	}
}

void lower_plan_store(lower *l, const layout_plan *p, LLVMValueRef base, ir_type t, tile in)
{
	side store = {&p->store, p->store_bit, p->lg_vector_store, p->pass_store, p->lg_passes, in.n, base};
	store_pass(l, p, &store, 0, t, in);
}

void lower_plan_load(lower *l, const layout_plan *p, LLVMValueRef base, ir_type t, tile out)
{
	side load = {&p->load, p->load_bit, p->lg_vector_load, p->pass_load, p->lg_passes, out.n, base};
	load_all(l, p, &load, 0, t, out);
}

/* The opposite of the loading half, in matrices (stmatrix): the plan has some. */
static void store_matrices(lower *l, const layout_plan *p, LLVMValueRef base, ir_type t, tile in)
{
	assert(p->matrices && p->lg_matrices <= 2);
	side load = {&p->load, p->load_bit, p->lg_vector_load, p->pass_load, p->lg_passes, in.n, base};
	const char *name = arena_printf(l->arena, "llvm.nvvm.stmatrix.sync.aligned.m8n8.x%u%s.b16.p3",
		1u << p->lg_matrices, p->matrices == LAYOUT_MATRICES_TRANSPOSED ? ".trans" : "");
	unsigned each = 4 / ir_element_bytes(t);
	for (uint32_t r = 0; r < in.n; r++) {
		if (!starts_access(&load, 0, r)) continue;
		LLVMValueRef args[5] = {
			lower_shared_address(l, lower_plan_offset(l, &p->load, base, ir_element_bytes(t), r))};
		for (unsigned m = 0; m < 1u << p->lg_matrices; m++) {
			LLVMValueRef v[4];
			for (unsigned k = 0; k < each; k++)
				v[k] = in.at[r | layout_spread(p->load_bit, p->lg_vector_load, m * each + k)];
			args[1 + m] = lower_pack(l, t, each, v).at[0];
		}
		lower_intrinsic(l, name, l->none, 1 + (1u << p->lg_matrices), args);
	}
}

/* As matrices, where each warp has a part of its own: of such that have the same part only one may store. */
void lower_put(lower *l, const layout *from, const layout *shared, ir_type element, LLVMValueRef base, tile in)
{
	layout_plan *plan = ARENA_NEW(l->arena, layout_plan), *matrices = ARENA_NEW(l->arena, layout_plan);
	layout_plan_store(from, shared, ir_element_bytes(element), plan);
	layout_plan_load(shared, from, ir_element_bytes(element), matrices);
	if (matrices->matrices && !plan->store_free_warp)
		store_matrices(l, matrices, base, element, in);
	else
		lower_plan_store(l, plan, base, element, in);
}

void lower_plan_load_one(lower *l, const layout_plan *p, LLVMValueRef base, ir_type t, uint32_t r, tile out)
{
	assert(r < out.n);
	side load = {&p->load, p->load_bit, p->lg_vector_load, p->pass_load, p->lg_passes, out.n, base};
	uint32_t inside = layout_spread(p->load_bit, p->lg_vector_load, (1u << p->lg_vector_load) - 1);
	if (!out.at[r]) load_access(l, p, &load, t, r & ~inside, out);
}

static void by_shared(lower *l, ir_op *o, const layout_plan *p, ir_type t, tile in, tile out)
{
	assert(o->kind == IR_CONVERT_LAYOUT);
	LLVMValueRef base = lower_scratch(l, o);
	side store = {&p->store, p->store_bit, p->lg_vector_store, p->pass_store, p->lg_passes, in.n, base};
	side load = {&p->load, p->load_bit, p->lg_vector_load, p->pass_load, p->lg_passes, out.n, base};
	if (o->shared_bytes < p->bytes) {
		lower_fail(l, o, "no shared memory was set aside for a layout conversion");
		return;
	}
	void (*barrier)(lower *) = p->kind == LAYOUT_WARP_SHARED ? lower_warp_barrier : lower_barrier;
	for (unsigned pass = 0; pass < 1u << p->lg_passes; pass++) {
		/* The barrier pass leaves the repetition of an exchange inside warps to us. */
		if (pass || p->kind == LAYOUT_WARP_SHARED) barrier(l);
		store_pass(l, p, &store, pass, t, in);
		barrier(l);
		load_pass_by_some(l, p, &load, pass, t, out);
	}
}

void lower_convert_layout(lower *l, ir_op *o)
{
	const ir_value *from = ir_arg(o, 0), *to = ir_result(o);
	assert(o->kind == IR_CONVERT_LAYOUT && from->layout && to->layout);
	tile in = lower_arg(l, o, 0), out = lower_new_tile(l, to);
	ir_type t = ir_element(from->type);
	layout_plan *plan = ARENA_NEW(l->arena, layout_plan);
	layout_plan_conversion(from->layout, to->layout, ir_element_bytes(from->type), plan);
	switch (plan->kind) {
	case LAYOUT_SAME: lower_set(l, to, in); return;
	case LAYOUT_REGISTERS:
		for (uint32_t r = 0; r < out.n; r++) out.at[r] = in.at[layout_plan_register(plan, r)];
		break;
	case LAYOUT_SHUFFLES: by_shuffles(l, plan, t, in, out); break;
	case LAYOUT_WARP_SHARED:
	case LAYOUT_CTA_SHARED: by_shared(l, o, plan, t, in, out); break;
	}
	if (!l->failed) lower_set(l, to, out);
}
