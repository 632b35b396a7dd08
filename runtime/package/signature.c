/* Reads signatures (signature.h) and computes their grid, cost and requires clauses.
 *
 * Clauses are postfix, so that computing one is a loop over words with a small stack: no parser at launch.  A division
 * by zero does not fail at once but marks its value, and the mark dies in the arm of ?: && || that is not taken: what C
 * would not evaluate cannot fail here either. */
#include "signature.h"
#include "internal.h"
#include "support/numbers.h"
#include "support/scalar.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*  enumerator  word  operands */
#define OPS(X)                                                                                                         \
	X(NUMBER, "", 0)                                                                                               \
	X(PARAMETER, "", 0)                                                                                            \
	X(ADD, "+", 2)                                                                                                 \
	X(SUB, "-", 2)                                                                                                 \
	X(MUL, "*", 2)                                                                                                 \
	X(DIV, "/", 2)                                                                                                 \
	X(MOD, "%", 2)                                                                                                 \
	X(NEG, "neg", 1)                                                                                               \
	X(SHL, "<<", 2)                                                                                                \
	X(SHR, ">>", 2)                                                                                                \
	X(AND, "&", 2)                                                                                                 \
	X(OR, "|", 2)                                                                                                  \
	X(XOR, "^", 2)                                                                                                 \
	X(NOT, "~", 1)                                                                                                 \
	X(LT, "<", 2)                                                                                                  \
	X(LE, "<=", 2)                                                                                                 \
	X(GT, ">", 2)                                                                                                  \
	X(GE, ">=", 2)                                                                                                 \
	X(EQ, "==", 2)                                                                                                 \
	X(NE, "!=", 2)                                                                                                 \
	X(ANDAND, "&&", 2)                                                                                             \
	X(OROR, "||", 2)                                                                                               \
	X(BANG, "!", 1)                                                                                                \
	X(SELECT, "?:", 3)                                                                                             \
	X(CDIV, "cdiv", 2)                                                                                             \
	X(MIN, "min", 2)                                                                                               \
	X(MAX, "max", 2)                                                                                               \
	X(NEXT_POW2, "next_pow2", 1)                                                                                   \
	X(NUM_SMS, "num_sms", 0)                                                                                       \
	X(KEEP, "", 1) /* =N */                                                                                        \
	X(KEPT, "", 0) /* @N */

enum {
#define X(name, word, operands) OP_##name,
	OPS(X)
#undef X
		OP_COUNT
};
static const struct {
	const char *word;
	uint8_t operands;
} ops[OP_COUNT] = {
#define X(name, word, operands) {word, operands},
	OPS(X)
#undef X
};

_Static_assert((int)BLK_TYPE_F64 == (int)SCALAR_F64 && (int)BLK_TYPE_U8 == (int)SCALAR_U8, "ORDER SCALARS");

const char *blk_type_name(unsigned type)
{
	return type < SCALAR_COUNT ? scalar_name((scalar)type) : type == BLK_TYPE_BUFFER ? "buffer" : "pointer";
}

/* ---- Reading ---- */

typedef struct reader {
	signature *sig;
	signature_token *tokens; /* room for every word of the text */
	uint32_t ntokens;
	bool written[SIGNATURE_PARAMETERS], written_through[SIGNATURE_PARAMETERS];
	bool addresses;      /* the expression at hand may use pointers */
	const char *trouble; /* what is wrong with the line at hand */
} reader;

/* Cuts the next word off a line; null at its end. */
static char *next_word(char **line)
{
	char *p = *line;
	while (*p == ' ' || *p == '\t') p++;
	if (!*p) return NULL;
	char *word = p;
	while (*p && *p != ' ' && *p != '\t') p++;
	if (*p) *p++ = 0;
	*line = p;
	return word;
}

static bool read_unsigned(const char *word, uint32_t *out)
{
	if (!word || !isdigit((unsigned char)*word)) return false;
	char *end;
	errno = 0;
	unsigned long long v = strtoull(word, &end, 10);
	if (*end || errno || v > UINT32_MAX) return false;
	*out = (uint32_t)v;
	return true;
}

static bool read_number(const char *word, signature_token *t)
{
	char *end;
	errno = 0;
	t->op = OP_NUMBER;
	t->integer = strtoll(word, &end, 0);
	if (!*end && !errno) {
		t->number = (double)t->integer;
		return true;
	}
	if (!isdigit((unsigned char)word[0]) && word[0] != '-' && word[0] != '.') return false;
	t->is_float = 1;
	t->number = numbers_read(word, &end);
	t->integer = t->number >= -0x1p63 && t->number < 0x1p63 ? (int64_t)t->number : 0;
	return !*end;
}

