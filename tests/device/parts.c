/* Tiles of more elements than a thread has registers: stores, sums and the rest of them become loops over parts
 * (compiler/transform/parts.c), where the GPU's code is made.  Every reduction, type and axis, masks that no part
 * divides, updates in place, and what a loop over parts would do wrong, against loops here. */
#include "device_test.h"

/* ---- reductions ---- */

typedef enum reduction {
	SUM,
	MAXIMUM,
	MINIMUM,
	XOR,
	ANY,
	ALL,
	ARGMAX,
	ARGMIN,
	FIRST, /* that is not 0: not commutative */
	REDUCTIONS
} reduction;

static const char *const expressions[REDUCTIONS] = {
	"sum(v, AXIS)",
	"max(v, AXIS)",
	"min(v, AXIS)",
	"xor_sum(v, AXIS)",
	"any(v == 3, AXIS)",
	"all(v != 4, AXIS)",
	"argmax(v, AXIS)",
	"argmin(v, AXIS)",
	"reduce(v, AXIS, first)",
};

/* Of v[0], v[stride], ..; v holds small numbers, of the type. */
static double reduced(reduction how, const double *v, int n, int stride)
{
	double r = how == MAXIMUM ? -INFINITY : how == MINIMUM ? INFINITY : how == ALL;
	int at = 0;
	for (int i = 0; i < n; i++) {
		double x = v[(size_t)i * (size_t)stride];
		switch (how) {
		case SUM: r += x; break;
		case MAXIMUM: r = fmax(r, x); break;
		case MINIMUM: r = fmin(r, x); break;
		case XOR: r = (double)((int)r ^ (int)x); break;
		case ANY: r = r != 0 || x == 3; break;
		case ALL: r = r != 0 && x != 4; break;
		case ARGMAX: at = x > v[(size_t)at * (size_t)stride] ? i : at; break;
		case ARGMIN: at = x < v[(size_t)at * (size_t)stride] ? i : at; break;
		default: r = r == 0 ? x : r;
		}
	}
	return how == ARGMAX || how == ARGMIN ? at : r;
}

/* x[] holds 0 to 3, few 3, or is -3 to 0 where `t` has these. */
static double *numbers(scalar t, int n, float *x)
{
	double *v = suite_alloc((size_t)n * sizeof *v);
	uint64_t state = 5;
	for (int i = 0; i < n; i++) {
		uint64_t r = suite_random(&state);
		x[i] = r % 16 == 0 ? (float)(r / 16 % 4) : (float)(r / 16 % 2);
		if (scalar_is_signed(t) && i % 3 == 0) x[i] = 0 - x[i];
		v[i] = x[i];
	}
	return v;
}

static void one_reduction(suite *s, reduction how, scalar t, const shape *sh, int axis, int warps)
{
	char name[200], text[2000], at[400], to[400] = "0", expression[80], dims[40];
	const char *word = strstr(expressions[how], "AXIS");
	shape rest = {0, {0}};
	int n = product(sh), inner = 1, m;
	for (int d = 0; d < sh->rank; d++)
		if (d != axis) rest.dim[rest.rank++] = sh->dim[d];
	for (int d = axis + 1; d < sh->rank; d++) inner *= sh->dim[d];
	m = product(&rest);
	snprintf(expression, sizeof expression, "%.*s%d%s", (int)(word - expressions[how]), expressions[how], axis,
		word + 4);
	snprintf(name, sizeof name, "reduce.%s.%s.axis%d.%s.w%d", expression, scalar_name(t), axis,
		shape_name(dims, sizeof dims, sh), warps);
	if (!suite_wants(s, name)) return;
	offsets(at, sizeof at, sh);
	if (rest.rank) offsets(to, sizeof to, &rest);
	snprintf(text, sizeof text,
		"fn first(a, b) { return where(a == 0, b, a); }\n"
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) {\n"
		"    let v = load(x + (%s)).to(%s);\n    store(z + (%s), %s.to(f32));\n}\n",
		at, scalar_name(t), to, expression);
	char number[16];
	snprintf(number, sizeof number, "%d", warps);
	const blk_define defines[] = {{"num_warps", number}};
	float *x = suite_alloc((size_t)n * sizeof *x), *got = suite_alloc((size_t)m * sizeof *got);
	double *v = numbers(t, n, x);
	const void *inputs[] = {x};
	size_t bytes = (size_t)n * sizeof *x;
	bool good = suite_run(s, name, text, defines, 1, SCALAR_F32, got, (size_t)m, inputs, &bytes, 1, n);
	int wrong = 0;
	for (int i = 0; good && i < m; i++) {
		double want = reduced(how, v + i / inner * inner * sh->dim[axis] + i % inner, sh->dim[axis], inner);
		if ((double)got[i] != want && wrong++ < 4)
			printf("%s: element %d is %g, expected %g\n", name, i, (double)got[i], want);
	}
	suite_verdict(s, good, wrong, text);
	free(x);
	free(got);
	free(v);
}

