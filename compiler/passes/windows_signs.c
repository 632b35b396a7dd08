/* A window's coordinates: never below 0, and in 32 bits.
 *
 * In: the sides of a window with their bounds.  Out: a proof, or why there is none.  A copy by a map reads nothing in
 * front of the array; pointers read what lies there, the end of the row before for one.  So where the mask does not
 * exclude coordinates below 0, there must be none.
 * The one idea: a sum of products of what is never negative is never negative, and what that comes down to on the
 * host's side, arguments, the host looks at: no map is made where one of them is negative. */
#include "windows.h"

enum { MOST_DEPTH = 24, MOST_PROGRAMS = 65535, /* of a grid's second and third axis */ MOST_INDEX = INT32_MAX / 2 };

static bool never_negative(window *w, ir_value *v, unsigned depth);

/* `assume(v >= n)`, n not negative, which stands where the load is seen from. */
static bool is_assumed(const window *w, const ir_value *v)
{
	for (const ir_use *u = v->uses; u; u = u->next) {
		const ir_op *o = u->user;
		int64_t n;
		bool least = (o->kind == IR_GE || o->kind == IR_GT) && ir_arg(o, 0) == v &&
			     ir_is_const_int(ir_arg(o, 1), &n) && n >= (o->kind == IR_GE ? 0 : -1);
		for (const ir_use *a = least ? o->results[0]->uses : NULL; a; a = a->next) {
			if (a->user->kind != IR_ASSUME) continue;
			for (const ir_op *at = w->load; at; at = at->block->parent)
				for (const ir_op *before = at; before; before = before->prev)
					if (before == a->user) return true;
		}
	}
	return false;
}

static bool guarded(window *w, ir_value *v)
{
	affine s = {0};
	affine_term t = {.factor = 1, .place = -1};
	return affine_atom(&t, v) && affine_add_term(&s, &t, 1) && window_guard(w, &s);
}

static bool both(window *w, const ir_op *o, unsigned depth)
{
	return never_negative(w, ir_arg(o, 0), depth) && never_negative(w, ir_arg(o, 1), depth);
}

static bool never_negative(window *w, ir_value *v, unsigned depth)
{
	int64_t n;
	if (depth == 0 || v->type.pointer || !scalar_is_integer((scalar)v->type.elem)) return false;
	if (!scalar_is_signed((scalar)v->type.elem)) return true;
	if (ir_is_const_int(v, &n)) return n >= 0;
	if (!v->def) {
		const ir_op *loop = v->block->parent;
		if (!loop) return guarded(w, v);
		return loop->kind == IR_FOR && v->index == 0 && ir_is_const_int(ir_arg(loop, 2), &n) && n > 0 &&
		       never_negative(w, ir_arg(loop, 0), depth - 1);
	}
	const ir_op *o = v->def;
	unsigned nguards = w->nguards;
	switch (o->kind) {
	case IR_PROGRAM_ID:
	case IR_NUM_PROGRAMS: return true;
	case IR_ADD:
	case IR_MUL:
	case IR_DIV:
	case IR_MIN:
		if (both(w, o, depth - 1)) return true;
		break;
	case IR_MAX:
		if (never_negative(w, ir_arg(o, 1), depth - 1)) return true;
		w->nguards = nguards;
		if (never_negative(w, ir_arg(o, 0), depth - 1)) return true;
		break;
	case IR_SELECT:
		if (never_negative(w, ir_arg(o, 1), depth - 1) && never_negative(w, ir_arg(o, 2), depth - 1))
			return true;
		break;
	case IR_REM:
	case IR_SHR:
		if (never_negative(w, ir_arg(o, 0), depth - 1)) return true;
		break;
	case IR_HINT:
		if (never_negative(w, ir_arg(o, 0), depth - 1)) return true;
		break;
	case IR_CONVERT:
		if (scalar_bytes((scalar)v->type.elem) > scalar_bytes((scalar)ir_arg(o, 0)->type.elem) &&
			never_negative(w, ir_arg(o, 0), depth - 1))
			return true;
		break;
	default: break;
	}
	w->nguards = nguards;
	if (is_assumed(w, v)) return true;
	return affine_of_host(&w->context, v) && guarded(w, v);
}

/* The most that a term can be, where that is known: a program's number or a loop's counter times a number. */
static bool below(window *w, const affine_term *t, int64_t most)
{
	int64_t hi;
	if (t->natoms != 1 || t->factor < 0) return false;
	ir_value *v = t->atom[0];
	const ir_op *loop = v->def ? NULL : v->block->parent;
	if (v->def && v->def->kind == IR_PROGRAM_ID) return v->def->attr[0] > 0 && t->factor <= most / MOST_PROGRAMS;
	if (!loop || loop->kind != IR_FOR || v->index > 0) return false;
	ir_value *end = ir_arg(loop, 1);
	if (ir_is_const_int(end, &hi)) return hi <= 0 || t->factor <= most / hi;
	affine left = {0};
	affine_term last = {.factor = 1, .place = -1};
	return affine_of_host(&w->context, end) && affine_atom(&last, end) && affine_add_number(&left, most) &&
	       affine_add_term(&left, &last, -t->factor) && window_guard(w, &left);
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
	if ((terms <= 1 && plain) || (s->bounded && !s->wide)) return true; /* it is an i32; the mask has it as one */
	for (unsigned i = 0; i < s->at.n; i++)
		if (s->at.term[i].natoms && !below(w, &s->at.term[i], MOST_INDEX / (int64_t)terms)) return false;
	return true;
}

const char *window_signs(window *w)
{
	for (unsigned i = 0; i < w->n; i++) {
		const window_side *s = &w->side[i];
		if (!fits_i32(w, s)) return "an index may not fit 32 bits";
		for (unsigned k = 0; !s->from_zero && k < s->at.n; k++) {
			const affine_term *t = &s->at.term[k];
			bool good = t->factor >= 0;
			for (unsigned j = 0; good && j < t->natoms; j++)
				good = never_negative(w, t->atom[j], MOST_DEPTH);
			if (!good) return "an index may be below 0 for all that is known, and the mask lets it";
		}
	}
	return NULL;
}
