/* Random programs of control flow: what they print by the tile IR, before and after the
 * passes that every target runs, against what they print by their meaning.
 *
 * A program is made as a small tree, written out as blk, and also walked directly: that walk, in C, with break,
 * continue and return as plain status codes, is the oracle.  Seeds are fixed; a failure prints its seed, arguments and
 * program. */
#include "scalar_machine.h"

#include "passes/passes.h"

enum { PROGRAMS = 250, MAX_NODES = 4000, MAX_VARS = 256, MAX_FNS = 4 };

typedef enum kind {
	NUMBER,
	VARIABLE,
	ARITHMETIC,
	COMPARE,
	AND,
	OR,
	NOT,
	CHOOSE,
	CALL, /* expressions */
	BLOCK,
	VAR,
	SET,
	ADD,
	PRINT,
	IF,
	FOR,
	UNROLL,
	WHILE,
	BREAK,
	CONTINUE,
	RETURN
} kind;

typedef struct node {
	kind kind;
	int value;           /* number, variable, operator, function, step */
	struct node *kid[3]; /* operands, condition and arms, bounds */
	struct node *next, *body;
} node;

typedef struct function {
	node *body;
	int parameters;
} function;

typedef struct program {
	uint64_t random;
	node nodes[MAX_NODES];
	int nnodes, nvars, budget;
	int visible[MAX_VARS], nvisible; /* variables in scope */
	bool assignable[MAX_VARS];
	function fns[MAX_FNS];
	int nfns;
	char text[1 << 16];
	size_t n;
} program;

static unsigned roll(program *p, unsigned n)
{
	p->random = p->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(p->random >> 33) % n;
}

static node *make(program *p, kind k)
{
	assert_true(p->nnodes < MAX_NODES);
	node *n = &p->nodes[p->nnodes++];
	*n = (node){.kind = k};
	return n;
}

/* ---- generation ---- */

static node *expression(program *p, int depth);

static node *condition(program *p, int depth)
{
	unsigned r = roll(p, 10);
	node *n = make(p, depth > 1 || r < 6 ? COMPARE : r < 8 ? AND : r < 9 ? OR : NOT);
	if (n->kind == COMPARE) {
		n->value = (int)roll(p, 6);
		n->kid[0] = expression(p, depth + 1);
		n->kid[1] = expression(p, depth + 1);
		return n;
	}
	n->kid[0] = condition(p, depth + 1);
	if (n->kind != NOT) n->kid[1] = condition(p, depth + 1);
	return n;
}

static node *expression(program *p, int depth)
{
	unsigned r = roll(p, 20);
	if (depth > 2 || r < 8) {
		node *n = make(p, p->nvisible && roll(p, 4) ? VARIABLE : NUMBER);
		n->value = n->kind == NUMBER ? (int)roll(p, 10) - 3 : p->visible[roll(p, (unsigned)p->nvisible)];
		return n;
	}
	if (r < 16 || (r < 18 && !p->nfns)) {
		node *n = make(p, ARITHMETIC);
		n->value = (int)roll(p, 6);
		n->kid[0] = expression(p, depth + 1);
		n->kid[1] = expression(p, depth + 1);
		return n;
	}
	if (r < 18) {
		node *n = make(p, CALL);
		n->value = (int)roll(p, (unsigned)p->nfns);
		for (int i = 0; i < p->fns[n->value].parameters; i++) n->kid[i] = expression(p, depth + 2);
		return n;
	}
	node *n = make(p, CHOOSE);
	n->kid[0] = condition(p, depth + 1);
	n->kid[1] = expression(p, depth + 1);
	n->kid[2] = expression(p, depth + 1);
	return n;
}

static int declare(program *p, bool assignable)
{
	assert_true(p->nvars < MAX_VARS);
	p->assignable[p->nvars] = assignable;
	p->visible[p->nvisible++] = p->nvars;
	return p->nvars++;
}

static node *block(program *p, int depth, bool in_loop, bool in_fn);

static node *loop(program *p, int depth, bool in_fn)
{
	int visible = p->nvisible;
	node *n = make(p, (kind)(FOR + roll(p, 3)));
	n->kid[0] = n->kind == UNROLL ? NULL : n->kind == WHILE ? condition(p, 1) : expression(p, 1);
	if (n->kind == FOR) n->kid[1] = expression(p, 1);
	n->kid[2] = make(p, NUMBER);
	static const int steps[] = {1, 1, 2, -1, -2};
	n->kid[2]->value = steps[roll(p, 5)];
	n->value = declare(p, false);
	n->body = block(p, depth + 1, true, in_fn);
	p->nvisible = visible;
	return n;
}

