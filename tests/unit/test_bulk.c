/* Tensors by tensor maps: which accesses take them, what the signature says about them, and what the code looks like.
 */
#include "runtime/package/signature.h"
#include "compiled.h"

static const blkc_promise promised[] = {{"c", 16, 0}, {"a", 16, 0}, {"n", 16, 0}};

static void compile(
	const char *target, const blkc_promise *promises, size_t n, const char *parameters, const char *body)
{
	static char source[8192];
	snprintf(source, sizeof source, "kernel k(%s) grid(1) {\n%s\n}\n", parameters, body);
	compile_text(source, target, promises, n, BLKC_EMIT_LAYOUT | BLKC_EMIT_PTX);
}

/* Operations that directly follow each other. */
static int pairs(const char *first, const char *second)
{
	int n = 0;
	for (const char *at = ir; (at = strstr(at, first));) {
		at += strlen(first);
		n += strncmp(at + strspn(at, " \t\n"), second, strlen(second)) == 0;
	}
	return n;
}

#define PARAMETERS "c: *f16, a: *const f16, m: i32, n: i32"
#define COPY(shape, index)                                                                                             \
	"let A = tensor(a, [m, n]); let C = tensor(c, [m, n]);\nC.store(" index ", A.load(" index ", " shape "));"

static void takes(const char *body, int loads, int stores)
{
	compile("sm_90a", promised, 3, PARAMETERS, body);
	if (count(ir, " = bulk_load ") != loads || count(ir, "bulk_store ") != stores)
		fail_msg("%s\nhas not %d and %d bulk copies:\n%s", body, loads, stores, ir);
	signature *s;
	assert_int_equal(signature_parse(sig, strlen(sig), &s), BLK_OK);
	assert_int_equal(s->nmaps, count(ir, " = tensor_map "));
	signature_free(s);
}

static void test_what_takes_maps(void **state)
{
	(void)state;
	takes(COPY("[64, 64]", "[program_id(0) * 64, program_id(1) * 64]"), 1, 1);
	takes(COPY("[64, 64]", "[m + 5, 8]"), 1, 1);
	takes(COPY("[64, 64]", "[0, -8]"), 1, 0); /* a store in front of the array */
	takes(COPY("[64, 64]", "[program_id(0) - 1, 0]"), 1, 0);
	takes(COPY("[64, 64]", "[m - 5, 0]"), 1, 1); /* the host will see */
#define WALK(promise)                                                                                                  \
	"let C = tensor(c, [m, n]); var r = program_id(0); while r < m {" promise                                      \
	" C.store([r, 0], full([64, 64], 1.0, f16)); r += 7 - program_id(1); }"
	takes(WALK(""), 0, 0); /* may walk back */
	takes(WALK(" assume(r >= 0);"), 0, 1);
	takes(COPY("[64, 64]", "[m - 5, -3]"), 0, 0); /* no 16 bytes */
	takes(COPY("[64, 64]", "[0, program_id(0) * 4]"), 0, 0);
	takes(COPY("[1, 8]", "[0, 0]"), 1, 1);
	takes(COPY("[512, 64]", "[0, 0]"), 1, 1);
	takes(COPY("[64, 64]", "[program_id(0).to(i64), 0]"), 1, 1);
	takes(COPY("[64, 64]", "[program_id(0).to(i64) * 64, 0]"), 0, 0); /* may not be an i32 */
	takes(COPY("[64, 4]", "[0, 0]"), 0, 0);                           /* 8 bytes */
	takes(COPY("[4, 2048]", "[0, 0]"), 0, 0);                         /* too many copies */
	takes(COPY("[1024, 64]", "[0, 0]"), 0, 0);                        /* too much */
	takes("let A = tensor(a, [n]); let C = tensor(c, [n]);\nC.store([0], A.load([0], [64]));", 0, 0);
	/* a stride of m halves may be anything */
	takes("let A = tensor(a, [n, m]); let C = tensor(c, [n, n]);\nC.store([0, 0], A.load([0, 0], [64, 64]));", 0,
		1);
	/* but m * 8 halves are 16 bytes */
	takes("let A = tensor(a, [n, m], [m * 8, 1]); let C = tensor(c, [n, n]);\nC.store([0, 0], A.load([0, 0], [64, "
	      "64]));",
		1, 1);
	/* a transposed array, and rank 3 */
	takes("let A = tensor(a, [m, n], [1, n]); let C = tensor(c, [m, n]);\nC.store([0, 0], A.load([0, 0], [64, "
	      "32]));",
		1, 1);
	takes("let A = tensor(a, [m, m, n]); let C = tensor(c, [m, m, n]);\n"
	      "C.store([0, 0, 0], A.load([1, 2, 8], [2, 16, 32]));",
		1, 1);
	/* a matrix of a batch, wherever the batch's dimension stands */
	takes("let A = tensor(a, [m, m, n]); let C = tensor(c, [m, n]);\n"
	      "C.store([0, 0], A.load([1, 2, 8], [1, 16, 32]).reshape([16, 32]));",
		1, 1);
	assert_int_equal(count(sig, "\nmap f16 64 32 16 1 ; p1 ; p3 ; p2 ; p2 ; "), 1);
	takes("let A = tensor(a, [m, m, n]); let C = tensor(c, [m, m, m, n]);\n"
	      "C.store([1, 2, 3, 0], A.load([1, 2, 8], [16, 1, 32]).reshape([16, 1, 1, 32]));",
		1, 1);
	assert_int_equal(count(sig, "\nmap f16 64 32 16 1 ; p1 ; p3 ; p2 ; p2 ; 1 p3 * 2 * ; "), 0);
	/* the base moves by what the host knows, or does not */
	takes("let A = tensor(a + 64 * n, [m, n]); let C = tensor(c, [m, n]);\nC.store([0, 0], A.load([0, 0], [64, "
	      "32]));",
		1, 1);
	takes("let A = tensor(a + program_id(0) * 64 * n, [m, n]); let C = tensor(c, [m, n]);\n"
	      "C.store([0, 0], A.load([0, 0], [64, 32]));",
		0, 1);
	takes("let A = tensor(a + 1, [m, n]); let C = tensor(c, [m, n]);\nC.store([0, 0], A.load([0, 0], [64, 32]));",
		0, 1);
	/* memory that may change is loaded in order */
	takes("let C = tensor(c, [m, n]);\nC.store([0, 0], C.load([0, 0], [64, 32]));", 0, 1);
	takes("let C = tensor(c, [m, n]);\nC.atomic_add([0, 0], full([64, 32], 1.0, f16));", 0, 0);
}

