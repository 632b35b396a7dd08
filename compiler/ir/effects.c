/* What memory a kernel may touch: which parameters' buffers it may write.
 *
 * The one idea: follow a stored-through pointer back to parameters; whatever cannot be followed may be any `*T`. */
#include "ir.h"

typedef struct roots {
	bool *seen, *root; /* by value id */
	bool unknown;
	VEC(const ir_value *) work;
	arena *arena;
} roots;

static void follow(roots *r, const ir_value *v)
{
	if (r->seen[v->id]) return;
	r->seen[v->id] = true;
	vec_push(r->arena, &r->work, v);
}

static void follow_argument(roots *r, const ir_value *v)
{
	const ir_op *o = v->block->parent;
	if (!o)
		r->root[v->id] = true;
	else if (o->kind == IR_FOR && v->index > 0) {
		follow(r, ir_arg(o, v->index + 2));
		follow(r, ir_arg(o->regions[0]->last, v->index - 1));
	} else if (o->kind == IR_WHILE && v->block == o->regions[0]) {
		follow(r, ir_arg(o, v->index));
		follow(r, ir_arg(o->regions[1]->last, v->index));
	} else if (o->kind == IR_WHILE)
		follow(r, ir_arg(o->regions[0]->last, v->index + 1));
	else
		r->unknown = true;
}

static void follow_result(roots *r, const ir_value *v)
{
	const ir_op *o = v->def;
	switch (o->kind) {
	case IR_SELECT:
		follow(r, ir_arg(o, 1));
		follow(r, ir_arg(o, 2));
		break;
	case IR_IF:
		for (unsigned k = 0; k < 2; k++) follow(r, ir_arg(o->regions[k]->last, v->index));
		break;
	case IR_FOR:
		follow(r, ir_arg(o, v->index + 3));
		follow(r, ir_arg(o->regions[0]->last, v->index));
		break;
	case IR_WHILE: follow(r, ir_arg(o->regions[0]->last, v->index + 1)); break;
	case IR_BITCAST:
		if (!ir_arg(o, 0)->type.pointer)
			r->unknown = true;
		else
			follow(r, ir_arg(o, 0));
		break;
	default:
		if (o->nargs > 0 && ir_arg(o, 0)->type.pointer &&
			(ir_has(o, IR_SHAPE) || o->kind == IR_PTR_ADD || o->kind == IR_HINT ||
				o->kind == IR_TENSOR_MAP || o->kind == IR_CONVERT_LAYOUT))
			follow(r, ir_arg(o, 0));
		else
			r->unknown = true;
	}
}

static void visit(ir_op *o, void *context)
{
	if (ir_has(o, IR_WRITES) && o->nargs && ir_arg(o, 0)->type.pointer) follow(context, ir_arg(o, 0));
}

bool ir_param_written(const ir_func *f, uint32_t param)
{
	roots r = {.arena = f->arena,
		.seen = ARENA_ARRAY(f->arena, bool, f->nvalues),
		.root = ARENA_ARRAY(f->arena, bool, f->nvalues)};
	ir_walk(f->body, visit, &r);
	while (r.work.n) {
		const ir_value *v = r.work.at[--r.work.n];
		if (v->def)
			follow_result(&r, v);
		else
			follow_argument(&r, v);
	}
	return f->params[param].type.pointer == IR_POINTER && (r.unknown || r.root[f->body->args[param]->id]);
}
