/* Atomics: `atom` where the old value is wanted, `red` where it is not.
 *
 * In: pointer, value and mask registers.  Out: one instruction for each element, in the one thread that owns it; the
 * old values in every thread that holds a copy.
 * The one idea: an element acts exactly once, so threads that hold duplicates wait for the owner's result: a scalar's
 * comes from thread 0 as a scalar load's does, a tile's by shuffle where lanes repeat it and through shared memory
 * where warps do.  In a spin lock, then, one thread acts and the others wait at a barrier; nobody diverges.
 *
 * All operands travel as bits.  What the hardware lacks:
 *   8- and 16-bit and, or, xor    on the aligned word around them, with bits that change nothing elsewhere; a line for
 *                                 the simulator says which element it is
 *   bf16 add below sm_90          a compare-and-swap loop
 *   float max, min                order of floats is that of signed integers where v >= 0, and the reverse of unsigned
 *                                 ones where v < 0, so the integer instruction does it (-0 < +0 included).  A nan as v
 *                                 becomes a number that changes nothing.  A nan in memory that the instruction cannot
 *                                 replace, because it counts as larger (max) or smaller (min) than all numbers, is
 *                                 replaced by a compare-and-swap loop afterwards: nothing had happened until then.
 *
 * Order: .sem stands on the instruction of the thread that acts; where a thread acts more than once, one fence before
 * all (release) and one behind them (acquire) do the same for less.  The barriers that make it hold for the accesses of
 * all threads come from the barrier pass.  red has no acquire form, so an acquiring one is an atom. */
#include "lower.h"

#include "async/scratch.h"

#include <assert.h>
#include <string.h>

enum { COMPARE_AND_SWAP = IR_ATOMIC_XCHG + 1 };

typedef struct atomic {
	ir_op *op;
	scalar type;
	int kind; /* IR_ATOMIC_ADD .. or COMPARE_AND_SWAP */
	bool used;
	const char *order, *scope;
	bool reduces;          /* may be a red */
	unsigned width;        /* elements of one instruction */
	bool release, acquire; /* by fences; the order is relaxed then */
} atomic;

/* One element. */
typedef struct element {
	LLVMValueRef address, compare, value, predicate; /* compare, predicate: may be null */
} element;

static atomic describe(lower *l, ir_op *o)
{
	assert(o->kind == IR_ATOMIC_RMW || o->kind == IR_ATOMIC_CAS);
	bool rmw = o->kind == IR_ATOMIC_RMW;
	ir_sem order = ir_get_sem(o);
	atomic a = {.op = o, .type = ir_arg(o, 0)->type.elem};
	a.order = ir_sem_names[order];
	a.scope = ir_scope_names[ir_get_scope(o)];
	a.kind = rmw ? (int)ir_get_rmw(o) : COMPARE_AND_SWAP;
	a.used = ir_result(o)->uses != NULL;
	a.reduces = !a.used && (order == IR_RELAXED || order == IR_RELEASE) && a.kind < IR_ATOMIC_XCHG;
	a.width = lower_access_width(l, o);
	const layout *y = ir_arg(o, 0)->layout;
	if (!y || layout_registers(y) == a.width) return a;
	a.release = order == IR_RELEASE || order == IR_ACQ_REL;
	a.acquire = order == IR_ACQUIRE || order == IR_ACQ_REL;
	a.order = ir_sem_names[IR_RELAXED];
	return a;
}

/* ---- one instruction ---- */

/* "@$4 atom.acq_rel.gpu.global.cas.b32 $0, [$1], $2, $3;" on integers of one width; where the predicate is false the
 * result is `otherwise` (null: 0).  Null result: a red.  `part`: null, or the address of the element that is all it
 * acts on, which the simulator is told of. */
