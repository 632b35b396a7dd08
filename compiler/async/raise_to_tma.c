/* Loads by pointers that are a window of an array become blocks by tensor maps.
 *
 * In: tile IR.  Out: loads of a loop's products whose pointers and mask are those of a block of an array that the host
 * can describe have become bulk_loads, as those of tensors have:
 *     load a + i[:, None] * K + (l + k)[None, :], (i < M)[:, None] & (k + l < K)[None, :]
 *     ->
 *     bulk_load map, start of i, k           map: at a, M by K, rows K apart
 * The one idea: an address is a sum of products (affine.h).  Terms with the same factor that the host knows are
 * coordinates along one dimension of the array, of which that factor is the stride: K for the rows, 1 inside of them,
 * M * K for a batch.  So it does not matter whether pointers are moved on or made anew each iteration, nor where the
 * user put which offset.
 *
 * Where pointers and map could differ: an element that the mask leaves out has to lie outside of the map's extents and
 * the other way round (pointer_bounds.c); no coordinate is below 0 (pointer_range.c); products in i32, in which the
 * pointers of a larger array would wrap around, make the host look at the array's size.  A dimension without a bound
 * has no end.  Loads that no product takes stay: for them a copy through shared memory is a detour.  But rows of
 * numbers that stand beside products, an element a row or a column of theirs, come with the products' blocks: then one
 * thread makes all copies of an iteration, and it may be a producer. */
#include "bulk.h"
#include "analysis/pointer_analysis.h"

#include <assert.h>
#include <string.h>

/* ---- what the pointers say ---- */

static const char *tile_sides(window *w, const affine *pointer)
{
	assert(w->load->kind == IR_LOAD);
	ir_type t = w->load->results[0]->type;
	unsigned inner = 0;
	for (unsigned i = 0; i < pointer->n; i++) {
		affine_term host, device;
		if (pointer->term[i].place < 0) continue;
		window_split(w, &pointer->term[i], &host, &device);
		if (device.natoms) return "a stride is not the host's to know";
		if (host.factor <= 0) return "it runs backwards";
		for (unsigned k = 0; k < w->n; k++)
			if (w->side[k].place == pointer->term[i].place)
				return "its addresses are no sum of one index times a stride for each dimension";
		if (!window_new_side(w, &host, pointer->term[i].place)) return WINDOW_TOO_MANY;
		inner += host.factor == 1 && host.natoms == 0;
	}
	if (w->n != t.rank) return "its addresses do not depend on all of its dimensions";
	return inner == 1 ? NULL : "no dimension of its is known to have stride 1";
}

static const char *look(window *w)
{
	affine pointer;
	const char *why = NULL;
	if (!affine_of(&w->range.context, ir_arg(w->load, 0), &pointer)) return window_no_sum(ir_arg(w->load, 0));
	w->root = pointer.root;
	w->narrow = pointer.narrow;
	if (!pointer.root || pointer.root->def || pointer.root->block != w->range.context.func->body)
		return "its addresses begin at no pointer that is a parameter";
	if ((why = tile_sides(w, &pointer)) || (why = window_terms(w, &pointer)) || (why = window_bounds(w)) ||
		(why = window_range(w)))
		return why;
	return window_guard_size(w) ? NULL : WINDOW_TOO_MANY;
}

/* Scalars as they come: what the user has named is mostly a coordinate.  First with i32 products as one value, which is
 * the coordinate whether it wraps around or not; then with those that count a loop's iterations taken apart, as
 * pointers that move on count them too; at last all, which shows what a batch's offset is made of. */
static const char *find(window *w)
{
	assert(w->load->kind == IR_LOAD && w->load->results[0]->type.rank);
	const window fresh = *w;
	w->range.context.closed_products = true;
	if (!look(w)) return NULL;
	*w = fresh;
	const char *second = look(w);
	if (!second) return NULL;
	*w = fresh;
	w->range.context.open_scalars = true;
	return look(w) ? second : NULL;
}

/* ---- the load by a map ---- */

static bool is_inner(const window_side *s)
{
	return s->place >= 0 && s->stride.factor == 1 && s->stride.natoms == 0;
}

static void add_side(ir_builder *b, const window *w, const window_side *s, bulk_access *t)
{
	unsigned i = t->rank++;
	window_build_side(b, s, &t->index[i], &t->shape[i], &t->stride[i]);
	if (i == 0) t->shape[0] = int_range_extent(b, &w->range, t->shape[0]);
	if (s->place < 0) return;
	ir_type full = w->load->results[0]->type;
	unsigned d = t->block.rank++;
	t->block.dim[d] = full.dim[s->place];
	t->order[d] = (unsigned)s->place;
}

