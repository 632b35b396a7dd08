/* The rules of the tile IR, one row each: a text that breaks exactly one rule, and the sentence the verifier says; next
 * to it what just keeps the rule.  test_ir.c has the common ones. */
#include "ir_text.h"

#include "../../compiler/layout/layout.h"

typedef struct row {
	const char *body, *says; /* says null: it verifies */
} row;

static void check_rows(const char *options, const row *rows, unsigned n)
{
	unsigned wrong = 0;
	for (unsigned i = 0; i < n; i++) {
		const char *s = arena_printf(&memory,
			"func @f(%%i: i32, %%j: i64, %%u: u32, %%x: f32, %%h: f16, %%e: f8e4m3, %%b: bool, %%p: *f32, "
			"%%q: *const f32, %%c: i8) %s {\n%s\nreturn\n}",
			options, rows[i].body);
		ir_func *f = read_bytes(s, strlen(s));
		text why = {.arena = &memory};
		if (!f) {
			diag_render_text(&messages, &why);
			print_error("%s", why.at);
			wrong++;
			continue;
		}
		bool good = ir_verify(f, &why);
		if (good == !rows[i].says && (good || strstr(why.at, rows[i].says))) continue;
		print_error("`%s`\n  %s\n  instead of: %s\n", rows[i].body, good ? "verifies" : why.at,
			rows[i].says ? rows[i].says : "verifies");
		wrong++;
	}
	assert_int_equal(wrong, 0);
}
#define CHECK(options, rows) check_rows(options, rows, sizeof(rows) / sizeof *(rows))

static void values(void **state)
{
	(void)state;
	static const row rows[] = {
		{"%y = div_rn %p, %p : *f32", "*f32 is not f32 or f64"},
		{"%y = max %e, %e : f8e4m3", "f8e4m3 is not a number that computes"},
		{"%y = max %p, %p : *f32", "*f32 is not a number that computes"},
		{"%y = max %b, %b : bool", NULL},
		{"%y = not %p : *f32", "*f32 is not an integer or bool"},
		{"%y = umulhi %c, %c : i8", "i8 is not a 32- or 64-bit integer"},
		{"%y = umulhi %j, %j : i64", NULL},
		{"assume %p", "*f32 is not a bool scalar"},
		{"%m = splat %b : bool[4] assume %m", "bool[4] is not a bool scalar"},
		{"%y = bitcast %x : f32[1]", "differ in bits or shape"},
		{"%y = bitcast %i : *f32", "differ in bits or shape"},
		{"%y = bitcast %p : f32", "differ in bits or shape"},
		{"%y = bitcast %x : *f32", "differ in bits or shape"},
		{"%y = bitcast %j : *f32", NULL},
		{"%y = convert %x : *f32", "f32 does not convert to *f32"},
		{"%y = convert %x : f16[4]", "f32 does not convert to f16[4]"},
		{"%t = splat %p : (*f32)[4] %y = ptr_add %t, %i : (*f32)[4]", "i32 does not add to (*f32)[4]"},
		{"%y = select %b, %h, %x : f32", "first arm: f16 and f32"},
		{"%y = const {value=0xffff} : f16", NULL},
		{"%y = program_id {axis=-1} : i32", "axis=-1"},
		{"%y = program_id {axis=2} : i32", NULL},
		{"%y = num_programs {axis=3} : i32", "axis 3"},
		{"%y = program_id {axis=0} : i32[4]", "the result is i32[4]"},
		{"%y = program_id {axis=0} : *i32", "the result is *i32"},
		{"%y = arange {lo=-2147483649} : i32[2]", "does not fit i32"},
		{"%y = arange {lo=2147483646} : i32[2]", NULL},
		{"%y = arange {lo=-2147483648} : i32[2]", NULL},
		{"%y = arange {lo=0} : f32[2]", "the result is f32[2]"},
		{"%y = splat %x : f32[2097152]", "up to 127 times a power of two up to 1048576"},
		{"%y = splat %x : f32[1048576]", NULL},
		{"%y = splat %p : f32[4]", "*f32 does not become f32[4]"},
		{"%t = splat %x : f32[4] %y = splat %t : f32[4]", "f32[4] does not become f32[4]"},
		{"%y = hint %i {kind=multiple_of values=[1]} : i64", "operand and result: i32 and i64"},
	};
	CHECK("", rows);
}

