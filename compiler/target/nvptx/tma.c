/* Blocks of tensors by bulk copies: thread 0 starts them, the copy engine does the addresses and the bounds.
 *
 * In: bulk_load, bulk_store and the maps that they go by.  Out: cp.async.bulk.tensor, and the halves of a layout
 * conversion between registers and the block in shared memory (bulk.h).
 * The one idea: what crosses between the threads' view of memory and the copy engine's is fenced by
 * fence.proxy.async: on the way to a copy by those who wrote, or by thread 0 behind the barrier that ordered them. */
#include "lower.h"

#include "async/bulk.h"
#include "async/scratch.h"

#include <assert.h>
#include <string.h>

enum { PTX_BULK = 80 }; /* .version of the forms below */

static LLVMValueRef address(lower *l, LLVMValueRef offset)
{
	return LLVMBuildPtrToInt(l->builder, lower_shared_address(l, offset), l->i32, "");
}

/* The code between is thread 0's. */
static LLVMBasicBlockRef thread_0_begin(lower *l)
{
	return lower_begin_if(l, LLVMBuildICmp(l->builder, LLVMIntEQ, l->tid, lower_i32(l, 0), ""));
}

static void plain(lower *l, const char *code)
{
	lower_asm(l, code, "", l->none, 0, NULL, LOWER_ASM_EFFECT);
}

/* ptxas moves ld.global.nc in front of the wait, as nobody writes that memory while a kernel runs; but the one before
 * may still.  It moves no load over a branch that it cannot know. */
void lower_gdc_wait(lower *l, ir_op *o)
{
	(void)o;
	plain(l, "{\n\t.reg .b32 z;\n\t.reg .pred never;\n\tgriddepcontrol.wait;\n\tmov.u32 z, %nctaid.z;\n\t"
		 "setp.eq.u32 never, z, 0;\n\t@never trap;\n\t}");
}

/* One copy between shared memory at byte `base` (i32) and a box of the map at these indices, slowest first; a load
 * tells the barrier, and with `programs` (a mask, i16) it goes to the same place in each of them. */
static void copy(lower *l, unsigned rank, LLVMValueRef base, LLVMValueRef map, const LLVMValueRef *index,
	LLVMValueRef barrier, LLVMValueRef programs)
{
	assert(rank && rank <= IR_MAP_RANK);
	text code = {.arena = l->arena}, constraints = {.arena = l->arena};
	LLVMValueRef args[4 + IR_MAP_RANK];
	unsigned n = 0;
	text_printf(&code, "cp.async.bulk.tensor.%ud.%s%s [$1, {", rank,
		barrier ? "shared::cluster.global.tile.mbarrier::complete_tx::bytes"
			: "global.shared::cta.tile.bulk_group",
		programs  ? ".multicast::cluster [$0],"
		: barrier ? " [$0],"
			  : "");
	text_puts(&constraints, "r,l");
	args[n++] = address(l, base);
	args[n++] = map;
	for (unsigned i = 0; i < rank; i++) {
		text_printf(&code, "%s$%u", i ? ", " : "", 2 + i);
		text_puts(&constraints, ",r");
		args[n++] = index[rank - 1 - i];
	}
	text_puts(&code, barrier ? "}], " : "}], [$0];");
	if (barrier) {
		text_printf(&code, "[$%u]", 2 + rank);
		text_puts(&constraints, ",r");
		args[n++] = barrier;
		if (programs) {
			text_printf(&code, ", $%u", 3 + rank);
			text_puts(&constraints, ",h");
			args[n++] = programs;
		}
		text_puts(&code, ";");
	}
	lower_asm(l, code.at, constraints.at, l->none, n, args, LOWER_ASM_EFFECT);
}

/* A block on its way between shared memory at byte `base` (i32) and its place in the array, whose indices stand from
 * operand `first` on, those of dimensions in which the block has extent 1 in front. */
typedef struct travel {
	bulk_shape s;
	unsigned first, rank, front;
	LLVMValueRef map, base, barrier;
} travel;

static travel travel_of(lower *l, const ir_op *o, unsigned map, unsigned first, unsigned rank, ir_type block,
	unsigned shares, LLVMValueRef base, LLVMValueRef barrier)
{
	assert(rank >= block.rank && rank <= IR_MAP_RANK && shares);
	travel t = {.first = first, .rank = rank, .front = rank - block.rank, .base = base, .barrier = barrier};
	bulk_shape_of(block, &t.s);
	if (shares > 1) bulk_shape_divide(block, shares, &t.s);
	t.map = lower_arg(l, o, map).at[0];
	return t;
}

