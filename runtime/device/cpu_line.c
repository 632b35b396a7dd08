/* Which line of the source an instruction came of.
 *
 * In: an ELF object (any bytes) whose sections' addresses are where they were loaded, and an address.  Out: file, line.
 * The one idea: the program in .debug_line is run until it has passed the address; nothing is kept.  Every read is
 * checked, and what is not of the form that compiler/target/cpu/debug.c makes (DWARF 4 at most) has no lines. */
#include "cpu.h"

#include <elf.h>
#include <string.h>

typedef struct bytes { /* what has not been read; after a read beyond the end: bad, and zeros */
	const unsigned char *at, *end;
	bool bad;
} bytes;

static uint64_t take(bytes *b, size_t n)
{
	uint64_t v = 0;
	if (b->bad || (size_t)(b->end - b->at) < n) {
		b->bad = true;
		return 0;
	}
	for (size_t i = 0; i < n; i++) v |= (uint64_t)b->at[i] << 8 * i;
	b->at += n;
	return v;
}

static uint64_t leb(bytes *b, bool is_signed)
{
	uint64_t v = 0, byte;
	unsigned shift = 0;
	do {
		byte = take(b, 1);
		if (shift < 64) v |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && shift < 64 && byte & 0x40) v |= ~UINT64_C(0) << shift;
	return v;
}

static const char *string(bytes *b)
{
	const unsigned char *s = b->at, *zero = b->bad ? NULL : memchr(s, 0, (size_t)(b->end - s));
	if (!zero) {
		b->bad = true;
		return "";
	}
	b->at = zero + 1;
	return (const char *)s;
}

static bytes sub(bytes *b, uint64_t n)
{
	bytes part = {b->at, b->at, b->bad || n > (uint64_t)(b->end - b->at)};
	if (part.bad) return part;
	part.end = b->at += n;
	return part;
}

/* ---- the object ---- */

typedef struct object {
	const unsigned char *file;
	size_t n;
	Elf64_Ehdr head;
} object;

static bool section(const object *o, uint64_t i, Elf64_Shdr *s)
{
	if (i >= o->head.e_shnum) return false;
	memcpy(s, o->file + o->head.e_shoff + i * sizeof *s, sizeof *s);
	return s->sh_type != SHT_NOBITS && s->sh_offset <= o->n && s->sh_size <= o->n - s->sh_offset;
}

static bool open_object(object *o)
{
	if (o->n < sizeof o->head) return false;
	memcpy(&o->head, o->file, sizeof o->head);
	const Elf64_Ehdr *h = &o->head;
	return memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 && h->e_shentsize == sizeof(Elf64_Shdr) && h->e_shoff <= o->n &&
	       (uint64_t)h->e_shnum * sizeof(Elf64_Shdr) <= o->n - h->e_shoff;
}

static bool has_name(const object *o, const Elf64_Shdr *s, const char *name)
{
	Elf64_Shdr names;
	size_t n = strlen(name) + 1;
	return section(o, o->head.e_shstrndx, &names) && s->sh_name <= names.sh_size &&
	       names.sh_size - s->sh_name >= n && memcmp(o->file + names.sh_offset + s->sh_name, name, n) == 0;
}

/* The address that the relocation of that place in the section gives; 0: there is none. */
static uint64_t relocated(const object *o, uint64_t of, uint64_t place)
{
	Elf64_Shdr s, symbols, home;
	Elf64_Rela r;
	Elf64_Sym y;
	for (uint64_t i = 0; i < o->head.e_shnum; i++) {
		if (!section(o, i, &s) || s.sh_type != SHT_RELA || s.sh_info != of) continue;
		for (uint64_t k = 0; k < s.sh_size / sizeof r; k++) {
			memcpy(&r, o->file + s.sh_offset + k * sizeof r, sizeof r);
			if (r.r_offset != place || ELF64_R_TYPE(r.r_info) != R_X86_64_64) continue;
			uint64_t symbol = ELF64_R_SYM(r.r_info);
			if (!section(o, s.sh_link, &symbols) || symbol >= symbols.sh_size / sizeof y) return 0;
			memcpy(&y, o->file + symbols.sh_offset + symbol * sizeof y, sizeof y);
			if (!section(o, y.st_shndx, &home)) return 0;
			return home.sh_addr + y.st_value + (uint64_t)r.r_addend;
		}
	}
	return 0;
}

/* ---- the line program ---- */

typedef struct row {
	uint64_t address, file, line;
} row;

typedef struct program {
	const object *object;
	uint64_t section;
	const unsigned char *start; /* of the section */
	bytes code, folders, files;
	int8_t line_base;
	uint8_t step, line_range, opcode_base, lengths[256];
	row now, last;
	bool begun; /* `last` is a row of this sequence */
} program;

