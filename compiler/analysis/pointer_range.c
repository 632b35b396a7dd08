/* A window's coordinates: never below 0, and in 32 bits.
 *
 * In: the sides of a window with their bounds.  Out: a proof, or why there is none.  A copy by a map reads nothing in
 * front of the array; pointers read what lies there, the end of the row before for one.  So where the mask does not
 * exclude coordinates below 0, there must be none.
 * The one idea: int_range.h's. */
#include "pointer_analysis.h"

enum { MOST_INDEX = INT32_MAX / 2 };

/* Is a term at most that?  By its range, or of a loop's counter if the host sees it of the loop's end. */
static bool below(window *w, const affine_term *t, int64_t most)
{
	if (t->natoms != 1 || t->factor < 0) return false;
	ir_value *v = t->atom[0];
	uint64_t number;
	int_bounds b = int_range_of(v);
	if (b.low >= 0 && (b.high == 0 || t->factor <= most / b.high)) return true;
	const ir_op *loop = v->def ? NULL : v->block->parent;
	if (!loop || loop->kind != IR_FOR || v->index > 0) return false;
	ir_value *end = ir_arg(loop, 1);
	affine left = {0}, last = affine_value(end);
	/* what the range does not show of a number is not so: the host need not look */
	if (ir_is_const(end, &number) || !affine_of_host(&w->range.context, end)) return false;
	affine_add_number(&left, most); /* there is room for two */
	affine_add(&left, &last, -t->factor);
	return int_range_guard(&w->range, &left);
}

/* The copy's coordinate has 32 bits, the pointers may have added and multiplied in 64. */
static bool fits_i32(window *w, const window_side *s)
{
	unsigned terms = 0;
	bool plain = true;
	for (unsigned i = 0; i < s->at.n; i++) {
		const affine_term *t = &s->at.term[i];
		if (t->factor > MOST_INDEX || t->factor < -MOST_INDEX) return false;
		for (unsigned k = 0; k < t->natoms; k++)
			if (t->atom[k]->type.elem != SCALAR_I32) return false;
		terms += t->natoms > 0;
		plain &= t->natoms == 0 || (t->natoms == 1 && t->factor == 1);
	}
	if ((terms <= 1 && plain) || s->in_i32) return true; /* it is an i32, or the mask has it as one */
	for (unsigned i = 0; i < s->at.n; i++)
		if (s->at.term[i].natoms && !below(w, &s->at.term[i], MOST_INDEX / (int64_t)terms)) return false;
	return true;
}

const char *window_range(window *w)
{
	for (unsigned i = 0; i < w->n; i++) {
		const window_side *s = &w->side[i];
		if (!fits_i32(w, s)) return "an index may not fit 32 bits";
		if (!s->from_zero && !int_range_sum_never_negative(&w->range, &s->at))
			return "an index may be below 0 for all that is known, and the mask lets it";
	}
	return NULL;
}
