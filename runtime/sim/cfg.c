/* Where the paths of a branch meet again: the immediate post-dominator of its block.
 *
 * In: decoded code with branch targets.  Out: `join` of each branch, and `joins` on the instructions named so.  Blocks
 * are instructions that begin one; the post-dominator tree is computed on the reversed graph, in its reverse postorder,
 * by intersecting until nothing changes (Cooper, Harvey, Kennedy).  One extra node is the end of the kernel. */
#include "sim.h"

#include <stdlib.h>

typedef struct graph {
	sim_code *code;
	int32_t *block_of;     /* instruction -> block; only the first instruction's matters */
	int32_t *first;        /* block -> its first instruction */
	int32_t n;             /* blocks; number n is the end */
	int32_t *order, *rank; /* of the reversed graph */
	int32_t *parent;
	int32_t *preds, *pred_start; /* of the forward graph: the successors of the reversed one */
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
	g->order = calloc(n, sizeof(int32_t));
	g->rank = calloc(n, sizeof(int32_t));
	g->parent = calloc(n, sizeof(int32_t));
	g->preds = calloc(edges, sizeof(int32_t));
	g->pred_start = calloc(n + 1, sizeof(int32_t));
	g->stack = calloc(2 * n, sizeof(int32_t));
	return g->block_of && g->first && g->order && g->rank && g->parent && g->preds && g->pred_start && g->stack;
}

static void cut_blocks(graph *g)
{
	const sim_code *c = g->code;
	g->block_of[0] = 1;
	for (size_t i = 0; i < c->n; i++) {
		const sim_instr *in = &c->code[i];
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
	int32_t to;
	for (int32_t b = 0; b < g->n; b++)
		for (uint32_t k = 0; (to = successor(g, b, k)) >= 0; k++) g->pred_start[to + 1]++;
	for (int32_t b = 0; b <= g->n; b++) g->pred_start[b + 1] += g->pred_start[b];
	for (int32_t b = 0; b < g->n; b++)
		for (uint32_t k = 0; (to = successor(g, b, k)) >= 0; k++)
			g->preds[g->pred_start[to] + g->rank[to]++] = b;
	for (int32_t b = 0; b <= g->n; b++) g->rank[b] = -1;
}

/* Reverse postorder of the reversed graph from the end; blocks that never end (endless loops) stay without a rank. */
static int32_t number_blocks(graph *g)
{
	int32_t depth = 0, done = 0, *next = g->parent; /* borrowed: where each node's list of edges stands */
	for (int32_t b = 0; b <= g->n; b++) next[b] = g->pred_start[b];
	g->stack[depth++] = g->n;
	g->rank[g->n] = 0;
	while (depth) {
		int32_t b = g->stack[depth - 1];
		if (next[b] == g->pred_start[b + 1]) {
			g->order[done++] = b;
			depth--;
			continue;
		}
		int32_t q = g->preds[next[b]++];
		if (g->rank[q] >= 0) continue;
		g->rank[q] = 0;
		g->stack[depth++] = q;
	}
	for (int32_t i = 0; i < done; i++) g->rank[g->order[i]] = i; /* postorder: the end has the highest */
	return done;
}

static int32_t meet(const graph *g, int32_t a, int32_t b)
{
	while (a != b) {
		while (g->rank[a] < g->rank[b]) a = g->parent[a];
		while (g->rank[b] < g->rank[a]) b = g->parent[b];
	}
	return a;
}

static void post_dominators(graph *g, int32_t done)
{
	bool changed = true;
	int32_t to;
	for (int32_t b = 0; b <= g->n; b++) g->parent[b] = -1;
	g->parent[g->n] = g->n;
	while (changed) {
		changed = false;
		for (int32_t i = done - 1; i-- > 0;) {
			int32_t b = g->order[i], best = -1;
			for (uint32_t k = 0; (to = successor(g, b, k)) >= 0; k++) {
				if (g->rank[to] < 0 || g->parent[to] < 0) continue;
				best = best < 0 ? to : meet(g, best, to);
			}
			if (best != g->parent[b]) g->parent[b] = best, changed = true;
		}
	}
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
			if (!parts || g.rank[b] < 0 || g.parent[b] == g.n) continue;
			in->join = g.first[g.parent[b]];
			c->code[in->join].joins = true;
		}
	}
	free(g.block_of);
	free(g.first);
	free(g.order);
	free(g.rank);
	free(g.parent);
	free(g.preds);
	free(g.pred_start);
	free(g.stack);
	return good;
}
