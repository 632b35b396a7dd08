/* Tile -> mapped: every tile value gets a layout; convert_layout stands where two layouts meet.
 *
 * In: a function at the tile level.  Out: the same function at the mapped level.  The one idea: a value is either
 * anchored, it has one natural layout because of where it comes from, or it floats, it is cheap enough to be computed
 * in whatever layout its user wants.
 *
 *   anchored   loads (the coalesced layout of their class, coalesce.c), sums of dots (their instruction's, mma/sync.h
 *              and wgmma.h), reduction results (the operand's layout without the axis), loop-carried values and results
 *              of control flow, and elementwise and one-to-one shape operations on anchored values: these keep the
 *              layout of their largest anchored operand
 *   floating   constants, aranges, splats, broadcasts, and elementwise operations, shape operations and joins on
 *              floating values: offsets, pointers, masks, random numbers.  They are computed once for each layout in
 *              which someone demands them; the demand goes down to the operands through the inverse of each shape
 *              operation, and ends at anchored values, which are converted there, while they are still narrow: in
 *              x - max(x)[:, None] the maximum is demanded in just the layout that the reduction left it in, and
 *              nothing moves.  Loads of small tiles float too, though they are made once only: x * w[None, :] loads w
 *              the way the product wants it.  So do blocks that are copied to shared memory and from which only
 *              operands in registers are computed (converted weights): they can be read in any layout.
 *
 * Steps:
 *   1. natural layouts by forward sweeps over the whole function.  Loop-carried values start unknown, take the layout
 *      of their initial value, or of what the loop yields, and that of the yield when the two differ (then the initial
 *      value is converted once, not the yield each time round); sweeps repeat until nothing changes.  What is still
 *      unknown (a loop-carried pointer tile made of floating values) gets the coalesced layout of its shape.
 *   2. one walk in program order rewrites operands.  A version of a value in another layout stands directly beside its
 *      definition (so it dominates all uses, and one serves them all): a second copy of a floating operation, or a
 *      convert_layout of an anchored value.  A floating value that is wanted in more than MAX_COPIES layouts is
 *      converted from its first version instead, which bounds the growth.  Nothing is recomputed through a load.
 *   3. floating operations that nobody demanded are dead and leave.
 *
 * Example, f32[64,128] and 4 warps; A = reg (0,1)(0,2)(4,0).. lane (0,4)..(0,64) warp (1,0)(2,0) is the loads' class:
 *   before                                    after
 *   %v = load %p : f32[64,128]                %v = load %p   <A>
 *   %m = reduce %v {axis=1} : f32[64]         %m = reduce %v <A without dimension 1>
 *   %e = expand_dims %m {axis=1}              %e = expand_dims %m <the same, a dimension more>
 *   %b = broadcast %e                         %b = broadcast %e <A>      floating; its operand has what A asks of it
 *   %d = sub %v, %b                           %d = sub %v, %b <A>        anchored by %v
 *
 * join puts its new bit into a register, split takes it from one: neither moves data once its operand lies so.
 * Reductions and scans take their operands as they lie: a butterfly works for any layout (docs/layout.md); sorts want
 * lines (layout_lines), and so do scans that would move more between warps than it takes to make lines.  Stores take
 * the value as it lies unless converting it pays (coalesce_convert_pays). */
#include "coalesce.h"
#include "target/nvptx/mma/sync.h"
#include "async/scratch.h"
#include "target/nvptx/mma/wgmma.h"

#include <string.h>

enum { MAX_COPIES = 8, MAX_SWEEPS = 12 };

typedef struct version {
	const layout *mapping;
	ir_value *value;
	struct version *next;
} version;

/* A version that waits for its operands. */
typedef struct waiting {
	ir_value *value;
	const layout *mapping;
	ir_op *op; /* under construction; null: not begun */
	unsigned next;
} waiting;

typedef struct assigner {
	arena *arena;
	ir_func *func;
	coalesce access;
	VEC(const layout *) interned; /* equal layouts are one pointer */
	uint32_t nvalues;             /* before the pass */
	/* by id of the values before the pass: */
	const layout **natural; /* null: floating or scalar */
	uint8_t *changes;       /* how often a carried value's layout was revised */
	version **versions;     /* all but the natural one */
	ir_value ***operands;   /* a floating operation's own ones, once it serves as a version */
	VEC(waiting) stack;
	bool changed, frozen;
} assigner;

/* What the column layouts of ops.def names: layouts_NAME, below. */
typedef struct rule {
	/* Of the results that are tiles; null where they float. */
	const layout *(*natural)(assigner *, const ir_op *);
	/* In its place, of an operation with regions: what flows into carried values meets. */
	void (*sweep)(assigner *, ir_op *);
	/* Demands the operands' layouts; the results have theirs. */
	void (*rewrite)(assigner *, ir_op *);
	/* How argument i must come for the result to have layout l; null: in l. */
	layout (*pull)(const ir_op *, const layout *l, unsigned i);
} rule;

