/* A generated program as a tree: what the generator makes, the printer writes and the reducer cuts.
 *
 * The one idea: a node is a row of a table (`rule`) with operands; a row's text says how it prints, and is written so
 * that any operands of the right types make a legal program: a division carries its own guard, an index its own mask.
 * So whatever the reducer puts in an operand's place, the program stays in bounds. */
#ifndef FUZZ_TREE_H
#define FUZZ_TREE_H

#include "support/scalar.h"

#include <stddef.h>
#include <stdio.h>

enum { MAX_RANK = 4, MAX_KIDS = 5, MAX_NUMBERS = 5, MAX_BUFFERS = 24, MAX_SCALARS = 8 };

typedef struct shape {
	int rank, dim[MAX_RANK];
} shape;

/* A float is exact, a multiple of 2^-frac of at most 2^mag, which its type holds with all sums that the generator makes
 * of it; or `rounded`: any finite value up to 2^mag, of which no sum is taken whose order is free. */
typedef struct tile_type {
	scalar s;
	shape shape;
	int mag, frac;
	bool rounded;
} tile_type;

typedef struct variable {
	char name[12];
	tile_type type;
	bool mutable;
	bool in_fn; /* of a function: not visible in the kernel */
} variable;

/* Classes of results that a row can make, and facts about it. */
enum {
	ON_INT = 1,
	ON_FLOAT = 2,
	ON_ROUNDED = 4,
	ON_BOOL = 8,
	ON_NUMBER = ON_INT | ON_FLOAT | ON_ROUNDED,
	ON_ANY = ON_NUMBER | ON_BOOL,
	LEAF = 16,      /* has no operands, or small ones only */
	BROADCAST = 32, /* operands may be smaller and stretch */
	SCALAR = 64,    /* only scalar results */
	TILE = 128,     /* only tiles */
	KERNEL = 256,   /* not inside a function: uses the kernel's parameters */
};

struct gen;
struct node;
/* An expression's or a statement's row.  `kids`: a letter for each operand, see expression.c. */
typedef struct rule {
	const char *name; /* the feature, as the statistics print it */
	const char *text; /* see print.c */
	int weight;
	unsigned on;
	const char *kids;
	bool (*build)(struct gen *, struct node *, int depth); /* where the letters do not say it; false: not here */
	const char *needs;                                     /* text of a function that it calls */
} rule;

typedef struct buffer {
	char name[8];
	scalar s;
	int mag, frac;                              /* of its elements */
	int n;                                      /* elements */
	int off;                                    /* elements between an aligned address and the first */
	enum { INPUT, OUTPUT, OWNED, SHARED } kind; /* OWNED: programs read and write their parts; SHARED: atomics */
	const rule *atomic;                         /* SHARED: the one operation on it */
} buffer;

typedef struct block {
	struct node **at;
	int n, room;
} block;

typedef struct node {
	const rule *rule;
	tile_type type; /* of an expression */
	struct node *kid[MAX_KIDS];
	int nkids;
	int64_t number[MAX_NUMBERS];
	const char *word;
	variable *var[2]; /* what it declares, names or assigns */
	const buffer *buffer;
	block body[2];
	int nbodies;
} node;

typedef struct host_scalar {
	variable var;
	uint64_t bits;
} host_scalar;

/* Everything about a program: its text and what it is run on follow from this alone. */
typedef struct program {
	uint64_t seed;
	block functions, body;
	buffer buffers[MAX_BUFFERS];
	int nbuffers;
	host_scalar scalars[MAX_SCALARS];
	int nscalars;
	int n;      /* elements of each input */
	int region; /* elements of a buffer that belong to one program */
	int grid[3];
	int num_warps;
	bool spoil;   /* for the tests: what the simulator wrote is changed, so that there is a difference to reduce */
	scalar alias; /* the type that the text calls T0; SCALAR_COUNT: none */
	struct chunk *memory;
} program;

void program_init(program *);
void program_free(program *);
void program_keep(program *, program *other); /* the other's memory lives as long as this one's from now on */
void *program_alloc(program *, size_t bytes); /* zeroed; lives as long as the program; exits when there is none */
node *node_new(program *, const rule *, tile_type);
node *node_constant(program *, tile_type, int64_t value);
void block_push(program *, block *, node *);
int program_programs(const program *);

static inline int shape_elements(const shape *s)
{
	int n = 1;
	for (int i = 0; i < s->rank; i++) n *= s->dim[i];
	return n;
}
static inline bool shape_same(const shape *a, const shape *b)
{
	if (a->rank != b->rank) return false;
	for (int i = 0; i < a->rank; i++)
		if (a->dim[i] != b->dim[i]) return false;
	return true;
}
static inline bool type_float(const tile_type *t)
{
	return scalar_is_float(t->s);
}
/* May a value of type `have` stand where `want` is asked for? */
bool type_fits(const tile_type *have, const tile_type *want);
tile_type type_with_shape(tile_type, shape);
tile_type type_of(scalar, shape); /* with the usual bounds of a float */
int exact_bits(scalar);           /* of a float's mantissa, the leading one included */

/* `late`: constants are only known at run time, by adding a parameter that is 0; nothing else may change by that. */
void program_print(const program *, bool late, FILE *);
char *program_text(const program *, bool late); /* malloced */

#endif
