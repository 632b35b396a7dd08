/* Single operations as PTX: text of the IR in, how often words stand in the code.  What must stand there follows from
 * the operation's own words in ops.def and from the head of the file that lowers it. */
#include "ir_text.h"

#include "target/nvptx/nvptx.h"

#include <sys/stat.h>
#include <unistd.h>

#define L1 " <reg () lane (1)(2)(4)(8)(16) warp ()>"
#define L4 " <reg (1)(2) lane (4)(8)(16)(32)(64) warp ()>"

#define LINE " <reg (1)(2)(4)(8)(16)(32)(64) lane (128)(256)(512)(1024)(2048) warp ()>"

typedef struct word {
	const char *what;
	int times;
} word;

typedef struct row {
	const char *target;
	int warps;
	bool mapped; /* layouts stand in the text; else the pass finds them */
	const char *body;
	word words[4];
} row;

#define TILE "%i = arange {lo=0} : i32[128]\n%P = splat %p : (*i32)[128]\n%Q = ptr_add %P, %i : (*i32)[128]\n"
#define FLOATS(n)                                                                                                      \
	"%i = arange {lo=0} : i32[" n "]\n%P = splat %x : (*f32)[" n "]\n%Q = ptr_add %P, %i : (*f32)[" n "]\n"

static const row rows[] = {
	/* both halves of a product by one instruction, once where all registers hold the same */
	{"sm_80", 1, false,
		TILE "%a = splat %n : i32[128]\n%b = splat %m : i32[128]\n%lo = mul %a, %b : i32[128]\n"
		     "%h = umulhi %a, %b : i32[128]\n%s = add %lo, %h : i32[128]\nstore %Q, %s",
		{{"mul.wide.s32", 1}}},
	{"sm_80", 1, false,
		TILE "%a = splat %n : i32[128]\n%lo = mul %a, %i : i32[128]\n%h = umulhi %a, %i : i32[128]\n"
		     "%s = add %lo, %h : i32[128]\nstore %Q, %s",
		{{"mul.wide.s32", 4}}},
	/* a count of 64 bits is masked, as the instruction reads its low half; one of 32 needs nothing */
	{"sm_80", 1, false, "%v = shl %l, %k : i64\nprint %v {text=\"\"}", {{"and.b", 1}, {"shl.b64", 1}}},
	{"sm_80", 1, false, "%v = shl %n, %m : i32\nprint %v {text=\"\"}", {{"and.b", 0}, {"shl.b32", 1}}},
	/* neighbours at once, by every thread: under no predicate; each element once, whoever else holds a copy */
	{"sm_90a", 4, false,
		FLOATS("512") "%v = splat %f : f32[512]\n%r = atomic_rmw %Q, %v {rmw=add sem=relaxed scope=gpu} : "
			      "f32[512]",
		{{"red.relaxed.gpu.global.add.v4.f32 [", 1}, {"@%p", 0}}},
	{"sm_80", 1, true,
		"%P = splat %p : (*i32)[32] <reg (0) lane (1)(2)(4)(8)(16) warp ()>\n"
		"%v = splat %n : i32[32] <reg (0) lane (1)(2)(4)(8)(16) warp ()>\n"
		"%r = atomic_rmw %P, %v {rmw=add sem=relaxed scope=gpu} : i32[32] <reg (0) lane (1)(2)(4)(8)(16) warp "
		"()>",
		{{"red.relaxed.gpu.global.add.s32", 1}}},
	/* a scalar that others may write: one thread reads it, or takes the other value */
	{"sm_80", 4, false, "%c = lt %n, %m : bool\n%v = load %p, %c, %n : i32\nstore %p, %v",
		{{"ld.global.b32", 1}, {"bar.sync", 1}, {"ld.shared.b32", 1}}},
	/* PTX has these priorities since 7.4 */
	{"sm_80", 1, false, "%v = load %p {evict=first} : i32\nstore %p, %v", {{".version 7.4", 1}}},
	/* one access is ordered itself; of several each is relaxed, with a fence in front of them or behind */
	{"sm_80", 1, false, "%r = atomic_rmw %p, %n {rmw=add sem=release scope=gpu} : i32",
		{{"red.release.gpu.global.add.s32", 1}, {"fence.acq_rel", 0}}},
	{"sm_80", 1, false, "%r = atomic_rmw %p, %n {rmw=add sem=acquire scope=gpu} : i32",
		{{"atom.acquire.gpu.global.add.s32", 1}, {"fence.acq_rel", 0}}},
	{"sm_80", 1, false, TILE "%r = atomic_rmw %Q, %i {rmw=add sem=release scope=gpu} : i32[128]",
		{{"red.relaxed.gpu.global.add.s32", 4}, {"fence.acq_rel.gpu;", 1}}},
	{"sm_80", 1, false, TILE "%r = atomic_rmw %Q, %i {rmw=add sem=acquire scope=cta} : i32[128]",
		{{"atom.relaxed.cta.global.add.s32", 4}, {"fence.acq_rel.cta;", 1}}},
	{"sm_80", 1, false, TILE "%r = atomic_rmw %Q, %i {rmw=add sem=acq_rel scope=sys} : i32[128]",
		{{"atom.relaxed.sys.global.add.s32", 4}, {"fence.acq_rel.sys;", 2}}},
	{"sm_80", 1, false, TILE "%r = atomic_rmw %Q, %i {rmw=xchg sem=relaxed scope=gpu} : i32[128]",
		{{"atom.relaxed.gpu.global.exch.b32", 4}, {"red.", 0}, {"fence", 0}}},
	{"sm_80", 1, false, TILE "%r = atomic_rmw %Q, %i {rmw=max sem=relaxed scope=gpu} : i32[128]",
		{{"red.relaxed.gpu.global.max.s32", 4}}},
	/* lanes that hold copies get the old value from the one that acts */
	{"sm_80", 1, false,
		"%i = arange {lo=0} : i32[8]\n%P = splat %p : (*i32)[8]\n%Q = ptr_add %P, %i : (*i32)[8]\n"
		"%v = splat %n : i32[8]\n%r = atomic_rmw %Q, %v {rmw=add sem=relaxed scope=gpu} : i32[8]\n"
		"%s = reduce %r {axis=0 combine=max} : i32\nstore %p, %s",
		{{"atom.relaxed.gpu.global.add.s32", 1}, {"shfl.sync.idx", 1}}},
	/* what may be written between two masked loads is read twice */
	{"sm_80", 1, false,
		"%c = lt %n, %m : bool\n%C = splat %c : bool[32]\n%i = arange {lo=0} : i32[32]\n"
		"%P = splat %p : (*i32)[32]\n%Q = ptr_add %P, %i : (*i32)[32]\n%a = load %Q, %C : i32[32]\n"
		"store %Q, %i\n%b = load %Q, %C : i32[32]\n%s = add %a, %b : i32[32]\nstore %Q, %s",
		{{"ld.global.b32", 2}, {"st.global.b32", 2}}},
	/* what nothing writes is read once; of two stores in a row the last one stays */
	{"sm_80", 1, false,
		"%c = lt %n, %m : bool\n%C = splat %c : bool[32]\n%i = arange {lo=0} : i32[32]\n"
		"%P = splat %p : (*i32)[32]\n%Q = ptr_add %P, %i : (*i32)[32]\n%R = splat %q : (*const i32)[32]\n"
		"%S = ptr_add %R, %i : (*const i32)[32]\n%a = load %S, %C : i32[32]\nstore %Q, %i\n"
		"%b = load %S, %C : i32[32]\n%s = add %a, %b : i32[32]\nstore %Q, %s",
		{{"ld.global.nc.b32", 1}, {"st.global.b32", 1}}},
	/* addresses are exchanged as two words each */
	{"sm_80", 1, true,
		"%P = splat %p : (*i32)[32]" L1 "\n%i = arange {lo=0} : i32[32]" L1
		"\n%Q = ptr_add %P, %i : (*i32)[32]" L1
		"\n%R = convert_layout %Q : (*i32)[32] <reg () lane (2)(1)(4)(8)(16) warp ()>\n"
		"%v = splat %n : i32[32] <reg () lane (2)(1)(4)(8)(16) warp ()>\nstore %R, %v",
		{{"shfl.sync", 2}, {"st.global.b32", 1}}},
	/* a sort inside a warp exchanges nothing through shared memory; beyond 6000 instructions its stages loop: a
	 * step between lanes stands there once, for each of 128 keys */
	{"sm_80", 1, true,
		"%i = arange {lo=0} : i32[4096]" LINE "\n%N = splat %n : i32[4096]" LINE "\n"
		"%v = mul %i, %N : i32[4096]" LINE "\n%s = sort %v {axis=0} : i32[4096]" LINE "\n"
		"%r = reduce %s {axis=0 combine=max} : i32\nstore %p, %r",
		{{"st.shared", 0}, {"bar.sync", 0}, {"shfl.sync.bfly", 128}}},
	/* three coordinates and one value of 32 bits; one of 64 begins at a multiple of 8 */
	{"sm_80", 1, false, "print %n {text=\"\"}", {{"__local_depot0[16]", 1}}},
	{"sm_80", 1, false, "print %l {text=\"\"}", {{"__local_depot0[24]", 1}}},
	{"sm_80", 1, false, "print %n, %l {text=\"\"}", {{"__local_depot0[24]", 1}}},
	/* a line for each of four registers, by all lanes: nobody is left out; of what lanes hold twice, by its
	 * owner */
	{"sm_80", 1, true, "%t = arange {lo=0} : i32[128]" L4 "\nprint %t {text=\"\"}", {{"vprintf,", 4}, {"bra", 0}}},
	{"sm_80", 1, true, "%t = arange {lo=0} : i32[16] <reg () lane (1)(2)(4)(8)(0) warp ()>\nprint %t {text=\"\"}",
		{{"vprintf,", 1}, {"@%p1 bra", 1}}},
};

