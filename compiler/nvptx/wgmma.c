/* wgmma: products by warpgroups, from shared memory and registers.
 *
 * In: a plan of passes/wgmma.h; operands in a ring's slot, in registers, or in registers on their way to shared memory.
 * Out: wgmma.mma_async, its fence, commit and wait.
 * The one idea: an instruction is named by its place in the tile: its first row, column and k say which registers of
 * the sum it takes and what is added to each operand's descriptor.  Which warpgroup a thread belongs to is asked of
 * lane 0, so that the assembler sees that descriptors are the same in a warp.
 *
 * The sum goes in and out of every instruction as tied registers, and through the wait that makes it everybody's: so
 * nothing can use it before.  What a thread wrote to shared memory itself needs a fence between the two ways into it,
 * and a barrier, before the instruction reads it. */
#include "lower.h"

#include "../passes/scratch.h"
#include "../passes/wgmma.h"

#include <string.h>

typedef struct source { /* an operand */
	wgmma_operand *o;
	LLVMValueRef low; /* i32: the descriptor's low word for this warpgroup's first row or column, k = 0 */
	tile registers;   /* or: the first operand's elements, */
	uint32_t register_of[32];
	LLVMValueRef (*word)[4]; /* and its words, by instruction: row / 64 * steps of k + step; null: another warp's */
	uint32_t words;
} source;

typedef struct product {
	lower *l;
	wgmma_plan plan;
	const layout *y; /* of the sum */
	source a, b;
	tile sum;
	uint32_t register_of[32];
} product;

static const uint32_t ADDRESS = 0x3ffff; /* above: the rank in a cluster */

static void barrier_of_proxies(lower *l)
{
	lower_proxy_fence(l);
	lower_barrier(l);
}

void lower_proxy_fence(lower *l)
{
	lower_asm(l, "fence.proxy.async.shared::cta;", "", l->none, 0, NULL, LOWER_ASM_EFFECT);
}

/* ---- operands ---- */

/* The number of this thread's warpgroup's bit, 0 or 1, times a constant, added up. */
static LLVMValueRef group_offset(product *p, const source *s, unsigned dim)
{
	lower *l = p->l;
	LLVMValueRef sum = lower_i32(l, 0);
	for (unsigned i = 2; i < p->y->nin[LAYOUT_WARP]; i++) {
		uint32_t at = layout_coordinate(p->y, p->y->col[LAYOUT_WARP][i], dim);
		uint32_t bytes = wgmma_tile_offset(&s->o->tile, at, 0);
		if (!bytes) continue;
		LLVMValueRef bit = LLVMBuildAnd(l->builder,
			LLVMBuildLShr(l->builder, lower_warpgroup(l), lower_i32(l, i - 2), ""), lower_i32(l, 1), "");
		sum = LLVMBuildAdd(l->builder, sum, LLVMBuildMul(l->builder, bit, lower_i32(l, bytes), ""), "");
	}
	return sum;
}

static void open_shared(product *p, source *s, const ir_op *o, unsigned dim)
{
	lower *l = p->l;
	LLVMValueRef first = lower_i32(l, o->shared_offset + s->o->scratch);
	if (s->o->place == WGMMA_RING) {
		LLVMValueRef slot = lower_value(l, s->o->slot).at[0];
		first = LLVMBuildMul(l->builder, slot, lower_i32(l, s->o->tile.bytes), "");
		first = LLVMBuildAdd(l->builder, first, lower_i32(l, s->o->value->def->shared_offset), "");
	}
	first = LLVMBuildAdd(l->builder, first, group_offset(p, s, dim), "");
	LLVMValueRef at = LLVMBuildPtrToInt(l->builder, lower_shared_address(l, first), l->i32, "");
	at = LLVMBuildAnd(l->builder, at, lower_i32(l, ADDRESS), "");
	at = LLVMBuildLShr(l->builder, at, lower_i32(l, 4), "");
	s->low = LLVMBuildOr(l->builder, at, lower_i32(l, (int64_t)(wgmma_descriptor(&s->o->tile) & 0xffffffff)), "");
}

