/* Axis analysis: along each dimension of a tile, how far do neighbours count up, how far are they equal, and what
 * divides the places where a run starts.  (As AxisInfo in Triton, lib/Analysis/AxisInfo.cpp; the rules are derived
 * again here.)
 *
 * In: any level.  Out: pass_context.axis, one axis_info a value.  Changes nothing.
 * The one idea: three powers of two a dimension, forward over the operations, joined by minimum where control flow
 * meets; loop-carried values start from their initial value and only go down, so the walk over a loop repeats until
 * nothing changes, at most a few times.
 *
 * Assumption, as in CUDA and Triton: signed index arithmetic does not wrap around, so a run that counts up in i32
 * counts up in the addresses too.  Divisibility needs no such assumption, as every modulus is a power of two. */
#include "int_range.h"

#include <string.h>

static const uint64_t LARGEST = UINT64_C(1) << 40; /* what zero is divisible by: more than any use asks for */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	assert(a && b);
	return a >= LARGEST / b ? LARGEST : a * b;
}

static uint64_t lowest_bit(int64_t v)
{
	uint64_t u = (uint64_t)v;
	return u ? least(u & (0 - u), LARGEST) : LARGEST;
}

/* A scalar is treated as a tile of one dimension of extent 1. */
static unsigned rank_of(ir_type t)
{
	return t.rank ? t.rank : 1;
}

/* As far as a run may reach that begins at any multiple of itself: of extents that are no powers of two, which are
 * whole on the cpu target only, the greatest one in them. */
static uint32_t extent(ir_type t, unsigned dim)
{
	assert(dim < rank_of(t));
	return t.rank ? t.dim[dim] & (0 - t.dim[dim]) : 1;
}

static axis_info nothing(ir_type t)
{
	axis_info a = {.known = true};
	for (unsigned d = 0; d < IR_MAX_RANK; d++) a.contiguity[d] = a.constancy[d] = 1, a.divisibility[d] = 1;
	(void)t;
	return a;
}

static axis_info uniform(ir_type t, uint64_t divisibility)
{
	axis_info a = nothing(t);
	for (unsigned d = 0; d < rank_of(t); d++) {
		a.constancy[d] = extent(t, d);
		a.divisibility[d] = divisibility;
	}
	return a;
}

/* What divides every element, as far as dimension d shows it. */
static uint64_t each(const axis_info *a, unsigned d)
{
	assert(a->divisibility[d]);
	return a->contiguity[d] == 1 ? a->divisibility[d] : 1;
}

static uint64_t each_any(const axis_info *a, ir_type t)
{
	uint64_t e = 1;
	for (unsigned d = 0; d < rank_of(t); d++) e = most(e, each(a, d));
	return e;
}

/* Starts of runs of c (of `unit` bytes or 1) inside this operand's own, possibly longer, runs. */
static uint64_t starts(const axis_info *a, unsigned d, uint64_t c, uint64_t unit)
{
	assert(c && unit);
	uint64_t start = times(a->divisibility[d], unit);
	return a->contiguity[d] > c             ? least(start, times(c, unit))
	       : a->contiguity[d] > 1 && c == 1 ? least(start, unit)
						: start;
}

const axis_info *axis_get(const pass_context *p, const ir_value *v)
{
	static const axis_info unknown = {false, {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}};
	return p->axis && v->id < p->naxis && p->axis[v->id].known ? &p->axis[v->id] : &unknown;
}

static bool same_number(const ir_value *v, int64_t *n)
{
	while (v->def && (v->def->kind == IR_SPLAT || v->def->kind == IR_BROADCAST || v->def->kind == IR_EXPAND_DIMS))
		v = ir_arg(v->def, 0);
	return ir_is_const_int(v, n);
}

static axis_info add(const axis_info *x, const axis_info *y, ir_type t, uint64_t unit)
{
	axis_info r = nothing(t);
	for (unsigned d = 0; d < rank_of(t); d++) {
		uint64_t c = most(least(x->constancy[d], y->contiguity[d]), least(x->contiguity[d], y->constancy[d]));
		uint64_t pointer = x->divisibility[d]; /* already in bytes for a pointer */
		if (x->contiguity[d] > c) pointer = least(pointer, times(c, unit));
		r.contiguity[d] = (uint32_t)c;
		r.divisibility[d] = least(pointer, starts(y, d, c, unit));
		r.constancy[d] = (uint32_t)least(x->constancy[d], y->constancy[d]);
	}
	return r;
}