static const rule *rule_of(const ir_op *);

/* A carried value about which nothing is known yet, and whatever is computed from it alone. */
static const layout unknown;

static const layout *intern(assigner *a, const layout *l)
{
	if (l == &unknown) return l;
	assert(layout_plain(l));
	for (uint32_t i = 0; i < a->interned.n; i++)
		if (layout_equal(a->interned.at[i], l)) return a->interned.at[i];
	layout *copy = ARENA_NEW(a->arena, layout);
	*copy = *l;
	vec_push(a->arena, &a->interned, copy);
	return copy;
}

static const layout *natural(const assigner *a, const ir_value *v)
{
	assert(v->id < a->nvalues);
	return a->natural[v->id];
}

static bool is_anchored(const layout *l)
{
	return l && l != &unknown;
}

static const layout *or_default(assigner *a, const layout *l, const ir_value *v)
{
	return is_anchored(l) ? l : intern(a, coalesce_of_value(&a->access, v));
}

static void permute_order(const ir_op *o, uint8_t order[IR_MAX_RANK])
{
	for (unsigned i = 0; i < IR_MAX_RANK; i++) order[i] = (uint8_t)ir_unpack(ir_get_order(o), i);
}

/* ---- 1. natural layouts ---- */

/* The layout of the largest anchored operand; unknown if only that is known. */
static const layout *of_operands(assigner *a, const ir_op *o)
{
	const layout *best = NULL;
	unsigned bytes = 0;
	for (unsigned i = 0; i < o->nargs; i++) {
		const ir_value *v = ir_arg(o, i);
		const layout *l = ir_is_scalar(v) ? NULL : natural(a, v);
		if (!l || (l == &unknown && best)) continue;
		if (l == &unknown)
			best = l;
		else if (!is_anchored(best) || ir_element_bytes(v->type) > bytes) {
			best = l;
			bytes = ir_element_bytes(v->type);
		}
	}
	return best;
}

static const layout *of_expand(assigner *a, const ir_op *o)
{
	const layout *from = of_operands(a, o);
	if (!is_anchored(from)) return from;
	layout l = layout_expand(from, ir_get_axis(o));
	return intern(a, &l);
}

static const layout *of_reshape(assigner *a, const ir_op *o)
{
	const layout *from = of_operands(a, o);
	if (!is_anchored(from)) return from;
	layout l = layout_reshape(from, o->results[0]->type);
	return intern(a, &l);
}

static const layout *of_permute(assigner *a, const ir_op *o)
{
	const layout *from = of_operands(a, o);
	uint8_t order[IR_MAX_RANK];
	if (!is_anchored(from)) return from;
	permute_order(o, order);
	layout l = layout_permute(from, order);
	return intern(a, &l);
}

/* Many layouts have the operand's as their source. */
static const layout *of_broadcast(assigner *a, const ir_op *o)
{
	const layout *from = of_operands(a, o);
	return is_anchored(from) ? NULL : from;
}

static const layout *of_nothing(assigner *a, const ir_op *o)
{
	(void)a, (void)o;
	return NULL;
}

/* Does a product take what is made, element by element, from the value as an operand, not as the sum, wherever it
 * stands?  Each warp reads it then, many times over: it comes from memory once, in wide accesses. */
static bool is_multiplied(const ir_value *v, unsigned steps)
{
	for (const ir_use *u = v->uses; u && steps; u = u->next, steps--) {
		const ir_op *o = u->user;
		if ((o->kind == IR_DOT || o->kind == IR_WGMMA) && (o->args[0] == u || o->args[1] == u)) return true;
		if (!ir_has(o, IR_ELEMENTWISE) && o->kind != IR_PERMUTE) continue;
		if (is_multiplied(o->results[0], steps - 1)) return true;
	}
	return false;
}

/* A product by warpgroups stands beside the load, in a loop: a conversion would make all threads meet there, where the
 * copies' barriers let each warpgroup go its own way. */
static bool is_beside_product(const ir_op *load)
{
	if (!load->block->parent || load->block->parent->kind != IR_FOR) return false;
	for (const ir_op *o = load->block->first; o; o = o->next)
		if (o->kind == IR_WGMMA && coalesce_is_narrow_beside(load, ir_elements(o->results[0]->type)))
			return true;
	return false;
}

/* A load that takes the layout in which it is first wanted. */
static bool floats(assigner *a, const ir_op *load)
{
	if (ir_get_volatile(load) || (!coalesce_is_narrow(&a->access, load) && !is_beside_product(load)) ||
		is_multiplied(load->results[0], IR_MOST_STEPS))
		return false;
	for (unsigned i = 0; i < load->nargs; i++)
		if (natural(a, ir_arg(load, i))) return false;
	return true;
}

