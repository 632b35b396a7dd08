/* Long tiles become loops over parts.
 *
 * In: the tile level.  Out: no store, atomic, reduction or histogram of a tile of more than LONGEST elements a thread,
 * where it could be cut; what only those needed is gone.
 * The one idea: code is made for each register of a thread, so a tile of a million elements is code of any length; but
 * who stores or sums it needs no more than a part at a time.  So such a *consumer* becomes a loop, and a part of a
 * value is made where it is wanted, backwards from the consumer: the part of a sum is the sum of parts, of an arange it
 * is a shorter arange, of a load a load of parts of its pointers.
 *
 *     %v = load %p : f32[1024,1024]           %s = for 0, 256, 1, -0.0 : f32 (%n: i32, %acc: f32) {
 *     %e = exp %v                               %q = .. pointers of rows 4 n .. 4 n + 3 : (*const f32)[4,1024]
 *     %f = reshape %e : f32[1048576]   ->       %v = load %q   %e = exp %v   %f = reshape %e : f32[4096]
 *     %s = reduce %f {sum}                      %t = reduce %f {sum}   %u = add %acc, %t   yield %u }
 *
 * What several consumers need is made by each, so only what may be made twice and later is cut: pure operations, loads
 * through *const, and other loads as long as nothing was written between them and the consumer.  A sum of floats, whose
 * order is its layout's, is made again only where nobody else has it: a value has the same bits wherever it is used.  A
 * store or an atomic that takes what is loaded through *T becomes a loop only where both have the same pointers, each
 * another element: else a part would be loaded behind the store of an earlier one.
 *
 * A product of long tiles, or in full precision one of much code, is a consumer along k: its loop carries the sum,
 * which is made in the same order.  Parts of a product's result are products of whole rows or columns of the one
 * operand and of all of the other, which is cut along k then.
 *
 * The axis that is cut is the slowest that will do.  Along a reduction's own axis the loop carries what has been
 * combined so far; along another one the parts of its result are put into place.  Short tiles of which a part is wanted
 * are made again if they can be, else picked from (gather). */
#include "analysis/alias.h"
#include "passes/passes.h"

#include <stdlib.h>
#include <string.h>

enum {
	LONGEST = 512, /* elements a thread */
	PART = 32,     /* elements a thread, in a part */
	MOST_DEPTH = 500,
	MOST_PICKED = 16384, /* bytes of a tile that parts are picked from: it goes through shared memory */
	MOST_OPERANDS = 16,
	LEAST_ROWS = 64,    /* of a part of a product */
	PART_OF_K = 32,     /* of a part of a product */
	MOST_FUSED = 16384, /* fused multiply-adds of a thread in a product of full precision */
};

/* An operation that has been made again, along an axis of its results. */
typedef struct remake {
	const ir_op *op;
	unsigned axis;
} remake;

typedef struct parts {
	pass_context *pass;
	ir_func *func;
	ir_value **made; /* by value id and axis: its part in the loop that is being made; null: none yet */
	uint32_t room;   /* ids */
	VEC(ir_value **) filled;
	VEC(remake) sums;        /* of floats, in the loop that is being made */
	VEC(const ir_op *) kept; /* sums of floats that it must not make */
	bool cut_any;
} parts;

/* One consumer's loop under construction. */
typedef struct cut {
	parts *parts;
	ir_op *consumer;
	ir_builder b;     /* where parts are made */
	uint32_t count;   /* of parts */
	ir_value *number; /* of the part, i32 */
	unsigned axis;    /* of what the consumer takes; of an effect */
	bool stores;      /* the consumer is an effect .. */
	bool distinct;    /* .. and each element of its pointers is another place */
	const char *why;  /* not, in half a sentence */
	bool once_more;   /* it makes what must be kept */
} cut;

static uint64_t per_thread(const parts *p, ir_type t)
{
	assert(p->func->num_warps);
	return ir_elements(t) / (32 * p->func->num_warps);
}

static bool is_long(const parts *p, const ir_value *v)
{
	return per_thread(p, v->type) > LONGEST;
}

