/* Scans, sorts, topk and flip: every operation along every axis of tiles of 1 to 16384 elements, over the element types
 * and numbers of warps, against plain loops here.
 *
 * Inputs of scans are such that every order of combination gives the same bits (small integers, wrapping integers,
 * functions that pick one of their arguments), but the order of the operands shows.  Inputs of sorts are random bits,
 * few different values, special floats, or all the same. */
#include "device_test.h"

typedef enum operation {
	CUMSUM,
	CUMPROD,
	AFFINE, /* of pairs: (a, b) then (c, d) is (a * c, b * c + d), which does not commute */
	LAST,   /* the last number that is not 0 */
	SORT,
	TOPK,
	FLIP
} operation;

typedef struct form {
	const char *name, *expression; /* of a tile x, AXIS and K */
	operation operation;
	bool reverse; /* or descending */
	int k;        /* topk: elements kept; negative: the extent divided by this */
} form;

static const form forms[] = {
	{"cumsum", "cumsum(x, axis = AXIS)", CUMSUM, false, 0},
	{"cumsum_reverse", "cumsum(x, axis = AXIS, reverse = true)", CUMSUM, true, 0},
	{"cumprod", "cumprod(x, axis = AXIS)", CUMPROD, false, 0},
	{"cumprod_reverse", "cumprod(x, AXIS, reverse = true)", CUMPROD, true, 0},
	{"affine", "pair(associative_scan((x, x * 5 + 1), AXIS, affine))", AFFINE, false, 0},
	{"affine_reverse", "pair(associative_scan((x, x * 5 + 1), AXIS, affine, reverse = true))", AFFINE, true, 0},
	{"last", "associative_scan(x, AXIS, last)", LAST, false, 0},
	{"last_reverse", "associative_scan(x, AXIS, last, reverse = true)", LAST, true, 0},
	{"sort", "sort(x, axis = AXIS)", SORT, false, 0},
	{"sort_descending", "sort(x, axis = AXIS, descending = true)", SORT, true, 0},
	{"topk_1", "topk(x, K, axis = AXIS)", TOPK, true, 1},
	{"topk_8", "topk(x, K, axis = AXIS)", TOPK, true, 8},
	{"topk_half", "topk(x, K, axis = AXIS)", TOPK, true, -2},
	{"topk_all", "topk(x, K, axis = AXIS)", TOPK, true, -1},
	{"flip", "flip(x, axis = AXIS)", FLIP, false, 0},
};

static const char functions[] = "fn affine(a, b, c, d) { return (a * c, b * c + d); }\n"
				"fn pair(p) { let (a, b) = p; return a + b * 7; }\n"
				"fn last(a, b) { return where(b == 0, a, b); }\n";

/* ---- references, on containers ---- */

static scalar result_type(const form *f, scalar t)
{
	bool narrow = !scalar_is_float(t) && scalar_bytes(t) < 4;
	if ((f->operation != CUMSUM && f->operation != CUMPROD) || !narrow) return t;
	return scalar_is_signed(t) || t == SCALAR_BOOL ? SCALAR_I32 : SCALAR_U32;
}

/* An integer's value modulo 2^64. */
static uint64_t widened(scalar t, uint64_t container)
{
	unsigned bits = scalar_bits(t);
	if (!scalar_is_signed(t) || bits == 64) return container;
	return (uint64_t)((int64_t)(container << (64 - bits)) >> (64 - bits));
}

/* Sums, products and pairs of one line, in the order of the scan: integers wrap, floats are exact in double. */
static void scan_line(const form *f, scalar t, scalar out, int n, const uint64_t *v, uint64_t *r)
{
	uint64_t sum = 0, product = 1, b = 0, pick = 0;
	double dsum = 0, dproduct = 1;
	for (int i = 0; i < n; i++) {
		int at = f->reverse ? n - 1 - i : i;
		uint64_t x = widened(t, v[at]);
		double d = scalar_to_double(t, v[at]);
		sum += x;
		dsum += d;
		b = b * x + (x * 5 + 1);
		product *= x;
		dproduct *= d;
		if (d != 0) pick = v[at];
		bool is_float = scalar_is_float(t);
		if (f->operation == CUMSUM)
			r[at] = is_float ? scalar_from_double(out, dsum) : scalar_truncate(out, sum);
		if (f->operation == CUMPROD)
			r[at] = is_float ? scalar_from_double(out, dproduct) : scalar_truncate(out, product);
		if (f->operation == AFFINE) r[at] = scalar_truncate(out, product + b * 7);
		if (f->operation == LAST) r[at] = pick;
	}
}

