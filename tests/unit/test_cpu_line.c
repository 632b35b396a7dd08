/* Line tables by hand (runtime/device/cpu_line.c): the DWARF standard's opcodes one at a time, and headers, lists and
 * numbers that end too early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/device/cpu.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CODE_AT = 0x4000, MOST = 400 };

typedef struct table { /* .debug_line, as it grows */
	unsigned char at[MOST];
	size_t n, address_at; /* where the relocated address is; 0: nowhere */
} table;

static void put(table *t, uint64_t v, size_t n)
{
	assert_true(t->n + n <= MOST);
	for (size_t i = 0; i < n; i++) t->at[t->n++] = (unsigned char)(v >> 8 * i);
}
static void put_bytes(table *t, const void *bytes, size_t n)
{
	assert_true(t->n + n <= MOST);
	memcpy(t->at + t->n, bytes, n);
	t->n += n;
}

/* What of a unit may be otherwise than it should. */
typedef struct unit {
	unsigned version, step, line_range, opcode_base;
	int line_base;
	const char *lists; /* folders, an empty one, files: a name, three numbers of one byte each, an empty one */
	size_t lists_bytes;
	uint32_t head_more, unit_more; /* bytes that the lengths say too many */
} unit;
#define LISTS(s) .lists = s, .lists_bytes = sizeof s /* with its NUL */
#define TWO_FILES LISTS("one\0two\0\0a.blk\0\2\0\0b.blk\0\0\0\0")
static const unit usual = {.version = 4, .step = 1, .line_range = 4, .opcode_base = 10, .line_base = -1, TWO_FILES};

/* A unit of that header and code, behind what is there. */
static void put_unit(table *t, const unit *u, const void *code, size_t n)
{
	static const unsigned char lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	size_t operations = u->version >= 4, lengths_n = u->opcode_base ? u->opcode_base - 1 : 0,
	       head = 5 + operations + lengths_n + u->lists_bytes;
	put(t, 2 + 4 + head + n + u->unit_more, 4);
	put(t, u->version, 2);
	put(t, head + u->head_more, 4);
	put(t, u->step, 1);
	if (operations) put(t, 1, 1);
	put(t, 1, 1);
	put(t, (uint8_t)u->line_base, 1);
	put(t, u->line_range, 1);
	put(t, u->opcode_base, 1);
	put_bytes(t, lengths, lengths_n);
	put_bytes(t, u->lists, u->lists_bytes);
	const unsigned char *c = code;
	if (n > 3 && c[0] == 0 && c[1] == 9 && c[2] == 2) t->address_at = t->n + 3;
	put_bytes(t, code, n);
}

/* The object around it: names, the line table, its relocation, one symbol, the code's section. */
typedef struct object {
	Elf64_Ehdr head;
	char names[32];
	Elf64_Sym symbols[2];
	Elf64_Rela rela;
	Elf64_Shdr sections[6];
	unsigned char lines[];
} object;

static bool find(const table *t, uint64_t pc, cpu_line *line)
{
	size_t n = sizeof(object) + t->n;
	static object *o; /* the names that are found lie in it */
	free(o);
	o = calloc(1, n);
	assert_non_null(o);
	memcpy(o->head.e_ident, ELFMAG, SELFMAG);
	o->head.e_shentsize = sizeof(Elf64_Shdr);
	o->head.e_shoff = offsetof(object, sections);
	o->head.e_shnum = 6;
	o->head.e_shstrndx = 1;
	memcpy(o->names, "\0.debug_line", 13);
	o->symbols[1] = (Elf64_Sym){.st_shndx = 5, .st_value = 0x10};
	o->rela = (Elf64_Rela){t->address_at, ELF64_R_INFO(1, R_X86_64_64), 0x20};
	const Elf64_Shdr sections[6] = {{0},
		{.sh_type = SHT_STRTAB, .sh_offset = offsetof(object, names), .sh_size = sizeof o->names},
		{.sh_type = SHT_PROGBITS, .sh_name = 1, .sh_offset = offsetof(object, lines), .sh_size = t->n},
		{.sh_type = SHT_RELA,
			.sh_offset = offsetof(object, rela),
			.sh_size = sizeof o->rela,
			.sh_info = 2,
			.sh_link = 4},
		{.sh_type = SHT_SYMTAB, .sh_offset = offsetof(object, symbols), .sh_size = sizeof o->symbols},
		{.sh_type = SHT_PROGBITS, .sh_addr = CODE_AT, .sh_offset = sizeof o->head}};
	memcpy(o->sections, sections, sizeof sections);
	memcpy(o->lines, t->at, t->n);
	bool found = cpu_line_find(o, n, pc, line);
	assert_true(!found || (*line->file && line->folder));
	if (pc == 0) free(o), o = NULL; /* the last */
	return found;
}

