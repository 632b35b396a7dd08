/* Races that only some of what race.c keeps can tell apart: of single lanes, several readers, engines, clusters and the
 * scopes of atomics; each beside its like that is in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include "sim_fixture.h"
#include "sim_hopper.h"

#include <cmocka.h>

enum { SEEDS = 4 };

/* `says`: null: it runs. */
static void check(hopper *h, int which, const char *says)
{
	bool ran = hopper_run(h);
	if (ran != !says || (says && !strstr(h->problem, says)))
		fail_msg("case %d, seed %d: %s, not %s", which, (int)h->seed, ran ? "it runs" : h->problem,
			says ? says : "to its end");
}

static hopper *with(uint32_t cluster, uint32_t programs, uint64_t seed, const char *body)
{
	hopper *h = hopper_new();
	h->threads = 64;
	h->shared = 4096;
	h->cluster = cluster;
	h->programs = programs;
	h->seed = seed;
	h->filled = true;
	hopper_add(h, "%s", body);
	return h;
}

typedef struct row {
	const char *body, *says; /* null: nothing */
} row;

static void check_rows(uint32_t cluster, uint32_t programs, const row *rows, size_t n, int line)
{
	for (size_t i = 0; i < n; i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			hopper *h = with(cluster, programs, seed, rows[i].body);
			bool ran = hopper_run(h);
			if (ran != !rows[i].says || (!ran && !strstr(h->problem, rows[i].says)))
				fail_msg("line %d, row %d, seed %d: %s, not %s", line, (int)i, (int)seed,
					ran ? "it runs" : h->problem, rows[i].says ? rows[i].says : "to its end");
			free(h);
		}
}
#define ROWS(cluster, programs, rows) check_rows(cluster, programs, rows, sizeof(rows) / sizeof(rows)[0], __LINE__)

#define INIT(count)                                                                                                    \
	"setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [%smem], " count                                     \
	";\n@%p1 st.shared.b32 [%smem+64], 0;\nfence.mbarrier_init.release.cluster;\nbar.sync 0;\n"                    \
	"and.b32 %r1, %tid, 31;\nsetp.eq.b32 %p2, %r1, 0;\nsetp.eq.b32 %p3, %r1, 3;\nsetp.eq.b32 %p4, %r1, 5;\n"
#define WAIT(label) label ":\nmbarrier.try_wait.parity.shared.b64 %p9, [%smem], 0;\n@!%p9 bra " label ";\n"
/* Only lane 0 of each warp waits. */
#define FIRST_WAITS(label) "@!%p2 bra " label "_;\n" WAIT(label) label "_:\n"
#define ARRIVE "mbarrier.arrive.shared.b64 _, [%smem];\n"
#define WARP "bar.warp.sync -1;\n"
#define ONE_WARP "setp.ge.u32 %p5, %tid, 32;\n@%p5 ret;\n"
#define READ "ld.shared.b32 %r5, [%smem+64];\n"
#define WRITE "st.shared.b32 [%smem+64], 1;\n"
#define SHARED_RACE "a race on shared memory at offset 64: it is written here and was read by thread 0 at"

/* Lanes 3 and 5 read a word, then lane 0 does and writes it: it has to know of both, and its own read hides neither. */
static void test_readers_of_one_warp(void **state)
{
	(void)state;
	static const row rows[] = {
		{INIT("2") ONE_WARP "@%p3 " READ "@%p4 " READ "@%p2 " READ "@%p3 " ARRIVE
				    "@%p4 " ARRIVE FIRST_WAITS("W") "@%p2 " WRITE,
			NULL},
		{INIT("2") ONE_WARP "@%p3 " READ "@%p4 " READ "@%p2 " READ "@%p3 " ARRIVE
				    "@%p4 " ARRIVE WAIT("W") "@%p2 " WRITE,
			NULL}, /* all lanes are told */
		{INIT("2") ONE_WARP "@%p3 " ARRIVE "@%p4 " ARRIVE WAIT("W") "@%p3 " READ "@%p4 " READ "@%p2 " READ
									    "@%p2 " WRITE,
			SHARED_RACE},
		/* told before any of them read */
		{INIT("2") ONE_WARP "@%p3 " ARRIVE "@%p4 " ARRIVE FIRST_WAITS("W") "@%p3 " READ "@%p4 " READ
										   "@%p2 " READ "@%p2 " WRITE,
			SHARED_RACE},
		/* the lanes have met since they were told, and read then */
		{INIT("2") ONE_WARP "@%p3 " ARRIVE "@%p4 " ARRIVE FIRST_WAITS("W") WARP "@%p3 " READ "@%p4 " READ
											"@%p2 " READ "@%p2 " WRITE,
			SHARED_RACE},
		/* lane 5 is told, lane 0 is not */
		{INIT("1") ONE_WARP "@%p3 " READ "@%p2 " READ "@%p3 " ARRIVE
				    "@!%p4 bra S;\n" WAIT("W") "S:\n@%p2 " WRITE,
			SHARED_RACE},
		/* what all lanes know when they have met */
		{INIT("2") ONE_WARP "@%p3 " READ "@%p4 " READ "@%p2 " READ "@%p3 " ARRIVE
				    "@%p4 " ARRIVE FIRST_WAITS("W") WARP "@%p4 " WRITE,
			NULL},
	};
	ROWS(1, 1, rows);
}

