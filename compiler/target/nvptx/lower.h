/* What the files of this folder share: the state of one lowering and the small builders.
 *
 *   nvptx.c                           module, function, passes, emission
 *   lower.c                           the walk over operations, control flow
 *   values.c                          tiles as registers, coordinates, asm
 *   memory.c                          loads and stores, global and shared
 *   arithmetic.c, convert_types.c     one element
 *   reduce.c, convert_layout.c        data between threads
 *   scan.c, sort.c, exchange.c        the same, along an axis in order
 *   sort_local.c                      long lines in local memory
 *   shapes.c                          join, split, gather, histogram
 *   inline_asm.c                      the user's PTX
 *   mma/sync_lower.c, wgmma_lower.c   products of matrices
 *   multibuffer.c                     copies that run ahead
 *   tma.c                             blocks by tensor maps
 *   partitions.c                      warps that compute, and one that copies
 *   atomic.c                          atomics
 *   debug.c                           prints, asserts
 *   localise.c                        huge functions
 *   rolled.c                          loops, branches and arrays of a thread
 *   code_size.c                       how much code it will be
 *   ptx.c, ptx_join.c                 the text
 *   ptxas.c, sass.c, tool.c           assembler, disassembler
 *
 * Which thread is which: tid = lane + 32 * warp.  A place's element number is linear over the bits of (register, tid),
 * so every index computation is one run-time part (linear in tid, computed once in the entry block) combined with one
 * constant a register. */
#ifndef BLK_NVPTX_LOWER_H
#define BLK_NVPTX_LOWER_H

#include "nvptx.h"

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>

/* One LLVM value a register of the layout; a scalar is one.  Or, of a sum that nothing but products sees, registers
 * that LLVM knows nothing of: %sumS_0, .. (mma/wgmma_lower.c). */
typedef struct tile {
	LLVMValueRef *at;
	uint32_t n;
	uint32_t sum; /* S, from 1 */
} tile;

enum { LOWER_TID_BITS = 10 };

/* A linear function of the thread index: its images of the bits of tid. */
typedef struct tid_map {
	uint32_t col[LOWER_TID_BITS];
} tid_map;

typedef struct tid_value {
	tid_map map;
	LLVMValueRef value;
} tid_value;

/* Whether this thread is the one that acts for its duplicates, by the bits of tid that must be 0. */
typedef struct owner_value {
	uint32_t mask;
	LLVMValueRef value;
} owner_value;

typedef struct lower {
	arena *arena;
	pass_context *pass;
	ir_func *func;
	const nvptx_options *options;
	bool failed;
	unsigned ptx_version; /* lowest .version that the forms in use need, raised as they are used */

	LLVMContextRef context;
	LLVMModuleRef module;
	LLVMBuilderRef builder;
	LLVMDIBuilderRef debug;     /* null without line info */
	LLVMMetadataRef subprogram; /* scope of all lines */
	VEC(LLVMMetadataRef) files; /* by source_file.index */

#define TYPE(field, make) LLVMTypeRef field;
#include "support/llvm_types.def"
#undef TYPE
	LLVMTypeRef global, shared, generic;
	LLVMValueRef function, tid;
	LLVMValueRef thread,
		of_group;         /* its number among all, and in its group of rows: tid is one of them (groups.c) */
	LLVMBasicBlockRef entry;  /* ends in a branch; run-time parts of coordinates go before it */
	LLVMValueRef smem;        /* the CTA's dynamic shared memory; null until used */
	unsigned shared_align;    /* bytes that its first address is a multiple of */
	uint32_t nmaps, next_map; /* tensor maps: parameters behind the user's; those that have been lowered */
	uint32_t nsums;           /* that have registers of their own */
	LLVMValueRef warpgroup;   /* lower_warpgroup()'s answer */
	LLVMValueRef warp_of_all; /* the warp's number among all */
	enum { EVERYBODY, CONSUMERS, PRODUCER } partition; /* whose code is made; the producer is one thread */
	unsigned consumer_registers, producer_registers;   /* of a thread, behind setmaxnreg; 0: there is none */
	tile *values;                                      /* by ir_value.id */
	LLVMValueRef *partners;   /* by that of a bulk_copy's set: lower_partners, where known */
	LLVMBasicBlockRef others; /* where thread 0 meets the others again, while only its code is made (tma.c) */
	struct late_tile *late;   /* the same: tiles that lie in shared memory still */
	VEC(tid_value) tid_values;
	VEC(owner_value) owners; /* lower_owner()'s answers */
	unsigned tid_bits;
	unsigned contract, invariant, loop_kind, memory_kind, convergent_kind,
		nounwind_kind; /* LLVM's names, numbered */
} lower;

