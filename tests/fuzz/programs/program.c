/* A whole program from its seed: parameters, grid, a few names to start with, statements, and stores of what is left.
 */
#include "generate.h"

#include <string.h>

static buffer *add_buffer(gen *g, int kind, scalar s, int n)
{
	program *p = g->program;
	buffer *b = &p->buffers[p->nbuffers];
	*b = (buffer){.s = s, .kind = kind, .n = n};
	snprintf(b->name, sizeof b->name, "%c%d", "azws"[kind], p -> nbuffers++);
	switch (s) { /* small beside what the type holds, so that sums of them stay exact */
	case SCALAR_F16: b->mag = 3, b->frac = 1; break;
	case SCALAR_BF16: b->mag = 3, b->frac = 0; break;
	case SCALAR_F32: b->mag = 4, b->frac = 2; break;
	case SCALAR_F64: b->mag = 6, b->frac = 4; break;
	case SCALAR_F8E4M3:
	case SCALAR_F8E5M2: b->mag = 2, b->frac = 0; break;
	default: break;
	}
	if (rng_percent(&g->rng, 25)) b->off = rng_between(&g->rng, 1, 7);
	return b;
}

static scalar element(gen *g)
{
	static const scalar rare[] = {SCALAR_BOOL, SCALAR_F8E4M3, SCALAR_F8E5M2};
	if (rng_percent(&g->rng, 8)) return rare[rng_below(&g->rng, 3)];
	return random_type(g, scalar_shape, ON_INT | ON_FLOAT).s;
}

static const rule *atomic_row(const char *name)
{
	for (int i = 0; i < store_rules.n; i++)
		if (strcmp(store_rules.at[i].name, name) == 0) return &store_rules.at[i];
	return NULL;
}

static void add_shared(gen *g)
{
	static const char *const names[] = {
		"atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor"};
	static const scalar types[] = {SCALAR_I32, SCALAR_U32, SCALAR_I64, SCALAR_U64, SCALAR_F32, SCALAR_F64};
	int op = rng_below(&g->rng, 6);
	buffer *b = add_buffer(g, SHARED, types[rng_below(&g->rng, op < 3 ? 6 : 4)], rng_between(&g->rng, 1, 70));
	b->atomic = atomic_row(names[op]);
	if (scalar_is_float(b->s)) b->mag = 2, b->frac = 0;
}

static void add_scalar(gen *g)
{
	program *p = g->program;
	host_scalar *h = &p->scalars[p->nscalars++];
	h->var.type = random_type(g, scalar_shape, ON_INT | ON_FLOAT | ON_BOOL);
	snprintf(h->var.name, sizeof h->var.name, "p%d", p->nscalars);
	scalar s = h->var.type.s;
	if (scalar_is_float(s)) {
		h->var.type.mag = 3, h->var.type.frac = 1;
		h->bits = scalar_from_double(s, rng_between(&g->rng, -16, 16) / 2.0);
	} else if (s == SCALAR_BOOL)
		h->bits = (uint64_t)rng_below(&g->rng, 2);
	else
		h->bits = scalar_truncate(s,
			rng_percent(&g->rng, 70) ? (uint64_t)(int64_t)rng_between(&g->rng, -5, 40) : rng_next(&g->rng));
	g->visible[g->nvisible++] = &h->var;
}

/* Every variable that is still visible is stored, so that nothing computed is dead. */
static void store_variables(gen *g)
{
	static const rule row = {
		"store variable", "{ let at = %L; store(%p + base + at, %0, mask = at < r); }", 0, 0, ""};
	for (int i = 0; i < g->nvisible; i++) {
		variable *v = g->visible[i];
		if (v->name[0] == 'p' || g->program->nbuffers == MAX_BUFFERS) continue;
		node *n = node_new(g->program, &row, v->type);
		n->buffer = add_buffer(g, OUTPUT, v->type.s, 0);
		n->number[0] = rng_below(&g->rng, 16);
		block_push(g->program, &g->program->body, with(n, reference(g, v)));
	}
}

void program_generate(program *p, uint64_t seed)
{
	program_init(p);
	p->seed = seed;
	gen g = {.rng = {seed * 0x2545f4914f6cdd1du + 77}, .program = p, .work = 1, .odd = seed % 3 == 2};
	static const int elements[] = {16, 32, 64, 128, 128, 256, 512, 1024};
	static const int warps[] = {1, 2, 4, 4, 4, 8, 16};
	for (int i = 0; i < 3; i++)
		p->grid[i] = rng_percent(&g.rng, i ? 20 : 70) ? rng_between(&g.rng, 1, i ? 2 : 4) : 1;
	g.elements = elements[rng_below(&g.rng, 8)];
	p->num_warps = warps[rng_below(&g.rng, 7)];
	while (g.elements > 4 * 32 * p->num_warps) g.elements /= 2; /* what a thread holds is code to compile */
	p->n = rng_between(&g.rng, 5, 900) | 1;
	p->region = rng_percent(&g.rng, 50) ? g.elements : rng_between(&g.rng, 8, g.elements + 9);
	if (rng_percent(&g.rng, 30)) p->alias = random_type(&g, scalar_shape, ON_INT | ON_FLOAT).s;
	for (int i = rng_between(&g.rng, 2, 4); i > 0; i--) add_buffer(&g, INPUT, element(&g), p->n);
	for (int i = rng_between(&g.rng, 1, 2); i > 0; i--) add_buffer(&g, OUTPUT, element(&g), 0);
	for (int i = rng_between(&g.rng, 0, 2); i > 0; i--) add_buffer(&g, OWNED, element(&g), 0);
	for (int i = rng_between(&g.rng, 0, 2); i > 0; i--) add_shared(&g);
	for (int i = rng_between(&g.rng, 1, 4); i > 0; i--) add_scalar(&g);
	statements(&g, &p->body, rng_between(&g.rng, 3, 9), 3);
	store_variables(&g);
	for (int i = 0; i < p->nbuffers; i++)
		if (p->buffers[i].kind == OUTPUT || p->buffers[i].kind == OWNED)
			p->buffers[i].n = program_programs(p) * p->region;
}