static bool read_token(reader *r, const char *word, signature_token *t)
{
	memset(t, 0, sizeof *t);
	if ((word[0] == '=' || word[0] == '@') && isdigit((unsigned char)word[1])) {
		t->op = word[0] == '=' ? OP_KEEP : OP_KEPT;
		if (!read_unsigned(word + 1, &t->parameter) || t->parameter >= SIGNATURE_PLACES)
			return r->trouble = "an expression keeps too many values", false;
		return true;
	}
	bool is_name = isdigit((unsigned char)word[0]) || (word[0] && isdigit((unsigned char)word[1]));
	for (unsigned i = OP_ADD; i < OP_KEEP && !is_name; i++) /* most words are numbers and parameters */
		if (ops[i].word[0] == word[0] && strcmp(ops[i].word, word) == 0) {
			t->op = (uint8_t)i;
			return true;
		}
	if (word[0] == 'p' && read_unsigned(word + 1, &t->parameter)) {
		t->op = OP_PARAMETER;
		bool is_known = t->parameter < r->sig->nparameters;
		if (!is_known || (!r->addresses && r->sig->parameters[t->parameter].code == BLK_TYPE_POINTER))
			return r->trouble = "it uses no numeric parameter", false;
		return true;
	}
	if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0) {
		t->op = OP_NUMBER;
		t->integer = word[0] == 't';
		t->number = (double)t->integer;
		return true;
	}
	if (read_number(word, t)) return true;
	return r->trouble = "an unknown word in an expression", false;
}

static bool read_expression(reader *r, char *line, signature_expression *e)
{
	signature_token *first = r->tokens + r->ntokens;
	uint32_t n = 0, depth = 0;
	bool kept[SIGNATURE_PLACES] = {false};
	for (char *word; (word = next_word(&line)); n++) {
		const signature_token *t = &first[n];
		if (!read_token(r, word, &first[n])) return false;
		uint32_t takes = ops[t->op].operands;
		if (depth < takes) return r->trouble = "an operator lacks operands", false;
		if (t->op == OP_KEEP) kept[t->parameter] = true;
		if (t->op == OP_KEPT && !kept[t->parameter])
			return r->trouble = "a value is used before it is kept", false;
		depth = depth - takes + (t->op != OP_KEEP);
		if (depth > SIGNATURE_DEPTH) return r->trouble = "an expression is too deep", false;
	}
	if (depth != 1) return r->trouble = "an expression leaves no single value", false;
	r->ntokens += n;
	e->tokens = first;
	e->ntokens = n;
	return true;
}

unsigned signature_step(const signature *s)
{
	unsigned step = 1;
	for (uint32_t i = 0; i < s->nparameters; i++) {
		const signature_parameter *p = &s->parameters[i];
		unsigned bytes = scalar_bytes((scalar)p->element);
		if (p->code == BLK_TYPE_POINTER && bytes > 1 && 16 / bytes > step) step = 16 / bytes;
	}
	return step > 1 ? step : 16;
}

static bool read_parameter(reader *r, char *line)
{
	signature *s = r->sig;
	if (s->nparameters == SIGNATURE_PARAMETERS) return r->trouble = "more than 256 parameters", false;
	signature_parameter *p = &s->parameters[s->nparameters];
	memset(p, 0, sizeof *p);
	p->name = next_word(&line);
	char *type = next_word(&line);
	if (!type) return r->trouble = "a parameter without a type", false;
	const char *element = type;
	if (*type == '*') {
		p->code = BLK_TYPE_POINTER;
		element = type + 1;
		if (strcmp(element, "const") == 0) { /* "*const f32" is two words: join them again */
			char *rest = next_word(&line);
			if (!rest) return r->trouble = "a parameter without a type", false;
			p->is_const = true;
			element = rest;
			type[strlen(type)] = ' ';
			if (type + 7 != rest) memmove(type + 7, rest, strlen(rest) + 1), element = type + 7;
		}
	}
	p->type = type;
	scalar found;
	if (!scalar_parse(element, &found)) return r->trouble = "an unknown type", false;
	p->element = (uint8_t)found;
	if (p->code != BLK_TYPE_POINTER) p->code = (uint8_t)found;
	for (char *word; (word = next_word(&line));) {
		if (strcmp(word, "one") == 0)
			p->is_one = true;
		else if (strcmp(word, "align") == 0 || strcmp(word, "div") == 0) {
			if (!read_unsigned(next_word(&line), &p->divisible))
				return r->trouble = "a promise without a number", false;
		}
	}
	s->nparameters++;
	return true;
}

