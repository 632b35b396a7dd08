/* Programs of a cluster that bring blocks to each other.
 *
 * In: a loop whose loads go by a channel, of a function with num_ctas > 1.  Out: for each load either why every program
 * brings it for itself, or two questions that the code asks before the loop, once:
 *   - in_step: is there a cluster, and do all its programs run the same iterations?
 *   - the set: which of them, in every iteration, load the same block?
 * The one idea: a program computes its neighbours' answers itself.  A cluster is num_ctas neighbours along x, so
 * neighbour d has program number program_id(0) ^ d; what differs between them is arithmetic of that number, cloned with
 * the other one in its place, and compared.  So all programs of a cluster come to the same answers without having
 * asked each other, and nothing has to wait.
 *
 *     t = program_id(0)                         t' = t ^ 1
 *     j = t / m * 256                  ->       j' = t' / m * 256;  set = j == j' && in_step ? 0b11 : 0b01
 *
 * The set has bit d for neighbour d, bit 0 for the program itself.  Its members must hold the same set, or one waits
 * for a part that nobody sends.  So sets are of numbers that differ in adjacent bits (of four: all; {0, 1} and {2, 3};
 * {0, 2} and {1, 3}), and either all of the cluster's are of one kind, or they are aligned and nested: set_of.  Four
 * programs of two rows of tiles and two columns share both operands:
 *
 *     tiles    0 2     a: 0b0101, 0 with 2 and 1 with 3
 *              1 3     b: 0b0011, 0 with 1 and 2 with 3
 *
 * What a loop around counts is another number of the neighbour's too: it began elsewhere and made the same steps.
 * Divisions take a program longer than all else in front of its first copy, so none is made again whose divisor is a
 * multiple of a power of two above d: t / (8 n) is t' / (8 n), and t' % (8 n) is (t % (8 n)) ^ d.
 *
 * Programs in step wait for each other's slots, so none may wait for another in any other way: no `while` in the
 * function.  And all of them come by: only loops and branches that are the same for all stand around.  What another
 * program releases comes to be known here a little later, which only a producer warp has the time to wait for. */
#include "analysis/int_range.h"
#include "bulk.h"
#include "channel.h"

#include <assert.h>

typedef enum sameness { UNSEEN, SAME, DIFFERS, UNKNOWN } sameness; /* in the programs of a cluster; the worst last */

typedef struct neighbours {
	const channels *c;
	const site *s;
	sameness *of; /* by value id */
} neighbours;

static sameness same_value(neighbours *n, const ir_value *v);

static sameness worst(sameness a, sameness b)
{
	return a > b ? a : b;
}

static sameness same_operands(neighbours *n, const ir_op *o)
{
	sameness s = SAME;
	for (unsigned i = 0; i < o->nargs; i++) s = worst(s, same_value(n, ir_arg(o, i)));
	return s;
}

/* The counter of a loop around: where it began, and as many steps as the neighbours have made. */
static sameness same_argument(neighbours *n, const ir_value *v)
{
	assert(!v->def);
	const ir_op *o = v->block->parent;
	if (!o) return SAME; /* a parameter */
	if (o->kind != IR_FOR || v->index > 0 || same_value(n, ir_arg(o, 2)) != SAME) return UNKNOWN;
	return same_value(n, ir_arg(o, 0));
}

static sameness same_result(neighbours *n, const ir_op *o)
{
	assert(o->nresults);
	if (o->kind == IR_PROGRAM_ID) return ir_get_axis(o) == 0 ? DIFFERS : SAME;
	if (o->nresults != 1 || !ir_is_repeatable(o)) return UNKNOWN;
	return same_operands(n, o);
}

static sameness same_value(neighbours *n, const ir_value *v)
{
	assert(v->id < n->c->func->nvalues);
	if (n->of[v->id]) return n->of[v->id];
	sameness s = !ir_is_scalar(v) ? UNKNOWN : v->def ? same_result(n, v->def) : same_argument(n, v);
	return n->of[v->id] = s;
}

/* ---- what a loop's iteration is made of ---- */

