/* Statements that write memory.
 *
 * Each program writes its own part of a buffer, and each store every address at most once: the places of a tile are its
 * row-major index in some order of the dimensions, turned or with some bits flipped.  What all programs share is
 * touched by atomics alone, of one kind a buffer, which come to the same in any order. */
#include "generate.h"

static const buffer *random_buffer(gen *g, int kind)
{
	const buffer *found = NULL;
	int seen = 0;
	for (int i = 0; i < g->program->nbuffers; i++)
		if ((int)g->program->buffers[i].kind == kind && rng_below(&g->rng, ++seen) == 0)
			found = &g->program->buffers[i];
	return found;
}

static bool store_to(gen *g, node *n, int depth, int kind, bool inside)
{
	const buffer *b = random_buffer(g, kind);
	if (!b) return false;
	shape s = random_shape(g);
	if (inside && shape_elements(&s) > g->program->region) return false;
	tile_type value = {.s = b->s, .shape = s, .mag = b->mag, .frac = b->frac};
	if (kind == OUTPUT) { /* never read: what any value becomes there is as good */
		value = rng_percent(&g->rng, 70) && !scalar_is_fp8(b->s) ? type_of(b->s, s) : random_type(g, s, ON_ANY);
		if (b->s == SCALAR_BOOL) value.s = SCALAR_BOOL;
		if (value.s == SCALAR_BOOL && b->s != SCALAR_BOOL) value.s = SCALAR_U8;
		if (type_float(&value) && rng_percent(&g->rng, 40))
			value.rounded = true, value.mag = value.s == SCALAR_F16 ? 13 : 30;
	} else if (scalar_is_fp8(b->s)) {
		value.s = SCALAR_F16;
		value.mag = 2, value.frac = 0;
	}
	n->type = type_with_shape(value, s);
	n->buffer = b;
	n->number[0] = rng_below(&g->rng, MAX_RANK * MAX_RANK * MAX_RANK);
	n->number[1] = rng_below(&g->rng, shape_elements(&s));
	n->number[2] = shape_elements(&s) - 1;
	static const char *const options[] = {
		"", "", "", ", cache = \"cg\"", ", cache = \"wt\"", ", cache = \"cs\"", ", evict = \"last\""};
	n->word = options[rng_below(&g->rng, (int)(sizeof options / sizeof *options))];
	return with(n, expression(g, value, depth)) && with(n, expression(g, type_of(SCALAR_BOOL, s), depth - 1));
}

static bool build_output(gen *g, node *n, int depth)
{
	return store_to(g, n, depth, OUTPUT, false);
}
static bool build_output_inside(gen *g, node *n, int depth)
{
	return store_to(g, n, depth, OUTPUT, true);
}
static bool build_owned(gen *g, node *n, int depth)
{
	return store_to(g, n, depth, OWNED, false);
}
static bool build_owned_inside(gen *g, node *n, int depth)
{
	return store_to(g, n, depth, OWNED, true);
}

static bool build_tensor(gen *g, node *n, int depth)
{
	return store_to(g, n, depth, rng_percent(&g->rng, 50) ? OWNED : OUTPUT, false) && n->type.shape.rank == 1 &&
	       n->buffer->s != SCALAR_BOOL && with(n, expression(g, type_of(SCALAR_I32, scalar_shape), 1));
}

static bool build_tensor2(gen *g, node *n, int depth)
{
	if (!store_to(g, n, depth, rng_percent(&g->rng, 50) ? OWNED : OUTPUT, false) || n->type.shape.rank != 2 ||
		n->buffer->s == SCALAR_BOOL)
		return false;
	n->number[0] = rng_between(&g->rng, 1, 16);
	n->number[1] = g->program->region / n->number[0];
	return with(n, expression(g, type_of(SCALAR_I32, scalar_shape), 1)) &&
	       with(n, expression(g, type_of(SCALAR_I32, scalar_shape), 1));
}

/* ---- atomics ---- */

