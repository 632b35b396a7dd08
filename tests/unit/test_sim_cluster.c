/* Clusters on the simulator: programs that see each other's shared memory, barriers and mbarriers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include "sim_hopper.h"

#include <cmocka.h>

static void reports(hopper *h, int line, const char *const *says)
{
	if (hopper_run(h)) fail_msg("line %d: nothing is reported", line);
	for (; *says; says++)
		if (!strstr(h->problem, *says)) fail_msg("line %d: no \"%s\" in: %s", line, *says, h->problem);
	free(h);
}
#define REPORTS(h, ...) reports(h, __LINE__, (const char *const[]){__VA_ARGS__, NULL})

static void runs(hopper *h, int line)
{
	if (!hopper_run(h)) fail_msg("line %d, seed %d: %s", line, (int)h->seed, h->problem);
}
#define RUNS(h) runs(h, __LINE__)
#define OUT(h) ((const uint32_t *)(const void *)(h)->out)

static hopper *with(uint32_t cluster, uint64_t seed, const char *body)
{
	hopper *h = hopper_new();
	h->seed = seed;
	h->threads = 64;
	h->programs = 8;
	h->cluster = cluster;
	h->shared = 16384;
	for (uint32_t i = 0; i < HOPPER_IN; i++) h->in[i] = (uint8_t)(i * 7 + i / 256 * 3 + 1);
	hopper_add(h, "%s", body);
	return h;
}

#define FENCE "fence.mbarrier_init.release.cluster;\n"
#define MEET "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
/* %rd1: this thread's word of `out`; %r1: its word of shared memory; %r2: the program's rank. */
#define SETUP                                                                                                          \
	"mad.lo.s32 %r3, %cta, 64, %tid;\nmad.wide.u32 %rd1, %r3, 4, %out;\nmad.lo.s32 %r1, %tid, 4, %smem;\nmov.u32 " \
	"%r2, "                                                                                                        \
	"%cluster_ctarank;\n"

static void test_registers(void **state)
{
	(void)state;
	hopper *h = with(4, 0,
		SETUP
		"mov.u32 %r4, %clusterid.x;\nmov.u32 %r5, %nclusterid.x;\nmov.u32 %r6, %cluster_ctaid.x;\n"
		"mov.u32 %r7, %cluster_nctaid.x;\nmov.u32 %r8, %cluster_nctarank;\nmov.u32 %r9, %cluster_nctaid.y;\n"
		"mad.lo.s32 %r10, %r2, 10, %r4;\nmad.lo.s32 %r10, %r10, 10, %r5;\nmad.lo.s32 %r10, %r10, 10, %r6;\n"
		"mad.lo.s32 %r10, %r10, 10, %r7;\nmad.lo.s32 %r10, %r10, 10, %r8;\nmad.lo.s32 %r10, %r10, 10, %r9;\n"
		"st.global.b32 [%rd1], %r10;\n");
	RUNS(h);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(OUT(h)[64 * i], i % 4 * 1000000 + i / 4 * 100000 + 20000 + i % 4 * 1000 + 441);
	free(h);
	h = with(3, 0, ".reg .b32 %none;\n");
	h->programs = 6;
	RUNS(h);
	free(h);
}

/* Each stores to its neighbour, which adds what it loads from there. */
#define ROUND(meet1, meet2, meet3)                                                                                     \
	SETUP "xor.b32 %r4, %r2, 1;\nmapa.shared::cluster.u32 %r5, %r1, %r4;\nadd.s32 %r6, %r3, 1000;\n" meet1         \
	      "st.shared::cluster.b32 [%r5+1024], %r6;\n" meet2 "ld.shared.b32 %r7, [%r1+1024];\n"                     \
	      "ld.shared::cluster.b32 %r8, [%r5+1024];\nadd.s32 %r7, %r7, %r8;\nst.global.b32 [%rd1], %r7;\n"          \
	      "mov.b64 %rd2, smem;\ncvta.shared.u64 %rd2, %rd2;\nmapa.u64 %rd2, %rd2, %r4;\n" meet3

#define AGAIN(meet)                                                                                                    \
	"st.shared.b32 [%r1], %tid;\nxor.b32 %r4, %r2, 1;\nmapa.shared::cluster.u32 %r5, %r1, %r4;\n" MEET             \
	"ld.shared::cluster.b32 %r7, [%r5];\nst.global.b32 [%rd1], %r7;\n" meet "st.shared.b32 [%r1], 5;\n" MEET