static axis_info subtract(const axis_info *x, const axis_info *y, ir_type t)
{
	axis_info r = nothing(t);
	for (unsigned d = 0; d < rank_of(t); d++) {
		uint64_t c = least(x->contiguity[d], y->constancy[d]);
		r.contiguity[d] = (uint32_t)c;
		r.divisibility[d] = least(starts(x, d, c, 1), each(y, d));
		r.constancy[d] = (uint32_t)least(x->constancy[d], y->constancy[d]);
	}
	return r;
}

static axis_info multiply(const ir_op *o, const axis_info *x, const axis_info *y, ir_type t)
{
	int64_t n;
	assert(o->nargs == 2);
	if (same_number(ir_arg(o, 0), &n) && n == 1) return *y;
	if (same_number(ir_arg(o, 1), &n) && n == 1) return *x;
	axis_info r = nothing(t);
	for (unsigned d = 0; d < rank_of(t); d++) {
		r.divisibility[d] = times(each(x, d), each(y, d));
		r.constancy[d] = (uint32_t)least(x->constancy[d], y->constancy[d]);
	}
	return r;
}

/* x / n and x >> log2(n) for a power of two. */
static axis_info divide(const ir_value *x, const axis_info *a, int64_t n, ir_type t)
{
	if (n == 1) return *a;
	axis_info r = nothing(t);
	if (n < 1 || (n & (n - 1))) {
		for (unsigned d = 0; d < rank_of(t); d++) r.constancy[d] = a->constancy[d];
		return r;
	}
	bool runs = int_range_of(x).low >= 0; /* truncation keeps them */
	for (unsigned d = 0; d < rank_of(t); d++) {
		uint64_t group = runs && a->contiguity[d] > 1
					 ? least(least(a->contiguity[d], a->divisibility[d]), (uint64_t)n)
					 : 1;
		r.constancy[d] = (uint32_t)most(a->constancy[d], group);
		r.divisibility[d] = a->contiguity[d] == 1 && a->divisibility[d] >= (uint64_t)n
					    ? a->divisibility[d] / (uint64_t)n
					    : 1;
	}
	return r;
}

static axis_info remainder_of(const ir_op *o, const axis_info *x, const axis_info *y, ir_type t)
{
	axis_info r = nothing(t);
	bool runs = int_range_of(ir_arg(o, 0)).low >= 0;
	for (unsigned d = 0; d < rank_of(t); d++) {
		uint64_t divisor = each(y, d),
			 group = least(least(x->contiguity[d], x->divisibility[d]), least(divisor, y->constancy[d]));
		if (runs && group > 1) {
			r.contiguity[d] = (uint32_t)group;
			r.divisibility[d] = least(starts(x, d, group, 1), divisor);
		} else
			r.divisibility[d] = least(each(x, d), divisor);
		r.constancy[d] = (uint32_t)least(x->constancy[d], y->constancy[d]);
	}
	return r;
}

/* A run of `up` compared with a value that is constant over it changes sides only at a multiple of what divides both.
 */
static axis_info compare(const axis_info *x, const axis_info *y, const axis_info *up, const axis_info *flat, ir_type t)
{
	axis_info r = nothing(t);
	for (unsigned d = 0; d < rank_of(t); d++) {
		uint64_t k = least(x->constancy[d], y->constancy[d]);
		if (up)
			k = most(k, least(least(up->contiguity[d], up->divisibility[d]),
					    least(each(flat, d), flat->constancy[d])));
		r.constancy[d] = (uint32_t)k;
	}
	return r;
}

static axis_info select_of(const axis_info *c, const axis_info *x, const axis_info *y, ir_type t, uint64_t unit)
{
	axis_info r = nothing(t);
	for (unsigned d = 0; d < rank_of(t); d++) {
		uint64_t n = least(least(x->contiguity[d], y->contiguity[d]), c->constancy[d]);
		uint64_t dx = x->contiguity[d] > n ? least(x->divisibility[d], times(n, unit)) : x->divisibility[d];
		uint64_t dy = y->contiguity[d] > n ? least(y->divisibility[d], times(n, unit)) : y->divisibility[d];
		r.contiguity[d] = (uint32_t)n;
		r.divisibility[d] = least(dx, dy);
		r.constancy[d] = (uint32_t)least(least(x->constancy[d], y->constancy[d]), c->constancy[d]);
	}
	return r;
}

