/* Tiles as registers: types, constants, coordinates, the operations that only rename registers.
 *
 * In: IR values with layouts.  Out: LLVM values, one a register.
 * The one idea: everything about *where* an element is, is linear over F2.  An element number is the XOR of a constant
 * (the register's) and a linear function of tid; the latter is made of a few shifted and masked runs of tid's bits,
 * emitted once in the entry block.  Shape operations move no data: they rename registers, and the renaming is linear
 * too. */
#include "lower.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void lower_fail(lower *l, const ir_op *o, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const char *message = arena_vprintf(l->arena, fmt, ap);
	va_end(ap);
	if (!l->failed) diag_error(l->pass->diags, 810, o ? o->at : l->func->at, "code generation: %s", message);
	l->failed = true;
}

LLVMTypeRef lower_type(lower *l, ir_type t)
{
	if (t.pointer) return l->global;
	switch ((scalar)t.elem) {
	case SCALAR_BOOL: return l->i1;
	case SCALAR_I8:
	case SCALAR_U8:
	case SCALAR_F8E4M3:
	case SCALAR_F8E5M2: return l->i8;
	case SCALAR_I16:
	case SCALAR_U16: return l->i16;
	case SCALAR_I32:
	case SCALAR_U32: return l->i32;
	case SCALAR_I64:
	case SCALAR_U64: return l->i64;
	case SCALAR_F16: return l->f16;
	case SCALAR_BF16: return l->bf16;
	case SCALAR_F32: return l->f32;
	case SCALAR_F64: return l->f64;
	case SCALAR_COUNT: break;
	}
	return l->i32;
}

tile lower_new_tile(lower *l, const ir_value *v)
{
	uint32_t n = v->layout ? layout_registers(v->layout) : 1;
	return (tile){ARENA_ARRAY(l->arena, LLVMValueRef, n), n};
}

/* A value that nothing has set is an error of an earlier pass; poison keeps the walk going until it is reported. */
tile lower_value(lower *l, const ir_value *v)
{
	tile *t = &l->values[v->id];
	if (v->type.rank && !v->layout) lower_fail(l, v->def, "a tile without a layout");
	if (!t->at) {
		lower_fail(l, v->def, "a value is used before it is computed");
		*t = lower_new_tile(l, v);
		for (uint32_t i = 0; i < t->n; i++) t->at[i] = LLVMGetPoison(lower_type(l, v->type));
	}
	return *t;
}

void lower_set(lower *l, const ir_value *v, tile t)
{
	uint32_t n = v->layout ? layout_registers(v->layout) : 1;
	if (t.n != n)
		lower_fail(l, v->def, "%u registers where the layout has %u", t.n, n);
	else
		l->values[v->id] = t;
}

LLVMValueRef lower_const(lower *l, LLVMTypeRef type, int64_t v)
{
	(void)l;
	return LLVMConstInt(type, (uint64_t)v, true);
}

LLVMValueRef lower_constant(lower *l, ir_type t, uint64_t bits)
{
	LLVMTypeRef type = lower_type(l, t);
	if (t.pointer) return LLVMConstIntToPtr(LLVMConstInt(l->i64, bits, false), type);
	switch ((scalar)t.elem) {
	case SCALAR_F16:
	case SCALAR_BF16: return LLVMConstBitCast(LLVMConstInt(l->i16, bits & 0xffff, false), type);
	case SCALAR_F32: return LLVMConstBitCast(LLVMConstInt(l->i32, bits & 0xffffffff, false), type);
	case SCALAR_F64: return LLVMConstBitCast(LLVMConstInt(l->i64, bits, false), type);
	default: return LLVMConstInt(type, scalar_truncate(t.elem, bits), false);
	}
}

LLVMValueRef lower_zero(lower *l, ir_type t)
{
	return LLVMConstNull(lower_type(l, t));
}

static LLVMValueRef call(lower *l, LLVMTypeRef type, LLVMValueRef callee, unsigned n, LLVMValueRef *args)
{
	return LLVMBuildCall2(l->builder, type, callee, args, n, "");
}

static void type_of_each(unsigned n, LLVMValueRef *args, LLVMTypeRef *types)
{
	for (unsigned i = 0; i < n; i++) types[i] = LLVMTypeOf(args[i]);
}

LLVMValueRef lower_intrinsic(lower *l, const char *name, LLVMTypeRef result, unsigned n, LLVMValueRef *args)
{
	assert(n <= 8);
	LLVMTypeRef types[8];
	type_of_each(n, args, types);
	LLVMTypeRef type = LLVMFunctionType(result, types, n, false);
	LLVMValueRef f = LLVMGetNamedFunction(l->module, name);
	if (!f) f = LLVMAddFunction(l->module, name, type);
	return call(l, type, f, n, args);
}

