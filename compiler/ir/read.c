/* The text form of the tile IR, read: the inverse of print.c.
 *
 * In: any bytes.  Out: the function, or null and one diagnostic at the byte where the text stopped making sense.
 * What is returned is well linked (every operand exists and is visible) but not yet checked: callers who do not trust
 * the text run ir_verify on it.
 * The one idea: no token stream; a cursor and a few `accept` functions, and the attribute column of ops.def as the
 * grammar of what stands in braces.  `;` starts a comment that ends with the line. */
#include "attributes.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../layout/layout.h"
#include "names.h"
#include "tensor_map.h"

enum { DEEPEST = 256, MOST_VALUES = UINT16_MAX, SYNTAX_ERROR = 110 };

typedef struct word {
	const char *at;
	size_t n;
} word;
typedef VEC(ir_value *) value_list;
typedef VEC(word) word_list;

typedef struct reader {
	arena *arena;
	diags *diags;
	source_file *file;
	const char *at, *end;
	ir_func *func;
	ir_names kinds;    /* operation name -> kind + 1 */
	ir_names values;   /* name without % -> ir_value *, or OUT_OF_SCOPE */
	word_list visible; /* the names of `values`, innermost last */
	unsigned depth;
} reader;
static const uint64_t OUT_OF_SCOPE = 1;

static bool fail(reader *r, const char *at, const char *message)
{
	assert(at >= r->file->text && at <= r->file->text + r->file->size);
	uint32_t begin = (uint32_t)(at - r->file->text);
	span where = {.file = r->file, .begin = begin, .end = at < r->end ? begin + 1 : begin};
	diag_error(r->diags, SYNTAX_ERROR, where, "tile IR: %s", message);
	return false;
}

static void skip_space(reader *r)
{
	for (; r->at < r->end; r->at++) {
		if (*r->at == ';')
			while (r->at < r->end && *r->at != '\n') r->at++;
		if (r->at == r->end || !strchr(" \t\r\n", *r->at) || *r->at == 0) return;
	}
}

static bool accept(reader *r, char c)
{
	skip_space(r);
	if (r->at == r->end || *r->at != c) return false;
	r->at++;
	return true;
}

static bool expect(reader *r, char c)
{
	if (accept(r, c)) return true;
	return fail(r, r->at, arena_printf(r->arena, "expected `%c`", c));
}