#define THREADS_OF(n) "setp.lt.u32 %p5, %tid, " n ";\n"
#define FILL "mad.lo.s32 %r3, %tid, 16, %smem;\nst.shared.v4.b32 [%r3+1024], {%tid, %tid, %tid, %tid};\n"
#define COPY_OUT                                                                                                       \
	"setp.eq.b32 %p1, %tid, 0;\n@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out+16], [%smem+1024], "        \
	"512;\n@%p1 "                                                                                                  \
	"cp.async.bulk.commit_group;\n"
#define COPY_MORE "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out+1024], [%smem+1024], 512;\n"
#define COMMIT "@%p1 cp.async.bulk.commit_group;\n"
#define WRITTEN(n) "@%p1 cp.async.bulk.wait_group " n ";\n"
#define SECOND(first, second) "setp.ne.b32 %p7, %cta, 0;\n@%p7 bra SECOND;\n" first "ret;\nSECOND:\n" second
#define RELEASE "@%p1 st.release.gpu.global.b32 [%out+2048], 1;\n"
#define ACQUIRE "ld.acquire.gpu.global.b32 %r4, [%out+2048];\n"

/* A release hands over what the bulk copies have written for which its thread has waited, not what they have read. */
static void test_copies_between_programs(void **state)
{
	(void)state;
	static const row rows[] = {
		{SECOND(FILL "fence.proxy.async;\nbar.sync 0;\n" COPY_OUT "@%p1 cp.async.bulk.wait_group 0;\n" RELEASE,
			 ACQUIRE "ld.global.b32 %r5, [%out+20];\n"),
			NULL},
		{SECOND(FILL "fence.proxy.async;\nbar.sync 0;\n" COPY_OUT
			     "@%p1 cp.async.bulk.wait_group 0;\n@%p1 cp.async.bulk.wait_group 0;\n" RELEASE,
			 ACQUIRE "ld.global.b32 %r5, [%out+20];\n"),
			NULL},
		{SECOND(FILL "fence.proxy.async;\nbar.sync 0;\n" COPY_OUT
			     "@%p1 cp.async.bulk.wait_group.read 0;\n" RELEASE,
			 ACQUIRE "ld.global.b32 %r5, [%out+20];\n"),
			"a race on out at offset 20: it is read here and was written by a bulk copy at line"},
		{SECOND(FILL "fence.proxy.async;\nbar.sync 0;\n" COPY_OUT "@%p1 cp.async.bulk.wait_group 0;\n",
			 ACQUIRE "ld.global.b32 %r5, [%out+20];\n"),
			"a race on out at offset 20: it is read here and was written by a bulk copy at line"},
		/* of two groups the one that was waited for; nothing of one that is not committed */
		{SECOND(FILL "fence.proxy.async;\nbar.sync 0;\n" COPY_OUT COPY_MORE COMMIT WRITTEN("1")
				 RELEASE WRITTEN("0"),
			 ACQUIRE "ld.global.b32 %r5, [%out+20];\n"),
			NULL},
		{SECOND(FILL "fence.proxy.async;\nbar.sync 0;\n" COPY_OUT COPY_MORE COMMIT WRITTEN("1")
				 RELEASE WRITTEN("0"),
			 ACQUIRE "ld.global.b32 %r5, [%out+1028];\n"),
			"a race on out at offset 1028: it is read here and was written by a bulk copy at line"},
		{SECOND(FILL "fence.proxy.async;\nbar.sync 0;\n" COPY_OUT COPY_MORE WRITTEN("0")
				 RELEASE COMMIT WRITTEN("0"),
			 ACQUIRE "ld.global.b32 %r5, [%out+20];\n"),
			NULL},
		{SECOND(FILL "fence.proxy.async;\nbar.sync 0;\n" COPY_OUT COPY_MORE WRITTEN("0")
				 RELEASE COMMIT WRITTEN("0"),
			 ACQUIRE "ld.global.b32 %r5, [%out+1028];\n"),
			"a race on out at offset 1028: it is read here and was written by a bulk copy at line"},
	};
	ROWS(1, 2, rows);
}

