/* What combines elements of tiles that are cut, or looks for them: reductions, scans, products, gather, histogram.
 *
 * In: the operation and its operands' parts.  Out: the result's.
 * The one idea: a result of parts is combined as elements are.  A built-in combination is an elementwise operation; a
 * user's function is a region on scalars, so two partial results are joined in a dimension of 2, which is reduced by
 * the same region.  Partial results are combined in the order of their indices.
 *
 * Where a sum along the axis has a long piece and a shorter one that still fills all threads, the long one is folded to
 * the other's length first, which registers do by themselves, and one reduction is left:
 *     sum over f32[5120]: f32[4096] as [4, 1024], summed over the 4, + f32[1024], then summed */
#include "cut.h"

#include <string.h>

enum { MOST_REDUCED = 16, FULL_ACCESS = 16 /* bytes */ };

/* The reduction by which o combines, of k tiles along an axis. */
static void reduction(cut *c, const ir_op *o, unsigned axis, unsigned k, ir_value *const *x, ir_value **out)
{
	ir_type results[MOST_REDUCED] = {{0}};
	assert(k <= MOST_REDUCED);
	for (unsigned i = 0; i < k; i++) {
		ir_type t = x[i]->type;
		for (unsigned d = axis; d + 1u < t.rank; d++) t.dim[d] = t.dim[d + 1];
		t.dim[--t.rank] = 0;
		results[i] = t;
	}
	ir_op *n = ir_build(&c->build, IR_REDUCE, k, x, k, results, o->nregions);
	ir_set_axis(n, axis);
	ir_set_combine(n, ir_get_combine(o));
	cut_regions(c, o, n);
	for (unsigned i = 0; i < k; i++) out[i] = n->results[i];
}

/* a[i] = a[i] combined with b[i], a before b: k tiles of one shape, or scalars. */
static void combine(cut *c, const ir_op *o, unsigned k, ir_value **a, ir_value *const *b)
{
	if (ir_get_combine(o) != IR_CUSTOM) {
		a[0] = ir_binary(&c->build, ir_combines_by(ir_get_combine(o)), a[0], b[0]);
		return;
	}
	ir_type shape = a[0]->type;
	ir_value *both[MOST_REDUCED];
	uint32_t elements = (uint32_t)ir_elements(shape);
	for (unsigned i = 0; i < k; i++) {
		ir_value *two[] = {a[i], b[i]};
		for (unsigned j = 0; shape.rank == IR_MAX_RANK && j < 2; j++)
			two[j] = cut_shaped(c, two[j], ir_tile_type(SCALAR_BOOL, 1, &elements));
		ir_type t = two[0]->type;
		t.dim[t.rank++] = 2;
		both[i] = ir_build1(&c->build, IR_JOIN, t, 2, two);
	}
	reduction(c, o, both[0]->type.rank - 1u, k, both, a);
	for (unsigned i = 0; i < k; i++) a[i] = cut_shaped(c, a[i], shape);
}

/* ---- reductions ---- */

/* Whether each thread has a whole access of such a tile: then tiles of other lengths lie alike but for registers. */
static bool fills_threads(const cut *c, ir_type t)
{
	return ir_elements(t) * ir_element_bytes(t) >= (uint64_t)32 * c->func->num_warps * FULL_ACCESS;
}

/* A tile combined along the axis until it has that extent there. */
static ir_value *folded(cut *c, const ir_op *o, ir_value *v, unsigned axis, uint32_t extent)
{
	ir_type t = v->type;
	assert(t.rank < IR_MAX_RANK && t.dim[axis] % extent == 0);
	if (t.dim[axis] == extent) return v;
	for (unsigned d = t.rank++; d > axis; d--) t.dim[d] = t.dim[d - 1];
	t.dim[axis] /= extent;
	t.dim[axis + 1] = extent;
	v = cut_shaped(c, v, t);
	reduction(c, o, axis, 1, &v, &v);
	return v;
}

/* What is combined so far, and a tile, or a folded one, that comes behind it and is not reduced yet. */
typedef struct partial {
	ir_value *all[MOST_REDUCED], *tile[MOST_REDUCED];
	bool any;
} partial;

static void reduce_tile(cut *c, const ir_op *o, partial *p)
{
	reduction(c, o, ir_get_axis(o), o->nargs, p->tile, p->tile);
	if (p->any)
		combine(c, o, o->nargs, p->all, p->tile);
	else
		memcpy(p->all, p->tile, sizeof p->all);
	p->any = true;
}

