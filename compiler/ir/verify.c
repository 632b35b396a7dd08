/* The verifier: is this function what passes and lowerings may rely on?
 *
 * In: a function from sema, the reader or a pass.  Out: true, or a sentence about the first thing that is wrong.
 * The one idea: one walk in program order with the set of values that are defined here; entering a region adds to the
 * set, leaving it takes the region's own away, so "defined earlier in the same or an enclosing block" is a look-up.
 * The walk also counts the uses it meets; afterwards every value's use list must have exactly that length.
 * Rules about one operation's types are in verify_types.c. */
#include "verify.h"

#include <assert.h>
#include <string.h>

#include "../layout/layout.h"

typedef struct verifier {
	const ir_func *func;
	text *why;
	ir_value **seen; /* by id: the value that has this id */
	bool *defined;   /* by id: visible where the walk stands */
	uint32_t *uses;  /* by id: operands met */
} verifier;

static bool fail_at(verifier *v, const ir_op *o, const char *half)
{
	text_printf(v->why, "@%s: ", v->func->name);
	if (o && o->nresults && o->results && o->results[0] && o->results[0]->name)
		text_printf(v->why, "%%%s = ", o->results[0]->name);
	text_printf(v->why, "%s: %s", o && o->kind < IR_KIND_COUNT ? ir_info(o)->name : "function", half);
	return false;
}

static bool define(verifier *v, const ir_op *o, ir_value *value)
{
	if (!value || value->id >= v->func->nvalues) return fail_at(v, o, "defines a value without a proper id");
	if (v->seen[value->id]) return fail_at(v, o, "defines a value whose id another value has");
	v->seen[value->id] = value;
	v->defined[value->id] = true;
	return true;
}

static bool check_links(verifier *v, const ir_block *b, const ir_op *o)
{
	if (o->kind >= IR_KIND_COUNT) return fail_at(v, o, "has no row in ops.def");
	if (o->block != b || (o->next ? o->next->prev != o : b->last != o) ||
		(o->prev ? o->prev->next != o : b->first != o))
		return fail_at(v, o, "is not linked into its block");
	for (unsigned i = 0; i < o->nargs; i++) {
		const ir_use *u = o->args[i];
		if (!u || !u->value || u->user != o) return fail_at(v, o, "has an operand without a use");
		if (u->value->id >= v->func->nvalues || v->seen[u->value->id] != u->value || !v->defined[u->value->id])
			return fail_at(v, o, arena_printf(v->why->arena, "operand %u is not defined before it", i));
		v->uses[u->value->id]++;
	}
	for (unsigned i = 0; i < o->nresults; i++)
		if (!o->results[i] || o->results[i]->def != o || o->results[i]->index != i)
			return fail_at(v, o, "has a result that does not point back");
	for (unsigned r = 0; r < o->nregions; r++)
		if (!o->regions[r] || o->regions[r]->parent != o || o->regions[r]->func != v->func)
			return fail_at(v, o, "has a region that does not point back");
	return true;
}

static ir_kind terminator_of(const ir_op *parent, unsigned region)
{
	if (!parent) return IR_RETURN;
	return parent->kind == IR_WHILE && region == 0 ? IR_CONDITION : IR_YIELD;
}

static bool check_block(verifier *, const ir_block *, unsigned region);

static bool check_layout(verifier *v, const ir_op *o, const ir_value *value)
{
	const layout *l = value->layout;
	if (v->func->level == IR_LEVEL_TILE || value->type.rank == 0) {
		if (l) return fail_at(v, o, value->type.rank ? "a layout at the tile level" : "a scalar with a layout");
		return true;
	}
	if (!l) return fail_at(v, o, "a tile without a layout");
	if (l->rank != value->type.rank) return fail_at(v, o, "the layout's rank is not the tile's");
	for (unsigned d = 0; d < l->rank; d++)
		if (l->lg[d] >= 32 || UINT32_C(1) << l->lg[d] != value->type.dim[d])
			return fail_at(v, o, "the layout's extents are not the tile's");
	if (l->nin[LAYOUT_LANE] != 5 || l->nin[LAYOUT_WARP] >= 32 ||
		UINT32_C(1) << l->nin[LAYOUT_WARP] != v->func->num_warps)
		return fail_at(v, o, "the layout is not one of 32 lanes and num_warps warps");
	return true;
}

static bool share(verifier *v, const ir_op *o, const ir_value *a, const ir_value *b)
{
	if (a->type.rank == 0 || b->type.rank == 0 || layout_equal(a->layout, b->layout)) return true;
	return fail_at(v, o, "values that must share a layout differ in it");
}

