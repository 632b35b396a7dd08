/* Inside compiler/target/cpu: the plan (where each value lives) and the emitter (one LLVM function being written). */
#ifndef BLK_CPU_LOWER_H
#define BLK_CPU_LOWER_H

#include "cpu.h"
#include "cpu_abi.h"

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/TargetMachine.h>

/* Where a value's elements come from.
 *   UNUSED  nobody asks
 *   SCALAR  an LLVM value (rank 0)
 *   LAZY    computed for one element inside the loop of whoever asks
 *   BUFFER  in the thread's scratch memory, row-major, written by one loop at the value's place in the program */
typedef enum cpu_place { CPU_UNUSED, CPU_SCALAR, CPU_LAZY, CPU_BUFFER } cpu_place;

enum { CPU_NO_BUFFER = UINT32_MAX };

typedef struct cpu_buffer {
	uint64_t offset, bytes;
	uint32_t start, end; /* positions in program order, both included, between which the contents matter */
} cpu_buffer;

typedef struct cpu_value_plan {
	uint8_t place;
	uint32_t buffer;
	uint32_t cost; /* of one element if nothing below were stored */
	uint32_t need; /* last position that reads it; 0 before it is computed */
	/* Who evaluates it, if that is one loop with each element asked for once (unique and not repeated). */
	const ir_op *root;
	uint32_t slot;    /* of a root with one loop an operand */
	const ir_op *via; /* innermost operation on the way that changes indices */
	uint16_t depth;
	ir_value *base; /* of a sliding value, see plan.c: its element is base's plus a scalar; null for the others */
	bool unique, repeated, stored; /* stored: asked for by a reshape, which wants memory */
} cpu_value_plan;

typedef struct cpu_op_plan {
	const ir_op *op;
	uint32_t position, end; /* end > position where there are regions */
	uint32_t epoch;         /* effects before it */
	uint32_t fused;         /* operations that its loop evaluates */
	uint32_t *extra; /* yield of a loop: staging buffer by slot, or CPU_NO_BUFFER; reduce: accumulators; sort: keys;
			    dot: operands and sum */
} cpu_op_plan;

typedef struct cpu_plan {
	arena *arena;
	ir_func *func;
	cpu_value_plan *value; /* by id */
	cpu_op_plan *table;    /* hash table by address of the operation */
	uint32_t table_room;
	VEC(cpu_buffer) buffers;
	uint64_t scratch_bytes;
	uint32_t loops; /* over tiles, that the code will have: about */
	uint32_t scalar_accesses;
} cpu_plan;

cpu_plan *cpu_plan_make(arena *, ir_func *);
cpu_op_plan *cpu_plan_op(const cpu_plan *, const ir_op *);
static inline bool cpu_trivial_broadcast(const ir_op *o) /* changes no extent */
{
	return ir_same_shape(o->args[0]->value->type, o->results[0]->type);
}
bool cpu_unit_reshape(const ir_op *); /* only adds or removes extents of 1 */
/* 16-bit floats are combined in f32, but for custom regions */
scalar cpu_accumulator(const ir_op *reduce, unsigned i);
bool cpu_reduce_by_rows(const ir_op *reduce);
scalar cpu_dot_type(const ir_op *dot); /* what it computes in */

typedef struct cpu_memo { /* an element already computed in the present loop */
	uint32_t epoch;
	LLVMValueRef index[IR_MAX_RANK], result;
	struct cpu_memo *next;
} cpu_memo;

typedef struct cpu_local_value {
	LLVMTypeRef type;
	const char *name;
	unsigned number;
	LLVMValueRef at;
} cpu_local_value;

typedef struct cpu_access { /* checked, and not yet reported */
	const ir_op *op;
	uint32_t bytes;
	int32_t parameter; /* that the pointer came of; -1: not known */
} cpu_access;

