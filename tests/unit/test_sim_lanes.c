/* What single instructions give, and which of their bits are undefined: exchanges, atomics, conversions, copies; and
 * what is said of their memory.  Values are worked out here or follow from the definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include "sim_fixture.h"

#include <cmocka.h>

static void runs(sim_case *c, int line)
{
	blk_status got = sim_try(c);
	if (got) fail_msg("line %d: %s", line, blk_error());
}
#define RUNS(c) runs(&(c), __LINE__)

typedef struct row {
	const char *body, *says; /* null: it runs */
	unsigned threads;
	bool json;
} row;

static void check_rows(const row *rows, size_t n, const char *declarations, int line)
{
	for (size_t i = 0; i < n; i++) {
		sim_case c = {.declarations = declarations,
			.body = rows[i].body,
			.threads = rows[i].threads,
			.options = {.json = rows[i].json}};
		blk_status got = sim_try(&c);
		if (got != (rows[i].says ? BLK_ERROR_KERNEL : BLK_OK) || (got && !strstr(blk_error(), rows[i].says)))
			fail_msg("line %d, row %zu: %s, not %s", line, i, got ? blk_error() : "it runs",
				rows[i].says ? rows[i].says : "to its end");
	}
}
#define ROWS(rows) check_rows(rows, sizeof(rows) / sizeof(rows)[0], NULL, __LINE__)

#define MINE "mad.wide.u32 %rd0, %tid, 4, %out;\n"
#define STORE(r) MINE "st.global.b32 [%rd0], " r ";\n"
#define UNDEFINED "an undefined value is stored"
#define DIVIDES "mov.b32 %r20, 8;\nmov.b32 %r21, 0;\n//@ check.divisor.b32.u32 %r20, %r21;\n"
#define DIVISION "it comes from a division by 0 at"

/* ---- Exchanges ---- */

static void test_shuffles(void **state)
{
	(void)state;
	static const struct {
		const char *mode;
		uint32_t by, control;
	} cases[] = {{"up", 3, 0}, {"up", 5, 0x1800}, {"down", 4, 31}, {"down", 3, 0x1807}, {"bfly", 16, 31},
		{"bfly", 5, 0x1803}, {"idx", 9, 31}, {"idx", 6, 0x1803}, {"idx", 30, 20}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char body[512];
		snprintf(body, sizeof body,
			"mul.lo.s32 %%r1, %%tid, 3;\nshfl.sync.%s.b32 %%r2|%%p1, %%r1, %u, %u, -1;\nselp.b32 %%r3, "
			"1000, 0, "
			"%%p1;\nshfl.sync.%s.b32 _|%%p2, %%r1, %u, %u, -1;\nselp.b32 %%r4, 2000, 0, %%p2;\nadd.s32 "
			"%%r2, %%r2, "
			"%%r3;\nadd.s32 %%r2, %%r2, %%r4;\n%s",
			cases[i].mode, cases[i].by, cases[i].control, cases[i].mode, cases[i].by, cases[i].control,
			STORE("%r2"));
		sim_case c = {.body = body};
		RUNS(c);
		for (uint32_t lane = 0; lane < 32; lane++) {
			/* as the PTX ISA writes it down */
			uint32_t segment = cases[i].control >> 8 & 31, clamp = cases[i].control & 31;
			uint32_t most = (lane & segment) | (clamp & ~segment), least = lane & segment;
			int j = 0;
			bool valid = false;
			switch (cases[i].mode[0]) {
			case 'u': j = (int)lane - (int)cases[i].by, valid = j >= (int)most; break;
			case 'd': j = (int)(lane + cases[i].by), valid = j <= (int)most; break;
			case 'b': j = (int)(lane ^ cases[i].by), valid = j <= (int)most; break;
			default: j = (int)(least | (cases[i].by & ~segment)), valid = j <= (int)most; break;
			}
			assert_int_equal(c.out[lane], 3 * (valid ? (uint32_t)j : lane) + (valid ? 3000 : 0));
		}
	}
}

static void test_matches(void **state)
{
	(void)state;
	sim_case c = {
		.body = "and.b32 %r1, %tid, 3;\nmatch.any.sync.b32 %r2, %r1, -1;\nmatch.all.sync.b32 %r3|%p1, %r1, "
			"-1;\nmatch.all.sync.b32 _|%p2, 7, -1;\nmatch.any.sync.b32 _, %r1, -1;\nselp.b32 %r4, 1, 0, "
			"%p1;\n"
			"selp.b32 %r5, 2, 0, %p2;\nadd.s32 %r4, %r4, %r5;\nadd.s32 %r3, %r3, %r4;\nxor.b32 %r2, %r2, "
			"%r3;\n" STORE("%r2")};
	RUNS(c);
	for (uint32_t i = 0; i < 32; i++) assert_int_equal(c.out[i], (0x11111111u << i % 4) ^ 2);
	sim_case wide = {.body = "cvt.u64.u32 %rd1, %tid;\nshl.b64 %rd1, %rd1, 31;\nand.b64 %rd1, %rd1, 0x700000000;\n"
				 "match.any.sync.b64 %r2, %rd1, -1;\n" STORE("%r2")};
	RUNS(wide);
	for (uint32_t i = 0; i < 32; i++) { /* bits 1 to 3 of the lane, shifted to 32 .. 34 */
		uint32_t same = 0;
		for (uint32_t k = 0; k < 32; k++) same |= (uint32_t)((k >> 1 & 7) == (i >> 1 & 7)) << k;
		assert_int_equal(wide.out[i], same);
	}
}