static bool share_all(verifier *v, const ir_op *o)
{
	for (unsigned i = 1; i < o->nargs; i++)
		if (!share(v, o, ir_arg(o, 0), ir_arg(o, i))) return false;
	for (unsigned i = 0; i < o->nresults; i++)
		if (!share(v, o, ir_arg(o, 0), o->results[i])) return false;
	return true;
}

static bool share_in_for(verifier *v, const ir_op *o)
{
	assert(o->kind == IR_FOR);
	assert(o->nargs == o->nresults + 3u);
	for (unsigned i = 0; i < o->nresults; i++) {
		if (!share(v, o, ir_arg(o, i + 3), o->results[i])) return false;
		if (!share(v, o, o->regions[0]->args[i + 1], o->results[i])) return false;
		if (!share(v, o, ir_arg(o->regions[0]->last, i), o->results[i])) return false;
	}
	return true;
}

static bool share_in_if(verifier *v, const ir_op *o)
{
	assert(o->kind == IR_IF);
	assert(o->nregions == 2);
	for (unsigned i = 0; i < 2u * o->nresults; i++)
		if (!share(v, o, ir_arg(o->regions[i & 1]->last, i / 2), o->results[i / 2])) return false;
	return true;
}

static bool share_in_while(verifier *v, const ir_op *o)
{
	assert(o->kind == IR_WHILE);
	const ir_block *before = o->regions[0], *after = o->regions[1];
	assert(before->nargs == o->nargs && after->nargs == o->nresults);
	for (unsigned i = 0; i < o->nargs; i++) {
		if (!share(v, o, ir_arg(o, i), before->args[i])) return false;
		if (!share(v, o, ir_arg(after->last, i), before->args[i])) return false;
	}
	for (unsigned i = 0; i < o->nresults; i++) {
		if (!share(v, o, ir_arg(before->last, i + 1), o->results[i])) return false;
		if (!share(v, o, after->args[i], o->results[i])) return false;
	}
	return true;
}

/* Operations that take and give elements in place need one layout; those that move data (shape operations, reductions,
 * conversions) have their own rule in the lowering. */
static bool check_shared_layouts(verifier *v, const ir_op *o)
{
	if (v->func->level == IR_LEVEL_TILE || o->nargs == 0) return true;
	switch (ir_info(o)->layouts) {
	case IR_LAYOUTS_same:
	case IR_LAYOUTS_in_place:
	case IR_LAYOUTS_load:
	case IR_LAYOUTS_store: return share_all(v, o);
	case IR_LAYOUTS_dot: return o->nargs < 3 || share(v, o, ir_arg(o, 2), o->results[0]);
	case IR_LAYOUTS_gather: return share(v, o, ir_arg(o, 1), o->results[0]);
	case IR_LAYOUTS_copy:
		for (unsigned i = 2; i < o->nargs; i++)
			if (!share(v, o, ir_arg(o, 0), ir_arg(o, i))) return false;
		return true;
	case IR_LAYOUTS_pairs:
		assert(o->nargs == o->nresults);
		for (unsigned i = 0; i < o->nargs; i++)
			if (!share(v, o, ir_arg(o, i), o->results[i])) return false;
		return true;
	case IR_LAYOUTS_for: return share_in_for(v, o);
	case IR_LAYOUTS_if: return share_in_if(v, o);
	case IR_LAYOUTS_while: return share_in_while(v, o);
	default: return true;
	}
}

static bool check_level(verifier *v, const ir_block *b, const ir_op *o)
{
	const ir_func *f = v->func;
	if (ir_has(o, IR_MAPPED) && f->level == IR_LEVEL_TILE) return fail_at(v, o, "stands at the tile level");
	if (ir_has(o, IR_TILE) && f->level != IR_LEVEL_TILE) return fail_at(v, o, "stands behind the tile level");
	if (ir_has(o, IR_SCHEDULED) && f->level != IR_LEVEL_SCHEDULED)
		return fail_at(v, o, "stands in front of the scheduled level");
	if (o->kind == IR_PARTITIONS && (b->parent || !o->next || o->next->kind != IR_RETURN))
		return fail_at(v, o, "is not the last operation of a mapped function");
	if (f->level == IR_LEVEL_SCHEDULED && o->shared_bytes &&
		(uint64_t)o->shared_offset + o->shared_bytes > f->shared_bytes)
		return fail_at(v, o, "its scratch lies outside the shared memory");
	for (unsigned i = 0; i < o->nresults; i++)
		if (!check_layout(v, o, o->results[i])) return false;
	return check_shared_layouts(v, o);
}

