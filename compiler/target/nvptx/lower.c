/* The walk: one handler an operation, and the structured control flow.
 *
 * In: a block of scheduled IR; the values that it uses are set.  Out: LLVM instructions at the builder's place; every
 * result is set.
 * The one idea: structured control flow needs no analysis: a region's carried values are phis at its head, one phi a
 * register (struct phis would cost insert and extract chains), and yields feed them. */
#include "lower.h"

#include <assert.h>
#include <string.h>

/* ---- phis ---- */

typedef struct phi_set {
	tile *at;    /* one a carried value */
	bool *pairs; /* two of its elements go together in a word: see takes_words */
	unsigned n;
} phi_set;

/* A product takes the tile from registers, two of its 16-bit elements in each: carried so, nothing has to put them
 * together again. */
static bool takes_words(const ir_value *v)
{
	if (!v->layout || ir_element_bytes(v->type) != 2 || layout_registers(v->layout) % 2) return false;
	for (const ir_use *u = v->uses; u; u = u->next)
		if (u->user->kind == IR_WGMMA && u->user->args[0] == u) return true;
	return false;
}

/* `first`: what goes in, or null; a sum with registers of its own stays in them.  All phis of a block come first:
 * open_phis follows where the last of them stands. */
static phi_set new_phis(lower *l, unsigned n, ir_value *const *like, const tile *first)
{
	phi_set p = {ARENA_ARRAY(l->arena, tile, n), ARENA_ARRAY(l->arena, bool, n), n};
	for (unsigned i = 0; i < n; i++) {
		p.at[i] = first && first[i].sum ? first[i] : lower_new_tile(l, like[i]);
		p.pairs[i] = takes_words(like[i]);
		for (uint32_t r = 0; r < p.at[i].n && !p.at[i].sum; r += 1u + p.pairs[i])
			p.at[i].at[r] =
				LLVMBuildPhi(l->builder, p.pairs[i] ? l->i32 : lower_type(l, like[i]->type), "");
	}
	return p;
}

/* Their elements, as everybody else takes them. */
static tile open_phi(lower *l, const phi_set *p, unsigned i, const ir_value *v)
{
	if (!p->pairs[i]) return p->at[i];
	tile out = lower_new_tile(l, v);
	for (uint32_t r = 0; r < out.n; r += 2) {
		words w = {.n = 1, .bits = 32, .at = {p->at[i].at[r]}};
		lower_unpack(l, ir_element(v->type), 2, out.at + r, &w);
	}
	return out;
}

static void feed(lower *l, const phi_set *p, unsigned i, const ir_value *v, tile in, LLVMBasicBlockRef from)
{
	assert(i < p->n);
	LLVMBasicBlockRef place = LLVMGetInsertBlock(l->builder);
	LLVMValueRef end = LLVMGetBasicBlockTerminator(from);
	if (in.n != p->at[i].n) {
		lower_fail(l, NULL, "a carried value changes its layout");
		return;
	}
	if (end)
		LLVMPositionBuilderBefore(l->builder, end);
	else
		LLVMPositionBuilderAtEnd(l->builder, from);
	for (uint32_t r = 0; r < in.n && !in.sum; r += 1u + p->pairs[i]) {
		LLVMValueRef next = in.at[r];
		if (p->pairs[i]) next = lower_pack(l, ir_element(v->type), 2, in.at + r).at[0];
		LLVMAddIncoming(p->at[i].at[r], &next, &from, 1);
	}
	LLVMPositionBuilderAtEnd(l->builder, place);
}

static LLVMBasicBlockRef new_block(lower *l)
{
	return LLVMAppendBasicBlockInContext(l->context, l->function, "");
}

static void enter(lower *l, LLVMBasicBlockRef b)
{
	LLVMPositionBuilderAtEnd(l->builder, b);
}

static LLVMBasicBlockRef here(lower *l)
{
	return LLVMGetInsertBlock(l->builder);
}

/* The operands of a region's terminator, from the first'th on, into phis. */
static void feed_terminator(lower *l, const phi_set *p, const ir_op *end, unsigned first)
{
	for (unsigned i = 0; i < p->n; i++)
		feed(l, p, i, ir_arg(end, first + i), lower_arg(l, end, first + i), here(l));
}

/* ---- if, for, while ---- */

static void lower_if(lower *l, ir_op *o)
{
	assert(o->kind == IR_IF && o->nregions == 2);
	LLVMBasicBlockRef then = new_block(l), other = new_block(l), after = new_block(l);
	LLVMBuildCondBr(l->builder, lower_arg(l, o, 0).at[0], then, other);
	enter(l, after);
	phi_set p = new_phis(l, o->nresults, o->results, NULL);
	for (unsigned i = 0; i < 2; i++) {
		enter(l, i ? other : then);
		lower_block(l, o->regions[i]);
		feed_terminator(l, &p, o->regions[i]->last, 0);
		LLVMBuildBr(l->builder, after);
	}
	enter(l, after);
	for (unsigned i = 0; i < o->nresults; i++) lower_set(l, o->results[i], open_phi(l, &p, i, o->results[i]));
}

