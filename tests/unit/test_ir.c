/* The tile IR's text form and its verifier.  Text goes in and comes out the same; each rule of the verifier has a
 * program that breaks it. */
#include "ir_text.h"

#include "../../compiler/ir/tensor_map.h"
#include "../../compiler/layout/layout.h"

/* Canonical text: reading and printing it gives the same bytes. */
static void check_round_trip(const char *s)
{
	assert_string_equal(print(read_text(s)), s);
}

static const char softmax[] = "func @softmax_rows(%y: *f32 {align=16}, %x: *const f32 {align=16}, %stride: i32 "
			      "{divisible=16}, %n: i32 {one}) "
			      "num_warps=4 num_stages=3 num_ctas=1 max_spills=0 {\n"
			      "  %row = program_id {axis=0} : i32\n"
			      "  %cols = arange {lo=0} : i32[1024]\n"
			      "  %0 = splat %n : i32[1024]\n"
			      "  %mask = lt %cols, %0 : bool[1024]\n"
			      "  %1 = mul %row, %stride : i32\n"
			      "  %2 = ptr_add %x, %1 : *const f32\n"
			      "  %3 = splat %2 : (*const f32)[1024]\n"
			      "  %p = ptr_add %3, %cols : (*const f32)[1024]\n"
			      "  %4 = const {value=-inf} : f32[1024]\n"
			      "  %v = load %p, %mask, %4 {evict=first} : f32[1024]\n"
			      "  %5 = reduce %v {axis=0 combine=max} : f32\n"
			      "  %6 = splat %5 : f32[1024]\n"
			      "  %7 = sub %v, %6 : f32[1024]\n"
			      "  %e = exp %7 : f32[1024]\n"
			      "  %8 = reduce %e {axis=0 combine=sum} : f32\n"
			      "  %9 = splat %8 : f32[1024]\n"
			      "  %10 = div %e, %9 : f32[1024]\n"
			      "  %11 = splat %y : (*f32)[1024]\n"
			      "  %12 = ptr_add %11, %cols : (*f32)[1024]\n"
			      "  store %12, %10, %mask {cache=wt}\n"
			      "  return\n"
			      "}\n";

static const char control[] = "func @control(%n: i32, %p: *i32) num_warps=8 num_stages=1 num_ctas=1 maxnreg=128 {\n"
			      "  %lo = const {value=0} : i32\n"
			      "  %one = const {value=1} : i32\n"
			      "  %x = const {value=0.5} : f32[2,4]\n"
			      "  %x.1, %s = for %lo, %n, %one, %x, %n {num_stages=3 flatten=1} : f32[2,4], i32 "
			      "(%i: i32, %x.2: f32[2,4], %s.1: i32) {\n"
			      "    %c = lt %i, %s.1 : bool\n"
			      "    %0 = if %c : f32[2,4] {\n"
			      "      %x.3 = add %x.2, %x.2 : f32[2,4]\n"
			      "      yield %x.3\n"
			      "    } else {\n"
			      "      if %c {\n"
			      "        yield\n"
			      "      } else {\n"
			      "        yield\n"
			      "      }\n"
			      "      yield %x.2\n"
			      "    }\n"
			      "    %w = while %s.1 : f32 (%a: i32) {\n"
			      "      %1 = ge %a, %i : bool\n"
			      "      %2 = convert %a : f32\n"
			      "      condition %1, %2\n"
			      "    } do (%b: f32) {\n"
			      "      %3 = convert %b : i32\n"
			      "      yield %3\n"
			      "    }\n"
			      "    %4 = convert %w : i32\n"
			      "    yield %0, %4\n"
			      "  }\n"
			      "  %m, %k = reduce %x.1, %x {axis=1 combine=custom} : f32[2], f32[2] "
			      "(%a.1: f32, %b.1: f32, %c.1: f32, %d: f32) {\n"
			      "    %5 = max %a.1, %c.1 : f32\n"
			      "    %6 = mul %b.1, %d : f32\n"
			      "    yield %5, %6\n"
			      "  }\n"
			      "  print %m, %k, %s {text=\"a \\\"quote\\\"\\\\\\n\\t\\x01\"}\n"
			      "  %7 = permute %x {order=[1,0]} : f32[4,2]\n"
			      "  %8 = hint %7 {kind=multiple_of values=[16,1]} : f32[4,2]\n"
			      "  store %p, %s\n"
			      "  return\n"
			      "}\n";

static const char mapped[] =
	"func @mapped(%p: *f32 {align=16}) level=scheduled num_warps=2 num_stages=3 num_ctas=1 shared_bytes=512 {\n"
	"  %0 = arange {lo=0} : i32[128] <reg (1) lane (2)(4)(8)(16)(32) warp (64)>\n"
	"  %1 = splat %p : (*f32)[128] <reg (1) lane (2)(4)(8)(16)(32) warp (64)>\n"
	"  %2 = ptr_add %1, %0 : (*f32)[128] <reg (1) lane (2)(4)(8)(16)(32) warp (64)>\n"
	"  %3 = load %2 : f32[128] <reg (1) lane (2)(4)(8)(16)(32) warp (64)>\n"
	"  cta_barrier\n"
	"  %4 = convert_layout %3 : f32[128] <reg (64) lane (1)(2)(4)(8)(16) warp (32)> shared(0, 512)\n"
	"  return\n"
	"}\n";

static void round_trips(void **state)
{
	(void)state;
	check_round_trip(softmax);
	check_round_trip(control);
	check_round_trip(mapped);
	check_round_trip("func @empty() num_warps=1 num_stages=1 num_ctas=1 {\n  return\n}\n");
}

static void comments_and_spaces_do_not_matter(void **state)
{
	(void)state;
	ir_func *f = read_text("; a comment\nfunc @f ( %x : i32{ divisible = 16 one } )\n num_warps=8{ ; more\n"
			       "%y=add %x,%x:i32 return}");
	assert_int_equal(f->params[0].divisible, 16);
	assert_true(f->params[0].is_one);
	assert_string_equal(print(f), "func @f(%x: i32 {divisible=16 one}) num_warps=8 num_stages=3 num_ctas=1 {\n"
				      "  %y = add %x, %x : i32\n  return\n}\n");
}