static void shapes(void **state)
{
	(void)state;
#define T "%t = splat %x : f32[4,2] "
	static const row rows[] = {
		{T "%y = expand_dims %t {axis=-1} : f32[1,4,2]", "axis=-1"},
		{T "%y = expand_dims %t {axis=0} : f32[4,2]", "f32[4,2] does not become f32[4,2]"},
		{T "%y = expand_dims %t {axis=0} : f16[1,4,2]", "f32[4,2] does not become f16[1,4,2]"},
		{T "%y = expand_dims %t {axis=0} : f32[2,4,2]", "f32[4,2] does not become f32[2,4,2]"},
		{T "%y = expand_dims %t {axis=2} : f32[4,2,1]", NULL},
		{T "%y = broadcast %t : f32[1,4,2]", "does not become f32[1,4,2]"},
		{T "%y = broadcast %t : f16[4,2]", "does not become f16[4,2]"},
		{"%y = broadcast %x : f32", "f32 does not become f32"},
		{T "%y = reshape %t : f16[8]", "does not become f16[8]"},
		{T "%y = reshape %t : f32[8]", NULL},
		{T "%y = permute %t {order=[1,0]} : f16[2,4]", "does not become f16[2,4]"},
		{T "%y = permute %t {order=[0]} : f32[4]", "does not become f32[4]"},
		{T "%y = permute %t {order=[2,0]} : f32[2,4]", "does not become f32[2,4]"},
		{"%y = permute %x {order=[0]} : f32", "f32 does not become f32"},
		{T "%y = permute %t {order=[1,0]} : f32[2,4]", NULL},
		{T "%y = flip %t {axis=2} : f32[4,2]", "axis 2 of f32[4,2]"},
		{T "%y = flip %t {axis=-1} : f32[4,2]", "axis=-1"},
		{T "%y = flip %t {axis=1} : f32[2,4]", "result: f32[2,4] and f32[4,2]"},
		{T "%y = sort %t {axis=2 descending=0 k=0} : f32[4,2]", "axis 2 of f32[4,2]"},
		{T "%y = sort %t {axis=-1 descending=0 k=0} : f32[4,2]", "axis=-1"},
		{T "%y = sort %t {axis=0 descending=0 k=3} : f32[4,2]", "k=3"},
		{T "%y = sort %t {axis=0 descending=0 k=8} : f32[8,2]", "k=8"},
		{T "%y = sort %t {axis=0 descending=0 k=-1} : f32[4,2]", "k=-1"},
		{T "%y = sort %t {axis=0 descending=0 k=2} : f32[4,2]", "result: f32[4,2] and f32[2,2]"},
		{T "%y = sort %t {axis=0 descending=0 k=4} : f32[4,2]", NULL},
		{"%t = splat %p : (*f32)[4] %y = sort %t {axis=0 descending=0 k=0} : (*f32)[4]",
			"operand of type (*f32)[4]"},
		{T "%y = gather %t, %t {axis=-1} : f32[4,2]", "axis=-1"},
		{"%t = splat %p : (*f32)[4] %n = splat %i : i32[4] %y = gather %t, %n {axis=0} : (*f32)[4]",
			"i32[4] does not index (*f32)[4]"},
		{"%n = splat %i : i32[4] %y = histogram %n : *i32[4]", "the result is (*i32)[4]"},
	};
	CHECK("", rows);
#undef T
}

static void memory_access(void **state)
{
	(void)state;
#define AT " {cache=none evict=none volatile=0} "
#define D2 ", %i, %i, %i, %i, %i, %i "
	static const row rows[] = {
		{"%y = load" AT ": f32", "0 operands"},
		{"store %p, %x, %b, %b {cache=none evict=none}", "4 operands"},
		{"%y = atomic_rmw %p {rmw=add sem=relaxed scope=gpu} : f32", "1 operands"},
		{"%y = atomic_rmw %p, %x, %b, %b {rmw=add sem=relaxed scope=gpu} : f32", "4 operands"},
		{"%y = atomic_rmw %p, %x {rmw=xchg sem=acq_rel scope=sys} : f32", NULL},
		{"%y = atomic_rmw %q, %x {rmw=add sem=relaxed scope=gpu} : f32", "writes through *const f32"},
		{"%y = atomic_rmw %p, %h {rmw=add sem=relaxed scope=gpu} : f32",
			"value and pointer's element: f16 and f32"},
		{"%y = atomic_rmw %p, %x {rmw=add sem=relaxed scope=gpu} : f16", "result: f16 and f32"},
		{"%y = atomic_cas %p, %x, %h {sem=relaxed scope=gpu} : f32", "values: f16 and f32"},
		{"%y = atomic_cas %p, %x {sem=relaxed scope=gpu} : f32", "2 operands"},
		{"%y = atomic_cas %p, %x, %x, %i {sem=relaxed scope=gpu} : f32", "mask: i32 and bool"},
		{"%y = tensor_load : f32[4,4]", "0 operands"},
		{"tensor_store %p", "1 operands"},
		{"%y = tensor_load %x" D2 ": f32[4,4]", "the base is f32"},
		{"%t = splat %p : (*f32)[4] %y = tensor_load %t" D2 ": f32[4,4]", "the base is (*f32)[4]"},
		{"%z = splat %x : f32[4,4] tensor_store %q, %z" D2, "the base is *const f32"},
		{"%y = tensor_load %p" D2 ": f16[4,4]", "a block of type f16[4,4] behind *f32"},
		{"%y = tensor_load %p" D2 ": (*f32)[4,4]", "a block of type (*f32)[4,4] behind *f32"},
		{"%y = tensor_load %p : f32", "a block of type f32 behind *f32"},
		{"%y = tensor_load %p" D2 ": f32[4]", "7 operands for 1 dimensions"},
		{"%y = tensor_load %p, %u, %i, %i : f32[4]", "u32 is not i32 or i64"},
		{"%y = tensor_load %p, %p, %i, %i : f32[4]", "*f32 is not i32 or i64"},
		{"%n = splat %i : i32[4] %y = tensor_load %p, %n, %i, %i : f32[4]", "i32[4] is not i32 or i64"},
		{"%y = tensor_load %p, %j, %i, %j : f32[4]", NULL},
	};
	CHECK("", rows);
#undef AT
#undef D2
#define MAP "%m = tensor_map %q {map=\"f32 0 4 ; p8 ; 4\"} : *const f32 "
	static const row maps[] = {
		{"%m = tensor_map %i {map=\"f32 0 4 ; p8 ; 4\"} : i32", "something else than a pointer parameter"},
		{"if %b { yield } else { yield } %m = tensor_map %q {map=none} : *const f32", "no map of *const f32"},
		{"%k = for %i, %i, %i, %q {num_stages=0 unroll=0 flatten=0 accumulator_init=0} : *const f32 (%n: i32, "
		 "%r: *const "
		 "f32) { %m = tensor_map %r {map=\"f32 0 4 ; p8 ; 4\"} : *const f32 yield %r }",
			"something else than a pointer parameter"},
		{"%y = bulk_load {shares=1} : f32[4]", "0 operands"},
		{"bulk_store %p {by_warps=0}", "1 operands"},
		{"%y = const {value=1} : i32 %z = bulk_load %y, %i {shares=1} : i32[4]", "no tensor map"},
		{MAP "%y = bulk_load %m, %i {shares=1} : (*f32)[4]", "2 operands for a block of type (*f32)[4]"},
		{MAP "%y = bulk_load %m, %i, %i, %i, %i, %i, %i {shares=1} : f32[4]", "7 operands for a block"},
		{MAP "%y = bulk_load %m, %i {shares=1} : f32", "2 operands for a block of type f32"},
		{MAP "%y = bulk_load %m, %i, %i, %i, %i {shares=1} : f32[4]", NULL},
		{"bulk_wait {read=2}", "read=2"},
		{"bulk_wait {read=-1}", "read=-1"},
	};
	CHECK("", maps);
#undef MAP
}

