/* The object loader: what the compiler makes is loaded, anything else is refused with a status and a sentence. */
#include "cpu_fixture.h"

#include <elf.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char source[] = "func @f(%y: *f32, %x: f32) {\n"
			     "  %c = const {value=0.1} : f32\n  %a = mul %x, %c : f32\n"
			     "  %e = sin %a : f32\n  %s = expm1 %e : f32\n"
			     "  %b = eq %s, %s : bool\n  assert %b {text=\"not a nan\"}\n"
			     "  store %y, %s" STORE "  return\n}\n";

/* An object with code, constants, strings, relocations among them and calls to the outside. */
static unsigned char *sample(fixture *t, size_t *n)
{
	compile_text(t, source);
	*n = t->out.object_bytes;
	unsigned char *copy = malloc(*n); /* exact, so that the sanitizers see a read beyond the end */
	memcpy(copy, t->out.object, *n);
	return copy;
}

static int try_load(const void *bytes, size_t n, const char *symbol)
{
	char error[120];
	cpu_object *o = (cpu_object *)1;
	int status = cpu_object_load(bytes, n, symbol, &o, error, sizeof error);
	assert_true((status == CPU_OK) == (o != NULL));
	assert_true((status == CPU_OK) == (error[0] == 0)); /* a refusal has a sentence */
	cpu_object_free(o);
	return status;
}

static void loads_and_runs(void **state)
{
	(void)state;
	fixture t;
	size_t n;
	unsigned char *object = sample(&t, &n);
	float y = 0, x = 5;
	uint32_t bits;
	memcpy(&bits, &x, 4);
	uint64_t args[] = {address(&y), bits};
	assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
	assert_true(fabs(y - expm1(sin(0.5))) < 1e-6);
	assert_int_equal(try_load(object, n, "f"), CPU_OK);
	assert_int_equal(try_load(object, n, "g"), CPU_NO_SYMBOL);
	assert_int_equal(try_load(object, n, ""), CPU_NO_SYMBOL);
	assert_int_equal(try_load("", 0, "f"), CPU_BAD_OBJECT);
	cpu_object_free(NULL);
	free(object);
	end(&t);
}

/* A kernel may have the name of a function that it calls. */
static void name_of_a_function(void **state)
{
	(void)state;
	fixture t;
	compile_text(&t, "func @sinf(%y: *f32, %x: f32) {\n  %s = sin %x : f32\n  store %y, %s" STORE "  return\n}\n");
	float y = 0, x = 2;
	uint32_t bits;
	memcpy(&bits, &x, 4);
	uint64_t args[] = {address(&y), bits};
	assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
	assert_true(fabs(y - sin(2)) < 1e-6);
	end(&t);
}

/* No part of the mapping may be both written and executed. */
static void no_writable_code(void **state)
{
	(void)state;
	fixture t;
	size_t n;
	unsigned char *object = sample(&t, &n);
	cpu_object *o;
	assert_int_equal(cpu_object_load(object, n, "f", &o, NULL, 0), CPU_OK);
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	bool found = false;
	uint64_t at = (uint64_t)(uintptr_t)cpu_object_kernel(o);
	while (maps && fgets(line, sizeof line, maps)) {
		unsigned long from, to;
		char access[5];
		assert_int_equal(sscanf(line, "%lx-%lx %4s", &from, &to, access), 3);
		assert_false(access[1] == 'w' && access[2] == 'x');
		if (at < from || at >= to) continue;
		found = true;
		assert_string_equal(access, "r-xp");
	}
	assert_true(found);
	fclose(maps);
	cpu_object_free(o);
	free(object);
	end(&t);
}

static void every_prefix(void **state)
{
	(void)state;
	fixture t;
	size_t n;
	unsigned char *object = sample(&t, &n);
	for (size_t k = 0; k < n; k++) {
		unsigned char *part = malloc(k ? k : 1);
		memcpy(part, object, k);
		assert_int_not_equal(try_load(part, k, "f"), CPU_OK); /* the section table comes last */
		free(part);
	}
	free(object);
	end(&t);
}

