/* wgmma: products by warpgroups, from shared memory and registers.
 *
 * In: a plan of target/nvptx/mma/wgmma.h; operands in a multibuffer's slot, in registers, or in registers on their way
 * to shared memory. Out: wgmma.mma_async, its fence, commit and wait.
 * The one idea: an instruction is named by its place in the tile: its first row, column and k say which registers of
 * the sum it takes and what is added to each operand's descriptor.  Which warpgroup a thread belongs to is asked of
 * lane 0, so that the assembler sees that descriptors are the same in a warp.
 *
 * Products that are joined (async/join_mma.c) have their columns one after the other in one instruction: that is named
 * by its column in the first one's tile, and its registers are those of all sums.
 *
 * What an operation emits is one piece of inline asm, from the fence, if it says so (synchronise.c), to the commit.  A
 * sum that is in flight round a loop has registers by name, which are set in front of the loop and read behind the wait
 * that makes it everybody's: LLVM sees neither phis nor operands, of which there would be hundreds, and nobody can use
 * it before.  Any other goes in and out, and through its wait, as tied registers.  What a thread wrote to shared memory
 * itself needs a fence between the two ways into it, and a barrier, before the instruction reads it.
 */
#include "target/nvptx/lower.h"

#include "async/scratch.h"
#include "wgmma.h"

#include <assert.h>
#include <string.h>

typedef struct source { /* an operand */
	wgmma_operand *o;
	unsigned input; /* of the asm; i32: where this warpgroup's first row or column begins, in 16 bytes */
	tile registers; /* or: the first operand's elements, whose words are four inputs an instruction, rows first */
	uint32_t register_of[32];
} source;

typedef struct accumulator { /* of an instruction, or as much of it as one operation's sum is */
	const layout *y;
	tile registers;
	uint32_t register_of[32];
	uint32_t columns;
} accumulator;

enum { MOST_JOINED = 32 }; /* of 8 columns, 256 in all */

typedef struct product {
	lower *l;
	wgmma_plan plan;
	const layout *y; /* of the sum */
	source a, b;
	tile sum;
	accumulator accumulators[MOST_JOINED]; /* of an instruction, from the left */
	unsigned naccumulators;
	uint32_t columns;   /* of an instruction */
	bool begins;        /* the sum begins with it, in a loop's first iteration; */
	unsigned iteration; /* then the input that says whether this is another one */
	text code, constraints;
	VEC(LLVMValueRef) inputs; /* beside the sum */
} product;

/* Registers of the sum that are operands of the asm, in and out. */
static uint32_t operands_of(const tile *sum)
{
	return sum->sum ? 0 : sum->n;
}

static void put_sum(text *out, const tile *sum, uint32_t r)
{
	if (sum->sum)
		text_printf(out, "%%sum%u_%u", sum->sum, r);
	else
		text_printf(out, "$%u", r);
}

static const uint32_t ADDRESS = 0x3ffff; /* above: the rank in a cluster */

static void barrier_of_proxies(lower *l)
{
	lower_proxy_fence(l);
	lower_barrier(l);
}

void lower_proxy_fence(lower *l)
{
	lower_fence_of(l, IR_PROXY_SHARED);
}

void lower_fence_of(lower *l, ir_proxy proxy)
{
	if (proxy == IR_PROXY_NONE) return;
	lower_asm(l, proxy == IR_PROXY_ALL ? "fence.proxy.async;" : "fence.proxy.async.shared::cta;", "", l->none, 0,
		NULL, LOWER_ASM_EFFECT);
}

void lower_proxy_fence_op(lower *l, ir_op *o)
{
	lower_fence_of(l, ir_get_proxy(o));
}

/* ---- operands ---- */

/* The number of this thread's warpgroup's bit, 0 or 1, times a constant, added up. */
static LLVMValueRef group_offset(product *p, const source *s, unsigned dim)
{
	lower *l = p->l;
	LLVMValueRef sum = lower_i32(l, 0);
	unsigned m = p->y->rank - 2u;
	for (unsigned i = 2; i < p->y->nin[LAYOUT_WARP]; i++) {
		uint32_t at = layout_coordinate(p->y, p->y->col[LAYOUT_WARP][i], m + dim);
		uint32_t batch = m ? layout_coordinate(p->y, p->y->col[LAYOUT_WARP][i], 0) : 0;
		uint32_t bytes = wgmma_tile_offset(&s->o->tile, batch, at, 0);
		if (!bytes) continue;
		LLVMValueRef bit = LLVMBuildAnd(l->builder,
			LLVMBuildLShr(l->builder, lower_warpgroup(l), lower_i32(l, i - 2), ""), lower_i32(l, 1), "");
		sum = LLVMBuildAdd(l->builder, sum, LLVMBuildMul(l->builder, bit, lower_i32(l, bytes), ""), "");
	}
	return sum;
}

