/* Tiles of 3 x 64 rows, or columns, for three warpgroups, each with rows of its own.
 *
 * In: tile IR from sema of a program of 12 warps.  Out: where it can be, a program of 4 warps for a third of the rows,
 * of which there are three groups; where an access or an index says which rows they are, the group's number is added.
 * Else a program of 8 warps, and why.
 *     %i = arange {lo=0} : i32[192]                 %g = row_group         %k = mul %g, 64
 *                                             ->    %i = add (arange {lo=0} : i32[64]), (splat %k)
 *     %q = tensor_load %t, %h, %r : f16[192, 64]    %q = tensor_load %t, %h, (add %r, %k) : f16[64, 64]
 *     %s = dot %q, %x : f32[192, 128]               %s = dot %q, %x : f32[64, 128]
 * The one idea: what counts a product's rows is rows wherever it stands (analysis/same_dims.h), and what is computed of
 * rows is computed of each row by itself; so a third of the rows is the same program on smaller tiles.  What all rows
 * share, as keys and values, each group reads, and a producer brings once (async/channels.c).
 *
 * Where rows do not fill warpgroups, as 144 do not, 192 columns are dealt in their place: 64 to each group, whose
 * transposed product (transpose_dots.c) has them as its 64 rows.  `Rows` below are what is dealt.
 *
 * Only a producer makes three groups worth their while: where later passes find none, the program is compiled again as
 * one of 8 warps, whose tiles cut_extents.c cuts (pass_context.whole_rows). */
#include "analysis/same_dims.h"
#include "ir/extents.h"
#include "passes/passes.h"

#include <assert.h>

enum { OTHER_WARPS = 8, ROWS = 64 /* of a warpgroup's product */ };

typedef struct dealer {
	pass_context *pass;
	ir_func *func;
	unsigned along; /* the sums' dimension: 0, or 1, whose columns are then the `rows` of what is said here */
	uint32_t rows, each;
	same_dims dims;
	bool *is_rows;   /* by class */
	const char *why; /* half a sentence; null: it can be */
	ir_value *first; /* of this group's rows */
	VEC(ir_op *) ranges;
} dealer;

/* ---- whether ---- */

static void find_rows(ir_op *o, void *context)
{
	dealer *d = context;
	if (o->kind != IR_DOT || d->why) return;
	const ir_value *sum = o->results[0];
	if (sum->type.rank != 2 || (d->rows && sum->type.dim[d->along] != d->rows))
		d->why = d->along ? "its products have different columns" : "its products have different rows";
	if (sum->type.rank != 2) return;
	d->rows = sum->type.dim[d->along];
	d->is_rows[same_dims_class(&d->dims, sum, d->along)] = true;
}

/* Dimensions of the value that are rows; *at: the last of them.  What this pass makes has none. */
static unsigned rows_of(const dealer *d, const ir_value *v, unsigned *at)
{
	unsigned n = 0;
	for (unsigned i = 0; v->id < d->dims.known && i < v->type.rank; i++)
		if (d->is_rows[same_dims_class(&d->dims, v, i)]) *at = i, n++;
	return n;
}

static bool has_rows(const dealer *d, const ir_op *o)
{
	unsigned at;
	for (unsigned i = 0; i < o->nargs; i++)
		if (rows_of(d, ir_arg(o, i), &at)) return true;
	return false;
}

static uint64_t elements(ir_type t, unsigned first, unsigned end)
{
	uint64_t n = 1;
	for (unsigned i = first; i < end; i++) n *= t.dim[i];
	return n;
}

/* Rows are the slowest dimension of both sides, or the fastest, so that a third of one is a third of the other. */
static bool keeps_rows(const dealer *d, const ir_value *from, const ir_value *to)
{
	unsigned a = 0, b = 0, n = rows_of(d, from, &a), m = rows_of(d, to, &b);
	ir_type f = from->type, t = to->type;
	if (n != m) return false;
	return !n || (elements(f, 0, a) == 1 && elements(t, 0, b) == 1) ||
	       (elements(f, a + 1, f.rank) == 1 && elements(t, b + 1, t.rank) == 1);
}

