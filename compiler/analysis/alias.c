/* Do two accesses of global memory touch common bytes from different threads?
 *
 * In: two accesses whose pointers' axis information is known.  Out: false where it is proved that they do not.  The one
 * idea: a pointer was made by adding offsets to scalar pointers, its *origins*: the argument, a row's start, ..  Two
 * pointers with an origin in common are compared by what was added since: as offsets modulo a power of two, which may
 * be disjoint, or as aligned blocks, which are the same block or disjoint.
 *
 * Proofs:
 *   1. scalar accesses are all made by thread 0;
 *   2. the offsets are a multiple of M and a constant range each, and the two ranges are disjoint modulo M;
 *   tiles in one layout without copies, or two stores, as one thread of those that hold an element stores it:
 *   3. through one and the same pointer tile whose addresses are all different;
 *   4. that are aligned blocks, N consecutive elements from a multiple of N, of one origin or of memory as a whole:
 *      each thread meets its own elements only;
 *   5. they are disjoint patches of one matrix (alias_matrix.c);
 *   6. they are one access in two iterations, of parts of rows that are the same or disjoint (alias_matrix.c): of 128
 *      elements from c + h * N + t, t being 0, 128, .., with a mask that keeps them in row h;
 *   7. one is a stored block, and the other is kept in order with it when it runs (check_aliases.c).
 * An origin or a pointer that is made anew in a loop is another one behind that loop's back edge. */
#include "alias.h"
#include "int_range.h"

enum { MOST_ORIGINS = 8 };
#define MOST_MODULUS ((uint64_t)1 << 30) /* a power of two at which offsets may wrap around */

typedef struct origin {
	const ir_value *base;
	bool aligned;     /* a block of n elements from a multiple of n, n being the tile's */
	uint64_t modulus; /* offsets are one of low..high, and a multiple of this */
	int64_t low, high;
} origin;

/* The operand's elements, elsewhere or in another integer type. */
static bool passes_on(const ir_op *o)
{
	return ir_has(o, IR_SHAPE) || o->kind == IR_HINT || o->kind == IR_CONVERT_LAYOUT ||
	       (o->kind == IR_CONVERT && !scalar_is_float(ir_arg(o, 0)->type.elem));
}

/* Adds what an offset's elements may be: each summand is of a range, or else a multiple of a number. */
static void add_range(const pass_context *c, const ir_value *v, origin *o)
{
	while (v->def && scalar_bytes(v->type.elem) >= 4) { /* narrower ones wrap around */
		if (v->def->kind == IR_ADD)
			add_range(c, ir_arg(v->def, 0), o);
		else if (!passes_on(v->def))
			break;
		v = ir_arg(v->def, v->def->kind == IR_ADD);
	}
	int_bounds b = int_range_of(v);
	uint64_t width = (uint64_t)b.high - (uint64_t)b.low, d = axis_divisor(c, v);
	if (width == 0 || (width < MOST_MODULUS && d == 1)) {
		o->low += b.low;
		o->high += b.high;
	} else if (d < o->modulus)
		o->modulus = d;
}

/* The scalar pointers that a pointer was made from, the nearest first. */
static unsigned origins(const pass_context *c, const ir_value *pointer, origin out[MOST_ORIGINS])
{
	assert(pointer->type.pointer);
	uint32_t n = pointer->type.rank ? pointer->type.dim[0] : 1;
	bool counts = n == 1; /* the run of n that makes the block has been met */
	origin o = {.base = pointer, .aligned = pointer->type.rank <= 1, .modulus = MOST_MODULUS};
	unsigned found = 0;
	for (;; o.base = ir_arg(o.base->def, 0)) {
		if (ir_is_scalar(o.base) && found < MOST_ORIGINS) {
			out[found] = o;
			out[found++].aligned &= counts;
		}
		const ir_op *d = o.base->def;
		if (!d) return found;
		if (d->kind == IR_PTR_ADD) {
			const ir_value *offset = ir_arg(d, 1);
			const axis_info *info = axis_get(c, offset);
			bool multiple = info->known && info->divisibility[0] >= n;
			bool run = !ir_is_scalar(offset) && info->known && info->contiguity[0] >= n;
			/* a multiple of n added to everything, or the one run of n that makes the block */
			if (ir_is_scalar(offset) || (info->known && info->constancy[0] >= n && n > 1))
				o.aligned &= multiple;
			else if (run && !counts)
				o.aligned &= counts = multiple;
			else
				o.aligned = false;
			add_range(c, offset, &o);
		} else if (d->kind == IR_EXPAND_DIMS || d->kind == IR_BROADCAST || d->kind == IR_PERMUTE ||
			   d->kind == IR_RESHAPE)
			o.aligned = false;
		else if (d->kind != IR_SPLAT && d->kind != IR_HINT && d->kind != IR_CONVERT_LAYOUT)
			return found;
	}
}

