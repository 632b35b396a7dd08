/* Statements: names, assignments, control flow.
 *
 * The one idea: a loop's trips are few and known, so `work`, the trips of all loops around multiplied, bounds what a
 * program does; conditions of run-time control flow are any bool scalars, as every path is legal. */
#include "generate.h"

variable *declare(gen *g, char letter, tile_type t, bool mutable)
{
	variable *v = program_alloc(g->program, sizeof *v);
	snprintf(v->name, sizeof v->name, "%c_%d", letter, g->names++);
	v->type = t;
	v->mutable = mutable;
	v->in_fn = g->in_fn;
	if (g->nvisible < MAX_VARIABLES) g->visible[g->nvisible++] = v;
	return v;
}

static tile_type statement_type(gen *g)
{
	tile_type t = random_type(g, random_shape(g), ON_ANY);
	return t;
}

static void inner(gen *g, node *n, int which, int count, int depth)
{
	int visible = g->nvisible;
	n->nbodies = which + 1;
	statements(g, &n->body[which], count, depth);
	g->nvisible = visible;
}

static bool condition(gen *g, node *n)
{
	return with(n, expression(g, type_of(SCALAR_BOOL, scalar_shape), 2)) != NULL;
}

static bool build_let(gen *g, node *n, int depth)
{
	n->type = statement_type(g);
	if (!with(n, expression(g, n->type, depth))) return false;
	n->var[0] = declare(g, 'v', n->type, n->rule->kids[0] == 'v');
	return true;
}

static variable *random_mutable(gen *g, unsigned on)
{
	variable *found = NULL;
	int seen = 0;
	for (int i = 0; i < g->nvisible; i++)
		if (g->visible[i]->mutable && (class_of(&g->visible[i]->type) & on) && rng_below(&g->rng, ++seen) == 0)
			found = g->visible[i];
	return found;
}

static bool build_assign(gen *g, node *n, int depth)
{
	variable *v = random_mutable(g, ON_ANY);
	if (!v) return false;
	n->var[0] = v;
	n->type = v->type;
	return with(n, expression(g, v->type, depth)) != NULL;
}

static bool build_compound(gen *g, node *n, int depth) /* integers: they wrap in any loop */
{
	variable *v = random_mutable(g, ON_INT);
	if (!v) return false;
	n->var[0] = v;
	n->type = v->type;
	return with(n, expression(g, v->type, depth)) != NULL;
}

static bool build_swap(gen *g, node *n, int depth)
{
	variable *a = random_mutable(g, ON_ANY), *b = NULL;
	(void)depth;
	if (!a) return false;
	for (int i = 0; i < g->nvisible; i++) {
		variable *v = g->visible[i];
		if (v->mutable && v != a && type_fits(&v->type, &a->type) && type_fits(&a->type, &v->type)) b = v;
	}
	if (!b) { /* none of its type: it gets a twin here */
		return false;
	}
	n->var[0] = a;
	n->var[1] = b;
	return true;
}

static bool build_pair(gen *g, node *n, int depth) /* two names of one type at once */
{
	n->type = statement_type(g);
	if (!with(n, expression(g, n->type, depth)) || !with(n, expression(g, n->type, depth))) return false;
	bool mutable = n->rule->kids[0] == 'v';
	n->var[0] = declare(g, 'v', n->type, mutable);
	n->var[1] = declare(g, 'v', n->type, mutable);
	return true;
}

static bool build_split(gen *g, node *n, int depth)
{
	tile_type t = statement_type(g), joined = t;
	if (t.shape.rank == MAX_RANK) return false;
	joined.shape.dim[joined.shape.rank++] = 2;
	n->type = t;
	if (!with(n, expression(g, joined, depth))) return false;
	n->var[0] = declare(g, 'v', t, false);
	n->var[1] = declare(g, 'v', t, false);
	return true;
}

/* ---- control flow ---- */

static bool build_if(gen *g, node *n, int depth)
{
	if (depth < 1 || !condition(g, n)) return false;
	inner(g, n, 0, rng_between(&g->rng, 1, 3), depth - 1);
	if (n->rule->kids[0]) inner(g, n, 1, rng_between(&g->rng, 1, 3), depth - 1);
	return true;
}

static bool build_static_if(gen *g, node *n, int depth)
{
	if (depth < 1) return false;
	n->number[0] = rng_below(&g->rng, 7);
	inner(g, n, 0, rng_between(&g->rng, 1, 2), depth - 1);
	inner(g, n, 1, rng_between(&g->rng, 1, 2), depth - 1);
	return true;
}

static bool looped(gen *g, node *n, int trips, int depth)
{
	g->work *= trips;
	g->loops++;
	inner(g, n, 0, rng_between(&g->rng, 1, 4), depth - 1);
	g->loops--;
	g->work /= trips;
	return true;
}

static bool build_for(gen *g, node *n, int depth)
{
	static const char *const attributes[] = {
		"", "", "", ", num_stages = 3", ", num_stages = 2", ", unroll = 2", ", unroll = 4", ", flatten = true"};
	int trips = rng_between(&g->rng, 1, 6), step = rng_between(&g->rng, 1, 5);
	if (depth < 1 || g->work * trips > 40) return false;
	if (rng_percent(&g->rng, 25)) step = -step;
	n->number[0] = rng_between(&g->rng, -20, 20);
	n->number[1] = n->number[0] + step * trips;
	n->number[2] = step;
	n->word = attributes[rng_below(&g->rng, (int)(sizeof attributes / sizeof *attributes))];
	int visible = g->nvisible;
	n->var[0] = declare(g, 'i', type_of(SCALAR_I32, scalar_shape), false);
	bool good = looped(g, n, trips, depth);
	g->nvisible = visible;
	return good;
}

