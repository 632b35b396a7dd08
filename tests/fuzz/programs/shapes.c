/* Rows that move elements and compute nothing: what comes out has the type and the bounds of what goes in. */
#include "generate.h"

static bool operand(gen *g, node *n, shape s, int depth)
{
	return with(n, expression(g, type_with_shape(n->type, s), depth)) != NULL;
}

static shape without(shape s, int axis)
{
	for (int i = axis; i + 1 < s.rank; i++) s.dim[i] = s.dim[i + 1];
	s.rank--;
	return s;
}

static shape inserted(shape s, int axis, int extent)
{
	for (int i = s.rank++; i > axis; i--) s.dim[i] = s.dim[i - 1];
	s.dim[axis] = extent;
	return s;
}

/* The language has such extents, and a reshape from or to them moves few runs. */
static bool fits(const shape *s)
{
	int rows = 1;
	for (int i = 0; i < s->rank; i++) {
		int odd = s->dim[i];
		while (odd % 2 == 0) odd /= 2;
		if (odd > 127 || (odd > 1 && rows > 32)) return false;
		rows *= s->dim[i];
	}
	return true;
}

static bool build_reshape(gen *g, node *n, int depth)
{
	shape s = {.rank = rng_between(&g->rng, 1, 4)};
	int left = shape_elements(&n->type.shape);
	for (int i = 0; i < s.rank; i++) s.dim[i] = 1;
	while (left > 1) {
		int factor = 2;
		while (left % factor) factor++;
		s.dim[rng_below(&g->rng, s.rank)] *= factor;
		left /= factor;
	}
	return fits(&s) && fits(&n->type.shape) && operand(g, n, s, depth);
}

static bool build_ravel(gen *g, node *n, int depth)
{
	return n->type.shape.rank == 1 && build_reshape(g, n, depth);
}

static bool build_broadcast(gen *g, node *n, int depth)
{
	shape s = n->type.shape;
	for (int i = 0; i < s.rank; i++)
		if (rng_percent(&g->rng, 50)) s.dim[i] = 1;
	while (s.rank && rng_percent(&g->rng, 30)) s = without(s, 0);
	return operand(g, n, s, depth);
}

static bool build_expand(gen *g, node *n, int depth)
{
	int axis = rng_below(&g->rng, n->type.shape.rank);
	if (n->type.shape.dim[axis] != 1) return false;
	n->number[0] = axis;
	return operand(g, n, without(n->type.shape, axis), depth);
}

static bool build_squeeze(gen *g, node *n, int depth)
{
	if (n->type.shape.rank == MAX_RANK) return false;
	n->number[0] = rng_below(&g->rng, n->type.shape.rank + 1);
	return operand(g, n, inserted(n->type.shape, (int)n->number[0], 1), depth);
}

static bool build_trans(gen *g, node *n, int depth)
{
	shape s = n->type.shape;
	if (s.rank != 2) return false;
	return operand(g, n, (shape){.rank = 2, .dim = {s.dim[1], s.dim[0]}}, depth);
}

static bool build_permute(gen *g, node *n, int depth)
{
	static const char *const words[MAX_RANK + 1] = {"", "[%c]", "[%c, %c]", "[%c, %c, %c]", "[%c, %c, %c, %c]"};
	shape s = n->type.shape, from = s;
	int order[MAX_RANK] = {0, 1, 2, 3};
	for (int i = s.rank - 1; i > 0; i--) {
		int k = rng_below(&g->rng, i + 1), t = order[i];
		order[i] = order[k], order[k] = t;
	}
	for (int i = 0; i < s.rank; i++) from.dim[order[i]] = s.dim[i];
	char *word = program_alloc(g->program, 32);
	snprintf(word, 32, words[s.rank], '0' + order[0], '0' + order[1], '0' + order[2], '0' + order[3]);
	n->word = word;
	return operand(g, n, from, depth);
}

static bool build_join(gen *g, node *n, int depth)
{
	shape s = n->type.shape;
	if (s.dim[s.rank - 1] != 2) return false;
	s.rank--;
	return operand(g, n, s, depth) && operand(g, n, s, depth);
}