typedef struct trip {
	LLVMValueRef any, count; /* i1: at least one; how many, when there is any */
} trip;

/* (hi - lo) cannot be trusted as a signed number, but as an unsigned one it is exact whenever lo < hi. */
static trip trip_count(lower *l, scalar s, LLVMValueRef lo, LLVMValueRef hi, LLVMValueRef step)
{
	assert(scalar_is_integer(s));
	LLVMBuilderRef b = l->builder;
	LLVMTypeRef type = LLVMTypeOf(lo);
	LLVMValueRef zero = LLVMConstNull(type), one = lower_const(l, type, 1);
	bool is_signed = scalar_is_signed(s);
	LLVMValueRef up = LLVMBuildICmp(b, is_signed ? LLVMIntSLT : LLVMIntULT, lo, hi, "");
	LLVMValueRef distance = LLVMBuildSub(b, hi, lo, ""), stride = step;
	trip t = {.any = up};
	bool constant = LLVMIsAConstantInt(step) != NULL;
	int64_t value = constant ? LLVMConstIntGetSExtValue(step) : 0;
	if (constant ? is_signed && value < 0 : is_signed) {
		LLVMValueRef down = LLVMBuildICmp(b, LLVMIntSGT, lo, hi, "");
		LLVMValueRef negative = LLVMBuildICmp(b, LLVMIntSLT, step, zero, "");
		t.any = LLVMBuildSelect(b, negative, down, up, "");
		distance = LLVMBuildSelect(b, negative, LLVMBuildSub(b, lo, hi, ""), distance, "");
		stride = LLVMBuildSelect(b, negative, LLVMBuildNeg(b, step, ""), step, "");
	}
	if (!constant || value == 0) { /* step 0 runs nothing, and must not divide */
		LLVMValueRef moves = LLVMBuildICmp(b, LLVMIntNE, step, zero, "");
		t.any = LLVMBuildAnd(b, t.any, moves, "");
		stride = LLVMBuildSelect(b, moves, stride, one, "");
	}
	t.count = LLVMBuildUDiv(b, LLVMBuildSub(b, distance, one, ""), stride, "");
	t.count = LLVMBuildAdd(b, t.count, one, "");
	return t;
}

static void lower_for(lower *l, ir_op *o)
{
	assert(o->kind == IR_FOR && o->nregions == 1);
	ir_block *body = o->regions[0];
	LLVMValueRef lo = lower_arg(l, o, 0).at[0], hi = lower_arg(l, o, 1).at[0], step = lower_arg(l, o, 2).at[0];
	trip t = trip_count(l, ir_arg(o, 0)->type.elem, lo, hi, step);
	LLVMBasicBlockRef before = here(l), loop = new_block(l), after = new_block(l);
	LLVMTypeRef type = LLVMTypeOf(lo);
	tile *first = ARENA_ARRAY(l->arena, tile, o->nresults + 1u);
	for (unsigned k = 0; k < o->nresults; k++) {
		const ir_op *next = ir_arg(body->last, k)->def;
		first[k] = lower_arg(l, o, 3 + k);
		if (next && next->kind == IR_WGMMA) first[k] = lower_wgmma_start(l, o, k, first[k]);
	}
	bool once = ir_get_accumulator_init(o);
	if (once)
		LLVMBuildBr(l->builder, loop);
	else
		LLVMBuildCondBr(l->builder, t.any, loop, after);

	enter(l, loop);
	LLVMValueRef i = LLVMBuildPhi(l->builder, type, ""), left = LLVMBuildPhi(l->builder, type, "");
	LLVMAddIncoming(i, &lo, &before, 1);
	LLVMAddIncoming(left, &t.count, &before, 1);
	phi_set carried = new_phis(l, o->nresults, body->args + 1, first);
	for (unsigned k = 0; k < carried.n; k++) feed(l, &carried, k, ir_arg(o, 3 + k), first[k], before);
	tile counter = lower_new_tile(l, body->args[0]);
	counter.at[0] = i;
	lower_set(l, body->args[0], counter);
	for (unsigned k = 0; k < carried.n; k++)
		lower_set(l, body->args[1 + k], open_phi(l, &carried, k, body->args[1 + k]));
	lower_block(l, body);
	LLVMValueRef next = LLVMBuildAdd(l->builder, i, step, "");
	LLVMValueRef rest = LLVMBuildSub(l->builder, left, lower_const(l, type, 1), "");
	LLVMValueRef more = LLVMBuildICmp(l->builder, LLVMIntNE, rest, LLVMConstNull(type), "");
	LLVMBasicBlockRef end = here(l);
	LLVMAddIncoming(i, &next, &end, 1);
	LLVMAddIncoming(left, &rest, &end, 1);
	feed_terminator(l, &carried, body->last, 0);
	lower_set_unroll(l, LLVMBuildCondBr(l->builder, more, loop, after), ir_get_unroll(o));

	enter(l, after);
	phi_set results = new_phis(l, o->nresults, o->results, first);
	for (unsigned k = 0; k < results.n; k++) {
		if (!once) feed(l, &results, k, ir_arg(o, 3 + k), first[k], before);
		feed(l, &results, k, ir_arg(body->last, k), lower_arg(l, body->last, k), end);
	}
	for (unsigned k = 0; k < results.n; k++) lower_set(l, o->results[k], open_phi(l, &results, k, o->results[k]));
}

