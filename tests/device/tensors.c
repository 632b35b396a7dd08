/* Blocks of tensors on any device: every size of element, blocks of rank 2 to 4 that reach over all edges, rows of any
 * length; products whose operands are tensors in each order of memory, in multibuffers and alone.  Sizes that are
 * multiples of 16 take tensor maps where the target has them, odd ones never do; copies must be the same bytes,
 * products are compared with sums in double precision.  Heads: arrays of which the program computes the beginning. */
#include "device_test.h"

/* ---- copies: C[i, j] = A[i - 3, j + SHIFT] where that lies in both, 0 where it lies in C only ---- */

/* Blocks begin at multiples of their width, less `back`: a copy by a tensor map has to begin at a multiple of 16 bytes.
 */
typedef struct copy_at {
	int n, shift, back;
} copy_at;
static const copy_at places[] = {{144, 16, 0}, {75, 16, 0}, {144, 5, 0}, {144, 5, 5}, {144, 1, 4}};

typedef struct copy_case {
	scalar type;
	unsigned rank;
	int block[3];  /* the outermost first; rank 2: [0] unused */
	int planes, m; /* n is given at run time */
	int warps;
} copy_case;

static const copy_case copies[] = {
	{SCALAR_I8, 2, {0, 16, 64}, 1, 37, 4},
	{SCALAR_F16, 2, {0, 64, 64}, 1, 100, 4},
	{SCALAR_F16, 2, {0, 1, 1024}, 1, 3, 4},    /* a row in pieces */
	{SCALAR_F16, 2, {0, 4, 128}, 1, 9, 2},     /* fewer rows than a swizzle has */
	{SCALAR_BF16, 2, {0, 512, 32}, 1, 600, 4}, /* more rows than a copy takes */
	{SCALAR_F32, 2, {0, 32, 4}, 1, 50, 1},     /* 16 bytes a row */
	{SCALAR_F32, 2, {0, 16, 256}, 1, 33, 8},   /* 8 panels */
	{SCALAR_I64, 2, {0, 32, 16}, 1, 41, 4},
	{SCALAR_F64, 3, {2, 8, 32}, 5, 11, 4},
	{SCALAR_U8, 3, {4, 16, 32}, 7, 20, 2},
	{SCALAR_F16, 3, {1, 16, 64}, 3, 37, 4}, /* matrices of a batch */
	{SCALAR_F32, 3, {4, 1, 64}, 6, 5, 4},
	{SCALAR_F16, 2, {0, 96, 48}, 1, 100, 4}, /* extents that are no powers of two: pieces of their own */
	{SCALAR_F32, 2, {0, 12, 20}, 1, 37, 2},
	{SCALAR_BF16, 3, {3, 5, 80}, 7, 11, 4},
};

static void run_copy(suite *s, const copy_case *c, const copy_at *at)
{
	int n = at->n, shift = at->shift, back = at->back;
	char name[96], text[1024], head[256];
	unsigned bytes = scalar_bytes(c->type);
	snprintf(name, sizeof name, "copy.%s.%dx%dx%d.n%d.shift%d.back%d", scalar_name(c->type), c->block[0],
		c->block[1], c->block[2], n, shift, back);
	if (!suite_wants(s, name)) return;
	int b0 = c->rank == 3 ? c->block[0] : 1, b1 = c->block[1], b2 = c->block[2];
	bool three = c->rank == 3;
	snprintf(head, sizeof head,
		"kernel k(z: *%s, x: *const %s, n: i32) grid(cdiv(%d, %d), cdiv(%d, %d), cdiv(n + %d, %d)) "
		"options(num_warps = %d)",
		scalar_name(c->type), scalar_name(c->type), c->planes, b0, c->m, b1, back, b2, c->warps);
	if (three)
		snprintf(text, sizeof text,
			"%s {\nlet A = tensor(x, [%d, %d, n]); let C = tensor(z, [%d, %d, n]);\n"
			"let p = program_id(0) * %d; let i = program_id(1) * %d; let j = program_id(2) * %d - %d;\n"
			"C.store([p, i, j], A.load([p, i - 3, j + %d], [%d, %d, %d]));\n}\n",
			head, c->planes, c->m, c->planes, c->m, b0, b1, b2, back, shift, b0, b1, b2);
	else
		snprintf(text, sizeof text,
			"%s {\nlet A = tensor(x, [%d, n]); let C = tensor(z, [%d, n]);\n"
			"let i = program_id(1) * %d; let j = program_id(2) * %d - %d;\n"
			"C.store([i, j], A.load([i - 3, j + %d], [%d, %d]));\n}\n",
			head, c->m, c->m, b1, b2, back, shift, b1, b2);
	size_t elements = (size_t)c->planes * c->m * n, size = elements * bytes;
	unsigned char *x = suite_alloc(size), *z = suite_alloc(size);
	uint64_t state = (uint64_t)n;
	for (size_t i = 0; i < size; i++) x[i] = (unsigned char)suite_random(&state);
	const void *in[] = {x};
	bool good = suite_run(s, name, text, NULL, 0, c->type, z, elements, in, &size, 1, n);
	static const unsigned char zero[8];
	for (int p = 0; good && p < c->planes; p++)
		for (int i = 0; i < c->m; i++)
			for (int j = 0; j < n; j++) {
				size_t to = ((size_t)p * c->m + i) * n + j,
				       from = ((size_t)p * c->m + i - 3) * n + j + shift;
				bool inside = i >= 3 && j + shift < n;
				good &= memcmp(z + to * bytes, inside ? x + from * bytes : zero, bytes) == 0;
			}
	suite_verdict(s, good, !good, name);
	free(x);
	free(z);
}

