/* How much code an operation becomes: each count is worked out by hand, from the registers that a tile has in its
 * layout and from what one register costs by the operation's own words in code_size.c, ops.def and async/scratch.h. */
#include "ir_text.h"

#include "../../compiler/passes/passes.h"
#include "target/nvptx/code_size.h"

#define ENTRY 10 /* what every kernel begins with */

/* Of one warp: a register, four of them, 256 of them, each lane's neighbours in memory. */
#define L1 " <reg () lane (1)(2)(4)(8)(16) warp ()>"
#define L4 " <reg (1)(2) lane (4)(8)(16)(32)(64) warp ()>"
#define L256 " <reg (1)(2)(4)(8)(16)(32)(64)(128) lane (256)(512)(1024)(2048)(4096) warp ()>"
#define HIGH256 " <reg (32)(64)(128)(256)(512)(1024)(2048)(4096) lane (1)(2)(4)(8)(16) warp ()>"
/* Of four warps. */
#define W1 " <reg () lane (1)(2)(4)(8)(16) warp (32)(64)>"

typedef struct row {
	const char *target;
	int warps;
	const char *body; /* constants cost nothing */
	uint64_t expected;
} row;

#define F32_4 "%x = const {value=1.0} : f32[128]" L4 "\n"

static const row rows[] = {
	/* casts: three for a register; six where fp8 has instructions, 25 where it has none; two more for bf16 */
	{"sm_80", 1, F32_4 "%y = convert %x : i32[128]" L4, 4 * 3},
	{"sm_80", 1, "%x = const {value=1} : i32[128]" L4 "\n%y = convert %x : i16[128]" L4, 4 * 1},
	{"sm_90a", 1, "%x = const {value=1.0} : f8e4m3[128]" L4 "\n%y = convert %x : f32[128]" L4, 4 * 6},
	{"sm_90a", 1, F32_4 "%y = convert %x : f8e5m2[128]" L4, 4 * 6},
	{"sm_80", 1, "%x = const {value=1.0} : f8e4m3[128]" L4 "\n%y = convert %x : f32[128]" L4, 4 * 25},
	{"sm_80", 1, F32_4 "%y = convert %x : f8e5m2[128]" L4, 4 * 25},
	{"sm_80", 1, "%x = const {value=1.0} : bf16[128]" L4 "\n%y = convert %x : f32[128]" L4, 4 * (3 + 2)},
	{"sm_80", 1, F32_4 "%y = convert %x : bf16[128]" L4, 4 * (3 + 2)},
	{"sm_80", 1, "%x = const {value=1.0} : f16[128]" L4 "\n%y = convert %x : f32[128]" L4, 4 * 3},
	/* mathematics: by f32 in halves */
	{"sm_80", 1, F32_4 "%y = exp2 %x : f32[128]" L4, 4 * 1},
	{"sm_80", 1, "%x = const {value=1.0} : f16[128]" L4 "\n%y = exp2 %x : f16[128]" L4, 4 * 4},
	{"sm_80", 1, "%x = const {value=1.0} : bf16[128]" L4 "\n%y = exp2 %x : bf16[128]" L4, 4 * 8},
	{"sm_80", 1, "%x = const {value=1.0} : f16[128]" L4 "\n%y = div %x, %x : f16[128]" L4, 4 * 4},
	{"sm_80", 1, F32_4 "%y = div %x, %x : f32[128]" L4, 4 * 1},
	{"sm_80", 1, "%x = const {value=3} : i32[128]" L4 "\n%y = div %x, %x : i32[128]" L4, 4 * 6},
	/* sums: registers in pairs, then each of five steps between lanes is an exchange of a word (3) and an addition;
	 * two words take five more to part and to join */
	{"sm_80", 1, F32_4 "%y = reduce %x {axis=0 combine=sum} : f32", 2 + 1 + 5 * (1 + 3)},
	{"sm_80", 1, "%x = const {value=1.0} : f64[128]" L4 "\n%y = reduce %x {axis=0 combine=sum} : f64",
		2 + 1 + 5 * (1 + 2 * 3 + 5)},
	{"sm_80", 1, "%x = const {value=1.0} : f16[128]" L4 "\n%y = reduce %x {axis=0 combine=sum} : f16",
		(2 + 1) * 2 + 5 * (2 + 3)},
	/* and between four warps: four are combined, with an access (4) each to store and to load */
	{"sm_80", 4, "%x = const {value=1.0} : f32[128]" W1 "\n%y = reduce %x {axis=0 combine=sum} : f32",
		5 * (1 + 3) + 4 * (1 + 1) + 2 * 4},
	/* a region's operations, four here, for each pair; in order, which takes two selections more a word */
	{"sm_80", 1,
		F32_4
		"%i = const {value=1} : i32[128]" L4 "\n"
		"%m, %n = reduce %x, %i {axis=0 combine=custom} : f32, i32 (%a: f32, %ai: i32, %b: f32, %bi: i32) {\n"
		"%g = ge %a, %b : bool\n%k = select %g, %a, %b : f32\n%ki = select %g, %ai, %bi : i32\n"
		"yield %k, %ki\n}",
		(2 + 1) * 4 + 5 * (4 + 2 * (3 + 2))},
	/* scans: pairs of registers, 2 + 1; five steps between lanes, each two additions and, a word, an exchange and
	 * six selections; what stands before a group is put there (1 + 3) once, and before each of four registers at
	 * the end */
	{"sm_80", 1, "%x = const {value=1} : i32[128]" L4 "\n%y = scan %x {axis=0 combine=sum} : i32[128]" L4,
		2 + 1 + 5 * (2 * 1 + 3 + 6) + (1 + 3) + 4 * (1 + 3)},
	{"sm_80", 4, "%x = const {value=1} : i32[128]" W1 "\n%y = scan %x {axis=0 combine=sum} : i32[128]" W1,
		5 * (2 * 1 + 3 + 6) + (1 + 3) + 4 * (1 + 2) + 2 * 4 + (1 + 3) + (1 + 3)},
	/* of more than 128 registers, which are moved to memory and back, that with an address each; the code is that
	 * of one of 256 pieces, what stands before it is put before its total and its element */
	{"sm_80", 1,
		"%x = const {value=1} : i32[8192]" HIGH256 "\n%y = scan %x {axis=0 combine=sum} : i32[8192]" HIGH256,
		5 * (2 * 1 + 3 + 6) + (1 + 3) + (1 + 3) + 4 * 256 + 2 * (1 + 3)},
	/* sorts: 7 * 8 / 2 steps of 128 keys, four instructions a key and step, eight to make a key and back; keys of
	 * two words twice that; more than 128 words a thread are moved through memory, and code is for pieces of
	 * them */
	{"sm_80", 1, "%x = const {value=1} : i32[128]" L4 "\n%y = sort %x {axis=0} : i32[128]" L4, 4 * 28 * 4 + 4 * 8},
	{"sm_80", 1, "%x = const {value=1} : i64[128]" L4 "\n%y = sort %x {axis=0} : i64[128]" L4,
		4 * 28 * 4 * 2 + 4 * 8},
	{"sm_80", 1, "%x = const {value=1} : i32[8192]" L256 "\n%y = sort %x {axis=0} : i32[8192]" L256,
		256 * 2 * 4 + 8192 + 13 * 250},
	/* conversions: nothing where registers only change places; a shuffle of three a word, and one more for less
	 * than a word; a store and a load of each register otherwise */
	{"sm_80", 1, F32_4 "%y = convert_layout %x : f32[128] <reg (2)(1) lane (4)(8)(16)(32)(64) warp ()>", 0},
	{"sm_80", 1,
		"%x = const {value=1.0} : f32[32]" L1
		"\n%y = convert_layout %x : f32[32] <reg () lane (2)(1)(4)(8)(16) warp ()>",
		3},
	{"sm_80", 1,
		"%x = const {value=1.0} : f16[32]" L1
		"\n%y = convert_layout %x : f16[32] <reg () lane (2)(1)(4)(8)(16) warp ()>",
		3 + 1},
	{"sm_80", 1,
		"%x = const {value=1.0} : f64[32]" L1
		"\n%y = convert_layout %x : f64[32] <reg () lane (2)(1)(4)(8)(16) warp ()>",
		3 * 2},
	{"sm_80", 4,
		"%x = const {value=1.0} : f32[128]" W1
		"\n%y = convert_layout %x : f32[128] <reg () lane (32)(2)(4)(8)(16) warp (1)(64)>",
		4 + 4},
	/* a print's line for each register of its longest tile, wherever that stands, and what surrounds them */
	{"sm_80", 1, F32_4 "%n = const {value=1} : i32\nprint %x, %n {text=\"\"}", 4 * (20 + 2 * 4) + 20},
	{"sm_80", 1, F32_4 "%n = const {value=1} : i32\nprint %n, %x {text=\"\"}", 4 * (20 + 2 * 4) + 20},
	/* what has results only, and what has operands only */
	{"sm_80", 1, "%x = arange {lo=0} : i32[128]" L4, 4},
	{"sm_80", 1, "%x = const {value=true} : bool[128]" L4 "\nassert %x {text=\"\"}", 4 * 12},
	/* through shared memory: stored, and loaded with its address */
	{"sm_80", 1, F32_4 "%y = flip %x {axis=0} : f32[128]" L4, 4 * 2 * 4},
	{"sm_80", 1, F32_4 "%i = const {value=1} : i32[32]" L1 "\n%y = gather %x, %i {axis=0} : f32[32]" L1,
		4 * 4 + 1 * 2 * 4},
	{"sm_80", 1, "%x = const {value=1} : i32[128]" L4 "\n%y = histogram %x : i32[32]" L1,
		4 * 2 * 4 + 1 * 2 * 4 + 150},
};