static bool is_word_byte(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Letters, digits, `_` and `.`; empty at anything else. */
static word take_word(reader *r)
{
	skip_space(r);
	word w = {.at = r->at};
	while (r->at < r->end && is_word_byte(*r->at)) r->at++;
	w.n = (size_t)(r->at - w.at);
	return w;
}

static bool is(word w, const char *s)
{
	return w.n == strlen(s) && memcmp(w.at, s, w.n) == 0;
}

static bool accept_word(reader *r, const char *s)
{
	skip_space(r);
	const char *start = r->at;
	if (is(take_word(r), s)) return true;
	r->at = start;
	return false;
}

/* What stands up to a space, `}`, `,` or `]`: numbers in all their forms. */
static word take_number(reader *r)
{
	skip_space(r);
	word w = {.at = r->at};
	while (r->at < r->end && (is_word_byte(*r->at) || *r->at == '-' || *r->at == '+')) r->at++;
	w.n = (size_t)(r->at - w.at);
	return w;
}

/* Decimal with a sign, or 0x and hexadecimal digits; the container's 64 bits. */
static bool word_integer(word w, uint64_t *out)
{
	bool negative = w.n && *w.at == '-';
	if (negative) w.at++, w.n--;
	unsigned base = 10;
	if (w.n > 2 && w.at[0] == '0' && w.at[1] == 'x') base = 16, w.at += 2, w.n -= 2;
	if (w.n == 0) return false;
	uint64_t v = 0;
	for (size_t i = 0; i < w.n; i++) {
		char c = w.at[i];
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
							: 99;
		if (digit >= base || v > (UINT64_MAX - digit) / base) return false;
		v = v * base + digit;
	}
	if (negative && v > UINT64_C(1) << 63) return false;
	*out = negative ? 0 - v : v;
	return true;
}

static bool take_integer(reader *r, int64_t *out)
{
	word w = take_number(r);
	uint64_t v;
	if (!word_integer(w, &v)) return fail(r, w.at, "expected an integer");
	*out = (int64_t)v;
	return true;
}

static bool take_u32(reader *r, uint32_t *out)
{
	word w = take_number(r);
	uint64_t v;
	if (!word_integer(w, &v) || v > UINT32_MAX) return fail(r, w.at, "expected a number below 2^32");
	*out = (uint32_t)v;
	return true;
}

static bool word_float(word w, double *out)
{
	char buffer[128];
	if (is(w, "inf") || is(w, "-inf")) {
		*out = *w.at == '-' ? -HUGE_VAL : HUGE_VAL;
		return true;
	}
	if (w.n == 0 || w.n >= sizeof buffer) return false;
	for (size_t i = 0; i < w.n; i++)
		if (!isdigit((unsigned char)w.at[i]) && !strchr("+-.e", w.at[i])) return false;
	memcpy(buffer, w.at, w.n);
	buffer[w.n] = 0;
	char *end;
	*out = strtod(buffer, &end);
	return *end == 0;
}

static bool word_bits(word w, ir_type t, uint64_t *out)
{
	if (w.n > 2 && w.at[0] == '0' && w.at[1] == 'x') return word_integer(w, out);
	if (t.pointer) return false;
	if (t.elem == SCALAR_BOOL) {
		*out = is(w, "true");
		return *out || is(w, "false");
	}
	if (scalar_is_float(t.elem)) {
		double v;
		if (!word_float(w, &v)) return false;
		*out = scalar_from_double(t.elem, v);
		return true;
	}
	uint64_t v;
	if (!word_integer(w, &v)) return false;
	*out = scalar_truncate(t.elem, v);
	return (uint64_t)scalar_sign_extend(t.elem, *out) == v;
}

static bool take_scalar(reader *r, uint8_t *elem)
{
	word w = take_word(r);
	scalar s;
	if (!scalar_parse(arena_strndup(r->arena, w.at, w.n), &s)) return fail(r, w.at, "expected a type");
	*elem = (uint8_t)s;
	return true;
}

static bool take_type(reader *r, ir_type *t)
{
	*t = (ir_type){0};
	bool parens = accept(r, '(');
	if (accept(r, '*')) t->pointer = accept_word(r, "const") ? IR_CONST_POINTER : IR_POINTER;
	if (!take_scalar(r, &t->elem) || (parens && !expect(r, ')'))) return false;
	if (!accept(r, '[')) return true;
	do {
		if (t->rank == IR_MAX_RANK) return fail(r, r->at, "more than 4 dimensions");
		if (!take_u32(r, &t->dim[t->rank++])) return false;
	} while (accept(r, ','));
	return expect(r, ']');
}

static bool take_type_and_layout(reader *r, ir_type *t, const layout **l)
{
	*l = NULL;
	if (!take_type(r, t)) return false;
	if (!accept(r, '<')) return true;
	layout parsed;
	for (unsigned d = 0; d < t->rank; d++)
		if (t->dim[d] == 0 || (t->dim[d] & (t->dim[d] - 1)) || t->dim[d] > 1u << 20)
			return fail(r, r->at, "a layout of a tile whose extents are not powers of two");
	if (!layout_parse(&r->at, *t, &parsed)) return fail(r, r->at, "malformed layout");
	layout *kept = ARENA_NEW(r->arena, layout);
	*kept = parsed;
	*l = kept;
	return expect(r, '>');
}

static bool take_value_name(reader *r, word *w)
{
	if (!expect(r, '%')) return false;
	const char *start = r->at;
	*w = take_word(r);
	return (w->n && w->at == start) || fail(r, start, "expected a name after `%`");
}

/* The user's part of `%x.1`; a number is no name. */
static const char *user_name(reader *r, word w)
{
	assert(w.n);
	if (isdigit((unsigned char)*w.at)) return NULL;
	const char *dot = memchr(w.at, '.', w.n);
	return arena_strndup(r->arena, w.at, dot ? (size_t)(dot - w.at) : w.n);
}

static bool define(reader *r, word w, ir_value *v)
{
	assert(v && v->type.rank <= IR_MAX_RANK);
	uint64_t *slot = ir_names_slot(&r->values, w.at, w.n);
	if (*slot) return fail(r, w.at, "a second value of this name");
	*slot = (uint64_t)(uintptr_t)v;
	v->name = user_name(r, w);
	vec_push(r->arena, &r->visible, w);
	return true;
}

static bool take_operand(reader *r, value_list *args)
{
	word w;
	if (!take_value_name(r, &w)) return false;
	uint64_t known = *ir_names_slot(&r->values, w.at, w.n);
	if (known == 0) return fail(r, w.at, "no value of this name above");
	if (known == OUT_OF_SCOPE) return fail(r, w.at, "the value is not visible here");
	if (args->n == MOST_VALUES) return fail(r, w.at, "too many operands");
	vec_push(r->arena, args, (ir_value *)(uintptr_t)known);
	return true;
}

static bool take_quoted(reader *r, const char **out)
{
	*out = NULL;
	if (accept_word(r, "none")) return true;
	if (!expect(r, '"')) return false;
	text t = {.arena = r->arena};
	text_add(&t, "", 0);
	for (; r->at < r->end && *r->at != '"'; r->at++) {
		char c = *r->at;
		if (c == '\n' || c == 0) return fail(r, r->at, "string without an end");
		if (c == '\\') {
			if (++r->at == r->end) break;
			c = *r->at == 'n' ? '\n' : *r->at == 't' ? '\t' : *r->at;
			if (c == 'x') {
				if (r->end - r->at < 3 || !isxdigit((unsigned char)r->at[1]) ||
					!isxdigit((unsigned char)r->at[2]))
					return fail(r, r->at, "expected two hexadecimal digits");
				c = (char)strtol((char[]){r->at[1], r->at[2], 0}, NULL, 16);
				if (c == 0) return fail(r, r->at, "a NUL in a string");
				r->at += 2;
			}
		}
		text_add(&t, &c, 1);
	}
	*out = t.at;
	return expect(r, '"');
}

static bool take_list(reader *r, int64_t *out)
{
	uint16_t v[IR_MAX_RANK] = {0};
	unsigned n = 0;
	if (!expect(r, '[')) return false;
	do {
		uint32_t x;
		if (n == IR_MAX_RANK) return fail(r, r->at, "more than 4 numbers");
		if (!take_u32(r, &x)) return false;
		if (x > UINT16_MAX) return fail(r, r->at, "the number is above 65535");
		v[n++] = (uint16_t)x;
	} while (accept(r, ','));
	*out = ir_pack(n, v);
	return expect(r, ']');
}

static bool take_enum(reader *r, attribute_range range, int64_t *out)
{
	assert(range.names);
	word w = take_word(r);
	for (int64_t i = range.least; i <= range.most; i++)
		if (is(w, range.names[i])) {
			*out = i;
			return true;
		}
	return fail(r, w.at, "unknown name");
}

/* What an operation's line says besides its operands. */
typedef struct details {
	int64_t attr[IR_MAX_ATTR];
	const char *text;
	const ir_tensor_map *map;
	word bits; /* a constant's value waits for its type */
	unsigned bits_place;
	uint64_t given; /* bit a: attribute a was there */
} details;

static bool take_map(reader *r, const ir_tensor_map **out)
{
	const char *here = r->at, *line;
	ir_tensor_map *map = ARENA_NEW(r->arena, ir_tensor_map);
	if (!take_quoted(r, &line)) return false;
	if (!line) return true;
	if (!ir_tensor_map_read(r->arena, line, map)) return fail(r, here, "not the text of a tensor map");
	*out = map;
	return true;
}

static bool take_attribute(reader *r, const attribute_info *a, details *d)
{
	assert(a->name);
	attribute_range range = ir_attribute_range(a->type);
	if (a->type == ATTRIBUTE_bits) {
		d->bits = take_number(r);
		d->bits_place = a->place;
		return true;
	}
	if (a->type == ATTRIBUTE_text) return take_quoted(r, &d->text);
	if (a->type == ATTRIBUTE_map) return take_map(r, &d->map);
	if (a->type == ATTRIBUTE_list) return take_list(r, &d->attr[a->place]);
	return range.names ? take_enum(r, range, &d->attr[a->place]) : take_integer(r, &d->attr[a->place]);
}

/* One of the row's attributes that was not given before; IR_ATTRIBUTE_COUNT otherwise. */
static unsigned find_attribute(ir_kind kind, const details *d, word name)
{
	assert(kind < IR_KIND_COUNT);
	unsigned i = 0;
	uint64_t open = ir_ops[kind].attributes & ~d->given;
	while (i < IR_ATTRIBUTE_COUNT && !((open >> i & 1) && is(name, ir_attributes[i].name))) i++;
	return i;
}

/* `{name=`, or nothing: a brace in front of something else begins a region. */
static bool open_attributes(reader *r)
{
	const char *here = r->at;
	if (accept(r, '{') && take_word(r).n && accept(r, '=')) {
		r->at = here;
		return accept(r, '{');
	}
	r->at = here;
	return false;
}

/* The names that were not given, for a message. */
static const char *names_left(reader *r, ir_kind kind, const details *d)
{
	text t = {.arena = r->arena};
	for (uint64_t left = ir_ops[kind].attributes & ~d->given; left; left &= left - 1)
		text_printf(&t, "%s`%s=`", t.n ? ", " : "", ir_attributes[__builtin_ctzll(left)].name);
	return t.n ? t.at : "`}`";
}

/* In any order; those that the printer may leave out may be left out. */
static bool take_attributes(reader *r, ir_kind kind, details *d)
{
	if (!ir_ops[kind].attributes) return true;
	bool braces = open_attributes(r);
	while (braces && !accept(r, '}')) {
		word name = take_word(r);
		unsigned i = find_attribute(kind, d, name);
		if (i == IR_ATTRIBUTE_COUNT)
			return fail(r, name.at, arena_printf(r->arena, "expected %s", names_left(r, kind, d)));
		d->given |= UINT64_C(1) << i;
		if (!expect(r, '=') || !take_attribute(r, &ir_attributes[i], d)) return false;
	}
	for (unsigned i = 0; i < IR_ATTRIBUTE_COUNT; i++)
		if (ir_attributes[i].always && (ir_ops[kind].attributes & ~d->given) >> i & 1)
			return fail(r, r->at, arena_printf(r->arena, "expected `%s=`", ir_attributes[i].name));
	return true;
}

static bool take_block(reader *, ir_block *);

static bool take_region(reader *r, ir_op *o, unsigned i)
{
	assert(i < o->nregions);
	if (i && !accept_word(r, "else") && !accept_word(r, "do")) return fail(r, r->at, "expected `else` or `do`");
	uint32_t outer = r->visible.n;
	if (accept(r, '(')) do {
			word w;
			ir_type t;
			const layout *l;
			if (!take_value_name(r, &w) || !expect(r, ':') || !take_type_and_layout(r, &t, &l))
				return false;
			ir_value *v = ir_block_arg(o->regions[i], t, NULL);
			v->layout = l;
			if (!define(r, w, v)) return false;
		} while (accept(r, ','));
	if (o->regions[i]->nargs && !expect(r, ')')) return false;
	if (!expect(r, '{') || !take_block(r, o->regions[i])) return false;
	assert(r->visible.n >= outer);
	while (r->visible.n > outer) {
		word w = r->visible.at[--r->visible.n];
		*ir_names_slot(&r->values, w.at, w.n) = OUT_OF_SCOPE;
	}
	return true;
}

static bool take_kind(reader *r, ir_kind *kind, span *at)
{
	word w = take_word(r);
	uint64_t known = w.n ? *ir_names_slot(&r->kinds, w.at, w.n) : 0;
	if (!known) return fail(r, w.at, "expected the name of an operation");
	*kind = (ir_kind)(known - 1);
	uint32_t begin = (uint32_t)(w.at - r->file->text);
	*at = (span){.file = r->file, .begin = begin, .end = begin + (uint32_t)w.n};
	return true;
}

/* `%a, %b =`, or nothing. */
static bool take_result_names(reader *r, word_list *names)
{
	skip_space(r);
	if (r->at == r->end || *r->at != '%') return true;
	do {
		word w;
		if (!take_value_name(r, &w)) return false;
		if (names->n == MOST_VALUES) return fail(r, w.at, "too many results");
		vec_push(r->arena, names, w);
	} while (accept(r, ','));
	return expect(r, '=');
}

static bool take_results(reader *r, unsigned n, ir_type *types, const layout **layouts)
{
	assert(types && layouts);
	for (unsigned i = 0; i < n; i++)
		if (!expect(r, i ? ',' : ':') || !take_type_and_layout(r, &types[i], &layouts[i])) return false;
	return true;
}

static bool take_shared(reader *r, ir_op *o)
{
	if (!accept_word(r, "shared")) return true;
	return expect(r, '(') && take_u32(r, &o->shared_offset) && expect(r, ',') && take_u32(r, &o->shared_bytes) &&
	       expect(r, ')');
}

static unsigned count_regions(ir_kind kind, const details *d)
{
	if (ir_ops[kind].regions != IR_ANY) return ir_ops[kind].regions;
	return d->attr[ir_attributes[IR_ATTR_combine].place] == IR_CUSTOM; /* reduce and scan */
}

static bool take_op(reader *r, ir_block *b)
{
	word_list names = {0};
	value_list args = {0};
	ir_kind kind = 0; /* gcc, at some of its levels, does not see that take_kind() sets it */
	ir_builder build = {.func = r->func, .block = b};
	details d = {0};
	if (!take_result_names(r, &names) || !take_kind(r, &kind, &build.at)) return false;
	skip_space(r);
	if (r->at < r->end && *r->at == '%') {
		/* the next line may start with a result: an operation that takes operands has its first on its own line
		 */
		bool takes = ir_ops[kind].args != 0;
		for (const char *s = r->file->text + build.at.end; takes && s < r->at; s++) takes = *s != '\n';
		if (takes) do
				if (!take_operand(r, &args)) return false;
			while (accept(r, ','));
	}
	if (!take_attributes(r, kind, &d)) return false;
	ir_type *types = ARENA_ARRAY(r->arena, ir_type, names.n);
	const layout **layouts = ARENA_ARRAY(r->arena, const layout *, names.n);
	if (!take_results(r, names.n, types, layouts)) return false;
	if (d.bits.at) {
		uint64_t bits;
		if (!names.n || !word_bits(d.bits, types[0], &bits))
			return fail(r, d.bits.at, "not a number of this type");
		d.attr[d.bits_place] = (int64_t)bits;
	}
	ir_op *o = ir_build(&build, kind, args.n, args.at, names.n, types, count_regions(kind, &d));
	memcpy(o->attr, d.attr, sizeof o->attr);
	o->text = d.text;
	o->map = d.map;
	if (!take_shared(r, o)) return false;
	for (unsigned i = 0; i < o->nregions; i++)
		if (!take_region(r, o, i)) return false;
	for (unsigned i = 0; i < names.n; i++) {
		o->results[i]->layout = layouts[i];
		if (!define(r, names.at[i], o->results[i])) return false;
	}
	return true;
}

static bool take_block(reader *r, ir_block *b)
{
	if (++r->depth > DEEPEST) return fail(r, r->at, "nested too deeply");
	while (!accept(r, '}')) {
		if (r->at == r->end) return fail(r, r->at, "expected `}`");
		if (!take_op(r, b)) return false;
	}
	r->depth--;
	return true;
}

static bool take_param(reader *r)
{
	word w;
	ir_type t;
	if (!take_value_name(r, &w) || !expect(r, ':') || !take_type(r, &t)) return false;
	const char *name = user_name(r, w);
	if (!define(r, w, ir_add_param(r->func, name ? name : "", t, r->func->at))) return false;
	ir_param *p = &r->func->params[r->func->nparams - 1];
	if (!accept(r, '{')) return true;
	while (!accept(r, '}')) {
		const char *start = r->at;
		if (accept_word(r, "one"))
			p->is_one = true;
		else if (accept_word(r, t.pointer ? "align" : "divisible")) {
			if (!expect(r, '=') || !take_u32(r, &p->divisible)) return false;
		} else
			return fail(r, start, "expected `one`, `align=` or `divisible=`");
	}
	return true;
}

static bool take_option(reader *r, word name)
{
	ir_func *f = r->func;
	if (is(name, "level")) {
		if (accept_word(r, "mapped"))
			f->level = IR_LEVEL_MAPPED;
		else if (accept_word(r, "scheduled"))
			f->level = IR_LEVEL_SCHEDULED;
		else
			return fail(r, r->at, "expected `mapped` or `scheduled`");
		return true;
	}
	const struct {
		const char *name;
		uint32_t *at;
	} options[] = {
		{"num_warps", &f->num_warps},
		{"num_stages", &f->num_stages},
		{"num_ctas", &f->num_ctas},
		{"maxnreg", &f->maxnreg},
		{"max_registers", &f->max_registers},
		{"max_spills", &f->max_spills},
		{"max_shared", &f->max_shared},
		{"strict", &f->strict},
		{"launch_pdl", &f->launch_pdl},
		{"shared_bytes", &f->shared_bytes},
		{"producer_warps", &f->producer_warps},
		{"cluster", &f->cluster},
		{"row_groups", &f->row_groups},
	};
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (is(name, options[i].name)) return take_u32(r, options[i].at);
	return fail(r, name.at, "unknown option");
}

static bool take_func(reader *r)
{
	skip_space(r);
	uint32_t begin = (uint32_t)(r->at - r->file->text);
	if (!accept_word(r, "func")) return fail(r, r->at, "expected `func`");
	if (!expect(r, '@')) return false;
	word name = take_word(r);
	if (!name.n) return fail(r, name.at, "expected a name after `@`");
	r->func = ir_func_new(r->arena, arena_strndup(r->arena, name.at, name.n));
	r->func->at = (span){.file = r->file, .begin = begin, .end = (uint32_t)(r->at - r->file->text)};
	if (!expect(r, '(')) return false;
	if (!accept(r, ')')) {
		do
			if (!take_param(r)) return false;
		while (accept(r, ','));
		if (!expect(r, ')')) return false;
	}
	while (!accept(r, '{')) {
		word option = take_word(r);
		if (!option.n) return fail(r, option.at, "expected an option or `{`");
		if (!expect(r, '=') || !take_option(r, option)) return false;
	}
	if (!take_block(r, r->func->body)) return false;
	skip_space(r);
	return true;
}

ir_func *ir_read_next(arena *a, diags *ds, source_file *file, size_t *at)
{
	assert(*at <= file->size);
	reader r = {.arena = a, .diags = ds, .file = file, .at = file->text + *at, .end = file->text + file->size};
	r.kinds.arena = r.values.arena = a;
	for (unsigned k = 0; k < IR_KIND_COUNT; k++)
		*ir_names_slot(&r.kinds, ir_ops[k].name, strlen(ir_ops[k].name)) = k + 1;
	if (!take_func(&r)) return NULL;
	*at = (size_t)(r.at - file->text);
	return r.func;
}

ir_func *ir_read(arena *a, diags *ds, source_file *file)
{
	size_t at = 0;
	ir_func *f = ir_read_next(a, ds, file, &at);
	if (!f || at == file->size) return f;
	reader r = {.arena = a, .diags = ds, .file = file, .end = file->text + file->size};
	fail(&r, file->text + at, "text after the function");
	return NULL;
}
