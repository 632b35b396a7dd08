/* A window's coordinates: never below 0, and in 32 bits.
 *
 * In: the sides of a window with their bounds.  Out: a proof, or why there is none.  A copy by a map reads nothing in
 * front of the array; pointers read what lies there, the end of the row before for one.  So where the mask does not
 * exclude coordinates below 0, there must be none.
 * The one idea: int_range.h's. */
#include "pointer_analysis.h"

enum { MOST_INDEX = INT32_MAX / 2 };

/* Is this bound of a loop's counter, times the factor, at most that?  A number shows it here, anything else the
 * host. */
static bool bound_fits(window *w, ir_value *bound, int64_t factor, int64_t most)
{
	assert(most > 0);
	int64_t number, product;
	if (ir_is_const_int(bound, &number))
		return !__builtin_mul_overflow(number, factor, &product) && product <= most;
	affine left = {0}, at = affine_value(bound);
	if (!affine_of_host(&w->range.context, bound)) return false;
	affine_add_number(&left, most); /* there is room for two */
	affine_add(&left, &at, -factor);
	return int_range_guard(&w->range, &left);
}

/* Is a term at most that, and, where only the mask excludes what is below 0, at least its negative?  By its range, or
 * by the bounds of the loop whose counter it is. */
static bool within(window *w, const affine_term *t, int64_t most, bool below_zero)
{
	if (t->natoms != 1 || t->factor < 0) return false;
	ir_value *v = t->atom[0];
	int_bounds b = int_range_of(v);
	if (b.low >= 0 && (b.high == 0 || t->factor <= most / b.high)) return true;
	const ir_op *loop = v->def ? NULL : v->block->parent;
	if (!loop || loop->kind != IR_FOR || v->index > 0) return false;
	if (below_zero && b.low < 0 && !bound_fits(w, ir_arg(loop, 0), -t->factor, most)) return false;
	return bound_fits(w, ir_arg(loop, 1), t->factor, most);
}

static bool is_i32(const ir_value *v)
{
	int_bounds b = int_range_of(v), all = int_range_of_type(SCALAR_I32);
	return v->type.elem == SCALAR_I32 || (b.low >= all.low && b.high <= all.high);
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
			if (!is_i32(t->atom[k])) return false;
		terms += t->natoms > 0;
		plain &= t->natoms == 0 || (t->natoms == 1 && t->factor == 1);
	}
	if ((terms <= 1 && plain) || s->in_i32) return true; /* it is an i32, or the mask has it as one */
	assert(s->at.n <= AFFINE_TERMS && terms <= s->at.n * AFFINE_ATOMS);
	for (unsigned i = 0; i < s->at.n; i++)
		if (s->at.term[i].natoms && !within(w, &s->at.term[i], MOST_INDEX / (int64_t)terms, s->from_zero))
			return false;
	return true;
}

const char *window_range(window *w)
{
	assert(w->n <= IR_MAP_RANK);
	for (unsigned i = 0; i < w->n; i++) {
		const window_side *s = &w->side[i];
		if (!fits_i32(w, s)) return "an index may not fit 32 bits";
		if (!s->from_zero && !int_range_sum_never_negative(&w->range, &s->at))
			return w->load->kind == IR_LOAD
				       ? "an index may be below 0 for all that is known, and the mask lets it"
				       : "its base may move backwards for all that is known";
	}
	return NULL;
}
