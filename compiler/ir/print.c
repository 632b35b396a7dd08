/* The text form of the tile IR, written.
 *
 * In: a function at any level, correct or not (the printer shows what a failing verifier complains of).
 * Out: text that read.c turns into the same function, and that prints again to the same bytes.
 * The one idea: an operation is printed from its row in ops.def; the attribute column says how each of ir_op.attr is
 * written.  Values carry the user's names, made unique with a suffix (`%x`, `%x.1`); nameless ones are numbered in the
 * order of the text, so neither depends on ids.  docs/ir.md gives the grammar. */
#include "attributes.h"
#include "tensor_map.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../layout/layout.h"
#include "names.h"

typedef struct printer {
	text *out;
	const char **value_names; /* by id */
	uint32_t nvalues;
	uint32_t next_number;
	ir_names names;    /* user name -> how often it was given */
	line_marks *marks; /* or null */
} printer;

static bool is_identifier(const char *s)
{
	if (!s || !(isalpha((unsigned char)*s) || *s == '_')) return false;
	while (isalnum((unsigned char)*s) || *s == '_') s++;
	return *s == 0;
}

static void name_value(printer *p, const ir_value *v)
{
	if (v->id >= p->nvalues || p->value_names[v->id]) return;
	arena *a = p->out->arena;
	if (!is_identifier(v->name)) {
		p->value_names[v->id] = arena_printf(a, "%%%u", p->next_number++);
		return;
	}
	uint64_t *times = ir_names_slot(&p->names, v->name, strlen(v->name));
	p->value_names[v->id] =
		*times ? arena_printf(a, "%%%s.%u", v->name, (unsigned)*times) : arena_printf(a, "%%%s", v->name);
	++*times;
}

static void print_value(printer *p, const ir_value *v)
{
	if (!v)
		text_puts(p->out, "%null");
	else if (v->id < p->nvalues && p->value_names[v->id])
		text_puts(p->out, p->value_names[v->id]);
	else
		text_printf(p->out, "%%undefined%u", v->id);
}

static void print_type(printer *p, const ir_value *v)
{
	ir_type_print(p->out, v->type);
	if (!v->layout) return;
	text_puts(p->out, " <");
	layout_print(p->out, v->layout);
	text_puts(p->out, ">");
}

static void print_float(text *out, scalar s, uint64_t bits)
{
	assert(scalar_is_float(s));
	double v = scalar_to_double(s, bits);
	if (isnan(v) || scalar_from_double(s, v) != bits) {
		text_printf(out, "0x%llx", (unsigned long long)bits);
		return;
	}
	if (isinf(v)) {
		text_puts(out, v < 0 ? "-inf" : "inf");
		return;
	}
	char decimal[SCALAR_DECIMAL];
	scalar_decimal(s, v, decimal);
	text_printf(out, "%s%s", decimal, strpbrk(decimal, ".e") ? "" : ".0");
}

static void print_bits(text *out, ir_type t, uint64_t bits)
{
	if (t.pointer || scalar_truncate(t.elem, bits) != bits)
		text_printf(out, "0x%llx", (unsigned long long)bits);
	else if (scalar_is_float(t.elem))
		print_float(out, t.elem, bits);
	else if (t.elem == SCALAR_BOOL)
		text_puts(out, bits ? "true" : "false");
	else if (scalar_is_signed(t.elem))
		text_printf(out, "%lld", (long long)scalar_sign_extend(t.elem, bits));
	else
		text_printf(out, "%llu", (unsigned long long)bits);
}

static void print_list(text *out, const ir_op *o, int64_t packed)
{
	unsigned n = o->nresults && o->results[0]->type.rank ? o->results[0]->type.rank : 1;
	for (unsigned i = n; i < IR_MAX_RANK; i++)
		if (ir_unpack(packed, i)) n = i + 1;
	for (unsigned i = 0; i < n; i++) text_printf(out, "%s%u", i ? "," : "[", ir_unpack(packed, i));
	text_puts(out, "]");
}

static void print_quoted(text *out, const char *s)
{
	if (!s) {
		text_puts(out, "none");
		return;
	}
	text_puts(out, "\"");
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '\n')
			text_puts(out, "\\n");
		else if (c == '\t')
			text_puts(out, "\\t");
		else if (c == '"' || c == '\\')
			text_printf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			text_printf(out, "\\x%02x", c);
		else
			text_add(out, s, 1);
	}
	text_puts(out, "\"");
}

static void print_map(text *out, const ir_tensor_map *map)
{
	text line = {.arena = out->arena};
	if (map) ir_tensor_map_print(&line, map);
	print_quoted(out, line.at);
}

static void print_attribute(text *out, const ir_op *o, attribute_type type, int64_t v)
{
	attribute_range r = ir_attribute_range(type);
	if (type == ATTRIBUTE_bits)
		print_bits(out, o->nresults ? o->results[0]->type : ir_scalar_type(SCALAR_U64), (uint64_t)v);
	else if (type == ATTRIBUTE_list)
		print_list(out, o, v);
	else if (type == ATTRIBUTE_text)
		print_quoted(out, o->text);
	else if (type == ATTRIBUTE_map)
		print_map(out, o->map);
	else if (r.names && v >= r.least && v <= r.most)
		text_puts(out, r.names[v]);
	else
		text_printf(out, "%lld", (long long)v);
}

