/* Inside of the syntax folder: what lexer, grammar, driver and builders share.
 *
 * lexer.re cuts text into tokens; parse.c feeds them to the parser that lemon makes of grammar.y, keeps count of
 * brackets and decides where to go on after an error; the grammar's actions are calls of build.c, which makes nodes. */
#ifndef BLK_SYNTAX_H
#define BLK_SYNTAX_H

#include "ast.h"

/* A token is its kind (TOKEN_... of the generated grammar.h) and its bytes. */
typedef struct token {
	int kind;
	uint32_t begin, end;
} token;

typedef struct lexer {
	diags *ds;
	source_file *file;
	const char *text, *cursor, *limit; /* *limit is NUL, and no byte before it is */
	uint32_t stray;                    /* where the last thing that is no token ends */
} lexer;

void lexer_init(lexer *, arena *, diags *, source_file *); /* also reports invalid UTF-8 and NULs, once a line */
token lexer_next(lexer *);                                 /* TOKEN_END at the end, again and again */
const char *token_text(int kind);                          /* "';'" or "a name", for messages; never null */
const char *token_kind_name(int kind);                     /* "SEMI", for dumps */

typedef struct open_bracket {
	int kind; /* TOKEN_LPAREN LBRACKET LBRACE */
	span at;
	uint32_t nest, ternaries; /* of the parser, before it was opened */
	bool autotune;            /* the brace of an autotune block */
} open_bracket;

/* What the grammar's extra context points to. */
typedef struct parser {
	arena *arena;
	diags *ds;
	names *names;
	lexer lexer;
	void *lemon;
	ast *root;
	token now, last, before_last; /* being fed; already accepted, the newest first */
	open_bracket open[AST_NESTING + 1];
	uint32_t nopen;
	uint32_t nest;                /* brackets, ?: arms and prefix operators that are open now */
	uint32_t ternaries, prefixes; /* the part of `nest` that belongs to the innermost bracket; to an operator run */
	int heading;                  /* TOKEN_FN or TOKEN_KERNEL while the header of one is being read, else 0 */
	bool autotune;                /* the declaration being read is an autotune */
	bool failed;                  /* the token being fed was refused */
	bool skip_first;              /* it is not where to go on */
	bool c_for, inner_fn;         /* it belongs to the head of C's for; it declares a function in a body */
	diags *unheard;               /* where lexers that look ahead report */
	bool dead;                    /* the parser's stack overflowed */
	bool deep;                    /* this statement's operators are too deep: reported, further ones are dropped */
} parser;

/* grammar.y */
void *grammar_new(arena *, parser *);
void grammar_(void *lemon, int kind, token);
void grammar_end_recovery(void *lemon);
bool grammar_accepts(const void *lemon, int kind); /* would this token, not as a fallback, be shifted now? */

/* parse.c, called by the grammar */
void parse_refused(parser *);
void parse_overflow(parser *);

/* build.c.  An operand is an expression and the place it takes with its parentheses; the node's own `at` is without. */
typedef struct operand {
	ast *node;
	span at;
} operand;
typedef VEC(ast *) ast_list;
typedef struct clauses {
	ast *grid, *options, *cost;
	ast_list *requires;
} clauses;

span token_span(const parser *, token);
ast_list *build_list(parser *);
ast_list *build_append(parser *, ast_list *, ast *); /* null nodes are left out */
ast_list *build_concat(parser *, ast_list *, ast_list *);

operand build_literal(parser *, token);
operand build_string(parser *, ast_list *parts);
ast *build_string_part(parser *, token);
operand build_name(parser *, token);
ast *build_name_node(parser *, token);
operand build_paren(parser *, token open, operand, token close);
operand build_tuple(parser *, token open, ast_list *, token close);
operand build_unary(parser *, token, operand);
operand build_pointer(parser *, token star, bool is_const, operand);
operand build_binary(parser *, operand, token, operand);
operand build_ternary(parser *, operand, token question, operand, operand);
operand build_member(parser *, operand, token name);
operand build_call(parser *, operand callee, ast_list *arguments, token close);
operand build_index(parser *, operand object, token open, ast_list *items, token close);
ast *build_argument(parser *, const token *name, operand value);
ast *build_slice(parser *, token);
ast *build_expr(operand); /* as a part of something that is no operator */

ast *build_block(parser *, token open, ast_list *, token close);
ast *build_bind(parser *, token word, ast *pattern, ast *type, operand value);
ast *build_pattern(parser *, token open, ast_list *, token close);
ast *build_assign(parser *, operand target, token, operand value);
ast *build_expression(parser *, operand);
ast *build_word(parser *, ast_kind, token word); /* break, continue, return without a value */
ast *build_return(parser *, token word, operand);
ast *build_while(parser *, token word, operand, ast *body);
ast *build_for(parser *, token word, token name, operand range, ast *body);
/* An if chain is gathered as IFs without else, and folded from its end. */
ast *build_if(parser *, token word, operand condition, ast *then);
ast *build_if_chain(parser *, ast_list *, ast *otherwise);

void build_file(parser *, ast_list *);
ast *build_import(parser *, token word, operand path);
ast *build_parameter(parser *, const token *word, token name, ast *type, ast *value, ast *bounds);
ast *build_bounds(parser *, token word, operand low, operand high);
ast *build_fn(parser *, token word, token name, ast *parameters, ast *result, ast *body);
ast *build_kernel(parser *, token word, token name, ast *parameters, clauses, ast *body);
ast *build_group(parser *, token word, ast_list *, token close); /* LIST */
clauses build_clause(parser *, clauses, token word, ast_list *, token close);
clauses build_requires(parser *, clauses, token word, operand condition, ast *reason); /* reason: STRING or null */
ast *build_key(parser *, ast *previous, token word, ast_list *, token close);
/* AST_AUTOTUNE with its key, or AST_SPACE with its parameters */
ast *build_autotune(parser *, ast_kind, token word, token name, ast *first, ast_list *items, token close);
ast *build_use(parser *, token word, token name, ast_list *arguments, token close);
ast *build_axis(parser *, token name, ast_list *, token close);
ast *build_item(parser *, ast_kind, token word, ast_list *);

#endif
