/* What goes wrong around the engines of sm_90a and clusters, each as small a program as shows it: the sentence, and
 * that the same without the fault runs and stores what it should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include "sim_hopper.h"

#include <cmocka.h>

typedef struct row {
	const char *body, *says;   /* null: it runs */
	uint32_t threads, cluster; /* 0: 64, 1 */
} row;

static hopper *made(const row *r, uint64_t seed, const char *before)
{
	hopper *h = hopper_new();
	h->threads = r->threads ? r->threads : 64;
	h->cluster = r->cluster ? r->cluster : 1;
	h->programs = h->cluster;
	h->shared = 4096;
	h->seed = seed;
	h->filled = true;
	for (uint32_t i = 0; i < HOPPER_IN; i++) h->in[i] = (uint8_t)(i * 7 + i / 256 * 3 + 1);
	hopper_add(h, "%s%s", before, r->body);
	return h;
}

static void check(hopper *h, size_t which, int line, const char *says)
{
	bool ran = hopper_run(h);
	if (ran != !says || (says && !strstr(h->problem, says)))
		fail_msg("line %d, case %zu, seed %d: %s, not %s", line, which, (int)h->seed,
			ran ? "it runs" : h->problem, says ? says : "to its end");
}

static void check_rows(const row *rows, size_t n, const char *before, int line)
{
	for (size_t i = 0; i < n; i++)
		for (uint64_t seed = 0; seed < 2; seed++) {
			hopper *h = made(&rows[i], seed, before);
			check(h, i, line, rows[i].says);
			free(h);
		}
}
#define ROWS(rows, before) check_rows(rows, sizeof(rows) / sizeof(rows)[0], before, __LINE__)

/* ---- wgmma ---- */

/* a and b at the start of shared memory, by rows of 16 bytes; the sums are %f0 .. %f3. */
#define DESCRIPTOR "shr.u32 %r40, %smem, 4;\ncvt.u64.u32 %rd40, %r40;\nor.b64 %rd40, %rd40, 0x800080000;\n"
#define FENCE "wgmma.fence.sync.aligned;\n"
#define PRODUCT(a, b, rest)                                                                                            \
	"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, " a ", " b ", " rest ";\n"
#define ONE PRODUCT("%rd40", "%rd40", "0, 1, 1, 0, 0")
#define COMMIT "wgmma.commit_group.sync.aligned;\n"
#define WAIT "wgmma.wait_group.sync.aligned 0;\n"
#define READ_SUM "a register is read that holds the sum of a wgmma that has not been waited for"
#define WRITTEN_SUM "a register is written that holds the sum of a wgmma that has not been waited for"

/* Every kind of instruction that has registers, each of its operands. */
static void test_registers_of_products(void **state)
{
	(void)state;
	static const struct {
		const char *instruction;
		bool writes;
	} touches[] = {
		{"add.s32 %r1, %f0, %r2", false},
		{"add.s32 %r1, %r2, %f1", false},
		{"mad.lo.s32 %r1, %r2, %r3, %f2", false},
		{"add.s32 %f3, %r2, %r3", true},
		{"setp.lt.u32 %p1, %f0, %r2", false},
		{"setp.lt.u32 %p1, %r2, %f0", false},
		{"selp.b32 %r1, %f1, %r2, %p2", false},
		{"selp.b32 %r1, %r2, %f1, %p2", false},
		{"selp.b32 %f1, %r2, %r3, %p2", true},
		{"LIST: .branchtargets HERE;\nbrx.idx %f0, LIST;\nHERE:\nmov.b32 %r1, 0", false},
		{"mov.b32 {%h1, %h2}, %f2", false},
		{"mov.b64 {%r1, %f2}, %rd1", true},
		{"mov.b64 %rd1, {%r1, %f2}", false},
		{"mov.b32 %f2, {%h1, %h2}", true},
		{"ld.shared.b32 %f1, [%smem]", true},
		{"ld.shared.v2.b32 {_, %f1}, [%smem]", true},
		{"st.shared.v2.b32 [%smem+2048], {%tid, %f3}", false},
		{"atom.global.add.u32 %r1, [%out], %f0", false},
		{"atom.global.add.u32 %f0, [%out], 1", true},
		{"red.global.add.u32 [%out], %f0", false},
		{"shfl.sync.bfly.b32 %r1, %f0, 1, 31, -1", false},
		{"shfl.sync.bfly.b32 %f0, %tid, 1, 31, -1", true},
		{"redux.sync.add.s32 %r1, %f0, -1", false},
		{"redux.sync.add.s32 %f0, %tid, -1", true},
		{"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%f0}, [%smem]", true},
		{"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%smem+2048], {%f0}", false},
#define MMA8(d, a, b, c) "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r1, " d "}, {" a "}, {" b "}, {%r5, " c "}"
		{MMA8("%f0", "%r2", "%r3", "%r4"), true},
		{MMA8("%r1", "%f0", "%r3", "%r4"), false},
		{MMA8("%r1", "%r2", "%f0", "%r4"), false},
		{MMA8("%r1", "%r2", "%r3", "%f0"), false},
	};
	static const char *const free_ones[] = {
		"add.s32 %r1, %r2, %r3",
		"setp.lt.u32 %p1, %r1, %r2",
		"selp.b32 %r1, %r2, %r3, %p1",
		"mov.b32 {%h1, %h2}, %r1",
		"mov.b64 %rd1, {%r1, %r2}",
		"bar.warp.sync -1",
		"LIST: .branchtargets HERE;\nbrx.idx %r5, LIST;\nHERE:\nmov.b32 %r1, 0",
		"red.global.add.u32 [%out], 1",
		MMA8("%r1", "%r2", "%r3", "%r4"),
	};
	enum { TOUCHES = sizeof touches / sizeof touches[0], ALL = TOUCHES + sizeof free_ones / sizeof free_ones[0] };
	const row whole = {"", NULL, 128, 1};
	for (size_t i = 0; i < ALL; i++) {
		hopper *h = made(&whole, 0, ".reg .b16 %h<4>;\nmov.b32 %r5, 0;\n" DESCRIPTOR FENCE ONE COMMIT);
		h->image = 2048;
		hopper_add(h, "%s;\n" WAIT, i < TOUCHES ? touches[i].instruction : free_ones[i - TOUCHES]);
		check(h, i, __LINE__, i >= TOUCHES ? NULL : touches[i].writes ? WRITTEN_SUM : READ_SUM);
		free(h);
	}
}