static void mark(lower *l, LLVMValueRef call_site, unsigned kind)
{
	LLVMAddCallSiteAttribute(call_site, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(l->context, kind, 0));
}

LLVMValueRef lower_asm(lower *l, const char *form, const char *constraints, LLVMTypeRef result, unsigned n,
	LLVMValueRef *args, unsigned flags)
{
	assert(flags <= LOWER_ASM_EFFECT + LOWER_ASM_WARP);
	LLVMTypeRef *types = ARENA_ARRAY(l->arena, LLVMTypeRef, n + 1);
	type_of_each(n, args, types);
	LLVMTypeRef type = LLVMFunctionType(result, types, n, false);
	bool effect = flags & LOWER_ASM_EFFECT;
	if (effect) constraints = arena_printf(l->arena, "%s%s~{memory}", constraints, *constraints ? "," : "");
	LLVMValueRef code = LLVMGetInlineAsm(type, form, strlen(form), constraints, strlen(constraints), effect, false,
		LLVMInlineAsmDialectATT, false);
	LLVMValueRef made = call(l, type, code, n, args);
	mark(l, made, l->nounwind_kind);
	if (!effect) mark(l, made, l->memory_kind); /* memory(none) */
	if (flags & LOWER_ASM_WARP) mark(l, made, l->convergent_kind);
	return made;
}

static LLVMValueRef at_least_16(lower *l, LLVMValueRef v)
{
	return LLVMGetIntTypeWidth(LLVMTypeOf(v)) < 16 ? LLVMBuildZExt(l->builder, v, l->i16, "") : v;
}

LLVMValueRef lower_checked(
	lower *l, const char *check, LLVMValueRef v, LLVMValueRef operand, bool is_signed, uint32_t extent)
{
	assert(v && operand);
	if (!l->options->checks || LLVMIsConstant(operand)) return v;
	LLVMTypeRef type = LLVMTypeOf(v);
	LLVMValueRef args[2] = {at_least_16(l, v), at_least_16(l, operand)};
	unsigned bits = LLVMGetIntTypeWidth(LLVMTypeOf(args[0])), wide = LLVMGetIntTypeWidth(LLVMTypeOf(args[1]));
	char letter = bits == 64 ? 'l' : bits == 32 ? 'r' : 'h', other = wide == 64 ? 'l' : wide == 32 ? 'r' : 'h';
	text code = {.arena = l->arena};
	text_printf(&code, LOWER_CHECK "check.%s.b%u.%c%u $0, $2", check, bits, is_signed ? 's' : 'u', wide);
	if (extent) text_printf(&code, ", %u", extent);
	text_puts(&code, ";");
	const char *constraints = arena_printf(l->arena, "=%c,0,%c", letter, other);
	v = lower_asm(l, code.at, constraints, LLVMTypeOf(args[0]), 2, args, LOWER_ASM_PURE);
	return type == LLVMTypeOf(v) ? v : LLVMBuildTrunc(l->builder, v, type, "");
}

LLVMValueRef lower_contract(lower *l, LLVMValueRef v)
{
	(void)l;
	if (LLVMIsAInstruction(v) && LLVMCanValueUseFastMathFlags(v))
		LLVMSetFastMathFlags(v, LLVMFastMathAllowContract);
	return v;
}

LLVMValueRef lower_and(lower *l, LLVMValueRef a, LLVMValueRef b)
{
	if (!a) return b;
	if (!b) return a;
	return LLVMBuildAnd(l->builder, a, b, "");
}

/* ---- coordinates ---- */

tid_map lower_tid_columns(const layout *y)
{
	assert(y->nin[LAYOUT_LANE] <= 5 && 5u + y->nin[LAYOUT_WARP] <= LOWER_TID_BITS);
	tid_map m = {0};
	for (unsigned i = 0; i < y->nin[LAYOUT_LANE] && i < 5; i++) m.col[i] = y->col[LAYOUT_LANE][i];
	for (unsigned i = 0; i < y->nin[LAYOUT_WARP] && i < LOWER_TID_BITS - 5; i++)
		m.col[5 + i] = y->col[LAYOUT_WARP][i];
	return m;
}

tid_map lower_tid_dimension(const layout *y, unsigned d)
{
	assert(d < y->rank);
	tid_map m = lower_tid_columns(y);
	for (unsigned i = 0; i < LOWER_TID_BITS; i++) m.col[i] = layout_coordinate(y, m.col[i], d);
	return m;
}

