/* The syntax tree, and the way from text to it.
 *
 * In: a source file.  Out: one AST_FILE node (always, also after errors: what could be parsed), diagnostics on the
 * side. The one idea: every node is the same small struct with kids in an array, and ast.def says what the kids are; so
 * dumping, walking and testing need no code per kind. */
#ifndef BLK_AST_H
#define BLK_AST_H

#include "../support/diag.h"

typedef enum ast_kind {
#define AST(e, name, kids) AST_##e,
#include "ast.def"
#undef AST
	AST_KIND_COUNT
} ast_kind;

/* Operators: OPERATOR(ENUM, "text") for binary, unary, assignment and binding forms.  ORDER AST_OP */
/* clang-format off */
#define AST_OPERATORS(X) \
	X(NO_OP, "") X(ADD, "+") X(SUB, "-") X(MUL, "*") X(DIV, "/") X(REM, "%") X(SHL, "<<") X(SHR, ">>") \
	X(AND, "&") X(OR, "|") X(XOR, "^") X(LT, "<") X(LE, "<=") X(GT, ">") X(GE, ">=") X(EQ, "==") \
	X(NE, "!=") X(LAND, "&&") X(LOR, "||") X(NEG, "-") X(LNOT, "!") X(TILDE, "~") \
	X(BIND_CONST, "const") X(BIND_LET, "let") X(BIND_VAR, "var")
/* clang-format on */
typedef enum ast_op {
#define X(e, text) AST_OP_##e,
	AST_OPERATORS(X)
#undef X
		AST_OP_COUNT
} ast_op;
extern const char *const ast_op_text[AST_OP_COUNT];
extern const char *const ast_names[AST_KIND_COUNT];

typedef struct ast ast;
struct ast {
	ast_kind kind;
	ast_op op;
	bool flag; /* POINTER, PARAMETER: const; TUPLE: brackets */
	uint32_t nkids;
	uint32_t height; /* nodes on the longest way down to a leaf, itself included: parse_file bounds it (see
			    AST_HEIGHT) */
	ast **kids;
	span at, mark;
	const char *text; /* names are interned per compile: equal names are equal pointers within one `names` table */
	uint32_t ntext;
	uint64_t u64; /* INT, BOOL */
	double f64;   /* FLOAT */
};

/* Trees may be walked recursively: operators and else-if chains nested or chained deeper than AST_HEIGHT are an error,
 * statements and declarations add at most 2 * AST_NESTING nodes above them. */
enum { AST_NESTING = 256, AST_HEIGHT = 2000, SOURCE_LIMIT = 16 << 20 };

/* Interned identifiers of one compile. */
typedef struct names names;
names *names_new(arena *);
const char *names_intern(names *, const char *s, size_t n);

/* Parses one file.  Never fails: errors go to diags, and the tree holds the declarations that parsed.  Limits of
 * language.md section 7 (nesting 256, file 16 MiB) are errors here. */
ast *parse_file(arena *, diags *, names *, source_file *);

/* Files of one compile, and imports.  load.c */
typedef struct source_set {
	arena *arena;
	VEC(source_file *) files;
	const char *const *include_paths;
	size_t ninclude_paths;
	uint64_t bytes;
} source_set;
/* Adds text already in memory (copied) or, with text null, reads the file `name`.  Null after a diagnostic at `at`. */
source_file *source_add(source_set *, diags *, span at, const char *name, const char *text, size_t bytes);
/* Finds an imported path: relative to the folder of `from`, then the include paths, then the built-in library (lib_find
 * in lib.h). Returns the file that is already loaded under the same resolved name if there is one. Null after a
 * diagnostic. */
source_file *source_import(source_set *, diags *, source_file *from, const char *path, span at);

/* --emit=formatted: a file that parses, in one style; format.c */
void format_source(arena *, diags *, source_file *, text *out);

/* --emit=tokens and --emit=ast */
void dump_tokens(arena *, diags *, names *, source_file *, text *out);
void dump_ast(const ast *, text *out);

#endif
