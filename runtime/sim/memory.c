/* Which addresses a thread may touch.  In: an address of a space.  Out: where its bytes and their undefined bits are on
 * the host, or a report that names the nearest buffer by its argument.
 *
 * A buffer's exact extent is known, so an access is outside as soon as its first byte is; what lies around a buffer is
 * never another one (device.c leaves a gap). */
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>

const sim_range *sim_range_in(const sim_range *ranges, size_t n, uint64_t address)
{
	size_t low = 0, high = n; /* the last that begins at or before the address */
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (ranges[middle].base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	assert((low == 0 || ranges[low - 1].base <= address) && (low == n || ranges[low].base > address));
	if (low == 0) return NULL;
	const sim_range *r = &ranges[low - 1];
	return address - r->base < r->bytes ? r : NULL;
}

const sim_range *sim_range_find(const sim_launch *l, uint64_t address)
{
	return sim_range_in(l->ranges, l->nranges, address);
}

static sim_space space_of(sim_space space, uint64_t *address)
{
	if (space != SPACE_GENERIC) return space;
	if (*address & SIM_SHARED_WINDOW) space = SPACE_SHARED, *address &= ~SIM_SHARED_WINDOW;
	if (*address & SIM_LOCAL_WINDOW) space = SPACE_LOCAL, *address &= ~SIM_LOCAL_WINDOW;
	return space == SPACE_GENERIC ? SPACE_GLOBAL : space;
}

sim_spot sim_spot_in(const sim_range *r, sim_space space, uint64_t address, uint64_t bytes, const char *kind)
{
	return (sim_spot){.space = space,
		.range = r,
		.is_placed = r != NULL,
		.offset = r ? (int64_t)(address - r->base) : 0,
		.bytes = bytes,
		.kind = kind};
}

sim_spot sim_spot_at(
	const sim_warp *w, const sim_instr *in, sim_space space, uint64_t address, uint64_t bytes, const char *kind)
{
	const sim_program *p = w->program;
	const sim_cluster *c = p->cluster;
	bool others = in->in_cluster || space == SPACE_GENERIC;
	space = space_of(space, &address);
	if (space == SPACE_LOCAL)
		return (sim_spot){.space = space,
			.is_placed = true,
			.offset = (int64_t)(address - SIM_LOCAL_BASE),
			.bytes = bytes,
			.kind = kind};
	if (space != SPACE_SHARED) return sim_spot_in(sim_range_find(p->launch, address), space, address, bytes, kind);
	uint64_t rank = address >> SIM_RANK_SHIFT;
	if (c->n > 1 && rank < c->n) {
		address &= SHARED_OFFSETS;
		if (rank || others) p = c->programs[rank];
	}
	return sim_spot_shared(p, address - SIM_SHARED_BASE, bytes, kind);
}

/* The buffer whose edge is nearest. */
static const sim_range *nearest(const sim_launch *l, uint64_t address, uint64_t *distance)
{
	const sim_range *best = NULL;
	*distance = UINT64_MAX;
	for (size_t i = 0; i < l->nranges; i++) {
		const sim_range *r = &l->ranges[i];
		if (r->parameter < 0) continue;
		uint64_t d = address < r->base ? r->base - address : address - r->base - r->bytes;
		if (address - r->base < r->bytes) d = 0;
		if (d < *distance) *distance = d, best = r;
	}
	return best;
}

static void *outside(
	sim_warp *w, const sim_instr *in, unsigned lane, sim_space space, uint64_t address, unsigned bytes, bool writes)
{
	const sim_launch *l = w->program->launch;
	const char *what = writes ? "written" : "read";
	uint64_t distance;
	const sim_range *r = nearest(l, address, &distance);
	const sim_spot nowhere = sim_spot_in(NULL, space, address, bytes, sim_kind_name(writes));
	char name[SIM_NAME];
	if (address < 4096) {
		sim_report_at(w, in, lane, &nowhere,
			"a pointer that was passed as null, or an address that was read from memory as 0",
			"%u bytes are %s at the null pointer plus %" PRIu64, bytes, what, address);
	} else if (!r || distance > UINT64_C(1) << 30) {
		sim_report_at(w, in, lane, &nowhere,
			"an address that comes from no argument, or an index of a wild size",
			"%u bytes are %s at 0x%" PRIx64 ", far from every buffer", bytes, what, address);
	} else {
		const sim_spot near = sim_spot_in(r, space, address, bytes, sim_kind_name(writes));
		sim_report_at(w, in, lane, &near,
			near.offset < 0
				? "the index is negative: a mask of i < n alone lets it through"
				: "compare the mask with the number of elements: the last program's tile may end "
				  "behind it",
			"%u bytes are %s outside %s, which has %" PRIu64 " bytes: at offset %" PRId64, bytes, what,
			sim_range_name(l, r, name), r->bytes, near.offset);
	}
	return NULL;
}

bool sim_may_touch(sim_warp *w, const sim_instr *in, unsigned lane, const sim_range *r, uint64_t address,
	unsigned bytes, bool writes)
{
	char name[SIM_NAME];
	if (!(w->early >> lane & 1) || !r->shadow) return true;
	const sim_spot spot = sim_spot_in(r, SPACE_GLOBAL, address, bytes, sim_kind_name(writes));
	return sim_report_at(w, in, lane, &spot,
		"the kernel before this one in the stream may still run: griddepcontrol.wait must stand in front",
		"%u bytes of %s are %s by a thread that has not waited for the kernel before this one", bytes,
		sim_range_name(w->program->launch, r, name), writes ? "written" : "read");
}

static const uint8_t no_shadow[64]; /* of what is all defined: nobody writes it */

static uint8_t *global(sim_warp *w, const sim_instr *in, unsigned lane, sim_space space, uint64_t address,
	unsigned bytes, bool writes, uint8_t **shadow)
{
	const sim_range *r = w->near;
	if (!r || address - r->base >= r->bytes) {
		r = sim_range_find(w->program->launch, address);
		if (!r) return outside(w, in, lane, space, address, bytes, writes);
		w->near = r;
	}
	if (r->bytes - (address - r->base) < bytes) return outside(w, in, lane, space, address, bytes, writes);
	if (writes && r->read_only) {
		char name[SIM_NAME];
		const sim_spot spot = sim_spot_in(r, space, address, bytes, sim_kind_name(writes));
		sim_report_at(w, in, lane, &spot,
			"what is passed as *const must not be written while the kernel runs; pass it as *T",
			"%u bytes of %s are written, which is passed as *const: at offset %" PRId64, bytes,
			sim_range_name(w->program->launch, r, name), spot.offset);
		return NULL;
	}
	if (!sim_may_touch(w, in, lane, r, address, bytes, writes)) return NULL;
	assert(bytes <= sizeof no_shadow && (r->defined || r->shadow));
	*shadow = r->defined ? (uint8_t *)no_shadow : r->shadow + (address - r->base);
	return (uint8_t *)(uintptr_t)address;
}

/* Shared memory of a program, or memory of a thread: where its generic addresses begin, and what the host has there. */
typedef struct window {
	const sim_program *owner; /* of shared memory; null: it is the thread's own */
	uint8_t *memory, *undefined;
	uint64_t base, size;
} window;

static uint8_t *inside(sim_warp *w, const sim_instr *in, unsigned lane, const window *m, uint64_t address,
	unsigned bytes, bool writes, uint8_t **shadow)
{
	uint64_t offset = address - m->base;
	if (offset >= m->size || m->size - offset < bytes) {
		const sim_spot spot = {.space = m->owner ? SPACE_SHARED : SPACE_LOCAL,
			.owner = m->owner,
			.is_placed = true,
			.offset = (int64_t)offset,
			.bytes = bytes,
			.kind = sim_kind_name(writes)};
		sim_report_at(w, in, lane, &spot, NULL,
			"%u bytes are %s outside %s memory, of which the program has %" PRIu64
			" bytes: at offset %" PRId64,
			bytes, writes ? "written" : "read", m->owner ? "shared" : "local", m->size, spot.offset);
		return NULL;
	}
	*shadow = m->undefined + offset;
	return m->memory + offset;
}

uint8_t *sim_memory(sim_warp *w, const sim_instr *in, unsigned lane, sim_space space, uint64_t address, unsigned bytes,
	bool writes, uint8_t **shadow)
{
	assert(bytes && !(bytes & (bytes - 1)) && lane < SIM_LANES);
	sim_program *p = w->program;
	if (address & (bytes - 1)) {
		const sim_spot spot = sim_spot_at(w, in, space, address, bytes, sim_kind_name(writes));
		sim_report_at(w, in, lane, &spot,
			"vector accesses need addresses that their size divides; a promise of alignment may be wrong",
			"an access of %u bytes at 0x%" PRIx64 ", which %u does not divide", bytes, address, bytes);
		return NULL;
	}
	space = space_of(space, &address);
	if (space == SPACE_SHARED && __builtin_expect((address >> SIM_RANK_SHIFT | p->rank) != 0, 0) &&
		!(p = sim_shared_owner(w, in, lane, &address)))
		return NULL;
	if (space == SPACE_SHARED) {
		const window m = {p, p->shared, p->shared_shadow, SIM_SHARED_BASE, p->shared_bytes};
		return inside(w, in, lane, &m, address, bytes, writes, shadow);
	}
	if (space == SPACE_LOCAL) {
		uint64_t own = lane * p->code->local_bytes;
		const window m = {NULL, w->local + own, w->local_shadow + own, SIM_LOCAL_BASE, p->code->local_bytes};
		return inside(w, in, lane, &m, address, bytes, writes, shadow);
	}
	return global(w, in, lane, space, address, bytes, writes, shadow);
}

sim_program *sim_shared_owner(sim_warp *w, const sim_instr *in, unsigned lane, uint64_t *address)
{
	sim_program *p = w->program, *owner = p;
	const sim_cluster *c = p->cluster;
	uint64_t rank = *address >> SIM_RANK_SHIFT;
	bool others = in->in_cluster || in->space == SPACE_GENERIC;
	if (c->n == 1 && rank) return p; /* a wild address, which its reader finds to be outside */
	if (rank != p->rank && (rank || others)) {
		if (rank >= c->n || !others) {
			const sim_spot spot = {.space = SPACE_SHARED};
			sim_report_at(w, in, lane, &spot,
				"an address of another program's shared memory comes from mapa, for .shared::cluster",
				"shared memory of program %" PRIu64
				" of the cluster is used, which has %u; this is program %u",
				rank, c->n, p->rank);
			return NULL;
		}
		owner = c->programs[rank];
		bool lives = false;
		for (uint32_t k = 0; k < owner->nwarps; k++) lives = lives || owner->warps[k].state != WARP_ENDED;
		if (!lives) {
			const sim_spot spot =
				sim_spot_shared(owner, (*address & SHARED_OFFSETS) - SIM_SHARED_BASE, 0, NULL);
			sim_report_at(w, in, lane, &spot,
				"a barrier of the cluster stands at the end of programs that others reach into",
				"shared memory of program %" PRIu64 " of the cluster is used, which has ended", rank);
			return NULL;
		}
	}
	*address &= SHARED_OFFSETS;
	return owner;
}

bool sim_is_global(const sim_instr *in, uint64_t address)
{
	return in->space == SPACE_GLOBAL || in->space == SPACE_CONST ||
	       (in->space == SPACE_GENERIC && !(address & (SIM_SHARED_WINDOW | SIM_LOCAL_WINDOW)));
}
