/* mbarriers on the simulator: how phases end, what waiting for one gives, and what goes wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include "sim_hopper.h"

#include <cmocka.h>

static void reports(hopper *h, const char *const *says, int line)
{
	bool ran = hopper_run(h);
	if (ran) fail_msg("line %d: nothing is reported", line);
	for (; *says; says++)
		if (!strstr(h->problem, *says)) fail_msg("line %d: no \"%s\" in: %s", line, *says, h->problem);
	free(h);
}
#define REPORTS(h, ...) reports(h, (const char *const[]){__VA_ARGS__, NULL}, __LINE__)

static hopper *with(uint32_t threads, uint64_t seed, const char *body)
{
	hopper *h = hopper_new();
	h->threads = threads;
	h->seed = seed;
	h->shared = 4096;
	hopper_add(h, "%s", body);
	return h;
}

static void runs(hopper *h, int line)
{
	if (!hopper_run(h)) fail_msg("line %d: %s", line, h->problem);
}
#define RUNS(h) runs(h, __LINE__)
#define OUT(h) ((const uint32_t *)(const void *)(h)->out)

#define INIT(count) "setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [%smem], " count ";\nbar.sync 0;\n"
#define WAIT(label, at, parity)                                                                                        \
	label ":\nmbarrier.try_wait.parity.shared.b64 %p9, [%smem+" at "], " parity ";\n@!%p9 bra " label ";\n"
#define MINE "mad.wide.u32 %rd1, %tid, 4, %out;\n"

/* One warp writes, arrives; the other waits, reads: phase after phase, through two barriers. */
#define HAND_OVER(release, acquire)                                                                                    \
	"setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [%smem], 32;\n@%p1 mbarrier.init.shared::cta.b64 "   \
	"[%smem+8], 32;\nbar.sync 0;\n"                                                                                \
	"and.b32 %r1, %tid, 31;\nmad.lo.s32 %r2, %r1, 4, %smem;\nmov.b32 %r3, 0;\nmov.b32 %r7, 0;\n"                   \
	"setp.ge.u32 %p2, %tid, 32;\n@%p2 bra READER;\n"                                                               \
	"WRITER:\nand.b32 %r4, %r3, 1;\nxor.b32 %r4, %r4, 1;\n" acquire                                                \
	"mad.lo.s32 %r5, %r3, 100, %r1;\nst.shared.b32 [%r2+64], %r5;\n" release                                       \
	"add.s32 %r3, %r3, 1;\nsetp.lt.u32 %p3, %r3, 5;\n@%p3 bra WRITER;\nret;\n"                                     \
	"READER:\nand.b32 %r4, %r3, 1;\n" WAIT(                                                                        \
		"FULL", "0", "%r4") "xor.b32 %r6, %r2, 4;\nld.shared.b32 %r5, "                                        \
				    "[%r6+64];\nadd.s32 %r7, %r7, %r5;\nmbarrier.arrive.release.cta.shared::cta.b64 "  \
				    "_, [%smem+8];\n"                                                                  \
				    "add.s32 %r3, %r3, 1;\nsetp.lt.u32 %p3, %r3, 5;\n@%p3 bra READER;\n" MINE          \
				    "st.global.b32 [%rd1], %r7;\n"
#define ARRIVE "mbarrier.arrive.shared.b64 %rd2, [%smem];\n"

static void test_hand_over(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 6; seed++) {
		hopper *h = with(64, seed, HAND_OVER(ARRIVE, WAIT("EMPTY", "8", "%r4")));
		RUNS(h);
		for (uint32_t i = 0; i < 32; i++) assert_int_equal(OUT(h)[32 + i], 1000 + 5 * (i ^ 1));
		free(h);
	}
	/* the writer does not wait: it overtakes the reader, who waits for a phase that is over, or is found to write
	 * too early */
	REPORTS(with(64, 0, HAND_OVER(ARRIVE, "")), "wait for ever", "phase 5");

	REPORTS(with(64, 0, HAND_OVER("", WAIT("EMPTY", "8", "%r4"))), "2 of 2 warps wait for ever",
		"of shared memory, whose "
		"phase 0 needs 32 more of 32 arrivals",
		"last arrival: nobody");
	REPORTS(with(64, 3, HAND_OVER("setp.eq.b32 %p4, %r1, 0;\n@%p4 " ARRIVE, WAIT("EMPTY", "8", "%r4"))),
		"wait for ever");
}