static bool read_constant(reader *r, char *line)
{
	signature_constant *c = &r->sig->constants[r->sig->nconstants];
	c->name = next_word(&line);
	c->type = next_word(&line);
	while (*line == ' ') line++;
	c->value = line;
	if (!c->type) return r->trouble = "a constant without a type", false;
	r->sig->nconstants++;
	return true;
}

static bool read_grid(reader *r, char *line)
{
	uint32_t axis;
	if (!read_unsigned(next_word(&line), &axis) || axis > 2) return r->trouble = "a grid axis beyond 2", false;
	if (!read_expression(r, line, &r->sig->grid[axis])) return false;
	if (axis + 1 > r->sig->ngrid) r->sig->ngrid = axis + 1;
	return true;
}

static bool read_cost(reader *r, char *line)
{
	char *what = next_word(&line);
	if (what && strcmp(what, "bytes") == 0) return read_expression(r, line, &r->sig->cost_bytes);
	if (what && strcmp(what, "flops") == 0) return read_expression(r, line, &r->sig->cost_flops);
	return r->trouble = "a cost of neither bytes nor flops", false;
}

/* The next part of a map's line, up to a semicolon. */
static bool read_part(reader *r, char **rest, signature_expression *e)
{
	char *part = *rest;
	if (!part) return r->trouble = "a tensor map lacks an expression", false;
	char *end = strchr(part, ';');
	if (end) *end = 0;
	*rest = end ? end + 1 : NULL;
	return read_expression(r, part, e);
}

/* "f16 128 64 64 ; address ; extents ; strides": element (or tf32), swizzle, box, and as many expressions as follow
 * from that. */
