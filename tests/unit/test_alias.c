/* Two stores of patches of one matrix: no barrier between them where their rows or columns are disjoint, one where
 * they may alias; and random pairs, of which a model writes down each element. */
#include "compiled.h"

#include <stdbool.h>

enum { ROWS = 16, COLUMNS = 32 };

static int barriers(const char *source)
{
	compile_text(source, "sm_80", NULL, 0, BLKC_EMIT_PTX);
	assert_int_equal(count(ptx, "st.global") > 0, 1);
	return count(ptx, "bar.sync");
}

#define HEAD "kernel k(c: *f32, M: i32, N: i32, u: i32) grid(1) options(num_warps = 4) {\n"
#define TILE "let i = program_id(0) * 32 + arange(0, 16); let j = program_id(1) * 32 + arange(0, 32);\n"
#define STORE(i, j, mask)                                                                                              \
	"store(c + " i "[:, None].to(i64) * N + " j "[None, :], full([16, 32], 1.0), mask = " mask ");\n"

/* Rows 16 below; columns 32 to the right; the same by tensors, whose columns are kept in the row from both sides. */
static void test_alias(void **state)
{
	(void)state;
	static const char *const body[] = {
		TILE STORE("i", "j", "(j < N)[None, :]") STORE("(i + 16)", "j", "(j < N)[None, :]"),
		TILE STORE("(i + 16)", "j", "(i + 16 < M)[:, None] & (j < N)[None, :]")
			STORE("i", "j", "(N > j)[None, :] & (i < M)[:, None]"),
		TILE STORE("i", "j", "(j <= N - 1)[None, :]") STORE("i", "(j + 32)", "(j < N - 32)[None, :]"),
		"let i = u + arange(0, 16); let j = arange(0, 32);\n" STORE("i", "j", "(j < N)[None, :]")
			STORE("(i - 16)", "j", "(j < N)[None, :]"),
		"let t = tensor(c, shape = [M, N]); let one = full([16, 32], 1.0);\n"
		"t.store([u, u], one); t.store([u + 16, u], one);\n",
		"let t = tensor(c, shape = [M, N]); let one = full([16, 32], 1.0);\n"
		"t.store([u, u + 32], one); t.store([u, u], one);\n",
		"let t = tensor(c, shape = [200, 100]); let one = full([16, 32], 1.0);\n"
		"t.store([u, u], one); t.store([u + 16, u], one);\n",
		"assume(u >= 0); let i = arange(0, 16); let j = u + arange(0, 32);\n" STORE(
			"i", "j", "(j < N)[None, :]") STORE("(i + 16)", "j", "(j < N)[None, :]"),
		TILE "store(c + i[:, None] + j[None, :].to(i64) * N, full([16, 32], 1.0), mask = (i < N)[:, None]);\n"
		     "store(c + i[:, None] + (j + 32)[None, :].to(i64) * N, full([16, 32], 1.0), mask = (i < N)[:, "
		     "None]);\n",
		"let o = arange(0, 32); store(c + (u * 64 + o), full([32], 1.0)); store(c + (N * 64 + o + 32), "
		"full([32], 1.0));\n",
	};
	for (size_t i = 0; i < sizeof body / sizeof body[0]; i++) {
		static char source[4096];
		snprintf(source, sizeof source, HEAD "%s}\n", body[i]);
		if (barriers(source) != 0) fail_msg("a barrier that nothing needs:\n%s", source);
	}
}

/* A tile of pointers that is stored to twice. */
static void test_one_tile(void **state)
{
	(void)state;
	static const struct {
		const char *pointers;
		bool distinct;
	} row[] = {
		{"c + i[:, None] * 64 + j[None, :]", true}, {"c + i[:, None] + j[None, :] * 16", true},
		{"c + i[:, None] * 32 + j[None, :]", true},        /* 31 is reached, 32 is the next row */
		{"c + i[:, None] * 31 + j[None, :]", false},       /* row 1, column 0 is row 0, column 31 */
		{"c + i[:, None] * N + j[None, :]", false},        /* N may be 1 */
		{"c + i[:, None] + j[None, :] * 2", false},        /* rows reach 15 */
		{"c + (i * 64)[:, None] + 0 * j[None, :]", false}, /* each row is one place */
	};
	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		static char source[1024];
		snprintf(source, sizeof source,
			HEAD TILE "let p = %s; store(p, full([16, 32], 1.0)); store(p, full([16, 32], 2.0));\n}\n",
			row[i].pointers);
		if ((barriers(source) == 0) != row[i].distinct)
			fail_msg("%s a barrier:\n%s", row[i].distinct ? "nothing needs" : "there is not", source);
	}
}