/* Every bit pattern of the narrow floats, and chosen ones of the wide, survive. */
static void constants_are_exact(void **state)
{
	(void)state;
	ir_func *f = ir_func_new(&memory, "constants");
	ir_builder b = {.func = f, .block = f->body};
	static const scalar narrow[] = {SCALAR_F8E4M3, SCALAR_F8E5M2, SCALAR_I8, SCALAR_U8, SCALAR_F16, SCALAR_BF16};
	VEC(uint64_t) expected = {0};
	for (unsigned k = 0; k < 6; k++)
		for (uint64_t v = 0; v < UINT64_C(1) << scalar_bits(narrow[k]); v += k < 4 ? 1 : 257) {
			ir_constant(&b, ir_scalar_type(narrow[k]), v);
			vec_push(&memory, &expected, v);
		}
	static const uint64_t f32[] = {0, 0x80000000, 0x3f800000, 0x3eaaaaab, 0x7f800000, 0xff800000, 0x7fc00001,
		0x7f800001, 0xffffffff, 1, 0x007fffff, 0x7f7fffff, 0x41200000, 0x4b800000};
	for (unsigned i = 0; i < sizeof f32 / sizeof *f32; i++) {
		ir_constant(&b, ir_scalar_type(SCALAR_F32), f32[i]);
		vec_push(&memory, &expected, f32[i]);
	}
	static const uint64_t wide[] = {0, 1, UINT64_C(1) << 63, UINT64_MAX, UINT64_C(0x7ff8000000000123),
		UINT64_C(0x3fb999999999999a), UINT64_C(0x7fefffffffffffff), UINT64_C(0x7fffffffffffffff)};
	static const scalar wide_types[] = {SCALAR_F64, SCALAR_I64, SCALAR_U64};
	for (unsigned k = 0; k < 3; k++)
		for (unsigned i = 0; i < sizeof wide / sizeof *wide; i++) {
			ir_constant(&b, ir_scalar_type(wide_types[k]), wide[i]);
			vec_push(&memory, &expected, wide[i]);
		}
	ir_constant(&b, ir_scalar_type(SCALAR_BOOL), 1);
	vec_push(&memory, &expected, 1);
	ir_build(&b, IR_RETURN, 0, NULL, 0, NULL, 0);
	const char *s = print(f);
	const ir_func *again = read_text(s);
	assert_string_equal(print(again), s);
	uint32_t i = 0;
	for (const ir_op *o = again->body->first; o->kind == IR_CONST; o = o->next, i++)
		if (ir_get_value(o) != expected.at[i])
			fail_msg("constant %u: %llx became %llx", i, (unsigned long long)expected.at[i],
				(unsigned long long)ir_get_value(o));
	assert_int_equal(i, expected.n);
}

/* Two operations of each kind, with other attributes, rightly typed or not: whatever can be built prints and reads
 * back. */
static void every_operation_has_a_text(void **state)
{
	(void)state;
	ir_func *f = ir_func_new(&memory, "all");
	ir_type t = ir_tile_type(SCALAR_I32, 2, (uint32_t[]){4, 2});
	ir_builder b = {.func = f, .block = f->body};
	ir_value *x = ir_add_param(f, "x", t, (span){0}), *args[] = {x, x, x, x};
	for (unsigned j = 0; j < 2 * IR_KIND_COUNT; j++) {
		unsigned k = j % IR_KIND_COUNT, last = j / IR_KIND_COUNT;
		const ir_op_info *info = &ir_ops[k];
		unsigned nargs = info->args == IR_ANY ? 4 : info->args,
			 nresults = info->results == IR_ANY ? 2 : info->results;
		unsigned nregions = info->regions == IR_ANY ? 1 : info->regions;
		ir_op *o = ir_build(&b, (ir_kind)k, nargs, args, nresults, (ir_type[]){t, t}, nregions);
		for (unsigned i = 0; i < IR_MAX_ATTR; i++) o->attr[i] = (i + last) % 3;
		if (info->regions == IR_ANY) ir_set_combine(o, IR_CUSTOM);
		if (ir_has_attribute(o, IR_ATTR_partition))
			ir_set_partition(o, IR_PARTITION_PRODUCER); /* of two names */
		o->text = "text";
		for (unsigned r = 0; r < nregions; r++)
			for (unsigned i = 0; i < r + k % 2; i++) ir_block_arg(o->regions[r], t, i ? "arg" : NULL);
	}
	const char *s = print(f);
	ir_func *again = read_bytes(s, strlen(s));
	assert_non_null(again);
	assert_string_equal(print(again), s);
	unsigned k = 0;
	for (const ir_op *o = again->body->first; o; o = o->next, k++) assert_int_equal(o->kind, k % IR_KIND_COUNT);
	assert_int_equal(k, 2 * IR_KIND_COUNT);
}