/* ---- products ---- */

typedef struct product_case {
	const char *name;
	bool trans_a, trans_b;
	int bm, bn, bk, warps, stages;
	bool mixed;                                                           /* the second operand by pointers */
	enum { A_TILE, FOR_TILES, WHILE_TILES, IF_TILES, LAST_ALONE } around; /* two programs go over all tiles */
	bool apart; /* something is computed between an iteration's product and the next one */
} product_case;

static const product_case products[] = {
	{"nn", false, false, 64, 64, 32, 4, 3, false},
	{"nt", false, true, 64, 128, 64, 4, 4, false},
	{"tn", true, false, 128, 64, 32, 8, 2, false},
	{"tt", true, true, 64, 64, 64, 4, 4, false},
	{"two_warps", false, false, 32, 32, 32, 2, 3, false},
	{"mixed", false, false, 64, 64, 32, 4, 4, true},
	{"one_stage", false, true, 64, 64, 32, 4, 1, false},
	{"persistent", false, false, 64, 32, 32, 4, 3, false, FOR_TILES},
	{"persistent_nt", false, true, 128, 64, 32, 8, 4, false, FOR_TILES},
	{"persistent_while", true, false, 64, 32, 64, 4, 4, false, WHILE_TILES},
	{"persistent_if", false, false, 64, 32, 32, 4, 3, false, IF_TILES},
	{"apart", false, false, 128, 64, 32, 8, 3, false, A_TILE, true},
	{"apart_four", false, true, 64, 64, 32, 4, 4, false, A_TILE, true},
	{"persistent_apart", false, false, 128, 32, 32, 8, 2, false, FOR_TILES, true},
	{"persistent_mixed", false, false, 64, 32, 32, 4, 3, true, FOR_TILES},
	{"persistent_then_one", false, false, 64, 32, 32, 4, 3, false, LAST_ALONE},
	{"odd_rows", false, false, 192, 64, 64, 8, 3, false}, /* two sums, of 128 rows and of 64 */
	{"odd_columns", false, true, 64, 96, 96, 4, 3, false},
	{"odd_rows_tn", true, false, 192, 80, 32, 4, 3, false},
	{"odd_persistent", false, false, 64, 96, 64, 4, 3, false, FOR_TILES},
	{"odd_apart", false, false, 128, 96, 32, 8, 3, false, A_TILE, true},
};

#define TILE_AT " let i = u / across * %d; let j = u %% across * %d;"

