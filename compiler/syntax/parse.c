/* The parser's driver: tokens into lemon, errors into words, and where to go on after one.
 *
 * In: a source file.  Out: its tree and diagnostics.
 * The one idea: recovery is decided here and not by the grammar.  When lemon refuses a token it unwinds to the
 * innermost list (declarations, statements, autotune items); this file skips tokens to the place where the next entry
 * of that list can start (behind `;`, behind a balanced { }, before `}`, before a word that only starts statements or
 * declarations), then feeds SYNC, and all is as if the wrong entry had been read.  So independent errors are all
 * reported, and one error is reported once. */
#include "syntax.h"

#include <string.h>

#include "grammar.h"

/* ---- what is wrong, in words ---- */

static bool accepts(const parser *p, int kind)
{
	return grammar_accepts(p->lemon, kind);
}

typedef struct words {
	const char *at[8];
	uint32_t n;
} words;

static void add_word(words *w, const char *s)
{
	if (w->n < sizeof w->at / sizeof *w->at) w->at[w->n++] = s;
}

/* Behind the ':' of a name that is declared. */
static bool type_follows(const parser *p)
{
	return p->last.kind == TOKEN_COLON && !p->ternaries && !p->autotune &&
	       !(p->nopen && p->open[p->nopen - 1].kind == TOKEN_LBRACKET);
}

/* What could stand here.  Sets that a reader knows under one name are named so; operators are never listed beside
 * something else, since they could nearly always follow. */
static words expected(const parser *p)
{
	static const int single[] = {TOKEN_LPAREN, TOKEN_LBRACKET, TOKEN_ASSIGN, TOKEN_COLON, TOKEN_COMMA, TOKEN_SEMI,
		TOKEN_ARROW, TOKEN_IN, TOKEN_GRID, TOKEN_OPTIONS, TOKEN_COST, TOKEN_REQUIRES, TOKEN_KEY, TOKEN_LBRACE,
		TOKEN_RPAREN, TOKEN_RBRACKET, TOKEN_RBRACE};
	words w = {{0}, 0};
	bool expression = accepts(p, TOKEN_INTEGER), operators = accepts(p, TOKEN_SLASH), name = accepts(p, TOKEN_NAME);
	if (accepts(p, TOKEN_KERNEL)) {
		add_word(&w, "a declaration");
		return w;
	}
	if (accepts(p, TOKEN_LET))
		add_word(&w, "a statement");
	else if (accepts(p, TOKEN_TOLERANCE))
		add_word(&w, "an axis, 'config', 'where', 'reset', 'restore', 'scratch', 'tolerance', 'order', 'try'");
	else if (expression)
		add_word(&w, type_follows(p) ? "a type" : "an expression");
	else if (name)
		add_word(&w, accepts(p, TOKEN_CONST) ? "a parameter" : "a name");
	else if (accepts(p, TOKEN_STRING) && !operators)
		add_word(&w, "a string");
	for (size_t i = 0; i < sizeof single / sizeof *single; i++) {
		int kind = single[i];
		bool part_of_named =
			(expression && (kind == TOKEN_LPAREN || kind == TOKEN_LBRACKET || kind == TOKEN_LBRACE)) ||
			(operators && (kind == TOKEN_LPAREN || kind == TOKEN_LBRACKET));
		if (name && !expression && (kind == TOKEN_LPAREN || kind == TOKEN_LBRACKET)) part_of_named = false;
		if (!part_of_named && accepts(p, kind)) add_word(&w, token_text(kind));
	}
	if (w.n == 0) add_word(&w, operators ? "an operator" : "something else");
	return w;
}

static const char *join_words(parser *p, const words *w)
{
	text t = {.arena = p->arena};
	for (uint32_t i = 0; i < w->n; i++) {
		if (i) text_puts(&t, i + 1 == w->n ? " or " : ", ");
		text_puts(&t, w->at[i]);
	}
	return t.at;
}

static bool is_reserved(int kind)
{
	return kind >= TOKEN_IMPORT && kind <= TOKEN_NAN;
}