static bool check_op(verifier *v, const ir_block *b, const ir_op *o)
{
	if (!check_links(v, b, o)) return false;
	for (unsigned r = 0; r < o->nregions; r++)
		if (!check_block(v, o->regions[r], r)) return false;
	text half = {.arena = v->why->arena};
	if (!ir_verify_op(o, &half)) return fail_at(v, o, half.at ? half.at : "is malformed");
	if (!check_level(v, b, o)) return false;
	for (unsigned i = 0; i < o->nresults; i++)
		if (!define(v, o, o->results[i])) return false;
	return true;
}

static bool check_block_args(verifier *v, const ir_block *b)
{
	for (uint32_t i = 0; i < b->nargs; i++) {
		ir_value *a = b->args[i];
		if (!a || a->def || a->block != b || a->index != i)
			return fail_at(v, b->parent, "has a block argument that does not point back");
		text half = {.arena = v->why->arena};
		if (!ir_verify_type(a->type, &half)) return fail_at(v, b->parent, half.at);
		if (!define(v, b->parent, a) || !check_layout(v, b->parent, a)) return false;
	}
	return true;
}

static bool check_block(verifier *v, const ir_block *b, unsigned region)
{
	if (!check_block_args(v, b)) return false;
	const ir_kind end = terminator_of(b->parent, region);
	if (!b->last || b->last->kind != end)
		return fail_at(
			v, b->parent, arena_printf(v->why->arena, "a region does not end in %s", ir_ops[end].name));
	for (const ir_op *o = b->first; o; o = o->next) {
		if (!check_op(v, b, o)) return false;
		if (ir_has(o, IR_TERMINATOR) && o->next) return fail_at(v, o, "stands in the middle of a region");
	}
	for (uint32_t i = 0; i < b->nargs; i++) v->defined[b->args[i]->id] = false;
	assert(b->last->kind == end);
	for (const ir_op *o = b->first; o; o = o->next)
		for (unsigned i = 0; i < o->nresults; i++) v->defined[o->results[i]->id] = false;
	return true;
}

static bool check_uses(verifier *v)
{
	for (uint32_t id = 0; id < v->func->nvalues; id++) {
		const ir_value *value = v->seen[id];
		if (!value) continue; /* erased */
		uint32_t n = 0;
		const ir_use *last = NULL;
		for (const ir_use *u = value->uses; u && n <= v->uses[id]; last = u, u = u->next, n++)
			if (u->value != value || u->prev != last)
				return fail_at(v, value->def, "a broken list of uses");
		if (n != v->uses[id])
			return fail_at(v, value->def, "the list of uses is not the operations that use the value");
	}
	return true;
}

static bool check_function(verifier *v)
{
	const ir_func *f = v->func;
	if (f->body->nargs != f->nparams)
		return fail_at(v, NULL, "parameters and the body's arguments differ in number");
	for (uint32_t i = 0; i < f->nparams; i++) {
		const ir_param *p = &f->params[i];
		if (!ir_type_equal(p->type, f->body->args[i]->type) || p->type.rank)
			return fail_at(v, NULL, "a parameter's type is not its argument's, or not a scalar");
		if (p->divisible == 0 || (p->divisible & (p->divisible - 1)))
			return fail_at(v, NULL, "a parameter's divisor is not a power of two");
	}
	bool dealt = f->num_warps == IR_DEALT_WARPS && f->level == IR_LEVEL_TILE; /* deal_rows.c chooses others */
	if (f->num_warps == 0 || f->num_warps > 32 || (f->num_warps & (f->num_warps - 1) && !dealt))
		return fail_at(v, NULL, "num_warps is not a power of two up to 32");
	if (f->row_groups != 1 && f->row_groups != IR_ROW_GROUPS) return fail_at(v, NULL, "no such number of groups");
	if (f->body->parent) return fail_at(v, NULL, "the body has a parent");
	return true;
}

bool ir_verify(const ir_func *f, text *why)
{
	verifier v = {.func = f, .why = why};
	v.seen = ARENA_ARRAY(why->arena, ir_value *, f->nvalues);
	v.defined = ARENA_ARRAY(why->arena, bool, f->nvalues);
	v.uses = ARENA_ARRAY(why->arena, uint32_t, f->nvalues);
	return check_function(&v) && check_block(&v, f->body, 0) && check_uses(&v);
}
