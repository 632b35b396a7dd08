/* Tiles whose extents are no powers of two become several tiles.
 *
 * In: tile IR from sema, for a GPU: layouts know powers of two only.  Out: the same without other extents.
 *     %x = load %p : f32[192]                       %a = load %p.0 : f32[128]    %b = load %p.1 : f32[64]
 *     %y = mul %x, %x : f32[192]               ->   %c = mul %a, %a : f32[128]   %d = mul %b, %b : f32[64]
 *     %s = reduce %y {axis=0 combine=sum} : f32     %e = reduce %c : f32   %f = reduce %d : f32   %s = add %e, %f
 * The one idea: how an extent is cut depends on that extent alone (ir/extents.h), so values that meet have the same
 * parts, and most operations are one operation a part.  What moves elements across parts is in cut_reshape.c, what
 * combines them in cut_combine.c.
 *
 * Nothing is cut for the cpu target, whose loops take any extent: so each of the two checks the other.
 *
 * A value's parts are made where it is, in front of the operation that made it; loops and branches get theirs beside
 * the values that they carry.  At the end, when nobody uses whole values any more, these go. */
#include "cut.h"

enum { MOST_OPERANDS = 64 };

ir_value *cut_part(const cut *c, const ir_value *v, unsigned i)
{
	assert(v->id < c->known || !ir_is_cut(v->type));
	if (!ir_is_cut(v->type)) return (ir_value *)v;
	assert(c->parts[v->id] && i < ir_parts(v->type));
	return c->parts[v->id][i];
}

void cut_give(cut *c, ir_value *of, unsigned i, ir_value *part)
{
	if (!part->name) part->name = of->name;
	if (!ir_is_cut(of->type)) {
		assert(i == 0);
		ir_replace(of, part);
		return;
	}
	assert(of->id < c->known && i < ir_parts(of->type));
	if (!c->parts[of->id]) c->parts[of->id] = ARENA_ARRAY(c->pass->arena, ir_value *, ir_parts(of->type));
	c->parts[of->id][i] = part;
}

void cut_regions(cut *c, const ir_op *from, ir_op *to)
{
	assert(from->nregions == to->nregions);
	for (unsigned r = 0; r < from->nregions; r++) {
		const ir_block *b = from->regions[r];
		for (uint32_t i = 0; i < b->nargs; i++)
			c->map[b->args[i]->id] = ir_block_arg(to->regions[r], b->args[i]->type, b->args[i]->name);
		ir_builder inner = {.func = c->func, .block = to->regions[r], .at = from->at};
		for (const ir_op *p = b->first; p; p = p->next) ir_clone(&inner, p, c->map);
	}
}

ir_op *cut_again(cut *c, const ir_op *o, unsigned nargs, ir_value *const *args, const ir_type *results)
{
	ir_op *n = ir_build(&c->build, o->kind, nargs, args, o->nresults, results, o->nregions);
	ir_copy_attributes(n, o);
	n->at = o->at;
	cut_regions(c, o, n);
	return n;
}

/* ---- an operation a part ---- */

static ir_type shape_of(const ir_op *o)
{
	for (unsigned i = 0; i < o->nresults; i++)
		if (ir_is_cut(o->results[i]->type)) return o->results[i]->type;
	for (unsigned i = 0; i < o->nargs; i++)
		if (ir_is_cut(ir_arg(o, i)->type)) return ir_arg(o, i)->type;
	return (ir_type){0};
}

/* Part i of the result is made of part i of each operand that is no scalar. */
static void each_part(cut *c, ir_op *o)
{
	ir_type shape = shape_of(o);
	ir_value **args = ARENA_ARRAY(c->pass->arena, ir_value *, o->nargs);
	ir_type *types = ARENA_ARRAY(c->pass->arena, ir_type, o->nresults);
	for (unsigned i = 0; i < ir_parts(shape); i++) {
		for (unsigned k = 0; k < o->nargs; k++) args[k] = cut_part(c, ir_arg(o, k), i);
		for (unsigned r = 0; r < o->nresults; r++) types[r] = ir_part_type(o->results[r]->type, i);
		ir_op *n = cut_again(c, o, o->nargs, args, types);
		for (unsigned r = 0; r < o->nresults; r++) cut_give(c, o->results[r], i, n->results[r]);
	}
}

static void arange(cut *c, ir_op *o)
{
	ir_value *v = ir_result(o);
	for (unsigned i = 0; i < ir_parts(v->type); i++) {
		ir_type t = ir_part_type(v->type, i);
		ir_op *n = cut_again(c, o, 0, NULL, &t);
		ir_set_lo(n, ir_get_lo(o) + ir_piece_offset(v->type.dim[0], i));
		cut_give(c, v, i, ir_result(n));
	}
}