static bool read_map(reader *r, char *line)
{
	signature *s = r->sig;
	if (s->nmaps == SIGNATURE_MAPS) return r->trouble = "more than 16 tensor maps", false;
	signature_map *m = &s->maps[s->nmaps];
	char *rest = strchr(line, ';');
	if (rest) *rest++ = 0;
	scalar element;
	uint32_t swizzle;
	char *name = next_word(&line);
	m->rounds = name && strcmp(name, "tf32") == 0;
	if (!name || !scalar_parse(m->rounds ? "f32" : name, &element))
		return r->trouble = "a tensor map of an unknown type", false;
	if (!read_unsigned(next_word(&line), &swizzle) ||
		(swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128))
		return r->trouble = "a tensor map of an unknown swizzle", false;
	m->element = (uint8_t)element;
	m->swizzle = (uint8_t)swizzle;
	for (char *word; (word = next_word(&line)); m->rank++)
		if (m->rank == SIGNATURE_MAP_RANK || !read_unsigned(word, &m->box[m->rank]) || !m->box[m->rank] ||
			m->box[m->rank] > 256)
			return r->trouble = "a tensor map without a box", false;
	if (!m->rank) return r->trouble = "a tensor map without a box", false;
	r->addresses = true;
	bool good = read_part(r, &rest, &m->address);
	r->addresses = false;
	for (unsigned i = 0; good && i < m->rank; i++) good = read_part(r, &rest, &m->extent[i]);
	for (unsigned i = 1; good && i < m->rank; i++) good = read_part(r, &rest, &m->stride[i]);
	if (good && rest) return r->trouble = "a tensor map has too many expressions", false;
	s->nmaps += good;
	return good;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \xNN, in place. */
static void unescape(char *s)
{
	char *to = s;
	for (; *s; s++) {
		int high = s[0] == '\\' && s[1] == 'x' ? hex_digit(s[2]) : -1, low = high < 0 ? -1 : hex_digit(s[3]);
		bool is_code = low >= 0 && high + low > 0;
		*to++ = is_code ? (char)(16 * high + low) : *s;
		if (is_code) s += 3;
	}
	*to = 0;
}

/* Cuts off what stands before the next " ; ". */
static char *next_part(char **line)
{
	char *part = *line, *end = part ? strstr(part, " ; ") : NULL;
	if (end) *end = 0;
	*line = end ? end + 3 : NULL;
	return part;
}

/* POSTFIX ; NAME=VALUE .. ; SOURCE ; TEXT, the last of which goes on to the end of the line. */
static bool read_requires(reader *r, char *line)
{
	signature *s = r->sig;
	signature_requirement *q = &s->requirements[s->nrequirements];
	char *postfix = next_part(&line), *names = next_part(&line), *source = next_part(&line);
	if (!source) return r->trouble = "a requirement lacks a part", false;
	if (!read_expression(r, postfix, &q->condition)) return false;
	unescape(source);
	if (line) unescape(line);
	q->names = names;
	q->source = source;
	q->text = line ? line : "";
	s->nrequirements++;
	return true;
}

static bool read_bound(char *word, int64_t *out, bool *bounded)
{
	char *end;
	if (!word) return false;
	if (strcmp(word, "-") == 0) return true;
	errno = 0;
	*out = strtoll(word, &end, 10);
	*bounded = true;
	return !*end && !errno;
}

/* NAME TYPE LOW HIGH POSTFIX ; NAME=VALUE .. ; SOURCE */
static bool read_computed(reader *r, char *line)
{
	signature *s = r->sig;
	signature_computed *c = &s->computed[s->ncomputed];
	bool bounded[2] = {false, false};
	scalar type;
	if (s->ncomputed == SIGNATURE_COMPUTED) return r->trouble = "more than 16 computed constants", false;
	c->name = next_word(&line);
	char *word = next_word(&line);
	if (!word || !scalar_parse(word, &type) || scalar_is_float(type))
		return r->trouble = "a computed constant of no integer type", false;
	if (!read_bound(next_word(&line), &c->low, &bounded[0]) ||
		!read_bound(next_word(&line), &c->high, &bounded[1]) || bounded[0] != bounded[1])
		return r->trouble = "a computed constant without bounds", false;
	char *postfix = next_part(&line), *names = next_part(&line);
	if (!line) return r->trouble = "a computed constant lacks a part", false;
	if (!read_expression(r, postfix, &c->value.condition)) return false;
	unescape(line);
	c->type = (uint8_t)type;
	c->bounded = bounded[0];
	c->value.names = names;
	c->value.source = line;
	c->value.text = "";
	s->ncomputed++;
	return true;
}

/* Of the configuration in front of it. */
static bool read_fits(reader *r, char *line)
{
	signature *s = r->sig;
	if (!s->nconfigurations) return r->trouble = "no configuration stands before it", false;
	signature_fit *f = &s->fits[s->nfits];
	const signature_fit *last = s->nfits ? f - 1 : NULL;
	if (!read_expression(r, line, &f->condition)) return false;
	f->configuration = s->nconfigurations - 1;
	f->requirement = last && last->configuration == f->configuration ? last->requirement + 1 : 0;
	s->nfits++;
	return true;
}

static bool read_time(reader *r, char *line)
{
	signature *s = r->sig;
	if (!s->nconfigurations) return r->trouble = "no configuration stands before it", false;
	return read_expression(r, line, &s->times[s->nconfigurations - 1]);
}

/* POSTFIX ; SOURCE */
static bool read_key(reader *r, char *line)
{
	signature_key *k = &r->sig->keys[r->sig->nkeys];
	char *postfix = next_part(&line);
	if (!line) return r->trouble = "a key lacks a part", false;
	r->addresses = true;
	bool good = read_expression(r, postfix, &k->value);
	r->addresses = false;
	k->source = line;
	r->sig->nkeys += good;
	return good;
}

static bool read_place(reader *r, const char *word, bool *places)
{
	uint32_t i;
	if (!read_unsigned(word, &i) || i >= SIGNATURE_PARAMETERS) return r->trouble = "no such parameter", false;
	places[i] = true;
	return true;
}

/* Without a number: addresses that come of no parameter that is known. */
static bool read_addresses(reader *r, const char *word)
{
	r->sig->uses_addresses = true;
	if (word) return read_place(r, word, r->written_through);
	r->sig->writes_addresses = true;
	return true;
}

static bool read_line(reader *r, char *line)
{
	signature *s = r->sig;
	char *fact = next_word(&line);
	if (!fact) return true;
	if (strcmp(fact, "fits") == 0) return read_fits(r, line); /* these three are most of the lines */
	if (strcmp(fact, "time") == 0) return read_time(r, line);
	if (strcmp(fact, "configuration") == 0) return s->configurations[s->nconfigurations++] = line, true;
	const struct {
		const char *name;
		uint32_t *to;
	} numbers[] = {{"num_warps", &s->num_warps}, {"num_stages", &s->num_stages}, {"num_ctas", &s->num_ctas},
		{"threads", &s->threads}, {"shared", &s->shared}, {"maxnreg", &s->maxnreg}, {"scratch", &s->scratch},
		{"max_registers", &s->max_registers}, {"max_spills", &s->max_spills}, {"max_shared", &s->max_shared},
		{"cluster", &s->cluster}, {"strict", &s->strict}, {"launch_pdl", &s->launch_pdl},
		{"gdc_wait", &s->gdc_wait}, {"try", &s->tries}};
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		if (strcmp(fact, numbers[i].name) == 0)
			return read_unsigned(next_word(&line), numbers[i].to) ||
			       (r->trouble = "a number is missing", false);
	const struct {
		const char *name;
		const char **to;
	} names[] = {{"kernel", &s->kernel}, {"symbol", &s->symbol}, {"target", &s->target}};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(fact, names[i].name) == 0)
			return (*names[i].to = next_word(&line)) != NULL || (r->trouble = "a name is missing", false);
	if (strcmp(fact, "param") == 0) return read_parameter(r, line);
	if (strcmp(fact, "const") == 0) return read_constant(r, line);
	if (strcmp(fact, "grid") == 0) return read_grid(r, line);
	if (strcmp(fact, "cost") == 0) return read_cost(r, line);
	if (strcmp(fact, "map") == 0) return read_map(r, line);
	if (strcmp(fact, "requires") == 0) return read_requires(r, line);
	if (strcmp(fact, "computed") == 0) return read_computed(r, line);
	if (strcmp(fact, "order") == 0) return read_expression(r, line, &s->order);
	if (strcmp(fact, "key") == 0) return read_key(r, line);
	if (strcmp(fact, "written") == 0) return read_place(r, next_word(&line), r->written);
	if (strcmp(fact, "writes_addresses") == 0) return read_addresses(r, next_word(&line));
	if (strcmp(fact, "uses_addresses") == 0) s->uses_addresses = true;
	if (strcmp(fact, "source") == 0) s->source = line;
	if (strcmp(fact, "autotune") == 0) s->autotune = line;
	return true;
}

