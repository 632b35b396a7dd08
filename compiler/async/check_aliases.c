/* Run-time checks of whether an access overlaps an array of which bulk_store stores blocks.
 *
 * In: a mapped function.  Out: loads, stores and atomics of memory that changes, of which nobody knows whether it is
 * that of an array of which blocks are stored (by bulk_store), have `checked` set:
 *
 *     for t {                                   for t {
 *       ..                                        %overlap = lse's bytes overlap those of array o
 *       store lse ..                              if %overlap { bulk_wait; cta_barrier }
 *       bulk_store o ..             ->            store lse .. {checked=1}
 *     }                                           if %overlap { proxy_fence all; cta_barrier }
 *                                                 bulk_store o ..
 *                                               }
 *
 * The one idea: buffers of a kernel's arguments may overlap, and almost never do.  A bulk copy runs beside the threads,
 * through the async proxy.  If an access may alias it, three things have to be between the two, and take as long as a
 * block of attention's loop: the copy's end, a barrier of all threads, and each thread's fence of what it has written.
 * With the check they happen only where the bytes overlap.  An address is a sum of scalars and of places in the tile
 * (affine.h), so the lowest byte and the highest are two scalars that every thread knows, and so are the array's (i32
 * arithmetic is taken not to wrap around, as in affine.h).
 *
 * Only accesses whose loop, if they are in one, holds the stores of blocks too: not those of inner loops, which run
 * often.  All accesses of a function get checks or none does, since one that has none takes the fence anyway.  Stores
 * of blocks of several arrays are kept in order the same way, each where it stands; one by thread 0 has a barrier
 * inside, in front of its copies, and needs no other one. */
#include "analysis/affine.h"
#include "analysis/alias.h"
#include "ir/tensor_map.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ACCESSES = 4, MOST_STORES = 4, MOST_DEPTH = 16 };

typedef struct bytes { /* [low, high), i64 */
	ir_value *low, *high;
} bytes;

typedef struct checker {
	pass_context *context;
	ir_func *func;
	ir_op *accesses[MOST_ACCESSES], *stores[MOST_STORES];
	affine sums[MOST_ACCESSES]; /* of their addresses */
	unsigned naccesses, nstores;
	bool many_accesses, many_stores; /* more than that */
} checker;

/* ---- which ---- */

static bool is_relaxed(const ir_op *o)
{
	return !ir_is_atomic(o) || ir_get_sem(o) == IR_RELAXED;
}

/* A parameter to a number that a relaxed atomic changes and returns: no other parameter leads there
 * (docs/language.md). */
static bool has_own_buffer(const ir_value *pointer)
{
	if (pointer->def || !ir_is_scalar(pointer)) return false;
	for (const ir_use *u = pointer->uses; u; u = u->next)
		if (ir_is_atomic(u->user) && u->user->args[0] == u && is_relaxed(u->user) && u->user->results[0]->uses)
			return true;
	return false;
}

static void find(ir_op *o, void *context)
{
	checker *c = context;
	bool store = o->kind == IR_BULK_STORE;
	if (!store && (!ir_accesses(o) || ir_arg(o, ir_pointer_at(o))->type.pointer != IR_POINTER)) return;
	if (!store && is_relaxed(o) && has_own_buffer(ir_arg(o, ir_pointer_at(o)))) {
		ir_set_checked(o, true);
		return;
	}
	if (store && c->nstores == MOST_STORES)
		c->many_stores = true;
	else if (store)
		c->stores[c->nstores++] = o;
	else if (c->naccesses == MOST_ACCESSES)
		c->many_accesses = true;
	else
		c->accesses[c->naccesses++] = o;
}

/* The value is there in front of the operation. */
static bool is_there(const ir_value *v, ir_op *o)
{
	ir_op *here = ir_in_block(v->def ? v->def->block : v->block, o);
	return here && (!v->def || (v->def != here && ir_precedes(v->def, here)));
}

static const ir_tensor_map *map_of(const ir_op *store)
{
	return ir_arg(store, 0)->def->map;
}

