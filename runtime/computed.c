/* Const parameters that a launch computes from its arguments.
 *
 * In: a kernel whose signature says how, and arguments.  Out: its instance for their values: a kernel of its own, with
 * its own signature, code and tuner, of the same module.  So whatever depends on a const parameter (the grid, options,
 * configurations) depends on these too, and the rest of the runtime knows nothing of them.
 *
 * An instance is made once, under the kernel's lock, and found without one, as a variant is (variant.c); it is kept as
 * long as the kernel. */
#include "internal.h"
#include "package/defines.h"
#include "support/scalar.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Values ---- */

static blk_status no_value(const blk_kernel *k, const signature_computed *c, const uint64_t *bits, const char *what)
{
	char values[512];
	signature_requirement_values(k->sig, &c->value, bits, k->head.device->info.num_sms, values, sizeof values);
	return error_set(BLK_ERROR_ARGUMENT, "kernel %s: %s = %s %s%s%s", k->sig->kernel, c->name, c->value.source,
		what, values[0] ? ": " : "", values);
}

static blk_status outside(const blk_kernel *k, const signature_computed *c, const uint64_t *bits, int64_t v)
{
	char what[160];
	int n = snprintf(what, sizeof what, "is %" PRId64 ", which is ", v);
	if (c->bounded)
		snprintf(what + n, sizeof what - (size_t)n, "not in %" PRId64 "..%" PRId64, c->low, c->high);
	else
		snprintf(what + n, sizeof what - (size_t)n, "no %s", blk_type_name(c->type));
	return no_value(k, c, bits, what);
}

static bool holds(scalar type, int64_t v)
{
	return scalar_sign_extend(type, (uint64_t)v) == v && (v >= 0 || scalar_is_signed(type));
}

static inline blk_status compute(const blk_kernel *k, const uint64_t *bits, int64_t *values)
{
	for (uint32_t i = 0; i < k->sig->ncomputed; i++) {
		const signature_computed *c = &k->sig->computed[i];
		int64_t v;
		if (!signature_integer(k->sig, &c->value.condition, bits, k->head.device->info.num_sms, &v))
			return no_value(k, c, bits, signature_trouble_text((signature_trouble)v));
		if (c->type == BLK_TYPE_BOOL) v = v != 0;
		if (c->bounded ? v < c->low || v > c->high : !holds((scalar)c->type, v)) return outside(k, c, bits, v);
		values[i] = v;
	}
	return BLK_OK;
}

size_t computed_text(const signature_computed *c, int64_t v, char *to, size_t room)
{
	int n = c->type == BLK_TYPE_BOOL ? snprintf(to, room, "%s", v ? "true" : "false")
					 : snprintf(to, room, "%" PRId64, v);
	return n > 0 ? (size_t)n : 0;
}

static blk_status no_constant(const blk_kernel *k, const char *name, const char *what)
{
	return error_set(BLK_ERROR_NOT_FOUND, "kernel %s has no %s '%s'", k->sig->kernel, what, name);
}

/* What is bound in the kernel's own signature. */
static blk_status bound(const blk_kernel *k, const char *name, int64_t *value)
{
	const signature_constant *c = kernel_constant(k->sig, name);
	char *end;
	if (!c) return no_constant(k, name, "const parameter");
	bool is_true = strcmp(c->value, "true") == 0;
	*value = is_true || strcmp(c->value, "false") == 0 ? is_true : (int64_t)strtoll(c->value, &end, 10);
	if (is_true || strcmp(c->type, "bool") == 0) return BLK_OK;
	return c->type[0] != 't' && *c->value && !*end ? BLK_OK
						       : no_constant(k, name, "integer or bool as const parameter");
}

blk_status blk_kernel_constant(blk_kernel *k, const char *name, const blk_arg *args, size_t n, int64_t *value)
{
	uint64_t bits[SIGNATURE_PARAMETERS], key;
	int64_t values[SIGNATURE_COMPUTED];
	blk_status status = kernel_check(k);
	if (!status && (!name || !value))
		status = error_set(
			BLK_ERROR_ARGUMENT, "blk_kernel_constant: no %s", name ? "place for the value" : "name");
	if (!status) status = launch_arguments(k, args, n, bits, &key);
	if (!status && k->instances) status = compute(k, bits, values);
	if (status) return status;
	for (uint32_t i = 0; k->instances && i < k->sig->ncomputed; i++)
		if (strcmp(k->sig->computed[i].name, name) == 0) return *value = values[i], BLK_OK;
	return bound(k, name, value);
}

