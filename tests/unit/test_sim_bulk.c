/* Bulk copies on the simulator: boxes of tensors of every rank and swizzle, and a small matrix kernel of the kind that
 * the compiler makes: a multibuffer that a producer fills and a warpgroup multiplies from.  Then the same with one
 * thing missing. */
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

#define INIT                                                                                                           \
	"setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [%smem], 1;\nfence.mbarrier_init.release.cluster;\n" \
	"bar.sync 0;\n"
#define WAIT "WAIT:\nmbarrier.try_wait.parity.shared.b64 %p9, [%smem], 0;\n@!%p9 bra WAIT;\n"
#define EXPECT(bytes) "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%smem], " bytes ";\n"

static hopper *with(uint64_t seed, const char *body)
{
	hopper *h = hopper_new();
	h->seed = seed;
	h->threads = 64;
	h->shared = 65536;
	for (uint32_t i = 0; i < HOPPER_IN; i++) h->in[i] = (uint8_t)(i * 7 + i / 256 * 3 + 1);
	hopper_add(h, "%s", body);
	return h;
}

/* ---- Without a map ---- */

#define LOAD                                                                                                           \
	"@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%smem+1024], [%in+32], 512, "         \
	"[%smem];\n"
#define STORE "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out+16], [%smem+1024], 512;\n"
#define DONE "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group 0;\n"
#define ALL_WAIT "@%p1 cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nsetp.eq.b32 %p2, %tid, 1;\n"
#define FENCE "fence.proxy.async.shared::cta;\n"

static void test_linear(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 4; seed++) {
		hopper *h = with(seed, INIT EXPECT("512") LOAD WAIT STORE DONE);
		RUNS(h);
		assert_memory_equal(h->out + 16, h->in + 32, 512);
		for (int i = 16; i < 528; i++) assert_int_equal(h->out_shadow[i], 0);
		assert_int_equal(h->out_shadow[528], 0xff);
		free(h);
		REPORTS(with(seed, INIT EXPECT("512") LOAD STORE DONE), ""); /* not waited for */
		REPORTS(with(seed, INIT EXPECT("528") LOAD WAIT), "warps wait for ever", "and 16 bytes", "expect_tx");
		REPORTS(with(seed, INIT EXPECT("16") LOAD WAIT), "warps wait for ever", "and -496 bytes");
		REPORTS(with(seed, INIT EXPECT("512") LOAD
				"ld.shared.b32 %r1, [%smem+1024];\nst.global.b32 [%out], %r1;\n"),
			"");
		REPORTS(with(seed, INIT EXPECT("512") LOAD WAIT STORE), "the program has ended while a bulk copy from");
		REPORTS(with(seed, INIT EXPECT("512") LOAD WAIT STORE
				"setp.eq.b32 %p2, %tid, 40;\n@%p2 st.shared.b32 [%smem+1040], "
				"0;\n" DONE),
			"");
		h = with(seed, INIT EXPECT("512") LOAD WAIT STORE DONE
			"bar.sync 0;\nsetp.eq.b32 %p2, %tid, 40;\n@%p2 st.shared.b32 "
			"[%smem+1040], 0;\n");
		RUNS(h);
		free(h);
	}
	hopper *early =
		with(0, INIT EXPECT("512") LOAD "ld.shared.b32 %r1, [%smem+1024];\nst.global.b32 [%out], %r1;\n");
	early->threads = 32;
	REPORTS(early, "a race on shared memory at offset 1024", "written by a bulk copy");
	early = with(0, INIT EXPECT("512") LOAD "ld.shared.b32 %r1, [%smem+1024];\nst.global.b32 [%out], %r1;\n");
	early->threads = 32;
	early->json = true;
	REPORTS(early,
		"\"space\": \"shared\", \"buffer\": null, \"owner\": [0, 0, 0], \"size\": 65536, \"offset\": 1024, "
		"\"bytes\": 4, \"kind\": \"read\", \"other\": {",
		"\"program\": [0, 0, 0], \"thread\": null, \"engine\": \"bulk copy\", \"kind\": \"write\"}, \"cause\": "
		"null}");
	REPORTS(with(1, INIT EXPECT("512") LOAD "bar.sync 0;\n@%p1 st.shared.b32 [%smem+1024], 0;\n" WAIT),
		"while a copy into it is under way");
	REPORTS(with(0, INIT "st.shared.b32 [%smem+1024], 0;\n"), "a race"); /* by all threads */
	REPORTS(with(0, "setp.eq.b32 %p1, %tid, 0;\n@%p1 mbarrier.init.shared.b64 [%smem], 1;\nbar.sync 0;\n" EXPECT(
				"512") LOAD WAIT),
		"whose init no fence has made known");
	REPORTS(with(0, INIT "@%p1 st.shared.v4.b32 [%smem+1024], {%tid, %tid, %tid, %tid};\n@%p1 "
			     "cp.async.bulk.global.shared::cta."
			     "bulk_group [%out+16], [%smem+1024], 16;\n" DONE),
		"no fence.proxy.async is between");
	REPORTS(with(0, INIT "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%in+16], [%smem+1024], 16;\n" DONE),
		"passed as *const");
	REPORTS(with(0, INIT "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out+8], [%smem+1024], 16;\n" DONE),
		"16 does not divide");
	REPORTS(with(0, INIT
			"@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out+131056], [%smem+1024], 32;\n" DONE),
		"outside out");
	REPORTS(with(0, INIT "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out], [%smem+65520], 32;\n" DONE),
		"outside shared memory");
}

