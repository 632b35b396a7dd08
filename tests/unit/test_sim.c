/* The simulator: what it computes where threads part and meet, and every problem that it must name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include "sim_fixture.h"

#include <cmocka.h>

static void check_reports(sim_case *c, blk_status wanted, const char *const *says, int line)
{
	blk_status got = sim_try(c);
	if (got != wanted) fail_msg("line %d: status %d, not %d; says: %s", line, got, wanted, blk_error());
	for (; *says; says++)
		if (!strstr(blk_error(), *says)) fail_msg("line %d: no \"%s\" in: %s", line, *says, blk_error());
}
#define REPORTS(c, ...) check_reports(&(c), BLK_ERROR_KERNEL, (const char *const[]){__VA_ARGS__, NULL}, __LINE__)
#define REFUSES(c, ...) check_reports(&(c), BLK_ERROR_UNSUPPORTED, (const char *const[]){__VA_ARGS__, NULL}, __LINE__)

static void check_runs(sim_case *c, int line)
{
	blk_status got = sim_try(c);
	if (got) fail_msg("line %d: %s", line, blk_error());
}
#define RUNS(c) check_runs(&(c), __LINE__)

/* %rd0: where this thread's word of `out` is. */
#define MINE "mad.wide.u32 %rd0, %tid, 4, %out;\n"
#define SHARED_MINE "mov.b32 %r1, blk_shared;\nmad.lo.s32 %r2, %tid, 4, %r1;\n"
#define STORE(r) MINE "st.global.b32 [%rd0], " r ";\n"

/* ---- Control flow ---- */

static void test_branches_meet(void **state)
{
	(void)state;
	sim_case c = {.body = "and.b32 %r1, %tid, 1;\nsetp.eq.b32 %p1, %r1, 0;\nmov.b32 %r3, 0;\n"
			      "@%p1 bra EVEN;\nadd.s32 %r3, %tid, 100;\nbra.uni MEET;\n"
			      "EVEN:\nadd.s32 %r3, %tid, 200;\nMEET:\n"
			      "shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;\n" STORE("%r4")};
	RUNS(c);
	for (uint32_t i = 0; i < 32; i++) assert_int_equal(c.out[i], i % 2 ? 200 + i - 1 : 100 + i + 1);
}

/* Every lane leaves the loop at another time, some in its middle, and all must be there for the vote behind it. */
static void test_loops_meet(void **state)
{
	(void)state;
	sim_case c = {.body = "mov.b32 %r1, 0;\nmov.b32 %r2, 0;\n"
			      "LOOP:\nadd.s32 %r2, %r2, %r1;\nsetp.eq.b32 %p1, %r2, 10;\n@%p1 bra OUT;\n"
			      "add.s32 %r1, %r1, 1;\nsetp.lt.u32 %p2, %r1, %tid;\n@%p2 bra LOOP;\n"
			      "OUT:\nvote.sync.all.pred %p3, %p1, -1;\nselp.b32 %r5, 1, 0, %p3;\n"
			      "mad.lo.s32 %r2, %r5, 1000, %r2;\n" STORE("%r2")};
	RUNS(c);
	for (uint32_t i = 0; i < 32; i++) {
		uint32_t sum = 0;
		for (uint32_t k = 0; k == 0 || k < i; k++)
			if ((sum += k) == 10) break;
		assert_int_equal(c.out[i], sum);
	}
}

/* A branch by index: all lanes to one place, each to its own, some to where all meet and some not at all. */
static void test_branches_by_index(void **state)
{
	(void)state;
	static const char *const indices[] = {"and.b32 %r1, %cta, 3;\n", "and.b32 %r1, %tid, 3;\n"};
	for (int each = 0; each < 2; each++)
		for (int guarded = 0; guarded < 2; guarded++) {
			char body[1024];
			snprintf(body, sizeof body,
				"%smov.b32 %%r3, 5;\nsetp.ne.b32 %%p1, %%tid, 6;\n"
				"LIST: .branchtargets\nA,\nB,\nMEET,\nA;\n%sbrx.idx %%r1, LIST;\n"
				"add.s32 %%r3, %%r3, 300;\nbra.uni MEET;\n"
				"A:\nadd.s32 %%r3, %%r1, 100;\nactivemask.b32 %%r6;\npopc.b32 %%r6, %%r6;\n"
				"mad.lo.s32 %%r3, %%r6, 1000, %%r3;\nbra.uni MEET;\nB:\nadd.s32 %%r3, %%r3, 200;\n"
				"MEET:\nshfl.sync.bfly.b32 %%r4, %%r3, 1, 31, -1;\n"
				"mad.lo.s32 %%r5, %%cta, 32, %%tid;\nmad.wide.u32 %%rd0, %%r5, 4, %%out;\n"
				"st.global.b32 [%%rd0], %%r4;\n",
				indices[each], guarded ? "@%p1 " : "");
			sim_case c = {.programs = 4, .options = {.counters = 1}, .body = body};
			RUNS(c);
			for (uint32_t i = 0; i < 128; i++) {
				uint32_t lane = (i ^ 1) % 32, k = each ? lane % 4 : i / 32;
				uint32_t n = each ? 16 : 32 - (uint32_t)guarded; /* lane 6 of each would go to MEET */
				uint32_t want = k == 1 ? 205 : k == 2 ? 5 : 1000 * n + 100 + k;
				if (guarded && lane == 6) want = 305;
				assert_int_equal(c.out[i], want);
			}
		}
	sim_case beyond = {.body = "LIST: .branchtargets A, B;\n.loc 1 9 1\nbrx.idx %tid, LIST;\nA:\nB:\n"};
	REPORTS(beyond, "made.blk:9:", "a branch by index 2 into a list of 2 targets", "thread 2");
	sim_case undefined = {.body = "LIST: .branchtargets A, B;\nbrx.idx %r1, LIST;\nA:\nB:\n"};
	REPORTS(undefined, "a branch is decided by an undefined value");
	sim_case nowhere = {.body = "LIST: .branchtargets A, B;\nbrx.idx %tid, LIST;\nA:\n"};
	REFUSES(nowhere, "no label B");
	sim_case unlisted = {.body = "A:\nbrx.idx %tid, A;\n"};
	REFUSES(unlisted, "no list of targets A");
}

static void test_lanes_that_end(void **state)
{
	(void)state;
	sim_case c = {.body = "setp.lt.u32 %p1, %tid, 5;\n@%p1 ret;\nadd.s32 %r1, %tid, 1;\n" STORE("%r1")};
	for (int i = 0; i < 32; i++) c.out[i] = 77;
	RUNS(c);
	for (uint32_t i = 0; i < 32; i++) assert_int_equal(c.out[i], i < 5 ? 77 : i + 1);
}

static void test_nested_branches(void **state)
{
	(void)state;
	sim_case c = {.body = "mov.b32 %r3, 0;\nsetp.lt.u32 %p1, %tid, 16;\n@!%p1 bra END;\n"
			      "setp.lt.u32 %p2, %tid, 8;\n@%p2 bra INNER;\nadd.s32 %r3, %r3, 1;\nbra.uni BACK;\n"
			      "INNER:\nsetp.lt.u32 %p3, %tid, 4;\n@%p3 add.s32 %r3, %r3, 10;\nadd.s32 %r3, %r3, 100;\n"
			      "BACK:\nadd.s32 %r3, %r3, 1000;\nEND:\n" STORE("%r3")};
	RUNS(c);
	for (uint32_t i = 0; i < 32; i++) assert_int_equal(c.out[i], i < 4 ? 1110 : i < 8 ? 1100 : i < 16 ? 1001 : 0);
}