/* Every byte changed in several ways: any status will do, but no crash and no report of the sanitizers. */
static void every_byte(void **state)
{
	(void)state;
	fixture t;
	size_t n;
	unsigned char *object = sample(&t, &n);
	static const unsigned char changes[] = {0x01, 0x80, 0xff, 0x10};
	unsigned refused = 0;
	for (size_t k = 0; k < n; k++)
		for (size_t c = 0; c < sizeof changes; c++) {
			object[k] ^= changes[c];
			refused += try_load(object, n, "f") != CPU_OK;
			object[k] ^= changes[c];
		}
	assert_true(refused > 100);
	uint64_t seed = 4;
	for (int i = 0; i < 4000; i++) { /* and whole words, at random, where numbers stand */
		size_t k = (size_t)(random_bits(&seed) % (n / 8)) * 8;
		uint64_t old, value = random_bits(&seed) >> random_bits(&seed) % 64;
		memcpy(&old, object + k, 8);
		memcpy(object + k, &value, 8);
		try_load(object, n, "f");
		memcpy(object + k, &old, 8);
	}
	free(object);
	end(&t);
}

static Elf64_Shdr *section_of_type(unsigned char *object, uint32_t type)
{
	Elf64_Ehdr h;
	memcpy(&h, object, sizeof h);
	for (unsigned i = 0; i < h.e_shnum; i++) {
		Elf64_Shdr *s = (Elf64_Shdr *)(object + h.e_shoff) + i;
		if (s->sh_type == type) return s;
	}
	fail_msg("no section of type %u", type);
	return NULL;
}

/* Chosen lies, each with the status that it deserves. */
static void chosen_lies(void **state)
{
	(void)state;
	fixture t;
	size_t n;
	unsigned char *object = sample(&t, &n), *copy = malloc(n);
	Elf64_Ehdr *h = (Elf64_Ehdr *)copy;
	for (int lie = 0; lie < 13; lie++) {
		memcpy(copy, object, n);
		int want = CPU_BAD_OBJECT;
		Elf64_Shdr *code = NULL, *names = section_of_type(copy, SHT_STRTAB),
			   *rela = section_of_type(copy, SHT_RELA);
		for (unsigned i = 0; i < h->e_shnum; i++) {
			Elf64_Shdr *s = (Elf64_Shdr *)(copy + h->e_shoff) + i;
			if ((s->sh_flags & SHF_EXECINSTR) && s->sh_size) code = s;
		}
		assert_non_null(code);
		Elf64_Rela *r = (Elf64_Rela *)(copy + rela->sh_offset);
		switch (lie) {
		case 0: h->e_machine = EM_AARCH64, want = CPU_UNSUPPORTED; break;
		case 1: h->e_shoff = UINT64_MAX - 10; break;
		case 2: code->sh_flags |= SHF_WRITE; break;
		case 3: code->sh_size = UINT64_MAX; break;
		case 4: code->sh_addralign = 3; break;
		case 5: r->r_offset = code->sh_size - 2; break;
		case 6: r->r_info = ELF64_R_INFO(123456, R_X86_64_PLT32); break;
		case 7: r->r_info = ELF64_R_INFO(ELF64_R_SYM(r->r_info), 200), want = CPU_UNSUPPORTED; break;
		case 8: copy[names->sh_offset + names->sh_size - 1] = 'x'; break;
		case 9: h->e_ident[EI_CLASS] = ELFCLASS32; break;
		case 10: h->e_ident[EI_DATA] = ELFDATA2MSB; break;
		case 11: h->e_type = ET_EXEC; break;
		default: /* a function that nobody has */
			for (char *p = (char *)copy; p < (char *)copy + n - 6; p++)
				if (memcmp(p, "expm1f", 7) == 0) memcpy(p, "expm1g", 7);
			want = CPU_NO_SYMBOL;
			break;
		}
		int got = try_load(copy, n, "f");
		if (got != want) fail_msg("lie %d: status %d, not %d", lie, got, want);
	}
	free(copy);
	free(object);
	end(&t);
}

/* ---- relocations, one a time ---- */

enum { TEXT_AT = 64, RELA_AT = 96, SYMBOLS_AT = 120, NAMES_AT = 168, TABLE_AT = 176, BY_HAND = TABLE_AT + 5 * 64 };

