/* A loop of products that runs at least once, so that its sums begin with their first product.
 *
 * In: a loop whose loads are all by tensor maps, and whose products all take them and stay in flight; sums that start
 * from zeros.  Out: the same, and it has an iteration in any case (`accumulator_init`); where it had none, its loads
 * bring zeros. The one idea: a wgmma that starts a sum instead of adding to one spares its zeros, one instruction a
 * register and tile at a time at which the tensor cores stand idle.  But then somebody else has to write them where
 * there is no iteration, and the assembler lets nobody write to a sum's registers near products that run.  Outside of
 * an array a map reads zeros, so an iteration in which every block lies outside makes a sum of zeros by itself, at the
 * cost of a select where there are iterations.
 *
 * Whether a product adds is decided at run time, so the assembler keeps a sum's registers for it from one run of the
 * loop to the next.  In a loop that hurts what else wants registers: there the sum has to be stored as it is.
 *
 *     for k in lo .. hi, s = 0 {                %any = lt lo, hi
 *       %a = bulk_load A, %i, %k         ->     for k in select(%any, lo, 0) .. select(%any, hi, step), s = 0 {
 *       %t = wgmma %a, .., %s                     %column = select %any, %k, nowhere
 *                                                 %a = bulk_load A, %i, %column .. */
#include "pipeline.h"

#include <assert.h>
#include <string.h>

/* In front of every array, by more than any block's extent, and such that a block's line begins at 16 bytes. */
enum { NOWHERE = -(1 << 20) };

static bool is_staged(const pipeline *p, const ir_op *o)
{
	for (unsigned i = 0; i < p->nloads; i++)
		if (p->loads[i].load == o) return true;
	return false;
}

/* An iteration more does nothing but add to sums: what else the loop carries is not seen behind it. */
static bool only_sums_are_seen(const pipeline *p)
{
	assert(p->body && p->loop->kind == IR_FOR);
	for (const ir_op *o = p->body->first; o; o = o->next) {
		bool products = o->kind == IR_WGMMA || o->kind == IR_WGMMA_WAIT || o->kind == IR_YIELD;
		if (o->nregions || !(products || ir_has(o, IR_PURE) || is_staged(p, o))) return false;
	}
	for (unsigned k = 0; k < p->loop->nresults; k++) {
		const ir_op *next = ir_arg(p->body->last, k)->def;
		bool sum = next && next->kind == IR_WGMMA_WAIT;
		uint64_t bits;
		if (sum ? !ir_is_const(ir_arg(p->loop, 3 + k), &bits) || bits != 0 : p->loop->results[k]->uses != NULL)
			return false;
	}
	return true;
}

typedef struct around {
	const pipeline *p;
	bool plain;
} around;

static bool has_tiles(const ir_op *o)
{
	for (unsigned i = 0; i < o->nresults; i++)
		if (!ir_is_scalar(o->results[i])) return true;
	for (unsigned i = 0; i < o->nargs; i++)
		if (!ir_is_scalar(ir_arg(o, i))) return true;
	return false;
}

/* A tile is nothing but zeros that a sum begins with, or a sum on its way to a store. */
static void look_around(ir_op *o, void *context)
{
	around *a = context;
	assert(a->p->loop->kind == IR_FOR);
	if (ir_encloses(a->p->loop, o)) return;
	switch (o->kind) {
	case IR_CONST:
	case IR_CONVERT:
	case IR_CONVERT_LAYOUT:
	case IR_BULK_STORE: return;
	default: a->plain &= ir_has(o, IR_SHAPE) || !has_tiles(o);
	}
}

static bool is_stored_plainly(const pipeline *p)
{
	const ir_op *outermost = NULL;
	around a = {p, true};
	for (const ir_op *o = ir_loop_around(p->loop); o; o = ir_loop_around(o)) outermost = o;
	for (unsigned r = 0; outermost && r < outermost->nregions; r++) ir_walk(outermost->regions[r], look_around, &a);
	return a.plain;
}

static ir_value *choose(ir_builder *b, ir_value *any, ir_value *v, int64_t other)
{
	ir_value *args[] = {any, v, ir_constant_int(b, v->type.elem, other)};
	return ir_build1(b, IR_SELECT, v->type, 3, args);
}

/* By the index along lines: a copy must begin at 16 bytes there, which an iteration that does not exist says of no
 * other. */
static void look_nowhere(pipeline *p, ir_op *load, ir_value *any)
{
	assert(load->kind == IR_BULK_LOAD && load->nargs > 1);
	unsigned last = load->nargs - 1u;
	bool outside = ir_defined_outside(ir_arg(load, last), p->loop); /* then it is chosen in front of the loop */
	ir_op *before = outside ? p->loop : load;
	ir_builder b = {.func = p->func, .block = before->block, .before = before, .at = load->at};
	ir_set_arg(load, last, choose(&b, any, ir_arg(load, last), NOWHERE));
}

/* The slice knows values by their ids. */
static void slice_again(pipeline *p)
{
	assert(p->nvalues <= p->func->nvalues);
	bool *sliced = ARENA_ARRAY(p->context->arena, bool, p->func->nvalues);
	memcpy(sliced, p->sliced, p->nvalues);
	p->sliced = sliced;
	p->nvalues = p->func->nvalues;
	for (unsigned i = 0; i < p->nloads; i++)
		for (unsigned k = 1; k < p->loads[i].load->nargs; k++) pipeline_slice(p, ir_arg(p->loads[i].load, k));
}

void pipeline_init_accumulators(pipeline *p)
{
	assert(p->loop->kind == IR_FOR && p->body == p->loop->regions[0]);
	if (!p->nwaits || p->nbulk < p->nloads || (p->site && p->site->of->cluster) || !only_sums_are_seen(p) ||
		!is_stored_plainly(p))
		return;
	ir_op *loop = p->loop;
	assert(p->step > 0 && p->loop->kind == IR_FOR);
	ir_builder b = {.func = p->func, .block = loop->block, .before = loop, .at = loop->at};
	ir_value *lo = ir_arg(loop, 0), *hi = ir_arg(loop, 1), *any = ir_binary(&b, IR_LT, lo, hi);
	int64_t first, last;
	ir_set_accumulator_init(loop, true);
	if (ir_is_const_int(lo, &first) && ir_is_const_int(hi, &last) && first < last) return;
	ir_set_arg(loop, 0, choose(&b, any, lo, 0));
	ir_set_arg(loop, 1, choose(&b, any, hi, p->step));
	for (unsigned i = 0; i < p->nloads; i++) look_nowhere(p, p->loads[i].load, any);
	slice_again(p);
}