static node *statement(program *p, int depth, bool in_loop, bool in_fn)
{
	unsigned r = p->budget-- > 0 ? roll(p, 20) : roll(p, 8);
	int targets[MAX_VARS], n = 0;
	for (int i = 0; i < p->nvisible; i++)
		if (p->assignable[p->visible[i]]) targets[n++] = p->visible[i];
	node *s;
	if (r < 3 || (r < 8 && !n)) {
		s = make(p, VAR);
		s->kid[0] = expression(p, 0);
		s->value = declare(p, true);
	} else if (r < 8) {
		s = make(p, r < 6 ? SET : ADD);
		s->value = targets[roll(p, (unsigned)n)];
		s->kid[0] = expression(p, 0);
	} else if (r < 11) {
		s = make(p, PRINT);
		s->kid[0] = expression(p, 0);
	} else if (r < 15 && depth < 4) {
		s = make(p, IF);
		s->kid[0] = condition(p, 0);
		s->kid[1] = block(p, depth + 1, in_loop, in_fn);
		if (roll(p, 2)) s->kid[2] = block(p, depth + 1, in_loop, in_fn);
	} else if (r < 18 && depth < 3) {
		s = loop(p, depth, in_fn);
	} else {
		s = make(p, in_loop && roll(p, 3) ? (roll(p, 2) ? BREAK : CONTINUE) : RETURN);
		if (s->kind == RETURN && in_fn) s->kid[0] = expression(p, 0);
		node *c = s;
		if (roll(p, 5)) { /* mostly under a condition */
			c = make(p, IF);
			c->kid[0] = condition(p, 0);
			c->kid[1] = make(p, BLOCK);
			c->kid[1]->body = s;
		}
		s = c;
	}
	return s;
}

static node *block(program *p, int depth, bool in_loop, bool in_fn)
{
	int visible = p->nvisible;
	node *b = make(p, BLOCK), **end = &b->body;
	for (unsigned i = 0, n = 1 + roll(p, 4); i < n; i++) {
		*end = statement(p, depth, in_loop, in_fn);
		bool last = (*end)->kind >= BREAK;
		end = &(*end)->next;
		if (last) break;
	}
	p->nvisible = visible;
	return b;
}

/* ---- as text ---- */

static void say(program *p, const char *fmt, ...)
{
	va_list list;
	va_start(list, fmt);
	p->n += (size_t)vsnprintf(p->text + p->n, sizeof p->text - p->n, fmt, list);
	va_end(list);
	assert_true(p->n < sizeof p->text);
}

static void say_expression(program *p, const node *e)
{
	static const char *const arithmetic[] = {"+", "-", "*", "&", "|", "^"};
	static const char *const compare[] = {"<", "<=", ">", ">=", "==", "!="};
	const char *between = e->kind == ARITHMETIC ? arithmetic[e->value]
			      : e->kind == COMPARE  ? compare[e->value]
			      : e->kind == AND      ? "&&"
						    : "||";
	switch (e->kind) {
	case NUMBER: say(p, e->value < 0 ? "(%d)" : "%d", e->value); break;
	case VARIABLE: say(p, "v%d", e->value); break;
	case NOT:
		say(p, "!(");
		say_expression(p, e->kid[0]);
		say(p, ")");
		break;
	case CALL:
		say(p, "f%d(", e->value);
		for (int i = 0; i < p->fns[e->value].parameters; i++) {
			if (i) say(p, ", ");
			say_expression(p, e->kid[i]);
		}
		say(p, ")");
		break;
	case CHOOSE:
		say(p, "(");
		say_expression(p, e->kid[0]);
		say(p, " ? ");
		say_expression(p, e->kid[1]);
		say(p, " : ");
		say_expression(p, e->kid[2]);
		say(p, ")");
		break;
	default:
		say(p, "(");
		say_expression(p, e->kid[0]);
		say(p, " %s ", between);
		say_expression(p, e->kid[1]);
		say(p, ")");
	}
}

static void say_block(program *p, const node *b);

