/* The simulator's reading of PTX: whatever text it is given, it answers, and says where it stumbled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include "sim_fixture.h"
#include "runtime/sim/sim.h"

#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* A bit of everything that the parser knows. */
static char *everything(void)
{
	static const sim_case c = {
		.declarations = ".extern .func (.param .b32 r) vprintf\n(\n.param .b64 a,\n.param .b64 b\n)\n;\n"
				".global .align 4 .b8 words[12] = {1, 2, -3, 0x7f};\n.const .f32 one = 0f3F800000;\n"
				".shared .align 16 .b32 table[4];\n",
		.body = ".local .align 8 .b8 depot[16];\n.loc 1 4 2\n/* a comment */ mov.b64 %rd1, "
			"words;\ncvta.global.u64 %rd1, %rd1;\n"
			"ld.global.b8 %h1, [words+2];\nsetp.lt.and.u32 %p1|%p2, %tid, 16, !%p3;\n@!%p1 bra.uni NEXT;\n"
			"{ .reg .b32 t; mov.b64 {t, %r2}, %rd1; }\nmov.b64 %rd2, {%r2, %r3};\nmov.b64 {_, %r4}, %rd2;\n"
			"selp.f32 %r5, 0f3F800000, 1.5, %p2;\nNEXT:\nshfl.sync.bfly.b32 %r6|%p4, %r5, 1, 31, -1;\n"
			"ld.global.nc.L1::evict_first.v4.b32 {%r1, %r2, %r3, %r4}, "
			"[%in+16];\natom.acq_rel.gpu.global.cas.b32 %r7, [%out], 0, 1;\n"
			"cvt.rn.satfinite.e4m3x2.f32 %h2, %r1, %r2;\nst.shared.v2.b32 [table+8], {%r1, %r2};\nbar.sync "
			"0;\n"
			"{\n.param .b64 p0;\n.param .b64 p1;\n.param .b32 q;\nst.param.b64 [p0], %rd1;\nst.param.b64 "
			"[p1], %rd2;\n"
			"call.uni (q), vprintf, (p0, p1);\nld.param.b32 %r8, [q];\n}\n"
			"//@ check.part.b8 %rd1;\natom.global.or.b32 %r1, [%rd1], %r2;\n//@ check.divisor.b32.u32 %r1, "
			"%r2;\n//@ check.gather.b16.s64 %h1, %rd1, 64;\n"
			"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%rd3, %rd4}, {%rd5}, {%rd6}, {%rd3, "
			"%rd4};\n"};
	return sim_text(&c);
}

static bool parses(const char *text)
{
	char error[640] = "";
	sim_code *c = NULL;
	bool good = sim_code_parse(text, "k", &c, error, sizeof error);
	assert_true(good == (c != NULL));
	if (!good) assert_true(strncmp(error, "line ", 5) == 0);
	sim_code_free(c);
	return good;
}

static void test_every_prefix(void **state)
{
	(void)state;
	char *text = everything();
	assert_non_null(text);
	size_t n = strlen(text), brace = (size_t)(strrchr(text, '}') - text);
	assert_true(parses(text));
	for (size_t i = 0; i <= brace; i++)
		for (size_t open = 0; open < 2; open++) { /* a string that does not end */
			char *cut = malloc(i + open + 1); /* its end is the end of the memory */
			assert_non_null(cut);
			memcpy(cut, text, i);
			memset(cut + i, '"', open);
			cut[i + open] = 0;
			assert_false(parses(cut));
			free(cut);
		}
	assert_true(brace < n);
	free(text);
}

