/* Products by programs of a cluster (num_ctas): neighbours that share the first operand, the second, one with some and
 * one with others, or neither, always or now and then; whose iterations are the same and are not; grids that are whole
 * clusters and that are not; one tile a program and many.  Numbers are small and whole, so every sum is exact, whoever
 * brought its blocks. */
#include "device_test.h"

typedef struct cluster_case {
	const char *name;
	const char *tile; /* what i and j are, of tile number t; `down` and `across` are how many tiles there are */
	const char *first, *last; /* of k */
	int ctas, warps, stages, bm, bn, bk;
	bool persistent, apart; /* two tiles a program, or more; something is computed between products */
} cluster_case;

#define DOWN "let i = t % down; let j = t / down;"
#define ACROSS "let i = t / across; let j = t % across;"
#define DIAGONAL "let i = t % down; let j = (t / down + i) % across;"
#define GROUPED "let (i, j) = swizzle2d(t / across, t % across, down, across, 2);"
/* As ACROSS; what it looks up ends with the last tile, behind which a neighbour has none, and nothing may be asked. */
#define LOOKS                                                                                                          \
	"let i = t / across + (load(x + (A.shape[0] * k + t - down * across)).to(i32) + 3 >> 12); let j = t % across;"
#define ALL "0", "k"

static const cluster_case cases[] = {
	{"second", DOWN, ALL, 2, 4, 4, 64, 64, 64, false, false},
	{"second_of_4", DOWN, ALL, 4, 4, 4, 64, 128, 64, false, false},
	{"first", ACROSS, ALL, 2, 8, 4, 128, 64, 64, false, false},
	{"first_of_4", ACROSS, ALL, 4, 4, 3, 128, 64, 64, false, false},
	{"neither", DIAGONAL, ALL, 2, 4, 4, 64, 64, 64, false, false},
	{"grouped", GROUPED, ALL, 2, 4, 3, 64, 64, 64, false, false},
	{"grouped_of_4", GROUPED, ALL, 4, 4, 4, 64, 64, 32, false, false},
	{"square_of_4", GROUPED, ALL, 4, 8, 4, 128, 64, 64, false, false},
	{"two_by_four", GROUPED, ALL, 8, 4, 4, 64, 64, 64, false, false},
	{"two_by_four_few_parts", GROUPED, ALL, 8, 4, 4, 64, 32, 32, false, false},
	{"eight", DOWN, ALL, 8, 4, 3, 32, 64, 64, false, false},
	{"two_stages", DOWN, ALL, 2, 4, 2, 64, 64, 64, false, false},
	{"iterations", DOWN, "0", "minimum(k, (t % 3 + 1) * 40)", 2, 4, 4, 64, 64, 32, false, false},
	{"beginnings", DOWN, "t % 2 * 32", "k", 2, 4, 4, 64, 64, 32, false, false},
	{"apart", DOWN, ALL, 2, 4, 3, 64, 64, 64, false, true},
	{"apart_producer", ACROSS, ALL, 2, 8, 3, 128, 64, 64, false, true},
	{"persistent", DOWN, ALL, 2, 4, 4, 64, 64, 64, true, false},
	{"persistent_of_4", GROUPED, ALL, 4, 8, 3, 128, 64, 64, true, false},
	{"persistent_two_by_four", GROUPED, ALL, 8, 4, 3, 64, 64, 64, true, false},
	{"persistent_grouped", GROUPED, ALL, 2, 4, 3, 64, 64, 64, true, false},
	{"persistent_apart", ACROSS, ALL, 2, 8, 3, 128, 64, 32, true, true},
	{"row_groups", DOWN, ALL, 2, 12, 3, 192, 64, 64, false, false},
	{"row_groups_first", ACROSS, ALL, 2, 12, 3, 192, 128, 32, false, false},
	{"row_groups_iterations", DOWN, "0", "minimum(k, (t % 3 + 1) * 40)", 2, 12, 4, 192, 64, 32, false, false},
	{"row_groups_square", GROUPED, ALL, 2, 12, 3, 192, 192, 64, true, false},
	{"row_groups_wide", ACROSS, ALL, 2, 12, 3, 192, 256, 32, true, false},
	{"row_groups_apart", DOWN, ALL, 4, 12, 3, 192, 64, 64, true, true},
	{"whole_panel", DOWN, ALL, 2, 8, 3, 128, 160, 64, false, false},
	{"whole_panel_of_16", GROUPED, ALL, 4, 4, 3, 64, 80, 64, false, false},
	{"whole_panel_alone", ACROSS, ALL, 1, 4, 3, 64, 96, 32, false, false},
	{"whole_panel_persistent", ACROSS, ALL, 2, 8, 3, 128, 144, 32, true, false},
	{"whole_panel_rows", DOWN, "0", "minimum(k, (t % 3 + 1) * 40)", 2, 12, 3, 192, 160, 32, true, false},
	{"dealt_columns", DOWN, ALL, 2, 12, 3, 144, 192, 32, false, false},
	{"dealt_columns_shared", GROUPED, ALL, 4, 12, 3, 80, 192, 32, true, false},
	{"dealt_columns_alone", ACROSS, "0", "minimum(k, (t % 3 + 1) * 40)", 1, 12, 4, 176, 192, 32, true, false},
	{"dealt_columns_apart", DOWN, ALL, 2, 12, 3, 160, 192, 64, false, true},
	{"persistent_looks", LOOKS, ALL, 2, 4, 4, 64, 64, 64, true, false},
	{"persistent_rounds", DOWN, "0", "minimum(k, (t % 3 + 1) * 40)", 2, 4, 4, 64, 64, 32, true, false},
};

