/* A PTX module down to one entry: its parameters, the module's variables and files, and the entry's body.
 *
 * In: the text and the entry's name.  Out: sim_code, with branches resolved to instruction numbers and without a name
 * left in it.  Other entries of the text are skipped. */
#include "parse.h"

#include <stdlib.h>
#include <string.h>

/* Over "{ .. }", or a declaration that ends with a semicolon. */
static bool skip_function(parser *p)
{
	while (!parse_is(p, "{") && !parse_is(p, ";") && p->now.kind != WORD_END)
		if (!parse_next(p)) return false;
	if (parse_accept(p, ";")) return true;
	uint32_t depth = 0;
	do {
		if (p->now.kind == WORD_END) return parse_fail(p, "the text ends inside a function");
		if (parse_is(p, "{")) depth++;
		if (parse_is(p, "}")) depth--;
		if (!parse_next(p)) return false;
	} while (depth);
	return true;
}

/* ".param .u64 .ptr .global .align 4 name", ".param .align 2 .b8 name[2]" */
static bool parameter(parser *p)
{
	scalar type = SCALAR_U64, t;
	bool typed = false;
	if (!parse_expect(p, ".param")) return false;
	while (p->now.kind == WORD_NAME && p->now.text[0] == '.') {
		bool align = parse_is(p, ".align");
		if (!typed && decode_type(p->now.text + 1, &t)) type = t, typed = true;
		if (!parse_next(p)) return false;
		if (align && !parse_next(p)) return false;
	}
	if (!typed || p->now.kind != WORD_NAME) return parse_fail(p, "a parameter was expected");
	sim_code *c = p->code;
	sim_parameter *all = parse_grow(p, c->parameters, c->nparameters, &c->parameters_room, sizeof *all);
	if (!all) return false;
	c->parameters = all;
	sim_parameter *q = &all[c->nparameters];
	*q = (sim_parameter){.name = parse_copy(p->now.text, p->now.n), .bytes = (uint8_t)scalar_bytes(type)};
	if (!q->name) return parse_fail(p, "out of memory");
	q->unit = parse_new_unit(p, 8);
	c->nparameters++;
	if (!parse_next(p)) return false;
	if (!parse_accept(p, "[")) return true;
	uint64_t n = p->now.kind == WORD_NUMBER && p->now.bits <= 128 ? p->now.bits * q->bytes : 0;
	q->is_array = n == 128; /* a tensor map: its argument is the address of its bytes */
	if (!n || (n > 8 && !q->is_array))
		return parse_fail(p, "parameters that are arrays, other than tensor maps, are not simulated");
	if (n <= 8) q->bytes = (uint8_t)n; /* f16 and bf16 are passed as two bytes */
	return parse_next(p) && parse_expect(p, "]");
}

/* ".reqntid 128, 1, 1" and its like, up to the body. */
static bool attributes(parser *p)
{
	while (!parse_is(p, "{")) {
		bool threads = parse_is(p, ".reqntid"), cluster = parse_is(p, ".reqnctapercluster");
		if (p->now.kind == WORD_END) return parse_fail(p, "a kernel without a body");
		if (!parse_next(p)) return false;
		for (int i = 0; (threads || cluster) && i < 3 && p->now.kind == WORD_NUMBER; i++) {
			(threads ? p->code->threads : p->code->cluster)[i] = (uint32_t)p->now.bits;
			if (cluster && p->now.bits > SIM_CLUSTER)
				return parse_fail(p, "a cluster of too many programs");
			if (!parse_next(p)) return false;
			if (!parse_accept(p, ",")) break;
		}
	}
	uint64_t size = 1;
	for (int i = 0; i < 3; i++) size *= p->code->cluster[i] ? p->code->cluster[i] : 1;
	if (size > SIM_CLUSTER) return parse_fail(p, "a cluster of too many programs");
	return parse_next(p);
}

/* Dynamic shared memory lies behind the static. */
static void place_dynamic(sim_code *c)
{
	uint64_t align = c->shared_align ? c->shared_align : 16;
	c->shared_bytes = (c->shared_bytes + align - 1) / align * align;
	for (size_t i = 0; i < c->nvariables; i++)
		if (c->variables[i].space == SPACE_SHARED && !c->variables[i].bytes)
			c->variables[i].address = SIM_SHARED_BASE + c->shared_bytes;
}

static bool entry(parser *p)
{
	bool wanted = p->now.kind == WORD_NAME && p->now.n == strlen(p->symbol) &&
		      memcmp(p->now.text, p->symbol, p->now.n) == 0;
	if (!wanted) return skip_function(p);
	if (p->code->n) return parse_fail(p, "a second kernel %s", p->symbol);
	if (!parse_next(p)) return false;
	if (parse_accept(p, "("))
		while (!parse_accept(p, ")")) {
			if (!parameter(p)) return false;
			if (!parse_is(p, ")") && !parse_expect(p, ",")) return false;
		}
	place_dynamic(p->code);
	return attributes(p) && parse_body(p);
}

static bool file(parser *p)
{
	uint64_t n = p->now.bits;
	sim_code *c = p->code;
	if (p->now.kind != WORD_NUMBER || n > 4096 || !parse_next(p) || p->now.kind != WORD_STRING)
		return parse_fail(p, "a malformed .file");
	if (n >= c->nfiles) {
		char **more = realloc(c->files, (n + 1) * sizeof *more);
		if (!more) return parse_fail(p, "out of memory");
		memset(more + c->nfiles, 0, (n + 1 - c->nfiles) * sizeof *more);
		c->files = more;
		c->nfiles = n + 1;
	}
	if (!c->files[n] && !(c->files[n] = parse_copy(p->now.text, p->now.n))) return parse_fail(p, "out of memory");
	if (!parse_next(p)) return false;
	while (parse_accept(p, ","))
		if (!parse_next(p)) return false;
	return true;
}

