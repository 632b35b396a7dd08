/* Tile IR: SSA over whole tiles, structured control flow, one function (kernel) a module.
 *
 * In: calls of the builder, from sema or from the text reader.  Out: a tree of operations that passes walk and rewrite.
 * The one idea: a tile of a million elements is one value, and an operation is a row of ops.def; layouts are a field of
 * the value, empty until assign_layouts fills it.
 *
 * Shape of the thing:   ir_func > ir_block (body) > ir_op (list) > regions (ir_block each) > ir_op ...
 * A region is exactly one block.  Block arguments are values.  Every use of a value is linked (ir_use), so a value can
 * be replaced everywhere in time proportional to its uses.  Everything lives in one arena.
 *
 * Text form (print.c, read.c), one operation a line, regions in braces:
 *   func @softmax_rows(%y: *f32 {align=16}, %x: *const f32 {align=16}, %n: i32 {divisible=16}) num_warps=4 {
 *     %row = program_id {axis=0} : i32
 *     %3 = load %p, %m, %o {evict=first} : f32[1024]
 *     %5 = reduce %3 {axis=0 combine=sum} : f32
 *     %8, %9 = for %lo, %hi, %step, %a, %b {...} : f32[64], i32 (%i: i32, %x: f32[64], %y: i32) {
 *       yield %x2, %y2
 *     }
 *   } */
#ifndef BLK_IR_H
#define BLK_IR_H

#include <assert.h>

#include "../support/arena.h"
#include "../support/diag.h"
#include "../support/scalar.h"

enum { IR_MAX_RANK = 4, IR_MAX_ATTR = 7 };
/* Warps that are so many groups with rows of their own, where that can be (deal_rows.c). */
enum { IR_ROW_GROUPS = 3, IR_DEALT_WARPS = 4 * IR_ROW_GROUPS };
enum { IR_MAP_RANK = 5 }; /* of an array behind a tensor map; the block has IR_MAX_RANK at most */

/* A scalar (rank 0) or tile type, of numbers or of pointers to global memory. */
typedef struct ir_type {
	uint8_t elem;              /* scalar: of the number, or of what the pointer points to */
	uint8_t pointer;           /* 0 a number, 1 *T, 2 *const T */
	uint8_t rank;              /* 0 scalar .. 4 */
	uint32_t dim[IR_MAX_RANK]; /* extents, dim[0] is the slowest; unused ones 0 */
} ir_type;

enum { IR_NUMBER = 0, IR_POINTER = 1, IR_CONST_POINTER = 2 };

bool ir_type_equal(ir_type, ir_type);
bool ir_same_shape(ir_type, ir_type);
uint64_t ir_elements(ir_type); /* product of the extents; 1 for a scalar */
ir_type ir_scalar_type(scalar);
ir_type ir_tile_type(scalar, unsigned rank, const uint32_t *dim);
ir_type ir_with_elem(ir_type, scalar);              /* same shape, numbers of that type */
ir_type ir_with_shape(ir_type elem, ir_type shape); /* element and pointerness of the first, shape of the second */
ir_type ir_element(ir_type);                        /* rank 0 */
unsigned ir_element_bytes(ir_type);                 /* 8 for pointers */
void ir_type_print(text *, ir_type);                /* "f32[128,64]", "*const f16", "(*f32)[64]" */
const char *ir_type_name(arena *, ir_type);

typedef enum ir_kind {
#define OP(e, ...) IR_##e,
#include "ops.def"
#undef OP
	IR_KIND_COUNT
} ir_kind;

enum {               /* ir_op_info.flags */
	IR_PURE = 1, /* no effect: may be removed, merged, moved */
	IR_FREE = 2, /* cheap enough to recompute in any layout instead of converting */
	IR_ELEMENTWISE = 4,
	IR_COMMUTES = 8,
	IR_SHAPE = 16, /* moves elements, computes nothing */
	IR_MATH = 32,  /* elementary function */
	IR_CONTROL = 256,
	IR_TERMINATOR = 512,
	IR_TILE = 1024,      /* stands at the tile level only */
	IR_MAPPED = 2048,    /* stands at the mapped and the scheduled level only */
	IR_SCHEDULED = 8192, /* stands at the scheduled level only */
	IR_BUILTIN =
		4096, /* elementwise, and the language has a built-in function of its name that is no more than it */
	IR_ANY = 255, /* in args, results, regions */
};

