/* Scopes, slots and the lookup of names.
 *
 * A table leads from each interned name to its innermost binding, and each binding to the one that it hides, so lookup
 * takes constant time and closing a block undoes exactly what the block bound.  A binding of a caller's frame is
 * invisible to the function that is being inlined.  Mutable variables live in slots: an array of svals that branches
 * save, restore and merge. */
#include "internal.h"

#include <assert.h>
#include <string.h>

void sema_init(sema *s, sema_program *p, const sema_request *request, ir_func *func)
{
	*s = (sema){.arena = p->arena, .diags = p->diags, .func = func};
	s->b = (ir_builder){.func = func, .block = func->body};
	s->private = ARENA_NEW(p->arena, struct sema_private);
	s->private->program = p;
	s->private->request = request;
}

scope_mark scope_open(sema *s)
{
	struct sema_private *p = s->private;
	scope_mark m = {p->bindings.n, p->slots.n, p->scope, p->block_slots};
	p->scope = ++p->next_scope;
	p->block_slots = p->slots.n;
	return m;
}

/* Keeps the places of a name that goes: those of both arms of an `if`, or the one before. */
static void remember_closed(sema *s, const binding *b)
{
	struct sema_private *p = s->private;
	closed_name *c = name_table_find(&p->closed, b->name);
	if (!c) {
		c = ARENA_NEW(s->arena, closed_name);
		name_table_set(s->arena, &p->closed, b->name, c);
	}
	if (c->frame != b->frame) *c = (closed_name){.frame = b->frame};
	for (uint32_t i = 0; i < c->n; i++)
		if (c->at[i].begin == b->at.begin) return; /* an unrolled loop's */
	if (c->n == 2) c->at[0] = c->at[1], c->n = 1;
	c->at[c->n++] = b->at;
}

void scope_close(sema *s, scope_mark m)
{
	struct sema_private *p = s->private;
	assert(p->bindings.n >= m.bindings && p->slots.n >= m.slots);
	while (p->bindings.n > m.bindings) {
		binding *b = p->bindings.at[--p->bindings.n];
		name_table_set(s->arena, &p->names, b->name, b->hidden);
		if (b->kind != BINDING_PARAMETER) remember_closed(s, b);
	}
	p->slots.n = m.slots;
	p->scope = m.scope;
	p->block_slots = m.block_slots;
}

uint32_t slot_new(sema *s, sval value)
{
	struct sema_private *p = s->private;
	vec_push(s->arena, &p->slots, value);
	if (p->stamps.n < p->slots.n) vec_push(s->arena, &p->stamps, 0);
	return p->slots.n - 1;
}

void slot_set(sema *s, uint32_t slot, sval value)
{
	struct sema_private *p = s->private;
	assert(slot < p->slots.n);
	vec_push(s->arena, &p->log, ((slot_change){slot, p->slots.at[slot]}));
	p->slots.at[slot] = value;
}

binding *scope_find(sema *s, const char *name)
{
	binding *b = name_table_find(&s->private->names, name);
	return b && s->private->frame && b->frame == s->private->frame->id ? b : NULL;
}

binding *scope_bind(sema *s, const char *name, span at, binding_kind kind, sval value)
{
	assert(name);
	struct sema_private *p = s->private;
	binding *old = scope_find(s, name);
	bool reported = kind == BINDING_PARAMETER; /* when the file was loaded */
	if (old && old->scope == p->scope && !reported) {
		diag *d = sema_diag(s, 202, at, "'%s' is declared twice in one block", name);
		diag_add_label(s->diags, d, old->at, "first declared here");
	}
	binding *b = ARENA_NEW(s->arena, binding);
	*b = (binding){.name = name,
		.at = at,
		.kind = kind,
		.frame = p->frame ? p->frame->id : 0,
		.scope = p->scope,
		.value = value};
	b->hidden = name_table_find(&p->names, name);
	if (kind == BINDING_VAR) b->slot = slot_new(s, value);
	vec_push(s->arena, &p->bindings, b);
	name_table_set(s->arena, &p->names, name, b);
	sema_note_binding(s, at, value);
	return b;
}