static bool read_header(program *p, bytes *unit)
{
	uint64_t version = take(unit, 2);
	bytes head = sub(unit, take(unit, 4));
	p->code = *unit;
	p->step = (uint8_t)take(&head, 1);
	if (version >= 4) take(&head, 1); /* operations an instruction */
	take(&head, 1);                   /* whether a row is a statement */
	p->line_base = (int8_t)take(&head, 1);
	p->line_range = (uint8_t)take(&head, 1);
	p->opcode_base = (uint8_t)take(&head, 1);
	for (unsigned i = 1; i < p->opcode_base; i++) p->lengths[i] = (uint8_t)take(&head, 1);
	p->folders = head;
	while (*string(&head)) {}
	p->files = head;
	return version >= 2 && version <= 4 && p->line_range && p->opcode_base; /* what was cut off has no files */
}

/* A row begins.  True: the one before held the address. */
static bool add_row(program *p, uint64_t pc)
{
	bool found = p->begun && p->last.address <= pc && pc < p->now.address;
	if (!found) p->last = p->now;
	p->begun = true;
	return found;
}

static bool extended(program *p, uint64_t pc)
{
	bytes o = sub(&p->code, leb(&p->code, false));
	bool found = false;
	p->code.bad = p->code.bad || o.bad;
	switch (take(&o, 1)) {
	case 1: /* the sequence ends */
		found = add_row(p, pc);
		p->now = (row){0, 1, 1};
		p->begun = false;
		break;
	case 2: p->now.address = relocated(p->object, p->section, (uint64_t)(o.at - p->start)); break;
	default: break;
	}
	return found;
}

static bool step(program *p, uint64_t pc)
{
	uint8_t op = (uint8_t)take(&p->code, 1);
	if (op >= p->opcode_base) {
		unsigned by = op - p->opcode_base;
		p->now.address += (uint64_t)(by / p->line_range) * p->step;
		p->now.line += (uint64_t)(int64_t)(p->line_base + (int)(by % p->line_range));
		return add_row(p, pc);
	}
	switch (op) {
	case 0: return extended(p, pc);
	case 1: return add_row(p, pc);
	case 2: p->now.address += leb(&p->code, false) * p->step; break;
	case 3: p->now.line += leb(&p->code, true); break;
	case 4: p->now.file = leb(&p->code, false); break;
	case 8: p->now.address += (uint64_t)((255 - p->opcode_base) / p->line_range) * p->step; break;
	case 9: p->now.address += take(&p->code, 2); break;
	default:
		for (unsigned i = 0; i < p->lengths[op]; i++) leb(&p->code, false);
	}
	return false;
}

/* The folder of that number, from 1; "" for others: an empty name ends the list, and is what a bad string is. */
static const char *folder_name(bytes folders, uint64_t number)
{
	for (uint64_t i = 1;; i++) {
		const char *name = string(&folders);
		if (!*name || i == number) return name;
	}
}

static bool name_file(const program *p, uint64_t number, cpu_line *line)
{
	bytes files = p->files;
	for (uint64_t i = 1;; i++) {
		line->file = string(&files);
		if (!*line->file) return false;
		line->folder = folder_name(p->folders, leb(&files, false));
		for (int k = 0; k < 2; k++) leb(&files, false); /* time, size */
		if (i == number) return !files.bad;
	}
}

static bool find_in(program *p, bytes *unit, uint64_t pc, cpu_line *line)
{
	if (!read_header(p, unit)) return false;
	p->now = (row){0, 1, 1};
	p->begun = false;
	while (!p->code.bad && p->code.at < p->code.end)
		if (step(p, pc)) {
			line->number = (uint32_t)p->last.line;
			return name_file(p, p->last.file, line);
		}
	return false;
}

bool cpu_line_find(const void *elf, size_t n, uint64_t pc, cpu_line *line)
{
	object o = {.file = elf, .n = n};
	Elf64_Shdr s;
	if (!open_object(&o)) return false;
	for (uint64_t i = 0; i < o.head.e_shnum; i++) {
		if (!section(&o, i, &s) || !has_name(&o, &s, ".debug_line")) continue;
		const unsigned char *start = o.file + s.sh_offset;
		bytes all = {start, start + s.sh_size, false};
		for (;;) {
			program p = {.object = &o, .section = i, .start = start};
			bytes unit = sub(&all, take(&all, 4));
			if (unit.bad) break;
			if (find_in(&p, &unit, pc, line)) return true;
		}
	}
	return false;
}
