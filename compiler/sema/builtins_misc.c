/* dot, hints to the compiler, and the ways out of the language: assume, debug_barrier, inline assembly. */
#include <string.h>

#include "../ir/inline_asm.h"
#include "builtins_util.h"

/* ---- dot ---- */

/* What dot accepts for an operand, and what the result is when nothing else is asked for. */
static bool dot_types(sema *s, const builtin_call *c, scalar a, scalar b, scalar *result)
{
	bool fp8 = scalar_is_fp8(a) && scalar_is_fp8(b);
	if (a != b && !fp8) {
		diag *d = sema_diag(s, 512, c->at, "the operands of 'dot' have different types: %s and %s",
			scalar_name(a), scalar_name(b));
		diag_add_label(s->diags, d, c->arg_at[0], "%s", scalar_name(a));
		diag_add_label(s->diags, d, c->arg_at[1], "%s", scalar_name(b));
		diag_set_hint(s->diags, d, "cast one of them: only the two kinds of fp8 may mix");
		return false;
	}
	switch (a) {
	case SCALAR_I8: *result = SCALAR_I32; return true;
	case SCALAR_F64: *result = SCALAR_F64; return true;
	case SCALAR_F8E4M3:
	case SCALAR_F8E5M2:
	case SCALAR_F16:
	case SCALAR_BF16:
	case SCALAR_F32: *result = SCALAR_F32; return true;
	default: {
		diag *d = sema_diag(s, 512, c->arg_at[0], "'dot' does not exist for %s", scalar_name(a));
		diag_set_hint(s->diags, d, "operands are f16, bf16, f8e4m3, f8e5m2, i8, f32 or f64");
		return false;
	}
	}
}

static bool dot_shapes(sema *s, const builtin_call *c, ir_type a, ir_type b, ir_type *result)
{
	unsigned r = a.rank;
	const char *problem = NULL;
	if (r != b.rank || (r != 2 && r != 3))
		problem = "both operands have two dimensions, or three with a batch in front";
	else if (r == 3 && a.dim[0] != b.dim[0])
		problem = "the batches differ";
	else if (a.dim[r - 1] != b.dim[r - 2])
		problem = "the columns of the first are the rows of the second";
	if (problem) {
		diag *d = sema_diag(s, 512, c->at, "shapes %s and %s do not multiply: %s", sema_shape_text(s, a),
			sema_shape_text(s, b), problem);
		diag_add_label(s->diags, d, c->arg_at[0], "%s", sema_type_text(s, c->args[0]));
		diag_add_label(s->diags, d, c->arg_at[1], "%s", sema_type_text(s, c->args[1]));
		if (r == 2 && b.rank == 2 && a.dim[1] == b.dim[1])
			diag_set_hint(s->diags, d, "transpose the second: dot(a, trans(b))");
		return false;
	}
	*result = a;
	result->dim[r - 1] = b.dim[r - 1];
	return sema_check_tile(s, *result, c->at);
}

static sval builtin_dot(sema *s, const builtin_call *c)
{
	enum { A, B, ACC, PRECISION, OUT };
	static const char *const precisions[] = {"tf32", "tf32x3", "ieee"};
	ir_value *args[3] = {builtin_tile(s, c, A), builtin_tile(s, c, B)};
	if (!args[0] || !args[1]) return sval_poison(c->at);
	ir_type t;
	scalar elem, natural, a = (scalar)args[0]->type.elem, b = (scalar)args[1]->type.elem;
	if (!dot_types(s, c, a, b, &natural) || !dot_shapes(s, c, args[0]->type, args[1]->type, &t))
		return sval_poison(c->at);
	elem = natural;
	if (!sval_is_none(c->args[OUT]) && !sema_as_scalar_type(s, c->args[OUT], &elem, "the type of the result"))
		return sval_poison(c->at);
	if (elem != natural && !(elem == SCALAR_F16 && natural == SCALAR_F32)) {
		diag *d = sema_diag(
			s, 512, c->arg_at[OUT], "'dot' of %s cannot give %s", scalar_name(a), scalar_name(elem));
		diag_set_hint(s->diags, d, "its results are i32 for i8, f64 for f64, else f32 or f16");
		return sval_poison(c->at);
	}
	t.elem = (uint8_t)elem;
	unsigned n = 2, precision = 0;
	if (!sval_is_none(c->args[ACC]) && !(args[n++] = sema_as_value(s, c->args[ACC], t, "the accumulator")))
		return sval_poison(c->at);
	if (!builtin_choice(s, c, PRECISION, precisions, 3, "'precision'", &precision)) return sval_poison(c->at);
	ir_op *o = ir_build(&s->b, IR_DOT, n, args, 1, &t, 0);
	ir_set_precision(o, precision);
	return sval_value(ir_result(o), c->at);
}

