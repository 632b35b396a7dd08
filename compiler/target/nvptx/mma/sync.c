/* The table of mma.sync forms, and how warps share the sum.  See mma/sync.h.
 *
 * Each warp reads what its part of the sum needs of both operands, so its part should be as square as it can be: the
 * longer side is halved until the warps run out.  Batches come first: they share nothing.  Two dots in a row, the first
 * one's sum being the second one's first operand, take all warps along the rows: then that operand is where it is
 * wanted, and rows are reduced within warps. */
#include "sync.h"

#include <assert.h>

static const mma_form forms[] = {
	{SCALAR_F16, "m16n8k16.row.col.f32.f16.f16.f32", 0, 16, 16, 2, 80, 70},
	{SCALAR_BF16, "m16n8k16.row.col.f32.bf16.bf16.f32", 0, 16, 16, 2, 80, 70},
	{SCALAR_F8E4M3, "m16n8k32.row.col.f32.%s.%s.f32", 0, 16, 32, 4, 89, 84},
	{SCALAR_I8, "m16n8k32.row.col.s32.s8.s8.s32", 0, 16, 32, 4, 80, 70},
	{SCALAR_F32, "m16n8k8.row.col.f32.tf32.tf32.f32", IR_TF32, 16, 8, 1, 80, 70},
	{SCALAR_F32, "m16n8k8.row.col.f32.tf32.tf32.f32", IR_TF32X3, 16, 8, 1, 80, 70},
	{SCALAR_F32, NULL, IR_IEEE, 16, 4, 1, 80, 70},
	{SCALAR_F64, "m8n8k4.row.col.f64.f64.f64.f64", 0, 8, 4, 1, 80, 70},
};

const mma_form *mma_form_of(const blk_target *t, const ir_op *dot)
{
	assert(dot->kind == IR_DOT);
	scalar s = ir_arg(dot, 0)->type.elem;
	if (scalar_is_fp8(s)) s = SCALAR_F8E4M3;
	for (unsigned i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		const mma_form *f = &forms[i];
		if (f->type == s && f->sm <= t->sm && (s != SCALAR_F32 || f->precision == ir_get_precision(dot)))
			return f;
	}
	return NULL;
}

enum { MOST_STEPS = 16 }; /* operations between two dots that are looked at */

/* Is the value made, element by element, from a dot's sum? */
static bool from_sum(const ir_value *v, unsigned steps)
{
	const ir_op *o = v->def;
	if (!o || steps == 0) return false;
	if (o->kind == IR_DOT) return true;
	if (!ir_has(o, IR_ELEMENTWISE) && o->kind != IR_CONVERT_LAYOUT) return false;
	for (unsigned i = 0; i < o->nargs; i++)
		if (!ir_is_scalar(ir_arg(o, i)) && from_sum(ir_arg(o, i), steps / o->nargs)) return true;
	return false;
}

/* Does a dot take what is made, element by element, from the value as its first operand? */
static bool to_first_operand(const ir_value *v, unsigned steps)
{
	for (const ir_use *u = v->uses; u && steps; u = u->next, steps--) {
		const ir_op *o = u->user;
		if (o->kind == IR_DOT && o->args[0] == u) return true;
		if (!ir_has(o, IR_ELEMENTWISE) && o->kind != IR_CONVERT_LAYOUT) continue;
		if (to_first_operand(o->results[0], steps - 1)) return true;
	}
	return false;
}

static mma_warps share(const ir_op *dot, unsigned num_warps)
{
	assert(num_warps && !(num_warps & (num_warps - 1)));
	ir_type t = dot->results[0]->type;
	uint32_t m = t.dim[t.rank - 2], n = t.dim[t.rank - 1];
	mma_warps w = {1, 1, 1};
	bool rows_only = from_sum(ir_arg(dot, 0), MOST_STEPS) || to_first_operand(dot->results[0], MOST_STEPS);
	while (t.rank == 3 && w.batch < t.dim[0] && w.batch < num_warps) w.batch *= 2;
	while (w.batch * w.m * w.n < num_warps) {
		bool rows = m > 16 * w.m, columns = n > 8 * w.n;
		if (rows && (rows_only || !columns || m * w.n >= n * w.m))
			w.m *= 2;
		else if (columns)
			w.n *= 2;
		else
			w.m *= 2; /* they repeat it */
	}
	assert(w.batch * w.m * w.n == num_warps);
	return w;
}

void mma_layouts_of(const ir_op *dot, const mma_form *f, unsigned num_warps, mma_layouts *out)
{
	mma_warps w = share(dot, num_warps);
	out->sum = layout_mma_accumulator(dot->results[0]->type, w);
	out->a = layout_mma_operand(ir_arg(dot, 0)->type, false, f->elements, w);
	out->b = layout_mma_operand(ir_arg(dot, 1)->type, true, f->elements, w);
}
