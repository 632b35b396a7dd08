/* Loads and stores: global memory in wide accesses, shared memory for exchange between threads.
 *
 * In: pointer, mask and value registers.  Out: one access for each group of registers that lie side by side in memory.
 * The one idea: an access moves *words* (lower_pack, lower_unpack), whatever the element type; the axis analysis has
 * proved how many neighbouring registers one access may cover and that their mask is one bit.
 *
 * An access that every thread makes, without hints, is an LLVM load or store, which LLVM may schedule; anything
 * predicated is inline asm under a predicate, so that a masked-out lane never touches memory and never branches.
 * Memory behind *const is never written while the kernel runs: its loads need no order. */
#include "lower.h"

#include "analysis/access.h"
#include "async/scratch.h"

#include <assert.h>
#include <string.h>

LLVMTypeRef lower_word_type(lower *l, unsigned bits)
{
	return LLVMIntTypeInContext(l->context, bits);
}

words lower_word_shape(ir_type t, unsigned n)
{
	assert(n && !(n & (n - 1)));
	unsigned bytes = ir_element_bytes(t);
	words w = {.n = 1, .bits = 8 * n * bytes};
	if (bytes == 8)
		w.n = n, w.bits = 64;
	else if (n * bytes >= 4)
		w.n = n * bytes / 4, w.bits = 32;
	return w;
}

static LLVMValueRef vector_of(lower *l, unsigned n, const LLVMValueRef *v)
{
	assert(n > 0);
	LLVMValueRef all = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(v[0]), n));
	for (unsigned i = 0; i < n; i++) all = LLVMBuildInsertElement(l->builder, all, v[i], lower_i32(l, i), "");
	return all;
}

words lower_pack(lower *l, ir_type t, unsigned n, const LLVMValueRef *elements)
{
	words w = lower_word_shape(t, n);
	assert(w.n && n % w.n == 0);
	unsigned each = n / w.n; /* elements a word */
	LLVMTypeRef type = lower_word_type(l, w.bits);
	for (unsigned i = 0; i < w.n; i++) {
		LLVMValueRef part[4];
		for (unsigned k = 0; k < each; k++) {
			part[k] = elements[i * each + k];
			if (!t.pointer && t.elem == SCALAR_BOOL)
				part[k] = LLVMBuildZExt(l->builder, part[k], l->i8, "");
		}
		LLVMValueRef v = each > 1 ? vector_of(l, each, part) : part[0];
		if (t.pointer)
			w.at[i] = LLVMBuildPtrToInt(l->builder, v, type, "");
		else
			w.at[i] = LLVMTypeOf(v) == type ? v : LLVMBuildBitCast(l->builder, v, type, "");
	}
	return w;
}

void lower_unpack(lower *l, ir_type t, unsigned n, LLVMValueRef *elements, const words *w)
{
	assert(w->n && n % w->n == 0);
	unsigned each = n / w->n;
	bool is_bool = !t.pointer && t.elem == SCALAR_BOOL;
	LLVMTypeRef type = is_bool ? l->i8 : lower_type(l, t);
	LLVMValueRef vector = NULL;
	for (unsigned i = 0; i < n; i++) {
		LLVMValueRef v = w->at[i / each];
		if (each > 1) {
			if (i % each == 0) vector = LLVMBuildBitCast(l->builder, v, LLVMVectorType(type, each), "");
			v = LLVMBuildExtractElement(l->builder, vector, lower_i32(l, i % each), "");
		} else if (t.pointer) {
			v = LLVMBuildIntToPtr(l->builder, v, type, "");
		} else if (LLVMTypeOf(v) != type) {
			v = LLVMBuildBitCast(l->builder, v, type, "");
		}
		elements[i] = v;
	}
	if (!is_bool) return;
	for (unsigned i = 0; i < n; i++)
		elements[i] = LLVMBuildICmp(l->builder, LLVMIntNE, elements[i], LLVMConstNull(l->i8), "");
}

/* ---- the text of an access ---- */

/* Inline asm has no 8-bit registers: narrow words travel in 32-bit ones. */
static const char *width_name(lower *l, const words *w)
{
	const char *vector = w->n == 1 ? "" : w->n == 2 ? ".v2" : ".v4";
	return arena_printf(l->arena, "%s.%c%u", vector, w->bits < 32 ? 'u' : 'b', w->bits);
}

static LLVMTypeRef carrier_type(lower *l, const words *w)
{
	return w->bits == 64 ? l->i64 : l->i32;
}

