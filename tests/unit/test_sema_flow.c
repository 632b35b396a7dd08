/* Control flow of the language: what programs print, by an interpreter of scalar tile IR, against the same program in
 * C.
 *
 * Every twin is a kernel k(a: i32, b: i32) that prints with device_print("t", x) and a C function that calls put(x). */
#include "scalar_machine.h"

/* ---- twins ---- */

static machine expected;
static void put(int64_t v)
{
	put_to(&expected, v);
}

typedef struct twin {
	const char *name, *source;
	void (*c)(int32_t a, int32_t b);
} twin;

static void c_if(int32_t a, int32_t b)
{
	int32_t x = 1;
	if (a > b)
		x = 2;
	else if (a == b)
		x += 10;
	put(x);
	if (a > 0) {
		int32_t y = x;
		x = y + a;
		if (b > 0) x *= 2;
	}
	put(x);
}
static const char blk_if[] = "kernel k(a: i32, b: i32) { var x = 1;\n"
			     "if a > b { x = 2; } else if a == b { x += 10; } device_print(\"t\", x);\n"
			     "if a > 0 { let y = x; x = y + a; if b > 0 { x *= 2; } } device_print(\"t\", x); }";

static void c_early_return(int32_t a, int32_t b)
{
	if (a > 3) return;
	put(1);
	if (b > 3) {
		put(2);
		return;
	} else if (b > 2) {
		put(3);
	} else {
		if (a > 1) return;
	}
	put(4);
	if (a == 0) {
		if (b == 0) return;
		put(5);
	}
	put(6);
}
static const char blk_early_return[] =
	"kernel k(a: i32, b: i32) { if a > 3 { return; } device_print(\"t\", 1);\n"
	"if b > 3 { device_print(\"t\", 2); return; } else if b > 2 { device_print(\"t\", 3); }\n"
	"else { if a > 1 { return; } } device_print(\"t\", 4);\n"
	"if a == 0 { if b == 0 { return; } device_print(\"t\", 5); } device_print(\"t\", 6); }";

static void c_for(int32_t a, int32_t b)
{
	int32_t s = 0, last = -1;
	for (int64_t i = a; i < b; i += 2) {
		s += (int32_t)i;
		last = (int32_t)i;
	}
	for (int64_t i = b; i > a; i -= 3) s = s * 2 + (int32_t)i;
	put(s);
	put(last);
	for (int32_t i = 0; i < 3; i++)
		for (int32_t j = 0; j < i; j++) {
			s += i * j;
			put(s);
		}
}
static const char blk_for[] =
	"kernel k(a: i32, b: i32) { var s = 0; var last = -1;\n"
	"for i in range(a, b, 2) { s += i; last = i; } for i in range(b, a, -3) { s = s * 2 + i; }\n"
	"device_print(\"t\", s); device_print(\"t\", last);\n"
	"for i in range(3) { for j in range(i) { s += i * j; device_print(\"t\", s); } } }";

static void c_break(int32_t a, int32_t b)
{
	int32_t s = 0;
	for (int32_t i = 0; i < 10; i++) {
		if (i == a) continue;
		if (i == b) break;
		s += i;
		if (s > 20) {
			put(100);
			break;
		}
		put(i);
	}
	put(s);
	for (int32_t i = a; i > -3; i--) {
		for (int32_t j = 0; j < 4; j++) {
			if (j == b) break;
			if (j == i) continue;
			s += j;
		}
		if (s > 60) break;
		put(s);
	}
	put(s);
}
static const char blk_break[] =
	"kernel k(a: i32, b: i32) { var s = 0;\n"
	"for i in range(10) { if i == a { continue; } if i == b { break; } s += i;\n"
	"  if s > 20 { device_print(\"t\", 100); break; } device_print(\"t\", i); } device_print(\"t\", s);\n"
	"for i in range(a, -3, -1) { for j in range(4) { if j == b { break; } if j == i { continue; } s += j; }\n"
	"  if s > 60 { break; } device_print(\"t\", s); } device_print(\"t\", s); }";