void cut_reduce(cut *c, ir_op *o)
{
	ir_type t = ir_arg(o, 0)->type, r = o->results[0]->type;
	unsigned axis = ir_get_axis(o), k = o->nargs, pieces = ir_pieces(t.dim[axis]);
	bool folds = ir_get_combine(o) != IR_CUSTOM && t.rank < IR_MAX_RANK;
	for (unsigned part = 0; part < ir_parts(r); part++) {
		unsigned place[IR_MAX_RANK] = {0}, at[IR_MAX_RANK];
		partial p = {.any = false};
		ir_part_place(r, part, place);
		for (unsigned d = 0; d < t.rank; d++) at[d] = d == axis ? 0 : place[d - (d > axis)];
		for (at[axis] = 0; at[axis] < pieces; at[axis]++) {
			ir_value *x[MOST_REDUCED];
			for (unsigned i = 0; i < k; i++) x[i] = cut_part(c, ir_arg(o, i), ir_part_number(t, at));
			if (at[axis] && folds && fills_threads(c, x[0]->type)) {
				p.tile[0] = folded(c, o, p.tile[0], axis, x[0]->type.dim[axis]);
				combine(c, o, 1, p.tile, x);
				continue;
			}
			if (at[axis]) reduce_tile(c, o, &p);
			memcpy(p.tile, x, k * sizeof *x);
		}
		reduce_tile(c, o, &p);
		for (unsigned i = 0; i < k; i++) cut_give(c, o->results[i], part, p.all[i]);
	}
}

/* ---- scans ---- */

/* Of a value without the axis, for every element of a tile with it. */
static ir_value *along(cut *c, ir_value *v, unsigned axis, ir_type t)
{
	t = ir_with_shape(v->type, t);
	if (ir_is_scalar(v)) return ir_splat(&c->build, v, t);
	ir_type thin = t;
	thin.dim[axis] = 1;
	v = ir_build1(&c->build, IR_EXPAND_DIMS, thin, 1, &v);
	ir_set_axis(v->def, axis);
	return t.dim[axis] == 1 ? v : ir_build1(&c->build, IR_BROADCAST, t, 1, &v);
}

/* Piece x[] combined in the order in which the scan goes. */
static void total(cut *c, const ir_op *o, unsigned k, ir_value **x)
{
	for (unsigned i = 0; ir_get_reverse(o) && ir_get_combine(o) == IR_CUSTOM && i < k; i++) {
		x[i] = ir_build1(&c->build, IR_FLIP, x[i]->type, 1, &x[i]);
		ir_set_axis(x[i]->def, ir_get_axis(o));
	}
	reduction(c, o, ir_get_axis(o), k, x, x);
}

/* What came before a piece, combined with each element of the piece's own scan. */
void cut_scan(cut *c, ir_op *o)
{
	ir_type t = ir_arg(o, 0)->type, types[MOST_REDUCED];
	unsigned axis = ir_get_axis(o), k = o->nargs, pieces = ir_pieces(t.dim[axis]);
	ir_value *before[MOST_REDUCED], *x[MOST_REDUCED], *all[MOST_REDUCED];
	for (unsigned part = 0; part < ir_parts(t); part++) {
		unsigned place[IR_MAX_RANK];
		ir_part_place(t, part, place);
		if (place[axis]) continue;
		for (unsigned p = 0; p < pieces; p++) {
			place[axis] = ir_get_reverse(o) ? pieces - 1 - p : p;
			unsigned number = ir_part_number(t, place);
			for (unsigned i = 0; i < k; i++) {
				x[i] = cut_part(c, ir_arg(o, i), number);
				types[i] = x[i]->type;
				all[i] = p ? along(c, before[i], axis, types[i]) : NULL;
			}
			ir_op *own = cut_again(c, o, k, x, types);
			if (p)
				combine(c, o, k, all, own->results);
			else
				memcpy(all, own->results, k * sizeof *all);
			for (unsigned i = 0; i < k; i++) cut_give(c, o->results[i], number, all[i]);
			if (p + 1 == pieces) break;
			total(c, o, k, x);
			if (p)
				combine(c, o, k, before, x);
			else
				memcpy(before, x, k * sizeof *before);
		}
	}
}

/* ---- products ---- */

/* A block of the sum for each pair of pieces of rows and columns; along k one product after the other.  A result of
 * 16 bits is rounded once, behind the last. */
