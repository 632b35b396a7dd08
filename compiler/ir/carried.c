/* How values pass through ifs and loops.
 *
 * In: a value or an operation.  Out: the values that it stands for, or that decide whether it runs.  The one idea: who
 * follows values backwards needs to know only this of structured control flow. */
#include "ir.h"

static unsigned of_argument(const ir_value *v, ir_value **out)
{
	assert(v->index < v->block->nargs && v->block->args[v->index] == v);
	const ir_op *o = v->block->parent;
	unsigned i = v->index;
	if (o && o->kind == IR_FOR && i > 0) {
		out[0] = ir_arg(o, i + 2);
		out[1] = ir_arg(o->regions[0]->last, i - 1);
		return 2;
	}
	if (!o || o->kind != IR_WHILE) return 0;
	bool before = v->block == o->regions[0];
	out[0] = before ? ir_arg(o, i) : ir_arg(o->regions[0]->last, i + 1);
	if (before) out[1] = ir_arg(o->regions[1]->last, i);
	return before ? 2 : 1;
}

unsigned ir_sources(const ir_value *v, ir_value *out[IR_SOURCES])
{
	const ir_op *o = v->def;
	if (!o) return of_argument(v, out);
	assert(v->index < o->nresults && o->results[v->index] == v);
	if (o->kind != IR_IF && o->kind != IR_FOR && o->kind != IR_WHILE) return 0;
	out[0] = ir_arg(o->regions[0]->last, v->index + (o->kind == IR_WHILE));
	if (o->kind == IR_IF) out[1] = ir_arg(o->regions[1]->last, v->index);
	if (o->kind == IR_WHILE) out[1] = o->regions[1]->args[v->index];
	if (o->kind != IR_FOR) return 2;
	out[1] = o->regions[0]->args[v->index + 1];
	out[2] = ir_arg(o, v->index + 3);
	return 3;
}

unsigned ir_conditions(const ir_op *o, ir_value *out[IR_SOURCES])
{
	if (o->kind == IR_IF) return out[0] = ir_arg(o, 0), 1;
	if (o->kind == IR_WHILE) return out[0] = ir_arg(o->regions[0]->last, 0), 1;
	if (o->kind != IR_FOR) return 0;
	for (unsigned i = 0; i < 3; i++) out[i] = ir_arg(o, i);
	return 3;
}

bool ir_holds_for_all(ir_induction *now, const ir_value *v, ir_value *const *source, unsigned n,
	bool (*holds)(void *context, ir_value *, unsigned depth), void *context, unsigned depth)
{
	assert(n <= IR_SOURCES);
	bool good = true;
	for (unsigned i = 0; i < now->n; i++)
		if (now->open[i] == v) return true;
	if (now->n == IR_MOST_OPEN) return false;
	now->open[now->n++] = v;
	for (unsigned i = 0; good && i < n; i++) good = holds(context, source[i], depth);
	assert(now->n && now->open[now->n - 1] == v);
	now->n--;
	return good;
}