static ir_type shortened(ir_type t, unsigned axis, uint32_t count)
{
	assert(axis < t.rank && t.dim[axis] % count == 0);
	t.dim[axis] /= count;
	return t;
}

/* ---- small things at the builder's place ---- */

static ir_value *number(cut *c, int64_t v)
{
	return ir_constant_int(&c->b, SCALAR_I32, v);
}

static ir_value *from_zero(cut *c, uint32_t n)
{
	return ir_build1(&c->b, IR_ARANGE, ir_tile_type(SCALAR_I32, 1, &n), 0, NULL);
}

static ir_value *with_axis(cut *c, ir_value *v, unsigned axis)
{
	ir_type t = v->type;
	assert(t.rank < IR_MAX_RANK && axis <= t.rank);
	memmove(&t.dim[axis + 1], &t.dim[axis], (t.rank - axis) * sizeof t.dim[0]);
	t.dim[axis] = 1;
	t.rank++;
	v = ir_build1(&c->b, IR_EXPAND_DIMS, t, 1, &v);
	ir_set_axis(v->def, axis);
	return v;
}

/* A tile of one dimension along `axis` of a shape. */
static ir_value *along(cut *c, ir_value *v, unsigned axis, ir_type shape)
{
	assert(v->type.rank == 1 && axis < shape.rank);
	for (unsigned d = 0; d < shape.rank; d++)
		if (d != axis) v = with_axis(c, v, d);
	return ir_build1(&c->b, IR_BROADCAST, ir_with_shape(ir_element(v->type), shape), 1, &v);
}

/* First index of this part along an axis of that extent. */
static ir_value *start(cut *c, uint32_t extent)
{
	assert(extent % c->count == 0);
	return ir_binary(&c->b, IR_MUL, c->number, number(c, extent / c->count));
}

/* ---- parts of values ---- */

static ir_value *part_of(cut *c, ir_value *v, unsigned axis, unsigned depth);

static ir_value *refuse(cut *c, const char *why)
{
	if (!c->why) c->why = why;
	return NULL;
}

/* A value that is used as a whole in every iteration. */
static ir_value *whole(cut *c, ir_value *v)
{
	return is_long(c->parts, v) ? refuse(c, "all of a long tile is needed at once") : v;
}

/* A part of a short tile that is there. */
static ir_value *picked(cut *c, ir_value *v, unsigned axis)
{
	if (v->type.pointer || ir_elements(v->type) * ir_element_bytes(v->type) > MOST_PICKED)
		return refuse(c, "a part of another tile cannot be picked");
	ir_type t = shortened(v->type, axis, c->count);
	ir_value *index = from_zero(c, t.dim[axis]);
	index = ir_binary(&c->b, IR_ADD, index, ir_splat(&c->b, start(c, v->type.dim[axis]), index->type));
	ir_value *args[] = {v, along(c, index, axis, ir_with_elem(t, SCALAR_I32))};
	v = ir_build1(&c->b, IR_GATHER, t, 2, args);
	ir_set_axis(v->def, axis);
	return v;
}

static ir_value **slot(const parts *p, const ir_value *v, unsigned axis)
{
	assert(v->id < p->room && axis < IR_MAX_RANK);
	return &p->made[(size_t)v->id * IR_MAX_RANK + axis];
}

static void remember(parts *p, const ir_value *v, unsigned axis, ir_value *part)
{
	assert(part && part->type.rank == v->type.rank);
	*slot(p, v, axis) = part;
	vec_push(p->pass->arena, &p->filled, slot(p, v, axis));
}

static void forget(parts *p)
{
	while (p->filled.n) *p->filled.at[--p->filled.n] = NULL;
	if (p->room >= p->func->nvalues) return;
	p->room = 2 * p->func->nvalues;
	p->made = ARENA_ARRAY(p->pass->arena, ir_value *, (size_t)p->room * IR_MAX_RANK);
}

