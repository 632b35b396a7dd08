/* Scans along one axis: every element becomes the combination of all up to itself.
 *
 * In: k tiles of one layout, whatever it is.  Out: k tiles of the same layout.
 * The one idea: the plan of a custom reduction (passes/scratch.h) takes the axis bits from the lowest to the highest,
 * wherever they live; after each step a *total* covers an unbroken range of indices, and what a scan needs beside it is
 * what stands before that range within the range that the next step makes.  Steps of one kind in a row are a run:
 *
 *   registers, first   one after the other: element = element before, combined with it
 *   registers, later   the same over the totals of blocks
 *   lanes              butterfly of the totals; the later lane of a pair puts its partner's total in front
 *   warps              totals through shared memory; each warp folds those of the warps before it
 *
 * "What stands before" is kept once for the registers that the first run has joined (a *group*), and combined into its
 * elements at the very end.  A reverse scan is the same with every axis bit read upside down. */
#include "lower.h"

#include "../passes/scratch.h"

#include <string.h>

typedef struct scan {
	ir_op *op;
	const layout *layout;
	unsigned k;
	uint32_t n;                                 /* registers */
	LLVMValueRef *element[REDUCE_MAX_OPERANDS]; /* scanned within its group */
	LLVMValueRef *total[REDUCE_MAX_OPERANDS];   /* of live registers: those without a bit of `done` */
	LLVMValueRef *before[REDUCE_MAX_OPERANDS];  /* of groups: registers without a bit of `joined` */
	LLVMValueRef *has_before;                   /* of groups, i1: before[] holds something; null: it does not */
	uint32_t done, joined;
} scan;

static void get(const scan *s, LLVMValueRef *const *from, uint32_t r, LLVMValueRef *v)
{
	for (unsigned i = 0; i < s->k; i++) v[i] = from[i][r];
}

static void put(const scan *s, LLVMValueRef *const *to, uint32_t r, LLVMValueRef *v)
{
	for (unsigned i = 0; i < s->k; i++) to[i][r] = v[i];
}

/* out[] = c ? a[] : b[] */
static void choose(lower *l, const scan *s, LLVMValueRef c, LLVMValueRef *a, LLVMValueRef *b, LLVMValueRef *out)
{
	for (unsigned i = 0; i < s->k; i++) out[i] = LLVMBuildSelect(l->builder, c, a[i], b[i], "");
}

static LLVMValueRef truth(lower *l)
{
	return LLVMConstInt(l->i1, 1, false);
}

/* Where `has` holds, v[] stands in front of the total of live register r: put it in front of what each group of that
 * register has. */
static void put_before(lower *l, scan *s, uint32_t r, LLVMValueRef has, LLVMValueRef *v)
{
	for (uint32_t g = 0; g < s->n; g++) {
		LLVMValueRef old[REDUCE_MAX_OPERANDS], both[REDUCE_MAX_OPERANDS];
		if (g & s->joined || (g & ~s->done) != r) continue;
		if (!s->has_before[g]) {
			put(s, s->before, g, v);
			s->has_before[g] = has;
			continue;
		}
		get(s, s->before, g, old);
		lower_combine_elements(l, s->op, v, old, both);
		choose(l, s, s->has_before[g], both, v, both);
		choose(l, s, has, both, old, both);
		put(s, s->before, g, both);
		s->has_before[g] = LLVMBuildOr(l->builder, s->has_before[g], has, "");
	}
}

