/* Making, comparing and naming semantic values, and reporting about them.  See values.h. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

/* ---- making ---- */

sval sval_poison(span at)
{
	return (sval){.kind = SVAL_POISON, .at = at};
}

sval sval_void(span at)
{
	return (sval){.kind = SVAL_VOID, .at = at};
}

sval sval_none(span at)
{
	return (sval){.kind = SVAL_NONE, .at = at};
}

sval sval_value(ir_value *v, span at)
{
	return v ? (sval){.kind = SVAL_VALUE, .at = at, .value = v} : sval_poison(at);
}

sval sval_int(sema_int i, span at)
{
	bool fits;
	return (sval){.kind = SVAL_NUMBER, .at = at, .number = number_make_int(i, &fits)};
}

sval sval_typed_int(scalar type, sema_int i, span at)
{
	return sval_number_bits(type, scalar_truncate(type, (uint64_t)i), at);
}

sval sval_float(double f, span at)
{
	return (sval){.kind = SVAL_NUMBER, .at = at, .number = {.type = SCALAR_F32, .untyped = true, .f = f}};
}

sval sval_number_bits(scalar type, uint64_t bits, span at)
{
	return (sval){.kind = SVAL_NUMBER, .at = at, .number = number_from_bits(type, bits)};
}

sval sval_bool(bool b, span at)
{
	return (sval){.kind = SVAL_NUMBER, .at = at, .number = {.type = SCALAR_BOOL, .i = b}};
}

sval sval_type(sema *s, ir_type t, span at)
{
	return (sval){.kind = SVAL_TYPE, .at = at, .type = stype_value(s, t)};
}

sval sval_tuple(sema *s, const sval *items, uint32_t n, span at)
{
	uint64_t leaves = 0;
	uint32_t depth = 0;
	for (uint32_t i = 0; i < n; i++) {
		bool tuple = items[i].kind == SVAL_TUPLE, type = items[i].kind == SVAL_TYPE;
		uint32_t inner = tuple ? items[i].tuple.depth : type ? items[i].type->depth : 0;
		leaves += tuple ? items[i].tuple.leaves : type ? items[i].type->leaves : 1;
		if (inner > depth) depth = inner;
	}
	if (leaves > SEMA_MAX_LEAVES) return sema_error(s, 710, at, "a tuple of more than 4,096 values");
	if (depth >= SEMA_MAX_TUPLES) return sema_error(s, 710, at, "tuples inside each other, deeper than 64");
	sval *copy = ARENA_ARRAY(s->arena, sval, n ? n : 1);
	if (n) memcpy(copy, items, n * sizeof *copy);
	return (sval){.kind = SVAL_TUPLE, .at = at, .tuple = {copy, n, (uint32_t)leaves, depth + 1}};
}

sval sval_tensor(sema *s, const sema_tensor *t, span at)
{
	sema_tensor *copy = ARENA_NEW(s->arena, sema_tensor);
	*copy = *t;
	return (sval){.kind = SVAL_TENSOR, .at = at, .tensor = copy};
}

sval sval_block_ptr(sema *s, const sema_block_ptr *p, span at)
{
	sema_block_ptr *copy = ARENA_NEW(s->arena, sema_block_ptr);
	*copy = *p;
	return (sval){.kind = SVAL_BLOCK_PTR, .at = at, .block_ptr = copy};
}

/* ---- asking ---- */

bool sval_is_compile_time(sval v)
{
	switch (v.kind) {
	case SVAL_VALUE:
	case SVAL_TENSOR:
	case SVAL_BLOCK_PTR:
	case SVAL_UNDEFINED: return false;
	case SVAL_TUPLE:
		for (uint32_t i = 0; i < v.tuple.n; i++)
			if (!sval_is_compile_time(v.tuple.items[i])) return false;
		return true;
	default: return true;
	}
}

static bool number_equal(sema_number a, sema_number b)
{
	bool fa = scalar_is_float(a.type), fb = scalar_is_float(b.type);
	if (fa || fb) return (fa ? a.f : (double)a.i) == (fb ? b.f : (double)b.i);
	return a.i == b.i;
}

bool sval_equal(sval a, sval b)
{
	if (a.kind != b.kind) return false;
	switch (a.kind) {
	case SVAL_NUMBER: return number_equal(a.number, b.number);
	case SVAL_VALUE: return a.value == b.value;
	case SVAL_TYPE: return stype_equal(a.type, b.type);
	case SVAL_STRING:
		return a.string.n == b.string.n &&
		       (a.string.n == 0 || memcmp(a.string.text, b.string.text, a.string.n) == 0);
	case SVAL_TUPLE:
		if (a.tuple.n != b.tuple.n) return false;
		for (uint32_t i = 0; i < a.tuple.n; i++)
			if (!sval_equal(a.tuple.items[i], b.tuple.items[i])) return false;
		return true;
	case SVAL_FN: return a.fn == b.fn;
	case SVAL_BUILTIN: return a.builtin == b.builtin;
	default: return true;
	}
}