/* The number that the asm has for one more input. */
static unsigned add_input(product *p, LLVMValueRef v)
{
	text_puts(&p->constraints, ",r");
	vec_push(p->l->arena, &p->inputs, v);
	return 2 * operands_of(&p->sum) + p->inputs.n - 1;
}

/* Where the operand's tile begins in this iteration's scratch. */
static LLVMValueRef tile_in_scratch(product *p, const source *s, const ir_op *o)
{
	lower *l = p->l;
	LLVMValueRef first = LLVMBuildAdd(l->builder, lower_scratch(l, o), lower_i32(l, s->o->scratch), "");
	if (!ir_get_alternates(o)) return first;
	const ir_op *loop = o->block->parent;
	int64_t step = 0;
	bool known = ir_is_const_int(ir_arg(loop, 2), &step);
	assert(known && loop->kind == IR_FOR && step > 0 && !(step & (step - 1)));
	(void)known;
	/* this bit of the counter is another one each time round, wherever the loop begins */
	LLVMValueRef at = lower_value(l, loop->regions[0]->args[0]).at[0];
	at = LLVMBuildAnd(l->builder, at, lower_i32(l, step), "");
	at = LLVMBuildUDiv(l->builder, at, lower_i32(l, step), "");
	return LLVMBuildAdd(
		l->builder, first, LLVMBuildMul(l->builder, at, lower_i32(l, p->plan.scratch_bytes), ""), "");
}

static void open_shared(product *p, source *s, const ir_op *o, unsigned dim)
{
	lower *l = p->l;
	LLVMValueRef first;
	if (s->o->place == WGMMA_MULTIBUFFER) {
		LLVMValueRef slot = lower_value(l, s->o->slot).at[0];
		first = LLVMBuildMul(l->builder, slot, lower_i32(l, multibuffer_pitch(s->o->value->def)), "");
		first = LLVMBuildAdd(l->builder, first, lower_i32(l, s->o->value->def->shared_offset), "");
	} else
		first = tile_in_scratch(p, s, o);
	first = LLVMBuildAdd(l->builder, first, group_offset(p, s, dim), "");
	assert(s->o->place == WGMMA_MULTIBUFFER || (o->shared_offset + s->o->scratch) % WGMMA_ALIGN == 0);
	LLVMValueRef at = LLVMBuildPtrToInt(l->builder, lower_shared_address(l, first), l->i32, "");
	at = LLVMBuildAnd(l->builder, at, lower_i32(l, ADDRESS), "");
	at = LLVMBuildLShr(l->builder, at, lower_i32(l, 4), "");
	s->input = add_input(p, at);
}

static void store_operand(product *p, const source *s, const ir_op *o)
{
	lower *l = p->l;
	const ir_value *v = s->o->value;
	layout shared = wgmma_tile_layout(&s->o->tile);
	tile in = lower_value(l, v);
	if (v->type.elem == SCALAR_F32) {
		tile rounded = lower_new_tile(l, v);
		for (uint32_t r = 0; r < in.n; r++)
			rounded.at[r] = LLVMBuildBitCast(l->builder, lower_round_tf32(l, in.at[r]), l->f32, "");
		in = rounded;
	}
	lower_put(l, v->layout, &shared, ir_element(v->type), tile_in_scratch(p, s, o), in);
}

static uint32_t register_at(const layout *y, const uint32_t register_of[32], uint32_t row, uint32_t column)
{
	return lower_register_at(register_of, row << layout_shift(y, y->rank - 2u) | column);
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
		assert(first < s->registers.n);
		for (unsigned e = 0; e < each; e++)
			element[e] = s->registers.at[first | register_at(v->layout, s->register_of, 0, e)];
		out[i] = v->type.elem == SCALAR_F32 ? lower_round_tf32(p->l, element[0])
						    : lower_pack(p->l, ir_element(v->type), each, element).at[0];
	}
}