typedef struct matrices {
	int m, n, k;
	uint16_t *a, *b;
	float *c;
} matrices;

/* The k that a tile's sum goes over: whole iterations. */
static void range_of(const cluster_case *c, int t, int k, int *first, int *last)
{
	*first = strcmp(c->first, "0") == 0 ? 0 : t % 2 * 32;
	*last = k;
	if (strcmp(c->last, "k") != 0 && (t % 3 + 1) * 40 < k) *last = (t % 3 + 1) * 40;
	*last = *first + (*last - *first + c->bk - 1) / c->bk * c->bk;
	if (*last > k) *last = k;
}

/* As the kernel does. */
static void tile_of(const cluster_case *c, int t, int down, int across, int *i, int *j)
{
	*i = t % down, *j = t / down;
	if (strcmp(c->tile, ACROSS) == 0 || strcmp(c->tile, LOOKS) == 0) *i = t / across, *j = t % across;
	if (strcmp(c->tile, DIAGONAL) == 0) *j = (t / down + *i) % across;
	if (strcmp(c->tile, GROUPED) == 0) {
		int group = t / (2 * across), rows = down - 2 * group < 2 ? down - 2 * group : 2;
		*i = 2 * group + t % (2 * across) % rows;
		*j = t % (2 * across) / rows;
	}
}

static int wrong_elements(const cluster_case *c, const matrices *x)
{
	int down = (x->m + c->bm - 1) / c->bm, across = (x->n + c->bn - 1) / c->bn, wrong = 0;
	double *a = suite_doubles(SCALAR_F16, x->a, (size_t)x->m * x->k);
	double *b = suite_doubles(SCALAR_F16, x->b, (size_t)x->k * x->n);
	for (int t = 0; t < down * across; t++) {
		int ti, tj, first, last;
		tile_of(c, t, down, across, &ti, &tj);
		range_of(c, t, x->k, &first, &last);
		for (int i = ti * c->bm; i < x->m && i < (ti + 1) * c->bm; i++)
			for (int j = tj * c->bn; j < x->n && j < (tj + 1) * c->bn; j++) {
				double sum = 0;
				for (int l = first; l < last; l++)
					sum += a[(size_t)i * x->k + l] * b[(size_t)l * x->n + j];
				wrong += (double)x->c[(size_t)i * x->n + j] != sum;
			}
	}
	free(a);
	free(b);
	return wrong;
}

static void fill(uint16_t *p, size_t n, uint64_t *state)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint16_t)scalar_from_double(SCALAR_F16, (double)(suite_random(state) % 7) - 3);
}

static void run(suite *s, const cluster_case *c, int m, int n, int k)
{
	char name[96], text[2048], grid[64];
	snprintf(name, sizeof name, "cluster.%s.%dx%dx%d", c->name, m, n, k);
	if (!suite_wants(s, name)) return;
	snprintf(grid, sizeof grid, "cdiv(%d, %d) * cdiv(n, %d)", m, c->bm, c->bn);
	if (c->persistent) snprintf(grid, sizeof grid, "%d", c->ctas);
	snprintf(text, sizeof text,
		"kernel k(z: *f32, x: *const f16, y: *const f16, n: i32) grid(%s) "
		"options(num_warps = %d, num_stages = %d, num_ctas = %d) {\n"
		"let k = min(n, 0) + %d; let down = cdiv(%d, %d); let across = cdiv(n, %d);\n"
		"let A = tensor(x, [%d, k], [%d, 1]); let B = tensor(y, [k, n]); let C = tensor(z, [%d, n]);\n"
		"%s\n%s\nvar s = zeros([%d, %d], f32);\n"
		"for l in range(%s, %s, %d) { s = dot(A.load([i * %d, l], [%d, %d]), B.load([l, j * %d], [%d, %d]), "
		"s%s); }\n"
		"C.store([i * %d, j * %d], s);\n%s}\n",
		grid, c->warps, c->stages, c->ctas, k, m, c->bm, c->bn, m, k, m,
		c->persistent ? "for t in range(program_id(0), down * across, num_programs(0)) {"
			      : "let t = program_id(0);",
		c->tile, c->bm, c->bn, c->first, c->last, c->bk, c->bm, c->bm, c->bk, c->bn, c->bk, c->bn,
		c->apart ? " * (n > 0 ? 1.0 : 2.0)" : "", c->bm, c->bn, c->persistent ? "}" : "");
	size_t na = (size_t)m * k, nb = (size_t)k * n, nc = (size_t)m * n;
	matrices x = {m, n, k, suite_alloc(2 * na), suite_alloc(2 * nb), suite_alloc(4 * nc)};
	uint64_t state = (uint64_t)(m + n + k);
	fill(x.a, na, &state);
	fill(x.b, nb, &state);
	const void *in[] = {x.a, x.b};
	const size_t bytes[] = {2 * na, 2 * nb};
	bool good = suite_run(s, name, text, NULL, 0, SCALAR_F32, x.c, nc, in, bytes, 2, n);
	suite_verdict(s, good, good ? wrong_elements(c, &x) : 0, text);
	free(x.a);
	free(x.b);
	free(x.c);
}