static bool (*const find_layouts[])(pass_context *, ir_func *) = {pass_axis, pass_assign_layouts, pass_cse, pass_dce};
static bool (*const schedule[])(pass_context *, ir_func *) = {pass_allocate_shared, pass_barriers, pass_synchronise};

static const char *said(void)
{
	text t = {.arena = &memory};
	diag_render_text(&messages, &t);
	return t.at ? t.at : "";
}

static pass_context context(const char *target)
{
	return (pass_context){.arena = &memory, .diags = &messages, .target = target_find(target)};
}

/* A function with these statements between its parameters and its end, at the scheduled level. */
static ir_func *scheduled(const char *target, int warps, bool mapped, const char *body)
{
	pass_context p = context(target);
	ir_func *f = read_text(arena_printf(&memory,
		"func @f(%%p: *i32 {align=16}, %%q: *const i32 {align=16}, %%x: *f32 {align=16}, %%n: i32, %%m: i32, "
		"%%l: i64, %%k: i64, %%f: f32, %%y: i8)%s num_warps=%d num_stages=1 num_ctas=1 {\n%s\nreturn\n}\n",
		mapped ? " level=mapped" : "", warps, body));
	for (size_t i = 0; !mapped && i < sizeof find_layouts / sizeof find_layouts[0]; i++)
		if (!find_layouts[i](&p, f)) fail_msg("%s", said());
	for (size_t i = 0; i < sizeof schedule / sizeof schedule[0]; i++)
		if (!schedule[i](&p, f)) fail_msg("%s\n%s", body, said());
	return f;
}

