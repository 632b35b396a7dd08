/* Semantic values and the helpers that everything in sema is written with, the built-in functions included.
 *
 * An expression is checked to an `sval`: a number known at compile time, a run-time value (an ir_value, already
 * emitted), a type, a tuple of svals, a function...  SVAL_POISON stands for something that an error was already
 * reported about: every helper accepts it, reports nothing more and passes poison (or null, or false) on.
 *
 * Conventions: a helper that returns `ir_value *` or `bool` has reported the error when it returns null or false;
 * messages are lower case without a full stop; `what` names the thing in a message: "the mask", "axis".
 * New operations stand where `s->b` says and carry `s->b.at`, which calls set to the span of the call. */
#ifndef BLK_SEMA_VALUES_H
#define BLK_SEMA_VALUES_H

#include "../ir/extents.h"
#include "../support/nearest.h"
#include "sema.h"

typedef struct sema sema;
typedef struct sval sval;
typedef struct builtin builtin;
typedef struct sema_fn sema_fn; /* a declared fn; internal.h */
typedef __int128 sema_int;      /* integers of compile-time arithmetic, before they are fitted to a type */

typedef enum sval_kind {
	SVAL_POISON,    /* an error was reported */
	SVAL_VOID,      /* the call of a fn without value */
	SVAL_NONE,      /* None; also every optional argument that was not given */
	SVAL_NUMBER,    /* compile-time number or bool */
	SVAL_VALUE,     /* run-time scalar or tile */
	SVAL_TYPE,      /* f32, *f16, f32[64], tensor, (i32, f32) */
	SVAL_TUPLE,     /* (a, b) and [a, b]: tuples, lists and shapes are one thing */
	SVAL_STRING,    /* bytes, may hold NULs */
	SVAL_FN,        /* a declared function */
	SVAL_BUILTIN,   /* a built-in function */
	SVAL_TENSOR,    /* tensor(base, shape, strides) */
	SVAL_BLOCK_PTR, /* block_ptr(tensor, index, shape) */
	SVAL_UNDEFINED, /* internal: a slot that nothing was assigned to yet */
} sval_kind;

typedef enum stype_kind {
	STYPE_VALUE,  /* scalar, pointer or tile */
	STYPE_TUPLE,  /* of item types */
	STYPE_TENSOR, /* `tensor` */
	STYPE_TYPE,   /* `type`: the type of types */
	STYPE_SHAPE,  /* `shape`: a tuple of positive integers */
} stype_kind;

typedef struct stype stype;
struct stype {
	stype_kind kind;
	ir_type value;
	const stype *const *items;
	uint32_t nitems, leaves, depth; /* of tuples; as in sval */
};

typedef struct sema_number {
	scalar type;  /* of an untyped number: what it becomes when alone (i32, else i64, else u64; f32) */
	bool untyped; /* a literal or folded from literals: takes the type of its neighbour */
	sema_int i;   /* integers and bool; fits `type` */
	double f;     /* floats; rounded to `type` when typed */
} sema_number;

typedef struct sema_tensor {
	ir_value *base; /* scalar pointer */
	uint32_t rank;
	sval *shape, *strides; /* `rank` each: compile-time integers or run-time scalars of i32 or i64 */
} sema_tensor;

typedef struct sema_block_ptr {
	const sema_tensor *tensor;
	sval *index;   /* tensor->rank integers, compile-time or run-time */
	ir_type block; /* element type and shape of the block */
} sema_block_ptr;

struct sval {
	sval_kind kind;
	span at; /* the expression that it was written as */
	union {
		ir_value *value;
		sema_number number;
		const stype *type;
		struct {
			const sval *items;
			uint32_t n, leaves; /* leaves: items of tuples inside counted too */
			uint32_t depth;     /* of tuples inside each other; 1 without any */
		} tuple;
		struct {
			const char *text;
			uint32_t n;
		} string;
		const sema_fn *fn;
		const builtin *builtin;
		const sema_tensor *tensor;
		const sema_block_ptr *block_ptr;
	};
};