static void test_shared_memory(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 4; seed++) {
		hopper *h = with(2, seed, ROUND(MEET, MEET, MEET));
		RUNS(h);
		for (uint32_t i = 0; i < 512; i++) assert_int_equal(OUT(h)[i], (i ^ 64) + i + 2000);
		free(h);
		REPORTS(with(2, seed, ROUND(MEET, "", MEET)), "");
		/* read by one, then written by the other: with the barrier of the cluster, with one of each program
		 * only */
		h = with(2, seed, SETUP AGAIN(MEET));
		RUNS(h);
		free(h);
		REPORTS(with(2, seed, SETUP AGAIN("bar.sync 0;\n")), "a race on shared memory", "by program (",
			"a barrier of the cluster between the two is missing");
		/* two that write to a third's */
		REPORTS(with(4, seed,
				SETUP MEET
				"mapa.shared::cluster.u32 %r5, %smem, 3;\nst.shared::cluster.b32 [%r5], 1;\n" MEET),
			"a race on shared memory");
		h = with(4, seed,
			SETUP MEET
			"mapa.shared::cluster.u32 %r5, %smem, 3;\nst.shared::cluster.b32 [%r5+8], 1;\n" MEET);
		h->programs = 4;
		h->json = true;
		REPORTS(h, "\"space\": \"shared\", \"buffer\": null, \"owner\": [3, 0, 0], \"size\": 16384",
			"\"offset\": 8, \"bytes\": 4, \"kind\": \"write\", \"other\": {",
			"\"engine\": null, \"kind\": \"write\"}, \"cause\": null}");
		h = with(4, seed,
			SETUP MEET "mapa.shared::cluster.u32 %r5, %r1, 3;\nmad.lo.s32 %r5, %r2, 256, %r5;\n"
				   "st.shared::cluster.b32 [%r5], 1;\n" MEET);
		RUNS(h);
		free(h);
	}
	hopper *h = with(2, 0, /* atomics, in the generic space too */
		SETUP "st.shared.b32 [%r1], 0;\n" MEET
		      "mov.b64 %rd2, smem;\ncvta.shared.u64 %rd2, %rd2;\nmapa.u64 %rd2, %rd2, 0;\n"
		      "mov.b32 %r4, smem;\nmapa.shared::cluster.u32 %r4, %r4, 0;\natom.shared::cluster.add.u32 %r5, "
		      "[%r4], 1;\n"
		      "atom.add.u32 %r5, [%rd2], 2;\n" MEET
		      "ld.shared::cluster.b32 %r6, [%r4];\nst.global.b32 [%rd1], %r6;\n" MEET);
	RUNS(h);
	for (uint32_t i = 0; i < 512; i++) assert_int_equal(OUT(h)[i], 3 * 128);
	free(h);
	REPORTS(with(2, 0, SETUP "mapa.shared::cluster.u32 %r5, %r1, 2;\nld.shared::cluster.b32 %r6, [%r5];\n"),
		"program 2 of the cluster is used, which has 2");
	REPORTS(with(2, 0,
			SETUP MEET "setp.eq.b32 %p1, %r2, 1;\n@%p1 ret;\nnanosleep.u32 100;\nbar.sync "
				   "0;\nmapa.shared::cluster.u32 "
				   "%r5, %r1, 1;\nLATE:\nld.shared::cluster.b32 %r6, [%r5];\nbra.uni LATE;\n"),
		"program 1 of the cluster is used, which has ended");
	REPORTS(with(2, 0,
			SETUP MEET
			"xor.b32 %r4, %r2, 1;\nmapa.shared::cluster.u32 %r5, %r1, %r4;\nst.shared.b32 [%r5], 0;\n"),
		"which has 2; this is program");
}