/* The code for the tile at (i, j), and what stands before and behind it. */
static void wrap_tile(const product_case *c, int m, const char *tile, char *out, size_t size)
{
	int at;
	static const char *const loops[] = {[A_TILE] = "",
		[FOR_TILES] = "for u in range(program_id(0), tiles, num_programs(0)) {",
		[WHILE_TILES] = "var u = program_id(0); while u < tiles {",
		[IF_TILES] =
			"for u in range(program_id(0), tiles, num_programs(0)) { for h in range(3) { if u % 3 == h {",
		[LAST_ALONE] = "for u in range(program_id(0), tiles - 2, num_programs(0)) {"};
	static const char *const ends[] = {[A_TILE] = "",
		[FOR_TILES] = "}",
		[WHILE_TILES] = "u += num_programs(0); }",
		[IF_TILES] = "} } }",
		[LAST_ALONE] = "}"};
	if (c->around == A_TILE)
		at = snprintf(
			out, size, "let i = program_id(0) * %d; let j = program_id(1) * %d;\n%s", c->bm, c->bn, tile);
	else
		at = snprintf(out, size,
			"let across = cdiv(n, %d); let tiles = cdiv(%d, %d) * across; %s " TILE_AT "\n%s%s", c->bn, m,
			c->bm, loops[c->around], c->bm, c->bn, tile, ends[c->around]);
	if (c->around == LAST_ALONE)
		snprintf(out + at, size - (size_t)at, "\nlet u = tiles - 2 + program_id(0);" TILE_AT "\n%s", c->bm,
			c->bn, tile);
}

static void run_product(suite *s, const product_case *c, int m, int n, int k)
{
	char name[96], text[2048], b[256], tile[512], tiles[1500], grid[96];
	snprintf(name, sizeof name, "product.%s.%dx%dx%d", c->name, m, n, k);
	if (!suite_wants(s, name)) return;
	snprintf(b, sizeof b,
		c->mixed ? "load(y + (t + q)[:, None] * n + (j + r)[None, :], mask = (t + q < %d)[:, None] & "
			   "(j + r < n)[None, :])"
			 : "B.load([t, j], [%d, %d])",
		c->mixed ? k : c->bk, c->bn);
	snprintf(tile, sizeof tile,
		"var s = zeros([%d, %d], f32);\n"
		"for t in range(0, min(n, 0) + %d, %d) { s = dot(A.load([i, t], [%d, %d]), %s, s%s); }\n"
		"C.store([i, j], s);\n",
		c->bm, c->bn, k, c->bk, c->bm, c->bk, b, c->apart ? " * (n > 0 ? 1.0 : 2.0)" : "");
	wrap_tile(c, m, tile, tiles, sizeof tiles);
	snprintf(grid, sizeof grid, c->around ? "2" : "cdiv(%d, %d), cdiv(n, %d)", m, c->bm, c->bn);
	/* n is the run-time size; m and k are known, so that a stride of theirs is a constant; the loop's end is not */
	snprintf(text, sizeof text,
		"kernel k(z: *f32, x: *const f16, y: *const f16, n: i32) grid(%s) "
		"options(num_warps = %d, num_stages = %d) {\n"
		"let A = tensor(x, [%d, %d], [%d, %d]); let B = tensor(y, [%d, n], [%s]); let C = tensor(z, [%d, n]);\n"
		"let q = arange(0, %d); let r = arange(0, %d);\n%s}\n",
		grid, c->warps, c->stages, m, k, c->trans_a ? 1 : k, c->trans_a ? m : 1, k, c->trans_b ? "1, " : "n, 1",
		m, c->bk, c->bn, tiles);
	if (c->trans_b) { /* "[1, ]" becomes "[1, k]" */
		char *at = strstr(text, "[1, ]"), rest[2048];
		snprintf(rest, sizeof rest, "%s", at + 4);
		snprintf(at + 4, sizeof text - (size_t)(at + 4 - text), "%d%s", k, rest);
	}
	size_t na = (size_t)m * k, nb = (size_t)k * n, nc = (size_t)m * n;
	uint16_t *x = suite_alloc(2 * na), *y = suite_alloc(2 * nb);
	float *z = suite_alloc(4 * nc);
	uint64_t state = (uint64_t)(m + n + k);
	for (size_t i = 0; i < na; i++)
		x[i] = (uint16_t)scalar_from_double(
			SCALAR_F16, (double)(int64_t)(suite_random(&state) >> 11) * 0x1p-52 - 1);
	for (size_t i = 0; i < nb; i++)
		y[i] = (uint16_t)scalar_from_double(
			SCALAR_F16, (double)(int64_t)(suite_random(&state) >> 11) * 0x1p-52 - 1);
	const void *in[] = {x, y};
	const size_t bytes[] = {2 * na, 2 * nb};
	bool good = suite_run(s, name, text, NULL, 0, SCALAR_F32, z, nc, in, bytes, 2, n);
	double *dx = suite_doubles(SCALAR_F16, x, na), *dy = suite_doubles(SCALAR_F16, y, nb);
	for (int i = 0; good && i < m; i++)
		for (int j = 0; j < n; j++) {
			double sum = 0, size = 0;
			for (int t = 0; t < k; t++) {
				double p = dx[c->trans_a ? (size_t)t * m + i : (size_t)i * k + t] *
					   dy[c->trans_b ? (size_t)j * k + t : (size_t)t * n + j];
				sum += p;
				size += fabs(p);
			}
			good &= fabs(z[(size_t)i * n + j] - sum) <= (k + 8) * 0x1p-24 * size;
		}
	suite_verdict(s, good, !good, name);
	free(dx);
	free(dy);
	free(x);
	free(y);
	free(z);
}

