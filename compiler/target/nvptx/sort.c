/* sort and topk along one axis: Batcher's bitonic network.
 *
 * In: a tile in the layout layout_lines().  Out: the same, each line in order; of a topk the first k, repeated in the
 * places that held the others (layout_truncate).
 * The one idea: a step of the network compares elements whose indices differ in one bit, so it is a step between two
 * registers, between two lanes (one shuffle) or between two warps (one exchange), and the low bits, which take part
 * most often, lie in registers.
 *
 * Elements become keys: signed integers of 32 or 64 bits that order like the result, nan the greatest whichever the
 * direction, equal keys being equal bits.  Stage s merges runs of 2^(s-1) keys into runs of 2^s, ascending where bit s
 * of the index is 0, else descending.  For a bit of registers that is known here; for a bit of the thread's number the
 * thread's keys are inverted (~key) throughout the stage, so that all threads do the same: keep the smaller.
 *
 * topk sorts runs of k like that, then halves their number m - lg k times: the smaller ones of two runs that go
 * opposite ways, element by element, are the k smallest of both, a bitonic run that lg k further steps sort.
 *
 * Short networks are straight code.  Long ones (MAX_STRAIGHT) loop over the stages that reach beyond a thread and over
 * the bits of lanes and of warps in them: a line of 16384 elements takes little more code than one of 2048.  Sorts of
 * more keys than a thread can hold in registers (MOST_KEYS) do so in memory: sort_local.c. */
#include "sort_local.h"

#include "async/scratch.h"

#include <assert.h>
#include <string.h>

enum { MAX_STRAIGHT = 6000 }; /* instructions, about */
enum { MOST_KEYS = 128 };     /* of 32 bits, in registers */

typedef struct network {
	lower *l;
	ir_op *op;
	scalar elem;
	ir_type key; /* i32 or i64 */
	bool descending;
	/* of the index along the axis: bits in all; the lowest in registers, then in lanes, the rest in warps */
	unsigned bits, registers, lanes;
	unsigned lg_k;
	LLVMValueRef index; /* its part that the thread's number says, i32 */
	LLVMValueRef *v;    /* keys */
	uint32_t n;
	LLVMValueRef inverted; /* mask: all ones in threads whose keys are inverted; null: in none */
	exchange x;
} network;

/* ---- keys ---- */

static LLVMValueRef key_const(const network *w, uint64_t v)
{
	int64_t value = w->key.elem == SCALAR_I32 ? (int32_t)v : (int64_t)v;
	return lower_const(w->l, lower_type(w->l, w->key), value);
}

static unsigned key_bits(const network *w)
{
	return 8 * ir_element_bytes(w->key);
}

/* Width of the element inside the key: an extended one has its own sign in all the bits above. */
static uint64_t greatest(const network *w)
{
	return (UINT64_C(1) << (scalar_bits(w->elem) - 1)) - 1;
}

/* Negative numbers run the other way: flips all but the sign.  Its own inverse. */
static LLVMValueRef flip_negative(const network *w, LLVMValueRef v)
{
	LLVMBuilderRef b = w->l->builder;
	LLVMValueRef sign = LLVMBuildAShr(b, v, key_const(w, key_bits(w) - 1), "");
	return LLVMBuildXor(b, v, LLVMBuildAnd(b, sign, key_const(w, greatest(w)), ""), "");
}

/* Unsigned numbers as wide as the key order as signed ones with the top bit flipped. */
static bool flips_top(const network *w)
{
	return w->elem == SCALAR_U32 || w->elem == SCALAR_U64;
}

static LLVMValueRef to_key(const network *w, LLVMValueRef v)
{
	lower *l = w->l;
	LLVMBuilderRef b = l->builder;
	LLVMTypeRef type = lower_type(l, w->key);
	bool is_float = scalar_is_float(w->elem);
	if (is_float) v = LLVMBuildBitCast(b, v, lower_word_type(l, scalar_bits(w->elem)), "");
	if (LLVMTypeOf(v) != type)
		v = scalar_is_signed(w->elem) ? LLVMBuildSExt(b, v, type, "") : LLVMBuildZExt(b, v, type, "");
	LLVMValueRef key = is_float ? flip_negative(w, v) : v;
	if (flips_top(w)) key = LLVMBuildXor(b, key, key_const(w, UINT64_C(1) << (key_bits(w) - 1)), "");
	if (w->descending) key = LLVMBuildNot(b, key, "");
	if (!is_float) return key;
	LLVMValueRef magnitude = LLVMBuildAnd(b, v, key_const(w, greatest(w)), "");
	LLVMValueRef is_nan = LLVMBuildICmp(b, LLVMIntSGT, magnitude, key_const(w, scalar_infinity(w->elem)), "");
	return LLVMBuildSelect(b, is_nan, key_const(w, greatest(w)), key, "");
}