/* Shared memory goes round through a barrier, with a last warp that is not full. */
static void test_warps_and_barrier(void **state)
{
	(void)state;
	sim_case c = {.threads = 112,
		.shared = 448,
		.body = "mov.b32 %r1, blk_shared;\nmad.lo.s32 %r2, %tid, 4, %r1;\nst.shared.b32 [%r2], %tid;\nbar.sync "
			"0;\n"
			"sub.s32 %r3, 111, %tid;\nmad.lo.s32 %r4, %r3, 4, %r1;\nld.shared.b32 %r5, [%r4];\n" STORE(
				"%r5")};
	RUNS(c);
	for (uint32_t i = 0; i < 112; i++) assert_int_equal(c.out[i], 111 - i);
}

static void test_spin_lock(void **state)
{
	(void)state;
	sim_case c = {.threads = 64,
		.programs = 50,
		.body = "setp.ne.b32 %p1, %tid, 0;\n@%p1 bra DONE;\n"
			"TRY:\natom.acquire.gpu.global.cas.b32 %r1, [%out], 0, 1;\nsetp.ne.b32 %p2, %r1, 0;\n@%p2 bra "
			"TRY;\n"
			"ld.volatile.global.b32 %r2, [%out+4];\nadd.s32 %r2, %r2, 1;\nst.volatile.global.b32 [%out+4], "
			"%r2;\n"
			"atom.release.gpu.global.exch.b32 %r3, [%out], 0;\nDONE:\nbar.sync 0;\n"};
	RUNS(c);
	assert_int_equal(c.out[1], 50);
}

/* Each of n programs waits for the word of another, adds one to what it says and shows that in its own. */
#define WAITS_FOR(other)                                                                                               \
	"setp.ne.b32 %p1, %tid, 0;\n@%p1 bra DONE;\nmov.b32 %r5, 0;\n" other                                           \
	"mad.wide.u32 %rd1, %r1, 4, %out;\nLOOK:\nld.acquire.gpu.global.b32 %r5, [%rd1];\n"                            \
	"setp.eq.b32 %p2, %r5, 0;\n@%p2 bra LOOK;\n"                                                                   \
	"SHOW:\nadd.s32 %r5, %r5, 1;\nmad.wide.u32 %rd2, %cta, 4, %out;\nst.release.gpu.global.b32 [%rd2], "           \
	"%r5;\nDONE:\n"

static void test_programs_that_wait(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 4; seed++) {
		sim_case behind = {.programs = 200,
			.options = {.seed = seed},
			.body = WAITS_FOR("add.s32 %r1, %cta, 1;\nsetp.eq.b32 %p3, %r1, 200;\n@%p3 bra SHOW;\n")};
		RUNS(behind);
		for (uint32_t i = 0; i < 200; i++) assert_int_equal(behind.out[i], 200 - i);
		sim_case before = {.programs = 200,
			.options = {.seed = seed},
			.body = WAITS_FOR("sub.s32 %r1, %cta, 1;\nsetp.eq.b32 %p3, %cta, 0;\n@%p3 bra SHOW;\n")};
		RUNS(before);
		for (uint32_t i = 0; i < 200; i++) assert_int_equal(before.out[i], i + 1);
		/* 77 i is a step through 0 .. 255 that meets each once; program 0 begins */
		sim_case anyone = {.programs = 256,
			.options = {.seed = seed},
			.body = WAITS_FOR("add.s32 %r1, %cta, 77;\nand.b32 %r1, %r1, 255;\nsetp.eq.b32 %p3, %cta, "
					  "0;\n@%p3 bra SHOW;\n")};
		RUNS(anyone);
		for (uint32_t i = 0, at = 0; i < 256; i++, at = (at + 256 - 77) % 256)
			assert_int_equal(anyone.out[at], i + 1);
	}
	sim_case circle = {.programs = 8, .options = {.steps = 100000}, .body = WAITS_FOR("xor.b32 %r1, %cta, 1;\n")};
	/* which limit is met first is up to the host's threads */
	assert_int_equal(sim_try(&circle), BLK_ERROR_KERNEL);
	assert_true(strstr(blk_error(), "programs wait for one another: none has ended in 200000 instructions") ||
		    strstr(blk_error(), "the program has not ended after 100000 instructions"));
}

/* ---- Memory ---- */

static void test_outside(void **state)
{
	(void)state;
	sim_case behind = {.out_bytes = 4 * 31, .body = ".loc 1 7 3\n" STORE("%tid")};
	REPORTS(behind, "made.blk:7:", "written outside out", "124 bytes", "at offset 124", "thread 31",
		"program (0, 0, 0)", "hint");
	sim_case before = {.body = "ld.global.b32 %r1, [%in+-4];\n" STORE("%r1")};
	REPORTS(before, "read outside in", "at offset -4", "line 28 of the PTX");
	sim_case null = {.body = "mov.b64 %rd1, 8;\nld.global.b32 %r1, [%rd1];\n"};
	REPORTS(null, "null pointer plus 8");
	sim_case wild = {.body = "mov.b64 %rd1, 0x123456789abcdef0;\nst.global.b32 [%rd1], %tid;\n"};
	REPORTS(wild, "far from every buffer");
	sim_case shared = {.shared = 64,
		.body = "mov.b32 %r1, blk_shared;\nmad.lo.s32 %r2, %tid, 4, %r1;\nst.shared.b32 [%r2], %tid;\n"};
	REPORTS(shared, "written outside shared memory", "64 bytes", "offset 64", "thread 16");
	sim_case half = {.shared = 260, .body = "st.shared.b64 [blk_shared+256], %out;\n"};
	REPORTS(half, "8 bytes are written outside shared memory", "260 bytes", "offset 256");
	sim_case across = {.out_bytes = 40, .body = "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%out+32];\n"};
	REPORTS(across, "16 bytes are read outside out");
}

static void test_misuse(void **state)
{
	(void)state;
	sim_case misaligned = {.body = "ld.global.v2.b32 {%r1, %r2}, [%in+4];\n"};
	REPORTS(misaligned, "an access of 8 bytes", "8 does not divide");
	sim_case constant = {.body = "st.global.b32 [%in+12], %tid;\n"};
	REPORTS(constant, "of in are written", "*const", "offset 12");
	sim_case mixed = {.body = "cvt.u32.u64 %r1, %out;\nst.shared.b32 [%r1], %tid;\n"};
	REPORTS(mixed, "outside shared memory");
	sim_case passed_twice = {.same = true, .body = "st.global.b32 [%in], 7;\n"};
	RUNS(passed_twice);
}

/* ---- Undefined values ---- */

static void test_undefined(void **state)
{
	(void)state;
	sim_case stored = {.body = STORE("%r9")};
	REPORTS(stored, "an undefined value is stored");
	sim_case summed = {.body = "add.s32 %r1, %r9, 1;\n" STORE("%r1")};
	REPORTS(summed, "an undefined value is stored");
	sim_case decides = {.body = "setp.eq.b32 %p1, %r9, 0;\n@%p1 bra END;\nEND:\n"};
	REPORTS(decides, "a branch is decided by an undefined value");
	sim_case address = {.body = "mad.wide.u32 %rd1, %r9, 4, %out;\nld.global.b32 %r1, [%rd1];\n"};
	REPORTS(address, "an address is undefined");
	sim_case buffer = {.blank = true, .body = "ld.global.b32 %r1, [%out];\nst.global.b32 [%out+4], %r1;\n"};
	REPORTS(buffer, "an undefined value is stored");
	sim_case shared = {.body = "ld.shared.b32 %r1, [blk_shared+8];\n" STORE("%r1")};
	REPORTS(shared, "an undefined value is stored");
	sim_case counted = {.blank = true, .body = "red.global.add.u32 [%out], 1;\n"};
	REPORTS(counted, "an atomic works on memory that nothing has written");
}

