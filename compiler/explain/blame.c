/* Why an access is not wider, in the names of the program.
 *
 * In: a load, store or atomic, and the axis analysis.  Out: a sentence, and promises that would help.
 * The one idea: the axis analysis knows which fact is missing (alignment of the address, neighbours, a mask's end);
 * going back over the operations, through those operands alone that lack it, ends at whoever is to blame: a parameter,
 * of which the host may promise more, a constant, or a value from memory. */
#include "explain.h"

#include "analysis/access.h"

#include <assert.h>
#include <string.h>

enum { MAX_NAMES = 4, MAX_STEPS = 1000 };

typedef struct search {
	const pass_context *pass;
	const ir_func *func;
	const char *names[MAX_NAMES]; /* parameters */
	unsigned n;
	int64_t constant; /* an offset that spoils it; 0: none */
	bool from_memory, computed;
	unsigned steps; /* walked so far: a graph may have very many paths */
} search;

static void blame_param(search *s, const ir_value *v, uint64_t wanted)
{
	const ir_param *p = &s->func->params[v->index];
	if (p->divisible >= wanted || (!v->type.pointer && scalar_is_float(v->type.elem))) return;
	for (unsigned i = 0; i < s->n; i++)
		if (strcmp(s->names[i], p->name) == 0) return;
	if (s->n < MAX_NAMES) s->names[s->n++] = p->name;
}

static void blame(search *s, const ir_value *v, uint64_t wanted);

static void blame_argument(search *s, const ir_value *v, uint64_t wanted)
{
	const ir_op *o = v->block->parent;
	if (!o) {
		blame_param(s, v, wanted);
		return;
	}
	if (o->kind == IR_FOR && v->index == 0) {
		blame(s, ir_arg(o, 0), wanted);
		blame(s, ir_arg(o, 2), wanted);
	} else if (o->kind == IR_FOR) {
		blame(s, ir_arg(o, v->index + 2), wanted);
		blame(s, ir_arg(o->regions[0]->last, v->index - 1), wanted);
	} else
		s->computed = true;
}

/* A product needs one factor that divides; where none does, each of them might. */
static void blame_product(search *s, const ir_op *o, uint64_t wanted)
{
	search before = *s;
	for (unsigned i = 0; i < 2; i++) blame(s, ir_arg(o, i), wanted);
	if (s->n == before.n) return;
	s->constant = before.constant; /* the parameter can be helped */
	s->computed = before.computed;
	s->from_memory = before.from_memory;
}

static bool suffices(const search *s, const ir_value *v, uint64_t wanted)
{
	assert(wanted);
	const axis_info *a = axis_get(s->pass, v);
	for (unsigned d = 0; a->known && d < (v->type.rank ? v->type.rank : 1u); d++)
		if (a->contiguity[d] == 1 && a->divisibility[d] >= wanted) return true;
	return false;
}

/* Something in v is not divisible by `wanted` (bytes for pointers) where its runs start. */
static void blame(search *s, const ir_value *v, uint64_t wanted)
{
	assert(wanted);
	const ir_op *o = v->def;
	int64_t n;
	if (suffices(s, v, wanted) || s->steps++ > MAX_STEPS) return;
	if (!o) {
		blame_argument(s, v, wanted);
		return;
	}
	switch (o->kind) {
	case IR_CONST:
		if (ir_is_const_int(v, &n)) s->constant = n;
		return;
	case IR_ARANGE:
		if (ir_get_lo(o) % (int64_t)wanted) s->constant = ir_get_lo(o);
		return;
	case IR_PTR_ADD:
		blame(s, ir_arg(o, 0), wanted);
		blame(s, ir_arg(o, 1), wanted / scalar_bytes(v->type.elem));
		return;
	case IR_MUL: blame_product(s, o, wanted); return;
	case IR_ADD:
	case IR_SUB:
	case IR_MAX:
	case IR_MIN:
	case IR_OR:
		for (unsigned i = 0; i < 2; i++) blame(s, ir_arg(o, i), wanted);
		return;
	case IR_SELECT:
		for (unsigned i = 1; i < 3; i++) blame(s, ir_arg(o, i), wanted);
		return;
	case IR_SPLAT:
	case IR_BROADCAST:
	case IR_EXPAND_DIMS:
	case IR_RESHAPE:
	case IR_PERMUTE:
	case IR_HINT:
	case IR_CONVERT:
	case IR_BITCAST:
	case IR_CONVERT_LAYOUT: blame(s, ir_arg(o, 0), wanted); return;
	case IR_LOAD: s->from_memory = true; return;
	default: s->computed = true; return;
	}
}

/* The comparisons of a mask. */
static void blame_mask(search *s, const ir_value *v, uint64_t wanted)
{
	const ir_op *o = v->def;
	if (s->steps++ > MAX_STEPS) return;
	if (!o || o->kind == IR_LOAD) {
		s->from_memory = true;
		return;
	}
	bool compares = ir_is_comparison(o->kind);
	for (unsigned i = 0; i < o->nargs; i++)
		if (compares)
			blame(s, ir_arg(o, i), wanted);
		else
			blame_mask(s, ir_arg(o, i), wanted);
}

