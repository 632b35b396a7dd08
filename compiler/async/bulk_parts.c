/* Blocks leave by parts: each warp copies its own.
 *
 * In: a mapped function.  Out: a bulk_store whose tile is spread so that a warp holds boxes of it whole has by_warps
 * set and goes by a map of such a box.  The one idea: what a warp alone has written to shared memory, a warp's barrier
 * orders; so warps store on their own, piece by piece through two buffers each, while the copies of pieces before are
 * under way.
 *
 * A box takes the lowest coordinates of each dimension that the warp's registers and lanes step: a swizzled span of the
 * last one, 8 rows or more (a swizzle's period), MOST_BYTES at most.  All lanes lie in it; registers that do not step
 * from copy to copy.  A tile that is spread otherwise leaves in one go, behind a barrier of the program.
 *
 * Where the array's rows may begin inside a sector of L2 (32 bytes), each copy of 128 bytes of a row writes two sectors
 * in part, which costs L2 a read of each: 2048 x 8920 of bf16 took 20.6 us, 2048 x 8960 12.5.  There a warp stores a
 * row of its part at a time, 8 rows in its buffer, without the copy engine (by_rows): 14.4 us. */
#include "analysis/host_value.h"
#include "ir/tensor_map.h"
#include "bulk.h"

#include <assert.h>
#include <string.h>

enum { MOST_BYTES = 4096, MOST_COPIES = 32, PERIOD_ROWS = 3, BUFFERS = 2 };
enum { SECTOR = 32, SPAN = 128, MOST_ROW = 512, ROW_ALIGN = 16 }; /* bytes; ROW_ALIGN: of a lane's access */

static uint32_t columns(const layout *l, layout_in in)
{
	uint32_t bits = 0;
	for (unsigned i = 0; i < l->nin[in]; i++) bits |= l->col[in][i];
	return bits;
}

static uint32_t span_of(const layout *l, unsigned dim, unsigned lg)
{
	return ((UINT32_C(1) << lg) - 1) << layout_shift(l, dim);
}

/* Extents of the box, log2, of 2^lg_most elements at most; false: there is none. */
static bool find_box(const layout *l, unsigned lg_span, unsigned lg_most, uint8_t lg[IR_MAX_RANK])
{
	assert(l->rank && l->rank <= IR_MAX_RANK);
	uint32_t warps = columns(l, LAYOUT_WARP), registers = columns(l, LAYOUT_REG);
	unsigned last = l->rank - 1u, total = 0;
	for (unsigned d = 0; d <= last; d++) {
		unsigned most = d == last ? lg_span : l->lg[d] < 8 ? l->lg[d] : 8;
		for (lg[d] = 0; lg[d] < most && !(warps >> (layout_shift(l, d) + lg[d]) & 1);) lg[d]++;
		total += lg[d];
	}
	if (lg[last] < lg_span) return false;
	for (unsigned d = 0; d < last && total > lg_most;) {
		if (lg[d] && registers >> (layout_shift(l, d) + lg[d] - 1u) & 1)
			lg[d]--, total--;
		else
			d++;
	}
	return total <= lg_most && total >= lg_span + PERIOD_ROWS;
}

/* In shared memory a row begins 16 bytes further than the one above it ends: lanes that hold one column write to other
 * banks. */
static void set_rows(bulk_parts *p, unsigned bytes)
{
	p->swizzle = 0;
	p->buffers = 1;
	p->pitch = bytes * p->box[1] + ROW_ALIGN;
	p->copy_bytes = p->pitch * p->box[0];
}

/* Each bit of registers and lanes steps one bit of the coordinates, so that what they add to an offset adds up. */
static bool row_fits(const layout *l, unsigned bytes)
{
	for (unsigned in = LAYOUT_REG; in <= LAYOUT_LANE; in++)
		for (unsigned i = 0; i < l->nin[in]; i++)
			if (l->col[in][i] & (l->col[in][i] - 1)) return false;
	return l->rank == 2 && (bytes == 2 || bytes == 4) && bytes << l->lg[1] <= MOST_ROW;
}

static bool parts_of(const ir_value *v, bool rows, bulk_parts *p)
{
	assert(v->layout && v->type.rank);
	const layout *l = v->layout;
	ir_type box = v->type;
	unsigned bytes = scalar_bytes(box.elem);
	bulk_shape s;
	uint8_t lg[IR_MAX_RANK];
	memset(p, 0, sizeof *p);
	if (!bulk_shape_of(box, &s) || !s.swizzle || !layout_injective(l) || l->nin[LAYOUT_CTA]) return false;
	if (rows && !row_fits(l, bytes)) return false;
	unsigned lg_span = rows ? l->lg[1] : (unsigned)__builtin_ctz(s.swizzle / bytes);
	unsigned lg_most = rows ? lg_span + PERIOD_ROWS : (unsigned)__builtin_ctz(MOST_BYTES / bytes);
	if (!find_box(l, lg_span, lg_most, lg)) return false;
	uint32_t inside = 0;
	for (unsigned d = 0; d < box.rank; d++) {
		inside |= span_of(l, d, lg[d]);
		box.dim[d] = p->box[d] = UINT32_C(1) << lg[d];
	}
	p->piece = layout_of_shape(box);
	p->piece.nin[LAYOUT_LANE] = l->nin[LAYOUT_LANE];
	for (unsigned in = LAYOUT_REG; in <= LAYOUT_LANE; in++)
		for (unsigned i = 0; i < l->nin[in]; i++) {
			uint32_t column = l->col[in][i], moved = 0;
			for (unsigned d = 0; d < box.rank; d++)
				if (column & span_of(l, d, lg[d]))
					moved = layout_coordinate(l, column, d) << layout_shift(&p->piece, d);
			if (in == LAYOUT_LANE) {
				if (!moved) return false;
				p->piece.col[in][i] = moved;
			} else if (column & inside) {
				p->piece.col[in][p->ninside] = moved;
				p->inside[p->ninside++] = (uint8_t)i;
			} else
				p->outside[p->noutside++] = (uint8_t)i;
		}
	p->piece.nin[LAYOUT_REG] = (uint8_t)p->ninside;
	assert(layout_surjective(&p->piece));
	p->swizzle = s.swizzle;
	p->copies = 1u << p->noutside;
	p->copy_bytes = bytes << layout_bits(&p->piece);
	p->buffers = p->copies < BUFFERS ? p->copies : BUFFERS;
	if (rows) set_rows(p, bytes);
	return p->copies <= MOST_COPIES;
}

