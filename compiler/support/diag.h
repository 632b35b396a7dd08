/* Diagnostics: data first, text later.
 *
 * In: a code, a span and a message; optionally labels on other spans, notes and one hint.
 * Out: records in the order they were found; diag_render() prints them as language.md section 7 shows, or as JSON.
 * The one idea: every message of the compiler, from any stage, is one of these records, so that a run reports
 * several errors, and editors get the same facts as people. */
#ifndef BLK_DIAG_H
#define BLK_DIAG_H

#include "arena.h"

/* One source file held in memory.  `name` is printed as the user typed it. */
typedef struct source_file {
	const char *name;
	const char *identity; /* what makes it the same file under another name: its real path; set by load.c */
	const char *text;     /* NUL-terminated copy; may contain NULs before the end, which are errors in the lexer */
	size_t size;          /* bytes, without the NUL */
	uint32_t *line_start; /* offset of each line's first byte, filled by source_lines() on first use */
	uint32_t nlines;
	struct source_step *steps; /* null: ASCII only; else what source_locate needs to count characters quickly */
	uint32_t index;            /* number of the file in its source_set */
} source_file;

/* Where a construct stands: bytes [begin, end) of a file.  file == NULL: nowhere (made by the compiler). */
typedef struct span {
	source_file *file;
	uint32_t begin, end;
} span;

typedef struct source_position {
	uint32_t line, column; /* from 1; column counts characters (UTF-8 code points), a tab is one */
} source_position;
source_position source_locate(arena *, span); /* of the span's first byte; 0, 0 where there is no file */
void source_lines(arena *, source_file *);    /* fills line_start and nlines if that has not been done */
/* The code point at s[0..n), n > 0, and its length; an invalid byte is length 1 and -1. */
int source_utf8(const char *s, size_t n, int *length);
span span_join(span a, span b); /* smallest span that holds both; a where files differ */

/* From where on a made text is of that source line; file null: of none.  In the order of the text. */
typedef struct line_mark {
	size_t at;
	const source_file *file;
	uint32_t line;
} line_mark;
typedef VEC(line_mark) line_marks;

typedef enum diag_severity { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE } diag_severity;

typedef struct diag_label {
	span at;
	const char *text;
	struct diag_label *next;
	bool primary_line;
} diag_label;
typedef struct diag {
	diag_severity severity;
	uint16_t code; /* 203 prints as E0203 (errors) or W0203 (warnings); see codes.def */
	span at;       /* its first byte is the position that is printed */
	span mark;     /* where the carets go; file NULL: under `at`.  Use diag_set_mark for an operator inside `at` */
	const char *message; /* lower case, no full stop */
	diag_label
		*labels;  /* in order of addition; a label may lie in the primary line or elsewhere (a "note:" line) */
	const char *hint; /* or NULL */
	struct diag *next;
} diag;

typedef struct diags {
	arena *arena;
	diag *first, **last;
	uint32_t errors, warnings;
	bool warnings_are_errors;
	uint32_t limit; /* stop recording errors beyond this many, and warnings too (default 100 when 0) */
	diag *surplus;  /* handed out for what is not recorded: beyond the limit, or the same record once more */
} diags;

void diags_init(diags *, arena *);
bool diags_full(const diags *); /* no further error will be recorded: long messages need not be made */
/* Adds a record and returns it so that labels and a hint may follow.  Never null.  A record that repeats an earlier one
 * (same code, place and message: two kernels that inline one wrong function) is recorded once. */
diag *diag_add(diags *, diag_severity, uint16_t code, span, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void diag_add_label(diags *, diag *, span, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void diag_set_hint(diags *, diag *, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void diag_set_mark(diags *, diag *, span);
#define diag_error(ds, code, ...) diag_add((ds), DIAG_ERROR, (code), __VA_ARGS__) /* span, format, ... */
#define diag_warning(ds, code, ...) diag_add((ds), DIAG_WARNING, (code), __VA_ARGS__)

/* All records as text (trailing newline) or as a JSON array (end_line, end_column: one past the last character). */
void diag_render_text(diags *, text *out);
void diag_render_json(diags *, text *out);
void diag_json_string(text *out, const char *); /* quoted and escaped; null: null */

/* Codes: compiler/support/codes.def, one row each: CODE(number, "title").  Ranges:
 *   1xx   lexing and parsing
 *   2xx   names, types and shapes
 *   3xx   compile-time evaluation, calls and declarations
 *   4xx   control flow
 *   5xx   built-ins
 *   6xx   kernels, options, grids and autotune
 *   7xx   limits
 *   8xx   code generation, files and tools
 *   9xx   not on this target */
typedef struct diag_code {
	uint16_t number;
	const char *title; /* what the code stands for, for the documentation */
} diag_code;
extern const diag_code diag_codes[];          /* ascending; ends with number 0 */
const char *diag_code_title(uint16_t number); /* NULL: no such code */

#endif
