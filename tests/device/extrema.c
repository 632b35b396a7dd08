/* nan in maxima and minima: passed over, or kept where `propagate_nan` says so, at every place of a row, in whole rows,
 * behind a mask, and of both signs; with the index of the winner.
 *
 * Row r of a matrix has its nan in column r; the last rows have several of them, infinities, none, or nothing else.
 * The reference walks a row and decides by the words of docs/language.md. */
#include "device_test.h"

enum { ODD_ROWS = 4 };

typedef struct extremum {
	const char *name, *expression; /* of v and AXIS */
	bool max, index, nan_wins;
} extremum;

static const extremum extrema[] = {
	{"max", "max(v, AXIS)", true, false, false},
	{"min", "min(v, AXIS)", false, false, false},
	{"max_nan", "max(v, AXIS, propagate_nan = true)", true, false, true},
	{"min_nan", "min(v, AXIS, propagate_nan = true)", false, false, true},
	{"argmax", "argmax(v, AXIS)", true, true, false},
	{"argmin", "argmin(v, AXIS)", false, true, false},
	{"argmax_nan", "argmax(v, AXIS, propagate_nan = true)", true, true, true},
	{"argmin_nan", "argmin(v, AXIS, propagate_nan = true)", false, true, true},
	{"max_by_factor", "max(v * -2.0, AXIS, propagate_nan = true) * -0.5", false, false, true},
};

/* Of `across` elements of a row n are loaded; the mask leaves `other` for the rest, where memory has nan. */
typedef struct place {
	int rows, across, n, warps;
	const char *other;
	double rest;
} place;

static const place places[] = {
	{64, 64, 64, 4, "0.0", 0},
	{64, 64, 37, 4, "-inf", -(double)INFINITY},
	{64, 64, 37, 8, "inf", (double)INFINITY},
	{64, 64, 59, 2, "nan", (double)NAN},
	{8, 4, 4, 1, "0.0", 0},
	{12, 40, 33, 4, "0.0", 0},
	{64, 512, 500, 8, "0.0", 0},
	{6, 5120, 5001, 4, "0.0", 0},
};

/* Does b take a's place? */
static bool wins(const extremum *e, double a, double b)
{
	if (isnan(b)) return e->nan_wins && !isnan(a);
	if (isnan(a)) return !e->nan_wins;
	if (a == b) return e->max ? signbit(a) && !signbit(b) : !signbit(a) && signbit(b);
	return e->max ? b > a : b < a;
}

static int winner(const extremum *e, const double *row, int n)
{
	int at = 0;
	for (int i = 1; i < n; i++)
		if (wins(e, row[at], row[i])) at = i;
	return at;
}

static double element(const place *p, int r, int i, uint64_t *state)
{
	double v = (double)(int)(suite_random(state) % 63) - 31, none = r % 2 ? -(double)NAN : (double)NAN;
	switch (r < p->rows - ODD_ROWS ? 0 : p->rows - r) {
	case 0: return i == r % p->n ? none : r % 3 ? v : -fabs(v);
	case 1: return v;
	case 2: return none;
	case 3: return i == 0 || i == p->n - 1 ? none : v;
	default: return i == p->n / 2 ? none : i % 5 == 1 ? (double)INFINITY : i % 5 == 2 ? -(double)INFINITY : v;
	}
}

/* The rows as numbers in v, and as elements in memory, where they are columns if the first axis is reduced. */
static void fill(const place *p, scalar t, int axis, void *x, double *v)
{
	uint64_t state = (uint64_t)p->rows * 31 + (uint64_t)p->n;
	for (int r = 0; r < p->rows; r++)
		for (int i = 0; i < p->across; i++) {
			double e = i < p->n ? element(p, r, i, &state) : (double)NAN;
			uint64_t bits = scalar_from_double(t, e);
			if (isnan(e) && signbit(e)) bits |= UINT64_C(1) << (scalar_bits(t) - 1);
			container_put(t, x, (size_t)(axis ? r * p->across + i : i * p->rows + r), bits);
			v[r * p->across + i] = i < p->n ? e : p->rest;
		}
}

static bool agrees(scalar t, uint64_t got, double want)
{
	double have = scalar_to_double(t, got);
	if (isnan(want)) return isnan(have);
	return have == want && signbit(have) == signbit(want);
}