static void test_products(void **state)
{
	(void)state;
	static const row rows[] = {
		{DESCRIPTOR FENCE ONE COMMIT WAIT, NULL, 128, 1},
		/* registers that two products need */
		{DESCRIPTOR FENCE ONE PRODUCT("{%f0, %f1, %f2, %f3}", "%rd40", "0, 1, 1, 0") COMMIT WAIT,
			"a register is a factor of one wgmma and the sum of another, and none has been waited for", 128,
			1},
		{DESCRIPTOR "mov.b32 %r1, 0;\nmov.b32 %r2, 0;\nmov.b32 %r3, 0;\nmov.b32 %r4, 0;\n" FENCE
			    "mov.b32 %r3, 0;\n" PRODUCT("{%r1, %r2, %r3, %r4}", "%rd40", "0, 1, 1, 0") COMMIT WAIT,
			"a register of a wgmma was touched since the last wgmma.fence: factor 2", 128, 1},
		{DESCRIPTOR FENCE "mov.b32 %f3, 0;\n" ONE COMMIT WAIT,
			"a register of a wgmma was touched since the last wgmma.fence: sum 3", 128, 1},
		{DESCRIPTOR ONE COMMIT WAIT, "a wgmma comes before any wgmma.fence", 128, 1},
		/* descriptors */
		{"mov.b32 %smem, 0;\n" DESCRIPTOR FENCE ONE COMMIT WAIT,
			"a of a wgmma reads 16 bytes outside shared memory, of which the program has 4096 bytes: at "
			"offset "
			"-1024 (start 0, leading 128, stride 128, swizzle 0)",
			128, 1},
		{DESCRIPTOR FENCE PRODUCT("%rd40", "%rd41", "0, 1, 1, 0, 0") COMMIT WAIT,
			"the descriptor of b of a wgmma is undefined", 128, 1},
		{DESCRIPTOR FENCE PRODUCT("%rd41", "%rd40", "0, 1, 1, 0, 0") COMMIT WAIT,
			"the descriptor of a of a wgmma is undefined", 128, 1},
		{DESCRIPTOR "cvt.u64.u32 %rd41, %tid;\nshr.u64 %rd41, %rd41, 6;\nadd.s64 %rd41, %rd41, %rd40;\n" FENCE
				PRODUCT("%rd41", "%rd40", "0, 1, 1, 0, 0") COMMIT WAIT,
			"the descriptor of a of a wgmma is 0x800080041 here and 0x800080040 in the group's first "
			"thread",
			128, 1},
		/* whether it adds */
		{DESCRIPTOR "setp.ge.u32 %p5, %tid, 0;\n" FENCE PRODUCT("%rd40", "%rd40", "!%p5, 1, 1, 0, 0")
				COMMIT WAIT "st.global.b32 [%out], %f0;\n",
			NULL, 128, 1},
		{DESCRIPTOR FENCE PRODUCT("%rd40", "%rd40", "%p5, 1, 1, 0, 0") COMMIT WAIT,
			"whether a wgmma adds to its sums is undefined", 128, 1},
		{DESCRIPTOR "setp.lt.u32 %p5, %tid, 100;\n" FENCE PRODUCT("%rd40", "%rd40", "%p5, 1, 1, 0, 0")
				COMMIT WAIT,
			"whether a wgmma adds to its sums differs among its threads", 128, 1},
		{DESCRIPTOR "setp.ne.u32 %p5, %tid, 0;\n" FENCE PRODUCT("%rd40", "%rd40", "%p5, 1, 1, 0, 0")
				COMMIT WAIT,
			"whether a wgmma adds to its sums differs among its threads", 128, 1},
	/* all lanes, all warps */
#define SOME "setp.eq.u32 %p4, %tid, 7;\n@%p4 bra SKIP;\n"
#define SKIPPED "a wgmma instruction is reached by some lanes of a warp only: 0xffffff7f"
		{SOME FENCE "SKIP:\n", SKIPPED, 128, 1},
		{DESCRIPTOR FENCE SOME ONE "SKIP:\n" COMMIT WAIT, SKIPPED, 128, 1},
		{DESCRIPTOR FENCE ONE SOME COMMIT "SKIP:\n" WAIT, SKIPPED, 128, 1},
		{DESCRIPTOR FENCE ONE COMMIT SOME WAIT "SKIP:\n", SKIPPED, 128, 1},
	/* one warp of the four waits, fences or commits by itself */
#define WARP "setp.ge.u32 %p4, %tid, 96;\n@!%p4 bra SKIP;\n"
		{DESCRIPTOR FENCE ONE COMMIT WARP WAIT "SKIP:\n" FENCE ONE COMMIT WAIT,
			"a warp of a warpgroup comes to this wgmma instruction where another came to the one at ", 128,
			1},
		{DESCRIPTOR FENCE ONE COMMIT WAIT WARP FENCE "SKIP:\n" ONE COMMIT WAIT,
			"a warp of a warpgroup comes to this wgmma behind 3 fences, commits and waits since the last "
			"one, its "
			"first warp behind 2",
			128, 1},
		{"setp.ge.u32 %p4, %tid, 128;\n@%p4 ret;\n" DESCRIPTOR FENCE ONE COMMIT WAIT,
			"a wgmma by a warpgroup that is not whole: the program has 130 threads", 130, 1},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		hopper *h = made(&rows[i], 0, "");
		h->image = 2048;
		memset(h->in, 0, 2048);
		check(h, i, __LINE__, rows[i].says);
		free(h);
	}
}

/* Undefined factors make their row's or column's sums undefined, and no others. */
static void test_undefined_factors(void **state)
{
	(void)state;
	static const char undefined[] = "an undefined value is stored";
	/* thread 4 r + c of a warp has (r, 2 c), (r, 2 c + 1) of its 16 rows, and the same of row r + 8 */
	static const row rows[] = {
		/* row 3's halves 4, 5 of a, which are column 3's of b */
		{"st.shared.b32 [%smem+56], %r60;\n", NULL, 128, 1},
	};
	static const struct {
		const char *thread;
		bool bad;
	} threads[] = {{"0", false}, {"1", true}, {"12", true}, {"8", false}, {"44", false}, {"13", true}};
	for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
		hopper *h = made(&rows[0], 0, "");
		h->image = 2048;
		memset(h->in, 0, 2048);
		h->body[h->used = 0] = 0;
		hopper_add(h,
			"setp.eq.u32 %%p3, %%tid, 0;\n@%%p3 st.shared.b32 [%%smem+56], %%r60;\nfence.proxy.async;\n"
			"bar.sync 0;\n%s",
			DESCRIPTOR FENCE ONE COMMIT WAIT);
		hopper_add(h,
			"setp.eq.u32 %%p4, %%tid, %s;\n@%%p4 st.global.b32 [%%out], %%f0;\n@%%p4 st.global.b32 "
			"[%%out+4], %%f1;\n",
			threads[i].thread);
		check(h, i, __LINE__, threads[i].bad ? undefined : NULL);
		free(h);
	}
	/* two sums in a register: either makes it undefined */
	for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
		hopper *h = made(&rows[0], 0, "");
		h->image = 2048;
		memset(h->in, 0, 2048);
		h->body[h->used = 0] = 0;
		hopper_add(h,
			"setp.eq.u32 %%p3, %%tid, 0;\n@%%p3 st.shared.b32 [%%smem+56], %%r60;\nfence.proxy.async;\n"
			"bar.sync 0;\n%swgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%%f0, %%f1}, %%rd40, "
			"%%rd40, 0, 1, 1, "
			"0, 0;\n%s",
			DESCRIPTOR FENCE, COMMIT WAIT);
		hopper_add(h, "setp.eq.u32 %%p4, %%tid, %s;\n@%%p4 st.global.b32 [%%out], %%f0;\n", threads[i].thread);
		check(h, i, __LINE__, threads[i].bad ? undefined : NULL);
		free(h);
	}
	/* in registers: row r of thread 4 r + c's */
	for (int lane = 0; lane < 8; lane++) {
		hopper *h = made(&rows[0], 0, "");
		h->image = 2048;
		memset(h->in, 0, 2048);
		h->body[h->used = 0] = 0;
		hopper_add(h,
			"%smov.b32 %%r1, 0;\nmov.b32 %%r2, 0;\nmov.b32 %%r3, 0;\nsetp.ne.u32 %%p3, %%tid, 5;\n"
			"mov.b32 %%r4, 0;\n@!%%p3 mov.b32 %%r4, %%r60;\n" FENCE "%s",
			DESCRIPTOR, PRODUCT("{%r1, %r2, %r3, %r4}", "%rd40", "0, 1, 1, 0") COMMIT WAIT);
		hopper_add(h, "setp.eq.u32 %%p4, %%tid, %d;\n@%%p4 st.global.b32 [%%out], %%f%d;\n", lane, 2);
		/* %r4 has row 8 + lane / 4 */
		check(h, (size_t)lane, __LINE__, lane / 4 == 1 ? undefined : NULL);
		free(h);
	}
}

