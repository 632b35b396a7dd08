/* Expressions, from the wanted type down.
 *
 * In: the type, shape and bounds that are asked for.  Out: a tree that has them.
 * The one idea: draw a row among those that can make such a result; its letters, or its own function, say what is asked
 * of the operands.  When nothing else will do, a constant always does. */
#include "generate.h"

#include <string.h>

const shape scalar_shape = {0};

static const rules *const tables[] = {&elementwise_rules, &shape_rules, &reduction_rules, &order_rules, &matrix_rules,
	&memory_rules, &leaf_rules, &call_rules};
enum { NTABLES = sizeof tables / sizeof *tables };

unsigned class_of(const tile_type *t)
{
	if (t->s == SCALAR_BOOL) return ON_BOOL;
	if (!type_float(t)) return ON_INT;
	return t->rounded ? ON_ROUNDED | ON_FLOAT : ON_FLOAT;
}

static bool applies(const gen *g, const rule *r, const tile_type *want, bool leaf)
{
	if (leaf && !(r->on & LEAF)) return false;
	if ((r->on & SCALAR) && want->shape.rank) return false;
	if ((r->on & TILE) && !want->shape.rank) return false;
	if ((r->on & KERNEL) && g->in_fn) return false;
	return !scalar_is_fp8(want->s) && (r->on & class_of(want));
}

/* Where there is depth left, what ends the tree is drawn less. */
static int weight(const rule *r, bool leaf)
{
	return leaf || !(r->on & LEAF) ? 4 * r->weight : r->weight;
}

static const rule *draw(gen *g, const tile_type *want, bool leaf)
{
	int total = 0;
	for (int t = 0; t < NTABLES; t++)
		for (int i = 0; i < tables[t]->n; i++)
			if (applies(g, &tables[t]->at[i], want, leaf)) total += weight(&tables[t]->at[i], leaf);
	if (!total) return NULL;
	int left = rng_below(&g->rng, total);
	for (int t = 0; t < NTABLES; t++)
		for (int i = 0; i < tables[t]->n; i++)
			if (applies(g, &tables[t]->at[i], want, leaf) && (left -= weight(&tables[t]->at[i], leaf)) < 0)
				return &tables[t]->at[i];
	return NULL;
}

node *constant_expression(gen *g, tile_type want)
{
	int64_t v;
	if (want.s == SCALAR_BOOL)
		v = rng_below(&g->rng, 2);
	else if (type_float(&want)) {
		int most = want.mag > 3 ? 8 : 1 << (want.mag > 0 ? want.mag : 0);
		if (want.frac < 2 || want.mag < 0) most = want.mag < 0 ? 0 : most;
		v = 4 * rng_between(&g->rng, -most, most);
		if (want.frac >= 2 && want.mag > 0) v += v > 0 ? -rng_below(&g->rng, 4) : rng_below(&g->rng, 4);
	} else if (rng_percent(&g->rng, 70))
		v = rng_between(&g->rng, -9, 30);
	else
		v = (int64_t)(rng_next(&g->rng) >> rng_below(&g->rng, 63));
	return node_constant(g->program, want, v);
}

node *expression(gen *g, tile_type want, int depth)
{
	g->nodes++;
	if (g->nodes > 170) depth = 0; /* large enough */
	for (int tries = 0; tries < 6; tries++) {
		const rule *r = draw(g, &want, depth <= 0);
		if (!r) break;
		tile_type t = want;
		if (want.rounded && !(r->on & ON_ROUNDED)) { /* an exact value will do */
			t = type_of(want.s, want.shape);
			if (t.mag > want.mag) t.mag = want.mag;
		}
		node *n = node_new(g->program, r, t);
		if (r->build ? r->build(g, n, depth - 1) : build_kids(g, n, depth - 1)) return n;
	}
	return constant_expression(g, want);
}

node *with(node *n, node *kid)
{
	if (!n || !kid || n->nkids == MAX_KIDS) return NULL;
	n->kid[n->nkids++] = kid;
	return n;
}

int power_below(int n)
{
	int p = 1;
	while (2 * p <= n) p *= 2;
	return p;
}

bool shape_odd(const shape *s)
{
	bool odd = false;
	for (int i = 0; i < s->rank; i++) odd |= !is_power(s->dim[i]);
	return odd;
}