bool bulk_begins_copies(const ir_op *o)
{
	return ir_touches(o, IR_COPIES) && !(o->kind == IR_BULK_STORE && ir_get_by_rows(o));
}

bool bulk_parts_of(const ir_op *store, bulk_parts *p)
{
	assert(store->kind == IR_BULK_STORE);
	return parts_of(ir_arg(store, 1), ir_get_by_rows(store), p);
}

/* What all stores of blocks together say.  Stores of lanes and copies of the engine that write the same bytes are in
 * order behind a fence only, and so are copies of the engine that read them: rows go all, or none. */
typedef struct stores {
	pass_context *c;
	ir_func *f;
	const ir_value *root; /* of the store that is looked at */
	bool by_rows, wide, loaded;
} stores;

static void find_load(ir_op *o, void *context)
{
	stores *s = context;
	s->loaded |= o->kind == IR_BULK_LOAD && ir_arg(ir_arg(o, 0)->def, 0) == s->root;
}

/* The kernel can compute where rows lie, they may begin inside a sector, and a lane's 16 bytes are in the array, or
 * none of them. */
static bool can_go_by_rows(stores *s, const ir_op *o)
{
	const ir_op *map = ir_arg(o, 0)->def;
	const ir_tensor_map *m = map->map;
	unsigned bytes = scalar_bytes((scalar)ir_arg(o, 1)->type.elem);
	bulk_parts p;
	if (!parts_of(ir_arg(o, 1), false, &p) || !parts_of(ir_arg(o, 1), true, &p)) return false;
	if (m->rank < 2 || !host_value_divisor(s->f, m->address)) return false;
	for (unsigned i = 0; i < m->rank; i++)
		if (!host_value_divisor(s->f, m->extent[i]) || (i && !host_value_divisor(s->f, m->stride[i - 1])))
			return false;
	if (host_value_divisor(s->f, m->extent[0]) * bytes % ROW_ALIGN) return false;
	if (axis_divisor(s->c, ir_arg(o, o->nargs - 1u)) * bytes % ROW_ALIGN) return false;
	s->root = ir_arg(map, 0);
	ir_walk(s->f->body, find_load, s);
	return host_value_divisor(s->f, m->stride[0]) * bytes % SECTOR && !s->loaded;
}

static void see_store(ir_op *o, void *context)
{
	stores *s = context;
	if (o->kind != IR_BULK_STORE || !s->by_rows) return;
	s->by_rows = can_go_by_rows(s, o);
	s->wide |=
		ir_arg(o, 1)->type.dim[ir_arg(o, 1)->type.rank - 1u] * scalar_bytes((scalar)ir_arg(o, 1)->type.elem) >
		SPAN;
}

/* The map with another box, of a block of that rank. */
static ir_tensor_map *with_box(arena *a, const ir_tensor_map *map, unsigned rank, const bulk_parts *p)
{
	assert(rank && rank <= IR_MAP_RANK);
	ir_tensor_map *m = ARENA_NEW(a, ir_tensor_map);
	*m = *map;
	assert(rank <= m->rank);
	m->swizzle = p->swizzle;
	for (unsigned i = 0; i < m->rank; i++) m->box[i] = i < rank ? p->box[rank - 1 - i] : 1;
	return m;
}

static void by_warps(ir_op *o, void *context)
{
	const stores *all = context;
	pass_context *c = all->c;
	bulk_parts p;
	if (o->kind != IR_BULK_STORE || !parts_of(ir_arg(o, 1), false, &p)) return;
	if (all->by_rows) {
		ir_set_by_warps(o, true);
		ir_set_by_rows(o, true);
		return;
	}
	ir_op *map = ir_arg(o, 0)->def;
	ir_value *root = ir_arg(map, 0);
	ir_builder b = {.func = o->block->func, .block = map->block, .before = map, .at = map->at};
	ir_value *parts = ir_build1(&b, IR_TENSOR_MAP, root->type, 1, &root);
	parts->def->map = with_box(c->arena, map->map, ir_arg(o, 1)->type.rank, &p);
	ir_set_arg(o, 0, parts);
	ir_set_by_warps(o, true);
}

bool pass_bulk_parts(pass_context *c, ir_func *f)
{
	if (!pass_axis(c, f)) return false;
	stores all = {.c = c, .f = f, .by_rows = true};
	ir_walk(f->body, see_store, &all);
	all.by_rows &= all.wide;
	ir_walk(f->body, by_warps, &all);
	return true;
}