static bool ranges_disjoint(const origin *x, const origin *y)
{
	assert(x->low <= x->high && y->low <= y->high);
	uint64_t m = x->modulus < y->modulus ? x->modulus : y->modulus;
	assert(m && !(m & (m - 1)));
	uint64_t a = (uint64_t)(x->high - x->low), b = (uint64_t)(y->high - y->low);
	uint64_t distance = (uint64_t)(y->low - x->low) & (m - 1); /* from x's first to y's first, upwards */
	return distance > a && m - distance > b;
}

/* Blocks of memory as a whole. */
static bool is_aligned_block(const pass_context *c, const ir_value *p)
{
	const axis_info *info = axis_get(c, p);
	return p->type.rank == 1 && info->known && info->contiguity[0] >= p->type.dim[0] &&
	       info->divisibility[0] >= (uint64_t)p->type.dim[0] * scalar_bytes(p->type.elem);
}

bool alias_is_checked(const ir_op *o)
{
	return ir_has_attribute(o, IR_ATTR_checked) && ir_get_checked(o);
}

bool may_alias(pass_context *c, ir_func *f, const ir_op *earlier, const ir_op *now, const ir_op *around)
{
	ir_value *a = ir_arg(earlier, 0), *b = ir_arg(now, 0);
	assert(ir_touches(earlier, IR_WRITES_GLOBAL) || ir_touches(now, IR_WRITES_GLOBAL));
	if (earlier->kind == IR_BULK_STORE && now->kind == IR_BULK_STORE) return may_alias_copies(earlier, now, around);
	if (earlier->kind == IR_BULK_STORE) return !alias_is_checked(now);
	if (now->kind == IR_BULK_STORE) return !alias_is_checked(earlier);
	bool scalars = ir_is_scalar(a) && ir_is_scalar(b);
	if (scalars) return false;
	bool own = !ir_is_scalar(a) && !ir_is_scalar(b) && ir_same_shape(a->type, b->type) &&
		   layout_equal(a->layout, b->layout) &&
		   (layout_injective(a->layout) ||
			   (!ir_touches(earlier, IR_READS_GLOBAL) && !ir_touches(now, IR_READS_GLOBAL)));
	if (own && a == b && ir_defined_outside(a, around) && !may_alias_itself(c, f, a)) return false;
	if (own && earlier == now && !may_alias_other_rows(c, f, now, around)) return false;
	/* With groups of rows a tile is a group's own, and the next run's block may be another group's. */
	if (own && f->row_groups == 1 && a->type.elem == b->type.elem && is_aligned_block(c, a) &&
		is_aligned_block(c, b))
		return false;
	origin x[MOST_ORIGINS], y[MOST_ORIGINS];
	unsigned nx = origins(c, a, x), ny = origins(c, b, y);
	for (unsigned i = 0; i < nx; i++)
		for (unsigned k = 0; k < ny; k++) {
			if (x[i].base != y[k].base || !ir_defined_outside(x[i].base, around)) continue;
			if (ranges_disjoint(&x[i], &y[k]) ||
				(own && f->row_groups == 1 && x[i].aligned && y[k].aligned))
				return false;
		}
	return may_alias_patches(c, f, earlier, now, around);
}