/* The same operation with other operands, at the builder's place. */
static ir_op *again(cut *c, const ir_op *o, ir_value *const *args)
{
	assert(o->nresults <= MOST_OPERANDS);
	ir_type types[MOST_OPERANDS];
	ir_op *n;
	for (unsigned i = 0; i < o->nresults; i++) types[i] = o->results[i]->type;
	if (o->nregions) {
		n = ir_clone(&c->b, o, ARENA_ARRAY(c->parts->pass->arena, ir_value *, c->parts->func->nvalues));
		for (unsigned i = 0; i < o->nargs; i++) ir_set_arg(n, i, args[i]);
		return n;
	}
	n = ir_build(&c->b, o->kind, o->nargs, args, o->nresults, types, 0);
	ir_copy_attributes(n, o);
	return n;
}

/* Does its result depend on an order that another layout changes? */
static bool rounds(const ir_op *o)
{
	bool sums = o->kind == IR_DOT;
	if (o->kind == IR_REDUCE || o->kind == IR_SCAN)
		sums = ir_get_combine(o) == IR_SUM || ir_get_combine(o) == IR_PROD || ir_get_combine(o) == IR_CUSTOM;
	for (unsigned i = 0; sums && i < o->nargs; i++)
		if (scalar_is_float((scalar)ir_arg(o, i)->type.elem)) return true;
	return false;
}

static bool is_kept(const parts *p, const ir_op *o)
{
	for (uint32_t i = 0; i < p->kept.n; i++)
		if (p->kept.at[i] == o) return true;
	return false;
}

/* Whether this part of it may be made here; so far, close_loop decides. */
static bool may_make_again(parts *p, const ir_op *o, unsigned axis)
{
	if (!rounds(o)) return true;
	for (uint32_t i = 0; i < p->sums.n; i++)
		if (p->sums.at[i].op == o && p->sums.at[i].axis != axis) return false;
	if (is_kept(p, o)) return false;
	vec_push(p->pass->arena, &p->sums, ((remake){o, axis}));
	return true;
}

static ir_value *remade(cut *c, ir_value *v, ir_value **args, unsigned axis)
{
	if (!may_make_again(c->parts, v->def, axis))
		return refuse(c, "it takes a sum of floats that has another use, and would be another one in parts");
	ir_op *n = again(c, v->def, args);
	for (unsigned i = 0; i < n->nresults; i++) {
		n->results[i]->type = shortened(n->results[i]->type, axis, c->count);
		remember(c->parts, v->def->results[i], axis, n->results[i]);
	}
	return n->results[v->index];
}

/* Every operand is cut along the axis that `axis` of the result comes from. */
static ir_value *of_parts(cut *c, ir_value *v, unsigned axis, unsigned from, unsigned depth)
{
	assert(v->def);
	ir_value *args[MOST_OPERANDS];
	const ir_op *o = v->def;
	if (o->nargs > MOST_OPERANDS) return refuse(c, "it has too many operands");
	for (unsigned i = 0; i < o->nargs; i++) {
		args[i] = ir_is_scalar(ir_arg(o, i)) ? ir_arg(o, i) : part_of(c, ir_arg(o, i), from, depth + 1);
		if (!args[i]) return NULL;
	}
	return remade(c, v, args, axis);
}

static ir_value *of_arange(cut *c, const ir_value *v)
{
	uint32_t n = v->type.dim[0] / c->count;
	ir_value *index = from_zero(c, n);
	ir_set_lo(index->def, ir_get_lo(v->def));
	return ir_binary(&c->b, IR_ADD, index, ir_splat(&c->b, start(c, v->type.dim[0]), index->type));
}

static ir_value *of_broadcast(cut *c, ir_value *v, unsigned axis, unsigned depth)
{
	ir_value *from = ir_arg(v->def, 0);
	if (from->type.dim[axis] > 1) return of_parts(c, v, axis, axis, depth);
	return (from = whole(c, from)) ? remade(c, v, &from, axis) : NULL;
}

/* Parts of both shapes are the same runs of elements where as many of them stand in front of the axes. */
static ir_value *of_reshape(cut *c, ir_value *v, unsigned axis, unsigned depth)
{
	const ir_type to = v->type, from = ir_arg(v->def, 0)->type;
	uint64_t in_front = 1, have = 1;
	assert(ir_elements(to) == ir_elements(from));
	for (unsigned d = 0; d < axis; d++) in_front *= to.dim[d];
	for (unsigned d = 0; d < from.rank && have <= in_front; have *= from.dim[d++])
		if (have == in_front && from.dim[d] % c->count == 0) return of_parts(c, v, axis, d, depth);
	return refuse(c, "a reshape mixes the parts");
}