/* Numbers that are none, and infinite ones; sums that are too large. */
static void test_special_sums(void **state)
{
	(void)state;
	static const struct {
		const char *shape; /* and the types */
		const char *sum;   /* what is in %f0 before; null: nothing */
		uint32_t a, b, wanted;
		unsigned bytes; /* of an element */
	} cases[] = {
		{"m64n8k16.f32.f16.f16", NULL, 0x7c00, 0x3c00, 0x7f800000, 2}, /* inf 1 */
		{"m64n8k16.f32.f16.f16", NULL, 0xfc00, 0x4000, 0xff800000, 2}, /* -inf 2 */
		{"m64n8k16.f32.f16.f16", NULL, 0x7e00, 0x3c00, 0x7fffffff, 2}, /* nan 1 */
		{"m64n8k16.f32.f16.f16", NULL, 0x0001, 0x3c00, 0x33800000, 2}, /* 2^-24 */
		{"m64n8k16.f16.f16.f16", NULL, 0x7e00, 0x3c00, 0x7fff, 2},
		{"m64n8k16.f16.f16.f16", NULL, 0x7bff, 0x4000, 0x7c00, 2}, /* 65504 2 */
		{"m64n8k16.f32.bf16.bf16", NULL, 0x7fc0, 0x3f80, 0x7fffffff, 2},
		{"m64n8k32.f32.e4m3.e4m3", NULL, 0x7f, 0x38, 0x7fffffff, 1}, /* nan 1 */
		{"m64n8k32.f32.e4m3.e4m3", NULL, 0x7e, 0x38, 0x43e00000, 1}, /* 448 */
		{"m64n8k32.f32.e4m3.e4m3", NULL, 0x81, 0x38, 0xbb000000, 1}, /* -2^-9 */
		{"m64n8k32.f32.e5m2.e5m2", NULL, 0x7c, 0x3c, 0x7f800000, 1},
		{"m64n8k32.satfinite.s32.s8.s8", "0x7ffffff0", 100, 100, 0x7fffffff, 1},
		{"m64n8k32.satfinite.s32.s8.s8", "0x80000010", 0x9c, 100, 0x80000000, 1}, /* -100 100 */
		{"m64n8k32.s32.s8.s8", "0x7ffffff0", 100, 100, 0x80002700, 1},
		{"m64n8k32.satfinite.s32.u8.u8", "7", 200, 250, 50007, 1},
		{"m64n8k8.f32.tf32.tf32", NULL, 0x3f801fff, 0x3f800000, 0x3f800000, 4},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const row whole = {"", NULL, 128, 1};
		hopper *h = made(&whole, 0, "");
		bool halves = strncmp(strchr(cases[i].shape, '.'), ".f16", 4) == 0,
		     floats = !strstr(cases[i].shape, "s32");
		h->image = 2048;
		memset(h->in, 0, 2048);
		memcpy(h->in, &cases[i].a, cases[i].bytes);        /* (0, 0) of a */
		memcpy(h->in + 1024, &cases[i].b, cases[i].bytes); /* (0, 0) of b */
		hopper_add(h, "%sadd.s64 %%rd41, %%rd40, 64;\n", DESCRIPTOR);
		for (int k = 0; k < 4; k++) hopper_add(h, "mov.b32 %%f%d, %s;\n", k, cases[i].sum ? cases[i].sum : "0");
		hopper_add(h,
			FENCE "wgmma.mma_async.sync.aligned.%s {%%f0, %%f1%s}, %%rd40, %%rd41, 1%s%s;\n" COMMIT WAIT,
			cases[i].shape, halves ? "" : ", %f2, %f3", floats ? ", 1, 1" : "",
			cases[i].bytes == 2 ? ", 0, 0" : "");
		hopper_add(h, "setp.eq.u32 %%p4, %%tid, 0;\n@%%p4 st.global.b32 [%%out], %%f0;\n");
		check(h, i, __LINE__, NULL);
		uint32_t got;
		memcpy(&got, h->out, 4);
		if (halves) got &= 0xffff;
		if (got != cases[i].wanted)
			fail_msg("%s of 0x%x and 0x%x: 0x%x, not 0x%x", cases[i].shape, cases[i].a, cases[i].b, got,
				cases[i].wanted);
		free(h);
	}
}

/* ---- mbarriers ---- */

#define INIT                                                                                                           \
	"setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [%smem], "                                           \
	"1;\nfence.mbarrier_init.release.cluster;\nbar.sync 0;\n"
#define MEET "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
#define RANK "mov.u32 %r7, %cluster_ctarank;\nsetp.eq.b32 %p6, %r7, 1;\nmapa.shared::cluster.u32 %r8, %smem, 1;\n"
#define EXPECT(bytes) "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%smem], " bytes ";\n"
#define GENERIC "cvt.u64.u32 %rd1, %smem;\ncvta.shared.u64 %rd1, %rd1;\n"