static void test_reduction(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 2; seed++) {
		hopper *h = with(seed,
			"mad.lo.s32 %r1, %tid, 4, %smem;\nst.shared.b32 [%r1], %tid;\nmad.wide.u32 %rd1, %tid, 4, "
			"%out;\n"
			"st.global.b32 [%rd1], 100;\nfence.proxy.async;\nbar.sync 0;\nsetp.eq.b32 %p1, %tid, 0;\n"
			"@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%smem], 256;\n"
			"@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [%out], [%smem], 16;\n" DONE);
		RUNS(h);
		for (uint32_t i = 0; i < 64; i++)
			assert_int_equal(((const uint32_t *)(const void *)h->out)[i], 100 + i);
		free(h);
	}
}

/* ---- Two proxies ---- */

#define FILL "mad.wide.u32 %rd1, %tid, 16, %out;\nst.global.v4.b32 [%rd1], {%tid, %tid, %tid, %tid};\n"
#define LOAD_OUT                                                                                                       \
	EXPECT("512")                                                                                                  \
	"@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%smem+1024], [%out+32], 512, "            \
	"[%smem];\n" WAIT
#define STORE_OUT "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out+16], [%smem+2048], 512;\n"
#define FILL_SHARED(at) "mad.lo.s32 %r1, %tid, 16, %smem;\nst.shared.v4.b32 [%r1+" at "], {%tid, %tid, %tid, %tid};\n"
#define ALL "fence.proxy.async;\n"
#define GLOBAL "fence.proxy.async.global;\n"