static void reductions(void **state)
{
	(void)state;
#define T "%t = splat %x : f32[4,2] %n = splat %i : i32[4,2] %m = splat %b : bool[4,2] %w = splat %p : (*f32)[4,2] "
	static const row rows[] = {
		{T "reduce {axis=0 combine=sum}", "0 results of 0 operands"},
		{T "%y = reduce %t {axis=-1 combine=sum} : f32[4]", "axis=-1"},
		{T "%y = reduce %w {axis=1 combine=sum} : (*f32)[4]", "operand of type (*f32)[4,2]"},
		{T "%s = splat %x : f32[2,4] %y, %z = reduce %t, %s {axis=1 combine=custom} : f32[4], f32[4] "
		   "(%a1: f32, %a2: f32, %b1: f32, %b2: f32) { yield %a1, %a2 }",
			"operand of type f32[2,4]"},
		{T "%y = reduce %m {axis=1 combine=sum} : bool[4]", "combine=sum of bool[4,2]"},
		{T "%y = reduce %m {axis=1 combine=prod} : bool[4]", "combine=prod of bool[4,2]"},
		{T "%y = reduce %m {axis=1 combine=max} : bool[4]", NULL},
		{T "%y = reduce %t {axis=1 combine=max_nan} : f32[4]", NULL},
		{T "%y = reduce %n {axis=1 combine=min_nan} : i32[4]", "combine=min_nan of i32[4,2]"},
		{T "%y = reduce %m {axis=1 combine=xor} : bool[4]", NULL},
		{T "%y = reduce %n {axis=1 combine=any} : i32[4]", "combine=any of i32[4,2]"},
		{"%t = splat %e : f8e4m3[4] %y = reduce %t {axis=0 combine=min} : f8e4m3", "combine=min of f8e4m3[4]"},
		{T "%y = scan %t {axis=1 combine=sum reverse=0} : f32[4]", "result: f32[4] and f32[4,2]"},
		{T "%y = scan %t {axis=1 combine=custom reverse=0} : f32[4,2] (%a: f32, %d: f32) {"
		   "if %b { %l = load %p {cache=none evict=none volatile=0} : f32 yield } else { yield } yield %a }",
			"reads or writes memory"},
		{T "%y = scan %t {axis=1 combine=custom reverse=0} : f32[4,2] (%a: f32, %d: f32) {"
		   "%l = if %b : f32 { yield %a } else { yield %d } yield %l }",
			NULL},
		{T "assert %w {text=\"\"}", "(*f32)[4,2] is not bool"},
		{T "print %t {text=none}", "no text"},
		{T "%s = splat %x : f32[2,4] print %t, %s {text=\"\"}", "f32[2,4] beside f32[4,2]"},
		{T "print %t, %x, %n {text=\"\"}", NULL},
		{"%t = splat %x : f32[2,2,2,2] %y, %z = split %t : f32[2,2,2,2], f32[2,2,2,2]",
			"operand of type f32[2,2,2,2]"},
		{"%y = inline_asm %i {pack=1 text=none} : i32", "no text"},
		{"%y = inline_asm %i {pack=0 text=\"=r,r\\nx\"} : i32", "pack=0"},
		{"%y = inline_asm %i {pack=128 text=\"=r,r\\nx\"} : i32", "pack=128"},
		{"%y = inline_asm {pack=1 text=\"=r\\nmov.u32 $0, %laneid;\"} : i32", NULL},
	};
	CHECK("", rows);
#undef T
}

