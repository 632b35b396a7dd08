/* Loads that go through shared memory are copied there ahead of time: cp.async into a ring of stages.
 *
 * In: a mapped function.  Out: in loops that fit, loads have become asynchronous copies that run `stages` - 1 rounds
 * ahead. The one idea: a round's addresses and masks, its *slice*, depend on little: the counter, carried pointers,
 * values from outside.  The slice is cloned for the rounds before the loop, and once into the loop for a round ahead,
 * where it runs on carried values of its own; what was the load and its conversion becomes a read of the ring.
 *
 *     for k, p {                                ring r; for the first stages - 1 rounds: if it exists { copy }; commit
 *       %x = load %p, %mask                     for k, p, ahead, slot, fill {
 *       %y = convert_layout %x          ->        wait until this round's copy is there, for all threads
 *       dot ..                                    if round k + stages - 1 exists { copy %ahead into r[fill] }; commit
 *       yield %p + s                              %y = ring_read r[slot]; dot ..
 *     }                                           yield .., %ahead + s, next slot, next fill }
 *                                               wait for all
 *
 * The wait's barrier also says that everybody has read the slot that this round fills: it was read a round ago.
 *
 * A load fits when it is through *const (nothing writes there, so running ahead changes nothing), has no hints, reads 0
 * where masked out, and is used by one conversion through shared memory in one piece, permutations between them
 * allowed; its access must be 4, 8 or 16 bytes that lie together in the ring too; its slice must be computed from the
 * loop's counter and carried values by operations inside threads.  The loop counts upwards in i32 by a constant. */
#include "access.h"
#include "passes.h"
#include "scratch.h"

#include <string.h>

enum { MOST_LOADS = 16, MOST_STAGES = 8, SLACK = 8 * 1024 };

typedef struct staged {
	ir_op *load, *conversion;
	unsigned width;
	uint32_t bytes; /* of one stage */
	ir_value *ring;
} staged;

typedef struct pipeline {
	pass_context *context;
	ir_func *func;
	ir_op *loop;
	ir_block *body;
	uint32_t nvalues; /* before the loop is rewritten */
	staged loads[MOST_LOADS];
	unsigned nloads, stages;
	int64_t step;
	bool *sliced;     /* by value id: results of operations, and carried values, that the copies need */
	ir_value *hi;     /* i64 */
	uint32_t used;    /* bytes of the rings of other loops */
	uint32_t scratch; /* the most that another operation of the loop needs */
} pipeline;

/* ---- what fits ---- */

static ir_op *only_user(const ir_value *v)
{
	return v->uses && !v->uses->next ? v->uses->user : NULL;
}

static bool reads_plainly(const ir_op *o)
{
	uint64_t bits;
	return o->kind == IR_LOAD && !ir_is_scalar(ir_arg(o, 0)) && ir_arg(o, 0)->type.pointer == IR_CONST_POINTER &&
	       o->attr[0] == IR_CACHE_NONE && o->attr[1] == IR_EVICT_NONE && !o->attr[2] &&
	       (o->nargs < 3 || (ir_is_const(ir_arg(o, 2), &bits) && bits == 0));
}

/* The layout in which the load's tile must be read for the conversion's result to be what it is. */
static layout read_layout(const staged *s)
{
	layout l = *s->conversion->results[0]->layout;
	uint8_t order[IR_MAX_RANK];
	for (const ir_op *o = ir_arg(s->conversion, 0)->def; o != s->load; o = ir_arg(o, 0)->def) {
		for (unsigned i = 0; i < IR_MAX_RANK; i++) order[i] = (uint8_t)ir_unpack(o->attr[0], i);
		l = layout_unpermute(&l, order);
	}
	return l;
}

static bool fits_ring(pipeline *p, staged *s)
{
	ir_op *user = only_user(s->load->results[0]);
	while (user && user->kind == IR_PERMUTE && user->block == p->body) user = only_user(user->results[0]);
	if (!user || user->kind != IR_CONVERT_LAYOUT || user->block != p->body) return false;
	s->conversion = user;
	unsigned element = scalar_bytes(s->load->results[0]->type.elem), together = 0;
	layout to = read_layout(s);
	layout_plan plan;
	layout_plan_conversion(s->load->results[0]->layout, &to, element, &plan);
	if (plan.kind < LAYOUT_WARP_SHARED || plan.lg_passes) return false;
	while (together < plan.lg_vector_store && plan.store_bit[together] == together) together++;
	s->width = access_plan_make(p->context, s->load).width;
	if (s->width > 1u << together) s->width = 1u << together;
	s->bytes = plan.bytes;
	unsigned bytes = s->width * element;
	return bytes == 4 || bytes == 8 || bytes == 16;
}

