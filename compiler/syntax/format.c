/* One style for sources (blkc --format).
 *
 * In: a source file that parses.  Out: its text with the same tokens, comments and line breaks, but with our spaces,
 * indentation, blank lines and columns of comments.
 * The one idea: where a line breaks is the writer's choice; everything else follows from two neighbouring tokens (the
 * space between them) and from the brackets that are open where a line begins (its indentation).  So formatting needs
 * no tree, and what it wrote once it writes again. */
#include "syntax.h"

#include "grammar.h"

#include <assert.h>
#include <string.h>

enum { INDENT = 4, WIDTH = 120 };

typedef struct bracket {
	int kind;
	uint32_t indent; /* of the line that opens it; of a brace: of the statement that it belongs to */
	uint32_t ternaries;
	bool autotune;
} bracket;

typedef struct line {
	uint32_t indent;
	bool blank; /* an empty line stands in front of it */
	text code;
	const char *comment; /* at its end, or null */
	uint32_t comment_bytes;
} line;

typedef struct formatter {
	arena *arena;
	const char *source;
	VEC(bracket) open;
	VEC(line) lines;
	int first;         /* the kind of the first token of this statement */
	int last, before;  /* kinds of the last two tokens, the newest first; END: none */
	bool last_comment; /* a comment stands behind the last token, in its line */
	bool last_unary,
		last_clause; /* the last token is an operator in front of its operand; a word that a clause follows */
	bool fresh;          /* the next token begins a statement */
	uint32_t statement;  /* indentation of the statement */
	uint32_t ternaries;  /* `?` whose `:` has not come, between the innermost brackets */
} formatter;

/* ---- tokens ---- */

static bool is_opener(int kind)
{
	return kind == TOKEN_LPAREN || kind == TOKEN_LBRACKET || kind == TOKEN_LBRACE;
}

static bool is_closer(int kind)
{
	return kind == TOKEN_RPAREN || kind == TOKEN_RBRACKET || kind == TOKEN_RBRACE;
}

static const bracket *innermost(const formatter *f)
{
	return f->open.n ? &f->open.at[f->open.n - 1] : NULL;
}

/* May what comes behind the last token be a binary operator, a call or an index? */
static bool ends_operand(const formatter *f)
{
	int kind = f->last;
	if (f->last_clause || f->last_unary) return false;
	return kind == TOKEN_NAME || (kind >= TOKEN_IN && kind <= TOKEN_STRING) || kind == TOKEN_TRUE ||
	       kind == TOKEN_FALSE || kind == TOKEN_NONE || kind == TOKEN_INF || kind == TOKEN_NAN ||
	       kind == TOKEN_RPAREN || kind == TOKEN_RBRACKET;
}

/* Words that are names but where a clause begins with them: `where a > b;` is one, `where(c, a, b)` is a call. */
static bool begins_clause(const formatter *f, int kind)
{
	const bracket *b = innermost(f);
	if (kind == TOKEN_REQUIRES) return f->first == TOKEN_KERNEL && (!b || b->kind == TOKEN_LBRACE);
	if (kind == TOKEN_IN) return f->before == TOKEN_FOR || (f->first == TOKEN_KERNEL && ends_operand(f));
	bool item = kind == TOKEN_WHERE || kind == TOKEN_ORDER || kind == TOKEN_TRY || kind == TOKEN_TOLERANCE ||
		    kind == TOKEN_RESET || kind == TOKEN_RESTORE || kind == TOKEN_SCRATCH;
	return item && f->fresh && b && b->autotune;
}

static bool is_unary(const formatter *f, int kind)
{
	if (kind == TOKEN_BANG || kind == TOKEN_TILDE) return true;
	return (kind == TOKEN_MINUS || kind == TOKEN_STAR) && !ends_operand(f);
}

/* A space between the last token and this one, in one line. */
static bool spaced(const formatter *f, int kind)
{
	if (kind == TOKEN_COMMA || kind == TOKEN_SEMI || kind == TOKEN_DOT || kind == TOKEN_RANGE ||
		kind == TOKEN_RPAREN || kind == TOKEN_RBRACKET)
		return false;
	if (f->last_comment) return true;
	if (f->last == TOKEN_LPAREN || f->last == TOKEN_LBRACKET || f->last == TOKEN_DOT || f->last == TOKEN_RANGE ||
		f->last_unary)
		return false;
	if (kind == TOKEN_COLON) return f->ternaries || f->last == TOKEN_COMMA;
	if (kind == TOKEN_LPAREN || kind == TOKEN_LBRACKET) return !ends_operand(f);
	return true;
}

/* ---- lines ---- */

static uint32_t inside(const formatter *f)
{
	const bracket *b = innermost(f);
	return b ? b->indent + INDENT : 0;
}

/* Of a line that begins with a token of this kind; END: with a comment. */
static uint32_t indentation(const formatter *f, int kind)
{
	const bracket *b = innermost(f);
	if (b && is_closer(kind)) return b->indent;
	if (b && b->kind != TOKEN_LBRACE) return inside(f);
	if (f->fresh) return inside(f);
	return kind == TOKEN_LBRACE ? f->statement : f->statement + INDENT;
}

/* No empty line stands at the beginning of a file or a block, nor at its end. */
static line *begin_line(formatter *f, uint32_t indent, unsigned breaks, int kind)
{
	const text *above = f->lines.n ? &f->lines.at[f->lines.n - 1].code : NULL;
	bool inner = above && above->at[above->n - 1] != '{' && kind != TOKEN_RBRACE;
	line l = {.indent = indent, .blank = breaks > 1 && inner, .code = {.arena = f->arena}};
	vec_push(f->arena, &f->lines, l);
	return &f->lines.at[f->lines.n - 1];
}