/* ---- hints ---- */

/* The axis analysis works in powers of two: the largest one in n, as far as 16 bits hold it. */
static uint16_t power_of_two_in(int64_t n)
{
	uint64_t p = (uint64_t)n & (0 - (uint64_t)n);
	return p > 1u << 15 ? 1u << 15 : (uint16_t)p;
}

static sval builtin_hint(sema *s, const builtin_call *c)
{
	ir_type t;
	bool known = sval_type_of(c->args[0], &t);
	if (!known || !(t.pointer || scalar_is_integer((scalar)t.elem))) {
		builtin_needs(s, c, 0, "integers or pointers");
		return sval_poison(c->at);
	}
	sval list = c->args[1];
	const sval *items;
	uint32_t n;
	sema_items(&list, &items, &n);
	uint32_t rank = t.rank ? t.rank : 1;
	if (n != 1 && n != rank) {
		sema_error(s, 513, c->arg_at[1], "%u numbers for the %u dimension%s of %s", n, rank,
			rank == 1 ? "" : "s", sema_type_text(s, c->args[0]));
		return sval_poison(c->at);
	}
	uint16_t values[IR_MAX_RANK] = {1, 1, 1, 1};
	for (uint32_t i = 0; i < n; i++) {
		int64_t v;
		if (!sema_as_const_int(s, items[i], &v, "a hint")) return sval_poison(c->at);
		if (v < 1)
			return sema_error(s, 513, items[i].at, "a hint is a positive number, not %lld", (long long)v);
		/* One number for several dimensions speaks of the last, the one that runs along memory. */
		values[n == 1 ? rank - 1 : i] = power_of_two_in(v);
	}
	if (c->args[0].kind == SVAL_NUMBER) return c->args[0];
	ir_value *x = c->args[0].value;
	ir_op *o = ir_build(&s->b, IR_HINT, 1, &x, 1, &x->type, 0);
	ir_set_kind(o, c->builtin->which);
	ir_set_values(o, ir_pack(rank, values));
	return sval_value(ir_result(o), c->at);
}

static sval builtin_assume(sema *s, const builtin_call *c)
{
	ir_type t;
	if (!sval_type_of(c->args[0], &t) || t.pointer || t.rank || t.elem != SCALAR_BOOL) {
		diag *d = builtin_needs(s, c, 0, "a bool scalar");
		if (sval_type_of(c->args[0], &t) && t.rank) diag_set_hint(s->diags, d, "all(c) makes one bool of it");
		return sval_poison(c->at);
	}
	if (c->args[0].kind == SVAL_NUMBER) {
		if (c->args[0].number.i) return sval_void(c->at);
		return sema_error(s, 513, c->arg_at[0], "this assumption is false");
	}
	ir_build(&s->b, IR_ASSUME, 1, &c->args[0].value, 0, NULL, 0);
	return sval_void(c->at);
}

static sval builtin_debug_barrier(sema *s, const builtin_call *c)
{
	ir_build(&s->b, IR_DEBUG_BARRIER, 0, NULL, 0, NULL, 0);
	return sval_void(c->at);
}

/* ---- inline assembly ---- */

/* The arguments, broadcast to one shape, as numbers. */
static bool asm_arguments(sema *s, const builtin_call *c, const sval *items, unsigned n, ir_value **args)
{
	for (unsigned i = 0; i < n; i++) {
		ir_value *x, *y;
		if (!(args[i] = sema_value(s, items[i], "an argument"))) return false;
		if (args[i]->type.pointer) {
			diag *d = sema_diag(s, 514, items[i].at, "inline assembly works on numbers, not on %s",
				ir_type_name(s->arena, args[i]->type));
			diag_set_hint(s->diags, d, "an address is a number too: p.to(u64)");
			return false;
		}
		if (i == 0) continue;
		if (!sema_broadcast_pair(
			    s, sval_value(args[0], items[0].at), sval_value(args[i], items[i].at), c->at, &x, &y))
			return false;
		args[0] = x;
		args[i] = y;
	}
	for (unsigned i = 1; i < n; i++) args[i] = sema_broadcast_to(s, args[i], args[0]->type, items[i].at);
	return true;
}

