/* The warning about i32 offsets that overflow for the declared grid.
 *
 * In: a finished body and the extents of a grid clause that is constant.  Out: W0220 where an offset overflows.
 * The one idea: the kernel is evaluated at one place that it certainly reaches: the last program of the grid, the last
 * element of every arange, the last iteration of every loop with constant bounds.  What leaves i32 there overflows, and
 * is no guess.  A lower bound that an assume() gives will do as well where a larger value makes a larger result.
 * Operations inside branches, and in loops whose bounds are not known, may never run and are left alone; so are
 * unsigned and narrow types, and what is masked or divided after it overflowed: they wrap on purpose. */
#include "internal.h"

typedef struct reached {
	bool known, at_least; /* at_least: value is a lower bound, and not negative */
	sema_int value;
	const ir_op *overflow; /* where it left i32 on the way; then `known` is false */
} reached;

typedef struct evaluation {
	sema *s;
	const int64_t *grid;
	reached *table; /* by value */
} evaluation;

static const reached unknown;

static reached known(sema_int value)
{
	return (reached){.known = true, .value = value};
}

/* Of known operands; b is 0 where there is one. */
static bool compute(const ir_op *o, sema_int a, sema_int b, sema_int *r)
{
	switch (o->kind) {
	case IR_ADD: *r = a + b; return true;
	case IR_SUB: *r = a - b; return true;
	case IR_MUL: *r = a * b; return true;
	case IR_SHL: *r = b >= 0 && b < 32 ? a * ((sema_int)1 << b) : 0; return b >= 0 && b < 32;
	case IR_MAX: *r = a > b ? a : b; return true;
	case IR_MIN: *r = a < b ? a : b; return true;
	case IR_NEG: *r = -a; return true;
	case IR_DIV: *r = b ? a / b : 0; return b != 0;
	case IR_REM: *r = b ? a % b : 0; return b != 0;
	case IR_AND: *r = a & b; return true;
	case IR_SHR: *r = b >= 0 && b < 64 ? a >> b : 0; return b >= 0 && b < 64;
	default: *r = a; return true; /* one operand: shapes, conversions */
	}
}

/* A larger operand gives a larger result, if none is negative. */
static bool grows(ir_kind k)
{
	return k == IR_ADD || k == IR_MUL || k == IR_SHL || k == IR_MAX || k == IR_CONVERT;
}

/* The values of the operand, elsewhere. */
static bool moves(const ir_op *o)
{
	return ir_has(o, IR_SHAPE) || o->kind == IR_HINT;
}

static bool carries_overflow(const ir_op *o)
{
	return grows(o->kind) || o->kind == IR_SUB || o->kind == IR_NEG || moves(o);
}

static reached from_arguments(const ir_op *o, const reached *table)
{
	reached a = table[ir_arg(o, 0)->id], b = known(0), r = unknown;
	if (o->nargs > 1) b = table[ir_arg(o, 1)->id];
	if (a.overflow || b.overflow) {
		if (carries_overflow(o)) r.overflow = a.overflow ? a.overflow : b.overflow;
		return r;
	}
	if (!a.known || !b.known || !compute(o, a.value, b.value, &r.value)) return unknown;
	r.known = true;
	r.at_least = a.at_least || b.at_least;
	if (r.at_least && (a.value < 0 || b.value < 0 || !(grows(o->kind) || moves(o)))) return unknown;
	ir_type t = o->results[0]->type;
	if (scalar_is_float((scalar)t.elem)) return unknown;
	if (scalar_bits((scalar)t.elem) > 32) return r.value > INT64_MAX || r.value < INT64_MIN ? unknown : r;
	if (t.elem != SCALAR_I32) return unknown;
	if (r.value > INT32_MAX || r.value < INT32_MIN) return (reached){.overflow = o};
	return r;
}