static void none(const char *target, const blkc_promise *promises, size_t n)
{
	compile(target, promises, n, PARAMETERS, COPY("[64, 64]", "[0, 0]"));
	assert_int_equal(count(ir, "bulk_"), 0);
	assert_int_equal(count(sig, "map "), 0);
}

static void test_who_takes_maps(void **state)
{
	(void)state;
	none("sm_80", promised, 3);
	none("sm_89", promised, 3);
	none("sm_90a", NULL, 0);
	none("sm_90a", promised, 2); /* the stride */
	const blkc_promise less[] = {{"c", 8, 0}, {"a", 8, 0}, {"n", 16, 0}};
	none("sm_90a", less, 3);
	for (unsigned i = 0; i < 3; i++) {
		static const char *const targets[] = {"sm_90", "sm_100a", "sm_120a"};
		compile(targets[i], promised, 3, PARAMETERS, COPY("[64, 64]", "[0, 0]"));
		assert_int_equal(count(ir, "bulk_load") + count(ir, "bulk_store"), 2);
	}
	/* what only a hint says has no way out where the launch does not keep it */
	compile("sm_90a", NULL, 0, PARAMETERS,
		"let A = tensor(multiple_of(a, 16), [m, 64]); let C = tensor(c, [m, 64]);\n"
		"C.store([0, 0], A.load([0, 0], [64, 64]));");
	assert_int_equal(count(ir, "bulk_"), 0);
}