static bool inside_threads(const ir_op *o)
{
	return o->nregions == 0 && o->nresults == 1 && o->kind != IR_CONVERT_LAYOUT &&
	       (ir_has(o, IR_FREE | IR_ELEMENTWISE | IR_SHAPE) || o->kind == IR_HINT);
}

/* Adds what a value is made of to the slice; false where something else than the loop's own business is needed. */
static bool slice(pipeline *p, const ir_value *v)
{
	if (ir_defined_outside(v, p->loop) || p->sliced[v->id]) return true;
	if (!v->def) {
		if (v->block != p->body) return false;
		p->sliced[v->id] = true;
		return v->index == 0 || slice(p, ir_arg(p->body->last, v->index - 1u));
	}
	if (v->def->block != p->body || !inside_threads(v->def)) return false;
	p->sliced[v->id] = true;
	for (unsigned i = 0; i < v->def->nargs; i++)
		if (!slice(p, ir_arg(v->def, i))) return false;
	return true;
}

static void find_loads(pipeline *p)
{
	bool *before = ARENA_ARRAY(p->context->arena, bool, p->nvalues);
	for (ir_op *o = p->body->first; o && p->nloads < MOST_LOADS; o = o->next) {
		staged s = {.load = o};
		if (!reads_plainly(o) || !fits_ring(p, &s)) continue;
		memcpy(before, p->sliced, p->nvalues);
		bool good = slice(p, ir_arg(o, 0)) && (o->nargs < 2 || slice(p, ir_arg(o, 1)));
		if (good)
			p->loads[p->nloads++] = s;
		else
			memcpy(p->sliced, before, p->nvalues);
	}
}

static bool counts_upwards(pipeline *p)
{
	ir_type t = ir_arg(p->loop, 0)->type;
	return t.elem == SCALAR_I32 && ir_is_const_int(ir_arg(p->loop, 2), &p->step) && p->step > 0;
}

static void add_scratch(ir_op *o, void *context)
{
	pipeline *p = context;
	for (unsigned i = 0; i < p->nloads; i++)
		if (p->loads[i].conversion == o) return;
	uint32_t bytes = o->kind == IR_RING ? 0 : scratch_bytes(p->func, o);
	if (bytes > p->scratch) p->scratch = bytes;
}

static bool choose_stages(pipeline *p)
{
	uint32_t wanted = p->loop->attr[0] ? (uint32_t)p->loop->attr[0] : p->func->num_stages, bytes = 0;
	uint32_t most = p->context->target->shared_bytes;
	if (p->func->max_shared < most) most = p->func->max_shared;
	if (wanted > MOST_STAGES) wanted = MOST_STAGES;
	for (unsigned i = 0; i < p->nloads; i++) bytes += p->loads[i].bytes;
	ir_walk(p->body, add_scratch, p);
	uint64_t beside = p->used + (p->scratch ? p->scratch + SLACK : 0);
	p->stages = wanted;
	while (p->stages > 1 && (uint64_t)p->stages * bytes + beside > most) p->stages--;
	if (p->stages > 1) p->used += p->stages * bytes;
	return p->stages > 1;
}

/* ---- rewriting ---- */

static ir_value *mapped(ir_value **map, ir_value *v)
{
	return map[v->id] ? map[v->id] : v;
}

/* The slice for one round; map holds the counter and the carried values of that round, and everything else after. */
static void clone_slice(pipeline *p, ir_builder *b, ir_value **map)
{
	for (const ir_op *o = p->body->first; o; o = o->next) {
		if (o->nresults != 1 || o->results[0]->id >= p->nvalues || !p->sliced[o->results[0]->id]) continue;
		b->at = o->at;
		ir_op *copy = ir_clone(b, o, map);
		copy->results[0]->layout = o->results[0]->layout;
	}
}

static ir_value *constant(ir_builder *b, scalar s, int64_t v)
{
	return ir_constant_int(b, s, v);
}

static ir_value *widened(ir_builder *b, ir_value *v)
{
	return ir_build1(b, IR_CONVERT, ir_scalar_type(SCALAR_I64), 1, &v);
}