/* Of the halves; their operand is wanted joined again. */
static const layout *of_split(assigner *a, const ir_op *o)
{
	layout l = layout_split_source(or_default(a, natural(a, ir_arg(o, 0)), ir_arg(o, 0))), half;
	if (!layout_unjoin(&l, &half)) return or_default(a, NULL, o->results[0]);
	return intern(a, &half);
}

static const layout *joined(assigner *a, const ir_op *o, const layout *from)
{
	layout l = layout_everywhere(a->func->num_warps);
	if (!ir_is_scalar(ir_arg(o, 0))) l = *or_default(a, from, ir_arg(o, 0));
	l = layout_join(&l);
	return intern(a, &l);
}

static const layout *of_join(assigner *a, const ir_op *o)
{
	const layout *from = of_operands(a, o);
	return from || ir_is_scalar(ir_arg(o, 0)) ? joined(a, o, from) : NULL;
}

/* A join whose halves would have to change threads for its result to have layout l. */
static bool is_join_across(const ir_op *o, const layout *l)
{
	layout half;
	return o->kind == IR_JOIN && !layout_unjoin(l, &half);
}

/* The index lies where the result does; the tile that it picks from goes through shared memory anyway. */
static const layout *of_gather(assigner *a, const ir_op *o)
{
	const ir_value *x = ir_arg(o, 0), *index = ir_arg(o, 1);
	if (is_anchored(natural(a, index))) return natural(a, index);
	return or_default(a, ir_same_shape(x->type, index->type) ? natural(a, x) : NULL, o->results[0]);
}

static void plan_dot(const assigner *a, const ir_op *o, mma_layouts *out)
{
	mma_layouts_of(o, mma_form_of(a->access.context->target, o), a->func->num_warps, out);
}

static const layout *of_dot(assigner *a, const ir_op *o)
{
	mma_layouts product;
	plan_dot(a, o, &product);
	return intern(a, &product.sum);
}

static const layout *of_wgmma(assigner *a, const ir_op *o)
{
	layout l = layout_wgmma_accumulator(o->results[0]->type, a->func->num_warps);
	return intern(a, &l);
}

/* The value, perhaps transposed, is an operand that a product takes from registers: any of mma.sync, the first of
 * wgmma. */
static bool is_taken_from_registers(const assigner *a, const ir_use *u)
{
	const ir_op *o = u->user;
	if (o->kind == IR_DOT) return o->args[0] == u || o->args[1] == u;
	return o->kind == IR_WGMMA && o->args[0] == u && wgmma_wants_registers(a->access.context, o);
}

/* Nobody takes the value but products from registers, and nothing but what is computed of it, element by element. */
static bool is_operand(const assigner *a, const ir_value *v, unsigned steps)
{
	for (const ir_use *u = v->uses; u; u = u->next) {
		const ir_op *o = u->user;
		bool passes = ir_has(o, IR_ELEMENTWISE) || o->kind == IR_PERMUTE;
		if (!is_taken_from_registers(a, u) && (!passes || !steps || !is_operand(a, o->results[0], steps - 1)))
			return false;
	}
	return v->uses != NULL;
}

/* No product takes the value as it is, transposed at most: from shared memory, wgmma would. */
static bool is_computed_with(const ir_value *v)
{
	for (const ir_use *u = v->uses; u; u = u->next) {
		const ir_op *o = u->user;
		if (!ir_has(o, IR_ELEMENTWISE) && (o->kind != IR_PERMUTE || !is_computed_with(o->results[0])))
			return false;
	}
	return true;
}

/* From shared memory any layout can be read: as products want the operands that are computed of it; else 16 bytes a
 * thread. */
static const layout *of_block(assigner *a, const ir_op *o)
{
	if (is_computed_with(o->results[0]) && is_operand(a, o->results[0], IR_MOST_STEPS)) return NULL;
	ir_type t = o->results[0]->type;
	uint8_t order[IR_MAX_RANK];
	for (unsigned i = 0; i < t.rank; i++) order[i] = (uint8_t)(t.rank - 1u - i);
	layout l = layout_coalesced(t, 4 - lg2(scalar_bytes(t.elem)), order, a->func->num_warps);
	return intern(a, &l);
}

static const layout *of_load(assigner *a, const ir_op *o)
{
	const layout *from = natural(a, ir_arg(o, 0));
	if (is_anchored(from)) return from;
	return floats(a, o) ? NULL : intern(a, coalesce_of_access(&a->access, o));
}

static const layout *of_atomic(assigner *a, const ir_op *o)
{
	const layout *from = natural(a, ir_arg(o, 0));
	return is_anchored(from) ? from : intern(a, coalesce_of_access(&a->access, o));
}

