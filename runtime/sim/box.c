/* What a bulk tensor copy moves: a box of a tensor, row by row, into shared memory; and whether its map is right. */
#include "bulk.h"

#include <inttypes.h>
#include <string.h>

/* Piece i of the copy whose bytes begin at offset `place` of shared memory. */
sim_piece sim_bulk_piece(const sim_bulk *b, uint32_t place, uint32_t i)
{
	assert(i < b->bytes / 16 && place % 16 == 0);
	sim_piece p = {.shared = place + 16 * i, .global = b->global + 16 * (uint64_t)i, .low = 0, .high = 16};
	if (!b->has_map) return p;
	const tensor_map_request *m = &b->map;
	uint32_t size = m->element_bytes, row = m->box[0] * size / 16, each = 16 / size, rest = i / row;
	int64_t x = b->at[0] + (int64_t)(i % row * each), extent = (int64_t)m->extent[0];
	int64_t low = x < 0 ? -x : 0, high = extent - x;
	if (low > each) low = each;
	if (high > each) high = each;
	if (high < low) high = low;
	assert(low >= 0 && low <= high && high <= each);
	int64_t offset = x * (int64_t)size;
	for (uint32_t k = 1; k < m->rank; k++) {
		int64_t at = b->at[k] + (int64_t)(rest % m->box[k]);
		rest /= m->box[k];
		if (at < 0 || at >= (int64_t)m->extent[k]) high = low;
		offset += at * (int64_t)m->stride[k];
	}
	p.global = m->address + (uint64_t)offset;
	p.low = (uint32_t)low * size;
	p.high = (uint32_t)high * size;
	if (m->swizzle) p.shared ^= ((p.shared >> 7) & (m->swizzle / 16u - 1)) << 4;
	return p;
}

static bool wrong(const sim_bulk *b, const char *why)
{
	return sim_report(b->w, b->in, b->lane, "the host makes the map, of a type, a shape, strides and a box",
		"a tensor map %s", why);
}

/* What the encoder on the host demands. */
static bool is_sound(const sim_bulk *b)
{
	const tensor_map_request *m = &b->map;
	uint32_t size = m->element_bytes;
	if (m->magic != TENSOR_MAP_MAGIC) return wrong(b, "was never made");
	if (m->rank != b->in->nregs) return wrong(b, "has another number of dimensions than the copy");
	if (m->type >= SCALAR_COUNT || scalar_bytes((scalar)m->type) != size) return wrong(b, "is malformed");
	if (m->rounds && m->type != SCALAR_F32) return wrong(b, "is malformed");
	if (m->swizzle != 0 && m->swizzle != 32 && m->swizzle != 64 && m->swizzle != 128)
		return wrong(b, "is malformed");
	if (m->address % 16) return wrong(b, "has an address that 16 does not divide");
	for (uint32_t k = 0; k < m->rank; k++) {
		if (m->box[k] == 0 || m->box[k] > 256 || m->extent[k] == 0 || m->extent[k] > UINT64_C(1) << 32)
			return wrong(b, "is malformed");
		if (k && (m->stride[k] % 16 || m->stride[k] >= UINT64_C(1) << 40))
			return wrong(b, "has a stride that 16 does not divide, or too large a one");
	}
	if (m->box[0] * size % 16) return wrong(b, "has a box whose rows are no multiple of 16 bytes");
	if (m->swizzle && m->box[0] * size > m->swizzle) return wrong(b, "has a box that is wider than its swizzle");
	return true;
}

#define NO_END (UINT64_C(1) << 31) /* an extent: the host knows none, tensor_map.c */

/* The bytes that the buffer must have: those of the tensor, or, where it has no end, those up to the end of the box.
 * None where the box lies outside: nobody goes to memory then. */
static uint64_t bytes_needed(const sim_bulk *b)
{
	const tensor_map_request *m = &b->map;
	uint64_t all = m->element_bytes, these = m->element_bytes;
	bool endless = false, empty = false;
	for (uint32_t k = 0; k < m->rank; k++) {
		uint64_t stride = k ? m->stride[k] : m->element_bytes;
		int64_t end = (int64_t)b->at[k] + m->box[k];
		if (end > (int64_t)m->extent[k]) end = (int64_t)m->extent[k];
		endless |= m->extent[k] == NO_END;
		empty |= end <= 0 || end <= b->at[k];
		all += (m->extent[k] - 1) * stride;
		these += (uint64_t)(end - 1) * stride;
	}
	return empty ? 0 : endless ? these : all;
}

bool sim_bulk_map(sim_bulk *b, uint64_t address, const sim_range **range)
{
	const sim_launch *l = b->w->program->launch;
	const tensor_map *map = NULL;
	char name[SIM_NAME];
	for (uint32_t i = 0; i < l->nmaps; i++)
		if (address == (uint64_t)(uintptr_t)&l->maps[i]) map = &l->maps[i];
	if (!map)
		return sim_report(b->w, b->in, b->lane, "it is the address of a parameter that is a tensor map",
			"no tensor map is at 0x%" PRIx64, address);
	memcpy(&b->map, map, sizeof b->map);
	if (!is_sound(b)) return false;
	b->has_map = true;
	const tensor_map_request *m = &b->map;
	uint64_t bytes = bytes_needed(b), box = m->element_bytes;
	for (uint32_t k = 0; k < m->rank; k++) box *= m->box[k];
	if (box > b->w->program->shared_bytes) return wrong(b, "has a box that is larger than shared memory");
	b->bytes = (uint32_t)box;
	const sim_range *r = *range = sim_range_find(l, m->address);
	if (r && r->bytes - (m->address - r->base) >= bytes) return true;
	const sim_spot spot = sim_spot_in(r, SPACE_GLOBAL, m->address, bytes, sim_kind_name(b->kind == BULK_STORE));
	return sim_report_at(b->w, b->in, b->lane, &spot, "compare its shape and strides with the number of elements",
		"the tensor of a map, %" PRIu64 " bytes, does not lie in a buffer: from offset %" PRId64
		" of %s, which has %" PRIu64,
		bytes, spot.offset, sim_range_name(l, r, name), r ? r->bytes : 0);
}