static void store_operand(product *p, const source *s, const ir_op *o)
{
	lower *l = p->l;
	const ir_value *v = s->o->value;
	layout shared = wgmma_tile_layout(&s->o->tile);
	layout_plan *plan = ARENA_NEW(l->arena, layout_plan);
	layout_plan_store(v->layout, &shared, ir_element_bytes(v->type), plan);
	tile in = lower_value(l, v);
	if (v->type.elem == SCALAR_F32) {
		tile rounded = lower_new_tile(l, v);
		for (uint32_t r = 0; r < in.n; r++)
			rounded.at[r] = LLVMBuildBitCast(l->builder, lower_round_tf32(l, in.at[r]), l->f32, "");
		in = rounded;
	}
	lower_plan_store(l, plan, lower_i32(l, o->shared_offset + s->o->scratch), ir_element(v->type), in);
}

static uint32_t register_at(const layout *y, const uint32_t register_of[32], uint32_t row, uint32_t column)
{
	return lower_register_at(register_of, row << layout_shift(y, 0) | column);
}

/* The four words of the first operand for one instruction: rows 8 apart, then k. */
static void fragment(product *p, uint32_t row, uint32_t k, LLVMValueRef out[4])
{
	source *s = &p->a;
	const ir_value *v = s->o->value;
	unsigned each = 4 / ir_element_bytes(v->type);
	for (unsigned i = 0; i < 4; i++) {
		LLVMValueRef element[4];
		uint32_t first = register_at(v->layout, s->register_of, row + 8 * (i & 1), k + 4 * each * (i >> 1));
		for (unsigned e = 0; e < each; e++)
			element[e] = s->registers.at[first | register_at(v->layout, s->register_of, 0, e)];
		out[i] = v->type.elem == SCALAR_F32 ? lower_round_tf32(p->l, element[0])
						    : lower_pack(p->l, ir_element(v->type), each, element).at[0];
	}
}

static LLVMValueRef *fragment_at(const product *p, uint32_t row, uint32_t k)
{
	return p->a.word[row / 64 * (p->plan.k / p->plan.form->k) + k / p->plan.form->k];
}

/* Coordinates of dimension `dim` that warps step. */
static uint32_t by_warps(const layout *y, unsigned dim)
{
	uint32_t bits = 0;
	for (unsigned i = 0; i < y->nin[LAYOUT_WARP]; i++) bits |= layout_coordinate(y, y->col[LAYOUT_WARP][i], dim);
	return bits;
}

/* Before the fence: behind it nobody may write what an instruction reads. */
static void open_registers(product *p)
{
	source *s = &p->a;
	uint32_t rows = UINT32_C(1) << (p->y->lg[0] - 6);
	s->registers = lower_value(p->l, s->o->value);
	lower_index_registers(s->o->value->layout, s->register_of);
	s->words = rows * (p->plan.k / p->plan.form->k);
	s->word = arena_alloc(p->l->arena, s->words * sizeof *s->word);
	for (uint32_t row = 0; row < 64 * rows; row += 64)
		for (uint32_t k = 0; k < p->plan.k && !(row & by_warps(p->y, 0)); k += p->plan.form->k)
			fragment(p, row, k, fragment_at(p, row, k));
}

/* ---- instructions ---- */

static const char *types_of(product *p)
{
	const char *kind[2];
	if (p->plan.form->type != SCALAR_F8E4M3) return p->plan.form->types;
	for (unsigned i = 0; i < 2; i++)
		kind[i] = p->plan.operand[i].value->type.elem == SCALAR_F8E4M3 ? "e4m3" : "e5m2";
	return arena_printf(p->l->arena, p->plan.form->types, kind[0], kind[1]);
}

static LLVMValueRef descriptor(product *p, const source *s, uint32_t other, uint32_t k)
{
	lower *l = p->l;
	LLVMValueRef low =
		LLVMBuildAdd(l->builder, s->low, lower_i32(l, wgmma_tile_offset(&s->o->tile, other, k) >> 4), "");
	uint64_t high = wgmma_descriptor(&s->o->tile) >> 32 << 32;
	return LLVMBuildOr(
		l->builder, LLVMBuildZExt(l->builder, low, l->i64, ""), LLVMConstInt(l->i64, high, false), "");
}