/* Promises about n neighbours are kept for as many as a part has. */
static ir_value *of_hint(cut *c, ir_value *v, unsigned axis, unsigned depth)
{
	ir_value *made = of_parts(c, v, axis, axis, depth);
	uint16_t n[IR_MAX_RANK];
	if (!made) return NULL;
	for (unsigned d = 0; d < IR_MAX_RANK; d++) {
		n[d] = (uint16_t)ir_unpack(ir_get_values(made->def), d);
		while (d == axis && n[d] > made->type.dim[d]) n[d] /= 2;
	}
	ir_set_values(made->def, ir_pack(IR_MAX_RANK, n));
	return made;
}

static bool writes(const ir_op *o)
{
	if (ir_touches(o, IR_EFFECTS & ~IR_ACTS)) return true;
	for (unsigned r = 0; r < o->nregions; r++)
		for (const ir_op *p = o->regions[r]->first; p; p = p->next)
			if (writes(p)) return true;
	return false;
}

/* May a part along the axis of what this load gives be loaded at the consumer instead?  Through *T if nothing is
 * written on the way there, nor by the consumer's other parts: these store to other places, where both have the same
 * pointers and the same part of them. */
static bool may_move(cut *c, const ir_op *load, unsigned axis)
{
	if (ir_get_volatile(load)) return refuse(c, "a volatile load happens once") != NULL;
	if (ir_arg(load, 0)->type.pointer == IR_CONST_POINTER) return true;
	const ir_op *o = load->block == c->consumer->block ? load->next : NULL;
	while (o && o != c->consumer && !writes(o)) o = o->next;
	if (!o || o != c->consumer) {
		refuse(c, "what it loads through *T may be written before it is used; *const says that nothing is");
		return false;
	}
	if (!c->stores || (c->distinct && axis == c->axis && ir_arg(load, 0) == ir_arg(c->consumer, 0))) return true;
	refuse(c, "what it loads through *T may be stored to in another part; *const says that nothing is");
	return false;
}

/* Rows of the one operand, or columns of the other one. */
static ir_value *of_product(cut *c, ir_value *v, unsigned axis, unsigned depth)
{
	const ir_op *o = v->def;
	assert(o->kind == IR_DOT && v->type.rank >= 2);
	unsigned rank = v->type.rank, side = axis + 1u == rank, batch = axis + 2u < rank;
	ir_value *args[3];
	if (v->type.dim[axis] / c->count < LEAST_ROWS && !batch) return refuse(c, "a product wants more rows at once");
	for (unsigned i = 0; i < o->nargs; i++) {
		bool cut_too = i == side || i == 2 || batch;
		args[i] = cut_too ? part_of(c, ir_arg(o, i), axis, depth + 1) : ir_arg(o, i);
		if (!args[i]) return NULL;
	}
	return remade(c, v, args, axis);
}

static unsigned without(unsigned axis, unsigned removed)
{
	return axis >= removed ? axis + 1 : axis;
}

static ir_value *needs_all(cut *c, const ir_value *v)
{
	const ir_op *o = v->def;
	if (!o || ir_has(o, IR_CONTROL))
		return refuse(c, o && o->kind == IR_IF ? "an if chooses it as a whole" : "a loop carries it");
	return refuse(
		c, arena_printf(c->parts->pass->arena, "it is made by %s, which needs all of it", ir_info(o)->name));
}

