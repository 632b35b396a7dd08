/* Axis analysis: the widths that known programs must reach, and random programs whose claimed facts are checked against
 * every element, computed one by one. */
#include "ir_random.h"

#include "../../compiler/passes/passes.h"

static pass_context analyse(ir_func *f)
{
	pass_context p = {.arena = &memory, .diags = &messages};
	assert_true(pass_axis(&p, f));
	return p;
}

static const ir_op *find(const ir_block *b, ir_kind kind)
{
	for (const ir_op *o = b->first; o; o = o->next) {
		if (o->kind == kind) return o;
		for (unsigned r = 0; r < o->nregions; r++) {
			const ir_op *inner = find(o->regions[r], kind);
			if (inner) return inner;
		}
	}
	return NULL;
}

/* The width of the only store or load of a body, along the last dimension. */
static unsigned width_of(const char *params, const char *body, axis_limit *why)
{
	ir_func *f = read_text(arena_printf(&memory, "func @f(%s) { %s return }", params, body));
	pass_context p = analyse(f);
	const ir_op *o = find(f->body, IR_LOAD);
	if (!o) o = find(f->body, IR_STORE);
	unsigned rank = ir_arg(o, 0)->type.rank;
	return axis_access_width(&p, o, rank ? rank - 1 : 0, why);
}

static void check_width(const char *params, const char *body, unsigned expected)
{
	axis_limit why;
	unsigned width = width_of(params, body, &why);
	if (width != expected)
		fail_msg("(%s) %s\n is %u wide (%s), not %u", params, body, width, axis_limit_text[why], expected);
}

#define OFFSETS                                                                                                        \
	"%pid = program_id {axis=0} : i32 %b = const {value=1024} : i32 %s = mul %pid, %b : i32 "                      \
	"%s.1 = splat %s : i32[1024] %r = arange {lo=0} : i32[1024] %offs = add %s.1, %r : i32[1024] "
#define POINTERS(T) "%p.1 = splat %p : (" T ")[1024] %p.2 = ptr_add %p.1, %offs : (" T ")[1024] "
#define LOAD(T) "%v = load %p.2 : " T "[1024] "

static void plain_offsets(void **state)
{
	(void)state;
	check_width("%p: *f32 {align=16}", OFFSETS POINTERS("*f32") LOAD("f32"), 4);
	check_width("%p: *f16 {align=16}", OFFSETS POINTERS("*f16") LOAD("f16"), 8);
	check_width("%p: *u8 {align=16}", OFFSETS POINTERS("*u8") LOAD("u8"), 16);
	check_width("%p: *f64 {align=16}", OFFSETS POINTERS("*f64") LOAD("f64"), 2);
	check_width("%p: *f64 {align=8}", OFFSETS POINTERS("*f64") LOAD("f64"), 1);
	check_width("%p: *f32 {align=8}", OFFSETS POINTERS("*f32") LOAD("f32"), 2);
	check_width("%p: *f32 {align=4}", OFFSETS POINTERS("*f32") LOAD("f32"), 1);
	check_width("%p: *f32", OFFSETS POINTERS("*f32") LOAD("f32"), 1);
	check_width("%p: *const f32 {align=16}", OFFSETS POINTERS("*const f32") LOAD("f32"), 4);
}

#define MASK(op) "%n.1 = splat %n : i32[1024] %m = " op " %offs, %n.1 : bool[1024] "
#define MASKED "%v = load %p.2, %m : f16[1024] "

static void masks(void **state)
{
	(void)state;
	static const char div16[] = "%p: *f16 {align=16}, %n: i32 {divisible=16}",
			  any[] = "%p: *f16 {align=16}, %n: i32";
	check_width(div16, OFFSETS POINTERS("*f16") MASK("lt") MASKED, 8);
	check_width(any, OFFSETS POINTERS("*f16") MASK("lt") MASKED, 1);
	check_width("%p: *f16 {align=16}, %n: i32 {divisible=4}", OFFSETS POINTERS("*f16") MASK("lt") MASKED, 4);
	check_width(div16, OFFSETS POINTERS("*f16") MASK("le") MASKED, 1); /* offs <= n: n itself is inside */
	check_width(div16, OFFSETS POINTERS("*f16") MASK("gt") MASKED, 1);
	check_width(div16, OFFSETS POINTERS("*f16") MASK("ge") MASKED, 8);
	check_width(div16,
		OFFSETS POINTERS("*f16") "%n.1 = splat %n : i32[1024] %m = gt %n.1, %offs : bool[1024] " MASKED, 8);
	check_width(div16,
		OFFSETS POINTERS("*f16") "%n.1 = splat %n : i32[1024] %m = ge %n.1, %offs : bool[1024] " MASKED, 1);
	check_width(div16,
		OFFSETS POINTERS("*f16")
			MASK("lt") "%m.1 = ge %offs, %n.1 : bool[1024] %m.2 = or %m, %m.1 : bool[1024] "
				   "%v = load %p.2, %m.2 : f16[1024] ",
		8);
	axis_limit why;
	width_of(any, OFFSETS POINTERS("*f16") MASK("lt") MASKED, &why);
	assert_int_equal(why, AXIS_MASK);
	width_of("%p: *f16", OFFSETS POINTERS("*f16") LOAD("f16"), &why);
	assert_int_equal(why, AXIS_UNALIGNED);
}