static void test_mbarriers(void **state)
{
	(void)state;
	static const row rows[] = {
		/* where one is */
		{GENERIC "setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.b64 [%rd1+8], 1;\nbar.sync 0;\n@%p1 "
			 "mbarrier.arrive.b64 _, "
			 "[%rd1+8];\nW:\nmbarrier.try_wait.parity.shared.b64 %p9, [%smem+8], 0;\n@!%p9 bra W;\n",
			NULL},
		{"setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.b64 [%out], 1;\n", ", which is not in shared memory"},
		{INIT "@%p1 mbarrier.arrive.shared.b64 _, [8];\n",
			"an mbarrier outside shared memory, of which the program has 4096 bytes: at offset -1016"},
		{INIT "@%p1 mbarrier.arrive.shared.b64 _, [%smem+4096];\n",
			"an mbarrier outside shared memory, of which the program has 4096 bytes: at offset 4096"},
		{INIT "@%p1 mbarrier.arrive.shared.b64 _, [%smem+4092];\n",
			"an mbarrier outside shared memory, of which the program has 4096 bytes: at offset 4092"},
		{INIT "@%p1 mbarrier.arrive.shared.b64 _, [%smem+4088];\n",
			"no mbarrier is at offset 4088 of shared memory"},
		{INIT MEET "mapa.shared::cluster.u32 %r8, %smem, 5;\n@%p1 mbarrier.arrive.shared::cluster.b64 _, "
			   "[%r8];\n" MEET,
			"shared memory of program 5 of the cluster is used, which has 2", 64, 2},
		/* who may use it */
		{INIT RANK "@%p6 bra END;\n@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, "
			   "[%r8];\nEND:\n" MEET,
			"used, which that may not have made yet", 64, 2},
		{INIT RANK MEET "@%p6 bra END;\n@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, "
				"[%r8];\nEND:\n" MEET,
			NULL, 64, 2},
		{INIT RANK MEET "@%p6 bra END;\nW:\nmbarrier.try_wait.parity.shared.b64 %p9, [%r8], 0;\n@!%p9 bra "
				"W;\nEND:\n" MEET,
			"", 64, 2},
		{"mad.lo.s32 %r1, %tid, 4, %smem;\nst.shared.b32 [%r1], 0;\n" INIT,
			"a race on shared memory at offset 4: it is written here and was written by thread 1"},
		{"mad.lo.s32 %r1, %tid, 4, %smem;\nst.shared.b32 [%r1], 0;\nbar.sync 0;\n" INIT, NULL},

		/* how many */
		{INIT "@%p1 mbarrier.arrive.shared.b64 _, [%smem], 0;\n",
			"0 arrivals at the mbarrier at offset 0 of shared memory, whose phase 0 waits for 1 of 1"},
		{"setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [%smem], 0;\n", "an mbarrier of 0 arrivals"},
		{"setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [%smem], 1048575;\n", NULL},
		{"setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [%smem], 1048576;\n",
			"an mbarrier of 1048576 arrivals"},
		{INIT "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%smem], 1048575;\n", NULL},
		{INIT "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%smem], 1048576;\n",
			"1048576 bytes are announced to an mbarrier"},
		{INIT "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%smem], 1048576;\n",
			"1048576 bytes are announced to an mbarrier"},
		{INIT "@%p1 mbarrier.arrive_drop.shared.b64 _, [%smem], 2;\n",
			"more arrivals are dropped than there are"},
		/* undefined operands */
		{INIT "@%p1 mbarrier.arrive.shared.b64 _, [%r60];\n", "an address is undefined"},
		{INIT "@%p1 mbarrier.arrive.shared.b64 _, [%smem], %r60;\n", "a count is undefined"},
		{INIT "mbarrier.try_wait.parity.shared.b64 %p9, [%r60], 0;\n", "an address is undefined"},
		{INIT "mbarrier.try_wait.parity.shared.b64 %p9, [%smem], %r60;\n",
			"the phase that is waited for is undefined"},
		{INIT "mbarrier.try_wait.parity.shared.b64 %p9, [%smem], 2;\n", "a wait for the parity 2"},
		{INIT "mbarrier.pending_count.b64 %r1, %rd60;\n@%p1 st.global.b32 [%out], %r1;\n",
			"an undefined value is stored"},
		{INIT "cp.async.mbarrier.arrive.noinc.shared.b64 [%r60];\n", "an address is undefined"},
		/* what cp.async tells */
		{INIT "cp.async.mbarrier.arrive.noinc.shared.b64 [%smem+8];\n",
			"no mbarrier is at offset 8 of shared memory"},
		{INIT "@%p1 cp.async.mbarrier.arrive.noinc.shared.b64 "
		      "[%smem];\nW:\nmbarrier.try_wait.parity.shared.b64 %p9, "
		      "[%smem], 0;\n@!%p9 bra W;\n",
			NULL},
		{INIT EXPECT("16") "@%p1 cp.async.mbarrier.arrive.noinc.shared.b64 [%smem];\n",
			"1 arrivals at the mbarrier at offset 0 of shared memory, whose phase 0 waits for 0 of 1"},
		{INIT RANK MEET GENERIC "mapa.u64 %rd2, %rd1, 1;\n@%p6 bra END;\nmbarrier.try_wait.parity.b64 %p9, "
					"[%rd2], 0;\nEND:\n" MEET,
			"a wait for an mbarrier of another program, which only that can do", 64, 2},
		/* lanes 0 to 15, then the others: each copy lands once */
		{"setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [%smem], 32;\n"
		 "fence.mbarrier_init.release.cluster;\nbar.sync 0;\nmad.lo.s32 %r1, %tid, 4, %smem;\n"
		 "mad.wide.u32 %rd1, %tid, 4, %in;\ncp.async.ca.shared.global [%r1+64], [%rd1], 4;\n"
		 "setp.lt.u32 %p2, %tid, 16;\n@%p2 cp.async.mbarrier.arrive.noinc.shared.b64 [%smem];\n"
		 "@!%p2 cp.async.mbarrier.arrive.noinc.shared.b64 [%smem];\nW:\n"
		 "mbarrier.try_wait.parity.shared.b64 %p9, [%smem], 0;\n@!%p9 bra W;\ncp.async.wait_all;\n"
		 "ld.shared.b32 %r2, [%r1+64];\nmad.wide.u32 %rd2, %tid, 4, %out;\nst.global.b32 [%rd2], %r2;\n",
			NULL, 32},
		/* without .noinc it is one more that is waited for */
		{INIT "@%p1 cp.async.mbarrier.arrive.shared.b64 [%smem];\n@%p1 mbarrier.arrive.shared.b64 _, "
		      "[%smem];\nW:\nmbarrier.try_wait.parity.shared.b64 %p9, [%smem], 0;\n@!%p9 bra W;\n",
			NULL},
		{INIT "@%p1 cp.async.mbarrier.arrive.shared.b64 [%smem];\nW:\nmbarrier.try_wait.parity.shared.b64 %p9, "
		      "[%smem], "
		      "0;\n@!%p9 bra W;\n",
			"whose phase 0 needs 1 more of 1 arrivals and 0 bytes"},
	};
	ROWS(rows, "");
}

/* ---- Bulk copies ---- */

#define LANDS "W:\nmbarrier.try_wait.parity.shared.b64 %p9, [%smem], 0;\n@!%p9 bra W;\n"
#define LOAD(to, from, bytes, bar)                                                                                     \
	"@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [" to "], [" from "], " bytes          \
	", [" bar "];\n"
#define MULTICAST(to, bar, programs)                                                                                   \
	"mov.b16 %h1, " programs ";\n@%p1 "                                                                            \
	"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [" to                    \
	"], [%in], 16, [" bar "], %h1;\n"
#define STORE(to, from, bytes) "@%p1 cp.async.bulk.global.shared::cta.bulk_group [" to "], [" from "], " bytes ";\n"
#define STORED "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group 0;\n"
#define FILLED "mad.lo.s32 %r3, %tid, 4, %smem;\nst.shared.b32 [%r3+1024], %tid;\nfence.proxy.async;\nbar.sync 0;\n"