static void test_proxies(void **state)
{
	(void)state;
	static const char *const right[] = {
		/* what threads have stored, by a fence of theirs or of the one that copies */
		INIT FILL ALL "bar.sync 0;\n" LOAD_OUT,
		INIT FILL GLOBAL "bar.sync 0;\n" LOAD_OUT,
		INIT FILL "bar.sync 0;\n" GLOBAL LOAD_OUT,
		INIT FILL "bar.sync 0;\n@%p1 " ALL LOAD_OUT,
		INIT FILL FILL_SHARED("2048") ALL "bar.sync 0;\n" STORE_OUT DONE,
		INIT FILL_SHARED("1024") FENCE "bar.sync 0;\n" EXPECT("512") LOAD WAIT,
		INIT FILL_SHARED("1024") "bar.sync 0;\n@%p1 " FENCE EXPECT("512") LOAD WAIT,
		/* of the copy's writes its end is enough */
		INIT EXPECT("512") LOAD WAIT FILL_SHARED("1024"),
		INIT FILL_SHARED("2048") FENCE "bar.sync 0;\n" STORE_OUT DONE ".loc 1 2 1\nbar.sync 0;\n" FILL,
		INIT FILL_SHARED("2048") FENCE "bar.sync 0;\n" STORE_OUT ALL_WAIT
					       "bar.warp.sync -1;\n@%p2 st.global.b32 [%out+16], 1;\n",
		INIT FILL_SHARED("2048") FENCE "bar.sync 0;\n" STORE_OUT DONE
					       ".loc 1 2 1\n@%p1 st.global.b32 [%out+16], 1;\n",
		/* and of what it read */
		INIT "mad.lo.s32 %r1, %tid, 16, %smem;\n" EXPECT("512") LOAD WAIT
		"ld.shared.b32 %r2, [%r1+1024];\nbar.sync 0;\n" EXPECT("512") LOAD
		"AGAIN:\nmbarrier.try_wait.parity.shared.b64 %p9, [%smem], 1;\n@!%p9 bra AGAIN;\n",
	};
	static const struct {
		const char *body, *says;
	} wrong[] = {
		{INIT FILL "bar.sync 0;\n" LOAD_OUT,
			"out at offset 32 is read by an asynchronous engine; thread 2 wrote it"},
		{INIT FILL FENCE "bar.sync 0;\n" LOAD_OUT, "no fence.proxy.async is between"},
		{INIT GLOBAL FILL "bar.sync 0;\n" LOAD_OUT, "no fence.proxy.async is between"},
		{INIT "@%p1 " ALL FILL "bar.sync 0;\n" LOAD_OUT, "no fence.proxy.async is between"},
		{INIT FILL FILL_SHARED("2048") FENCE "bar.sync 0;\n" STORE_OUT DONE,
			"out at offset 16 is written by an asynchronous engine; thread 1 wrote it"},
		{INIT FILL_SHARED("1024") "bar.sync 0;\n" EXPECT("512") LOAD WAIT,
			"shared memory at offset 1024 is written by an asynchronous engine; thread 0 wrote it"},
		{INIT FILL_SHARED("1024") GLOBAL "bar.sync 0;\n" EXPECT("512") LOAD WAIT,
			"no fence.proxy.async is between"},
		{INIT FILL_SHARED("1024") FENCE EXPECT("512") LOAD WAIT, "a race on shared memory"},
		{INIT FILL_SHARED("2048") FENCE "bar.sync 0;\n" STORE_OUT "@%p1 cp.async.bulk.commit_group;\n@%p1 "
						"cp.async.bulk.wait_group.read 0;\n.loc 1 2 "
						"1\n@%p1 st.global.b32 [%out+16], 1;\n",
			"a race on out at offset 16"},
		/* who has not met the thread that waited */
		{INIT FILL_SHARED("2048") FENCE "bar.sync 0;\n" STORE_OUT DONE ".loc 1 2 1\n" FILL, "a race on out"},
		{INIT FILL_SHARED("2048") FENCE "bar.sync 0;\n" STORE_OUT ALL_WAIT
						".loc 1 2 1\n@%p2 st.global.b32 [%out+16], 1;\n",
			"a race on out"},
	};
	for (uint64_t seed = 0; seed < 4; seed++) {
		for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
			hopper *h = with(seed, right[i]);
			RUNS(h);
			free(h);
		}
		for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
			REPORTS(with(seed, wrong[i].body), wrong[i].says);
	}
}

/* Another program's stores: fenced there, or here behind the acquire. */
static void test_proxies_of_programs(void **state)
{
	(void)state;
	static const struct {
		const char *there, *here;
		bool fenced;
	} cases[] = {{"", "", false}, {ALL, "", true}, {"", ALL, true}, {GLOBAL, "", true}, {FENCE, FENCE, false}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		hopper *h = with(0, INIT);
		h->programs = 2;
		hopper_add(h, "setp.eq.b32 %%p2, %%cta, 1;\n@%%p2 bra SECOND;\n%s%s%s", FILL, cases[i].there,
			"bar.sync 0;\n@%p1 st.release.gpu.global.b32 [%out+2048], 1;\nret;\nSECOND:\n@!%p1 ret;\n"
			"LOOK:\nld.acquire.gpu.global.b32 %r1, [%out+2048];\nsetp.eq.b32 %p3, %r1, 0;\n@%p3 bra "
			"LOOK;\n");
		hopper_add(h, "%s%s", cases[i].here, LOAD_OUT);
		memset(h->out, 0, 4096);
		if (cases[i].fenced) {
			RUNS(h);
			free(h);
		} else
			REPORTS(h, "out at offset 32 is read by an asynchronous engine; program (0, 0, 0) wrote it at");
	}
}