static void reductions(suite *s)
{
	static const shape shapes[] = {
		{1, {32768}}, {2, {256, 128}}, {2, {2, 16384}}, {2, {32768, 1}}, {3, {8, 64, 64}}};
	static const scalar types[] = {SCALAR_F32, SCALAR_I32, SCALAR_I8, SCALAR_U8, SCALAR_U16, SCALAR_I64, SCALAR_F16,
		SCALAR_BF16, SCALAR_F64};
	for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		for (int axis = 0; axis < shapes[i].rank; axis++)
			for (reduction how = 0; how < REDUCTIONS; how++)
				for (unsigned k = 0; k < sizeof types / sizeof types[0]; k++) {
					bool is_float = scalar_is_float(types[k]);
					if (how == XOR && is_float) continue;
					if (how == SUM && scalar_bytes(types[k]) < 4 && is_float) continue; /* rounds */
					if (i != 1 && !s->all && k != (i + how + (unsigned)axis) % 3) continue;
					one_reduction(s, how, types[k], &shapes[i], axis, 1);
				}
	/* Not cut, but more than shared memory holds between warps, in index order. */
	for (int warps = 4; warps <= 16; warps *= 2) {
		one_reduction(s, ARGMAX, SCALAR_I64, &(shape){2, {256, 64}}, 0, warps);
		one_reduction(s, FIRST, SCALAR_F64, &(shape){2, {256, 128}}, 0, warps);
	}
	one_reduction(s, ARGMAX, SCALAR_F32, &(shape){2, {512, 256}}, 1, 4);
	one_reduction(s, SUM, SCALAR_F32, &(shape){2, {512, 256}}, 0, 4);
}

/* ---- products: z = a b, or a b + c, of small integers, exact in every type ---- */

typedef struct matrices {
	const char *name, *type, *out, *operation;
	int m, n, k, warps;
	bool transposed; /* b is there as [n, k] */
	bool again;      /* and then the elements are doubled, along rows summed up */
} matrices;

static void one_product(suite *s, const matrices *p)
{
	char text[2000];
	if (!suite_wants(s, p->name)) return;
	snprintf(text, sizeof text,
		"kernel k(z: *f32, x: *const f32, w: *const f32, n: i32) grid(1) options(num_warps = %d) {\n"
		"    let i = arange(0, %d); let l = arange(0, %d); let j = arange(0, %d);\n"
		"    let a = load(x + i[:, None] * %d + l[None, :]).to(%s);\n"
		"    let b = load(w + %s).to(%s);\n    let c = (i[:, None] - j[None, :]).to(%s);\n"
		"    let v = %s;\n    store(z + i[:, None] * %d + j[None, :], %s);\n}\n",
		p->warps, p->m, p->k, p->n, p->k, p->type,
		p->transposed ? "l[:, None] + j[None, :] * n" : "l[:, None] * n + j[None, :]", p->type, p->out,
		p->operation, p->n, p->again ? "(v + sum(v, axis = 1)[:, None]).to(f32)" : "v.to(f32)");
	size_t na = (size_t)(p->m * p->k), nb = (size_t)(p->k * p->n), nz = (size_t)(p->m * p->n);
	float *a = suite_alloc(4 * na), *b = suite_alloc(4 * nb), *got = suite_alloc(4 * nz);
	uint64_t state = 3;
	for (size_t i = 0; i < na; i++) a[i] = (float)(suite_random(&state) % 3) - 1;
	for (size_t i = 0; i < nb; i++) b[i] = (float)(suite_random(&state) % 3) - 1;
	const void *inputs[] = {a, b};
	size_t bytes[] = {4 * na, 4 * nb};
	bool good = suite_run(
		s, p->name, text, NULL, 0, SCALAR_F32, got, nz, inputs, bytes, 2, p->transposed ? p->k : p->n);
	int wrong = 0;
	double *row = suite_alloc((size_t)p->n * sizeof *row);
	for (int i = 0; good && i < p->m; i++) {
		double sum = 0;
		for (int j = 0; j < p->n; j++) {
			row[j] = strstr(p->operation, ", c") ? i - j : 0;
			for (int l = 0; l < p->k; l++)
				row[j] += (double)a[i * p->k + l] *
					  (double)b[p->transposed ? j * p->k + l : l * p->n + j];
			sum += row[j];
		}
		for (int j = 0; j < p->n; j++) {
			double want = row[j] + (p->again ? sum : 0), have = (double)got[i * p->n + j];
			if (have != want && wrong++ < 4)
				printf("%s: element %d %d is %g, expected %g\n", p->name, i, j, have, want);
		}
	}
	suite_verdict(s, good, wrong, text);
	free(row);
	free(a);
	free(b);
	free(got);
}