/* An object of one function `f` of 16 bytes, which is symbol 1, with one relocation. */
static void by_hand(unsigned char *object, const unsigned char *code, uint32_t type, uint64_t offset, int64_t addend)
{
	static const Elf64_Ehdr head = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_REL,
		.e_machine = EM_X86_64,
		.e_shoff = TABLE_AT,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 5};
	const Elf64_Shdr table[5] = {{0},
		{.sh_type = SHT_PROGBITS,
			.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			.sh_offset = TEXT_AT,
			.sh_size = 16,
			.sh_addralign = 16},
		{.sh_type = SHT_RELA,
			.sh_offset = RELA_AT,
			.sh_size = sizeof(Elf64_Rela),
			.sh_link = 3,
			.sh_info = 1,
			.sh_entsize = sizeof(Elf64_Rela)},
		{.sh_type = SHT_SYMTAB,
			.sh_offset = SYMBOLS_AT,
			.sh_size = 2 * sizeof(Elf64_Sym),
			.sh_link = 4,
			.sh_entsize = sizeof(Elf64_Sym)},
		{.sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = 3}};
	const Elf64_Rela rela = {offset, ELF64_R_INFO(1, type), addend};
	const Elf64_Sym symbols[2] = {
		{0}, {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_size = 16}};
	memset(object, 0, BY_HAND);
	memcpy(object, &head, sizeof head);
	memcpy(object + TEXT_AT, code, 16);
	memcpy(object + RELA_AT, &rela, sizeof rela);
	memcpy(object + SYMBOLS_AT, symbols, sizeof symbols);
	memcpy(object + NAMES_AT, "\0f", 3);
	memcpy(object + TABLE_AT, table, sizeof table);
}

/* The psABI's formulas, S the symbol, A the addend, P the place, G its slot: what the code that was changed returns. */
static void relocations(void **state)
{
	(void)state;
	enum { REFUSED, ADDRESS, NUMBER }; /* of f, plus `value`; `value` alone */
	static const unsigned char movabs[16] = {0x48, 0xb8, [10] = 0xc3}, mov[16] = {0xb8, [5] = 0xc3},
				   load[16] = {0x48, 0x8b, 0x05, [7] = 0xc3}, zero[16] = {0x31, 0xc0, 0xc3};
	static const struct {
		uint32_t type;
		const unsigned char *code;
		uint64_t offset;
		int64_t addend;
		int gives;
		int64_t value; /* or the status */
	} rows[] = {
		{R_X86_64_NONE, zero, 0, 5, NUMBER, 0},
		{R_X86_64_64, movabs, 2, 0, ADDRESS, 0},
		{R_X86_64_64, movabs, 2, -3, ADDRESS, -3},
		{R_X86_64_PC64, movabs, 2, 0, NUMBER, -2},
		{R_X86_64_PC64, movabs, 2, INT64_C(1) << 40, NUMBER, (INT64_C(1) << 40) - 2},
		{R_X86_64_PC32, mov, 1, 0, NUMBER, -1},
		{R_X86_64_PC32, mov, 1, 8, NUMBER, 7},
		{R_X86_64_PLT32, mov, 1, 8, NUMBER, 7},
		{R_X86_64_PC32, mov, 1, (INT64_C(1) << 31) + 0, NUMBER, 0x7fffffff},
		{R_X86_64_PC32, mov, 1, (INT64_C(1) << 31) + 1, REFUSED, CPU_BAD_OBJECT},
		{R_X86_64_PC32, mov, 1, 1 - (INT64_C(1) << 31), NUMBER, INT32_MIN},
		{R_X86_64_PC32, mov, 1, -(INT64_C(1) << 31), REFUSED, CPU_BAD_OBJECT},
		{R_X86_64_GOTPCREL, load, 3, -4, ADDRESS, 0},
		{R_X86_64_GOTPCRELX, load, 3, -4, ADDRESS, 0},
		{R_X86_64_REX_GOTPCRELX, load, 3, -4, ADDRESS, 0},
		/* nothing is mapped in the lowest 4 GiB */
		{R_X86_64_32, mov, 1, 0, REFUSED, CPU_BAD_OBJECT},
		{R_X86_64_32S, mov, 1, 0, REFUSED, CPU_BAD_OBJECT},
		{R_X86_64_DTPMOD64, movabs, 2, 0, REFUSED, CPU_UNSUPPORTED},
		/* the last place inside, and the next */
		{R_X86_64_64, zero, 8, 0, NUMBER, 0},
		{R_X86_64_64, zero, 9, 0, REFUSED, CPU_BAD_OBJECT},
		{R_X86_64_PC64, zero, 9, 0, REFUSED, CPU_BAD_OBJECT},
		{R_X86_64_PC32, zero, 12, 0, NUMBER, 0},
		{R_X86_64_PC32, zero, 13, 0, REFUSED, CPU_BAD_OBJECT},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		unsigned char object[BY_HAND];
		char error[120];
		cpu_object *o;
		by_hand(object, rows[i].code, rows[i].type, rows[i].offset, rows[i].addend);
		int status = cpu_object_load(object, sizeof object, "f", &o, error, sizeof error);
		int want = rows[i].gives == REFUSED ? (int)rows[i].value : CPU_OK;
		if (status != want) fail_msg("row %zu: status %d, not %d: %s", i, status, want, error);
		if (status) continue;
		int64_t (*f)(void) = (int64_t(*)(void))(uintptr_t)cpu_object_kernel(o);
		int64_t got = f(), value = rows[i].value + (rows[i].gives == ADDRESS ? (int64_t)(uintptr_t)f : 0);
		if (rows[i].code == mov) got = (int32_t)got;
		if (got != value) fail_msg("row %zu: %lld, not %lld", i, (long long)got, (long long)value);
		cpu_object_free(o);
	}
}

