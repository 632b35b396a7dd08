/* The launch signature: what compiled code tells the runtime about a kernel, as text of one fact a line
 * (compiler/blkc.h lists them).  In: that text, from the compiler, from a PTX file's head or from the cache.  Out: a
 * struct that a launch can be checked against without touching the text again.
 *
 * One block of memory holds a whole signature, so freeing it is one call and a half-read one cannot leak. */
#ifndef BLK_SIGNATURE_H
#define BLK_SIGNATURE_H

#include "blk.h"

#include <stdbool.h>

/* most parameters of a kernel, most of an operand stack, most tensor maps: 128 bytes each of 4096 for parameters */
enum {
	SIGNATURE_PARAMETERS = 256,
	SIGNATURE_DEPTH = 256,
	SIGNATURE_MAPS = 16,
	SIGNATURE_MAP_RANK = 5,
	SIGNATURE_PLACES = 128, /* values that an expression keeps under a number */
	SIGNATURE_COMPUTED = 16 /* const parameters that a launch computes */
};

typedef struct signature_token { /* one word of a postfix expression */
	uint8_t op;              /* signature.c's OPS */
	uint8_t is_float;        /* of an OP_NUMBER */
	uint32_t parameter;      /* of an OP_KEEP and OP_KEPT: the place */
	int64_t integer;
	double number;
} signature_token;

typedef struct signature_expression {
	const signature_token *tokens;
	uint32_t ntokens; /* 0: absent */
} signature_expression;

/* A clause that must hold at a launch, and what its failure is told with. */
typedef struct signature_requirement {
	signature_expression condition;
	const char *names;  /* "n=p0 BLOCK=1024": what it names, in its order */
	const char *source; /* "n <= BLOCK" */
	const char *text;   /* "a row fits one tile"; may be empty */
} signature_requirement;

/* A const parameter that a launch computes. */
typedef struct signature_computed {
	const char *name;
	uint8_t type; /* blk_type: an integer's, or bool's */
	bool bounded;
	int64_t low, high;           /* inclusive */
	signature_requirement value; /* its condition is the value */
} signature_computed;

/* What one of the requirements is for a configuration, which need not be compiled to know whether it can be used. */
typedef struct signature_fit {
	uint32_t configuration, requirement;
	signature_expression condition;
} signature_fit;

/* What a tuner's key is made of: a parameter, or an expression over some. */
typedef struct signature_key {
	signature_expression value;
	const char *source; /* "next_pow2(M)" */
} signature_key;

typedef struct signature_parameter {
	const char *name, *type;
	uint8_t code;    /* blk_type; BLK_TYPE_POINTER for every pointer */
	uint8_t element; /* blk_type of what a pointer points to */
	bool is_const, written, is_one;
	bool written_through; /* it may write at addresses that this one is, or that are loaded by it */
	uint32_t divisible;   /* promised divisor or alignment in bytes; 0: none */
} signature_parameter;

typedef struct signature_constant {
	const char *name, *type, *value;
} signature_constant;

/* A tensor map, which the host makes for each launch and passes behind the arguments (tensor_map.h). Dimension 0 is the
 * innermost; its stride is the element's size. */
typedef struct signature_map {
	uint8_t element, swizzle, rank;
	bool rounds; /* f32 becomes tf32 on the way */
	uint32_t box[SIGNATURE_MAP_RANK];
	signature_expression address, extent[SIGNATURE_MAP_RANK], stride[SIGNATURE_MAP_RANK]; /* strides: bytes */
} signature_map;

typedef struct signature {
	const char *text; /* as it came */
	const char *kernel, *symbol, *target, *autotune;
	const char *source; /* what its tuning results depend on: a digest of the source but its autotune blocks */
	signature_parameter *parameters;
	signature_constant *constants;
	const char **configurations; /* of the autotune clause: "BM=64,num_warps=4" */
	signature_map *maps;
	signature_requirement *requirements;
	signature_computed *computed;
	signature_fit *fits;         /* in the order of the configurations */
	signature_key *keys;         /* in their order, where some are expressions; else the clause names them */
	signature_expression *times; /* predicted: one a configuration, absent where none is */
	signature_expression order;  /* predicted for this one */
	uint32_t tries;              /* so many of the configurations are tried; 0: all */
	uint32_t nparameters, nconstants, nconfigurations, nmaps, nrequirements, nfits, nkeys, ncomputed;
	uint32_t ngrid; /* 0: no grid clause */
	signature_expression grid[3];
	signature_expression cost_bytes, cost_flops;
	uint32_t num_warps, num_stages, num_ctas, threads, shared, maxnreg, scratch;
	bool writes_addresses; /* it may write at addresses that come of no parameter that is known */
	bool uses_addresses;   /* it may read or write at addresses that it loads, or gets as integers */
	uint32_t cluster;      /* programs along x that the code wants in one cluster; 0: each alone */
	uint32_t max_registers, max_spills, max_shared; /* budgets; UINT32_MAX: none */
	uint32_t strict;                                /* 1: no liberties with floats */
	uint32_t launch_pdl, gdc_wait; /* 0: must not begin before the kernel before it has ended; 1: waits for it */
} signature;

/* Reads one kernel's facts.  Unknown facts are skipped, so that newer code still runs; a malformed one is an error. */
blk_status signature_parse(const char *text, size_t bytes, signature **);
void signature_free(signature *);

static inline uint32_t signature_cluster(const signature *s)
{
	return s->cluster ? s->cluster : 1;
}

/* How many of the smallest elements that a parameter points to make 16 bytes, the most that one access moves: what the
 * kernel's integers are asked to be divisible by where they are not by 16.  Bytes count too little to ask for: their
 * step is 16, as it is without pointers. */
unsigned signature_step(const signature *);
/* Why an integer clause has no value: it divides by zero, or names an unsigned argument beyond i64, where C would get
 * to it. */
typedef enum signature_trouble { SIGNATURE_FINE, SIGNATURE_DIVIDES, SIGNATURE_LARGE } signature_trouble;
const char *signature_trouble_text(signature_trouble); /* "divides by zero" */
/* A clause's value. `bits` are the arguments' containers in order. False: it has none, and *out is the trouble. */
bool signature_integer(
	const signature *, const signature_expression *, const uint64_t *bits, uint32_t num_sms, int64_t *out);
double signature_number(const signature *, const signature_expression *, const uint64_t *bits, uint32_t num_sms);
/* The parameter that a key is; UINT32_MAX: it is more. */
uint32_t signature_key_parameter(const signature_key *);

/* The first requirement that these arguments do not meet, or that has no value; null: all are met. */
const signature_requirement *signature_unmet(const signature *, const uint64_t *bits, uint32_t num_sms);
/* The same of a configuration of it, not compiled. */
const signature_requirement *signature_misfit(
	const signature *, uint32_t configuration, const uint64_t *bits, uint32_t num_sms);
/* "n <= BLOCK (a row fits one tile)", and "n = 2000, BLOCK = 1024" */
void signature_requirement_text(const signature_requirement *, char *to, size_t room);
void signature_requirement_values(const signature *, const signature_requirement *, const uint64_t *bits,
	uint32_t num_sms, char *to, size_t room);

const char *blk_type_name(unsigned type); /* "i32", "pointer", "buffer" */

#endif