/* One block: the struct, room for as many of everything as there are lines and a token for every two bytes, two copies
 * of the text: one to keep, one to cut up. */
static signature *allocate(const char *text, size_t bytes, reader *r)
{
	size_t lines = 1;
	for (size_t i = 0; i < bytes; i++) lines += text[i] == '\n';
	size_t tokens = bytes / 2 + 1;
	size_t parameters = lines < SIGNATURE_PARAMETERS ? lines : SIGNATURE_PARAMETERS;
	size_t maps = lines < SIGNATURE_MAPS ? lines : SIGNATURE_MAPS;
	size_t computed = lines < SIGNATURE_COMPUTED ? lines : SIGNATURE_COMPUTED;
	size_t size = sizeof(signature) + tokens * sizeof(signature_token) + maps * sizeof(signature_map) +
		      lines * (sizeof(signature_constant) + sizeof(signature_requirement) + sizeof(signature_fit) +
				      sizeof(signature_key) + sizeof(signature_expression) + sizeof(const char *)) +
		      parameters * sizeof(signature_parameter) + computed * sizeof(signature_computed) +
		      2 * (bytes + 1);
	signature *s = calloc(1, size);
	if (!s) return NULL;
	r->sig = s;
	r->tokens = (signature_token *)(s + 1);
	s->maps = (signature_map *)(r->tokens + tokens);
	s->constants = (signature_constant *)(s->maps + maps);
	s->requirements = (signature_requirement *)(s->constants + lines);
	s->computed = (signature_computed *)(s->requirements + lines);
	s->fits = (signature_fit *)(s->computed + computed);
	s->keys = (signature_key *)(s->fits + lines);
	s->times = (signature_expression *)(s->keys + lines);
	s->parameters = (signature_parameter *)(s->times + lines);
	s->configurations = (const char **)(s->parameters + parameters);
	char *copy = (char *)(s->configurations + lines);
	memcpy(copy, text, bytes);
	memcpy(copy + bytes + 1, text, bytes);
	s->text = copy;
	s->max_registers = s->max_spills = s->max_shared = UINT32_MAX;
	s->launch_pdl = 1;
	return s;
}

