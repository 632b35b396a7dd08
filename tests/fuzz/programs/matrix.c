/* Matrix products: operands so small that every partial sum is exact, in whatever order and width it is kept. */
#include "generate.h"

typedef struct kind {
	scalar result, operand;
	int bits; /* of an operand that take part */
	const char *word;
} kind;
static const kind kinds[] = {
	{SCALAR_I32, SCALAR_I8, 0, ""},
	{SCALAR_F32, SCALAR_F16, 11, ""},
	{SCALAR_F32, SCALAR_BF16, 8, ""},
	{SCALAR_F32, SCALAR_F32, 11, ""},
	{SCALAR_F32, SCALAR_F32, 11, ", precision = \"tf32x3\""},
	{SCALAR_F32, SCALAR_F32, 24, ", precision = \"ieee\""},
	{SCALAR_F64, SCALAR_F64, 53, ""},
	{SCALAR_F16, SCALAR_F16, 11, ", out = f16"},
};
enum { NKINDS = sizeof kinds / sizeof *kinds };

static bool build_dot(gen *g, node *n, int depth)
{
	shape s = n->type.shape;
	if (s.rank != 2 && s.rank != 3) return false;
	const kind *k = &kinds[rng_below(&g->rng, NKINDS)];
	for (int i = 0; k->result != n->type.s && i < NKINDS; i++) k = &kinds[i];
	if (k->result != n->type.s) return false;
	int bits = rng_between(&g->rng, 0, 6), batch = s.rank - 2;
	while (bits && (shape_elements(&s) / s.dim[batch + 1] << bits > 2 * g->elements ||
			       shape_elements(&s) / s.dim[batch] << bits > 2 * g->elements))
		bits--;
	if (shape_elements(&s) / s.dim[batch + 1] > 2 * g->elements) return false;
	tile_type a = n->type, acc = n->type;
	a.s = k->operand;
	if (type_float(&a)) {
		acc.mag--;
		a.mag = (acc.mag - bits) / 2;
		a.frac /= 2;
		if (a.mag < 0 || acc.mag - bits < 0) return false;
		while (a.mag + a.frac > k->bits && a.frac) a.frac--;
		while (a.mag + a.frac > k->bits) a.mag--;
	}
	tile_type b = a;
	a.shape.dim[batch + 1] = b.shape.dim[batch] = extent_below(g, 1 << bits);
	n->word = k->word;
	return with(n, expression(g, a, depth)) && with(n, expression(g, b, depth)) &&
	       with(n, expression(g, acc, depth));
}

/* fp8 has no arithmetic: operands are whole numbers of up to 4, cast. Tensor cores keep about 14 bits of a running sum
 * of fp8 products: here 9 bits of products and as many of what they are added to, with two below the point. */
static bool build_fp8(gen *g, node *n, int depth)
{
	shape s = n->type.shape;
	if (n->type.s != SCALAR_F32 || s.rank != 2 || n->type.mag < 11) return false;
	tile_type a = type_of(SCALAR_F16, s), b = a, acc = n->type;
	a.mag = b.mag = 2;
	a.frac = b.frac = 0;
	a.shape.dim[1] = b.shape.dim[0] = 32;
	acc.mag = 9;
	if (acc.frac > 2) acc.frac = 2;
	if (shape_elements(&a.shape) > 4 * g->elements || shape_elements(&b.shape) > 4 * g->elements) return false;
	n->word = rng_percent(&g->rng, 50) ? "f8e4m3" : "f8e5m2";
	return with(n, expression(g, a, depth)) && with(n, expression(g, b, depth)) &&
	       with(n, expression(g, acc, depth));
}

static const rule table[] = {
	{"dot with acc", "(dot(%0, %1, %2%W) + 0.0)", 6, ON_FLOAT | TILE, "", build_dot},
	{"dot", "(%2 + dot(%0, %1%W) + 0.0)", 4, ON_FLOAT | TILE, "", build_dot},
	{"dot i8", "dot(%0, %1, %2%W)", 6, ON_INT | TILE, "", build_dot},
	{"dot fp8", "(dot(%0.to(f8e4m3), %1.to(%W), %2) + 0.0)", 3, ON_FLOAT | TILE, "", build_fp8},
};
const rules matrix_rules = RULES(table);
