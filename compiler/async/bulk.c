/* How a block travels by bulk copies, and how it lies in shared memory.  See bulk.h. */
#include "ir/tensor_map.h"
#include "bulk.h"

#include <assert.h>
#include <string.h>

static unsigned swizzle_of(unsigned row_bytes)
{
	return row_bytes >= 128 ? 128 : row_bytes >= 32 ? row_bytes : 0;
}

bool bulk_shape_of(ir_type t, bulk_shape *s)
{
	assert(t.rank && t.rank <= IR_MAX_RANK);
	unsigned bytes = scalar_bytes(t.elem), last = t.rank - 1u;
	memset(s, 0, sizeof *s);
	if (t.rank < 1 || t.pointer || t.dim[last] * bytes < 16 || ir_elements(t) * bytes > BULK_BYTES) return false;
	uint32_t row = t.dim[last] * bytes, rows = (uint32_t)(ir_elements(t) / t.dim[last]);
	/* A swizzle goes by address bits 7 to 9: a panel has to begin where these are 0. */
	s->swizzle = t.rank == 1 || (row > 128 && rows % 8) ? 0 : swizzle_of(row);
	memcpy(s->box, t.dim, sizeof s->box);
	if (s->swizzle)
		s->box[last] = s->swizzle / bytes;
	else if (t.dim[last] > BULK_BOX)
		s->box[last] = BULK_BOX;
	s->panels = t.dim[last] / s->box[last];
	assert(s->panels * s->box[last] == t.dim[last]);
	if (!s->swizzle && s->panels > 1 && rows > 1) return false; /* rows lie whole */
	s->pieces = 1;
	bool slower =
		false; /* a slower dimension has more than one element: its elements would have to be cut as well */
	for (unsigned d = 0; d < last; d++) {
		if (t.dim[d] > BULK_BOX) {
			if (slower) return false;
			s->split = d;
			s->pieces = t.dim[d] / BULK_BOX;
			s->box[d] = BULK_BOX;
		}
		slower |= t.dim[d] > 1;
	}
	s->bytes = (uint32_t)(ir_elements(t) * bytes);
	s->copy_bytes = s->bytes / (s->panels * s->pieces);
	assert(s->copy_bytes * s->panels * s->pieces == s->bytes);
	return s->panels * s->pieces <= BULK_COPIES;
}

uint32_t bulk_slot_bytes(const bulk_shape *s)
{
	return (s->bytes + BULK_ALIGN - 1) / BULK_ALIGN * BULK_ALIGN;
}

bool bulk_shape_divide(ir_type t, unsigned shares, bulk_shape *s)
{
	assert(shares && !(shares & (shares - 1)));
	unsigned copies = s->panels * s->pieces;
	if (copies % shares == 0) return true;
	if (shares % copies) return false;
	unsigned parts = shares / copies, d = s->pieces > 1 ? s->split : 0;
	while (t.dim[d] == 1 && d + 1u < t.rank) d++; /* the slowest of more than one element */
	if (d + 1u == t.rank || s->box[d] % parts || s->copy_bytes / parts % BULK_ALIGN) return false;
	s->box[d] /= parts;
	s->split = d;
	s->pieces *= parts;
	s->copy_bytes /= parts;
	assert(s->panels * s->pieces == shares);
	return s->panels * s->pieces <= BULK_COPIES;
}

bool bulk_rounds(const ir_op *load)
{
	const ir_op *map = ir_arg(load, 0)->def;
	return map && map->map && map->map->rounds;
}

layout bulk_layout(ir_type t)
{
	bulk_shape s;
	bulk_shape_of(t, &s);
	assert(s.bytes != 0); /* a block that a map fits */
	return layout_swizzled_shared(t, scalar_bytes(t.elem), s.swizzle);
}

static void find_consumers(const ir_value *v, bool *products, bool *others)
{
	for (const ir_use *u = v->uses; u; u = u->next) {
		const ir_op *o = u->user;
		if (o->kind == IR_PERMUTE || o->kind == IR_CONVERT_LAYOUT)
			find_consumers(o->results[0], products, others);
		else
			*(o->kind == IR_WGMMA ? products : others) = true;
	}
}

bool bulk_feeds_products_and_threads(const ir_op *load)
{
	assert(load->kind == IR_BULK_LOAD);
	bool products = false, others = false;
	find_consumers(load->results[0], &products, &others);
	return products && others;
}
