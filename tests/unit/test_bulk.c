/* Tensors by tensor maps, from text to PTX: the instructions that copies, stores and products become, and what the
 * signature tells the host.  What each pass decides about them is in tests/passes. */
#include "runtime/package/signature.h"
#include "compiled.h"

static const blkc_promise promised[] = {{"c", 16, 0}, {"a", 16, 0}, {"n", 16, 0}, {"b", 16, 0}, {"k", 16, 0}};
enum { OF_A_COPY = 3, OF_A_PRODUCT = 5 }; /* how many of them */

static void compile(const char *target, const blkc_promise *promises, size_t n, const char *head, const char *body)
{
	static char source[8192];
	snprintf(source, sizeof source, "kernel k%s {\n%s\n}\n", head, body);
	compile_text(source, target, promises, n, BLKC_EMIT_LAYOUT | BLKC_EMIT_PTX);
}

/* How often a word stands in a text, and what that promises. */
typedef struct wording {
	int times;
	const char *word, *promise;
} wording;

static void check_wordings(const char *in, const wording *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int found = count(in, all[i].word);
		if (found != all[i].times)
			fail_msg("%s: `%s` stands there %d times, not %d:\n%s", all[i].promise, all[i].word, found,
				all[i].times, in);
	}
}

#define CHECK(in, ...)                                                                                                 \
	do {                                                                                                           \
		static const wording all[] = {__VA_ARGS__};                                                            \
		check_wordings(in, all, sizeof all / sizeof all[0]);                                                   \
	} while (0)

static void in_order(const char *text, const char *const *order, unsigned n)
{
	const char *at = text;
	for (unsigned i = 0; i < n; i++) {
		at = strstr(at, order[i]);
		if (!at) fail_msg("%s is missing, or not in its place:\n%s", order[i], text);
		at += strlen(order[i]);
	}
}

#define MATRICES "(c: *f16, a: *const f16, m: i32, n: i32) grid(1)"
#define PRODUCT "(c: *f16, a: *const f16, b: *const f16, m: i32, n: i32, k: i32) grid(1)"
#define COPY(shape, index)                                                                                             \
	"let A = tensor(a, [m, n]); let C = tensor(c, [m, n]);\nC.store(" index ", A.load(" index ", " shape "));"
#define ROWS "let A = tensor(a, [m, k]); let B = tensor(b, [k, n]); let C = tensor(c, [m, n]);\n"
#define DOT "s = dot(A.load([i, t], [128, 64]), B.load([t, j], [64, 128]), s);"

static void compile_copy(const char *body)
{
	compile("sm_90a", promised, OF_A_COPY, MATRICES, body);
}

static void compile_product(const char *body)
{
	compile("sm_90a", promised, OF_A_PRODUCT, PRODUCT, body);
}

/* ---- the signature ---- */

/* The host's numbers are the kernel's: narrow arithmetic wraps. */
static void test_host_expressions(void **state)
{
	(void)state;
	compile("sm_90a", promised, 2, "(c: *f16, a: *const f16, m: i32, n: u8, k: i64) grid(1)",
		"let A = tensor(a + 8 * m, [(m + 2147483647) / 2, n.to(i32) - 300, k], "
		"[(m * 1000000).to(i64) * 8, n.to(i64) * 8, 1]);\n"
		"let C = tensor(c, [m, 64]); C.store([0, 0], A.load([0, 0, 0], [1, 64, 64]).reshape([64, 64]));");
	signature *s;
	assert_int_equal(signature_parse(sig, strlen(sig), &s), BLK_OK);
	assert_int_equal(s->nmaps, 2);
	const signature_map *a = s->maps[0].rank == 3 ? &s->maps[0] : &s->maps[1];
	assert_int_equal(a->rank, 3);
	const int32_t m = 5000;
	const uint64_t bits[] = {0, 0x10000, (uint32_t)m, 200, (uint64_t)1 << 33};
	int64_t v;
	assert_true(signature_integer(s, &a->address, bits, 1, &v) && v == 0x10000 + 16 * m);
	assert_true(signature_integer(s, &a->extent[0], bits, 1, &v) && v == INT64_C(1) << 33);
	assert_true(signature_integer(s, &a->extent[1], bits, 1, &v) && v == -100);
	assert_true(signature_integer(s, &a->extent[2], bits, 1, &v));
	assert_int_equal(v, (int32_t)((uint32_t)m + 2147483647u) / 2);
	assert_true(signature_integer(s, &a->stride[1], bits, 1, &v) && v == 200 * 8 * 2);
	assert_true(signature_integer(s, &a->stride[2], bits, 1, &v));
	assert_int_equal(v, (int64_t)(int32_t)((uint32_t)m * 1000000u) * 16);
	signature_free(s);
}

