/* The grammar of blk (docs/language.md), for lemon.  Each action is one call of build.c.
 *
 * Lists allow a comma at their end.  SYNC and INVALID never come from the lexer: parse.c feeds INVALID to be refused, and
 * SYNC where it resumes after an error; only three kinds of list can hold an error: declarations, statements and items
 * of an autotune block. */
%name grammar_
%token_prefix TOKEN_
%token_type {token}
%extra_context {parser *p}
%include {
#include "syntax.h"
#include <assert.h>
}
%stack_size 8000
%stack_overflow { parse_overflow(p); }
%syntax_error { (void)yymajor; (void)TOKEN; parse_refused(p); }

/* Words that mean something in one place only are names elsewhere. */
%fallback NAME IN GRID OPTIONS COST REQUIRES KEY CONFIG WHERE RESET RESTORE SCRATCH TOLERANCE ORDER TRY.
/* Ranges of these numbers are used: contextual words, then literals, then reserved words. */
%token INTEGER FLOAT STRING.
%token IMPORT CONST FN KERNEL AUTOTUNE LET VAR IF ELSE FOR WHILE BREAK CONTINUE RETURN TRUE FALSE NONE INF NAN.
%token END SYNC INVALID.

/* Loosest first.  Comparisons do not chain: build_binary says so, in better words than a refused token. */
%right QUESTION COLON.
%left LOR.
%left LAND.
%left LT LE GT GE EQ NE.
%left OR.
%left XOR.
%left AND.
%left SHL SHR.
%left PLUS MINUS.
%left STAR SLASH PERCENT.

%type declarations {ast_list *}  %type declaration {ast *}
%type parameters {ast_list *}    %type parameter_list {ast_list *}  %type parameter {ast *}
%type optional_type {ast *}      %type optional_value {ast *}       %type result {ast *}
%type clauses {clauses}          %type keys {ast *}                 %type reason {ast *}
%type bounds {ast *}
%type items {ast_list *}         %type axes {ast_list *}            %type axis {ast *}
%type statements {ast_list *}    %type statement {ast *}            %type block {ast *}
%type if_chain {ast_list *}      %type pattern {ast *}              %type names {ast_list *}
%type expr {operand}             %type unary {operand}              %type postfix {operand}
%type strings {ast_list *}       %type exprs {ast_list *}           %type expr_list {ast_list *}
%type arguments {ast_list *}     %type argument_list {ast_list *}   %type argument {ast *}
%type named_list {ast_list *}    %type named {ast *}
%type index_list {ast_list *}    %type index_item {ast *}

file ::= declarations(D) END. { build_file(p, D); }

/* ---- declarations ---- */

declarations(L) ::= .                              { L = build_list(p); }
declarations(L) ::= declarations(A) declaration(X). { L = build_append(p, A, X); }
declaration(X) ::= error SYNC.                     { X = NULL; }
declaration(X) ::= IMPORT(W) strings(S) SEMI.      { X = build_import(p, W, build_string(p, S)); }
declaration(X) ::= CONST(W) NAME(N) optional_type(T) ASSIGN expr(E) SEMI.
	{ X = build_bind(p, W, build_name_node(p, N), T, E); }
declaration(X) ::= FN(W) NAME(N) LPAREN(A) parameters(L) RPAREN(Z) result(R) block(B).
	{ X = build_fn(p, W, N, build_group(p, A, L, Z), R, B); }
declaration(X) ::= KERNEL(W) NAME(N) LPAREN(A) parameters(L) RPAREN(Z) clauses(C) block(B).
	{ X = build_kernel(p, W, N, build_group(p, A, L, Z), C, B); }
declaration(X) ::= AUTOTUNE(W) NAME(N) keys(K) LBRACE items(L) RBRACE(Z).
	{ X = build_autotune(p, AST_AUTOTUNE, W, N, K, L, Z); }
declaration(X) ::= AUTOTUNE(W) NAME(N) LPAREN(A) parameters(P) RPAREN(B) LBRACE items(L) RBRACE(Z).
	{ X = build_autotune(p, AST_SPACE, W, N, build_group(p, A, P, B), L, Z); }

parameters(L) ::= .                          { L = build_list(p); }
parameters(L) ::= parameter_list(A) comma.   { L = A; }
parameter_list(L) ::= parameter(X).          { L = build_append(p, build_list(p), X); }
parameter_list(L) ::= parameter_list(A) COMMA parameter(X). { L = build_append(p, A, X); }
parameter(X) ::= NAME(N) optional_type(T) optional_value(V).          { X = build_parameter(p, NULL, N, T, V, NULL); }
parameter(X) ::= CONST(W) NAME(N) optional_type(T) optional_value(V) bounds(B).
	{ X = build_parameter(p, &W, N, T, V, B); }