enum { /* ir_op_info.memory: the column `memory` of ops.def, whose head says what they are */
	IR_NOTHING = 0,
	IR_READS_GLOBAL = 1,
	IR_WRITES_GLOBAL = 2,
	IR_READS_SHARED = 4,
	IR_WRITES_SHARED = 8,
	IR_COPIES = 16,
	IR_ORDERS = 32,
	IR_ACTS = 64,
	IR_GLOBAL = IR_READS_GLOBAL | IR_WRITES_GLOBAL,
	IR_READS = IR_READS_GLOBAL | IR_READS_SHARED,
	IR_EFFECTS = IR_WRITES_GLOBAL | IR_WRITES_SHARED | IR_ORDERS | IR_ACTS, /* what keeps an unused operation */
	IR_POINTER_SHIFT = 8,                                                   /* which operand, 4 bits each */
	IR_MASK_SHIFT = 12,
};

/* Rules of layouts: the column `layouts` of ops.def, whose head says what they are. */
typedef enum ir_layouts {
	IR_LAYOUTS_none,
	IR_LAYOUTS_free,
	IR_LAYOUTS_same,
	IR_LAYOUTS_in_place,
	IR_LAYOUTS_pairs,
	IR_LAYOUTS_lies,
	IR_LAYOUTS_broadcast,
	IR_LAYOUTS_expand,
	IR_LAYOUTS_reshape,
	IR_LAYOUTS_permute,
	IR_LAYOUTS_join,
	IR_LAYOUTS_split,
	IR_LAYOUTS_load,
	IR_LAYOUTS_rmw,
	IR_LAYOUTS_cas,
	IR_LAYOUTS_store,
	IR_LAYOUTS_block,
	IR_LAYOUTS_reduce,
	IR_LAYOUTS_scan,
	IR_LAYOUTS_sort,
	IR_LAYOUTS_gather,
	IR_LAYOUTS_histogram,
	IR_LAYOUTS_dot,
	IR_LAYOUTS_wgmma,
	IR_LAYOUTS_print,
	IR_LAYOUTS_if,
	IR_LAYOUTS_for,
	IR_LAYOUTS_while,
	IR_LAYOUTS_parent,
	IR_LAYOUTS_given,
	IR_LAYOUTS_copy,
} ir_layouts;

/* Rows of attributes.def. */
typedef enum ir_attribute {
#define ATTR(name, ...) IR_ATTR_##name,
#include "attributes.def"
#undef ATTR
	IR_ATTRIBUTE_COUNT
} ir_attribute;
_Static_assert(IR_ATTRIBUTE_COUNT <= 64, "ir_op_info.attributes is a set in 64 bits");

typedef struct ir_op_info {
	const char *name;
	uint8_t args, results, regions;
	uint16_t flags;
	ir_layouts layouts;
	uint16_t memory;
	uint64_t attributes; /* bit a: it has attribute a */
	const char *meaning;
} ir_op_info;
extern const ir_op_info ir_ops[IR_KIND_COUNT]; /* ORDER OP */