/* What the load's block is, in values that stand in front of it. */
static void describe(const window *w, bulk_access *t)
{
	assert(w->n && w->n <= IR_MAP_RANK);
	ir_builder b = {.func = w->range.context.func, .block = w->load->block, .before = w->load, .at = w->load->at};
	memset(t, 0, sizeof *t);
	t->block = ir_element(w->load->results[0]->type);
	t->base = window_build_base(&b, w);
	for (unsigned i = 0; i < w->n; i++)
		if (w->side[i].place < 0) add_side(&b, w, &w->side[i], t);
	for (int place = 0; place < IR_MAX_RANK; place++)
		for (unsigned i = 0; i < w->n; i++)
			if (w->side[i].place == place && !is_inner(&w->side[i])) add_side(&b, w, &w->side[i], t);
	for (unsigned i = 0; i < w->n; i++)
		if (is_inner(&w->side[i])) add_side(&b, w, &w->side[i], t);
	assert(t->rank == w->n && t->block.rank == w->load->results[0]->type.rank);
}

/* ---- which loads ---- */

/* Half a sentence; null: it may be looked at. */
static const char *reads_otherwise(const ir_op *o)
{
	uint64_t bits;
	if (ir_arg(o, 0)->type.pointer != IR_CONST_POINTER) return "it is not through *const";
	if (ir_get_cache(o) != IR_CACHE_NONE || ir_get_evict(o) != IR_EVICT_NONE || ir_get_volatile(o))
		return "it has hints";
	if (o->nargs > 2 && !(ir_is_const(ir_arg(o, 2), &bits) && bits == 0)) return "it has an other";
	return NULL;
}

typedef struct found {
	pass_context *pass;
	ir_func *func;
	VEC(ir_op *) loads;
} found;

static void collect(ir_op *o, void *context)
{
	found *f = context;
	if (o->kind != IR_LOAD || o->results[0]->type.rank < 2) return;
	bool ahead = o->block->parent && bulk_runs_ahead(f->func, o) &&
		     ir_leads_to_product(o->block, o->results[0], IR_MOST_STEPS);
	if (ahead || bulk_serves_loop(f->pass, o)) vec_push(f->pass->arena, &f->loads, o);
}

/* Blocks of products come by maps in its loop, and all of them do. */
static bool beside_blocks(const ir_op *load)
{
	bool blocks = false;
	for (const ir_op *o = load->block->first; o; o = o->next) {
		bool is_load = o->kind == IR_LOAD && o->results[0]->type.rank >= 2, bulk = o->kind == IR_BULK_LOAD;
		if ((!is_load && !bulk) || !ir_leads_to_product(o->block, o->results[0], IR_MOST_STEPS)) continue;
		if (is_load) return false;
		blocks = true;
	}
	return blocks;
}

static void collect_rows(ir_op *o, void *context)
{
	found *f = context;
	if (o->kind == IR_LOAD && o->results[0]->type.rank == 1 && o->block->parent && bulk_runs_ahead(f->func, o) &&
		beside_blocks(o))
		vec_push(f->pass->arena, &f->loads, o);
}

static const char *rewrite(found *f, ir_op *load)
{
	assert(load->kind == IR_LOAD);
	window w = {.range = {.context = {.pass = f->pass, .func = f->func}, .at = load},
		.load = load,
		.loop = load->block->parent};
	bulk_access t;
	const char *why = reads_otherwise(load);
	if (why || (why = find(&w))) return why;
	describe(&w, &t);
	if (!pass_axis(f->pass, f->func)) return "internal: no facts about its addresses";
	return bulk_make(f->pass, f->func, load, &t) ? NULL
						     : "address, strides and first element are not known to be "
						       "multiples of 16 bytes, or no map has its shape";
}

static bool rewrite_all(found *all)
{
	pass_context *p = all->pass;
	if (all->loads.n && !pass_axis(p, all->func)) return false;
	for (uint32_t i = 0; i < all->loads.n; i++) {
		ir_op *load = all->loads.at[i];
		const char *why = rewrite(all, load);
		if (why) vec_push(p->arena, &p->not_raised, ((pass_note){.op = load, .why = why}));
	}
	return true;
}

bool pass_raise_to_tma(pass_context *p, ir_func *f)
{
	found blocks = {.pass = p, .func = f}, rows = blocks;
	if (!bulk_possible(p)) return true;
	ir_walk(f->body, collect, &blocks);
	if (!rewrite_all(&blocks)) return false;
	ir_walk(f->body, collect_rows, &rows);
	return rewrite_all(&rows);
}
