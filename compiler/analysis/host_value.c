/* What the host can compute before a launch.  See host_value.h. */
#include "host_value.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 40 };

static bool value(const host_values *h, const ir_value *v, unsigned depth, text *out);

/* The host computes in i64: back to what a narrower type holds. */
static void wrap(text *out, scalar s)
{
	assert(scalar_is_integer(s));
	unsigned bits = 8 * scalar_bytes(s);
	if (bits == 64) return;
	if (scalar_is_signed(s))
		text_printf(out, " %u << %u >>", 64 - bits, 64 - bits);
	else
		text_printf(out, " %llu &", (unsigned long long)((UINT64_C(1) << bits) - 1));
}

/* Every number of the one type is one of the other. */
static bool contains(scalar to, scalar from)
{
	if (to == from || scalar_bytes(to) == 8) return true; /* 64-bit ones share their container */
	return scalar_bytes(to) > scalar_bytes(from) && (scalar_is_signed(to) || !scalar_is_signed(from));
}

static bool binary(const host_values *h, const ir_op *o, const char *sign, unsigned depth, text *out)
{
	assert(o->nargs == 2);
	scalar s = (scalar)o->results[0]->type.elem;
	bool ordered = o->kind == IR_DIV || o->kind == IR_REM || o->kind == IR_MAX || o->kind == IR_MIN;
	if (ordered && s == SCALAR_U64) return false; /* the host's numbers are signed */
	if (!value(h, ir_arg(o, 0), depth, out)) return false;
	text_puts(out, " ");
	if (!value(h, ir_arg(o, 1), depth, out)) return false;
	text_printf(out, " %s", sign);
	wrap(out, s);
	return true;
}

static bool converted(const host_values *h, const ir_op *o, unsigned depth, text *out)
{
	scalar from = (scalar)ir_arg(o, 0)->type.elem, to = (scalar)o->results[0]->type.elem;
	if (!scalar_is_integer(from) || !value(h, ir_arg(o, 0), depth, out)) return false;
	if (!contains(to, from)) wrap(out, to);
	return true;
}

/* An integer scalar as the signature's postfix (blkc.h). */
static bool value(const host_values *h, const ir_value *v, unsigned depth, text *out)
{
	int64_t n;
	if (depth == MOST_DEPTH || out->n > HOST_MOST_TEXT || v->type.rank || v->type.pointer ||
		!scalar_is_integer((scalar)v->type.elem))
		return false;
	depth++;
	if (!v->def) {
		if (v->block != h->func->body) return false;
		text_printf(out, "p%u", v->index);
		return true;
	}
	const ir_op *o = v->def;
	if (ir_is_const_int(v, &n)) {
		text_printf(out, "%lld", (long long)n);
		return v->type.elem != SCALAR_U64 || n >= 0;
	}
	switch (o->kind) {
	case IR_ADD: return binary(h, o, "+", depth, out);
	case IR_SUB: return binary(h, o, "-", depth, out);
	case IR_MUL: return binary(h, o, "*", depth, out);
	case IR_DIV: return binary(h, o, "/", depth, out);
	case IR_REM: return binary(h, o, "%", depth, out);
	case IR_MAX: return binary(h, o, "max", depth, out);
	case IR_MIN: return binary(h, o, "min", depth, out);
	case IR_CONVERT: return converted(h, o, depth, out);
	case IR_HINT: return value(h, ir_arg(o, 0), depth, out);
	default: return false;
	}
}

/* The parameter that an address begins with, and the address; null: no such thing. */
static ir_value *address(const host_values *h, ir_value *v, unsigned depth, text *out)
{
	assert(v->type.pointer);
	if (depth == MOST_DEPTH) return NULL;
	if (!v->def) {
		if (v->block != h->func->body) return NULL;
		text_printf(out, "p%u", v->index);
		return v;
	}
	if (v->def->kind == IR_HINT) return address(h, ir_arg(v->def, 0), depth + 1, out);
	if (v->def->kind != IR_PTR_ADD) return NULL;
	ir_value *root = address(h, ir_arg(v->def, 0), depth + 1, out);
	text_puts(out, " ");
	if (!value(h, ir_arg(v->def, 1), 0, out)) return NULL;
	text_printf(out, " %u * +", scalar_bytes((scalar)v->type.elem));
	return root;
}

bool host_value_known(const host_values *h, const ir_value *v)
{
	text scratch = {.arena = h->arena};
	return value(h, v, 0, &scratch);
}

const char *host_value_text(const host_values *h, const ir_value *v)
{
	text out = {.arena = h->arena};
	return value(h, v, 0, &out) ? out.at : NULL;
}

bool host_value_next(const char **expression, host_token *out)
{
	const char *at = *expression + strspn(*expression, " ");
	char *end = (char *)at;
	*out = (host_token){.kind = *at};
	if (*at == 'p' && at[1] >= '0' && at[1] <= '9') {
		out->param = (uint32_t)strtoul(at + 1, &end, 10);
	} else if (*at >= '0' && *at <= '9') {
		out->kind = 'n';
		out->number = strtoull(at, &end, 10);
	} else if (*at == '+' || *at == '*') {
		end++;
	} else if (!strncmp(at, "min", 3) || !strncmp(at, "max", 3)) {
		out->kind = at[1] == 'i' ? '<' : '>';
		end += 3;
	}
	bool read = end > at && (!*end || *end == ' ');
	if (read) *expression = end;
	return read;
}

uint64_t host_value_divisor(const ir_func *f, const char *expression)
{
	uint64_t stack[MOST_DEPTH];
	unsigned n = 0;
	host_token t;
	while (host_value_next(&expression, &t)) {
		bool leaf = t.kind == 'p' || t.kind == 'n';
		if (leaf ? n == MOST_DEPTH : n < 2) return 0;
		if (t.kind == 'p' && t.param >= f->nparams) return 0;
		if (t.kind == 'p')
			stack[n++] = f->params[t.param].divisible;
		else if (t.kind == 'n')
			stack[n++] = t.number ? t.number & -t.number : UINT64_C(1) << 32;
		else {
			uint64_t a = stack[n - 2], b = stack[n - 1];
			stack[--n - 1] = t.kind == '*' ? a * b : a < b ? a : b;
		}
		if (stack[n - 1] > UINT64_C(1) << 31) stack[n - 1] = UINT64_C(1) << 31;
	}
	return n == 1 && !expression[strspn(expression, " ")] ? stack[0] : 0;
}

ir_value *host_value_address(const host_values *h, ir_value *pointer, const char **expression)
{
	text out = {.arena = h->arena};
	ir_value *root = address(h, pointer, 0, &out);
	*expression = out.at;
	return root;
}
