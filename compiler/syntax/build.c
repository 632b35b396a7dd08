/* What the grammar's actions do: tokens and subtrees to nodes, with their spans.
 *
 * In: what a rule matched.  Out: one node; and the errors that a grammar would say badly (chained comparisons, targets
 * of assignments, the order of arguments, repeated clauses, numbers out of range).
 * The one idea: `at` of a node is the construct without parentheses around it, so that a message about `(a + b)` points
 * at `a`; an operand carries the wider place too, which is what the constructs around it join. */
#include "syntax.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "grammar.h"

span token_span(const parser *p, token t)
{
	return (span){p->lexer.file, t.begin, t.end};
}

ast_list *build_list(parser *p)
{
	return ARENA_NEW(p->arena, ast_list);
}

ast_list *build_append(parser *p, ast_list *l, ast *x)
{
	if (x) vec_push(p->arena, l, x);
	return l;
}

ast_list *build_concat(parser *p, ast_list *l, ast_list *more)
{
	for (uint32_t i = 0; i < more->n; i++) vec_push(p->arena, l, more->at[i]);
	return l;
}

/* ---- nodes ---- */

static ast *node(parser *p, ast_kind kind, span at, span mark, ast **kids, uint32_t n)
{
	assert(n == 0 || kids);
	ast *x = ARENA_NEW(p->arena, ast);
	*x = (ast){.kind = kind, .at = at, .mark = mark, .kids = kids, .nkids = n};
	for (uint32_t i = 0; i < n; i++)
		if (kids[i] && kids[i]->height > x->height) x->height = kids[i]->height;
	x->height++;
	return x;
}

static ast *leaf(parser *p, ast_kind kind, span at)
{
	return node(p, kind, at, at, NULL, 0);
}

static ast *parent(parser *p, ast_kind kind, span at, span mark, const ast_list *l)
{
	return node(p, kind, at, mark, l->at, l->n);
}

/* A node whose kids are named one by one; some may be null. */
static ast *fixed(parser *p, ast_kind kind, span at, span mark, ast *a, ast *b, ast *c, uint32_t n)
{
	ast **kids = ARENA_ARRAY(p->arena, ast *, n), *all[] = {a, b, c};
	memcpy(kids, all, sizeof *kids * n);
	return node(p, kind, at, mark, kids, n);
}

static span name_of(parser *p, ast *x, token name)
{
	assert(name.begin <= name.end);
	x->ntext = name.end - name.begin;
	x->text = names_intern(p->names, p->lexer.text + name.begin, x->ntext);
	return token_span(p, name);
}

static operand alone(ast *x)
{
	return (operand){x, x->at};
}

/* Operators that are too deep are reported once a statement, and from then on dropped: `otherwise` stands for them. */
static operand bounded(parser *p, ast *x, span at, operand otherwise)
{
	assert(x);
	if (x->height <= AST_HEIGHT) return (operand){x, at};
	if (!p->deep) {
		diag *d = diag_error(p->ds, 703, x->mark, "more than %d operators nested or chained", AST_HEIGHT);
		diag_set_hint(p->ds, d, "name parts of it with let");
	}
	p->deep = true;
	return otherwise;
}

ast *build_expr(operand x)
{
	return x.node;
}

/* ---- literals ---- */

static int digit_value(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 99;
}

static uint64_t integer_value(parser *p, token t)
{
	const char *s = p->lexer.text + t.begin, *end = p->lexer.text + t.end;
	int base = 10;
	if (end - s > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'b')) {
		base = s[1] == 'x' ? 16 : 2;
		s += 2;
	}
	uint64_t v = 0;
	for (; s < end && (*s == '_' || digit_value(*s) < base); s++) {
		if (*s == '_') continue;
		uint64_t digit = (uint64_t)digit_value(*s);
		if (v > (UINT64_MAX - digit) / (uint64_t)base) {
			diag_error(p->ds, 108, token_span(p, t), "integer literal does not fit in 64 bits");
			return 0;
		}
		v = v * (uint64_t)base + digit;
	}
	return v;
}