/* Attribute enums; names in ir.c, ORDER as here. */
typedef enum ir_combine {
#define COMBINE(e, ...) IR_##e,
#include "combines.def"
#undef COMBINE
	IR_CUSTOM,
	IR_COMBINE_COUNT
} ir_combine;
typedef enum ir_combinable {
	IR_COMBINABLE_arithmetic,
	IR_COMBINABLE_ordered,
	IR_COMBINABLE_floating,
	IR_COMBINABLE_bits,
	IR_COMBINABLE_truth
} ir_combinable;
/* Rows of combines.def; not of IR_CUSTOM. */
ir_kind ir_combines_by(ir_combine); /* the operation on two elements */
ir_combinable ir_combinable_types(ir_combine);
uint64_t ir_identity(ir_combine, scalar); /* its bits */
bool ir_repeats(ir_combine);
typedef enum ir_cache {
	IR_CACHE_NONE,
	IR_CACHE_CA,
	IR_CACHE_CG,
	IR_CACHE_CS,
	IR_CACHE_CV,
	IR_CACHE_WB,
	IR_CACHE_WT,
	IR_CACHE_COUNT
} ir_cache;
typedef enum ir_evict { IR_EVICT_NONE, IR_EVICT_FIRST, IR_EVICT_NORMAL, IR_EVICT_LAST, IR_EVICT_COUNT } ir_evict;
typedef enum ir_hint { IR_MULTIPLE_OF, IR_MAX_CONTIGUOUS, IR_MAX_CONSTANCY, IR_HINT_COUNT } ir_hint;
typedef enum ir_rmw {
	IR_ATOMIC_ADD,
	IR_ATOMIC_MAX,
	IR_ATOMIC_MIN,
	IR_ATOMIC_AND,
	IR_ATOMIC_OR,
	IR_ATOMIC_XOR,
	IR_ATOMIC_XCHG,
	IR_RMW_COUNT
} ir_rmw;
typedef enum ir_sem { IR_RELAXED, IR_ACQUIRE, IR_RELEASE, IR_ACQ_REL, IR_SEM_COUNT } ir_sem;
typedef enum ir_scope { IR_SCOPE_CTA, IR_SCOPE_GPU, IR_SCOPE_SYS, IR_SCOPE_COUNT } ir_scope;
typedef enum ir_partition { IR_PARTITION_CONSUMER, IR_PARTITION_PRODUCER, IR_PARTITION_COUNT } ir_partition;
typedef enum ir_proxy { IR_PROXY_NONE, IR_PROXY_SHARED, IR_PROXY_ALL, IR_PROXY_COUNT } ir_proxy;
typedef enum ir_precision { IR_TF32, IR_TF32X3, IR_IEEE, IR_PRECISION_COUNT } ir_precision;
extern const char *const ir_combine_names[];
extern const char *const ir_cache_names[];
extern const char *const ir_evict_names[];
extern const char *const ir_hint_names[];
extern const char *const ir_rmw_names[];
extern const char *const ir_sem_names[];
extern const char *const ir_scope_names[];
extern const char *const ir_precision_names[];
extern const char *const ir_partition_names[];
extern const char *const ir_proxy_names[];
/* Up to 4 numbers of 16 bits in one: attributes of type list. */
static inline int64_t ir_pack(unsigned n, const uint16_t *v)
{
	assert(n <= IR_MAX_RANK);
	int64_t r = 0;
	for (unsigned i = 0; i < n; i++) r |= (int64_t)v[i] << 16 * i;
	return r;
}
static inline unsigned ir_unpack(int64_t packed, unsigned i)
{
	assert(i < IR_MAX_RANK);
	return (unsigned)((uint64_t)packed >> 16 * i & 0xffff);
}

typedef struct ir_op ir_op;
typedef struct ir_block ir_block;
typedef struct ir_value ir_value;
typedef struct ir_use ir_use;
typedef struct ir_func ir_func;
struct layout;

struct ir_use {
	ir_value *value; /* what is used */
	ir_op *user;
	ir_use *prev, *next; /* other uses of the same value */
};

struct ir_value {
	ir_type type;
	ir_op *def;      /* null: an argument of `block` */
	ir_block *block; /* for arguments */
	uint32_t index;  /* which result or argument */
	uint32_t id;     /* unique in the function; analyses index side tables with it */
	ir_use *uses;
	const char *name;            /* the user's name, or null */
	const struct layout *layout; /* null at the tile level and for scalars */
};

struct ir_op {
	ir_kind kind;
	uint16_t nargs, nresults, nregions;
	ir_use **args; /* args[i]->value, or ir_arg(); change only with ir_set_arg */
	ir_value **results;
	ir_block **regions;
	int64_t attr[IR_MAX_ATTR];       /* read and written by ir_get_NAME and ir_set_NAME, see attributes.def */
	const char *text;                /* the attribute text */
	const struct ir_tensor_map *map; /* the attribute map: tensor_map.h */
	span at;
	ir_op *prev, *next;
	ir_block *block;                      /* where it stands; null while detached */
	uint32_t shared_offset, shared_bytes; /* scratch in shared memory, set by allocate_shared; 0 bytes: none */
};

struct ir_block {
	ir_op *first, *last;
	ir_value **args;
	uint32_t nargs;
	ir_op *parent; /* null: a function's body */
	ir_func *func;
};