static bool token_is(const parser *p, token t, const char *s)
{
	return t.end - t.begin == strlen(s) && memcmp(p->lexer.text + t.begin, s, t.end - t.begin) == 0;
}

static const char *found(parser *p, token t)
{
	if (t.kind == TOKEN_END) return "the end of the file";
	if (t.kind == TOKEN_STRING) return "a string";
	int n = t.end - t.begin > 40 ? 40 : (int)(t.end - t.begin);
	return arena_printf(p->arena, "'%.*s'", n, p->lexer.text + t.begin);
}

static bool starts_statement(int kind)
{
	return kind == TOKEN_LET || kind == TOKEN_VAR || kind == TOKEN_IF || kind == TOKEN_FOR || kind == TOKEN_WHILE ||
	       kind == TOKEN_RETURN || kind == TOKEN_BREAK || kind == TOKEN_CONTINUE;
}

/* Where the lexer stands, to look at the tokens behind the refused one; nothing is reported. */
static lexer behind(const parser *p)
{
	lexer l = p->lexer;
	l.ds = p->unheard;
	return l;
}

/* for (i = 0; i < n; i += 1), with or without the parentheses and a type: refused at '(' or '='. */
static bool is_c_for(const parser *p)
{
	if (p->now.kind == TOKEN_LPAREN) return p->last.kind == TOKEN_FOR;
	return p->now.kind == TOKEN_ASSIGN && p->last.kind == TOKEN_NAME && p->before_last.kind == TOKEN_FOR;
}

/* A short piece of the source without blanks around it, or null. */
static const char *piece(const parser *p, uint32_t begin, uint32_t end)
{
	static const char blanks[] = " \t\r\n";
	while (begin < end && strchr(blanks, p->lexer.text[begin])) begin++;
	while (begin < end && strchr(blanks, p->lexer.text[end - 1])) end--;
	if (begin == end || end - begin > 40 || memchr(p->lexer.text + begin, '\n', end - begin)) return NULL;
	return arena_strndup(p->arena, p->lexer.text + begin, end - begin);
}

static bool same_text(const parser *p, token a, token b)
{
	return a.kind == b.kind && a.end - a.begin == b.end - b.begin &&
	       memcmp(p->lexer.text + a.begin, p->lexer.text + b.begin, a.end - a.begin) == 0;
}

static bool is_arithmetic(int kind)
{
	return kind == TOKEN_NAME || kind == TOKEN_INTEGER || kind == TOKEN_DOT || kind == TOKEN_PLUS ||
	       kind == TOKEN_MINUS || kind == TOKEN_STAR || kind == TOKEN_SLASH || kind == TOKEN_PERCENT;
}

/* A sum of products without the loop's variable, as far as it goes; null for another expression. */
static const char *plain(const parser *p, lexer *l, token variable, token *stop)
{
	uint32_t depth = 0, begin = 0;
	for (bool first = true;; first = false) {
		*stop = lexer_next(l);
		if (first) begin = stop->begin;
		if (stop->kind == TOKEN_LPAREN)
			depth++;
		else if (stop->kind == TOKEN_RPAREN && depth > 0)
			depth--;
		else if (!is_arithmetic(stop->kind) && (depth == 0 || stop->kind != TOKEN_COMMA))
			return depth ? NULL : piece(p, begin, stop->begin);
		if (same_text(p, *stop, variable)) return NULL;
	}
}

/* The step of `i++`, `++i` and `i += s`, the third part of C's for, which begins behind `l`; null for another. */
static const char *step_of(const parser *p, lexer *l, token variable, token *stop)
{
	token a = lexer_next(l), b = lexer_next(l);
	bool before = a.kind == TOKEN_PLUS && b.kind == TOKEN_PLUS;
	if (before) a = lexer_next(l);
	if (!same_text(p, a, variable)) return NULL;
	if (b.kind == TOKEN_PLUS_ASSIGN) return plain(p, l, variable, stop);
	if (!before && (b.kind != TOKEN_PLUS || lexer_next(l).kind != TOKEN_PLUS)) return NULL;
	*stop = lexer_next(l);
	return "1";
}

