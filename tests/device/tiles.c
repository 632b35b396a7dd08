/* Reductions along every axis, shape operations, two-dimensional masked accesses, control flow, in-place kernels and
 * random numbers.  Inputs are small integers, so that every order of summation gives the same bits and results compare
 * exactly. */
#include "device_test.h"

enum { MAX_IN = 1 << 16 };

static uint64_t small_integer(scalar t, uint64_t *state)
{
	int64_t v = (int64_t)(suite_random(state) % 7) - (scalar_is_signed(t) ? 3 : 0);
	if (t == SCALAR_BOOL) return v > 0;
	return scalar_is_float(t) ? scalar_from_double(t, (double)v) : scalar_truncate(t, (uint64_t)v);
}

typedef struct reduction {
	const char *name, *expression; /* of a tile x and AXIS */
	int types;                     /* 0 all numbers, 1 integers, 2 bool result on integers, 3 i32 index result */
} reduction;

static const reduction reductions[] = {
	{"sum", "sum(x, axis = AXIS)", 0},
	{"max", "max(x, axis = AXIS)", 0},
	{"min", "min(x, axis = AXIS)", 0},
	{"xor_sum", "xor_sum(x, axis = AXIS)", 1},
	{"any", "any(x > 2, axis = AXIS)", 2},
	{"all", "all(x > -3, axis = AXIS)", 2},
	{"argmax", "argmax(x, axis = AXIS)", 3},
	{"argmin", "argmin(x, axis = AXIS)", 3},
	{"reduce_last", "reduce(x, AXIS, last)", 0},
	{"reduce_max", "reduce(x, AXIS, larger)", 0},
};

/* The reduction of n values v[0], v[step], ... in double; integers this small are exact. */
static double reduce_line(const char *name, const double *v, int n, int step)
{
	double sum = 0, top = v[0], low = v[0], last = 0;
	int64_t bits = 0;
	int at_top = 0, at_low = 0;
	bool any = false, all = true;
	for (int i = 0; i < n; i++) {
		double x = v[i * step];
		sum += x;
		bits ^= (int64_t)x;
		if (x > top) top = x, at_top = i;
		if (x < low) low = x, at_low = i;
		if (x != 0) last = x;
		any |= x > 2;
		all &= x > -3;
	}
	switch (name[0] == 'r' ? name[7] : name[0] == 'a' ? name[3] == 'm' ? name[4] : name[1] : name[0]) {
	case 's': return sum;
	case 'x': return (double)bits;
	case 'n': return any;
	case 'l': return name[0] == 'a' ? all : last;
	case 'a': return at_top;
	case 'i': return at_low;
	}
	return strstr(name, "min") ? low : top;
}

static const char functions[] =
	"fn last(a, b) { return where(b == 0, a, b); }\nfn larger(a, b) { return where(b > a, b, a); }\n";