static bool module(parser *p)
{
	bool is_extern = false;
	while (p->now.kind != WORD_END) {
		bool good = true;
		if (parse_accept(p, ".version") || parse_accept(p, ".address_size")) {
			good = parse_next(p);
		} else if (parse_accept(p, ".target")) {
			do good = parse_next(p);
			while (good && parse_accept(p, ","));
		} else if (parse_accept(p, ".extern")) {
			is_extern = true;
			continue;
		} else if (parse_accept(p, ".visible") || parse_accept(p, ".weak") || parse_accept(p, ".common")) {
			continue;
		} else if (parse_accept(p, ".entry")) {
			good = entry(p);
		} else if (parse_accept(p, ".func")) {
			good = skip_function(p);
		} else if (parse_accept(p, ".global")) {
			good = parse_variables(p, SPACE_GLOBAL, is_extern);
		} else if (parse_accept(p, ".const")) {
			good = parse_variables(p, SPACE_CONST, is_extern);
		} else if (parse_accept(p, ".shared")) {
			good = parse_variables(p, SPACE_SHARED, is_extern);
		} else if (parse_accept(p, ".file")) {
			good = file(p);
		} else if (parse_accept(p, ".section")) {
			good = parse_next(p) && skip_function(p);
		} else if (parse_accept(p, ".pragma")) {
			good = parse_skip(p);
		} else
			good = parse_fail(p, "'%.*s' is no directive that is simulated",
				(int)(p->now.n < 40 ? p->now.n : 40), p->now.text);
		if (!good || p->failed) return false;
		is_extern = false;
	}
	return true;
}

static int by_name(const char *a, size_t n, const char *b, size_t m)
{
	return n != m ? (n < m ? -1 : 1) : memcmp(a, b, n);
}

static int by_name_and_place(const void *x, const void *y)
{
	const label *a = x, *b = y;
	int order = by_name(a->name, a->length, b->name, b->length);
	return order ? order : (a->pc > b->pc) - (a->pc < b->pc);
}

/* Where the last label of that name is, among labels in order. */
static int32_t find_label(const parser *p, const label *use)
{
	size_t low = 0, high = p->nlabels; /* the first behind it */
	while (low < high) {
		size_t middle = (low + high) / 2;
		const label *l = &p->labels[middle];
		if (by_name(l->name, l->length, use->name, use->length) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	const label *l = low ? &p->labels[low - 1] : NULL;
	return l && by_name(l->name, l->length, use->name, use->length) == 0 ? l->pc : SIM_NO_PC;
}

static bool resolve(parser *p)
{
	if (p->nlabels) qsort(p->labels, p->nlabels, sizeof *p->labels, by_name_and_place);
	for (size_t i = 0; i < p->nuses; i++) {
		const label *use = &p->uses[i];
		int32_t target = find_label(p, use);
		p->statement_line = use->line;
		if (target == SIM_NO_PC || (size_t)target >= p->code->n)
			return parse_fail(p, "no label %.*s", (int)use->length, use->name);
		assert((size_t)use->pc < (use->listed ? p->code->ntargets : p->code->n));
		*(use->listed ? &p->code->targets[use->pc] : &p->code->code[use->pc].target) = target;
	}
	p->statement_line = 0;
	return true;
}

static bool parse_all(parser *p, const char *text)
{
	p->at = text;
	p->line = 1;
	if (!parse_next(p) || !module(p)) return false;
	if (!p->code->n) return parse_fail(p, "no kernel %s", p->symbol);
	return resolve(p);
}

bool sim_code_parse(const char *text, const char *symbol, sim_code **out, char *error, size_t room)
{
	parser *p = calloc(1, sizeof *p);
	sim_code *c = calloc(1, sizeof *c);
	*out = NULL;
	bool good = p && c;
	if (!good && room) error[0] = 0; /* the caller says that memory ran out */
	if (good) {
		*p = (parser){.code = c, .symbol = symbol, .error = error, .room = room};
		c->units = 4; /* zeros: what stands in for an operand that an operation lacks */
		c->predicates = 1;
		c->threads[0] = c->threads[1] = c->threads[2] = 1;
		good = parse_all(p, text);
		if (good && !sim_code_joins(c)) good = parse_fail(p, "out of memory");
		if (good && !sim_code_products(c)) good = parse_fail(p, "out of memory");
		if (good) sim_code_classify(c);
	}
	if (p) {
		free(p->declarations);
		free(p->labels);
		free(p->uses);
		free(p->lists);
		free(p->rows);
		free(p->constant_slots);
	}
	free(p);
	if (good)
		*out = c;
	else
		sim_code_free(c);
	return good;
}

void sim_code_free(sim_code *c)
{
	if (!c) return;
	for (size_t i = 0; i < c->nparameters; i++) free(c->parameters[i].name);
	for (size_t i = 0; i < c->nvariables; i++) {
		sim_variable *v = &c->variables[i];
		if (v->space == SPACE_GLOBAL || v->space == SPACE_CONST) free((void *)(uintptr_t)v->address);
		free(v->name);
	}
	for (size_t i = 0; i < c->nproducts; i++) free(c->products[i].units);
	free(c->products);
	free(c->matrix_units);
	for (size_t i = 0; i < c->nfiles; i++) free(c->files[i]);
	free(c->files);
	free(c->variables);
	free(c->parameters);
	free(c->constants);
	free(c->targets);
	free(c->code);
	free(c);
}
