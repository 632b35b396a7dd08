/* An online maximum that has not moved costs no exchange between lanes, and scales nothing.
 *
 * In: a scheduled function, in whose loops sums go on relative to a maximum of rows, as in online softmax.  Out: what
 * follows from a new maximum, under branches of the warp:
 *     %r = reduce %s {max}                           %q = reduce %s {max by_thread=1}
 *     %next = .. of %r, %m                           %any = warp_any ..  what would make of %q another %next than %m
 *     %a = exp2 %m - %next                    ->     %next, %a = if %any {
 *     ..                                               %r = reduce ..  %next = ..  %a = ..
 *     %x = wgmma_wait %w                               yield %next, %a } else { yield %m, 1 }
 *     %y = mul %x, %a                                ..
 *                                                    %x = wgmma_wait %w
 *                                                    %y = if %any { yield mul %x, %a } else { yield %x }
 * The one idea: a maximum is one of the elements.  A row's next value is another one only if the thread that holds that
 * element finds so by itself, whatever is computed of it; so lanes need to meet only where one of the warp does
 * (vote).  In all other iterations the factor is exp2(0), which is 1 if the row's value is finite, and times 1 is what
 * it was: the bits are the same, but where a product with the factor would have been contracted with an addition.
 * What is there already is scaled in the first branch.  A sum that a product still adds to is scaled in a second one,
 * behind its wait: the four warps of a warpgroup wait together, so a wait may not stand under the vote of one.
 *
 * FlashAttention-4 calls it conditional rescaling, and has the exchange in front of its vote. */
#include "passes/passes.h"

#include "async/scratch.h"
#include "mma_overlap.h"

#define WHERE_MOVED "lanes exchange it, and sums are scaled, only where it has moved in a row of the warp"
#define ALWAYS "sums are scaled in every iteration: "
#define IN_WARPS ALWAYS "several warps hold parts of a row"
#define IN_THREADS ALWAYS "a thread holds all of a row"
#define SEEN ALWAYS "more than the row's next value is made of it"
#define ELSEWHERE ALWAYS "the wait for the sum does not follow it alone"
#define IN_REGISTERS ALWAYS "operands of mma.sync are in registers, which are short"
#define SEVERAL ALWAYS "several products add to such sums meanwhile"
#define RUNNING ALWAYS "another product runs on behind the wait for the sum"
#define SMALL ALWAYS "a thread holds too few registers of the sum to vote on"
#define ANOTHER ALWAYS "another maximum of the loop has the branch"
static const char no_product[] = ALWAYS "no product adds to the sum meanwhile";

typedef VEC(ir_op *) op_list;

/* A product with a factor that is 1 where the row's value stays. */
typedef struct scaled {
	ir_op *product;
	unsigned factor; /* which operand */
	ir_op *wait;     /* of the other one, a sum that is waited for behind `next`; or null */
} scaled;

typedef struct rescale {
	pass_context *pass;
	ir_func *func;
	op_list chain;  /* from the reduction to what makes `next`, which only they and it see */
	ir_value *kept; /* the row's value so far */
	ir_op *next;    /* makes the new one; its operand or arm `kept` is what mostly stays */
	VEC(scaled) scaled;
	ir_op *branch;
	ir_value **made; /* by id: what stands for a value in the branch */
} rescale;

static bool is_one_of(const op_list *l, const ir_op *o)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->at[i] == o) return true;
	return false;
}

/* ---- what the next value is made of ---- */

/* What it makes is one of its operands. */
static bool is_extremum(ir_kind k)
{
	return k == IR_MAX || k == IR_MAX_NAN || k == IR_MIN || k == IR_MIN_NAN;
}

/* Which operand is what it mostly stays; 0 and more, or -1. */
static int kept_operand(const op_list *chain, const ir_op *o)
{
	bool select = o->kind == IR_SELECT;
	if (!select && !is_extremum(o->kind)) return -1;
	for (unsigned i = select; i < o->nargs; i++) {
		ir_value *v = ir_arg(o, i);
		if (!v->def || !is_one_of(chain, v->def)) return (int)i;
	}
	return -1;
}