static const layout *of_reduce(assigner *a, const ir_op *o)
{
	layout l = layout_slice(or_default(a, of_operands(a, o), ir_arg(o, 0)), ir_get_axis(o));
	return intern(a, &l);
}

static const layout *of_scan(assigner *a, const ir_op *o)
{
	const layout *from = or_default(a, of_operands(a, o), o->results[0]);
	if (!scan_wants_lines(o, from, a->func->num_warps)) return from;
	layout l = layout_lines(ir_arg(o, 0)->type, ir_get_axis(o), a->func->num_warps);
	return intern(a, &l);
}

static const layout *of_sort(assigner *a, const ir_op *o)
{
	layout l = layout_lines(ir_arg(o, 0)->type, ir_get_axis(o), a->func->num_warps);
	if (ir_get_k(o)) l = layout_truncate(&l, ir_get_axis(o), lg2(ir_get_k(o)));
	return intern(a, &l);
}

static const layout *of_histogram(assigner *a, const ir_op *o)
{
	return or_default(a, NULL, o->results[0]);
}

/* Nothing is known about this operation's elements: let it meet memory's layout. */
static const layout *of_any(assigner *a, const ir_op *o)
{
	return or_default(a, of_operands(a, o), o->results[0]);
}

static void set_natural(assigner *a, const ir_value *v, const layout *l)
{
	assert(!ir_is_scalar(v) && (!is_anchored(l) || l->rank == v->type.rank));
	if (a->natural[v->id] == l) return;
	a->natural[v->id] = l;
	a->changed = true;
}

/* A carried value meets one of the values that flow into it.  `revise`: this source is worth more than what was assumed
 * (a loop's yield against its initial value), but no value changes its mind more than once. */
static void meet(assigner *a, const ir_value *carried, const ir_value *source, bool revise)
{
	if (ir_is_scalar(carried)) return;
	const layout *have = natural(a, carried), *new = natural(a, source);
	if (!have) set_natural(a, carried, have = &unknown);
	if (a->frozen || !is_anchored(new) || new == have) return;
	if (is_anchored(have)) {
		if (!revise || a->changes[carried->id]) return;
		a->changes[carried->id]++;
	}
	set_natural(a, carried, new);
}

static void sweep(assigner *a, ir_block *b);

static void sweep_if(assigner *a, ir_op *o)
{
	assert(o->nregions == 2);
	for (unsigned r = 0; r < 2; r++) {
		sweep(a, o->regions[r]);
		for (unsigned i = 0; i < o->nresults; i++)
			meet(a, o->results[i], ir_arg(o->regions[r]->last, i), false);
	}
}

/* The argument decides; the result is the argument after the last iteration. */
static void sweep_for(assigner *a, ir_op *o)
{
	ir_value **carried = o->regions[0]->args + 1;
	assert(o->nargs == o->nresults + 3u && o->regions[0]->nargs == o->nresults + 1u);
	for (unsigned i = 0; i < o->nresults; i++) meet(a, carried[i], ir_arg(o, 3 + i), false);
	sweep(a, o->regions[0]);
	for (unsigned i = 0; i < o->nresults; i++) {
		meet(a, carried[i], ir_arg(o->regions[0]->last, i), true);
		if (!ir_is_scalar(carried[i])) set_natural(a, o->results[i], natural(a, carried[i]));
	}
}

/* `before`'s arguments are carried round; condition's values go to `after`'s arguments and out. */
static void sweep_while(assigner *a, ir_op *o)
{
	ir_block *before = o->regions[0], *after = o->regions[1];
	assert(before->nargs == o->nargs && after->nargs == o->nresults);
	for (unsigned i = 0; i < before->nargs; i++) meet(a, before->args[i], ir_arg(o, i), false);
	sweep(a, before);
	for (unsigned i = 0; i < after->nargs; i++) {
		meet(a, after->args[i], ir_arg(before->last, 1 + i), true);
		if (!ir_is_scalar(after->args[i])) set_natural(a, o->results[i], natural(a, after->args[i]));
	}
	sweep(a, after);
	for (unsigned i = 0; i < before->nargs; i++) meet(a, before->args[i], ir_arg(after->last, i), true);
}

static void sweep(assigner *a, ir_block *b)
{
	for (ir_op *o = b->first; o; o = o->next) {
		const rule *r = rule_of(o);
		assert(r->sweep || r->natural || !o->nresults);
		if (r->sweep)
			r->sweep(a, o);
		else
			for (unsigned i = 0; i < o->nresults; i++)
				if (!ir_is_scalar(o->results[i])) set_natural(a, o->results[i], r->natural(a, o));
	}
}

/* Carried values of which no sweep learnt anything get memory's layout. */
static void settle_value(assigner *a, const ir_value *v)
{
	if (natural(a, v) == &unknown) set_natural(a, v, or_default(a, NULL, v));
	assert(natural(a, v) != &unknown);
}

