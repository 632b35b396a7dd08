/* Products whose operands are computed, as weights that are converted are, and blocks that products take and threads
 * compute with besides.  Numbers are small and whole, so every sum is exact. */
#include "device_test.h"

enum { COLUMNS = 200, DEPTH = 160, HALF = DEPTH / 2, BLOCK = 32 };

typedef struct data {
	int n;
	double *a, *w, *g; /* [n, DEPTH], [COLUMNS, DEPTH], [COLUMNS] */
} data;

typedef struct operand_case {
	const char *name, *body; /* behind the loads of tensors; what it leaves in acc is stored */
	scalar weights;
	int columns; /* of the output */
	double (*want)(const data *, int i, int j);
} operand_case;

static double of_weights(const data *d, int i, int j)
{
	double sum = 0;
	for (int l = 0; l < DEPTH; l++) sum += d->a[i * DEPTH + l] * d->w[j * DEPTH + l];
	return sum;
}
static double scaled(const data *d, int i, int j)
{
	return of_weights(d, i, j) * d->g[j];
}
static double shifted(const data *d, int i, int j)
{
	double sum = 0;
	for (int l = 0; l < DEPTH; l++) sum += d->a[i * DEPTH + l] * (2 * d->w[j * DEPTH + l] - 8);
	return sum;
}
/* A byte has an element of the first half of k in its low bits, one of the second in its high ones. */
static double nibbles(const data *d, int i, int j)
{
	double sum = 0;
	for (int l = 0; l < HALF; l++) {
		int b = (int)d->w[j * DEPTH + l];
		sum += d->a[i * DEPTH + l] * ((b & 15) - 8) + d->a[i * DEPTH + HALF + l] * ((b >> 4) - 8);
	}
	return sum * d->g[j];
}
static double with_squares(const data *d, int i, int j)
{
	double sum = of_weights(d, i, j);
	for (int l = 0; l < DEPTH; l++) sum += d->a[i * DEPTH + l] * d->a[i * DEPTH + l];
	return sum;
}
/* a of row i times a of all rows, times those again. */
static double twice(const data *d, int i, int j)
{
	double sum = 0;
	for (int r = 0; r < d->n; r++) {
		double s = 0;
		for (int l = 0; l < 64; l++) s += d->a[i * DEPTH + l] * d->a[r * DEPTH + l];
		sum += s * d->a[r * DEPTH + j];
	}
	return sum;
}
static double twice_doubled(const data *d, int i, int j)
{
	return 2 * twice(d, i, j);
}
/* Each of those products times an element of a. */
static double twice_weighted(const data *d, int i, int j)
{
	double sum = 0;
	for (int r = 0; r < d->n; r++) {
		double s = 0;
		for (int l = 0; l < 64; l++) s += d->a[i * DEPTH + l] * d->a[r * DEPTH + l];
		sum += s * d->a[i * DEPTH + r] * d->a[r * DEPTH + j];
	}
	return sum;
}
static double scaled_blocks(const data *d, int i, int j)
{
	double sum = 0;
	for (int l = 0; l < DEPTH; l++)
		sum += d->a[i * DEPTH + l] * d->w[j * DEPTH + l] * (d->a[i * DEPTH + l / BLOCK] + 1);
	return sum;
}

#define WALK(statements)                                                                                               \
	"var acc = zeros([BM, BN], f32);\n"                                                                            \
	"for k in range(0, 160, 32) {\n"                                                                               \
	"    let x = A.load([i, k], [BM, 32]); let y = W.load([j, k], [BN, 32]);\n" statements "}\n"
#define ROWS(statements)                                                                                               \
	"var acc = zeros([BM, 64], f32);\n"                                                                            \
	"let q = A.load([i, 0], [BM, 64]);\n"                                                                          \
	"for r in range(0, n, 32) {\n"                                                                                 \
	"    let x = A.load([r, 0], [32, 64]);\n" statements "}\n"