/* By what the operation does to the axis. */
static ir_value *make_part(cut *c, ir_value *v, unsigned axis, unsigned depth)
{
	const ir_op *o = v->def;
	ir_type t = shortened(v->type, axis, c->count);
	switch (o ? o->kind : IR_YIELD) {
	case IR_CONST: return ir_constant(&c->b, t, ir_get_value(o));
	case IR_SPLAT: return ir_splat(&c->b, ir_arg(o, 0), t);
	case IR_ARANGE: return of_arange(c, v);
	case IR_EXPAND_DIMS: return of_parts(c, v, axis, axis > ir_get_axis(o) ? axis - 1 : axis, depth);
	case IR_BROADCAST: return of_broadcast(c, v, axis, depth);
	case IR_RESHAPE: return of_reshape(c, v, axis, depth);
	case IR_PERMUTE: return of_parts(c, v, axis, ir_unpack(ir_get_order(o), axis), depth);
	case IR_HINT: return of_hint(c, v, axis, depth);
	case IR_LOAD: return may_move(c, o, axis) ? of_parts(c, v, axis, axis, depth) : NULL;
	case IR_JOIN: return axis + 1u < v->type.rank ? of_parts(c, v, axis, axis, depth) : NULL;
	case IR_SPLIT: return of_parts(c, v, axis, axis, depth);
	case IR_DOT: return of_product(c, v, axis, depth);
	case IR_REDUCE: return of_parts(c, v, axis, without(axis, ir_get_axis(o)), depth);
	case IR_SCAN:
	case IR_SORT:
	case IR_FLIP:
	case IR_GATHER:
		if (axis == ir_get_axis(o)) return needs_all(c, v);
		return of_parts(c, v, axis, axis, depth);
	default:
		if (o && ir_has(o, IR_ELEMENTWISE)) return of_parts(c, v, axis, axis, depth);
		return needs_all(c, v);
	}
}

static ir_value *part_of(cut *c, ir_value *v, unsigned axis, unsigned depth)
{
	assert(axis < v->type.rank);
	ir_value *made = *slot(c->parts, v, axis);
	if (made) return made;
	if (depth > MOST_DEPTH) return refuse(c, "its expression is too deep");
	if (v->type.dim[axis] % c->count) return refuse(c, "an extent is smaller than the number of parts");
	span at = c->b.at;
	if (v->def) c->b.at = v->def->at;
	const char *why = c->why;
	ir_value *part = make_part(c, v, axis, depth);
	if (!part && !is_long(c->parts, v)) {
		c->why = why;
		part = picked(c, v, axis);
	}
	if (part && !part->name) part->name = v->name;
	c->b.at = at;
	assert(!part || part->type.dim[axis] == v->type.dim[axis] / c->count);
	if (part) remember(c->parts, v, axis, part);
	return part;
}

/* ---- consumers ---- */

/* for n in 0 .. count - 1, from `first` on, with such values carried; the builder goes into it. */
static ir_op *open_loop(cut *c, uint32_t first, unsigned n, ir_value *const *inits)
{
	assert(n <= MOST_OPERANDS && first < c->count);
	ir_value *args[3 + MOST_OPERANDS] = {number(c, first), number(c, c->count), number(c, 1)};
	ir_type types[MOST_OPERANDS];
	for (unsigned i = 0; i < n; i++) args[3 + i] = inits[i], types[i] = inits[i]->type;
	ir_op *loop = ir_build(&c->b, IR_FOR, 3 + n, args, n, types, 1);
	ir_set_num_stages(loop, 1);
	ir_set_unroll(loop, 1);
	ir_set_accumulator_init(loop, true);
	c->b.block = loop->regions[0];
	c->b.before = NULL;
	c->number = ir_block_arg(c->b.block, ir_scalar_type(SCALAR_I32), "part");
	for (unsigned i = 0; i < n; i++) ir_block_arg(c->b.block, types[i], NULL);
	forget(c->parts);
	return loop;
}

static bool drop_loop(ir_op *loop)
{
	ir_erase(loop);
	return false;
}

/* Is any of it needed when the consumer is gone?  Conservative: what a loop or an if gets is. */
static bool has_other_use(const parts *p, const ir_op *sum, const ir_op *consumer)
{
	bool *seen = ARENA_ARRAY(p->pass->arena, bool, p->func->nvalues);
	VEC(const ir_op *) work = {0};
	vec_push(p->pass->arena, &work, sum);
	while (work.n) {
		const ir_op *o = work.at[--work.n];
		for (unsigned i = 0; i < o->nresults; i++)
			for (const ir_use *u = o->results[i]->uses; u; u = u->next) {
				if (u->user == consumer) continue;
				if (!ir_has(u->user, IR_PURE) && (u->user->kind != IR_LOAD || ir_get_volatile(u->user)))
					return true;
				assert(u->user->nresults > 0);
				if (seen[u->user->results[0]->id]) continue;
				seen[u->user->results[0]->id] = true;
				vec_push(p->pass->arena, &work, u->user);
			}
	}
	return false;
}