/* "for i in range(0, n) { .. }" of C's three parts, where they are the usual ones. */
static const char *range_for(const parser *p)
{
	static const char usual[] = "a loop runs over a range: for i in range(lo, hi, step) { .. }";
	lexer l = behind(p);
	token name = p->last, t = p->now, below;
	bool open = t.kind == TOKEN_LPAREN;
	if (open) do {
			name = t;
			t = lexer_next(&l);
		} while (t.kind == TOKEN_NAME || t.kind == TOKEN_LET || t.kind == TOKEN_VAR);
	if (t.kind != TOKEN_ASSIGN || name.kind != TOKEN_NAME) return usual;
	const char *from = plain(p, &l, name, &t), *to, *by;
	if (!from || t.kind != TOKEN_SEMI || !same_text(p, lexer_next(&l), name)) return usual;
	below = lexer_next(&l);
	if (below.kind != TOKEN_LT && below.kind != TOKEN_LE) return usual;
	if (!(to = plain(p, &l, name, &t)) || t.kind != TOKEN_SEMI) return usual;
	if (!(by = step_of(p, &l, name, &t)) || t.kind != (open ? TOKEN_RPAREN : TOKEN_LBRACE)) return usual;
	bool one = strcmp(by, "1") == 0;
	return arena_printf(p->arena, "a loop runs over a range: for %.*s in range(%s, %s%s%s%s) { .. }",
		(int)(name.end - name.begin), p->lexer.text + name.begin, from, to,
		below.kind == TOKEN_LE ? " + 1" : "", one ? "" : ", ", one ? "" : by);
}

static uint32_t column_of(const parser *p, uint32_t at)
{
	uint32_t n = 0;
	while (at > n && p->lexer.text[at - n - 1] != '\n') n++;
	return n;
}

/* A fn that stands deeper in its line than the declaration around it is meant to be inside, not behind a lost brace. */
static bool is_inner_fn(const parser *p)
{
	if (p->now.kind != TOKEN_FN || !p->nopen || !accepts(p, TOKEN_LET)) return false;
	uint32_t line = p->open[0].at.begin - column_of(p, p->open[0].at.begin);
	return column_of(p, p->now.begin) > strspn(p->lexer.text + line, " \t");
}

/* Does the text between the last token and the present one hold c? */
static bool gap_has(const parser *p, char c)
{
	return memchr(p->lexer.text + p->last.end, c, p->now.begin - p->last.end) != NULL;
}

/* `a // b;`: a comment on the line of the last token, whose text ends as a statement does. */
static bool comment_divides(const parser *p)
{
	if (!p->last.end || p->now.kind == TOKEN_END) return false;
	const char *from = p->lexer.text + p->last.end, *end = memchr(from, '\n', p->now.begin - p->last.end);
	from += strspn(from, " \t");
	if (!end || strncmp(from, "//", 2) != 0) return false;
	while (end > from && strchr(" \t\r", end[-1])) end--;
	return end[-1] == ';';
}

