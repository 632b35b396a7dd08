/* Blocks of which each group of rows has one of its own, in one slot of a multibuffer's barriers.
 *
 * In: a load by a tensor map in a function of several groups of warps (transform/deal_rows.c).  Out: what a producer's
 * copies of it have for indices, and where each group reads:
 *
 *     %g = row_group                            producer, of three groups, into slot w of the barriers:
 *     %k = mul %g, 64                             bulk_copy m[3 w], .., %r + 0            {part=1}
 *     %x = bulk_load %q, (add %r, %k)    ->       bulk_copy m[3 w + 1], .., %r + 64       {part=2}
 *     %p = wgmma %x, ..                           bulk_copy m[3 w + 2], .., %r + 128      {part=3}
 *                                               consumers:
 *                                                 %p = wgmma m[3 w + %g], ..
 *
 * A bulk_copy has w for its slot and says by `part` which of the three it means.
 * The one idea: what differs between groups is arithmetic of `row_group`, so the copy for a group is the load with that
 * number in its place; the groups' blocks are neighbouring slots of the multibuffer, and share the barriers. */
#include "channel.h"

#include <assert.h>

static bool differs(const ir_value *v)
{
	if (!v->def || ir_has(v->def, IR_CONTROL)) return false; /* the same for all: partition_refusal.c */
	bool any = v->def->kind == IR_ROW_GROUP;
	for (unsigned i = 0; i < v->def->nargs && !any; i++) any = differs(ir_arg(v->def, i));
	return any;
}

unsigned row_group_parts(const ir_func *f, const ir_op *load)
{
	bool any = false;
	for (unsigned k = 1; f->row_groups > 1 && k < load->nargs && !any; k++) any = differs(ir_arg(load, k));
	return any ? f->row_groups : 1;
}

unsigned row_group_blocks(const ir_func *f, const ir_op *multibuffer)
{
	for (const ir_use *u = multibuffer->results[0]->uses; u; u = u->next)
		if (u->user->kind == IR_BULK_COPY && ir_get_part(u->user)) return f->row_groups;
	return 1;
}

static ir_value *as_group(ir_builder *b, ir_value *v, unsigned group)
{
	ir_value *args[IR_SOURCES];
	if (!differs(v)) return v;
	const ir_op *o = v->def;
	if (o->kind == IR_ROW_GROUP) return ir_constant_int(b, SCALAR_I32, group);
	assert(o->nargs <= IR_SOURCES && o->nresults == 1 && o->nregions == 0);
	for (unsigned i = 0; i < o->nargs; i++) args[i] = as_group(b, ir_arg(o, i), group);
	ir_op *again = ir_build(b, o->kind, o->nargs, args, 1, &v->type, 0);
	ir_copy_attributes(again, o);
	return again->results[0];
}

void row_group_copies(ir_builder *b, const ir_op *load, unsigned parts, unsigned nargs, ir_value *const *args)
{
	ir_value *own[5 + IR_MAP_RANK];
	assert(nargs <= sizeof own / sizeof own[0]);
	for (unsigned i = 0; i < parts; i++) {
		for (unsigned k = 0; k < nargs; k++) own[k] = parts > 1 && k > 3 ? as_group(b, args[k], i) : args[k];
		ir_op *copy = ir_build(b, IR_BULK_COPY, nargs, own, 0, NULL, 0);
		ir_set_shares(copy, ir_get_shares(load));
		ir_set_partition(copy, IR_PARTITION_PRODUCER);
		if (parts > 1) ir_set_part(copy, i + 1);
	}
}

ir_value *row_group_slot(ir_builder *b, ir_value *slot, unsigned parts)
{
	if (parts == 1) return slot;
	ir_value *group = ir_build1(b, IR_ROW_GROUP, slot->type, 0, NULL);
	slot = ir_binary(b, IR_MUL, slot, ir_constant_int(b, SCALAR_I32, parts));
	return ir_binary(b, IR_ADD, slot, group);
}