static bool is_nan(scalar t, uint64_t v)
{
	return scalar_is_float(t) && isnan(scalar_to_double(t, v));
}

static bool before(scalar t, bool descending, uint64_t a, uint64_t b)
{
	if (is_nan(t, a) || is_nan(t, b)) return !is_nan(t, a) && is_nan(t, b);
	if (descending) {
		uint64_t c = a;
		a = b;
		b = c;
	}
	if (!scalar_is_float(t)) return scalar_is_signed(t) ? (int64_t)widened(t, a) < (int64_t)widened(t, b) : a < b;
	double x = scalar_to_double(t, a), y = scalar_to_double(t, b);
	return x < y || (x == y && signbit(x) && !signbit(y));
}

static void merge_sort(scalar t, bool descending, int n, uint64_t *v, uint64_t *room)
{
	if (n < 2) return;
	int half = n / 2, i = 0, j = half;
	merge_sort(t, descending, half, v, room);
	merge_sort(t, descending, n - half, v + half, room);
	for (int k = 0; k < n; k++)
		room[k] = j == n || (i < half && !before(t, descending, v[j], v[i])) ? v[i++] : v[j++];
	memcpy(v, room, (size_t)n * sizeof *v);
}

static void reference_line(const form *f, scalar t, scalar out, int n, const uint64_t *v, uint64_t *r)
{
	switch (f->operation) {
	case SORT:
	case TOPK: {
		uint64_t *room = suite_alloc((size_t)n * sizeof *room);
		memcpy(r, v, (size_t)n * sizeof *r);
		merge_sort(t, f->reverse, n, r, room);
		free(room);
		break;
	}
	case FLIP:
		for (int i = 0; i < n; i++) r[i] = v[n - 1 - i];
		break;
	default: scan_line(f, t, out, n, v, r);
	}
}

/* ---- inputs ---- */

enum { KINDS = 4 };

static uint64_t special(scalar t, uint64_t random)
{
	static const double values[] = {0.0, -0.0, 1, -1, 2, -0.5};
	if (random % 9 == 0) return scalar_from_double(t, NAN);
	if (random % 9 == 1) return scalar_from_double(t, INFINITY);
	if (random % 9 == 2) return scalar_from_double(t, -INFINITY);
	return scalar_from_double(t, values[random / 9 % 6]);
}

static uint64_t input(const form *f, scalar t, unsigned kind, int i, uint64_t *state)
{
	uint64_t random = suite_random(state);
	bool is_float = scalar_is_float(t);
	int64_t small = (int64_t)(random % 7) - (is_float || scalar_is_signed(t) ? 3 : 0);
	if (t == SCALAR_BOOL) return random & 1;
	if (f->operation == CUMPROD && is_float) /* the product stays exact */
		return scalar_from_double(t, i % 997 == 5 && i < 4000 ? 2 : random & 1 ? 1 : -1);
	if (f->operation == CUMSUM || f->operation == LAST)
		return is_float ? scalar_from_double(t, (double)small) : scalar_truncate(t, (uint64_t)small);
	if (f->operation == CUMPROD || f->operation == AFFINE) return scalar_truncate(t, random | 1);
	switch (kind) {
	case 0: return scalar_truncate(t, random);
	case 1: return is_float ? scalar_from_double(t, (double)small) : scalar_truncate(t, (uint64_t)small);
	case 2: return is_float ? special(t, random) : scalar_truncate(t, (uint64_t)0 - (random & 1));
	default: return is_float ? scalar_from_double(t, 3) : 3;
	}
}

/* ---- one case ---- */

