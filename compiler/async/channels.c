/* Channels: loads of products' operands, anywhere in the program, become copies that a producer makes ahead.
 *
 * In: a mapped function in which products stand where they are begun and their waits where they are needed.  Out: where
 * it fits, each load by a tensor map is taken apart into operations in an order in which one thread could do all of
 * them; what is the producer's has its partition, and specialise_warps.c gives each half to its warps:
 *
 *     %x = bulk_load ..                         mbarrier_wait empty[slot], the other parity     {producer}
 *     ..                                        mbarrier_expect full[slot]; bulk_copy ..        {producer}
 *     %p = wgmma %q, %x              ->         ..
 *     %s = wgmma_wait %p                        mbarrier_wait full[slot], parity
 *                                               %p = wgmma %q, r[slot]
 *                                               %s = wgmma_wait %p
 *                                               mbarrier_arrive empty[slot]
 *
 * The one idea: a *channel* is a multibuffer with its barriers, and its cursor, slot and parity, is a variable that
 * each load advances: it goes through branches and loops as any variable does (thread_block).  So a load in front of a
 * loop, one in it and one behind it may share a channel, and loads that are read at different times have different
 * ones.  A slot is released behind the wait that says that its last reader is done, wherever that stands; one that
 * threads read for themselves, behind the first operation that needs what they read; one that both read, behind both.
 *
 * No deadlock: a load of a channel begins, in program order, behind the release of the one before, or has a channel of
 * its own (nesting_of); so what the producer waits for needs only copies that it has begun before.
 *
 * Loops in which only products see their sums and their factors are pipeline.c's: they release a slot an iteration
 * later. */
#include "bulk.h"
#include "passes/passes.h"
#include "pipeline.h"
#include "scratch.h"
#include "target/nvptx/mma/wgmma.h"

enum { MOST_SITES = 32, MOST_STAGES = 8, SLACK = 8 * 1024 };

/* A load that goes by a channel. */
typedef struct site {
	ir_op *load;
	consumer by[MOST_PRODUCTS]; /* products that read the slot */
	unsigned nby;
	ir_op *first_read; /* in the load's block, the first that takes the tile from registers; null: products only */
	ir_op *first_use;  /* there, of all */
	ir_op *last_use;   /* there: behind it nobody reads the slot any more */
	bool releases_later; /* last_use stands behind the read; else the slot is released right behind that */
	unsigned nesting;    /* loads of the same map whose tile lives while this one is made */
	unsigned channel;
	unsigned parts; /* blocks of a slot: one for each group of rows, or one for all */
} site;

typedef struct channel {
	const site *like; /* its first load */
	unsigned stages;
	uint32_t bytes; /* of a slot */
	uint32_t expected;
	bool loops;                           /* slots are filled again */
	bool spans_loop;                      /* its tile lives round a loop: one or two slots are enough */
	ir_value *multibuffer, *full, *empty; /* empty null: each slot is filled once */
	unsigned steps;  /* whose cursor it has: the first channel's that is filled in step with it */
	unsigned loaded; /* while threading: its loads since the cursor came into the block, or out of a region */
} channel;

typedef struct cursor {
	ir_value *slot, *parity;
} cursor;

typedef struct channels {
	pass_context *context;
	ir_func *func;
	site sites[MOST_SITES];
	unsigned nsites;
	channel at[MOST_SITES];
	unsigned n;
	atomics sent; /* on whose results the sites' copies depend */
	bool ends;    /* scratch behind the last reader lies where the multibuffers do */
} channels;

/* ---- who reads a load's tile ---- */

/* Both factors of a product may not be the tile, and each has to read what the copy writes. */
static bool can_read(const channels *c, const site *s, const consumer *r)
{
	ir_type t = s->load->results[0]->type;
	bulk_shape shape;
	wgmma_shape sum;
	wgmma_tile tile;
	if (!bulk_shape_of(t, &shape) || t.rank != 2) return false;
	if (t.elem == SCALAR_F32 && !bulk_rounds(s->load)) return false;
	if (ir_arg(r->op, 1 - r->arg) == r->tile) return false;
	if (!wgmma_shape_of(r->op->results[0]->type, c->func->num_warps, wgmma_widest(c->func), &sum)) return false;
	unsigned k = (r->arg ? 0 : 1) ^ r->transposed;
	return wgmma_tile_make(t, 1, k, r->arg ? sum.n : 64, &tile) && tile.swizzle == shape.swizzle;
}