static void products(void **state)
{
	(void)state;
#define AB                                                                                                             \
	"%a = splat %h : f16[16,32] %d = splat %h : f16[32,8] %ka = splat %c : i8[16,32] %kb = splat %c : i8[32,8] "   \
	"%ea = splat %e : f8e4m3[16,32] %eb = splat %e : f8e4m3[32,8] %three = splat %h : f16[2,32,8] "                \
	"%batch = splat %h : f16[2,16,32] %pa = splat %p : (*f32)[16,32] %l = splat %h : f16[4] "
	static const row rows[] = {
		{AB "%y = dot %a, %d, %a, %a : f32[16,8]", "4 operands"},
		{AB "%y = dot %pa, %d : f32[16,8]", "do not multiply"},
		{AB "%y = dot %a, %pa : f32[16,8]", "do not multiply"},
		{AB "%y = dot %ea, %d : f32[16,8]", "f8e4m3[16,32] and f16[32,8] do not multiply"},
		{AB "%y = dot %ea, %eb : f32[16,8]", NULL},
		{AB "%y = dot %ka, %kb : i32[16,8]", NULL},
		{AB "%y = dot %ka, %kb : f16[16,8]", "the result is f16[16,8]"},
		{AB "%y = dot %a, %d : f16[16,8]", NULL},
		{AB "%y = dot %a, %d : (*f32)[16,8]", "the result is (*f32)[16,8]"},
		{AB "%y = dot %l, %l : f32[4]", "f16[4] and f16[4] do not multiply"},
		{AB "%y = dot %a, %three : f32[16,8]", "do not multiply"},
		{AB "%y = dot %a, %d : f32[1,16,8]", "do not multiply"},
		{AB "%y = dot %a, %d : f32[16,16]", "do not multiply"},
		{AB "%y = dot %batch, %three : f32[4,16,8]", "do not multiply"},
		{AB "%y = dot %batch, %three : f32[2,16,8]", NULL},
		{AB "%y = wgmma %pa, %d {transposed=0} : f32[16,8]", "operand of type (*f32)[16,32]"},
		{AB "%y = wgmma %l, %d {transposed=0} : f32[16,8]", "operand of type f16[4]"},
		{AB "%y = wgmma %a, %d {transposed=-1} : f32[16,8]", "transposed=-1"},
		{AB "%y = wgmma %ea, %d {transposed=0} : f32[16,8]", "do not multiply"},
		{AB "%y = wgmma %ea, %eb {transposed=0} : f32[16,8]", NULL},
		{AB "%y = wgmma %a, %a {transposed=0} : f32[16,32]", "do not multiply"},
		{AB "%y = wgmma %a, %d {transposed=0} : (*f32)[16,8]", "do not multiply"},
		{AB "%y = wgmma %a, %d {transposed=0} : f32[16,8,1]", "do not multiply"},
		{AB "%y = wgmma %a, %d {transposed=0} : f32[8,8]", "do not multiply"},
		{AB "%y = wgmma %a, %d {transposed=0} : f32[16,16]", "do not multiply"},
		{AB "%z = splat %x : f32[16,8] %y = wgmma %a, %d, %z, %z {transposed=0} : f32[16,8]", "4 operands"},
	};
	CHECK("", rows);
#undef AB
}

static void control(void **state)
{
	(void)state;
#define FOR " {num_stages=0 unroll=0 flatten=0 accumulator_init=0} "
	static const row rows[] = {
		{"%m = splat %b : bool[4] if %m { yield } else { yield }", "the condition is bool[4]"},
		{"%n = splat %i : i32[4] for %n, %n, %n" FOR "(%k: i32[4]) { yield }", "the lower bound is i32[4]"},
		{"while %i (%a: f32) { condition %b } do { yield %i }", "initial value: i32 and f32"},
		{"while %i (%a: i32) { condition } do { yield %i }", "not a bool scalar"},
		{"%m = splat %b : bool[4] while %i (%a: i32) { condition %m } do { yield %i }", "not a bool scalar"},
		{"%y = while %i : i32 (%a: i32) { condition %b, %a } do (%d: f32) { yield %i }",
			"block argument: f32 and i32"},
		{"while %i (%a: i32[131]) { condition %b } do { yield %i }", "extent 131 is not an odd number"},
		{"%y = for %i, %i, %i, %x" FOR ": f32 (%k: i32, %a: f16) { yield %a }", "block argument: f16 and f32"},
	};
	CHECK("", rows);
#undef FOR
}