/* ---- Boxes ---- */

typedef struct box {
	uint32_t rank, size, swizzle, box[5], extent[5], pitch[5]; /* pitch: elements */
	int at[5];
} box;

static tensor_map_request map_of(const box *b, const uint8_t *memory)
{
	static const scalar types[] = {[1] = SCALAR_U8, [2] = SCALAR_F16, [4] = SCALAR_F32, [8] = SCALAR_F64};
	tensor_map_request m = {.magic = TENSOR_MAP_MAGIC,
		.address = (uint64_t)(uintptr_t)memory,
		.type = (uint8_t)types[b->size],
		.element_bytes = (uint8_t)b->size,
		.rank = (uint8_t)b->rank,
		.swizzle = (uint8_t)b->swizzle};
	for (uint32_t i = 0; i < b->rank; i++) {
		m.box[i] = b->box[i];
		m.extent[i] = b->extent[i];
		m.stride[i] = (uint64_t)(i ? b->pitch[i] : 1) * b->size;
	}
	return m;
}

/* Which byte of the tensor byte i of the box is; -1: none. */
static long source(const box *b, uint32_t i)
{
	uint32_t element = i / b->size;
	long offset = i % b->size;
	for (uint32_t k = 0; k < b->rank; k++) {
		int at = b->at[k] + (int)(element % b->box[k]);
		element /= b->box[k];
		if (at < 0 || at >= (int)b->extent[k]) return -1;
		offset += (long)at * (k ? b->pitch[k] : 1) * b->size;
	}
	return offset;
}

/* Byte i of the box in shared memory, by rows of the swizzle's span. */
static uint32_t swizzled(const box *b, uint32_t i)
{
	uint32_t line = i / 128, piece = i % 128 / 16;
	if (b->swizzle == 128) piece ^= line % 8;
	if (b->swizzle == 64) piece ^= line % 4;
	if (b->swizzle == 32) piece ^= line % 2;
	return line * 128 + piece * 16 + i % 16;
}

static void coordinates(hopper *h, const box *b)
{
	hopper_add(h, "{");
	for (uint32_t i = 0; i < b->rank; i++) hopper_add(h, "%s%d", i ? ", " : "", b->at[i]);
	hopper_add(h, "}");
}

static void check_box(const box *b, uint64_t seed)
{
	uint32_t bytes = b->size;
	for (uint32_t i = 0; i < b->rank; i++) bytes *= b->box[i];
	/* in: all of shared memory is stored as it is */
	hopper *h = with(seed, INIT);
	h->map[0] = map_of(b, h->in);
	hopper_add(h, "@%%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%%smem], %u;\n", bytes);
	hopper_add(h,
		"@%%p1 cp.async.bulk.tensor.%ud.shared::cta.global.tile.mbarrier::complete_tx::bytes [%%smem+1024], "
		"[%%m0, ",
		b->rank);
	coordinates(h, b);
	hopper_add(h, "], [%%smem];\n%s", WAIT);
	hopper_add(h, "@%%p1 cp.async.bulk.global.shared::cta.bulk_group [%%out], [%%smem+1024], %u;\n%s", bytes, DONE);
	RUNS(h);
	for (uint32_t i = 0; i < bytes; i++) {
		long from = source(b, i);
		if (h->out[swizzled(b, i)] != (from < 0 ? 0 : h->in[from]))
			fail_msg("rank %u: byte %u of the box", b->rank, i);
	}
	free(h);
	/* out: from shared memory as it is */
	h = with(seed, INIT);
	h->map[0] = map_of(b, h->out);
	hopper_add(h, "@%%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%%smem], %u;\n", bytes);
	hopper_add(h,
		"@%%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%%smem+1024], [%%in], %u, "
		"[%%smem];\n%s",
		bytes, WAIT);
	hopper_add(h, "@%%p1 cp.async.bulk.tensor.%ud.global.shared::cta.tile.bulk_group [%%m0, ", b->rank);
	coordinates(h, b);
	hopper_add(h, "], [%%smem+1024];\n%s", DONE);
	memset(h->out, 0xee, HOPPER_OUT);
	for (uint32_t i = 0; i < b->rank; i++)
		if (b->at[i] < 0) {
			REPORTS(h, "a copy to memory by a tensor map has coordinate -");
			return;
		}
	RUNS(h);
	uint8_t *wanted = malloc(HOPPER_OUT);
	memset(wanted, 0xee, HOPPER_OUT);
	for (uint32_t i = 0; i < bytes; i++)
		if (source(b, i) >= 0) wanted[source(b, i)] = h->in[swizzled(b, i)];
	assert_memory_equal(wanted, h->out, HOPPER_OUT);
	free(wanted);
	free(h);
}

