/* The verifier's rules, one operation at a time: what ops.def says in words, checked.
 *
 * In: an operation with sound structure.  Out: true, or half a sentence that names the operand and the types.
 * The one idea: the column `types` of ops.def names a rule, a function rule_NAME here; most operations share one. */
#include "attributes.h"
#include "extents.h"
#include "inline_asm.h"
#include "tensor_map.h"
#include "verify.h"

#include <assert.h>
#include <string.h>

bool ir_verify_fail(text *why, const char *fmt, ...)
{
	va_list list;
	va_start(list, fmt);
	text_puts(why, arena_vprintf(why->arena, fmt, list));
	va_end(list);
	return false;
}

enum { LARGEST_TILE = 1 << 20 }; /* elements, language.md section 7 */

bool ir_verify_type(ir_type t, text *why)
{
	if (t.elem >= SCALAR_COUNT || t.pointer > IR_CONST_POINTER) return ir_verify_fail(why, "unknown element type");
	if (t.rank > IR_MAX_RANK) return ir_verify_fail(why, "rank %u is above %u", t.rank, IR_MAX_RANK);
	for (unsigned i = 0; i < t.rank; i++)
		if (!ir_extent_fits(t.dim[i]) || t.dim[i] > LARGEST_TILE)
			return ir_verify_fail(why,
				"extent %u is not an odd number up to %u times a power of two up to %u", t.dim[i],
				IR_MOST_ODD, LARGEST_TILE);
	if (ir_elements(t) > LARGEST_TILE) return ir_verify_fail(why, "tile of more than %u elements", LARGEST_TILE);
	return true;
}

static const char *name(text *why, ir_type t)
{
	return ir_type_name(why->arena, t);
}

static ir_type type(const ir_op *o, unsigned i)
{
	return ir_arg(o, i)->type;
}

static bool is_number(ir_type t)
{
	return t.pointer == IR_NUMBER;
}

static bool is_integer(ir_type t)
{
	return is_number(t) && scalar_is_integer(t.elem);
}

static bool is_bool(ir_type t)
{
	return is_number(t) && t.elem == SCALAR_BOOL;
}

/* Floats that arithmetic is defined on: fp8 is for storage. */
static bool is_float(ir_type t)
{
	return is_number(t) && scalar_is_float(t.elem) && !scalar_is_fp8(t.elem);
}

static bool is_wide_float(ir_type t)
{
	return is_number(t) && (t.elem == SCALAR_F32 || t.elem == SCALAR_F64);
}

static bool is_arithmetic(ir_type t)
{
	return is_integer(t) || is_float(t);
}

static bool is_ordered(ir_type t)
{
	return is_arithmetic(t) || is_bool(t);
}

static bool is_bits(ir_type t)
{
	return is_integer(t) || is_bool(t);
}

static bool has_high_half(ir_type t)
{
	return is_integer(t) && scalar_bytes(t.elem) >= 4;
}

static bool is_any(ir_type t)
{
	(void)t;
	return true;
}

static bool same(const ir_op *o, ir_type a, ir_type b, const char *what, text *why)
{
	(void)o;
	if (ir_type_equal(a, b)) return true;
	return ir_verify_fail(why, "%s: %s and %s should be the same type", what, name(why, a), name(why, b));
}

/* Every operand and the result have one type, of the kind that `accepts` tells. */
static bool all_same(const ir_op *o, bool (*accepts)(ir_type), const char *wanted, text *why)
{
	assert(o->nresults == 1);
	ir_type t = o->results[0]->type;
	for (unsigned i = 0; i < o->nargs; i++)
		if (!same(o, type(o, i), t, "operand and result", why)) return false;
	return accepts(t) || ir_verify_fail(why, "%s is not %s", name(why, t), wanted);
}

static bool rule_comparison(const ir_op *o, text *why)
{
	return same(o, type(o, 0), type(o, 1), "operands", why) &&
	       same(o, o->results[0]->type, ir_with_elem(type(o, 0), SCALAR_BOOL), "result", why);
}

static bool rule_bitcast(const ir_op *o, text *why)
{
	assert(o->kind == IR_BITCAST);
	ir_type a = type(o, 0), r = o->results[0]->type;
	bool address = (a.pointer || is_integer(a)) && (r.pointer || is_integer(r));
	bool numbers = is_number(a) && is_number(r) && scalar_bits(a.elem) == scalar_bits(r.elem);
	if (ir_same_shape(a, r) && (numbers || (address && ir_element_bytes(a) == 8 && ir_element_bytes(r) == 8)))
		return true;
	return ir_verify_fail(why, "%s and %s differ in bits or shape", name(why, a), name(why, r));
}

