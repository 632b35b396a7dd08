/* What docs/language.md section 9 says of repeated launches: the same compiled kernel writes the same bits each time,
 * however its programs are ordered.
 *
 * In: kernels of many programs whose float sums would show another order of additions in their last bits.  Every launch
 * is compared with the first, bit by bit; the first with a double-precision reference, so that it is worth repeating.
 */
#include "device_test.h"

enum { LAUNCHES = 20, N = 600011, BLOCK = 2048, PROGRAMS = (N + BLOCK - 1) / BLOCK };

typedef struct form {
	const char *name;
	const char *expression; /* of the program's tile v; a scalar */
	double (*want)(const float *x, int n);
} form;

static double want_sum(const float *x, int n)
{
	double s = 0;
	for (int i = 0; i < n; i++) s += (double)x[i];
	return s;
}

static double want_scan(const float *x, int n)
{
	double s = 0, sum = 0;
	for (int i = 0; i < BLOCK; i++) {
		if (i < n) s += (double)x[i];
		sum += s;
	}
	return sum;
}

/* Of the sorted tile, every element times its rank. */
static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

static double want_sorted(const float *x, int n)
{
	float v[BLOCK] = {0};
	double s = 0;
	memcpy(v, x, (size_t)n * sizeof *v);
	qsort(v, BLOCK, sizeof *v, compare);
	for (int i = 0; i < BLOCK; i++) s += (double)v[i] * i;
	return s;
}

static const form forms[] = {
	{"sum", "sum(v)", want_sum},
	{"reduce", "reduce(v, 0, plus)", want_sum},
	{"cumsum", "sum(cumsum(v))", want_scan},
	{"associative_scan", "sum(associative_scan(v, 0, plus))", want_scan},
	{"sort", "sum(sort(v) * arange(0, BLOCK).to(f32))", want_sorted},
};

static bool run(suite *s, const form *f, const float *x, int warps)
{
	char text[1024], name[64];
	static float first[PROGRAMS], again[PROGRAMS];
	size_t bytes = sizeof(float) * N;
	const void *in[] = {x};
	snprintf(text, sizeof text,
		"fn plus(a, b) { return a + b; }\n"
		"kernel k(y: *f32, x: *const f32, n: i32, const BLOCK: i32 = %d) grid(cdiv(n, BLOCK)) "
		"options(num_warps = %d) {\n"
		"let i = program_id(0) * BLOCK + arange(0, BLOCK);\nlet v = load(x + i, mask = i < n);\n"
		"store(y + program_id(0), %s);\n}\n",
		BLOCK, warps, f->expression);
	snprintf(name, sizeof name, "%s, %d warps", f->name, warps);
	for (int launch = 0; launch < LAUNCHES; launch++) {
		float *out = launch ? again : first;
		if (!suite_run(s, name, text, NULL, 0, SCALAR_F32, out, PROGRAMS, in, &bytes, 1, N)) return false;
		if (launch && memcmp(first, again, sizeof first) != 0) {
			printf("%s: launch %d wrote other bits than the first\n", name, launch);
			return false;
		}
	}
	for (int p = 0; p < PROGRAMS; p++) {
		int n = N - p * BLOCK < BLOCK ? N - p * BLOCK : BLOCK;
		double want = f->want(x + (size_t)p * BLOCK, n), scale = BLOCK * (1 + fabs(want));
		if (!(fabs((double)first[p] - want) <= 1e-6 * scale)) {
			printf("%s: program %d gives %g, expected %g\n", name, p, (double)first[p], want);
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	suite s;
	uint64_t state = 91;
	float *x = suite_alloc(sizeof *x * N);
	suite_open(&s, argc, argv);
	for (int i = 0; i < N; i++) x[i] = (float)((double)(suite_random(&state) >> 11) * 0x1p-53 - 0.5);
	for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
		for (int warps = 1; warps <= 8 && suite_wants(&s, forms[f].name); warps *= 8) {
			bool good = run(&s, &forms[f], x, warps);
			s.passed += good;
			s.failed += !good;
		}
	free(x);
	return suite_close(&s);
}
