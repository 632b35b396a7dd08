/* What is not the products' own work is done while a loop's last products run.
 *
 * In: a mapped function after specialise_warps.  Out: where a loop leaves products running, between it and the wait for
 * them stand pure scalar operations from in front of it that only what follows it takes, and loads through *const from
 * behind the wait with what their addresses and masks are computed from:
 *
 *     %i = div %tile, %n                        for .. { %s = wgmma .. }
 *     for .. { %s = wgmma .. }                  %i = div %tile, %n
 *     %r = wgmma_wait %s                        %x = load %scales             through *const
 *     mbarrier_arrive ..                 ->     %r = wgmma_wait %s
 *     %x = load %scales                         mbarrier_arrive ..
 *     bulk_store %c, (mul %r, %x), %i           bulk_store %c, (mul %r, %x), %i
 *
 * The one idea: the last iteration's products run for longer than the divisions that say where their tile lies, and for
 * about as long as memory takes to answer.  So what only the store needs is free there; in front of the loop, where the
 * program before left it, it keeps the tensor cores waiting, and a load behind the wait keeps them waiting for its
 * answer. From the loop upwards: what moves is needed by nobody in between.  From the wait downwards: what moves needs
 * nothing that happens in between. */
#include "passes/passes.h"

#include <assert.h>

typedef struct needed {
	bool *by_id;
} needed;

static void need_operands(ir_op *o, void *context)
{
	needed *n = context;
	for (unsigned i = 0; i < o->nargs; i++) n->by_id[ir_arg(o, i)->id] = true;
}

static void need(needed *n, ir_op *o)
{
	need_operands(o, n);
	for (unsigned r = 0; r < o->nregions; r++) ir_walk(o->regions[r], need_operands, n);
}

static bool movable(const needed *n, const ir_op *o)
{
	if (!ir_has(o, IR_PURE) || o->nregions || o->kind == IR_CONST || !o->nresults) return false;
	for (unsigned i = 0; i < o->nresults; i++)
		if (!ir_is_scalar(o->results[i]) || n->by_id[o->results[i]->id]) return false;
	return true;
}

/* The wait behind a loop for sums that the loop leaves in flight. */
static ir_op *wait_behind(const ir_op *loop)
{
	ir_op *o = loop->next;
	return o && o->kind == IR_WGMMA_WAIT && o->nargs && ir_arg(o, 0)->def == loop ? o : NULL;
}

/* Registers of a thread that what was loaded ahead may take beside the sums, which nearly fill the rest: a slice of 256
 * elements of 32 bits takes 2 in the fewest threads, a warpgroup's 128; one along the rows and one along the columns,
 * of a product by scales, and as much again, as a bias. */
enum { MOST_AHEAD = 8 };

typedef struct ahead {
	arena *arena;
	ir_op *wait;
	bool *behind; /* by value: of the wait or of an operation behind it that stays there */
	bool *taken;  /* by value: of the slice that is being looked at */
	VEC(ir_op *) slice;
	unsigned left; /* registers */
} ahead;

static unsigned words(const ir_value *v)
{
	unsigned bytes = ir_element_bytes(v->type), n = v->layout ? layout_registers(v->layout) : 1;
	return bytes * n > 4 ? bytes * n / 4 : 1;
}

/* A thread does it by itself and in few registers: no other thread's part of a tile, no scratch. */
static bool alone(const ir_op *o)
{
	return ir_is_repeatable(o) && o->nresults == 1 && o->kind != IR_CONVERT_LAYOUT &&
	       words(o->results[0]) <= 2 * MOST_AHEAD &&
	       (ir_has(o, IR_FREE | IR_ELEMENTWISE | IR_SHAPE) || o->kind == IR_HINT || o->kind == IR_LOAD);
}

/* The operations behind the wait that `o` needs, and itself, in their order. */
static bool take(ahead *a, ir_op *o)
{
	assert(o->block);
	if (!alone(o)) return false;
	for (unsigned i = 0; i < o->nargs; i++) {
		const ir_value *v = ir_arg(o, i);
		if (a->behind[v->id] && !a->taken[v->id] && !(v->def && take(a, v->def))) return false;
	}
	a->taken[o->results[0]->id] = true;
	vec_push(a->arena, &a->slice, o);
	return true;
}

/* What of a slice others need too is held until they come.  What is free is computed where it is used. */
static unsigned held(const ahead *a)
{
	unsigned n = 0;
	for (uint32_t i = 0; i < a->slice.n; i++) {
		const ir_value *v = a->slice.at[i]->results[0];
		bool outside = false;
		for (const ir_use *u = v->uses; u && !outside; u = u->next)
			outside = u->user->nresults != 1 || !a->taken[u->user->results[0]->id];
		if (outside && !ir_has(v->def, IR_FREE)) n += words(v);
	}
	return n;
}

static void load_ahead(ahead *a, ir_op *load)
{
	assert(load->nresults == 1);
	a->slice.n = 0;
	bool fits = take(a, load);
	unsigned registers = held(a);
	fits = fits && registers <= a->left;
	if (fits) a->left -= registers;
	for (uint32_t i = 0; i < a->slice.n; i++) {
		uint32_t id = a->slice.at[i]->results[0]->id;
		a->taken[id] = false;
		if (!fits) continue;
		ir_move_before(a->slice.at[i], a->wait->block, a->wait);
		a->behind[id] = false;
	}
}

/* Nothing happens that a load would see or that could keep it from being made: what reads, and what tells that slots
 * have been read. */
static bool passable(const ir_op *o)
{
	return !o->nregions &&
	       (ir_has(o, IR_PURE) || (ir_touches(o, IR_READS) && !ir_touches(o, IR_EFFECTS)) ||
		       o->kind == IR_MBARRIER_ARRIVE || o->kind == IR_MBARRIERS_END || o->kind == IR_MULTIBUFFER_END);
}

static void lift(pass_context *c, ir_func *f, ir_op *wait)
{
	assert(wait->kind == IR_WGMMA_WAIT);
	ahead a = {.arena = c->arena,
		.wait = wait,
		.behind = ARENA_ARRAY(c->arena, bool, f->nvalues),
		.taken = ARENA_ARRAY(c->arena, bool, f->nvalues),
		.left = MOST_AHEAD};
	for (ir_op *o = wait, *next; o && (o == wait || passable(o)); o = next) {
		next = o->next;
		for (unsigned i = 0; i < o->nresults; i++) a.behind[o->results[i]->id] = true;
		if (o->kind == IR_LOAD) load_ahead(&a, o);
	}
}

static void overlap(pass_context *c, ir_func *f, ir_block *b)
{
	for (ir_op *loop = b->first; loop; loop = loop->next) {
		for (unsigned r = 0; r < loop->nregions; r++) overlap(c, f, loop->regions[r]);
		ir_op *wait = loop->kind == IR_FOR ? wait_behind(loop) : NULL, *to = wait;
		if (!wait) continue;
		needed n = {ARENA_ARRAY(c->arena, bool, f->nvalues)};
		need(&n, loop);
		for (ir_op *o = loop->prev, *prev; o; o = prev) {
			prev = o->prev;
			if (movable(&n, o)) {
				ir_move_before(o, b, to);
				to = o;
			} else
				need(&n, o);
		}
		lift(c, f, wait);
	}
}

bool pass_overlap_epilogue(pass_context *c, ir_func *f)
{
	overlap(c, f, f->body);
	return true;
}