/* Texts that are descriptors, and read back the same; texts that are none. */
static void tensor_maps_have_a_text(void **state)
{
	(void)state;
	static const char *const good[] = {"f16 128 64 32 ; p1 ; p4 ; p3 ; p4 2 *", "tf32 0 4 ; p0 ; 7",
		"i8 0 16 1 1 ; p0 p1 8 * + ; 16 ; p2 ; 3 ; p3 1 * ; p3 p2 * 1 *"};
	static const char *const bad[] = {"", "f16", "f17 0 4 ; p0 ; 4", "f16 0 ; p0", "f16 0 4", "f16 0 4 ; p0",
		"f16 0 0 ; p0 ; 4", "f16 0 4 4 ; p0 ; 4 ; 4 ; p1 4 *", "f16 0 4 4 ; p0 ; 4 ; 4 ; 2 *",
		"f16 0 4 ; p0 ; 4 ; 4", "f16 0 4 x ; p0 ; 4", "f16 0 1 1 1 1 1 ; p0 ; 1 ; 1 ; 1 ; 1 ; 1"};
	ir_tensor_map m, n;
	for (unsigned i = 0; i < sizeof good / sizeof *good; i++) {
		text again = {.arena = &memory};
		if (!ir_tensor_map_read(&memory, good[i], &m)) fail_msg("%s", good[i]);
		ir_tensor_map_print(&again, &m);
		assert_string_equal(again.at, good[i]);
	}
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
		if (ir_tensor_map_read(&memory, bad[i], &m)) fail_msg("accepted: %s", bad[i]);
	/* which arrays are dense, and which maps are of one array */
	static const struct {
		const char *text;
		bool dense, same;
	} rows[] = {
		{"f16 128 64 32 ; p1 ; p4 ; p3 ; p4 2 *", true, true},
		{"f16 0 8 32 ; p1 ; p4 ; p3 ; p4 2 *", true, true},
		{"f16 0 8 32 ; p1 ; p4 ; p3 ; 1 p4 * 2 *", true, false},
		{"f16 0 8 32 ; p1 ; p4 ; p3 ; 1 p5 * 2 *", false, false},
		{"f16 0 8 32 ; p1 ; p4 ; p3 ; p44 2 *", false, false},
		{"f16 0 8 32 ; p1 ; p4 ; p3 ; p4 1 + 2 *", false, false},
		{"f16 0 8 32 ; p2 ; p4 ; p3 ; p4 2 *", true, false},
		{"bf16 0 8 32 ; p1 ; p4 ; p3 ; p4 2 *", true, false},
		{"f16 0 8 ; p1 ; p4", true, false},
		{"f16 0 8 32 1 ; p1 ; 64 ; p8 ; p6 ; 64 2 * ; 64 p8 * 2 *", true, false},
		{"f16 0 8 32 1 ; p1 ; 64 ; p8 ; p6 ; 1 64 * 2 * ; 1 64 * p8 * 2 *", true, false},
		{"f16 0 8 32 1 ; p1 ; 64 ; p8 ; p6 ; 64 2 * ; 64 p7 * 2 *", false, false},
		{"f16 0 8 32 1 ; p1 ; 64 ; p8 ; p6 ; p8 64 * 2 * ; 64 2 *", false, false},
	};
	assert_true(ir_tensor_map_read(&memory, rows[0].text, &m));
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_true(ir_tensor_map_read(&memory, rows[i].text, &n));
		assert_int_equal(ir_tensor_map_is_dense(&n), rows[i].dense);
		assert_int_equal(ir_tensor_map_same_array(&m, &n), rows[i].same);
		assert_int_equal(ir_tensor_map_equal(&m, &n), i == 0);
	}
}

static void names_are_made_unique(void **state)
{
	(void)state;
	ir_func *f = ir_func_new(&memory, "names");
	ir_builder b = {.func = f, .block = f->body};
	static const char *const names[] = {"x", "x", NULL, "not an identifier", "x", "", "1x"};
	for (unsigned i = 0; i < 7; i++) ir_constant_int(&b, SCALAR_I32, i)->name = names[i];
	ir_build(&b, IR_RETURN, 0, NULL, 0, NULL, 0);
	const char *s = print(f);
	for (unsigned i = 0; i < 7; i++) {
		static const char *const expected[] = {"%x", "%x.1", "%0", "%1", "%x.2", "%2", "%3"};
		assert_non_null(strstr(s, arena_printf(&memory, "  %s = const {value=%u} : i32\n", expected[i], i)));
	}
	assert_string_equal(print(read_text(s)), s);
}

/* Any bytes give a function or a diagnostic. */
static void check_bytes(const char *s, size_t n)
{
	uint32_t before = messages.errors;
	messages.limit = UINT32_MAX;
	ir_func *f = read_bytes(s, n);
	assert_int_equal(messages.errors - before, f ? 0 : 1);
	text why = {.arena = &memory};
	if (f && ir_verify(f, &why)) {
		const char *once = print(f);
		ir_func *again = read_bytes(once, strlen(once));
		assert_non_null(again);
		assert_string_equal(print(again), once);
	}
}

static void hostile_bytes_are_diagnosed(void **state)
{
	(void)state;
	static const char *const modules[] = {control, mapped, softmax};
	for (unsigned m = 0; m < 3; m++) {
		size_t n = strlen(modules[m]);
		for (size_t i = 0; i < n; i++) {
			char *s = arena_strndup(&memory, modules[m], n);
			check_bytes(s, i);
			static const char replacements[] = {0, '%', '{', '}', '(', '9', '"', -1, '\n', ',', '-'};
			s[i] = replacements[i % sizeof replacements];
			check_bytes(s, n);
			s[i] ^= (char)(1 << i % 8);
			check_bytes(s, n);
			if (i % 64 == 63) {
				arena_free(&memory);
				diags_init(&messages, &memory);
			}
		}
	}
}

static void deep_nesting_is_an_error(void **state)
{
	(void)state;
	text t = {.arena = &memory};
	text_puts(&t, "func @deep(%c: bool) {\n");
	for (unsigned i = 0; i < 100000; i++) text_puts(&t, "if %c {\n");
	assert_null(read_bytes(t.at, t.n));
	assert_int_equal(messages.errors, 1);
}

static void check_error(const char *s, const char *expected)
{
	uint32_t before = messages.errors;
	assert_null(read_bytes(s, strlen(s)));
	assert_int_equal(messages.errors, before + 1);
	const diag *d = messages.first;
	while (d->next) d = d->next;
	if (!strstr(d->message, expected)) fail_msg("`%s` says `%s`, not `%s`", s, d->message, expected);
}

static void reader_says_what_is_wrong(void **state)
{
	(void)state;
	check_error("", "expected `func`");
	check_error("func f", "expected `@`");
	check_error("func @f(%x: i33) {}", "expected a type");
	check_error("func @f(%x: i32, %x: i32) {}", "a second value of this name");
	check_error("func @f(%x: i32 {odd=1}) {}", "expected `one`");
	check_error("func @f() what=3 {}", "unknown option");
	check_error("func @f() num_warps=-1 {}", "below 2^32");
	check_error("func @f() { %y = neg %x : i32 }", "no value of this name");
	check_error("func @f() { %y = negate %x : i32 }", "name of an operation");
	check_error(
		"func @f(%c: bool) { if %c { %y = const {value=1} : i32 yield } else { print %y {text=none} yield } }",
		"not visible");
	check_error("func @f() { %y = const {value=256} : u8 }", "not a number of this type");
	check_error("func @f() { %y = const {value=1.5} : i32 }", "not a number of this type");
	check_error("func @f() { %y = const {value=1e} : f32 }", "not a number of this type");
	check_error("func @f() { %y = program_id {dim=0} : i32 }", "expected `axis=`");
	check_error("func @f(%x: i32) { %y = hint %x {kind=odd values=[1]} : i32 }", "unknown name");
	check_error("func @f(%x: i32) { %y = hint %x {kind=multiple_of values=[65536]} : i32 }", "above 65535");
	check_error("func @f() { return } return", "text after the function");
	check_error("func @f() { return", "expected `}`");
	check_error("func @f(%x: i32) { print %x {text=\"a", "expected `\"`");
}