static void settle(assigner *a, ir_block *b)
{
	for (uint32_t i = 0; i < b->nargs; i++) settle_value(a, b->args[i]);
	for (ir_op *o = b->first; o; o = o->next) {
		if (!ir_has(o, IR_CONTROL)) continue;
		for (unsigned r = 0; r < o->nregions; r++) settle(a, o->regions[r]);
		for (unsigned i = 0; i < o->nresults; i++) settle_value(a, o->results[i]);
	}
}

static void find_natural(assigner *a)
{
	for (unsigned n = 0; n == 0 || (a->changed && n < MAX_SWEEPS); n++) {
		a->changed = false;
		sweep(a, a->func->body);
	}
	settle(a, a->func->body);
	a->frozen = true; /* now everything follows, in one sweep, from the carried values */
	sweep(a, a->func->body);
}

/* ---- 2. versions ---- */

static ir_value *lookup(const assigner *a, ir_value *v, const layout *l)
{
	if (natural(a, v) == l) return v;
	for (const version *x = a->versions[v->id]; x; x = x->next)
		if (x->mapping == l) return x->value;
	return NULL;
}

static void add_version(assigner *a, const ir_value *original, ir_value *v, const layout *l)
{
	assert(!v->layout && l != &unknown);
	version *n = ARENA_NEW(a->arena, version);
	*n = (version){.mapping = l, .value = v, .next = a->versions[original->id]};
	a->versions[original->id] = n;
	v->layout = l;
}

/* Converts `from`, a version of `original`, directly behind its definition. */
static void convert(assigner *a, const ir_value *original, ir_value *from, const layout *l)
{
	assert(from->layout && from->layout != l);
	ir_builder b = {.func = a->func, .block = from->def ? from->def->block : from->block};
	b.before = from->def ? from->def->next : b.block->first;
	b.at = from->def ? from->def->at : b.block->parent ? b.block->parent->at : a->func->at;
	ir_value *out = ir_build1(&b, IR_CONVERT_LAYOUT, from->type, 1, &from);
	out->name = original->name;
	add_version(a, original, out, l);
}

/* The layout in which argument i must come for the operation's result to have layout l. */
static const layout *pulled_back(assigner *a, const ir_op *o, const layout *l, unsigned i)
{
	const rule *r = rule_of(o);
	if (!r->pull) return l;
	layout from = r->pull(o, l, i);
	return intern(a, &from);
}

/* Starts a version of a floating value: the operation itself the first time, a copy of it later; its operands are set
 * by demand().  Null when the version is complete already, being a conversion. */
static ir_op *begin(assigner *a, const waiting *w)
{
	ir_value *v = w->value;
	assert(v->def || natural(a, v));
	unsigned copies = 0;
	const version *first = NULL;
	for (const version *x = a->versions[v->id]; x; x = x->next, copies++) first = x;
	ir_op *o = v->def;
	bool stays = !natural(a, v) && copies &&
		     (o->kind == IR_LOAD || o->kind == IR_BULK_LOAD || is_join_across(o, w->mapping));
	if (natural(a, v) || stays || copies >= MAX_COPIES) {
		convert(a, v, natural(a, v) ? v : first->value, w->mapping);
		return NULL;
	}
	if (!a->operands[v->id]) { /* copies need the original operands, which are about to be replaced */
		a->operands[v->id] = ARENA_ARRAY(a->arena, ir_value *, o->nargs + 1u);
		for (unsigned i = 0; i < o->nargs; i++) a->operands[v->id][i] = ir_arg(o, i);
		return o;
	}
	ir_builder b = {.func = a->func, .block = o->block, .before = o, .at = o->at};
	ir_op *copy = ir_build(&b, o->kind, o->nargs, a->operands[v->id], 1, &v->type, 0);
	ir_copy_attributes(copy, o);
	copy->results[0]->name = v->name;
	return copy;
}

/* For a floating value that is not made yet: the layout to make it in before it is converted to the wanted one, which
 * is too dear for a load or impossible for a join; else null. */
static const layout *detour(assigner *a, const waiting *w)
{
	const ir_value *v = w->value;
	if (natural(a, v) || a->versions[v->id]) return NULL;
	if (is_join_across(v->def, w->mapping)) return joined(a, v->def, NULL);
	if (v->def->kind != IR_LOAD) return NULL;
	if (coalesce_direct_pays(&a->access, v->def, w->mapping)) return NULL;
	return intern(a, coalesce_of_access(&a->access, v->def));
}

/* The version of the original value v in layout l, made if there is none.  Chains of floating operations may be long
 * (unrolled loops), so the recursion over operands keeps its own stack. */