static bool rule_shape(const ir_op *o, text *why)
{
	ir_type a = type(o, 0), r = o->results[0]->type;
	bool ok = a.elem == r.elem && a.pointer == r.pointer;
	unsigned seen = 0, axis = o->kind == IR_EXPAND_DIMS ? ir_get_axis(o) : 0;
	switch (o->kind) {
	case IR_SPLAT: ok = ok && a.rank == 0 && r.rank > 0; break;
	case IR_EXPAND_DIMS:
		ok = ok && r.rank == a.rank + 1 && axis <= a.rank && r.dim[axis] == 1;
		for (unsigned i = 0; ok && i < a.rank; i++) ok = r.dim[i + (i >= axis)] == a.dim[i];
		break;
	case IR_BROADCAST:
		ok = ok && a.rank == r.rank && r.rank > 0;
		for (unsigned i = 0; ok && i < r.rank; i++) ok = a.dim[i] == r.dim[i] || a.dim[i] == 1;
		break;
	case IR_RESHAPE: ok = ok && ir_elements(a) == ir_elements(r); break;
	default: /* IR_PERMUTE */
		ok = ok && a.rank == r.rank && r.rank > 0;
		for (unsigned i = 0; ok && i < r.rank; i++) {
			unsigned from = ir_unpack(ir_get_order(o), i);
			ok = from < a.rank && !(seen >> from & 1) && r.dim[i] == a.dim[from];
			if (ok) seen |= 1u << from; /* a text names any axis: beyond the rank it is no shift either */
		}
	}
	return ok || ir_verify_fail(why, "%s does not become %s", name(why, a), name(why, r));
}

static bool rule_select(const ir_op *o, text *why)
{
	assert(o->kind == IR_SELECT);
	ir_type r = o->results[0]->type;
	return same(o, type(o, 0), ir_with_elem(r, SCALAR_BOOL), "condition", why) &&
	       same(o, type(o, 1), r, "first arm", why) && same(o, type(o, 2), r, "second arm", why);
}

static bool rule_convert(const ir_op *o, text *why)
{
	assert(o->kind == IR_CONVERT);
	ir_type a = type(o, 0), r = o->results[0]->type;
	if (is_number(a) && is_number(r) && ir_same_shape(a, r)) return true;
	return ir_verify_fail(why, "%s does not convert to %s", name(why, a), name(why, r));
}

static bool rule_ptr_add(const ir_op *o, text *why)
{
	assert(o->kind == IR_PTR_ADD);
	ir_type p = type(o, 0), n = type(o, 1);
	if (!p.pointer || !is_integer(n) || !ir_same_shape(p, n))
		return ir_verify_fail(why, "%s does not add to %s", name(why, n), name(why, p));
	return same(o, p, o->results[0]->type, "result", why);
}

/* ptr at 0, value of its element type at `value` (or the result), then a mask. */
static bool access_op(const ir_op *o, ir_type value, unsigned mask, text *why)
{
	assert(mask >= 1);
	ir_type p = type(o, 0);
	if (!p.pointer) return ir_verify_fail(why, "%s is not a pointer", name(why, p));
	if (!same(o, value, ir_with_elem(p, p.elem), "value and pointer's element", why)) return false;
	return o->nargs <= mask || same(o, type(o, mask), ir_with_elem(p, SCALAR_BOOL), "mask", why);
}

static bool rule_load(const ir_op *o, text *why)
{
	assert(o->kind == IR_LOAD);
	if (o->nargs < 1 || o->nargs > 3) return ir_verify_fail(why, "%u operands", o->nargs);
	ir_type r = o->results[0]->type;
	return access_op(o, r, 1, why) && (o->nargs < 3 || same(o, type(o, 2), r, "other", why));
}

static bool rule_store(const ir_op *o, text *why)
{
	assert(o->kind == IR_STORE);
	if (o->nargs < 2 || o->nargs > 3) return ir_verify_fail(why, "%u operands", o->nargs);
	if (type(o, 0).pointer == IR_CONST_POINTER)
		return ir_verify_fail(why, "writes through %s", name(why, type(o, 0)));
	return access_op(o, type(o, 1), 2, why);
}

/* ptr, one or two values, [mask] -> old value. */
static bool atomic(const ir_op *o, unsigned values, text *why)
{
	assert(values == 1 || values == 2);
	if (o->nargs < 1 + values || o->nargs > 2 + values) return ir_verify_fail(why, "%u operands", o->nargs);
	if (type(o, 0).pointer == IR_CONST_POINTER)
		return ir_verify_fail(why, "writes through %s", name(why, type(o, 0)));
	return access_op(o, type(o, 1), 1 + values, why) && same(o, type(o, values), type(o, 1), "values", why) &&
	       same(o, o->results[0]->type, type(o, 1), "result", why);
}

/* base [value] indices shape strides. */
static bool rule_tensor_access(const ir_op *o, text *why)
{
	unsigned first = o->kind == IR_TENSOR_LOAD ? 1 : 2;
	if (o->nargs < first) return ir_verify_fail(why, "%u operands", o->nargs);
	ir_type base = type(o, 0), block = first == 1 ? o->results[0]->type : type(o, 1);
	if (!base.pointer || base.rank || (first == 2 && base.pointer == IR_CONST_POINTER))
		return ir_verify_fail(why, "the base is %s", name(why, base));
	if (block.pointer || block.elem != base.elem || block.rank == 0)
		return ir_verify_fail(why, "a block of type %s behind %s", name(why, block), name(why, base));
	if (o->nargs != first + 3u * block.rank)
		return ir_verify_fail(why, "%u operands for %u dimensions", o->nargs, block.rank);
	for (unsigned i = first; i < o->nargs; i++) {
		ir_type t = type(o, i);
		if (t.pointer || t.rank || (t.elem != SCALAR_I32 && t.elem != SCALAR_I64))
			return ir_verify_fail(why, "%s is not i32 or i64", name(why, t));
	}
	return true;
}

