/* Sums relative to a maximum that blocks of numbers raise: in each block, in some, in one row, never; from a maximum
 * that is -inf, to one that is inf.  Queries have a single 1, so a score is one number of its key's, and is chosen
 * here. */
#include "device_test.h"

enum { WIDTH = 64, KEYS = 600, MOST_ROWS = 256 };

typedef enum pattern { STILL, RISES, FALLS, ONE_RISES, JUMPS, HIDDEN_FIRST, INFINITE, PATTERNS } pattern;

static const char *const pattern_names[PATTERNS] = {
	"still", "rises", "falls", "one.rises", "jumps", "hidden.first", "infinite"};

typedef struct form {
	const char *name;
	const char *start, *next, *power, *options;
	double lazy; /* how far above the maximum may be */
} form;

#define LOWEST "-3.4028234663852886e38"
static const form forms[] = {
	{"plain", "-inf", "most", "exp2", "", 0},
	{"lazy", LOWEST, "where(most > m + 8.0, most, m)", "exp2", "", 8},
	{"stays", "-inf", "where(most <= m + 8.0, m, most)", "exp2", "", 8},
	{"natural", LOWEST, "most", "exp", ", strict = true", 0},
};

typedef struct block {
	const char *name;
	int rows, keys, warps;
} block;

static const block blocks[] = {{"64", 64, 64, 4}, {"128", 128, 128, 8}, {"192", 192, 128, 12}, {"256", 256, 64, 16}};

/* One below -1000 stands for -inf, as of a key behind the end, one above 1000 for inf. */
static double score(pattern p, int row, int key)
{
	double base = (row * 7 + key * 5) % 16 / 4.0, before = key / 64;
	if (key >= KEYS) return -2000;
	switch (p) {
	case RISES: return base + 12 * before;
	case FALLS: return base - 12 * before;
	case ONE_RISES: return base + (row == 37 ? 20 * before : 0);
	case JUMPS: return base + (key == 64 * (row % 8) + row ? 100 : 0);
	case HIDDEN_FIRST: return key < 140 && row % 3 == 1 ? -2000 : base;
	case INFINITE: return key == 300 && row % 5 == 2 ? 2000 : base;
	default: return base;
	}
}

static double shown(double x)
{
	return x < -1000 ? -(double)INFINITY : x > 1000 ? (double)INFINITY : x;
}

/* What the kernel's text says, in double precision. */
static void want_row(const form *f, pattern p, int row, int keys, const double *v, double *out)
{
	double m = strcmp(f->start, "-inf") == 0 ? -(double)INFINITY : -(double)3.4028234663852886e38f, l = 0;
	bool natural = strcmp(f->power, "exp") == 0;
	for (int c = 0; c < WIDTH; c++) out[c] = 0;
	for (int first = 0; first < KEYS; first += keys) {
		double most = m;
		for (int j = first; j < first + keys; j++) most = fmax(most, shown(score(p, row, j)));
		double next = f->lazy == 0 || most > m + f->lazy ? most : m;
		double a = natural ? exp(m - next) : exp2(m - next);
		l *= a;
		for (int c = 0; c < WIDTH; c++) out[c] *= a;
		for (int j = first; j < first + keys; j++) {
			double s = shown(score(p, row, j)) - next, w = natural ? exp(s) : exp2(s);
			l += w;
			for (int c = 0; c < WIDTH; c++) out[c] += w * (j < KEYS ? v[j * WIDTH + c] : 0);
		}
		m = next;
	}
	for (int c = 0; c < WIDTH; c++) out[c] /= l;
}

