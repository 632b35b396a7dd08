/* Random straight-line programs over integers, bools and pointers, and their meaning, computed element by element. */
#ifndef TESTS_UNIT_IR_RANDOM_H
#define TESTS_UNIT_IR_RANDOM_H

#include "ir_text.h"

#include "ir/fold.h"

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(random_state >> 33) % n;
}

/* Elements of values by id, row-major containers. */
typedef struct machine {
	uint64_t **element;
	uint32_t program;
} machine;

static const uint64_t *elements(const machine *m, const ir_value *v)
{
	return m->element[v->id];
}

/* Row-major index in the argument of what stands at index i of a shape operation's result. */
static uint64_t source_index(const ir_op *o, uint64_t i)
{
	ir_type r = o->results[0]->type, a = ir_arg(o, 0)->type;
	uint64_t at[IR_MAX_RANK] = {0}, from[IR_MAX_RANK] = {0}, index = 0;
	for (unsigned d = r.rank; d-- > 0; i /= r.dim[d]) at[d] = i % r.dim[d];
	for (unsigned d = 0, k = 0; d < r.rank; d++) {
		if (o->kind == IR_PERMUTE) from[ir_unpack(ir_get_order(o), d)] = at[d];
		if (o->kind == IR_EXPAND_DIMS && d != ir_get_axis(o)) from[k++] = at[d];
		if (o->kind == IR_BROADCAST) from[d] = at[d] % a.dim[d];
	}
	for (unsigned d = 0; d < a.rank; d++) index = index * a.dim[d] + from[d];
	return index;
}

static uint64_t element_of(const machine *m, const ir_op *o, uint64_t i)
{
	uint64_t args[3] = {0}, out;
	scalar to = (scalar)o->results[0]->type.elem;
	switch (o->kind) {
	case IR_CONST: return ir_get_value(o);
	case IR_PROGRAM_ID: return m->program;
	case IR_ARANGE: return scalar_truncate(SCALAR_I32, (uint64_t)ir_get_lo(o) + i);
	case IR_SPLAT: return elements(m, ir_arg(o, 0))[0];
	case IR_RESHAPE: return elements(m, ir_arg(o, 0))[i];
	case IR_EXPAND_DIMS:
	case IR_BROADCAST:
	case IR_PERMUTE: return elements(m, ir_arg(o, 0))[source_index(o, i)];
	default: break;
	}
	for (unsigned k = 0; k < o->nargs; k++) args[k] = elements(m, ir_arg(o, k))[i];
	if (o->kind == IR_PTR_ADD)
		return args[0] +
		       scalar_bytes(to) * (uint64_t)scalar_sign_extend((scalar)ir_arg(o, 1)->type.elem, args[1]);
	if (o->kind == IR_BITCAST) return args[0];
	assert_true(fold_scalar(o->kind, to, (scalar)ir_arg(o, o->nargs - 1u)->type.elem, args, &out));
	return out;
}

static ir_value *pick(ir_value **pool, unsigned n, scalar s, bool pointer)
{
	for (unsigned tries = 0; tries < 64; tries++) {
		ir_value *v = pool[random_below(n)];
		if ((v->type.pointer != 0) == pointer && (pointer || v->type.elem == s)) return v;
	}
	return NULL;
}

/* Below 2^bits a power of two, or three times one. */
static uint32_t random_extent(unsigned bits)
{
	uint32_t n = 1u << random_below(bits);
	return n > 1 && random_below(3) == 0 ? n / 2 * 3 : n;
}

/* A random operation on values of the pool, or null. */
static ir_value *random_value(ir_builder *b, ir_value **pool, unsigned n)
{
	static const scalar types[] = {SCALAR_I32, SCALAR_I32, SCALAR_U32, SCALAR_I64};
	static const ir_kind binary[] = {IR_ADD, IR_ADD, IR_ADD, IR_SUB, IR_MUL, IR_DIV, IR_REM, IR_AND, IR_OR, IR_XOR,
		IR_SHL, IR_SHR, IR_MAX, IR_MIN, IR_LT, IR_LE, IR_GT, IR_GE, IR_EQ};
	scalar s = types[random_below(4)];
	ir_value *x = pick(pool, n, s, false), *y;
	unsigned what = random_below(20);
	if (!x) return NULL;
	ir_type t = x->type;
	if (what < 9) {
		ir_kind k = binary[random_below(sizeof binary / sizeof *binary)];
		for (unsigned tries = 0; tries < 20; tries++) {
			y = random_below(3) ? pick(pool, n, s, false)
					    : ir_constant(b, t, UINT64_C(1) << random_below(6));
			if (y && ir_same_shape(y->type, t)) break;
			y = NULL;
		}
		if ((k == IR_DIV || k == IR_REM || k == IR_SHL || k == IR_SHR) &&
			(!y || y->def == NULL || y->def->kind != IR_CONST))
			y = ir_constant(b, t, 1 + random_below(17));
		if (!y) return NULL;
		return ir_binary(b, k, x, y);
	}
	switch (what) {
	case 9: return t.rank ? NULL : ir_splat(b, x, ir_tile_type(s, 1, (uint32_t[]){random_extent(6)}));
	case 10:
	case 11:
		if (t.rank == 0 || t.rank > 2) return NULL;
		unsigned axis = random_below(t.rank + 1u);
		ir_type r = t;
		for (unsigned d = t.rank; d > axis; d--) r.dim[d] = t.dim[d - 1];
		r.dim[axis] = 1;
		r.rank++;
		y = ir_build1(b, IR_EXPAND_DIMS, r, 1, &x);
		ir_set_axis(y->def, axis);
		r.dim[axis] = random_extent(5);
		return ir_build1(b, IR_BROADCAST, r, 1, &y);
	case 12:
		if (t.rank != 2) return NULL;
		y = ir_build1(b, IR_PERMUTE, ir_tile_type(s, 2, (uint32_t[]){t.dim[1], t.dim[0]}), 1, &x);
		ir_set_order(y->def, ir_pack(2, (uint16_t[]){1, 0}));
		return y;
	case 13:
		if (t.rank == 0) return NULL;
		uint32_t all = (uint32_t)ir_elements(t), rows = random_extent(6);
		if (rows > all || all % rows) return NULL;
		return ir_build1(b, IR_RESHAPE, ir_tile_type(s, 2, (uint32_t[]){rows, all / rows}), 1, &x);
	case 14:
	case 15: return ir_build1(b, IR_CONVERT, ir_with_elem(t, types[random_below(4)]), 1, &x);
	case 16:
	case 17:
		y = pick(pool, n, SCALAR_BOOL, false);
		if (!y) return NULL;
		for (unsigned i = 0; i < n; i++)
			if (pool[i] != x && ir_type_equal(pool[i]->type, t) && ir_same_shape(y->type, t))
				return ir_build1(b, IR_SELECT, t, 3, (ir_value *[]){y, x, pool[i]});
		return NULL;
	default:
		y = pick(pool, n, s, true);
		if (!y) return NULL;
		if (!ir_same_shape(y->type, t)) y = y->type.rank ? NULL : ir_splat(b, y, t);
		return y ? ir_build1(b, IR_PTR_ADD, y->type, 2, (ir_value *[]){y, x}) : NULL;
	}
}

