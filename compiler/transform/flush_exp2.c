/* Exponentials of which nobody sees whether the smallest are 0.
 *
 * In: the tile level, of a GPU.  Out: exp2 with flush=1, for which a result below 2^-126 may be 0, where its value goes
 * only through products and selections into sums (along an axis, round a loop, or with a number), products of matrices,
 * f16 and 8 bits, which hold nothing as small; exp of f32 there, but for elementwise additions, is such an exp2 of one
 * product.
 *     %e = exp %x                                   %y = mul %x, 1.442695
 *     %s = reduce %e {sum}                  ->      %e = exp2 %y {flush=1}
 *     %h = convert %e : f16                         ..
 * The one idea: what is lost is less than 2^-126 times the factors, and the instruction that keeps denormals is four.
 * An error of exp in front of 1 + exp(x) would be that of the sum, so a sum of two does not allow the one product:
 * among many, a term's relative error of |x| 2^-24 is less where the term is less.
 * A value is followed round loops: what is carried is the same value. */
#include "passes/passes.h"

#include <math.h>

enum { MOST_STEPS = 256 };
#define FLUSHED "an exponential below 2^-126 is 0"
#define ONE_PRODUCT "an exponential is exp2 of one product, and 0 below 2^-126"

typedef struct follower {
	pass_context *pass;
	ir_func *func;
	uint32_t *seen; /* by value: in which search */
	uint32_t search, steps, nvalues;
	bool pairs; /* elementwise sums will do */
} follower;

static bool unseen(follower *f, const ir_value *v);

/* A sum that hides what is next to nothing: of a number, or one that a loop adds up. */
static bool hides(const ir_op *o, const ir_value *addend)
{
	uint64_t bits;
	if (ir_is_const(addend, &bits)) return fabs(scalar_to_double(addend->type.elem, bits)) >= 1e-30;
	for (const ir_use *u = o->results[0]->uses; u; u = u->next)
		if (u->user->kind == IR_YIELD) return true;
	return false;
}

static bool unseen_by(follower *f, const ir_op *o, const ir_value *v)
{
	unsigned i = 0;
	while (ir_arg(o, i) != v) i++;
	switch (o->kind) {
	case IR_ADD:
	case IR_SUB:
	case IR_FMA: {
		const ir_value *addend = ir_arg(o, o->kind == IR_FMA ? 2 : 1 - i);
		return f->pairs && ((addend != v && hides(o, addend)) || unseen(f, o->results[0]));
	}
	case IR_DOT: return true;
	case IR_REDUCE: return o->nargs == 1 && ir_get_combine(o) == IR_SUM;
	case IR_CONVERT: {
		scalar s = o->results[0]->type.elem;
		if (s == SCALAR_BF16) return unseen(f, o->results[0]); /* it has denormals as small */
		return s == SCALAR_F16 || scalar_is_fp8(s);
	}
	case IR_MUL:
	case IR_NEG: return unseen(f, o->results[0]);
	case IR_DIV: return ir_arg(o, 1) != v && unseen(f, o->results[0]);
	case IR_SELECT: return unseen(f, o->results[0]);
	case IR_YIELD: {
		const ir_op *loop = o->block->parent;
		if (!loop || loop->kind != IR_FOR) return false;
		for (; i < o->nargs; i++)
			if (ir_arg(o, i) == v && !(unseen(f, o->block->args[1 + i]) && unseen(f, loop->results[i])))
				return false;
		return true;
	}
	default: return ir_has(o, IR_SHAPE) && unseen(f, o->results[0]);
	}
}

static bool unseen(follower *f, const ir_value *v)
{
	if (v->id >= f->nvalues || !f->steps) return false;
	if (f->seen[v->id] == f->search) return true;
	f->seen[v->id] = f->search;
	f->steps--;
	for (const ir_use *u = v->uses; u; u = u->next)
		if (!unseen_by(f, u->user, v)) return false;
	return true;
}

static bool search(follower *f, const ir_value *v, bool pairs)
{
	f->search++;
	f->steps = MOST_STEPS;
	f->pairs = pairs;
	return unseen(f, v);
}

static void note(follower *f, span at, const char *what)
{
	vec_push(f->pass->arena, &f->pass->liberties, ((pass_remark){at, what}));
}

static void visit(ir_op *o, void *context)
{
	follower *f = context;
	if (o->kind != IR_EXP2 && o->kind != IR_EXP) return;
	ir_value *v = o->results[0];
	scalar s = v->type.elem;
	if (o->kind == IR_EXP2) {
		if (ir_get_flush(o) || s == SCALAR_F64 || !(s == SCALAR_F16 || search(f, v, true))) return;
		ir_set_flush(o, true);
		if (s != SCALAR_F16) note(f, o->at, FLUSHED);
		return;
	}
	if (s != SCALAR_F32 || !search(f, v, false)) return;
	ir_builder b = {.func = f->func, .block = o->block, .before = o, .at = o->at};
	ir_value *log2e = ir_constant(&b, v->type, scalar_from_double(SCALAR_F32, 1.4426950408889634));
	ir_value *e = ir_unary(&b, IR_EXP2, ir_binary(&b, IR_MUL, ir_arg(o, 0), log2e));
	ir_set_flush(e->def, true);
	note(f, o->at, ONE_PRODUCT);
	ir_replace(v, e);
	ir_erase(o);
}

bool pass_flush_exp2(pass_context *p, ir_func *f)
{
	follower context = {
		.pass = p, .func = f, .seen = ARENA_ARRAY(p->arena, uint32_t, f->nvalues), .nvalues = f->nvalues};
	if (!f->strict) ir_walk(f->body, visit, &context);
	return true;
}