optional_type(T) ::= .                  { T = NULL; }
optional_type(T) ::= COLON expr(E).     { T = build_expr(E); }
optional_value(V) ::= .                 { V = NULL; }
optional_value(V) ::= ASSIGN expr(E).   { V = build_expr(E); }
bounds(B) ::= .                         { B = NULL; }
bounds(B) ::= IN(W) expr(L) RANGE expr(H). { B = build_bounds(p, W, L, H); }
result(R) ::= .                         { R = NULL; }
result(R) ::= ARROW expr(E).            { R = build_expr(E); }
comma ::= .
comma ::= COMMA.

clauses(C) ::= .                        { C = (clauses){0}; }
clauses(C) ::= clauses(A) GRID(W) LPAREN expr_list(L) RPAREN(Z).          { C = build_clause(p, A, W, L, Z); }
clauses(C) ::= clauses(A) OPTIONS|COST(W) LPAREN named_list(L) comma RPAREN(Z). { C = build_clause(p, A, W, L, Z); }
clauses(C) ::= clauses(A) REQUIRES(W) expr(E) reason(T).                  { C = build_requires(p, A, W, E, T); }
reason(T) ::= .                         { T = NULL; }
reason(T) ::= COMMA strings(S).         { T = build_string(p, S).node; }

/* ---- autotune ---- */

keys(K) ::= .                           { K = NULL; }
keys(K) ::= keys(A) KEY(W) LPAREN expr_list(L) RPAREN(Z).                 { K = build_key(p, A, W, L, Z); }
items(L) ::= .                          { L = build_list(p); }
items(L) ::= items(A) error SYNC.       { L = A; }
items(L) ::= items(A) axes(X) comma SEMI. { L = build_concat(p, A, X); }
items(L) ::= items(A) CONFIG(W) LPAREN named_list(X) comma RPAREN SEMI.
	{ L = build_append(p, A, build_item(p, AST_CONFIG, W, X)); }
items(L) ::= items(A) IMPORT(W) NAME(N) LPAREN arguments(X) RPAREN(Z) SEMI.
	{ L = build_append(p, A, build_use(p, W, N, X, Z)); }
items(L) ::= items(A) WHERE(W) expr(E) SEMI.
	{ L = build_append(p, A, build_item(p, AST_WHERE, W, build_append(p, build_list(p), build_expr(E)))); }
items(L) ::= items(A) TOLERANCE(W) expr(E) SEMI.
	{ L = build_append(p, A, build_item(p, AST_TOLERANCE, W, build_append(p, build_list(p), build_expr(E)))); }
items(L) ::= items(A) ORDER(W) expr(E) SEMI.
	{ L = build_append(p, A, build_item(p, AST_ORDER, W, build_append(p, build_list(p), build_expr(E)))); }
items(L) ::= items(A) TRY(W) expr(E) SEMI.
	{ L = build_append(p, A, build_item(p, AST_TRY, W, build_append(p, build_list(p), build_expr(E)))); }
items(L) ::= items(A) RESET(W) names(X) comma SEMI.   { L = build_append(p, A, build_item(p, AST_RESET, W, X)); }
items(L) ::= items(A) RESTORE(W) names(X) comma SEMI. { L = build_append(p, A, build_item(p, AST_RESTORE, W, X)); }
items(L) ::= items(A) SCRATCH(W) names(X) comma SEMI. { L = build_append(p, A, build_item(p, AST_SCRATCH, W, X)); }
axes(L) ::= axis(X).                    { L = build_append(p, build_list(p), X); }
axes(L) ::= axes(A) COMMA axis(X).      { L = build_append(p, A, X); }
axis(X) ::= NAME(N) COLON LBRACKET expr_list(L) RBRACKET(Z). { X = build_axis(p, N, L, Z); }

/* ---- statements ---- */

block(B) ::= LBRACE(A) statements(L) RBRACE(Z). { B = build_block(p, A, L, Z); }
statements(L) ::= .                             { L = build_list(p); }
statements(L) ::= statements(A) statement(X).   { L = build_append(p, A, X); }
statement(X) ::= error SYNC.                    { X = NULL; }
statement(X) ::= block(B).                      { X = B; }
statement(X) ::= CONST(W) NAME(N) optional_type(T) ASSIGN expr(E) SEMI.
	{ X = build_bind(p, W, build_name_node(p, N), T, E); }
