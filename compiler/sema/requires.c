/* What a kernel requires of its arguments.
 *
 * In: `requires CONDITION, "text"` clauses and what is bound.  Out: a signature line for each, which the host computes
 * before a launch and has all to say what is wrong; and for each configuration of an autotune block a line for each
 * clause as it reads with that configuration's const parameters, so that the tuner need not compile it to know whether
 * it can be used:
 *
 *   requires p4 1024 <= ; n=p4 BLOCK=1024 ; n <= BLOCK ; a row fits one tile
 *   fits p4 2048 <=
 *
 * What is known to fail when the kernel is compiled is an error there. */
#include "internal.h"

#include <string.h>

/* ---- words of the line ---- */

/* Printable ASCII without what parts a line; the rest as \xNN, as these words stand in a PTX file's comments too. */
static void add_escaped(text *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c < ' ' || c > '~' || c == '\\' || c == ';')
			text_printf(out, "\\x%02x", c);
		else
			text_add(out, s + i, 1);
	}
}

/* The length of the blanks and comments that begin here. */
static size_t blank(const char *s, size_t n)
{
	size_t i = 0;
	while (i < n) {
		const char *end = NULL;
		if (strchr(" \t\r\n\f\v", s[i]))
			end = s + i + 1;
		else if (n - i > 1 && s[i] == '/' && s[i + 1] == '/')
			end = memchr(s + i, '\n', n - i);
		else if (n - i > 1 && s[i] == '/' && s[i + 1] == '*' && (end = memmem(s + i + 2, n - i - 2, "*/", 2)))
			end += 2;
		if (!end) break;
		i = (size_t)(end - s);
	}
	return i;
}

/* The condition in one line, without comments. */
static const char *source_line(sema *s, span at)
{
	text out = {.arena = s->arena};
	const char *from = at.file ? at.file->text + at.begin : "";
	size_t n = at.file ? at.end - at.begin : 0;
	text_puts(&out, "");
	for (size_t i = 0; i < n;) {
		size_t skipped = blank(from + i, n - i);
		text_add(&out, skipped ? " " : from + i, 1);
		i += skipped ? skipped : 1;
	}
	return out.at;
}

/* Null: it is none that a sentence could tell. */
static const char *value_of(sema *s, const ast *n)
{
	for (uint32_t i = 0; i < s->func->nparams; i++)
		if (s->func->params[i].name == n->text)
			return s->func->params[i].type.pointer ? NULL : arena_printf(s->arena, "p%u", i);
	if (strcmp(n->text, "num_sms") == 0 && !scope_find(s, n->text)) return n->text;
	ir_builder saved = scratch_open(s, n->at);
	sval v = scope_lookup(s, n->text, n->at);
	scratch_close(s, saved);
	return v.kind == SVAL_NUMBER || v.kind == SVAL_TYPE || v.kind == SVAL_TUPLE ? sema_constant_text(s, v) : NULL;
}

/* NAME=VALUE of every name in it, once each, in their order.  The values have no spaces. */
static void add_names(sema *s, const ast *n, bool of_launch, name_table *seen, text *out)
{
	if (!n || !sema_enter(s, n->at)) return;
	bool called = n->kind == AST_CALL && n->kids[0] && n->kids[0]->kind == AST_NAME;
	bool sms = called && strcmp(n->kids[0]->text, "num_sms") == 0;
	const ast *name = n->kind == AST_NAME ? n : sms ? n->kids[0] : NULL;
	if (name && !name_table_find(seen, name->text) && !(of_launch && computed_find(s, name->text))) {
		const char *v = value_of(s, name);
		name_table_set(s->arena, seen, name->text, (void *)name);
		if (v) text_printf(out, "%s%s=%s", out->n ? " " : "", name->text, v);
	}
	for (uint32_t i = called; i < n->nkids; i++) add_names(s, n->kids[i], of_launch, seen, out);
	sema_leave(s);
}

void requires_names(sema *s, const ast *n, bool of_launch, text *out)
{
	name_table seen = {0};
	add_names(s, n, of_launch, &seen, out);
}

void requires_source(sema *s, const ast *n, text *out)
{
	const char *source = source_line(s, n->at);
	add_escaped(out, source, strlen(source));
}

/* ---- clauses ---- */

typedef struct condition {
	host_facts facts;
	text postfix;
} condition;

/* False after an error. */
static bool read_condition(sema *s, const ast *n, condition *c)
{
	*c = (condition){.postfix = {.arena = s->arena}};
	if (!host_expression(s, n, HOST_REQUIRES, &c->postfix, &c->facts)) return false;
	if (c->facts.is_bool) return true;
	diag *d = sema_diag(s, 617, n->at, "a requires clause is a condition, found a number");
	bool rest = n->kind == AST_BINARY && n->op == AST_OP_REM; /* it is mostly to be divisible */
	bool whole = n->kind != AST_TERNARY;
	diag_set_hint(s->diags, d, "compare it: %s%s%s %s 0", whole ? "" : "(", sema_source_text(s, n->at),
		whole ? "" : ")", rest ? "==" : "!=");
	return false;
}

/* "n=p4 BLOCK=1024" as a sentence has it. */
static const char *spoken(sema *s, const text *words)
{
	text out = {.arena = s->arena};
	for (const char *c = words->at; c && *c; c++)
		text_puts(&out, *c == ' ' ? ", " : *c == '=' ? " = " : (char[]){*c, 0});
	return out.at;
}

static void report_failing(sema *s, const ast *n, const text *words)
{
	diag *d = words->n ? sema_diag(s, 618, n->kids[0]->at, "what the kernel requires does not hold: %s",
				     spoken(s, words))
			   : sema_diag(s, 618, n->kids[0]->at, "what the kernel requires never holds");
	if (n->text) diag_set_hint(s->diags, d, "it says why: %.*s", (int)n->ntext, n->text);
}

void requires_signature(sema *s, const ast *kernel, text *out)
{
	const ast *list = kernel->kids[4];
	bool later = s->private->request->requires_later && s->private->program->kernels.n > 1;
	for (uint32_t i = 0; list && i < list->nkids; i++) {
		const ast *n = list->kids[i];
		condition c;
		if (!n->kids[0] || !read_condition(s, n->kids[0], &c)) continue;
		text words = {.arena = s->arena};
		requires_names(s, n->kids[0], false, &words);
		if (c.facts.known && !c.facts.value && !(later && words.n)) report_failing(s, n, &words);
		text_printf(out, "requires %s ; %s ; ", c.postfix.at, words.n ? words.at : "");
		requires_source(s, n->kids[0], out);
		text_puts(out, " ; ");
		add_escaped(out, n->text ? n->text : "", n->ntext);
		text_puts(out, "\n");
	}
	computed_requires(s, out);
}

bool requires_of_configuration(sema *s, const ast *kernel, text *out)
{
	const ast *list = kernel->kids[4];
	for (uint32_t i = 0; list && i < list->nkids; i++) {
		condition c;
		if (!list->kids[i]->kids[0] || !read_condition(s, list->kids[i]->kids[0], &c)) return false;
		text_printf(out, "fits %s\n", c.postfix.at);
	}
	for (uint32_t i = 0; i < s->private->computed.n; i++)
		text_puts(out, "fits 1\n"); /* as the launch has computed it */
	return true;
}