static reached of(const evaluation *e, const ir_op *o)
{
	int64_t n;
	switch (o->kind) {
	case IR_CONST: return ir_is_const_int(o->results[0], &n) ? known(n) : unknown;
	case IR_ARANGE: return known((sema_int)ir_get_lo(o) + o->results[0]->type.dim[0] - 1);
	case IR_PROGRAM_ID: return e->grid[ir_get_axis(o)] > 0 ? known((sema_int)e->grid[ir_get_axis(o)] - 1) : unknown;
	case IR_NUM_PROGRAMS: return e->grid[ir_get_axis(o)] > 0 ? known(e->grid[ir_get_axis(o)]) : unknown;
	case IR_CONVERT:
	case IR_SPLAT:
	case IR_EXPAND_DIMS:
	case IR_BROADCAST:
	case IR_RESHAPE:
	case IR_PERMUTE:
	case IR_HINT:
	case IR_ADD:
	case IR_SUB:
	case IR_MUL:
	case IR_SHL:
	case IR_NEG:
	case IR_MAX:
	case IR_MIN:
	case IR_DIV:
	case IR_REM:
	case IR_AND:
	case IR_SHR: return from_arguments(o, e->table);
	default: return unknown;
	}
}

/* assume(n >= 70000) bounds n, and so does each part of a conjunction. */
static void assume(const evaluation *e, const ir_value *condition)
{
	static const ir_kind mirrored[] = {[IR_GE] = IR_LE, [IR_GT] = IR_LT, [IR_LE] = IR_GE, [IR_LT] = IR_GT};
	const ir_op *o = condition->def;
	int64_t n;
	if (o && o->kind == IR_AND)
		for (unsigned i = 0; i < 2; i++) assume(e, ir_arg(o, i));
	if (!o || o->kind < IR_LT || o->kind > IR_GE) return;
	for (unsigned i = 0; i < 2; i++) {
		const ir_value *v = ir_arg(o, i);
		ir_kind kind = i == 0 ? o->kind : mirrored[o->kind];
		if ((kind != IR_GE && kind != IR_GT) || !ir_is_const_int(ir_arg(o, 1 - i), &n)) continue;
		while (v->def && v->def->kind == IR_CONVERT) v = ir_arg(v->def, 0);
		if (v->def || e->table[v->id].known || n < 0 || !scalar_is_signed(v->type.elem)) continue;
		e->table[v->id] = (reached){.known = true, .at_least = true, .value = (sema_int)n + (kind == IR_GT)};
	}
}

static void evaluate(const evaluation *e, const ir_block *b);

/* A loop that certainly runs, in its last iteration. */
static void last_iteration(const evaluation *e, const ir_op *o)
{
	reached lo = e->table[ir_arg(o, 0)->id], hi = e->table[ir_arg(o, 1)->id], step = e->table[ir_arg(o, 2)->id];
	if (!lo.known || !hi.known || !step.known || lo.at_least || hi.at_least || step.at_least) return;
	if (step.value <= 0 || lo.value >= hi.value) return;
	e->table[o->regions[0]->args[0]->id] = known(lo.value + (hi.value - lo.value - 1) / step.value * step.value);
	evaluate(e, o->regions[0]);
}

static void evaluate(const evaluation *e, const ir_block *b)
{
	sema *s = e->s;
	for (const ir_op *o = b->first; o; o = o->next) {
		if (o->kind == IR_ASSUME) assume(e, ir_arg(o, 0));
		if (o->kind == IR_FOR) last_iteration(e, o);
		if (o->nresults == 1 && o->kind != IR_FOR) e->table[o->results[0]->id] = of(e, o);
		const ir_op *from = o->kind == IR_PTR_ADD ? e->table[ir_arg(o, 1)->id].overflow : NULL;
		if (!from) continue;
		diag *d = diag_warning(
			s->diags, 220, from->at, "this i32 offset overflows for the last programs of the grid");
		diag_add_label(s->diags, d, o->at, "used as an offset here");
		diag_set_hint(s->diags, d, "compute in 64 bits: cast with .to(i64) before it grows");
	}
}

void overflow_check(sema *s, const int64_t grid[3])
{
	evaluation e = {.s = s, .grid = grid};
	if (grid[0] <= 0 && grid[1] <= 0 && grid[2] <= 0) return;
	e.table = ARENA_ARRAY(s->arena, reached, s->func->nvalues);
	evaluate(&e, s->func->body);
}