static double float_value(parser *p, token t)
{
	char *digits = arena_alloc(p->arena, t.end - t.begin + 1), *to = digits;
	bool zero = true;
	for (const char *s = p->lexer.text + t.begin; s < p->lexer.text + t.end; s++)
		if (*s != '_') *to++ = *s;
	for (const char *s = digits; *s && *s != 'e' && *s != 'E'; s++) zero = zero && (*s == '0' || *s == '.');
	double v = strtod(digits, NULL);
	if (v > 1.7976931348623157e308 || (v == 0 && !zero)) {
		diag *d = diag_error(p->ds, 109, token_span(p, t), "float literal %s",
			v == 0 ? "is too small for f64" : "does not fit in f64");
		diag_set_hint(p->ds, d,
			v == 0 ? "write 0.0" : "the largest is 1.7976931348623157e308; infinity is written inf");
		return 0;
	}
	return v;
}

operand build_literal(parser *p, token t)
{
	ast_kind kind = t.kind == TOKEN_INTEGER ? AST_INT
			: t.kind == TOKEN_FLOAT ? AST_FLOAT
			: t.kind == TOKEN_NONE  ? AST_NONE
			: t.kind == TOKEN_INF   ? AST_INF
			: t.kind == TOKEN_NAN   ? AST_NAN
						: AST_BOOL;
	ast *x = leaf(p, kind, token_span(p, t));
	if (kind == AST_INT) x->u64 = integer_value(p, t);
	if (kind == AST_FLOAT) x->f64 = float_value(p, t);
	if (kind == AST_BOOL) x->u64 = t.kind == TOKEN_TRUE;
	return alone(x);
}

/* Decodes the escape behind a backslash at s[0], and returns the bytes it takes. */
static size_t escape(parser *p, const char *s, const char *end, char *out)
{
	static const char from[] = "nt\\\"", to[] = "\n\t\\\"";
	const char *known = s + 1 < end ? memchr(from, s[1], sizeof from - 1) : NULL;
	*out = known ? to[known - from] : '?';
	if (known) return 2;
	if (end - s >= 4 && s[1] == 'x' && digit_value(s[2]) < 16 && digit_value(s[3]) < 16) {
		*out = (char)(digit_value(s[2]) * 16 + digit_value(s[3]));
		return 4;
	}
	int length = 1;
	if (s + 1 < end) source_utf8(s + 1, (size_t)(end - s - 1), &length);
	uint32_t begin = (uint32_t)(s - p->lexer.text);
	span at = {p->lexer.file, begin, begin + 1 + (uint32_t)length};
	diag *d = diag_error(p->ds, 106, at, "unknown escape '%.*s'", 1 + length, s);
	diag_set_hint(p->ds, d, "the escapes are \\n \\t \\\\ \\\" and \\x with two hexadecimal digits");
	return 1 + (size_t)length;
}

ast *build_string_part(parser *p, token t)
{
	const char *s = p->lexer.text + t.begin + 1, *end = p->lexer.text + t.end;
	ast *x = leaf(p, AST_STRING, token_span(p, t));
	char *to = arena_alloc(p->arena, t.end - t.begin + 1);
	x->text = to;
	while (s < end && *s != '"') {
		if (*s != '\\') {
			*to++ = *s++;
			continue;
		}
		if (s + 1 == end) break; /* an unclosed string that ends in a backslash: reported */
		s += escape(p, s, end, to++);
	}
	x->ntext = (uint32_t)(to - x->text);
	*to = 0;
	return x;
}

operand build_string(parser *p, ast_list *parts)
{
	ast *x = parts->at[0];
	if (parts->n == 1) return alone(x);
	text joined = {.arena = p->arena};
	for (uint32_t i = 0; i < parts->n; i++) text_add(&joined, parts->at[i]->text, parts->at[i]->ntext);
	x->text = joined.at;
	x->ntext = (uint32_t)joined.n;
	x->at = x->mark = span_join(x->at, parts->at[parts->n - 1]->at);
	return alone(x);
}

/* ---- expressions ---- */

ast *build_name_node(parser *p, token t)
{
	ast *x = leaf(p, AST_NAME, token_span(p, t));
	name_of(p, x, t);
	return x;
}

operand build_name(parser *p, token t)
{
	return alone(build_name_node(p, t));
}

operand build_paren(parser *p, token open, operand x, token close)
{
	x.at = span_join(token_span(p, open), token_span(p, close));
	return x;
}

operand build_tuple(parser *p, token open, ast_list *items, token close)
{
	span at = span_join(token_span(p, open), token_span(p, close));
	ast *x = parent(p, AST_TUPLE, at, at, items);
	x->flag = open.kind == TOKEN_LBRACKET;
	return bounded(p, x, at, (operand){leaf(p, AST_NONE, at), at});
}