/* The host's numbers are the kernel's: narrow arithmetic wraps. */
static void test_host_expressions(void **state)
{
	(void)state;
	compile("sm_90a", promised, 2, "c: *f16, a: *const f16, m: i32, n: u8, k: i64",
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

static void test_maps_are_merged(void **state)
{
	(void)state;
	compile("sm_90a", promised, 3, PARAMETERS,
		"let A = tensor(a, [m, n]); let C = tensor(c, [m, n]);\n"
		"let x = A.load([0, 0], [64, 64]); let y = A.load([64, 0], [64, 64]); let z = A.load([0, 0], [32, "
		"64]);\n"
		"C.store([0, 0], x + y); C.store([64, 0], x); C.store([0, 64], x + sum(z));");
	assert_int_equal(count(sig, "\nmap f16 128 64 64 ; p1 ; p3 ; p2 ; "), 1);
	assert_int_equal(count(sig, "\nmap f16 128 64 32 ; p1 ; p3 ; p2 ; "), 1);
	assert_int_equal(count(sig, "\nwritten 0\n"), 1);
	assert_int_equal(count(sig, "\nwritten 1\n"), 0);
	assert_int_equal(count(ptx, ".param .align 64 .b8 k_param_"), 3);
	assert_int_equal(count(ptx, ".local"), 0); /* no copy of a map */
}

static void test_pieces(void **state)
{
	(void)state;
	compile("sm_90a", promised, 3, PARAMETERS, COPY("[64, 64]", "[1, 8]"));
	assert_int_equal(count(ptx, "cp.async.bulk.tensor.2d.shared::cluster.global"), 1);
	assert_int_equal(count(ptx, "cp.async.bulk.tensor.2d.global.shared::cta"), 1);
	assert_int_equal(count(ptx, "mbarrier.init"), 1);
	assert_int_equal(count(ptx, "mbarrier.inval"), 1);
	assert_int_equal(count(ptx, "\tfence.proxy.async.shared::cta;"), 2);
	assert_int_equal(count(ptx, "\tfence.proxy.async;"), 0);
	assert_int_equal(count(ptx, "cp.async.bulk.wait_group.read 0;"), 1); /* the end */
	assert_int_equal(count(ptx, "cp.async.bulk.wait_group 0;"), 0);
	assert_non_null(strstr(ptx, ".extern .shared .align 1024"));
	assert_non_null(strstr(ptx, ".version 8.0"));
	assert_int_equal(count(ptx, "ld.global"), 0);
	assert_int_equal(count(ptx, "st.global"), 0);
	compile("sm_90a", promised, 3, PARAMETERS, COPY("[512, 64]", "[1, 8]")); /* boxes end at 256 */
	assert_int_equal(count(ptx, "cp.async.bulk.tensor.2d.shared::cluster.global"), 2);
	compile("sm_90a", promised, 3, PARAMETERS, COPY("[16, 256]", "[1, 8]")); /* panels of 128 bytes */
	assert_int_equal(count(ptx, "cp.async.bulk.tensor.2d.global.shared::cta"), 4);
	compile("sm_90a", promised, 3, "c: *f16, a: *const f16, m: i32, n: i32",
		"let A = tensor(a, [m, n]); let C = tensor(c, [m, n]);\n"
		"C.store([0, 0], dot(A.load([0, 0], [32, 32]), A.load([0, 0], [32, 64])).to(f16));");
	assert_true(count(ptx, "ldmatrix") > 0); /* operands straight from the block */
	assert_int_equal(count(ir, "convert_layout"), 0);
}

/* A product's loop: parts of C of BM x BN by four or eight warps. */
static void product(const char *tensors, const char *a, const char *b, const char *range)
{
	static const blkc_promise all[] = {{"c", 16, 0}, {"a", 16, 0}, {"b", 16, 0}, {"n", 16, 0}, {"k", 16, 0}};
	char body[2048];
	snprintf(body, sizeof body,
		"%s let C = tensor(c, [m, n]); let i = program_id(0) * 128; let j = program_id(1) * 128;\n"
		"var s = zeros([128, 128], f32);\nfor t in range(%s) { s = dot(%s, %s, s); }\nC.store([i, j], "
		"s.to(f16));",
		tensors, range, a, b);
	compile("sm_90a", all, 5, "c: *f16, a: *const f16, b: *const f16, m: i32, n: i32, k: i32", body);
}

/* A table of addresses that is copied ahead is still where they come from. */
static void test_addresses(void **state)
{
	(void)state;
	compile("sm_90a", promised, 3, "c: *f32, a: *const u64, m: i32, n: i32",
		"let T = tensor(a, [m, n]);\n"
		"for t in range(0, n, 16) { store(T.load([0, t], [32, 16]).to(*f32), 1.0); }");
	assert_int_equal(count(ir, "multibuffer_read"), 1);
	assert_int_equal(count(sig, "writes_addresses"), 1);
	assert_int_equal(count(sig, "writes_addresses 1\n"), 1);
}

#define ROWS "let A = tensor(a, [m, k]); let B = tensor(b, [k, n]);"

static void test_multibuffers(void **state)
{
	(void)state;
	product(ROWS, "A.load([i, t], [128, 64])", "B.load([t, j], [64, 128])", "0, k, 64, num_stages = 4");
	assert_int_equal(count(ir, "multibuffer {stages=4 swizzle=128 fast=1}"), 2);
	assert_int_equal(count(ir, "mbarriers {count=4 arrivals=1 proxy=shared}"), 1);
	assert_int_equal(count(ir, "mbarrier_expect"), 4); /* three iterations in front, one inside */
	assert_int_equal(count(ir, "{bytes=32768}"), 4);
	assert_int_equal(count(ir, "bulk_copy"), 8);
	assert_int_equal(count(ir, "bulk_load"), 0);
	assert_int_equal(count(ir, "async_"), 0);
	assert_int_equal(count(ir, "multibuffer_read"), 0);
	assert_int_equal(count(ir, "convert_layout"), 0);
	assert_int_equal(count(ir, "mbarrier_wait "), 1);
	assert_int_equal(count(ir, "wgmma_wait {pending=1}"), 1);       /* products stay in flight */
	assert_int_equal(count(ir, "cta_barrier"), 2);                  /* the mbarriers are there; a slot is free */
	assert_true(strstr(ir, "cta_barrier") < strstr(ir, " = for ")); /* behind the first copies */
	assert_true(strstr(ir, "cta_barrier") > strstr(ir, "bulk_copy"));
	assert_true(strstr(ir, " = mbarriers") < strstr(ir, "program_id")); /* while addresses are computed */
	const char *loop = strstr(ir, " = for ");
	assert_non_null(loop);
	const char *order[] = {"mbarrier_wait", " = wgmma ", "wgmma_wait {pending=1}", "cta_barrier", "mbarrier_expect",
		"bulk_copy", "yield", "mbarriers_end", "bulk_store", "bulk_wait {read=1}", "return"};
	for (unsigned i = 0; i < sizeof order / sizeof order[0]; i++)
		if (!(loop = strstr(loop, order[i]))) fail_msg("%s is missing, or not in its place:\n%s", order[i], ir);
	assert_int_equal(count(ir, "{stays=1}"), 1);
	assert_int_equal(count(ptx, "mbarrier.init"), 4);
	assert_int_equal(count(ptx, "mbarrier.inval"), 0); /* nobody takes their bytes */
	assert_int_equal(count(ptx, "bar.sync"), 2);
	assert_int_equal(count(ptx, "prefetch.tensormap"), 3);
	assert_int_equal(count(ptx, "mbarrier.try_wait"), 1);
	assert_int_equal(count(ptx, "mbarrier.arrive.expect_tx"), 4);
	assert_int_equal(count(ptx, "ld.shared"), 0);
	/* operands that lie across, read as they lie */
	product("let A = tensor(a, [m, k]); let B = tensor(b, [k, n], [1, k]);", "A.load([i, t], [128, 64])",
		"B.load([t, j], [64, 128])", "0, k, 64");
	assert_int_equal(count(ir, "transposed=2"), 1);
	assert_int_equal(count(ir, "multibuffer_read"), 0);
	product(ROWS, "A.load([i, t], [128, 64])", "trans(trans(B.load([t, j], [64, 128])))", "0, k, 64");
	assert_int_equal(count(ir, "multibuffer_read"), 0);
	/* one operand by pointers that are no window, as they may begin anywhere: its copies run beside */
	product(ROWS, "A.load([i, t], [128, 64])",
		"load(b + (t - i + arange(0, 64))[:, None] * n + j + arange(0, 128)[None, :])", "0, k, 64");
	assert_int_equal(count(ir, "mbarrier_wait "), 1);
	assert_int_equal(
		count(ir, "async_wait"), 1); /* an iteration's: behind the loop all copies have been waited for */
	assert_int_equal(count(ir, "multibuffer_read"), 0);
	/* what is read by threads: no product */
	compile("sm_90a", promised, 3, PARAMETERS,
		"let A = tensor(a, [m, n]); let C = tensor(c, [m, n]); var s = zeros([2, 16, 64], f16);\n"
		"let T = tensor(a, [m, m, n]);\n"
		"for t in range(0, n, 64) { s += T.load([0, 0, t], [2, 16, 64]); }\n"
		"C.store([0, 0], reshape(s, [32, 64]));");
	assert_int_equal(count(ir, "multibuffer_read"), 1);
	assert_int_equal(count(ir, "bulk_load"), 0);
	/* not ahead, then not by copies: one stage, a step that is not known, a while, a branch */
	product(ROWS, "A.load([i, t], [128, 64])", "B.load([t, j], [64, 128])", "0, k, 64, num_stages = 1");
	assert_int_equal(count(ir, "bulk_copy") + count(ir, "bulk_load"), 0);
	product(ROWS, "A.load([i, t], [128, 64])", "B.load([t, j], [64, 128])", "0, k, m");
	assert_int_equal(count(ir, "bulk_copy") + count(ir, "bulk_load"), 0);
}

/* Two products of an iteration that share an operand: it comes once, and both stay in flight. */
static void test_shared_operand(void **state)
{
	static const blkc_promise all[] = {{"c", 16, 0}, {"a", 16, 0}, {"b", 16, 0}, {"n", 16, 0}, {"k", 16, 0}};
	static const char *const parts[][2] = {/* upper and lower rows; left and right columns, which differ in width */
		{"let y = B.load([t, 0], [64, 128]); u = dot(A.load([0, t], [128, 64]), y, u); v = dot(A.load([128, "
		 "t], [64, "
		 "64]), y, v);",
			"var u = zeros([128, 128], f32); var v = zeros([64, 128], f32);"},
		{"let x = A.load([0, t], [128, 64]); u = dot(x, B.load([t, 0], [64, 128]), u); v = dot(x, B.load([t, "
		 "128], [64, "
		 "64]), v);",
			"var u = zeros([128, 128], f32); var v = zeros([128, 64], f32);"}};
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		char body[1024];
		snprintf(body, sizeof body,
			ROWS " let C = tensor(c, [m, n]); %s\nfor t in range(0, k, 64, num_stages = 4) { %s }\n"
			     "C.store([0, 0], u); C.store([%u, %u], v);",
			parts[i][1], parts[i][0], i ? 0 : 128, i ? 128 : 0);
		compile("sm_90a", all, 5, "c: *f16, a: *const f16, b: *const f16, m: i32, n: i32, k: i32", body);
		assert_int_equal(count(ir, " = multibuffer {stages=4"), 3);
		assert_int_equal(count(ir, "bulk_copy"), 4 * 3);
		assert_int_equal(count(ir, "bulk_load"), 0);
		assert_int_equal(count(ir, "multibuffer_read"), 0);
		assert_int_equal(count(ir, " = wgmma "), 2);
		assert_int_equal(count(ir, "wgmma_wait {pending=2}"), 1);
		assert_int_equal(count(ptx, "wgmma.fence"), 1); /* in front of both, and one wait behind them */
		assert_int_equal(count(ptx, "wgmma.wait_group.sync.aligned 0;"), 1);
		assert_int_equal(count(ir, "cta_barrier"), 2);        /* of the multibuffer, and none for the stores: */
		assert_int_equal(count(ir, "bulk_wait {read=1}"), 1); /* the second one's scratch is its own */
		assert_int_equal(count(ir, "bulk_wait\n"), 0);
		assert_int_equal(count(ptx, "st.shared.v"), 0);
	}
	/* one of them takes it transposed */
	compile("sm_90a", all, 5, "c: *f16, a: *const f16, b: *const f16, m: i32, n: i32, k: i32",
		ROWS " let C = tensor(c, [m, n]); var u = zeros([64, 64], f32); var v = zeros([64, 64], f32);\n"
		     "for t in range(0, k, 64) { let y = B.load([t, 0], [64, 64]); u = dot(A.load([0, t], [64, 64]), "
		     "y, u);\n"
		     "v = dot(A.load([64, t], [64, 64]), trans(y), v); }\nC.store([0, 0], u); C.store([64, 0], v);");
	assert_int_equal(count(ir, "multibuffer_read"), 0);
	assert_int_equal(count(ir, "wgmma_wait {pending=2}"), 1);
	/* words of an operand are written in front of the second one, too: its own fence */
	compile("sm_90a", all, 5, "c: *f16, a: *const f16, b: *const f16, m: i32, n: i32, k: i32",
		ROWS " let C = tensor(c, [m, n]); var u = zeros([64, 64], f32); var v = zeros([64, 64], f32);\n"
		     "for t in range(0, k, 64) { let y = B.load([t, 0], [64, 64]); u = dot(A.load([0, t], [64, 64]), "
		     "y, u);\n"
		     "v = dot(A.load([64, t], [64, 64]) * 2.0, y, v); }\nC.store([0, 0], u); C.store([64, 0], v);");
	assert_int_equal(count(ir, " = wgmma "), 2);
	assert_int_equal(count(ptx, "wgmma.fence"), 2);
	/* a product, and something that takes the numbers themselves: through registers */
	compile("sm_90a", all, 5, "c: *f16, a: *const f16, b: *const f16, m: i32, n: i32, k: i32",
		ROWS " let C = tensor(c, [m, n]); var u = zeros([64, 64], f32); var v = zeros([64, 64], f16);\n"
		     "for t in range(0, k, 64) { let y = B.load([t, 0], [64, 64]); u = dot(A.load([0, t], [64, 64]), "
		     "y, u);\n"
		     "v += y; }\nC.store([0, 0], u); C.store([64, 0], v);");
	assert_int_equal(count(ir, "multibuffer_read"), 1);
}

/* The sum of a product leaves by warps: 16 rows of 128 bytes at once, through two buffers a warp. */
static void test_stores(void **state)
{
	(void)state;
	product(ROWS, "A.load([i, t], [128, 64])", "B.load([t, j], [64, 128])", "0, k, 64, num_stages = 4");
	assert_int_equal(count(sig, "\nmap f16 128 64 16 ; p0 ; "), 1);
	assert_int_equal(count(ir, "by_warps=1"), 1);
	assert_int_equal(
		count(ptx, "stmatrix.sync.aligned.m8n8.x4.shared.b16"), 16); /* 32 rows by 128 columns a warp */
	assert_int_equal(count(ptx, "cp.async.bulk.tensor.2d.global.shared::cta"), 4);
	assert_int_equal(count(ptx, "cp.async.bulk.commit_group"), 4);
	assert_int_equal(count(ptx, "cp.async.bulk.wait_group.read 1;"), 2); /* the third and the fourth piece */
	assert_int_equal(count(ptx, "cp.async.bulk.wait_group.read 0;"), 1);
	assert_int_equal(count(ptx, "bar.warp.sync"), 6);
	/* no buffer is taken twice: one commit for both copies */
	static const blkc_promise all[] = {{"c", 16, 0}, {"a", 16, 0}, {"b", 16, 0}, {"n", 16, 0}, {"k", 16, 0}};
	compile("sm_90a", all, 5, "c: *f32, a: *const f16, b: *const f16, m: i32, n: i32, k: i32",
		ROWS " let C = tensor(c, [m, n]); var s = zeros([64, 64], f32);\n"
		     "for t in range(0, k, 64) { s = dot(A.load([0, t], [64, 64]), B.load([t, 0], [64, 64]), s); }\n"
		     "C.store([0, 0], s);");
	assert_int_equal(count(ptx, "cp.async.bulk.tensor.2d.global.shared::cta"), 2);
	assert_int_equal(count(ptx, "cp.async.bulk.commit_group"), 1);
	/* in a loop the buffers are taken again, and the next tile may be the same one */
	compile("sm_90a", promised, 3, PARAMETERS,
		"let A = tensor(a, [m, n]); let C = tensor(c, [m, n]);\n"
		"for t in range(0, m, 64) { C.store([t, 0], dot(A.load([t, 0], [64, 64]), trans(A.load([t, 64], [64, "
		"64]))).to(f16)); }");
	assert_int_equal(count(ir, "by_warps=1"), 1);
	assert_int_equal(pairs("bulk_wait", "cta_barrier"), 1);
	assert_int_equal(pairs("cta_barrier", "bulk_store"), 1);
	assert_int_equal(pairs("bulk_wait {read=1}", "return"), 1);
	assert_int_equal(
		count(ptx, "cp.async.bulk.wait_group.read 0;"), 1); /* at the end; before it the other wait serves */
	assert_int_equal(count(ptx, "cp.async.bulk.wait_group 0;"), 1);
	/* what a load may see has happened; its place in shared memory is somebody else's only then */
	compile("sm_90a", promised, 3, PARAMETERS,
		"let A = tensor(a, [m, n]); let C = tensor(c, [m, n]);\n"
		"C.store([0, 0], A.load([0, 0], [64, 64])); C.store([64, 0], C.load([0, 0], [64, 64]));\n"
		"C.store([96, 0], A.load([64, 64], [64, 64]));");
	assert_int_equal(pairs("bulk_wait", "cta_barrier"), 2);
	assert_int_equal(pairs("bulk_wait {read=1}", "return"), 1);
	assert_true(count(ptx, "\tfence.proxy.async;") > 0); /* threads load what copies write */
}

/* Waits for what is being copied between two stores of blocks of 64 x 64, and all of shared memory. */
static int waits_between(const char *tensor, const char *first, const char *second)
{
	char body[1024];
	snprintf(body, sizeof body,
		"let A = tensor(a, [m, n]); let C = %s; let i = program_id(0) * 8; let j = program_id(1) * 8;\n"
		"let x = A.load([i, j], [64, 64]); let y = A.load([j, i], [64, 64]);\nC.store(%s, x); C.store(%s, y);",
		tensor, first, second);
	compile("sm_90a", promised, 3, PARAMETERS, body);
	assert_int_equal(count(ir, "bulk_store"), 2);
	return count(ir, "bulk_wait\n");
}

/* Blocks of one matrix that lie apart are copied at the same time, from places of their own. */
static void test_stores_apart(void **state)
{
	(void)state;
	const char *matrix = "tensor(c, [m, n])";
	assert_int_equal(waits_between(matrix, "[i, j]", "[i + 64, j]"), 0);
	assert_int_equal(waits_between(matrix, "[i, j + 64]", "[i, j]"), 0);
	assert_int_equal(waits_between(matrix, "[i, 0]", "[j, 64]"), 0);
	assert_int_equal(waits_between(matrix, "[i + 8, j]", "[i + 71, j]"), 1); /* a row in common */
	assert_int_equal(waits_between(matrix, "[i + 63, j]", "[i, j]"), 1);
	assert_int_equal(waits_between(matrix, "[i, j]", "[j + 64, i + 64]"), 1);
	assert_int_equal(waits_between(matrix, "[i, j]", "[i + i + 64, j]"), 1);
	/* rows that are not as far apart as they are long, for all that is known; that are further apart */
	assert_int_equal(waits_between("tensor(c, [m, n], [n * 8, 1])", "[i, j]", "[i + 64, j]"), 1);
	assert_int_equal(waits_between("tensor(c, [m, m], [n, 1])", "[i, j]", "[i + 64, j]"), 1);
	/* round a loop the value in common is another one */
	compile("sm_90a", promised, 3, PARAMETERS,
		"let A = tensor(a, [m, n]); let C = tensor(c, [m, n]);\n"
		"for i in range(0, m, 64) { let x = A.load([i, 0], [64, 64]); C.store([i, 0], x); C.store([i + 64, 0], "
		"x); }");
	assert_int_equal(count(ir, "bulk_wait\n"), 1);
}

/* Products of all tiles, one after the other. */
static void persistent(const char *options, const char *around, const char *body)
{
	static const blkc_promise all[] = {{"c", 16, 0}, {"a", 16, 0}, {"b", 16, 0}, {"n", 16, 0}, {"k", 16, 0}};
	char text[2048];
	snprintf(text, sizeof text,
		ROWS "let C = tensor(c, [m, n]); let across = cdiv(n, 128);\n%s {\n"
		     "let i = u / across * 128; let j = u %% across * 128;\nvar s = zeros([128, 128], f32);\n"
		     "for t in range(0, k, 64, num_stages = 3) { %s }\nC.store([i, j], s.to(f16));\n%s",
		around, body,
		strstr(around, "while") ? "u += num_programs(0); }"
		: strstr(around, "if")  ? "} }"
					: "}");
	char parameters[256];
	snprintf(parameters, sizeof parameters,
		"c: *f16, a: *const f16, b: *const f16, m: i32, n: i32, k: i32, table: *const i32, ticket: *i32) %s "
		"{//",
		options);
	compile("sm_90a", all, 5, parameters, text);
}

#define DOT "s = dot(A.load([i, t], [128, 64]), B.load([t, j], [64, 128]), s);"
#define ALL "for u in range(program_id(0), cdiv(m, 128) * across, num_programs(0))"

static void batched(const char *loads)
{
	static const blkc_promise all[] = {{"c", 16, 0}, {"a", 16, 0}, {"b", 16, 0}, {"n", 16, 0}, {"k", 16, 0}};
	char text[2048];
	snprintf(text, sizeof text,
		"let A = tensor(a, [m, m, k]); let B = tensor(b, [m, k, n]); let C = tensor(c, [m, m, n]);\n"
		"for u in range(program_id(0), m * m, num_programs(0)) {\nlet z = u / m; let i = u %% m * 128; let j = "
		"128;\n"
		"var s = zeros([128, 128], f32);\nfor t in range(0, k, 64, num_stages = 3) { s = dot(%s, s); }\n"
		"C.store([z, i, j], s.reshape([1, 128, 128])); }",
		loads);
	compile("sm_90a", all, 5, "c: *f16, a: *const f16, b: *const f16, m: i32, n: i32, k: i32", text);
}

static void in_order(const char *text, const char *const *order, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!(text = strstr(text, order[i]))) fail_msg("%s is missing, or not in its place:\n%s", order[i], ir);
}