static const ir_value *array_of(const ir_op *store)
{
	return ir_arg(ir_arg(store, 0)->def, 0);
}

/* In program order, or in an earlier iteration of a loop around both. */
static bool may_come_before(ir_op *a, ir_op *b)
{
	for (const ir_op *loop = ir_loop_around(b); loop; loop = ir_loop_around(loop))
		if (ir_encloses(loop, a)) return true;
	for (const ir_block *k = b->block; k; k = k->parent ? k->parent->block : NULL) {
		ir_op *x = ir_in_block(k, a);
		if (x) return x == ir_in_block(k, b) || ir_precedes(x, ir_in_block(k, b));
	}
	return false;
}

/* The access has a sum for its address, of another buffer than those of the blocks, and orders nothing else. */
static bool fits(checker *c, unsigned i)
{
	ir_op *o = c->accesses[i], *loop = ir_loop_around(o);
	affine_context context = {.pass = c->context, .func = c->func};
	affine *s = &c->sums[i];
	if (c->func->row_groups > 1)
		return false; /* groups would come to different answers, and all meet at a barrier */
	if (!affine_of(&context, ir_arg(o, ir_pointer_at(o)), s) || !s->root || !is_there(s->root, o)) return false;
	if (s->narrow) return false;
	for (unsigned k = 0; k < s->n; k++)
		for (unsigned a = 0; a < s->term[k].natoms; a++)
			if (!is_there(s->term[k].atom[a], o)) return false;
	for (unsigned k = 0; k < c->nstores; k++) {
		if (loop && !ir_encloses(loop, c->stores[k])) return false;
		if (array_of(c->stores[k]) == s->root) return false;
	}
	return is_relaxed(o);
}

/* ---- bytes ---- */

static ir_value *number(ir_builder *b, int64_t n)
{
	return ir_constant_int(b, SCALAR_I64, n);
}

static ir_value *in_i64(ir_builder *b, ir_value *v)
{
	if (v->type.elem == SCALAR_I64 && !v->type.pointer) return v;
	return ir_build1(b, v->type.pointer ? IR_BITCAST : IR_CONVERT, ir_scalar_type(SCALAR_I64), 1, &v);
}

static bool sign_of(const char *word, ir_kind *kind)
{
	static const struct {
		const char *word;
		ir_kind kind;
	} signs[] = {{"+", IR_ADD}, {"-", IR_SUB}, {"*", IR_MUL}, {"/", IR_DIV}, {"%", IR_REM}, {"min", IR_MIN},
		{"max", IR_MAX}, {"&", IR_AND}, {"<<", IR_SHL}, {">>", IR_SHR}};
	for (unsigned i = 0; i < sizeof signs / sizeof *signs; i++)
		if (strcmp(word, signs[i].word) == 0) {
			*kind = signs[i].kind;
			return true;
		}
	return false;
}

/* The next word of a postfix expression: a sign, a parameter's number, or a number; false: there is none. */
typedef struct word {
	bool is_sign, is_parameter;
	ir_kind sign;
	int64_t number;
} word;

static bool next_word(const char **postfix, word *w)
{
	char next[32], *end;
	int taken;
	if (sscanf(*postfix, " %31s%n", next, &taken) != 1) return false;
	*postfix += taken;
	*w = (word){.is_sign = sign_of(next, &w->sign), .is_parameter = next[0] == 'p', .sign = w->sign};
	w->number = strtoll(next + w->is_parameter, &end, 10);
	return w->is_sign || (*end == 0 && end != next + w->is_parameter);
}

/* What the host makes a map of, as the device computes it. */
static ir_value *expression(const checker *c, ir_builder *b, const char *postfix)
{
	ir_value *stack[MOST_DEPTH];
	unsigned n = 0;
	for (word w; next_word(&postfix, &w);) {
		if (w.is_sign) {
			assert(n >= 2);
			n--;
			stack[n - 1] = ir_binary(b, w.sign, stack[n - 1], stack[n]);
		} else
			stack[n++] = w.is_parameter ? in_i64(b, c->func->body->args[w.number]) : number(b, w.number);
	}
	assert(n == 1);
	return stack[0];
}