static axis_info join(const axis_info *x, const axis_info *y, ir_type t)
{
	axis_info all = uniform(t, 1);
	return select_of(&all, x, y, t, t.pointer ? scalar_bytes(t.elem) : 1);
}

static axis_info expand(const axis_info *x, ir_type from, ir_type to, unsigned axis)
{
	assert(to.rank == from.rank + 1u && axis < to.rank);
	axis_info r = nothing(to);
	for (unsigned d = 0, k = 0; d < to.rank; d++) {
		if (d == axis) {
			r.divisibility[d] = each_any(x, from);
			continue;
		}
		r.contiguity[d] = x->contiguity[k];
		r.divisibility[d] = x->divisibility[k];
		r.constancy[d] = x->constancy[k++];
	}
	return r;
}

static axis_info broadcast(const axis_info *x, ir_type from, ir_type to)
{
	assert(from.rank == to.rank);
	axis_info r = *x;
	for (unsigned d = 0; d < to.rank; d++)
		if (from.dim[d] != to.dim[d]) r.contiguity[d] = 1, r.constancy[d] = extent(to, d);
	return r;
}

/* Row-major regrouping: what is known of the last dimension holds as far as both last dimensions reach. */
static axis_info reshape(const axis_info *x, ir_type from, ir_type to)
{
	axis_info r = nothing(to);
	assert(ir_elements(from) == ir_elements(to));
	unsigned a = rank_of(from) - 1, b = rank_of(to) - 1;
	for (unsigned d = 0; d < rank_of(to); d++) r.divisibility[d] = each_any(x, from);
	while (a > 0 && from.dim[a] == 1) a--;
	while (b > 0 && to.dim[b] == 1) b--;
	uint64_t reach = extent(to, b), c = least(x->contiguity[a], reach);
	uint64_t unit = from.pointer ? scalar_bytes(from.elem) : 1;
	r.contiguity[b] = (uint32_t)c;
	r.divisibility[b] = x->contiguity[a] > c ? least(x->divisibility[a], times(c, unit)) : x->divisibility[a];
	r.constancy[b] = (uint32_t)least(x->constancy[a], reach);
	bool all_equal = true;
	for (unsigned d = 0; d < from.rank; d++) all_equal &= x->constancy[d] == from.dim[d];
	for (unsigned d = 0; all_equal && d < rank_of(to); d++) r.constancy[d] = extent(to, d);
	return r;
}

static axis_info hinted(const ir_op *o, axis_info r)
{
	assert(ir_same_shape(ir_arg(o, 0)->type, o->results[0]->type));
	for (unsigned d = 0; d < rank_of(o->results[0]->type); d++) {
		uint64_t n = ir_unpack(ir_get_values(o), d);
		if (n == 0) continue;
		n &= 0 - n;
		uint32_t reach = (uint32_t)least(n, extent(o->results[0]->type, d));
		if (ir_get_kind(o) == IR_MULTIPLE_OF)
			r.divisibility[d] = most(r.divisibility[d], n);
		else if (ir_get_kind(o) == IR_MAX_CONTIGUOUS)
			r.contiguity[d] = (uint32_t)most(r.contiguity[d], reach);
		else
			r.constancy[d] = (uint32_t)most(r.constancy[d], reach);
	}
	return r;
}

/* Any elementwise operation: equal operands give equal results. */
static axis_info elementwise(const pass_context *p, const ir_op *o, ir_type t)
{
	axis_info r = uniform(t, 1);
	for (unsigned i = 0; i < o->nargs; i++)
		for (unsigned d = 0; d < rank_of(t); d++)
			r.constancy[d] = (uint32_t)least(r.constancy[d], axis_get(p, ir_arg(o, i))->constancy[d]);
	return r;
}