uint32_t lower_map_bits(const tid_map *m)
{
	uint32_t bits = 0;
	for (unsigned i = 0; i < LOWER_TID_BITS; i++) bits |= m->col[i];
	return bits;
}

LLVMValueRef lower_combine(lower *l, LLVMValueRef value, uint32_t bits, uint32_t constant)
{
	if (!bits) return lower_i32(l, (int32_t)constant);
	if (constant & bits) value = LLVMBuildXor(l->builder, value, lower_i32(l, (int32_t)(constant & bits)), "");
	constant &= ~bits;
	if (!constant) return value;
	value = LLVMBuildOr(l->builder, value, lower_i32(l, (int32_t)constant), "");
	if (LLVMIsAInstruction(value)) LLVMSetIsDisjoint(value, true);
	return value;
}

/* Bits [first, first + n) of tid, moved to bit `to`. */
static LLVMValueRef tid_run(lower *l, unsigned first, unsigned n, unsigned to)
{
	assert(n && first + n <= LOWER_TID_BITS && to + n <= 32);
	LLVMValueRef v = l->tid;
	uint32_t mask = ((UINT32_C(1) << n) - 1) << first;
	if (mask != (UINT32_C(1) << l->tid_bits) - 1) v = LLVMBuildAnd(l->builder, v, lower_i32(l, mask), "");
	if (to > first) {
		v = LLVMBuildShl(l->builder, v, lower_i32(l, to - first), "");
		if (LLVMIsAInstruction(v)) LLVMSetNUW(v, true), LLVMSetNSW(v, true);
	}
	if (to < first) v = LLVMBuildLShr(l->builder, v, lower_i32(l, first - to), "");
	return v;
}

static LLVMValueRef emit_map(lower *l, const tid_map *m)
{
	LLVMValueRef sum = NULL;
	uint32_t bits = 0;
	for (unsigned i = 0; i < l->tid_bits; i++) {
		uint32_t c = m->col[i], all = c;
		if (!c) continue;
		LLVMValueRef piece;
		if (c & (c - 1)) { /* a swizzle: one bit of tid moves several coordinate bits */
			piece = LLVMBuildAnd(l->builder, LLVMBuildLShr(l->builder, l->tid, lower_i32(l, i), ""),
				lower_i32(l, 1), "");
			piece = LLVMBuildMul(l->builder, piece, lower_i32(l, (int32_t)c), "");
		} else {
			unsigned n = 1;
			while (i + n < l->tid_bits && m->col[i + n] == c << n) all |= c << n, n++;
			piece = tid_run(l, i, n, (unsigned)__builtin_ctz(c));
			i += n - 1;
		}
		if (!sum)
			sum = piece;
		else if (all & bits)
			sum = LLVMBuildXor(l->builder, sum, piece, "");
		else {
			sum = LLVMBuildOr(l->builder, sum, piece, "");
			if (LLVMIsAInstruction(sum)) LLVMSetIsDisjoint(sum, true);
		}
		bits |= all;
	}
	return sum ? sum : lower_i32(l, 0);
}

/* Leaves the builder's place and source line as they were. */
typedef struct saved_place {
	LLVMBasicBlockRef block;
	LLVMMetadataRef line;
} saved_place;

static saved_place go_to_entry(lower *l)
{
	saved_place s = {LLVMGetInsertBlock(l->builder), LLVMGetCurrentDebugLocation2(l->builder)};
	LLVMPositionBuilderBefore(l->builder, LLVMGetBasicBlockTerminator(l->entry));
	LLVMSetCurrentDebugLocation2(l->builder, NULL);
	return s;
}

static void go_back(lower *l, saved_place s)
{
	LLVMPositionBuilderAtEnd(l->builder, s.block);
	LLVMSetCurrentDebugLocation2(l->builder, s.line);
}

LLVMValueRef lower_shuffle_word(lower *l, const char *mode, LLVMValueRef v, LLVMValueRef lane)
{
	LLVMValueRef args[4] = {lower_i32(l, -1), v, lane, lower_i32(l, 31)};
	return lower_intrinsic(l, arena_printf(l->arena, "llvm.nvvm.shfl.sync.%s.i32", mode), l->i32, 4, args);
}

/* tid's bits from `first` on, by way of lane 0. */
static LLVMValueRef uniform(lower *l, unsigned first, LLVMValueRef *known)
{
	assert(first < LOWER_TID_BITS);
	if (*known) return *known;
	saved_place s = go_to_entry(l);
	LLVMValueRef number = LLVMBuildLShr(l->builder, l->thread, lower_i32(l, first), "");
	*known = lower_shuffle_word(l, "idx", number, lower_i32(l, 0));
	go_back(l, s);
	return *known;
}