static LLVMValueRef instruction(lower *l, const atomic *a, bool reduces, const char *operation, LLVMValueRef address,
	unsigned n, const LLVMValueRef *operand, LLVMValueRef predicate, LLVMValueRef otherwise, LLVMValueRef part)
{
	assert(n && n <= 2);
	LLVMTypeRef type = LLVMTypeOf(operand[0]);
	unsigned bits = LLVMGetIntTypeWidth(type), at = reduces ? 0 : 1, count = 0;
	char letter = bits == 64 ? 'l' : bits == 32 ? 'r' : 'h';
	text code = {.arena = l->arena}, constraints = {.arena = l->arena};
	LLVMValueRef args[8];
	if (part)
		text_printf(&code, LOWER_CHECK "check.part.b%u $%u;\n\t", scalar_bits(a->type),
			at + 1 + n + (predicate ? (reduces ? 1 : 2) : 0));
	if (predicate) text_printf(&code, "@$%u ", at + 1 + n);
	text_printf(&code, "%s.%s.%s.global.%s ", reduces ? "red" : "atom", a->order, a->scope, operation);
	if (!reduces) {
		text_puts(&code, "$0, ");
		text_printf(&constraints, "=%c,", letter);
	}
	text_printf(&code, "[$%u]", at);
	text_puts(&constraints, "l");
	args[count++] = address;
	for (unsigned i = 0; i < n; i++) {
		text_printf(&code, ", $%u", at + 1 + i);
		text_printf(&constraints, ",%c", letter);
		args[count++] = operand[i];
	}
	text_puts(&code, ";");
	if (predicate) {
		text_puts(&constraints, ",b");
		args[count++] = predicate;
	}
	if (predicate && !reduces) {
		text_puts(&constraints, ",0");
		args[count++] = otherwise ? otherwise : LLVMConstNull(type);
	}
	if (part) {
		text_puts(&constraints, ",l");
		args[count++] = part;
	}
	LLVMTypeRef result = reduces ? l->none : type;
	LLVMValueRef made = lower_asm(l, code.at, constraints.at, result, count, args, LOWER_ASM_EFFECT);
	return reduces ? NULL : made;
}

static LLVMValueRef to_bits(lower *l, scalar s, LLVMValueRef v)
{
	return lower_pack(l, ir_scalar_type(s), 1, &v).at[0];
}

static LLVMValueRef from_bits(lower *l, scalar s, LLVMValueRef bits)
{
	words w = lower_word_shape(ir_scalar_type(s), 1);
	LLVMValueRef v;
	w.at[0] = bits;
	lower_unpack(l, ir_scalar_type(s), 1, &v, &w);
	return v;
}

/* ---- compare and swap until nobody comes between ---- */

static LLVMValueRef swapped(lower *l, const atomic *a, LLVMValueRef address, LLVMValueRef old, LLVMValueRef value)
{
	ir_kind how = a->kind == IR_ATOMIC_ADD ? IR_ADD : a->kind == IR_ATOMIC_MAX ? IR_MAX : IR_MIN;
	LLVMValueRef new = lower_binary(l, how, a->type, from_bits(l, a->type, old), value);
	LLVMValueRef operand[] = {old, to_bits(l, a->type, new)};
	const char *operation = arena_printf(l->arena, "cas.b%u", scalar_bits(a->type));
	return instruction(l, a, false, operation, address, 2, operand, NULL, NULL, NULL);
}

static LLVMValueRef look(lower *l, const atomic *a, LLVMValueRef address)
{
	unsigned bits = scalar_bits(a->type);
	const char *code = arena_printf(l->arena, "ld.relaxed.%s.global.b%u $0, [$1];", a->scope, bits);
	const char *constraints = bits == 64 ? "=l,l" : bits == 32 ? "=r,l" : "=h,l";
	return lower_asm(l, code, constraints, lower_word_type(l, bits), 1, &address, LOWER_ASM_EFFECT);
}

/* Where the predicate (not null) holds: the loop, from the value `first` if that is known already.  The old value, as
 * bits; elsewhere `first` or 0. */