static LLVMValueRef from_key(const network *w, LLVMValueRef key)
{
	lower *l = w->l;
	LLVMBuilderRef b = l->builder;
	LLVMValueRef v = w->descending ? LLVMBuildNot(b, key, "") : key;
	if (flips_top(w)) v = LLVMBuildXor(b, v, key_const(w, UINT64_C(1) << (key_bits(w) - 1)), "");
	if (scalar_is_float(w->elem)) {
		uint64_t nan = scalar_infinity(w->elem) | UINT64_C(1) << (scalar_table[w->elem].mantissa - 1);
		LLVMValueRef is_nan = LLVMBuildICmp(b, LLVMIntEQ, key, key_const(w, greatest(w)), "");
		v = LLVMBuildSelect(b, is_nan, key_const(w, nan), flip_negative(w, v), "");
	}
	unsigned width = w->elem == SCALAR_BOOL ? 1 : scalar_bits(w->elem);
	if (width < key_bits(w)) v = LLVMBuildTrunc(b, v, lower_word_type(l, width), "");
	return LLVMBuildBitCast(b, v, lower_type(l, ir_scalar_type(w->elem)), "");
}

/* ---- single steps ---- */

/* Frozen, which costs no instruction: LLVM's scalar evolution takes exponential time over nests of min and max. */
static LLVMValueRef extreme(const network *w, bool max, LLVMValueRef a, LLVMValueRef b)
{
	const char *name = arena_printf(w->l->arena, "llvm.%s.i%u", max ? "smax" : "smin", key_bits(w));
	LLVMValueRef v = lower_intrinsic(w->l, name, lower_type(w->l, w->key), 2, (LLVMValueRef[]){a, b});
	return LLVMBuildFreeze(w->l->builder, v, "");
}

/* Bit j (i32) of the index, which the thread's number says, as an i1. */
static LLVMValueRef index_bit(const network *w, LLVMValueRef j)
{
	LLVMValueRef v = LLVMBuildLShr(w->l->builder, w->index, j, "");
	return LLVMBuildTrunc(w->l->builder, v, w->l->i1, "");
}

static void invert(network *w, LLVMValueRef mask)
{
	for (uint32_t r = 0; mask && r < w->n; r++) w->v[r] = LLVMBuildXor(w->l->builder, w->v[r], mask, "");
}

/* Keys inverted where the runs of stage s shall descend; s > bits, or a bit of registers: nowhere. */
static void set_direction(network *w, unsigned s)
{
	assert(s <= w->bits);
	LLVMValueRef wanted = NULL, change = w->inverted;
	if (s >= w->registers && s < w->bits)
		wanted = LLVMBuildSExt(w->l->builder, index_bit(w, lower_i32(w->l, s)), lower_type(w->l, w->key), "");
	if (wanted) change = change ? LLVMBuildXor(w->l->builder, change, wanted, "") : wanted;
	invert(w, change);
	w->inverted = wanted;
}

/* The smaller key of two registers to the one without bit j, but the other way round where bit `turn` is set. */
static void register_step(network *w, unsigned j, uint32_t turn)
{
	assert(j < w->registers);
	uint32_t mask = UINT32_C(1) << j;
	for (uint32_t r = 0; r < w->n; r++) {
		if (r & mask) continue;
		LLVMValueRef a = w->v[r], b = w->v[r | mask];
		w->v[r] = extreme(w, r & turn, a, b);
		w->v[r | mask] = extreme(w, !(r & turn), a, b);
	}
}

/* Every thread with the one whose index differs in bit j (i32): the thread with the bit 0 keeps the smaller keys; with
 * `both`, both do. */
static void thread_step(network *w, LLVMValueRef j, bool in_lanes, bool both)
{
	lower *l = w->l;
	LLVMBuilderRef b = l->builder;
	LLVMValueRef from = LLVMBuildSub(b, j, lower_i32(l, w->registers), ""); /* warps' bits follow five of lanes */
	LLVMValueRef distance = LLVMBuildShl(b, lower_i32(l, 1), from, "");
	LLVMValueRef upper = index_bit(w, j), *other = ARENA_ARRAY(l->arena, LLVMValueRef, w->n);
	if (!in_lanes) lower_exchange(l, &w->x, w->key, w->n, w->v, distance, other);
	for (uint32_t r = 0; r < w->n; r++) {
		if (in_lanes) other[r] = lower_shuffle(l, "bfly", w->key, w->v[r], distance);
		if (both) {
			w->v[r] = extreme(w, false, w->v[r], other[r]);
			continue;
		}
		LLVMValueRef less = LLVMBuildICmp(b, LLVMIntSLT, w->v[r], other[r], "");
		LLVMValueRef keep = LLVMBuildXor(b, less, upper, "");
		w->v[r] = LLVMBuildSelect(b, keep, w->v[r], other[r], "");
	}
}