/* Copies of one round into a slot, if there is such a round: counter + distance * step < hi. */
static void copy_round(pipeline *p, ir_builder *b, ir_value *counter, int64_t distance, ir_value *slot, ir_value **map)
{
	ir_value *at = ir_binary(b, IR_ADD, widened(b, counter), constant(b, SCALAR_I64, distance * p->step));
	ir_value *exists = ir_binary(b, IR_LT, at, p->hi);
	ir_op *guard = ir_build(b, IR_IF, 1, &exists, 0, NULL, 2);
	ir_builder inside = {.func = p->func, .block = guard->regions[0]};
	for (unsigned i = 0; i < p->nloads; i++) {
		const staged *s = &p->loads[i];
		ir_value *args[] = {s->ring, slot, mapped(map, ir_arg(s->load, 0)), NULL};
		if (s->load->nargs > 1) args[3] = mapped(map, ir_arg(s->load, 1));
		inside.at = s->load->at;
		ir_op *copy = ir_build(&inside, IR_ASYNC_COPY, args[3] ? 4 : 3, args, 0, NULL, 0);
		copy->attr[0] = s->width;
	}
	ir_yield(&inside, 0, NULL);
	inside.block = guard->regions[1];
	ir_yield(&inside, 0, NULL);
	ir_build(b, IR_ASYNC_COMMIT, 0, NULL, 0, NULL, 0);
}

static void wait(ir_builder *b, unsigned pending)
{
	ir_build(b, IR_ASYNC_WAIT, 0, NULL, 0, NULL, 0)->attr[0] = pending;
}

static ir_value *carry(pipeline *p, ir_value *start, const layout *l)
{
	ir_add_arg(p->func, p->loop, start);
	ir_value *result = ir_add_result(p->func, p->loop, start->type),
		 *arg = ir_block_arg(p->body, start->type, NULL);
	result->layout = arg->layout = l;
	return arg;
}

/* slot + 1, and 0 after the last. */
static ir_value *next_slot(pipeline *p, ir_builder *b, ir_value *slot)
{
	ir_value *last = constant(b, SCALAR_I32, p->stages - 1), *zero = constant(b, SCALAR_I32, 0);
	ir_value *args[] = {
		ir_binary(b, IR_EQ, slot, last), zero, ir_binary(b, IR_ADD, slot, constant(b, SCALAR_I32, 1))};
	return ir_build1(b, IR_SELECT, slot->type, 3, args);
}

/* The rounds before the loop; leaves in ahead[k] the carried values of the round that the loop will copy first. */
static void prologue(pipeline *p, ir_value **ahead, unsigned ncarried)
{
	ir_builder b = {.func = p->func, .block = p->loop->block, .before = p->loop, .at = p->loop->at};
	ir_value *counter = ir_arg(p->loop, 0);
	p->hi = widened(&b, ir_arg(p->loop, 1));
	for (unsigned i = 0; i < p->nloads; i++) {
		staged *s = &p->loads[i];
		b.at = s->load->at;
		s->ring = ir_build1(&b, IR_RING, s->load->results[0]->type, 0, NULL);
		s->ring->def->attr[0] = p->stages;
		s->ring->layout = s->load->results[0]->layout;
	}
	for (unsigned k = 0; k < ncarried; k++) ahead[k] = ir_arg(p->loop, 3 + k);
	for (unsigned round = 0; round + 1 < p->stages; round++) {
		ir_value **map = ARENA_ARRAY(p->context->arena, ir_value *, p->nvalues);
		map[p->body->args[0]->id] = counter;
		for (unsigned k = 0; k < ncarried; k++) map[p->body->args[1 + k]->id] = ahead[k];
		clone_slice(p, &b, map);
		b.at = p->loop->at;
		copy_round(p, &b, ir_arg(p->loop, 0), round, constant(&b, SCALAR_I32, round), map);
		for (unsigned k = 0; k < ncarried; k++)
			if (p->sliced[p->body->args[1 + k]->id]) ahead[k] = mapped(map, ir_arg(p->body->last, k));
		counter = ir_binary(&b, IR_ADD, counter, ir_arg(p->loop, 2));
	}
}