typedef struct leaves {
	const channels *c;
	const ir_op *loop;
	bool *seen; /* by value id */
	VEC(ir_value *) all;
} leaves;

/* The values from outside of the loop, which has been found to be the loop's own business otherwise. */
static void find_leaves(leaves *l, ir_value *v)
{
	ir_value *from[IR_SOURCES];
	if (l->seen[v->id]) return;
	l->seen[v->id] = true;
	if (ir_defined_outside(v, l->loop)) {
		vec_push(l->c->context->arena, &l->all, v);
		return;
	}
	unsigned n = v->def ? 0 : ir_sources(v, from);
	for (unsigned i = 0; i < n; i++) find_leaves(l, from[i]);
	for (unsigned i = 0; v->def && i < v->def->nargs; i++) find_leaves(l, ir_arg(v->def, i));
}

static leaves leaves_of(const neighbours *n, const ir_op *load)
{
	assert(load->kind == IR_BULK_LOAD);
	const channels *c = n->c;
	leaves l = {.c = c, .loop = n->s->loop, .seen = ARENA_ARRAY(c->context->arena, bool, c->func->nvalues)};
	for (unsigned i = 1; i < load->nargs; i++) find_leaves(&l, ir_arg(load, i));
	return l;
}

/* ---- whether there is something to ask ---- */

static void find_waiting(ir_op *o, void *context)
{
	bool *found = context;
	*found |= o->kind == IR_WHILE;
}

static bool is_outside(const site *s, const ir_value *v)
{
	for (const ir_op *o = s->loop; o; o = o->block->parent)
		if (!ir_defined_outside(v, o)) return false;
	return true;
}

/* A number of iterations: the same always, or known before all loops, so that it can be asked for there. */
static bool can_ask(neighbours *n, const ir_value *v)
{
	sameness s = same_value(n, v);
	return s == SAME || (s == DIFFERS && is_outside(n->s, v));
}

static const char *around(neighbours *n)
{
	for (const ir_op *o = n->s->loop->block->parent; o; o = o->block->parent) {
		if (o->kind == IR_IF) {
			if (same_value(n, ir_arg(o, 0)) != SAME)
				return "it depends on the program whether the loop runs";
			continue;
		}
		if (o->kind != IR_FOR || ir_arg(o, 0)->type.elem != SCALAR_I32)
			return "the loop around does not count in i32";
		for (unsigned i = 0; i < 3; i++)
			if (!can_ask(n, ir_arg(o, i)))
				return "iterations of the loop around depend on more than arithmetic";
	}
	return NULL;
}

static const char *loop_unshared(neighbours *n)
{
	const ir_func *f = n->c->func;
	bool waits = false;
	if (f->num_ctas > BULK_SHARES) return "clusters have 8 programs at most";
	ir_walk(f->body, find_waiting, &waits);
	if (waits) return "a `while` may wait for other programs";
	for (unsigned i = 0; i < 2; i++)
		if (!can_ask(n, ir_arg(n->s->loop, i)))
			return "the loop's iterations depend on more than arithmetic, or on a loop around";
	return around(n);
}

static const char *load_unshared(neighbours *n, const staged *s)
{
	assert(s->load->kind == IR_BULK_LOAD);
	if (!s->nby || s->by[0].op->kind != IR_WGMMA) return "threads read it from shared memory themselves";
	if (ir_get_shares(s->load) < 2) return "the block has no such parts";
	leaves l = leaves_of(n, s->load);
	for (uint32_t i = 0; i < l.all.n; i++)
		if (same_value(n, l.all.at[i]) == UNKNOWN) return "where it lies depends on more than arithmetic";
	return NULL;
}

static neighbours neighbours_of(const channels *c, const site *s)
{
	return (neighbours){c, s, ARENA_ARRAY(c->context->arena, sameness, c->func->nvalues)};
}