/* All of its words are known, and the stack holds them. */
static bool is_short(const char *postfix)
{
	unsigned n = 0;
	word w;
	while (next_word(&postfix, &w)) {
		n += w.is_sign ? -1u : 1u;
		if (n == 0 || n >= MOST_DEPTH) return false;
	}
	return n == 1 && postfix[strspn(postfix, " ")] == 0;
}

static bool is_for_device(const ir_tensor_map *m)
{
	bool fits = is_short(m->address);
	for (unsigned d = 0; d < m->rank; d++)
		fits = fits && is_short(m->extent[d]) && (!d || is_short(m->stride[d - 1]));
	return fits;
}

/* From the array's first element to its last one.  Made anew where they are asked for: parameters are near, and
 * registers are not to be had in between. */
static bytes array_bytes(const checker *c, ir_builder *b, const ir_op *store)
{
	const ir_tensor_map *m = map_of(store);
	ir_value *far = number(b, 1), *low = expression(c, b, m->address);
	for (unsigned d = 0; d < m->rank; d++) {
		ir_value *one = number(b, 1), *extent = expression(c, b, m->extent[d]);
		ir_value *steps = ir_binary(b, IR_SUB, extent, one);
		if (d) steps = ir_binary(b, IR_MUL, steps, expression(c, b, m->stride[d - 1]));
		far = ir_binary(b, IR_ADD, far, steps);
	}
	far = ir_binary(b, IR_MUL, far, number(b, scalar_bytes(m->elem)));
	return (bytes){low, ir_binary(b, IR_ADD, low, far)};
}

/* A term along the tile goes from 0 to this, or from this to 0. */
static ir_value *extreme(ir_builder *b, const affine_term *t, uint32_t extent)
{
	affine end = {.n = 1, .term = {*t}};
	end.term[0].place = -1;
	end.term[0].factor = t->factor * (extent - 1);
	return affine_build(b, &end, SCALAR_I64);
}

static bytes access_bytes(ir_builder *b, const ir_op *o, const affine *s)
{
	ir_type t = ir_arg(o, ir_pointer_at(o))->type;
	affine start = {0};
	ir_value *zero = number(b, 0), *size = number(b, scalar_bytes(t.elem)), *low = NULL, *high = NULL;
	for (unsigned i = 0; i < s->n; i++)
		if (s->term[i].place < 0) affine_add_term(&start, &s->term[i], 1);
	low = high = affine_build(b, &start, SCALAR_I64);
	for (unsigned i = 0; i < s->n; i++) {
		if (s->term[i].place < 0) continue;
		ir_value *end = extreme(b, &s->term[i], t.dim[s->term[i].place]);
		low = ir_binary(b, IR_ADD, low, ir_binary(b, IR_MIN, end, zero));
		high = ir_binary(b, IR_ADD, high, ir_binary(b, IR_MAX, end, zero));
	}
	ir_value *base = in_i64(b, s->root);
	low = ir_binary(b, IR_ADD, base, ir_binary(b, IR_MUL, low, size));
	high = ir_binary(b, IR_ADD, base, ir_binary(b, IR_MUL, high, size));
	return (bytes){low, ir_binary(b, IR_ADD, high, size)};
}

/* ---- checks ---- */

static ir_value *overlap(ir_builder *b, bytes x, bytes y)
{
	ir_value *begins = ir_binary(b, IR_LT, x.low, y.high);
	ir_value *ends = ir_binary(b, IR_LT, y.low, x.high);
	return ir_binary(b, IR_AND, begins, ends);
}

static ir_value *either(ir_builder *b, ir_value *any, ir_value *one)
{
	return any ? ir_binary(b, IR_OR, any, one) : one;
}

/* The access overlaps an array of which blocks are stored. */
static ir_value *access_overlaps(const checker *c, ir_builder *b, unsigned access)
{
	bytes mine = access_bytes(b, c->accesses[access], &c->sums[access]);
	ir_value *any = NULL;
	for (unsigned i = 0; i < c->nstores; i++)
		any = either(b, any, overlap(b, mine, array_bytes(c, b, c->stores[i])));
	return any;
}

