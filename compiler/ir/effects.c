/* What memory a kernel may touch: which parameters' buffers it may write, and through which parameters it comes by
 * addresses, which lead anywhere.
 *
 * The one idea: follow the pointer of each access back to parameters.  A value on the way either leads to what is
 * accessed, or, behind a load, to where its address lies:
 *
 *	store (load table).to(*f32) + i      the pointer leads to what is written; `table` to its address
 *
 * Only 64 bits make an address, and products and shifts make none; what ends without a parameter may be anywhere. */
#include "ir.h"

enum { TO_MEMORY, TO_ADDRESS, WAYS };

typedef struct trace {
	const ir_func *func;
	uint32_t *seen;           /* by value and way: the last access that came by */
	uint32_t access;          /* the present one, counted from 1 */
	bool *memory, *addresses; /* by parameter: what the present one leads to */
	bool known, lost;         /* somewhere; also to what cannot be followed */
	VEC(uint32_t) work;       /* value id * WAYS + way */
	const ir_value **values;  /* by id */
	arena *arena;
	ir_effects *out;
} trace;

static void follow(trace *t, const ir_value *v, unsigned way)
{
	assert(v->id < t->func->nvalues && way < WAYS);
	uint32_t at = v->id * WAYS + way;
	if (ir_element_bytes(v->type) != 8 || t->seen[at] == t->access) return;
	t->seen[at] = t->access;
	t->values[v->id] = v;
	vec_push(t->arena, &t->work, at);
}

static void follow_all(trace *t, const ir_op *o, unsigned way)
{
	for (unsigned i = 0; i < o->nargs; i++) follow(t, ir_arg(o, i), way);
}

/* A parameter, the counter of a loop, or an element in a reduction's region. */
static void follow_argument(trace *t, const ir_value *v, unsigned way)
{
	const ir_op *parent = v->block->parent;
	if (parent && parent->kind == IR_FOR)
		follow(t, ir_arg(parent, 0), way);
	else if (parent)
		follow_all(t, parent, way);
	else {
		bool *to = v->type.pointer && way == TO_MEMORY ? t->memory : t->addresses;
		to[v->index] = t->known = true;
		assert(v->index < t->func->nparams);
	}
}

/* What the copies into a multibuffer read: the pointers, or tensor maps, beside it. */
static void follow_copies(trace *t, const ir_value *multibuffer)
{
	for (const ir_use *u = multibuffer->uses; u; u = u->next)
		for (unsigned i = 0; i < u->user->nargs; i++)
			if (ir_arg(u->user, i)->type.pointer) follow(t, ir_arg(u->user, i), TO_ADDRESS);
}

static void follow_operation(trace *t, const ir_op *o, unsigned way)
{
	switch (o->kind) {
	case IR_MUL:
	case IR_DIV:
	case IR_REM:
	case IR_UMULHI:
	case IR_SHL:
	case IR_SHR:
	case IR_POPCOUNT:
	case IR_CLZ:
	case IR_BREV: break; /* an offset */
	case IR_PTR_ADD:
	case IR_GATHER: follow(t, ir_arg(o, 0), way); break;
	case IR_LOAD:
		follow(t, ir_arg(o, 0), TO_ADDRESS);
		if (o->nargs > 2) follow(t, ir_arg(o, 2), way); /* other */
		break;
	default:
		if (ir_has(o, IR_PURE))
			follow_all(t, o, way);
		else if (ir_touches(o, IR_READS_GLOBAL))
			follow(t, ir_arg(o, ir_pointer_at(o)), TO_ADDRESS);
		else if (ir_touches(o, IR_READS_SHARED))
			follow_copies(t, ir_arg(o, 0));
		else
			t->lost = true;
	}
}

static void follow_value(trace *t, const ir_value *v, unsigned way)
{
	ir_value *from[IR_SOURCES];
	unsigned n = ir_sources(v, from);
	for (unsigned i = 0; i < n; i++) follow(t, from[i], way);
	if (n == 0 && v->def)
		follow_operation(t, v->def, way);
	else if (n == 0)
		follow_argument(t, v, way);
}

/* Where the pointer of an access leads, into t->memory and t->addresses. */
static void follow_access(trace *t, const ir_value *pointer)
{
	assert(t->work.n == 0);
	assert(ir_element_bytes(pointer->type) == 8);
	t->access++;
	t->known = t->lost = false;
	for (uint32_t i = 0; i < t->func->nparams; i++) t->memory[i] = t->addresses[i] = false;
	follow(t, pointer, TO_MEMORY);
	while (t->work.n) {
		uint32_t at = t->work.at[--t->work.n];
		follow_value(t, t->values[at / WAYS], at % WAYS);
	}
}

static void note_access(trace *t, const ir_value *pointer, bool writes)
{
	follow_access(t, pointer);
	ir_effects *e = t->out;
	bool anywhere = t->lost || !t->known;
	e->addresses = e->addresses || anywhere;
	e->written_anywhere = e->written_anywhere || (writes && anywhere);
	for (uint32_t i = 0; i < t->func->nparams; i++) {
		e->addresses = e->addresses || t->addresses[i];
		e->written[i] = e->written[i] || (writes && t->memory[i]);
		e->written_through[i] = e->written_through[i] || (writes && t->addresses[i]);
	}
}

static void visit(ir_op *o, void *context)
{
	if (!ir_touches(o, IR_GLOBAL)) return;
	for (unsigned i = 0; i < o->nargs; i++)
		if (ir_arg(o, i)->type.pointer)
			note_access(context, ir_arg(o, i), i == ir_pointer_at(o) && ir_touches(o, IR_WRITES_GLOBAL));
}

/* Addresses that the kernel has stored itself may be any; what is written through an address may be any buffer. */
static void widen(const ir_func *f, ir_effects *e)
{
	bool through = false;
	for (uint32_t i = 0; i < f->nparams; i++) {
		through = through || e->written_through[i];
		e->written_anywhere = e->written_anywhere || (e->written_through[i] && e->written[i]);
	}
	through = through || e->written_anywhere;
	for (uint32_t i = 0; i < f->nparams; i++)
		e->written[i] = f->params[i].type.pointer == IR_POINTER && (e->written[i] || through);
}

ir_effects ir_find_effects(const ir_func *f)
{
	arena *a = f->arena;
	ir_effects e = {
		.written = ARENA_ARRAY(a, bool, f->nparams), .written_through = ARENA_ARRAY(a, bool, f->nparams)};
	trace t = {.func = f,
		.arena = a,
		.out = &e,
		.seen = ARENA_ARRAY(a, uint32_t, (size_t)f->nvalues * WAYS),
		.values = ARENA_ARRAY(a, const ir_value *, f->nvalues),
		.memory = ARENA_ARRAY(a, bool, f->nparams),
		.addresses = ARENA_ARRAY(a, bool, f->nparams)};
	ir_walk(f->body, visit, &t);
	widen(f, &e);
	return e;
}

bool ir_is_repeatable(const ir_op *o)
{
	assert(!ir_has_attribute(o, IR_ATTR_volatile) || ir_touches(o, IR_GLOBAL));
	if (ir_has_attribute(o, IR_ATTR_volatile))
		return ir_arg(o, ir_pointer_at(o))->type.pointer == IR_CONST_POINTER && !ir_get_volatile(o);
	return ir_has(o, IR_PURE) && !o->nregions;
}
