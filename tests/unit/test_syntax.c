/* Lexer, grammar, recovery, spans, limits and file loading.  Expressions are compared in a form that this file prints
 * itself; groupings of operators come from the precedence table of the language page, written down once more below. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../compiler/lib/lib.h"
#include "../../compiler/syntax/syntax.h"
#include "grammar.h"

static arena memory;
static diags ds;
static names *ids;
static jmp_buf no_memory;

static int set_up(void **state)
{
	(void)state;
	memory.recover = &no_memory;
	memory.limit = 0;
	if (setjmp(no_memory)) return 1;
	diags_init(&ds, &memory);
	ids = names_new(&memory);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_free(&memory);
	return 0;
}

static source_file *file_of(const char *s, size_t n)
{
	source_file *f = ARENA_NEW(&memory, source_file);
	*f = (source_file){.name = "t.blk", .text = arena_strndup(&memory, s, n), .size = n};
	return f;
}

static ast *parse(const char *s)
{
	diags_init(&ds, &memory);
	return parse_file(&memory, &ds, ids, file_of(s, strlen(s)));
}

/* "2:3 E0110" for each diagnostic, comma separated. */
static const char *codes(void)
{
	text out = {.arena = &memory};
	text_puts(&out, "");
	for (const diag *d = ds.first; d; d = d->next) {
		source_position p = source_locate(&memory, d->at);
		text_printf(&out, "%s%u:%u E%04u", d == ds.first ? "" : ", ", p.line, p.column, d->code);
	}
	return out.at;
}

static const char *first_message(void)
{
	return ds.first ? ds.first->message : "";
}

/* ---- expressions as text ---- */

static void put(text *o, const ast *x)
{
	static const char *const open[AST_KIND_COUNT] = {[AST_CALL] = "call",
		[AST_INDEX] = "index",
		[AST_TUPLE] = "tuple",
		[AST_TERNARY] = "?",
		[AST_POINTER] = "ptr"};
	switch (x->kind) {
	case AST_INT: text_printf(o, "%llu", (unsigned long long)x->u64); return;
	case AST_FLOAT: text_printf(o, "%g", x->f64); return;
	case AST_BOOL: text_puts(o, x->u64 ? "true" : "false"); return;
	case AST_NONE: text_puts(o, "None"); return;
	case AST_INF: text_puts(o, "inf"); return;
	case AST_NAN: text_puts(o, "nan"); return;
	case AST_SLICE: text_puts(o, ":"); return;
	case AST_NAME: text_puts(o, x->text); return;
	case AST_STRING: text_printf(o, "\"%s\"", x->text); return;
	case AST_ARGUMENT:
		if (x->text) text_printf(o, "%s=", x->text);
		put(o, x->kids[0]);
		return;
	case AST_MEMBER:
		text_puts(o, "(. ");
		put(o, x->kids[0]);
		text_printf(o, " %s)", x->text);
		return;
	default: break;
	}
	text_printf(o, "(%s", open[x->kind] ? open[x->kind] : ast_op_text[x->op]);
	if (x->kind == AST_POINTER && x->flag) text_puts(o, " const");
	for (uint32_t i = 0; i < x->nkids; i++) {
		text_puts(o, " ");
		put(o, x->kids[i]);
	}
	text_puts(o, ")");
}

static const char *expression(const char *source)
{
	ast *file = parse(arena_printf(&memory, "const a = %s;", source));
	if (ds.errors) return codes();
	text out = {.arena = &memory};
	put(&out, file->kids[0]->kids[2]);
	return out.at;
}