/* ---- rows that begin inside a sector: blocks are stored row by row ---- */

/* C = A B of small integers, so that sums are exact.  Rows of C have 16 bytes more than a multiple of 32. */
typedef struct rows_case {
	const char *name, *c; /* the tensor */
	scalar type;
	int bm, bn, warps;
	int back, planes;  /* columns that the first block begins in front of the array; matrices of a batch */
	int first, except; /* elements in front of the array; columns at the end of its rows that are not the array's */
	bool walks;
} rows_case;

static const rows_case rows[] = {
	{"f16", "z, [M, n]", SCALAR_F16, 128, 256, 8, .planes = 1},
	{"bf16", "z, [M, n]", SCALAR_BF16, 64, 256, 4, .planes = 1},
	{"f16_narrow", "z, [M, n]", SCALAR_F16, 128, 128, 4, .planes = 1},
	{"f16_192", "z, [M, n]", SCALAR_F16, 128, 192, 8, .planes = 1},
	{"f16_144", "z, [M, n]", SCALAR_F16, 64, 144, 4, .planes = 1}, /* rows of 16 elements: two lanes each */
	{"f16_walk", "z, [M, n]", SCALAR_F16, 64, 128, 4, .planes = 1, .walks = true},
	{"f16_back", "z, [M, n]", SCALAR_F16, 64, 128, 4, .planes = 1, .back = 8},
	{"f16_batch", "z, [2, M, n]", SCALAR_F16, 64, 128, 4, .planes = 2},
	{"f16_behind", "z + 8, [M, n]", SCALAR_F16, 64, 128, 4, .planes = 1, .first = 8},
	{"f16_part", "z, [M, n - 3], [n, 1]", SCALAR_F16, 64, 128, 4, .planes = 1, .except = 3},
	{"f32", "z, [M, n]", SCALAR_F32, 64, 128, 4, .planes = 1},
	{"f32_narrow", "z, [M, n]", SCALAR_F32, 128, 64, 8, .planes = 1},
};

static void run_rows(suite *s, const rows_case *c, int m, int n)
{
	enum { K = 64 };
	char name[96], text[2048], store[160];
	bool batch = c->planes > 1;
	snprintf(name, sizeof name, "rows.%s.%dx%d", c->name, m, n);
	if (!suite_wants(s, name)) return;
	snprintf(store, sizeof store,
		batch ? "C.store([p, i, j], s.to(%s).reshape([1, %d, %d]));" : "C.store([i, j], s.to(%s));",
		scalar_name(c->type), c->bm, c->bn);
	snprintf(text, sizeof text,
		"kernel k(z: *%s, x: *const f16, y: *const f16, n: i32) grid(%s, %d, %d) options(num_warps = %d, "
		"num_stages = 2) {\n"
		"let M = %d; let C = tensor(%s); let A = tensor(x, [%d * M, %d]); let B = tensor(y, [%d, n]);\n"
		"let p = program_id(2); let i = program_id(1) * %d;\n"
		"for u in range(program_id(0), cdiv(n + %d, %d), num_programs(0)) {\nlet j = u * %d - %d;\n"
		"var s = zeros([%d, %d], f32);\n"
		"for t in range(0, min(n, 0) + %d, 32) { s = dot(A.load([p * M + i, t], [%d, 32]), B.load([t, j], "
		"[32, %d]), s); }\n%s\n}\n}\n",
		scalar_name(c->type), c->walks ? "1" : "cdiv(n + 8, 64)", (m + c->bm - 1) / c->bm, c->planes, c->warps,
		m, c->c, c->planes, K, K, c->bm, c->back, c->bn, c->bn, c->back, c->bm, c->bn, K, c->bm, c->bn, store);
	size_t na = (size_t)c->planes * m * K, nb = (size_t)K * n, nc = (size_t)c->planes * m * n + (size_t)c->first;
	uint16_t *x = suite_alloc(2 * na), *y = suite_alloc(2 * nb);
	void *z = suite_alloc(scalar_bytes(c->type) * nc);
	uint64_t state = (uint64_t)(m + n);
	for (size_t i = 0; i < na; i++)
		x[i] = (uint16_t)scalar_from_double(SCALAR_F16, (double)(suite_random(&state) % 3) - 1);
	for (size_t i = 0; i < nb; i++)
		y[i] = (uint16_t)scalar_from_double(SCALAR_F16, (double)(suite_random(&state) % 3) - 1);
	const void *in[] = {x, y};
	const size_t bytes[] = {2 * na, 2 * nb};
	bool good = suite_run(s, name, text, NULL, 0, c->type, z, nc, in, bytes, 2, n);
	double *dx = suite_doubles(SCALAR_F16, x, na), *dy = suite_doubles(SCALAR_F16, y, nb),
	       *dz = suite_doubles(c->type, z, nc);
	for (int i = 0; good && i < c->planes * m; i++)
		for (int j = 0; j < n - c->except; j++) {
			double sum = 0;
			for (int t = 0; t < K; t++) sum += dx[(size_t)i * K + t] * dy[(size_t)t * n + j];
			good &= dz[(size_t)i * n + j + (size_t)c->first] == sum;
		}
	suite_verdict(s, good, !good, name);
	free(dx);
	free(dy);
	free(dz);
	free(x);
	free(y);
	free(z);
}