static void products(suite *s)
{
	static const matrices all[] = {
		{"product.rows", "f32", "f32", "dot(a, b)", 512, 64, 32, 1, false, false},
		{"product.columns", "f32", "f32", "dot(a, b)", 64, 512, 32, 1, false, false},
		{"product.both", "f32", "f32", "dot(a, b)", 256, 128, 256, 1, false, false},
		{"product.k", "f32", "f32", "dot(a, b)", 16, 16, 2048, 1, false, false},
		{"product.ieee", "f32", "f32", "dot(a, b, precision = \"ieee\")", 64, 64, 128, 1, false, false},
		{"product.ieee.sum", "f32", "f32", "dot(a, b, c, precision = \"ieee\")", 64, 64, 128, 1, true, false},
		{"product.x3", "f32", "f32", "dot(a, b, precision = \"tf32x3\")", 128, 64, 256, 1, false, false},
		{"product.f16", "f16", "f32", "dot(a, b)", 512, 64, 64, 1, true, false},
		{"product.i8", "i8", "i32", "dot(a, b, c)", 512, 64, 64, 1, false, false},
		{"product.f64", "f64", "f64", "dot(a, b, c)", 64, 32, 512, 1, false, false},
		{"product.rounded", "f16", "f16", "dot(a, b, out = f16)", 32, 32, 1024, 1, false, false},
		{"product.and.rows", "f32", "f32", "dot(a, b, c)", 512, 64, 64, 1, false, true},
		{"product.warps", "bf16", "f32", "dot(a, b, c)", 512, 256, 64, 4, false, true},
	};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) one_product(s, &all[i]);
}

/* ---- whole programs: 256 x 128 elements in one warp, 1024 a thread ---- */

enum { ROWS = 256, COLUMNS = 128, ALL_OF_IT = ROWS * COLUMNS };

#define HEAD                                                                                                           \
	"kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = 1) {\n"                                  \
	"    let i = arange(0, 256); let j = arange(0, 128);\n"                                                        \
	"    let p = i[:, None] * 128 + j[None, :];\n"

static void want_elementwise(const float *x, double *z, int n)
{
	for (int i = 0; i < ALL_OF_IT; i++) z[i] = i < n ? 3 * (double)x[i] + i % COLUMNS : NAN;
}

static void want_softmax(const float *x, double *z, int n)
{
	(void)n;
	for (int i = 0; i < ROWS; i++) {
		double most = -INFINITY, sum = 0;
		for (int j = 0; j < COLUMNS; j++) most = fmax(most, (double)x[i * COLUMNS + j]);
		for (int j = 0; j < COLUMNS; j++) sum += most - (double)x[i * COLUMNS + j];
		for (int j = 0; j < COLUMNS; j++) z[i * COLUMNS + j] = sum - 2 * (double)x[i * COLUMNS + j];
	}
}

static void want_centred(const float *x, double *z, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++) sum += (double)x[i];
	for (int i = 0; i < ALL_OF_IT; i++) z[i] = (i < n ? (double)x[i] : 7) - sum;
}

static void want_columns(const float *x, double *z, int n)
{
	(void)n;
	for (int j = 0; j < COLUMNS; j++) {
		double sum = 0;
		for (int i = 0; i < ROWS; i++) sum += (double)x[i * COLUMNS + j];
		for (int i = 0; i < ROWS; i++) z[i * COLUMNS + j] = sum * (double)x[i * COLUMNS + j] + i;
	}
}

static void want_in_place(const float *x, double *z, int n)
{
	(void)n;
	for (int i = 0; i < ALL_OF_IT; i++) z[i] = 2 * ((double)x[i] + 1) + 1;
}

static void want_shifted(const float *x, double *z, int n)
{
	(void)n;
	for (int i = 0; i < ALL_OF_IT; i++) z[i] = (double)x[i];
	for (int i = ALL_OF_IT - 1; i >= 128; i--) z[i] = z[i - 128] + 1;
}