/* ---- The table ---- */

typedef struct instance {
	struct instance *next; /* of the same list */
	blk_kernel *kernel;
	int64_t values[];
} instance;

enum { BUCKETS = 64 };

struct instance_table {
	_Atomic(instance *) buckets[BUCKETS];
};

static inline _Atomic(instance *) *bucket_of(const blk_kernel *k, const int64_t *values)
{
	uint64_t h = 0;
	for (uint32_t i = 0; i < k->sig->ncomputed; i++) h = (h ^ (uint64_t)values[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return &k->instances->buckets[h >> 58];
}

/* Lists only grow, at their heads. */
static inline blk_kernel *find(const blk_kernel *k, _Atomic(instance *) *bucket, const int64_t *values)
{
	instance *i = atomic_load_explicit(bucket, memory_order_acquire);
	while (i && memcmp(i->values, values, k->sig->ncomputed * sizeof *values) != 0) i = i->next;
	return i ? i->kernel : NULL;
}

/* ---- Making one ---- */

/* The values as defines, in one block with their texts; null: out of memory. */
static blk_define *defines_of(const signature *s, const int64_t *values)
{
	enum { ROOM = 24 };
	blk_define *out = malloc(s->ncomputed * (sizeof *out + ROOM));
	char *text = out ? (char *)(out + s->ncomputed) : NULL;
	for (uint32_t i = 0; out && i < s->ncomputed; i++, text += ROOM) {
		computed_text(&s->computed[i], values[i], text, ROOM);
		out[i] = (blk_define){s->computed[i].name, text};
	}
	return out;
}

/* A launch looks at its arguments with the kernel's own signature. */
static bool takes_the_same(const blk_kernel *a, const blk_kernel *b)
{
	bool same = a->nparameters == b->nparameters;
	for (uint32_t i = 0; same && i < a->nparameters; i++)
		same = memcmp(&a->launch[i], &b->launch[i], sizeof a->launch[i]) == 0;
	return same;
}

static blk_status make(blk_kernel *k, const int64_t *values, blk_kernel **out)
{
	blk_define *defines = defines_of(k->sig, values);
	if (!defines) return error_memory();
	note_clear();
	blk_status status = k->packaged ? packaged_instance(k, defines, out) : specialise_instance(k, defines, out);
	if (status) {
		free(defines);
		return status;
	}
	(*out)->values = defines;
	(*out)->nvalues = k->sig->ncomputed;
	if (takes_the_same(*out, k)) return BLK_OK;
	kernel_destroy(*out);
	return error_set(BLK_ERROR_FORMAT, "the parameters of kernel %s depend on values that its launches compute",
		k->sig->kernel);
}

static blk_status add(blk_kernel *k, _Atomic(instance *) *bucket, const int64_t *values, blk_kernel **out)
{
	size_t bytes = k->sig->ncomputed * sizeof *values;
	instance *i = malloc(sizeof *i + bytes);
	if (!i) return error_memory();
	blk_status status = make(k, values, &i->kernel);
	if (status) {
		free(i);
		return status;
	}
	memcpy(i->values, values, bytes);
	i->next = atomic_load_explicit(bucket, memory_order_relaxed);
	atomic_store_explicit(bucket, i, memory_order_release);
	*out = i->kernel;
	return BLK_OK;
}

blk_status computed_instance(blk_kernel **kernel, const uint64_t *bits)
{
	blk_kernel *k = *kernel, *found;
	int64_t values[SIGNATURE_COMPUTED];
	blk_status status = compute(k, bits, values);
	if (status) return status;
	_Atomic(instance *) *bucket = bucket_of(k, values);
	if (!(found = find(k, bucket, values))) {
		pthread_mutex_lock(&k->lock);
		if (!(found = find(k, bucket, values))) status = add(k, bucket, values, &found);
		pthread_mutex_unlock(&k->lock);
	}
	if (!status) *kernel = found;
	return status;
}

blk_status computed_prepare(blk_kernel *k)
{
	if (!k->sig->ncomputed || k->module->is_ptx) return BLK_OK;
	k->instances = calloc(1, sizeof *k->instances);
	return k->instances ? BLK_OK : error_memory();
}

void computed_free(blk_kernel *k)
{
	for (int b = 0; k->instances && b < BUCKETS; b++)
		for (instance *i = atomic_load(&k->instances->buckets[b]), *next; i; i = next) {
			next = i->next;
			kernel_destroy(i->kernel);
			free(i);
		}
	free(k->instances);
	free(k->values);
}