static void run_reduction(suite *s, const reduction *r, const shape *sh, int axis, scalar t, int warps)
{
	char name[96], text[2048], where[512], out_where[512], dims[64];
	shape_name(dims, sizeof dims, sh);
	snprintf(name, sizeof name, "%s.%s.%s.axis%d.warps%d", r->name, scalar_name(t), dims, axis, warps);
	if (!suite_wants(s, name)) return;
	bool narrow_sum = strcmp(r->name, "sum") == 0 || strcmp(r->name, "xor_sum") == 0;
	scalar result = r->types == 2 ? SCALAR_BOOL : r->types == 3 ? SCALAR_I32 : t;
	if (narrow_sum && !scalar_is_float(t) && scalar_bytes(t) < 4)
		result = scalar_is_signed(t) ? SCALAR_I32 : SCALAR_U32;
	shape out = {.rank = 0};
	for (int d = 0; d < sh->rank; d++)
		if (d != axis) out.dim[out.rank++] = sh->dim[d];
	offsets(where, sizeof where, sh);
	offsets(out_where, sizeof out_where, &out);
	snprintf(text, sizeof text,
		"%skernel k(z: *%s, p: *const %s, n: i32) grid(1) options(num_warps = %d) {\nconst AXIS = %d;\n"
		"let x = load(p + (%s));\nstore(z%s%s%s, %s);\n}\n",
		functions, scalar_name(result), scalar_name(t), warps, axis, where, out.rank ? " + (" : "",
		out.rank ? out_where : "", out.rank ? ")" : "", r->expression);
	int n = product(sh), m = out.rank ? product(&out) : 1, length = sh->dim[axis], inner = 1;
	for (int d = axis + 1; d < sh->rank; d++) inner *= sh->dim[d];
	void *in = suite_alloc((size_t)n * 8), *got = suite_alloc((size_t)m * 8);
	double *v = suite_alloc((size_t)n * sizeof *v);
	uint64_t state = (uint64_t)(n + axis);
	for (int i = 0; i < n; i++) {
		container_put(t, in, (size_t)i, small_integer(t, &state));
		v[i] = scalar_to_double(t, container_at(t, in, (size_t)i));
	}
	size_t in_bytes = (size_t)n * scalar_bytes(t);
	const void *inputs[] = {in};
	bool good = suite_run(s, name, text, NULL, 0, result, got, (size_t)m, inputs, &in_bytes, 1, n);
	int wrong = 0;
	for (int i = 0; good && i < m; i++) {
		double want = reduce_line(r->name, v + i / inner * inner * length + i % inner, length, inner);
		double have = scalar_to_double(result, container_at(result, got, (size_t)i));
		if (have != want && wrong++ < 3) printf("%s: element %d is %g, expected %g\n", name, i, have, want);
	}
	suite_verdict(s, good, wrong, text);
	free(in);
	free(got);
	free(v);
}

static void run_reductions(suite *s)
{
	static const shape shapes[] = {
		{1, {1}},
		{1, {2}},
		{1, {32}},
		{1, {64}},
		{1, {256}},
		{1, {4096}},
		{2, {1, 64}},
		{2, {64, 1}},
		{2, {16, 64}},
		{2, {64, 16}},
		{2, {4, 512}},
		{2, {256, 8}},
		{3, {4, 8, 16}},
		{3, {8, 1, 64}},
		{4, {2, 4, 8, 16}},
		{1, {3}},
		{1, {192}},
		{1, {5120}},
		{2, {96, 40}},
		{2, {4, 640}},
		{2, {1280, 3}},
		{3, {5, 6, 16}},
		{4, {2, 3, 4, 10}},
	};
	static const scalar types[] = {SCALAR_F32, SCALAR_F16, SCALAR_BF16, SCALAR_F64, SCALAR_I8, SCALAR_U16,
		SCALAR_I32, SCALAR_U32, SCALAR_I64, SCALAR_U64};
	for (size_t r = 0; r < sizeof reductions / sizeof reductions[0]; r++)
		for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
			for (int axis = 0; axis < shapes[k].rank; axis++)
				for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
					bool is_float = scalar_is_float(types[t]);
					if (reductions[r].types == 1 && is_float) continue;
					if (reductions[r].types == 2 && !scalar_is_signed(types[t])) continue;
					if (t > 1 && (k + t + r) % 4)
						continue; /* every type meets every operation, not every shape */
					run_reduction(s, &reductions[r], &shapes[k], axis, types[t],
						(k + r) % 3 == 0   ? 1
						: (k + r) % 3 == 1 ? 4
								   : 8);
				}
}

#define WANT(name) static void name(const float *x, double *z, int n)

