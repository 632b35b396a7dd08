/* Where the paths of a branch meet again: the immediate post-dominator of its block.
 *
 * In: decoded code with branch targets.  Out: `join` of each branch, and `joins` on the instructions named so.  Blocks
 * are instructions that begin one; the post-dominator tree is computed on the reversed graph (Lengauer and Tarjan, with
 * compressed paths), in time that grows with the code hardly more than linearly, whatever its branches: text that
 * nobody has checked is loaded, too.  One extra node is the end of the kernel. */
#include "sim.h"

#include <stdlib.h>

typedef struct graph {
	sim_code *code;
	int32_t *block_of;           /* instruction -> block; only the first instruction's matters */
	int32_t *first;              /* block -> its first instruction */
	int32_t n;                   /* blocks; number n is the end */
	int32_t *preds, *pred_start; /* of the forward graph: the successors of the reversed one */
	int32_t *number;             /* block -> its place in the preorder of the reversed graph, or -1 */
	int32_t *block;              /* and back; what follows is by these places */
	int32_t *parent;             /* in the tree of that walk; the end, place 0, is its root */
	int32_t *semi, *dominator;   /* of the semi-dominator, and of the immediate one */
	int32_t *above, *best;       /* the forest of what is done: the link up, and the least semi-dominator's on it */
	int32_t *bucket, *next;      /* those that a place semi-dominates, as a list */
	int32_t *stack;
} graph;

static const sim_instr *last_of(const graph *g, int32_t b)
{
	int32_t end = b + 1 < g->n ? g->first[b + 1] : (int32_t)g->code->n;
	return &g->code->code[end - 1];
}

static bool ends_all(const sim_instr *in)
{
	return in->kind == SIM_STEP && (in->step == sim_step_exit || in->step == sim_step_trap);
}

/* The block that comes k-th behind b, or -1. */
static int32_t successor(const graph *g, int32_t b, uint32_t k)
{
	assert(b >= 0 && b < g->n);
	const sim_instr *in = last_of(g, b);
	uint32_t jumps = in->kind == SIM_BRANCH || ends_all(in) ? 1 : in->kind == SIM_SWITCH ? in->ntargets : 0;
	if (k > jumps || (k == jumps && jumps && !in->guard)) return -1;
	if (k == jumps) return b + 1; /* behind the last block: the end */
	if (in->kind == SIM_BRANCH) return g->block_of[in->target];
	return in->kind == SIM_SWITCH ? g->block_of[g->code->targets[in->target + (int32_t)k]] : g->n;
}

static bool allocate(graph *g)
{
	size_t n = g->code->n + 2, edges = 2 * n;
	for (size_t i = 0; i < g->code->n; i++) edges += g->code->code[i].ntargets;
	g->block_of = calloc(n, sizeof(int32_t));
	g->first = calloc(n, sizeof(int32_t));
	int32_t **const all[] = {&g->pred_start, &g->number, &g->block, &g->parent, &g->semi, &g->dominator, &g->above,
		&g->best, &g->bucket, &g->next, &g->stack};
	g->preds = calloc(edges, sizeof(int32_t));
	bool good = g->block_of && g->first && g->preds;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		good = (*all[i] = calloc(n + 1, sizeof(int32_t))) && good;
	return good;
}

static void cut_blocks(graph *g)
{
	const sim_code *c = g->code;
	g->block_of[0] = 1;
	for (size_t i = 0; i < c->n; i++) {
		const sim_instr *in = &c->code[i];
		assert(in->kind != SIM_BRANCH || (in->target >= 0 && (size_t)in->target < c->n));
		if (in->kind == SIM_BRANCH) g->block_of[in->target] = 1;
		for (uint32_t k = 0; k < in->ntargets; k++) g->block_of[c->targets[in->target + (int32_t)k]] = 1;
		if ((in->kind == SIM_BRANCH || in->kind == SIM_SWITCH || ends_all(in)) && i + 1 < c->n)
			g->block_of[i + 1] = 1;
	}
	for (size_t i = 0; i < c->n; i++)
		if (g->block_of[i]) {
			g->first[g->n] = (int32_t)i;
			g->block_of[i] = g->n++;
		}
}