/* got and in are row-major tiles; want of the input's shape. */
static int compare(const char *name, const form *f, const shape *sh, int axis, scalar t, scalar out, const void *in,
	const void *got, int kept)
{
	int length = sh->dim[axis], inner = 1, wrong = 0;
	for (int d = axis + 1; d < sh->rank; d++) inner *= sh->dim[d];
	int outer = product(sh) / length / inner;
	uint64_t *line = suite_alloc((size_t)length * sizeof *line), *want = suite_alloc((size_t)length * sizeof *want);
	for (int l = 0; l < outer * inner; l++) {
		int o = l / inner, q = l % inner;
		for (int i = 0; i < length; i++) line[i] = container_at(t, in, (size_t)((o * length + i) * inner + q));
		reference_line(f, t, out, length, line, want);
		for (int i = 0; i < kept; i++) {
			uint64_t have = container_at(out, got, (size_t)((o * kept + i) * inner + q));
			if (have == want[i] || (is_nan(out, have) && is_nan(out, want[i]))) continue;
			if (wrong++ < 3)
				printf("%s: line %d, element %d is %g (0x%llx), expected %g (0x%llx)\n", name, l, i,
					scalar_to_double(out, have), (unsigned long long)have,
					scalar_to_double(out, want[i]), (unsigned long long)want[i]);
		}
	}
	free(line);
	free(want);
	return wrong;
}

static void run(suite *s, const form *f, const shape *sh, int axis, scalar t, int warps, unsigned kind)
{
	/* beyond 128 keys a thread code generation for a GPU takes minutes */
	while ((f->operation == SORT || f->operation == TOPK) && product(sh) > 128 * 32 * warps) warps *= 2;
	char name[128], text[4096], where[512], out_where[512], dims[64];
	int length = sh->dim[axis], kept = f->operation != TOPK ? length : f->k > 0 ? f->k : length / -f->k;
	if (kept < 1 || kept > length) return;
	shape_name(dims, sizeof dims, sh);
	snprintf(name, sizeof name, "%s.%s.%s.axis%d.warps%d.kind%u", f->name, scalar_name(t), dims, axis, warps, kind);
	if (!suite_wants(s, name)) return;
	shape out_shape = *sh;
	out_shape.dim[axis] = kept;
	scalar out = result_type(f, t);
	offsets(where, sizeof where, sh);
	offsets(out_where, sizeof out_where, &out_shape);
	snprintf(text, sizeof text,
		"%skernel k(z: *%s, p: *const %s, n: i32) grid(1) options(num_warps = %d) {\n"
		"const AXIS = %d;\nconst K = %d;\nlet x = load(p + (%s));\nlet y = %s;\nstore(z + (%s), y);\n}\n",
		functions, scalar_name(out), scalar_name(t), warps, axis, kept, where, f->expression, out_where);
	int n = product(sh), m = product(&out_shape);
	void *in = suite_alloc((size_t)n * 8), *got = suite_alloc((size_t)m * 8);
	uint64_t state = (uint64_t)(n + axis) + kind;
	for (int i = 0; i < n; i++) container_put(t, in, (size_t)i, input(f, t, kind, i, &state));
	size_t in_bytes = (size_t)n * scalar_bytes(t);
	const void *inputs[] = {in};
	bool good = suite_run(s, name, text, NULL, 0, out, got, (size_t)m, inputs, &in_bytes, 1, n);
	int wrong = good ? compare(name, f, sh, axis, t, out, in, got, kept) : 0;
	suite_verdict(s, good, wrong, text);
	free(in);
	free(got);
}

static bool takes(const form *f, scalar t)
{
	if (f->operation == AFFINE) return t == SCALAR_I32 || t == SCALAR_U32 || t == SCALAR_I64 || t == SCALAR_U64;
	if (f->operation == LAST) return t != SCALAR_BOOL;
	if (f->operation == CUMSUM || f->operation == CUMPROD) return t != SCALAR_BOOL;
	return true;
}

enum { MOST_WARPS_STEPS = 3 };
static const int warp_counts[MOST_WARPS_STEPS] = {1, 4, 8};