static void say_statement(program *p, const node *s)
{
	switch (s->kind) {
	case VAR: say(p, "var v%d = ", s->value); break;
	case SET: say(p, "v%d = ", s->value); break;
	case ADD: say(p, "v%d += ", s->value); break;
	case PRINT: say(p, "device_print(\"t\", "); break;
	case IF: say(p, "if "); break;
	case FOR: say(p, "for v%d in range(", s->value); break;
	case UNROLL:
		say(p,
			s->kid[2]->value > 0 ? "for v%d in static_range(-1, 3, %d) "
					     : "for v%d in static_range(2, -2, %d) ",
			s->value, s->kid[2]->value);
		break;
	case WHILE: say(p, "{ var n%d = 0; while ", s->value); break;
	case BREAK: say(p, "break"); break;
	case CONTINUE: say(p, "continue"); break;
	default: say(p, "return "); break;
	}
	if (s->kid[0]) say_expression(p, s->kid[0]);
	if (s->kind == FOR) {
		say(p, " & 3, ");
		say_expression(p, s->kid[1]);
		say(p, " & 7, %d) ", s->kid[2]->value);
	}
	if (s->kind == PRINT) say(p, ")");
	if (s->kind == WHILE) say(p, " && n%d < 4 { n%d += 1; let v%d = n%d; ", s->value, s->value, s->value, s->value);
	if (s->kind == IF) say_block(p, s->kid[1]);
	if (s->kind == IF && s->kid[2]) {
		say(p, "else ");
		say_block(p, s->kid[2]);
	}
	if (s->body) say_block(p, s->body);
	if (s->kind == WHILE) say(p, "}}\n");
	if (s->kind < IF || s->kind > WHILE) say(p, ";\n");
}

static void say_block(program *p, const node *b)
{
	say(p, "{\n");
	for (const node *s = b->body; s; s = s->next) say_statement(p, s);
	say(p, "}\n");
}

/* ---- the meaning ---- */

typedef enum way { NEXT_WAY, BREAK_WAY, CONTINUE_WAY, RETURN_WAY } way;

typedef struct walk {
	program *p;
	machine *out;
	int32_t vars[MAX_VARS], result;
	unsigned steps;
} walk;

static way walk_block(walk *w, const node *b);

static int32_t value(walk *w, const node *e)
{
	w->steps++;
	int32_t a = 0, b = 0;
	if (e->kind == ARITHMETIC || e->kind == COMPARE) {
		a = value(w, e->kid[0]);
		b = value(w, e->kid[1]);
	}
	switch (e->kind) {
	case NUMBER: return e->value;
	case VARIABLE: return w->vars[e->value];
	case ARITHMETIC: {
		const uint32_t x = (uint32_t)a, y = (uint32_t)b;
		const uint32_t results[] = {x + y, x - y, x * y, x & y, x | y, x ^ y};
		return (int32_t)results[e->value];
	}
	case COMPARE: {
		const bool results[] = {a<b, a <= b, a> b, a >= b, a == b, a != b};
		return results[e->value];
	}
	case AND: return value(w, e->kid[0]) && value(w, e->kid[1]);
	case OR: return value(w, e->kid[0]) || value(w, e->kid[1]);
	case NOT: return !value(w, e->kid[0]);
	case CHOOSE: return value(w, e->kid[value(w, e->kid[0]) ? 1 : 2]);
	default: break;
	}
	const function *f = &w->p->fns[e->value]; /* its parameters are the first variables of its own frame */
	walk inner = {.p = w->p, .out = w->out, .steps = w->steps};
	for (int i = 0; i < f->parameters; i++) inner.vars[f->body->value + i] = value(w, e->kid[i]);
	inner.steps = w->steps;
	assert_int_equal(walk_block(&inner, f->body), RETURN_WAY);
	w->steps = inner.steps;
	return inner.result;
}

static way walk_loop(walk *w, const node *s)
{
	int step = s->kid[2]->value;
	int lo = s->kind == UNROLL ? (step > 0 ? -1 : 2) : 0, hi = step > 0 ? 3 : -2;
	if (s->kind == FOR) {
		lo = value(w, s->kid[0]) & 3;
		hi = value(w, s->kid[1]) & 7;
	}
	if (s->kind == WHILE) lo = step = 1;
	for (int i = lo;; i += step) {
		bool on = s->kind == WHILE ? value(w, s->kid[0]) && i < 5 : step > 0 ? i < hi : i > hi;
		if (!on) break;
		w->vars[s->value] = i;
		way r = walk_block(w, s->body);
		if (r == RETURN_WAY) return r;
		if (r == BREAK_WAY) return NEXT_WAY;
	}
	return NEXT_WAY;
}

static way walk_block(walk *w, const node *b)
{
	for (const node *s = b->body; s; s = s->next) {
		way r = NEXT_WAY;
		switch (s->kind) {
		case VAR:
		case SET: w->vars[s->value] = value(w, s->kid[0]); break;
		case ADD:
			w->vars[s->value] = (int32_t)((uint32_t)w->vars[s->value] + (uint32_t)value(w, s->kid[0]));
			break;
		case PRINT: put_to(w->out, value(w, s->kid[0])); break;
		case IF:
			if (value(w, s->kid[0]))
				r = walk_block(w, s->kid[1]);
			else if (s->kid[2])
				r = walk_block(w, s->kid[2]);
			break;
		case BREAK: return BREAK_WAY;
		case CONTINUE: return CONTINUE_WAY;
		case RETURN:
			if (s->kid[0]) w->result = value(w, s->kid[0]);
			return RETURN_WAY;
		default: r = walk_loop(w, s); break;
		}
		if (r != NEXT_WAY) return r;
	}
	return NEXT_WAY;
}