static void multibuffers(void **state)
{
	(void)state;
#define HERE "<reg (0,1)(0,2)(0,4)(4,0) lane (0,8)(0,16)(0,32)(1,0)(2,0) warp ()>"
#define THERE "<reg (4,0)(0,1)(0,2)(0,4) lane (0,8)(0,16)(0,32)(1,0)(2,0) warp ()>"
#define SUM "<reg (0,1) lane (0,2)(0,4)(1,0)(2,0)(4,0) warp ()>"
#define RING "%r = multibuffer {stages=2 swizzle=128 fast=1} : f16[8,64] " HERE " "
#define HERE64 "<reg (0,1)(0,2)(0,4)(16,0)(32,0)(2,0)(4,0) lane (0,8)(0,16)(0,32)(1,0)(8,0) warp ()>"
#define HERE32 "<reg (0,1)(0,2)(0,4)(16,0)(32,0)(4,0) lane (0,8)(0,16)(2,0)(1,0)(8,0) warp ()>"
#define SQUARE "%r = multibuffer {stages=2 swizzle=128 fast=1} : f16[64,64] " HERE64 " "
#define RING64 SQUARE "%s = multibuffer {stages=2 swizzle=64 fast=1} : f16[64,32] " HERE32 " "
#define PLAIN "%r = multibuffer {stages=2 swizzle=0 fast=0} : f16[8,64] " HERE " "
#define BAR "%y = mbarriers {count=2 arrivals=1} : i32 "
#define WORDS                                                                                                          \
	"%r = multibuffer {stages=2 swizzle=128 fast=1} : f32[8,32] "                                                  \
	"<reg (0,1)(0,2)(4,0) lane (0,4)(0,8)(0,16)(1,0)(2,0) warp ()> " BAR                                           \
	"%m = tensor_map %q {map=\"f32 0 4 ; p8 ; 4\"} : *const f32 "
#define POINTERS "%g = bitcast %q : *const f16 %w = splat %g : (*const f16)[8,64] " HERE " "
	static const row rows[] = {
		{"%r = multibuffer {stages=0 swizzle=128 fast=1} : f16[8,64] " HERE, "stages=0"},
		{"%r = multibuffer {stages=2 swizzle=16 fast=1} : f16[8,64] " HERE, "swizzle=16"},
		{"%r = multibuffer {stages=2 swizzle=64 fast=2} : f16[8,64] " HERE, "swizzle=64 of f16[8,64]"},
		{"%r = multibuffer {stages=2 swizzle=64 fast=-1} : f16[8,64] " HERE, "fast=-1"},
		{"%r = multibuffer {stages=2 swizzle=32 fast=0} : f16[8,64] " HERE, "swizzle=32 of f16[8,64]"},
		{"%r = multibuffer {stages=2 swizzle=128 fast=0} : f16[64] "
		 "<reg (32) lane (1)(2)(4)(8)(16) warp ()>",
			"swizzle=128 of f16[64]"},
		{"%r = multibuffer {stages=2 swizzle=0 fast=0} : f16", "the result is f16"},
		{"%r = multibuffer {stages=2 swizzle=0 fast=0} : (*f16)[8,64] " HERE, "the result is (*f16)[8,64]"},
		{POINTERS "async_copy %w, %i, %w {width=8}", "of what is no multibuffer"},
		{POINTERS "async_copy %p, %i, %w {width=8}", "of what is no multibuffer"},
		{POINTERS RING "async_copy %r, %i {width=8}", "2 operands"},
		{POINTERS RING "async_copy %r, %j, %w {width=8}", "the slot is i64"},
		{POINTERS RING "async_copy %r, %p, %w {width=8}", "the slot is *f32"},
		{POINTERS RING "%n = splat %i : i32[8,64] " HERE " async_copy %r, %n, %w {width=8}",
			"the slot is i32[8,64]"},
		{POINTERS RING "async_copy %r, %i, %q {width=8}", "*const f32 into f16[8,64]"},
		{POINTERS RING "async_copy %r, %i, %g {width=8}", "*const f16 into f16[8,64]"},
		{POINTERS RING "%v = bitcast %w : (*f16)[8,64] " HERE " async_copy %r, %i, %v {width=8}",
			"(*f16)[8,64] into f16[8,64]"},
		{POINTERS RING "async_copy %r, %i, %w {width=1}", "width=1"},
		{POINTERS RING "async_copy %r, %i, %w, %b {width=8}", "mask: bool and bool[8,64]"},
		{POINTERS RING "async_copy %r, %i, %w {width=2}", NULL},
		{"%g = bitcast %q : *const f16 %w = splat %g : (*const f16)[8,64] " THERE " " RING
		 "async_copy %r, %i, %w {width=8}",
			"must share a layout"},
		{"async_wait {pending=-1}", "pending=-1"},
		{"async_wait {pending=0} proxy_fence {proxy=all} cta_barrier", NULL},
		{RING "%t = multibuffer_read %r, %i : f16[64,8] "
		      "<reg (1,0)(2,0)(4,0)(0,4) lane (8,0)(16,0)(32,0)(0,1)(0,2) warp ()>",
			"result: f16[64,8] and f16[8,64]"},
		{RING "%t = multibuffer_read %r, %j : f16[8,64] " HERE, "the slot is i64"},
		{RING "%t = multibuffer_read %r, %i : f16[8,64] " THERE, NULL},
		{"%y = mbarriers {count=2 arrivals=0} : i32", "arrivals=0"},
		{BAR "mbarrier_expect %y, %i {bytes=0}", NULL},
		{BAR "mbarrier_expect %y, %i {bytes=1048576}", "bytes=1048576"},
		{"%k = const {value=1} : i32 scalar_send %k, %i, %i", "no room for scalars"},
		{"scalar_send %i, %i, %i", "no room for scalars"},
		{"%y = scalars {count=2} : i32 scalar_send %y, %j, %i", "slot: i64 and i32"},
		{"%y = scalars {count=2} : i32 scalar_send %y, %i, %p", "the number is *f32"},
		{"%y = scalars {count=2} : i32 %k = scalar_receive %y, %i : f32[8,8] " SUM, "the number is f32[8,8]"},
		{"%y = scalars {count=0} : i32", "count=0"},
		{"%y = scalars {count=2} : i32 scalar_send %y, %i, %i %k = scalar_receive %y, %i : i32", NULL},
		{BAR "mbarrier_expect %y, %j {bytes=16}", "slot: i64 and i32"},
		{BAR "mbarrier_arrive %y, %i, %i {programs=1}", "i32 is not a bool scalar"},
		{"%k = const {value=1} : i32 mbarrier_wait %k, %i, %i", "no barriers"},
		{RING "bulk_copy %r, %i, %i, %i {shares=1}", "4 operands"},
		{BAR "%n = const {value=1} : i32 bulk_copy %n, %i, %y, %n, %i {shares=1}",
			"no multibuffer, or no tensor map"},
		{RING BAR "bulk_copy %r, %i, %y, %y, %i, %i {shares=1}", "no multibuffer, or no tensor map"},
		{RING BAR "bulk_copy %i, %i, %y, %y, %i, %i {shares=1}", "no multibuffer, or no tensor map"},
		{RING "%k = wgmma %r {transposed=0} : f32[8,8] " SUM, "no slot"},
		{RING "%k = wgmma %r, %j, %r, %i {transposed=2} : f32[8,8] " SUM, "no slot"},
		{RING "%k = wgmma %r, %q, %r, %i {transposed=2} : f32[8,8] " SUM, "no slot"},
		{RING "%k = wgmma %r, %r, %r, %i {transposed=2} : f32[8,8] " SUM, "no slot"},
		{PLAIN "%k = wgmma %r, %i, %r, %i {transposed=2} : f32[8,8] " SUM, "the multibuffer is not for wgmma"},
		{RING "%k = wgmma %r, %i, %r, %i {transposed=2} : f32[8,8] " SUM, NULL},
		/* a slot of b may have more columns than the product; not as [N, K], and no fewer */
		{SQUARE "%k = wgmma %r, %i, %r, %i {transposed=0} : f32[64,64] " HERE64, NULL},
		{SQUARE "%k = wgmma %r, %i, %r, %i {transposed=0} : f32[64,32] " HERE32, NULL},
		{SQUARE "%k = wgmma %r, %i, %r, %i {transposed=2} : f32[64,32] " HERE32, "do not multiply"},
		{RING64 "%k = wgmma %r, %i, %s, %i {transposed=0} : f32[64,64] " HERE64, "do not multiply"},
	};
	CHECK("level=mapped num_warps=1", rows);
	/* a map's pointer is a parameter, so that its element is the parameter's */
	static const row copies[] = {
		{WORDS "bulk_copy %r, %i, %y, %m, %i {shares=1}", "5 operands for a block of type f32[8,32]"},
		{WORDS ""
		       "bulk_copy %r, %i, %y, %m, %i, %i, %i, %i, %i, %i {shares=1}",
			"10 operands for a block of type f32[8,32]"},
		{WORDS "bulk_copy %r, %i, %y, %m, %i, %j {shares=1}", "index: i64 and i32"},
		{WORDS "bulk_copy %r, %i, %y, %m, %i, %i, %b {shares=2}", "set: bool and i32"},
		{WORDS "bulk_copy %r, %j, %y, %m, %i, %i, %i {shares=2}", "slot: i64 and i32"},
		{WORDS "bulk_copy %r, %i, %y, %m, %i, %i, %i {shares=2}", NULL},
	};
	CHECK("level=mapped num_warps=1", copies);
}

