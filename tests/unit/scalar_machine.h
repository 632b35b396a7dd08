/* An interpreter of scalar tile IR for tests: integers and bool, control flow, prints.  Written from ops.def alone.
 *
 * In: a function and its arguments.  Out: the printed numbers as text.  Values are kept sign-extended by type. */
#ifndef SCALAR_MACHINE_H
#define SCALAR_MACHINE_H

#include "sema_fixture.h"

enum { MACHINE_OPERANDS = 64, MACHINE_STEPS = 1000000 };

typedef struct machine {
	int64_t *value; /* by id; of the type, sign-extended */
	char out[1 << 16];
	size_t n;
	unsigned steps;
} machine;

static inline void put_to(machine *m, int64_t v)
{
	m->n += (size_t)snprintf(m->out + m->n, sizeof m->out - m->n, "%lld ", (long long)v);
	assert_true(m->n < sizeof m->out - 32);
}

static inline int64_t wrap(ir_type t, int64_t v)
{
	switch (t.elem) {
	case SCALAR_BOOL: return v & 1;
	case SCALAR_I8: return (int8_t)v;
	case SCALAR_I32: return (int32_t)v;
	case SCALAR_U32: return (uint32_t)v;
	case SCALAR_U8: return (uint8_t)v;
	case SCALAR_I64: return v;
	default: fail_msg("a type the interpreter lacks: %s", scalar_name((scalar)t.elem));
	}
	return 0;
}

static inline int64_t compute(ir_op *o, const int64_t *a)
{
	switch (o->kind) {
	case IR_CONST: return (int64_t)ir_get_value(o);
	case IR_ADD: return (int64_t)((uint64_t)a[0] + (uint64_t)a[1]);
	case IR_SUB: return (int64_t)((uint64_t)a[0] - (uint64_t)a[1]);
	case IR_MUL: return (int64_t)((uint64_t)a[0] * (uint64_t)a[1]);
	case IR_DIV: return a[1] ? a[0] / a[1] : 77;
	case IR_REM: return a[1] ? a[0] % a[1] : 77;
	case IR_NEG: return -a[0];
	case IR_MAX: return a[0] > a[1] ? a[0] : a[1];
	case IR_AND: return a[0] & a[1];
	case IR_OR: return a[0] | a[1];
	case IR_XOR: return a[0] ^ a[1];
	case IR_NOT: return ~a[0];
	case IR_EQ: return a[0] == a[1];
	case IR_NE: return a[0] != a[1];
	case IR_LT: return a[0] < a[1];
	case IR_LE: return a[0] <= a[1];
	case IR_GT: return a[0] > a[1];
	case IR_GE: return a[0] >= a[1];
	case IR_SELECT: return a[0] ? a[1] : a[2];
	case IR_BITCAST:
	case IR_CONVERT: return a[0];
	default: fail_msg("an operation the interpreter lacks: %s", ir_info(o)->name);
	}
	return 0;
}

static inline int64_t arg(machine *m, ir_op *o, unsigned i)
{
	return m->value[ir_arg(o, i)->id];
}

/* Runs a block; its terminator's operands are in `out`. */
static inline ir_op *run(machine *m, ir_block *b, int64_t *out);

static inline void run_loop(machine *m, ir_op *o)
{
	int64_t carried[MACHINE_OPERANDS], next[MACHINE_OPERANDS];
	unsigned first = o->kind == IR_FOR ? 3 : 0, n = o->nargs - first;
	for (unsigned i = 0; i < n; i++) carried[i] = arg(m, o, first + i);
	if (o->kind == IR_FOR) {
		int64_t lo = arg(m, o, 0), hi = arg(m, o, 1), step = arg(m, o, 2);
		for (int64_t i = lo; step > 0 ? i < hi : step < 0 && i > hi; i += step) {
			m->value[o->regions[0]->args[0]->id] = i;
			for (unsigned k = 0; k < n; k++) m->value[o->regions[0]->args[1 + k]->id] = carried[k];
			run(m, o->regions[0], next);
			memcpy(carried, next, sizeof carried);
		}
	} else {
		for (;;) {
			for (unsigned k = 0; k < n; k++) m->value[o->regions[0]->args[k]->id] = carried[k];
			run(m, o->regions[0], next);
			memcpy(carried, next + 1, o->nresults * sizeof *carried);
			if (!next[0]) break;
			for (unsigned k = 0; k < o->nresults; k++) m->value[o->regions[1]->args[k]->id] = carried[k];
			run(m, o->regions[1], next);
			memcpy(carried, next, sizeof carried);
		}
	}
	for (unsigned i = 0; i < o->nresults; i++) m->value[o->results[i]->id] = carried[i];
}

static inline ir_op *run(machine *m, ir_block *b, int64_t *out)
{
	for (ir_op *o = b->first; o; o = o->next) {
		assert_true(++m->steps < MACHINE_STEPS);
		int64_t a[MACHINE_OPERANDS];
		assert_true(o->nargs <= MACHINE_OPERANDS);
		for (unsigned i = 0; i < o->nargs; i++) a[i] = arg(m, o, i);
		if (ir_has(o, IR_TERMINATOR)) {
			memcpy(out, a, o->nargs * sizeof *a);
			return o;
		}
		if (o->kind == IR_IF) {
			int64_t results[MACHINE_OPERANDS];
			run(m, o->regions[a[0] ? 0 : 1], results);
			for (unsigned i = 0; i < o->nresults; i++) m->value[o->results[i]->id] = results[i];
		} else if (o->kind == IR_FOR || o->kind == IR_WHILE) {
			run_loop(m, o);
		} else if (o->kind == IR_PRINT) {
			for (unsigned i = 0; i < o->nargs; i++) put_to(m, a[i]);
		} else {
			m->value[o->results[0]->id] = wrap(o->results[0]->type, compute(o, a));
		}
	}
	fail_msg("a block without a terminator");
	return NULL;
}

#endif