/* Its copies `from` (i32) to from + n - 1. */
static void copies(lower *l, const ir_op *o, const travel *t, LLVMValueRef from, unsigned n, LLVMValueRef programs)
{
	LLVMBuilderRef m = l->builder;
	for (unsigned k = 0; k < n; k++) {
		LLVMValueRef number = LLVMBuildAdd(m, from, lower_i32(l, k), ""), index[IR_MAP_RANK];
		LLVMValueRef panel = LLVMBuildUDiv(m, number, lower_i32(l, t->s.pieces), "");
		LLVMValueRef piece = LLVMBuildURem(m, number, lower_i32(l, t->s.pieces), "");
		LLVMValueRef before = LLVMBuildMul(m, number, lower_i32(l, t->s.copy_bytes), "");
		for (unsigned i = 0; i < t->rank; i++) {
			LLVMValueRef step = lower_i32(l, 0);
			if (i == t->rank - 1)
				step = LLVMBuildMul(m, panel, lower_i32(l, t->s.box[i - t->front]), "");
			else if (i == t->s.split + t->front)
				step = LLVMBuildMul(m, piece, lower_i32(l, t->s.box[i - t->front]), "");
			index[i] = LLVMBuildAdd(m, lower_arg(l, o, t->first + i).at[0], step, "");
		}
		copy(l, t->rank, LLVMBuildAdd(m, t->base, before, ""), t->map, index, t->barrier, programs);
	}
}

static void all_copies(lower *l, const ir_op *o, const travel *t)
{
	copies(l, o, t, lower_i32(l, 0), t->s.panels * t->s.pieces, NULL);
}

/* Spins until the barrier's phase of that parity is complete. */
static void wait(lower *l, LLVMValueRef barrier, LLVMValueRef parity)
{
	LLVMBasicBlockRef again = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	LLVMBuildBr(l->builder, again);
	LLVMPositionBuilderAtEnd(l->builder, again);
	LLVMValueRef args[] = {barrier, parity};
	LLVMValueRef done = lower_asm(l,
		"{\n\t.reg .pred complete;\n\tmbarrier.try_wait.parity.shared::cta.b64 complete, [$1], $2;\n\t"
		"selp.b32 $0, 1, 0, complete;\n\t}",
		"=r,r,r", l->i32, 2, args, LOWER_ASM_EFFECT);
	LLVMValueRef complete = LLVMBuildICmp(l->builder, LLVMIntNE, done, lower_i32(l, 0), "");
	LLVMBuildCondBr(l->builder, complete, after, again);
	LLVMPositionBuilderAtEnd(l->builder, after);
}

static bool prepared(lower *l, const ir_op *o, uint32_t bytes)
{
	if (l->shared_align < BULK_ALIGN) l->shared_align = BULK_ALIGN; /* a copy's swizzle goes by address */
	if (l->ptx_version < PTX_BULK) l->ptx_version = PTX_BULK;
	if (o->shared_bytes >= bytes && o->shared_offset % BULK_ALIGN == 0) return true;
	lower_fail(l, o, "no shared memory was set aside for a block");
	return false;
}