static bool emit(const char *target, ir_func *f, nvptx_output *out)
{
	pass_context p = context(target);
	nvptx_options options = {.line_info = f->at.file != NULL, .want_ptx = true};
	return nvptx_emit(&p, f, &options, out);
}

static int times(const char *s, const char *what)
{
	int n = 0;
	for (const char *p = s; (p = strstr(p, what)); p += strlen(what)) n++;
	return n;
}

static const char *code(const char *target, ir_func *f)
{
	nvptx_output out;
	f->at.file = NULL; /* no lines */
	if (!emit(target, f, &out)) fail_msg("%s\n%s", print(f), said());
	return out.ptx;
}

static void forms(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const row *r = &rows[i];
		const char *ptx = code(r->target, scheduled(r->target, r->warps, r->mapped, r->body));
		for (const word *w = r->words; w->what; w++)
			if (times(ptx, w->what) != w->times)
				fail_msg("'%s' stands %d times, not %d:\n%s\n%s", w->what, times(ptx, w->what),
					w->times, r->body, ptx);
	}
}

/* ---- prints ---- */

/* The strings among a text's constants, each behind a '|'. */
static const char *strings(const char *ptx)
{
	text t = {.arena = &memory};
	for (const char *at = ptx; (at = strstr(at, "f_text")); at++) {
		const char *open = strchr(at, '{'), *end = strchr(at, '\n');
		if (!open || open > end) continue;
		char *next = (char *)open + 1;
		text_puts(&t, "|");
		for (long c; (c = strtol(next, &next, 10)) > 0; next++) text_printf(&t, "%c", (char)c);
		at = end;
	}
	return t.at ? t.at : "";
}