/* Bits are followed one by one: what was never read of an undefined word may be undefined. */
static void test_undefined_bits(void **state)
{
	(void)state;
	sim_case half = {.body = "mov.b16 %h1, 5;\nmov.b32 %r1, {%h1, %h9};\nand.b32 %r2, %r1, 0xffff;\n"
				 "shl.b32 %r3, %r1, 16;\nshr.u32 %r3, %r3, 16;\nadd.s32 %r2, %r2, %r3;\n"
				 "mov.b32 {%h2, %h3}, %r1;\ncvt.u32.u16 %r4, %h2;\nadd.s32 %r2, %r2, %r4;\n"
				 "prmt.b32 %r5, %r1, 0, 0x4410U;\nadd.s32 %r2, %r2, %r5;\n" STORE("%r2")};
	RUNS(half);
	for (int i = 0; i < 32; i++) assert_int_equal(half.out[i], 20);
	sim_case high = {.body = "mov.b16 %h1, 5;\nmov.b32 %r1, {%h1, %h9};\nshr.u32 %r2, %r1, 15;\n" STORE("%r2")};
	REPORTS(high, "an undefined value is stored");
	sim_case byte = {
		.body = "setp.ne.b32 %p1, %tid, 0;\n@%p1 ret;\nst.shared.b8 [blk_shared], %h1;\n"
			"mov.b16 %h2, 9;\nst.shared.b8 [blk_shared+1], %h2;\nld.shared.b16 %h3, [blk_shared];\n"
			"shr.u16 %h4, %h3, 8;\ncvt.u32.u16 %r2, %h4;\n" STORE("%r2")};
	RUNS(byte);
	assert_int_equal(byte.out[0], 9);
	sim_case predicates = {.body = "setp.eq.b32 %p1, %r9, 0;\nsetp.lt.u32 %p2, %tid, 0;\nand.pred %p3, %p1, %p2;\n"
				       "@%p3 bra END;\nmov.b32 %r1, 3;\n" STORE("%r1") "END:\n"};
	RUNS(predicates);
	assert_int_equal(predicates.out[31], 3);
	sim_case pair = {
		.body = "cvt.rn.f16x2.f32 %r1, %r9, 0f3F800000;\nadd.f16x2 %r1, %r1, %r1;\nmov.b32 {%h1, %h2}, %r1;\n"
			"cvt.u32.u16 %r2, %h1;\n" STORE("%r2")}; /* the upper half is nobody's */
	RUNS(pair);
	assert_int_equal(pair.out[5], 0x4000);
	pair.body = "cvt.rn.f16x2.f32 %r1, %r9, 0f3F800000;\nmov.b32 {%h1, %h2}, %r1;\ncvt.u32.u16 %r2, %h2;\n" STORE(
		"%r2");
	REPORTS(pair, "an undefined value is stored");
	sim_case field = {
		.body = "mov.b16 %h1, 7;\nmov.b32 %r1, {%h1, %h9};\nbfi.b32 %r2, %tid, %r1, 16, 16;\n" STORE("%r2")};
	RUNS(field);
	assert_int_equal(field.out[3], 3 << 16 | 7);
	/* of 64 bits the amount has 32 */
	sim_case moved = {
		.body = "mov.b64 %rd1, {%r9, %tid};\nshr.u64 %rd2, %rd1, 32;\ncvt.u32.u64 %r2, %rd2;\n" STORE("%r2")};
	RUNS(moved);
	assert_int_equal(moved.out[9], 9);
	moved.body = "mov.b64 %rd1, {%tid, %r9};\nshr.u64 %rd2, %rd1, 32;\ncvt.u32.u64 %r2, %rd2;\n" STORE("%r2");
	REPORTS(moved, "an undefined value is stored");
	sim_case unused = {.body = "selp.b32 %r1, %r9, %tid, %p2;\nsetp.lt.u32 %p1, %tid, 0;\nselp.b32 %r1, %r9, %tid, "
				   "%p1;\n" STORE("%r1")};
	RUNS(unused);
	assert_int_equal(unused.out[7], 7);
}

/* ---- Matrices ---- */

/* a[row][k] = row, b[k][column] = column + 1, so that a sum over 16 is 16 row (column + 1); c = 5. */
static void test_multiply(void **state)
{
	(void)state;
	sim_case c = {
		.body = "shr.u32 %r1, %tid, 2;\nadd.s32 %r2, %r1, 8;\nadd.s32 %r3, %r1, 1;\n"
			"cvt.rn.f16.s32 %h1, %r1;\ncvt.rn.f16.s32 %h2, %r2;\ncvt.rn.f16.s32 %h3, %r3;\n"
			"mov.b32 %r4, {%h1, %h1};\nmov.b32 %r5, {%h2, %h2};\nmov.b32 %r6, {%h3, %h3};\n"
			"mov.b32 %r8, 0f40A00000;\n"
			"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r10, %r11, %r12, %r13}, {%r4, %r5, %r4, "
			"%r5}, "
			"{%r6, %r6}, {%r8, %r8, %r8, %r8};\n"
			"mad.wide.u32 %rd0, %tid, 16, %out;\ncvt.rzi.s32.f32 %r10, %r10;\ncvt.rzi.s32.f32 %r11, %r11;\n"
			"cvt.rzi.s32.f32 %r12, %r12;\ncvt.rzi.s32.f32 %r13, %r13;\n"
			"st.global.v4.b32 [%rd0], {%r10, %r11, %r12, %r13};\n"};
	RUNS(c);
	for (uint32_t lane = 0; lane < 32; lane++)
		for (uint32_t i = 0; i < 4; i++) {
			uint32_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
			assert_int_equal(c.out[4 * lane + i], 16 * row * (column + 1) + 5);
		}
	sim_case part = {.body = "setp.lt.u32 %p1, %tid, 16;\n@%p1 bra END;\n"
				 "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [blk_shared];\nEND:\n"};
	REPORTS(part, "reached by some lanes of a warp only: 0xffff0000");
}

/* Row r of the matrix has the halves 8 r .. 8 r + 7; its rows lie at 16 r. */
static void test_load_matrix(void **state)
{
	(void)state;
	sim_case c = {.body = "mov.b32 %r1, blk_shared;\nmad.lo.s32 %r2, %tid, 4, %r1;\nmul.lo.s32 %r3, %tid, "
			      "2;\nadd.s32 %r4, %r3, 1;\n"
			      "cvt.u16.u32 %h1, %r3;\ncvt.u16.u32 %h2, %r4;\nmov.b32 %r5, {%h1, %h2};\nst.shared.b32 "
			      "[%r2], %r5;\n"
			      "bar.warp.sync -1;\nand.b32 %r6, %tid, 7;\nmad.lo.s32 %r7, %r6, 16, %r1;\n"
			      "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r8}, [%r7];\n" STORE("%r8")};
	RUNS(c);
	for (uint32_t lane = 0; lane < 32; lane++) {
		uint32_t low = lane % 4 * 2 * 8 + lane / 4;
		assert_int_equal(c.out[lane], low | (low + 8) << 16);
	}
	sim_case blank = {.body = "mov.b32 %r1, blk_shared;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r8}, "
				  "[blk_shared];\n" STORE("%r8")};
	REPORTS(blank, "undefined value is stored");
	sim_case nowhere = {.body = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r8}, [%r60];\n"};
	REPORTS(nowhere, "an address is undefined");
	sim_case outside = {.shared = 64,
		.body = "mov.b32 %r1, blk_shared;\nmad.lo.s32 %r7, %tid, 16, %r1;\n"
			"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r8}, [%r7];\n"};
	REPORTS(outside, "16 bytes are read outside shared memory", "thread 4");
}

/* ---- Asynchronous copies ---- */

#define COPY(group) "cp.async.ca.shared.global [%r2], [%rd1], 4;\n" group
#define COPY_SETUP SHARED_MINE "mad.wide.u32 %rd1, %tid, 4, %in;\nadd.s32 %r3, %r2, 128;\nadd.s64 %rd2, %rd1, 128;\n"

