/* Blocks are read from shared memory in the layout that is wanted.
 *
 * In: a mapped function.  Out: a bulk_load whose tile is only converted (and permuted or given another shape on the way
 * there) has the layout that the conversion gave, and the conversion is gone.  The one idea: the copy puts a block into
 * shared memory anyway, from where any layout is one read away; a conversion would go through shared memory again. */
#include "bulk.h"

#include <assert.h>

static void order_of(const ir_op *permute, uint8_t order[IR_MAX_RANK])
{
	for (unsigned i = 0; i < IR_MAX_RANK; i++) order[i] = (uint8_t)ir_unpack(ir_get_order(permute), i);
}

static bool moves(const ir_op *o)
{
	return o->kind == IR_PERMUTE || o->kind == IR_EXPAND_DIMS || o->kind == IR_RESHAPE;
}

/* Gives v, a load or what only moves its elements, the layout l. */
static void set_layout(arena *a, ir_value *v, const layout *l)
{
	for (;;) {
		assert(moves(v->def) || v->def->kind == IR_BULK_LOAD);
		v->layout = l;
		if (!moves(v->def)) return;
		layout *before = ARENA_NEW(a, layout);
		if (v->def->kind == IR_PERMUTE) {
			uint8_t order[IR_MAX_RANK];
			order_of(v->def, order);
			*before = layout_unpermute(l, order);
		} else if (v->def->kind == IR_RESHAPE)
			*before = layout_reshape(l, ir_arg(v->def, 0)->type);
		else
			layout_unexpand(l, ir_get_axis(v->def), before); /* of extent 1, so there is one */
		l = before;
		v = ir_arg(v->def, 0);
	}
}

typedef struct found {
	arena *arena;
	VEC(ir_op *) loads;
} found;

static void collect(ir_op *o, void *context)
{
	found *f = context;
	if (o->kind == IR_BULK_LOAD) vec_push(f->arena, &f->loads, o);
}

static void read_as_wanted(arena *a, ir_op *o)
{
	assert(o->kind == IR_BULK_LOAD);
	ir_op *user = ir_only_user(o->results[0]);
	while (user && moves(user)) user = ir_only_user(user->results[0]);
	if (!user || user->kind != IR_CONVERT_LAYOUT) return;
	set_layout(a, ir_arg(user, 0), user->results[0]->layout);
	ir_replace(user->results[0], ir_arg(user, 0));
	ir_erase(user);
}

bool pass_bulk_layouts(pass_context *c, ir_func *f)
{
	found all = {.arena = c->arena};
	ir_walk(f->body, collect, &all);
	for (uint32_t i = 0; i < all.loads.n; i++) read_as_wanted(c->arena, all.loads.at[i]);
	return true;
}