void multicast_find(const channels *c, site *s)
{
	assert(c->func->num_ctas && s->loop);
	if (c->func->num_ctas == 1) return;
	neighbours n = neighbours_of(c, s);
	const char *why = loop_unshared(&n);
	bool shared = false;
	for (unsigned i = 0; i < s->of->nloads; i++) {
		staged *l = &s->loads[i];
		l->unshared = why ? why : load_unshared(&n, l);
		shared |= !l->unshared;
	}
	if (shared) c->func->cluster = s->of->cluster = c->func->num_ctas;
}

/* ---- asking ---- */

typedef struct asking {
	neighbours n;
	ir_builder *b;
	unsigned d;       /* the d-th neighbour, */
	ir_value *number; /* and d where it may be asked, else 0 */
	ir_value **map;   /* by value id: its value of what differs */
} asking;

static ir_value *other(asking *a, ir_value *v);

/* All bits in which the neighbour's number is another one lie below what divides the value. */
static bool is_multiple(const asking *a, const ir_value *v)
{
	return axis_divisor(a->n.c->context, v) > a->d;
}

/* The neighbour's value is this one with the bits of the number flipped, as that of program_id(0) is. */
static bool is_flipped(asking *a, ir_value *v)
{
	if (same_value(&a->n, v) == SAME) return false;
	const ir_op *o = other(a, v)->def;
	return o && o->kind == IR_XOR && ir_arg(o, 0) == v && ir_arg(o, 1) == a->number;
}

/* Steps of such multiples leave those bits alone; a grid is one, where there is a cluster. */
static ir_value *other_counter(asking *a, ir_value *v)
{
	assert(v->index == 0 && v->block->parent->kind == IR_FOR);
	ir_value *start = ir_arg(v->block->parent, 0), *step = ir_arg(v->block->parent, 2);
	bool grid = step->def && step->def->kind == IR_NUM_PROGRAMS && ir_get_axis(step->def) == 0;
	if (is_flipped(a, start) && (grid || is_multiple(a, step))) return ir_binary(a->b, IR_XOR, v, a->number);
	ir_value *gone = ir_binary(a->b, IR_SUB, v, start);
	return ir_binary(a->b, IR_ADD, other(a, start), gone);
}

/* Numbers that differ below what divides the divisor have one quotient, and remainders that differ as they do. */
static ir_value *other_quotient(asking *a, ir_value *v)
{
	const ir_op *o = v->def;
	if (o->kind != IR_DIV && o->kind != IR_REM) return NULL;
	ir_value *x = ir_arg(o, 0), *by = ir_arg(o, 1);
	if (!is_flipped(a, x) || same_value(&a->n, by) != SAME || !is_multiple(a, by)) return NULL;
	if (int_range_of(x).low < 0) return NULL;
	return o->kind == IR_DIV ? v : ir_binary(a->b, IR_XOR, v, a->number);
}

/* What the value is in the neighbour. */
static ir_value *other(asking *a, ir_value *v)
{
	if (same_value(&a->n, v) == SAME) return v;
	assert(a->n.of[v->id] == DIFFERS);
	if (a->map[v->id]) return a->map[v->id];
	ir_value *result = v->def ? other_quotient(a, v) : other_counter(a, v);
	if (result) return a->map[v->id] = result;
	if (v->def->kind == IR_PROGRAM_ID)
		result = ir_binary(a->b, IR_XOR, v, a->number);
	else {
		bool differs = false;
		for (unsigned i = 0; i < v->def->nargs; i++)
			differs |= other(a, ir_arg(v->def, i)) != ir_arg(v->def, i);
		result = differs ? ir_clone(a->b, v->def, a->map)->results[0] : v;
	}
	return a->map[v->id] = result;
}

static ir_value *both(ir_builder *b, ir_value *x, ir_value *y)
{
	return x ? ir_binary(b, IR_AND, x, y) : y;
}