static void test_copies(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 2; seed++) { /* landing at the earliest and at the latest moment */
		sim_case c = {.options = {.seed = seed},
			.body = COPY_SETUP COPY(
				"cp.async.commit_group;\n") "cp.async.ca.shared.global [%r3], [%rd2], "
							    "4;\ncp.async.commit_group;\n"
							    "cp.async.wait_group 1;\nld.shared.b32 %r5, [%r2];\n" STORE(
								    "%r5")};
		for (uint32_t i = 0; i < 64; i++) c.in[i] = 100 + i;
		RUNS(c);
		for (uint32_t i = 0; i < 32; i++) assert_int_equal(c.out[i], 100 + i);
		c.body = COPY_SETUP COPY(
			"cp.async.commit_group;\n") "cp.async.ca.shared.global [%r3], [%rd2], "
						    "4;\ncp.async.commit_group;\n"
						    "cp.async.wait_group 1;\nld.shared.b32 %r5, [%r3];\n" STORE("%r5");
		REPORTS(c, "an undefined value is stored"); /* the second group has not been waited for */
		c.body = SHARED_MINE MINE "st.global.b32 [%rd0], %tid;\ncp.async.ca.shared.global [%r2], [%rd0], 4;\n"
					  "st.global.b32 [%rd0], 77;\ncp.async.wait_all;\nld.shared.b32 %r5, "
					  "[%r2];\nst.global.b32 [%rd0], %r5;\n";
		RUNS(c); /* what changes its source meanwhile is only seen by what lands late */
		assert_int_equal(c.out[5], seed ? 77 : 5);
		c.body = COPY_SETUP COPY(
			"") "cp.async.wait_all;\nxor.b32 %r4, %r2, 4;\nld.shared.b32 %r5, [%r4];\n" STORE("%r5");
		REPORTS(c, "a race on shared memory"); /* another lane's copy, and no barrier */
		c.body = COPY_SETUP COPY("") "cp.async.wait_all;\nbar.sync 0;\nxor.b32 %r4, %r2, 4;\nld.shared.b32 "
					     "%r5, [%r4];\n" STORE("%r5");
		RUNS(c);
		assert_int_equal(c.out[4], 105);
		sim_case zeros = {.options = {.seed = seed},
			.in_bytes = 64,
			.body = SHARED_MINE
			"mul.lo.s32 %r2, %tid, 16;\nadd.s32 %r2, %r2, %r1;\nmad.wide.u32 %rd1, %tid, 16, %in;\n"
			"setp.lt.u32 %p1, %tid, 4;\nselp.b32 %r3, 8, 0, %p1;\n"
			"cp.async.cg.shared.global [%r2], [%rd1], 16, %r3;\ncp.async.wait_all;\n"
			"ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2];\nadd.s32 %r4, %r4, %r5;\nadd.s32 %r6, %r6, "
			"%r7;\n"
			"add.s32 %r4, %r4, %r6;\n" STORE("%r4")};
		zeros.shared = 512;
		for (uint32_t i = 0; i < 16; i++) zeros.in[i] = 1 + i;
		RUNS(zeros);
		for (uint32_t i = 0; i < 32; i++) assert_int_equal(zeros.out[i], i < 4 ? 8 * i + 3 : 0);
	}
	sim_case others = {
		.body = COPY_SETUP COPY("") "setp.lt.u32 %p1, %tid, 16;\n@%p1 cp.async.wait_all;\nld.shared.b32 "
					    "%r5, [%r2];\n" STORE("%r5")};
	REPORTS(others, "an undefined value is stored", "thread 16"); /* a wait is for its thread's copies */
	sim_case overtaken = {.body = COPY_SETUP COPY("") "bar.sync 0;\nst.shared.b32 [%r2], 3;\ncp.async.wait_all;\n"};
	REPORTS(overtaken, "written while a copy into it is under way", "a wait for the copy");
	sim_case outside = {.in_bytes = 100, .body = COPY_SETUP COPY("")};
	REPORTS(outside, "4 bytes are read outside in", "offset 100");
}

/* ---- Races ---- */

#define OTHER_WARP "xor.b32 %r3, %tid, 32;\nmad.lo.s32 %r4, %r3, 4, %r1;\n"

static void test_races_in_shared_memory(void **state)
{
	(void)state;
	sim_case right = {.threads = 64,
		.body = SHARED_MINE OTHER_WARP "st.shared.b32 [%r2], %tid;\nbar.sync 0;\nld.shared.b32 %r5, [%r4];\n"
					       "bar.sync 0;\nst.shared.b32 [%r2], %r5;\n" STORE("%r5")};
	RUNS(right);
	assert_int_equal(right.out[1], 33);
	sim_case early = {.threads = 64,
		.body = SHARED_MINE OTHER_WARP
		".loc 1 3 1\nst.shared.b32 [%r2], %tid;\n.loc 1 4 1\nld.shared.b32 %r5, [%r4];\n" STORE("%r5")};
	REPORTS(early, "made.blk:4:", "undefined value is stored");
	early.body =
		SHARED_MINE OTHER_WARP "st.shared.b32 [%r2], 0;\nbar.sync 0;\n.loc 1 3 1\nst.shared.b32 [%r2], %tid;\n"
				       ".loc 1 4 1\nld.shared.b32 %r5, [%r4];\n" STORE("%r5");
	REPORTS(early, "made.blk:3: a race on shared memory at offset 0:", "written here and was read by thread 32",
		"at made.blk:4", "a barrier between the two is missing");
	sim_case late = {.threads = 64,
		.body = SHARED_MINE OTHER_WARP "st.shared.b32 [%r2], %tid;\nbar.sync 0;\nld.shared.b32 %r5, [%r4];\n"
					       "st.shared.b32 [%r2], %r5;\n"};
	REPORTS(late, "a race on shared memory", "in no order");
	sim_case lanes = {.body = SHARED_MINE
			  "xor.b32 %r3, %tid, 1;\nmad.lo.s32 %r4, %r3, 4, %r1;\nst.shared.b32 [%r2], %tid;\n"
			  "ld.shared.b32 %r5, [%r4];\n"};
	REPORTS(lanes, "a race on shared memory", "read here and was written by thread");
	lanes.body = SHARED_MINE "xor.b32 %r3, %tid, 1;\nmad.lo.s32 %r4, %r3, 4, %r1;\nst.shared.b32 [%r2], %tid;\n"
				 "bar.warp.sync -1;\nld.shared.b32 %r5, [%r4];\n" STORE("%r5");
	RUNS(lanes);
	sim_case one_word = {.body = "st.shared.b32 [blk_shared], %tid;\n"};
	REPORTS(one_word, "a race on shared memory at offset 0", "written by thread 0");
	sim_case counted = {.threads = 64,
		.body = "setp.eq.b32 %p1, %tid, 0;\n@%p1 st.shared.b32 [blk_shared], 0;\nbar.sync "
			"0;\nred.shared.add.u32 [blk_shared], 1;\n"
			"bar.sync 0;\nld.shared.b32 %r5, [blk_shared];\n" STORE("%r5")};
	RUNS(counted);
	assert_int_equal(counted.out[63], 64);
}