static const operand_case cases[] = {
	{"i8", WALK("acc = dot(x, trans(y.to(T)), acc);"), SCALAR_I8, COLUMNS, of_weights},
	{"u8", WALK("acc = dot(x, trans(y.to(T)), acc);"), SCALAR_U8, COLUMNS, of_weights},
	{"shared_number", WALK("acc = dot(x, trans(y.to(T) * 2.0 - 8.0), acc);"), SCALAR_I8, COLUMNS, shifted},
	{"row_factor",
		WALK("let f = load(g + j + arange(0, BN) + k * min(n, 0), mask = j + arange(0, BN) < 200);\n"
		     "acc = dot(x, trans(y.to(T) * f[:, None]), acc);"),
		SCALAR_I8, COLUMNS, scaled},
	{"nibbles",
		"let f = load(g + j + arange(0, BN), mask = j + arange(0, BN) < 200);\n"
		"var acc = zeros([BM, BN], f32);\n"
		"for k in range(0, 80, 16) {\n"
		"    let b = W.load([j, k], [BN, 16]);\n"
		"    acc = dot(A.load([i, k], [BM, 16]), trans(((b & 15).to(T) - 8.0) * f[:, None]), acc);\n"
		"    acc = dot(A.load([i, k + 80], [BM, 16]), trans(((b >> 4).to(T) - 8.0) * f[:, None]), acc);\n"
		"}\n",
		SCALAR_U8, COLUMNS, nibbles},
	{"squares",
		"var squares = zeros([BM], f32);\n" WALK(
			"acc = dot(x, trans(y.to(T)), acc);\n"
			"let z = x.to(f32); squares += sum(z * z, 1);\n") "acc += squares[:, None];\n",
		SCALAR_I8, COLUMNS, with_squares},
	{"one_block", ROWS("let s = dot(q, trans(x)); acc = dot(s.to(T), x, acc);\n"), SCALAR_I8, 64, twice},
	{"block_and_doubled", ROWS("let s = dot(q, trans(x)); acc = dot(s.to(T), x + x, acc);\n"), SCALAR_I8, 64,
		twice_doubled},
	{"block_and_weights",
		ROWS("let s = dot(q, trans(x)); let f = A.load([i, r], [BM, 32]);\n"
		     "acc = dot(s.to(T) * f, x, acc);\n"),
		SCALAR_I8, 64, twice_weighted},
	{"scaled_sums",
		WALK("let f = load(a + (i + arange(0, BM)) * 160 + k / 32, mask = i + arange(0, BM) < n).to(f32);\n"
		     "acc += dot(x, trans(y.to(T))) * (f + 1.0)[:, None];\n"),
		SCALAR_I8, COLUMNS, scaled_blocks},
};

static int wrong_elements(const operand_case *c, const float *got, const data *d)
{
	int wrong = 0;
	for (int i = 0; i < d->n; i++)
		for (int j = 0; j < c->columns; j++) wrong += (double)got[i * c->columns + j] != c->want(d, i, j);
	return wrong;
}

static void run(suite *s, const operand_case *c, scalar t, int n, int rows, int columns, int warps)
{
	char name[64], text[2048];
	snprintf(name, sizeof name, "%s.%s.%d.%dx%d.%d", c->name, scalar_table[t].name, n, rows, columns, warps);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(const T: type = %s, out: *f32, a: *const T, w: *const %s, g: *const T, n: i32,\n"
		"    const BM: i32 = %d, const BN: i32 = %d, const WIDTH: i32 = %d)\n"
		"    grid(cdiv(n, BM), cdiv(WIDTH, BN)) options(num_warps = %d, num_stages = 3)\n"
		"{\n"
		"let A = tensor(a, shape = [n, 160]); let W = tensor(w, shape = [200, 160]);\n"
		"let i = program_id(0) * BM; let j = program_id(1) * BN;\n"
		"%s"
		"tensor(out, shape = [n, WIDTH]).store([i, j], acc);\n"
		"}\n",
		scalar_table[t].name, scalar_table[c->weights].name, rows, c->columns == 64 ? 64 : columns, c->columns,
		warps, c->body);
	size_t na = (size_t)n * DEPTH, nw = COLUMNS * DEPTH, nout = (size_t)n * (size_t)c->columns;
	uint16_t *a = suite_alloc(2 * na), *g = suite_alloc(2 * COLUMNS);
	uint8_t *w = suite_alloc(nw);
	float *out = suite_alloc(4 * nout);
	uint64_t state = (uint64_t)(n + rows);
	for (size_t i = 0; i < na; i++) a[i] = (uint16_t)scalar_from_double(t, (double)(suite_random(&state) % 3) - 1);
	for (size_t i = 0; i < COLUMNS; i++) g[i] = (uint16_t)scalar_from_double(t, (double)(suite_random(&state) % 3));
	for (size_t i = 0; i < nw; i++) w[i] = (uint8_t)suite_random(&state);
	const void *in[] = {a, w, g};
	const size_t bytes[] = {2 * na, nw, 2 * COLUMNS};
	data d = {n, suite_doubles(t, a, na), suite_doubles(c->weights, w, nw), suite_doubles(t, g, COLUMNS)};
	bool good = suite_run(s, name, text, NULL, 0, SCALAR_F32, out, nout, in, bytes, 3, n);
	suite_verdict(s, good, good ? wrong_elements(c, out, &d) : 0, text);
	free(a), free(w), free(g), free(out);
	free(d.a), free(d.w), free(d.g);
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		run(&s, &cases[i], SCALAR_F16, 150, 128, 128, 8);
		run(&s, &cases[i], SCALAR_F16, 77, 64, 64, 4);
		run(&s, &cases[i], SCALAR_F16, 33, 16, 64, 4);
		run(&s, &cases[i], SCALAR_BF16, 150, 64, 128, 8);
		if (cases[i].columns == 64) run(&s, &cases[i], SCALAR_F16, 150, 192, 64, 12); /* three groups of rows */
	}
	return suite_close(&s);
}