static void test_exchanges(void **state)
{
	(void)state;
#define SOME "setp.lt.u32 %p1, %tid, 4;\n@!%p1 bra END;\n"
	static const row rows[] = {
		{SOME "redux.sync.add.s32 %r1, %tid, -1;\nEND:\n", "an exchange names lane 4, which is elsewhere"},
		{SOME "match.any.sync.b32 %r1, %tid, -1;\nEND:\n", "an exchange names lane 4, which is elsewhere"},
		{SOME "bar.warp.sync -1;\nEND:\n", "an exchange names lane 4, which is elsewhere"},
		{SOME "elect.sync _|%p2, -1;\nEND:\n", "an exchange names lane 4, which is elsewhere"},
		{SOME "elect.sync _|%p2, 15;\nEND:\n", NULL},
		{"vote.sync.all.pred %p2, %p1, 15;\n",
			"a lane takes part in an exchange whose mask 0x0000000f does not name it"},
		/* masks that are not the same */
		{"setp.lt.u32 %p1, %tid, 16;\nselp.b32 %r2, -1, 0xffff0000, %p1;\nshfl.sync.idx.b32 %r1, %tid, 3, 31, "
		 "%r2;\n",
			"an exchange has the mask 0xffff0000 here and 0xffffffff in lane 0"},
		{"setp.lt.u32 %p1, %tid, 16;\nselp.b32 %r2, 0xffff, 0xffff0000, %p1;\n@%p1 redux.sync.add.s32 %r1, "
		 "%tid, "
		 "%r2;\n@!%p1 redux.sync.add.s32 %r1, %tid, %r2;\n",
			NULL},
		{"redux.sync.add.s32 %r1, %tid, %r60;\n", "the mask of an exchange is undefined"},
		{"setp.lt.u32 %p1, %tid, 9;\n@%p1 mov.b32 %r60, 511;\n@%p1 redux.sync.add.s32 %r1, %tid, %r60;\n",
			NULL},
		/* undefined operands */
		{"shfl.sync.idx.b32 %r1, %tid, %r60, 31, -1;\n", "a shuffle reads from an undefined lane"},
		{"shfl.sync.idx.b32 %r1, %tid, 3, %r60, -1;\n", "a shuffle reads from an undefined lane"},
		{"shfl.sync.idx.b32 %r1, %r60, 3, 31, -1;\n" STORE("%r1"), UNDEFINED},
		{"shfl.sync.idx.b32 %r1, %r60, 3, 31, -1;\n", NULL},
		{"setp.eq.u32 %p1, %tid, 3;\n@!%p1 mov.b32 %r60, 7;\nshfl.sync.idx.b32 %r1, %r60, 4, 31, -1;\n" STORE(
			 "%r1"),
			NULL},
		{"setp.eq.u32 %p1, %tid, 3;\n@!%p1 mov.b32 %r60, 7;\nshfl.sync.idx.b32 %r1, %r60, 3, 31, -1;\n" STORE(
			 "%r1"),
			UNDEFINED},
		/* from a lane that takes no part */
		{"setp.lt.u32 %p1, %tid, 8;\n@!%p1 bra END;\nshfl.sync.idx.b32 %r1, %tid, 12, 31, 255;\n" STORE(
			 "%r1") "END:\n",
			UNDEFINED},
		{"setp.lt.u32 %p1, %tid, 8;\n@!%p1 bra END;\nshfl.sync.idx.b32 %r1, %tid, 7, 31, 255;\n" STORE(
			 "%r1") "END:\n",
			NULL},
		{"redux.sync.add.s32 %r1, %r60, -1;\n" STORE("%r1"), UNDEFINED},
		{"match.any.sync.b32 %r1, %r60, -1;\n" STORE("%r1"), UNDEFINED},
		{"match.all.sync.b32 %r1|%p1, %r60, -1;\nselp.b32 %r2, 1, 0, %p1;\n" STORE("%r2"), UNDEFINED},
		{"vote.sync.ballot.b32 %r1, %p5, -1;\n" STORE("%r1"), UNDEFINED},
		{"vote.sync.any.pred %p1, %p5, -1;\n@%p1 bra END;\nEND:\n",
			"a branch is decided by an undefined value"},
		/* why they are */
		{DIVIDES "shfl.sync.idx.b32 %r1, %r20, 3, 31, -1;\n" STORE("%r1"), DIVISION},
		{DIVIDES "redux.sync.add.s32 %r1, %r20, -1;\n" STORE("%r1"), DIVISION},
		{DIVIDES "setp.lt.u32 %p1, %r20, 3;\nvote.sync.any.pred %p2, %p1, -1;\n@%p2 bra END;\nEND:\n",
			DIVISION},
		{DIVIDES "setp.lt.u32 %p1, %r20, 3;\nvote.sync.ballot.b32 %r1, %p1, -1;\n" STORE("%r1"), DIVISION},
	};
	ROWS(rows);
}

/* ---- Undefined bits, and why ---- */