/* A map for each shape of block of each array, in the order of the kernel's parameters for them. */
static void test_maps_of_signature(void **state)
{
	(void)state;
	compile_copy("let A = tensor(a, [m, n]); let C = tensor(c, [m, n]);\n"
		     "let x = A.load([0, 0], [64, 64]); let y = A.load([64, 0], [64, 64]); let z = A.load([0, 0], [32, "
		     "64]);\n"
		     "C.store([0, 0], x + y); C.store([64, 0], x); C.store([0, 64], x + sum(z));");
	CHECK(sig, {1, "\nmap f16 128 64 64 ; p1 ; p3 ; p2 ; ", "two loads of one shape have one map"},
		{1, "\nmap f16 128 64 32 ; p1 ; p3 ; p2 ; ", "another shape has another"},
		{1, "\nmap f16 128 64 64 ; p0 ; p3 ; p2 ; ", "all stores have one"},
		{1, "\nwritten 0\n", "stores by maps write their array"}, {0, "\nwritten 1\n", "loads write nothing"});
	CHECK(ptx, {3, ".param .align 64 .b8 k_param_", "maps are parameters, at 64 bytes"},
		{0, ".local", "maps are not copied"});
	signature *s;
	assert_int_equal(signature_parse(sig, strlen(sig), &s), BLK_OK);
	assert_int_equal(s->nmaps, 3);
	signature_free(s);
	compile("sm_80", promised, OF_A_COPY, MATRICES, COPY("[64, 64]", "[0, 0]"));
	CHECK(sig, {0, "\nmap ", "a target without maps gets none"});
	compile("sm_90a", NULL, 0, MATRICES, COPY("[64, 64]", "[0, 0]"));
	CHECK(sig, {0, "\nmap ", "the launch that keeps no promise has a variant without maps"});
}

/* A table of addresses that is copied ahead is still where they come from. */
static void test_addresses(void **state)
{
	(void)state;
	compile_text("kernel k(c: *f32, a: *const u64, m: i32, n: i32) grid(1) { let T = tensor(a, [m, n]);\n"
		     "for t in range(0, n, 16) { store(T.load([0, t], [32, 16]).to(*f32), 1.0); } }",
		"sm_90a", promised, OF_A_COPY, BLKC_EMIT_LAYOUT);
	assert_non_null(strstr(ir, "multibuffer_read"));
	CHECK(sig, {1, "writes_addresses", "addresses come from one place"},
		{1, "writes_addresses 1\n", "which is the table"});
}

/* ---- blocks ---- */

static void test_copy(void **state)
{
	(void)state;
	compile_copy(COPY("[64, 64]", "[1, 8]"));
	CHECK(ptx, {1, "cp.async.bulk.tensor.2d.shared::cluster.global", "a block comes by one copy"},
		{1, "cp.async.bulk.tensor.2d.global.shared::cta", "and leaves by one"},
		{1, "mbarrier.init", "the load has a barrier"}, {1, "mbarrier.inval", "which ends with it"},
		{2, "\tfence.proxy.async.shared::cta;", "copies see the barrier, and what threads stored"},
		{0, "\tfence.proxy.async;", "nobody but copies accesses global memory"},
		{1, "cp.async.bulk.wait_group.read 0;", "at the end the store has read its scratch"},
		{0, "cp.async.bulk.wait_group 0;", "and may still be on its way"},
		{0, "ld.global", "threads load nothing"}, {0, "st.global", "threads store nothing"},
		{1, ".extern .shared .align 1024", "a swizzle's period begins where slots do"},
		{1, ".version 8.0", "the PTX version is one that has these instructions"});
	compile_copy(COPY("[512, 64]", "[1, 8]"));
	CHECK(ptx, {2, "cp.async.bulk.tensor.2d.shared::cluster.global", "a box has 256 rows at most"});
	compile_copy(COPY("[16, 256]", "[1, 8]"));
	CHECK(ptx, {4, "cp.async.bulk.tensor.2d.global.shared::cta", "each panel of 128 bytes leaves by itself"});
	compile_copy("let A = tensor(a, [m, n]); let C = tensor(c, [m, n]);\n"
		     "C.store([0, 0], dot(A.load([0, 0], [32, 32]), A.load([0, 0], [32, 32])).to(f16));");
	if (!strstr(ptx, "ldmatrix")) fail_msg("operands of mma.sync are not read straight from the block:\n%s", ptx);
}