static ir_func *mapped(int warps, const char *body)
{
	return read_text(arena_printf(&memory,
		"func @f(%%p: *f32) level=mapped num_warps=%d num_stages=1 num_ctas=1 {\n%s\nreturn\n}\n", warps,
		body));
}

static void operations(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		pass_context p = {.arena = &memory, .diags = &messages, .target = target_find(rows[i].target)};
		code_size s = code_size_estimate(&p, mapped(rows[i].warps, rows[i].body));
		if (s.all != ENTRY + rows[i].expected)
			fail_msg("%s:\n%s\nis %llu, not %llu", rows[i].target, rows[i].body,
				(unsigned long long)s.all - ENTRY, (unsigned long long)rows[i].expected);
	}
}

/* A product of 16 rows and 8 columns by one warp, whose sum is four registers and whose operands of depth 16 are eight
 * and four.  An instruction, which is of 16 rows, takes one to start and four for its sum; each register of operands
 * two to put it into place, or four to part it into more and less significant bits, which are multiplied in three
 * products. */
static void products(void **state)
{
	(void)state;
	static const struct {
		const char *target, *type, *options;
		uint64_t expected;
	} cases[] = {
		{"sm_80", "f16", "", 1 * (1 + 4) + (8 + 4) * 2},                        /* 16 deep */
		{"sm_80", "f32", " {precision=tf32}", 2 * (1 + 4) + (8 + 4) * 2},       /* 8 deep */
		{"sm_80", "f32", " {precision=tf32x3}", 2 * 3 * (1 + 4) + (8 + 4) * 4}, /* 8 deep */
		{"sm_80", "f32", " {precision=ieee}", 16 * 4 + 3 * (4 * 8 + 8 * 4)},    /* by lanes' own sums */
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		pass_context p = {.arena = &memory, .diags = &messages, .target = target_find(cases[i].target)};
		ir_func *f = read_text(arena_printf(&memory,
			"func @f(%%p: *f32) num_warps=1 num_stages=1 num_ctas=1 {\n"
			"%%a = const {value=1.0} : %s[16,16]\n%%b = const {value=1.0} : %s[16,8]\n"
			"%%c = const {value=0.0} : f32[16,8]\n%%d = dot %%a, %%b, %%c%s : f32[16,8]\nprint %%d "
			"{text=\"\"}\n"
			"return\n}\n",
			cases[i].type, cases[i].type, cases[i].options));
		assert_true(pass_axis(&p, f) && pass_assign_layouts(&p, f));
		code_size s = code_size_estimate(&p, f);
		unsigned k = 0;
		while (k < CODE_SIZE_WORST && s.worst[k].op && s.worst[k].op->kind != IR_DOT) k++;
		assert_true(k < CODE_SIZE_WORST && s.worst[k].op);
		if (s.worst[k].instructions != cases[i].expected)
			fail_msg("%s%s: %llu, not %llu", cases[i].type, cases[i].options,
				(unsigned long long)s.worst[k].instructions, (unsigned long long)cases[i].expected);
	}
}