static bool build_atomic(gen *g, node *n, int depth)
{
	static const char *const sems[] = {", sem = \"relaxed\"", ", sem = \"relaxed\"", ", sem = \"release\"", "",
		", sem = \"acquire\"", ", sem = \"relaxed\", scope = \"sys\""};
	const buffer *b = random_buffer(g, SHARED);
	if (!b || b->atomic != n->rule) return false;
	shape s = random_shape(g);
	n->type = (tile_type){.s = b->s, .shape = s, .mag = b->mag, .frac = b->frac};
	n->buffer = b;
	n->word = sems[rng_below(&g->rng, (int)(sizeof sems / sizeof *sems))];
	n->number[0] = power_below(b->n) - 1;
	return with(n, expression(g, type_of(SCALAR_I32, s), depth - 1)) && with(n, expression(g, n->type, depth)) &&
	       with(n, expression(g, type_of(SCALAR_BOOL, s), depth - 1));
}

/* The old values of the program's own part are as certain as those of a load. */
static bool build_old(gen *g, node *n, int depth)
{
	const buffer *b = random_buffer(g, OWNED);
	shape s = random_shape(g);
	if (!b || !scalar_is_integer(b->s) || scalar_bytes(b->s) < 4) return false;
	n->type = type_of(b->s, s);
	n->buffer = b;
	n->number[0] = rng_below(&g->rng, MAX_RANK * MAX_RANK);
	if (!with(n, expression(g, n->type, depth)) || !with(n, expression(g, type_of(SCALAR_BOOL, s), depth - 1)))
		return false;
	if (n->rule->kids[0] && !with(n, expression(g, n->type, depth - 1))) return false;
	n->var[0] = declare(g, 'v', n->type, false);
	return n->var[0] != NULL;
}

#define OLD(name) "let %v = atomic_" name "(%p + base + %L, %0, mask = (%L < r) & %1);"
static const rule table[] = {
	{"store", "{ let at = %L; store(%p + base + at, %0, mask = at < r%W); }", 14, KERNEL, "", build_output},
	{"store flipped", "{ let at = %L ^ (%b & %c); store(%p + base + at, %0, mask = (at < r) & %1); }", 6, KERNEL,
		"", build_output},
	{"store reversed", "{ let at = %c - %L; store(%p + (base + at), %0, mask = (at < r) & %1%W); }", 4, KERNEL, "",
		build_output},
	{"store whole", "store(%p + base + %L, %0%W);", 8, KERNEL, "", build_output_inside},
	{"store own", "{ let at = %L; store(%p + base + at, %0, mask = at < r%W); }", 10, KERNEL, "", build_owned},
	{"store own masked", "{ let at = %L; store(%p + (base + at), %0, mask = (at < r) & %1); }", 6, KERNEL, "",
		build_owned},
	{"store own whole", "store(%p + base + %L, %0%W);", 6, KERNEL, "", build_owned_inside},
	{"store by put", "put(%p + base, %L, %0, r);", 4, KERNEL, "", build_output,
		"fn put(p, at, v, n) { store(p + at, v, mask = at < n); }"},
	{"tensor.store 1", "tensor(%p + base, shape = [r]).store([%2 % 19], %0);", 4, KERNEL, "", build_tensor},
	{"tensor.store 2", "tensor(%p + base, shape = [%a, %b]).store([%2 % 5, %3 % 9], %0);", 4, KERNEL, "",
		build_tensor2},
	{"atomic_add", "atomic_add(%p + (%0 & %a), %1, mask = %2%W);", 6, KERNEL, "", build_atomic},
	{"atomic_max", "atomic_max(%p + (%0 & %a), %1, mask = %2%W);", 6, KERNEL, "", build_atomic},
	{"atomic_min", "atomic_min(%p + (%0 & %a), %1%W);", 6, KERNEL, "", build_atomic},
	{"atomic_and", "atomic_and(%p + (%0 & %a), %1, mask = %2%W);", 5, KERNEL, "", build_atomic},
	{"atomic_or", "atomic_or(%p + (%0 & %a), %1%W);", 5, KERNEL, "", build_atomic},
	{"atomic_xor", "atomic_xor(%p + (%0 & %a), %1, mask = %2%W);", 6, KERNEL, "", build_atomic},
	{"old of atomic_add", OLD("add"), 2, KERNEL, "", build_old},
	{"old of atomic_max", OLD("max"), 1, KERNEL, "", build_old},
	{"old of atomic_xchg", OLD("xchg"), 2, KERNEL, "", build_old},
	{"old of atomic_xor", OLD("xor"), 1, KERNEL, "", build_old},
	{"old of atomic_cas", "let %v = atomic_cas(%p + base + %L, %2, %0, mask = (%L < r) & %1);", 2, KERNEL, "=",
		build_old},
};
const rules store_rules = RULES(table);