/* Every name that could have been meant here, for "did you mean". */
static const char *nearest_visible(sema *s, const char *name)
{
	struct sema_private *p = s->private;
	VEC(const char *) v = {0};
	for (uint32_t i = p->bindings.n; i-- > 0;)
		if (p->frame && p->bindings.at[i]->frame == p->frame->id)
			vec_push(s->arena, &v, p->bindings.at[i]->name);
	for (uint32_t i = 0; i < p->program->declarations.n; i++)
		vec_push(s->arena, &v, p->program->declarations.at[i]->name);
	for (uint32_t i = 0; i < p->program->library_declarations.n; i++)
		vec_push(s->arena, &v, p->program->library_declarations.at[i]->name);
	size_t n;
	const char *const *builtins = sema_builtin_names(s->arena, &n);
	for (size_t i = 0; i < n; i++) vec_push(s->arena, &v, builtins[i]);
	for (int i = 0; i < SCALAR_COUNT; i++) vec_push(s->arena, &v, scalar_name((scalar)i));
	return nearest_name(name, v.at, v.n);
}

/* What another language calls it, for those who come from there. */
static const char *foreign_name(const char *name)
{
	static const struct {
		const char *theirs, *ours;
	} habits[] = {{"True", "true"}, {"False", "false"}, {"null", "None"}, {"int1", "bool"}, {"int8", "i8"},
		{"int16", "i16"}, {"int32", "i32"}, {"int64", "i64"}, {"uint8", "u8"}, {"uint16", "u16"},
		{"uint32", "u32"}, {"uint64", "u64"}, {"int", "i32"}, {"uint", "u32"}, {"unsigned", "u32"},
		{"long", "i64"}, {"float16", "f16"}, {"float32", "f32"}, {"float64", "f64"}, {"fp16", "f16"},
		{"fp32", "f32"}, {"fp64", "f64"}, {"half", "f16"}, {"float", "f32, and infinity inf"},
		{"double", "f64"}, {"bfloat16", "bf16"}, {"fmax", "maximum"}, {"fmin", "minimum"}, {"fabs", "abs"},
		{"sqrtf", "sqrt"}, {"expf", "exp"}, {"logf", "log"}, {"tanf", "tan"}, {"asinf", "asin"},
		{"acosf", "acos"}, {"atanf", "atan"}, {"atan2f", "atan2"}, {"fmodf", "fmod"}, {"erfcf", "erfc"},
		{"cbrtf", "cbrt"}, {"truncf", "trunc"}, {"arcsin", "asin"}, {"arccos", "acos"}, {"arctan", "atan"},
		{"popc", "popcount"}, {"ffs", "ctz(x) + 1"}, {"__popc", "popcount"}, {"__clz", "clz"},
		{"__brev", "brev"}, {"rint", "round"}, {"finite", "isfinite"}, {"printf", "device_print"},
		{"print", "device_print"}, {"assert", "device_assert"}, {"cast", "x.to(T)"},
		{"make_block_ptr", "block_ptr"}, {"make_tensor_descriptor", "tensor"}, {"blockIdx", "program_id(axis)"},
		{"gridDim", "num_programs(axis)"}, {"constexpr", "const"}, {"pass", "{ }"},
		{"inline_asm_elementwise", "inline_asm"}, {"view", "reshape"}, {"fdiv", "a / b"}};
	for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
		if (strcmp(name, habits[i].theirs) == 0) return habits[i].ours;
	return NULL;
}

static sval declared(sema *s, declaration *d, span at)
{
	assert(d->name);
	switch (d->kind) {
	case DECLARES_CONST: return scope_constant(s, d, at);
	case DECLARES_FN: return (sval){.kind = SVAL_FN, .at = at, .fn = d->fn};
	case DECLARES_SPACE:
		return sema_error(
			s, 216, at, "'%s' is a space of configurations, which an autotune block imports", d->name);
	case DECLARES_KERNEL: break;
	}
	diag *e = sema_diag(s, 216, at, "'%s' is a kernel, which no program can call", d->name);
	diag_set_hint(s->diags, e, "put the shared part into a fn");
	return sval_poison(at);
}