static bool takes_one_of(const op_list *l, const ir_op *o)
{
	for (unsigned i = 0; i < o->nargs; i++)
		if (ir_arg(o, i)->def && is_one_of(l, ir_arg(o, i)->def)) return true;
	return false;
}

/* Only the chain and `next` see what the chain makes. */
static bool is_closed(const op_list *chain, const ir_op *next)
{
	for (uint32_t i = 0; i < chain->n; i++)
		for (const ir_use *u = chain->at[i]->results[0]->uses; u; u = u->next)
			if (u->user != next && !is_one_of(chain, u->user)) return false;
	return true;
}

/* Null: lanes that hold parts of a row are of one warp, and there are some. */
static const char *why_no_lanes(const ir_op *reduce)
{
	reduce_plan p;
	reduce_plan_make(reduce, &p);
	bool some = false;
	for (uint32_t i = 0; i < p.nsteps; i++) {
		if (p.step[i].in == LAYOUT_WARP) return IN_WARPS;
		some |= p.step[i].in == LAYOUT_LANE;
	}
	return some ? NULL : IN_THREADS;
}

static bool reduces_to_extremum(const ir_op *o)
{
	if (o->kind != IR_REDUCE || o->nargs != 1 || o->results[0]->type.elem != SCALAR_F32) return false;
	ir_combine how = ir_get_combine(o);
	if (how == IR_CUSTOM || ir_is_scalar(o->results[0]) || !o->results[0]->layout) return false;
	return is_extremum(ir_combines_by(how));
}

/* The last operation that only the reduction and what is made of it leads to. */
static bool find_next(rescale *c, ir_op *reduce)
{
	arena *a = c->pass->arena;
	op_list all = {0};
	c->next = NULL;
	vec_push(a, &all, reduce);
	for (ir_op *o = reduce->next; o; o = o->next) {
		if (!ir_has(o, IR_ELEMENTWISE) || !takes_one_of(&all, o)) continue;
		int kept = kept_operand(&all, o);
		if (kept >= 0 && is_closed(&all, o)) {
			c->chain = (op_list){0};
			for (uint32_t i = 0; i < all.n; i++) vec_push(a, &c->chain, all.at[i]);
			c->next = o;
			c->kept = ir_arg(o, (unsigned)kept);
		}
		vec_push(a, &all, o);
	}
	return c->next && c->next->results[0]->type.elem == SCALAR_F32;
}

/* ---- what is scaled ---- */

typedef enum known { UNKNOWN, ZERO, ONE } known;

static bool is_finite_constant(const ir_value *v)
{
	uint64_t bits;
	while (v->def && v->def->kind == IR_SPLAT) v = ir_arg(v->def, 0);
	if (!ir_is_const(v, &bits) || v->type.elem != SCALAR_F32) return false;
	return (bits & 0x7f800000u) != 0x7f800000u;
}

/* What the operation makes of v, of which so much is known where the row's value stays. */
static known follow(const rescale *c, const ir_op *o, const ir_value *v, known of)
{
	if (of == UNKNOWN) { /* v is the next value */
		bool pair = o->kind == IR_SUB && (ir_arg(o, 0) == c->kept || ir_arg(o, 1) == c->kept);
		return pair ? ZERO : UNKNOWN;
	}
	if (ir_has(o, IR_SHAPE) || o->kind == IR_CONVERT_LAYOUT)
		return scratch_bytes(c->func, o) ? UNKNOWN : of; /* not where other warps may be elsewhere */
	if (of == ONE) return UNKNOWN;
	if (o->kind == IR_MUL) return is_finite_constant(ir_arg(o, ir_arg(o, 0) == v)) ? ZERO : UNKNOWN;
	return o->kind == IR_NEG ? ZERO : o->kind == IR_EXP2 ? ONE : UNKNOWN;
}