static void lines(void **state)
{
	(void)state;
	static const struct {
		const char *body, *strings;
	} cases[] = {
		{"print %n, %l, %f, %p {text=\"100% of it\"}", "|pid (%u, %u, %u) 100%% of it: %d %lld %g 0x%llx\n"},
		{"print {text=\"here\"}", "|pid (%u, %u, %u) here\n"},
		{"%t = arange {lo=0} : i32[32]" L1 "\nprint %t, %n {text=\"t\"}",
			"|pid (%u, %u, %u) idx (%u) t: %d %d\n"},
		{"%t = const {value=1.0} : f32[2,4] <reg (1,0)(0,1)(0,2) lane (0,0)(0,0)(0,0)(0,0)(0,0) warp ()>\n"
		 "print %n, %t {text=\"t\"}",
			"|pid (%u, %u, %u) idx (%u, %u) t: %d %g\n"},
		{"%t = splat %y : i8[2,2,8] <reg () lane (0,0,1)(0,0,2)(0,0,4)(0,1,0)(1,0,0) warp ()>\n"
		 "%u = splat %n : i32[2,2,8] <reg () lane (0,0,1)(0,0,2)(0,0,4)(0,1,0)(1,0,0) warp ()>\n"
		 "%v = convert %u : i8[2,2,8] <reg () lane (0,0,1)(0,0,2)(0,0,4)(0,1,0)(1,0,0) warp ()>\n"
		 "%c = eq %t, %v : bool[2,2,8] <reg () lane (0,0,1)(0,0,2)(0,0,4)(0,1,0)(1,0,0) warp ()>\n"
		 "assert %c {text=\"same\"}",
			"|pid (%u, %u, %u) idx (%u, %u, %u) assertion failed: same\n|same|"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *ptx = code("sm_80", scheduled("sm_80", 1, true, cases[i].body)), *got = strings(ptx);
		const char *want = cases[i].strings;
		if (strncmp(got, want, strlen(want)) != 0)
			fail_msg("%s\ngot  %s\nwant %s\n%s", cases[i].body, got, want, ptx);
	}
}

/* An assert that nobody has written in a file. */
static void no_place(void **state)
{
	(void)state;
	ir_func *f = scheduled("sm_80", 1, true, "%c = lt %n, %m : bool\nassert %c {text=\"less\"}");
	for (ir_op *o = f->body->first; o; o = o->next) o->at = (span){0};
	const char *ptx = code("sm_80", f);
	if (times(ptx, "__assertfail,") != 1) fail_msg("%s", ptx);
}

/* Of many values: 32 and no more. */
static void many_values(void **state)
{
	(void)state;
	for (int n = 32; n <= 33; n++) {
		text t = {.arena = &memory};
		text_puts(&t, "print ");
		for (int i = 0; i < n; i++) text_puts(&t, i ? ", %n" : "%n");
		text_puts(&t, " {text=\"\"}");
		ir_func *f = scheduled("sm_80", 1, true, t.at);
		nvptx_output out;
		assert_true(emit("sm_80", f, &out) == (n == 32));
	}
	assert_non_null(strstr(said(), "a print of more than 32 values has no lowering"));
}

/* ---- lines of the source ---- */

/* Two files whose names are as long: each operation's line is its own file's.  Characters beyond ASCII are a '?' each,
 * those within it stay, and a line ends where it ends. */
static void source_comments(void **state)
{
	(void)state;
	source_file one = {.name = "t\xc3\xa9.x", .text = "first\nsecond \x7f \xc3\xa9\nthird\n", .size = 25};
	source_file two = {.name = "other", .text = "\tx\n  y = z\nlast", .size = 14};
	one.size = strlen(one.text), two.size = strlen(two.text);
	two.index = 1;
	ir_func *f = scheduled("sm_80", 1, true, "%a = add %n, %m : i32\n%b = mul %a, %n : i32\nstore %p, %b");
	f->at = (span){&one, 0, 5};
	for (ir_op *o = f->body->first; o; o = o->next)
		o->at = o->kind == IR_STORE ? (span){&two, 5, 6}
			: o->kind == IR_MUL ? (span){&two, 12, 13}
					    : (span){&one, 6, 12};
	nvptx_output out;
	source_lines(&memory, &one);
	source_lines(&memory, &two);
	if (!emit("sm_80", f, &out)) fail_msg("%s", said());
	if (!strstr(out.ptx, "\t// t?.x:2  second \x7f ?\n") || !strstr(out.ptx, "\t// other:2  y = z\n") ||
		!strstr(out.ptx, "\t// other:3  last\n"))
		fail_msg("%s", out.ptx);
}

/* ---- an assembler and a disassembler that are played ---- */

static void play(const char *folder, const char *name, const char *script)
{
	const char *path = arena_printf(&memory, "%s/%s", folder, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fprintf(f, "#!/bin/sh\n%s", script) > 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0700), 0);
}