void lower_bulk_load(lower *l, ir_op *o)
{
	assert(o->kind == IR_BULK_LOAD);
	ir_type block = ir_result(o)->type;
	bulk_shape s;
	if (!bulk_shape_of(block, &s) || !prepared(l, o, s.bytes)) return;
	LLVMValueRef base = lower_scratch(l, o);
	LLVMValueRef barrier = address(l, LLVMBuildAdd(l->builder, base, lower_i32(l, s.bytes), ""));
	LLVMValueRef expect[] = {barrier, lower_i32(l, s.bytes)};
	travel t = travel_of(l, o, 0, 1, o->nargs - 1u, block, ir_get_shares(o), base, barrier);
	LLVMBasicBlockRef after = thread_0_begin(l);
	lower_asm(l, "mbarrier.init.shared::cta.b64 [$0], 1;", "r", l->none, 1, &barrier, LOWER_ASM_EFFECT);
	lower_proxy_fence(l); /* the barrier, and what others kept in these bytes before */
	lower_asm(l, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r", l->none, 2, expect,
		LOWER_ASM_EFFECT);
	all_copies(l, o, &t);
	lower_end_if(l, after);
	lower_barrier(l); /* the barrier object is there */
	wait(l, barrier, lower_i32(l, 0));
	tile out = lower_new_tile(l, ir_result(o));
	layout shared = bulk_layout(block);
	layout_plan *plan = ARENA_NEW(l->arena, layout_plan);
	layout_plan_load(&shared, ir_result(o)->layout, ir_element_bytes(block), plan);
	lower_plan_load(l, plan, base, ir_element(block), out);
	lower_barrier(l); /* nobody waits any more */
	after = thread_0_begin(l);
	lower_asm(l, "mbarrier.inval.shared::cta.b64 [$0];", "r", l->none, 1, &barrier, LOWER_ASM_EFFECT);
	lower_end_if(l, after);
	lower_set(l, ir_result(o), out);
}

/* Each warp for itself.  A buffer is taken again when the copy from it, one of the last `buffers` that the warp's first
 * lane began, has read it. */
static void store_by_warps(lower *l, ir_op *o)
{
	assert(ir_get_by_warps(o));
	const ir_value *v = ir_arg(o, 1);
	const layout *y = v->layout;
	unsigned rank = o->nargs - 2u, front = rank - v->type.rank;
	bulk_parts p;
	if (!bulk_parts_of(o, &p) || o->shared_bytes < l->func->num_warps * p.buffers * p.copy_bytes) {
		lower_fail(l, o, "no shared memory was set aside for a block's parts");
		return;
	}
	ir_type box = v->type;
	memcpy(box.dim, p.box, box.rank * sizeof box.dim[0]);
	layout shared = layout_swizzled_shared(box, ir_element_bytes(box), p.swizzle);
	LLVMValueRef index[IR_MAP_RANK];
	for (unsigned d = 0; d < rank; d++) {
		index[d] = lower_arg(l, o, 2 + d).at[0];
		if (d >= front) index[d] = lower_warp_index(l, y, d - front, index[d]);
	}
	LLVMValueRef base =
		LLVMBuildMul(l->builder, lower_warp(l), lower_i32(l, (int64_t)p.buffers * p.copy_bytes), "");
	base = LLVMBuildAdd(l->builder, base, lower_scratch(l, o), "");
	LLVMValueRef lane = LLVMBuildAnd(l->builder, l->tid, lower_i32(l, 31), "");
	LLVMValueRef first = LLVMBuildICmp(l->builder, LLVMIntEQ, lane, lower_i32(l, 0), "");
	tile all = lower_arg(l, o, 1), in = {ARENA_ARRAY(l->arena, LLVMValueRef, 1u << p.ninside), 1u << p.ninside};
	bool taken = ir_get_reuses(o), counts = taken || p.copies > p.buffers; /* copies, one by one */
	if (ir_get_syncwarp(o)) lower_warp_barrier(l);
	for (unsigned n = 0; n < p.copies; n++) {
		uint32_t outside = layout_spread(p.outside, p.noutside, n);
		for (uint32_t k = 0; k < in.n; k++) in.at[k] = all.at[outside | layout_spread(p.inside, p.ninside, k)];
		if (taken || n >= p.buffers) {
			plain(l, arena_printf(l->arena, "cp.async.bulk.wait_group.read %u;", p.buffers - 1));
			lower_warp_barrier(l);
		}
		LLVMValueRef buffer =
			LLVMBuildAdd(l->builder, base, lower_i32(l, (int64_t)(n % p.buffers) * p.copy_bytes), "");
		lower_put(l, &p.piece, &shared, ir_element(box), buffer, in);
		lower_fence_of(
			l, n ? IR_PROXY_SHARED : ir_get_proxy(o)); /* of all memory once, in front of the first */
		lower_warp_barrier(l);
		LLVMBasicBlockRef after = lower_begin_if(l, first);
		LLVMValueRef at[IR_MAP_RANK];
		for (unsigned d = 0; d < rank; d++) {
			uint32_t step = d < front ? 0 : layout_coordinate(y, layout_apply(y, outside, 0, 0), d - front);
			at[d] = LLVMBuildAdd(l->builder, index[d], lower_i32(l, step), "");
		}
		copy(l, rank, buffer, lower_arg(l, o, 0).at[0], at, NULL, NULL);
		if (n + 1 < p.copies ? counts : ir_get_commit(o)) plain(l, "cp.async.bulk.commit_group;");
		lower_end_if(l, after);
	}
}