static bool along_rows(const dealer *d, const ir_op *o)
{
	return d->is_rows[same_dims_class(&d->dims, ir_arg(o, 0), (unsigned)ir_get_axis(o))];
}

static const char *refusal(const dealer *d, const ir_op *o)
{
	unsigned at;
	for (unsigned i = 0; i < o->nresults; i++)
		if (rows_of(d, o->results[i], &at) > 1) return "a tile has them in two dimensions";
	switch (o->kind) {
	case IR_DOT: return rows_of(d, ir_arg(o, 1 - d->along), &at) ? "a product sums over them" : NULL;
	case IR_RESHAPE: return keeps_rows(d, ir_arg(o, 0), o->results[0]) ? NULL : "a reshape mixes them";
	case IR_REDUCE: return along_rows(d, o) ? "it combines them with each other" : NULL;
	case IR_SCAN: return along_rows(d, o) ? "it scans along them" : NULL;
	case IR_SORT: return along_rows(d, o) ? "it sorts along them" : NULL;
	case IR_FLIP: return along_rows(d, o) ? "it reverses them" : NULL;
	case IR_GATHER: return along_rows(d, o) ? "it gathers along them" : NULL;
	case IR_HISTOGRAM: return "it counts in a histogram";
	case IR_LOAD: return ir_get_volatile(o) ? "a volatile load happens once" : NULL;
	case IR_ASSUME: return NULL;
	case IR_PRINT:
	case IR_ASSERT:
	case IR_DEBUG_BARRIER: return "it prints, asserts or waits for all its threads";
	default: break;
	}
	if (ir_touches(o, IR_EFFECTS) && !has_rows(d, o)) return "it writes what belongs to none of them";
	return NULL;
}

static void look(ir_op *o, void *context)
{
	dealer *d = context;
	if (!d->why) d->why = refusal(d, o);
}

static const char *refuses_along(dealer *d, unsigned along)
{
	ir_func *f = d->func;
	*d = (dealer){.pass = d->pass, .func = f, .along = along, .dims = d->dims};
	d->is_rows = ARENA_ARRAY(d->pass->arena, bool, f->nvalues *IR_MAX_RANK);
	ir_walk(f->body, find_rows, d);
	if (!d->why && !d->rows) return "it has no product";
	if (!d->why && d->rows != IR_ROW_GROUPS * ROWS) return "its products have neither 192 rows nor 192 columns";
	if (!d->why) ir_walk(f->body, look, d);
	return d->why;
}

static void find_whole(ir_op *o, void *context)
{
	const ir_type sum = o->kind == IR_DOT ? o->results[0]->type : (ir_type){0};
	*(bool *)context |= sum.rank == 2 && sum.dim[0] % ROWS == 0;
}

/* Columns are rows of the transposed products, which those become whose own rows do not fill warpgroups
 * (transpose_dots.c). */
static const char *refuses(dealer *d)
{
	const ir_func *f = d->func;
	bool whole = false;
	if (!target_can(d->pass->target, TARGET_SETMAXNREG)) return "only sm_90a hands registers over";
	if (f->maxnreg) return "maxnreg is given";
	d->dims = same_dims_find(d->pass->arena, f);
	const char *why = refuses_along(d, 0);
	ir_walk(f->body, find_whole, &whole);
	return why && d->rows != IR_ROW_GROUPS * ROWS && !whole ? refuses_along(d, 1) : why;
}

/* ---- the smaller tiles ---- */

static void shrink(const dealer *d, ir_value *v)
{
	unsigned at;
	if (rows_of(d, v, &at)) v->type.dim[at] = d->each;
}

