/* Sums of masked products in one loop, as attention's are: masks that hold for whole tiles, for parts of them and for
 * none (transform/whole_masks.c).  Numbers are small and whole, so every sum is exact. */
#include "device_test.h"

enum { WIDTH = 64, DEPTH = 64 };

typedef struct mask_case {
	const char *name;
	const char *masked; /* the statement; s: the products, i, j: numbers of rows and columns, w: a width */
	bool (*lets_through)(int i, int j, int n, int w);
} mask_case;

static bool causal(int i, int j, int n, int w)
{
	(void)n, (void)w;
	return j <= i;
}
static bool window(int i, int j, int n, int w)
{
	return j - i <= w && i - j < w && j < n;
}
static bool ends(int i, int j, int n, int w)
{
	(void)i;
	return j < n - w;
}
static bool every_second(int i, int j, int n, int w)
{
	(void)n, (void)w;
	return 2 * j < i + 100;
}
static bool outside(int i, int j, int n, int w)
{
	(void)n;
	return j < i || j > i + w;
}
static bool none(int i, int j, int n, int w)
{
	(void)w;
	return i - j > 2 * n;
}

static const mask_case cases[] = {
	{"causal", "s = where(i[:, None] >= j[None, :], s, 0.0);", causal},
	{"added", "s = s + where(j[None, :] <= i[:, None], 0.0, -s);", causal},
	{"window", "let far = j[None, :] - i[:, None]; s = where((far <= w) & (far > -w) & (j < n)[None, :], s, 0.0);",
		window},
	{"two_masks",
		"s = where(j[None, :] - i[:, None] <= w, s, 0.0); s = where((i[:, None] - j[None, :] < w) & "
		"(j[None, :] < n), s, 0.0);",
		window},
	{"columns", "s = where((j < n - w)[None, :], s, 0.0);", ends},
	{"factors", "s = where(2 * j[None, :] < i[:, None] + 100, s, 0.0);", every_second},
	{"either", "s = where((j[None, :] < i[:, None]) | (j[None, :] > i[:, None] + w), s, 0.0);", outside},
	{"none", "s = where(i[:, None] - j[None, :] > 2 * n, s, 0.0);", none},
};

static void fill(uint16_t *p, size_t n, uint64_t *state)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint16_t)scalar_from_double(SCALAR_F16, (double)(suite_random(state) % 7) - 3);
}

/* out[i] = the sum of what the mask lets through of q[i] . k[j] over all j. */
static int wrong_rows(const mask_case *c, const float *got, const uint16_t *q, const uint16_t *k, int n, int w)
{
	double *a = suite_doubles(SCALAR_F16, q, (size_t)n * DEPTH),
	       *b = suite_doubles(SCALAR_F16, k, (size_t)n * DEPTH);
	int wrong = 0;
	for (int i = 0; i < n; i++) {
		double sum = 0;
		for (int j = 0; j < n; j++)
			for (int l = 0; l < DEPTH && c->lets_through(i, j, n, w); l++)
				sum += a[i * DEPTH + l] * b[j * DEPTH + l];
		wrong += (double)got[i] != sum;
	}
	free(a);
	free(b);
	return wrong;
}

static void run(suite *s, const mask_case *c, int n, int w, int warps)
{
	char name[64], text[2048];
	snprintf(name, sizeof name, "mask.%s.%d.%d.%d", c->name, n, w, warps);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(out: *f32, q: *const f16, k: *const f16, n: i32, const BM: i32 = %d, const BN: i32 = %d)\n"
		"    grid(cdiv(n, BM)) options(num_warps = %d, num_stages = 3)\n"
		"{\n"
		"    let w = min(n, 0) + %d;\n"
		"    let Q = tensor(q, shape = [n, %d]); let K = tensor(k, shape = [n, %d]);\n"
		"    let first = program_id(0) * BM;\n"
		"    let i = first + arange(0, BM);\n"
		"    var total = zeros([BM], f32);\n"
		"    for at in range(0, n, BN) {\n"
		"        let j = at + arange(0, BN);\n"
		"        var s = dot(Q.load([first, 0], [BM, %d]), trans(K.load([at, 0], [BN, %d])));\n"
		"        %s\n"
		"        total += sum(s, 1);\n"
		"    }\n"
		"    store(out + i, total, mask = i < n);\n"
		"}\n",
		16 * warps, WIDTH, warps, w, DEPTH, DEPTH, DEPTH, DEPTH, c->masked);
	size_t elements = (size_t)n * DEPTH;
	uint16_t *q = suite_alloc(2 * elements), *k = suite_alloc(2 * elements);
	float *out = suite_alloc(4 * (size_t)n);
	uint64_t state = (uint64_t)(n + w);
	fill(q, elements, &state);
	fill(k, elements, &state);
	const void *in[] = {q, k};
	const size_t bytes[] = {2 * elements, 2 * elements};
	bool good = suite_run(s, name, text, NULL, 0, SCALAR_F32, out, (size_t)n, in, bytes, 2, n);
	suite_verdict(s, good, good ? wrong_rows(c, out, q, k, n, w) : 0, text);
	free(q);
	free(k);
	free(out);
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		run(&s, &cases[i], 333, 70, 4);
		run(&s, &cases[i], 192, 0, 4);
		run(&s, &cases[i], 77, 200, 4);
		run(&s, &cases[i], 256, -5, 4);
		run(&s, &cases[i], 424, 70, 12);
	}
	return suite_close(&s);
}
