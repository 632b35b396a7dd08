/* Reductions and scans along any axis.
 *
 * A float sum asks for terms so small that any order of adding them is exact; `+ 0.0` takes the sign of a zero away,
 * which the order may decide.  Functions for `reduce` and `associative_scan` are associative, some of them not
 * commutative. */
#include "generate.h"

#define F_ADD "fn f_add(a, b) { return a + b; }"
#define F_MAX "fn f_max(a, b) { return maximum(a, b); }"
#define F_LAST "fn f_last(a, b) { return b; }"
#define F_FIRST "fn f_first(a, b) { return a; }"
#define F_AFFINE "fn f_affine(a, b, c, d) { return (a * c, b * c + d); }"
#define F_BEST "fn f_best(a, i, b, j) { return (maximum(a, b), a > b || (a == b && i < j) ? i : j); }"

static int log2_of(int n)
{
	int k = 0;
	while (1 << k < n) k++;
	return k;
}

/* The shape before axis `a` went. */
static bool before(gen *g, const shape *after, int axis, shape *s)
{
	if (after->rank == MAX_RANK) return false;
	int most = 2 * g->elements / shape_elements(after), extent = 1 << rng_below(&g->rng, 7);
	while (extent > most && extent > 1) extent /= 2;
	extent = extent_below(g, extent);
	*s = *after;
	for (int i = s->rank++; i > axis; i--) s->dim[i] = s->dim[i - 1];
	s->dim[axis] = extent;
	return true;
}

/* Where the axis is, and how the text names it; `None` with a shape of any rank where all goes. */
static bool operand_shape(gen *g, node *n, shape *s)
{
	char *word = program_alloc(g->program, 32);
	n->word = word;
	shape after = n->type.shape;
	if (after.rank == 0 && rng_percent(&g->rng, 60)) {
		*s = random_shape(g);
		if (!s->rank) *s = (shape){.rank = 1, .dim = {g->elements / 2 ? g->elements / 2 : 1}};
		snprintf(word, 32, "None");
		return true;
	}
	for (int i = 0; i < after.rank; i++) /* an extent of 1 may be what keep_dims left */
		if (after.dim[i] == 1 && rng_percent(&g->rng, 60)) {
			*s = after;
			s->dim[i] = 1 << rng_below(&g->rng, 6);
			if (shape_elements(s) > 2 * g->elements) s->dim[i] = 2;
			s->dim[i] = extent_below(g, s->dim[i]);
			snprintf(word, 32, "%d, keep_dims = true", i);
			return true;
		}
	int axis = rng_below(&g->rng, after.rank + 1);
	if (!before(g, &after, axis, s)) return false;
	snprintf(word, 32, "%d", rng_percent(&g->rng, 30) ? axis - s->rank : axis);
	return true;
}

static bool build_sum(gen *g, node *n, int depth)
{
	tile_type from = n->type;
	if (from.rounded || !operand_shape(g, n, &from.shape)) return false;
	if (type_float(&from)) {
		from.mag -= log2_of(shape_elements(&from.shape) / shape_elements(&n->type.shape));
		if (from.mag < 0) return false;
	} else if (from.s == SCALAR_I32 && rng_percent(&g->rng, 40)) {
		static const scalar narrow[] = {SCALAR_BOOL, SCALAR_I8, SCALAR_I16};
		from.s = narrow[rng_below(&g->rng, 3)];
	} else if (from.s == SCALAR_U32 && rng_percent(&g->rng, 40))
		from.s = rng_percent(&g->rng, 50) ? SCALAR_U8 : SCALAR_U16;
	else if (scalar_bytes(from.s) < 4)
		return false;
	return with(n, expression(g, from, depth)) != NULL;
}

static bool build_same(gen *g, node *n, int depth) /* max, min, any, xor_sum: the operand's type is the result's */
{
	tile_type from = n->type;
	return operand_shape(g, n, &from.shape) && with(n, expression(g, from, depth)) != NULL;
}

static bool build_arg(gen *g, node *n, int depth)
{
	tile_type from = random_type(g, scalar_shape, ON_NUMBER);
	return n->type.s == SCALAR_I32 && operand_shape(g, n, &from.shape) &&
	       with(n, expression(g, from, depth)) != NULL;
}

static bool build_pair(gen *g, node *n, int depth) /* (a, b): two tiles reduced together, one of them is the result */
{
	tile_type from = n->type;
	return operand_shape(g, n, &from.shape) && with(n, expression(g, from, depth)) &&
	       with(n, expression(g, from, depth));
}