/* ---- the state of one specialisation that built-ins may use; the rest is private to internal.h ---- */
struct sema_private;
struct sema {
	arena *arena;
	diags *diags;
	ir_func *func;
	ir_builder b; /* save, set and restore it to emit into a region */
	struct sema_private *private;
};

/* ---- making svals ---- */
sval sval_poison(span);
sval sval_void(span);
sval sval_none(span);
sval sval_value(ir_value *, span); /* null: poison */
sval sval_int(sema_int, span);     /* untyped; fits i64 or u64 */
sval sval_typed_int(scalar, sema_int, span);
sval sval_float(double, span); /* untyped */
sval sval_number_bits(scalar, uint64_t bits, span);
sval sval_bool(bool, span);
sval sval_type(sema *, ir_type, span);
sval sval_tuple(sema *, const sval *items, uint32_t n, span); /* copies the items; error 710 when it gets too large */
sval sval_tensor(sema *, const sema_tensor *, span);          /* copies the struct */
sval sval_block_ptr(sema *, const sema_block_ptr *, span);

static inline bool sval_is_poison(sval v)
{
	return v.kind == SVAL_POISON;
}
static inline bool sval_is_none(sval v)
{
	return v.kind == SVAL_NONE;
}
static inline bool sval_is_int(sval v) /* a compile-time integer */
{
	return v.kind == SVAL_NUMBER && scalar_is_integer(v.number.type);
}
bool sval_is_compile_time(sval); /* nothing in it is a run-time value */
bool sval_equal(sval, sval);     /* of compile-time values, and of SVAL_VALUE */
/* Scalar, tile or number: its type (an untyped number's when alone).  False for anything else, without an error. */
bool sval_type_of(sval, ir_type *);
uint64_t sema_number_bits(sema_number, scalar to); /* the number cast to that type: its container */