/* A number that is none, between any two words: it is what is reported, in its line. */
static void test_malformed_numbers(void **state)
{
	(void)state;
	static const char *const texts[] = {
		(".version 7.0\n.target sm_80 , debug\n.address_size 64\n.file 1 \"a.blk\" , 17 , 12\n.section .debug "
		 "{\n.b8 1 , "
		 "2\n}\n.extern .func ( .param .b32 r ) vprintf (\n.param .b64 a ,\n.param .b64 b\n) ;\n.pragma "
		 "\"all\" ;\n"
		 ".func other ( .param .b32 r )\n{\n{ ret ; }\n}\n.global .align 4 .b8 words [ 12 ] = { 1 , 2 , -3 } "
		 ";\n"
		 ".const .f32 one = 0f3F800000 ;\n.shared .align 16 .b32 table [ 4 ] ;\n.visible .entry other ( ) { "
		 "ret ; }\n"
		 ".visible .entry k ( .param .u64 .ptr .global .align 4 p , .param .align 2 .b8 q [ 2 ] )\n"
		 ".reqntid 32 , 1 , 1\n.reqnctapercluster 2 , 1 , 1\n{\n.reg .pred %p < 16 > ;\n.reg .b32 %r < 8 > , "
		 "%tid ;\n"
		 ".reg .b64 %rd < 8 > ;\n.local .align 8 .b8 depot [ 16 ] ;\n.pragma \"nounroll\" ;\n"
		 ".loc 1 4 2 , function_name $L__info + 3 , inlined_at 1 2 3\nHERE:\n"
		 "ld.global.b32 %r1 , [ 4096 ] ;\nld.global.b32 %r1 , [ %rd1 + -4 ] ;\nld.global.v2.b32 { %r1 , %r2 } "
		 ", [ words - "
		 "4 ] ;\nsetp.lt.and.u32 %p1 | %p2 , %tid , 16 , ! %p3 ;\n@ ! %p1 bra.uni NEXT ;\nLIST: "
		 ".branchtargets HERE , "
		 "NEXT ;\nbrx.idx %r1 , LIST ;\nNEXT:\n{\n.param .align 8 .b64 a ;\n.param .b32 c ;\nst.param.b64 [ a "
		 "] , "
		 "%rd1 ;\ncall.uni ( c ) , vprintf , ( a , a ) ;\nld.param.b32 %r2 , [ c ] ;\n}\nret ;\n}\n"),
	};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		const char *text = texts[i];
		size_t n = strlen(text);
		char *more = malloc(n + 8), error[640], wanted[64];
		assert_non_null(more);
		unsigned line = 1;
		sim_code *right = NULL;
		if (!sim_code_parse(text, "k", &right, error, sizeof error)) fail_msg("%s", error);
		sim_code_free(right);
		for (size_t k = 0; k < n; k++) {
			bool blank = text[k] == ' ' || text[k] == '\n';
			line += text[k] == '\n';
			if (!blank) continue;
			memcpy(more, text, k + 1);
			strcpy(more + k + 1, "0f3 ");
			strcpy(more + k + 5, text + k + 1);
			sim_code *c = NULL;
			error[0] = 0;
			snprintf(wanted, sizeof wanted, "line %u of the PTX: a malformed number", line);
			bool good = sim_code_parse(more, "k", &c, error, sizeof error);
			sim_code_free(c);
			/* a statement is named by its first line */
			if (good || strcmp(error, wanted) != 0)
				fail_msg("at %zu: %s, not %s: %.40s", k, good ? "it is read" : error, wanted, more + k);
		}
		free(more);
	}
}

/* One byte is another one, or a word is lost or doubled: any answer, but an answer. */
static void test_damage(void **state)
{
	(void)state;
	static const char bytes[] = "\n\t ;,{}[]()<>@!%.+-|_:\"/*0x9afFdDlsb$\x01\xff";
	char *text = everything();
	assert_non_null(text);
	size_t n = strlen(text);
	for (size_t i = 0; i < n; i++) {
		char was = text[i];
		text[i] = bytes[i * 7 % (sizeof bytes - 1)];
		parses(text);
		text[i] = bytes[i * 11 % (sizeof bytes - 1)];
		parses(text);
		text[i] = was;
	}
	char *twice = malloc(2 * n + 1);
	assert_non_null(twice);
	for (size_t i = 0; i + 9 < n; i += 3) {
		memcpy(twice, text, i + 9);
		strcpy(twice + i + 9, text + i);
		parses(twice);
		strcpy(twice + i, text + i + 9);
		parses(twice);
	}
	free(twice);
	free(text);
}