static void test_barrier(void **state)
{
	(void)state;
	REPORTS(with(2, 0,
			SETUP "setp.eq.b32 %p1, %r2, 1;\n@%p1 bra END;\nbarrier.cluster.arrive.aligned;\nEND:\n"
			      "@%p1 bra LAST;\nbarrier.cluster.wait.aligned;\nLAST:\n@%p1 bar.sync 1, 128;\n"),
		"");
	REPORTS(with(2, 0, "barrier.cluster.wait.aligned;\n"), "waits at the cluster's barrier and has not arrived");
	REPORTS(with(2, 0, "barrier.cluster.arrive.aligned;\nbarrier.cluster.arrive.aligned;\n"), "arrives twice");
	REPORTS(with(2, 0, "setp.lt.u32 %p1, %tid, 3;\n@%p1 barrier.cluster.arrive.aligned;\n"),
		"some threads of a warp only");
	/* lanes one after another, and those that have ended are there for good */
	hopper *h = with(2, 0,
		SETUP
		"setp.lt.u32 %p1, %tid, 3;\n@%p1 bra "
		"OTHER;\nbarrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n"
		"bra.uni END;\nOTHER:\nbarrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\nEND:\nst.global.b32 "
		"[%rd1], 7;\n"
		"setp.ge.u32 %p2, %tid, 32;\n@%p2 ret;\n" MEET "st.global.b32 [%rd1], 9;\n");
	RUNS(h);
	for (uint32_t i = 0; i < 512; i++) assert_int_equal(OUT(h)[i], i % 64 < 32 ? 9 : 7);
	free(h);
}

/* The cluster's barrier orders what each thread did in front of its own arrival, unless that is a relaxed one, and what
 * it does behind its own wait. */
