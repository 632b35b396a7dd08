/* Sorting more keys a thread than it has registers: the network of sort.c in rolled loops over local memory.
 *
 * In: the keys of all registers, each line's low index bits in registers.  Out: the same, each line ascending.
 * The one idea: straight code for hundreds of registers is spilled anyway, and takes the assembler minutes; so the keys
 * lie in an array of the thread, a stage is a loop, and what it does at one index bit is a loop over pieces of the
 * array: chunks of 32 neighbours, which the lowest bits order in registers, or pieces that meet another place of the
 * array, another lane or another warp.
 *
 * Where a run shall descend, keys are inverted when they are loaded and once more when they are stored. */
#include "sort_local.h"

#include <assert.h>

enum { CHUNK_BITS = SORT_CHUNK_BITS, CHUNK = 1 << CHUNK_BITS, PIECE = 16 };
enum { MOST = 64 };   /* registers that an exchange between warps has room for: see exchange_plan_make() */
enum { ALIGNED = 4 }; /* that many keys and more lie on 16 bytes */

typedef struct places {
	lower *l;
	const local_sort *s;
	LLVMTypeRef type;
	LLVMValueRef array, exchange_buffer; /* in local memory */
	LLVMValueRef v[MOST], other[MOST];
} places;

/* ---- memory ---- */

static LLVMValueRef place(places *p, LLVMValueRef base, uint32_t k)
{
	LLVMValueRef at = k ? LLVMBuildAdd(p->l->builder, base, lower_i32(p->l, k), "") : base;
	return LLVMBuildInBoundsGEP2(p->l->builder, p->type, p->array, &at, 1, "");
}

/* n keys from `base` on, a multiple of n, inverted where the mask (null: nowhere) is set. */
static void load(places *p, LLVMValueRef base, uint32_t n, LLVMValueRef mask, LLVMValueRef *v)
{
	LLVMBuilderRef b = p->l->builder;
	for (uint32_t k = 0; k < n; k++) {
		v[k] = LLVMBuildLoad2(b, p->type, place(p, base, k), "");
		if (n % ALIGNED == 0 && k % ALIGNED == 0) LLVMSetAlignment(v[k], 16);
	}
	for (uint32_t k = 0; mask && k < n; k++) v[k] = LLVMBuildXor(b, v[k], mask, "");
}

static void store(places *p, LLVMValueRef base, uint32_t n, LLVMValueRef mask, LLVMValueRef *v)
{
	LLVMBuilderRef b = p->l->builder;
	for (uint32_t k = 0; k < n; k++) {
		LLVMValueRef key = mask ? LLVMBuildXor(b, v[k], mask, "") : v[k];
		LLVMValueRef done = LLVMBuildStore(b, key, place(p, base, k));
		if (n % ALIGNED == 0 && k % ALIGNED == 0) LLVMSetAlignment(done, 16);
	}
}

/* ---- the network ---- */

/* Bit j (i32) of the index of the key at `base` in this thread's array, as an i1. */
static LLVMValueRef index_bit(places *p, LLVMValueRef base, LLVMValueRef j)
{
	LLVMBuilderRef b = p->l->builder;
	LLVMValueRef own = LLVMBuildAnd(b, base, lower_i32(p->l, (INT64_C(1) << p->s->registers) - 1), "");
	LLVMValueRef index = LLVMBuildOr(b, p->s->index, own, "");
	return LLVMBuildTrunc(b, LLVMBuildLShr(b, index, j, ""), p->l->i1, "");
}

/* Runs of 2^stage keys descend where bit `stage` of the index is set; beyond the index it is 0. */
static LLVMValueRef descends(places *p, LLVMValueRef base, LLVMValueRef stage)
{
	return LLVMBuildSExt(p->l->builder, index_bit(p, base, stage), p->type, "");
}

/* The smaller key to a, the greater to b. */
static void order(places *p, LLVMValueRef *a, LLVMValueRef *b, bool descends)
{
	LLVMValueRef both[] = {*a, *b};
	const char *low = p->s->key.elem == SCALAR_I32 ? "llvm.smin.i32" : "llvm.smin.i64";
	const char *high = p->s->key.elem == SCALAR_I32 ? "llvm.smax.i32" : "llvm.smax.i64";
	*a = lower_intrinsic(p->l, descends ? high : low, p->type, 2, both);
	*b = lower_intrinsic(p->l, descends ? low : high, p->type, 2, both);
	*a = LLVMBuildFreeze(p->l->builder, *a, ""); /* as in sort.c */
	*b = LLVMBuildFreeze(p->l->builder, *b, "");
}

static void merge_chunk(places *p, unsigned from, uint32_t turn)
{
	for (unsigned j = from + 1; j-- > 0;)
		for (uint32_t r = 0; r < CHUNK; r++)
			if (!(r >> j & 1)) order(p, &p->v[r], &p->v[r | 1u << j], r & turn);
}

/* Every chunk: sorted from scratch, or merged by its lowest bits. */
static void chunks(places *p, LLVMValueRef stage, bool from_scratch)
{
	lower *l = p->l;
	lower_loop each = lower_open_loop(l, lower_i32(l, 0), LLVMIntULT, lower_i32(l, p->s->n));
	LLVMValueRef mask = descends(p, each.i, stage);
	load(p, each.i, CHUNK, mask, p->v);
	for (unsigned s = from_scratch ? 1 : CHUNK_BITS; s <= CHUNK_BITS; s++)
		merge_chunk(p, s - 1, s < CHUNK_BITS ? 1u << s : 0);
	store(p, each.i, CHUNK, mask, p->v);
	lower_close_loop(l, &each, CHUNK);
}