WANT(w_trans)
{
	(void)n;
	for (int i = 0; i < 32; i++)
		for (int j = 0; j < 64; j++) z[j * 32 + i] = x[i * 64 + j];
}
WANT(w_copy)
{
	(void)n;
	for (int i = 0; i < 2048; i++) z[i] = x[i];
}
WANT(w_outer)
{
	(void)n;
	for (int i = 0; i < 64; i++)
		for (int j = 0; j < 32; j++) z[i * 32 + j] = x[i] * x[64 + j];
}
WANT(w_masked) /* 37 x 53 in a row pitch of 61, transposed into a pitch of 41 */
{
	(void)n;
	for (int j = 0; j < 53; j++)
		for (int i = 0; i < 41; i++) z[j * 41 + i] = i < 37 ? x[i * 61 + j] : NAN;
}
WANT(w_center)
{
	(void)n;
	for (int i = 0; i < 16; i++) {
		double m = -1e30;
		for (int j = 0; j < 128; j++) m = fmax(m, x[i * 128 + j]);
		for (int j = 0; j < 128; j++) z[i * 128 + j] = x[i * 128 + j] - m;
	}
}
WANT(w_columns)
{
	(void)n;
	for (int j = 0; j < 128; j++) {
		double m = 0;
		for (int i = 0; i < 16; i++) m += x[i * 128 + j];
		for (int i = 0; i < 16; i++) z[i * 128 + j] = x[i * 128 + j] * m;
	}
}
WANT(w_loop)
{
	for (int i = 0; i < 64; i++) {
		z[i] = 0;
		for (int k = 0; k < n; k++) z[i] += (k + 1) * x[k * 64 + i];
	}
}
WANT(w_break)
{
	for (int i = 0; i < 64; i++) {
		z[i] = 0;
		for (int k = 0; k < n; k++) {
			if (k == 7) break;
			if (k % 3 == 1) continue;
			z[i] += x[k * 64 + i];
		}
	}
}
WANT(w_while)
{
	for (int i = 0; i < 64; i++) {
		z[i] = x[i];
		for (int k = n; k > 1; k = k % 2 ? 3 * k + 1 : k / 2) z[i] += k;
	}
}
WANT(w_early)
{
	for (int i = 0; i < 256; i++) z[i] = n > 5 ? x[i] : -x[i];
}
WANT(w_negative)
{
	for (int i = 0; i < 64; i++) {
		z[i] = 0;
		for (int k = n - 1; k >= 0; k -= 2) z[i] = 2 * z[i] + x[k * 64 + i];
	}
}
WANT(w_function)
{
	(void)n;
	for (int i = 0; i < 128; i++) z[i] = x[i] < 0 ? -1 : x[i] > 2 ? 7 : x[i] + 1;
}
WANT(w_static)
{
	(void)n;
	for (int i = 0; i < 64; i++) {
		z[i] = 0;
		for (int k = 0; k < 5; k++) z[i] += x[k * 64 + i] * (k + 1);
	}
}
WANT(w_in_place)
{
	(void)n;
	double t[256];
	for (int i = 0; i < 256; i++) t[i] = x[i] + (i ? x[i - 1] : 0);
	for (int i = 0; i < 256; i++) z[i] = t[i];
}
WANT(w_rotate)
{
	(void)n;
	for (int i = 0; i < 1024; i++) z[i] = x[(i + 5) % 1024];
}
WANT(w_scalar)
{
	(void)n;
	for (int i = 0; i < 64; i++) z[i] = x[3] * x[i] + x[5];
}
WANT(w_tuple)
{
	(void)n;
	z[0] = z[1] = 0;
	for (int i = 0; i < 512; i++) {
		z[0] = fmax(z[0], fabs(x[i]));
		z[1] += x[i];
	}
}
WANT(w_grid)
{
	for (int i = 0; i < n; i++) z[i] = i / 100 + 1000 * (i % 100 / 10) + x[i % 10];
}
WANT(w_nested)
{
	(void)n;
	for (int i = 0; i < 64; i++) {
		double a = x[i];
		for (int k = 0; k < 4; k++) {
			for (int l = 0; l < k; l++) a += x[64 * k + l];
			if (a > 10) a -= 10;
		}
		z[i] = a;
	}
	(void)n;
}

