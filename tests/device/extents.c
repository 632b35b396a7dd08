/* Tiles whose extents are no powers of two, where elements move between the parts that a GPU has of them: reshapes of
 * every kind, flips, puttings together; and programs in which such tiles go round loops, through branches and
 * functions.  Results compare with loops over coordinates; what the language does not take it says.  Operations by
 * themselves are in shapes.c, tiles.c, scans.c, dot.c and tensors.c, beside the other extents. */
#include "device_test.h"

/* ---- what moves elements: f32, each element its own number ---- */

static void run_words(suite *s, const char *name, const char *text, int n, const int *from, int nout)
{
	float *x = suite_alloc((size_t)n * 4), *got = suite_alloc((size_t)nout * 4);
	size_t bytes = (size_t)n * 4;
	const void *in[] = {x};
	int wrong = 0;
	for (int i = 0; i < n; i++) x[i] = (float)(i + 1);
	bool good = suite_run(s, name, text, NULL, 0, SCALAR_F32, got, (size_t)nout, in, &bytes, 1, n);
	for (int i = 0; good && i < nout; i++)
		if (got[i] != x[from[i]] && wrong++ < 3)
			printf("%s: element %d is %g, expected %g\n", name, i, (double)got[i], (double)x[from[i]]);
	suite_verdict(s, good, wrong, text);
	free(x);
	free(got);
}

static const char *extents_text(char *out, size_t room, const shape *s)
{
	size_t at = 0;
	for (int d = 0; d < s->rank; d++) at += (size_t)snprintf(out + at, room - at, "%s%d", d ? ", " : "", s->dim[d]);
	return out;
}

/* A reshape keeps the order, so the result is the input; that of pointers too. */
static void run_reshape(suite *s, const shape *a, const shape *b, int warps, bool pointers)
{
	char name[128], text[2048], from[512], to[512], dims[64], other[64], wanted[64];
	int n = product(a), *same = suite_alloc((size_t)n * sizeof *same);
	snprintf(name, sizeof name, "reshape.%s.%s.warps%d%s", shape_name(dims, sizeof dims, a),
		shape_name(other, sizeof other, b), warps, pointers ? ".pointers" : "");
	offsets(from, sizeof from, a);
	offsets(to, sizeof to, b);
	snprintf(text, sizeof text,
		pointers ? "kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = %d) {\n"
			   "store(z + (%s), load(reshape(x + (%s), [%s])));\n}\n"
			 : "kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = %d) {\n"
			   "store(z + (%s), reshape(load(x + (%s)), [%s]));\n}\n",
		warps, to, from, extents_text(wanted, sizeof wanted, b));
	for (int i = 0; i < n; i++) same[i] = i;
	if (suite_wants(s, name)) run_words(s, name, text, n, same, n);
	free(same);
}

static void run_reshapes(suite *s)
{
	static const shape cases[][2] = {
		{{1, {192}}, {2, {3, 64}}},
		{{1, {192}}, {2, {6, 32}}},
		{{1, {192}}, {2, {4, 48}}},
		{{1, {192}}, {2, {64, 3}}},
		{{1, {192}}, {3, {4, 12, 4}}},
		{{1, {192}}, {4, {2, 3, 8, 4}}},
		{{1, {127}}, {2, {127, 1}}},
		{{1, {15}}, {2, {3, 5}}},
		{{1, {1920}}, {3, {3, 5, 128}}},
		{{2, {12, 80}}, {1, {960}}},
		{{2, {12, 80}}, {2, {80, 12}}},
		{{2, {12, 80}}, {2, {24, 40}}},
		{{2, {12, 80}}, {3, {12, 5, 16}}},
		{{2, {96, 80}}, {3, {96, 1, 80}}},
		{{2, {96, 80}}, {3, {3, 32, 80}}},
		{{2, {64, 96}}, {3, {64, 3, 32}}},
		{{2, {64, 96}}, {3, {64, 4, 24}}},
		{{3, {5, 6, 16}}, {2, {30, 16}}},
		{{3, {5, 6, 16}}, {2, {5, 96}}},
		{{3, {5, 6, 16}}, {3, {10, 3, 16}}},
		{{3, {4, 48, 5}}, {3, {192, 5, 1}}},
		{{4, {4, 3, 4, 3}}, {2, {12, 12}}},
		{{4, {2, 6, 2, 6}}, {4, {4, 3, 4, 3}}},
	};
	static const int warps[] = {4, 1, 8, 2};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		run_reshape(s, &cases[i][0], &cases[i][1], warps[i % 4], false);
		run_reshape(s, &cases[i][1], &cases[i][0], warps[(i + 1) % 4], false);
		if (i % 4 == 2) run_reshape(s, &cases[i][0], &cases[i][1], warps[i % 3], true);
	}
}