static void c_while(int32_t a, int32_t b)
{
	int32_t n = a < 0 ? -a : a, steps = 0;
	n = n + 1;
	while (n != 1) {
		if (n % 2 == 0)
			n = n / 2;
		else
			n = 3 * n + 1;
		steps++;
		if (steps > b + 6) break;
	}
	put(steps);
	put(n);
	while (1) {
		n += 1;
		if (n % 3 == 0) continue;
		put(n);
		if (n > 6) break;
	}
	while (n > 0) {
		n -= 2;
		if (n == b) return;
	}
	put(n);
}
static const char blk_while[] =
	"kernel k(a: i32, b: i32) { var n = a < 0 ? -a : a; var steps = 0; n = n + 1;\n"
	"while n != 1 { if n % 2 == 0 { n = n / 2; } else { n = 3 * n + 1; } steps += 1; if steps > b + 6 { break; } "
	"}\n"
	"device_print(\"t\", steps); device_print(\"t\", n);\n"
	"while true { n += 1; if n % 3 == 0 { continue; } device_print(\"t\", n); if n > 6 { break; } }\n"
	"while n > 0 { n -= 2; if n == b { return; } } device_print(\"t\", n); }";

static int32_t c_find(int32_t a, int32_t limit)
{
	for (int32_t i = 0; i < limit; i++) {
		if (i * i == a) return i;
		for (int32_t j = 0; j < i; j++)
			if (i + j == a) return 100 + j;
	}
	return -1;
}
static int32_t c_classify(int32_t x)
{
	if (x < 0) return -1;
	if (x == 0) {
		put(0);
		return 0;
	}
	while (1) {
		x -= 3;
		if (x < 0) return 5;
		if (x == 0) return 6;
	}
}
static void c_functions(int32_t a, int32_t b)
{
	put(c_find(a, 5));
	put(c_find(b, 3) + c_find(4, 10));
	int32_t s = 0;
	for (int32_t i = a; i < b; i++) s += c_classify(i);
	put(s);
	put(c_classify(a));
}
static const char blk_functions[] =
	"fn find(a: i32, limit: i32) -> i32 { for i in range(limit) { if i * i == a { return i; }\n"
	"  for j in range(i) { if i + j == a { return 100 + j; } } } return -1; }\n"
	"fn classify(x) { if x < 0 { return -1; } if x == 0 { device_print(\"t\", 0); return 0; }\n"
	"  var y = x; while true { y -= 3; if y < 0 { return 5; } if y == 0 { return 6; } } }\n"
	"kernel k(a: i32, b: i32) { device_print(\"t\", find(a, 5)); device_print(\"t\", find(b, 3) + find(4, 10));\n"
	"var s = 0; for i in range(a, b) { s += classify(i); } device_print(\"t\", s); device_print(\"t\", "
	"classify(a)); }";

static void c_unrolled(int32_t a, int32_t b)
{
	int32_t s = 0;
	for (int32_t i = 0; i < 6; i++) {
		if (i == 1) continue;
		if (i == a) continue;
		if (i == b) break;
		s += i;
		put(s);
	}
	put(s);
	for (int32_t i = 5; i > 0; i -= 2) {
		if (s > 7) return;
		s += a > 0 ? i : 1;
		if (i == 1) break;
		put(s);
	}
	put(s);
}
static const char blk_unrolled[] =
	"kernel k(a: i32, b: i32) { var s = 0;\n"
	"for i in static_range(6) { if i == 1 { continue; } if i == a { continue; } if i == b { break; }\n"
	"  s += i; device_print(\"t\", s); } device_print(\"t\", s);\n"
	"for i in static_range(5, 0, -2) { if s > 7 { return; } s += a > 0 ? i : 1; if i == 1 { break; }\n"
	"  device_print(\"t\", s); } device_print(\"t\", s); }";