LLVMValueRef lower_warpgroup(lower *l)
{
	return uniform(l, 7, &l->warpgroup);
}

LLVMValueRef lower_warp(lower *l)
{
	LLVMValueRef warp = uniform(l, 5, &l->warp_of_all);
	if (l->tid == l->thread) return warp;
	return LLVMBuildAnd(l->builder, warp, lower_i32(l, l->func->num_warps - 1), "");
}

LLVMValueRef lower_warp_index(lower *l, const layout *y, unsigned dim, LLVMValueRef first)
{
	assert(dim < y->rank);
	for (unsigned i = 0, n; i < y->nin[LAYOUT_WARP]; i += n) { /* runs of bits */
		uint32_t at = layout_coordinate(y, y->col[LAYOUT_WARP][i], dim);
		for (n = 1; at && i + n < y->nin[LAYOUT_WARP] &&
			    layout_coordinate(y, y->col[LAYOUT_WARP][i + n], dim) == at << n;)
			n++;
		if (!at) continue;
		LLVMValueRef v = LLVMBuildLShr(l->builder, lower_warp(l), lower_i32(l, i), "");
		v = LLVMBuildAnd(l->builder, v, lower_i32(l, (1 << n) - 1), "");
		v = LLVMBuildMul(l->builder, v, lower_i32(l, at), "");
		first = LLVMBuildAdd(l->builder, first, v, "");
	}
	return first;
}

LLVMValueRef lower_tid_map(lower *l, const tid_map *m)
{
	for (uint32_t i = 0; i < l->tid_values.n; i++)
		if (memcmp(&l->tid_values.at[i].map, m, sizeof *m) == 0) return l->tid_values.at[i].value;
	saved_place s = go_to_entry(l);
	LLVMValueRef v = emit_map(l, m);
	go_back(l, s);
	vec_push(l->arena, &l->tid_values, ((tid_value){*m, v}));
	return v;
}

LLVMValueRef lower_owner(lower *l, const layout *y)
{
	uint32_t mask = (UINT32_C(1) << l->tid_bits) - 1;
	if (y) mask = layout_free_mask(y, LAYOUT_LANE) | layout_free_mask(y, LAYOUT_WARP) << 5;
	if (!mask) return NULL;
	/* One comparison a mask: LLVM looks through all users of tid for each of them. */
	for (uint32_t i = 0; i < l->owners.n; i++)
		if (l->owners.at[i].mask == mask) return l->owners.at[i].value;
	saved_place s = go_to_entry(l);
	LLVMValueRef bits = LLVMBuildAnd(l->builder, l->tid, lower_i32(l, mask), "");
	LLVMValueRef owner = LLVMBuildICmp(l->builder, LLVMIntEQ, bits, lower_i32(l, 0), "");
	go_back(l, s);
	vec_push(l->arena, &l->owners, ((owner_value){mask, owner}));
	return owner;
}

/* ---- renaming registers ---- */

bool lower_register_map(const layout *from, unsigned n, const uint32_t *wanted, register_map *out)
{
	assert(n <= LAYOUT_MAX_BITS);
	uint32_t vector[32] = {0}, made_of[32] = {0};
	*out = (register_map){.n = n};
	for (unsigned i = 0; i < from->nin[LAYOUT_REG]; i++) {
		uint32_t v = from->col[LAYOUT_REG][i], made = UINT32_C(1) << i;
		while (v) {
			unsigned top = lg2(v);
			if (!vector[top]) {
				vector[top] = v;
				made_of[top] = made;
				break;
			}
			v ^= vector[top];
			made ^= made_of[top];
		}
	}
	for (unsigned i = 0; i < n; i++)
		for (uint32_t v = wanted[i]; v;) {
			unsigned top = lg2(v);
			if (!vector[top]) return false;
			v ^= vector[top];
			out->col[i] ^= made_of[top];
		}
	return true;
}

register_map lower_canonical(const layout *y)
{
	register_map m;
	lower_register_map(y, y->nin[LAYOUT_REG], y->col[LAYOUT_REG], &m);
	return m;
}

static uint32_t permute_element(const layout *arg, const layout *result, int64_t order, uint32_t element)
{
	assert(arg->rank == result->rank);
	uint32_t out = 0;
	for (unsigned d = 0; d < result->rank; d++)
		out |= layout_coordinate(result, element, d) << layout_shift(arg, ir_unpack(order, d));
	return out;
}