/* " {axis=0 combine=sum}", or nothing where all that it has is what a new operation has. */
static void print_attributes(text *out, const ir_op *o)
{
	const char *separator = " {";
	for (unsigned i = 0; i < IR_ATTRIBUTE_COUNT; i++) {
		const attribute_info *a = &ir_attributes[i];
		if (!ir_has_attribute(o, i) || (!a->always && o->attr[a->place] == 0)) continue;
		text_printf(out, "%s%s=", separator, a->name);
		print_attribute(out, o, a->type, o->attr[a->place]);
		separator = " ";
	}
	if (separator[1] == 0) text_puts(out, "}");
}

/* What follows stands for this place of the source. */
static void mark(printer *p, span at)
{
	arena *a = p->out->arena;
	if (!p->marks) return;
	line_mark m = {.at = p->out->n, .file = at.file, .line = source_locate(a, at).line};
	vec_push(a, p->marks, m);
}

static void print_ops(printer *, const ir_block *, unsigned depth);

static void indent(text *out, unsigned depth)
{
	for (unsigned i = 0; i < depth; i++) text_puts(out, "  ");
}

static void print_region(printer *p, const ir_op *o, unsigned r, unsigned depth)
{
	assert(r < o->nregions);
	const ir_block *b = o->regions[r];
	if (r) text_puts(p->out, o->kind == IR_IF ? " else" : " do");
	for (uint32_t i = 0; i < b->nargs; i++) {
		name_value(p, b->args[i]);
		text_puts(p->out, i ? ", " : " (");
		print_value(p, b->args[i]);
		text_puts(p->out, ": ");
		print_type(p, b->args[i]);
	}
	text_puts(p->out, b->nargs ? ") {\n" : " {\n");
	print_ops(p, b, depth + 1);
	mark(p, o->at);
	indent(p->out, depth);
	text_puts(p->out, "}");
}

static void print_op(printer *p, const ir_op *o, unsigned depth)
{
	text *out = p->out;
	mark(p, o->at);
	indent(out, depth);
	for (unsigned i = 0; i < o->nresults; i++) {
		name_value(p, o->results[i]);
		if (i) text_puts(out, ", ");
		print_value(p, o->results[i]);
	}
	text_printf(out, "%s%s", o->nresults ? " = " : "", ir_info(o)->name);
	for (unsigned i = 0; i < o->nargs; i++) {
		text_puts(out, i ? ", " : " ");
		print_value(p, o->args[i]->value);
	}
	print_attributes(out, o);
	for (unsigned i = 0; i < o->nresults; i++) {
		text_puts(out, i ? ", " : " : ");
		print_type(p, o->results[i]);
	}
	if (o->shared_bytes) text_printf(out, " shared(%u, %u)", o->shared_offset, o->shared_bytes);
	for (unsigned r = 0; r < o->nregions; r++) print_region(p, o, r, depth);
	text_puts(out, "\n");
}

static void print_ops(printer *p, const ir_block *b, unsigned depth)
{
	for (const ir_op *o = b->first; o; o = o->next) print_op(p, o, depth);
}

static void print_params(printer *p, const ir_func *f)
{
	text_puts(p->out, "(");
	for (uint32_t i = 0; i < f->body->nargs; i++) {
		const ir_value *v = f->body->args[i];
		name_value(p, v);
		if (i) text_puts(p->out, ", ");
		print_value(p, v);
		text_puts(p->out, ": ");
		print_type(p, v);
		const ir_param *q = i < f->nparams ? &f->params[i] : NULL;
		if (!q || (q->divisible <= 1 && !q->is_one)) continue;
		text_puts(p->out, " {");
		if (q->divisible > 1)
			text_printf(p->out, "%s=%u", q->type.pointer ? "align" : "divisible", q->divisible);
		text_printf(p->out, "%s%s}", q->divisible > 1 && q->is_one ? " " : "", q->is_one ? "one" : "");
	}
	text_puts(p->out, ")");
}

void ir_print(text *out, const ir_func *f)
{
	ir_print_marked(out, f, NULL);
}

void ir_print_marked(text *out, const ir_func *f, line_marks *marks)
{
	printer p = {.out = out, .nvalues = f->nvalues, .names = {.arena = out->arena}, .marks = marks};
	p.value_names = ARENA_ARRAY(out->arena, const char *, f->nvalues);
	mark(&p, f->at);
	text_printf(out, "func @%s", f->name);
	print_params(&p, f);
	if (f->level) text_printf(out, " level=%s", ir_level_names[f->level]);
	text_printf(out, " num_warps=%u num_stages=%u num_ctas=%u", f->num_warps, f->num_stages, f->num_ctas);
	if (f->maxnreg) text_printf(out, " maxnreg=%u", f->maxnreg);
	if (f->max_registers != UINT32_MAX) text_printf(out, " max_registers=%u", f->max_registers);
	if (f->max_spills != UINT32_MAX) text_printf(out, " max_spills=%u", f->max_spills);
	if (f->max_shared != UINT32_MAX) text_printf(out, " max_shared=%u", f->max_shared);
	if (f->strict) text_printf(out, " strict=%u", f->strict);
	if (!f->launch_pdl) text_puts(out, " launch_pdl=0");
	if (f->shared_bytes) text_printf(out, " shared_bytes=%u", f->shared_bytes);
	if (f->producer_warps) text_printf(out, " producer_warps=%u", f->producer_warps);
	if (f->cluster) text_printf(out, " cluster=%u", f->cluster);
	if (f->row_groups != 1) text_printf(out, " row_groups=%u", f->row_groups);
	text_puts(out, " {\n");
	print_ops(&p, f->body, 1);
	mark(&p, f->at);
	text_puts(out, "}\n");
}