/* map [value] indices. */
static bool rule_bulk_access(const ir_op *o, text *why)
{
	unsigned first = o->kind == IR_BULK_LOAD ? 1 : 2;
	if (o->nargs < first) return ir_verify_fail(why, "%u operands", o->nargs);
	const ir_op *map = ir_arg(o, 0)->def;
	ir_type block = first == 1 ? o->results[0]->type : type(o, 1);
	if (!map || map->kind != IR_TENSOR_MAP) return ir_verify_fail(why, "the first operand is no tensor map");
	if (first == 2 && type(o, 0).pointer == IR_CONST_POINTER)
		return ir_verify_fail(why, "writes through %s", name(why, type(o, 0)));
	if (block.pointer || block.elem != type(o, 0).elem || o->nargs < first + block.rank ||
		o->nargs > first + IR_MAP_RANK || !block.rank)
		return ir_verify_fail(why, "%u operands for a block of type %s", o->nargs, name(why, block));
	for (unsigned i = first; i < o->nargs; i++)
		if (!same(o, type(o, i), ir_scalar_type(SCALAR_I32), "index", why)) return false;
	return true;
}

static bool rule_tensor_map(const ir_op *o, text *why)
{
	assert(o->kind == IR_TENSOR_MAP);
	const ir_value *base = ir_arg(o, 0);
	if (base->def || base->block->parent || !base->type.pointer)
		return ir_verify_fail(why, "a map of something else than a pointer parameter");
	if (!o->map || o->map->elem != base->type.elem)
		return ir_verify_fail(why, "no map of %s", name(why, base->type));
	return same(o, o->results[0]->type, base->type, "result", why);
}

/* Types of `values[from..]` against those of n other values. */
static bool types_match(
	ir_use *const *args, unsigned have, ir_value *const *wanted, unsigned n, const char *what, text *why)
{
	if (have != n) return ir_verify_fail(why, "%s: %u values where %u belong", what, have, n);
	for (unsigned i = 0; i < n; i++)
		if (!same(NULL, args[i]->value->type, wanted[i]->type, what, why)) return false;
	return true;
}

static bool block_args_match(const ir_block *b, unsigned from, ir_value *const *wanted, unsigned n, text *why)
{
	if (b->nargs != from + n) return ir_verify_fail(why, "%u block arguments where %u belong", b->nargs, from + n);
	for (unsigned i = 0; i < n; i++)
		if (!same(NULL, b->args[from + i]->type, wanted[i]->type, "block argument", why)) return false;
	return true;
}

static bool without_effect(const ir_block *b)
{
	for (const ir_op *o = b->first; o; o = o->next) {
		if (ir_touches(o, IR_READS | IR_EFFECTS)) return false;
		for (unsigned r = 0; r < o->nregions; r++)
			if (!without_effect(o->regions[r])) return false;
	}
	return true;
}

static bool custom_region(const ir_op *o, text *why)
{
	assert(o->nregions == 1);
	const ir_block *b = o->regions[0];
	if (b->nargs != 2u * o->nargs)
		return ir_verify_fail(why, "%u block arguments for %u operands", b->nargs, o->nargs);
	for (unsigned i = 0; i < b->nargs; i++)
		if (!same(o, b->args[i]->type, ir_element(type(o, i % o->nargs)), "block argument", why)) return false;
	if (b->last->nargs != o->nargs) return ir_verify_fail(why, "yields %u values of %u", b->last->nargs, o->nargs);
	for (unsigned i = 0; i < o->nargs; i++)
		if (!same(o, type(b->last, i), ir_element(type(o, i)), "yielded value", why)) return false;
	return without_effect(b) || ir_verify_fail(why, "the region reads or writes memory");
}

static bool combines(ir_combine c, ir_type t)
{
	if (c == IR_CUSTOM) return true;
	switch (ir_combinable_types(c)) {
	case IR_COMBINABLE_arithmetic: return is_arithmetic(t);
	case IR_COMBINABLE_ordered: return is_ordered(t);
	case IR_COMBINABLE_floating: return is_float(t);
	case IR_COMBINABLE_bits: return is_bits(t);
	default: return is_bool(t);
	}
}