/* A lane waits for what another lane of its warp does: both paths of the branch go on. */
static void test_lanes_of_a_warp(void **state)
{
	(void)state;
	for (int swap = 0; swap < 2; swap++) {
		hopper *h = with(32, 0, INIT("1"));
		hopper_add(h, "setp.eq.b32 %%p2, %%tid, %d;\n", swap ? 0 : 31);
		hopper_add(h, "%s",
			"@%p2 bra ONE;\n" WAIT("W", "0", "0") "bra.uni END;\nONE:\nmbarrier.arrive.shared::cta.b64 _, "
							      "[%smem];\nEND:\n" MINE "st.global.b32 [%rd1], 7;\n");
		RUNS(h);
		assert_int_equal(OUT(h)[5], 7);
		free(h);
	}
	hopper *h = with(32, 0,
		INIT("1") "setp.eq.b32 %p2, %tid, 3;\n@!%p2 bra REST;\n" WAIT("W", "0",
			"0") "bra.uni END;\nREST:\n"
			     "setp.eq.b32 %p3, %tid, 9;\n@%p3 mbarrier.arrive.shared::cta.b64 _, [%smem];\nEND:\n" MINE
			     "st.global.b32 [%rd1], 8;\n");
	RUNS(h);
	assert_int_equal(OUT(h)[3], 8);
	free(h);
}

/* The writers are warp 0, the readers warp 1: `store` is what the first does, `load` the second, between them an
 * mbarrier of one arrival. */
#define LANES(store, load)                                                                                             \
	INIT("1")                                                                                                      \
	"and.b32 %r1, %tid, 31;\nmad.lo.s32 %r2, %r1, 4, %smem;\nxor.b32 %r6, %r2, 4;\nsetp.eq.b32 %p4, %r1, 0;\n"     \
	"setp.eq.b32 %p5, %r1, 3;\nsetp.ge.u32 %p2, %tid, 32;\n@%p2 bra READER;\n" store "ret;\nREADER:\n" load
#define ONE "@%p4 mbarrier.arrive.shared.b64 _, [%smem];\n"
#define WRITE "st.shared.b32 [%r2+64], %tid;\n"
#define READ "ld.shared.b32 %r5, [%r6+64];\n"
#define SYNC "bar.warp.sync -1;\n"
#define SHUFFLE "shfl.sync.bfly.b32 %r20, %r1, 1, 31, -1;\n"
#define ALL WAIT("FULL", "0", "0")
/* Lane 0 waits for all. */
#define FIRST(at) "@!%p4 bra SEEN;\n" WAIT("LANE", at, "0") "SEEN:\n"

/* One lane arrives for what others of its warp did, or is told what others need to know: a bar.warp.sync must stand
 * between; other exchanges order nothing in memory. */
static void test_arrivals_of_one_lane(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 4; seed++) {
		static const char *const right[] = {
			LANES(WRITE SYNC ONE, ALL READ),
			LANES(WRITE SYNC ONE, FIRST("0") SYNC READ),
			LANES("@%p4 st.shared.b32 [%smem+64], 1;\n" ONE, ALL "ld.shared.b32 %r5, [%smem+64];\n"),
			LANES("@%p4 st.shared.b32 [%smem+64], 1;\n" ONE,
				FIRST("0") "@%p4 ld.shared.b32 %r5, [%smem+64];\n"),
			LANES(READ SYNC ONE, ALL WRITE),
			/* from lane 3 to lane 0 to the other warp */
			LANES("@%p4 mbarrier.init.shared.b64 [%smem+8], 1;\n" SYNC
			      "@%p5 st.shared.b32 [%smem+64], 1;\n@%p5 mbarrier.arrive.shared.b64 _, "
			      "[%smem+8];\n" FIRST("8") ONE,
				ALL "ld.shared.b32 %r5, [%smem+64];\n"),
		};
		for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
			hopper *h = with(64, seed, right[i]);
			RUNS(h);
			free(h);
		}
		static const char *const wrong[] = {
			LANES(WRITE ONE, ALL READ), LANES(WRITE SHUFFLE ONE, ALL READ),
			LANES(WRITE SYNC ONE, FIRST("0") READ), LANES(WRITE SYNC ONE, FIRST("0") SHUFFLE READ),
			LANES(READ ONE, ALL WRITE),
			LANES(WRITE SYNC ONE "@%p4 st.shared.b32 [%smem+64], 1;\n", ALL READ), /* behind it */
		};
		for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
			REPORTS(with(64, seed, wrong[i]), "a race on shared memory");
		/* the third warp is told by one of the second's lanes: by the one that knows, or another */
		for (int other = 0; other < 2; other++) {
			hopper *h = with(96, seed, INIT("1"));
			hopper_add(h,
				"@%%p1 mbarrier.init.shared.b64 [%%smem+8], 1;\nbar.sync 0;\nand.b32 %%r1, %%tid, "
				"31;\nsetp.eq.b32 %%p4, %%r1, 0;\nsetp.eq.b32 %%p5, %%r1, %d;\n",
				other ? 3 : 0);
			hopper_add(h, "%s",
				"setp.ge.u32 %p2, %tid, 64;\n@%p2 bra THIRD;\nsetp.ge.u32 %p2, %tid, 32;\n@%p2 bra "
				"SECOND;\n@%p4 st.shared.b32 [%smem+64], 1;\n" ONE "ret;\nSECOND:\n" FIRST(
					"0") "@%p5 mbarrier.arrive.shared.b64 _, [%smem+8];\nret;\nTHIRD:\n" WAIT("ALL",
					"8", "0") "ld.shared.b32 %r5, [%smem+64];\n");
			if (!other) {
				RUNS(h);
				free(h);
			} else
				REPORTS(h, "a race on shared memory at offset 64", "written by thread 0");
		}
		REPORTS(with(64, seed,
				LANES(WRITE SYNC "@%p4 mbarrier.arrive.relaxed.cta.shared.b64 _, [%smem];\n",
					ALL READ)),
			"a race on shared memory");
		REPORTS(with(64, seed,
				LANES(WRITE SYNC ONE, "FULL:\nmbarrier.try_wait.parity.relaxed.cta.shared.b64 %p9, "
						      "[%smem], 0;\n@!%p9 bra "
						      "FULL;\n" READ)),
			"a race on shared memory");
	}
}