/* A product whose sum is still being added to, and the only wait for it. */
static ir_op *wait_of(const ir_value *v)
{
	ir_op *wait = v->def;
	bool alone = wait && wait->kind == IR_WGMMA_WAIT && wait->nargs == 1 && ir_only_user(v);
	return alone ? wait : NULL;
}

/* No product is begun between the two: as many are younger at the one as at the other. */
static bool begins_none_between(const ir_op *from, const ir_op *to)
{
	for (const ir_op *o = from; o && o != to; o = o->next)
		if (o->kind == IR_WGMMA || o->nregions) return false;
	return true;
}

/* What is scaled is there in front of `next`, or is a sum that is waited for behind it: *wait. */
static bool is_there(const rescale *c, const ir_value *v, ir_op **wait)
{
	const ir_op *made = v->def;
	*wait = NULL;
	if (!made || made->block != c->next->block) return true;
	if (ir_precedes(made, c->next)) return true;
	*wait = wait_of(v);
	const ir_op *product = *wait ? ir_arg(*wait, 0)->def : NULL;
	return product && product->kind == IR_WGMMA && product->block == made->block &&
	       ir_only_user(ir_arg(*wait, 0)) && ir_precedes(product, c->next) && begins_none_between(c->next, *wait);
}

static void find_scaled(rescale *c, ir_value *v, known of)
{
	for (ir_use *u = v->uses; u; u = u->next) {
		ir_op *o = u->user, *wait;
		if (o->block != c->next->block) continue;
		if (of == ONE && o->kind == IR_MUL && o->results[0]->type.elem == SCALAR_F32) {
			unsigned factor = ir_arg(o, 0) != v;
			bool twice = ir_arg(o, 0) == ir_arg(o, 1);
			if (!twice && is_there(c, ir_arg(o, !factor), &wait))
				vec_push(c->pass->arena, &c->scaled, ((scaled){o, factor, wait}));
			continue;
		}
		known k = follow(c, o, v, of);
		if (k != UNKNOWN) find_scaled(c, o->results[0], k);
	}
}

/* One product, the newest one, is waited for: nothing runs while its sum is scaled, or ptxas would wait for every
 * product of the function (C7514).  mma.sync has its operands in registers too, and where they are
 * short the branch is one value too many. */
static const char *why_not_worth(const rescale *c)
{
	uint32_t n = 0, rows = layout_registers(c->kept->layout);
	for (uint32_t i = 0; i < c->scaled.n; i++) {
		const scaled *s = &c->scaled.at[i];
		if (!s->wait) continue;
		if (n || ir_get_pending(s->wait)) return n ? SEVERAL : RUNNING;
		n = layout_registers(s->product->results[0]->layout);
	}
	if (!c->scaled.n) return ELSEWHERE;
	if (!n) return no_product;
	return n >= RESCALE_LEAST_REGISTERS && rows * RESCALE_LEAST_SHARE <= n ? NULL : SMALL;
}

/* Null: it can be exchanged under a branch, and that pays. */
static const char *refusal(rescale *c, ir_op *reduce)
{
	const char *why = why_no_lanes(reduce);
	c->scaled.n = 0;
	if (why) return why;
	if (!find_next(c, reduce)) return SEEN;
	find_scaled(c, c->next->results[0], UNKNOWN);
	return why_not_worth(c);
}

/* ---- where nothing is done ---- */

/* A product adds to what it scales, or has made that: 1 wgmma, 2 mma.sync. */
static unsigned scales_sum_of(const ir_op *mul)
{
	if (mul->kind != IR_MUL || mul->results[0]->type.rank < 2) return 0;
	for (unsigned i = 0; i < 2; i++) {
		const ir_op *made = ir_arg(mul, i)->def;
		if (made && made->kind == IR_WGMMA_WAIT) return 1;
		if (made && made->kind == IR_DOT) return 2;
	}
	for (const ir_use *u = mul->results[0]->uses; u; u = u->next) {
		const ir_op *o = u->user;
		bool sum = o->nargs > 2 && ir_arg(o, o->nargs - 1u) == mul->results[0];
		if (sum && o->kind == IR_WGMMA) return 1;
		if (sum && o->kind == IR_DOT) return 2;
	}
	return 0;
}