/* reduce, and scan, which keeps the shape. */
static bool rule_reduction(const ir_op *o, text *why)
{
	unsigned axis = ir_get_axis(o);
	ir_combine c = ir_get_combine(o);
	if (o->nargs == 0 || o->nresults != o->nargs)
		return ir_verify_fail(why, "%u results of %u operands", o->nresults, o->nargs);
	if (axis >= type(o, 0).rank) return ir_verify_fail(why, "axis %u of %s", axis, name(why, type(o, 0)));
	if (o->nregions != (c == IR_CUSTOM) || (c != IR_CUSTOM && o->nargs != 1))
		return ir_verify_fail(why, "%u operands and %u regions do not go with combine=%s", o->nargs,
			o->nregions, ir_combine_names[c]);
	bool by_thread = o->kind == IR_REDUCE && ir_get_by_thread(o);
	if (by_thread && (c == IR_CUSTOM || o->block->func->level != IR_LEVEL_SCHEDULED))
		return ir_verify_fail(why, "by_thread, which is for built-in combinations of the scheduled level");
	for (unsigned i = 0; i < o->nargs; i++) {
		ir_type r = type(o, i);
		if (!is_number(r) || !ir_same_shape(r, type(o, 0)))
			return ir_verify_fail(why, "operand of type %s", name(why, r));
		if (!combines(c, r)) return ir_verify_fail(why, "combine=%s of %s", ir_combine_names[c], name(why, r));
		if (o->kind == IR_REDUCE) {
			for (unsigned d = axis; d + 1u < r.rank; d++) r.dim[d] = r.dim[d + 1];
			r.dim[--r.rank] = 0;
		}
		if (!same(o, o->results[i]->type, r, "result", why)) return false;
	}
	return c != IR_CUSTOM || custom_region(o, why);
}

/* The type of join's result, or of split's operand. */
static bool halves(const ir_op *o, ir_type whole, ir_type half, text *why)
{
	if (half.pointer || half.rank == IR_MAX_RANK) return ir_verify_fail(why, "operand of type %s", name(why, half));
	assert(half.rank < IR_MAX_RANK);
	half.dim[half.rank++] = 2;
	return same(o, whole, half, "joined", why);
}

static bool rule_gather(const ir_op *o, text *why)
{
	ir_type x = type(o, 0), index = type(o, 1);
	unsigned axis = ir_get_axis(o);
	if (axis >= x.rank) return ir_verify_fail(why, "axis %u of %s", axis, name(why, x));
	if (!is_number(x) || !is_integer(index))
		return ir_verify_fail(why, "%s does not index %s", name(why, index), name(why, x));
	bool fits = x.rank == index.rank;
	for (unsigned d = 0; fits && d < x.rank; d++) fits = d == axis || x.dim[d] == index.dim[d];
	if (!fits) return ir_verify_fail(why, "%s does not index %s", name(why, index), name(why, x));
	return same(o, o->results[0]->type, ir_with_elem(index, x.elem), "result", why);
}

static bool rule_histogram(const ir_op *o, text *why)
{
	ir_type r = o->results[0]->type;
	if (o->nargs < 1 || o->nargs > 2) return ir_verify_fail(why, "%u operands", o->nargs);
	if (!is_integer(type(o, 0)) || type(o, 0).rank == 0)
		return ir_verify_fail(why, "operand of type %s", name(why, type(o, 0)));
	if (!is_number(r) || r.elem != SCALAR_I32 || r.rank != 1)
		return ir_verify_fail(why, "the result is %s", name(why, r));
	return o->nargs < 2 || same(o, type(o, 1), ir_with_elem(type(o, 0), SCALAR_BOOL), "mask", why);
}

/* What products of this type are summed in. */
static scalar summed_in(scalar s)
{
	return s == SCALAR_I8 ? SCALAR_I32 : s == SCALAR_F64 ? SCALAR_F64 : SCALAR_F32;
}

static bool rule_dot(const ir_op *o, text *why)
{
	if (o->nargs < 2 || o->nargs > 3) return ir_verify_fail(why, "%u operands", o->nargs);
	ir_type a = type(o, 0), b = type(o, 1), r = o->results[0]->type;
	unsigned rank = a.rank;
	bool fp8 = scalar_is_fp8(a.elem) && scalar_is_fp8(b.elem);
	bool multiply = is_number(a) && is_number(b) && (a.elem == b.elem || fp8) &&
			(a.elem == SCALAR_I8 || scalar_is_float(a.elem));
	bool fits = multiply && (rank == 2 || rank == 3) && b.rank == rank && r.rank == rank &&
		    a.dim[rank - 1] == b.dim[rank - 2] && r.dim[rank - 2] == a.dim[rank - 2] &&
		    r.dim[rank - 1] == b.dim[rank - 1];
	if (rank == 3) fits &= a.dim[0] == b.dim[0] && r.dim[0] == a.dim[0];
	if (!fits)
		return ir_verify_fail(why, "%s and %s do not multiply to %s", name(why, a), name(why, b), name(why, r));
	scalar sum = summed_in(a.elem);
	if (!is_number(r) || (r.elem != sum && !(r.elem == SCALAR_F16 && sum == SCALAR_F32)))
		return ir_verify_fail(why, "the result is %s", name(why, r));
	return o->nargs < 3 || same(o, type(o, 2), r, "accumulator", why);
}