static void link_predecessors(graph *g)
{
	int32_t to, *filled = g->stack;
	for (int32_t b = 0; b < g->n; b++)
		for (uint32_t k = 0; (to = successor(g, b, k)) >= 0; k++) g->pred_start[to + 1]++;
	for (int32_t b = 0; b <= g->n; b++) g->pred_start[b + 1] += g->pred_start[b];
	for (int32_t b = 0; b < g->n; b++)
		for (uint32_t k = 0; (to = successor(g, b, k)) >= 0; k++)
			g->preds[g->pred_start[to] + filled[to]++] = b;
}

/* Places in preorder from the end; blocks that never end (endless loops) get none.  How many there are. */
static int32_t number_blocks(graph *g)
{
	int32_t depth = 0, done = 0, *at = g->next; /* borrowed: where each block's list of edges stands */
	for (int32_t b = 0; b <= g->n; b++) g->number[b] = -1, at[b] = g->pred_start[b];
	g->stack[depth++] = g->n;
	g->number[g->n] = done;
	g->block[done++] = g->n;
	while (depth) {
		int32_t b = g->stack[depth - 1];
		if (at[b] == g->pred_start[b + 1]) {
			depth--;
			continue;
		}
		int32_t q = g->preds[at[b]++];
		if (g->number[q] >= 0) continue;
		g->parent[done] = g->number[b];
		g->number[q] = done;
		g->block[done++] = q;
		g->stack[depth++] = q;
		assert(depth <= g->n + 1 && done <= g->n + 1); /* each block once */
	}
	return done;
}

/* Of a place and those above it in the forest, but for the root: the one whose semi-dominator is least. */
static int32_t lowest(graph *g, int32_t v)
{
	int32_t depth = 0;
	for (int32_t u = v; g->above[g->above[u]] >= 0; u = g->above[u]) g->stack[depth++] = u;
	while (depth) {
		int32_t u = g->stack[--depth], a = g->above[u];
		if (g->semi[g->best[a]] < g->semi[g->best[u]]) g->best[u] = g->best[a];
		g->above[u] = g->above[a];
	}
	return g->best[v];
}

static int32_t semi_dominator(graph *g, int32_t i)
{
	int32_t to, least = g->parent[i];
	for (uint32_t k = 0; (to = successor(g, g->block[i], k)) >= 0; k++) {
		int32_t v = g->number[to];
		if (v > i) v = g->semi[lowest(g, v)];
		if (v >= 0 && v < least) least = v;
	}
	assert(least >= 0 && least < i);
	return least;
}

static void post_dominators(graph *g, int32_t n)
{
	for (int32_t i = 0; i < n; i++) g->above[i] = g->bucket[i] = -1, g->best[i] = i;
	for (int32_t i = n; i-- > 1;) {
		int32_t up = g->parent[i], s = semi_dominator(g, i);
		g->semi[i] = s;
		g->next[i] = g->bucket[s];
		g->bucket[s] = i;
		g->above[i] = up;
		for (int32_t v = g->bucket[up]; v >= 0; v = g->next[v]) {
			int32_t y = lowest(g, v);
			g->dominator[v] = g->semi[y] < g->semi[v] ? y : up;
			assert(g->dominator[v] < v);
		}
		g->bucket[up] = -1;
	}
	for (int32_t i = 1; i < n; i++)
		if (g->dominator[i] != g->semi[i]) g->dominator[i] = g->dominator[g->dominator[i]];
}

bool sim_code_joins(sim_code *c)
{
	graph g = {.code = c};
	bool good = allocate(&g);
	if (good) {
		cut_blocks(&g);
		link_predecessors(&g);
		post_dominators(&g, number_blocks(&g));
		for (int32_t b = 0; b < g.n; b++) {
			sim_instr *in = (sim_instr *)last_of(&g, b);
			bool parts = in->kind == SIM_SWITCH || (in->kind == SIM_BRANCH && in->guard);
			int32_t meets = g.number[b] < 0 ? 0 : g.dominator[g.number[b]];
			if (!parts || !meets) continue; /* place 0: only at the end */
			in->join = g.first[g.block[meets]];
			c->code[in->join].joins = true;
		}
	}
	int32_t *const all[] = {g.block_of, g.first, g.preds, g.pred_start, g.number, g.block, g.parent, g.semi,
		g.dominator, g.above, g.best, g.bucket, g.next, g.stack};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
	return good;
}