int extent_below(gen *g, int n)
{
	if (!g->odd || n < 3 || rng_percent(&g->rng, 40)) return n;
	if (n < 8 || (n <= 128 && rng_percent(&g->rng, 20))) return rng_between(&g->rng, n / 2 + 1, n < 128 ? n : 127);
	return n / 8 * rng_between(&g->rng, 5, 7);
}

shape random_shape(gen *g)
{
	shape s = {.rank = rng_between(&g->rng, 0, rng_percent(&g->rng, 70) ? 2 : 4)};
	int left = g->elements / (g->work > 8 ? 4 : 1);
	for (int i = 0; i < s.rank; i++) {
		int bits = 0;
		while (1 << (bits + 1) <= left) bits++;
		s.dim[i] = 1 << rng_between(&g->rng, rng_percent(&g->rng, 12) ? 0 : bits / 2, bits);
		if (s.rank > 1 && s.dim[i] > 1 && rng_percent(&g->rng, 50)) s.dim[i] /= 2;
		left /= s.dim[i];
		s.dim[i] = extent_below(g, s.dim[i]);
	}
	return s;
}

tile_type random_type(gen *g, shape s, unsigned on)
{
	static const scalar ints[] = {SCALAR_I32, SCALAR_I32, SCALAR_I32, SCALAR_I64, SCALAR_I16, SCALAR_I8, SCALAR_U8,
		SCALAR_U16, SCALAR_U32, SCALAR_U64};
	static const scalar floats[] = {SCALAR_F32, SCALAR_F32, SCALAR_F32, SCALAR_F16, SCALAR_BF16, SCALAR_F64};
	int pick = rng_below(&g->rng, 100);
	if ((on & ON_BOOL) && (pick < 12 || on == ON_BOOL)) return type_of(SCALAR_BOOL, s);
	if ((on & ON_INT) && (pick < 60 || !(on & (ON_FLOAT | ON_ROUNDED))))
		return type_of(ints[rng_below(&g->rng, (int)(sizeof ints / sizeof *ints))], s);
	tile_type t = type_of(floats[rng_below(&g->rng, (int)(sizeof floats / sizeof *floats))], s);
	if ((on & ON_ROUNDED) && (rng_percent(&g->rng, 25) || !(on & ON_FLOAT))) {
		t.rounded = true;
		t.mag = t.s == SCALAR_F16 ? 13 : 30;
	}
	return t;
}

/* ---- operands by letter ----
 *   =  the result's type           -  half its magnitude, for sums         /  half the bits, for products
 *   r  rounded, its magnitude      b  a bool of its shape                  B  a bool scalar
 *   i  i32 of its shape            u  any integer of its shape             f  any float of its shape
 *   c  any number of its shape     C  of the type of the operand before    n  an integer that the result's type holds
 */
static bool operand_type(gen *g, const node *n, char letter, tile_type *t)
{
	*t = n->type;
	switch (letter) {
	case '=': return true;
	case '-': t->mag--; return !type_float(t) || t->mag >= 0;
	case '/': t->mag /= 2, t->frac /= 2; return !t->rounded;
	case 'r': t->rounded = true; return type_float(t);
	case 'b': *t = type_of(SCALAR_BOOL, n->type.shape); return true;
	case 'B': *t = type_of(SCALAR_BOOL, scalar_shape); return true;
	case 'i': *t = type_of(SCALAR_I32, n->type.shape); return true;
	case 'u': *t = random_type(g, n->type.shape, ON_INT); return true;
	case 'f': *t = random_type(g, n->type.shape, ON_FLOAT | ON_ROUNDED); return true;
	case 'c': *t = random_type(g, n->type.shape, ON_NUMBER); return true;
	case 'C': *t = type_with_shape(n->kid[n->nkids - 1]->type, n->type.shape); return true;
	case 'n': {
		tile_type narrow = random_type(g, n->type.shape, ON_INT);
		bool sign = scalar_is_signed(narrow.s), wide = scalar_is_signed(n->type.s);
		*t = narrow;
		return sign == wide ? scalar_bytes(narrow.s) <= scalar_bytes(n->type.s)
				    : wide && scalar_bytes(narrow.s) < scalar_bytes(n->type.s);
	}
	default: return false;
	}
}