static void test_copies(void **state)
{
	(void)state;
	static const row rows[] = {
		{INIT EXPECT("16") LOAD("%smem+1024", "%in", "16", "%smem") LANDS, NULL},
		{INIT EXPECT("16") LOAD("2048", "%in", "16", "1024") LANDS, NULL}, /* where it is, in numbers */
		{INIT "setp.eq.b32 %p1, %tid, 5;\n" STORE("%out", "%smem+1024", "%r60"),
			"an address, a size or a coordinate of a bulk copy is undefined"},
		/* places */
		{INIT EXPECT("16") LOAD("16", "%in", "16", "%smem") LANDS,
			"a bulk copy's destination of 16 bytes is outside shared memory, of which the program has 4096 "
			"bytes: at "
			"offset -1008"},
		{INIT EXPECT("16") LOAD("%smem+4096", "%in", "16", "%smem") LANDS,
			"a bulk copy's destination of 16 bytes is outside shared memory, of which the program has 4096 "
			"bytes: at "
			"offset 4096"},
		{INIT EXPECT("32") LOAD("%smem+4080", "%in", "32", "%smem") LANDS,
			"a bulk copy's destination of 32 bytes is outside shared memory, of which the program has 4096 "
			"bytes: at "
			"offset 4080"},
		{INIT EXPECT("16") LOAD("%smem+4080", "%in", "16", "%smem") LANDS, NULL},
		{INIT EXPECT("16") LOAD("%smem+1032", "%in", "16", "%smem") LANDS,
			"a bulk copy's destination is at offset 1032 of shared memory, which 16 does not divide"},
		{INIT EXPECT("16") LOAD("%smem+1024", "%in+8", "16", "%smem") LANDS,
			"a bulk copy of global memory at 0x"},
		{INIT EXPECT("16") LOAD("%smem+1024", "%out+131072", "16", "%smem") LANDS,
			"16 bytes are read outside out, which has 131072 bytes: at offset 131072"},
		{INIT EXPECT("16") LOAD("%smem+1024", "%in", "0", "%smem") LANDS,
			"a bulk copy of 0 bytes, which is no multiple of 16"},
		{INIT EXPECT("16") LOAD("%smem+1024", "%in", "24", "%smem") LANDS,
			"a bulk copy of 24 bytes, which is no multiple of 16"},
		{INIT EXPECT("16") LOAD("%smem+1024", "%in", "%r60", "%smem") LANDS,
			"an address, a size or a coordinate of a bulk copy is undefined"},
		{INIT RANK EXPECT("16") "mapa.shared::cluster.u32 %r8, %smem, 9;\n" LOAD("%r8", "%in", "16", "%smem")
				LANDS MEET,
			"shared memory of program 9 of the cluster is used, which has 2", 64, 2},
		/* mbarriers */
		{INIT EXPECT("16") LOAD("%smem+1024", "%in", "16", "%smem+8") LANDS,
			"no mbarrier is at offset 8 of shared memory"},
		{INIT RANK MEET EXPECT("16") LOAD("%r8+1024", "%in", "16", "%smem") LANDS MEET,
			"a bulk copy's destination and its mbarrier are in different programs of the cluster", 64, 2},
		{INIT MULTICAST("%smem+1024", "%smem", "0") LANDS,
			"a bulk copy to the programs 0x0 of a cluster that has 1"},
		{INIT MULTICAST("%smem+1024", "%smem", "2") LANDS,
			"a bulk copy to the programs 0x2 of a cluster that has 1"},
		{INIT EXPECT("16") MULTICAST("%smem+1024", "%smem", "1") LANDS, NULL},
		{INIT RANK MEET
			"@%p6 bra END;\n@%p1 mbarrier.init.shared.b64 [%smem+8], 1;\nfence.proxy.async;\n" MULTICAST(
				"%smem+1024", "%smem+8", "3") "END:\n" MEET,
			"no mbarrier is at offset 8 of the shared memory of program 1 of the cluster", 64, 2},
		{INIT EXPECT("16") "@%p1 mbarrier.inval.shared.b64 [%smem];\n" LOAD("%smem+1024", "%in", "16", "%smem"),
			"no mbarrier is at offset 0 of shared memory"},
		/* waits of those who began nothing, or something else */
		{INIT "cp.async.bulk.wait_group 0;\n", NULL},
		{INIT FILLED STORE("%out", "%smem+1024",
			 "16") "@!%p1 cp.async.bulk.commit_group;\n@!%p1 cp.async.bulk.wait_group 0;\n" STORED,
			NULL},
		{INIT FILLED STORE("%out", "%smem+1024",
			 "16") "@!%p1 cp.async.bulk.commit_group;\n@!%p1 cp.async.bulk.wait_group 0;\n",
			"the program has ended while a bulk copy from its shared memory is under way"},
		/* global memory that threads have written, of which nothing is known */
		{INIT "setp.eq.b32 %p2, %tid, 40;\n@%p2 st.global.b32 [%out], 7;\n" EXPECT("16")
				LOAD("%smem+1024", "%out", "16", "%smem") LANDS,
			"a race on out at offset 0"},
	};
	ROWS(rows, ".reg .b16 %h<4>;\n");
	/* it lands when its mbarrier is no more, or the program has ended */
	static const row late[] = {
		{INIT EXPECT("16") LOAD("%smem+1024", "%in", "16",
			 "%smem") "@%p1 mbarrier.inval.shared.b64 [%smem];\n@%p1 "
				  "mbarrier.init.shared.b64 [%smem+8], 1;\nW:\nmbarrier.try_wait.parity.shared.b64 "
				  "%p9, [%smem+8], 0;\n@!%p9 "
				  "bra W;\n",
			"a copy tells the mbarrier at offset 0 of shared memory, which is no more", 32},
		{INIT EXPECT("16") LOAD("%smem+1024", "%in", "16", "%smem"),
			"the program has ended while a bulk copy into its shared memory is under way"},
	};
	for (size_t i = 0; i < sizeof late / sizeof late[0]; i++) {
		hopper *h = made(&late[i], 1, "");
		check(h, i, __LINE__, late[i].says);
		free(h);
	}
}

/* From one program's shared memory to another's. */
static void test_copies_between_programs(void **state)
{
	(void)state;
#define SHARE(bytes)                                                                                                   \
	"@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r8+2048], [%smem+1024], " bytes \
	", [%r8];\n"
	static const row right = {INIT RANK FILLED MEET "@%p6 bra SECOND;\n" SHARE("256") MEET
		"bra.uni END;\nSECOND:\n" EXPECT("256") LANDS
		"ld.shared.b32 %r5, [%r3+2048];\nmad.wide.u32 %rd1, %tid, 4, %out;\nst.global.b32 "
		"[%rd1], %r5;\n" MEET "END:\n",
		NULL, 64, 2};
	for (uint64_t seed = 0; seed < 6; seed++) {
		hopper *h = made(&right, seed, "");
		check(h, 0, __LINE__, NULL);
		for (uint32_t i = 0; i < 64; i++) {
			uint32_t got;
			memcpy(&got, h->out + 4 * i, 4);
			assert_int_equal(got, i);
		}
		free(h);
	}
	static const row rows[] = {
		/* its source is changed while it reads, which it may do until its end */
		{INIT RANK FILLED MEET "@%p6 bra SECOND;\n" SHARE("256") "@%p1 st.shared.b32 [%smem+1024], 5;\n" MEET
									 "bra.uni END;\nSECOND:\n" EXPECT("256")
										 LANDS MEET "END:\n",
			"shared memory at offset 1024 is written while a wgmma or a bulk copy reads it", 64, 2},
		/* nobody waits for it */
		{INIT RANK FILLED MEET "@%p6 bra SECOND;\n" SHARE("256") MEET
			"bra.uni END;\nSECOND:\n" MEET
			"ld.shared.b32 %r5, [%r3+2048];\nst.global.b32 [%out], %r5;\nEND:\n",
			"a race on shared memory at offset 2048: it is read here and was written by a bulk copy at", 64,
			2},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		hopper *h = made(&rows[i], 1, "");
		check(h, i, __LINE__, rows[i].says);
		free(h);
	}
}

/* ---- Tensor maps ---- */

static tensor_map_request right_map(const hopper *h)
{
	tensor_map_request m = {.magic = TENSOR_MAP_MAGIC,
		.address = (uint64_t)(uintptr_t)h->in,
		.type = SCALAR_F32,
		.element_bytes = 4,
		.rank = 2};
	m.box[0] = 8, m.box[1] = 4;
	m.extent[0] = 64, m.extent[1] = 32;
	m.stride[0] = 4, m.stride[1] = 256;
	return m;
}

#define BOX                                                                                                            \
	INIT EXPECT("128") "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "    \
			   "[%smem+1024], [%m0, {8, "                                                                  \
			   "2}], [%smem];\n" LANDS                                                                     \
			   "mad.lo.s32 %r1, %tid, 4, %smem;\nsetp.lt.u32 %p2, %tid, 32;\n@%p2 ld.shared.b32 %r2, "     \
			   "[%r1+1024];\nmad.wide.u32 %rd1, %tid, 4, %out;\n@%p2 st.global.b32 [%rd1], %r2;\n"