/* Where tiles must share a layout, one that differs; and operations at the wrong level. */
static void layouts(void **state)
{
	(void)state;
#define A "<reg (32) lane (1)(2)(4)(8)(16) warp ()>"
#define B "<reg (1) lane (2)(4)(8)(16)(32) warp ()>"
#define FOR " {num_stages=0 unroll=0 flatten=0 accumulator_init=0} "
#define TWO "%s = splat %x : f32[64] " A " %t = splat %x : f32[64] " B " %n = splat %i : i32[64] " A " "
	static const row rows[] = {
		{TWO "%y = add %s, %t : f32[64] " A, "must share a layout"},
		{TWO "%y = hint %s {kind=multiple_of values=[1]} : f32[64] " B, "must share a layout"},
		{TWO "%y = gather %t, %n {axis=0} : f32[64] " B, "must share a layout"},
		{TWO "%y = gather %t, %n {axis=0} : f32[64] " A, NULL},
		{TWO "%y, %z = inline_asm %s, %t {pack=1 text=\"=r,=r,r,r\\nx\"} : f32[64] " A ", f32[64] " A,
			"must share a layout"},
		{TWO "%y, %z = inline_asm %s, %s {pack=1 text=\"=r,=r,r,r\\nx\"} : f32[64] " A ", f32[64] " B,
			"must share a layout"},
		{TWO "%y = for %i, %i, %i, %s" FOR ": f32[64] " A " (%k: i32, %a: f32[64] " A ") { yield %a }", NULL},
		{TWO "%y = for %i, %i, %i, %t" FOR ": f32[64] " A " (%k: i32, %a: f32[64] " A ") { yield %a }",
			"must share a layout"},
		{TWO "%y = for %i, %i, %i, %s" FOR ": f32[64] " A " (%k: i32, %a: f32[64] " B ") { yield %s }",
			"must share a layout"},
		{TWO "%y = for %i, %i, %i, %s" FOR ": f32[64] " A " (%k: i32, %a: f32[64] " A ") { yield %t }",
			"must share a layout"},
		{TWO "%y = if %b : f32[64] " A " { yield %s } else { yield %t }", "must share a layout"},
		{TWO "%y = while %s : f32[64] " A " (%a: f32[64] " A ") { condition %b, %a } do (%d: f32[64] " A
		     ") { yield %d }",
			NULL},
		{TWO "%y = while %t : f32[64] " A " (%a: f32[64] " A ") { condition %b, %a } do (%d: f32[64] " A
		     ") { yield %d }",
			"must share a layout"},
		{TWO "%y = while %s : f32[64] " A " (%a: f32[64] " A ") { condition %b, %a } do (%d: f32[64] " A
		     ") { yield %t }",
			"must share a layout"},
		{TWO "%y = while %s : f32[64] " A " (%a: f32[64] " A ") { condition %b, %t } do (%d: f32[64] " A
		     ") { yield %d }",
			"must share a layout"},
		{TWO "%y = while %s : f32[64] " A " (%a: f32[64] " A ") { condition %b, %a } do (%d: f32[64] " B
		     ") { yield %s }",
			"must share a layout"},
		{TWO "%y = for %i, %i, %i, %s" FOR ": f32[64] " A " (%k: i32, %a: f32[64]) { yield %a }",
			"a tile without a layout"},
		{"partitions { yield } do { yield }", NULL},
		{"partitions { yield } do { yield } cta_barrier", "is not the last operation of a mapped function"},
		{"if %b { partitions { yield } do { yield } yield } else { yield }",
			"is not the last operation of a mapped function"},
	};
	CHECK("level=mapped num_warps=1", rows);
	static const row tile[] = {
		{"partitions { yield } do { yield }", "stands at the tile level"},
		{"async_commit", "stands at the tile level"},
		{"%r = multibuffer {stages=2 swizzle=0 fast=0} : f32[64]", "stands at the tile level"},
		{"%y = cluster_size : i64", "the result is i64"},
	};
	CHECK("", tile);
}