static void lower_while(lower *l, ir_op *o)
{
	assert(o->kind == IR_WHILE && o->nregions == 2);
	ir_block *before = o->regions[0], *body = o->regions[1];
	LLVMBasicBlockRef from = here(l), head = new_block(l), inside = new_block(l), after = new_block(l);
	LLVMBuildBr(l->builder, head);

	enter(l, head);
	phi_set carried = new_phis(l, before->nargs, before->args, NULL);
	for (unsigned k = 0; k < carried.n; k++) feed(l, &carried, k, ir_arg(o, k), lower_arg(l, o, k), from);
	for (unsigned k = 0; k < carried.n; k++)
		lower_set(l, before->args[k], open_phi(l, &carried, k, before->args[k]));
	lower_block(l, before);
	LLVMBuildCondBr(l->builder, lower_arg(l, before->last, 0).at[0], inside, after);
	for (unsigned k = 0; k < o->nresults; k++) {
		tile v = lower_arg(l, before->last, 1 + k);
		lower_set(l, body->args[k], v);
		lower_set(l, o->results[k], v);
	}

	enter(l, inside);
	lower_block(l, body);
	feed_terminator(l, &carried, body->last, 0);
	LLVMBuildBr(l->builder, head);
	enter(l, after);
}

/* ---- the rest ---- */

static void lower_program(lower *l, ir_op *o)
{
	assert(ir_get_axis(o) < 3);
	static const char axis_name[] = "xyz";
	bool id = o->kind == IR_PROGRAM_ID;
	char axis = axis_name[ir_get_axis(o)];
	tile out = lower_new_tile(l, ir_result(o));
	out.at[0] = lower_intrinsic(l,
		arena_printf(l->arena, "llvm.nvvm.read.ptx.sreg.%s.%c", id ? "ctaid" : "nctaid", axis), l->i32, 0,
		NULL);
	/* Fewer than 2^31 programs along x, 65536 along y and z: an index sign-extends for nothing. */
	uint64_t low = id ? 0 : 1, high = (axis == 'x' ? UINT64_C(0x7fffffff) : UINT64_C(0xffff)) + !id;
	unsigned kind = LLVMGetEnumAttributeKindForName("range", 5);
	LLVMAttributeRef range = LLVMCreateConstantRangeAttribute(l->context, kind, 32, &low, &high);
	LLVMAddCallSiteAttribute(out.at[0], LLVMAttributeReturnIndex, range);
	lower_set(l, ir_result(o), out);
}

static void lower_assume(lower *l, ir_op *o)
{
	LLVMValueRef c = lower_arg(l, o, 0).at[0];
	lower_intrinsic(l, "llvm.assume", l->none, 1, &c);
}

static void lower_cta_barrier(lower *l, ir_op *o)
{
	(void)o;
	lower_barrier(l);
}

static void lower_nothing(
	lower *l, ir_op *o) /* terminators: whoever lowers the region reads their operands; a multibuffer is a place */
{
	(void)l, (void)o;
}

typedef void handler(lower *, ir_op *);