/* Programs 0 and 1 read a word, program 2 writes it: what is known of several readers is only the last one. */
#define COUNT "@%p1 red.release.gpu.global.add.u32 [%out+2048], 1;\n"
#define READ_WORD "setp.eq.b32 %p1, %tid, 0;\n@%p1 ld.global.b32 %r5, [%out+8];\n"
#define WRITE_WORD "setp.eq.b32 %p1, %tid, 0;\n@%p1 st.global.b32 [%out+8], 1;\n"
#define THIRD(first, third) "setp.eq.b32 %p7, %cta, 2;\n@%p7 bra THIRD;\n" first "ret;\nTHIRD:\n" third

static void test_readers_of_several_programs(void **state)
{
	(void)state;
	static const row rows[] = {
		{THIRD(READ_WORD COUNT, ACQUIRE WRITE_WORD), NULL},
		{THIRD(READ_WORD COUNT, WRITE_WORD),
			"a race on out at offset 8: it is written here and was read by program (1, 0, 0) at line"},
		{THIRD(READ_WORD COUNT, READ_WORD WRITE_WORD), "a race on out at offset 8"},
		{THIRD(READ_WORD COUNT, ACQUIRE READ_WORD WRITE_WORD), NULL},
	};
	ROWS(1, 3, rows);
}

/* The stores of one statement may hit one place twice; a line of the same number in another file is another one. */
static void test_statements_of_files(void **state)
{
	(void)state;
	for (int other = 0; other < 2; other++) {
		char body[512];
		snprintf(body, sizeof body,
			"setp.lt.u32 %%p1, %%tid, 16;\n.loc 1 5 1\n@%%p1 st.global.b32 [%%out+8], 7;\n"
			".loc %d 5 1\n@!%%p1 st.global.b32 [%%out+8], 9;\n",
			1 + other);
		sim_case c = {.declarations = ".file 2 \"other.blk\"\n", .body = body};
		blk_status s = sim_try(&c);
		if (!other) {
			assert_int_equal(s, BLK_OK);
			assert_int_equal(c.out[2], 9);
			continue;
		}
		assert_int_equal(s, BLK_ERROR_KERNEL);
		assert_non_null(strstr(blk_error(),
			"other.blk:5: a race on out at offset 8: it is written here and was written by thread 15 at "
			"made.blk:5, in no order"));
	}
}

/* ---- Scopes of atomics ---- */

#define ADD(scope) "red.relaxed." scope ".global.add.u32 [%out+8], 1;\n"

