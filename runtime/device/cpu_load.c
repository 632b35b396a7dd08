/* Loads a kernel's relocatable object (ELF, x86-64) into memory that can be executed.
 *
 * In: any bytes, and the name of the function wanted.  Out: its address, or a status and a sentence.
 * Every number in the file is checked before it is used; the worst that hostile bytes can do is to be refused (a file
 * that passes is still code: whoever stores objects guards them by a checksum).
 *
 *   one mapping:  | code, trampolines | constants, GOT | variables |      page-aligned parts
 *                   r-x                 r--              rw-              after the relocations; never rwx
 *
 * Calls to libm go through a trampoline each, because the library may be further than 2 GiB away. */
#include "cpu.h"

#include <elf.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void function(void);
static const struct external {
	const char *name;
	function *address;
} externals[] = {
#define F(name)                                                                                                        \
	{#name, (function *)name},                                                                                     \
	{                                                                                                              \
#name "f", (function *)name##f                                                                         \
	}
	F(exp), F(exp2), F(expm1), F(log), F(log2), F(log10), F(log1p), F(sin), F(cos), F(sincos), F(tan), F(tanh),
	F(erf), F(pow), F(fma), F(floor), F(ceil), F(trunc), F(rint), F(nearbyint), F(round), F(sqrt), F(fmod),
	F(ldexp), F(exp10), F(roundeven), F(fabs),
#undef F
	{"memcpy", (function *)memcpy}, {"memmove", (function *)memmove}, {"memset", (function *)memset},
	{"memcmp", (function *)memcmp}, {"bcmp", (function *)memcmp}};
enum { NEXTERNALS = sizeof externals / sizeof externals[0] };

enum { CODE, CONSTANTS, VARIABLES, PARTS, TRAMPOLINE_BYTES = 16, MAX_SECTIONS = 65280, MAX_ALIGN = 4096 };
static const uint64_t max_memory = UINT64_C(1) << 30;

struct cpu_object {
	void *memory;
	size_t bytes;
	blk_cpu_kernel *kernel;
	uint64_t code_bytes;
	cpu_symbols symbols;
};

typedef struct loader {
	const unsigned char *file;
	size_t n;
	char *error;
	size_t room;
	Elf64_Shdr *section; /* nsections */
	uint64_t *place;     /* of each allocated section, from the start of the mapping */
	uint32_t nsections;
	uint64_t start[PARTS + 1]; /* of each part, page-aligned */
	uint64_t got, got_used, got_slots, trampolines, ntrampolines;
	uint64_t trampoline[NEXTERNALS]; /* place + 1, 0: none yet */
	unsigned char *memory;
	const unsigned char *symbols; /* Elf64_Sym, perhaps unaligned */
	uint64_t nsymbols;
	const char *names;
	uint64_t names_bytes;
} loader;

static int fail(loader *l, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static int fail(loader *l, int status, const char *fmt, ...)
{
	va_list list;
	va_start(list, fmt);
	if (l->room) vsnprintf(l->error, l->room, fmt, list);
	va_end(list);
	return status;
}

static bool inside(uint64_t offset, uint64_t bytes, uint64_t n)
{
	return offset <= n && bytes <= n - offset;
}

static uint64_t align_up(uint64_t v, uint64_t a)
{
	return (v + a - 1) & ~(a - 1);
}

static int read_header(loader *l)
{
	Elf64_Ehdr h;
	if (l->n < sizeof h || memcmp(l->file, ELFMAG, SELFMAG) != 0)
		return fail(l, CPU_BAD_OBJECT, "not an ELF object");
	memcpy(&h, l->file, sizeof h);
	if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_type != ET_REL)
		return fail(l, CPU_BAD_OBJECT, "not a relocatable 64-bit little-endian object");
#if defined(__x86_64__)
	if (h.e_machine != EM_X86_64)
		return fail(l, CPU_UNSUPPORTED, "an object for machine %u, this is x86-64", h.e_machine);
#else
	return fail(l, CPU_UNSUPPORTED, "objects are loaded on x86-64 only");
#endif
	if (h.e_shentsize != sizeof(Elf64_Shdr) || h.e_shnum == 0 || h.e_shnum > MAX_SECTIONS ||
		!inside(h.e_shoff, (uint64_t)h.e_shnum * sizeof(Elf64_Shdr), l->n))
		return fail(l, CPU_BAD_OBJECT, "the section table lies outside the file");
	l->nsections = h.e_shnum;
	l->section = calloc(h.e_shnum, sizeof *l->section);
	l->place = calloc(h.e_shnum, sizeof *l->place);
	if (!l->section || !l->place) return fail(l, CPU_NO_MEMORY, "out of memory");
	memcpy(l->section, l->file + h.e_shoff, h.e_shnum * sizeof *l->section);
	for (uint32_t i = 0; i < l->nsections; i++) {
		const Elf64_Shdr *s = &l->section[i];
		if (s->sh_type != SHT_NULL && s->sh_type != SHT_NOBITS && !inside(s->sh_offset, s->sh_size, l->n))
			return fail(l, CPU_BAD_OBJECT, "section %u lies outside the file", i);
	}
	return CPU_OK;
}

static int part_of(const Elf64_Shdr *s)
{
	return s->sh_flags & SHF_EXECINSTR ? CODE : s->sh_flags & SHF_WRITE ? VARIABLES : CONSTANTS;
}

static bool is_loaded(const Elf64_Shdr *s)
{
	return (s->sh_flags & SHF_ALLOC) && s->sh_type != SHT_NULL;
}

static int check_sections(loader *l)
{
	for (uint32_t i = 0; i < l->nsections; i++) {
		const Elf64_Shdr *s = &l->section[i];
		if (!is_loaded(s)) continue;
		if ((s->sh_flags & SHF_EXECINSTR) && (s->sh_flags & SHF_WRITE))
			return fail(l, CPU_BAD_OBJECT, "section %u is both written and executed", i);
		if (s->sh_flags & SHF_TLS) return fail(l, CPU_UNSUPPORTED, "thread-local variables");
		if (s->sh_addralign > MAX_ALIGN || (s->sh_addralign & (s->sh_addralign - 1)) || s->sh_size > max_memory)
			return fail(l, CPU_BAD_OBJECT, "section %u has an impossible size or alignment", i);
	}
	return CPU_OK;
}

/* Gives each section its place; code is followed by a trampoline for each external, constants by a GOT slot for each
 * symbol. */
static int place_sections(loader *l, uint64_t page)
{
	uint64_t at = 0;
	for (int part = 0; part < PARTS; part++) {
		l->start[part] = at = align_up(at, page);
		for (uint32_t i = 0; i < l->nsections; i++) {
			const Elf64_Shdr *s = &l->section[i];
			if (!is_loaded(s) || part_of(s) != part) continue;
			at = align_up(at, s->sh_addralign > 1 ? s->sh_addralign : 1);
			l->place[i] = at;
			at += s->sh_size;
			if (at > max_memory) return fail(l, CPU_BAD_OBJECT, "more than 1 GiB of code and data");
		}
		if (part == CODE) {
			l->trampolines = at = align_up(at, TRAMPOLINE_BYTES);
			at += (uint64_t)NEXTERNALS * TRAMPOLINE_BYTES;
		} else if (part == CONSTANTS) {
			l->got = at = align_up(at, 8);
			at += l->got_slots * 8;
		}
	}
	l->start[PARTS] = align_up(at, page);
	return CPU_OK;
}

static int copy_sections(loader *l)
{
	void *m = mmap(NULL, l->start[PARTS], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED) return fail(l, CPU_NO_MEMORY, "out of memory for the kernel's code");
	l->memory = m;
	for (uint32_t i = 0; i < l->nsections; i++) {
		const Elf64_Shdr *s = &l->section[i];
		if (is_loaded(s) && s->sh_type != SHT_NOBITS)
			memcpy(l->memory + l->place[i], l->file + s->sh_offset, s->sh_size);
	}
	return CPU_OK;
}

static int find_symbols(loader *l)
{
	for (uint32_t i = 0; i < l->nsections; i++) {
		const Elf64_Shdr *s = &l->section[i];
		if (s->sh_type != SHT_SYMTAB) continue;
		if (s->sh_entsize != sizeof(Elf64_Sym) || s->sh_link >= l->nsections || l->symbols)
			return fail(l, CPU_BAD_OBJECT, "malformed symbol table");
		const Elf64_Shdr *t = &l->section[s->sh_link];
		if (t->sh_type != SHT_STRTAB || t->sh_size == 0 || l->file[t->sh_offset + t->sh_size - 1] != 0)
			return fail(l, CPU_BAD_OBJECT, "malformed symbol names");
		l->symbols = l->file + s->sh_offset;
		l->nsymbols = s->sh_size / sizeof(Elf64_Sym);
		l->names = (const char *)l->file + t->sh_offset;
		l->names_bytes = t->sh_size;
	}
	if (!l->symbols) return fail(l, CPU_BAD_OBJECT, "no symbol table");
	return CPU_OK;
}

static Elf64_Sym symbol_at(const loader *l, uint64_t i)
{
	Elf64_Sym s;
	memcpy(&s, l->symbols + i * sizeof s, sizeof s);
	return s;
}

static const char *name_of(const loader *l, const Elf64_Sym *s)
{
	return s->st_name < l->names_bytes ? l->names + s->st_name : "";
}

static uint64_t address(const loader *l, uint64_t place)
{
	return (uint64_t)(uintptr_t)(l->memory + place);
}

static uint64_t trampoline(loader *l, int external)
{
	static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip), then the address */
	if (!l->trampoline[external]) {
		uint64_t place = l->trampolines + l->ntrampolines++ * TRAMPOLINE_BYTES;
		uint64_t target = (uint64_t)(uintptr_t)externals[external].address;
		memcpy(l->memory + place, jump, sizeof jump);
		memcpy(l->memory + place + sizeof jump, &target, sizeof target);
		l->trampoline[external] = place + 1;
	}
	return address(l, l->trampoline[external] - 1);
}