/* ---- what no compiler makes, by hand ---- */

enum { MORE_TABLE = TABLE_AT + 5 * sizeof(Elf64_Shdr), BY_HAND_MORE = MORE_TABLE + 2 * sizeof(Elf64_Shdr) };

typedef struct handmade { /* by_hand()'s, with two sections more */
	_Alignas(8) unsigned char bytes[BY_HAND_MORE];
	Elf64_Ehdr *head;
	Elf64_Shdr *sections; /* 1: f's code, 2: its relocation, 3: symbols, 4: names */
	Elf64_Sym *f;
	Elf64_Rela *rela;
} handmade;

static void without_trouble(handmade *o)
{
	(void)o;
}
static void many_sections(handmade *o)
{
	o->head->e_shnum = 65281;
}
static void no_sections(handmade *o)
{
	o->head->e_shnum = 0;
}
static void other_entries(handmade *o)
{
	o->head->e_shentsize = 40;
}
static void zeroed(handmade *o, int i, uint64_t bytes)
{
	o->sections[i] = (Elf64_Shdr){
		.sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_WRITE, .sh_size = bytes, .sh_addralign = 0};
}
static void zeroed_data(handmade *o)
{
	zeroed(o, 5, 4096);
}
static void relocated_zeroes(handmade *o)
{
	zeroed(o, 5, 4096);
	o->sections[2].sh_info = 5;
}
static void vast(handmade *o)
{
	zeroed(o, 5, (UINT64_C(1) << 30) + 1);
}
static void vast_together(handmade *o)
{
	zeroed(o, 5, UINT64_C(1) << 30);
}
static void misaligned(handmade *o)
{
	o->sections[1].sh_addralign = 8192;
}
static void two_symbol_tables(handmade *o)
{
	o->sections[5] = o->sections[3];
}
static void names_nowhere(handmade *o)
{
	o->sections[3].sh_link = 7;
}
static void no_names(handmade *o)
{
	o->sections[4].sh_size = 0;
}
static void names_that_are_none(handmade *o)
{
	o->sections[4].sh_type = SHT_PROGBITS;
}
static void no_symbols(handmade *o)
{
	o->sections[3].sh_type = SHT_NULL;
}
static void slot_of_nothing(handmade *o)
{
	o->rela->r_info = ELF64_R_INFO(77, R_X86_64_GOTPCREL);
}
static void no_addends(handmade *o)
{
	o->sections[2].sh_type = SHT_REL;
}
static void relocations_of_nothing(handmade *o)
{
	o->sections[2].sh_info = 7;
}
static void short_relocations(handmade *o)
{
	o->sections[2].sh_entsize = 8;
}
static void of_the_unloaded(handmade *o)
{
	o->sections[2].sh_info = 4; /* the names: nothing is done */
	o->rela->r_offset = 1000;
}
static void elsewhere(handmade *o)
{
	o->rela->r_info = ELF64_R_INFO(0, R_X86_64_NONE);
	o->f->st_shndx = SHN_UNDEF;
}
static void local(handmade *o)
{
	o->f->st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
}
static void a_number(handmade *o)
{
	o->f->st_shndx = SHN_ABS;
}
static void data(handmade *o)
{
	o->sections[1].sh_flags = SHF_ALLOC;
}
static void behind_the_code(handmade *o)
{
	o->f->st_value = 16;
}
static void far_behind_the_code(handmade *o)
{
	o->rela->r_info = ELF64_R_INFO(0, R_X86_64_NONE);
	o->f->st_value = 17;
}