static int32_t c_noisy(int32_t x)
{
	put(x);
	return x;
}
static void c_logic(int32_t a, int32_t b)
{
	if (c_noisy(a) > 0 && c_noisy(b) > 0) put(1);
	if (c_noisy(a) > 0 || c_noisy(b) > 0) put(2);
	put(a > b ? c_noisy(a) : c_noisy(b));
	put(a > b && b > 0);
	put((a > b || b > 0) && !(a == 2));
	put(a > b ? a : 7);
	int32_t x = a, y = b;
	for (int32_t i = 0; i < 3; i++) {
		int32_t t = x;
		x = y;
		y = t + 1;
	}
	put(x);
	put(y);
}
static const char blk_logic[] =
	"fn noisy(x) { device_print(\"t\", x); return x; }\n"
	"fn show(c) { if c { device_print(\"t\", 1); } else { device_print(\"t\", 0); } }\n"
	"kernel k(a: i32, b: i32) { if noisy(a) > 0 && noisy(b) > 0 { device_print(\"t\", 1); }\n"
	"if noisy(a) > 0 || noisy(b) > 0 { device_print(\"t\", 2); } device_print(\"t\", a > b ? noisy(a) : "
	"noisy(b));\n"
	"show(a > b && b > 0); show((a > b || b > 0) && !(a == 2)); device_print(\"t\", a > b ? a : 7);\n"
	"var (x, y) = (a, b); for i in range(3) { (x, y) = (y, x + 1); } device_print(\"t\", x, y); }";

static void c_tuples(int32_t a, int32_t b)
{
	int32_t best = 0, where = -1;
	for (int32_t i = 0; i < 5; i++) {
		int32_t v = (a + 3 * i) % 7;
		if (v > best) {
			best = v;
			where = i;
		}
	}
	put(best);
	put(where);
	int32_t x = 1;
	{
		int32_t x2 = 2;
		x2 += b;
		put(x2);
	}
	x += a;
	put(x);
	put((int8_t)(a * 50));
	put((uint32_t)a);
	put((uint32_t)a > (uint32_t)b);
}
static const char blk_tuples[] =
	"fn better(p, q) { if q[0] > p[0] { return q; } return p; }\n"
	"kernel k(a: i32, b: i32) { var best = (0, -1);\n"
	"for i in range(5) { best = better(best, ((a + 3 * i) % 7, i)); } let (v, w) = best; device_print(\"t\", v, "
	"w);\n"
	"var x = 1; { var x = 2; x += b; device_print(\"t\", x); } x += a; device_print(\"t\", x);\n"
	"device_print(\"t\", (a * 50).to(i8)); device_print(\"t\", a.to(u32));\n"
	"if a.to(u32) > b.to(u32) { device_print(\"t\", 1); } else { device_print(\"t\", 0); } }";

/* Flags of loops inside loops: a return leaves both, a break one. */
static int32_t c_search(int32_t a, int32_t b)
{
	int32_t seen = 0;
	for (int32_t i = 0; i < 4; i++) {
		int32_t j = 0;
		while (j < 4) {
			j++;
			if (j == a) continue;
			seen++;
			if (i * j == b) return seen;
			if (j > i + 1) break;
		}
		if (seen > 9) break;
		put(seen);
	}
	return -seen;
}
static void c_nested(int32_t a, int32_t b)
{
	for (int32_t r = 0; r < 2; r++) {
		int32_t v = c_search(a, b + r);
		put(v);
		if (v < 0 && r == 0) continue;
		put(77);
		if (v == 1) return;
	}
	put(99);
}
static const char blk_nested[] =
	"fn search(a, b) { var seen = 0; for i in range(4) { var j = 0; while j < 4 { j += 1; if j == a { continue; }\n"
	"  seen += 1; if i * j == b { return seen; } if j > i + 1 { break; } } if seen > 9 { break; }\n"
	"  device_print(\"t\", seen); } return -seen; }\n"
	"kernel k(a: i32, b: i32) { for r in range(2) { let v = search(a, b + r); device_print(\"t\", v);\n"
	"if v < 0 && r == 0 { continue; } device_print(\"t\", 77); if v == 1 { return; } } device_print(\"t\", 99); }";

/* Ranges at the ends of i32, with and without a way out of the loop. */
static void c_extremes(int32_t a, int32_t b)
{
	int n = 0;
	for (int64_t i = INT32_MAX - 3; i < INT32_MAX; i += 2) n++;
	put(n);
	for (int64_t i = INT32_MIN + 5; i > INT32_MIN; i -= 3) {
		put(i);
		if (i == a) break;
	}
	for (int64_t i = a; b == 0 ? 0 : b > 0 ? i < 4 : i > -4; i += b) {
		put(i);
		if (i == 2) break;
	}
	for (int64_t i = INT32_MIN; i < INT32_MAX; i += 2000000000) {
		put(i);
		if (i == 5) break;
	}
}
static const char blk_extremes[] =
	"kernel k(a: i32, b: i32) { var n = 0; for i in range(2147483644, 2147483647, 2) { n += 1; } "
	"device_print(\"t\", n);\n"
	"for i in range(-2147483643, (-2147483648).to(i32), -3) { device_print(\"t\", i); if i == a { break; } }\n"
	"for i in range(a, b > 0 ? 4 : -4, b) { device_print(\"t\", i); if i == 2 { break; } }\n"
	"for i in range((-2147483648).to(i32), 2147483647, 2000000000) { device_print(\"t\", i); if i == 5 { break; } "
	"} }";