/* Values stay small enough here that i32 does not wrap, except where a shift or a product says otherwise: programs in
 * which a claim of contiguity would rest on "signed arithmetic does not wrap" are left out by their element range. */
static bool is_small(const machine *m, const ir_value *v)
{
	if (v->type.pointer || v->type.elem == SCALAR_BOOL) return true;
	for (uint64_t i = 0; i < ir_elements(v->type); i++) {
		int64_t x = scalar_sign_extend((scalar)v->type.elem, elements(m, v)[i]);
		if (x > 1 << 30 || x < -(1 << 30) || (x < 0 && !scalar_is_signed((scalar)v->type.elem))) return false;
	}
	return true;
}

enum { RANDOM_VALUES = 40, RANDOM_ROOM = 4096 };

typedef struct random_function {
	ir_func *func; /* without its return */
	machine machine;
	ir_value *pool[RANDOM_VALUES]; /* what the program computed, values out of small ranges left out */
	unsigned n;
} random_function;

/* The elements of every operation's result in front of `end`, from `from` on. */
static bool evaluate(machine *m, ir_op *from)
{
	bool small = true;
	for (ir_op *o = from; o && o->nresults == 1; o = o->next) {
		uint64_t size = ir_elements(o->results[0]->type);
		uint64_t *e = m->element[o->results[0]->id] = ARENA_ARRAY(&memory, uint64_t, size);
		for (uint64_t i = 0; i < size; i++) e[i] = element_of(m, o, i);
		small &= is_small(m, o->results[0]);
	}
	return small;
}

static random_function random_program(uint64_t seed)
{
	static const char *const names[] = {"p", "n", "u", "l"};
	static const ir_type types[] = {{.elem = SCALAR_F32, .pointer = IR_POINTER}, {.elem = SCALAR_I32},
		{.elem = SCALAR_U32}, {.elem = SCALAR_I64}};
	random_state = seed;
	random_function r = {.func = ir_func_new(&memory, "random"), .machine.program = random_below(100)};
	ir_func *f = r.func;
	machine *m = &r.machine;
	m->element = ARENA_ARRAY(&memory, uint64_t *, RANDOM_ROOM);
	for (unsigned i = 0; i < 4; i++) {
		ir_value *v = r.pool[r.n++] = ir_add_param(f, names[i], types[i], (span){0});
		f->params[i].divisible = 1u << random_below(6);
		m->element[v->id] = ARENA_ARRAY(&memory, uint64_t, 1);
		*m->element[v->id] = f->params[i].divisible * (uint64_t)(random_below(50) + (i == 0));
	}
	ir_builder b = {.func = f, .block = f->body};
	r.pool[r.n++] = ir_build1(&b, IR_PROGRAM_ID, ir_scalar_type(SCALAR_I32), 0, NULL);
	for (unsigned i = 0; i < 3; i++) {
		ir_type t = ir_tile_type(SCALAR_I32, 1, (uint32_t[]){random_extent(6)});
		ir_value *v = r.pool[r.n++] = ir_build1(&b, IR_ARANGE, t, 0, NULL);
		ir_set_lo(v->def, random_below(3) ? 0 : random_below(40));
	}
	ir_op *done = NULL;
	while (r.n < RANDOM_VALUES && f->nvalues < RANDOM_ROOM - 100) {
		ir_value *v = random_value(&b, r.pool, r.n);
		bool small = evaluate(m, done ? done->next : f->body->first);
		done = f->body->last;
		if (v && small && ir_elements(v->type) <= 1024) r.pool[r.n++] = v;
	}
	return r;
}

static void finish_function(ir_func *f)
{
	ir_builder b = {.func = f, .block = f->body};
	ir_build(&b, IR_RETURN, 0, NULL, 0, NULL, 0);
	check_verifies(f);
}

#endif
