/* device_print and device_assert.
 *
 * In: values to print, conditions to check.  Out: calls of what every CUDA driver provides to device code: vprintf and
 * __assertfail.  The one idea: the text is the same on every device:
 *   pid (X, Y, Z) text: V V ...            scalars, one line a program
 *   pid (X, Y, Z) idx (I, J) text: V V ... tiles, of one shape and layout, one line an element; scalars again in each
 * with integers in decimal, bool as 0 or 1, pointers in hexadecimal, floats as C's %g.  A thread in which elements of a
 * tile fail an assert says its first one so. */
#include "lower.h"

#include <assert.h>
#include <string.h>

enum { MAX_PRINTED = 40 };

/* A string constant, as a generic pointer. */
static LLVMValueRef string(lower *l, const char *s)
{
	const char *name = arena_printf(l->arena, "%s_text", l->func->name); /* modules may be joined */
	LLVMValueRef bytes = LLVMConstStringInContext2(l->context, s, strlen(s), false);
	LLVMValueRef g = LLVMAddGlobalInAddressSpace(l->module, LLVMTypeOf(bytes), name, 1);
	LLVMSetInitializer(g, bytes);
	LLVMSetGlobalConstant(g, true);
	LLVMSetLinkage(g, LLVMInternalLinkage);
	return LLVMConstPointerCast(g, l->generic);
}

static LLVMValueRef declared(lower *l, const char *name, LLVMTypeRef result, unsigned n, LLVMValueRef *args)
{
	LLVMValueRef call = lower_intrinsic(l, name, result, n, args);
	LLVMAttributeRef convergent = LLVMCreateEnumAttribute(l->context, l->convergent_kind, 0);
	LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, convergent);
	return call;
}

/* ---- print ---- */

typedef struct line {
	text format;
	unsigned n, bytes;
	LLVMValueRef at[MAX_PRINTED]; /* i32, i64 or double */
} line;

static void add_value(lower *l, line *p, LLVMValueRef v)
{
	unsigned size = LLVMTypeOf(v) == l->i32 ? 4 : 8;
	if (p->n == MAX_PRINTED) return;
	p->at[p->n++] = v;
	p->bytes = (p->bytes + size - 1) / size * size + size;
}

static void add_element(lower *l, line *p, ir_type t, LLVMValueRef v)
{
	LLVMBuilderRef m = l->builder;
	if (t.pointer) {
		text_puts(&p->format, "0x%llx");
		add_value(l, p, LLVMBuildPtrToInt(m, v, l->i64, ""));
	} else if (scalar_is_float(t.elem)) {
		text_puts(&p->format, "%g");
		if (t.elem != SCALAR_F64) v = LLVMBuildFPExt(m, lower_to_f32(l, t.elem, v), l->f64, "");
		add_value(l, p, v);
	} else {
		bool is_signed = scalar_is_signed(t.elem), wide = scalar_bits(t.elem) == 64;
		text_puts(&p->format, wide ? is_signed ? "%lld" : "%llu" : is_signed ? "%d" : "%u");
		if (scalar_bits(t.elem) < 32)
			v = is_signed ? LLVMBuildSExt(m, v, l->i32, "") : LLVMBuildZExt(m, v, l->i32, "");
		add_value(l, p, v);
	}
}

static void add_text(line *p, const char *s)
{
	for (; s && *s; s++) text_printf(&p->format, *s == '%' ? "%%%%" : "%c", *s);
}

static void begin_line(lower *l, line *p)
{
	static const char *const names[] = {"llvm.nvvm.read.ptx.sreg.ctaid.x", "llvm.nvvm.read.ptx.sreg.ctaid.y",
		"llvm.nvvm.read.ptx.sreg.ctaid.z"};
	*p = (line){.format = {.arena = l->arena}};
	text_puts(&p->format, "pid (%u, %u, %u) ");
	for (unsigned i = 0; i < 3; i++) add_value(l, p, lower_intrinsic(l, names[i], l->i32, 0, NULL));
}

