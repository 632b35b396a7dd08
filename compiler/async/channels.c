/* Loads of products' operands, anywhere in the program, go by channels: as copies that a producer makes ahead.
 *
 * In: a mapped function in which products stand where they are begun and their waits where they are needed.  Out: where
 * it fits, each load by a tensor map is taken apart into what channel.c makes of it:
 *
 *     %x = bulk_load ..                         mbarrier_wait empty[slot], the other parity     {producer}
 *     ..                                        mbarrier_expect full[slot]; bulk_copy ..        {producer}
 *     %p = wgmma %q, %x              ->         ..
 *     %s = wgmma_wait %p                        mbarrier_wait full[slot], parity
 *                                               %p = wgmma %q, r[slot]
 *                                               %s = wgmma_wait %p
 *                                               mbarrier_arrive empty[slot]
 *
 * The one idea: each load has its own life, from the first that reads its tile to the last.  So a load in front of a
 * loop, one in it and one behind it may share a channel, and loads that are read at different times have different
 * ones.  A slot is released behind the wait that says that its last reader is done, wherever that stands; one that
 * threads read for themselves, behind the first operation that needs what they read; one that both read, behind both.
 *
 * No deadlock: a load of a channel begins, in program order, behind the release of the one before, or has a channel of
 * its own (nesting_of); so what the producer waits for needs only copies that it has begun before.
 *
 * Loops in which only products see their sums and their factors are pipeline.c's: all loads of an iteration share a
 * channel there, and products that run on release a slot an iteration later. */
#include "bulk.h"
#include "channel.h"
#include "passes/passes.h"
#include "scratch.h"
#include "target/nvptx/mma/wgmma.h"

#include <assert.h>

enum { MOST_LOADS = 32, MOST_STAGES = 8 };

/* A load that goes by a channel; its site says how long its tile lives. */
typedef struct operand {
	staged of;
	site site;
	unsigned nesting; /* loads of the same map whose tile lives while this one is made */
	unsigned channel;
} operand;

/* A channel before it is made. */
typedef struct plan {
	channel channel;
	const operand *like; /* its first load */
	uint32_t bytes;      /* of a slot */
	bool spans_loop;     /* its tile lives round a loop: one or two slots are enough */
} plan;

typedef struct finder {
	pass_context *context;
	ir_func *func;
	operand loads[MOST_LOADS];
	unsigned n;
	plan plans[MOST_LOADS];
	unsigned nplans;
	atomics sent; /* on whose results the copies depend */
	bool ends;    /* scratch behind the last reader lies where the multibuffers do */
} finder;

/* ---- who reads a load's tile ---- */

/* Both factors of a product may not be the tile, and each has to read what the copy writes. */
static bool can_read(const finder *f, const operand *l, const consumer *r)
{
	ir_type t = l->of.load->results[0]->type;
	bulk_shape shape;
	wgmma_shape sum;
	wgmma_tile tile;
	if (!bulk_shape_of(t, &shape) || t.rank != 2) return false;
	if (t.elem == SCALAR_F32 && !bulk_rounds(l->of.load)) return false;
	if (ir_arg(r->op, 1 - r->arg) == r->tile) return false;
	if (!wgmma_shape_of(r->op->results[0]->type, f->func->num_warps, wgmma_widest(f->func), &sum)) return false;
	unsigned k = (r->arg ? 0 : 1) ^ r->transposed;
	return wgmma_tile_make(t, 1, k, r->arg ? sum.n : 64, &tile) && tile.swizzle == shape.swizzle;
}

/* Somebody takes the tile from registers: o, or what stands around it in the load's block. */
static void add_read(operand *l, ir_op *o)
{
	o = ir_in_block(l->of.load->block, o);
	if (!l->of.first_read || ir_precedes(o, l->of.first_read)) l->of.first_read = o;
}

/* A conversion of the tile to a factor in registers, which products may as well read from shared memory. */
static bool is_factor(const ir_op *conversion)
{
	for (const ir_use *u = conversion->results[0]->uses; u; u = u->next)
		if (u->user->kind != IR_WGMMA || u->user->args[0] != u) return false;
	return true;
}

/* Who takes the tile, through permutations and conversions to a factor: products that can read the slot, and others.
 * True: somebody else than such products needs `v` in registers. */