/* The element of the argument that an element of the result is. */
static uint32_t source_element(const ir_op *o, const layout *arg, const layout *result, uint32_t element)
{
	uint32_t out = 0;
	switch (o->kind) {
	case IR_PERMUTE: return permute_element(arg, result, ir_get_order(o), element);
	case IR_BROADCAST:
		for (unsigned d = 0; d < result->rank; d++)
			if (arg->lg[d]) out |= layout_coordinate(result, element, d) << layout_shift(arg, d);
		return out;
	default: return element;
	}
}

static bool same_place(const ir_op *o, const layout *arg, const layout *result, layout_in in)
{
	unsigned n = result->nin[in] > arg->nin[in] ? result->nin[in] : arg->nin[in];
	for (unsigned i = 0; i < n; i++) {
		uint32_t have = i < arg->nin[in] ? arg->col[in][i] : 0;
		uint32_t want = i < result->nin[in] ? source_element(o, arg, result, result->col[in][i]) : 0;
		if (have != want) return false;
	}
	return true;
}

static void rename_registers(lower *l, ir_op *o, tile arg, const layout *from)
{
	assert(arg.n == layout_registers(from));
	const layout *to = ir_result(o)->layout;
	uint32_t wanted[LAYOUT_MAX_BITS];
	register_map m;
	for (unsigned i = 0; i < to->nin[LAYOUT_REG]; i++)
		wanted[i] = source_element(o, from, to, to->col[LAYOUT_REG][i]);
	if (!lower_register_map(from, to->nin[LAYOUT_REG], wanted, &m) || !same_place(o, from, to, LAYOUT_LANE) ||
		!same_place(o, from, to, LAYOUT_WARP)) {
		lower_fail(l, o, "'%s' would move data between threads", ir_info(o)->name);
		return;
	}
	tile out = lower_new_tile(l, ir_result(o));
	for (uint32_t r = 0; r < out.n; r++) out.at[r] = arg.at[lower_map_register(&m, r)];
	lower_set(l, ir_result(o), out);
}

void lower_shape_op(lower *l, ir_op *o)
{
	assert(o->nargs == 1 && o->nresults == 1);
	const ir_value *a = ir_arg(o, 0), *result = ir_result(o);
	tile arg = lower_arg(l, o, 0);
	if (a->layout && result->layout && o->kind != IR_HINT) {
		rename_registers(l, o, arg, a->layout);
		return;
	}
	/* A scalar into a tile, one element out of a tile (every thread holds it in register 0, or the pass that
	 * assigns layouts has made it so), or a hint: all the same values. */
	tile out = lower_new_tile(l, result);
	for (uint32_t r = 0; r < out.n; r++) out.at[r] = arg.at[arg.n == out.n ? r : 0];
	lower_set(l, result, out);
}

void lower_arange(lower *l, ir_op *o)
{
	assert(o->kind == IR_ARANGE);
	const layout *y = ir_result(o)->layout;
	tile out = lower_new_tile(l, ir_result(o));
	tid_map m = lower_tid_columns(y);
	LLVMValueRef base = lower_tid_map(l, &m);
	uint32_t bits = lower_map_bits(&m);
	for (uint32_t r = 0; r < out.n; r++) {
		out.at[r] = lower_combine(l, base, bits, layout_apply(y, r, 0, 0));
		if (ir_get_lo(o)) out.at[r] = LLVMBuildAdd(l->builder, out.at[r], lower_i32(l, ir_get_lo(o)), "");
	}
	lower_set(l, ir_result(o), out);
}

void lower_const_op(lower *l, ir_op *o)
{
	assert(o->kind == IR_CONST);
	tile out = lower_new_tile(l, ir_result(o));
	LLVMValueRef v = lower_constant(l, ir_result(o)->type, ir_get_value(o));
	for (uint32_t r = 0; r < out.n; r++) out.at[r] = v;
	lower_set(l, ir_result(o), out);
}

void lower_index_registers(const layout *y, uint32_t register_of[32])
{
	assert(layout_bits(y) <= 32);
	memset(register_of, 0, 32 * sizeof register_of[0]);
	for (unsigned i = 0; i < y->nin[LAYOUT_REG]; i++)
		register_of[__builtin_ctz(y->col[LAYOUT_REG][i])] = UINT32_C(1) << i;
}

uint32_t lower_register_at(const uint32_t register_of[32], uint32_t flat)
{
	uint32_t r = 0;
	for (; flat; flat &= flat - 1) r |= register_of[__builtin_ctz(flat)];
	return r;
}
