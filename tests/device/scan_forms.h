/* What the suites of scans, sorts, topk and flip share: every operation against plain loops.
 *
 * Inputs of scans are such that every order of combination gives the same bits (small integers, wrapping integers,
 * functions that pick one of their arguments), but the order of the operands shows.  Inputs of sorts are random bits,
 * few different values, special floats, or all the same. */
#ifndef BLK_SCAN_FORMS_H
#define BLK_SCAN_FORMS_H

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

static inline void run_form(suite *s, const form *f, const shape *sh, int axis, scalar t, int warps, unsigned kind)
{
	char name[128], text[4096], where[512], out_where[512], dims[64];
	int length = sh->dim[axis], kept = f->operation != TOPK ? length : f->k > 0 ? f->k : length / -f->k;
	if (kept < 1 || kept > length) return;
	if ((f->operation == SORT || f->operation == TOPK) && (length & (length - 1))) return; /* powers of two only */
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

#endif