static void operand_list(text *out, unsigned first, unsigned n)
{
	if (n > 1) text_puts(out, "{");
	for (unsigned i = 0; i < n; i++) text_printf(out, "%s$%u", i ? ", " : "", first + i);
	if (n > 1) text_puts(out, "}");
}

/* "@$6 ld.global.nc.v4.b32 {$0, $1, $2, $3}, [$5];"; results keep `other` where the predicate is false. */
static void asm_load(lower *l, const char *form, LLVMValueRef address, LLVMValueRef predicate, const words *other,
	unsigned flags, words *w)
{
	assert(w->n && w->n <= 16);
	text code = {.arena = l->arena}, constraints = {.arena = l->arena};
	LLVMTypeRef type = carrier_type(l, w), types[16];
	LLVMValueRef args[20];
	unsigned n = 0;
	char letter = w->bits == 64 ? 'l' : 'r';
	for (unsigned i = 0; i < w->n; i++) {
		text_printf(&constraints, "%s=%c", i ? "," : "", letter);
		types[i] = type;
	}
	text_puts(&constraints, LLVMGetTypeKind(LLVMTypeOf(address)) == LLVMIntegerTypeKind ? ",r" : ",l");
	args[n++] = address;
	if (predicate) {
		text_puts(&constraints, ",b");
		args[n++] = predicate;
		text_printf(&code, "@$%u ", w->n + 1);
	}
	for (unsigned i = 0; predicate && i < w->n; i++) {
		text_printf(&constraints, ",%u", i);
		LLVMValueRef v = other ? other->at[i] : LLVMConstNull(type);
		args[n++] = LLVMTypeOf(v) == type ? v : LLVMBuildZExt(l->builder, v, type, "");
	}
	text_printf(&code, "%s%s ", form, width_name(l, w));
	operand_list(&code, 0, w->n);
	text_printf(&code, ", [$%u];", w->n);
	LLVMTypeRef result = w->n == 1 ? type : LLVMStructTypeInContext(l->context, types, w->n, false);
	LLVMValueRef made = lower_asm(l, code.at, constraints.at, result, n, args, flags);
	for (unsigned i = 0; i < w->n; i++) {
		LLVMValueRef v = w->n == 1 ? made : LLVMBuildExtractValue(l->builder, made, i, "");
		w->at[i] = w->bits < 32 ? LLVMBuildTrunc(l->builder, v, lower_word_type(l, w->bits), "") : v;
	}
}

static void asm_store(lower *l, const char *form, LLVMValueRef address, LLVMValueRef predicate, const words *w)
{
	assert(w->n && w->n <= 16);
	text code = {.arena = l->arena}, constraints = {.arena = l->arena};
	LLVMTypeRef type = carrier_type(l, w);
	LLVMValueRef args[20];
	unsigned n = 0;
	if (predicate) text_printf(&code, "@$%u ", w->n + 1);
	text_printf(&code, "%s%s [$0], ", form, width_name(l, w));
	operand_list(&code, 1, w->n);
	text_puts(&code, ";");
	text_puts(&constraints, LLVMGetTypeKind(LLVMTypeOf(address)) == LLVMIntegerTypeKind ? "r" : "l");
	args[n++] = address;
	for (unsigned i = 0; i < w->n; i++) {
		text_puts(&constraints, w->bits == 64 ? ",l" : ",r");
		args[n++] = w->bits < 32 ? LLVMBuildZExt(l->builder, w->at[i], type, "") : w->at[i];
	}
	if (predicate) {
		text_puts(&constraints, ",b");
		args[n++] = predicate;
	}
	lower_asm(l, code.at, constraints.at, l->none, n, args, LOWER_ASM_EFFECT);
}

/* ---- plain accesses ---- */

static LLVMTypeRef access_type(lower *l, const words *w)
{
	LLVMTypeRef type = lower_word_type(l, w->bits);
	return w->n == 1 ? type : LLVMVectorType(type, w->n);
}

static void plain_load(lower *l, LLVMValueRef address, unsigned align, bool invariant, words *w)
{
	LLVMValueRef v = LLVMBuildLoad2(l->builder, access_type(l, w), address, "");
	LLVMSetAlignment(v, align);
	if (invariant)
		LLVMSetMetadata(
			v, l->invariant, LLVMMetadataAsValue(l->context, LLVMMDNodeInContext2(l->context, NULL, 0)));
	for (unsigned i = 0; i < w->n; i++)
		w->at[i] = w->n == 1 ? v : LLVMBuildExtractElement(l->builder, v, lower_i32(l, i), "");
}

