/* Declarations: registers become units of the register file, variables get addresses, names are found again. */
#include "parse.h"

#include <stdlib.h>
#include <string.h>

static bool same(const char *a, size_t n, const char *b, size_t m)
{
	return n == m && memcmp(a, b, n) == 0;
}

char *parse_copy(const char *s, size_t n)
{
	char *c = malloc(n + 1);
	if (c) {
		memcpy(c, s, n);
		c[n] = 0;
	}
	return c;
}

/* ---- Registers ---- */

uint32_t parse_new_unit(parser *p, uint8_t bytes)
{
	assert(bytes == 2 || bytes == 4 || bytes == 8);
	uint32_t at = p->code->units;
	p->code->units += bytes == 8 ? 4 : bytes == 4 ? 2 : 1;
	return at;
}

const declaration *parse_find(const parser *p, const char *name, size_t length, uint32_t *index)
{
	for (size_t i = p->ndeclarations; i-- > 0;) {
		const declaration *d = &p->declarations[i];
		if (length < d->length || memcmp(name, d->name, d->length) != 0) continue;
		*index = 0;
		if (length == d->length) {
			if (!d->count) return d;
			continue;
		}
		uint64_t n = 0;
		size_t k = d->length;
		for (; d->count && k < length && name[k] >= '0' && name[k] <= '9' && n < d->count; k++)
			n = 10 * n + (uint64_t)(name[k] - '0');
		if (k != length || n >= d->count) continue;
		*index = (uint32_t)n;
		return d;
	}
	return NULL;
}

bool parse_declare(parser *p, const char *name, size_t length, uint32_t count, uint8_t bytes)
{
	if ((uint64_t)count + p->code->units + p->code->predicates > 1 << 20)
		return parse_fail(p, "more registers than can be simulated");
	declaration *all =
		parse_grow(p, p->declarations, p->ndeclarations, &p->declarations_room, sizeof *p->declarations);
	if (!all) return false;
	p->declarations = all;
	declaration *d = &all[p->ndeclarations++];
	*d = (declaration){.name = name, .length = length, .count = count, .bytes = bytes, .depth = p->depth};
	uint32_t n = count ? count : 1;
	if (!bytes) {
		d->unit = p->code->predicates;
		d->stride = 1;
		p->code->predicates += n;
	} else {
		d->stride = bytes == 8 ? 4 : bytes == 4 ? 2 : 1;
		d->unit = p->code->units;
		p->code->units += n * d->stride;
	}
	if (p->code->predicates > UINT16_MAX) return parse_fail(p, "more predicates than can be simulated");
	return true;
}

/* ".reg .b32 %r<161>, %q;" */
bool parse_registers(parser *p)
{
	scalar type;
	uint8_t bytes = 0;
	if (!parse_is(p, ".pred")) {
		if (p->now.kind != WORD_NAME || !decode_type(p->now.text + 1, &type))
			return parse_fail(p, "a register's type was expected");
		bytes = (uint8_t)scalar_bytes(type);
		if (bytes < 2) return parse_fail(p, "registers of 8 bits are not simulated");
	}
	do {
		if (!parse_next(p) || p->now.kind != WORD_NAME) return parse_fail(p, "a register was expected");
		const char *name = p->now.text;
		size_t length = p->now.n;
		uint32_t count = 0;
		if (!parse_next(p)) return false;
		if (parse_accept(p, "<")) {
			count = (uint32_t)p->now.bits;
			if (!parse_next(p) || !parse_expect(p, ">")) return false;
		}
		if (!parse_declare(p, name, length, count, bytes)) return false;
	} while (parse_is(p, ","));
	return parse_expect(p, ";");
}

/* ---- Variables ---- */

sim_variable *parse_variable(const parser *p, const char *name, size_t length)
{
	for (size_t i = 0; i < p->code->nvariables; i++) {
		sim_variable *v = &p->code->variables[i];
		if (same(v->name, strlen(v->name), name, length)) return v;
	}
	return NULL;
}