static void run_all(suite *s)
{
	static const shape shapes[] = {
		{1, {1}},
		{1, {2}},
		{1, {32}},
		{1, {64}},
		{1, {256}},
		{1, {1024}},
		{1, {4096}},
		{1, {16384}},
		{2, {1, 64}},
		{2, {16, 64}},
		{2, {64, 16}},
		{2, {4, 512}},
		{2, {512, 8}},
		{3, {4, 8, 16}},
		{3, {8, 1, 64}},
		{4, {2, 4, 8, 16}},
	};
	static const scalar types[] = {SCALAR_F32, SCALAR_I32, SCALAR_F16, SCALAR_U8, SCALAR_F64, SCALAR_BF16,
		SCALAR_U32, SCALAR_I8, SCALAR_I64, SCALAR_BOOL, SCALAR_U16, SCALAR_U64, SCALAR_I16};
	const unsigned ntypes = sizeof types / sizeof types[0];
	unsigned turn = 0;
	for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
		for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
			for (int axis = 0; axis < shapes[k].rank; axis++) {
				int kept = 0; /* two types a case; all of them meet every operation */
				for (unsigned i = 0; i < ntypes && kept < 2; i++) {
					scalar t = types[turn++ % ntypes];
					if (!takes(&forms[f], t)) continue;
					run(s, &forms[f], &shapes[k], axis, t, warp_counts[(turn + k) % 3],
						(unsigned)(turn / 2 + f) % KINDS);
					kept++;
				}
			}
}

/* The sizes at which lanes, warps and registers begin to take part, with each number of warps, and the types whose keys
 * have each width. */
static void run_lines(suite *s)
{
	static const char *const names[] = {"cumsum", "affine_reverse", "sort", "topk_8", "topk_half", "flip"};
	for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
		bool wanted = false;
		for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
			wanted |= strcmp(forms[f].name, names[i]) == 0;
		for (int lg = 0; wanted && lg <= 13; lg++)
			for (int w = 0; w < MOST_WARPS_STEPS; w++) {
				shape sh = {1, {1 << lg}};
				scalar t = (lg + w) % 3 == 0 ? SCALAR_I64 : SCALAR_I32;
				run(s, &forms[f], &sh, 0, t, warp_counts[w], 0);
			}
	}
}

/* Lines of more elements than a thread has registers: in one warp, in four, beside other lines. */
static void run_long(suite *s)
{
	static const char *const names[] = {"cumsum", "cumsum_reverse", "affine", "affine_reverse"};
	static const struct {
		shape sh;
		int axis, warps;
		scalar elem;
	} cases[] = {
		{{1, {16384}}, 0, 1, SCALAR_I32},
		{{1, {8192}}, 0, 1, SCALAR_I64},
		{{1, {65536}}, 0, 4, SCALAR_I32},
		{{2, {2048, 8}}, 0, 1, SCALAR_I32},
		{{2, {8, 2048}}, 1, 1, SCALAR_U32},
		{{3, {4, 1024, 4}}, 1, 2, SCALAR_U64},
	};
	for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
		for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
			for (size_t c = 0; strcmp(forms[f].name, names[i]) == 0 && c < sizeof cases / sizeof cases[0];
				c++)
				run(s, &forms[f], &cases[c].sh, cases[c].axis, cases[c].elem, cases[c].warps, 0);
}

/* Wide tiles whose axis steps warps first: more than shared memory holds, as it lies, with any number of them. */
static void run_wide(suite *s)
{
	static const char *const names[] = {"cumsum", "cumsum_reverse", "affine", "last_reverse"};
	static const scalar types[] = {SCALAR_F32, SCALAR_I64, SCALAR_I64, SCALAR_F16};
	static const shape shapes[] = {{2, {128, 128}}, {2, {256, 256}}};
	for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
		for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
			for (int turn = 0; strcmp(forms[f].name, names[i]) == 0 && turn < 20; turn++) {
				int warps = 1 << turn % 5, axis = turn / 5 % 2, large = turn / 10;
				if (large && warps < 8) continue;
				run(s, &forms[f], &shapes[large], axis, types[i], warps, 0);
			}
}

