/* Sums of products.  See affine.h. */
#include "affine.h"
#include "host_value.h"

#include <string.h>

enum { MOST_DEPTH = 64 };

/* ---- arithmetic ---- */

bool affine_atom(affine_term *t, ir_value *v)
{
	unsigned i = t->natoms;
	if (i == AFFINE_ATOMS) return false;
	for (; i > 0 && t->atom[i - 1]->id > v->id; i--) t->atom[i] = t->atom[i - 1];
	t->atom[i] = v;
	assert(i == 0 || t->atom[i - 1]->id <= v->id);
	t->natoms++;
	return true;
}

affine affine_value(ir_value *v)
{
	return (affine){.n = 1, .term = {{.factor = 1, .place = -1, .natoms = 1, .atom = {v}}}};
}

static bool alike(const affine_term *x, const affine_term *y)
{
	return x->place == y->place && x->natoms == y->natoms &&
	       memcmp(x->atom, y->atom, x->natoms * sizeof x->atom[0]) == 0;
}

bool affine_add_term(affine *s, const affine_term *t, int64_t times)
{
	assert(s->n <= AFFINE_TERMS && t->place >= -1 && t->place < IR_MAX_RANK);
	int64_t factor;
	if (__builtin_mul_overflow(t->factor, times, &factor)) return false;
	for (unsigned i = 0; i < s->n; i++) {
		if (!alike(&s->term[i], t)) continue;
		if (__builtin_add_overflow(s->term[i].factor, factor, &s->term[i].factor)) return false;
		if (!s->term[i].factor) s->term[i] = s->term[--s->n];
		return true;
	}
	if (!factor) return true;
	if (s->n == AFFINE_TERMS) return false;
	s->term[s->n] = *t;
	s->term[s->n++].factor = factor;
	return true;
}

bool affine_add(affine *s, const affine *x, int64_t times)
{
	assert(s != x);
	for (unsigned i = 0; i < x->n; i++)
		if (!affine_add_term(s, &x->term[i], times)) return false;
	s->narrow |= x->narrow;
	return true;
}

bool affine_add_number(affine *s, int64_t n)
{
	return affine_add_term(s, &(affine_term){.factor = n, .place = -1}, 1);
}

bool affine_multiply(affine *s, const affine *by)
{
	assert(!s->root && !by->root);
	affine product = {.narrow = s->narrow || by->narrow};
	for (unsigned i = 0; i < s->n; i++)
		for (unsigned k = 0; k < by->n; k++) {
			affine_term t = s->term[i];
			const affine_term *u = &by->term[k];
			if (t.place >= 0 && u->place >= 0) return false;
			if (u->place >= 0) t.place = u->place;
			for (unsigned j = 0; j < u->natoms; j++)
				if (!affine_atom(&t, u->atom[j])) return false;
			if (!affine_add_term(&product, &t, u->factor)) return false;
		}
	*s = product;
	return true;
}

/* ---- values ---- */

static bool is_index(const ir_value *v)
{
	return !v->type.pointer && (v->type.elem == SCALAR_I32 || v->type.elem == SCALAR_I64);
}

bool affine_of_host(const affine_context *c, const ir_value *v)
{
	return host_value_known(&(host_values){c->pass->arena, c->func}, v);
}

static bool is_linear(const ir_op *o)
{
	switch (o->kind) {
	case IR_ADD:
	case IR_SUB:
	case IR_MUL:
	case IR_NEG:
	case IR_HINT: return is_index(o->results[0]);
	case IR_CONVERT: return o->results[0]->type.elem == SCALAR_I64 && ir_arg(o, 0)->type.elem == SCALAR_I32;
	default: return false;
	}
}

static bool mentions(affine_context *c, const ir_value *v, unsigned depth)
{
	int64_t n;
	if (depth == 0 || c->visits++ >= AFFINE_VISITS || ir_is_const_int(v, &n)) return false;
	if (!v->def) return v->block->parent ? v->block->parent->kind == IR_FOR : c->open_scalars;
	if (c->open_scalars && affine_of_host(c, v)) return true;
	if (!is_linear(v->def)) return false;
	for (unsigned i = 0; i < v->def->nargs; i++)
		if (mentions(c, ir_arg(v->def, i), depth - 1)) return true;
	return false;
}

static bool is_offset(const ir_op *o)
{
	int64_t n;
	return (o->kind == IR_ADD || o->kind == IR_SUB) && ir_is_const_int(ir_arg(o, 1), &n);
}