static bool rule_inline_asm(const ir_op *o, text *why)
{
	enum { MAX = IR_ASM_MAX_REGISTERS };
	ir_type results[MAX], args[MAX];
	unsigned pack = ir_get_pack(o);
	ir_asm parsed;
	if (!o->text) return ir_verify_fail(why, "no text");
	if (pack > IR_ASM_MAX_PACK || (pack & (pack - 1))) return ir_verify_fail(why, "pack=%u", pack);
	if (o->nargs > MAX || o->nresults < 1 || o->nresults > MAX)
		return ir_verify_fail(why, "%u results of %u operands", o->nresults, o->nargs);
	for (unsigned i = 0; i < o->nargs; i++) args[i] = type(o, i);
	for (unsigned i = 0; i < o->nresults; i++) results[i] = o->results[i]->type;
	ir_type shape = o->nargs ? args[0] : (ir_type){0};
	for (unsigned i = 0; i < o->nargs + o->nresults; i++) {
		ir_type t = i < o->nargs ? args[i] : results[i - o->nargs];
		if (!is_number(t) || !ir_same_shape(t, shape))
			return ir_verify_fail(why, "operand or result of type %s", name(why, t));
	}
	return ir_asm_parse(o->text, pack, o->nresults, results, o->nargs, args, &parsed, why) == IR_ASM_GOOD;
}

static bool rule_sort(const ir_op *o, text *why)
{
	unsigned axis = ir_get_axis(o), k = ir_get_k(o);
	ir_type t = type(o, 0);
	if (axis >= t.rank) return ir_verify_fail(why, "axis %u of %s", axis, name(why, t));
	if (!is_ordered(t)) return ir_verify_fail(why, "operand of type %s", name(why, t));
	if (k > t.dim[axis] || (k & (k - 1))) return ir_verify_fail(why, "k=%u", k);
	if (k) t.dim[axis] = k;
	return same(o, o->results[0]->type, t, "result", why);
}

/* multibuffer, slot of async_copy and multibuffer_read. */
static bool multibuffer_and_slot(const ir_op *o, text *why)
{
	ir_type slot = type(o, 1);
	if (!ir_arg(o, 0)->def || ir_arg(o, 0)->def->kind != IR_MULTIBUFFER)
		return ir_verify_fail(why, "of what is no multibuffer");
	return (is_number(slot) && slot.elem == SCALAR_I32 && slot.rank == 0) ||
	       ir_verify_fail(why, "the slot is %s", name(why, slot));
}

static bool rule_print(const ir_op *o, text *why)
{
	const ir_value *tile = NULL;
	if (!o->text) return ir_verify_fail(why, "no text");
	for (unsigned i = 0; i < o->nargs; i++) {
		const ir_value *v = ir_arg(o, i);
		if (v->type.rank && tile && !ir_same_shape(v->type, tile->type))
			return ir_verify_fail(why, "%s beside %s", name(why, v->type), name(why, tile->type));
		if (v->type.rank) tile = v;
	}
	return true;
}

static bool rule_async_copy(const ir_op *o, text *why)
{
	unsigned width = ir_get_width(o);
	if (o->nargs < 3 || o->nargs > 4) return ir_verify_fail(why, "%u operands", o->nargs);
	ir_type tile = type(o, 0), pointer = type(o, 2);
	if (!multibuffer_and_slot(o, why)) return false;
	if (pointer.pointer != IR_CONST_POINTER || pointer.elem != tile.elem || !ir_same_shape(tile, pointer))
		return ir_verify_fail(why, "%s into %s", name(why, pointer), name(why, tile));
	uint64_t bytes = (uint64_t)width * scalar_bytes(tile.elem);
	if (bytes != 4 && bytes != 8 && bytes != 16) return ir_verify_fail(why, "width=%u", width);
	return o->nargs < 4 || same(o, type(o, 3), ir_with_elem(tile, SCALAR_BOOL), "mask", why);
}

static bool rule_multibuffer(const ir_op *o, text *why)
{
	ir_type t = o->results[0]->type;
	unsigned swizzle = ir_get_swizzle(o), fast = ir_get_fast(o);
	if (!is_number(t) || t.rank == 0) return ir_verify_fail(why, "the result is %s", name(why, t));
	if (o->nargs > 1) return ir_verify_fail(why, "%u operands", o->nargs);
	const ir_op *front = o->nargs ? ir_arg(o, 0)->def : NULL;
	if (o->nargs && (!front || front->kind != IR_MULTIBUFFER || ir_get_stages(front) != ir_get_stages(o)))
		return ir_verify_fail(why, "behind what is no multibuffer of as many slots");
	if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
		return ir_verify_fail(why, "swizzle=%u", swizzle);
	if (swizzle &&
		(t.rank < 2 || t.rank > 3 || fast > 1 || t.dim[t.rank - 2u + fast] * scalar_bytes(t.elem) < swizzle))
		return ir_verify_fail(why, "swizzle=%u of %s", swizzle, name(why, t));
	return ir_get_stages(o) >= 1 || ir_verify_fail(why, "stages=%u", ir_get_stages(o));
}

static bool barriers_and_slot(const ir_op *o, unsigned at, text *why)
{
	const ir_op *made = ir_arg(o, at)->def;
	if (!made || made->kind != IR_MBARRIERS) return ir_verify_fail(why, "no barriers");
	return o->kind == IR_MBARRIERS_END ||
	       same(o, type(o, o->kind == IR_BULK_COPY ? 1 : at + 1), ir_scalar_type(SCALAR_I32), "slot", why);
}

/* Operands from that one on. */
static bool conditions(const ir_op *o, unsigned first, text *why)
{
	for (unsigned i = first; i < o->nargs; i++)
		if (!is_bool(type(o, i)) || type(o, i).rank)
			return ir_verify_fail(why, "%s is not a bool scalar", name(why, type(o, i)));
	return true;
}