/* What an error names: operations of a tenth of the code and more, and a tile without a loop over its parts where that
 * and what it is made of are a tenth. */
static void names(void **state)
{
	(void)state;
	text body = {.arena = &memory}, said = {.arena = &memory};
	text_puts(&body, "%x = const {value=1.0} : bf16[128]" L4 "\n%y0 = exp2 %x : bf16[128]" L4 "\n");
	for (int i = 0; i < 9; i++) text_printf(&body, "%%y%d = exp2 %%y%d : bf16[128]" L4 "\n", i + 1, i);
	text_puts(&body, "%w = const {value=1} : i32[128]" L4 "\n%v = sort %w {axis=0} : i32[128]" L4 "\n");
	text_puts(&body, "%z = bitcast %y9 : i16[128]" L4);
	ir_func *f = mapped(1, body.at);
	pass_context p = {.arena = &memory, .diags = &messages, .target = target_find("sm_80")};
	code_size s = code_size_estimate(&p, f);
	assert_int_equal(s.all, ENTRY + 10 * 32 + 480 + 4);
	pass_note note = {.op = f->body->last->prev, .why = "it is read twice"};
	vec_push(&memory, &p.whole, note);
	assert_false(code_size_check(&p, f, &s, 100));
	diag_render_text(&messages, &said);
	/* 480 and 32 of 814: the second is less than a tenth */
	assert_non_null(strstr(said.at, "about 58 in 100 of them: sort i32[128], 4 elements a thread"));
	assert_null(strstr(said.at, "of them: exp2"));
	/* 4 of its own, 324 with what it is made of */
	assert_non_null(strstr(said.at, "no loop over parts of this tile: it is read twice"));
	/* within the limit but more than a fifth of it, a warning; a fifth of it is nothing; no limit, nothing */
	assert_true(code_size_check(&p, f, &s, s.all) && code_size_check(&p, f, &s, 5 * s.all));
	assert_true(code_size_check(&p, f, &s, 0));
	assert_int_equal(messages.errors, 1);
	assert_int_equal(messages.warnings, 1);
}

