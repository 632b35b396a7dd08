/* Layouts for access to global memory.  In and out: see coalesce.h.
 *
 * The rules:
 * - The order of the dimensions is that of descending contiguity of the pointers, later dimensions first among equals.
 * - Loads and stores of one shape and one order form a class and share a layout: elements per thread as many as the
 *   widest access of the class may cover (16 bytes at most, as far as the axis analysis proves it), but not more than
 *   its narrowest store, because a store that leaves gaps between lanes writes part of every sector, where loads
 *   with gaps find the rest in the cache; and never more than there are elements for each thread.
 *   What a dot takes is converted anyway: loads that only dots want share with each other alone, by element size, so
 *   that a narrow store of a tile that happens to have their shape does not narrow them.
 *   An atomic is a store (of single elements, mostly), unless its addresses are scattered anyway.
 * - Lanes come next along the order: a warp covers as long a contiguous stretch as the tile has.  Then warps, first
 *   along dimensions over which no tile of this shape is reduced, so that a reduction stays inside warps where it can.
 *
 * What a store costs, in sector writes and instructions of warps:
 *   bytes / min(run, 32) + warps * registers / width
 * where `width` is the elements of one access and `run` the contiguous bytes that a warp covers with one of them.  A
 * conversion costs 128 (two barriers and the latency of shared memory) + warps * (registers before + registers after).
 * The value is converted when the sum is smaller: a transposed tile is, the statistics of a few rows are not. */
#include "coalesce.h"
#include "async/scratch.h"

#include <string.h>

enum { SECTOR = 32, CONVERSION = 128, NARROW = 4 };

static void dimension_order(const axis_info *info, unsigned rank, uint8_t *order)
{
	assert(rank && rank <= IR_MAX_RANK);
	for (unsigned i = 0; i < rank; i++) {
		unsigned d = rank - 1 - i, at = i;
		uint32_t contiguity = info->known ? info->contiguity[d] : 1;
		for (; at > 0 && (info->known ? info->contiguity[order[at - 1]] : 1) < contiguity; at--)
			order[at] = order[at - 1];
		order[at] = (uint8_t)d;
	}
}

/* The element's size if this is a load that ends, through conversions and turns, in dots only; else 0. */
static uint8_t operand_bytes(const ir_op *o)
{
	const ir_value *v = o->kind == IR_LOAD ? o->results[0] : NULL;
	while (v && v->uses && !v->uses->next) {
		const ir_op *user = v->uses->user;
		bool dot = user->kind == IR_DOT || user->kind == IR_WGMMA;
		if (dot && (user->nargs < 3 || ir_arg(user, 2) != v))
			return (uint8_t)scalar_bytes(o->results[0]->type.elem);
		v = user->kind == IR_PERMUTE || user->kind == IR_CONVERT ? user->results[0] : NULL;
	}
	return 0;
}

static coalesce_class *find(coalesce *c, ir_type shape, const uint8_t *order, uint8_t operand)
{
	for (uint32_t i = 0; i < c->classes.n; i++) {
		coalesce_class *k = c->classes.at[i];
		if (ir_same_shape(k->shape, shape) && k->operand == operand && memcmp(k->order, order, shape.rank) == 0)
			return k;
	}
	return NULL;
}

static coalesce_class *add(coalesce *c, ir_type shape, const uint8_t *order, uint8_t operand)
{
	assert(shape.rank && !find(c, shape, order, operand));
	coalesce_class *k = ARENA_NEW(c->context->arena, coalesce_class);
	k->shape = shape;
	k->operand = operand;
	memcpy(k->order, order, shape.rank);
	k->lg_store = UINT8_MAX;
	vec_push(c->context->arena, &c->classes, k);
	return k;
}

static void choose(coalesce *c, coalesce_class *k)
{
	uint64_t elements = ir_elements(k->shape), threads = 32 * (uint64_t)c->num_warps;
	unsigned lg = k->lg_widest < k->lg_store ? k->lg_widest : k->lg_store;
	unsigned most = elements > threads ? lg2(elements / threads) : 0;
	uint8_t warp_order[IR_MAX_RANK];
	unsigned n = 0;
	for (unsigned reduced = 0; reduced < 2; reduced++)
		for (unsigned i = 0; i < k->shape.rank; i++)
			if ((k->reduced >> k->order[i] & 1) == reduced) warp_order[n++] = k->order[i];
	assert(n == k->shape.rank);
	k->mapping = layout_coalesced_warps(k->shape, lg < most ? lg : most, k->order, warp_order, c->num_warps);
}

static void collect(ir_op *o, void *context)
{
	coalesce *c = context;
	if (!ir_accesses(o) || ir_is_scalar(ir_arg(o, 0))) return;
	ir_type pointer = ir_arg(o, 0)->type;
	uint8_t order[IR_MAX_RANK];
	dimension_order(axis_get(c->context, ir_arg(o, 0)), pointer.rank, order);
	uint8_t operand = operand_bytes(o);
	coalesce_class *k = find(c, pointer, order, operand);
	if (!k) k = add(c, pointer, order, operand);
	unsigned lg = lg2(axis_access_width(c->context, o, order[0], NULL));
	if (ir_is_atomic(o) && axis_get(c->context, ir_arg(o, 0))->contiguity[order[0]] == 1) return; /* scattered */
	if (lg > k->lg_widest) k->lg_widest = (uint8_t)lg;
	if (ir_touches(o, IR_WRITES_GLOBAL) && lg < k->lg_store) k->lg_store = (uint8_t)lg;
	k->bytes += ir_elements(pointer) * scalar_bytes(pointer.elem);
}