/* Nothing but scalars, barriers and copies: no tile in the producer's region.  waits: of an iteration, and at the
 * end. */
static void check_producer(int waits)
{
	const char *region = strstr(ir, "  } do {");
	assert_non_null(region);
	assert_int_equal(count(region, "bulk_copy"), 2);
	assert_int_equal(count(region, "mbarrier_wait"), waits);
	assert_int_equal(count(region, "f32["), 0);
	assert_int_equal(count(region, "wgmma"), 0);
	assert_int_equal(count(region, "store"), 0);
	assert_int_equal(count(region, "mbarrier_arrive"), 0);
	assert_int_equal(count(ir, "bulk_copy"), 2); /* and none in the other one */
}

static void test_partitions(void **state)
{
	(void)state;
	persistent("grid(2) options(num_warps = 8)", ALL, DOT);
	const char *const order[] = {"producer_warps=1", "multibuffer {stages=3", "multibuffer {stages=3",
		"mbarriers {count=3 arrivals=1 proxy=shared}", "mbarriers {count=3 arrivals=8}", "partitions {",
		" = for ", " = for ", "mbarrier_wait", " = wgmma ", "wgmma_wait {pending=1}", "mbarrier_arrive",
		"yield", " = wgmma_wait ", "mbarrier_arrive", "bulk_store", "} do {", " = for ", " = for ",
		"mbarrier_wait", "mbarrier_expect", "bulk_copy", "bulk_copy"};
	in_order(ir, order, sizeof order / sizeof order[0]);
	check_producer(1);
	/* where the tile lies, only its store asks: behind the loop, while its last products run, where it is held */
	const char *const behind[] = {"partitions {", " = for ", " = for ", "mbarrier_arrive", "yield", " = div ",
		"%i = mul", "sched_barrier %i, ", " = wgmma_wait ", "bulk_store"};
	in_order(ir, behind, sizeof behind / sizeof behind[0]);
	const char *partitions = strstr(ir, "partitions {");
	assert_true(strstr(partitions, " = div ") > strstr(partitions, " = wgmma "));
	assert_int_equal(count(ptx, "popc.b32"), 1);
	assert_non_null(strstr(strstr(ptx, "popc.b32"), "wgmma.wait_group.sync.aligned 0"));
	assert_int_equal(count(ptx, "%sum1_0;"), 1);        /* read; all are, */
	assert_int_equal(count(ptx, "mov.b32 %sum1_0"), 0); /* and none is set: the sum begins with a product */
	assert_true(count(ptx, "\tmov.b32 ") < 3 * 64);
	assert_int_equal(count(ir, "mbarriers_end"), 0);
	assert_non_null(strstr(sig, "threads 288\n"));
	assert_int_equal(count(ptx, ".reqntid 288"), 1);
	assert_int_equal(count(ptx, "setmaxnreg"), 0); /* 64 sums a thread: there are enough */
	assert_int_equal(
		count(ptx, "bar.sync \t0;") + count(ptx, "bar.sync 0;") + count(ptx, "barrier.sync.aligned 0;"),
		1); /* of all threads: the barriers are there */
	persistent("grid(2) options(num_warps = 4)", "var u = program_id(0); while u < cdiv(m, 128) * across", DOT);
	check_producer(1);
	assert_non_null(strstr(ir, "arrivals=4"));
	assert_non_null(strstr(sig, "threads 160\n"));
	assert_int_equal(count(ptx, "setmaxnreg"), 0);
	/* the number of a tile from memory that nobody writes */
	persistent("grid(2) options(num_warps = 4)", "for w in range(m) { let u = load(table + w); if u > 0", DOT);
	check_producer(1);
}

