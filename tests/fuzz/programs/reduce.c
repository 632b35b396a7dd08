/* A failing program made smaller while it fails the same way.
 *
 * In: the program and its verdict.  Out: the program, smaller.
 * The one idea: each kind of change is a function that makes the k-th change of its kind on a copy, and says whether
 * there was one; a copy that still fails with the same key replaces the program.  Kinds are tried from the coarsest to
 * the finest until none helps.  Any change gives a program in bounds, as the rows' texts guard their operands; one that
 * does not compile fails in another way and is dropped. */
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- copies ---- */

typedef struct pairs {
	const variable *from[4096];
	variable *to[4096];
	int n;
} pairs;

static variable *copy_variable(program *p, pairs *m, const variable *v)
{
	if (!v) return NULL;
	for (int i = 0; i < m->n; i++)
		if (m->from[i] == v) return m->to[i];
	variable *c = program_alloc(p, sizeof *c);
	*c = *v;
	if (m->n < 4096) {
		m->from[m->n] = v;
		m->to[m->n++] = c;
	}
	return c;
}

static node *copy_node(program *p, pairs *m, const node *n);

static block copy_block(program *p, pairs *m, const block *b)
{
	block c = {0};
	for (int i = 0; i < b->n; i++) block_push(p, &c, copy_node(p, m, b->at[i]));
	return c;
}

static node *copy_node(program *p, pairs *m, const node *n)
{
	node *c = program_alloc(p, sizeof *c);
	*c = *n;
	for (int i = 0; i < 2; i++) c->var[i] = copy_variable(p, m, n->var[i]);
	for (int i = 0; i < n->nkids; i++) c->kid[i] = copy_node(p, m, n->kid[i]);
	for (int i = 0; i < n->nbodies; i++) c->body[i] = copy_block(p, m, &n->body[i]);
	return c;
}

/* Words, rows and buffers' names stay those of the first program, which lives as long. */
static void copy_program(program *to, const program *from)
{
	pairs *m = calloc(1, sizeof *m);
	if (!m) exit(2);
	*to = *from;
	to->memory = NULL;
	to->functions = copy_block(to, m, &from->functions);
	to->body = copy_block(to, m, &from->body);
	free(m);
}

/* ---- walking: every block and every expression has a number ---- */

typedef struct walk {
	int left; /* until the wanted one */
	block *block;
	node **slot;
	bool expressions;
} walk;

static bool visit_node(walk *w, node **n, bool is_expression);

static bool visit_block(walk *w, block *b)
{
	if (!w->expressions && w->left-- == 0) {
		w->block = b;
		return true;
	}
	for (int i = 0; i < b->n; i++)
		if (visit_node(w, &b->at[i], false)) return true;
	return false;
}

static bool visit_node(walk *w, node **n, bool is_expression)
{
	if (w->expressions && is_expression && w->left-- == 0) {
		w->slot = n;
		return true;
	}
	for (int i = 0; i < (*n)->nkids; i++)
		if (visit_node(w, &(*n)->kid[i], true)) return true;
	for (int i = 0; i < (*n)->nbodies; i++)
		if (visit_block(w, &(*n)->body[i])) return true;
	return false;
}

static block *nth_block(program *p, int k)
{
	walk w = {.left = k};
	return visit_block(&w, &p->body) || visit_block(&w, &p->functions) ? w.block : NULL;
}

static node **nth_expression(program *p, int k)
{
	walk w = {.left = k, .expressions = true};
	return visit_block(&w, &p->body) || visit_block(&w, &p->functions) ? w.slot : NULL;
}

/* ---- names without a declaration become constants, assignments to them go ---- */

static bool declares(const node *n, const variable *v)
{
	const char *text = n->rule->text;
	bool does = strncmp(text, "let ", 4) == 0 || strncmp(text, "var ", 4) == 0 || strncmp(text, "for ", 4) == 0;
	if (does && (n->var[0] == v || n->var[1] == v)) return true;
	for (int b = 0; b < n->nbodies; b++)
		for (int i = 0; i < n->body[b].n; i++)
			if (declares(n->body[b].at[i], v)) return true;
	return false;
}

static bool known(const program *p, const variable *v)
{
	if (v->name[0] == 'x' || v->name[0] == 'p') return true; /* parameters */
	for (int i = 0; i < p->body.n; i++)
		if (declares(p->body.at[i], v)) return true;
	for (int i = 0; i < p->functions.n; i++)
		if (declares(p->functions.at[i], v)) return true;
	return false;
}