static void plain_store(lower *l, LLVMValueRef address, unsigned align, const words *w)
{
	LLVMValueRef v = w->n == 1 ? w->at[0] : vector_of(l, w->n, w->at);
	LLVMSetAlignment(LLVMBuildStore(l->builder, v, address), align);
}

/* ---- shared memory ---- */

LLVMValueRef lower_shared_address(lower *l, LLVMValueRef offset)
{
	if (!l->smem) {
		l->smem = LLVMAddGlobalInAddressSpace(l->module, LLVMArrayType2(l->i8, 0), "blk_shared", 3);
	}
	LLVMSetAlignment(l->smem, l->shared_align > 128 ? l->shared_align : 128);
	return LLVMBuildGEP2(l->builder, l->i8, l->smem, &offset, 1, "");
}

void lower_shared_store(lower *l, LLVMValueRef offset, const words *w, LLVMValueRef owner)
{
	LLVMValueRef p = lower_shared_address(l, offset);
	if (!owner)
		plain_store(l, p, w->n * w->bits / 8, w);
	else
		asm_store(l, "st.shared", LLVMBuildPtrToInt(l->builder, p, l->i32, ""), owner, w);
}

void lower_shared_load(lower *l, LLVMValueRef offset, unsigned align, words *w)
{
	plain_load(l, lower_shared_address(l, offset), align, false, w);
}

void lower_barrier(lower *l)
{
	if (l->func->num_warps == 1) {
		lower_warp_barrier(l);
		return;
	}
	if (l->partition == CONSUMERS) {
		LLVMValueRef args[] = {lower_i32(l, 1), lower_i32(l, 32 * ir_warps(l->func))};
		lower_intrinsic(l, "llvm.nvvm.barrier.cta.sync.aligned.count", l->none, 2, args);
		return;
	}
	LLVMValueRef id = lower_i32(l, 0);
	lower_intrinsic(l, "llvm.nvvm.barrier.cta.sync.aligned.all", l->none, 1, &id);
}

void lower_warp_barrier(lower *l)
{
	LLVMValueRef all = lower_i32(l, -1);
	lower_intrinsic(l, "llvm.nvvm.bar.warp.sync", l->none, 1, &all);
}

LLVMValueRef lower_shuffle(lower *l, const char *mode, ir_type t, LLVMValueRef v, LLVMValueRef lane)
{
	LLVMBuilderRef m = l->builder;
	words w = lower_pack(l, t, 1, &v);
	if (w.bits == 64) {
		LLVMValueRef low = LLVMBuildTrunc(m, w.at[0], l->i32, "");
		LLVMValueRef high =
			LLVMBuildTrunc(m, LLVMBuildLShr(m, w.at[0], lower_const(l, l->i64, 32), ""), l->i32, "");
		low = LLVMBuildZExt(m, lower_shuffle_word(l, mode, low, lane), l->i64, "");
		high = LLVMBuildZExt(m, lower_shuffle_word(l, mode, high, lane), l->i64, "");
		w.at[0] = LLVMBuildOr(m, low, LLVMBuildShl(m, high, lower_const(l, l->i64, 32), ""), "");
	} else if (w.bits == 32) {
		w.at[0] = lower_shuffle_word(l, mode, w.at[0], lane);
	} else {
		LLVMValueRef wide = lower_shuffle_word(l, mode, LLVMBuildZExt(m, w.at[0], l->i32, ""), lane);
		w.at[0] = LLVMBuildTrunc(m, wide, lower_word_type(l, w.bits), "");
	}
	lower_unpack(l, t, 1, &v, &w);
	return v;
}

/* ---- global accesses ---- */

typedef struct access {
	const layout *layout; /* null: scalar */
	unsigned width;       /* elements */
	ir_type type;         /* of an element */
	bool constant;        /* nothing writes this memory */
	const char *form;     /* "ld.global.cg"; null: no hints, LLVM's own will do */
} access;

unsigned lower_access_width(lower *l, const ir_op *o)
{
	return access_plan_make(l->pass, o).width;
}

static access plan_access(lower *l, const ir_op *o)
{
	const ir_value *p = ir_arg(o, 0);
	access a = {.layout = p->layout, .width = lower_access_width(l, o), .type = ir_scalar_type(p->type.elem)};
	assert(a.width && !(a.width & (a.width - 1)));
	a.constant = p->type.pointer == IR_CONST_POINTER;
	return a;
}