/* What the loop over l of a product of tensors says, `before` it and in `body`; the sum is s. */
static void product_of(const char *before, const char *range, const char *body, const char *behind)
{
	static const blkc_promise all[] = {{"c", 16, 0}, {"a", 16, 0}, {"b", 16, 0}, {"n", 16, 0}, {"k", 16, 0}};
	char text[2048];
	snprintf(text, sizeof text,
		"let A = tensor(a, [m, k]); let B = tensor(b, [k, n]); let C = tensor(c, [m, n]);\n"
		"let i = program_id(0) * 128; let j = 128;\n%s\nfor t in range(%s, num_stages = 3) { %s }\n%s\n"
		"C.store([i, j], s);",
		before, range, body, behind);
	compile("sm_90a", all, 5, "c: *f16, a: *const f16, b: *const f16, m: i32, n: i32, k: i32", text);
}

/* Sums that begin with the first product of a loop that has an iteration in any case. */
static void test_once(void **state)
{
	(void)state;
	static const char *const zero = "var s = zeros([128, 128], f32);", *const step = "0, k, 64";
	product_of(zero, step, DOT, "");
	assert_int_equal(count(ir, "accumulator_init=1"), 1);
	/* without iterations every block lies in front of its array, by the index along its lines */
	assert_int_equal(count(ir, "const {value=-1048576}"), 1);
	assert_int_equal(count(ptx, "mov.b32 %sum1_0"), 0);
	assert_int_equal(count(ptx, ", 1, 1, 0, 1;"), 8);    /* 64 rows, and 16 of k, each, */
	assert_int_equal(count(ptx, ", 1, 1, 1, 0, 1;"), 6); /* and all but the first of k add in any case */
	product_of(zero, "i, k, 64", DOT, "");
	assert_int_equal(count(ir, "accumulator_init=1"), 1);
	product_of(zero, "0, 256, 64", DOT, ""); /* of which it is known: nothing is chosen */
	assert_int_equal(count(ir, "accumulator_init=1"), 1);
	assert_int_equal(count(ir, "-1048576"), 0);
	/* not zeros; something else that is seen behind the loop; that an iteration does; that it reads */
	const char *const others[][3] = {{"var s = full([128, 128], 1.0);", DOT, ""},
		{"var s = zeros([128, 128], f32); var last = 0;", DOT " last = t;",
			"if m > 5 { store(c, last.to(f16)); }"},
		{"var s = zeros([128, 128], f32);", DOT " if m > 5 { store(c, 1.0); }", ""},
		{"var s = zeros([128, 128], f32);",
			"s = dot(A.load([i, t], [128, 64]), B.load([t, j], [64, 128]), s); "
			"s = dot(A.load([i, t], [128, 64]), (B.load([t, j], [64, 128]).to(f32) + 1.0).to(f16), s);",
			""}};
	for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
		product_of(others[i][0], step, others[i][1], others[i][2]);
		assert_int_equal(count(ir, "accumulator_init=1"), 0);
		assert_int_equal(count(ir, "-1048576"), 0);
	}
}