/* Coordinates of dimension `dim` that warps step. */
static uint32_t by_warps(const layout *y, unsigned dim)
{
	assert(dim < y->rank);
	uint32_t bits = 0;
	for (unsigned i = 0; i < y->nin[LAYOUT_WARP]; i++) bits |= layout_coordinate(y, y->col[LAYOUT_WARP][i], dim);
	return bits;
}

/* ---- a factor that stays in registers round a loop ---- */

typedef struct fragments {
	const ir_value *stays;
	bool others;
} fragments;

static void find_fragments(ir_op *o, void *context)
{
	fragments *f = context;
	const ir_value *v = o->kind == IR_WGMMA ? ir_arg(o, 0) : NULL;
	f->others |= v && v != f->stays && v->def && v->def->kind != IR_MULTIBUFFER;
}

/* The loop round which the factor stays the same while other products take theirs from registers too; null: none. */
static const ir_op *stays_round(const ir_op *o, const ir_value *factor)
{
	const ir_op *loop = ir_loop_around(o);
	while (loop && loop->kind != IR_FOR) loop = ir_loop_around(loop);
	if (!loop || !ir_defined_outside(factor, loop)) return NULL;
	fragments f = {.stays = factor};
	ir_walk(loop->regions[0], find_fragments, &f);
	return f.others ? loop : NULL;
}

/* ptxas 13.0 gives the factors of two products the same registers, though one of them is needed again in the next
 * iteration.  So each iteration has a copy of its own, that ptxas cannot know to be one: a number of 32 bits never has
 * more than 32 of them set. */
static LLVMValueRef nothing_of(lower *l, const ir_op *loop)
{
	static const char *const code = "{\n\t.reg .b32 bits;\n\t.reg .pred never;\n\tpopc.b32 bits, $1;\n\t"
					"setp.gt.u32 never, bits, 32;\n\tselp.b32 $0, 1, 0, never;\n\t}";
	LLVMValueRef i = lower_value(l, loop->regions[0]->args[0]).at[0];
	i = LLVMBuildIntCast2(l->builder, i, l->i32, false, "");
	return lower_asm(l, code, "=r,r", l->i32, 1, &i, LOWER_ASM_EFFECT);
}