static int symbol_address(loader *l, uint64_t index, uint64_t *out)
{
	if (index >= l->nsymbols)
		return fail(l, CPU_BAD_OBJECT, "a relocation names symbol %llu, there is no such",
			(unsigned long long)index);
	Elf64_Sym s = symbol_at(l, index);
	const char *name = name_of(l, &s);
	if (s.st_shndx == SHN_ABS) return *out = s.st_value, CPU_OK;
	if (s.st_shndx == SHN_UNDEF) {
		if (strncmp(name, "blk.", 4) == 0) name += 4; /* keeps libm's names apart from kernels' */
		for (int i = 0; i < NEXTERNALS; i++)
			if (strcmp(name, externals[i].name) == 0) return *out = trampoline(l, i), CPU_OK;
		return fail(l, CPU_NO_SYMBOL, "the code needs `%.80s`, which is not one of the functions it may call",
			name);
	}
	if (s.st_shndx >= l->nsections || !is_loaded(&l->section[s.st_shndx]) ||
		s.st_value > l->section[s.st_shndx].sh_size)
		return fail(l, CPU_BAD_OBJECT, "symbol `%.80s` lies outside its section", name);
	*out = address(l, l->place[s.st_shndx]) + s.st_value;
	return CPU_OK;
}

static int got_slot(loader *l, uint64_t symbol, uint64_t *out)
{
	uint64_t target;
	int status = symbol_address(l, symbol, &target);
	if (status) return status;
	uint64_t place = l->got + symbol * 8; /* one slot a symbol, see count_got */
	memcpy(l->memory + place, &target, sizeof target);
	*out = address(l, place);
	return CPU_OK;
}