static void run_extremum(suite *s, const extremum *e, const place *p, scalar t, int axis)
{
	const char *word = strstr(e->expression, "AXIS");
	char name[96], text[1024];
	snprintf(name, sizeof name, "%s.%s.axis%d.%dx%d_%d.%s", e->name, scalar_name(t), axis, p->rows, p->across, p->n,
		p->other);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(z: *%s, x: *const %s, n: i32) grid(1) options(num_warps = %d) {\n"
		"    let r = arange(0, %d)[%s]; let c = arange(0, %d)[%s];\n"
		"    let v = load(x + (r * %d + c * %d), mask = (c < n) & (r >= 0), other = %s);\n"
		"    store(z + arange(0, %d), %.*s%d%s);\n}\n",
		e->index ? "i32" : scalar_name(t), scalar_name(t), p->warps, p->rows,
		axis ? ":, None" : "None, :", p->across, axis ? "None, :" : ":, None", axis ? p->across : 1,
		axis ? 1 : p->rows, p->other, p->rows, (int)(word - e->expression), e->expression, axis, word + 4);
	size_t n = (size_t)p->rows * (size_t)p->across, bytes = n * scalar_bytes(t);
	void *x = suite_alloc(bytes), *got = suite_alloc((size_t)p->rows * 8);
	double *v = suite_alloc(n * sizeof *v);
	fill(p, t, axis, x, v);
	const void *inputs[] = {x};
	scalar out = e->index ? SCALAR_I32 : t;
	bool good = suite_run(s, name, text, NULL, 0, out, got, (size_t)p->rows, inputs, &bytes, 1, p->n);
	int wrong = 0;
	for (int r = 0; good && r < p->rows; r++) {
		const double *row = v + (size_t)r * (size_t)p->across;
		int at = winner(e, row, p->across);
		double want = e->index ? at : row[at];
		uint64_t have = container_at(out, got, (size_t)r);
		if (!agrees(out, have, want) && wrong++ < 4)
			printf("%s: row %d is %g, expected %g\n", name, r, scalar_to_double(out, have), want);
	}
	suite_verdict(s, good, wrong, text);
	free(x);
	free(got);
	free(v);
}

/* Every type meets every operation, not every shape. */
static void run_extrema(suite *s)
{
	static const scalar types[] = {SCALAR_F32, SCALAR_F16, SCALAR_BF16, SCALAR_F64};
	for (size_t p = 0; p < sizeof places / sizeof places[0]; p++)
		for (size_t e = 0; e < sizeof extrema / sizeof extrema[0]; e++)
			for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
				for (int axis = 0; axis < 2 && (p == 0 || t == (p + e) % 4); axis++)
					run_extremum(s, &extrema[e], &places[p], types[t], axis);
}

/* ---- everything into a scalar, two scalars, a scan ---- */

#define WANT(name) static void name(const float *x, double *z, int n)

/* 99 stands for nan. */
WANT(w_whole)
{
	(void)x;
	for (int i = 0; i < 6; i++) z[i] = n < 320 ? 99 : i % 2 ? -4 : 4;
	if (n == 320) z[5] = 4;
	z[6] = n < 320 ? n : 0;
}

WANT(w_scan)
{
	z[0] = n ? x[0] : 99;
	for (int i = 1; i < 320; i++) z[i] = i >= n ? 99 : fmax(z[i - 1], x[i]);
}

#define FUNCTIONS                                                                                                      \
	"fn shown(v) { return where(isnan(v), 99.0, v); }\n"                                                           \
	"fn top(a, b) { return maximum(a, b, propagate_nan = true); }\n"                                               \
	"kernel k(z: *f32, x: *const f32, n: i32) grid(1) {\n"                                                         \
	"    let o = arange(0, 320); let v = where(o == n, nan, load(x + o));\n"
#define WHOLE                                                                                                          \
	FUNCTIONS                                                                                                      \
	"    let m = reshape(v, [4, 80]); let a = max(v, propagate_nan = true);\n"                                     \
	"    store(z, shown(a)); store(z + 1, shown(min(v, propagate_nan = true)));\n"                                 \
	"    store(z + 2, shown(max(m, propagate_nan = true)));\n"                                                     \
	"    store(z + 3, shown(min(m, None, propagate_nan = true)));\n"                                               \
	"    let rows = max(m, 1, keep_dims = true, propagate_nan = true);\n"                                          \
	"    store(z + 4, shown(max(rows, propagate_nan = true)));\n"                                                  \
	"    store(z + 5, shown(max(a, -9.0, propagate_nan = true)));\n"                                               \
	"    store(z + 6, argmax(m - m, propagate_nan = true).to(f32));\n}\n"
#define SCAN FUNCTIONS "    store(z + o, shown(associative_scan(v, 0, top)));\n}\n"

static const f32_program programs[] = {
	{"whole_nan_first", WHOLE, 320, 7, 0, w_whole},
	{"whole_nan_last", WHOLE, 320, 7, 319, w_whole},
	{"whole_nan_inside", WHOLE, 320, 7, 171, w_whole},
	{"whole_no_nan", WHOLE, 320, 7, 320, w_whole},
	{"scan_nan", SCAN, 320, 320, 100, w_scan},
	{"scan_nan_first", SCAN, 320, 320, 0, w_scan},
	{"scan_no_nan", SCAN, 320, 320, 320, w_scan},
};

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	run_extrema(&s);
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) suite_run_f32(&s, &programs[i]);
	return suite_close(&s);
}
