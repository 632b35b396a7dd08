/* Loop-invariant motion: pure operations whose operands come from outside a loop move in front of it.
 *
 * In: any level.  Out: the same values, computed once.
 * The one idea: inner loops first, so what leaves an inner loop may leave the outer one next.  Only operations of the
 * loop's own block move, not those under an if: they would run where they did not before. */
#include "passes/passes.h"

static bool movable(const ir_op *o, const ir_op *loop)
{
	if (!ir_has(o, IR_PURE) || o->nregions) return false;
	for (unsigned i = 0; i < o->nargs; i++)
		if (!ir_defined_outside(ir_arg(o, i), loop)) return false;
	return true;
}

static void run(ir_block *b)
{
	for (ir_op *o = b->first; o; o = o->next) {
		if (!ir_has(o, IR_CONTROL)) continue;
		for (unsigned r = 0; r < o->nregions; r++) run(o->regions[r]);
		if (o->kind == IR_IF || o->kind == IR_PARTITIONS) continue;
		for (unsigned r = 0; r < o->nregions; r++)
			for (ir_op *inner = o->regions[r]->first, *next; inner; inner = next) {
				next = inner->next;
				assert(inner->block == o->regions[r]);
				if (movable(inner, o)) ir_move_before(inner, b, o);
			}
	}
}

bool pass_licm(pass_context *p, ir_func *f)
{
	(void)p;
	run(f->body);
	return true;
}