/* What single lines cannot tell. */
static blk_status check_whole(reader *r)
{
	signature *s = r->sig;
	for (uint32_t i = 0; i < SIGNATURE_PARAMETERS; i++) {
		if (!r->written[i]) continue;
		if (i >= s->nparameters || s->parameters[i].code != BLK_TYPE_POINTER)
			return error_set(BLK_ERROR_FORMAT,
				"a kernel's signature writes through parameter %u, which is no pointer", i);
		s->parameters[i].written = true;
	}
	for (uint32_t i = 0; i < SIGNATURE_PARAMETERS; i++) {
		if (!r->written_through[i]) continue;
		if (i >= s->nparameters)
			return error_set(BLK_ERROR_FORMAT,
				"a kernel's signature writes at addresses of parameter %u, which is not there", i);
		s->parameters[i].written_through = true;
	}
	for (uint32_t i = 0; i < s->ngrid; i++)
		if (!s->grid[i].ntokens)
			return error_set(BLK_ERROR_FORMAT, "a kernel's signature has no grid expression %u", i);
	if (!s->kernel) return error_set(BLK_ERROR_FORMAT, "a signature that names no kernel");
	if (!s->symbol) s->symbol = s->kernel;
	return BLK_OK;
}

blk_status signature_parse(const char *text, size_t bytes, signature **out)
{
	reader r = {0};
	blk_status status = BLK_OK;
	*out = NULL;
	if (bytes > (16u << 20) || memchr(text, 0, bytes))
		return error_set(BLK_ERROR_FORMAT, "a kernel's signature is no text");
	signature *s = allocate(text, bytes, &r);
	if (!s) return error_memory();
	char *line = (char *)s->text + bytes + 1;
	for (unsigned number = 1; line && !status; number++) {
		char *end = strchr(line, '\n');
		if (end) *end = 0;
		if (!read_line(&r, line))
			status = error_set(BLK_ERROR_FORMAT, "line %u of a kernel's signature: %s", number, r.trouble);
		line = end ? end + 1 : NULL;
	}
	if (!status) status = check_whole(&r);
	if (status)
		free(s);
	else
		*out = s;
	return status;
}

void signature_free(signature *s)
{
	free(s);
}

/* ---- Computing ---- */

static int64_t saturate(double d)
{
	return d != d ? 0 : d < -0x1p63 ? INT64_MIN : d >= 0x1p63 ? INT64_MAX : (int64_t)d;
}

static int64_t shift(int64_t a, int64_t by, bool left)
{
	bool all = by < 0 || by > 63;
	if (left) return all ? 0 : (int64_t)((uint64_t)a << by);
	return all ? (a < 0 ? -1 : 0) : a >> by;
}

static int64_t next_pow2(int64_t a)
{
	uint64_t p = 1;
	while ((int64_t)p > 0 && (int64_t)p < a) p <<= 1;
	return (int64_t)p;
}

typedef struct value {
	int64_t v;
	uint8_t bad; /* signature_trouble that it came from */
} value;

/* C's quotient, or the one rounded up; the smallest integer over -1 wraps. */
static value divide(value a, value b, uint8_t op)
{
	value r = {0, a.bad ? a.bad : b.bad ? b.bad : b.v == 0 ? SIGNATURE_DIVIDES : SIGNATURE_FINE};
	if (r.bad) return r;
	if (b.v == -1) return r.v = op == OP_MOD ? 0 : (int64_t)(0 - (uint64_t)a.v), r;
	if (op == OP_MOD)
		r.v = a.v % b.v;
	else
		r.v = a.v / b.v;
	if (op == OP_CDIV && a.v % b.v != 0 && (a.v < 0) == (b.v < 0)) r.v++;
	return r;
}

static value apply(uint8_t op, value a, value b, value c)
{
	uint64_t x = (uint64_t)a.v, y = (uint64_t)b.v;
	value r = {0, a.bad || ops[op].operands < 2 ? a.bad : b.bad};
	switch (op) {
	case OP_ADD: r.v = (int64_t)(x + y); break;
	case OP_SUB: r.v = (int64_t)(x - y); break;
	case OP_MUL: r.v = (int64_t)(x * y); break;
	case OP_DIV:
	case OP_CDIV:
	case OP_MOD: return divide(a, b, op);
	case OP_NEG: r.v = (int64_t)(0 - x); break;
	case OP_SHL: r.v = shift(a.v, b.v, true); break;
	case OP_SHR: r.v = shift(a.v, b.v, false); break;
	case OP_AND: r.v = a.v & b.v; break;
	case OP_OR: r.v = a.v | b.v; break;
	case OP_XOR: r.v = a.v ^ b.v; break;
	case OP_NOT: r.v = ~a.v; break;
	case OP_LT: r.v = a.v < b.v; break;
	case OP_LE: r.v = a.v <= b.v; break;
	case OP_GT: r.v = a.v > b.v; break;
	case OP_GE: r.v = a.v >= b.v; break;
	case OP_EQ: r.v = a.v == b.v; break;
	case OP_NE: r.v = a.v != b.v; break;
	case OP_ANDAND:
		r.v = a.v && b.v;
		if (!a.bad && !a.v) r.bad = SIGNATURE_FINE;
		break;
	case OP_OROR:
		r.v = a.v || b.v;
		if (!a.bad && a.v) r.bad = SIGNATURE_FINE;
		break;
	case OP_BANG: r.v = !a.v; break;
	case OP_SELECT:
		r = a.v ? b : c;
		if (a.bad) r.bad = a.bad;
		break;
	case OP_MIN: r.v = a.v < b.v ? a.v : b.v; break;
	case OP_MAX: r.v = a.v > b.v ? a.v : b.v; break;
	case OP_NEXT_POW2: r.v = next_pow2(a.v); break;
	}
	return r;
}