/* The longest hint-free form is null; a cache operator wins over an eviction hint, they exclude each other. */
static const char *hinted_form(lower *l, const ir_op *o, bool load, bool constant)
{
	static const char *const evict_names[] = {"", ".L1::evict_first", ".L1::evict_normal", ".L1::evict_last"};
	ir_cache cache = ir_get_cache(o);
	ir_evict evict = ir_get_evict(o);
	if (load && ir_get_volatile(o)) return "ld.volatile.global";
	if (cache != IR_CACHE_NONE) {
		const char *nc = load && constant && cache != IR_CACHE_CV ? ".nc" : "";
		return arena_printf(l->arena, "%s.global.%s%s", load ? "ld" : "st", ir_cache_names[cache], nc);
	}
	if (evict == IR_EVICT_NONE || evict >= IR_EVICT_COUNT) return NULL;
	if (l->ptx_version < 74) l->ptx_version = 74;
	return arena_printf(
		l->arena, "%s.global%s%s", load ? "ld" : "st", load && constant ? ".nc" : "", evict_names[evict]);
}

static void load_group(lower *l, const ir_op *o, const access *a, LLVMValueRef address, LLVMValueRef predicate,
	const words *other, words *w)
{
	unsigned bytes = a->width * scalar_bytes(a->type.elem);
	bool is_volatile = ir_get_volatile(o);
	if (!predicate && !a->form) {
		plain_load(l, address, bytes, a->constant, w);
		return;
	}
	const char *form = a->form ? a->form : a->constant ? "ld.global.nc" : "ld.global";
	asm_load(
		l, form, address, predicate, other, a->constant && !is_volatile ? LOWER_ASM_PURE : LOWER_ASM_EFFECT, w);
}

LLVMValueRef lower_broadcast_scalar(lower *l, const ir_op *o, ir_type t, LLVMValueRef v)
{
	if (l->func->num_warps == 1) return lower_shuffle(l, "idx", t, v, lower_i32(l, 0));
	if (o->shared_bytes < ir_element_bytes(t)) {
		lower_fail(l, o, "no shared memory was set aside for a scalar that thread 0 has");
		return v;
	}
	words w = lower_pack(l, t, 1, &v);
	lower_shared_store(l, lower_scratch(l, o), &w, lower_owner(l, NULL));
	lower_barrier(l);
	lower_shared_load(l, lower_scratch(l, o), ir_element_bytes(t), &w);
	lower_unpack(l, t, 1, &v, &w);
	return v;
}

/* A scalar that other programs may write is read once, by thread 0, and handed to all. */
static void load_scalar_once(
	lower *l, ir_op *o, const access *a, LLVMValueRef address, LLVMValueRef mask, words *other, tile out)
{
	assert(!a->layout && out.n == 1);
	words w = lower_word_shape(a->type, 1);
	load_group(l, o, a, address, lower_and(l, lower_owner(l, NULL), mask), other, &w);
	lower_unpack(l, a->type, 1, out.at, &w);
	out.at[0] = lower_broadcast_scalar(l, o, a->type, out.at[0]);
}

/* ---- results for those who hold a copy ---- */

static LLVMValueRef byte_offset(lower *l, const ir_op *o, unsigned bytes, uint32_t reg)
{
	const layout *y = ir_arg(o, 0)->layout;
	tid_map m = lower_tid_columns(y);
	for (unsigned i = 0; i < LOWER_TID_BITS; i++) m.col[i] *= bytes;
	uint32_t constant = layout_apply(y, reg, 0, 0) * bytes;
	LLVMValueRef v = lower_combine(l, lower_tid_map(l, &m), lower_map_bits(&m), constant);
	return LLVMBuildAdd(l->builder, v, lower_scratch(l, o), "");
}

static void share_through_memory(lower *l, const ir_op *o, ir_type t, tile old)
{
	assert(ir_arg(o, 0)->layout && old.n);
	unsigned bytes = ir_element_bytes(t);
	if (o->shared_bytes < ir_elements(o->results[0]->type) * bytes) {
		lower_fail(l, o, "no shared memory was set aside for what '%s' hands on", ir_info(o)->name);
		return;
	}
	for (uint32_t r = 0; r < old.n; r++) {
		words w = lower_pack(l, t, 1, &old.at[r]);
		lower_shared_store(l, byte_offset(l, o, bytes, r), &w, lower_owner(l, ir_arg(o, 0)->layout));
	}
	lower_barrier(l);
	for (uint32_t r = 0; r < old.n; r++) {
		words w = lower_word_shape(t, 1);
		lower_shared_load(l, byte_offset(l, o, bytes, r), bytes, &w);
		lower_unpack(l, t, 1, &old.at[r], &w);
	}
}