static bool in_lanes(const network *w, unsigned j)
{
	return j < w->registers + w->lanes;
}

/* Bits from `from` down to 0 of a merge.  `turn`: as in register_step. */
static void merge_down(network *w, unsigned from, uint32_t turn)
{
	assert(from < w->bits);
	for (unsigned j = from + 1; j-- > 0;)
		if (j < w->registers)
			register_step(w, j, turn);
		else
			thread_step(w, lower_i32(w->l, j), in_lanes(w, j), false);
}

/* ---- loops over stages and bits ---- */

typedef struct loop {
	lower_loop plain;
	LLVMValueRef i, *phi, buffer;
} loop;

/* for (i = start; i `predicate` limit; ..): the keys and the place of the next exchange are carried round. */
static loop open_loop(network *w, LLVMValueRef start, LLVMIntPredicate predicate, LLVMValueRef limit)
{
	lower *l = w->l;
	LLVMBuilderRef b = l->builder;
	loop p = {
		.plain = lower_open_loop(l, start, predicate, limit), .phi = ARENA_ARRAY(l->arena, LLVMValueRef, w->n)};
	p.i = p.plain.i;
	LLVMBasicBlockRef from = LLVMGetIncomingBlock(p.i, 0), body = LLVMGetInsertBlock(b);
	LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(p.i));
	p.buffer = LLVMBuildPhi(b, l->i32, "");
	LLVMAddIncoming(p.buffer, &w->x.buffer, &from, 1);
	w->x.buffer = p.buffer;
	for (uint32_t r = 0; r < w->n; r++) {
		p.phi[r] = LLVMBuildPhi(b, lower_type(l, w->key), "");
		LLVMAddIncoming(p.phi[r], &w->v[r], &from, 1);
		w->v[r] = p.phi[r];
	}
	LLVMPositionBuilderAtEnd(b, body);
	return p;
}

static void close_loop(network *w, const loop *p, int step)
{
	LLVMBasicBlockRef latch = LLVMGetInsertBlock(w->l->builder);
	LLVMAddIncoming(p->buffer, &w->x.buffer, &latch, 1);
	for (uint32_t r = 0; r < w->n; r++) {
		LLVMAddIncoming(p->phi[r], &w->v[r], &latch, 1);
		w->v[r] = p->phi[r];
	}
	w->x.buffer = p->buffer;
	lower_close_loop(w->l, &p->plain, step);
}

/* The stages from registers + 1 to lg_k, in which bit s of the index is the thread's.  The change of direction from
 * stage s - 1 to s is bit s - 1 ^ bit s: bits of registers and bits beyond the index read as 0. */
static void looping_stages(network *w)
{
	lower *l = w->l;
	LLVMBuilderRef b = l->builder;
	LLVMTypeRef type = lower_type(l, w->key);
	unsigned far = w->registers + w->lanes;
	loop stage = open_loop(w, lower_i32(l, w->registers + 1), LLVMIntULE, lower_i32(l, w->lg_k));
	LLVMValueRef top = LLVMBuildSub(b, stage.i, lower_i32(l, 1), "");
	LLVMValueRef change = LLVMBuildXor(b, index_bit(w, stage.i), index_bit(w, top), "");
	invert(w, LLVMBuildSExt(b, change, type, ""));
	LLVMValueRef near = top;
	if (w->lg_k > far) {
		loop warps = open_loop(w, top, LLVMIntSGE, lower_i32(l, far));
		thread_step(w, warps.i, false, false);
		close_loop(w, &warps, -1);
		near = lower_intrinsic(l, "llvm.umin.i32", l->i32, 2, (LLVMValueRef[]){top, lower_i32(l, far - 1)});
	}
	loop lanes = open_loop(w, near, LLVMIntSGE, lower_i32(l, w->registers));
	thread_step(w, lanes.i, true, false);
	close_loop(w, &lanes, -1);
	if (w->registers) merge_down(w, w->registers - 1, 0);
	close_loop(w, &stage, 1);
	w->inverted = w->lg_k < w->bits ? LLVMBuildSExt(b, index_bit(w, lower_i32(l, w->lg_k)), type, "") : NULL;
}

/* ---- the network ---- */

static bool is_long(const network *w)
{
	uint32_t code = 0;
	for (unsigned s = w->registers + 1; s <= w->lg_k; s++)
		code += (3 * (s - w->registers) + w->registers + 1) * w->n;
	return code > MAX_STRAIGHT;
}