static void test_may_meet(void **state)
{
	(void)state;
	static const struct {
		const char *why, *body;
	} row[] = {
		{"the last row of one is the first of the other",
			TILE STORE("i", "j", "(j < N)[None, :]") STORE("(i + 15)", "j", "(j < N)[None, :]")},
		{"the last column is the first one",
			TILE STORE("i", "j", "(j < N)[None, :]") STORE("i", "(j + 31)", "(j + 31 < N)[None, :]")},
		{"without a mask the columns run into the next rows",
			TILE STORE("i", "j", "(i < M)[:, None]") STORE("(i + 16)", "j", "(i + 16 < M)[:, None]")},
		{"one of two masks does not keep its columns",
			TILE STORE("i", "j", "(j < N)[None, :]") STORE("(i + 16)", "j", "(i + 16 < M)[:, None]")},
		{"the mask lets one column more",
			TILE STORE("i", "j", "(j <= N)[None, :]") STORE("(i + 16)", "j", "(j <= N)[None, :]")},
		{"the mask is another matrix's",
			TILE STORE("i", "j", "(j < M)[None, :]") STORE("(i + 16)", "j", "(j < M)[None, :]")},
		{"columns may be below 0", "let i = arange(0, 16); let j = u + arange(0, 32);\n" STORE("i", "j",
						   "(j < N)[None, :]") STORE("(i + 16)", "j", "(j < N)[None, :]")},
		{"either half of the mask is enough", TILE STORE("i", "j", "(i < M)[:, None] | (j < N)[None, :]") STORE(
							      "(i + 16)", "j", "(i < M)[:, None] | (j < N)[None, :]")},
		{"behind the back edge the rows are others",
			"for t in range(N) { let i = u * t * 16 + arange(0, 16); let j = arange(0, 32);\n" STORE(
				"i", "j", "(j < N)[None, :]") STORE("(i + 16)", "j", "(j < N)[None, :]") "}\n"},
		{"the next round's first rows are this one's last",
			"for t in range(M) { let i = t * 16 + arange(0, 16); let j = arange(0, 32);\n" STORE(
				"i", "j", "(j < N)[None, :]") STORE("(i + 16)", "j", "(j < N)[None, :]") "}\n"},
		{"16 times another number than that from row to row",
			TILE STORE("i", "j",
				"(j < N)[None, :]") "store(c + i[:, None].to(i64) * N + 16 * M.to(i64) + j[None, :], "
						    "full([16, 32], 1.0), mask = (j < N)[None, :]);\n"},
		{"the last of 33 places is the first of the next 64",
			"let o = arange(0, 32); store(c + (u * 64 + o), full([32], 1.0));\n"
			"store(c + (N * 64 + o + 32 + program_id(0) % 2), full([32], 1.0));\n"},
		{"N may be -1, and column 0 be let through",
			"let i = arange(0, 16); let j = arange(0, 32);\n"
			"let m = (j.to(u32, bitcast = true) <= maximum(N - 1, 0).to(u32, bitcast = true))[None, "
			":];\n" STORE("i", "j", "m") STORE("(i + 16)", "j", "m")},
		{"the assumption was of another round",
			"var v = 0; for t in range(M) { let x = (u ^ t) - 8; if t == 1 { assume(x >= 0);\n"
			"let i = arange(0, 16); let j = v + arange(0, 32);\n" STORE("i", "j", "(j < N)[None, :]")
				STORE("(i + 16)", "j", "(j < N)[None, :]") "} v = x; }\n"},
		{"both dimensions have stride 1",
			TILE "store(c + i[:, None] + j[None, :], full([16, 32], 1.0), mask = (j + u < 0)[None, :]);\n"
			     "store(c + (i + 64)[:, None] + j[None, :], full([16, 32], 1.0), mask = (j + u < 0)[None, "
			     ":]);\n"},
		{"rows run backwards", TILE
			"store(c - i[:, None].to(i64) + j[None, :], full([16, 32], 1.0), mask = (j + u < -1)[None, "
			":]);\n"
			"store(c - i[:, None].to(i64) + j[None, :] + (-9223372036854775807 - 1), full([16, 32], 1.0),\n"
			"mask = (j + u < -1)[None, :]);\n"},
		{"a product of constants wraps around",
			"assume(u >= 0); let i = arange(0, 16); let j = arange(0, 32);\n"
			"store(c + i[:, None] * 268435456 + j[None, :], full([16, 32], 1.0), mask = (j + u < "
			"268435456)[None, :]);\n"
			"store(c + (i + 16)[:, None] * 268435456 + j[None, :], full([16, 32], 1.0),\n"
			"mask = (j + u < 268435456)[None, :]);\n"},
		{"rows that overlap",
			"let t = tensor(c, shape = [M, N], strides = [u, 1]); let one = full([16, 32], 1.0);\n"
			"t.store([M, N], one); t.store([M + 16, N], one);\n"},
		{"products of 32 bits wrap around",
			TILE "store(c + i[:, None] * N + j[None, :], full([16, 32], 1.0), mask = (j < N)[None, :]);\n"
			     "store(c + (i + 16)[:, None] * N + j[None, :], full([16, 32], 1.0), mask = (j < N)[None, "
			     ":]);\n"},
	};
	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		static char source[4096];
		snprintf(source, sizeof source, HEAD "%s}\n", row[i].body);
		if (barriers(source) == 0) fail_msg("%s, and there is no barrier:\n%s", row[i].why, source);
	}
}

