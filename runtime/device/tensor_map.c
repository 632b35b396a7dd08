/* The tensor maps that a launch passes behind the user's arguments.
 *
 * In: a variant, whose signature says by expressions over the arguments what its maps are, and the arguments.  Out: the
 * maps, encoded by the device.  The one idea: a map is made of a request of 128 bytes, and a kernel is launched with
 * few different ones; so what was encoded is kept by the request's value, a few for each map, and a launch computes the
 * requests, compares, and copies.  A map says nothing about a buffer's life: one that outlives its buffer is never
 * asked for, or right again for the next buffer at that address. */
#include "internal.h"
#include "support/scalar.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4 }; /* of each map: as many buffers as programs rotate through */

typedef struct known_map {
	tensor_map_request request; /* magic 0: empty */
	tensor_map map;
} known_map;

struct tensor_map_cache {
	pthread_mutex_t lock;
	uint32_t oldest[SIGNATURE_MAPS]; /* the slot to use next */
	known_map known[][SLOTS];
};

blk_status tensor_maps_prepare(variant *v)
{
	size_t n = v->sig->nmaps;
	if (!n) return BLK_OK;
	size_t bytes = (sizeof(tensor_map_cache) + n * SLOTS * sizeof(known_map) + 63) / 64 * 64;
	tensor_map_cache *c = aligned_alloc(64, bytes);
	if (!c) return error_memory();
	memset(c, 0, bytes);
	pthread_mutex_init(&c->lock, NULL);
	v->maps = c;
	return BLK_OK;
}

void tensor_maps_free(variant *v)
{
	if (!v->maps) return;
	pthread_mutex_destroy(&v->maps->lock);
	free(v->maps);
	v->maps = NULL;
}

static blk_status refuse(const variant *v, uint32_t map, const char *why)
{
	return error_set(BLK_ERROR_ARGUMENT, "kernel %s: no tensor map %u can be made of these arguments: %s",
		v->sig->kernel, map, why);
}

/* Copies keep indices in 32 bits; a block that begins inside ends below 2^31 so.  2^31 itself is a dimension without
 * end: the kernel's indices are never outside of it. */
enum { LARGEST_EXTENT = INT32_MAX - 65536 };
#define NO_END (INT64_C(1) << 31)
#define LARGEST_STRIDE (INT64_C(1) << 40)

static blk_status make_request(blk_device *d, const variant *v, uint32_t i, const uint64_t *bits, tensor_map_request *q)
{
	const signature *s = v->sig;
	const signature_map *m = &s->maps[i];
	uint32_t sms = d->info.num_sms;
	int64_t n;
	memset(q, 0, sizeof *q);
	q->magic = TENSOR_MAP_MAGIC;
	q->type = m->element;
	q->element_bytes = (uint8_t)scalar_bytes((scalar)m->element);
	q->rank = m->rank;
	q->swizzle = m->swizzle;
	q->rounds = m->rounds;
	if (!signature_integer(s, &m->address, bits, sms, &n)) return refuse(v, i, "its address cannot be computed");
	if (n == 0 || n % 16 != 0) return refuse(v, i, "its address is null or no multiple of 16");
	q->address = (uint64_t)n;
	for (unsigned k = 0; k < m->rank; k++) {
		q->box[k] = m->box[k];
		if (!signature_integer(s, &m->extent[k], bits, sms, &n) || n <= 0 ||
			(n > LARGEST_EXTENT && n != NO_END))
			return refuse(v, i, "an extent is below 1 or too large");
		q->extent[k] = (uint64_t)n;
		q->stride[k] = q->element_bytes;
		if (k == 0) continue;
		if (!signature_integer(s, &m->stride[k], bits, sms, &n) || n <= 0 || n >= LARGEST_STRIDE || n % 16 != 0)
			return refuse(v, i, "a stride is below 1, too large, or no multiple of 16 bytes");
		q->stride[k] = (uint64_t)n;
	}
	return BLK_OK;
}

/* Under the cache's lock. */
static blk_status find_or_encode(
	blk_device *d, tensor_map_cache *c, uint32_t i, const tensor_map_request *q, tensor_map *out)
{
	known_map *known = c->known[i];
	for (unsigned k = 0; k < SLOTS; k++)
		if (memcmp(&known[k].request, q, sizeof *q) == 0) {
			*out = known[k].map;
			return BLK_OK;
		}
	if (!d->backend->encode) return error_set(BLK_ERROR_UNSUPPORTED, "this device has no tensor maps");
	blk_status status = d->backend->encode(d, q, out);
	if (status) return status;
	known[c->oldest[i]] = (known_map){*q, *out};
	c->oldest[i] = (c->oldest[i] + 1) % SLOTS;
	return BLK_OK;
}

blk_status tensor_maps_get(blk_device *d, const variant *v, const uint64_t *bits, tensor_map *maps)
{
	tensor_map_cache *c = v->maps;
	blk_status status = BLK_OK;
	for (uint32_t i = 0; !status && i < v->sig->nmaps; i++) {
		tensor_map_request q;
		if ((status = make_request(d, v, i, bits, &q))) return status;
		pthread_mutex_lock(&c->lock);
		status = find_or_encode(d, c, i, &q, &maps[i]);
		pthread_mutex_unlock(&c->lock);
	}
	return status;
}