/* rows of a matrix: base + row * stride + columns */
#define ROWS                                                                                                           \
	"%row = program_id {axis=0} : i32 %s = mul %row, %stride : i32 %q = ptr_add %p, %s : *f32 "                    \
	"%s.1 = splat %q : (*f32)[64] %r = arange {lo=0} : i32[64] "
#define ROW_LOAD "%p.2 = ptr_add %s.1, %r : (*f32)[64] %v = load %p.2 : f32[64] "

static void strides(void **state)
{
	(void)state;
	check_width("%p: *f32 {align=16}, %stride: i32 {divisible=16}", ROWS ROW_LOAD, 4);
	check_width("%p: *f32 {align=16}, %stride: i32 {divisible=2}", ROWS ROW_LOAD, 2);
	check_width("%p: *f32 {align=16}, %stride: i32", ROWS ROW_LOAD, 1);
	/* columns * stride: adjacent only where the stride is the constant 1 */
#define COLUMNS                                                                                                        \
	"%r = arange {lo=0} : i32[64] %s = splat %stride : i32[64] %c = mul %r, %s : i32[64] "                         \
	"%p.1 = splat %p : (*f32)[64] %p.2 = ptr_add %p.1, %c : (*f32)[64] %v = load %p.2 : f32[64] "
	check_width("%p: *f32 {align=16}, %stride: i32", COLUMNS, 1);
	check_width("%p: *f32 {align=16}", "%stride = const {value=1} : i32 " COLUMNS, 4);
	check_width("%p: *f32 {align=16}, %stride: i32 {divisible=16}", COLUMNS, 1);
	/* the same through i64: row.to(i64) * stride.to(i64) */
	check_width("%p: *f32 {align=16}, %stride: i32 {divisible=16}",
		"%row = program_id {axis=0} : i32 %w = convert %row : i64 %t = convert %stride : i64 %s = mul %w, %t : "
		"i64 "
		"%q = ptr_add %p, %s : *f32 %s.1 = splat %q : (*f32)[64] %r = arange {lo=0} : i32[64] " ROW_LOAD,
		4);
}

static void matrices(void **state)
{
	(void)state;
#define TILE                                                                                                           \
	"%i = arange {lo=0} : i32[32] %j = arange {lo=0} : i32[64] %i.1 = expand_dims %i {axis=1} : i32[32,1] "        \
	"%j.1 = expand_dims %j {axis=0} : i32[1,64] %s = splat %stride : i32[32,1] %i.2 = mul %i.1, %s : i32[32,1] "   \
	"%i.3 = broadcast %i.2 : i32[32,64] %j.2 = broadcast %j.1 : i32[32,64] %o = add %i.3, %j.2 : i32[32,64] "      \
	"%p.1 = splat %p : (*f16)[32,64] %p.2 = ptr_add %p.1, %o : (*f16)[32,64] "
	check_width("%p: *f16 {align=16}, %stride: i32 {divisible=16}", TILE "%v = load %p.2 : f16[32,64] ", 8);
	check_width("%p: *f16 {align=16}, %stride: i32", TILE "%v = load %p.2 : f16[32,64] ", 1);
	ir_func *f = read_text("func @f(%p: *f16 {align=16}, %stride: i32 {divisible=16}) { " TILE
			       "%t = permute %p.2 {order=[1,0]} : (*f16)[64,32] "
			       "%v = load %t : f16[64,32] return }");
	pass_context p = analyse(f);
	const ir_op *load = find(f->body, IR_LOAD);
	assert_int_equal(
		axis_access_width(&p, load, 0, NULL), 8); /* the transposed tile is contiguous along dimension 0 */
	assert_int_equal(axis_access_width(&p, load, 1, NULL), 1);
#undef TILE
}