static void broadcast(cut *c, ir_op *o)
{
	ir_value *v = ir_result(o), *x = ir_arg(o, 0);
	for (unsigned i = 0; i < ir_parts(v->type); i++) {
		unsigned place[IR_MAX_RANK];
		ir_part_place(v->type, i, place);
		for (unsigned d = 0; d < v->type.rank; d++)
			if (x->type.dim[d] == 1) place[d] = 0;
		ir_value *from = cut_part(c, x, ir_part_number(x->type, place));
		ir_type t = ir_part_type(v->type, i);
		cut_give(
			c, v, i, ir_same_shape(from->type, t) ? from : ir_build1(&c->build, IR_BROADCAST, t, 1, &from));
	}
}

static void permute(cut *c, ir_op *o)
{
	ir_value *v = ir_result(o), *x = ir_arg(o, 0);
	for (unsigned i = 0; i < ir_parts(v->type); i++) {
		unsigned place[IR_MAX_RANK], from[IR_MAX_RANK];
		ir_part_place(v->type, i, place);
		for (unsigned d = 0; d < v->type.rank; d++) from[ir_unpack(ir_get_order(o), d)] = place[d];
		ir_value *part = cut_part(c, x, ir_part_number(x->type, from));
		ir_type t = ir_part_type(v->type, i);
		cut_give(c, v, i, ir_result(cut_again(c, o, 1, &part, &t)));
	}
}

/* ---- blocks of tensors ---- */

static ir_value *moved(cut *c, ir_value *index, uint32_t by)
{
	if (!by) return index;
	return ir_binary(&c->build, IR_ADD, index, ir_constant_int(&c->build, (scalar)index->type.elem, by));
}

/* A part is the block that begins where it does. */
static void tensor_access(cut *c, ir_op *o)
{
	bool loads = o->kind == IR_TENSOR_LOAD;
	ir_value *v = loads ? ir_result(o) : ir_arg(o, 1);
	ir_value *args[2 + 3 * IR_MAX_RANK];
	unsigned first = loads ? 1 : 2;
	for (unsigned i = 0; i < ir_parts(v->type); i++) {
		unsigned place[IR_MAX_RANK];
		ir_part_place(v->type, i, place);
		for (unsigned k = 0; k < o->nargs; k++) args[k] = ir_arg(o, k);
		if (!loads) args[1] = cut_part(c, v, i);
		for (unsigned d = 0; d < v->type.rank; d++)
			args[first + d] = moved(c, args[first + d], ir_piece_offset(v->type.dim[d], place[d]));
		ir_type t = ir_part_type(v->type, i);
		ir_op *n = cut_again(c, o, o->nargs, args, &t);
		if (loads) cut_give(c, v, i, ir_result(n));
	}
}

/* ---- prints and assertions name elements ---- */

static void names_elements(cut *c, ir_op *o)
{
	ir_type shape = shape_of(o);
	ir_value *args[MOST_OPERANDS];
	assert(o->nargs <= MOST_OPERANDS);
	for (unsigned i = 0; i < ir_parts(shape); i++) {
		unsigned place[IR_MAX_RANK];
		uint16_t origin[IR_MAX_RANK] = {0};
		ir_part_place(shape, i, place);
		for (unsigned d = 0; d < shape.rank; d++)
			origin[d] =
				(uint16_t)(ir_piece_offset(shape.dim[d], place[d]) / ir_piece(shape.dim[d], place[d]));
		for (unsigned k = 0; k < o->nargs; k++) args[k] = cut_part(c, ir_arg(o, k), i);
		ir_set_origin(cut_again(c, o, o->nargs, args, NULL), ir_pack(shape.rank, origin));
	}
}

/* ---- loops and branches ---- */

static void block(cut *c, ir_block *b);

static void grow_args(cut *c, ir_op *o, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		ir_value *v = ir_arg(o, i);
		if (!ir_is_cut(v->type)) continue;
		for (unsigned k = 0; k < ir_parts(v->type); k++) ir_add_arg(c->func, o, cut_part(c, v, k));
	}
}

static void grow_block(cut *c, ir_block *b)
{
	for (uint32_t i = 0, n = b->nargs; i < n; i++) {
		ir_value *v = b->args[i];
		if (!ir_is_cut(v->type)) continue;
		for (unsigned k = 0; k < ir_parts(v->type); k++)
			cut_give(c, v, k, ir_block_arg(b, ir_part_type(v->type, k), v->name));
	}
}

/* Ends of regions are operations of theirs: block() comes by. */
static void control(cut *c, ir_op *o)
{
	unsigned nargs = o->nargs, nresults = o->nresults;
	grow_args(c, o, 0, nargs);
	for (unsigned r = 0; r < o->nregions; r++) {
		grow_block(c, o->regions[r]);
		block(c, o->regions[r]);
	}
	for (unsigned i = 0; i < nresults && !c->failed; i++) {
		ir_value *v = o->results[i];
		if (!ir_is_cut(v->type)) continue;
		for (unsigned k = 0; k < ir_parts(v->type); k++)
			cut_give(c, v, k, ir_add_result(c->func, o, ir_part_type(v->type, k)));
	}
	vec_push(c->pass->arena, &c->kept, o);
}