/* `body` in a function with one parameter of each common type fails to verify, and the sentence holds `expected`. */
static void check_refused_in(const char *options, const char *body, const char *expected)
{
	const char *s = arena_printf(&memory,
		"func @f(%%i: i32, %%j: i64, %%u: u32, %%x: f32, %%h: f16, %%e: f8e4m3, %%b: bool, %%p: *f32, %%q: "
		"*const f32) "
		"%s {\n%s\n}",
		options, body);
	ir_func *f = read_bytes(s, strlen(s));
	text why = {.arena = &memory};
	if (!f) {
		diag_render_text(&messages, &why);
		fail_msg("%s", why.at);
	}
	if (ir_verify(f, &why)) fail_msg("accepted: %s", body);
	if (!strstr(why.at, expected)) fail_msg("`%s` says `%s`, not `%s`", body, why.at, expected);
}

static void check_refused(const char *body, const char *expected)
{
	check_refused_in("", arena_printf(&memory, "%s\nreturn", body), expected);
}

static void verifier_checks_types(void **state)
{
	(void)state;
	check_refused("%y = add %i, %j : i32", "should be the same type");
	check_refused("%y = add %b, %b : bool", "bool is not an integer or a float");
	check_refused("%y = add %e, %e : f8e4m3", "f8e4m3 is not an integer or a float");
	check_refused("%y = add %p, %p : *f32", "*f32 is not");
	check_refused("%y = add %i : i32", "1 operands where 2 belong");
	check_refused("add %i, %i", "0 results where 1 belong");
	check_refused("%y = rem %x, %x : f32", "f32 is not an integer");
	check_refused("%y = and %x, %x : f32", "not an integer or bool");
	check_refused("%y = shl %b, %b : bool", "bool is not an integer");
	check_refused("%y = exp %i : i32", "i32 is not f16");
	check_refused("%y = exp %e : f8e4m3", "f8e4m3 is not f16");
	check_refused("%y = div_rn %h, %h : f16", "f16 is not f32 or f64");
	check_refused("%y = umulhi %h, %h : f16", "32- or 64-bit integer");
	check_refused("%y = lt %i, %i : i32", "result: i32 and bool");
	check_refused("%y = lt %i, %j : bool", "operands: i32 and i64");
	check_refused("%y = eq %p, %q : bool", "operands: *f32 and *const f32");
	check_refused("%y = select %i, %x, %x : f32", "condition: i32 and bool");
	check_refused("%y = select %b, %x, %h : f32", "second arm: f16 and f32");
	check_refused("%y = convert %p : i64", "*f32 does not convert to i64");
	check_refused("%y = bitcast %x : f16", "differ in bits");
	check_refused("%y = bitcast %p : i32", "differ in bits");
	check_refused("%y = bitcast %i : bool", "differ in bits");
	check_refused("%y = ptr_add %i, %p : i32", "*f32 does not add to i32");
	check_refused("%y = ptr_add %p, %x : *f32", "f32 does not add to *f32");
	check_refused("%y = ptr_add %p, %i : *const f32", "result: *f32 and *const f32");
	check_refused("%y = const {value=0x1} : *f32", "*f32 is not a number");
	check_refused("%y = const {value=0x1ff} : u8", "0x1ff does not fit u8");
	check_refused("%y = program_id {axis=3} : i32", "axis 3");
	check_refused("%y = program_id {axis=0} : i64", "the result is i64");
	check_refused("%y = arange {lo=0} : i32", "the result is i32");
	check_refused("%y = arange {lo=2147483647} : i32[2]", "does not fit i32");
	check_refused("%y = splat %x : f32[131]", "extent 131 is not an odd number up to 127 times a power of two");
	check_refused("%y = splat %x : f32[0]", "extent 0");
	check_refused("%y = splat %x : f32[2048,1024]", "more than 1048576 elements");
	check_refused("%y = splat %x : f16[4]", "f32 does not become f16[4]");
	check_refused("%y = splat %x : f32", "f32 does not become f32");
	check_refused("%y = assume %b : bool", "1 results where 0 belong");
	check_refused("assume %i", "i32 is not a bool scalar");
	check_refused("assert %i {text=\"\"}", "i32 is not bool");
	check_refused("assert %b {text=none}", "no text");
	check_refused("%y = splat %x : f32[4,2]\n%z = expand_dims %y {axis=3} : f32[4,2,1]", "does not become");
	check_refused("%y = splat %x : f32[4,2]\n%z = expand_dims %y {axis=1} : f32[1,4,2]", "does not become");
	check_refused("%y = splat %x : f32[4,2]\n%z = broadcast %y : f32[4,4]", "does not become");
	check_refused("%y = splat %x : f32[4,2]\n%z = reshape %y : f32[4]", "does not become");
	check_refused("%y = splat %x : f32[4,2]\n%z = permute %y {order=[1,0]} : f32[4,2]", "does not become");
	check_refused("%y = splat %x : f32[4,4]\n%z = permute %y {order=[1,1]} : f32[4,4]", "does not become");
	check_refused("%y = splat %x : f32[4,4]\n%z = permute %y {order=[120,0]} : f32[4,4]", "does not become");
	check_refused("%y = splat %x : f32[4]\n%z = add %y, %x : f32[4]", "f32 and f32[4] should be the same type");
}

static void verifier_checks_memory(void **state)
{
	(void)state;
	check_refused("%y = load %x : f32", "f32 is not a pointer");
	check_refused("%y = load %p : f16", "f16 and f32");
	check_refused("%y = load %p, %i : f32", "mask: i32 and bool");
	check_refused("%y = load %p, %b, %h : f32", "other: f16 and f32");
	check_refused("%y = load %p, %b, %x, %x : f32", "4 operands");
	check_refused("store %p, %h", "f16 and f32");
	check_refused("store %q, %x", "writes through *const f32");
	check_refused("store %p, %x, %i", "mask: i32 and bool");
	check_refused("store %p", "1 operands");
}

