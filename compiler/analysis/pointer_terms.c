/* A pointer's terms: along which dimension of an array each of them counts.
 *
 * In: an address as a sum of products.  Out: the sides of a window, and the values that a tensor map is made of.  The
 * one idea: of a product's factors those that the host knows are a stride, and the rest, which only the device knows,
 * is where the window begins along it:
 *     h * stride_h + 64   ->   a side of stride stride_h at h, and an array that begins 64 elements later */
#include "pointer_analysis.h"

#include <string.h>

const char WINDOW_TOO_MANY[] = "its addresses have too many dimensions";

const char *window_no_sum(const ir_value *pointer)
{
	const ir_op *o = pointer->def;
	while (o && (o->kind == IR_PTR_ADD || o->kind == IR_HINT || ir_has(o, IR_SHAPE)) && ir_arg(o, 0)->type.pointer)
		o = ir_arg(o, 0)->def;
	return o && o->kind == IR_BITCAST
		       ? "it begins at an address that is a number: the host does not know of what array"
		       : "its addresses are no sum of indices times strides";
}

void window_split(const window *w, const affine_term *t, affine_term *host, affine_term *device)
{
	*host = (affine_term){.factor = t->factor, .place = -1};
	*device = (affine_term){.factor = 1, .place = -1};
	for (unsigned i = 0; i < t->natoms; i++)
		affine_atom(affine_of_host(&w->range.context, t->atom[i]) ? host : device, t->atom[i]);
}

static bool along(const window_side *s, const affine_term *host)
{
	return s->stride.natoms == host->natoms && host->factor % s->stride.factor == 0 &&
	       memcmp(s->stride.atom, host->atom, host->natoms * sizeof host->atom[0]) == 0;
}

/* The side with the longest stride that goes into the term. */
static window_side *side_along(window *w, const affine_term *host)
{
	window_side *best = NULL;
	for (unsigned i = 0; i < w->n; i++) {
		window_side *s = &w->side[i];
		if (along(s, host) && (!best || s->stride.factor > best->stride.factor)) best = s;
	}
	return best;
}

window_side *window_new_side(window *w, const affine_term *stride, int place)
{
	if (w->n == IR_MAP_RANK) return NULL;
	window_side *s = &w->side[w->n++];
	*s = (window_side){.stride = *stride, .place = place};
	if (s->stride.factor < 0) s->stride.factor = -s->stride.factor;
	assert(s->stride.factor > 0);
	return s;
}

const char *window_terms(window *w, const affine *pointer)
{
	for (unsigned i = 0; i < pointer->n; i++) {
		affine_term host, device;
		if (pointer->term[i].place >= 0) continue;
		window_split(w, &pointer->term[i], &host, &device);
		window_side *s = side_along(w, &host);
		if (!s && !device.natoms) {
			if (!affine_add_term(&w->offset, &host, 1)) return WINDOW_TOO_MANY;
			continue;
		}
		if (!s && !(s = window_new_side(w, &host, -1))) return WINDOW_TOO_MANY;
		if (!affine_add_term(&s->at, &device, host.factor / s->stride.factor)) return WINDOW_TOO_MANY;
	}
	return NULL;
}

/* A product in i32 that wrapped around would lead elsewhere: the bounded part of the array has to be smaller. */
bool window_guard_size(window *w)
{
	affine left = {0};
	for (unsigned i = 0; i < w->range.context.nproducts; i++) {
		affine room = {0};
		if (!affine_add_number(&room, INT32_MAX) || !affine_add(&room, &w->range.context.product[i], -1) ||
			!int_range_guard(&w->range, &room))
			return false;
	}
	if (!w->narrow) return true;
	for (unsigned i = 0; i < w->n; i++) {
		affine reach = w->side[i].extent, stride = {0};
		if (!w->side[i].bounded) continue;
		if (!affine_add_term(&stride, &w->side[i].stride, 1) || !affine_multiply(&reach, &stride) ||
			!affine_add(&left, &reach, -1))
			return false;
	}
	return !left.n || (affine_add_number(&left, INT32_MAX) && int_range_guard(&w->range, &left));
}

/* ---- back to values ---- */

void window_build_side(ir_builder *b, const window_side *s, ir_value **index, ir_value **extent, ir_value **stride)
{
	affine apart = {.n = 1, .term = {s->stride}};
	assert(s->stride.factor > 0);
	*index = affine_build(b, &s->at, SCALAR_I32);
	*stride = affine_build(b, &apart, SCALAR_I64);
	*extent = s->bounded ? affine_build(b, &s->extent, SCALAR_I64) : ir_constant_int(b, SCALAR_I64, WINDOW_NO_END);
}

ir_value *window_build_base(ir_builder *b, const window *w)
{
	if (!w->offset.n) return w->root;
	ir_value *args[] = {w->root, affine_build(b, &w->offset, SCALAR_I64)};
	return ir_build1(b, IR_PTR_ADD, w->root->type, 2, args);
}