static ir_value *demand(assigner *a, ir_value *v, const layout *l)
{
	if (ir_is_scalar(v)) return v;
	a->stack.n = 0;
	vec_push(a->arena, &a->stack, ((waiting){.value = v, .mapping = l}));
	while (a->stack.n) {
		waiting *w = &a->stack.at[a->stack.n - 1];
		if (!w->op && !lookup(a, w->value, w->mapping)) {
			const layout *first = detour(a, w);
			if (first) {
				vec_push(a->arena, &a->stack, ((waiting){.value = w->value, .mapping = first}));
				continue;
			}
			w->op = begin(a, w);
		}
		if (!w->op) { /* there already, or converted */
			a->stack.n--;
			continue;
		}
		ir_value **operands = a->operands[w->value->id];
		ir_value *wanted = NULL;
		const layout *mapping = NULL;
		for (; w->next < w->op->nargs; w->next++) {
			ir_value *operand = operands[w->next];
			if (ir_is_scalar(operand)) continue;
			mapping = pulled_back(a, w->op, w->mapping, w->next);
			ir_value *have = lookup(a, operand, mapping);
			if (!have) {
				wanted = operand;
				break;
			}
			ir_set_arg(w->op, w->next, have);
		}
		if (wanted) {
			vec_push(a->arena, &a->stack, ((waiting){.value = wanted, .mapping = mapping}));
			continue;
		}
		add_version(a, w->value, w->op->results[0], w->mapping);
		a->stack.n--;
	}
	ir_value *made = lookup(a, v, l);
	assert(made && made->layout == l);
	return made;
}

/* ---- the walk ---- */

static void demand_arg(assigner *a, ir_op *o, unsigned i, const layout *l)
{
	ir_value *v = ir_arg(o, i);
	if (!ir_is_scalar(v)) ir_set_arg(o, i, demand(a, v, l));
}

static void demand_all(assigner *a, ir_op *o, const layout *l)
{
	assert(l);
	for (unsigned i = 0; i < o->nargs; i++) demand_arg(a, o, i, l);
}

static void set_layouts(const assigner *a, ir_value *const *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!ir_is_scalar(v[i]) && natural(a, v[i])) v[i]->layout = natural(a, v[i]);
}

/* Arguments [first, first + n) in the layouts of the values that they become. */
static void demand_carried(assigner *a, ir_op *o, unsigned first, ir_value *const *become, unsigned n)
{
	assert(first + n <= o->nargs);
	for (unsigned i = 0; i < n; i++) demand_arg(a, o, first + i, natural(a, become[i]));
}

static void rewrite(assigner *a, ir_block *b);

static void rewrite_region(assigner *a, ir_op *o, unsigned r)
{
	set_layouts(a, o->regions[r]->args, o->regions[r]->nargs);
	rewrite(a, o->regions[r]);
}

static void rewrite_if(assigner *a, ir_op *o)
{
	for (unsigned r = 0; r < 2; r++) {
		rewrite_region(a, o, r);
		demand_carried(a, o->regions[r]->last, 0, o->results, o->nresults);
	}
}

static void rewrite_for(assigner *a, ir_op *o)
{
	demand_carried(a, o, 3, o->results, o->nresults);
	rewrite_region(a, o, 0);
	demand_carried(a, o->regions[0]->last, 0, o->results, o->nresults);
}

static void rewrite_while(assigner *a, ir_op *o)
{
	ir_block *before = o->regions[0], *after = o->regions[1];
	demand_carried(a, o, 0, before->args, before->nargs);
	rewrite_region(a, o, 0);
	demand_carried(a, before->last, 1, o->results, o->nresults);
	rewrite_region(a, o, 1);
	demand_carried(a, after->last, 0, before->args, before->nargs);
}

/* With its parent. */
static void rewrite_parent(assigner *a, ir_op *o)
{
	(void)a, (void)o;
}

static void rewrite_store(assigner *a, ir_op *o)
{
	if (ir_is_scalar(ir_arg(o, 0))) return;
	assert(ir_touches(o, IR_WRITES_GLOBAL));
	const layout *coalesced = intern(a, coalesce_of_access(&a->access, o)), *l = natural(a, ir_arg(o, 1));
	if (natural(a, ir_arg(o, 0))) /* pointers that would have to be converted themselves */
		l = natural(a, ir_arg(o, 0));
	else if (!l || coalesce_convert_pays(&a->access, o, l))
		l = coalesced;
	demand_all(a, o, l);
	if (o->nresults) o->results[0]->layout = l; /* an atomic whose result nobody reads */
}

/* The operands as the results have them, pulled back; without tiles among these, as they lie. */
static void rewrite_any(assigner *a, ir_op *o)
{
	if (o->nresults && !ir_is_scalar(o->results[0])) {
		const layout *l = natural(a, o->results[0]);
		for (unsigned i = 0; i < o->nargs && l; i++) demand_arg(a, o, i, pulled_back(a, o, l, i));
		return;
	}
	for (unsigned i = 0; i < o->nargs; i++) /* asserts, a tile of one element made a scalar */
		if (!ir_is_scalar(ir_arg(o, i)))
			demand_arg(a, o, i, or_default(a, natural(a, ir_arg(o, i)), ir_arg(o, i)));
}