/* Why a store of a long tile has no loop over its parts; null: nothing stands in the way, or no axis has as many. */
static void whole_tiles(void **state)
{
	(void)state;
#define STORE(type, value) "%P = splat %p : (*f32)[" type "]\nstore %P, " value "\n"
#define FOR " {num_stages=0 unroll=0 flatten=0 accumulator_init=0} "
	static const struct {
		int warps;
		const char *body, *why;
	} cases[] = {
		{1, "%v = const {value=1.0} : f32[32768]\n" STORE("32768", "%v"), NULL},
		{1, "%v = const {value=1.0} : f32[32,32,32,32]\n" STORE("32,32,32,32", "%v"), NULL},
		{1,
			"%v = const {value=1.0} : f32[32768]\n%r = for %n, %n, %n, %v" FOR
			": f32[32768] (%i: i32, %s: f32[32768]) {\n%t = add %s, %s : f32[32768]\n" STORE(
				"32768", "%s") "yield %t\n}\n",
			"a loop carries it"},
		{1,
			"%v = const {value=1.0} : f32[32768]\n%c = lt %n, %m : bool\n%r = if %c : f32[32768] {\nyield "
			"%v\n"
			"} else {\n%w = add %v, %v : f32[32768]\nyield %w\n}\n" STORE("32768", "%r"),
			"an if chooses it as a whole"},
		/* a tile that the program has loaded before: parts of 16 KiB are picked from, more is not */
		{16,
			"%X = splat %p : (*f32)[4096]\n%s = load %X {volatile=1} : f32[4096]\n"
			"%t = expand_dims %s {axis=1} : f32[4096,1]\n%u = broadcast %t : f32[4096,128]\n%w = scan %u "
			"{axis=1 combine=sum} : f32[4096,128]\n" STORE("4096,128", "%w"),
			NULL},
		{16,
			"%X = splat %p : (*f32)[8192]\n%s = load %X {volatile=1} : f32[8192]\n"
			"%t = expand_dims %s {axis=1} : f32[8192,1]\n%u = broadcast %t : f32[8192,64]\n%w = scan %u "
			"{axis=1 combine=sum} : f32[8192,64]\n" STORE("8192,64", "%w"),
			"a part of another tile cannot be picked"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		pass_context p = {.arena = &memory, .diags = &messages, .target = target_find("sm_80")};
		ir_func *f = read_text(arena_printf(&memory,
			"func @f(%%p: *f32, %%n: i32, %%m: i32) num_warps=%d num_stages=1 num_ctas=1 "
			"{\n%s\nreturn\n}\n",
			cases[i].warps, cases[i].body));
		assert_true(pass_axis(&p, f) && pass_parts(&p, f));
		if (p.whole.n != (cases[i].why != NULL) ||
			(cases[i].why && strcmp(p.whole.at[0].why, cases[i].why) != 0))
			fail_msg("%s\n%u: %s", cases[i].body, p.whole.n, p.whole.n ? p.whole.at[0].why : "");
	}
#undef STORE
#undef FOR
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(operations), TEST(products), TEST(names), TEST(whole_tiles)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
