/* What the files of the language server share.
 *
 * A document is the text of an open file.  A program is a document with all that it imports, checked: parsed trees,
 * diagnostics, types of names; it lives in an arena of its own, which goes when the text changes.  A feature is a
 * function from a request's parameters to its result; it finds its program, asks resolve.c what stands at a place, and
 * makes JSON. */
#ifndef BLK_LSP_H
#define BLK_LSP_H

#include <jansson.h>

#include "../sema/sema.h"

/* ---- programs: analysis.c ---- */
typedef struct tree {
	source_file *file;
	ast *root;
	span via; /* the import of the main file that leads here; no file: the main file itself */
} tree;

typedef enum symbol_kind {
	SYMBOL_KERNEL,
	SYMBOL_FN,
	SYMBOL_CONST, /* of a file, or of a function */
	SYMBOL_LET,
	SYMBOL_VAR,
	SYMBOL_LOOP,
	SYMBOL_PARAMETER,
	SYMBOL_FILE,   /* what an import names */
	SYMBOL_OPTION, /* from here on: built in, no place */
	SYMBOL_BUILTIN,
	SYMBOL_TYPE,
} symbol_kind;

typedef struct symbol symbol;
struct symbol {
	symbol_kind kind;
	const char *name;
	span at;          /* the name where it is declared; no file: built in */
	const ast *node;  /* KERNEL FN BIND FOR PARAMETER that declares it, or null */
	const ast *owner; /* the fn or kernel that it stands in; null: of a file */
	bool library;
	symbol **parameters; /* of fns and kernels */
	uint32_t nparameters;
};

typedef struct occurrence {
	span at;
	const symbol *symbol;
	bool declares;
	bool method; /* x.name(..) */
} occurrence;

typedef struct program {
	arena arena;
	source_set sources;
	diags diags;
	names *names;
	source_file *main;
	sema_notes *notes;
	VEC(tree) trees; /* the program's own files, what is imported first */
	bool resolved;
	VEC(symbol *) globals; /* of the program's files, then of the library */
	VEC(symbol *) built_in;
	VEC(occurrence) occurrences;
} program;

typedef struct document {
	char *uri, *path; /* path: absolute, or the URI where that names no file */
	char *text;
	size_t size;
	json_int_t version;
	program *program; /* of this text, or null */
	bool published;   /* its diagnostics were sent */
	struct document *next;
} document;

typedef struct server server;
/* A program of a file, in memory or (bytes null) on disk, with the texts of open documents in the place of files;
 * checked, or only parsed. Null: the file cannot be read. */
program *program_open(server *, const char *path, const char *bytes, size_t size, bool check);
void program_free(program *);
program *program_of(server *, document *); /* the document's, checked */
bool program_uses(const program *, const char *path);

/* ---- names: resolve.c ---- */
void resolve(program *);                                   /* fills globals and occurrences, once */
const occurrence *resolve_at(program *, uint32_t offset);  /* in the main file; null: no name stands there */
const symbol *resolve_global(program *, const char *name); /* as an expression at the top of a file would find it */
bool symbol_same(const symbol *, const symbol *);          /* declared at one place, of two programs perhaps */

/* ---- documents.c: texts and positions ---- */
document *document_find(server *, const char *uri);
document *document_of_path(server *, const char *path);
void document_open(server *, const char *uri, const char *bytes, size_t size, json_int_t version);
bool document_change(server *, document *, const json_t *change); /* false: malformed */
void document_close(server *, document *);
void document_forget(document *); /* its program */
/* A position's byte: beyond a line's end is the line's end, inside a character its first byte. */
bool position_offset(const char *bytes, size_t size, const json_t *position, uint32_t *offset);
json_t *json_position(const char *bytes, size_t size, uint32_t offset);
json_t *json_range(span);
json_t *json_location(server *, span); /* null where the file is not on disk */
const char *uri_of_path(arena *, const char *path);
char *path_of_uri(const char *uri);        /* to free; the URI itself where it is no file's */
json_t *json_text(const char *, size_t n); /* what is not UTF-8 is replaced */

/* ---- features: a result, or null and an error's text in *why ---- */
typedef json_t *feature(server *, const json_t *params, const char **why);
feature lsp_definition, lsp_references, lsp_prepare_rename, lsp_rename, lsp_symbols; /* navigation.c */
feature lsp_hover;                                                                   /* hover.c */
feature lsp_completion, lsp_signature;                                               /* completion.c */
feature lsp_format, lsp_hints;                                                       /* text_features.c */
void publish_diagnostics(server *, document *);                                      /* diagnostics.c */
/* The document and byte that the parameters name; null: none. */
document *feature_place(server *, const json_t *params, uint32_t *offset);

/* ---- what is said of names: hover.c ---- */
/* The lines of the reference about a built-in function or an option; null: none. */
const char *language_text(arena *, const char *name);
typedef struct language_entry {
	const char *name, *text;
} language_entry;
extern const language_entry language_entries[];       /* made of docs/language.md; ends with a null name */
const char *symbol_label(arena *, const symbol *);    /* "fn f(x, const N: i32)" */
const char *symbol_comment(arena *, const symbol *);  /* the comment in front; null: none */
const char *builtin_label(arena *, const char *name); /* "load(p, mask?, other?)" */
extern const char *const reserved_words[];            /* ends with null */

/* ---- rpc.c ---- */
struct server {
	arena scratch; /* of one message */
	jmp_buf out_of_memory;
	document *documents;
	char *folder; /* the workspace's, or null */
	const char **include_paths;
	size_t ninclude_paths;
	blkc_define *defines;
	size_t ndefines;
	bool initialized, shut_down, ended;
	int in, out;
	char *buffer; /* bytes that were read and not yet taken */
	size_t used, room;
	bool closed;    /* no more bytes will come */
	json_t **queue; /* messages that were read and not yet handled */
	size_t nqueue, queue_room;
};
int serve(server *);                   /* until the end; the exit status */
void send_message(server *, json_t *); /* takes it */
void server_include(server *, const char *folder);
void server_define(server *, const char *name, const char *value);
_Noreturn void out_of_memory(void);
void *must(void *); /* the pointer, unless it is null */

#endif