static void collect_reduction(ir_op *o, void *context)
{
	coalesce *c = context;
	if (o->kind != IR_REDUCE && o->kind != IR_SCAN) return;
	for (uint32_t i = 0; i < c->classes.n; i++)
		if (ir_same_shape(c->classes.at[i]->shape, ir_arg(o, 0)->type))
			c->classes.at[i]->reduced |= (uint8_t)(1u << ir_get_axis(o));
}

void coalesce_collect(coalesce *c, const pass_context *context, ir_func *f)
{
	c->context = context;
	c->num_warps = f->num_warps;
	ir_walk(f->body, collect, c);
	ir_walk(f->body, collect_reduction, c);
	for (uint32_t i = 0; i < c->classes.n; i++) choose(c, c->classes.at[i]);
}

static coalesce_class *of_access(coalesce *c, const ir_op *o)
{
	uint8_t order[IR_MAX_RANK];
	const ir_value *pointer = ir_arg(o, 0);
	dimension_order(axis_get(c->context, pointer), pointer->type.rank, order);
	coalesce_class *k = find(c, pointer->type, order, operand_bytes(o));
	assert(k); /* coalesce_collect() has seen the access */
	return k;
}

const layout *coalesce_of_access(coalesce *c, const ir_op *o)
{
	return &of_access(c, o)->mapping;
}

const layout *coalesce_of_value(coalesce *c, const ir_value *v)
{
	assert(v->type.rank);
	uint8_t order[IR_MAX_RANK];
	coalesce_class *best = NULL;
	if (v->type.pointer) {
		dimension_order(axis_get(c->context, v), v->type.rank, order);
		best = find(c, v->type, order, (uint8_t)scalar_bytes(v->type.elem));
		if (!best) best = find(c, v->type, order, 0);
	}
	bool named = best != NULL;
	for (uint32_t i = 0; i < c->classes.n && !named; i++) {
		coalesce_class *k = c->classes.at[i];
		if (ir_same_shape(k->shape, v->type) && (!best || k->bytes > best->bytes)) best = k;
	}
	if (!best) { /* nothing of this shape touches memory */
		for (unsigned i = 0; i < v->type.rank; i++) order[i] = (uint8_t)(v->type.rank - 1 - i);
		best = add(c, v->type, order, 0);
		best->lg_widest = 2;
		choose(c, best);
	}
	return &best->mapping;
}

/* Bits of dimension `dim`, from the lowest up, that one access of a warp covers. */
static unsigned lg_run(const layout *l, unsigned dim, unsigned lg_width)
{
	uint32_t covered = ((UINT32_C(1) << lg_width) - 1) << layout_shift(l, dim);
	for (unsigned i = 0; i < l->nin[LAYOUT_LANE]; i++) covered |= l->col[LAYOUT_LANE][i];
	covered >>= layout_shift(l, dim);
	unsigned n = 0;
	while (n < l->lg[dim] && covered >> n & 1) n++;
	return n;
}

static uint64_t instructions(const layout *l)
{
	return UINT64_C(1) << (l->nin[LAYOUT_WARP] + l->nin[LAYOUT_REG]);
}

static uint64_t store_cost(const layout *l, unsigned dim, unsigned lg_allowed, unsigned element_bytes)
{
	unsigned lg_width = layout_lg_contiguous(l, dim);
	if (lg_width > lg_allowed) lg_width = lg_allowed;
	uint64_t run = (uint64_t)element_bytes << lg_run(l, dim, lg_width);
	uint64_t bytes = (uint64_t)element_bytes << layout_bits(l);
	assert(run && run <= bytes);
	return bytes / (run < SECTOR ? run : SECTOR) + (instructions(l) >> lg_width);
}

bool coalesce_is_narrow_beside(const ir_op *load, uint64_t elements)
{
	return ir_elements(ir_arg(load, 0)->type) * NARROW <= elements;
}

bool coalesce_is_narrow(coalesce *c, const ir_op *load)
{
	uint64_t largest = 0;
	for (uint32_t i = 0; i < c->classes.n; i++) {
		uint64_t n = ir_elements(c->classes.at[i]->shape);
		if (n > largest) largest = n;
	}
	return coalesce_is_narrow_beside(load, largest);
}

bool coalesce_direct_pays(coalesce *c, const ir_op *load, const layout *wanted)
{
	return instructions(wanted) <= CONVERSION + instructions(&of_access(c, load)->mapping);
}

bool coalesce_convert_pays(coalesce *c, const ir_op *store, const layout *natural)
{
	const coalesce_class *k = of_access(c, store);
	if (layout_equal(&k->mapping, natural)) return false;
	unsigned bytes = scalar_bytes(ir_arg(store, 0)->type.elem), dim = k->order[0];
	unsigned lg = lg2(axis_access_width(c->context, store, dim, NULL));
	unsigned lg_word = bytes < 4 ? lg2(4 / bytes) : 0; /* shared memory is written and read in words at least */
	uint64_t conversion = CONVERSION + (instructions(natural) >> lg_word) + (instructions(&k->mapping) >> lg_word);
	return store_cost(&k->mapping, dim, lg, bytes) + conversion < store_cost(natural, dim, lg, bytes);
}