static int put32(loader *l, unsigned char *at, uint64_t value, bool is_signed)
{
	uint32_t low = (uint32_t)value;
	if (is_signed ? (int64_t)value != (int32_t)low : value != low)
		return fail(l, CPU_BAD_OBJECT, "a relocation does not reach its target");
	memcpy(at, &low, sizeof low);
	return CPU_OK;
}

static int relocate(loader *l, uint32_t section, const Elf64_Rela *r)
{
	uint32_t type = ELF64_R_TYPE(r->r_info);
	uint64_t symbol = ELF64_R_SYM(r->r_info), target;
	unsigned width = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
	if (type == R_X86_64_NONE) return CPU_OK;
	const Elf64_Shdr *s = &l->section[section];
	if (s->sh_type == SHT_NOBITS || !inside(r->r_offset, width, s->sh_size))
		return fail(l, CPU_BAD_OBJECT, "a relocation lies outside section %u", section);
	bool got = type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
	int status = got ? got_slot(l, symbol, &target) : symbol_address(l, symbol, &target);
	if (status) return status;
	unsigned char *at = l->memory + l->place[section] + r->r_offset;
	uint64_t value = target + (uint64_t)r->r_addend, here = (uint64_t)(uintptr_t)at;
	switch (type) {
	case R_X86_64_64: memcpy(at, &value, 8); return CPU_OK;
	case R_X86_64_PC64:
		value -= here;
		memcpy(at, &value, 8);
		return CPU_OK;
	case R_X86_64_32: return put32(l, at, value, false);
	case R_X86_64_32S: return put32(l, at, value, true);
	case R_X86_64_PC32:
	case R_X86_64_PLT32:
	case R_X86_64_GOTPCREL:
	case R_X86_64_GOTPCRELX:
	case R_X86_64_REX_GOTPCRELX: return put32(l, at, value - here, true);
	default: return fail(l, CPU_UNSUPPORTED, "relocation type %u", type);
	}
}

static int relocate_all(loader *l)
{
	for (uint32_t i = 0; i < l->nsections; i++) {
		const Elf64_Shdr *s = &l->section[i];
		if (s->sh_type != SHT_RELA && s->sh_type != SHT_REL) continue;
		if (s->sh_info >= l->nsections) return fail(l, CPU_BAD_OBJECT, "relocations of no section");
		if (!is_loaded(&l->section[s->sh_info])) continue;
		if (s->sh_type == SHT_REL) return fail(l, CPU_UNSUPPORTED, "relocations without addends");
		if (s->sh_entsize != sizeof(Elf64_Rela)) return fail(l, CPU_BAD_OBJECT, "malformed relocations");
		for (uint64_t k = 0; k < s->sh_size / sizeof(Elf64_Rela); k++) {
			Elf64_Rela r;
			memcpy(&r, l->file + s->sh_offset + k * sizeof r, sizeof r);
			int status = relocate(l, s->sh_info, &r);
			if (status) return status;
		}
	}
	return CPU_OK;
}