/* 0: none is known. */
static unsigned line_of(const unit *u, const void *code, size_t n, uint64_t pc)
{
	table t = {.n = 0};
	cpu_line line;
	put_unit(&t, u, code, n);
	return find(&t, pc, &line) ? line.number : 0;
}

/* The sequence begins at the symbol's 0x10 and the addend's 0x20 into the code. */
enum { BEGIN = CODE_AT + 0x30 };
#define SET_ADDRESS "\0\11\2\0\0\0\0\0\0\0\0"
#define END "\0\1\1"
#define CODE(s) SET_ADDRESS s, sizeof SET_ADDRESS s - 1

static void opcodes(void **state)
{
	(void)state;
	static const struct {
		const char *code;
		size_t n;
		unsigned at_begin, at_4; /* the lines there */
	} rows[] = {
		{CODE("\1\2\4\1\2\4" END), 1, 1},           /* two rows of line 1, of 4 bytes each */
		{CODE("\3\6\1\2\4\3\1\1\2\4" END), 7, 8},   /* lines 1 + 6, then 1 more */
		{CODE("\3\6\1\2\4\3\x7e\1\2\4" END), 7, 5}, /* then 2 fewer */
		{CODE("\3\6\1\2\4\3\x82\x7f\1\2\4" END), 7, 7 - 126},
		{CODE("\3\6\1\32\2\4" END), 7, 6},              /* special 26: (26 - 10) / 4 bytes, lines -1 + 0 */
		{CODE("\3\6\13\35\2\4" END), 7, 9},             /* 11: no bytes, line + 0; 29: 4 bytes, lines -1 + 3 */
		{CODE("\3\6\12\2\4" END), 6, 0},                /* 10, the first: no bytes, line - 1 */
		{CODE("\1\11\4\0\3\1\1\2\4" END), 1, 2},        /* 4 bytes more, as two bytes say */
		{CODE("\1\10\3\1\1" END), 1, 1},                /* as special 255 has them: 61 */
		{CODE("\1\5\7\6\7\2\4\3\1\1\2\4" END), 1, 2},   /* columns, statements, blocks: skipped */
		{CODE("\1\0\2\x80\1\2\4\3\1\1\2\4" END), 1, 2}, /* so is an extended one that nobody knows */
		{CODE("\1\2\x84\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\0\3\1\1\2\4" END), 1, 2},   /* a long 4 */
		{CODE("\3\x81\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x40\1\2\4\3\1\1\2\4" END), 2, 3}, /* a long 1 */
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		unsigned a = line_of(&usual, rows[i].code, rows[i].n, BEGIN),
			 b = line_of(&usual, rows[i].code, rows[i].n, BEGIN + 4);
		if (a != rows[i].at_begin || b != rows[i].at_4) fail_msg("row %zu: lines %u and %u", i, a, b);
		assert_int_equal(line_of(&usual, rows[i].code, rows[i].n, BEGIN - 1), 0);
		assert_int_equal(line_of(&usual, rows[i].code, rows[i].n, BEGIN + 100), 0);
	}
}

static void steps(void **state)
{
	(void)state;
	static const char code[] = SET_ADDRESS "\1\2\4\3\1\1\2\4" END;
	unit u = usual;
	u.step = 3; /* the bytes of an instruction */
	assert_int_equal(line_of(&u, code, sizeof code - 1, BEGIN + 11), 1);
	assert_int_equal(line_of(&u, code, sizeof code - 1, BEGIN + 12), 2);
}

static const char two_lines[] = SET_ADDRESS "\1\2\4\3\1\1\2\4" END;
static unsigned two(const unit *u)
{
	return line_of(u, two_lines, sizeof two_lines - 1, BEGIN + 4);
}