static void kernel_text(char *out, size_t room, const form *f, const block *b)
{
	snprintf(out, room,
		"kernel k(c: *f32, q: *const f16, k: *const f16, v: *const f16, n: i32, const BM: i32 = %d,\n"
		"    const BN: i32 = %d)\n    grid(1) options(num_warps = %d, num_stages = 2%s)\n{\n"
		"    let K = tensor(k, shape = [n, 64]);\n"
		"    let V = tensor(v, shape = [n, 64]);\n"
		"    let x = tensor(q, shape = [BM, 64]).load([0, 0], [BM, 64]);\n"
		"    var m = full([BM], %s, f32);\n"
		"    var l = zeros([BM], f32);\n"
		"    var acc = zeros([BM, 64], f32);\n"
		"    for j in range(0, n, BN) {\n"
		"        let d = dot(x, trans(K.load([j, 0], [BN, 64])));\n"
		"        let seen = where(d < -1000.0, -inf, where(d > 1000.0, inf, d));\n"
		"        let s = where((j + arange(0, BN) < n)[None, :], seen, -inf);\n"
		"        let most = maximum(m, max(s, 1));\n"
		"        let next = %s;\n"
		"        let p = %s(s - next[:, None]);\n"
		"        let a = %s(m - next);\n"
		"        l = l * a + sum(p, 1);\n"
		"        acc = dot(p.to(f16), V.load([j, 0], [BN, 64]), acc * a[:, None]);\n"
		"        m = next;\n"
		"    }\n"
		"    tensor(c, shape = [BM, 64]).store([0, 0], acc / l[:, None]);\n}\n",
		b->rows, b->keys, b->warps, f->options, f->start, f->next, f->power, f->power);
}

static void fill(uint16_t *q, uint16_t *k, uint16_t *v, pattern p)
{
	uint64_t seed = 7;
	for (int i = 0; i < WIDTH * WIDTH; i++) q[i] = (uint16_t)scalar_from_double(SCALAR_F16, i % WIDTH == i / WIDTH);
	for (int i = 0; i < KEYS * WIDTH; i++) {
		k[i] = (uint16_t)scalar_from_double(SCALAR_F16, score(p, i % WIDTH, i / WIDTH));
		v[i] = (uint16_t)scalar_from_double(SCALAR_F16, (double)(suite_random(&seed) % 33) / 8 - 2);
	}
}

static bool is_near(double got, double want)
{
	if (isnan(want) || isinf(want)) return isnan(want) ? isnan(got) : got == want;
	return fabs(got - want) <= 4e-3 * (1 + fabs(want));
}

/* Row i of the tile has the scores of row i % 64. */
static void run(suite *s, const char *name, const form *f, pattern p, const block *b)
{
	int rows = b->rows;
	uint16_t *q = suite_alloc(MOST_ROWS * WIDTH * sizeof *q), *k = suite_alloc(KEYS * WIDTH * sizeof *k);
	uint16_t *v = suite_alloc(KEYS * WIDTH * sizeof *v);
	float *got = suite_alloc(MOST_ROWS * WIDTH * sizeof *got);
	fill(q, k, v, p);
	for (int i = WIDTH * WIDTH; i < rows * WIDTH; i++) q[i] = q[i % (WIDTH * WIDTH)];
	double *values = suite_doubles(SCALAR_F16, v, KEYS * WIDTH), want[WIDTH];
	const void *in[] = {q, k, v};
	const size_t bytes[] = {(size_t)(rows * WIDTH) * sizeof *q, KEYS * WIDTH * sizeof *k, KEYS * WIDTH * sizeof *v};
	char text[2048];
	kernel_text(text, sizeof text, f, b);
	bool good = suite_run(s, name, text, NULL, 0, SCALAR_F32, got, (size_t)(rows * WIDTH), in, bytes, 3, KEYS);
	int wrong = 0;
	for (int i = 0; good && i < rows; i++) {
		want_row(f, p, i % WIDTH, b->keys, values, want);
		for (int c = 0; c < WIDTH; c++)
			if (!is_near((double)got[i * WIDTH + c], want[c]) && wrong++ < 3)
				printf("%s: element (%d, %d) is %g, expected %g\n", name, i, c,
					(double)got[i * WIDTH + c], want[c]);
	}
	suite_verdict(s, good, wrong, text);
	free(q), free(k), free(v), free(got), free(values);
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	enum { FORMS = sizeof forms / sizeof *forms, BLOCKS = sizeof blocks / sizeof *blocks };
	for (int i = 0; i < FORMS * PATTERNS * BLOCKS; i++) {
		int f = i % FORMS, b = i / FORMS % BLOCKS, p = i / FORMS / BLOCKS;
		char name[64];
		snprintf(name, sizeof name, "%s.%s.%s", forms[f].name, pattern_names[p], blocks[b].name);
		if (!s.all && (f + b + p) % BLOCKS != 0) continue; /* each two of form, block and pattern meet */
		if (suite_wants(&s, name)) run(&s, name, &forms[f], (pattern)p, &blocks[b]);
	}
	return suite_close(&s);
}