/* What the host promises about a parameter, and what the program does with it. */
typedef struct ir_param {
	const char *name;
	ir_type type;
	uint32_t divisible; /* power of two: integers: the value's divisor; pointers: alignment in bytes. 1: nothing
			       known */
	bool is_one;        /* specialised to the value 1 (the body's uses were replaced by a constant) */
} ir_param;

typedef enum ir_level { IR_LEVEL_TILE, IR_LEVEL_MAPPED, IR_LEVEL_SCHEDULED } ir_level;
extern const char *const ir_level_names[];

struct ir_func {
	arena *arena;
	const char *name;
	span at;
	ir_level level;
	ir_block *body; /* its arguments are the run-time parameters, in order */
	ir_param *params;
	uint32_t nparams;
	uint32_t nvalues; /* ids are below this */
	/* options */
	uint32_t num_warps, num_stages, num_ctas, maxnreg; /* maxnreg 0: not given */
	bool stages_given;                                 /* by the user: fewer will not do */
	uint32_t max_registers, max_spills, max_shared;    /* UINT32_MAX: not given */
	uint32_t strict;                                   /* 1: no liberties with floats (language.md, section 5) */
	uint32_t launch_pdl;     /* 1: it may begin while the kernel before it ends (dependent_launch.c) */
	uint32_t shared_bytes;   /* static shared memory, after allocate_shared */
	bool takes_turns;        /* turns.c */
	uint32_t producer_warps; /* beside num_warps: of the second partition, and what the hardware wants with it */
	uint32_t cluster;        /* neighbours along x that the code wants to be a cluster; 0: none */
	uint32_t row_groups;     /* groups of num_warps warps, each with rows of its own (deal_rows.c); else 1 */
};

/* Where new operations go: before `before`, or at the end of `block` when it is null. */
typedef struct ir_builder {
	ir_func *func;
	ir_block *block;
	ir_op *before;
	span at; /* given to new operations */
} ir_builder;

/* Warps that compute. */
static inline uint32_t ir_warps(const ir_func *f)
{
	return f->num_warps * f->row_groups;
}

ir_func *ir_func_new(arena *, const char *name);
ir_value *ir_add_param(ir_func *, const char *name, ir_type, span); /* before any specialisation: divisible = 1 */
ir_block *ir_block_new(ir_func *, ir_op *parent);
ir_value *ir_block_arg(ir_block *, ir_type, const char *name);
void ir_block_remove_arg(ir_block *, uint32_t index); /* must have no uses */

/* Makes an operation with empty regions as its row says (regions ANY: `nregions`), appends it, returns it. */
ir_op *ir_build(ir_builder *, ir_kind, unsigned nargs, ir_value *const *args, unsigned nresults, const ir_type *results,
	unsigned nregions);
/* One-result conveniences: the result's value. */
ir_value *ir_build1(ir_builder *, ir_kind, ir_type result, unsigned nargs, ir_value *const *args);
ir_value *ir_unary(ir_builder *, ir_kind, ir_value *a);               /* result type = argument type */
ir_value *ir_binary(ir_builder *, ir_kind, ir_value *a, ir_value *b); /* same; comparisons give bool of that shape */
ir_value *ir_constant(ir_builder *, ir_type, uint64_t bits); /* scalar or splat constant, container of type.elem */
ir_value *ir_constant_int(ir_builder *, scalar, int64_t);
ir_value *ir_convert(ir_builder *, ir_value *, scalar to);         /* the same where it has that type */
ir_value *ir_splat(ir_builder *, ir_value *scalar, ir_type shape); /* to the shape of `shape`; identity if rank 0 */
void ir_yield(ir_builder *, unsigned n, ir_value *const *v);

void ir_set_arg(ir_op *, unsigned i, ir_value *);
void ir_add_arg(ir_func *, ir_op *, ir_value *);      /* appends an operand */
ir_value *ir_add_result(ir_func *, ir_op *, ir_type); /* appends; earlier results stay where they are in memory */
void ir_remove_arg(ir_op *, unsigned i);
void ir_remove_result(ir_op *, unsigned i);     /* must have no uses */
void ir_replace(ir_value *old, ir_value *with); /* every use */
void ir_erase(ir_op *); /* unlinks; drops its operands' uses, nested ones too; results must be unused */
void ir_move_before(ir_op *, ir_block *, ir_op *before); /* before null: at the end */
ir_op *ir_clone(ir_builder *, const ir_op *,
	ir_value **map); /* map[id] = replacement or null (keep); fills map for results; nested regions too.
			    map has room for ids that exist before the call */