static void handmade_lies(void **state)
{
	(void)state;
	static const unsigned char zero[16] = {0x31, 0xc0, 0xc3};
	static const struct {
		void (*change)(handmade *);
		int status;
		const char *says;
	} rows[] = {{without_trouble, CPU_OK, ""}, {zeroed_data, CPU_OK, ""}, {of_the_unloaded, CPU_OK, ""},
		{many_sections, CPU_BAD_OBJECT, "the section table lies outside the file"},
		{no_sections, CPU_BAD_OBJECT, "the section table lies outside the file"},
		{other_entries, CPU_BAD_OBJECT, "the section table lies outside the file"},
		{relocated_zeroes, CPU_BAD_OBJECT, "a relocation lies outside section 5"},
		{vast, CPU_BAD_OBJECT, "section 5 has an impossible size or alignment"},
		{vast_together, CPU_BAD_OBJECT, "more than 1 GiB of code and data"},
		{misaligned, CPU_BAD_OBJECT, "section 1 has an impossible size or alignment"},
		{two_symbol_tables, CPU_BAD_OBJECT, "malformed symbol table"},
		{names_nowhere, CPU_BAD_OBJECT, "malformed symbol table"},
		{no_names, CPU_BAD_OBJECT, "malformed symbol names"},
		{names_that_are_none, CPU_BAD_OBJECT, "malformed symbol names"},
		{no_symbols, CPU_BAD_OBJECT, "no symbol table"},
		{slot_of_nothing, CPU_BAD_OBJECT, "a relocation names symbol 77, there is no such"},
		{no_addends, CPU_UNSUPPORTED, "relocations without addends"},
		{relocations_of_nothing, CPU_BAD_OBJECT, "relocations of no section"},
		{short_relocations, CPU_BAD_OBJECT, "malformed relocations"},
		{elsewhere, CPU_NO_SYMBOL, "the object has no function `f`"},
		{local, CPU_NO_SYMBOL, "the object has no function `f`"}, {a_number, CPU_BAD_OBJECT, "`f` is not code"},
		{data, CPU_BAD_OBJECT, "`f` is not code"}, {behind_the_code, CPU_BAD_OBJECT, "`f` is not code"},
		{far_behind_the_code, CPU_BAD_OBJECT, "symbol `f` lies outside its section"}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		handmade o = {.bytes = {0}};
		char error[120] = "as it was";
		cpu_object *loaded;
		by_hand(o.bytes, zero, R_X86_64_64, 8, 0);
		o.head = (Elf64_Ehdr *)o.bytes;
		o.sections = (Elf64_Shdr *)(o.bytes + TABLE_AT);
		o.f = (Elf64_Sym *)(o.bytes + SYMBOLS_AT) + 1;
		o.rela = (Elf64_Rela *)(o.bytes + RELA_AT);
		o.head->e_shnum = 7;
		rows[i].change(&o);
		int status = cpu_object_load(o.bytes, sizeof o.bytes, "f", &loaded, error, 0);
		assert_string_equal(error, "as it was"); /* there is no room for a sentence */
		cpu_object_free(loaded);
		assert_int_equal(cpu_object_load(o.bytes, sizeof o.bytes, "f", &loaded, error, sizeof error), status);
		if (status != rows[i].status || strcmp(error, rows[i].says) != 0)
			fail_msg("row %zu: status %d: %s", i, status, error);
		if (status) continue;
		int (*f)(void) = (int (*)(void))(uintptr_t)cpu_object_kernel(loaded);
		assert_int_equal(f(), 0);
		cpu_object_free(loaded);
	}
}

/* ---- sections, by hand ---- */

