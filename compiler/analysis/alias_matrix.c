/* Are two patches of one matrix disjoint?
 *
 * In: two accesses, by pointers with masks or by tensor maps.  Out: false where no element is in both:
 *     c + i[:, None] * N + j[None, :]           with a mask of which (j < N)[None, :] is a part
 *     c + (i + 64)[:, None] * N + j[None, :]    with such a mask, i having at most 64 elements
 *
 * The one idea: of a matrix whose rows follow one another an element has one row and one column, so patches are
 * disjoint where their rows are, or their columns.  The pointers' difference without the columns is a number of rows;
 * the masks keep the columns in 0..N - 1, without which the end of a row and the beginning of the next would be the
 * same elements.
 *
 * Values in common are compared by name: behind a loop's back edge those that the loop makes are other ones.
 *
 * Where a patch begins at multiples of its extents, another run of the same access has the same patch, or one that
 * is disjoint from it: then each thread, or warp, meets its own elements only. */
#include "ir/tensor_map.h"
#include "alias.h"
#include "mask.h"
#include "int_range.h"

#include <stdio.h>
#include <string.h>

/* ---- by pointers ---- */

typedef struct patch {
	int_range range;
	ir_value *root;
	affine rest; /* the pointer without row and column inside of the patch, and without where its columns begin */
	affine_term stride; /* from row to row, without a place */
	int inner;          /* the tile's dimension that lies along a row */
	uint32_t rows, columns;
	affine column; /* of an element; without terms: not known yet */
} patch;

/* Without a look at the kernel's arguments, which nobody takes for this. */
static bool is_known_from_zero(patch *p, const affine *column)
{
	p->range.nguards = 0;
	return int_range_sum_never_negative(&p->range, column) && p->range.nguards == 0;
}

/* low <= high says 0 <= column < stride, the column being stride - 1 - (high - low). */
static const char *read_column(void *context, const mask_bound *b)
{
	patch *p = context;
	affine column = {.n = 1, .term = {p->stride}}, same;
	unsigned places = 0;
	assert(p->inner >= 0 && p->stride.factor > 0);
	if (!b || b->if_not_negative || b->low.narrow || b->high.narrow) return NULL;
	affine_add_number(&column, -1);
	if (!affine_add(&column, &b->high, -1) || !affine_add(&column, &b->low, 1)) return NULL;
	for (unsigned i = 0; i < column.n; i++) {
		const affine_term *t = &column.term[i];
		if (t->place < 0) continue;
		if (t->place != p->inner || t->factor != 1 || t->natoms) return NULL;
		places++;
	}
	same = column;
	bool from_zero = b->from_zero && affine_add(&same, &b->low, -1) && !same.n;
	if (places != 1 || (!from_zero && !is_known_from_zero(p, &column))) return NULL;
	p->column = column;
	return "found";
}

static bool patch_of(pass_context *c, ir_func *f, const ir_op *o, patch *p)
{
	const ir_value *pointer = ir_arg(o, 0);
	ir_value *mask = ir_mask(o);
	unsigned places = 0;
	affine all;
	if (ir_is_atomic(o) || pointer->type.rank != 2 || !mask) return false;
	*p = (patch){.range = {.context = {.pass = c, .func = f, .open_offsets = true}, .at = o},
		.stride = {.place = -1},
		.inner = -1};
	if (!affine_of(&p->range.context, ir_arg(o, 0), &all) || !all.root || all.narrow) return false;
	p->root = all.root;
	for (unsigned i = 0; i < all.n; i++) {
		const affine_term *t = &all.term[i];
		if (t->place < 0) continue;
		if (t->factor == 1 && !t->natoms)
			p->inner = t->place;
		else
			p->stride = *t;
		places++;
	}
	if (places != 2 || p->inner < 0 || p->stride.place != 1 - p->inner || p->stride.factor <= 0) return false;
	p->rest = all;
	affine_add_term(&p->rest, &p->stride, -1); /* it is in it */
	assert(p->rest.n == all.n - 1);
	p->stride.place = -1;
	p->rows = pointer->type.dim[1 - p->inner];
	p->columns = pointer->type.dim[p->inner];
	mask_bounds(&p->range.context, mask, read_column, p);
	return p->column.n && !p->range.context.nproducts && affine_add(&p->rest, &p->column, -1);
}

