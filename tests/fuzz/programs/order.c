/* Rows that look elements up or put them in order: sort, topk, histogram, gather. */
#include "generate.h"

static bool build_sort(gen *g, node *n, int depth)
{
	char *word = program_alloc(g->program, 40);
	int axis = rng_below(&g->rng, n->type.shape.rank);
	if (!is_power(n->type.shape.dim[axis])) return false;
	snprintf(word, 40, "%d%s", axis, rng_percent(&g->rng, 50) ? ", descending = true" : "");
	n->word = word;
	return with(n, expression(g, n->type, depth)) != NULL;
}

static bool build_topk(gen *g, node *n, int depth)
{
	tile_type from = n->type;
	int axis = rng_below(&g->rng, from.shape.rank);
	n->number[0] = from.shape.dim[axis];
	n->number[1] = axis;
	if (!is_power(from.shape.dim[axis])) return false;
	from.shape.dim[axis] <<= rng_below(&g->rng, 4);
	if (shape_elements(&from.shape) > 2 * g->elements) return false;
	return with(n, expression(g, from, depth)) != NULL;
}

static bool build_histogram(gen *g, node *n, int depth)
{
	shape s = random_shape(g);
	if (n->type.s != SCALAR_I32 || n->type.shape.rank != 1 || !s.rank) return false;
	n->number[0] = n->type.shape.dim[0];
	tile_type mask = type_of(SCALAR_BOOL, s);
	n->word = rng_percent(&g->rng, 50) ? "63" : "127";
	return with(n, expression(g, random_type(g, s, ON_INT), depth)) && with(n, expression(g, mask, depth));
}

static bool build_gather(gen *g, node *n, int depth)
{
	tile_type from = n->type;
	int axis = rng_below(&g->rng, from.shape.rank);
	from.shape.dim[axis] = extent_below(g, 1 << rng_below(&g->rng, 7));
	if (shape_elements(&from.shape) > 2 * g->elements) return false;
	n->number[0] = from.shape.dim[axis] - 1;
	n->number[1] = axis;
	return with(n, expression(g, from, depth)) && with(n, expression(g, type_of(SCALAR_I32, n->type.shape), depth));
}

static const rule table[] = {
	{"sort", "sort(%0, axis = %W)", 4, ON_ANY | TILE, "", build_sort},
	{"topk", "topk(%0, %k, axis = %b)", 3, ON_NUMBER | TILE, "", build_topk},
	{"histogram", "histogram((%0 & %W), %k, mask = %1)", 5, ON_INT | TILE, "", build_histogram},
	{"gather", "gather(%0, (%1 & %g), axis = %b)", 5, ON_ANY | TILE, "", build_gather},
};
const rules order_rules = RULES(table);