/* Pieces that differ in bit j of the index, which is the array's: the first of them lies where bit j is 0. */
static void meet_in_array(places *p, LLVMValueRef stage, LLVMValueRef j)
{
	lower *l = p->l;
	LLVMBuilderRef b = l->builder;
	LLVMValueRef distance = LLVMBuildShl(b, lower_i32(l, 1), j, "");
	LLVMValueRef below = LLVMBuildSub(b, distance, lower_i32(l, 1), "");
	lower_loop each = lower_open_loop(l, lower_i32(l, 0), LLVMIntULT, lower_i32(l, p->s->n / 2));
	LLVMValueRef above = LLVMBuildAnd(b, each.i, LLVMBuildNot(b, below, ""), "");
	LLVMValueRef first = LLVMBuildAdd(b, each.i, above, ""); /* i with a 0 put in at bit j */
	LLVMValueRef second = LLVMBuildAdd(b, first, distance, ""), mask = descends(p, first, stage);
	load(p, first, PIECE, mask, p->v);
	load(p, second, PIECE, mask, p->other);
	for (uint32_t k = 0; k < PIECE; k++) order(p, &p->v[k], &p->other[k], false);
	store(p, first, PIECE, mask, p->v);
	store(p, second, PIECE, mask, p->other);
	lower_close_loop(l, &each, PIECE);
}

/* The thread with the bit 0 keeps the smaller keys, but the other way round in runs that descend. */
static void meet_thread(places *p, LLVMValueRef stage, LLVMValueRef j, bool in_lanes)
{
	lower *l = p->l;
	LLVMBuilderRef b = l->builder;
	const local_sort *s = p->s;
	uint32_t most = s->x->registers < MOST ? s->x->registers : MOST, piece = in_lanes ? PIECE : most;
	LLVMValueRef from = LLVMBuildSub(b, j, lower_i32(l, s->registers), ""); /* as in sort.c */
	LLVMValueRef distance = LLVMBuildShl(b, lower_i32(l, 1), from, "");
	LLVMValueRef zero = lower_i32(l, 0);
	LLVMValueRef greater = LLVMBuildXor(b, index_bit(p, zero, j), index_bit(p, zero, stage), "");
	lower_loop each = lower_open_loop(l, zero, LLVMIntULT, lower_i32(l, s->n));
	load(p, each.i, piece, NULL, p->v);
	if (!in_lanes) {
		s->x->buffer = LLVMBuildLoad2(b, l->i32, p->exchange_buffer, "");
		lower_exchange(l, s->x, s->key, piece, p->v, distance, p->other);
		LLVMBuildStore(b, s->x->buffer, p->exchange_buffer);
	}
	for (uint32_t k = 0; k < piece; k++) {
		if (in_lanes) p->other[k] = lower_shuffle(l, "bfly", s->key, p->v[k], distance);
		LLVMValueRef less = LLVMBuildICmp(b, LLVMIntSLT, p->v[k], p->other[k], "");
		LLVMValueRef keep = LLVMBuildXor(b, less, greater, "");
		p->v[k] = LLVMBuildSelect(b, keep, p->v[k], p->other[k], "");
	}
	store(p, each.i, piece, NULL, p->v);
	lower_close_loop(l, &each, (int)piece);
}

static LLVMValueRef at_most(lower *l, LLVMValueRef i, unsigned limit)
{
	return lower_intrinsic(l, "llvm.umin.i32", l->i32, 2, (LLVMValueRef[]){i, lower_i32(l, limit)});
}

static void stages(places *p)
{
	lower *l = p->l;
	const local_sort *s = p->s;
	unsigned far = s->registers + s->lanes;
	lower_loop stage = lower_open_loop(l, lower_i32(l, CHUNK_BITS + 1), LLVMIntULE, lower_i32(l, s->bits));
	LLVMValueRef top = LLVMBuildSub(l->builder, stage.i, lower_i32(l, 1), "");
	if (s->bits > far) {
		lower_loop warps = lower_open_loop(l, top, LLVMIntSGE, lower_i32(l, far));
		meet_thread(p, stage.i, warps.i, false);
		lower_close_loop(l, &warps, -1);
	}
	if (s->lanes) {
		lower_loop lanes = lower_open_loop(l, at_most(l, top, far - 1), LLVMIntSGE, lower_i32(l, s->registers));
		meet_thread(p, stage.i, lanes.i, true);
		lower_close_loop(l, &lanes, -1);
	}
	if (s->registers > CHUNK_BITS) {
		lower_loop array =
			lower_open_loop(l, at_most(l, top, s->registers - 1), LLVMIntSGE, lower_i32(l, CHUNK_BITS));
		meet_in_array(p, stage.i, array.i);
		lower_close_loop(l, &array, -1);
	}
	chunks(p, stage.i, false);
	lower_close_loop(l, &stage, 1);
}

void lower_sort_local(lower *l, const local_sort *s)
{
	assert(s->n % (UINT32_C(1) << s->registers) == 0); /* whole lines, of which a thread may hold several */
	places p = {.l = l, .s = s, .type = lower_type(l, s->key)};
	p.array = lower_local(l, LLVMArrayType2(p.type, s->n));
	p.exchange_buffer = lower_local(l, l->i32);
	LLVMBuildStore(l->builder, s->x->buffer, p.exchange_buffer);
	store(&p, lower_i32(l, 0), s->n, NULL, s->v);
	chunks(&p, lower_i32(l, CHUNK_BITS), true);
	stages(&p);
	load(&p, lower_i32(l, 0), s->n, NULL, s->v);
}
