/* Products are made transposed where only then warpgroups can make them, or where it saves a way through shared memory.
 *
 * In: the tile level, after prepare_dots.  Out: the same meaning; a dot whose rows do not fill a warpgroup's 64, while
 * its columns do, is its transposed product with a and b swapped.  So is one whose second operand is computed, as
 * weights that are converted are, and lies along k: as the first one it stays in registers.
 *     %s = dot %a, %b, %acc : f32[16,128]          %u = permute %b : f16[128,64]
 *                                                  %v = permute %a : f16[64,16]
 *                                          ->      %w = permute %acc : f32[128,16]
 *                                                  %t = dot %u, %v, %w {swapped=1} : f32[128,16]
 *                                                  %s = permute %t : f32[16,128]
 * So are the products of other rows by the same b: 144 rows are 128 and 16 (cut_extents.c), and 128 and 16 columns of
 * an instruction are 144 of one (join_mma.c).
 * The one idea: a transposition in registers is another name of the same layout, and in shared memory another
 * descriptor, so it costs nothing.  A sum that a loop carries from product to product is carried transposed: then
 * products of several iterations may be in flight.
 *
 * Which dots: wgmma_swap_refusal (wgmma_select.c).  Dots that read one load swap together or not at all: where one of
 * them stays with mma.sync, the load's tile could not be read in place. */
#include "passes/passes.h"
#include "target/nvptx/mma/family.h"
#include "target/nvptx/mma/wgmma.h"

typedef struct swaps {
	pass_context *pass;
	VEC(ir_op *) dots;
	bool changed;
} swaps;

static bool is_transposition(const ir_op *o)
{
	return o && o->kind == IR_PERMUTE && wgmma_swaps(o);
}

static ir_value *transposed(ir_builder *b, ir_value *v)
{
	uint64_t bits;
	unsigned rank = v->type.rank;
	assert(rank == 2 || rank == 3);
	ir_type t = v->type;
	t.dim[rank - 2] = v->type.dim[rank - 1];
	t.dim[rank - 1] = v->type.dim[rank - 2];
	if (is_transposition(v->def)) return ir_arg(v->def, 0);
	if (ir_is_const(v, &bits)) return ir_constant(b, t, bits);
	ir_value *out = ir_build1(b, IR_PERMUTE, t, 1, &v);
	ir_set_order(out->def, ir_pack(rank, rank == 2 ? (const uint16_t[]){1, 0} : (const uint16_t[]){0, 2, 1}));
	return out;
}

/* ---- which dots ---- */

static void collect(ir_op *o, void *context)
{
	swaps *s = context;
	if (o->kind == IR_DOT) vec_push(s->pass->arena, &s->dots, o);
}

/* A product of other rows by the same columns that has to be swapped. */
static bool is_beside_another(const swaps *s, const ir_op *dot)
{
	for (uint32_t i = 0; i < s->dots.n; i++) {
		const ir_op *o = s->dots.at[i];
		if (o != dot && o->block == dot->block && ir_arg(o, 1) == ir_arg(dot, 1) && wgmma_may_swap(s->pass, o))
			return true;
	}
	return false;
}

static bool may_swap(const swaps *s, const ir_op *dot)
{
	if (wgmma_may_swap(s->pass, dot)) return true;
	return wgmma_may_swap_beside(s->pass, dot) && is_beside_another(s, dot);
}

/* Those of which there is nothing to say: no transposed product might be made. */
static void leave_out(swaps *s)
{
	VEC(ir_op *) left = {0};
	for (uint32_t i = 0; i < s->dots.n; i++)
		if (may_swap(s, s->dots.at[i])) vec_push(s->pass->arena, &left, s->dots.at[i]);
	for (uint32_t i = 0; i < left.n; i++) s->dots.at[i] = left.at[i];
	s->dots.n = left.n;
}

static void refuse(swaps *s, uint32_t i, const char *why)
{
	vec_push(s->pass->arena, &s->pass->not_swapped, ((pass_note){.op = s->dots.at[i], .why = why}));
	s->dots.at[i] = s->dots.at[--s->dots.n];
	s->changed = true;
}

static bool swaps_too(const swaps *s, const ir_op *dot)
{
	for (uint32_t i = 0; i < s->dots.n; i++)
		if (s->dots.at[i] == dot) return true;
	return false;
}

/* Whoever takes the tile, through permutations, is a product by warpgroups. */
static bool only_warpgroups(const swaps *s, const ir_value *v)
{
	for (const ir_use *u = v->uses; u; u = u->next) {
		const ir_op *o = u->user;
		if (o->kind == IR_PERMUTE ? !only_warpgroups(s, o->results[0])
					  : o->kind != IR_DOT || (!swaps_too(s, o) && mma_why_not_faster(s->pass, o)))
			return false;
	}
	return true;
}