/* The arguments' buffer: one a kernel would do, but LLVM's own analysis gives disjoint ones the same place. */
static LLVMValueRef buffer(lower *l, unsigned bytes)
{
	LLVMBasicBlockRef here = LLVMGetInsertBlock(l->builder);
	LLVMPositionBuilderBefore(l->builder, LLVMGetBasicBlockTerminator(l->entry));
	LLVMValueRef p = LLVMBuildAlloca(l->builder, LLVMArrayType2(l->i8, bytes ? bytes : 1), "");
	LLVMSetAlignment(p, 8);
	LLVMPositionBuilderAtEnd(l->builder, here);
	return p;
}

static void end_line(lower *l, line *p, LLVMValueRef at)
{
	text_puts(&p->format, "\n");
	unsigned offset = 0;
	for (unsigned i = 0; i < p->n; i++) {
		unsigned size = LLVMTypeOf(p->at[i]) == l->i32 ? 4 : 8;
		offset = (offset + size - 1) / size * size;
		LLVMValueRef by = lower_i32(l, offset);
		LLVMBuildStore(l->builder, p->at[i], LLVMBuildGEP2(l->builder, l->i8, at, &by, 1, ""));
		offset += size;
	}
	LLVMValueRef args[2] = {string(l, p->format.at), at};
	declared(l, "vprintf", l->i32, 2, args);
}

static void add_operands(lower *l, line *p, ir_op *o, uint32_t r)
{
	add_text(p, o->text);
	if (o->nargs) text_puts(&p->format, ":");
	for (unsigned i = 0; i < o->nargs; i++) {
		const ir_value *v = ir_arg(o, i);
		text_puts(&p->format, " ");
		add_element(l, p, ir_element(v->type), lower_arg(l, o, i).at[ir_is_scalar(v) ? 0 : r]);
	}
}

static void print_scalars(lower *l, ir_op *o)
{
	line p;
	LLVMBasicBlockRef after = lower_begin_if(l, lower_owner(l, NULL));
	begin_line(l, &p);
	add_operands(l, &p, o, 0);
	end_line(l, &p, buffer(l, p.bytes));
	lower_end_if(l, after);
}

/* An index in the tile that this one is a part of. */
static LLVMValueRef from_origin(lower *l, const ir_op *o, ir_type t, unsigned d, LLVMValueRef i)
{
	uint32_t first = ir_unpack(ir_get_origin(o), d) * t.dim[d];
	return first ? LLVMBuildAdd(l->builder, i, lower_i32(l, first), "") : i;
}

static void print_tiles(lower *l, ir_op *o, const ir_value *shown)
{
	assert(shown->layout);
	const layout *y = shown->layout;
	LLVMValueRef owner = lower_owner(l, y), at = NULL, base[IR_MAX_RANK];
	LLVMBasicBlockRef after = owner ? lower_begin_if(l, owner) : NULL;
	tid_map maps[IR_MAX_RANK];
	for (unsigned d = 0; d < shown->type.rank; d++) {
		maps[d] = lower_tid_dimension(y, d);
		base[d] = lower_tid_map(l, &maps[d]);
	}
	for (uint32_t r = 0; r < layout_registers(y); r++) {
		line p;
		if (r & layout_free_mask(y, LAYOUT_REG)) continue;
		begin_line(l, &p);
		text_puts(&p.format, "idx (");
		for (unsigned d = 0; d < shown->type.rank; d++) {
			uint32_t constant = layout_coordinate(y, layout_apply(y, r, 0, 0), d);
			text_puts(&p.format, d ? ", %u" : "%u");
			LLVMValueRef i = lower_combine(l, base[d], lower_map_bits(&maps[d]), constant);
			add_value(l, &p, from_origin(l, o, shown->type, d, i));
		}
		text_puts(&p.format, ") ");
		add_operands(l, &p, o, r);
		if (!at) at = buffer(l, p.bytes);
		end_line(l, &p, at);
	}
	if (after) lower_end_if(l, after);
}

