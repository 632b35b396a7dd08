/* The tile IR's data structure: types, operations, use lists.  See ir.h; what an operation means stands in ops.def. */
#include "ir.h"

#include <stdio.h>
#include <string.h>

enum { /* ops.def writes the flags without their prefix */
	PURE = IR_PURE,
	FREE = IR_FREE,
	ELEMENTWISE = IR_ELEMENTWISE,
	COMMUTES = IR_COMMUTES,
	SHAPE = IR_SHAPE,
	MATH = IR_MATH,
	CONTROL = IR_CONTROL,
	TERMINATOR = IR_TERMINATOR,
	TILE = IR_TILE,
	MAPPED = IR_MAPPED,
	SCHEDULED = IR_SCHEDULED,
	BUILTIN = IR_BUILTIN,
	ANY = IR_ANY,
	NOTHING = IR_NOTHING, /* and what it says of memory */
	READS_GLOBAL = IR_READS_GLOBAL,
	WRITES_GLOBAL = IR_WRITES_GLOBAL,
	READS_SHARED = IR_READS_SHARED,
	WRITES_SHARED = IR_WRITES_SHARED,
	COPIES = IR_COPIES,
	ORDERS = IR_ORDERS,
	ACTS = IR_ACTS,
};

#define A(name) (UINT64_C(1) << IR_ATTR_##name)
#define POINTER(operand) ((operand) << IR_POINTER_SHIFT)
#define MASK(operand) ((operand) << IR_MASK_SHIFT)
const ir_op_info ir_ops[IR_KIND_COUNT] = {
#define OP(e, name, args, results, regions, flags, types, layouts, scratch, explain, memory, attributes, meaning)      \
	{name, args, results, regions, flags, IR_LAYOUTS_##layouts, memory, attributes, meaning},
#include "ops.def"
#undef OP
};
#undef MASK
#undef POINTER
#undef A

const char *const ir_combine_names[] = {
#define COMBINE(e, name, ...) name,
#include "combines.def"
#undef COMBINE
	"custom"};
const char *const ir_cache_names[] = {"none", "ca", "cg", "cs", "cv", "wb", "wt"};
const char *const ir_evict_names[] = {"none", "first", "normal", "last"};
const char *const ir_hint_names[] = {"multiple_of", "max_contiguous", "max_constancy"};
const char *const ir_level_names[] = {"tile", "mapped", "scheduled"}; /* ORDER ir_level */
const char *const ir_rmw_names[] = {"add", "max", "min", "and", "or", "xor", "xchg"};
const char *const ir_sem_names[] = {"relaxed", "acquire", "release", "acq_rel"};
const char *const ir_scope_names[] = {"cta", "gpu", "sys"};
const char *const ir_precision_names[] = {"tf32", "tf32x3", "ieee"};
const char *const ir_partition_names[] = {"consumer", "producer"};
const char *const ir_proxy_names[] = {"none", "shared", "all"};

bool ir_same_shape(ir_type a, ir_type b)
{
	assert(a.rank <= IR_MAX_RANK);
	return a.rank == b.rank && memcmp(a.dim, b.dim, a.rank * sizeof a.dim[0]) == 0;
}

bool ir_type_equal(ir_type a, ir_type b)
{
	return a.elem == b.elem && a.pointer == b.pointer && ir_same_shape(a, b);
}

uint64_t ir_elements(ir_type t)
{
	assert(t.rank <= IR_MAX_RANK);
	uint64_t n = 1;
	for (unsigned i = 0; i < t.rank; i++) n *= t.dim[i];
	return n;
}

ir_type ir_scalar_type(scalar s)
{
	assert(s < SCALAR_COUNT);
	return (ir_type){.elem = (uint8_t)s};
}

ir_type ir_tile_type(scalar s, unsigned rank, const uint32_t *dim)
{
	assert(rank <= IR_MAX_RANK);
	ir_type t = {.elem = (uint8_t)s, .rank = (uint8_t)rank};
	for (unsigned i = 0; i < rank; i++) t.dim[i] = dim[i];
	return t;
}

ir_type ir_with_elem(ir_type t, scalar s)
{
	t.elem = (uint8_t)s;
	t.pointer = IR_NUMBER;
	return t;
}

ir_type ir_with_shape(ir_type elem, ir_type shape)
{
	shape.elem = elem.elem;
	shape.pointer = elem.pointer;
	return shape;
}

ir_type ir_element(ir_type t)
{
	return (ir_type){.elem = t.elem, .pointer = t.pointer};
}

typedef enum identity { ZERO, ONE, LEAST, MOST, LOWEST, HIGHEST, ONES } identity;

typedef struct combine_info {
	ir_kind kind;
	ir_combinable types;
	identity identity;
	bool repeats;
} combine_info;
static const combine_info combines[] = {
#define COMBINE(e, name, operation, types, identity, repeats)                                                          \
	{IR_##operation, IR_COMBINABLE_##types, identity, repeats},
#include "combines.def"
#undef COMBINE
};

ir_kind ir_combines_by(ir_combine how)
{
	assert(how < IR_CUSTOM);
	return combines[how].kind;
}

ir_combinable ir_combinable_types(ir_combine how)
{
	assert(how < IR_CUSTOM);
	return combines[how].types;
}

bool ir_repeats(ir_combine how)
{
	return how < IR_CUSTOM && combines[how].repeats;
}

uint64_t ir_identity(ir_combine how, scalar s)
{
	assert(how < IR_CUSTOM);
	bool is_float = scalar_is_float(s);
	uint64_t all = scalar_truncate(s, UINT64_MAX), sign = scalar_is_signed(s) ? all & ~(all >> 1) : 0;
	switch (combines[how].identity) {
	case ONE: return is_float ? scalar_from_double(s, 1.0) : 1;
	case LEAST: return is_float ? scalar_from_double(s, __builtin_nan("")) : sign;
	case MOST: return is_float ? scalar_from_double(s, __builtin_nan("")) : all & ~sign;
	case LOWEST: return scalar_from_double(s, -__builtin_inf());
	case HIGHEST: return scalar_from_double(s, __builtin_inf());
	case ONES: return all;
	default: return is_float ? sign : 0;
	}
}

unsigned ir_element_bytes(ir_type t)
{
	return t.pointer ? 8 : scalar_bytes(t.elem);
}

void ir_type_print(text *out, ir_type t)
{
	const char *star = t.pointer == IR_POINTER ? "*" : t.pointer ? "*const " : "";
	bool parens = t.pointer && t.rank;
	text_printf(out, "%s%s%s%s", parens ? "(" : "", star, scalar_name(t.elem), parens ? ")" : "");
	for (unsigned i = 0; i < t.rank; i++) text_printf(out, "%s%u", i ? "," : "[", t.dim[i]);
	if (t.rank) text_puts(out, "]");
}

const char *ir_type_name(arena *a, ir_type t)
{
	text out = {.arena = a};
	ir_type_print(&out, t);
	return out.at;
}

ir_func *ir_func_new(arena *a, const char *name)
{
	ir_func *f = ARENA_NEW(a, ir_func);
	f->arena = a;
	f->name = name;
	f->num_warps = 4;
	f->num_stages = 3;
	f->num_ctas = 1;
	f->row_groups = 1;
	f->max_registers = f->max_spills = f->max_shared = UINT32_MAX;
	f->launch_pdl = 1;
	f->body = ir_block_new(f, NULL);
	return f;
}

static ir_value *new_value(ir_func *f, ir_type type)
{
	assert(f->nvalues < UINT32_MAX);
	ir_value *v = ARENA_NEW(f->arena, ir_value);
	v->type = type;
	v->id = f->nvalues++;
	return v;
}

/* Room for one more in an array that began empty: doubles whenever the count is a power of two. */
static void *grow(arena *a, void *at, uint32_t n, size_t size)
{
	if (n & (n - 1)) return at;
	return arena_grow(a, at, n * size, (n ? 2 * (size_t)n : 1) * size);
}

ir_value *ir_add_param(ir_func *f, const char *name, ir_type type, span at)
{
	(void)at;
	assert(f->nparams == f->body->nargs);
	f->params = grow(f->arena, f->params, f->nparams, sizeof *f->params);
	f->params[f->nparams++] = (ir_param){.name = name, .type = type, .divisible = 1};
	return ir_block_arg(f->body, type, name);
}

ir_block *ir_block_new(ir_func *f, ir_op *parent)
{
	ir_block *b = ARENA_NEW(f->arena, ir_block);
	b->func = f;
	b->parent = parent;
	return b;
}

ir_value *ir_block_arg(ir_block *b, ir_type type, const char *name)
{
	ir_value *v = new_value(b->func, type);
	v->block = b;
	v->index = b->nargs;
	v->name = name;
	b->args = grow(b->func->arena, b->args, b->nargs, sizeof *b->args);
	b->args[b->nargs++] = v;
	return v;
}

void ir_block_remove_arg(ir_block *b, uint32_t index)
{
	assert(index < b->nargs && !b->args[index]->uses);
	for (uint32_t i = index; i + 1 < b->nargs; i++) {
		b->args[i] = b->args[i + 1];
		b->args[i]->index = i;
	}
	b->nargs--;
}

static void link_use(ir_use *u, ir_value *v)
{
	assert(v && !u->value);
	u->value = v;
	u->prev = NULL;
	u->next = v->uses;
	if (v->uses) v->uses->prev = u;
	v->uses = u;
}

static void unlink_use(ir_use *u)
{
	assert(u->prev ? u->prev->next == u : u->value->uses == u);
	if (u->prev)
		u->prev->next = u->next;
	else
		u->value->uses = u->next;
	if (u->next) u->next->prev = u->prev;
	u->value = NULL;
	u->prev = u->next = NULL;
}

static void insert(ir_op *o, ir_block *b, ir_op *before)
{
	assert(!o->block && (!before || before->block == b));
	o->block = b;
	o->next = before;
	o->prev = before ? before->prev : b->last;
	if (o->prev)
		o->prev->next = o;
	else
		b->first = o;
	if (before)
		before->prev = o;
	else
		b->last = o;
}

static void detach(ir_op *o)
{
	assert(o->block && (o->prev ? o->prev->next == o : o->block->first == o));
	if (o->prev)
		o->prev->next = o->next;
	else
		o->block->first = o->next;
	if (o->next)
		o->next->prev = o->prev;
	else
		o->block->last = o->prev;
	o->prev = o->next = NULL;
	o->block = NULL;
}

ir_op *ir_build(ir_builder *b, ir_kind kind, unsigned nargs, ir_value *const *args, unsigned nresults,
	const ir_type *results, unsigned nregions)
{
	assert(kind < IR_KIND_COUNT && b->block->func == b->func);
	assert(nargs <= UINT16_MAX && nresults <= UINT16_MAX && nregions <= UINT16_MAX);
	arena *a = b->func->arena;
	ir_op *o = ARENA_NEW(a, ir_op);
	o->kind = kind;
	o->at = b->at;
	o->nargs = (uint16_t)nargs;
	o->nresults = (uint16_t)nresults;
	o->nregions = (uint16_t)nregions;
	o->args = ARENA_ARRAY(a, ir_use *, nargs);
	o->results = ARENA_ARRAY(a, ir_value *, nresults);
	o->regions = ARENA_ARRAY(a, ir_block *, nregions);
	for (unsigned i = 0; i < nargs; i++) {
		o->args[i] = ARENA_NEW(a, ir_use);
		o->args[i]->user = o;
		link_use(o->args[i], args[i]);
	}
	for (unsigned i = 0; i < nresults; i++) {
		o->results[i] = new_value(b->func, results[i]);
		o->results[i]->def = o;
		o->results[i]->index = i;
	}
	for (unsigned i = 0; i < nregions; i++) o->regions[i] = ir_block_new(b->func, o);
	insert(o, b->block, b->before);
	return o;
}

ir_value *ir_build1(ir_builder *b, ir_kind kind, ir_type result, unsigned nargs, ir_value *const *args)
{
	return ir_build(b, kind, nargs, args, 1, &result, 0)->results[0];
}

ir_value *ir_unary(ir_builder *b, ir_kind kind, ir_value *a)
{
	return ir_build1(b, kind, a->type, 1, &a);
}

ir_value *ir_binary(ir_builder *b, ir_kind kind, ir_value *x, ir_value *y)
{
	assert(ir_same_shape(x->type, y->type));
	bool comparison = ir_is_comparison(kind);
	ir_value *args[] = {x, y};
	return ir_build1(b, kind, comparison ? ir_with_elem(x->type, SCALAR_BOOL) : x->type, 2, args);
}

ir_value *ir_constant(ir_builder *b, ir_type type, uint64_t bits)
{
	assert(!type.pointer && scalar_truncate((scalar)type.elem, bits) == bits);
	ir_op *o = ir_build(b, IR_CONST, 0, NULL, 1, &type, 0);
	ir_set_value(o, bits);
	return o->results[0];
}

ir_value *ir_constant_int(ir_builder *b, scalar s, int64_t v)
{
	return ir_constant(b, ir_scalar_type(s), scalar_truncate(s, (uint64_t)v));
}

ir_value *ir_convert(ir_builder *b, ir_value *v, scalar to)
{
	return v->type.elem == to ? v : ir_build1(b, IR_CONVERT, ir_with_elem(v->type, to), 1, &v);
}

ir_value *ir_splat(ir_builder *b, ir_value *v, ir_type shape)
{
	assert(ir_is_scalar(v));
	if (shape.rank == 0) return v;
	return ir_build1(b, IR_SPLAT, ir_with_shape(v->type, shape), 1, &v);
}

void ir_yield(ir_builder *b, unsigned n, ir_value *const *v)
{
	ir_build(b, IR_YIELD, n, v, 0, NULL, 0);
}

void ir_set_arg(ir_op *o, unsigned i, ir_value *v)
{
	assert(i < o->nargs);
	if (o->args[i]->value == v) return;
	unlink_use(o->args[i]);
	link_use(o->args[i], v);
}

void ir_add_arg(ir_func *f, ir_op *o, ir_value *v)
{
	assert(o->nargs < UINT16_MAX);
	o->args = arena_grow(f->arena, o->args, o->nargs * sizeof *o->args, (o->nargs + 1u) * sizeof *o->args);
	ir_use *u = ARENA_NEW(f->arena, ir_use);
	u->user = o;
	link_use(u, v);
	o->args[o->nargs++] = u;
}

ir_value *ir_add_result(ir_func *f, ir_op *o, ir_type type)
{
	assert(o->nresults < UINT16_MAX);
	o->results = arena_grow(
		f->arena, o->results, o->nresults * sizeof *o->results, (o->nresults + 1u) * sizeof *o->results);
	ir_value *v = new_value(f, type);
	v->def = o;
	v->index = o->nresults;
	o->results[o->nresults++] = v;
	return v;
}

void ir_remove_arg(ir_op *o, unsigned i)
{
	assert(i < o->nargs);
	unlink_use(o->args[i]);
	for (; i + 1u < o->nargs; i++) o->args[i] = o->args[i + 1];
	o->nargs--;
}

void ir_remove_result(ir_op *o, unsigned i)
{
	assert(i < o->nresults && !o->results[i]->uses);
	for (; i + 1u < o->nresults; i++) {
		o->results[i] = o->results[i + 1];
		o->results[i]->index = i;
	}
	o->nresults--;
}

void ir_replace(ir_value *old, ir_value *with)
{
	assert(ir_type_equal(old->type, with->type));
	if (old == with) return;
	while (old->uses) {
		ir_use *u = old->uses;
		unlink_use(u);
		link_use(u, with);
	}
	if (!with->name) with->name = old->name;
}

static void drop_uses(ir_op *o)
{
	for (unsigned i = 0; i < o->nargs; i++)
		if (o->args[i]->value) unlink_use(o->args[i]);
	for (unsigned r = 0; r < o->nregions; r++)
		for (ir_op *p = o->regions[r]->first; p; p = p->next) drop_uses(p);
}

void ir_erase(ir_op *o)
{
	drop_uses(o);
	for (unsigned i = 0; i < o->nresults; i++) assert(!o->results[i]->uses);
	detach(o);
}

void ir_move_before(ir_op *o, ir_block *b, ir_op *before)
{
	if (o == before) return;
	detach(o);
	insert(o, b, before);
}

void ir_copy_attributes(ir_op *to, const ir_op *from)
{
	assert(to->kind == from->kind);
	memcpy(to->attr, from->attr, sizeof to->attr);
	to->text = from->text;
	to->map = from->map;
}

static ir_op *clone(ir_builder *b, const ir_op *o, ir_value **map, uint32_t known)
{
	arena *a = b->func->arena;
	ir_value **args = ARENA_ARRAY(a, ir_value *, o->nargs);
	ir_type *types = ARENA_ARRAY(a, ir_type, o->nresults);
	for (unsigned i = 0; i < o->nargs; i++) {
		ir_value *v = o->args[i]->value;
		args[i] = v->id < known ? ir_mapped(map, v) : v;
	}
	for (unsigned i = 0; i < o->nresults; i++) types[i] = o->results[i]->type;
	ir_op *n = ir_build(b, o->kind, o->nargs, args, o->nresults, types, o->nregions);
	ir_copy_attributes(n, o);
	n->at = o->at;
	for (unsigned i = 0; i < o->nresults; i++) {
		n->results[i]->name = o->results[i]->name;
		n->results[i]->layout = o->results[i]->layout;
		map[o->results[i]->id] = n->results[i];
	}
	for (unsigned r = 0; r < o->nregions; r++) {
		const ir_block *from = o->regions[r];
		for (uint32_t i = 0; i < from->nargs; i++) {
			ir_value *v = ir_block_arg(n->regions[r], from->args[i]->type, from->args[i]->name);
			v->layout = from->args[i]->layout;
			map[from->args[i]->id] = v;
		}
		ir_builder inner = {.func = b->func, .block = n->regions[r], .at = b->at};
		for (const ir_op *p = from->first; p; p = p->next) clone(&inner, p, map, known);
	}
	return n;
}

ir_op *ir_clone(ir_builder *b, const ir_op *o, ir_value **map)
{
	return clone(b, o, map, b->func->nvalues);
}

bool ir_is_const(const ir_value *v, uint64_t *bits)
{
	if (!v->def || v->def->kind != IR_CONST) return false;
	*bits = ir_get_value(v->def);
	return true;
}

bool ir_is_const_int(const ir_value *v, int64_t *out)
{
	uint64_t bits;
	if (v->type.pointer || scalar_is_float(v->type.elem) || !ir_is_const(v, &bits)) return false;
	*out = scalar_sign_extend(v->type.elem, bits);
	return true;
}

bool ir_is_one(const ir_value *v)
{
	int64_t n;
	return ir_is_const_int(v, &n) && n == 1;
}

ir_op *ir_loop_around(const ir_op *o)
{
	ir_op *loop = o->block->parent;
	while (loop && !ir_is_loop(loop)) loop = loop->block->parent;
	return loop;
}

static bool is_empty(const ir_block *b)
{
	return b->first == b->last;
}

bool ir_is_tail(const ir_func *f, const ir_block *b)
{
	for (;;) {
		const ir_op *o = b->parent;
		if (!o) return b == f->body;
		if (o->kind == IR_PARTITIONS) return o->regions[0] == b;
		if (o->kind != IR_IF || o->next != o->block->last || !is_empty(o->regions[o->regions[0] == b]))
			return false;
		b = o->block;
	}
}

ir_op *ir_in_block(const ir_block *b, ir_op *o)
{
	while (o && o->block != b) o = o->block->parent;
	return o;
}

bool ir_precedes(const ir_op *a, const ir_op *b)
{
	for (; a; a = a->next)
		if (a == b) return true;
	return false;
}

bool ir_counts_upwards(const ir_op *loop)
{
	assert(loop->kind == IR_FOR);
	int64_t step;
	return ir_arg(loop, 0)->type.elem == SCALAR_I32 && ir_is_const_int(ir_arg(loop, 2), &step) && step > 0;
}

bool ir_encloses(const ir_op *outer, const ir_op *o)
{
	while (o && o != outer) o = o->block->parent;
	return o != NULL;
}

bool ir_leads_to_product(const ir_block *b, const ir_value *v, unsigned steps)
{
	for (const ir_use *u = v->uses; u && steps; u = u->next, steps--) {
		const ir_op *o = u->user;
		if (o->block != b) continue;
		if (o->kind == IR_DOT || o->kind == IR_WGMMA) return true;
		if (!ir_has(o, IR_ELEMENTWISE | IR_SHAPE) && o->kind != IR_CONVERT_LAYOUT) continue;
		if (ir_leads_to_product(b, o->results[0], steps - 1)) return true;
	}
	return false;
}

bool ir_defined_outside(const ir_value *v, const ir_op *loop)
{
	if (!loop) return true;
	const ir_block *b = v->def ? v->def->block : v->block;
	for (; b; b = b->parent ? b->parent->block : NULL)
		for (unsigned r = 0; r < loop->nregions; r++)
			if (loop->regions[r] == b) return false;
	return true;
}

void ir_walk(ir_block *b, void (*visit)(ir_op *, void *), void *context)
{
	for (ir_op *o = b->first, *next; o; o = next) {
		next = o->next;
		visit(o, context);
		assert(!next || next->block == b);
		if (o->block == b)
			for (unsigned r = 0; r < o->nregions; r++) ir_walk(o->regions[r], visit, context);
	}
}
