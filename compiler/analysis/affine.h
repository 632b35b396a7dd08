/* Values as sums of products: what an index, a bound or an address is made of.
 *
 * In: an integer or a pointer of the tile level, scalar or tile.  Out: a sum of terms, each a number times scalar
 * values (its atoms) times, perhaps, the place along one dimension of the tile:
 *     a + i[:, None] * K + (l + k)[None, :]   ->   root a;  K * start of i + K * place 0 + k + place 1
 * The one idea: what loops carry with a constant step is a multiple of the loop's counter, so a pointer that is moved
 * on iteration by iteration and one that is computed anew become the same sum.
 *
 * Sums are those of whole numbers: i32 arithmetic is taken not to wrap around, as in axis.c.  Where products might all
 * the same, as arrays grow, the sum says so (`narrow`), or the context has the product. */
#ifndef BLK_AFFINE_H
#define BLK_AFFINE_H

#include "passes/passes.h"

enum { AFFINE_ATOMS = 4, AFFINE_TERMS = 24, AFFINE_OPEN = 8, AFFINE_PRODUCTS = 6, AFFINE_VISITS = 4096 };

typedef struct affine_term {
	int64_t factor;
	int8_t place; /* the dimension along which it counts, or -1 */
	uint8_t natoms;
	ir_value *atom[AFFINE_ATOMS]; /* in the order of their ids */
} affine_term;

typedef struct affine {
	ir_value *root; /* of a pointer */
	unsigned n;
	bool narrow; /* i32 products that only the device knows are in it */
	affine_term term[AFFINE_TERMS];
} affine;

typedef struct affine_context {
	pass_context *pass;
	ir_func *func;
	bool open_scalars;               /* scalars are taken apart where the host knows a factor or a summand */
	bool closed_products;            /* scalar i32 products that only the device knows are not taken apart */
	bool open_offsets;               /* instead: those that have 64 bits or are another one plus a number */
	ir_value *open[AFFINE_OPEN];     /* carried values that are being worked out */
	unsigned nopen, depth, visits;   /* of values; a chain of x + x * 3 has no end of them */
	affine product[AFFINE_PRODUCTS]; /* in i32, of what the host knows */
	unsigned nproducts;
} affine_context;

/* False: it is no such sum, or too long a one. */
bool affine_of(affine_context *, ir_value *, affine *);
bool affine_add(affine *, const affine *, int64_t times);
bool affine_add_term(affine *, const affine_term *, int64_t times);
bool affine_add_number(affine *, int64_t);
bool affine_multiply(affine *, const affine *);
bool affine_atom(affine_term *, ir_value *); /* one factor more */
affine affine_value(ir_value *);             /* the value alone, as it is */
/* Whether the host can compute the scalar from the kernel's arguments. */
bool affine_of_host(const affine_context *, const ir_value *);
/* Before `b`, in the type: the sum, which has no root and no places.  Atoms of other types are converted. */
ir_value *affine_build(ir_builder *b, const affine *, scalar type);

#endif