/* multibuffer, slot, barriers, map, indices, perhaps the set. */
static bool rule_bulk_copy(const ir_op *o, text *why)
{
	unsigned indices_end = o->nargs - (ir_get_shares(o) > 1);
	if (o->nargs < 5) return ir_verify_fail(why, "%u operands", o->nargs);
	const ir_op *multibuffer = ir_arg(o, 0)->def, *map = ir_arg(o, 3)->def;
	if (!multibuffer || multibuffer->kind != IR_MULTIBUFFER || !map || map->kind != IR_TENSOR_MAP)
		return ir_verify_fail(why, "no multibuffer, or no tensor map");
	ir_type block = type(o, 0);
	if (block.elem != type(o, 3).elem || indices_end < 4u + block.rank || indices_end > 4u + IR_MAP_RANK)
		return ir_verify_fail(why, "%u operands for a block of type %s", o->nargs, name(why, block));
	for (unsigned i = 4; i < o->nargs; i++)
		if (!same(o, type(o, i), ir_scalar_type(SCALAR_I32), i < indices_end ? "index" : "set", why))
			return false;
	if (ir_get_part(o) > o->block->func->row_groups) return ir_verify_fail(why, "part %u", ir_get_part(o));
	return barriers_and_slot(o, 2, why);
}

/* An operand of wgmma, and its slot if it is a multibuffer; *t is it as [rows, columns]. */
static bool wgmma_operand(const ir_op *o, unsigned *at, bool transposed, ir_type *t, text *why)
{
	assert(*at <= o->nargs);
	if (*at >= o->nargs) return ir_verify_fail(why, "%u operands", o->nargs);
	const ir_value *v = ir_arg(o, (*at)++);
	bool multibuffer = v->def && v->def->kind == IR_MULTIBUFFER;
	*t = v->type;
	if (!is_number(*t) || t->rank < 2 || t->rank > 3)
		return ir_verify_fail(why, "operand of type %s", name(why, *t));
	unsigned m = t->rank - 2u;
	if (transposed && !multibuffer) return ir_verify_fail(why, "a tile that is no multibuffer is transposed");
	if (transposed) t->dim[m] = v->type.dim[m + 1], t->dim[m + 1] = v->type.dim[m];
	if (!multibuffer) return true;
	if (!ir_get_swizzle(v->def)) return ir_verify_fail(why, "the multibuffer is not for wgmma");
	if (*at >= o->nargs || type(o, *at).rank || type(o, *at).elem != SCALAR_I32 || !is_number(type(o, *at)))
		return ir_verify_fail(why, "no slot");
	(*at)++;
	return true;
}

static bool rule_wgmma(const ir_op *o, text *why)
{
	unsigned at = 0;
	ir_type a, b, r = o->results[0]->type;
	unsigned transposed = ir_get_transposed(o);
	if (transposed > 3) return ir_verify_fail(why, "transposed=%u", transposed);
	if (!wgmma_operand(o, &at, transposed & 1, &a, why) || !wgmma_operand(o, &at, transposed & 2, &b, why))
		return false;
	unsigned m = a.rank - 2u, n = a.rank - 1u;
	const ir_op *slots = ir_arg(o, at - 2)->def; /* of b, if it is a multibuffer: it may have more columns */
	bool wider = slots && slots->kind == IR_MULTIBUFFER && !(transposed & 2) && r.dim[n] < b.dim[n] && !m;
	bool fits = (a.elem == b.elem || (scalar_is_fp8(a.elem) && scalar_is_fp8(b.elem))) && a.rank == b.rank &&
		    a.dim[n] == b.dim[m] && is_number(r) && r.rank == a.rank && r.dim[m] == a.dim[m] &&
		    (r.dim[n] == b.dim[n] || wider) && (!m || (a.dim[0] == b.dim[0] && r.dim[0] == a.dim[0])) &&
		    r.elem == summed_in(a.elem);
	if (!fits)
		return ir_verify_fail(why, "%s and %s do not multiply to %s", name(why, a), name(why, b), name(why, r));
	if (o->nargs > at + 1) return ir_verify_fail(why, "%u operands", o->nargs);
	return o->nargs == at || same(o, type(o, at), r, "sum", why);
}

static bool rule_wgmma_wait(const ir_op *o, text *why)
{
	if (o->nargs != o->nresults) return ir_verify_fail(why, "%u results of %u operands", o->nresults, o->nargs);
	for (unsigned i = 0; i < o->nargs; i++)
		if (!same(o, o->results[i]->type, type(o, i), "result", why)) return false;
	return true;
}

static bool rule_warp_any(const ir_op *o, text *why)
{
	if (type(o, 0).rank == 0 || type(o, 0).pointer || type(o, 0).elem != SCALAR_BOOL)
		return ir_verify_fail(why, "%s is no tile of bool", name(why, type(o, 0)));
	return same(o, o->results[0]->type, ir_scalar_type(SCALAR_BOOL), "result", why);
}