static void test_maps(void **state)
{
	(void)state;
	static const row copy = {BOX, NULL};
	enum {
		RIGHT,
		SIZE,
		OTHER_SIZE,
		NO_TYPE,
		ROUNDS,
		SWIZZLE,
		ADDRESS,
		BOX_0,
		BOX_257,
		EXTENT_0,
		EXTENT_MANY,
		EXTENT_MOST,
		STRIDE,
		STRIDE_MANY,
		ROW,
		WIDE,
		LARGE,
		NOWHERE,
		BEHIND
	};
	static const char *const says[] = {
		[SIZE] = "is malformed",
		[OTHER_SIZE] = "is malformed",
		[NO_TYPE] = "is malformed",
		[ROUNDS] = "is malformed",
		[SWIZZLE] = "is malformed",
		[ADDRESS] = "has an address that 16 does not divide",
		[BOX_0] = "is malformed",
		[BOX_257] = "is malformed",
		[EXTENT_0] = "is malformed",
		[EXTENT_MANY] = "is malformed",
		[EXTENT_MOST] = "does not lie in a buffer",
		[STRIDE] = "has a stride that 16 does not divide, or too large a one",
		[STRIDE_MANY] = "has a stride that 16 does not divide, or too large a one",
		[ROW] = "has a box whose rows are no multiple of 16 bytes",
		[WIDE] = "has a box that is wider than its swizzle",
		[LARGE] = "has a box that is larger than shared memory",
		[NOWHERE] = "does not lie in a buffer",
		[BEHIND] = "does not lie in a buffer",
	};
	for (size_t i = RIGHT; i <= BEHIND; i++) {
		hopper *h = made(&copy, 0, "");
		tensor_map_request *m = &h->map[0];
		*m = right_map(h);
		switch (i) {
		case SIZE: m->element_bytes = 3; break;
		case OTHER_SIZE: m->element_bytes = 2; break;
		case NO_TYPE: m->type = SCALAR_COUNT; break;
		case ROUNDS: m->type = SCALAR_F16, m->element_bytes = 2, m->rounds = 1; break;
		case SWIZZLE: m->swizzle = 48; break;
		case ADDRESS: m->address += 8; break;
		case BOX_0: m->box[1] = 0; break;
		case BOX_257: m->box[0] = 257; break;
		case EXTENT_0: m->extent[1] = 0; break;
		case EXTENT_MANY: m->extent[1] = (UINT64_C(1) << 32) + 1; break;
		case EXTENT_MOST: m->extent[1] = UINT64_C(1) << 32; break;
		case STRIDE: m->stride[1] = 264; break;
		case STRIDE_MANY: m->stride[1] = UINT64_C(1) << 40; break;
		case ROW: m->box[0] = 6; break;
		case WIDE: m->box[0] = 16, m->swizzle = 32; break;
		case LARGE: m->box[0] = 64, m->box[1] = 17; break; /* 4352 bytes of 4096 */
		case NOWHERE: m->address = 4096; break;
		case BEHIND: m->extent[1] = 513; break; /* 131072 bytes are 512 rows */
		default: break;
		}
		check(h, i, __LINE__, says[i]);
		for (uint32_t k = 0; i == RIGHT && k < 32; k++)
			assert_memory_equal(h->out + 4 * k, h->in + (2 + k / 8) * 256 + (8 + k % 8) * 4, 4);
		free(h);
	}
}

/* A copy that rounds to tf32 on its way: to the nearest, ties away from 0, and what is no number stays as it is. */
static void test_rounding_map(void **state)
{
	(void)state;
	static const row copy = {BOX, NULL};
	static const uint32_t words[][2] = {{0x3f800000, 0x3f800000}, {0x3f800fff, 0x3f800000},
		{0x3f801000, 0x3f802000}, {0xbf801000, 0xbf802000}, {0xbf803fff, 0xbf804000}, {0x7f7fffff, 0x7f800000},
		{0x7f800000, 0x7f800000}, {0xff800000, 0xff800000}, {0x7fc01fff, 0x7fc00000}, {0x00001000, 0x00002000}};
	hopper *h = made(&copy, 0, "");
	h->map[0] = right_map(h);
	h->map[0].rounds = 1;
	for (uint32_t i = 0; i < 10; i++) memcpy(h->in + (2 + i / 8) * 256 + (8 + i % 8) * 4, &words[i][0], 4);
	check(h, 0, __LINE__, NULL);
	for (uint32_t i = 0; i < 10; i++) {
		uint32_t got;
		memcpy(&got, h->out + 4 * i, 4);
		if (got != words[i][1]) fail_msg("0x%x becomes 0x%x, not 0x%x", words[i][0], got, words[i][1]);
	}
	free(h);
}