static void read_rings(pipeline *p, ir_value *slot)
{
	for (unsigned i = 0; i < p->nloads; i++) {
		staged *s = &p->loads[i];
		ir_builder b = {.func = p->func, .block = p->body, .before = s->conversion, .at = s->load->at};
		ir_value *args[] = {s->ring, slot}, *tile = s->load->results[0];
		ir_value *read = ir_build1(&b, IR_RING_READ, tile->type, 2, args);
		layout *l = ARENA_NEW(p->context->arena, layout);
		*l = read_layout(s);
		read->layout = l;
		read->name = tile->name;
		ir_value *result = read, *converted = s->conversion->results[0];
		ir_op *order[IR_MAX_RANK * 4];
		unsigned n = 0;
		for (ir_op *o = ir_arg(s->conversion, 0)->def; o != s->load && n < IR_MAX_RANK * 4;
			o = ir_arg(o, 0)->def)
			order[n++] = o;
		while (n-- > 0) { /* the permutations again, on what was read */
			const ir_op *o = order[n];
			uint8_t turned[IR_MAX_RANK];
			for (unsigned d = 0; d < IR_MAX_RANK; d++) turned[d] = (uint8_t)ir_unpack(o->attr[0], d);
			layout *m = ARENA_NEW(p->context->arena, layout);
			*m = layout_permute(result->layout, turned);
			result = ir_build1(&b, IR_PERMUTE, o->results[0]->type, 1, &result);
			result->def->attr[0] = o->attr[0];
			result->layout = m;
		}
		ir_replace(converted, result);
		for (ir_op *o = s->conversion, *source; o; o = source) {
			source = o == s->load ? NULL : ir_arg(o, 0)->def;
			ir_erase(o);
		}
	}
}

static void rewrite(pipeline *p)
{
	ir_op *end = p->body->last;
	unsigned ncarried = p->loop->nresults;
	ir_value **ahead = ARENA_ARRAY(p->context->arena, ir_value *, ncarried + 1u);
	ir_value **map = ARENA_ARRAY(p->context->arena, ir_value *, p->nvalues);
	prologue(p, ahead, ncarried);
	ir_builder before = {.func = p->func, .block = p->loop->block, .before = p->loop, .at = p->loop->at};
	ir_builder top = {.func = p->func, .block = p->body, .before = p->body->first, .at = p->loop->at};
	ir_builder bottom = {.func = p->func, .block = p->body, .before = end, .at = p->loop->at};
	ir_builder after = {.func = p->func, .block = p->loop->block, .before = p->loop->next, .at = p->loop->at};
	ir_value *counter = p->body->args[0];
	ir_value *slot = carry(p, constant(&before, SCALAR_I32, 0), NULL);
	ir_value *fill = carry(p, constant(&before, SCALAR_I32, p->stages - 1), NULL);
	for (unsigned k = 0; k < ncarried; k++) {
		ir_value *arg = p->body->args[1 + k];
		if (p->sliced[arg->id]) map[arg->id] = ahead[k] = carry(p, ahead[k], arg->layout);
	}
	wait(&top, p->stages - 2);
	map[counter->id] =
		ir_binary(&top, IR_ADD, counter, constant(&top, SCALAR_I32, (int64_t)(p->stages - 1) * p->step));
	clone_slice(p, &top, map);
	top.at = p->loop->at;
	copy_round(p, &top, counter, p->stages - 1, fill, map);
	ir_add_arg(p->func, end, next_slot(p, &bottom, slot));
	ir_add_arg(p->func, end, next_slot(p, &bottom, fill));
	for (unsigned k = 0; k < ncarried; k++)
		if (p->sliced[p->body->args[1 + k]->id]) ir_add_arg(p->func, end, mapped(map, ir_arg(end, k)));
	read_rings(p, slot);
	wait(&after, 0);
}

static void try_loop(pipeline *p, ir_op *loop)
{
	uint32_t used = p->used;
	*p = (pipeline){.context = p->context, .func = p->func, .loop = loop, .body = loop->regions[0], .used = used};
	p->nvalues = p->func->nvalues;
	p->sliced = ARENA_ARRAY(p->context->arena, bool, p->nvalues);
	if ((loop->attr[0] ? loop->attr[0] : p->func->num_stages) < 2 || !counts_upwards(p)) return;
	find_loads(p);
	if (p->nloads && choose_stages(p)) rewrite(p);
}

/* Inner loops first: what they leave behind does not fit any more. */
static void find_loops(pipeline *p, ir_block *b)
{
	for (ir_op *o = b->first, *next; o; o = next) {
		next = o->next;
		for (unsigned r = 0; r < o->nregions; r++) find_loops(p, o->regions[r]);
		if (o->kind == IR_FOR) try_loop(p, o);
	}
}

bool pass_pipeline(pass_context *c, ir_func *f)
{
	if (!pass_axis(c, f)) return false;
	pipeline p = {.context = c, .func = f};
	find_loops(&p, f->body);
	return true;
}