static ast_op binary_op(int kind)
{
	switch (kind) {
	case TOKEN_PLUS:
	case TOKEN_PLUS_ASSIGN: return AST_OP_ADD;
	case TOKEN_MINUS:
	case TOKEN_MINUS_ASSIGN: return AST_OP_SUB;
	case TOKEN_STAR:
	case TOKEN_STAR_ASSIGN: return AST_OP_MUL;
	case TOKEN_SLASH:
	case TOKEN_SLASH_ASSIGN: return AST_OP_DIV;
	case TOKEN_PERCENT:
	case TOKEN_PERCENT_ASSIGN: return AST_OP_REM;
	case TOKEN_SHL:
	case TOKEN_SHL_ASSIGN: return AST_OP_SHL;
	case TOKEN_SHR:
	case TOKEN_SHR_ASSIGN: return AST_OP_SHR;
	case TOKEN_AND:
	case TOKEN_AND_ASSIGN: return AST_OP_AND;
	case TOKEN_OR:
	case TOKEN_OR_ASSIGN: return AST_OP_OR;
	case TOKEN_XOR:
	case TOKEN_XOR_ASSIGN: return AST_OP_XOR;
	case TOKEN_LT: return AST_OP_LT;
	case TOKEN_LE: return AST_OP_LE;
	case TOKEN_GT: return AST_OP_GT;
	case TOKEN_GE: return AST_OP_GE;
	case TOKEN_EQ: return AST_OP_EQ;
	case TOKEN_NE: return AST_OP_NE;
	case TOKEN_LAND: return AST_OP_LAND;
	case TOKEN_LOR: return AST_OP_LOR;
	default: return AST_OP_NO_OP;
	}
}

operand build_unary(parser *p, token op, operand x)
{
	span mark = token_span(p, op), at = span_join(mark, x.at);
	ast *n = fixed(p, AST_UNARY, at, mark, x.node, NULL, NULL, 1);
	n->op = op.kind == TOKEN_MINUS ? AST_OP_NEG : op.kind == TOKEN_BANG ? AST_OP_LNOT : AST_OP_TILDE;
	return bounded(p, n, at, x);
}

operand build_pointer(parser *p, token star, bool is_const, operand x)
{
	span mark = token_span(p, star), at = span_join(mark, x.at);
	ast *n = fixed(p, AST_POINTER, at, mark, x.node, NULL, NULL, 1);
	n->flag = is_const;
	return bounded(p, n, at, x);
}

static bool is_comparison(ast_op op)
{
	return op >= AST_OP_LT && op <= AST_OP_NE;
}

/* `a < b < c` arrives as a comparison whose left side is one that no parenthesis encloses. */
static void check_chain(parser *p, operand left, ast_op op, span mark)
{
	const ast *l = left.node;
	if (!is_comparison(op) || l->kind != AST_BINARY || !is_comparison(l->op) || left.at.begin != l->at.begin)
		return;
	diag *d = diag_error(p->ds, 112, l->at, "comparisons do not chain");
	diag_set_mark(p->ds, d, mark);
	diag_add_label(p->ds, d, l->mark, "the first comparison");
	const ast *b = l->kids[1];
	span middle = b->at;
	bool bits = b->kind == AST_BINARY && (b->op == AST_OP_AND || b->op == AST_OP_OR || b->op == AST_OP_XOR);
	if (bits && !memchr(p->lexer.text + l->mark.end, '(', middle.begin - l->mark.end)) {
		diag_set_hint(p->ds, d, "'%s' binds tighter than a comparison: (a %s b) %s (c %s d)",
			ast_op_text[b->op], ast_op_text[l->op], ast_op_text[b->op], ast_op_text[op]);
		return;
	}
	int n = middle.end - middle.begin > 40 ? 0 : (int)(middle.end - middle.begin);
	const char *s = n ? p->lexer.text + middle.begin : "b";
	diag_set_hint(p->ds, d, "join two comparisons: ... %s %.*s && %.*s %s ... (& for tiles)", ast_op_text[l->op],
		n ? n : 1, s, n ? n : 1, s, ast_op_text[op]);
}

operand build_binary(parser *p, operand l, token op, operand r)
{
	span mark = token_span(p, op), at = span_join(l.at, r.at);
	ast *n = fixed(p, AST_BINARY, at, mark, l.node, r.node, NULL, 2);
	n->op = binary_op(op.kind);
	check_chain(p, l, n->op, mark);
	return bounded(p, n, at, l);
}