static void test_boxes(void **state)
{
	(void)state;
	static const box boxes[] = {
		{1, 4, 0, {100}, {333}, {0}, {12}},
		{1, 1, 0, {256}, {300}, {0}, {208}},
		{2, 2, 128, {64, 24}, {70, 50}, {0, 80}, {0, 0}},
		{2, 2, 128, {64, 24}, {70, 50}, {0, 80}, {-8, 40}},
		{2, 2, 128, {64, 24}, {70, 50}, {0, 80}, {8, 40}},
		{2, 2, 64, {32, 16}, {70, 50}, {0, 80}, {48, -7}},
		{2, 2, 64, {32, 16}, {70, 50}, {0, 80}, {48, 7}},
		{2, 1, 32, {32, 8}, {70, 50}, {0, 80}, {64, 0}},
		{2, 4, 128, {32, 9}, {31, 50}, {0, 32}, {0, 1}},
		{2, 8, 0, {4, 3}, {31, 50}, {0, 32}, {28, 48}},
		{3, 2, 128, {64, 3, 5}, {70, 7, 9}, {0, 72, 512}, {8, 5, -2}},
		{4, 2, 32, {16, 2, 3, 2}, {20, 3, 4, 5}, {0, 24, 72, 288}, {8, 1, 2, 4}},
		{5, 4, 0, {8, 2, 1, 3, 2}, {9, 2, 2, 3, 4}, {0, 12, 24, 48, 144}, {-4, -1, 1, 1, 3}},
	};
	for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++)
		for (uint64_t seed = 0; seed < 2; seed++) check_box(&boxes[i], seed);
}

#define BOX_AT(place, at)                                                                                              \
	"@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [" place "], [%m0, "    \
	"{" at "}], [%smem];\n"
#define BOX BOX_AT("%smem+1024", "0, 0")

static void test_maps(void **state)
{
	(void)state;
	const box fine = {2, 2, 128, {64, 8}, {64, 8}, {0, 64}, {0, 0}};
	hopper *h = with(0, INIT EXPECT("1024") BOX WAIT);
	REPORTS(h, "a tensor map was never made");
	h = with(0, INIT EXPECT("1024") BOX_AT("%smem+1024", "-4, 0") WAIT);
	h->map[0] = map_of(&fine, h->in);
	REPORTS(h, "begins -8 bytes behind the start of a line");
	h = with(0, INIT EXPECT("1024") BOX WAIT);
	h->map[0] = map_of(&fine, h->in);
	h->map[0].extent[1] = 10000;
	REPORTS(h, "does not lie in a buffer", "of in, which has 131072");
	h = with(0, INIT EXPECT("1024") BOX WAIT);
	h->map[0] = map_of(&fine, h->in + HOPPER_IN - 1008);
	REPORTS(h, "does not lie in a buffer: from offset 130064 of in, which has 131072");
	h = with(0, INIT EXPECT("1024") BOX WAIT);
	h->map[0] = map_of(&fine, h->in);
	h->map[0].rank = 3;
	REPORTS(h, "another number of dimensions");
	h = with(0, INIT EXPECT("1024") BOX_AT("%smem+1152", "0, 0") WAIT);
	h->map[0] = map_of(&fine, h->in);
	REPORTS(h, "at offset 1152 of shared memory, which 1024 does not divide");
	h = with(0,
		INIT EXPECT("1024") "@%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
				    "[%smem+65536], [%m0, {0, "
				    "0}], [%smem];\n");
	h->map[0] = map_of(&fine, h->in);
	REPORTS(h, "destination of 1024 bytes is outside shared memory");
	h = with(0, INIT
		"@%p1 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%m0, {0, 0}], [%smem+1024];\n" DONE);
	h->map[0] = map_of(&fine, h->in);
	REPORTS(h, "in is written by a bulk copy, which is passed as *const");
	h = with(0, INIT
		"@%p1 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%m0, {0, 0}], [%smem+1024];\n" DONE);
	h->map[0] = map_of(&fine, h->out);
	REPORTS(h, "an undefined value is stored by a bulk copy");
}