/* A matrix of a batch is a product's operand as one that is alone, and so is what is stored. */
static void test_batches(void **state)
{
	(void)state;
	batched("A.load([z, i, t], [1, 128, 64]).reshape([128, 64]), B.load([z, t, j], [1, 64, 128]).reshape([64, "
		"128])");
	check_producer(1);
	assert_int_equal(count(ir, "by_warps=1"), 1);
	assert_int_equal(count(ir, "multibuffer_read"), 0);
	assert_int_equal(count(sig, "\nmap f16 128 64 16 1 ; p0 ; "), 1);
	assert_int_equal(count(ptx, "cp.async.bulk.tensor.3d.global.shared::cta"), 4);
	assert_int_equal(count(ptx, "cp.async.bulk.tensor.3d.shared::cluster.global"), 3);
	batched("A.load([z, i, t], [1, 128, 64]).reshape([128, 64]), "
		"B.load([z, j, t], [1, 128, 64]).reshape([128, 64]).trans()");
	assert_int_equal(count(ir, "transposed=2"), 1);
}

/* Loads of what is done with the sums, how many of which are made in front of the wait for them. */
static int ahead(const char *behind, int loads)
{
	static const blkc_promise all[] = {{"c", 16, 0}, {"a", 16, 0}, {"b", 16, 0}, {"n", 16, 0}, {"k", 16, 0}};
	char text[2048];
	snprintf(text, sizeof text,
		ROWS "let C = tensor(c, [m, n]);\n" ALL " {\nlet i = u / across * 128; let j = u %% across * 128;\n"
		     "var s = zeros([128, 128], f32);\nfor t in range(0, k, 64, num_stages = 3) { " DOT " }\n%s\n"
		     "C.store([i, j], s.to(f16)); }",
		behind);
	char all_of_it[4096];
	snprintf(all_of_it, sizeof all_of_it, "let across = cdiv(n, 128);\n%s", text);
	compile("sm_90a", all, 5,
		"c: *f16, a: *const f16, b: *const f16, m: i32, n: i32, k: i32, x: *const f32, y: *const f32, "
		"z: *f32, table: *const i32) grid(2) options(num_warps = 4) {//",
		all_of_it);
	const char *wait = strstr(ir, " = wgmma_wait ");
	assert_non_null(wait);
	assert_int_equal(count(ir, " = load "), loads);
	return loads - count(wait, " = load ");
}

