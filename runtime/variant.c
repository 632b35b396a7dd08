/* The table of a kernel's compiled variants.
 *
 * Reading takes no lock: a slot goes from null to a variant once and never changes, and a table that grew out is kept
 * until the kernel is destroyed.  Writing happens under the kernel's lock, so that a combination is compiled once while
 * other threads that need it wait. */
#include "internal.h"

#include <stdlib.h>

static inline uint32_t hash(uint64_t key)
{
	return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 40);
}

static inline variant *find(const variant_table *t, uint64_t key)
{
	for (uint32_t i = hash(key);; i++) {
		variant *v = atomic_load_explicit(&((variant_table *)t)->slots[i & t->mask], memory_order_acquire);
		if (!v || v->key == key) return v;
	}
}

static void insert(variant_table *t, variant *v)
{
	uint32_t i = hash(v->key) & t->mask;
	while (atomic_load_explicit(&t->slots[i], memory_order_relaxed)) i = (i + 1) & t->mask;
	t->used++;
	atomic_store_explicit(&t->slots[i], v, memory_order_release);
}

/* A table with room for one more, at most half full so that probes are short and always end. */
static variant_table *with_room(blk_kernel *k)
{
	variant_table *t = atomic_load_explicit(&k->variants, memory_order_relaxed);
	if (2 * (t->used + 1) <= t->mask) return t;
	uint32_t size = 2 * (t->mask + 1);
	variant_table *bigger = calloc(1, sizeof *t + size * sizeof t->slots[0]);
	if (!bigger) return NULL;
	bigger->mask = size - 1;
	bigger->outgrown = t;
	for (uint32_t i = 0; i <= t->mask; i++) {
		variant *v = atomic_load_explicit(&t->slots[i], memory_order_relaxed);
		if (v) insert(bigger, v);
	}
	atomic_store_explicit(&k->variants, bigger, memory_order_release);
	return bigger;
}

void variant_free(blk_device *d, variant *v)
{
	d->backend->unload(d, v);
	tensor_maps_free(v);
	signature_free(v->sig);
	free(v->ptx);
	free(v);
}

static blk_status make(blk_kernel *k, uint64_t key, variant **out)
{
	variant_table *t = with_room(k);
	variant *v = t ? calloc(1, sizeof *v) : NULL;
	if (!v) return error_memory();
	if (!k->tuner && !k->module->own) note_clear(); /* else this is a part of what a tuner does, which has */
	v->key = key;
	blk_status status = specialise_build(k, key, NULL, v);
	if (status) {
		variant_free(k->head.device, v);
		return status;
	}
	insert(t, v);
	*out = v;
	return BLK_OK;
}

blk_status variant_get(blk_kernel *k, uint64_t key, variant **out)
{
	if (k->module->is_ptx) key = 0; /* compiled already, for every argument that keeps its promises */
	if (k->packaged) key = packaged_key(k->packaged, key);
	*out = find(atomic_load_explicit(&k->variants, memory_order_acquire), key);
	if (*out) return BLK_OK;
	pthread_mutex_lock(&k->lock);
	*out = find(atomic_load_explicit(&k->variants, memory_order_relaxed), key);
	blk_status status = *out ? BLK_OK : make(k, key, out);
	pthread_mutex_unlock(&k->lock);
	return status;
}