/* Habits from other languages. */
static const char *habit(const parser *p)
{
	static const struct {
		const char *word, *hint;
	} habits[] = {{"and", "'and' is written &&"}, {"or", "'or' is written ||"}, {"not", "'not' is written !"},
		{"elif", "'elif' is written else if"}, {"def", "functions are declared with fn"},
		{"function", "functions are declared with fn"},
		{"struct", "there are no structures; tuples group values"},
		{"lambda", "a function is declared with fn, at top level: fn square(x) { return x * x; }"}};
	for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
		if (token_is(p, p->now, habits[i].word) || token_is(p, p->last, habits[i].word)) return habits[i].hint;
	if (p->last.kind == TOKEN_IMPORT)
		return "a file is imported by its name in quotes, import \"file.blk\"; built-in functions need no "
		       "import";
	if (p->now.kind == TOKEN_IF && accepts(p, TOKEN_SEMI) && p->last.end && !gap_has(p, '\n'))
		return "a choice is written c ? x : y, on tiles where(c, x, y)";
	if (accepts(p, TOKEN_SEMI) && comment_divides(p))
		return "// begins a comment; the quotient of integers is a / b";
	if (is_c_for(p)) return range_for(p);
	if (type_follows(p))
		return p->now.kind == TOKEN_ASSIGN ? "leave the ':' out, or name a type: let a: f32 = 1.0" : NULL;
	if (p->now.kind == TOKEN_ASSIGN && !accepts(p, TOKEN_SEMI) && accepts(p, TOKEN_SLASH))
		return "equality is written ==";
	if (p->now.kind == TOKEN_PLUS && p->last.kind == TOKEN_PLUS) return "there is no ++; write x += 1";
	if (p->now.kind == TOKEN_PLUS) return "there is no + in front of an operand";
	if (p->last.kind == TOKEN_MINUS && p->before_last.kind == TOKEN_MINUS) return "there is no --; write x -= 1";
	if (p->now.kind == TOKEN_SEMI && accepts(p, TOKEN_LET)) return "there is no empty statement; remove the ';'";
	if (p->now.kind == TOKEN_SEMI && accepts(p, TOKEN_KERNEL)) return "no ';' follows a body; remove it";
	bool named = p->last.kind == TOKEN_NAME;
	if (p->now.kind == TOKEN_NAME && named && accepts(p, TOKEN_SEMI) && accepts(p, TOKEN_ASSIGN))
		return "a declaration starts with 'let' or 'var', and its type follows the name: let n: i32 = 1";
	if (p->now.kind == TOKEN_COMMA && named && accepts(p, TOKEN_ASSIGN) && accepts(p, TOKEN_COLON))
		return "several names stand in parentheses: let (a, b) = ..";
	if (accepts(p, TOKEN_LBRACE) && !accepts(p, TOKEN_SEMI) &&
		(p->now.kind == TOKEN_NAME || p->now.kind == TOKEN_COLON || starts_statement(p->now.kind)))
		return "a body stands in braces: { .. }";
	if (p->now.kind == TOKEN_COLON && p->nopen && p->open[p->nopen - 1].kind == TOKEN_LBRACKET)
		return "an index holds positions, ':' and None; ranges a:b do not exist";
	return NULL;
}

static int closer_of(int open)
{
	return open == TOKEN_LPAREN ? TOKEN_RPAREN : open == TOKEN_LBRACKET ? TOKEN_RBRACKET : TOKEN_RBRACE;
}

static bool is_closer(int kind)
{
	return kind == TOKEN_RPAREN || kind == TOKEN_RBRACKET || kind == TOKEN_RBRACE;
}

static bool starts_declaration(int kind)
{
	return kind == TOKEN_KERNEL || kind == TOKEN_FN || kind == TOKEN_IMPORT || kind == TOKEN_AUTOTUNE;
}

/* The bracket that the refused token shows to be open for too long, or null. */
static const open_bracket *unclosed(const parser *p)
{
	if (!p->nopen) return NULL;
	const open_bracket *o = &p->open[p->nopen - 1];
	int kind = p->now.kind;
	if (!accepts(p, closer_of(o->kind))) return NULL;
	if (kind == TOKEN_END || starts_declaration(kind)) return o;
	if (o->kind == TOKEN_LBRACE) return NULL;
	return kind == TOKEN_SEMI || kind == TOKEN_LBRACE || is_closer(kind) || starts_statement(kind) ? o : NULL;
}

static bool opened(const parser *p, int closer)
{
	for (uint32_t i = 0; i < p->nopen; i++)
		if (closer_of(p->open[i].kind) == closer) return true;
	return false;
}

/* Something broken before the token has been reported, and may be why the token does not fit. */
static bool follows_broken_text(const parser *p)
{
	uint32_t end = p->last.end;
	if (p->lexer.stray && p->lexer.stray > end && p->lexer.stray <= p->now.begin) return true;
	return p->last.kind == TOKEN_STRING && (end - p->last.begin < 2 || p->lexer.text[end - 1] != '"');
}