void lower_bulk_store(lower *l, ir_op *o)
{
	assert(o->kind == IR_BULK_STORE);
	const ir_value *v = ir_arg(o, 1);
	bulk_shape s;
	if (!bulk_shape_of(v->type, &s) || !prepared(l, o, ir_get_by_warps(o) ? 0 : s.bytes)) return;
	if (ir_get_by_rows(o)) {
		lower_store_by_rows(l, o);
		return;
	}
	if (ir_get_by_warps(o)) {
		store_by_warps(l, o);
		return;
	}
	LLVMValueRef base = lower_scratch(l, o);
	layout shared = bulk_layout(v->type);
	uint32_t copies_of = layout_free_mask(v->layout, LAYOUT_WARP) << 5;
	LLVMBasicBlockRef after = NULL;
	if (copies_of) { /* of warps that hold the same elements, one writes them */
		LLVMValueRef bits = LLVMBuildAnd(l->builder, l->tid, lower_i32(l, copies_of), "");
		after = lower_begin_if(l, LLVMBuildICmp(l->builder, LLVMIntEQ, bits, lower_i32(l, 0), ""));
	}
	lower_put(l, v->layout, &shared, ir_element(v->type), base, lower_arg(l, o, 1));
	if (after) lower_end_if(l, after);
	lower_fence_of(l, ir_get_proxy(o));
	lower_barrier(l);
	travel t = travel_of(l, o, 0, 2, o->nargs - 2u, v->type, 1, base, NULL);
	after = thread_0_begin(l);
	all_copies(l, o, &t);
	if (ir_get_commit(o)) plain(l, "cp.async.bulk.commit_group;");
	lower_end_if(l, after);
}

/* Of every thread: those that began nothing have nothing to wait for. */
void lower_bulk_wait(lower *l, ir_op *o)
{
	plain(l, ir_get_read(o) ? "cp.async.bulk.wait_group.read 0;" : "cp.async.bulk.wait_group 0;");
}

/* Operations of thread 0 that follow each other share one branch. */
static bool by_thread_0(const ir_op *o)
{
	return o && (o->kind == IR_MBARRIER_EXPECT || o->kind == IR_BULK_COPY || o->kind == IR_MBARRIERS ||
			    o->kind == IR_TENSOR_MAP);
}

static void enter_thread_0(lower *l, const ir_op *o)
{
	const ir_op *before = o->prev;
	while (before && before->kind == IR_MULTIBUFFER) before = before->prev;
	if (l->partition != PRODUCER && !by_thread_0(before)) l->others = thread_0_begin(l);
}

static void leave_thread_0(lower *l, const ir_op *o)
{
	const ir_op *next = o->next;
	while (next && next->kind == IR_MULTIBUFFER) next = next->next;
	if (l->partition != PRODUCER && !by_thread_0(next)) lower_end_if(l, l->others);
}

/* The kernel's parameters behind the user's, in the order of the operations: as the signature lists them.  The first
 * copy finds the map near. */
void lower_tensor_map(lower *l, ir_op *o)
{
	assert(o->kind == IR_TENSOR_MAP);
	tile out = lower_new_tile(l, ir_result(o));
	out.at[0] = LLVMGetParam(l->function, l->func->nparams + l->next_map++);
	lower_set(l, ir_result(o), out);
	enter_thread_0(l, o);
	lower_asm(l, "prefetch.tensormap [$0];", "l", l->none, 1, out.at, LOWER_ASM_EFFECT);
	leave_thread_0(l, o);
}

/* ---- multibuffers that bulk copies fill ---- */

static LLVMValueRef slot_barrier(lower *l, const ir_op *o, unsigned barriers, unsigned slot)
{
	LLVMValueRef far = LLVMBuildMul(l->builder, lower_arg(l, o, slot).at[0], lower_i32(l, 8), "");
	return LLVMBuildAdd(l->builder, lower_arg(l, o, barriers).at[0], far, "");
}

