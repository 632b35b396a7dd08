/* load, store and the atomics on pointers.
 *
 * The pointer decides the shape: mask, `other` and the stored value stretch to it, never the other way round, and
 * numbers convert to the pointer's element type by themselves.  Loads and stores of a block pointer are in
 * builtins_tensor.c.  What each atomic accepts is one row of a table. */
#include "builtins_util.h"

static const char *const load_caches[] = {"ca", "cg", "cs", "cv"};
static const ir_cache load_cache_values[] = {IR_CACHE_CA, IR_CACHE_CG, IR_CACHE_CS, IR_CACHE_CV};
static const char *const store_caches[] = {"wb", "cg", "cs", "wt"};
static const ir_cache store_cache_values[] = {IR_CACHE_WB, IR_CACHE_CG, IR_CACHE_CS, IR_CACHE_WT};
static const char *const evicts[] = {"first", "normal", "last"};
static const ir_evict evict_values[] = {IR_EVICT_FIRST, IR_EVICT_NORMAL, IR_EVICT_LAST};

/* The pointer argument, always number 0. */
static ir_value *pointer(sema *s, const builtin_call *c, bool written)
{
	ir_type t;
	if (!sval_type_of(c->args[0], &t) || !t.pointer) {
		diag *d = builtin_needs(s, c, 0, "a pointer");
		if (c->args[0].kind == SVAL_TENSOR)
			diag_set_hint(
				s->diags, d, "a tensor is accessed by A.load([i, j], [BM, BN]) and A.store([i, j], v)");
		else if (sval_type_of(c->args[0], &t) && (t.elem == SCALAR_I64 || t.elem == SCALAR_U64))
			diag_set_hint(s->diags, d, "an address becomes a pointer by a cast: address.to(*f32)");
		else if (sval_type_of(c->args[0], &t) && scalar_is_integer((scalar)t.elem))
			diag_set_hint(s->diags, d, "offsets are added to a pointer: x + offsets");
		return NULL;
	}
	if (written && t.pointer == IR_CONST_POINTER) {
		diag *d = sema_diag(s, 505, c->arg_at[0], "'%s' through %s: nothing writes this memory",
			c->builtin->name, sema_type_text(s, c->args[0]));
		diag_set_hint(s->diags, d, "declare the parameter as *%s, without const", scalar_name((scalar)t.elem));
		return NULL;
	}
	return sema_value(s, c->args[0], "the pointer");
}

static bool evict_option(sema *s, const builtin_call *c, unsigned arg, int64_t *out)
{
	unsigned which = 0;
	if (!builtin_choice(s, c, arg, evicts, 3, "'evict'", &which)) return false;
	*out = sval_is_none(c->args[arg]) ? IR_EVICT_NONE : evict_values[which];
	return true;
}

static sval builtin_load(sema *s, const builtin_call *c)
{
	enum { POINTER, MASK, OTHER, CACHE, EVICT, VOLATILE };
	if (c->args[0].kind == SVAL_BLOCK_PTR) return builtin_load_block(s, c);
	ir_value *args[3];
	unsigned n = 0, cache = 0;
	bool is_volatile = false;
	int64_t evict;
	if (!(args[n++] = pointer(s, c, false))) return sval_poison(c->at);
	ir_type t = ir_with_elem(args[0]->type, (scalar)args[0]->type.elem);
	if (!sval_is_none(c->args[MASK]) && !(args[n++] = sema_as_mask(s, c->args[MASK], t, "the mask")))
		return sval_poison(c->at);
	if (!sval_is_none(c->args[OTHER])) {
		if (n == 1) {
			diag *d = sema_diag(s, 506, c->arg_at[OTHER], "'other' without a mask is never read");
			diag_set_hint(s->diags, d, "add 'mask = ..', or leave 'other' out");
			return sval_poison(c->at);
		}
		if (!(args[n++] = sema_store_value(s, c->args[OTHER], (scalar)t.elem, t, "other")))
			return sval_poison(c->at);
	}
	if (!builtin_choice(s, c, CACHE, load_caches, 4, "'cache'", &cache) || !evict_option(s, c, EVICT, &evict) ||
		!builtin_flag(s, c, VOLATILE, "volatile", &is_volatile))
		return sval_poison(c->at);
	ir_op *o = ir_build(&s->b, IR_LOAD, n, args, 1, &t, 0);
	ir_set_cache(o, sval_is_none(c->args[CACHE]) ? IR_CACHE_NONE : load_cache_values[cache]);
	ir_set_evict(o, evict);
	ir_set_volatile(o, is_volatile);
	return sval_value(ir_result(o), c->at);
}

