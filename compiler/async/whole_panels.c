/* The last columns of a row of products are brought in a whole panel, so that they are part of the same instruction.
 *
 * In: the loads of a loop that is pipelined.  Out: a block of b with less than 128 bytes of columns, behind others
 * whose columns fill their panels, becomes one of 128 bytes:
 *     %y = bulk_load %b, %k, %j : f16[64,128]          two panels of 64 columns          two panels
 *     %z = bulk_load %b, %k, %j+128 : f16[64,32]   ->  one of 32, swizzled in 64 bytes   one of 64, in 128 bytes
 *
 * The one idea: an instruction reads n columns of equal panels, and need not read the last one to its end.  Both
 * products are then one of 160 columns (join_mma.c), 80 cycles for each k16 instead of 64 + 24; what the copy brings
 * besides, here columns 160 to 191, nobody reads.  It costs as many bytes of shared memory and of the way there: only
 * where these are free (latencies.c). */
#include "ir/tensor_map.h"
#include "bulk.h"
#include "pipeline.h"
#include "target/nvptx/mma/wgmma.h"

#include <assert.h>

enum { PANEL = 128 };

/* The product that alone takes the block, as it lies: [k, n], rows along n. */
static const ir_op *product_by(const staged *s)
{
	const consumer *t = &s->by[0];
	bool fits = s->bulk && s->nby == 1 && s->parts == 1 && s->block.rank == 2 && s->fast == 1;
	return fits && t->op->kind == IR_WGMMA && t->arg == 1 && !t->transposed ? t->op : NULL;
}

/* Its columns are those of one instruction; 0: of several. */
static uint32_t columns_of(const ir_func *f, const ir_op *product)
{
	ir_type sum = product->results[0]->type;
	wgmma_shape shape;
	bool fits = wgmma_shape_of(sum, f->num_warps, wgmma_widest(f), &shape) && sum.rank == 2;
	return fits && shape.columns == 1 && shape.width == sum.dim[1] ? shape.width : 0;
}

/* `map`, which nobody else uses, gets the boxes of `whole`, unless another map of the function is that already. */
static ir_value *of_whole_boxes(const ir_func *f, ir_value *map, const ir_tensor_map *whole)
{
	for (const ir_op *o = f->body->first; o; o = o->next)
		if (o->kind == IR_TENSOR_MAP && ir_tensor_map_equal(o->map, whole)) return o->results[0];
	map->def->map = whole;
	return map;
}

/* The products by the same first operand: those in front of this one fill their panels, and none is behind it. */
static bool ends_a_row(const pipeline *p, const staged *last)
{
	const ir_op *product = product_by(last);
	uint32_t columns = 0, panels = 0;
	if (!product || last->swizzle == PANEL || ir_arg(last->load, 0)->uses->next) return false;
	for (unsigned i = 0; i < p->nloads; i++) {
		const ir_op *o = product_by(&p->loads[i]);
		if (!o || ir_arg(o, 0) != ir_arg(product, 0)) continue;
		if (!columns_of(p->func, o)) return false;
		columns += columns_of(p->func, o);
		if (o == product) continue;
		if (p->loads[i].swizzle != PANEL || ir_precedes(product, o)) return false;
		panels++;
	}
	return panels && wgmma_takes_columns(p->func, wgmma_form_of(last->block.elem), columns);
}

static void take_block(pipeline *p, staged *s, ir_type block)
{
	bulk_shape before, now;
	bool fit = bulk_shape_of(s->block, &before) && bulk_shape_of(block, &now);
	assert(fit);
	(void)fit;
	s->block = block;
	s->swizzle = now.swizzle;
	s->bytes = bulk_slot_bytes(&now);
	p->expected += now.bytes - before.bytes;
}

bool pipeline_widen(pipeline *p)
{
	bool some = false;
	for (unsigned i = 0; i < p->nloads; i++) {
		staged *s = &p->loads[i];
		ir_type whole = s->block;
		if (!ends_a_row(p, s)) continue;
		whole.dim[1] = PANEL / ir_element_bytes(whole);
		take_block(p, s, whole);
		some = true;
	}
	return some;
}

void pipeline_narrow(pipeline *p)
{
	for (unsigned i = 0; i < p->nloads; i++) {
		staged *s = &p->loads[i];
		if (!ir_type_equal(s->block, s->load->results[0]->type)) take_block(p, s, s->load->results[0]->type);
	}
}

void pipeline_bring_whole_panels(pipeline *p)
{
	for (unsigned i = 0; i < p->nloads; i++) {
		staged *s = &p->loads[i];
		if (ir_type_equal(s->block, s->load->results[0]->type)) continue;
		ir_value *map = ir_arg(s->load, 0);
		assert(map->def->kind == IR_TENSOR_MAP && map->def->map->box[0] < s->block.dim[1]);
		ir_tensor_map *whole = ARENA_NEW(p->context->arena, ir_tensor_map);
		*whole = *map->def->map;
		whole->box[0] = s->block.dim[1];
		whole->swizzle = s->swizzle;
		ir_set_arg(s->load, 0, of_whole_boxes(p->func, map, whole));
	}
}