/* Says that the token `now` does not fit where the parser stands. */
static void report_refused(parser *p)
{
	if (follows_broken_text(p)) return;
	if (diags_full(p->ds)) {
		diag_error(p->ds, 110, token_span(p, p->now), "syntax error"); /* counted, not shown */
		return;
	}
	span at = token_span(p, p->now);
	if (p->now.kind == TOKEN_END && p->last.end) at.begin = at.end = p->last.end; /* a line with something on it */
	words w = expected(p);
	const char *list = join_words(p, &w), *hint = habit(p);
	const open_bracket *o = unclosed(p);
	diag *d;
	p->c_for = is_c_for(p);
	p->inner_fn = is_inner_fn(p);
	if (p->inner_fn) {
		o = NULL;
		hint = "move it out of the body, and give it what it uses as arguments";
		d = diag_error(p->ds, 110, at, "a function is declared at top level, not inside of another");
	} else if (o) {
		d = diag_error(p->ds, 111, at, "expected %s, found %s", list, found(p, p->now));
		diag_add_label(p->ds, d, o->at, "this %s is not closed", token_text(o->kind));
	} else if (is_closer(p->now.kind) && !opened(p, p->now.kind)) {
		d = diag_error(p->ds, 111, at, "%s closes nothing; expected %s", token_text(p->now.kind), list);
	} else if (is_reserved(p->now.kind) && w.n && strcmp(w.at[0], "a name") == 0) {
		p->skip_first = true;
		d = diag_error(p->ds, 115, at, "%s is a reserved word and cannot be a name", token_text(p->now.kind));
	} else {
		d = diag_error(p->ds, 110, at, "expected %s, found %s", list, found(p, p->now));
	}
	if (!o && accepts(p, TOKEN_SEMI) && p->last.end && gap_has(p, '\n')) {
		span end = {p->lexer.file, p->last.end, p->last.end};
		diag_add_label(p->ds, d, end, "a ';' may be missing here");
	}
	if (hint) diag_set_hint(p->ds, d, "%s", hint);
}

/* Called by the grammar; feed() has said what there is to say. */
void parse_refused(parser *p)
{
	p->failed = true;
}

void parse_overflow(parser *p)
{
	p->failed = p->dead = true;
	diag_error(p->ds, 701, token_span(p, p->now), "this is nested too deeply");
}

/* ---- counting brackets ---- */

static bool ends_operand(int kind)
{
	return kind == TOKEN_NAME || (kind >= TOKEN_IN && kind <= TOKEN_STRING) || kind == TOKEN_TRUE ||
	       kind == TOKEN_FALSE || kind == TOKEN_NONE || kind == TOKEN_INF || kind == TOKEN_NAN ||
	       kind == TOKEN_RPAREN || kind == TOKEN_RBRACKET;
}

static bool is_opener(int kind)
{
	return kind == TOKEN_LPAREN || kind == TOKEN_LBRACKET || kind == TOKEN_LBRACE;
}

static bool is_prefix(const parser *p, int kind)
{
	return (kind == TOKEN_MINUS || kind == TOKEN_BANG || kind == TOKEN_TILDE || kind == TOKEN_STAR) &&
	       !ends_operand(p->last.kind);
}

/* Keeps `nest` after a token was accepted. */
static void count(parser *p, token t)
{
	if (is_prefix(p, t.kind)) {
		p->prefixes++, p->nest++;
	} else if (t.kind == TOKEN_QUESTION) {
		p->ternaries++, p->nest++;
	} else if (is_opener(t.kind)) {
		p->open[p->nopen++] =
			(open_bracket){t.kind, token_span(p, t), p->nest - p->prefixes, p->ternaries, p->autotune};
		p->nest++;
		p->prefixes = p->ternaries = 0;
	} else if (is_closer(t.kind) && p->nopen) {
		const open_bracket *o = &p->open[--p->nopen];
		p->nest = o->nest;
		p->ternaries = o->ternaries;
		p->prefixes = 0;
	} else if (t.kind == TOKEN_COMMA || t.kind == TOKEN_SEMI) {
		p->nest -= p->ternaries + p->prefixes;
		p->ternaries = p->prefixes = 0;
	} else if (ends_operand(t.kind)) {
		p->nest -= p->prefixes;
		p->prefixes = 0;
	}
	if (t.kind == TOKEN_SEMI || t.kind == TOKEN_LBRACE || t.kind == TOKEN_RBRACE) p->deep = false;
	if (t.kind == TOKEN_AUTOTUNE) p->autotune = true;
	if (t.kind == TOKEN_FN || t.kind == TOKEN_KERNEL) p->heading = t.kind;
	if (t.kind == TOKEN_LBRACE) p->heading = 0;
	if (t.kind == TOKEN_RBRACE || t.kind == TOKEN_SEMI) p->autotune = p->autotune && p->nopen;
	p->before_last = p->last;
	p->last = t;
}

