/* Blocks leave by parts: each warp copies its own.
 *
 * In: a mapped function.  Out: a bulk_store whose tile is spread so that a warp holds boxes of it whole has by_warps
 * set and goes by a map of such a box.  The one idea: what a warp alone has written to shared memory, a warp's barrier
 * orders; so warps store on their own, piece by piece through two buffers each, while the copies of pieces before are
 * under way.
 *
 * A box takes the lowest coordinates of each dimension that the warp's registers and lanes step: a swizzled span of the
 * last one, 8 rows or more (a swizzle's period), MOST_BYTES at most.  All lanes lie in it; registers that do not step
 * from copy to copy.  A tile that is spread otherwise leaves in one go, behind a barrier of the program. */
#include "ir/tensor_map.h"
#include "bulk.h"

#include <assert.h>
#include <string.h>

enum { MOST_BYTES = 4096, MOST_COPIES = 32, PERIOD_ROWS = 3, BUFFERS = 2 };

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

/* Extents of the box, log2; false: there is none. */
static bool find_box(const layout *l, unsigned lg_span, unsigned lg_element, uint8_t lg[IR_MAX_RANK])
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
	for (unsigned d = 0; d < last && total + lg_element > (unsigned)__builtin_ctz(MOST_BYTES);) {
		if (lg[d] && registers >> (layout_shift(l, d) + lg[d] - 1u) & 1)
			lg[d]--, total--;
		else
			d++;
	}
	return total + lg_element <= (unsigned)__builtin_ctz(MOST_BYTES) && total >= lg_span + PERIOD_ROWS;
}

bool bulk_parts_of(const ir_value *v, bulk_parts *p)
{
	assert(v->layout && v->type.rank);
	const layout *l = v->layout;
	ir_type box = v->type;
	unsigned bytes = scalar_bytes(box.elem);
	bulk_shape s;
	uint8_t lg[IR_MAX_RANK];
	memset(p, 0, sizeof *p);
	if (!bulk_shape_of(box, &s) || !s.swizzle || !layout_injective(l) || l->nin[LAYOUT_CTA]) return false;
	unsigned lg_element = (unsigned)__builtin_ctz(bytes), lg_span = (unsigned)__builtin_ctz(s.swizzle / bytes);
	if (!find_box(l, lg_span, lg_element, lg)) return false;
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
	return p->copies <= MOST_COPIES;
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
	pass_context *c = context;
	bulk_parts p;
	if (o->kind != IR_BULK_STORE || !bulk_parts_of(ir_arg(o, 1), &p)) return;
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
	ir_walk(f->body, by_warps, c);
	return true;
}
