/* What the files of sema share and nobody else sees: declarations, scopes, slots, frames. */
#ifndef BLK_SEMA_INTERNAL_H
#define BLK_SEMA_INTERNAL_H

#include "builtins.h"

enum {
	SEMA_MAX_WORK = 1000000,   /* operations after unrolling and inlining */
	SEMA_MAX_DEPTH = 1500,     /* of the walk's own recursion: expressions, statements and inlined calls together */
	SEMA_MAX_INLINE = 256,     /* calls inside calls */
	SEMA_MAX_REGIONS = 256,    /* run-time ifs and loops inside each other, those made by early exits included */
	SEMA_MAX_IMPORTS = 256,    /* imports inside imports */
	SEMA_MAX_LEAVES = 4096,    /* values in a tuple, tuples inside it included */
	SEMA_MAX_TUPLES = 64,      /* tuples inside each other */
	SEMA_MAX_CONFIGS = 100000, /* configurations of one autotune block */
	SEMA_MAX_CROSSED = 1000000, /* configurations of one before its 'where' clauses */
	SEMA_TRY = 24,              /* configurations that are tried where an order is given and nothing else said */
	SEMA_MAX_COMPUTED = 16,     /* const parameters of a kernel that a launch computes */
};

/* The name or operator of a node: where a caret goes. */
static inline span mark_of(const ast *n)
{
	return n->mark.file ? n->mark : n->at;
}

/* ---- declarations (load.c) ---- */
typedef enum declaration_kind { DECLARES_CONST, DECLARES_FN, DECLARES_KERNEL, DECLARES_SPACE } declaration_kind;

typedef struct declaration {
	declaration_kind kind;
	const char *name; /* interned */
	const ast *node;  /* BIND, FN, KERNEL or SPACE */
	span at;          /* the name */
	bool library;     /* from compiler/lib: sees built-ins and the library, not the user's names */
	sema_fn *fn;
	const ast *autotune;
} declaration;

struct sema_fn {
	const char *name;
	const ast *node;
	bool library;
	bool imported; /* of a library file that the program imports: its parameters may be anything */
};

/* Names to anything, by the interned pointer: open addressing. */
typedef struct name_table {
	struct {
		const char *name;
		void *value;
	} * at;
	uint32_t n, room; /* room: a power of two */
} name_table;
void *name_table_find(const name_table *, const char *name);
void name_table_set(arena *, name_table *, const char *name, void *value);

struct sema_program {
	arena *arena;
	diags *diags;
	names *names;
	source_set *sources;
	name_table user, library;
	VEC(declaration *) declarations; /* of the user, in order of declaration, imports first */
	VEC(declaration *) library_declarations;
	VEC(declaration *) kernels;
	VEC(const ast *) autotunes; /* the user's, spaces too */
	uint32_t library_loaded;    /* bit i: file i of the library has been parsed, or imported */
	bool broken;                /* there were syntax errors: what is missing then would be reported as unknown */
	bool incomplete;            /* an import is missing: a name that is not found may be of there */
};
/* A declaration of the library, or null.  Its files are parsed when a name is not found in those parsed before, the one
 * called `likely` first. */
void sema_load_files(sema_program *, source_file *main_file);
declaration *sema_library_find(sema_program *, const char *name, const char *likely);
/* The file of the library that declares a name and that the program did not import, or null. */
const char *sema_library_file_of(const sema_program *, const char *name);

/* ---- scopes and slots (scope.c) ---- */
typedef enum binding_kind { BINDING_LET, BINDING_CONST, BINDING_PARAMETER, BINDING_LOOP, BINDING_VAR } binding_kind;

typedef struct binding {
	const char *name;
	span at;
	binding_kind kind;
	uint32_t frame, scope; /* ids */
	const ast *start;      /* the statement that declares it, of const, let and var */
	sval value;            /* all but VAR */
	uint32_t slot;         /* VAR: the slot that holds the value */
	struct binding *hidden;
} binding;

/* Where a name was declared that its blocks took with them, for messages: the last of them, in the last function. */
typedef struct closed_name {
	uint32_t frame, n;
	span at[2];
} closed_name;

typedef struct loop {
	struct loop *up;
	uint32_t broken; /* slot: bool, a break happened */
	uint32_t left;   /* slot: bool, this iteration was left by break, continue or return */
} loop;

typedef struct slot_change {
	uint32_t slot;
	sval value;
} slot_change;
typedef VEC(slot_change) slot_changes;