bool sval_type_of(sval v, ir_type *t)
{
	if (v.kind == SVAL_VALUE)
		*t = v.value->type;
	else if (v.kind == SVAL_NUMBER)
		*t = ir_scalar_type(v.number.type);
	else
		return false;
	return true;
}

void sema_items(sval *v, const sval **items, uint32_t *n)
{
	if (v->kind == SVAL_TUPLE) {
		*items = v->tuple.items;
		*n = v->tuple.n;
	} else {
		*items = v;
		*n = 1;
	}
}

/* ---- text ---- */

const char *sema_where_text(sema *s, span at)
{
	source_position p = source_locate(s->arena, at);
	return arena_printf(s->arena, "%s:%u:%u", at.file->name, p.line, p.column);
}

const char *sema_shape_text(sema *s, ir_type t)
{
	if (t.rank == 0) return "a scalar";
	text out = {.arena = s->arena};
	for (unsigned i = 0; i < t.rank; i++) text_printf(&out, "%s%u", i ? ", " : "[", t.dim[i]);
	text_puts(&out, "]");
	return out.at;
}

const char *sema_stype_text(sema *s, const stype *t)
{
	text out = {.arena = s->arena};
	switch (t->kind) {
	case STYPE_VALUE: return ir_type_name(s->arena, t->value);
	case STYPE_TENSOR: return "tensor";
	case STYPE_TYPE: return "type";
	case STYPE_SHAPE: return "shape";
	case STYPE_TUPLE: break;
	}
	text_puts(&out, "(");
	for (uint32_t i = 0; i < t->nitems && i < 16; i++)
		text_printf(&out, "%s%s", i ? ", " : "", sema_stype_text(s, t->items[i]));
	text_puts(&out, t->nitems > 16 ? ", ...)" : t->nitems == 1 ? ",)" : ")");
	return out.at;
}

const char *number_text(sema *s, sema_number n)
{
	if (n.type == SCALAR_BOOL) return n.i ? "true" : "false";
	if (scalar_is_float(n.type)) {
		if (n.f != n.f) return "nan";
		if (n.f > 1.7976931348623157e308) return "inf";
		if (n.f < -1.7976931348623157e308) return "-inf";
		char decimal[SCALAR_DECIMAL];
		scalar_decimal(SCALAR_F64, n.f, decimal);
		return arena_printf(s->arena, "%s%s", decimal, strpbrk(decimal, ".e") ? "" : ".0");
	}
	if (n.i > INT64_MAX) return arena_printf(s->arena, "%llu", (unsigned long long)n.i);
	return arena_printf(s->arena, "%lld", (long long)n.i);
}

static const char *tuple_text(sema *s, sval v)
{
	text out = {.arena = s->arena};
	text_puts(&out, "(");
	for (uint32_t i = 0; i < v.tuple.n && i < 8; i++)
		text_printf(&out, "%s%s", i ? ", " : "", sema_type_text(s, v.tuple.items[i]));
	text_puts(&out, v.tuple.n > 8 ? ", ...)" : v.tuple.n == 1 ? ",)" : ")");
	return out.at;
}

const char *sema_type_text(sema *s, sval v)
{
	switch (v.kind) {
	case SVAL_VOID: return "no value";
	case SVAL_NONE: return "None";
	case SVAL_NUMBER:
		if (v.number.type == SCALAR_BOOL) return v.number.i ? "true" : "false";
		return arena_printf(s->arena, "the %s %s", v.number.untyped ? "number" : scalar_name(v.number.type),
			number_text(s, v.number));
	case SVAL_VALUE: return ir_type_name(s->arena, v.value->type);
	case SVAL_TYPE: return arena_printf(s->arena, "the type %s", sema_stype_text(s, v.type));
	case SVAL_TUPLE: return tuple_text(s, v);
	case SVAL_STRING: return "a string";
	case SVAL_FN: return arena_printf(s->arena, "the function '%s'", v.fn->name);
	case SVAL_BUILTIN: return arena_printf(s->arena, "the built-in function '%s'", v.builtin->name);
	case SVAL_TENSOR:
		return arena_printf(s->arena, "a %u-dimensional %stensor of %s", v.tensor->rank,
			v.tensor->base->type.pointer == IR_CONST_POINTER ? "read-only " : "",
			scalar_name(v.tensor->base->type.elem));
	case SVAL_BLOCK_PTR:
		return arena_printf(s->arena, "a block pointer to %s", ir_type_name(s->arena, v.block_ptr->block));
	case SVAL_POISON:
	case SVAL_UNDEFINED: break;
	}
	return "an error";
}