static void test_order(void **state)
{
	(void)state;
	static const struct {
		uint32_t cluster;
		const char *body;
		bool good;
	} cases[] = {
#define WRITES "st.shared.b32 [%r1+1024], %tid;\n"
#define READS "ld.shared::cluster.b32 %r7, [%r5+1024];\n"
#define READS_OWN "xor.b32 %r9, %r1, 128;\nld.shared.b32 %r7, [%r9+1024];\n" /* another warp's */
#define ARRIVE "barrier.cluster.arrive.aligned;\n"
#define RELAXED "barrier.cluster.arrive.relaxed.aligned;\n"
#define PASS "barrier.cluster.wait.aligned;\n"
		{2, WRITES ARRIVE PASS READS MEET, true},
		{2, WRITES "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n" READS MEET, true},
		{2, WRITES RELAXED PASS READS MEET, false},
		{2, WRITES "fence.acq_rel.cluster;\n" RELAXED PASS READS MEET, true},
		{2, ARRIVE WRITES PASS READS MEET, false},
		/* one warp of a program arrives in front of its store, the other one behind */
		{2,
			"setp.lt.u32 %p1, %tid, 32;\n@%p1 bra FIRST;\n" WRITES ARRIVE
			"bra.uni ON;\nFIRST:\n" ARRIVE WRITES "ON:\n" PASS READS MEET,
			false},
		{2,
			"setp.lt.u32 %p1, %tid, 32;\n@%p1 bra FIRST;\n" WRITES ARRIVE
			"bra.uni ON;\nFIRST:\n" WRITES ARRIVE "ON:\n" PASS READS MEET,
			true},
		/* the same in the program's own memory */
		{1, WRITES ARRIVE PASS READS_OWN, true},
		{2, WRITES ARRIVE PASS READS_OWN, true},
		{2, WRITES RELAXED PASS READS_OWN, false},
		{1, WRITES RELAXED PASS READS_OWN, false},
		{1, ARRIVE WRITES PASS READS_OWN, false},
		/* memory of the launch, too */
		{2,
			".loc 1 2 1\nst.global.b32 [%rd1], %tid;\n" ARRIVE PASS
			".loc 1 3 1\nxor.b32 %r9, %r3, 64;\nmad.wide.u32 %rd3, %r9, 4, %out;\nld.global.b32 %r7, "
			"[%rd3];\n",
			true},
		{2,
			".loc 1 2 1\nst.global.b32 [%rd1], %tid;\n" RELAXED PASS
			".loc 1 3 1\nxor.b32 %r9, %r3, 64;\nmad.wide.u32 %rd3, %r9, 4, %out;\nld.global.b32 %r7, "
			"[%rd3];\n",
			false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (uint64_t seed = 0; seed < 4; seed++) {
			hopper *h = with(cases[i].cluster, seed, SETUP "xor.b32 %r4, %r2, 1;\n");
			if (cases[i].cluster > 1) hopper_add(h, "mapa.shared::cluster.u32 %%r5, %%r1, %%r4;\n" MEET);
			hopper_add(h, "%s", cases[i].body);
			bool good = hopper_run(h);
			if (good != cases[i].good || (!good && !strstr(h->problem, "a race on")))
				fail_msg("case %d, seed %d: %s", (int)i, (int)seed, h->problem);
			free(h);
		}
}

/* One writes to the other's memory and arrives at its mbarrier: at the scope of the cluster, for what its lane did. */
static void test_remote_arrivals(void **state)
{
	(void)state;
	static const struct {
		const char *sync, *arrive, *wait;
		bool good;
	} cases[] = {{"bar.warp.sync -1;\n", ".release.cluster", ".acquire.cluster", true},
		{"", ".release.cluster", ".acquire.cluster", false},
		{"bar.warp.sync -1;\n", "", ".acquire.cluster", false},
		{"bar.warp.sync -1;\n", ".release.cluster", "", false},
		{"bar.warp.sync -1;\n", ".relaxed.cluster", ".acquire.cluster", false}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (uint64_t seed = 0; seed < (cases[i].good ? 4 : 1); seed++) {
			hopper *h = with(2, seed,
				SETUP
				"setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [%smem], 1;\n" FENCE MEET
				"mapa.shared::cluster.u32 %r5, %r1, 1;\nmapa.shared::cluster.u32 %r6, %smem, 1;\n"
				"setp.eq.b32 %p2, %r2, 1;\n@%p2 bra SECOND;\nsetp.ge.u32 %p3, %tid, 32;\n@%p3 bra "
				"END;\nst.shared::cluster.b32 [%r5+1024], %tid;\n");
			h->programs = 2;
			hopper_add(h,
				"%s@%%p1 mbarrier.arrive%s.shared::cluster.b64 _, [%%r6];\nbra.uni END;\nSECOND:\n"
				"WAIT:\nmbarrier.try_wait.parity%s.shared::cta.b64 %%p9, [%%smem], 0;\n@!%%p9 bra "
				"WAIT;\n"
				"and.b32 %%r7, %%tid, 31;\nmad.lo.s32 %%r7, %%r7, 4, %%smem;\nld.shared.b32 %%r8, "
				"[%%r7+1024];\n"
				"END:\n",
				cases[i].sync, cases[i].arrive, cases[i].wait);
			bool good = hopper_run(h);
			if (good != cases[i].good || (!good && !strstr(h->problem, "a race on shared memory")))
				fail_msg("case %d, seed %d: %s", (int)i, (int)seed, h->problem);
			free(h);
		}
}

/* Each program loads half of the bytes for both, and frees the other's buffer by a remote arrival; three rounds. */
#define MULTICAST(init, first, release, last)                                                                          \
	SETUP "xor.b32 %r4, %r2, 1;\nsetp.eq.b32 %p1, %tid, 0;\n"                                                      \
	      "@%p1 mbarrier.init.shared.b64 [%smem], 1;\n@%p1 mbarrier.init.shared.b64 [%smem+8], 4;\n" init first    \
	      "mov.b32 %r10, 0;\nmov.b32 %r11, 0;\nNEXT:\n@!%p1 bra FULL;\nxor.b32 %r12, %r10, 1;\n"                   \
	      "EMPTY:\nmbarrier.try_wait.parity.acquire.cluster.shared.b64 %p9, [%smem+8], %r12;\n@!%p9 bra EMPTY;\n"  \
	      "mbarrier.arrive.expect_tx.shared.b64 _, [%smem], 512;\nmad.lo.s32 %r5, %r2, 256, %smem;\n"              \
	      "mad.lo.s32 %r6, %r11, 512, 0;\nmad.lo.s32 %r6, %r2, 256, %r6;\ncvt.u64.u32 %rd2, %r6;\nadd.s64 %rd2, "  \
	      "%rd2, %in;\nmov.b16 %h1, 3;\n"                                                                          \
	      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r5+1024], "      \
	      "[%rd2], 256, [%smem], %h1;\n"                                                                           \
	      "FULL:\nmbarrier.try_wait.parity.shared.b64 %p9, [%smem], %r10;\n@!%p9 bra FULL;\n"                      \
	      "mad.lo.s32 %r7, %tid, 4, %r1;\nld.shared.v2.b32 {%r8, %r9}, [%r7+1024];\nadd.s32 %r20, %r20, "          \
	      "%r8;\nadd.s32 "                                                                                         \
	      "%r20, %r20, %r9;\nbar.warp.sync -1;\nand.b32 %r13, %tid, 31;\nsetp.lt.u32 %p2, %r13, 2;\n"              \
	      "mapa.shared::cluster.u32 %r14, %smem, %r13;\n" release                                                  \
	      "xor.b32 %r10, %r10, 1;\nadd.s32 %r11, %r11, 1;\nsetp.lt.u32 %p3, %r11, 3;\n@%p3 bra NEXT;\n"            \
	      "st.global.b32 [%rd1], %r20;\n" last
#define RELEASE "@%p2 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r14+8];\n"

#define TWO_BARRIERS(between, behind, arrive)                                                                          \
	SETUP "setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [%smem], 1;\n" between                         \
	      "@%p1 mbarrier.init.shared.b64 [%smem+8], 1;\n" behind arrive PASS                                       \
	      "mbarrier.try_wait.parity.shared.b64 %p9, [%smem+8], 1;\n" MEET

/* The fence stands behind all inits; the lanes of another warp wait at the barrier before they use one. */
static void test_relaxed_arrivals(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 4; seed++) {
		hopper *good[] = {with(2, seed, TWO_BARRIERS("", FENCE, RELAXED)),
			with(2, seed, TWO_BARRIERS("", FENCE, ARRIVE)), with(2, seed, TWO_BARRIERS("", "", ARRIVE))};
		for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
			RUNS(good[i]);
			free(good[i]);
		}
		REPORTS(with(2, seed, TWO_BARRIERS(FENCE, "", RELAXED)), "may not have made");
		REPORTS(with(2, seed, TWO_BARRIERS("", "", RELAXED)), "may not have made");
		REPORTS(with(2, seed, TWO_BARRIERS("", RELAXED FENCE, "")), "may not have made");
	}
}