static void loops(void **state)
{
	(void)state;
#define LOOP(step)                                                                                                     \
	"%z = const {value=0} : i32 %one = const {value=1} : i32 %r = arange {lo=0} : i32[64] "                        \
	"%p.1 = splat %p : (*f32)[64] %p.2 = ptr_add %p.1, %r : (*f32)[64] "                                           \
	"%e = for %z, %n, %one, %p.2 : (*f32)[64] (%k: i32, %q: (*f32)[64]) "                                          \
	"{ "                                                                                                           \
	"%v = load %q : f32[64] %st = splat " step " : i32[64] %q.1 = ptr_add %q, %st : (*f32)[64] "                   \
	"yield %q.1 } "
	check_width("%p: *f32 {align=16}, %n: i32 {divisible=16}", LOOP("%n"), 4);
	check_width("%p: *f32 {align=16}, %n: i32 {divisible=2}", LOOP("%n"), 2);
	check_width("%p: *f32 {align=16}, %n: i32", LOOP("%n"), 1);
	check_width("%p: *f32 {align=16}, %n: i32", "%c = const {value=64} : i32 " LOOP("%c"), 4);
#undef LOOP
	/* the induction variable: what divides both the start and the step */
#define LOOP(lo, step)                                                                                                 \
	"%z = const {value=" lo "} : i32 %st = const {value=" step "} : i32 %r = arange {lo=0} : i32[64] "             \
	"%p.1 = splat %p : (*f32)[64] for %z, %n, %st (%k: i32) { "                                                    \
	"%k.1 = splat %k : i32[64] %o = add %k.1, %r : i32[64] %q = ptr_add %p.1, %o : (*f32)[64] "                    \
	"%v = load %q : f32[64] yield } "
	check_width("%p: *f32 {align=16}, %n: i32", LOOP("0", "64"), 4);
	check_width("%p: *f32 {align=16}, %n: i32", LOOP("2", "64"), 2);
	check_width("%p: *f32 {align=16}, %n: i32", LOOP("0", "3"), 1);
	check_width("%p: *f32 {align=16}, %n: i32", LOOP("0", "-64"), 4);
#undef LOOP
	/* two carried values that swap: each is only as good as the worse */
	check_width("%p: *f32 {align=16}, %q: *f32 {align=4}, %n: i32",
		"%z = const {value=0} : i32 %one = const {value=1} : i32 %r = arange {lo=0} : i32[64] "
		"%p.1 = splat %p : (*f32)[64] %p.2 = ptr_add %p.1, %r : (*f32)[64] "
		"%q.1 = splat %q : (*f32)[64] %q.2 = ptr_add %q.1, %r : (*f32)[64] "
		"%e, %g = for %z, %n, %one, %p.2, %q.2 : (*f32)[64], "
		"(*f32)[64] "
		"(%k: i32, %a: (*f32)[64], %b: (*f32)[64]) { %v = load %a : f32[64] yield %b, %a } ",
		1);
	/* through a while and an if */
	check_width("%p: *f32 {align=16}, %n: i32, %t: bool",
		"%r = arange {lo=0} : i32[64] %p.1 = splat %p : (*f32)[64] %p.2 = ptr_add %p.1, %r : (*f32)[64] "
		"%c = const {value=2} : i32[64] %w = while %p.2 : (*f32)[64] (%q: (*f32)[64]) { condition %t, %q } "
		"do (%q.1: (*f32)[64]) { %q.2 = if %t : (*f32)[64] { %q.3 = ptr_add %q.1, %c : (*f32)[64] yield %q.3 } "
		"else { yield %q.1 } yield %q.2 } %v = load %w : f32[64] ",
		2);
}

static void hints(void **state)
{
	(void)state;
#define HINTED(kind)                                                                                                   \
	"%i.1 = splat %i : i32[64] %r = arange {lo=0} : i32[64] %o = " kind                                            \
	" : i32[64] %p.1 = splat %p : (*f32)[64] %p.2 = ptr_add %p.1, %o : (*f32)[64] "                                \
	"%v = load %p.2 : f32[64] "
	check_width("%p: *f32 {align=16}, %i: i32", HINTED("add %i.1, %r"), 1);
	check_width("%p: *f32 {align=16}, %i: i32",
		"%i.2 = hint %i {kind=multiple_of values=[4]} : i32 %i.3 = splat %i.2 : i32[64] " HINTED(
			"add %i.3, %r"),
		4);
	check_width("%p: *f32 {align=16}, %i: i32",
		"%l = arange {lo=0} : i32[64] %c = const {value=7} : i32[64] %l.1 = xor %l, %c : i32[64] "
		"%h = hint %l.1 {kind=max_contiguous values=[2]} : i32[64] %h.1 = hint %h {kind=multiple_of "
		"values=[8]} : i32[64] "
		"%p.1 = splat %p : (*f32)[64] %p.2 = ptr_add %p.1, %h.1 : (*f32)[64] %v = load %p.2"
		" : f32[64] ",
		2);
#undef HINTED
}