void lower_mbarriers(lower *l, ir_op *o)
{
	assert(o->kind == IR_MBARRIERS);
	if (l->ptx_version < PTX_BULK) l->ptx_version = PTX_BULK;
	enter_thread_0(l, o);
	for (unsigned i = 0; i < ir_get_count(o); i++) {
		LLVMValueRef at = address(l, lower_i32(l, o->shared_offset + 8 * i));
		lower_asm(l, arena_printf(l->arena, "mbarrier.init.shared::cta.b64 [$0], %u;", ir_get_arrivals(o)), "r",
			l->none, 1, &at, LOWER_ASM_EFFECT);
	}
	if (ir_get_cluster(o)) plain(l, "fence.mbarrier_init.release.cluster;");
	lower_fence_of(l, ir_get_proxy(o));
	leave_thread_0(l, o);
	tile out = lower_new_tile(l, ir_result(o));
	out.at[0] = address(l, lower_i32(l, o->shared_offset));
	lower_set(l, ir_result(o), out);
}

void lower_mbarriers_end(lower *l, ir_op *o)
{
	assert(o->kind == IR_MBARRIERS_END);
	const ir_op *made = ir_arg(o, 0)->def;
	if (ir_get_stays(o)) return;
	lower_barrier(l); /* nobody waits any more */
	LLVMValueRef first = LLVMBuildICmp(l->builder, LLVMIntEQ, l->thread, lower_i32(l, 0), "");
	LLVMBasicBlockRef after = lower_begin_if(l, first);
	for (unsigned i = 0; i < ir_get_count(made); i++) {
		LLVMValueRef at = address(l, lower_i32(l, made->shared_offset + 8 * i));
		lower_asm(l, "mbarrier.inval.shared::cta.b64 [$0];", "r", l->none, 1, &at, LOWER_ASM_EFFECT);
	}
	lower_end_if(l, after);
}

void lower_mbarrier_expect(lower *l, ir_op *o)
{
	assert(o->kind == IR_MBARRIER_EXPECT);
	enter_thread_0(l, o);
	LLVMValueRef args[] = {slot_barrier(l, o, 0, 1), lower_i32(l, ir_get_bytes(o))};
	if (ir_get_bytes(o))
		lower_asm(l, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r", l->none, 2, args,
			LOWER_ASM_EFFECT);
	else
		lower_asm(l, "mbarrier.arrive.shared::cta.b64 _, [$0];", "r", l->none, 1, args, LOWER_ASM_EFFECT);
	leave_thread_0(l, o);
}

static LLVMValueRef cluster_rank(lower *l)
{
	return lower_intrinsic(l, "llvm.nvvm.read.ptx.sreg.cluster.ctarank", l->i32, 0, NULL);
}

/* Who brings a block together, `set` as in bulk_copy's operand, in one word: the set as a mask of the cluster's
 * programs, from bit 16 on which of its members this program is, from bit 24 on how many they are.  It is the same in
 * all iterations; partitions.c asks for it in front of them. */
enum { PARTNER = 16, PARTNERS = 24 };

LLVMValueRef lower_partners(lower *l, const ir_op *o)
{
	assert(o->kind == IR_BULK_COPY && ir_get_shares(o) > 1);
	LLVMBuilderRef m = l->builder;
	const ir_value *v = ir_arg(o, o->nargs - 1u);
	if (l->partners[v->id]) return l->partners[v->id];
	LLVMValueRef set = lower_arg(l, o, o->nargs - 1u).at[0];
	LLVMValueRef rank = cluster_rank(l), one = lower_i32(l, 1);
	/* the highest bit of the set is at the number of all bits in which members differ (0b0101: at 2); without these
	 * the rank is the first member's */
	LLVMValueRef clz[] = {set, LLVMConstInt(l->i1, 1, 0)};
	LLVMValueRef zeros = lower_intrinsic(l, "llvm.ctlz.i32", l->i32, 2, clz);
	LLVMValueRef first =
		LLVMBuildAnd(m, rank, LLVMBuildNot(m, LLVMBuildSub(m, lower_i32(l, 31), zeros, ""), ""), "");
	LLVMValueRef mask = LLVMBuildShl(m, set, first, "");
	LLVMValueRef before = LLVMBuildSub(m, LLVMBuildShl(m, one, rank, ""), one, "");
	LLVMValueRef below = LLVMBuildAnd(m, mask, before, "");
	LLVMValueRef number = lower_intrinsic(l, "llvm.ctpop.i32", l->i32, 1, &below);
	LLVMValueRef size = lower_intrinsic(l, "llvm.ctpop.i32", l->i32, 1, &set);
	number = LLVMBuildShl(m, number, lower_i32(l, PARTNER), "");
	size = LLVMBuildShl(m, size, lower_i32(l, PARTNERS), "");
	return LLVMBuildOr(m, LLVMBuildOr(m, mask, number, ""), size, "");
}

