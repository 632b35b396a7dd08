/* Checked code: every access of memory lies in the buffer that its pointer came from, or the launch ends with the
 * place.
 *
 * In: the address of an element about to be read or written, and its mask.  Out: a mask that is false outside too; a
 * report, and the end of the program, behind the loop.
 * The one idea: an access outside is masked, not jumped away from, and the loop keeps the lowest address that was: so
 * loops over tiles stay without exits and become vectors as they do unchecked.  The check behind the loop is one
 * branch. */
#include "lower.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

_Static_assert(offsetof(blk_cpu_host, outside) == 32 && offsetof(blk_cpu_host, find) == 40 &&
		       sizeof(blk_cpu_range) == 16 && offsetof(blk_cpu_range, bytes) == 8 &&
		       sizeof(blk_cpu_access) == 24 && offsetof(blk_cpu_access, line) == 8,
	"bounds.c uses these offsets on any host");

/* ---- where a pointer came from ---- */

enum { DEEPEST = 200 };

/* Does all that the pointer may be lead to one parameter, *found (null: none yet)?  One way that does not ends the
 * search, so what it has seen before, on another way or round a loop, need not be asked again. */
static bool comes_of_one(cpu_emitter *e, const ir_value *v, const ir_value **found, unsigned depth)
{
	ir_value *source[IR_SOURCES];
	if (!v->type.pointer || depth > DEEPEST) return false;
	if (e->searched[v->id] == e->searches) return true;
	e->searched[v->id] = e->searches;
	if (!v->def && v->block == e->func->body) {
		if (!*found) *found = v;
		return *found == v;
	}
	unsigned n = ir_sources(v, source);
	for (unsigned i = 0; i < n; i++)
		if (!comes_of_one(e, source[i], found, depth + 1)) return false;
	if (n || !v->def) return n > 0;
	switch (v->def->kind) {
	case IR_SELECT:
		return comes_of_one(e, ir_arg(v->def, 1), found, depth + 1) &&
		       comes_of_one(e, ir_arg(v->def, 2), found, depth + 1);
	case IR_PTR_ADD:
	case IR_SPLAT:
	case IR_EXPAND_DIMS:
	case IR_BROADCAST:
	case IR_RESHAPE:
	case IR_PERMUTE:
	case IR_FLIP:
	case IR_GATHER:
	case IR_HINT:
	case IR_BITCAST: return comes_of_one(e, ir_arg(v->def, 0), found, depth + 1);
	default: return false;
	}
}

static int32_t parameter_of(cpu_emitter *e, const ir_value *pointer)
{
	assert(pointer->type.pointer);
	const ir_value *found = NULL;
	e->searches++;
	return comes_of_one(e, pointer, &found, 0) && found ? (int32_t)found->index : -1;
}

/* ---- ranges ---- */

typedef struct range {
	LLVMValueRef begin, bytes;
} range;

static LLVMValueRef number_at(cpu_emitter *e, LLVMBuilderRef b, LLVMValueRef base, uint64_t offset)
{
	LLVMValueRef o = cpu_index(e, offset);
	return LLVMBuildLoad2(b, e->i64, LLVMBuildInBoundsGEP2(b, e->i8, base, &o, 1, ""), "");
}

/* Read once, in front of everything. */
static range known_range(cpu_emitter *e, int32_t parameter)
{
	assert(parameter >= 0);
	LLVMValueRef *at = &e->range[2 * parameter];
	uint64_t offset = sizeof(blk_cpu_range) * (uint64_t)parameter;
	for (unsigned i = 0; i < 2; i++)
		if (!at[i]) at[i] = number_at(e, e->entry, e->ranges, offset + 8 * i);
	return (range){at[0], at[1]};
}

static LLVMValueRef host_function(cpu_emitter *e, uint64_t offset)
{
	LLVMValueRef o = cpu_index(e, offset);
	LLVMValueRef at = LLVMBuildInBoundsGEP2(e->builder, e->i8, e->host, &o, 1, "");
	return LLVMBuildLoad2(e->builder, e->pointer, at, "");
}

/* The host knows; it is asked for each element that is not masked. */
static range asked_range(cpu_emitter *e, LLVMValueRef address, LLVMValueRef mask)
{
	LLVMBuilderRef b = e->builder;
	LLVMValueRef to = cpu_local(e, LLVMArrayType2(e->i64, 2), "range", 0);
	LLVMBasicBlockRef ask = cpu_block(e, "ask"), known = cpu_block(e, "known");
	LLVMBuildCondBr(b, mask, ask, known);
	LLVMPositionBuilderAtEnd(b, ask);
	LLVMTypeRef params[] = {e->pointer, e->i64, e->pointer};
	LLVMValueRef args[] = {host_function(e, offsetof(blk_cpu_host, context)), address, to};
	LLVMTypeRef type = LLVMFunctionType(e->none, params, 3, false);
	LLVMBuildCall2(b, type, host_function(e, offsetof(blk_cpu_host, find)), args, 3, "");
	LLVMBuildBr(b, known);
	LLVMPositionBuilderAtEnd(b, known);
	return (range){number_at(e, b, to, 0), number_at(e, b, to, 8)};
}

/* ---- the check ---- */

/* The lowest address outside so far, or none; its place among those of a statement has its own. */
static LLVMValueRef lowest(cpu_emitter *e, unsigned number)
{
	while (e->lowest.n <= number) {
		LLVMValueRef at = LLVMBuildAlloca(e->entry, e->i64, "lowest");
		LLVMBuildStore(e->entry, cpu_index(e, UINT64_MAX), at);
		vec_push(e->arena, &e->lowest, at);
	}
	return e->lowest.at[number];
}