static LLVMValueRef swap_loop(lower *l, const atomic *a, const element *e, LLVMValueRef predicate, LLVMValueRef first)
{
	LLVMBuilderRef b = l->builder;
	LLVMTypeRef type = lower_word_type(l, scalar_bits(a->type));
	LLVMBasicBlockRef from = LLVMGetInsertBlock(b), enter, loop, done;
	enter = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	loop = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	done = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	LLVMValueRef otherwise = first ? first : LLVMConstNull(type);
	LLVMBuildCondBr(b, predicate, enter, done);
	LLVMPositionBuilderAtEnd(b, enter);
	if (!first) first = look(l, a, e->address);
	LLVMBuildBr(b, loop);
	LLVMPositionBuilderAtEnd(b, loop);
	LLVMValueRef old = LLVMBuildPhi(b, type, "");
	LLVMValueRef seen = swapped(l, a, e->address, old, e->value);
	LLVMBasicBlockRef end = LLVMGetInsertBlock(b);
	LLVMAddIncoming(old, &first, &enter, 1);
	LLVMAddIncoming(old, &seen, &end, 1);
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, seen, old, ""), done, loop);
	LLVMPositionBuilderAtEnd(b, done);
	LLVMValueRef result = LLVMBuildPhi(b, type, "");
	LLVMAddIncoming(result, &otherwise, &from, 1);
	LLVMAddIncoming(result, &seen, &end, 1);
	return result;
}

/* ---- the ways to do one element; all return the old value's bits, null where nobody wants them ---- */

/* Floats by integer instructions, see above. */
static LLVMValueRef float_extreme(lower *l, const atomic *a, const element *e)
{
	assert(scalar_is_float(a->type));
	LLVMBuilderRef b = l->builder;
	unsigned width = scalar_bits(a->type);
	bool max = a->kind == IR_ATOMIC_MAX;
	LLVMTypeRef type = lower_word_type(l, width);
	uint64_t sign = UINT64_C(1) << (width - 1);
	uint64_t infinity = width == 64 ? UINT64_C(0x7ff0000000000000) : UINT64_C(0x7f800000);
	LLVMValueRef bits = to_bits(l, a->type, e->value), zero = LLVMConstNull(type);
	LLVMValueRef is_nan = LLVMBuildFCmp(b, LLVMRealUNO, e->value, e->value, "");
	LLVMValueRef idle = LLVMConstInt(type, max ? sign : sign - 1, false);
	LLVMValueRef operand = LLVMBuildSelect(b, is_nan, idle, bits, "");
	LLVMValueRef is_number = LLVMBuildNot(b, is_nan, "");
	LLVMValueRef negative = LLVMBuildAnd(b, is_number, LLVMBuildICmp(b, LLVMIntSLT, bits, zero, ""), "");
	LLVMValueRef as_signed = lower_and(l, e->predicate, LLVMBuildNot(b, negative, ""));
	LLVMValueRef as_unsigned = lower_and(l, e->predicate, negative);
	const char *first = arena_printf(l->arena, "%s.s%u", max ? "max" : "min", width);
	const char *second = arena_printf(l->arena, "%s.u%u", max ? "min" : "max", width);
	LLVMValueRef old = instruction(l, a, false, first, e->address, 1, &operand, as_signed, NULL, NULL);
	old = instruction(l, a, false, second, e->address, 1, &operand, as_unsigned, old, NULL);
	LLVMValueRef limit = LLVMConstInt(type, max ? infinity : infinity | sign, false);
	LLVMValueRef stuck = LLVMBuildICmp(b, max ? LLVMIntSGT : LLVMIntUGT, old, limit, "");
	stuck = lower_and(l, e->predicate, LLVMBuildAnd(b, is_number, stuck, ""));
	return swap_loop(l, a, e, stuck, old);
}