static void test_undefined(void **state)
{
	(void)state;
#define HALF "mov.b16 %h1, 5;\nmov.b32 %r1, {%h1, %h9};\n" /* the upper half is undefined */
#define LOW(r) "and.b32 " r ", " r ", 0xffff;\n" STORE(r)
	static const row rows[] = {
		{HALF "xor.b32 %r2, %r1, 1;\n" LOW("%r2"), NULL},
		/* a byte that nobody has written: above it there are zeros, or its sign */
		{"ld.shared.u8 %h1, [blk_shared];\nshr.u16 %h2, %h1, 8;\ncvt.u32.u16 %r2, %h2;\n" STORE("%r2"), NULL},
		{"ld.shared.u8 %h1, [blk_shared];\nshr.u16 %h2, %h1, 7;\ncvt.u32.u16 %r2, %h2;\n" STORE("%r2"),
			UNDEFINED},
		{"ld.shared.s8 %h1, [blk_shared];\nshr.u16 %h2, %h1, 8;\ncvt.u32.u16 %r2, %h2;\n" STORE("%r2"),
			UNDEFINED},
		{HALF "xor.b32 %r2, %r1, 1;\n" STORE("%r2"), UNDEFINED},
		{HALF "not.b32 %r2, %r1;\n" LOW("%r2"), NULL},
		{HALF "or.b32 %r2, %r1, 0xffff0000;\n" STORE("%r2"), NULL}, /* a defined 1 wins */
		{HALF "or.b32 %r2, %r1, 0x7fff0000;\n" STORE("%r2"), UNDEFINED},
		{HALF "or.b32 %r2, 0xffff0000, %r1;\n" STORE("%r2"), NULL},
		{HALF "and.b32 %r2, %r1, 0x1ffff;\n" STORE("%r2"), UNDEFINED},
		{HALF "add.s32 %r2, %r1, %r1;\n" LOW("%r2"), NULL}, /* a carry only goes up */
		{HALF "shl.b32 %r2, %r1, 15;\n" STORE("%r2"), UNDEFINED},
		{HALF "shl.b32 %r2, %tid, %r60;\n" STORE("%r2"), UNDEFINED}, /* where to is undefined */
		{HALF "shf.l.wrap.b32 %r2, 0, %r1, 16;\n" STORE("%r2"), NULL},
		{HALF "shf.l.wrap.b32 %r2, 0, 0, %r60;\n" STORE("%r2"), UNDEFINED},
		{HALF "prmt.b32 %r2, %r1, 0, 0x5410U;\n" STORE("%r2"), NULL},
		{HALF "prmt.b32 %r2, 0, 0, %r60;\n" STORE("%r2"), UNDEFINED},
		{HALF "cvt.u32.u16 %r2, %h9;\n" STORE("%r2"), UNDEFINED},
		{HALF "cvt.s32.s16 %r2, %h1;\n" STORE("%r2"), NULL},
		{HALF "popc.b32 %r2, %r1;\n" STORE("%r2"), UNDEFINED},
		{HALF "add.f16x2 %r2, %r1, %r1;\n" LOW("%r2"), NULL},
		{"cvt.rn.f16x2.e4m3x2 %r2, %h9;\n" STORE("%r2"), UNDEFINED},
		{HALF "mov.b32 {%h3, %h4}, %r1;\ncvt.rn.f16x2.e5m2x2 %r2, %h3;\n" STORE("%r2"), NULL},
		{"selp.b32 %r2, %r60, 3, %p5;\n" STORE("%r2"), UNDEFINED},
		{"setp.lt.u32 %p1, %tid, 5;\nselp.b32 %r2, 4, %r60, %p1;\n@%p1 bra DEF;\nbra.uni END;\nDEF:\n" STORE(
			 "%r2") "END:\n",
			NULL},
		/* of several operands, the first that is undefined has the cause */
		{DIVIDES "add.s32 %r1, %r20, 1;\n" STORE("%r1"), DIVISION},
		{DIVIDES "mad.lo.s32 %r1, 2, %r20, 1;\n" STORE("%r1"), DIVISION},
		{DIVIDES "mad.lo.s32 %r1, 2, 3, %r20;\n" STORE("%r1"), DIVISION},
		{DIVIDES "setp.lt.u32 %p1, 3, %r20;\n@%p1 bra END;\nEND:\n", DIVISION},
		{DIVIDES "setp.lt.u32 %p1, %r20, 3;\nsetp.lt.and.u32 %p2, %tid, 99, %p1;\n@%p2 bra END;\nEND:\n",
			DIVISION},
		{DIVIDES "setp.lt.u32 %p1, %r20, 3;\nsetp.lt.u32 %p3, %tid, 50;\nand.pred %p2, %p1, %p3;\n@%p2 bra "
			 "END;\nEND:\n",
			DIVISION},
		{DIVIDES "setp.lt.u32 %p1, %r20, 3;\nsetp.lt.u32 %p3, %tid, 50;\nand.pred %p2, %p3, %p1;\n@%p2 bra "
			 "END;\nEND:\n",
			DIVISION},
		{DIVIDES "setp.lt.u32 %p1, %r20, 3;\nselp.b32 %r1, 4, 5, %p1;\n" STORE("%r1"), DIVISION},
		{DIVIDES "selp.b32 %r1, 4, %r20, %p5;\n" STORE("%r1"), UNDEFINED},
		{DIVIDES "mad.lo.s32 %r2, %tid, 4, %r20;\ncvt.u64.u32 %rd1, %r2;\nadd.s64 %rd1, %rd1, "
			 "%out;\nld.global.b32 %r3, "
			 "[%rd1];\n",
			"an address is undefined: it comes from a division by 0 at"},
		{DIVIDES MINE "atom.global.add.u32 %r1, [%out], %r20;\n",
			"an undefined value is the operand of an atomic: it comes from a division by 0 at"},
		{DIVIDES MINE "atom.global.cas.b32 %r1, [%out], 3, %r20;\n",
			"an undefined value is the operand of an atomic: it comes from a division by 0 at"},
		{DIVIDES "mad.lo.s32 %r1, %tid, 4, blk_shared;\nst.shared.b32 [%r1], %r20;\nld.shared.b32 %r2, "
			 "[%r1];\n" STORE("%r2"),
			DIVISION},
		{DIVIDES "mad.lo.s32 %r1, %tid, 4, blk_shared;\nst.shared.b32 [%r1], %r20;\nmov.b16 %h1, "
			 "7;\nst.shared.b8 [%r1], "
			 "%h1;\nld.shared.b32 %r2, [%r1];\n" STORE("%r2"),
			DIVISION},
		{DIVIDES "setp.lt.u32 %p1, %r60, 3;\n@%p1 bra END;\nEND:\n",
			"a branch is decided by an undefined value\n"},
		{DIVIDES "setp.lt.u32 %p3, %tid, 3;\nselp.b32 %r1, %r60, %r60, %p3;\n" STORE("%r1"), UNDEFINED "\n"},
		/* row 3, columns 4 and 5 of the second matrix: lane 14's */
		{DIVIDES "mad.lo.s32 %r1, %tid, 4, blk_shared;\nst.shared.b32 [%r1], 7;\nst.shared.b32 [%r1+128], 7;\n"
			 "setp.ne.u32 %p1, %tid, 14;\n@%p1 bra IN;\nst.shared.b32 [%r1+128], %r20;\nIN:\nbar.sync 0;\n"
			 "mad.lo.s32 %r7, %tid, 16, blk_shared;\n"
			 "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r8, %r9}, [%r7];\n" STORE("%r9"),
			DIVISION},
		/* a part of it that was overwritten since */
		{DIVIDES "mad.lo.s32 %r1, %tid, 4, blk_shared;\nst.shared.b32 [%r1], %r20;\nst.shared.b32 [%r1], "
			 "7;\nld.shared.b32 "
			 "%r2, [%r1];\n" STORE("%r2"),
			NULL},
		/* an operand that was undefined before has no cause of its own */
		{"//@ check.divisor.b32.u32 %r20, %r60;\n" STORE("%r20"), UNDEFINED},
		{"mov.b32 %r20, 8;\n//@ check.divisor.b32.u32 %r20, %r60;\n" STORE("%r20"), NULL},
		/* a gather's index; what an unsigned one is */
		{"mov.b32 %r20, 8;\nmov.b32 %r21, -3;\n//@ check.gather.b32.s32 %r20, %r21, 64;\n" STORE("%r20"),
			"it comes from a gather at line 30 of the PTX, whose index -3 is outside of the 64 elements"},
		{"mov.b32 %r20, 8;\nmov.b32 %r21, -3;\n//@ check.gather.b32.u32 %r20, %r21, 64;\n" STORE("%r20"),
			"it comes from a gather at line 30 of the PTX, whose index 4294967293 is outside of the 64 "
			"elements"},
		{"mov.b32 %r20, 8;\nmov.b32 %r21, 63;\n//@ check.gather.b32.u32 %r20, %r21, 64;\n" STORE("%r20"), NULL},
		{"mov.b32 %r20, 8;\nmov.b32 %r21, 64;\n//@ check.gather.b32.u32 %r20, %r21, 64;\n" STORE("%r20"),
			"whose index 64 is"},
		{.body = "mov.b32 %r20, 8;\nmov.b32 %r21, -3;\n//@ check.gather.b32.u32 %r20, %r21, 64;\n" STORE(
			 "%r20"),
			.says = "\"operation\": \"gather\", \"value\": 4294967293, \"extent\": 64}",
			.json = true},
		{.body = "mov.b32 %r20, 8;\nmov.b32 %r21, -3;\n//@ check.gather.b32.s32 %r20, %r21, 64;\n" STORE(
			 "%r20"),
			.says = "\"operation\": \"gather\", \"value\": -3, \"extent\": 64}",
			.json = true},
		/* loads that widen what is undefined in part */
		{"mad.lo.s32 %r1, %tid, 4, blk_shared;\nmov.b16 %h1, 5;\nst.shared.b8 [%r1], %h1;\nld.shared.s8 %r2, "
		 "[%r1];\n" STORE("%r2"),
			NULL},
		{"mad.lo.s32 %r1, %tid, 4, blk_shared;\nmov.b16 %h1, 5;\nst.shared.b8 [%r1], %h1;\nld.shared.s16 %r2, "
		 "[%r1];\nand.b32 "
		 "%r2, %r2, 255;\n" STORE("%r2"),
			NULL},
		{"mad.lo.s32 %r1, %tid, 4, blk_shared;\nmov.b16 %h1, 5;\nst.shared.b8 [%r1], %h1;\nld.shared.s16 %r2, "
		 "[%r1];\nshr.u32 "
		 "%r2, %r2, 31;\n" STORE("%r2"),
			UNDEFINED},
		{"mad.lo.s32 %r1, %tid, 4, blk_shared;\nmov.b16 %h1, 5;\nst.shared.b8 [%r1], %h1;\nld.shared.u16 %r2, "
		 "[%r1];\nshr.u32 "
		 "%r2, %r2, 16;\n" STORE("%r2"),
			NULL},
		/* barriers and copies of an undefined number */
		{"bar.sync %r60;\n", "a barrier's number is undefined"},
		{"bar.sync 1, %r60;\n", "a barrier's number is undefined"},
		{"bar.sync 16;\n", "barrier 16 of 32 threads, in a program of 32"},
		{"bar.sync 15;\n", NULL},
		{"bar.sync 1, 0;\n", "barrier 1 of 0 threads, in a program of 32"},
		{"bar.sync 1, 33;\n", "barrier 1 of 33 threads, in a program of 32"},
		{"bar.sync 1, 64;\n", "barrier 1 of 64 threads, in a program of 32"},
		{"cp.async.ca.shared.global [blk_shared], [%rd20], 4;\n", "an address is undefined"},
		{"cp.async.ca.shared.global [%r60], [%in], 4;\n", "an address is undefined"},
		{"mad.lo.s32 %r1, %tid, 4, blk_shared;\ncp.async.ca.shared.global [%r1], [%in], 4, %r60;\n",
			"the size of a copy is undefined"},
		{"mad.lo.s32 %r1, %tid, 4, blk_shared;\ncp.async.ca.shared.global [%r1], [%in], 4, 5;\n",
			"a copy of 4 bytes reads 5"},
	};
	ROWS(rows);
}