static axis_info shifted(const pass_context *p, const ir_op *o, ir_type t)
{
	int64_t n;
	const axis_info *x = axis_get(p, ir_arg(o, 0));
	axis_info r = elementwise(p, o, t);
	if (!same_number(ir_arg(o, 1), &n) || n < 0 || n > 40) return r;
	if (n == 0) return *x;
	if (o->kind == IR_SHR) return divide(ir_arg(o, 0), x, INT64_C(1) << n, t);
	for (unsigned d = 0; d < rank_of(t); d++) r.divisibility[d] = times(each(x, d), UINT64_C(1) << n);
	return r;
}

static axis_info bitwise(const pass_context *p, const ir_op *o, ir_type t)
{
	const axis_info *x = axis_get(p, ir_arg(o, 0)), *y = axis_get(p, ir_arg(o, 1));
	axis_info r = elementwise(p, o, t);
	for (unsigned d = 0; d < rank_of(t); d++)
		r.divisibility[d] = o->kind == IR_AND ? most(each(x, d), each(y, d)) : least(each(x, d), each(y, d));
	return r;
}

static bool integer_like(ir_type t)
{
	return t.pointer || !scalar_is_float(t.elem);
}

static axis_info transfer(const pass_context *p, const ir_op *o)
{
	ir_type t = o->results[0]->type;
	const axis_info *x = o->nargs > 0 ? axis_get(p, ir_arg(o, 0)) : NULL;
	const axis_info *y = o->nargs > 1 ? axis_get(p, ir_arg(o, 1)) : NULL;
	int64_t n;
	switch (o->kind) {
	case IR_CONST: return uniform(t, integer_like(t) ? lowest_bit(scalar_sign_extend(t.elem, ir_get_value(o))) : 1);
	case IR_ARANGE: {
		axis_info r = nothing(t);
		r.contiguity[0] = extent(t, 0);
		r.divisibility[0] = lowest_bit(ir_get_lo(o));
		if (r.contiguity[0] != t.dim[0]) r.divisibility[0] = least(r.divisibility[0], r.contiguity[0]);
		return r;
	}
	case IR_SPLAT: return uniform(t, x->divisibility[0]);
	case IR_EXPAND_DIMS: return expand(x, ir_arg(o, 0)->type, t, ir_get_axis(o));
	case IR_BROADCAST: return broadcast(x, ir_arg(o, 0)->type, t);
	case IR_RESHAPE: return reshape(x, ir_arg(o, 0)->type, t);
	case IR_PERMUTE: {
		axis_info r = nothing(t);
		for (unsigned d = 0; d < t.rank; d++) {
			unsigned from = ir_unpack(ir_get_order(o), d);
			r.contiguity[d] = x->contiguity[from];
			r.divisibility[d] = x->divisibility[from];
			r.constancy[d] = x->constancy[from];
		}
		return r;
	}
	case IR_ADD: return integer_like(t) ? add(x, y, t, 1) : elementwise(p, o, t);
	case IR_PTR_ADD: return add(x, y, t, scalar_bytes(t.elem));
	case IR_SUB: return integer_like(t) ? subtract(x, y, t) : elementwise(p, o, t);
	case IR_MUL: return integer_like(t) ? multiply(o, x, y, t) : elementwise(p, o, t);
	case IR_DIV:
		return integer_like(t) && same_number(ir_arg(o, 1), &n) ? divide(ir_arg(o, 0), x, n, t)
									: elementwise(p, o, t);
	case IR_REM: return remainder_of(o, x, y, t);
	case IR_SHL:
	case IR_SHR: return shifted(p, o, t);
	case IR_AND:
	case IR_OR:
	case IR_XOR: return bitwise(p, o, t);
	case IR_LT:
	case IR_GE: return integer_like(ir_arg(o, 0)->type) ? compare(x, y, x, y, t) : elementwise(p, o, t);
	case IR_GT:
	case IR_LE: return integer_like(ir_arg(o, 0)->type) ? compare(x, y, y, x, t) : elementwise(p, o, t);
	case IR_SELECT: return select_of(x, y, axis_get(p, ir_arg(o, 2)), t, t.pointer ? scalar_bytes(t.elem) : 1);
	case IR_MAX:
	case IR_MIN:
	case IR_NEG: {
		axis_info r = elementwise(p, o, t);
		for (unsigned d = 0; integer_like(t) && d < rank_of(t); d++)
			r.divisibility[d] = y ? least(each(x, d), each(y, d)) : each(x, d);
		return r;
	}
	case IR_CONVERT:
	case IR_BITCAST:
		return integer_like(t) && integer_like(ir_arg(o, 0)->type) && t.elem != SCALAR_BOOL
			       ? *x
			       : elementwise(p, o, t);
	case IR_HINT: return hinted(o, *x);
	case IR_CONVERT_LAYOUT: return *x;
	case IR_LOAD: return elementwise(p, o, t);
	default: return ir_has(o, IR_ELEMENTWISE) ? elementwise(p, o, t) : nothing(t);
	}
}