/* The arithmetic is that of i64, in which a larger u64 would be a negative number. */
static value argument(const signature *s, uint32_t i, const uint64_t *bits)
{
	uint8_t code = s->parameters[i].code;
	scalar type = code == BLK_TYPE_POINTER ? SCALAR_U64 : (scalar)code;
	if (code == SCALAR_U64 && bits[i] > INT64_MAX) return (value){0, SIGNATURE_LARGE};
	if (scalar_is_float(type)) return (value){saturate(scalar_to_double(type, bits[i])), SIGNATURE_FINE};
	return (value){scalar_sign_extend(type, bits[i]), SIGNATURE_FINE};
}

const char *signature_trouble_text(signature_trouble t)
{
	return t == SIGNATURE_LARGE ? "has an argument that i64 cannot hold" : "divides by zero";
}

bool signature_integer(
	const signature *s, const signature_expression *e, const uint64_t *bits, uint32_t num_sms, int64_t *out)
{
	value stack[SIGNATURE_DEPTH + 1], kept[SIGNATURE_PLACES];
	uint32_t n = 0;
	stack[0] = (value){0, SIGNATURE_DIVIDES}; /* of no words at all */
	for (const signature_token *t = e->tokens, *end = t + e->ntokens; t < end; t++) {
		uint8_t operands = ops[t->op].operands;
		value result = {0, SIGNATURE_FINE};
		if (t->op == OP_KEEP) {
			kept[t->parameter] = stack[--n];
			continue;
		}
		if (t->op == OP_KEPT)
			result = kept[t->parameter];
		else if (t->op == OP_NUMBER)
			result.v = t->integer;
		else if (t->op == OP_NUM_SMS)
			result.v = num_sms;
		else if (t->op == OP_PARAMETER)
			result = argument(s, t->parameter, bits);
		else {
			const value *a = &stack[n - operands];
			result = apply(t->op, a[0], operands > 1 ? a[1] : a[0], operands > 2 ? a[2] : a[0]);
		}
		n -= operands;
		stack[n++] = result;
	}
	*out = stack[0].bad ? stack[0].bad : stack[0].v;
	return !stack[0].bad;
}

static double apply_number(uint8_t op, double a, double b, double c)
{
	switch (op) {
	case OP_ADD: return a + b;
	case OP_SUB: return a - b;
	case OP_MUL: return a * b;
	case OP_DIV: return a / b;
	case OP_CDIV: return ceil(a / b);
	case OP_MOD: return fmod(a, b);
	case OP_NEG: return -a;
	case OP_SHL: return (double)shift(saturate(a), saturate(b), true);
	case OP_SHR: return (double)shift(saturate(a), saturate(b), false);
	case OP_AND: return (double)(saturate(a) & saturate(b));
	case OP_OR: return (double)(saturate(a) | saturate(b));
	case OP_XOR: return (double)(saturate(a) ^ saturate(b));
	case OP_NOT: return (double)~saturate(a);
	case OP_LT: return a < b;
	case OP_LE: return a <= b;
	case OP_GT: return a > b;
	case OP_GE: return a >= b;
	case OP_EQ: return a == b;
	case OP_NE: return a != b;
	case OP_ANDAND: return a != 0 && b != 0;
	case OP_OROR: return a != 0 || b != 0;
	case OP_BANG: return a == 0;
	case OP_SELECT: return a != 0 ? b : c;
	case OP_MIN: return a < b ? a : b;
	case OP_MAX: return a > b ? a : b;
	case OP_NEXT_POW2: return (double)next_pow2(saturate(a));
	}
	return NAN;
}