/* A sum of floats that is needed as it was, too, is not made again when the loop is made once more. */
static bool keep_sums(parts *p, const ir_op *consumer)
{
	uint32_t before = p->kept.n;
	for (uint32_t i = 0; i < p->sums.n; i++) {
		const ir_op *o = p->sums.at[i].op;
		if (!is_kept(p, o) && has_other_use(p, o, consumer)) vec_push(p->pass->arena, &p->kept, o);
	}
	return p->kept.n > before;
}

static bool close_loop(cut *c, ir_op *loop, unsigned n, ir_value *const *next)
{
	assert(loop->nresults == n && n <= c->consumer->nresults);
	ir_yield(&c->b, n, next);
	c->once_more = keep_sums(c->parts, c->consumer);
	if (c->once_more) return drop_loop(loop);
	for (unsigned i = 0; i < n; i++) ir_replace(c->consumer->results[i], loop->results[i]);
	ir_erase(c->consumer);
	return c->parts->cut_any = true;
}

/* The consumer of parts of its operands, null: they cannot be cut. */
static ir_op *take_part(cut *c, unsigned axis)
{
	ir_value *args[MOST_OPERANDS];
	for (unsigned i = 0; i < c->consumer->nargs; i++)
		if (!(args[i] = part_of(c, ir_arg(c->consumer, i), axis, 0))) return NULL;
	return again(c, c->consumer, args);
}

static bool cut_effect(cut *c, unsigned axis)
{
	c->stores = true;
	c->axis = axis;
	ir_op *loop = open_loop(c, 0, 0, NULL), *part = take_part(c, axis);
	if (!part) return drop_loop(loop);
	if (part->nresults) part->results[0]->type = shortened(part->results[0]->type, axis, c->count);
	return close_loop(c, loop, 0, NULL);
}

/* Both, in this order, by the reduction's own function: it reduces pairs of them. */
static void combine_pairs(cut *c, const ir_op *reduce, ir_value *const *left, ir_value *const *right, ir_value **out)
{
	ir_value *pair[MOST_OPERANDS];
	for (unsigned i = 0; i < reduce->nargs; i++) {
		ir_value *both[] = {left[i], right[i]};
		ir_type t = left[i]->type;
		assert(left[i]->type.rank < IR_MAX_RANK);
		t.dim[t.rank++] = 2;
		pair[i] = ir_build1(&c->b, IR_JOIN, t, 2, both);
	}
	ir_op *o = again(c, reduce, pair);
	ir_set_axis(o, left[0]->type.rank);
	for (unsigned i = 0; i < reduce->nargs; i++) out[i] = o->results[i];
}

/* Along its own axis; there is no value to begin with but that of the first part. */
static bool cut_custom(cut *c)
{
	unsigned axis = ir_get_axis(c->consumer), n = c->consumer->nargs;
	ir_value *next[MOST_OPERANDS];
	if (c->consumer->results[0]->type.rank == IR_MAX_RANK) return false;
	c->number = number(c, 0);
	forget(c->parts);
	ir_op *first = take_part(c, axis), *loop, *part;
	if (!first) return false;
	loop = open_loop(c, 1, n, first->results);
	part = take_part(c, axis);
	if (!part) return drop_loop(loop);
	combine_pairs(c, part, loop->regions[0]->args + 1, part->results, next);
	return close_loop(c, loop, n, next);
}