/* ---- feeding and recovering ---- */

static void feed_kind(parser *p, int kind)
{
	token t = {kind, p->now.begin, p->now.begin};
	grammar_(p->lemon, kind, t);
}

/* The token, or a name in its place. */
static bool fits(const parser *p, int kind)
{
	return accepts(p, kind) || (kind >= TOKEN_IN && kind <= TOKEN_TRY && accepts(p, TOKEN_NAME));
}

/* A missing ';' is put in where the next token tells beyond doubt: the statement is kept, not skipped. */
static bool insert_semicolon(parser *p)
{
	int kind = p->now.kind;
	bool beyond_doubt = kind == TOKEN_RBRACE || starts_statement(kind) || starts_declaration(kind);
	if (!beyond_doubt || !accepts(p, TOKEN_SEMI)) return false;
	token t = {TOKEN_SEMI, p->now.begin, p->now.begin};
	grammar_(p->lemon, TOKEN_SEMI, t);
	count(p, t);
	return fits(p, kind);
}

/* Feeds one token; false after an error, which has been reported. */
static bool feed(parser *p, token t)
{
	p->now = t;
	p->failed = false;
	bool deeper = is_opener(t.kind) || t.kind == TOKEN_QUESTION || is_prefix(p, t.kind), fit = fits(p, t.kind);
	if (!fit) {
		report_refused(p);
		fit = insert_semicolon(p);
	} else if (deeper && p->nest >= AST_NESTING) {
		diag *d = diag_error(p->ds, 701, token_span(p, t), "nesting deeper than %d", AST_NESTING);
		diag_set_hint(p->ds, d, "name parts of it with let, or move them into a fn");
		fit = false;
	}
	if (fit)
		grammar_(p->lemon, t.kind, t);
	else
		feed_kind(p, TOKEN_INVALID); /* makes lemon unwind */
	if (p->failed) return false;
	count(p, t);
	return true;
}

/* Lemon has unwound to the innermost list: so do the counts. */
static void unwind(parser *p)
{
	while (p->nopen && p->open[p->nopen - 1].kind != TOKEN_LBRACE) p->nopen--;
	p->nest = p->nopen ? p->open[p->nopen - 1].nest + 1 : 0;
	p->ternaries = p->prefixes = 0;
	p->deep = false;
	if (!p->nopen) p->autotune = false;
}

/* At top level: the body of the function whose header is wrong, the next word that starts a declaration, or a `const`
 * where a declaration has just ended. */
static token skip_declaration(parser *p, token t)
{
	uint32_t depth = 0;
	bool ended = false;
	for (; t.kind != TOKEN_END && !starts_declaration(t.kind); t = lexer_next(&p->lexer)) {
		if (t.kind == TOKEN_SEMI || t.kind == TOKEN_RBRACE) p->heading = 0; /* it ends without a body */
		if (t.kind == TOKEN_LBRACE && p->heading) break;
		if (t.kind == TOKEN_CONST && depth == 0 && ended) break;
		depth += t.kind == TOKEN_LBRACE;
		depth -= t.kind == TOKEN_RBRACE && depth > 0;
		ended = t.kind == TOKEN_SEMI || t.kind == TOKEN_RBRACE;
	}
	return t;
}