/* ---- the comparison ---- */

static void generate(program *p, uint64_t seed)
{
	*p = (program){.random = seed * 2 + 1};
	int functions = (int)roll(p, MAX_FNS);
	for (int k = 0; k < functions; k++) {
		function f = {.parameters = 1 + (int)roll(p, 2)};
		int first = p->nvars;
		p->nvisible = 0;
		p->budget = 12;
		for (int i = 0; i < f.parameters; i++) declare(p, false);
		f.body = block(p, 1, false, true);
		f.body->value = first;
		node **end = &f.body->body;
		while (*end) end = &(*end)->next;
		*end = make(p, RETURN);
		(*end)->kid[0] = expression(p, 0);
		say(p, "fn f%d(", k);
		for (int i = 0; i < f.parameters; i++)
			say(p, "%sv%d%s", i ? ", " : "", first + i, k % 2 ? ": i32" : "");
		say(p, ")%s ", k % 2 ? " -> i32" : "");
		p->fns[k] = f;
		say_block(p, f.body);
		p->nfns = k + 1;
	}
	p->nvisible = 0;
	p->budget = 40;
	int a = declare(p, false);
	declare(p, false);
	node *body = block(p, 0, false, false);
	node *more = block(p, 0, false, false);
	node **end = &body->body;
	while (*end) end = &(*end)->next;
	*end = more->body;
	body->value = a;
	say(p, "kernel k(v%d: i32, v%d: i32) ", a, a + 1);
	say_block(p, body);
	p->fns[MAX_FNS - 1].body = body;
}

static bool has_while(const program *p)
{
	for (int i = 0; i < p->nnodes; i++)
		if (p->nodes[i].kind == WHILE) return true;
	return false;
}

/* The passes that every target runs must keep what a program prints. */
static void run_passes(compiled *c)
{
	static bool (*const passes[])(pass_context *, ir_func *) = {
		pass_canonicalise, pass_canonicalise, pass_cse, pass_licm, pass_dce};
	jmp_buf recover;
	c->memory.recover = &recover;
	if (setjmp(recover)) fail_msg("out of memory");
	pass_context context = {.arena = &c->memory, .diags = &c->ds};
	text why = {.arena = &c->memory};
	for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
		assert_true(passes[i](&context, c->func));
		if (!ir_verify(c->func, &why)) fail_msg("after pass %zu: %s", i, why.at);
	}
	c->memory.recover = NULL;
}

static void compare(compiled *c, program *p, uint64_t seed, unsigned *printed)
{
	machine *m = test_malloc(sizeof *m), *expected = test_malloc(sizeof *expected);
	for (int32_t a = -2; a < 6; a += 2)
		for (int32_t b = -1; b < 5; b++) {
			int64_t out[MACHINE_OPERANDS];
			*m = *expected = (machine){0};
			m->value = test_calloc(c->func->nvalues, sizeof *m->value);
			m->value[c->func->body->args[0]->id] = a;
			m->value[c->func->body->args[1]->id] = b;
			run(m, c->func->body, out);
			test_free(m->value);
			const node *body = p->fns[MAX_FNS - 1].body;
			walk w = {.p = p, .out = expected};
			w.vars[body->value] = a;
			w.vars[body->value + 1] = b;
			walk_block(&w, body);
			*printed += (unsigned)expected->n;
			if (strcmp(m->out, expected->out) != 0)
				fail_msg("seed %u, a %d, b %d: printed %s, expected %s\n%s", (unsigned)seed, a, b,
					m->out, expected->out, p->text);
		}
	test_free(m);
	test_free(expected);
}

static void programs_agree(void **state)
{
	(void)state;
	program *p = test_malloc(sizeof *p);
	unsigned loops = 0, printed = 0;
	for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
		compiled c;
		generate(p, seed);
		loops += has_while(p);
		compile_text(&c, p->text);
		if (!c.func) fail_msg("seed %u: %s\n%s", (unsigned)seed, c.rendered.at, p->text);
		compare(&c, p, seed, &printed);
		run_passes(&c);
		compare(&c, p, seed, &printed);
		compiled_free(&c);
	}
	assert_true(loops > PROGRAMS / 10 && printed > 50 * PROGRAMS); /* the programs are not trivial */
	test_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_agree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
