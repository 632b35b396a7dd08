/* Names of things, interned identifiers, and the two dumps (--emit=tokens, --emit=ast).
 *
 * In: a file or a tree.  Out: text, one token or one node a line, that goldens can hold. */
#include "../support/scalar.h"
#include "syntax.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "grammar.h"

const char *const ast_op_text[AST_OP_COUNT] = {
#define X(e, shown) shown,
	AST_OPERATORS(X)
#undef X
};
const char *const ast_names[AST_KIND_COUNT] = {
#define AST(e, name, kids) name,
#include "ast.def"
#undef AST
};

/* ---- tokens ---- */

static const struct {
	const char *name, *shown;
} token_table[] = {
#define TOKEN(e, shown) [TOKEN_##e] = {#e, shown},
#include "tokens.def"
#undef TOKEN
};

const char *token_text(int kind)
{
	bool known = kind > 0 && (size_t)kind < sizeof token_table / sizeof *token_table && token_table[kind].shown;
	return known ? token_table[kind].shown : "something else";
}

const char *token_kind_name(int kind)
{
	bool known = kind > 0 && (size_t)kind < sizeof token_table / sizeof *token_table && token_table[kind].name;
	return known ? token_table[kind].name : "?";
}

/* ---- identifiers ---- */

typedef struct name {
	uint32_t hash, length;
	const char *text; /* null: the slot is free */
} name;

/* Open addressing, at most half full. */
struct names {
	arena *arena;
	name *slots;
	uint32_t room, n; /* room is a power of two */
};

names *names_new(arena *a)
{
	names *t = ARENA_NEW(a, names);
	*t = (names){a, ARENA_ARRAY(a, name, 256), 256, 0};
	return t;
}

static name *slot_of(name *slots, uint32_t room, uint32_t hash, const char *s, size_t n)
{
	assert(room && !(room & (room - 1)));
	uint32_t i = hash & (room - 1);
	while (slots[i].text && !(slots[i].hash == hash && slots[i].length == n && memcmp(slots[i].text, s, n) == 0))
		i = (i + 1) & (room - 1);
	return &slots[i];
}

const char *names_intern(names *t, const char *s, size_t n)
{
	assert(t->room && !(t->room & (t->room - 1)));
	uint32_t hash = 2166136261u; /* FNV-1a, its high bits folded down */
	for (size_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)s[i]) * 16777619u;
	hash ^= hash >> 15;
	name *found = slot_of(t->slots, t->room, hash, s, n);
	if (found->text) return found->text;
	if (2 * t->n >= t->room) {
		name *bigger = ARENA_ARRAY(t->arena, name, 2 * (size_t)t->room);
		for (uint32_t i = 0; i < t->room; i++) {
			const name *old = &t->slots[i];
			if (old->text) *slot_of(bigger, 2 * t->room, old->hash, old->text, old->length) = *old;
		}
		t->slots = bigger;
		t->room *= 2;
		found = slot_of(t->slots, t->room, hash, s, n);
	}
	t->n++;
	*found = (name){hash, (uint32_t)n, arena_strndup(t->arena, s, n)};
	return found->text;
}

/* ---- dumps ---- */

static void put_quoted(text *out, const char *s, size_t n)
{
	text_puts(out, "\"");
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c == '"' || c == '\\')
			text_printf(out, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			text_printf(out, "\\x%02x", c);
		else
			text_add(out, s + i, 1);
	}
	text_puts(out, "\"");
}

/* A running position: tokens come in order, so that one walk over the text serves them all. */
typedef struct walk {
	const char *s;
	size_t size, at;
	uint32_t line, column;
} walk;

static void walk_to(walk *w, size_t to)
{
	assert(to <= w->size);
	while (w->at < to) {
		int length;
		source_utf8(w->s + w->at, w->size - w->at, &length);
		if (w->s[w->at] == '\n')
			w->line++, w->column = 1;
		else
			w->column++;
		w->at += (size_t)length;
	}
}

void dump_tokens(arena *a, diags *ds, names *n, source_file *f, text *out)
{
	(void)n;
	if (f->size > SOURCE_LIMIT) return; /* parse_file reports it */
	lexer l;
	lexer_init(&l, a, ds, f);
	walk w = {f->text, f->size, 0, 1, 1};
	for (;;) {
		token t = lexer_next(&l);
		walk_to(&w, t.begin);
		text_printf(out, "%u:%u %s", w.line, w.column, token_kind_name(t.kind));
		if (t.kind == TOKEN_END) break;
		text_puts(out, " ");
		put_quoted(out, l.text + t.begin, t.end - t.begin);
		text_puts(out, "\n");
	}
	text_puts(out, "\n");
}

static void put_facts(text *out, const ast *x)
{
	char decimal[SCALAR_DECIMAL];
	switch (x->kind) {
	case AST_INT: text_printf(out, " %llu", (unsigned long long)x->u64); break;
	case AST_BOOL: text_puts(out, x->u64 ? " true" : " false"); break;
	case AST_FLOAT:
		text_puts(out, " ");
		scalar_decimal(SCALAR_F64, x->f64, decimal);
		text_puts(out, decimal);
		break;
	case AST_STRING:
	case AST_IMPORT:
	case AST_REQUIRES:
		if (!x->text) break;
		text_puts(out, " ");
		put_quoted(out, x->text, x->ntext);
		break;
	default:
		if (x->text) text_printf(out, " %s", x->text);
		if (x->op) text_printf(out, " %s", ast_op_text[x->op]);
		if (x->kind == AST_ASSIGN) text_puts(out, "=");
		if (x->flag) text_puts(out, x->kind == AST_TUPLE ? " []" : " const");
	}
}

/* Recursive: the parser bounds the depth. */
static void dump(const ast *x, int depth, text *out)
{
	text_printf(out, "%*s", 2 * depth, "");
	if (!x) {
		text_puts(out, "-\n");
		return;
	}
	text_puts(out, ast_names[x->kind]);
	put_facts(out, x);
	source_position p = source_locate(out->arena, x->mark);
	text_printf(out, " @%u:%u\n", p.line, p.column);
	for (uint32_t i = 0; i < x->nkids; i++) dump(x->kids[i], depth + 1, out);
}

void dump_ast(const ast *x, text *out)
{
	dump(x, 0, out);
}
