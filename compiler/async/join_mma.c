/* Products by the parts of one tile become one instruction.
 *
 * In: a mapped function; tiles whose extents are no powers of two have been cut (cut_extents.c), so b's columns come in
 * parts, each with a multibuffer and a product of its own.  Out: the parts lie side by side in each slot, and the first
 * product's instructions are the others' too (joined):
 *     %b = multibuffer : f16[64,128]                 %b = multibuffer : f16[64,128]
 *     %c = multibuffer : f16[64,64]           ->     %c = multibuffer %b : f16[64,64]
 *     %s = wgmma %a, %i, %b, %i, %x                  %s = wgmma %a, %i, %b, %i, %x            m64n192
 *     %t = wgmma %a, %i, %c, %i, %y                  %t = wgmma %a, %i, %c, %i, %y {joined=1} none
 *
 * The one idea: where both parts have the same panels, panels that lie behind one another are a wider tile.
 * An instruction reads 64 rows of a and n columns of b.  With 16-bit types it takes n / 2 cycles for each k16, and the
 * reads, at 128 bytes a cycle, 16 + n / 4: one of 32 columns takes 24 cycles and not 16, and several of them keep
 * shared memory from the copies that fill it (docs/products.md).
 *
 * A wait counts the groups behind the one that it is for, and a joined product is in the group of the first one.
 * (ptxas makes an instruction of m64n8k16 of an empty group.)  Where several ways lead to a wait, the fewest groups
 * count: to wait for more than is needed is right. */
#include "passes/passes.h"
#include "scratch.h"
#include "target/nvptx/mma/wgmma.h"

#include <assert.h>

/* Carried round its loop without anybody looking at it: the lowering keeps such a sum in registers of its own, which an
 * instruction of another operation can name.  *zero: it begins as 0. */
static bool is_in_flight(const ir_op *wgmma, const wgmma_plan *p, bool *zero)
{
	uint64_t bits;
	const ir_value *sum = p->sum;
	if (!sum || sum->def || !sum->index || sum->block != wgmma->block) return false;
	const ir_op *loop = sum->block->parent;
	if (loop->kind != IR_FOR || ir_only_user(sum) != wgmma) return false;
	assert(sum->index <= loop->nresults);
	*zero = ir_is_const(ir_arg(loop, 2 + sum->index), &bits) && bits == 0;
	return ir_only_user(wgmma->results[0]) == wgmma->block->last &&
	       ir_arg(wgmma->block->last, sum->index - 1u) == wgmma->results[0];
}

/* Whether a tile of the same panels, behind this one, goes on where its `columns` end: with a panel, and without a gap,
 * as there is behind one that is no multiple of WGMMA_ALIGN, or that has more columns (whole_panels.c). */
static bool ends_with_panel(const wgmma_operand *b, uint32_t columns)
{
	const wgmma_tile *t = &b->tile;
	if (t->type.dim[t->type.rank - 2u + (1u - t->k)] != columns) return false;
	if (ir_elements(t->type) * ir_element_bytes(t->type) != t->bytes) return false;
	unsigned m = t->type.rank - 2u;
	uint32_t along = t->type.dim[m + t->fast] * ir_element_bytes(t->type);
	return t->fast == t->k ? along == t->swizzle : along % t->swizzle == 0;
}

/* `last`: the multibuffer of the part in front. */
static bool may_follow(const ir_op *last, const ir_op *next)
{
	const ir_op *o = last->block == next->block ? last : NULL;
	if (last == next) return false; /* two products by one tile */
	if (next->nargs) return ir_arg(next, 0)->def == last;
	if (ir_get_stages(last) != ir_get_stages(next)) return false;
	if (multibuffer_next_in_slot(last)) return false;
	while (o && o != next) o = o->next;
	return o != NULL;
}

/* What one instruction is made of so far. */
typedef struct joined {
	const ir_op *first;
	wgmma_plan plan; /* its */
	wgmma_plan last; /* of the newest product */
	uint32_t columns;
	bool zero; /* the sums begin as 0 */
} joined;

static bool begins(const ir_func *f, ir_op *o, joined *j)
{
	*j = (joined){.first = o};
	if (o->kind != IR_WGMMA || !wgmma_plan_make(o, f->num_warps, &j->plan)) return false;
	const wgmma_shape *s = &j->plan.shape;
	j->last = j->plan;
	j->columns = s->width;
	return o->results[0]->type.rank == 2 && s->columns == 1 && s->width == o->results[0]->type.dim[1] &&
	       j->plan.operand[0].place != WGMMA_SCRATCH && j->plan.operand[1].place == WGMMA_MULTIBUFFER &&
	       is_in_flight(o, &j->plan, &j->zero);
}