typedef struct frame {
	struct frame *up;
	const sema_fn *fn; /* null: the kernel, or a constant expression */
	span call;         /* where it was called */
	uint32_t id;
	bool library;
	uint32_t returned; /* slot: bool */
	uint32_t result;   /* slot: the value */
	const stype *type; /* declared result, or null */
	loop *loop;
	span first_return; /* for messages about returns that disagree */
} frame;

typedef struct scope_mark {
	uint32_t bindings, slots, scope, block_slots;
} scope_mark;

/* `in LOW..HIGH` of a const parameter, both ends included. */
typedef struct const_bounds {
	bool given;
	int64_t low, high;
} const_bounds;

/* A const parameter of the kernel that the host computes at each launch. */
typedef struct computed_const {
	const ast *parameter;
	const stype *type; /* null: in error */
	const_bounds bounds;
	const char *postfix; /* null: in error, or not read yet */
	bool is_bool;
	uint32_t depth; /* as of host_facts */
} computed_const;

struct sema_private {
	sema_program *program;
	const sema_request *request;
	name_table names;  /* name to the innermost binding */
	name_table closed; /* name to the closed_name of blocks that have ended */
	VEC(binding *) bindings;
	VEC(sval) slots;      /* what mutable variables and exit flags hold now; change with slot_set() */
	slot_changes log;     /* what each write replaced, since the outermost branch began or before */
	VEC(uint32_t) stamps; /* by slot, for walks that want each slot once */
	uint32_t stamp;
	frame *frame;
	uint32_t next_frame, scope, next_scope;
	uint32_t library_error; /* id of the last call of a library function that an error was reported in */
	uint32_t depth, inlined, regions, work;
	uint32_t block_slots; /* slots at and beyond this belong to the innermost block */
	bool work_reported;
	const ast *kernel;            /* that is specialised */
	bool options_read;            /* its options are known, and have names: kernel_option_constant_name */
	VEC(computed_const) computed; /* of the kernel, in their order */
	name_table constants; /* top-level constants: declaration's name to constant_state; library ones apart */
	name_table library_constants;
	uint32_t option_reads; /* how often an option was named */
};

/* Of one that reads an option the value goes: configurations of a kernel differ in options. */
typedef enum constant_progress { CONSTANT_IN_PROGRESS, CONSTANT_DONE, CONSTANT_READS_OPTION } constant_progress;
typedef struct constant_state {
	constant_progress progress;
	sval value;
} constant_state;

void sema_init(sema *, sema_program *, const sema_request *, ir_func *);
scope_mark scope_open(sema *);
void scope_close(sema *, scope_mark);
/* Reports a name that this block has declared already. */
binding *scope_bind(sema *, const char *name, span at, binding_kind, sval value);
void sema_note_binding(sema *, span name, sval); /* notes.c; nothing where nobody asked for notes */
binding *scope_find(sema *, const char *name);   /* of the current frame; null: not a local name */
uint32_t slot_new(sema *, sval value);
void slot_set(sema *, uint32_t slot, sval value);
static inline sval slot_get(sema *s, uint32_t slot)
{
	return s->private->slots.at[slot];
}
/* Looks the name up everywhere: locals, declarations, types, built-ins, library; error 201. */
sval scope_lookup(sema *, const char *name, span at);
sval scope_lookup_target(
	sema *, const char *name, span at); /* of what is assigned to: an unknown name may lack its let */
sval scope_constant(sema *, declaration *, span at);

