/* Tiles of 3 x 64 rows for three warpgroups, each with rows of its own.
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
	if (sum->type.rank != 2 || (d->rows && sum->type.dim[0] != d->rows))
		d->why = "its products have different rows";
	d->rows = sum->type.dim[0];
	d->is_rows[same_dims_class(&d->dims, sum, 0)] = true;
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

/* Elements in front of the dimension, if there are rows. */
static uint64_t in_front(ir_type t, unsigned at)
{
	uint64_t n = 1;
	for (unsigned i = 0; i < at; i++) n *= t.dim[i];
	return n;
}

/* Rows are the slowest dimension of both sides, so that a third of one is a third of the other. */
static bool keeps_rows(const dealer *d, const ir_value *from, const ir_value *to)
{
	unsigned a = 0, b = 0, n = rows_of(d, from, &a), m = rows_of(d, to, &b);
	return n == m && (!n || (in_front(from->type, a) == 1 && in_front(to->type, b) == 1));
}

static bool along_rows(const dealer *d, const ir_op *o)
{
	return d->is_rows[same_dims_class(&d->dims, ir_arg(o, 0), (unsigned)ir_get_axis(o))];
}

static const char *refusal(const dealer *d, const ir_op *o)
{
	unsigned at;
	for (unsigned i = 0; i < o->nresults; i++)
		if (rows_of(d, o->results[i], &at) > 1) return "a tile has the rows in two dimensions";
	switch (o->kind) {
	case IR_DOT: return rows_of(d, ir_arg(o, 1), &at) ? "rows are the second factor of a product" : NULL;
	case IR_RESHAPE: return keeps_rows(d, ir_arg(o, 0), o->results[0]) ? NULL : "a reshape mixes rows";
	case IR_REDUCE: return along_rows(d, o) ? "it combines rows with each other" : NULL;
	case IR_SCAN: return along_rows(d, o) ? "it scans along the rows" : NULL;
	case IR_SORT: return along_rows(d, o) ? "it sorts along the rows" : NULL;
	case IR_FLIP: return along_rows(d, o) ? "it reverses the rows" : NULL;
	case IR_GATHER: return along_rows(d, o) ? "it gathers along the rows" : NULL;
	case IR_HISTOGRAM: return "it counts in a histogram";
	case IR_LOAD: return ir_get_volatile(o) ? "a volatile load happens once" : NULL;
	case IR_ASSUME: return NULL;
	case IR_PRINT:
	case IR_ASSERT:
	case IR_DEBUG_BARRIER: return "it prints, asserts or waits for all its threads";
	default: break;
	}
	if (ir_touches(o, IR_EFFECTS) && !has_rows(d, o)) return "it writes what belongs to no row";
	return NULL;
}

static void look(ir_op *o, void *context)
{
	dealer *d = context;
	if (!d->why) d->why = refusal(d, o);
}

static const char *refuses(dealer *d)
{
	const ir_func *f = d->func;
	if (!target_can(d->pass->target, TARGET_SETMAXNREG)) return "only sm_90a hands registers over";
	if (f->maxnreg) return "maxnreg is given";
	d->dims = same_dims_find(d->pass->arena, f);
	d->is_rows = ARENA_ARRAY(d->pass->arena, bool, f->nvalues *IR_MAX_RANK);
	ir_walk(f->body, find_rows, d);
	if (!d->why && !d->rows) return "it has no product";
	if (!d->why && d->rows != IR_ROW_GROUPS * ROWS) return "its products do not have 192 rows";
	if (!d->why) ir_walk(f->body, look, d);
	return d->why;
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