void ir_copy_attributes(ir_op *to, const ir_op *from); /* of the same kind */
/* True if the value is an IR_CONST; its container in *bits. */
bool ir_is_const(const ir_value *, uint64_t *bits);
bool ir_is_const_int(const ir_value *, int64_t *); /* integers and bool, sign-extended by type */
bool ir_is_one(const ir_value *);                  /* such a constant */
bool ir_defined_outside(
	const ir_value *, const ir_op *loop); /* not in one of the operation's regions; of null's nothing is */

/* Control that leaves the block leaves the program: the function's own block, the consumers' region of partitions, or a
 * side of an `if` that ends such a block and whose other side is empty, as behind an early return. */
bool ir_is_tail(const ir_func *, const ir_block *);
/* The innermost for or while around an operation; null: there is none. */
ir_op *ir_loop_around(const ir_op *);
/* The operation itself, or the one around it, that stands in the block; null: it stands elsewhere. */
ir_op *ir_in_block(const ir_block *, ir_op *);
/* Of one block: b is a or stands behind it. */
bool ir_precedes(const ir_op *a, const ir_op *b);
/* Of an IR_FOR: by a constant, in i32. */
bool ir_counts_upwards(const ir_op *loop);
/* An operation and what stands in its regions. */
bool ir_encloses(const ir_op *, const ir_op *inner);
enum { IR_MOST_STEPS = 8 }; /* operations between a load and a product that are looked at */
/* Does a product take what is made, element by element or by shape, from the value, in the block where it is used?
 * `steps`: operations that are looked at. */
bool ir_leads_to_product(const ir_block *, const ir_value *, unsigned steps);

static inline const ir_op_info *ir_info(const ir_op *o)
{
	return &ir_ops[o->kind];
}
static inline bool ir_has(const ir_op *o, unsigned flag)
{
	return (ir_ops[o->kind].flags & flag) != 0;
}
/* Of the column `memory`: any of these. */
static inline bool ir_touches(const ir_op *o, unsigned how)
{
	return (ir_ops[o->kind].memory & how) != 0;
}
static inline ir_value *ir_arg(const ir_op *o, unsigned i)
{
	assert(i < o->nargs);
	return o->args[i]->value;
}
/* Through which global memory is touched. */
static inline unsigned ir_pointer_at(const ir_op *o)
{
	return ir_ops[o->kind].memory >> IR_POINTER_SHIFT & 15;
}
/* Of an access; null: it has none. */
static inline ir_value *ir_mask(const ir_op *o)
{
	unsigned at = ir_ops[o->kind].memory >> IR_MASK_SHIFT & 15;
	return at && o->nargs > at ? ir_arg(o, at) : NULL;
}
/* Global memory, by the threads themselves. */
static inline bool ir_accesses(const ir_op *o)
{
	return ir_touches(o, IR_GLOBAL) && !ir_touches(o, IR_COPIES);
}
static inline ir_value *ir_result(ir_op *o)
{
	assert(o->nresults > 0);
	return o->results[0];
}
static inline ir_op *ir_only_user(const ir_value *v) /* null: there is none, or more */
{
	return v->uses && !v->uses->next ? v->uses->user : NULL;
}
static inline ir_value *ir_mapped(ir_value *const *map, ir_value *v) /* by the map of ir_clone */
{
	return map[v->id] ? map[v->id] : v;
}
static inline bool ir_is_comparison(ir_kind k) /* ORDER OP */
{
	return k >= IR_EQ && k <= IR_GE;
}
static inline bool ir_is_loop(const ir_op *o)
{
	return o->kind == IR_FOR || o->kind == IR_WHILE;
}
static inline bool ir_is_scalar(const ir_value *v)
{
	return v->type.rank == 0;
}