/* and, or, xor of 8 or 16 bits on the word around them. */
static LLVMValueRef narrow_bits(lower *l, const atomic *a, const element *e)
{
	assert(scalar_bits(a->type) < 32);
	static const char *const names[] = {
		[IR_ATOMIC_AND] = "and.b32", [IR_ATOMIC_OR] = "or.b32", [IR_ATOMIC_XOR] = "xor.b32"};
	LLVMBuilderRef b = l->builder;
	LLVMTypeRef narrow = lower_word_type(l, scalar_bits(a->type));
	LLVMValueRef own = LLVMBuildPtrToInt(b, e->address, l->i64, "");
	LLVMValueRef byte = LLVMBuildTrunc(b, own, l->i32, "");
	LLVMValueRef shift = LLVMBuildShl(b, LLVMBuildAnd(b, byte, lower_i32(l, 3), ""), lower_i32(l, 3), "");
	LLVMValueRef address = LLVMBuildAnd(b, own, lower_const(l, l->i64, -4), "");
	LLVMValueRef v = LLVMBuildZExt(b, to_bits(l, a->type, e->value), l->i32, "");
	v = LLVMBuildShl(b, v, shift, "");
	if (a->kind == IR_ATOMIC_AND) {
		LLVMValueRef mine = lower_i32(l, (INT64_C(1) << scalar_bits(a->type)) - 1);
		v = LLVMBuildOr(b, v, LLVMBuildNot(b, LLVMBuildShl(b, mine, shift, ""), ""), "");
	}
	LLVMValueRef old = instruction(l, a, a->reduces, names[a->kind], address, 1, &v, e->predicate, NULL, own);
	return old ? LLVMBuildTrunc(b, LLVMBuildLShr(b, old, shift, ""), narrow, "") : NULL;
}

/* Neighbours in memory at once; each still acts by itself. */
static void vector_add(lower *l, const atomic *a, const LLVMValueRef *v, const element *e)
{
	assert(a->width > 1);
	words w = lower_pack(l, ir_scalar_type(a->type), a->width, v);
	text code = {.arena = l->arena}, constraints = {.arena = l->arena};
	LLVMValueRef args[8];
	unsigned count = 0;
	const char *packed = a->type == SCALAR_F32 ? "f32" : a->type == SCALAR_F16 ? "f16x2" : "bf16x2";
	if (e->predicate) text_printf(&code, "@$%u ", 1 + w.n);
	text_printf(&code, "red.%s.%s.global.add%s", a->order, a->scope, a->type == SCALAR_F32 ? "" : ".noftz");
	if (w.n > 1) text_printf(&code, ".v%u", w.n);
	text_printf(&code, ".%s [$0], %s", packed, w.n > 1 ? "{" : "");
	text_puts(&constraints, "l");
	args[count++] = e->address;
	for (unsigned i = 0; i < w.n; i++) {
		text_printf(&code, "%s$%u", i ? ", " : "", 1 + i);
		text_puts(&constraints, ",r");
		args[count++] = w.at[i];
	}
	text_puts(&code, w.n > 1 ? "};" : ";");
	if (e->predicate) {
		text_puts(&constraints, ",b");
		args[count++] = e->predicate;
	}
	unsigned version = w.n > 1 ? 81 : a->type == SCALAR_BF16 ? 78 : 63;
	if (l->ptx_version < version) l->ptx_version = version;
	lower_asm(l, code.at, constraints.at, l->none, count, args, LOWER_ASM_EFFECT);
}