/* Each step names the one before twice: what is worked out anew for each name does not end. */
static void test_long_chains(void **state)
{
	(void)state;
	for (unsigned wide = 0; wide < 2; wide++) {
		static char source[8192];
		size_t n = (size_t)snprintf(source, sizeof source, HEAD TILE "%s\n",
			wide ? "let a0 = u.to(i64);" : "let a0 = (i + u)[:, None] + j[None, :];");
		for (unsigned i = 0; i < 60; i++)
			n += (size_t)snprintf(
				source + n, sizeof source - n, "let a%u = a%u + a%u * %u;\n", i + 1, i, i, i % 5 + 3);
		snprintf(source + n, sizeof source - n,
			"store(c + a60%s, full([16, 32], 1.0), mask = (j < N)[None, :]);\n"
			"store(c + a60%s + 640, full([16, 32], 1.0), mask = (j < N)[None, :]);\n}\n",
			wide ? " + i[:, None].to(i64) * N + j[None, :]" : "",
			wide ? " + i[:, None].to(i64) * N + j[None, :]" : "");
		assert_true(barriers(source) > 0);
	}
}

/* ---- random pairs ---- */

typedef struct world {
	int64_t M, N, u, p0, p1;
} world;

typedef struct patch {
	int column; /* where columns begin: 0, u, p1 * 32 */
	int stride; /* 64, N, u, M */
	int mask;   /* of columns: none, below N, N from both sides, M, 64, up to N */
	int down, right;
} patch;

enum { STARTS = 3, STRIDES = 4, MASKS = 6 };
static const char *const start_text[STARTS] = {"0", "u", "program_id(1) * 32"};
static const char *const stride_text[STRIDES] = {"64", "N", "u", "M"};
static const char *const mask_text[MASKS] = {"true", "(j%s < N)[None, :]", "(j%s >= 0)[None, :] & (j%s < N)[None, :]",
	"(j%s < M)[None, :]", "(j%s < 64)[None, :]", "(j%s <= N)[None, :]"};

static int64_t start_of(const patch *p, const world *w)
{
	return p->column == 0 ? 0 : p->column == 1 ? w->u : w->p1 * 32;
}

static int64_t stride_of(const patch *p, const world *w)
{
	const int64_t stride[STRIDES] = {64, w->N, w->u, w->M};
	return stride[p->stride];
}

static bool is_inside(const patch *p, const world *w, int64_t j)
{
	switch (p->mask) {
	case 0: return true;
	case 1: return j < w->N;
	case 2: return j >= 0 && j < w->N;
	case 3: return j < w->M;
	case 4: return j < 64;
	default: return j <= w->N;
	}
}