static void mend_node(program *p, node **n)
{
	node *at = *n;
	if (strcmp(at->rule->text, "%v") == 0 && !known(p, at->var[0])) {
		*n = node_constant(p, at->type, 0);
		return;
	}
	for (int i = 0; i < at->nkids; i++) mend_node(p, &at->kid[i]);
	for (int b = 0; b < at->nbodies; b++) {
		block *body = &at->body[b];
		int kept = 0;
		for (int i = 0; i < body->n; i++) {
			node *s = body->at[i];
			bool assigns = s->rule->text[0] == '%' || s->rule->text[0] == '(';
			if (assigns && ((s->var[0] && !known(p, s->var[0])) || (s->var[1] && !known(p, s->var[1]))))
				continue;
			body->at[kept++] = s;
		}
		body->n = kept;
		for (int i = 0; i < kept; i++) mend_node(p, &body->at[i]);
	}
}

static void mend(program *p)
{
	static const rule row = {"all", "", 0, 0, ""};
	node whole = {.rule = &row, .nbodies = 2, .body = {p->functions, p->body}}, *n = &whole;
	mend_node(p, &n);
	p->functions = whole.body[0];
	p->body = whole.body[1];
}

/* ---- changes ---- */

static void cut(block *b, int from, int n)
{
	memmove(b->at + from, b->at + from + n, (size_t)(b->n - from - n) * sizeof *b->at);
	b->n -= n;
}

static int drop(program *p, int k) /* the k-th run of statements, long ones first; 0: no such; 1: done */
{
	for (int i = 0;; i++) {
		block *b = nth_block(p, i);
		if (!b) return 0;
		for (int size = b->n; size > 0; size /= 2)
			for (int from = 0; from + size <= b->n; from += size)
				if (k-- == 0) {
					cut(b, from, size);
					mend(p);
					return 1;
				}
	}
}

static int unwrap(program *p, int k) /* a loop or an `if` becomes what it holds */
{
	for (int i = 0;; i++) {
		block *b = nth_block(p, i);
		if (!b || b == &p->functions) return 0;
		for (int s = 0; s < b->n; s++)
			for (int which = 0; which < b->at[s]->nbodies; which++)
				if (k-- == 0) {
					block old = *b, inner = b->at[s]->body[which];
					*b = (block){0};
					for (int j = 0; j < s; j++) block_push(p, b, old.at[j]);
					for (int j = 0; j < inner.n; j++) block_push(p, b, inner.at[j]);
					for (int j = s + 1; j < old.n; j++) block_push(p, b, old.at[j]);
					mend(p);
					return 1;
				}
	}
}

static int to_constant(program *p, int k)
{
	node **n = nth_expression(p, k / 2);
	if (!n) return 0;
	if (strcmp((*n)->rule->text, "%K") == 0 && (k % 2 == 1 || (*n)->number[0] == 0)) return -1;
	*n = node_constant(p, (*n)->type, k % 2 ? 4 : 0);
	return 1;
}

static int to_operand(program *p, int k)
{
	node **n = nth_expression(p, k / MAX_KIDS);
	if (!n) return 0;
	int i = k % MAX_KIDS;
	if (i >= (*n)->nkids || !type_fits(&(*n)->kid[i]->type, &(*n)->type)) return -1;
	*n = (*n)->kid[i];
	return 1;
}

static int fewer_trips(program *p, int k)
{
	for (int i = 0;; i++) {
		block *b = nth_block(p, i);
		if (!b) return 0;
		for (int s = 0; s < b->n; s++) {
			node *n = b->at[s];
			const char *name = n->rule->name;
			bool counted = strcmp(name, "for") == 0,
			     other = strcmp(name, "while") == 0 || strncmp(name, "for ", 4) == 0;
			if ((!counted && !other) || k-- > 0) continue;
			if (other && n->number[0] < 2) return -1;
			if (counted && n->number[0] == 0 && n->number[1] == n->number[2]) return -1;
			if (counted)
				n->number[0] = 0, n->number[1] = n->number[2], n->word = "";
			else
				n->number[0] = 1;
			return 1;
		}
	}
}

static void halve_shape(shape *s, int extent)
{
	for (int i = 0; i < s->rank; i++)
		if (s->dim[i] == extent) s->dim[i] /= 2;
}