static void test_stores(void **state)
{
	(void)state;
	compile("sm_90a", promised, OF_A_PRODUCT,
		"(c: *f32, a: *const f16, b: *const f16, m: i32, n: i32, k: i32) grid(1)",
		ROWS "var s = zeros([64, 64], f32);\n"
		     "for t in range(0, k, 64) { s = dot(A.load([0, t], [64, 64]), B.load([t, 0], [64, 64]), s); }\n"
		     "C.store([0, 0], s);");
	CHECK(ptx, {2, "cp.async.bulk.tensor.2d.global.shared::cta", "16 rows of 64 words are two boxes of 32 columns"},
		{1, "cp.async.bulk.commit_group", "no buffer is taken twice: one commit for both copies"});
	/* in a loop the buffers are taken again, and the next tile may be the same one */
	compile_copy("let A = tensor(a, [m, n]); let C = tensor(c, [m, n]);\n"
		     "for t in range(0, m, 64) { C.store([t, 0], dot(A.load([t, 0], [64, 64]), trans(A.load([t, 64], "
		     "[64, 64]))).to(f16)); }");
	CHECK(ptx, {1, "cp.async.bulk.wait_group 0;", "an iteration waits until the last one's copies have happened"},
		{1, "cp.async.bulk.wait_group.read 0;", "the end waits until they have read"},
		{1, "bar.sync", "threads meet for A's blocks alone: no warp waits for another one's copies"});
	compile_copy("let A = tensor(a, [m, n]); let C = tensor(c, [m, n]);\n"
		     "C.store([0, 0], A.load([0, 0], [64, 64])); C.store([64, 0], C.load([0, 0], [64, 64]));\n"
		     "C.store([96, 0], A.load([64, 64], [64, 64]));");
	if (!strstr(ptx, "\tfence.proxy.async;")) fail_msg("threads load what copies write, without a fence:\n%s", ptx);
}

/* ---- products ---- */

static void test_product(void **state)
{
	(void)state;
	compile_product(
		ROWS "let i = program_id(0) * 128; let j = program_id(1) * 128; var s = zeros([128, 128], f32);\n"
		     "for t in range(0, k, 64, num_stages = 4) { " DOT " }\nC.store([i, j], s.to(f16));");
	CHECK(ptx, {4, "mbarrier.init", "each of four slots has a barrier"},
		{0, "mbarrier.inval", "nobody takes their bytes"},
		{2, "bar.sync", "threads meet when the barriers are there, and when a slot is free"},
		{3, "prefetch.tensormap", "all maps are fetched ahead"},
		{1, "mbarrier.try_wait", "an iteration waits for its slot"},
		{4, "mbarrier.arrive.expect_tx", "three iterations are copied in front of the loop, one inside"},
		{0, "ld.shared", "products read shared memory, threads do not"});
	CHECK(ptx, {16, "stmatrix.sync.aligned.m8n8.x4.shared.b16", "a warp stores 32 rows by 128 columns"},
		{4, "cp.async.bulk.tensor.2d.global.shared::cta", "in pieces of 16 rows of 128 bytes"},
		{4, "cp.async.bulk.commit_group", "each is a group"},
		{2, "cp.async.bulk.wait_group.read 1;", "the third and fourth piece take buffers that were read"},
		{1, "cp.async.bulk.wait_group.read 0;", "the end waits for all"},
		{6, "bar.warp.sync", "lanes meet in front of four copies and behind two waits"});
	CHECK(sig, {1, "\nmap f16 128 64 16 ; p0 ; ", "the store's map is of such a piece"},
		{0, "\nmap f16 128 64 128 ; p0 ; ", "and none is of the whole block"});
	/* k may be 0: the first of each kind of product adds only where one came before it */
	CHECK(ptx, {0, "mov.b32 %sum1_0", "no register of a sum is set"},
		{8, ", 1, 1, 0, 1;", "eight products of 64 rows and 16 of k each"},
		{6, ", 1, 1, 1, 0, 1;", "all but the first of k add in any case"});
}