/* Warps that wait at one barrier while another one is passed. */
static void test_two_barriers(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 6; seed++) {
		sim_case c = {.threads = 128,
			.shared = 512,
			.options = {.seed = seed},
			.body = "mad.lo.s32 %r1, %tid, 4, blk_shared;\nst.shared.b32 [%r1], "
				"%tid;\nand.b32 %r2, %tid, 32;\nshr.u32 %r3, "
				"%r2, 5;\nadd.s32 %r3, %r3, 1;\nbar.sync %r3, 64;\nxor.b32 %r4, %r1, "
				"256;\n" /* 64 threads on: the
												      same barrier's */
				"ld.shared.b32 %r5, [%r4];\nbar.sync 0;\n" STORE("%r5")};
		RUNS(c);
		for (uint32_t i = 0; i < 128; i++) assert_int_equal(c.out[i], i ^ 64);
	}
}

/* ---- Copies ---- */

/* A commit and a wait are each thread's own. */
static void test_groups_of_copies(void **state)
{
	(void)state;
#define COPY(at) "cp.async.ca.shared.global [%r1+" at "], [%rd1+" at "], 4;\n"
#define SETUP "mad.lo.s32 %r1, %tid, 4, blk_shared;\nmad.wide.u32 %rd1, %tid, 4, %in;\nsetp.lt.u32 %p1, %tid, 16;\n"
#define LOAD(at) "ld.shared.b32 %r5, [%r1+" at "];\n" STORE("%r5")
	static const row rows[] = {
		{SETUP COPY("0") "cp.async.commit_group;\ncp.async.wait_group 0;\n" LOAD("0"), NULL},
		{SETUP COPY("0") "@%p1 cp.async.commit_group;\ncp.async.wait_group 0;\n@!%p1 bra END;\n" LOAD(
			 "0") "END:\n",
			NULL},
		/* those that have not committed have nothing to wait for */
		{SETUP COPY("0") "@%p1 cp.async.commit_group;\ncp.async.wait_group 0;\n" LOAD("0"),
			"program (0, 0, 0), thread 16"},
		/* each half commits on its own way: one group each */
		{SETUP COPY("0") "@%p1 cp.async.commit_group;\n@!%p1 cp.async.commit_group;\n" COPY(
			 "128") "cp.async.commit_group;\ncp.async.wait_group 1;\n" LOAD("0"),
			NULL},
		{SETUP COPY("0") "@%p1 cp.async.commit_group;\n@!%p1 cp.async.commit_group;\n" COPY(
			 "128") "cp.async.commit_group;\ncp.async.wait_group 1;\n" LOAD("128"),
			UNDEFINED},
		{SETUP COPY("0") "@%p1 cp.async.commit_group;\n@!%p1 cp.async.commit_group;\ncp.async.wait_group "
				 "1;\n" LOAD("0"),
			UNDEFINED},
		{SETUP COPY("0") "cp.async.commit_group;\ncp.async.wait_group 4294967296;\n" LOAD("0"), UNDEFINED},
		{SETUP COPY("0") "cp.async.commit_group;\ncp.async.wait_group 18446744073709551615;\n" LOAD("0"),
			UNDEFINED},
		{SETUP COPY("0") "@%p1 cp.async.wait_all;\n@!%p1 cp.async.wait_all;\n" LOAD("0"), NULL},
		{SETUP COPY("0") "@%p1 cp.async.wait_all;\n" LOAD("0"), "program (0, 0, 0), thread 16"},
	};
	ROWS(rows);
	/* what has landed is the thread's own again, and lands once; at odd seeds it lands when it is waited for */
	for (uint64_t seed = 0; seed < 4; seed++) {
		sim_case once = {
			.body = SETUP COPY(
				"0") "cp.async.commit_group;\ncp.async.wait_group 0;\nst.shared.b32 [%r1], "
				     "%tid;\n" COPY("128") "cp.async.commit_group;\ncp.async.wait_group 0;\n" LOAD("0"),
			.options = {.seed = seed}};
		for (uint32_t i = 0; i < 64; i++) once.in[i] = 1000 + i;
		RUNS(once);
		for (uint32_t i = 0; i < 32; i++) assert_int_equal(once.out[i], i);
	}
	static const char *const words[] = {"0", "1", "2", "3", "4"};
	for (uint32_t n = 0; n <= 4; n++) { /* a copy that reads fewer bytes: the rest are zeros */
		char body[512];
		snprintf(body, sizeof body,
			"%scp.async.ca.shared.global [%%r1], [%%rd1], 4, %s;\ncp.async.wait_all;\n%s", SETUP, words[n],
			LOAD("0"));
		sim_case c = {.body = body};
		for (uint32_t i = 0; i < 64; i++) c.in[i] = 0x01020304 * (i % 32 + 1);
		RUNS(c);
		for (uint32_t i = 0; i < 32; i++)
			assert_int_equal(c.out[i], n == 4 ? c.in[i] : c.in[i] & ((1u << 8 * n) - 1));
	}
}

/* The last byte that is read of an odd number lies outside. */
static void test_odd_copies(void **state)
{
	(void)state;
	sim_case c = {.in_bytes = 42,
		.body = "setp.ne.u32 %p1, %tid, 0;\n@%p1 ret;\ncp.async.ca.shared.global [blk_shared], [%in+40], 4, "
			"3;\ncp.async.wait_all;\n"};
	assert_int_equal(sim_try(&c), BLK_ERROR_KERNEL);
	assert_non_null(strstr(blk_error(), "1 bytes are read outside in, which has 42 bytes: at offset 42"));
	c.body = "setp.ne.u32 %p1, %tid, 0;\n@%p1 ret;\ncp.async.ca.shared.global [blk_shared], [%in+40], 4, "
		 "2;\ncp.async.wait_all;\n";
	RUNS(c);
}

/* ---- Atomics ---- */

static void test_atomics(void **state)
{
	(void)state;
	static const struct {
		const char *operation; /* on %r1, which is `with` */
		uint32_t was, with, wanted;
	} cases[] = {
		{"red.global.add.noftz.f16x2 [%out], %r1", 0x3c004000, 0x40003c00, 0x42004200},
		{"red.global.min.noftz.f16x2 [%out], %r1", 0x3c004000, 0x40003c00, 0x3c003c00},
		{"red.global.max.noftz.f16x2 [%out], %r1", 0x3c004000, 0x40003c00, 0x40004000},
		{"red.global.max.noftz.f16x2 [%out], %r1", 0xbc00bc00, 0xc0007e00, 0xbc00bc00}, /* -1 -1, -2 nan */
		{"red.global.min.noftz.bf16x2 [%out], %r1", 0x3f80bf80, 0x4000c000, 0x3f80c000},
		{"red.global.min.noftz.f16x2 [%out], %r1", 0x00008000, 0x80000000,
			0x80008000}, /* zeros of both signs */
		{"red.global.max.noftz.f16x2 [%out], %r1", 0x00008000, 0x80000000, 0x00000000},
		{"red.global.min.s32 [%out], %r1", 5, 0xfffffffe, 0xfffffffe},
		{"red.global.max.u32 [%out], %r1", 5, 0xfffffffe, 0xfffffffe},
		{"red.global.inc.u32 [%out], %r1", 5, 9, 6},
		{"red.global.inc.u32 [%out], %r1", 9, 9, 0},
		{"red.global.inc.u32 [%out], %r1", 10, 9, 0},
		{"red.global.dec.u32 [%out], %r1", 5, 9, 4},
		{"red.global.dec.u32 [%out], %r1", 0, 9, 9},
		{"red.global.dec.u32 [%out], %r1", 10, 9, 9},
		{"red.global.xor.b32 [%out], %r1", 0xff00ff00, 0x0ff00ff0, 0xf0f0f0f0},
		{"atom.global.exch.b32 %r2, [%out], %r1", 1, 7, 7},
		{"atom.global.cas.b32 %r2, [%out], 1, %r1", 1, 7, 7},
		{"atom.global.cas.b32 %r2, [%out], 2, %r1", 1, 7, 1},
		{"red.global.add.f32 [%out], %r1", 0x3f800000, 0x40000000, 0x40400000},
		{"red.global.add.f32 [%out], %r1", 0x00400000, 0x00100000, 0}, /* denormals are zeros */
		/* what the compiler says of elements of a word */
		{"//@ check.part.b8 %rd5;\nred.global.or.b32 [%out], %r1", 0x11223344, 0x00080000, 0x112a3344},
		{"//@ check.part.b16 %rd5;\nred.global.and.b32 [%out], %r1", 0x11223344, 0x00ffffff, 0x00223344},
		{"//@ check.part.b8 %rd5;\nred.global.xor.b32 [%out], %r1", 0x11223344, 0x00080008, 0x112a334c},
		{"//@ check.part.b8 %rd5;\nred.global.add.u32 [%out], %r1", 0x11223344, 0x00080000, 0x112a3344},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char body[512];
		snprintf(body, sizeof body,
			"setp.ne.u32 %%p1, %%tid, 0;\n@%%p1 ret;\nmov.b32 %%r1, %u;\nadd.s64 %%rd5, %%out, 2;\n%s;\n",
			cases[i].with, cases[i].operation);
		sim_case c = {.body = body};
		c.out[0] = cases[i].was;
		RUNS(c);
		if (c.out[0] != cases[i].wanted)
			fail_msg("%s of 0x%x and 0x%x: 0x%x, not 0x%x", cases[i].operation, cases[i].was, cases[i].with,
				c.out[0], cases[i].wanted);
	}
}

