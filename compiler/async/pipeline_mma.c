/* Loops in which vector work stands between two products that depend on each other: software-pipelined in two stages.
 *
 * In: a mapped function; a product is a wgmma and the wait right behind it.  Out: in loops that fit, an iteration
 * begins the last one's second product beside its own first one, so that the vector work of this iteration runs while
 * both multiply.
 * The one idea: the body is cut in two.  The second stage is what the dependent products make: they, what depends on
 * them, and what only they take and no product has made (their loads).  Everything else is the first stage.  What
 * crosses the cut is carried to the next iteration; so the cut lies behind the conversion to the operand's narrow type.
 *
 *     for j, acc, m {                           if lo < hi {
 *       s = q k[j]                                s = q k[lo]; p, a, m = softmax(s); acc = acc * a
 *       p, a, m = softmax(s, m)         ->        for j from lo + step, p, acc, m {
 *       acc = p v[j] + acc * a                      s = q k[j]
 *       yield acc, m                                acc = p v[j - step] + acc
 *     }                                             p, a, m = softmax(s, m); acc = acc * a
 *                                                   yield p, acc, m }
 *                                                 acc = p v[last] + acc }
 *
 * What a carried value of the second stage (acc) goes into in the first stage (acc * a) stands behind the product then:
 * those operations come last.  A first stage may have several products, if all dependent ones need all of them
 * (attention's dq needs s and dp).  Where one needs only some (dv needs s), it is something to multiply beside the
 * vector work already, and the loop stays.  So it does where the registers of both stages do not fit.
 *
 * A block that both stages read (the keys of dq) would have to stay for an iteration more.  It is loaded twice
 * instead, if shared memory has room for that: each stage has its own, and channels.c gives each a channel. */
#include "analysis/pressure.h"
#include "bulk.h"
#include "channel.h"
#include "passes/passes.h"
#include "scratch.h"
#include "target/nvptx/mma/wgmma.h"

#define LATER "begun an iteration later, beside that one's first products"
#define OWN "begun in its own iteration: "
#define NO_REGISTERS OWN "threads have no registers for two at a time"
#define NO_ROOM OWN "shared memory has no room for the blocks of two"
#define NO_PRODUCER OWN "no producer warp would load again what both need"
/* These keep a loop from being cut at all. */
#define NO_COUNT OWN "the loop does not count upwards, as a number of 32 bits, by a step that is known"
#define BESIDE OWN "another product runs beside the vector work already"
#define MANY OWN "it depends on too many products"
#define NO_WAIT OWN "a product has no wait of its own"
#define FEW_WARPS OWN "several first products want turns of warpgroups, and there is one"
#define NO_TURNS OWN "several first products want turns of warpgroups, and no producer warp copies for them"
#define MEET OWN "several first products want turns of warpgroups, and threads meet in the iteration"
#define ACTS OWN "several first products want turns of warpgroups, and a branch of the iteration acts"
#define EFFECT OWN "an operation with effects depends on it"
#define BRANCH OWN "a branch or a loop depends on it"
#define EARLY_BRANCH OWN "a first product takes what a branch or a loop gives"
#define EARLY_LOAD OWN "a first product takes a load that is not hoisted"
#define EARLY_EFFECT OWN "a first product takes what an operation with effects gives"
#define CIRCLE OWN "the next iteration's first product takes its result"
#define TWICE "loaded twice, as it is needed in the next iteration, too"

enum { MOST_FIRST = 32 };

typedef struct loop {
	pass_context *context;
	ir_func *func;
	ir_op *op;
	ir_block *body;
	uint32_t nvalues;
	unsigned firsts; /* products of the first stage */
	bool copied;     /* a producer makes the body's loads, and leaves registers to the others */
	uint32_t *from;  /* by value id: on which of this iteration's first products it depends, a bit each */
	bool *second;    /* it is made by the second stage */
	bool *early;     /* the first products, and what they take */
	bool *crosses;   /* made in the first stage, or an argument, and taken by the second */
	bool *kept;      /* of a carried value: the first stage yields it, or the second stage takes it as it was */
	const char *why; /* it is not cut, if it has a dependent product */
} loop;

static bool yields_second(const loop *l, unsigned k)
{
	return l->second[ir_arg(l->body->last, k)->id];
}

/* ---- the two stages ---- */