/* A function of two lines of inline assembly. */
static ir_func *assembly(source_file *file)
{
	ir_func *f = scheduled("sm_80", 1, true,
		"%a = inline_asm %n {pack=1 text=\"=r,r\\nfine.b32 $0, $1;\"} : i32\n"
		"%b = inline_asm %a {pack=1 text=\"=r,r\\nodd.b32 $0, $1;\"} : i32\nstore %p, %b");
	uint32_t at = 0;
	f->at = (span){file, 0, 1};
	for (ir_op *o = f->body->first; o; o = o->next, at += 2) o->at = (span){file, at, at + 1};
	source_lines(&memory, file);
	return f;
}

/* What it reports are numbers, the rest is a remark; where it refuses a line, that is the operation's whose line that
 * is; lines of the source stand among instructions of the machine. */
static void played(void **state)
{
	(void)state;
	char folder[] = "/tmp/blk-test-XXXXXX";
	assert_non_null(mkdtemp(folder));
	source_file file = {.name = "s", .text = "a\nb\nc\nd\n", .size = 8};
	ir_func *f = assembly(&file);
	nvptx_options options = {.line_info = true, .want_cubin = true, .want_sass = true};
	nvptx_output out;
	pass_context p = context("sm_80");
	options.ptxas = arena_printf(&memory, "%s/ptxas", folder);
	play(folder, "ptxas",
		"echo code >\"$4\"\necho 'ptxas info    : 0 bytes gmem'\necho 'ptxas warning : odd'\necho\n"
		"echo '    8 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads'\n"
		"echo 'ptxas info    : Used 20 registers, 48 bytes smem'\n");
	play(folder, "nvdisasm",
		"printf '  //## File \"s\", line 2\\n\\tMOV\\n\\t//## File \"s\", line 3 inlined\\n\\tEXIT\\n'\n");
	if (!nvptx_emit(&p, f, &options, &out)) fail_msg("%s", said());
	assert_int_equal(out.registers, 20);
	assert_int_equal(out.spill_bytes, 24);
	assert_int_equal(out.static_shared, 48);
	assert_string_equal(out.ptxas_log, "ptxas warning : odd\n");
	assert_string_equal(out.sass, "// f, sm_80\n\t// s:2  b\n\tMOV\n\t// s:3  c\n\tEXIT\n");
	play(folder, "ptxas",
		"echo \"ptxas input, line $(sed -n '/odd/=' \"$5\"); error   : no such thing\"\nexit 255\n");
	assert_false(nvptx_emit(&p, f, &options, &out));
	assert_int_equal(messages.first->code, 812);
	assert_non_null(strstr(said(), "no such thing"));
	assert_int_equal(messages.first->at.begin, 2); /* the second line */
	unlink(options.ptxas);
	unlink(arena_printf(&memory, "%s/nvdisasm", folder));
	assert_int_equal(rmdir(folder), 0);
}

/* ---- what no pass leaves ---- */

static void refused(void **state)
{
	(void)state;
	static const struct {
		const char *body, *why;
	} cases[] = {
		{"%t = splat %n : i32[128]" L4 "\n%s = sort %t {axis=0} : i32[128]" L4 "\nprint %s {text=\"\"}", NULL},
		{"%t = splat %n : i32[128] <reg (2)(1) lane (4)(8)(16)(32)(64) warp ()>\n"
		 "%s = sort %t {axis=0} : i32[128] <reg (2)(1) lane (4)(8)(16)(32)(64) warp ()>\nprint %s {text=\"\"}",
			"'sort' needs lines in order"},
		{"%t = splat %n : i32[64] <reg (1)(0)(2) lane (4)(8)(16)(32)(0) warp ()>\n"
		 "%s = sort %t {axis=0} : i32[64] <reg (1)(0)(2) lane (4)(8)(16)(32)(0) warp ()>\nprint %s {text=\"\"}",
			"'sort' needs lines in order"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		ir_func *f = scheduled("sm_80", 1, true, cases[i].body);
		nvptx_output out;
		bool good = emit("sm_80", f, &out);
		if (good != !cases[i].why) fail_msg("%s: %s", cases[i].body, good ? "passes" : said());
		if (!good && !strstr(said(), cases[i].why)) fail_msg("%s: %s", cases[i].body, said());
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(forms), TEST(lines), TEST(no_place), TEST(many_values),
		TEST(source_comments), TEST(refused), TEST(played)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
