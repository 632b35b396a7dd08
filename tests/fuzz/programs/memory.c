/* Loads: of the inputs, from anywhere inside; of the program's own part of a buffer that it also writes; of tensors. */
#include "generate.h"

#include <string.h>

static const char *const load_options[] = {"", "", "", "", ", cache = \"ca\"", ", cache = \"cg\"", ", cache = \"cs\"",
	", cache = \"cv\"", ", evict = \"first\"", ", evict = \"last\"", ", volatile = true"};

static const buffer *random_buffer(gen *g, int kind)
{
	const buffer *found = NULL;
	int seen = 0;
	for (int i = 0; i < g->program->nbuffers; i++)
		if ((int)g->program->buffers[i].kind == kind && rng_below(&g->rng, ++seen) == 0)
			found = &g->program->buffers[i];
	return found;
}

static tile_type element_type(const buffer *b, shape s)
{
	return (tile_type){.s = b->s, .shape = s, .mag = b->mag, .frac = b->frac};
}

/* The load of whatever type the buffer has, then what makes the wanted value of it. */
static bool load_of(gen *g, node *n, int depth, int kind, int within)
{
	const buffer *b = random_buffer(g, kind);
	if (!b) return false;
	node *load = node_new(g->program, n->rule, element_type(b, n->type.shape));
	if (!build_kids(g, load, depth > 1 ? 1 : depth)) return false;
	load->buffer = b;
	load->word = load_options[rng_below(&g->rng, (int)(sizeof load_options / sizeof *load_options))];
	load->number[0] = rng_below(&g->rng, MAX_RANK * MAX_RANK);
	load->number[1] = power_below(within) - 1;
	load->number[2] = shape_elements(&n->type.shape);
	node *c = convert(g, load, n->type);
	if (!c) return false;
	*n = *c;
	return true;
}

static bool build_gathered(gen *g, node *n, int depth)
{
	return load_of(g, n, depth, INPUT, g->program->n);
}

static bool build_whole(gen *g, node *n, int depth) /* without a mask: the tile lies inside */
{
	return shape_elements(&n->type.shape) <= g->program->n && load_of(g, n, depth, INPUT, g->program->n);
}

static bool build_owned(gen *g, node *n, int depth)
{
	return load_of(g, n, depth, OWNED, g->program->region);
}

static bool build_owned_whole(gen *g, node *n, int depth)
{
	return shape_elements(&n->type.shape) <= g->program->region && load_of(g, n, depth, OWNED, g->program->region);
}

/* ---- tensors: any index is legal ---- */

static bool tensor_of(gen *g, node *n, int depth, int rank)
{
	const buffer *b = random_buffer(g, INPUT);
	if (!b || n->type.shape.rank != rank) return false;
	node *load = node_new(g->program, n->rule, element_type(b, n->type.shape));
	load->buffer = b;
	int left = g->program->n;
	for (int i = 0; i < rank; i++) {
		int extent =
			i + 1 < rank ? rng_between(&g->rng, 1, left < 24 ? left : 24) : rng_between(&g->rng, 0, left);
		load->number[i] = extent;
		left /= extent ? extent : 1;
		if (!with(load, expression(g, type_of(SCALAR_I32, scalar_shape), depth > 1 ? 1 : depth))) return false;
	}
	node *c = convert(g, load, n->type);
	if (!c) return false;
	*n = *c;
	return true;
}

static bool build_tensor1(gen *g, node *n, int depth)
{
	return tensor_of(g, n, depth, 1);
}
static bool build_tensor2(gen *g, node *n, int depth)
{
	return tensor_of(g, n, depth, 2);
}
static bool build_tensor3(gen *g, node *n, int depth)
{
	return tensor_of(g, n, depth, 3);
}

#define ON ON_ANY | KERNEL
static const rule table[] = {
	{"load gathered", "load(%p + (%0 & %b)%W)", 8, ON, "i", build_gathered},
	{"load masked", "load(%p + (%0 & %b), mask = %1, other = %2%W)", 8, ON, "ib=", build_gathered},
	{"load masked, no other", "load(%p + (%0 & %b), mask = %1%W)", 4, ON, "ib", build_gathered},
	{"load tail", "load(%p + (pid * %c + %L), mask = pid * %c + %L < n, other = %0%W)", 12, ON | LEAF, "=",
		build_gathered},
	{"load tail, no other", "load(%p + pid * %c + %L, mask = pid * %c + %L < n%W)", 10, ON | LEAF, "",
		build_gathered},
	{"load whole", "load(%p + %L%W)", 10, ON | LEAF, "", build_whole},
	{"load unaligned", "load(%p + min(pid * %c, n - %c) + %L%W)", 6, ON | LEAF, "", build_whole},
	{"load range check", "load(%p + %0, mask = (%0 >= 0) & (%0 < n)%W)", 4, ON, "i", build_gathered},
	{"load wide offset", "load(%p + (%0.to(i64) & %b)%W)", 3, ON, "u", build_gathered},
	{"load where pointer", "load(where(%0, %p + (%1 & %b), %p + n - 1 - (%2 & %b)))", 3, ON, "bii", build_gathered},
	{"load by get", "get(%p, (%0 & %b), %1)", 3, ON, "ib", build_gathered,
		"fn get(p, at, m) { return load(p + at, mask = m); }"},
	{"load own gathered", "load(%p + base + (%0 & %b)%W)", 8, ON, "i", build_owned},
	{"load own masked", "load(%p + (base + (%0 & %b)), mask = %1, other = %2%W)", 6, ON, "ib=", build_owned},
	{"load own whole", "load(%p + base + %L%W)", 6, ON | LEAF, "", build_owned_whole},
	{"tensor.load 1", "tensor(%p, shape = [%a]).load([%0 % 77], %s)", 4, ON | TILE, "", build_tensor1},
	{"tensor.load 1 far", "tensor(%p, shape = [n]).load([%0], %s)", 2, ON | TILE, "", build_tensor1},
	{"tensor.load 2", "tensor(%p, shape = [%a, %b]).load([%0 % 19, %1 % 37], %s)", 6, ON | TILE, "", build_tensor2},
	{"tensor.load 2 strides", "tensor(%p, shape = [%b, %a], strides = [1, %b]).load([%0 % 19, %1 % 37], %s)", 4,
		ON | TILE, "", build_tensor2},
	{"tensor.load 3", "tensor(%p, shape = [%a, %b, %c]).load([%0 % 7, %1 % 9, %2 % 37], %s)", 4, ON | TILE, "",
		build_tensor3},
	{"block_ptr", "load(advance(block_ptr(tensor(%p, shape = [%a, %b]), [%0 % 9, 0], %s), [0, %1 % 11]))", 3,
		ON | TILE, "", build_tensor2},
};
const rules memory_rules = RULES(table);