static void mark_uses(ir_op *o, void *context)
{
	bool **marks = context;
	for (unsigned i = 0; i < o->nargs; i++) marks[1][0] |= marks[0][ir_arg(o, i)->id];
}

/* An operation, or one in its regions, takes a marked value. */
static bool takes(const ir_op *o, bool *marked)
{
	bool found = false;
	bool *marks[] = {marked, &found};
	for (unsigned i = 0; i < o->nargs; i++) found |= marked[ir_arg(o, i)->id];
	for (unsigned r = 0; r < o->nregions; r++) ir_walk(o->regions[r], mark_uses, marks);
	return found;
}

static void mark_results(const ir_op *o, bool *marked)
{
	for (unsigned i = 0; i < o->nresults; i++) marked[o->results[i]->id] = true;
}

static void collect(ir_op *o, void *context)
{
	uint32_t **bits = context;
	for (unsigned i = 0; i < o->nargs; i++) bits[1][0] |= bits[0][ir_arg(o, i)->id];
}

/* The first products on which what it takes depends. */
static uint32_t taken_from(const loop *l, const ir_op *o)
{
	uint32_t found = 0;
	uint32_t *bits[] = {l->from, &found};
	for (unsigned i = 0; i < o->nargs; i++) found |= l->from[ir_arg(o, i)->id];
	for (unsigned r = 0; r < o->nregions; r++) ir_walk(o->regions[r], collect, bits);
	return found;
}

/* A factor depends on a product of this iteration; its sum alone may, as a chain of products has it. */
static bool is_dependent(const loop *l, const ir_op *wgmma)
{
	return l->from[ir_arg(wgmma, 0)->id] || l->from[ir_arg(wgmma, 1)->id];
}

/* The load of which the value is a view; null if it is no view of one. */
static ir_op *block_of(const ir_value *v)
{
	ir_op *def = v->def;
	while (def && def->kind == IR_PERMUTE) def = ir_arg(def, 0)->def;
	return def && def->kind == IR_BULK_LOAD ? def : NULL;
}

static uint64_t block_bytes(const ir_func *f, const ir_op *load)
{
	ir_type t = load->results[0]->type;
	uint64_t bytes = (uint64_t)ir_elements(t) * ir_element_bytes(t) * row_group_parts(f, load);
	return (bytes + BULK_ALIGN - 1) / BULK_ALIGN * BULK_ALIGN;
}

/* What an operation needs for itself while slots live: blocks that a product reads will be in slots. */
static uint64_t scratch_beside_slots(const ir_func *f, const ir_op *o)
{
	wgmma_plan p;
	if (o->kind == IR_BULK_LOAD) return 0;
	if (o->kind != IR_WGMMA || !wgmma_plan_make(o, f->num_warps, &p)) return scratch_bytes(f, o);
	bool computed = false;
	for (unsigned i = 0; i < 2; i++) computed |= p.operand[i].place == WGMMA_SCRATCH && !block_of(ir_arg(o, i));
	return computed ? scratch_bytes(f, o) : 0;
}

/* A producer makes copies of all its loads, of which there are some. */
static bool is_copied(const loop *l)
{
	atomics sent = {0};
	bool loads = false;
	if (channels_refusal(l->context, l->func)) return false;
	for (const ir_op *o = l->body->first; o; o = o->next) {
		if (o->kind != IR_BULK_LOAD) continue;
		loads = true;
		if (partition_refusal(l->context, l->func, o, &sent)) return false;
	}
	return loads;
}

/* All of an iteration's products are begun at its beginning then.  Of three or more, warpgroups that do not take turns
 * (turns.c) wait for each other's: attention's dq at D=64, 128 x 128, takes 1267 us as it is, 1551 in two stages, and
 * 1197 in turns.  None are taken where threads meet in the iteration, or something acts in a branch. */
static const char *why_no_turns(const loop *l)
{
	enum { WARPGROUP = 4 };
	for (const ir_op *o = l->body->first; o; o = o->next) {
		if (o->kind == IR_CTA_BARRIER || o->kind == IR_DEBUG_BARRIER || scratch_beside_slots(l->func, o))
			return MEET;
		for (unsigned r = 0; r < o->nregions; r++)
			for (const ir_op *i = o->regions[r]->first; i; i = i->next)
				if (i->nregions || !ir_has(i, IR_PURE | IR_TERMINATOR) || scratch_bytes(l->func, i))
					return ACTS;
	}
	return ir_warps(l->func) < 2 * WARPGROUP ? FEW_WARPS : l->copied ? NULL : NO_TURNS;
}

