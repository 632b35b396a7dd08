/* What the simulator says of kernels that go wrong where they run: operands that are undefined or out of range, in
 * barriers, copies and exchanges. A row is what the first thread does behind the setup, and the words of the report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim_hopper.h"

#include <cmocka.h>

/* %p1: the first thread; an mbarrier of one arrival at %smem; %r40, %rd20 and %p7 were never written. */
#define SETUP                                                                                                          \
	".reg .b16 %h<2>;\nsetp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [%smem], "                         \
	"1;\nfence.mbarrier_init.release.cluster;\n"                                                                   \
	"mad.lo.u32 %r30, %tid, 4, %smem;\nst.shared.b32 [%r30+1024], %tid;\nfence.proxy.async;\nbar.sync 0;\n"
#define BULK "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
#define TENSOR "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"

static void test_reports(void **state)
{
	(void)state;
	static const struct {
		const char *does, *says;
	} rows[] = {
		{"mbarrier.init.shared.b64 [%smem+8], 0;", "an mbarrier of 0 arrivals"},
		{"mbarrier.init.shared.b64 [%smem+8], 1048576;", "an mbarrier of 1048576 arrivals"},
		{"mbarrier.init.shared.b64 [%smem+8], %r40;", "undefined"},
		{"mbarrier.init.b64 [%out], 1;", "which is not in shared memory"},
		{"mbarrier.init.shared.b64 [%smem+1048576], 1;", "outside"},
		{"mbarrier.init.shared.b64 [%smem+4], 1;", "8"},
		{"mbarrier.arrive_drop.shared.b64 _, [%smem], 5;", "more arrivals are dropped than there are"},
		{"mbarrier.arrive.shared.b64 _, [%smem], %r40;", "a count is undefined"},
		{"mbarrier.arrive.shared.b64 _, [%smem+16];", "mbarrier"},
		{"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%smem], 1048576;", "1048575 bytes"},
		{"mbarrier.test_wait.parity.shared.b64 %p2, [%smem], 2;", "a wait for the parity 2"},
		{"mbarrier.test_wait.parity.shared.b64 %p2, [%smem], %r40;", "undefined"},
		{"mbarrier.test_wait.shared.b64 %p2, [%smem], %rd20;", "undefined"},
		{"cp.async.ca.shared.global [%smem+64], [%in], 4, %r40;", "the size of a copy is undefined"},
		{"cp.async.ca.shared.global [%smem+64], [%in], 4, 8;", "a copy of 4 bytes reads 8"},
		{"cp.async.ca.shared.global [%smem+64], [%in+2], 4;", "from an address which that does not divide"},
		{"cp.async.ca.shared.global [%smem+66], [%in], 4;", "4"},
		{"mapa.shared::cluster.u32 %r5, %smem, %r40;", "an address or a rank is undefined"},
		{BULK " [%smem+2048], [%in], 8, [%smem];", "16"},
		{BULK " [%smem+2048], [%in], 0, [%smem];", "16"},
		{BULK " [%smem+2048], [%in], %r40, [%smem];", "undefined"},
		{BULK " [%smem+2048], [%in+8], 16, [%smem];", "16"},
		{BULK " [%smem+2056], [%in], 16, [%smem];", "16"},
		{BULK " [%smem+2048], [%rd20], 16, [%smem];", "undefined"},
		{BULK " [%smem+2048], [%in+1048576], 16, [%smem];", "in"},
		{BULK " [%smem+1048576], [%in], 16, [%smem];", "shared"},
		{"mov.b16 %h1, 4;\n@%p1 " BULK ".multicast::cluster [%smem+2048], [%in], 16, [%smem], %h1;",
			"to the programs 0x4"},
		{"mov.b16 %h1, 0;\n@%p1 " BULK ".multicast::cluster [%smem+2048], [%in], 16, [%smem], %h1;",
			"to the programs 0x0"},
		{"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%smem+1024], 16;\n@%p1 "
		 "cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group 0;",
			"fill the buffer"},
		{TENSOR " [%smem+2048], [%in, {0, 0}], [%smem];", "tensor map"},
		{"st.shared.b32 [%smem+1048576], 0;", "shared"},
		{"ld.global.b32 %r5, [%in+1048576];", "outside"},
		{"st.global.b32 [%in], 0;", "in"},
		{"ld.global.b32 %r5, [%in+2];", "4"},
		{"ld.global.b32 %r5, [%rd20];", "undefined"},
		{"ld.local.b32 %r5, [%rd20];", "undefined"},
		{"atom.global.add.u32 %r5, [%in], 1;", "in"},
		{"st.global.b32 [%out], %r40;", "undefined"},
	};
	unsigned wrong = 0;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		hopper *h = hopper_new();
		h->threads = 32;
		h->shared = 16384;
		hopper_add(h, "%s@%%p1 %s\nbar.sync 0;\n", SETUP, rows[i].does);
		if (hopper_run(h) || !strstr(h->problem, rows[i].says) || !strstr(h->problem, "line "))
			print_error("%s\n  says: %s\n", rows[i].does, h->problem), wrong++;
		free(h);
	}
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_reports)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