static bool is_same_sum(const affine *s, const ir_op *around)
{
	for (unsigned i = 0; i < s->n; i++)
		for (unsigned k = 0; k < s->term[i].natoms; k++)
			if (!ir_defined_outside(s->term[i].atom[k], around)) return false;
	return true;
}

/* Of the earlier one: what only the other's sums have does not cancel. */
static bool is_same_patch(const patch *p, const ir_op *around)
{
	affine stride = {.n = 1, .term = {p->stride}};
	return ir_defined_outside(p->root, around) && is_same_sum(&p->rest, around) &&
	       is_same_sum(&p->column, around) && is_same_sum(&stride, around);
}

/* How many times the stride; false: no such number. */
static bool in_strides(const affine *s, const affine_term *stride, int64_t *times)
{
	assert(stride->factor != 0);
	const affine_term *t = &s->term[0];
	*times = 0;
	if (!s->n) return true;
	if (s->n != 1 || t->place >= 0 || t->natoms != stride->natoms || t->factor % stride->factor != 0) return false;
	if (memcmp(t->atom, stride->atom, t->natoms * sizeof t->atom[0]) != 0) return false;
	*times = t->factor / stride->factor;
	return true;
}

static bool is_far(int64_t distance, uint32_t first, uint32_t second)
{
	return distance >= (int64_t)first || distance <= -(int64_t)second;
}

bool may_alias_patches(pass_context *c, ir_func *f, const ir_op *earlier, const ir_op *now, const ir_op *around)
{
	patch a, b;
	int64_t distance;
	const affine_term one = {.factor = 1, .place = -1};
	if (ir_arg(earlier, 0)->type.elem != ir_arg(now, 0)->type.elem) return true;
	if (!patch_of(c, f, earlier, &a) || !patch_of(c, f, now, &b)) return true;
	affine rows = b.rest, columns = b.column, strides = {.n = 1, .term = {a.stride}};
	bool comparable = a.root == b.root && a.inner == b.inner && is_same_patch(&a, around) &&
			  affine_add_term(&strides, &b.stride, -1) && !strides.n && affine_add(&rows, &a.rest, -1) &&
			  affine_add(&columns, &a.column, -1);
	if (!comparable || !in_strides(&rows, &a.stride, &distance)) return true;
	if (is_far(distance, a.rows, b.rows)) return false;
	return !in_strides(&columns, &one, &distance) || !is_far(distance, a.columns, b.columns);
}

/* ---- in another run ---- */

/* The sum of scalars is a multiple of n, a power of two. */
static bool is_multiple(const pass_context *c, const affine *s, uint32_t n)
{
	for (unsigned i = 0; i < s->n; i++) {
		const affine_term *t = &s->term[i];
		uint64_t d = (uint64_t)t->factor & (0 - (uint64_t)t->factor);
		if (t->place >= 0) continue;
		for (unsigned k = 0; k < t->natoms && d < n; k++) d *= axis_divisor(c, t->atom[k]);
		if (d < n) return false;
	}
	return true;
}

/* A row's part whose column is below the stride: `all` is a row number times that, and the column. */
static bool is_part_of_row(patch *p, const affine *all, ir_value *mask)
{
	p->column.n = 0;
	mask_bounds(&p->range.context, mask, read_column, p);
	p->rest = *all;
	if (!p->column.n || p->range.context.nproducts || !affine_add(&p->rest, &p->column, -1)) return false;
	for (unsigned i = 0; i < p->rest.n; i++) {
		bool times = false;
		for (unsigned k = 0; k < p->rest.term[i].natoms; k++)
			times |= p->rest.term[i].atom[k] == p->stride.atom[0];
		if (!times || p->rest.term[i].place >= 0) return false;
	}
	return true;
}