/* Somebody takes the tile from registers: o, or what stands around it in the load's block. */
static void add_read(site *s, ir_op *o)
{
	o = ir_in_block(s->load->block, o);
	if (!s->first_read || ir_precedes(o, s->first_read)) s->first_read = o;
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
static bool find_readers(const channels *c, site *s, const ir_value *v, bool transposed)
{
	bool others = false;
	for (const ir_use *u = v->uses; u; u = u->next) {
		ir_op *o = u->user;
		bool passes = o->kind == IR_PERMUTE || (o->kind == IR_CONVERT_LAYOUT && is_factor(o)), other = !passes;
		if (passes) {
			bool swaps = o->kind == IR_PERMUTE && ir_unpack(ir_get_order(o), 0) == 1;
			other = find_readers(c, s, o->results[0], transposed ^ swaps);
		} else if (o->kind == IR_WGMMA && (o->args[0] == u || o->args[1] == u)) {
			consumer r = {.op = o, .tile = v, .arg = o->args[1] == u, .transposed = transposed};
			other = s->nby == MOST_PRODUCTS || !can_read(c, s, &r);
			if (!other) s->by[s->nby++] = r;
		}
		if (other) add_read(s, o);
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
static bool reads_slot(const site *s, const ir_op *product, unsigned i)
{
	for (unsigned k = 0; k < s->nby; k++)
		if (s->by[k].op == product && s->by[k].arg == i) return true;
	return false;
}

static bool needs(const site *s, const ir_op *o, const ir_op *value)
{
	for (uint32_t i = 0; i < o->nargs; i++)
		if (ir_arg(o, i)->def == value && !reads_slot(s, o, i)) return true;
	return false;
}

/* The first operation that cannot begin before the numbers that threads read are there: a product or what writes to
 * memory, of what is computed of them.  A load's numbers come later than its instruction is over, and copies do not
 * queue up behind it.  Null: it is not to be found in front of the next loop or branch. */
static ir_op *blocking_use(const site *s)
{
	enum { MOST = 256 };
	const ir_op *computed[MOST] = {s->load};
	unsigned n = 1;
	for (ir_op *o = s->load->next; o && n < MOST; o = o->next) {
		bool uses = false;
		for (unsigned i = 0; i < n && !uses; i++) uses = needs(s, o, computed[i]);
		if (o->nregions || (uses && ir_has(o, IR_TERMINATOR))) return NULL;
		if (!uses) continue;
		if (o->kind == IR_WGMMA || !ir_has(o, IR_PURE)) return o;
		computed[n++] = o;
	}
	return NULL;
}

/* From the first that reads the slot to the wait that covers the last product, and behind what needs what threads
 * read. */
static bool find_life(site *s)
{
	const ir_block *b = s->load->block;
	for (unsigned i = 0; i < s->nby; i++) {
		ir_op *first = ir_in_block(b, s->by[i].op), *wait = wait_that_covers(s->by[i].op);
		ir_op *last = wait ? ir_in_block(b, wait) : NULL;
		if (!first || !last) return false;
		if (!s->first_use || ir_precedes(first, s->first_use)) s->first_use = first;
		if (!s->last_use || ir_precedes(s->last_use, last)) s->last_use = last;
	}
	if (!s->first_read) return s->first_use != NULL;
	ir_op *blocking = blocking_use(s), *end = blocking ? blocking : s->first_read;
	if (!s->first_use || ir_precedes(s->first_read, s->first_use)) s->first_use = s->first_read;
	s->releases_later = blocking || (s->last_use && ir_precedes(end, s->last_use));
	if (!s->last_use || ir_precedes(s->last_use, end)) s->last_use = end;
	return true;
}

/* Loads of the same map in whose life this one is made. */
static unsigned nesting_of(const channels *c, const site *s)
{
	unsigned n = 0;
	for (unsigned i = 0; i < c->nsites; i++) {
		const site *other = &c->sites[i];
		if (other == s || ir_arg(other->load, 0) != ir_arg(s->load, 0)) continue;
		const ir_op *here = ir_in_block(other->load->block, s->load);
		if (!here || here == other->load || !ir_precedes(other->load, here) || !other->last_use) continue;
		n += ir_precedes(here, other->last_use);
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

/* Who reads the tile, and until when.  False: it goes by no channel. */
static bool find_reading(const channels *c, site *s)
{
	ir_op *load = s->load;
	ir_value *tile = load->results[0];
	bool inside = ir_loop_around(load) != NULL;
	bulk_shape shape;
	if (find_readers(c, s, tile, false) && inside) {
		sink_shapes(load);
		*s = (site){.load = load};
		find_readers(c, s, tile, false);
	}
	if (s->nby && (!s->first_read || inside) && find_life(s)) return true;
	*s = (site){.load = load}; /* as it lies, by threads alone */
	if (!inside || !bulk_shape_of(tile->type, &shape)) return false;
	sink_shapes(load);
	for (const ir_use *u = tile->uses; u; u = u->next) add_read(s, u->user);
	return find_life(s);
}

static void find_site(ir_op *o, void *context)
{
	channels *c = context;
	site s = {.load = o};
	if (o->kind != IR_BULK_LOAD || c->nsites == MOST_SITES || ir_get_shares(o) > 1) return;
	uint32_t nsent = c->sent.n;
	if (partition_refusal(c->context, c->func, o, &c->sent)) {
		c->sent.n = nsent;
		return;
	}
	if (!find_reading(c, &s)) {
		c->sent.n = nsent;
		return;
	}
	s.parts = row_group_parts(c->func, o);
	c->sites[c->nsites++] = s;
}

static const char *refusal(const channels *c)
{
	const ir_func *f = c->func;
	if (!target_can(c->context->target, TARGET_SETMAXNREG)) return "only sm_90a hands registers over";
	if (f->num_warps != 4 && f->num_warps != 8 && f->num_warps != 16) return "it goes with 4, 8 or 16 warps";
	if (f->maxnreg) return "maxnreg is given";
	if (f->num_ctas > 1) return "programs of a cluster are in step";
	return NULL;
}

/* ---- which channels, and how many slots ---- */

static bool spans_loop(const site *s)
{
	for (const ir_op *o = s->load; o && o != s->last_use; o = o->next)
		if (ir_is_loop(o)) return true;
	return s->last_use && (ir_is_loop(s->last_use) || s->last_use->nregions);
}

static void find_channels(channels *c)
{
	for (unsigned i = 0; i < c->nsites; i++) {
		site *s = &c->sites[i];
		ir_type t = s->load->results[0]->type;
		unsigned k = 0;
		while (k < c->n && !(ir_arg(c->at[k].like->load, 0) == ir_arg(s->load, 0) &&
					   c->at[k].like->parts == s->parts && c->at[k].like->nesting == s->nesting))
			k++;
		s->channel = k;
		if (k == c->n) {
			uint32_t bytes = (uint32_t)ir_elements(t) * ir_element_bytes(t);
			c->at[c->n++] = (channel){.like = s,
				.expected = bytes * s->parts,
				.bytes = (bytes + BULK_ALIGN - 1) / BULK_ALIGN * BULK_ALIGN * s->parts};
		}
		c->at[k].loops |= ir_loop_around(s->load) != NULL;
		c->at[k].spans_loop |= spans_loop(s);
	}
}

typedef struct rest {
	const channels *c;
	uint32_t most;
	unsigned several;
	bool over; /* the last reader has been seen, and multibuffers end behind it */
} rest;

/* Scratch of what stays: factors in channels need none, nor do the conversions that bring them to registers. */
static void add_scratch(ir_op *o, void *context)
{
	rest *r = context;
	uint32_t bytes = scratch_bytes(r->c->func, o), taken = 0;
	for (unsigned i = 0; i < r->c->nsites; i++) {
		const site *s = &r->c->sites[i];
		if (s->load == o) bytes = 0;
		for (unsigned k = 0; k < s->nby; k++) {
			if (s->by[k].op == o) taken += r->c->at[s->channel].bytes;
			if (s->by[k].tile->def == o) bytes = 0;
		}
	}
	bytes = bytes > taken && !r->over ? bytes - taken : 0;
	if (bytes > r->most) r->most = bytes;
	r->several += bytes > 0;
}

/* In the function's own block the last that makes or reads a tile: behind it nothing is in flight. */
static ir_op *last_of(const channels *c)
{
	ir_op *last = NULL;
	for (unsigned i = 0; i < c->nsites; i++) {
		ir_op *made = ir_in_block(c->func->body, c->sites[i].load), *o = made;
		if (c->sites[i].last_use) o = ir_in_block(c->func->body, c->sites[i].last_use);
		if (ir_precedes(o, made)) o = made;
		if (!last || ir_precedes(last, o)) last = o;
	}
	return last;
}

/* Bytes beside the multibuffers. */
static uint32_t bytes_of_rest(const channels *c)
{
	rest r = {.c = c};
	const ir_op *last = last_of(c);
	for (ir_op *o = c->func->body->first; o; o = o->next) {
		add_scratch(o, &r);
		for (unsigned i = 0; i < o->nregions; i++) ir_walk(o->regions[i], add_scratch, &r);
		r.over |= c->ends && o == last;
	}
	return r.most + (r.several > 1 ? SLACK : 0) + BULK_ALIGN;
}

static unsigned wanted_stages(const channels *c, const channel *ch)
{
	const ir_op *loop = ir_loop_around(ch->like->load);
	unsigned n = c->func->num_stages;
	for (unsigned i = 0; i < c->nsites; i++) {
		const site *s = &c->sites[i];
		loop = ir_loop_around(s->load);
		if (&c->at[s->channel] == ch && loop && loop->kind == IR_FOR && ir_get_num_stages(loop))
			n = ir_get_num_stages(loop);
	}
	if (!ch->loops) return 1;
	if (n > MOST_STAGES) n = MOST_STAGES;
	return n < 2 ? 2 : ch->spans_loop ? 2 : n;
}

/* Where all do not fit beside the scratch of what follows, that lies where the multibuffers did, behind a barrier.
 * Then takes slots away where they are most, of a tile that lives round a loop the second one first; false: two each do
 * not fit. */
static bool choose_stages(channels *c)
{
	uint32_t most = c->context->target->shared_bytes;
	if (c->func->max_shared < most) most = c->func->max_shared;
	uint64_t bytes = 0;
	for (unsigned i = 0; i < c->n; i++) {
		c->at[i].stages = wanted_stages(c, &c->at[i]);
		bytes += (uint64_t)c->at[i].stages * c->at[i].bytes + 2 * MOST_STAGES * 8;
	}
	bytes += c->sent.n * SENT_BYTES;
	c->ends = !c->sent.n && bytes + bytes_of_rest(c) > most; /* numbers that are sent lie there to the end */
	bytes += bytes_of_rest(c);
	while (bytes > most) {
		channel *least = NULL;
		for (unsigned i = 0; i < c->n; i++) {
			channel *ch = &c->at[i];
			if (ch->stages <= (ch->spans_loop || !ch->loops ? 1u : 2u)) continue;
			if (!least || (ch->spans_loop && !least->spans_loop) ||
				(ch->spans_loop == least->spans_loop && ch->stages > least->stages))
				least = ch;
		}
		if (!least) return false;
		least->stages--;
		bytes -= least->bytes;
	}
	return true;
}

/* ---- what a load becomes ---- */

static void make_channel(channels *c, channel *ch, ir_builder *b)
{
	const ir_op *load = ch->like->load;
	const ir_value *tile = load->results[0];
	bulk_shape shape;
	bulk_shape_of(tile->type, &shape);
	b->at = load->at;
	ch->multibuffer = ir_build1(b, IR_MULTIBUFFER, tile->type, 0, NULL);
	ch->multibuffer->layout = tile->layout;
	ir_set_stages(ch->multibuffer->def, ch->stages * ch->like->parts);
	ir_set_swizzle(ch->multibuffer->def, tile->type.rank == 2 ? shape.swizzle : 0);
	ir_set_fast(ch->multibuffer->def, tile->type.rank - 1u);
	pipeline_hand_on_note(c->context, load, ch->multibuffer->def);
}

/* Behind all multibuffers, so that what takes their bytes in the end leaves these alone. */
static void make_barriers(channels *c, channel *ch, ir_builder *b)
{
	b->at = ch->like->load->at;
	for (unsigned i = 0; i < 2; i++) {
		if (i && !ch->loops) break;
		ir_value *v = ir_build1(b, IR_MBARRIERS, ir_scalar_type(SCALAR_I32), 0, NULL);
		ir_set_count(v->def, ch->stages);
		ir_set_arrivals(v->def, i ? ir_warps(c->func) : 1);
		*(i ? &ch->empty : &ch->full) = v;
	}
}

static ir_op *producers(ir_op *o)
{
	ir_set_partition(o, IR_PARTITION_PRODUCER);
	return o;
}

static void build_copy(const channel *ch, ir_builder *b, const ir_op *load, cursor at)
{
	ir_value *args[5 + IR_MAP_RANK] = {ch->multibuffer, at.slot, ch->full};
	unsigned n = 3;
	if (ch->empty) {
		ir_value *other = ir_binary(b, IR_XOR, at.parity, ir_constant_int(b, SCALAR_I32, 1));
		ir_value *free[] = {ch->empty, at.slot, other};
		producers(ir_build(b, IR_MBARRIER_WAIT, 3, free, 0, NULL, 0));
	}
	ir_value *come[] = {ch->full, at.slot};
	ir_set_bytes(producers(ir_build(b, IR_MBARRIER_EXPECT, 2, come, 0, NULL, 0)), ch->expected);
	for (unsigned k = 0; k < load->nargs; k++) args[n++] = ir_arg(load, k);
	row_group_copies(b, load, ch->like->parts, n, args);
}

static cursor advance(const channel *ch, ir_builder *b, cursor at)
{
	if (!ch->loops) return at;
	if (ch->stages == 1)
		return (cursor){at.slot, ir_binary(b, IR_XOR, at.parity, ir_constant_int(b, SCALAR_I32, 1))};
	ir_value *slot = pipeline_next_slot(b, at.slot, ch->stages);
	return (cursor){slot, pipeline_next_parity(b, at.slot, at.parity, ch->stages)};
}

/* Other loads know the old product. */
static void read_from(channels *c, const channel *ch, const consumer *r, ir_value *slot)
{
	const ir_op *old = r->op;
	ir_op *again = pipeline_read_slot(c->func, r, ch->multibuffer, slot);
	for (unsigned i = 0; i < c->nsites; i++) {
		site *s = &c->sites[i];
		if (s->first_use == old) s->first_use = again;
		if (s->last_use == old) s->last_use = again;
		if (s->first_read == old) s->first_read = again;
		for (unsigned k = 0; k < s->nby; k++)
			if (s->by[k].op == old) s->by[k].op = again;
	}
}

static void erase_unused(ir_op *o)
{
	for (const ir_use *u = o->results[0]->uses, *next; u; u = next) {
		next = u->next;
		erase_unused(u->user);
	}
	if (!o->results[0]->uses) ir_erase(o);
}

/* Only products took what o makes, and they read the slot by now. */
static bool is_unused(const ir_op *o)
{
	if (o->kind != IR_PERMUTE && o->kind != IR_CONVERT_LAYOUT) return false;
	for (const ir_use *u = o->results[0]->uses; u; u = u->next)
		if (!is_unused(u->user)) return false;
	return true;
}

static void take_instead(const ir_use *u, ir_value *v)
{
	unsigned i = 0;
	while (u->user->args[i] != u) i++;
	ir_set_arg(u->user, i, v);
}

/* The tile, in the layout in which the load would have given it; all lanes have read it then. */
static void read_tile(const channel *ch, site *s, ir_builder *b, ir_value *slot)
{
	ir_value *tile = s->load->results[0], *args[] = {ch->multibuffer, slot};
	ir_value *read = ir_build1(b, IR_MULTIBUFFER_READ, tile->type, 2, args);
	read->name = tile->name;
	read->layout = tile->layout;
	for (const ir_use *u = tile->uses, *next; u; u = next) {
		next = u->next;
		if (!is_unused(u->user)) take_instead(u, read);
	}
	if (!s->releases_later) s->last_use = read->def;
}

static void open_site(channels *c, site *s, cursor at)
{
	const channel *ch = &c->at[s->channel];
	ir_block *block = s->load->block;
	ir_builder b = {.func = c->func, .block = block, .before = s->load, .at = s->load->at};
	build_copy(ch, &b, s->load, at);
	b.before = s->first_use;
	ir_value *come[] = {ch->full, at.slot, at.parity};
	ir_build(&b, IR_MBARRIER_WAIT, 3, come, 0, NULL, 0);
	ir_value *own = row_group_slot(&b, at.slot, s->parts);
	for (unsigned k = 0; k < s->nby; k++) read_from(c, ch, &s->by[k], own);
	b.before = s->first_read;
	if (s->first_read) read_tile(ch, s, &b, own);
	b.before = s->last_use->next;
	ir_value *left[] = {ch->empty, at.slot};
	if (ch->empty) ir_build(&b, IR_MBARRIER_ARRIVE, 2, left, 0, NULL, 0);
}

/* ---- the cursor's way ---- */

static site *site_of(channels *c, const ir_op *load)
{
	for (unsigned i = 0; load->kind == IR_BULK_LOAD && i < c->nsites; i++)
		if (c->sites[i].load == load) return &c->sites[i];
	return NULL;
}

/* The operation, or one in its regions, is a load of the channel's. */
static bool holds_site(const channels *c, unsigned k, const ir_op *o)
{
	for (unsigned i = 0; i < c->nsites; i++)
		if (c->sites[i].channel == k && ir_encloses(o, c->sites[i].load)) return true;
	return false;
}

/* The next operation, from `o` on, that the channel's cursor meets. */
static const ir_op *next_met(const channels *c, unsigned k, const ir_op *o)
{
	while (o && !holds_site(c, k, o)) o = o->next;
	return o;
}

/* Loads of two channels take turns everywhere, so that a cursor serves both. */
static bool in_step(const channels *c, unsigned x, unsigned y, const ir_block *b)
{
	const ir_op *o = next_met(c, x, b->first), *p = next_met(c, y, b->first);
	for (; o && p; o = next_met(c, x, o->next), p = next_met(c, y, p->next)) {
		if (!o->nregions != !p->nregions || (o->nregions && o != p)) return false;
		for (unsigned r = 0; r < o->nregions; r++)
			if (!in_step(c, x, y, o->regions[r])) return false;
	}
	return !o && !p;
}

static void find_steps(channels *c)
{
	for (unsigned i = 0; i < c->n; i++) {
		unsigned k = 0;
		while (k < i &&
			!(c->at[k].steps == k && c->at[k].stages == c->at[i].stages && in_step(c, k, i, c->func->body)))
			k++;
		c->at[i].steps = k;
	}
}

static cursor as_arguments(ir_block *b)
{
	ir_type t = ir_scalar_type(SCALAR_I32);
	ir_value *slot = ir_block_arg(b, t, NULL);
	return (cursor){slot, ir_block_arg(b, t, NULL)};
}

static void pass_on(const channels *c, ir_op *o, cursor at)
{
	ir_add_arg(c->func, o, at.slot);
	ir_add_arg(c->func, o, at.parity);
}

static cursor as_results(const channels *c, ir_op *o)
{
	ir_value *slot = ir_add_result(c->func, o, ir_scalar_type(SCALAR_I32));
	return (cursor){slot, ir_add_result(c->func, o, ir_scalar_type(SCALAR_I32))};
}

static cursor thread_block(channels *c, unsigned steps, ir_block *b, cursor at);

/* The cursor through the regions of an if or a loop, as they run. */
static cursor thread_regions(channels *c, unsigned steps, ir_op *o, cursor at)
{
	if (o->kind == IR_IF) {
		for (unsigned r = 0; r < 2; r++) {
			cursor end = thread_block(c, steps, o->regions[r], at);
			pass_on(c, o->regions[r]->last, end);
		}
		return as_results(c, o);
	}
	pass_on(c, o, at);
	for (unsigned r = 0; r < o->nregions; r++) {
		cursor end = thread_block(c, steps, o->regions[r], as_arguments(o->regions[r]));
		pass_on(c, o->regions[r]->last, end);
	}
	return as_results(c, o);
}

/* The cursor through a block, of all channels in step: `at` in front of it, the result behind it.
 * stands[n] is the cursor after n advances, so a channel's load number k here, from 0, takes stands[k], and the first
 * channel to come to its load k makes stands[k + 1].  Of two channels x and y:
 *     load x    stands[0], advances to stands[1]
 *     load y    stands[0]
 *     load x    stands[1], advances to stands[2] */
static cursor thread_block(channels *c, unsigned steps, ir_block *b, cursor at)
{
	cursor stands[MOST_SITES + 1] = {at};
	unsigned n = 0;
	for (unsigned i = 0; i < c->n; i++) c->at[i].loaded = 0;
	for (ir_op *o = b->first, *next; o; o = next) {
		next = o->next;
		site *s = site_of(c, o);
		if (s && c->at[s->channel].steps == steps) {
			unsigned k = c->at[s->channel].loaded++;
			if (k == n) {
				ir_builder here = {.func = c->func, .block = b, .before = o, .at = o->at};
				stands[++n] = advance(&c->at[steps], &here, stands[k]);
			}
			open_site(c, s, stands[k]);
		} else if (o->nregions && holds_site(c, steps, o)) {
			stands[0] = thread_regions(c, steps, o, stands[n]);
			n = 0;
			for (unsigned i = 0; i < c->n; i++) c->at[i].loaded = 0;
		}
	}
	return stands[n];
}

static ir_op *first_of(const channels *c)
{
	ir_op *first = NULL;
	for (unsigned i = 0; i < c->nsites; i++) {
		ir_op *o = ir_in_block(c->func->body, c->sites[i].load);
		if (!first || ir_precedes(o, first)) first = o;
	}
	return first;
}

static void end_multibuffers(const channels *c, ir_builder *b)
{
	for (unsigned i = 0; i < c->n; i++) {
		ir_value *barriers[] = {c->at[i].full, c->at[i].empty};
		for (unsigned k = 0; k < 2; k++)
			if (barriers[k]) ir_build(b, IR_MBARRIERS_END, 1, &barriers[k], 0, NULL, 0);
	}
	ir_build(b, IR_MULTIBUFFER_END, 0, NULL, 0, NULL, 0);
}

bool pass_channels(pass_context *context, ir_func *f)
{
	channels *c = ARENA_NEW(context->arena, channels);
	*c = (channels){.context = context, .func = f};
	if (refusal(c) || !works_beside_products(f)) return true;
	ir_walk(f->body, find_site, c);
	bool loops = false;
	for (unsigned i = 0; i < c->nsites; i++) {
		c->sites[i].nesting = nesting_of(c, &c->sites[i]);
		loops |= ir_loop_around(c->sites[i].load) != NULL;
	}
	if (!loops) return true;
	find_channels(c);
	if (!choose_stages(c)) return true;
	find_steps(c);
	ir_builder head = {.func = f, .block = f->body, .before = first_of(c), .at = f->at};
	ir_builder behind = {.func = f, .block = f->body, .before = last_of(c)->next, .at = f->at};
	for (unsigned i = 0; i < c->n; i++) make_channel(c, &c->at[i], &head);
	for (unsigned i = 0; i < c->n; i++) make_barriers(c, &c->at[i], &head);
	for (unsigned i = 0; i < c->n; i++) {
		ir_value *zero = ir_constant_int(&head, SCALAR_I32, 0);
		if (c->at[i].steps == i) thread_block(c, i, f->body, (cursor){zero, zero});
	}
	if (c->ends) end_multibuffers(c, &behind);
	for (unsigned i = 0; i < c->nsites; i++) erase_unused(c->sites[i].load);
	return true;
}