/* Two warps meet at a barrier of their own, which says nothing to the third. */
/* A write is compared with every reader since the last one: that its own thread read last hides no other reader. */
static void test_races_with_several_readers(void **state)
{
	(void)state;
#define ZERO "setp.eq.b32 %p1, %tid, 0;\n@%p1 st.shared.b32 [blk_shared], 0;\nbar.sync 0;\n"
#define READ(when) when "@%p2 ld.shared.b32 %r5, [blk_shared];\n"
#define WRITE(by) "setp.eq.b32 %p3, %tid, " by ";\n@%p3 st.shared.b32 [blk_shared], 1;\n"
#define FIRST_LANES "and.b32 %r3, %tid, 31;\nsetp.eq.b32 %p2, %r3, 0;\n"
#define ONLY(thread) "setp.eq.b32 %p2, %tid, " thread ";\n"
#define BELOW(n) "setp.lt.u32 %p2, %tid, " n ";\n"
	static const struct {
		const char *body;
		bool race;
	} cases[] = {
		{ZERO READ(FIRST_LANES) WRITE("32"), true},
		{ZERO READ(FIRST_LANES) WRITE("0"), true},
		{ZERO READ(FIRST_LANES) "bar.sync 0;\n" WRITE("32"), false},
		{ZERO READ(FIRST_LANES) "bar.sync 0;\n" READ(ONLY("32")) WRITE("32"), false},
		{ZERO READ(FIRST_LANES) "bar.sync 0;\n" READ(ONLY("0")) WRITE("32"), true},
		{ZERO READ(ONLY("32")) WRITE("32"), false},
		{ZERO READ(ONLY("32")) READ(ONLY("32")) WRITE("32"), false},
		{ZERO READ(BELOW("2")) WRITE("1"), true},
		{ZERO READ(BELOW("2")) WRITE("0"), true},
		{ZERO READ(BELOW("2")) "bar.warp.sync -1;\n" WRITE("1"), false},
		{ZERO READ(BELOW("2")) "bar.warp.sync -1;\n" READ(ONLY("0")) WRITE("0"), false},
		{ZERO READ(BELOW("2")) "bar.warp.sync -1;\n" READ(ONLY("1")) WRITE("0"), true},
		{ZERO READ(BELOW("64")) "bar.warp.sync -1;\n" WRITE("0"), true},
		{ZERO READ(BELOW("32")) "bar.warp.sync -1;\n" WRITE("0"), false},
		{ZERO READ(BELOW("32")) "bar.warp.sync -1;\n" WRITE("32"), true},
	};
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
		for (uint32_t seed = 0; seed < 6; seed++) {
			sim_case c = {.threads = 64, .options = {.seed = seed}, .body = cases[k].body};
			if (cases[k].race)
				REPORTS(c, "a race on shared memory at offset 0");
			else
				RUNS(c);
		}
}

static void test_races_and_named_barriers(void **state)
{
	(void)state;
	sim_case c = {.threads = 96,
		.body = SHARED_MINE "setp.ge.u32 %p1, %tid, 64;\n@%p1 bra END;\n" OTHER_WARP
				    "st.shared.b32 [%r2], %tid;\nbar.sync 1, 64;\n"
				    "ld.shared.b32 %r5, [%r4];\n" STORE("%r5") "END:\n"};
	RUNS(c);
	c.body = SHARED_MINE "setp.ge.u32 %p1, %tid, 64;\n@%p1 bra THIRD;\nst.shared.b32 [%r2], %tid;\nbar.sync 1, "
			     "64;\nbra.uni END;\n"
			     "THIRD:\nsub.s32 %r4, %r2, 128;\nst.shared.b32 [%r4], %tid;\nEND:\n";
	REPORTS(c, "a race on shared memory at offset 128");
	/* Warp 0 arrives and goes on: the others have what it did before, it has nothing of theirs. */
	static const struct {
		const char *first, *behind, *second;
		bool good;
	} arrivals[] = {{"st.shared.b32 [%r2], 1;\n", "", "ld.shared.b32 %r5, [%r4];\n", true},
		{"st.shared.b32 [%r2], 1;\n", "st.shared.b32 [%r2], 2;\n", "ld.shared.b32 %r5, [%r4];\n", false},
		{"", "st.shared.b32 [%r4], 2;\n", "", false}};
	for (size_t i = 0; i < sizeof arrivals / sizeof arrivals[0]; i++)
		for (unsigned seed = 0; seed < 4; seed++) {
			char body[2048];
			snprintf(body, sizeof body,
				"%s%ssetp.ge.u32 %%p1, %%tid, 32;\n@%%p1 bra SECOND;\n%sbarrier.cta.arrive 1, "
				"64;\n%sbra.uni "
				"END;\nSECOND:\nst.shared.b32 [%%r2], 5;\nbarrier.cta.sync 1, 64;\n%sEND:\n",
				SHARED_MINE, OTHER_WARP, arrivals[i].first, arrivals[i].behind, arrivals[i].second);
			c = (sim_case){.threads = 64, .options = {.seed = seed}, .body = body};
			if (arrivals[i].good)
				RUNS(c);
			else
				REPORTS(c, "a race on shared memory");
		}
}

static void test_races_between_programs(void **state)
{
	(void)state;
	sim_case both = {.programs = 2, .body = ".loc 1 5 1\nst.global.b32 [%out+8], %cta;\n"};
	both.body = "setp.ne.b32 %p1, %tid, 0;\n@%p1 ret;\n.loc 1 5 1\nst.global.b32 [%out+8], %cta;\n";
	REPORTS(both, "made.blk:5: a race on out at offset 8", "it is written here and was written by program (",
		"at made.blk:5", "give every program its own elements");
	sim_case reads = {.programs = 3,
		.body = "setp.ne.b32 %p1, %tid, 0;\n@%p1 ret;\nsetp.eq.b32 %p2, %cta, 0;\n@%p2 st.global.b32 [%out+8], "
			"1;\n"
			"@!%p2 ld.global.b32 %r1, [%out+8];\n"};
	REPORTS(reads, "a race on out at offset 8", "read");
	sim_case adds = {.programs = 40, .body = "red.relaxed.gpu.global.add.u32 [%out+8], 1;\n"};
	RUNS(adds);
	assert_int_equal(adds.out[2], 40 * 32);
	sim_case same = {.body = "st.global.b32 [%out+8], 7;\n"}; /* one statement: any of its values */
	RUNS(same);
	sim_case statements = {.body = "setp.lt.u32 %p1, %tid, 16;\n.loc 1 2 1\n@%p1 st.global.b32 [%out+8], 7;\n"
				       ".loc 1 3 1\n@!%p1 st.global.b32 [%out+8], 9;\n"};
	REPORTS(statements, "a race on out at offset 8", "written by thread");
}

/* Program 0 writes a word and says so in a flag; program 1 waits for that and reads it. */
#define SAYS(store) "mov.b32 %r3, 7;\nst.global.b32 [%out+8], %r3;\n" store
#define HEARS(load) "LOOK:\n" load "setp.eq.b32 %p2, %r1, 0;\n@%p2 bra LOOK;\n"
#define PASSES(store, load, behind)                                                                                    \
	"setp.ne.b32 %p1, %tid, 0;\n@%p1 ret;\nsetp.eq.b32 %p3, %cta, 1;\n@%p3 bra LOOK;\n" SAYS(                      \
		store) "ret;\n" HEARS(load) behind "ld.global.b32 %r2, [%out+8];\nst.global.b32 [%out+12], %r2;\n"

/* A release hands over what its thread did and knows, an acquire is its thread's: others of the program need a barrier.
 */