/* c + row * N + i, with a mask i < N, i beginning at a multiple of the tile's extent. */
bool may_alias_other_rows(pass_context *c, ir_func *f, const ir_op *o, const ir_op *around)
{
	const ir_value *pointer = ir_arg(o, 0);
	ir_value *mask = ir_mask(o);
	affine all;
	patch p = {.range = {.context = {.pass = c, .func = f, .open_offsets = true}, .at = o}, .inner = 0};
	if (ir_is_atomic(o) || pointer->type.rank != 1 || !mask || f->row_groups > 1) return true;
	if (!affine_of(&p.range.context, ir_arg(o, 0), &all) || !all.root || all.narrow) return true;
	if (!ir_defined_outside(all.root, around)) return true;
	for (unsigned i = 0; i < all.n; i++)
		for (unsigned k = 0; k < all.term[i].natoms; k++) {
			p.stride = (affine_term){.factor = 1, .place = -1, .natoms = 1, .atom = {all.term[i].atom[k]}};
			if (ir_defined_outside(p.stride.atom[0], around) && is_part_of_row(&p, &all, mask) &&
				is_multiple(c, &p.column, pointer->type.dim[0]))
				return false;
		}
	return true;
}

bool may_alias_partly(const pass_context *c, const ir_op *store)
{
	assert(store->kind == IR_BULK_STORE);
	const ir_tensor_map *m = ir_arg(store, 0)->def->map;
	ir_type t = ir_arg(store, 1)->type;
	unsigned rank = store->nargs - 2u, front = rank - t.rank;
	if (!ir_tensor_map_is_dense(m) || store->block->func->row_groups > 1)
		return true; /* the block is a group's own */
	for (unsigned d = 0; d < rank; d++)
		if (d >= front && axis_divisor(c, ir_arg(store, 2 + d)) < t.dim[d - front]) return true;
	return false;
}

/* ---- by maps ---- */

/* A coordinate as a value, or null, and what is added to it. */
static const ir_value *split(const ir_value *v, int64_t *added)
{
	int64_t n;
	*added = 0;
	if (ir_is_const_int(v, added)) return NULL;
	while (v->def && v->def->kind == IR_ADD && ir_is_const_int(ir_arg(v->def, 1), &n)) {
		*added += n;
		v = ir_arg(v->def, 0);
	}
	return v;
}

bool may_alias_copies(const ir_op *earlier, const ir_op *now, const ir_op *around)
{
	const ir_op *a = ir_arg(earlier, 0)->def, *b = ir_arg(now, 0)->def;
	ir_type x = ir_arg(earlier, 1)->type, y = ir_arg(now, 1)->type;
	assert(earlier->kind == IR_BULK_STORE && now->kind == IR_BULK_STORE && a->map && b->map);
	bool same = ir_tensor_map_same_array(a->map, b->map);
	if (!same && ir_get_checked(earlier) && ir_get_checked(now)) return false; /* check_aliases.c */
	if (earlier->nargs != 4 || now->nargs != 4 || x.rank != 2 || y.rank != 2 || x.elem != y.elem) return true;
	if (!same || !ir_tensor_map_is_dense(a->map)) return true;
	for (unsigned d = 0; d < 2; d++) {
		int64_t p, q;
		const ir_value *v = split(ir_arg(earlier, 2 + d), &p), *w = split(ir_arg(now, 2 + d), &q);
		if (v != w || (v && !ir_defined_outside(v, around))) continue;
		uint32_t distance = (uint32_t)q - (uint32_t)p; /* i32, which wraps around */
		if (distance >= x.dim[d] && 0u - distance >= y.dim[d]) return false;
	}
	return true;
}