static void check_facts(const machine *m, const pass_context *p, const ir_func *f, const ir_value *v)
{
	const axis_info *a = axis_get(p, v);
	const uint64_t *e = elements(m, v);
	uint64_t n = ir_elements(v->type), inner = 1, step = v->type.pointer ? scalar_bytes(v->type.elem) : 1;
	for (unsigned d = v->type.rank ? v->type.rank : 1; d-- > 0;) {
		uint64_t extent = v->type.rank ? v->type.dim[d] : 1, c = a->contiguity[d], k = a->constancy[d];
		if (c > extent || k > extent || (c & (c - 1)) || (k & (k - 1)))
			fail_msg("extents of the facts\n%s", print(f));
		for (uint64_t i = 0; i < n; i++) {
			uint64_t at = i / inner % extent, run = i - at % c * inner, flat = i - at % k * inner;
			uint64_t expected = e[run] + at % c * step;
			if (!v->type.pointer) expected = scalar_truncate((scalar)v->type.elem, expected);
			if (e[i] != expected)
				fail_msg("%%%u along %u: not contiguous by %u\n%s", v->id, d, (unsigned)c, print(f));
			if (e[i] != e[flat])
				fail_msg("%%%u along %u: not constant by %u\n%s", v->id, d, (unsigned)k, print(f));
			if (at % c == 0 &&
				e[i] % (a->divisibility[d] & 0xffffffff ? a->divisibility[d] : UINT64_C(1) << 32) &&
				scalar_bits((scalar)v->type.elem) >= 32)
				fail_msg("%%%u along %u: not divisible by %llu\n%s", v->id, d,
					(unsigned long long)a->divisibility[d], print(f));
		}
		inner *= extent;
	}
}

static void claims_hold_for_every_element(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 5000; seed++) {
		random_function r = random_program(seed);
		finish_function(r.func);
		pass_context p = analyse(r.func);
		for (unsigned i = 0; i < r.n; i++) check_facts(&r.machine, &p, r.func, r.pool[i]);
		arena_free(&memory);
		diags_init(&messages, &memory);
	}
}

/* Facts are worked out once, and again only when there are values that the analysis has not seen. */
static void is_reused(void **state)
{
	(void)state;
	static const char written[] = "func @f(%p: *i32 {align=16}) { %i = arange {lo=0} : i32[8] return }";
	ir_func *f = read_text(written), *other = read_text(written);
	pass_context p = analyse(f);
	const axis_info *first = p.axis;
	assert_true(pass_axis(&p, f));
	assert_ptr_equal(p.axis, first);
	ir_builder b = {.func = f, .block = f->body, .before = f->body->last};
	ir_value *added = ir_build1(&b, IR_PROGRAM_ID, ir_scalar_type(SCALAR_I32), 0, NULL);
	assert_false(axis_get(&p, added)->known);
	assert_true(pass_axis(&p, f));
	assert_true(axis_get(&p, added)->known);
	first = p.axis;
	assert_true(pass_axis(&p, other));
	assert_ptr_not_equal(p.axis, first);
}

