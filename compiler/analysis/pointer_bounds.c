/* A window's mask: where the array ends.
 *
 * In: the mask of a load and the sides that its pointers have.  Out: extents.  What a copy by a map leaves out must be
 * what the mask leaves out: the mask has to be a conjunction of comparisons, each of which says that the coordinate
 * along one side is below a number that the host knows, or that it is not below 0.
 *     l < K - k,   the coordinate along that side being k + l   ->   k + l < K
 * An unsigned comparison says both at once; where its end is below 0 it says less, so the host looks at that.
 * The one idea: the sum `what is left until the bound` + `where the window begins` is the extent, and all that only
 * the device knows must cancel in it. */
#include "mask.h"
#include "pointer_analysis.h"

static const char *const NO_BOUNDS = "its mask says more than where its indices end";
static const char *const NOT_OF_HOST = "its mask's bound is not the host's to know";

bool window_of_host(const window *w, const affine *s)
{
	for (unsigned i = 0; i < s->n; i++)
		for (unsigned k = 0; k < s->term[i].natoms; k++)
			if (!affine_of_host(&w->range.context, s->term[i].atom[k])) return false;
	return true;
}

uint64_t window_divisor(const pass_context *p, const affine_term *t)
{
	assert(t->factor != 0);
	uint64_t f = (uint64_t)t->factor, d = f & (0 - f);
	for (unsigned i = 0; i < t->natoms; i++) {
		uint64_t by = axis_get(p, t->atom[i])->divisibility[0];
		if (d < UINT64_C(1) << 31 && by < UINT64_C(1) << 31) d *= by;
	}
	return d;
}

static bool equal(const affine *x, const affine *y)
{
	affine d = *x;
	return affine_add(&d, y, -1) && !d.n;
}

/* `end` bounds the loop's counter, which is where the window begins: an iteration that begins below it ends below it
 * too if the step does not divide what lies between in another way. */
static bool never_cut(window *w, ir_value *end, const window_side *s)
{
	assert(w->loop && w->loop->kind == IR_FOR);
	affine apart = {0}, lo = {0}, counter = affine_value(w->loop->regions[0]->args[0]);
	int64_t step;
	if (!equal(&s->at, &counter)) return false;
	if (!ir_is_const_int(ir_arg(w->loop, 2), &step) || (step & (step - 1)) || s->place < 0 ||
		step < w->load->results[0]->type.dim[s->place])
		return false;
	affine_context c = w->range.context;
	c.open_scalars = true;
	if (!affine_of(&c, end, &apart) || !affine_of(&c, ir_arg(w->loop, 0), &lo) || !affine_add(&apart, &lo, -1))
		return false;
	for (unsigned i = 0; i < apart.n; i++)
		if (window_divisor(w->range.context.pass, &apart.term[i]) % (uint64_t)step) return false;
	return true;
}

/* Parts of a long sum: for k in range(first, min(first + part, K)), in which a part is whole iterations.  Only K
 * cuts. */
static bool drop_whole_parts(window *w, affine *extent, const window_side *s)
{
	const affine_term *t = &extent->term[0];
	if (!w->loop || w->loop->kind != IR_FOR) return false;
	ir_value *last = ir_arg(w->loop, 1);
	if (extent->n != 1 || t->natoms != 1 || t->atom[0] != last || t->factor != 1) return false;
	if (!last->def || last->def->kind != IR_MIN) return false;
	for (unsigned k = 0; k < 2; k++)
		if (never_cut(w, ir_arg(last->def, k), s))
			return affine_of(&w->range.context, ir_arg(last->def, 1 - k), extent);
	return false;
}

/* The coordinate along the side is at most at + rest. */
static bool bound(window *w, window_side *s, const affine *rest, bool in_i32)
{
	affine extent = s->at;
	if (!affine_add(&extent, rest, 1) || !affine_add_number(&extent, 1)) return false;
	if (!window_of_host(w, &extent) && !(drop_whole_parts(w, &extent, s) && window_of_host(w, &extent)))
		return false;
	if (s->bounded && !equal(&s->extent, &extent)) return false;
	s->bounded = true;
	s->in_i32 |= in_i32;
	s->extent = extent;
	return true;
}

/* difference >= 0, in which at most one place occurs. */
static const char *relation(window *w, const affine *difference, bool in_i32)
{
	affine rest = *difference;
	int place = -1;
	int64_t sign = 0;
	for (unsigned i = 0; i < rest.n;) {
		const affine_term t = rest.term[i];
		if (t.place < 0) {
			i++;
			continue;
		}
		if (sign || t.natoms || (t.factor != 1 && t.factor != -1)) return NO_BOUNDS;
		place = t.place;
		sign = t.factor;
		rest.term[i] = rest.term[--rest.n];
	}
	for (unsigned i = 0; i < w->n; i++) {
		window_side *s = &w->side[i];
		if (s->place != place) continue;
		if (sign <= 0 && bound(w, s, &rest, in_i32)) return NULL;
		if (sign >= 0 && equal(&s->at, &rest)) {
			s->from_zero = true;
			return NULL;
		}
	}
	return sign < 0 ? NOT_OF_HOST : NO_BOUNDS;
}

static const char *read_bound(void *context, const mask_bound *b)
{
	window *w = context;
	affine difference;
	assert(!b || (!b->low.root && !b->high.root));
	if (!b) return NO_BOUNDS;
	if (b->if_not_negative && !(window_of_host(w, &b->high) && int_range_guard(&w->range, &b->high)))
		return NOT_OF_HOST;
	difference = b->high;
	if (!affine_add(&difference, &b->low, -1)) return NO_BOUNDS;
	const char *why = relation(w, &difference, !b->wide && !difference.narrow);
	return why || !b->from_zero ? why : relation(w, &b->low, false);
}

const char *window_bounds(window *w)
{
	assert(w->load->kind == IR_LOAD);
	return w->load->nargs < 2 ? NULL : mask_bounds(&w->range.context, ir_arg(w->load, 1), read_bound, w);
}