static bool build_split(gen *g, node *n, int depth)
{
	shape s = n->type.shape;
	if (s.rank == MAX_RANK || 2 * shape_elements(&s) > 2 * g->elements) return false;
	n->number[0] = rng_below(&g->rng, 2);
	return operand(g, n, inserted(s, s.rank, 2), depth);
}

static bool build_interleave(gen *g, node *n, int depth)
{
	shape s = n->type.shape;
	if (s.dim[s.rank - 1] % 2 || (s.rank == MAX_RANK && shape_odd(&s))) return false;
	s.dim[s.rank - 1] /= 2;
	return operand(g, n, s, depth) && operand(g, n, s, depth);
}

static bool build_cat(gen *g, node *n, int depth)
{
	shape s = n->type.shape;
	int axis = rng_below(&g->rng, s.rank);
	if (s.dim[axis] % 2 || (s.rank == MAX_RANK && shape_odd(&s))) return false;
	n->number[0] = axis;
	s.dim[axis] /= 2;
	return operand(g, n, s, depth) && operand(g, n, s, depth);
}

static bool build_axis(gen *g, node *n, int depth)
{
	n->number[0] = rng_below(&g->rng, n->type.shape.rank);
	if (rng_percent(&g->rng, 30)) n->number[0] -= n->type.shape.rank;
	return operand(g, n, n->type.shape, depth);
}

/* `x[None, :]` and its like: all but the last axes of 1 are new. */
static bool build_none(gen *g, node *n, int depth)
{
	shape s = n->type.shape, from = {0};
	char *word = program_alloc(g->program, 32);
	int at = snprintf(word, 32, "["), seen = 0;
	for (int i = 0; i < s.rank; i++) {
		bool is_new = s.dim[i] == 1 && (i + 1 < s.rank || seen);
		if (!is_new) from.dim[from.rank++] = s.dim[i], seen = 1;
		at += snprintf(word + at, 32 - (size_t)at, "%s%s", i ? ", " : "", is_new ? "None" : ":");
	}
	snprintf(word + at, 32 - (size_t)at, "]");
	if (from.rank == s.rank) return false;
	n->word = word;
	return operand(g, n, from, depth);
}

static bool build_swap_ends(gen *g, node *n, int depth) /* a row that only moves what moved before: layouts meet */
{
	return n->type.shape.rank == 2 && n->type.shape.dim[0] == n->type.shape.dim[1] &&
	       operand(g, n, n->type.shape, depth) && operand(g, n, n->type.shape, depth);
}

static const rule table[] = {
	{"reshape", "reshape(%0, %s)", 4, ON_ANY | TILE, "", build_reshape},
	{"ravel", "ravel(%0)", 2, ON_ANY | TILE, "", build_ravel},
	{"broadcast_to", "broadcast_to(%0, %s)", 4, ON_ANY | TILE, "", build_broadcast},
	{"expand_dims", "expand_dims(%0, %a)", 3, ON_ANY | TILE, "", build_expand},
	{"[None, :]", "%0%W", 3, ON_ANY | TILE, "", build_none},
	{"squeeze", "squeeze(%0, %a)", 2, ON_ANY | TILE, "", build_squeeze},
	{"trans", "trans(%0)", 4, ON_ANY | TILE, "", build_trans},
	{"permute", "permute(%0, %W)", 4, ON_ANY | TILE, "", build_permute},
	{"join", "join(%0, %1)", 3, ON_ANY | TILE, "", build_join},
	{"split", "split(%0)[%a]", 2, ON_ANY, "", build_split},
	{"interleave", "interleave(%0, %1)", 2, ON_ANY | TILE, "", build_interleave},
	{"cat", "cat(%0, %1, axis = %a)", 3, ON_ANY | TILE, "", build_cat},
	{"flip", "flip(%0, axis = %a)", 3, ON_ANY | TILE, "", build_axis},
	{"x | trans(y)", "maximum(%0, trans(%1))", 2, ON_ANY | TILE, "", build_swap_ends},
};
const rules shape_rules = RULES(table);