static void rewrite_rmw(assigner *a, ir_op *o)
{
	if (o->results[0]->uses)
		rewrite_any(a, o);
	else
		rewrite_store(a, o);
}

static void rewrite_split(assigner *a, ir_op *o)
{
	layout l = layout_everywhere(a->func->num_warps);
	if (!ir_is_scalar(o->results[0])) l = *natural(a, o->results[0]);
	l = layout_join(&l);
	demand_all(a, o, intern(a, &l));
}

static void rewrite_join(assigner *a, ir_op *o)
{
	layout l;
	if (!natural(a, o->results[0])) return;
	assert(!is_join_across(o, natural(a, o->results[0])));
	layout_unjoin(natural(a, o->results[0]), &l);
	demand_all(a, o, intern(a, &l));
}

static void rewrite_gather(assigner *a, ir_op *o)
{
	demand_arg(a, o, 1, natural(a, o->results[0]));
	demand_arg(a, o, 0, or_default(a, natural(a, ir_arg(o, 0)), ir_arg(o, 0)));
}

/* All operands as the largest lies. */
static void rewrite_alike(assigner *a, ir_op *o)
{
	demand_all(a, o, or_default(a, of_operands(a, o), ir_arg(o, 0)));
}

static void rewrite_sort(assigner *a, ir_op *o)
{
	layout lines = layout_lines(ir_arg(o, 0)->type, ir_get_axis(o), a->func->num_warps);
	demand_arg(a, o, 0, intern(a, &lines));
}

/* The tiles, which have one shape, show in one line an element. */
static void rewrite_print(assigner *a, ir_op *o)
{
	for (unsigned i = 0; i < o->nargs; i++) {
		if (ir_is_scalar(ir_arg(o, i))) continue;
		demand_all(a, o, or_default(a, of_operands(a, o), ir_arg(o, i)));
		return;
	}
}

static void rewrite_dot(assigner *a, ir_op *o)
{
	mma_layouts wanted;
	plan_dot(a, o, &wanted);
	demand_arg(a, o, 0, intern(a, &wanted.a));
	demand_arg(a, o, 1, intern(a, &wanted.b));
	if (o->nargs > 2) demand_arg(a, o, 2, natural(a, o->results[0]));
}

/* A tile that goes through shared memory as it was loaded, perhaps transposed. */
static const layout *as_it_comes(assigner *a, const ir_value *v)
{
	if (natural(a, v)) return natural(a, v);
	if (v->def && v->def->kind == IR_LOAD) return intern(a, coalesce_of_access(&a->access, v->def));
	if (!v->def || v->def->kind != IR_PERMUTE) return or_default(a, NULL, v);
	uint8_t order[IR_MAX_RANK];
	permute_order(v->def, order);
	layout l = layout_permute(as_it_comes(a, ir_arg(v->def, 0)), order);
	return intern(a, &l);
}

static void rewrite_wgmma(assigner *a, ir_op *o)
{
	layout registers = wgmma_register_layout(ir_arg(o, 0)->type, a->func->num_warps);
	layout transposed;
	bool computed = wgmma_wants_registers(a->access.context, o);
	for (unsigned i = 0; i < 2; i++)
		demand_arg(a, o, i,
			i == 0 && computed                                       ? intern(a, &registers)
			: wgmma_transposes(a->access.context, o, i, &transposed) ? intern(a, &transposed)
										 : as_it_comes(a, ir_arg(o, i)));
	if (o->nargs > 2) demand_arg(a, o, 2, natural(a, o->results[0]));
}

static void rewrite_op(assigner *a, ir_op *o)
{
	set_layouts(a, o->results, o->nresults);
	rule_of(o)->rewrite(a, o);
}

static bool is_new(const assigner *a, const ir_op *o)
{
	return o->nresults && o->results[0]->id >= a->nvalues;
}

static void rewrite(assigner *a, ir_block *b)
{
	for (ir_op *o = b->first, *next; o; o = next) {
		next = o->next;
		if (!is_new(a, o)) rewrite_op(a, o);
	}
}

/* ---- the rules ---- */

static layout pull_expand(const ir_op *o, const layout *l, unsigned i)
{
	layout from = *l;
	assert(l->rank && l->lg[ir_get_axis(o)] == 0);
	(void)i;
	layout_unexpand(l, ir_get_axis(o), &from);
	return from;
}

static layout pull_broadcast(const ir_op *o, const layout *l, unsigned i)
{
	return layout_unbroadcast(l, ir_arg(o, i)->type);
}

