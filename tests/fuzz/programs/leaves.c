/* Rows without operands, or with cheap ones: variables, constants, indices, the place in the grid, random numbers. */
#include "generate.h"

static bool build_variable(gen *g, node *n, int depth)
{
	(void)depth;
	variable *found = NULL;
	int seen = 0;
	for (int i = 0; i < g->nvisible; i++)
		if (type_fits(&g->visible[i]->type, &n->type) && rng_below(&g->rng, ++seen) == 0) found = g->visible[i];
	if (!found) return false;
	n->var[0] = found;
	n->type = found->type;
	return true;
}

node *reference(gen *g, variable *v)
{
	static const rule row = {"variable", "%v", 0, 0, ""};
	node *n = node_new(g->program, &row, v->type);
	n->var[0] = v;
	return n;
}

static bool build_adapted(gen *g, node *n, int depth)
{
	(void)depth;
	if (!g->nvisible) return false;
	variable *v = g->visible[rng_below(&g->rng, g->nvisible)];
	node *c = convert(g, reference(g, v), n->type);
	if (!c) return false;
	*n = *c;
	return true;
}

static bool build_constant(gen *g, node *n, int depth)
{
	(void)depth;
	*n = *constant_expression(g, n->type);
	return true;
}

static bool build_index(gen *g, node *n, int depth)
{
	(void)depth;
	n->number[0] = n->type.shape.rank ? rng_below(&g->rng, n->type.shape.rank) : 0;
	n->number[1] = rng_percent(&g->rng, 70) ? 0 : rng_between(&g->rng, -40, 40);
	return true;
}

static bool build_scalar_i32(gen *g, node *n, int depth)
{
	(void)depth;
	n->number[0] = rng_below(&g->rng, 3);
	return n->type.s == SCALAR_I32;
}

static bool build_random(gen *g, node *n, int depth)
{
	for (int i = 0; i < 2; i++) n->number[i] = rng_below(&g->rng, 1000);
	n->number[1] %= 4;
	return n->type.s == SCALAR_U32 && with(n, expression(g, type_of(SCALAR_I32, n->type.shape), depth));
}

static bool build_uniform(gen *g, node *n, int depth)
{
	n->number[0] = rng_below(&g->rng, 1000);
	return n->type.s == SCALAR_F32 && n->type.rounded &&
	       with(n, expression(g, type_of(SCALAR_I32, n->type.shape), depth));
}

static const rule table[] = {
	{"variable", "%v", 60, ON_ANY | LEAF, "", build_variable},
	{"adapted variable", "", 40, ON_ANY | LEAF, "", build_adapted},
	{"constant", "%K", 10, ON_ANY | LEAF, "", build_constant},
	{"arange", "%I.to(%t)", 14, ON_INT | LEAF, "", build_index},
	{"zeros", "zeros(%s, %t)", 2, ON_NUMBER | TILE | LEAF, ""},
	{"program_id", "program_id(%a)", 5, ON_INT | SCALAR | LEAF, "", build_scalar_i32},
	{"num_programs", "num_programs(%a)", 2, ON_INT | SCALAR | LEAF, "", build_scalar_i32},
	{"const parameter", "(C0 + %a)", 2, ON_INT | SCALAR | LEAF | KERNEL, "", build_scalar_i32},
	{"const bool", "(C1 && %0)", 1, ON_BOOL | SCALAR | KERNEL, "="},
	{"randint", "randint(%a, %0)", 2, ON_INT, "", build_random},
	{"philox", "philox(%a, %0, 1, 2, 3)[%b]", 1, ON_INT, "", build_random},
	{"randint4x", "randint4x(%a, %0)[%b]", 1, ON_INT, "", build_random},
	{"rand", "rand(%a, %0)", 3, ON_ROUNDED, "", build_uniform},
	{"zeros_like", "zeros_like(%0)", 1, ON_NUMBER, "="},
	{"full_like", "full_like(%0, %a)", 1, ON_INT, "="},
};
const rules leaf_rules = RULES(table);