statement(X) ::= LET|VAR(W) pattern(P) optional_type(T) ASSIGN expr(E) SEMI. { X = build_bind(p, W, P, T, E); }
statement(X) ::= expr(A) ASSIGN|PLUS_ASSIGN|MINUS_ASSIGN|STAR_ASSIGN|SLASH_ASSIGN|PERCENT_ASSIGN|SHL_ASSIGN|SHR_ASSIGN
	|AND_ASSIGN|OR_ASSIGN|XOR_ASSIGN(O) expr(E) SEMI. { X = build_assign(p, A, O, E); }
statement(X) ::= expr(E) SEMI.                  { X = build_expression(p, E); }
statement(X) ::= RETURN(W) SEMI.                { X = build_word(p, AST_RETURN, W); }
statement(X) ::= RETURN(W) expr(E) SEMI.        { X = build_return(p, W, E); }
statement(X) ::= BREAK(W) SEMI.                 { X = build_word(p, AST_BREAK, W); }
statement(X) ::= CONTINUE(W) SEMI.              { X = build_word(p, AST_CONTINUE, W); }
statement(X) ::= WHILE(W) expr(C) block(B).     { X = build_while(p, W, C, B); }
statement(X) ::= FOR(W) NAME(N) IN expr(R) block(B). { X = build_for(p, W, N, R, B); }
statement(X) ::= if_chain(L).                   { X = build_if_chain(p, L, NULL); }
statement(X) ::= if_chain(L) ELSE block(B).     { X = build_if_chain(p, L, B); }
if_chain(L) ::= IF(W) expr(C) block(B).         { L = build_append(p, build_list(p), build_if(p, W, C, B)); }
if_chain(L) ::= if_chain(A) ELSE IF(W) expr(C) block(B). { L = build_append(p, A, build_if(p, W, C, B)); }

pattern(P) ::= NAME(N).                         { P = build_name_node(p, N); }
pattern(P) ::= LPAREN(A) names(L) comma RPAREN(Z).     { P = build_pattern(p, A, L, Z); }
pattern(P) ::= LBRACKET(A) names(L) comma RBRACKET(Z). { P = build_pattern(p, A, L, Z); }
names(L) ::= NAME(N).                           { L = build_append(p, build_list(p), build_name_node(p, N)); }
names(L) ::= names(A) COMMA NAME(N).            { L = build_append(p, A, build_name_node(p, N)); }

/* ---- expressions ---- */

expr(X) ::= unary(A).                                       { X = A; }
expr(X) ::= expr(A) QUESTION(O) expr(B) COLON expr(C).      { X = build_ternary(p, A, O, B, C); }
expr(X) ::= expr(A) LOR(O) expr(B).                         { X = build_binary(p, A, O, B); }
expr(X) ::= expr(A) LAND(O) expr(B).                        { X = build_binary(p, A, O, B); }
expr(X) ::= expr(A) LT|LE|GT|GE|EQ|NE(O) expr(B).           { X = build_binary(p, A, O, B); }
expr(X) ::= expr(A) OR(O) expr(B).                          { X = build_binary(p, A, O, B); }
expr(X) ::= expr(A) XOR(O) expr(B).                         { X = build_binary(p, A, O, B); }
expr(X) ::= expr(A) AND(O) expr(B).                         { X = build_binary(p, A, O, B); }
expr(X) ::= expr(A) SHL|SHR(O) expr(B).                     { X = build_binary(p, A, O, B); }
expr(X) ::= expr(A) PLUS|MINUS(O) expr(B).                  { X = build_binary(p, A, O, B); }
expr(X) ::= expr(A) STAR|SLASH|PERCENT(O) expr(B).          { X = build_binary(p, A, O, B); }
unary(X) ::= postfix(A).                                    { X = A; }
unary(X) ::= MINUS|BANG|TILDE(O) unary(A).                  { X = build_unary(p, O, A); }
unary(X) ::= STAR(O) unary(A).                              { X = build_pointer(p, O, false, A); }
unary(X) ::= STAR(O) CONST unary(A).                        { X = build_pointer(p, O, true, A); }
postfix(X) ::= INTEGER|FLOAT|TRUE|FALSE|NONE|INF|NAN(T).    { X = build_literal(p, T); }
postfix(X) ::= strings(S).                                  { X = build_string(p, S); }
postfix(X) ::= NAME(N).                                     { X = build_name(p, N); }
postfix(X) ::= LPAREN(A) expr(E) RPAREN(Z).                 { X = build_paren(p, A, E, Z); }
postfix(X) ::= LPAREN(A) RPAREN(Z).                         { X = build_tuple(p, A, build_list(p), Z); }
postfix(X) ::= LPAREN(A) expr(E) COMMA RPAREN(Z).
	{ X = build_tuple(p, A, build_append(p, build_list(p), build_expr(E)), Z); }