static sval builtin_inline_asm(sema *s, const builtin_call *c)
{
	enum { TEXT, CONSTRAINTS, ARGUMENTS, RESULT, PACK, MAX = 16 };
	const char *code, *constraints;
	uint32_t ncode, nconstraints, nargs, nresults;
	int64_t pack = 1;
	if (!sema_as_string(s, c->args[TEXT], &code, &ncode, "the instruction") ||
		!sema_as_string(s, c->args[CONSTRAINTS], &constraints, &nconstraints, "the constraints"))
		return sval_poison(c->at);
	if (memchr(constraints, '\n', nconstraints) || memchr(constraints, 0, nconstraints))
		return sema_error(s, 514, c->arg_at[CONSTRAINTS], "constraints stand in one line");
	if (memchr(code, 0, ncode)) return sema_error(s, 514, c->arg_at[TEXT], "an instruction holds no NUL");
	if (!sval_is_none(c->args[PACK]) && !sema_as_const_int(s, c->args[PACK], &pack, "pack"))
		return sval_poison(c->at);
	if (pack < 1 || pack > 16 || (pack & (pack - 1)))
		return sema_error(
			s, 514, c->arg_at[PACK], "pack is a power of two from 1 to 16, not %lld", (long long)pack);
	sval list = c->args[ARGUMENTS], types = c->args[RESULT];
	const sval *items, *result_items;
	sema_items(&list, &items, &nargs);
	sema_items(&types, &result_items, &nresults);
	if (nargs > MAX || nresults == 0 || nresults > MAX)
		return sema_error(
			s, 514, c->at, "inline assembly has up to %d arguments and 1 to %d results", MAX, MAX);
	ir_value *args[MAX];
	ir_type results[MAX], types_in[MAX];
	if (!asm_arguments(s, c, items, nargs, args)) return sval_poison(c->at);
	for (uint32_t i = 0; i < nargs; i++) types_in[i] = args[i]->type;
	for (uint32_t i = 0; i < nresults; i++) {
		scalar elem;
		if (!sema_as_scalar_type(s, result_items[i], &elem, "the type of a result")) return sval_poison(c->at);
		results[i] = nargs ? ir_with_elem(args[0]->type, elem) : ir_scalar_type(elem);
	}
	const char *both = arena_printf(s->arena, "%.*s\n%.*s", (int)nconstraints, constraints, (int)ncode, code);
	text why = {.arena = s->arena};
	ir_asm parsed;
	ir_asm_fault fault = ir_asm_parse(both, (unsigned)pack, nresults, results, nargs, types_in, &parsed, &why);
	if (fault) return sema_error(s, 514, c->arg_at[fault == IR_ASM_CODE ? TEXT : CONSTRAINTS], "%s", why.at);
	ir_op *o = ir_build(&s->b, IR_INLINE_ASM, nargs, args, nresults, results, 0);
	ir_set_pack(o, pack);
	o->text = both;
	sval out[MAX];
	for (uint32_t i = 0; i < nresults; i++) out[i] = sval_value(o->results[i], c->at);
	return types.kind == SVAL_TUPLE ? sval_tuple(s, out, nresults, c->at) : out[0];
}

const builtin sema_misc_builtins[] = {
	{"dot", "a b acc? precision? out?", 0, builtin_dot, 0},
	{"multiple_of", "x n", 0, builtin_hint, IR_MULTIPLE_OF},
	{"max_contiguous", "x n", 0, builtin_hint, IR_MAX_CONTIGUOUS},
	{"max_constancy", "x n", 0, builtin_hint, IR_MAX_CONSTANCY},
	{"assume", "c", 0, builtin_assume, 0},
	{"debug_barrier", "", 0, builtin_debug_barrier, 0},
	{"inline_asm", "text constraints args T pack?", 0, builtin_inline_asm, 0},
	{0},
};