/* "= {1, 2}" into a .global's memory. */
static bool values(parser *p, sim_variable *v, unsigned bytes)
{
	uint8_t *to = (uint8_t *)(uintptr_t)v->address;
	bool list = parse_accept(p, "{");
	uint64_t at = 0;
	do {
		bool negative = parse_accept(p, "-");
		if (p->now.kind != WORD_NUMBER) return parse_fail(p, "a variable's value must be a number");
		uint64_t bits = negative ? 0 - p->now.bits : p->now.bits;
		if (at + bytes > v->bytes) return parse_fail(p, "more values than the variable holds");
		memcpy(to + at, &bits, bytes);
		at += bytes;
		if (!parse_next(p)) return false;
	} while (list && parse_accept(p, ","));
	return !list || parse_expect(p, "}");
}

static void place_variable(sim_code *c, sim_variable *v, uint64_t align)
{
	assert(align && !(align & (align - 1)));
	uint64_t *end = v->space == SPACE_SHARED ? &c->shared_bytes : &c->local_bytes;
	*end = (*end + align - 1) / align * align;
	v->address = *end + (v->space == SPACE_SHARED ? SIM_SHARED_BASE : SIM_LOCAL_BASE);
	*end += v->bytes;
}

/* ".align 16 .b8 name[1024] = {..};" The dynamic array of shared memory has no extent and lies behind the others. */
bool parse_variables(parser *p, sim_space space, bool is_extern)
{
	uint64_t align = 1, count = 1;
	scalar type = SCALAR_U8;
	bool typed = false;
	while (p->now.kind == WORD_NAME && p->now.text[0] == '.') {
		if (parse_accept(p, ".align")) {
			align = p->now.bits;
			if (align == 0 || align > 4096 || (align & (align - 1)))
				return parse_fail(p, "a wrong alignment");
		} else if (!p->failed)
			typed = decode_type(p->now.text + 1, &type) || typed;
		if (!parse_next(p) || p->failed) return false;
	}
	if (!typed || p->now.kind != WORD_NAME) return parse_fail(p, "a variable was expected");
	sim_code *c = p->code;
	sim_variable *all = parse_grow(p, c->variables, c->nvariables, &c->variables_room, sizeof *all);
	if (!all) return false;
	c->variables = all;
	sim_variable *v = &all[c->nvariables];
	*v = (sim_variable){.name = parse_copy(p->now.text, p->now.n), .space = (uint8_t)space};
	if (!v->name) return parse_fail(p, "out of memory");
	c->nvariables++;
	if (!parse_next(p)) return false;
	bool open = false;
	while (parse_accept(p, "[")) {
		open = parse_is(p, "]");
		if (!open) {
			if (p->now.kind != WORD_NUMBER || p->now.bits > UINT32_MAX)
				return parse_fail(p, "a wrong extent");
			count *= p->now.bits;
			if (!parse_next(p)) return false;
		}
		if (!parse_expect(p, "]")) return false;
	}
	v->bytes = open ? 0 : count * scalar_bytes(type);
	if (v->bytes > UINT32_MAX) return parse_fail(p, "a variable of %llu bytes", (unsigned long long)v->bytes);
	if (open && !(is_extern && space == SPACE_SHARED)) return parse_fail(p, "a variable without an extent");
	if (align < scalar_bytes(type)) align = scalar_bytes(type);
	if (space == SPACE_SHARED && align > c->shared_align) c->shared_align = align;
	if (space == SPACE_GLOBAL || space == SPACE_CONST) {
		void *memory = NULL;
		if (posix_memalign(&memory, 256, v->bytes ? v->bytes : 1) != 0) return parse_fail(p, "out of memory");
		memset(memory, 0, v->bytes);
		v->address = (uint64_t)(uintptr_t)memory;
		if (parse_accept(p, "=") && !values(p, v, scalar_bytes(type))) return false;
	} else if (!open)
		place_variable(c, v, align);
	return parse_expect(p, ";");
}
