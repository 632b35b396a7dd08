/* Functions and their calls.  A call uses one of the program's functions that returns what is wanted, or makes one. */
#include "generate.h"

#include <string.h>

static void type_text(char *out, size_t room, const tile_type *t)
{
	int at = snprintf(out, room, "%s", scalar_name(t->s));
	for (int i = 0; i < t->shape.rank; i++)
		at += snprintf(out + at, room - (size_t)at, "%s%d", i ? ", " : "[", t->shape.dim[i]);
	if (t->shape.rank) snprintf(out + at, room - (size_t)at, "]");
}

/* `fn f3(p, q: i32[8]) { .. return e; }`; a scalar condition may return early. */
static const fn_info *make_function(gen *g, tile_type result, int depth)
{
	static const rule fn_row = {"fn", "fn %v(%W {\n%[}", 0, 0, ""},
			  return_row = {"return value", "return %0;", 0, 0, ""};
	if (g->nfunctions == MAX_FUNCTIONS || g->in_fn || g->nodes > 130) return NULL;
	gen inner = *g;
	fn_info *f = &g->functions[g->nfunctions];
	*f = (fn_info){.result = result, .nparams = rng_between(&g->rng, 1, 3)};
	inner.in_fn = true;
	inner.nvisible = 0;
	inner.loops = 0;
	node *n = node_new(g->program, &fn_row, result);
	char *word = program_alloc(g->program, 256);
	int at = 0;
	variable *self = declare(&inner, 'f', result, false);
	inner.nvisible = 0;
	snprintf(f->name, sizeof f->name, "%s", self->name);
	n->var[0] = self;
	bool typed = rng_percent(&g->rng, 50);
	for (int i = 0; i < f->nparams; i++) {
		f->params[i] = i == 0 ? result
				      : random_type(&inner, rng_percent(&inner.rng, 60) ? result.shape : scalar_shape,
						ON_NUMBER | ON_BOOL);
		variable *v = declare(&inner, 'x', f->params[i], false);
		char text[64] = "";
		if (typed || rng_percent(&inner.rng, 20)) type_text(text, sizeof text, &f->params[i]);
		at += snprintf(
			word + at, 256 - (size_t)at, "%s%s%s%s", i ? ", " : "", v->name, *text ? ": " : "", text);
	}
	char text[64];
	type_text(text, sizeof text, &result);
	snprintf(word + at, 256 - (size_t)at, typed ? ") -> %s" : ")", text);
	n->word = word;
	n->nbodies = 1;
	statements(&inner, &n->body[0], rng_below(&inner.rng, 4), depth > 1 ? 1 : 0);
	block_push(g->program, &n->body[0],
		with(node_new(g->program, &return_row, result), expression(&inner, result, depth)));
	block_push(g->program, &g->program->functions, n);
	g->rng = inner.rng;
	g->names = inner.names;
	g->nodes = inner.nodes;
	g->nfunctions++;
	return f;
}

static bool build_call(gen *g, node *n, int depth)
{
	const fn_info *f = NULL;
	for (int i = 0; i < g->nfunctions; i++)
		if (type_fits(&g->functions[i].result, &n->type) && (!f || rng_percent(&g->rng, 50)))
			f = &g->functions[i];
	if (g->in_fn) return false;
	if (!f || rng_percent(&g->rng, 30)) f = make_function(g, n->type, depth > 2 ? 2 : depth);
	if (!f) return false;
	fn_info info = *f;
	rule *row = program_alloc(g->program, sizeof *row);
	char *text = program_alloc(g->program, 32);
	const char *const forms[] = {"%W(%0)", "%W(%0, %1)", "%W(%0, %1, %2)"};
	snprintf(text, 32, "%s", rng_percent(&g->rng, 20) && info.nparams == 2 ? "%0.%W(%1)" : forms[info.nparams - 1]);
	*row = (rule){"call", text, 0, 0, ""};
	char *name = program_alloc(g->program, sizeof info.name);
	memcpy(name, info.name, sizeof info.name);
	n->rule = row;
	n->word = name;
	n->type = info.result;
	for (int i = 0; i < info.nparams; i++)
		if (!with(n, expression(g, info.params[i], depth))) return false;
	return true;
}

static const rule table[] = {
	{"call", "", 6, ON_ANY, "", build_call},
};
const rules call_rules = RULES(table);
