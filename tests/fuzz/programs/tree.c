/* The tree's memory, and the questions about types that the generator and the reducer share. */
#include "tree.h"

#include <stdlib.h>
#include <string.h>

struct chunk {
	struct chunk *next;
	size_t used;
	_Alignas(16) char bytes[1 << 16];
};

void *program_alloc(program *p, size_t bytes)
{
	bytes = (bytes + 15) & ~(size_t)15;
	if (!p->memory || p->memory->used + bytes > sizeof p->memory->bytes) {
		struct chunk *c = bytes <= sizeof c->bytes ? malloc(sizeof *c) : NULL;
		if (!c) {
			fprintf(stderr, "fuzz: out of memory\n");
			exit(2);
		}
		c->next = p->memory;
		c->used = 0;
		p->memory = c;
	}
	void *at = p->memory->bytes + p->memory->used;
	p->memory->used += bytes;
	return memset(at, 0, bytes);
}

void program_init(program *p)
{
	memset(p, 0, sizeof *p);
	p->alias = SCALAR_COUNT;
}

void program_free(program *p)
{
	while (p->memory) {
		struct chunk *next = p->memory->next;
		free(p->memory);
		p->memory = next;
	}
}

void program_keep(program *p, program *other)
{
	struct chunk **end = &p->memory;
	while (*end) end = &(*end)->next;
	*end = other->memory;
	other->memory = NULL;
}

node *node_new(program *p, const rule *r, tile_type t)
{
	node *n = program_alloc(p, sizeof *n);
	n->rule = r;
	n->type = t;
	return n;
}

static const rule constant = {"constant", "%K", 0, 0, "", NULL, NULL};

node *node_constant(program *p, tile_type t, int64_t value)
{
	node *n = node_new(p, &constant, t);
	n->number[0] = value;
	return n;
}

void block_push(program *p, block *b, node *n)
{
	if (b->n == b->room) {
		int room = b->room ? 2 * b->room : 8;
		node **at = program_alloc(p, (size_t)room * sizeof *at);
		for (int i = 0; i < b->n; i++) at[i] = b->at[i];
		b->at = at;
		b->room = room;
	}
	b->at[b->n++] = n;
}

int program_programs(const program *p)
{
	return p->grid[0] * p->grid[1] * p->grid[2];
}

int exact_bits(scalar s)
{
	return scalar_table[s].mantissa + 1;
}

bool type_fits(const tile_type *have, const tile_type *want)
{
	if (have->s != want->s || !shape_same(&have->shape, &want->shape)) return false;
	if (!scalar_is_float(want->s)) return true;
	if (have->mag > want->mag) return false;
	return want->rounded || (!have->rounded && have->frac <= want->frac);
}

tile_type type_with_shape(tile_type t, shape s)
{
	t.shape = s;
	return t;
}

tile_type type_of(scalar s, shape extents)
{
	tile_type t = {.s = s, .shape = extents};
	switch (s) {
	case SCALAR_F16: t.mag = 6, t.frac = 3; break;
	case SCALAR_BF16: t.mag = 5, t.frac = 2; break;
	case SCALAR_F32: t.mag = 12, t.frac = 8; break;
	case SCALAR_F64: t.mag = 24, t.frac = 16; break;
	case SCALAR_F8E4M3: t.mag = 3, t.frac = 0; break;
	case SCALAR_F8E5M2: t.mag = 2, t.frac = 0; break;
	default: break;
	}
	return t;
}