static void test_threads_of_programs(void **state)
{
	(void)state;
	static const struct {
		const char *there, *here, *says; /* null: nothing */
	} cases[] = {{"bar.sync 0;\n", "bar.sync 0;\n", NULL}, {"", "bar.sync 0;\n", "a race on out at offset 8"},
		{"bar.sync 0;\n", "", "a race on out at offset 8"}};
	for (size_t i = 0; i < 2 * (sizeof cases / sizeof cases[0]); i++) {
		bool lanes = i & 1; /* of one warp, else of two */
		char body[2048], there[64], here[64];
		snprintf(there, sizeof there, "%s",
			lanes && *cases[i / 2].there ? "bar.warp.sync -1;\n" : cases[i / 2].there);
		snprintf(here, sizeof here, "%s",
			lanes && *cases[i / 2].here ? "bar.warp.sync -1;\n" : cases[i / 2].here);
		snprintf(body, sizeof body,
			"setp.eq.b32 %%p1, %%tid, 0;\nsetp.eq.b32 %%p4, %%tid, %d;\nsetp.eq.b32 %%p3, %%cta, 1;\n"
			"@%%p3 bra SECOND;\n@%%p1 st.global.b32 [%%out+8], 7;\n%s@%%p4 st.release.gpu.global.b32 "
			"[%%out], "
			"1;\nret;\nSECOND:\n@!%%p1 bra HEARD;\nLOOK:\nld.acquire.gpu.global.b32 %%r1, "
			"[%%out];\nsetp.eq.b32 "
			"%%p2, %%r1, 0;\n@%%p2 bra LOOK;\nHEARD:\n%s@%%p4 ld.global.b32 %%r2, [%%out+8];\n",
			lanes ? 5 : 32, there, here);
		sim_case c = {.threads = 64, .programs = 2, .body = body};
		if (cases[i / 2].says)
			REPORTS(c, cases[i / 2].says);
		else
			RUNS(c);
	}
}