static const twin twins[] = {
	{"if", blk_if, c_if},
	{"early return", blk_early_return, c_early_return},
	{"for", blk_for, c_for},
	{"break", blk_break, c_break},
	{"while", blk_while, c_while},
	{"functions", blk_functions, c_functions},
	{"unrolled", blk_unrolled, c_unrolled},
	{"logic", blk_logic, c_logic},
	{"tuples", blk_tuples, c_tuples},
	{"nested", blk_nested, c_nested},
	{"extremes", blk_extremes, c_extremes},
};

static void twins_agree(void **state)
{
	(void)state;
	for (size_t t = 0; t < sizeof twins / sizeof *twins; t++) {
		compiled c;
		compile_text(&c, twins[t].source);
		if (!c.func) fail_msg("%s: %s", twins[t].name, c.rendered.at);
		for (int32_t a = -3; a <= 8; a++)
			for (int32_t b = -3; b <= 8; b++) {
				static machine m;
				m = (machine){0};
				int64_t out[MACHINE_OPERANDS];
				m.value = test_calloc(c.func->nvalues, sizeof *m.value);
				m.value[c.func->body->args[0]->id] = a;
				m.value[c.func->body->args[1]->id] = b;
				run(&m, c.func->body, out);
				expected = (machine){0};
				twins[t].c(a, b);
				if (strcmp(m.out, expected.out) != 0)
					fail_msg("%s(%d, %d): printed %s, expected %s\n%s", twins[t].name, a, b, m.out,
						expected.out, c.ir.at);
				test_free(m.value);
			}
		compiled_free(&c);
	}
}

static unsigned count(ir_block *b, ir_kind kind)
{
	unsigned n = 0;
	for (ir_op *o = b->first; o; o = o->next) {
		n += o->kind == kind;
		for (unsigned r = 0; r < o->nregions; r++) n += count(o->regions[r], kind);
	}
	return n;
}

/* What is decided at compile time leaves no trace: a removed break keeps the `for`, a plain right side needs no `if`.
 */
static void shapes_of_control_flow(void **state)
{
	(void)state;
	compiled c;
	compile_text(&c,
		"kernel k(a: i32, const D: bool = false) { var s = 0; var t = 0; for i in range(a) { t = t; s += i;\n"
		"if D { break; } if D { t = 5; } } device_print(\"t\", s); }");
	assert_non_null(c.func);
	assert_int_equal(count(c.func->body, IR_FOR), 1);
	assert_int_equal(count(c.func->body, IR_WHILE), 0);
	for (ir_op *o = c.func->body->first; o; o = o->next)
		if (o->kind == IR_FOR) assert_int_equal(o->nresults, 1);
	compiled_free(&c);
	compile_text(&c, "kernel k(a: i32) { if a > 1 && a < 5 || a == 9 { device_print(\"t\", a); } }");
	assert_int_equal(count(c.func->body, IR_IF), 1);
	assert_int_equal(count(c.func->body, IR_AND), 1);
	compiled_free(&c);
	compile_text(&c, "kernel k(a: i32) { for i in range(0, a, 4, num_stages = 2, unroll = 8, flatten = true) { "
			 "device_print(\"t\", i); } }");
	for (ir_op *o = c.func->body->first; o; o = o->next)
		if (o->kind == IR_FOR) {
			assert_int_equal(ir_get_num_stages(o), 2);
			assert_int_equal(ir_get_unroll(o), 8);
			assert_int_equal(ir_get_flatten(o), 1);
		}
	compiled_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(twins_agree),
		cmocka_unit_test(shapes_of_control_flow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