/* Two products of an iteration that share an operand. */
static void test_shared_operand(void **state)
{
	(void)state;
	compile_product(ROWS "var u = zeros([128, 128], f32); var v = zeros([64, 128], f32);\n"
			     "for t in range(0, k, 64, num_stages = 4) { let y = B.load([t, 0], [64, 128]);\n"
			     "u = dot(A.load([0, t], [128, 64]), y, u); v = dot(A.load([128, t], [64, 64]), y, v); }\n"
			     "C.store([0, 0], u); C.store([128, 0], v);");
	CHECK(ptx, {1, "wgmma.fence", "one fence is in front of both"},
		{1, "wgmma.wait_group.sync.aligned 0;", "one wait is behind both"},
		{0, "st.shared.v", "sums are stored as matrices"});
	compile_product(
		ROWS "var u = zeros([64, 64], f32); var v = zeros([64, 64], f32);\n"
		     "for t in range(0, k, 64) { let y = B.load([t, 0], [64, 64]);\n"
		     "u = dot(A.load([0, t], [64, 64]), y, u); v = dot(A.load([64, t], [64, 64]) * 2.0, y, v); }\n"
		     "C.store([0, 0], u); C.store([64, 0], v);");
	CHECK(ptx, {2, "wgmma.fence", "words of an operand are written in front of the second one"});
}

/* Products of all tiles, one after the other; `behind` is done with the sum. */
static void compile_tiles(const char *options, const char *behind)
{
	char head[256], text[2048];
	snprintf(head, sizeof head,
		"(c: *f16, a: *const f16, b: *const f16, m: i32, n: i32, k: i32, x: *const f32, y: *const f32) grid(2) "
		"options(%s)",
		options);
	snprintf(text, sizeof text,
		ROWS "let across = cdiv(n, 128);\n"
		     "for u in range(program_id(0), cdiv(m, 128) * across, num_programs(0)) {\n"
		     "let i = u / across * 128; let j = u %% across * 128; var s = zeros([128, 128], f32);\n"
		     "for t in range(0, k, 64, num_stages = 3) { " DOT " }\n%s C.store([i, j], s.to(f16)); }",
		behind);
	compile("sm_90a", promised, OF_A_PRODUCT, head, text);
}

static void test_producer(void **state)
{
	(void)state;
	compile_tiles("num_warps = 8", "");
	CHECK(sig, {1, "\nthreads 288\n", "eight warps and the one that copies"});
	CHECK(ptx, {1, ".reqntid 288", "which the kernel requires"},
		{0, "setmaxnreg", "64 sums a thread: there are registers enough"},
		{1, "popc.b32", "divisions behind the loop are held in front of the wait"},
		{1, "%sum1_0;", "sums are read"}, {0, "mov.b32 %sum1_0", "and never set: each begins with a product"});
	assert_int_equal(
		count(ptx, "bar.sync \t0;") + count(ptx, "bar.sync 0;") + count(ptx, "barrier.sync.aligned 0;"),
		1); /* of all threads: the barriers are there */
	assert_true(count(ptx, "\tmov.b32 ") < 3 * 64);
	const char *const held[] = {"popc.b32", "wgmma.wait_group.sync.aligned 0"};
	in_order(ptx, held, 2);
	compile_tiles("num_warps = 4", "");
	CHECK(sig, {1, "\nthreads 160\n", "four warps and the one that copies"});
	CHECK(ptx, {0, "setmaxnreg", "128 sums a thread of five warps: there are enough"});
	/* scales: both are on their way while the last products run */
	compile_tiles("num_warps = 4", "s *= load(x + i + arange(0, 128), mask = i + arange(0, 128) < m)[:, None] * "
				       "load(y + j + arange(0, 128))[None, :];");
	const char *const ahead[] = {"wgmma.mma_async", "wgmma.wait_group.sync.aligned 1", "ld.global.nc",
		"ld.global.nc", "wgmma.wait_group.sync.aligned 0"};
	in_order(ptx, ahead, sizeof ahead / sizeof ahead[0]);
}