static void test_limits(void **state)
{
	(void)state;
	static const char *const bodies[] = {".reg .b32 %many<4000000000>;\n",
		".local .align 8 .b8 d[18446744073709551615];\n", ".shared .align 3 .b8 s[4];\n",
		"mov.b32 %r1, {%h1, %h2, %h3, %h4, %h1};\n", "ld.global.v4.b32 {%r1, %r2}, [%in];\n",
		"ld.global.b32 %r1, [%in+18446744073709551615+1];\n{{{{{{{{{{{{{{{{{{{{}}}}}}}}}}}}}}}}}}}}\n",
		"mma.sync.aligned.m16n8k0.row.col.f32.f16.f16.f32 {%r1}, {%r1}, {%r1}, {%r1};\n",
		("mma.sync.aligned.m4294967312n8k16.row.col.f32.f16.f16.f32 {%r1,%r1,%r1,%r1}, {%r1,%r1,%r1,%r1}, "
		 "{%r1,%r1}, {%r1,%r1,%r1,%r1};\n"),
		"ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1,%r1,%r1}, [%r1];\n",
		"lop3.b32 %r1, %r2, %r3, %r4, %r5;\n", "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r %r1;\n",
		"shfl.sync.bfly.b32 %r1;\n", "bar.sync;\n", "call.uni vprintf;\n", "@%r1 ret;\n",
		"setp.lt.u32 %r1, %r2, %r3;\n", "cvt.rn.f32 %r1, %r2;\n", "st.param.b32 [k_param_0], 3;\n",
		"//@ check.part.b32 %rd1;\n", "//@ check.part.b8 %r1;\n", "//@ check.divisor.b32 %r1, %r2;\n",
		"//@ check.divisor.b64.b32 %r1, %r2;\n", "//@ check.gather.b32.u32 %r1, %r2;\n",
		"//@ check.gather.b32.u32 %r1, %r2, %r3;\n", "//@ check.gather.b8.u32 %h1, %r2, 3;\n", "//@ check;\n",
		"//@ check.nothing.b32 %r1;\n"};
	for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
		const sim_case c = {.body = bodies[i]};
		char *text = sim_text(&c);
		assert_non_null(text);
		bool good = parses(text);
		if (good && i != 5) fail_msg("accepted: %s", bodies[i]);
		free(text);
	}
}

/* An instruction without what its name is followed by, as the first of a kernel: there is no earlier one's to be found.
 */