/* ---- A matrix kernel ---- */

enum { M = 100, N = 104, K = 136, BLOCK = 64 };

/* Two stages of 16 KiB: a, b; then c; then full[2] at 40960, empty[2] at 40976.  The first warpgroup's elected thread
 * fills, the second multiplies.  Each program makes a block of c. */
static const char kernel[] =
	"setp.ne.b32 %p1, %tid, 0;\n@%p1 bra READY;\n"
	"mbarrier.init.shared.b64 [%smem+40960], 1;\nmbarrier.init.shared.b64 [%smem+40968], 1;\n"
	"mbarrier.init.shared.b64 [%smem+40976], 4;\nmbarrier.init.shared.b64 [%smem+40984], 4;\n" /* warps */
	"fence.mbarrier_init.release.cluster;\nREADY:\nbar.sync 0;\n"
	"shr.u32 %r1, %cta, 1;\nshl.b32 %r18, %r1, 6;\nand.b32 %r1, %cta, 1;\nshl.b32 %r19, %r1, 6;\n" /* row, column */
	"mov.b32 %r10, 0;\nmov.b32 %r11, 0;\n"                                                         /* k, slot */
	"setp.ge.u32 %p2, %tid, 128;\n@%p2 bra CONSUMER;\n"
	"setmaxnreg.dec.sync.aligned.u32 40;\nsetp.ge.u32 %p3, %tid, 32;\n@%p3 bra END;\n"
	"elect.sync %r2|%p4, -1;\n@!%p4 bra END;\nmov.b32 %r12, 1;\n"
	"FILL:\nshl.b32 %r13, %r11, 3;\nadd.s32 %r13, %r13, %smem;\n"
	"EMPTY:\nmbarrier.try_wait.parity.shared.b64 %p5, [%r13+40976], %r12;\n@!%p5 bra EMPTY;\n"
	"mbarrier.arrive.expect_tx.shared.b64 _, [%r13+40960], 16384;\n"
	"mad.lo.s32 %r14, %r11, 16384, %smem;\nadd.s32 %r15, %r14, 8192;\nadd.s32 %r16, %r13, 40960;\nshl.b32 %r17, "
	"%r10, 6;\n"
	"cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r14], [%m0, {%r17, %r18}], "
	"[%r16];\n"
	"cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r15], [%m1, {%r17, %r19}], "
	"[%r16];\n"
	"xor.b32 %r11, %r11, 1;\nsetp.eq.b32 %p6, %r11, 0;\nselp.b32 %r3, 1, 0, %p6;\nxor.b32 %r12, %r12, %r3;\n"
	"add.s32 %r10, %r10, 1;\nsetp.lt.u32 %p7, %r10, 3;\n@%p7 bra FILL;\nbra.uni END;\n"
	"CONSUMER:\nsetmaxnreg.inc.sync.aligned.u32 232;\nmov.b32 %r12, 0;\nand.b32 %r3, %tid, 31;\nsetp.eq.b32 %p8, "
	"%r3, 0;\n"
	"NEXT:\nshl.b32 %r13, %r11, 3;\nadd.s32 %r13, %r13, %smem;\n"
	"FULL:\nmbarrier.try_wait.parity.shared.b64 %p5, [%r13+40960], %r12;\n@!%p5 bra FULL;\n"
	"mad.lo.s32 %r14, %r11, 16384, %smem;\nbfe.u32 %r15, %r14, 4, 14;\ncvt.u64.u32 %rd1, %r15;\n"
	"or.b64 %rd1, %rd1, 4611686293305360384;\nadd.s64 %rd2, %rd1, 512;\nsetp.ne.b32 %p6, %r10, 0;\n"
	"wgmma.fence.sync.aligned;\n@PRODUCTS@wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n"
	"@!%p6 bra FIRST;\n@%p8 mbarrier.arrive.release.cta.shared::cta.b64 _, [%r20+40976];\nFIRST:\nmov.b32 %r20, "
	"%r13;\n"
	"xor.b32 %r11, %r11, 1;\nsetp.eq.b32 %p6, %r11, 0;\nselp.b32 %r3, 1, 0, %p6;\nxor.b32 %r12, %r12, %r3;\n"
	"add.s32 %r10, %r10, 1;\nsetp.lt.u32 %p7, %r10, 3;\n@%p7 bra NEXT;\n"
	"wgmma.wait_group.sync.aligned 0;\n@%p8 mbarrier.arrive.release.cta.shared::cta.b64 _, [%r20+40976];\n"
	"sub.s32 %r1, %tid, 128;\nshr.u32 %r2, %r1, 5;\nand.b32 %r3, %r1, 31;\nmad.lo.s32 %r4, %r2, 2048, %smem;\n"
	"add.s32 %r4, %r4, 32768;\nand.b32 %r5, %r3, 15;\nmad.lo.s32 %r5, %r5, 128, %r4;\nshr.u32 %r6, %r3, "
	"4;\nand.b32 %r7, %r3, 7;\n"
	"@STORES@fence.proxy.async.shared::cta;\nbar.warp.sync -1;\n"
	"setp.ne.b32 %p1, %r3, 0;\n@%p1 bra END;\nmad.lo.s32 %r8, %r2, 16, %r18;\n"
	"cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%m2, {%r19, %r8}], [%r4];\n"
	"cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\nEND:\n";