static void test_states_and_counts(void **state)
{
	(void)state;
	hopper *h = with(32, 0,
		INIT("33") "mbarrier.arrive.shared.b64 %rd2, [%smem];\nmbarrier.pending_count.b64 %r1, %rd2;\n"
			   "mbarrier.test_wait.shared.b64 %p2, [%smem], %rd2;\nselp.b32 %r2, 100, 0, %p2;\nadd.s32 "
			   "%r1, %r1, %r2;\n"
			   "bar.warp.sync -1;\n@%p1 mbarrier.arrive_drop.shared.b64 %rd3, [%smem];\nbar.warp.sync -1;\n"
			   "mbarrier.try_wait.shared::cta.b64 %p2, [%smem], %rd2, 100;\nselp.b32 %r2, 1000, 0, "
			   "%p2;\nadd.s32 %r1, %r1, %r2;\n"
			   "mbarrier.arrive.release.cta.shared::cta.b64 %rd2, [%smem];\nbar.warp.sync -1;\n" /* now 32
														are
														enough
													      */
			   "mbarrier.test_wait.parity.shared.b64 %p2, [%smem], 1;\nselp.b32 %r2, 10000, 0, "
			   "%p2;\nadd.s32 %r1, %r1, %r2;\n" MINE "st.global.b32 [%rd1], %r1;\n");
	RUNS(h);
	for (uint32_t i = 0; i < 32; i++) assert_int_equal(OUT(h)[i], 11000 + 33 - i);
	free(h);
	h = with(32, 0,
		INIT("2") "@%p1 mbarrier.arrive.expect_tx.shared.b64 %rd2, [%smem], 48;\n@%p1 "
			  "mbarrier.arrive.noComplete.shared.b64 %rd2, [%smem], 1;\n");
	REPORTS(h, ".noComplete) does");
	h = with(32, 0,
		INIT("2") "@%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 [%smem], 48;\n@%p1 "
			  "mbarrier.arrive.expect_tx.shared.b64 %rd2, [%smem], 16;\n@%p1 mbarrier.arrive.shared.b64 _, "
			  "[%smem], 1;\n"
			  "mbarrier.test_wait.parity.shared.b64 %p2, [%smem], 0;\nselp.b32 %r1, 1, 0, %p2;\n@%p1 "
			  "mbarrier.complete_tx.relaxed.cta.shared.b64 [%smem], 64;\nbar.warp.sync -1;\n"
			  "mbarrier.test_wait.parity.shared.b64 %p2, [%smem], 0;\nselp.b32 %r2, 2, 0, %p2;\nadd.s32 "
			  "%r1, %r1, %r2;\n" MINE "st.global.b32 [%rd1], %r1;\n");
	RUNS(h);
	assert_int_equal(OUT(h)[9], 2);
	free(h);
}