static void put(char *source, size_t room, const patch *p)
{
	char right[32], mask[160];
	size_t n = strlen(source);
	snprintf(right, sizeof right, " + %d", p->right);
	snprintf(mask, sizeof mask, mask_text[p->mask], right, right);
	snprintf(source + n, room - n,
		"{ let i = program_id(0) * 32 + arange(0, 16); let j = %s + arange(0, 32);\n"
		"store(c + (i + %d)[:, None].to(i64) * %s + (j + %d)[None, :], full([16, 32], 1.0), mask = %s & (i < "
		"1000)[:, None]); }\n",
		start_text[p->column], p->down, stride_text[p->stride], p->right, mask);
}

enum { MIDDLE = 1 << 16 };

static bool meet(const patch *a, const patch *b, const world *w)
{
	static uint8_t written[2 * MIDDLE];
	const patch *both[] = {a, b};
	bool found = false;
	for (unsigned pass = 0; pass < 3; pass++) /* write the first, look for the second, clear */
		for (int64_t r = 0; r < ROWS; r++)
			for (int64_t q = 0; q < COLUMNS; q++) {
				const patch *p = both[pass == 1];
				int64_t j = start_of(p, w) + q + p->right;
				int64_t at = (w->p0 * 32 + r + p->down) * stride_of(p, w) + j;
				if (!is_inside(p, w, j)) continue;
				assert_true(at > -MIDDLE && at < MIDDLE);
				uint8_t *byte = &written[at + MIDDLE];
				if (pass == 1)
					found |= *byte;
				else
					*byte = pass == 0;
			}
	return found;
}

/* One tile of pointers, no two of whose elements are one place: 63 columns do not reach the next row.  Each thread
 * stores where it stored before. */
static bool is_one_tile(const patch *a, const patch *b)
{
	return stride_text[a->stride] == stride_text[0] && a->stride == b->stride && a->column == b->column &&
	       a->down == b->down && a->right == b->right;
}

static bool meet_somewhere(const patch *a, const patch *b)
{
	static const int64_t M[] = {1, 40, 70}, N[] = {1, 20, 32, 64, 70}, u[] = {-7, 0, 40}, p[] = {0, 1, 2};
	for (unsigned i = 0; i < 3 * 5 * 3 * 2 * 3; i++) {
		world w = {.M = M[i % 3], .N = N[i / 3 % 5], .u = u[i / 15 % 3], .p0 = p[i / 45 % 2], .p1 = p[i / 90]};
		if (meet(a, b, &w)) return true;
	}
	return false;
}

static unsigned next(uint32_t *seed, unsigned n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % n;
}

static void test_random_pairs(void **state)
{
	(void)state;
	static const int far[] = {0, 1, 15, 16, 17, 31, 32, 33, 48};
	uint32_t seed = 1;
	unsigned without = 0, disjoint = 0;
	for (unsigned n = 0; n < 400; n++) {
		static char source[4096];
		patch a = {(int)next(&seed, STARTS), (int)next(&seed, STRIDES), (int)next(&seed, MASKS),
			far[next(&seed, 9)], far[next(&seed, 9)]};
		patch b = a;
		b.down = far[next(&seed, 9)];
		if (next(&seed, 2)) b.right = far[next(&seed, 9)];
		if (next(&seed, 8) == 0) b.mask = (int)next(&seed, MASKS);
		if (next(&seed, 8) == 0) b.stride = (int)next(&seed, STRIDES);
		if (next(&seed, 8) == 0) b.column = (int)next(&seed, STARTS);
		snprintf(source, sizeof source, HEAD);
		put(source, sizeof source, &a);
		put(source, sizeof source, &b);
		strcat(source, "}\n");
		bool met = !is_one_tile(&a, &b) && meet_somewhere(&a, &b), ordered = barriers(source) > 0;
		if (met && !ordered) fail_msg("the two meet, and there is no barrier:\n%s", source);
		disjoint += !met;
		without += !ordered;
	}
	print_message("of 400 pairs %u are disjoint, %u are known to be\n", disjoint, without);
	assert_true(without > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alias),
		cmocka_unit_test(test_one_tile),
		cmocka_unit_test(test_may_meet),
		cmocka_unit_test(test_long_chains),
		cmocka_unit_test(test_random_pairs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