/* Two atomics are no race where each has the other's program in its scope. */
static void test_scopes_of_atomics(void **state)
{
	(void)state;
	static const struct {
		const char *first, *second;
		uint32_t cluster, programs;
		bool good;
	} cases[] = {
		{"gpu", "gpu", 1, 2, true},
		{"sys", "gpu", 1, 2, true},
		{"cluster", "cluster", 1, 1, true},
		{"cta", "cta", 1, 1, true},
		{"cluster", "cluster", 1, 2, false},
		{"cta", "gpu", 1, 2, false},
		{"gpu", "cta", 1, 2, false},
		{"cluster", "cluster", 2, 2, true},
		{"cluster", "gpu", 2, 2, true},
		{"gpu", "cluster", 2, 2, true},
		{"cta", "cluster", 2, 2, false},
		{"cluster", "cta", 2, 2, false},
		/* of two clusters */
		{"cluster", "cluster", 2, 4, false},
		{"gpu", "gpu", 2, 4, true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			hopper *h = with(cases[i].cluster, cases[i].programs, seed, "and.b32 %r1, %cta, 1;\n");
			hopper_add(h, "setp.eq.b32 %%p1, %%r1, 0;\n@%%p1 red.relaxed.%s.global.add.u32 [%%out+8], 1;\n",
				cases[i].first);
			hopper_add(h, "@!%%p1 red.relaxed.%s.global.add.u32 [%%out+8], 1;\n", cases[i].second);
			check(h, (int)i,
				cases[i].good ? NULL : "a race on out at offset 8: it is written here and was");
			uint32_t sum;
			memcpy(&sum, h->out + 8, 4);
			if (cases[i].good) assert_int_equal(sum, 64 * cases[i].programs);
			free(h);
		}
}

/* Halves of one word, each with an atomic of its own: an access to both clashes with the one that is none for it. */
static void test_atomics_of_halves(void **state)
{
	(void)state;
#define HALF(scope, at) "red.relaxed." scope ".global.add.noftz.f16 [%out+" at "], %h1;\n"
#define LANE(n, what) "setp.eq.b32 %p1, %tid, " n ";\n@%p1 " what
#define HALVES "mov.b16 %h1, 0x3c00;\n"
	static const row rows[] = {
		{HALVES SECOND(LANE("0", HALF("gpu", "8")) LANE("1", HALF("gpu", "10")), LANE("0", ADD("gpu"))), NULL},
		{HALVES SECOND(LANE("0", HALF("cta", "8")) LANE("1", HALF("gpu", "10")), LANE("0", ADD("gpu"))),
			"a race on out at offset 8"},
		{HALVES SECOND(LANE("0", HALF("gpu", "8")) LANE("1", HALF("cta", "10")), LANE("0", HALF("gpu", "8"))),
			NULL},
		{HALVES SECOND(LANE("0", HALF("gpu", "8")) LANE("1", HALF("cta", "10")), LANE("0", HALF("gpu", "10"))),
			"a race on out at offset 10"},
		{HALVES SECOND(LANE("0", "st.global.b16 [%out+8], %h1;\n") LANE("1", HALF("gpu", "10")),
			 LANE("0", HALF("gpu", "10"))),
			NULL},
		{HALVES SECOND(LANE("0", "st.global.b16 [%out+8], %h1;\n") LANE("1", HALF("gpu", "10")),
			 LANE("0", HALF("gpu", "8"))),
			"a race on out at offset 8: it is written here and was written by program (0, 0, 0)"},
		/* neighbours by one instruction, and what each wrote by another one */
		{HALVES "mad.wide.u32 %rd1, %tid, 2, %out;\n" SECOND("red.relaxed.gpu.global.add.noftz.f16 [%rd1], "
								     "%h1;\n",
			 "red.relaxed.gpu.global.add.noftz.f16 [%rd1], %h1;\n"),
			NULL},
		{HALVES "mad.wide.u32 %rd1, %tid, 2, %out;\n" SECOND("red.relaxed.cta.global.add.noftz.f16 [%rd1], "
								     "%h1;\n",
			 LANE("0", HALF("gpu", "6"))),
			"a race on out at offset 6: it is written here and was written by program (0, 0, 0)"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			hopper *h = with(1, 2, seed, ".reg .b16 %h<4>;\n");
			hopper_add(h, "%s", rows[i].body);
			check(h, (int)i, rows[i].says);
			free(h);
		}
}

/* ---- Engines ---- */

/* Who says that it has come to a place, and who asks for it, in no order. */
#define SAYS(n) "@%p1 st.relaxed.gpu.global.b32 [%out+2048], " n ";\n"
#define ASKS(n) "A" n ":\nld.relaxed.gpu.global.b32 %r6, [%out+2048];\nsetp.lt.u32 %p9, %r6, " n ";\n@%p9 bra A" n ";\n"

/* Sums of 4 registers over 16 halves, a and b at `at` in shared memory, one after the other without a swizzle. */
static void product(hopper *h, const char *at)
{
	hopper_add(h,
		"add.s32 %%r40, %%smem, %s;\nshr.u32 %%r40, %%r40, 4;\ncvt.u64.u32 %%rd40, %%r40;\nor.b64 %%rd40, "
		"%%rd40, 0x800080000;\nwgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
		"{%%f0, %%f1, %%f2, %%f3}, %%rd40, %%rd40, 0, 1, 1, 0, 0;\n",
		at);
}
#define DONE "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
/* Each warp's lane 0 has come, and all that is known of it. */
#define COMES "@%p2 red.relaxed.gpu.global.add.u32 [%out+4096], 1;\n"
#define LOOKS(label, n)                                                                                                \
	label ":\nld.relaxed.gpu.global.b32 %r6, [%out+4096];\nsetp.lt.u32 %p9, %r6, " n ";\n@%p9 bra " label ";\n"

/* A warp beside the warpgroup sees that a product is over, but nothing says so in order. */
static void test_products_and_other_warps(void **state)
{
	(void)state;
	static const row rows[] = {
		{"bar.sync 1, 160;\n", NULL},
		{"", "a race on shared memory at offset 32: it is written here and was read by a wgmma at"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			hopper *h = with(1, 1, seed, "");
			h->threads = 160;
			h->image = 2048;
			hopper_add(h, "and.b32 %%r1, %%tid, 31;\nsetp.eq.b32 %%p2, %%r1, 0;\nsetp.ge.u32 %%p3, %%tid, "
				      "128;\n@%%p3 bra OTHER;\n");
			product(h, "0");
			hopper_add(h, "%s%sret;\nOTHER:\n%s", DONE COMES, rows[i].body, rows[i].body);
			hopper_add(h, "%s",
				LOOKS("LOOK", "4") "setp.eq.b32 %p4, %tid, 130;\n@%p4 st.shared.b32 [%smem+32], 0;\n");
			check(h, (int)i, rows[i].says);
			free(h);
		}
}

/* A byte of what a product has read is read by a thread: both count. */
static void test_products_and_readers(void **state)
{
	(void)state;
	static const row rows[] = {
		{"@%p4 ld.shared.u8 %r5, [%smem+33];\nbar.sync 0;\n", NULL},
		{"@%p4 ld.shared.u8 %r5, [%smem+33];\n", "a race on shared memory at offset 3"},
		{"@%p4 ld.shared.b32 %r5, [%smem+32];\n", "a race on shared memory at offset 3"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		hopper *h = with(1, 1, 0, "");
		h->threads = 128;
		h->image = 2048;
		product(h, "0");
		hopper_add(h, "%s", DONE "bar.sync 0;\nsetp.eq.u32 %p4, %tid, 5;\nsetp.eq.u32 %p5, %tid, 70;\n");
		hopper_add(h, "%s@%%p5 st.shared.b32 [%%smem+32], 0;\n", rows[i].body);
		check(h, (int)i, rows[i].says);
		free(h);
	}
}

/* What one lane of each warp has been told is enough for a product's order, not for its proxy. */
static void test_products_of_one_lane(void **state)
{
	(void)state;
#define STORES "st.shared.b32 [%smem+64], 0;\nst.shared.b32 [%smem+96], 0;\n"
#define TOLD_BY_ONE(stores, fence)                                                                                     \
	"setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [%smem+3072], 1;\nbar.sync 0;\nand.b32 %r1, "        \
	"%tid, 31;\nsetp.eq.b32 %p2, %r1, 5;\nsetp.ge.u32 %p3, %tid, 128;\n@!%p3 bra PRODUCT;\nsetp.eq.b32 %p4, "      \
	"%tid, 128;\n@!%p4 ret;\n" stores                                                                              \
	"mbarrier.arrive.shared.b64 _, [%smem+3072];\nret;\nPRODUCT:\n@!%p2 bra SEEN;\nWAIT:\n"                        \
	"mbarrier.try_wait.parity.shared.b64 %p9, [%smem+3072], 0;\n@!%p9 bra WAIT;\n" fence "SEEN:\n"
	static const row rows[] = {
		{TOLD_BY_ONE(STORES "fence.proxy.async;\n", ""), NULL},
		{TOLD_BY_ONE(STORES, "fence.proxy.async;\n"), NULL},
		{TOLD_BY_ONE(STORES, ""),
			"shared memory at offset 64 is read by an asynchronous engine; thread 128 wrote it"},
		{TOLD_BY_ONE("mov.b16 %h1, 0;\nst.shared.b16 [%smem+98], %h1;\n", ""),
			"shared memory at offset 96 is read by an asynchronous engine; thread 128 wrote it"},
		{TOLD_BY_ONE("st.shared.b32 [%smem+64], 0;\nfence.proxy.async;\nbar.warp.sync 1;\nst.shared.b32 "
			     "[%smem+96], 0;\n",
			 ""),
			"shared memory at offset 96 is read by an asynchronous engine; thread 128 wrote it"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			hopper *h = with(1, 1, seed, ".reg .b16 %h<4>;\n");
			h->threads = 160;
			h->image = 2048;
			hopper_add(h, "%s", rows[i].body);
			product(h, "0");
			hopper_add(h, "%s", DONE);
			check(h, (int)i, rows[i].says);
			free(h);
		}
}

/* Of two words the first is this program's own, in order; the second one another's of the cluster, which has not told
 * of it. */
static void test_products_and_other_programs(void **state)
{
	(void)state;
#define MEET "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
	static const row rows[] = {
		{"fence.acq_rel.cluster;\n", NULL},
		{"", "a race on shared memory at offset 36: it is read here and was written by program (1, 0, 0) at"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			hopper *h = with(2, 2, seed, "");
			h->threads = 128;
			h->image = 2048;
			hopper_add(h, "%s",
				"mov.u32 %r7, %cluster_ctarank;\nsetp.eq.b32 %p1, %tid, 0;\nsetp.eq.b32 %p6, %r7, 1;\n"
				"mapa.shared::cluster.u32 %r8, %smem, 0;\n" MEET "@%p6 bra SECOND;\n@%p1 "
				"st.shared.b32 [%smem+32], 0;\nfence.proxy.async;\nbar.sync 0;\n" SAYS("1") ASKS("2"));
			hopper_add(h, "%s", rows[i].body);
			product(h, "0");
			hopper_add(h, "%s%s", DONE SAYS("3"),
				"bra.uni END;\nSECOND:\n" ASKS("1") "@%p1 st.shared::cluster.b32 [%r8+36], 0;\n");
			hopper_add(h, "%s%s", rows[i].body, SAYS("2") ASKS("3") "END:\n" MEET);
			check(h, (int)i, rows[i].says);
			free(h);
		}
}

/* Words whose bytes neighbouring lanes have written, under a copy from them and one to them. */
static void test_copies_of_bytes(void **state)
{
	(void)state;
#define BYTES "cvt.u16.u32 %h1, %tid;\nadd.s32 %r3, %smem, %tid;\nst.shared.b8 [%r3+1024], %h1;\n"
#define OUT16                                                                                                          \
	"@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out+16], [%smem+1024], 32;\n@%p1 "                         \
	"cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group 0;\n"
#define IN16                                                                                                           \
	"@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%smem], 32;\n@%p1 "                                             \
	"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%smem+1024], [%in], 32, [%smem];\n" WAIT(  \
		"W")
	static const row rows[] = {
		{BYTES "fence.proxy.async;\nbar.sync 0;\n" OUT16, NULL},
		{BYTES "bar.sync 0;\nfence.proxy.async;\n" OUT16, NULL},
		{BYTES "bar.sync 0;\n" OUT16,
			"shared memory at offset 1024 is read by an asynchronous engine; thread 0 wrote it"},
		{BYTES "setp.eq.b32 %p5, %tid, 2;\n@!%p5 fence.proxy.async;\nbar.sync 0;\n" OUT16,
			"shared memory at offset 1024 is read by an asynchronous engine; thread 2 wrote it"},
		{BYTES "fence.proxy.async;\nbar.sync 0;\n" IN16, NULL},
		{BYTES "setp.eq.b32 %p5, %tid, 7;\n@!%p5 fence.proxy.async;\nbar.sync 0;\n" IN16,
			"shared memory at offset 1028 is written by an asynchronous engine; thread 7 wrote it"},
		{BYTES "fence.proxy.async;\n" IN16, "a race on shared memory at offset 10"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			hopper *h = with(1, 1, seed, ".reg .b16 %h<4>;\n" INIT("1"));
			hopper_add(h, "%s", rows[i].body);
			check(h, (int)i, rows[i].says);
			for (uint32_t k = 0; i < 2 && k < 32; k++) assert_int_equal(h->out[16 + k], k);
			free(h);
		}
}

/* One lane learns of a store and fences for it. */
static void test_fences_of_one_lane(void **state)
{
	(void)state;
#define STORE_FIRST                                                                                                    \
	"setp.ge.u32 %p5, %tid, 32;\n@!%p5 bra FIRST;\n@%p2 st.shared.v4.b32 [%smem+1024], {%tid, %tid, %tid, "        \
	"%tid};\n@%p2 st.shared.v4.b32 [%smem+1040], {%tid, %tid, %tid, %tid};\n@%p2 " ARRIVE "ret;\nFIRST:\n"
	static const row rows[] = {
		{INIT("1") STORE_FIRST FIRST_WAITS("W") "@%p2 fence.proxy.async;\n" OUT16, NULL},
		{INIT("1") STORE_FIRST "@%p2 fence.proxy.async;\n" FIRST_WAITS("W") OUT16,
			"shared memory at offset 1024 is read by an asynchronous engine; thread 32 wrote it"},
		{INIT("1") STORE_FIRST FIRST_WAITS("W") OUT16,
			"shared memory at offset 1024 is read by an asynchronous engine; thread 32 wrote it"},
	};
	ROWS(1, 1, rows);
}

/* More mbarriers than have clocks of their own: copies that those count land, and are not watched. */
static void test_many_mbarriers(void **state)
{
	(void)state;
	enum { MANY = 70 };
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		hopper *h = with(1, 1, seed, "setp.eq.b32 %p1, %tid, 0;\n@!%p1 bra MADE;\n");
		for (int i = 0; i < MANY; i++) hopper_add(h, "mbarrier.init.shared.b64 [%%smem+%d], 1;\n", 8 * i);
		hopper_add(h, "MADE:\nfence.mbarrier_init.release.cluster;\nbar.sync 0;\n@!%%p1 bra BEGUN;\n");
		for (int i = 0; i < MANY; i++)
			hopper_add(h,
				"mbarrier.arrive.expect_tx.shared.b64 _, [%%smem+%d], 16;\n"
				"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%smem+%d], "
				"[%%in+%d], 16, [%%smem+%d];\n",
				8 * i, 1024 + 16 * i, 16 * i, 8 * i);
		hopper_add(h, "BEGUN:\n");
		for (int i = 0; i < MANY; i++)
			hopper_add(h,
				"W%d:\nmbarrier.try_wait.parity.shared.b64 %%p9, [%%smem+%d], 0;\n@!%%p9 bra W%d;\n"
				"ld.shared.b32 %%r5, [%%smem+%d];\n@%%p1 st.global.b32 [%%out+%d], %%r5;\n",
				i, 8 * i, i, 1024 + 16 * i, 4 * i);
		for (uint32_t i = 0; i < 16 * MANY; i++) h->in[i] = (uint8_t)(i * 5 + i / 256);
		check(h, 0, NULL);
		for (int i = 0; i < MANY; i++) assert_memory_equal(h->out + 4 * i, h->in + 16 * i, 4);
		free(h);
	}
}

/* Whose copy has written what a program of a cluster reads too early is not known. */
static void test_copies_in_clusters(void **state)
{
	(void)state;
	static const char *const programs[] = {"[0, 0, 0]", "null"};
	for (uint32_t n = 1; n <= 2; n++) {
		hopper *h = with(n, n, 0,
			INIT("1") "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%smem], 32;\n@%p1 "
				  "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%smem+1024], "
				  "[%in], 32, [%smem];\nld.shared.b32 %r5, [%smem+1028];\n");
		char other[128];
		snprintf(other, sizeof other,
			"\"program\": %s, \"thread\": null, \"engine\": \"bulk copy\", \"kind\": \"write\"}",
			programs[n - 1]);
		h->json = true;
		h->threads = 32;
		check(h, (int)n, other);
		assert_non_null(strstr(h->problem, "\"offset\": 1028, \"bytes\": 4, \"kind\": \"read\""));
		free(h);
	}
}

/* ---- Clusters ---- */

#define CLUSTER "mov.u32 %r7, %cluster_ctarank;\nsetp.eq.b32 %p6, %r7, 1;\nmapa.shared::cluster.u32 %r8, %smem, 1;\n"

/* An arrival from another program, heard of by one lane. */
static void test_lanes_that_hear_another_program(void **state)
{
	(void)state;
#define HEARS(hears, reads)                                                                                            \
	INIT("1")                                                                                                      \
	CLUSTER MEET "@%p6 bra SECOND;\n" ASKS(                                                                        \
		"1") "@%p1 st.shared::cluster.b32 [%r8+1024], 7;\n@%p1 "                                               \
		     "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];\nbra.uni END;\nSECOND:\n" SAYS(    \
			     "1") "@!" hears                                                                           \
				  " bra HEARD;\nW:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p9, "    \
				  "[%smem], "                                                                          \
				  "0;\n@!%p9 bra W;\nHEARD:\n" reads "END:\n" MEET
#define LOADS "ld.shared.b32 %r9, [%smem+1024];\n"
#define UNHEARD "a race on shared memory at offset 1024: it is read here and was written by program (0, 0, 0) at"
	static const row rows[] = {
		{HEARS("%p1", "@%p1 " LOADS), NULL},
		{HEARS("%p1", "bar.sync 0;\n" LOADS), NULL},
		{HEARS("%p1", "setp.eq.b32 %p4, %tid, 4;\n"
			      "@%p4 " LOADS),
			UNHEARD},
	};
	ROWS(2, 2, rows);
}

#define FENCE "fence.acq_rel.cluster;\n"
#define FENCES FENCE FENCE FENCE

/* The second listens in front of the first's release, or behind it.  Of releases that are no longer kept the oldest
 * one that is counts, so that nothing is said. */
static void test_releases_that_come_late(void **state)
{
	(void)state;
#define LISTENS(before, behind)                                                                                        \
	INIT("1")                                                                                                      \
	CLUSTER                                                                                                        \
	"@!%p1 bra END;\n@%p6 bra SECOND;\nst.shared::cluster.b32 [%r8+1024], 7;\n" SAYS("1") ASKS("2")                \
		before SAYS("3") ASKS("4") "bra.uni END;\nSECOND:\n" ASKS("1") FENCE SAYS("2") ASKS("3")               \
			behind LOADS SAYS("4") "END:\nbar.sync 0;\n" MEET
	static const row rows[] = {
		{LISTENS(FENCE, FENCE), NULL},
		{LISTENS(FENCES FENCES FENCES, FENCE), NULL},
		{LISTENS("", FENCE), UNHEARD},
		{LISTENS(FENCE, ""), UNHEARD},
		{LISTENS(FENCES FENCES FENCE FENCE, ""), UNHEARD},
		{LISTENS(FENCES FENCES FENCES, ""), NULL},
	};
	ROWS(2, 2, rows);
}

/* ---- Many programs ---- */

/* Of so many programs that they cannot be told apart only shared memory is watched. */
static void test_more_programs_than_are_watched(void **state)
{
	(void)state;
	enum { MOST = (1 << 24) - 1 };
	static const struct {
		const char *body, *says;
		uint32_t programs;
	} cases[] = {
		{"setp.eq.b32 %p1, %tid, 0;\n@%p1 st.global.b32 [%out+8], %cta;\n",
			"a race on out at offset 8: it is written here and was written by program (0, 0, 0)", MOST},
		{"setp.eq.b32 %p1, %tid, 0;\n@%p1 st.global.b32 [%out+8], %cta;\nfence.acq_rel.gpu;\n"
		 "fence.proxy.async;\n@%p1 st.relaxed.gpu.global.b32 [%out+12], 7;\n",
			NULL, MOST + 1},
		{"st.shared.b32 [%smem], 1;\n", "a race on shared memory at offset 0", MOST + 1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		hopper *h = with(1, cases[i].programs, 0, cases[i].body);
		h->first = 2;
		check(h, (int)i, cases[i].says);
		uint32_t word;
		memcpy(&word, h->out + 8, 4);
		assert_int_equal(word, i == 1);
		free(h);
	}
}

/* A report finds an instruction by its number, which has 20 bits. */
static void test_most_instructions(void **state)
{
	(void)state;
	enum { MOST = 1 << 20, ROOM = 8 * MOST };
	static const char head[] = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n";
	char *text = malloc(ROOM), error[256] = "";
	assert_non_null(text);
	for (int more = 0; more < 2; more++) {
		size_t n = (size_t)snprintf(text, ROOM, "%s", head);
		for (int i = 0; i < MOST + more; i++) n += (size_t)snprintf(text + n, ROOM - n, "trap;\n");
		snprintf(text + n, ROOM - n, "}\n");
		sim_code *code = NULL;
		bool good = sim_code_parse(text, "k", &code, error, sizeof error);
		assert_int_equal(good, !more);
		if (good) assert_int_equal(code->n, MOST);
		sim_code_free(code);
	}
	assert_string_equal(error, "line 1048582 of the PTX: more instructions than can be simulated");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readers_of_one_warp),
		cmocka_unit_test(test_copies_between_programs),
		cmocka_unit_test(test_readers_of_several_programs),
		cmocka_unit_test(test_statements_of_files),
		cmocka_unit_test(test_scopes_of_atomics),
		cmocka_unit_test(test_atomics_of_halves),
		cmocka_unit_test(test_products_and_other_warps),
		cmocka_unit_test(test_products_and_readers),
		cmocka_unit_test(test_products_of_one_lane),
		cmocka_unit_test(test_products_and_other_programs),
		cmocka_unit_test(test_copies_of_bytes),
		cmocka_unit_test(test_fences_of_one_lane),
		cmocka_unit_test(test_many_mbarriers),
		cmocka_unit_test(test_copies_in_clusters),
		cmocka_unit_test(test_lanes_that_hear_another_program),
		cmocka_unit_test(test_releases_that_come_late),
		cmocka_unit_test(test_more_programs_than_are_watched),
		cmocka_unit_test(test_most_instructions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