/* The object with one section more, and its relocation to that section's symbol, 2; `memory` bytes of it. */
static void with_data(unsigned char *object, const unsigned char *code, uint64_t memory, uint64_t flags)
{
	enum { MORE_SYMBOLS = TABLE_AT + 6 * 64, DATA_AT = MORE_SYMBOLS + 3 * sizeof(Elf64_Sym) };
	by_hand(object, code, R_X86_64_64, 2, 0);
	Elf64_Ehdr *h = (Elf64_Ehdr *)object;
	Elf64_Shdr *table = (Elf64_Shdr *)(object + TABLE_AT);
	Elf64_Sym *symbols = (Elf64_Sym *)(object + MORE_SYMBOLS);
	memcpy(symbols, object + SYMBOLS_AT, 2 * sizeof *symbols);
	symbols[2] = (Elf64_Sym){.st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT), .st_shndx = 5};
	((Elf64_Rela *)(object + RELA_AT))->r_info = ELF64_R_INFO(2, R_X86_64_64);
	h->e_shnum = 6;
	table[3].sh_offset = MORE_SYMBOLS;
	table[3].sh_size = 3 * sizeof *symbols;
	table[5] = (Elf64_Shdr){.sh_type = memory > 8 ? SHT_NOBITS : SHT_PROGBITS,
		.sh_flags = SHF_ALLOC | flags,
		.sh_offset = DATA_AT,
		.sh_size = memory,
		.sh_addralign = 8};
	memcpy(object + DATA_AT, "\x29\0\0\0\0\0\0", 8);
}
enum { WITH_DATA = BY_HAND + 64 + 3 * sizeof(Elf64_Sym) + 8 };

/* How the system lets that address be used. */
static void access_of(const void *at, char access[5])
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], now[5];
	unsigned long from, to;
	strcpy(access, "none");
	while (maps && fgets(line, sizeof line, maps))
		if (sscanf(line, "%lx-%lx %4s", &from, &to, now) == 3 && address(at) >= from && address(at) < to)
			memcpy(access, now, 5);
	fclose(maps);
}

/* Code is executed, variables are written, constants are neither. */
static void parts(void **state)
{
	(void)state;
	/* movabs $data, %rax; incl (%rax); mov (%rax), %eax; ret */
	static const unsigned char count[16] = {0x48, 0xb8, [10] = 0xff, 0, 0x8b, 0, 0xc3},
				   where[16] = {0x48, 0xb8, [10] = 0xc3};
	unsigned char object[WITH_DATA];
	char access[5];
	cpu_object *o;
	with_data(object, count, 8, SHF_WRITE);
	assert_int_equal(cpu_object_load(object, sizeof object, "f", &o, NULL, 0), CPU_OK);
	int (*f)(void) = (int (*)(void))(uintptr_t)cpu_object_kernel(o);
	assert_int_equal(f(), 0x2a);
	assert_int_equal(f(), 0x2b);
	cpu_object_free(o);
	for (int i = 0; i < 2; i++) {
		with_data(object, where, 8, i ? SHF_WRITE : 0);
		assert_int_equal(cpu_object_load(object, sizeof object, "f", &o, NULL, 0), CPU_OK);
		int *(*where_from)(void) = (int *(*)(void))(uintptr_t)cpu_object_kernel(o);
		assert_int_equal(*where_from(), 0x29);
		access_of(where_from(), access);
		assert_string_equal(access, i ? "rw-p" : "r--p");
		cpu_object_free(o);
	}
}

/* Where there is no memory for the code, nothing of the process's own is given back: 0 if so. */
static int refused_memory(void)
{
	static const unsigned char where[16] = {0x48, 0xb8, [10] = 0xc3};
	unsigned char object[WITH_DATA];
	struct rlimit limit = {1 << 28, 1 << 28};
	cpu_object *o;
	char *low = mmap((void *)(1 << 20), 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (low == MAP_FAILED) return 2;
	with_data(object, where, 1 << 29, SHF_WRITE);
	if (setrlimit(RLIMIT_AS, &limit)) return 2;
	if (cpu_object_load(object, sizeof object, "f", &o, NULL, 0) != CPU_NO_MEMORY) return 1;
	*(volatile char *)low = 1;
	return 0;
}
static void no_memory(void **state)
{
	(void)state;
	int status;
	pid_t child = fork();
	if (child == 0) _exit(refused_memory());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2) skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(loads_and_runs), cmocka_unit_test(name_of_a_function),
		cmocka_unit_test(no_writable_code), cmocka_unit_test(every_prefix), cmocka_unit_test(every_byte),
		cmocka_unit_test(chosen_lies), cmocka_unit_test(relocations), cmocka_unit_test(handmade_lies),
		cmocka_unit_test(parts), cmocka_unit_test(no_memory)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