static const ir_value *loaded(const ir_value *v)
{
	while (v->def && v->def->kind == IR_PERMUTE) v = ir_arg(v->def, 0);
	return v;
}

static void choose(swaps *s)
{
	for (uint32_t i = s->dots.n; i-- > 0;) {
		const char *why = wgmma_swap_refusal(s->pass, s->dots.at[i]);
		if (why) refuse(s, i, why);
	}
	do {
		s->changed = false;
		for (uint32_t i = s->dots.n; i-- > 0;)
			for (unsigned k = 0; k < 2; k++)
				if (!only_warpgroups(s, loaded(ir_arg(s->dots.at[i], k)))) {
					refuse(s, i, "something else than products by warpgroups takes an operand");
					break;
				}
		for (uint32_t i = s->dots.n; i-- > 0;)
			if (!may_swap(s, s->dots.at[i])) refuse(s, i, "the product of other rows stays as it is");
	} while (s->changed);
}

/* ---- the product ---- */

static void swap(ir_op *dot)
{
	ir_builder b = {.func = dot->block->func, .block = dot->block, .before = dot, .at = dot->at};
	ir_value *args[3] = {transposed(&b, ir_arg(dot, 1)), transposed(&b, ir_arg(dot, 0)), NULL};
	if (dot->nargs > 2) args[2] = transposed(&b, ir_arg(dot, 2));
	ir_type t = dot->results[0]->type;
	t.dim[t.rank - 2u] = args[0]->type.dim[t.rank - 2u];
	t.dim[t.rank - 1u] = args[1]->type.dim[t.rank - 1u];
	ir_value *sum = ir_build1(&b, IR_DOT, t, dot->nargs, args);
	sum->name = dot->results[0]->name;
	ir_set_precision(sum->def, ir_get_precision(dot));
	ir_set_swapped(sum->def, true);
	ir_replace(dot->results[0], transposed(&b, sum));
	ir_erase(dot);
}

/* ---- round loops ---- */

/* A carried value that only transpositions take, and that is one itself when it is yielded, is carried transposed. */
static void carry_transposed(ir_op *loop, unsigned k)
{
	assert(loop->kind == IR_FOR);
	ir_block *body = loop->regions[0];
	ir_func *f = body->func;
	ir_value *arg = body->args[1 + k], *next = ir_arg(body->last, k), *start = ir_arg(loop, 3 + k);
	if (!is_transposition(next->def) || next->def->block != body) return;
	for (const ir_use *u = arg->uses; u; u = u->next)
		if (!is_transposition(u->user)) return;
	ir_builder front = {.func = f, .block = loop->block, .before = loop, .at = loop->at};
	ir_builder behind = {.func = f, .block = loop->block, .before = loop->next, .at = loop->at};
	ir_value *turned = transposed(&front, start);
	ir_add_arg(f, loop, turned);
	ir_value *result = ir_add_result(f, loop, turned->type), *inside = ir_block_arg(body, turned->type, arg->name);
	ir_add_arg(f, body->last, ir_arg(next->def, 0));
	result->name = loop->results[k]->name;
	while (arg->uses) {
		ir_op *user = arg->uses->user;
		ir_replace(user->results[0], inside);
		ir_erase(user);
	}
	/* what is left of the old one is nobody's */
	ir_set_arg(body->last, k, arg);
	ir_set_arg(loop, 3 + k, ir_constant(&front, arg->type, 0));
	if (loop->results[k]->uses) ir_replace(loop->results[k], transposed(&behind, result));
}

/* Inner loops first: what they carried transposed, the outer one may. */
static void find_loops(ir_block *b)
{
	for (ir_op *o = b->first, *next; o; o = next) {
		next = o->next;
		for (unsigned r = 0; r < o->nregions; r++) find_loops(o->regions[r]);
		if (o->kind != IR_FOR) continue;
		for (unsigned k = 0, n = o->nresults; k < n; k++)
			if (o->results[k]->type.rank >= 2) carry_transposed(o, k);
	}
}

bool pass_transpose_dots(pass_context *p, ir_func *f)
{
	swaps s = {.pass = p};
	if (target_can(p->target, TARGET_WGMMA)) ir_walk(f->body, collect, &s);
	if (!s.dots.n) return true;
	if (!pass_axis(p, f)) return false;
	leave_out(&s);
	choose(&s);
	for (uint32_t i = 0; i < s.dots.n; i++) swap(s.dots.at[i]);
	if (s.dots.n) find_loops(f->body);
	return true;
}