static bool rule_fake_use(const ir_op *o, text *why)
{
	if (o->nargs == 0) return ir_verify_fail(why, "no operands");
	for (unsigned i = 0; i < o->nargs; i++) {
		unsigned bytes = type(o, i).pointer ? 8 : scalar_bytes(type(o, i).elem);
		if (type(o, i).rank == 0 || (bytes != 2 && bytes != 4))
			return ir_verify_fail(why, "%s is no tile of 2 or 4 bytes", name(why, type(o, i)));
	}
	return true;
}

static bool rule_sched_barrier(const ir_op *o, text *why)
{
	if (o->nargs == 0) return ir_verify_fail(why, "no operands");
	for (unsigned i = 0; i < o->nargs; i++) {
		ir_type t = type(o, i), element = ir_element(t);
		if (t.rank && ir_type_equal(element, ir_scalar_type(SCALAR_F32))) continue;
		if (!same(o, t, ir_scalar_type(SCALAR_I32), "operand", why)) return false;
	}
	return true;
}

static bool rule_if(const ir_op *o, text *why)
{
	if (!is_bool(type(o, 0)) || type(o, 0).rank)
		return ir_verify_fail(why, "the condition is %s", name(why, type(o, 0)));
	for (unsigned r = 0; r < 2; r++) {
		const ir_op *yield = o->regions[r]->last;
		if (o->regions[r]->nargs) return ir_verify_fail(why, "a region has block arguments");
		if (!types_match(yield->args, yield->nargs, o->results, o->nresults, "yield", why)) return false;
	}
	return true;
}

static bool rule_for(const ir_op *o, text *why)
{
	if (o->nargs < 3) return ir_verify_fail(why, "%u operands", o->nargs);
	ir_type i = type(o, 0);
	if (!is_integer(i) || i.rank) return ir_verify_fail(why, "the lower bound is %s", name(why, i));
	const ir_block *b = o->regions[0];
	if (!same(o, type(o, 1), i, "upper bound", why) || !same(o, type(o, 2), i, "step", why)) return false;
	if (b->nargs == 0) return ir_verify_fail(why, "no induction variable");
	return same(o, b->args[0]->type, i, "induction variable", why) &&
	       types_match(o->args + 3, o->nargs - 3u, o->results, o->nresults, "initial value", why) &&
	       block_args_match(b, 1, o->results, o->nresults, why) &&
	       types_match(b->last->args, b->last->nargs, o->results, o->nresults, "yield", why);
}

static bool rule_while(const ir_op *o, text *why)
{
	const ir_block *before = o->regions[0], *after = o->regions[1];
	const ir_op *c = before->last;
	if (before->nargs != o->nargs)
		return ir_verify_fail(why, "%u block arguments for %u operands", before->nargs, o->nargs);
	if (!types_match(o->args, o->nargs, before->args, before->nargs, "initial value", why)) return false;
	if (c->nargs == 0 || !is_bool(type(c, 0)) || type(c, 0).rank)
		return ir_verify_fail(why, "the condition is not a bool scalar");
	return types_match(c->args + 1, c->nargs - 1u, o->results, o->nresults, "condition", why) &&
	       block_args_match(after, 0, o->results, o->nresults, why) &&
	       types_match(after->last->args, after->last->nargs, before->args, before->nargs, "yield", why);
}

static bool rule_constant(const ir_op *o, text *why)
{
	ir_type r = o->results[0]->type;
	if (!is_number(r)) return ir_verify_fail(why, "%s is not a number", name(why, r));
	uint64_t bits = ir_get_value(o);
	return scalar_truncate(r.elem, bits) == bits ||
	       ir_verify_fail(why, "0x%llx does not fit %s", (unsigned long long)bits, scalar_name(r.elem));
}

static bool rule_source(const ir_op *o, text *why)
{
	ir_type r = o->results[0]->type;
	if (!is_number(r) || r.elem != SCALAR_I32 || r.rank != (o->kind == IR_ARANGE))
		return ir_verify_fail(why, "the result is %s", name(why, r));
	if (o->kind == IR_ARANGE)
		return (ir_get_lo(o) >= INT32_MIN && ir_get_lo(o) <= (int64_t)INT32_MAX - (int64_t)r.dim[0] + 1) ||
		       ir_verify_fail(why, "%lld.. does not fit i32", (long long)ir_get_lo(o));
	return o->kind == IR_CLUSTER_SIZE || o->kind == IR_ROW_GROUP || ir_get_axis(o) < 3 ||
	       ir_verify_fail(why, "axis %u", ir_get_axis(o));
}

static bool counts(const ir_op *o, text *why)
{
	const ir_op_info *i = ir_info(o);
	if (i->args != IR_ANY && o->nargs != i->args)
		return ir_verify_fail(why, "%u operands where %u belong", o->nargs, i->args);
	if (i->results != IR_ANY && o->nresults != i->results)
		return ir_verify_fail(why, "%u results where %u belong", o->nresults, i->results);
	if (i->regions != IR_ANY && o->nregions != i->regions)
		return ir_verify_fail(why, "%u regions where %u belong", o->nregions, i->regions);
	for (unsigned r = 0; r < o->nresults; r++)
		if (!ir_verify_type(o->results[r]->type, why)) return false;
	return true;
}

