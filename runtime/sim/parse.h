/* What the files that read PTX share: text.c cuts it into words, parse.c knows declarations and statements, decode.c
 * makes instructions of them.  A parser stops at its first error, which it keeps in words; every function that can fail
 * returns false then. */
#ifndef BLK_SIM_PARSE_H
#define BLK_SIM_PARSE_H

#include "sim.h"

#include <string.h>

typedef enum word_kind { WORD_END, WORD_NAME, WORD_NUMBER, WORD_STRING, WORD_MARK } word_kind;

typedef struct word {
	word_kind kind;
	const char *text;
	size_t n;
	uint64_t bits;       /* of a number; a float's pattern */
	uint8_t float_bytes; /* of a number: 4 or 8 for 0f.. and 0d.., 8 for 1.5; 0: an integer */
	uint32_t line;
} word;

typedef enum operand_kind {
	OPERAND_REGISTER,
	OPERAND_PREDICATE,
	OPERAND_NUMBER,
	OPERAND_ADDRESS, /* [unit + bits {, {coordinates}}] */
	OPERAND_LIST,    /* {..}: `count` operands from `first` on */
	OPERAND_NAME,    /* a label, a variable, a function */
	OPERAND_SINK     /* _ */
} operand_kind;

typedef struct operand {
	uint8_t kind, bytes; /* bytes: of the register, or of an address's base; 0: it has none */
	uint8_t float_bytes;
	bool negated, percent; /* percent: a register by its name, no parameter of a call */
	uint32_t unit;         /* or the predicate's number */
	uint64_t bits;
	uint32_t first, count;
	const char *name;
	size_t length;
} operand;

typedef struct declaration { /* registers, one or name0..nameN-1, of the innermost open braces first */
	const char *name;
	size_t length;
	uint32_t count;        /* 0: a single one without a number */
	uint32_t unit, stride; /* predicates: number, 1 */
	uint8_t bytes;         /* 0: predicates */
	uint32_t depth;
} declaration;

typedef struct label {
	const char *name;
	size_t length;
	int32_t pc;    /* of a use: the instruction to be patched, or the place in the code's targets */
	uint32_t line; /* of a use */
	bool listed;   /* of a use: it is one of the targets */
} label;

typedef struct target_list { /* name: .branchtargets ..; */
	const char *name;
	size_t length;
	int32_t first; /* in the code's targets */
	uint32_t n;
} target_list;

enum { PARSE_OPERANDS = 192, PARSE_FIRST = 24, PARSE_PARTS = 16, PARSE_OPCODE = 160 };

typedef struct parser {
	const char *at;
	word now;
	uint32_t line;
	sim_code *code;
	const char *symbol;
	declaration *declarations;
	size_t ndeclarations, declarations_room;
	label *labels, *uses;
	size_t nlabels, labels_room, nuses, uses_room;
	target_list *lists;
	size_t nlists, lists_room;
	uint32_t depth;
	uint32_t file, source_line; /* of the last .loc */
	/* The statement that is being decoded. */
	uint32_t statement_line;
	uint16_t guard;
	bool guard_negated;
	char opcode[PARSE_OPCODE]; /* as written */
	char parts_text[PARSE_OPCODE];
	const char *parts[PARSE_PARTS]; /* cut at its dots: `nparts`, behind them empty ones */
	size_t nparts;
	operand operands[PARSE_OPERANDS]; /* the statement's `noperands`, then what lists hold */
	uint32_t noperands, used;
	uint8_t part; /* bytes that are the next atomic's own, at the address in `part_unit`; 0: all */
	uint32_t part_unit;
	uint16_t *rows;           /* hash table of the arithmetic rows: index + 1 */
	uint32_t *constant_slots; /* hash table of the code's constants: index + 1; a power of two */
	size_t nconstant_slots;
	uint64_t edges; /* targets of all switches */
	bool failed;
	char *error;
	size_t room;
} parser;

/* text.c */
bool parse_fail(parser *, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* always false */
bool parse_next(parser *);
bool parse_is(const parser *, const char *mark_or_name);
bool parse_accept(parser *, const char *mark_or_name);
bool parse_expect(parser *, const char *mark_or_name);
void *parse_grow(parser *, void *array, size_t n, size_t *room, size_t size); /* null: failed; else room for one more */

/* declare.c */
char *parse_copy(const char *, size_t);
bool parse_registers(parser *);                            /* behind .reg */
bool parse_variables(parser *, sim_space, bool is_extern); /* behind its space */
const declaration *parse_find(const parser *, const char *name, size_t length, uint32_t *index);
sim_variable *parse_variable(const parser *, const char *name, size_t length);
bool parse_declare(parser *, const char *name, size_t length, uint32_t count, uint8_t bytes);
uint32_t parse_new_unit(parser *, uint8_t bytes);

/* parse.c */
bool parse_body(parser *); /* behind its opening brace, up to its end */
bool parse_skip(parser *); /* up to the semicolon and over it */
bool parse_use(parser *, const char *name, size_t length, int32_t pc, bool listed); /* of a label: patched at the end */

/* decode.c: the statement in the parser becomes an instruction. */
bool decode_statement(parser *);
sim_instr *decode_add(
	parser *, sim_kind, const sim_instr *proto); /* null: failed; else as proto, with its place and guard */
sim_instr *decode_new(parser *, sim_kind);           /* null: failed */
bool decode_unit(parser *, const operand *, uint8_t bytes, uint32_t *unit); /* a register, or a constant's */
bool decode_has(const parser *, const char *part);                          /* the opcode has this part */
bool decode_wrong(parser *, const char *what);                              /* "wrong operands" */
bool decode_unknown(parser *);
bool decode_known_form(parser *); /* decode_forms.c: false: it is one of its instructions, and wrong */
static inline bool decode_part_is(const parser *p, size_t i, const char *s)
{
	return i < p->nparts && strcmp(p->parts[i], s) == 0;
}
bool decode_type(const char *part, scalar *);                    /* "u32", "f16"; "b32" is u32 */
bool decode_matrix_type(const char *part, scalar *, bool *tf32); /* so too; "tf32" is f32 */
bool decode_space(const char *part, sim_instr *);                /* "shared", .. */
bool decode_simple(parser *, sim_step *);                        /* a step without operands */
/* decode_access.c, decode_warp.c: false with !p->failed: it is none of theirs. */
bool decode_access(parser *);
bool decode_convert(parser *);
bool decode_warp(parser *);
bool decode_matrix(parser *);
bool decode_async(parser *);
bool decode_mbarrier(parser *);
bool decode_warpgroup(parser *);
bool decode_bulk(parser *);
bool decode_cluster(parser *);
bool decode_check(parser *);
bool decode_address(parser *, const operand *, sim_instr *); /* into offset, a and wide[1] */

#endif