/* A run of register bits.  Their order along the axis is that of the bits' coordinates: bit[] rises in it. */
static void register_run(lower *l, scan *s, const reduce_step *step, unsigned nbits, bool first)
{
	uint32_t mask = 0;
	bool reverse = s->op->attr[2] != 0;
	uint8_t bit[LAYOUT_MAX_BITS];
	for (unsigned b = 0; b < nbits; b++) mask |= UINT32_C(1) << (bit[b] = step[b].bit[0]);
	for (uint32_t r = 0; r < s->n; r++) {
		if (r & (mask | s->done)) continue;
		LLVMValueRef sum[REDUCE_MAX_OPERANDS], own[REDUCE_MAX_OPERANDS];
		for (uint32_t q = 0; q < 1u << nbits; q++) {
			uint32_t at = r | layout_spread(bit, nbits, reverse ? (1u << nbits) - 1 - q : q);
			get(s, s->total, at, q ? own : sum);
			if (q && !first) put_before(l, s, at, truth(l), sum);
			if (q) lower_combine_elements(l, s->op, sum, own, sum);
			if (first) put(s, s->element, at, sum);
		}
		put(s, s->total, r, sum);
	}
	if (first) s->joined = mask;
	s->done |= mask;
}

/* True in threads whose bit of tid says that they are the later of two partners. */
static LLVMValueRef is_later(lower *l, const scan *s, unsigned tid_bit)
{
	LLVMValueRef own = LLVMBuildAnd(l->builder, l->tid, lower_i32(l, INT64_C(1) << tid_bit), "");
	return LLVMBuildICmp(l->builder, s->op->attr[2] ? LLVMIntEQ : LLVMIntNE, own, lower_i32(l, 0), "");
}

static void lane_run(lower *l, scan *s, const reduce_step *step, unsigned nbits)
{
	for (uint32_t r = 0; r < s->n; r++) {
		if (r & s->done) continue;
		LLVMValueRef own[REDUCE_MAX_OPERANDS], other[REDUCE_MAX_OPERANDS], before[REDUCE_MAX_OPERANDS];
		LLVMValueRef left[REDUCE_MAX_OPERANDS], right[REDUCE_MAX_OPERANDS], has = NULL;
		get(s, s->total, r, own);
		for (unsigned b = 0; b < nbits; b++) {
			LLVMValueRef later = is_later(l, s, step[b].bit[0]);
			LLVMValueRef partner = lower_i32(l, INT64_C(1) << step[b].bit[0]);
			for (unsigned i = 0; i < s->k; i++)
				other[i] =
					lower_shuffle(l, "bfly", ir_element(ir_arg(s->op, i)->type), own[i], partner);
			if (!has) {
				choose(l, s, truth(l), other, other, before);
				has = later;
			} else {
				lower_combine_elements(l, s->op, other, before, right);
				choose(l, s, has, right, other, right);
				choose(l, s, later, right, before, before);
				has = LLVMBuildOr(l->builder, has, later, "");
			}
			choose(l, s, later, other, own, left);
			choose(l, s, later, own, other, right);
			lower_combine_elements(l, s->op, left, right, own);
		}
		put_before(l, s, r, has, before);
		put(s, s->total, r, own);
	}
}

/* ---- between warps ---- */

/* The number that the step's bits of this thread's warp spell. */
static LLVMValueRef warp_number(lower *l, const reduce_step *step)
{
	tid_map m = {0};
	for (unsigned b = 0; b < step->nbits; b++) m.col[5 + step->bit[b]] = UINT32_C(1) << b;
	return lower_tid_map(l, &m);
}

static void fold_warps(lower *l, scan *s, const reduce_step *step, uint32_t r)
{
	LLVMValueRef v[REDUCE_MAX_OPERANDS][32], sum[REDUCE_MAX_OPERANDS], next[REDUCE_MAX_OPERANDS];
	LLVMValueRef before[REDUCE_MAX_OPERANDS], number = warp_number(l, step), has = NULL;
	unsigned n = 1u << step->nbits;
	for (unsigned i = 0; i < s->k; i++) lower_read_partials(l, s->op, step, i, r, v[i]);
	for (unsigned q = 0; q < n; q++) {
		unsigned warp = s->op->attr[2] ? n - 1 - q : q;
		for (unsigned i = 0; i < s->k; i++) (q ? next : sum)[i] = v[i][warp];
		if (q == 0) {
			has = LLVMBuildICmp(l->builder, LLVMIntNE, number, lower_i32(l, warp), "");
			continue;
		}
		LLVMValueRef here = LLVMBuildICmp(l->builder, LLVMIntEQ, number, lower_i32(l, warp), "");
		choose(l, s, here, sum, q > 1 ? before : sum, before);
		lower_combine_elements(l, s->op, sum, next, sum);
	}
	put_before(l, s, r, has, before);
	put(s, s->total, r, sum);
}