/* Along its own axis: what the parts come to is combined. */
static bool cut_along(cut *c)
{
	ir_combine how = ir_get_combine(c->consumer);
	ir_value *sofar, *init, *next;
	ir_type t = c->consumer->results[0]->type;
	init = ir_constant(&c->b, t, ir_identity(how, (scalar)t.elem));
	ir_op *loop = open_loop(c, 0, 1, &init), *part = take_part(c, ir_get_axis(c->consumer));
	if (!part) return drop_loop(loop);
	sofar = loop->regions[0]->args[1];
	next = ir_binary(&c->b, ir_combines_by(how), sofar, part->results[0]);
	return close_loop(c, loop, 1, &next);
}

/* `part` at its place along the axis of `all`, which holds those of earlier iterations. */
static ir_value *put_into(cut *c, ir_value *all, ir_value *part, unsigned axis)
{
	assert(all->type.rank < IR_MAX_RANK);
	uint32_t each = all->type.dim[axis] / c->count;
	part = with_axis(c, part, axis);
	ir_type t = all->type, wide = part->type;
	wide.dim[axis] = c->count;
	part = ir_build1(&c->b, IR_BROADCAST, wide, 1, &part);
	part = ir_build1(&c->b, IR_RESHAPE, t, 1, &part);
	ir_value *place = from_zero(c, t.dim[axis]);
	place = ir_binary(&c->b, IR_DIV, place, ir_splat(&c->b, number(c, each), place->type));
	place = ir_binary(&c->b, IR_EQ, place, ir_splat(&c->b, c->number, place->type));
	ir_value *args[] = {along(c, place, axis, ir_with_elem(t, SCALAR_BOOL)), part, all};
	return ir_build1(&c->b, IR_SELECT, t, 3, args);
}

/* Along another axis: parts of the result. */
static bool cut_across(cut *c, unsigned axis)
{
	assert(axis != ir_get_axis(c->consumer));
	unsigned n = c->consumer->nresults, to = axis > ir_get_axis(c->consumer) ? axis - 1 : axis;
	ir_value *v[MOST_OPERANDS];
	for (unsigned i = 0; i < n; i++) {
		ir_type t = c->consumer->results[i]->type;
		if (is_long(c->parts, c->consumer->results[i]) || t.rank == IR_MAX_RANK) return false;
		v[i] = ir_constant(&c->b, t, 0);
	}
	ir_op *loop = open_loop(c, 0, n, v), *part = take_part(c, axis);
	if (!part) return drop_loop(loop);
	for (unsigned i = 0; i < n; i++) {
		part->results[i]->type = shortened(part->results[i]->type, to, c->count);
		v[i] = put_into(c, loop->regions[0]->args[1 + i], part->results[i], to);
	}
	return close_loop(c, loop, n, v);
}

static bool cut_histogram(cut *c)
{
	ir_value *next, *init = ir_constant(&c->b, c->consumer->results[0]->type, 0);
	ir_op *loop = open_loop(c, 0, 1, &init), *part = take_part(c, 0);
	if (!part) return drop_loop(loop);
	next = ir_binary(&c->b, IR_ADD, loop->regions[0]->args[1], part->results[0]);
	return close_loop(c, loop, 1, &next);
}

/* Along k. */
static bool cut_product(cut *c)
{
	ir_op *o = c->consumer;
	unsigned k = ir_arg(o, 0)->type.rank - 1u;
	ir_value *sum = o->nargs > 2 ? ir_arg(o, 2) : ir_constant(&c->b, o->results[0]->type, 0), *args[3];
	ir_op *loop = open_loop(c, 0, 1, &sum);
	ir_set_num_stages(loop, 0); /* its loads may run ahead */
	args[0] = part_of(c, ir_arg(o, 0), k, 0);
	args[1] = args[0] ? part_of(c, ir_arg(o, 1), k - 1, 0) : NULL;
	args[2] = loop->regions[0]->args[1];
	if (!args[1]) return drop_loop(loop);
	ir_value *next = ir_build1(&c->b, IR_DOT, sum->type, 3, args);
	memcpy(next->def->attr, o->attr, sizeof o->attr);
	return close_loop(c, loop, 1, &next);
}

