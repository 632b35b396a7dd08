/* Common subexpressions: of two equal pure operations the later one goes.
 *
 * In: any level.  Out: within a block and the blocks inside it, one of each.
 * The one idea: a hash table that is undone on the way out of a region, so an entry is visible exactly where its value
 * dominates.  Loads through *const pointers count as pure: nothing writes that memory while the kernel runs. */
#include "ir/tensor_map.h"
#include "passes/passes.h"

#include <string.h>

typedef struct entry {
	uint64_t hash;
	ir_op *op;
	uint32_t next; /* in the bucket, 0: none */
} entry;

typedef struct cse {
	arena *arena;
	VEC(entry) entries;     /* entry 0 is unused */
	uint32_t *bucket, mask; /* as many buckets as values, so that chains stay short; a power of two */
} cse;

/* Operands in an order that does not depend on how a commutative operation was written. */
static void operands(const ir_op *o, const ir_value **first, const ir_value **second)
{
	assert(o->nargs == 2);
	const ir_value *a = ir_arg(o, 0), *b = ir_arg(o, 1);
	bool swap = ir_has(o, IR_COMMUTES) && a->id > b->id;
	*first = swap ? b : a;
	*second = swap ? a : b;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static uint64_t hash(const ir_op *o)
{
	assert(o->nresults > 0 && !o->nregions);
	uint64_t h = mix(o->kind, o->nargs);
	for (unsigned i = 0; i < IR_MAX_ATTR; i++) h = mix(h, (uint64_t)o->attr[i]);
	const ir_type *t = &o->results[0]->type;
	h = mix(h, (uint64_t)t->elem | (uint64_t)t->pointer << 8 | (uint64_t)t->rank << 16);
	for (unsigned i = 0; i < t->rank; i++) h = mix(h, t->dim[i]);
	if (o->nargs == 2) {
		const ir_value *a, *b;
		operands(o, &a, &b);
		return mix(mix(h, a->id), b->id);
	}
	for (unsigned i = 0; i < o->nargs; i++) h = mix(h, ir_arg(o, i)->id);
	return h;
}

static bool same_layout(const ir_value *a, const ir_value *b)
{
	if (a->layout == b->layout) return true;
	return a->layout && b->layout && layout_equal(a->layout, b->layout);
}

static bool equal(const ir_op *x, const ir_op *y)
{
	if (x->kind != y->kind || x->nargs != y->nargs || x->nresults != y->nresults) return false;
	if (memcmp(x->attr, y->attr, sizeof x->attr) != 0) return false;
	if (x->map != y->map && (!x->map || !y->map || !ir_tensor_map_equal(x->map, y->map))) return false;
	if (x->text != y->text && (!x->text || !y->text || strcmp(x->text, y->text) != 0)) return false;
	for (unsigned i = 0; i < x->nresults; i++)
		if (!ir_type_equal(x->results[i]->type, y->results[i]->type) ||
			!same_layout(x->results[i], y->results[i]))
			return false;
	if (x->nargs == 2) {
		const ir_value *a, *b, *c, *d;
		operands(x, &a, &b);
		operands(y, &c, &d);
		return a == c && b == d;
	}
	for (unsigned i = 0; i < x->nargs; i++)
		if (ir_arg(x, i) != ir_arg(y, i)) return false;
	return true;
}

static void run(cse *c, ir_block *b)
{
	uint32_t mark = c->entries.n;
	for (ir_op *o = b->first, *next; o; o = next) {
		next = o->next;
		for (unsigned r = 0; r < o->nregions; r++) run(c, o->regions[r]);
		if (o->nresults == 0 || !ir_is_repeatable(o)) continue;
		uint64_t h = hash(o);
		uint32_t i = c->bucket[h & c->mask];
		while (i && !(c->entries.at[i].hash == h && equal(c->entries.at[i].op, o))) i = c->entries.at[i].next;
		if (i) {
			for (unsigned k = 0; k < o->nresults; k++)
				ir_replace(o->results[k], c->entries.at[i].op->results[k]);
			ir_erase(o);
			continue;
		}
		vec_push(c->arena, &c->entries, ((entry){.hash = h, .op = o, .next = c->bucket[h & c->mask]}));
		c->bucket[h & c->mask] = c->entries.n - 1;
	}
	while (c->entries.n > mark) { /* newest first, so each bucket's chain unwinds */
		entry *e = &c->entries.at[--c->entries.n];
		assert(c->bucket[e->hash & c->mask] == c->entries.n);
		c->bucket[e->hash & c->mask] = e->next;
	}
}

bool pass_cse(pass_context *p, ir_func *f)
{
	cse *c = ARENA_NEW(p->arena, cse);
	c->arena = p->arena;
	uint32_t buckets = 64;
	while (buckets < f->nvalues && buckets < 1u << 24) buckets *= 2;
	assert(!(buckets & (buckets - 1)));
	c->bucket = ARENA_ARRAY(p->arena, uint32_t, buckets);
	c->mask = buckets - 1;
	vec_push(p->arena, &c->entries, (entry){0});
	run(c, f->body);
	return true;
}