static void test_bare_names(void **state)
{
	(void)state;
	static const char *const names[] = {"mov", "mov.b64", "add", "cvt", "cvt.f32", "ld", "ld.global", "st",
		"st.shared", "atom", "atom.add", "red", "red.global", "setp", "setp.lt", "set", "set.lt.u32", "selp",
		"slct", "testp", "testp.finite", "and", "not", "bra", "brx", "call", "shfl", "shfl.sync", "vote",
		"vote.sync", "match", "redux", "redux.sync", "elect", "activemask", "bar", "bar.warp", "barrier",
		"barrier.cluster", "mma", "mma.sync", "mma.sync.aligned.m16n8k16.row.col", "ldmatrix", "ldmatrix.sync",
		"stmatrix", "movmatrix", "cp", "cp.async", "cp.async.ca", "cp.async.bulk", "cp.reduce",
		"cp.reduce.async.bulk", "mbarrier", "mbarrier.init", "mbarrier.arrive", "mbarrier.try_wait", "wgmma",
		"wgmma.mma_async", "wgmma.fence", "mapa", "mapa.shared::cluster", "fence", "fence.proxy",
		"fence.mbarrier_init", "membar", "prefetch", "tensormap", "setmaxnreg", "check", "check.part",
		"check.divisor", "check.gather.b32", "bfi", "bfe", "lop3", "prmt", "nanosleep", "griddepcontrol",
		"isspacep", "cvta"};
	static const char *const operands[] = {"", "{%r1, %r2}, %rd1", "%rd1, {%r1, %r2}", "%r1, %r2",
		"%r1, [%rd1], %r2", "[%rd1], %r1", "%p1, %r1, %r2", "%p1|%p2, %r1, 3", "{%r1}, {%r1}, {%r1}, {%r1}",
		"%rd1, %p1", "%r1, %r1, %r1, %r1, %r1", "[%r1], [%rd1], 16", "_, _", "{}, {}", "%h1, %rd2"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		for (size_t k = 0; k < sizeof operands / sizeof operands[0]; k++)
			for (size_t dot = 0; dot < 3; dot++) {
				char text[640];
				snprintf(text, sizeof text,
					".version 7.0\n.target sm_80\n.visible .entry k(.param .u64 a)\n{\n.reg .pred "
					"%%p<4>;\n.reg .b16 %%h<4>;\n.reg .b32 %%r<4>;\n.reg .b64 %%rd<4>;\n%s%s "
					"%s;\nret;\n}\n",
					names[i],
					dot == 0   ? ""
					: dot == 1 ? "."
						   : ".b32",
					operands[k]);
				parses(text);
			}
	static const sim_case c = {.body = "mov {%r1, %r2}, %rd1;\n"};
	char *text = sim_text(&c);
	assert_non_null(text);
	assert_false(parses(text));
	free(text);
}

/* ---- Where the paths of branches meet ---- */

typedef struct listing {
	char *text;
	size_t n, room;
} listing;

static void put(listing *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(listing *l, const char *fmt, ...)
{
	va_list list;
	if (l->room - l->n < 128) {
		l->room = 2 * l->room + 4096;
		l->text = realloc(l->text, l->room);
		assert_non_null(l->text);
	}
	va_start(list, fmt);
	l->n += (size_t)vsnprintf(l->text + l->n, 128, fmt, list);
	va_end(list);
}

static const char opening[] = ".version 7.0\n.target sm_80\n.visible .entry k(.param .u64 a)\n{\n"
			      ".reg .pred %p<4>;\n.reg .b32 %r<4>;\n";

/* Branches as many as a long unrolled kernel has, each to a label of its own: loading takes a moment whatever they
 * look like, as --sim-steps counts what runs only.  CPU time, so that a busy machine is no failure. */
static void test_many_branches(void **state)
{
	(void)state;
	enum { N = 100000, KINDS = 6 };
	for (int kind = 0; kind < KINDS; kind++) {
		listing l = {0};
		sim_code *c;
		char error[640];
		put(&l, "%s", opening);
		for (int i = 0; i < N; i++) {
			int to = kind == 4 ? (i ? i - 1 : 0) : kind == 5 ? (int)((i * 7919u) % N) : i;
			if (kind >= 4) put(&l, "L%d: ", i);
			put(&l, "@%%p1 bra L%d;\n", to);
			if (kind == 0) put(&l, "mov.u32 %%r1, %d;\nL%d:\n", i, i);
			if (kind == 3) put(&l, "setp.eq.u32 %%p1, %%r1, %d;\n", i);
		}
		for (int i = 0; i < N && kind >= 1 && kind < 4; i++)
			put(&l, "L%d: add.u32 %%r1, %%r1, 1;\n", kind == 2 ? N - 1 - i : i);
		put(&l, "ret;\n}\n");
		clock_t begin = clock();
		if (!sim_code_parse(l.text, "k", &c, error, sizeof error)) fail_msg("%s", error);
		double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
		if (seconds > 8) fail_msg("kind %d took %.1f s", kind, seconds);
		if (kind == 0) assert_int_equal(c->code[2].join, 4);
		if (kind == 1) assert_int_equal(c->code[0].join, 2 * N - 1);
		if (kind == 2) assert_int_equal(c->code[1].join, 2 * N - 2);
		sim_code_free(c);
		free(l.text);
	}
}

/* A place reaches the end without another one. */
static bool avoids(const sim_code *c, int32_t from, int32_t without)
{
	bool seen[64] = {false};
	int32_t stack[256], n = 0;
	stack[n++] = from;
	while (n) {
		int32_t at = stack[--n];
		if (at == without || (at < 64 && seen[at])) continue;
		if ((size_t)at >= c->n || c->code[at].step == sim_step_exit) return true;
		seen[at] = true;
		const sim_instr *in = &c->code[at];
		if (in->kind == SIM_BRANCH) stack[n++] = in->target;
		if (in->kind != SIM_BRANCH || in->guard) stack[n++] = at + 1;
	}
	return false;
}

/* Random branches: the join is the first place, on any way, that all ways to the end lead through. */
static void test_joins(void **state)
{
	(void)state;
	uint32_t random = 7;
	for (int round = 0; round < 4000; round++) {
		listing l = {0};
		sim_code *c;
		char error[640];
		int n = 2 + round % 14;
		put(&l, "%s", opening);
		for (int i = 0; i < n; i++) {
			random = random * 1664525u + 1013904223u;
			uint32_t what = random >> 28, to = (random >> 8) % (uint32_t)n;
			put(&l, "L%d: ", i);
			if (what < 9)
				put(&l, "@%%p1 bra L%u;\n", to);
			else if (what < 11)
				put(&l, "bra L%u;\n", to);
			else
				put(&l, "add.u32 %%r1, %%r1, 1;\n");
		}
		put(&l, "ret;\n}\n");
		if (!sim_code_parse(l.text, "k", &c, error, sizeof error)) fail_msg("%s", error);
		for (int32_t i = 0; i < n; i++) {
			if (c->code[i].kind != SIM_BRANCH || !c->code[i].guard) continue;
			int32_t wanted = SIM_NO_PC;
			/* Of all that every way leads through, the one from which all the others still lie ahead. */
			for (int32_t k = 0; k <= n && avoids(c, i, -1); k++) {
				if (k == i || avoids(c, i, k)) continue;
				bool first = true;
				for (int32_t m = 0; m <= n; m++)
					first = first && (m == i || m == k || avoids(c, i, m) || !avoids(c, k, m));
				if (first) wanted = k;
			}
			if (c->code[i].join != wanted)
				fail_msg("%s: branch %d joins at %d, not %d", l.text, i, c->code[i].join, wanted);
		}
		sim_code_free(c);
		free(l.text);
	}
}

/* ---- whole texts ---- */

#define HEAD ".version 8.0\n.target sm_90a, debug\n.address_size 64\n"
#define ENTRY(options, body)                                                                                           \
	".visible .entry k(.param .u64 a)\n" options                                                                   \
	"\n{\n.reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<4>;\n" body "\nret;\n}\n"
#define LONG "s32s32s32s32s32s32s32s32s32s32s32s32s32s32"
#define TEN "1, 2, 3, 4, 5, 6, 7, 8, 9, 10"

/* What has no effect is read over; what is wrong is said in words. */
static void test_texts(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says; /* null: it is good */
	} rows[] = {
		{HEAD ENTRY(".reqntid 32, 1, 1", ""), NULL},
		{HEAD ".section .debug_str {\n.b8 1, 2\n}\n" ENTRY("", ""), NULL},
		{HEAD ".pragma \"nounroll\";\n" ENTRY("", ""), NULL},
		{HEAD ".file 1 \"a.blk\", 1700000000, 12\n" ENTRY(
			 "", ".loc 1 2 3, function_name $L__info, inlined_at 1 2 3"),
			NULL},
		{HEAD ".weak .global .align 4 .b8 t[4];\n.common .global .b32 u;\n" ENTRY("", ""), NULL},
		{HEAD ENTRY("", ".pragma \"nounroll\";"), NULL},
		{HEAD ENTRY("", "{\n.param .align 8 .b64 q;\nst.param.b64 [q], %rd1;\n}"), NULL},
		{HEAD ENTRY("", "L: .branchtargets A, B;\nA:\nB:\nbrx.idx %r1, L;"), NULL},
		{HEAD ENTRY(".reqnctapercluster 17, 1, 1", ""), "a cluster of too many programs"},
		{HEAD ENTRY(".reqnctapercluster 4, 4, 4", ""), "a cluster of too many programs"},
		{HEAD ENTRY("", "") ENTRY("", ""), "a second kernel k"},
		{HEAD ".file 5000 \"a.blk\"\n" ENTRY("", ""), "line 4"},
		{HEAD ".surface s;\n" ENTRY("", ""), "'.surface' is no directive that is simulated"},
		{HEAD ENTRY("", ".reg .b8 %c<4>;"), "registers of 8 bits are not simulated"},
		{HEAD ".global .align 4 .b8 few[2] = {1, 2, 3};\n" ENTRY("", ""),
			"more values than the variable holds"},
		{HEAD ".shared .align 8 .b64 much[4294967295];\n" ENTRY("", ""), "a variable of 34359738360 bytes"},
		{HEAD ENTRY("", "mov.b64 %rd1, {{{{{{{{{{%r1}}}}}}}}}};"), "braces that are nested too deep"},
		{HEAD ENTRY("", "add.s32 " TEN ", " TEN ", " TEN ";"), "too many operands"},
		{HEAD ENTRY("", "mov.b64 %rd1, {" TEN ", " TEN ", " TEN ", " TEN ", " TEN ", " TEN ", " TEN ", " TEN
				", " TEN ", " TEN ", " TEN ", " TEN ", " TEN ", " TEN ", " TEN ", " TEN ", " TEN
				", " TEN ", " TEN "};"),
			"too many operands"},
		{HEAD ENTRY("", "ld.global.b32 %r1, [%p1];"), "an address was expected"},
		{HEAD ENTRY("", "ld.global.b32 %r1, [_];"), "an address was expected"},
		{HEAD ENTRY("", "L: .branchtargets 7;"), "a label was expected"},
		{HEAD ENTRY("", ".loc 1 2;"), "a malformed .loc"},
		{HEAD ENTRY("", "{\n.param .b65 q;\n}"), "a parameter's type was expected"},
		{HEAD ENTRY("", "7 %r1;"), "an instruction"},
		{HEAD ENTRY("", "bra NOWHERE;"), "NOWHERE"},
		{HEAD ENTRY("", "call.uni strlen, (%rd1);"), "line 10"},
		{HEAD, "k"},
		{HEAD ".visible .entry k()\n{\n{\n}\nret;\n}\n", NULL}, /* nothing is declared */
		{HEAD ENTRY("", "add.s32\t%r1,\r\n\t%r2, %r3;"), NULL},
		{HEAD ".file 1 \"a.blk\"\n.file 1 \"b.blk\"\n" ENTRY("", ""), NULL},
		{HEAD ENTRY("", "A:\nmov.b32 %r1, 1;\nA:\nmov.b32 %r1, 2;\nA:\nbra A;"), NULL},
		{HEAD ".visible .entry k()\n{\nbra END;\nret;\nEND:\n}\n", "no label END"}, /* of no instruction */
		{HEAD ENTRY("", ".reg .pred %q<70000>;"), "more predicates than can be simulated"},
		{HEAD ENTRY(".reqntid 32, 1, 1,", ""), NULL},
		{HEAD ".pragma \"nounroll\"", "no kernel k"},
		{HEAD ".visible .entry k(.param .align 4 .b8 q[k])\n{\nret;\n}\n",
			"line 4 of the PTX: parameters that are arrays, other than tensor maps, are not simulated"},
		{HEAD ".visible .entry k(.param .align 4 .b8 q[16])\n{\nret;\n}\n",
			"line 4 of the PTX: parameters that are arrays, other than tensor maps, are not simulated"},
		{HEAD ".visible .entry k(.param .align 4 .b8 q[129])\n{\nret;\n}\n",
			"line 4 of the PTX: parameters that are arrays, other than tensor maps, are not simulated"},
		{HEAD ".visible .entry k(.param .align 4 .b8 q[8)\n{\nret;\n}\n", "']' was expected, not ')'"},
		{HEAD ENTRY("", "bra AA;"), "no label AA"}, /* in front of all that there are */
		{HEAD ENTRY("", "bra AA;\nZZ:\nret;"), "no label AA"},
		{HEAD ENTRY("", "ld.global.b32 %r1, [%rd1, %r2];"), "'{' was expected, not '%r2'"},
		{HEAD ENTRY("", "ld.global.b32 %r1, [%rd1, {%r2, 0f3}];"), "a malformed number"},
		{HEAD ENTRY("", "add." LONG LONG LONG LONG " %r1, %r2, %r3;"), "an instruction was expected"},
		{HEAD ENTRY("", "{\n.param .align 4 .b32 q\nret;\n}"), "';' was expected, not 'ret'"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char error[640] = "";
		sim_code *c = NULL;
		bool good = sim_code_parse(rows[i].text, "k", &c, error, sizeof error);
		if (good != !rows[i].says || (!good && !strstr(error, rows[i].says)))
			fail_msg("row %zu: `%s`, wanted `%s`:\n%s", i, error, rows[i].says ? rows[i].says : "no error",
				rows[i].text);
		sim_code_free(c);
	}
}

/* ---- what a kernel prints ---- */

/* Runs vprintf of `format` with one argument of 8 bytes; what it wrote on standard output. */
static void prints(const char *format, uint64_t value, char *out, size_t room)
{
	char declarations[1024], body[2048], bytes[512] = "";
	size_t n = 0;
	for (const char *s = format;; s++) {
		n += (size_t)snprintf(bytes + n, sizeof bytes - n, "%s%u", s == format ? "" : ", ", (unsigned char)*s);
		if (!*s) break;
	}
	snprintf(declarations, sizeof declarations,
		".extern .func (.param .b32 r) vprintf\n(\n.param .b64 a,\n.param .b64 b\n)\n;\n.global .align 1 .b8 "
		"text[%zu] = {%s};\n",
		strlen(format) + 1, bytes);
	snprintf(body, sizeof body,
		".local .align 8 .b8 depot[16];\nsetp.ne.u32 %%p1, %%tid, 0;\n@%%p1 bra END;\nmov.b64 %%rd1, text;\n"
		"cvta.global.u64 %%rd1, %%rd1;\nmov.b64 %%rd2, depot;\ncvta.local.u64 %%rd2, %%rd2;\nmov.b64 %%rd3, "
		"%llu;\n"
		"st.local.b64 [depot], %%rd3;\n{\n.param .b64 p0;\n.param .b64 p1;\n.param .b32 q;\nst.param.b64 [p0], "
		"%%rd1;\nst.param.b64 [p1], %%rd2;\ncall.uni (q), vprintf, (p0, p1);\nld.param.b32 %%r8, "
		"[q];\n}\nEND:\n",
		(unsigned long long)value);
	sim_case c = {.declarations = declarations, .body = body};
	FILE *f = tmpfile();
	assert_non_null(f);
	fflush(stdout);
	int was = dup(STDOUT_FILENO);
	assert_true(was >= 0 && dup2(fileno(f), STDOUT_FILENO) >= 0);
	blk_status status = sim_try(&c);
	fflush(stdout);
	dup2(was, STDOUT_FILENO);
	close(was);
	rewind(f);
	size_t got = fread(out, 1, room - 1, f);
	out[got] = 0;
	fclose(f);
	if (status) fail_msg("%s: %s", format, blk_error());
}

/* As C's printf, with what a GPU's makes of it: 32-bit numbers in %d, doubles in %f. */
static void test_prints(void **state)
{
	(void)state;
	static const struct {
		const char *format;
		uint64_t value;
		const char *wanted;
	} rows[] = {
		{"a %d\n", (uint32_t)-7, "a -7\n"},
		{"%i%%\n", 42, "42%\n"},
		{"%u\n", UINT32_MAX, "4294967295\n"},
		{"%ld\n", (uint64_t)-5, "-5\n"},
		{"%lld\n", INT64_MIN, "-9223372036854775808\n"},
		{"%llu\n", UINT64_MAX, "18446744073709551615\n"},
		{"%x\n", 0xbeef, "beef\n"},
		{"%llx\n", 0x123456789abcdefu, "123456789abcdef\n"},
		{"%p\n", 0x1000, "0x1000\n"},
		{"%c%c\n", 'x' | (uint64_t)'y' << 32, "xy\n"},
		{"%f\n", 0x3ff8000000000000u, "1.500000\n"},
		{"%e\n", 0x3ff8000000000000u, "1.500000e+00\n"},
		{"%g\n", 0xc000000000000000u, "-2\n"},
		{"%g\n", 0x7ff8000000000000u, "nan\n"},
		{"100%\n", 0, "100%\n"},
		{"%y\n", 0, "%y\n"},
		{"no end %", 0, "no end %"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char out[256];
		prints(rows[i].format, rows[i].value, out, sizeof out);
		assert_string_equal(out, rows[i].wanted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_prints),
		cmocka_unit_test(test_every_prefix), cmocka_unit_test(test_malformed_numbers),
		cmocka_unit_test(test_damage), cmocka_unit_test(test_limits), cmocka_unit_test(test_bare_names),
		cmocka_unit_test(test_many_branches), cmocka_unit_test(test_joins)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