/* ---- lower.c ---- */
void lower_block(lower *, ir_block *);

/* ---- values.c ---- */
LLVMTypeRef lower_type(lower *, ir_type); /* of one element */
tile lower_new_tile(lower *, const ir_value *);
/* Which register bit steps to each bit of a tile's flattened coordinates, or 0; and the register of an element, by
 * them. */
void lower_index_registers(const layout *, uint32_t register_of[32]);
uint32_t lower_register_at(const uint32_t register_of[32], uint32_t flat);
tile lower_value(lower *, const ir_value *);
static inline tile lower_arg(lower *l, const ir_op *o, unsigned i)
{
	return lower_value(l, ir_arg(o, i));
}
void lower_set(lower *, const ir_value *, tile);
void lower_fail(lower *, const ir_op *, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

LLVMValueRef lower_const(lower *, LLVMTypeRef, int64_t);
static inline LLVMValueRef lower_i32(lower *l, int64_t v)
{
	return lower_const(l, l->i32, v);
}
LLVMValueRef lower_constant(lower *, ir_type, uint64_t bits);
LLVMValueRef lower_zero(lower *, ir_type);
/* A call of the intrinsic `name` (fully mangled), declared on first use. */
LLVMValueRef lower_intrinsic(lower *, const char *name, LLVMTypeRef result, unsigned n, LLVMValueRef *args);
enum {
	LOWER_ASM_PURE = 0,   /* may be merged, moved, dropped */
	LOWER_ASM_EFFECT = 1, /* stays in order with all memory accesses */
	LOWER_ASM_WARP = 2,   /* executed by all threads of a warp together */
};
/* The rest of the line is an instruction for the simulator; for all others it is a comment (docs/sim.md). */
#define LOWER_CHECK "//@ "
/* v, undefined to the simulator where a check of the operand fails: "divisor" it is 0, "gather" not below `extent`. */
LLVMValueRef lower_checked(
	lower *, const char *check, LLVMValueRef v, LLVMValueRef operand, bool is_signed, uint32_t extent);
LLVMValueRef lower_asm(lower *, const char *form, const char *constraints, LLVMTypeRef result, unsigned n,
	LLVMValueRef *args, unsigned flags);
LLVMValueRef lower_contract(lower *, LLVMValueRef); /* allows a * b + c to fuse */

/* The linear function of tid, an i32. */
LLVMValueRef lower_tid_map(lower *, const tid_map *);
tid_map lower_tid_columns(const layout *);               /* element number (flattened) */
tid_map lower_tid_dimension(const layout *, unsigned d); /* one coordinate */
uint32_t lower_map_bits(const tid_map *);                /* bits that the function may set */
/* value ^ constant, knowing which bits `value` may have. */
LLVMValueRef lower_combine(lower *, LLVMValueRef value, uint32_t bits, uint32_t constant);
/* The number of this thread's warpgroup, known to be the same in a warp. */
LLVMValueRef lower_warpgroup(lower *);
LLVMValueRef lower_warp(lower *); /* its warp's, as well */
/* Where the part of the thread's warp begins along a dimension of a tile, added to `first`. */
LLVMValueRef lower_warp_index(lower *, const layout *, unsigned dim, LLVMValueRef first);
/* ---- groups.c ---- */
void lower_begin_groups(lower *);                   /* from here on threads are counted in their group */
LLVMValueRef lower_scratch(lower *, const ir_op *); /* the first byte of its scratch: of this group's */
void lower_row_group(lower *, ir_op *);
/* True in the threads that own their elements (hold them without a duplicate bit set); null: all do. */
LLVMValueRef lower_owner(lower *, const layout *); /* null layout: a scalar, thread 0 */
/* What the owners of a tile's elements hold, to all threads that hold copies; `type`: of an element. */
void lower_share(lower *, const ir_op *, ir_type type, tile);
LLVMValueRef lower_and(lower *, LLVMValueRef a, LLVMValueRef b); /* either may be null: true */

/* For each register bit of a value with layout `to`, whose columns were rewritten to `wanted` in the element numbers of
 * `from`: which registers of `from` hold it.  False if other lanes do. */
typedef struct register_map {
	unsigned n;
	uint32_t col[LAYOUT_MAX_BITS];
} register_map;
bool lower_register_map(const layout *from, unsigned n, const uint32_t *wanted, register_map *);
static inline uint32_t lower_map_register(const register_map *m, uint32_t reg)
{
	uint32_t v = 0;
	for (; reg; reg &= reg - 1) v ^= m->col[__builtin_ctz(reg)];
	return v;
}
register_map lower_canonical(const layout *); /* each register to the first that holds the same element */
void lower_shape_op(lower *, ir_op *);        /* splat, expand_dims, broadcast, reshape, permute, hint */
void lower_arange(lower *, ir_op *);
void lower_const_op(lower *, ir_op *);

/* ---- arithmetic.c, convert_types.c ---- */
void lower_elementwise(lower *, ir_op *);
LLVMValueRef lower_binary(lower *, ir_kind, scalar, LLVMValueRef a, LLVMValueRef b); /* ADD MUL MAX MIN AND OR XOR */
LLVMValueRef lower_to_f32(lower *, scalar from, LLVMValueRef);                       /* f16 bf16 fp8 */
LLVMValueRef lower_from_f32(lower *, scalar to, LLVMValueRef);
void lower_convert(lower *, ir_op *);
void lower_bitcast(lower *, ir_op *);

/* ---- rescale.c ---- */
/* A product by factors that are mostly 1: fills `out`; false where it is no such product. */
bool lower_rescale(lower *, const ir_op *, const tile *args, tile out);

/* ---- memory.c ---- */
/* Several elements of one type as machine words, for one access of global or shared memory. */
typedef struct words {
	unsigned n, bits; /* 8, 16, 32 or 64 each */
	LLVMValueRef at[16];
} words;
words lower_word_shape(ir_type, unsigned n); /* how n elements travel; values not set */
words lower_pack(lower *, ir_type, unsigned n, const LLVMValueRef *elements);
void lower_unpack(lower *, ir_type, unsigned n, LLVMValueRef *elements, const words *);
LLVMTypeRef lower_word_type(lower *, unsigned bits);
/* `address` is a byte offset (i32) into the CTA's shared memory; `owner` null: every thread. */
LLVMValueRef lower_shared_address(lower *, LLVMValueRef offset); /* a pointer */
void lower_shared_store(lower *, LLVMValueRef offset, const words *, LLVMValueRef owner);
void lower_shared_load(lower *, LLVMValueRef offset, unsigned align, words *); /* n and bits are given */
void lower_barrier(lower *);                                                   /* of the CTA, or of the consumers */
void lower_warp_barrier(lower *);
LLVMValueRef lower_shuffle_word(lower *, const char *mode, LLVMValueRef v, LLVMValueRef lane_or_mask); /* values.c */
LLVMValueRef lower_shuffle(lower *, const char *mode, ir_type, LLVMValueRef, LLVMValueRef lane_or_mask);
/* Elements, in consecutive registers, that one instruction of this access covers. */
unsigned lower_access_width(lower *, const ir_op *);
/* What thread 0 has, in every thread, by the scratch of this operation (scratch.h). */
LLVMValueRef lower_broadcast_scalar(lower *, const ir_op *, ir_type, LLVMValueRef);
void lower_load(lower *, ir_op *);
void lower_store(lower *, ir_op *);

/* ---- atomic.c ---- */
void lower_atomic(lower *, ir_op *);

/* ---- reduce.c ---- */
void lower_reduce(lower *, ir_op *);
void lower_warp_any(lower *, ir_op *);
struct reduce_step;
/* Combines the operands' elements a[] and b[] of a reduce or scan; out may be either. */
void lower_combine_elements(lower *, ir_op *, LLVMValueRef *a, LLVMValueRef *b, LLVMValueRef *out);
/* A step between warps: operand i's value of register r into its slot, and all warps' values of it back. */
void lower_write_partial(lower *, ir_op *, const struct reduce_step *, unsigned i, uint32_t r, LLVMValueRef);
void lower_read_partials(lower *, ir_op *, const struct reduce_step *, unsigned i, uint32_t r, LLVMValueRef *);

/* ---- rolled.c ---- */
void lower_set_unroll(lower *, LLVMValueRef branch, int64_t n); /* 0: as LLVM likes; 1: never */

typedef struct lower_loop {
	LLVMBasicBlockRef head, after;
	LLVMValueRef i;
} lower_loop;

/* for (i = start; i `predicate` limit; ..), i of i32, and i += step; not unrolled. */
lower_loop lower_open_loop(lower *, LLVMValueRef start, LLVMIntPredicate, LLVMValueRef limit);
void lower_close_loop(lower *, const lower_loop *, int step);
/* What stands between the two is executed where `condition` holds; what the first returns is the block after. */
LLVMBasicBlockRef lower_begin_if(lower *, LLVMValueRef condition);
void lower_end_if(lower *, LLVMBasicBlockRef after);
/* A variable or an array of the thread, on 16 bytes. */
LLVMValueRef lower_local(lower *, LLVMTypeRef);

/* ---- exchange.c ---- */
/* What several exchanges of one operation share. */
typedef struct exchange {
	LLVMValueRef offset;
	uint32_t registers, bytes, buffers; /* see exchange_plan */
	LLVMValueRef buffer;                /* i32: offset of the buffer to use next, 0 or `bytes` */
} exchange;
/* False after a diagnostic.  The operation is a sort or a flip. */
bool lower_exchange_begin(lower *, const ir_op *, exchange *);
/* out[r] = in[r] of the thread whose index is this one's ^ thread_xor (i32). out may be in. */
void lower_exchange(
	lower *, exchange *, ir_type, uint32_t n, const LLVMValueRef *in, LLVMValueRef thread_xor, LLVMValueRef *out);
void lower_flip(lower *, ir_op *);

/* ---- mma/sync_lower.c ---- */
void lower_dot(lower *, ir_op *);
LLVMValueRef lower_round_tf32(lower *, LLVMValueRef f32); /* i32 */

/* ---- mma/wgmma_lower.c ---- */
void lower_wgmma(lower *, ir_op *);
/* What a loop whose k-th carried value is a sum starts it with. */
tile lower_wgmma_start(lower *, const ir_op *loop, unsigned k, tile sum);
void lower_wgmma_wait(lower *, ir_op *);
void lower_gdc_wait(lower *, ir_op *);
void lower_sched_barrier(lower *, ir_op *);
void lower_fake_use(lower *, ir_op *);
/* What this thread wrote to shared memory, also for those who read it the other way: wgmma and bulk copies. */
void lower_proxy_fence(lower *);
void lower_fence_of(lower *, ir_proxy); /* what it wrote there, or to all memory */
void lower_proxy_fence_op(lower *, ir_op *);

/* ---- scan.c, sort.c, convert_layout.c, debug.c ---- */
void lower_scan(lower *, ir_op *);
void lower_sort(lower *, ir_op *);
void lower_convert_layout(lower *, ir_op *);
void lower_print(lower *, ir_op *);
void lower_assert(lower *, ir_op *);

/* Of a conversion through shared memory, whose scratch begins at byte `base` (i32): where a register of one side lies,
 * and the loading half. */
LLVMValueRef lower_plan_offset(lower *, const layout_map *, LLVMValueRef base, unsigned element_bytes, uint32_t reg);
void lower_plan_load(lower *, const layout_plan *, LLVMValueRef base, ir_type element, tile out);
void lower_plan_store(lower *, const layout_plan *, LLVMValueRef base, ir_type element, tile in);
/* A tile into shared memory that is laid out so; by stmatrix where threads hold it in matrices. */
void lower_put(lower *, const layout *from, const layout *shared, ir_type element, LLVMValueRef base, tile in);
/* The same of the access that holds register r, if it has not been made. */
void lower_plan_load_one(lower *, const layout_plan *, LLVMValueRef base, ir_type element, uint32_t r, tile out);

/* ---- tma.c ---- */
void lower_tensor_map(lower *, ir_op *);
void lower_bulk_load(lower *, ir_op *);
void lower_bulk_store(lower *, ir_op *);
void lower_bulk_wait(lower *, ir_op *);

/* ---- tma_rows.c ---- */
void lower_store_by_rows(lower *, ir_op *);
void lower_bulk_copy(lower *, ir_op *);
void lower_mbarriers(lower *, ir_op *);
void lower_mbarriers_end(lower *, ir_op *);
void lower_mbarrier_expect(lower *, ir_op *);
void lower_mbarrier_wait(lower *, ir_op *);
void lower_mbarrier_arrive(lower *, ir_op *);
void lower_scalars(lower *, ir_op *);
void lower_scalar_send(lower *, ir_op *);
void lower_scalar_receive(lower *, ir_op *);
void lower_cluster_arrive(lower *, ir_op *);
void lower_cluster_size(lower *, ir_op *);
LLVMValueRef lower_partners(lower *, const ir_op *bulk_copy); /* of the programs that bring the block: tma.c */

/* ---- partitions.c ---- */
void lower_partitions(lower *, ir_op *);
void lower_turn_wait(lower *, ir_op *);
void lower_turn_pass(lower *, ir_op *);

/* ---- multibuffer.c ---- */
void lower_async_copy(lower *, ir_op *);
void lower_async_commit(lower *, ir_op *);
void lower_async_wait(lower *, ir_op *);
void lower_multibuffer_read(lower *, ir_op *);
void lower_permute(lower *, ir_op *);
/* A tile that its only user, a dot, loads piece by piece: where it lies.  Null plan: it is in registers. */
typedef struct late_tile {
	const layout_plan *plan;
	LLVMValueRef base;
} late_tile;
late_tile lower_late(const lower *, const ir_value *);

/* ---- shapes.c, inline_asm.c ---- */
void lower_join(lower *, ir_op *);
void lower_split(lower *, ir_op *);
void lower_gather(lower *, ir_op *);
void lower_histogram(lower *, ir_op *);
void lower_inline_asm(lower *, ir_op *);

/* ---- localise.c ---- */
/* After LLVM's passes: operands of inline asm become local to where they are used, in functions of huge size. */
struct LLVMOpaqueTargetData;
void lower_localise(lower *, struct LLVMOpaqueTargetData *);

/* ---- ptx.c, ptxas.c, sass.c ---- */
/* The source file of that name (not NUL-terminated) in which an operation of this function stands, or null. */
const source_file *lower_find_source(const ir_func *, const char *name, size_t n);
/* "// softmax.blk:12  let e = ..", if there is text in that line. */
void lower_put_source(text *, const source_file *, unsigned long line);
/* The text that LLVM printed, with a head of ours and, after each .loc of a new line, the source line as a comment; and
 * where lines begin. */
void ptx_finish(lower *, const char *in, size_t n, text *out, line_marks *);
/* Runs the assembler on out->ptx; fills cubin, registers, spills, log.  False after a diagnostic. */
bool ptxas_find(tool *, const nvptx_options *); /* fills program */
bool ptxas_run(pass_context *, const ir_func *, const nvptx_options *, nvptx_output *);
/* Disassembles out->cubin.  False after a diagnostic; for a page a reason is left where there is none. */
bool sass_run(pass_context *, const ir_func *, const nvptx_options *, nvptx_output *);

#endif