static void sort_runs(network *w)
{
	assert(w->lg_k <= w->bits);
	bool loops = is_long(w);
	if (w->registers == 0) set_direction(w, 0);
	for (unsigned s = 1; s <= w->lg_k && (s <= w->registers || !loops); s++) {
		set_direction(w, s);
		merge_down(w, s - 1, s < w->registers ? UINT32_C(1) << s : 0);
	}
	if (loops) looping_stages(w);
}

/* In local memory, when that is the place for them. */
static bool sort_in_memory(network *w)
{
	uint32_t room = w->n * (key_bits(w) / 32);
	if (room <= MOST_KEYS || w->registers < SORT_CHUNK_BITS || w->lg_k < w->bits) return false;
	local_sort s = {w->key, w->bits, w->registers, w->lanes, w->index, w->v, w->n, &w->x};
	lower_sort_local(w->l, &s);
	return true;
}

/* Two runs of k, which differ in bit j of the index, become one.  Registers with that bit go; then register bit lg_k is
 * the next bit above. */
static void halve(network *w, unsigned j)
{
	assert(j < w->bits);
	bool in_registers = j < w->registers, turns = j + 1 < w->registers;
	set_direction(w, w->bits);
	if (in_registers) {
		uint32_t low = (UINT32_C(1) << w->lg_k) - 1;
		w->n /= 2;
		for (uint32_t r = 0; r < w->n; r++) {
			uint32_t from = (r & low) | (r & ~low) << 1;
			w->v[r] = extreme(w, false, w->v[from], w->v[from | (low + 1)]);
		}
	} else
		thread_step(w, lower_i32(w->l, j), in_lanes(w, j), true);
	set_direction(w, j + 1);
	if (w->lg_k) merge_down(w, w->lg_k - 1, turns ? UINT32_C(1) << w->lg_k : 0);
}

/* Reads off how the axis lies; false after a diagnostic if it does not lie as layout_lines() lays it. */
static bool find_bits(network *w, const layout *y, unsigned axis)
{
	assert(axis < y->rank);
	uint32_t shift = layout_shift(y, axis), in_warps = exchange_bits(y, axis, LAYOUT_WARP);
	uint32_t lanes = exchange_bits(y, axis, LAYOUT_LANE), registers = exchange_bits(y, axis, LAYOUT_REG);
	unsigned next = 0;
	bool good = !(registers & (registers + 1)) && !(lanes & (lanes + 1)) && !(in_warps & (in_warps + 1));
	for (unsigned in = LAYOUT_REG; in <= LAYOUT_WARP; in++)
		for (unsigned i = 0; i < y->nin[in]; i++)
			if (y->col[in][i] & layout_dim_bits(y, axis))
				good &= y->col[in][i] == UINT32_C(1) << (shift + next++);
	w->bits = y->lg[axis];
	w->registers = (unsigned)__builtin_popcount(registers);
	w->lanes = (unsigned)__builtin_popcount(lanes);
	if (in_warps && w->lanes < 5) good = false;
	if (!good || next != w->bits) lower_fail(w->l, w->op, "'%s' needs lines in order", ir_info(w->op)->name);
	return !w->l->failed;
}

void lower_sort(lower *l, ir_op *o)
{
	assert(o->kind == IR_SORT);
	unsigned axis = ir_get_axis(o);
	tile in = lower_arg(l, o, 0), out = lower_new_tile(l, ir_result(o));
	network w = {.l = l,
		.op = o,
		.elem = (scalar)ir_arg(o, 0)->type.elem,
		.descending = ir_get_descending(o),
		.n = in.n};
	const layout *y = ir_arg(o, 0)->layout;
	if (l->failed || !find_bits(&w, y, axis) || !lower_exchange_begin(l, o, &w.x)) return;
	tid_map coordinate = lower_tid_dimension(y, axis);
	w.index = lower_tid_map(l, &coordinate);
	w.key = ir_scalar_type(scalar_bytes(w.elem) == 8 ? SCALAR_I64 : SCALAR_I32);
	w.lg_k = w.bits;
	if (ir_get_k(o)) w.lg_k = (unsigned)__builtin_ctz(ir_get_k(o));
	w.v = ARENA_ARRAY(l->arena, LLVMValueRef, w.n);
	for (uint32_t r = 0; r < w.n; r++) w.v[r] = to_key(&w, in.at[r]);
	if (!sort_in_memory(&w)) sort_runs(&w);
	for (unsigned j = w.lg_k; j < w.bits; j++) halve(&w, j);
	set_direction(&w, w.bits);
	if (w.n != out.n) {
		lower_fail(l, o, "'%s' leaves %u registers of %u", ir_info(o)->name, w.n, out.n);
		return;
	}
	for (uint32_t r = 0; r < w.n; r++) out.at[r] = from_key(&w, w.v[r]);
	lower_set(l, ir_result(o), out);
}