static void put_registers(text *out, unsigned first, unsigned n)
{
	for (unsigned i = 0; i < n; i++) text_printf(out, "%s$%u", i ? ", " : "{", first + i);
	text_puts(out, "}");
}

/* An asm whose first n operands are registers, tied in to out; `args` has room for them in front. */
static void tied(lower *l, const char *code, unsigned n, LLVMValueRef *sum, unsigned more, LLVMValueRef *args,
	const char *constraints)
{
	text all = {.arena = l->arena};
	LLVMTypeRef *types = ARENA_ARRAY(l->arena, LLVMTypeRef, n);
	for (unsigned i = 0; i < n; i++) {
		types[i] = LLVMTypeOf(sum[i]);
		args[i] = sum[i];
		text_printf(&all, "%s=%c", i ? "," : "", types[i] == l->f32 ? 'f' : 'r');
	}
	for (unsigned i = 0; i < n; i++) text_printf(&all, ",%u", i);
	text_puts(&all, constraints);
	LLVMTypeRef result = n == 1 ? types[0] : LLVMStructTypeInContext(l->context, types, n, false);
	LLVMValueRef made = lower_asm(l, code, all.at, result, n + more, args, LOWER_ASM_EFFECT | LOWER_ASM_WARP);
	for (unsigned i = 0; i < n; i++) sum[i] = n == 1 ? made : LLVMBuildExtractValue(l->builder, made, i, "");
}

/* One instruction: the part of the sum from (row, column) on, for k from `k` on. */
static void multiply(product *p, uint32_t row, uint32_t column, uint32_t k)
{
	lower *l = p->l;
	const wgmma_plan *plan = &p->plan;
	unsigned n = plan->shape.n / 2, more = 0;
	bool held = p->a.o->place == WGMMA_REGISTERS, turns = plan->form->turns;
	LLVMValueRef *sum = ARENA_ARRAY(l->arena, LLVMValueRef, n), *args = ARENA_ARRAY(l->arena, LLVMValueRef, n + 8);
	uint32_t *at = ARENA_ARRAY(l->arena, uint32_t, n);
	for (unsigned i = 0; i < n; i++) {
		at[i] = register_at(p->y, p->register_of, row + 8 * (i >> 1 & 1), column + 8 * (i >> 2) + (i & 1));
		sum[i] = p->sum.at[at[i]];
	}
	text code = {.arena = l->arena};
	text_printf(&code, "wgmma.mma_async.sync.aligned.m64n%uk%u.%s ", plan->shape.n, plan->form->k, types_of(p));
	put_registers(&code, 0, n);
	text_puts(&code, ", ");
	if (held) {
		memcpy(args + n, fragment_at(p, row, k), sizeof *p->a.word);
		put_registers(&code, 2 * n, more = 4);
	} else {
		args[n] = descriptor(p, &p->a, row, k);
		text_printf(&code, "$%u", 2 * n);
		more = 1;
	}
	args[n + more] = descriptor(p, &p->b, column, k);
	text_printf(&code, ", $%u, %d%s", 2 * n + more, plan->sum || k > 0, plan->form->scales ? ", 1, 1" : "");
	if (turns && !held) text_printf(&code, ", %d", p->a.o->tile.fast != p->a.o->tile.k);
	if (turns) text_printf(&code, ", %d", p->b.o->tile.fast != p->b.o->tile.k);
	text_puts(&code, ";");
	tied(l, code.at, n, sum, more + 1, args, held ? ",r,r,r,r,l" : ",l,l");
	for (unsigned i = 0; i < n; i++) p->sum.at[at[i]] = sum[i];
}

/* A sum as it goes into a loop, as registers that nobody knows to be zeros: constants would be written twice, for the
 * loop, and for what comes behind it where it has no round. */
tile lower_wgmma_start(lower *l, tile sum)
{
	tile out = {ARENA_ARRAY(l->arena, LLVMValueRef, sum.n), sum.n};
	memcpy(out.at, sum.at, sum.n * sizeof sum.at[0]);
	tied(l, "", out.n, out.at, 0, ARENA_ARRAY(l->arena, LLVMValueRef, out.n), "");
	return out;
}