static void test_atomics_of_parts(void **state)
{
	(void)state;
#define PART(at) "setp.ne.u32 %p1, %tid, 0;\n@%p1 ret;\nadd.s64 %rd5, %out, " at ";\n"
#define SHARED_WORD "st.shared.b8 [blk_shared+1], %h1;\ncvta.shared.u64 %rd6, blk_shared;\nadd.s64 %rd5, %rd6, 1;\n"
	static const row rows[] = {
		/* what it reads beside its element is undefined, and what it reads of that is not */
		{PART("1") "//@ check.part.b8 %rd5;\natom.global.or.b32 %r2, [%out], 256;\nst.global.b32 [%out+4], "
			   "%r2;\n",
			UNDEFINED},
		{PART("1") "//@ check.part.b8 %rd5;\natom.global.or.b32 %r2, [%out], 256;\nand.b32 %r2, %r2, 0xff00;\n"
			   "st.global.b32 [%out+4], %r2;\n",
			NULL},
		/* all of the word where its address, its bits or its operation are not the element's */
		{PART("4") "//@ check.part.b8 %rd5;\natom.global.or.b32 %r2, [%out], 256;\nst.global.b32 [%out+4], "
			   "%r2;\n",
			NULL},
		{PART("1") "//@ check.part.b16 %rd5;\natom.global.or.b32 %r2, [%out], 256;\nst.global.b32 [%out+4], "
			   "%r2;\n",
			NULL},
		{PART("1") "//@ check.part.b8 %rd5;\natom.global.or.b32 %r2, [%out], 257;\nst.global.b32 [%out+4], "
			   "%r2;\n",
			NULL},
		{PART("1") "//@ check.part.b8 %rd5;\natom.global.and.b32 %r2, [%out], 0xffffff00;\nst.global.b32 "
			   "[%out+4], %r2;\n",
			NULL},
		{PART("1") "//@ check.part.b8 %rd5;\natom.global.add.u32 %r2, [%out], 256;\nst.global.b32 [%out+4], "
			   "%r2;\n",
			NULL},
		{PART("1") "//@ check.part.b8 %rd20;\natom.global.or.b32 %r2, [%out], 256;\n",
			"an address is undefined"},
		{"setp.ne.u32 %p1, %tid, 0;\n@%p1 ret;\natom.global.add.u32 %r2, [%rd20], 256;\n",
			"an address is undefined"},
		/* only the element has been written */
		{"setp.ne.u32 %p1, %tid, 0;\n@%p1 ret;\nmov.b16 %h1, 7;\n" SHARED_WORD
		 "//@ check.part.b8 %rd5;\natom.or.b32 %r2, [%rd6], 256;\n",
			NULL},
		{"setp.ne.u32 %p1, %tid, 0;\n@%p1 ret;\nmov.b16 %h1, 7;\n" SHARED_WORD
		 "atom.or.b32 %r2, [%rd6], 256;\n",
			"an atomic works on memory that nothing has written"},
		/* an exchange defines what was not, and what it finds is not */
		{"setp.ne.u32 %p1, %tid, 0;\n@%p1 ret;\natom.shared.exch.b32 %r2, [blk_shared], 5;\nld.shared.b32 %r3, "
		 "[blk_shared];\nst.global.b32 [%out], %r3;\n",
			NULL},
		{"setp.ne.u32 %p1, %tid, 0;\n@%p1 ret;\natom.shared.exch.b32 %r2, [blk_shared], 5;\nst.global.b32 "
		 "[%out], %r2;\n",
			UNDEFINED},
	};
	ROWS(rows);
}

/* ---- Numbers ---- */