/* Reductions into a tensor: of its elements' type, each by itself. */
static void test_reductions_by_maps(void **state)
{
	(void)state;
	static const struct {
		const char *operation, *says;
		scalar type;
		uint32_t was, with, wanted;
	} cases[] = {
		{"add", NULL, SCALAR_F32, 0x3f800000, 0x40000000, 0x40400000},
		{"add", NULL, SCALAR_U32, 0xffffffff, 3, 2},
		{"min", NULL, SCALAR_I32, 5, 0xfffffff0, 0xfffffff0},
		{"max", NULL, SCALAR_U32, 5, 0xfffffff0, 0xfffffff0},
		{"and", NULL, SCALAR_U32, 0xff00ff, 0x12345678, 0x340078},
		{"min", "a bulk reduction of a type that has none", SCALAR_F32, 0, 0, 0},
		{"add", "a bulk reduction of a type that has none", SCALAR_U8, 0, 0, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (uint64_t seed = 0; seed < 2; seed++) {
			static const row nothing = {"", NULL};
			hopper *h = made(
				&nothing, seed, INIT "setp.lt.u32 %p2, %tid, 32;\nmad.lo.s32 %r1, %tid, 4, %smem;\n");
			h->map[0] = right_map(h);
			h->map[0].address = (uint64_t)(uintptr_t)h->out;
			h->map[0].type = (uint8_t)cases[i].type;
			if (cases[i].type == SCALAR_U8) h->map[0].element_bytes = 1, h->map[0].box[0] = 16;
			for (uint32_t k = 0; k < 4096; k += 4) memcpy(h->out + k, &cases[i].was, 4);
			hopper_add(h, "@%%p2 st.shared.b32 [%%r1+1024], %u;\nfence.proxy.async;\nbar.sync 0;\n",
				cases[i].with);
			hopper_add(h,
				"@%%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.%s.tile.bulk_group [%%m0, "
				"{%d, 2}], "
				"[%%smem+1024];\n%s",
				cases[i].operation, cases[i].type == SCALAR_U8 ? 48 : 60, STORED);
			check(h, i, __LINE__, cases[i].says);
			/* only what lies inside: 4 of each row's 8 */
			for (uint32_t k = 0; !cases[i].says && k < 1024; k++) {
				bool inside = k / 64 >= 2 && k / 64 < 6 && k % 64 >= 60;
				uint32_t got;
				memcpy(&got, h->out + 4 * k, 4);
				assert_int_equal(got, inside ? cases[i].wanted : cases[i].was);
			}
			free(h);
		}
}

/* Whose shared memory an address is of. */
static void test_owners(void **state)
{
	(void)state;
	static const row rows[] = {
		{RANK MEET "@%p6 bra END;\nld.shared::cluster.b32 %r1, [%r8+2];\nEND:\n" MEET,
			"\"space\": \"shared\", \"buffer\": null, \"owner\": [1, 0, 0], \"size\": 4096, \"offset\": 2, "
			"\"bytes\": 4",
			64, 2},
		{RANK MEET "@!%p6 bra END;\nld.shared::cluster.b32 %r1, [%r8+2];\nEND:\n" MEET,
			"\"hint\": \"vector accesses need addresses that their "
			"size divides; a "
			"promise of alignment may be wrong\", \"space\": \"shared\", \"buffer\": null, \"owner\": [1, "
			"0, 0]",
			64, 2},
		{RANK MEET "@!%p6 bra END;\nld.shared.b32 %r1, [1026];\nEND:\n" MEET,
			"\"owner\": [1, 0, 0], \"size\": 4096, \"offset\": 2", 64, 2},
		{RANK MEET "mapa.shared::cluster.u32 %r8, %smem, 7;\n@!%p6 bra END;\nld.shared::cluster.b32 %r1, "
			   "[%r8+2];\nEND:\n" MEET,
			"which 4 does not divide", 64, 2},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		hopper *h = made(&rows[i], 0, "");
		h->json = true;
		check(h, i, __LINE__, rows[i].says);
		free(h);
	}
}

/* ---- The cluster's barrier, and ends ---- */

static void test_ends(void **state)
{
	(void)state;
#define HALVES_MEET "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
#define LOW "and.b32 %r1, %tid, 31;\nsetp.lt.u32 %p2, %r1, 16;\n"
	static const row rows[] = {
		/* half of a warp arrives, then the other half ends: it has arrived for good */
		{LOW "@!%p2 bra REST;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nbra.uni "
		     "END;\nREST:\nnanosleep.u32 100;\nret;\nEND:\n",
			NULL, 64, 2},
		{LOW "@%p2 bra FIRST;\nret;\nFIRST:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n", NULL, 64, 2},
		{LOW "@%p2 bra "
		     "FIRST;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\nFIRST:\nbarrier.cluster.arrive;\n"
		     "barrier.cluster.wait;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n",
			NULL, 64, 2},
		{LOW "@!%p2 bra REST;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nbarrier.cluster.arrive;\n"
		     "barrier.cluster.wait;\nbra.uni "
		     "END;\nREST:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\nEND:\n",
			NULL, 64, 2},
		{LOW "@!%p2 bra "
		     "REST;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\nREST:\nbarrier.cluster.arrive;\n"
		     "barrier.cluster.wait;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n",
			NULL, 64, 2},
		/* one half is a barrier ahead of the other */
		{LOW "@%p2 bra FIRST;\n" HALVES_MEET HALVES_MEET "bra.uni END;\nFIRST:\n" HALVES_MEET HALVES_MEET
		     "END:\n" MEET,
			NULL, 64, 2},
		{LOW "@%p2 bra FIRST;\n" HALVES_MEET HALVES_MEET "bra.uni END;\nFIRST:\n" HALVES_MEET "END:\n",
			"4 of 4 warps wait for ever at the cluster's barrier, and 0 have ended", 64, 2},
		/* one half asks for an mbarrier at which the other, which has arrived, does not */
		{INIT LOW "@!%p2 bra REST;\n" LANDS
			  "bra.uni END;\nREST:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nEND:\n",
			"whose phase 0 needs 1 more of 1 arrivals and 0 bytes (last arrival: nobody)", 64, 2},
		{"setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [1024], 1;\nbar.sync 0;\nW:\n"
		 "mbarrier.try_wait.parity.shared.b64 %p9, [1024], 0;\n@!%p9 bra W;\n",
			"2 of 2 warps wait for ever; this one for the mbarrier at offset 0 of shared memory, whose "
			"phase 0 needs 1 "
			"more of 1 arrivals and 0 bytes (last arrival: nobody)"},
		/* aligned ones are for all */
		{LOW "barrier.cluster.arrive;\n@%p2 barrier.cluster.wait.aligned;\n",
			"the cluster's barrier is reached by some threads of a warp only: lanes 0x0000ffff of "
			"0xffffffff",
			64, 2},
		/* an mbarrier that its program has ended stops nobody from ending */
		{INIT RANK MEET
			"@%p6 bra SECOND;\n@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];\nbra.uni "
			"END;\nSECOND:\n" LANDS "bar.sync 0;\n@%p1 mbarrier.inval.shared.b64 [%smem];\nEND:\n",
			NULL, 64, 2},
		{INIT RANK MEET
			"@%p6 bra SECOND;\n@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];\nbra.uni "
			"END;\nSECOND:\nnanosleep.u32 100;\nEND:\n",
			"", 64, 2},
		/* paths that never meet again */
		{"mad.wide.u32 %rd1, %tid, 4, %out;\nsetp.lt.u32 %p2, %tid, 9;\n@%p2 bra FIRST;\nst.global.b32 [%rd1], "
		 "1;\nret;\nFIRST:\nst.global.b32 [%rd1], 2;\nret;\n",
			NULL},
		{"and.b32 %r1, %tid, 1;\nLIST: .branchtargets FIRST, SECOND;\nbrx.idx %r1, "
		 "LIST;\nFIRST:\nret;\nSECOND:\nret;\n",
			NULL},
		{"and.b32 %r1, %tid, 1;\nsetp.ne.u32 %p2, %tid, 5;\nLIST: .branchtargets FIRST, SECOND;\n@%p2 brx.idx "
		 "%r1, "
		 "LIST;\nret;\nFIRST:\nret;\nSECOND:\nret;\n",
			NULL},
		/* a comparison of which only the opposite is wanted */
		{"setp.lt.u32 _|%p2, %tid, 5;\n@%p2 ret;\nsetp.ge.u32 %p3, %tid, 5;\n@%p3 trap;\n", NULL},
		{"setp.eq.u32 %p2, %tid, %r60;\n@%p2 add.s32 %r1, %r2, %r3;\n",
			"what a thread does is decided by an undefined value"},
		/* a copy that lands where others have read meanwhile, behind a barrier that says nothing of its end */
		{"mad.lo.s32 %r1, %tid, 4, %smem;\nand.b32 %r2, %tid, 31;\nmad.lo.s32 %r2, %r2, 4, "
		 "%smem;\nmad.wide.u32 %rd1, %tid, 4, "
		 "%in;\nsetp.lt.u32 %p2, %tid, 32;\n@%p2 cp.async.ca.shared.global [%r1], [%rd1], 4;\nbar.sync "
		 "0;\n@!%p2 "
		 "ld.shared.b32 %r3, [%r2];\n@%p2 cp.async.wait_all;\n",
			"a race on shared memory at offset 0: it is"},
		{INIT "mad.lo.s32 %r1, %tid, 4, %smem;\nand.b32 %r2, %tid, 31;\nmad.lo.s32 %r2, %r2, 4, "
		      "%smem;\nmad.wide.u32 %rd1, "
		      "%tid, 4, %in;\nsetp.lt.u32 %p2, %tid, 32;\n@%p2 cp.async.ca.shared.global [%r1+1024], [%rd1], "
		      "4;\nbar.sync "
		      "0;\n@!%p2 ld.shared.b32 %r3, [%r2+1024];\n@%p1 cp.async.mbarrier.arrive.noinc.shared.b64 "
		      "[%smem];\n",
			"a race on shared memory at offset 1024: it is"},
	};
	ROWS(rows, "");
	/* a warp whose turn ends on the way from one question to the next still waits for what it asked for */
	const row asks = {INIT "W:\n", "2 of 2 warps wait for ever; this one for the mbarrier at offset 0 of shared "
				       "memory, whose phase 0 needs 1 more of 1 "
				       "arrivals and 0 bytes (last arrival: nobody)"};
	for (uint64_t seed = 0; seed < 12; seed++) {
		hopper *h = made(&asks, seed, "");
		for (int i = 0; i < 100; i++) hopper_add(h, "add.s32 %%r1, %%tid, %d;\n", i);
		hopper_add(h, "mbarrier.try_wait.parity.shared.b64 %%p9, [%%smem], 0;\n@!%%p9 bra W;\n");
		check(h, 0, __LINE__, asks.says);
		free(h);
	}
	/* or, where the register that said it is in other use just then, for something */
	const row uses = {INIT
		"W:\nmov.b32 %r2, %smem;\nmbarrier.try_wait.parity.shared.b64 %p9, [%r2], 0;\nmov.b32 %r2, 0;\n",
		"2 of 2 warps wait for ever"};
	for (uint64_t seed = 0; seed < 12; seed++) {
		hopper *h = made(&uses, seed, "");
		for (int i = 0; i < 100; i++) hopper_add(h, "add.s32 %%r1, %%tid, %d;\n", i);
		hopper_add(h, "@!%%p9 bra W;\n");
		check(h, 0, __LINE__, uses.says);
		free(h);
	}
	const row loop = {"FOREVER:\nadd.s32 %r1, %tid, 1;\nbra.uni FOREVER;\n",
		"the program has not ended after 5000 instructions", 64, 2};
	hopper *h = made(&loop, 0, "");
	h->steps = 5000;
	check(h, 0, __LINE__, loop.says);
	free(h);
}

/* Which program wrote is said by its place in a grid of three dimensions. */
static void test_grids(void **state)
{
	(void)state;
	/* all programs but one write a word of their own; the last one that of another */
	const row grid = {"mov.u32 %r1, %ctaid.y;\nmov.u32 %r2, %ctaid.z;\nmad.lo.s32 %r3, %r2, 2, %r1;\nmad.lo.s32 "
			  "%r3, %r3, 3, %cta;\n"
			  "setp.eq.u32 %p2, %r3, 11;\nselp.b32 %r3, 8, %r3, %p2;\nmad.wide.u32 %rd1, %r3, 4, "
			  "%out;\nsetp.eq.u32 %p1, "
			  "%tid, 0;\n@%p1 st.global.b32 [%rd1], %r3;\n",
		"a race on out at offset 32: it is written here and was written by program (2, 0, 1) at", 32, 1};
	hopper *h = made(&grid, 0, "");
	h->programs = 3;
	h->rows = 2;
	h->layers = 2;
	check(h, 0, __LINE__, grid.says);
	assert_non_null(strstr(h->problem, "in kernel k, program (2, 1, 1), thread 0"));
	free(h);
}

/* Bytes that were written one by one by different instructions are put together again only where one instruction's
 * neighbouring lanes wrote each its part. */
static void test_bytes_put_together(void **state)
{
	(void)state;
#define BYTE(lane, at) "setp.eq.u32 %p3, %tid, " lane ";\n@%p3 st.shared.b8 [%smem+" at "], %h1;\n"
#define EVEN                                                                                                           \
	"shl.b32 %r1, %tid, 1;\nadd.s32 %r1, %r1, %smem;\nsetp.lt.u32 %p3, %tid, 2;\n@%p3 st.shared.b8 [%r1], %h1;\n"
#define READS(lane, at) "setp.eq.u32 %p3, %tid, " lane ";\n@%p3 ld.shared.b8 %h2, [%smem+" at "];\n"
#define BEFORE ".reg .b16 %h<4>;\nmov.b16 %h1, 7;\n"
#define OWN_BYTE "@%p3 ld.shared.u8 %h2, [%r1];\n"
#define THREE "add.s32 %r1, %tid, %smem;\nsetp.lt.u32 %p3, %tid, 3;\n@%p3 st.shared.b8 [%r1], %h1;\n"
#define OWN_HALF "@%p3 ld.shared.b16 %h2, [%r1];\n"
#define SUMS                                                                                                           \
	"setp.eq.u32 %p3, %tid, 0;\n@%p3 st.shared.b32 [%smem], 0;\nbar.warp.sync -1;\nshl.b32 %r1, %tid, "            \
	"1;\nadd.s32 %r1, %r1, "                                                                                       \
	"%smem;\nsetp.lt.u32 %p3, %tid, 2;\n@%p3 red.shared.add.noftz.f16 [%r1], %h1;\n"
#define EVERY_SECOND                                                                                                   \
	"shr.u32 %r1, %tid, 1;\nadd.s32 %r1, %r1, %smem;\nand.b32 %r2, %tid, 25;\nsetp.eq.u32 %p3, %r2, 0;\n@%p3 "     \
	"st.shared.b8 "                                                                                                \
	"[%r1], %h1;\n"
	static const row rows[] = {
		{BYTE("9", "1") EVEN BYTE("20", "3") READS("9", "1") READS("20", "3") READS("0", "0") READS("1", "2"),
			NULL, 32, 1},
		{BYTE("9", "1") EVEN BYTE("20", "3") READS("0", "1"),
			"a race on shared memory at offset 1: it is read here and was written by thread 9", 32, 1},
		{BYTE("9", "1") EVEN BYTE("20", "3") READS("1", "3"),
			"a race on shared memory at offset 3: it is read here and was written by thread 20", 32, 1},
		{BYTE("9", "1") EVEN BYTE("20", "3") READS("9", "2"),
			"a race on shared memory at offset 2: it is read here and was written by thread 1", 32, 1},
		/* lanes 2, 3 write a half each, lane 9 one byte of the first: its other byte is still lane 2's */
		{"shl.b32 %r1, %tid, 1;\nadd.s32 %r1, %r1, %smem;\nsetp.lt.u32 %p3, %tid, 2;\n@%p3 st.shared.b16 "
		 "[%r1], %h1;\n"
		 "bar.warp.sync -1;\n" BYTE("9", "1") READS("9", "1") READS("9", "0") READS("5", "2"),
			NULL, 32, 1},
		{"shl.b32 %r1, %tid, 1;\nadd.s32 %r1, %r1, %smem;\nsetp.lt.u32 %p3, %tid, 2;\n@%p3 st.shared.b16 "
		 "[%r1], %h1;\n"
		 "bar.warp.sync -1;\n" BYTE("9", "1") READS("8", "1"),
			"a race on shared memory at offset 1: it is read here and was written by thread 9", 32, 1},
		/* parts of a word by neighbouring lanes of one instruction, which is all that is kept of them */
		{THREE OWN_BYTE, NULL, 32, 1},
		{THREE READS("0", "2"),
			"a race on shared memory at offset 2: it is read here and was written by thread 2", 32, 1},
		{SUMS OWN_HALF, NULL, 32, 1},
		{SUMS READS("0", "2"),
			"a race on shared memory at offset 2: it is read here and was written by thread 1", 32, 1},
		{SUMS READS("2", "1"),
			"a race on shared memory at offset 1: it is read here and was written by thread 0", 32, 1},
		/* the same by every second lane */
		{EVERY_SECOND "@%p3 ld.shared.u8 %h2, [%r1];\n", NULL, 32, 1},
		{EVERY_SECOND READS("1", "1"),
			"a race on shared memory at offset 1: it is read here and was written by thread 2", 32, 1},
		/* a read of one byte, forgotten by a write of another byte?  No. */
		{BYTE("3", "0") BYTE("4", "1") "bar.warp.sync -1;\n" READS("5", "0") READS("6", "1") BYTE("6", "1")
				BYTE("7", "0"),
			"a race on shared memory at offset 0: it is written here and was read by thread 5", 32, 1},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) check_rows(&rows[i], 1, BEFORE, __LINE__);
}

/* A kernel that waits for the one before it touches what that one may touch behind the wait, thread by thread; its own
 * shared memory and constants at any place. */
static void test_waits_for_a_kernel(void **state)
{
	(void)state;
#define GRID_WAIT "griddepcontrol.wait;\n"
#define BY_0(action) "setp.eq.u32 %p1, %tid, 0;\n@%p1 " action ";\n"
	static const row rows[] = {
		{BY_0("st.shared.u32 [%smem], 1") GRID_WAIT
			"griddepcontrol.launch_dependents;\nld.global.u32 %r1, [%in];\n" BY_0(
				"st.global.u32 [%out], 1"),
			NULL, 32, 1},
		{"griddepcontrol.launch_dependents;\nld.global.u32 %r1, [%in];\n", NULL, 32, 1},
		{"ld.global.u32 %r1, [%in];\n" GRID_WAIT,
			"are read by a thread that has not waited for the kernel before", 32, 1},
		{"st.global.u32 [%out], 1;\n" GRID_WAIT, "are written by a thread that has not waited", 32, 1},
		{"red.global.add.u32 [%out], 1;\n" GRID_WAIT, "by a thread that has not waited", 32, 1},
		{BY_0("griddepcontrol.wait") "ld.global.u32 %r1, [%in];\n", "by a thread that has not waited", 32, 1},
		{BY_0("griddepcontrol.wait") BY_0("ld.global.u32 %r1, [%in]"), NULL, 32, 1},
	};
	ROWS(rows, "");
	/* a copy by a tensor map touches what the map is of */
	static const row maps[] = {{GRID_WAIT BOX, NULL},
		{BOX GRID_WAIT, "are read by a thread that has not waited for the kernel before"}};
	for (size_t i = 0; i < 2; i++) {
		hopper *h = made(&maps[i], 0, "");
		h->map[0] = right_map(h);
		check(h, i, __LINE__, maps[i].says);
		free(h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registers_of_products),
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_undefined_factors),
		cmocka_unit_test(test_special_sums),
		cmocka_unit_test(test_mbarriers),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_copies_between_programs),
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_rounding_map),
		cmocka_unit_test(test_reductions_by_maps),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_grids),
		cmocka_unit_test(test_bytes_put_together),
		cmocka_unit_test(test_waits_for_a_kernel),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