/* Blocks of another array, which overlaps the one of this store, were stored before; null: there are none. */
static ir_value *store_overlaps(const checker *c, ir_builder *b, ir_op *store)
{
	ir_value *any = NULL;
	for (unsigned i = 0; i < c->nstores; i++) {
		if (ir_tensor_map_same_array(map_of(c->stores[i]), map_of(store))) continue;
		if (!may_come_before(c->stores[i], store)) continue;
		bytes mine = array_bytes(c, b, store), other = array_bytes(c, b, c->stores[i]);
		any = either(b, any, overlap(b, mine, other));
	}
	return any;
}

/* if condition { `kind`; cta_barrier }; `meets`: what follows has a barrier of its own. */
static void order(ir_builder *b, ir_value *condition, ir_kind kind, bool meets)
{
	ir_op *check = ir_build(b, IR_IF, 1, &condition, 0, NULL, 2);
	ir_builder inside = {.func = b->func, .block = check->regions[0], .at = b->at};
	ir_op *first = ir_build(&inside, kind, 0, NULL, 0, NULL, 0);
	if (kind == IR_PROXY_FENCE) ir_set_proxy(first, IR_PROXY_ALL);
	if (!meets) ir_build(&inside, IR_CTA_BARRIER, 0, NULL, 0, NULL, 0);
	ir_yield(&inside, 0, NULL);
	inside.block = check->regions[1];
	ir_yield(&inside, 0, NULL);
}

static void check_access(checker *c, unsigned access)
{
	ir_op *o = c->accesses[access];
	ir_builder before = {.func = c->func, .block = o->block, .before = o, .at = o->at};
	ir_builder behind = {.func = c->func, .block = o->block, .before = o->next, .at = o->at};
	ir_value *overlaps = access_overlaps(c, &before, access);
	bool follows = false, precedes = false;
	for (unsigned i = 0; i < c->nstores; i++) {
		follows |= may_come_before(c->stores[i], o);
		precedes |= may_come_before(o, c->stores[i]);
	}
	if (follows) order(&before, overlaps, IR_BULK_WAIT, false);
	if (precedes) order(&behind, overlaps, IR_PROXY_FENCE, false);
	ir_set_checked(o, true);
}

static void check_store(const checker *c, ir_op *o)
{
	ir_builder before = {.func = c->func, .block = o->block, .before = o, .at = o->at};
	ir_value *overlaps = store_overlaps(c, &before, o);
	if (overlaps) order(&before, overlaps, IR_BULK_WAIT, !ir_get_by_warps(o));
	ir_set_checked(o, true);
}

static bool several_arrays(const checker *c)
{
	for (unsigned i = 1; i < c->nstores; i++)
		if (!ir_tensor_map_same_array(map_of(c->stores[i]), map_of(c->stores[0]))) return true;
	return false;
}

static bool all_fit(checker *c)
{
	for (unsigned i = 0; i < c->naccesses; i++)
		if (!fits(c, i)) return false;
	return c->naccesses > 0;
}

static ir_block *of_consumers(ir_func *f)
{
	for (ir_op *o = f->body->first; o; o = o->next)
		if (o->kind == IR_PARTITIONS) return o->regions[0];
	return f->body;
}

bool pass_check_aliases(pass_context *context, ir_func *f)
{
	checker *c = ARENA_NEW(context->arena, checker);
	*c = (checker){.context = context, .func = f};
	ir_block *b = of_consumers(f);
	ir_walk(b, find, c);
	bool accesses = !c->many_accesses && all_fit(c);
	if (c->many_stores || !c->nstores || (c->nstores == 1 && !accesses)) return true;
	for (unsigned i = 0; i < c->nstores; i++)
		if (!is_for_device(map_of(c->stores[i]))) return true;
	for (unsigned i = 0; several_arrays(c) && i < c->nstores; i++) check_store(c, c->stores[i]);
	for (unsigned i = 0; accesses && i < c->naccesses; i++) check_access(c, i);
	return true;
}