/* A scalar is taken apart where it is a wider copy of another, where the host knows all of it, for a loop's counter in
 * it, and for whatever the host knows of it if that is wanted; or by open_offsets' rule. */
static bool is_open(affine_context *c, const ir_value *v)
{
	if (!is_linear(v->def)) return false;
	if (v->def->kind == IR_CONVERT) return true;
	if (c->open_offsets) return v->type.elem == SCALAR_I64 || is_offset(v->def);
	if (affine_of_host(c, v)) return true;
	if (c->closed_products && v->def->kind == IR_MUL && v->type.elem == SCALAR_I32) return false;
	return mentions(c, v, MOST_DEPTH);
}

static bool atom(ir_value *v, affine *s)
{
	*s = affine_value(v);
	return true;
}

static bool is_being_worked_out(const affine_context *c, const ir_value *v)
{
	for (unsigned i = 0; i < c->nopen; i++)
		if (c->open[i] == v) return true;
	return false;
}

/* The same at each element, and in each iteration. */
static bool is_step(const affine *s, const ir_op *loop)
{
	for (unsigned i = 0; i < s->n; i++) {
		if (s->term[i].place >= 0) return false;
		for (unsigned k = 0; k < s->term[i].natoms; k++)
			if (!ir_defined_outside(s->term[i].atom[k], loop)) return false;
	}
	return true;
}

/* What an iteration adds to a value that a loop carries. */
static bool step_of(affine_context *c, ir_value *v, const ir_op *loop, affine *step)
{
	assert(loop->kind == IR_FOR && v->index > 0);
	if (c->nopen == AFFINE_OPEN) return false;
	c->open[c->nopen++] = v;
	bool good = affine_of(c, ir_arg(v->block->last, v->index - 1u), step);
	c->nopen--;
	if (!good) return false;
	if (v->type.pointer) {
		if (step->root != v) return false;
		step->root = NULL;
	} else {
		affine self = affine_value(v);
		if (!affine_add(step, &self, -1)) return false;
	}
	return is_step(step, loop);
}

/* start + (counter - lo) / step of the loop * what an iteration adds */
static bool carried(affine_context *c, ir_value *v, affine *s)
{
	const ir_op *loop = v->block->parent;
	int64_t by;
	affine step = {0}, iterations = affine_value(v->block->args[0]), lo = {0};
	if (is_being_worked_out(c, v)) {
		if (!v->type.pointer) return atom(v, s);
		s->root = v;
		return true;
	}
	if (loop->kind != IR_FOR || !ir_is_const_int(ir_arg(loop, 2), &by) || by <= 0) return false;
	if (!step_of(c, v, loop, &step) || !affine_of(c, ir_arg(loop, 2u + v->index), s)) return false;
	assert(by > 0);
	for (unsigned i = 0; i < step.n; i++) {
		if (step.term[i].factor % by) return false;
		step.term[i].factor /= by;
	}
	if (!affine_of(c, ir_arg(loop, 0), &lo) || !affine_add(&iterations, &lo, -1)) return false;
	return affine_multiply(&step, &iterations) && affine_add(s, &step, 1);
}

static bool argument(affine_context *c, ir_value *v, affine *s)
{
	const ir_op *parent = v->block->parent;
	if (!parent && v->type.pointer) {
		s->root = v;
		return true;
	}
	if (!parent || (parent->kind == IR_FOR && v->index == 0)) return atom(v, s);
	if (carried(c, v, s)) return true;
	memset(s, 0, sizeof *s);
	return is_index(v) && ir_is_scalar(v) && atom(v, s);
}

static void transpose(const ir_op *o, affine *s)
{
	assert(o->kind == IR_EXPAND_DIMS || o->kind == IR_PERMUTE);
	for (unsigned i = 0; i < s->n; i++) {
		int8_t *place = &s->term[i].place;
		if (*place < 0) continue;
		if (o->kind == IR_EXPAND_DIMS)
			*place = (int8_t)(*place + (*place >= (int)ir_get_axis(o)));
		else
			for (unsigned d = 0; d < o->results[0]->type.rank; d++)
				if ((int)ir_unpack(ir_get_order(o), d) == s->term[i].place) {
					*place = (int8_t)d;
					break;
				}
	}
}

/* Of numbers and places alone: whether it may leave 32 bits. */
static bool is_large(const affine *s, ir_type t)
{
	uint64_t reach = 0;
	for (unsigned i = 0; i < s->n; i++) {
		assert(!s->term[i].natoms && s->term[i].place < t.rank);
		int64_t f = s->term[i].factor;
		uint64_t most = f < 0 ? 0 - (uint64_t)f : (uint64_t)f;
		uint64_t times = s->term[i].place < 0 ? 1 : t.dim[s->term[i].place] - 1u;
		if (most > INT32_MAX) return true;
		reach += most * times;
	}
	return reach > INT32_MAX;
}