/* Iterations of a loop as i64; its step is above 0. */
static ir_value *iterations(asking *a, ir_value *lo, ir_value *hi, ir_value *step)
{
	ir_value *v[] = {lo, hi, step}, *zero = ir_constant_int(a->b, SCALAR_I64, 0);
	for (unsigned i = 0; i < 3; i++) v[i] = ir_build1(a->b, IR_CONVERT, ir_scalar_type(SCALAR_I64), 1, &v[i]);
	ir_value *far = ir_binary(a->b, IR_ADD, ir_binary(a->b, IR_SUB, v[1], v[0]), v[2]);
	far = ir_binary(a->b, IR_SUB, far, ir_constant_int(a->b, SCALAR_I64, 1));
	ir_value *some = ir_binary(a->b, IR_MAX, v[2], ir_constant_int(a->b, SCALAR_I64, 1));
	return ir_binary(a->b, IR_MAX, ir_binary(a->b, IR_DIV, far, some), zero);
}

/* Runs loop `o`, around the one in question, as often there? */
static ir_value *as_often(asking *a, const ir_op *o, ir_value *so_far)
{
	assert(o->kind == IR_FOR);
	ir_value *v[3], *w[3];
	bool differs = false;
	for (unsigned i = 0; i < 3; i++) {
		v[i] = ir_arg(o, i);
		w[i] = other(a, v[i]);
		differs |= v[i] != w[i];
	}
	if (!differs) return so_far;
	ir_value *upwards = ir_binary(a->b, IR_LT, ir_constant_int(a->b, SCALAR_I32, 0), v[2]);
	so_far = both(a->b, so_far, upwards);
	so_far = both(a->b, so_far, ir_binary(a->b, IR_EQ, v[2], w[2]));
	return both(
		a->b, so_far, ir_binary(a->b, IR_EQ, iterations(a, v[0], v[1], v[2]), iterations(a, w[0], w[1], w[2])));
}

/* The same value there? */
static ir_value *as_here(asking *a, ir_value *v, ir_value *so_far)
{
	ir_value *w = other(a, v);
	return v == w ? so_far : both(a->b, so_far, ir_binary(a->b, IR_EQ, v, w));
}

static ir_value *is_formed(const channel *ch, ir_builder *b)
{
	ir_value *size = ir_build1(b, IR_CLUSTER_SIZE, ir_scalar_type(SCALAR_I32), 0, NULL);
	return ir_binary(b, IR_EQ, size, ir_constant_int(b, SCALAR_I32, ch->cluster));
}

/* The d-th neighbour if it comes by here too, as `may` says: it exists, and in a loop its counter is one that it has.
 * Else the program itself, whose arithmetic harms nobody: another's might divide by 0, or load from beyond a table. */
static asking ask(const channels *c, const site *s, ir_builder *b, unsigned d, ir_value *may)
{
	assert(d && d < s->of->cluster);
	asking a = {.n = neighbours_of(c, s), .b = b, .d = d};
	ir_value *args[] = {may, ir_constant_int(b, SCALAR_I32, d), ir_constant_int(b, SCALAR_I32, 0)};
	a.number = ir_build1(b, IR_SELECT, args[1]->type, 3, args);
	a.map = ARENA_ARRAY(c->context->arena, ir_value *, c->func->nvalues);
	return a;
}

static void build_in_step(const channels *c, const site *s, ir_builder *b)
{
	channel *ch = s->of;
	ir_value *formed = ch->in_step = is_formed(ch, b);
	for (unsigned d = 1; d < ch->cluster; d++) {
		asking a = ask(c, s, b, d, formed);
		for (unsigned i = 0; i < 2; i++) ch->in_step = as_here(&a, ir_arg(s->loop, i), ch->in_step);
		for (const ir_op *o = s->loop->block->parent; o; o = o->block->parent)
			if (o->kind == IR_FOR) ch->in_step = as_often(&a, o, ch->in_step);
	}
}

/* Where the block lies that a load brings, of each neighbour. */
typedef struct places {
	ir_builder *b;
	uint32_t programs, n; /* values of each */
	ir_value *in_step, **of[BULK_SHARES];
} places;