static void products(hopper *h)
{
	for (int step = 0; step < 4; step++) {
		hopper_add(h, "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {");
		for (int i = 0; i < 32; i++) hopper_add(h, "%s%%f%d", i ? ", " : "", i);
		hopper_add(h, "}, %%rd1, %%rd2, %s, 1, 1, 0, 0;\nadd.s64 %%rd1, %%rd1, 2;\nadd.s64 %%rd2, %%rd2, 2;\n",
			step ? "1" : "%p6");
	}
}

static void stores(hopper *h)
{
	for (int q = 0; q < 4; q++) {
		for (int i = 0; i < 4; i++)
			hopper_add(
				h, "cvt.rn.f16x2.f32 %%r%d, %%f%d, %%f%d;\n", 30 + i, 8 * q + 2 * i + 1, 8 * q + 2 * i);
		hopper_add(h, "add.s32 %%r9, %%r6, %d;\nxor.b32 %%r9, %%r9, %%r7;\nmad.lo.s32 %%r9, %%r9, 16, %%r5;\n",
			2 * q);
		hopper_add(h, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%%r9], {%%r30, %%r31, %%r32, %%r33};\n");
	}
}

static int factor(int row, int k, int of)
{
	return (row * (3 + of) + k * (5 - of) + row / 9) % 5 - 2;
}

static hopper *matrix_kernel(uint64_t seed)
{
	hopper *h = hopper_new();
	h->seed = seed;
	h->threads = 256;
	h->programs = 4;
	h->shared = 41024;
	const char *first = strstr(kernel, "@PRODUCTS@"), *second = strstr(kernel, "@STORES@");
	hopper_add(h, "%.*s", (int)(first - kernel), kernel);
	products(h);
	first += strlen("@PRODUCTS@");
	hopper_add(h, "%.*s", (int)(second - first), first);
	stores(h);
	hopper_add(h, "%s", second + strlen("@STORES@"));
	uint8_t *b = h->in + 65536;
	for (int k = 0; k < K; k++) {
		for (int i = 0; i < M; i++) {
			uint16_t v = (uint16_t)scalar_from_double(SCALAR_F16, factor(i, k, 0));
			memcpy(h->in + 2 * (i * K + k), &v, 2);
		}
		for (int i = 0; i < N; i++) {
			uint16_t v = (uint16_t)scalar_from_double(SCALAR_F16, factor(i, k, 1));
			memcpy(b + 2 * (i * K + k), &v, 2);
		}
	}
	h->map[0] = map_of(&(const box){2, 2, 128, {64, 64}, {K, M}, {0, K}, {0}}, h->in);
	h->map[1] = map_of(&(const box){2, 2, 128, {64, 64}, {K, N}, {0, K}, {0}}, b);
	h->map[2] = map_of(&(const box){2, 2, 128, {64, 16}, {N, M}, {0, N}, {0}}, h->out);
	return h;
}

