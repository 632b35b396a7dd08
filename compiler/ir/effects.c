/* What memory a kernel may touch: which parameters' buffers it may write, and whether it writes elsewhere.
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

/* What a value of no loop or branch points into: what its own operation was given. */
static void follow_operands(roots *r, const ir_value *v)
{
	const ir_op *o = v->def;
	if (!o && !v->block->parent)
		r->root[v->id] = true;
	else if (o && o->kind == IR_SELECT) {
		follow(r, ir_arg(o, 1));
		follow(r, ir_arg(o, 2));
	} else if (o && o->nargs > 0 && ir_arg(o, 0)->type.pointer &&
		   (ir_has(o, IR_SHAPE) || o->kind == IR_BITCAST || o->kind == IR_PTR_ADD || o->kind == IR_HINT ||
			   o->kind == IR_TENSOR_MAP || o->kind == IR_CONVERT_LAYOUT))
		follow(r, ir_arg(o, 0));
	else
		r->unknown = true;
}

static void visit(ir_op *o, void *context)
{
	if (ir_has(o, IR_WRITES) && o->nargs && ir_arg(o, 0)->type.pointer) follow(context, ir_arg(o, 0));
}

/* Where the kernel's stores lead. */
static roots written(const ir_func *f)
{
	roots r = {.arena = f->arena,
		.seen = ARENA_ARRAY(f->arena, bool, f->nvalues),
		.root = ARENA_ARRAY(f->arena, bool, f->nvalues)};
	ir_walk(f->body, visit, &r);
	while (r.work.n) {
		const ir_value *v = r.work.at[--r.work.n];
		ir_value *from[IR_SOURCES];
		unsigned n = ir_sources(v, from);
		for (unsigned i = 0; i < n; i++) follow(&r, from[i]);
		if (n == 0) follow_operands(&r, v);
	}
	return r;
}

bool ir_param_written(const ir_func *f, uint32_t param)
{
	roots r = written(f);
	return f->params[param].type.pointer == IR_POINTER && (r.unknown || r.root[f->body->args[param]->id]);
}

bool ir_writes_addresses(const ir_func *f)
{
	return written(f).unknown;
}

bool ir_is_repeatable(const ir_op *o)
{
	if (o->kind == IR_LOAD) return ir_arg(o, 0)->type.pointer == IR_CONST_POINTER && !ir_get_volatile(o);
	return ir_has(o, IR_PURE) && !o->nregions;
}