static bool find_readers(const finder *f, operand *l, const ir_value *v, bool transposed)
{
	bool others = false;
	for (const ir_use *u = v->uses; u; u = u->next) {
		ir_op *o = u->user;
		bool passes = o->kind == IR_PERMUTE || (o->kind == IR_CONVERT_LAYOUT && is_factor(o)), other = !passes;
		if (passes) {
			bool swaps = o->kind == IR_PERMUTE && ir_unpack(ir_get_order(o), 0) == 1;
			other = find_readers(f, l, o->results[0], transposed ^ swaps);
		} else if (o->kind == IR_WGMMA && (o->args[0] == u || o->args[1] == u)) {
			consumer r = {.op = o, .tile = v, .arg = o->args[1] == u, .transposed = transposed};
			other = l->of.nby == MOST_PRODUCTS || !can_read(f, l, &r);
			if (!other) l->of.by[l->of.nby++] = r;
		}
		if (other) add_read(l, o);
		others |= other;
	}
	return others;
}

/* ---- until when ---- */

/* Behind it the product has been done; null: it may run on behind its block. */
static ir_op *wait_that_covers(const ir_op *product)
{
	unsigned since = 0;
	for (ir_op *o = product->next; o; o = o->next) {
		if (o->kind == IR_WGMMA_WAIT && ir_get_pending(o) <= since) return o;
		since += o->kind == IR_WGMMA;
	}
	return NULL;
}

/* What only spreads the tile over a shape stands in front of what computes with it. */
static void sink_shapes(ir_op *o)
{
	for (const ir_use *u = o->results[0]->uses, *next; u; u = next) {
		ir_op *user = u->user, *first = NULL;
		next = u->next;
		if (user->block != o->block || user->nresults != 1 || !ir_has(user, IR_SHAPE)) continue;
		sink_shapes(user);
		for (const ir_use *w = user->results[0]->uses; w; w = w->next) {
			ir_op *by = ir_in_block(user->block, w->user);
			if (by && (!first || ir_precedes(by, first))) first = by;
		}
		if (first) ir_move_before(user, user->block, first);
	}
}

/* The product reads operand i from the slot. */
static bool reads_slot(const staged *s, const ir_op *product, unsigned i)
{
	for (unsigned k = 0; k < s->nby; k++)
		if (s->by[k].op == product && s->by[k].arg == i) return true;
	return false;
}

static bool needs(const staged *s, const ir_op *o, const ir_op *value)
{
	for (uint32_t i = 0; i < o->nargs; i++)
		if (ir_arg(o, i)->def == value && !reads_slot(s, o, i)) return true;
	return false;
}

/* The first operation that cannot begin before the numbers that threads read are there: a product or what writes to
 * memory, of what is computed of them.  A load's numbers come later than its instruction is over, and copies do not
 * queue up behind it; a dot reads what it alone takes by itself, while it multiplies.  Null: it is not to be found in
 * front of the next loop or branch. */
static ir_op *blocking_use(const staged *s)
{
	enum { MOST = 256 };
	const ir_op *computed[MOST] = {s->load};
	unsigned n = 1;
	for (ir_op *o = s->load->next; o && n < MOST; o = o->next) {
		bool uses = false;
		for (unsigned i = 0; i < n && !uses; i++) uses = needs(s, o, computed[i]);
		if (o->nregions || (uses && ir_has(o, IR_TERMINATOR))) return NULL;
		if (!uses) continue;
		if (o->kind == IR_WGMMA || o->kind == IR_DOT || !ir_has(o, IR_PURE)) return o;
		computed[n++] = o;
	}
	return NULL;
}

/* From the first that reads the slot to the wait that covers the last product, and behind what needs what threads
 * read. */
static bool find_life(operand *l)
{
	site *s = &l->site;
	const ir_block *b = l->of.load->block;
	for (unsigned i = 0; i < l->of.nby; i++) {
		ir_op *first = ir_in_block(b, l->of.by[i].op), *wait = wait_that_covers(l->of.by[i].op);
		ir_op *last = wait ? ir_in_block(b, wait) : NULL;
		if (!first || !last) return false;
		if (!s->first_use || ir_precedes(first, s->first_use)) s->first_use = first;
		if (!s->last_use || ir_precedes(s->last_use, last)) s->last_use = last;
	}
	ir_op *read = l->of.first_read;
	if (!read) return s->first_use != NULL;
	ir_op *blocking = blocking_use(&l->of), *end = blocking ? blocking : read;
	if (!s->first_use || ir_precedes(read, s->first_use)) s->first_use = read;
	s->read_is_last = !blocking && !(s->last_use && ir_precedes(end, s->last_use));
	if (!s->last_use || ir_precedes(s->last_use, end)) s->last_use = end;
	return true;
}