/* ---- heads: arrays that begin where the program says ---- */

enum { HEADS = 6, WIDE = 32 }; /* columns of a head */

/* O = (Q K^T) V of one head after the other; keys are shared by three.  Numbers are so small that sums are exact. */
typedef struct heads_case {
	const char *name, *base; /* of the head's rows: elements, of which there are S a head */
	const char *strides;     /* of rows; null: WIDE, else heads lie side by side */
	bool reversed, walks, by_pointers,
		cubes; /* cubes: of three dimensions, which with two in the base makes five */
} heads_case;

static const heads_case heads[] = {
	{"wide", "h.to(i64) * S"},
	{"narrow", "h * S"},
	{"two_strides", "(h / 3).to(i64) * (3 * S) + (h % 3).to(i64) * S"},
	{"one_number", "(h / 3 * 3 + h % 3).to(i64) * S"},
	{"behind", "(h + 2).to(i64) * S - 2 * S"},
	{"side_by_side", "h * 32", "192, 1"},
	{"reversed", "(5 - h).to(i64) * S", NULL, true},
	{"walk", "h.to(i64) * S", NULL, false, true},
	{"pointers", "h.to(i64) * S", NULL, false, false, true},
	{"pointers_walk", "h * S", NULL, false, true, true},
	{"five_dimensions", "(h / 3).to(i64) * (3 * S) + (h % 3).to(i64) * S", NULL, false, false, false, true},
};

/* Where an element lies that the head h has at row i and column d. */
static size_t head_place(const heads_case *c, int h, int i, int d, int n)
{
	return c->strides ? (size_t)i * HEADS * WIDE + (size_t)h * WIDE + d : ((size_t)h * n + i) * WIDE + d;
}