static void test_misuse(void **state)
{
	(void)state;
	REPORTS(with(32, 0, "mbarrier.arrive.shared.b64 _, [%smem];\n"), "no mbarrier is at offset 0");
	REPORTS(with(32, 0, INIT("1") "mbarrier.arrive.shared.b64 _, [%smem+4];\n"), "which 8 does not divide");
	REPORTS(with(32, 0, INIT("1") "@%p1 mbarrier.arrive.shared.b64 _, [%smem], 2;\n"),
		"2 arrivals at the mbarrier");
	REPORTS(with(32, 0, INIT("1") "@%p1 st.shared.b32 [%smem+4], 1;\n"), "is written, where an mbarrier is",
		"mbarrier.inval");
	REPORTS(with(32, 0, INIT("1") "ld.shared.b32 %r1, [%smem+4];\n" MINE "st.global.b32 [%rd1], %r1;\n"),
		"undefined value is stored");
	REPORTS(with(64, 0,
			"setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [%smem], "
			"64;\nmbarrier.arrive.shared.b64 "
			"_, [%smem];\n"),
		"is used, which thread 0 may not have made yet");
	hopper *h = with(32, 0,
		INIT("1") "@%p1 mbarrier.inval.shared.b64 [%smem];\nbar.sync 0;\nmad.lo.s32 %r2, %tid, 4, "
			  "%smem;\nst.shared.b32 [%r2], %tid;\nld.shared.b32 %r3, [%r2];\n" MINE
			  "st.global.b32 [%rd1], %r3;\n");
	RUNS(h);
	assert_int_equal(OUT(h)[1], 1);
	free(h);
}

/* cp.async tells an mbarrier; who waits for it has the bytes. */
#define COPIES(wait)                                                                                                   \
	INIT("32")                                                                                                     \
	"and.b32 %r1, %tid, 31;\nmad.lo.s32 %r2, %r1, 16, %smem;\nsetp.ge.u32 %p2, %tid, 32;\n@%p2 bra "               \
	"READER;\nmad.wide.u32 %rd2, %tid, 16, %in;\ncp.async.cg.shared.global [%r2+1024], [%rd2], 16;\n"              \
	"cp.async.mbarrier.arrive.noinc.shared.b64 [%smem];\nret;\nREADER:\n" wait                                     \
	"xor.b32 %r2, %r2, 16;\nld.shared.b32 %r3, [%r2+1024];\n" MINE "st.global.b32 [%rd1], %r3;\n"

static void test_copies_arrive(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 4; seed++) {
		hopper *h = with(64, seed, COPIES(WAIT("W", "0", "0")));
		for (uint32_t i = 0; i < 32; i++) memcpy(h->in + 16 * i, &i, 4);
		RUNS(h);
		for (uint32_t i = 0; i < 32; i++) assert_int_equal(OUT(h)[32 + i], i ^ 1);
		free(h);
		h = with(64, seed, COPIES(""));
		assert_false(hopper_run(h));
		assert_true(strstr(h->problem, "undefined") || strstr(h->problem, "race"));
		free(h);
	}
}

/* elect, setmaxnreg and what does nothing here. */
static void test_elect(void **state)
{
	(void)state;
	hopper *h = with(32, 0,
		"setmaxnreg.inc.sync.aligned.u32 "
		"232;\ngriddepcontrol.wait;\nfence.proxy.tensormap::generic.acquire.gpu "
		"[%rd0], 128;\nfence.proxy.async;\nfence.proxy.async.global;\nfence.mbarrier_init.release.cluster;\n"
		"prefetch.tensormap [%m0];\nprefetch.param.tensormap [%m1];\n"
		"setp.lt.u32 %p3, %tid, 5;\nmov.b32 %r1, 0;\n@%p3 bra END;\nelect.sync %r1|%p1, 0xffffffe0;\n@%p1 "
		"add.s32 %r1, "
		"%r1, 100;\nEND:\n" MINE "st.global.b32 [%rd1], %r1;\n");
	RUNS(h);
	for (uint32_t i = 0; i < 32; i++) assert_int_equal(OUT(h)[i], i < 5 ? 0 : i == 5 ? 105 : 5);
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_hand_over), cmocka_unit_test(test_lanes_of_a_warp),
		cmocka_unit_test(test_arrivals_of_one_lane), cmocka_unit_test(test_states_and_counts),
		cmocka_unit_test(test_misuse), cmocka_unit_test(test_copies_arrive), cmocka_unit_test(test_elect)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