/* ---- programs: f32 in small integers ---- */

#define WANT(name) static void name(const float *x, double *z, int n)
#define UNUSED_N (void)n

WANT(w_carried)
{
	for (int i = 0; i < 192; i++) {
		double a = x[i];
		for (int k = 0; k < n; k++) a = k % 3 == 1 ? a - x[192 * k + i] : a + k;
		z[i] = a;
	}
}
WANT(w_while)
{
	for (int i = 0; i < 40; i++) {
		double a = x[i];
		for (int k = n; k > 1; k = k % 2 ? 3 * k + 1 : k / 2) a += k;
		z[i] = a;
	}
}
WANT(w_branch)
{
	for (int i = 0; i < 96; i++) z[i] = n > 3 ? x[95 - i] : x[i];
}
WANT(w_flips)
{
	UNUSED_N;
	for (int i = 0; i < 12; i++)
		for (int j = 0; j < 80; j++) z[i * 80 + j] = (double)x[(11 - i) * 80 + j] + 16.0 * x[i * 80 + 79 - j];
}
WANT(w_masked_trans)
{
	UNUSED_N;
	for (int i = 0; i < 53 * 41; i++) z[i] = NAN;
	for (int i = 0; i < 37; i++)
		for (int j = 0; j < 53; j++) z[j * 41 + i] = x[i * 61 + j];
}
WANT(w_center)
{
	UNUSED_N;
	for (int i = 0; i < 6; i++) {
		double m = x[i * 100], sum = 0;
		for (int j = 0; j < 100; j++) m = fmax(m, x[i * 100 + j]);
		for (int j = 0; j < 100; j++) sum += x[i * 100 + j] - m;
		for (int j = 0; j < 100; j++) z[i * 100 + j] = 2 * (x[i * 100 + j] - m) - sum;
	}
}
WANT(w_everything)
{
	UNUSED_N;
	int best = 0, least = 0;
	z[0] = 0;
	for (int i = 0; i < 960; i++) {
		z[0] += x[i];
		if (x[i] > x[best]) best = i;
		if (x[i] < x[least]) least = i;
	}
	z[1] = x[best];
	z[2] = best;
	z[3] = least;
	z[4] = x[0];
	z[5] = 960;
}
WANT(w_long_row)
{
	double sum = 0, m = x[0];
	for (int i = 0; i < n; i++) {
		sum += x[i];
		m = fmax(m, x[i]);
	}
	for (int i = 0; i < n; i++) z[i] = x[i] * 8 + sum - m;
	for (int i = n; i < 5120; i++) z[i] = NAN;
}
WANT(w_table)
{
	UNUSED_N;
	int h[96] = {0};
	for (int i = 0; i < 320; i++) h[((int)x[i] + 4) * 9]++;
	for (int i = 0; i < 96; i++) z[i] = h[i] + 1000 * h[95 - i];
}
WANT(w_bins)
{
	UNUSED_N;
	for (int b = 0; b < 9; b++) z[b] = 0;
	for (int i = 0; i < 3 * 320; i++) z[(int)x[i % 320] + 4]++;
}
WANT(w_tuple)
{
	UNUSED_N;
	for (int i = 0; i < 12; i++) {
		double last = 0, most = 0;
		for (int j = 0; j < 40; j++) {
			if (x[i * 40 + j] != 0) last = x[i * 40 + j];
			most = fmax(most, fabs(x[i * 40 + j]));
		}
		z[i] = last;
		z[12 + i] = most;
	}
}
WANT(w_in_place)
{
	UNUSED_N;
	for (int i = 0; i < 192; i++) z[i] = x[i] + (i ? x[i - 1] : 0);
}
WANT(w_static)
{
	UNUSED_N;
	for (int i = 0; i < 24; i++)
		for (int j = 0; j < 48; j++) z[i * 48 + j] = 100 * i + j + (i % 3 == j % 5 ? x[i] : x[j]);
}
WANT(w_scan_both)
{
	UNUSED_N;
	for (int i = 0; i < 12; i++)
		for (int j = 0; j < 20; j++)
			z[i * 20 + j] = (double)x[i * 20 + j] + (i ? z[(i - 1) * 20 + j] : 0) +
					(j ? z[i * 20 + j - 1] : 0) - (i && j ? z[(i - 1) * 20 + j - 1] : 0);
}
WANT(w_sorted_rows) /* each of 12 rows of 16 */
{
	UNUSED_N;
	for (int i = 0; i < 12; i++)
		for (int j = 0; j < 16; j++) {
			int at = 0;
			for (int k = 0; k < 16; k++)
				at += x[i * 16 + k] < x[i * 16 + j] || (x[i * 16 + k] == x[i * 16 + j] && k < j);
			z[i * 16 + at] = x[i * 16 + j];
		}
}