/* Powers of two, in runs that lie in the tile. */
__attribute__((unused)) static bool is_fact(const axis_info *a, ir_type t)
{
	bool good = true;
	for (unsigned d = 0; d < rank_of(t); d++) {
		uint64_t c = a->contiguity[d], k = a->constancy[d], by = a->divisibility[d];
		good = good && c && k && by && !(c & (c - 1)) && !(k & (k - 1)) && !(by & (by - 1)) &&
		       c <= extent(t, d) && k <= extent(t, d);
	}
	return good;
}

/* Returns whether the value's facts changed. */
static bool set(pass_context *p, const ir_value *v, axis_info a)
{
	assert(v->id < p->naxis && a.known);
	assert(is_fact(&a, v->type));
	bool changed = memcmp(&p->axis[v->id], &a, sizeof a) != 0;
	p->axis[v->id] = a;
	return changed;
}

static void walk(pass_context *p, const ir_block *b);

static bool meet(pass_context *p, const ir_value *v, const ir_value *other)
{
	return set(p, v, join(axis_get(p, v), axis_get(p, other), v->type));
}

/* An initial value of a loop-carried one.  Facts of an earlier walk stay as an upper bound: with them a nest of loops
 * is walked once more for every fact that falls, not once more a level. */
static void start(pass_context *p, const ir_value *v, const axis_info *a)
{
	if (p->axis[v->id].known)
		set(p, v, join(axis_get(p, v), a, v->type));
	else
		set(p, v, *a);
}

static void walk_for(pass_context *p, const ir_op *o)
{
	const ir_block *body = o->regions[0];
	assert(body->nargs == o->nresults + 1u && body->last->nargs == o->nresults);
	axis_info i = nothing(body->args[0]->type);
	i.divisibility[0] =
		least(axis_get(p, ir_arg(o, 0))->divisibility[0], axis_get(p, ir_arg(o, 2))->divisibility[0]);
	set(p, body->args[0], i);
	for (uint32_t k = 1; k < body->nargs; k++) start(p, body->args[k], axis_get(p, ir_arg(o, k + 2)));
	for (bool again = true; again;) {
		walk(p, body);
		again = false;
		for (uint32_t k = 1; k < body->nargs; k++) again |= meet(p, body->args[k], ir_arg(body->last, k - 1));
	}
	for (unsigned k = 0; k < o->nresults; k++) set(p, o->results[k], *axis_get(p, body->args[k + 1]));
}

static void walk_while(pass_context *p, const ir_op *o)
{
	const ir_block *before = o->regions[0], *after = o->regions[1];
	assert(before->nargs == o->nargs && before->last->nargs == o->nresults + 1u);
	assert(after->nargs == o->nresults && after->last->nargs == o->nargs);
	for (uint32_t k = 0; k < before->nargs; k++) start(p, before->args[k], axis_get(p, ir_arg(o, k)));
	for (bool again = true; again;) {
		walk(p, before);
		for (uint32_t k = 0; k < after->nargs; k++)
			set(p, after->args[k], *axis_get(p, ir_arg(before->last, k + 1)));
		walk(p, after);
		again = false;
		for (uint32_t k = 0; k < before->nargs; k++) again |= meet(p, before->args[k], ir_arg(after->last, k));
	}
	for (unsigned k = 0; k < o->nresults; k++) set(p, o->results[k], *axis_get(p, ir_arg(before->last, k + 1)));
}