static void test_scopes(void **state)
{
	(void)state;
	static const struct {
		const char *body, *says; /* null: nothing */
	} cases[] = {
		{PASSES("st.release.gpu.global.b32 [%out], 1;\n", "ld.acquire.gpu.global.b32 %r1, [%out];\n", ""),
			NULL},
		{PASSES("st.release.sys.global.b32 [%out], 1;\n", "ld.acquire.sys.global.b32 %r1, [%out];\n", ""),
			NULL},
		{PASSES("red.release.gpu.global.add.u32 [%out], 1;\n",
			 "atom.acquire.gpu.global.or.b32 %r1, [%out], 0;\n", ""),
			NULL},
		{PASSES("fence.acq_rel.gpu;\nst.relaxed.gpu.global.b32 [%out], 1;\n",
			 "ld.relaxed.gpu.global.b32 %r1, [%out];\n", "fence.acq_rel.gpu;\n"),
			NULL},
		/* relaxed ones order nothing */
		{PASSES("st.relaxed.gpu.global.b32 [%out], 1;\n", "ld.relaxed.gpu.global.b32 %r1, [%out];\n", ""),
			"a race on out at offset 8"},
		{PASSES("red.relaxed.gpu.global.add.u32 [%out], 1;\n",
			 "atom.relaxed.gpu.global.or.b32 %r1, [%out], 0;\n", ""),
			"a race on out at offset 8"},
		{PASSES("st.release.gpu.global.b32 [%out], 1;\n", "ld.relaxed.gpu.global.b32 %r1, [%out];\n", ""),
			"a race on out at offset 8"},
		{PASSES("st.relaxed.gpu.global.b32 [%out], 1;\n", "ld.acquire.gpu.global.b32 %r1, [%out];\n", ""),
			"a race on out at offset 8"},
		/* nor does a fence for the program, or for a cluster of one */
		{PASSES("fence.acq_rel.cta;\nst.relaxed.gpu.global.b32 [%out], 1;\n",
			 "ld.relaxed.gpu.global.b32 %r1, [%out];\n", "fence.acq_rel.gpu;\n"),
			"a race on out at offset 8"},
		{PASSES("fence.acq_rel.gpu;\nst.relaxed.gpu.global.b32 [%out], 1;\n",
			 "ld.relaxed.gpu.global.b32 %r1, [%out];\n", "fence.acq_rel.cluster;\n"),
			"a race on out at offset 8"},
		{PASSES("membar.gl;\nst.relaxed.gpu.global.b32 [%out], 1;\n",
			 "ld.relaxed.gpu.global.b32 %r1, [%out];\n", "membar.cta;\n"),
			"a race on out at offset 8"},
		/* and an atomic for the program is none for another */
		{PASSES("st.release.cta.global.b32 [%out], 1;\n", "ld.acquire.gpu.global.b32 %r1, [%out];\n", ""),
			"a race on out at offset 0"},
		{PASSES("red.release.gpu.global.add.u32 [%out], 1;\n",
			 "atom.acquire.cta.global.or.b32 %r1, [%out], 0;\n", ""),
			"a race on out at offset 0"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (uint64_t seed = 0; seed < 3; seed++) {
			sim_case c = {.programs = 2, .options = {.seed = seed}, .body = cases[i].body};
			if (cases[i].says)
				REPORTS(c, cases[i].says);
			else
				RUNS(c);
		}
	sim_case inside = {.threads = 64, .body = "red.relaxed.cta.global.add.u32 [%out], 1;\n"};
	RUNS(inside);
	assert_int_equal(inside.out[0], 64);
	inside.programs = 2;
	REPORTS(inside, "a race on out at offset 0");
}

/* Orders that a right program allows give one result; a wrong one is found in some of them. */
static void test_seeds(void **state)
{
	(void)state;
	sim_case c = {.threads = 128,
		.programs = 7,
		.options = {.seed = 11, .schedules = 5},
		.body = SHARED_MINE
		"st.shared.b32 [%r2], %tid;\nbar.sync 0;\nsub.s32 %r3, 127, %tid;\nmad.lo.s32 %r4, %r3, 4, %r1;\n"
		"ld.shared.b32 %r5, [%r4];\nmad.wide.u32 %rd0, %tid, 4, %out;\nred.global.add.u32 [%rd0], %r5;\n"};
	c.shared = 512;
	RUNS(c);
	for (uint32_t i = 0; i < 128; i++) assert_int_equal(c.out[i], 7 * (127 - i)); /* one run's sums, not five */
}

static void test_counters(void **state)
{
	(void)state;
	sim_case c = {.threads = 64,
		.programs = 3,
		.options = {.counters = 1},
		.shared = 2048,
		.body = SHARED_MINE
		"ld.global.b32 %r7, [%in];\nst.shared.b32 [%r2], %r7;\nbar.sync 0;\nsetp.lt.u32 %p1, %tid, 8;\n"
		"mul.lo.s32 %r6, %tid, 128;\nadd.s32 %r6, %r6, %r1;\n@%p1 st.shared.b32 [%r6], 5;\n"
		"mad.wide.u32 %rd1, %tid, 4, %in;\n@%p1 ld.global.b32 %r8, [%rd1];\n"
		"mad.wide.u32 %rd2, %tid, 32, %in;\n@%p1 ld.global.b32 %r8, [%rd2];\n"};
	RUNS(c);
	assert_int_equal(c.counters.programs, 3);
	assert_int_equal(c.counters.barriers, 3);
	assert_int_equal(c.counters.load_requests, 3 * (2 + 1 + 1));
	assert_int_equal(c.counters.load_sectors, 3 * (2 + 1 + 8));
	assert_int_equal(c.counters.load_bytes, 3 * 4 * (64 + 8 + 8));
	assert_int_equal(c.counters.store_requests, 0);
	assert_int_equal(c.counters.shared_requests, 3 * 3);
	assert_int_equal(c.counters.shared_conflicts, 3 * 7); /* eight lanes, one bank */
	assert_int_equal(c.counters.instructions[BLK_SIM_BARRIER], 3 * 2);
	assert_int_equal(c.counters.instructions[BLK_SIM_LOAD], 3 * (2 + 1 + 1));
	assert_int_equal(c.counters.instructions[BLK_SIM_STORE], 3 * (2 + 1));
}

/* `line` makes its class one more, and no other. */
static void check_class(const char *line, blk_sim_class class)
{
	static const char without[] = SHARED_MINE MINE;
	char body[512];
	sim_case none = {.shared = 512, .options = {.counters = 1}, .body = without}, some = none;
	snprintf(body, sizeof body, "%s%s\n", without, line);
	some.body = body;
	RUNS(none);
	RUNS(some);
	for (int k = 0; k < BLK_SIM_CLASS_COUNT; k++) {
		uint64_t more = some.counters.instructions[k] - none.counters.instructions[k];
		if (more != (k == (int)class)) fail_msg("%s: %d of class %d", line, (int)more, k);
	}
}

static void test_classes(void **state)
{
	(void)state;
	static const struct {
		const char *line;
		blk_sim_class class;
	} rows[] = {
		{"add.s32 %r3, %tid, 1;", BLK_SIM_INTEGER},
		{"mul.wide.u32 %rd1, %tid, 3;", BLK_SIM_INTEGER},
		{"lop3.b32 %r3, %tid, %tid, %tid, 0x96;", BLK_SIM_INTEGER},
		{"div.s32 %r3, %tid, 3;", BLK_SIM_INTEGER},
		{"prmt.b32.f4e %r3, %tid, %tid, %tid;", BLK_SIM_INTEGER},
		{"fma.rn.f32 %r3, 0f3f800000, 0f3f800000, 0f3f800000;", BLK_SIM_FLOAT},
		{"max.NaN.f32 %r3, 0f3f800000, 0f3f800000;", BLK_SIM_FLOAT},
		{"add.rn.f16x2 %r3, %tid, %tid;", BLK_SIM_HALF},
		{"fma.rn.bf16x2 %r3, %tid, %tid, %tid;", BLK_SIM_HALF},
		{"mul.rn.f64 %rd1, 0d3ff0000000000000, 0d3ff0000000000000;", BLK_SIM_DOUBLE},
		{"ex2.approx.f32 %r3, 0f3f800000;", BLK_SIM_SPECIAL},
		{"rsqrt.approx.ftz.f32 %r3, 0f3f800000;", BLK_SIM_SPECIAL},
		{"div.full.f32 %r3, 0f3f800000, 0f40000000;", BLK_SIM_SPECIAL},
		{"cvt.rn.f32.s32 %r3, %tid;", BLK_SIM_CONVERT},
		{"cvt.rn.f16x2.f32 %r3, 0f3f800000, 0f3f800000;", BLK_SIM_CONVERT},
		{"cvt.u64.u32 %rd1, %tid;", BLK_SIM_MOVE},
		{"mov.b32 %r3, %tid;", BLK_SIM_MOVE},
		{"mov.b64 %rd1, {%tid, %tid};", BLK_SIM_MOVE},
		{"setp.lt.u32 %p1, %tid, 3;", BLK_SIM_PREDICATE},
		{"selp.b32 %r3, 1, 2, %p0;", BLK_SIM_PREDICATE},
		{"ld.shared.b32 %r3, [%r2];", BLK_SIM_LOAD},
		{"st.global.b32 [%rd0], %tid;", BLK_SIM_STORE},
		{"cp.async.ca.shared.global [%r2], [%rd0], 4;", BLK_SIM_COPY},
		{"red.global.add.u32 [%rd0], 1;", BLK_SIM_ATOMIC},
		{"shfl.sync.bfly.b32 %r3, %tid, 1, 31, -1;", BLK_SIM_EXCHANGE},
		{"bar.warp.sync -1;", BLK_SIM_EXCHANGE},
		{"bar.sync 0;", BLK_SIM_BARRIER},
		{"membar.gl;", BLK_SIM_FENCE},
		{"cp.async.wait_all;", BLK_SIM_FENCE},
		{"cp.async.commit_group;", BLK_SIM_FENCE},
		{"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r3, %r4}, {%tid}, {%tid}, {%tid, %tid};",
			BLK_SIM_MATRIX},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) check_class(rows[i].line, rows[i].class);
}

/* ---- Threads that should be there ---- */

static void test_barriers(void **state)
{
	(void)state;
	sim_case divergent = {
		.threads = 64, .body = "setp.lt.u32 %p1, %tid, 40;\n@!%p1 bra END;\n.loc 1 9 1\nbar.sync 0;\nEND:\n"};
	REPORTS(divergent, "made.blk:9:", "a barrier is reached by some threads of a warp only", "lanes 0x000000ff");
	sim_case guarded = {.body = "setp.lt.u32 %p1, %tid, 4;\n@%p1 bar.sync 0;\n"};
	REPORTS(guarded, "a barrier is reached by some threads of a warp only");
	sim_case fewer = {.threads = 64, .body = "setp.lt.u32 %p1, %tid, 32;\n@!%p1 bra END;\nbar.sync 0;\nEND:\n"};
	REPORTS(fewer, "wait at barrier 0 for ever", "1 have arrived", "waits for 2", "1 have ended");
	sim_case named = {.threads = 96,
		.body = "setp.lt.u32 %p1, %tid, 64;\n@!%p1 bra END;\nbar.sync 3, 64;\nEND:\nbar.sync 0;\n"};
	RUNS(named);
	sim_case disagree = {.threads = 64,
		.body = "shr.u32 %r1, %tid, 5;\nadd.s32 %r1, %r1, 1;\nshl.b32 %r1, %r1, 5;\nbar.sync 1, %r1;\nbar.sync "
			"1, 64;\n"};
	disagree.body = "setp.lt.u32 %p1, %tid, 32;\nselp.b32 %r1, 64, 32, %p1;\nbar.sync 1, %r1;\n";
	REPORTS(disagree, "barrier 1 is for 32 threads here and for 64 elsewhere");
}

static void test_exchanges(void **state)
{
	(void)state;
	sim_case absent = {
		.body = "setp.lt.u32 %p1, %tid, 4;\n@!%p1 bra END;\nshfl.sync.bfly.b32 %r1, %tid, 1, 31, -1;\nEND:\n"};
	REPORTS(absent, "an exchange names lane 4, which is elsewhere");
	sim_case ended = {.body = "setp.lt.u32 %p1, %tid, 4;\n@%p1 ret;\nvote.sync.any.pred %p2, %p1, -1;\n"};
	REPORTS(ended, "an exchange names lane 0, which has ended");
	sim_case stranger = {.body = "redux.sync.add.s32 %r1, %tid, 0xff;\n"};
	REPORTS(stranger, "does not name it");
	sim_case half = {
		.body = "setp.lt.u32 %p1, %tid, 16;\n@!%p1 bra END;\nredux.sync.add.s32 %r1, %tid, 0xffff;\n" STORE(
			"%r1") "END:\n"};
	RUNS(half);
	assert_int_equal(half.out[3], 120);
}

static void test_no_end(void **state)
{
	(void)state;
	sim_case c = {.body = "trap;\n"};
	REPORTS(c, "trap");
}

/* ---- Text that is refused ---- */

static void test_refused(void **state)
{
	(void)state;
	sim_case unknown = {.body = "frobnicate.s32 %r1, %r2;\n"};
	REFUSES(unknown, "line 28 of the PTX", "the instruction frobnicate.s32 is not simulated");
	sim_case modifier = {.body = "add.rz.s32 %r1, %r2, %r3;\n"};
	REFUSES(modifier, "add.rz.s32 is not simulated");
	sim_case label = {.body = "bra NOWHERE;\n"};
	REFUSES(label, "no label NOWHERE");
	sim_case width = {.body = "add.s32 %r1, %rd1, 1;\n"};
	REFUSES(width, "a register of another size");
	sim_case undeclared = {.body = "add.s32 %r1, %q1, 1;\n"};
	REFUSES(undeclared, "%q1 is not declared");
	sim_case range = {.body = "add.s32 %r1, %r64, 1;\n"};
	REFUSES(range, "%r64 is not declared");
	sim_case call = {.body = "call.uni helper, (%r1);\n"};
	REFUSES(call, "calls of helper are not simulated");
	sim_case open = {.body = "mov.b32 %r1, 0; /*"};
	REFUSES(open, "the text ends inside a kernel");
}

static void test_targets(void **state)
{
	(void)state;
	blk_device *d = NULL;
	blk_device_info info;
	assert_int_equal(blk_device_open("sim:sm_90a", &d), BLK_OK);
	assert_int_equal(blk_device_query(d, &info), BLK_OK);
	assert_int_equal(info.kind, BLK_DEVICE_SIM);
	assert_string_equal(info.target, "sm_90a");
	assert_int_equal(info.compute_capability, 90);
	assert_int_equal(info.warp_size, 32);
	assert_int_equal(info.max_shared_per_block, 227 * 1024);
	blk_device_close(d);
	assert_int_equal(blk_device_open("sim:cpu", &d), BLK_ERROR_ARGUMENT);
	assert_int_equal(blk_device_open("sim:sm_7", &d), BLK_ERROR_ARGUMENT);
	assert_non_null(strstr(blk_error(), "sm_7"));
}

/* ---- Races of bytes, beside a reference ----
 *
 * Threads of a program in shared memory, or of three programs in global memory, load and store 1, 2 or 4 bytes at
 * random places of a few words: one thread, or a whole warp of neighbours.  What no barrier orders clashes if two
 * threads touch one byte and one of them writes: the reference looks at every two accesses. */

typedef struct access {
	unsigned who, phase, at, bytes; /* who: the first thread, counted through the programs */
	bool writes, wide;              /* wide: 32 threads, each the next bytes */
} access;

static bool thread_clashes(const access *a, unsigned i, const access *b, unsigned k)
{
	unsigned x = a->at + i * a->bytes, y = b->at + k * b->bytes;
	return a->who + i != b->who + k && x < y + b->bytes && y < x + a->bytes;
}

static bool clashes(const access *a, const access *b)
{
	bool any = false;
	if (a->phase != b->phase || (!a->writes && !b->writes)) return false;
	for (unsigned i = 0; i < (a->wide ? 32 : 1); i++)
		for (unsigned k = 0; k < (b->wide ? 32 : 1); k++) any = any || thread_clashes(a, i, b, k);
	return any;
}

enum { BYTES = 12, WORDS = 160 };

static access any_access(uint32_t random, int round, bool programs, unsigned phase)
{
	unsigned bytes = 1u << (random >> 28) % 3, thread = (random >> 8) % 3;
	bool wide = bytes < 4 && round % 3 == 0 && (random >> 21) % 2 == 0;
	return (access){
		.who = programs || wide || round % 4 > 1 ? 32 * thread + (programs || wide ? 0 : thread) : thread,
		.phase = phase,
		.at = wide ? (random >> 16) % 4 / 3 * 64 : (random >> 16) % (BYTES / bytes) * bytes,
		.bytes = bytes,
		.writes = (random >> 24) % 3 != 0,
		.wide = wide};
}

/* The access as PTX; each has a line of its own, as the stores of one may hit one place twice. */
static size_t put_access(char *out, size_t room, const access *a, bool programs, unsigned line)
{
	const char *space = programs ? "global" : "shared", *value = a->bytes == 4 ? "%r2" : "%h2";
	size_t n = (size_t)snprintf(out, room, ".loc 1 %u 1\n", line);
	if (a->wide) /* %r8: the warp, counted through the programs */
		n += (size_t)snprintf(out + n, room - n, "setp.eq.u32 %%p1, %%r8, %u;\n", a->who / 32);
	else
		n += (size_t)snprintf(out + n, room - n, "setp.eq.u32 %%p1, %%r9, %u;\n", a->who);
	n += (size_t)snprintf(out + n, room - n, "mad.lo.u32 %%r5, %%r7, %u, %u;\n", a->wide ? a->bytes : 0, a->at);
	if (programs)
		n += (size_t)snprintf(out + n, room - n, "cvt.u64.u32 %%rd5, %%r5;\nadd.u64 %%rd5, %%out, %%rd5;\n");
	else
		n += (size_t)snprintf(out + n, room - n, "add.u32 %%r5, %%r5, %%r1;\n");
	const char *at = programs ? "%rd5" : "%r5";
	if (a->writes)
		return n + (size_t)snprintf(
				   out + n, room - n, "@%%p1 st.%s.b%u [%s], %s;\n", space, 8 * a->bytes, at, value);
	return n + (size_t)snprintf(out + n, room - n, "@%%p1 ld.%s.b%u %s, [%s];\n", space, 8 * a->bytes,
			   a->bytes == 4 ? "%r3" : "%h3", at);
}

static void test_bytes(void **state)
{
	(void)state;
	enum { ACCESSES = 14 };
	uint32_t random = 11, found[2] = {0};
	for (int round = 0; round < 1500; round++) {
		bool programs = round & 1, clash = false;
		access all[ACCESSES];
		char body[8192];
		unsigned phase = 0, count = 2 + (unsigned)round % (ACCESSES - 1);
		size_t n = (size_t)snprintf(body, sizeof body,
			"mov.u32 %%r1, blk_shared;\nmov.b16 %%h2, 7;\nmov.b32 %%r2, 7;\nand.b32 %%r7, %%tid, 31;\n"
			"shr.u32 %%r8, %%tid, 5;\nadd.u32 %%r8, %%r8, %%cta;\nmad.lo.u32 %%r9, %%r8, 32, %%r7;\n"
			"setp.eq.u32 %%p9, %%tid, 0;\n");
		for (unsigned i = 0; i < WORDS && !programs; i += 4) /* what is read is defined */
			n += (size_t)snprintf(body + n, sizeof body - n, "@%%p9 st.shared.b32 [%%r1+%u], 0;\n", i);
		if (!programs) n += (size_t)snprintf(body + n, sizeof body - n, "bar.sync 0;\n");
		for (unsigned i = 0; i < count; i++) {
			random = random * 1664525u + 1013904223u;
			all[i] = any_access(random, round, programs, phase);
			for (unsigned k = 0; k < i; k++) clash = clash || clashes(&all[i], &all[k]);
			n += put_access(body + n, sizeof body - n, &all[i], programs, 10 + i);
			if (programs || random % 5) continue;
			n += (size_t)snprintf(body + n, sizeof body - n, "bar.sync 0;\n");
			phase++;
		}
		sim_case c = {.body = body, .threads = programs ? 32 : 96, .programs = programs ? 3 : 1};
		c.options = (blk_sim_options){.seed = (uint64_t)round, .schedules = 2};
		blk_status status = sim_try(&c);
		const char *error = status ? blk_error() : "";
		bool reported = status == BLK_ERROR_KERNEL && strstr(error, "a race on");
		if (clash != reported || (status && !reported))
			fail_msg("round %d: %s, but: %s\n%s", round, clash ? "a race" : "no race", error, body);
		found[clash]++;
	}
	assert_true(found[0] > 200 && found[1] > 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_branches_meet), cmocka_unit_test(test_loops_meet),
		cmocka_unit_test(test_branches_by_index), cmocka_unit_test(test_lanes_that_end),
		cmocka_unit_test(test_nested_branches), cmocka_unit_test(test_warps_and_barrier),
		cmocka_unit_test(test_spin_lock), cmocka_unit_test(test_programs_that_wait),
		cmocka_unit_test(test_outside), cmocka_unit_test(test_misuse), cmocka_unit_test(test_undefined),
		cmocka_unit_test(test_undefined_bits), cmocka_unit_test(test_multiply),
		cmocka_unit_test(test_load_matrix), cmocka_unit_test(test_copies),
		cmocka_unit_test(test_races_in_shared_memory), cmocka_unit_test(test_races_with_several_readers),
		cmocka_unit_test(test_races_and_named_barriers), cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_races_between_programs), cmocka_unit_test(test_threads_of_programs),
		cmocka_unit_test(test_scopes), cmocka_unit_test(test_seeds), cmocka_unit_test(test_counters),
		cmocka_unit_test(test_classes), cmocka_unit_test(test_barriers), cmocka_unit_test(test_exchanges),
		cmocka_unit_test(test_no_end), cmocka_unit_test(test_refused), cmocka_unit_test(test_targets)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