static void headers(void **state)
{
	(void)state;
	unit u;
	for (unsigned version = 0; version <= 6; version++) {
		u = usual;
		u.version = version;
		assert_int_equal(two(&u), version >= 2 && version <= 4 ? 2 : 0);
	}
	u = usual;
	u.line_range = 0;
	assert_int_equal(two(&u), 0);
	u = usual;
	u.opcode_base = 0;
	assert_int_equal(two(&u), 0);
	u = usual;
	u.head_more = 1000; /* more than the unit has */
	assert_int_equal(two(&u), 0);
	u = usual;
	u.unit_more = 1; /* more than the table has */
	assert_int_equal(two(&u), 0);
	static const char folders[] = {'o', 'n', 'e', 0, 't', 'w', 'o'}; /* the list has no end */
	u = usual;
	u.lists = folders;
	u.lists_bytes = sizeof folders;
	assert_int_equal(two(&u), 0);
	/* too short for the length of its header */
	table t = {.n = 0};
	cpu_line line;
	put(&t, 3, 4);
	put(&t, 4, 2);
	put(&t, 0, 1);
	assert_false(find(&t, BEGIN, &line));
	t.n = 0;
	put(&t, 0, 3); /* and for its own */
	assert_false(find(&t, BEGIN, &line));
}

static void programs(void **state)
{
	(void)state;
	static const struct {
		const char *code;
		size_t n;
		unsigned line;
	} rows[] = {{CODE("\1\2\4"), 0}, /* no row ends it */
		{CODE("\1\2\4\0"), 0},   /* an extended opcode without its length, and one that is too long */
		{CODE("\1\2\4\0\5\1"), 0}, {CODE("\1\2\4\1\0\5\1"), 1}, {CODE("\1\2\x84"), 0},
		{"\1\2\4\1" END, 7, 0}, /* of no address */
		{"", 0, 0}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		unsigned line = line_of(&usual, rows[i].code, rows[i].n, BEGIN + 1);
		if (line != rows[i].line) fail_msg("row %zu: line %u", i, line);
	}
	/* a second unit, behind one of a version that nobody reads, and behind one that has other addresses */
	for (unsigned version = 4; version <= 5; version++) {
		table t = {.n = 0};
		cpu_line line;
		unit u = usual;
		u.version = version;
		put_unit(&t, &u, "\1\2\4" END, 6);
		put_unit(&t, &usual, two_lines, sizeof two_lines - 1);
		assert_true(find(&t, BEGIN + 4, &line));
		assert_int_equal(line.number, 2);
	}
}

static void files(void **state)
{
	(void)state;
	static const struct {
		const char *lists;
		size_t n;
		unsigned number;
		const char *folder, *file; /* null: unknown */
	} rows[] = {
#define L(s) s, sizeof s
		{L("one\0two\0\0a.blk\0\2\0\0b.blk\0\0\0\0"), 1, "two", "a.blk"},
		{L("one\0two\0\0a.blk\0\1\0\0b.blk\0\1\0\0"), 2, "one", "b.blk"},
		{L("one\0two\0\0a.blk\0\2\0\0b.blk\0\0\0\0"), 2, "", "b.blk"},
		{L("one\0two\0\0a.blk\0\3\0\0"), 1, "", "a.blk"}, /* there is no such folder */
		{L("one\0two\0\0a.blk\0\2\0\0"), 0, NULL, NULL}, {L("one\0two\0\0a.blk\0\2\0\0"), 2, NULL, NULL},
		{L("\0"), 1, NULL, NULL}, {"\0a.blk\0\0\0", 9, 1, NULL, NULL}, /* numbers and names without an end */
		{"\0a.blk\0\0\0\0b.b", 13, 2, NULL, NULL}, {"\0a.blk\0\0\0\0b.b", 13, 1, "", "a.blk"}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const char code[] = {0, 9, 2, 0, 0, 0, 0, 0, 0, 0, 0, 4, (char)rows[i].number, 1, 2, 4, 0, 1, 1};
		table t = {.n = 0};
		cpu_line line;
		unit u = usual;
		u.lists = rows[i].lists;
		u.lists_bytes = rows[i].n;
		put_unit(&t, &u, code, sizeof code);
		bool found = find(&t, BEGIN, &line);
		if (found != (rows[i].file != NULL)) fail_msg("row %zu: %d", i, found);
		if (!found) continue;
		assert_string_equal(line.folder, rows[i].folder);
		assert_string_equal(line.file, rows[i].file);
	}
}

static int teardown(void **state)
{
	(void)state;
	table t = {.n = 0};
	cpu_line line;
	find(&t, 0, &line); /* frees its object */
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(opcodes), cmocka_unit_test(steps),
		cmocka_unit_test(headers), cmocka_unit_test(programs), cmocka_unit_test(files)};
	return cmocka_run_group_tests(tests, NULL, teardown);
}