static bool same_operand(const wgmma_operand *a, const wgmma_operand *b)
{
	return a->value == b->value && a->slot == b->slot && a->place == b->place;
}

static bool goes_on(const ir_func *f, const joined *j, const joined *next)
{
	const wgmma_operand *b = &j->last.operand[1], *c = &next->plan.operand[1];
	return same_operand(&j->plan.operand[0], &next->plan.operand[0]) && b->slot == c->slot &&
	       b->tile.type.elem == c->tile.type.elem && b->tile.fast == c->tile.fast && b->tile.k == c->tile.k &&
	       b->tile.swizzle == c->tile.swizzle && ir_get_transposed(j->first) == ir_get_transposed(next->first) &&
	       j->zero == next->zero && j->plan.shape.rows == next->plan.shape.rows &&
	       j->first->block == next->first->block && ends_with_panel(b, j->last.shape.width) &&
	       wgmma_takes_columns(f, j->plan.form, j->columns + next->columns) &&
	       may_follow(b->value->def, c->value->def);
}

/* The product's second operand lies behind the tile of `front`. */
static void lay_behind(ir_func *f, ir_op *wgmma, const wgmma_plan *p, const ir_op *front)
{
	ir_op *multibuffer = ir_arg(wgmma, p->operand[1].arg)->def;
	assert(multibuffer->kind == IR_MULTIBUFFER);
	if (!multibuffer->nargs) ir_add_arg(f, multibuffer, front->results[0]);
}

static bool join(ir_func *f, ir_block *b)
{
	joined open = {0}, now;
	bool some = false;
	for (ir_op *o = b->first; o; o = o->next) {
		for (unsigned r = 0; r < o->nregions; r++) some |= join(f, o->regions[r]);
		bool fits = begins(f, o, &now);
		if (fits && open.first && goes_on(f, &open, &now)) {
			lay_behind(f, o, &now.plan, open.last.operand[1].value->def);
			ir_set_joined(o, true);
			open.columns += now.columns;
			open.last = now.plan;
			some = true;
		} else {
			open = fits ? now : (joined){0};
		}
	}
	return some;
}

/* ---- waits ---- */

static void find_product(ir_op *o, void *context)
{
	*(bool *)context |= o->kind == IR_WGMMA;
}

static bool has_products(ir_block *b)
{
	bool found = false;
	ir_walk(b, find_product, &found);
	return found;
}

enum { MOST_WAYS = 8 }; /* into and round loops, one after the other, that are looked at */

static unsigned groups_of(const ir_op *, unsigned, unsigned);

static unsigned fewer(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* How many groups the newest `products` are: those of a loop's last iteration, or, if it has none, of what is in
 * front. */
static unsigned groups_of_loop(const ir_op *loop, unsigned products, unsigned ways)
{
	assert(loop->nregions);
	if (loop->kind != IR_FOR || !ways) return 0;
	return fewer(groups_of(loop->regions[0]->last, products, ways - 1), groups_of(loop, products, ways - 1));
}

/* The same in front of an operation.  Where all older ones are done, or there are no others, any number is right. */
static unsigned groups_of(const ir_op *behind, unsigned products, unsigned ways)
{
	for (const ir_op *o = behind->prev; o; o = o->prev) {
		bool inside = false;
		if (!products || (o->kind == IR_WGMMA_WAIT && !ir_get_pending(o))) return products;
		for (unsigned r = 0; r < o->nregions; r++) inside |= has_products(o->regions[r]);
		if (inside) return groups_of_loop(o, products, ways);
		if (o->kind == IR_WGMMA) return groups_of(o, products - 1, ways) + !ir_get_joined(o);
	}
	const ir_op *around = behind->block->parent;
	if (!products || !around) return products;
	if (has_products(behind->block) && ir_is_loop(around)) return groups_of_loop(around, products, ways);
	return groups_of(around, products, ways);
}

static void count_groups(ir_op *o, void *context)
{
	(void)context;
	if (o->kind == IR_WGMMA_WAIT) ir_set_pending(o, groups_of(o, ir_get_pending(o), MOST_WAYS));
}

bool pass_join_mma(pass_context *c, ir_func *f)
{
	(void)c;
	if (join(f, f->body)) ir_walk(f->body, count_groups, NULL);
	return true;
}