static bool refuse(loop *l, const char *why)
{
	l->why = why;
	return false;
}

/* False: there are no dependent products, or one that can run beside the work that others wait for. */
static bool find_products(loop *l)
{
	unsigned first = 0;
	uint32_t needed = UINT32_MAX; /* of the first products, by every dependent one */
	bool dependent = false;
	for (const ir_op *o = l->body->first; o; o = o->next) {
		uint32_t from = taken_from(l, o);
		if (o->kind == IR_WGMMA) {
			bool chained = o->nargs > 2 && l->from[ir_arg(o, 2)->id];
			const ir_op *wait = ir_only_user(o->results[0]);
			if (!wait || wait != o->next || wait->kind != IR_WGMMA_WAIT) return refuse(l, NO_WAIT);
			if (is_dependent(l, o)) {
				mark_results(o, l->second);
				needed &= l->from[ir_arg(o, 0)->id] | l->from[ir_arg(o, 1)->id];
				dependent = true;
			} else if (!chained) {
				if (first == MOST_FIRST) return refuse(l, MANY);
				from |= UINT32_C(1) << first++;
			}
		}
		for (unsigned i = 0; i < o->nresults; i++) l->from[o->results[i]->id] = from;
	}
	uint32_t all = first == MOST_FIRST ? UINT32_MAX : (UINT32_C(1) << first) - 1;
	l->firsts = first;
	if (!dependent) return false;
	const char *why = (needed & all) != all ? BESIDE : first > 1 ? why_no_turns(l) : NULL;
	return why ? refuse(l, why) : true;
}

/* What depends on the second stage's products is of it too; it may have no effect but products. */
static bool follow_products(loop *l)
{
	for (const ir_op *o = l->body->first; o; o = o->next) {
		if (!takes(o, l->second) || o == l->body->last) continue;
		bool pure = ir_has(o, IR_PURE) || o->kind == IR_WGMMA || o->kind == IR_WGMMA_WAIT;
		if (!pure || o->nregions) return refuse(l, o->nregions ? BRANCH : EFFECT);
		mark_results(o, l->second);
	}
	return true;
}

static bool only_second_takes(const loop *l, const ir_op *o)
{
	bool any = false;
	for (unsigned i = 0; i < o->nresults; i++)
		for (const ir_use *u = o->results[i]->uses; u; u = u->next) {
			const ir_op *user = u->user;
			if (user->block != l->body || !user->nresults || !l->second[user->results[0]->id]) return false;
			any = true;
		}
	return any;
}

/* Loads of the second stage's operands, and their indices. */
static void take_loads(loop *l)
{
	for (const ir_op *o = l->body->last->prev; o; o = o->prev) {
		if (o->nregions || !(ir_has(o, IR_PURE) || o->kind == IR_BULK_LOAD)) continue;
		if (taken_from(l, o) || !only_second_takes(l, o)) continue;
		mark_results(o, l->second);
	}
}

/* A number of memory that nothing writes while the kernel runs, as the page of a block is. */
static bool loads_constant(const ir_op *o)
{
	return o->kind == IR_LOAD && ir_is_scalar(o->results[0]) && ir_is_repeatable(o);
}

static const char *why_not_early(const ir_op *o)
{
	return o->nregions ? EARLY_BRANCH : o->kind == IR_LOAD ? EARLY_LOAD : EARLY_EFFECT;
}

/* The first products and all that they take; false: something of the second stage, or of an effect, is among it. */
static bool find_early(loop *l)
{
	for (const ir_op *o = l->body->last->prev; o; o = o->prev) {
		bool early = o->kind == IR_WGMMA && !l->second[o->results[0]->id];
		for (unsigned i = 0; i < o->nresults; i++) early |= l->early[o->results[i]->id];
		if (!early) continue;
		if (o->nregions || !(ir_has(o, IR_PURE) || loads_constant(o) || o->kind == IR_BULK_LOAD ||
					   o->kind == IR_WGMMA || o->kind == IR_WGMMA_WAIT))
			return refuse(l, why_not_early(o));
		mark_results(o, l->early);
		for (unsigned i = 0; i < o->nargs; i++) {
			const ir_value *v = ir_arg(o, i);
			if (l->second[v->id]) return refuse(l, CIRCLE);
			if (!v->def && v->block == l->body && v->index && yields_second(l, v->index - 1u))
				return refuse(l, CIRCLE);
			l->early[v->id] = true;
		}
	}
	return true;
}