#define I "i + arange(0, 128)"
#define J "j + arange(0, 128)"

static void test_loads_ahead(void **state)
{
	(void)state;
	/* scales: both are on their way while the last products run */
	assert_int_equal(ahead("s *= load(x + " I ", mask = " I " < m)[:, None] * load(y + " J ")[None, :];", 2), 2);
	const char *const order[] = {" = for ", "yield", " = div ", "%i = mul", " = load ", " = load ",
		" = wgmma_wait ", "mbarrier_arrive", " = convert_layout ", "bulk_store"};
	in_order(ir, order, sizeof order / sizeof order[0]);
	const char *const code[] = {"wgmma.mma_async", "wgmma.wait_group.sync.aligned 1", "ld.global.nc",
		"ld.global.nc", "wgmma.wait_group.sync.aligned 0"};
	in_order(ptx, code, sizeof code / sizeof code[0]);
	assert_int_equal(count(ir, "accumulator_init=1"), 0); /* a sum that meets others in a loop begins with zeros, */
	assert_int_equal(ahead("", 0), 0);
	assert_int_equal(count(ir, "accumulator_init=1"), 2); /* one that is stored as it is with a product */
	/* by an index that is loaded itself */
	assert_int_equal(ahead("s *= load(x + load(table + " I "))[:, None];", 2), 2);
	/* they take few registers beside the sums: 8, of which a slice of 128 takes 1 in as many threads */
#define SUM(n) "s += load(x + " J "[:, None] % 8 + arange(0, " #n ")[None, :]).sum(axis = 1)[None, :];"
	assert_int_equal(ahead(SUM(8), 1), 1);
	assert_int_equal(ahead(SUM(8) "s *= load(y + " I ")[:, None];", 2), 1);
	assert_int_equal(ahead(SUM(4) "s *= load(y + " I ")[:, None];", 2), 2);
	assert_int_equal(ahead(SUM(16), 1), 0);
	/* what the kernel may write, what the sums say, what an assertion or a loop stands in front of */
	assert_int_equal(ahead("s *= load(x + " I ")[:, None] * load(z + " J ")[None, :];", 2), 1);
	assert_int_equal(ahead("s *= load(x + s.max(axis = 1).to(i32))[:, None];", 1), 0);
	assert_int_equal(ahead("device_assert(j < 64, \"\"); s *= load(x + " I ")[:, None];", 1), 0);
	assert_int_equal(ahead("for w in range(m) { s *= load(x + w); }", 1), 0);
}

/* Something is computed between products: two warpgroups do it in turn, a single one has nobody to. */
static bool one_loop_has_partitions(int warps, const char *sum)
{
	static const blkc_promise all[] = {{"c", 16, 0}, {"a", 16, 0}, {"b", 16, 0}, {"n", 16, 0}, {"k", 16, 0}};
	char parameters[256], text[1024];
	snprintf(parameters, sizeof parameters,
		"c: *f16, a: *const f16, b: *const f16, m: i32, n: i32, k: i32) grid(2) options(num_warps = %d) {//",
		warps);
	snprintf(text, sizeof text,
		ROWS
		"let C = tensor(c, [m, n]);\nlet j = program_id(0) * 128; let scale = m > 0 ? 0.5 : 2.0;\n"
		"var s = zeros([128, 128], f32);\nfor t in range(0, k, 64, num_stages = 2) {\n"
		"s = dot(A.load([0, t], [128, 64]), B.load([t, j], [64, 128]), %s); }\nC.store([0, j], s.to(f16));",
		sum);
	compile("sm_90a", all, 5, parameters, text);
	return count(ir, "partitions") > 0;
}

static void test_partitions_of_one_loop(void **state)
{
	(void)state;
	assert_true(one_loop_has_partitions(8, "s * scale"));
	check_producer(1);
	assert_int_equal(count(ir, "mbarrier_arrive"), 1); /* of this iteration's slot, at the end */
	assert_int_equal(count(ir, "cta_barrier"), 0);
	assert_false(one_loop_has_partitions(4, "s * scale"));
	assert_false(one_loop_has_partitions(8, "s"));
}

static void test_no_partitions(void **state)
{
	(void)state;
	/* a number that only one may take: the ticket is for all */
	persistent(
		"grid(2) options(num_warps = 4)", "for w in range(m) { let u = atomic_add(ticket, 1); if u < m", DOT);
	assert_int_equal(count(ir, "partitions"), 0);
	assert_int_equal(count(ir, "mbarriers_end"), 1);
	/* a loop without products: how many programs run at once matters more */
	compile("sm_90a", promised, 3, PARAMETERS,
		"let A = tensor(a, [m, n]); let C = tensor(c, [m, n]);\nfor t in range(0, m, 16) {\n"
		"var s = zeros([16, 64], f16);\nfor u in range(0, n, 64) { s += A.load([t, u], [16, 64]); }\n"
		"C.store([t, 0], s); }");
	assert_int_equal(count(ir, "partitions"), 0);
	assert_int_equal(count(ir, "bulk_copy"), 3);
	/* registers that the user counts */
	persistent("grid(2) options(num_warps = 4, maxnreg = 128)", ALL, DOT);
	assert_int_equal(count(ir, "partitions"), 0);
	/* plain pointers are copied too, iteration after iteration */
	persistent("grid(2) options(num_warps = 4)", ALL,
		"s = dot(A.load([i, t], [128, 64]), load(b + (t + arange(0, 64))[:, None] * n + j + arange(0, "
		"128)[None, :]), s);");
	assert_int_equal(count(ir, "partitions"), 1);
	/* a load that is no bulk copy: it may begin in front of the array */
	persistent("grid(2) options(num_warps = 4)", ALL,
		"s = dot(A.load([i, t], [128, 64]), "
		"load(b + (t - u + arange(0, 64))[:, None] * n + j + arange(0, 128)[None, :]), s);");
	assert_int_equal(count(ir, "partitions"), 0);
}