static bool is_factor(const ir_op *o)
{
	enum { FEW_REGISTERS = 4 };
	const layout *l = o->results[0]->layout;
	return o->kind == IR_EXP2 && l && layout_registers(l) <= FEW_REGISTERS;
}

/* Whether an exponential of the value, a factor a row, scales a product's sum, and of which instruction. */
static unsigned scales_a_sum(const ir_value *v, bool exponential, unsigned steps)
{
	for (const ir_use *u = v->uses; u && steps; u = u->next) {
		const ir_op *o = u->user;
		unsigned found = exponential ? scales_sum_of(o) : 0;
		bool follows = ir_has(o, IR_ELEMENTWISE | IR_SHAPE) || o->kind == IR_CONVERT_LAYOUT;
		if (!found && follows && o->block == v->def->block)
			found = scales_a_sum(o->results[0], exponential || is_factor(o), steps - 1);
		if (found) return found;
	}
	return 0;
}

static void remark(rescale *c, const ir_op *reduce, const char *why)
{
	enum { MOST_STEPS = 10 };
	unsigned sum = scales_a_sum(reduce->results[0], false, MOST_STEPS);
	if (sum == 2 && why == no_product) why = IN_REGISTERS;
	if (sum) vec_push(c->pass->arena, &c->pass->maxima, ((pass_remark){reduce->at, why}));
}

/* ---- the branch ---- */

static ir_value *laid(ir_value *v, const ir_value *as)
{
	v->layout = as->layout;
	return v;
}

/* Whether a thread's own elements make another value, or the value is such that its difference with itself is not 0. */
static ir_value *build_test(rescale *c, ir_builder *b)
{
	ir_value **map = ARENA_ARRAY(c->pass->arena, ir_value *, c->func->nvalues), *own;
	for (uint32_t i = 0; i < c->chain.n; i++) {
		ir_op *o = ir_clone(b, c->chain.at[i], map);
		if (i == 0) ir_set_by_thread(o, 1);
	}
	if (c->next->kind == IR_SELECT) {
		own = ir_mapped(map, ir_arg(c->next, 0));
		if (ir_arg(c->next, 1) == c->kept) own = laid(ir_unary(b, IR_NOT, own), c->kept);
	} else {
		ir_type bits = ir_with_elem(c->kept->type, SCALAR_I32);
		ir_value *next = ir_clone(b, c->next, map)->results[0], *kept = c->kept;
		next = laid(ir_build1(b, IR_BITCAST, bits, 1, &next), c->kept);
		kept = laid(ir_build1(b, IR_BITCAST, bits, 1, &kept), c->kept);
		own = laid(ir_binary(b, IR_NE, next, kept), c->kept);
	}
	ir_value *zero = laid(ir_constant(b, c->kept->type, 0), c->kept);
	ir_value *difference = laid(ir_binary(b, IR_SUB, c->kept, c->kept), c->kept);
	ir_value *infinite = laid(ir_binary(b, IR_NE, difference, zero), c->kept);
	own = laid(ir_binary(b, IR_OR, own, infinite), c->kept);
	return ir_build1(b, IR_WARP_ANY, ir_scalar_type(SCALAR_BOOL), 1, &own);
}

/* In the branch: what stands behind it and is made of the next value. */
static ir_value *remade(rescale *c, ir_builder *b, ir_value *v)
{
	ir_op *o = v->def;
	if (c->made[v->id]) return c->made[v->id];
	if (!o || o->block != c->branch->block || ir_precedes(o, c->branch)) return v;
	for (unsigned i = 0; i < o->nargs; i++) remade(c, b, ir_arg(o, i));
	return ir_clone(b, o, c->made)->results[v->index];
}