/* Of eight programs the rows are products, which are equal where a factor is 0, whatever the other one; the divisor is
 * known to be even, so that each looks at its next neighbour's quotient in another form than at the others'. */
static void run_factors(suite *s)
{
	enum { PROGRAMS = 8, TILE = 64, ROWS = PROGRAMS * TILE, K = 128 };
	static const char text[] =
		"kernel k(z: *f32, x: *const f16, y: *const f16, n: i32) grid(8) "
		"options(num_warps = 4, num_stages = 4, num_ctas = 8) {\n"
		"let k = min(n, 0) + 128; let h = n > 0 ? 2 : 1;\n"
		"let A = tensor(x, [512, k], [128, 1]); let B = tensor(y, [k, n]); let C = tensor(z, [512, 64]);\n"
		"let p = program_id(0); let w = p / (2 * h); let u = p < 4 ? maximum(2 - p, 0) : p;\n"
		"var s = zeros([64, 64], f32);\n"
		"for l in range(0, k, 64) { s = dot(A.load([u * w * 64, l], [64, 64]), B.load([l, p * 64], [64, 64]), "
		"s); }\n"
		"C.store([p * 64, 0], s);\n}\n";
	if (!suite_wants(s, "cluster.factors")) return;
	uint16_t *a = suite_alloc(2 * ROWS * K), *b = suite_alloc(2 * ROWS * K);
	float *c = suite_alloc(4 * ROWS * TILE);
	uint64_t state = 7;
	int wrong = 0;
	fill(a, ROWS * K, &state);
	fill(b, ROWS * K, &state);
	const void *in[] = {a, b};
	const size_t bytes[] = {2 * ROWS * K, 2 * ROWS * K};
	bool good =
		suite_run(s, "cluster.factors", text, NULL, 0, SCALAR_F32, c, (size_t)ROWS * TILE, in, bytes, 2, ROWS);
	double *da = suite_doubles(SCALAR_F16, a, (size_t)ROWS * K),
	       *db = suite_doubles(SCALAR_F16, b, (size_t)ROWS * K);
	for (int i = 0; i < ROWS && good; i++)
		for (int j = 0; j < TILE; j++) {
			int program = i / TILE, row = i % TILE + (program < 4 ? 0 : program * TILE);
			double sum = 0;
			for (int l = 0; l < K; l++) sum += da[row * K + l] * db[l * ROWS + program * TILE + j];
			wrong += (double)c[i * TILE + j] != sum;
		}
	suite_verdict(s, good, wrong, text);
	free(a);
	free(b);
	free(c);
	free(da);
	free(db);
}

/* What was asked for has names in the grid, in the body and in functions, unless the kernel has its own. */
static void run_names(suite *s)
{
	static const struct {
		const char *name, *text;
		int32_t want;
	} all[] = {
		{"cluster.names",
			"kernel k(z: *i32, n: i32) grid(whole(5)) options(num_warps = 2, num_stages = 5, num_ctas = 4) "
			"{ store(z + program_id(0), asked()); }",
			254},
		{"cluster.own_name",
			"kernel k(z: *i32, n: i32, const num_ctas: i32 = 8) grid(num_ctas) options(num_warps = 2, "
			"num_stages = "
			"5) "
			"{ let num_warps = 9; store(z + program_id(0), num_warps * 100 + asked() % 10 * 10 + "
			"num_ctas); }",
			918}};
	for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) {
		char text[1024];
		int32_t z[8];
		int wrong = 0;
		if (!suite_wants(s, all[i].name)) continue;
		snprintf(text, sizeof text,
			"fn whole(n) { return cdiv(n, num_ctas) * num_ctas; }\n"
			"fn asked() { return num_warps * 100 + num_stages * 10 + num_ctas; }\n%s\n",
			all[i].text);
		bool good = suite_run(s, all[i].name, text, NULL, 0, SCALAR_I32, z, 8, NULL, NULL, 0, 0);
		for (unsigned k = 0; k < 8 && good; k++) wrong += z[k] != all[i].want;
		suite_verdict(s, good, wrong, text);
	}
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		run(&s, &cases[i], 250, 256, 208); /* tiles by twos and fours */
		run(&s, &cases[i], 290, 176, 80);  /* an odd number of them */
		run(&s, &cases[i], 256, 128, 24);  /* fewer iterations than stages */
		run(&s, &cases[i], 500, 176, 80);  /* three tiles a row: those of a cluster lie in two */
	}
	run_factors(&s);
	run_names(&s);
	return suite_close(&s);
}