postfix(X) ::= LPAREN(A) expr(E) COMMA expr_list(L) RPAREN(Z).
	{ X = build_tuple(p, A, build_concat(p, build_append(p, build_list(p), build_expr(E)), L), Z); }
postfix(X) ::= LBRACKET(A) RBRACKET(Z).                     { X = build_tuple(p, A, build_list(p), Z); }
postfix(X) ::= LBRACKET(A) expr_list(L) RBRACKET(Z).        { X = build_tuple(p, A, L, Z); }
postfix(X) ::= postfix(A) DOT NAME(N).                      { X = build_member(p, A, N); }
postfix(X) ::= postfix(A) LPAREN arguments(L) RPAREN(Z).    { X = build_call(p, A, L, Z); }
postfix(X) ::= postfix(A) LBRACKET(O) index_list(L) comma RBRACKET(Z). { X = build_index(p, A, O, L, Z); }

strings(L) ::= STRING(S).                          { L = build_append(p, build_list(p), build_string_part(p, S)); }
strings(L) ::= strings(A) STRING(S).               { L = build_append(p, A, build_string_part(p, S)); }
expr_list(L) ::= exprs(A) comma.                   { L = A; }
exprs(L) ::= expr(E).                              { L = build_append(p, build_list(p), build_expr(E)); }
exprs(L) ::= exprs(A) COMMA expr(E).               { L = build_append(p, A, build_expr(E)); }
arguments(L) ::= .                                 { L = build_list(p); }
arguments(L) ::= argument_list(A) comma.           { L = A; }
argument_list(L) ::= argument(X).                  { L = build_append(p, build_list(p), X); }
argument_list(L) ::= argument_list(A) COMMA argument(X). { L = build_append(p, A, X); }
argument(X) ::= expr(E).                           { X = build_argument(p, NULL, E); }
argument(X) ::= named(N).                          { X = N; }
named_list(L) ::= named(X).                        { L = build_append(p, build_list(p), X); }
named_list(L) ::= named_list(A) COMMA named(X).    { L = build_append(p, A, X); }
named(X) ::= NAME(N) ASSIGN expr(E).               { X = build_argument(p, &N, E); }
index_list(L) ::= index_item(X).                   { L = build_append(p, build_list(p), X); }
index_list(L) ::= index_list(A) COMMA index_item(X). { L = build_append(p, A, X); }
index_item(X) ::= expr(E).                         { X = build_expr(E); }
index_item(X) ::= COLON(C).                        { X = build_slice(p, C); }

%code {
void *grammar_new(arena *a, parser *p)
{
	yyParser *lemon = arena_alloc(a, sizeof *lemon);
	grammar_Init(lemon, p);
	return lemon;
}

/* Lemon keeps silent until three tokens have been shifted; parse.c resumes at places that make that needless. */
void grammar_end_recovery(void *lemon)
{
	((yyParser *)lemon)->yyerrcnt = -1;
}

/* The table's answer for exactly this token, names standing for contextual words not considered. */
static YYACTIONTYPE exact_action(YYACTIONTYPE state, int kind)
{
	if (state > YY_MAX_SHIFT) return state;
	int i = (int)yy_shift_ofst[state] + kind;
	return yy_lookahead[i] == kind ? yy_action[i] : yy_default[state];
}

/* Runs the reductions that the token would cause on states alone: those that they push lie in `above`, on top of the
 * first `below` entries of the real stack. */
bool grammar_accepts(const void *lemon, int kind)
{
	const yyParser *parser = lemon;
	YYACTIONTYPE above[64];
	int n = 0, below = (int)(parser->yytos - parser->yystack) + 1;
	for (int steps = 0; steps < 1000; steps++) {
		YYACTIONTYPE action = exact_action(n ? above[n - 1] : parser->yystack[below - 1].stateno, kind);
		if (action < YY_MIN_REDUCE) return action <= YY_MAX_SHIFTREDUCE;
		int rule = action - YY_MIN_REDUCE, size = -yyRuleInfoNRhs[rule];
		int local = size < n ? size : n;
		n -= local;
		below -= size - local;
		YYACTIONTYPE next = yy_find_reduce_action(n ? above[n - 1] : parser->yystack[below - 1].stateno,
			yyRuleInfoLhs[rule]);
		if (n == (int)(sizeof above / sizeof *above)) return false;
		above[n++] = next;
	}
	return false;
}
}