static places places_of(asking *others, const staged *s)
{
	const neighbours *n = &others->n;
	const channel *ch = n->s->of;
	leaves l = leaves_of(n, s->load);
	places all = {.b = others->b, .programs = ch->cluster, .n = l.all.n, .in_step = ch->in_step};
	for (uint32_t d = 0; d < ch->cluster; d++) {
		all.of[d] = ARENA_ARRAY(n->c->context->arena, ir_value *, l.all.n + 1);
		for (uint32_t k = 0; k < l.all.n; k++) all.of[d][k] = d ? other(&others[d], l.all.at[k]) : l.all.at[k];
	}
	return all;
}

/* Whether they are equal: of integers x + n and y + n are where x and y are.  Exactly, as two programs may
 * look at one pair in two forms: x * n and y * n may be equal where x and y are not. */
static ir_value *same_if(ir_builder *b, ir_value *x, ir_value *y)
{
	bool integers = !x->type.pointer && scalar_is_integer(x->type.elem);
	while (integers && x->def && y->def && x->def->kind == IR_ADD && y->def->kind == IR_ADD) {
		ir_value *n = ir_arg(x->def, 1), *m = ir_arg(y->def, 1);
		if (n != m || ir_arg(x->def, 0) == ir_arg(y->def, 0)) break;
		x = ir_arg(x->def, 0);
		y = ir_arg(y->def, 0);
	}
	return ir_binary(b, IR_EQ, x, y);
}

/* so_far, and: neighbour `from` and all whose numbers differ from its in `bits` alone load the same block. */
static ir_value *same_in(const places *w, uint32_t from, uint32_t bits, ir_value *so_far)
{
	assert((from | bits) < w->programs);
	for (uint32_t d = 1; d <= bits; d++)
		for (uint32_t k = 0; k < w->n && !(d & ~bits); k++) {
			ir_value *x = w->of[from][k], *y = w->of[from ^ d][k];
			if (x != y) so_far = both(w->b, so_far, same_if(w->b, x, y));
		}
	return so_far;
}

static ir_value *chosen(const places *w, ir_value *condition, uint32_t bits, ir_value *otherwise)
{
	uint32_t set = 0;
	for (uint32_t d = 0; d <= bits; d++)
		if (!(d & ~bits)) set |= 1u << d;
	ir_value *args[] = {condition, ir_constant_int(w->b, SCALAR_I32, (int)set), otherwise};
	return ir_build1(w->b, IR_SELECT, otherwise->type, 3, args);
}

/* The set that brings the block.  First aligned runs of 2, 4, .. below all of the cluster: each program looks at its
 * own run only, and runs nest, so that their members agree.  Then, and instead, what holds for the whole cluster: each
 * program verifies it for all, so all agree.  The largest set wins. */
static ir_value *set_of(const places *w, uint32_t most)
{
	ir_value *set = ir_constant_int(w->b, SCALAR_I32, 1);
	for (uint32_t n = 2; n <= most && n < w->programs; n *= 2)
		set = chosen(w, same_in(w, 0, n - 1, w->in_step), n - 1, set);
	for (uint32_t n = 2; n <= most; n *= 2)
		for (uint32_t bits = n - 1; bits < w->programs; bits *= 2) {
			ir_value *all = w->in_step;
			for (uint32_t from = 0; from < w->programs; from++)
				if (!(from & bits)) all = same_in(w, from, bits, all);
			set = chosen(w, all, bits, set);
		}
	return set;
}

void multicast_build(const channels *c, site *s, ir_builder *head)
{
	const channel *ch = s->of;
	assert(ch->cluster > 1 && ch->cluster <= BULK_SHARES);
	ir_builder b = {.func = c->func, .block = s->loop->block, .before = s->loop, .at = s->at};
	asking others[BULK_SHARES];
	build_in_step(c, s, head);
	for (unsigned d = 1; d < ch->cluster; d++) others[d] = ask(c, s, &b, d, ch->in_step);
	others[0] = others[1];
	for (unsigned i = 0; i < ch->nloads; i++) {
		staged *l = &s->loads[i];
		if (l->unshared) {
			l->multicast = ir_constant_int(&b, SCALAR_I32, 1);
			continue;
		}
		places w = places_of(others, l);
		l->multicast = set_of(&w, ir_get_shares(l->load));
	}
}