static bool cut_consumer(cut *c, unsigned axis)
{
	switch (c->consumer->kind) {
	case IR_DOT: return cut_product(c);
	case IR_HISTOGRAM: return cut_histogram(c);
	case IR_REDUCE:
		if (axis != ir_get_axis(c->consumer)) return cut_across(c, axis);
		return ir_get_combine(c->consumer) == IR_CUSTOM ? cut_custom(c) : cut_along(c);
	default: return cut_effect(c, axis);
	}
}

static bool try_cut(cut *c, uint32_t count, unsigned axis)
{
	ir_op *o = c->consumer;
	assert(count > 1 && !(count & (count - 1)));
	c->count = count;
	c->parts->kept.n = 0;
	do {
		c->b = (ir_builder){.func = c->parts->func, .block = o->block, .before = o, .at = o->at};
		c->parts->sums.n = 0;
		c->once_more = false;
		if (cut_consumer(c, axis)) return true;
	} while (c->once_more);
	return false;
}

static void give_up(const cut *c)
{
	parts *p = c->parts;
	if (c->why) vec_push(p->pass->arena, &p->pass->whole, ((pass_note){c->consumer, c->why}));
}

/* Of the operands, which have one shape; the slowest axis that has so many parts, else the longest that will do. */
static void try_consumer(parts *p, ir_op *o)
{
	ir_type t = ir_arg(o, 0)->type;
	cut c = {.parts = p, .consumer = o};
	c.distinct = ir_touches(o, IR_WRITES_GLOBAL) && !may_alias_itself(p->pass, p->func, ir_arg(o, 0));
	for (uint64_t count = per_thread(p, t) / PART; count > 1 && per_thread(p, t) / count <= LONGEST; count /= 2)
		for (unsigned axis = 0; axis < t.rank; axis++)
			if (t.dim[axis] >= count && try_cut(&c, (uint32_t)count, axis)) return;
	give_up(&c);
}

/* A sum that is rounded at the end, to f16, is not one of parts. */
static void try_product(parts *p, ir_op *o)
{
	ir_type a = ir_arg(o, 0)->type;
	cut c = {.parts = p, .consumer = o};
	if (o->results[0]->type.elem == SCALAR_F16) {
		refuse(&c, "its sum is rounded once, at the end");
	} else {
		uint32_t count = a.dim[a.rank - 1] / PART_OF_K;
		if (count > 1 && try_cut(&c, count, 0)) return;
	}
	give_up(&c);
}

static bool is_long_product(const parts *p, const ir_op *o)
{
	ir_type a = ir_arg(o, 0)->type;
	uint64_t fused = per_thread(p, o->results[0]->type) * a.dim[a.rank - 1];
	bool fuses = ir_get_precision(o) == IR_IEEE && a.elem == SCALAR_F32 && fused > MOST_FUSED;
	return fuses || is_long(p, ir_arg(o, 0)) || is_long(p, ir_arg(o, 1));
}

static bool takes(const parts *p, const ir_op *o, bool effects)
{
	if (o->nargs > MOST_OPERANDS || !o->nargs || ir_is_scalar(ir_arg(o, 0)) || !is_long(p, ir_arg(o, 0)))
		return false;
	switch (o->kind) {
	case IR_STORE: return effects;
	case IR_ATOMIC_RMW: return effects && !o->results[0]->uses;
	case IR_HISTOGRAM:
	case IR_REDUCE: return !effects;
	default: return false;
	}
}

static void walk(parts *p, ir_block *b, bool effects)
{
	for (ir_op *o = b->first, *next; o; o = next) {
		next = o->next;
		if (takes(p, o, effects))
			try_consumer(p, o);
		else if (o->kind == IR_DOT && !effects && is_long_product(p, o))
			try_product(p, o);
		else if (ir_has(o, IR_CONTROL))
			for (unsigned r = 0; r < o->nregions; r++) walk(p, o->regions[r], effects);
	}
}

/* Stores first: reductions that only they need are made in their loops, and are gone then. */
bool pass_parts(pass_context *c, ir_func *f)
{
	parts p = {.pass = c, .func = f};
	walk(&p, f->body, true);
	if (p.cut_any && !pass_dce(c, f)) return false;
	p.cut_any = false;
	walk(&p, f->body, false);
	return !p.cut_any || pass_dce(c, f);
}