/* What i32 multiplies might wrap around: a product that the host knows is noted, another one marks the sum. */
static bool note_product(affine_context *c, affine *s, ir_type t)
{
	bool host = true, runs = false;
	for (unsigned i = 0; i < s->n; i++) {
		host &= s->term[i].place < 0;
		runs |= s->term[i].natoms > 0;
		for (unsigned k = 0; k < s->term[i].natoms; k++) host &= affine_of_host(c, s->term[i].atom[k]);
	}
	if (!runs) s->narrow |= is_large(s, t);
	if (!runs) return true;
	if (!host) return s->narrow = true;
	if (c->nproducts == AFFINE_PRODUCTS) return false;
	c->product[c->nproducts++] = *s;
	return true;
}

static bool two(affine_context *c, const ir_op *o, affine *s)
{
	assert(o->nargs == 2);
	affine right = {0};
	if (!affine_of(c, ir_arg(o, 0), s) || !affine_of(c, ir_arg(o, 1), &right)) return false;
	bool good = o->kind == IR_MUL   ? affine_multiply(s, &right)
		    : o->kind == IR_SUB ? affine_add(s, &right, -1)
					: affine_add(s, &right, 1);
	if (o->kind == IR_MUL && o->results[0]->type.elem == SCALAR_I32)
		good = good && note_product(c, s, o->results[0]->type);
	return good;
}

static bool operation(affine_context *c, ir_value *v, affine *s)
{
	const ir_op *o = v->def;
	int64_t n;
	if (ir_is_const_int(v, &n)) return affine_add_number(s, n);
	if (o->kind == IR_PTR_ADD) return two(c, o, s);
	if (v->type.pointer ? o->kind == IR_HINT : v->type.rank ? is_linear(o) : is_open(c, v)) {
		if (o->nargs == 2) return two(c, o, s);
		affine x = {0};
		if (!affine_of(c, ir_arg(o, 0), &x)) return false;
		s->root = x.root;
		return affine_add(s, &x, o->kind == IR_NEG ? -1 : 1);
	}
	switch (o->kind) {
	case IR_ARANGE:
		affine_add_number(s, ir_get_lo(o));
		if (v->type.dim[0] != 1) affine_add_term(s, &(affine_term){.factor = 1}, 1);
		return true; /* there is room for two */
	case IR_SPLAT:
	case IR_BROADCAST:
	case IR_CONVERT_LAYOUT: return affine_of(c, ir_arg(o, 0), s);
	case IR_EXPAND_DIMS:
	case IR_PERMUTE:
		if (!affine_of(c, ir_arg(o, 0), s)) return false;
		transpose(o, s);
		return true;
	default: return is_index(v) && ir_is_scalar(v) && atom(v, s);
	}
}

bool affine_of(affine_context *c, ir_value *v, affine *s)
{
	memset(s, 0, sizeof *s);
	if (!v->type.pointer && !is_index(v)) return false;
	if (c->depth == MOST_DEPTH || c->visits++ >= AFFINE_VISITS) return false;
	c->depth++;
	bool good = v->def ? operation(c, v, s) : argument(c, v, s);
	c->depth--;
	assert(!good || !!s->root == !!v->type.pointer);
	return good;
}

/* ---- back to values ---- */

static ir_value *in_type(ir_builder *b, ir_value *v, scalar type)
{
	return v->type.elem == type ? v : ir_build1(b, IR_CONVERT, ir_scalar_type(type), 1, &v);
}

ir_value *affine_build(ir_builder *b, const affine *s, scalar type)
{
	assert(!s->root);
	ir_value *sum = NULL;
	for (unsigned i = 0; i < s->n; i++) {
		const affine_term *t = &s->term[i];
		assert(t->place < 0);
		ir_value *v = NULL;
		for (unsigned k = 0; k < t->natoms; k++) {
			ir_value *x = in_type(b, t->atom[k], type);
			v = v ? ir_binary(b, IR_MUL, v, x) : x;
		}
		if (!v || t->factor != 1) {
			ir_value *n = ir_constant_int(b, type, t->factor);
			v = v ? ir_binary(b, IR_MUL, v, n) : n;
		}
		sum = sum ? ir_binary(b, IR_ADD, sum, v) : v;
	}
	return sum ? sum : ir_constant_int(b, type, 0);
}