static sval builtin_store(sema *s, const builtin_call *c)
{
	enum { POINTER, VALUE, MASK, CACHE, EVICT };
	if (c->args[0].kind == SVAL_BLOCK_PTR) return builtin_store_block(s, c);
	ir_value *args[3];
	unsigned n = 0, cache = 0;
	int64_t evict;
	if (!(args[n++] = pointer(s, c, true))) return sval_poison(c->at);
	ir_type t = args[0]->type;
	if (!(args[n++] = sema_store_value(s, c->args[VALUE], (scalar)t.elem, t, "the stored value")))
		return sval_poison(c->at);
	if (!sval_is_none(c->args[MASK]) && !(args[n++] = sema_as_mask(s, c->args[MASK], t, "the mask")))
		return sval_poison(c->at);
	if (!builtin_choice(s, c, CACHE, store_caches, 4, "'cache'", &cache) || !evict_option(s, c, EVICT, &evict))
		return sval_poison(c->at);
	ir_op *o = ir_build(&s->b, IR_STORE, n, args, 0, NULL, 0);
	ir_set_cache(o, sval_is_none(c->args[CACHE]) ? IR_CACHE_NONE : store_cache_values[cache]);
	ir_set_evict(o, evict);
	return sval_void(c->at);
}

/* ---- atomics ---- */

#define BIT(S) (1u << SCALAR_##S)
enum {
	WORDS = BIT(I32) | BIT(U32) | BIT(I64) | BIT(U64),
	FLOATS = BIT(F32) | BIT(F64),
	INTEGERS = WORDS | BIT(I8) | BIT(I16) | BIT(U8) | BIT(U16),
};
/* ORDER IR_ATOMIC */
static const struct {
	unsigned types;
	const char *text;
} atomic_types[] = {
	{WORDS | FLOATS | BIT(F16) | BIT(BF16), "i32 i64 u32 u64 f16 bf16 f32 f64"},
	{WORDS | FLOATS, "i32 i64 u32 u64 f32 f64"},
	{WORDS | FLOATS, "i32 i64 u32 u64 f32 f64"},
	{INTEGERS, "integers"},
	{INTEGERS, "integers"},
	{INTEGERS, "integers"},
	{WORDS | FLOATS, "i32 i64 u32 u64 f32 f64"},
	{WORDS | FLOATS, "i32 i64 u32 u64 f32 f64"},
};

static bool ordering(sema *s, const builtin_call *c, unsigned arg, int64_t *order, int64_t *scope)
{
	static const char *const orders[] = {"relaxed", "acquire", "release", "acq_rel"}; /* ORDER IR_ORDERING */
	static const char *const scopes[] = {"cta", "gpu", "sys"};                        /* ORDER IR_SCOPE */
	unsigned o = IR_ACQ_REL, p = IR_SCOPE_GPU;
	if (!builtin_choice(s, c, arg, orders, 4, "'sem'", &o) ||
		!builtin_choice(s, c, arg + 1, scopes, 3, "'scope'", &p))
		return false;
	*order = o;
	*scope = p;
	return true;
}