static void walk(pass_context *p, const ir_block *b)
{
	for (const ir_op *o = b->first; o; o = o->next) {
		if (o->kind == IR_FOR)
			walk_for(p, o);
		else if (o->kind == IR_WHILE)
			walk_while(p, o);
		else if (o->kind == IR_IF || o->kind == IR_PARTITIONS) {
			assert(o->nregions == 2);
			for (unsigned r = 0; r < o->nregions; r++) walk(p, o->regions[r]);
			for (unsigned k = 0; k < o->nresults; k++) {
				set(p, o->results[k], *axis_get(p, ir_arg(o->regions[0]->last, k)));
				meet(p, o->results[k], ir_arg(o->regions[1]->last, k));
			}
		} else if (o->nresults == 1)
			set(p, o->results[0], transfer(p, o));
		else
			for (unsigned k = 0; k < o->nresults; k++) set(p, o->results[k], nothing(o->results[k]->type));
	}
}

bool pass_axis(pass_context *p, ir_func *f)
{
	if (p->axis_of == f && p->naxis == f->nvalues) return true;
	p->axis = ARENA_ARRAY(p->arena, axis_info, f->nvalues);
	p->naxis = f->nvalues;
	p->axis_of = f;
	assert(f->nparams == f->body->nargs);
	for (uint32_t i = 0; i < f->body->nargs; i++)
		set(p, f->body->args[i],
			uniform(f->body->args[i]->type, f->params[i].divisible ? f->params[i].divisible : 1));
	walk(p, f->body);
	return true;
}

/* Elements of one instruction.  Only additions that return nothing come in vectors: pairs of f16 everywhere, f32, f16
 * and bf16 up to 16 bytes from sm_90 on. */
static unsigned widest(const pass_context *p, const ir_op *o, axis_limit *reason)
{
	scalar s = ir_arg(o, 0)->type.elem;
	unsigned bytes = scalar_bytes(s);
	if (!ir_is_atomic(o)) {
		*reason = AXIS_WIDEST;
		return 16 / bytes;
	}
	*reason = AXIS_ATOMIC;
	bool release_only = ir_get_sem(o) == IR_RELAXED || ir_get_sem(o) == IR_RELEASE;
	if (o->kind != IR_ATOMIC_RMW || ir_get_rmw(o) != IR_ATOMIC_ADD || o->results[0]->uses || !release_only)
		return 1;
	if (!scalar_is_float(s) || bytes == 8 || !p->target || p->target->kind != TARGET_NVPTX) return 1;
	return target_can(p->target, TARGET_ATOMIC_VECTORS) ? 16 / bytes : s == SCALAR_F16 ? 2 : 1;
}

const char *const axis_limit_text[] = {
	[AXIS_WIDEST] = "16 bytes are the widest access",
	[AXIS_ATOMIC] = "atomics of this kind act on no more at once",
	[AXIS_SCALAR] = "a scalar access",
	[AXIS_SPREAD] = "neighbours are not known to be adjacent in memory",
	[AXIS_UNALIGNED] = "the address is not known to be aligned",
	[AXIS_MASK] = "the mask may change inside the access",
};

unsigned axis_access_width(const pass_context *p, const ir_op *access, unsigned dim, axis_limit *why)
{
	const ir_value *pointer = ir_arg(access, 0);
	const ir_value *mask = ir_mask(access);
	axis_limit reason;
	if (pointer->type.rank == 0) {
		if (why) *why = AXIS_SCALAR;
		return 1;
	}
	assert(dim < pointer->type.rank);
	const axis_info *a = axis_get(p, pointer);
	uint64_t bytes = scalar_bytes(pointer->type.elem), width = widest(p, access, &reason);
	if (a->contiguity[dim] < width) width = a->contiguity[dim], reason = AXIS_SPREAD;
	uint64_t aligned = most(1, a->divisibility[dim] / bytes);
	if (aligned < width) width = aligned, reason = AXIS_UNALIGNED;
	if (mask && axis_get(p, mask)->constancy[dim] < width) {
		width = axis_get(p, mask)->constancy[dim];
		reason = AXIS_MASK;
	}
	assert(width && !(width & (width - 1)) && width * bytes <= 16);
	if (why) *why = reason;
	return (unsigned)width;
}

uint64_t axis_divisor(const pass_context *c, const ir_value *v)
{
	const axis_info *info = axis_get(c, v);
	uint64_t d = 1;
	for (unsigned i = 0; info->known && i < (v->type.rank ? v->type.rank : 1u); i++)
		if (info->contiguity[i] == 1 && info->divisibility[i] > d) d = info->divisibility[i];
	return d;
}