static void open_registers(product *p, const ir_op *o, uint32_t rows)
{
	source *s = &p->a;
	const ir_op *loop = stays_round(o, s->o->value);
	LLVMValueRef nothing = loop ? nothing_of(p->l, loop) : NULL;
	s->registers = lower_value(p->l, s->o->value);
	lower_index_registers(s->o->value->layout, s->register_of);
	for (uint32_t row = 0; row < rows; row += 64)
		for (uint32_t k = 0; k < p->plan.k && !(row & by_warps(p->y, 0)); k += p->plan.form->k) {
			LLVMValueRef word[4];
			fragment(p, row, k, word);
			for (unsigned i = 0; i < 4; i++) {
				LLVMValueRef copy[] = {word[i], nothing};
				if (nothing) {
					copy[0] = LLVMBuildBitCast(p->l->builder, word[i], p->l->i32, "");
					word[i] = lower_asm(p->l, "xor.b32 $0, $1, $2;", "=r,r,r", p->l->i32, 2, copy,
						LOWER_ASM_EFFECT);
				}
				unsigned at = add_input(p, word[i]);
				if (!row && !k && !i) s->input = at;
			}
		}
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

/* The descriptor of what begins at (batch, other, k), in the asm's register `name`; each from the operand's beginning,
 * so that nothing of one has to be kept for the next. */
static void put_descriptor(product *p, const source *s, const char *name, uint32_t batch, uint32_t other, uint32_t k)
{
	uint64_t whole = wgmma_descriptor(&s->o->tile) + (wgmma_tile_offset(&s->o->tile, batch, other, k) >> 4);
	text_printf(&p->code, "add.s32 low, $%u, %u;\n\tcvt.u64.u32 %s, low;\n\tor.b64 %s, %s, %llu;\n\t", s->input,
		(unsigned)whole, name, name, name, (unsigned long long)(whole >> 32 << 32));
}

static void put_registers(product *p, uint32_t batch, uint32_t row, uint32_t column)
{
	for (unsigned k = 0; k < p->naccumulators; k++) {
		const accumulator *s = &p->accumulators[k];
		uint32_t first = batch ? lower_register_at(s->register_of, batch << layout_shift(s->y, 0)) : 0;
		assert(s->columns / 2 <= s->registers.n);
		for (unsigned i = 0; i < s->columns / 2; i++) {
			text_puts(&p->code, k || i ? ", " : "{");
			put_sum(&p->code, &s->registers,
				first | register_at(s->y, s->register_of, row + 8 * (i >> 1 & 1),
						column + 8 * (i >> 2) + (i & 1)));
		}
	}
	text_puts(&p->code, "}, ");
}

/* An asm whose first n operands, none or several, are registers, tied in to out; `args` has room for them in front, and
 * `constraints` of the others begin with a comma. */
static void tied(lower *l, const char *code, unsigned n, LLVMValueRef *sum, unsigned more, LLVMValueRef *args,
	const char *constraints)
{
	text all = {.arena = l->arena};
	LLVMTypeRef *types = ARENA_ARRAY(l->arena, LLVMTypeRef, n);
	for (unsigned i = 0; i < n; i++) {
		types[i] = LLVMTypeOf(sum[i]);
		args[i] = sum[i];
		/* early: a factor that is a constant may be the sum's as well, but not in one register */
		text_printf(&all, "%s=&%c", i ? "," : "", types[i] == l->f32 ? 'f' : 'r');
	}
	for (unsigned i = 0; i < n; i++) text_printf(&all, ",%u", i);
	text_puts(&all, n ? constraints : constraints + 1);
	LLVMTypeRef result = n ? LLVMStructTypeInContext(l->context, types, n, false) : l->none;
	LLVMValueRef made = lower_asm(l, code, all.at, result, n + more, args, LOWER_ASM_EFFECT | LOWER_ASM_WARP);
	for (unsigned i = 0; i < n; i++) sum[i] = LLVMBuildExtractValue(l->builder, made, i, "");
}

/* One instruction: the part of the sum from (batch, row, column) on, for k from `k` on; `held_at`: the input that is
 * the first operand's first word for it, if that comes from registers. */
static void multiply(product *p, uint32_t batch, uint32_t row, uint32_t column, uint32_t k, unsigned held_at)
{
	const wgmma_plan *plan = &p->plan;
	bool held = p->a.o->place == WGMMA_REGISTERS, turns = plan->form->turns;
	text *code = &p->code;
	if (!held) put_descriptor(p, &p->a, "first", batch, row, k);
	put_descriptor(p, &p->b, "second", batch, column, k);
	text_printf(code, "wgmma.mma_async.sync.aligned.m64n%uk%u.%s ", p->columns, plan->form->k, types_of(p));
	put_registers(p, batch, row, column);
	if (held) text_printf(code, "{$%u, $%u, $%u, $%u}", held_at, held_at + 1, held_at + 2, held_at + 3);
	text_printf(code, "%s, second, ", held ? "" : "first");
	if (p->begins && k == 0)
		text_printf(code, "$%u", p->iteration);
	else
		text_printf(code, "%d", plan->sum || k > 0);
	text_puts(code, plan->form->scales ? ", 1, 1" : "");
	if (turns && !held) text_printf(code, ", %d", p->a.o->tile.fast != p->a.o->tile.k);
	if (turns) text_printf(code, ", %d", p->b.o->tile.fast != p->b.o->tile.k);
	text_puts(code, ";\n\t");
}

static void multiply_one(product *p, const ir_type *sum, uint32_t batch)
{
	unsigned held_at = p->a.input, m = sum->rank - 2u, n = sum->rank - 1u;
	for (uint32_t row = 0; row < sum->dim[m]; row += 64) {
		if (row & by_warps(p->y, m)) continue;
		for (uint32_t column = 0; column < sum->dim[n]; column += p->plan.shape.n)
			for (uint32_t k = 0, i = 0; k < p->plan.k && !(column & by_warps(p->y, n));
				k += p->plan.form->k, i++)
				multiply(p, batch, row, column, k, held_at + 4 * i);
		held_at += 4 * (p->plan.k / p->plan.form->k);
	}
}

static void multiply_all(product *p, const ir_type *sum)
{
	uint32_t batches = sum->rank == 3 ? sum->dim[0] : 1, others = sum->rank == 3 ? by_warps(p->y, 0) : 0;
	for (uint32_t batch = 0; batch < batches; batch++)
		if (!(batch & others)) multiply_one(p, sum, batch);
}

/* Whether only products of the loop, one after the other, and the wait behind it see the k-th carried value: the
 * pipeline pass leaves no other sum in flight. */
static bool only_products(const ir_op *loop, unsigned k)
{
	assert(loop->kind == IR_FOR);
	const ir_block *body = loop->regions[0];
	const ir_value *v = body->args[1 + k];
	const ir_use *out = loop->results[k]->uses;
	while (v != ir_arg(body->last, k)) {
		wgmma_plan plan;
		ir_op *o = v->uses ? v->uses->user : NULL;
		if (!o || v->uses->next || o->kind != IR_WGMMA || o->block != body) return false;
		if (!wgmma_parts(o, &plan) || plan.sum != v) return false;
		v = ir_result(o);
	}
	return v->uses && !v->uses->next && out && !out->next && out->user->kind == IR_WGMMA_WAIT;
}

/* The first product of a loop's first iteration says what the k-th carried value is: zeros, and that product. */
static bool begins_inside(const ir_op *loop, unsigned k)
{
	uint64_t bits;
	return loop->kind == IR_FOR && ir_get_accumulator_init(loop) && ir_is_const(ir_arg(loop, 3 + k), &bits) &&
	       bits == 0;
}

tile lower_wgmma_start(lower *l, const ir_op *loop, unsigned k, tile sum)
{
	assert(!sum.sum);
	if (!only_products(loop, k)) lower_fail(l, loop, "a sum in flight that others see");
	text code = {.arena = l->arena}, constraints = {.arena = l->arena};
	LLVMBasicBlockRef here = LLVMGetInsertBlock(l->builder);
	sum.sum = ++l->nsums;
	LLVMPositionBuilderBefore(l->builder, LLVMGetBasicBlockTerminator(l->entry));
	lower_asm(l, arena_printf(l->arena, ".reg .b32 %%sum%u_<%u>;", sum.sum, sum.n), "", l->none, 0, NULL,
		LOWER_ASM_EFFECT);
	LLVMPositionBuilderAtEnd(l->builder, here);
	if (begins_inside(loop, k)) return sum;
	VEC(LLVMValueRef) in = {0};
	for (uint32_t r = 0; r < sum.n; r++) {
		text_printf(&code, "%smov.b32 %%sum%u_%u, ", r ? "\n\t" : "", sum.sum, r);
		if (LLVMIsNull(sum.at[r])) {
			text_puts(&code, "0;");
			continue;
		}
		text_printf(&code, "$%u;", in.n);
		text_printf(&constraints, "%s%c", in.n ? "," : "", LLVMTypeOf(sum.at[r]) == l->f32 ? 'f' : 'r');
		vec_push(l->arena, &in, sum.at[r]);
	}
	lower_asm(l, code.at, in.n ? constraints.at : "", l->none, in.n, in.at, LOWER_ASM_EFFECT | LOWER_ASM_WARP);
	return sum;
}

/* Whether the sum is one that a loop carries, and this its first product of an iteration. */
static void open_sum(product *p)
{
	lower *l = p->l;
	const ir_value *sum = p->plan.sum;
	const ir_op *loop = sum->def ? NULL : sum->block->parent;
	if (!loop || !p->sum.sum || !begins_inside(loop, sum->index - 1u)) return;
	p->begins = true;
	text_puts(&p->constraints, ",b");
	vec_push(l->arena, &p->inputs,
		LLVMBuildICmp(l->builder, LLVMIntNE, lower_value(l, sum->block->args[0]).at[0],
			lower_arg(l, loop, 0).at[0], ""));
	p->iteration = 2 * operands_of(&p->sum) + p->inputs.n - 1;
}

static void add_accumulator(product *p, const ir_value *v, tile registers, uint32_t columns)
{
	assert(p->naccumulators < MOST_JOINED);
	accumulator *s = &p->accumulators[p->naccumulators++];
	*s = (accumulator){.y = v->layout, .registers = registers, .columns = columns};
	lower_index_registers(s->y, s->register_of);
	p->columns += columns;
}

/* The sums of the products behind it that are made by its instructions. */
static void add_joined(product *p, const ir_op *o)
{
	for (o = o->next; o && o->kind == IR_WGMMA && ir_get_joined(o); o = o->next) {
		wgmma_plan plan;
		if (p->naccumulators == MOST_JOINED || !p->sum.sum ||
			!wgmma_plan_make(o, p->l->func->num_warps, &plan)) {
			lower_fail(p->l, o, "a product that no instruction of the one in front makes");
			return;
		}
		add_accumulator(p, o->results[0], lower_value(p->l, plan.sum), plan.shape.n);
	}
}

/* There is nothing to begin: the sum is in registers of its own already. */
static void lower_joined(lower *l, ir_op *o)
{
	wgmma_plan plan;
	const ir_op *front = o->prev;
	tile all = {0};
	if (wgmma_parts(o, &plan) && plan.sum) all = lower_value(l, plan.sum);
	if (!front || front->kind != IR_WGMMA || !all.sum) {
		lower_fail(l, o, "no product stands in front whose instructions make this one");
		return;
	}
	lower_set(l, ir_result(o), all);
}

void lower_wgmma(lower *l, ir_op *o)
{
	assert(o->kind == IR_WGMMA);
	if (ir_get_joined(o)) {
		lower_joined(l, o);
		return;
	}
	product *p = ARENA_NEW(l->arena, product);
	const ir_value *result = ir_result(o);
	*p = (product){.l = l, .y = result->layout};
	if (!wgmma_plan_make(o, l->func->num_warps, &p->plan) || o->shared_bytes < p->plan.scratch_bytes) {
		lower_fail(l, o, "a product that no wgmma makes");
		return;
	}
	source *s[] = {&p->a, &p->b};
	if (l->shared_align < WGMMA_ALIGN) l->shared_align = WGMMA_ALIGN;
	p->code.arena = p->constraints.arena = l->arena;
	p->sum = lower_new_tile(l, result);
	if (p->plan.sum) {
		tile in = lower_value(l, p->plan.sum);
		assert(in.n == p->sum.n);
		memcpy(p->sum.at, in.at, in.n * sizeof in.at[0]);
		p->sum.sum = in.sum;
	} else {
		LLVMValueRef none = LLVMGetPoison(lower_type(l, ir_element(result->type)));
		for (uint32_t r = 0; r < p->sum.n; r++) p->sum.at[r] = none;
	}
	add_accumulator(p, result, p->sum, p->plan.shape.n);
	add_joined(p, o);
	for (unsigned i = 0; i < 2; i++) {
		s[i]->o = &p->plan.operand[i];
		if (s[i]->o->place == WGMMA_SCRATCH) store_operand(p, s[i], o);
		if (s[i]->o->place == WGMMA_REGISTERS) open_registers(p, o, result->type.dim[0]);
	}
	if (p->plan.scratch_bytes) barrier_of_proxies(l);
	for (unsigned i = 0; i < 2; i++)
		if (s[i]->o->place != WGMMA_REGISTERS) open_shared(p, s[i], o, i);
	if (p->plan.sum) open_sum(p);
	text_printf(&p->code, "{\n\t.reg .b32 low;\n\t.reg .b64 first, second;\n\t%s",
		ir_get_fence(o) ? "wgmma.fence.sync.aligned;\n\t" : "");
	multiply_all(p, &result->type);
	text_puts(&p->code, "wgmma.commit_group.sync.aligned;\n\t}");
	uint32_t n = operands_of(&p->sum);
	LLVMValueRef *args = ARENA_ARRAY(l->arena, LLVMValueRef, n + p->inputs.n);
	memcpy(args + n, p->inputs.at, p->inputs.n * sizeof *args);
	tied(l, p->code.at, n, p->sum.at, p->inputs.n, args, p->constraints.at);
	lower_set(l, result, p->sum);
}

/* What stands in registers of its own, after `code`, if that is some. */
static void release(lower *l, const char *code, uint32_t sum, LLVMTypeRef type, tile out)
{
	assert(sum != 0);
	text all = {.arena = l->arena}, constraints = {.arena = l->arena};
	if (code) text_printf(&all, "%s\n\t", code);
	LLVMTypeRef *types = ARENA_ARRAY(l->arena, LLVMTypeRef, out.n);
	for (uint32_t r = 0; r < out.n; r++) {
		types[r] = type;
		text_printf(&all, "%smov.b32 $%u, %%sum%u_%u;", r ? "\n\t" : "", r, sum, r);
		text_printf(&constraints, "%s=%c", r ? "," : "", type == l->f32 ? 'f' : 'r');
	}
	LLVMTypeRef result = LLVMStructTypeInContext(l->context, types, out.n, false);
	LLVMValueRef made = lower_asm(l, all.at, constraints.at, result, 0, NULL, LOWER_ASM_EFFECT | LOWER_ASM_WARP);
	for (uint32_t r = 0; r < out.n; r++) out.at[r] = LLVMBuildExtractValue(l->builder, made, r, "");
}

void lower_wgmma_wait(lower *l, ir_op *o)
{
	assert(o->kind == IR_WGMMA_WAIT);
	const char *code = arena_printf(l->arena, "wgmma.wait_group.sync.aligned %u;", ir_get_pending(o));
	if (!o->nargs) lower_asm(l, code, "", l->none, 0, NULL, LOWER_ASM_EFFECT | LOWER_ASM_WARP);
	for (unsigned i = 0; i < o->nargs; i++) {
		tile in = lower_arg(l, o, i), out = lower_new_tile(l, o->results[i]);
		assert(in.n == out.n);
		memcpy(out.at, in.at, in.n * sizeof in.at[0]);
		if (in.sum)
			release(l, i || ir_get_done(o) ? NULL : code, in.sum, lower_type(l, o->results[i]->type), out);
		else
			tied(l, code, out.n, out.at, 0, ARENA_ARRAY(l->arena, LLVMValueRef, out.n), "");
		lower_set(l, o->results[i], out);
	}
}

/* No number has more than 32 bits set, but the assembler does not know it.  What lanes have of their own is put to the
 * vote: behind a branch that it believes to be a lane's own it keeps descriptors in registers of each lane. */
void lower_sched_barrier(lower *l, ir_op *o)
{
	assert(o->kind == IR_SCHED_BARRIER);
	static const char *const code = "{\n\t.reg .b32 bits;\n\t.reg .pred never;\n\tpopc.b32 bits, $0;\n\t"
					"setp.gt.u32 never, bits, 32;\n\t%s@never nanosleep.u32 0;\n\t}";
	LLVMValueRef all = lower_i32(l, 0);
	bool lanes = false;
	for (unsigned i = 0; i < o->nargs; i++) {
		tile v = lower_arg(l, o, i);
		lanes |= !ir_is_scalar(ir_arg(o, i));
		for (uint32_t r = 0; r < v.n; r++)
			all = LLVMBuildXor(l->builder, all, LLVMBuildBitCast(l->builder, v.at[r], l->i32, ""), "");
	}
	const char *vote = lanes ? "vote.sync.any.pred never, never, 0xffffffff;\n\t" : "";
	lower_asm(l, arena_printf(l->arena, code, vote), "r", l->none, 1, &all, LOWER_ASM_EFFECT | LOWER_ASM_WARP);
}

/* Of 16 bits in pairs, as loops carry them and products take them. */
void lower_fake_use(lower *l, ir_op *o)
{
	assert(o->kind == IR_FAKE_USE);
	uint32_t n = 0;
	for (unsigned i = 0; i < o->nargs; i++) n += lower_arg(l, o, i).n;
	LLVMValueRef *all = ARENA_ARRAY(l->arena, LLVMValueRef, n + 1);
	text constraints = {.arena = l->arena};
	n = 0;
	for (unsigned i = 0; i < o->nargs; i++) {
		tile t = lower_arg(l, o, i);
		ir_type element = ir_element(ir_arg(o, i)->type);
		unsigned each = scalar_bytes(element.elem) == 2 && t.n % 2 == 0 ? 2 : 1;
		for (uint32_t r = 0; r < t.n; r += each) {
			all[n] = lower_pack(l, element, each, t.at + r).at[0];
			text_puts(&constraints, n ? "," : "");
			text_puts(&constraints, LLVMTypeOf(all[n++]) == l->i16 ? "h" : "r");
		}
	}
	lower_asm(l, "", constraints.at, l->none, n, all, LOWER_ASM_EFFECT);
}