static bool is_second(const loop *l, const ir_op *o)
{
	return o->nresults && o->results[0]->id < l->nvalues && l->second[o->results[0]->id];
}

static void find_crossing(loop *l)
{
	for (const ir_op *o = l->body->first; o; o = o->next) {
		if (!is_second(l, o)) continue;
		for (unsigned i = 0; i < o->nargs; i++) {
			const ir_value *v = ir_arg(o, i);
			bool inside = v->def ? v->def->block == l->body : v->block == l->body;
			if (!inside || l->second[v->id]) continue;
			bool argument = !v->def && v->index && yields_second(l, v->index - 1u);
			if (argument)
				l->kept[v->index - 1u] = true; /* the last product made it: carried as it was */
			else
				l->crosses[v->id] = true;
		}
	}
	for (unsigned k = 0; k < l->op->nresults; k++) l->kept[k] |= !yields_second(l, k);
}

/* ---- blocks that both stages read ---- */

static void keep_layouts(const ir_op *from, const ir_op *to)
{
	for (unsigned i = 0; i < from->nresults; i++) to->results[i]->layout = from->results[i]->layout;
}

/* The same, of one that the body loads. */
static ir_op *block_inside(const loop *l, const ir_value *v)
{
	ir_op *block = block_of(v);
	return block && block->block == l->body ? block : NULL;
}

static bool crosses_as_block(const loop *l, const ir_op *o)
{
	return o->nresults && l->crosses[o->results[0]->id] && block_inside(l, o->results[0]);
}

static bool any_crosses_as_block(const loop *l)
{
	for (const ir_op *o = l->body->first; o; o = o->next)
		if (crosses_as_block(l, o)) return true;
	return false;
}

typedef struct scratch {
	const loop *loop;
	uint64_t most;
} scratch;

/* A store behind all loops may lie where slots did. */
static void find_scratch(ir_op *o, void *context)
{
	scratch *s = context;
	uint64_t bytes = scratch_beside_slots(s->loop->func, o);
	const ir_op *around = o->block->parent;
	while (around && !ir_is_loop(around)) around = around->block->parent;
	if (o->kind == IR_BULK_STORE && !around) return;
	if (bytes > s->most) s->most = bytes;
}

/* Shared memory has as many slots as the loop wants with a second load of each block that both stages read, beside the
 * blocks that stay.  Other loops share the channels of this one. */
static bool has_room(const loop *l)
{
	bool *counted = ARENA_ARRAY(l->context->arena, bool, l->nvalues);
	uint64_t stages = ir_get_num_stages(l->op) ? ir_get_num_stages(l->op) : l->func->num_stages;
	uint64_t most = l->context->target->shared_bytes, bytes = scratch_place_lasting(l->func);
	scratch rest = {.loop = l};
	if (l->func->max_shared < most) most = l->func->max_shared;
	ir_walk(l->func->body, find_scratch, &rest);
	bytes += rest.most + 2 * SCRATCH_SLACK; /* what else there is, alignment, barriers */
	if (stages < 2) stages = 2;
	for (const ir_op *o = l->body->first; o; o = o->next) {
		if (o->kind == IR_BULK_LOAD) bytes += stages * block_bytes(l->func, o);
		if (crosses_as_block(l, o)) bytes += stages * block_bytes(l->func, block_of(o->results[0]));
		for (unsigned i = 0; i < o->nargs && o->kind == IR_WGMMA; i++) {
			const ir_op *block = block_of(ir_arg(o, i));
			if (!block || block->block == l->body || counted[block->results[0]->id]) continue;
			counted[block->results[0]->id] = true;
			bytes += block_bytes(l->func, block);
		}
	}
	return bytes <= most || (l->firsts == 1 && !any_crosses_as_block(l));
}