/* ---- text for messages ---- */
const char *sema_type_text(sema *, sval);     /* "f32[128]", "the integer 3", "a type", "(f32, i32)" */
const char *sema_shape_text(sema *, ir_type); /* "[128,64]"; "a scalar" for rank 0 */
const char *sema_stype_text(sema *, const stype *);
const char *sema_where_text(sema *, span);   /* "softmax.blk:8:13" */
const char *sema_source_text(sema *, span);  /* the source of a short expression, "..." else; for hints */
const char *sema_postfix_text(sema *, span); /* the same, in parentheses unless a '.' may follow it */
/* Reports and returns poison; sema_diag() returns the record so that labels and a hint can follow. */
sval sema_error(sema *, uint16_t code, span, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
diag *sema_diag(sema *, uint16_t code, span, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* ---- using svals ---- */
/* A run-time value of any type: emits a constant for a number.  Error for what is no value (a type, None...). */
ir_value *sema_value(sema *, sval, const char *what);
/* May the number become a `t` with no run-time value beside it?  A float literal that does not fit is an error. */
bool sema_alone_fits(sema *, sval number, scalar t);
/* A run-time value of exactly this type, shape included: compile-time numbers adapt, nothing else is converted. */
ir_value *sema_as_value(sema *, sval, ir_type, const char *what);
/* Numbers adapt and run-time values are converted to the element type, then broadcast to the shape (never beyond):
 * what `store`, `other` and atomics do with their values. */
ir_value *sema_store_value(sema *, sval, scalar elem, ir_type shape, const char *what);
/* A mask: a bool scalar or tile, broadcast to the shape.  SVAL_NONE gives null without an error: test it first. */
ir_value *sema_as_mask(sema *, sval, ir_type shape, const char *what);

bool sema_as_const_int(sema *, sval, int64_t *, const char *what); /* a compile-time integer that fits i64 */
bool sema_as_const_bool(sema *, sval, bool *, const char *what);
bool sema_as_string(sema *, sval, const char **text, uint32_t *n, const char *what);
/* One of the `n` strings: its number. */
bool sema_as_choice(sema *, sval, const char *const *choices, unsigned n, unsigned *which, const char *what);
bool sema_as_type(sema *, sval, ir_type *, const char *what);       /* a value type: scalar, pointer or tile */
bool sema_as_scalar_type(sema *, sval, scalar *, const char *what); /* a number type */
/* A tuple of 0 to 4 extents (or one integer, for rank 1) into `shape`'s rank and dim, its element left alone; checks
 * them and the limit on a tile's elements. */
bool sema_as_shape(sema *, sval, ir_type *shape, const char *what);
bool sema_as_axis(sema *, sval, unsigned rank, unsigned *axis, const char *what); /* -rank <= axis < rank */
/* A reshape that can be made, of extents that are no powers of two (ir/extents.h); reports. */
bool sema_check_reshape(sema *, ir_type from, ir_type to, span at);
/* Of `name`, which takes lines of powers of two only. */
bool sema_check_lines(sema *, const char *name, uint32_t extent, span at);
/* A tuple's items, or the value itself as the only item. */
void sema_items(sval *v, const sval **items, uint32_t *n);
/* Checks extents (odd numbers times powers of two, elements within the limit) of a type that is about to be made. */
bool sema_check_tile(sema *, ir_type, span);

/* ---- emission with the language's rules ---- */
bool sema_common_shape(ir_type a, ir_type b, ir_type *out); /* that both stretch to, if there is one */
ir_value *sema_stretch(sema *, ir_value *, ir_type shape);  /* to a shape that it stretches to */
bool sema_stretches(ir_type from, ir_type to);              /* does the one shape broadcast to the other? */
/* Stretches to the shape with EXPAND_DIMS, BROADCAST, SPLAT; error 203 when it does not stretch. */
ir_value *sema_broadcast_to(sema *, ir_value *, ir_type shape, span);
/* The common shape of two; the error (203 with labels) points at `at` and at both operands. */
bool sema_broadcast_pair(sema *, sval a, sval b, span at, ir_value **x, ir_value **y);
/* Promotion and broadcasting of n values or numbers to one type and shape (as the arithmetic operators do): where,
 * maximum, fma. Compile-time numbers adapt to the others.  All compile-time: they become run-time constants. */
bool sema_unify(sema *, const sval *v, unsigned n, span at, ir_value **out);
/* The type that numbers alone take beside each other; false after an error. */
bool sema_numbers_type(sema *, const sval *, unsigned n, span at, scalar *out);
/* The language's cast; identity when the type is the same; folds constants. Numbers and bool only. */
ir_value *sema_convert(sema *, ir_value *, scalar to);
/* x.to(T) in full: numbers, pointers from and to i64 and u64, bitcast. */
sval sema_cast(sema *, sval x, sval type, bool bitcast, span at);
/* a OP b and OP a as the language's operators: folding, promotion, broadcasting, pointer arithmetic. */
sval sema_emit_binary(sema *, ast_op, sval a, sval b, span at, span mark);
sval sema_emit_unary(sema *, ast_op, sval a, span at, span mark);
/* Calls a function value (SVAL_FN or SVAL_BUILTIN) on positional arguments: for reduce(x, axis, f). */
sval sema_call_fn(sema *, sval f, const sval *args, uint32_t n, span at);
/* Inlines a function of the library, whatever the program calls by its name; `file` is where it likely stands. */
sval sema_call_library(sema *, const char *file, const char *name, const sval *args, uint32_t n, span at);
/* How many arguments such a value may be called with, for errors before the call; `at` is no place for a built-in. */
typedef struct sema_arity {
	const char *name;
	span at;
	unsigned least, most;
} sema_arity;
sema_arity sema_arity_of(sema *, sval f);

#endif