static void halve_node(node *n, int extent)
{
	halve_shape(&n->type.shape, extent);
	for (int i = 0; i < n->nkids; i++) halve_node(n->kid[i], extent);
	for (int b = 0; b < n->nbodies; b++)
		for (int i = 0; i < n->body[b].n; i++) halve_node(n->body[b].at[i], extent);
}

/* Every extent of one size, everywhere: whatever relied on their being equal still finds them so. */
static void halve_variables(const node *n, int extent)
{
	const char *text = n->rule->text;
	if (strncmp(text, "let ", 4) == 0 || strncmp(text, "var ", 4) == 0)
		for (int i = 0; i < 2; i++)
			if (n->var[i]) halve_shape(&n->var[i]->type.shape, extent);
	for (int b = 0; b < n->nbodies; b++)
		for (int i = 0; i < n->body[b].n; i++) halve_variables(n->body[b].at[i], extent);
}

static int smaller_tiles(program *p, int k)
{
	if (k > 11) return 0;
	int extent = 4096 >> k;
	for (int i = 0; i < p->body.n; i++) halve_node(p->body.at[i], extent), halve_variables(p->body.at[i], extent);
	for (int i = 0; i < p->functions.n; i++) halve_node(p->functions.at[i], extent);
	return 1;
}

static bool uses_buffer(const node *n, const buffer *b)
{
	if (n->buffer && strcmp(n->buffer->name, b->name) == 0) return true;
	for (int i = 0; i < n->nkids; i++)
		if (uses_buffer(n->kid[i], b)) return true;
	for (int k = 0; k < n->nbodies; k++)
		for (int i = 0; i < n->body[k].n; i++)
			if (uses_buffer(n->body[k].at[i], b)) return true;
	return false;
}

static int simpler_host(program *p, int k) /* the grid, warps, sizes, alignment, parameters that nothing uses */
{
	static const int warps[] = {1, 2, 4};
	if (k < 3) {
		if (p->grid[k] == 1) return -1;
		p->grid[k] = 1;
	} else if (k < 6) {
		if (p->num_warps <= warps[k - 3]) return -1;
		p->num_warps = warps[k - 3];
	} else if (k == 6) {
		if (p->alias == SCALAR_COUNT) return -1;
		p->alias = SCALAR_COUNT;
	} else if (k < 7 + MAX_BUFFERS) {
		if (k - 7 >= p->nbuffers || p->buffers[k - 7].off == 0) return -1;
		p->buffers[k - 7].off = 0;
	} else if (k < 7 + 2 * MAX_BUFFERS) {
		int i = k - 7 - MAX_BUFFERS;
		if (i >= p->nbuffers) return -1;
		for (int s = 0; s < p->body.n; s++)
			if (uses_buffer(p->body.at[s], &p->buffers[i])) return -1;
		memmove(&p->buffers[i], &p->buffers[i + 1], (size_t)(p->nbuffers - i - 1) * sizeof *p->buffers);
		p->nbuffers--;
	} else
		return 0;
	for (int i = 0; i < p->nbuffers; i++)
		if (p->buffers[i].kind == OUTPUT || p->buffers[i].kind == OWNED)
			p->buffers[i].n = program_programs(p) * p->region;
	return 1;
}

static int (*const changes[])(program *, int k) = {
	drop, unwrap, to_constant, to_operand, fewer_trips, smaller_tiles, simpler_host};
enum { NCHANGES = sizeof changes / sizeof *changes };

void reduce_program(program *p, const verdict *failure, unsigned seconds)
{
	program best = *p; /* owns its memory, except what is p's */
	best.memory = NULL;
	time_t end = time(NULL) + (time_t)seconds;
	if (failure->num_warps) p->num_warps = failure->num_warps;
	copy_program(&best, p);
	for (bool helped = true; helped && time(NULL) < end;) {
		helped = false;
		for (int c = 0; c < NCHANGES; c++)
			for (int k = 0, done; time(NULL) < end; k++) {
				program next;
				copy_program(&next, &best);
				done = changes[c](&next, k);
				verdict v = {.kind = AGREE};
				if (done > 0) run_isolated(&next, failure->kind == CRASHED ? NULL : failure, 30, &v);
				if (done > 0 && v.kind == failure->kind && strcmp(v.key, failure->key) == 0) {
					program_free(&best);
					best = next;
					helped = true;
					k--; /* what was the next change has this one's number now */
				} else
					program_free(&next);
				if (done == 0) break;
			}
	}
	program_keep(&best, p); /* words are in it */
	*p = best;
}