static void warp_run(lower *l, scan *s, const reduce_step *step)
{
	if (s->op->shared_bytes < step->bytes) {
		lower_fail(l, s->op, "no shared memory was set aside for a scan");
		return;
	}
	for (uint32_t r = 0; r < s->n; r++)
		for (unsigned i = 0; !(r & s->done) && i < s->k; i++)
			lower_write_partial(l, s->op, step, i, r, s->total[i][r]);
	lower_barrier(l);
	for (uint32_t r = 0; r < s->n; r++)
		if (!(r & s->done)) fold_warps(l, s, step, r);
}

/* ---- the whole ---- */

static void begin(lower *l, scan *s)
{
	s->n = layout_registers(s->layout);
	s->has_before = ARENA_ARRAY(l->arena, LLVMValueRef, s->n);
	for (unsigned i = 0; i < s->k; i++) {
		tile in = lower_arg(l, s->op, i);
		LLVMValueRef **copies[] = {&s->element[i], &s->total[i], &s->before[i]};
		for (unsigned c = 0; c < 3; c++) {
			*copies[c] = ARENA_ARRAY(l->arena, LLVMValueRef, s->n);
			memcpy(*copies[c], in.at, s->n * sizeof in.at[0]);
		}
	}
}

static void finish(lower *l, scan *s)
{
	tile out[REDUCE_MAX_OPERANDS];
	for (unsigned i = 0; i < s->k; i++) out[i] = lower_new_tile(l, s->op->results[i]);
	for (uint32_t r = 0; r < s->n; r++) {
		LLVMValueRef own[REDUCE_MAX_OPERANDS], before[REDUCE_MAX_OPERANDS], both[REDUCE_MAX_OPERANDS];
		LLVMValueRef has = s->has_before[r & ~s->joined];
		get(s, s->element, r, own);
		if (has) {
			get(s, s->before, r & ~s->joined, before);
			lower_combine_elements(l, s->op, before, own, both);
			choose(l, s, has, both, own, own);
		}
		for (unsigned i = 0; i < s->k; i++) out[i].at[r] = own[i];
	}
	for (unsigned i = 0; i < s->k; i++) lower_set(l, s->op->results[i], out[i]);
}

void lower_scan(lower *l, ir_op *o)
{
	scan s = {.op = o, .layout = ir_arg(o, 0)->layout, .k = o->nargs};
	reduce_plan plan;
	if (o->nargs > REDUCE_MAX_OPERANDS || !s.layout) {
		lower_fail(l, o, "a scan of more than %d tiles has no lowering", REDUCE_MAX_OPERANDS);
		return;
	}
	begin(l, &s);
	reduce_plan_make(o, &plan);
	bool exchanged = false;
	for (uint32_t at = 0, end; at < plan.nsteps && !l->failed; at = end) {
		const reduce_step *step = &plan.step[at];
		for (end = at + 1; end < plan.nsteps && plan.step[end].in == step->in;) end++;
		if (step->in == LAYOUT_REG) register_run(l, &s, step, end - at, at == 0);
		if (step->in == LAYOUT_LANE) lane_run(l, &s, step, end - at);
		if (step->in != LAYOUT_WARP) continue;
		if (exchanged) lower_barrier(l);
		warp_run(l, &s, step);
		exchanged = true;
	}
	if (!l->failed) finish(l, &s);
}