/* Additions whose old values nobody reads, of floats: 16 bytes from sm_90 on, pairs of f16 before; nothing else. */
static void atomics(void **state)
{
	(void)state;
	static const struct {
		const char *target, *type, *rmw, *use;
		unsigned width;
	} rows[] = {
		{"sm_90", "f32", "add", "", 4},
		{"sm_90", "f16", "add", "", 8},
		{"sm_90", "f64", "add", "", 1},
		{"sm_90", "i32", "add", "", 1},
		{"sm_90", "f32", "max", "", 1},
		{"sm_90", "f32", "add", "print %v {text=\"\"}", 1},
		{"sm_80", "f16", "add", "", 2},
		{"sm_80", "f32", "add", "", 1},
		{"sm_80", "bf16", "add", "", 1},
		{"cpu", "f16", "add", "", 1},
		{NULL, "f16", "add", "", 1},
	};
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *t = rows[i].type;
		ir_func *f = read_text(arena_printf(&memory,
			"func @f(%%p: *%s {align=16}, %%x: %s) { %%r = arange {lo=0} : i32[64] "
			"%%b = splat %%p : (*%s)[64] %%q = ptr_add %%b, %%r : (*%s)[64] %%y = splat %%x : %s[64] "
			"%%v = atomic_rmw %%q, %%y {rmw=%s sem=relaxed scope=gpu} : %s[64] %s return }",
			t, t, t, t, t, rows[i].rmw, t, rows[i].use));
		pass_context p = {.arena = &memory, .diags = &messages};
		if (rows[i].target) p.target = target_find(rows[i].target);
		assert_true(pass_axis(&p, f));
		unsigned width = axis_access_width(&p, find(f->body, IR_ATOMIC_RMW), 0, NULL);
		if (width != rows[i].width) fail_msg("%s of %s: %u", rows[i].target, t, width);
	}
}

/* What is known of %v along one dimension: runs, what divides their first elements, and equal elements. */
static void facts(void **state)
{
	(void)state;
#define FOUR "%k = const {value=4} : i32 %f = splat %k : i32[8] "
	static const struct {
		const char *body;
		unsigned dim, contiguity, divisibility, constancy;
	} rows[] = {
		/* runs of 8 from multiples of 8, modulo 4: runs of 4, where nothing is below 0 */
		{FOUR "%k8 = const {value=8} : i32[8] %a = add %r, %k8 : i32[8] %v = rem %a, %f : i32[8]", 0, 4, 4, 1},
		{"%s = bitcast %r : u32[8] %h = hint %s {kind=max_contiguous values=[8]} : u32[8] "
		 "%g = hint %h {kind=multiple_of values=[8]} : u32[8] %f = const {value=4} : u32[8] "
		 "%v = rem %g, %f : u32[8]",
			0, 4, 4, 1},
		/* -8 ... -1 modulo 4 is 0 -3 -2 -1 ... */
		{FOUR "%h = hint %i {kind=multiple_of values=[8]} : i32 %s = splat %h : i32[8] "
		      "%a = add %r, %s : i32[8] %v = rem %a, %f : i32[8]",
			0, 1, 1, 1},
		/* 0 0 0 0 1 1 1 1 */
		{FOUR "%v = div %r, %f : i32[8]", 0, 1, 1, 4},
		{FOUR "%e = expand_dims %f {axis=0} : i32[1,8] %s = expand_dims %r {axis=0} : i32[1,8] "
		      "%v = div %s, %e : i32[1,8]",
			1, 1, 1, 4},
		/* shifts by a number */
		{"%s = splat %i : i32[8] %k = const {value=2} : i32[8] %v = shl %s, %k : i32[8]", 0, 1, 4, 8},
		{"%l = arange {lo=4} : i32[8] %k = const {value=0} : i32[8] %v = shl %l, %k : i32[8]", 0, 8, 4, 1},
		{"%k = const {value=-1} : i32[8] %v = shl %r, %k : i32[8]", 0, 1, 1, 1},
		/* each row of a reshaped tile starts at a multiple as well */
		{"%h = hint %i {kind=multiple_of values=[8]} : i32 %s = splat %h : i32[8] %v = reshape %s : i32[2,4]",
			0, 1, 8, 2},
		/* the bits of 1.0 have zeros below */
		{"%v = const {value=1.0} : f32", 0, 1, 1, 1},
	};
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		ir_func *f = read_text(arena_printf(
			&memory, "func @f(%%i: i32) { %%r = arange {lo=0} : i32[8] %s return }", rows[i].body));
		pass_context p = analyse(f);
		const axis_info *a = axis_get(&p, f->body->last->prev->results[0]);
		unsigned d = rows[i].dim;
		if (a->contiguity[d] != rows[i].contiguity || a->divisibility[d] != rows[i].divisibility ||
			a->constancy[d] != rows[i].constancy)
			fail_msg("`%s`: runs of %u, by %llu, equal %u", rows[i].body, a->contiguity[d],
				(unsigned long long)a->divisibility[d], a->constancy[d]);
	}
#undef FOUR
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(plain_offsets),
		TEST(masks),
		TEST(strides),
		TEST(matrices),
		TEST(loops),
		TEST(hints),
		TEST(atomics),
		TEST(facts),
		TEST(is_reused),
		TEST(claims_hold_for_every_element),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