static bool build_best(gen *g, node *n, int depth) /* the place of the greatest, by hand */
{
	tile_type index = n->type, key;
	if (n->type.s != SCALAR_I32 || !operand_shape(g, n, &index.shape)) return false;
	key = random_type(g, index.shape, ON_INT);
	return with(n, expression(g, key, depth)) && with(n, expression(g, index, depth));
}

/* ---- scans: the shape stays ---- */

static bool scan_word(gen *g, node *n)
{
	char *word = program_alloc(g->program, 32);
	int axis = rng_below(&g->rng, n->type.shape.rank);
	n->number[0] = axis;
	snprintf(word, 32, "%d%s", rng_percent(&g->rng, 30) ? axis - n->type.shape.rank : axis,
		rng_percent(&g->rng, 40) ? ", reverse = true" : "");
	n->word = word;
	return true;
}

static bool build_cumsum(gen *g, node *n, int depth)
{
	tile_type from = n->type;
	scan_word(g, n);
	if (from.rounded) return false;
	if (type_float(&from)) {
		from.mag -= log2_of(from.shape.dim[n->number[0]]);
		if (from.mag < 0) return false;
	} else if (from.s == SCALAR_I32 && rng_percent(&g->rng, 40))
		from.s = rng_percent(&g->rng, 50) ? SCALAR_I8 : SCALAR_I16;
	else if (scalar_bytes(from.s) < 4)
		return false;
	return with(n, expression(g, from, depth)) != NULL;
}

static bool build_cumprod(gen *g, node *n, int depth)
{
	return scalar_bytes(n->type.s) >= 4 && scan_word(g, n) && with(n, expression(g, n->type, depth)) != NULL;
}

static bool build_scan(gen *g, node *n, int depth)
{
	return scan_word(g, n) && with(n, expression(g, n->type, depth)) != NULL;
}

static bool build_scan_pair(gen *g, node *n, int depth)
{
	return build_scan(g, n, depth) && with(n, expression(g, n->type, depth)) != NULL;
}

static const rule table[] = {
	{"sum", "sum(%0, axis = %W)", 6, ON_INT, "", build_sum},
	{"float sum", "(sum(%0, axis = %W) + 0.0)", 6, ON_FLOAT, "", build_sum},
	{"reduce max", "max(%0, axis = %W)", 4, ON_ANY, "", build_same},
	{"reduce min", "min(%0, axis = %W)", 4, ON_ANY, "", build_same},
	{"xor_sum", "xor_sum(%0, axis = %W)", 3, ON_INT | ON_BOOL, "", build_same},
	{"any", "any(%0, axis = %W)", 3, ON_BOOL, "", build_same},
	{"all", "all(%0, axis = %W)", 3, ON_BOOL, "", build_same},
	{"argmax", "argmax(%0, axis = %W)", 3, ON_INT, "", build_arg},
	{"argmin", "argmin(%0, axis = %W)", 3, ON_INT, "", build_arg},
	{"reduce f_add", "reduce(%0, f = f_add, axis = %W)", 2, ON_INT, "", build_same, F_ADD},
	{"reduce f_max", "reduce(%0, f = f_max, axis = %W)", 2, ON_NUMBER, "", build_same, F_MAX},
	{"reduce f_last", "reduce(%0, f = f_last, axis = %W)", 2, ON_ANY, "", build_same, F_LAST},
	{"reduce f_first", "reduce(%0, f = f_first, axis = %W)", 2, ON_ANY, "", build_same, F_FIRST},
	{"reduce f_affine", "reduce((%0, %1), f = f_affine, axis = %W)[1]", 2, ON_INT, "", build_pair, F_AFFINE},
	{"reduce f_best", "reduce((%0, %1), f = f_best, axis = %W)[1]", 2, ON_INT, "", build_best, F_BEST},
	{"cumsum", "cumsum(%0, axis = %W)", 4, ON_INT | TILE, "", build_cumsum},
	{"float cumsum", "(cumsum(%0, axis = %W) + 0.0)", 3, ON_FLOAT | TILE, "", build_cumsum},
	{"cumprod", "cumprod(%0, axis = %W)", 2, ON_INT | TILE, "", build_cumprod},
	{"associative_scan f_max", "associative_scan(%0, f = f_max, axis = %W)", 2, ON_NUMBER | TILE, "", build_scan,
		F_MAX},
	{"associative_scan f_last", "associative_scan(%0, f = f_last, axis = %W)", 1, ON_ANY | TILE, "", build_scan,
		F_LAST},
	{"associative_scan f_affine", "associative_scan((%0, %1), f = f_affine, axis = %W)[1]", 3, ON_INT | TILE, "",
		build_scan_pair, F_AFFINE},
};
const rules reduction_rules = RULES(table);