/* Loads of the same map in whose life this one is made. */
static unsigned nesting_of(const finder *f, const operand *l)
{
	unsigned n = 0;
	for (unsigned i = 0; i < f->n; i++) {
		const operand *other = &f->loads[i];
		const ir_op *load = other->of.load;
		if (other == l || ir_arg(load, 0) != ir_arg(l->of.load, 0)) continue;
		const ir_op *here = ir_in_block(load->block, l->of.load);
		if (!here || here == load || !ir_precedes(load, here) || !other->site.last_use) continue;
		n += ir_precedes(here, other->site.last_use);
	}
	return n;
}

/* ---- which loads ---- */

static bool is_seen(const ir_op *wait)
{
	for (const ir_use *u = wait->results[0]->uses; u; u = u->next)
		if (u->user->kind != IR_WGMMA && u->user->kind != IR_YIELD) return true;
	return false;
}

static void find_work(ir_op *o, void *context)
{
	bool *found = context;
	if (!ir_loop_around(o)) return;
	if (o->kind == IR_WGMMA_WAIT && o->nargs) *found |= is_seen(o);
	if (o->kind == IR_BULK_LOAD) *found |= bulk_feeds_products_and_threads(o);
}

/* A loop computes with its products' sums, or with their factors. */
static bool works_beside_products(const ir_func *f)
{
	bool found = false;
	ir_walk(f->body, find_work, &found);
	return found;
}

static void begin(operand *l, ir_op *load)
{
	const ir_value *tile = load->results[0];
	bulk_shape shape = {0};
	bulk_shape_of(tile->type, &shape);
	*l = (operand){.of = {.load = load, .block = tile->type, .bulk = true}, .site = {.at = load->at, .fill = load}};
	l->of.swizzle = tile->type.rank == 2 ? shape.swizzle : 0;
	l->of.fast = tile->type.rank - 1u;
}

/* Who reads the tile, and until when.  False: it goes by no channel. */
static bool find_reading(const finder *f, operand *l, ir_op *load)
{
	const ir_value *tile = load->results[0];
	bool inside = ir_loop_around(load) != NULL;
	bulk_shape shape;
	begin(l, load);
	if (find_readers(f, l, tile, false) && inside) {
		sink_shapes(load);
		begin(l, load);
		find_readers(f, l, tile, false);
	}
	if (l->of.nby && (!l->of.first_read || inside) && find_life(l)) return true;
	begin(l, load); /* as it lies, by threads alone */
	if (!inside || !bulk_shape_of(tile->type, &shape)) return false;
	sink_shapes(load);
	for (const ir_use *u = tile->uses; u; u = u->next) add_read(l, u->user);
	return find_life(l);
}

static void find_load(ir_op *o, void *context)
{
	finder *f = context;
	if (o->kind != IR_BULK_LOAD || f->n == MOST_LOADS || ir_get_shares(o) > 1) return;
	operand *l = &f->loads[f->n];
	uint32_t nsent = f->sent.n;
	if (partition_refusal(f->context, f->func, o, &f->sent) || !find_reading(f, l, o)) {
		f->sent.n = nsent;
		return;
	}
	l->of.parts = row_group_parts(f->func, o);
	f->n++;
}

/* ---- which channels, and how many slots ---- */

static bool spans_loop(const operand *l)
{
	const ir_op *last = l->site.last_use;
	for (const ir_op *o = l->of.load; o && o != last; o = o->next)
		if (ir_is_loop(o)) return true;
	return last && (ir_is_loop(last) || last->nregions);
}

static bool may_share(const operand *l, const operand *other)
{
	return ir_arg(l->of.load, 0) == ir_arg(other->of.load, 0) && l->of.parts == other->of.parts &&
	       l->nesting == other->nesting;
}