static void test_multicast(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 6; seed++) {
		hopper *h = with(2, seed, ".reg .b16 %h1;\nmov.b32 %r20, 0;\n" MULTICAST(FENCE, MEET, RELEASE, MEET));
		RUNS(h);
		for (uint32_t i = 0; i < 512; i++) {
			uint32_t sum = 0, words[2];
			for (uint32_t round = 0; round < 3; round++) {
				memcpy(words, h->in + 512 * round + i % 64 * 8, 8);
				sum += words[0] + words[1];
			}
			assert_int_equal(OUT(h)[i], sum);
		}
		free(h);
		REPORTS(with(2, seed, ".reg .b16 %h1;\nmov.b32 %r20, 0;\n" MULTICAST("", MEET, RELEASE, MEET)),
			"whose init no fence");
		/* relaxed arrivals tell what the fence has released */
		h = with(2, seed, ".reg .b16 %h1;\nmov.b32 %r20, 0;\n" MULTICAST(FENCE, RELAXED PASS, RELEASE, MEET));
		RUNS(h);
		free(h);
		REPORTS(with(2, seed, ".reg .b16 %h1;\nmov.b32 %r20, 0;\n" MULTICAST(FENCE, MEET, "", MEET)),
			"wait for ever");
		REPORTS(with(2, seed, ".reg .b16 %h1;\nmov.b32 %r20, 0;\n" MULTICAST(FENCE, MEET, RELEASE, "")),
			"has ended");
		/* what comes back at last: waited for, or known by a barrier that it cannot overtake */
		h = with(2, seed,
			".reg .b16 %h1;\nmov.b32 %r20, 0;\n" MULTICAST(FENCE, MEET, RELEASE,
				"@!%p1 bra END;\nLAST:\nmbarrier.try_wait.parity.shared.b64 %p9, [%smem+8], "
				"0;\n@!%p9 bra LAST;\nEND:\n"));
		RUNS(h);
		free(h);
		REPORTS(with(2, seed,
				".reg .b16 %h1;\nmov.b32 %r20, 0;\n" MULTICAST(FENCE, MEET, RELEASE, RELAXED PASS)),
			"cannot know whether the arrival of program");
	}
	REPORTS(with(2, 0, ".reg .b16 %h1;\nmov.b32 %r20, 0;\n" MULTICAST(FENCE, "bar.sync 0;\n", RELEASE, MEET)),
		"which that may not have made yet");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_registers), cmocka_unit_test(test_shared_memory),
		cmocka_unit_test(test_barrier), cmocka_unit_test(test_order), cmocka_unit_test(test_remote_arrivals),
		cmocka_unit_test(test_relaxed_arrivals), cmocka_unit_test(test_multicast)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