static void run_heads(suite *s, const heads_case *c, int warps, int n)
{
	char name[96], text[2048];
	const char *strides = c->strides ? c->strides : "32, 1";
	snprintf(name, sizeof name, "heads.%s.%dwarps.n%d", c->name, warps, n);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(z: *f32, x: *const f16, y: *const f16, n: i32) grid(%s) options(num_warps = %d) {\n"
		"let S = n * 32; let tiles = cdiv(n, 64); let r = arange(0, 64); let d = arange(0, 32);\n%s\n"
		"let base = %s;\n"
		"let Q = tensor(x + base, [%sn, 32], [%s%s]); let O = tensor(z + base, [%sn, 32], [%s%s]);\n"
		"let at = (h / 3).to(i64) * S; let K = tensor(y + at, [n, 32]); let V = tensor(y + at + 2 * S, [n, "
		"32]);\n"
		"let q = %s;\nvar o = zeros([64, 32], f32);\n"
		"for j in range(0, n, 32) {\n"
		"let p = dot(q, trans(%s));\n"
		"o = dot(p.to(f16), V.load([j, 0], [32, 32]), o * (n > 0 ? 1.0 : 2.0));\n}\n"
		"%s;\n%s}\n",
		c->walks ? "4" : "cdiv(n, 64), 6", warps,
		c->walks ? "for u in range(program_id(0), tiles * 6, num_programs(0)) { let h = u / tiles; let i = u % "
			   "tiles * 64;"
			 : "let h = program_id(1); let i = program_id(0) * 64;",
		c->base, c->cubes ? "1, " : "", c->cubes ? "S, " : "", strides, c->cubes ? "1, " : "",
		c->cubes ? "S, " : "", strides,
		c->by_pointers ? "load(x + base + (i + r)[:, None] * 32 + d[None, :], mask = (i + r < n)[:, None])"
		: c->cubes     ? "Q.load([0, i, 0], [1, 64, 32]).reshape([64, 32])"
			       : "Q.load([i, 0], [64, 32])",
		c->by_pointers ? "load(y + at + (j + d)[:, None] * 32 + d[None, :], mask = ((j + d).to(u32) < "
				 "n.to(u32))[:, None])"
			       : "K.load([j, 0], [32, 32])",
		c->cubes ? "O.store([0, i, 0], o.reshape([1, 64, 32]))" : "O.store([i, 0], o)", c->walks ? "}\n" : "");
	size_t nx = (size_t)HEADS * n * WIDE, ny = (size_t)4 * n * WIDE;
	uint16_t *x = suite_alloc(2 * nx), *y = suite_alloc(2 * ny);
	float *z = suite_alloc(4 * nx);
	uint64_t state = (uint64_t)n;
	for (size_t i = 0; i < nx; i++)
		x[i] = (uint16_t)scalar_from_double(SCALAR_F16, (double)(int)(suite_random(&state) % 3) - 1);
	for (size_t i = 0; i < ny; i++)
		y[i] = (uint16_t)scalar_from_double(SCALAR_F16, (double)(int)(suite_random(&state) % 3) - 1);
	const void *in[] = {x, y};
	const size_t bytes[] = {2 * nx, 2 * ny};
	bool good = suite_run(s, name, text, NULL, 0, SCALAR_F32, z, nx, in, bytes, 2, n);
	double *dx = suite_doubles(SCALAR_F16, x, nx), *dy = suite_doubles(SCALAR_F16, y, ny);
	int wrong = 0;
	for (int h = 0; good && h < HEADS; h++)
		for (int i = 0; i < n; i++) {
			double o[WIDE] = {0};
			int of = c->reversed ? 5 - h : h;
			for (int j = 0; j < n; j++) {
				double p = 0;
				for (int d = 0; d < WIDE; d++)
					p += dx[head_place(c, of, i, d, n)] * dy[((size_t)(h / 3) * n + j) * WIDE + d];
				for (int d = 0; d < WIDE; d++) o[d] += p * dy[((size_t)(h / 3 + 2) * n + j) * WIDE + d];
			}
			for (int d = 0; d < WIDE; d++) wrong += z[head_place(c, of, i, d, n)] != o[d];
		}
	suite_verdict(s, good, wrong, text);
	free(dx);
	free(dy);
	free(x);
	free(y);
	free(z);
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	for (unsigned i = 0; i < sizeof copies / sizeof copies[0]; i++)
		for (unsigned at = 0; at < sizeof places / sizeof places[0]; at++)
			run_copy(&s, &copies[i], &places[at]);
	for (unsigned i = 0; i < sizeof products / sizeof products[0]; i++) {
		run_product(&s, &products[i], 144, 80, 112);
		run_product(&s, &products[i], 80, 144, 32); /* fewer iterations than stages */
		run_product(&s, &products[i], 75, 91, 50);
	}
	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int n = rows[i].type == SCALAR_F32 ? 140 : 264;
		run_rows(&s, &rows[i], 150, n);
		run_rows(&s, &rows[i], 67, n / 8 * 8 - (rows[i].type == SCALAR_F32 ? 4 : 128));
	}
	for (unsigned i = 0; i < sizeof heads / sizeof heads[0]; i++) {
		run_heads(&s, &heads[i], 4, 100);
		run_heads(&s, &heads[i], 8, 67);
		run_heads(&s, &heads[i], 4, 3);
	}
	return suite_close(&s);
}