/* A name that inner blocks of this function have declared: where, and what to do. */
static bool was_closed(sema *s, diag *d, const char *name)
{
	struct sema_private *p = s->private;
	const closed_name *c = name_table_find(&p->closed, name);
	if (!c || !p->frame || c->frame != p->frame->id) return false;
	for (uint32_t i = 0; i < c->n; i++)
		diag_add_label(
			s->diags, d, c->at[i], "%s", i ? "and here" : "declared here, for the block that it stands in");
	diag_set_hint(s->diags, d, "declare it before that block, var %s = ..;, and assign in the block: %s = ..;",
		name, name);
	return true;
}

static sval look_up(sema *s, const char *name, span at, bool is_target)
{
	assert(name);
	struct sema_private *p = s->private;
	binding *b = scope_find(s, name);
	if (b) {
		sval v = b->kind == BINDING_VAR ? p->slots.at[b->slot] : b->value;
		v.at = at;
		return v;
	}
	bool library = p->frame && p->frame->library;
	declaration *d = library ? NULL : name_table_find(&p->program->user, name), *kernel = NULL;
	if (d && (d->kind == DECLARES_KERNEL || d->kind == DECLARES_SPACE)) kernel = d; /* no value: it hides nothing */
	if (d && !kernel) return declared(s, d, at);
	const stype *t = stype_named(s->arena, name);
	if (t) return (sval){.kind = SVAL_TYPE, .at = at, .type = t};
	const builtin *f = sema_builtin_find(name);
	if (f) return (sval){.kind = SVAL_BUILTIN, .at = at, .builtin = f};
	d = sema_library_find(p->program, name, "std.blk");
	if (d) return declared(s, d, at);
	const kernel_option *o = kernel_option_constant_name(name);
	if (o && p->options_read) {
		p->option_reads++;
		return kernel_option_constant(s, o, at);
	}
	if (kernel) return declared(s, kernel, at);
	if (strcmp(name, "range") == 0 || strcmp(name, "static_range") == 0)
		return sema_error(s, 403, at, "'%s' stands only after 'in' of a 'for'", name);
	if (p->program->incomplete) return sval_poison(at);
	diag *e = sema_diag(s, 201, at, "unknown name '%s'", name);
	if (was_closed(s, e, name)) return sval_poison(at);
	const char *foreign = foreign_name(name);
	const char *file = sema_library_file_of(p->program, name);
	const char *near = !foreign && s->diags->errors < 100 ? nearest_visible(s, name) : NULL;
	if (file)
		diag_set_hint(s->diags, e, "it is in the library: import \"%s\";", file);
	else if (o)
		diag_set_hint(s->diags, e,
			"the grid, the cost, requires and the body may name it: parameters and options are read "
			"before");
	else if (foreign)
		diag_set_hint(s->diags, e, "it is written %s", foreign);
	else if (strcmp(name, "tl") == 0 || strcmp(name, "triton") == 0 || strcmp(name, "math") == 0 ||
		 strcmp(name, "libdevice") == 0)
		diag_set_hint(s->diags, e,
			"built-in names have no prefix: load(p), f32; a constexpr is a const parameter, const N: i32");
	else if (strcmp(name, "threadIdx") == 0 || strcmp(name, "blockDim") == 0)
		diag_set_hint(s->diags, e, "a program has no threads: arange(0, N) is the tile of its indices");
	else if (near)
		diag_set_hint(s->diags, e, "did you mean '%s'?", near);
	else if (is_target)
		diag_set_hint(s->diags, e, "declare it: let %s = ..;, or var where it changes", name);
	return sval_poison(at);
}

sval scope_lookup(sema *s, const char *name, span at)
{
	return look_up(s, name, at, false);
}

sval scope_lookup_target(sema *s, const char *name, span at)
{
	return look_up(s, name, at, true);
}