static void verifier_checks_reductions(void **state)
{
	(void)state;
#define TILE "%t = splat %x : f32[4,2]\n"
	check_refused(TILE "%y = reduce %t {axis=2 combine=sum} : f32[4]", "axis 2 of f32[4,2]");
	check_refused(TILE "%y = reduce %x {axis=0 combine=sum} : f32", "axis 0 of f32");
	check_refused(TILE "%y = reduce %t {axis=1 combine=sum} : f32[2]", "result: f32[2] and f32[4]");
	check_refused(TILE "%y = reduce %t {axis=1 combine=all} : f32[4]", "combine=all of f32[4,2]");
	check_refused(TILE "%y = reduce %t {axis=1 combine=xor} : f32[4]", "combine=xor of f32[4,2]");
	check_refused(
		TILE "%y, %z = reduce %t, %t {axis=1 combine=sum} : f32[4], f32[4]", "do not go with combine=sum");
	check_refused(TILE "%y = reduce %t, %t {axis=1 combine=sum} : f32[4]", "1 results of 2 operands");
	check_refused(
		TILE "%y = reduce %t {axis=1 combine=custom} : f32[4] (%a: f32) { yield %a }", "1 block arguments");
	check_refused(
		TILE "%y = reduce %t {axis=1 combine=custom} : f32[4] (%a: f32, %c: f16) { yield %a }", "f16 and f32");
	check_refused(
		TILE "%y = reduce %t {axis=1 combine=custom} : f32[4] (%a: f32, %c: f32) { yield %b }", "bool and f32");
	check_refused(TILE "%y = reduce %t {axis=1 combine=custom} : f32[4] (%a: f32, %c: f32) { yield }", "yields 0");
	check_refused(TILE "%y = reduce %t {axis=1 combine=custom} : f32[4] (%a: f32, %c: f32) {"
			   "store %p, %a yield %a }",
		"reads or writes memory");
#undef TILE
}

static void verifier_checks_rearrangement(void **state)
{
	(void)state;
#define TILES "%t = splat %x : f32[4,2] %o = splat %i : i32[4,2] %m = splat %b : bool[4,2] "
	check_refused("%y = join %x, %h : f32[2]", "operands: f32 and f16");
	check_refused("%y = join %x, %x : f32[4]", "joined: f32[4] and f32[2]");
	check_refused("%y = join %p, %p : (*f32)[2]", "operand of type *f32");
	check_refused("%t = splat %x : f32[2,2,2,2] %y = join %t, %t : f32[4]", "operand of type f32[2,2,2,2]");
	check_refused(TILES "%y, %z = split %t : f32[4], i32[4]", "results: f32[4] and i32[4]");
	check_refused(TILES "%y, %z = split %t : f32[8], f32[8]", "joined: f32[4,2] and f32[8,2]");
	check_refused(TILES "%y = split %t : f32[4]", "1 results where 2 belong");
#define AB "%a = splat %h : f16[16,32] %c = splat %h : f16[32,8] %k = splat %x : f32[32,8] "
	check_refused(AB "%y = dot %a : f32[16,32]", "1 operands");
	check_refused(AB "%y = dot %a, %a : f32[16,32]", "do not multiply to f32[16,32]");
	check_refused(AB "%y = dot %a, %k : f32[16,8]", "f16[16,32] and f32[32,8] do not multiply");
	check_refused(AB "%y = dot %a, %c : f32[8,16]", "do not multiply to f32[8,16]");
	check_refused(AB "%y = dot %a, %c : f64[16,8]", "the result is f64[16,8]");
	check_refused(AB "%y = dot %a, %c, %a : f32[16,8]", "accumulator");
	check_refused(AB "%y = wgmma %a : f32[16,8]", "1 operands");
	check_refused(AB "%y = wgmma %a, %c {transposed=4} : f32[16,8]", "transposed=4");
	check_refused(AB "%y = wgmma %a, %c {transposed=1} : f32[16,8]", "a tile that is no multibuffer is transposed");
	check_refused(AB "%y = wgmma %a, %c : f16[16,8]", "do not multiply to f16[16,8]");
	check_refused(AB "%y = wgmma %a, %k : f32[16,8]", "f16[16,32] and f32[32,8] do not multiply");
	check_refused(AB "%y = wgmma %a, %c, %a : f32[16,8]", "sum");
	check_refused(AB "%y = wgmma_wait {pending=0} : f32[16,8]", "1 results of 0 operands");
	check_refused(AB "sched_barrier", "no operands");
	check_refused(AB "sched_barrier %a", "operand");
	check_refused(AB "fake_use", "no operands");
	check_refused(AB "fake_use %x", "no tile of 2 or 4 bytes");
	check_refused(AB "%y = wgmma_wait %k {pending=-1} : f32[32,8]", "pending=-1");
	check_refused(AB "%y = wgmma_wait %k {pending=0} : f32[16,8]", "result");
	check_refused(AB "%left = splat %i : i32[16,32] %right = splat %i : i32[32,8] %y = dot %left, %right "
			 " : i32[16,8]",
		"do not multiply");
	check_refused("%a = splat %h : f16[2,16,32] %c = splat %h : f16[4,32,8] %y = dot %a, %c : f32[2,16,8]",
		"do not multiply");
#undef AB
	check_refused(TILES "%y = gather %t, %o {axis=2} : f32[4,2]", "axis 2 of f32[4,2]");
	check_refused(TILES "%y = gather %t, %t {axis=1} : f32[4,2]", "f32[4,2] does not index f32[4,2]");
	check_refused(TILES "%n = splat %i : i32[8,2] %y = gather %t, %n {axis=1} : f32[8,2]", "does not index");
	check_refused(TILES "%n = splat %i : i32[4] %y = gather %t, %n {axis=1} : f32[4]", "does not index");
	check_refused(TILES "%n = splat %i : i32[8,2] %y = gather %t, %n {axis=0} : f32[4,2]", "result: ");
	check_refused(TILES "%y = histogram %t : i32[16]", "operand of type f32[4,2]");
	check_refused(TILES "%y = histogram %i : i32[16]", "operand of type i32");
	check_refused(TILES "%y = histogram %o : i32[16,2]", "the result is i32[16,2]");
	check_refused(TILES "%y = histogram %o : i64[16]", "the result is i64[16]");
	check_refused(TILES "%y = histogram %o, %o : i32[16]", "mask: i32[4,2] and bool[4,2]");
	check_refused(TILES "%y = histogram %o, %m, %m : i32[16]", "3 operands");
#define POPC "\"=r,r\\npopc.b32 $0, $1;\""
	check_refused(TILES "%y = inline_asm %o {pack=3 text=" POPC "} : i32[4,2]", "pack=3");
	check_refused(TILES "%y = inline_asm %o {pack=1 text=" POPC "} : i32[8]", "operand or result of type i32[8]");
	check_refused("%y = inline_asm %p {pack=1 text=" POPC "} : i32", "operand or result of type *f32");
	check_refused("inline_asm %i {pack=1 text=" POPC "}", "0 results of 1 operands");
	check_refused("%y = inline_asm %i {pack=1 text=\"=r,r\"} : i32", "no line of constraints");
	check_refused("%y = inline_asm %j {pack=1 text=" POPC "} : i32", "'r' does not hold i64: 'l' does");
#undef POPC
#undef TILES
}