operand build_ternary(parser *p, operand c, token question, operand a, operand b)
{
	span at = span_join(c.at, b.at);
	return bounded(p, fixed(p, AST_TERNARY, at, token_span(p, question), c.node, a.node, b.node, 3), at, c);
}

operand build_member(parser *p, operand object, token name)
{
	span at = span_join(object.at, token_span(p, name));
	ast *n = fixed(p, AST_MEMBER, at, token_span(p, name), object.node, NULL, NULL, 1);
	name_of(p, n, name);
	return bounded(p, n, at, object);
}

static ast_list *with_first(parser *p, ast *first, ast_list *rest)
{
	return build_concat(p, build_append(p, build_list(p), first), rest);
}

operand build_call(parser *p, operand callee, ast_list *arguments, token close)
{
	const ast *named = NULL;
	for (uint32_t i = 0; i < arguments->n; i++) {
		const ast *x = arguments->at[i];
		if (x->text) {
			named = x;
		} else if (named) {
			diag *d = diag_error(p->ds, 116, x->at, "a positional argument follows a named one");
			diag_add_label(p->ds, d, named->mark, "named here");
			diag_set_hint(p->ds, d, "name this one too, or move it to the front");
			break;
		}
	}
	span at = span_join(callee.at, token_span(p, close));
	ast *n = parent(p, AST_CALL, at, callee.node->mark, with_first(p, callee.node, arguments));
	return bounded(p, n, at, callee);
}

operand build_index(parser *p, operand object, token open, ast_list *items, token close)
{
	span mark = span_join(token_span(p, open), token_span(p, close)), at = span_join(object.at, mark);
	return bounded(p, parent(p, AST_INDEX, at, mark, with_first(p, object.node, items)), at, object);
}

ast *build_argument(parser *p, const token *name, operand value)
{
	span at = name ? span_join(token_span(p, *name), value.at) : value.at;
	ast *n = fixed(p, AST_ARGUMENT, at, value.node->at, value.node, NULL, NULL, 1);
	if (name) n->mark = name_of(p, n, *name);
	return n;
}

ast *build_slice(parser *p, token colon)
{
	return leaf(p, AST_SLICE, token_span(p, colon));
}

/* ---- statements ---- */

ast *build_block(parser *p, token open, ast_list *l, token close)
{
	span mark = token_span(p, open);
	return parent(p, AST_BLOCK, span_join(mark, token_span(p, close)), mark, l);
}

ast *build_bind(parser *p, token word, ast *pattern, ast *type, operand value)
{
	span at = span_join(token_span(p, word), value.at);
	ast *n = fixed(p, AST_BIND, at, pattern->at, pattern, type, value.node, 3);
	n->op = word.kind == TOKEN_CONST ? AST_OP_BIND_CONST
		: word.kind == TOKEN_LET ? AST_OP_BIND_LET
					 : AST_OP_BIND_VAR;
	return n;
}

ast *build_pattern(parser *p, token open, ast_list *l, token close)
{
	span at = span_join(token_span(p, open), token_span(p, close));
	ast *n = parent(p, AST_TUPLE, at, at, l);
	n->flag = open.kind == TOKEN_LBRACKET;
	return n;
}

static bool assignable(const ast *x)
{
	assert(x);
	if (x->kind != AST_TUPLE || x->nkids == 0) return x->kind == AST_NAME;
	for (uint32_t i = 0; i < x->nkids; i++)
		if (x->kids[i]->kind != AST_NAME) return false;
	return true;
}

/* A short piece of the source, or `otherwise`. */
static const char *source_text(parser *p, span at, const char *otherwise)
{
	uint32_t n = at.end - at.begin;
	if (n > 40 || memchr(p->lexer.text + at.begin, '\n', n)) return otherwise;
	return arena_strndup(p->arena, p->lexer.text + at.begin, n);
}

