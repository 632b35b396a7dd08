/* What a GPU's code may do with floats beyond the plain rules, and how far off it may be (docs/language.md, section 5):
 * each program with and without `strict`, against sums in double precision, within the documented bounds. */
#include "device_test.h"

enum { ROWS = 64, COLUMNS = 64, TILE = ROWS * COLUMNS, ROUNDS = 3, INPUT = (ROUNDS + 1) * TILE };
#define ULP 0x1p-23
#define HEAD                                                                                                           \
	"kernel k(z: *f32, x: *const f32, n: i32, const W: i32 = 4, const S: bool = false) grid(1) options(num_warps " \
	"= W, strict = S) {\n" AT
#define AT                                                                                                             \
	"    let r = arange(0, 64); let c = arange(0, 64); let at = r[:, None] * 64 + c[None, :];\n    let v = "       \
	"load(x + "                                                                                                    \
	"at);\n"

typedef struct program {
	const char *name, *text;
	int nout, n;
	void (*fill)(float *x);
	/* What is right, and by how much a result may differ. */
	void (*want)(const float *x, int n, bool strict, double *z, double *off);
} program;

/* ---- exponentials: a row's numbers are about the same, each row less than the one above ---- */

static void fill_exponents(float *x)
{
	for (int i = 0; i < TILE; i++) x[i] = (float)(10 - i / COLUMNS * 2.5 + i % COLUMNS * 0.013);
}

static void sums(const float *x, bool strict, double *z, double *off, double (*f)(double), double plain, double slope)
{
	for (int r = 0; r < ROWS; r++) {
		z[r] = off[r] = 0;
		for (int c = 0; c < COLUMNS; c++) {
			double v = x[r * COLUMNS + c], e = f(v);
			z[r] += e;
			off[r] += e * ULP * (plain + (strict ? 0 : slope * fabs(v))) + (strict ? 0x1p-149 : 0x1p-126);
		}
		off[r] += z[r] * COLUMNS * ULP / 2;
	}
}
static void want_exp2(const float *x, int n, bool strict, double *z, double *off)
{
	(void)n;
	sums(x, strict, z, off, exp2, 2, 0);
}
static void want_exp(const float *x, int n, bool strict, double *z, double *off)
{
	(void)n;
	sums(x, strict, z, off, exp, 3, 1.3);
}
/* Stored as they are: no liberty. */
static void want_each(const float *x, int n, bool strict, double *z, double *off)
{
	(void)n, (void)strict;
	for (int i = 0; i < TILE; i++) {
		z[i] = exp(x[i]);
		off[i] = 3 * z[i] * ULP + 0x1p-148;
	}
}
static void want_halves(const float *x, int n, bool strict, double *z, double *off)
{
	(void)n;
	for (int i = 0; i < TILE; i++) {
		z[i] = exp(fmin(x[i], 10.5));
		off[i] = z[i] * (0x1p-11 + (3 + (strict ? 0 : 1.3 * fabs(x[i]))) * ULP) + 0x1p-25;
	}
}

/* ---- factors ---- */

static void fill_small(float *x)
{
	uint64_t state = 11;
	for (int i = 0; i < INPUT; i++) x[i] = (float)((int)(suite_random(&state) % 17) - 8) / 4;
}

static void want_scaled(const float *x, int n, bool strict, double *z, double *off)
{
	(void)strict;
	for (int i = 0; i < TILE; i++) {
		double sum = 0, all = 0;
		for (int t = 0; t < n; t++)
			for (int k = 0; k < COLUMNS; k++) {
				double p = (double)x[t * TILE + i / COLUMNS * COLUMNS + k] *
					   x[t * TILE + i % COLUMNS * COLUMNS + k];
				sum += p;
				all += fabs(p);
			}
		z[i] = 0.5 + (double)0.3f * sum;
		off[i] = (n * (COLUMNS + 8) * 0x1p-24 * all * 0.3) + (n + 2) * (fabs(z[i]) + all * 0.3) * ULP / 2;
	}
}

/* A row of nothing but nan, zeros of both signs, infinities. */
static void fill_special(float *x)
{
	fill_small(x);
	for (int c = 0; c < COLUMNS; c++) {
		x[c] = NAN;
		x[COLUMNS + c] = c % 2 ? 0.0f : -0.0f;
		x[2 * COLUMNS + c] = -0.0f;
		x[3 * COLUMNS + c] = c == 5 ? INFINITY : c == 6 ? -INFINITY : c == 7 ? NAN : x[3 * COLUMNS + c];
	}
}

static void want_greatest(const float *x, int n, bool strict, double *z, double *off)
{
	static const float factor[] = {-0.7f, 2.3f, 2.3f};
	(void)n, (void)strict;
	for (int i = 0; i < 3 * ROWS; i++) {
		float best = NAN;
		for (int c = 0; c < COLUMNS; c++) {
			float p = x[i % ROWS * COLUMNS + c] * factor[i / ROWS];
			if (i / ROWS == 2 && c < 3) p = -INFINITY;
			if (!isnan(p) && (isnan(best) || p > best || (p == best && !signbit(p)))) best = p;
		}
		z[i] = best;
		off[i] = 0;
	}
}

/* ---- rows of a softmax that is made round by round ---- */