/* The value again, for those of its users that are of the second stage. */
static void load_again(const loop *l, ir_value *v)
{
	ir_value **map = ARENA_ARRAY(l->context->arena, ir_value *, l->nvalues);
	ir_op *views[MOST_FIRST], *o = v->def;
	unsigned n = 0;
	for (; o->kind == IR_PERMUTE && n < MOST_FIRST; o = ir_arg(o, 0)->def) views[n++] = o;
	if (o->kind != IR_BULK_LOAD) return; /* longer chains of views are not canonical */
	ir_builder b = {.func = l->func, .block = l->body, .before = v->def->next, .at = o->at};
	keep_layouts(o, ir_clone(&b, o, map));
	while (n) keep_layouts(views[n - 1], ir_clone(&b, views[n - 1], map)), n--;
	for (ir_op *user = v->def->next; user; user = user->next)
		for (unsigned k = 0; k < user->nargs && is_second(l, user); k++)
			if (ir_arg(user, k) == v) ir_set_arg(user, k, map[v->id]);
}

static void remark(const loop *l, const ir_op *o, const char *what)
{
	vec_push(l->context->arena, &l->context->order, ((pass_remark){o->at, what}));
}

static bool load_blocks_again(const loop *l)
{
	bool any = false;
	for (ir_op *o = l->body->first, *next; o; o = next) {
		next = o->next;
		if (!crosses_as_block(l, o)) continue;
		load_again(l, o->results[0]);
		remark(l, block_of(o->results[0]), TWICE);
		any = true;
	}
	return any;
}

/* ---- registers ---- */

/* While all products run: their sums, and what is carried or comes from outside in registers. */
static bool fits_registers(const loop *l)
{
	unsigned n = 0, most = l->copied ? pressure_most_beside_producer(l->func) : pressure_most(l->func);
	for (const ir_op *o = l->body->first; o; o = o->next) {
		if (o->kind != IR_WGMMA) continue;
		if (!(o->nargs > 2 && l->from[ir_arg(o, 2)->id] && !is_second(l, o)))
			n += pressure_registers(o->results[0]); /* a chain has one sum */
		for (unsigned i = 0; i < 2; i++) {
			const ir_value *v = ir_arg(o, i);
			if (l->crosses[v->id] && !block_inside(l, v)) n += pressure_registers(v);
		}
	}
	return n + PRESSURE_OTHERS <= most;
}

/* ---- the loop again ---- */

typedef enum stage { FIRST, EARLY, LATE, SECOND } stage;

static bool belongs(const loop *l, const ir_op *o, stage s)
{
	bool second = is_second(l, o), early = o->nresults && l->early[o->results[0]->id];
	/* the wait for a first product stands behind the second ones, if nothing early needs it */
	switch (s) {
	case FIRST: return !second;
	case EARLY: return !second && early;
	case LATE: return !second && !early;
	case SECOND: return second;
	}
	return false;
}

static void clone(const loop *l, ir_builder *b, stage s, ir_value **map)
{
	for (const ir_op *o = l->body->first; o != l->body->last; o = o->next) {
		if (!belongs(l, o, s)) continue;
		b->at = o->at;
		keep_layouts(o, ir_clone(b, o, map));
	}
	b->at = l->op->at;
}

static ir_value *carried_in(const loop *l, ir_op *again, ir_value *start)
{
	ir_add_arg(l->func, again, start);
	ir_value *result = ir_add_result(l->func, again, start->type);
	ir_value *arg = ir_block_arg(again->regions[0], start->type, NULL);
	result->layout = arg->layout = start->layout;
	return arg;
}

static ir_value **new_map(const loop *l)
{
	return ARENA_ARRAY(l->context->arena, ir_value *, l->nvalues);
}

/* The values that cross, in a fixed order: arguments, then results. */
static void each_crossing(const loop *l, void (*visit)(const loop *, ir_value *, void *), void *context)
{
	for (uint32_t i = 0; i < l->body->nargs; i++)
		if (l->crosses[l->body->args[i]->id]) visit(l, l->body->args[i], context);
	for (const ir_op *o = l->body->first; o; o = o->next)
		for (unsigned i = 0; i < o->nresults; i++)
			if (l->crosses[o->results[i]->id]) visit(l, o->results[i], context);
}