bool build_kids(gen *g, node *n, int depth)
{
	const char *letters = n->rule->kids;
	int small = -1, count = (int)strlen(letters);
	if ((n->rule->on & BROADCAST) && n->type.shape.rank && rng_percent(&g->rng, 30))
		small = rng_below(&g->rng, count);
	for (int i = 0; i < 3; i++) n->number[i] = rng_below(&g->rng, 16);
	for (int i = 0; i < count; i++) {
		tile_type t;
		if (!operand_type(g, n, letters[i], &t)) return false;
		if (i == small && t.shape.rank) { /* the others keep the shape */
			if (rng_percent(&g->rng, 40))
				t.shape = scalar_shape;
			else
				t.shape.dim[rng_below(&g->rng, t.shape.rank)] = 1;
		}
		if (!with(n, expression(g, t, depth))) return false;
	}
	return true;
}

/* ---- conversion ---- */

static const rule fit_rules[] = {
	{"cast", "%0.to(%t)", 0, 0, "", NULL, NULL},
	{"clamp to bounds", "clamp(floor(%0), -%A, %A)", 0, 0, "", NULL, NULL},
	{"int to float", "((%0 & %a).to(%t) - %B)", 0, 0, "", NULL, NULL},
	{"reshape", "reshape(%0, %s)", 0, 0, "", NULL, NULL},
	{"broadcast_to", "broadcast_to(%0, %s)", 0, 0, "", NULL, NULL},
	{"ravel", "ravel(%0)", 0, 0, "", NULL, NULL},
	{"float to bool", "(%0 != 0)", 0, 0, "", NULL, NULL},
};
enum { CAST, CLAMP, TO_FLOAT, RESHAPE, BROADCAST_TO, RAVEL, TO_BOOL };

static bool stretches(const shape *from, const shape *to)
{
	for (int i = 0; i < from->rank; i++) {
		int k = to->rank - from->rank + i;
		if (k < 0 || (from->dim[i] != to->dim[k] && from->dim[i] != 1)) return false;
	}
	return true;
}

static node *wrap(gen *g, int row, tile_type t, node *kid)
{
	return with(node_new(g->program, &fit_rules[row], t), kid);
}

static node *reshaped(gen *g, node *n, const shape *to)
{
	if (shape_same(&n->type.shape, to)) return n;
	tile_type t = type_with_shape(n->type, *to);
	if (n->type.shape.rank && to->rank && shape_elements(&n->type.shape) == shape_elements(to))
		return wrap(g, to->rank == 1 && rng_percent(&g->rng, 50) ? RAVEL : RESHAPE, t, n);
	return stretches(&n->type.shape, to) ? wrap(g, BROADCAST_TO, t, n) : NULL;
}

/* An integer's low bits as a small float around 0. */
static node *small_float(gen *g, node *n, tile_type t)
{
	int k = t.mag > 7 ? 7 : t.mag;
	if (k < 1) return NULL;
	node *f = wrap(g, TO_FLOAT, t, n);
	f->number[0] = (1 << k) - 1;
	f->number[1] = 1 << (k - 1);
	return f;
}

node *convert(gen *g, node *n, tile_type want)
{
	n = reshaped(g, n, &want.shape);
	if (!n || type_fits(&n->type, &want)) return n;
	if (scalar_is_fp8(n->type.s)) {
		tile_type wide = type_with_shape(n->type, want.shape);
		wide.s = SCALAR_F16;
		n = wrap(g, CAST, wide, n);
		if (type_fits(&n->type, &want)) return n;
	}
	bool from = type_float(&n->type), to = type_float(&want);
	if (want.s == SCALAR_BOOL) return wrap(g, TO_BOOL, want, n);
	if (!to) return wrap(g, CAST, want, n);
	if (n->type.s == SCALAR_BOOL) return want.mag >= 0 ? wrap(g, CAST, want, n) : NULL;
	if (!from) return small_float(g, n, want);
	if (n->type.s == want.s || n->type.rounded || n->type.mag > want.mag || n->type.frac > want.frac) {
		/* clamped while it has its own type, which holds the clamp's ends when the target does */
		tile_type own = n->type;
		int most = exact_bits(own.s) < exact_bits(want.s) ? exact_bits(own.s) : exact_bits(want.s);
		own.mag = want.mag < most ? want.mag : most;
		if (own.s == SCALAR_F16 || want.s == SCALAR_F16) own.mag = own.mag > 11 ? 11 : own.mag;
		if (own.mag < 0) return NULL;
		own.mag = own.mag > 30 ? 30 : own.mag;
		own.frac = 0;
		own.rounded = false;
		node *c = wrap(g, CLAMP, own, n);
		c->number[0] = (int64_t)1 << own.mag;
		n = c;
	}
	return n->type.s == want.s ? n : wrap(g, CAST, want, n);
}