/* Scalars with which offsets are multiplied. */
static void find_factors(search *s, const ir_value *v)
{
	const ir_op *o = v->def;
	if (!o || s->steps++ > MAX_STEPS || ir_is_scalar(v)) return;
	if (o->kind == IR_LOAD) s->from_memory = true;
	if (ir_touches(o, IR_READS | IR_EFFECTS)) return;
	if (o->kind == IR_MUL || o->kind == IR_DIV || o->kind == IR_REM)
		for (unsigned i = 0; i < 2; i++) {
			const ir_value *x = ir_arg(o, i);
			while (x->def && (ir_has(x->def, IR_SHAPE) || x->def->kind == IR_CONVERT))
				x = ir_arg(x->def, 0);
			int64_t n;
			if (ir_is_const_int(x, &n)) s->constant = n;
			if (ir_is_scalar(x) && !x->def && !x->block->parent) blame_param(s, x, UINT64_MAX);
		}
	for (unsigned i = 0; i < o->nargs; i++) find_factors(s, ir_arg(o, i));
}

static void put_names(text *out, const search *s)
{
	for (unsigned i = 0; i < s->n; i++)
		text_printf(out, "%s'%s'", i == 0 ? "" : i + 1 == s->n ? " and " : ", ", s->names[i]);
}

static const char *put_promise(const search *s, arena *a, const char *what)
{
	text out = {.arena = a};
	if (!s->n) return NULL;
	for (unsigned i = 0; i < s->n; i++) text_printf(&out, "%s%s%s", i ? "," : "", s->names[i], what);
	return out.at;
}

static const char *of_alignment(search *s, const ir_op *o, unsigned bytes, const char **promise)
{
	assert(bytes && !(bytes & (bytes - 1)));
	text out = {.arena = s->pass->arena};
	blame(s, ir_arg(o, 0), bytes);
	text_printf(&out, "the address is not known to be a multiple of %u bytes", bytes);
	if (s->n) {
		text_puts(&out, ": nothing is promised of ");
		put_names(&out, s);
	}
	const char *more = s->n ? ", and " : ": ";
	if (s->constant) text_printf(&out, "%sthe offset %lld", more, (long long)s->constant);
	if (s->from_memory)
		text_printf(&out, "%soffsets come from memory", more);
	else if (s->computed && !s->constant)
		text_printf(&out, "%san offset is computed", more);
	if (s->n && ir_mask(o)) blame_mask(s, ir_mask(o), 16 / scalar_bytes(ir_arg(o, 0)->type.elem));
	*promise = put_promise(s, s->pass->arena, "%16");
	return out.at;
}

static const char *of_mask(search *s, const ir_op *o, unsigned elements, const char **promise)
{
	assert(elements && !(elements & (elements - 1)));
	text out = {.arena = s->pass->arena};
	blame_mask(s, ir_mask(o), elements);
	text_puts(&out, "the mask may change inside the access");
	if (s->n) {
		text_puts(&out, ": ");
		put_names(&out, s);
		text_printf(&out, " %s not known to be divisible by %u", s->n > 1 ? "are" : "is", elements);
		*promise = put_promise(s, s->pass->arena, "%16");
	} else if (s->constant)
		text_printf(&out, ": its bound %lld is not divisible by %u", (long long)s->constant, elements);
	return out.at;
}

static const char *of_spread(search *s, const ir_op *o, const char **promise)
{
	text out = {.arena = s->pass->arena};
	find_factors(s, ir_arg(o, 0));
	text_puts(&out, "neighbours are not known to be adjacent in memory");
	if (s->from_memory)
		text_puts(&out, ": offsets come from memory");
	else if (s->n) {
		text_puts(&out, ": offsets are multiplied by ");
		put_names(&out, s);
		*promise = put_promise(s, s->pass->arena, "=1");
	} else if (s->constant)
		text_printf(&out, ": offsets are multiplied or divided by %lld", (long long)s->constant);
	return out.at;
}

const char *explain_blame(const pass_context *p, const ir_func *f, const ir_op *o, const char **promise)
{
	search s = {.pass = p, .func = f};
	const ir_value *pointer = ir_arg(o, 0);
	access_plan plan = access_plan_make(p, o);
	unsigned bytes = scalar_bytes(pointer->type.elem), most = 16 / bytes;
	*promise = NULL;
	if (plan.limit == AXIS_SCALAR || plan.limit == AXIS_ATOMIC) return axis_limit_text[plan.limit];
	if (plan.width >= most) return NULL;
	uint64_t elements = ir_elements(pointer->type), threads = 32 * (uint64_t)f->num_warps;
	if (elements <= threads * plan.width)
		return arena_printf(p->arena, "%llu elements for %llu threads leave no more to a thread",
			(unsigned long long)elements, (unsigned long long)threads);
	if (plan.width < plan.proven)
		return "the layout, chosen for another access of this shape, holds no more neighbours in a thread";
	if (plan.limit == AXIS_UNALIGNED) return of_alignment(&s, o, 16, promise);
	return plan.limit == AXIS_MASK ? of_mask(&s, o, most, promise) : of_spread(&s, o, promise);
}

const char *explain_base(const ir_func *f, const ir_value *v)
{
	assert(v->type.pointer);
	for (;;) {
		const ir_op *o = v->def;
		if (!o && !v->block->parent) return f->params[v->index].name;
		if (!o && v->block->parent->kind == IR_FOR && v->index > 0)
			v = ir_arg(v->block->parent, v->index + 2);
		else if (o && o->nargs && ir_arg(o, 0)->type.pointer &&
			 (ir_has(o, IR_SHAPE) || o->kind == IR_PTR_ADD || o->kind == IR_BITCAST || o->kind == IR_HINT ||
				 o->kind == IR_CONVERT_LAYOUT))
			v = ir_arg(o, 0);
		else
			return NULL;
	}
}