static void find_channels(finder *f)
{
	for (unsigned i = 0; i < f->n; i++) {
		operand *l = &f->loads[i];
		ir_type t = l->of.load->results[0]->type;
		unsigned k = 0;
		while (k < f->nplans && !may_share(l, f->plans[k].like)) k++;
		l->channel = k;
		if (k == f->nplans) {
			uint32_t bytes = (uint32_t)ir_elements(t) * ir_element_bytes(t);
			f->plans[f->nplans++] = (plan){.like = l,
				.channel = {.loads = &l->of, .nloads = 1, .expected = bytes * l->of.parts},
				.bytes = (bytes + BULK_ALIGN - 1) / BULK_ALIGN * BULK_ALIGN * l->of.parts};
		}
		f->plans[k].channel.loops |= ir_loop_around(l->of.load) != NULL;
		f->plans[k].spans_loop |= spans_loop(l);
		l->site.of = &f->plans[k].channel;
		l->site.loads = &l->of;
	}
}

typedef struct rest {
	const finder *f;
	uint32_t most;
	unsigned several;
	const ir_op *end; /* behind the last reader, where multibuffers end there */
	bool over;        /* it has been passed: the slots are free */
} rest;

/* Scratch of what stays: factors in channels need none, nor do the conversions that bring them to registers. */
static void add_scratch(ir_op *o, void *context)
{
	rest *r = context;
	r->over |= o == r->end;
	uint32_t bytes = scratch_lasts(o) ? 0 : scratch_bytes(r->f->func, o), taken = 0;
	for (unsigned i = 0; i < r->f->n; i++) {
		const operand *l = &r->f->loads[i];
		if (l->of.load == o) bytes = 0;
		for (unsigned k = 0; k < l->of.nby; k++) {
			if (l->of.by[k].op == o) taken += r->f->plans[l->channel].bytes;
			if (l->of.by[k].tile->def == o) bytes = 0;
		}
	}
	bytes = bytes > taken && !r->over ? bytes - taken : 0;
	if (bytes > r->most) r->most = bytes;
	r->several += bytes > 0;
}

/* The operation of a block in which, or as which, a load's tile is made, or read for the last time. */
enum { MADE, READ, ENDS };
static ir_op *end_of(const operand *l, const ir_block *b, unsigned which)
{
	return ir_in_block(b, which == MADE ? l->of.load : l->site.last_use);
}

/* The side of an `if` of the block that has all loads, their readers and what follows them; null: there is none. */
static ir_block *side_with_all(const finder *f, const ir_block *b)
{
	ir_op *around = end_of(&f->loads[0], b, MADE);
	for (unsigned i = 0; i < ENDS * f->n; i++)
		if (end_of(&f->loads[i / ENDS], b, i % ENDS) != around) return NULL;
	for (unsigned r = 0; r < around->nregions; r++)
		if (around->kind == IR_IF && ir_is_tail(f->func, around->regions[r])) return around->regions[r];
	return NULL;
}

/* The last that makes or reads a tile: behind it nothing is in flight. */
static ir_op *last_of(const finder *f)
{
	const ir_block *b = f->func->body;
	for (const ir_block *side; (side = side_with_all(f, b));) b = side;
	ir_op *last = NULL;
	for (unsigned i = 0; i < ENDS * f->n; i++) {
		ir_op *o = end_of(&f->loads[i / ENDS], b, i % ENDS);
		if (o && (!last || ir_precedes(last, o))) last = o;
	}
	return last;
}

/* Bytes beside the multibuffers. */
static uint32_t bytes_of_rest(const finder *f)
{
	rest r = {.f = f};
	if (f->ends) r.end = last_of(f)->next;
	ir_walk(f->func->body, add_scratch, &r);
	return r.most + (r.several > 1 ? SCRATCH_SLACK : 0) + BULK_ALIGN;
}

static unsigned wanted_stages(const finder *f, unsigned k)
{
	const plan *p = &f->plans[k];
	unsigned n = f->func->num_stages;
	for (unsigned i = 0; i < f->n; i++) {
		const ir_op *loop = ir_loop_around(f->loads[i].of.load);
		if (f->loads[i].channel == k && loop && loop->kind == IR_FOR && ir_get_num_stages(loop))
			n = ir_get_num_stages(loop);
	}
	if (!p->channel.loops) return 1;
	if (n > MOST_STAGES) n = MOST_STAGES;
	return n < 2 ? 2 : p->spans_loop ? 2 : n;
}