/* A matrix of a batch is a product's operand as one that is alone, and so is what is stored. */
static void test_batches(void **state)
{
	(void)state;
	compile_product("let A = tensor(a, [m, m, k]); let B = tensor(b, [m, k, n]); let C = tensor(c, [m, m, n]);\n"
			"for u in range(program_id(0), m * m, num_programs(0)) {\n"
			"let z = u / m; let i = u % m * 128; let j = 128; var s = zeros([128, 128], f32);\n"
			"for t in range(0, k, 64, num_stages = 3) { s = dot(A.load([z, i, t], [1, 128, "
			"64]).reshape([128, 64]), B.load([z, t, j], [1, 64, 128]).reshape([64, 128]), s); }\n"
			"C.store([z, i, j], s.reshape([1, 128, 128])); }");
	CHECK(ptx, {4, "cp.async.bulk.tensor.3d.global.shared::cta", "a warp's four pieces are of one matrix"},
		{3, "cp.async.bulk.tensor.3d.shared::cluster.global", "one copy for a, two panels for b"});
	CHECK(sig, {1, "\nmap f16 128 64 16 1 ; p0 ; ", "the store's box is one matrix thick"});
}

/* ---- clusters ---- */

/* Tile number t of programs that form clusters of two: `order` says what i and j are. */
static void compile_cluster(const char *order, const char *loops)
{
	char text[2048];
	snprintf(text, sizeof text,
		ROWS "let p = program_id(0); %s\nvar s = zeros([128, 128], f32);\n%s\nC.store([i, j], s.to(f16));",
		order, loops);
	compile("sm_90a", promised, OF_A_PRODUCT,
		"(c: *f16, a: *const f16, b: *const f16, m: i32, n: i32, k: i32, ticket: *i32) grid(2) "
		"options(num_ctas = 2)",
		text);
}

#define ROUNDS "for t in range(0, k, 64) {" DOT "}"
static const wording of_a_cluster[] = {{2, ".multicast::cluster [", "both operands' blocks go to both programs"},
	{2, "barrier.cluster.wait", "both kinds of warps wait until neighbours have set up their barriers"},
	{0, "fence.acq_rel", "no fence of all memory"}};

static void test_clusters(void **state)
{
	(void)state;
	compile_cluster("let i = p % 4 * 128; let j = p / 4 * 128;", ROUNDS);
	check_wordings(ptx, of_a_cluster, 3);
	CHECK(sig, {1, "cluster 2\n", "the launch makes clusters"},
		{1, " 64 64 ; p1 ;", "of a's 128 rows a program brings half"});
	compile_cluster("let i = p * 128; let j = atomic_add(ticket, 1) * 128;", ROUNDS);
	CHECK(ptx, {0, "multicast", "no producer draws a ticket: each program copies for itself"},
		{0, "barrier.cluster", "and waits for no other"});
	CHECK(sig, {0, "cluster 2\n", "nobody needs a cluster"});
	/* a loop behind another one, for whose multibuffer there is no room: it makes its copies by itself */
	compile_cluster("let i = p * 128; let j = 0;", ROUNDS ROUNDS);
	CHECK(ptx, {1, "barrier.cluster.arrive.relaxed.aligned", "all programs are there once, at the beginning"});
	compile_tiles("num_warps = 8, num_ctas = 2", "");
	check_wordings(ptx, of_a_cluster, 3);
	CHECK(sig, {1, "cluster 2\n", "the launch makes clusters"});
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_host_expressions),
		cmocka_unit_test(test_maps_of_signature), cmocka_unit_test(test_addresses), cmocka_unit_test(test_copy),
		cmocka_unit_test(test_stores), cmocka_unit_test(test_product), cmocka_unit_test(test_shared_operand),
		cmocka_unit_test(test_producer), cmocka_unit_test(test_batches), cmocka_unit_test(test_clusters)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
