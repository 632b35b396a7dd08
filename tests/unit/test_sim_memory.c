/* The simulator when memory or threads run out: each allocation fails in turn, once and from then on, while PTX is read
 * and while kernels run that use all that it keeps.  The answer is a sentence about memory, never a wrong result, and
 * all that was taken is released.  With fewer threads than it asks for it takes longer, that is all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "faulty_malloc.h"
#include "sim_fixture.h"
#include "sim_hopper.h"
#include "sim_instructions.h"
#include "runtime/sim/sim.h"

#include <cmocka.h>

enum { MOST_CALLS = 4000 };

static void arm(long fail_at, bool forever)
{
	faulty.calls = 0;
	faulty.fail_at = fail_at;
	faulty.forever = forever;
	faulty.armed = true;
}

/* What the list of instructions lacks: it needs more than one statement. */
static const char *const statements[] = {
	"LIST: .branchtargets HERE, HERE;\nbrx.idx %r1, LIST",
	"//@ check.part.b8 %rd1;\natom.global.or.b32 %r1, [%rd1], %r2",
	"//@ check.divisor.b32.u32 %r1, %r2",
	"//@ check.gather.b16.s64 %h1, %rd1, 64",
	("{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %rd1; st.param.b64 [b], %rd2; call.uni (c), "
	 "vprintf, (a, b); ld.param.b32 %r8, [c]; }\nmov.b32 %r1, %r2"),
	"@%p1 bra HERE",
	"mov.b64 %rd1, k_param_0; ld.param.b64 %rd2, [%rd1]",
	".local .align 8 .b8 depot[16]; st.local.b32 [depot], %r1",
};

/* Text with so many moves in front of an instruction. */
static char *padded(const char *instruction, unsigned moves)
{
	char body[4096];
	size_t n = (size_t)snprintf(body, sizeof body, "HERE:\n");
	for (unsigned i = 0; i < moves; i++) n += (size_t)snprintf(body + n, sizeof body - n, "mov.b32 %%r0, %%r1;\n");
	snprintf(body + n, sizeof body - n, "%s;\n", instruction);
	sim_case c = {.body = body, .declarations = SIM_DECLARATIONS};
	return sim_text(&c);
}

/* The place of its own first instruction in the code. */
static unsigned place_of(const char *instruction)
{
	char *text = padded("add.s32 %r1, %r1, %r1", 0), error[640] = "";
	sim_code *code = NULL;
	if (!sim_code_parse(text, "k", &code, error, sizeof error)) fail_msg("%s: %s", instruction, error);
	unsigned n = (unsigned)code->n - 2; /* the ret as well */
	sim_code_free(code);
	free(text);
	return n;
}

/* No sentence: it is the caller's (sim.h). */
static void read_short(const char *instruction, unsigned moves)
{
	char error[640], *text = padded(instruction, moves);
	long k = 1, live = faulty.live;
	for (bool done = false; !done; k++) {
		sim_code *code = NULL;
		error[0] = 0;
		arm(k, k % 2);
		bool good = sim_code_parse(text, "k", &code, error, sizeof error);
		faulty.armed = false;
		done = faulty.calls < k;
		if (good != (code != NULL) || good != done)
			fail_msg("%s, allocation %ld of %ld: %s", instruction, k, faulty.calls, error);
		if (!good && error[0] && !strstr(error, "memory")) fail_msg("%s: %s", instruction, error);
		sim_code_free(code);
		if (faulty.live != live) fail_msg("%s, allocation %ld: a leak", instruction, k);
	}
	assert_in_range(k, 2, MOST_CALLS);
	free(text);
}

/* Each instruction alone, so that all that grows is at its beginning; and where the code has to grow for it, or for
 * what else it is made of. */
static void test_reading(void **state)
{
	(void)state;
	if (!FAULTY_MALLOC) skip();
	enum {
		ALONE = sizeof instructions / sizeof instructions[0],
		ALL = ALONE + sizeof statements / sizeof *statements
	};
	for (unsigned i = 0; i < ALL; i++) {
		const char *instruction = i < ALONE ? instructions[i] : statements[i - ALONE];
		unsigned room = (64 - place_of(instruction) % 32) % 32;
		read_short(instruction, 0);
		read_short(instruction, room);
		read_short(instruction, room ? room - 1 : 31);
	}
}