/* In a set of several: this program's share of the copies, to all members.  Alone: all copies.  An opaque mov keeps
 * LLVM from moving the word's parts out of the loop: that takes more registers, and time in front of the first copy. */
static void multicast_block(lower *l, const ir_op *o, const travel *t, unsigned shares)
{
	assert(shares > 1 && t->s.panels * t->s.pieces % shares == 0);
	LLVMBuilderRef m = l->builder;
	LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	LLVMValueRef word = lower_partners(l, o);
	word = lower_asm(l, "mov.b32 $0, $1;", "=r,r", l->i32, 1, &word, LOWER_ASM_EFFECT);
	LLVMValueRef size = LLVMBuildLShr(m, word, lower_i32(l, PARTNERS), "");
	for (unsigned n = shares; n > 1; n /= 2) {
		unsigned each = t->s.panels * t->s.pieces / n;
		LLVMBasicBlockRef share = LLVMAppendBasicBlockInContext(l->context, l->function, "");
		LLVMBasicBlockRef fewer = LLVMAppendBasicBlockInContext(l->context, l->function, "");
		LLVMBuildCondBr(m, LLVMBuildICmp(m, LLVMIntEQ, size, lower_i32(l, n), ""), share, fewer);
		LLVMPositionBuilderAtEnd(m, share);
		LLVMValueRef mask = n == l->func->num_ctas ? lower_const(l, l->i16, (1 << n) - 1)
							   : LLVMBuildTrunc(m, word, l->i16, "");
		LLVMValueRef number = LLVMBuildLShr(m, word, lower_i32(l, PARTNER), "");
		number = LLVMBuildAnd(m, number, lower_i32(l, BULK_SHARES - 1), "");
		copies(l, o, t, LLVMBuildMul(m, number, lower_i32(l, each), ""), each, mask);
		LLVMBuildBr(m, after);
		LLVMPositionBuilderAtEnd(m, fewer);
	}
	all_copies(l, o, t);
	lower_end_if(l, after);
}

void lower_bulk_copy(lower *l, ir_op *o)
{
	assert(o->kind == IR_BULK_COPY);
	const ir_op *multibuffer = ir_arg(o, 0)->def;
	layout_plan *plan = ARENA_NEW(l->arena, layout_plan);
	if (l->shared_align < BULK_ALIGN) l->shared_align = BULK_ALIGN;
	if (!multibuffer_plan(multibuffer, plan) ||
		multibuffer->shared_bytes < plan->bytes * ir_get_stages(multibuffer)) {
		lower_fail(l, o, "no shared memory was set aside for a multibuffer");
		return;
	}
	unsigned shares = ir_get_shares(o), indices = o->nargs - 4u - (shares > 1);
	uint64_t set;
	bool alone = shares == 1 || (ir_is_const(ir_arg(o, o->nargs - 1u), &set) && set == 1);
	enter_thread_0(l, o);
	LLVMValueRef slot = lower_arg(l, o, 1).at[0];
	if (ir_get_part(o)) {
		slot = LLVMBuildMul(l->builder, slot, lower_i32(l, l->func->row_groups), "");
		slot = LLVMBuildAdd(l->builder, slot, lower_i32(l, ir_get_part(o) - 1), "");
	}
	LLVMValueRef base = LLVMBuildMul(l->builder, slot, lower_i32(l, multibuffer_pitch(multibuffer)), "");
	base = LLVMBuildAdd(l->builder, base, lower_i32(l, multibuffer->shared_offset), "");
	travel t = travel_of(l, o, 3, 4, indices, ir_arg(o, 0)->type, shares, base, slot_barrier(l, o, 2, 1));
	if (alone)
		all_copies(l, o, &t);
	else
		multicast_block(l, o, &t, shares);
	leave_thread_0(l, o);
}