static void verifier_checks_control_flow(void **state)
{
	(void)state;
#define FOR " "
	check_refused("if %i { yield } else { yield }", "the condition is i32");
	check_refused("%y = if %b : i32 { yield %i } else { yield }", "0 values where 1 belong");
	check_refused("%y = if %b : i32 { yield %i } else { yield %x }", "f32 and i32");
	check_refused("if %b (%a: i32) { yield } else { yield }", "block arguments");
	check_refused("if %b { } else { yield }", "does not end in yield");
	check_refused("if %b { return } else { yield }", "does not end in yield");
	check_refused("if %b { yield yield } else { yield }", "in the middle");
	check_refused("for %i, %i" FOR "(%k: i32) { yield }", "2 operands");
	check_refused("for %x, %x, %x" FOR "(%k: f32) { yield }", "the lower bound is f32");
	check_refused("for %i, %j, %i" FOR "(%k: i32) { yield }", "upper bound: i64 and i32");
	check_refused("for %i, %i, %j" FOR "(%k: i32) { yield }", "step: i64 and i32");
	check_refused("for %i, %i, %i" FOR "(%k: i64) { yield }", "induction variable: i64 and i32");
	check_refused("for %i, %i, %i" FOR "{ yield }", "no induction variable");
	check_refused("for %i, %i, %i, %x" FOR "(%k: i32) { yield }", "1 values where 0 belong");
	check_refused("%y = for %i, %i, %i, %x" FOR ": f32 (%k: i32) { yield %x }", "1 block arguments where 2");
	check_refused("%y = for %i, %i, %i, %x" FOR ": f32 (%k: i32, %a: f32) { yield %k }", "yield: i32 and f32");
	check_refused("while %i (%a: i32) { yield } do { yield %i }", "does not end in condition");
	check_refused("while %i (%a: i32) { condition %a } do { yield %i }", "not a bool scalar");
	check_refused("while %i { condition %b } do { yield %i }", "0 block arguments for 1");
	check_refused("while %i (%a: i32) { condition %b, %a } do { yield %i }", "1 values where 0 belong");
	check_refused(
		"%y = while %i : i32 (%a: i32) { condition %b, %a } do { yield %i }", "0 block arguments where 1");
	check_refused("%y = while %i : i32 (%a: i32) { condition %b, %a } do (%c: i32) { yield %x }", "f32 and i32");
	check_refused_in("", "if %b { yield } else { yield }", "does not end in return");
	check_refused_in("num_warps=3", "return", "num_warps");
#undef FOR
}

static void verifier_checks_levels(void **state)
{
	(void)state;
#define REG "<reg (1) lane (2)(4)(8)(16)(32) warp ()>"
#define LANE "<reg (32) lane (1)(2)(4)(8)(16) warp ()>"
	check_refused("%y = convert_layout %x : f32", "at the tile level");
	check_refused("%m = tensor_map %q {map=\"f32 0 4 ; p8 ; 4\"} : *f32", "*f32");
	check_refused("%r = ptr_add %q, %i : *const f32 %m = tensor_map %r {map=\"f32 0 4 ; p8 ; 4\"} : *const f32",
		"something else than a pointer parameter");
	check_refused("%t = bulk_load %q, %i, %i {shares=1} : f32[4,4]", "no tensor map");
	check_refused("%m = tensor_map %q {map=\"f32 0 4 ; p8 ; 4\"} : *const f32 %t = bulk_load %m, %i {shares=1} : "
		      "f32[4,4]",
		"2 operands");
	check_refused("%m = tensor_map %q {map=\"f32 0 4 ; p8 ; 4\"} : *const f32 %t = bulk_load %m, %i, %j {shares=1} "
		      ": f32[4,4]",
		"index");
	check_refused("%m = tensor_map %q {map=\"f32 0 4 ; p8 ; 4\"} : *const f32 %t = bulk_load %m, %i, %i {shares=1} "
		      ": f16[4,4]",
		"f16[4,4]");
	check_refused("%m = tensor_map %q {map=\"f32 0 4 ; p8 ; 4\"} : *const f32 %z = const {value=0.0} : f32[4,4] "
		      "bulk_store %m, %z, %i, %i",
		"writes through *const f32");
	check_refused("cta_barrier", "stands at the tile level");
	check_refused("%y = mbarriers {count=2 arrivals=1} : i32", "stands at the tile level");
	check_refused("%y = splat %x : f32[64] " REG, "a layout at the tile level");
#define MAPPED "level=mapped num_warps=1"
#define BLOCK " : f16[8,64] <reg (0,1)(0,2)(0,4)(4,0) lane (0,8)(0,16)(0,32)(1,0)(2,0) warp ()>"
	check_refused_in(MAPPED, "%y = mbarriers {count=0 arrivals=1} : i32 return", "count=0");
	check_refused_in(MAPPED, "%y = mbarriers {count=2 arrivals=1} : i64 return", "i64");
	check_refused_in(MAPPED, "mbarrier_wait %i, %i, %i return", "no barriers");
	check_refused_in(MAPPED, "%y = mbarriers {count=2 arrivals=1} : i32 mbarrier_wait %y, %i, %j return", "parity");
	check_refused_in(MAPPED,
		"%y = mbarriers {count=2 arrivals=1} : i32 mbarrier_expect %y, %i {bytes=1048576} return", "bytes=");
	check_refused_in(MAPPED, "mbarriers_end %i return", "no barriers");
	check_refused_in(MAPPED,
		"%r = multibuffer {stages=2 swizzle=128 fast=1}" BLOCK " %y = mbarriers {count=2 arrivals=1} : i32 "
		"bulk_copy %r, %i, %y, %q, %i, %i {shares=1} return",
		"no multibuffer, or no tensor map");
	check_refused_in(MAPPED,
		"%r = multibuffer {stages=2 swizzle=128 fast=1}" BLOCK " %y = mbarriers {count=2 arrivals=1} : i32 "
		"%m = tensor_map %q {map=\"f32 0 4 ; p8 ; 4\"} : *const f32 bulk_copy %r, %i, %y, %m, %i, %i "
		"{shares=1} return",
		"for a block of type f16[8,64]");
	check_refused_in(MAPPED,
		"%r = multibuffer {stages=2 swizzle=128 fast=1}" BLOCK " %y = mbarriers {count=2 arrivals=1} : i32 "
		"%m = tensor_map %q {map=\"f16 0 4 ; p8 ; 4\"} : *const f16 bulk_copy %r, %i, %y, %m, %i, %i, %i "
		"{shares=2} "
		"return",
		"");
	check_refused_in(MAPPED, "%y = mbarriers {count=2 arrivals=1} : i32 mbarrier_arrive %y, %i {programs=2} return",
		"2 operands");
#undef MAPPED
#undef BLOCK
	check_refused_in("level=mapped num_warps=1", "%y = splat %x : f32[64] return", "a tile without a layout");
	check_refused_in("level=mapped num_warps=2", "%y = splat %x : f32[64] " REG " return", "num_warps warps");
	check_refused_in("level=mapped num_warps=1",
		"%y = splat %x : f32[64] " REG " %z = neg %y : f32[64] " LANE " return", "must share a layout");
	check_refused_in("level=mapped num_warps=1",
		"%y = splat %x : f32[64] " REG " %z = if %b : f32[64] " LANE " { yield %y } else { yield %y } return",
		"must share a layout");
	check_refused_in("level=scheduled num_warps=1 shared_bytes=64",
		"%y = splat %x : f32[64] " REG " %z = convert_layout %y : f32[64] " LANE " shared(32, 64) return",
		"outside the shared memory");
	static const char *const scheduled[] = {"turn_wait", "turn_pass"};
	for (unsigned i = 0; i < 2; i++) {
		char code[32];
		snprintf(code, sizeof code, "%s return", scheduled[i]);
		check_refused(scheduled[i], "in front of the scheduled level");
		check_refused_in("level=mapped num_warps=1", code, "in front of the scheduled level");
	}
#undef REG
#undef LANE
}