/* The lower half of the last word: a conversion or an operation on constants. */
static void test_numbers(void **state)
{
	(void)state;
	static const struct {
		const char *instruction; /* of %r1 = a, %r2 = b, into %r3, or %h1 = a into %h3 */
		uint32_t a, b, wanted;
	} cases[] = {
		/* tf32: to the nearest even one, and ties away from 0 */
		{"cvt.rn.tf32.f32 %r3, %r1", 0x3f801000, 0, 0x3f800000},
		{"cvt.rn.tf32.f32 %r3, %r1", 0x3f803000, 0, 0x3f804000},
		{"cvt.rn.tf32.f32 %r3, %r1", 0x3f801001, 0, 0x3f802000},
		{"cvt.rna.tf32.f32 %r3, %r1", 0x3f801000, 0, 0x3f802000},
		{"cvt.rna.tf32.f32 %r3, %r1", 0xbf801000, 0, 0xbf802000},
		{"cvt.rz.tf32.f32 %r3, %r1", 0x3f801fff, 0, 0x3f800000},
		{"cvt.rn.tf32.f32 %r3, %r1", 0x7f800000, 0, 0x7f800000},
		{"cvt.rn.ftz.f16.f32 %h3, %r1", 0x3f800000, 0, 0x3c00},
		{"cvt.rn.ftz.f16.f32 %h3, %r1", 0x80000001, 0, 0x8000},
		{"cvt.rn.sat.f16.f32 %h3, %r1", 0x40000000, 0, 0x3c00},
		{"cvt.rn.sat.f16.f32 %h3, %r1", 0xc0000000, 0, 0},
		{"cvt.rn.satfinite.f16x2.f32 %r3, %r1, %r2", 0x7f000000, 0xff000000, 0x7bfffbff}, /* 2^127, -2^127 */
		{"cvt.rn.satfinite.f16x2.f32 %r3, %r1, %r2", 0x3f800000, 0x40000000, 0x3c004000},
		{"cvt.rn.satfinite.bf16x2.f32 %r3, %r1, %r2", 0x7f7fffff, 0x7f800000, 0x7f7f7f7f},
		{"cvt.rn.relu.f16x2.f32 %r3, %r1, %r2", 0xbf800000, 0x3f800000, 0x00003c00},
		/* halves */
		{"ex2.approx.f16x2 %r3, %r1", 0x4200bc00, 0, 0x48003800},  /* 3, -1: 8, 0.5 */
		{"tanh.approx.f16x2 %r3, %r1", 0x00007c00, 0, 0x00003c00}, /* 0, inf: 0, 1 */
		{"ex2.approx.ftz.bf16x2 %r3, %r1", 0x4040bf80, 0, 0x41003f00},
		{"add.ftz.f16x2 %r3, %r1, %r2", 0x00013c00, 0x00013c00, 0x00004000}, /* a denormal is 0 */
		{"add.f16x2 %r3, %r1, %r2", 0x00013c00, 0x00013c00, 0x00024000},
		{"fma.rn.relu.f16x2 %r3, %r1, %r2, %r2", 0x3c00bc00, 0x3c004000, 0x40000000},
		{"fma.rn.relu.f16x2 %r3, %r1, %r2, %r2", 0xc000c200, 0x3c003c00, 0},
		/* 9 * 29/256 lies between two bf16s: what is added says which; -2^-100, 2^-100 */
		{"fma.rn.bf16x2 %r3, %r1, %r2, 0x8d800d80", 0x41104110, 0x3de83de8, 0x3f823f83},
		{"fma.rn.bf16x2 %r3, %r1, %r2, 0x0d808d80", 0xc110c110, 0x3de83de8, 0xbf82bf83},
		/* nans: one is left out, of two there is one without a sign; the same type's is kept */
		{"min.f32 %r3, %r1, %r2", 0x7fc00001, 0xffc00002, 0x7fffffff},
		{"max.f32 %r3, %r1, %r2", 0x7fc00001, 0xffc00002, 0x7fffffff},
		{"min.f32 %r3, %r1, %r2", 0x7fc00001, 0x3f800000, 0x3f800000},
		{"min.f32 %r3, %r1, %r2", 0x3f800000, 0xffc00002, 0x3f800000},
		{"cvt.ftz.f32.f32 %r3, %r1", 0x7fc00001, 0, 0x7fc00001},
		{"cvt.ftz.f32.f32 %r3, %r1", 0x80000001, 0, 0x80000000},
		/* sums alone: each half as it is */
		{"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r3, %r4}, {%r2, %r2, %r2, %r2}, {%r2, %r2}, "
		 "{%r1, %r1}",
			0x3c013c03, 0, 0x3c013c03},
		/* two registers as one, moved by 32 at most */
		{"shf.l.clamp.b32 %r3, %r1, %r2, 31", 0x12345678, 0x9abcdef1, 0x891a2b3c},
		{"shf.l.clamp.b32 %r3, %r1, %r2, 32", 0x12345678, 0x9abcdef1, 0x12345678},
		{"shf.l.clamp.b32 %r3, %r1, %r2, 33", 0x12345678, 0x9abcdef1, 0x12345678},
		{"shf.l.clamp.b32 %r3, %r1, %r2, 0", 0x12345678, 0x9abcdef1, 0x9abcdef1},
		{"shf.r.clamp.b32 %r3, %r1, %r2, 31", 0x12345678, 0x9abcdef1, 0x3579bde2},
		{"shf.r.clamp.b32 %r3, %r1, %r2, 32", 0x12345678, 0x9abcdef1, 0x9abcdef1},
		{"shf.r.clamp.b32 %r3, %r1, %r2, 99", 0x12345678, 0x9abcdef1, 0x9abcdef1},
		{"shf.r.clamp.b32 %r3, %r1, %r2, 0", 0x12345678, 0x9abcdef1, 0x12345678},
		{"cvt.rn.satfinite.e5m2x2.f32 %h3, %r1, %r2", 0x7f800000, 0xff800000, 0x7bfb},
		{"cvt.rn.satfinite.e4m3x2.f32 %h3, %r1, %r2", 0x7f800000, 0xff800000, 0x7efe},
		/* integers */
		{"bfe.u32 %r3, %r1, 4, 8", 0x12345678, 0, 0x67},
		{"bfe.s32 %r3, %r1, 4, 4", 0x12345678, 0, 7},
		{"bfe.s32 %r3, %r1, 0, 4", 0x12345678, 0, 0xfffffff8},
		{"bfe.u32 %r3, %r1, 0, 255", 0x12345678, 0, 0x12345678},
		{"bfe.s32 %r3, %r1, 40, 3", 0x92345678, 0, 0xffffffff},
		{"bfe.u32 %r3, %r1, 3, 0", 0x12345678, 0, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char body[512];
		bool half = strstr(cases[i].instruction, "%h3") != NULL;
		snprintf(body, sizeof body, "mov.b32 %%r1, %u;\nmov.b32 %%r2, %u;\n%s;\n%s%s", cases[i].a, cases[i].b,
			cases[i].instruction, half ? "cvt.u32.u16 %r3, %h3;\n" : "", STORE("%r3"));
		sim_case c = {.body = body};
		RUNS(c);
		if (c.out[7] != cases[i].wanted)
			fail_msg("%s of 0x%x, 0x%x: 0x%x, not 0x%x", cases[i].instruction, cases[i].a, cases[i].b,
				c.out[7], cases[i].wanted);
	}
	sim_case tie = {.body = "cvt.rna.f16.f32 %h1, 0f3F800000;\n"};
	assert_int_equal(sim_try(&tie), BLK_ERROR_UNSUPPORTED);
	assert_non_null(strstr(blk_error(), "the instruction cvt.rna.f16.f32 is not simulated"));
}

static void test_division(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t a, b, quotient, rest;
	} cases[] = {
		{"s64", 7, -1, -7, 0},
		{"s64", INT64_MIN, -1, INT64_MIN, 0},
		{"s64", INT64_MIN, 1, INT64_MIN, 0},
		{"s64", -7, 2, -3, -1},
		{"s64", 5, 0, -1, 5},
		{"u64", -1, 2, INT64_MAX, 1},
		{"u64", 5, 0, -1, 5},
		{"u64", 5, -1, 0, 5},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char body[768];
		snprintf(body, sizeof body,
			"mov.b64 %%rd1, 0x%llx;\nmov.b64 %%rd2, 0x%llx;\ndiv.%s %%rd3, %%rd1, %%rd2;\nrem.%s %%rd4, "
			"%%rd1, %%rd2;\n"
			"setp.eq.u32 %%p1, %%tid, 0;\n@%%p1 st.global.v2.b64 [%%out], {%%rd3, %%rd4};\nbfe.u64 %%rd5, "
			"%%rd1, 0, 64;\n"
			"@%%p1 st.global.b64 [%%out+16], %%rd5;\n",
			(unsigned long long)cases[i].a, (unsigned long long)cases[i].b, cases[i].name, cases[i].name);
		sim_case c = {.body = body};
		RUNS(c);
		int64_t got[3];
		memcpy(got, c.out, sizeof got);
		assert_true(got[0] == cases[i].quotient && got[1] == cases[i].rest && got[2] == cases[i].a);
	}
	sim_case small = {
		.body = "mov.b32 %r1, 0x80000000;\ndiv.s32 %r2, %r1, -1;\nrem.s32 %r3, %r1, -1;\nadd.s32 %r2, %r2, "
			"%r3;\n" STORE("%r2")};
	RUNS(small);
	assert_int_equal(small.out[3], 0x80000000);
}

/* ---- Matrices ---- */