static void want_transposed_in_place(const float *x, double *z, int n)
{
	(void)n;
	for (int i = 0; i < 256; i++)
		for (int j = 0; j < 256; j++) z[i * 256 + j] = (double)x[j * 256 + i] + 1;
}

static void want_rows_in_place(const float *x, double *z, int n)
{
	(void)n;
	for (int i = 0; i < ROWS; i++) {
		double most = -INFINITY;
		for (int j = 0; j < COLUMNS; j++) most = fmax(most, (double)x[i * COLUMNS + j]);
		for (int j = 0; j < COLUMNS; j++)
			z[i * COLUMNS + j] = (double)x[i * COLUMNS + COLUMNS - 1 - j] - most + (double)x[i];
	}
}

static void want_same_place(const float *x, double *z, int n)
{
	(void)n;
	(void)x;
	z[0] = 6;
}

/* The first column; others are not stored. */
static void want_no_difference(const float *x, double *z, int n)
{
	(void)n;
	(void)x;
	for (int i = 0; i < 128 * 2048; i++) z[i] = i % 2048 ? NAN : 0;
}

static void want_counts(const float *x, double *z, int n)
{
	for (int b = 0; b < 16; b++) z[b] = 0;
	for (int i = 0; i < n; i++)
		if (x[i] >= 0) z[(int)x[i]]++;
}

static void want_added(const float *x, double *z, int n)
{
	for (int b = 0; b < 16; b++) z[b] = 1;
	for (int i = 0; i < n; i++) z[(int)x[i] + 4] += 2;
}

static void want_transposed(const float *x, double *z, int n)
{
	(void)n;
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++) z[j * ROWS + i] = (double)x[i * COLUMNS + j] + i;
}

static void want_scanned(const float *x, double *z, int n)
{
	(void)n;
	for (int i = 0; i < ROWS; i++) {
		double sum = 0;
		for (int j = 0; j < COLUMNS; j++) z[i * COLUMNS + j] = sum += (double)x[i * COLUMNS + j];
	}
}

static void want_joined(const float *x, double *z, int n)
{
	(void)n;
	for (int i = 0; i < ALL_OF_IT / 2; i++) {
		z[2 * i] = (double)x[2 * i + 1];
		z[2 * i + 1] = (double)x[2 * i] + (double)x[2 * i + 1];
	}
}

static void want_rounds(const float *x, double *z, int n)
{
	(void)n;
	for (int i = 0; i < ALL_OF_IT; i++) z[i] = 3 * (double)x[i] + (i % 2 ? 5 : 0);
}

static void want_small(const float *x, double *z, int n)
{
	(void)n;
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++)
			z[i * COLUMNS + j] = (double)x[i * COLUMNS + j] * (double)x[i] + (double)x[ROWS - 1 - i];
}