LLVMValueRef cpu_bounds(cpu_emitter *e, const ir_op *o, LLVMValueRef pointer, LLVMValueRef mask)
{
	assert(pointer);
	LLVMBuilderRef b = e->builder;
	if (!e->options->check_bounds) return mask;
	cpu_access a = {.op = o, .bytes = ir_element_bytes((ir_type){.elem = ir_arg(o, 0)->type.elem})};
	a.parameter = parameter_of(e, ir_arg(o, 0));
	if (!mask) mask = LLVMConstInt(e->i1, 1, false);
	LLVMValueRef address = LLVMBuildPtrToInt(b, pointer, e->i64, "");
	range r = a.parameter >= 0 ? known_range(e, a.parameter) : asked_range(e, address, mask);
	/* offset + bytes <= r.bytes, where nothing wraps */
	LLVMValueRef less[] = {r.bytes, cpu_index(e, a.bytes - 1)};
	LLVMValueRef limit = cpu_intrinsic(e, "llvm.usub.sat", e->i64, 2, less);
	LLVMValueRef inside = LLVMBuildICmp(b, LLVMIntULT, LLVMBuildSub(b, address, r.begin, ""), limit, "");
	LLVMValueRef bad = LLVMBuildAnd(b, mask, LLVMBuildNot(b, inside, ""), "");
	LLVMValueRef at = lowest(e, e->accesses.n);
	LLVMValueRef both[] = {
		LLVMBuildLoad2(b, e->i64, at, ""), LLVMBuildSelect(b, bad, address, cpu_index(e, UINT64_MAX), "")};
	LLVMBuildStore(b, cpu_intrinsic(e, "llvm.umin", e->i64, 2, both), at);
	vec_push(e->arena, &e->accesses, a);
	return LLVMBuildAnd(b, mask, inside, "");
}

/* ---- the report ---- */

static LLVMValueRef constant(cpu_emitter *e, LLVMValueRef v, const char *name)
{
	LLVMValueRef g = LLVMAddGlobal(e->module, LLVMTypeOf(v), name);
	LLVMSetInitializer(g, v);
	LLVMSetGlobalConstant(g, true);
	LLVMSetLinkage(g, LLVMPrivateLinkage);
	LLVMSetUnnamedAddress(g, LLVMGlobalUnnamedAddr);
	return g;
}

static LLVMValueRef describe(cpu_emitter *e, const cpu_access *a)
{
	assert(a->op);
	const char *file = a->op->at.file ? a->op->at.file->name : "";
	uint32_t line = *file ? source_locate(e->arena, a->op->at).line : 0;
	uint32_t kind = !ir_touches(a->op, IR_WRITES_GLOBAL) ? BLK_CPU_READS
			: ir_touches(a->op, IR_READS_GLOBAL) ? BLK_CPU_UPDATES
							     : BLK_CPU_WRITES;
	if (!ir_is_scalar(ir_arg(a->op, 0))) kind |= BLK_CPU_TILE;
	LLVMValueRef name = constant(e, LLVMConstStringInContext2(e->context, file, strlen(file), false), "file");
	LLVMValueRef fields[] = {name, cpu_int(e, SCALAR_U32, line), cpu_int(e, SCALAR_U32, a->bytes),
		cpu_int(e, SCALAR_U32, kind), cpu_int(e, SCALAR_I32, a->parameter)};
	return constant(e, LLVMConstStructInContext(e->context, fields, 5, false), "access");
}

static void report(cpu_emitter *e, const cpu_access *a, LLVMValueRef address)
{
	LLVMBuilderRef b = e->builder;
	LLVMValueRef program = cpu_local(e, LLVMArrayType2(e->i32, 3), "program", 0);
	for (unsigned d = 0; d < 3; d++) {
		LLVMValueRef o = cpu_index(e, 4 * d);
		LLVMBuildStore(b, e->pid[d], LLVMBuildInBoundsGEP2(b, e->i8, program, &o, 1, ""));
	}
	LLVMTypeRef params[] = {e->pointer, e->pointer, e->i64, e->pointer};
	LLVMValueRef args[] = {host_function(e, offsetof(blk_cpu_host, context)), describe(e, a), address, program};
	LLVMTypeRef type = LLVMFunctionType(e->none, params, 4, false);
	LLVMBuildCall2(b, type, host_function(e, offsetof(blk_cpu_host, outside)), args, 4, "");
	LLVMBuildRetVoid(b);
}

void cpu_bounds_end(cpu_emitter *e)
{
	LLVMBuilderRef b = e->builder;
	for (uint32_t i = 0; i < e->accesses.n; i++) {
		const cpu_access *a = &e->accesses.at[i];
		LLVMMetadataRef before = cpu_debug_line(e, a->op->at);
		LLVMValueRef none = cpu_index(e, UINT64_MAX), found = LLVMBuildLoad2(b, e->i64, lowest(e, i), "");
		LLVMBasicBlockRef failed = cpu_block(e, "outside"), fine = cpu_block(e, "inside");
		cpu_fail_unless(e, LLVMBuildICmp(b, LLVMIntEQ, found, none, ""), fine, failed);
		report(e, a, found);
		LLVMPositionBuilderAtEnd(b, fine);
		LLVMBuildStore(b, none, lowest(e, i)); /* as it is: the next loop begins with a constant */
		cpu_debug_back(e, before);
	}
	e->accesses.n = 0;
}