/* ---- the walk ---- */

static void one(cut *c, ir_op *o)
{
	switch (o->kind) {
	case IR_ARANGE: arange(c, o); break;
	case IR_BROADCAST: broadcast(c, o); break;
	case IR_PERMUTE: permute(c, o); break;
	case IR_RESHAPE: cut_reshape(c, o); break;
	case IR_FLIP: cut_flip(c, o); break;
	case IR_REDUCE: cut_reduce(c, o); break;
	case IR_SCAN: cut_scan(c, o); break;
	case IR_DOT: cut_dot(c, o); break;
	case IR_GATHER: cut_gather(c, o); break;
	case IR_HISTOGRAM: cut_histogram(c, o); break;
	case IR_TENSOR_LOAD:
	case IR_TENSOR_STORE:
	case IR_TENSOR_ATOMIC_ADD: tensor_access(c, o); break;
	case IR_PRINT:
	case IR_ASSERT: names_elements(c, o); break;
	default: each_part(c, o); break;
	}
}

static bool takes_cut(const ir_op *o)
{
	return shape_of(o).rank != 0;
}

/* What has no parts yet; the language says no before (docs/language.md), a text of the IR may say it. */
static bool refused(cut *c, const ir_op *o)
{
	ir_type t = shape_of(o);
	const char *why = NULL;
	if (o->kind == IR_SORT && !ir_is_power(ir_arg(o, 0)->type.dim[ir_get_axis(o)])) why = "lines of such a length";
	if (o->kind == IR_INLINE_ASM && !ir_is_power(t.dim[t.rank - 1]) &&
		(t.dim[t.rank - 1] & (0 - t.dim[t.rank - 1])) < ir_get_pack(o))
		why = "elements that do not fill its packs";
	if (o->kind == IR_RESHAPE && ir_reshape_runs(ir_arg(o, 0)->type, o->results[0]->type) > IR_MOST_RUNS)
		why = "elements into so many runs";
	if (!why) return false;
	diag_error(c->pass->diags, 810, o->at, "'%s' of %s: it does not take %s", ir_info(o)->name,
		ir_type_name(c->pass->arena, t), why);
	return true;
}

static void block(cut *c, ir_block *b)
{
	for (ir_op *o = b->first, *next; o && !c->failed; o = next) {
		next = o->next;
		c->build = (ir_builder){.func = c->func, .block = b, .before = o, .at = o->at};
		if (ir_has(o, IR_CONTROL)) {
			control(c, o);
			continue;
		}
		if (!takes_cut(o)) continue;
		if (ir_has(o, IR_TERMINATOR)) {
			grow_args(c, o, 0, o->nargs);
			vec_push(c->pass->arena, &c->kept, o);
			continue;
		}
		if (refused(c, o)) {
			c->failed = true;
			return;
		}
		one(c, o);
		vec_push(c->pass->arena, &c->dead, o);
	}
}

/* Whole values go: from those who carry them, then the operations, last ones first, then where they were carried. */
static void sweep(cut *c)
{
	for (uint32_t i = 0; i < c->kept.n; i++)
		for (unsigned k = c->kept.at[i]->nargs; k-- > 0;)
			if (ir_is_cut(ir_arg(c->kept.at[i], k)->type)) ir_remove_arg(c->kept.at[i], k);
	for (uint32_t i = c->dead.n; i-- > 0;) ir_erase(c->dead.at[i]);
	for (uint32_t i = 0; i < c->kept.n; i++) {
		ir_op *o = c->kept.at[i];
		for (unsigned r = 0; r < o->nregions; r++)
			for (uint32_t k = o->regions[r]->nargs; k-- > 0;)
				if (ir_is_cut(o->regions[r]->args[k]->type)) ir_block_remove_arg(o->regions[r], k);
		for (unsigned k = o->nresults; k-- > 0;)
			if (ir_is_cut(o->results[k]->type)) ir_remove_result(o, k);
	}
}

static void looks(ir_op *o, void *context)
{
	if (takes_cut(o)) *(bool *)context = true;
}

bool pass_cut_extents(pass_context *p, ir_func *f)
{
	bool any = false;
	if (p->target->kind != TARGET_NVPTX) return true;
	ir_walk(f->body, looks, &any);
	if (!any) return true;
	cut c = {.pass = p, .func = f, .known = f->nvalues};
	c.parts = ARENA_ARRAY(p->arena, ir_value **, f->nvalues);
	c.map = ARENA_ARRAY(p->arena, ir_value *, f->nvalues);
	block(&c, f->body);
	if (!c.failed) sweep(&c);
	return !c.failed;
}
