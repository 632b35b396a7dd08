/* Where an integer's elements lie.  See int_range.h. */
#include "int_range.h"

enum { MOST_DEPTH = 16, MOST_VISITS = 128 };

static int_bounds of(const ir_value *v, unsigned depth, unsigned *visits);

typedef struct reader { /* of one question */
	unsigned depth, *visits;
} reader;

static int_bounds argument(const reader *r, const ir_op *o, unsigned i)
{
	return of(ir_arg(o, i), r->depth - 1, r->visits);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ---- arithmetic that stops at the ends of i64 ---- */

static int64_t plus(int64_t a, int64_t b)
{
	int64_t r;
	return !__builtin_add_overflow(a, b, &r) ? r : a < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t negative(int64_t a)
{
	return a == INT64_MIN ? INT64_MAX : -a;
}

static int64_t times(int64_t a, int64_t b)
{
	int64_t r;
	return !__builtin_mul_overflow(a, b, &r) ? r : (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}

static int_bounds product(int_bounds a, int_bounds b)
{
	int64_t corner[] = {times(a.low, b.low), times(a.low, b.high), times(a.high, b.low), times(a.high, b.high)};
	int_bounds r = {corner[0], corner[0]};
	for (unsigned i = 1; i < 4; i++) r.low = least(r.low, corner[i]), r.high = most(r.high, corner[i]);
	return r;
}

/* ---- types ---- */

int_bounds int_range_of_type(scalar s)
{
	unsigned bits = scalar_bits(s);
	if (!scalar_is_integer(s) && s != SCALAR_BOOL) return (int_bounds){INT64_MIN, INT64_MAX};
	if (!scalar_is_signed(s)) return (int_bounds){0, bits == 64 ? INT64_MAX : (int64_t)((UINT64_C(1) << bits) - 1)};
	int64_t high = (int64_t)(UINT64_MAX >> (65 - bits));
	return (int_bounds){-high - 1, high};
}

/* The bounds, of which some may lie outside of the type. */
static int_bounds fitted(int_bounds r, scalar s, bool may_wrap)
{
	assert(r.low <= r.high);
	int_bounds all = int_range_of_type(s);
	if (r.low >= all.low && r.high <= all.high) return r;
	if (may_wrap) return all;
	return (int_bounds){least(most(r.low, all.low), all.high), most(least(r.high, all.high), all.low)};
}

/* Signed arithmetic of 32 and 64 bits is taken not to. */
static bool wraps(scalar s)
{
	return !scalar_is_signed(s) || scalar_bits(s) < 32;
}

/* ---- operations ---- */

/* Of numbers that are not negative. */
static int_bounds of_bits(const ir_op *o, int_bounds a, int_bounds b, int_bounds all)
{
	uint64_t bits = (uint64_t)(a.high | b.high);
	switch (o->kind) {
	case IR_AND:
		if (a.low < 0 && b.low < 0) return all;
		return (int_bounds){0, a.low < 0 ? b.high : b.low < 0 ? a.high : least(a.high, b.high)};
	case IR_OR:
	case IR_XOR:
		if (a.low < 0 || b.low < 0) return all;
		return (int_bounds){0, bits ? (int64_t)(UINT64_MAX >> __builtin_clzll(bits)) : 0};
	default: /* IR_SHR */
		if (a.low < 0) return all;
		return b.low == b.high && b.low >= 0 && b.low < 63 ? (int_bounds){a.low >> b.low, a.high >> b.low}
								   : (int_bounds){0, a.high};
	}
}

static int_bounds quotient(const ir_op *o, int_bounds a, int_bounds b, int_bounds all)
{
	if (o->kind == IR_REM) return a.low < 0 ? all : (int_bounds){0, b.low > 0 ? least(a.high, b.high - 1) : a.high};
	assert(a.low <= a.high && b.low <= b.high);
	return a.low < 0 || b.low < 0 ? all : (int_bounds){b.high ? a.low / b.high : 0, a.high / most(b.low, 1)};
}

/* Of u64, whose bound INT64_MAX stands for all that is larger as well. */
static bool keeps_open_ends(const ir_op *o)
{
	return o->kind == IR_MIN || o->kind == IR_MAX || o->kind == IR_AND || o->kind == IR_OR || o->kind == IR_XOR;
}

static int_bounds two(const ir_op *o, int_bounds a, int_bounds b)
{
	scalar s = (scalar)o->results[0]->type.elem;
	int_bounds all = int_range_of_type(s);
	bool open = s == SCALAR_U64 && (a.high == INT64_MAX || b.high == INT64_MAX);
	switch (open && !keeps_open_ends(o) ? IR_KIND_COUNT : o->kind) {
	case IR_ADD: return fitted((int_bounds){plus(a.low, b.low), plus(a.high, b.high)}, s, wraps(s));
	case IR_SUB:
		return fitted((int_bounds){plus(a.low, negative(b.high)), plus(a.high, negative(b.low))}, s, wraps(s));
	case IR_MUL: return fitted(product(a, b), s, wraps(s));
	case IR_MIN: return (int_bounds){least(a.low, b.low), least(a.high, b.high)};
	case IR_MAX: return (int_bounds){most(a.low, b.low), most(a.high, b.high)};
	case IR_DIV:
	case IR_REM: return quotient(o, a, b, all);
	case IR_AND:
	case IR_OR:
	case IR_XOR:
	case IR_SHR: return of_bits(o, a, b, all);
	default: return all;
	}
}

static int_bounds converted(const ir_op *o, int_bounds a)
{
	scalar from = (scalar)ir_arg(o, 0)->type.elem, to = (scalar)o->results[0]->type.elem;
	bool unknown = from == SCALAR_U64 && a.high == INT64_MAX; /* as large as 2^64 - 1 */
	if (scalar_is_float(from) || unknown) return int_range_of_type(to);
	return fitted(a, to, true);
}

static int_bounds united(int_bounds a, int_bounds b)
{
	return (int_bounds){least(a.low, b.low), most(a.high, b.high)};
}

static int_bounds operation(const reader *r, const ir_value *v)
{
	const ir_op *o = v->def;
	scalar s = (scalar)v->type.elem;
	if (ir_has(o, IR_SHAPE)) return argument(r, o, 0);
	switch (o->kind) {
	case IR_PROGRAM_ID: return (int_bounds){0, ir_get_axis(o) ? INT_RANGE_PROGRAMS - 1 : INT32_MAX - 1};
	case IR_NUM_PROGRAMS: return (int_bounds){1, ir_get_axis(o) ? INT_RANGE_PROGRAMS : INT32_MAX};
	case IR_ROW_GROUP: return (int_bounds){0, IR_ROW_GROUPS - 1};
	case IR_CLUSTER_SIZE: return (int_bounds){1, INT32_MAX};
	case IR_ARANGE: return (int_bounds){ir_get_lo(o), ir_get_lo(o) + v->type.dim[0] - 1};
	case IR_HINT:
	case IR_CONVERT_LAYOUT: return argument(r, o, 0);
	case IR_CONVERT: return converted(o, argument(r, o, 0));
	case IR_SELECT: return united(argument(r, o, 1), argument(r, o, 2));
	case IR_NEG: {
		int_bounds a = argument(r, o, 0);
		return fitted((int_bounds){negative(a.high), negative(a.low)}, s, wraps(s));
	}
	case IR_ADD:
	case IR_SUB:
	case IR_MUL:
	case IR_MIN:
	case IR_MAX:
	case IR_DIV:
	case IR_REM:
	case IR_AND:
	case IR_OR:
	case IR_XOR:
	case IR_SHR: return two(o, argument(r, o, 0), argument(r, o, 1));
	default: return int_range_of_type(s);
	}
}

/* A loop's counter, which counts up. */
static int_bounds counter(const reader *r, const ir_value *v)
{
	const ir_op *loop = v->block->parent;
	int_bounds all = int_range_of_type((scalar)v->type.elem);
	if (!loop || loop->kind != IR_FOR || v->index > 0 || argument(r, loop, 2).low <= 0) return all;
	int_bounds first = argument(r, loop, 0), end = argument(r, loop, 1);
	return (int_bounds){first.low, most(first.low, plus(end.high, -1))};
}

static int_bounds of(const ir_value *v, unsigned depth, unsigned *visits)
{
	int64_t n;
	reader r = {depth, visits};
	scalar s = (scalar)v->type.elem;
	if (v->type.pointer || scalar_is_float(s) || depth == 0 || ++*visits > MOST_VISITS) return int_range_of_type(s);
	if (ir_is_const_int(v, &n) && (s != SCALAR_U64 || n >= 0)) return (int_bounds){n, n};
	return v->def ? operation(&r, v) : counter(&r, v);
}

int_bounds int_range_of(const ir_value *v)
{
	unsigned visits = 0;
	int_bounds r = of(v, MOST_DEPTH, &visits);
	assert(r.low <= r.high);
	return r;
}