/* An error about an operator: the position is that of the whole expression, the caret stands under the operator. */
diag *sema_operator_diag(sema *, uint16_t code, span at, span mark, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* An error about the arguments of the library function that the program called: "'NAME' MESSAGE" at that call; null
 * where no library function is being checked. */
diag *sema_library_diag(sema *, uint16_t code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- operators.c, types.c, consteval.c ---- */
void sema_hint_mix(sema *, diag *, sval a, scalar ta, sval b, scalar tb); /* of a signed and an unsigned integer */
sval fold_binary(sema *, ast_op, sval a, sval b, span at, span mark);
sval fold_unary(sema *, ast_op, sval a, span at, span mark);
/* sema_unify(), the conversions of v[i] being made at where[i]. */
bool sema_unify_at(sema *, const sval *v, unsigned n, span at, ir_builder *where, ir_value **out);
bool number_fits(sema_number, scalar); /* in the type's range; a float is in no integer's, and inf in every float's */
/* The type in which two numbers meet; false: signed and unsigned with no common type.  That a literal fits the other's
 * type has been checked. */
bool number_common_type(sema_number a, sema_number b, scalar *type, bool *untyped);
/* May the number stand beside a `t`?  A literal that does not fit is an error, not a wider type. */
bool sema_literal_fits(sema *, sval number, scalar t);
sema_number number_adapt(sema_number, scalar);
sema_number number_from_bits(scalar, uint64_t);
sema_number number_make_int(sema_int, bool *fits);
const char *number_text(sema *, sema_number);
const char *sema_constant_text(sema *, sval); /* a number, a type or a tuple of them, as source */
bool promote(scalar a, scalar b, scalar *out);
const stype *sema_as_stype(sema *, sval, const char *what); /* types and tuples of types; null after an error */
/* A value of the declared type: let, typed parameters, results, assignments. */
sval sema_coerce(sema *, sval, const stype *, const char *what);
const stype *sema_stype_of(sema *, sval); /* null: has none (functions, strings) */
const stype *stype_value(sema *, ir_type);
bool stype_equal(const stype *, const stype *);
const stype *stype_tuple(sema *, const stype *const *items, uint32_t n);
const stype *stype_named(arena *, const char *name); /* f32, tensor, type, shape; null */
const char *sema_origin_text(sema *, sval);          /* "f32[512], loaded at softmax.blk:8:13" */
sval sema_index(sema *, const ast *, sval object);
sval sema_member(sema *, const ast *, sval object, bool *known); /* shape, dtype, elem, bytes.. */

/* ---- leaves: the run-time values inside an sval (leaves.c) ---- */
typedef struct value_list {
	ir_value **at;
	uint32_t n, room;
} value_list;
/* Appends the run-time values of a run-time form (see sema_run_time). */
void leaves_collect(sema *, sval, value_list *);
sval leaves_rebuild(sema *, sval shape, ir_value *const *values, uint32_t *next); /* with those values instead */
sval sema_run_time(
	sema *, sval, const char *what); /* every number in it becomes a value; error for types, strings .. */
bool sema_same_value(sval, sval);
/* Two svals that meet: made to be of one type, numbers adapting.  `a` is materialised at builder x, `b` at y. */
bool sema_merge(sema *, sval *a, ir_builder *x, sval *b, ir_builder *y, span at, const char *what);
ir_value *sema_zero(sema *, ir_type); /* an arbitrary value of the type, for paths on which nobody reads it */
sval sema_zero_like(sema *, sval);

/* ---- expressions.c, calls.c ---- */
bool sema_enter(sema *, span); /* depth and work; pair with sema_leave when true */
void sema_leave(sema *);
sval sema_expression(sema *, const ast *);
sval sema_constant_expression(
	sema *, const ast *, const char *what); /* must be compile-time; emits nothing that stays */
/* A block that nobody keeps: what compile-time expressions emit on the way. */
ir_builder scratch_open(sema *, span);
void scratch_close(sema *, ir_builder saved);
sval sema_call(sema *, const ast *);
sval sema_inline(sema *, const sema_fn *, const sval *args, const bool *given, uint32_t n, span at);
/* A run-time condition; null with *known 0 or 1 for a compile-time one, -1 after an error. */
ir_value *sema_condition(sema *, sval, span, int *known, const char *of);

/* ---- statements.c, flow.c, loops.c ---- */
typedef enum flow { FLOW_NEXT, FLOW_MAYBE, FLOW_LEFT } flow; /* goes on; may have exited; has exited */
flow sema_block(sema *, const ast *block);                   /* with its own scope */
flow sema_statements(sema *, ast *const *list, uint32_t n);
flow sema_return(sema *, const ast *);
flow sema_break(sema *, const ast *);
flow sema_if(sema *, const ast *, ast *const *rest, uint32_t nrest, bool *consumed);
flow sema_for(sema *, const ast *);
flow sema_while(sema *, const ast *);

/* A run-time two-way branch.  begin; emit the then arm; other; emit the else arm; end merges the slots. */
typedef struct branch {
	ir_op *op;
	ir_builder saved;
	slot_changes then;  /* what the then arm left */
	uint32_t mark, end; /* the log and the slots at the start */
} branch;
void branch_begin(sema *, branch *, ir_value *condition, span at);
void branch_other(sema *, branch *);
void branch_end(sema *, branch *, uint32_t merged_end); /* slots at and beyond merged_end are dead: not merged */
bool region_enter(sema *, span);                        /* limit on nesting */
void region_leave(sema *);
/* The bool that says whether the innermost loop's iteration, or else the function, has been left. */
uint32_t left_slot(sema *);
ir_value *flag_value(sema *, sval flag); /* as a run-time bool */
sval flag_or(sema *, sval a, sval b);
ir_value *flag_not(sema *, sval a);
bool flag_is(sval flag, bool value); /* statically */

/* ---- hostexpr.c, autotune.c, digest.c, kernel.c ---- */
typedef enum host_clause {
	HOST_GRID,
	HOST_COST,
	HOST_REQUIRES,
	HOST_KEY,
	HOST_WHERE,
	HOST_ORDER,
	HOST_COMPUTED,
	HOST_TYPICAL
} host_clause;
typedef struct host_facts {
	bool known, is_bool; /* no run-time part; a condition */
	int64_t value;       /* of a known one in i64; else 0 */
	uint32_t depth;      /* values that the host keeps at once, beyond one */
} host_facts;
/* Postfix of a clause's expression over run-time parameters, in i64 (a cost and a predicted time: f64); false after an
 * error.  `facts` may be null. */
bool host_expression(sema *, const ast *, host_clause, text *out, host_facts *facts);
/* The same of an autotune block, which may name the arguments of its keys alone. */
bool host_expression_of_keys(sema *, const ast *, host_clause, const ast *key, text *out, host_facts *facts);
/* The block with what it imports in place of its imports (spaces.c). */
const ast *space_expand(sema_program *, const ast *kernel, const ast *block);
bool ast_mentions(const ast *, const char *name); /* as a value, not as what is called */
/* requires.c: a line for each clause of the kernel, those that are known to fail being errors; and the lines that say
 * of one configuration, whose const parameters are bound, for which arguments it may be chosen. */
void requires_signature(sema *, const ast *kernel, text *out);
bool requires_of_configuration(sema *, const ast *kernel, text *out);
/* "n=p0 BLOCK=1024": what an expression names, but for what is computed if so asked; and its text in one line. */
void requires_names(sema *, const ast *, bool of_launch, text *out);
void requires_source(sema *, const ast *, text *out);
/* computed.c: const parameters that the host computes at each launch, and bounds. */
bool computed_is(const sema *, const ast *kernel, const ast *parameter); /* of one that no define gives */
const computed_const *computed_find(const sema *, const char *name);
const_bounds computed_bounds(sema *, const ast *parameter, const stype *);
void computed_check_bounds(sema *, const ast *parameter, const_bounds, sval value);
bool computed_add(sema *, const ast *parameter, const stype *, const_bounds); /* false after an error */
sval computed_typical(sema *, const ast *parameter, const stype *, const_bounds);
void computed_signature(sema *, const ast *kernel, text *out); /* a line for each, once all parameters are bound */
void computed_requires(sema *, text *out);                     /* that this code is for the values of a launch */
void computed_check_tuned(sema *, const char *name, span at);  /* of what a block tunes */
void autotune_check(sema_program *, const ast *);              /* names and shapes of clauses */
bool autotune_signature(sema *, const ast *, const ast *kernel, text *out);         /* types and the canonical lines */
void autotune_digest(const sema_program *, const ast *block, char out[33]);         /* 32 digits */
sval autotune_value(sema *, const ast *kernel, const char *name, const ast *value); /* in the type of what it is for */
/* A condition over the arguments, and the predicted time, for what is bound: postfix.  False after an error. */
bool autotune_condition(sema *, const ast *block, const ast *condition, text *out);
bool autotune_order(sema *, const ast *block, text *out);
bool autotune_over_arguments(const sema *, const ast *condition);
const ast *autotune_find(const ast *block, ast_kind); /* the first clause of the kind; null */
/* configurations.c: a line for each that the block allows */
bool autotune_configurations(sema *, const ast *block, const ast *kernel, text *out);
typedef struct kernel_option {
	const char *name, *allowed;
	uint32_t minimum, maximum;
	bool power_of_two;
} kernel_option;
void overflow_check(sema *, const int64_t grid[3]); /* overflow.c; an extent of 0 is not known */
const ast *find_parameter(const ast *kernel, const char *name);
enum { KERNEL_OPTIONS = 9 };
extern const kernel_option kernel_options[KERNEL_OPTIONS + 1]; /* ends with a null name */
const kernel_option *kernel_option_find(const char *name);
/* Of those that a kernel's grid, cost and body may name, as constants: num_warps, num_stages, num_ctas. */
const kernel_option *kernel_option_constant_name(const char *name);
uint32_t *kernel_option_field(ir_func *, const kernel_option *);
uint32_t kernel_option_value(sema *, const kernel_option *);      /* of this kernel; the largest when it has none */
sval kernel_option_constant(sema *, const kernel_option *, span); /* the same as a condition sees it */
bool kernel_option_check(sema *, const kernel_option *, sval, uint32_t *out, span);
/* A const parameter's value of the parameter's type, which is evaluated in the current scope. */
sval sema_const_argument(sema *, const ast *parameter, sval value);

#endif