/* Each attribute in the range of its type. */
static bool attributes(const ir_op *o, text *why)
{
	for (uint64_t left = ir_info(o)->attributes; left; left &= left - 1) {
		const attribute_info *a = &ir_attributes[__builtin_ctzll(left)];
		attribute_range r = ir_attribute_range(a->type);
		int64_t v = o->attr[a->place];
		if (v < r.least || v > r.most) return ir_verify_fail(why, "%s=%lld", a->name, (long long)v);
	}
	return true;
}

/* ---- short rules ---- */

/* Operands and results of one type. */
#define ALL_SAME(rule, accepts, wanted)                                                                                \
	static bool rule_##rule(const ir_op *o, text *why)                                                             \
	{                                                                                                              \
		return all_same(o, accepts, wanted, why);                                                              \
	}
ALL_SAME(arithmetic, is_arithmetic, "an integer or a float that computes")
ALL_SAME(integer, is_integer, "an integer")
ALL_SAME(ordered, is_ordered, "a number that computes, or bool")
ALL_SAME(wide_float, is_wide_float, "f32 or f64")
ALL_SAME(high_half, has_high_half, "a 32- or 64-bit integer")
ALL_SAME(bits, is_bits, "an integer or bool")
ALL_SAME(floating, is_float, "f16, bf16, f32 or f64")
ALL_SAME(any, is_any, "")
#undef ALL_SAME

static bool rule_none(const ir_op *o, text *why)
{
	(void)o, (void)why;
	return true;
}

/* Terminators: with the operation whose region they end. */
#define rule_by_parent rule_none

static bool rule_atomic_rmw(const ir_op *o, text *why)
{
	return atomic(o, 1, why);
}

static bool rule_atomic_cas(const ir_op *o, text *why)
{
	return atomic(o, 2, why);
}

static bool rule_flip(const ir_op *o, text *why)
{
	if (ir_get_axis(o) >= type(o, 0).rank)
		return ir_verify_fail(why, "axis %u of %s", ir_get_axis(o), name(why, type(o, 0)));
	return same(o, o->results[0]->type, type(o, 0), "result", why);
}

static bool rule_join(const ir_op *o, text *why)
{
	return same(o, type(o, 0), type(o, 1), "operands", why) && halves(o, o->results[0]->type, type(o, 0), why);
}

static bool rule_split(const ir_op *o, text *why)
{
	return same(o, o->results[0]->type, o->results[1]->type, "results", why) &&
	       halves(o, type(o, 0), o->results[0]->type, why);
}

static bool rule_multibuffer_read(const ir_op *o, text *why)
{
	return multibuffer_and_slot(o, why) && same(o, o->results[0]->type, type(o, 0), "result", why);
}

static bool rule_mbarriers(const ir_op *o, text *why)
{
	return same(o, o->results[0]->type, ir_scalar_type(SCALAR_I32), "result", why);
}

static bool rule_mbarrier_expect(const ir_op *o, text *why)
{
	if (ir_get_bytes(o) >= 1 << 20) return ir_verify_fail(why, "bytes=%u", ir_get_bytes(o));
	return barriers_and_slot(o, 0, why);
}

static bool rule_mbarrier_wait(const ir_op *o, text *why)
{
	return barriers_and_slot(o, 0, why) && same(o, type(o, 2), ir_scalar_type(SCALAR_I32), "parity", why);
}

static bool rule_mbarrier_arrive(const ir_op *o, text *why)
{
	if (ir_get_programs(o) > 1 ? o->nargs != 4 : o->nargs < 2 || o->nargs > 3)
		return ir_verify_fail(why, "%u operands", o->nargs);
	return conditions(o, 2, why) && barriers_and_slot(o, 0, why);
}

/* scalars, slot of scalar_send and scalar_receive, and the number. */
static bool rule_scalar_slot(const ir_op *o, text *why)
{
	const ir_op *made = ir_arg(o, 0)->def;
	ir_type number = o->nresults ? o->results[0]->type : type(o, 2);
	if (!made || made->kind != IR_SCALARS) return ir_verify_fail(why, "of what is no room for scalars");
	if (!is_number(number) || number.rank) return ir_verify_fail(why, "the number is %s", name(why, number));
	return same(o, type(o, 1), ir_scalar_type(SCALAR_I32), "slot", why);
}

static bool rule_mbarriers_end(const ir_op *o, text *why)
{
	return barriers_and_slot(o, 0, why);
}

static bool rule_assume(const ir_op *o, text *why)
{
	return (is_bool(type(o, 0)) && type(o, 0).rank == 0) ||
	       ir_verify_fail(why, "%s is not a bool scalar", name(why, type(o, 0)));
}

static bool rule_assert(const ir_op *o, text *why)
{
	if (!o->text) return ir_verify_fail(why, "no text");
	return is_bool(type(o, 0)) || ir_verify_fail(why, "%s is not bool", name(why, type(o, 0)));
}

bool ir_verify_op(const ir_op *o, text *why)
{
	assert(o->kind < IR_KIND_COUNT);
	static bool (*const rules[IR_KIND_COUNT])(const ir_op *, text *) = {
#define OP(e, name, args, results, regions, flags, types, ...) rule_##types,
#include "ops.def"
#undef OP
	};
	return counts(o, why) && attributes(o, why) && rules[o->kind](o, why);
}