static ir_value *atomic_pointer(sema *s, const builtin_call *c)
{
	ir_value *p = pointer(s, c, true);
	if (!p) return NULL;
	if (atomic_types[c->builtin->which].types & 1u << p->type.elem) return p;
	diag *d = sema_diag(s, 507, c->arg_at[0], "'%s' does not exist for %s", c->builtin->name,
		scalar_name((scalar)p->type.elem));
	diag_set_hint(s->diags, d, "it works on %s", atomic_types[c->builtin->which].text);
	return NULL;
}

static sval builtin_atomic(sema *s, const builtin_call *c)
{
	enum { POINTER, VALUE, MASK, ORDER, SCOPE };
	ir_value *args[3];
	unsigned n = 0;
	int64_t order, scope;
	if (!(args[n++] = atomic_pointer(s, c))) return sval_poison(c->at);
	ir_type t = ir_with_elem(args[0]->type, (scalar)args[0]->type.elem);
	if (!(args[n++] = sema_store_value(s, c->args[VALUE], (scalar)t.elem, t, "the value")))
		return sval_poison(c->at);
	if (!sval_is_none(c->args[MASK]) && !(args[n++] = sema_as_mask(s, c->args[MASK], t, "the mask")))
		return sval_poison(c->at);
	if (!ordering(s, c, ORDER, &order, &scope)) return sval_poison(c->at);
	ir_op *o = ir_build(&s->b, IR_ATOMIC_RMW, n, args, 1, &t, 0);
	ir_set_rmw(o, c->builtin->which);
	ir_set_sem(o, order);
	ir_set_scope(o, scope);
	return sval_value(ir_result(o), c->at);
}

static sval builtin_atomic_cas(sema *s, const builtin_call *c)
{
	enum { POINTER, COMPARE, VALUE, MASK, ORDER, SCOPE };
	ir_value *args[4];
	unsigned n = 0;
	int64_t order, scope;
	if (!(args[n++] = atomic_pointer(s, c))) return sval_poison(c->at);
	ir_type t = ir_with_elem(args[0]->type, (scalar)args[0]->type.elem);
	if (!(args[n++] = sema_store_value(s, c->args[COMPARE], (scalar)t.elem, t, "the expected value")) ||
		!(args[n++] = sema_store_value(s, c->args[VALUE], (scalar)t.elem, t, "the value")))
		return sval_poison(c->at);
	if (!sval_is_none(c->args[MASK]) && !(args[n++] = sema_as_mask(s, c->args[MASK], t, "the mask")))
		return sval_poison(c->at);
	if (!ordering(s, c, ORDER, &order, &scope)) return sval_poison(c->at);
	ir_op *o = ir_build(&s->b, IR_ATOMIC_CAS, n, args, 1, &t, 0);
	ir_set_sem(o, order);
	ir_set_scope(o, scope);
	return sval_value(ir_result(o), c->at);
}

const builtin sema_memory_builtins[] = {
	{"load", "p mask? other? cache? evict? volatile?", 0, builtin_load, 0},
	{"store", "p v mask? cache? evict?", 0, builtin_store, 0},
	{"atomic_add", "p v mask? sem? scope?", 0, builtin_atomic, IR_ATOMIC_ADD},
	{"atomic_max", "p v mask? sem? scope?", 0, builtin_atomic, IR_ATOMIC_MAX},
	{"atomic_min", "p v mask? sem? scope?", 0, builtin_atomic, IR_ATOMIC_MIN},
	{"atomic_and", "p v mask? sem? scope?", 0, builtin_atomic, IR_ATOMIC_AND},
	{"atomic_or", "p v mask? sem? scope?", 0, builtin_atomic, IR_ATOMIC_OR},
	{"atomic_xor", "p v mask? sem? scope?", 0, builtin_atomic, IR_ATOMIC_XOR},
	{"atomic_xchg", "p v mask? sem? scope?", 0, builtin_atomic, IR_ATOMIC_XCHG},
	{"atomic_cas", "p cmp v mask? sem? scope?", 0, builtin_atomic_cas, IR_ATOMIC_XCHG + 1},
	{0},
};