/* Tile number t of programs that form clusters of two: `order` says what i and j are. */
static void clusters(const char *order, const char *loop)
{
	static const blkc_promise all[] = {{"c", 16, 0}, {"a", 16, 0}, {"b", 16, 0}, {"n", 16, 0}, {"k", 16, 0}};
	char text[2048];
	snprintf(text, sizeof text,
		ROWS "let C = tensor(c, [m, n]); let t = program_id(0); %s\nvar s = zeros([128, 128], f32);\n"
		     "%s\nC.store([i, j], s.to(f16));",
		order, loop);
	compile("sm_90a", all, 5,
		"c: *f16, a: *const f16, b: *const f16, m: i32, n: i32, k: i32, table: *const i32, ticket: *i32) "
		"grid(2) options(num_ctas = 2) {//",
		text);
}

#define SHARED(count_a, count_b)                                                                                       \
	do {                                                                                                           \
		assert_int_equal(count(ptx, ".multicast::cluster ["), (count_a) + (count_b));                          \
		assert_int_equal(count(sig, "cluster 2\n"), (count_a) + (count_b) > 0);                                \
		assert_int_equal(count(ptx, "barrier.cluster.wait"), (count_a) + (count_b) > 0);                       \
	} while (0)
#define DOT_AT(i, j) "s = dot(A.load([" i ", l], [128, 64]), B.load([l, " j "], [64, 128]), s);"
#define ROUNDS "for l in range(0, k, 64) {" DOT_AT("i", "j") "}"

static void test_clusters(void **state)
{
	(void)state;
	clusters("let i = t % 4 * 128; let j = t / 4 * 128;", ROUNDS);
	SHARED(1, 1); /* it is asked, of both */
	assert_non_null(strstr(ir, " cluster=2 {"));
	assert_int_equal(count(ir, "mbarriers {count=3 arrivals=8}"), 1); /* four warps of two programs */
	const char *const order[] = {"cluster_size", "partitions", " = for ", "mbarrier_wait", "wgmma_wait",
		"mbarrier_arrive", "{programs=2}", "yield", "mbarrier_arrive", "{programs=2}", "bulk_store",
		"mbarrier_wait", "mbarrier_expect", "bulk_copy", "{shares=2}", "yield", "mbarrier_wait",
		"mbarrier_wait", "mbarrier_wait"}; /* three slots come back before the end */
	in_order(ir, order, sizeof order / sizeof order[0]);
	assert_int_equal(count(ir, "cta_barrier"), 0);
	assert_non_null(strstr(sig, " 64 64 ; p1 ;")); /* half of a's 128 rows; b's panels are two anyway */
	/* nothing to ask: what one knows of itself it knows of the neighbour */
	clusters("let i = program_id(1) * 128; let j = program_id(2) * 128;", ROUNDS);
	SHARED(1, 1);
	assert_int_equal(count(ir, " = xor "), 5); /* parities: of those who compute, the producer's, and at its end */
	/* where a block lies may come from a table, but not from a ticket, which no producer draws */
	clusters("let i = load(table + t) * 128; let j = t / 4 * 128;", ROUNDS);
	SHARED(1, 1);
	clusters("let i = load(table + t) * 128; let j = atomic_add(ticket, 1) * 128;", ROUNDS);
	SHARED(0, 0);
	clusters("let i = t * 128; let j = 0;", "for l in range(0, atomic_add(ticket, 1), 64) {" DOT_AT("i", "j") "}");
	SHARED(0, 0);
	/* programs that wait for others in their own way shall not wait for these too */
	clusters("let i = t * 128; let j = 0;", "while atomic_add(ticket, 0) < t { } " ROUNDS);
	SHARED(0, 0);
	clusters("let i = t * 128; let j = 0;", "if t > 0 { " ROUNDS " }");
	SHARED(0, 0);
	/* a loop behind another one, for whose multibuffer there is no room: it makes its copies by itself */
	clusters("let i = t * 128; let j = 0;", ROUNDS ROUNDS);
	assert_int_equal(count(ptx, "barrier.cluster.arrive.aligned"), 1);
	const char *const twice[] = {"partitions", " = for ", "mbarrier_arrive", "bulk_copy", " = for ", "bulk_copy",
		"mbarriers_end", "bulk_store", "{shares=2}"};
	in_order(ir, twice, sizeof twice / sizeof twice[0]);
}

static void test_clusters_of_partitions(void **state)
{
	(void)state;
	persistent("grid(2) options(num_warps = 8, num_ctas = 2)", ALL, DOT);
	check_producer(4);
	assert_non_null(strstr(ir, "mbarriers {count=3 arrivals=16}"));
	assert_int_equal(count(ir, "{programs=2}"), 2);
	assert_int_equal(count(ptx, ".multicast::cluster ["), 2);
	assert_int_equal(count(ptx, "barrier.cluster.wait"), 1); /* at the end the producer waits for what comes back */
	assert_non_null(strstr(sig, "cluster 2\n"));
	/* a slot is released to the neighbour only by programs that make the same steps */
	persistent("grid(2) options(num_warps = 4, num_ctas = 2)",
		"for w in range(m) { let u = load(table + w); if u > program_id(0)", DOT);
	assert_int_equal(count(ptx, "multicast") + count(ptx, "barrier.cluster"), 0);
	assert_null(strstr(sig, "cluster 2\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_clusters),
		cmocka_unit_test(test_clusters_of_partitions), cmocka_unit_test(test_what_takes_maps),
		cmocka_unit_test(test_who_takes_maps), cmocka_unit_test(test_host_expressions),
		cmocka_unit_test(test_maps_are_merged), cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_multibuffers), cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_shared_operand), cmocka_unit_test(test_stores_apart),
		cmocka_unit_test(test_stores), cmocka_unit_test(test_partitions), cmocka_unit_test(test_once),
		cmocka_unit_test(test_batches), cmocka_unit_test(test_loads_ahead),
		cmocka_unit_test(test_partitions_of_one_loop), cmocka_unit_test(test_no_partitions)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