const char *sema_source_text(sema *s, span at)
{
	if (!at.file || at.end - at.begin > 40) return "...";
	const char *t = at.file->text + at.begin;
	for (uint32_t i = 0; i < at.end - at.begin; i++)
		if ((unsigned char)t[i] < ' ') return "...";
	return arena_strndup(s->arena, t, at.end - at.begin);
}

/* The same as the left side of a '.': in parentheses where it needs them. */
const char *sema_postfix_text(sema *s, span at)
{
	const char *t = sema_source_text(s, at);
	bool plain = (*t >= 'a' && *t <= 'z') || (*t >= 'A' && *t <= 'Z') || *t == '_';
	int depth = 0;
	for (const char *c = t; *c && plain; c++) {
		if (strchr("([", *c)) depth++;
		if (strchr(")]", *c)) depth--;
		plain = depth > 0 || strchr("._)]", *c) || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
			(*c >= '0' && *c <= '9');
	}
	return plain ? t : arena_printf(s->arena, "(%s)", t);
}

/* How a value came to be, for the label under an operand: the type, and where it was made if that is elsewhere. */
const char *sema_origin_text(sema *s, sval v)
{
	const char *type = sema_type_text(s, v);
	if (v.kind != SVAL_VALUE) return type;
	const ir_op *def = v.value->def;
	if (!def || !def->at.file) return v.value->name ? arena_printf(s->arena, "%s '%s'", type, v.value->name) : type;
	if (v.at.file == def->at.file && v.at.begin <= def->at.begin && def->at.end <= v.at.end) return type;
	const char *verb = def->kind == IR_LOAD ? "loaded" : def->kind == IR_REDUCE ? "reduced" : "made";
	return arena_printf(s->arena, "%s, %s at %s", type, verb, sema_where_text(s, def->at));
}

/* ---- reporting ---- */

/* The call that the program itself made of a function of the library, or null. */
static const frame *library_call(const frame *f)
{
	const frame *inside = NULL;
	for (; f && f->fn && f->library; f = f->up) inside = f;
	return inside;
}

/* The first of each such call: those behind it follow from it, and are recorded nowhere. */
static diag *error_in_library(sema *s, uint16_t code, const frame *inside, const char *message)
{
	if (s->private->library_error == inside->id) return ARENA_NEW(s->arena, diag);
	s->private->library_error = inside->id;
	return diag_error(s->diags, code, inside->call, "%s", message);
}

static void label_calls(sema *s, diag *d, const frame *f)
{
	for (int depth = 0; f && depth < 3; f = f->up, depth++)
		if (f->fn) diag_add_label(s->diags, d, f->call, "in this call of '%s'", f->fn->name);
}

/* Inside an inlined function the call says which of its uses is meant; inside the library, whose source is not the
 * user's, the call is the place.  diag_add drops what it has recorded before. */
static diag *report(sema *s, uint16_t code, span at, const char *fmt, va_list args)
{
	const char *message = arena_vprintf(s->arena, fmt, args);
	const frame *f = s->private->frame, *inside = library_call(f);
	if (inside) {
		diag *d = error_in_library(
			s, code, inside, arena_printf(s->arena, "in '%s': %s", inside->fn->name, message));
		diag_add_label(s->diags, d, at, "found here");
		label_calls(s, d, inside->up);
		return d;
	}
	diag *d = diag_error(s->diags, code, at, "%s", message);
	label_calls(s, d, f);
	return d;
}

diag *sema_library_diag(sema *s, uint16_t code, const char *fmt, ...)
{
	const frame *inside = library_call(s->private->frame);
	va_list args;
	if (!inside) return NULL;
	va_start(args, fmt);
	const char *message = arena_vprintf(s->arena, fmt, args);
	va_end(args);
	diag *d = error_in_library(s, code, inside, arena_printf(s->arena, "'%s' %s", inside->fn->name, message));
	label_calls(s, d, inside->up);
	return d;
}

diag *sema_diag(sema *s, uint16_t code, span at, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	diag *d = report(s, code, at, fmt, args);
	va_end(args);
	return d;
}

diag *sema_operator_diag(sema *s, uint16_t code, span at, span mark, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	diag *d = report(s, code, at, fmt, args);
	va_end(args);
	if (mark.file == d->at.file) diag_set_mark(s->diags, d, mark);
	return d;
}

sval sema_error(sema *s, uint16_t code, span at, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	report(s, code, at, fmt, args);
	va_end(args);
	return sval_poison(at);
}

const char *sema_constant_text(sema *s, sval v)
{
	text out = {.arena = s->arena};
	switch (v.kind) {
	case SVAL_NUMBER: return number_text(s, v.number);
	case SVAL_TYPE: return sema_stype_text(s, v.type);
	case SVAL_TUPLE:
		text_puts(&out, "[");
		for (uint32_t i = 0; i < v.tuple.n; i++)
			text_printf(&out, "%s%s", i ? "," : "", sema_constant_text(s, v.tuple.items[i]));
		text_puts(&out, "]");
		return out.at;
	default: return "?";
	}
}
