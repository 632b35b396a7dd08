/* What the generator's parts share: the state, and one table of rows a part. */
#ifndef FUZZ_GENERATE_H
#define FUZZ_GENERATE_H

#include "random.h"
#include "tree.h"

enum { MAX_VARIABLES = 64, MAX_FUNCTIONS = 6 };

typedef struct fn_info { /* a function of the program that any call may use */
	char name[12];
	tile_type result, params[3];
	int nparams;
} fn_info;

typedef struct gen {
	rng rng;
	program *program;
	variable *visible[MAX_VARIABLES]; /* innermost last */
	int nvisible;
	fn_info functions[MAX_FUNCTIONS];
	int nfunctions;
	int names;    /* given so far */
	int elements; /* most of a tile */
	int work;     /* trips of the loops around, multiplied */
	int loops;    /* depth of those that break and continue mean */
	int nodes;    /* made so far: large programs are told to end */
	bool in_fn, in_condition;
	bool odd; /* extents that are no powers of two, too: each third seed */
} gen;

typedef struct rules {
	const rule *at;
	int n;
} rules;
#define RULES(table)                                                                                                   \
	{                                                                                                              \
		table, (int)(sizeof(table) / sizeof *(table))                                                          \
	}
extern const rules elementwise_rules, shape_rules, reduction_rules, order_rules, matrix_rules, memory_rules, leaf_rules,
	call_rules;
extern const rules statement_rules, store_rules;

/* expression.c */
node *expression(gen *, tile_type want, int depth);
bool build_kids(gen *, node *, int depth); /* by the row's letters */
node *with(node *, node *kid);             /* adds an operand; null in, null out */
tile_type random_type(gen *, shape, unsigned on);
shape random_shape(gen *);
unsigned class_of(const tile_type *);
int power_below(int n); /* the greatest power of two that is at most n */
static inline bool is_power(int n)
{
	return n > 0 && (n & (n - 1)) == 0;
}
bool shape_odd(const shape *);  /* an extent is no power of two */
int extent_below(gen *, int n); /* n, a power of two, or where programs have such extents one below it */
node *convert(
	gen *, node *from, tile_type want); /* any value as a value of the wanted type; null: shapes do not meet */
extern const shape scalar_shape;

/* statement.c */
void statements(gen *, block *, int n, int depth);
variable *declare(gen *, char letter, tile_type, bool mutable);
node *reference(gen *, variable *);

/* functions.c */
node *constant_expression(gen *, tile_type);

/* program.c */
void program_generate(program *, uint64_t seed);

#endif