static void put_token(formatter *f, token t, unsigned breaks)
{
	int kind = t.kind;
	bool unary = is_unary(f, kind), clause = begins_clause(f, kind);
	uint32_t at = indentation(f, kind);
	bool starts = breaks || !f->lines.n;
	line *l = starts ? begin_line(f, at, breaks, kind) : &f->lines.at[f->lines.n - 1];
	if (!starts && spaced(f, kind)) text_puts(&l->code, " ");
	text_printf(&l->code, "%.*s", (int)(t.end - t.begin), f->source + t.begin);
	if (f->fresh) {
		f->first = kind;
		f->statement = inside(f);
		f->ternaries = 0;
		f->fresh = false;
	}
	if (kind == TOKEN_QUESTION) f->ternaries++;
	if (kind == TOKEN_COLON && f->ternaries) f->ternaries--;
	if (is_opener(kind)) {
		bracket b = {kind, kind == TOKEN_LBRACE ? f->statement : l->indent, f->ternaries,
			f->first == TOKEN_AUTOTUNE};
		vec_push(f->arena, &f->open, b);
		f->ternaries = 0;
	} else if (is_closer(kind) && f->open.n) {
		f->ternaries = f->open.at[--f->open.n].ternaries;
	}
	const bracket *b = innermost(f);
	f->fresh =
		kind == TOKEN_LBRACE || kind == TOKEN_RBRACE || (kind == TOKEN_SEMI && (!b || b->kind == TOKEN_LBRACE));
	f->before = f->last;
	f->last_comment = false;
	f->last = kind;
	f->last_unary = unary;
	f->last_clause = clause;
}

/* "// .." or a comment between the marks, whole. */
static void put_comment(formatter *f, const char *s, uint32_t n, unsigned breaks)
{
	while (n && strchr(" \t\r", s[n - 1])) n--;
	line *l = breaks || !f->lines.n ? NULL : &f->lines.at[f->lines.n - 1];
	if (l && s[1] == '/') {
		l->comment = s;
		l->comment_bytes = n;
		return;
	}
	if (!l)
		l = begin_line(f, indentation(f, TOKEN_END), breaks, TOKEN_END);
	else if (f->last != TOKEN_LPAREN && f->last != TOKEN_LBRACKET)
		text_puts(&l->code, " ");
	text_printf(&l->code, "%.*s", (int)n, s);
	f->last_comment = true;
}

/* The comments between two tokens; the number of line breaks in front of the second. */
static unsigned put_gap(formatter *f, const char *s, const char *end)
{
	unsigned breaks = 0;
	while (s < end) {
		if (*s != '/') {
			breaks += *s++ == '\n';
			continue;
		}
		const char *stop = s[1] == '/' ? memchr(s, '\n', (size_t)(end - s)) : strstr(s + 2, "*/") + 2;
		if (!stop) stop = end;
		put_comment(f, s, (uint32_t)(stop - s), breaks);
		breaks = 0;
		s = stop;
	}
	return breaks;
}

/* ---- columns ---- */

static uint32_t columns(const char *s, uint32_t n)
{
	uint32_t width = 0;
	for (uint32_t i = 0; i < n; i++) width += ((unsigned char)s[i] & 0xc0) != 0x80;
	return width;
}

static uint32_t width_of(const line *l)
{
	return l->indent + columns(l->code.at, (uint32_t)l->code.n);
}

/* Comments of neighbouring lines begin in one column, as long as all of them stay within the width: of how many lines
 * from here, and in which column. */
static uint32_t align_comments(const formatter *f, uint32_t from, uint32_t *column)
{
	uint32_t n = 0, longest = 0;
	*column = 0;
	for (; from + n < f->lines.n; n++) {
		const line *l = &f->lines.at[from + n];
		if (!l->comment || (n && l->blank)) break;
		uint32_t at = width_of(l) + 1, comment = columns(l->comment, l->comment_bytes);
		if (at < *column) at = *column;
		if (comment < longest) comment = longest;
		if (n && at + comment > WIDTH) break;
		*column = at;
		longest = comment;
	}
	return n;
}

static void print_lines(const formatter *f, text *out)
{
	uint32_t aligned = 0, column = 0; /* lines to come that share the column */
	for (uint32_t i = 0; i < f->lines.n; i++) {
		const line *l = &f->lines.at[i];
		if (l->blank) text_puts(out, "\n");
		if (l->comment && !aligned) aligned = align_comments(f, i, &column);
		text_printf(out, "%*s%s", (int)l->indent, "", l->code.at);
		if (l->comment) {
			text_printf(out, "%*s%.*s", (int)(column - width_of(l)), "", (int)l->comment_bytes, l->comment);
			aligned--;
		}
		text_puts(out, "\n");
	}
}

void format_source(arena *a, diags *ds, source_file *file, text *out)
{
	formatter f = {.arena = a, .source = file->text, .last = TOKEN_END, .before = TOKEN_END, .fresh = true};
	lexer l;
	lexer_init(&l, a, ds, file);
	assert(!ds->errors);
	for (uint32_t at = 0;;) {
		token t = lexer_next(&l);
		unsigned breaks = put_gap(&f, f.source + at, f.source + t.begin);
		if (t.kind == TOKEN_END) break;
		put_token(&f, t, breaks);
		at = t.end;
	}
	print_lines(&f, out);
}