static ir_func *func(void)
{
	return read_text("func @f(%i: i32, %x: f32, %c: bool) {\n"
			 "%a = add %i, %i : i32\n"
			 "%d = if %c : i32 { yield %a } else { yield %i }\n"
			 "%t = splat %x : f32[4]\n"
			 "for %i, %i, %i {num_stages=0 unroll=0 flatten=0 accumulator_init=0} (%k: i32) { yield }\n"
			 "return\n}");
}

/* Fields that no text can spoil.  Each row spoils one of a sound function, is told of it, and mends it. */
static void fields(void **state)
{
	(void)state;
	ir_func *f = func();
	ir_op *add = f->body->first, *branch = add->next, *splat = branch->next;
	ir_value *a = add->results[0], *t = splat->results[0], *round = splat->next->regions[0]->args[0];
	static ir_op other;
	ir_op *nobody = &other;
	ir_block *then = branch->regions[0];
	ir_use *used = add->args[0];
#define SPOIL(type, place, value, says)                                                                                \
	do {                                                                                                           \
		type kept = place;                                                                                     \
		text why = {.arena = &memory};                                                                         \
		place = value;                                                                                         \
		bool good = ir_verify(f, &why);                                                                        \
		place = kept;                                                                                          \
		if (good) fail_msg("accepted: %s = %s", #place, #value);                                               \
		if (!strstr(why.at, says)) fail_msg("%s = %s says `%s`, not `%s`", #place, #value, why.at, says);      \
		check_verifies(f);                                                                                     \
	} while (0)
	SPOIL(ir_kind, add->kind, IR_KIND_COUNT, "function: has no row in ops.def");
	SPOIL(ir_block *, add->block, then, "add: is not linked into its block");
	SPOIL(ir_op *, branch->prev, nobody, "is not linked into its block");
	SPOIL(ir_op *, add->prev, nobody, "is not linked into its block");
	SPOIL(ir_op *, f->body->last->prev, add, "is not linked into its block");
	SPOIL(ir_use *, add->args[0], NULL, "has an operand without a use");
	SPOIL(ir_value *, used->value, NULL, "has an operand without a use");
	SPOIL(ir_op *, used->user, splat, "has an operand without a use");
	SPOIL(ir_value *, add->results[0], NULL, "has a result that does not point back");
	SPOIL(ir_op *, a->def, splat, "has a result that does not point back");
	SPOIL(uint32_t, a->index, 1, "has a result that does not point back");
	SPOIL(uint32_t, a->id, f->nvalues, "defines a value without a proper id");
	SPOIL(uint32_t, a->id, t->id, "whose id another value has");
	SPOIL(ir_block *, branch->regions[0], NULL, "has a region that does not point back");
	SPOIL(ir_op *, then->parent, add, "has a region that does not point back");
	SPOIL(ir_func *, then->func, NULL, "has a region that does not point back");
	SPOIL(uint16_t, branch->nregions, 1, "if: 1 regions where 2 belong");
	SPOIL(uint8_t, t->type.elem, SCALAR_COUNT, "unknown element type");
	SPOIL(uint8_t, t->type.pointer, 3, "unknown element type");
	SPOIL(uint8_t, t->type.rank, 5, "rank 5 is above 4");
	SPOIL(ir_value *, splat->next->regions[0]->args[0], NULL, "has a block argument that does not point back");
	SPOIL(ir_op *, round->def, add, "has a block argument that does not point back");
	SPOIL(ir_block *, round->block, then, "has a block argument that does not point back");
	SPOIL(uint32_t, round->index, 1, "has a block argument that does not point back");
	SPOIL(uint8_t, round->type.pointer, 3, "for: unknown element type");
	SPOIL(ir_use *, used->prev, used, "a broken list of uses");
	SPOIL(uint32_t, f->nparams, 2, "parameters and the body's arguments differ in number");
	SPOIL(uint32_t, f->params[0].divisible, 0, "divisor is not a power of two");
	SPOIL(uint32_t, f->params[0].divisible, 12, "divisor is not a power of two");
	SPOIL(uint8_t, f->params[0].type.elem, SCALAR_I64, "a parameter's type is not its argument's");
	SPOIL(uint32_t, f->num_warps, 0, "num_warps is not a power of two");
	SPOIL(uint32_t, f->num_warps, 64, "num_warps is not a power of two");
	SPOIL(ir_op *, f->body->last, NULL, "does not end in return");
}

/* Bounds of attributes that the reader's names keep; layouts that are not those of their tile. */
static void attributes(void **state)
{
	(void)state;
	ir_func *f = read_text("func @f(%p: *f32, %i: i32) level=mapped num_warps=1 {\n"
			       "%x = load %p {cache=none evict=none volatile=0} : f32\n"
			       "store %p, %x {cache=none evict=none}\n"
			       "%h = hint %i {kind=multiple_of values=[1]} : i32\n"
			       "%t = splat %x : f32[64] <reg (32) lane (1)(2)(4)(8)(16) warp ()>\n"
			       "%r = reduce %t {axis=0 combine=sum} : f32\n"
			       "%c = const {value=1.0} : f32\n"
			       "return\n}");
	ir_op *load = f->body->first, *store = load->next, *hint = store->next, *splat = hint->next,
	      *reduce = splat->next;
	SPOIL(int64_t, load->attr[0], -1, "cache=");
	SPOIL(int64_t, load->attr[0], IR_CACHE_COUNT, "cache=");
	SPOIL(int64_t, load->attr[1], -1, "evict=");
	SPOIL(int64_t, load->attr[1], IR_EVICT_COUNT, "evict=");
	SPOIL(int64_t, store->attr[0], -1, "cache=");
	SPOIL(int64_t, store->attr[0], IR_CACHE_COUNT, "cache=");
	SPOIL(int64_t, store->attr[1], -1, "evict=");
	SPOIL(int64_t, store->attr[1], IR_EVICT_COUNT, "evict=");
	SPOIL(int64_t, hint->attr[0], -1, "kind=");
	SPOIL(int64_t, hint->attr[0], IR_HINT_COUNT, "kind=");
	SPOIL(int64_t, reduce->attr[1], -1, "combine=");
	SPOIL(int64_t, reduce->attr[1], IR_COMBINE_COUNT, "combine=");
	layout *l = ARENA_NEW(&memory, layout);
	*l = *splat->results[0]->layout;
	splat->results[0]->layout = l;
	SPOIL(const layout *, load->results[0]->layout, l, "a scalar with a layout");
	SPOIL(uint8_t, l->rank, 2, "the layout's rank is not the tile's");
	SPOIL(uint8_t, l->lg[0], 5, "the layout's extents are not the tile's");
	SPOIL(uint8_t, l->lg[0], 32, "the layout's extents are not the tile's");
	SPOIL(uint8_t, l->nin[LAYOUT_LANE], 4, "not one of 32 lanes and num_warps warps");
	SPOIL(uint8_t, l->nin[LAYOUT_WARP], 32, "not one of 32 lanes and num_warps warps");
	SPOIL(uint8_t, l->nin[LAYOUT_WARP], 1, "not one of 32 lanes and num_warps warps");
}

/* The reader's messages for what stands in braces, brackets and quotes. */
static void reader_messages(void **state)
{
	(void)state;
	static const row rows[] = {
		{"func @f(%x: f32[1,1,1,1,1]) {return}", "more than 4 dimensions"},
		{"func @f(% x: f32) {return}", "expected a name after `%`"},
		{"func @f(%x: f32) { print %x {text=\"\\x00\"} return }", "a NUL in a string"},
		{"func @f(%x: f32) { print %x {text=\"\\xg0\"} return }", "two hexadecimal digits"},
		{"func @f(%x: f32) { print %x {text=\"a\nb\"} return }", "string without an end"},
		{"func @f(%x: i32) { %y = hint %x {kind=multiple_of values=[1,1,1,1,1]} : i32 return }",
			"more than 4 numbers"},
		{"func @f() { %y = program_id {axis=0x} : i32 return }", "expected an integer"},
		{"func @f() { %y = program_id {axis=99999999999999999999} : i32 return }", "expected an integer"},
		{"func @f() { %y = program_id {axis=-9223372036854775809} : i32 return }", "expected an integer"},
		{"func @f() { %y = const {value=maybe} : bool return }", "not a number of this type"},
		{"func @f() { %y = const {value=5} : *f32 return }", "not a number of this type"},
		{"func @f() { const {value=5} return }", "not a number of this type"},
		{"func @f() { %y = const {value=} : f32 return }", "not a number of this type"},
		{"func @f() { if %c { yield } other { yield } return }", "no value of this name"},
		{"func @f(%c: bool) { if %c { yield } other { yield } return }", "expected `else` or `do`"},
		{"func @f() level=odd { return }", "expected `mapped` or `scheduled`"},
		{"func @() { return }", "expected a name after `@`"},
		{"func @f() + { return }", "expected an option or `{`"},
		{"func @f() { %y = splat %z", "no value of this name"},
		{"func @f() { ; no end", "expected `}`"},
		{"func @f(%x: f32) level=mapped { %y = splat %x : f32[3] <reg (1) lane () warp ()> return }",
			"a layout of a tile whose extents are not powers of two"},
		{"func @f(%x: f32) level=mapped { %y = splat %x : f32[0] <reg (1) lane () warp ()> return }",
			"a layout of a tile whose extents are not powers of two"},
		{"func @f(%x: f32) level=mapped { %y = splat %x : f32[2097152] <reg (1) lane () warp ()> return }",
			"a layout of a tile whose extents are not powers of two"},
	};
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint32_t before = messages.errors;
		assert_null(read_bytes(rows[i].body, strlen(rows[i].body)));
		assert_int_equal(messages.errors, before + 1);
		const diag *d = messages.first;
		while (d->next) d = d->next;
		if (!strstr(d->message, rows[i].says))
			fail_msg("`%s` says `%s`, not `%s`", rows[i].body, d->message, rows[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(values),
		TEST(shapes),
		TEST(memory_access),
		TEST(reductions),
		TEST(products),
		TEST(control),
		TEST(multibuffers),
		TEST(layouts),
		TEST(fields),
		TEST(attributes),
		TEST(reader_messages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