/* Along both axes: every element is the sum of those above and to the left. */
static void want_both(const float *x, double *z, int n)
{
	(void)n;
	for (int i = 0; i < 256; i++)
		for (int j = 0; j < 256; j++)
			z[i * 256 + j] = (double)x[i * 256 + j] + (i ? z[(i - 1) * 256 + j] : 0) +
					 (j ? z[i * 256 + j - 1] : 0) - (i && j ? z[(i - 1) * 256 + j - 1] : 0);
}

/* ---- whole programs ---- */

/* A prefix sum over a long array, a block at a time with a carry. */
static void want_carry(const float *x, double *z, int n)
{
	float sum = 0;
	for (int i = 0; i < n * 256; i++) z[i] = sum += x[i];
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

/* Sorts every block, reverses it, and sorts it again the other way, adding as it goes. */
static void want_mixed(const float *x, double *z, int n)
{
	float line[256], sum[256];
	for (int b = 0; b < n; b++) {
		memcpy(line, x + b * 256, sizeof line);
		qsort(line, 256, sizeof line[0], by_value);
		for (int i = 0; i < 256; i++) sum[i] = (i ? sum[i - 1] : 0) + line[i];
		for (int i = 0; i < 256; i++) z[b * 256 + i] = line[255 - i] + sum[255 - i] + line[i];
	}
}

/* The greatest 4 of each row beside the row's running maximum. */
static void want_rows(const float *x, double *z, int n)
{
	(void)n;
	float row[64];
	for (int r = 0; r < 16; r++) {
		memcpy(row, x + r * 64, sizeof row);
		qsort(row, 64, sizeof row[0], by_value);
		float top = -INFINITY;
		for (int i = 0; i < 4; i++) {
			if (x[r * 64 + i] > top) top = x[r * 64 + i];
			z[r * 4 + i] = row[63 - i];
		}
	}
}

/* A flip carried round a loop, odd and even numbers of times. */
static void want_turns(const float *x, double *z, int n)
{
	for (int i = 0; i < 2048; i++) z[i] = x[n % 2 ? 2047 - i : i] + (float)(n % 2 ? 2047 - i : i);
}

#define BOTH(warps)                                                                                                    \
	"kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = " warps ") {\n"                          \
	"let p = arange(0, 256)[:, None] * 256 + arange(0, 256)[None, :];\n"                                           \
	"store(z + p, cumsum(cumsum(load(x + p), axis = 0), axis = 1));\n}\n"

static const f32_program programs[] = {
	{"both.1", BOTH("1"), 65536, 65536, 0, want_both},
	{"both.2", BOTH("2"), 65536, 65536, 0, want_both},
	{"both.4", BOTH("4"), 65536, 65536, 0, want_both},
	{"both.8", BOTH("8"), 65536, 65536, 0, want_both},
	{"both.16", BOTH("16"), 65536, 65536, 0, want_both},
	{"carry",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = 8) {\nlet o = arange(0, 256);\n"
		"var c = 0.0;\nfor b in range(n) {\nlet v = load(x + b * 256 + o);\nstore(z + b * 256 + o, cumsum(v) + "
		"c);\n"
		"c += sum(v);\n}\n}\n",
		1280, 1280, 5, want_carry},
	{"mixed",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = 4) {\nlet o = arange(0, 256);\n"
		"for b in range(n) {\nlet v = sort(load(x + b * 256 + o));\nlet w = flip(cumsum(v)) + flip(v);\n"
		"store(z + b * 256 + o, w + sort(v, descending = true).flip());\n}\n}\n",
		1024, 1024, 4, want_mixed},
	{"rows",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) {\nlet r = arange(0, 16)[:, None];\n"
		"let v = load(x + r * 64 + arange(0, 64)[None, :]);\nstore(z + r * 4 + arange(0, 4)[None, :], topk(v, "
		"4));\n}\n",
		1024, 64, 0, want_rows},
	{"turns",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = 4) {\nlet o = arange(0, 2048);\n"
		"var v = load(x + o) + o.to(f32);\nfor i in range(n) { v = flip(v); }\nstore(z + o, v);\n}\n",
		2048, 2048, 3, want_turns},
};

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) suite_run_f32(&s, &programs[i]);
	run_lines(&s);
	run_long(&s);
	run_wide(&s);
	run_all(&s);
	return suite_close(&s);
}