typedef struct rebuilt {
	ir_op *loop;
	ir_value **before, **inside, **now,
		**behind; /* maps: of the first iteration, of the last one's second stage and of
							 this one's first, of what is behind */
	unsigned results;
} rebuilt;

static void carry_crossing(const loop *l, ir_value *v, void *context)
{
	rebuilt *r = context;
	r->inside[v->id] = carried_in(l, r->loop, ir_mapped(r->before, v));
	r->behind[v->id] = r->loop->results[r->loop->nresults - 1u];
}

static void yield_crossing(const loop *l, ir_value *v, void *context)
{
	rebuilt *r = context;
	ir_add_arg(l->func, r->loop->regions[0]->last, ir_mapped(r->now, v));
}

/* Where the loop goes on behind its first iteration: lo + step, or where that is too large a number, at its end. */
static ir_value *second_iteration(const loop *l, ir_builder *b)
{
	ir_value *lo = ir_arg(l->op, 0), *hi = ir_arg(l->op, 1), *step = ir_arg(l->op, 2), *wide[3];
	for (unsigned i = 0; i < 3; i++) {
		ir_value *v = ir_arg(l->op, i);
		wide[i] = ir_build1(b, IR_CONVERT, ir_scalar_type(SCALAR_I64), 1, &v);
	}
	ir_value *exists = ir_binary(b, IR_LT, ir_binary(b, IR_ADD, wide[0], wide[2]), wide[1]);
	ir_value *args[] = {exists, ir_binary(b, IR_ADD, lo, step), hi};
	return ir_build1(b, IR_SELECT, lo->type, 3, args);
}

/* Fills the side where there is an iteration; `out`: what the loop gave. */
static void fill(const loop *l, ir_op *guard, ir_value **out)
{
	rebuilt r = {.before = new_map(l), .inside = new_map(l), .now = new_map(l), .behind = new_map(l)};
	ir_value *counter = l->body->args[0], *lo = ir_arg(l->op, 0), *step = ir_arg(l->op, 2);
	ir_builder b = {.func = l->func, .block = guard->regions[0], .at = l->op->at};
	unsigned n = l->op->nresults;
	r.before[counter->id] = lo;
	for (unsigned k = 0; k < n; k++) r.before[l->body->args[1 + k]->id] = ir_arg(l->op, 3 + k);
	clone(l, &b, FIRST, r.before);

	ir_value *args[] = {second_iteration(l, &b), ir_arg(l->op, 1), step};
	r.loop = ir_build(&b, IR_FOR, 3, args, 0, NULL, 1);
	ir_copy_attributes(r.loop, l->op);
	r.now[counter->id] = ir_block_arg(r.loop->regions[0], counter->type, counter->name);
	for (unsigned k = 0; k < n; k++) {
		const ir_value *v = l->body->args[1 + k];
		if (!l->kept[k]) continue;
		bool second = yields_second(l, k);
		ir_value *start = second ? ir_arg(l->op, 3 + k) : ir_mapped(r.before, ir_arg(l->body->last, k));
		r.now[v->id] = r.inside[v->id] = carried_in(l, r.loop, start);
		r.behind[v->id] = r.loop->results[r.loop->nresults - 1u];
	}
	each_crossing(l, carry_crossing, &r);

	ir_builder in = {.func = l->func, .block = r.loop->regions[0], .at = l->op->at};
	clone(l, &in, EARLY, r.now);
	clone(l, &in, SECOND, r.inside);
	for (unsigned k = 0; k < n; k++)
		if (yields_second(l, k))
			r.now[l->body->args[1 + k]->id] = ir_mapped(r.inside, ir_arg(l->body->last, k));
	clone(l, &in, LATE, r.now);
	ir_yield(&in, 0, NULL);
	for (unsigned k = 0; k < n; k++) {
		ir_value *v = ir_arg(l->body->last, k);
		if (l->kept[k])
			ir_add_arg(l->func, in.block->last, ir_mapped(yields_second(l, k) ? r.inside : r.now, v));
	}
	each_crossing(l, yield_crossing, &r);

	clone(l, &b, SECOND, r.behind);
	unsigned at = 0;
	for (unsigned k = 0; k < n; k++) {
		ir_value *v = ir_arg(l->body->last, k);
		out[k] = yields_second(l, k) ? ir_mapped(r.behind, v) : r.loop->results[at];
		at += l->kept[k];
	}
}