/* Of (0, 0) alone: a b + c; the other elements are c's. */
static void test_products(void **state)
{
	(void)state;
	static const struct {
		const char *shape;
		uint32_t a, b, c, wanted;
		unsigned na, nb, nd;
	} cases[] = {
		{"m16n8k16.row.col.f32.f16.f16.f32", 0x4000, 0x4200, 0x3f800000, 0x40e00000, 4, 2, 4}, /* 2 3 + 1 */
		{"m16n8k16.row.col.f32.f16.f16.f32", 0x7c00, 0, 0x3f800000, 0x7fffffff, 4, 2, 4},      /* inf 0 */
		{"m16n8k16.row.col.f16.f16.f16.f16", 0x4000, 0x4200, 0xbc003c00, 0xbc004700, 4, 2,
			2}, /* and -1 beside it */
		{"m16n8k16.row.col.f16.f16.f16.f16", 0x7c00, 0, 0xbc003c00, 0x7fff7fff, 4, 2, 2},
		{"m16n8k16.row.col.f16.f16.f16.f16", 0x7bff, 0x4000, 0, 0x7c00, 4, 2, 2},
		{"m8n8k16.row.col.s32.s8.s8.s32", 0x80, 0x80, 7, 16391, 1, 1, 2}, /* -128 -128 + 7 */
		{"m8n8k16.row.col.s32.u8.s8.s32", 0x80, 0x80, 7, (uint32_t)(7 - 16384), 1, 1, 2},
		{"m8n8k16.row.col.satfinite.s32.s8.s8.s32", 0x80, 0x80, 0x7fffffff, 0x7fffffff, 1, 1, 2},
		{"m8n8k16.row.col.satfinite.s32.s8.s8.s32", 0x80, 0x7f, 0x80000001, 0x80000000, 1, 1, 2},
		{"m8n8k16.row.col.s32.s8.s8.s32", 0x80, 0x80, 0x7fffffff, 0x80003fff, 1, 1, 2},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char body[1024];
		static const char *const lists[3][5] = {{"", "%r1", "%r1, %r5", "", "%r1, %r5, %r5, %r5"},
			{"", "%r2", "%r2, %r5", "", ""}, {"", "", "%r3, %r3", "", "%r3, %r3, %r3, %r3"}};
		snprintf(body, sizeof body,
			"setp.eq.u32 %%p1, %%tid, 0;\nselp.b32 %%r1, %u, 0, %%p1;\nselp.b32 %%r2, %u, 0, "
			"%%p1;\nmov.b32 %%r3, "
			"%u;\nmov.b32 %%r5, 0;\nmma.sync.aligned.%s {%s}, {%s}, {%s}, {%s};\n%s",
			cases[i].a, cases[i].b, cases[i].c, cases[i].shape,
			cases[i].nd == 4 ? "%r10, %r11, %r12, %r13" : "%r10, %r11", lists[0][cases[i].na],
			lists[1][cases[i].nb], lists[2][cases[i].nd], STORE("%r10"));
		sim_case c = {.body = body};
		RUNS(c);
		bool spreads = cases[i].a == 0x7c00; /* an infinite one times the zeros of its row */
		for (uint32_t lane = 0; lane < 32; lane += lane == 0 && spreads ? 4 : 1)
			if (c.out[lane] != (lane ? cases[i].c : cases[i].wanted))
				fail_msg("%s, lane %u: 0x%x, not 0x%x", cases[i].shape, lane, c.out[lane],
					lane ? cases[i].c : cases[i].wanted);
	}
}

static void test_matrices(void **state)
{
	(void)state;
#define MULTIPLY "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r10, %r11}, {%r1}, {%r2}, {%r3, %r3};\n"
#define KNOWN "mov.b32 %r1, 1;\nmov.b32 %r2, 1;\nmov.b32 %r3, 1;\n"
/* Lane 4 r + c has (r, 2 c), (r, 2 c + 1); of a row r, of b column r. */
#define UNKNOWN(r, lane) "setp.eq.u32 %p1, %tid, " lane ";\n@%p1 mov.b32 " r ", %r60;\n"
#define STORE_OF(lane, r) "setp.eq.u32 %p2, %tid, " lane ";\n@%p2 st.global.b32 [%out], " r ";\n"
#define PLACE "and.b32 %r6, %tid, 7;\nmad.lo.s32 %r6, %r6, 16, blk_shared;\n"
	static const row rows[] = {
		{KNOWN UNKNOWN("%r1", "6") MULTIPLY STORE_OF("0", "%r10"), NULL},
		{KNOWN UNKNOWN("%r1", "6") MULTIPLY STORE_OF("4", "%r10"), UNDEFINED},
		{KNOWN UNKNOWN("%r1", "6") MULTIPLY STORE_OF("7", "%r11"), UNDEFINED},
		{KNOWN UNKNOWN("%r1", "6") MULTIPLY STORE_OF("8", "%r10"), NULL},
		{KNOWN UNKNOWN("%r2", "12") MULTIPLY STORE_OF("1", "%r10"), NULL}, /* column 3 */
		{KNOWN UNKNOWN("%r2", "12") MULTIPLY STORE_OF("1", "%r11"), UNDEFINED},
		{KNOWN UNKNOWN("%r2", "12") MULTIPLY STORE_OF("30", "%r11"), NULL},
		{KNOWN UNKNOWN("%r2", "12") MULTIPLY STORE_OF("29", "%r11"), UNDEFINED},
		{KNOWN UNKNOWN("%r3", "9") MULTIPLY STORE_OF("8", "%r10"), NULL},
		{KNOWN UNKNOWN("%r3", "9") MULTIPLY STORE_OF("9", "%r10"), UNDEFINED},
#define SOME_ONLY "setp.lt.u32 %p1, %tid, 16;\n@%p1 bra END;\n"
#define BY_SOME "reached by some lanes of a warp only: 0xffff0000"
		{KNOWN SOME_ONLY MULTIPLY "END:\n", BY_SOME},
		{KNOWN SOME_ONLY "movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r1;\nEND:\n", BY_SOME},
		{KNOWN PLACE SOME_ONLY "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], {%r1};\nEND:\n", BY_SOME},
		{"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r60], {%tid};\n", "an address is undefined"},
		{PLACE "setp.lt.u32 %p1, %tid, 8;\nselp.b32 %r6, %r6, %r60, "
		       "%p1;\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], "
		       "{%tid};\n",
			NULL}, /* only the first eight say where */
		{PLACE "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6+240], {%tid};\n",
			"16 bytes are written outside shared memory"},
		{DIVIDES PLACE "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], {%r20};\nbar.warp.sync "
			       "-1;\nld.shared.b32 %r7, "
			       "[%r6];\n" STORE("%r7"),
			DIVISION},
		{DIVIDES "movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r20;\n" STORE("%r4"), UNDEFINED},
	};
	ROWS(rows);
}

/* Lanes that end on both ways of a branch, in front of where these would meet. */
static void test_ends_of_levels(void **state)
{
	(void)state;
	sim_case c = {.body = "setp.lt.u32 %p1, %tid, 16;\n@!%p1 bra OUT;\nsetp.lt.u32 %p2, %tid, 8;\n@%p2 bra "
			      "X;\n@%p1 ret;\nbra.uni "
			      "Y;\nX:\n@%p1 ret;\nY:\ntrap;\nOUT:\n" STORE("%tid")};
	for (int i = 0; i < 32; i++) c.out[i] = 99;
	RUNS(c);
	for (uint32_t i = 0; i < 32; i++) assert_int_equal(c.out[i], i < 16 ? 99 : i);
}

/* ---- Parameters, variables, local memory ---- */