/* Attributes: ir_get_axis(o), ir_set_axis(o, 1); of operations that have them (attributes.def). */
static inline bool ir_has_attribute(const ir_op *o, ir_attribute a)
{
	assert(a < IR_ATTRIBUTE_COUNT);
	return ir_info(o)->attributes >> a & 1;
}
/* C types of the column `type`. */
typedef uint64_t ir_attr_bits;
typedef unsigned ir_attr_axis, ir_attr_natural, ir_attr_positive;
typedef int64_t ir_attr_integer, ir_attr_list;
typedef bool ir_attr_flag;
typedef ir_combine ir_attr_combine;
typedef ir_cache ir_attr_cache;
typedef ir_evict ir_attr_evict;
typedef ir_hint ir_attr_hint;
typedef ir_rmw ir_attr_rmw;
typedef ir_sem ir_attr_sem;
typedef ir_scope ir_attr_scope;
typedef ir_precision ir_attr_precision;
typedef ir_partition ir_attr_partition;
typedef ir_proxy ir_attr_proxy;
typedef int64_t ir_attr_text, ir_attr_map; /* ir_op.text and ir_op.map hold them */
#define ATTR(name, place, type, ...)                                                                                   \
	static inline ir_attr_##type ir_get_##name(const ir_op *o)                                                     \
	{                                                                                                              \
		assert(ir_has_attribute(o, IR_ATTR_##name));                                                           \
		return (ir_attr_##type)o->attr[place];                                                                 \
	}                                                                                                              \
	static inline void ir_set_##name(ir_op *o, ir_attr_##type v)                                                   \
	{                                                                                                              \
		assert(ir_has_attribute(o, IR_ATTR_##name));                                                           \
		o->attr[place] = (int64_t)v;                                                                           \
	}
#include "attributes.def"
#undef ATTR

/* Acts once an element, whoever holds copies of it. */
static inline bool ir_is_atomic(const ir_op *o)
{
	return ir_has_attribute(o, IR_ATTR_sem);
}
static inline bool ir_is_volatile(const ir_op *o)
{
	return ir_has_attribute(o, IR_ATTR_volatile) && ir_get_volatile(o);
}

/* Walks every operation, outer before inner, in program order.  `visit` may erase the operation it is given. */
void ir_walk(ir_block *, void (*visit)(ir_op *, void *), void *context);

/* print.c: at the mapped level each tile result is followed by its layout. read.c: the inverse; verify.c. */
void ir_print(text *, const ir_func *);
void ir_print_marked(text *, const ir_func *, line_marks *); /* and which lines its operations are of */
ir_func *ir_read(arena *, diags *, source_file *);           /* null after a diagnostic */
/* Of several the one that begins at byte *at; *at goes on to where the next one would, or to the end. */
ir_func *ir_read_next(arena *, diags *, source_file *, size_t *at);
/* Types, operand counts, dominance, terminators, regions, level (layouts present and of the right shape). False: *why
 * says what. */
bool ir_verify(const ir_func *, text *why);

/* carried.c: what a loop's argument, or a result of an if or a loop, gets its value from (0: it is neither), and what
 * decides whether and how often an operation's regions run; how many. */
enum { IR_SOURCES = 3 };
unsigned ir_sources(const ir_value *, ir_value *out[IR_SOURCES]);
unsigned ir_conditions(const ir_op *, ir_value *out[IR_SOURCES]);

/* What is proved of values round loops: it holds for a value with sources if it holds for all of them, as it does, by
 * induction, for the values that are being looked at.  Begins as {0}. */
enum { IR_MOST_OPEN = 8 };
typedef struct ir_induction {
	const ir_value *open[IR_MOST_OPEN];
	unsigned n;
} ir_induction;
bool ir_holds_for_all(ir_induction *, const ir_value *, ir_value *const *source, unsigned n,
	bool (*holds)(void *context, ir_value *, unsigned depth), void *context, unsigned depth);

/* effects.c: what memory the kernel may touch; conservative. */
typedef struct ir_effects {
	bool *written;         /* by parameter: the buffer of this pointer */
	bool *written_through; /* by parameter: what lies at addresses that it is (integer), or that are loaded by it */
	bool written_anywhere; /* what lies at addresses that come of no parameter, or that cannot be followed to one */
	bool addresses;        /* it reads or writes at such addresses, of parameters or not */
} ir_effects;
ir_effects ir_find_effects(const ir_func *);
/* Without regions, and the same wherever it stands: pure, or a load through *const. */
bool ir_is_repeatable(const ir_op *);

#endif