/* In a block: behind `;` or a balanced { }, before the block's `}` or a word that starts a statement or declaration. */
static token skip_statement(parser *p, token t)
{
	bool statements = !p->open[p->nopen - 1].autotune;
	uint32_t depth = 0;
	for (; t.kind != TOKEN_END && !starts_declaration(t.kind); t = lexer_next(&p->lexer)) {
		if (depth == 0 && (t.kind == TOKEN_RBRACE || (statements && starts_statement(t.kind)))) break;
		if (depth == 0 && t.kind == TOKEN_SEMI) return lexer_next(&p->lexer);
		depth += t.kind == TOKEN_LBRACE;
		if (t.kind != TOKEN_RBRACE || --depth > 0) continue;
		t = lexer_next(&p->lexer);
		if (t.kind != TOKEN_ELSE) break;
	}
	return t;
}

/* Behind the head of C's for, whose parts end in ';': its body is read as a block. */
static token skip_to_body(parser *p, token t)
{
	uint32_t depth = 0;
	for (; t.kind != TOKEN_END && t.kind != TOKEN_LBRACE && t.kind != TOKEN_RBRACE && !starts_declaration(t.kind);
		t = lexer_next(&p->lexer)) {
		depth += t.kind == TOKEN_LPAREN;
		if (t.kind == TOKEN_RPAREN && depth && --depth == 0) return lexer_next(&p->lexer);
	}
	return t;
}

/* Makes lemon read the body of a function that has a wrong header as one that has none; build_fn drops it. */
static void feed_header(parser *p)
{
	feed_kind(p, TOKEN_FN);
	feed_kind(p, TOKEN_NAME);
	feed_kind(p, TOKEN_LPAREN);
	feed_kind(p, TOKEN_RPAREN);
}

static token recover(parser *p, token t)
{
	unwind(p);
	if (p->skip_first) t = lexer_next(&p->lexer);
	if (p->inner_fn) t = lexer_next(&p->lexer);
	t = p->c_for ? skip_to_body(p, t) : p->nopen ? skip_statement(p, t) : skip_declaration(p, t);
	p->now = t;
	p->skip_first = p->c_for = p->inner_fn = false;
	feed_kind(p, TOKEN_SYNC);
	/* A declaration or the end inside of blocks: their braces are taken as closed, the error has said so. */
	for (; p->nopen && (t.kind == TOKEN_END || starts_declaration(t.kind)); unwind(p)) {
		feed_kind(p, TOKEN_RBRACE);
		p->nopen--;
	}
	if (t.kind == TOKEN_LBRACE && p->heading) feed_header(p);
	grammar_end_recovery(p->lemon);
	p->last = (token){TOKEN_SEMI, t.begin, t.begin};
	p->before_last = p->last;
	return t;
}

/* In an autotune block a word before a colon is an axis, whatever else the word could mean. */
static token next(parser *p)
{
	token t = lexer_next(&p->lexer);
	if (!p->autotune || t.kind < TOKEN_IN || t.kind > TOKEN_TRY) return t;
	lexer ahead = behind(p);
	if (lexer_next(&ahead).kind == TOKEN_COLON) t.kind = TOKEN_NAME;
	return t;
}

ast *parse_file(arena *a, diags *ds, names *n, source_file *f)
{
	parser *p = ARENA_NEW(a, parser);
	*p = (parser){.arena = a, .ds = ds, .names = n};
	if (f->size > SOURCE_LIMIT) {
		diag_error(ds, 702, (span){f, 0, 0}, "%s is larger than %d MiB", f->name, SOURCE_LIMIT >> 20);
		p->lexer.file = f;
		build_file(p, build_list(p));
		return p->root;
	}
	lexer_init(&p->lexer, a, ds, f);
	p->unheard = ARENA_NEW(a, diags);
	diags_init(p->unheard, a);
	p->lemon = grammar_new(a, p);
	for (token t = next(p);;) {
		if (feed(p, t)) {
			if (t.kind == TOKEN_END) break;
			t = next(p);
		} else {
			if (p->dead) break;
			t = recover(p, t);
		}
	}
	if (!p->dead) grammar_(p->lemon, 0, p->now);
	if (!p->root) build_file(p, build_list(p));
	return p->root;
}