/* Broken links that no text can write. */
static void verifier_checks_links(void **state)
{
	(void)state;
	text why = {.arena = &memory};
	ir_func *f = read_text(control);
	ir_op *loop = f->body->first->next->next->next;
	assert_int_equal(loop->kind, IR_FOR);
	ir_value *inner = loop->regions[0]->args[1];
	ir_op *print_op = f->body->last->prev->prev->prev->prev;
	assert_int_equal(print_op->kind, IR_PRINT);

	ir_value *before = ir_arg(print_op, 0);
	ir_set_arg(print_op, 0, inner); /* leaves its region */
	assert_false(ir_verify(f, &why));
	assert_non_null(strstr(why.at, "operand 0 is not defined before it"));
	ir_set_arg(print_op, 0, before);
	check_verifies(f);

	ir_use *u = before->uses; /* a use that the list forgets */
	before->uses = NULL;
	assert_false(ir_verify(f, &why));
	before->uses = u;
	check_verifies(f);

	loop->results[0]->index = 7;
	assert_false(ir_verify(f, &why));
	loop->results[0]->index = 0;
	uint32_t id = loop->results[0]->id;
	loop->results[0]->id = inner->id;
	assert_false(ir_verify(f, &why));
	loop->results[0]->id = id;
	f->params[0].type = ir_scalar_type(SCALAR_F64);
	assert_false(ir_verify(f, &why));
}

static void clones_print_the_same(void **state)
{
	(void)state;
	ir_func *f = read_text(control);
	ir_op *loop = f->body->first->next->next->next;
	ir_value **map = ARENA_ARRAY(&memory, ir_value *, f->nvalues);
	ir_builder b = {.func = f, .block = f->body, .before = loop};
	ir_op *copy = ir_clone(&b, loop, map);
	check_verifies(f);
	for (unsigned i = 0; i < loop->nresults; i++) ir_replace(loop->results[i], copy->results[i]);
	ir_erase(loop);
	check_verifies(f);
	assert_string_equal(print(f), control);
}

/* Which parameters a body may write through, as a string of their names. */
static void check_written(const char *body, const char *expected)
{
	ir_func *f = read_text(arena_printf(&memory,
		"func @f(%%a: *f32, %%b: *f32, %%c: *const f32, %%n: i32, %%t: bool, %%l: i64) { %s return }", body));
	char got[8] = "";
	for (unsigned i = 0; i < f->nparams; i++)
		if (ir_find_effects(f).written[i]) strcat(got, f->params[i].name);
	if (strcmp(got, expected) != 0) fail_msg("`%s` writes `%s`, not `%s`", body, got, expected);
}

static void written_parameters_are_found(void **state)
{
	(void)state;
#define X "%x = const {value=1.0} : f32 "
#define STORE " "
	check_written("", "");
	check_written("%x = load %a : f32", "");
	check_written(X "store %a, %x" STORE, "a");
	check_written(X "%p = ptr_add %b, %n : *f32 store %p, %x" STORE, "b");
	check_written(X "%p = splat %b : (*f32)[4] %q = expand_dims %p {axis=0} : (*f32)[1,4] %y = splat %x : f32[1,4] "
			"store %q, %y" STORE,
		"b");
	check_written(X "%p = select %t, %a, %b : *f32 store %p, %x" STORE, "ab");
	check_written(X "%p = bitcast %l : *f32 store %p, %x" STORE, "ab");
	check_written(X "%p = if %t : *f32 { yield %a } else { yield %b } store %p, %x" STORE, "ab");
	check_written(X "%p = for %n, %n, %n, %a : *f32 (%i: i32, %q: *f32) {"
			"store %q, %x" STORE "yield %b }",
		"ab");
	/* two rounds: b reaches the store through a second carried pointer */
	check_written(X "%p, %o = for %n, %n, %n, %a, %a : *f32, *f32 "
			"(%i: i32, %q: *f32, %r: *f32) { store %q, %x" STORE "yield %r, %b }",
		"ab");
	check_written(X
		"%p = while %a : *f32 (%q: *f32) { condition %t, %q } do (%r: *f32) { yield %b } store %p, %x" STORE,
		"ab");
#undef X
#undef STORE
}