/* *x = v and x[i] = v: memory is written by a call. */
static void hint_target(parser *p, diag *d, const ast *t, token op, operand value)
{
	if (t->kind != AST_POINTER && t->kind != AST_INDEX) return;
	const char *v = source_text(p, value.at, "v"), *place = source_text(p, t->kids[0]->at, "p");
	bool sum = value.node->kind == AST_BINARY || value.node->kind == AST_TERNARY;
	bool one =
		t->kind == AST_INDEX && t->nkids == 2 && t->kids[1]->kind != AST_SLICE && t->kids[1]->kind != AST_NONE;
	if (t->kind == AST_INDEX && !one) place = "p";
	if (one) {
		const ast *i = t->kids[1];
		bool tight = i->kind != AST_TERNARY && (i->kind != AST_BINARY || i->op <= AST_OP_SUB);
		place = arena_printf(p->arena, tight ? "%s + %s" : "%s + (%s)", place, source_text(p, i->at, "i"));
	}
	if (op.kind != TOKEN_ASSIGN)
		v = arena_printf(p->arena, sum ? "load(%s) %s (%s)" : "load(%s) %s %s", place,
			ast_op_text[binary_op(op.kind)], v);
	diag_set_hint(p->ds, d, "memory is written by store(%s, %s)%s", place, v,
		t->kind == AST_INDEX ? "; a tile is a value: where(..) makes a new one" : "");
}

ast *build_assign(parser *p, operand target, token op, operand value)
{
	ast *t = target.node;
	if (!assignable(t) || (t->kind == AST_TUPLE && op.kind != TOKEN_ASSIGN)) {
		diag *d = diag_error(p->ds, 114, t->at,
			assignable(t) ? "a tuple can only be assigned with ="
				      : "only a name or a tuple of names can be assigned to");
		hint_target(p, d, t, op, value);
	}
	ast *n = fixed(p, AST_ASSIGN, span_join(target.at, value.at), token_span(p, op), t, value.node, NULL, 2);
	n->op = binary_op(op.kind);
	return n;
}

ast *build_expression(parser *p, operand x)
{
	return fixed(p, AST_EXPRESSION, x.at, x.node->mark, x.node, NULL, NULL, 1);
}

ast *build_word(parser *p, ast_kind kind, token word)
{
	span at = token_span(p, word);
	return fixed(p, kind, at, at, NULL, NULL, NULL, kind == AST_RETURN);
}

ast *build_return(parser *p, token word, operand x)
{
	span mark = token_span(p, word);
	return fixed(p, AST_RETURN, span_join(mark, x.at), mark, x.node, NULL, NULL, 1);
}

ast *build_while(parser *p, token word, operand condition, ast *body)
{
	span mark = token_span(p, word);
	return fixed(p, AST_WHILE, span_join(mark, body->at), mark, condition.node, body, NULL, 2);
}

ast *build_for(parser *p, token word, token name, operand range, ast *body)
{
	ast *n = fixed(p, AST_FOR, span_join(token_span(p, word), body->at), body->at, range.node, body, NULL, 2);
	n->mark = name_of(p, n, name);
	return n;
}

ast *build_if(parser *p, token word, operand condition, ast *then)
{
	span mark = token_span(p, word);
	return fixed(p, AST_IF, span_join(mark, then->at), mark, condition.node, then, NULL, 3);
}

ast *build_if_chain(parser *p, ast_list *chain, ast *otherwise)
{
	for (uint32_t i = chain->n; i-- > 0;) {
		ast *x = chain->at[i];
		if (otherwise && otherwise->height >= AST_HEIGHT) {
			if (!p->deep)
				diag_error(p->ds, 703, x->mark, "more than %d links in a chain of else if", AST_HEIGHT);
			p->deep = true;
			otherwise = NULL;
		}
		x->kids[2] = otherwise;
		if (otherwise) {
			x->at = span_join(x->at, otherwise->at);
			if (otherwise->height >= x->height) x->height = otherwise->height + 1;
		}
		otherwise = x;
	}
	p->deep = false;
	return otherwise;
}

/* ---- declarations ---- */

void build_file(parser *p, ast_list *l)
{
	span at = {p->lexer.file, 0, (uint32_t)p->lexer.file->size};
	p->root = parent(p, AST_FILE, at, (span){p->lexer.file, 0, 0}, l);
}

ast *build_import(parser *p, token word, operand path)
{
	ast *n = node(p, AST_IMPORT, span_join(token_span(p, word), path.at), path.at, NULL, 0);
	n->text = path.node->text;
	n->ntext = path.node->ntext;
	return n;
}

/* `in LOW..HIGH` */
ast *build_bounds(parser *p, token word, operand low, operand high)
{
	span mark = token_span(p, word);
	return fixed(p, AST_LIST, span_join(mark, high.at), mark, build_expr(low), build_expr(high), NULL, 2);
}