/* Whole launches; `right`: of a good one. */
static void run_out(const char *what, bool (*run)(const char **problem))
{
	long k = 1;
	for (bool done = false; !done; k++) {
		const char *problem = "";
		arm(k, k % 2);
		bool good = run(&problem);
		faulty.armed = false;
		done = faulty.calls < k;
		if (done && !good) fail_msg("%s: %s", what, problem);
		bool fixture = k == 1; /* its own text */
		if (!good && !fixture && !strstr(problem, "memory"))
			fail_msg("%s, allocation %ld: %s", what, k, problem);
	}
	assert_in_range(k, 2, MOST_CALLS);
}

static bool shared_and_atomics(const char **problem)
{
	sim_case c = {.threads = 64,
		.programs = 2,
		.n = 3,
		.options = {.counters = 1},
		.body = ".shared .align 4 .b32 table[64];\n.local .align 8 .b8 depot[16];\n"
			"mov.b32 %r1, table;\nshl.b32 %r2, %tid, 2;\nadd.u32 %r1, %r1, %r2;\nst.shared.b32 [%r1], "
			"%tid;\n"
			"bar.sync 0;\nxor.b32 %r3, %r2, 4;\nmov.b32 %r4, table;\nadd.u32 %r4, %r4, %r3;\n"
			"ld.shared.b32 %r5, [%r4];\nst.local.b32 [depot], %r5;\nld.local.b32 %r6, [depot];\n"
			"cvt.u64.u32 %rd1, %r2;\nadd.u64 %rd2, %out, %rd1;\natom.global.add.u32 %r7, [%rd2], %r6;\n"
			"setp.lt.u32 %p1, %tid, 7;\n@%p1 bra LESS;\nadd.u32 %r8, %r5, 1;\n"
			"LESS:\nshfl.sync.bfly.b32 %r8, %r5, 1, 31, -1;\nvote.sync.ballot.b32 %r9, %p1, -1;\n"};
	for (unsigned i = 0; i < 256; i++) c.out[i] = 5;
	blk_status s = sim_try(&c);
	*problem = s ? blk_error() : "";
	if (!s)
		for (unsigned i = 0; i < 64; i++) assert_int_equal(c.out[i], 5 + 2 * (i ^ 1));
	return !s;
}

static bool copies_ahead(const char **problem)
{
	sim_case c = {.threads = 32,
		.shared = 1024,
		.body = "mov.b32 %r1, blk_shared;\nmad.lo.u32 %r2, %tid, 4, %r1;\nmul.wide.u32 %rd1, %tid, 4;\n"
			"add.u64 %rd2, %in, %rd1;\ncp.async.ca.shared.global [%r2], [%rd2], "
			"4;\ncp.async.commit_group;\n"
			"cp.async.wait_group 0;\nbar.sync 0;\nld.shared.b32 %r3, [%r2];\nadd.u64 %rd3, %out, %rd1;\n"
			"st.global.b32 [%rd3], %r3;\n"};
	for (unsigned i = 0; i < 64; i++) c.in[i] = 3 * i + 1;
	blk_status s = sim_try(&c);
	*problem = s ? blk_error() : "";
	if (!s)
		for (unsigned i = 0; i < 32; i++) assert_int_equal(c.out[i], 3 * i + 1);
	return !s;
}

static hopper *made; /* its text is made before memory is short */

static bool run_made(const char **problem)
{
	bool good = hopper_run(made);
	*problem = made->problem[0] ? made->problem : "no sentence, which says memory";
	return good;
}

static void run_out_of(const char *what, hopper *h)
{
	made = h;
	run_out(what, run_made);
	free(h);
}

static hopper *small(uint32_t threads, uint32_t shared)
{
	hopper *h = hopper_new();
	h->threads = threads;
	h->shared = shared;
	return h;
}