static const f32_program programs[] = {
	{"elementwise",
		HEAD "    store(z + p, load(x + p, mask = p < n) * 3.0 + j[None, :].to(f32), mask = p < n);\n}\n",
		ALL_OF_IT, ALL_OF_IT, 31003, want_elementwise},
	{"rows",
		HEAD "    let v = load(x + p);\n    let most = max(v, axis = 1);\n    let d = most[:, None] - v;\n"
		     "    store(z + p, sum(d, axis = 1)[:, None] - 2.0 * v);\n}\n",
		ALL_OF_IT, ALL_OF_IT, 0, want_softmax},
	{"everything",
		HEAD "    let v = load(x + p, mask = p < n, other = 7.0);\n    store(z + p, v - sum(where(p < n, v, "
		     "0.0)));\n}\n",
		ALL_OF_IT, ALL_OF_IT, 32001, want_centred},
	{"columns",
		HEAD
		"    let v = load(x + p);\n    store(z + p, sum(v, axis = 0)[None, :] * v + i[:, None].to(f32));\n}\n",
		ALL_OF_IT, ALL_OF_IT, 0, want_columns},
	{"in_place",
		HEAD "    store(z + p, load(x + p) + 1.0);\n    debug_barrier();\n    store(z + p, load(z + p) * 2.0 + "
		     "1.0);\n}\n",
		ALL_OF_IT, ALL_OF_IT, 0, want_in_place},
	{"transposed",
		HEAD "    store(z + arange(0, 128)[:, None] * 256 + i[None, :], trans(load(x + p) + i[:, "
		     "None].to(f32)));\n}\n",
		ALL_OF_IT, ALL_OF_IT, 0, want_transposed},
	{"scanned", HEAD "    store(z + p, cumsum(load(x + p), axis = 1));\n}\n", ALL_OF_IT, ALL_OF_IT, 0,
		want_scanned},
	{"joined",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = 1) {\n"
		"    let i = arange(0, 16384);\n    let (a, b) = split(load(x + i[:, None] * 2 + arange(0, 2)[None, "
		":]));\n"
		"    store(z + i[:, None] * 2 + arange(0, 2)[None, :], join(b, a + b));\n}\n",
		ALL_OF_IT, ALL_OF_IT, 0, want_joined},
	{"histogram",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = 1) {\n"
		"    let i = arange(0, 32768);\n    let h = histogram(load(x + i).to(i32), 16, mask = i < n);\n"
		"    store(z + arange(0, 16), h.to(f32));\n}\n",
		ALL_OF_IT, 16, 30011, want_counts},
	{"atomics",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = 1) {\n"
		"    let i = arange(0, 32768);\n    store(z + arange(0, 16), 1.0);\n    debug_barrier();\n"
		"    atomic_add(z + load(x + i).to(i32) + 4, 2.0, mask = i < n);\n}\n",
		ALL_OF_IT, 16, 32111, want_added},
	{"rounds",
		HEAD "    for r in range(0, 3) {\n        if r == 2 { store(z + p, load(x + p) * (r + 1).to(f32)); }\n "
		     "   }\n"
		     "    debug_barrier();\n    store(z + p, load(z + p) + 5.0, mask = j[None, :] % 2 == 1);\n}\n",
		ALL_OF_IT, ALL_OF_IT, 0, want_rounds},
	/* A short tile of which each part needs a piece, transposed round on the way. */
	{"pieces",
		HEAD "    let short = load(x + i);\n    store(z + p, load(x + p) * short[:, None] + flip(short)[:, "
		     "None]);\n}\n",
		ALL_OF_IT, ALL_OF_IT, 0, want_small},
	/* These may not be cut: a part would be loaded behind the store of an earlier one. */
	{"shifted",
		HEAD "    store(z + p, load(x + p));\n    debug_barrier();\n    let v = load(z + p, mask = i[:, None] "
		     "< 255);\n"
		     "    store(z + p + 128, v + 1.0, mask = i[:, None] < 255);\n}\n",
		ALL_OF_IT, ALL_OF_IT, 0, want_shifted},
	{"transposed_in_place",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = 1) {\n"
		"    let i = arange(0, 256); let p = i[:, None] * 256 + i[None, :];\n"
		"    store(z + p, load(x + p) + 1.0);\n    debug_barrier();\n    store(z + p, trans(load(z + "
		"p)));\n}\n",
		65536, 65536, 0, want_transposed_in_place},
	/* In place, rows by rows; what each row gets of the first ones was loaded before. */
	{"rows_in_place",
		HEAD
		"    store(z + p, load(x + p));\n    debug_barrier();\n    let v = load(z + p); let w = load(z + i);\n"
		"    store(z + p, flip(v, axis = 1) - max(v, axis = 1)[:, None] + w[:, None]);\n}\n",
		ALL_OF_IT, ALL_OF_IT, 0, want_rows_in_place},
	{"same_place",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = 1) {\n"
		"    let i = arange(0, 32768);\n    store(z, 5.0);\n    debug_barrier();\n    let q = z + i / 32768;\n"
		"    store(q, load(q) + 1.0);\n}\n",
		1, 1, 0, want_same_place},
	/* The same by offsets that wrap around: elements 0 and 65536. */
	{"same_place_again",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) {\n"
		"    let i = arange(0, 131072);\n    store(z, 4.0);\n    debug_barrier();\n"
		"    let q = z + i * 65536; let m = (i & 65535) == 0;\n"
		"    store(q, load(q, mask = m, other = 0.0) + 2.0, mask = m);\n}\n",
		1, 1, 0, want_same_place},
	/* A sum is rounded in the order of its layout: one that is used twice is not made by each user. */
	{"one_sum",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) {\n"
		"    let r = arange(0, 128); let c = arange(0, 256);\n"
		"    let s = sum(load(x + r[:, None] * 256 + c[None, :]) * 0.37 + c[None, :].to(f32) * 0.01, axis = "
		"1);\n"
		"    let q = arange(0, 2048)[None, :] + r[:, None] * 0;\n"
		"    store(z + r[:, None] * 2048 + q, s[:, None] + q.to(f32), mask = q == 0);\n"
		"    debug_barrier();\n    store(z + r * 2048, load(z + r * 2048) - s);\n}\n",
		ALL_OF_IT, 128 * 2048, 0, want_no_difference},
};

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	reductions(&s);
	products(&s);
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) suite_run_f32(&s, &programs[i]);
	return suite_close(&s);
}