static void test_parameters(void **state)
{
	(void)state;
	sim_case c = {.n = -5,
		.body = "mov.b64 %rd1, k_param_2;\nmov.b64 %rd2, k_param_2;\nld.param.b32 %r1, [%rd1];\nld.param.s16 "
			"%r2, "
			"[%rd2];\nld.param.u16 %r3, [k_param_2+2];\nld.param.v2.b32 {%r4, %r5}, "
			"[k_param_0];\nld.param.v2.b32 {_, "
			"%r6}, [k_param_0];\nmov.b64 {%r7, %r8}, %out;\nsub.s32 %r4, %r4, %r7;\nsub.s32 %r5, %r5, "
			"%r8;\nsub.s32 "
			"%r6, %r6, %r8;\nld.param.s8 %r9, [k_param_2];\n"
			"setp.eq.u32 %p1, %tid, 0;\n@%p1 st.global.v4.b32 [%out], {%r1, %r2, %r3, %r4};\n@%p1 "
			"st.global.v2.b32 "
			"[%out+16], {%r5, %r6};\n@%p1 st.global.b32 [%out+24], %r9;\n"};
	RUNS(c);
	const uint32_t wanted[] = {(uint32_t)-5, (uint32_t)-5, 0xffff, 0, 0, 0, (uint32_t)-5};
	assert_memory_equal(c.out, wanted, sizeof wanted);
	static const row rows[] = {
		{"mov.b64 %rd1, k_param_2;\nld.param.b32 %r1, [%rd1+8];\n", "a parameter is loaded from where none is"},
		{"mov.b64 %rd1, k_param_2;\nld.param.b32 %r1, [%rd1+-24];\n",
			"a parameter is loaded from where none is"},
		{"mov.b64 %rd1, k_param_2;\nld.param.b64 %rd2, [%rd1+4];\n",
			"a parameter is loaded from where none is"},
		{"mov.b64 %rd1, k_param_2;\nld.param.b32 %r1, [%rd1+4];\n", NULL},
		{"mov.b64 %rd1, k_param_2;\nld.param.b32 %r1, [%rd1+-8];\n", NULL},
		{"ld.param.b32 %r1, [%rd20];\n", "an address is undefined"},
	};
	ROWS(rows);
}

static void test_reports_of_memory(void **state)
{
	(void)state;
#define LOCAL ".local .align 8 .b8 depot[16];\n"
	static const row rows[] = {
		{LOCAL "st.local.b32 [depot+12], %tid;\n", NULL},
		{LOCAL "st.local.b32 [depot+16], %tid;\n",
			"4 bytes are written outside local memory, of which the program has 16 bytes: at offset 16"},
		{LOCAL "ld.local.b64 %rd1, [depot+16];\n",
			"8 bytes are read outside local memory, of which the program has 16 bytes: at offset 16"},
		{LOCAL "ld.local.v4.b64 {%rd1, %rd2, %rd3, %rd4}, [depot];\n",
			"32 bytes are read outside local memory, of which the program has 16 bytes: at offset 0"},
		{"ld.shared.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [blk_shared+224];\n", NULL},
		{"ld.shared.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [blk_shared+256];\n",
			"32 bytes are read outside shared memory, of which the program has 256 bytes: at offset 256"},
		{.body = LOCAL "ld.local.b32 %r1, [depot+2];\n",
			.says = "\"space\": \"local\", \"buffer\": null, \"owner\": null, \"size\": 16, \"offset\": 2, "
				"\"bytes\": 4, "
				"\"kind\": \"read\"",
			.json = true},
		{.body = LOCAL "st.local.b32 [depot+16], %tid;\n",
			.says = "\"space\": \"local\", \"buffer\": null, \"owner\": null, \"size\": 16, \"offset\": "
				"16, \"bytes\": 4, "
				"\"kind\": \"write\"",
			.json = true},
		{.body = "ld.shared.b32 %r1, [blk_shared+2];\n",
			.says = "\"space\": \"shared\", \"buffer\": null, \"owner\": [0, 0, 0], \"size\": 256, "
				"\"offset\": 2, "
				"\"bytes\": 4, \"kind\": \"read\"",
			.json = true},
		{.body = "cvta.shared.u64 %rd1, blk_shared;\nld.b32 %r1, [%rd1+2];\n",
			.says = "\"space\": \"shared\", \"buffer\": null, \"owner\": [0, 0, 0], \"size\": 256, "
				"\"offset\": 2",
			.json = true},
		{.body = "ld.global.b32 %r1, [%in+2];\n",
			.says = "\"space\": \"global\", \"buffer\": \"in\", \"owner\": null, \"size\": 256, "
				"\"offset\": 2",
			.json = true},
		{.body = "trap;\n",
			.says = "\"hint\": \"\", \"space\": null, \"buffer\": null, \"owner\": null, \"size\": null, "
				"\"offset\": null, "
				"\"bytes\": null, \"kind\": null, \"other\": null, \"cause\": null}",
			.json = true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) check_rows(&rows[i], 1, NULL, __LINE__);
	/* beside a variable of the module, which is no argument's */
	static const row variables[] = {
		{"mov.b64 %rd1, words;\nld.global.b32 %r1, [%rd1+8];\n" STORE("%r1"), NULL},
		{"mov.b64 %rd1, words;\nld.global.b32 %r1, [%rd1+12];\n", "4 bytes are read"},
		{"mov.b64 %rd1, words;\nld.global.v2.b32 {%r1, %r2}, [%rd1+8];\n", "8 bytes"},
		{.body = "mov.b64 %rd1, words;\nld.global.b32 %r1, [%rd1+2];\n",
			.says = "\"space\": \"global\", \"buffer\": null, \"owner\": null, \"size\": 12, \"offset\": 2",
			.json = true},
	};
	check_rows(variables, sizeof variables / sizeof variables[0], ".global .align 16 .b8 words[12] = {1, 2};\n",
		__LINE__);
}

/* A file's name as it stands in JSON. */
static void test_names(void **state)
{
	(void)state;
	sim_case c = {
		.declarations = ".file 2 \"a\\b\x01.blk\"\n", .body = ".loc 2 7 1\ntrap;\n", .options = {.json = 1}};
	assert_int_equal(sim_try(&c), BLK_ERROR_KERNEL);
	if (!strstr(blk_error(), "\"file\": \"a\\u005cb\\u0001.blk\", \"line\": 7")) fail_msg("%s", blk_error());
	c.body = ".loc 3 7 1\ntrap;\n"; /* which nothing names */
	assert_int_equal(sim_try(&c), BLK_ERROR_KERNEL);
	if (!strstr(blk_error(), "\"file\": \"\", \"line\": 7")) fail_msg("%s", blk_error());
	c.options.json = 0;
	assert_int_equal(sim_try(&c), BLK_ERROR_KERNEL);
	if (!strstr(blk_error(), "line 30 of the PTX: the kernel stops itself: trap")) fail_msg("%s", blk_error());
}

static void test_counters(void **state)
{
	(void)state;
	sim_case c = {.options = {.counters = 1},
		.shared = 4096,
		.body = LOCAL
		"cvta.shared.u64 %rd1, blk_shared;\nmul.wide.u32 %rd2, %tid, 128;\nadd.s64 %rd1, %rd1, %rd2;\nst.b32 "
		"[%rd1], %tid;\nst.local.b32 [depot], %tid;\nmov.b64 %rd3, depot;\ncvta.local.u64 %rd3, %rd3;\nld.b32 "
		"%r1, [%rd3];\nld.b32 %r2, [%in];\n"};
	RUNS(c);
	assert_int_equal(c.counters.shared_requests, 1);
	assert_int_equal(c.counters.shared_conflicts, 31); /* 32 words of one bank */
	assert_int_equal(c.counters.load_requests, 1);
	assert_int_equal(c.counters.store_requests, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shuffles),
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_exchanges),
		cmocka_unit_test(test_undefined),
		cmocka_unit_test(test_two_barriers),
		cmocka_unit_test(test_groups_of_copies),
		cmocka_unit_test(test_odd_copies),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_atomics_of_parts),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_division),
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_matrices),
		cmocka_unit_test(test_ends_of_levels),
		cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_reports_of_memory),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_counters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
