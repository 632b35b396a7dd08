/* Loops of products one behind the other, which share shared memory: their sums meet between them and behind, on runs
 * of any length, none too, in tiles that follow each other.  Numbers are small and whole, so every sum is exact. */
#include "device_test.h"

enum { ROWS = 300, COLUMNS = 128, DEPTH = 328 };

typedef struct loops_case {
	const char *name;
	const char *tile;    /* BM, BK, warps, stages and programs of a cluster */
	const char *between; /* the loops: the sum */
	const char *second;  /* what the second one takes for B */
	bool walks;          /* a program goes over tiles */
	int first, last;     /* the first loop ends there, the second one here */
	double factor;       /* what `between` does */
	double weight;       /* of the second loop's products */
} loops_case;

#define SMALL "64, 32, 4, 4, 1"
#define LARGE "128, 64, 8, 4, 1" /* 131072 bytes: one loop's alone fit */
#define GROUPS "192, 64, 12, 2, 1"
#define CLUSTER "64, 32, 4, 3, 2"
#define SAME "B.load([k, 0], [BK, 128])"

static const loops_case cases[] = {
	{"large", LARGE, "acc * 2.0", SAME, false, 128, DEPTH, 2, 1},
	{"large.tiles", LARGE, "acc * 2.0", SAME, true, 128, DEPTH, 2, 1},
	{"small", SMALL, "acc + 0.0", SAME, false, 96, DEPTH, 1, 1},
	{"small.tiles", SMALL, "acc + 0.0", SAME, true, 96, DEPTH, 1, 1},
	{"none.first", LARGE, "acc * 2.0", SAME, true, 0, 192, 2, 1},
	{"none.second", LARGE, "acc * 2.0", SAME, true, 192, 192, 2, 1},
	{"none", SMALL, "acc * 2.0", SAME, true, 0, 0, 2, 1},
	{"one.each", SMALL, "acc * 2.0", SAME, true, 32, 64, 2, 1},
	{"groups", GROUPS, "acc * 2.0", SAME, false, 192, DEPTH, 2, 1},
	{"groups.tiles", GROUPS, "acc * 2.0", SAME, true, 192, DEPTH, 2, 1},
	{"cluster", CLUSTER, "acc * 2.0", SAME, false, 96, DEPTH, 2, 1},
	{"cluster.computed", CLUSTER, "acc * 2.0", "(" SAME " * 2.0)", false, 96, DEPTH, 2, 2},
	{"cluster.tiles", CLUSTER, "acc * 2.0", SAME, true, 96, DEPTH, 2, 1},
	{"computed", SMALL, "acc * 2.0", "(" SAME " * 2.0)", true, 96, DEPTH, 2, 2},
	{"computed.one", SMALL, "acc * 2.0", "(" SAME " * 2.0)", false, 96, DEPTH, 2, 2},
};

static void kernel_text(char *out, size_t room, const loops_case *c)
{
	int bm, bk, warps, stages, ctas;
	if (sscanf(c->tile, "%d, %d, %d, %d, %d", &bm, &bk, &warps, &stages, &ctas) != 5) exit(1);
	snprintf(out, room,
		"kernel k(c: *f32, a: *const f16, b: *const f16, n: i32, const BM: i32 = %d, const BK: i32 = %d)\n"
		"    grid(%s) options(num_warps = %d, num_stages = %d, num_ctas = %d)\n{\n"
		"    let first = n %% 1024;\n"
		"    let last = n / 1024;\n"
		"    let A = tensor(a, shape = [300, 328]);\n"
		"    let B = tensor(b, shape = [328, 128]);\n"
		"    let C = tensor(c, shape = [300, 128]);\n"
		"    for t in range(program_id(0), cdiv(300, BM), %s) {\n"
		"        var acc = zeros([BM, 128], f32);\n"
		"        for k in range(0, first, BK) { acc = dot(A.load([t * BM, k], [BM, BK]), %s, acc); }\n"
		"        acc = %s;\n"
		"        for k in range(first, last, BK) { acc = dot(A.load([t * BM, k], [BM, BK]), %s, acc); }\n"
		"        C.store([t * BM, 0], acc);\n    }\n}\n",
		bm, bk, c->walks ? "2" : "cdiv(cdiv(300, BM), 2) * 2", warps, stages, ctas,
		c->walks ? "num_programs(0)" : "1 << 20", SAME, c->between, c->second);
}

static double wanted(const loops_case *c, const double *a, const double *b, int i, int j)
{
	double sum = 0, second = 0;
	for (int l = 0; l < c->last && l < DEPTH; l++)
		*(l < c->first ? &sum : &second) += a[i * DEPTH + l] * b[l * COLUMNS + j];
	return sum * c->factor + second * c->weight;
}