static int find_kernel(loader *l, const char *symbol, blk_cpu_kernel **out)
{
	for (uint64_t i = 0; i < l->nsymbols; i++) {
		Elf64_Sym s = symbol_at(l, i);
		if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || ELF64_ST_BIND(s.st_info) != STB_GLOBAL ||
			s.st_shndx == SHN_UNDEF || strcmp(name_of(l, &s), symbol) != 0)
			continue;
		uint64_t at;
		int status = symbol_address(l, i, &at);
		if (status) return status;
		if (s.st_shndx >= l->nsections || part_of(&l->section[s.st_shndx]) != CODE ||
			s.st_value >= l->section[s.st_shndx].sh_size)
			return fail(l, CPU_BAD_OBJECT, "`%.80s` is not code", symbol);
		*out = (blk_cpu_kernel *)(uintptr_t)at;
		return CPU_OK;
	}
	return fail(l, CPU_NO_SYMBOL, "the object has no function `%.80s`", symbol);
}

static int protect(loader *l)
{
	static const int access[PARTS] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
	for (int part = 0; part < PARTS; part++) {
		uint64_t bytes = l->start[part + 1] - l->start[part];
		if (bytes && mprotect(l->memory + l->start[part], bytes, access[part]) != 0)
			return fail(l, CPU_SYSTEM, "the system does not let memory be executed");
	}
	return CPU_OK;
}

static int load(loader *l, const char *symbol, cpu_object *o)
{
	long page = sysconf(_SC_PAGESIZE);
	int status;
	if ((status = read_header(l)) || (status = check_sections(l)) || (status = find_symbols(l))) return status;
	l->got_slots = l->nsymbols;
	if ((status = place_sections(l, page > 0 ? (uint64_t)page : 4096)) || (status = copy_sections(l)) ||
		(status = relocate_all(l)) || (status = find_kernel(l, symbol, &o->kernel)))
		return status;
	return protect(l);
}

/* The file as debuggers want it: with the addresses of what was loaded. */
static int keep_symbols(loader *l, cpu_object *o)
{
	Elf64_Ehdr h;
	memcpy(&h, l->file, sizeof h);
	unsigned char *copy = malloc(l->n);
	if (!copy) return fail(l, CPU_NO_MEMORY, "out of memory");
	memcpy(copy, l->file, l->n);
	for (uint32_t i = 0; i < l->nsections; i++) {
		Elf64_Shdr s = l->section[i];
		if (is_loaded(&s)) s.sh_addr = address(l, l->place[i]);
		memcpy(copy + h.e_shoff + i * sizeof s, &s, sizeof s);
	}
	o->symbols = (cpu_symbols){.elf = copy, .bytes = l->n};
	return CPU_OK;
}

int cpu_object_load(const void *bytes, size_t n, const char *symbol, cpu_object **out, char *error, size_t room)
{
	loader l = {.file = bytes, .n = n, .error = error, .room = room};
	*out = NULL;
	if (room) error[0] = 0;
	cpu_object *o = calloc(1, sizeof *o);
	int status = o ? load(&l, symbol, o) : fail(&l, CPU_NO_MEMORY, "out of memory");
	if (!status) status = keep_symbols(&l, o);
	free(l.section);
	free(l.place);
	if (status) {
		if (l.memory) munmap(l.memory, l.start[PARTS]);
		free(o);
		return status;
	}
	o->memory = l.memory;
	o->bytes = l.start[PARTS];
	o->code_bytes = l.start[CODE + 1];
	cpu_symbols_register(&o->symbols);
	*out = o;
	return CPU_OK;
}

blk_cpu_kernel *cpu_object_kernel(const cpu_object *o)
{
	return o->kernel;
}

void cpu_object_code(const cpu_object *o, uint64_t *begin, uint64_t *bytes)
{
	*begin = (uint64_t)(uintptr_t)o->memory; /* the first part is the code */
	*bytes = o->code_bytes;
}

bool cpu_object_line(const cpu_object *o, uint64_t pc, cpu_line *line)
{
	return cpu_line_find(o->symbols.elf, o->symbols.bytes, pc, line);
}

void cpu_object_free(cpu_object *o)
{
	if (!o) return;
	cpu_symbols_unregister(&o->symbols);
	free((void *)o->symbols.elf);
	munmap(o->memory, o->bytes);
	free(o);
}