typedef struct cpu_emitter {
	arena *arena;
	diags *diags;
	ir_func *func;
	const cpu_options *options;
	cpu_plan *plan;
	const cpu_output *parts; /* of cpu_join() */
	size_t nparts;
	/* LLVM; those down to pass_options are owned and disposed on every path */
	LLVMContextRef context;
	LLVMModuleRef module, copy;
	LLVMBuilderRef builder, entry; /* entry: adds to the end of the program function's first block */
	LLVMTargetMachineRef machine;
	LLVMMemoryBufferRef memory;
	char *message;
	void *pass_options;
	bool f16c; /* the host converts f16 <-> f32 */
	unsigned vector_bytes, vector_registers;
#define TYPE(field, make) LLVMTypeRef field;
#include "support/llvm_types.def"
#undef TYPE
	LLVMTypeRef pointer;
	LLVMValueRef program; /* the function of one program */
	LLVMValueRef pid[3], grid[3], host, scratch;
	LLVMValueRef *scalar; /* by value id; of a sliding value: how far it is from its base, i64 for pointers */
	cpu_memo **memo;      /* by value id */
	uint32_t memo_epoch;
	LLVMValueRef ranges,
		*range;           /* of checked code: where they are; by parameter, begin and bytes, null: not read */
	VEC(cpu_access) accesses; /* of the statement that is being written */
	VEC(LLVMValueRef) lowest;
	uint32_t *searched, searches; /* by value id: the last search for a pointer's parameter that came by */
	unsigned nests;               /* open ones */
	LLVMDIBuilderRef debug;       /* null without line info */
	LLVMMetadataRef subprogram;
	VEC(LLVMMetadataRef) files; /* by source_file.index */
	VEC(cpu_local_value) locals;
	LLVMValueRef *scope, *noalias; /* by buffer: metadata, or null when there are too many */
} cpu_emitter;

/* A nest of loops over a tile's elements; index[] is valid in the body. */
typedef struct cpu_nest {
	unsigned rank;
	LLVMValueRef index[IR_MAX_RANK];
	LLVMBasicBlockRef header[IR_MAX_RANK]; /* null for extents of 1 */
	uint32_t extent[IR_MAX_RANK];
} cpu_nest;

/* module.c */
bool cpu_lower(cpu_emitter *); /* fills e->module */
/* bounds.c */
/* The mask (null: none) of an access of this element, false where it lies outside; as it is in unchecked code. */
LLVMValueRef cpu_bounds(cpu_emitter *, const ir_op *, LLVMValueRef pointer, LLVMValueRef mask);
void cpu_bounds_end(cpu_emitter *); /* at the end of a statement: the reports */
/* masked.c */
void cpu_spare_masked(cpu_emitter *);
/* debug.c */
void cpu_debug_begin(cpu_emitter *);
void cpu_debug_function(cpu_emitter *, LLVMValueRef);
LLVMMetadataRef cpu_debug_line(cpu_emitter *, span); /* where the builder was, for cpu_debug_back() */
void cpu_debug_back(cpu_emitter *, LLVMMetadataRef before);
void cpu_debug_end(cpu_emitter *);
/* build.c */
LLVMTypeRef cpu_type(const cpu_emitter *, ir_type); /* of an element in a register: bool i1, f16 bf16 i16, fp8 i8 */
LLVMValueRef cpu_int(const cpu_emitter *, scalar, int64_t);
LLVMValueRef cpu_index(const cpu_emitter *, uint64_t); /* i64 */
LLVMValueRef cpu_constant(const cpu_emitter *, ir_type, uint64_t bits);
LLVMValueRef cpu_linear(cpu_emitter *, ir_type, const LLVMValueRef *index);
LLVMBasicBlockRef cpu_block(cpu_emitter *, const char *name); /* appended to the program function */
/* Goes to `fine` or, hardly ever, to `failed`, where the builder is left. */
void cpu_fail_unless(cpu_emitter *, LLVMValueRef holds, LLVMBasicBlockRef fine, LLVMBasicBlockRef failed);
/* An alloca.  Its users' lives do not meet, or differ in type, name or number: one that thousands of statements share
 * is promoted to registers in one go, thousands of them one by one, each by a walk over the whole function. */