void lower_print(lower *l, ir_op *o)
{
	assert(o->kind == IR_PRINT);
	const ir_value *shown = NULL;
	if (o->nargs > MAX_PRINTED - 8) {
		lower_fail(l, o, "a print of more than %d values has no lowering", MAX_PRINTED - 8);
		return;
	}
	for (unsigned i = 0; i < o->nargs; i++)
		if (!ir_is_scalar(ir_arg(o, i))) shown = ir_arg(o, i);
	if (shown)
		print_tiles(l, o, shown);
	else
		print_scalars(l, o);
}

/* ---- assert ---- */

/* The lowest of the elements that this thread holds and that fail, row-major; some does. */
static LLVMValueRef first_failure(lower *l, const layout *y, tile c)
{
	LLVMBuilderRef m = l->builder;
	tid_map map = lower_tid_columns(y);
	LLVMValueRef base = lower_tid_map(l, &map), first = lower_i32(l, -1);
	for (uint32_t r = 0; r < c.n; r++) {
		if (r & layout_free_mask(y, LAYOUT_REG)) continue;
		LLVMValueRef element = lower_combine(l, base, lower_map_bits(&map), layout_apply(y, r, 0, 0));
		element = LLVMBuildSelect(m, c.at[r], lower_i32(l, -1), element, "");
		first = lower_intrinsic(l, "llvm.umin.i32", l->i32, 2, (LLVMValueRef[]){first, element});
	}
	return first;
}

/* __assertfail has no place for an index: a line in front of it says which element, as device_print would. */
static void print_failure(lower *l, ir_op *o, tile c)
{
	LLVMBuilderRef m = l->builder;
	ir_type t = ir_arg(o, 0)->type;
	LLVMValueRef element = first_failure(l, ir_arg(o, 0)->layout, c);
	unsigned shift = 0;
	line p;
	for (unsigned d = 0; d < t.rank; d++) shift += (unsigned)__builtin_ctz(t.dim[d]);
	begin_line(l, &p);
	for (unsigned d = 0; d < t.rank; d++) {
		shift -= (unsigned)__builtin_ctz(t.dim[d]);
		LLVMValueRef i = LLVMBuildLShr(m, element, lower_i32(l, shift), "");
		text_puts(&p.format, d ? ", %u" : "idx (%u");
		i = LLVMBuildAnd(m, i, lower_i32(l, (int64_t)t.dim[d] - 1), "");
		add_value(l, &p, from_origin(l, o, t, d, i));
	}
	text_puts(&p.format, ") assertion failed: ");
	add_text(&p, o->text);
	end_line(l, &p, buffer(l, p.bytes));
}

void lower_assert(lower *l, ir_op *o)
{
	assert(o->kind == IR_ASSERT);
	const layout *y = ir_arg(o, 0)->layout;
	tile c = lower_arg(l, o, 0);
	LLVMValueRef good = c.at[0];
	for (uint32_t r = 1; r < c.n; r++)
		if (c.at[r] != c.at[r - 1]) good = LLVMBuildAnd(l->builder, good, c.at[r], "");
	LLVMValueRef bad = lower_and(l, lower_owner(l, y), LLVMBuildNot(l->builder, good, ""));
	uint32_t number = o->at.file ? source_locate(l->arena, o->at).line : 0;
	LLVMBasicBlockRef after = lower_begin_if(l, bad);
	if (!ir_is_scalar(ir_arg(o, 0))) print_failure(l, o, c);
	LLVMValueRef args[5] = {string(l, o->text ? o->text : ""), string(l, o->at.file ? o->at.file->name : ""),
		lower_i32(l, number), string(l, l->func->name), lower_const(l, l->i64, 1)};
	declared(l, "__assertfail", l->none, 5, args);
	lower_end_if(l, after);
}