double signature_number(const signature *s, const signature_expression *e, const uint64_t *bits, uint32_t num_sms)
{
	double stack[SIGNATURE_DEPTH + 1], kept[SIGNATURE_PLACES];
	uint32_t n = 0;
	stack[0] = NAN; /* of no words at all */
	for (const signature_token *t = e->tokens, *end = t + e->ntokens; t < end; t++) {
		uint8_t operands = ops[t->op].operands;
		double result;
		if (t->op == OP_KEEP) {
			kept[t->parameter] = stack[--n];
			continue;
		}
		if (t->op == OP_KEPT)
			result = kept[t->parameter];
		else if (t->op == OP_NUMBER)
			result = t->number;
		else if (t->op == OP_NUM_SMS)
			result = num_sms;
		else if (t->op == OP_PARAMETER) {
			scalar type = (scalar)s->parameters[t->parameter].code;
			result = scalar_to_double(type, bits[t->parameter]);
		} else {
			const double *a = &stack[n - operands];
			result = apply_number(t->op, a[0], operands > 1 ? a[1] : 0, operands > 2 ? a[2] : 0);
		}
		n -= operands;
		stack[n++] = result;
	}
	return stack[0];
}

uint32_t signature_key_parameter(const signature_key *k)
{
	bool one = k->value.ntokens == 1 && k->value.tokens->op == OP_PARAMETER;
	return one ? k->value.tokens->parameter : UINT32_MAX;
}

/* ---- What a launch requires ---- */

static bool holds(const signature *s, const signature_expression *e, const uint64_t *bits, uint32_t num_sms)
{
	int64_t v;
	return signature_integer(s, e, bits, num_sms, &v) && v;
}

const signature_requirement *signature_unmet(const signature *s, const uint64_t *bits, uint32_t num_sms)
{
	for (uint32_t i = 0; i < s->nrequirements; i++)
		if (!holds(s, &s->requirements[i].condition, bits, num_sms)) return &s->requirements[i];
	return NULL;
}

const signature_requirement *signature_misfit(
	const signature *s, uint32_t configuration, const uint64_t *bits, uint32_t num_sms)
{
	static const signature_requirement where = {
		.names = "", .source = "the autotune block's where refuses it for these arguments", .text = ""};
	uint32_t low = 0, high = s->nfits;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (s->fits[middle].configuration < configuration)
			low = middle + 1;
		else
			high = middle;
	}
	for (const signature_fit *f = s->fits + low; f < s->fits + s->nfits && f->configuration == configuration; f++)
		if (!holds(s, &f->condition, bits, num_sms))
			return f->requirement < s->nrequirements ? &s->requirements[f->requirement] : &where;
	return NULL;
}

void signature_requirement_text(const signature_requirement *q, char *to, size_t room)
{
	snprintf(to, room, q->text[0] ? "%s (%s)" : "%s", q->source, q->text);
}

/* "p3" of this signature's, as a number; what stands for itself, as it stands. */
static void value_text(
	const signature *s, const char *word, size_t n, const uint64_t *bits, uint32_t num_sms, char *to, size_t room)
{
	char copy[16] = "";
	uint32_t i;
	if (n < sizeof copy) memcpy(copy, word, n);
	if (copy[0] == 'p' && read_unsigned(copy + 1, &i) && i < s->nparameters) {
		scalar type = (scalar)s->parameters[i].code;
		int64_t v = scalar_sign_extend(type, bits[i]);
		if (type == SCALAR_BOOL)
			snprintf(to, room, "%s", v ? "true" : "false");
		else
			snprintf(to, room, type == SCALAR_U64 ? "%" PRIu64 : "%" PRId64, v);
	} else if (strcmp(copy, "num_sms") == 0)
		snprintf(to, room, "%u", num_sms);
	else
		snprintf(to, room, "%.*s", (int)n, word);
}

void signature_requirement_values(const signature *s, const signature_requirement *q, const uint64_t *bits,
	uint32_t num_sms, char *to, size_t room)
{
	size_t used = 0;
	*to = 0;
	for (const char *p = q->names; *p;) {
		char shown[64];
		size_t n = strcspn(p, " "), name = strcspn(p, "= ");
		if (name < n) {
			value_text(s, p + name + 1, n - name - 1, bits, num_sms, shown, sizeof shown);
			int k = snprintf(to + used, room - used, "%s%.*s = %s", used ? ", " : "", (int)name, p, shown);
			if ((size_t)k >= room - used) return;
			used += (size_t)k;
		}
		p += n + (p[n] == ' ');
	}
}