static const char *operation_name(lower *l, const atomic *a)
{
	static const char *const names[] = {"add", "max", "min", "and", "or", "xor", "exch", "cas"};
	unsigned bits = scalar_bits(a->type);
	char letter = 'b';
	if (a->kind == IR_ATOMIC_ADD && scalar_is_float(a->type)) {
		if (bits == 16) return a->type == SCALAR_F16 ? "add.noftz.f16" : "add.noftz.bf16";
		letter = 'f';
	} else if (a->kind == IR_ATOMIC_ADD)
		letter = bits == 64 ? 'u' : scalar_is_signed(a->type) ? 's' : 'u'; /* there is no add.s64 */
	else if (a->kind == IR_ATOMIC_MAX || a->kind == IR_ATOMIC_MIN)
		letter = scalar_is_signed(a->type) ? 's' : 'u';
	return arena_printf(l->arena, "%s.%c%u", names[a->kind], letter, bits);
}

static LLVMValueRef act(lower *l, const atomic *a, const element *e)
{
	bool is_float = scalar_is_float(a->type);
	if (is_float && (a->kind == IR_ATOMIC_MAX || a->kind == IR_ATOMIC_MIN)) return float_extreme(l, a, e);
	if (!is_float && scalar_bytes(a->type) < 4) return narrow_bits(l, a, e);
	if (a->type == SCALAR_BF16 && !target_can(l->pass->target, TARGET_ATOMIC_BF16)) {
		LLVMValueRef always = LLVMConstInt(l->i1, 1, false);
		return swap_loop(l, a, e, e->predicate ? e->predicate : always, NULL);
	}
	if (a->type == SCALAR_BF16 && l->ptx_version < 78) l->ptx_version = 78;
	LLVMValueRef operand[2];
	unsigned n = 0;
	if (e->compare) operand[n++] = to_bits(l, a->type, e->compare);
	operand[n++] = to_bits(l, a->type, e->value);
	return instruction(l, a, a->reduces, operation_name(l, a), e->address, n, operand, e->predicate, NULL, NULL);
}

static void fence(lower *l, const atomic *a)
{
	const char *code = arena_printf(l->arena, "fence.acq_rel.%s;", a->scope);
	lower_asm(l, code, "", l->none, 0, NULL, LOWER_ASM_EFFECT);
}

void lower_atomic(lower *l, ir_op *o)
{
	atomic a = describe(l, o);
	const layout *y = ir_arg(o, 0)->layout; /* null: a scalar */
	bool swaps = a.kind == COMPARE_AND_SWAP;
	unsigned value_at = swaps ? 2 : 1;
	tile p = lower_arg(l, o, 0), compare = {0}, v = lower_arg(l, o, value_at), mask = {0};
	tile old = lower_new_tile(l, ir_result(o));
	if (swaps) compare = lower_arg(l, o, 1);
	if (o->nargs > value_at + 1) mask = lower_arg(l, o, value_at + 1);
	uint32_t duplicates = y ? layout_free_mask(y, LAYOUT_REG) : 0;
	bool producers = ir_get_partition(o) == IR_PARTITION_PRODUCER; /* of one thread, which sends what it returns */
	LLVMValueRef owner = producers ? NULL : lower_owner(l, y);
	for (uint32_t r = 0; r < p.n; r++) old.at[r] = lower_zero(l, ir_scalar_type(a.type));
	if (a.release) fence(l, &a);
	for (uint32_t r = 0; r < p.n && !l->failed; r += a.width) {
		if (r & duplicates) continue;
		element e = {.address = p.at[r], .value = v.at[r], .compare = swaps ? compare.at[r] : NULL};
		e.predicate = lower_and(l, owner, mask.at ? mask.at[r] : NULL);
		LLVMValueRef bits = NULL;
		if (a.width > 1)
			vector_add(l, &a, &v.at[r], &e);
		else
			bits = act(l, &a, &e);
		if (bits) old.at[r] = from_bits(l, a.type, bits);
	}
	if (a.acquire) fence(l, &a);
	if (a.used && y) lower_share(l, o, ir_scalar_type(a.type), old);
	if (a.used && !y && !producers) old.at[0] = lower_broadcast_scalar(l, o, ir_scalar_type(a.type), old.at[0]);
	lower_set(l, ir_result(o), old);
}