ast *build_parameter(parser *p, const token *word, token name, ast *type, ast *value, ast *bounds)
{
	span at = token_span(p, name);
	if (word) at = span_join(token_span(p, *word), at);
	if (type) at = span_join(at, type->at);
	if (value) at = span_join(at, value->at);
	if (bounds) at = span_join(at, bounds->at);
	ast *n = fixed(p, AST_PARAMETER, at, at, type, value, bounds, bounds ? 3 : 2);
	n->mark = name_of(p, n, name);
	n->flag = word != NULL;
	return n;
}

ast *build_group(parser *p, token word, ast_list *l, token close)
{
	span mark = token_span(p, word);
	return parent(p, AST_LIST, span_join(mark, token_span(p, close)), mark, l);
}

ast *build_fn(parser *p, token word, token name, ast *parameters, ast *result, ast *body)
{
	if (name.begin == name.end) return NULL; /* made by parse.c to read the body */
	ast *n = fixed(p, AST_FN, span_join(token_span(p, word), body->at), body->at, parameters, result, body, 3);
	n->mark = name_of(p, n, name);
	return n;
}

ast *build_kernel(parser *p, token word, token name, ast *parameters, clauses c, ast *body)
{
	ast_list *l = c.requires;
	ast *required = NULL;
	if (l) required = parent(p, AST_LIST, span_join(l->at[0]->at, l->at[l->n - 1]->at), l->at[0]->mark, l);
	ast *all[] = {parameters, c.grid, c.options, c.cost, required, body};
	enum { N = sizeof all / sizeof *all };
	ast **kids = ARENA_ARRAY(p->arena, ast *, N);
	memcpy(kids, all, sizeof all);
	span at = span_join(token_span(p, word), body->at);
	ast *n = node(p, AST_KERNEL, at, at, kids, N);
	n->mark = name_of(p, n, name);
	return n;
}

static void report_repeated(parser *p, const ast *previous, token word)
{
	diag *d = diag_error(p->ds, 113, token_span(p, word), "%s is given twice", token_text(word.kind));
	diag_add_label(p->ds, d, previous->mark, "first given here");
}

clauses build_clause(parser *p, clauses c, token word, ast_list *l, token close)
{
	ast **place = word.kind == TOKEN_GRID ? &c.grid : word.kind == TOKEN_OPTIONS ? &c.options : &c.cost;
	if (*place)
		report_repeated(p, *place, word);
	else
		*place = build_group(p, word, l, close);
	return c;
}

/* One of several, which must all hold. */
clauses build_requires(parser *p, clauses c, token word, operand condition, ast *reason)
{
	span mark = token_span(p, word);
	ast *n = fixed(p, AST_REQUIRES, span_join(mark, reason ? reason->at : condition.at), mark,
		build_expr(condition), NULL, NULL, 1);
	if (reason) {
		n->text = reason->text;
		n->ntext = reason->ntext;
	}
	if (!c.requires) c.requires = build_list(p);
	build_append(p, c.requires, n);
	return c;
}

ast *build_key(parser *p, ast *previous, token word, ast_list *l, token close)
{
	if (!previous) return build_group(p, word, l, close);
	report_repeated(p, previous, word);
	return previous;
}

ast *build_autotune(parser *p, ast_kind kind, token word, token name, ast *first, ast_list *items, token close)
{
	span at = span_join(token_span(p, word), token_span(p, close));
	ast **kids = ARENA_ARRAY(p->arena, ast *, items->n + 1);
	kids[0] = first;
	if (items->n) memcpy(kids + 1, items->at, sizeof *kids * items->n);
	ast *n = node(p, kind, at, at, kids, items->n + 1);
	n->mark = name_of(p, n, name);
	return n;
}

ast *build_use(parser *p, token word, token name, ast_list *arguments, token close)
{
	span at = span_join(token_span(p, word), token_span(p, close));
	ast *n = parent(p, AST_USE, at, at, arguments);
	n->mark = name_of(p, n, name);
	return n;
}

ast *build_axis(parser *p, token name, ast_list *values, token close)
{
	span at = span_join(token_span(p, name), token_span(p, close));
	ast *n = parent(p, AST_AXIS, at, at, values);
	n->mark = name_of(p, n, name);
	return n;
}

ast *build_item(parser *p, ast_kind kind, token word, ast_list *l)
{
	span mark = token_span(p, word);
	return parent(p, kind, span_join(mark, l->at[l->n - 1]->at), mark, l);
}