static bool build_runtime_for(gen *g, node *n, int depth) /* 0 to `a` trips, as a run-time value says */
{
	n->number[0] = (1 << rng_between(&g->rng, 0, 3)) - 1;
	int trips = (int)n->number[0] + 1;
	if (depth < 1 || g->work * trips > 40) return false;
	if (!with(n, expression(g, type_of(SCALAR_I32, scalar_shape), 1))) return false;
	int visible = g->nvisible;
	n->var[0] = declare(g, 'i', type_of(SCALAR_I32, scalar_shape), false);
	bool good = looped(g, n, trips, depth);
	g->nvisible = visible;
	return good;
}

static bool build_static_for(gen *g, node *n, int depth)
{
	int trips = rng_between(&g->rng, 1, 4);
	if (depth < 1 || g->work * trips > 24 || g->nodes > 90) return false;
	n->number[0] = trips;
	int visible = g->nvisible;
	n->var[0] = declare(g, 'i', type_of(SCALAR_I32, scalar_shape), false);
	bool good = looped(g, n, trips, depth);
	g->nvisible = visible;
	return good;
}

static bool build_while(gen *g, node *n, int depth)
{
	int trips = rng_between(&g->rng, 1, 6);
	if (depth < 1 || g->work * trips > 40 || !condition(g, n)) return false;
	n->number[0] = trips;
	int visible = g->nvisible;
	n->var[0] = declare(g, 'w', type_of(SCALAR_I32, scalar_shape), false);
	bool good = looped(g, n, trips, depth);
	g->nvisible = visible;
	return good;
}

static bool build_jump(gen *g, node *n, int depth)
{
	(void)depth;
	return g->loops > 0 && condition(g, n);
}

static bool build_return(gen *g, node *n, int depth)
{
	(void)depth;
	return !g->in_fn && condition(g, n);
}

static bool build_block(gen *g, node *n, int depth)
{
	if (depth < 1) return false;
	inner(g, n, 0, rng_between(&g->rng, 1, 3), depth - 1);
	return true;
}

static bool build_plain(gen *g, node *n, int depth)
{
	(void)g, (void)n, (void)depth;
	return true;
}

static bool build_assert(gen *g, node *n, int depth)
{
	return with(n, expression(g, random_type(g, scalar_shape, ON_INT), depth)) != NULL;
}

static const rule table[] = {
	{"let", "let %v = %0;", 22, 0, "", build_let},
	{"let typed", "let %v: %T = %0;", 8, 0, "", build_let},
	{"var", "var %v: %T = %0;", 22, 0, "v", build_let},
	{"assign", "%v = %0;", 26, 0, "", build_assign},
	{"+=", "%v += %0;", 8, 0, "", build_compound},
	{"-= and its like", "%v ^= %0;", 3, 0, "", build_compound},
	{"swap", "(%v, %w) = (%w, %v);", 8, 0, "", build_swap},
	{"let pair", "let (%v, %w) = (%0, %1);", 3, 0, "", build_pair},
	{"var pair", "var (%v, %w) = (%0, %1);", 8, 0, "v", build_pair},
	{"let split", "let (%v, %w) = split(%0);", 4, 0, "", build_split},
	{"if", "if %0 {\n%[}", 10, 0, "", build_if},
	{"if else", "if %0 {\n%[} else {\n%]}", 10, 0, "e", build_if},
	{"compile-time if", "if C0 < %a && C1 {\n%[} else {\n%]}", 4, KERNEL, "", build_static_if},
	{"for", "for %v in range(%a, %b, %c%W) {\n%[}", 20, 0, "", build_for},
	{"for run-time", "for %v in range(%0 & %a) {\n%[}", 8, 0, "", build_runtime_for},
	{"for static", "for %v in static_range(%a) {\n%[}", 6, 0, "", build_static_for},
	{"while", "var %v = 0;\nwhile (%v < %a) && %0 {\n%v += 1;\n%[}", 10, 0, "", build_while},
	{"break", "if %0 { break; }", 6, 0, "", build_jump},
	{"continue", "if %0 { continue; }", 6, 0, "", build_jump},
	{"return", "if %0 { return; }", 1, 0, "", build_return},
	{"block", "{\n%[}", 3, 0, "", build_block},
	{"debug_barrier", "debug_barrier();", 1, KERNEL, "", build_plain},
	{"device_assert", "device_assert((%0 | 1) != 0, \"odd\");", 1, KERNEL, "", build_assert},
};
const rules statement_rules = RULES(table);

static const rule *draw(gen *g)
{
	const rules *const all[] = {&statement_rules, &store_rules};
	int total = 0;
	for (int t = 0; t < 2; t++)
		for (int i = 0; i < all[t]->n; i++) total += all[t]->at[i].weight;
	int left = rng_below(&g->rng, total);
	for (int t = 0; t < 2; t++)
		for (int i = 0; i < all[t]->n; i++)
			if ((left -= all[t]->at[i].weight) < 0) return &all[t]->at[i];
	return NULL;
}

void statements(gen *g, block *b, int count, int depth)
{
	for (int i = 0; i < count && g->nodes < 140; i++)
		for (int tries = 0; tries < 12; tries++) {
			const rule *r = draw(g);
			if (!r || ((r->on & KERNEL) && g->in_fn)) continue;
			node *n = node_new(g->program, r, type_of(SCALAR_I32, scalar_shape));
			int visible = g->nvisible;
			if (r->build(g, n, depth > 3 ? 3 : depth)) {
				block_push(g->program, b, n);
				break;
			}
			g->nvisible = visible;
		}
}