static void expressions_have_their_structure(void **state)
{
	(void)state;
	static const char *const cases[][2] = {{"-a.b", "(- (. a b))"}, {"-a(1)[2]", "(- (index (call a 1) 2))"},
		{"- - ~!a", "(- (- (~ (! a))))"}, {"a - -b", "(- a (- b))"}, {"*T", "(ptr T)"},
		{"*const T", "(ptr const T)"}, {"*const f16[BM]", "(ptr const (index f16 BM))"},
		{"(*f16)[BM]", "(index (ptr f16) BM)"}, {"a * *b", "(* a (ptr b))"},
		{"x.to(*const f16)", "(call (. x to) (ptr const f16))"}, {"-a * b", "(* (- a) b)"},
		{"a * -b + c", "(+ (* a (- b)) c)"}, {"(a + b) * c", "(* (+ a b) c)"},
		{"a ? b : c ? d : e", "(? a b (? c d e))"}, {"a ? b ? c : d : e", "(? a (? b c d) e)"},
		{"a || b ? c + 1 : d && e", "(? (|| a b) (+ c 1) (&& d e))"}, {"()", "(tuple)"}, {"(a)", "a"},
		{"(a,)", "(tuple a)"}, {"(a, b,)", "(tuple a b)"}, {"[]", "(tuple)"}, {"[a]", "(tuple a)"},
		{"[a, (b, c),]", "(tuple a (tuple b c))"}, {"f()", "(call f)"},
		{"f(a, b = c, d = (1, 2),)", "(call f a b=c d=(tuple 1 2))"}, {"x[:, None]", "(index x : None)"},
		{"x[None, :, 0,]", "(index x None : 0)"}, {"t[0].shape[1]", "(index (. (index t 0) shape) 1)"},
		{"\"a\" \"b\" /* c */ \"d\"", "\"abd\""}, {"1.to(f32)", "(call (. 1 to) f32)"},
		{"0.5.to(f16)", "(call (. 0.5 to) f16)"},
		{"inf + nan - true / false", "(- (+ inf nan) (/ true false))"}, {"(a < b) < c", "(< (< a b) c)"},
		{"a < (b < c)", "(< a (< b c))"}, {"a < b == c", "1:11 E0112"},
		{"a < b && b < c", "(&& (< a b) (< b c))"}, {"grid + options * key", "(+ grid (* options key))"},
		{"where(in, config = cost)", "(call where in config=cost)"},
		{"1_000 + 0xff_FF + 0b1_01", "(+ (+ 1000 65535) 5)"}, {"18446744073709551615", "18446744073709551615"},
		{"0xffffffffffffffff", "18446744073709551615"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(expression(cases[i][0]), cases[i][1]);
}

static void operators_group_by_the_table(void **state)
{
	(void)state;
	static const struct {
		const char *op;
		int level; /* 0 is the tightest */
	} table[] = {{"*", 0}, {"/", 0}, {"%", 0}, {"+", 1}, {"-", 1}, {"<<", 2}, {">>", 2}, {"&", 3}, {"^", 4},
		{"|", 5}, {"<", 6}, {"<=", 6}, {">", 6}, {">=", 6}, {"==", 6}, {"!=", 6}, {"&&", 7}, {"||", 8}};
	enum { N = sizeof table / sizeof *table };
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			const char *p = table[i].op, *q = table[j].op;
			const char *got = expression(arena_printf(&memory, "a %s b %s c", p, q));
			if (table[i].level == 6 && table[j].level == 6)
				assert_string_equal(got, "1:11 E0112");
			else if (table[i].level <= table[j].level)
				assert_string_equal(got, arena_printf(&memory, "(%s (%s a b) c)", q, p));
			else
				assert_string_equal(got, arena_printf(&memory, "(%s a (%s b c))", p, q));
			got = expression(arena_printf(&memory, "a %s b ? c %s d : e %s f", p, q, p));
			assert_string_equal(got, arena_printf(&memory, "(? (%s a b) (%s c d) (%s e f))", p, q, p));
		}
}

/* ---- tokens and literals ---- */

static void every_token_kind(void **state)
{
	(void)state;
	const char *source =
		"name 1 2.5 \"s\" import const fn kernel autotune let var if else for while break continue return true "
		"false None inf nan in grid options cost key config where reset restore tolerance ( ) [ ] { } , ; : ? "
		". -> + - * / % << >> & | ^ ~ ! < <= > >= == != && || = += -= *= /= %= <<= >>= &= |= ^=";
	static const char kinds[] = "NAME INTEGER FLOAT STRING IMPORT CONST FN KERNEL AUTOTUNE LET VAR IF ELSE FOR "
				    "WHILE BREAK CONTINUE RETURN TRUE FALSE "
				    "NONE INF NAN IN GRID OPTIONS COST KEY CONFIG WHERE RESET RESTORE TOLERANCE LPAREN "
				    "RPAREN LBRACKET RBRACKET LBRACE "
				    "RBRACE COMMA SEMI COLON QUESTION DOT ARROW PLUS MINUS STAR SLASH PERCENT SHL SHR "
				    "AND OR XOR TILDE BANG LT LE GT GE EQ "
				    "NE LAND LOR ASSIGN PLUS_ASSIGN MINUS_ASSIGN STAR_ASSIGN SLASH_ASSIGN "
				    "PERCENT_ASSIGN SHL_ASSIGN SHR_ASSIGN AND_ASSIGN "
				    "OR_ASSIGN XOR_ASSIGN END ";
	text got = {.arena = &memory};
	lexer l;
	lexer_init(&l, &memory, &ds, file_of(source, strlen(source)));
	for (token t = {0}; t.kind != TOKEN_END;) {
		t = lexer_next(&l);
		assert_string_not_equal(token_text(t.kind), "something else");
		text_printf(&got, "%s ", token_kind_name(t.kind));
	}
	assert_string_equal(got.at, kinds);
	assert_int_equal(lexer_next(&l).kind, TOKEN_END);
	assert_int_equal(ds.errors, 0);
	assert_string_equal(token_text(0), "something else");
	assert_string_equal(token_text(10000), "something else");
}

static void tokens_are_dumped_with_positions(void **state)
{
	(void)state;
	text out = {.arena = &memory};
	const char *source = "\xef\xbb\xbf"
			     "a//x\n /* \xc3\xbc\n */ \"\xc3\xbc\\n\" <<=1";
	dump_tokens(&memory, &ds, ids, file_of(source, strlen(source)), &out);
	assert_string_equal(out.at, "1:2 NAME \"a\"\n3:5 STRING \"\\\"\\xc3\\xbc\\\\n\\\"\"\n3:11 SHL_ASSIGN \"<<=\"\n"
				    "3:14 INTEGER \"1\"\n3:15 END\n");
	assert_int_equal(ds.errors, 0);
}

static void floats_are_exact(void **state)
{
	(void)state;
	static const struct {
		const char *source;
		double value;
	} cases[] = {{"1.0", 1}, {"1e-5", 1e-5}, {"2.5e3", 2500}, {"1_0.2_5", 10.25}, {"0.1", 0x1.999999999999ap-4},
		{"1.7976931348623157e308", 0x1.fffffffffffffp1023}, {"4.9e-324", 0x1p-1074}, {"0.0", 0}, {"0e999", 0},
		{"1E+2", 100}, {"3.4028234663852886e38", 0x1.fffffep127}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ast *file = parse(arena_printf(&memory, "const a = %s;", cases[i].source));
		assert_int_equal(ds.errors, 0);
		const ast *x = file->kids[0]->kids[2];
		assert_int_equal(x->kind, AST_FLOAT);
		assert_memory_equal(&x->f64, &cases[i].value, sizeof(double));
	}
}

static void strings_are_decoded(void **state)
{
	(void)state;
	ast *file = parse("const a = \"\\n\\t\\\\\\\"\\x00\\xfF\" \"\" \"// /* \xc3\xbc\";");
	assert_string_equal(codes(), "");
	const ast *x = file->kids[0]->kids[2];
	static const char want[] = "\n\t\\\"\0\xff// /* \xc3\xbc";
	assert_int_equal(x->ntext, sizeof want - 1);
	assert_memory_equal(x->text, want, sizeof want);
}

/* ---- statements and declarations ---- */

static const char *dumped(const ast *x)
{
	text out = {.arena = &memory};
	dump_ast(x, &out);
	return out.at;
}

static void statements_have_their_structure(void **state)
{
	(void)state;
	ast *file = parse("fn f() {\n"
			  "const N: i32 = 1;\n"
			  "let (a, b): (i32, f32) = g();\n"
			  "var c = 2;\n"
			  "(a, c) = h();\n"
			  "c <<= 3;\n"
			  "g();\n"
			  "{ return; }\n"
			  "if a { break; } else if b { continue; } else { }\n"
			  "for in in range(3) { }\n"
			  "while true { return 1, }\n"
			  "}\n");
	assert_string_equal(codes(), "11:22 E0110");
	file = parse("fn f() {\n"
		     "const N: i32 = 1;\n"
		     "let (a, b): (i32, f32) = g();\n"
		     "var c = 2.5;\n"
		     "(a, c) = h();\n"
		     "c <<= 3;\n"
		     "{ return; }\n"
		     "if a { break; } else if b { continue; } else { }\n"
		     "for in in range(3) { }\n"
		     "while true { return \"x\"; }\n"
		     "}\n");
	assert_string_equal(codes(), "");
	assert_string_equal(dumped(file), "file @1:1\n"
					  "  fn f @1:4\n"
					  "    list @1:5\n"
					  "    -\n"
					  "    block @1:8\n"
					  "      bind const @2:7\n"
					  "        name N @2:7\n"
					  "        name i32 @2:10\n"
					  "        int 1 @2:16\n"
					  "      bind let @3:5\n"
					  "        tuple @3:5\n"
					  "          name a @3:6\n"
					  "          name b @3:9\n"
					  "        tuple @3:13\n"
					  "          name i32 @3:14\n"
					  "          name f32 @3:19\n"
					  "        call @3:26\n"
					  "          name g @3:26\n"
					  "      bind var @4:5\n"
					  "        name c @4:5\n"
					  "        -\n"
					  "        float 2.5 @4:9\n"
					  "      assign= @5:8\n"
					  "        tuple @5:1\n"
					  "          name a @5:2\n"
					  "          name c @5:5\n"
					  "        call @5:10\n"
					  "          name h @5:10\n"
					  "      assign <<= @6:3\n"
					  "        name c @6:1\n"
					  "        int 3 @6:7\n"
					  "      block @7:1\n"
					  "        return @7:3\n"
					  "          -\n"
					  "      if @8:1\n"
					  "        name a @8:4\n"
					  "        block @8:6\n"
					  "          break @8:8\n"
					  "        if @8:22\n"
					  "          name b @8:25\n"
					  "          block @8:27\n"
					  "            continue @8:29\n"
					  "          block @8:46\n"
					  "      for in @9:5\n"
					  "        call @9:11\n"
					  "          name range @9:11\n"
					  "          argument @9:17\n"
					  "            int 3 @9:17\n"
					  "        block @9:20\n"
					  "      while @10:1\n"
					  "        bool true @10:7\n"
					  "        block @10:12\n"
					  "          return @10:14\n"
					  "            string \"x\" @10:21\n");
}

static void declarations_have_their_structure(void **state)
{
	(void)state;
	ast *file = parse("import \"a\" \".blk\";\n"
			  "const X: f32 = 1.5;\n"
			  "fn f(x, const T: type = f32,) -> T { }\n"
			  "kernel k(p: *const f32) cost(flops = 1) grid(1, 2,) options(num_warps = 8,) "
			  "requires (p), \"so\" requires q { }\n"
			  "autotune k key(n, m,) {\n"
			  "A: [1, 2,], where: [3];\n"
			  "where A < 2;\n"
			  "reset a, b; restore c,;\n"
			  "tolerance 1e-2;\n"
			  "config(A = 1, num_warps = 2,);\n"
			  "}\n"
			  "autotune k {}\n");
	assert_string_equal(codes(), "");
	assert_string_equal(dumped(file), "file @1:1\n"
					  "  import \"a.blk\" @1:8\n"
					  "  bind const @2:7\n"
					  "    name X @2:7\n"
					  "    name f32 @2:10\n"
					  "    float 1.5 @2:16\n"
					  "  fn f @3:4\n"
					  "    list @3:5\n"
					  "      parameter x @3:6\n"
					  "        -\n"
					  "        -\n"
					  "      parameter T const @3:15\n"
					  "        name type @3:18\n"
					  "        name f32 @3:25\n"
					  "    name T @3:34\n"
					  "    block @3:36\n"
					  "  kernel k @4:8\n"
					  "    list @4:9\n"
					  "      parameter p @4:10\n"
					  "        pointer const @4:13\n"
					  "          name f32 @4:20\n"
					  "        -\n"
					  "    list @4:41\n"
					  "      int 1 @4:46\n"
					  "      int 2 @4:49\n"
					  "    list @4:53\n"
					  "      argument num_warps @4:61\n"
					  "        int 8 @4:73\n"
					  "    list @4:25\n"
					  "      argument flops @4:30\n"
					  "        int 1 @4:38\n"
					  "    list @4:77\n"
					  "      requires \"so\" @4:77\n"
					  "        name p @4:87\n"
					  "      requires @4:96\n"
					  "        name q @4:105\n"
					  "    block @4:107\n"
					  "  autotune k @5:10\n"
					  "    list @5:12\n"
					  "      name n @5:16\n"
					  "      name m @5:19\n"
					  "    axis A @6:1\n"
					  "      int 1 @6:5\n"
					  "      int 2 @6:8\n"
					  "    axis where @6:13\n"
					  "      int 3 @6:21\n"
					  "    where @7:1\n"
					  "      binary < @7:9\n"
					  "        name A @7:7\n"
					  "        int 2 @7:11\n"
					  "    reset @8:1\n"
					  "      name a @8:7\n"
					  "      name b @8:10\n"
					  "    restore @8:13\n"
					  "      name c @8:21\n"
					  "    tolerance @9:1\n"
					  "      float 0.01 @9:11\n"
					  "    config @10:1\n"
					  "      argument A @10:8\n"
					  "        int 1 @10:12\n"
					  "      argument num_warps @10:15\n"
					  "        int 2 @10:27\n"
					  "  autotune k @12:10\n"
					  "    -\n");
}

static const ast *find(const ast *x, ast_kind kind)
{
	if (!x || x->kind == kind) return x;
	for (uint32_t i = 0; i < x->nkids; i++) {
		const ast *found = find(x->kids[i], kind);
		if (found) return found;
	}
	return NULL;
}

static void assert_span(span s, const char *want)
{
	assert_non_null(s.file);
	assert_string_equal(arena_strndup(&memory, s.file->text + s.begin, s.end - s.begin), want);
}

static void spans_are_precise(void **state)
{
	(void)state;
	static const struct {
		const char *source;
		ast_kind kind;
		const char *at, *mark;
	} cases[] = {{"const a = (b + c) * d;", AST_BINARY, "(b + c) * d", "*"},
		{"const a = ((b + c));", AST_BINARY, "b + c", "+"}, {"const a = -(b);", AST_UNARY, "-(b)", "-"},
		{"const a = (c) ? b : (d);", AST_TERNARY, "(c) ? b : (d)", "?"},
		{"const a = * const (b);", AST_POINTER, "* const (b)", "*"},
		{"const a = (f)(1, 2);", AST_CALL, "(f)(1, 2)", "f"},
		{"const a = x.m.f(1);", AST_CALL, "x.m.f(1)", "f"},
		{"const a = f(n = (1));", AST_ARGUMENT, "n = (1)", "n"},
		{"const a = f((1 + 2));", AST_ARGUMENT, "(1 + 2)", "1 + 2"},
		{"const a = (x).m;", AST_MEMBER, "(x).m", "m"},
		{"const a = x[ :, 1 ];", AST_INDEX, "x[ :, 1 ]", "[ :, 1 ]"},
		{"const a = x[ : ];", AST_SLICE, ":", ":"}, {"const a = (1, 2);", AST_TUPLE, "(1, 2)", "(1, 2)"},
		{"const a = \"a\"  \"b\";", AST_STRING, "\"a\"  \"b\"", "\"a\"  \"b\""},
		{"const a = 1;", AST_BIND, "const a = 1", "a"},
		{"fn f() { let (a, b) = c; }", AST_BIND, "let (a, b) = c", "(a, b)"},
		{"fn f() { a += (b); }", AST_ASSIGN, "a += (b)", "+="},
		{"fn f() { (a)(b); }", AST_EXPRESSION, "(a)(b)", "a"},
		{"fn f() { return (a); }", AST_RETURN, "return (a)", "return"},
		{"fn f() { if a { } else if b { } else { } }", AST_IF, "if a { } else if b { } else { }", "if"},
		{"fn f() { for i in r { } }", AST_FOR, "for i in r { }", "i"},
		{"fn f() { while a { } }", AST_WHILE, "while a { }", "while"},
		{"fn f() { break; }", AST_BREAK, "break", "break"}, {"fn f() { }", AST_BLOCK, "{ }", "{"},
		{"fn f() { }", AST_FN, "fn f() { }", "f"},
		{"fn f(const a: T = 1) { }", AST_PARAMETER, "const a: T = 1", "a"},
		{"import \"a\" ;", AST_IMPORT, "import \"a\"", "\"a\""},
		{"kernel k() grid(1) { } ", AST_KERNEL, "kernel k() grid(1) { }", "k"},
		{"autotune k { } ", AST_AUTOTUNE, "autotune k { }", "k"},
		{"autotune k { A : [1]; }", AST_AXIS, "A : [1]", "A"},
		{"autotune k { config(A = 1); }", AST_CONFIG, "config(A = 1", "config"},
		{"autotune k { where a; }", AST_WHERE, "where a", "where"},
		{"autotune k { reset a, b; }", AST_RESET, "reset a, b", "reset"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const ast *x = find(parse(cases[i].source), cases[i].kind);
		assert_string_equal(codes(), "");
		assert_non_null(x);
		assert_span(x->at, cases[i].at);
		assert_span(x->mark, cases[i].mark);
	}
	const ast *k = find(parse("kernel k(a: T) grid(1) cost(f = 2) { }"), AST_KERNEL);
	assert_span(k->kids[1]->at, "grid(1)");
	assert_span(k->kids[1]->mark, "grid");
	assert_null(k->kids[2]);
	assert_span(k->kids[3]->mark, "cost");
}

static void names_are_interned(void **state)
{
	(void)state;
	ast *file = parse("const abc = abc + abcd;");
	const ast *bind = file->kids[0], *sum = bind->kids[2];
	assert_ptr_equal(bind->kids[0]->text, sum->kids[0]->text);
	assert_ptr_not_equal(sum->kids[0]->text, sum->kids[1]->text);
	assert_ptr_equal(sum->kids[1]->text, names_intern(ids, "abcdef", 4));
	const char *first[1000];
	for (int i = 0; i < 1000; i++) {
		char s[16];
		int n = snprintf(s, sizeof s, "n%d", i);
		first[i] = names_intern(ids, s, (size_t)n);
		assert_string_equal(first[i], s);
	}
	for (int i = 0; i < 1000; i++) assert_ptr_equal(names_intern(ids, first[i], strlen(first[i])), first[i]);
}

/* ---- errors ---- */

static void errors_have_place_and_code(void **state)
{
	(void)state;
	static const char *const cases[][2] = {{"const a = 1 @ 2;", "1:13 E0101"},
		{"const a = 'x';", "1:11 E0101, 1:13 E0101"}, {"\xc3\xbc;", "1:1 E0101"},
		{"const a\xff = 1;", "1:8 E0102"}, {"// \xff \xff\n// \xff", "1:4 E0102, 2:4 E0102"},
		{"const a = 1; /* x", "1:14 E0104"}, {"fn f() { /* x }", "1:10 E0104"},
		{"const a = \"x;\nconst b = 1;", "1:11 E0105"}, {"const a = \"\\q\\x1g\";", "1:12 E0106, 1:14 E0106"},
		{"const a = 1_;", "1:11 E0107"}, {"const a = 0x;", "1:11 E0107"}, {"const a = 0b12;", "1:11 E0107"},
		{"const a = 1.;", "1:11 E0107"}, {"const a = .5;", "1:11 E0107"}, {"const a = 1.f;", "1:11 E0107"},
		{"const a = 1.5f;", "1:11 E0107"}, {"const a = 1e;", "1:11 E0107"}, {"const a = 12u;", "1:11 E0107"},
		{"const a = 007;", "1:11 E0107"}, {"const a = 1__0;", "1:11 E0107"}, {"const a = 1.e5;", "1:11 E0107"},
		{"const a = 18446744073709551616;", "1:11 E0108"}, {"const a = 0x1_0000_0000_0000_0000;", "1:11 E0108"},
		{"const a = 1e309;", "1:11 E0109"}, {"const a = 1e-400;", "1:11 E0109"},
		{"const a = 1 1;", "1:13 E0110"}, {"const a = ;", "1:11 E0110"}, {"const a 1;", "1:9 E0110"},
		{"const a = 1", "1:12 E0110"}, {"a = 1;", "1:1 E0110"}, {"fn f() { let a = 1 }", "1:20 E0110"},
		{"fn f() { x++; }", "1:12 E0110"}, {"fn f() { x[]; }", "1:12 E0110"},
		{"fn f() { x[1:2]; }", "1:13 E0110"}, {"fn f() { f(, 1); }", "1:12 E0110"},
		{"fn f() { (,); }", "1:11 E0110"}, {"fn f() { f(:); }", "1:12 E0110"},
		{"kernel f() grid() {}", "1:17 E0110"}, {"fn f() grid(1) {}", "1:8 E0110"},
		{"fn f() { if a {} else b; }", "1:23 E0110"}, {"fn f() { for i of r {} }", "1:16 E0110"},
		{"fn f() {", "1:9 E0111"}, {"const a = (1;", "1:13 E0111"}, {"const a = f(1];", "1:14 E0111"},
		{"const a = 1);", "1:12 E0111"}, {"}", "1:1 E0111"}, {"fn f() { if a {\nfn g() { }", "2:1 E0111"},
		{"const a = 1 <= 2 < 3;", "1:11 E0112"}, {"kernel k() grid(1) grid(2) {}", "1:20 E0113"},
		{"kernel k() cost(a = 1) options(b = 1) cost(c = 1) options(d = 1) {}", "1:39 E0113, 1:51 E0113"},
		{"autotune k key(a) key(b) {}", "1:19 E0113"}, {"fn f() { 1 = 2; }", "1:10 E0114"},
		{"fn f() { (a, 1) = 2; }", "1:10 E0114"}, {"fn f() { (a, b) += 2; }", "1:10 E0114"},
		{"fn f() { a.b = 2; () = 3; }", "1:10 E0114, 1:19 E0114"}, {"const if = 1;", "1:7 E0115"},
		{"fn let() {}", "1:4 E0115"}, {"const a = f(x = 1, 2, 3);", "1:20 E0116"}, {"import a;", "1:8 E0110"},
		{"fn f() { let (a, 1) = b; }", "1:18 E0110"}, {"autotune k { A: 1; }", "1:17 E0110"},
		{"autotune k { A: []; }", "1:18 E0110"}, {"autotune k { config(1); }", "1:21 E0110"},
		{"autotune k { let a = 1; }", "1:14 E0110"},
		{"kernel k(x y) grid(1) { a b; { c d; } } fn f(1) { e f; }",
			"1:12 E0110, 1:27 E0110, 1:34 E0110, 1:46 E0110, 1:53 E0110"},
		{"kernel k(x y); { a b; } fn f() { c d; }", "1:12 E0110, 1:36 E0110"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ast *file = parse(cases[i][0]);
		assert_non_null(file);
		assert_int_equal(file->kind, AST_FILE);
		if (strcmp(codes(), cases[i][1]) != 0) print_error("source: %s\n", cases[i][0]);
		assert_string_equal(codes(), cases[i][1]);
	}
	static const char nul[] = "const a\0= 1; // \0\n\0const b = 2;";
	diags_init(&ds, &memory);
	ast *file = parse_file(&memory, &ds, ids, file_of(nul, sizeof nul - 1));
	assert_string_equal(codes(), "1:8 E0103, 2:1 E0103");
	assert_int_equal(file->nkids, 2);
}

static void messages_use_human_words(void **state)
{
	(void)state;
	static const char *const cases[][2] = {{"const a = 1 1;", "expected ';', found '1'"},
		{"const a = ;", "expected an expression, found ';'"}, {"1", "expected a declaration, found '1'"},
		{"fn f() { ) }", "')' closes nothing; expected a statement or '}'"},
		{"fn f(1) {}", "expected a parameter or ')', found '1'"},
		{"kernel f() { } kernel", "expected a name, found the end of the file"},
		{"kernel f() 1", "expected 'grid', 'options', 'cost', 'requires' or '{', found '1'"},
		{"fn f() { x 3; }", "expected '=' or ';', found '3'"},
		{"fn f() { g(1 2); }", "expected ',' or ')', found '2'"},
		{"fn f() { x[1 \"a\"]; }", "expected ',' or ']', found a string"},
		{"fn f() { x[,]; }", "expected an expression or ':', found ','"},
		{"fn f() { if a b {} }", "expected '{', found 'b'"},
		{"autotune k { 1; }",
			"expected an axis, 'config', 'where', 'reset', 'restore', 'scratch', 'tolerance', "
			"'order', 'try' or '}', found '1'"},
		{"autotune k ;", "expected '(', 'key' or '{', found ';'"},
		{"import 1;", "expected a string, found '1'"},
		{"fn f() { let 1; }", "expected a name, '(' or '[', found '1'"},
		{"fn f() { for 1 in x {} }", "expected a name, found '1'"},
		{"const while = 1;", "'while' is a reserved word and cannot be a name"},
		{"fn f() { let a = (1; }", "expected ',' or ')', found ';'"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		parse(cases[i][0]);
		assert_string_equal(first_message(), cases[i][1]);
	}
	parse("fn f() {\n\tlet a = g(1;\n}");
	assert_non_null(ds.first->labels);
	assert_string_equal(ds.first->labels->text, "this '(' is not closed");
	parse("fn f() {\n\tlet a = 1 // x\n\tlet b = 2;\n}");
	assert_string_equal(codes(), "3:2 E0110");
	assert_string_equal(ds.first->labels->text, "a ';' may be missing here");
	static const char *const hints[][2] = {{"fn f() { if a = b {} }", "equality is written =="},
		{"fn f() { x++; }", "there is no ++; write x += 1"},
		{"fn f() { x--; }", "there is no --; write x -= 1"},
		{"fn f() { if a {} elif b {} }", "'elif' is written else if"},
		{"const a = b and c;", "'and' is written &&"},
		{"const a = b == 1 & c < 2;", "'&' binds tighter than a comparison: (a == b) & (c < d)"},
		{"const a = b < 1 + 2 < c;", "join two comparisons: ... < 1 + 2 && 1 + 2 < ... (& for tiles)"},
		{"fn f() { int a = 3; }",
			"a declaration starts with 'let' or 'var', and its type follows the name: let n: i32 = 1"},
		{"fn f() { let a, b = g(); }", "several names stand in parentheses: let (a, b) = .."},
		{"fn f() { if (a) b(); }", "a body stands in braces: { .. }"},
		{"fn f() { for i in range(3) return; }", "a body stands in braces: { .. }"},
		{"fn f(x) return x;", "a body stands in braces: { .. }"},
		{"fn f() { ; }", "there is no empty statement; remove the ';'"},
		{"fn f() { };", "no ';' follows a body; remove it"}};
	for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
		parse(hints[i][0]);
		assert_non_null(ds.first->hint);
		assert_string_equal(ds.first->hint, hints[i][1]);
	}
}

static void independent_errors_are_all_reported(void **state)
{
	(void)state;
	ast *file = parse("const a = 1 +;\n"
			  "kernel k(x: *f32) {\n"
			  "\tlet b = (1;\n"
			  "\tlet c = 2\n"
			  "\tif c { let d = ]; let ok = 1; } else { e f; }\n"
			  "\tfor i range(3) { ignored ignored; }\n"
			  "\twhile c { c += ; }\n"
			  "\tlet fine = 3;\n"
			  "}\n"
			  "fn g( { in body; }\n"
			  "const z = 4;\n"
			  "autotune k { A: [1, 2; B: [3]; 5; where x; }\n"
			  "fn last() { return 1; }\n");
	assert_string_equal(codes(), "1:14 E0110, 3:12 E0111, 5:2 E0110, 5:17 E0111, 5:43 E0110, 6:8 E0110, 7:17 "
				     "E0110, 10:7 E0111, 10:12 E0110, "
				     "12:22 E0111, 12:32 E0110");
	assert_int_equal(file->nkids, 4); /* kernel k, const z, autotune k, fn last */
	const ast *body = file->kids[0]->kids[5];
	assert_int_equal(body->nkids, 4); /* let c, if, while, let fine */
	assert_string_equal(body->kids[3]->kids[0]->text, "fine");
	assert_int_equal(file->kids[2]->nkids, 3); /* key, B, where */
	/* one error a statement, of many */
	text many = {.arena = &memory};
	text_puts(&many, "fn f() {\n");
	for (int i = 0; i < 50; i++) text_puts(&many, "let a = 1 1;\nlet b = 2;\n");
	text_puts(&many, "}\n");
	file = parse(many.at);
	assert_int_equal(ds.errors, 50);
	assert_int_equal(file->kids[0]->kids[2]->nkids, 50);
}

/* ---- limits ---- */

static const char *repeated(
	const char *before, const char *part, int n, const char *middle, const char *close, const char *after)
{
	text t = {.arena = &memory};
	text_puts(&t, before);
	for (int i = 0; i < n; i++) text_puts(&t, part);
	text_puts(&t, middle);
	for (int i = 0; i < n; i++) text_puts(&t, close);
	text_puts(&t, after);
	return t.at;
}

static uint32_t height(const ast *x)
{
	uint32_t h = 0;
	for (uint32_t i = 0; x && i < x->nkids; i++) {
		uint32_t k = height(x->kids[i]);
		if (k > h) h = k;
	}
	return h + 1;
}

static void nesting_is_limited(void **state)
{
	(void)state;
	static const struct {
		const char *before, *part, *middle, *close, *after;
		int used; /* levels besides the repeated ones */
	} cases[] = {{"const a = ", "(", "1", ")", ";", 0}, {"const a = ", "[", "1", "]", ";", 0},
		{"const a = ", "f(", "1", ")", ";", 0}, {"const a = ", "x[", "1", "]", ";", 0},
		{"const a = ", "-", "1", "", ";", 0}, {"const a = ", "*", "T", "", ";", 0},
		{"const a = ", "*const ", "T", "", ";", 0}, {"const a = ", "1 ? 2 : ", "3", "", ";", 0},
		{"const a = ", "1 ? ", "2", ": 3", ";", 0}, {"fn f() ", "{", "", "}", "", 0},
		{"fn f() {", "if a {", "", "}", "}", 1}, {"fn f() {", "for i in r {", "", "}", "}", 1},
		{"fn f() { let a = ", "f(", "1", ")", "; }", 1}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int most = AST_NESTING - cases[i].used;
		parse(repeated(cases[i].before, cases[i].part, most, cases[i].middle, cases[i].close, cases[i].after));
		assert_string_equal(codes(), "");
		for (int n = most + 1; n < 200000; n = n * 8) {
			ast *file = parse(repeated(cases[i].before, cases[i].part, n, cases[i].middle, cases[i].close,
				arena_printf(&memory, "%s const b = 1 1;", cases[i].after)));
			assert_int_equal(ds.errors, 2);
			assert_int_equal(ds.first->code, 701);
			assert_int_equal(ds.first->next->code, 110);
			assert_true(height(file) < 3000);
		}
	}
	/* what stands side by side does not count */
	parse(repeated(
		"fn f() {", "a = (-b ? c : d, -1); { } if a { } else { } f(-1 ? 2 : 3, -4)[5];", 500, "", "", "}"));
	assert_string_equal(codes(), "");
	parse(repeated("const a = -1", " + -1 * (2)", 500, "", "", ";"));
	assert_string_equal(codes(), "");
}

static void chains_are_limited(void **state)
{
	(void)state;
	static const struct {
		const char *before, *part, *after;
	} cases[] = {{"const a = 1", " + 1", ";"}, {"const a = 1", " - 1 * 2", ";"}, {"const a = x", ".y", ";"},
		{"const a = x", "()", ";"}, {"const a = x", "[0]", ";"}, {"const a = x", " && y", ";"},
		{"fn f() { if a {}", " else if b {}", "}"}, {"const a = (1", " + 1", ") * 2 + 3;"},
		{"const a = f(1", " + 1", ", 2);"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		parse(repeated(cases[i].before, cases[i].part, 1900, "", "", cases[i].after));
		assert_string_equal(codes(), "");
		for (int n = 2500; n <= 100000; n *= 40) {
			ast *file = parse(repeated(cases[i].before, cases[i].part, n, "", "",
				arena_printf(&memory, "%s const b = 1 1;", cases[i].after)));
			assert_int_equal(ds.errors, 2);
			assert_int_equal(ds.first->code, 703);
			assert_int_equal(height(file), file->height);
			assert_true(file->height < AST_HEIGHT + 2 * AST_NESTING);
		}
	}
	/* 256 parentheses, each around a long chain: the height is bounded all the same */
	const char *chain = repeated(")", " + 1", 20, "", "", "");
	ast *file = parse(repeated("const a = ", "(", 256, "1", chain, ";"));
	assert_int_equal(ds.errors, 1);
	assert_int_equal(ds.first->code, 703);
	assert_true(file->height <= AST_HEIGHT + 2);
	/* many elements are no chain */
	file = parse(repeated("const a = [", "1, ", 100000, "", "", "];"));
	assert_string_equal(codes(), "");
	assert_int_equal(file->kids[0]->kids[2]->nkids, 100000);
	file = parse(repeated("const a = ", "\"x\" ", 100000, "", "", ";"));
	assert_int_equal(file->kids[0]->kids[2]->ntext, 100000);
}

static void large_files_are_refused(void **state)
{
	(void)state;
	size_t n = SOURCE_LIMIT + 1;
	char *s = malloc(n);
	assert_non_null(s);
	memset(s, ' ', n);
	memcpy(s, "const a = 1;", 12);
	ast *file = parse_file(&memory, &ds, ids, file_of(s, n));
	assert_string_equal(codes(), "1:1 E0702");
	assert_int_equal(file->nkids, 0);
	diags_init(&ds, &memory);
	file = parse_file(&memory, &ds, ids, file_of(s, n - 1));
	assert_string_equal(codes(), "");
	assert_int_equal(file->nkids, 1);
	free(s);
}

/* ---- robustness ---- */

static const char *const programs[] = {"tests/golden/good/syntax_everything.blk", "examples/softmax/softmax.blk",
	"examples/layer_norm/layer_norm.blk"};

static char *read_program(const char *name, size_t *n)
{
	FILE *f = fopen(name, "rb");
	if (!f) return NULL;
	char *s = arena_alloc(&memory, 1 << 16);
	*n = fread(s, 1, (1 << 16) - 1, f);
	fclose(f);
	return s;
}

/* Parses n bytes that end where a sanitizer sees one read too many. */
static void try(const char *s, size_t n)
{
	arena here = {.recover = &no_memory};
	diags found;
	diags_init(&found, &here);
	char *copy = malloc(n + 1);
	assert_non_null(copy);
	memcpy(copy, s, n);
	copy[n] = 0;
	source_file f = {.name = "t.blk", .text = copy, .size = n};
	ast *file = parse_file(&here, &found, names_new(&here), &f);
	assert_int_equal(file->kind, AST_FILE);
	for (const diag *d = found.first; d; d = d->next) assert_true(d->at.begin <= d->at.end && d->at.end <= n);
	text out = {.arena = &here};
	diag_render_text(&found, &out);
	dump_ast(file, &out);
	arena_free(&here);
	free(copy);
}

static void every_prefix_parses(void **state)
{
	(void)state;
	size_t tried = 0;
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		size_t n;
		char *s = read_program(programs[i], &n);
		if (!s) continue; /* run from another folder */
		diags_init(&ds, &memory);
		parse_file(&memory, &ds, ids, file_of(s, n));
		assert_string_equal(codes(), "");
		for (size_t k = 0; k < n; k++) try(s, k);
		tried++;
	}
	if (!tried) skip();
}

static void mutated_programs_parse(void **state)
{
	(void)state;
	size_t n;
	char *s = read_program(programs[0], &n);
	if (!s) skip();
	static const char *const parts[] = {"(", ")", "[", "]", "{", "}", ";", ",", "?", ":", "-", "let ", "kernel ",
		"else ", "\"", "/*", "\xff", "", "where", "1e", "=", "autotune k {"};
	uint32_t r = 12345;
	char *changed = arena_alloc(&memory, n + 400);
	for (int round = 0; round < 1000; round++) {
		size_t m = n;
		memcpy(changed, s, n);
		for (int edits = 0; edits < 1 + round % 20; edits++) {
			r = r * 1664525u + 1013904223u;
			const char *part = parts[(r >> 8) % (sizeof parts / sizeof *parts)];
			size_t at = (r >> 13) % m, length = strlen(part), drop = (r >> 5) % 3;
			if (at + drop > m) drop = 0;
			memmove(changed + at + length, changed + at + drop, m - at - drop);
			memcpy(changed + at, part, length);
			m += length - drop;
		}
		try(changed, m);
	}
}

/* Memory that runs out at any allocation leads to the recovery point, and what was taken can be freed. */
static void memory_may_run_out(void **state)
{
	(void)state;
	static const char source[] = "kernel k(x: *f32) grid(1) { let a = \"x\" \"y\"; a < b < c; let b = 1.5 1; }";
	static jmp_buf out;
	static volatile bool done; /* static: survives the jump */
	static volatile size_t limit;
	done = false;
	for (limit = 64; !done; limit += limit < 4096 || limit > 250000 ? 64 : 16384) {
		static arena here;
		here = (arena){.limit = limit, .recover = &out};
		if (setjmp(out) == 0) {
			diags found;
			diags_init(&found, &here);
			source_file f = {.name = "t.blk", .text = source, .size = sizeof source - 1};
			parse_file(&here, &found, names_new(&here), &f);
			text t = {.arena = &here};
			diag_render_text(&found, &t);
			diag_render_json(&found, &t);
			assert_int_equal(found.errors, 2);
			done = true;
		}
		arena_free(&here);
	}
}

/* ---- files ---- */

static char folder[64];

static const char *in_folder(const char *name)
{
	return arena_printf(&memory, "%s/%s", folder, name);
}

static void write_file(const char *name, const char *content)
{
	FILE *f = fopen(in_folder(name), "wb");
	assert_non_null(f);
	fputs(content, f);
	assert_int_equal(fclose(f), 0);
}

static void remove_folder(void)
{
	static const char *const made[] = {
		"main.blk", "sub/a.blk", "sub/b.blk", "inc/c.blk", "link.blk", "big.blk", "empty.blk", "sub/main.blk"};
	for (size_t i = 0; i < sizeof made / sizeof *made; i++) unlink(in_folder(made[i]));
	rmdir(in_folder("sub"));
	rmdir(in_folder("inc"));
	assert_int_equal(rmdir(folder), 0);
}

static void files_are_found_once(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/blk-syntax-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(mkdir(in_folder("sub"), 0700), 0);
	assert_int_equal(mkdir(in_folder("inc"), 0700), 0);
	write_file("main.blk", "import \"sub/a.blk\";");
	write_file("sub/a.blk", "a");
	write_file("sub/b.blk", "bb");
	write_file("inc/c.blk", "ccc");
	write_file("empty.blk", "");
	assert_int_equal(symlink("sub/b.blk", in_folder("link.blk")), 0);
	const char *include[] = {in_folder("sub"), in_folder("inc")};
	source_set set = {.arena = &memory, .include_paths = include, .ninclude_paths = 2};
	span here = {0};
	source_file *m = source_add(&set, &ds, here, in_folder("main.blk"), NULL, 0);
	assert_non_null(m);
	assert_string_equal(m->text, "import \"sub/a.blk\";");
	source_file *a = source_import(&set, &ds, m, "sub/a.blk", here),
		    *b = source_import(&set, &ds, a, "b.blk", here);
	assert_string_equal(a->name, in_folder("sub/a.blk"));
	assert_string_equal(a->text, "a");
	assert_string_equal(b->text, "bb");
	assert_int_equal(b->index, 2);
	assert_ptr_equal(source_import(&set, &ds, m, "sub/../sub//b.blk", here), b);
	assert_ptr_equal(source_import(&set, &ds, m, "link.blk", here), b);
	assert_ptr_equal(source_import(&set, &ds, m, "b.blk", here), b); /* by the include path */
	assert_ptr_equal(source_import(&set, &ds, a, "../main.blk", here), m);
	assert_ptr_equal(source_import(&set, &ds, m, in_folder("sub/a.blk"), here), a);
	source_file *c = source_import(&set, &ds, m, "c.blk", here);
	assert_string_equal(c->name, in_folder("inc/c.blk"));
	source_file *e = source_import(&set, &ds, m, "empty.blk", here);
	assert_int_equal(e->size, 0);
	assert_string_equal(e->text, "");
	assert_int_equal(ds.errors, 0);
	assert_int_equal(set.files.n, 5);
	if (lib_sources[0].name) {
		source_file *lib = source_import(&set, &ds, m, lib_sources[0].name, here);
		assert_non_null(lib);
		assert_ptr_equal(source_import(&set, &ds, lib, lib_sources[0].name, here), lib);
		assert_int_equal(lib->size, lib_sources[0].bytes);
	}
	/* text in memory that stands for a file is that file */
	source_set other = {.arena = &memory};
	source_file *memory_main = source_add(&other, &ds, here, in_folder("main.blk"), "x", 1);
	assert_string_equal(memory_main->text, "x");
	assert_ptr_equal(source_import(&other, &ds, source_import(&other, &ds, memory_main, "sub/a.blk", here),
				 "../main.blk", here),
		memory_main);
	remove_folder();
}

static void unreadable_files_are_diagnosed(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/blk-syntax-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(mkdir(in_folder("sub"), 0700), 0);
	write_file("main.blk", "x");
	write_file("big.blk", "x");
	assert_int_equal(truncate(in_folder("big.blk"), SOURCE_LIMIT + 1), 0);
	source_set set = {.arena = &memory};
	span at = {0};
	source_file *m = source_add(&set, &ds, at, in_folder("main.blk"), NULL, 0);
	at.file = m;
	assert_null(source_add(&set, &ds, at, in_folder("none.blk"), NULL, 0));
	assert_int_equal(ds.first->code, 801);
	assert_string_equal(first_message(),
		arena_printf(&memory, "cannot read '%s': No such file or directory", in_folder("none.blk")));
	diags_init(&ds, &memory);
	assert_null(source_import(&set, &ds, m, "sub", at));
	assert_string_equal(
		first_message(), arena_printf(&memory, "cannot read '%s': Is a directory", in_folder("sub")));
	diags_init(&ds, &memory);
	assert_null(source_import(&set, &ds, m, "big.blk", at));
	assert_int_equal(ds.first->code, 702);
	diags_init(&ds, &memory);
	assert_null(source_import(&set, &ds, m, "none.blk", at));
	assert_null(source_import(&set, &ds, m, "main.blk/none.blk", at));
	assert_int_equal(ds.errors, 2);
	assert_int_equal(ds.first->code, 802);
	assert_ptr_equal(ds.first->at.file, m);
	assert_non_null(ds.first->hint);
	diags_init(&ds, &memory);
	assert_null(source_add(&set, &ds, at, "memory.blk", "x", SOURCE_LIMIT + 1));
	assert_int_equal(ds.first->code, 702);
	diags_init(&ds, &memory);
	assert_null(source_add(&set, &ds, at, "/proc/self/mem", NULL, 0)); /* opens, but does not read */
	assert_int_equal(ds.first->code, 801);
	assert_int_equal(set.files.n, 1);
	remove_folder();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {TEST(expressions_have_their_structure), TEST(operators_group_by_the_table),
		TEST(every_token_kind), TEST(tokens_are_dumped_with_positions), TEST(floats_are_exact),
		TEST(strings_are_decoded), TEST(statements_have_their_structure),
		TEST(declarations_have_their_structure), TEST(spans_are_precise), TEST(names_are_interned),
		TEST(errors_have_place_and_code), TEST(messages_use_human_words),
		TEST(independent_errors_are_all_reported), TEST(nesting_is_limited), TEST(chains_are_limited),
		TEST(large_files_are_refused), TEST(every_prefix_parses), TEST(mutated_programs_parse),
		TEST(memory_may_run_out), TEST(files_are_found_once), TEST(unreadable_files_are_diagnosed)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