static void shrink_all(const dealer *d, const ir_op *o)
{
	for (unsigned i = 0; i < o->nresults; i++) shrink(d, o->results[i]);
	for (unsigned r = 0; r < o->nregions; r++)
		for (uint32_t i = 0; i < o->regions[r]->nargs; i++) shrink(d, o->regions[r]->args[i]);
}

static ir_value *moved(const dealer *d, ir_builder *b, ir_value *index)
{
	return ir_binary(b, IR_ADD, index, ir_convert(b, d->first, (scalar)index->type.elem));
}

static void move_arange(const dealer *d, ir_op *o)
{
	ir_value *v = o->results[0];
	ir_builder b = {.func = d->func, .block = o->block, .before = o->next, .at = o->at};
	ir_value *by = ir_splat(&b, d->first, v->type);
	ir_value *sum = ir_binary(&b, IR_ADD, v, by);
	ir_replace(v, sum);
	ir_set_arg(sum->def, 0, v);
	sum->name = v->name;
}

static void move_block(const dealer *d, ir_op *o)
{
	bool loads = o->kind == IR_TENSOR_LOAD;
	unsigned at, first = loads ? 1 : 2;
	ir_builder b = {.func = d->func, .block = o->block, .before = o, .at = o->at};
	if (rows_of(d, loads ? o->results[0] : ir_arg(o, 1), &at))
		ir_set_arg(o, first + at, moved(d, &b, ir_arg(o, first + at)));
}

/* Where rows have a number. */
static void move(ir_op *o, void *context)
{
	dealer *d = context;
	unsigned at;
	if (o->kind == IR_TENSOR_LOAD || o->kind == IR_TENSOR_STORE || o->kind == IR_TENSOR_ATOMIC_ADD)
		move_block(d, o);
	if (o->kind == IR_ARANGE && rows_of(d, o->results[0], &at)) vec_push(d->pass->arena, &d->ranges, o);
}

static void shrink_one(ir_op *o, void *context)
{
	shrink_all(context, o);
}

/* The program as it is, for 8 warps. */
static ir_func *copied(const dealer *d)
{
	const ir_func *f = d->func;
	ir_func *again = ARENA_NEW(d->pass->arena, ir_func);
	*again = *f;
	again->num_warps = OTHER_WARPS;
	again->body = ir_block_new(again, NULL);
	ir_value **map = ARENA_ARRAY(d->pass->arena, ir_value *, f->nvalues);
	for (uint32_t i = 0; i < f->body->nargs; i++) {
		const ir_value *v = f->body->args[i];
		map[v->id] = ir_block_arg(again->body, v->type, v->name);
	}
	ir_builder b = {.func = again, .block = again->body};
	for (const ir_op *o = f->body->first; o; o = o->next) ir_clone(&b, o, map);
	return again;
}

bool pass_deal_rows(pass_context *p, ir_func *f)
{
	dealer d = {.pass = p, .func = f};
	if (f->num_warps != IR_DEALT_WARPS || p->target->kind != TARGET_NVPTX) return true;
	p->rows_together = refuses(&d);
	if (p->rows_together) {
		f->num_warps = OTHER_WARPS;
		return true;
	}
	p->whole_rows = copied(&d);
	d.each = d.rows / IR_ROW_GROUPS;
	f->num_warps = IR_DEALT_WARPS / IR_ROW_GROUPS;
	f->row_groups = IR_ROW_GROUPS;
	ir_builder head = {.func = f, .block = f->body, .before = f->body->first, .at = f->at};
	ir_value *group = ir_build1(&head, IR_ROW_GROUP, ir_scalar_type(SCALAR_I32), 0, NULL);
	d.first = ir_binary(&head, IR_MUL, group, ir_constant_int(&head, SCALAR_I32, d.each));
	ir_walk(f->body, move, &d);
	ir_walk(f->body, shrink_one, &d);
	for (uint32_t i = 0; i < d.ranges.n; i++) move_arange(&d, d.ranges.at[i]);
	return true;
}