/* Through which parameters' addresses a body may write, as their names, `*` for those of none; `-`: it touches none,
 * `+`: it only reads there. */
static void check_addresses(const char *body, const char *expected)
{
	ir_func *f = read_text(arena_printf(&memory,
		"func @f(%%a: *f32, %%g: *i64, %%h: *const i64, %%k: *i32, %%n: i32, %%l: i64, %%m: i64, %%t: bool) { "
		"%%x = const {value=1.0} : f32 %s return }",
		body));
	char got[16] = "";
	ir_effects e = ir_find_effects(f);
	for (unsigned i = 0; i < f->nparams; i++)
		if (e.written_through[i]) strcat(got, f->params[i].name);
	if (e.written_anywhere) strcat(got, "*");
	if (!got[0]) strcat(got, e.addresses ? "+" : "-");
	if (strcmp(got, expected) != 0) fail_msg("`%s`: `%s`, not `%s`", body, got, expected);
}

static void addresses_are_traced(void **state)
{
	(void)state;
#define AT(i) " %p = bitcast " i " : *f32 store %p, %x"
#define LOAD_H "%v = load %h : i64 "
	check_addresses("store %a, %x", "-");
	check_addresses("%v = load %g : i64", "-");
	check_addresses(LOAD_H "store %g, %v", "-"); /* a number like others */
	check_addresses("%p = bitcast %l : *f32 %y = load %p : f32", "+");
	check_addresses(LOAD_H "%p = bitcast %v : *const f32 %y = load %p : f32 store %a, %y", "+");
	check_addresses(LOAD_H AT("%v"), "h");
	check_addresses(AT("%l"), "l");
	/* where in the table it lies, where behind it, and whether, is no address */
	check_addresses("%q = ptr_add %h, %l : *const i64 %v = load %q, %t, %m : i64" AT("%v"), "hm");
	check_addresses(LOAD_H "%u = bitcast %v : *f32 %p = ptr_add %u, %l : *f32 store %p, %x", "h");
	check_addresses("%w = convert %n : i64 %v = add %l, %w : i64" AT("%v"), "l");
	check_addresses("%w = mul %m, %m : i64 %v = add %l, %w : i64" AT("%v"), "l");
	check_addresses("%v = add %l, %m : i64" AT("%v"), "lm");
	check_addresses("%v = select %t, %l, %m : i64" AT("%v"), "lm");
	check_addresses(LOAD_H "%v2 = if %t : i64 { yield %v } else { yield %l }" AT("%v2"), "hl");
	check_addresses("for %l, %m, %m (%i: i64) { %p = bitcast %i : *f32 store %p, %x yield }", "l");
	/* a table of tables, one whose own address is a number, and a buffer by way of a number */
	check_addresses(LOAD_H "%q = bitcast %v : *i64 %w = load %q : i64" AT("%w"), "h");
	check_addresses("%q = bitcast %l : *i64 %w = load %q : i64" AT("%w"), "l");
	check_addresses("%v = bitcast %a : i64" AT("%v"), "-");
	check_addresses(
		"%z = const {value=0} : i64 %v = atomic_rmw %g, %z {rmw=add sem=relaxed scope=gpu} : i64" AT("%v"),
		"g*");
	/* several at once: a tile of addresses, their greatest */
	check_addresses(
		"%s = splat %h : (*const i64)[4] %v = load %s : i64[4] %w = reduce %v {axis=0 combine=max} : i64" AT(
			"%w"),
		"h");
	/* of no parameter: a number of the program's, halves of an address, a table that the kernel fills */
	check_addresses("%z = const {value=4096} : i64" AT("%z"), "*");
	check_addresses("%d = load %k : i32 %v = convert %d : i64" AT("%v"), "*");
	check_addresses("%z = const {value=4} : i64 %v = div %l, %z : i64 %w = mul %v, %z : i64" AT("%w"), "*");
	check_addresses(LOAD_H "store %g, %v %w = load %g : i64" AT("%w"), "g*");
	check_addresses(LOAD_H AT("%v") " %p2 = bitcast %l : *f32 store %p2, %x", "hl");
#undef AT
#undef LOAD_H
}

/* docs/ir.md names every operation. */
static const char *page(const char *path)
{
	FILE *in = fopen(path, "rb");
	if (!in) fail_msg("run from the top of the tree: %s is not here", path);
	text doc = {.arena = &memory};
	char buffer[4096];
	for (size_t n; (n = fread(buffer, 1, sizeof buffer, in)) > 0;) text_add(&doc, buffer, n);
	fclose(in);
	return doc.at;
}

static void documented(void **state)
{
	(void)state;
	const char *ir = page("docs/ir.md"), *language = page("docs/language.md");
	for (unsigned k = 0; k < IR_KIND_COUNT; k++) {
		bool builtin = ir_ops[k].flags & IR_BUILTIN;
		const char *what = arena_printf(&memory, builtin ? "`%s(" : "`%s`", ir_ops[k].name);
		if (!strstr(builtin ? language : ir, what)) fail_msg("docs say nothing of %s", what);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(round_trips),
		TEST(comments_and_spaces_do_not_matter),
		TEST(constants_are_exact),
		TEST(every_operation_has_a_text),
		TEST(tensor_maps_have_a_text),
		TEST(names_are_made_unique),
		TEST(hostile_bytes_are_diagnosed),
		TEST(deep_nesting_is_an_error),
		TEST(reader_says_what_is_wrong),
		TEST(verifier_checks_types),
		TEST(verifier_checks_memory),
		TEST(verifier_checks_reductions),
		TEST(verifier_checks_rearrangement),
		TEST(verifier_checks_control_flow),
		TEST(verifier_checks_levels),
		TEST(verifier_checks_links),
		TEST(clones_print_the_same),
		TEST(written_parameters_are_found),
		TEST(addresses_are_traced),
		TEST(documented),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