void lower_mbarrier_wait(lower *l, ir_op *o)
{
	wait(l, slot_barrier(l, o, 0, 1), lower_arg(l, o, 2).at[0]);
}

/* What all lanes did, lane 0 says (what they read themselves, behind a barrier of theirs; products they have waited for
 * together); or to each program of a cluster another lane.  That is to be no release at the cluster's scope, which
 * ptxas makes a fence of the whole GPU: what was read of the slot, wgmma has read, and waited for. */
void lower_mbarrier_arrive(lower *l, ir_op *o)
{
	assert(o->kind == IR_MBARRIER_ARRIVE);
	LLVMBuilderRef m = l->builder;
	unsigned programs = ir_get_programs(o) > 1 ? ir_get_programs(o) : 1;
	LLVMValueRef lane = LLVMBuildAnd(m, l->tid, lower_i32(l, 31), "");
	LLVMValueRef acts = LLVMBuildICmp(m, LLVMIntULT, lane, lower_i32(l, programs), "");
	if (o->nargs > 2) acts = LLVMBuildAnd(m, acts, lower_arg(l, o, 2).at[0], "");
	LLVMValueRef args[] = {slot_barrier(l, o, 0, 1), acts, NULL};
	if (programs > 1) {
		LLVMValueRef each = LLVMBuildAnd(m, lane, lower_i32(l, programs - 1), "");
		args[2] = LLVMBuildSelect(m, lower_arg(l, o, 3).at[0], each, cluster_rank(l), "");
	}
	if (ir_get_syncwarp(o)) lower_warp_barrier(l);
	if (programs > 1)
		lower_asm(l,
			"{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, $0, $2;\n\t"
			"@$1 mbarrier.arrive.shared::cluster.b64 _, [there];\n\t}",
			"r,b,r", l->none, 3, args, LOWER_ASM_EFFECT);
	else
		lower_asm(l, "@$1 mbarrier.arrive.shared::cta.b64 _, [$0];", "r,b", l->none, 2, args, LOWER_ASM_EFFECT);
}

/* ---- numbers ---- */

static LLVMValueRef number_offset(lower *l, const ir_op *o)
{
	const ir_op *numbers = ir_arg(o, 0)->def;
	assert(numbers && numbers->kind == IR_SCALARS);
	LLVMValueRef far = LLVMBuildMul(l->builder, lower_arg(l, o, 1).at[0], lower_i32(l, 8), "");
	return LLVMBuildAdd(l->builder, far, lower_i32(l, numbers->shared_offset), "");
}

void lower_scalars(lower *l, ir_op *o)
{
	assert(o->kind == IR_SCALARS);
	tile out = lower_new_tile(l, ir_result(o));
	out.at[0] = address(l, lower_i32(l, o->shared_offset));
	lower_set(l, ir_result(o), out);
}

void lower_scalar_send(lower *l, ir_op *o)
{
	assert(o->kind == IR_SCALAR_SEND);
	LLVMValueRef v = lower_arg(l, o, 2).at[0];
	words w = lower_pack(l, ir_arg(o, 2)->type, 1, &v);
	lower_shared_store(l, number_offset(l, o), &w, NULL);
}

void lower_scalar_receive(lower *l, ir_op *o)
{
	assert(o->kind == IR_SCALAR_RECEIVE);
	tile out = lower_new_tile(l, ir_result(o));
	ir_type t = ir_result(o)->type;
	words w = lower_word_shape(t, 1);
	lower_shared_load(l, number_offset(l, o), ir_element_bytes(t), &w);
	lower_unpack(l, t, 1, out.at, &w);
	lower_set(l, ir_result(o), out);
}

/* Relaxed: the fence is the release of what thread 0 has made.  With one of its own, the arrival would wait for all
 * memory. */
void lower_cluster_arrive(lower *l, ir_op *o)
{
	(void)o;
	plain(l, "fence.mbarrier_init.release.cluster;");
	lower_intrinsic(l, "llvm.nvvm.barrier.cluster.arrive.relaxed.aligned", l->none, 0, NULL);
}

void lower_cluster_size(lower *l, ir_op *o)
{
	tile out = lower_new_tile(l, ir_result(o));
	out.at[0] = lower_intrinsic(l, "llvm.nvvm.read.ptx.sreg.cluster.nctarank", l->i32, 0, NULL);
	lower_set(l, ir_result(o), out);
}