static void rebuild(const loop *l)
{
	unsigned n = l->op->nresults;
	ir_value **out = ARENA_ARRAY(l->context->arena, ir_value *, n + 1u);
	ir_builder b = {.func = l->func, .block = l->op->block, .before = l->op, .at = l->op->at};
	ir_value *any = ir_binary(&b, IR_LT, ir_arg(l->op, 0), ir_arg(l->op, 1));
	ir_type *types = ARENA_ARRAY(l->context->arena, ir_type, n + 1u);
	for (unsigned k = 0; k < n; k++) types[k] = l->op->results[k]->type;
	ir_op *guard = ir_build(&b, IR_IF, 1, &any, n, types, 2);
	fill(l, guard, out);
	ir_builder side = {.func = l->func, .block = guard->regions[0], .at = l->op->at};
	ir_yield(&side, n, out);
	side.block = guard->regions[1];
	for (unsigned k = 0; k < n; k++) out[k] = ir_arg(l->op, 3 + k);
	ir_yield(&side, n, out);
	keep_layouts(l->op, guard);
	for (unsigned k = 0; k < n; k++) {
		guard->results[k]->name = l->op->results[k]->name;
		ir_replace(l->op->results[k], guard->results[k]);
	}
	ir_erase(l->op);
}

static void look_at(pass_context *c, ir_func *f, ir_op *o, loop *l)
{
	uint32_t n = f->nvalues;
	*l = (loop){.context = c, .func = f, .op = o, .body = o->regions[o->nregions - 1u], .nvalues = n};
	l->from = ARENA_ARRAY(c->arena, uint32_t, n);
	l->second = ARENA_ARRAY(c->arena, bool, n);
	l->early = ARENA_ARRAY(c->arena, bool, n);
	l->crosses = ARENA_ARRAY(c->arena, bool, n);
	l->kept = ARENA_ARRAY(c->arena, bool, o->nresults + 1u);
	l->copied = is_copied(l);
}

/* False: it is no such loop. */
static bool cut(pass_context *c, ir_func *f, ir_op *o, loop *l)
{
	look_at(c, f, o, l);
	if (!find_products(l) || !follow_products(l)) return false;
	take_loads(l);
	if (!find_early(l)) return false;
	find_crossing(l);
	return true;
}

/* Explain says it of each product of the second stage. */
static void remark_products(const loop *l, const char *what)
{
	for (const ir_op *o = l->body->first; o; o = o->next)
		if (o->kind == IR_WGMMA && is_second(l, o)) remark(l, o, what);
}

/* Of a loop that is not cut, at the first one. */
static void remark_dependent(const loop *l)
{
	const ir_op *o = l->body->first;
	while (o && !(o->kind == IR_WGMMA && is_dependent(l, o))) o = o->next;
	if (o && l->why) remark(l, o, l->why);
}

static void try_loop(pass_context *c, ir_func *f, ir_op *o)
{
	loop l;
	if (!cut(c, f, o, &l)) {
		remark_dependent(&l);
		return;
	}
	const char *why = NULL;
	if (!fits_registers(&l))
		why = NO_REGISTERS;
	else if (!l.copied && any_crosses_as_block(&l))
		why = NO_PRODUCER;
	else if (!has_room(&l))
		why = NO_ROOM;
	if (!why && load_blocks_again(&l) && !cut(c, f, o, &l)) return;
	remark_products(&l, why ? why : LATER);
	if (!why) rebuild(&l);
}

static void refuse_loop(pass_context *c, ir_func *f, ir_op *o)
{
	loop l;
	look_at(c, f, o, &l);
	find_products(&l);
	refuse(&l, NO_COUNT);
	remark_dependent(&l);
}

static void find_loops(pass_context *c, ir_func *f, ir_block *b)
{
	for (ir_op *o = b->first, *next; o; o = next) {
		next = o->next;
		for (unsigned r = 0; r < o->nregions; r++) find_loops(c, f, o->regions[r]);
		if (o->kind == IR_FOR && ir_counts_upwards(o))
			try_loop(c, f, o);
		else if (ir_is_loop(o))
			refuse_loop(c, f, o);
	}
}

bool pass_pipeline_mma(pass_context *c, ir_func *f)
{
	find_loops(c, f, f->body);
	return true;
}