static void test_matrix_kernel(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 6; seed++) {
		hopper *h = matrix_kernel(seed);
		memset(h->out, 0xee, HOPPER_OUT);
		RUNS(h);
		for (int i = 0; i < M; i++)
			for (int j = 0; j < N; j++) {
				int sum = 0;
				uint16_t got;
				for (int k = 0; k < K; k++) sum += factor(i, k, 0) * factor(j, k, 1);
				memcpy(&got, h->out + 2 * (i * N + j), 2);
				if (scalar_to_double(SCALAR_F16, got) != sum)
					fail_msg(
						"(%d, %d) is %g, not %d", i, j, scalar_to_double(SCALAR_F16, got), sum);
			}
		for (int i = 2 * M * N; i < 2 * M * N + 64; i++) assert_int_equal(h->out[i], 0xee);
		free(h);
	}
}

/* What is taken out or changed, and what the report says. */
static const struct {
	const char *text, *by, *says;
} faults[] = {
	{"bar.sync 0;", "", ""},
	{"fence.mbarrier_init.release.cluster;", "", "whose init no fence has made known"},
	{"@!%p5 bra EMPTY;", "", ""},
	{"@!%p5 bra FULL;", "", ""},
	{"_, [%r13+40960], 16384;", "_, [%r13+40960], 8192; ", ""},
	{"_, [%r13+40960], 16384;", "_, [%r13+40960], 16400;", "and 16 bytes"},
	{"mov.b32 %r12, 1;", "mov.b32 %r12, 0;", "wait for ever"},
	{"wgmma.fence.sync.aligned;", "", "before any wgmma.fence"},
	{"wgmma.wait_group.sync.aligned 1;", "", "while a wgmma or a bulk copy reads it"},
	{"wgmma.wait_group.sync.aligned 0;", "", "a register is read that holds the sum of a wgmma"},
	{"@!%p6 bra FIRST;", "bra.uni FIRST;", "wait for ever"},
	{"fence.proxy.async.shared::cta;", "", "no fence.proxy.async is between"},
	{"bar.warp.sync -1;", "", "a race on shared memory"},
	{"cp.async.bulk.commit_group;", "", "the program has ended while a bulk copy from"},
	{"cp.async.bulk.wait_group.read 0;", "", "the program has ended while a bulk copy from"},
};

static void test_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		for (uint64_t seed = 0; seed < 4; seed++) {
			hopper *h = matrix_kernel(seed);
			char *at = strstr(h->body, faults[i].text);
			size_t n = strlen(faults[i].text), by = strlen(faults[i].by);
			assert_non_null(at);
			memmove(at + by, at + n, strlen(at + n) + 1);
			memcpy(at, faults[i].by, by);
			if (hopper_run(h)) fail_msg("seed %d: nothing is said without %s", (int)seed, faults[i].text);
			if (!strstr(h->problem, faults[i].says))
				fail_msg("seed %d: without %s: %s", (int)seed, faults[i].text, h->problem);
			free(h);
		}
}

/* With turns that are shorter than the way from one question to the next a copy lands all the same. */
static void test_long_way_round(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 8; seed++) {
		hopper *h = with(seed, INIT EXPECT("512") LOAD "WAIT:\n");
		for (unsigned i = 0; i < 100; i++) hopper_add(h, "add.s32 %%r1, %%r2, %u;\n", i);
		hopper_add(
			h, "%s", "mbarrier.try_wait.parity.shared.b64 %p9, [%smem], 0;\n@!%p9 bra WAIT;\n" STORE DONE);
		RUNS(h);
		assert_memory_equal(h->out + 16, h->in + 32, 512);
		free(h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_linear), cmocka_unit_test(test_long_way_round),
		cmocka_unit_test(test_reduction), cmocka_unit_test(test_proxies),
		cmocka_unit_test(test_proxies_of_programs), cmocka_unit_test(test_boxes), cmocka_unit_test(test_maps),
		cmocka_unit_test(test_matrix_kernel), cmocka_unit_test(test_faults)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