static void run(suite *s, const loops_case *c)
{
	enum { NA = ROWS * DEPTH, NB = DEPTH * COLUMNS, NC = ROWS * COLUMNS };
	uint16_t *pa = suite_alloc(NA * sizeof *pa), *pb = suite_alloc(NB * sizeof *pb);
	double *a = suite_whole_numbers(pa, NA, 1), *b = suite_whole_numbers(pb, NB, 2);
	float *got = suite_alloc(NC * sizeof *got);
	const void *in[] = {pa, pb};
	const size_t bytes[] = {NA * sizeof *pa, NB * sizeof *pb};
	char text[1024];
	kernel_text(text, sizeof text, c);
	bool good = suite_run(s, c->name, text, NULL, 0, SCALAR_F32, got, NC, in, bytes, 2, c->first + 1024 * c->last);
	int wrong = 0;
	for (int at = 0; good && at < NC; at++) {
		double want = wanted(c, a, b, at / COLUMNS, at % COLUMNS);
		if (got[at] != want && wrong++ < 3)
			printf("%s: element (%d, %d) is %g, expected %g\n", c->name, at / COLUMNS, at % COLUMNS,
				(double)got[at], want);
	}
	suite_verdict(s, good, wrong, text);
	free(pa), free(pb), free(a), free(b), free(got);
}

/* Two loops read the same numbers by one channel, along the columns of a product and along the rows of one. */
static const char both_ways[] = "kernel k(c: *f32, a: *const f16, b: *const f16, w: *const f32, n: i32)\n"
				"    grid(1) options(num_warps = 8, num_stages = 2)\n{\n"
				"    let A = tensor(a, shape = [128, 64]);\n"
				"    let B = tensor(b, shape = [n, 64]);\n"
				"    let x = A.load([0, 0], [128, 64]);\n"
				"    var acc = zeros([128, 64], f32);\n"
				"    for j in range(0, n, 128) {\n"
				"        let y = B.load([j, 0], [128, 64]);\n"
				"        let f = load(w + j + arange(0, 128));\n"
				"        acc = dot((dot(x, trans(y)) - f[None, :]).to(f16), y, acc);\n"
				"    }\n"
				"    for j in range(0, n, 128) {\n"
				"        let y = B.load([j, 0], [128, 64]);\n"
				"        let f = load(w + j + arange(0, 128));\n"
				"        acc = dot((dot(y, trans(x)) - f[:, None]).to(f16), x, acc);\n"
				"    }\n"
				"    tensor(c, shape = [128, 64]).store([0, 0], acc);\n}\n";

static double dot64(const double *a, const double *b)
{
	double sum = 0;
	for (int d = 0; d < 64; d++) sum += a[d] * b[d];
	return sum;
}

static double wanted_both_ways(const double *a, const double *b, const float *w, int n, int i, int c)
{
	double sum = 0;
	for (int j = 0; j < n; j++) sum += (dot64(a + i * 64, b + j * 64) - (double)w[j]) * b[j * 64 + c];
	for (int j = i; j < n; j += 128)
		for (int r = 0; r < 128; r++) sum += (dot64(b + j * 64, a + r * 64) - (double)w[j]) * a[r * 64 + c];
	return sum;
}

static void run_both_ways(suite *s)
{
	enum { N = 384, NA = 128 * 64, NB = N * 64 };
	uint16_t *pa = suite_alloc(NA * sizeof *pa), *pb = suite_alloc(NB * sizeof *pb);
	double *a = suite_whole_numbers(pa, NA, 3), *b = suite_whole_numbers(pb, NB, 4);
	float *w = suite_alloc(N * sizeof *w), *got = suite_alloc(NA * sizeof *got);
	uint64_t seed = 5;
	for (int j = 0; j < N; j++) w[j] = (float)(suite_random(&seed) % 64);
	const void *in[] = {pa, pb, w};
	const size_t bytes[] = {NA * sizeof *pa, NB * sizeof *pb, N * sizeof *w};
	bool good = suite_run(s, "both.ways", both_ways, NULL, 0, SCALAR_F32, got, NA, in, bytes, 3, N);
	int wrong = 0;
	for (int at = 0; good && at < NA; at++)
		wrong += (double)got[at] != wanted_both_ways(a, b, w, N, at / 64, at % 64);
	suite_verdict(s, good, wrong, both_ways);
	free(pa), free(pb), free(a), free(b), free(w), free(got);
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	if (suite_wants(&s, "both.ways")) run_both_ways(&s);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (suite_wants(&s, cases[i].name)) run(&s, &cases[i]);
	return suite_close(&s);
}