LLVMValueRef cpu_local(cpu_emitter *, LLVMTypeRef, const char *name, unsigned number);
LLVMValueRef cpu_intrinsic(cpu_emitter *, const char *name, LLVMTypeRef, unsigned n, LLVMValueRef *args);
LLVMValueRef cpu_select(cpu_emitter *, LLVMValueRef c, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef cpu_contract(LLVMValueRef); /* a float operation, with contraction allowed */
void cpu_forget(cpu_emitter *);          /* elements computed so far do not dominate what follows */
/* nest.c */
void cpu_nest_open(cpu_emitter *, cpu_nest *, unsigned rank, const uint32_t *extent);
void cpu_nest_close(cpu_emitter *, cpu_nest *);
/* lower.c */
void cpu_lower_block(cpu_emitter *, ir_block *);
/* control.c */
void cpu_lower_if(cpu_emitter *, ir_op *);
void cpu_lower_for(cpu_emitter *, ir_op *);
void cpu_lower_while(cpu_emitter *, ir_op *);
void cpu_fill(cpu_emitter *, uint32_t buffer, ir_value *from); /* evaluates a tile into a buffer */
/* reduce.c */
void cpu_lower_reduce(cpu_emitter *, ir_op *);
/* Two values of a built-in combination; of a custom one (out may be a). */
LLVMValueRef cpu_combine(cpu_emitter *, ir_combine, scalar, bool reassociate, LLVMValueRef a, LLVMValueRef x);
void cpu_combine_custom(cpu_emitter *, const ir_op *, const LLVMValueRef *a, const LLVMValueRef *x, LLVMValueRef *out);
/* scan.c, sort.c */
void cpu_lower_scan(cpu_emitter *, ir_op *);
void cpu_lower_sort(cpu_emitter *, ir_op *);
/* dot.c */
void cpu_lower_dot(cpu_emitter *, ir_op *);
/* atomic.c */
void cpu_lower_atomic(cpu_emitter *, ir_op *);
/* shapes.c */
void cpu_lower_join(cpu_emitter *, ir_op *);
void cpu_lower_split(cpu_emitter *, ir_op *);
void cpu_lower_gather(cpu_emitter *, ir_op *);
void cpu_lower_histogram(cpu_emitter *, ir_op *);
/* report.c */
void cpu_lower_print(cpu_emitter *, ir_op *);
void cpu_lower_assert(cpu_emitter *, ir_op *);
/* element.c */
LLVMValueRef cpu_element(cpu_emitter *, ir_value *, const LLVMValueRef *index);
LLVMValueRef cpu_compute(cpu_emitter *, ir_value *, const LLVMValueRef *index); /* although it has a buffer */
LLVMValueRef cpu_memory_load(cpu_emitter *, ir_type elem, LLVMValueRef address);
LLVMValueRef cpu_memory_store(cpu_emitter *, ir_type elem, LLVMValueRef address, LLVMValueRef);
LLVMValueRef cpu_buffer_load(cpu_emitter *, uint32_t buffer, ir_type, LLVMValueRef linear);
void cpu_buffer_store(cpu_emitter *, uint32_t buffer, ir_type, LLVMValueRef linear, LLVMValueRef);
/* 2^k neighbours at once, as a vector. */
LLVMValueRef cpu_buffer_load_vector(cpu_emitter *, uint32_t buffer, ir_type, unsigned lanes, LLVMValueRef linear);
void cpu_buffer_store_vector(cpu_emitter *, uint32_t buffer, ir_type, LLVMValueRef linear, LLVMValueRef);
/* A load of one element: `mask` and `other` may be null; never touches memory where the mask is false. */
LLVMValueRef cpu_load_element(cpu_emitter *, const ir_op *, LLVMValueRef *args);
void cpu_store_element(cpu_emitter *, const ir_op *, LLVMValueRef *args);
/* apply.c: one elementwise operation on element values */
LLVMValueRef cpu_apply(cpu_emitter *, const ir_op *, LLVMValueRef *args);
/* Of an operation whose operands and result have one type. */
LLVMValueRef cpu_apply_alike(cpu_emitter *, ir_kind, scalar, LLVMValueRef *args);
LLVMValueRef cpu_max_min(cpu_emitter *, scalar, bool max, LLVMValueRef, LLVMValueRef);
LLVMValueRef cpu_extend(cpu_emitter *, scalar, LLVMValueRef); /* an integer to i64 by its type */
LLVMValueRef cpu_offset(cpu_emitter *, scalar pointee, LLVMValueRef pointer, LLVMValueRef elements); /* i64 */
/* math.c: an elementary function of an f32 in line, or null */
LLVMValueRef cpu_math(cpu_emitter *, ir_kind, LLVMValueRef);
/* convert.c */
LLVMValueRef cpu_convert(cpu_emitter *, scalar to, scalar from, LLVMValueRef);
LLVMValueRef cpu_bits(cpu_emitter *, LLVMTypeRef to, LLVMValueRef); /* bit cast, pointers and i1 included */
/* f16 bf16 fp8 as f32 (exact), other floats as they are, and back, rounding once */
LLVMValueRef cpu_widen(cpu_emitter *, scalar, LLVMValueRef);
LLVMValueRef cpu_narrow(cpu_emitter *, scalar, LLVMValueRef);
LLVMValueRef cpu_narrow_f64(cpu_emitter *, scalar, LLVMValueRef); /* from f64 to f16, bf16 or fp8 */

#endif