static hopper *bulk_and_barriers(void)
{
	hopper *h = small(64, 65536);
	h->cluster = 2;
	hopper_add(h,
		"setp.eq.b32 %%p1, %%tid, 0;\n@%%p1 mbarrier.init.shared.b64 [%%smem], 1;\n"
		"fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n"
		"@%%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%%smem], 512;\n"
		"@%%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%smem+1024], [%%in+32], "
		"512, "
		"[%%smem];\nWAIT:\nmbarrier.try_wait.parity.shared.b64 %%p9, [%%smem], 0;\n@!%%p9 bra WAIT;\n"
		"mapa.shared::cluster.u32 %%r5, %%smem, 0;\nld.shared::cluster.b32 %%r6, [%%r5+1024];\n"
		"barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n");
	return h;
}

/* More of each than there is room for at first: copies in, copies out, mbarriers. */
static hopper *many_copies(uint64_t seed)
{
	enum { MANY = 20 };
	hopper *h = small(32, 4096);
	h->seed = seed;
	hopper_add(h, "setp.eq.b32 %%p1, %%tid, 0;\n@!%%p1 bra END;\n");
	for (int i = 0; i < MANY; i++) hopper_add(h, "mbarrier.init.shared.b64 [%%smem+%d], 1;\n", 8 * i);
	hopper_add(h, "fence.proxy.async;\n");
	for (int i = 0; i < MANY; i++)
		hopper_add(h,
			"mbarrier.arrive.expect_tx.shared.b64 _, [%%smem+%d], 16;\n"
			"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%smem+%d], [%%in+%d], 16, "
			"[%%smem+%d];\n",
			8 * i, 1024 + 16 * i, 16 * i, 8 * i);
	for (int i = 0; i < MANY; i++)
		hopper_add(h,
			"W%d:\nmbarrier.try_wait.parity.shared.b64 %%p9, [%%smem+%d], 0;\n@!%%p9 bra W%d;\n"
			"cp.async.bulk.global.shared::cta.bulk_group [%%out+%d], [%%smem+%d], 16;\n",
			i, 8 * i, i, 16 * i, 1024 + 16 * i);
	hopper_add(h, "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nEND:\n");
	for (uint32_t i = 0; i < 16 * MANY; i++) h->in[i] = (uint8_t)(3 * i + 1);
	return h;
}

/* More products than there is room for at first. */
static hopper *many_products(void)
{
	hopper *h = small(128, 4096);
	h->image = 4096;
	hopper_add(h, "shr.u32 %%r40, %%smem, 4;\ncvt.u64.u32 %%rd40, %%r40;\nor.b64 %%rd40, %%rd40, 0x800080000;\n"
		      "wgmma.fence.sync.aligned;\n");
	for (int i = 0; i < 20; i++)
		hopper_add(h, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%%f0, %%f1, %%f2, %%f3}, %%rd40, "
			      "%%rd40, 1, 1, 1, 0, 0;\n");
	hopper_add(h, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
	char *first = strstr(h->body, "%rd40, 1, 1");
	first[7] = '0'; /* overwrites the sums */
	return h;
}

/* Bytes of one word by different threads, which are read and written; a release; and a lane more a level. */
static hopper *bytes_and_levels(void)
{
	hopper *h = small(64, 4096);
	hopper_add(h, ".reg .b16 %%h<4>;\ncvt.u16.u32 %%h1, %%tid;\nand.b32 %%r1, %%tid, 31;\nsetp.lt.u32 %%p1, %%tid, "
		      "32;\n");
	for (int i = 0; i < 4; i++) {
		hopper_add(h, "setp.eq.b32 %%p2, %%tid, %d;\n@%%p2 st.shared.b8 [%%smem+%d], %%h1;\n", 7 * i, i);
		hopper_add(h, "@%%p2 st.global.b8 [%%out+%d], %%h1;\n@%%p2 ld.global.b8 %%h2, [%%out+%d];\n", i, i);
	}
	hopper_add(h, "bar.sync 0;\n");
	for (int i = 0; i < 4; i++)
		hopper_add(h, "setp.eq.b32 %%p2, %%tid, %d;\n@%%p2 ld.shared.b8 %%h2, [%%smem+%d];\n", 3 * i, i);
	hopper_add(h, "fence.acq_rel.gpu;\nmov.b32 %%r3, 0;\n");
	for (int i = 0; i < 24; i++)
		hopper_add(h, "setp.gt.u32 %%p2, %%r1, %d;\n@!%%p2 bra L%d;\nadd.s32 %%r3, %%r3, 1;\n", i, i);
	for (int i = 24; i-- > 0;) hopper_add(h, "L%d:\nadd.s32 %%r3, %%r3, 100;\n", i);
	hopper_add(h, "mad.wide.u32 %%rd1, %%tid, 4, %%out;\nst.global.b32 [%%rd1+1024], %%r3;\n");
	return h;
}