static layout pull_reshape(const ir_op *o, const layout *l, unsigned i)
{
	return layout_reshape(l, ir_arg(o, i)->type);
}

static layout pull_permute(const ir_op *o, const layout *l, unsigned i)
{
	uint8_t order[IR_MAX_RANK];
	(void)i;
	permute_order(o, order);
	return layout_unpermute(l, order);
}

static layout pull_join(const ir_op *o, const layout *l, unsigned i)
{
	layout from = *l;
	assert(!is_join_across(o, l));
	(void)o, (void)i;
	layout_unjoin(l, &from);
	return from;
}

static const rule layouts_free = {.natural = of_nothing, .rewrite = rewrite_any};
static const rule layouts_same = {.natural = of_operands, .rewrite = rewrite_any};
static const rule layouts_lies = {.natural = of_any, .rewrite = rewrite_any};
static const rule layouts_broadcast = {.natural = of_broadcast, .rewrite = rewrite_any, .pull = pull_broadcast};
static const rule layouts_expand = {.natural = of_expand, .rewrite = rewrite_any, .pull = pull_expand};
static const rule layouts_reshape = {.natural = of_reshape, .rewrite = rewrite_any, .pull = pull_reshape};
static const rule layouts_permute = {.natural = of_permute, .rewrite = rewrite_any, .pull = pull_permute};
static const rule layouts_join = {.natural = of_join, .rewrite = rewrite_join, .pull = pull_join};
static const rule layouts_split = {.natural = of_split, .rewrite = rewrite_split};
static const rule layouts_load = {.natural = of_load, .rewrite = rewrite_any};
static const rule layouts_rmw = {.natural = of_atomic, .rewrite = rewrite_rmw};
static const rule layouts_cas = {.natural = of_atomic, .rewrite = rewrite_any};
static const rule layouts_store = {.rewrite = rewrite_store};
static const rule layouts_block = {.natural = of_block, .rewrite = rewrite_any};
static const rule layouts_reduce = {.natural = of_reduce, .rewrite = rewrite_alike};
static const rule layouts_scan = {.natural = of_scan, .rewrite = rewrite_any};
static const rule layouts_sort = {.natural = of_sort, .rewrite = rewrite_sort};
static const rule layouts_gather = {.natural = of_gather, .rewrite = rewrite_gather};
static const rule layouts_histogram = {.natural = of_histogram, .rewrite = rewrite_alike};
static const rule layouts_dot = {.natural = of_dot, .rewrite = rewrite_dot};
static const rule layouts_wgmma = {.natural = of_wgmma, .rewrite = rewrite_wgmma};
static const rule layouts_print = {.rewrite = rewrite_print};
static const rule layouts_if = {.sweep = sweep_if, .rewrite = rewrite_if};
static const rule layouts_for = {.sweep = sweep_for, .rewrite = rewrite_for};
static const rule layouts_while = {.sweep = sweep_while, .rewrite = rewrite_while};
static const rule layouts_parent = {.rewrite = rewrite_parent};
/* These differ in what the verifier asks of them, or do not come here. */
#define layouts_none layouts_lies
#define layouts_in_place layouts_lies
#define layouts_pairs layouts_lies
#define layouts_given layouts_lies
#define layouts_copy layouts_lies

static const rule *rule_of(const ir_op *o)
{
	static const rule *const rules[IR_KIND_COUNT] = {
#define OP(e, name, args, results, regions, flags, types, layouts, ...) &layouts_##layouts,
#include "ir/ops.def"
#undef OP
	};
	return rules[o->kind];
}

/* ---- 3. what nobody wanted ---- */

static void clean(ir_block *b)
{
	for (ir_op *o = b->last, *previous; o; o = previous) {
		previous = o->prev;
		for (unsigned r = 0; r < o->nregions; r++) clean(o->regions[r]);
		if (o->nresults == 1 && !ir_is_scalar(o->results[0]) && !o->results[0]->layout && !o->results[0]->uses)
			ir_erase(o);
	}
}

bool pass_assign_layouts(pass_context *c, ir_func *f)
{
	assert(f->level == IR_LEVEL_TILE);
	if (!pass_axis(c, f)) return false;
	assigner a = {.arena = c->arena, .func = f, .nvalues = f->nvalues};
	a.natural = ARENA_ARRAY(c->arena, const layout *, f->nvalues);
	a.changes = ARENA_ARRAY(c->arena, uint8_t, f->nvalues);
	a.versions = ARENA_ARRAY(c->arena, version *, f->nvalues);
	a.operands = ARENA_ARRAY(c->arena, ir_value **, f->nvalues);
	coalesce_collect(&a.access, c, f);
	find_natural(&a);
	rewrite(&a, f->body);
	assert(a.nvalues <= f->nvalues);
	clean(f->body);
	f->level = IR_LEVEL_MAPPED;
	return true;
}