/* The factor, of which the product takes a view. */
static ir_value *factor_of(const scaled *s)
{
	ir_value *v = ir_arg(s->product, s->factor);
	while (v->def && ir_has(v->def, IR_SHAPE) && v->def->nargs == 1) v = ir_arg(v->def, 0);
	return v;
}

/* What the branch gives for it: a sum that is there, or the factor of one that is waited for behind it. */
static ir_value *given_for(const scaled *s)
{
	return s->wait ? factor_of(s) : s->product->results[0];
}

/* Where a sum is scaled, or its factor is known, and where nothing has moved. */
static void build_scaled(
	rescale *c, ir_builder *moves, ir_builder *stays, const scaled *s, ir_value **moved, ir_value **kept)
{
	const ir_value *given = given_for(s);
	*moved = remade(c, moves, given_for(s));
	*kept = s->wait ? laid(ir_constant(stays, given->type, scalar_from_double((scalar)given->type.elem, 1)), given)
			: ir_arg(s->product, !s->factor);
}

/* The arithmetic beside a product was held in front of its wait, so that scaling would not come first.  With only
 * conversions behind the wait, the assembler interleaves them better than a barrier lets it.  No other product is
 * waited for in between. */
static void drop_barriers(const ir_op *branch, const ir_op *wait)
{
	for (ir_op *o = branch->next, *next; o != wait; o = next) {
		next = o->next;
		if (o->kind == IR_SCHED_BARRIER) ir_erase(o);
	}
}

/* Whether it makes a tile, between the branches, that only what stands behind the second one takes. */
static bool is_for_behind(const ir_op *o, const ir_op *branch)
{
	if (!ir_has(o, IR_PURE) || o->nresults != 1) return false;
	const ir_value *v = o->results[0];
	unsigned bytes = v->type.pointer ? 8 : scalar_bytes(v->type.elem);
	bool used_before = false;
	for (const ir_use *u = v->uses; u; u = u->next)
		used_before |= u->user->block == branch->block && ir_precedes(u->user, branch);
	return v->type.rank == 2 && (bytes == 2 || bytes == 4) && v->uses && !used_before;
}

/* Such tiles, 16-bit exponentials and sums of rows, are made in front of the second branch.  LLVM would convert behind
 * it, where ptxas cannot interleave conversions with exponentials any more. */
static void compute_in_front(rescale *c, ir_op *branch)
{
	VEC(ir_value *) tiles = {0};
	for (const ir_op *o = c->branch->next; o != branch; o = o->next)
		if (is_for_behind(o, branch)) vec_push(c->pass->arena, &tiles, o->results[0]);
	ir_builder b = {.func = c->func, .block = branch->block, .before = branch, .at = branch->at};
	if (tiles.n) ir_build(&b, IR_FAKE_USE, tiles.n, tiles.at, 0, NULL, 0);
}

/* The first operation behind the product that takes it or has an effect. */
static ir_op *first_use(const ir_op *product)
{
	ir_op *o = product->next;
	for (; ir_has(o, IR_PURE); o = o->next)
		for (unsigned i = 0; i < o->nargs; i++)
			if (ir_arg(o, i) == product->results[0]) return o;
	return o;
}