void lower_share(lower *l, const ir_op *o, ir_type t, tile old)
{
	const layout *y = ir_arg(o, 0)->layout;
	assert(y && old.n == layout_registers(y));
	uint32_t lanes = layout_free_mask(y, LAYOUT_LANE), registers = layout_free_mask(y, LAYOUT_REG);
	if (layout_free_mask(y, LAYOUT_WARP))
		share_through_memory(l, o, t, old);
	else if (lanes) {
		LLVMValueRef owner = LLVMBuildAnd(l->builder, l->tid, lower_i32(l, 31 & ~lanes), "");
		for (uint32_t r = 0; r < old.n; r++)
			if (!(r & registers)) old.at[r] = lower_shuffle(l, "idx", t, old.at[r], owner);
	}
	register_map canonical = lower_canonical(y);
	for (uint32_t r = 0; r < old.n; r++) old.at[r] = old.at[lower_map_register(&canonical, r)];
}

void lower_load(lower *l, ir_op *o)
{
	assert(o->kind == IR_LOAD);
	access a = plan_access(l, o);
	tile p = lower_arg(l, o, 0), mask = {0}, other = {0}, out = lower_new_tile(l, ir_result(o));
	if (o->nargs > 1) mask = lower_arg(l, o, 1);
	if (o->nargs > 2) other = lower_arg(l, o, 2);
	a.form = hinted_form(l, o, true, a.constant);
	if (scalar_load_needs_broadcast(o)) {
		words instead = {0};
		if (other.at) instead = lower_pack(l, a.type, 1, other.at);
		load_scalar_once(l, o, &a, p.at[0], mask.at ? mask.at[0] : NULL, other.at ? &instead : NULL, out);
		lower_set(l, ir_result(o), out);
		return;
	}
	register_map canonical = {0};
	bool once = tile_load_needs_sharing(o);
	LLVMValueRef owner = once ? lower_owner(l, a.layout) : NULL;
	if (a.layout) canonical = lower_canonical(a.layout);
	words *loaded = ARENA_ARRAY(l->arena, words, p.n / a.width);
	for (uint32_t r = 0; r < p.n; r += a.width) { /* all loads before the first use */
		if (lower_map_register(&canonical, r) != r) continue;
		words *w = &loaded[r / a.width], instead;
		*w = lower_word_shape(a.type, a.width);
		if (other.at) instead = lower_pack(l, a.type, a.width, &other.at[r]);
		LLVMValueRef predicate = lower_and(l, owner, mask.at ? mask.at[r] : NULL);
		load_group(l, o, &a, p.at[r], predicate, other.at ? &instead : NULL, w);
	}
	for (uint32_t r = 0; r < p.n; r += a.width) {
		uint32_t first = lower_map_register(&canonical, r);
		if (first == r)
			lower_unpack(l, a.type, a.width, &out.at[r], &loaded[r / a.width]);
		else
			memcpy(&out.at[r], &out.at[first], a.width * sizeof out.at[0]);
	}
	if (once) lower_share(l, o, a.type, out);
	lower_set(l, ir_result(o), out);
}

void lower_store(lower *l, ir_op *o)
{
	assert(o->kind == IR_STORE);
	access a = plan_access(l, o);
	tile p = lower_arg(l, o, 0), v = lower_arg(l, o, 1), mask = {0};
	if (o->nargs > 2) mask = lower_arg(l, o, 2);
	a.form = hinted_form(l, o, false, false);
	LLVMValueRef owner = lower_owner(l, a.layout);
	uint32_t duplicates = a.layout ? layout_free_mask(a.layout, LAYOUT_REG) : 0;
	for (uint32_t r = 0; r < p.n; r += a.width) {
		if (r & duplicates) continue;
		words w = lower_pack(l, a.type, a.width, &v.at[r]);
		LLVMValueRef predicate = lower_and(l, owner, mask.at ? mask.at[r] : NULL);
		if (predicate || a.form)
			asm_store(l, a.form ? a.form : "st.global", p.at[r], predicate, &w);
		else
			plain_store(l, p.at[r], a.width * scalar_bytes(a.type.elem), &w);
	}
}
