/* Scans along one axis: every element becomes the combination of all up to itself.
 *
 * In: k tiles of one layout, whatever it is.  Out: k tiles of the same layout.
 * The one idea: the plan of a custom reduction (async/scratch.h) takes the axis bits from the lowest to the highest,
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

#include "async/scratch.h"

#include <assert.h>
#include <string.h>

enum { MOST_WORDS = 128 }; /* of 32 bits, in registers */

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
	uint32_t rolled; /* bits of registers that a loop steps through: those without them are at hand */
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
	assert(r < s->n);
	for (uint32_t g = 0; g < s->n; g++) {
		LLVMValueRef old[REDUCE_MAX_OPERANDS], both[REDUCE_MAX_OPERANDS];
		if (g & (s->joined | s->rolled) || (g & ~s->done) != r) continue;
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
	assert(step->in == LAYOUT_REG && nbits);
	uint32_t mask = 0;
	bool reverse = ir_get_reverse(s->op);
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
	return LLVMBuildICmp(l->builder, ir_get_reverse(s->op) ? LLVMIntEQ : LLVMIntNE, own, lower_i32(l, 0), "");
}

static void lane_run(lower *l, scan *s, const reduce_step *step, unsigned nbits)
{
	assert(step->in == LAYOUT_LANE && nbits && nbits <= 5);
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
	assert(step->in == LAYOUT_WARP && step->nbits <= 5);
	LLVMValueRef v[REDUCE_MAX_OPERANDS][32], sum[REDUCE_MAX_OPERANDS], next[REDUCE_MAX_OPERANDS];
	LLVMValueRef before[REDUCE_MAX_OPERANDS], number = warp_number(l, step), has = NULL;
	unsigned n = 1u << step->nbits;
	for (unsigned i = 0; i < s->k; i++) lower_read_partials(l, s->op, step, i, r, v[i]);
	for (unsigned q = 0; q < n; q++) {
		unsigned warp = ir_get_reverse(s->op) ? n - 1 - q : q;
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

/* In a loop over pieces there are passes of other pieces. */
static bool has_registers(const scan *s, const reduce_step *step, uint32_t n)
{
	for (uint32_t r = 0; r < s->n; r++)
		if (!(r & s->done) && reduce_in_pass(step, n, r)) return true;
	return false;
}

static void warp_pass(lower *l, scan *s, const reduce_step *step, uint32_t n, bool again)
{
	if (again) lower_barrier(l);
	for (uint32_t r = 0; r < s->n; r++)
		for (unsigned i = 0; !(r & s->done) && reduce_in_pass(step, n, r) && i < s->k; i++)
			lower_write_partial(l, s->op, step, i, r, s->total[i][r]);
	lower_barrier(l);
	for (uint32_t r = 0; r < s->n; r++)
		if (!(r & s->done) && reduce_in_pass(step, n, r)) fold_warps(l, s, step, r);
}

static void warp_run(lower *l, scan *s, const reduce_step *step)
{
	assert(step->in == LAYOUT_WARP);
	if (s->op->shared_bytes < step->bytes) {
		lower_fail(l, s->op, "no shared memory was set aside for a scan");
		return;
	}
	for (uint32_t n = 0, made = 0; n < UINT32_C(1) << step->npasses; n++)
		if (has_registers(s, step, n)) warp_pass(l, s, step, n, made++ > 0);
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

/* The element of register r, with what stands before it. */
static void finish(lower *l, scan *s, uint32_t r, LLVMValueRef *own)
{
	assert(r < s->n);
	LLVMValueRef before[REDUCE_MAX_OPERANDS], both[REDUCE_MAX_OPERANDS], has = s->has_before[r & ~s->joined];
	get(s, s->element, r, own);
	if (!has) return;
	get(s, s->before, r & ~s->joined, before);
	lower_combine_elements(l, s->op, before, own, both);
	choose(l, s, has, both, own, own);
}

/* Steps from..to of the plan. */
static void steps(lower *l, scan *s, const reduce_plan *plan, uint32_t to, bool exchanged)
{
	assert(to <= plan->nsteps);
	for (uint32_t at = 0, end; at < to && !l->failed; at = end) {
		const reduce_step *step = &plan->step[at];
		for (end = at + 1; end < to && plan->step[end].in == step->in;) end++;
		if (step->in == LAYOUT_REG) register_run(l, s, step, end - at, at == 0);
		if (step->in == LAYOUT_LANE) lane_run(l, s, step, end - at);
		if (step->in != LAYOUT_WARP) continue;
		if (exchanged) lower_barrier(l);
		warp_run(l, s, step);
		exchanged = true;
	}
}

/* ---- more registers than a thread has ---- */

/* In an array of the thread the registers that differ in the last run's bits lie in pieces, in the scan's order; a loop
 * scans a piece, puts the total of those before in front of it, and adds its own. */
typedef struct pieces {
	uint32_t n, length; /* pieces, registers of each */
	uint32_t *place;    /* of a register in the array */
	LLVMValueRef array[REDUCE_MAX_OPERANDS], carry[REDUCE_MAX_OPERANDS];
} pieces;

/* The last run's first step, if it pays to roll it up; else all steps. */
static uint32_t rolled_from(const scan *s, const reduce_plan *plan)
{
	uint32_t from = plan->nsteps, room = 0;
	for (unsigned i = 0; i < s->k; i++) room += (scalar_bytes(ir_arg(s->op, i)->type.elem) + 3u) / 4 * s->n;
	while (from > 0 && plan->step[from - 1].in == LAYOUT_REG) from--;
	return room > MOST_WORDS && from > 0 ? from : plan->nsteps;
}

static void place_registers(lower *l, scan *s, const reduce_plan *plan, uint32_t from, pieces *p)
{
	assert(from <= plan->nsteps);
	unsigned nbits = plan->nsteps - from;
	uint8_t bit[LAYOUT_MAX_BITS];
	for (unsigned b = 0; b < nbits; b++) s->rolled |= UINT32_C(1) << (bit[b] = plan->step[from + b].bit[0]);
	p->n = UINT32_C(1) << nbits;
	p->length = s->n / p->n;
	p->place = ARENA_ARRAY(l->arena, uint32_t, s->n);
	for (uint32_t q = 0; q < p->n; q++)
		for (uint32_t r = 0, k = 0; r < s->n; r++)
			if (!(r & s->rolled))
				p->place[r | layout_spread(bit, nbits, ir_get_reverse(s->op) ? p->n - 1 - q : q)] =
					q * p->length + k++;
}

static LLVMValueRef element_at(lower *l, scan *s, const pieces *p, unsigned i, LLVMValueRef start, uint32_t r)
{
	assert(i < s->k && r < s->n);
	LLVMValueRef at = lower_i32(l, p->place[r]);
	if (start)
		at = LLVMBuildAdd(l->builder, LLVMBuildMul(l->builder, start, lower_i32(l, p->length), ""),
			lower_i32(l, p->place[r] % p->length), "");
	return LLVMBuildInBoundsGEP2(l->builder, LLVMTypeOf(s->element[i][r]), p->array[i], &at, 1, "");
}

/* Registers go to the array, or come from it; start: those of the piece of that number, null: all. */
static void move_pieces(lower *l, scan *s, const pieces *p, LLVMValueRef start, bool to_array, LLVMValueRef **values)
{
	for (unsigned i = 0; i < s->k; i++)
		for (uint32_t r = 0; r < s->n; r++) {
			if (start && r & s->rolled) continue;
			LLVMValueRef at = element_at(l, s, p, i, start, r);
			if (to_array)
				LLVMBuildStore(l->builder, values[i][r], at);
			else
				values[i][r] = LLVMBuildLoad2(l->builder, LLVMTypeOf(s->element[i][r]), at, "");
		}
}

static LLVMValueRef carried(lower *l, const scan *s, const pieces *p, unsigned i, uint32_t r)
{
	LLVMValueRef at = lower_i32(l, r);
	return LLVMBuildInBoundsGEP2(l->builder, LLVMTypeOf(s->element[i][r]), p->carry[i], &at, 1, "");
}

/* What earlier pieces come to stands before this one's live register r, and this one is added to it. */
static void carry_on(lower *l, scan *s, const pieces *p, uint32_t r, LLVMValueRef later)
{
	LLVMValueRef own[REDUCE_MAX_OPERANDS], before[REDUCE_MAX_OPERANDS], both[REDUCE_MAX_OPERANDS];
	for (unsigned i = 0; i < s->k; i++)
		before[i] = LLVMBuildLoad2(l->builder, LLVMTypeOf(s->element[i][r]), carried(l, s, p, i, r), "");
	get(s, s->total, r, own);
	put_before(l, s, r, later, before);
	lower_combine_elements(l, s->op, before, own, both);
	choose(l, s, later, both, own, own);
	for (unsigned i = 0; i < s->k; i++) LLVMBuildStore(l->builder, own[i], carried(l, s, p, i, r));
}

static void scan_pieces(lower *l, scan *s, const reduce_plan *plan, uint32_t from)
{
	assert(from < plan->nsteps);
	pieces p = {0};
	place_registers(l, s, plan, from, &p);
	for (unsigned i = 0; i < s->k; i++) {
		LLVMTypeRef type = LLVMTypeOf(s->element[i][0]);
		p.array[i] = lower_local(l, LLVMArrayType2(type, s->n));
		p.carry[i] = lower_local(l, LLVMArrayType2(type, s->n));
		for (uint32_t r = 0; r < s->n; r++)
			if (!(r & s->rolled)) LLVMBuildStore(l->builder, LLVMConstNull(type), carried(l, s, &p, i, r));
	}
	move_pieces(l, s, &p, NULL, true, s->element);
	lower_loop piece = lower_open_loop(l, lower_i32(l, 0), LLVMIntULT, lower_i32(l, p.n));
	LLVMValueRef later = LLVMBuildICmp(l->builder, LLVMIntNE, piece.i, lower_i32(l, 0), "");
	move_pieces(l, s, &p, piece.i, false, s->element);
	for (unsigned i = 0; i < s->k; i++) memcpy(s->total[i], s->element[i], s->n * sizeof s->total[i][0]);
	s->done = s->rolled;
	steps(l, s, plan, from, true);
	for (uint32_t r = 0; r < s->n && !l->failed; r++)
		if (!(r & s->done)) carry_on(l, s, &p, r, later);
	for (uint32_t r = 0; r < s->n && !l->failed; r++) {
		LLVMValueRef own[REDUCE_MAX_OPERANDS];
		if (r & s->rolled) continue;
		finish(l, s, r, own);
		put(s, s->total, r, own);
	}
	move_pieces(l, s, &p, piece.i, true, s->total);
	lower_close_loop(l, &piece, 1);
	move_pieces(l, s, &p, NULL, false, s->element);
	memset(s->has_before, 0, s->n * sizeof s->has_before[0]);
}

void lower_scan(lower *l, ir_op *o)
{
	assert(o->kind == IR_SCAN && o->nargs <= REDUCE_MAX_OPERANDS && o->nargs == o->nresults);
	scan s = {.op = o, .layout = ir_arg(o, 0)->layout, .k = o->nargs};
	tile out[REDUCE_MAX_OPERANDS];
	reduce_plan plan;
	if (o->nargs > REDUCE_MAX_OPERANDS || !s.layout) {
		lower_fail(l, o, "a scan of more than %d tiles has no lowering", REDUCE_MAX_OPERANDS);
		return;
	}
	begin(l, &s);
	reduce_plan_make(o, &plan);
	uint32_t from = rolled_from(&s, &plan);
	if (from < plan.nsteps)
		scan_pieces(l, &s, &plan, from);
	else
		steps(l, &s, &plan, plan.nsteps, false);
	if (l->failed) return;
	for (unsigned i = 0; i < s.k; i++) out[i] = lower_new_tile(l, o->results[i]);
	for (uint32_t r = 0; r < s.n; r++) {
		LLVMValueRef own[REDUCE_MAX_OPERANDS];
		finish(l, &s, r, own);
		for (unsigned i = 0; i < s.k; i++) out[i].at[r] = own[i];
	}
	for (unsigned i = 0; i < s.k; i++) lower_set(l, o->results[i], out[i]);
}