void cut_dot(cut *c, ir_op *o)
{
	ir_value *a = ir_arg(o, 0), *b = ir_arg(o, 1), *sum = ir_result(o);
	unsigned rank = sum->type.rank, m = rank - 2u, n = rank - 1u, pieces = ir_pieces(a->type.dim[n]);
	scalar s = (scalar)sum->type.elem, in = pieces > 1 && scalar_bytes(s) < 4 ? SCALAR_F32 : s;
	for (unsigned part = 0; part < ir_parts(sum->type); part++) {
		unsigned place[IR_MAX_RANK], at[IR_MAX_RANK];
		ir_part_place(sum->type, part, place);
		ir_type t = ir_with_elem(ir_part_type(sum->type, part), in);
		ir_value *acc = o->nargs > 2 ? ir_convert(&c->build, cut_part(c, ir_arg(o, 2), part), in) : NULL;
		for (unsigned k = 0; k < pieces; k++) {
			memcpy(at, place, sizeof at);
			at[n] = k;
			ir_value *args[3] = {cut_part(c, a, ir_part_number(a->type, at)), NULL, acc};
			memcpy(at, place, sizeof at);
			at[m] = k;
			args[1] = cut_part(c, b, ir_part_number(b->type, at));
			acc = ir_result(cut_again(c, o, acc ? 3 : 2, args, &t));
		}
		cut_give(c, sum, part, ir_convert(&c->build, acc, s));
	}
}

/* ---- elements by their places ---- */

static uint64_t greatest(scalar s)
{
	return UINT64_MAX >> (64 - scalar_bits(s) + (scalar_is_signed(s) ? 1 : 0));
}

static ir_value *with_number(cut *c, ir_kind kind, ir_value *v, uint32_t n)
{
	return ir_binary(&c->build, kind, v, ir_constant(&c->build, v->type, n));
}

/* What the index finds in each piece, and of these what the piece has that it names.  An index outside of the tile is
 * outside of the first or of the last piece, too, and of no other, so that it is reported where its element is used. */
void cut_gather(cut *c, ir_op *o)
{
	ir_value *x = ir_arg(o, 0), *index = ir_arg(o, 1), *y = ir_result(o);
	unsigned axis = ir_get_axis(o), pieces = ir_pieces(x->type.dim[axis]);
	uint32_t extent = x->type.dim[axis];
	while (pieces > 1 && ir_piece_offset(extent, pieces - 1) > greatest((scalar)index->type.elem)) pieces--;
	for (unsigned part = 0; part < ir_parts(y->type); part++) {
		unsigned place[IR_MAX_RANK];
		ir_part_place(y->type, part, place);
		ir_value *at = cut_part(c, index, part), *found = NULL;
		ir_type t = ir_part_type(y->type, part);
		for (unsigned p = 0; p < pieces; p++) {
			uint32_t first = ir_piece_offset(extent, p), n = ir_piece(extent, p);
			place[axis] = p;
			ir_value *args[2] = {cut_part(c, x, ir_part_number(x->type, place)), at};
			if (p) args[1] = with_number(c, IR_MAX, args[1], first);
			if (p + 1 < pieces) args[1] = with_number(c, IR_MIN, args[1], first + n - 1);
			if (p) args[1] = with_number(c, IR_SUB, args[1], first);
			ir_value *here = ir_result(cut_again(c, o, 2, args, &t));
			if (found) {
				ir_value *arms[] = {with_number(c, IR_GE, at, first), here, found};
				found = ir_build1(&c->build, IR_SELECT, t, 3, arms);
			} else
				found = here;
		}
		cut_give(c, y, part, found);
	}
}

/* A piece of the bins counts what is so much less; the parts' counts are added. */
void cut_histogram(cut *c, ir_op *o)
{
	ir_value *x = ir_arg(o, 0), *y = ir_result(o);
	for (unsigned p = 0; p < ir_parts(y->type); p++) {
		uint32_t first = ir_piece_offset(y->type.dim[0], p);
		ir_type t = ir_part_type(y->type, p);
		ir_value *all = NULL;
		if (first > greatest((scalar)x->type.elem)) {
			cut_give(c, y, p, ir_constant(&c->build, t, 0));
			continue;
		}
		for (unsigned i = 0; i < ir_parts(x->type); i++) {
			ir_value *args[2] = {cut_part(c, x, i), o->nargs > 1 ? cut_part(c, ir_arg(o, 1), i) : NULL};
			if (first) args[0] = with_number(c, IR_SUB, args[0], first);
			ir_value *counts = ir_result(cut_again(c, o, o->nargs, args, &t));
			all = all ? ir_binary(&c->build, IR_ADD, all, counts) : counts;
		}
		cut_give(c, y, p, all);
	}
}