/* Behind the wait, and behind the arithmetic that may stand in front: `out` is the factor. */
static ir_value *scale_behind(rescale *c, const scaled *s, ir_value *any, ir_value *out)
{
	ir_value *x = ir_arg(s->product, !s->factor), *y = s->product->results[0];
	ir_op *before = first_use(s->product);
	ir_builder b = {.func = c->func, .block = before->block, .before = before, .at = s->product->at};
	c->made = ARENA_ARRAY(c->pass->arena, ir_value *, c->func->nvalues);
	ir_op *branch = ir_build(&b, IR_IF, 1, &any, 1, &y->type, 2);
	ir_builder in[] = {{.func = c->func, .block = branch->regions[0], .at = b.at},
		{.func = c->func, .block = branch->regions[1], .at = b.at}};
	c->made[factor_of(s)->id] = out;
	c->made[x->id] = x;
	ir_value *moved = remade(c, &in[0], y);
	ir_yield(&in[0], 1, &moved);
	ir_yield(&in[1], 1, &x);
	return laid(branch->results[0], y);
}

/* Results of the branch, from the second on, stand for what was scaled, or are its factors. */
static void take_result(rescale *c, const scaled *s, ir_value *any, ir_value *out)
{
	ir_value *v = s->product->results[0];
	if (s->wait) {
		drop_barriers(out->def, s->wait);
		out = scale_behind(c, s, any, out);
	}
	out->name = v->name;
	ir_replace(v, out);
	ir_erase(s->product);
	if (s->wait) compute_in_front(c, out->def);
}

static void put_branch(rescale *c)
{
	arena *a = c->pass->arena;
	uint32_t n = 1 + c->scaled.n;
	ir_value *next = c->next->results[0];
	ir_builder b = {.func = c->func, .block = c->next->block, .before = c->next, .at = c->next->at};
	ir_value *any = build_test(c, &b);
	ir_type *types = ARENA_ARRAY(a, ir_type, n);
	for (uint32_t i = 0; i < n; i++) types[i] = (i ? given_for(&c->scaled.at[i - 1]) : next)->type;
	c->branch = ir_build(&b, IR_IF, 1, &any, n, types, 2);
	for (uint32_t i = 0; i < n; i++) laid(c->branch->results[i], i ? given_for(&c->scaled.at[i - 1]) : next);
	ir_value *out = c->branch->results[0];
	out->name = next->name;
	ir_replace(next, out);

	ir_builder moves = {.func = c->func, .block = c->branch->regions[0], .at = b.at};
	ir_builder stays = {.func = c->func, .block = c->branch->regions[1], .at = b.at};
	for (uint32_t i = 0; i < c->chain.n; i++) ir_move_before(c->chain.at[i], moves.block, NULL);
	ir_move_before(c->next, moves.block, NULL);
	c->made = ARENA_ARRAY(a, ir_value *, c->func->nvalues);
	c->made[out->id] = next;
	ir_value **moved = ARENA_ARRAY(a, ir_value *, n), **kept = ARENA_ARRAY(a, ir_value *, n);
	moved[0] = next;
	kept[0] = c->kept;
	for (uint32_t i = 1; i < n; i++) build_scaled(c, &moves, &stays, &c->scaled.at[i - 1], &moved[i], &kept[i]);
	ir_yield(&moves, n, moved);
	ir_yield(&stays, n, kept);
	for (uint32_t i = 1; i < n; i++) take_result(c, &c->scaled.at[i - 1], any, c->branch->results[i]);
	vec_push(a, &c->pass->maxima, ((pass_remark){c->chain.at[0]->at, WHERE_MOVED}));
}

static void visit(ir_op *o, void *context)
{
	rescale *c = context;
	op_list reductions = {0};
	if (o->kind != IR_FOR) return;
	for (ir_op *p = o->regions[0]->first; p; p = p->next)
		if (reduces_to_extremum(p)) vec_push(c->pass->arena, &reductions, p);
	bool done = false;
	for (uint32_t i = 0; i < reductions.n; i++) {
		const char *why = done ? ANOTHER : refusal(c, reductions.at[i]); /* it would wait in its branch, too */
		if (why)
			remark(c, reductions.at[i], why);
		else
			put_branch(c);
		done |= !why;
	}
}

bool pass_conditional_rescale(pass_context *p, ir_func *f)
{
	rescale c = {.pass = p, .func = f};
	ir_walk(f->body, visit, &c);
	return true;
}