static handler *const handlers[IR_KIND_COUNT] = {
	[IR_CONST] = lower_const_op,
	[IR_PROGRAM_ID] = lower_program,
	[IR_NUM_PROGRAMS] = lower_program,
	[IR_ROW_GROUP] = lower_row_group,
	[IR_ARANGE] = lower_arange,
	[IR_SPLAT] = lower_shape_op,
	[IR_EXPAND_DIMS] = lower_shape_op,
	[IR_BROADCAST] = lower_shape_op,
	[IR_RESHAPE] = lower_shape_op,
	[IR_PERMUTE] = lower_permute,
	[IR_HINT] = lower_shape_op,
	[IR_CONVERT] = lower_convert,
	[IR_BITCAST] = lower_bitcast,
	[IR_LOAD] = lower_load,
	[IR_STORE] = lower_store,
	[IR_ATOMIC_RMW] = lower_atomic,
	[IR_ATOMIC_CAS] = lower_atomic,
	[IR_REDUCE] = lower_reduce,
	[IR_SCAN] = lower_scan,
	[IR_SORT] = lower_sort,
	[IR_FLIP] = lower_flip,
	[IR_DOT] = lower_dot,
	[IR_JOIN] = lower_join,
	[IR_SPLIT] = lower_split,
	[IR_GATHER] = lower_gather,
	[IR_HISTOGRAM] = lower_histogram,
	[IR_INLINE_ASM] = lower_inline_asm,
	[IR_ASSUME] = lower_assume,
	[IR_ASSERT] = lower_assert,
	[IR_PRINT] = lower_print,
	[IR_DEBUG_BARRIER] = lower_cta_barrier,
	[IR_CTA_BARRIER] = lower_cta_barrier,
	[IR_CONVERT_LAYOUT] = lower_convert_layout,
	[IR_MULTIBUFFER] = lower_nothing,
	[IR_MULTIBUFFER_END] = lower_nothing,
	[IR_ASYNC_COPY] = lower_async_copy,
	[IR_ASYNC_COMMIT] = lower_async_commit,
	[IR_ASYNC_WAIT] = lower_async_wait,
	[IR_PROXY_FENCE] = lower_proxy_fence_op,
	[IR_MULTIBUFFER_READ] = lower_multibuffer_read,
	[IR_WGMMA] = lower_wgmma,
	[IR_WGMMA_WAIT] = lower_wgmma_wait,
	[IR_SCHED_BARRIER] = lower_sched_barrier,
	[IR_FAKE_USE] = lower_fake_use,
	[IR_WARP_ANY] = lower_warp_any,
	[IR_TURN_WAIT] = lower_turn_wait,
	[IR_TURN_PASS] = lower_turn_pass,
	[IR_TENSOR_MAP] = lower_tensor_map,
	[IR_BULK_LOAD] = lower_bulk_load,
	[IR_BULK_STORE] = lower_bulk_store,
	[IR_BULK_WAIT] = lower_bulk_wait,
	[IR_BULK_COPY] = lower_bulk_copy,
	[IR_MBARRIERS] = lower_mbarriers,
	[IR_MBARRIERS_END] = lower_mbarriers_end,
	[IR_MBARRIER_EXPECT] = lower_mbarrier_expect,
	[IR_MBARRIER_WAIT] = lower_mbarrier_wait,
	[IR_MBARRIER_ARRIVE] = lower_mbarrier_arrive,
	[IR_SCALARS] = lower_scalars,
	[IR_SCALAR_SEND] = lower_scalar_send,
	[IR_SCALAR_RECEIVE] = lower_scalar_receive,
	[IR_GDC_WAIT] = lower_gdc_wait,
	[IR_CLUSTER_SIZE] = lower_cluster_size,
	[IR_CLUSTER_ARRIVE] = lower_cluster_arrive,
	[IR_PARTITIONS] = lower_partitions,
	[IR_IF] = lower_if,
	[IR_FOR] = lower_for,
	[IR_WHILE] = lower_while,
	[IR_YIELD] = lower_nothing,
	[IR_CONDITION] = lower_nothing,
	[IR_RETURN] = lower_nothing,
};

static LLVMMetadataRef debug_file(lower *l, const source_file *f)
{
	while (l->files.n <= f->index) vec_push(l->arena, &l->files, NULL);
	LLVMMetadataRef *at = &l->files.at[f->index];
	if (!*at) *at = LLVMDIBuilderCreateFile(l->debug, f->name, strlen(f->name), "", 0);
	return *at;
}

static void set_line(lower *l, span at)
{
	if (!l->debug) return;
	if (!at.file) {
		LLVMSetCurrentDebugLocation2(
			l->builder, LLVMDIBuilderCreateDebugLocation(l->context, 0, 0, l->subprogram, NULL));
		return;
	}
	source_position p = source_locate(l->arena, at);
	LLVMMetadataRef scope = l->subprogram;
	if (at.file != l->func->at.file)
		scope = LLVMDIBuilderCreateLexicalBlockFile(l->debug, scope, debug_file(l, at.file), 0);
	LLVMMetadataRef line = LLVMDIBuilderCreateDebugLocation(l->context, p.line, p.column, scope, NULL);
	LLVMSetCurrentDebugLocation2(l->builder, line);
}

void lower_block(lower *l, ir_block *block)
{
	for (ir_op *o = block->first; o && !l->failed; o = o->next) {
		set_line(l, o->at);
		handler *h = handlers[o->kind];
		if (h)
			h(l, o);
		else if (ir_has(o, IR_ELEMENTWISE))
			lower_elementwise(l, o);
		else
			lower_fail(l, o, "'%s' has no lowering", ir_info(o)->name);
	}
}