static void want_rows(const float *x, int n, bool strict, double *z, double *off)
{
	(void)strict;
	for (int r = 0; r < ROWS; r++) {
		double l = x[r], m = 0, size = fabs(l);
		for (int t = 1; t <= n; t++) {
			double s[COLUMNS], most = m;
			for (int c = 0; c < COLUMNS; c++) {
				s[c] = 0;
				for (int k = 0; k < COLUMNS; k++)
					s[c] += (double)x[r * COLUMNS + k] * x[t * TILE + c * COLUMNS + k];
				most = fmax(most, s[c] *= 0.125);
			}
			l *= exp2(m - most), size *= exp2(m - most);
			for (int c = 0; c < COLUMNS; c++) l += exp2(s[c] - most), size += exp2(s[c] - most);
			m = most;
		}
		z[r] = l;
		z[ROWS + r] = m;
		off[r] = size * (n * COLUMNS + 8) * ULP + size * 8 * 0x1p-20;
		off[ROWS + r] = fabs(m) * 0x1p-20;
	}
}

#define LOOP(start)                                                                                                    \
	HEAD "    let q = v.to(f16); var l = " start ";\n    var m = zeros([64], f32);\n"                              \
	     "    for i in range(0, n) {\n"                                                                            \
	     "        let s = dot(q, trans(load(x + (i + 1) * 4096 + at).to(f16))) * 0.125;\n"                         \
	     "        let most = maximum(m, max(s, 1));\n        let a = exp2(m - most);\n"                            \
	     "        l = l * a + sum(exp2(s - most[:, None]), 1);\n        m = most;\n    }\n"                        \
	     "    store(z + r, l); store(z + 64 + r, m);\n}\n"

static const program programs[] = {
	{"exp2", HEAD "    store(z + r, sum(exp2(v), 1));\n}\n", ROWS, 0, fill_exponents, want_exp2},
	{"exp", HEAD "    store(z + r, sum(exp(v), 1));\n}\n", ROWS, 0, fill_exponents, want_exp},
	{"stored", HEAD "    let e = exp(v);\n    store(z + at, e);\n}\n", TILE, 0, fill_exponents, want_each},
	{"halves", HEAD "    store(z + at, exp(minimum(v, 10.5)).to(f16));\n}\n", TILE, 0, fill_exponents, want_halves},
	{"scaled",
		HEAD "    var s = full([64, 64], 0.5, f32);\n    for i in range(0, n) {\n"
		     "        let a = load(x + i * 4096 + at).to(f16);\n        s += 0.3 * dot(a, trans(a));\n    }\n"
		     "    store(z + at, s);\n}\n",
		TILE, ROUNDS, fill_small, want_scaled},
	{"scaled, no round",
		HEAD "    var s = full([64, 64], 0.5, f32);\n    for i in range(0, n) {\n"
		     "        let a = load(x + i * 4096 + at).to(f16);\n        s += 0.3 * dot(a, trans(a));\n    }\n"
		     "    store(z + at, s);\n}\n",
		TILE, 0, fill_small, want_scaled},
	{"greatest",
		HEAD "    let f = 2.3 * n.to(f32);\n    assume(f > 0.0);\n    store(z + r, max(v * -0.7, 1));\n"
		     "    store(z + 64 + r, max(v * f, axis = 1));\n"
		     "    store(z + 128 + r, max(where(c[None, :] > 2, v * f, -inf), axis = 1));\n}\n",
		3 * ROWS, 1, fill_special, want_greatest},
	{"rows", LOOP("load(x + r)"), 2 * ROWS, ROUNDS, fill_small, want_rows},
	{"rows, no round", LOOP("load(x + r)"), 2 * ROWS, 0, fill_small, want_rows},
};

static void run(suite *s, const program *p, int warps, bool strict)
{
	static float x[INPUT];
	char name[100], w[8];
	const blk_define defines[] = {{"W", w}, {"S", strict ? "true" : "false"}};
	snprintf(name, sizeof name, "%s, %d warps%s", p->name, warps, strict ? ", strict" : "");
	snprintf(w, sizeof w, "%d", warps);
	if (!suite_wants(s, name)) return;
	float *got = suite_alloc((size_t)p->nout * 4);
	double *want = suite_alloc((size_t)p->nout * sizeof *want), *off = suite_alloc((size_t)p->nout * sizeof *off);
	size_t bytes = sizeof x;
	const void *inputs[] = {x};
	p->fill(x);
	bool good = suite_run(s, name, p->text, defines, 2, SCALAR_F32, got, (size_t)p->nout, inputs, &bytes, 1, p->n);
	p->want(x, p->n, strict, want, off);
	int wrong = 0;
	for (int i = 0; good && i < p->nout; i++) {
		bool same = isnan(want[i]) ? isnan(got[i]) != 0
			    : off[i] == 0  ? got[i] == want[i] && !signbit(got[i]) == !signbit(want[i])
					   : fabs(got[i] - want[i]) <= off[i];
		if (!same && wrong++ < 4)
			printf("%s: element %d is %g, expected %g, off by at most %g\n", name, i, (double)got[i],
				want[i], off[i]);
	}
	suite_verdict(s, good, wrong, p->text);
	free(got);
	free(want);
	free(off);
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
		for (int how = 0; how < 4; how++) run(&s, &programs[i], how & 1 ? 8 : 4, how & 2);
	return suite_close(&s);
}