/* The registers of the product go through it, so that one that holds a constant (a sum that starts as zeros, a factor
 * that is all zeros) has it before: LLVM would set it in front of the instruction that reads it, which is too late. */
static void fence(product *p)
{
	lower *l = p->l;
	VEC(LLVMValueRef *) held = {0};
	for (uint32_t i = 0; p->plan.sum && i < p->sum.n; i++) vec_push(l->arena, &held, &p->sum.at[i]);
	for (uint32_t i = 0; i < 4 * p->a.words; i++)
		if (p->a.word[i / 4][i % 4]) vec_push(l->arena, &held, &p->a.word[i / 4][i % 4]);
	if (!held.n) {
		lower_asm(l, "wgmma.fence.sync.aligned;", "", l->none, 0, NULL, LOWER_ASM_EFFECT | LOWER_ASM_WARP);
		return;
	}
	LLVMValueRef *all = ARENA_ARRAY(l->arena, LLVMValueRef, held.n);
	for (uint32_t i = 0; i < held.n; i++) all[i] = *held.at[i];
	tied(l, "wgmma.fence.sync.aligned;", held.n, all, 0, ARENA_ARRAY(l->arena, LLVMValueRef, held.n), "");
	for (uint32_t i = 0; i < held.n; i++) *held.at[i] = all[i];
}

void lower_wgmma(lower *l, ir_op *o)
{
	product *p = ARENA_NEW(l->arena, product);
	const ir_value *result = ir_result(o);
	*p = (product){.l = l, .y = result->layout};
	if (!wgmma_plan_make(o, l->func->num_warps, &p->plan) || o->shared_bytes < p->plan.scratch_bytes) {
		lower_fail(l, o, "a product that no wgmma makes");
		return;
	}
	source *s[] = {&p->a, &p->b};
	if (l->shared_align < WGMMA_ALIGN) l->shared_align = WGMMA_ALIGN;
	for (unsigned i = 0; i < 2; i++) {
		s[i]->o = &p->plan.operand[i];
		if (s[i]->o->place == WGMMA_SCRATCH) store_operand(p, s[i], o);
		if (s[i]->o->place == WGMMA_REGISTERS) open_registers(p);
	}
	if (p->plan.scratch_bytes) barrier_of_proxies(l);
	for (unsigned i = 0; i < 2; i++)
		if (s[i]->o->place != WGMMA_REGISTERS) open_shared(p, s[i], o, i);
	lower_index_registers(p->y, p->register_of);
	p->sum = lower_new_tile(l, result);
	for (uint32_t r = 0; r < p->sum.n; r++)
		p->sum.at[r] = p->plan.sum ? lower_value(l, p->plan.sum).at[r]
					   : LLVMGetPoison(lower_type(l, ir_element(result->type)));
	fence(p);
	for (uint32_t row = 0; row < result->type.dim[0]; row += 64)
		for (uint32_t column = 0; column < result->type.dim[1]; column += p->plan.shape.n) {
			if (row & by_warps(p->y, 0) || column & by_warps(p->y, 1)) continue;
			for (uint32_t k = 0; k < p->plan.k; k += p->plan.form->k) multiply(p, row, column, k);
		}
	lower_asm(l, "wgmma.commit_group.sync.aligned;", "", l->none, 0, NULL, LOWER_ASM_EFFECT | LOWER_ASM_WARP);
	lower_set(l, result, p->sum);
}

void lower_wgmma_wait(lower *l, ir_op *o)
{
	const char *code = arena_printf(l->arena, "wgmma.wait_group.sync.aligned %u;", (unsigned)o->attr[0]);
	if (!o->nargs) lower_asm(l, code, "", l->none, 0, NULL, LOWER_ASM_EFFECT | LOWER_ASM_WARP);
	for (unsigned i = 0; i < o->nargs; i++) {
		tile in = lower_arg(l, o, i), out = lower_new_tile(l, o->results[i]);
		memcpy(out.at, in.at, in.n * sizeof in.at[0]);
		tied(l, code, out.n, out.at, 0, ARENA_ARRAY(l->arena, LLVMValueRef, out.n), "");
		lower_set(l, o->results[i], out);
	}
}
