/* Loop-invariant motion: pure operations whose operands come from outside a loop move in front of it.
 *
 * In: any level.  Out: the same values, computed once.
 * The one idea: inner loops first, so what leaves an inner loop may leave the outer one next.  Only operations of the
 * loop's own block move, not those under an if: they would run where they did not before.
 *
 * At the tile level so does a number that is loaded through *const T, which nothing writes while the kernel runs: with
 * a mask, as a loop without an iteration loads nothing.
 *     for %lo, %hi, %one (%i: i32) {           %any = lt %lo, %hi
 *       %a = load %p                    ->     %a = load %p, %any, 0
 * A tile that is loaded in a loop stays there: it would take registers in all of it. */
#include "passes/passes.h"

static bool all_outside(const ir_op *o, const ir_op *loop)
{
	for (unsigned i = 0; i < o->nargs; i++)
		if (!ir_defined_outside(ir_arg(o, i), loop)) return false;
	return true;
}

static bool movable(const ir_op *o, const ir_op *loop)
{
	return ir_has(o, IR_PURE) && !o->nregions && all_outside(o, loop);
}

static bool movable_load(const ir_op *o, const ir_op *loop)
{
	return o->kind == IR_LOAD && loop->kind == IR_FOR && ir_counts_upwards(loop) && ir_is_scalar(o->results[0]) &&
	       ir_is_repeatable(o) && all_outside(o, loop);
}

/* In front of the loop, where there is an iteration. */
static void move_load(ir_func *f, ir_op *load, ir_op *loop)
{
	ir_builder b = {.func = f, .block = loop->block, .before = loop, .at = load->at};
	ir_value *any = ir_binary(&b, IR_LT, ir_arg(loop, 0), ir_arg(loop, 1)), *old = load->results[0];
	ir_value *args[3] = {ir_arg(load, 0), any};
	if (load->nargs > 1) args[1] = ir_binary(&b, IR_AND, ir_arg(load, 1), any);
	args[2] = load->nargs > 2 ? ir_arg(load, 2) : ir_constant(&b, old->type, 0);
	ir_value *v = ir_build1(&b, IR_LOAD, old->type, 3, args);
	ir_copy_attributes(v->def, load);
	v->name = old->name;
	v->layout = old->layout;
	ir_replace(old, v);
	ir_erase(load);
}

static void run(ir_func *f, ir_block *b)
{
	for (ir_op *o = b->first; o; o = o->next) {
		if (!ir_has(o, IR_CONTROL)) continue;
		for (unsigned r = 0; r < o->nregions; r++) run(f, o->regions[r]);
		if (o->kind == IR_IF || o->kind == IR_PARTITIONS) continue;
		for (unsigned r = 0; r < o->nregions; r++)
			for (ir_op *inner = o->regions[r]->first, *next; inner; inner = next) {
				next = inner->next;
				assert(inner->block == o->regions[r]);
				if (movable(inner, o))
					ir_move_before(inner, b, o);
				else if (f->level == IR_LEVEL_TILE && movable_load(inner, o))
					move_load(f, inner, o);
			}
	}
}

bool pass_licm(pass_context *p, ir_func *f)
{
	(void)p;
	run(f, f->body);
	return true;
}
