/* The width of an access to global memory.
 *
 * In: a mapped load or store and the axis analysis.  Out: how many elements one instruction moves, and why no more.
 * The one idea: an access covers neighbours that one thread holds (its layout) and that are known to lie side by side,
 * aligned, under one mask bit (the axis analysis); the smaller of the two numbers, along the best dimension. */
#include "access.h"

/* `d` is a better dimension to speak of than the one chosen so far. */
static bool better(const axis_info *info, const access_plan *have, unsigned d, unsigned width, unsigned proven)
{
	if (width != have->width) return width > have->width;
	if (proven != have->proven) return proven > have->proven;
	return info->known && info->contiguity[d] >= info->contiguity[have->dim];
}

access_plan access_plan_make(const pass_context *p, const ir_op *o)
{
	const ir_value *pointer = ir_arg(o, 0);
	access_plan plan = {.width = 1, .proven = 1, .limit = AXIS_SCALAR};
	if (!pointer->layout) return plan;
	assert(pointer->layout->rank == pointer->type.rank);
	for (unsigned d = 0; d < pointer->type.rank; d++) {
		axis_limit limit;
		unsigned proven = axis_access_width(p, o, d, &limit);
		unsigned held = 1u << layout_lg_contiguous(pointer->layout, d);
		unsigned width = proven < held ? proven : held;
		if (plan.limit != AXIS_SCALAR && !better(axis_get(p, pointer), &plan, d, width, proven)) continue;
		plan = (access_plan){.width = width, .dim = d, .proven = proven, .limit = limit};
	}
	assert(plan.width <= plan.proven);
	return plan;
}
