/* The two halves of a tile of rank 1, taken apart and put together in each thread's registers.
 *
 * In: a tile in a layout.  Out: its halves, or of two halves the tile.  The one idea: N numbers are [2, N / 2];
 * transposed, their last dimension has extent 2, which `split` takes apart and `join` puts together without an exchange
 * where a thread holds both. */
#include "row_halves.h"
#include "layout/layout.h"

#include <assert.h>

static ir_value *with_layout(arena *a, ir_value *v, layout l)
{
	layout *kept = ARENA_NEW(a, layout);
	*kept = l;
	v->layout = kept;
	return v;
}

static ir_value *transpose(arena *a, ir_builder *b, ir_value *v)
{
	ir_type t = v->type;
	t.dim[0] = v->type.dim[1];
	t.dim[1] = v->type.dim[0];
	ir_value *transposed = ir_build1(b, IR_PERMUTE, t, 1, &v);
	ir_set_order(transposed->def, ir_pack(2, (uint16_t[]){1, 0}));
	return with_layout(a, transposed, layout_permute(v->layout, (uint8_t[]){1, 0}));
}

static ir_value *reshape(arena *a, ir_builder *b, ir_value *v, ir_type t)
{
	return with_layout(a, ir_build1(b, IR_RESHAPE, t, 1, &v), layout_reshape(v->layout, t));
}

/* N numbers as two halves, [2, N / 2]; N is even. */
static ir_type as_halves(ir_type row)
{
	assert(row.rank == 1 && row.dim[0] % 2 == 0);
	row.rank = 2;
	row.dim[1] = row.dim[0] / 2;
	row.dim[0] = 2;
	return row;
}

bool row_has_halves(const ir_value *row)
{
	if (row->type.rank != 1 || row->type.dim[0] < 2) return false;
	layout l = layout_reshape(row->layout, as_halves(row->type)), half;
	l = layout_permute(&l, (uint8_t[]){1, 0});
	return layout_unjoin(&l, &half);
}

ir_value *row_half(arena *a, ir_builder *b, ir_value *row, unsigned which)
{
	ir_value *pairs = transpose(a, b, reshape(a, b, row, as_halves(row->type)));
	ir_type t = row->type;
	t.dim[0] /= 2;
	ir_op *split = ir_build(b, IR_SPLIT, 1, &pairs, 2, (ir_type[]){t, t}, 0);
	layout half;
	layout_unjoin(pairs->layout, &half);
	for (unsigned i = 0; i < 2; i++) with_layout(a, split->results[i], half);
	return split->results[which];
}

ir_value *row_join(arena *a, ir_builder *b, ir_value *const *half, const ir_value *like)
{
	ir_type pairs = as_halves(like->type);
	pairs.dim[0] = pairs.dim[1];
	pairs.dim[1] = 2;
	ir_value *v = with_layout(a, ir_build1(b, IR_JOIN, pairs, 2, half), layout_join(half[0]->layout));
	v = reshape(a, b, transpose(a, b, v), like->type);
	v = ir_build1(b, IR_CONVERT_LAYOUT, like->type, 1, &v);
	v->layout = like->layout;
	return v;
}