#define KERNEL(warps) "kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = " #warps ") {\n"
static const f32_program programs[] = {
	{"carried",
		KERNEL(4) "let o = arange(0, 192);\nvar a = load(x + o);\nfor k in range(n) {\n"
			  "if k % 3 == 1 { a -= load(x + 192 * k + o); } else { a += k.to(f32); }\n}\nstore(z + o, "
			  "a);\n}\n",
		192 * 8, 192, 8, w_carried},
	{"while",
		KERNEL(1) "let o = arange(0, 40);\nvar a = load(x + o); var i = n;\n"
			  "while i > 1 { a += i.to(f32); if i % 2 == 0 { i = i / 2; } else { i = 3 * i + 1; } }\n"
			  "store(z + o, a);\n}\n",
		40, 40, 27, w_while},
	{"branch_taken",
		KERNEL(2) "let o = arange(0, 96);\nvar v = load(x + o);\nif n > 3 { v = flip(v); }\nstore(z + o, "
			  "v);\n}\n",
		96, 96, 4, w_branch},
	{"branch_not_taken",
		KERNEL(2) "let o = arange(0, 96);\nvar v = load(x + o);\nif n > 3 { v = flip(v); }\nstore(z + o, "
			  "v);\n}\n",
		96, 96, 3, w_branch},
	{"flips",
		KERNEL(4) "let o = arange(0, 12)[:, None] * 80 + arange(0, 80)[None, :];\nlet v = load(x + o);\n"
			  "store(z + o, flip(v, 0) + 16.0 * flip(v, 1));\n}\n",
		960, 960, 0, w_flips},
	{"masked_trans",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(cdiv(37, 12), cdiv(53, 40)) {\n"
		"let i = program_id(0) * 12 + arange(0, 12); let j = program_id(1) * 40 + arange(0, 40);\n"
		"let m = (i < 37)[:, None] & (j < 53)[None, :];\n"
		"let t = load(x + i[:, None] * 61 + j[None, :], mask = m, other = 9.0);\n"
		"store(z + j[:, None] * 41 + i[None, :], trans(t), mask = trans(m));\n}\n",
		37 * 61, 53 * 41, 0, w_masked_trans},
	{"center_rows",
		KERNEL(4) "let i = arange(0, 6)[:, None]; let j = arange(0, 112)[None, :];\nlet mask = (i >= 0) & (j < "
			  "100);\n"
			  "let v = load(x + i * 100 + j, mask = mask, other = -inf);\n"
			  "let d = where(mask, v - max(v, axis = 1)[:, None], 0.0);\n"
			  "store(z + i * 100 + j, 2.0 * d - sum(d, axis = 1, keep_dims = true), mask = mask);\n}\n",
		600, 600, 0, w_center},
	{"everything",
		"fn first(a, b) { return a; }\n" KERNEL(
			4) "let v = load(x + (arange(0, 12)[:, None] * 80 + arange(0, 80)[None, :]));\n"
			   "store(z, sum(v)); store(z + 1, max(v)); store(z + 2, argmax(v).to(f32));\n"
			   "store(z + 3, argmin(v).to(f32)); store(z + 4, reduce(v, None, first));\n"
			   "store(z + 5, sum(v == v, keep_dims = true)[:, :, None].reshape([1]).sum().to(f32));\n}\n",
		960, 6, 0, w_everything},
	{"long_row",
		KERNEL(4) "let o = arange(0, 5120); let m = o < n;\nlet v = load(x + o, mask = m, other = 0.0);\n"
			  "let w = load(x + o, mask = m, other = -inf);\n"
			  "store(z + o, v * 8.0 + sum(v) - max(w), mask = m);\n}\n",
		5120, 5120, 5000, w_long_row},
	{"table",
		KERNEL(4) "let v = (load(x + arange(0, 320)).to(i32) + 4) * 9;\nlet h = histogram(v, 96);\n"
			  "let o = arange(0, 96);\nstore(z + o, (h + 1000 * gather(h, 95 - o, 0)).to(f32));\n}\n",
		320, 96, 0, w_table},
	{"bins",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) {\nstore(z + arange(0, 16), zeros([16], f32), mask = "
		"arange(0, 16) < 9);\nlet o = arange(0, 320);\nlet at = z + (load(x + o).to(i32) + 4);\n"
		"debug_barrier();\nfor i in range(3) { atomic_add(at, 1.0, sem = \"relaxed\"); }\n}\n",
		320, 9, 0, w_bins},
	{"tuple",
		"fn both(a, s, b, t) { return (where(b == 0.0, a, b), maximum(s, t)); }\n" KERNEL(
			2) "let i = arange(0, 12);\nlet v = load(x + (i[:, None] * 40 + arange(0, 40)[None, :]));\n"
			   "let (l, m) = reduce((v, abs(v)), 1, both);\nstore(z + i, l); store(z + 12 + i, m);\n}\n",
		480, 24, 0, w_tuple},
	{"in_place_shifted",
		KERNEL(4) "let o = arange(0, 192);\nstore(z + o, load(x + o));\n"
			  "let left = load(z + o - 1, mask = o > 0);\nstore(z + o, load(z + o) + left);\n}\n",
		192, 192, 0, w_in_place},
	{"static",
		"fn tile(const N: i32) { return arange(0, 8 * N); }\n" KERNEL(
			4) "let i = tile(3); let j = tile(6);\nlet a = load(x + i)[:, None]; let b = load(x + j)[None, "
			   ":];\n"
			   "let c = (i % 3)[:, None] == (j % 5)[None, :];\n"
			   "store(z + i[:, None] * 48 + j[None, :], (100 * i[:, None] + j[None, :]).to(f32) + where(c, "
			   "a, "
			   "b));\n}\n",
		48, 24 * 48, 0, w_static},
	{"scan_both",
		KERNEL(4) "let o = arange(0, 12)[:, None] * 20 + arange(0, 20)[None, :];\n"
			  "store(z + o, cumsum(cumsum(load(x + o), axis = 0), axis = 1));\n}\n",
		240, 240, 0, w_scan_both},
	{"sorted_rows",
		KERNEL(4) "let o = arange(0, 12)[:, None] * 16 + arange(0, 16)[None, :];\n"
			  "store(z + o, sort(load(x + o), axis = 1));\n}\n",
		192, 192, 0, w_sorted_rows},
};

/* ---- what is refused, and in which words ---- */

static const struct {
	const char *name, *body, *says;
} refused[] = {
	{"sort", "store(z + arange(0, 192), sort(load(x + arange(0, 192))));", "'sort' takes lines of powers of two"},
	{"topk", "store(z + arange(0, 8), topk(load(x + arange(0, 96)), 8));", "'topk' takes lines of powers of two"},
	{"arange", "store(z + arange(0, 5000), 1.0);", "use arange(0, 5120) and mask what is beyond"},
	{"extent", "store(z + arange(0, 1), sum(zeros([131], f32)));", "take 132 and mask the rest"},
	{"reshape_far", "let v = reshape(load(x + arange(0, 15360)), [192, 80]);", "moving 384 runs of its elements"},
	{"cat", "let v = load(x + reshape(arange(0, 30), [2, 3, 5, 1])); let w = cat(v, v, axis = 1);",
		"'cat' of four dimensions takes powers of two"},
};

static void run_refused(suite *s)
{
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		char text[512];
		blk_module *module = NULL;
		blk_kernel *kernel;
		if (!suite_wants(s, refused[i].name)) continue;
		snprintf(text, sizeof text, "kernel k(z: *f32, x: *const f32, n: i32) grid(1) {\n%s\n}\n",
			refused[i].body);
		bool bad = blk_module_source(s->device, refused[i].name, text, NULL, 0, &module) != BLK_OK ||
			   blk_kernel_find(module, "k", &kernel) != BLK_OK;
		bool said = bad && strstr(blk_error(), refused[i].says);
		if (!said) printf("%s: %s\n", refused[i].name, bad ? blk_error() : "accepted");
		said ? s->passed++ : s->failed++;
		blk_module_close(module);
	}
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	run_reshapes(&s);
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) suite_run_f32(&s, &programs[i]);
	run_refused(&s);
	return suite_close(&s);
}