#define OFFS "let o = arange(0, 64);\n"
static const f32_program programs[] = {
	{"trans",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { let i = arange(0, 32)[:, None]; let j = arange(0, "
		"64)[None, :];\nlet t = trans(load(x + i * 64 + j));\nstore(z + arange(0, 64)[:, None] * 32 + "
		"arange(0, 32)[None, :], t); }",
		2048, 2048, 0, w_trans},
	{"trans_num_warps_1",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = 1) { let i = arange(0, 32)[:, "
		"None]; let j = arange(0, 64)[None, :];\nlet t = trans(load(x + i * 64 + j));\nstore(z + arange(0, "
		"64)[:, None] * 32 + arange(0, 32)[None, :], t); }",
		2048, 2048, 0, w_trans},
	{"reshape",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { let t = reshape(load(x + arange(0, 2048)), [16, "
		"128]);\nlet u = ravel(reshape(t, [64, 4, 8]));\nstore(z + arange(0, 2048), u); }",
		2048, 2048, 0, w_copy},
	{"outer",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { let a = load(x + arange(0, 64)); let b = load(x + "
		"64 + arange(0, 32));\nstore(z + arange(0, 64)[:, None] * 32 + arange(0, 32)[None, :], a[:, None] * "
		"b[None, :]); }",
		96, 2048, 0, w_outer},
	{"masked_transpose",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(cdiv(37, 16), cdiv(53, 32)) { let i = program_id(0) * "
		"16 + arange(0, 16); let j = program_id(1) * 32 + arange(0, 32);\nlet m = (i < 37)[:, None] & (j < "
		"53)[None, :];\nlet t = load(x + i[:, None] * 61 + j[None, :], mask = m, other = 9.0);\nstore(z + j[:, "
		"None] * 41 + i[None, :], trans(t), mask = trans(m));\n}",
		37 * 61, 53 * 41, 0, w_masked},
	{"center_rows",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { let p = arange(0, 16)[:, None] * 128 + arange(0, "
		"128)[None, :]; let v = load(x + p);\nstore(z + p, v - max(v, axis = 1)[:, None]); }",
		2048, 2048, 0, w_center},
	{"center_rows_keep",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = 8) { let p = arange(0, 16)[:, "
		"None] * 128 + arange(0, 128)[None, :]; let v = load(x + p);\nstore(z + p, v - max(v, axis = 1, "
		"keep_dims = true)); }",
		2048, 2048, 0, w_center},
	{"scale_columns",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { let p = arange(0, 16)[:, None] * 128 + arange(0, "
		"128)[None, :]; let v = load(x + p);\nstore(z + p, v * sum(v, axis = 0)[None, :]); }",
		2048, 2048, 0, w_columns},
	{"loop",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { " OFFS
		"var a = zeros([64], f32); var w = 1.0;\nfor i in range(0, n) { a += w * load(x + i * 64 + o); w += "
		"1.0; }\nstore(z + o, a); }",
		64 * 20, 64, 13, w_loop},
	{"loop_pointer",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { " OFFS
		"var a = zeros([64], f32); var p = x + o;\nfor i in range(n) { a += (i + 1).to(f32) * load(p); p = p + "
		"64; }\nstore(z + o, a); }",
		64 * 20, 64, 13, w_loop},
	{"loop_empty",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { " OFFS
		"var a = zeros([64], f32);\nfor i in range(5, n) { a += load(x + i * 64 + o); }\nstore(z + o, a); }",
		64, 64, 0, w_loop},
	{"break_continue",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { " OFFS
		"var a = zeros([64], f32);\nfor i in range(0, n) { if i == 7 { break; } if i % 3 == 1 { continue; } a "
		"+= load(x + i * 64 + o); }\nstore(z + o, a); }",
		64 * 20, 64, 13, w_break},
	{"break_unrolled",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { " OFFS
		"var a = zeros([64], f32);\nfor i in static_range(0, 13) { if i >= n { break; } if i == 7 { break; } "
		"if i % 3 == 1 { continue; } a += load(x + i * 64 + o); }\nstore(z + o, a); }",
		64 * 20, 64, 9, w_break},
	{"while",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { " OFFS
		"var a = load(x + o); var i = n;\nwhile i > 1 { a += i.to(f32); if i % 2 == 0 { i = i / 2; } else { i "
		"= 3 * i + 1; } }\nstore(z + o, a); }",
		64, 64, 27, w_while},
	{"early_return",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { let o = arange(0, 256); let v = load(x + o);\nif n "
		"> 5 { store(z + o, v); return; }\nstore(z + o, -v); }",
		256, 256, 6, w_early},
	{"late_return",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { let o = arange(0, 256); let v = load(x + o);\nif n "
		"> 5 { store(z + o, v); return; }\nstore(z + o, -v); }",
		256, 256, 5, w_early},
	{"negative_step",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { " OFFS
		"var a = zeros([64], f32);\nfor i in range(n - 1, -1, -2) { a = 2.0 * a + load(x + i * 64 + o); "
		"}\nstore(z + o, a); }",
		64 * 20, 64, 9, w_negative},
	{"function_returns",
		"fn pick(v: f32, big: i32) -> f32 { if v < 0.0 { return -1.0; } if v > 2.0 { return big.to(f32); } "
		"return v + 1.0; }\nkernel k(z: *f32, x: *const f32, n: i32) grid(128) { let i = program_id(0); "
		"store(z + i, pick(load(x + i), 7)); }",
		128, 128, 0, w_function},
	{"static_range",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { " OFFS
		"var a = zeros([64], f32);\nfor i in static_range(5) { const W = i + 1; a += load(x + i * 64 + o) * W; "
		"}\nstore(z + o, a); }",
		64 * 5, 64, 0, w_static},
	{"in_place_shifted",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { let o = arange(0, 256);\nstore(z + o, load(x + "
		"o)); let left = load(z + o - 1, mask = o > 0);\nstore(z + o, load(z + o) + left); }",
		256, 256, 0, w_in_place},
	{"store_then_load",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { let o = arange(0, 1024); store(z + o, load(x + "
		"o));\nlet r = load(z + (o + 5) % 1024); store(z + o, r); }",
		1024, 1024, 0, w_rotate},
	{"scalar_loads",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { " OFFS
		"store(z, load(x + 3)); store(z + 1, load(x + 5)); let a = load(z); let b = load(z + 1);\nstore(z + o, "
		"a * load(x + o) + b); }",
		64, 64, 0, w_scalar},
	{"reduce_tuple",
		"fn both(a, s, b, t) { return (maximum(a, b), s + t); }\nkernel k(z: *f32, x: *const f32, n: i32) "
		"grid(1) { let v = load(x + arange(0, 512)); let (m, s) = reduce((abs(v), v), 0, both);\nstore(z, "
		"max(m, 0.0)); store(z + 1, s); }",
		512, 2, 0, w_tuple},
	{"grid_3d",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(10, 10, 10) { let i = program_id(0) + 10 * "
		"program_id(1) + 100 * program_id(2);\nif num_programs(0) == 10 && num_programs(1) == 10 && "
		"num_programs(2) == 10 { store(z + i, load(x + program_id(0)) + (program_id(2) + 1000 * "
		"program_id(1)).to(f32)); } }",
		10, 1000, 1000, w_grid},
	{"nested",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) { " OFFS
		"var a = load(x + o);\nfor i in range(4) { for j in range(i) { a += load(x + 64 * i + j); } a = "
		"where(a > 10.0, a - 10.0, a); }\nstore(z + o, a); }",
		256, 64, 0, w_nested},
};

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) suite_run_f32(&s, &programs[i]);
	run_reductions(&s);
	return suite_close(&s);
}