/* Where all do not fit beside the scratch of what follows, that lies where the multibuffers did, behind a barrier.
 * Then takes slots away where they are most, of a tile that lives round a loop the second one first; false: two each do
 * not fit. */
static bool choose_stages(finder *f)
{
	uint32_t most = f->context->target->shared_bytes;
	if (f->func->max_shared < most) most = f->func->max_shared;
	uint64_t bytes = scratch_place_lasting(f->func);
	for (unsigned i = 0; i < f->nplans; i++) {
		f->plans[i].channel.stages = wanted_stages(f, i);
		bytes += (uint64_t)f->plans[i].channel.stages * f->plans[i].bytes + 2 * MOST_STAGES * 8;
	}
	bytes += f->sent.n * SENT_BYTES;
	bool last =
		f->n < MOST_LOADS && !f->sent.n; /* no slots of others live on, nor room for numbers that are sent */
	f->ends = last && bytes + bytes_of_rest(f) > most;
	bytes += bytes_of_rest(f);
	while (bytes > most) {
		plan *least = NULL;
		for (unsigned i = 0; i < f->nplans; i++) {
			plan *p = &f->plans[i];
			unsigned stages = p->channel.stages;
			if (stages <= (p->spans_loop || !p->channel.loops ? 1u : 2u)) continue;
			if (!least || (p->spans_loop && !least->spans_loop) ||
				(p->spans_loop == least->spans_loop && stages > least->channel.stages))
				least = p;
		}
		if (!least) return false;
		least->channel.stages--;
		bytes -= least->bytes;
	}
	return true;
}

/* ---- what becomes of them ---- */

static ir_op *first_of(const finder *f)
{
	ir_op *first = NULL;
	for (unsigned i = 0; i < f->n; i++) {
		ir_op *o = ir_in_block(f->func->body, f->loads[i].of.load);
		if (!first || ir_precedes(o, first)) first = o;
	}
	return first;
}

static void end_multibuffers(const channels *c, ir_builder *b)
{
	for (uint32_t i = 0; i < c->at.n; i++) {
		ir_value *barriers[] = {c->at.at[i]->full, c->at.at[i]->empty};
		for (unsigned k = 0; k < 2; k++)
			if (barriers[k]) ir_build(b, IR_MBARRIERS_END, 1, &barriers[k], 0, NULL, 0);
	}
	ir_build(b, IR_MULTIBUFFER_END, 0, NULL, 0, NULL, 0);
}

static void build(finder *f)
{
	channels c = {.context = f->context, .func = f->func};
	ir_builder head = {.func = f->func, .block = f->func->body, .before = first_of(f), .at = f->func->at};
	ir_op *last = last_of(f);
	ir_builder behind = {.func = f->func, .block = last->block, .before = last->next, .at = f->func->at};
	for (unsigned i = 0; i < f->nplans; i++) vec_push(f->context->arena, &c.at, &f->plans[i].channel);
	for (unsigned i = 0; i < f->n; i++) vec_push(f->context->arena, &c.sites, &f->loads[i].site);
	for (uint32_t i = 0; i < c.at.n; i++) channel_make_multibuffers(&c, c.at.at[i], &head);
	for (uint32_t i = 0; i < c.at.n; i++) channel_make_barriers(&c, c.at.at[i], &head);
	for (uint32_t i = 0; i < c.sites.n; i++) channel_open(&c, c.sites.at[i]);
	cursor_thread(&c);
	if (f->ends) end_multibuffers(&c, &behind);
	for (uint32_t i = 0; i < c.sites.n; i++) channel_erase_loads(c.sites.at[i]);
}

bool pass_channels(pass_context *context, ir_func *func)
{
	finder *f = ARENA_NEW(context->arena, finder);
	*f = (finder){.context = context, .func = func};
	if (channels_refusal(context, func) || !works_beside_products(func)) return true;
	ir_walk(func->body, find_load, f);
	bool loops = false;
	for (unsigned i = 0; i < f->n; i++) {
		f->loads[i].nesting = nesting_of(f, &f->loads[i]);
		loops |= ir_loop_around(f->loads[i].of.load) != NULL;
	}
	if (!loops) return true;
	find_channels(f);
	if (choose_stages(f)) build(f);
	return true;
}
