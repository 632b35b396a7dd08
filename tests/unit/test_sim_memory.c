/* The simulator when memory runs out: each allocation fails in turn, once and from then on, while PTX is read and while
 * kernels run that use all that it keeps.  The answer is a sentence about memory, never a wrong result, and all that
 * was taken is given back. */
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

/* Each instruction alone, so that all that grows is at its beginning.  No sentence: it is the caller's (sim.h). */
static void test_reading(void **state)
{
	(void)state;
	if (!FAULTY_MALLOC) skip();
	for (unsigned i = 0; i < sizeof instructions / sizeof instructions[0]; i++) {
		char body[1024], error[640];
		snprintf(body, sizeof body, "HERE:\n%s;\n", instructions[i]);
		sim_case c = {.body = body, .declarations = SIM_DECLARATIONS};
		char *text = sim_text(&c);
		long k = 1, live = faulty.live;
		for (bool done = false; !done; k++) {
			sim_code *code = NULL;
			error[0] = 0;
			arm(k, k % 2);
			bool good = sim_code_parse(text, "k", &code, error, sizeof error);
			faulty.armed = false;
			done = faulty.calls < k;
			if (good != (code != NULL) || good != done)
				fail_msg("%s, allocation %ld of %ld: %s", instructions[i], k, faulty.calls, error);
			if (!good && error[0] && !strstr(error, "memory")) fail_msg("%s: %s", instructions[i], error);
			sim_code_free(code);
			if (faulty.live != live) fail_msg("%s, allocation %ld: a leak", instructions[i], k);
		}
		assert_in_range(k, 2, MOST_CALLS);
		free(text);
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

static hopper *bulk_and_barriers; /* its text is made before memory is short */

static bool bulk(const char **problem)
{
	bool good = hopper_run(bulk_and_barriers);
	*problem = bulk_and_barriers->problem[0] ? bulk_and_barriers->problem : "no sentence, which says memory";
	return good;
}

static void test_running(void **state)
{
	(void)state;
	if (!FAULTY_MALLOC) skip();
	run_out("shared and atomics", shared_and_atomics);
	run_out("copies ahead", copies_ahead);
	bulk_and_barriers = hopper_new();
	bulk_and_barriers->threads = 64;
	bulk_and_barriers->shared = 65536;
	bulk_and_barriers->cluster = 2;
	hopper_add(bulk_and_barriers,
		"setp.eq.b32 %%p1, %%tid, 0;\n@%%p1 mbarrier.init.shared.b64 [%%smem], 1;\n"
		"fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n"
		"@%%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%%smem], 512;\n"
		"@%%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%smem+1024], [%%in+32], "
		"512, "
		"[%%smem];\nWAIT:\nmbarrier.try_wait.parity.shared.b64 %%p9, [%%smem], 0;\n@!%%p9 bra WAIT;\n"
		"mapa.shared::cluster.u32 %%r5, %%smem, 0;\nld.shared::cluster.b32 %%r6, [%%r5+1024];\n"
		"barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n");
	run_out("bulk copies in a cluster", bulk);
	free(bulk_and_barriers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_reading), cmocka_unit_test(test_running)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
