/* A base that the program computes.
 *
 * In: the pointer that a tensor begins at: a parameter, and offsets that depend on the program's number, a loop's
 * counter and the like.  Out: each part of the offset that only the device knows as a dimension more of one large
 * array:
 *     q + b * stride_b + h / 4 * stride_h   ->   at q: stride_b apart, number b; stride_h apart, number h / 4
 * The one idea: along these dimensions nothing is cut off, as pointers would cut nothing.  So they have no end, and all
 * that has to hold is that a number is not below 0, where a copy would read zeros, and has 32 bits.
 *
 * In a sum of i64 each number stays as it is, b * heads + h as one.  Else, where an offset in i32 is no number times a
 * stride so, all is taken apart. */
#include "pointer_analysis.h"

static const char *look(window *w, ir_value *base)
{
	affine pointer;
	const char *why = NULL;
	unsigned bytes = scalar_bytes((scalar)base->type.elem);
	if (!affine_of(&w->range.context, base, &pointer)) return window_no_sum(base);
	w->root = pointer.root;
	w->narrow = pointer.narrow;
	if (!pointer.root || pointer.root->def || pointer.root->block != w->range.context.func->body)
		return "its base begins at no pointer that is a parameter";
	if ((why = window_terms(w, &pointer))) return why;
	for (unsigned i = 0; i < w->offset.n; i++)
		if (w->offset.term[i].factor < 0) return "its base may lie in front of the parameter";
	for (unsigned i = 0; i < w->n; i++)
		if (window_divisor(w->range.context.pass, &w->side[i].stride) * bytes % 16)
			return "its base is not known to move by multiples of 16 bytes";
	if ((why = window_range(w))) return why;
	return window_guard_size(w) ? NULL : WINDOW_TOO_MANY;
}

const char *window_of_base(window *w, ir_value *base)
{
	assert(ir_is_scalar(base) && base->type.pointer);
	const window fresh = *w;
	w->range.context.open_offsets = true;
	if (!look(w, base)) return NULL;
	*w = fresh;
	w->range.context.open_scalars = true;
	return look(w, base);
}