/* Causes of undefined values, in registers and in shared memory. */
static hopper *causes(void)
{
	hopper *h = small(32, 4096);
	hopper_add(h, "mad.lo.s32 %%r1, %%tid, 4, %%smem;\nmov.b32 %%r2, 8;\nmov.b32 %%r3, 0;\n"
		      "//@ check.divisor.b32.u32 %%r2, %%r3;\nst.shared.b32 [%%r1], %%r2;\n"
		      "ld.shared.b32 %%r4, [%%r1];\nmov.b32 %%r4, 3;\n"
		      "mad.wide.u32 %%rd1, %%tid, 4, %%out;\nst.global.b32 [%%rd1], %%r4;\n");
	return h;
}

static void test_running(void **state)
{
	(void)state;
	if (!FAULTY_MALLOC) skip();
	run_out("shared and atomics", shared_and_atomics);
	run_out("copies ahead", copies_ahead);
	run_out_of("bulk copies in a cluster", bulk_and_barriers());
	run_out_of("many products", many_products());
	run_out_of("causes", causes());
	for (uint64_t seed = 0; seed < 2; seed++) {
		hopper *h = many_copies(seed);
		made = h;
		run_out("many copies", run_made);
		assert_memory_equal(h->out, h->in, 320);
		free(h);
	}
	made = bytes_and_levels();
	run_out("bytes and levels", run_made);
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t got, lane = i % 32, deep = lane < 24 ? lane : 24;
		memcpy(&got, made->out + 1024 + 4 * i, 4);
		/* a lane leaves at label `lane`, and passes that and all with smaller numbers */
		assert_int_equal(got, deep + 100 * (lane < 24 ? lane + 1 : 24));
	}
	free(made);
}

/* ---- Threads ---- */

static struct {
	long calls, fail_at;
	bool forever;
} threads;

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*start)(void *), void *argument)
{
	threads.calls++;
	if (threads.fail_at &&
		(threads.calls == threads.fail_at || (threads.forever && threads.calls > threads.fail_at)))
		return EAGAIN;
	return __real_pthread_create(t, a, start, argument);
}

/* As many threads as can be had simulate all programs, though each waits for the one before it. */
static void test_fewer_threads(void **state)
{
	(void)state;
	setenv("BLK_CPU_THREADS", "4", 1);
	for (long k = 0; k <= 3; k++)
		for (int forever = 0; forever < 2; forever++) {
			sim_case c = {.programs = 60,
				.body = "setp.ne.b32 %p1, %tid, 0;\n@%p1 bra DONE;\nmov.b32 %r5, 0;\nsetp.eq.b32 %p3, "
					"%cta, "
					"0;\n@%p3 bra SHOW;\nsub.s32 %r1, %cta, 1;\nmad.wide.u32 %rd1, %r1, 4, "
					"%out;\nLOOK:\n"
					"ld.acquire.gpu.global.b32 %r5, [%rd1];\nsetp.eq.b32 %p2, %r5, 0;\n@%p2 bra "
					"LOOK;\nSHOW:\n"
					"add.s32 %r5, %r5, 2;\nmad.wide.u32 %rd2, %cta, 4, "
					"%out;\nst.release.gpu.global.b32 [%rd2], "
					"%r5;\nDONE:\n"};
			threads.calls = 0;
			threads.fail_at = k;
			threads.forever = forever;
			blk_status status = sim_try(&c);
			threads.fail_at = 0;
			if (status) fail_msg("thread %ld: %s", k, blk_error());
			/* one that fails is the last one that is asked for */
			assert_int_equal(threads.calls, k ? k : 3);
			for (uint32_t i = 0; i < 60; i++) assert_int_equal(c.out[i], 2 * (i + 1));
		}
	unsetenv("BLK_CPU_THREADS");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reading), cmocka_unit_test(test_running), cmocka_unit_test(test_fewer_threads)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
